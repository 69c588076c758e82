"""Benchmark files of every layout and format with one field damaged, and files damaged as a whole."""

import csv
import io
import json
import os
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from robustness.cases import Case

from cora_nb.benchmarks.load import load_benchmark

GONE = type("Gone", (), {"__repr__": lambda self: "gone"})()  # the field is not there
HALF = "half \ud800 a character"
NAN, INF = float("nan"), float("inf")

NO_TEXT = {
    "null": None,
    "empty": "",
    "blank": " ",
    "line ends": "\n\t ",
    "a number": 7,
    "a fraction": 1.5,
    "true": True,
    "false": False,
    "a list": ["a"],
    "an empty list": [],
    "an object": {"a": 1},
    "NaN": NAN,
    "half a character": HALF,
    "gone": GONE,
}
NO_LABEL_TEXT = {k: v for k, v in NO_TEXT.items() if k not in ("null", "empty", "blank", "line ends", "gone", "NaN")}
NO_ID = {k: v for k, v in NO_TEXT.items() if k not in ("a number", "gone", "blank", "line ends")}  # fine ids
NO_LIST = {
    "null": None,
    "empty": [],
    "one": ["Mars"],
    "27": [f"c{i}" for i in range(27)],
    "a text": "Mars, Venus",
    "half a list": '["Mars", "Ven',
    "empty text": "",
    "a number": 7,
    "true": True,
    "NaN": NAN,
    "an object": {"A": "Mars", "B": "Venus", "C": "Jupiter"},
    "an empty object": {},
    "first null": [None, "Jupiter", "Venus"],
    "last null": ["Mars", "Jupiter", None],
    "one empty": ["Mars", "Jupiter", ""],
    "one blank": ["Mars", "Jupiter", " \n"],
    "one a number": ["Mars", "Jupiter", 7],
    "one a fraction": ["Mars", "Jupiter", 1.5],
    "one true": ["Mars", "Jupiter", True],
    "one a list": ["Mars", "Jupiter", ["Venus"]],
    "one an object": ["Mars", "Jupiter", {"a": "Venus"}],
    "one half a character": ["Mars", "Jupiter", HALF],
    "a list in a list": [["Mars", "Jupiter", "Venus"]],
    "gone": GONE,
}
NO_INDEX = {
    "null": None,
    "negative": -1,
    "one too many": 3,
    "far away": 99,
    "10**30": 10**30,
    "a fraction": 1.5,
    "a whole fraction": 1.0,
    "NaN": NAN,
    "infinite": INF,
    "true": True,
    "false": False,
    "empty": "",
    "blank": " ",
    "a letter": "B",
    "a word": "one",
    "a list": [1],
    "an empty list": [],
    "an object": {"index": 1},
    "gone": GONE,
}
NO_LETTER = {
    "null": None,
    "empty": "",
    "blank": " ",
    "small": "b",
    "one too many": "D",
    "far away": "Z",
    "two": "AB",
    "with a full stop": "B.",
    "in brackets": "(B)",
    "with a space": " B",
    "a digit": "1",
    "a number": 1,
    "a fraction": 1.5,
    "true": True,
    "a list": ["B"],
    "an object": {"letter": "B"},
    "a choice's text": "Jupiter",
    "Greek": "\u0392",
    "wide": "\uff22",
    "half a character": "\ud800",
    "gone": GONE,
}
NO_ANSWER = {
    "null": None,
    "empty": "",
    "unknown": "Saturn",
    "small": "jupiter",
    "with a space": "Jupiter ",
    "a letter": "B",
    "a number": 1,
    "true": True,
    "a list": ["Jupiter"],
    "an object": {"text": "Jupiter"},
    "half a character": "\ud800",
    "gone": GONE,
}
NO_LABELS = {
    "null": None,
    "empty": [],
    "short": ["A", "B"],
    "long": ["A", "B", "C", "D"],
    "the answer twice": ["A", "B", "B"],
    "others": ["X", "Y", "Z"],
    "a text": "ABC",
    "an object": {"A": 1},
    "a number": 3,
    "nulls": [None, None, None],
    "numbers": [1, 2, 3],
    "lists": [["A"], ["B"], ["C"]],
    "gone": GONE,
}
NO_ONE_HOT = {
    "null": None,
    "empty": [],
    "short": [0, 1],
    "long": [0, 1, 0, 0],
    "no one": [0, 0, 0],
    "two": [1, 1, 0],
    "2": [0, 2, 0],
    "negative": [0, -1, 0],
    "texts": ["0", "1", "0"],
    "words": ["no", "yes", "no"],
    "fractions": [0.0, 1.0, 0.0],
    "halves": [0.5, 0.5, 0.0],
    "truths": [False, True, False],
    "nulls": [0, None, 0],
    "NaN": [0.0, NAN, 1.0],
    "lists": [[0], [1], [0]],
    "a text": "010",
    "a number": 1,
    "an object": {"B": 1},
    "gone": GONE,
}
NO_OPTIONS = {
    "null": None,
    "empty": [],
    "one": [{"key": "A", "value": "Mars"}],
    "texts": ["Mars", "Jupiter", "Venus"],
    "a text": "Mars",
    "a number": 7,
    "an object": {"A": "Mars"},
    "without keys": [{"value": "Mars"}, {"value": "Jupiter"}, {"value": "Venus"}],
    "without values": [{"key": "A"}, {"key": "B"}, {"key": "C"}],
    "keys null": [{"key": None, "value": v} for v in ("Mars", "Jupiter", "Venus")],
    "one key": [{"key": "B", "value": v} for v in ("Mars", "Jupiter", "Venus")],
    "one empty": [{"key": k, "value": v} for k, v in zip("ABC", ("", "Jupiter", "Venus"))],
    "one null": [{"key": k, "value": v} for k, v in zip("ABC", ("Mars", "Jupiter", None))],
    "one a number": [{"key": k, "value": v} for k, v in zip("ABC", (7, "Jupiter", "Venus"))],
    "one a list": [{"key": k, "value": v} for k, v in zip("ABC", (["Mars"], "Jupiter", "Venus"))],
    "one half a character": [{"key": k, "value": v} for k, v in zip("ABC", (HALF, "Jupiter", "Venus"))],
    "lists": [["A", "Mars"], ["B", "Jupiter"]],
    "gone": GONE,
}
NO_CHOICE = {k: v for k, v in NO_TEXT.items()}
NO_MAPPING = {
    "null": None,
    "empty": {},
    "one": {"A": "Mars"},
    "from B": {"B": "Mars", "C": "Jupiter"},
    "small letters": {"a": "Mars", "b": "Jupiter"},
    "digits": {"0": "Mars", "1": "Jupiter"},
    "a gap": {"A": "Mars", "C": "Jupiter"},
    "backwards": {"B": "Jupiter", "A": "Mars"},
    "a list": ["Mars", "Jupiter"],
    "a text": "Mars",
    "code": "__import__('os').getcwd()",
    "half": "{'A': 'Mars', ",
    "deep": "[" * 5000,
    "a number": 7,
    "one null": {"A": None, "B": "Jupiter", "C": "Venus"},
    "one empty": {"A": "", "B": "Jupiter", "C": "Venus"},
    "one a number": {"A": 7, "B": "Jupiter", "C": "Venus"},
    "one a list": {"A": ["Mars"], "B": "Jupiter", "C": "Venus"},
    "the answer twice": {"A": "Jupiter", "B": "Jupiter", "C": "Venus"},
    "gone": GONE,
}

MARS = ["Mars", "Jupiter", "Venus"]
# layout: (row, {column, or path within one: damages})
LAYOUTS: dict[str, tuple[dict, dict[str, dict]]] = {
    "plain, index": (
        {"id": "q1", "question": "Which is largest?", "choices": MARS, "answer": 1, "subject": "sky"},
        {"id": NO_ID, "question": NO_TEXT, "choices": NO_LIST, "answer": NO_INDEX, "subject": NO_LABEL_TEXT},
    ),
    "plain, letters": (
        {"id": "q1", "question": "Which is largest?", "A": "Mars", "B": "Jupiter", "C": "Venus", "answer": "B"},
        {"question": NO_TEXT, "A": NO_CHOICE, "B": NO_CHOICE, "answer": NO_LETTER},
    ),
    "plain, text": (
        {"id": "q1", "question": "Which is largest?", "choices": MARS, "answer_text": "Jupiter"},
        {"answer_text": NO_ANSWER, "choices": NO_LIST},
    ),
    "plain, answer_index": (
        {"question": "Which is largest?", "A": "Mars", "B": "Jupiter", "C": "Venus", "answer_index": 1},
        {"answer_index": NO_INDEX, "C": {k: v for k, v in NO_CHOICE.items() if k not in ("null", "empty", "gone")}},
    ),
    "mmlu": (
        {"question": "Which is largest?", "subject": "sky", "choices": MARS, "answer": 1},
        {"question": NO_TEXT, "choices": NO_LIST, "answer": NO_INDEX, "subject": NO_LABEL_TEXT},
    ),
    "mmlu_redux": (
        {"question": "Which is largest?", "choices": MARS, "answer": 1, "error_type": "ok"},
        {"question": NO_TEXT, "choices": NO_LIST, "answer": NO_INDEX}
        | {"error_type": {k: v for k, v in NO_TEXT.items() if not isinstance(v, str)}},
    ),
    "medqa": (
        {
            "question": "Which is largest?",
            "options": [{"key": k, "value": v} for k, v in zip("ABC", MARS)],
            "answer_idx": "B",
            "answer": "Jupiter",
        },
        {"question": NO_TEXT, "options": NO_OPTIONS, "answer_idx": NO_LETTER, "answer": NO_ANSWER},
    ),
    "arc": (
        {"id": "q1", "question": "Which?", "choices": {"text": MARS, "label": ["A", "B", "C"]}, "answerKey": "B"},
        {"id": NO_ID, "question": NO_TEXT, "choices": {k: v for k, v in NO_LIST.items() if k != "empty object"}}
        | {"choices.text": NO_LIST, "choices.label": NO_LABELS, "answerKey": NO_LETTER},
    ),
    "csqa": (
        {"id": "q1", "question": "Which?", "choices": {"text": MARS, "label": ["A", "B", "C"]}, "answerKey": "B"},
        {"choices.text": NO_LIST, "choices.label": NO_LABELS, "answerKey": NO_LETTER},
    ),
    "truthfulqa": (
        {"question": "Which?", "mc1_targets": {"choices": MARS, "labels": [0, 1, 0]}},
        {"question": NO_TEXT, "mc1_targets": {k: v for k, v in NO_LIST.items()}}
        | {"mc1_targets.choices": NO_LIST, "mc1_targets.labels": NO_ONE_HOT},
    ),
    "hellaswag": (
        {"ctx": "She looks up and sees", "endings": MARS, "label": "1", "activity_label": "sky"},
        {"ctx": NO_TEXT, "endings": NO_LIST, "label": NO_INDEX, "activity_label": NO_LABEL_TEXT},
    ),
    "medmcqa": (
        {"id": "q1", "question": "Which?", "opa": "Mars", "opb": "Jupiter", "opc": "Venus", "opd": "Io", "cop": 1},
        {"id": NO_ID, "question": NO_TEXT, "opa": NO_CHOICE, "opd": NO_CHOICE}
        | {"cop": {k: v for k, v in NO_INDEX.items() if k != "one too many"} | {"one too many": 4}},
    ),
    "CoRA's authors": (
        {"question": "Which?", "options": {"A": "Mars", "B": "Jupiter", "C": "Venus"}, "answer": "Jupiter"},
        {"question": NO_TEXT, "options": NO_MAPPING, "answer": NO_ANSWER},
    ),
    "Li et al.": (
        {"Question": "Which?", "A": "Mars", "B": "Jupiter", "C": "Venus", "True_Option": "B", "True Answer": "Jupiter"},
        {"Question": NO_TEXT, "True_Option": NO_LETTER, "A": NO_CHOICE}
        | {"True Answer": {k: v for k, v in NO_ANSWER.items() if k not in ("gone",)}},
    ),
}
NAMES = {"plain, index": "mine", "plain, letters": "mine", "plain, text": "mine", "plain, answer_index": "mine"}
NAMES |= {"CoRA's authors": "mine", "Li et al.": "mine"}
SHOWN = {  # what a message calls a column, where it is not the column's name
    ("plain, letters", "A"): "A to C|, A:",
    ("plain, letters", "B"): "A to C|, B:",
    ("plain, answer_index", "C"): "A to C|, C:",
    ("medmcqa", "opa"): "opa",
    ("medmcqa", "opd"): "opd",
    ("Li et al.", "A"): "A to |, A:",
    ("medqa", "options"): "options|answer_idx",  # where the keys are damaged, the answer is none of them
    ("arc", "choices"): "choices|answerKey",
    ("csqa", "choices"): "choices|answerKey",
    ("CoRA's authors", "options"): "options|answer",
}
HUB = {
    "mmlu": "cais__mmlu/all/test",
    "mmlu_redux": "edinburgh-dawg__mmlu-redux-2.0/anatomy/test",
    "medqa": "bigbio__med_qa/med_qa_en_source/test",
    "arc": "allenai__ai2_arc/ARC-Challenge/test",
    "csqa": "tau__commonsense_qa/default/validation",
    "truthfulqa": "truthfulqa__truthful_qa/multiple_choice/validation",
    "hellaswag": "Rowan__hellaswag/default/validation",
    "medmcqa": "openlifescienceai__medmcqa/default/validation",
}


def sound(row: dict, n: int) -> dict:
    "The n-th sound row."
    row = deepcopy(row)
    return row | {"id": f"q{n}"} if "id" in row else row


ROWS = 20  # of a file: enough to see how answers count


def varied(layout: str, n: int) -> dict:
    "The n-th sound row, with a question and a right choice of its own."
    row, i = sound(LAYOUTS[layout][0], n), n % 3
    asked = "ctx" if "ctx" in row else "Question" if "Question" in row else "question"
    row[asked] = f"{row[asked]} {n}"
    if "mc1_targets" in row:
        row["mc1_targets"]["labels"] = [int(i == k) for k in range(3)]
    for column in ("answer", "answer_text", "answer_index", "answer_idx", "answerKey", "label", "cop", "True_Option"):
        if column in row:
            old = row[column]
            row[column] = MARS[i] if old == "Jupiter" else i if old == 1 else str(i) if old == "1" else "ABC"[i]
    return row | ({"True Answer": MARS[i]} if "True Answer" in row else {})


# ---------------------------------------------------------------- what a row says by itself, by the simplest rules


def choices_said(layout: str, row: dict) -> tuple[list, list | None] | None:
    "The choices of a row and their labels; None: it has none that can be asked."
    names, labels = {"plain, letters": "ABC", "plain, answer_index": "ABC", "Li et al.": "ABC"}, None
    if columns := ("opa", "opb", "opc", "opd") if layout == "medmcqa" else names.get(layout):
        texts = [row.get(c) for c in columns]
        while layout != "medmcqa" and texts and texts[-1] in (None, ""):  # MedMCQA always has four
            texts.pop()
    else:
        column = next(c for c in ("choices", "options", "endings", "mc1_targets") if c in LAYOUTS[layout][0])
        cell = row.get(column)
        if isinstance(cell, str):
            try:
                cell = json.loads(cell)
            except (ValueError, RecursionError):
                return None
        if isinstance(cell, dict) and isinstance(cell.get("text", cell.get("choices")), list):
            texts, labels = cell.get("text", cell.get("choices")), cell.get("label", cell.get("labels"))
            if not isinstance(labels, list) or len(labels) != len(texts):
                return None
        elif isinstance(cell, dict):
            texts, labels = list(cell.values()), list(cell)
        elif isinstance(cell, list) and cell and all(isinstance(c, dict) and {*c} == {"key", "value"} for c in cell):
            texts, labels = [c["value"] for c in cell], [c["key"] for c in cell]
        else:
            texts = cell
    fine = isinstance(texts, list) and 2 <= len(texts) <= 26
    if not fine or not all(isinstance(t, str) and t.strip() and "\ud800" not in t for t in texts):
        return None
    return texts, labels


def bare(value: object) -> str:
    "A value without the list, the spaces and the signs around it, in small letters."
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return ""
    return unicodedata.normalize("NFKC", str(value)).strip(" \t\n()[].:'\"").lower()


def answer_said(kind: str, value: object, texts: list, labels: list | None) -> int | None:
    "Which choice a value names, as a value of this kind."
    said = bare(value)
    if kind == "text":
        found = [i for i, t in enumerate(texts) if t.strip().lower() == said]
    elif kind == "label" and labels is not None:
        found = [i for i, label in enumerate(labels) if said and bare(label) == said]
    elif kind in ("letter", "label"):
        found = ["abcdefghijklmnopqrstuvwxyz".index(said)] if len(said) == 1 and "a" <= said <= "z" else []
    elif kind == "one-hot":
        whole = labels is not None and all(type(label) is int for label in labels)
        found = [labels.index(1)] if whole and sorted(labels) == [0] * (len(labels) - 1) + [1] else []
    else:
        digits = said.removesuffix(".0")
        found = [int(digits)] if digits.isascii() and digits.isdigit() else []
    return found[0] if len(found) == 1 and 0 <= found[0] < len(texts) else None


KINDS = {  # layout -> {column of an answer: what it holds}
    "plain, index": {"answer": "index"},
    "plain, letters": {"answer": "letter"},
    "plain, text": {"answer_text": "text"},
    "plain, answer_index": {"answer_index": "index"},
    "mmlu": {"answer": "index"},
    "mmlu_redux": {"answer": "index"},
    "medqa": {"answer_idx": "label", "answer": "text"},
    "arc": {"answerKey": "label"},
    "csqa": {"answerKey": "label"},
    "truthfulqa": {"mc1_targets": "one-hot"},
    "hellaswag": {"label": "index"},
    "medmcqa": {"cop": "index"},
    "CoRA's authors": {"answer": "text"},
    "Li et al.": {"True_Option": "letter", "True Answer": "text"},
}


def is_nothing(value: object) -> bool:
    return value is None or isinstance(value, str) and not value.strip()


def question_said(layout: str, row: dict, alike: bool) -> tuple | None:
    """The question that a row is: text, choices, index, id, subject. None: it must be refused.

    Where all rows are damaged alike, an answer may be of any kind but a number, which then may count from 0 or 1, and
    a column that names no choice may be left aside if another one does.
    """
    text = next((row[c] for c in ("question", "Question", "ctx") if c in row), None)
    subject = row.get("subject", row.get("activity_label"))
    found, id = choices_said(layout, row), row.get("id")
    if not isinstance(text, str) or not text.strip() or "\ud800" in text or found is None:
        return None
    if "id" in LAYOUTS[layout][0] and (isinstance(id, bool) or not isinstance(id, str | int) or "\ud800" in str(id)):
        return None
    if not (subject is None or isinstance(subject, str) and "\ud800" not in subject):
        return None
    if layout == "mmlu_redux" and row.get("error_type") != "ok":
        return None
    texts, labels = found
    said = []
    for column, kind in KINDS[layout].items():
        value = row.get(column)
        i = answer_said(kind, value, texts, labels)
        if i is None and alike:
            others = (answer_said(k, value, texts, labels) for k in ("label", "letter", "text"))
            i = next((i for i in others if i is not None), None)
        if i is None and not is_nothing(value) and not (alike and isinstance(value, bool | float | dict | int)):
            return None
        said += [i] * (i is not None)
    if len(set(said)) != 1:
        return None
    return text, tuple(texts), said[0], None if id is None else str(id), subject or None


def as_said(layout: str, kind: str, rows: list[dict], place: int) -> Callable[[object], bool | str]:
    "Whether questions are what each row says."
    subject = {"subject": "anatomy"} if (layout, kind) == ("mmlu_redux", "hub") else {}  # the folder says it

    def accept(found) -> bool | str:
        want = [question_said(layout, row | subject, alike=place == 1) for row in rows]
        if None in want or len(found) != len(want):
            return False
        same = all(
            (q.text, q.choices, q.answer) == w[:3] and w[3] in (None, q.id) and w[4] == q.subject
            for q, w in zip(found, want)
        )
        return same and "read as the row says"

    return accept


def damaged(row: dict, path: str, value: Any) -> dict:
    "The row with another value at a path such as choices.text."
    row = deepcopy(row)
    *above, last = path.split(".")
    place = row
    for name in above:
        place = place[name]
    if value is GONE:
        del place[last]
    else:
        place[last] = value
    return row


# ---------------------------------------------------------------- formats: (rows, file without suffix) -> file


def write_jsonl(rows: list[dict], file: Path) -> Path:
    path = file.with_name(file.name + ".jsonl")
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    return path


def csv_value(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def write_csv(rows: list[dict], file: Path) -> Path:
    path, columns = file.with_name(file.name + ".csv"), list(dict.fromkeys(c for r in rows for c in r))
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    writer.writerows([csv_value(r[c]) for c in columns if c in r] for r in rows)
    path.write_text(out.getvalue(), "utf-8", newline="")
    return path


def write_parquet(rows: list[dict], file: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = file.with_name(file.name + ".parquet")
    columns = list(dict.fromkeys(c for r in rows for c in r))
    pq.write_table(pa.table({c: [r.get(c) for r in rows] for c in columns}), path)
    return path


def write_xlsx(rows: list[dict], file: Path) -> Path:
    from openpyxl import Workbook

    path, columns = file.with_name(file.name + ".xlsx"), list(dict.fromkeys(c for r in rows for c in r))
    book = Workbook()
    book.active.append(columns)
    for r in rows:
        values = [r.get(c) for c in columns]
        book.active.append([v if isinstance(v, (str, int, float, bool, type(None))) else json.dumps(v) for v in values])
    book.save(path)
    return path


def fits(kind: str, value: Any, row: dict, path: str) -> bool:
    "Whether this damage exists in a format: what CSV and Excel write as a sound text is none."
    text = isinstance(value, str)
    if kind in ("csv", "xlsx"):
        if text and "\ud800" in value:
            return False  # no UTF-8
        if "." in path:
            return True
        was = row[path]
        if isinstance(was, str):
            return text or value is None or value is GONE and kind == "csv"
        if kind == "xlsx" and isinstance(value, float):
            return value == 1.5  # a sheet knows no NaN, and 1.0 is its 1
    return True


def parquet_holds(rows: list[dict]) -> bool:
    "Whether a Parquet file gives these rows back as they are."
    import pyarrow as pa

    try:
        for c in dict.fromkeys(c for r in rows for c in r):
            values = [r.get(c) for r in rows]
            if repr(pa.array(values).to_pylist()) != repr(values):
                return False
            write_parquet([{c: v} for v in values], Path(tempfile.gettempdir()) / f"holds-{os.getpid()}").unlink()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


WRITERS = {"jsonl": write_jsonl, "csv": write_csv, "parquet": write_parquet, "xlsx": write_xlsx}


def one_field(layout: str, kind: str, path: str, name: str, value: Any) -> Case | None:
    "One field of one row of a file."
    row, _ = LAYOUTS[layout]
    if not fits(kind, value, row, path):
        return None
    bad = damaged(row, path, value)
    own_id = {"id": "q2"} if "id" in row and path != "id" else {}
    rows, place = [varied(layout, n) for n in range(1, ROWS + 1)], 2
    rows[1] = bad | own_id
    if kind in ("parquet", "hub"):
        if not parquet_holds(rows):  # a column of a Parquet file has one type: else all rows are damaged alike
            own_ids = [{"id": f"q{n}"} if "id" in row and path != "id" else {} for n in range(1, ROWS + 1)]
            rows, place = [damaged(varied(layout, n), path, value) | own_ids[n - 1] for n in range(1, ROWS + 1)], 1
            if not parquet_holds(rows):
                return None  # no Parquet file is like that
    column = path.split(".")[0]
    shown = SHOWN.get((layout, column), column)
    words = (f"row {place}", shown) if value is not GONE or "." in path else (column,)
    if place == 1:  # any row that is no question may be named
        bad_rows = [n for n, r in enumerate(rows, 1) if question_said(layout, r, alike=True) is None]
        bad_rows = bad_rows or range(1, ROWS + 1)
        words = ("|".join(f"row {n}{sign}" for n in bad_rows for sign in ",:"), *words[1:])
        if path == "question" and isinstance(value, dict):
            words = ("cannot tell which column holds the question", "question.a")  # an object in every row has members
    if kind == "csv" and value is GONE and "." not in path:
        words = ("row 2", "cells")
    if kind in ("parquet", "hub") and value is GONE and "." not in path and place == 1:
        words = (column,)

    def read(folder: Path) -> object:
        if kind == "hub":
            place = folder / f"{HUB[layout]}"
            place.parent.mkdir(parents=True)
            write_parquet(rows, place)
            return load_benchmark(layout, path=folder)
        return load_benchmark(NAMES.get(layout, layout), path=WRITERS[kind](rows, folder / "file"))

    return Case(f"benchmark, {layout}, {kind}", f"{path}: {name}", read, words, as_said(layout, kind, rows, place))


def field_cases() -> Iterator[Case]:
    "Every field of every layout in every format, damaged in every way that the format can hold."
    for layout, (row, fields) in LAYOUTS.items():
        plain = layout not in HUB
        for kind in ("jsonl", "csv", "parquet", *(["xlsx"] if plain else ["hub"])):
            for path, damages in fields.items():
                for name, value in damages.items():
                    if case := one_field(layout, kind, path, name, value):
                        yield case


# ---------------------------------------------------------------- files as a whole


def whole(kind: str) -> list[dict]:
    row = LAYOUTS["plain, letters"][0]
    return [sound(row, n) for n in range(1, 13)]


def on_bytes(kind: str, change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    def read(folder):
        path = WRITERS[kind](whole(kind), folder / "file")
        path.write_bytes(change(path.read_bytes()))
        return load_benchmark("mine", path=path)

    return read


def _folder(folder, kind):
    (folder / f"file.{kind}").mkdir()


def _nowhere(folder, kind):
    (folder / f"file.{kind}").symlink_to("/nowhere/at/all")


def _loop(folder, kind):
    (folder / f"file.{kind}").symlink_to(folder / f"file.{kind}")


def by_place(kind: str, make: Callable[[Path, str], None]) -> Callable[[Path], object]:
    def read(folder):
        make(folder, kind)
        return load_benchmark("mine", path=folder / f"file.{kind}")

    return read


def equal(found: object, n_rows: int = 12) -> bool:
    "The sound questions, all of them, or the first."
    said = [(q.id, q.text, q.choices, q.answer) for q in found]
    return said == [(f"q{n}", "Which is largest?", tuple(MARS), 1) for n in range(1, n_rows + 1)]


def equal_umlaut(found: object) -> bool:
    "The sound questions, with a letter of Latin-1 in a choice."
    return all(q.choices == ("Mars", "J\xfcpiter", "Venus") and q.answer == 1 for q in found) and len(found) == 12


def file_cases() -> Iterator[Case]:
    "Files that are damaged as a whole."
    signs = {"jsonl": b'{"', "csv": b'"id', "parquet": b"PAR1", "xlsx": b"PK\3\4"}
    for kind in WRITERS:
        area, file = f"benchmark file, {kind}", f"file.{kind}"

        def case(name, read, accept=None, area=area, file=file):
            return Case(area, name, read, (file,), accept)

        yield case("empty", on_bytes(kind, lambda d: b""))
        yield case("blank", on_bytes(kind, lambda d: b" \n\n "))
        yield case("zeros", on_bytes(kind, lambda d: bytes(len(d))))
        yield case("a sign and nothing more", on_bytes(kind, lambda d, s=signs[kind]: s))
        yield case("HTML", on_bytes(kind, lambda d: b"<!DOCTYPE html>\n<html><body>Not found</body></html>\n"))
        yield case("a pointer of git-lfs", on_bytes(kind, lambda d: b"version https://git-lfs.github.com/spec/v1\n"))
        yield case("JSON of an error", on_bytes(kind, lambda d: b'{"error": "not found"}'))
        yield case("bytes 0 to 255", on_bytes(kind, lambda d: bytes(range(256)) * 20))
        yield case("missing", by_place(kind, lambda folder, kind: None))
        yield case("a folder", by_place(kind, _folder))
        yield case("a link to nowhere", by_place(kind, _nowhere))
        yield case("a link to itself", by_place(kind, _loop))
        for share in (0.1, 0.3, 0.5, 0.7, 0.9, 0.99):
            yield case(
                f"cut at {share:.0%}",
                on_bytes(kind, lambda d, s=share: d[: int(len(d) * s)]),
                (lambda found: 0 < len(found) < 12 and equal(found, len(found))) if kind == "csv" else None,
            )
        for sign, other in signs.items():
            if sign != kind:
                yield case(
                    f"{sign} under this name",
                    lambda folder, a=sign, k=kind: load_benchmark(
                        "mine", path=WRITERS[a](whole(a), folder / "file").rename(folder / f"file.{k}")
                    ),
                    equal,  # the bytes of Parquet and xlsx say what they are
                )
        if kind in ("csv", "jsonl"):
            yield case("UTF-16", on_bytes(kind, lambda d: d.decode().encode("utf-16")), equal)
            yield case("UTF-32", on_bytes(kind, lambda d: d.decode().encode("utf-32")), equal)
            yield case("Latin-1", on_bytes(kind, lambda d: d.replace(b"Jupiter", b"J\xfcpiter")), equal_umlaut)
            yield case("a stray byte", on_bytes(kind, lambda d: d[:100] + b"\xff" + d[100:]))
            yield case("half a letter", on_bytes(kind, lambda d: d.replace(b"Mars", b"M\xc3rs", 1)))
            yield case("with a byte order mark", on_bytes(kind, lambda d: b"\xef\xbb\xbf" + d), equal)
            yield case(
                "line ends of Windows",
                on_bytes(kind, lambda d: d.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")),
                equal,
            )
            yield case("empty lines between", on_bytes(kind, lambda d: d.replace(b"\n", b"\n\n")), equal)
            yield case("zipped", on_bytes(kind, lambda d: __import__("gzip").compress(d)), equal)
        if kind == "csv":
            yield case("semicolons", on_bytes(kind, lambda d: d.replace(b",", b";")), equal)
            yield case("tabs", on_bytes(kind, lambda d: d.replace(b",", b"\t")), equal)
            yield case("a quote not closed", on_bytes(kind, lambda d: d.replace(b'"Mars"', b'"Mars', 1)))
            yield case("a quote too many", on_bytes(kind, lambda d: d.replace(b'"Mars"', b'"Ma"rs"', 1)))
            yield case("a cell too many", on_bytes(kind, lambda d: d.replace(b'"Mars"', b'"Mars","Io"', 1)))
            yield case("a cell too few", on_bytes(kind, lambda d: d.replace(b'"Mars",', b"", 1)))
            yield case("no header", on_bytes(kind, lambda d: d.split(b"\n", 1)[1]))
            yield case("only a header", on_bytes(kind, lambda d: d.split(b"\n", 1)[0]))
            yield case("a column twice", on_bytes(kind, lambda d: d.replace(b'"C"', b'"B"', 1)))
            yield case("a column without a name", on_bytes(kind, lambda d: d.replace(b'"B"', b'""', 1)))
            yield case("the header twice", on_bytes(kind, lambda d: d.split(b"\n", 1)[0] + b"\n" + d))
            yield case("line ends of old Macs", on_bytes(kind, lambda d: d.replace(b"\r\n", b"\r")), equal)
            yield case(
                "NUL", on_bytes(kind, lambda d: d.replace(b"Mars", b"\0", 1)), lambda found: found[0].choices[0] == "\0"
            )
            for column in ("question", "A", "answer"):
                yield case(
                    f"without {column}", on_bytes(kind, lambda d, c=column: d.replace(f'"{c}"'.encode(), b'"x"', 1))
                )
        if kind == "jsonl":
            yield case("an array", on_bytes(kind, lambda d: b"[" + d.replace(b"}\n{", b"},\n{") + b"]"), equal)
            yield case("over several lines", on_bytes(kind, lambda d: d.replace(b", ", b",\n")))
            yield case("single quotes", on_bytes(kind, lambda d: d.replace(b'"', b"'")))
            yield case("a comma behind", on_bytes(kind, lambda d: d.replace(b'"B"}', b'"B",}', 1)))
            yield case("a comment", on_bytes(kind, lambda d: b"// mine\n" + d))
            yield case("a name twice", on_bytes(kind, lambda d: d.replace(b'"answer"', b'"question"', 1)))
            yield case("two objects on a line", on_bytes(kind, lambda d: d.replace(b"}\n{", b"}{", 1)))
            yield case("a list", on_bytes(kind, lambda d: b"[1]\n" + d))
            yield case("null", on_bytes(kind, lambda d: b"null\n" + d))
            yield case("a number", on_bytes(kind, lambda d: d + b"7\n"))
            yield case("a number of 10,000 digits", on_bytes(kind, lambda d: d + b"9" * 10_000 + b"\n"))
            yield case("brackets without end", on_bytes(kind, lambda d: d + b"[" * 100_000 + b"\n"))
        if kind in ("parquet", "xlsx"):
            for at in range(0, 12):
                share = (at + 0.5) / 12
                yield case(
                    f"100 bytes overwritten at {share:.0%}",
                    on_bytes(
                        kind, lambda d, s=share: d[: int(len(d) * s)] + b"\xaa" * 100 + d[int(len(d) * s) + 100 :]
                    ),
                    equal,
                )
    for name in ("file", "file.xls", "file.txt", "file.json", "file.csv.gz", "file.tsv", "file.ods", "file.pkl"):
        words = (name, "the line is not JSON") if name == "file.json" else (name, "must end in")
        yield Case("benchmark file", f"called {name}", lambda folder, n=name: _named(folder, n), words, equal)


def _named(folder: Path, name: str) -> object:
    write_csv(whole("csv"), folder / "x").rename(folder / name)
    return load_benchmark("mine", path=folder / name)


def hub_cases() -> Iterator[Case]:
    "Folders that are laid out like the hub, and are not."

    def case(name, make, words, accept=None):
        def read(folder):
            make(folder)
            return load_benchmark("arc", path=folder)

        return Case("hub folder", name, read, words, accept)

    def put(folder, place, data=b"x"):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(data)

    good = HUB["arc"]
    yield case("empty", lambda f: None, ("allenai__ai2_arc",))
    yield case("another benchmark", lambda f: put(f, HUB["mmlu"] + ".parquet"), ("cais__mmlu",))
    yield case("another configuration", lambda f: put(f, "allenai__ai2_arc/ARC-Easy/test.parquet"), ("ARC-Easy",))
    yield case("another split", lambda f: put(f, "allenai__ai2_arc/ARC-Challenge/train.parquet"), ("train",))
    yield case("no Parquet", lambda f: put(f, good + ".parquet", b"hello"), ("test.parquet", "not a readable"))
    yield case("empty Parquet", lambda f: put(f, good + ".parquet", b""), ("test.parquet", "not a readable"))
    yield case("a folder for the file", lambda f: (f / (good + ".parquet")).mkdir(parents=True), ("test",))
    yield case("a file for the folder", lambda f: put(f, "allenai__ai2_arc/ARC-Challenge"), ("ARC-Challenge",))
    yield case("a file for the home", lambda f: put(f, "allenai__ai2_arc"), ("allenai__ai2_arc",))
    yield case(
        "another's columns",
        lambda f: (
            (f / good).parent.mkdir(parents=True),
            write_parquet([sound(LAYOUTS["medqa"][0], n) for n in (1, 2)], f / good),
        ),
        ("test.parquet", "cannot tell"),
        lambda found: [(q.choices, q.answer) for q in found] == [(tuple(MARS), 1)] * 2,  # as its own columns say
    )


def cases() -> list[Case]:
    return [*field_cases(), *file_cases(), *hub_cases()]
