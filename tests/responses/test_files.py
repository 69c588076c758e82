"""A run on disk: reads back equal, appears whole or not at all, and is never replaced by another."""

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

import cora_nb
from cora_nb.benchmarks.load import benchmark_hash
from cora_nb.core import BadRow, CoraError, Question
from cora_nb.forms import FORMS, Variant
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
from cora_nb.metrics.scoring import score
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.responses.runs import concat
from cora_nb.variants.families import make_variants
from helpers import slow_after

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
@settings(max_examples=60)
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
    with pytest.raises(CoraError, match="other.parquet: the column question_id, method, correct is missing"):
        read_responses(tmp_path / "other.parquet")
    with pytest.raises(CoraError, match="there is no such file"):
        read_responses(tmp_path / "nothing.parquet")
    (tmp_path / "folder").mkdir()
    with pytest.raises(CoraError, match="folder: there is no run here"):
        read_responses(tmp_path / "folder")
    (tmp_path / "whole" / "facts.json").write_text("[1")
    with pytest.raises(CoraError, match="facts.json: the facts are broken"):
        read_responses(tmp_path / "whole")


def test_several_files_are_one_run(tmp_path):
    write_responses(run(), tmp_path / "r")
    table = pq.read_table(tmp_path / "r" / "responses.parquet")
    (tmp_path / "many").mkdir()
    files = [tmp_path / "many" / f"{n}.parquet" for n in range(2)]
    for n, file in enumerate(files):
        pq.write_table(table[n * 5 : n * 5 + 5] if n == 0 else table[5:], file)
    shutil.copy(tmp_path / "r" / "facts.json", tmp_path / "many")
    shutil.copy(tmp_path / "r" / "questions.parquet", tmp_path / "many")
    for path in (files, tmp_path / "many"):
        assert read_responses(path).equals(read_responses(tmp_path / "r"))
    with pytest.raises(CoraError, match="stands in an earlier row"):
        read_responses([files[0], files[0]])
    few = read_responses(tmp_path / "r", columns=["n_choices"])
    assert "reply" not in few.table and score(few).equals(score(run()))


@pytest.mark.parametrize("theirs", [4, 5], ids=["as many", "and one more"])
def test_the_questions_of_another_run_are_refused(tmp_path, theirs):
    for name, text, n in (("a", "What?", 4), ("b", "Who?", theirs)):
        asked = [Question(f"q{i}", text, ("x", "y", "z"), i % 3) for i in range(n)]
        write_responses(evaluate(SimulatedRespondent(), make_variants(asked), progress=False), tmp_path / name)
    shutil.copy(tmp_path / "b/questions.parquet", tmp_path / "a")
    with pytest.raises(CoraError, match="a/questions.parquet: these are the questions of another run"):
        read_responses(tmp_path / "a")


@pytest.mark.parametrize("column, value", [("text", None), ("answer", None), ("text", r"\udeg"), ("text", r"\ud83d")])
def test_one_question_that_is_not_known_does_not_hide_the_others(tmp_path, column, value):
    asked = [Question(f"q{i}", f"What is {i}?", ("x", "y", "z"), i % 3) for i in range(4)]
    write_responses(evaluate(SimulatedRespondent(), make_variants(asked), progress=False), tmp_path / "a")
    questions = pd.read_parquet(tmp_path / "a/questions.parquet")
    questions.loc[0, column] = value
    questions.loc[2, "text"] = "Who?"
    questions.to_parquet(tmp_path / "a/questions.parquet")
    with pytest.raises(CoraError, match="questions of another run"):
        read_responses(tmp_path / "a")


def test_questions_with_half_a_character_are_checked_too(tmp_path):
    "A file holds it escaped; what is written so by the user stays so."
    texts = ["What is \ud83d?", "What is \\udeg?"]
    asked = [Question(f"q{i}", text, ("x \udc00", "y"), 0) for i, text in enumerate(texts)]
    write_responses(evaluate(SimulatedRespondent(), make_variants(asked), progress=False), tmp_path / "a")
    assert len(read_responses(tmp_path / "a").questions) == 2
    questions = pd.read_parquet(tmp_path / "a/questions.parquet")
    questions.loc[1, "text"] = "Who?"
    questions.to_parquet(tmp_path / "a/questions.parquet")
    with pytest.raises(CoraError, match="questions of another run"):
        read_responses(tmp_path / "a")


def test_questions_whose_texts_are_left_out_are_read(tmp_path):
    write_responses(run(), tmp_path / "a")
    questions = pd.read_parquet(tmp_path / "a/questions.parquet").assign(text=None)
    questions.to_parquet(tmp_path / "a/questions.parquet")
    assert read_responses(tmp_path / "a").questions["text"].isna().all()


def test_writing_does_not_make_the_questions_of_another_run_ours(tmp_path):
    "A hash is added to facts that have none, and never exchanged."
    one, other = (
        evaluate(SimulatedRespondent(), make_variants([Question("q", text, ("x", "y"), 0)]), progress=False)
        for text in ("What?", "Who?")
    )
    write_responses(Responses(one.table, other.questions, one.facts, one.name), tmp_path / "a")
    with pytest.raises(CoraError, match="questions of another run"):
        read_responses(tmp_path / "a")


def _with_questions_of(folder, other):
    "Exchange the questions of a written run, by those with the same ids."
    shutil.copy(other / "questions.parquet", folder)


TWO = [Question(f"q{i}", f"Question {i}?", tuple("abcd"), i % 4, "xy"[i % 2]) for i in range(6)]
SLICES = {
    "one subject": lambda run: run.rows(lambda t: t["subject"] == "x"),
    "some questions": lambda run: run.rows(lambda t: t["question_id"].isin(["q1", "q4"])),
    "some questions, chosen": lambda run: run.rows(lambda t: t["question_id"] == "q3", "a test"),
    "first trial": lambda run: run.first_trial(),
    "a method": lambda run: run.rows(lambda t: t["method"] == "nota"),
    "a slice of a slice": lambda run: run.rows(lambda t: t["subject"] == "x").first_trial().rows(lambda t: t.index < 5),
    "parts joined": lambda run: concat([run.rows(lambda t, s=s: t["subject"] == s) for s in "yx"]),
    "a question without its first trial": lambda run: run.rows(
        lambda t: (t["question_id"] != "q2") | (t["trial"] == 1)
    ),
}


@pytest.mark.parametrize("kind", SLICES)
def test_the_questions_of_a_slice_are_checked(tmp_path, kind):
    "Other words, with the same answers: only a hash can tell. A slice is written again, also after it was read."
    asked = evaluate(SimulatedRespondent(), make_variants(TWO), Asking(trials=2), progress=False)
    part = SLICES[kind](asked)
    write_responses(part, tmp_path / "a")
    again = read_responses(tmp_path / "a")
    told = {q.id: q for q in TWO}
    held = [told[id] for id in again.questions["question_id"]]
    assert again.facts.benchmark.hash == benchmark_hash(held) and again.questions.equals(part.questions)
    assert not again.facts.told_differences(part.facts)
    for same in (part, again):
        write_responses(same, tmp_path / "a")
    for further in (again.first_trial(), again.rows(np.arange(len(again)) < 3)):
        write_responses(further, tmp_path / f"b{len(further)}")
        read_responses(tmp_path / f"b{len(further)}")
    others = make_variants([replace(q, text=f"Another {q.text}") for q in held])
    write_responses(make_responses(others, ["A"] * len(others)), tmp_path / "other")
    _with_questions_of(tmp_path / "a", tmp_path / "other")
    with pytest.raises(CoraError, match="a/questions.parquet: these are the questions of another run"):
        read_responses(tmp_path / "a")


@pytest.mark.parametrize(
    "change",
    [
        lambda q: replace(q, answer=(q.answer + 1) % 4),
        lambda q: replace(q, choices=(*q.choices, "e")),
        lambda q: replace(q, choices=q.choices[:3], answer=min(q.answer, 2)),
    ],
)
@pytest.mark.parametrize(
    "family", slow_after(2, ["cora", "mcqa_plus", "cyclic", "permutations", "wording", "answer_swap", "formats"])
)
def test_rows_of_the_original_fit_their_questions_without_a_hash(tmp_path, family, change):
    "The message names the file, the row, the question and both values."
    variants = make_variants(TWO, family)
    write_responses(make_responses(variants, ["A"] * len(variants)), tmp_path / "a")
    assert read_responses(tmp_path / "a").facts.benchmark.hash is None
    changed = [*TWO[:3], change(TWO[3]), *TWO[4:]]
    write_responses(
        make_responses(make_variants(changed, family), ["A"] * len(make_variants(changed, family))), tmp_path / "b"
    )
    _with_questions_of(tmp_path / "a", tmp_path / "b")
    at = next(
        n
        for n, v in enumerate(variants, 1)
        if v.question_id == "q3" and v.form == "mcq" and v.method in ("original", "mcq")
    )
    with pytest.raises(BadRow) as e:
        read_responses(tmp_path / "a")
    both = {e.value.value, len(changed[3].choices) if e.value.field == "n_choices" else changed[3].answer}
    assert (
        (e.value.row, e.value.id) == (at, "q3") and len(both) == 2 and all(str(value) in str(e.value) for value in both)
    )
    assert str(tmp_path / "a") in str(e.value) and "\n" not in str(e.value)
    read_responses(tmp_path / "a", columns=["reply"])  # without the columns that say it


def test_only_what_is_certain_is_compared(tmp_path):
    "An original in another order, a family of the user's, a question whose choices or answer are not known."
    table = run().table
    shuffled = table.assign(
        sources=[s[::-1] for s in table["sources"]], answer=table["n_choices"] - 1 - table["answer"]
    )
    shuffled = shuffled.assign(correct=shuffled["prediction"] == shuffled["answer"])
    mine = table.assign(family="mine", method="negated", index=range(len(table)), answer=0)
    mine = mine.assign(correct=mine["prediction"] == 0)
    questions = run().questions
    unknown = questions.assign(choices=None, answer=pd.array([None] * len(questions), dtype="Int32"))
    odd = table.assign(answer=0, correct=table["prediction"] == 0)
    for number, (rows, known) in enumerate([(shuffled, questions), (mine, questions), (odd, unknown), (odd, None)]):
        write_responses(Responses(rows, known), tmp_path / str(number))
        assert len(read_responses(tmp_path / str(number))) == len(rows)


def test_columns_are_a_list(tmp_path):
    write_responses(run(), tmp_path / "a")
    with pytest.raises(CoraError, match=r"list of names, such as \['reply'\]"):
        read_responses(tmp_path / "a", columns="reply")
    assert "reply" in read_responses(tmp_path / "a", columns=["reply"]).table


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
    (tmp_path / "run" / "facts.json").write_text(json.dumps(facts))
    with pytest.raises(CoraError, match="facts.json: the facts are broken"):
        read_responses(tmp_path / "run")


def test_a_table_of_questions_that_lacks_one_is_noticed(tmp_path):
    write_responses(run(), tmp_path / "r")
    part = pd.read_parquet(tmp_path / "r" / "questions.parquet").iloc[:1]
    part.to_parquet(tmp_path / "r" / "questions.parquet")
    with pytest.raises(CoraError, match="question 'r' is not in the table of questions"):
        read_responses(tmp_path / "r")
    (tmp_path / "r" / "questions.parquet").unlink()  # the replies can be read without
    assert read_responses(tmp_path / "r").table.equals(run().table)


# ---------------------------------------------------------------- what is not ours stays


def test_files_that_are_not_ours_are_left_alone(tmp_path):
    "Inside the folder of a run, too: facts changed by hand, a Parquet file of somebody else, a run of another name."
    folder, again = tmp_path / "run", run("B", name="ann", facts={"a": 1})
    write_responses(again, folder)
    good = {p.name: p.read_bytes() for p in folder.iterdir()}
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "other.parquet")
    other = (tmp_path / "other.parquet").read_bytes()
    for name, content, says in [
        ("facts.json", b'{"a": 2}', "with other a"),
        ("facts.json", b"{}", "with other a"),
        ("facts.json", b"[1, 2]", "the facts are broken"),
        ("facts.json", b"my notes", "the facts are broken"),
        ("facts.json", b"", "the facts are broken"),
        ("facts.json", b"[" * 100_000, "the facts are broken"),
        ("questions.parquet", other, "this folder holds something else"),
        ("responses.parquet", other, "this folder holds something else"),
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
@settings(max_examples=60)
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
