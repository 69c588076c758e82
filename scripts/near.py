"""Two printed texts compared with their numbers as numbers.

The last digits of a number that is not rounded depend on the processor: numpy, torch and BLAS add in another order on
another one. So a fraction (`0.3591365200233458`) may differ by one part in 10^9, and with it the width of its column;
whole numbers and words may not.
"""

import math
import re

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+(?:,\d{3})*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]*\w)")
RELATIVE, NOTHING = 1e-9, 1e-15  # the second is what rounding leaves of a zero


def near(old: str, new: str, relative: float = RELATIVE) -> bool:
    "Whether two lines are the same but for the last digits of fractions and for the width of spaces and rules."
    if old == new:
        return True
    words = [" ".join(re.sub(r"-{3,}", "---", NUMBER.sub("#", line)).split()) for line in (old, new)]
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new))
    return words[0] == words[1] and all(a == b or fractions_near(a, b, relative) for a, b in pairs)


def fractions_near(a: str, b: str, relative: float) -> bool:
    "Whether two numbers, at least one of them a fraction, are as near as that."
    if not ("." in a + b or "e" in (a + b).lower()):
        return False
    return math.isclose(float(a.replace(",", "")), float(b.replace(",", "")), rel_tol=relative, abs_tol=NOTHING)


def settled(old: str, new: str, relative: float = RELATIVE) -> list[str]:
    "The lines of a new text, each as it was in the old one where the two are near."
    before, after = old.splitlines(), new.splitlines()
    if len(before) != len(after):
        return after
    return [a if near(a, b, relative) else b for a, b in zip(before, after)]
