"""A case: something damaged, what reads it, and what has to happen. And the list of what did happen."""

import contextlib
import io
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from cora_nb.core import CoraError

LONGEST = 1200  # characters of an error message: one line that a person can read


@dataclass(frozen=True)
class Case:
    "Something damaged."

    area: str  # what kind of input
    name: str  # which part of it, and how it is damaged
    read: Callable[[Path], object]  # makes it in an empty folder and reads it
    words: tuple[str, ...] = ()  # what the message must name: file, row, field, value; a|b for either
    accept: Callable[[object], bool | str] | None = None  # what may come instead of a refusal, perhaps in words

    @property
    def title(self) -> str:
        return f"{self.area}: {self.name}"


@dataclass(frozen=True)
class Outcome:
    "What happened."

    case: Case
    good: bool
    said: str


def run_case(case: Case) -> Outcome:
    "Read it in a folder of its own: good is one clear line that names what it must, or what may be read instead."
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        screen = io.StringIO()
        try:
            with contextlib.redirect_stderr(screen), contextlib.redirect_stdout(screen):
                found = case.read(Path(folder))
        except (CoraError, SystemExit) as e:
            said = str(e.code) if isinstance(e, SystemExit) else str(e)
            missing = [word for word in case.words if not any(w in said for w in word.split("|"))]
            odd = not said.strip() or len(said.splitlines()) != 1 or len(said) > LONGEST
            said = said.replace(f"{folder}/", "").replace(folder, "FOLDER")
            if case.accept and not missing and not odd:
                return Outcome(case, True, f"refused: {said}")
            if missing or odd:
                return Outcome(case, False, f"NOT CLEAR (does not name {missing}): {said!r}")
            return Outcome(case, True, f"refused: {said}")
        except BaseException as e:
            if isinstance(e, KeyboardInterrupt):
                raise
            last = traceback.extract_tb(e.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.lineno}"
            return Outcome(case, False, f"TRACEBACK {type(e).__name__}: {str(e)[:200]!r} ({place})")
        if case.accept and (what := case.accept(found)):
            return Outcome(case, True, what if isinstance(what, str) else "as it must be")
        return Outcome(case, False, f"READ IN SILENCE: {str(found)[:200]!r}")


def check_all(cases: Iterable[Case]) -> list[Outcome]:
    "Run many."
    return [run_case(case) for case in cases]


def listed(outcomes: Iterable[Outcome], width: int = 170) -> str:
    "A line for each, and the totals of each area."
    outcomes = list(outcomes)
    lines = [f"{o.case.title[:70]:70s}  {ascii(o.said)[1:-1][:width]}" for o in outcomes]
    areas = dict.fromkeys(o.case.area for o in outcomes)
    lines.append("")
    for area in areas:
        mine = [o for o in outcomes if o.case.area == area]
        bad = sum(not o.good for o in mine)
        lines.append(f"{area:40s} {len(mine):5d} cases, {bad} not as they must be")
    bad = [o for o in outcomes if not o.good]
    lines.append(f"{'together':40s} {len(outcomes):5d} cases, {len(bad)} not as they must be")
    return "\n".join([*lines, *(f"BAD {o.case.title}: {ascii(o.said)}" for o in bad)])
