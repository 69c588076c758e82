"""Respondents: the protocol, the simulated truth, and records."""

import asyncio
from collections import Counter

import pytest
from helpers import Forgetful
from hypothesis import given, settings, strategies as st

from cora_nb.core import CoraError, Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.protocol import RecordedRespondent, Reply, Respondent, SimulatedRespondent, ask, run_async
from cora_nb.responses.responses import make_responses
from cora_nb.variants.families import make_variants

QUESTIONS = [Question(f"q{i}", "?", ("a", "b", "c", "d", "e")[: 2 + i % 4], i % 2) for i in range(40)]
PROMPTS = make_prompts(make_variants(QUESTIONS), trials=2)


@given(
    st.floats(0, 1),
    st.floats(0, 1),
    st.lists(st.floats(0.01, 100), min_size=1, max_size=4),
    st.floats(0, 10),
    st.integers(0, 99),
)
@settings(max_examples=50)
def test_probabilities_are_probabilities(knows, slips, position, nota, seed):
    who = SimulatedRespondent(knows=knows, slips=slips, position=tuple(position), nota=nota, seed=seed)
    for p in PROMPTS[::37]:
        shares = who.probabilities(p.variant)
        assert len(shares) == p.variant.n_choices and abs(sum(shares) - 1) < 1e-9 and min(shares) >= 0
        if who.knows_question(p.variant.question_id):
            assert shares[p.variant.answer] >= 1 - slips


def test_draws_follow_the_probabilities():
    "20,000 guesses at one variant: each choice within five standard deviations of its share."
    who = SimulatedRespondent(knows=0, position=(4, 2, 1), nota=3)
    v = next(v for v in make_variants([QUESTIONS[3]]) if v.method == "nota")
    seen = Counter(r.text for r in ask(who, make_prompts([v], trials=20_000)))
    for letter, share in zip("ABCDE", who.probabilities(v)):
        assert abs(seen[letter] / 20_000 - share) < 5 * (share * (1 - share) / 20_000) ** 0.5


def test_any_subset_in_any_order_gets_the_same_replies():
    who = SimulatedRespondent(knows=0.4, slips=0.1, seed=3)
    whole = ask(who, PROMPTS)
    assert ask(who, PROMPTS[::-1]) == whole[::-1] and ask(who, PROMPTS[50:60]) == whole[50:60]
    assert len({r.text for r in whole}) > 1


def test_knowing_everything_and_scores():
    who = SimulatedRespondent(knows=1, with_scores=True)
    for p, r in zip(PROMPTS, ask(who, PROMPTS)):
        assert r.scores[p.variant.answer] == 0 and r.confidence == 1 and "ABCDE"[p.variant.answer] == r.text


@pytest.mark.parametrize(
    "field,value,why",
    [
        ("knows", -0.1, "knows must be in"),
        ("slips", 2, "slips must be in"),
        ("position", (), "positive weights"),
        ("position", (0, 1), "positive weights"),
        ("nota", float("inf"), "nota must be at least 0"),
        ("knows", float("nan"), "knows must be in"),
    ],
)
def test_bad_parameters(field, value, why):
    with pytest.raises(CoraError, match=why):
        SimulatedRespondent(**{field: value})


def test_a_record_answers_as_it_was_recorded():
    replies = [Reply("A"), Reply(scores=(-1.0, -2.0), confidence=0.7), Reply(error="timeout"), Reply("")]
    variants = make_variants([Question("q", "?", ("a", "b"), 0)])[:4]
    record = RecordedRespondent(make_responses(variants, replies))
    assert ask(record, make_prompts(variants)) == replies
    other = make_variants([Question("q", "?", ("a", "b"), 1)])[4:]
    assert all(r.error == "nothing was recorded for this prompt" for r in ask(record, make_prompts(other)))
    assert isinstance(record, Respondent)


def test_a_record_of_version_0_1_answers_too():
    "There, every new choice has the source -1. A record with the fillers at other places still does not fit."
    variants = make_variants([Question("q", "?", ("a", "b", "c"), 0)], "reorderings", n_choices=6)
    responses = grade(variants, ["A", "B", "C", "D"])
    older = responses.assign(sources=[[max(s, -1) for s in v.sources] for v in variants])
    for table in (responses, older):
        assert [r.text for r in ask(RecordedRespondent(table), make_prompts(variants))] == ["A", "B", "C", "D"]
    moved = older.assign(sources=older["sources"].iloc[[1, 0, 3, 2]].tolist())
    said = [r.error for r in ask(RecordedRespondent(moved), make_prompts(variants))]
    assert all("recorded with the choices" in error for error in said)
    exchanged = responses.assign(sources=[[{-1: -2, -2: -1}.get(s, s) for s in v.sources] for v in variants])
    assert all(r.error for r in ask(RecordedRespondent(exchanged), make_prompts(variants)))


def test_inside_a_running_loop():
    "As in a notebook."

    async def cell():
        return ask(SimulatedRespondent(), PROMPTS[:3])

    assert asyncio.run(cell()) == ask(SimulatedRespondent(), PROMPTS[:3])


def test_errors_come_out_of_the_loop():
    async def fails():
        raise CoraError("no such model")

    with pytest.raises(CoraError, match="no such model"):
        run_async(fails())


def test_a_respondent_that_forgets_is_counted_not_trusted():
    replies = ask(Forgetful(), PROMPTS[:6])
    assert [r.error for r in replies] == ["no reply", None] * 3


def test_an_interrupt_inside_a_running_loop_stops_the_work(tmp_path):
    "As the Stop button of a notebook: a slow run ends at once, in a process of its own."
    import subprocess
    import sys

    code = """
import asyncio, signal, sys, time
from cora_nb.respondents.protocol import run_async
async def slow():
    for _ in range(600): await asyncio.sleep(0.05)
async def cell():
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    signal.signal(signal.SIGALRM, lambda *a: (_ for _ in ()).throw(KeyboardInterrupt()))
    try: run_async(slow())
    except KeyboardInterrupt: print("stopped")
asyncio.run(cell())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=25)
    assert done.stdout.strip() == "stopped"
