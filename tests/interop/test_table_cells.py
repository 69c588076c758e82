"""Cells of a table that somebody else wrote."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cora_nb.benchmarks.files import Table
from cora_nb.core import BadRow, CoraError
from cora_nb.interop.plain_table import _CELLS, _TableRows, _read_choices, _text_cell, _whole_cell

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


def test_a_confidence_reaches_its_ends():
    assert [_CELLS["confidence"](cell) for cell in (0, "0.5", 1, "1.0")] == [0, 0.5, 1, 1]
    for cell in (-0.01, "1.01", math.inf):
        with pytest.raises(ValueError, match="must be from 0 to 1"):
            _CELLS["confidence"](cell)


def test_true_and_false_in_the_words_of_spreadsheets():
    assert all(_CELLS["correct"](cell) is True for cell in (True, " TRUE ", "1", 1, 1.0))
    assert all(_CELLS["correct"](cell) is False for cell in (False, "False", "0", 0, "0.0"))


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
