"""A table of replies that somebody else wrote."""

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cora_nb.core import BadRow, CoraError, LETTERS, Question
from cora_nb.forms import Variant
from cora_nb.interop.formats import import_responses, recognise_tool
from cora_nb.interop.plain_table import import_table
from cora_nb.metrics.consistency import agreement_rate
from cora_nb.metrics.bias import order_consistency, position_ranks
from cora_nb.metrics.scoring import score
from cora_nb.respondents.protocol import Reply
from cora_nb.responses.responses import make_responses
from cora_nb.variants.families import make_variants
from helpers import slow_after

HEAD = "question_id,method,index,n_choices,answer,prediction\n"


def write(folder, text, name="t.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def load(folder, text, name="t.csv", encoding="utf-8", **options):
    return import_table(write(folder, text, name, encoding), **options)


def jsonl(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def notes(responses):
    return "\n".join(responses.facts.imported["notes"])


# what comes back


def test_the_least_table(tmp_path):
    found = load(tmp_path, "question_id,answer,prediction\nq1,B,B\nq2,A,C\nq3,D,\n")
    assert found.name == "t" and found.family == "cora"
    assert found.table[["method", "index", "trial", "answer", "prediction", "correct"]].values.tolist() == [
        ["original", 0, 0, 1, 1, True],
        ["original", 0, 0, 0, 2, False],
        ["original", 0, 0, 3, -1, False],
    ]
    assert "n_choices" not in found.table and "sources" not in found.table
    assert found.questions["text"].isna().all() and found.questions["answer"].tolist() == [1, 0, 3]
    assert "how many choices were shown is not known" in notes(found)
    assert "where each choice comes from is not known" in notes(found)
    assert "nothing about consistency" in notes(found)
    value = score(found).set_index("score")["value"]
    assert value["MCQA"] == pytest.approx(1 / 3)
    with pytest.raises(CoraError, match="no column n_choices, sources"):
        position_ranks(found)


def test_originals_with_their_number_of_choices_have_places_but_no_cora(tmp_path):
    found = load(tmp_path, "question_id,answer,prediction,n_choices\nq1,B,B,4\nq2,A,C,4\n")
    assert [*found.table["sources"]] == [(0, 1, 2, 3)] * 2
    scores = score(found).set_index("score")
    assert math.isnan(scores["value"]["CoRA"]) and scores["note"]["CoRA"] == "1 of 20 variants"
    assert len(position_ranks(found))


def test_every_kind_of_file_gives_the_same(tmp_path):
    rows = [
        {
            "question_id": "q1",
            "choices": ["a", "b", "c"],
            "answer": "B",
            "reply": "B",
            "method": "original",
            "index": 0,
        },
        {
            "question_id": "q1",
            "choices": ["b", "a", "c"],
            "answer": "A",
            "reply": "no",
            "method": "shuffled",
            "index": 0,
        },
        {"question_id": "q2", "choices": ["x", "ä\n,"], "answer": "A", "reply": "B", "method": "original", "index": 0},
        {"question_id": "q2", "choices": ["x", "None"], "answer": "A", "reply": "A", "method": "nota", "index": 0},
    ]
    frame = pd.DataFrame(rows)
    as_json = frame.assign(choices=frame["choices"].map(json.dumps))
    frame.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_text(jsonl(*rows))
    (tmp_path / "t.json").write_text(json.dumps(rows))
    as_json.to_csv(tmp_path / "t.csv", index=False)
    as_json.to_excel(tmp_path / "t.xlsx", index=False)
    letters = pd.DataFrame([{**r, **dict(zip(LETTERS, r["choices"]))} for r in rows]).drop(columns="choices")
    letters.to_csv(tmp_path / "letters.csv", index=False)
    found = [import_table(tmp_path / f) for f in ("t.csv", "t.jsonl", "t.json", "t.parquet", "t.xlsx", "letters.csv")]
    for other in found[1:]:
        assert other.table.drop(columns="respondent").equals(found[0].table.drop(columns="respondent"))
        assert other.questions.equals(found[0].questions)
    assert [*found[0].table["sources"]] == [(0, 1, 2), (1, 0, 2), (0, 1), (0, -1)]
    assert found[0].table["prediction"].tolist() == [1, -1, 1, 0]
    assert found[0].questions["choices"].tolist() == [("a", "b", "c"), ("x", "ä\n,")]
    assert "read by the rule careful" in notes(found[0])
    for f in ("t.csv", "t.jsonl", "t.json", "t.parquet", "t.xlsx"):
        assert recognise_tool(tmp_path / f) == "table"


def test_texts_are_enough_for_everything(tmp_path):
    questions = [Question(f"q{i}", f"Which {i}?", ("a", "b", "c", f"d{i}"), i % 4, "letters") for i in range(6)]
    for family in ("cora", "cyclic", "permutations"):
        variants = make_variants(questions, family)
        said = [LETTERS[(i * 7) % v.n_choices] for i, v in enumerate(variants)]
        rows = [
            {
                **{"question_id": v.question_id, "subject": v.subject, "question": v.asked, "family": v.family},
                **{"method": v.method, "index": v.index, "choices": v.choices, "answer": LETTERS[v.answer], "reply": r},
            }
            for v, r in zip(variants, said)
        ]
        found = load(tmp_path, jsonl(*rows), "t.jsonl")
        ours = make_responses(variants, said, name="t")
        assert found.table.equals(ours.table) and found.questions.equals(ours.questions)
        assert order_consistency(found).equals(order_consistency(ours))
        assert agreement_rate(found).equals(agreement_rate(ours))


def test_none_of_the_above_in_place_of_the_answer_is_new(tmp_path):
    rows = [
        {"question_id": "q", "method": "original", "choices": ["a", "b"], "answer": "A", "prediction": "A"},
        {"question_id": "q", "method": "nota_answer", "choices": ["b", "None"], "answer": "B", "prediction": "B"},
    ]
    found = load(tmp_path, jsonl(*rows), "t.jsonl")
    assert found.family == "table" and [*found.table["sources"]] == [(0, 1), (1, -1)]
    assert found.complete is None and "taken for 'table': no set is known to lack any" in notes(found)


def test_trials_and_repetitions(tmp_path):
    text = "question_id,trial,answer,prediction\nq,0,A,A\nq,1,A,B\n"
    assert load(tmp_path, text).trials == (0, 1)
    with pytest.raises(BadRow, match="original 0, trial 0, stands in row 1 already; tell variants apart by method"):
        load(tmp_path, text.replace(",1,", ",0,"))


def test_a_rule_reads_again_and_differences_are_counted(tmp_path):
    text = "question_id,n_choices,answer,prediction,reply,correct\nq1,4,B,A,The answer is (B).,true\nq2,4,A,A,A,TRUE\n"
    found = load(tmp_path, text)
    assert found.table["prediction"].tolist() == [0, 0]
    assert "the column correct says something else than answer and reply in 1 of 2 rows" in notes(found)
    again = load(tmp_path, text, parse="last_line")
    assert again.table["prediction"].tolist() == [1, 0] and again.table["correct"].all()
    assert "the rule last_line reads something else than the column prediction in 1 of 2 rows" in notes(again)


def test_scores_alone_are_enough(tmp_path):
    rows = [{"question_id": i, "answer": 0, "scores": s} for i, s in enumerate([[-1, -2.5], [-3, -1], [-1, -1]])]
    found = load(tmp_path, jsonl(*rows), "t.jsonl")
    assert found.table["prediction"].tolist() == [0, 1, -1] and found.table["reply"].isna().all()
    assert found.table["question_id"].tolist() == ["0", "1", "2"]


def test_an_empty_cell_is_an_empty_reply_where_the_model_was_asked(tmp_path):
    head = "question_id,n_choices,answer,prediction,reply,error\n"
    found = load(tmp_path, head + "q1,2,A,A,A,\nq2,2,A,,,\nq3,2,A,,,time out\nq4,2,A,B,,\n").table
    assert found["reply"].tolist()[:2] == ["A", ""] and found["reply"].isna().tolist() == [False, False, True, True]
    assert found["error"].tolist()[2] == "time out" and found["prediction"].tolist() == [0, -1, -1, 1]
    none = load(tmp_path, head + "q1,2,A,A,,\nq2,2,A,,,\n").table
    assert none["reply"].isna().all()  # the column is empty: nobody wrote replies down
    typed = jsonl(
        *[{"question_id": i, "n_choices": 2, "answer": "A", "reply": r} for i, r in enumerate(["A", "", None])]
    )
    assert load(tmp_path, typed, "t.jsonl").table["reply"].isna().tolist() == [False, False, True]


def test_without_originals_mcqa_is_not_known(tmp_path):
    found = load(tmp_path, HEAD + "q1,shuffled,0,4,A,A\nq1,shuffled,1,4,B,A\n")
    assert "no row has the method original: MCQA, CI and CoRA are not known" in notes(found)
    assert math.isnan(score(found).set_index("score")["value"]["MCQA"])


# letters and numbers


@pytest.mark.parametrize(
    "answers, predictions, n, expected, why",
    [
        ("ABC", "abB", 3, ([0, 1, 2], [0, 1, 1]), ""),
        ("012", "011", 3, ([0, 1, 2], [0, 1, 1]), "count from 0: row 1 has the answer 0"),
        ("132", "121", 3, ([0, 2, 1], [0, 1, 0]), "count from 1: no row has the answer 0, and row 2 has 3 of 3"),
        (["0.0", "1.0", "2"], ["", "-1", "1.0"], 3, ([0, 1, 2], [-1, -1, 1]), "count from 0: row 1"),
        ("ABC", "EAZ", 3, ([0, 1, 2], [-1, 0, -1]), "2 predictions are letters that were not shown"),
    ],
)
def test_letters_and_numbers(tmp_path, answers, predictions, n, expected, why):
    rows = "".join(f"q{i},original,0,{n},{a},{p}\n" for i, (a, p) in enumerate(zip(answers, predictions)))
    found = load(tmp_path, HEAD + rows)
    assert (found.table["answer"].tolist(), found.table["prediction"].tolist()) == expected
    assert why in notes(found)


@pytest.mark.parametrize(
    "answers, predictions, n",
    [("112", "121", 3), ("112", "012", 3), ("111", "333", 3), ("ABC", "123", 3), ("123", "ABC", 4), ("121", "121", "")],
)
def test_digits_that_could_count_from_0_or_from_1_are_refused(tmp_path, answers, predictions, n):
    "A 0 or a 3 among the predictions proves nothing: the model may have said nothing, or too much."
    rows = "".join(f"q{i},original,0,{n},{a},{p}\n" for i, (a, p) in enumerate(zip(answers, predictions)))
    with pytest.raises(CoraError, match="holds numbers, and nothing says whether they count from 0 or from 1; write"):
        load(tmp_path, HEAD + rows)
    named = HEAD.replace("answer", "answer_index").replace("prediction", "prediction_index")
    if answers.isdigit() and predictions.isdigit() and n and "3" not in answers + predictions:
        assert load(tmp_path, named + rows).table["answer"].tolist() == [*map(int, answers)]


def test_one_column_of_ours_does_not_make_numbers_ours(tmp_path):
    "A table of ours has `form` and `sources`, and its numbers count from 0; a `form` that others have proves nothing."
    with pytest.raises(CoraError, match="nothing says whether they count from 0 or from 1"):
        load(tmp_path, HEAD.replace("\n", ",form\n") + "q0,original,0,3,1,2,mcq\nq1,original,0,3,2,1,mcq\n")


# malformed rows and tables

BAD = [
    ("q2,original,0,4,A,Paris", "prediction: must be a letter, or empty for no choice, got 'Paris'"),
    ("q2,original,0,4,E,A", "answer: must be a choice, from A to D, got 'E'"),
    ("q2,original,0,4,?,A", "answer: must be a letter, got '?'"),
    ("q2,original,0,4,,A", "answer: must not be missing, got None"),
    ("q2,original,0,,A,A", "n_choices: must not be missing in some rows and known in others, got None"),
    ("q2,original,0,1,A,A", "n_choices: must be from 2 to 26, got 1"),
    ("q2,original,0,four,A,A", "n_choices: must be a whole number, got 'four'"),
    ("q2,original,-1,4,A,A", "index: must be 0 or more, got '-1'"),
    ("q2,original,0,4,A", "the row has 5 cells and the header 6"),
    ("q1,original,0,4,A,B", "index: original 0, trial 0, stands in row 1 already"),
]


@pytest.mark.parametrize("row, why", BAD)
def test_a_bad_row_is_named_or_left_out(tmp_path, row, why):
    path = write(tmp_path, f"{HEAD}q1,original,0,4,A,A\n{row}\nq3,original,0,4,B,A\n")
    with pytest.raises(BadRow) as e:
        import_table(path)
    assert str(e.value).startswith(f"{path}, row 2") and why in str(e.value)
    with pytest.warns(UserWarning, match="left out 1 of 3 rows that could not be read, the first of them"):
        rest = import_table(path, on_bad="skip")
    assert rest.table["question_id"].tolist() == ["q1", "q3"] and "left out 1 of 3 rows" in notes(rest)


BAD_VALUES = [
    ({"question_id": None}, "question_id: must not be missing"),
    ({"question_id": 1.5}, "question_id: must be a text"),
    ({"answer": True}, "answer: must be a letter, got True"),
    ({"choices": "a, b"}, "choices: must be a list, in a CSV cell a JSON list"),
    ({"choices": ["a"]}, "choices: must hold 2 to 26 choices, and holds 1"),
    ({"choices": ["a", " "]}, "choices: every choice must be a text that is not empty"),
    ({"choices": ["a", "b", "c"]}, "choices: must hold one entry for each of the 2 choices"),
    ({"scores": [-1]}, "scores: must hold one entry for each of the 2 choices"),
    ({"scores": ["x", "y"]}, "scores: must be a number"),
    ({"sources": [0, 0.5]}, "sources: must be a whole number"),
    ({"sources": [0, 7], "original_choices": ["a", "b"]}, "sources: must be below 2, the number of original choices"),
    ({"confidence": 1.01}, "confidence: must be from 0 to 1"),
    ({"correct": "maybe"}, "correct: must be true or false"),
    ({"form": "essay"}, "form: "),
    ({"form": "several", "selected": [0, 2]}, "selected: must be places from 0 to 1, got (0, 2)"),
    ({"error": "time out"}, "prediction: a row with an error has no prediction, got 'A'"),
    ({"question": "  "}, "question: the question must be a non-empty text"),
    ({"original_answer": 2}, "original_answer: must be below 2, the number of original choices, got 2"),
]


@pytest.mark.parametrize("change, why", BAD_VALUES)
def test_a_bad_value_is_named_or_its_row_left_out(tmp_path, change, why):
    base = {"question": "Q?", "choices": ["a", "b"], "answer": "A", "prediction": "A"}
    rows = [{"question_id": "q1", "n_choices": 2, **base}, {"question_id": "q2", "n_choices": 2, **base, **change}]
    path = write(tmp_path, jsonl(*rows), "t.jsonl")
    with pytest.raises(BadRow) as e:
        import_table(path)
    assert str(e.value).startswith(f"{path}, row 2") and why in str(e.value), e.value
    with pytest.warns(UserWarning, match="left out 1 of 2 rows"):
        assert import_table(path, on_bad="skip").table["question_id"].tolist() == ["q1"]


def test_rows_that_contradict_each_other(tmp_path):
    first = {"question_id": "q", "method": "original", "choices": ["a", "b"], "answer": "A", "prediction": "A"}
    for second, why in [
        (
            {"choices": ["b", "a"], "answer": "A"},
            "answer: the right choice is 'b' here and 'a' in the original, got 'A'",
        ),
        ({"original_choices": ["a", "c"]}, "original_choices: an earlier row of the question has ('a', 'b')"),
        ({"original_answer": 1}, "original_answer: an earlier row of the question has 0"),
    ]:
        rows = jsonl(first, {**first, "method": "shuffled", **second})
        with pytest.raises(BadRow, match="row 2") as e:
            load(tmp_path, rows, "t.jsonl")
        assert why in str(e.value)
    rows = jsonl({**first, "subject": "x"}, {**first, "method": "shuffled", "subject": "y"})
    with pytest.raises(BadRow, match="subject: an earlier row of the question has 'x', got 'y'"):
        load(tmp_path, rows, "t.jsonl")


WHOLE = [
    ("id,answer,prediction\nq1,A,A\n", "the column question_id is missing; there are id, answer, prediction"),
    ("question_id,prediction\nq1,A\n", "the column answer is missing; there are question_id, prediction"),
    ("question_id,answer\nq1,A\n", "there is no column prediction, reply or scores"),
    (
        "question_id,answer,reply\nq1,A,A\n",
        "to read replies, the number of choices shown is needed; add the column n_choices",
    ),
    ("question_id,answer,answer_index,prediction\nq1,A,0,A\n", "answer and answer_index say the same"),
    ("question_id,answer,Answer,prediction\nq1,A,A,A\n", "two columns are called 'answer'"),
    ("question_id,answer,prediction,A,C\nq1,A,A,a,c\n", "must be A, B, C, ... without a gap"),
    ("question_id,answer,prediction\n", "the file has no rows"),
    ("", "the file is empty"),
    ('question_id,answer,prediction\nq1,A,"A\n', "is not CSV"),
    ("question_id,family,answer,prediction\nq1,cora,A,A\nq2,cyclic,A,A\n", "several families, cora, cyclic; divide"),
]


@pytest.mark.parametrize("text, why", WHOLE)
def test_tables_that_are_wrong_as_a_whole(tmp_path, text, why):
    for on_bad in ("raise", "skip"):
        with pytest.raises(CoraError, match=why.replace("(", r"\(")) as e:
            load(tmp_path, text, on_bad=on_bad)
        assert str(e.value).startswith(str(tmp_path / "t.csv")) and "\n" not in str(e.value)


def test_other_files_and_options_that_are_wrong(tmp_path):
    with pytest.raises(CoraError, match="there is no such file"):
        import_table(tmp_path / "none.csv")
    with pytest.raises(CoraError, match="must end in one of .csv, .tsv, .txt, .json, .jsonl, .ndjson, .parquet, .xlsx"):
        load(tmp_path, "x", "t.docx")
    with pytest.raises(CoraError, match="not a readable Parquet file"):
        load(tmp_path, "x", "t.parquet")
    with pytest.raises(CoraError, match="not a readable xlsx file"):
        load(tmp_path, "x", "t.xlsx")
    with pytest.raises(CoraError, match="holds no list of rows; it has 'a', 'b'"):
        load(tmp_path, '{"a": 1,\n"b": 2}', "t.json")
    with pytest.raises(BadRow, match="row 2: the line is not JSON"):
        load(tmp_path, '{"question_id": 1, "answer": "A", "prediction": "A"}\n{"question_id": 2, "ans', "t.jsonl")
    with pytest.raises(BadRow, match="row 1: must be a JSON object"):
        load(tmp_path, "[1]\n", "t.jsonl")
    with pytest.raises(CoraError, match="on_bad must be one of raise, skip, got 'ignore'"):
        load(tmp_path, HEAD, on_bad="ignore")
    with pytest.raises(CoraError, match="there is no column reply to read"):
        load(tmp_path, HEAD + "q1,original,0,4,A,A\n", parse="last_line")
    with pytest.raises(CoraError, match="no_such_rule"):
        load(tmp_path, "question_id,n_choices,answer,reply\nq,4,A,A\n", parse="no_such_rule")


def test_nearly_all_rows_bad_is_another_table(tmp_path):
    text = HEAD + "q,original,0,4,A,A\n" + "".join(f"q{i},original,0,4,A,Paris\n" for i in range(20))
    with pytest.raises(CoraError, match="left out 20 of 21 rows that could not be read, so the columns probably mean"):
        load(tmp_path, text, on_bad="skip")


def test_nothing_is_evaluated(tmp_path):
    for cell in ("__import__('os').mkdir('owned')", "('a', __import__('os').mkdir('owned'))", "(" * 100_000):
        text = f'question_id,answer,prediction,choices\nq1,A,A,"{cell}"\n'
        with pytest.raises(BadRow, match="choices: must be a list"):
            load(tmp_path, text)
    assert not (tmp_path / "owned").exists()
    with pytest.raises(BadRow, match="choices: must be a list"):
        load(tmp_path, jsonl({"question_id": 1, "answer": "A", "prediction": "A", "choices": "[" * 100_000}), "t.jsonl")


# encodings and the ends of lines


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_byte_order_marks_and_ends_of_lines(tmp_path, encoding, end):
    text = 'question_id,n_choices,answer,reply\nüñ,3,B,"B,\nbecause …"\n'.replace("\n", end)
    found = load(tmp_path, text, encoding=encoding)
    assert found.table["question_id"].tolist() == ["üñ"] and found.table["prediction"].tolist() == [1]
    assert found.table["reply"].tolist() == [f"B,{end}because …"]
    lines = f'{{"question_id": "ü", "answer": "A", "prediction": "A"}}{end}{end}'
    assert load(tmp_path, lines, "t.jsonl", encoding).table["question_id"].tolist() == ["ü"]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_one_odd_byte_is_damage(tmp_path, encoding):
    with pytest.raises(CoraError, match=r"t.csv: line \d is not UTF-8 \(byte 0x..\); save the file as UTF-8"):
        load(tmp_path, "question_id,answer,prediction\nzürich,A,B\n", encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
@pytest.mark.parametrize("separator", ";\t")
def test_other_encodings_and_separators_are_read_and_said(tmp_path, encoding, separator):
    text = "question_id,answer,prediction\nzürich,A,B\nköln,A,A\nmünchen,B,B\n"
    found = load(tmp_path, text.replace(",", separator), encoding=encoding)
    assert found.table["question_id"].tolist() == ["zürich", "köln", "münchen"]
    said = " ".join(found.facts.imported["notes"])
    assert "cells are separated by" in said and ("cp1252" in said) == (encoding == "cp1252")


# several respondents

BOTH = "model,question_id,answer,prediction\nsmall,q1,B,A\nlarge,q1,B,B\n"


def test_one_respondent_is_selected(tmp_path):
    why = "the column model names 2 models, small, large; choose: select='small', on the command line --select"
    with pytest.raises(CoraError, match=why):
        load(tmp_path, BOTH)
    found = load(tmp_path, BOTH, select="large")
    assert found.name == "large" and found.table["prediction"].tolist() == [1]
    with pytest.raises(CoraError, match="the column model has no 'huge', only small, large"):
        load(tmp_path, BOTH, select="huge")
    with pytest.raises(CoraError, match="there is no column respondent or model to select 'x' from"):
        load(tmp_path, "question_id,answer,prediction\nq,A,A\n", select="x")
    assert load(tmp_path, BOTH + "small,q2,nonsense,A\n", select="large").name == "large"  # not its fault


def test_the_way_in_for_all_tools(tmp_path):
    path = write(tmp_path, BOTH)
    found = import_responses(path, select="small", benchmark="mine")
    assert found.name == "small" and found.facts.imported["format"] == "table"
    assert found.facts.run.plain() == {"model": "small", "benchmark": "mine"}
    assert import_responses(path, select="small", model="tiny").name == "tiny"


def test_workbooks_are_told_apart_by_their_first_row(tmp_path):
    pd.DataFrame({"question": ["Q?"], "expanded_evaluation": ["{}"]}).to_excel(tmp_path / "cat.xlsx", index=False)
    pd.DataFrame({"question_id": ["q"], "answer": ["A"]}).to_excel(tmp_path / "table.xlsx", index=False)
    (tmp_path / "none.xlsx").write_text("no zip")
    assert recognise_tool(tmp_path / "cat.xlsx") == "cat" and recognise_tool(tmp_path / "table.xlsx") == "table"
    with pytest.raises(CoraError, match="none.xlsx: not a readable xlsx file"):
        import_responses(tmp_path / "none.xlsx")


# what this package wrote comes back equal

texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\r"), min_size=1, max_size=12)
words = texts.filter(lambda text: bool(text.strip()))
shares = st.one_of(st.none(), st.floats(0, 1))


@st.composite
def runs(draw):
    "Responses to variants of every kind, with replies, scores, errors and trials."
    ids = draw(st.lists(words, min_size=1, max_size=4, unique=True))
    questions = []
    for id in ids:
        choices = tuple(draw(st.lists(words, min_size=2, max_size=5)))
        answer = draw(st.integers(0, len(choices) - 1))
        questions.append(Question(id, draw(words), choices, answer, draw(st.one_of(st.none(), words))))
    family = draw(st.sampled_from(["cora", "cyclic", "reorderings", "mcqa_plus"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        variants = [v for q in questions for v in _variants(q, family)]
    variants = draw(st.lists(st.sampled_from(variants), min_size=1, max_size=12, unique_by=lambda v: v.key))
    scored, replies = draw(st.booleans()), []
    for v in variants:
        kind = draw(st.sampled_from(["fine", "fine", "fine", "error"]))
        numbers = st.lists(st.floats(-50, 0), min_size=v.n_choices, max_size=v.n_choices)
        meta = {"finish_reason": draw(st.sampled_from([None, "stop", "length"]))}
        meta |= {"completion_tokens": draw(st.one_of(st.none(), st.integers(0, 99))), "mean_logprob": draw(shares)}
        if kind == "error":
            replies.append(Reply(error=draw(words)))
        elif scored:
            replies.append(Reply(scores=tuple(draw(numbers)), confidence=draw(shares), meta=meta))
        else:
            text = draw(st.one_of(st.sampled_from(["A", "B", "A, C", "Yes", "no idea", ""]), texts))
            replies.append(Reply(text, confidence=draw(shares), meta=meta))
    trials = [draw(st.integers(0, 3)) for _ in variants]
    return make_responses(variants, replies, "first_token", trials, draw(words))


def _variants(question, family):
    try:
        return make_variants([question], family)
    except CoraError:  # the family does not take it
        return [
            Variant(question, family, "original", 0, question.choices, question.answer, (*range(question.n_choices),))
        ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(run=runs())
@pytest.mark.parametrize("kind", slow_after(0, ["csv", "parquet", "jsonl"]))
def test_a_run_comes_back_equal(tmp_path_factory, kind, run):
    path = tmp_path_factory.mktemp("t") / f"t.{kind}"
    frame = run.to_frame(texts=True)
    if kind == "csv":
        if (frame["reply"].fillna("x") == "").all():
            return  # a column of nothing but empty cells: nobody wrote replies down
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        path.write_text("".join(json.dumps(_plain(row)) + "\n" for row in frame.to_dict("records")))
    found = import_table(path)
    pd.testing.assert_frame_equal(found.table, run.table, check_exact=True)
    pd.testing.assert_frame_equal(found.questions, run.questions)
    assert found.name == run.name and found.family == run.family


def _plain(row):
    return {
        name: value.item() if isinstance(value, np.generic) else None if _missing(value) else value
        for name, value in row.items()
    }


def _missing(value):
    return value is None or value is pd.NA or isinstance(value, float) and math.isnan(value)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_anything_in_a_table_is_read_or_refused_in_one_line(tmp_path_factory, data):
    columns = data.draw(
        st.lists(
            st.sampled_from(
                ["question_id", "answer", "prediction", "reply", "choices", "n_choices", "sources", "scores", "index"]
                + ["method", "trial", "error", "subject", "question", "A", "B", "respondent", "family", "selected"]
            ),
            unique=True,
            min_size=1,
        )
    )
    cells = st.one_of(
        st.none(),
        st.integers(-2, 30),
        st.floats(),
        st.booleans(),
        st.sampled_from(["", "A", "B", "Z", "0", "1", "(0, 1)", "['a', 'b']", '["a", "b"]', "nan"]),
        st.lists(st.one_of(st.integers(-2, 3), st.text(max_size=2), st.none()), max_size=3),
        texts,
    )
    rows = data.draw(st.lists(st.fixed_dictionaries({c: cells for c in columns}), min_size=1, max_size=4))
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    path.write_text(jsonl(*rows))
    for on_bad in ("raise", "skip"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = import_table(path, on_bad=on_bad)
        except CoraError as e:
            assert str(e).startswith(str(path))
        else:
            assert 1 <= len(found) <= len(rows)


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=200), kind=st.sampled_from(["csv", "jsonl", "json", "parquet", "xlsx"]))
def test_any_bytes_are_refused_in_one_line(tmp_path_factory, data, kind):
    path = tmp_path_factory.mktemp("t") / f"t.{kind}"
    path.write_bytes(data)
    with pytest.raises(CoraError) as e:
        import_table(path)
    assert str(e.value).startswith(str(path)) and "\n" not in str(e.value)
