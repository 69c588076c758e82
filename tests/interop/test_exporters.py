"""Who writes for other tools, and the folder that is never replaced by another export."""

import json

import pytest

from cora_nb.core import CoraError
from cora_nb.interop.formats import EXPORTERS, check_export_folder, get_exporter, write_export
from cora_nb.responses.facts import as_facts

FACTS = as_facts({"export": {"tool": "notes", "name": "mine"}, "count": 2, "versions": {"cora_nb": "1"}})


@pytest.mark.parametrize("kind", list(EXPORTERS.lazy))
def test_every_exporter_can_be_called_by_the_command(kind):
    export, exports_run = get_exporter(kind)
    names = export.__code__.co_varnames[: export.__code__.co_argcount]
    assert names[:2] == (("runs" if exports_run else "variants"), "folder")


def test_ones_own(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def cards(runs, folder): ...\ndef other(table, folder): ...\nx = 1\n")
    monkeypatch.chdir(tmp_path)
    assert get_exporter("mine.py:cards")[1] is True
    for name in ("other", "x"):
        with pytest.raises(CoraError, match="whose first parameter is variants or runs"):
            get_exporter(f"mine.py:{name}")


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    def broken():
        yield "one line"
        raise CoraError("the second is refused")

    with pytest.raises(CoraError, match="the second is refused"):
        write_export(tmp_path / "new", FACTS, {"a.txt": "a", "b.txt": broken()})
    assert list(tmp_path.iterdir()) == []
    folder = write_export(tmp_path / "new", FACTS, {"a.txt": "a", "b.txt": "b"})
    with pytest.raises(CoraError, match="the second is refused"):
        write_export(folder, FACTS, {"a.txt": "a", "b.txt": broken()})
    assert (folder / "b.txt").read_text() == "b" and len(list(folder.iterdir())) == 3


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "new").mkdir()
    assert json.loads((write_export(tmp_path / "new", FACTS, {"a": ""}) / "facts.json").read_text()) == FACTS.plain()


@pytest.mark.parametrize("text", ["[]", "{}", '{"export"', "[" * 100_000, "\x00"])
def test_facts_of_somebody_else(tmp_path, text):
    (tmp_path / "facts.json").write_text(text)
    with pytest.raises(CoraError, match=r"holds something else \(facts.json\); it is left alone"):
        check_export_folder(tmp_path, FACTS, ["a.txt"])


def test_what_is_beside_an_export_is_left_alone(tmp_path):
    folder = write_export(tmp_path / "new", FACTS, {"a.txt": "a"})
    (folder / "__pycache__").mkdir()
    write_export(folder, FACTS.changed(versions={}), {"a.txt": "a"})  # other versions ask the same
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(CoraError, match=r"holds something else \(notes.txt\)"):
        write_export(folder, FACTS, {"a.txt": "a"})
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}])
def test_facts_are_plain(tmp_path, value):
    with pytest.raises(CoraError, match="must be plain JSON values"):
        write_export(tmp_path / "new", FACTS.changed(value=value), {"a.txt": "a"})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CoraError, match="cannot be written"):
        write_export(tmp_path / "file" / "new", FACTS, {"a.txt": "a"})
