"""The commands, as a user runs them: in another process, reading what is printed."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from cora_nb.metrics.cora import score
from cora_nb.responses.table import read_responses
from helpers import BIN, run


def test_run_without_arguments(tmp_path):
    "Both organisms, without a network; a second run with early stopping finds all it needs in the store."
    pytest.importorskip("transformers")
    offline = {name: "http://127.0.0.1:9" for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")}
    code, out, err = run("cora_run", cwd=tmp_path, HF_HUB_OFFLINE="1", **offline)
    assert (
        code == 0
        and "300 questions, 6000 variants" in out
        and "CoRA" in out
        and out.count("6000 replies") == 2
        and "100%" in err
        and re.search(r"CoRA +0\.\d\d \(1\) +0\.\d\d \(2\)", out)
    )
    full = {name: read_responses(tmp_path / "responses" / f"{name}.parquet") for name in ("steady", "skewed")}
    facts = json.loads((tmp_path / "responses" / "steady.json").read_text())
    assert (
        facts == full["steady"].attrs["facts"]
        and facts["run"]["benchmark"] == "math"
        and facts["respondent"]["path"] == "organism/steady"
        and facts["calls"]["asked"] > 5000
    )
    code, out, _ = run("cora_run", "--stop", "cora", "--out", "again", cwd=tmp_path)
    assert code == 0 and "not asked" in out
    for name, responses in full.items():
        again = read_responses(tmp_path / "again" / f"{name}.parquet")
        assert again.attrs["facts"]["calls"]["asked"] == 0 and score(again)["CoRA"] == score(responses)["CoRA"]


def test_a_local_model_answers_once(tmp_path):
    "A language model on this machine: its replies are kept, and early stopping finds them all again."
    pytest.importorskip("transformers")
    from tiny_models import byte_level, save

    save(tmp_path / "model", "llama", byte_level())
    assert run("cora_run", "causal:model,name=tiny", "--limit", 5, cwd=tmp_path)[0] == 0
    full = read_responses(tmp_path / "responses" / "tiny.parquet")
    assert full.attrs["facts"]["calls"]["asked"] > 0 and full.attrs["facts"]["respondent"]["fingerprint"]
    assert (
        run("cora_run", "causal:model,name=tiny", "--limit", 5, "--stop", "cora", "--out", "again", cwd=tmp_path)[0]
        == 0
    )
    again = read_responses(tmp_path / "again" / "tiny.parquet")
    assert again.attrs["facts"]["calls"]["asked"] == 0 and score(again)["CoRA"] == score(full)["CoRA"]


def test_run_is_repeatable_and_table_compares(tmp_path):
    code, _, _ = run(
        "cora_run",
        "simulated:name=a",
        "simulated:name=b",
        "simulated:knows=0.6,position=6/1,name=c",
        "--limit",
        30,
        cwd=tmp_path,
    )
    here = tmp_path / "responses"
    assert code == 0 and read_responses(here / "a.parquet").equals(read_responses(here / "b.parquet"))
    code, out, err = run("cora_table", "a.parquet", "c.parquet", cwd=here)
    assert (code, err) == (0, "") and re.search(r"a +c", out) and "(1)" in out and "(2)" in out
    code, out, _ = run("cora_table", "a.parquet", "c.parquet", "--format", "csv", cwd=here)
    rows = list(csv.reader(io.StringIO(out)))
    assert code == 0 and rows[0][-2:] == ["a", "c"] and any("CoRA" in r for r in rows)
    for format in ("markdown", "latex"):
        assert run("cora_table", "a.parquet", "--format", format, cwd=here)[0] == 0
    code, sure, err = run("cora_table", "a.parquet", "c.parquet", "--ci", 0.95, cwd=here)
    assert (code, err) == (0, "") and re.search(r"MCQA +\d\.\d\d \[\d\.\d\d, \d\.\d\d\] \(\d\)", sure)
    plain = run("cora_table", "a.parquet", "c.parquet", cwd=here)[1]
    assert [re.sub(r" \[[^]]*\]", "", line).split() for line in sure.splitlines()] == [
        line.split() for line in plain.splitlines()
    ]
    head = run("cora_table", "a.parquet", "--ci", 0.95, "--format", "csv", cwd=here)[1].splitlines()[0]
    assert head == "group,score,a,a low,a high"


def test_a_record_can_be_graded_again(tmp_path):
    assert run("cora_run", "simulated:name=a", "--limit", 5, cwd=tmp_path)[0] == 0
    code, out, _ = run(
        "cora_run", "recorded:responses/a.parquet", "--limit", 5, "--parse", "tolerant", "--out", "b", cwd=tmp_path
    )
    assert code == 0 and "0 failed" in out
    code, out, _ = run("cora_run", "recorded:responses/a.parquet", "--limit", 6, "--out", "c", cwd=tmp_path)
    assert code == 0 and "20 failed" in out  # the sixth question was never recorded


def test_a_dry_run_asks_nobody(tmp_path):
    code, out, err = run("cora_run", "chat:gpt-4o-mini", "--dry", "--price", "1/2", cwd=tmp_path, OPENAI_API_KEY="")
    assert code == 0 and "calls" in out and "cost" in out and not (tmp_path / "responses").exists()


def test_import_and_table_print_the_published_layout(tmp_path, shared):
    file = shared / "recorded" / "cat_medqa_medalpaca-7b.xlsx"
    code, out, _ = run("cora_import", file, "--out", "medalpaca.parquet", cwd=tmp_path)
    assert code == 0 and "1273 questions, 58558 replies" in out
    code, out, _ = run("cora_table", "medalpaca.parquet", "--digits", 4, cwd=tmp_path)
    numbers = re.findall(r"\d\.\d{4}", out)
    assert code == 0
    assert numbers == [
        "0.2608",
        "0.3571",
        "0.2435",
        "0.1954",
        "0.2938",
        "0.1830",
        "0.1108",
        "0.0762",
        "0.0299",
        "0.0102",
        "0.7494",
    ]


MISTAKES = [
    (["cora_run", "--benchmark", "maths"], "maths"),
    (["cora_run", "simulated", "--path", "nowhere.csv", "--benchmark", "mine"], "nowhere.csv"),
    (["cora_run", "simulated", "--family", "corra"], "family must be one of"),
    (["cora_run", "oracle"], "a respondent is one of"),
    (["cora_run", "simulated:knows=60"], "knows must be a number from 0 to 1"),
    (["cora_run", "recorded:none.parquet"], "none.parquet: there is no such file"),
    (["cora_run", "chat:"], "needs a model"),
    (["cora_run", "chat:m,concurrency=0"], "concurrency must be"),
    (["cora_run", "causal:nowhere/at-all", "--limit", "1"], "nowhere/at-all" if find_spec("torch") else "needs torch"),
    (["cora_run", "causal:organism/wise"], "organisms are steady and skewed"),
    (["cora_run", "likelihood:organism/steady,adaptation=both"], "adaptation must be one of"),
    (["cora_run", "simulated", "simulated"], "two respondents are called 'simulated'"),
    (["cora_run", "simulated", "--template", "corra"], "corra"),
    (["cora_run", "simulated", "--parse", "wishful"], "wishful"),
    (["cora_run", "simulated", "--limit", "0"], "limit"),
    (["cora_run", "simulated", "--stop", "soon"], "stop must be"),
    (["cora_run", "simulated", "--trials", "0"], "trials"),
    (["cora_run", "simulated", "--shots", "-1"], "-1"),
    (["cora_run", "simulated", "--out", "no/where"], "there is no folder no"),
    (["cora_run", "simulated", "--split", "tset"], "tset"),
    (["cora_run", "simulated", "--malformed", "ignore"], "ignore"),
    (["cora_run", "simulated", "--digits", "-1"], "digits must be"),
    (["cora_run", "simulated", "--out", "note.txt"], "this is no folder"),
    (["cora_run", "simulated", "--dry", "--price", "cheap"], "price must be two numbers"),
    (["cora_run", "simulated", "--benchmark", "mine", "--path", "mine.csv", "--shots", "1"], "--pool"),
    (["cora_run", "simulated", "--store", "note.txt", "--limit", "1"], "not a usable store"),
    (["cora_import", "none.xlsx"], "none.xlsx: there is no such file"),
    (["cora_import", "note.txt"], "note.txt"),
    (["cora_import", "."], "this is a folder"),
    (["cora_import", "fake.xlsx"], "fake.xlsx: not a readable xlsx file"),
    (["cora_import", "fake.xlsx", "--out", "fake.xlsx"], "left alone"),
    (["cora_import", "fake.xlsx", "--out", "note.txt"], "holds no responses; it is left alone"),
    (["cora_table", "none.parquet"], "none.parquet: there is no such file"),
    (["cora_table", "note.txt"], "note.txt: not a Parquet file"),
    (["cora_table", "a.parquet", "--trial", "7"], "no responses of trial 7"),
    (["cora_table", "a.parquet", "--format", "pdf"], "pdf"),
    (["cora_table", "a.parquet", "--format", "styler"], "one of text, markdown, latex, csv"),
    (["cora_table", "a.parquet", "--digits", "99"], "99"),
    (["cora_table", "a.parquet", "--ci", "95"], "ci must be between 0 and 1, such as 0.95, got 95.0"),
    (["cora_table", "."], "this is a folder"),
    (["cora_table", "a.parquet", "a.parquet"], "a.parquet: named twice"),
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    "A folder with a good file and two bad ones."
    folder = tmp_path_factory.mktemp("desk")
    (folder / "note.txt").write_text("hello")
    (folder / "fake.xlsx").write_text("hello")
    (folder / "mine.csv").write_text("question,A,B,answer\nWhat is 1 + 1?,2,3,A\n")
    assert run("cora_run", "simulated:name=a", "--limit", 2, cwd=folder)[0] == 0
    os.rename(folder / "responses" / "a.parquet", folder / "a.parquet")
    return folder


@pytest.mark.parametrize("words,says", MISTAKES, ids=lambda x: " ".join(x) if isinstance(x, list) else None)
def test_a_mistake_gets_one_clear_line(desk, words, says):
    code, out, err = run(*words, cwd=desk)
    assert code == 1 and out == "" and "Traceback" not in err
    assert says in err and len(err.strip().splitlines()) == 1 and err.startswith(words[0] + ": ")


def test_misspelt_options_end_with_code_2(desk):
    code, _, err = run("cora_run", "simulated", "--limits", "3", cwd=desk)
    assert code == 2 and "--limits" in err and "Traceback" not in err
    assert run("cora_table", cwd=desk)[0] == 2


def test_no_markup_from_a_file_reaches_the_terminal_table(desk):
    os.rename(desk / "a.parquet", desk / "a|b.parquet")
    try:
        code, out, _ = run("cora_table", "a|b.parquet", "--format", "markdown", cwd=desk)
        assert code == 0 and "a\\|b" in out
    finally:
        os.rename(desk / "a|b.parquet", desk / "a.parquet")


def test_a_run_in_which_nothing_was_answered_is_no_result(desk):
    code, out, err = run(
        "cora_run", "recorded:a.parquet", "--benchmark", "mine", "--path", "mine.csv", "--out", "z", cwd=desk
    )
    assert (
        code == 1
        and out == ""
        and "all 8 replies failed, the first of them: nothing was recorded" in err
        and "Traceback" not in err
    )


def test_what_is_there_stays_there(desk, tmp_path):
    "Neither another file, nor a pipe, nor the target of a link is replaced by accident."
    here = tmp_path / "responses"
    here.mkdir()
    os.mkfifo(here / "pipe.parquet")
    (here / "text.parquet").write_text("mine")
    (tmp_path / "real.parquet").write_bytes((desk / "a.parquet").read_bytes())
    (here / "link.parquet").symlink_to("../real.parquet")
    for name, says in (("pipe", "no ordinary file"), ("text", "left alone")):
        code, _, err = run("cora_run", f"simulated:name={name}", "--limit", 2, cwd=tmp_path)
        assert code == 1 and says in err
    assert (here / "pipe.parquet").is_fifo() and (here / "text.parquet").read_text() == "mine"
    assert run("cora_run", "simulated:name=link", "--limit", 3, cwd=tmp_path)[0] == 0
    assert (here / "link.parquet").is_symlink() and len(read_responses(tmp_path / "real.parquet")) == 60
    assert (
        sorted(p.name for p in here.iterdir()) == ["link.parquet", "pipe.parquet", "text.parquet"]
        and (tmp_path / "real.json").is_file()
    )


def test_a_terminal_without_the_letters(desk):
    code, out, err = run(
        "cora_table", "a.parquet", "--format", "markdown", cwd=desk, PYTHONIOENCODING="cp1252", PYTHONUTF8="0"
    )
    assert code == 0 and "Traceback" not in err


def test_ctrl_c_is_one_line(desk):
    "Interrupted once its progress bar shows. The shell that runs the tests may have told its children to ignore interrupts."
    import signal

    command = [str(BIN / "cora_run"), "simulated", "--trials", "100", "--out", "slow"]
    done = subprocess.Popen(
        command,
        cwd=desk,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    seen = b""
    while b"replies" not in seen:
        seen += done.stderr.read(1)
    done.send_signal(signal.SIGINT)
    _, err = done.communicate(timeout=120)
    assert (
        done.returncode == 1
        and b"Traceback" not in err
        and b"cora_run: interrupted" in err
        and not list((desk / "slow").iterdir())
    )


def test_a_reader_that_goes_away_is_no_error(desk):
    shell = f"{BIN / 'cora_table'} a.parquet | head -1"
    done = subprocess.run(shell, shell=True, cwd=desk, capture_output=True, text=True)
    assert "Traceback" not in done.stderr


HEAVY = ("torch", "transformers", "datasets", "openai", "matplotlib", "seaborn", "scipy.stats", "sklearn")


@pytest.mark.parametrize(
    "module",
    [
        "cora_nb",
        "cora_nb.metrics.cora",
        "cora_nb.metrics.guessing",
        "cora_nb.report.tables",
        "cora_nb.variants.families",
        "cora_nb.respondents.chat",
        "cora_nb.respondents.local",
        "cora_nb.respondents.causal",
        "cora_nb.respondents.likelihood",
        "cora_nb.cli.main",
    ],
)
def test_imports_stay_light(module):
    code = f"import sys, {module}; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split() == []
