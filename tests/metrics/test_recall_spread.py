"""RStd against scikit-learn as in the paper's code, its interval in simulations, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError, Question
from cora_nb.metrics.bias import letter_recall, recall_spread
from cora_nb.responses.responses import make_responses
from cora_nb.results import lookup, values_of
from cora_nb.variants.families import make_variants

metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")


def originals(answers, n=4):
    questions = [Question(f"q{i}", "?", tuple(f"c{k}" for k in range(n)), a) for i, a in enumerate(answers)]
    return make_variants(questions, "cyclic")[::n]


def run_of(answers, said, n=4):
    return make_responses(originals(answers, n), ["?" if p < 0 else "ABCDEFG"[p] for p in said])


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 3)), min_size=8, max_size=60))
def test_as_in_the_code_of_the_paper(pairs):
    answers, said = zip(*[(a, -1) for a in range(4)], *pairs)  # an answer at each letter
    recalls = metrics.recall_score(answers, said, labels=range(4), average=None, zero_division=0)
    run = run_of(answers, said)
    assert lookup(recall_spread(run)).value == pytest.approx(np.std(recalls * 100))
    np.testing.assert_allclose(values_of(letter_recall(run)), recalls)


def test_plain_python_too():
    answers, said = (0, 0, 0, 1, 1, 2, 2, 2, 2), (0, 0, 1, 1, -1, 2, 0, 0, 2)
    right, asked = {}, {}
    for a, p in zip(answers, said):
        asked[a] = asked.get(a, 0) + 1
        right[a] = right.get(a, 0) + (a == p)
    recalls = [right[a] / asked[a] for a in asked]
    mean = sum(recalls) / 3
    plain = 100 * (sum((r - mean) ** 2 for r in recalls) / 3) ** 0.5
    row = lookup(recall_spread(run_of(answers, said)))
    assert row.value == pytest.approx(plain) and row.note == "no answer at D" and row.n == 9


def test_rows_that_count():
    variants = make_variants(math_benchmark(30), "cyclic")
    first = make_responses(variants, ["A"] * len(variants))
    assert lookup(recall_spread(first)).n == 30
    assert letter_recall(first)["n"].sum() == 30 and letter_recall(first, methods=())["n"].sum() == 120
    assert lookup(recall_spread(first, methods=())).value == pytest.approx(100 * 0.1875**0.5)
    assert lookup(recall_spread(first, methods=["rotated"])).n == 30
    swapped = make_variants(math_benchmark(30), "order_swap")  # no originals, the answer always last
    alone = lookup(recall_spread(make_responses(swapped, ["D"] * len(swapped))))
    assert np.isnan(alone.value) and alone.note == "no answer at A, B, C"
    sets = make_variants(math_benchmark(30))
    by_two = recall_spread(make_responses(sets, ["A"] * len(sets)), methods=(), n_choices=2)
    assert lookup(by_two).value == pytest.approx(50)


def test_limits_of_the_value_and_of_the_interval():
    always, never = (
        recall_spread(run_of((0, 1) * 20, (0, 1) * 20, 2)),
        recall_spread(run_of((0, 1) * 20, (-1,) * 40, 2)),
    )
    for row in map(lookup, (always, never)):
        assert row.value == row.low == 0 and 0 < row.high < 20 and row.p > 0.99
    most = lookup(recall_spread(run_of((0, 1) * 20, (0,) * 40, 2)))
    assert most.value == most.high == 50 and most.low > 35 and most.p < 1e-9


@pytest.mark.slow
@given(st.integers(0, 10_000))
def test_interval_and_p_agree(seed):
    rng = np.random.default_rng(seed)
    answers = rng.integers(4, size=80)
    said = np.where(rng.random(80) < rng.choice([0.3, 0.6, 0.9], 4)[answers], answers, -1)
    if len(set(answers)) < 4:
        return
    row = lookup(recall_spread(run_of(answers.tolist(), said.tolist())))
    assert row.low <= row.value <= row.high or row.low == 0
    assert (row.low > 0) == (row.p < 0.025)


@pytest.mark.slow
def test_the_interval_holds_the_truth_and_the_test_keeps_its_level():
    "Against simulations: 95% of intervals, one standard error of 200 being 1.5 points; too wide is allowed."
    from cora_nb.metrics.bias import _recall_covariance, _spread_interval

    rng = np.random.default_rng(3)
    for recalls in ([0.6] * 4, [0.8, 0.6, 0.55, 0.6], [1.0, 0.4, 0.4, 0.4]):
        recalls, held, rejected = np.array(recalls), 0, 0
        for _ in range(200):
            asked = np.eye(4)[rng.integers(4, size=150)]
            right = asked * (rng.random(150) < asked @ recalls)[:, None]
            r = right.sum(axis=0) / asked.sum(axis=0)
            low, high, p = _spread_interval(((r - r.mean()) ** 2).sum(), _recall_covariance(right, asked), 0.95)
            held += low - 1e-12 <= recalls.std() <= high + 1e-12
            rejected += p < 0.05
        assert held >= 0.92 * 200
        assert np.ptp(recalls) > 0 or rejected <= 0.1 * 200


def test_replies_to_one_question_belong_together():
    "Four copies of each reply are not four times as much evidence."
    answers = [0, 1, 2, 3] * 15
    said = [a if i % 3 else 0 for i, a in enumerate(answers)]
    one = make_responses(originals(answers), ["ABCD"[p] for p in said])
    four = make_responses(
        [v for v in originals(answers) for _ in range(4)],
        ["ABCD"[p] for p in said for _ in range(4)],
        trials=[0, 1, 2, 3] * 60,
    ).pool_trials()
    a, b = lookup(recall_spread(one)), lookup(recall_spread(four))
    assert (a.value, a.n) == (b.value, b.n) and b.low == pytest.approx(a.low, abs=0.5)
    assert b.high - b.low > 0.9 * (a.high - a.low)


def test_what_is_refused():
    run = run_of((0, 1), (0, 1), 2)
    for bad in ("original", ["nota"], ["original", "nota"]):
        with pytest.raises(CoraError, match="methods must be names among original"):
            recall_spread(run, methods=bad)
    with pytest.raises(CoraError, match="level must be"):
        recall_spread(run, level=1.0)
    with pytest.raises(CoraError, match="n_choices must be a number of choices that was shown"):
        letter_recall(run, n_choices=5)
    with pytest.raises(CoraError, match="of the form"):
        forms = make_variants(math_benchmark(3), "formats")
        recall_spread(make_responses(forms, ["A"] * len(forms)))
