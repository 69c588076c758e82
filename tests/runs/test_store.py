"""The store of replies: nothing is lost, nothing is asked twice, whatever is killed and however many share it."""

import multiprocessing
import os
import random
import signal
import sqlite3
import threading
import time

import pytest
from hypothesis import given, settings, strategies as st
from tqdm.auto import tqdm

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import CoraError
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.runs.evaluate import evaluate, plan
from cora_nb.runs.store import Store, reply_key
from cora_nb.variants.families import make_variants
from helpers import kill_at_reply

VARIANTS = make_variants(load_benchmark("math")[:100])
texts = st.text(max_size=20).map(lambda t: t.encode("utf-8", "backslashreplace").decode())


@given(
    st.lists(
        st.builds(
            Reply,
            text=texts | st.none(),
            scores=st.none() | st.lists(st.floats(allow_nan=False), max_size=5).map(tuple),
            confidence=st.none() | st.floats(0, 1),
            meta=st.none() | st.dictionaries(texts, st.integers(0, 10**6), max_size=3),
        ),
        max_size=30,
    )
)
@settings(max_examples=40)
def test_what_goes_in_comes_out(tmp_path_factory, replies):
    with Store(tmp_path_factory.mktemp("s") / "r.sqlite") as store:
        for i, reply in enumerate(replies):
            assert store.put(str(i), reply) == reply
        assert store.get(map(str, range(len(replies) + 5))) == {str(i): r for i, r in enumerate(replies)} and len(
            store
        ) == len(replies)


def test_many_keys_at_once(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        for i in range(1300):
            store.put(f"k{i}", Reply(str(i)))
        assert len(store.get(f"k{i}" for i in range(2000))) == 1300


def test_the_first_reply_stays():
    "Two runs that ask the same thing at the same time go on with the same reply."
    import tempfile

    with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/r") as one, Store(f"{folder}/r") as two:
        assert one.put("k", Reply("first")) == two.put("k", Reply("second")) == Reply("first")


def test_every_part_of_a_request_is_in_the_key():
    base = {
        "server": "s",
        "model": "m",
        "messages": [{"role": "user", "content": "a"}],
        "temperature": 0,
        "max_tokens": 1,
    }
    changed = [
        base | {k: v}
        for k, v in [
            ("server", "t"),
            ("model", "n"),
            ("messages", [{"role": "user", "content": "a "}]),
            ("temperature", 0.0001),
            ("max_tokens", 2),
            ("seed", 1),
        ]
    ]
    assert len({reply_key(r, t) for r in [base, *changed] for t in (0, 1)}) == 14
    with pytest.raises(ValueError):
        reply_key({"x": float("nan")})


def test_a_store_that_is_none(tmp_path):
    (tmp_path / "text").write_text("hello " * 100)
    with pytest.raises(CoraError, match="text: not a usable store"):
        Store(tmp_path / "text")
    with pytest.raises(CoraError, match="there is no folder"):
        Store(tmp_path / "no" / "r.sqlite")


def test_a_disk_that_refuses_stops_the_run(tmp_path):
    store = Store(tmp_path / "r.sqlite")
    store._db = sqlite3.connect(f"file:{tmp_path / 'r.sqlite'}?mode=ro", uri=True, check_same_thread=False)
    with pytest.raises(CoraError, match="could not be kept .* so that nothing is lost"):
        evaluate(SimulatedRespondent(), VARIANTS[:20], store=store, progress=False)


class Logged:
    "A slow respondent that writes down every call before it answers."

    def __init__(self, log, pause=0.0):
        self.inner, self.log, self.pause = SimulatedRespondent(knows=0.5, slips=0.1), log, pause
        self.name, self.describe, self.request = self.inner.name, self.inner.describe, self.inner.request

    async def answer(self, prompts):
        for i, p in enumerate(prompts):
            os.write(self.log, (reply_key(self.request(p), p.trial) + "\n").encode())
            time.sleep(self.pause)
            async for _, reply in self.inner.answer([p]):
                yield i, reply


def _run(folder, log_name, pause, stop):
    tqdm.set_lock(
        threading.RLock()
    )  # tqdm's own is shared with forked children: one killed while it holds it would block everybody
    log = os.open(folder / log_name, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    with Store(folder / "r.sqlite") as store:
        evaluate(Logged(log, pause), VARIANTS, store=store, stop=stop, progress=False)
    os._exit(0)


@pytest.mark.parametrize("stop,kills", [(None, 70), ("cora", 30)])
def test_a_run_killed_at_any_moment_resumes(tmp_path, stop, kills):
    """SIGKILL after the n-th reply, for n from 0 on: nothing that was stored is asked again, and the end is that of an
    undisturbed run."""
    fork, rng, known = multiprocessing.get_context("fork"), random.Random(0), set()
    for kill in range(kills):
        child = fork.Process(target=_run, args=(tmp_path, f"log{kill}", 0.0005, stop))
        child.start()
        new = 0 if kill % 10 == 0 else rng.randint(1, 20)  # 0: while it starts
        kill_at_reply(
            child.pid, tmp_path / "r.sqlite", len(known) + new, child.is_alive, rng.uniform(0, 0.002 if new else 0.02)
        )
        child.join()
        assert child.exitcode == -signal.SIGKILL
        before = len(known)
        calls = (tmp_path / f"log{kill}").read_text().split() if (tmp_path / f"log{kill}").exists() else []
        assert not known & {c for c in calls if len(c) == 64} and len(calls) == len(set(calls))
        with Store(tmp_path / "r.sqlite") as store:
            known = {row[0] for row in store._db.execute("select key from replies")}
            assert len(known) >= before + new
            assert store._db.execute("pragma integrity_check").fetchone() == ("ok",)
    log = os.open(tmp_path / "last", os.O_CREAT | os.O_WRONLY)
    with Store(tmp_path / "r.sqlite") as store:
        resumed = evaluate(Logged(log), VARIANTS, store=store, stop=stop, progress=False)
    os.close(log)
    undisturbed = evaluate(SimulatedRespondent(knows=0.5, slips=0.1), VARIANTS, stop=stop, progress=False)
    assert (
        resumed.table.equals(undisturbed.table)
        and 0 < len(known)
        and not known & set((tmp_path / "last").read_text().split())
    )


def test_two_runs_share_a_store(tmp_path):
    "At the same time, in two processes: both end with the same responses, and nothing is broken."
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=_run, args=(tmp_path, f"log{i}", 0.0001, None)) for i in range(3)]
    for c in children:
        c.start()
    for c in children:
        c.join()
    assert [c.exitcode for c in children] == [0, 0, 0]
    with Store(tmp_path / "r.sqlite") as store:
        assert len(store) == len(VARIANTS)
        after = evaluate(SimulatedRespondent(knows=0.5, slips=0.1), VARIANTS, store=store, progress=False)
    assert after.facts["calls"]["asked"] == 0 and after.table.equals(
        evaluate(SimulatedRespondent(knows=0.5, slips=0.1), VARIANTS, progress=False).table
    )


class Parrot:
    "Says the same to the same text, and counts."

    name = "parrot"

    def __init__(self, fails=()):
        self.calls, self.fails = [], set(fails)

    def describe(self):
        return {"respondent": "parrot"}

    def request(self, prompt):
        return {"text": prompt.text}

    async def answer(self, prompts):
        for i, p in enumerate(prompts):
            self.calls.append(p.text)
            yield (
                i,
                Reply(error="timeout")
                if len(self.calls) in self.fails
                else Reply("AB"[len(p.text) % 2], meta={"prompt_tokens": 10, "completion_tokens": 1}),
            )


def test_equal_prompts_are_asked_once():
    parrot = Parrot()
    responses = evaluate(parrot, VARIANTS, progress=False)
    assert (
        len(parrot.calls) == len(set(parrot.calls)) < len(VARIANTS) == len(responses)
        and responses.table["reply"].notna().all()
    )
    calls = responses.facts["calls"]
    assert calls["asked"] == len(parrot.calls) and calls["prompt_tokens"] == 10 * len(parrot.calls)
    assert plan(Parrot(), VARIANTS)["calls"] == len(parrot.calls)
    assert evaluate(Parrot(), VARIANTS, trials=2, progress=False).facts["calls"]["asked"] == 2 * len(parrot.calls)


def test_failures_are_not_kept_and_asked_again(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        first = evaluate(Parrot(fails={3, 5}), VARIANTS[:20], store=store, progress=False)
        assert first.table["error"].notna().sum() >= 2 and plan(Parrot(), VARIANTS[:20], store)["calls"] == 2
        parrot = Parrot()
        second = evaluate(parrot, VARIANTS[:20], store=store, progress=False)
        assert len(parrot.calls) == 2 and second.table["error"].isna().all()
