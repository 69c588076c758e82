"""cora_export: the same questions as cora_run asks, and one line for what is missing or does not belong."""

import json

import pytest
from datasets import load_dataset

from cora_nb.cli.importing import cora_export
from cora_nb.cli.run import cora_run
from cora_nb.responses.files import read_facts, read_responses
from cora_nb.responses.shown import shown_variants
from cora_nb.variants.files import row_variants


def refusal(*words, **options):
    "The line with which the command ends."
    with pytest.raises(SystemExit) as e:
        cora_export(*words, **options)
    return e.value.code


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


OPTIONS = {"limit": 3, "family": "cyclic", "template": "bare", "shots": 2, "shots_as": "like_variant", "seed": 4}


def test_none_of_the_above_in_other_words(place, capsys):
    cora_export("lm-eval", "task", limit=2, nota="以上都不对")
    cora_run(["simulated:name=guesser"], limit=2, nota="以上都不对", store="none")
    exported = json.loads((place / "task" / "facts.json").read_text())
    run = read_responses(next(place.glob("responses/math/*")))
    assert run.facts.variants.recipe.options == {"nota": "以上都不对"}
    assert exported["variants"] == run.facts.plain()["variants"]
    shown = {c for v in shown_variants(run).values() for c in v.choices}
    assert "以上都不对" in shown and "None of the above" not in shown
    says = "--nota: the family 'cyclic' has no None of the above to word"
    assert says in refusal("lm-eval", "other", family="cyclic", nota="以上都不对")
    assert "nota must be a non-empty text, got ' '" in refusal("lm-eval", "other", nota=" ")
    with pytest.raises(SystemExit, match=says):
        cora_run(["simulated"], family="cyclic", nota="以上都不对", limit=1)
    with pytest.raises(SystemExit, match="family must be one of"):
        cora_run(["simulated"], family="cycle", nota="以上都不对", limit=1)
    assert not (place / "other").exists()


def test_the_prompts_are_those_of_a_run(place, capsys):
    cora_export("lm-eval", "task", **OPTIONS)
    cora_run(["simulated:name=guesser"], **OPTIONS)
    exported = json.loads((place / "task" / "facts.json").read_text())
    run = read_facts(next(place.glob("responses/math/*"))).plain()
    for what in ("benchmark", "variants", "asked"):
        assert exported[what] == run[what], what
    commands = [facts["run"].pop("command") for facts in (exported, run)]
    assert exported["run"] == run["run"] and commands[0]["command"] == "cora_export"
    cora_export("lm-eval", "task", **OPTIONS)  # the same again
    with pytest.raises(SystemExit, match=r"another export here already, with other seed \(4 there, 5 now\)"):
        cora_export("lm-eval", "task", **OPTIONS | {"seed": 5})


def test_what_it_says(place, capsys):
    cora_export("lm-eval", "tasks/mine", limit=2, name="mine", parse="first_token")
    out = capsys.readouterr().out
    assert out.splitlines()[:2] == ["math: 2 questions, 40 variants of the family cora", "lm-eval: tasks/mine"]
    assert "lm_eval run" in out and "--tasks mine_mc,mine_gen" in out and "--include_path tasks/mine" in out
    rows = [json.loads(line) for line in (place / "tasks/mine/variants.jsonl").read_text().splitlines()]
    assert len(row_variants(rows, "rows")) == 40
    cora_export("lm-eval", "tasks/mine", limit=2, name="mine", parse="first_token")  # the same again
    said = refusal("lm-eval", "tasks/mine", limit=3, name="mine")
    assert "another export here already, with other parse (first_token there, careful now), limit (2 there, 3" in said


@pytest.mark.parametrize(("words", "options", "why"), [
    (("lm-eval", "out"), {"run": "responses/x"}, "lm-eval exports the questions of a benchmark"),
    (("helm", "out"), {}, "kind must be one of lm-eval, hub"),
    (("lm-eval", "out"), {"family": "none"}, "family must be one of"),
    (("lm-eval", "out"), {"family": "formats"}, "it shows no choices (form 'lfgq')"),
    (("lm-eval", "out"), {"name": "a b"}, "the name of a task"),
    (("lm-eval", "out"), {"adaptation": "x"}, "adaptation must be one of joint-label, joint-desc, separate"),
    (("lm-eval", "out"), {"path": "none.csv", "benchmark": "mine"}, "none.csv"),
])  # fmt: skip
def test_one_line(place, words, options, why):
    line = refusal(*words, limit=2, **options)
    assert line.startswith("cora_export: ") and why in line and "\n" not in line
    assert not (place / "out").exists()


def test_runs_as_a_data_set(place, capsys):
    cora_run(["simulated:name=guesser"], limit=3)
    capsys.readouterr()
    (run,) = place.glob("responses/math/*")
    cora_export("hub", "out", run=str(run))
    assert capsys.readouterr().out.startswith("hub: out\n  out/README.md: fill in the licence")
    assert read_responses(place / "out/guesser").equals(read_responses(run))
    rows = load_dataset(str(place / "out"), "responses", cache_dir=str(place / "cache"))
    assert list(rows) == ["guesser"] and len(rows["guesser"]) == 60
    asked = load_dataset(str(place / "out"), "questions", cache_dir=str(place / "cache"))
    assert len(asked["guesser"]) == 3
    assert refusal("hub", "b") == "cora_export: hub exports runs: say which with --run FOLDER"
    assert refusal("hub", "b", run=str(run), family="cyclic") == "cora_export: hub takes no --family"
    assert "there is no such file" in refusal("hub", "b", run="none")
