"""The command `cora mcqa_plus`, as a user runs it."""

import json
import os
import re
import signal
import subprocess

import pandas as pd
import pytest

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.papers.mcqa_plus import mcqa_plus_results
from cora_nb.responses.files import read_responses
from cora_nb.runs.statements import save_statements, statements_table
from helpers import command, kill_at_reply, run, slow_after, stored_replies

RUNS = ("mcqa_plus", "nota_answer", "options_2", "options_3", "options_6", "options_8", "options_10", "misleading")


def read(folder, name):
    "The runs of a respondent."
    return {r: read_responses(folder / "math" / name / r) for r in RUNS if (folder / "math" / name / r).exists()}


def test_tables_files_and_numbers(tmp_path):
    "What is printed and what is in the CSV is what the run folders say."
    ann, bob = "simulated:knows=0.5,position=3/1,name=a", "simulated:knows=1,name=b"
    code, out, err = run("cora mcqa_plus", ann, bob, "--limit", 30, cwd=tmp_path)
    assert code == 0 and [f"Table {n}" in out for n in range(2, 9)] == [True] * 7 and "30 questions" in out
    for name in "ab":
        runs = read(tmp_path / "responses", name)
        assert set(runs) == set(RUNS if name == "a" else RUNS[:-1]), "what knows everything is misled by nothing"
        expected = mcqa_plus_results(runs)
        printed = pd.read_csv(tmp_path / "responses" / "math" / name / "mcqa_plus_tables.csv")
        assert printed["value"].tolist() == pytest.approx(expected["value"].tolist(), nan_ok=True)
        assert printed["score"].tolist() == expected["score"].tolist()
        assert sorted(p.name for p in (tmp_path / "responses" / "math" / name).iterdir()) == sorted(
            [*runs, "mcqa_plus_tables.csv"]
        )
    accuracy = mcqa_plus_results(read(tmp_path / "responses", "a"), tables=[7]).iloc[0]["value"]
    assert f"{100 * accuracy:.1f} [" in out and "100.0 [" in out
    facts = {name: r.facts.run.step for name, r in read(tmp_path / "responses", "a").items()}
    assert facts == {name: name for name in RUNS}


@pytest.mark.slow
def test_killed_and_run_again(tmp_path):
    "A language model on this machine, killed in the middle: the second time only the rest is asked."
    pytest.importorskip("transformers")
    words = ("cora mcqa_plus", "causal:organism/skewed", "--limit", "40")
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    first = subprocess.Popen(command(*words), cwd=tmp_path, env=env, **quiet)
    variants = 14 * 40  # of the first run: with more replies than that in the store, it is over
    store = tmp_path / "cora_nb" / "replies.sqlite"
    kept = kill_at_reply(first.pid, store, variants + 60, lambda: first.poll() is None)
    assert first.wait() == -signal.SIGKILL
    code, out, err = run(*words, cwd=tmp_path)
    assert code == 0 and "Table 8" in out, err
    runs = read(tmp_path / "responses", "skewed")
    asked = {name: r.facts.calls["asked"] for name, r in runs.items()}
    assert asked["mcqa_plus"] == 0 and asked["options_10"] > 100 and "misleading" in runs
    assert kept >= variants + 60 and kept + sum(asked.values()) == stored_replies(store)
    code, again, _ = run(*words, "--out", "again", cwd=tmp_path)
    assert re.search(rf"\n  0 asked, \d+ from {re.escape(str(store))} \(--store none asks again\)\n", again)
    told = re.compile(r"\d+ asked, \d+ from")
    assert told.sub("", again.replace("again/math", "responses/math").replace(" --out again", "")) == told.sub("", out)
    assert all(r.facts.calls["asked"] == 0 for r in read(tmp_path / "again", "skewed").values())


@pytest.mark.slow
def test_other_runs_are_not_written_over(tmp_path):
    "Runs with other facts are refused before anything is asked, for all respondents; `cora run` has a place beside."
    words = ("cora mcqa_plus", "simulated:knows=0.5,name=a", "--limit", 5)
    assert run(*words, cwd=tmp_path)[0] == 0
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    code, out, err = run("cora mcqa_plus", "simulated:name=new", *words[1:], "--seed", 1, cwd=tmp_path)
    assert code == 1 and not out and "there is another run here already, with other seed (0 there, 1 now);" in err
    assert len(err.strip().splitlines()) == 1 and "replies/s" not in err
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    assert run("cora run", "simulated:knows=0.5,name=a", "--limit", 5, cwd=tmp_path)[0] == 0
    assert run(*words, cwd=tmp_path)[0] == 0
    assert len(read_responses(tmp_path / "responses" / "math" / "a")) == 100


def test_a_plan_costs_nothing(tmp_path):
    code, out, err = run("cora mcqa_plus", "chat:gpt-4o-mini", "--dry", "--limit", 10, "--price", "1/2", cwd=tmp_path)
    assert code == 0 and "cost" in out and "answered wrongly" in out and not (tmp_path / "responses").exists()


@pytest.mark.slow
def test_a_sample_is_printed_and_kept_in_the_facts(tmp_path):
    words = ("cora mcqa_plus", "simulated", "--sample", 12, "--seed", 2)
    code, out, err = run(*words, "--dry", cwd=tmp_path)
    assert (
        code == 0 and out.startswith("math: 12 questions (a random sample, seed 2)\n") and "cora mcqa_plus:" not in err
    )
    code, out, err = run(*words, cwd=tmp_path)
    assert code == 0 and out.startswith("math: 12 questions (a random sample, seed 2)\n"), err
    facts = [json.loads(f.read_text())["run"] for f in (tmp_path / "responses").rglob("facts.json")]
    assert facts and all(f["sample"] == 12 and f["seed"] == 2 for f in facts)


@pytest.mark.slow
def test_statements(tmp_path):
    "A file of statements is used; one that a person may have changed is never written over."
    questions = load_benchmark("math")[:5]
    found = {
        (q.id, i): (f"Is it true that {c} is the answer to {q.text}", 0, None, "")
        for q in questions[:3]
        for i, c in enumerate(q.choices)
    }
    found |= {(q.id, i): (None, 0, None, "none", False) for q in questions[3:] for i in range(4)}
    save_statements(statements_table(questions, found), tmp_path / "mine.csv")
    code, out, err = run("cora mcqa_plus", "simulated", "--limit", 5, "--statements", "mine.csv", cwd=tmp_path)
    assert code == 0, err
    folder = tmp_path / "responses" / "math"
    methods = read_responses(folder / "simulated" / "mcqa_plus").table["method"].value_counts()
    assert methods["true_false_written"] == 12 and methods["true_false"] == 8 and "true/false, written" in out
    (folder / "statements.csv").write_text("by hand\n")
    code, out, err = run("cora mcqa_plus", "simulated", "--limit", 5, "--writer", "simulated:name=w", cwd=tmp_path)
    assert code == 1 and "--statements" in err and len(err.strip().splitlines()[-1]) < 300
    assert (folder / "statements.csv").read_text() == "by hand\n"


@pytest.mark.slow
def test_a_writer_that_cannot_write(tmp_path):
    "All statements are refused: true-or-false questions are made by rule, and that is said."
    code, out, err = run("cora mcqa_plus", "simulated", "--limit", 4, "--writer", "simulated:name=w", cwd=tmp_path)
    assert code == 0, err
    assert "w wrote true-or-false questions for 0 of 4 questions" in out
    assert "written" not in out.split("Table 4")[1]


@pytest.mark.parametrize(
    "words, says",
    slow_after(
        1,
        [
            (
                ["--limit", "3", "--writer", "simulated", "--statements", "x.csv"],
                "--writer and --statements exclude each other",
            ),
            (["--statements", "missing.csv"], "missing.csv"),
            (["--digits", "x"], "digits"),
            (["--shots", "5", "--path", "q.csv"], "q.csv"),
            (["--out", "no/where"], "there is no folder no"),
        ],
    ),
)
def test_mistakes(tmp_path, words, says):
    code, out, err = run("cora mcqa_plus", "simulated", *words, cwd=tmp_path)
    assert code in (1, 2) and says in err and "Traceback" not in err and not out
