"""A part of what `python -m tests.robustness` runs, the same each time; and whatever went wrong once, always."""

from functools import cache

import pytest
from robustness import benchmark_files, kills, model_folders, run_files, stores, words
from robustness.cases import run_case
from runs.test_store import DAMAGES

pytestmark = pytest.mark.guard

ONCE = (  # titles of what went wrong when these lists were made
    "benchmark, truthfulqa, jsonl: mc1_targets.labels: texts",  # ValueError
    "benchmark, mmlu_redux, csv: error_type: null",  # the row was left out in silence
    "benchmark file, xlsx: 100 bytes overwritten at 4%",  # a page of hexadecimal digits for a message
    "variants: choices: whole numbers",  # TypeError
    "variants: answer: texts",
    "variants: answer: fractions",  # read
    "variants: family: lists of texts",  # TypeError
    "variants: method: dates",  # read as they stood
    "variants: index: texts",
    "variants: index of row 5: negative",
    "variants: family of row 5: empty",
    "variants: text: objects",
    "variants: the first byte lost",  # two lines
    "run folder: responses, method: lists of texts",  # TypeError
    "run folder: responses, reply: dates",  # read as texts
    "run folder: responses, selected: lists of texts",  # TypeError
    "run folder: responses, selected: lists of fractions",  # read
    "run folder: responses, correct: durations",  # read
    "run folder: responses, n_tokens: infinite",  # OverflowError
    "run folder: questions without question_id",  # KeyError
    "run folder: questions without choices",
    "run folder: questions without answer",  # read
    "run folder: questions, choices: whole numbers",  # TypeError
    "run folder: questions, answer: texts",  # read
    "run folder: questions, answer of row 2: too large",
    "run folder: facts: deep",  # RecursionError
    "run folder: facts: variants a text",  # AttributeError
    "run folder: facts: recipe without a family",  # KeyError
    "run folder: facts: no UTF-8",  # UnicodeDecodeError
    "cora_run: price='-1/2'",  # the cost was negative
    "cora_run: price='nan/1'",
)


@cache
def inputs():
    return [*benchmark_files.cases(), *run_files.cases(), *words.cases()]


def test_there_are_enough_and_each_once():
    titles = [case.title for case in inputs()]
    assert len(titles) >= 1400 and set(ONCE) <= set(titles)
    doubled = {title for title in titles if titles.count(title) > 1} if len(set(titles)) < len(titles) else set()
    assert not doubled
    assert len(DAMAGES) + len(list(stores.around_cases())) >= 30 and len(kills.cases()) >= 20


def check(cases):
    outcomes = [run_case(case) for case in cases]
    assert outcomes and not [f"{o.case.title}: {o.said}" for o in outcomes if not o.good]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_malformed_inputs(part):
    "Every tenth, in eight parts."
    check(inputs()[part::80])


def test_what_went_wrong_once():
    check(case for case in inputs() if case.title in ONCE)


@pytest.mark.slow
def test_one_changed_byte():
    "Pages have checksums: some were read."
    check(case for case in inputs() if "a byte changed" in case.name)


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in stores.around_cases() if "2 s" not in c.name], ids=lambda c: c.title)
def test_a_store_whose_surroundings_fail(case):
    check([case])


def test_a_damaged_model():
    pytest.importorskip("torch", reason="torch is not installed")
    check(list(model_folders.cases())[::11])


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["at reply 33", "two runs with one store, both"])
def test_a_killed_command(moment):
    check(case for case in kills.cases() if case.name == moment)
