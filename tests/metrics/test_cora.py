"""The scores against a second implementation, written straight from the equations with loops and exact fractions."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import CoraError
from cora_nb.metrics.cora import THRESHOLDS, bmca, car_curve, core_index, count_hits, response_consistency, score

METHODS = ["original", "shuffled", "nota", "decoupled"]


def slow_scores(rows, thresholds):
    "Equations 1 to 7 as they stand in the paper. rows: dicts with question_id, method, trial, correct."
    divergence = defaultdict(list)
    for r in rows:
        divergence[r["question_id"]].append(r)
    N = len(divergence)
    RC = {i: Fraction(sum(r["correct"] for r in s), len(s)) for i, s in divergence.items()}
    originals = {i: [r["correct"] for r in s if r["method"] == "original"] for i, s in divergence.items()}
    MCQA = None if not all(originals.values()) else sum(Fraction(sum(o), len(o)) for o in originals.values()) / N
    BMCA = {c: Fraction(sum(RC[i] >= Fraction(str(c)) for i in RC), N) for c in thresholds}
    BMCA1 = Fraction(sum(RC[i] == 1 for i in RC), N)
    CI = None if MCQA is None else 1 - (MCQA - BMCA1)
    out = {
        "MCQA": MCQA,
        "MCQA+": Fraction(sum(r["correct"] for r in rows), len(rows)),
        "RC": sum(RC.values()) / N,
        "MV": Fraction(sum(RC[i] > Fraction(1, 2) for i in RC), N),
        **{f"BMCA({float(c)})": BMCA[c] for c in thresholds},
        "CI": CI,
        "CoRA": None if MCQA is None else MCQA * CI,
        "CORE": slow_core(RC.values()),
    }
    return {k: float("nan") if v is None else float(v) for k, v in out.items()}


def slow_core(RC):
    "Area under the CAR curve times (1 - DTW / DTW of the worst curve), with a real dynamic time warping."
    y = [Fraction(sum(r >= Fraction(k, 10) for r in RC), len(RC)) for k in range(11)]
    area = sum((a + b) / 2 * Fraction(1, 10) for a, b in zip(y, y[1:]))
    return area * (1 - dtw(y, [1] * 11) / dtw([1] * 11, [1] + [0] * 10))


def dtw(a, b):
    "Dynamic time warping with absolute differences."
    cost = [[None] * len(b) for _ in a]
    for i in range(len(a)):
        for j in range(len(b)):
            before = [
                cost[i - 1][j] if i else None,
                cost[i][j - 1] if j else None,
                cost[i - 1][j - 1] if i and j else None,
            ]
            cost[i][j] = abs(Fraction(a[i]) - Fraction(b[j])) + min((x for x in before if x is not None), default=0)
    return cost[-1][-1]


@st.composite
def tables(draw):
    "Random responses: questions with sets of unequal size, repeated trials, sometimes without the original."
    rows = []
    for q in range(draw(st.integers(1, 6))):
        for method in METHODS:
            if method == "original" and draw(st.integers(0, 9)) == 0 and len(rows) >= 0:
                continue
            for index in range(1 if method in METHODS[:2] else draw(st.integers(1, 4))):
                for trial in range(draw(st.integers(1, 2))):
                    rows.append(
                        {
                            "question_id": f"q{q}",
                            "subject": "xyz"[q % 3],
                            "method": method,
                            "index": index,
                            "trial": trial,
                            "correct": draw(st.booleans()),
                        }
                    )
    return rows


def assert_same(fast, slow):
    assert list(fast.index) == list(slow)
    np.testing.assert_allclose(fast.to_numpy(float), list(slow.values()), rtol=0, atol=1e-12)


@given(
    tables(),
    st.sampled_from([0, None]),
    st.lists(st.sampled_from([0.0, 0.28, 0.3, 1 / 3, 0.5, 0.7, 0.9, 1.0]), unique=True, max_size=4),
    st.randoms(use_true_random=False),
)
@settings(max_examples=200)
def test_score_follows_the_equations(rows, trial, thresholds, rng):
    rng.shuffle(rows)
    kept = [r for r in rows if trial is None or r["trial"] == trial]
    assert_same(score(pd.DataFrame(rows), thresholds=tuple(thresholds), trial=trial), slow_scores(kept, thresholds))


@given(tables())
@settings(max_examples=50)
def test_by_subject_and_by_method(rows):
    first = [r for r in rows if r["trial"] == 0]
    subjects, methods = score(pd.DataFrame(rows), by="subject"), score(pd.DataFrame(rows), by="method")
    assert set(subjects.index) == {r["subject"] for r in first} and set(methods.index) == {r["method"] for r in first}
    for s, row in subjects.iterrows():
        assert_same(row, slow_scores([r for r in first if r["subject"] == s], THRESHOLDS))
    for m, row in methods.iterrows():
        assert_same(row, slow_scores([r for r in first if r["method"] in ("original", m)], THRESHOLDS))


@given(tables())
@settings(max_examples=100)
def test_relations_between_scores(rows):
    s = score(pd.DataFrame(rows))
    falling = s.filter(like="BMCA").to_numpy()
    assert (np.diff(falling) <= 0).all() and s["MV"] <= s["BMCA(0.5)"]
    if not np.isnan(s["MCQA"]):
        assert s["BMCA(1.0)"] <= s["MCQA"] + 1e-12 and 0 <= s["CI"] <= 1 and s["CoRA"] <= s["MCQA"] + 1e-12
    assert 0 <= s["CORE"] <= 1


@pytest.mark.parametrize("kind", ["object", "string[pyarrow]", "category"])
def test_any_kind_of_text_column(kind):
    frame = pd.DataFrame(
        {
            "question_id": ["a", "a", "b", "b"],
            "subject": ["s", "s", "t", "t"],
            "method": ["original", "nota"] * 2,
            "trial": 0,
            "correct": [True, False, True, True],
        }
    )
    expected = score(frame)
    assert score(frame.astype({c: kind for c in ("question_id", "subject", "method")})).equals(expected)
    assert (
        score(frame.astype({c: kind for c in ("question_id", "subject", "method")}), by="subject").loc["t", "CoRA"] == 1
    )


def test_thresholds_are_exact():
    "Every k/n meets the threshold k/n, for all n up to 100: the comparison is on the quotient."
    for n in range(1, 101):
        for k in range(n + 1):
            assert bmca(response_consistency([k], [n]), k / n) == 1
    assert bmca(response_consistency([7], [25]), 0.28) == 1 and 0.28 * 25 > 7


def test_missing_ids_and_empty_trials_are_refused():
    frame = pd.DataFrame({"question_id": ["a", None], "method": "original", "trial": 0, "correct": True})
    with pytest.raises(CoraError, match="row 2: question_id is missing"):
        score(frame)
    with pytest.raises(CoraError, match="no responses of trial 3"):
        score(frame.iloc[:1], trial=3)


@pytest.mark.parametrize("value", [np.nan, None, "True", 2, 2.5])
def test_correct_must_be_a_truth_value(value):
    frame = pd.DataFrame(
        {"question_id": ["a", "b"], "method": "original", "trial": 0, "correct": pd.Series([True, value], dtype=object)}
    )
    with pytest.raises(CoraError, match="responses, row 2, correct: correct must be true or false"):
        score(frame)
    for kind in ("int64", "boolean", "Int64", "bool[pyarrow]"):
        assert score(frame.assign(correct=pd.Series([1, 0]).astype(bool).astype(kind)))["MCQA"] == 0.5


def test_several_families_are_not_pooled():
    frame = pd.DataFrame(
        {"question_id": ["a", "a"], "family": ["cora", "cyclic"], "method": "original", "trial": 0, "correct": True}
    )
    with pytest.raises(CoraError, match="several families, cora, cyclic"):
        score(frame)


def test_a_method_without_the_trial_is_left_out():
    frame = pd.DataFrame(
        {"question_id": "a", "method": ["original", "original", "nota"], "trial": [0, 1, 0], "correct": True}
    )
    assert list(score(frame, by="method", trial=1).index) == ["original"]
    with pytest.raises(CoraError, match="no responses of trial 7"):
        score(frame, by="method", trial=7)


def test_a_question_without_subject_is_named_not_dropped():
    frame = pd.DataFrame(
        {"question_id": ["a", "b"], "subject": ["s", None], "method": "original", "trial": 0, "correct": True}
    )
    with pytest.raises(CoraError, match="1 of 2 questions have no subject, the first of them 'b'"):
        score(frame, by="subject")


def test_a_curve_of_many_points():
    rc = np.array([0.0, 0.5, 1.0])
    assert car_curve(rc, 101).iloc[[0, 1, 50, 51, 100]].tolist() == [1, 2 / 3, 2 / 3, 1 / 3, 1 / 3]
    assert core_index(car_curve(np.array([1.0]))) == 1
    with pytest.raises(CoraError, match="points must be a whole number of 2 or more, got 1"):
        car_curve(rc, 1)


PAPER_ORDER = {
    "MCQA": 0.2608,
    "MCQA+": 0.3571,
    "MV": 0.2435,
    "BMCA(0.5)": 0.2938,
    "BMCA(0.6)": 0.1830,
    "BMCA(0.7)": 0.1108,
    "BMCA(0.8)": 0.0762,
    "BMCA(0.9)": 0.0299,
    "BMCA(1.0)": 0.0102,
    "CI": 0.7494,
    "CoRA": 0.1954,
}


def test_recorded_medqa_replies(medalpaca):
    "The 33,098 replies of medalpaca-7b, first trial of the 26 variants, to four decimals."
    assert score(medalpaca)[list(PAPER_ORDER)].round(4).to_dict() == PAPER_ORDER
    assert (count_hits(medalpaca)["trials"] == 26).all()
