"""What the README says to type works as typed: its table, its four lines for one's own model, its CSV file.

The commands are read out of the README. What stands there for something of the reader's own is put in its place: a
server on this machine, a tiny model at `path/to/model`, two small runs, logs that were recorded. Samples are of two
questions. All runs in this process, and needs no network.
"""

import re
import shlex
import shutil
import sys
from configparser import ConfigParser
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import cora_nb as cn
from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import data_path
from faulty_server import Answer, FaultyServer, completion

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| (?!what you have|-)(.+?) \| (.+) \|$", README, re.M))
ADDRESS = "http://127.0.0.1:8000/v1"  # as in the README
RIGHT = {q.text: q.choices[q.answer] for q in math_benchmark()} | {"What is 1 + 1?": "2"}


def blocks(language):
    "The code blocks of a language."
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def knows_all(asked):
    "A model that knows all sums and says so in a sentence."
    assert asked.headers["authorization"] == "Bearer sk-0123456789abcdef" and asked.body["model"] == "MODEL"
    right = RIGHT[re.findall(r"(?m)^Question: (.*)$", asked.prompt)[-1]]
    shown = {choice: letter for letter, choice in re.findall(r"(?m)^(?:Choices: )?([A-Z])\. (.*)$", asked.prompt)}
    return Answer(body=completion(f"The correct answer is **{shown.get(right) or shown['None of the above']}**."))


@pytest.fixture(scope="module")
def server():
    with FaultyServer(knows_all) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    "A reader's folder with what the README takes for granted."
    made = tmp_path_factory.mktemp("desk")
    shutil.copytree(data_path("models", "steady"), made / "path" / "to" / "model")
    (made / "mine.py").write_text("def f(text):\n    return 'B'\n")
    (made / "mine.csv").write_text(*blocks("text"), encoding="utf-8")
    variants = cn.make_variants(cn.load_benchmark("math")[:30])
    for name, knows in (("steady", 0.95), ("skewed", 0.6)):
        who = cn.SimulatedRespondent(name=name, knows=knows, seed=1)
        cn.write_responses(cn.evaluate(who, variants, progress=False), made / "responses" / "math" / name)
    recorded = ROOT / "tests" / "recorded"
    (log,) = (recorded / "lm_eval_ours").glob("samples_cora_mc_*.jsonl")
    shutil.copy(log, made / "samples_TASK_STAMP.jsonl")
    shutil.copy(recorded / "inspect_ours" / "cora_style_cora_1_epoch.eval", made / "LOG.eval")
    return made


@pytest.fixture
def desk(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    monkeypatch.setenv("LOCAL_API_KEY", "sk-0123456789abcdef")
    return folder


def typed(line, monkeypatch):
    "The exit status of a command, run as its installed script runs it."
    settings = ConfigParser(interpolation=None)
    settings.read(ROOT / "settings.ini", encoding="utf-8")
    scripts = dict(script.split("=") for script in settings["DEFAULT"]["console_scripts"].split())
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    module, function = scripts[sys.argv[0]].split(":")
    try:
        getattr(import_module(module), function)()
    except SystemExit as end:
        return end.code or 0
    return 0


@pytest.mark.slow
@pytest.mark.parametrize("what", ROWS)
def test_each_row_works_as_typed(desk, server, monkeypatch, capsys, what):
    monkeypatch.setenv("LOCAL_BASE_URL", server.url)
    lines = [line for line in re.findall(r"`([^`]+)`", ROWS[what]) if line.startswith("cora_")]
    assert lines
    for line in lines:
        if ("LOG.eval" in line or "inspect:" in line) and not find_spec("inspect_ai"):
            continue  # an extra, as the row says
        line = line.replace("anthropic/MODEL", "openai-api/local/MODEL,name=other")
        line = re.sub(r"--sample \d+", "--sample 2", line.replace(ADDRESS, server.url))
        assert typed(line, monkeypatch) == 0, line
        out = capsys.readouterr().out
        assert out and ("chat:" not in line or "cora_run" not in line or re.search(r"CoRA +1\.00", out)), out


def test_a_model_and_questions_of_ones_own(desk, server):
    (mine,) = [block for block in blocks("python") if block.startswith("models = [")]
    assert len(mine.splitlines()) == 5
    names = {"cn": cn}
    exec(mine.replace(ADDRESS, server.url), names)
    questions = eval(re.search(r"`(cn\.load_benchmark\(\"mine.*?)`", README)[1], names)
    assert [q.choices[q.answer] for q in questions] == ["2"]
    runs = [cn.evaluate(model, cn.make_variants(questions), progress=False) for model in names["models"]]
    assert runs[0].table["correct"].all() and {len(run.table) for run in runs} == {14}
    assert set(runs[1].table["reply"]) == {"A"}


def test_it_is_short():
    assert len(README.encode()) <= 6000 and len(ROWS) == 8
