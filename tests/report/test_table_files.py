"Tables as files: the format of a name, whole or not at all, and never over something that is not a table of ours."

import os
from pathlib import Path

import pytest
from openpyxl import Workbook, load_workbook
from score_tables import sure

from cora_nb.core import CoraError
from cora_nb.report.render import render
from cora_nb.report.render import FILE_FORMATS, _SUFFIXES, _holds_table, table_format, write_table
from cora_nb.report.tables import score_table
from cora_nb.results import make_result

ONE = score_table({"a": {"MCQA": 0.5, "CoRA": 0.25}})
TWO = score_table({"a": sure({"MCQA": 0.5, "CoRA": 0.25}), "模|型 <b>": {"MCQA": 0.75, "CoRA": 0.5}})
LONG = make_result([{"method": m, "score": "x", "value": 0.5} for m in "ab"], respondent="r")
NAMES = {"text": "t.txt", "markdown": "t.md", "latex": "t.tex", "csv": "t.csv", "html": "t.html", "xlsx": "t.xlsx"}


@pytest.mark.parametrize("format", FILE_FORMATS)
@pytest.mark.parametrize("caption", [None, "Scores | of *two* 50% <b>"])
def test_a_table_is_replaced_by_another(tmp_path, format, caption):
    "With and without a caption and intervals, in any order."
    path = tmp_path / NAMES[format]
    for table in (ONE, TWO, ONE):
        for told in (caption, None):
            assert write_table(table, path, caption=told) == path
            assert _holds_table(path, format)
    assert os.listdir(tmp_path) == [path.name]
    if format in ("text", "markdown", "latex", "csv"):
        assert path.read_text(encoding="utf-8") == render(ONE, format) + "\n"


@pytest.mark.parametrize("format", FILE_FORMATS)
def test_other_results_are_written_too(tmp_path, format):
    "As plain text such a table cannot be told from any other text, and is left alone."
    path = write_table(LONG, tmp_path / NAMES[format])
    if format == "text":
        with pytest.raises(CoraError, match="left alone"):
            write_table(LONG, path)
    else:
        write_table(LONG, path, digits=3)


OTHERS = {
    "text": ["hello", "Baselines\n", "  a\nb\n", "\n\n", "My notes\n\n  Baselines\n"],
    "markdown": ["# Notes\n\n| a |\n|:--|\n", "| a | b |\n|---|---|\n| 1 | 2 |\n", "text\n"],
    "latex": [
        "\\documentclass{article}\n\\begin{tabular}{lc}\n\\toprule\n",
        "% mine\n\\begin{tabular}{lc}\n\\toprule\n",
    ],
    "csv": ["name,value\na,1\n", "question_id,text\n", "score\n", "group;score\n"],
    "html": ["<!doctype html>\n<html>\n", "<p>x</p>", '<html><div class="cora-table"'],
    "xlsx": ["not a workbook", "PK\x03\x04"],
}


@pytest.mark.parametrize("format, text", [(f, t) for f, texts in OTHERS.items() for t in texts])
def test_something_else_is_left_alone(tmp_path, format, text):
    path = tmp_path / NAMES[format]
    path.write_text(text)
    with pytest.raises(CoraError) as caught:
        write_table(TWO, path)
    assert (
        str(caught.value)
        == f"{path}: there is a file of this name, and it is not such a table of ours; it is left alone"
    )
    assert path.read_text() == text and os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("format", FILE_FORMATS)
def test_a_table_of_another_format_is_left_alone(tmp_path, format):
    "Under a name that says nothing."
    path = tmp_path / "table"
    for other in FILE_FORMATS:
        if other != format:
            path.unlink(missing_ok=True)
            write_table(TWO, path, other)
            before = path.read_bytes()
            with pytest.raises(CoraError, match="left alone"):
                write_table(TWO, path, format)
            assert path.read_bytes() == before


@pytest.mark.parametrize("format", FILE_FORMATS)
def test_an_empty_file_is_replaced(tmp_path, format):
    (tmp_path / NAMES[format]).touch()
    write_table(TWO, tmp_path / NAMES[format])


def test_a_workbook_somebody_worked_in_is_left_alone(tmp_path):
    path = write_table(TWO, tmp_path / "t.xlsx")
    book = load_workbook(path)
    book["scores"]["K1"] = "my own"
    book.properties.lastModifiedBy = "Ann"  # as Excel and LibreOffice do
    book.save(path)
    with pytest.raises(CoraError, match="left alone"):
        write_table(TWO, path)
    Workbook().save(path)
    with pytest.raises(CoraError, match="left alone"):
        write_table(TWO, path)


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
    with pytest.raises(CoraError, match="left alone"):
        write_table(TWO, tmp_path / "pipe.md")


def test_links_in_a_circle_are_not_replaced_where_resolve_leaves_them(tmp_path, monkeypatch):
    "As from Python 3.13 on: `Path.resolve` does not raise."
    monkeypatch.setattr(Path, "resolve", lambda self, strict=False: Path(os.path.realpath(self)))
    (tmp_path / "round.md").symlink_to("other.md")
    (tmp_path / "other.md").symlink_to("round.md")
    with pytest.raises(CoraError, match="round.md: cannot be written .links in a circle"):
        write_table(TWO, tmp_path / "round.md")
    assert (tmp_path / "round.md").is_symlink() and (tmp_path / "other.md").is_symlink()


def test_a_link_is_followed(tmp_path):
    path = write_table(ONE, tmp_path / "t.md")
    (tmp_path / "link.md").symlink_to("t.md")
    write_table(TWO, tmp_path / "link.md")
    assert (tmp_path / "link.md").is_symlink() and path.read_text(encoding="utf-8") == render(TWO, "markdown") + "\n"


def test_a_table_that_cannot_be_made_leaves_the_old_one(tmp_path):
    path = write_table(ONE, tmp_path / "t.csv")
    before = path.read_bytes()
    with pytest.raises(CoraError, match="digits"):
        write_table(TWO, path, digits=99)
    with pytest.raises(CoraError, match="two columns"):
        write_table(score_table({"a": sure({"MCQA": 0.5}), "a low": {"MCQA": 1}}), path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("suffix, format", _SUFFIXES.items())
def test_a_name_says_its_format(suffix, format):
    assert table_format(f"a.b/c{suffix}") == table_format(f"c{suffix.upper()}") == format
    assert table_format(f"c{suffix}", format) == format
    for other in set(FILE_FORMATS) - {format}:
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
