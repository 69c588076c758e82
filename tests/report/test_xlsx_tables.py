"A table as a workbook: numbers as numbers, texts as texts, the facts of the runs; read back with openpyxl and as XML."

import io
import math
import re
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings, strategies as st
from openpyxl import load_workbook
from openpyxl.utils.escape import unescape
from score_tables import published, sure
from table_readers import NASTY, shown

from cora_nb.core import CoraError
from cora_nb.report.render import render
from cora_nb.report.tables import score_table
from cora_nb.results import make_result
from helpers import slow_after

NAN = math.nan
SCORES = {"MCQA": 0.75, "CoRA": 1 / 3}


def book_of(result, **printing):
    return load_workbook(io.BytesIO(render(result, "xlsx", **printing)))


def rows_of(sheet):
    return [list(row) for row in sheet.iter_rows(values_only=True)]


def test_numbers_are_numbers_with_formats():
    sheet = book_of(score_table({"a": sure(SCORES), "b": {**SCORES, "CoRA": NAN}}), digits=3)["scores"]
    rows = rows_of(sheet)
    assert rows[0] == ["group", "score", "a", "a low", "a high", "a rank", "b", "b low", "b high", "b rank"]
    assert rows[1] == ["Baselines", "MCQA", 0.75, 0.71, 0.77, 1, 0.75, None, None, 1]
    assert rows[2][:3] == ["Proposed metric", "CoRA", 1 / 3] and rows[2][5:] == [1, None, None, None, None]
    assert [cell.number_format for cell in sheet[2][2:5]] == ["0.000"] * 3
    assert [type(v) for v in rows[1][2:6]] == [float, float, float, int]
    assert sheet.freeze_panes == "C2"
    assert [cell.font.bold for cell in sheet[1]] == [True] * 10 and not sheet["C2"].font.bold


@pytest.mark.slow
@given(st.lists(st.floats(-1e9, 1e9) | st.just(NAN), min_size=3, max_size=3))
@example([0.1 + 0.2, 5e-324, 0.475 + 1e-16])
def test_every_bit_is_kept(values):
    table = make_result([{"place": i, "score": "x", "value": v} for i, v in enumerate(values)])
    back = [row[-1] for row in rows_of(book_of(table)["scores"])[1:]]
    assert [NAN if v is None else float(v) for v in back] == pytest.approx(values, rel=0, abs=0, nan_ok=True)


def test_percent_digits_and_what_is_left_out():
    table = score_table({"a": sure(SCORES), "b": SCORES})
    sheet = book_of(table, percent=True)["scores"]
    assert (sheet["C2"].value, sheet["C2"].number_format) == (0.75, "0.0%")  # a share, shown in percent
    assert book_of(table, digits=0)["scores"]["C2"].number_format == "0"
    assert rows_of(book_of(table, ranks=False, interval=False)["scores"])[0] == ["group", "score", "a", "b"]
    with pytest.raises(CoraError, match="digits"):
        render(table, "xlsx", digits=16)


def test_p_and_notes_have_columns():
    rows = [
        {"method": m, "score": "x", "value": 1.5, "p": p, "note": n} for m, p, n in (("a", 1e-9, ""), ("b", 1, "y\nz"))
    ]
    found = rows_of(book_of(make_result(rows), caption="C", below=["first"])["scores"])
    assert found[:3] == [
        ["method", "score", "value", "value p", "value note"],
        ["a", "x", 1.5, 1e-9, None],
        ["b", "x", 1.5, 1, "y"],
    ]
    assert [row[0] for row in found[3:]] == [None, "C", "first", "z"]


def test_why_there_are_no_ranks(simulated):
    sheet = book_of(score_table({name: simulated[name] for name in ("a", "part")}, guesser=False), caption="C")[
        "scores"
    ]
    rows = rows_of(sheet)
    assert rows[0][2:] == ["a", "a note", "part", "part note"]
    assert {row[5] for row in rows[1:] if row[4] is not None} == {None, "2 of 20 variants"}  # None: MCQA
    below = [row[0] for row in rows if row[0] and row[1] is None]
    assert below[0] == "C" and below[1].startswith("No ranks: part has 2 of 20 variants")


def parts_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        assert packed.testzip() is None
        return {name: packed.read(name).decode("utf-8") for name in packed.namelist()}


@pytest.mark.parametrize("name", slow_after(8, NASTY))
def test_a_nasty_text_is_a_text(name):
    "As a run, a score, a note, a caption, a sentence and a fact: never a formula, an error or a link."
    result = score_table({name: {**SCORES, name: 0.5}, "Ann": SCORES}, beyond=True)
    result["note"] = name
    facts = {name: {name: name, "n": 1}, "Ann": {"n": 2}}
    data = render(result, "xlsx", caption=name, below=[name], facts=facts)
    for part, text in parts_of(data).items():
        assert not re.search(r"<f[ >]|hyperlink|t=\"e\"|externalLink", text), part
    book = load_workbook(io.BytesIO(data))
    texts = [cell for sheet in book for row in sheet for cell in row if isinstance(cell.value, str)]
    assert {cell.data_type for cell in texts} == {"s"}
    marked = {cell.quotePrefix for cell in texts if cell.value[:1] in ("=", "+", "-", "@", "'")}
    assert marked <= {True}  # stays a text when somebody edits it
    found = {unescape(cell.value) for cell in texts}
    assert not shown(name) or shown(name) in found
    if shown(name) and shown(name) not in ("n", "fact"):
        assert unescape(book["facts"]["B1"].value) == shown(name)
        assert [unescape(str(c.value)) for c in book["facts"][2]] == [shown(name), shown(name), "None"]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=4)
)
def test_any_text_and_any_fact_is_written(text, fact):
    data = render(score_table({"a": SCORES}), "xlsx", caption=text, facts={"a": {"x": {text: fact}}})
    assert not any("<f>" in part for part in parts_of(data).values())
    (head, row) = rows_of(load_workbook(io.BytesIO(data))["facts"])
    assert head == ["fact", "a"] and unescape(row[0]) == (shown(f"x.{text}"))
    if isinstance(fact, float) and abs(fact) < 1e15:
        assert row[1] == fact


def test_facts_of_the_runs():
    facts = {
        "a": {
            "run": {"family": "cora", "shots": []},
            "versions": {"python": "3.11"},
            "big": 2**70,
            "k": 5,
            "yes": True,
        },
        "b": {
            "run": {"family": "cora", "shots": [{"id": "q1"}]},
            "long": "x" * 5000,
            "empty": {},
            "none": None,
            "f": NAN,
        },
    }
    book = book_of(score_table({"a": SCORES, "b": SCORES}), facts=facts)
    assert book.sheetnames == ["scores", "facts"] and book["facts"].freeze_panes == "B2"
    head, *rows = rows_of(book["facts"])
    found = {name: values for name, *values in rows}
    assert head == ["fact", "a", "b"]
    assert found["run.family"] == ["cora", "cora"] and found["run.shots"] == ["[]", '[{"id": "q1"}]']
    assert found["big"] == [str(2**70), None] and found["k"] == [5, None] and found["yes"] == [True, None]
    assert len(found["long"][1]) == 2000 and found["long"][1].endswith("…")
    assert found["empty"] == [None, "{}"] and found["none"] == [None, None] and found["f"] == [None, "NaN"]
    assert render(score_table({"a": SCORES}), "xlsx") != render(score_table({"a": SCORES}), "xlsx", facts={"a": {}})
    assert book_of(score_table({"a": SCORES})).sheetnames == ["scores"]


def test_the_same_table_has_the_same_cells():
    table = score_table(published(2)[2])
    first, again = (book_of(table, facts={"a": {"x": 1}}) for _ in range(2))
    assert [rows_of(sheet) for sheet in first] == [rows_of(sheet) for sheet in again]


def test_columns_are_wide_enough_and_no_wider():
    sheet = book_of(score_table({"n" * 300: sure(SCORES), "a": SCORES}))["scores"]
    widths = {letter: column.width for letter, column in sheet.column_dimensions.items()}
    assert max(widths.values()) == 40 and widths["A"] >= len("Proposed metric") and min(widths.values()) >= 8


def test_two_columns_of_one_name_are_refused():
    table = score_table({"a": sure(SCORES), "a low": SCORES})
    with pytest.raises(CoraError, match="two columns would be called 'a low'; give the run another name"):
        render(table, "xlsx")
    with pytest.raises(CoraError, match="two columns would be called 'a b'"):
        render(score_table({"a\nb": SCORES, "a b": SCORES}), "xlsx")


def test_infinite_numbers_are_texts():
    sheet = book_of(make_result([{"score": "x", "value": v, "place": i} for i, v in enumerate((np.inf, -np.inf, NAN))]))
    assert [row[-1] for row in rows_of(sheet["scores"])[1:]] == ["inf", "-inf", None]


def test_pandas_reads_it():
    table = score_table({"a": sure(SCORES), "b": SCORES})
    back = pd.read_excel(io.BytesIO(render(table, "xlsx")), index_col=[0, 1])
    assert back.loc[("Proposed metric", "CoRA"), "a"] == 1 / 3 and back["a rank"].tolist() == [1, 1]
