"""Helpers of the loader's tests: the same rows written in many formats, what a load says, and what a refusal proposes.

The tests that use them ask for questions, keys, places and things to type, never for a sentence.
"""

import ast
import csv
import gzip
import io
import json
import re
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass, field

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.benchmarks.pitfalls import BenchmarkWarning
from cora_nb.core import CoraError, Question

FLAT = ("csv", "tsv", "csv.gz")  # formats whose cells hold texts only
NESTED = ("jsonl", "json", "jsonl.gz", "parquet", "frame", "arrow")


@dataclass
class Loaded:
    "What a load returned, and everything that it said."

    questions: list[Question]
    printed: str  # what went to stdout
    remarks: list[str] = field(default_factory=list)  # the words of each BenchmarkWarning

    @property
    def said(self) -> str:
        "All words, wherever they were said."
        return "\n".join([self.printed, *self.remarks])


def load(source, **options) -> Loaded:
    "Load a benchmark and keep what it says."
    out = io.StringIO()
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(out):
        warnings.simplefilter("always")
        questions = load_benchmark(source, **options)
    remarks = [str(w.message) for w in caught if issubclass(w.category, BenchmarkWarning)]
    return Loaded(questions, out.getvalue(), remarks)


def refusal(source, **options) -> CoraError:
    "The error of a load that must be refused; another error than `CoraError` is raised, and a reading fails."
    try:
        found = load(source, **options).questions
    except CoraError as e:
        return e
    shown = [(q.text, q.choices, q.answer) for q in found[:4]]
    raise AssertionError(f"read although it must be refused: {len(found)} questions, such as {shown}")


def to_paste(error: CoraError) -> list[dict]:
    'The options that a message gives to type, each as arguments: `columns={...}` and `answer_as="..."`.'
    found = [{"columns": ast.literal_eval(m)} for m in re.findall(r"columns=(\{[^{}]*\})", str(error))]
    return found + [{"answer_as": m} for m in re.findall(r"""answer_as=["']([^"']+)["']""", str(error))]


def cell(value):
    "A value as a CSV file holds it: lists and objects as JSON."
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


def table(rows, delimiter=",", header=True, quoting=csv.QUOTE_MINIMAL) -> str:
    "Rows (a dict each) as a text with delimiters."
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\r\n", quoting=quoting)
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer.writerows([names] if header else [])
    writer.writerows([cell(row.get(name)) for name in names] for row in rows)
    return out.getvalue()


def lines(rows) -> str:
    "Rows as JSONL."
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def class_labels(rows, names: dict):
    "An Arrow table with columns of class labels, as Hugging Face writes them: numbers, and the names beside."
    import pyarrow as pa

    rows = [row | {c: labels.index(row[c]) for c, labels in names.items()} for row in rows]
    arrow = pa.Table.from_pylist(rows)
    features = {c: {"dtype": "string", "_type": "Value"} for c in arrow.column_names}
    for c in arrow.column_names:
        if pa.types.is_list(arrow.schema.field(c).type):
            features[c] = {"feature": {"dtype": "string", "_type": "Value"}, "_type": "List"}
    features |= {c: {"names": list(labels), "_type": "ClassLabel"} for c, labels in names.items()}
    return arrow.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def put(folder, name, content):
    "Write text, bytes or an Arrow table to a file; a name that ends in .gz is compressed."
    path = folder / name
    if not isinstance(content, (str, bytes)):
        import pyarrow.parquet as pq

        pq.write_table(content, path)
        return path
    data = content.encode("utf-8") if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def source(rows, kind, folder, name="mine", header=True):
    "The same rows as a file of a kind, or as a table in memory."
    import pandas as pd
    import pyarrow as pa

    stem, _, zipped = kind.partition(".")
    end = f".{zipped}" if zipped else ""
    if stem == "csv":
        return put(folder, f"{name}.csv{end}", table(rows, header=header))
    if stem == "tsv":
        return put(folder, f"{name}.tsv{end}", table(rows, "\t", header))
    if stem == "jsonl":
        return put(folder, f"{name}.jsonl{end}", lines(rows))
    if stem == "json":
        return put(folder, f"{name}.json{end}", json.dumps(rows, ensure_ascii=False, indent=1))
    if stem == "frame":
        return pd.DataFrame(rows)
    arrow = pa.Table.from_pylist(rows)
    return put(folder, f"{name}.parquet", arrow) if stem == "parquet" else arrow
