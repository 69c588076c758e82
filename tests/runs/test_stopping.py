"""Early stopping: the same scores for fewer calls, on random worlds and on the recorded replies."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError, Question, THRESHOLDS
from cora_nb.interop.cat import read_cat
from cora_nb.metrics.scoring import score
from cora_nb.results import lookup, values_of
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import RecordedRespondent, SimulatedRespondent
from cora_nb.responses.columns import REPLIED, checked_table, in_state
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.runs.asking import Asking, Settled
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.stopping import _CellRates, EarlyStop, is_settled
from cora_nb.variants.families import make_variants

FOUR = ["MCQA", "BMCA(1.0)", "CI", "CoRA"]


@given(
    st.integers(1, 7),
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.6, 2 / 3, 0.9, 1.0]), min_size=1, max_size=3),
    st.data(),
)
def test_settled_means_that_no_continuation_matters(size, thresholds, data):
    asked = data.draw(st.integers(0, size))
    hits = data.draw(st.integers(0, asked))
    outcomes = {
        tuple((hits + sum(rest)) / size >= c for c in thresholds)
        for rest in itertools.product([0, 1], repeat=size - asked)
    }
    assert is_settled(hits, size - asked, size, thresholds) == (len(outcomes) == 1)


@given(st.lists(st.integers(0, 9).flatmap(lambda n: st.tuples(*[st.integers(0, n)] * 2, st.just(n + 1))), max_size=8))
def test_many_questions_at_once_are_settled_as_one_by_one(questions):
    hits, asked, size = np.array(questions, int).reshape(-1, 3).T
    hits = np.minimum(hits, asked)
    for limits in ((1.0,), (0.0, 0.5, 2 / 3)):
        one_by_one = [is_settled(int(h), int(n - a), int(n), limits) for h, a, n in zip(hits, asked, size)]
        assert is_settled(hits, size - asked, size, limits).tolist() == one_by_one
    with pytest.raises(CoraError, match="size must be a whole number of 1 or more, got"):
        is_settled(hits, hits, np.append(size, 0), [1.0])


def test_failure_rates_are_those_counted_by_hand():
    "Cells 0 and 1 share a method, cell 2 has its own; a cell is drawn to its method, that to all, all to one half."
    rates = _CellRates([0, 0, 1])
    for cells, right in (([0, 0, 1], [True, False, False]), ([], []), ([2], [True])):
        rates.learn(cells, right)
    overall = (2 + 1) / (4 + 2)
    first, second = (2 + 2 * overall) / (3 + 2), (0 + 2 * overall) / (1 + 2)
    by_hand = [(1 + 5 * first) / (2 + 5), (1 + 5 * first) / (1 + 5), (0 + 5 * second) / (1 + 5)]
    np.testing.assert_allclose(rates.estimate(), by_hand, rtol=1e-12)


@pytest.mark.slow
@given(
    st.floats(0, 1),
    st.floats(0, 0.5),
    st.integers(0, 50),
    st.sampled_from([1, 7, 256]),
    st.lists(st.integers(2, 6), min_size=1, max_size=12),
)
@settings(max_examples=40)
def test_the_scores_are_those_of_the_full_run(knows, slips, seed, batch, sizes):
    questions = [Question(f"q{i}", "?", tuple("abcdef"[:n]), i % n) for i, n in enumerate(sizes)]
    variants, who = make_variants(questions), SimulatedRespondent(knows=knows, slips=slips, position=(3, 1), seed=seed)
    full = evaluate(who, variants, progress=False)
    for stop, names in (
        (Settled(batch=batch), FOUR),
        (Settled(THRESHOLDS, batch), [*FOUR, *(f"BMCA({c})" for c in (0.5, 0.6, 0.7, 0.8, 0.9))]),
    ):
        part = evaluate(who, variants, stop=stop, progress=False)
        assert checked_table(part.table).equals(part.table)
        asked = in_state(part.table, *REPLIED)
        assert part.table[asked].equals(full.table[asked]) and (part.table.loc[~asked, "state"] == "not_asked").all()
        np.testing.assert_array_equal(values_of(score(part))[names], values_of(score(full))[names])
        if not asked.all():
            assert np.isnan(values_of(score(part))[["MCQA+", "RC"]]).all()


def test_unknown_stays_unknown_through_a_file(tmp_path):
    variants = make_variants([Question(f"q{i}", "?", ("a", "b", "c"), i % 3, "xy"[i % 2]) for i in range(20)])
    part = evaluate(SimulatedRespondent(knows=0.3), variants, stop=Settled(), progress=False)
    write_responses(part, tmp_path / "p")
    again = read_responses(tmp_path / "p")
    assert score(again).equals(score(part))
    assert score(again, by="subject").query("score == 'MCQA+'")["value"].isna().all()
    counts = again.summary().loc["all"]
    assert counts["not_asked"] == in_state(part.table, "not_asked").sum() > 0 and counts["failed"] == 0


def test_own_thresholds():
    variants = make_variants([Question(f"q{i}", "?", ("a", "b", "c", "d"), i % 4) for i in range(30)])
    who = SimulatedRespondent(knows=0.4, slips=0.3)
    full, part = (
        evaluate(who, variants, progress=False),
        evaluate(who, variants, stop=Settled((0.75,)), progress=False),
    )
    values = [lookup(score(run, thresholds=(0.75,)), "BMCA(0.75)").value for run in (part, full)]
    assert values[0] == values[1]
    with pytest.raises(CoraError, match="thresholds must be numbers in"):
        evaluate(who, variants, stop=Settled((75,)), progress=False)


@pytest.mark.parametrize("thresholds", [1.0, None, "1.0", (), (1.5,), ("a",), (float("nan"),), (None,)])
def test_bad_thresholds_get_one_clear_line(thresholds):
    with pytest.raises(CoraError, match=r"^thresholds must be numbers in \[0, 1\], such as \(1.0,\), got "):
        Settled(thresholds)


@pytest.mark.parametrize("thresholds", [[1.0], np.array([0.5, 1.0])])
def test_any_sequence_of_thresholds_will_do(thresholds):
    assert EarlyStop([], Settled(thresholds)).thresholds == tuple(thresholds)


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_a_question_has_variants(size):
    with pytest.raises(CoraError, match="size must be a whole number of 1 or more"):
        is_settled(0, 0, size, [1.0])


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 16, 64, 256, 1000])
def test_recorded_replies(recorded_at, medalpaca_texts, batch, capsys):
    medalpaca = medalpaca_texts
    "At or under 2,300 calls of 33,098, for every size of batch; the least possible is 1,917."
    variants = [r.variant for r in read_cat(recorded_at("cat/medqa/medalpaca-7b")) if r.trial == 0]
    part = evaluate(
        RecordedRespondent(medalpaca),
        variants,
        Asking(parse="first_character"),
        stop=Settled(batch=batch),
        progress=False,
    )
    assert (values_of(score(part))[FOUR] == values_of(score(medalpaca))[FOUR]).all()
    first = medalpaca.trial(0).table
    right, always = (
        first[first["method"] == "original"].set_index("question_id")["correct"],
        first.groupby("question_id")["correct"].all(),
    )
    least = len(right) + int((right & ~always).sum()) + 25 * int(always.sum())
    asked = part.facts.calls["asked"]
    with capsys.disabled():
        print(f"\nbatches of {batch}: {asked} calls of {len(variants)}; the least possible is {least}")
    assert least == 1917 and least <= asked <= 2300


# ---- prompts that fail


class Failing(SimulatedRespondent):
    "A respondent whose server does not answer some prompts."

    async def answer(self, prompts):
        async for position, reply in super().answer(prompts):
            v = prompts[position].variant
            yield position, Reply(error="timed out") if (v.question_id, v.method, v.index) in FAILS else reply


FAILS: set = set()


@pytest.mark.filterwarnings("ignore::cora_nb.responses.columns.FailureWarning")
@pytest.mark.parametrize("share", [0.003, 0.05])
def test_a_failed_prompt_settles_nothing(share):
    "The other variants of its question are asked until one is wrong; where none is, the score is open, not lower."
    variants = make_variants(math_benchmark(40, n_choices=3))
    who = Failing(knows=0.7, slips=0.02, seed=3)
    full = evaluate(who, variants, progress=False)
    truth = values_of(score(full))
    rng = np.random.default_rng(0)
    lost = rng.permutation(len(variants))[: int(share * len(variants))]
    keys = {(variants[i].question_id, variants[i].method, variants[i].index) for i in lost}
    FAILS.update(keys)
    try:
        part = evaluate(who, variants, stop=Settled(), progress=False)
    finally:
        FAILS.clear()
    t = part.table
    for id, rows in t.groupby("question_id"):
        fine = in_state(rows, *REPLIED)
        if not (rows["correct"] | ~fine).all():
            continue  # one was wrong: settled
        assert (rows["state"] != "not_asked").all() or fine.all(), id  # otherwise everything was asked
    found = score(part)
    row = lookup(found, "BMCA(1.0)")
    assert np.isnan(row.value) == (share > 0.01) and (share <= 0.01 or row.status == "bounded")
    assert row.least - 1e-9 <= truth["BMCA(1.0)"] <= row.most + 1e-9


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_questions_that_were_asked_most_come_first(order):
    "Whatever the order in which their replies arrive."
    prompts = make_prompts(make_variants([Question(f"q{i}", f"{i}?", ("a", "b", "c"), i) for i in range(3)]))
    stop, places = EarlyStop(prompts), {f"q{i}": [] for i in range(3)}
    for position, prompt in enumerate(prompts):
        places[prompt.variant.question_id].append(position)
    for position in stop.first():
        stop.learn(position, True)
    assert len(stop.next(3)) == 3  # takes all from the queue
    for i in order:  # question i has had i + 1 further replies, all right
        positions = [p for p in places[f"q{i}"] if prompts[p].variant.method != "original"][: i + 1]
        for position in positions[:-1]:
            stop.learn(position, True)
        stop.queue = [q for q in stop.queue if q != f"q{i}"]  # as if each had been asked in turn
        stop.learn(positions[-1], True)
    batches = [stop.next(1) for _ in range(3)]
    assert [prompts[p].variant.question_id for (p,) in batches] == ["q2", "q1", "q0"]
    assert stop.next(1) == []
