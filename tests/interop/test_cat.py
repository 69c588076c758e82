"""The recorded files of the CoRA authors' tool."""

import csv
import json

import pytest

from cora_nb.core import BadRow, CoraError
from cora_nb.interop.cat import _CAT_METHODS, import_cat, read_cat
from cora_nb.runs.asking import Asking

HEADER = ["question", "answer", "options", "expanded_evaluation"]


def entry(choices=("a", "b", "c"), right="B", said="A", **more):
    return {
        "choices": dict(zip("ABCDEFG", choices)),
        "correct_choice": right,
        "model_choice": said,
        "output": said,
    } | more


GOOD = {
    "standard_MC": [entry(), entry(said="B")],
    "standard_MC_wNOTA": [entry(("None of the above", "b", "c"))],
    "decoupled_MC": [entry(("b", "a"), "A"), entry(("b", "c"), "A")],
}


def write(tmp_path, cells, kind="csv", header=HEADER, question="Q?"):
    path = tmp_path / f"file.{kind}"
    rows = [header, *[[question, "", "", c if isinstance(c, str) or c is None else json.dumps(c)] for c in cells]]
    if kind == "csv":
        with path.open("w", newline="", encoding="utf-8") as f:
            csv.writer(f).writerows(rows)
    else:
        from openpyxl import Workbook

        book = Workbook()
        for r in rows:
            book.active.append(r)
        book.save(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_both_kinds_of_file(tmp_path, kind):
    table = import_cat(write(tmp_path, [GOOD, GOOD], kind)).table
    assert table["question_id"].tolist() == ["0"] * 5 + ["1"] * 5
    assert list(zip(table["method"], table["index"], table["trial"]))[:5] == [
        ("original", 0, 0),
        ("original", 0, 1),
        ("nota", 0, 0),
        ("decoupled", 0, 0),
        ("decoupled", 1, 0),
    ]
    assert [list(s) for s in table["sources"][:5]] == [[0, 1, 2], [0, 1, 2], [-1, 1, 2], [1, 0], [1, 2]]
    assert table["prediction"].tolist()[:5] == [0, 1, 0, 0, 0] and table["correct"].tolist()[:5] == [
        False,
        True,
        False,
        True,
        True,
    ]


BAD = [
    ('{"standard_MC": [', "broken JSON at character 17 of 17"),
    (
        json.dumps({"standard_MC": [entry(("x" * 20_000, "y" * 20_000), "A")]})[:32_767],
        "cut off at a spreadsheet's limit of 32,767 characters",
    ),
    ("", "the cell must hold JSON"),
    ("[1]", "must be an object of methods"),
    ({"standard_MC": []}, "no entry standard_MC"),
    ({"standard_mc": [entry()]}, "the methods are standard_MC"),
    ({"standard_MC": ["A"]}, "an entry must be an object"),
    ({"standard_MC": [entry(right=None)]}, "correct_choice must be one of the letters shown, got None"),
    ('{"standard_MC": [], "standard_MC": []}', "named twice"),
    ({"standard_MC": [entry(right="D")]}, "letters shown, got 'D'"),
    ({"standard_MC": [entry(("a",), "A")]}, "2 to 26 texts"),
    ({"standard_MC": [entry() | {"choices": {"B": "a", "A": "b"}}]}, "letters from A on"),
    ({"standard_MC": [entry(("a", None, "c"))]}, "every choice must be a text"),
    ({"standard_MC": [{"choices": {"A": "a", "B": "b"}, "correct_choice": "A"}]}, "was the model run"),
    (
        {"standard_MC": [entry()], "decoupled_MC": [entry(("a", "c"), "A")]},
        "the right choice of decoupled_MC is not the question's",
    ),
]


@pytest.mark.parametrize("cell,why", BAD)
def test_a_row_that_cannot_be_read_is_named_and_never_replaced(tmp_path, cell, why):
    path = write(tmp_path, [GOOD, cell, GOOD])
    with pytest.raises(BadRow, match=why) as e:
        import_cat(path)
    assert str(e.value).startswith(f"{path}, row 2, id '1', ") and (e.value.row, e.value.field) in [
        (2, "expanded_evaluation"),
        (2, "choices"),
    ]
    with pytest.warns(UserWarning, match="left out 1 rows"):
        rest = import_cat(path, on_bad="skip")
    assert rest.table["question_id"].unique().tolist() == ["0", "2"]  # nothing counted twice


@pytest.mark.parametrize("said", [None, "", ["A"], {"A": 1}, "(", "5", "Z", "b", "AB", 3])
def test_a_prediction_that_is_no_letter_is_unparsed(tmp_path, said):
    table = import_cat(write(tmp_path, [{"standard_MC": [entry(said=said)]}])).table
    assert table["prediction"].tolist() == [-1] and not table["correct"].any()


def test_whole_files_that_are_wrong(tmp_path):
    with pytest.raises(CoraError, match="there is no such file"):
        import_cat(tmp_path / "nothing.xlsx")
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(CoraError, match="a.json: the rows have no columns"):
        import_cat(tmp_path / "a.json")
    (tmp_path / "a.xlsx").write_text("no zip")
    with pytest.raises(CoraError, match="a.xlsx: not a readable xlsx file"):
        import_cat(tmp_path / "a.xlsx")
    with pytest.raises(
        CoraError, match="the column expanded_evaluation is missing; there are question, answer, options, x"
    ):
        import_cat(write(tmp_path, [GOOD], header=["question", "answer", "options", "x"]))
    with pytest.raises(CoraError, match="the file has no rows"):
        import_cat(write(tmp_path, []))
    (tmp_path / "latin.csv").write_bytes(",".join(HEADER).encode() + b"\nQ\xe9,,,{}\n")
    with pytest.raises(CoraError, match="latin.csv: line 2 is not UTF-8"):
        import_cat(tmp_path / "latin.csv")
    with pytest.raises(CoraError, match="on_bad must be one of raise, skip, got 'ignore'"):
        import_cat(tmp_path / "latin.csv", on_bad="ignore")


def test_nothing_is_evaluated(tmp_path):
    path = write(tmp_path, [GOOD])
    text = path.read_text().replace(",,", ",\"__import__('os').mkdir('owned')\",", 1)
    path.write_text(text)
    import_cat(path)
    assert not (tmp_path / "owned").exists()


def test_outputs_can_be_parsed_again(tmp_path):
    path = write(tmp_path, [{"standard_MC": [entry(said="A", output="The answer is (B).")]}])
    assert import_cat(path).table["prediction"].tolist() == [0]
    assert import_cat(path, parse="careful").table["prediction"].tolist() == [1]


@pytest.mark.slow
def test_a_record_answers_its_own_variants(recorded_at, medalpaca_texts):
    "All 33,098 recorded replies, asked again, give the same responses."
    medalpaca = medalpaca_texts
    from cora_nb.respondents.simulated import RecordedRespondent
    from cora_nb.runs.evaluate import evaluate

    variants = [r.variant for r in read_cat(recorded_at("cat/medqa/medalpaca-7b")) if r.trial == 0]
    record = RecordedRespondent(medalpaca, name=medalpaca.name)
    again = evaluate(record, variants, Asking(parse="first_character"), progress=False)
    assert len(again) == 33_098 and again.table.equals(medalpaca.first_trial().table)
    assert again.questions.equals(medalpaca.questions) and medalpaca.first_trial().complete


@pytest.mark.slow
def test_the_recorded_file(recorded_at, medalpaca_texts):
    medalpaca = medalpaca_texts
    table = medalpaca.table
    assert len(medalpaca) == 1273 * (11 + 11 + 24) and len(medalpaca.questions) == 1273
    assert set(table["method"]) == set(_CAT_METHODS.values())
    by_method = table.groupby(["method", "index"]).size()
    assert (by_method.drop(["original", "shuffled"]) == 1273).all() and by_method["original", 0] == by_method[
        "shuffled", 0
    ] == 11 * 1273
    for row in table[table["method"].isin(["original", "nota", "decoupled_nota"])].head(500).itertuples():
        assert row.sources[row.answer] >= 0 and sum(s == -1 for s in row.sources) == (
            0 if row.method == "original" else 1
        )
    record = read_cat(recorded_at("cat/medqa/medalpaca-7b"))[0]
    assert record.variant.question.text.startswith("A junior orthopaedic surgery resident")
