"""What runs leave and take: variants files, run folders, sheets of labels, statements, CAT files."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from robustness.cases import Case

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError, Question
from cora_nb.interop.cat import import_cat
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.facts import Facts
from cora_nb.responses.files import check_folder, read_responses, write_responses
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.grading import read_labels
from cora_nb.runs.statements import read_statements
from cora_nb.variants.families import make_variants
from cora_nb.variants.files import read_variants, variants_table, write_variants

QUESTIONS = math_benchmark(n=3)
VARIANTS = make_variants(QUESTIONS)
NAN, INF = float("nan"), float("inf")
HALF = "half \ud800"

# what a column may be replaced by: a type, and the values of the damaged row (others are None or a copy)
TEXTS = {"null": None, "empty": "", "blank": "  ", "a line end": "\n"}
NUMBERS = {"null": None, "negative": -1, "too large": 32_000, "far too large": 2**40}
OTHER_TYPES = {
    "texts": pa.array(["x"]),
    "empty texts": pa.array([""]),
    "whole numbers": pa.array([7]),
    "fractions": pa.array([1.5]),
    "NaN": pa.array([NAN]),
    "infinite": pa.array([INF]),
    "truths": pa.array([True]),
    "bytes": pa.array([b"\xff\x00"]),
    "dates": pa.array([0], pa.timestamp("us")),
    "nulls": pa.nulls(1),
    "lists of texts": pa.array([["x"]]),
    "lists of numbers": pa.array([[0]]),
    "empty lists": pa.array([[]], pa.list_(pa.int16())),
    "lists of fractions": pa.array([[0.5]]),
    "lists of nulls": pa.array([[None]], pa.list_(pa.int16())),
    "lists of lists": pa.array([[[0]]]),
    "objects": pa.array([{"a": 1}]),
    "durations": pa.array([1], pa.duration("s")),
}


def with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    "The table with another column in place of one."
    at = table.column_names.index(name)
    return table.set_column(at, name, values).replace_schema_metadata(table.schema.metadata)


def repeated(values: pa.Array, n: int) -> pa.Array:
    return pa.concat_arrays([values] * n)


def one_changed(table: pa.Table, name: str, row: int, value: Any) -> pa.Table | None:
    "The table with one cell changed; None where its type cannot hold the value."
    values = table.column(name).to_pylist()
    values[row] = value
    try:
        return with_column(table, name, pa.array(values, table.schema.field(name).type))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None


def damaged_bytes(kind: str) -> Iterator[tuple[str, Callable[[bytes], bytes]]]:
    "Damages of a file's bytes."
    yield "empty", lambda d: b""
    yield "a text", lambda d: b"hello " * 50
    yield "zeros", lambda d: bytes(len(d))
    yield "CSV", lambda d: b"question_id,choice\nq1,0\n"
    yield "HTML", lambda d: b"<!DOCTYPE html><html></html>"
    for share in (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98):
        yield f"cut at {share:.0%}", lambda d, s=share: d[: int(len(d) * s)]
    yield "the last byte lost", lambda d: d[:-1]
    yield "the first byte lost", lambda d: d[1:]
    yield "twice", lambda d: d + d[:-4]


# ---------------------------------------------------------------- variants


def same_variants(found: object) -> bool:
    return found == VARIANTS


def variants_cases() -> Iterator[Case]:
    table = variants_table(VARIANTS)

    def read(change: Callable[[pa.Table], pa.Table]):
        def inner(folder):
            pq.write_table(change(table), folder / "v.parquet")
            return read_variants(folder / "v.parquet")

        return inner

    for column in table.column_names:
        if column not in ("recipe", "wording"):  # older files lack them
            yield Case(
                "variants", f"without {column}", read(lambda t, c=column: t.drop_columns([c])), ("v.parquet", column)
            )
        for name, values in OTHER_TYPES.items():
            if name in SOUND_VARIANTS.get(column, ()) or name == "whole numbers" and SOUND_VARIANTS.get(column):
                continue
            yield Case(
                "variants",
                f"{column}: {name}",
                read(lambda t, c=column, v=values: with_column(t, c, repeated(v, len(t)))),
                ("v.parquet",),
                same_variants if (column, name) in HARMLESS_VARIANTS else None,
            )
        for name, value in CELLS.get(column, {}).items():
            if one_changed(table, column, 4, value) is not None:
                yield Case(
                    "variants",
                    f"{column} of row 5: {name}",
                    read(lambda t, c=column, v=value: one_changed(t, c, 4, v)),
                    ("v.parquet", "row 5"),
                )
    for name, change in damaged_bytes("parquet"):
        yield Case("variants", name, by_bytes(change), ("v.parquet",))
    for n in range(30):
        yield Case("variants", f"a byte changed at {n}/30", by_bytes(flip(n / 30)), ("v.parquet",), same_variants)
    yield Case("variants", "missing", lambda folder: read_variants(folder / "v.parquet"), ("v.parquet",))
    yield Case("variants", "a folder", lambda folder: read_variants(folder), ())


SOUND_VARIANTS = {
    "question_id": ("texts",),
    "subject": ("texts", "nulls", "empty texts"),
    "family": ("texts",),
    "method": ("texts",),
    "index": ("whole numbers",),
    "question": ("texts",),
    "text": ("texts", "empty texts"),
    "recipe": ("texts", "empty texts", "nulls"),
}
HARMLESS_VARIANTS = {("wording", "empty texts"), ("wording", "nulls")}  # the usual wording, as all of these have
CELLS = {
    "question_id": {"null": None, "empty": ""},
    "family": {"null": None, "empty": ""},
    "method": {"null": None, "empty": ""},
    "index": {"null": None, "negative": -1},
    "question": TEXTS,
    "choices": {
        "null": None,
        "empty": [],
        "one null": [None, "x"],
        "others": ["x", "y"],
        "one too many": ["x"] * 6,
        "27": ["x"] * 27,
    },
    "answer": {"null": None, "negative": -1, "too large": 99},
    "sources": {"null": None, "empty": [], "too large": [90, 91, 92, 93, 94], "one null": [None] * 5, "short": [0]},
    "original_choices": {"null": None, "empty": [], "one": ["x"], "one null": ["x", None], "others": ["u", "v"]},
    "original_answer": {"null": None, "negative": -1, "too large": 99},
    "form": {"null": None, "empty": "", "unknown": "essay"},
    "text": {"null": None},
}


def flip(share: float) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        data = bytearray(data)
        data[int(len(data) * share)] ^= 0x55
        return bytes(data)

    return change


def by_bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    def read(folder):
        path = folder / "v.parquet"
        write_variants(VARIANTS, path)
        path.write_bytes(change(path.read_bytes()))
        return read_variants(path)

    return read


# ---------------------------------------------------------------- run folders


@lru_cache
def some_run() -> object:
    return evaluate(SimulatedRespondent(), VARIANTS, Asking(trials=2), progress=False)


def same_run(found: object) -> bool:
    run = some_run()
    return found.table.equals(run.table) and found.questions.equals(run.questions) and found.facts == run.facts


def on_part(part: str, change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], object]:
    "A part of a run's folder rewritten."

    def read(folder):
        write_responses(some_run(), folder / "run")
        table = change(pq.read_table(folder / "run" / part))
        pq.write_table(table, folder / "run" / part)
        return read_responses(folder / "run")

    return read


def on_part_bytes(part: str, change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    def read(folder):
        write_responses(some_run(), folder / "run")
        path = folder / "run" / part
        path.write_bytes(change(path.read_bytes()))
        return read_responses(folder / "run")

    return read


def facts_left_alone(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    "Another run of the same facts is to be written where facts.json is damaged."

    def read(folder):
        write_responses(some_run(), folder / "run")
        path = folder / "run" / "facts.json"
        path.write_bytes(before := change(path.read_bytes()))
        try:
            return write_responses(some_run(), folder / "run")
        except CoraError:
            assert path.read_bytes() == before, "a refused file was written to"
            raise

    return read


SOUND_RESPONSES = {
    "subject": ("texts", "empty texts", "nulls"),
    "reply": ("texts", "empty texts", "nulls"),
    "finish": ("texts", "empty texts", "nulls"),
    "confidence": ("whole numbers", "fractions", "NaN", "nulls", "infinite"),
    "mean_logprob": ("whole numbers", "fractions", "NaN", "nulls", "infinite"),
    "n_tokens": ("whole numbers", "nulls", "NaN"),
    "correct": ("truths",),  # so they are
    "scores": ("nulls",),
    "selected": ("nulls", "empty lists", "lists of numbers"),
    "respondent": ("texts", "empty texts", "nulls"),
    "family": ("texts", "empty texts"),
    "error": ("nulls",),
}
RESPONSE_CELLS = {
    "question_id": {"null": None},
    "family": {"null": None, "another": "mine"},
    "respondent": {"another": "somebody else"},
    "method": {"null": None, "as another row": "original"},
    "form": {"null": None, "unknown": "essay", "empty": ""},
    "index": {"null": None, "negative": -1},
    "trial": {"null": None, "negative": -1, "as another row": 1},
    "n_choices": {"null": None, "0": 0, "1": 1, "27": 27, "negative": -3, "too many": 6},
    "answer": {"null": None, "negative": -1, "too large": 5},
    "prediction": {"null": None, "-2": -2, "too large": 5, "as the answer, and wrong": "flip"},
    "correct": {"null": None, "the other": "flip"},
    "sources": {"null": None, "empty": [], "short": [0], "long": [0] * 9},
    "selected": {"too large": [9], "twice": [0, 0], "negative": [-1]},
    "scores": {"short": [-0.5], "long": [-0.5] * 9, "empty": []},
    "state": {"null": None, "unknown": "lost", "empty": "", "another": "unread", "not asked": "not_asked"},
    "error": {"on an answered row": "timeout"},
}
AS_TEXT = {(c, "whole numbers") for c in ("respondent", "subject", "family", "reply", "finish", "error")}
NEEDED = ("question_id", "method", "correct", "state")  # a run that was imported may lack others


def response_cells() -> Iterator[Case]:
    table = pa.table({})
    with_run = some_run()
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        write_responses(with_run, Path(folder) / "run")
        table = pq.read_table(Path(folder) / "run" / "responses.parquet")
    row = next(i for i, ok in enumerate(table["correct"].to_pylist()) if ok and i > 3)
    for column, values in RESPONSE_CELLS.items():
        for name, value in values.items():
            if value == "flip":
                value = (
                    not table[column][row].as_py() if column == "correct" else 0 if table[column][row].as_py() else 1
                )
            changed = one_changed(table, column, row, value)
            if changed is not None:
                yield Case(
                    "run folder",
                    f"responses, {column} of row {row + 1}: {name}",
                    on_part("responses.parquet", lambda t, c=column, v=value: one_changed(t, c, row, v)),
                    ("responses.parquet|run",),
                )
    yield Case(
        "run folder",
        "responses, a row twice",
        on_part("responses.parquet", lambda t: pa.concat_tables([t, t.slice(3, 1)])),
        ("run", "stands in an earlier row"),
    )
    for column in table.column_names:
        for name, values in OTHER_TYPES.items():
            if name not in SOUND_RESPONSES.get(column, ()) and (column, name) not in AS_TEXT:
                yield Case(
                    "run folder",
                    f"responses, {column}: {name}",
                    on_part("responses.parquet", lambda t, c=column, v=values: with_column(t, c, repeated(v, len(t)))),
                    ("run",),
                )
    for column in NEEDED:
        yield Case(
            "run folder",
            f"responses without {column}",
            on_part("responses.parquet", lambda t, c=column: t.drop_columns([c])),
            ("responses.parquet", column),
        )


def no_facts_kept(found: object) -> bool:
    "Responses and questions as they were, of which nothing more is known."
    run = some_run()
    return found.table.equals(run.table) and found.questions.equals(run.questions) and found.facts == Facts()


def no_question_kept(found: object) -> bool:
    "Responses whose questions can be told without the damaged column."
    return found.table.equals(some_run().table)


SOUND_QUESTIONS = {  # a whole number is a fine text, and what is not known is null
    "subject": ("texts", "empty texts", "nulls", "whole numbers"),
    "text": ("texts", "nulls", "empty texts", "whole numbers"),
    "choices": ("nulls", "lists of texts", "lists of numbers"),
    "answer": ("nulls", "NaN"),
}
QUESTION_CELLS = {
    "question_id": {"null": None, "unknown": "nobody"},
    "choices": {"none": [], "one null": ["x", None]},
    "answer": {"negative": -1, "too large": 99},
}


def question_cases() -> Iterator[Case]:
    for column in ("question_id", "subject", "text", "choices", "answer"):
        yield Case(
            "run folder",
            f"questions without {column}",
            on_part("questions.parquet", lambda t, c=column: t.drop_columns([c])),
            ("questions.parquet",),
        )
        for name, values in OTHER_TYPES.items():
            if name not in SOUND_QUESTIONS.get(column, ()):
                yield Case(
                    "run folder",
                    f"questions, {column}: {name}",
                    on_part("questions.parquet", lambda t, c=column, v=values: with_column(t, c, repeated(v, len(t)))),
                    ("questions.parquet|table of questions",),
                )
        for name, value in QUESTION_CELLS.get(column, {}).items():
            yield Case(
                "run folder",
                f"questions, {column} of row 2: {name}",
                on_part("questions.parquet", lambda t, c=column, v=value: one_changed(t, c, 1, v)),
                ("questions.parquet|table of questions",),
            )
    yield Case(
        "run folder", "questions, one lost", on_part("questions.parquet", lambda t: t.slice(1)), ("questions.parquet",)
    )
    yield Case(
        "run folder",
        "questions, one twice",
        on_part("questions.parquet", lambda t: pa.concat_tables([t, t.slice(1, 1)])),
        ("questions.parquet",),
    )


FACTS = {
    "no JSON": b"{",
    "empty": b"",
    "a list": b"[1]",
    "a text": b'"x"',
    "null": b"null",
    "no UTF-8": b"\xff\xfe",
    "NaN": b"NaN",
    "deep": b"[" * 100_000,
    "a number of 10,000 digits": b"9" * 10_000,
    "respondent a text": b'{"respondent": "x"}',
    "respondent a list": b'{"respondent": [1]}',
    "respondent null": b'{"respondent": null}',
    "variants a text": b'{"variants": "x"}',
    "variants null": b'{"variants": null}',
    "recipe a text": b'{"variants": {"recipe": "x"}}',
    "recipe without a family": b'{"variants": {"recipe": {"a": 1}}}',
    "calls a list": b'{"calls": [1]}',
}


def facts_cases() -> Iterator[Case]:
    for name, value in FACTS.items():

        def read(folder, value=value):
            write_responses(some_run(), folder / "run")
            (folder / "run" / "facts.json").write_bytes(value)
            run = read_responses(folder / "run")
            run.members()  # needs the recipe
            return run

        yield Case("run folder", f"facts: {name}", read, ("facts.json",))


JSON_DAMAGES = {
    "empty": lambda d: b"",
    "blank": lambda d: b" \n",
    "cut in half": lambda d: d[: len(d) // 2],
    "no UTF-8": lambda d: b"\xff" + d,
    "UTF-16": lambda d: d.decode().encode("utf-16"),
    "a list": lambda d: b"[]",
    "null": lambda d: b"null",
    "a number": lambda d: b"7",
    "an object": lambda d: b"{}",
    "deep": lambda d: b"[" * 100_000,
    "a digit changed": lambda d: d.replace(b"0", b"1", 1),
    "a name changed": lambda d: d.replace(b'"respondent"', b'"respondents"', 1),
    "single quotes": lambda d: d.replace(b'"', b"'"),
    "twice": lambda d: d + d,
    "a comma too many": lambda d: d.replace(b"\n}", b",\n}"),
}


def folder_cases() -> Iterator[Case]:
    yield from response_cells()
    yield from question_cases()
    yield from facts_cases()
    for name, change in JSON_DAMAGES.items():
        accept = (lambda found: True) if name == "UTF-16" else None  # JSON all the same, with the same facts
        words = ("facts.json|another run here",)  # facts that can be read are those of another run
        yield Case("run folder", f"facts.json, {name}", facts_left_alone(change), words, accept)
    for part in ("responses.parquet", "questions.parquet"):
        for name, change in damaged_bytes(part):
            yield Case("run folder", f"{part}, {name}", on_part_bytes(part, change), (part,))
        for n in range(40):
            yield Case(
                "run folder", f"{part}, a byte changed at {n}/40", on_part_bytes(part, flip(n / 40)), (part,), same_run
            )

    def remove(*names):
        def read(folder):
            write_responses(some_run(), folder / "run")
            for name in names:
                (folder / "run" / name).unlink()
            return read_responses(folder / "run")

        return read

    yield Case("run folder", "without responses", remove("responses.parquet"), ("run",))
    yield Case("run folder", "empty", remove("responses.parquet", "questions.parquet", "facts.json"), ("run",))
    yield Case("run folder", "missing", lambda folder: read_responses(folder / "run"), ("run",))
    yield Case("run folder", "without facts.json", remove("facts.json"), (), no_facts_kept)
    yield Case("run folder", "without questions", remove("questions.parquet"), (), no_question_kept)

    def foreign(name):
        def read(folder):
            (folder / "run").mkdir()
            (folder / "run" / name).write_text("mine")
            return check_folder(folder / "run")

        return read

    for name in ("notes.txt", "facts.json", "questions.parquet", ".git", "x.parquet"):
        yield Case("run folder", f"to be written over {name} of others", foreign(name), ("run", name))


def set_in(row: dict, path: str, value: Any) -> None:
    *above, last = path.split(".")
    for name in above:
        row = row[int(name) if isinstance(row, list) else name]
    if value == "GONE":
        row.pop(last if isinstance(row, dict) else int(last))
    else:
        row[int(last) if isinstance(row, list) else last] = value


# ---------------------------------------------------------------- sheets of labels, and statements

LONG = [Question("east", "Where does the sun rise?", ("East", "West", "North"), 0)] + [
    Question(f"n{i}", f"How many are {i} and 1?", (str(i + 1), str(i), str(i + 2)), 0) for i in range(4)
]


def csv_bytes(rows: list[dict]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def label_rows() -> list[dict]:
    return [
        {
            "question_id": q.id,
            "method": "long_form",
            "index": "0",
            "trial": "0",
            "reply": q.choices[0],
            "label": "right",
        }
        for q in LONG
    ]


def on_sheet(rows: Callable[[], list[dict]], change, read_it) -> Callable[[Path], object]:
    "A sheet with something changed, read."

    def read(folder):
        made = rows()
        data = change(made)
        path = folder / "sheet.csv"
        path.write_bytes(data if isinstance(data, bytes) else csv_bytes(made))
        return read_it(path)

    return read


LABEL_FIELDS = {
    "question_id": ["", " ", "nobody", "EAST", "east ", "7", "'east", "n0\n"],
    "method": ["", " ", "original", "lfgq ", "LONG_FORM", "0"],
    "index": ["", " ", "-1", "1", "99", "1.5", "one", "0x0", "1e3", "999999999999", "NaN", "\u0660"],
    "trial": ["", " ", "-1", "1.5", "one", "999999999999", "NaN", "inf", "0,0", "\u0661"],
    "label": ["maybe", "-2", "D", "Z", "AB", "-", "?", "right!", "yes no", "1.5", "NaN", "Eastern", "n/a", "\u0392"],
}
STATEMENT_FIELDS = {
    "question_id": ["", " ", "nobody", "EAST", "east ", "7"],
    "choice": [
        "",
        " ",
        "-1",
        "3",
        "99",
        "1.5",
        "A",
        "one",
        "0x0",
        "1e0",
        "NaN",
        "East",
        "\u0660",
        "0 1",
        "00000",
        "true",
    ],
    "statement": [" ", "\n", "\t "],
}


def statement_rows() -> list[dict]:
    return [
        {"question_id": q.id, "choice": str(i), "statement": f"{q.text[:-1]}: {c}."}
        for q in LONG
        for i, c in enumerate(q.choices)
    ]


def whole_sheets(columns: tuple[str, ...]) -> dict[str, Callable[[list[dict]], bytes | None]]:
    "Damages of a whole sheet."
    found: dict[str, Callable] = {
        "empty": lambda rows: b"",
        "only a header": lambda rows: csv_bytes(rows).split(b"\n")[0],
        "Latin-1": lambda rows: csv_bytes(rows) + "Ü".encode("latin-1"),
        "UTF-16": lambda rows: csv_bytes(rows).decode().encode("utf-16"),
        "semicolons": lambda rows: csv_bytes(rows).replace(b",", b";"),
        "a quote not closed": lambda rows: csv_bytes(rows)[:-3],
        "a cell too few": lambda rows: csv_bytes(rows) + b'"east"\r\n',
        "a cell too many": lambda rows: csv_bytes(rows) + b",".join([b'"x"'] * 20) + b"\r\n",
        "a column twice": lambda rows: csv_bytes(rows).replace(columns[0].encode(), columns[1].encode(), 1),
        "zipped": lambda rows: __import__("gzip").compress(csv_bytes(rows)),
        "a row twice": lambda rows: rows.append(dict(rows[1])),
    }
    for c in columns:
        found[f"without {c}"] = lambda rows, c=c: csv_bytes([{k: v for k, v in r.items() if k != c} for r in rows])
    return found


def sheet_cases() -> Iterator[Case]:
    from cora_nb.variants.mcqa_plus import long_form

    asked = [long_form(q) for q in LONG]
    method = asked[0].method

    def labels():
        return [r | {"method": method} for r in label_rows()]

    kinds = (
        (
            "labels",
            labels,
            LABEL_FIELDS,
            ("question_id", "method", "index", "trial", "reply", "label"),
            lambda p: read_labels(p, asked),
        ),
        (
            "statements",
            statement_rows,
            STATEMENT_FIELDS,
            ("question_id", "choice", "statement"),
            lambda p: read_statements(p, LONG),
        ),
    )
    for area, rows, fields, columns, read_it in kinds:
        assert len(read_it_once(rows(), read_it)) > 4  # the sound sheet is read
        for field, values in fields.items():
            for value in values:

                def change(made, field=field, value=value):
                    made[2][field] = value

                yield Case(area, f"{field}: {value!r}", on_sheet(rows, change, read_it), ("sheet.csv", "row 3"))
        for name, change in whole_sheets(columns).items():
            yield Case(area, name, on_sheet(rows, change, read_it), ("sheet.csv",))


def read_it_once(rows: list[dict], read_it) -> object:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "sheet.csv").write_bytes(csv_bytes(rows))
        return read_it(path)


# ---------------------------------------------------------------- CAT files


def entry(choices=("a", "b", "c"), right="B", said="A", **more) -> dict:
    return {
        "choices": dict(zip("ABCDEFG", choices)),
        "correct_choice": right,
        "model_choice": said,
        "output": said,
    } | more


def cat_file(folder: Path, cells: list[Any], question: Any = "Q?", columns=("question", "expanded_evaluation")) -> Path:
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    for n, cell in enumerate(cells):
        writer.writerow([question if n == 1 else "Q?", cell if isinstance(cell, str) else json.dumps(cell)])
    path = folder / "cat.csv"
    path.write_text(out.getvalue(), "utf-8", newline="")
    return path


CAT_GOOD = {"standard_MC": [entry()], "standard_MC_wNOTA": [entry(("None of the above", "b", "c"))]}
CAT_CELLS = {
    "empty": "",
    "blank": " ",
    "no JSON": "{",
    "half": json.dumps(CAT_GOOD)[:60],
    "deep": "[" * 100_000,
    "a list": [1],
    "null": None,
    "a number": 7,
    "a text": '"x"',
    "a name twice": '{"standard_MC": [], "standard_MC": []}',
    "empty object": {},
    "an unknown method": CAT_GOOD | {"other_MC": []},
    "no original": {"standard_MC_wNOTA": [entry()]},
    "original null": CAT_GOOD | {"standard_MC": None},
    "original empty": CAT_GOOD | {"standard_MC": []},
    "original an object": CAT_GOOD | {"standard_MC": entry()},
    "original a text": CAT_GOOD | {"standard_MC": "x"},
    "an entry null": CAT_GOOD | {"standard_MC": [None]},
    "an entry a text": CAT_GOOD | {"standard_MC": ["x"]},
    "an entry empty": CAT_GOOD | {"standard_MC": [{}]},
    "no model_choice": CAT_GOOD | {"standard_MC": [{k: v for k, v in entry().items() if k != "model_choice"}]},
    "no correct_choice": CAT_GOOD | {"standard_MC": [{k: v for k, v in entry().items() if k != "correct_choice"}]},
    "no choices": CAT_GOOD | {"standard_MC": [{k: v for k, v in entry().items() if k != "choices"}]},
    "another question's answer": CAT_GOOD | {"standard_MC_wNOTA": [entry(("a", "c", "b"))]},
} | {
    f"{field}: {name}": CAT_GOOD | {"standard_MC": [entry() | {field: value}]}
    for field, values in {
        "choices": {
            "null": None,
            "a list": ["a", "b"],
            "a text": "abc",
            "empty": {},
            "one": {"A": "a"},
            "27": {str(i): "x" for i in range(27)},
            "from B": {"B": "a", "C": "b"},
            "a gap": {"A": "a", "C": "b"},
            "small": {"a": "a", "b": "b"},
            "backwards": {"B": "b", "A": "a"},
            "a null": {"A": None, "B": "b"},
            "a number": {"A": 7, "B": "b"},
            "an empty": {"A": "", "B": "b"},
            "a blank": {"A": " ", "B": "b"},
            "a list in it": {"A": ["a"], "B": "b"},
        },
        "correct_choice": {
            "null": None,
            "empty": "",
            "D": "D",
            "small": "b",
            "a number": 1,
            "a list": ["B"],
            "two": "AB",
            "true": True,
        },
    }.items()
    for name, value in values.items()
}


def cat_cases() -> Iterator[Case]:
    for name, cell in CAT_CELLS.items():
        yield Case(
            "CAT file",
            name,
            lambda folder, c=cell: import_cat(cat_file(folder, [CAT_GOOD, c, CAT_GOOD])),
            ("cat.csv", "row 2"),
        )
    for name, text in {"empty": "", "blank": "  ", "a line end": "\n"}.items():
        yield Case(
            "CAT file",
            f"question: {name}",
            lambda folder, t=text: import_cat(cat_file(folder, [CAT_GOOD] * 3, t)),
            ("cat.csv", "row 2", "question"),
        )
    for n, columns in enumerate(
        (("question", "evaluation"), ("text", "expanded_evaluation"), ("question", "question"))
    ):
        yield Case(
            "CAT file",
            f"other columns ({n + 1})",
            lambda folder, c=columns: import_cat(cat_file(folder, [CAT_GOOD], columns=c)),
            ("cat.csv",),
        )
    for name, change in damaged_bytes("csv"):
        if name in ("the last byte lost", "the first byte lost", "twice"):
            continue

        def read(folder, change=change):
            path = cat_file(folder, [CAT_GOOD] * 40)
            path.write_bytes(change(path.read_bytes()))
            return import_cat(path)

        yield Case("CAT file", f"the file: {name}", read, ("cat.csv",))
    for suffix in ("xlsx", "parquet", "json", "txt"):
        yield Case(
            "CAT file",
            f"CSV called {suffix}",
            lambda folder, s=suffix: import_cat(cat_file(folder, [CAT_GOOD]).rename(folder / f"cat.{s}")),
            (f"cat.{suffix}",),
        )


def cases() -> list[Case]:
    return [*variants_cases(), *folder_cases(), *sheet_cases(), *cat_cases()]
