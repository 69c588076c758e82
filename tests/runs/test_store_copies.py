"""Copies of stores from and to every kind, and exports that other programs read."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from cora_nb.core import CoraError
from cora_nb.respondents.protocol import Reply
from cora_nb.runs.store import Store
from cora_nb.runs.store import copy_replies, export_replies
from helpers import stored_replies

REPLIES = {
    "text": Reply("B"),
    "nul": Reply(
        "a\0b\u2028c \U0001f600", meta={"finish_reason": "stop", "deep": [1, {"x": math.inf}], "half": "\ud800"}
    ),
    "scores": Reply(None, (-0.1, -math.inf, 0.1 + 0.2), 1 / 3),
    "empty": Reply(""),
    **{f"{i:05}": Reply("ABCD"[i % 4], (-i / 7,), i / 1201, meta={"n": i}) for i in range(1201)},
}
KINDS = ["SQLite", pytest.param("PostgreSQL", marks=pytest.mark.slow)]


@pytest.fixture
def fresh(tmp_path, request):
    "From a kind to the address of a store that does not exist yet."

    def address(kind: str, name: str) -> Path | str:
        if kind == "SQLite":
            return tmp_path / f"{name}.sqlite"
        server = request.getfixturevalue("postgres")
        return server.empty_store() if name == "target" else server.new_database()

    return address


def fill(store: Store, replies=REPLIES) -> None:
    from cora_nb.runs.sqlite_store import reply_row

    store.rows.add([reply_row(key, reply) for key, reply in replies.items()])


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("whence", KINDS)
def test_a_copy_has_the_same_rows(fresh, whence, to):
    with Store(fresh(whence, "source")) as source, Store(fresh(to, "target")) as target:
        fill(source)
        target.put("text", REPLIES["text"])
        target.put("empty", Reply("another"))
        assert copy_replies(source, target) == {"replies": 1205, "copied": 1203, "different": 1}
        assert target.get(REPLIES) == REPLIES | {"empty": Reply("another")}
        rows = [dict((row[0], row) for row in store.rows.piece("", 5000)) for store in (source, target)]
        assert all(rows[0][key] == rows[1][key] for key in REPLIES if key != "empty") and len(rows[1]) == 1205
        assert copy_replies(source, target) == {"replies": 1205, "copied": 0, "different": 1}


@pytest.mark.parametrize("whence", KINDS)
def test_a_damaged_reply_is_not_passed_on(fresh, whence, tmp_path):
    with Store(fresh(whence, "source")) as source, Store(tmp_path / "new.sqlite") as target:
        source.put("a", Reply("B"))
        sqlite = whence == "SQLite"
        change = f"update {'' if sqlite else 'cora_nb.'}replies set text = 'C'"
        (source.rows._db if sqlite else source.rows._db._db).execute(change)
        for work in (lambda: copy_replies(source, target), lambda: export_replies(source, tmp_path / "a.jsonl")):
            with pytest.raises(CoraError, match="the store is damaged .the reply with the key a... has changed"):
                work()
        assert len(target) == 0 and not list(tmp_path.glob("*a.jsonl*"))


HALF_A_COPY = """
import sys, time
from cora_nb.cli.exchange import cora_store
from cora_nb.runs import store

def pieces(*args, usual=store._pieces):
    for number, piece in enumerate(usual(*args)):
        if number == 30:
            time.sleep(60)
        yield piece

store._pieces = pieces
cora_store("copy", sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.parametrize("to", KINDS)
def test_a_copy_that_is_killed_is_continued(fresh, to, tmp_path):
    "SIGKILL in the middle, which is not passed however late it comes: whole pieces are there, the rest is copied."
    source_place, target_place = tmp_path / "many.sqlite", fresh(to, "target")
    many = {f"{i:06}": Reply("A" * 200) for i in range(30_000)}
    with Store(source_place) as source, Store(target_place):
        fill(source, many)
    child = subprocess.Popen([sys.executable, "-c", HALF_A_COPY, str(source_place), str(target_place)])
    while (there := stored_replies(target_place)) == 0:
        assert child.poll() is None
        time.sleep(0.002)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    there = stored_replies(target_place)
    assert 0 < there <= len(many) // 2 and there % 500 == 0
    with Store(source_place) as source, Store(target_place) as target:
        assert copy_replies(source, target) == {"replies": 30_000, "copied": 30_000 - there, "different": 0}
        assert target.get(many) == many


@pytest.mark.parametrize("whence", KINDS)
def test_an_export_contains_everything(fresh, whence, tmp_path):
    with Store(fresh(whence, "source")) as store:
        fill(store)
        assert export_replies(store, tmp_path / "r.jsonl") == export_replies(store, tmp_path / "r.parquet") == 1205
    lines = (tmp_path / "r.jsonl").read_bytes().decode().split("\n")
    assert lines.pop() == ""

    def strict(word):
        raise AssertionError(f"{word} is not JSON")

    for told in (json.loads(line, parse_constant=strict) for line in lines):
        reply = REPLIES[told.pop("key")]
        assert told["text"] == reply.text and told["confidence"] == reply.confidence
        assert told["scores"] == (
            None if reply.scores is None else [s if s > -math.inf else "-Infinity" for s in reply.scores]
        )
        meta = reply.meta if reply != REPLIES["nul"] else reply.meta | {"deep": [1, {"x": "Infinity"}]}
        assert told["meta"] == meta
    table = pd.read_parquet(tmp_path / "r.parquet").set_index("key")
    assert len(lines) == len(table) == 1205 and table.index.tolist() == sorted(REPLIES)
    for key, reply in REPLIES.items():
        row = table.loc[key]
        assert row["text"] == reply.text or reply.text is None and row["text"] is None or pd.isna(row["text"])
        assert reply.scores is None or tuple(row["scores"]) == reply.scores
        assert reply.meta is None or json.loads(row["meta"]) == reply.meta


@pytest.mark.parametrize(
    "name, says", [("r.csv", "to a file .jsonl or .parquet"), ("no/r.jsonl", "there is no folder")]
)
def test_another_file_is_refused(tmp_path, name, says):
    with Store(tmp_path / "r.sqlite") as store:
        with pytest.raises(CoraError, match=says):
            export_replies(store, tmp_path / name)


def test_an_existing_file_is_left_alone(tmp_path):
    (file := tmp_path / "questions.jsonl").write_text("mine")
    with Store(tmp_path / "r.sqlite") as store:
        with pytest.raises(CoraError, match="there is a file of this name already; it is left alone"):
            export_replies(store, file)
    assert file.read_text() == "mine"


def test_a_store_is_not_copied_to_itself(tmp_path):
    with Store(tmp_path / "r.sqlite") as one, Store(tmp_path / "r.sqlite") as two:
        with pytest.raises(CoraError, match="cannot be copied to itself"):
            copy_replies(one, two)
