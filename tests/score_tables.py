"What the tests of score tables and of their formats share: the published numbers, scores with intervals."

import re

import pandas as pd

SCORES = ["MCQA", "MCQA+", "MV", "CoRA", *(f"BMCA({c})" for c in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)), "CI"]


# CoRA, Tables 1 to 4, as printed: four ranked rows, six thresholds, CI.
PUBLISHED = {
    1: """GPT4o MedL BioML BMist
0.85 (1) 0.74 (2) 0.73 (3) 0.38 (4)
0.90 (1) 0.69 (3) 0.75 (2) 0.58 (4)
0.91 (1) 0.73 (3) 0.77 (2) 0.58 (4)
0.74 (1) 0.32 (3) 0.42 (2) 0.28 (4)
0.91 0.75 0.80 0.61
0.89 0.67 0.73 0.49
0.86 0.57 0.66 0.40
0.84 0.49 0.60 0.33
0.79 0.34 0.46 0.22
0.73 0.18 0.31 0.11
0.88 0.44 0.58 0.73""",
    2: """Mist Llam Gran DSeek
0.64 (2) 0.58 (3) 0.65 (1) 0.52 (4)
0.75 (1) 0.62 (3) 0.75 (1) 0.60 (4)
0.78 (1) 0.61 (3) 0.76 (2) 0.58 (4)
0.44 (2) 0.33 (3) 0.47 (1) 0.33 (3)
0.83 0.65 0.80 0.63
0.74 0.55 0.73 0.54
0.65 0.46 0.66 0.44
0.56 0.38 0.58 0.36
0.47 0.28 0.50 0.27
0.33 0.15 0.38 0.16
0.69 0.57 0.73 0.64""",
    3: """Mist Llam Gran DSeek
0.80 (2) 0.72 (3) 0.82 (1) 0.64 (4)
0.90 (1) 0.73 (3) 0.89 (2) 0.73 (3)
0.92 (1) 0.81 (3) 0.91 (2) 0.78 (4)
0.58 (2) 0.25 (4) 0.65 (1) 0.38 (3)
0.94 0.84 0.92 0.82
0.90 0.78 0.88 0.73
0.84 0.69 0.84 0.64
0.80 0.53 0.80 0.53
0.70 0.32 0.73 0.42
0.52 0.07 0.61 0.23
0.72 0.35 0.79 0.59""",
    4: """Mist Llam Gran DSeek
0.41 (1) 0.41 (1) 0.34 (3) 0.34 (3)
0.49 (1) 0.49 (1) 0.39 (4) 0.40 (3)
0.45 (2) 0.47 (1) 0.35 (4) 0.37 (3)
0.28 (1) 0.27 (2) 0.25 (3) 0.24 (4)
0.48 0.51 0.36 0.40
0.40 0.40 0.30 0.31
0.33 0.31 0.25 0.23
0.25 0.22 0.19 0.17
0.16 0.14 0.14 0.11
0.09 0.08 0.09 0.05
0.68 0.67 0.75 0.71""",
}


def published(number):
    "(names, cells as printed, runs as a caller would hand them over: scores in another order)."
    head, *lines = PUBLISHED[number].splitlines()
    cells = [re.findall(r"\d\.\d\d(?: \(\d\))?", line) for line in lines]
    runs = {
        name: pd.Series([float(row[i][:4]) for row in cells], index=SCORES)[sorted(SCORES)]
        for i, name in enumerate(head.split())
    }
    return head.split(), cells, runs


def sure(scores, width=0.04):
    "As from `score(responses, ci=0.95)`."
    value = pd.Series(scores, dtype=float)
    return pd.DataFrame({"value": value, "low": value - width, "high": value + width / 2})
