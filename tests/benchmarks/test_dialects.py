"""One benchmark of 80 questions in the ways in which people write CSV files: the same questions and keys come out.

A dialect marked `MAY_REFUSE` may be refused, if the message has a mapping that reads the file rightly when it is
pasted; one marked `MAY_FAIL` may be refused. No dialect may be read otherwise than it was written.
"""

import csv
import itertools
import json
import random

import pytest
from benchmarks.written import load, put, refusal, table, to_paste
from hypothesis import given
from hypothesis import strategies as st

from cora_nb.core import LETTERS, BadRow, CoraError

# ---------------------------------------------------------------- the benchmark: (text, choices, answer)


def _asked(i: int, key: int):
    a, b = 13 + i, 40 + i * 7 % 29
    text = (
        f"How many coins are {a} + {b}, all in all?",
        f'The sign says "{a} + {b}". How many are that?',
        f"Frau Müller hat {a} Äpfel; Herr Jäger {b}.\nWie viele haben beide?",
        f"Add {a} to {b}.",
    )[i % 4]
    values = [a + b + d for d in (1, -1, 10)]
    values.insert(key, a + b)
    return text, [f"{v} {unit}" for v, unit in zip(values, ("Stück", "coins, old", 'of "those"', "Groschen"))], key


_KEYS = random.Random(5)
QUESTIONS = [_asked(i, _KEYS.randrange(4)) for i in range(80)]
ABCD = ("A", "B", "C", "D")


def row(names, answer_name, notation, question="question"):
    "A function that writes a question into the columns of a dialect."
    return lambda q: {question: q[0], **dict(zip(names, q[1])), answer_name: notation(q)}


def letter(q):
    return LETTERS[q[2]]


def lower(q):
    return letter(q).lower()


def text(q):
    return q[1][q[2]]


def words(*names):
    return row(names[1:5], names[5], letter, names[0])


def answered(notation, name="answer", names=ABCD):
    return row(names, name, notation)


def in_cell(written, notation=letter):
    return lambda q: {"question": q[0], "choices": written(q[1]), "answer": notation(q)}


def lettered(choices, sign=") "):
    return " ".join(f"{k}{sign}{c}" for k, c in zip(LETTERS, choices))


OPT = ("opt1", "opt2", "opt3", "opt4")
OPTION = ("Option A", "Option B", "Option C", "Option D")
MAY_REFUSE = dict(refused="pasted")  # or read, once the mapping of the message is pasted
MAY_FAIL = dict(refused="only")  # or refused, where no mapping could help
PLAIN = answered(letter)

DIALECTS = {  # name: (row, how the file is written)
    # delimiters, encodings, line ends
    "commas": (PLAIN, {}),
    "semicolons": (PLAIN, dict(delimiter=";")),
    "tabs": (PLAIN, dict(delimiter="\t", name="mine.tsv")),
    "tabs in a csv": (PLAIN, dict(delimiter="\t")),
    "tabs in a txt": (PLAIN, dict(delimiter="\t", name="mine.txt")),
    "commas in a txt": (PLAIN, dict(name="mine.txt")),
    "pipes": (PLAIN, dict(delimiter="|")),
    "pipes in a txt": (PLAIN, dict(delimiter="|", name="mine.txt")),
    "all quoted": (PLAIN, dict(quoting=csv.QUOTE_ALL)),
    "semicolons, all quoted": (PLAIN, dict(delimiter=";", quoting=csv.QUOTE_ALL)),
    "UTF-8 with a mark": (PLAIN, dict(encoding="utf-8-sig")),
    "semicolons, UTF-8 with a mark": (PLAIN, dict(delimiter=";", encoding="utf-8-sig")),
    "UTF-16": (PLAIN, dict(encoding="utf-16")),
    "UTF-16, tabs in a txt": (PLAIN, dict(encoding="utf-16", delimiter="\t", name="mine.txt")),
    "CP1252": (PLAIN, dict(encoding="cp1252")),
    "CP1252, semicolons": (PLAIN, dict(encoding="cp1252", delimiter=";")),
    "zipped": (PLAIN, dict(name="mine.csv.gz")),
    "zipped tabs": (PLAIN, dict(name="mine.tsv.gz", delimiter="\t")),
    "lines end with LF": (PLAIN, dict(ends="\n")),
    # names of columns
    "Option A": (words("Question", *OPTION, "Correct Answer"), dict(delimiter=";")),
    "opt1": (words("question", *OPT, "answer"), dict(delimiter=";")),
    "Frage, a)": (words("Frage", "a)", "b)", "c)", "d)", "Lösung"), dict(delimiter=";")),
    "Frage, a), CP1252": (words("Frage", "a)", "b)", "c)", "d)", "Lösung"), dict(delimiter=";", encoding="cp1252")),
    "Frage, opt1": (words("Frage", *OPT, "Antwort"), dict(delimiter=";")),
    "Frage, A": (words("Frage", *ABCD, "Lösung"), dict(delimiter=";")),
    "prompt, choice_a": (words("prompt", "choice_a", "choice_b", "choice_c", "choice_d", "answer"), {}),
    "option_1": (words("question", "option_1", "option_2", "option_3", "option_4", "correct_answer"), {}),
    "choice1": (words("Question", "choice1", "choice2", "choice3", "choice4", "Answer"), {}),
    "capitals": (words("QUESTION", *ABCD, "ANSWER"), {}),
    "small letters": (words("question", "a", "b", "c", "d", "answer"), {}),
    "spaces about the names": (words(" question ", " A ", " B ", " C ", " D ", " answer "), {}),
    "answer_letter": (answered(letter, "answer_letter"), {}),
    "correct": (words("question", *ABCD, "correct"), {}),
    # choices in one cell
    "a JSON list": (in_cell(lambda c: json.dumps(c)), {}),
    "a JSON list with umlauts": (in_cell(lambda c: json.dumps(c, ensure_ascii=False)), dict(delimiter=";")),
    "a Python list": (in_cell(repr), {}),
    "a list as numpy prints it": (in_cell(lambda c: f"[{' '.join(map(repr, c))}]"), MAY_FAIL),
    "A) x B) y": (in_cell(lettered), {}),
    "A. x, a line each": (in_cell(lambda c: "\n".join(f"{k}. {x}" for k, x in zip(LETTERS, c))), MAY_FAIL),
    "x|y|z|w": (in_cell("|".join), {}),
    "a line each": (in_cell("\n".join), MAY_FAIL),
    # how answers are written
    "b": (answered(lower), {}),
    "(B)": (answered(lambda q: f"({letter(q)})"), {}),
    "B.": (answered(lambda q: letter(q) + "."), {}),
    "B)": (answered(lambda q: letter(q) + ")"), {}),
    "b)": (answered(lambda q: lower(q) + ")"), {}),
    "B with spaces": (answered(lambda q: f" {letter(q)} "), {}),
    "from 1": (answered(lambda q: q[2] + 1), {}),
    "from 0": (answered(lambda q: q[2]), {}),
    "from 1, opt1": (answered(lambda q: q[2] + 1, names=OPT), dict(delimiter=";")),
    "2.0": (answered(lambda q: q[2] + 1.0), {}),
    "0.0": (answered(lambda q: q[2] + 0.0), {}),
    "the text": (answered(text), {}),
    "the text, under correct_answer": (answered(text, "correct_answer"), dict(delimiter=";")),
    "the text beside a list": (in_cell(lambda c: json.dumps(c), text), {}),
    "B. Vienna": (answered(lambda q: f"{letter(q)}. {text(q)}"), {}),
    "B) Vienna": (answered(lambda q: f"{letter(q)}) {text(q)}"), MAY_FAIL),
    "Option B": (answered(lambda q: f"Option {letter(q)}", names=OPTION), {}),
    "option 2": (answered(lambda q: f"option {q[2] + 1}", names=("option 1", "option 2", "option 3", "option 4")), {}),
    "opt2": (answered(lambda q: OPT[q[2]], names=OPT), {}),
    "②": (answered(lambda q: "①②③④"[q[2]]), {}),
    "answer_index": (answered(lambda q: q[2], "answer_index"), {}),
    "correct_index": (answered(lambda q: q[2], "correct_index"), MAY_REFUSE),
    "letter and index": (lambda q: PLAIN(q) | {"answer_index": q[2]}, {}),
    "letter and text": (lambda q: PLAIN(q) | {"answer_text": text(q)}, {}),
    # what stands around the table
    "a title above": (PLAIN, dict(above="Quiz of the fifth form,,,,,\r\n")),
    "a title and an empty line above": (PLAIN, dict(above="Quiz of the fifth form\r\n\r\n")),
    "sep=": (PLAIN, dict(above="sep=;\r\n", delimiter=";") | MAY_FAIL),
    "empty lines at the end": (PLAIN, dict(below=",,,,,\r\n,,,,,\r\n\r\n")),
    "an empty column at the end": (lambda q: PLAIN(q) | {"": ""}, {}),
    "no header": (PLAIN, dict(header=False)),
    "no header, semicolons": (PLAIN, dict(header=False, delimiter=";")),
    "no header, an id in front": (lambda q: {"id": f"q{QUESTIONS.index(q)}"} | PLAIN(q), dict(header=False) | MAY_FAIL),
    "the answer first": (lambda q: dict(reversed(PLAIN(q).items())), {}),
    "a number in front": (lambda q: {"Nr.": QUESTIONS.index(q) + 1} | PLAIN(q), dict(delimiter=";")),
    "an index of pandas": (lambda q: {"Unnamed: 0": QUESTIONS.index(q)} | PLAIN(q), {}),
    "more columns": (lambda q: PLAIN(q) | {"source": "a book", "difficulty": len(q[0]) % 3},
                     dict(aside=["source", "difficulty"])),
}  # fmt: skip


def written(folder, rows, delimiter=",", encoding="utf-8", name="mine.csv", quoting=csv.QUOTE_MINIMAL, header=True,
            above="", below="", ends="\r\n", **_):  # fmt: skip
    "A file in a dialect."
    content = (above + table(rows, delimiter, header, quoting) + below).replace("\r\n", ends)
    return put(folder, name, content.encode(encoding))


def same(found, questions=QUESTIONS):
    "The same questions, choices and keys; spaces at the ends and the kind of line end are not compared."
    wanted = [(t, c, k) for t, c, k in questions]
    assert [(q.text.replace("\r\n", "\n"), list(q.choices), q.answer) for q in found] == wanted


def read_or_pasted(path, pasted):
    "Read as it was written, or refused; with a mapping that reads it so, where one is possible."
    try:
        same(load(path).questions)
    except CoraError as e:
        mappings = [option for option in to_paste(e) if "columns" in option]
        assert mappings or not pasted, f"refused, and nothing to paste: {e}"
        if pasted:
            same(load(path, **mappings[0]).questions)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_is_read_as_it_was_written(name, tmp_path):
    "The same 80 questions and keys, whatever the dialect."
    write, how = DIALECTS[name]
    path = written(tmp_path, list(map(write, QUESTIONS)), **how)
    if how.get("refused"):
        read_or_pasted(path, how["refused"] == "pasted")
        return
    loaded = load(path)
    same(loaded.questions)
    assert "80" in loaded.printed
    for column in how.get("aside", ()):
        assert column in loaded.printed


def test_what_is_printed_names_the_file_and_shows_the_first_question(tmp_path):
    "A run is named after its file; the first question is printed."
    printed = load(written(tmp_path, list(map(PLAIN, QUESTIONS)), name="fifth_form.csv")).printed
    assert "fifth_form" in printed and QUESTIONS[0][0] in printed


@pytest.mark.parametrize("kind", ["path", "str", "named", "frame"])
def test_the_ways_to_hand_over_a_file(kind, tmp_path):
    "A path, a path as str, any name with `path=`, and a DataFrame."
    import pandas as pd

    path = written(tmp_path, list(map(PLAIN, QUESTIONS)))
    if kind == "named":
        same(load("any name", path=path).questions)
    else:
        same(load({"path": path, "str": str(path), "frame": pd.read_csv(path)}[kind]).questions)


# ---------------------------------------------------------------- what a file does not say


AMBIGUOUS = [(t, c, 1 + k % 2) for t, c, k in QUESTIONS]  # answers 1 and 2, of four


@pytest.mark.parametrize("how", [{}, dict(delimiter=";", encoding="cp1252"), dict(name="mine.tsv",
                         delimiter="\t")], ids=["commas", "CP1252", "tabs"])  # fmt: skip
def test_an_ambiguous_count_is_refused_with_two_lines(how, tmp_path):
    "Neither a 0 nor a 4 among 80 answers: both readings are proposed, and each line reads what it says."
    path = written(tmp_path, [answered(lambda q: q[2])(q) for q in AMBIGUOUS], **how)
    proposed = to_paste(refusal(path))
    assert {"answer_as": "from 0"} in proposed and {"answer_as": "from 1"} in proposed
    same(load(path, answer_as="from 0").questions, AMBIGUOUS)
    same(load(path, answer_as="from 1").questions, [(t, c, k - 1) for t, c, k in AMBIGUOUS])


def test_texts_that_are_numbers_and_could_be_places(tmp_path):
    "Choices 2, 3, 4, 1 and answers that are both a text and a place of them: refused with both lines."
    rows = [dict(question=f"Which, {i}?", A=2, B=3, C=4, D=1, answer=1 + i % 4) for i in range(40)]
    path = written(tmp_path, rows)
    proposed = to_paste(refusal(path))
    assert {"answer_as": "text"} in proposed and {"answer_as": "from 1"} in proposed
    assert [q.answer for q in load(path, answer_as="text").questions][:4] == [3, 0, 1, 2]
    assert [q.answer for q in load(path, answer_as="from 1").questions][:4] == [0, 1, 2, 3]


def test_letters_that_are_texts_of_other_choices(tmp_path):
    "Choices B, C, D, A, as in a question about the alphabet: refused with both lines where nothing tells."
    rows = [dict(question=f"Which, {i}?", A="B", B="C", C="D", D="A", answer=LETTERS[i % 4]) for i in range(40)]
    path = written(tmp_path, rows)
    proposed = to_paste(refusal(path))
    assert {"answer_as": "letter"} in proposed and {"answer_as": "text"} in proposed
    assert [q.answer for q in load(path, answer_as="letter").questions][:4] == [0, 1, 2, 3]
    assert [q.answer for q in load(path, answer_as="text").questions][:4] == [3, 0, 1, 2]


def test_a_text_among_letters_is_refused_by_its_row(tmp_path):
    "79 letters and a word that is none."
    rows = list(map(PLAIN, QUESTIONS))
    rows[40]["answer"] = "Wien"
    path = written(tmp_path, rows)
    error = refusal(path)
    assert isinstance(error, BadRow) and (error.row, error.field, error.value) == (41, "answer", "Wien")
    assert path.name in error.file
    same(load(path, on_bad="skip").questions, QUESTIONS[:40] + QUESTIONS[41:])


# ---------------------------------------------------------------- columns=


def strange(q):
    "Columns that no table of words knows."
    return {"xq": q[0], **{f"way_{k}": c for k, c in zip("pqrs", q[1])}, "xk": letter(q), "xs": q[0][:3]}


MAPPINGS = {
    "a pattern": ({"question": "prompt", "choices": "option_*", "answer": "correct"},
                  words("prompt", "option_a", "option_b", "option_c", "option_d", "correct")),
    "a pattern of numbers": ({"question": "xq", "choices": "w#", "answer": "xk"},
                             words("xq", "w1", "w2", "w3", "w4", "xk")),
    "a list of names": ({"question": "xq", "choices": ["way_p", "way_q", "way_r", "way_s"], "answer": "xk"}, strange),
    "a pattern of letters": ({"question": "xq", "choices": "way_*", "answer": "xk"}, strange),
    "a list in a cell": ({"question": "xq", "choices": "xc", "answer": "xk"},
                         lambda q: {"xq": q[0], "xc": json.dumps(q[1]), "xk": letter(q)}),
    "some of them": ({"answer": "xk"}, row(ABCD, "xk", letter)),
    "only the question": ({"question": "xq"}, row(ABCD, "answer", letter, "xq")),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPPINGS)
def test_columns_says_what_is_what(name, tmp_path):
    "A mapping is a command, in a file and in a frame."
    import pandas as pd

    columns, write = MAPPINGS[name]
    path = written(tmp_path, list(map(write, QUESTIONS)))
    same(load(path, columns=columns).questions)
    same(load(pd.read_csv(path), columns=columns).questions)


def test_columns_that_nothing_knows_are_refused_with_their_names(tmp_path):
    "Strange names are not guessed; those of the file are named."
    said = str(refusal(written(tmp_path, list(map(strange, QUESTIONS)))))
    assert all(name in said for name in ("xq", "way_", "xk"))


def test_a_mapping_of_subject_and_id(tmp_path):
    "Subject and id come from where the mapping says."
    rows = [strange(q) | {"xi": f"n{i}"} for i, q in enumerate(QUESTIONS)]
    columns = {"question": "xq", "choices": "way_*", "answer": "xk", "subject": "xs", "id": "xi"}
    found = load(written(tmp_path, rows), columns=columns).questions
    same(found)
    assert [q.subject for q in found] == [q[0][:3] for q in QUESTIONS]
    assert all(str(q.id).endswith(f"n{i}") for i, q in enumerate(found))


@pytest.mark.parametrize("columns", [{"question": "promt"}, {"choices": "opt_*"}, {"choices": ["A", "E"]},
                                     {"questoin": "question"}, {"answer": "answers"}], ids=str)  # fmt: skip
def test_a_mapping_to_what_is_not_there_is_refused(columns, tmp_path):
    "A slip in a mapping is named."
    said = str(refusal(written(tmp_path, list(map(PLAIN, QUESTIONS))), columns=columns))
    ((role, column),) = columns.items()
    assert (column[-1] if isinstance(column, list) else column) in said or role in said


@pytest.mark.parametrize("options", [dict(answer_as="index of it"), dict(on_bad="ignore")], ids=str)
def test_an_option_that_is_none_is_refused(options, tmp_path):
    "A slip in an option's value is named with it."
    path = written(tmp_path, list(map(PLAIN, QUESTIONS)))
    (value,) = options.values()
    assert value in str(refusal(path, **options))


READINGS = {
    "letter": PLAIN, "text": answered(text), "from 0": answered(lambda q: q[2]), "from 1": answered(lambda q: q[2] + 1),
}  # fmt: skip


@pytest.mark.parametrize("stated, real", itertools.product(READINGS, READINGS))
def test_answer_as_reads_what_it_says_or_refuses(stated, real, tmp_path):
    "A reading that is stated and right reads the file; one that does not fit is refused and never reads other keys."
    path = written(tmp_path, list(map(READINGS[real], QUESTIONS)))
    if stated == real:
        same(load(path, answer_as=stated).questions)
    else:
        refusal(path, answer_as=stated)


@pytest.mark.parametrize("how, notation", [
    ("one-hot", lambda q: {f"right_{k}": int(LETTERS[q[2]] == k) for k in ABCD}),
    ("label", lambda q: {"answer": letter(q)}),
], ids=["one-hot", "label"])  # fmt: skip
def test_the_other_readings(how, notation, tmp_path):
    "Columns of zeros and a single one; the name of the choice's column."
    rows = [{"question": q[0], **dict(zip(ABCD, q[1])), **notation(q)} for q in QUESTIONS]
    columns = {"answer": "right_*"} if how == "one-hot" else {}
    try:
        found = load(written(tmp_path, rows), columns=columns or None, answer_as=how).questions
    except CoraError:
        return
    same(found)


def test_first_reads_the_right_choice_in_front(tmp_path):
    '`answer_as="first"`: every first choice is right, and it is said that the right choice has one place.'
    rows = [{"question": q[0], **dict(zip(ABCD, [text(q), *(c for c in q[1] if c != text(q))]))} for q in QUESTIONS]
    loaded = load(written(tmp_path, rows), answer_as="first")
    assert [q.choices[q.answer] for q in loaded.questions] == list(map(text, QUESTIONS))
    assert loaded.remarks


# ---------------------------------------------------------------- any texts, any key, any dialect


NOTATIONS = {
    "B": letter, "b": lower, "(B)": lambda q: f"({letter(q)})", "b)": lambda q: lower(q) + ")",
    "B.": lambda q: letter(q) + ".", "0": lambda q: q[2], "1": lambda q: q[2] + 1, "text": text,
    "B. text": lambda q: f"{letter(q)}. {text(q)}", "②": lambda q: "①②③④⑤⑥"[q[2]],
}  # fmt: skip
CHOICE = st.text("abcdABCD012349äöüßÉ ,;|\t\"'-+%$/\n", min_size=1, max_size=8).map(str.strip).filter(bool)


@st.composite
def benchmarks(draw):
    "Some questions with as many choices each."
    n = draw(st.integers(2, 6))
    some = st.lists(CHOICE, min_size=n, max_size=n, unique_by=str.casefold)
    return [(f"What is it, no. {i}, of these?", choices, draw(st.integers(0, n - 1)))
            for i, choices in enumerate(draw(st.lists(some, min_size=1, max_size=14)))]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    "A folder, and a new number for each file."
    return tmp_path_factory.mktemp("any"), itertools.count()


def names_of(n, kind):
    return [LETTERS[i] if kind == "A" else f"{kind}{i + 1}" for i in range(n)]


@given(benchmarks(), st.sampled_from(list(NOTATIONS)), st.sampled_from(",;\t|"),
       st.sampled_from(["A", "opt", "Option "]),
       st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]), st.booleans())  # fmt: skip
def test_any_texts_in_any_dialect_are_read_back_or_refused(files, asked, notation, delimiter, names, quoting, header):
    "Whatever the texts: the same keys come back, or the file is refused. No other key is ever read."
    folder, number = files
    rows = [row(names_of(len(q[1]), names), "answer", NOTATIONS[notation])(q) for q in asked]
    how = dict(delimiter=delimiter, quoting=quoting, header=header, name=f"any{next(number)}.csv")
    try:
        found = load(written(folder, rows, **how)).questions
    except CoraError:
        return
    same(found, asked)
