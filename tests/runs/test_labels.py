"""Sheets that people fill in: written, read back, refused; any reply survives one."""

import csv
import re

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import BadRow, CoraError
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.runs.grading import apply_labels
from cora_nb.runs.grading import _SHEET, _read_label, read_labels, write_labels
from cora_nb.variants.mcqa_plus import long_form
from worded_replies import NINE, QUESTIONS, SAID, run


def fill(path, *labels):
    sheet = pd.read_csv(path, dtype=str, keep_default_na=False)
    sheet["label"] = [*labels, *[""] * (len(sheet) - len(labels))]
    sheet.to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    return sheet


def test_a_sheet_filled_in(tmp_path):
    path = tmp_path / "s.csv"
    assert write_labels(run(SAID), QUESTIONS, path) == 8 and [p.name for p in tmp_path.iterdir()] == ["s.csv"]
    sheet = fill(path, "right", "0", "b", "", " East ", "", "true", "A")
    assert (
        list(sheet.columns) == _SHEET
        and sheet["reply"].tolist()[:3] == ["In the East.", "nine", "'=blue"]
        and sheet["reply"].tolist()[-2:] == ["-3", '\'+red\n"or so", perhaps']
    )
    assert (
        sheet["graded"].tolist()[3:5] == ["wrong: West", "right: 9"]
        and sheet.loc[2, "right_answer"] == 'blue, "dark"'
        and sheet.loc[0, "choices"] == "A. East | B. West | C. North | D. South"
    )
    with pytest.raises(
        BadRow,
        match=r"row 5, id 'nine', label: a label is right or wrong, 1 or 0, "
        r"or a letter or text of 9, 6, 8, 1, got 'East'",
    ):
        read_labels(path, QUESTIONS)
    fill(path, "right", "0", "b", "", "9", "", "true", "A")
    labels = read_labels(path, QUESTIONS)
    assert labels["right"].tolist() == [True, False, True, True, True, False] and labels["choice"].tolist() == [
        0,
        -1,
        1,
        0,
        0,
        0,
    ]
    new = apply_labels(run(SAID), labels, QUESTIONS)
    assert new.table["prediction"].tolist() == [0, -1, 1, 1, 0, -1, -1, 0, 0] and new.facts.grading == {
        "grader": "as before",
        "replies": 9,
        "labels": 6,
    }
    write_responses(new, tmp_path / "r")
    assert read_responses(tmp_path / "r").equals(new) and new.summary().loc["all", "right"] == 4


def test_labels_are_never_overwritten(tmp_path):
    path = tmp_path / "s.csv"
    for _ in range(2):
        write_labels(run(SAID), QUESTIONS, path)  # an empty sheet may be replaced
    fill(path, "1", "0")
    before = path.read_bytes()
    with pytest.raises(CoraError, match=r"s.csv: the file holds 2 labels; it is left alone\Z"):
        write_labels(run(SAID), QUESTIONS, path)
    assert path.read_bytes() == before
    for name, text in (("notes.csv", "my notes\n"), ("none.csv", "")):
        (tmp_path / name).write_text(text)
        with pytest.raises(CoraError, match="holds something else"):
            write_labels(run(SAID), QUESTIONS, tmp_path / name)
    for name, says in (("s.xlsx", "must end in .csv"), ("no/s.csv", "there is no folder")):
        with pytest.raises(CoraError, match=says):
            write_labels(run(SAID), QUESTIONS, tmp_path / name)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]))
    | st.sampled_from(
        ["=1+1", "'=x", "''", "-", "-3", "+4.5", "@x", "\t=y", "\r", "a\r\nb", "NA", "nan", "\ufeffx", "'", '"', ","]
    )
)
def test_any_reply_survives_a_sheet(tmp_path_factory, reply):
    path, responses = tmp_path_factory.mktemp("s") / "s.csv", run([reply, "9", "x"])
    write_labels(responses, QUESTIONS, path)
    with open(path, newline="", encoding="utf-8") as f:
        cells = [row[_SHEET.index("reply")] for row in csv.reader(f)][1:]
    assert not re.match(r"[=+@\t\r]|-(?![0-9.,]+\Z)", cells[0]) or re.fullmatch(r"[-+]?[0-9.,]+", cells[0])
    fill(path, "1", "1", "1")
    assert apply_labels(responses, read_labels(path, QUESTIONS), QUESTIONS).table["correct"].all()


@pytest.mark.parametrize(
    "label, says",
    [
        ("1", (True, 0)),
        ("YES", (True, 0)),
        ("Right ", (True, 0)),
        ("1.0", (True, 0)),
        ("0", (False, -1)),
        ("no", (False, -1)),
        ("FALSE", (False, -1)),
        ("wrong", (False, -1)),
        ("A", (True, 0)),
        ("(b)", (False, 1)),
        ("c.", (False, 2)),
        ("9", (True, 0)),
        ("6", (False, 1)),
        ("E", None),
        ("7", None),
        ("maybe", None),
        ("?", None),
        ("AB", None),
        ("-1", None),
    ],
)
def test_what_labels_mean(label, says):
    assert _read_label(label, long_form(NINE)) == says  # "1" is right, though a choice reads 1


@pytest.mark.parametrize(
    "row, number, field, value",
    [
        ("moon,lfgq,0,0,x,1", 1, "question_id", "moon"),
        ("sun,mcq,0,0,x,1", 1, "question_id", "sun"),
        ("sun,lfgq,1,0,x,1", 1, "question_id", "sun"),
        ("sun,lfgq,a,0,x,1", 1, "index", "a"),
        ("sun,lfgq,0,-1,x,1", 1, "trial", "-1"),
        ("sun,lfgq,0,0,x,2", 1, "label", "2"),
        ("sun,lfgq,0,0,x,1\nsun,lfgq,0.0,0,x,0", 2, "label", "0"),
        ("sun,lfgq,0,0,x,\nsun,lfgq,0,1,x,hm", 2, "label", "hm"),
    ],
)
def test_bad_rows(tmp_path, row, number, field, value):
    (path := tmp_path / "s.csv").write_text(f"question_id,method,index,trial,reply,label\n{row}\n")
    with pytest.raises(BadRow) as e:
        read_labels(path, QUESTIONS)
    assert (e.value.file, e.value.row, e.value.field, e.value.value) == (
        str(path),
        number,
        field,
        value,
    ) and "\n" not in str(e.value)


def test_other_files(tmp_path):
    (tmp_path / "a.csv").write_text("question_id,label\nsun,1\n")
    with pytest.raises(
        CoraError, match="no column 'method' and no 'index' and no 'trial' and no 'reply'; the file has"
    ):
        read_labels(tmp_path / "a.csv", QUESTIONS)
    with pytest.raises(CoraError, match="there is no such file"):
        read_labels(tmp_path / "b.csv", QUESTIONS)
    (tmp_path / "c.jsonl").write_text(
        '{"question_id": "sun", "method": "lfgq", "index": 0, "trial": 0, "reply": "East", "label": 0}\n'
        '{"question_id": "nine", "method": "lfgq", "index": 0, "trial": 0, "reply": "9", "label": null}\n'
    )
    assert read_labels(tmp_path / "c.jsonl", QUESTIONS)["right"].tolist() == [False]
    write_labels(run(SAID), QUESTIONS, tmp_path / "d.csv")
    empty = read_labels(tmp_path / "d.csv", QUESTIONS)
    assert (
        len(empty) == 0
        and apply_labels(run(SAID), empty, QUESTIONS).table["prediction"].tolist()
        == run(SAID).table["prediction"].tolist()
    )
