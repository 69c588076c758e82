"""A respondent with known truth, and one that repeats a record."""

from collections import Counter

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import CoraError, Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.protocol import Reply, Respondent, ask
from cora_nb.respondents.simulated import RecordedRespondent, SimulatedRespondent
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
        ("knows", -0.1, "knows must be a number from 0 to 1"),
        ("slips", 2, "slips must be a number from 0 to 1"),
        ("position", (), "positive weights"),
        ("position", (0, 1), "positive weights"),
        ("nota", float("inf"), "nota must be at least 0"),
        ("knows", float("nan"), "knows must be a number from 0 to 1"),
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


def test_two_records_of_one_name_are_two_respondents():
    "A store may not take what one record says for what the other says."
    variants = make_variants([Question("q", "?", ("a", "b"), 0)])
    one, other = (RecordedRespondent(make_responses(variants, [letter] * len(variants))) for letter in "AB")
    prompt = make_prompts(variants)[0]
    assert one.describe() != other.describe() and one.request(prompt) != other.request(prompt)
    assert one.describe() == RecordedRespondent(make_responses(variants, ["A"] * len(variants))).describe()


# --- one reply to equal prompts -------------------------------------------------------------------------------------


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 99))
@settings(max_examples=10, deadline=None)
def test_shares_gives_equal_prompts_one_reply_and_changes_nothing_else(knows, slips, seed):
    who = SimulatedRespondent(knows=knows, slips=slips, seed=seed, shares=True, with_scores=True)
    alone = SimulatedRespondent(knows=knows, slips=slips, seed=seed, with_scores=True)
    said = {}
    for p, r, other in zip(PROMPTS, ask(who, PROMPTS), ask(alone, PROMPTS)):
        assert said.setdefault((p.variant.question_id, p.text), r) == r
        assert r.scores == other.scores  # the probabilities are those of a respondent that does not share
        if slips == 0 and who.knows_question(p.variant.question_id):
            assert r.text == "ABCDE"[p.variant.answer]


def test_shared_draws_are_independent_between_prompts():
    "Two prompts of a question with two choices: both right, as often as independent guesses are."
    questions = [Question(f"q{i}", "?", ("a", "b"), 0) for i in range(4000)]
    variants = [v for v in make_variants(questions) if v.method in ("original", "nota")]
    right = [r.text == "A" for r in ask(SimulatedRespondent(knows=0, shares=True), make_prompts(variants))]
    both = sum(a and b for a, b in zip(right[::2], right[1::2])) / 4000
    assert abs(both - 1 / 4) < 5 * (3 / 16 / 4000) ** 0.5 and abs(sum(right) / 8000 - 1 / 2) < 5 * 0.5 / 8000**0.5


def test_shares_asks_once_for_equal_prompts(tmp_path):
    from cora_nb.runs.evaluate import evaluate
    from cora_nb.runs.store import Store

    variants = make_variants(QUESTIONS[:8])
    different = len({(p.variant.question_id, p.text) for p in make_prompts(variants)})
    assert different < len(variants)
    with Store(tmp_path / "replies.sqlite") as store:
        for name, asked in (("first", different), ("again", 0)):
            run = evaluate(SimulatedRespondent(shares=True), variants, store=store, progress=False)
            assert run.facts.calls["asked"] == asked, name
            assert run.facts.respondent["shares"] is True
        assert len(store) == different
        other = evaluate(SimulatedRespondent(), variants, store=store, progress=False)
        assert other.facts.calls["asked"] == len(variants) and "shares" not in other.facts.respondent


def test_other_words_around_a_question_are_another_prompt():
    "A template, or examples, make another prompt of the same choices."
    variants, who = make_variants(QUESTIONS), SimulatedRespondent(knows=0, shares=True)
    pool = [Question(f"s{i}", f"Example {i}?", ("a", "b", "c"), i) for i in range(3)]
    ways = [{}, {"template": "bare"}, {"shots": pool, "k": 2}]
    said = [[r.text for r in ask(who, make_prompts(variants, **way))] for way in ways]
    assert all(sum(a != b for a, b in zip(x, y)) > len(variants) / 4 for x, y in zip(said, said[1:]))


def test_shares_on_the_command_line():
    from cora_nb.cli.respondents import make_respondent

    assert make_respondent("simulated:knows=0.5,shares=true") == SimulatedRespondent(knows=0.5, shares=True)
    assert make_respondent("simulated:shares=false") == SimulatedRespondent()
    with pytest.raises(CoraError, match="the field shares of a simulated respondent cannot be 'maybe'"):
        make_respondent("simulated:shares=maybe")
    with pytest.raises(CoraError, match="shares must be True or False, got 1"):
        SimulatedRespondent(shares=1)


def test_a_grade_without_words_is_not_answered_again():
    "Recorded facts hold no words: asked again, each was an empty reply, and every score 0."
    variants = make_variants(QUESTIONS[:2])
    run = make_responses(variants, ["A"] * len(variants))
    record = RecordedRespondent(run.table.assign(reply=pd.Series(pd.NA, run.table.index, dtype="string")))
    replies = ask(record, make_prompts(variants))
    assert {reply.error for reply in replies} == {"only the grade of this reply was recorded, not its words"}
