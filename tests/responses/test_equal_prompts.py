"""Equal prompts: against the words that are sent, for variants, for rows, and with examples above them."""

import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import CoraError, Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import RecordedRespondent, SimulatedRespondent
from cora_nb.metrics.guessing import prompt_numbers, replies_shared
from cora_nb.responses.facts import as_facts
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.runs.asking import Asking, Settled
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import FAMILIES, make_variants

HUB = Path(os.environ.get("CORA_SHARED", Path(__file__).parents[2].parent / "shared")) / "data" / "hub"
OPTIONS = {
    "cora": ({}, {"answer_first": False}, {"nota": "b", "shuffles": 3}, {"subsets": (2, 3)}),
    "mcqa_plus": ({}, {"nota_place": "last"}),
    "reorderings": ({}, {"n_choices": 6}, {"nota": True}),
    "cyclic": ({},),
    "permutations": ({"limit": 9},),
    "formats": ({}, {"claims": "all"}),
}
texts = st.sampled_from(["a", "b", "c", "d", "None of the above"])


def by_words(variants):
    "A second implementation: the whole prompt as text, the question, and where the right choice stands."
    keys = [(p.variant.question_id, p.text, p.variant.answer) for p in make_prompts(variants)]
    return [keys.index(k) for k in keys]


def same_classes(one, other):
    "Whether two numberings put the same rows together."
    pairs = set(zip(one, other))
    return len(pairs) == len(set(one)) == len(set(other))


def asked_run(variants, asking=Asking(), strict=False):
    return evaluate(SimulatedRespondent(), variants, asking, progress=False, strict=strict)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from([(f, o) for f, several in OPTIONS.items() for o in several]),
    st.lists(st.tuples(st.lists(texts, min_size=2, max_size=5), st.integers(0, 4)), min_size=1, max_size=2),
    st.integers(0, 9),
)
def test_variants_and_rows_against_the_words(family, asked, seed):
    "Choices that repeat, None of the above that is there already, in every family."
    name, options = family
    questions = [Question(f"q{i}", "What?", tuple(c), a % len(c)) for i, (c, a) in enumerate(asked)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        variants = make_variants(questions, name, seed, **options)
    if not variants:
        return
    words = by_words(variants)
    assert same_classes(prompt_numbers(variants), words)
    assert same_classes(prompt_numbers(asked_run(variants, strict=None)), words)


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(2, 5), min_size=1, max_size=4), st.integers(1, 3), st.randoms())
def test_order_and_repetitions_do_not_matter(sizes, trials, random):
    questions = [Question(f"q{i}", "?", tuple("abcde"[:A]), i % A) for i, A in enumerate(sizes)]
    variants = make_variants(questions)
    run = asked_run(variants, Asking(trials=trials))
    shuffled = Responses(
        run.table.sample(frac=1, random_state=random.randrange(99)), run.questions, run.facts, run.name
    )
    for found in (run, shuffled):
        keys = list(found.table[["question_id", "method", "index"]].itertuples(index=False, name=None))
        numbers = dict(zip(keys, prompt_numbers(found)))
        assert len(found) == trials * len(numbers)
        assert all(numbers[k] == n for k, n in zip(keys, prompt_numbers(found)))  # one number for all trials
        assert same_classes([numbers[v.key] for v in variants], by_words(variants))


def test_without_a_recipe_the_sources_tell():
    twice = Question("q", "?", ("a", "b", "b"), 0)
    variants = make_variants([twice])
    bare = asked_run([replace(v, recipe="") for v in variants])
    sources = [v.sources for v in variants]
    assert same_classes(prompt_numbers(bare), [sources.index(s) for s in sources])
    assert len(set(prompt_numbers(asked_run(variants)))) < len(set(sources))
    assert same_classes(prompt_numbers(Responses(bare.table)), prompt_numbers(bare))
    statements = {("q", 0): "It is a."}  # an option that a recipe does not hold
    written = make_variants([twice], "mcqa_plus", statements=statements)
    sources = [(v.form, v.sources, v.answer, v.form == "tfq" and v.index) for v in written]
    assert same_classes(prompt_numbers(asked_run(written)), [sources.index(s) for s in sources])


def test_a_recipe_that_makes_other_variants_today_is_not_believed():
    "The sources of the rows are what was shown."
    variants = make_variants([Question("q", "?", ("a", "b", "b"), 0)])
    run = asked_run(variants)
    other = run.facts.plain() | {
        "variants": run.facts.variants.plain() | {"recipe": {"family": "cora", "seed": 5, "options": {}}}
    }
    lost = run.facts.plain() | {
        "variants": run.facts.variants.plain() | {"recipe": {"family": "gone", "seed": 0, "options": {}}}
    }
    sources = [v.sources for v in variants]
    assert same_classes(prompt_numbers(Responses(run.table, run.questions, lost)), [sources.index(s) for s in sources])
    numbers = prompt_numbers(Responses(run.table, run.questions, other))
    assert all(v.choices == w.choices for v, m in zip(variants, numbers) for w, n in zip(variants, numbers) if m == n)


def test_examples_altered_like_the_variant_make_other_prompts():
    questions = [Question(f"q{i}", f"What, {i}?", ("a", "b", "c"), i % 3) for i in range(6)]
    pool = [Question(f"s{i}", f"Example {i}?", ("x", "y", "z"), i % 3) for i in range(3)]
    variants = make_variants(questions)
    plain, like = (asked_run(variants, Asking(shots=pool, k=3, shots_as=way)) for way in ("plain", "like_variant"))
    assert same_classes(prompt_numbers(plain), by_words(variants))
    prompts = make_prompts(variants, shots=pool, k=3, shots_as="like_variant")
    different = len({(p.variant.question_id, p.text) for p in prompts})
    assert len(set(prompt_numbers(like))) == len(variants) >= different > 0.97 * len(variants)


@pytest.mark.skipif(not (HUB / "cais__mmlu").exists(), reason="MMLU is not beside the project (../shared/data/hub)")
def test_the_odd_questions_of_mmlu_against_the_words():
    "Nine questions of MMLU repeat a choice, four of them the right one, and many have None of the above."
    questions = load_benchmark("mmlu", path=HUB)
    repeated = [q for q in questions if len(set(q.choices)) < 4]
    own = [q for q in questions if "None of the above" in q.choices]
    assert len(repeated) == 9 and sum(q.choices.count(q.choices[q.answer]) > 1 for q in repeated) == 4 and own
    variants = make_variants([*repeated, *own[:20]])
    run = asked_run(variants)
    assert same_classes(prompt_numbers(variants), by_words(variants))
    assert same_classes(prompt_numbers(run), by_words(variants))
    assert len(set(prompt_numbers(run))) < len({(v.question_id, v.sources) for v in variants})


# --- whether replies were shared ------------------------------------------------------------------------------------


class Mine:
    "A respondent that says nothing of temperatures or sharing; its requests decide."

    name = "mine"

    def __init__(self, words):
        self.words = words

    def describe(self):
        return {"respondent": "mine"}

    def request(self, prompt):
        return {"text": prompt.text} if self.words else {"key": list(map(str, prompt.variant.key))}

    async def answer(self, prompts):
        for i, _ in enumerate(prompts):
            yield i, Reply("A")


@pytest.mark.parametrize("words", [True, False])
def test_the_calls_tell_of_a_respondent_that_says_nothing(words, tmp_path):
    from cora_nb.runs.store import Store

    variants = make_variants([Question(f"q{i}", "?", ("a", "b"), 0) for i in range(5)])
    assert replies_shared(evaluate(Mine(words), variants, progress=False).facts) is words
    with Store(tmp_path / "s") as store:
        for _ in range(2):  # the second time all is in the store
            assert replies_shared(evaluate(Mine(words), variants, store=store, progress=False).facts) is words
    assert replies_shared(evaluate(Mine(words), variants, stop=Settled(), progress=False).facts) is words


def test_what_the_facts_say():
    variants = make_variants([Question("q", "?", ("a", "b"), 0)])
    shared = evaluate(SimulatedRespondent(shares=True), variants, progress=False)
    record = evaluate(RecordedRespondent(shared), variants, progress=False)
    twice = evaluate(RecordedRespondent(record), variants, progress=False)
    assert replies_shared(record.facts) and replies_shared(twice.facts)
    assert not replies_shared(make_responses(variants, ["A"] * len(variants)).facts)
    for temperature, says in ((0, True), (0.0, True), (1e-9, False), (1, False), (None, False)):
        assert replies_shared(as_facts({"respondent": {"temperature": temperature}})) is says
    assert not replies_shared(as_facts(None))


def test_columns_that_are_missing():
    run = asked_run(make_variants([Question("q", "?", ("a", "b"), 0)]))
    with pytest.raises(CoraError, match="the responses have no column sources"):
        prompt_numbers(Responses(run.table.drop(columns="sources")))
    assert prompt_numbers([]).tolist() == []
    assert isinstance(prompt_numbers(run), np.ndarray) and pd.api.types.is_integer_dtype(prompt_numbers(run))


def test_no_family_of_ours_is_made_again_for_nothing(monkeypatch):
    "The families of which sources tell cost no time."
    import cora_nb.responses.shown as module

    made = []
    monkeypatch.setattr(module, "make_variants", lambda questions, *_, **__: made.append(len(questions)) or [])
    questions = [Question(f"q{i}", "?", ("a", "b", "c"), 0) for i in range(4)]
    for name in ("cora", "cyclic", "permutations", "reorderings", "order_swap"):
        prompt_numbers(asked_run(make_variants(questions, name)))
    assert not any(made) and name in FAMILIES.names()
    prompt_numbers(asked_run(make_variants([*questions, Question("twice", "?", ("a", "a"), 0)])))
    assert sum(made) == 1
