"""Circular evaluation and position spread: from their definitions, against BMCA and Cochran's Q, and by coverage."""

import itertools
import warnings
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import CoraError, LETTERS, Question
from cora_nb.metrics.circular import _SPREADS, _ByPlace, _exchanged, _spread_rows, circular_scores, position_spread
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.responses import make_responses
from cora_nb.results import lookup
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants
from helpers import put_in_state


def quiz(sizes):
    return [
        Question(f"q{i}", f"{i}?", tuple(f"{i} {j}" for j in range(n)), (i * 7 + i // 3) % n)
        for i, n in enumerate(sizes)
    ]


def some_run(sizes, family, rng, **options):
    variants = make_variants(quiz(sizes), family, **options)
    return make_responses(variants, [rng.choice([*LETTERS[: v.n_choices], LETTERS[v.answer], "?"]) for v in variants])


def values(table):
    return dict(zip(table["score"], table["value"]))


# Circular evaluation


@pytest.mark.slow
@given(st.lists(st.integers(2, 6), min_size=1, max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_circular_scores_from_the_definition(sizes, rng):
    run = some_run(sizes, "cyclic", rng)
    right = defaultdict(list)
    for row in run.table.to_dict("records"):
        right[row["question_id"]].append((row["correct"], row["method"] == "original"))
    hits = {id: sum(r for r, _ in replies) for id, replies in right.items()}
    n = {id: len(replies) for id, replies in right.items()}
    expected = {
        "acc_origin": np.mean([r for replies in right.values() for r, original in replies if original]),
        "acc_circular": sum(hits.values()) / sum(n.values()),
        "perf": np.mean([hits[id] == n[id] for id in n]),
    }
    for j in range(1, max(sizes)):
        expected[f"more_{j}"] = np.mean([hits[id] >= j for id in n if n[id] > j])
    found = circular_scores(run)
    assert values(found) == pytest.approx(expected)
    asked = {f"more_{j}": sum(size > j for size in sizes) for j in range(1, max(sizes))}
    assert all(row.n == asked.get(row.score, len(sizes)) for row in found.itertuples())
    mixed = [row.score for row in found.assign(note=found.get("note", "")).itertuples() if "more than" in row.note]
    assert mixed == [name for name in found["score"] if asked.get(name, len(sizes)) < len(sizes)]


def test_circular_scores_by_hand():
    "Right in three of four rotations, and in all three."
    variants = make_variants(quiz([4, 3]), "cyclic")
    said = ["?" if i == 3 else LETTERS[v.answer] for i, v in enumerate(variants)]
    found = circular_scores(make_responses(variants, said))
    assert values(found) == pytest.approx(
        {"acc_origin": 1, "acc_circular": 6 / 7, "perf": 0.5, "more_3": 1, "more_2": 1, "more_1": 1}
    )
    assert dict(zip(found["score"], found["n"])) == {s: 1 if s == "more_3" else 2 for s in found["score"]}


def test_circular_scores_of_what_is_no_circle():
    questions, rng = quiz([4, 4]), np.random.default_rng(0)
    run = some_run([4, 4], "cyclic", rng)
    trials = evaluate(SimulatedRespondent(), make_variants(questions, "cyclic"), Asking(trials=2), progress=False)
    assert circular_scores(trials).equals(circular_scores(trials.trial(0)))
    stopped = put_in_state(run.table, [0], "not_asked")
    for call, says in [
        (lambda: circular_scores(some_run([4], "order_swap", rng)), "ask the family cyclic, not order_swap"),
        (lambda: circular_scores(run.rows(np.arange(8) != 5)), "'q1' was asked in 3 of its rotations, but circular"),
        (
            lambda: circular_scores(some_run([4], "permutations", rng, limit=5)),
            "of its rotations, but circular evaluat",
        ),
        (lambda: circular_scores(trials.pool_trials()), "'q0' was answered several times in one order; choose one"),
        (lambda: circular_scores(stopped), "were not asked because the run stopped early"),
        (lambda: circular_scores(run, level=0), "level must be between 0 and 1, got 0"),
        (lambda: circular_scores(run.table.drop(columns="method")), "the responses have no column method"),
    ]:
        with pytest.raises(CoraError) as e:
            call()
        assert says in str(e.value) and "\n" not in str(e.value)


# Position spread


@pytest.mark.slow
@given(
    st.lists(st.integers(2, 5), min_size=2, max_size=7),
    st.sampled_from(["cyclic", "answer_swap", "permutations", "cora"]),
    st.randoms(use_true_random=False),
)
@settings(max_examples=40, deadline=None)
def test_spread_from_the_definition(sizes, family, rng):
    run = some_run(sizes, family, rng, **({"limit": 24} if family == "permutations" else {}))
    t = run.table
    often = t["n_choices"].value_counts()
    A = max(n for n, times in often.items() if times == often.max())
    t = t[t["n_choices"] == A]
    by_place = t.groupby("answer")["correct"].mean()
    if len(by_place) < 2:
        with pytest.raises(CoraError, match="at one place in all prompts"):
            position_spread(run, resamples=100)
        return
    found = position_spread(run, resamples=100, threshold=None)
    places = found[found["score"] == "accuracy"]
    assert places["place"].tolist() == [p + 1 for p in by_place.index]
    assert places["value"].tolist() == pytest.approx(by_place.tolist())
    assert places["n"].tolist() == t.groupby("answer")["question_id"].nunique().tolist()
    spread = lookup(found, "position range"), lookup(found, "position sd")
    assert spread[0].value == pytest.approx(by_place.max() - by_place.min())
    assert spread[1].value == pytest.approx(np.sqrt(((by_place - by_place.mean()) ** 2).mean()))
    assert {row.n for row in spread} == {t["question_id"].nunique()}
    if t["question_id"].nunique() > 1 and not np.isnan(spread[0].low):
        for row in spread:
            assert 0 <= row.low <= row.value + 1e-12 and row.value <= row.high + 1e-12 and 0 < row.p <= 1
            assert (row.low > 0) == (row.p < 0.05)


def test_spread_by_hand():
    "Two questions in four rotations, right twice, once, once and never at the four places."
    variants = make_variants(quiz([4, 4]), "cyclic")
    right = {("q0", 0), ("q0", 1), ("q0", 2), ("q1", 0)}
    said = [LETTERS[v.answer if (v.question_id, v.answer) in right else (v.answer + 1) % 4] for v in variants]
    found = position_spread(make_responses(variants, said), resamples=100, threshold=None)
    places = found[found["score"] == "accuracy"]
    assert dict(zip(places["place"], places["value"])) == {1: 1, 2: 0.5, 3: 0.5, 4: 0}
    assert lookup(found, "position range").value == 1
    sd = lookup(found, "position sd")
    assert sd.value == pytest.approx(np.sqrt((0.5**2 + 0.5**2) / 4)) and sd.high <= 0.5  # of numbers from 0 to 1


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("position", [1, 1.3, 2, 6])
def test_p_and_interval_never_contradict(level, position):
    "Over many runs around the edge: the interval excludes 0 exactly where p < 1 - level."
    rng = np.random.default_rng(int(100 * level + position))
    weights = np.r_[position, np.ones(3)]
    for _ in range(30):
        hits = (rng.random((40, 4)) < np.where(rng.random((40, 1)) < 0.4, 0.9, weights / weights.sum())).astype(int)
        rows = _spread_rows(_ByPlace(hits, np.ones_like(hits), np.arange(4)), level, 199, rng)
        assert all((row["low"] > 0) == (row["p"] < 1 - level) for row in rows[::2])


def test_exchanges_against_every_exchange_there_is():
    "Two questions in four rotations: all 6 x 4 ways of exchanging, counted; the p is exact."
    variants = make_variants(quiz([4, 4]), "cyclic")
    right = [True, True, False, False, True, False, False, False]
    run = make_responses(variants, [LETTERS[v.answer if ok else v.answer - 1] for v, ok in zip(variants, right)])
    table = run.table.pivot(index="question_id", columns="answer", values="correct").to_numpy(int)
    ways = [
        np.add(*pair) / 2 for pair in itertools.product(*(set(itertools.permutations(row)) for row in table.tolist()))
    ]
    assert len(ways) == 24
    counts = _ByPlace(table, np.ones_like(table), np.arange(4))
    drawn = _exchanged(counts, 20_000, np.random.default_rng(0))
    for spread in _SPREADS.values():
        theirs, ours = spread(np.array(ways)), spread(drawn)
        assert ours.mean() == pytest.approx(theirs.mean(), abs=0.01)
        for value in np.unique(theirs):
            assert (ours >= value - 1e-9).mean() == pytest.approx((theirs >= value - 1e-9).mean(), abs=0.02)


def test_places_play_no_part_in_one_that_knows_or_guesses_evenly():
    run = evaluate(SimulatedRespondent(knows=0.5), make_variants(quiz([4] * 400), "answer_swap"), progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row = lookup(position_spread(run), "position range")
    assert row.low == 0 and row.p > 0.05
    perfect = evaluate(SimulatedRespondent(knows=1), make_variants(quiz([4] * 40), "cyclic"), progress=False)
    row = lookup(position_spread(perfect), "position range")
    assert (row.value, row.low, row.p) == (0, 0, 1)


def test_the_flag():
    run = evaluate(
        SimulatedRespondent(knows=0.3, position=(5, 1), name="leaning"),
        make_variants(quiz([4] * 100), "cyclic"),
        progress=False,
    )
    with pytest.warns(UserWarning, match="^leaning: accuracy depends on the place of the right answer, with a range"):
        row = lookup(position_spread(run), "position range")
    assert row.p < 0.05 < row.low
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not position_spread(run, threshold=None)["note"].any()
        assert not position_spread(run, threshold=0.9)["note"].any()
    few = evaluate(SimulatedRespondent(knows=0), make_variants(quiz([4] * 5), "cyclic"), progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lookup(position_spread(few), "position range").p > 0.05  # no warning


@pytest.mark.slow
@pytest.mark.parametrize("position, least", [((1.0,), 0.95), ((1.5,), 0.92), ((4.0,), 0.92)])
def test_the_interval_holds_the_true_range(position, least):
    rng, weights = np.random.default_rng(7), np.r_[position, np.ones(3)]
    guess = weights / weights.sum()
    true = np.ptp(0.4 * (0.8 + 0.2 * guess) + 0.6 * guess)
    inside = rejected = 0
    for _ in range(200):
        known = rng.random((80, 1)) < 0.4
        hits = (rng.random((80, 4)) < np.where(known, 0.8 + 0.2 * guess, guess)).astype(int)
        row = _spread_rows(_ByPlace(hits, np.ones_like(hits), np.arange(4)), 0.95, 300, rng)[0]
        inside += row["low"] <= true <= row["high"]
        rejected += row["p"] < 0.05
    assert inside >= (least - 0.02) * 200
    assert rejected <= 0.1 * 200 or true > 0


def test_originals_alone_are_exchanged_between_questions():
    variants = [v for v in make_variants(quiz([4] * 200), "cyclic") if v.method == "original"]
    even = evaluate(SimulatedRespondent(knows=0.5), variants, progress=False)
    assert lookup(position_spread(even, threshold=None), "position range").p > 0.05
    habit = make_responses(variants, ["A"] * 200)
    row = lookup(position_spread(habit, threshold=None), "position range")
    assert row.value == 1 and row.p < 0.01 and row.low > 0.9


def test_other_numbers_of_choices_and_places_never_right():
    run = some_run([4, 4, 4, 3, 2], "cyclic", np.random.default_rng(2))
    found = position_spread(run, resamples=100, threshold=None)
    assert (found["place"].dropna() <= 4).all() and set(found["note"]) == {"prompts with 4 choices alone, 12 of 17"}
    three = position_spread(run, n_choices=3, resamples=100, threshold=None)
    assert lookup(three, "position range").n == 1 and np.isnan(lookup(three, "position range").low)
    some = run.rows(lambda t: (t["n_choices"] == 4) & (t["answer"] < 2))
    found = position_spread(some, resamples=100, threshold=None)
    assert found["place"].dropna().tolist() == [1, 2] and "no right answer at 3, 4" in found["note"][0]


def test_bad_input():
    run = some_run([4, 4], "cyclic", np.random.default_rng(0))
    yes_no = make_variants(quiz([4]), "formats", only=["tfq"])
    for call, says in [
        (lambda: position_spread(run, n_choices=5), "n_choices must be a number of choices that was shown (4), got 5"),
        (lambda: position_spread(run, level=2), "level must be between 0 and 1, got 2"),
        (lambda: position_spread(run, threshold=-1), "threshold must be a number from 0 to 1, got -1"),
        (lambda: position_spread(run, resamples=10), "resamples must be a whole number of 100 or more, got 10"),
        (lambda: position_spread(run, seed=-1), "seed must be a whole number of 0 or more, got -1"),
        (lambda: position_spread(make_responses(yes_no, ["Yes"] * len(yes_no))), "there are some of tfq"),
        (lambda: position_spread(some_run([4, 4], "order_swap", np.random.default_rng(0))), "at one place in all"),
        (lambda: position_spread(run.rows(np.zeros(8, dtype=bool))), "there are no responses to score"),
    ]:
        with pytest.raises(CoraError) as e:
            call()
        assert says in str(e.value) and "\n" not in str(e.value)
