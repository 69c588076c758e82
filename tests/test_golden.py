"""Every golden number in `tests/golden` against the package: what is asked, how replies are read, and the scores.

The numbers were written by `tests/golden/make.py` before the redesign. Where a module moves, `tests/golden/compute.py`
is edited and the CSVs are not. Whole numbers and texts must be equal, other numbers to one part in 10^9.
"""

import importlib.util
import math
import re
import sys
from functools import lru_cache
from pathlib import Path

import pandas as pd
import pytest

from cora_nb.core import CoraError
from cora_nb.papers.published import RECORDED, recorded_file

HERE = Path(__file__).resolve().parent / "golden"
sys.path.insert(0, str(HERE))
from compute import GOLDEN  # noqa: E402
from helpers import slow_after  # noqa: E402
from material import ORGANISM_RUN, SHARED  # noqa: E402
from near import settled  # noqa: E402

WHOLE = re.compile(r"[-+]?\d+")
QUICK = [name for name, golden in GOLDEN.items() if "torch" not in golden.needs]


@lru_cache
def no_replies():
    "Why the published replies cannot be had; empty where they can."
    try:
        return "" if all(recorded_file(name, download=False) for name in RECORDED) else "not found"
    except CoraError as e:
        return str(e)


def need(golden):
    "Skip where something is missing that the numbers are made of."
    for what in golden.needs:
        if what == "shared" and not (SHARED / "data").is_dir():
            pytest.skip(f"real data not found under {SHARED}; set CORA_SHARED to run this test")
        if what == "recorded" and (why := no_replies()):
            pytest.skip(why)
        if what == "torch":
            pytest.importorskip("torch")
            pytest.importorskip("transformers")


def number(text):
    "A number, or None for a text."
    try:
        return float(text)
    except ValueError:
        return None


def same(old, new, golden):
    "Whether a value is still what it was."
    if old == new:
        return True
    a, b = number(old), number(new)
    if a is None or b is None or math.isnan(a) or math.isnan(b) or WHOLE.fullmatch(old) and WHOLE.fullmatch(new):
        return False
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=golden.absolute)


def differences(old, new, golden):
    "The rows that differ: (case, measure, old, new)."
    known, found = ({(c, m): v for c, m, v in t.itertuples(index=False, name=None)} for t in (old, new))
    rows = [
        (*key, value, found.get(key, "(gone)"))
        for key, value in known.items()
        if not same(value, found.get(key, "(gone)"), golden)
    ]
    return rows + [(*key, "(none)", value) for key, value in found.items() if key not in known]


def told(rows, most=40):
    "The differing rows as a message."
    lines = [f"  {case} | {measure} | old {old} | new {new}" for case, measure, old, new in rows[:most]]
    return "\n".join(
        [f"{len(rows)} rows differ (case | measure | old | new):", *lines, *(["  ..."] if len(rows) > most else [])]
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK + slow_after(0, [name for name in GOLDEN if name not in QUICK]))
def test_numbers(name, request):
    golden = GOLDEN[name]
    need(golden)
    if name.startswith("organism_"):
        ORGANISM_RUN[:] = request.getfixturevalue("organism_run")[:1]
    old = pd.read_csv(HERE / f"{name}.csv", dtype=str, keep_default_na=False)
    new = golden.make()
    assert not new.duplicated(["case", "measure"]).any()
    rows = differences(old, new, golden)
    assert not rows, told(rows)


def test_nothing_is_left_over():
    "Each CSV belongs to a driver."
    assert {f.stem for f in HERE.glob("*.csv")} == set(GOLDEN)


# ---- golden numbers are changed for a reason


@pytest.fixture
def make():
    spec = importlib.util.spec_from_file_location("golden_make", HERE / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BEFORE = "case,measure,value\na,m,1\na,n,2\nb,m,\n"


def test_a_golden_file_changes_only_with_a_reason_and_the_reason_is_kept(make, tmp_path):
    make.keep({"one.csv": BEFORE, "two.csv": BEFORE}, None, tmp_path)  # new files need none
    make.keep({"one.csv": BEFORE}, "no change, no line", tmp_path)
    assert not (tmp_path / "REASONS.md").exists()
    after = BEFORE.replace("n,2", "n,3").replace("b,m,\n", "c,m,4\nd,m,5\n")
    changed = {"other.csv": BEFORE, "one.csv": after, "two.csv": BEFORE.replace("m,1", "m,0")}
    for why in (None, "", " \n"):
        with pytest.raises(SystemExit) as e:
            make.keep(changed, why, tmp_path)
        assert "one.csv: 1 of 3 rows, 1 gone, 2 new\ntwo.csv: 1 of 3 rows\n" in str(e.value)
        assert "--why" in str(e.value)
        assert (tmp_path / "one.csv").read_text() == BEFORE and not (tmp_path / "other.csv").exists()
    make.keep(changed, "a tie counts\nas wrong", tmp_path)
    make.keep({"one.csv": BEFORE}, "a tie is a tie", tmp_path)
    assert (tmp_path / "one.csv").read_text() == BEFORE and (tmp_path / "two.csv").read_text() == changed["two.csv"]
    assert (tmp_path / "REASONS.md").read_text().splitlines() == [
        "- one.csv: 1 of 3 rows, 1 gone, 2 new: a tie counts as wrong",
        "- two.csv: 1 of 3 rows: a tie counts as wrong",
        "- one.csv: 1 of 4 rows, 2 gone, 1 new: a tie is a tie",
    ]


def test_no_golden_numbers_of_that_name(make):
    with pytest.raises(SystemExit, match="no golden numbers are called nothing"):
        make.main(["nothing"])


@pytest.mark.parametrize(
    "old, new, same",
    [
        ("a,0.3591365200233458,3", "a,0.35913652002334584,3", True),
        ("| a | 0.3591365200233458 |\n|---|---|", "| a | 0.35913652002334584 |\n|---|----|", True),
        ("1.1e-17 left", "0.0 left", True),
        ("a 0.36", "a 0.37", False),
        ("a,0.35913652", "a,0.35913653", False),
        ("26 of 26", "25 of 26", False),
        ("MCQA 0.5", "CoRA 0.5", False),
        ("version 0.2.0", "version 0.2.1", False),
    ],
)
def test_printed_numbers_are_compared_as_numbers(old, new, same):
    assert (settled(old, new) == old.splitlines()) is same
