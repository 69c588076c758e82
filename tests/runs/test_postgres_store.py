"""What is special to a store in PostgreSQL: passwords, rights, other programs, and a database that goes away.

What it has in common with a file is in test_store.py, for both.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.cli.options import RunOptions
from cora_nb.cli.run import Spread
from cora_nb.core import CoraError
from cora_nb.responses.facts import as_facts
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import REPLIED, in_state
from cora_nb.runs import postgres_store
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Claims, Store, reply_key
from cora_nb.runs.workers import _Settings
from cora_nb.variants.families import make_variants
from faulty_server import Answer, FaultyServer, completion
from helpers import run, stored_replies
from postgres_server import PASSWORD

VARIANTS = make_variants(load_benchmark("math")[:10])
ONCE = [v for v in make_variants(load_benchmark("math")) if v.method == "original"][:60]


def admin(postgres, *statements: str, address: str | None = None) -> None:
    "What the database's owner types."
    import psycopg

    with psycopg.connect(address or postgres.address(), autocommit=True) as db:
        for statement in statements:
            db.execute(statement)


def refusal(address: str) -> str:
    "The line with which a store is refused."
    with pytest.raises(CoraError) as e:
        with Store(address) as store:
            store.get(["k"])
    said = str(e.value)
    assert len(said.splitlines()) == 1 and PASSWORD not in said and quote(PASSWORD, safe="") not in said
    return said


class Clock:
    "Stands in for `time`: a pause passes at once, and is remembered."

    def __init__(self):
        self.pauses = []

    def monotonic(self):
        return sum(self.pauses)

    def sleep(self, seconds):
        self.pauses.append(seconds)


# ---------------------------------------------------------------- the driver, the address, the password


def test_without_the_driver_one_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(CoraError, match=r"^postgresql://ann@h/d: .* pip install 'cora_nb\[postgres\]'") as e:
        Store("postgresql://ann:secret@h/d")
    assert "secret" not in str(e.value)


def test_the_driver_is_imported_only_for_a_database():
    code = "import sys, cora_nb.runs.store, cora_nb.cli.run, cora_nb.cli.exchange; print('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.slow
def test_the_password_is_in_no_error_and_in_no_path(postgres, monkeypatch):
    address = postgres.empty_store()
    with Store(address) as store:
        assert store.path == f"postgresql://cora@127.0.0.1:{postgres.port}/postgres" and len(store) == 0
        assert PASSWORD not in json.dumps(vars(store), default=str)
    monkeypatch.setattr(postgres_store, "time", clock := Clock())  # it is said at once, and not tried again
    assert "password authentication failed" in refusal(postgres.address(password="wrong/" + PASSWORD))
    assert '"nowhere" does not exist' in refusal(postgres.address("nowhere"))
    assert clock.pauses == []


@pytest.mark.slow
def test_an_unreachable_database_is_said_after_a_moment(postgres, monkeypatch):
    monkeypatch.setattr(postgres_store, "time", clock := Clock())
    said = refusal(re.sub(r":\d+/", ":1/", postgres.address()))
    assert "refused" in said and 4 < sum(clock.pauses) < 10


@pytest.mark.slow
def test_a_whole_command_shows_no_password(postgres, tmp_path):
    "Facts, messages, the screen, and the command that the alarm suggests; and the second run asks nothing."
    address = postgres.empty_store()
    with FaultyServer(lambda asked: Answer(body=completion("The answer is B."))) as server:
        words = [
            "cora",
            "run",
            f"chat:m,base_url={server.url}",
            "--limit",
            2,
            "--parse",
            "first_token",
            "--store",
            address,
        ]
        said = [run(*words, cwd=tmp_path) for _ in range(2)]
        assert [code for code, *_ in said] == [0, 0], said
        asked = stored_replies(address)
        assert len(server.asked) == asked > 0
    assert f"0 asked, {asked} from postgresql://cora@127.0.0.1:{postgres.port}/postgres" in said[1][1]
    assert f"--store postgresql://cora@127.0.0.1:{postgres.port}/postgres" in said[0][2]  # to be typed again
    written = "".join(f.read_text(errors="replace") for f in tmp_path.rglob("*") if f.is_file())
    for secret in (PASSWORD, quote(PASSWORD, safe="")):
        assert secret not in written and secret not in json.dumps(said)
    (facts,) = tmp_path.rglob("facts.json")
    with_password = {"PGPASSWORD": PASSWORD}
    code, out, err = run("cora run", "--config", facts, "--out", "again", cwd=tmp_path, **with_password)
    assert code == 1 and "names a server, which has to be typed" in err
    typed = [words[1], "--store", f"postgresql://cora@127.0.0.1:{postgres.port}/postgres"]
    code, out, err = run("cora run", *typed, "--config", facts, "--out", "again", cwd=tmp_path, **with_password)
    assert code == 0 and f"0 asked, {asked} from postgresql://" in out, err


# ---------------------------------------------------------------- other programs, damage, rights, encodings


@pytest.mark.slow
def test_a_store_that_several_processes_share_shows_no_password(postgres, tmp_path):
    "One shard of a run, of an empty store; then the workers of dask, whose processes get the whole address."
    address, spec = postgres.empty_store(), "causal:organism/steady"
    words = ["cora", "run", spec, "--limit", 2, "--store", address]
    where = {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}  # not the cache in the folder, called cora_nb, too
    said = [run(*words, "--shard", "1/1", "--out", "shards", cwd=tmp_path, **where)]
    assert (stored := stored_replies(address)) > 0
    if find_spec("distributed"):
        said.append(run(*words, "--workers", 1, "--out", "workers", cwd=tmp_path, **where))
        assert f"0 asked, {stored} from postgresql://cora@127.0.0.1:{postgres.port}/postgres, in" in said[1][1]
    assert [code for code, *_ in said] == [0] * len(said), said
    written = "".join(f.read_text(errors="replace") for f in tmp_path.rglob("*") if f.is_file())
    for secret in (PASSWORD, quote(PASSWORD, safe="")):
        assert secret not in written and secret not in json.dumps(said)


def test_how_a_run_is_divided_shows_no_password(tmp_path):
    "Neither the line of a command nor what dask writes into its log."
    address = f"postgresql://ann:{quote(PASSWORD, safe='')}@h/d"
    spread = Spread(2, None, None, address)
    told = SimpleNamespace(facts=as_facts({"calls": {"asked": 5, "in_store": 2}}))
    assert spread.line(told, tmp_path) == "5 asked, 2 from postgresql://ann@h/d, in 0 shards"
    settings = _Settings("simulated", {}, str(tmp_path), address, False)
    options = RunOptions(store=address)
    assert settings.store == spread.store == options.store == address
    assert "ann" not in repr(spread) + repr(settings) + repr(options)


@pytest.mark.slow
@pytest.mark.parametrize(
    "statements, says",
    [
        (["drop schema cora_nb cascade", "create schema cora_nb", "create table cora_nb.a (b int)"], "another program"),
        (["drop table cora_nb.layout"], "another program"),
        (["update cora_nb.layout set number = 2"], "a store of layout 2, and this version of cora_nb reads layout 1"),
        (["delete from cora_nb.layout"], "a store of layout None"),
        (["drop table cora_nb.replies"], "the store is damaged"),
        (["alter table cora_nb.replies drop column meta"], "the store is damaged"),
        (["drop table cora_nb.askers"], "the store is damaged"),
        (["update cora_nb.replies set text = 'C'"], "the reply with the key k... has changed since it was stored"),
        (["update cora_nb.replies set text = '\\xff'"], "the reply with the key k... has changed since it was stored"),
        (["update cora_nb.replies set text = '\\xff', checksum = null"], "has changed since it was stored"),
        (["update cora_nb.replies set confidence = 0.6"], "has changed since it was stored"),
        (["update cora_nb.replies set scores = '[-0.5, ', checksum = null"], "the store is damaged"),
        (["update cora_nb.replies set checksum = 7"], "has changed since it was stored"),
    ],
)
def test_a_damaged_store_or_that_of_another_program_is_left_alone(postgres, statements, says):
    address = postgres.empty_store()
    with Store(address) as store:
        store.put("k", Reply("B", (-0.5,), 0.5, None, {"n": 1}))
    admin(postgres, *statements)
    assert says in refusal(address)
    postgres.empty_store()


@pytest.mark.slow
def test_other_tables_of_the_database_are_left_alone(postgres):
    postgres.empty_store()
    admin(postgres, "create table replies (mine int)", "insert into replies values (7)")
    with Store(postgres.address()) as store:
        assert len(store) == 0 and store.put("k", Reply("A")) == Reply("A")
    admin(postgres, "select mine from replies", "drop table replies")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "UTF8"])
def test_texts_come_back_whatever_the_encoding_of_the_database(postgres, encoding):
    address = postgres.new_database(f"encoding '{encoding}' lc_collate 'C' lc_ctype 'C' template template0")
    text = "żółć \U0001f600 \0 中文 \ud800"
    with Store(address) as store:
        put = store.put("k", Reply(text, meta={"说": text}))
        assert store.get(["k"]) == {"k": put} and put.text == text.replace("\ud800", "\\ud800")
        assert put.meta == {"说": text}


@pytest.mark.slow
def test_others_need_rights_and_say_so_in_one_line(postgres):
    postgres.empty_store()
    admin(postgres, "drop role if exists bob", f"create role bob login password '{PASSWORD}'")
    bob = postgres.address(user="bob")
    assert "permission denied for database" in refusal(bob)  # may not make the tables
    with Store(postgres.address()) as store:
        store.put("k", Reply("A"))
    assert "permission denied for schema cora_nb" in refusal(bob)
    admin(postgres, "grant usage on schema cora_nb to bob", "grant select on all tables in schema cora_nb to bob")
    with Store(bob) as store:
        assert store.get(["k"]) == {"k": Reply("A")} and len(store) == 1
        for refused in (lambda: store.put("l", Reply("B")), lambda: Claims(store).take(["l"])):
            with pytest.raises(CoraError, match=r"could not be kept \(permission denied"):
                refused()
    admin(postgres, "grant insert, update, delete on all tables in schema cora_nb to bob")
    with Store(bob) as store, Claims(store) as claims:
        assert claims.take(["k", "l"]) == ["l"] and store.put("l", Reply("B")) == Reply("B")
    admin(postgres, "drop schema cora_nb cascade", "create schema cora_nb authorization bob")
    with Store(bob) as store:  # a schema that was made for somebody who may not make one
        assert store.put("l", Reply("B")) == Reply("B")
    admin(postgres, "drop schema cora_nb cascade", "drop role bob")


# ---------------------------------------------------------------- claims


@pytest.mark.slow
def test_a_prompt_is_asked_once_however_claims_and_replies_meet(postgres):
    "Four runs take the same keys, one by one, store each reply and end their claims at once."
    address, keys, asked = postgres.empty_store(), [f"{i:064x}" for i in range(60)], []
    with Store(address):
        pass

    def one_run(together):
        with Store(address) as store:
            together.wait()
            for key in keys:
                with Claims(store) as claims:
                    for mine in claims.take([key]):
                        asked.append(mine)
                        store.put(mine, Reply("A"))

    together = threading.Barrier(4)
    threads = [threading.Thread(target=one_run, args=(together,)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(asked) == keys


@pytest.mark.slow
def test_a_reply_that_comes_while_another_run_claims_its_key(postgres, monkeypatch):
    "The claim began before the reply was stored, and takes effect after the claim of the first has ended."
    import psycopg

    at_the_door = "from unnest(%s::text[]) wanted, (select pg_advisory_xact_lock(4711)) door"
    slow = postgres_store._CLAIM.replace("from unnest(%s::text[]) wanted", at_the_door)
    assert "4711" in slow
    with Store(postgres.empty_store()) as store, Store(postgres.address()) as elsewhere:
        with Claims(store) as first, Claims(elsewhere) as other, psycopg.connect(postgres.address()) as door:
            assert first.take(["k"]) == ["k"]
            monkeypatch.setattr(postgres_store, "_CLAIM", slow)
            door.execute("select pg_advisory_xact_lock(4711)")
            got = []
            taking = threading.Thread(target=lambda: got.extend(other.take(["k", "l"])))
            taking.start()
            waits = "select count(*) from pg_locks where locktype = 'advisory' and objid = 4711 and not granted"
            while not door.execute(waits).fetchone()[0]:
                assert taking.is_alive()
                time.sleep(0.01)
            store.put("k", Reply("A"))
            first.rows.end()
            door.commit()
            taking.join()
            assert got == ["l"]


@pytest.mark.slow
def test_claims_outlive_a_restart_and_silence_counts_from_it(postgres, monkeypatch):
    with Store(postgres.empty_store()) as store, Claims(store) as one, Claims(store) as other:
        assert one.take(["a"]) == ["a"]
        one._end.set()  # from now on, silent
        admin(postgres, "update cora_nb.askers set machine = 'elsewhere', seen = seen - interval '1 hour'")
        postgres.stop("immediate")
        postgres.start()
        assert other.take(["a", "b"]) == ["b"], "nobody could say anything while the database was away"
        monkeypatch.setattr(postgres_store, "SILENCE", 0.0)
        assert other.take(["a", "b"]) == ["a", "b"]


@pytest.mark.slow
def test_claims_are_given_back_in_one_round_trip(postgres, monkeypatch):
    with Store(postgres.empty_store()) as store, Claims(store) as one, Claims(store) as other:
        keys = [f"{i:03d}" for i in range(40)]
        assert one.take(keys) == keys
        trips, usual = [], store.rows._db.run
        monkeypatch.setattr(store.rows._db, "run", lambda *a, **k: trips.append(1) or usual(*a, **k))
        one.give_back(*keys[:30])
        assert len(trips) == 1 and other.take(keys) == keys[:30]


@pytest.mark.slow
def test_a_run_says_that_it_is_alive(postgres, monkeypatch):
    monkeypatch.setattr(postgres_store._PostgresClaims, "beat_every", 0.02)
    with Store(postgres.empty_store()) as store, Claims(store) as claims:
        claims.take(["a"])
        admin(postgres, "update cora_nb.askers set seen = seen - interval '1 hour'")
        end = time.monotonic() + 20
        while store.rows._db.run(
            lambda db: db.execute("select now() - seen > '1 minute' from cora_nb.askers").fetchone()[0]
        ):
            assert time.monotonic() < end
            time.sleep(0.01)


# ---------------------------------------------------------------- a database that goes away


class Slow:
    "Answers with a pause, and counts."

    def __init__(self, at, do):
        self.inner, self.calls, self.at, self.do = SimulatedRespondent(knows=0.5, slips=0.1), [], at, do
        self.name, self.describe, self.request = self.inner.name, self.inner.describe, self.inner.request

    async def answer(self, prompts):
        for i, p in enumerate(prompts):
            self.calls.append(reply_key(self.request(p), p.trial))
            if len(self.calls) == self.at:
                self.do()
            async for _, reply in self.inner.answer([p]):
                yield i, reply


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_run_goes_on_after_a_restart(postgres, mode):
    "Nothing is lost and nothing asked twice; the restart comes while a reply is under way."
    address, restarts = postgres.empty_store(), []

    def restart():
        postgres.stop(mode)
        restarts.append(threading.Timer(0.5, postgres.start))
        restarts[0].start()

    who = Slow(50, restart)
    try:
        with Store(address) as store:
            found = evaluate(who, VARIANTS, store=store, progress=False)
            assert len(store) == len(who.calls) == len(set(who.calls)) == len(VARIANTS)
    finally:
        for going in restarts:
            going.join()
        postgres.start()
    assert found.table.equals(evaluate(SimulatedRespondent(knows=0.5, slips=0.1), VARIANTS, progress=False).table)


@pytest.mark.slow
def test_a_connection_that_is_cut_is_opened_again(postgres):
    cut = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'cora_nb'"
    with Store(postgres.empty_store()) as store, Claims(store) as claims:
        for i in range(5):
            admin(postgres, cut)
            if i % 2:
                assert claims.take([f"a{i}"]) == [f"a{i}"]
            else:
                store.put(f"k{i}", Reply("A"))
        admin(postgres, cut)
        assert len(store) == 3 and store.kept == 3


@pytest.mark.slow
def test_a_database_that_stays_away_ends_the_run_and_says_what_was_not_stored(postgres, monkeypatch):
    monkeypatch.setattr(postgres_store, "_MOST_SECONDS", 0.3)
    address = postgres.empty_store()

    def plan(asked):
        if asked.number == 20:
            postgres.stop("fast")
        return Answer(wait=0.01)

    try:
        with FaultyServer(plan) as server:
            who = ChatRespondent("m", server.url, concurrency=8)
            with Store(address) as store:
                with pytest.raises(CoraError, match="has been away for .* seconds") as e:
                    evaluate(who, ONCE, store=store, progress=False)
                kept = store.kept
            said, paid = str(e.value), len(server.asked)
            postgres.start()
            assert stored_replies(address) == kept
            with Store(address) as store:
                found = evaluate(who, ONCE, store=store, progress=False)
                assert len(store) == 60 and in_state(found.table, *REPLIED).all()
            assert len(server.asked) - paid == 60 - kept
    finally:
        postgres.start()
    lost = re.search(r"; (\d+) (?:reply that had arrived is|replies that had arrived are) not stored; the same", said)
    assert lost and 1 <= int(lost[1]) <= 8 and PASSWORD not in said and len(said.splitlines()) == 1
    assert kept + int(lost[1]) <= paid < 45


# ---------------------------------------------------------------- the server of the tests


@pytest.mark.slow
def test_a_killed_test_leaves_no_server(postgres):
    "The server of a process that gets SIGKILL is stopped, and its folder removed."
    code = "import postgres_server as p; s = p.PostgresServer().__enter__(); print(s.folder, s.port); input()"
    tests = str(Path(__file__).resolve().parent.parent)
    where = {"cwd": tests, "env": os.environ | {"PYTHONPATH": tests}, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True, **where) as test:
        folder, port = test.stdout.readline().split()
        socket.create_connection(("127.0.0.1", int(port))).close()
        os.killpg(test.pid, signal.SIGKILL)
    end = time.monotonic() + 30
    while Path(folder).exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)))
