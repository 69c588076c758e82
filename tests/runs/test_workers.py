"""Workers: the run of one process, whoever dies; what is there is skipped; errors in one line; nothing without dask."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

from cora_nb.cli.respondents import make_respondent
from cora_nb.core import CoraError, Question
from cora_nb.metrics.scoring import score
from cora_nb.respondents.protocol import Reply
from cora_nb.responses.columns import REPLIED, in_state
from cora_nb.responses.files import read_facts, read_responses, write_responses
from cora_nb.results import values_of
from cora_nb.runs import workers
from cora_nb.runs.alarm import UnreadRepliesWarning
from cora_nb.runs.asking import Asking, Precise, Settled
from cora_nb.runs.evaluate import evaluate, prepare, Running
from cora_nb.runs.shards import ask_shard, shard_file, shards_there
from cora_nb.runs.store import Store
from cora_nb.runs.workers import local_workers, _visible_gpus, _worker_settings
from cora_nb.runs.workers import Dividing, evaluate_on
from cora_nb.variants.families import make_variants
from slurm_stand_in import jobs_running, slurm_stand_in
from helpers import slow_after

ANN = "simulated:name=ann,knows=0.6,slips=0.1"


def some(n):
    return [Question(f"q{i}", f"How many is {i}?", ("one", "two", "three", f"{i} more"), i % 4) for i in range(n)]


@pytest.fixture(scope="module")
def client():
    "Two workers within this process, which see its changes."
    distributed = pytest.importorskip("distributed", reason="dask is not installed; pip install 'cora_nb[workers]'")
    quiet = {"silence_logs": 50, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, **quiet) as cluster:
        with distributed.Client(cluster) as client:
            yield client


def on(client, who, questions, folder, asking=Asking(), stop=None, **how):
    dividing = Dividing(**{"progress": False} | how)
    return evaluate_on(client, who, make_variants(questions), folder, asking, stop, dividing)


def alone(who, questions, **more):
    return evaluate(make_respondent(who), make_variants(questions), progress=False, **more)


# Without dask


def test_importing_the_module_imports_no_dask():
    code = "import sys, cora_nb.runs.workers, cora_nb.cli.run; print({'dask', 'distributed'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_without_dask_there_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for ask in (lambda: on(None, ANN, some(1), tmp_path / "run"), lambda: local_workers(1).__enter__()):
        with pytest.raises(CoraError, match=r"workers need dask: pip install 'cora_nb\[workers\]'"):
            ask()
    assert not (tmp_path / "run").exists()


def test_each_worker_has_a_gpu_of_its_own_or_its_share_of_the_cores(monkeypatch):
    assert [s["CUDA_VISIBLE_DEVICES"] for s in _worker_settings(gpus=["0", "GPU-ab", "3"])] == ["0", "GPU-ab", "3"]
    with pytest.raises(CoraError, match="4 workers are more than there are GPUs, 3"):
        _worker_settings(4, gpus=["0", "1", "2"])
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert [s["OMP_NUM_THREADS"] for s in _worker_settings(3, gpus=[])] == ["2", "2", "2"]
    assert len(_worker_settings(gpus=[])) == 8
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert _worker_settings(3, gpus=[])[0]["OMP_WAIT_POLICY"] == "passive"  # threads that wait keep no core busy
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    assert "OMP_WAIT_POLICY" not in _worker_settings(3, gpus=[])[0]  # the user's own goes to the workers as it is
    assert _worker_settings(1, gpus=[])[0]["CUDA_VISIBLE_DEVICES"] == ""  # torch would see all GPUs otherwise
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES" not in _worker_settings(1)[0]
    for value, found in (("", []), ("-1", []), ("2,0", ["2", "0"])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        assert _visible_gpus() == found
    with pytest.raises(CoraError, match="workers must be a whole number"):
        _worker_settings(0, gpus=[])


def test_precise_stopping_is_refused(tmp_path):
    with pytest.raises(CoraError, match="looks at all replies while it asks"):
        on(None, ANN, some(2), tmp_path / "run", stop=Precise())


# On workers within this process


@pytest.mark.parametrize(
    "asking", slow_after(1, [Asking(), Asking(trials=2), Asking(shots=some(9), k=2, parse="first_token")])
)
def test_the_run_of_one_process(client, tmp_path, asking):
    run, one = on(client, ANN, some(14), tmp_path / "run", shards=5, asking=asking), alone(ANN, some(14), asking=asking)
    assert run.equals(one) and run.table.equals(one.table) and run.questions.equals(one.questions)
    assert run.facts.differences(one.facts) == [] and run.facts.calls == one.facts.calls
    assert read_responses(tmp_path / "run").equals(one)
    assert sorted(p.name for p in (tmp_path / "run/shards").iterdir()) == [
        f"0000{n}-of-00005.parquet" for n in range(1, 6)
    ]


class Counting:
    "Answers A, and counts how often it was made and asked."

    name, made, asked, bad, lock = "counting", 0, [], lambda p: False, threading.Lock()

    def __init__(self):
        with Counting.lock:
            Counting.made += 1

    def describe(self):
        return {"respondent": "counting"}

    def request(self, prompt):
        return {"text": prompt.text}

    async def answer(self, prompts):
        for i, p in enumerate(prompts):
            await asyncio.sleep(0)
            with Counting.lock:
                Counting.asked.append(p.text)
            yield i, Reply(error="gone") if Counting.bad(p) else Reply("A")


@pytest.fixture
def counting():
    "Counted from 0. In this process, the workers share the class."
    Counting.made, Counting.asked, Counting.bad = 0, [], lambda p: False
    return Counting


def test_one_model_for_each_worker_and_finished_shards_are_skipped(client, tmp_path, counting):
    prepared = prepare(make_variants(some(12)))
    ask_shard(prepared, counting(), "2/6", tmp_path / "run", Running(progress=False))
    before, counting.made = len(counting.asked), 0
    one = on(client, counting, some(12), tmp_path / "run")  # as many shards as are there
    assert 1 <= counting.made <= 2
    assert len(counting.asked) == len(set(counting.asked)) > before  # nothing twice
    counting.made = 0
    assert on(client, counting, some(12), tmp_path / "run", shards=6).equals(one) and counting.made <= 1
    assert len(counting.asked) == len(set(counting.asked))


@pytest.mark.slow
def test_calls_that_make_the_same_model_share_it(client, tmp_path, counting):
    on(client, ANN, some(8), tmp_path / "ann", shards=8)
    for n in range(4):
        on(client, counting, some(8), tmp_path / f"run{n}", shards=4)
    assert 1 <= counting.made <= 2  # one for each worker, and not for each call
    settings = [workers._Settings(make, {}, "x", None, False) for make in (lambda: counting(), counting)]
    worker = SimpleNamespace()
    first, again, other = (workers._respondent_here(worker, s)[0] for s in (settings[0], settings[0], settings[1]))
    assert first is again is not other and len(worker._cora_nb_respondent) == 1


def test_a_changed_file_is_another_model(tmp_path):
    pytest.importorskip("cloudpickle")
    file, worker = tmp_path / "mine.py", SimpleNamespace()
    file.write_text("from cora_nb.respondents.simulated import SimulatedRespondent as Mine\n")
    settings = workers._Settings(f"{file}:Mine", {}, "x", None, False)
    first, again = (workers._respondent_here(worker, settings)[0] for _ in range(2))
    os.utime(file, ns=(1, 1))
    assert first is again is not workers._respondent_here(worker, settings)[0]


def test_workers_without_the_clients_disk_send_their_shards(client, tmp_path, monkeypatch):
    there = tmp_path / "run"
    written = []
    monkeypatch.setattr(workers._Settings, "sign", property(lambda s: Missing(s.folder)))
    keep = workers.keep_shard
    monkeypatch.setattr(workers, "keep_shard", lambda *a: written.append(threading.current_thread()) or keep(*a))
    run = on(client, ANN, some(8), there, shards=4)
    assert run.equals(alone(ANN, some(8)))
    assert written == [threading.main_thread()] * 4  # by the client


class Missing(type(Path())):
    "A file that is there for its writer alone."

    def touch(self):
        (self / "shards").mkdir(parents=True)

    def unlink(self, missing_ok=True):
        pass

    @property
    def parent(self):
        return Path(self)

    def exists(self):
        return False


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_only_failed_prompts_are_asked_again(client, tmp_path, counting, monkeypatch, shared):
    if not shared:
        monkeypatch.setattr(workers._Settings, "sign", property(lambda s: Elsewhere(s.folder)))
    counting.bad = lambda p: p.variant.answer == 1
    first = on(client, counting, some(8), tmp_path / "run", shards=4, strict=None)
    lost = (~in_state(first.table, *REPLIED)).sum()
    assert 0 < lost < len(first)
    counting.bad, counting.asked = lambda p: False, []
    second = on(client, counting, some(8), tmp_path / "run", strict=None)
    assert 0 < len(counting.asked) <= lost and in_state(second.table, *REPLIED).all()
    counting.asked = []
    on(client, counting, some(8), tmp_path / "run", strict=None)
    assert counting.asked == []


class Elsewhere(Missing):
    def touch(self):
        (self / "shards").mkdir(parents=True, exist_ok=True)


def test_early_stopping_is_exact(client, tmp_path):
    run, one = on(client, ANN, some(40), tmp_path / "run", shards=6, stop=Settled()), alone(ANN, some(40))
    assert values_of(score(run))["CoRA"] == values_of(score(one))["CoRA"] and run.facts.calls["not_asked"] > 0


def test_a_store_is_shared(client, tmp_path, counting):
    with Store(tmp_path / "replies.sqlite"):
        on(client, counting, some(6), tmp_path / "run", shards=3, store=tmp_path / "replies.sqlite")
    asked, counting.asked = len(counting.asked), []
    run = on(client, counting, some(6), tmp_path / "other", shards=2, store=tmp_path / "replies.sqlite")
    assert counting.asked == [] and run.facts.calls["in_store"] == asked


TRIED = []


def no_model():
    TRIED.append(1)
    raise CoraError("my/model: there is no such folder")


def test_an_error_of_the_user_is_not_tried_again(client, tmp_path):
    TRIED.clear()
    with pytest.raises(CoraError, match="^my/model: there is no such folder$"):
        on(client, no_model, some(4), tmp_path / "run", shards=1)
    assert TRIED == [1]
    with pytest.raises(CoraError, match="respondent must be one of .*'oracle'"):
        on(client, "oracle", some(4), tmp_path / "run")
    assert [p.name for p in tmp_path.glob("run/shards/*")] == []


def test_other_errors_are_tried_again_and_the_other_shards_finished(client, tmp_path, counting):
    tried = []

    def breaks(p):
        if p.variant.question_id == "q1":
            tried.append(1)
            raise RuntimeError("CUDA error: an illegal\nmemory access")
        return False

    counting.bad = breaks
    with pytest.raises(
        CoraError, match=r"1 of 4 shards were given up after 3 attempts .* 2/4 \(RuntimeError: CUDA error: an"
    ):
        on(client, counting, some(8), tmp_path / "run", shards=4, retries=2)
    assert len(tried) == 3 and len(shards_there(tmp_path / "run")) == 3
    counting.bad, counting.asked = lambda p: False, []
    assert len(on(client, counting, some(8), tmp_path / "run")) == len(make_variants(some(8)))
    assert len(counting.asked) <= len(make_variants(some(8))) / 4


def test_another_run_is_refused_before_anything_is_asked(client, tmp_path, counting):
    write_responses(alone(ANN, some(3)), tmp_path / "done")
    with pytest.raises(CoraError, match="there is another run here already, with other benchmark.questions"):
        on(client, counting, some(4), tmp_path / "done")
    assert counting.made == 0
    with pytest.raises(CoraError, match="there is another run here already, with other respondent"):
        on(client, counting, some(3), tmp_path / "done")
    with pytest.raises(CoraError, match="9 shards are more than there are different questions, 3"):
        on(client, ANN, some(3), tmp_path / "new", shards=9)
    assert not (tmp_path / "new").exists()
    on(client, ANN, some(4), tmp_path / "run", shards=2)
    for wrong, why in (
        ({"shards": 3}, "are of 2, and not of 3"),
        ({"asking": Asking("bare")}, r"template \(cora there, bare now\)"),
    ):
        with pytest.raises(CoraError, match=why):
            on(client, ANN, some(4), tmp_path / "run", **wrong)
    (tmp_path / "file").write_text("")
    with pytest.raises(CoraError, match="this is a file"):
        on(client, ANN, some(4), tmp_path / "file")


@pytest.mark.parametrize("joined", [True, False])
def test_finished_shards_of_another_respondent_are_refused(client, tmp_path, joined):
    on(client, ANN, some(4), tmp_path / "run", shards=2)
    if not joined:
        (tmp_path / "run/responses.parquet").unlink()
    with pytest.raises(CoraError, match=r"another run.*, with other respondent.knows \(0.6 there, 0.7 now\);"):
        on(client, ANN.replace("0.6", "0.7"), some(4), tmp_path / "run")


def test_a_call_leaves_the_sign_of_another_one_on_the_same_folder(client, tmp_path):
    (sign := tmp_path / "run/shards/.cora_nb-other").parent.mkdir(parents=True)
    sign.touch()
    on(client, ANN, some(2), tmp_path / "run", shards=1)
    assert sign.exists()


def test_what_cannot_be_sent_is_said_in_one_line(client, tmp_path):
    lock = threading.Lock()
    with pytest.raises(CoraError, match="cannot be sent to workers .*lock.*; name it by its file"):
        on(client, lambda: lock, some(2), tmp_path / "run")


def test_another_version_of_the_package_is_refused(client, tmp_path, monkeypatch):
    monkeypatch.setattr(workers._Settings.__init__, "__defaults__", ("x", "0.1.0"), raising=False)
    settings = workers._Settings(ANN, {}, str(tmp_path), None, False, version="0.0.1")
    with pytest.raises(CoraError, match="of cora_nb, and the client 0.0.1"):
        workers._check_same_package(settings, [])


def test_unreadable_replies_are_told(client, tmp_path, counting):
    told = {"asking": Asking(parse="yes_no"), "shards": 2}
    with pytest.warns(UnreadRepliesWarning, match="cannot be read"):
        on(client, counting, some(6), tmp_path / "run", **told)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        on(client, counting, some(6), tmp_path / "quiet", strict=None, **told)
    with pytest.raises(CoraError, match="stopped, as strict asks for"):
        on(client, counting, some(6), tmp_path / "strict", strict=True, **told)


def test_one_bar_counts_all_replies(client, tmp_path, capsys):
    on(client, ANN, some(6), tmp_path / "run", shards=3, progress=True)
    assert f"{ANN}: 100%" in (said := capsys.readouterr().err) and "120/120" in said


def test_ctrl_c_keeps_finished_shards(client, tmp_path, counting, monkeypatch):
    keep = workers.check_run_there
    calls = []

    def interrupted(*a):
        calls.append(1)
        if len(calls) == 4:  # the first is before anything is asked
            raise KeyboardInterrupt
        return keep(*a)

    monkeypatch.setattr(workers, "check_run_there", interrupted)
    with pytest.raises(KeyboardInterrupt, match="of 6 shards are kept in .*: the same call goes on from there"):
        on(client, counting, some(12), tmp_path / "run", shards=6)
    monkeypatch.undo()
    kept = {file: file.stat().st_mtime_ns for file in shards_there(tmp_path / "run").values()}
    assert len(kept) >= 2 and not list((tmp_path / "run/shards").glob(".cora_nb-*"))
    while any(client.call_stack().values()):  # workers finish what they have begun
        time.sleep(0.05)
    kept |= {file: file.stat().st_mtime_ns for file in shards_there(tmp_path / "run").values()}
    run = on(client, counting, some(12), tmp_path / "run", shards=6)
    assert run.table.equals(evaluate(counting(), make_variants(some(12)), progress=False).table)
    assert all(file.stat().st_mtime_ns == before for file, before in kept.items())


class Gone:
    "A client whose scheduler has ended."

    status = "closed"

    def __init__(self, at_once):
        self.at_once = at_once

    def nthreads(self):
        return {}

    def cancel(self, futures):
        raise OSError("not connected")

    def submit(self, *_, key, **__):
        if self.at_once:
            raise OSError("Timed out trying to connect\nto tcp://10.0.0.1:8786")
        return type("Future", (), {"key": key, "add_done_callback": lambda *_: None})()


@pytest.mark.parametrize("at_once", [True, False])
def test_a_scheduler_that_is_gone_is_one_line(tmp_path, at_once, monkeypatch):
    pytest.importorskip("distributed", reason="dask is not installed; pip install 'cora_nb[workers]'")
    wait = workers.queue.Queue.get
    monkeypatch.setattr(workers.queue.Queue, "get", lambda self, timeout: wait(self, timeout=0.01))
    with pytest.raises(CoraError, match="^the scheduler is gone .*finished shards are kept"):
        on(Gone(at_once), ANN, some(2), tmp_path / "run")


# On processes


HELD = """
import asyncio, os
from pathlib import Path
from cora_nb.respondents.protocol import Reply

here = Path(__file__).parent

class Held:
    name = "held"
    def describe(self):
        return {"respondent": "held"}
    def request(self, prompt):
        return {"text": prompt.text}
    async def answer(self, prompts):
        for i, p in enumerate(prompts):
            if i == 1:
                (here / f"{os.getpid()}.asking").touch()
                while not (here / "go").exists():
                    await asyncio.sleep(0.02)
            yield i, Reply(p.variant.labels[p.variant.answer if len(p.text) % 3 else 0])
"""  # whoever asks says so after one reply, and waits


@pytest.mark.slow
def test_a_killed_worker_is_replaced(tmp_path):
    "SIGKILL to a worker that is in the middle of a shard."
    pytest.importorskip("distributed", reason="dask is not installed; pip install 'cora_nb[workers]'")
    (tmp_path / "held.py").write_text(HELD)
    spec, result = f"{tmp_path / 'held.py'}:Held", {}
    with local_workers(2, gpus=[]) as client:
        threads = set(client.run(lambda: os.environ["OMP_NUM_THREADS"]).values())
        asking = threading.Thread(
            target=lambda: result.update(run=on(client, spec, some(12), tmp_path / "run", shards=4))
        )
        asking.start()
        while not (hit := [int(file.stem) for file in tmp_path.glob("*.asking")]):
            assert asking.is_alive()
            time.sleep(0.05)
        os.kill(hit[0], signal.SIGKILL)
        assert not shards_there(tmp_path / "run")
        (tmp_path / "go").touch()
        asking.join(300)
    assert len(threads) == 1
    one = alone(spec, some(12))
    assert result["run"].table.equals(one.table) and result["run"].facts.calls == one.facts.calls


@pytest.mark.slow
def test_a_slurm_cluster_scores(tmp_path, monkeypatch):
    "dask-jobqueue with a stand-in for the queue's commands."
    distributed = pytest.importorskip("distributed", reason="dask is not installed; pip install 'cora_nb[workers]'")
    jobqueue = pytest.importorskip("dask_jobqueue", reason="pip install dask-jobqueue to run this test")
    env = slurm_stand_in(tmp_path / "bin")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with (
        jobqueue.SLURMCluster(
            cores=1,
            processes=1,
            memory="2GB",
            queue="gpu",
            job_extra_directives=["--gres=gpu:1"],
            worker_extra_args=["--no-dashboard"],
            scheduler_options={"host": "127.0.0.1", "dashboard": False},
            local_directory=str(tmp_path),
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        cluster.scale(jobs=1)
        run = on(client, ANN, some(8), tmp_path / "run", shards=3)
        script = (tmp_path / "bin/1000.sh").read_text()
        assert "#SBATCH --gres=gpu:1" in script and jobs_running(env) == ["1000"]
    assert run.equals(alone(ANN, some(8)))
    began = time.monotonic()
    while jobs_running(env):
        assert time.monotonic() - began < 120, "scancel did not end the job"
        time.sleep(0.1)


def test_the_facts_of_a_shard_say_which_it_is(client, tmp_path):
    on(client, ANN, some(4), tmp_path / "run", shards=2)
    facts = [read_facts(file) for file in shards_there(tmp_path / "run").values()]
    assert [f.shard.number for f in facts] == [1, 2] and not facts[0].asked.differences(facts[1].asked)
    assert shard_file(tmp_path / "run", next(iter(shards_there(tmp_path / "run")))).is_file()
