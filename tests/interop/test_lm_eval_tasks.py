"""Variants as tasks of lm-evaluation-harness: the texts are ours to the letter, and nothing is guessed or replaced.

The real harness runs in tools/peers/lm_eval_peer.py, by hand; what it recorded is read here."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from cora_nb.benchmarks.load import load_benchmark, load_shots
from cora_nb.core import CoraError, Question
from cora_nb.interop.formats import import_responses
from cora_nb.interop.lm_eval_tasks import _lm_eval_rows, _write_export, export_lm_eval
from cora_nb.metrics.scoring import score
from cora_nb.prompts.templates import TEMPLATES, Template, make_prompts
from cora_nb.responses.facts import as_facts
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.likelihood import ADAPTATIONS, LikelihoodRespondent
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import prepare, Running
from cora_nb.variants.families import make_variants
from cora_nb.variants.files import row_variants

RECORDED = Path(__file__).parents[1] / "recorded" / "lm_eval_ours"
QUESTIONS = load_benchmark("math")[:2]
ODD = [  # what templates, YAML and guessed types would change
    Question("dates", "{{ question }} {% raw %} When?\t", ("1969-07-20", "1970-01-01", "2000-02-29"), 0),
    Question("numbers", "12", ("1", "2.0", "1e5", "null"), 2, "[a, b]"),
    Question("letters", "Größe – 量 😀 \\n \u2028 \x07", ("'", '"', "\\", "True"), 3),
]


class Tasks(yaml.SafeLoader):
    "Reads a task file as the harness does; a function stays the name that it has there."


Tasks.add_constructor("!function", lambda loader, node: node.value)


def task(folder, name):
    return yaml.load((folder / f"{name}.yaml").read_text("utf-8"), Tasks)


def documents(folder, name="cora"):
    "What the function beside the tasks gives to the harness."
    spec = importlib.util.spec_from_file_location("loaded", folder / f"{name}_variants.py")
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    return list(module.variants(version=1.0, pretrained="any")["test"])


@pytest.mark.parametrize("family", ["cora", "permutations", "cyclic", "mcqa_plus", "wording", "order_swap"])
@pytest.mark.parametrize("shots_as", [None, "plain", "like_variant"])
def test_the_texts_are_those_of_our_respondents(family, shots_as):
    put = {"shots": load_shots("math"), "k": 3, "shots_as": shots_as} if shots_as else {}
    if family == "mcqa_plus":  # its seventh form of examples needs more than a pool
        put |= {"shots_as": "plain"} if shots_as else {}
    prompts = make_prompts(make_variants(QUESTIONS, family=family), **put)
    likelihood = LikelihoodRespondent("organism/skewed", seam="harness")
    causal = CausalRespondent("organism/skewed", chat=False)
    rows = list(_lm_eval_rows(prompts))
    assert len(rows) == len(prompts)
    for row, prompt in zip(rows, prompts):
        scored = likelihood.request(prompt)
        assert (row["context"], row["continuations"]) == (scored["context"], scored["continuations"])
        assert row["prompt"] == causal.request(prompt)["text"] == prompt.text
        assert row["continuations"][row["answer"]].strip().endswith(row["target"])
    assert row_variants(json.loads(json.dumps(rows)), "rows") == [p.variant for p in prompts]


@pytest.mark.parametrize("template", list(TEMPLATES))
@pytest.mark.parametrize("adaptation", ADAPTATIONS)
def test_every_template_and_adaptation(template, adaptation):
    prompts = make_prompts(make_variants(QUESTIONS[:1]), template, load_shots("math"), 1)
    likelihood = LikelihoodRespondent("organism/skewed", adaptation=adaptation, seam="harness")
    for row, prompt in zip(_lm_eval_rows(prompts, adaptation), prompts):
        scored = likelihood.request(prompt)
        assert (row["context"], row["continuations"]) == (scored["context"], scored["continuations"])
        assert row["prompt"] == prompt.text


def test_a_template_of_ones_own(tmp_path):
    mine = Template("mine", "Pick one of $LETTERS$.\n", before_answer="\nA: ", before_letter="")
    folder = export_lm_eval(make_variants(QUESTIONS), tmp_path / "task", asking=Asking(mine))
    first = documents(folder)[0]
    assert first["prompt"].startswith("Pick one of ABCD.\n") and first["context"].endswith("\nA: ")
    assert first["continuations"] == ["A", "B", "C", "D"]


@pytest.mark.parametrize("questions", [QUESTIONS, ODD], ids=["math", "odd"])
def test_what_the_harness_reads_are_our_rows(tmp_path, questions):
    variants = make_variants(questions)
    folder = export_lm_eval(variants, tmp_path / "task")
    found = documents(folder)
    assert found == list(_lm_eval_rows(prepare(variants).prompts))  # dates are texts still
    assert row_variants(found, "documents") == variants


def test_the_folder_can_be_moved(tmp_path):
    folder = export_lm_eval(make_variants(QUESTIONS), tmp_path / "deep" / "er" / "task")
    before = documents(folder)
    assert documents(folder.rename(tmp_path / "elsewhere")) == before
    said = "".join(p.read_text("utf-8") for p in (tmp_path / "elsewhere").iterdir() if p.is_file())
    assert str(tmp_path) not in said


def test_the_task_files(tmp_path):
    variants = make_variants(QUESTIONS)
    told = {"benchmark": "math 😀 \u2028 ünï", "path": "C:\\new", "note": "a: b # c"}
    folder = export_lm_eval(variants, tmp_path / "task", asking=Asking(parse="first_token"), name="mine.2", facts=told)
    assert sorted(p.name for p in folder.iterdir()) == [
        "README.md",
        "facts.json",
        "mine.2_gen.yaml",
        "mine.2_mc.yaml",
        "mine_2_variants.py",
        "variants.jsonl",
    ]
    scored, generated = task(folder, "mine.2_mc"), task(folder, "mine.2_gen")
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    assert (scored["task"], generated["task"]) == ("mine.2_mc", "mine.2_gen")
    assert scored["output_type"] == "multiple_choice" and generated["output_type"] == "generate_until"
    assert generated["generation_kwargs"] == {"until": [], "do_sample": False, "max_gen_toks": 1}
    for found in (scored, generated):
        assert found["custom_dataset"] == "mine_2_variants.variants" and found["target_delimiter"] == ""
        assert found["num_fewshot"] == 0  # the harness then ignores --num_fewshot
        assert found["metadata"] == {"version": 1.0, "cora_nb": facts}
    assert facts["run"] == told and facts["export"]["max_gen_toks"] == 1
    known = prepare(variants, Asking(parse="first_token"), facts=told).known
    told = as_facts(facts).plain()
    assert all(told[group] | each == told[group] for group, each in known.plain().items())


@pytest.mark.parametrize(("parse", "family", "room"), [
    ("first_token", "cora", 1),
    ("careful", "cora", 512),
    ("last_line", "cora", 4096),
    ("first_token", "wording", 6),  # some labels are longer than a letter
])  # fmt: skip
def test_the_room_is_what_the_rule_needs(tmp_path, parse, family, room):
    folder = export_lm_eval(make_variants(QUESTIONS, family=family), tmp_path / "task", asking=Asking(parse=parse))
    assert task(folder, "cora_gen")["generation_kwargs"]["max_gen_toks"] == room


@pytest.mark.parametrize(("change", "why"), [
    ({"form": "several"}, "question 'math-0-1', method 'original': several choices may be right"),
    ({"form": "lfgq"}, "it shows no choices (form 'lfgq')"),
    ({"text": "half \ud83d"}, "the prompt is not valid text"),
])  # fmt: skip
def test_what_no_task_can_ask(tmp_path, change, why):
    variants = [replace(v, **change) for v in make_variants(QUESTIONS)]
    with pytest.raises(CoraError) as e:
        export_lm_eval(variants, tmp_path / "task")
    assert why in str(e.value) and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("options", "why"), [
    ({"name": "a,b"}, "the name of a task must be letters, digits and any of _ . -, got 'a,b'"),
    ({"name": ""}, "got ''"),
    ({"name": "../x"}, "got '../x'"),
    ({"adaptation": "best"}, "adaptation must be one of joint-label, joint-desc, separate, got 'best'"),
    ({"asking": Asking(k=2)}, "k=2 needs a pool of shots"),
    ({"facts": {"now": object}}, "must be plain JSON values"),
])  # fmt: skip
def test_options_that_make_no_sense(tmp_path, options, why):
    with pytest.raises(CoraError) as e:
        export_lm_eval(make_variants(QUESTIONS), tmp_path / "task", **options)
    assert why in str(e.value) and list(tmp_path.iterdir()) == []


def test_nothing_to_ask_and_two_families(tmp_path):
    with pytest.raises(CoraError, match="no variants"):
        export_lm_eval([], tmp_path / "task")
    with pytest.raises(CoraError, match="several families"):
        export_lm_eval(make_variants(QUESTIONS) + make_variants(QUESTIONS, family="cyclic"), tmp_path / "task")


def test_an_export_is_replaced_only_by_the_same(tmp_path):
    folder, variants = tmp_path / "task", make_variants(QUESTIONS)
    export_lm_eval(variants, folder)
    (folder / "__pycache__").mkdir()  # the harness leaves this behind
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    assert {p.name: p.read_bytes() for p in export_lm_eval(variants, folder).iterdir() if p.is_file()} == before
    for put, what in (
        ({"variants": make_variants(QUESTIONS, seed=1)}, r"seed \(0 there, 1 now\)"),
        ({"asking": Asking("bare")}, r"template \("),
        ({"asking": Asking(shots=load_shots("math"), k=1)}, r"shots \("),
        ({"adaptation": "separate"}, "export.adaptation"),
        ({"asking": Asking(parse="first_token")}, r"parse \(careful there, first_token now\)"),
    ):
        with pytest.raises(CoraError, match=f"another export here already, with other .*{what}"):
            export_lm_eval(**{"variants": variants, "folder": folder} | put)
    with pytest.raises(CoraError, match=r"holds something else \(cora_gen.yaml\)"):
        export_lm_eval(variants, folder, name="other")
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("x")
    with pytest.raises(CoraError, match=r"holds something else \(mine.txt\)"):
        export_lm_eval(variants, tmp_path / "other")
    with pytest.raises(CoraError, match="this is a file"):
        export_lm_eval(variants, folder / "README.md")


def recorded(kind):
    return next(RECORDED.glob(f"samples_cora_{kind}_*.jsonl"))


def test_the_recorded_logs_are_of_this_export():
    "Where this fails, the export has changed since: record again (tools/peers/lm_eval_peer.py record)."
    rows = list(_lm_eval_rows(prepare(make_variants(QUESTIONS), Asking("bare")).prompts))
    for kind in ("mc", "gen"):
        with recorded(kind).open(encoding="utf-8") as file:
            samples = sorted(map(json.loads, file), key=lambda sample: sample["doc_id"])
        assert [sample["doc"] for sample in samples] == rows
        for sample, row in zip(samples, rows):
            arguments = [sample["arguments"][f"gen_args_{i}"] for i in range(len(sample["arguments"]))]
            if kind == "mc":
                texts = [(row["context"], said) for said in row["continuations"]]
                assert [(a["arg_0"], a["arg_1"]) for a in arguments] == texts
            else:
                (only,) = arguments
                assert only["arg_0"] == row["prompt"] and only["arg_1"]["max_gen_toks"] == 1


@pytest.mark.parametrize("kind", ["mc", "gen"])
def test_what_the_real_harness_recorded_is_our_own_run(kind):
    respondent = {
        "mc": LikelihoodRespondent("organism/skewed", seam="harness"),
        "gen": CausalRespondent("organism/skewed", chat=False, max_new_tokens=1),
    }[kind]
    told = {"benchmark": "math", "limit": 2, "family": "cora", "seed": 0}
    asking = Asking("bare", parse="first_token")
    running = Running(progress=False, strict=None)
    own = prepare(make_variants(QUESTIONS), asking, facts=told).ask(respondent, running)
    got = import_responses(recorded(kind), model=own.name)
    for column in ("respondent", "question_id", "method", "index", "answer", "prediction", "correct", "reply", "error"):
        assert got.table[column].equals(own.table[column]), column
    if kind == "mc":
        for one, other in zip(own.table["scores"], got.table["scores"]):
            np.testing.assert_allclose(one, other, atol=1e-4)
    for what in ("benchmark", "variants", "asked"):
        differ = getattr(own.facts, what).differences(getattr(got.facts, what))
        assert set(differ) <= {"room"}, (what, differ)
    assert got.facts.run.plain().items() >= told.items()
    assert score(own).equals(score(got))


# ---- the folder


FACTS = as_facts({"export": {"tool": "notes", "name": "mine"}, "count": 2, "versions": {"cora_nb": "1"}})


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    def broken():
        yield "one line"
        raise CoraError("the second is refused")

    with pytest.raises(CoraError, match="the second is refused"):
        _write_export(tmp_path / "new", FACTS, {"a.txt": "a", "b.txt": broken()})
    assert list(tmp_path.iterdir()) == []
    folder = tmp_path / "new"
    _write_export(folder, FACTS, {"a.txt": "a", "b.txt": "b"})
    with pytest.raises(CoraError, match="the second is refused"):
        _write_export(folder, FACTS, {"a.txt": "a", "b.txt": broken()})
    assert (folder / "b.txt").read_text() == "b" and len(list(folder.iterdir())) == 3


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "new").mkdir()
    _write_export(tmp_path / "new", FACTS, {"a": ""})
    assert json.loads((tmp_path / "new" / "facts.json").read_text()) == FACTS.plain()


@pytest.mark.parametrize("text", ["[]", "{}", '{"export"', "[" * 100_000, "\x00"])
def test_facts_of_somebody_else(tmp_path, text):
    (tmp_path / "facts.json").write_text(text)
    with pytest.raises(CoraError, match=r"holds something else \(facts.json\); it is left alone"):
        _write_export(tmp_path, FACTS, {"a.txt": ""})


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CoraError, match="cannot be written"):
        _write_export(tmp_path / "file" / "new", FACTS, {"a.txt": "a"})
