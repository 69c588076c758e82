"""Cells of a table that somebody else wrote."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cora_nb.benchmarks.files import Table
from cora_nb.core import BadRow, CoraError
from cora_nb.interop.plain_table import _CELLS, _TableRows, _count_choices, _read_choices, _text_cell, _whole_cell

texts = st.text(min_size=1).filter(lambda text: bool(text.strip()))


def table(*rows, columns=None):
    columns = tuple(dict.fromkeys(c for row in rows for c in row)) if columns is None else columns
    return Table("my.csv", columns, [*enumerate(rows, 1)], typed=True)


@given(choices=st.lists(texts, min_size=2, max_size=26))
def test_a_list_of_texts_is_read_however_it_is_written(choices):
    for cell in (choices, tuple(choices), json.dumps(choices), repr(tuple(choices)), repr(choices), f" {choices!r} "):
        assert _CELLS["choices"](cell) == tuple(choices)


@given(numbers=st.lists(st.floats(), max_size=5))
def test_a_list_of_numbers_is_read_however_it_is_written(numbers):
    for cell in (numbers, json.dumps(numbers), repr(tuple(numbers)), repr(numbers).replace("[", "(").replace("]", ")")):
        found = _CELLS["scores"](cell)
        assert len(found) == len(numbers)
        assert all(a == b or math.isnan(a) and math.isnan(b) for a, b in zip(found, numbers))


@given(number=st.integers(-(10**9) + 1, 10**9 - 1))
def test_a_whole_number_is_read_however_it_is_written(number):
    for cell in (number, str(number), f" {number} ", f"{number}.0", f"{number}.", float(number)):
        assert _whole_cell(cell) == number
    assert _text_cell(number) == str(number)


@pytest.mark.parametrize("cell", [True, None, 1.5, "1.5", "1e3", "", "one", "١", "0x1", 10**9, "9" * 30, [1], math.inf])
def test_other_things_are_no_whole_numbers(cell):
    with pytest.raises(ValueError, match="must be a whole number"):
        _whole_cell(cell)


@pytest.mark.parametrize("cell", ["true", "TRUE", " True", 1, "1", True, 1.0])
def test_words_for_true(cell):
    assert _CELLS["correct"](cell) is True


def test_each_different_value_is_converted_once_and_types_are_kept_apart():
    seen = []
    rows = _TableRows(table(*[{"x": value} for value in (1, 1.0, True, "1", 1, "1", None, "", math.nan, [1], [1])]))
    rows.read("x", lambda value: seen.append(value))
    assert [*map(repr, seen)] == ["1", "1.0", "True", "'1'", "[1]"]
    assert rows.read("not there", _text_cell) == [None] * 11


def test_a_refused_row_is_remembered_with_its_first_reason_only():
    rows = _TableRows(
        table({"question_id": "q", "index": "x", "trial": "y"}, {"question_id": "r", "index": 1}), skip=True
    )
    assert rows.read("index", _CELLS["index"]) == [None, 1] and rows.read("trial", _CELLS["trial"]) == [None, None]
    assert [*rows.bad] == [0] and str(rows.bad[0]) == "my.csv, row 1, id 'q', index: must be a whole number, got 'x'"
    with pytest.raises(BadRow, match="row 1, id 'q', trial: must be a whole number, got 'y'"):
        _TableRows(table({"question_id": "q", "trial": "y"})).read("trial", _CELLS["trial"])


def test_choices_in_columns_of_their_own():
    rows = _TableRows(
        table({"A": "a", "B": "b", "C": None}, {"A": "a", "B": "b", "C": "c"}, {"A": "", "B": " ", "C": None})
    )
    assert _read_choices(rows) == [("a", "b"), ("a", "b", "c"), None]
    for row in ({"A": "a", "B": "", "C": "c"}, {"A": "a", "B": "", "C": ""}, {"A": "", "B": "b", "C": ""}):
        with pytest.raises(BadRow, match="must be at least two, without a gap between them"):
            _read_choices(_TableRows(table(row)))
    with pytest.raises(CoraError, match="must be A, B, C, ... without a gap"):
        _read_choices(_TableRows(table({"B": "b"})))


def test_what_says_how_many_choices_there_are():
    rows = _TableRows(table({"n_choices": 3}, {"n_choices": None}))
    assert _count_choices(rows, {"scores": [None, (1.0, 2.0)]}) == [3, 2]
    assert _count_choices(_TableRows(table({"x": 1})), {"scores": [None]}) == [None]
    with pytest.raises(BadRow, match="scores: must hold one entry for each of the 3 choices"):
        _count_choices(_TableRows(table({"n_choices": 3})), {"scores": [(1.0,)]})


def test_names_of_columns():
    names = {" Question ID ": "question_id", "n-choices": "n_choices", "A": "A", "Ä b": "ä_b", "a": "a"}
    assert [*_TableRows(table(columns=tuple(names))).columns] == [*names.values()]
    with pytest.raises(CoraError, match="two columns are called 'question_id'"):
        _TableRows(table(columns=("question_id", "Question-Id")))
