"""cora export: the same questions as cora run asks, and one line for what is missing or does not belong."""

import json

import pytest

from cora_nb.cli.exchange import cora_export
from cora_nb.cli.run import cora_run
from cora_nb.responses.columns import UNSENT, in_state
from cora_nb.responses.files import read_facts, read_responses
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


def test_the_prompts_are_those_of_a_run(place, capsys):
    cora_export("lm-eval", "task", **OPTIONS)
    cora_run(["simulated:name=guesser"], **OPTIONS)
    exported = json.loads((place / "task" / "facts.json").read_text())
    run = read_facts(next(place.glob("responses/math/*"))).plain()
    for what in ("benchmark", "variants", "asked"):
        assert exported[what] == run[what], what
    commands = [facts["run"].pop("command") for facts in (exported, run)]
    assert exported["run"] == run["run"] and commands[0]["command"] == "cora_export"
    cora_export.typed(["--config", "task/facts.json"])  # the same again
    with pytest.raises(SystemExit, match=r"another export here already, with other seed \(4 there, 5 now\)"):
        cora_export.typed(["--config", "task/facts.json", "--seed", "5"])


def test_what_it_says(place, capsys):
    cora_export("lm-eval", "tasks/mine", limit=2, name="mine", parse="first_token")
    out = capsys.readouterr().out
    assert out.splitlines()[:2] == ["math: 2 questions, 40 variants of the family cora", "lm-eval: tasks/mine"]
    assert "lm_eval run" in out and "--tasks mine_mc,mine_gen" in out and "--include_path tasks/mine" in out
    rows = [json.loads(line) for line in (place / "tasks/mine/variants.jsonl").read_text().splitlines()]
    assert len(row_variants(rows, "rows")) == 40
    cora_export("lm-eval", "tasks/mine", limit=2, name="mine", parse="first_token")  # the same again
    said = refusal("lm-eval", "tasks/mine", limit=3, name="mine")
    assert "another export here already, with other parse (first_token there, lenient now), limit (2 there, 3" in said


@pytest.mark.parametrize(("words", "options", "why"), [
    (("lm-eval", "out"), {"run": "responses/x"}, "lm-eval exports the questions of a benchmark"),
    (("helm", "out"), {}, "exporter must be one of"),
    (("lm-eval", "out"), {"family": "none"}, "family must be one of"),
    (("lm-eval", "out"), {"family": "formats"}, "it shows no choices (form 'lfgq')"),
    (("lm-eval", "out"), {"name": "a b"}, "the name of a task"),
    (("lm-eval", "out"), {"adaptation": "x"}, "adaptation must be one of joint-label, joint-desc, separate"),
    (("lm-eval", "out"), {"path": "none.csv", "benchmark": "mine"}, "none.csv"),
])  # fmt: skip
def test_one_line(place, words, options, why):
    line = refusal(*words, limit=2, **options)
    assert line.startswith("cora export: ") and why in line and "\n" not in line
    assert not (place / "out").exists()


CARD = """
from cora_nb.interop.formats import ExportedFiles


def card(runs, folder, name="card"):
    from pathlib import Path
    Path(folder).mkdir()
    Path(folder, "README.md").write_text(f"# {name}: {', '.join(runs)}\\n\\n```python\\nload('FOLDER')\\n```\\n")
    return ExportedFiles(Path(folder), ["README.md"], ["fill in the licence"])


def rows(variants, folder):
    return ExportedFiles(folder, [], [])
"""


def test_a_kind_that_exports_a_run(place, capsys):
    (place / "mine.py").write_text(CARD)
    cora_run(["simulated:name=guesser"], limit=3)
    capsys.readouterr()
    run = str(next(place.glob("responses/math/*")))
    cora_export("mine.py:card", "out", run=run, name="his")
    out = capsys.readouterr().out
    assert out.splitlines() == [
        "guesser: 3 questions, 60 replies", "mine.py:card: out", "  fill in the licence", "", "load('out')"
    ]  # fmt: skip
    assert (place / "out" / "README.md").read_text().startswith("# his: guesser")
    cora_run(["simulated:knows=0,name=early"], limit=3, stop="cora")
    cora_export("mine.py:card", "early", run=str(next(place.glob("responses/math/early"))))
    unasked = int(in_state(read_responses(place / "responses/math/early").table, *UNSENT).sum())
    assert (
        unasked
        and f"early: 3 questions, {60 - unasked} replies, {unasked} prompts not asked\n" in capsys.readouterr().out
    )
    assert refusal("mine.py:card", "b") == "cora export: mine.py:card exports runs: say which with --run FOLDER"
    assert refusal("mine.py:card", "b", run=run, family="cyclic") == "cora export: mine.py:card takes no --family"
    assert refusal("mine.py:card", "b", run=run, benchmark="medqa") == "cora export: mine.py:card takes no --benchmark"
    assert "there is no such file" in refusal("mine.py:card", "b", run="none")
    assert refusal("mine.py:rows", "b", shots=2) == "cora export: mine.py:rows takes no --shots"
    assert refusal("mine.py:rows", "b", name="x") == "cora export: mine.py:rows takes no --name"
