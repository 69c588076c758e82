"""What each prompt of a run showed."""

import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import Question
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.responses import Responses
from cora_nb.responses.shown import _NEW_CHOICE, shown_variants
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import FAMILIES, make_variants


@pytest.mark.parametrize("family", sorted({*FAMILIES.names()} - {"misleading"}))
def test_variants_come_back_for_every_family(family):
    questions = math_benchmark(3)
    variants = make_variants(questions, family, seed=3)
    run = evaluate(SimulatedRespondent(), variants, Asking(trials=2), progress=False)
    again = shown_variants(run)
    assert list(again.values()) == variants and [v.recipe for v in again.values()] == [v.recipe for v in variants]


def test_the_words_of_the_recipe_count_for_a_family_that_is_not_known():
    variants = make_variants(math_benchmark(2), nota="以上都不对")
    run = evaluate(SimulatedRespondent(), variants, progress=False)
    plain = run.facts.plain()
    plain["variants"]["recipe"]["family"] = "unheard"
    again = shown_variants(Responses(run.table, run.questions, plain, run.name))
    assert [v.choices for v in again.values()] == [v.choices for v in variants]
    assert {v.recipe for v in again.values()} == {""}


def test_another_tools_log_is_put_together_from_sources():
    run = evaluate(SimulatedRespondent(), make_variants(math_benchmark(2)), progress=False)
    again = shown_variants(Responses(run.table, run.questions, {}, run.name))
    assert list(again.values()) == make_variants(math_benchmark(2))  # None of the above is the only new text
    assert not any(v.recipe for v in again.values())


def test_options_that_are_known_by_their_hash_alone():
    "Of the replies that chose the misleading choices, the facts keep a hash."
    questions = math_benchmark(3)
    variants = make_variants(questions, "misleading", misleading={q.id: q.distractors[0] for q in questions})
    again = shown_variants(evaluate(SimulatedRespondent(), variants, progress=False))
    assert [v.sources for v in again.values()] == [v.sources for v in variants]
    assert {t for v in again.values() for t in v.choices} >= {_NEW_CHOICE}


def test_a_family_that_has_changed_since_is_not_believed():
    run = evaluate(SimulatedRespondent(), make_variants(math_benchmark(2), seed=1), progress=False)
    facts = run.facts.plain() | {
        "variants": run.facts.variants.plain() | {"recipe": {"family": "cora", "seed": 2, "options": {}}}
    }
    again = shown_variants(Responses(run.table, run.questions, facts, run.name))
    assert [v.sources for v in again.values()] == run.table["sources"].tolist()


def test_questions_without_texts_are_left_out():
    run = evaluate(SimulatedRespondent(), make_variants([Question("a", "?", ("x", "y"), 0)]), progress=False)
    bare = Responses(run.table)
    assert shown_variants(bare) == {}
    assert _NEW_CHOICE not in {t for v in shown_variants(run).values() for t in v.choices}
