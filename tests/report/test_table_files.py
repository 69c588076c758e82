"Tables as files: the format of a name, whole or not at all, and never over something that is not a table of ours."

import os
from pathlib import Path

import pytest
from score_tables import sure

from cora_nb.core import CoraError
from cora_nb.report.render import FORMATS, _SUFFIXES, render, table_format, write_table
from cora_nb.report.tables import score_table
from cora_nb.results import make_result

ONE = score_table({"a": {"MCQA": 0.5, "CoRA": 0.25}})
TWO = score_table({"a": sure({"MCQA": 0.5, "CoRA": 0.25}), "模|型 <b>": {"MCQA": 0.75, "CoRA": 0.5}})
LONG = make_result([{"method": m, "score": "x", "value": 0.5} for m in "ab"], respondent="r")
NAMES = {"text": "t.txt", "markdown": "t.md", "latex": "t.tex", "csv": "t.csv", "html": "t.html", "xlsx": "t.xlsx"}


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_is_left_alone_unless_it_is_to_be_replaced(tmp_path, format):
    "Whatever it holds: a table of ours may have been edited."
    path = tmp_path / NAMES[format]
    for text in (b"", b"my own", b"PK\x03\x04"):
        path.write_bytes(text)
        with pytest.raises(CoraError, match="there is a file of this name, and it is left alone; --force"):
            write_table(TWO, path)
        assert path.read_bytes() == text and os.listdir(tmp_path) == [path.name]
    for table in (ONE, TWO, LONG):
        assert write_table(table, path, force=True, caption="Scores | of *two* 50% <b>") == path
    write_table(ONE, path, force=True)
    assert os.listdir(tmp_path) == [path.name]
    if format in ("text", "markdown", "latex", "csv"):
        assert path.read_text(encoding="utf-8") == render(ONE, format) + "\n"


def test_places_where_no_file_can_go(tmp_path):
    (tmp_path / "t.md").mkdir()
    with pytest.raises(CoraError, match="t.md: this is a folder, and a file is to be written"):
        write_table(TWO, tmp_path / "t.md")
    with pytest.raises(CoraError, match="there is no folder .*none"):
        write_table(TWO, tmp_path / "none" / "t.md")
    (tmp_path / "round.md").symlink_to("round.md")
    with pytest.raises(CoraError, match="round.md") as caught:
        write_table(TWO, tmp_path / "round.md")
    assert "\n" not in str(caught.value)
    os.mkfifo(tmp_path / "pipe.md")
    for force in (False, True):
        with pytest.raises(CoraError, match="pipe.md: cannot be written, since it is not an ordinary file"):
            write_table(TWO, tmp_path / "pipe.md", force=force)


def test_links_in_a_circle_are_not_replaced_where_resolve_leaves_them(tmp_path, monkeypatch):
    "As from Python 3.13 on: `Path.resolve` does not raise."
    monkeypatch.setattr(Path, "resolve", lambda self, strict=False: Path(os.path.realpath(self)))
    (tmp_path / "round.md").symlink_to("other.md")
    (tmp_path / "other.md").symlink_to("round.md")
    with pytest.raises(CoraError, match="round.md: cannot be written"):
        write_table(TWO, tmp_path / "round.md")
    assert (tmp_path / "round.md").is_symlink() and (tmp_path / "other.md").is_symlink()


def test_a_link_is_followed(tmp_path):
    path = write_table(ONE, tmp_path / "t.md")
    (tmp_path / "link.md").symlink_to("t.md")
    write_table(TWO, tmp_path / "link.md", force=True)
    assert (tmp_path / "link.md").is_symlink() and path.read_text(encoding="utf-8") == render(TWO, "markdown") + "\n"


def test_a_table_that_cannot_be_made_leaves_the_old_one(tmp_path):
    path = write_table(ONE, tmp_path / "t.csv")
    before = path.read_bytes()
    with pytest.raises(CoraError, match="digits"):
        write_table(TWO, path, digits=99, force=True)
    with pytest.raises(CoraError, match="no numbers"):
        write_table(make_result([]), path, force=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("suffix, format", _SUFFIXES.items())
def test_a_name_says_its_format(suffix, format):
    assert table_format(f"a.b/c{suffix}") == table_format(f"c{suffix.upper()}") == format
    assert table_format(f"c{suffix}", format) == format
    for other in set(FORMATS) - {format}:
        with pytest.raises(
            CoraError, match=f"c{suffix}: a file of this name holds {format}, and {other} was asked for"
        ):
            table_format(f"c{suffix}", other)


def test_what_has_no_format():
    assert table_format(None) == "text" and table_format("a.out", "xlsx") == "xlsx"
    for path in ("a.pdf", "a", ".md", "a.tex.gz"):
        with pytest.raises(CoraError, match="the name of a table must end in one of .txt, .md"):
            table_format(path)
    for format in ("styler", "pdf", ""):
        with pytest.raises(CoraError, match="format must be one of text, markdown, latex, csv, html, xlsx, got"):
            table_format(None, format)
    with pytest.raises(CoraError, match="a table as xlsx needs a file: give --out FILE.xlsx"):
        table_format(None, "xlsx")
