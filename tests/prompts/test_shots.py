"""Shots as the pool has them, and altered like the variant: letters within the instruction, facts, keys that stay."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.benchmarks.load import load_benchmark, load_shots
from cora_nb.cli.run import cora_run
from cora_nb.core import CoraError, LETTERS, Question
from cora_nb.forms import Variant
from cora_nb.prompts.letters import RULES
from cora_nb.prompts.templates import SHOTS_AS, choose_shots, right_places
from cora_nb.prompts.templates import Prompt, TEMPLATES, make_prompts
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.likelihood import ADAPTATIONS, context_and_continuations
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.files import read_responses
from cora_nb.responses.runs import concat
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate, plan, prepare
from cora_nb.runs.store import asked_prompts
from cora_nb.variants.families import alter_like, make_variants
from cora_nb.variants.files import read_variants, write_variants

HUB = Path(os.environ.get("CORA_SHARED", Path(__file__).parents[2].parent / "shared")) / "data" / "hub"


def sized(n, i=0, id="q"):
    return Question(f"{id}{n}-{i}", f"Question {id} {n} {i}?", tuple(f"{id} {n} {j}" for j in range(n)), i % n)


POOL = [sized(n, i, "shot") for n in (4, 3, 5, 2) for i in range(3)]
FAMILIES = {
    "cora": [{}, {"answer_first": False}, {"nota": "Nothing of that"}],
    "mcqa_plus": [{}, {"sample": 2}, {"statements": {("q4-1", 0): "Is it true?"}}],
    "permutations": [{}, {"limit": 3}],
    "cyclic": [{}],
    "answer_swap": [{}],
    "reorderings": [{}, {"n_choices": 3}, {"n_choices": 8, "nota": True}],
    "misleading": [{"misleading": {f"q{n}-1": 0 for n in range(3, 8)}}],
}


def letters_shown(prompt):
    "The letters that examples answer with, read from the words of the prompt."
    said = [m["content"] for m in prompt.messages[1::2]]
    return [letter for reply in said for letter in reply.split(", ")]


@pytest.mark.parametrize("family, options", [(f, o) for f, many in FAMILIES.items() for o in many])
def test_altered_shots_answer_within_the_instruction(family, options):
    for n in range(3, 7):
        for v in make_variants([sized(n, 1)], family, seed=3, **options):
            prompt = make_prompts([v], "cora", POOL, 12, "like_variant")[0]
            if v.form == "tfq":
                assert set(letters_shown(prompt)) == {"Yes", "No"}
                continue
            assert set(letters_shown(prompt)) <= set(LETTERS[: v.n_choices])
            assert len(prompt.shots) == 12 and [s.question_id for s in prompt.shots] == [s.id for s in POOL]
            assert all(2 <= s.n_choices <= v.n_choices for s in prompt.shots)
            assert all(
                s.choices[s.answer] in POOL[i].choices or s.sources[s.answer] < 0 for i, s in enumerate(prompt.shots)
            )
            if "n_choices" not in options:  # where a question of as many choices has another name for it
                assert {s.method for s in prompt.shots} <= {v.method, "original"}
            equally = [s for s, own in zip(prompt.shots, POOL) if own.n_choices >= n]
            assert all((s.index, s.n_choices) == (v.index, v.n_choices) for s in equally)


def test_a_shot_of_as_many_choices_is_the_variant_that_the_family_makes():
    question, shot = sized(5, 2), sized(5, 4, "shot")
    for family in ("cora", "permutations", "cyclic", "reorderings"):
        own = {v.key[1:]: v for v in make_variants([shot], family, seed=7)}
        for v in make_variants([question], family, seed=7):
            assert alter_like(shot, v) == own[v.method, v.index]


def test_equal_shots_above_all_questions_and_after_a_file(tmp_path):
    variants = make_variants([sized(4, i) for i in range(4)], seed=2)
    write_variants(variants, tmp_path / "v.parquet")
    again = make_prompts(read_variants(tmp_path / "v.parquet"), shots=POOL, k=3, shots_as="like_variant")
    prompts = make_prompts(variants, shots=POOL, k=3, shots_as="like_variant")
    assert [p.text for p in again] == [p.text for p in prompts]
    by_method = {}
    for p in prompts:
        assert by_method.setdefault(p.variant.key[1:], p.shots) == p.shots
    assert len(set(by_method.values())) > 15


def test_several_letters():
    variants = make_variants([sized(4, 1)], "misleading", misleading={"q4-1": 0})
    several, replaced = (make_prompts([v], "bare", POOL, 5, "like_variant")[0] for v in variants)
    said = [m["content"].split(", ") for m in several.messages[1::2]]
    assert [len(letters) for letters in said] == [2, 1, 2, 1, 2]
    for letters, shot in zip(said, several.shots):
        assert {shot.choices[LETTERS.index(x)] for x in letters} == {shot.question.choices[shot.question.answer]}
        assert RULES["selected"](", ".join(letters), shot.choices) == tuple(map(LETTERS.index, letters))
    assert (
        several.text.count("Answer: A, ") + several.text.count("Answer: B, ") + several.text.count("Answer: C, ") == 3
    )
    assert all(len(right_places(s)) == 1 and s.sources.count(-1) == 1 for s in replaced.shots)
    plain = make_prompts(variants, "bare", POOL, 5)[0]
    assert [m["content"] for m in plain.messages[1::2]] == [LETTERS[s.answer] for s in POOL[:5]]
    context = {a: context_and_continuations(several, a)[0] for a in ADAPTATIONS}
    first = several.shots[0]
    right = first.choices[first.answer]
    one, two = (f"{LETTERS[i]}. {right}" for i in right_places(first))
    assert f"\nAnswer: {', '.join(said[0])}\n\n" in context["joint-label"]
    assert f"\nAnswer: {one}, {two}\n\n" in context["joint-desc"]
    assert f"\nAnswer: {right}\n\n" in context["separate"]


@given(st.integers(2, 6), st.integers(0, 5), st.sampled_from(sorted(TEMPLATES)))
@settings(max_examples=30)
def test_plain_shots_are_what_they_were(n, i, template):
    "As written out by hand: the first of the pool, as they are, whatever the variant shows."
    question = sized(n, i)
    for p in make_prompts(make_variants([question]), template, POOL, 3):
        assert p.shots == tuple(POOL[:3])
        assert p == Prompt(p.variant, 0, template, tuple(POOL[:3]), p.room)


def test_keys_of_plain_shots_stay_and_altered_ones_have_their_own():
    variants, chat = make_variants([sized(4, i) for i in range(3)]), ChatRespondent("m")
    keys = {way: asked_prompts(chat, make_prompts(variants, shots=POOL, k=2, shots_as=way))[1] for way in SHOTS_AS} | {
        "unasked": asked_prompts(chat, make_prompts(variants, shots=POOL, k=2))[1]
    }
    assert keys["plain"] == keys["unasked"]
    equal = [v.method for v, a, b in zip(variants, keys["plain"], keys["like_variant"]) if a == b]
    assert set(equal) <= {"original", "shuffled"}  # shots of as many choices are the same above the original
    assert (
        asked_prompts(chat, make_prompts(variants))[1]
        == asked_prompts(chat, make_prompts(variants, shots=POOL, shots_as="like_variant"))[1]
    )


def test_facts_hold_ids_hash_and_way():
    variants = make_variants([sized(4, i) for i in range(3)])
    told = {
        way: prepare(variants, Asking(shots=POOL, k=2, shots_as=way)).facts(SimulatedRespondent()).asked
        for way in SHOTS_AS
    }
    for way, asked in told.items():
        assert asked.shots == [s.id for s in POOL[:2]] and asked.shots_as == way and len(asked.shots_hash) == 64
    assert told["plain"].differences(told["like_variant"]) == ["shots_hash", "shots_as", "prompts"]
    reworded = [Question(s.id, s.text, s.choices, (s.answer + 1) % s.n_choices) for s in POOL]
    other = prepare(variants, Asking(shots=reworded, k=2)).facts(SimulatedRespondent()).asked
    assert other.shots == told["plain"].shots and other.shots_hash != told["plain"].shots_hash
    none = prepare(variants, Asking(shots=POOL, shots_as="like_variant")).facts(SimulatedRespondent()).asked
    assert none.shots == [] and none.shots_as is None and none.shots_hash is None
    assert not none.differences(prepare(variants).facts(SimulatedRespondent()).asked)


def test_parts_of_a_run_with_altered_shots_are_parts_of_one_run():
    questions = [Question(f"q{i}", f"{i}?", ("a", "b", "c"), i % 3, "st"[i % 2]) for i in range(4)]
    pool = [Question(f"shot {i}", f"Shot {i}?", ("a", "b", "c"), i % 3, "st"[i % 2]) for i in range(6)]
    asking = Asking(shots=pool, k=2, shots_as="like_variant")
    parts = [evaluate(SimulatedRespondent(), make_variants(questions[i::2]), asking, progress=False) for i in range(2)]
    whole = concat(parts)
    assert sorted(whole.facts.asked.shots) == [f"shot {i}" for i in range(4)]
    assert whole.facts.asked.shots_as == "like_variant" and "shots_hash" not in whole.facts.asked.plain()


def test_variants_in_the_pool_stay_as_they_are():
    "They raised AttributeError."
    pool = make_variants([sized(3, i, "shot") for i in range(3)], "cyclic")[2::3]
    variants = make_variants([sized(4, 1)])
    assert choose_shots(pool, variants[0].question, 2) == tuple(pool[:2])
    assert choose_shots(pool, pool[0].question, 2) == tuple(pool[1:])  # the question itself is left out
    for way in SHOTS_AS:
        assert all(p.shots == tuple(pool[:2]) for p in make_prompts(variants, shots=pool, k=2, shots_as=way))
    run = evaluate(SimulatedRespondent(), variants, Asking(shots=pool, k=2), progress=False)
    assert run.facts.asked.shots == [v.question_id for v in pool[:2]]
    assert plan(SimulatedRespondent(), variants, Asking(shots=pool, k=2, shots_as="like_variant"))["prompts"] == len(
        variants
    )


@pytest.mark.parametrize(
    "family, options, question, shot, says",
    [
        (
            "order_swap",
            {},
            sized(3),
            sized(2),
            "does not take question 'q2-0': with two choices there is only one wrong choice",
        ),
        ("formats", {"only": "mcq", "sizes": (4,)}, sized(4), sized(3), "fewer than 4 choices"),
    ],
)
def test_shots_that_cannot_be_altered_are_named(family, options, question, shot, says):
    shot = Question("q2-0" if shot.n_choices == 2 else "s", "Other?", shot.choices, 0)
    with pytest.raises(CoraError, match=says):
        make_prompts(make_variants([question], family, **options), shots=[shot], k=1, shots_as="like_variant")


def test_variants_made_by_hand_cannot_be_copied():
    q = sized(3)
    hand = Variant(q, "mine", "cut", 0, q.choices[:2], 0, (0, 1))
    with pytest.raises(CoraError, match="the variant cut 0 of question 'q3-0' does not say how it was made"):
        make_prompts([hand], shots=POOL, k=1, shots_as="like_variant")
    with pytest.raises(CoraError, match="shots_as must be one of plain, like_variant, got 'like'"):
        make_prompts([hand], shots_as="like")


def test_a_question_with_one_wrong_choice_keeps_it():
    (several, _) = make_variants([sized(4, 1)], "misleading", misleading={"q4-1": 0})
    prompt = make_prompts([several], shots=[sized(2, i, "shot") for i in range(3)], k=3, shots_as="like_variant")[0]
    assert all(len(right_places(s)) == 1 and s.n_choices == 2 for s in prompt.shots)


@pytest.mark.slow
def test_the_commands_take_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for way in SHOTS_AS:
        cora_run([f"simulated:name={way}"], limit=3, shots=2, shots_as=way, store="none")
        asked = read_responses(tmp_path / "responses/math" / way).facts.asked
        assert (asked.shots_as, asked.k) == (way, 2)
    with pytest.raises(SystemExit, match="shots_as must be one of plain, like_variant, got 'other'"):
        cora_run(["simulated:name=c"], limit=3, shots_as="other", store="none")


def beyond(prompt):
    return any(place >= prompt.variant.n_choices for s in prompt.shots for place in right_places(s))


def counted(questions, pool, way):
    prompts = make_prompts(make_variants(questions), shots=pool, k=5, shots_as=way)
    found = {}
    for p in prompts:
        found.setdefault(p.variant.method, []).append(beyond(p))
    return {method: (sum(odd), len(odd)) for method, odd in found.items()}


@pytest.mark.slow
def test_no_prompt_of_the_bundled_benchmark_contradicts_itself():
    questions, pool = load_benchmark("math"), load_shots("math")
    plain, like = (counted(questions, pool, way) for way in SHOTS_AS)
    assert plain["decoupled"] == (900, 900) and plain["original"][0] == 0
    assert sum(odd for odd, _ in like.values()) == 0 and sum(n for _, n in like.values()) == 6000


@pytest.mark.skipif(not (HUB / "cais__mmlu").exists(), reason="MMLU is not beside the project (../shared/data/hub)")
def test_no_prompt_of_mmlu_contradicts_itself():
    "Issue 14: with plain shots all 600 decoupled prompts of 200 questions do, and half of decoupled_nota."
    questions = load_benchmark("mmlu", path=HUB)[:200]
    pool = load_shots("mmlu", path=HUB)
    plain, like = (counted(questions, pool, way) for way in SHOTS_AS)
    assert plain["decoupled"] == (600, 600) and plain["decoupled_nota"] == (300, 600)
    assert sum(odd for odd, _ in like.values()) == 0 and sum(n for _, n in like.values()) == 4000
