"""cora store: what it prints, and one line for what cannot be done."""

import json

import pytest

from cora_nb.cli.exchange import cora_store
from cora_nb.respondents.protocol import Reply
from cora_nb.runs.store import Store
from helpers import run
from postgres_server import PASSWORD


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, replies in {"a": "ABC", "b": "AXCD"}.items():
        with Store(f"{name}.sqlite") as store:
            for i, text in enumerate(replies):
                store.put(f"key {i}", Reply(text))
    return tmp_path


@pytest.mark.slow
def test_a_team_joins_its_files_in_a_database(postgres, place):
    "As typed: the password is in the environment, or in the address, and is printed in neither case."
    postgres.empty_store()
    shown = f"postgresql://cora@127.0.0.1:{postgres.port}/postgres"
    code, out, err = run("cora store", "copy", "a.sqlite", "b.sqlite", shown, cwd=place, PGPASSWORD=PASSWORD)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"a.sqlite: 3 replies; 3 copied to {shown}, 0 were there",
        f"b.sqlite: 4 replies; 1 copied to {shown}, 3 were there, 1 of them with another reply, which stays",
    ]
    code, out, err = run("cora store", "export", postgres.address(), "all.jsonl", cwd=place)
    assert (code, out, err) == (0, "all.jsonl: 4 replies\n", "")
    texts = [json.loads(line)["text"] for line in (place / "all.jsonl").read_text().splitlines()]
    assert texts == ["A", "B", "C", "D"]
    code, out, err = run("cora store", "count", postgres.address(), "a.sqlite", cwd=place)
    assert (code, out, err) == (0, f"{shown}: 4 replies\na.sqlite: 3 replies\n", "")


@pytest.mark.parametrize(
    "words, says",
    [
        (["weigh", "a.sqlite"], "what must be one of count, copy, export, got 'weigh'"),
        (["count", "c.sqlite"], "c.sqlite: there is no store of replies"),
        (["copy", "c.sqlite", "new.sqlite"], "c.sqlite: there is no store of replies"),
        (["copy", "a.sqlite"], "copy needs a store to copy from and one to copy to"),
        (["copy", "a.sqlite", "a.sqlite"], "a.sqlite: a store cannot be copied to itself"),
        (["export", "a.sqlite"], "export needs a store and a file"),
        (["export", "a.sqlite", "b.sqlite", "c.jsonl"], "export needs a store and a file"),
        (["export", "a.sqlite", "all.xlsx"], "all.xlsx: replies are exported to a file .jsonl or .parquet"),
        (
            ["export", "a.sqlite", "postgresql://u:secret@h/d"],
            "postgresql://u@h/d: replies are exported to a file .jsonl",
        ),
        (["count", "mysql://u:secret@h/d"], "a store is a file, or a database postgresql://..."),
    ],
)
def test_one_line_for_what_cannot_be_done(place, words, says):
    before = sorted(p.name for p in place.iterdir())
    with pytest.raises(SystemExit) as e:
        cora_store(words[0], words[1:])
    assert e.value.code.startswith(f"cora store: {says}") and len(e.value.code.splitlines()) == 1
    assert "secret" not in e.value.code
    assert sorted(p.name for p in place.iterdir()) == before, "nothing was made"


@pytest.mark.slow
def test_nothing_named_is_asked_for(place):
    code, out, err = run("cora store", cwd=place)
    assert (code, out) == (2, "") and "needs WHAT" in err
    code, out, err = run("cora store", "count", cwd=place)
    assert (code, out) == (2, "") and "needs STORES" in err
