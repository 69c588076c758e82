"""The store of replies: nothing is lost, nothing is asked twice, whatever is killed and however many share it."""

import contextlib
import math
import os
import random
import re
import signal
import sqlite3
import warnings
from pathlib import Path
from urllib.parse import quote

import pytest
import sqlalchemy as sa
import store_children
from hypothesis import HealthCheck, given, settings, strategies as st

from cora_nb.core import CoraError
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.protocol import NOT_ASKED, OVER_BUDGET, REFUSED_REPLY, Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import REPLIED, in_state
from cora_nb.runs.asking import Asking, Settled
from cora_nb.runs.evaluate import evaluate, plan
from cora_nb.runs.store import Store, StoreWarning, asked_prompts, reply_key, store_name, store_url
from helpers import Beaten, apart, kill_at_reply, slow_after
from postgres_server import PASSWORD
from store_children import VARIANTS, Logged

pytestmark = pytest.mark.guard


@pytest.fixture(params=slow_after(1, ["SQLite", "PostgreSQL"]))
def place(request, tmp_path):
    "The address of a store that does not exist yet, in a file and in a database."
    return tmp_path / "r.sqlite" if request.param == "SQLite" else request.getfixturevalue("postgres").empty_store()


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
    for place in (
        "a\0b.sqlite",
        "\ud800.sqlite",
        "x" * 300,
        "postgresql:/ann:secret@host/team",
        "nosuch://ann:secret@h/t",
    ):
        with pytest.raises(CoraError) as e:
            Store(place)
        assert "secret" not in str(e.value) and "\n" not in str(e.value)


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}", "sqlite+pysqlite:///{}", "sqlite:///{}?timeout=5"])
@pytest.mark.parametrize("absolute", [True, False])
def test_every_address_of_a_file_is_that_file(tmp_path, monkeypatch, form, absolute):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    file = f"{tmp_path}/folder/r.db" if absolute else "folder/r.db"
    with Store(file) as store:
        store.put("k", Reply("A"))
    with Store(form.format(file)) as store:
        assert store.get(["k"]) == {"k": Reply("A")} and store.path == file
    assert store_name(form.format(file)) == file and sorted(tmp_path.rglob("*.db")) == [tmp_path / "folder" / "r.db"]
    for wrong in (file.replace("folder", "nothing"), f"{file}/r.db"):
        with pytest.raises(CoraError, match="there is no folder"):
            Store(form.format(wrong))
    _sql("create table places (url text)", "pragma application_id = 7")(tmp_path / "folder" / "theirs.db")
    before = (tmp_path / "folder" / "theirs.db").read_bytes()
    with pytest.raises(CoraError, match="another program"):
        Store(form.format(file.replace("r.db", "theirs.db")))
    assert (tmp_path / "folder" / "theirs.db").read_bytes() == before


@pytest.mark.parametrize(
    "place",
    [
        *(":memory:", "", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite+pysqlite:///:memory:"),
        *("sqlite:///file:x?mode=memory&uri=true", "sqlite://r.db", "sqlite:/r.db", "sqlite://ann:secret@/r.db"),
        *("postgresql://ann:secret@h:notaport/db", "postgresql://ann:secret@h:99999/db", "postgresql://ann:secret@h:/"),
        *("postgres://ann:secret@h:-1/db", "postgresql://ann:secret@h:0/db", "postgresql+psycopg://ann:secret@h:x/db"),
        *("postgresql://ann:half@secret@127.0.0.1:1/db", "postgresql://ann:half@secret/x@127.0.0.1:1/db"),
        *("postgresql://ann:half@secret:x@127.0.0.1:1/db", "postgresql://ann:half@x:secret/x@127.0.0.1:1/db"),
        *("postgresql://ann:secret@[::1/db", "postgresql+nosuch://ann:secret@h/db", "mysql+nosuch://ann:secret@h/db"),
    ],
)
def test_a_wrong_address_is_one_line_without_the_password(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CoraError) as e:
        Store(place)
    assert "secret" not in str(e.value) and "\n" not in str(e.value) and not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("stop,kills", [(None, 70), (Settled(), 30)])
def test_a_run_killed_at_any_moment_resumes(place, tmp_path, stop, kills):
    """SIGKILL after the n-th reply, for n from 0 on: nothing that was stored is asked again, and the end is that of an
    undisturbed run. A run that is to be killed stops answering soon after, however late the kill comes."""
    rng, known = random.Random(0), set()
    who = SimulatedRespondent(knows=0.5, slips=0.1)
    in_a_file = isinstance(place, Path)
    for kill in range(kills if in_a_file else kills // 4):
        new = 0 if kill % 10 == 0 else rng.randint(1, 20)  # 0: while it starts
        child = apart().Process(target=store_children.run, args=(place, tmp_path, f"log{kill}", 0.0005, stop, new + 5))
        child.start()
        kill_at_reply(child.pid, place, len(known) + new, child.is_alive, rng.uniform(0, 0.002 if new else 0.02))
        child.join()
        assert child.exitcode == -signal.SIGKILL
        before = len(known)
        calls = (tmp_path / f"log{kill}").read_text().split() if (tmp_path / f"log{kill}").exists() else []
        assert not known & {c for c in calls if len(c) == 64} and len(calls) == len(set(calls))
        with Store(place) as store:
            known = set(store.get(reply_key(who.request(p), p.trial) for p in make_prompts(VARIANTS)))
            assert before + new <= len(known) == len(store)
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


@pytest.mark.slow
def test_a_new_store_is_opened_by_several_at_once(place, tmp_path, request):
    "Whoever comes while another one makes the tables waits, and does not call the file locked or somebody else's."
    in_a_file = isinstance(place, Path)
    for i in range(40 if in_a_file else 10):
        new = tmp_path / f"{i}.sqlite" if in_a_file else request.getfixturevalue("postgres").empty_store()
        together = apart().Barrier(6)
        children = [apart().Process(target=store_children.open_together, args=(new, together)) for _ in range(6)]
        for c in children:
            c.start()
        for c in children:
            c.join()
        assert [c.exitcode for c in children] == [0] * 6


@pytest.mark.slow
def test_two_runs_share_a_store(place, tmp_path):
    "At the same time, in two processes: both end with the same responses, and nothing is broken."
    children = [
        apart().Process(target=store_children.run, args=(place, tmp_path, f"log{i}", 0.0001, None)) for i in range(3)
    ]
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


@pytest.mark.parametrize("temperature", slow_after(3, [0, 0.001, 0.7, 0.0, 1, 2.0]))
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


@pytest.mark.parametrize("more", [{}, {"temperature": None}, {"temperature": 0.0}])
def test_a_request_can_say_that_its_replies_are_drawn(more):
    "Then equal prompts get different keys; other values say nothing."

    class Drawing(Parrot):
        def request(self, prompt):
            return {"text": prompt.text, **fields}

    prompts = make_prompts(VARIANTS[:60])
    assert len({p.text for p in prompts}) < len(prompts)
    for drawn in (True, False, "no", None):
        fields = more | {"drawn": drawn}
        _, keys = asked_prompts(Drawing(), prompts)
        assert len(set(keys)) == len(prompts if drawn is True else {p.text for p in prompts})


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
_MOVED = f"update cora_replies set key = '{7:064x}' where key = '{8:064x}'"
REFUSED, SAME, EMPTY, REST = "one line", "all replies are there", "begun anew", "the others are there, and it is said"
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
    "something behind it": (_bytes(lambda d: d + b"tail" * 2000), SAME),
    "other first letter": (_put_in(0, b"X"), REFUSED),
    "other page size": (_put_in(16, b"\x02\x00"), REFUSED),
    "other program's number": (_put_in(68, b"\x01\x02\x03\x04"), REFUSED),
    "first page overwritten": (_put_in(100, bytes(1000)), REFUSED),
    "a page of zeros": (_put_in(4096 * 5, bytes(4096)), REFUSED),
    "a page of noise": (_put_in(4096 * 4, random.Random(1).randbytes(4096)), REFUSED),
    "two pages swapped": (_bytes(_swap), REFUSED),
    "a page head": (_put_in(4096 * 3, b"\x0d\xff\xff\xff\xff"), REFUSED),
    "a letter of a reply": (_bytes(_a_text), REST),
    "another reply": (_sql(f"update cora_replies set reply = replace(reply, 'D', 'A') where {ASKED}"), REST),
    "the reply to another prompt": (_sql(f"update cora_replies set key = 'x' where {ASKED}", _MOVED), REST),
    "no JSON": (_sql(f"update cora_replies set reply = '[' where {ASKED}"), REST),
    "bytes for a text": (_sql(f"update cora_replies set reply = x'ff00' where {ASKED}"), REST),
    "a checksum lost": (_sql(f"update cora_replies set crc = 7 where {ASKED}"), REST),
    "table lost": (_sql("drop table cora_replies"), EMPTY),
    "column lost": (_sql("alter table cora_replies drop column crc"), REFUSED),
    "schema damaged": (_sql("update sqlite_master set sql = 'create tabel' where name = 'cora_replies'"), REFUSED),
    "root page damaged": (_sql("update sqlite_master set rootpage = 9999 where name = 'cora_replies'"), REFUSED),
    "another program's database": (_other_program, REFUSED),
    "a folder": (_folder, REFUSED),
    "a link to nowhere": (_unreadable, REFUSED),
    "a broken journal beside it": (lambda p: Path(f"{p}-wal").write_bytes(b"x" * 5000), SAME),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_store(tmp_path, kind):
    "Refused in one line, or every reply as it was: no traceback, no other reply, none that is lost unsaid."
    damage, expected = DAMAGES[kind]
    path = tmp_path / "r.sqlite"
    with Store(path) as store:
        for key, reply in ROWS.items():
            store.put(key, reply)
    damage(path)
    is_file = path.is_file()
    before = path.read_bytes() if is_file else None
    try:
        with Store(path) as store, warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = store.get(ROWS)
            assert expected != REFUSED and bool(told) == (expected == REST)
            if expected == REST:
                assert len(ROWS) - 2 <= len(found) < len(ROWS) and found.items() <= ROWS.items()
                assert "\n" not in str(told[0].message) and str(path) in str(told[0].message)
            else:
                assert found == (ROWS if expected == SAME else {}), "replies were lost or changed"
    except CoraError as e:
        assert expected == REFUSED, e
        assert len(str(e).splitlines()) == 1 and str(path) in str(e) and len(str(e)) < 400
        if is_file and "cannot be read" not in str(e):
            assert path.read_bytes() == before, "a file that was refused was written to"


def _said(told):
    "The warnings of damaged replies."
    return [str(w.message) for w in told if issubclass(w.category, StoreWarning)]


def _flipped(text, rng):
    "A text with one bit changed."
    at = rng.randrange(len(text))
    return text[:at] + chr(ord(text[at]) ^ 1 << rng.randrange(6)) + text[at + 1 :]


def _damage_rows(place, count):
    "Flip a bit in the text of some replies, and give their keys."
    rng, engine = random.Random(1), sa.create_engine(store_url(place))
    with engine.begin() as db:
        rows = dict(db.execute(sa.text("select key, reply from cora_replies")).all())
        keys = rng.sample(sorted(rows), count)
        for key in keys:
            change = sa.text("update cora_replies set reply = :text where key = :key")
            db.execute(change, {"text": _flipped(rows[key], rng), "key": key})
    engine.dispose()
    return keys


def test_a_damaged_reply_counts_as_missing_and_is_replaced(place, tmp_path):
    "The others stay readable, it is said once how many are lost, and a new reply takes the place of the damaged one."
    with Store(place) as store, Store(tmp_path / "copy.sqlite") as copy:
        for key, reply in ROWS.items():
            store.put(key, reply)
        lost = _damage_rows(place, 30)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            rest = {key: reply for key, reply in ROWS.items() if key not in lost}
            assert store.get(ROWS) == store.get(ROWS) == rest
            assert len(_said(told)) == 1 and " 30;" in _said(told)[0] and store.path in _said(told)[0]
            assert store.copy_to(copy) == len(rest) and copy.get(ROWS) == rest
            assert len(_said(told)) == 2 and " 30;" in _said(told)[1] and PASSWORD not in str(_said(told))
            before = store.kept
            for key in lost:
                assert store.put(key, ROWS[key]) == ROWS[key]
            assert store.put(lost[0], Reply("later")) == ROWS[lost[0]] and store.kept == before + 30
            assert store.get(ROWS) == ROWS and len(store) == len(ROWS) and len(told) == 2
            assert store.copy_to(copy) == 30 and copy.get(ROWS) == ROWS


def test_a_copy_replaces_what_is_damaged(tmp_path):
    with Store(tmp_path / "a.sqlite") as one, Store(tmp_path / "b.sqlite") as two:
        for store in (one, two):
            for key, reply in ROWS.items():
                store.put(key, reply)
        _damage_rows(tmp_path / "b.sqlite", 30)
        with pytest.warns(StoreWarning):
            assert one.copy_to(two) == 30
        assert two.get(ROWS) == ROWS


def test_a_run_asks_damaged_replies_again(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        first = evaluate(Parrot(), VARIANTS[:60], store=store, progress=False)
        _damage_rows(tmp_path / "r.sqlite", 5)
        parrot = Parrot()
        with pytest.warns(StoreWarning):
            again = evaluate(parrot, VARIANTS[:60], store=store, progress=False)
        assert len(parrot.calls) == 5 and again.table.equals(first.table)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert evaluate(Parrot(), VARIANTS[:60], store=store, progress=False).facts.calls["asked"] == 0


def _store_of_rows(path):
    with Store(path) as store:
        for key, reply in ROWS.items():
            store.put(key, reply)
    return path.read_bytes()


def _read_with_flips(path, good, places, rng):
    "The replies of a store with bits flipped: how many are readable, whether it is said, whether it was refused."
    data = bytearray(good)
    for at in places:
        data[at] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with Store(path) as store:
                found = store.get(ROWS)
                for key in ROWS.keys() - found.keys():
                    assert store.put(key, ROWS[key]) == ROWS[key]
        assert found.items() <= ROWS.items(), "a reply was changed"
        assert _said(told) or len(found) == len(ROWS), "replies were lost, and it was not said"
        return len(found), bool(_said(told)), False
    except CoraError as e:
        assert len(str(e).splitlines()) == 1 and str(path) in str(e)
        assert "cannot be read" in str(e) or path.read_bytes() == data, "a file that was refused was written to"
        return 0, True, True


@pytest.mark.slow
def test_every_byte_of_a_store_counts(tmp_path):
    "One bit changed, anywhere: refused in one line, or what is lost is said and no other reply is."
    rng, good = random.Random(0), _store_of_rows(tmp_path / "r.sqlite")
    ends = []
    for n in range(300):
        place = rng.randrange(len(good)) if n % 3 else rng.randrange(200)
        ends.append(_read_with_flips(tmp_path / f"{n}.sqlite", good, [place], rng))
        (tmp_path / f"{n}.sqlite").unlink()
    assert sum(refused for *_, refused in ends) > 30
    found = [found for found, _, refused in ends if not refused]  # a flip high in the index hides many replies
    assert sum(n >= len(ROWS) - 3 for n in found) > 0.9 * len(found)


@pytest.mark.slow
def test_a_hundred_bits_of_a_store(tmp_path):
    "Anywhere in the file, or only within replies: never a traceback, another reply, or one that is lost unsaid."
    rng, good = random.Random(0), _store_of_rows(tmp_path / "r.sqlite")
    within = [m.start() + i for m in re.finditer(rb'\["[A-D]+", \[-0.5, -1.25\], 0.5, ', good) for i in range(20)]
    for n in range(20):
        path = tmp_path / f"{n}.sqlite"
        _read_with_flips(path, good, rng.sample(range(len(good)), 100), rng)
        found, said, refused = _read_with_flips(path, good, rng.sample(within, 100), rng)
        assert said and not refused and len(ROWS) - 100 <= found < len(ROWS) - 50
        path.unlink()


def test_replies_of_every_kind_are_kept_or_refused(place):
    with Store(place) as store:
        half = store.put("half", Reply("half \ud800 a character"))
        assert half == store.get(["half"])["half"] and half.text == "half \\ud800 a character"
        assert store.put("nan", Reply("A", confidence=math.nan)).text == "A" and store.get(["nan"])["nan"].text == "A"
        nul = Reply("\0 before, \0 and behind \0", meta={"\0": "\0"})
        assert store.put("nul", nul) == nul == store.get(["nul"])["nul"]
        with pytest.raises(CoraError, match="could not be kept"):
            store.put("set", Reply("A", meta={"a": {1, 2}}))
        unanswered = [Reply(error="timeout"), REFUSED_REPLY, NOT_ASKED, OVER_BUDGET, Reply("A", unsent="not_asked")]
        for number, reply in enumerate(unanswered):
            with pytest.raises(CoraError) as e:
                store.put(f"unanswered{number}", reply)
            assert "\n" not in str(e.value) and not store.get([f"unanswered{number}"])


def test_a_disk_that_refuses_stops_the_run(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        with contextlib.closing(sqlite3.connect(tmp_path / "r.sqlite")) as db:
            db.execute(
                "create trigger full before insert on cora_replies begin select raise(abort, 'disk is full'); end"
            )
        with pytest.raises(CoraError):
            evaluate(SimulatedRespondent(), VARIANTS[:20], store=store, progress=False)


def test_a_run_goes_on_with_the_reply_that_was_stored_first(tmp_path):
    with Beaten(tmp_path / "r.sqlite") as store:
        run = evaluate(Parrot(), VARIANTS[:20], store=store, progress=False, strict=None)
    assert set(run.table["reply"]) == {"E"}


@pytest.mark.parametrize("refusal", [REFUSED_REPLY, Reply("", meta={"finish_reason": "content_filter"})])
def test_refusals_are_asked_again(tmp_path, refusal):
    "Only answers are kept."

    class Refusing(Parrot):
        async def answer(self, prompts):
            async for i, reply in super().answer(prompts):
                yield i, refusal if i % 2 else reply

    with Store(tmp_path / "r.sqlite") as store:
        first = evaluate(Refusing(), VARIANTS[:20], store=store, progress=False, strict=None)
        again = Parrot()
        evaluate(again, VARIANTS[:20], store=store, progress=False)
        assert 0 < in_state(first.table, "refused").sum() and len(store) == len(
            {p.text for p in make_prompts(VARIANTS[:20])}
        )
        assert 0 < len(again.calls) < len(store)


def test_a_refusal_that_was_kept_is_no_answer(tmp_path):
    "A try once kept refusals, and the run after it took them for replies."
    from cora_nb.runs.store import _as_text, _crc

    with Store(tmp_path / "r.sqlite") as store, Store(tmp_path / "copy.sqlite") as copy:
        text = _as_text(REFUSED_REPLY)
        store._add([("k", text, _crc("k", text))])
        with pytest.warns(StoreWarning):
            assert store.get(["k"]) == {} and store.copy_to(copy) == 0
        assert store.put("k", Reply("A")) == Reply("A") == store.get(["k"])["k"]


def test_a_run_looks_into_the_store_again(tmp_path, monkeypatch):
    "What another run has stored in the meantime is not asked once more."
    monkeypatch.setattr("cora_nb.runs.evaluate._PORTION", 10)
    with Store(tmp_path / "r.sqlite") as store, Store(tmp_path / "r.sqlite") as other:

        class Beside(Parrot):
            async def answer(self, prompts):
                if not self.calls:  # another run asks everything at this moment
                    evaluate(Parrot(), VARIANTS[:60], store=other, progress=False)
                async for found in super().answer(prompts):
                    yield found

        who = Beside()
        run = evaluate(who, VARIANTS[:60], store=store, progress=False)
        assert len(who.calls) == 10 and run.facts.calls["in_store"] == len(store) - 10


def test_replies_are_copied(tmp_path):
    with Store(tmp_path / "a.sqlite") as one, Store(tmp_path / "b.sqlite") as two:
        for i in range(1500):
            one.put(f"k{i}", Reply(str(i)))
        two.put("k0", Reply("another"))
        assert one.copy_to(two) == 1499 and one.copy_to(two) == 0 and two.get(["k0", "k7"])["k0"] == Reply("another")


# ---------------------------------------------------------------- a database


@pytest.mark.slow
def test_the_password_is_shown_nowhere(postgres):
    address = postgres.empty_store()
    assert PASSWORD not in store_name(address) and quote(PASSWORD, safe="") not in store_name(address)
    assert "geheim" not in store_name("postgresql://h/db?user=u&password=geheim")
    for wrong in (
        address.replace(quote(PASSWORD, safe=""), "geheim-too"),
        address.replace("127.0.0.1", "127.0.0.1:1/x@"),
    ):
        with pytest.raises(CoraError) as e:
            Store(wrong)
        assert "geheim" not in str(e.value) and "\n" not in str(e.value)
    with Store(address) as store:
        assert PASSWORD not in f"{store.path}{store!r}"


@pytest.mark.slow
def test_a_database_that_restarts(postgres):
    "The run that meets it ends in one line; the next one goes on with what was stored."
    with Store(postgres.empty_store()) as store:
        evaluate(Parrot(), VARIANTS[:20], store=store, progress=False)
        postgres.stop("fast")
        with pytest.raises(CoraError, match="could not be kept|cannot be read") as e:
            evaluate(Parrot(), VARIANTS[:60], store=store, progress=False)
        assert "\n" not in str(e.value) and PASSWORD not in str(e.value)
        postgres.start()
        run = evaluate(Parrot(), VARIANTS[:60], store=store, progress=False)
        assert run.facts.calls["in_store"] > 0 and in_state(run.table, *REPLIED).all()
