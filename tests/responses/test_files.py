"""A run on disk: reads back equal, appears whole or not at all, and is never replaced by another."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

import cora_nb
from cora_nb.core import BadRow, CoraError, Question, Variant
from cora_nb.forms import FORMS
from cora_nb.respondents.protocol import Reply
from cora_nb.responses.columns import column_types
from cora_nb.responses.facts import as_facts
from cora_nb.responses.files import (
    _PARTS,
    check_folder,
    csv_cell,
    csv_cells,
    from_csv_cell,
    read_facts,
    read_responses,
    run_name,
    write_csv,
    write_responses,
)
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.variants.families import make_variants

VARIANTS = make_variants([Question("q", "?", ("a", "b", "c", "d"), 2, "s"), Question("r", "!", ("yes", "no"), 1)])


def run(letter="A", **more):
    return make_responses(VARIANTS, [letter] * len(VARIANTS), **more)


texts = st.text(max_size=8) | st.sampled_from(
    ["\ud800", "A\x00B", "日本\u202e", "a\r\nb", "NA", "nan", "", "\udfff x", "🙂"]
)
words = texts.filter(str.strip)  # what may stand in a question
ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
numbers = st.floats(max_value=0) | st.sampled_from([-math.inf, math.nan, -0.0])
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | texts,
    lambda x: st.lists(x, max_size=2) | st.dictionaries(texts, x, max_size=2),
    max_leaves=5,
)


@st.composite
def any_run(draw):
    "Questions of all forms, several trials, odd texts, replies with and without everything."
    variants, replies, trials = [], [], []
    for id in draw(st.lists(ids, min_size=1, max_size=3, unique=True)):
        choices = tuple(draw(st.lists(words, min_size=2, max_size=4)))
        question = Question(id, draw(words), choices, draw(st.integers(0, len(choices) - 1)), draw(st.none() | texts))
        for index, form in enumerate(draw(st.lists(st.sampled_from(list(FORMS)), min_size=1, max_size=4))):
            sources = draw(st.permutations(range(len(choices))).map(tuple))
            variant = Variant(question, "mine", form, index, choices, sources.index(question.answer), sources, form)
            for trial in range(draw(st.integers(1, 2))):
                variants, trials = [*variants, variant], [*trials, trial]
                scores = draw(st.none() | st.tuples(*[numbers] * len(choices)))
                said = draw(st.none() | texts | st.sampled_from(["A", "A, B", "yes"]))
                meta = {"completion_tokens": 3, "finish_reason": draw(texts), "mean_logprob": draw(numbers)}
                error = draw(st.none() | texts)
                confidence = draw(st.none() | st.floats(0, 1))
                replies.append(Reply(said, scores, confidence, error, draw(st.sampled_from([None, {}, meta]))))
    facts = draw(st.dictionaries(texts, plain, max_size=3))
    return make_responses(variants, replies, trials=trials, name=draw(words), facts=facts)


@pytest.mark.slow
@given(any_run())
@settings(max_examples=80)
def test_a_run_read_back_is_equal(tmp_path_factory, responses):
    folder = tmp_path_factory.mktemp("r") / "some" / "run"
    assert write_responses(responses, folder) == folder and sorted(p.name for p in folder.iterdir()) == sorted(_PARTS)
    again = read_responses(folder)
    assert again.equals(responses) and responses.equals(again)
    assert dict(again.table.dtypes) == column_types() == dict(responses.table.dtypes)
    assert again.facts == read_facts(folder) == responses.facts and again.name == responses.name
    assert json.loads((folder / "facts.json").read_text("utf-8")) == responses.facts.plain()
    assert "question_id" in pd.read_parquet(folder / "responses.parquet")  # any Parquet reader can open it
    write_responses(again, folder)  # over itself
    assert read_responses(folder).equals(responses)


def test_texts_and_lone_surrogates_do_not_break_a_file(tmp_path):
    write_responses(make_responses(VARIANTS[:2], ["A\x00B", "日本\u202e"]), tmp_path / "a")
    assert read_responses(tmp_path / "a").table["reply"].tolist() == ["A\x00B", "日本\u202e"]
    write_responses(make_responses(VARIANTS[:2], ["A \ud83d", Reply(error="\ud800")]), tmp_path / "b")
    again = read_responses(tmp_path / "b").table
    assert again["reply"][0] == "A \\ud83d" and again["error"][1] == "\\ud800"
    assert again["prediction"].tolist() == [0, -1]


def test_further_columns_are_kept(tmp_path):
    responses = Responses(run().table.assign(note="mine", weight=0.5))
    write_responses(responses, tmp_path / "r")
    assert read_responses(tmp_path / "r").table[["note", "weight"]].values.tolist() == [["mine", 0.5]] * len(VARIANTS)


# ---- nothing is lost


def test_a_run_is_replaced_by_itself_alone(tmp_path):
    one = run(facts={"respondent": {"model": "m"}, "calls": {"asked": 3}, "versions": {"numpy": "1"}})
    write_responses(one, tmp_path / "r")
    more = run("C", facts={"respondent": {"model": "m"}, "calls": {"asked": 0}, "versions": {"numpy": "2"}})
    write_responses(more, tmp_path / "r")  # taken up again, on another day
    assert read_responses(tmp_path / "r").equals(more)
    for other, what in (
        (run(facts={"respondent": {"model": "n"}}), "respondent.model"),
        (run(facts={}), "respondent"),
        (more.rows(lambda t: t["method"] == "original"), "rows"),
        (more.rows(lambda t: t["method"] == "original", chosen="originals"), "rows, chosen"),
        (more.trial(0).rows(np.ones(28, dtype=bool), chosen="all of them"), "chosen"),
    ):
        with pytest.raises(CoraError, match=f"there is another run here already, with other {what}"):
            write_responses(other, tmp_path / "r")
        with pytest.raises(CoraError, match="another run here already"):
            check_folder(tmp_path / "r", other.facts)
        assert read_responses(tmp_path / "r").equals(more)
    assert check_folder(tmp_path / "r", more.facts) == tmp_path / "r" == check_folder(tmp_path / "r")


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "thesis.txt").write_text("years of work")
    with pytest.raises(CoraError, match=r"this folder holds something else \(thesis.txt\); it is left alone"):
        write_responses(run(), tmp_path / "r")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CoraError, match="this is a file, and a folder is to be written"):
        write_responses(run(), tmp_path / "file")
    with pytest.raises(CoraError, match="no permission|cannot be written"):
        write_responses(run(), tmp_path / "file" / "r")
    assert [p.name for p in (tmp_path / "r").iterdir()] == ["thesis.txt"] and (tmp_path / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert write_responses(run(), tmp_path / "empty") and read_responses(tmp_path / "empty").equals(run())


def test_a_run_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    "A disk that is full in the middle leaves no half of a new run, and the old one as it was."
    from cora_nb.responses import files

    good = run(facts={"a": 1})
    write_responses(good, tmp_path / "old")
    real = files._write_part

    def full(responses, name, path):
        if name == "responses.parquet":
            raise OSError(28, "No space left on device")
        real(responses, name, path)

    monkeypatch.setattr(files, "_write_part", full)
    for name in ("old", "new"):
        with pytest.raises(CoraError, match=f"{name}.*No space left on device"):
            write_responses(run("B", facts={"a": 1}), tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == ["old"] and read_responses(tmp_path / "old").equals(good)


@pytest.mark.parametrize("facts", [{"a": {1, 2}}, {"a": float("nan")}, {"a": Question("q", "?", ("a", "b"), 0)}])
def test_facts_must_be_plain(tmp_path, facts):
    with pytest.raises(CoraError, match="facts of a run must be plain JSON values"):
        write_responses(run(facts=facts), tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_which_facts_differ():
    a = {"x": 1, "v": {"seed": 0, "options": {"k": 1}}, "calls": {"asked": 5}}

    def differences(other, one=a):
        return as_facts(one).differences(as_facts(other))

    assert differences(a | {"calls": {}, "versions": {"numpy": 3}, "version": 1}) == []
    assert differences(a | {"v": {"seed": 1, "options": {"k": 2}}}) == ["v.seed", "v.options.k"]
    assert differences({"v": 3}) == ["x", "v"]
    assert differences({"v": {"calls": 3}}, one={}) == ["v"]  # only the run's own count is left out


# ---- what cannot be read


def test_files_that_are_none(tmp_path):
    (tmp_path / "text.parquet").write_text("hello")
    (tmp_path / "empty.parquet").write_bytes(b"")
    write_responses(run(), tmp_path / "whole")
    whole = (tmp_path / "whole" / "responses.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-100])
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "other.parquet")
    for name in ("text", "empty", "cut"):
        with pytest.raises(CoraError, match=f"{name}.parquet: not a Parquet file"):
            read_responses(tmp_path / f"{name}.parquet")
    with pytest.raises(CoraError, match="other.parquet: the column question_id, method, n_choices, reply is missing"):
        read_responses(tmp_path / "other.parquet")
    with pytest.raises(CoraError, match="there is no such file"):
        read_responses(tmp_path / "nothing.parquet")
    (tmp_path / "folder").mkdir()
    with pytest.raises(CoraError, match="folder: there is no run here"):
        read_responses(tmp_path / "folder")
    table = pq.read_table(tmp_path / "whole" / "responses.parquet")
    pq.write_table(table.replace_schema_metadata({b"cora_nb": b"[1"}), tmp_path / "facts.parquet")
    with pytest.raises(CoraError, match="facts.parquet: the facts in the file's metadata are broken"):
        read_responses(tmp_path / "facts.parquet")


@pytest.mark.parametrize(
    "facts",
    [
        {"asked": "cora"},
        {"asked": {"stop": ["cora"]}},
        {"asked": {"stop": "bmca", "thresholds": 0.5}},
        {"asked": {"stop": "bmca", "thresholds": ["half"]}},
        {"sample": "CoRA"},
        *({"sample": more} for more in ({"scores": []}, {"scores": "CoRA"}, {"half_width": "0.02"}, {"level": 95})),
        *({"sample": more} for more in ({"level_at_stop": None}, {"originals": 0}, {"pilot": 99}, {"seed": True})),
        *({"sample": more} for more in ({"profile": [3]}, {"profile": [["a", 1]]}, {"kind": "none"}, {"ended": 1})),
    ],
)
def test_facts_of_how_a_run_stopped_that_were_changed_are_refused_when_read(tmp_path, facts):
    "So that what reads them later, such as `score`, needs no check of its own."
    good = {"scores": ["CoRA"], "half_width": 0.02, "level": 0.95, "level_at_stop": 0.9575, "seed": 0, "prompts": 9}
    good |= {"kind": "phases", "questions": 60, "pilot": 30, "originals": 50, "profile": [[1, 50]]}
    good |= {"exact": False, "ended": True}
    write_responses(run(facts={"sample": good, "asked": {"stop": "precise", "thresholds": None}}), tmp_path / "run")
    assert read_facts(tmp_path / "run").sample.plain() == good
    if isinstance(facts.get("sample"), dict):
        facts = {"sample": good | facts["sample"]}
    table = pq.read_table(file := tmp_path / "run" / "responses.parquet")
    pq.write_table(table.replace_schema_metadata({b"cora_nb": json.dumps(facts).encode()}), file)
    with pytest.raises(CoraError, match="responses.parquet: the facts in the file's metadata are broken"):
        read_responses(tmp_path / "run")


def test_a_table_of_questions_that_lacks_one_is_noticed(tmp_path):
    write_responses(run(), tmp_path / "r")
    part = pd.read_parquet(tmp_path / "r" / "questions.parquet").iloc[:1]
    part.to_parquet(tmp_path / "r" / "questions.parquet")
    with pytest.raises(CoraError, match="question 'r' is not in the table of questions"):
        read_responses(tmp_path / "r")
    (tmp_path / "r" / "questions.parquet").unlink()  # the replies can be read without
    assert read_responses(tmp_path / "r").table.equals(run().table)


# ---- version 0.1


def old_file(path, rows, facts):
    "A file as version 0.1 wrote it: one Parquet file, lists in Arrow, facts under one metadata key, fewer columns."
    number = pa.int32()
    types = {
        "question_id": pa.string(),
        "subject": pa.string(),
        "family": pa.string(),
        "method": pa.string(),
        "index": number,
        "trial": number,
        "n_choices": number,
        "sources": pa.list_(pa.int16()),
        "answer": number,
        "prediction": number,
        "correct": pa.bool_(),
        "reply": pa.string(),
        "scores": pa.list_(pa.float64()),
        "confidence": pa.float64(),
        "error": pa.string(),
    }
    table = pa.Table.from_pylist(rows, schema=pa.schema(types))
    pq.write_table(table.replace_schema_metadata({b"cora_nb": json.dumps(facts).encode()}), path, compression="zstd")


def old_row(method, reply, prediction, answer=1, n=3, index=0, **more):
    row = {"question_id": "q", "subject": None, "family": "mcqa_plus", "method": method, "index": index, "trial": 0}
    said = {"answer": answer, "prediction": prediction, "correct": prediction == answer, "reply": reply}
    return (
        row
        | {"n_choices": n, "sources": list(range(n)), "scores": None, "confidence": None, "error": None}
        | said
        | more
    )


def test_files_of_version_0_1_still_read(tmp_path):
    rows = [
        old_row("original", "B", 1, confidence=0.75),
        old_row("true_false", "yes", 0, 0, 2, sources=[-1, -1]),
        old_row("true_false_written", None, 1, 0, 2, sources=[-1, -1], scores=[-3.0, -0.5]),
        old_row("multiple_selection", "A. ant, C. cat", -1),
        old_row("multiple_selection", None, -1, index=1, error="timeout"),
        old_row("lfgq", "It is B.", 1),
        old_row("increased", "E", 4, 1, 5, sources=[0, 1, 2, -1, -1]),
    ]
    facts = {"respondent": {"respondent": "chat", "model": "m", "name": "ann"}, "asked": {"template": "cora"}}
    old_file(tmp_path / "run.parquet", rows, facts)
    found = read_responses(tmp_path / "run.parquet")
    assert found.name == "ann" and found.facts == as_facts(facts) and found.family == "mcqa_plus"
    table = found.table
    assert dict(table.dtypes) == column_types()
    assert table["form"].tolist() == ["mcq", "tfq", "tfq", "several", "several", "lfgq", "mcq"]
    assert table["selected"].tolist() == [None, None, None, (0, 2), None, None, None]
    assert table["sources"].tolist()[-1] == (0, 1, 2, -1, -1) and table["scores"].tolist()[2] == (-3.0, -0.5)
    assert table["correct"].tolist() == [r["correct"] for r in rows] and table["confidence"][0] == 0.75
    assert table[["mean_logprob", "n_tokens", "finish"]].isna().all(axis=None)
    assert found.summary().loc["all"].tolist() == [7, 3, 3, 0, 0, 1, 0]
    write_responses(found, tmp_path / "run")
    assert read_responses(tmp_path / "run").table.equals(table)


def test_a_file_of_version_0_1_without_a_name_is_called_like_the_file(tmp_path):
    old_file(tmp_path / "some model.parquet", [old_row("original", "B", 1)], {})
    assert read_responses(tmp_path / "some model.parquet").name == "some model"
    old_file(tmp_path / "bad.parquet", [old_row("original", "B", 1), old_row("shuffled", "C", 7)], {})
    with pytest.raises(BadRow, match="bad.parquet, row 2, id 'q', prediction"):
        read_responses(tmp_path / "bad.parquet")


# ---------------------------------------------------------------- what is not ours stays


def test_files_that_are_not_ours_are_left_alone(tmp_path):
    "Inside the folder of a run, too: facts changed by hand, a Parquet file of somebody else, a run of another name."
    folder, again = tmp_path / "run", run("B", name="ann", facts={"a": 1})
    write_responses(again, folder)
    good = {p.name: p.read_bytes() for p in folder.iterdir()}
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "other.parquet")
    other = (tmp_path / "other.parquet").read_bytes()
    for name, content, says in [
        ("facts.json", b'{"a": 2}', "these are not the facts of the run"),
        ("facts.json", b"{}", "these are not the facts of the run"),
        ("facts.json", b"[1, 2]", "these are not the facts of the run"),
        ("facts.json", b"my notes", "these are not the facts of the run"),
        ("facts.json", b"", "these are not the facts of the run"),
        ("facts.json", b"[" * 100_000, "these are not the facts of the run"),
        ("questions.parquet", other, "not part of a run"),
        ("responses.parquet", other, "not part of a run"),
    ]:
        (folder / name).write_bytes(content)
        before = {p.name: p.read_bytes() for p in folder.iterdir()}
        for what in (lambda: write_responses(again, folder), lambda: check_folder(folder, again.facts)):
            with pytest.raises(CoraError, match=says) as e:
                what()
            assert len(str(e.value).splitlines()) == 1 and {p.name: p.read_bytes() for p in folder.iterdir()} == before
        (folder / name).write_bytes(good[name])
    assert run_name(folder) == "ann" and run_name(tmp_path) == "ann" and run_name(tmp_path / "none") is None
    with pytest.raises(CoraError, match="there is a run of 'ann' here, and this is one of 'bob'"):
        write_responses(run("B", name="bob", facts={"a": 1}), folder)
    write_responses(again, folder)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == good


# ---------------------------------------------------------------- spreadsheets


@given(texts | st.sampled_from("=+-@\t\r'").flatmap(lambda c: texts.map(lambda t: c + t)))
@settings(max_examples=300)
def test_no_cell_is_a_formula(text):
    "And reading gives it back, but for a NUL."
    cell = csv_cell(text)
    assert (
        cell[:1] not in tuple("=+-@\t\r") or cell == "" or re.fullmatch(r"[-+]?[0-9.,]+(e[-+]?[0-9]+)?%?", cell, re.I)
    )
    assert from_csv_cell(cell) == text.replace("\0", " ")


def test_a_table_with_formulas_everywhere(tmp_path):
    "In cells, in the header, in the index; numbers stay numbers."
    frame = pd.DataFrame(
        {
            "=a": ["=1+1", "+2", "-cmd", "@x", "\tx", "\rx", "fine", None],
            "text": pd.array(["-1", "+2.5", "-1e-05", "-3%", "- 1", "=", "-", pd.NA], dtype="string"),
            "kind": pd.Categorical(["=x", "y"] * 4),
            "number": [-1.5, 2, -3, math.nan, -math.inf, 0, 1, 2],
            "whole": range(-4, 4),
            "is": [True, False] * 4,
        }
    )
    frame.index = [f"={i}" for i in range(8)]
    cells = csv_cells(frame)
    assert list(cells.columns)[0] == "'=a" and all(i.startswith("'=") for i in cells.index)
    assert cells["'=a"].tolist()[:-1] == ["'=1+1", "+2", "'-cmd", "'@x", "'\tx", "'\rx", "fine"]
    assert cells["text"].tolist()[:-1] == ["-1", "+2.5", "-1e-05", "-3%", "'- 1", "'=", "'-"]
    assert cells["kind"].tolist() == ["'=x", "y"] * 4
    assert [cells[c].equals(frame[c].set_axis(cells.index)) for c in ("number", "whole", "is")] == [True] * 3
    back = pd.read_csv(write_csv(frame, tmp_path / "t.csv"))
    assert back["number"].equals(frame["number"].reset_index(drop=True)) and back["whole"].tolist() == [*range(-4, 4)]
    write_csv(frame, tmp_path / "t.csv")  # our own is replaced
    for content in (b"my,notes\n1,2\n", b"", b"\xff\xfe", b'{"a": 1}', b'"' * 9):
        (tmp_path / "mine.csv").write_bytes(content)
        with pytest.raises(CoraError, match="mine.csv: there is another file of this name already"):
            write_csv(frame, tmp_path / "mine.csv")
        assert (tmp_path / "mine.csv").read_bytes() == content


def test_every_csv_of_the_package_goes_through_one_function():
    "`to_csv` is called only on what `csv_cells` has made."
    for file in Path(cora_nb.__file__).parent.rglob("*.py"):
        for line in file.read_text("utf-8").splitlines():
            if ".to_csv(" in line:
                assert re.search(r"\b(csv_cells\(\w+\)|cells)\.to_csv\(", line), f"{file}: {line.strip()}"


def test_a_table_of_ours_may_lack_a_column(tmp_path):
    "A run with failed prompts has notes, and the same run without them has none."
    file = tmp_path / "tables.csv"
    write_csv(pd.DataFrame({"score": ["a"], "value": [1.0], "note": ["1 of 9 failed"]}), file)
    less = pd.DataFrame({"score": ["a"], "value": [2.0]})
    with pytest.raises(CoraError, match="there is another file of this name already"):
        write_csv(less, file)
    write_csv(less, file, known=("score", "value", "note"))
    assert file.read_text().splitlines() == ["score,value", "a,2.0"]
    file.write_text("mine\n1\n")
    with pytest.raises(CoraError, match="there is another file of this name already"):
        write_csv(less, file, known=("score", "value", "note"))
