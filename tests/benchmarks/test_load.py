"Benchmarks: the hub's layouts, files of one's own, every kind of malformed input, and the synthetic MATH benchmark."

import csv
import gzip
import io
import json
import os
import subprocess
import sys
import warnings
from collections import Counter

import pytest
from conftest import SHARED
from hypothesis import given, settings
from hypothesis import strategies as st

from cora_nb.benchmarks.arithmetic import OPERATIONS, _draw_pair, _math_capacity, pose, slips, _wrong_answers
from cora_nb.benchmarks.layouts import LAYOUTS
from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.benchmarks.load import benchmark_hash, load_benchmark, load_shots, write_benchmark
from cora_nb.core import LETTERS, BadRow, CoraError, Question, data_path

HUB = SHARED / "data" / "hub"
needs_hub = pytest.mark.skipif(not HUB.is_dir(), reason=f"the real benchmarks are not at {HUB}")


# ---------------------------------------------------------------- small files


def csv_text(*rows):
    "Rows as a CSV file writes them."
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return out.getvalue()


def jsonl(*rows):
    "Rows as a JSONL file writes them."
    return "".join(json.dumps(r) + "\n" for r in rows)


def parquet(path, rows, schema=None):
    "Write rows to a Parquet file."
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    return path


def put(folder, name, content):
    "Write text or bytes to a file in a folder."
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def row(**changes):
    "A sound row in the plain layout, changed; a change to None-the-class leaves the field out."
    r = dict(id="q1", question="Which planet is largest?", choices=["Mars", "Jupiter", "Venus"], answer=1) | changes
    return {k: v for k, v in r.items() if v is not type(None)}


MARS = ["Mars", "Jupiter", "Venus"]
GOOD = row(id="q0")
REST = [row(id=f"r{i}", answer=i % 3) for i in range(18)]  # enough to see that answers count from 0
HEAD = ["id", "question", "A", "B", "C", "answer"]
FINE = ["q0", "Which planet is largest?", "Mars", "Jupiter", "Venus", "B"]
FINES = [[f"r{i}", *FINE[1:-1], "ABC"[i % 3]] for i in range(18)]
INDICES = [[*line[:-1], str(i % 3)] for i, line in enumerate(FINES)]
LETTERED = [r | dict(answer="ABC"[r["answer"]]) for r in REST]
TOLD = [r | dict(answer=r["choices"][r["answer"]]) for r in REST]


def among(*bad, rest=REST):
    "A JSONL file in which row 2 of 20 is bad."
    return jsonl(rest[0] | {"id": "q0"}, *bad, *rest)


def among_lines(line, rest=REST):
    "A JSONL file in which line 2 of 20 is this text."
    return jsonl(GOOD) + line + "\n" + jsonl(*rest)


def among_cells(cells, rest=FINES):
    "A CSV file in which row 2 of 20 is bad."
    return csv_text(HEAD, ["q0", *rest[1][1:]], cells, *rest)


# ------------------------------------------- malformed rows: (file, content, options, row, field, value, words)

MANY = list(map(str, range(27)))
BAD_ROWS = {
    "no choice": ("f.jsonl", among(row(choices=[])), {}, 2, "choices", [], "2 to 26 choices and has 0"),
    "one choice": ("f.jsonl", among(row(choices=["Mars"], answer=0)), {}, 2, "choices", ["Mars"], "has 1"),
    "27 choices": ("f.jsonl", among(row(choices=MANY)), {}, 2, "choices", MANY, "has 27"),
    "empty choice": (
        "f.jsonl",
        among(row(choices=["Mars", " ", "Venus"])),
        {},
        2,
        "choices",
        " ",
        "choice B must be a non-empty text",
    ),
    "gap among columns": (
        "f.csv",
        among_cells(["q1", "Which?", "Mars", "", "Venus", "A"]),
        {},
        2,
        "A to C",
        "",
        "choice B must be a non-empty text",
    ),
    "choices a text": (
        "f.jsonl",
        among(row(choices="Mars, Jupiter")),
        {},
        2,
        "choices",
        "Mars, Jupiter",
        "must be a list",
    ),
    "choices cell no JSON": (
        "f.csv",
        csv_text(
            ["question", "choices", "answer"],
            ["a?", '["x", "y"]', "A"],
            ["b?", "x;y", "A"],
            *([f"c{i}?", '["x", "y"]', "AB"[i % 2]] for i in range(18)),
        ),
        {},
        2,
        "choices",
        "x;y",
        "JSON list",
    ),
    "answer out of range": ("f.jsonl", among(row(answer=3)), {}, 2, "answer", 3, "numbers from 0"),
    "answer a boolean": ("f.jsonl", among(row(answer=True)), {}, 2, "answer", True, "numbers from 0"),
    "answer 1.5": ("f.jsonl", among(row(answer=1.5)), {}, 2, "answer", 1.5, "numbers from 0"),
    "answer null": ("f.jsonl", among(row(answer=None)), {}, 2, "answer", None, "numbers from 0"),
    "answer a letter among indices": ("f.jsonl", among(row(answer="B")), {}, 2, "answer", "B", "numbers from 0"),
    "answer an index among letters": (
        "f.jsonl",
        among(row(answer=1), rest=LETTERED),
        {},
        2,
        "answer",
        1,
        "letters A to C",
    ),
    "letter past the last choice": (
        "f.csv",
        among_cells(["q1", "Which?", "Mars", "Venus", "", "C"]),
        {},
        2,
        "answer",
        "C",
        "the question has 2 choices",
    ),
    "letter past all choices": ("f.csv", among_cells(["q1", *FINE[1:-1], "D"]), {}, 2, "answer", "D", "A to C"),
    "two letters": ("f.csv", among_cells(["q1", *FINE[1:-1], "AB"]), {}, 2, "answer", "AB", "several choices"),
    "empty answer": ("f.csv", among_cells(["q1", *FINE[1:-1], ""]), {}, 2, "answer", "", "letters A to C"),
    "a text where a letter should be": (
        "f.csv",
        among_cells(["q1", *FINE[1:-1], "Jupiter"]),
        {},
        2,
        "answer",
        "Jupiter",
        "letters A to C",
    ),
    "a number where a letter should be": (
        "f.csv",
        among_cells(["q1", *FINE[1:-1], "2"]),
        {},
        2,
        "answer",
        "2",
        "letters A to C",
    ),
    "index cell no number": (
        "f.csv",
        among_cells(["q1", *FINE[1:-1], "B"], rest=INDICES),
        dict(answer_as="from 0"),
        2,
        "answer",
        "B",
        "numbers from 0",
    ),
    "index cell 1.5": (
        "f.csv",
        among_cells(["q1", *FINE[1:-1], "1.5"], rest=INDICES),
        dict(answer_as="from 0"),
        2,
        "answer",
        "1.5",
        "numbers from 0",
    ),
    "a 0 where answers count from 1": (
        "f.csv",
        among_cells(["q1", *FINE[1:-1], "0"], rest=[[*line[:-1], str(1 + i % 3)] for i, line in enumerate(FINES)]),
        {},
        2,
        "answer",
        "0",
        "numbers from 1",
    ),
    "answer text found twice": (
        "f.jsonl",
        among(row(choices=["x", "y", "x"], answer="x"), rest=TOLD),
        dict(answer_as="text"),
        2,
        "answer",
        "x",
        "matches choices A and C",
    ),
    "answer text not found": (
        "f.jsonl",
        among(row(answer="Saturn"), rest=TOLD),
        dict(answer_as="text"),
        2,
        "answer",
        "Saturn",
        "one of the texts of the choices",
    ),
    "question null": ("f.jsonl", among(row(question=None)), {}, 2, "question", None, "non-empty text"),
    "duplicate id": ("f.jsonl", among(row(id="q0")), {}, 2, "id", "q0", "that of row 1"),
    "empty id": ("f.csv", among_cells(["", *FINE[1:]]), {}, 2, "id", "", "the id must be a non-empty text"),
    "id a decimal number": ("f.jsonl", among(row(id=1.5)), {}, 2, "id", 1.5, "the id must be a non-empty text"),
    "subject a number": ("f.jsonl", among(row(subject=3)), {}, 2, "subject", 3, "subject must be a text"),
    "half a character": ("f.jsonl", among(row(question="\ud83d?")), {}, 2, "question", "\ud83d?", "half a character"),
    "too many cells": (
        "f.csv",
        among_cells([*FINE, "more"]),
        {},
        2,
        "",
        [*FINE, "more"],
        "the row has 7 cells and the header 6",
    ),
    "too few cells": ("f.csv", among_cells(FINE[:-1]), {}, 2, "", FINE[:-1], "the row has 5 cells and the header 6"),
    "truncated JSON line": (
        "f.jsonl",
        jsonl(GOOD, *REST) + '{"id": "q1", "question": "Wh',
        {},
        20,
        "",
        '{"id": "q1", "question": "Wh',
        "the line is not JSON",
    ),
    "JSON line that is no object": ("f.jsonl", among([1, 2]), {}, 2, "", [1, 2], "must be a JSON object"),
    "a field named twice": (
        "f.jsonl",
        among_lines('{"answer": 1, "answer": 2}'),
        {},
        2,
        "",
        '{"answer": 1, "answer": 2}',
        "'answer' is named twice",
    ),
    "JSON nested without end": ("f.jsonl", among_lines("[" * 200_000), {}, 2, "", "[" * 200, "the line is not JSON"),
}


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_malformed_row_is_refused_by_name_and_place(kind, tmp_path):
    name, content, options, n, field, value, words = BAD_ROWS[kind]
    path = put(tmp_path, name, content)
    with pytest.raises(BadRow) as caught:
        load_benchmark("mine", path=path, **options)
    e, said = caught.value, str(caught.value)
    assert (e.file, e.row, e.field) == (str(path), n, field)
    assert e.value == value or list(e.value) == value
    shown = repr(e.value) if len(repr(e.value)) <= 80 else repr(e.value)[:77] + "..."
    assert said.startswith(f"{path}, row {n}") and words in said and said.endswith(f"got {shown}") and "\n" not in said


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_malformed_row_is_skipped_on_request_and_counted(kind, tmp_path):
    name, content, options, n, field, value, words = BAD_ROWS[kind]
    path = put(tmp_path, name, content)
    with pytest.warns(UserWarning, match=f"dropped 1 malformed row: .*row {n}") as said:
        assert len(load_benchmark("mine", path=path, on_bad="skip", **options)) == 19
    assert words in next(str(w.message) for w in said if "dropped" in str(w.message))
    assert {w.filename for w in said} == {__file__}  # the warnings point at the caller


@pytest.mark.parametrize("said", ["b", "B ", "(B)", "B.", "\uff22", "option B", ["B"]])
def test_a_letter_written_otherwise_is_the_same_letter(said, tmp_path):
    path = put(tmp_path, "f.jsonl", among(row(answer=said), rest=LETTERED))
    assert [q.answer for q in load_benchmark("mine", path=path)] == [0, 1, *[i % 3 for i in range(18)]]


@pytest.mark.parametrize("said", ["1", "1.0", 1.0, " 1", [1]])
def test_an_index_written_otherwise_is_the_same_index(said, tmp_path):
    path = put(tmp_path, "f.jsonl", among(row(answer=said)))
    assert load_benchmark("mine", path=path)[1].answer == 1


def test_nan_answers(tmp_path):
    path = put(tmp_path, "f.jsonl", among(row(answer=float("nan"))))
    with pytest.raises(BadRow, match="row 2, id 'q1', answer: .*numbers from 0.*got nan"):
        load_benchmark("mine", path=path)
    rows = [r | dict(answer=float(r["answer"])) for r in REST]
    path = parquet(
        tmp_path / "f.parquet", [*rows, row(id="b", answer=float("nan"))]
    )  # what a gap makes of a column of whole numbers
    with pytest.raises(BadRow, match="row 19, id 'b', answer: .*numbers from 0.*got nan"):
        load_benchmark("mine", path=path)
    with pytest.warns(UserWarning, match="dropped 1 malformed row"):
        assert [q.answer for q in load_benchmark("mine", path=path, on_bad="skip")] == [r["answer"] for r in REST]


def test_the_first_of_several_bad_rows_is_named_and_all_are_counted(tmp_path):
    path = put(tmp_path, "f.jsonl", among(row(answer=9)) + jsonl(row(id="z1", question=""), row(id="z2", choices=[])))
    with pytest.raises(BadRow) as caught:
        load_benchmark("mine", path=path)
    assert caught.value.row in (2, 21) and "of 22 rows are refused)" in str(caught.value)
    with pytest.warns(UserWarning, match="dropped 3 malformed rows: .*row 2,.*row 21,.*row 22"):
        assert len(load_benchmark("mine", path=path, on_bad="skip")) == 19


@pytest.mark.parametrize("on_bad", ["raise", "skip"])
def test_two_readings_are_refused_with_the_lines_to_type(on_bad, tmp_path):
    path = put(tmp_path, "f.jsonl", jsonl(*(row(id=f"q{i}") for i in range(20))))
    with pytest.raises(BadRow) as caught:
        load_benchmark("mine", path=path, on_bad=on_bad)
    said = str(caught.value)
    assert said.startswith(f"{path}, row 1, id 'q0', answer: the answers can be read in 2 ways") and "\n" not in said
    for line in (
        "answer_as=\"from 0\" (then the answer is 'Jupiter')",
        "answer_as=\"from 1\" (then the answer is 'Mars')",
    ):
        assert line in said
    for answer_as, i in (("from 0", 1), ("from 1", 0)):
        assert {q.answer for q in load_benchmark("mine", path=path, answer_as=answer_as, on_bad=on_bad)} == {i}


def test_not_one_good_row(tmp_path):
    path = put(tmp_path, "f.jsonl", jsonl(row(answer=9)))
    with pytest.raises(CoraError, match="f.jsonl, row 1, id 'q1', answer: most answers are neither.*got 9"):
        load_benchmark("mine", path=path, on_bad="skip")
    path = put(tmp_path, "f.jsonl", jsonl(row(choices=[])))
    with pytest.raises(CoraError, match="f.jsonl: not one row could be used as a question; the first: .*has 0, got"):
        load_benchmark("mine", path=path, on_bad="skip")


# ---------------------------------------------------------------- files and parameters that are wrong as a whole

BAD_FILES = {
    "missing": ("f.csv", None, "no such file"),
    "empty": ("f.csv", "", "the file is empty"),
    "blank": ("f.jsonl", "\n \n", "the file is empty"),
    "empty parquet": ("f.parquet", b"", "not a readable Parquet file"),
    "header only": ("f.csv", csv_text(HEAD), "no rows"),
    "one odd byte": (
        "f.csv",
        csv_text(HEAD, FINE, ["q1", "Où est Malmo?", "ici", "la", "", "A"]).encode("latin-1"),
        "line 3 is not UTF-8 (byte 0xf9)",
    ),
    "latin-1 JSONL": (
        "f.jsonl",
        jsonl(GOOD).encode() + '{"question": "Malmö?"}'.encode("latin-1"),
        "line 2 is not UTF-8 (byte 0xf6)",
    ),
    "half of UTF-16": ("f.csv", csv_text(HEAD, FINE).encode("utf-16")[:-1], "begins like utf-16, and is not"),
    "UTF-16 without a mark": ("f.csv", csv_text(HEAD, FINE).encode("utf-16-le"), ""),
    "unterminated quote": (
        "f.csv",
        csv_text(HEAD, FINE) + 'q1,"Which is,Mars,Venus,,A\nq2,Which?,Mars,Venus,,A\n',
        "row 2 is not CSV",
    ),
    "text after a quote": ("f.csv", csv_text(HEAD, FINE) + 'q1,"Which" is,Mars,Venus,,A\n', "row 2 is not CSV"),
    "unterminated quote in the header": ("f.csv", 'question,"A,B,answer\n', "the header is not CSV"),
    "column twice": ("f.csv", csv_text([*HEAD, "A"], [*FINE, "x"]), "the header names 'A' twice"),
    "no question": (
        "f.csv",
        csv_text(HEAD[2:], FINE[2:]),
        "cannot tell which column holds the question; the file has 'A', 'B', 'C', 'answer'; type columns={",
    ),
    "no answer": (
        "f.csv",
        csv_text(HEAD[:-1], FINE[:-1]),
        "cannot tell which column holds the answer; the file has 'id', 'question', 'A', 'B', 'C'; type columns={",
    ),
    "no choices": (
        "f.csv",
        csv_text(["question", "answer"], ["a?", "A"]),
        "cannot tell which column holds the choices; the file has 'question', 'answer'; type columns={",
    ),
    "choices twice": ("f.jsonl", jsonl(row(A="x", B="y")), "the choices may be in choices or in A, B; say which"),
    "answers that disagree in every row": (
        "f.jsonl",
        jsonl(*(r | dict(answer_text=r["choices"][r["answer"] - 1]) for r in REST)),
        "answer_text: does not name 'Mars', as answer does",
    ),
    "gap between columns": (
        "f.csv",
        csv_text(["question", "A", "C", "answer"], ["a?", "x", "y", "A"]),
        "the columns of choices must have no gap; there are A, C",
    ),
    "semicolons and commas": ("f.csv", "question;A;B,answer\na?;x;y,A\n", "cannot tell which column holds"),
    "empty objects": ("f.jsonl", "{}\n{}\n", "the rows have no columns"),
    "truncated parquet": ("f.parquet", "half", "not a readable Parquet file"),
    "a text named parquet": ("f.parquet", csv_text(HEAD, FINE), "not a readable Parquet file"),
    "unknown extension": (
        "f.xls",
        b"\xd0\xcf",
        "must end in one of .csv, .tsv, .txt, .json, .jsonl, .ndjson, .parquet, .xlsx",
    ),
    "half a workbook": ("f.xlsx", b"PK\x03\x04", "not a readable xlsx file"),
    "no extension": ("f", csv_text(HEAD, FINE), "the name must end in one of"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
@pytest.mark.parametrize("on_bad", ["raise", "skip"])
def test_broken_file_is_refused_by_name(kind, on_bad, tmp_path):
    name, content, words = BAD_FILES[kind]
    if content == "half":
        whole = parquet(tmp_path / "whole.parquet", [GOOD]).read_bytes()
        content = whole[: len(whole) // 2]
    path = tmp_path / name if content is None else put(tmp_path, name, content)
    with pytest.raises(CoraError) as caught:
        load_benchmark("mine", path=path, on_bad=on_bad)
    assert str(caught.value).startswith(str(path)) and words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(on_bad="ignore"), "on_bad must be one of raise, skip, got 'ignore'"),
        (
            dict(answer_as="number"),
            "answer_as must be one of letter, text, from 0, from 1, label, true, first, one-hot, got 'number'",
        ),
        (dict(answer_as="index"), "got 'index'"),
        (dict(columns="question"), "columns must map roles to columns"),
        (dict(columns={"prompt": "question"}), "columns: 'prompt' is none of question, choices, answer"),
        (dict(columns={"answer": None}), "columns: answer must be a column's name or a list of names, got None"),
        (dict(columns={"question": "Frage"}), "there is no column 'Frage'; the file has 'id', 'question'"),
    ],
)
def test_parameter_is_refused(options, words, tmp_path):
    with pytest.raises(CoraError) as caught:
        load_benchmark("mine", path=put(tmp_path, "f.jsonl", jsonl(GOOD)), **options)
    assert words in str(caught.value)


def test_what_does_not_exist_says_what_does(tmp_path):
    parquet(
        tmp_path / "cais__mmlu" / "all" / "dev.parquet",
        [dict(question="a?", subject="s", choices=["x", "y"], answer=0)],
    )
    for options, words in [
        (dict(source="mmlu", path=tmp_path), ["cais__mmlu", "no split 'test'; there is dev"]),
        (dict(source="mmlu", path=tmp_path, split="tset"), ["no split 'tset'; there is dev"]),
        (dict(source="medqa", path=tmp_path), ["no folder bigbio__med_qa; there is cais__mmlu"]),
        (dict(source="nmlu", path=tmp_path), ["with a layout, not 'nmlu'", "known are arabicmmlu, arc, arc_all"]),
        (dict(source="nmlu"), ["no benchmark 'nmlu'", "known are arabicmmlu, arc, arc_all", "path="]),
        (dict(source="math", split="dev"), ["math: no split 'dev'"]),
        (dict(source="math", path=tmp_path), ["with a layout, not 'math'"]),
    ]:
        with pytest.raises(CoraError) as caught:
            load_benchmark(**options)
        for w in words:
            assert w in str(caught.value)
    (tmp_path / "cais__mmlu" / "all").rename(tmp_path / "cais__mmlu" / "abstract_algebra")
    with pytest.raises(CoraError, match="no configuration 'all'; there is abstract_algebra"):
        load_benchmark("mmlu", path=tmp_path)


# ---------------------------------------------------------------- the plain layout


def test_the_column_or_the_whole_file_decides_what_an_answer_is(tmp_path):
    choices = ["C", "N", "B"]  # "B" is a letter, and the text of choice C

    def answer(name, content, **options):
        return load_benchmark("mine", path=put(tmp_path, name, content), **options)[0].answer

    cells = csv_text(["question", "choices", "answer"], ["a?", json.dumps(choices), "B"])
    with pytest.raises(BadRow, match="in 2 ways.*answer_as=\"letter\" .*'N'. or answer_as=\"text\" .*'B'., got 'B'"):
        answer("f.csv", cells)
    assert answer("f.csv", cells, answer_as="letter") == 1
    assert answer("f.csv", cells, answer_as="text") == 2
    other = csv_text(["question", "choices", "answer"], ["a?", json.dumps(choices), "B"], ["b?", '["x", "y"]', "A"])
    assert answer("f.csv", other) == 1  # the second row has no such text
    assert answer("f.csv", cells.replace("answer", "answer_text")) == 2
    assert answer("f.csv", cells.replace("answer", "answer_letter")) == 1
    two = csv_text(["question", "choices", "answer"], ["a?", json.dumps(choices), "2"])
    assert (answer("f.csv", two, answer_as="from 0"), answer("f.csv", two, answer_as="from 1")) == (2, 1)
    with pytest.raises(BadRow, match="in 2 ways"):
        answer("f.csv", two)
    assert answer("f.csv", two.replace("answer", "answer_index")) == 2
    assert answer("f.jsonl", jsonl(row(choices=choices, answer=2), row(choices=choices, id="q2", answer=0))) == 2
    with pytest.raises(BadRow, match="in 2 ways.*row 1|row 1.*in 2 ways"):
        answer("f.jsonl", jsonl(row(choices=choices, answer=2)))
    assert answer("f.jsonl", jsonl(row(choices=choices, answer="B")), answer_as="letter") == 1
    assert answer("f.jsonl", jsonl(row(choices=choices, answer="B")), answer_as="text") == 2
    digits = jsonl(row(choices=["3", "2", "1"], answer="1"))  # the text, from 0 and from 1: only the user can say
    with pytest.raises(BadRow, match='in 3 ways.*answer_as="text".*answer_as="from 0".*answer_as="from 1"'):
        answer("f.jsonl", digits)
    assert [answer("f.jsonl", digits, answer_as=a) for a in ("text", "from 0", "from 1")] == [2, 1, 0]
    indices = [dict(question="a?", choices=choices, answer=2), dict(question="b?", choices=choices, answer=0)]
    path = parquet(tmp_path / "f.parquet", indices)
    assert [q.answer for q in load_benchmark("mine", path=path)] == [2, 0]
    path = parquet(tmp_path / "f.parquet", [dict(question="a?", choices=["x", "y", "z"], answer="B")])
    assert load_benchmark("mine", path=path)[0].answer == 1
    with pytest.raises(BadRow, match="answer: most answers are neither a letter, a number nor the text"):
        load_benchmark("mine", path=put(tmp_path, "f.jsonl", jsonl(row(choices=choices, answer="boron"))))


def test_from_1_needs_evidence(tmp_path):
    def load(answers, **options):
        rows = [row(id=f"q{i}", question=f"{i}?", answer=a) for i, a in enumerate(answers)]
        return [q.answer for q in load_benchmark("mine", path=put(tmp_path, "f.jsonl", jsonl(*rows)), **options)]

    assert load([1, 2, 3] * 7) == [0, 1, 2] * 7
    assert load([0, 1, 2] * 7) == [0, 1, 2] * 7
    with pytest.raises(BadRow, match="in 2 ways"):
        load([1, 2] * 10)
    with pytest.raises(BadRow, match="in 2 ways"):
        load([1, 2] * 10 + [3])  # may be a slip
    with pytest.raises(BadRow, match="in 2 ways"):
        load([1, 2, 3, 3])  # too few to say
    for on_bad in ("raise", "skip"):
        with pytest.raises(BadRow, match="f.jsonl, row 3, .*should count from 0, and 6 of 18 only fit counting from 1"):
            rows = [dict(question=f"{i}?", A="x", B="y", C="z", answer_index=1 + i % 3) for i in range(18)]
            load_benchmark("mine", path=put(tmp_path, "f.jsonl", jsonl(*rows)), on_bad=on_bad)


def test_several_columns_of_answers_must_agree(tmp_path):
    rows = [r | dict(answer_text=r["choices"][r["answer"]]) for r in REST]
    path = put(tmp_path, "f.jsonl", jsonl(*rows))
    assert [q.answer for q in load_benchmark("mine", path=path)] == [r["answer"] for r in REST]
    rows[1]["answer_text"] = "Mars"
    path = put(tmp_path, "f.jsonl", jsonl(*rows))
    with pytest.raises(BadRow, match="row 2, id 'r1', answer_text: does not name") as caught:
        load_benchmark("mine", path=path)
    assert (caught.value.row, caught.value.field, caught.value.value) == (2, "answer_text", "Mars")
    path = put(tmp_path, "f.jsonl", jsonl(*(row(id=f"q{i}", answer=2, answer_text="Jupiter") for i in range(3))))
    assert {q.answer for q in load_benchmark("mine", path=path)} == {1}  # the text says that they count from 1


MISSING = ["None", "NA", "N/A", "null", "nan", "NaN", "NULL", "#N/A", "-", "0", "True", "1e3", "007"]


def test_two_to_26_choices(tmp_path):
    for n in (2, 26):
        q = load_benchmark(
            "mine",
            path=put(
                tmp_path,
                "f.csv",
                csv_text(
                    ["question", *LETTERS, "answer"], ["a?", *map(str, range(n)), *[""] * (26 - n), LETTERS[n - 1]]
                ),
            ),
        )[0]
        assert (q.n_choices, q.answer) == (n, n - 1)


def test_ids(tmp_path):
    sound = [row(id=type(None)), row(id=type(None), answer=0)]
    path = put(tmp_path, "f.jsonl", jsonl(*sound))
    assert [q.id for q in load_benchmark("mine", path=path)] == ["mine-1", "mine-2"]
    assert [q.id for q in load_benchmark("mine", split="easy", path=path)] == ["mine-easy-1", "mine-easy-2"]
    path = put(tmp_path, "f.jsonl", "\n" + jsonl(row(id=7)) + "\n" + jsonl(row(id="7b", answer=0)))
    assert [q.id for q in load_benchmark("mine", path=path)] == ["7", "7b"]
    path = put(tmp_path, "f.jsonl", jsonl(row(id=7, answer=0), row(id="7")))  # the same once written down
    with pytest.raises(BadRow, match="row 2, id '7'.*must be unique"):
        load_benchmark("mine", path=path)
    path = put(tmp_path, "f.jsonl", jsonl(sound[0], row(id=type(None), answer=9), sound[1]))
    with pytest.warns(UserWarning):
        assert [q.id for q in load_benchmark("mine", path=path, on_bad="skip")] == [
            "mine-1",
            "mine-3",
        ]  # ids follow rows


def test_every_row_is_read_whatever_part_is_asked(tmp_path):
    path = put(tmp_path, "f.jsonl", jsonl(*(row(id=f"q{i}", answer=i % 3) for i in range(5)), row(id="q9", answer=9)))
    with pytest.raises(BadRow, match="row 6, id 'q9', answer"):
        load_benchmark("mine", path=path)[:5]
    with pytest.warns(UserWarning, match="dropped 1 malformed row: .*row 6"):
        assert [q.id for q in load_benchmark("mine", path=path, on_bad="skip")[:3]] == ["q0", "q1", "q2"]


def test_odd_but_sound_files(tmp_path):
    plain = load_benchmark("mine", path=put(tmp_path, "f.csv", csv_text(HEAD, FINE)))
    for content in [
        b"\xef\xbb\xbf" + csv_text(HEAD, FINE).encode(),
        csv_text(HEAD, FINE).replace("\n", "\r\n"),
        csv_text(HEAD, FINE).replace("\n", "\n\n"),
        csv_text(HEAD, FINE).rstrip("\n"),
        csv_text(HEAD, FINE).encode("utf-16"),
        csv_text(HEAD, FINE).encode("utf-32"),
        gzip.compress(csv_text(HEAD, FINE).encode()),
        csv_text(HEAD, FINE).replace(",", ";"),
        csv_text(HEAD, FINE).replace(",", "\t"),
        ";".join(HEAD) + "\n" + ";".join(FINE) + "\n",
    ]:
        assert load_benchmark("mine", path=put(tmp_path, "f.csv", content)) == plain
    for name in ("F.CSV", "f.txt", "f.tsv", "f.csv.gz"):
        assert load_benchmark("mine", path=put(tmp_path, name, csv_text(HEAD, FINE))) == plain
    for name in ("f.json", "f.ndjson", "f.txt"):
        assert load_benchmark("mine", path=put(tmp_path, name, json.dumps([row(id="q0", answer="B")]))) == plain
    assert load_benchmark("mine", path=str(put(tmp_path, "f.csv", csv_text(HEAD, FINE)))) == plain
    accented = ["q1", "Où est Malmö?", "ici", "là", "", "A"]
    found = load_benchmark("mine", path=put(tmp_path, "f.csv", csv_text(HEAD, FINE, accented).encode("latin-1")))
    assert found == [*plain, Question("q1", "Où est Malmö?", ("ici", "là"), 0)]
    text = 'two\nlines, "quoted"\u2028and a separator \u00e9\U0001f600'
    assert load_benchmark("mine", path=put(tmp_path, "f.csv", csv_text(HEAD, ["q", text, *FINE[2:]])))[0].text == text
    assert (
        load_benchmark(
            "mine", path=put(tmp_path, "f.jsonl", json.dumps(row(question=text, answer="B"), ensure_ascii=False))
        )[0].text
        == text
    )


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda text: text.strip() and not text.strip().endswith(")") and "A" not in text  # no labels of their own
)
benchmarks = st.lists(
    st.builds(
        lambda text, choices, where, subject: (text, choices, where % len(choices), subject),
        texts,
        st.lists(texts, min_size=2, max_size=26),
        st.integers(0, 25),
        st.none() | texts,
    ),
    min_size=1,
    max_size=6,
).map(lambda rows: [Question(f"q{i}", *r) for i, r in enumerate(rows)])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(questions=benchmarks)
def test_what_is_written_reads_back_in_every_format(questions, tmp_path_factory):
    folder = tmp_path_factory.mktemp("round")
    assert load_benchmark("any", path=write_benchmark(questions, folder / "f.jsonl")) == questions
    rows = [
        dict(id=q.id, question=q.text, choices=list(q.choices), answer_index=q.answer, subject=q.subject)
        for q in questions
    ]
    assert load_benchmark("any", path=parquet(folder / "f.parquet", rows)) == questions
    cells = csv_text(
        ["id", "question", "choices", "answer_index", "subject"],
        *([q.id, q.text, json.dumps(q.choices), q.answer, q.subject or ""] for q in questions),
    )
    assert load_benchmark("any", path=put(folder, "f.csv", cells)) == questions


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    data=st.binary(max_size=200) | st.text(max_size=100).map(lambda s: s.encode("utf-8", "replace")),
    name=st.sampled_from(["f.csv", "f.jsonl", "f.parquet"]),
)
def test_no_content_ends_in_anything_but_a_message(data, name, tmp_path_factory):
    path = put(tmp_path_factory.mktemp("noise"), name, data)
    try:
        load_benchmark("any", path=path)
    except CoraError as e:
        assert str(path) in str(e)  # the only error allowed


# ---------------------------------------------------------------- layouts of the hub

CHOICES = ["None", "x", "x", "y"]
ROWS = {  # name: (config, split, a row as the hub has it, the question it is)
    "medqa": (
        "med_qa_en_source",
        "test",
        dict(
            meta_info="",
            question="a?",
            answer_idx="D",
            answer="y",
            options=[dict(key=k, value=v) for k, v in zip("ABCD", CHOICES)],
        ),
        Question("medqa-test-1", "a?", CHOICES, 3),
    ),
    "mmlu": (
        "all",
        "test",
        dict(question="a?", subject="anatomy", choices=CHOICES, answer=2),
        Question("mmlu-test-1", "a?", CHOICES, 2, "anatomy"),
    ),
    "arc": (
        "ARC-Challenge",
        "test",
        dict(id="Mercury_1", question="a?", choices=dict(text=CHOICES[:3], label=["1", "2", "3"]), answerKey="1"),
        Question("Mercury_1", "a?", CHOICES[:3], 0),
    ),
    "truthfulqa": (
        "multiple_choice",
        "validation",
        dict(
            question="a?",
            mc1_targets=dict(choices=CHOICES, labels=[0, 0, 1, 0]),
            mc2_targets=dict(choices=CHOICES, labels=[1, 0, 1, 0]),
        ),
        Question("truthfulqa-validation-1", "a?", CHOICES, 2),
    ),
    "csqa": (
        "default",
        "validation",
        dict(
            id="c1", question="a?", question_concept="a", choices=dict(label=list("ABCD"), text=CHOICES), answerKey="B"
        ),
        Question("c1", "a?", CHOICES, 1),
    ),
    "hellaswag": (
        "default",
        "validation",
        dict(
            ind=24,
            activity_label="Roof",
            ctx_a="A man",
            ctx_b="he",
            ctx="A man he",
            endings=CHOICES,
            source_id="s",
            split="val",
            split_type="indomain",
            label="3",
        ),
        Question("hellaswag-validation-1", "A man he", CHOICES, 3, "Roof"),
    ),
    "medmcqa": (
        "default",
        "validation",
        dict(
            id="m-1",
            question="a?",
            opa="None",
            opb="x",
            opc="x",
            opd="y",
            cop=2,
            choice_type="multi",
            exp=None,
            subject_name="Surgery",
            topic_name=None,
        ),
        Question("m-1", "a?", CHOICES, 2, "Surgery"),
    ),
    "mmlu_redux": (
        "anatomy",
        "test",
        dict(
            question="a?",
            choices=CHOICES,
            answer=2,
            error_type="ok",
            source=None,
            correct_answer=None,
            potential_reason=None,
        ),
        Question("mmlu_redux-test-anatomy-1", "a?", CHOICES, 2, "anatomy"),
    ),
    "m3ke": (
        "Music-Other",
        "dev",
        dict(id=0, question="a?", A="None", B="x", C="x", D="y", answer="D"),
        Question("Music-Other-0", "a?", CHOICES, 3, "Music-Other"),
    ),
}
OTHERS = {"usmle", "arc_all"}  # of several files or splits: see test_exams
PUBLISHED = {  # see test_published
    *("arabicmmlu", "arc_authors", "belebele", "belebele_en", "boolq", "ceval", "cmmlu", "copa", "global_mmlu_en"),
    *("gpqa", "head_qa", "head_qa_en", "include", "kmmlu", "medqa_hf", "mmlu_pro", "openbookqa", "piqa", "race"),
    *("sciq", "siqa", "super_glue", "winogrande"),
}
ALONE = {  # a single file does not say which subject it is
    "mmlu_redux": Question("mmlu_redux-test-1", "a?", CHOICES, 2),
    "m3ke": Question("0", "a?", CHOICES, 3),
}


VARIED = {"mmlu": ("answer", int), "mmlu_redux": ("answer", int), "hellaswag": ("label", str), "medmcqa": ("cop", int)}


def good_rows(name, n=18):
    "Sound rows of a layout with different ids, questions and, where answers are numbers, all answers."
    rows = [dict(ROWS[name][2]) for _ in range(n)]
    column, kind = VARIED.get(name, ("", int))
    for i, r in enumerate(rows):
        r.update({"id": f"g{i}"} if "id" in r else {})
        r.update({"ctx" if "ctx" in r else "question": f"{i}?"})
        r.update({column: kind(i % 4)} if column else {})
    return rows


def hub_rows(name):
    "The row of a layout, and a second one where one is no evidence; and the questions they are."
    _, _, r, q = ROWS[name]
    if name != "medmcqa":
        return [r], [q]
    return [r, r | dict(id="m-2", cop=0)], [q, Question("m-2", q.text, q.choices, 0, q.subject)]


def hub_file(root, name, rows, split=None, config=None):
    "Write rows as a split of a benchmark in a folder laid out like the hub."
    usual, usual_split, *_ = ROWS[name]
    return parquet(
        root / LAYOUTS[name].hub.replace("/", "__") / (config or usual) / f"{split or usual_split}.parquet", rows
    )


def test_every_layout_is_tested():
    assert set(ROWS) | OTHERS | PUBLISHED == set(LAYOUTS)
    assert len(ROWS) + len(OTHERS) + len(PUBLISHED) == len(set(LAYOUTS))


@pytest.mark.parametrize("name", ROWS)
def test_layout_from_a_folder(name, tmp_path):
    rows, want = hub_rows(name)
    hub_file(tmp_path, name, rows)
    assert load_benchmark(name, path=tmp_path) == want


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "csv"])
def test_layout_from_a_file(name, suffix, tmp_path):
    rows, want = hub_rows(name)
    want = [ALONE.get(name, want[0]), *want[1:]]
    if suffix == "parquet":
        path = parquet(tmp_path / "f.parquet", rows)
    elif suffix == "jsonl":
        path = put(tmp_path, "f.jsonl", jsonl(*rows))
    else:
        path = put(
            tmp_path,
            "f.csv",
            csv_text(
                list(rows[0]),
                *([v if isinstance(v, str) else "" if v is None else json.dumps(v) for v in r.values()] for r in rows),
            ),
        )
    assert load_benchmark(name, path=path) == want
    try:  # where a layout's answers are no letters, nothing is made of them; else they are the same
        assert load_benchmark(name, path=path, answer_as="letter") == want and name in ("medqa", "csqa", "m3ke")
    except CoraError as e:
        assert "answer" in str(e) and name not in ("medqa", "csqa", "m3ke")


@pytest.mark.parametrize("name", ROWS)
def test_layout_from_the_hub(name, tmp_path, monkeypatch):
    import datasets

    (config, split, *_), (rows, want), asked = ROWS[name], hub_rows(name), []

    def load_dataset(*args, **kwargs):
        asked.append((args, kwargs))
        return datasets.Dataset.from_list(rows)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(datasets, "get_dataset_config_names", lambda hub: [config])
    assert load_benchmark(name) == want
    assert asked == [((LAYOUTS[name].hub, config), dict(split=split))]


def test_hub_class_labels_are_indices(monkeypatch):
    import datasets

    features = datasets.Features(
        question=datasets.Value("string"),
        subject=datasets.Value("string"),
        choices=datasets.List(datasets.Value("string"))
        if hasattr(datasets, "List")
        else datasets.Sequence(datasets.Value("string")),
        answer=datasets.ClassLabel(names=list("ABCD")),
    )
    monkeypatch.setattr(
        datasets, "load_dataset", lambda *a, **k: datasets.Dataset.from_list([ROWS["mmlu"][2]], features=features)
    )
    assert load_benchmark("mmlu")[0].answer == 2


def test_hub_data_set_that_is_a_program_is_read_from_its_export(monkeypatch):
    import datasets

    asked = []

    def load_dataset(*args, **kwargs):
        asked.append((args, kwargs))
        if args[0] != "parquet":
            raise RuntimeError("Dataset scripts are no longer supported, but found med_qa.py")
        return datasets.Dataset.from_list([ROWS["medqa"][2]])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    assert load_benchmark("medqa") == [ROWS["medqa"][3]]
    assert asked[1] == (
        ("parquet",),
        dict(
            data_files={"test": "hf://datasets/bigbio/med_qa@refs%2Fconvert%2Fparquet/med_qa_en_source/test/*.parquet"},
            split="test",
        ),
    )
    assert not any("trust_remote_code" in kwargs for _, kwargs in asked)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError("Couldn't reach 'cais/mmlu' on the Hub\nand more"),
        ValueError("Unknown split \"tset\". Should be one of ['test', 'dev']."),
        RuntimeError("boom"),
        KeyError(),
    ],
)
def test_hub_trouble_is_told_in_one_line(error, monkeypatch):
    import datasets

    def load_dataset(*args, **kwargs):
        raise error

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(CoraError) as caught:
        load_benchmark("mmlu", split="tset")
    said = str(caught.value)
    assert said.startswith("cais/mmlu: cannot load split 'tset'") and "path=" in said and "\n" not in said
    assert (str(error).splitlines() or ["KeyError"])[0] in said


def test_hub_row_is_refused_by_name_and_place(monkeypatch):
    import datasets

    monkeypatch.setattr(
        datasets,
        "load_dataset",
        lambda *a, **k: datasets.Dataset.from_list(
            [ROWS["mmlu"][2], ROWS["mmlu"][2] | dict(answer=4), *good_rows("mmlu")]
        ),
    )
    with pytest.raises(
        BadRow, match=r"^cais/mmlu, all, test, row 2, id 'mmlu-test-2', answer: .*numbers from 0, .*4 choices, got 4$"
    ):
        load_benchmark("mmlu")


def changed(name, **changes):
    return ROWS[name][2] | changes


def labelled(texts, labels):
    return dict(choices=dict(text=texts, label=labels))


def one_hot(labels):
    return dict(mc1_targets=dict(choices=CHOICES, labels=labels))


@pytest.mark.parametrize(
    "name, changes, field",
    [
        ("medqa", dict(answer_idx="E"), "answer_idx"),  # no label
        ("medqa", dict(options=[dict(key="D", value=v) for v in "xy"], answer="y"), "answer_idx"),  # two
        ("medqa", dict(answer="x"), "answer"),  # not the text of the answer's label
        ("medqa", dict(options=[dict(key="A", value=""), dict(key="D", value="y")]), "options"),
        ("mmlu", dict(answer=-1), "answer"),
        ("mmlu", dict(answer=4), "answer"),
        ("arc", dict(answerKey="A"), "answerKey"),
        ("arc", labelled(CHOICES, list("1123")), "answerKey"),
        ("arc", labelled(CHOICES, list("123")), "choices"),
        ("arc", labelled(CHOICES[:2], list("123")), "choices"),
        ("csqa", labelled(["x", ""], list("AB")), "choices"),
        ("truthfulqa", one_hot([0, 0, 0, 0]), "mc1_targets"),
        ("truthfulqa", one_hot([1, 0, 1, 0]), "mc1_targets"),
        ("truthfulqa", one_hot([0, 1, 0]), "mc1_targets"),
        ("truthfulqa", one_hot([0, 0, True, False]), "mc1_targets"),
        ("hellaswag", dict(label=""), "label"),
        ("hellaswag", dict(label="\u0662"), "label"),  # a digit for Python, and no number
        ("hellaswag", dict(label="-1"), "label"),
        ("medmcqa", dict(cop=-1), "cop"),  # as the hidden answers of its test split
        ("medmcqa", dict(opc=""), "opa to opd"),
        ("m3ke", dict(B=""), "A to D"),
        ("m3ke", dict(answer="AB"), "answer"),
        ("m3ke", dict(answer="E"), "answer"),
        ("medmcqa", dict(cop=4), "cop"),
        ("mmlu_redux", dict(error_type=None), "error_type"),
        ("mmlu_redux", dict(error_type=" "), "error_type"),
    ],
)
def test_labels_and_empty_cells_of_a_layout(name, changes, field, tmp_path):
    "A bad row after a good one is refused by its field, or left out; no other answer is read into it."
    first, *rest = good_rows(name)
    path = put(tmp_path, "f.jsonl", jsonl(first, changed(name, **changes), *rest))
    with pytest.raises(BadRow) as caught:
        load_benchmark(name, path=path)
    assert (caught.value.row, caught.value.field) == (2, field)
    with pytest.warns(UserWarning, match="dropped 1 malformed row"):
        assert len(load_benchmark(name, path=path, on_bad="skip")) == 18


def test_a_choice_that_looks_like_a_mark_makes_no_row_for_each_choice(tmp_path):
    "Two rows of one question: x and nothing in column B are choices."
    rows = [changed("m3ke", id="p"), changed("m3ke", id="q", B="")]
    with pytest.raises(BadRow, match="row 2, id 'q', A to D: choice B must be a non-empty text"):
        load_benchmark("mine", path=put(tmp_path, "f.jsonl", jsonl(*rows)))


@pytest.mark.parametrize(
    "columns",
    [
        ("question", "correct_answer", "distractor1", "distractor2", "checked"),
        ("Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Canary"),
    ],
)
def test_a_column_of_0_and_1_beside_wrong_choices_makes_no_row_for_each_choice(columns, tmp_path):
    "Each question is there twice, with choices of its own; whether somebody checked it is no tick."
    lines = [(f"Which is {i // 2}?", f"right {i}", f"wrong {i}", f"bad {i}", str(i % 2)) for i in range(20)]
    path = put(tmp_path, "f.csv", csv_text(columns, *lines))
    try:
        found = load_benchmark("mine", path=path)
    except CoraError:
        return
    assert [(q.text, q.choices, q.answer) for q in found] == [(line[0], line[1:4], 0) for line in lines]


@pytest.mark.parametrize("other", ["Q", "N", "n", "K", "Z"])
def test_one_letter_far_from_the_choices_is_no_choice(other, tmp_path):
    "A column of the question, or of numbers, with one letter for a name."
    asked, column = ("question", other) if other != "Q" else (other, "topic")
    lines = [[str(i), f"Which is {i}?", "p", "q", "r", "s", "ABCD"[i % 4]] for i in range(20)]
    path = put(tmp_path, "f.csv", csv_text([column, asked, *"ABCD", "answer"], *lines))
    for columns in ({"question": asked}, None):
        found = load_benchmark("mine", path=path, columns=columns)
        assert [(q.text, q.choices, q.answer) for q in found] == [
            (f"Which is {i}?", tuple("pqrs"), i % 4) for i in range(20)
        ]


@pytest.mark.parametrize("column", ["answer", "answer_index"])
def test_numbers_beside_choices_with_letters(column, tmp_path):
    rows = [{"question": f"{i}?", "options": dict(zip("ABCD", "wxyz")), column: i % 4} for i in range(20)]
    path = put(tmp_path, "f.jsonl", jsonl(*rows))
    assert [q.answer for q in load_benchmark("mine", path=path, answer_as="from 0")] == [i % 4 for i in range(20)]
    assert [q.answer for q in load_benchmark("mine", path=path)] == [i % 4 for i in range(20)]


def test_one_row_with_choices_of_another_form_spoils_no_other(tmp_path):
    rows = [dict(question=f"{i}?", options=list("wxyz"), answer="ABCD"[i % 4]) for i in range(20)]
    rows[5]["options"] = dict(zip("ABCD", "wxyz"))
    path = put(tmp_path, "f.jsonl", jsonl(*rows))
    try:
        assert [q.answer for q in load_benchmark("mine", path=path)] == [i % 4 for i in range(20)]
    except BadRow as e:
        assert e.row == 6 and "options" in e.field
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(load_benchmark("mine", path=path, on_bad="skip")) >= 19


@pytest.mark.parametrize("line", ["{}", "[]", "7", "null"])
def test_a_first_line_that_is_no_question_is_a_bad_row(line, tmp_path):
    path = put(tmp_path, "f.jsonl", line + "\n" + jsonl(*REST))
    with pytest.raises(BadRow) as caught:
        load_benchmark("mine", path=path)
    assert caught.value.row == 1 and "Extra data" not in str(caught.value)
    with pytest.warns(UserWarning, match="dropped 1 malformed row"):
        assert len(load_benchmark("mine", path=path, on_bad="skip")) == 18


def test_a_published_layout_with_columns_has_all_choices(tmp_path):
    "MedMCQA has four choices in every row: an empty cell is a lost text."
    rows = [dict(question=f"{i}?", opa="w", opb="x", opc="y", opd="z", cop=i % 4) for i in range(20)]
    rows[6]["opd"] = ""
    with pytest.raises(BadRow, match="row 7, .*opa to opd: choice D must be a non-empty text, got ''"):
        load_benchmark("medmcqa", path=put(tmp_path, "f.jsonl", jsonl(*rows)))


def test_names_with_initials_are_no_labels(tmp_path):
    "Labels are taken off choices that begin with their own, in order, in half of the questions."
    names, labels = ["A. Smith", "J. Miller", "C. Brown"], ["A. Vienna", "B. Graz", "C. Linz"]
    rows = [dict(question=f"{i}?", choices=names, answer_letter="B") for i in range(20)]
    assert load_benchmark("mine", path=put(tmp_path, "f.jsonl", jsonl(*rows)))[0].choices == tuple(names)
    rows[::2] = [row | {"choices": labels} for row in rows[::2]]
    with pytest.warns(UserWarning, match="own labels, such as .A., in 10 of 20 questions; taken off"):
        found = load_benchmark("mine", path=put(tmp_path, "f.jsonl", jsonl(*rows)))
    assert [q.choices for q in found[:2]] == [("Vienna", "Graz", "Linz"), tuple(names)]


@pytest.mark.parametrize("nothing", ["", None])
def test_empty_cells_after_the_last_choice_are_no_choices(nothing, tmp_path):
    rows = [dict(question="a?", A="x", B="y", C=nothing, D=nothing, answer="B")]
    files = [put(tmp_path, "f.jsonl", jsonl(*rows)), parquet(tmp_path / "f.parquet", rows)]
    for path in files:
        assert load_benchmark("mine", path=path)[0].choices == ("x", "y")
    rows[0]["answer"] = "C"
    with pytest.raises(BadRow, match="row 1, id 'mine-1', answer: .*got 'C'"):
        load_benchmark("mine", path=put(tmp_path, "f.jsonl", jsonl(*rows)))
    more = [dict(question=f"{i}?", A="x", B="y", C="z", D="w", answer="ABCD"[i % 4]) for i in range(18)]
    with pytest.raises(BadRow, match="row 1, id 'mine-1', answer: .*letters A to D.*has 2 choices, got 'C'"):
        load_benchmark("mine", path=put(tmp_path, "f.jsonl", jsonl(*rows, *more)))
    with pytest.raises(BadRow, match="2 to 26 choices and has 1"):
        load_benchmark("mine", path=put(tmp_path, "f.jsonl", jsonl(rows[0] | dict(B=nothing))))


def test_missing_columns_of_a_layout(tmp_path):
    rows = [dict(said=r["question"], choices=MARS, answer=r["answer"]) for r in REST]
    path = put(tmp_path, "f.jsonl", jsonl(*rows))
    for name in ("medqa", "mmlu", "hellaswag"):
        with pytest.raises(
            CoraError,
            match="f.jsonl: cannot tell which column holds the question; the file has 'said', 'choices', 'answer'",
        ):
            load_benchmark(name, path=path)
    (tmp_path / "own.py").write_text("from cora_nb.benchmarks.layouts import Layout\nL = Layout(question='stem')\n")
    with pytest.raises(CoraError, match="f.jsonl: the layout .*own.py:L needs 'stem'; the file has 'said'"):
        load_benchmark(f"{tmp_path / 'own.py'}:L", path=path)


def test_a_plain_file_under_a_published_name_is_read_by_its_own_columns(tmp_path):
    path = put(tmp_path, "f.jsonl", jsonl(*REST))
    for name in ("medqa", "mmlu", "hellaswag", "truthfulqa"):
        assert [q.answer for q in load_benchmark(name, path=path)] == [r["answer"] for r in REST]


def test_mmlu_redux_keeps_what_is_ok_and_knows_its_subjects(tmp_path):
    kinds = ["ok", "wrong_groundtruth", "ok", "expert", "no_correct_answer"]
    for subject in ("virology", "anatomy"):
        hub_file(tmp_path, "mmlu_redux", [changed("mmlu_redux", error_type=k) for k in kinds], config=subject)
    found = load_benchmark("mmlu_redux", path=tmp_path)
    assert [q.id for q in found] == [f"mmlu_redux-test-{s}-{n}" for s in ("anatomy", "virology") for n in (1, 3)]
    assert Counter(q.subject for q in found) == dict(anatomy=2, virology=2)
    path = put(tmp_path, "f.jsonl", jsonl(changed("mmlu_redux", error_type="expert")))
    with pytest.raises(CoraError, match="not one row could be used"):
        load_benchmark("mmlu_redux", path=path)


def test_shots(tmp_path):
    hub_file(tmp_path, "mmlu", [ROWS["mmlu"][2]], split="dev")
    want = [Question("mmlu-dev-1", "a?", CHOICES, 2, "anatomy")]
    assert load_shots("mmlu", path=tmp_path) == want
    assert (
        load_shots("mmlu_redux", path=tmp_path) == want
    )  # its questions are from MMLU's test split, so MMLU's dev split is free
    for name, split in [
        ("medqa", "validation"),
        ("arc", "validation"),
        ("csqa", "train"),
        ("hellaswag", "train"),
        ("medmcqa", "train"),
    ]:
        assert split != LAYOUTS[name].split
        rows, want = hub_rows(name)
        hub_file(tmp_path, name, rows, split=split)
        assert [q.answer for q in load_shots(name, path=tmp_path)] == [q.answer for q in want]
    with pytest.raises(CoraError, match="truthfulqa has one split only"):
        load_shots("truthfulqa", path=tmp_path)
    path = put(tmp_path, "f.jsonl", jsonl(row(id=type(None), answer="B")))
    assert load_shots("mine", path=path)[0].id == "mine-shots-1"
    for options in (dict(), dict(path=tmp_path)):
        with pytest.raises(CoraError, match="'mine' is not a known benchmark"):
            load_shots("mine", **options)


# ---------------------------------------------------------------- the real ones


@needs_hub
@pytest.mark.parametrize(
    "name, n, choices, subjects, repeats, warned",
    [
        ("medqa", 1273, {5}, 0, 0, ["space in 2 of 1273 questions (medqa-test-555, medqa-test-774)"]),
        (
            "mmlu",
            14042,
            {4},
            57,
            9,
            [
                "191 of 14042 questions have a choice like",
                "refer to other choices in 467 of 14042",
                "stands twice in 4 of 14042",
                "space in 3 of 14042",
                "('#NAME?': 1) in 1 of 14042 questions (mmlu-test-12794)",
                "105 questions repeat another",
            ],
        ),
        ("arc", 1172, {3, 4, 5}, 0, 0, []),
        ("truthfulqa", 817, set(range(2, 14)), 0, 1, ["THE RIGHT CHOICE IS A IN 817 OF 817"]),
        ("csqa", 1221, {5}, 0, 24, ["stands twice in 6 of 1221"]),
    ],
)
def test_real_benchmark_loads_whole(name, n, choices, subjects, repeats, warned):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        questions = load_benchmark(name, path=HUB)
    assert len(said) == len(warned) and all(words in str(w.message) for words, w in zip(warned, said))
    assert len(questions) == len({q.id for q in questions}) == n
    assert {q.n_choices for q in questions} == choices
    assert len({q.subject for q in questions} - {None}) == subjects
    assert sum(len(set(q.choices)) < q.n_choices for q in questions) == repeats


@needs_hub
def test_real_traps():
    arc = load_benchmark("arc", path=HUB)
    import pyarrow.parquet as pq

    raw = {r["id"]: r for r in pq.read_table(HUB / "allenai__ai2_arc" / "ARC-Challenge" / "test.parquet").to_pylist()}
    digits = [q for q in arc if raw[q.id]["answerKey"].isdigit()]
    assert len(digits) == 22 and all(q.answer == int(raw[q.id]["answerKey"]) - 1 for q in digits)
    assert sum(q.n_choices == 3 for q in arc) == 4
    assert all(q.answer == 0 for q in load_benchmark("truthfulqa", path=HUB))
    assert sum("None" in q.choices for q in load_benchmark("mmlu", path=HUB)) == 10
    file = HUB / "bigbio__med_qa" / "med_qa_en_source" / "test.parquet"
    assert load_benchmark("medqa", path=file) == load_benchmark("medqa", path=HUB)  # a file or its folder, the same ids


@needs_hub
def test_real_shots():
    assert len(load_shots("mmlu", path=HUB)) == 285
    assert len(load_shots("arc", path=HUB)) == 299


# ---------------------------------------------------------------- the fingerprint


def test_hash_sees_every_field():
    q = Question("a", "b", ("c", "d"), 0, "e")
    others = [
        Question("x", "b", ("c", "d"), 0, "e"),
        Question("a", "x", ("c", "d"), 0, "e"),
        Question("a", "b", ("x", "d"), 0, "e"),
        Question("a", "b", ("c", "d", "x"), 0, "e"),
        Question("a", "b", ("c", "d"), 1, "e"),
        Question("a", "b", ("c", "d"), 0, "x"),
        Question("a", "b", ("c", "d"), 0),
        Question("a", "b", ("cd", "x"), 0, "e"),
    ]
    assert len({benchmark_hash([o]) for o in [q, *others]}) == 9
    assert (
        len(
            {
                benchmark_hash([]),
                benchmark_hash([q]),
                benchmark_hash([q, q]),
                benchmark_hash([q, others[0]]),
                benchmark_hash([others[0], q]),
            }
        )
        == 5
    )


def test_hash_is_the_same_everywhere():
    assert benchmark_hash(load_benchmark("math")) == "5b1620475a5b5e13069fbe025277fbcf02d59f50b9cba111638d431142efb34c"
    imports = "from cora_nb.benchmarks.arithmetic import *; from cora_nb.benchmarks.load import *"
    code = f"{imports}; print(benchmark_hash(math_benchmark(300)))"
    for hashseed in ("0", "1"):
        said = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | dict(PYTHONHASHSEED=hashseed),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert said.strip() == benchmark_hash(load_benchmark("math"))


# ---------------------------------------------------------------- MATH


def solve(q):
    "The right answer, worked out from the question's text."
    _, _, left, sign, right = q.text.rstrip("?").split()
    left, right = int(left), int(right)
    return left, right, {"+": left + right, "-": left - right, "*": left * right, "/": left / right}[sign]


@pytest.mark.parametrize(
    "n, largest, n_choices",
    [(300, 100, 4), (1134, 100, 4), (2000, 1000, 2), (34, 10, 5), (200, 50, 26), (400, 1_000_000, 4)],
)
def test_math_questions_are_right(n, largest, n_choices):
    questions = math_benchmark(n, seed=3, largest=largest, n_choices=n_choices)
    assert len(questions) == len({q.text for q in questions}) == len({q.id for q in questions}) == n
    for q in questions:
        left, right, result = solve(q)
        numbers = [int(c) for c in q.choices]
        assert numbers[q.answer] == result and len(set(numbers)) == n_choices == len(numbers)
        assert all(0 <= v <= largest for v in (left, right, result)) and min(numbers) >= 0
        if n_choices <= largest:
            assert max(numbers) <= largest
    sizes = Counter(q.subject for q in questions)
    assert set(sizes) == set(OPERATIONS) and max(sizes.values()) - min(sizes.values()) <= 1


def test_bundled_math_is_what_the_function_makes():
    assert load_benchmark("math") == math_benchmark(300, seed=0) == math_benchmark()
    assert data_path("benchmarks", "math.jsonl").read_text(encoding="utf-8").count("\n") == 300


def test_math_gives_nothing_away():
    "Neither the answer's position nor its rank among the numbers helps a respondent that cannot calculate."
    questions = math_benchmark(4000, largest=1000)
    positions = Counter(q.answer for q in questions)
    ranks = Counter(sorted(map(int, q.choices)).index(int(q.choices[q.answer])) for q in questions)
    assert all(abs(positions[i] - 1000) < 5 * 27.4 for i in range(4))
    assert all(abs(ranks[i] - 1000) < 5 * 27.4 for i in range(4))
    assert all(50 <= n <= 100 for n in Counter(q.answer for q in math_benchmark(300)).values())


@pytest.mark.parametrize("largest", [4, 5, 10, 30])
def test_math_capacity_is_exact(largest):
    most = _math_capacity(largest)
    assert len({q.text for q in math_benchmark(most, largest=largest)}) == most
    with pytest.raises(CoraError, match=f"n must be at most {most} for largest={largest}"):
        math_benchmark(most + 1, largest=largest)
    pairs = {kind: {_draw_pair(kind, largest, "t", i) for i in range(5000)} for kind in ("addition", "division")}
    assert pairs["division"] == {(x, y) for x in range(2, largest) for y in range(2, largest) if x * y <= largest}
    assert pairs["addition"] <= {(x, y) for x in range(1, largest) for y in range(1, largest) if x + y <= largest}


@given(st.sampled_from(OPERATIONS), st.integers(2, 99), st.integers(2, 99), st.integers(1, 25), st.integers(0, 10**6))
def test_distractors_are_always_enough_and_never_right(operation, x, y, n, key):
    left, _, right, result = pose(operation, x, y)
    largest = max(left, right, result)
    wrong = _wrong_answers(result, slips(left, right, result), n, largest, key)
    assert len(wrong) == len(set(wrong)) == n and result not in wrong and min(wrong) >= 0
    if n <= largest:
        assert max(wrong) <= largest


def test_math_shots():
    shots = load_shots("math")
    assert len(shots) >= 25 and not {q.text for q in shots} & {q.text for q in load_benchmark("math")}
    assert not {q.id for q in shots} & {q.id for q in load_benchmark("math")}


# ---------------------------------------------------------------- the rest


def test_writing_wants_jsonl(tmp_path):
    with pytest.raises(CoraError, match="ends in .jsonl"):
        write_benchmark(math_benchmark(1), tmp_path / "f.csv")


@pytest.mark.parametrize(
    "theirs",
    ['{"custom_id": "1", "body": {}}\n', "", "notes\n", jsonl(GOOD), '{"id": "a"}\n' + jsonl(row(subject=None))],
    ids=["a batch", "empty", "a text", "further columns", "half ours"],
)
def test_writing_leaves_what_is_not_ours_alone(tmp_path, theirs):
    path = put(tmp_path, "f.jsonl", theirs)
    with pytest.raises(CoraError, match="f.jsonl: there is another file of this name already; it is left alone"):
        write_benchmark(math_benchmark(2), path)
    assert path.read_text() == theirs and [p.name for p in tmp_path.iterdir()] == ["f.jsonl"]


def test_writing_replaces_a_benchmark_of_ours(tmp_path):
    path = write_benchmark(math_benchmark(5), tmp_path / "f.jsonl")
    assert load_benchmark("mine", path=write_benchmark(math_benchmark(2), path)) == math_benchmark(2)
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(CoraError, match="folder.jsonl: there is another file"):
        write_benchmark(math_benchmark(2), tmp_path / "folder.jsonl")
    with pytest.raises(CoraError, match="cannot be written"):
        write_benchmark(math_benchmark(2), tmp_path / "nowhere" / "f.jsonl")


def test_import_is_light():
    heavy = ("datasets", "pyarrow", "pandas", "torch", "matplotlib", "transformers", "openai")
    code = f"import sys, cora_nb.benchmarks.load; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
