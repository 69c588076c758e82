"""What README's table "Your own model, your own benchmark, or somebody's replies" says to type works as typed.

The commands are read out of the table. What stands there for something of the reader's own is put in its place: a
server on this machine under the address of the table, a model's folder at `path/to/model`, `mine.csv`, `mine.py`,
`file.xlsx`. A few questions are asked where the table means all. Nothing needs a network.
"""

import json
import re
import shlex
import shutil
from configparser import ConfigParser
from pathlib import Path

import pandas as pd
import pytest

import cora_nb as cn
from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import data_path
from cora_nb.responses.files import read_responses
from faulty_server import Answer, FaultyServer, completion
from helpers import run, slow_after

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "http://127.0.0.1:8000/v1"  # as in the table
NO_COMMANDS = {
    "OPENAI_API_KEY",
    "path=",
    "compare",
    "latex",
    "csv",
    "html",
    "embeddings",
    "inspect",
    "workers",
    "postgres",  # extras
    "--log_samples",  # an option of another tool
    "--scheduler tcp://...",  # these need a cluster, an array of jobs, or a database: tests/runs/test_workers.py,
    "--shard 3/64",  # tests/cli/test_join.py,
    "cora join responses/math/NAME",
    "--store postgresql://...",  # tests/runs/test_postgres_store.py,
    "cora store",  # tests/cli/test_cora_store.py
}  # code in the table that is named only
FEW = {"cora run": ["--limit", "3"], "cora mcqa_plus": ["--limit", "2"], "cora embeddings": ["--limit", "5"]}


def table_rows():
    "First column -> the pieces of code in the second one."
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Your own model")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (?!what you have|-)(.+?) \| (.+) \|$", section, re.M)
    return {what: re.findall(r"`([^`]+)`", how) for what, how in rows}


def scripts():
    settings = ConfigParser(interpolation=None)
    settings.read(ROOT / "settings.ini", encoding="utf-8")
    return {line.split("=")[0] for line in settings["DEFAULT"]["console_scripts"].split()}


def typed_commands(pieces):
    "What a reader of a row types: its commands, each alternative and each option that is named beside one."
    commands, options = [], []
    for piece in pieces:
        first = piece.split()[0]
        if piece in NO_COMMANDS or piece.startswith("inspect eval "):  # tests/interop/test_inspect_tasks.py
            continue
        elif first in scripts():
            commands.append(piece)
        elif first.startswith("--"):  # beside the last command
            options.append(f"{commands[-1]} {piece}")
            if first == "--format":
                options += [f"{commands[-1]} --format {other}" for other in ("latex", "csv", "html")]
        elif re.match(r"(chat|causal|likelihood|simulated|recorded):", first):  # in place of the respondent
            options.append(f"{commands[-1].split()[0]} {piece}")
        else:
            assert piece.startswith("load_benchmark("), f"nobody tests {piece!r} of the table"
    return commands + options


ROWS = table_rows()
TYPED = {what: typed_commands(pieces) for what, pieces in ROWS.items()}
IMPORTS = [what for what, typed in TYPED.items() if typed and {t.split()[0] for t in typed} == {"cora import"}]
QUICK = [what for what in IMPORTS if "inspect" not in what]  # whose import takes seconds
RIGHT = {q.text: q.choices[q.answer] for q in math_benchmark()} | {"What is 1 + 1?": "2", "What is 2 + 2?": "4"}

MINE = """
from cora_nb.respondents.protocol import Reply
from cora_nb.variants.operators import make_variant

def my_family(question, seed=0):
    order = tuple(range(question.n_choices))
    yield make_variant(question, "mine", "original", 0, order)
    yield make_variant(question, "mine", "reversed", 0, order[::-1])

def my_rule(reply, choices):
    return "ABCDEFGH".find(reply.split()[-1])

class MyRespondent:
    name = "mine"
    def describe(self):
        return {"respondent": "mine"}
    def request(self, prompt):
        return {"text": prompt.text}
    async def answer(self, prompts):
        for i, prompt in enumerate(prompts):
            yield i, Reply("I say " + prompt.variant.labels[prompt.variant.answer])
"""


def plan(asked):
    "A model that knows all sums and says so in a sentence."
    assert asked.headers["authorization"] == "Bearer sk-0123456789abcdef" and asked.body["model"] == "MODEL"
    right = RIGHT[re.findall(r"(?m)^Question: (.*)$", asked.prompt)[-1]]
    shown = {choice: letter for letter, choice in re.findall(r"(?m)^(?:Choices: )?([A-Z])\. (.*)$", asked.prompt)}
    return Answer(body=completion(f"The correct answer is **{shown.get(right) or shown['None of the above']}**."))


def make_desk(folder):
    "What the table takes for granted."
    shutil.copytree(data_path("models", "steady"), folder / "path" / "to" / "model")
    (folder / "mine.csv").write_text(
        "question,A,B,C,answer\nWhat is 1 + 1?,2,3,4,A\nWhat is 2 + 2?,3,4,5,B\n", encoding="utf-8"
    )
    (folder / "mine.py").write_text(MINE)
    entry = {"choices": {"A": "two", "B": "three"}, "correct_choice": "A", "model_choice": "A", "output": "A"}
    cell = json.dumps({"standard_MC": [entry]})
    pd.DataFrame({"question": ["What is 1 + 1?"], "expanded_evaluation": [cell]}).to_excel(
        folder / "file.xlsx", index=False
    )
    recorded = ROOT / "tests" / "recorded"
    (log,) = (recorded / "lm_eval_ours").glob("samples_cora_mc_*.jsonl")
    shutil.copy(log, folder / "samples_TASK_STAMP.jsonl")
    shutil.copy(recorded / "inspect_ours" / "cora_style_cora_1_epoch.eval", folder / "LOG.eval")
    (folder / "my_replies.csv").write_text(
        "question_id,method,index,n_choices,answer,reply\nq1,original,0,4,A,A\nq2,original,0,4,B,A\n"
    )
    return folder


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    "A reader's folder, in which `cora run` has been typed before."
    folder = make_desk(tmp_path_factory.mktemp("desk"))
    assert run("cora run", *FEW["cora", "run"], cwd=folder)[0] == 0
    return folder


@pytest.mark.parametrize("what", QUICK + slow_after(0, [w for w, typed in TYPED.items() if typed and w not in QUICK]))
def test_each_row_works_as_typed(desk, tmp_path, what):
    "Options beside a command come after it, and write to a place of their own: another setting is another run."
    offline = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    env = {"OPENAI_API_KEY": "sk-0123456789abcdef", "NO_PROXY": "127.0.0.1", "HF_HUB_OFFLINE": "1", **offline}
    env["PYTHONPATH"] = str(ROOT)  # a worker looks in its folder first, where these tests keep a cache called cora_nb
    with FaultyServer(plan) as server:
        for number, command in enumerate(TYPED[what]):
            name, *words = shlex.split(command.replace(ADDRESS, server.url).replace(" PATH", " path/to/model"))
            if name in FEW and "mine.csv" not in words:
                words += FEW[name]
            if name in FEW:
                words += ["--out", tmp_path / str(number)]
            code, out, err = run(name, *words, cwd=desk, **env)
            assert code == 0 and out and "Traceback" not in err, f"{command}\n{out}\n{err}"
            if command.startswith("cora run") and "base_url" in command and "--" not in command:
                assert re.search(r"MCQA +1\.00", out) and re.search(r"CoRA +1\.00", out), out
            if "mine.py" in command:
                mine = read_responses(tmp_path / str(number) / "math" / "mine")
                assert mine.table["correct"].all() and set(mine.table["method"]) == {"original", "reversed"}


def test_every_row_is_tested():
    "Rows about Python are tested below; all others have a command."
    assert len(ROWS) >= 9 and sum(map(len, TYPED.values())) >= 14
    assert [what for what, commands in TYPED.items() if not commands] == [what for what in ROWS if "MedQA" in what]


def test_load_benchmark_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(make_desk(tmp_path))
    (call,) = [p for pieces in ROWS.values() for p in pieces if p.startswith("load_benchmark") and "mine.csv" in p]
    questions = eval(call, {"load_benchmark": cn.load_benchmark})
    assert [q.choices[q.answer] for q in questions] == ["2", "4"]


def test_the_benchmarks_that_are_named(shared):
    "Each has a layout, and those at hand are read from a folder laid out like the hub."
    from cora_nb.benchmarks.layouts import LAYOUTS

    (what,) = [what for what in ROWS if "MedQA" in what]
    assert ROWS[what] == ['load_benchmark("medqa")', "path="]
    short = {"commonsenseqa": "csqa", "mmlu-redux": "mmlu_redux"}
    names = [short.get(n.lower(), n.lower()) for n in what.split(", ")]
    assert set(names) <= set(LAYOUTS.names()), LAYOUTS.names()
    there = {"medqa": "bigbio__med_qa", "csqa": "tau__commonsense_qa"}
    for name, folder in there.items():
        if (shared / "hub" / folder).is_dir():
            assert len(cn.load_benchmark(name, path=shared / "hub", limit=5)) == 5


def test_the_calls_that_cora_takes_are_said_with_the_size():
    "The README and the how-to give the multiples of accuracy's calls that the table of runs/stopping measured."
    table = (ROOT / "nbs" / "runs" / "stopping.ipynb").read_text(encoding="utf-8")
    rows = re.findall(r"\| (middling|very strong) \| (1,273|14,042) x \d+ (?:\|[^|]*){4}\| ([\d.]+) \|", table)
    times = {(kind, size): float(value) for kind, size, value in rows}
    assert len(times) == 4
    large, small = ([times[kind, size] for kind in ("middling", "very strong")] for size in ("14,042", "1,273"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    words = f"{large[0]} to {large[1]} times the calls of plain accuracy at MMLU's size (14,042 questions)"
    assert f"{words} and {small[0]:.0f} to {small[1]:.0f} times at MedQA's (1,273)" in readme
    howto = (ROOT / "nbs" / "howto" / "fewer_calls.ipynb").read_text(encoding="utf-8")
    assert f"{large[0]} to {large[1]} times the calls" in howto and f"{small[0]:.1f} to {small[1]:.1f} times" in howto
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "nbs").rglob("*.ipynb")]
    told = [p.name for p in pages if re.search(r"CoRA (at|for) (about )?the price of accuracy", p.read_text())]
    assert told == []
