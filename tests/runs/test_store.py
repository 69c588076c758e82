"""The store of replies: nothing is lost, nothing is asked twice, whatever is killed and however many share it."""

import contextlib
import json
import math
import multiprocessing
import os
import random
import signal
import sqlite3
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tqdm.auto import tqdm

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import CoraError
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import REPLIED, in_state
from cora_nb.runs.asking import Asking, Settled
from cora_nb.runs.batch import write_batch
from cora_nb.runs.evaluate import evaluate, plan
from cora_nb.runs.postgres_store import _PostgresClaims
from cora_nb.runs.sqlite_store import _SqliteClaims, reply_row
from cora_nb.runs.store import Claims, Store, asked_prompts, reply_key
from cora_nb.variants.families import make_variants
from faulty_server import Answer, FaultyServer, completion, refusal
from helpers import kill_at_reply, slow_after, stored_replies

VARIANTS = make_variants(load_benchmark("math")[:100])


@pytest.fixture(params=slow_after(1, ["SQLite", "PostgreSQL"]))
def place(request, tmp_path):
    "The address of a store that does not exist yet, in a file and in a database."
    return tmp_path / "r.sqlite" if request.param == "SQLite" else request.getfixturevalue("postgres").empty_store()


@pytest.fixture
def lease(monkeypatch):
    "Sets the seconds for which claims hold, also in processes that are forked afterwards."

    def last(seconds):
        for kind in (_SqliteClaims, _PostgresClaims):
            monkeypatch.setattr(kind, "lease", seconds)

    return last


def age(store, claims, seconds) -> None:
    "As if the lease of a run had been renewed so many seconds earlier."
    if isinstance(store.path, Path):
        store.rows._db.execute("update askers set seen = seen - ? where who = ?", [seconds, claims.rows.who])
    else:
        statement = "update cora_nb.askers set seen = seen - %s * interval '1 second' where who = %s"
        store.rows._db._db.execute(statement, [seconds, claims.rows.who])


def claims_left(store) -> int:
    "How many rows of claims and of claiming runs there are."
    connection, schema = (store.rows._db, "") if isinstance(store.path, Path) else (store.rows._db._db, "cora_nb.")
    counts = [f"(select count(*) from {schema}{table})" for table in ("asking", "askers")]
    return connection.execute(f"select {' + '.join(counts)}").fetchone()[0]


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
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_goes_in_comes_out(place, replies):
    with Store(place) as store:
        before = len(store)
        keys = [str(before + i) for i in range(len(replies) + 5)]
        for key, reply in zip(keys, replies):
            assert store.put(key, reply) == reply
        assert store.get(keys) == dict(zip(keys, replies)) and len(store) == before + len(replies)


def test_many_keys_at_once(place):
    with Store(place) as store:
        for i in range(1300):
            store.put(f"k{i}", Reply(str(i)))
        assert len(store.get(f"k{i}" for i in range(2000))) == 1300


def test_the_first_reply_stays(place):
    "Two runs that ask the same thing at the same time go on with the same reply."
    with Store(place) as one, Store(place) as two:
        assert one.put("k", Reply("first")) == two.put("k", Reply("second")) == Reply("first")
        assert (one.kept, two.kept) == (1, 0)


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
    store.rows._db = sqlite3.connect(f"file:{tmp_path / 'r.sqlite'}?mode=ro", uri=True, check_same_thread=False)
    with pytest.raises(CoraError, match="could not be kept .* so that nothing is lost"):
        evaluate(SimulatedRespondent(), VARIANTS[:20], store=store, progress=False)


class Logged:
    "A slow respondent that writes down every call before it answers, and answers no more after some of them."

    def __init__(self, log, pause=0.0, most=None):
        self.inner, self.log, self.pause = SimulatedRespondent(knows=0.5, slips=0.1), log, pause
        self.calls, self.most = 0, most
        self.name, self.describe, self.request = self.inner.name, self.inner.describe, self.inner.request

    async def answer(self, prompts):
        for i, p in enumerate(prompts):
            os.write(self.log, (reply_key(self.request(p), p.trial) + "\n").encode())
            time.sleep(60 if self.calls == self.most else self.pause)
            self.calls += 1
            async for _, reply in self.inner.answer([p]):
                yield i, reply


def _run(place, folder, log_name, pause, stop, most=None):
    tqdm.set_lock(
        threading.RLock()
    )  # tqdm's own is shared with forked children: one killed while it holds it would block everybody
    log = os.open(folder / log_name, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    with Store(place) as store:
        evaluate(Logged(log, pause, most), VARIANTS, store=store, stop=stop, progress=False)
    os._exit(0)


@pytest.mark.slow
@pytest.mark.parametrize("stop,kills", [(None, 70), (Settled(), 30)])
def test_a_run_killed_at_any_moment_resumes(place, tmp_path, stop, kills, lease):
    """SIGKILL after the n-th reply, for n from 0 on: nothing that was stored is asked again, and the end is that of an
    undisturbed run. A run that is to be killed stops answering soon after, however late the kill comes."""
    fork, rng, known = multiprocessing.get_context("fork"), random.Random(0), set()
    lease(0.5)  # for so long the next run waits
    in_a_file = isinstance(place, Path)
    for kill in range(kills if in_a_file else kills // 4):
        new = 0 if kill % 10 == 0 else rng.randint(1, 20)  # 0: while it starts
        child = fork.Process(target=_run, args=(place, tmp_path, f"log{kill}", 0.0005, stop, new + 5))
        child.start()
        kill_at_reply(child.pid, place, len(known) + new, child.is_alive, rng.uniform(0, 0.002 if new else 0.02))
        child.join()
        assert child.exitcode == -signal.SIGKILL
        before = len(known)
        calls = (tmp_path / f"log{kill}").read_text().split() if (tmp_path / f"log{kill}").exists() else []
        assert not known & {c for c in calls if len(c) == 64} and len(calls) == len(set(calls))
        with Store(place) as store:
            known = {row[0] for row in store.rows.piece("", 10_000)}
            assert before + new <= len(known) == len(store)
            assert not in_a_file or store.rows._db.execute("pragma integrity_check").fetchone() == ("ok",)
    log = os.open(tmp_path / "last", os.O_CREAT | os.O_WRONLY)
    with Store(place) as store:
        resumed = evaluate(Logged(log), VARIANTS, store=store, stop=stop, progress=False)
    os.close(log)
    undisturbed = evaluate(SimulatedRespondent(knows=0.5, slips=0.1), VARIANTS, stop=stop, progress=False)
    assert (
        resumed.table.equals(undisturbed.table)
        and 0 < len(known)
        and not known & set((tmp_path / "last").read_text().split())
    )


def _open(path, together):
    together.wait()
    with Store(path) as store:
        os._exit(len(store))


@pytest.mark.slow
def test_a_new_store_is_opened_by_several_at_once(place, tmp_path, request):
    "Whoever comes while another one makes the tables waits, and does not call the file locked or somebody else's."
    fork = multiprocessing.get_context("fork")
    in_a_file = isinstance(place, Path)
    for i in range(40 if in_a_file else 10):
        new = tmp_path / f"{i}.sqlite" if in_a_file else request.getfixturevalue("postgres").empty_store()
        together = fork.Barrier(6)
        children = [fork.Process(target=_open, args=(new, together)) for _ in range(6)]
        for c in children:
            c.start()
        for c in children:
            c.join()
        assert [c.exitcode for c in children] == [0] * 6


@pytest.mark.slow
def test_two_runs_share_a_store(place, tmp_path):
    "At the same time, in two processes: both end with the same responses, and nothing is broken."
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=_run, args=(place, tmp_path, f"log{i}", 0.0001, None)) for i in range(3)]
    for c in children:
        c.start()
    for c in children:
        c.join()
    assert [c.exitcode for c in children] == [0, 0, 0]
    with Store(place) as store:
        assert len(store) == len(VARIANTS)
        after = evaluate(SimulatedRespondent(knows=0.5, slips=0.1), VARIANTS, store=store, progress=False)
    assert after.facts.calls["asked"] == 0 and after.table.equals(
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
    calls = responses.facts.calls
    assert calls["asked"] == len(parrot.calls) and calls["prompt_tokens"] == 10 * len(parrot.calls)
    assert plan(Parrot(), VARIANTS)["calls"] == len(parrot.calls)
    assert evaluate(Parrot(), VARIANTS, Asking(trials=2), progress=False).facts.calls["asked"] == 2 * len(parrot.calls)


def test_failures_are_not_kept_and_asked_again(place):
    with Store(place) as store:
        first = evaluate(Parrot(fails={3, 5}), VARIANTS[:20], store=store, progress=False)
        assert in_state(first.table, "failed").sum() >= 2 and plan(Parrot(), VARIANTS[:20], store=store)["calls"] == 2
        parrot = Parrot()
        second = evaluate(parrot, VARIANTS[:20], store=store, progress=False)
        assert len(parrot.calls) == 2 and in_state(second.table, *REPLIED).all()


# ---------------------------------------------------------------- equal prompts


class Sampler(Parrot):
    "Says which repetition it was asked for, at a temperature."

    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def request(self, prompt):
        return {"text": prompt.text, "temperature": self.temperature}

    async def answer(self, prompts):
        for i, p in enumerate(prompts):
            self.calls.append((p.text, p.trial))
            yield i, Reply(f"{'AB'[p.trial % 2]}, draw {p.trial}")


@pytest.mark.parametrize("temperature", [0, 0.0, 0.001, 0.7, 1, 2.0])
@pytest.mark.parametrize("trials", [1, 3])
def test_above_temperature_0_each_variant_is_a_draw_of_its_own(tmp_path, temperature, trials):
    "At 0, equal prompts share one reply and are asked once; above it none shares, and nothing is asked again."
    some = VARIANTS[:60]
    texts_of = [p.text for p in make_prompts(some)]
    assert len(set(texts_of)) < len(texts_of)
    with Store(tmp_path / "r.sqlite") as store:
        who = Sampler(temperature)
        run = evaluate(who, some, Asking(trials=trials), store=store, progress=False)
        n = len(texts_of) if temperature else len(set(texts_of))
        assert len(who.calls) == len(set(who.calls)) == len(store) == n * trials
        assert plan(Sampler(temperature), some, Asking(trials=trials))["calls"] == n * trials
        table = run.table.assign(text=[t for t in texts_of for _ in range(trials)])
        drawn = table.groupby(["text", "trial"])["reply"].agg(["nunique", "size"])
        assert (drawn["nunique"] == (drawn["size"] if temperature else 1)).all()
        again = evaluate(Sampler(temperature), some, Asking(trials=trials), store=store, progress=False)
        assert again.facts.calls["asked"] == 0 and again.table.equals(run.table)
        if trials == 3:  # the trials of a shorter run are those of the longer one
            short = Sampler(temperature)
            evaluate(short, some, store=store, progress=False)
            assert not short.calls


def test_a_batch_asks_for_draws_of_their_own(tmp_path):
    prompts = make_prompts(VARIANTS[:60])
    different = len({p.text for p in prompts})
    for temperature, n in ((0, different), (0.7, 60)):
        who = ChatRespondent("m", "http://127.0.0.1:9/v1", temperature=temperature, seed=5)
        (file,) = write_batch(who, prompts, tmp_path / f"{temperature}.jsonl")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert len(lines) == len({line["custom_id"] for line in lines}) == n
        assert len({json.dumps(line["body"]) for line in lines}) == n  # the seeds differ, too
        asked, keys = asked_prompts(who, prompts)
        assert {line["custom_id"] for line in lines} == set(keys)


# ---------------------------------------------------------------- keys

CHAT = dict(model="m", base_url="http://127.0.0.1:9/v1")


def test_everything_that_is_sent_is_in_the_key():
    prompt = make_prompts(VARIANTS[:1])[0]

    def key(**fields):
        return reply_key(ChatRespondent(**{**CHAT, **fields}).request(prompt))

    different = [
        {},
        {"temperature": 0.5},
        {"temperature": 1},
        {"api_version": "2024-06-01"},
        {"api_version": "2024-10-21"},
        {"extra": {"top_p": 0.5}},
        {"extra": {"top_p": 0.5, "nested": {"a": [1, {"b": None}]}}},
        {"extra": {"nested": {"a": [1, {"b": 2}]}}},
        {"max_tokens": 2},
        {"endpoint": "completions"},
        {"seed": 0},
        {"top_logprobs": 5},
        {"base_url": "http://127.0.0.1:9/v2"},
        {"model": "n"},
    ]
    assert len({key(**fields) for fields in different}) == len(different)
    same = [{"temperature": 0}, {"temperature": 0.0}, {"temperature": -0.0}, {"extra": {}}, {"name": "x"}]
    same += [{"concurrency": 1}, {"retries": 0}, {"timeout": 5}, {"base_url": "http://127.0.0.1:9/v1/"}]
    assert {key(**fields) for fields in same} == {key()}
    assert key(temperature=1) == key(temperature=1.0)


@pytest.mark.parametrize("name", ["model", "messages", "prompt", "temperature", "max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("value", ["x", None, 1])
def test_extra_cannot_replace_what_is_ours(name, value):
    with pytest.raises(CoraError, match=f"extra must not contain '{name}'"):
        ChatRespondent(**CHAT, extra={name: value})


@pytest.mark.parametrize("extra", [{"a": float("nan")}, {"a": {1, 2}}, {"a": b"x"}, {1: 2}, "top_p", None, [("a", 1)]])
def test_extra_is_plain_json(extra):
    with pytest.raises(CoraError, match="extra must"):
        ChatRespondent(**CHAT, extra=extra)


OLD = """
create table replies (
    key text primary key,
    text text,         -- null for respondents that only score
    scores text,       -- JSON list of log-probabilities, or null
    confidence real,
    meta text          -- JSON object: tokens, as the server counted them; or null
) without rowid
"""
OLD_KEYS = {  # of the first variant of the arithmetic, as version 0.1 wrote them
    "chat": ({}, "cce0795d9f9446bfc1cf95c2d4105f6ff19716cabe947b58051458fd75d705cf"),
    "extra": (
        dict(temperature=0.7, extra={"top_p": 0.5, "logit_bias": {"5": 1}}, seed=4, top_logprobs=3),
        "358b1655bd1453715f93b248696b8c0c814da1d682c8d9d48c4f3118ba34a6b4",
    ),
    "completions": (
        dict(endpoint="completions", temperature=1.0),
        "7b32bf8f577861fe809a3d6ebebcb41cb5b752b524ce5244c6f4469a19b0b91a",
    ),
}


@pytest.mark.parametrize("which", OLD_KEYS)
def test_a_store_of_the_version_before_stays_usable(tmp_path, which):
    "Its replies are found under the same keys; what comes later has checksums."
    fields, key = OLD_KEYS[which]
    path = tmp_path / "old.sqlite"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("pragma journal_mode = wal")
        db.execute(OLD)
        row = (key, "B", "[-0.5, -Infinity]", 0.5, '{"prompt_tokens": 9}')
        db.execute("insert into replies values (?, ?, ?, ?, ?)", row)
    kept = Reply("B", (-0.5, -math.inf), 0.5, None, {"prompt_tokens": 9})
    for _ in range(2):
        with Store(path) as store:
            _, keys = asked_prompts(ChatRespondent(**CHAT, max_tokens=1, **fields), make_prompts(VARIANTS[:20]))
            assert keys[0] == key and store.get(keys) == {key: kept} and store.put(key, Reply("C")) == kept
            store.put("new", Reply("D"))
            assert len(store) == 2
    with Store(path) as store:
        rows = dict(store.rows._db.execute("select key, checksum from replies"))
        assert rows[key] is None and rows["new"] is not None and store.get(["new"]) == {"new": Reply("D")}


# ---------------------------------------------------------------- two processes, one store


def _ask_server(url, path, fields, n, result):
    tqdm.set_lock(threading.RLock())
    with Store(path) as store:
        run = evaluate(ChatRespondent("m", url, retries=0, **fields), ONCE[:n], store=store, progress=False)
    result.put((run.table["reply"].tolist(), int(in_state(run.table, "failed").sum()), run.facts.calls))
    result.close()
    result.join_thread()
    os._exit(0)


ONCE = [v for v in make_variants(load_benchmark("math")) if v.method == "original"][:200]


@pytest.mark.parametrize("fields", [{}, {"concurrency": 4}, {"temperature": 0.7}])
def test_two_processes_do_not_pay_twice(place, fields):
    "200 equal prompts: at most 210 requests, and the same replies for both."
    fork = multiprocessing.get_context("fork")
    with FaultyServer(lambda asked: Answer(body=completion("AB"[asked.number % 2]), wait=0.01)) as server:
        result = fork.Queue()
        args = (server.url, place, fields, 200, result)
        children = [fork.Process(target=_ask_server, args=args) for _ in range(2)]
        for c in children:
            c.start()
        (one, failed, calls), (two, failed_two, calls_two) = result.get(timeout=100), result.get(timeout=100)
        for c in children:
            c.join()
        assert len(ONCE) == 200 and len(server.asked) <= 210 and not failed and not failed_two
        assert one == two and len(one) == 200
        assert calls["asked"] + calls_two["asked"] == len(server.asked)
        assert calls["asked"] + calls["in_store"] == calls_two["asked"] + calls_two["in_store"] == 200


def test_what_one_run_fails_to_get_another_asks_for(place):
    "Failures of one process are not waited for by the other."
    fork, result = multiprocessing.get_context("fork"), multiprocessing.get_context("fork").Queue()
    bad = Answer(400, refusal("no"))
    with FaultyServer(lambda asked: bad if asked.number % 10 == 5 else Answer(wait=0.01)) as server:
        args = (server.url, place, {}, 60, result)
        children = [fork.Process(target=_ask_server, args=args) for _ in range(2)]
        for c in children:
            c.start()
        found = [result.get(timeout=100) for _ in children]
        for c in children:
            c.join()
        failed = sum(f[1] for f in found)
        assert len(server.asked) == 60 + failed - (len({*range(60)}) - stored_replies(place))


@pytest.mark.parametrize("n", slow_after(2, range(20)))
def test_a_run_that_waits_takes_over_from_a_killed_one(place, tmp_path, n, lease):
    "SIGKILL to one of two processes after the n-th reply: the other asks the rest, and nothing stored twice."
    fork = multiprocessing.get_context("fork")
    some = VARIANTS[:40]
    lease(3.0)

    def work(log, pause, most):
        tqdm.set_lock(threading.RLock())
        log = os.open(tmp_path / log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        with Store(place) as store:
            evaluate(Logged(log, pause, most), some, store=store, progress=False)
        os._exit(0)

    first = fork.Process(target=work, args=("first", 0.01, n + 2))  # it is at work when it is killed
    first.start()
    while not (tmp_path / "first").exists() or not (tmp_path / "first").read_text():
        assert first.is_alive()
        time.sleep(0.001)
    other = fork.Process(target=work, args=("other", 0, None))
    other.start()
    kill_at_reply(first.pid, place, n, first.is_alive)
    first.join()
    before = stored_replies(place)
    other.join(600)
    assert other.exitcode == 0 and n <= before
    calls, more = ((tmp_path / name).read_text().split() for name in ("first", "other"))
    with Store(place) as store:
        assert len(store) == len({*calls, *more}) == len(some)
        assert len(set(calls) & set(more)) <= 1  # the one that was under way
        assert not claims_left(store)


def takes_in_the_end(claims, keys) -> bool:
    "Whether a run that waits gets all of some keys."
    end = time.monotonic() + 20
    while claims.take(keys) != list(keys):
        assert time.monotonic() < end, "the claims of another run do not end"
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("seconds", [100, -100])
def test_a_claim_ends_with_its_time(place, lease, seconds):
    "Not renewed for longer than a lease, or renewed in a future that no lease reaches: the clock was set back."
    lease(1000)
    with Store(place) as store, Claims(store) as gone, Claims(store) as other:
        assert gone.take("ab") == ["a", "b"]
        age(store, gone, seconds)
        assert other.take("ac") == ["c"]
        lease(0.05)
        assert takes_in_the_end(other, "abc")
        assert gone.rows.renew() and gone.take("ad") == ["d"]  # it comes back, and takes what is free


def test_a_lease_that_is_renewed_holds(place, lease):
    lease(2.0)
    with Store(place) as store, Claims(store) as one, Claims(store) as other:
        assert one.take("a") == ["a"]
        for _ in range(25):
            time.sleep(0.1)
            assert other.take("ab") == ["b"]
        one._end.set()
        assert takes_in_the_end(other, "ab")


def test_the_lease_of_a_killed_process_is_waited_for(place, tmp_path, lease):
    "The same run at once after SIGKILL: it waits for the rest of the lease, loses nothing and asks nothing twice."
    lease(2.0)
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=_run, args=(place, tmp_path, "first", 0.0005, None, 55))
    child.start()
    kill_at_reply(child.pid, place, 50, child.is_alive)
    child.join()
    start, before = time.monotonic(), stored_replies(place)
    log = os.open(tmp_path / "again", os.O_CREAT | os.O_WRONLY)
    with Store(place) as store:
        again = evaluate(Logged(log), VARIANTS, store=store, progress=False)
        assert not claims_left(store)
    os.close(log)
    assert time.monotonic() - start < 30
    assert again.facts.calls["in_store"] == before >= 50
    calls, more = ((tmp_path / name).read_text().split() for name in ("first", "again"))
    assert len(set(calls) & set(more)) <= 1 and len(more) == len(set(more)) == again.facts.calls["asked"]


class Held(Logged):
    "Waits at one prompt until there is a certain file."

    def __init__(self, log, go, at):
        super().__init__(log)
        self.go, self.at = go, at

    async def answer(self, prompts):
        async for i, reply in super().answer(prompts):
            while i == self.at and not self.go.exists():
                time.sleep(0.01)
            yield i, reply


def test_a_process_that_stood_still_for_longer_than_its_lease(place, tmp_path, lease):
    "SIGSTOP: another run asks the rest. SIGCONT: it asks the rest, too, and both end with what was stored first."
    lease(1.0)
    some, log = VARIANTS[:40], tmp_path / "log"

    def work():
        tqdm.set_lock(threading.RLock())
        held = Held(os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY), tmp_path / "go", 20)
        with Store(place) as store:
            evaluate(held, some, store=store, progress=False)
        os._exit(0)

    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    while not log.exists() or len(log.read_text().split()) < 21:
        assert child.is_alive()
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGSTOP)
    other = SimulatedRespondent(knows=0.5, slips=0.1)
    with Store(place) as store:
        run = evaluate(other, some, store=store, progress=False)
        assert run.facts.calls["in_store"] == 20
        stored = store.get(row[0] for row in store.rows.piece("", 1000))
        (tmp_path / "go").touch()
        os.kill(child.pid, signal.SIGCONT)
        child.join(100)
        assert child.exitcode == 0 and not claims_left(store)
        assert store.get(stored) == stored and len(store) == len(stored)
    assert run.table.equals(evaluate(other, some, progress=False).table)


@pytest.mark.parametrize("slept", [3600, -3600])
def test_a_machine_that_slept_or_set_its_clock_is_no_end_of_its_runs(place, lease, slept):
    "The first to notice spares the others for a lease. Who does not renew while it is awake is given up."
    lease(100)
    with Store(place) as store, Claims(store) as one, Claims(store) as other:
        assert one.take("a") == ["a"] and other.take("b") == ["b"]
        for claims in (one, other):
            age(store, claims, slept)
            claims._renewed -= slept
        assert other.take("ac") == ["c"] and other.take("ac") == ["c"]
        assert one.rows.renew() and other.take("ac") == ["c"]
        age(store, one, slept)
        lease(0.05)
        assert takes_in_the_end(other, "ac")


def test_claims_are_given_back_one_or_many(place):
    with Store(place) as store, Claims(store) as one, Claims(store) as other:
        assert one.take("abcde") == [*"abcde"]
        one.give_back("b")
        assert other.take("abcde") == ["b"]
        one.give_back("a", "b", "d", "nowhere")  # b is another's
        assert other.take("abcde") == ["a", "b", "d"]
        assert one.take("abcde") == ["c", "e"]


def test_claims_of_the_version_before_hold_and_end(place, lease):
    "It told processes by their machine and number, in the same tables. Both versions may share a store."
    with Store(place) as store, Claims(store) as now, Claims(store) as before:
        assert before.take("ab") == ["a", "b"]
        schema, db = ("", store.rows._db) if isinstance(place, Path) else ("cora_nb.", store.rows._db._db)
        db.execute(f"update {schema}askers set machine = 'node 5f boot pid:[4026531836]', process = 1")
        assert now.take("abc") == ["c"]
        lease(0.05)
        assert takes_in_the_end(now, "abc")


# ---------------------------------------------------------------- damage

ROWS = {f"{i:064x}": Reply("ABCD"[i % 4] * (1 + i % 50), (-0.5, -1.25), 0.5, None, {"n": i}) for i in range(500)}


def _sql(*statements):
    def damage(path):
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("pragma writable_schema = on")
            for statement in statements:
                db.execute(statement)

    return damage


def _bytes(change):
    def damage(path):
        path.write_bytes(change(bytearray(path.read_bytes())))

    return damage


def _put_in(place, new):
    "Other bytes at a place, which may be a share of the file."

    def change(data):
        start = int(place * len(data)) if isinstance(place, float) else place
        data[start : start + len(new)] = new
        return data

    return _bytes(change)


def _swap(data):
    "Two pages in each other's place."
    data[4096 * 3 : 4096 * 4], data[4096 * 4 : 4096 * 5] = data[4096 * 4 : 4096 * 5], data[4096 * 3 : 4096 * 4]
    return data


def _a_text(data):
    "One letter of one reply."
    at = bytes(data).index(b"BBBBBBBBBB")
    data[at] = ord("C")
    return data


def _folder(path):
    path.unlink()
    path.mkdir()


def _unreadable(path):
    path.unlink()
    path.symlink_to("/nowhere/at/all")


def _other_program(path):
    path.unlink()
    _sql("create table places (url text)", "insert into places values ('x')")(path)


ASKED = f"key = '{7:064x}'"
REFUSED, SAME, EMPTY = "one line", "all replies are there", "begun anew"
DAMAGES = {
    "empty file": (_bytes(lambda d: b""), EMPTY),
    "missing": (lambda p: p.unlink(), EMPTY),
    "a text": (_bytes(lambda d: b"hello " * 1000), REFUSED),
    "zeros": (_bytes(lambda d: bytes(len(d))), REFUSED),
    "noise": (_bytes(lambda d: random.Random(0).randbytes(len(d))), REFUSED),
    "cut in the header": (_bytes(lambda d: d[:50]), REFUSED),
    "cut after the first page": (_bytes(lambda d: d[:4096]), REFUSED),
    "cut in half": (_bytes(lambda d: d[: len(d) // 2]), REFUSED),
    "last page lost": (_bytes(lambda d: d[:-4096]), REFUSED),
    "last byte lost": (_bytes(lambda d: d[:-1]), REFUSED),
    "something behind it": (_bytes(lambda d: d + b"tail" * 2000), SAME),
    "other first letter": (_put_in(0, b"X"), REFUSED),
    "other page size": (_put_in(16, b"\x02\x00"), REFUSED),
    "other program's number": (_put_in(68, b"\x01\x02\x03\x04"), REFUSED),
    "later layout": (_sql("pragma user_version = 99"), REFUSED),
    "negative layout": (_sql("pragma user_version = -1"), REFUSED),
    "first page overwritten": (_put_in(100, bytes(1000)), REFUSED),
    "a page of zeros": (_put_in(4096 * 5, bytes(4096)), REFUSED),
    "a page of noise": (_put_in(4096 * 4, random.Random(1).randbytes(4096)), REFUSED),
    "two pages swapped": (_bytes(_swap), REFUSED),
    "a page head": (_put_in(4096 * 3, b"\x0d\xff\xff\xff\xff"), REFUSED),
    "a letter of a reply": (_bytes(_a_text), REFUSED),
    "another reply": (_sql(f"update replies set text = 'D' where {ASKED}"), REFUSED),
    "another confidence": (_sql(f"update replies set confidence = 0.6 where {ASKED}"), REFUSED),
    "another score": (_sql(f"update replies set scores = '[-0.5, -1.2]' where {ASKED}"), REFUSED),
    "scores that are no JSON": (_sql(f"update replies set scores = '[-0.5, ', checksum = null where {ASKED}"), REFUSED),
    "scores that are texts": (_sql(f"update replies set scores = '[\"a\"]', checksum = null where {ASKED}"), REFUSED),
    "a number for scores": (_sql(f"update replies set scores = 5, checksum = null where {ASKED}"), REFUSED),
    "JSON without end": (_sql(f"update replies set meta = '{'[' * 100_000}', checksum = null where {ASKED}"), REFUSED),
    "a list for meta": (_sql(f"update replies set meta = '[1]', checksum = null where {ASKED}"), REFUSED),
    "bytes for a text": (_sql(f"update replies set text = x'ff00', checksum = null where {ASKED}"), REFUSED),
    "a text that is not UTF-8": (_sql(f"update replies set text = cast(x'ff' as text) where {ASKED}"), REFUSED),
    "words for a confidence": (_sql(f"update replies set confidence = 'x', checksum = null where {ASKED}"), REFUSED),
    "a checksum lost": (_sql(f"update replies set checksum = 7 where {ASKED}"), REFUSED),
    "table lost": (_sql("drop table replies"), REFUSED),
    "table renamed": (_sql("alter table replies rename to answers"), REFUSED),
    "column lost": (_sql("alter table replies drop column meta"), REFUSED),
    "claims lost": (_sql("drop table asking"), REFUSED),
    "schema damaged": (_sql("update sqlite_master set sql = 'create tabel' where name = 'replies'"), REFUSED),
    "root page damaged": (_sql("update sqlite_master set rootpage = 9999 where name = 'replies'"), REFUSED),
    "another program's database": (_other_program, REFUSED),
    "a folder": (_folder, REFUSED),
    "a link to nowhere": (_unreadable, REFUSED),
    "a broken journal beside it": (lambda p: Path(f"{p}-wal").write_bytes(b"x" * 5000), SAME),
    "an old journal beside it": (lambda p: Path(f"{p}-journal").write_bytes(b"x" * 5000), SAME),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_store(tmp_path, kind):
    "Refused in one line, or every reply as it was: no traceback, no other reply, none that is lost unsaid."
    assert len(DAMAGES) >= 30
    damage, expected = DAMAGES[kind]
    path = tmp_path / "r.sqlite"
    with Store(path) as store:
        for key, reply in ROWS.items():
            store.put(key, reply)
    damage(path)
    is_file = path.is_file()
    before = path.read_bytes() if is_file else None
    try:
        with Store(path) as store:
            found = store.get(ROWS)
            assert found == (ROWS if expected == SAME else {}), "replies were lost or changed"
        assert expected in (SAME, EMPTY)
    except CoraError as e:
        assert expected == REFUSED, e
        assert len(str(e).splitlines()) == 1 and str(path) in str(e) and len(str(e)) < 400
        if is_file and "damaged (" not in str(e):
            assert path.read_bytes() == before, "a file that was refused was written to"


@pytest.mark.slow
def test_every_byte_of_a_store_counts(tmp_path):
    "One byte changed, anywhere: refused in one line, or every reply is right or asked again."
    source, rng, refused = tmp_path / "r.sqlite", random.Random(0), 0
    with Store(source) as store:
        for key, reply in ROWS.items():
            store.put(key, reply)
    good = source.read_bytes()
    for n in range(300):
        path = tmp_path / f"{n}.sqlite"
        data = bytearray(good)
        data[rng.randrange(len(data)) if n % 3 else rng.randrange(200)] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            with Store(path) as store:
                assert store.get(ROWS).items() <= ROWS.items()
        except CoraError as e:
            refused += 1
            assert len(str(e).splitlines()) == 1
        path.unlink()
    assert refused > 100


def test_a_closed_store_says_so(place):
    store = Store(place)
    store.close()
    for what in (lambda: store.get(["a"]), lambda: store.put("a", Reply("B")), lambda: len(store)):
        with pytest.raises(CoraError, match=f"{store.path}: .*closed"):
            what()


def test_replies_of_every_kind_are_kept_or_refused(place):
    with Store(place) as store:
        half = store.put("half", Reply("half \ud800 a character"))
        assert half == store.get(["half"])["half"] and half.text == "half \\ud800 a character"
        assert store.put("nan", Reply("A", confidence=math.nan)).text == "A" and store.get(["nan"])["nan"].text == "A"
        nul = Reply("\0 before, \0 and behind \0", meta={"\0": "\0"})
        assert store.put("nul", nul) == nul == store.get(["nul"])["nul"]
        with pytest.raises(CoraError, match="could not be kept"):
            store.put("set", Reply("A", meta={"a": {1, 2}}))
        with pytest.raises(CoraError, match="a failed reply is not kept"):
            store.put("error", Reply(error="timeout"))


def test_a_store_that_must_be_there(place):
    with pytest.raises(CoraError, match="there is no store"):
        Store(place, create=False)
    with Store(place) as store:
        store.put("k", Reply("A"))
    with Store(place, create=False) as store:
        assert len(store) == 1


def test_rows_come_in_pieces_in_the_order_of_their_keys(place):
    "Keys are compared byte by byte in both kinds of store, whatever the language of the database."
    keys = ["a", "B", "b", "aa", "A1", "a-1", "é", "z", "0"]
    with Store(place) as store:
        assert store.rows.add([reply_row(key, Reply(key)) for key in keys]) == len(keys)
        assert store.rows.add([reply_row(key, Reply("other")) for key in [*keys, "new"]]) == 1
        found, after = [], ""
        while part := store.rows.piece(after, 4):
            found, after = found + part, part[-1][0]
        assert found == [reply_row(key, Reply("other" if key == "new" else key)) for key in sorted([*keys, "new"])]
