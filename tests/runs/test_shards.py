"""A run in shards is the run of one process, row for row, whoever asks them; what is missing or foreign is named."""

import shutil
from functools import partial

import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.cli.run import cora_run
from cora_nb.core import CoraError
from cora_nb.metrics.scoring import score
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.files import read_responses
from cora_nb.results import values_of
from cora_nb.runs.asking import Asking, Precise, Settled
from cora_nb.runs.evaluate import Running, prepare
from cora_nb.runs.shards import Shard, ask_on, ask_shard, join_shards, local_workers, missing_shards, shard_of
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants
from helpers import run as run_command

QUIET = Running(progress=False, strict=None)
WHO = SimulatedRespondent(knows=0.6, slips=0.1, name="ann")


def whole(n=11, **options):
    return prepare(make_variants(math_benchmark(n)), **options)


def check_equal(joined, alone):
    assert joined.table.equals(alone.table) and joined.questions.equals(alone.questions)
    assert not joined.facts.differences(alone.facts) and joined.facts.calls == alone.facts.calls
    assert score(joined).equals(score(alone)) and joined.complete == alone.complete


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"asking": Asking(trials=3)}, {"facts": {"benchmark": "m"}}])
@pytest.mark.parametrize("count", [1, 3, 11])
def test_shards_joined_are_the_run_of_one_process(tmp_path, count, options):
    prepared = whole(**options)
    for number in reversed(range(1, count + 1)):
        ask_shard(prepared, WHO, Shard(number, count), tmp_path, QUIET)
    joined = join_shards(tmp_path)
    check_equal(joined, prepared.ask(WHO, QUIET))
    assert read_responses(tmp_path).equals(joined) and join_shards(tmp_path).equals(joined)


def test_settled_shards_have_the_scores_of_one_process(tmp_path):
    prepared = whole(stop=Settled())
    for number in (1, 2):
        ask_shard(prepared, WHO, Shard(number, 2), tmp_path, QUIET)
    joined, alone = (
        values_of(score(run))[["CoRA", "BMCA(1.0)", "MCQA"]]
        for run in (join_shards(tmp_path), prepared.ask(WHO, QUIET))
    )
    assert joined.equals(alone)


def test_a_shard_is_not_the_run(tmp_path):
    shard = ask_shard(whole(), WHO, Shard(1, 3), tmp_path, QUIET)
    assert shard.facts.rows.kept == len(shard) < shard.facts.rows.of == 220 and shard.facts.benchmark.questions == 4
    with pytest.raises(CoraError, match="there is no run here .*cora_join"):
        read_responses(tmp_path)


def test_what_is_missing_or_foreign_is_named(tmp_path):
    with pytest.raises(CoraError, match="there are no shards here"):
        join_shards(tmp_path)
    ask_shard(whole(), WHO, Shard(2, 4), tmp_path / "a", QUIET)
    assert missing_shards(tmp_path / "a") == [Shard(1, 4), Shard(3, 4), Shard(4, 4)]
    with pytest.raises(CoraError, match="of 4 shards 3 are missing: 1/4, 3/4, 4/4; .* --shard 1/4"):
        join_shards(tmp_path / "a")
    with pytest.raises(CoraError, match="another run here already, with other seed|another run"):
        ask_shard(prepare(make_variants(math_benchmark(11), seed=1)), WHO, Shard(2, 4), tmp_path / "a", QUIET)
    other = SimulatedRespondent(knows=0.1, name="ann")
    for shard, who in ((Shard(1, 2), WHO), (Shard(2, 2), other)):
        ask_shard(whole(), who, shard, tmp_path / "b", QUIET)
    with pytest.raises(CoraError, match="00002-of-00002: this is not a shard of the same run as 00001-of-00002"):
        join_shards(tmp_path / "b")
    shutil.copytree(tmp_path / "a/shards/00002-of-00004", tmp_path / "b/shards/00002-of-00004")
    with pytest.raises(CoraError, match="there are shards of 2 and of 4"):
        missing_shards(tmp_path / "b")
    with pytest.raises(CoraError, match="precise stopping looks at all replies"):
        shard_of(whole(stop=Precise()), Shard(1, 2))


def test_a_shard_that_is_there_is_not_asked_again(tmp_path):
    ask_shard(whole(), WHO, Shard(1, 2), tmp_path, QUIET)

    class Gone(SimulatedRespondent):
        async def answer(self, prompts):
            raise AssertionError("asked again")
            yield

    assert len(ask_shard(whole(), Gone(knows=0.6, slips=0.1, name="ann"), Shard(1, 2), tmp_path, QUIET)) == 120


def test_a_store_is_shared_by_shards(tmp_path):
    prepared = whole()
    with Store(tmp_path / "r.sqlite") as store:
        prepared.ask(WHO, Running(store, progress=False))
        for number in (1, 2):
            ask_shard(prepared, WHO, Shard(number, 2), tmp_path / "run", Running(store, progress=False))
    calls = join_shards(tmp_path / "run").facts.calls
    assert calls["asked"] == 0 and calls["in_store"] > 0


@pytest.mark.slow
def test_workers_of_dask_give_the_run_of_one_process(tmp_path):
    prepared = whole()
    with local_workers(2) as client:
        joined = ask_on(client, partial(SimulatedRespondent, 0.6, 0.1, name="ann"), prepared, tmp_path, progress=False)
        check_equal(joined, prepared.ask(WHO, QUIET))
        with pytest.raises(CoraError, match="no model|there is no|cannot"):
            from cora_nb.cli.respondents import make_respondent

            ask_on(client, partial(make_respondent, "causal:/nowhere/at/all"), prepared, tmp_path / "b", progress=False)


@pytest.mark.slow
def test_the_command_divides_a_run(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    words = ["cora_run", "causal:organism/steady,device=cpu", "--limit", 9]
    assert run_command(*words, "--out", "alone", cwd=tmp_path)[0] == 0
    code, out, err = run_command(*words, "--out", "workers", "--workers", 2, cwd=tmp_path)
    assert code == 0 and "CoRA" in out, err
    for shard in ("1/2", "2/2"):
        assert run_command(*words, "--out", "shards", "--shard", shard, cwd=tmp_path)[0] == 0
    code, out, err = run_command("cora_join", "shards/math/steady", cwd=tmp_path)
    assert code == 0 and "CoRA" in out, err
    alone, *others = (read_responses(tmp_path / out / "math/steady") for out in ("alone", "workers", "shards"))
    for run in others:
        plain = ["question_id", "method", "index", "prediction", "correct", "reply", "state"]
        assert run.table[plain].equals(alone.table[plain])
        assert not run.facts.differences(alone.facts)


def test_strict_needs_all_replies(tmp_path, monkeypatch, capsys):
    "A shard or a worker sees its own replies alone: the option was left out in silence."
    monkeypatch.chdir(tmp_path)
    for option in ({"shard": "1/2"}, {"workers": 2}):
        with pytest.raises(SystemExit) as e:
            cora_run(["simulated"], limit=4, store="none", strict=True, **option)
        assert "--strict looks at all replies" in str(e.value)
    assert not (tmp_path / "responses").exists()
