"""cora run --shard, --workers and --scheduler, and cora join: the run of one process, and what does not go together."""

import inspect
from dataclasses import fields
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cora_nb.cli.exchange import cora_join
from cora_nb.cli.options import ShowOptions
from cora_nb.cli.run import cora_run
from cora_nb.responses.files import read_facts, read_responses
from cora_nb.responses.runs import concat
from cora_nb.runs.shards import shards_there
from cora_nb.runs.store import Store
from helpers import command, run
from slurm_stand_in import jobs_running, slurm_stand_in

ANN = ["simulated:name=ann,knows=0.6"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    "Each test in a folder of its own, with its own cache."
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def refused(capsys, ask, **given):
    "The line with which a command ends."
    with pytest.raises(SystemExit) as e:
        ask(**given)
    capsys.readouterr()
    return str(e.value)


def test_shards_joined_are_the_run_of_one_command(capsys):
    for n in (2, 1, 3):
        cora_run(ANN, limit=10, shard=f"{n}/3", seed=4)
    said = capsys.readouterr().out
    assert "2 of 3 shards, missing: 3; then: cora join responses/math/ann" in said and "3 of 3 shards, all are" in said
    assert not os.path.exists("responses/math/ann/responses.parquet") and "MCQA" not in said
    cora_join(["responses/math/ann"])
    joined_table = capsys.readouterr().out.split("\n\n")[0]
    cora_run(ANN, limit=10, seed=4, out="alone")
    assert joined_table in capsys.readouterr().out and "CoRA" in joined_table
    joined, alone = read_responses("responses/math/ann"), read_responses("alone/math/ann")
    assert joined.table.equals(alone.table) and joined.questions.equals(alone.questions)
    assert joined.facts.differences(alone.facts) == [] and joined.facts.calls == alone.facts.calls
    told = [r.facts.run.command for r in (joined, alone)]
    assert told[0] == {**told[1], "out": "responses"}  # no shard: it repeats the whole run
    cora_run(ANN, limit=10, seed=4)  # and goes on in the same folder


def test_missing_shards_come_with_the_command_that_asks_them(capsys):
    for n in (1, 2, 6):
        cora_run(ANN, limit=12, shard=f"{n}/6", family="cyclic")
    line = refused(capsys, cora_join, folders=["responses/math/ann"])
    assert "3 of 6 shards are missing: 3-5 (in a SLURM array: --array=3-5)" in line
    words = line.partition("for each of them: ")[2]
    assert words == "cora run simulated:name=ann,knows=0.6 --limit 12 --family cyclic --shard 3/6"
    assert "there are no shards here" in refused(capsys, cora_join, folders=["nothing"])


@pytest.mark.parametrize(
    "spec, what",
    [
        ("chat:m,base_url=http://elsewhere.invalid/v1", "a server"),
        ("chat:m,key_variable=AWS_SECRET_ACCESS_KEY", "the variable with a key"),
        ("nasty.py:respondent", "code to run"),
    ],
)
def test_a_command_of_somebody_elses_facts_is_named_as_one(capsys, spec, what):
    cora_run(ANN, limit=12, shard="1/2")
    (file,) = shards_there(Path("responses/math/ann")).values()
    table = pq.read_table(file)
    facts = json.loads(table.schema.metadata[b"cora_nb"])
    facts["run"]["command"]["respondents"] = [spec]
    pq.write_table(table.replace_schema_metadata(table.schema.metadata | {b"cora_nb": json.dumps(facts)}), file)
    line = refused(capsys, cora_join, folders=["responses/math/ann"])
    assert f"for each of them (it names {what}: only if you trust it): cora run {spec} " in line


@pytest.mark.parametrize(
    "given, why",
    [
        ({"shard": "0/4"}, "counted from 1"),
        ({"shard": "5/4"}, "from 1 to 4"),
        ({"shard": "1/2", "workers": 2}, "--workers and --shard both divide the run"),
        ({"shard": "1/2", "max_calls": 3}, "cannot keep one budget; leave --max_calls out"),
        ({"shard": "1/2", "stop": "precise"}, "looks at all replies"),
        ({"shard": "1/2", "report": True}, "leave --report out, and give it to cora join"),
        ({"shard": "1/2", "figures": "here"}, "leave --figures out, and give it to cora join"),
        ({"shard": "1/2", "failed": "wrong"}, "leave --failed out, and give it to cora join"),
        ({"shard": "1/2", "digits": 4}, "leave --digits out, and give it to cora join"),
        ({"shard": "1/2", "digits": 4, "dry": True}, "leave --digits out, and give it to cora join"),
        ({"shard": "1/2", "half_width": 0.1}, "--half_width goes with --stop precise"),
        ({"shard": "1/2", "score": "agreement"}, "leave --score out, and give it to cora join"),
        ({"shard": "1/99", "limit": 5}, "99 shards are more than there are different questions, 5"),
    ],
)
def test_what_does_not_go_together(capsys, given, why):
    assert why in refused(capsys, cora_run, respondents=ANN, **given)
    assert not os.path.exists("responses")


def test_every_option_that_shards_refuse_is_one_of_cora_join():
    both = {what: inspect.signature(what).parameters for what in (cora_run, cora_join)}
    for option in fields(ShowOptions):
        assert option.name in both[cora_join] and both[cora_run][option.name].default == option.default, option


def test_the_options_of_cora_join(capsys, here):
    cora_run(ANN, limit=4, shard="1/1")
    capsys.readouterr()
    cora_join(["responses/math/ann"], digits=4, score="agreement", report="page.html", figures="pictures")
    said = capsys.readouterr().out
    cora_run(ANN, limit=4, digits=4, score="agreement", out="alone")
    assert said.split("\n\n")[0] in capsys.readouterr().out and "agreement rate" in said
    assert (here / "page.html").exists() and list((here / "pictures").glob("*.svg")) and ", 1 shard\n" in said


def test_without_dask_only_workers_are_missing(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for option in ({"workers": 2}, {"scheduler": "tcp://127.0.0.1:1"}):
        line = refused(capsys, cora_run, respondents=ANN, **option)
        assert "workers need dask: pip install 'cora_nb[workers]'" in line
    cora_run(ANN, limit=4, shard="1/2")


def test_a_chat_respondent_needs_no_workers(capsys):
    pytest.importorskip("distributed", reason="dask is not installed; pip install 'cora_nb[workers]'")
    line = refused(capsys, cora_run, respondents=["chat:gpt-4o"], workers=2)
    assert "one process keeps 32 requests under way (,concurrency=256 for more)" in line


def test_a_dry_run_starts_nothing(capsys, monkeypatch):
    monkeypatch.setattr("cora_nb.cli.run.local_workers", None)
    cora_run(ANN, limit=4, shard="1/2", dry=True)
    assert "nothing was asked" in capsys.readouterr().out and not os.path.exists("responses")


@pytest.mark.parametrize("option", [{"shard": "1/3"}, {"scheduler": "tcp://127.0.0.1:1"}])
def test_a_dry_run_looks_at_no_store_that_the_run_would_not_use(capsys, here, option):
    if "scheduler" in option:
        pytest.importorskip("distributed", reason="dask is not installed; pip install 'cora_nb[workers]'")
    with open("own.py", "w") as file:
        file.write(
            "class Own:\n"
            "    name = 'own'\n"
            "    def describe(self): return {'respondent': 'own'}\n"
            "    def request(self, prompt): return {'text': prompt.text}\n"
            "    async def answer(self, prompts): raise SystemExit('asked')\n"
        )
    cora_run(["own.py:Own"], limit=4, dry=True, **option)
    said = capsys.readouterr().out
    assert "this is the whole run" in said and ("shard 1/3 is about 1/3 of it" in said) == ("shard" in option)
    assert not list(here.rglob("*.sqlite"))


def test_simulated_replies_are_kept_in_no_store(here, capsys):
    cora_run(ANN, limit=4, shard="1/2", store="r.sqlite")
    with Store("r.sqlite") as store:
        assert len(store) == 0
    cora_run(ANN, limit=4, shard="2/2", store="r.sqlite")
    cora_join(["responses/math/ann"])


def test_one_process_does_not_ask_over_shards_of_another_run(capsys):
    cora_run(ANN, limit=4, shard="1/2", seed=1)
    line = refused(capsys, cora_run, respondents=ANN, limit=4)
    assert "this is a shard of another run, with other" in line
    assert not os.path.exists("responses/math/ann/responses.parquet")


@pytest.mark.slow
def test_workers_from_the_command_line(here):
    pytest.importorskip("distributed", reason="dask is not installed; pip install 'cora_nb[workers]'")
    code, out, err = run("cora run", *ANN, "simulated:name=ben", "--limit", 8, "--workers", 2, cwd=here)
    assert code == 0, err
    assert "in 5 shards" in out and "ben" in out.split("\n\n")[1]
    cora_run([*ANN, "simulated:name=ben"], limit=8, out="alone")
    for name in ("ann", "ben"):
        run_, alone = (read_responses(f"{out}/math/{name}") for out in ("responses", "alone"))
        assert run_.table.equals(alone.table) and run_.facts.differences(alone.facts) == []
    assert run_.facts.run.command["workers"] == 2


def test_no_scheduler_is_one_line(capsys, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="dask is not installed; pip install 'cora_nb[workers]'")
    usual = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda address, timeout: usual(address, timeout=0.3))
    line = refused(capsys, cora_run, respondents=ANN, scheduler="tcp://127.0.0.1:1", limit=2)
    assert line.startswith("cora run: --scheduler tcp://127.0.0.1:1: there is no dask scheduler (")


@pytest.mark.slow
def test_a_slurm_array(here, capsys):
    "The job's script with a stand-in for the queue, of which one task is then asked again."
    env = slurm_stand_in(here / "bin")
    words = " ".join(map(str, command("cora run", *ANN, "--limit", 6)))
    script = f"#!/bin/bash\n#SBATCH --array=1-2 --time=00:10:00\n{words} --shard $SLURM_ARRAY_TASK_ID/2\n"
    (here / "job.sh").write_text(script)
    full = {**os.environ, **env}
    said = subprocess.run(["sbatch", "job.sh"], env=full, capture_output=True, text=True, check=True).stdout
    assert said == "Submitted batch job 1000\n"
    wait(env)
    place = "responses/math/ann"
    assert len(there := shards_there(place)) == 2, (here / "bin/1000_1.log").read_text()
    next(iter(there.values())).unlink()
    assert "--array=1)" in refused(capsys, cora_join, folders=[place])
    subprocess.run(["sbatch", "--array=1", "job.sh"], env=full, check=True, capture_output=True)
    wait(env)
    cora_join([place])
    cora_run(ANN, limit=6, out="alone")
    assert read_responses(place).table.equals(read_responses("alone/math/ann").table)


def wait(env):
    began = time.monotonic()
    while jobs_running(env):
        assert time.monotonic() - began < 120, "the job does not end"
        time.sleep(0.1)


def test_failed_prompts_end_with_status_3(capsys):
    source = (
        "from cora_nb.respondents.protocol import Reply\n"
        "class Half:\n"
        "    name = 'half'\n"
        "    def describe(self): return {'respondent': 'half'}\n"
        "    def request(self, prompt): return {'text': prompt.text}\n"
        "    async def answer(self, prompts):\n"
        "        import os\n"
        "        for i, p in enumerate(prompts):\n"
        "            yield i, Reply('A') if i % 2 or os.path.exists('well') else Reply(error='gone')\n"
    )
    with open("half.py", "w") as file:
        file.write(source)
    asked = {"respondents": ["half.py:Half"], "limit": 4}
    with pytest.raises(SystemExit) as e:
        cora_run(**asked, shard="1/1")
    assert e.value.code == 3 and "of its prompts failed; the same command asks for these" in capsys.readouterr().out
    with pytest.raises(SystemExit) as e:
        cora_join(["responses/math/half"])
    said = capsys.readouterr().out
    assert e.value.code == 3 and "run its shards again" in said
    with pytest.raises(SystemExit) as e:
        cora_join(["responses/math/half"], failed="wrong")
    assert e.value.code == 3 and capsys.readouterr().out.split("\n\n")[0] != said.split("\n\n")[0]
    open("well", "w").close()
    cora_run(**asked, shard="1/1")
    cora_join(["responses/math/half"])
    assert "0 failed" in capsys.readouterr().out


def test_runs_by_subject_are_parts_of_one_run(capsys):
    "`concat` joins what cora run has asked with different --subjects, and not with a --limit as well."
    rows = [
        json.dumps(
            {"id": f"q{i}", "question": f"What is {i}?", "choices": ["a", "b", f"c{i}"], "answer": i % 3, "subject": s}
        )
        for i, s in enumerate(["law", "art", "law, old", "art", "law"])
    ]
    with open("five.jsonl", "w") as file:
        file.write("\n".join(rows))
    asked = {"respondents": ANN, "benchmark": "five", "path": "five.jsonl"}
    for out, subjects in (("one", "law"), ("two", "art"), ("three", "law, old"), ("all", None)):
        cora_run(**asked, subjects=subjects, out=out)
    parts = [read_responses(f"{out}/five/ann") for out in ("one", "two", "three")]
    joined, whole = concat(parts), read_responses("all/five/ann")
    assert joined.facts.run.subjects == ["law", "art", "law, old"] and "command" not in joined.facts.run.plain()
    assert joined.facts.benchmark.plain() == {"questions": 5}
    columns = ["question_id", "method", "index", "prediction"]
    order = ["question_id", "method", "index"]
    assert (
        joined.table[columns]
        .sort_values(order, ignore_index=True)
        .equals(whole.table[columns].sort_values(order, ignore_index=True))
    )
    for subject in ("law", "art"):
        cora_run(**asked, subjects=subject, limit=1, out=f"first-{subject}")
    first = [read_responses(f"first-{subject}/five/ann") for subject in ("law", "art")]
    with pytest.raises(Exception, match="they differ in run.subjects"):
        concat(first)
    assert read_facts("first-law/five/ann").run.subjects == "law"
