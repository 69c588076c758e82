"""Spreadsheets: what their author sees is what is asked, or the file is refused with the place of the cell."""

import datetime
import re
import zipfile

import pytest
from benchmarks.written import load, refusal
from openpyxl import Workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont

from cora_nb.core import LETTERS, BadRow, CoraError

HEAD = ["question", "A", "B", "C", "D", "answer"]
ROWS = [[f"Which stone lies at {i}?", f"flint {i}", f"chalk {i}", f"slate {i}", f"marl {i}", LETTERS[i % 4]]
        for i in range(12)]  # fmt: skip
OTHERS = [[f"Which river is {i}?", f"Aln {i}", f"Usk {i}", f"Tay {i}", f"Wye {i}", LETTERS[i % 4]] for i in range(12)]


def book(rows=ROWS, head=HEAD):
    "A workbook of one sheet, and the sheet."
    made = Workbook()
    page = made.active
    for row in [head, *rows]:
        page.append(row)
    return made, page


def saved(made, folder, name="mine.xlsx"):
    made.save(folder / name)
    return folder / name


def same(found, rows=ROWS):
    "Every question as its row says."
    assert [(q.text, list(q.choices), LETTERS[q.answer]) for q in found] == [(r[0], r[1:5], r[5]) for r in rows]


def names_place(error, cell, row):
    "A refusal says where: as the sheet names the cell, or by row and field."
    by_cell = re.search(rf"(?<![A-Z0-9]){cell}(?![0-9])", str(error))
    by_row = getattr(error, "row", None) == row and getattr(error, "field", "")
    assert by_cell or by_row, str(error)


def test_a_plain_sheet(tmp_path):
    "Texts, letters and nothing else; what is printed has the count."
    loaded = load(saved(book()[0], tmp_path))
    same(loaded.questions)
    assert "12" in loaded.printed


# ---------------------------------------------------------------- formats of cells

SHOWN = {  # format: [(value, what is seen)]
    "General": [(5, "5"), (0.5, "0.5"), (12, "12"), (-3, "-3")],
    "0": [(7, "7"), (2.5, "3"), (3.5, "4"), (-2.5, "-3")],
    "0.0": [(3, "3.0"), (0.25, "0.3"), (0.75, "0.8"), (10, "10.0")],
    "0.00": [(3.1, "3.10"), (3.01, "3.01"), (3, "3.00"), (3.11, "3.11")],
    "000": [(7, "007"), (70, "070"), (700, "700"), (77, "077")],
    "0%": [(0.5, "50%"), (0.125, "13%"), (1, "100%"), (0.375, "38%")],
    "0.0%": [(0.125, "12.5%"), (0.5, "50.0%"), (1, "100.0%"), (0.001, "0.1%")],
    "0.00%": [(0.125, "12.50%"), (0.5, "50.00%"), (1, "100.00%"), (0.00125, "0.13%")],
    "#,##0": [(1000, "1,000"), (999, "999"), (1234567, "1,234,567"), (0, "0")],
    "#,##0.00": [(1000, "1,000.00"), (0.5, "0.50"), (1234.5, "1,234.50"), (12, "12.00")],
    '"$"0.00': [(5, "$5.00"), (50, "$50.00"), (0.5, "$0.50"), (500, "$500.00")],
    '"$"#,##0.00': [(5, "$5.00"), (5000, "$5,000.00"), (0.5, "$0.50"), (50, "$50.00")],
    '0.00" kg"': [(5, "5.00 kg"), (50, "50.00 kg"), (0.5, "0.50 kg"), (1.25, "1.25 kg")],
    "@": [("007", "007"), ("1/2", "1/2"), ("50%", "50%"), ("3.10", "3.10")],
}
OR_REFUSED = {  # read as it is shown, or refused
    "$#,##0.00": [(5, "$5.00"), (5000, "$5,000.00"), (0.5, "$0.50"), (50, "$50.00")],
    "[$$-409]#,##0.00": [(5, "$5.00"), (5000, "$5,000.00"), (0.5, "$0.50"), (50, "$50.00")],
    '#,##0.00\\ "€"': [(5, "5.00 €"), (5000, "5,000.00 €"), (0.5, "0.50 €"), (50, "50.00 €")],
    "0.00;-0.00;": [(5, "5.00"), (-5, "-5.00"), (0.5, "0.50"), (50, "50.00")],
    "0;-0;": [(5, "5"), (0, ""), (7, "7"), (50, "50")],
    "#": [(5, "5"), (0, ""), (7, "7"), (50, "50")],
    "0,": [(5000, "5"), (6000, "6"), (7000, "7"), (8000, "8")],
    "0.###": [(2.675, "2.675"), (2.5, "2.5"), (1.125, "1.125"), (7.25, "7.25")],
    "[Red]0.00": [(5, "5.00"), (0.5, "0.50"), (7, "7.00"), (50, "50.00")],
    "+0;-0": [(5, "+5"), (-5, "-5"), (7, "+7"), (50, "+50")],
    '0"00"': [(5, "500"), (6, "600"), (7, "700"), (50, "5000")],
}
ROUNDED = [("0.00", 2.675, "2.68"), ("0.00", 1.005, "1.01"), ("0.0", 0.05, "0.1"), ("0.0", 0.15, "0.2"),
           ("0%", 0.005, "1%"), ("0%", 0.285, "29%"), ("0.0%", 0.0005, "0.1%"), ("0", 0.5, "1"), ("0", -0.5, "-1"),
           ("0%", 0.995, "100%"), ("0.00", 9.995, "10.00"), ("#,##0", 999.5, "1,000")]  # fmt: skip


def of_format(shape, values):
    "A sheet whose first question has choices of a format."
    made, page = book([["Which is it?", *values, "A"], *ROWS])
    for column in "BCDE":
        page[f"{column}2"].number_format = shape
    return made


@pytest.mark.parametrize("shape", SHOWN)
def test_a_number_is_asked_as_it_is_shown(shape, tmp_path):
    "The text of a cell is its value in its format."
    values, seen = zip(*SHOWN[shape])
    found = load(saved(of_format(shape, values), tmp_path)).questions
    assert found[0].choices == seen
    same(found[1:])


@pytest.mark.parametrize("shape", OR_REFUSED)
def test_a_rarer_format_is_asked_as_it_is_shown_or_refused(shape, tmp_path):
    "A format that is not known is refused with a cell, never asked otherwise."
    values, seen = zip(*OR_REFUSED[shape])
    try:
        found = load(saved(of_format(shape, values), tmp_path)).questions
    except CoraError:
        return
    assert found[0].choices == seen


@pytest.mark.parametrize("shape, value, seen", ROUNDED)
def test_halves_are_rounded_up_as_spreadsheets_do(shape, value, seen, tmp_path):
    "Away from zero, by the decimal digits that are shown: Python's `round` does otherwise."
    other = [900, 800, 700]
    found = load(saved(of_format(shape, [value, *other]), tmp_path)).questions
    assert found[0].choices[0] == seen


REFUSED = {
    "a fraction": ("# ?/?", 0.5), "hundredths": ("# ??/??", 0.25), "a date": ("yyyy-mm-dd", datetime.date(2026, 5, 1)),
    "a date and time": ("yyyy-mm-dd hh:mm", datetime.datetime(2026, 5, 1, 9, 30)),
    "a time": ("hh:mm", datetime.time(9, 30)), "eighteen digits": ("0", 123456789012345678),
    "scientific": ("0.00E+00", 12000), "a condition": ('[>100]"many";0', 500),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("column", ["C", "A"])
def test_a_format_that_cannot_be_told_is_refused(name, column, tmp_path):
    "Fractions, dates, times, too many digits, scientific and conditional formats, in a choice or a question."
    shape, value = REFUSED[name]
    made, page = book()
    page[f"{column}5"].value = value
    page[f"{column}5"].number_format = shape
    path = saved(made, tmp_path)
    names_place(refusal(path), f"{column}5", 4)
    loaded = load(path, on_bad="skip")
    same(loaded.questions, ROWS[:3] + ROWS[4:])
    assert loaded.remarks


def test_a_format_in_a_column_that_nothing_asks_is_no_matter(tmp_path):
    "A date beside the questions is left aside with its column."
    made, page = book([[*row, datetime.date(2026, 5, 1 + i)] for i, row in enumerate(ROWS)], [*HEAD, "noted_on"])
    loaded = load(saved(made, tmp_path))
    same(loaded.questions)
    assert "noted_on" in loaded.printed


def test_answers_that_are_numbers_in_a_sheet(tmp_path):
    "Numbers of a sheet are 1 to 4, whatever Excel stores."
    made, page = book([[*row[:5], 1 + LETTERS.index(row[5])] for row in ROWS])
    same(load(saved(made, tmp_path)).questions)


# ---------------------------------------------------------------- errors, formulas, texts of several kinds


@pytest.mark.parametrize("column", ["A", "C", "F"])
@pytest.mark.parametrize("error", ["#NAME?", "#REF!", "#DIV/0!", "#N/A", "#VALUE!"])
def test_an_error_cell_is_refused_with_its_place(error, column, tmp_path):
    "What stands in an error cell is no text of the author's."
    made, page = book()
    page[f"{column}5"].value = error
    assert page[f"{column}5"].data_type == "e"
    path = saved(made, tmp_path)
    refused = refusal(path)
    assert re.search(rf"(?<![A-Z0-9]){column}5(?![0-9])", str(refused)), str(refused)
    same(load(path, on_bad="skip").questions, ROWS[:3] + ROWS[4:])


@pytest.mark.parametrize("column", ["A", "C", "E", "F"])
def test_a_formula_without_a_value_is_refused_with_its_place(column, tmp_path):
    "Programs that write formulas and compute nothing leave no value."
    made, page = book()
    page[f"{column}5"].value = '="fl"&"int"'
    refused = refusal(saved(made, tmp_path))
    assert re.search(rf"(?<![A-Z0-9]){column}5(?![0-9])", str(refused)), str(refused)


def test_formulas_without_values_in_a_whole_column_are_refused(tmp_path):
    "A column of formulas is no empty column: the questions do not lose a choice."
    made, page = book([[*row[:4], f'=CONCATENATE("marl ", {i})', row[5] if row[5] != "D" else "A"]
                       for i, row in enumerate(ROWS)])  # fmt: skip
    path = saved(made, tmp_path)
    assert re.search(r"(?<![A-Z0-9])E2(?![0-9])", str(refusal(path)))
    refusal(path, on_bad="skip")


def test_a_formula_with_its_value_is_read(tmp_path):
    "Excel stores the value beside the formula."
    made, page = book()
    page["C5"].value = "=40+2"
    path, out = saved(made, tmp_path, "raw.xlsx"), tmp_path / "mine.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for item in old.namelist():
            data = old.read(item)
            if item == "xl/worksheets/sheet1.xml":
                data, n = re.subn(rb"<f>40\+2</f><v\s*/>|<f>40\+2</f><v></v>", b"<f>40+2</f><v>42</v>", data)
                assert n == 1
            new.writestr(item, data)
    assert load(out).questions[3].choices[1] == "42"


@pytest.mark.parametrize("raised", ["superscript", "subscript"])
def test_a_raised_digit_is_refused(raised, tmp_path):
    "10³ typed with a raised 3 would be asked as 103."
    made, page = book()
    page["C5"].value = CellRichText("10", TextBlock(InlineFont(vertAlign=raised), "3"))
    path = saved(made, tmp_path)
    names_place(refusal(path), "C5", 4)
    same(load(path, on_bad="skip").questions, ROWS[:3] + ROWS[4:])


def test_bold_words_are_words(tmp_path):
    "A text of several fonts is one text."
    made, page = book()
    page["A5"].value = CellRichText("Which is ", TextBlock(InlineFont(b=True), "not"), " a stone?")
    assert load(saved(made, tmp_path)).questions[3].text == "Which is not a stone?"


# ---------------------------------------------------------------- merged cells


def test_a_merged_subject_is_the_subject_of_all_its_rows(tmp_path):
    "A merged cell keeps its value in its first row only; all rows get it."
    made, page = book([[f"stones {i // 4}" if i % 4 == 0 else None, *row] for i, row in enumerate(ROWS)],
                      ["subject", *HEAD])  # fmt: skip
    for first in (2, 6, 10):
        page.merge_cells(f"A{first}:A{first + 3}")
    found = load(saved(made, tmp_path)).questions
    same(found)
    assert [q.subject for q in found] == [f"stones {i // 4}" for i in range(12)]


@pytest.mark.parametrize("length", [3, 40], ids=["short", "long"])
def test_a_merged_passage_is_shown_with_all_its_rows(length, tmp_path):
    "Passages of any length: merged cells say themselves how far they reach."
    texts = [" ".join([f"Quarry {k} is old."] * length) for k in range(3)]
    made, page = book([[texts[i // 4] if i % 4 == 0 else None, *row] for i, row in enumerate(ROWS)], ["passage", *HEAD])
    for first in (2, 6, 10):
        page.merge_cells(f"A{first}:A{first + 3}")
    found = load(saved(made, tmp_path)).questions
    same(found, [[f"{texts[i // 4]}\n\n{row[0]}", *row[1:]] for i, row in enumerate(ROWS)])


def test_a_merged_title_is_no_header(tmp_path):
    "A title over all columns stands above the header."
    made = Workbook()
    page = made.active
    for row in [["Quiz of the quarry"], [], HEAD, *ROWS]:
        page.append(row)
    page.merge_cells("A1:F1")
    same(load(saved(made, tmp_path)).questions)


# ---------------------------------------------------------------- which sheet, which rows


def test_a_hidden_first_sheet_is_not_asked(tmp_path):
    "The sheet that is seen is read."
    made, page = book(OTHERS)
    page.sheet_state = "hidden"
    second = made.create_sheet("Quiz")
    for row in [HEAD, *ROWS]:
        second.append(row)
    made.active = 1
    same(load(saved(made, tmp_path)).questions)


@pytest.mark.parametrize("first", [True, False], ids=["questions first", "questions second"])
def test_the_sheet_with_questions_is_read_and_the_others_are_named(first, tmp_path):
    "Notes beside the questions, in whichever order."
    made = Workbook()
    for title in ["Quiz", "Remarks"][:: 1 if first else -1]:
        page = made.create_sheet(title)
        for row in [HEAD, *ROWS] if title == "Quiz" else [["What was changed", "Who"], ["The third row", "Ada"]]:
            page.append(row)
    del made["Sheet"]
    loaded = load(saved(made, tmp_path))
    same(loaded.questions)
    assert "Remarks" in loaded.said


def test_two_sheets_of_questions(tmp_path):
    "One of two sheets with questions is read and the other is named, or the file is refused with both names."
    made, page = book()
    page.title = "Stones"
    second = made.create_sheet("Rivers")
    for row in [HEAD, *OTHERS]:
        second.append(row)
    path = saved(made, tmp_path)
    try:
        loaded = load(path)
    except CoraError as e:
        assert "Stones" in str(e) and "Rivers" in str(e)
        return
    same(loaded.questions, ROWS if len(loaded.questions) == 12 else ROWS + OTHERS)
    assert "Rivers" in loaded.said


def test_a_header_on_the_third_row(tmp_path):
    "A title and an empty row above; a refused row is named by its number or its cell."
    made = Workbook()
    page = made.active
    for row in [["Quiz of the quarry"], ["spring 2026"], HEAD, *ROWS]:
        page.append(row)
    same(load(saved(made, tmp_path)).questions)
    page["F9"].value = "Z"
    error = refusal(saved(made, tmp_path))
    assert isinstance(error, BadRow) and (error.row, error.field, error.value) == (6, "answer", "Z")


def test_empty_rows_at_the_end(tmp_path):
    "Rows that hold nothing but a border, spaces or nothing are no questions."
    made, page = book([*ROWS, [None] * 6, ["", "", "", "", "", ""], ["  ", None, None, None, None, None]])
    page["A30"].number_format = "0%"
    same(load(saved(made, tmp_path)).questions)


def test_numbered_empty_rows_at_the_end(tmp_path):
    "A numbering that somebody drew down further than the questions."
    rows = [[i + 1, *row] for i, row in enumerate(ROWS)] + [[i + 1] + [None] * 6 for i in range(12, 20)]
    same(load(saved(book(rows, ["No.", *HEAD])[0], tmp_path)).questions)


def test_an_empty_row_between_is_no_question(tmp_path):
    "An empty row in the middle is left out, or refused by its row; no question is lost with it."
    made, page = book([*ROWS[:5], [None] * 6, *ROWS[5:]])
    path = saved(made, tmp_path)
    try:
        same(load(path).questions)
    except BadRow as e:
        assert e.row == 6


def test_empty_columns_about_the_table(tmp_path):
    "A table that does not begin in the first column is read, or refused as a whole."
    made, page = book([[None, *row, None] for row in ROWS], [None, *HEAD, None])
    try:
        found = load(saved(made, tmp_path)).questions
    except CoraError:
        return
    same(found)


def test_the_columns_of_a_sheet_can_be_said(tmp_path):
    "`columns=` names the columns of a sheet as it does those of a CSV file."
    made, page = book(head=["xq", "way_p", "way_q", "way_r", "way_s", "xk"])
    columns = {"question": "xq", "choices": "way_*", "answer": "xk"}
    same(load(saved(made, tmp_path), columns=columns).questions)
