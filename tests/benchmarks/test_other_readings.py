"Files that look as if they said something else: what an attack on the loader found, a test for each kind."

import json
import os
import subprocess
import sys
import time

import pandas as pd
import pytest
from benchmarks.written import refusal

from cora_nb.benchmarks.layouts import LAYOUTS, Layout
from cora_nb.benchmarks.load import load_benchmark, read_benchmark
from cora_nb.core import CoraError

WXYZ = {"A": "w", "B": "x", "C": "y", "D": "z"}


def jsonl(folder, rows, name="mine.jsonl"):
    (folder / name).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return folder / name


def rows_of(n=12, **columns):
    "Rows with a question and four choices; a function makes a value of the row's number."
    return [
        {"question": f"Which is {i}?"} | WXYZ | {c: v(i) if callable(v) else v for c, v in columns.items()}
        for i in range(n)
    ]


# ---------------------------------------------------------------- columns


@pytest.mark.parametrize(
    "spec, text",
    [
        (["scenario", "ask"], "Tom has 3 apples.\n\nHow many are left?"),
        ("scenario, ask", "Tom has 3 apples.\n\nHow many are left?"),
        ("Story: {scenario} Ask: {ask}", "Story: Tom has 3 apples. Ask: How many are left?"),
    ],
)
def test_a_question_of_two_columns_is_shown_whole(spec, text, tmp_path):
    rows = [WXYZ | {"scenario": "Tom has 3 apples.", "ask": "How many are left?", "answer": "B"}] * 2
    assert load_benchmark(jsonl(tmp_path, rows), columns={"question": spec})[0].text == text
    with pytest.raises(CoraError, match="subject must be one column"):
        load_benchmark(jsonl(tmp_path, rows), columns={"question": "ask", "subject": ["scenario", "ask"]})


def test_two_columns_that_may_be_the_question_are_refused(tmp_path):
    rows = rows_of(4, problem=lambda i: f"Tom has {i} apples and a pear.", answer="B")
    said = str(refusal(jsonl(tmp_path, rows)))
    assert 'columns={"question": ["question", "problem"]}' in said
    both = load_benchmark(jsonl(tmp_path, rows), columns={"question": ["problem", "question"]})
    assert both[1].text == "Tom has 1 apples and a pear.\n\nWhich is 1?"
    numbered = [row | {"Question Text": row.pop("question"), "Question": f"Question {i}"} for i, row in enumerate(rows)]
    numbered = [{k: v for k, v in row.items() if k != "problem"} for row in numbered]
    assert load_benchmark(jsonl(tmp_path, numbered))[1].text == "Which is 1?"


def test_a_column_without_a_name_is_no_way_out(tmp_path):
    long = "The ferry to the island sails at noon every day, and on Sundays at nine, too. It is blue and white."
    for n in (1, 2):
        lines = [
            ["question", *"ABCD", "answer", *[""] * n],
            *[[f"Which {i}?", *"wxyz", "B", *[long] * n] for i in "12"],
        ]
        (tmp_path / "mine.csv").write_text("".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines))
        assert "long texts" in str(refusal(tmp_path / "mine.csv"))


def test_a_pattern_of_choices_follows_their_labels(tmp_path):
    rows = [
        {
            "question": f"Which is {i}?",
            "option_c": "y",
            "option_b": "x",
            "option_a": "w",
            "option_count": 3,
            "answer": "A",
        }
        for i in range(4)
    ]
    found = load_benchmark(jsonl(tmp_path, rows), columns={"choices": "option_*"})
    assert found[0].choices == ("w", "x", "y") and found[0].answer == 0
    rows = [{"question": "Which?", "a1": "w", "a2": "x", "answer": "B"}] * 2
    assert load_benchmark(jsonl(tmp_path, rows), columns={"choices": "a*"})[0].choices == ("w", "x")
    with pytest.raises(CoraError, match="cannot tell which column holds the answer"):
        load_benchmark(jsonl(tmp_path, rows), columns={"choices": ["a1", "a2", "answer"]})


@pytest.mark.parametrize("column", ["Image Link", "img_url", "question_image", "diagram"])
def test_columns_of_pictures_with_other_names(column, tmp_path):
    rows = rows_of(6, answer="B", **{column: lambda i: "https://pictures.example/a?id=1" if i == 2 else ""})
    assert refusal(jsonl(tmp_path, rows)).row == 3
    assert len(load_benchmark(jsonl(tmp_path, rows), columns={"image": None})) == 6
    named = rows_of(6, answer="B", what=lambda i: f"lamp{i}.png")
    assert refusal(jsonl(tmp_path, named)).field == "what"


@pytest.mark.parametrize(
    "mark", ["<svg>", "![lamp][1]", "[asy]", "\\begin{tikzpicture}", "https://pictures.example/a.png"]
)
def test_other_marks_of_pictures(mark, tmp_path):
    rows = rows_of(4, answer="B")
    rows[1]["question"] += f" {mark} "
    assert refusal(jsonl(tmp_path, rows)).row == 2


# ---------------------------------------------------------------- choices


def test_marks_between_choices(tmp_path):
    rows = [{"question": f"Which is {i}?", "options": "(1;2) / (3;4) / (5;6) / (7;8)", "answer": "B"} for i in range(4)]
    said = str(refusal(jsonl(tmp_path, rows)))
    assert "';'" in said and "' / '" in said
    for i, row in enumerate(rows):  # only one of the marks divides all cells alike
        row["options"] = "one" + "; two" * (i + 1) + " / three; four"
    found = read_benchmark(jsonl(tmp_path, rows))
    assert found.questions[1].choices == ("one; two; two", "three; four") and "separated by ' / '" in found.line


def test_numbers_of_json_are_shown_as_written(tmp_path):
    (tmp_path / "m.jsonl").write_text('{"question": "Which is it?", "choices": [1.50, 2.00, 1e3], "answer": "B"}\n' * 2)
    assert load_benchmark(tmp_path / "m.jsonl")[0].choices == ("1.50", "2.00", "1e3")


def test_whole_numbers_of_a_frame_are_choices():
    frame = pd.DataFrame({"question": ["What is it?", "And this?"], "A": [1, 2], "B": [2, 3], "answer": ["A", "B"]})
    assert load_benchmark(frame)[1].choices == ("2", "3")


@pytest.mark.parametrize(
    "labels", [("a) ", "b) ", "c) "), ("(a) ", "(b) ", "(c) "), ("1. ", "2. ", "3. "), ("A.", "B.", "C.")]
)
def test_labels_in_front_of_choices(labels, tmp_path):
    rows = [{"question": f"{i}?", "choices": [a + b for a, b in zip(labels, "wxy")], "answer": "B"} for i in range(4)]
    with pytest.warns(UserWarning, match="own labels"):
        assert load_benchmark(jsonl(tmp_path, rows))[0].choices == ("w", "x", "y")
    numbers = [row | {"choices": ["1.5", "2.5", "3.5"]} for row in rows]
    assert load_benchmark(jsonl(tmp_path, numbers))[0].choices == ("1.5", "2.5", "3.5")


# ---------------------------------------------------------------- answers


def test_a_key_that_cannot_be_read_is_not_replaced_by_a_flag(tmp_path):
    rows = rows_of(answer=lambda i: ["A,C", "B", "A,B,D"][i % 3], label=lambda i: i % 2)
    error = refusal(jsonl(tmp_path, rows))
    assert error.field == "answer" and 'columns={"answer": "label"}' in str(error)


def test_numbers_beside_numeric_labels(tmp_path):
    options = {str(k): f"choice {k}" for k in range(1, 5)}

    def file(**answer):
        name, value = next(iter(answer.items()))
        return jsonl(tmp_path, [{"question": f"{i}?", "options": options, name: value(i)} for i in range(20)])

    for path in (file(answer=lambda i: i % 4), file(answer_index=lambda i: i % 3 + 1)):
        said = str(refusal(path))
        assert 'answer_as="label"' in said and 'answer_as="from 0"' in said
    path = file(answer=lambda i: i % 3 + 1)
    assert [q.answer for q in load_benchmark(path)] == [i % 3 for i in range(20)]
    path = file(answer=lambda i: i % 4)
    assert [q.answer for q in load_benchmark(path, answer_as="from 0")] == [i % 4 for i in range(20)]


def test_plain_columns_are_no_proof_of_a_layout(tmp_path):
    "Question, choices, answer and subject are MMLU's columns, and everybody's."
    rows = [{"question": f"{i}?", "choices": list("vwxyz"), "answer": i % 4 + 1, "subject": "s"} for i in range(20)]
    said = str(refusal(jsonl(tmp_path, rows)))
    assert 'answer_as="from 0"' in said and 'answer_as="from 1"' in said
    assert load_benchmark("mmlu", path=jsonl(tmp_path, rows))[0].answer == 1
    four = [row | {"choices": list("wxyz"), "answer": i % 3 + 1} for i, row in enumerate(rows)]
    with pytest.warns(UserWarning, match="columns are those of mmlu.*answer_as=.from 1."):
        assert load_benchmark(jsonl(tmp_path, four))[0].answer == 1
    zero = [*four, four[0] | {"answer": 0}]
    assert not any("those of mmlu" in remark for remark in read_benchmark(jsonl(tmp_path, zero)).remarks)
    rows = [
        {"sentence": f"{i} _?", **{f"option{k}": str(k) for k in range(1, 5)}, "answer": i % 3 + 1} for i in range(20)
    ]
    assert "question" in str(refusal(jsonl(tmp_path, rows)))


def test_class_labels_in_lists_and_objects():
    datasets = pytest.importorskip("datasets")
    text, names = datasets.Value("string"), datasets.ClassLabel(names=["D", "C", "B", "A"])
    data = {"question": [f"{i}?" for i in range(4)], "choices": [list("wxyz")] * 4}
    features = {"question": text, "choices": datasets.Sequence(text)}
    listed = datasets.Dataset.from_dict(
        data | {"answer": [[i] for i in range(4)]}, datasets.Features(features | {"answer": datasets.Sequence(names)})
    )
    assert [q.answer for q in load_benchmark(listed)] == [3, 2, 1, 0]
    digits = datasets.Sequence(datasets.ClassLabel(names=["4", "3", "2", "1"]))
    held = {"text": datasets.Sequence(text), "label": digits}
    choices = [{"text": list("wxyz"), "label": [0, 1, 2, 3]}] * 4
    labelled = datasets.Dataset.from_dict(
        data | {"choices": choices, "answerKey": list("1234")},
        datasets.Features({"question": text, "choices": held, "answerKey": text}),
    )
    assert [q.answer for q in load_benchmark(labelled)] == [3, 2, 1, 0]


# ---------------------------------------------------------------- files


def test_a_quote_between_tabs_swallows_no_row(tmp_path):
    lines = ["question\tA\tB\tanswer", '"Hi said who?\ta\tb\tA', 'Who said bye"\ta\tb\tB', "Who?\ta\tb\tA"]
    (tmp_path / "m.tsv").write_text("\n".join(lines) + "\n")
    assert "quote" in str(refusal(tmp_path / "m.tsv"))


def test_hebrew_is_no_russian(tmp_path):
    text = "שאלה,א,ב,תשובה\nמהו צבע הים?,כחול,אדום,א\nמה שם העיר?,ירושלים,חיפה,א\n"
    (tmp_path / "m.csv").write_bytes(text.encode("cp1255"))
    try:
        found = read_benchmark(
            tmp_path / "m.csv", columns={"question": "שאלה", "choices": ["א", "ב"], "answer": "תשובה"}
        )
    except CoraError:
        return
    assert found.questions[0].text == "מהו צבע הים?"


def test_deep_values_take_no_exponential_time(tmp_path):
    (tmp_path / "m.json").write_text('{"a": ' * 60 + json.dumps(rows_of(2, answer="B")) + "}" * 60)
    began = time.perf_counter()
    assert len(load_benchmark(tmp_path / "m.json")) == 2 and time.perf_counter() - began < 2
    (tmp_path / "m.json").write_text('{"a": ' * 900 + json.dumps(rows_of(2, answer="B")) + "}" * 900)
    assert refusal(tmp_path / "m.json")
    for cell in ("A) x" + " " * 30_000, ")" * 30_000):
        began = time.perf_counter()
        refusal(jsonl(tmp_path, [{"question": "Which?", "options": cell, "answer": ")" * 30_000}] * 2))
        assert time.perf_counter() - began < 2


def test_two_questions_with_one_text_and_two_ids_stay_two(tmp_path):
    rows = [
        ("1", "Which is red?", "Mars", "x"),
        ("1", "", "Venus", ""),
        ("2", "Which is red?", "blood", ""),
        ("2", "", "ink", "x"),
    ]
    rows = [dict(zip(("question_id", "question", "option", "correct"), row)) for row in rows]
    found = load_benchmark(jsonl(tmp_path, rows))
    assert [(q.choices, q.answer) for q in found] == [(("Mars", "Venus"), 0), (("blood", "ink"), 1)]


# ---------------------------------------------------------------- around


def test_a_layout_may_build_its_rows(tmp_path):
    def built(row):
        if row["sol"] is None:
            return None
        return {
            "question": row["de"],
            "choices": [o["t"] for o in row["opts"]],
            "answer_index": row["sol"],
            "context": row["vor"],
        }

    rows = [{"de": "Wann?", "opts": [{"t": "w"}, {"t": "x"}], "sol": s, "vor": "Um neun."} for s in (1, None, 0)]
    LAYOUTS.register(Layout(change=built), "built")
    try:
        found = load_benchmark("built", path=jsonl(tmp_path, rows))
    finally:
        del LAYOUTS.registered["built"]
    assert [(q.id, q.text, q.answer) for q in found] == [
        ("built-1", "Um neun.\n\nWann?", 1),
        ("built-3", "Um neun.\n\nWann?", 0),
    ]
    LAYOUTS.register(Layout(question="question", choices="#", answer="answer", counts="letters"), "odd")
    try:
        with pytest.raises(CoraError, match="got 'letters'"):
            load_benchmark("odd", path=jsonl(tmp_path, rows_of(2, answer="B")))
    finally:
        del LAYOUTS.registered["odd"]


def test_what_is_printed_obeys_no_terminal_and_every_terminal_can_show_it(tmp_path, capsys):
    rows = rows_of(2, answer="B") + [{"question": "Which\x1b[31m is 3?"} | WXYZ | {"answer": "B", "odd\x1b[8m": "x"}]
    load_benchmark(jsonl(tmp_path, rows[::-1]))
    assert "\x1b" not in capsys.readouterr().out
    path = jsonl(tmp_path, [{"question": "哪一个？"} | WXYZ | {"answer": "B"}] * 2)
    code = f"from cora_nb.benchmarks.load import load_benchmark; print(len(load_benchmark({str(path)!r})))"
    env = os.environ | {"PYTHONIOENCODING": "cp1252"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.strip().endswith("2"), done.stderr


@pytest.mark.parametrize(
    "source, says",
    [
        (None, "got None"),
        ({"question": "x"}, "a data frame, got dict"),
        ("missing.xls", "no such file"),
        (pd.DataFrame({"question": ["a", 1]}), "values of one type"),
    ],
)
def test_a_source_that_is_none(source, says):
    with pytest.raises(CoraError, match=says):
        load_benchmark(source)
