"""What the page holds: every reply once, every prompt to the letter."""

import base64
import gzip
import json

import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.prompts.templates import TEMPLATES, Prompt
from cora_nb.report.page_data import _CHOICE_MARK, OUTCOMES, _TEXT_MARK, packed, page_data
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.responses import Responses
from cora_nb.responses.runs import Runs
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import FAMILIES, make_variants, method_words

QUESTIONS = math_benchmark(6)


def unpacked(text):
    return json.loads(gzip.decompress(base64.b64decode(text)))


def asked(variants, asking=Asking()):
    return evaluate(SimulatedRespondent(slips=0.3), variants, asking, progress=False)


def shown_prompts(data, run=0):
    "The prompts that the page puts together, written as plainly as can be."
    run, questions = data["runs"][run], data["questions"]
    prompts = []
    for i in range(run["rows"]):
        q, fresh = run["q"][i], iter(data["new"][run["new"][i]] if run["new"][i] >= 0 else ())
        choices = [questions["choices"][q][s] if s >= 0 else next(fresh) for s in data["sources"][run["src"][i]]]
        text = data["texts"][run["asked"][str(i)]] if str(i) in run["asked"] else questions["text"][q]
        marks = {ord(_TEXT_MARK): text} | {ord(_CHOICE_MARK) + k: choice for k, choice in enumerate(choices)}
        prompts.append(data["patterns"][run["w"][i]].translate(marks))
    return prompts


@pytest.mark.parametrize("family", sorted({*FAMILIES.names()} - {"misleading"}))
def test_prompts_come_back_to_the_letter(family):
    variants = make_variants(QUESTIONS, family)
    data = unpacked(packed(page_data(Runs([asked(variants)]))))
    assert shown_prompts(data) == [Prompt(v).text for v in variants]


@pytest.mark.parametrize("template", sorted(TEMPLATES.names()))
def test_prompts_of_every_template(template):
    variants = make_variants(QUESTIONS)
    data = unpacked(packed(page_data(Runs([asked(variants, Asking(template))]))))
    assert shown_prompts(data) == [Prompt(v, template=template).text for v in variants]


def test_a_template_that_has_changed_is_not_believed():
    run = asked(make_variants(QUESTIONS))
    facts = run.facts.plain() | {"asked": run.facts.asked.plain() | {"template_hash": "another"}}
    data = page_data(Runs([Responses(run.table, run.questions, facts, run.name)]))
    assert all(pattern.startswith(_TEXT_MARK) for pattern in data["patterns"])


def test_every_reply_is_there_and_what_became_of_it():
    run = asked(make_variants(QUESTIONS), Asking(trials=3))
    data = unpacked(packed(page_data(Runs({"a": run, "b": run.trial(1)}))))
    one, t = data["runs"][0], run.table
    slots = [(s["method"], s["index"]) for s in data["slots"]]
    assert all(s["words"] == method_words(s["method"]) for s in data["slots"])
    assert [data["questions"]["id"][q] for q in one["q"]] == t["question_id"].tolist()
    assert [slots[s] for s in one["s"]] == list(zip(t["method"], t["index"]))
    assert one["p"] == t["prediction"].tolist() and one["t"] == t["trial"].tolist()
    assert [data["texts"][r] if r >= 0 else None for r in one["r"]] == t["reply"].tolist()
    assert [OUTCOMES[int(o)] for o in one["o"]] == run.outcomes()[list(OUTCOMES)].idxmax(axis=1).tolist()
    assert data["runs"][1]["rows"] == len(run) / 3 and data["runs"][1]["name"] == "b"


def test_questions_without_texts():
    run = asked(make_variants(QUESTIONS))
    data = page_data(Runs([Responses(run.table)]))
    assert data["patterns"] == [] and set(data["runs"][0]["w"]) == {-1}
    assert data["questions"]["choices"] == [[]] * len(QUESTIONS)


def test_the_same_runs_give_the_same_page():
    run = asked(make_variants(QUESTIONS))
    assert packed(page_data(Runs([run]))) == packed(page_data(Runs([run])))
