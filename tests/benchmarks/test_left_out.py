"""Nothing is left out in silence: passages, pictures, labels, columns and rows are used, named or refused.

A refusal is tested by its file, row, field and value, and by what it gives to type.
"""

import pytest
from benchmarks.written import class_labels, lines, load, put, refusal, source, table, to_paste

from cora_nb.core import LETTERS, BadRow, CoraError

KINDS = ("csv", "jsonl", "parquet", "frame")


def asked(i: int) -> dict:
    "A question; the right choice is A, B, C or D in turn, but not in a plain order."
    key = (i * 7 + i // 4) % 4
    return dict(question=f"Who lit lamp {i}?", A=f"Ada {i}", B=f"Bo {i}", C=f"Cy {i}", D=f"Di {i}", answer=LETTERS[key])


ROWS = [asked(i) for i in range(30)]


def story(i: int) -> str:
    "A text of about 150 characters."
    return (
        f"In the year {1700 + i} the lamps of the quay were lit by hand, one by one, each evening before the bell. "
        f"The one who lit lamp {i} was paid in candles, and was proud of it."
    )


STORIES = [row | {"passage": story(i)} for i, row in enumerate(ROWS)]


def same(found, rows=ROWS, context=None):
    "Every question as its row says, with its context in front."
    wanted = [
        (f"{row[context]}\n\n{row['question']}" if context and row[context] else row["question"],
         [row[k] for k in "ABCD"], row["answer"]) for row in rows
    ]  # fmt: skip
    assert [(q.text, list(q.choices), LETTERS[q.answer]) for q in found] == wanted


def renamed(rows, **names):
    "Rows with other names of columns."
    return [{names.get(k, k): v for k, v in row.items()} for row in rows]


def without(rows, *numbers):
    return [row for i, row in enumerate(rows, 1) if i not in numbers]


def skipped(path, *numbers, context=None, rows=ROWS):
    "With on_bad='skip' these rows are left out, and it is said."
    loaded = load(path, on_bad="skip")
    same(loaded.questions, without(rows, *numbers), context)
    assert loaded.remarks


# ---------------------------------------------------------------- what belongs to the question


@pytest.mark.parametrize("name", ["context", "Context", "passage", "Passage", "article", "flores_passage", "support"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "frame"])
def test_a_passage_is_shown_before_its_question(name, kind, tmp_path):
    "Columns that are known to belong to the question are part of it."
    rows = renamed(STORIES, passage=name)
    loaded = load(source(rows, kind, tmp_path))
    same(loaded.questions, rows, name)


@pytest.mark.parametrize("name", ["story", "background", "paragraph", "premise", "dialogue", "case", "Kontext",
                                  "scenario", "excerpt", "document", "contexto", "reading", "Lesetext"])  # fmt: skip
def test_a_passage_by_another_name_is_shown_or_refused(name, tmp_path):
    "Never dropped: a name that is not known gets the mapping to paste."
    rows = renamed(STORIES, passage=name)
    path = source(rows, "csv", tmp_path)
    try:
        found = load(path).questions
    except CoraError as e:
        assert {"columns": {"context": name}} in to_paste(e)
        found = load(path, columns={"context": name}).questions
    same(found, rows, name)


@pytest.mark.parametrize("length", [1, 5], ids=["short", "long"])
def test_a_short_passage_is_shown_too(length, tmp_path):
    "A known name is what decides, not the length."
    rows = [row | {"context": "It was cold. " * length + f"Lamp {i}."} for i, row in enumerate(ROWS)]
    same(load(source(rows, "csv", tmp_path)).questions, rows, "context")


def test_a_passage_that_some_rows_lack(tmp_path):
    "Rows without a passage are asked without one."
    rows = [row | {"passage": "" if i % 3 == 0 else row["passage"]} for i, row in enumerate(STORIES)]
    for kind in KINDS:
        none = [row | {"passage": row["passage"] or None} for row in rows]
        same(load(source(none, kind, tmp_path)).questions, rows, "passage")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["zusatz", "col7"])
def test_long_texts_of_an_unknown_column_are_refused(kind, name, tmp_path):
    "Half of them over 80 characters: both mappings are to paste, and each does what it says."
    rows = renamed(STORIES, passage=name)
    path = source(rows, kind, tmp_path)
    for options in ({}, {"on_bad": "skip"}):
        proposed = to_paste(refusal(path, **options))
        assert {"columns": {"context": name}} in proposed and {"columns": {"context": None}} in proposed
    same(load(path, columns={"context": name}).questions, rows, name)
    aside = load(path, columns={"context": None})
    same(aside.questions)
    assert name in aside.printed


def test_the_words_to_paste_are_as_they_are_typed(tmp_path):
    "With double quotes, as in the documentation."
    path = source(renamed(STORIES, passage="zusatz"), "csv", tmp_path)
    assert 'columns={"context": "zusatz"}' in str(refusal(path))


def test_a_known_passage_can_be_left_aside(tmp_path):
    "On request, and it is named."
    loaded = load(source(STORIES, "jsonl", tmp_path), columns={"context": None})
    same(loaded.questions)
    assert "passage" in loaded.printed


@pytest.mark.parametrize("values", [
    lambda i: "a book", lambda i: i, lambda i: None, lambda i: story(i) if i == 20 else "short",
    lambda i: [1, 2, 3] * 40, lambda i: i / 7,
], ids=["texts", "numbers", "nothing", "one long text", "numbers in a list", "fractions"])  # fmt: skip
def test_a_column_that_is_no_passage_is_named(values, tmp_path):
    "Other columns are left aside by name."
    loaded = load(source([row | {"zusatz": values(i)} for i, row in enumerate(ROWS)], "jsonl", tmp_path))
    same(loaded.questions)
    assert "zusatz" in loaded.printed or values(0) is None


@pytest.mark.parametrize("name", ["explanation", "Explanation", "rationale", "solution"])
def test_an_explanation_is_left_aside_by_name(name, tmp_path):
    "It is long and would give the answer away: not shown, named."
    rows = renamed(STORIES, passage=name)
    path = source(rows, "csv", tmp_path)
    try:
        loaded = load(path)
    except CoraError as e:
        assert name not in ("explanation", "Explanation") and {"columns": {"context": None}} in to_paste(e)
        return
    same(loaded.questions)
    assert name in loaded.printed


@pytest.mark.parametrize("kind", KINDS)
def test_a_passage_in_the_first_row_of_its_group_is_filled_downwards(kind, tmp_path):
    "Three passages for ten questions each, filled where each begins: shown with all of them, and said."
    rows = [row | {"passage": story(i // 10)} for i, row in enumerate(ROWS)]
    kept = [row | {"passage": row["passage"] if i % 10 == 0 else None} for i, row in enumerate(rows)]
    loaded = load(source(kept, kind, tmp_path))
    same(loaded.questions, rows, "passage")
    assert "passage" in loaded.said


def test_a_passage_filled_in_two_rows_running_is_not_filled_downwards(tmp_path):
    "Whether the empty rows have a passage is not known: refused, with the mapping that reads it as it stands."
    rows = [row | {"passage": story(i) if i in (0, 1, 12) else ""} for i, row in enumerate(ROWS)]
    path = source(rows, "csv", tmp_path)
    try:
        found = load(path).questions
    except CoraError as e:
        assert {"columns": {"context": "passage"}} in to_paste(e)
        found = load(path, columns={"context": "passage"}).questions
    same(found, rows, "passage")


def test_a_passage_beside_a_list_of_questions(tmp_path):
    "JSON that holds the text once: it comes with each question, or the file is refused."
    import json

    path = put(tmp_path, "mine.json", json.dumps({"passage": story(0), "questions": ROWS}))
    try:
        found = load(path).questions
    except CoraError:
        return
    same(found, [row | {"passage": story(0)} for row in ROWS], "passage")


# ---------------------------------------------------------------- pictures


MARKS = ["<image 1>", "![](a.png)", "![a lamp](img/lamp.jpg)", '<img src="lamp.png">', "<img src='lamp.png' />"]


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("place", ["question", "B"])
def test_a_question_with_a_picture_is_refused(mark, place, tmp_path):
    "A mark in a question or a choice: refused by its row, left out with on_bad='skip', asked with image: None."
    rows = [row | {place: f"{row[place]} {mark}"} if i == 6 else row for i, row in enumerate(ROWS)]
    path = source(rows, "jsonl", tmp_path)
    error = refusal(path)
    assert isinstance(error, BadRow) and error.row == 7 and path.name in error.file
    assert {"columns": {"image": None}} in to_paste(error)
    skipped(path, 7)
    found = load(path, columns={"image": None}).questions
    assert len(found) == 30 and [LETTERS[q.answer] for q in found] == [row["answer"] for row in rows]


def test_a_picture_in_a_passage(tmp_path):
    "A mark in what is shown before the question."
    rows = [row | {"passage": row["passage"] + (" <image 1>" if i == 6 else "")} for i, row in enumerate(STORIES)]
    path = source(rows, "jsonl", tmp_path)
    assert refusal(path).row == 7
    skipped(path, 7, context="passage", rows=rows)


@pytest.mark.parametrize("name", ["image", "Image", "images"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_pictures(name, kind, tmp_path):
    "Rows that have a picture are refused; those that have none are sound."
    rows = [row | {name: f"pics/{i}.png" if i in (6, 9) else None} for i, row in enumerate(ROWS)]
    path = source(rows, kind, tmp_path)
    error = refusal(path)
    assert error.row == 7 and name in str(error)
    assert {"columns": {"image": None}} in to_paste(error)
    skipped(path, 7, 10)
    loaded = load(path, columns={"image": None})
    same(loaded.questions)
    assert name in loaded.printed


@pytest.mark.parametrize("name", ["image_path", "picture", "figure", "image_1", "Bild"])
def test_a_column_of_pictures_by_another_name_is_refused_or_named(name, tmp_path):
    "Never dropped in silence."
    rows = [row | {name: f"pics/{i}.png" if i in (6, 9) else None} for i, row in enumerate(ROWS)]
    path = source(rows, "csv", tmp_path)
    try:
        loaded = load(path)
    except CoraError as e:
        assert e.row == 7 and name in str(e)
        skipped(path, 7, 10)
        return
    same(loaded.questions)
    assert name in loaded.printed


def test_a_column_of_pictures_as_bytes(tmp_path):
    "The hub's Parquet files hold pictures as bytes and a path."
    rows = [row | {"image": {"bytes": b"\x89PNG\r\n", "path": None} if i == 6 else None} for i, row in enumerate(ROWS)]
    path = source(rows, "parquet", tmp_path)
    assert refusal(path).row == 7
    skipped(path, 7)
    same(load(path, columns={"image": None}).questions)


def test_a_column_of_pictures_that_is_empty(tmp_path):
    "Nobody has a picture: nothing to refuse."
    for kind in KINDS:
        same(load(source([row | {"image": None} for row in ROWS], kind, tmp_path)).questions)


def test_any_column_can_be_said_to_hold_pictures(tmp_path):
    '`columns={"image": NAME}` makes the rows that have one refused.'
    rows = [row | {"zusatz": "7.png" if i == 6 else None} for i, row in enumerate(ROWS)]
    path = source(rows, "jsonl", tmp_path)
    assert refusal(path, columns={"image": "zusatz"}).row == 7


def test_choices_that_are_pictures(tmp_path):
    "All choices are names of files of pictures: the model would choose among names."
    rows = [row | {k: f"pics/{i}{k}.png" for k in "ABCD"} if i == 6 else row for i, row in enumerate(ROWS)]
    path = source(rows, "jsonl", tmp_path)
    assert refusal(path).row == 7
    skipped(path, 7)
    assert len(load(path, columns={"image": None}).questions) == 30


def test_a_question_about_kinds_of_files(tmp_path):
    "Names of files of several kinds are choices like others."
    files = dict(question="Which file holds a picture?", A="a.jpg", B="b.doc", C="c.xls", D="d.txt", answer="A")
    rows = [*ROWS, files]
    same(load(source(rows, "jsonl", tmp_path)).questions, rows)


def test_words_about_pictures_are_no_pictures(tmp_path):
    "An image is mentioned; none is there."
    rows = [row | {"question": f"Which image of lamp {i} (a < b, c > d) is meant! [see] (below)?"} for i, row in
            enumerate(ROWS)]  # fmt: skip
    same(load(source(rows, "jsonl", tmp_path)).questions, rows)


# ---------------------------------------------------------------- class labels


@pytest.mark.parametrize("names", [["B", "D"], ["D", "B"]], ids="".join)
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_class_labels_say_what_numbers_mean(names, kind, tmp_path):
    "0 and 1 mean the names that stand in the schema, whatever they look like."
    rows = [row | {"answer": "BD"[i * 5 // 3 % 2]} for i, row in enumerate(ROWS)]
    made = class_labels(rows, {"answer": names})
    same(load(put(tmp_path, "mine.parquet", made) if kind == "parquet" else made).questions, rows)


def test_class_labels_of_a_list_of_choices(tmp_path):
    "The same beside a list of choices, and for a subject."
    rows = [dict(question=row["question"], choices=[row[k] for k in "ABCD"], answer=row["answer"],
                 subject=("lamps", "quays")[i % 2]) for i, row in enumerate(ROWS)]  # fmt: skip
    made = class_labels(rows, {"answer": ["D", "C", "B", "A"], "subject": ["quays", "lamps"]})
    found = load(put(tmp_path, "mine.parquet", made)).questions
    same(found)
    assert [q.subject for q in found] == [row["subject"] for row in rows]


def test_class_labels_that_are_texts_of_choices(tmp_path):
    "Names that are the choices themselves: read as texts."
    rows = [row | dict(A="north", B="east", C="south", D="west") for row in ROWS]
    names = ["east", "north", "south", "west"]
    texts = [row | {"answer": row[row["answer"]]} for row in rows]
    same(load(put(tmp_path, "mine.parquet", class_labels(texts, {"answer": names}))).questions, rows)


def test_a_class_label_without_a_name_is_refused(tmp_path):
    "-1 is how the hub writes that there is no answer: refused by its row, not read as the last name."
    import pyarrow as pa

    made = class_labels(ROWS, {"answer": list("ABCD")})
    numbers = made["answer"].to_pylist()
    for wrong in (-1, 4):
        numbers[6] = wrong
        at = made.column_names.index("answer")
        path = put(tmp_path, "mine.parquet", made.set_column(at, "answer", pa.array(numbers)))
        error = refusal(path)
        assert (error.row, error.field) == (7, "answer")
        skipped(path, 7)


# ---------------------------------------------------------------- answers that contradict each other, or are several


@pytest.mark.parametrize("second, value", [("answer_index", 0), ("answer_idx", 0), ("answer_text", "Ada 6")])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_answers_that_disagree_are_refused_by_name(second, value, kind, tmp_path):
    "A letter and an index (or a text) beside it: where they agree they are read, where not the row is refused."

    def beside(row):
        return LETTERS.index(row["answer"]) if value == 0 else row[row["answer"]]

    rows = [row | {second: beside(row)} for row in ROWS]
    same(load(source(rows, kind, tmp_path, "agreed")).questions)
    assert rows[6]["answer"] != "A"
    rows[6][second] = value
    path = source(rows, kind, tmp_path)
    error = refusal(path)
    assert isinstance(error, BadRow) and error.row == 7 and error.field in ("answer", second)
    assert "answer" in str(error) and second in str(error)
    skipped(path, 7)


@pytest.mark.parametrize("value", ["A,C", "A, C", "AC", "A;C", "A and C", "(A)(C)", "A/C"])
def test_several_right_answers_are_refused(value, tmp_path):
    "Exactly one choice is right; of two, none is taken."
    rows = [row | {"answer": value} if i == 6 else row for i, row in enumerate(ROWS)]
    path = source(rows, "csv", tmp_path)
    error = refusal(path)
    assert isinstance(error, BadRow) and (error.row, error.field, error.value) == (7, "answer", value)
    skipped(path, 7)


@pytest.mark.parametrize("value", ["", None, "E", "?", "-"])
def test_an_answer_that_is_none_is_refused(value, tmp_path):
    "Missing, beyond the choices, or a sign."
    for kind in ("jsonl", "csv"):
        path = source([row | {"answer": value} if i == 6 else row for i, row in enumerate(ROWS)], kind, tmp_path)
        error = refusal(path)
        assert isinstance(error, BadRow) and (error.row, error.field) == (7, "answer")
        skipped(path, 7)


@pytest.mark.parametrize("field, value", [("question", ""), ("question", "  "), ("C", ""), ("A", None)])
def test_a_row_without_its_question_or_a_choice_between_is_refused(field, value, tmp_path):
    "An empty cell is no text, and a gap among choices would move the letters."
    path = source([row | {field: value} if i == 6 else row for i, row in enumerate(ROWS)], "csv", tmp_path)
    error = refusal(path)
    assert isinstance(error, BadRow) and error.row == 7
    skipped(path, 7)


# ---------------------------------------------------------------- names and ids


@pytest.mark.parametrize("first, second", [("Answer Key", "answer_key"), ("Question", "question"), ("answer", "Answer"),
                                           ("Option A", "option_a"), ("context", "Context")])  # fmt: skip
def test_two_columns_with_one_folded_name_are_refused(first, second, tmp_path):
    "Which of them is meant cannot be told."
    names = {"Answer Key": "answer", "Question": "question", "answer": "answer", "context": "passage"}
    rows = STORIES if first == "context" else ROWS
    if first == "Option A":
        rows = renamed(rows, A=first, B="Option B", C="Option C", D="Option D")
    else:
        rows = renamed(rows, **{names[first]: first})
    rows = [row | {second: rows[-1 - i][first]} for i, row in enumerate(rows)]
    for kind in ("csv", "jsonl", "frame"):
        said = str(refusal(source(rows, kind, tmp_path)))
        assert first in said and second in said


def test_the_same_name_twice_in_a_header_is_refused(tmp_path):
    "A CSV file with two columns `answer`."
    text = table([row | {"answer2": "A"} for row in ROWS]).replace("answer2", "answer", 1)
    assert text.splitlines()[0].count("answer") == 2
    assert "answer" in str(refusal(put(tmp_path, "mine.csv", text)))


def test_ids_come_from_the_file_and_differ(tmp_path):
    "A column `id` names the questions."
    found = load(source([{"id": f"n{i}"} | row for i, row in enumerate(ROWS)], "csv", tmp_path)).questions
    same(found)
    assert all(q.id.endswith(f"n{i}") for i, q in enumerate(found))


@pytest.mark.parametrize("kind", KINDS)
def test_an_id_twice_is_refused(kind, tmp_path):
    "The second row with an id is named."
    rows = [{"id": f"n{3 if i == 6 else i}"} | row for i, row in enumerate(ROWS)]
    path = source(rows, kind, tmp_path)
    error = refusal(path)
    assert isinstance(error, BadRow) and error.row == 7 and error.field == "id" and "n3" in str(error)
    skipped(path, 7)


# ---------------------------------------------------------------- files as a whole


@pytest.mark.parametrize("name, content", [
    ("empty.csv", ""), ("head.csv", "question,A,B,C,D,answer\r\n"), ("empty.jsonl", ""), ("empty.json", "[]"),
    ("broken.json", '[{"question": "W'), ("broken.jsonl", lines(ROWS)[:-20]), ("no.parquet", "PAR1 and nothing"),
    ("text.txt", "A letter to a friend.\n\nIt has no questions in it."), ("no.xlsx", "question,A,B"),
    ("nothing.csv.gz", b""), ("other.json", '{"a": 1}'), ("numbers.csv", "1,2,3\r\n4,5,6\r\n"),
])  # fmt: skip
def test_a_file_that_holds_no_questions_is_refused_by_name(name, content, tmp_path):
    "Damaged, empty, or something else."
    path = put(tmp_path, name, content)
    error = refusal(path)
    assert name in str(error)


def test_a_file_that_is_not_there(tmp_path):
    "A path that leads nowhere is refused with its name."
    for place in (tmp_path / "gone.csv", str(tmp_path / "gone.csv")):
        assert "gone.csv" in str(refusal(place))
    assert "gone.csv" in str(refusal("mine", path=tmp_path / "gone.csv"))


def test_a_name_that_nobody_knows():
    "Neither a file nor a published benchmark."
    assert "mmlu_proo" in str(refusal("mmlu_proo"))


def test_all_rows_refused_is_refused(tmp_path):
    "With on_bad='skip', too: a benchmark of no questions is none."
    path = source([row | {"answer": "Z"} for row in ROWS], "csv", tmp_path)
    refusal(path)
    refusal(path, on_bad="skip")


def test_rows_that_are_left_out_are_counted(tmp_path):
    "The number of rows left out, and of those that are there, stand in what is said."
    rows = [row | {"answer": "Z"} if i in (3, 9, 17, 25) else row for i, row in enumerate(ROWS)]
    loaded = load(source(rows, "csv", tmp_path), on_bad="skip")
    same(loaded.questions, without(rows, 4, 10, 18, 26))
    assert any("4" in remark for remark in loaded.remarks) and "26" in loaded.printed
