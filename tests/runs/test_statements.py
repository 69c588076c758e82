"""Statements that a writer made: rounds, resuming, a model behind a server, files."""

import asyncio
import random
import re
from dataclasses import replace

import pandas as pd
import pytest

from cora_nb.core import BadRow, CoraError, Question
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.runs.statements import OTHERS
from cora_nb.runs.statements import (
    COLUMNS,
    complete_statements,
    read_statements,
    save_statements,
    statement_variants,
    statements_summary,
    write_statements,
)
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants
from faulty_server import Answer, FaultyServer, completion, refusal
from statement_texts import SUN, built, places

SEA = Question("sea", "Which of these is NOT a sea?", ("Baltic", "Sahara", "Black", "All of the above"), 1)
RED = Question(
    "red", 'A car is not blue. Which colour, with "quotes", commas\nand a second line?', ('red, "bright"', "Grün."), 0
)
QUESTIONS = [SUN, SEA, RED]


class Writer:
    "Writes by rule unless told otherwise, and counts."

    name = "writer"

    def __init__(self, habit=lambda variant: None):
        self.habit, self.seen = habit, []

    def describe(self):
        return {"respondent": "writer"}

    def request(self, prompt):
        return {**self.describe(), "prompt": prompt.text}

    async def answer(self, prompts):
        for position, prompt in enumerate(prompts):
            await asyncio.sleep(0)
            self.seen.append(prompt.text)
            said = self.habit(prompt.variant)
            yield (
                position,
                said
                if isinstance(said, Reply)
                else Reply(built(prompt.variant.question, prompt.variant.index) if said is None else said),
            )


# ---- rounds


def test_a_table_of_good_sentences():
    writer = Writer()
    table = write_statements(writer, QUESTIONS, progress=False)
    assert list(table.columns) == list(COLUMNS) and len(table) == 10 == len(writer.seen) + 1
    assert (
        table["statement"].isna().tolist() == [False] * 7 + [True] + [False] * 2
        and table["round"].tolist() == [1] * 7 + [0] + [1] * 2
    )
    assert table.loc[7, "reason"] == OTHERS and pd.isna(table.loc[7, "reply"])
    statements = complete_statements(table)
    assert set(statements) == {(q.id, i) for q, i in places([SUN, RED])}
    asked = [v for v in make_variants(QUESTIONS, family="mcqa_plus", statements=statements) if v.form == "tfq"]
    assert {(v.question_id, v.method) for v in asked} == {
        ("sun", "true_false_written"),
        ("sea", "true_false"),
        ("red", "true_false_written"),
    }
    assert all(v.asked == built(v.question, v.index) for v in asked if v.question_id != "sea")


def test_only_the_refused_are_asked_again_and_told_why():
    writer = Writer(lambda v: "Is it true that it is not so?" if v.method == "statement" and v.index == 1 else None)
    table = write_statements(writer, [SUN, RED], progress=False)
    assert table["round"].tolist() == [1, 2, 1, 1, 1, 2] and (table["reason"] == "").all()
    second = writer.seen[6:]
    assert len(second) == 2 and all("because it lost the words of the proposed answer" in text for text in second)
    assert "exactly these words: West" in second[0] and "exactly these words: Grün." in second[1]
    assert [
        v.text
        for v in statement_variants(
            [SUN, RED],
            {("sun", 1): "lost the words of the proposed answer", ("red", 1): "lost the words of the proposed answer"},
        )
    ] == second


def test_the_stubborn_and_the_failing_are_rows():
    writer = Writer(lambda v: {0: "no", 1: Reply(error="503 overloaded"), 2: ""}.get(v.index))
    table = write_statements(writer, [SUN], progress=False)
    assert table["reason"].tolist() == [
        "does not begin with Is it true that",
        "no reply: 503 overloaded",
        "is empty",
        "",
    ] and table["round"].tolist() == [2, 1, 2, 1]
    assert complete_statements(table) == {}
    summary = statements_summary(table)
    assert summary["choices"].to_dict() == {
        "written": 1,
        "refused: is empty": 1,
        "refused: does not begin with Is it true that": 1,
        "failed": 1,
        "all": 4,
        "complete": 0,
    }
    assert (
        table.attrs["facts"]["writer"] == {"respondent": "writer"}
        and sum(table.attrs["facts"]["refused"][1].values()) == 2
    )


def test_a_second_call_asks_nothing(tmp_path):
    def habit(v):
        return "nonsense" if v.index == 1 and (v.method == "statement" or v.question_id == "sun") else None

    with Store(tmp_path / "replies.db") as store:
        first = write_statements(writer := Writer(habit), QUESTIONS, store=store, progress=False)
        assert len(writer.seen) == 9 + 3
        second = write_statements(idle := Writer(habit), QUESTIONS, store=store, progress=False)
    assert idle.seen == [] and second.equals(first)


def test_only_what_failed_is_asked_by_the_next_call(tmp_path):
    with Store(tmp_path / "replies.db") as store:
        write_statements(
            Writer(lambda v: Reply(error="down") if v.question_id == "red" else None),
            QUESTIONS,
            store=store,
            progress=False,
        )
        table = write_statements(writer := Writer(), QUESTIONS, store=store, progress=False)
    assert len(writer.seen) == 2 and len(complete_statements(table)) == 6


def test_a_killed_run_goes_on(tmp_path):
    class Killed(Exception):
        pass

    def habit(v):
        if v.question_id == "red":
            raise Killed

    with Store(tmp_path / "replies.db") as store:
        with pytest.raises(Killed):
            write_statements(Writer(habit), QUESTIONS, store=store, progress=False)
        write_statements(writer := Writer(), QUESTIONS, store=store, progress=False)
    assert len(writer.seen) == 2


@pytest.mark.parametrize(
    "writer,field",
    [
        (ChatRespondent("m", base_url="http://127.0.0.1:9", max_tokens=1), "max_tokens=1 of m"),
        (ChatRespondent("m", base_url="http://127.0.0.1:9", max_tokens=15), "max_tokens=15"),
        (CausalRespondent("no-such-model", max_new_tokens=1), "max_new_tokens=1 of no-such-model"),
    ],
)
def test_a_writer_without_room_is_refused_at_once(writer, field):
    with pytest.raises(CoraError, match=field):
        write_statements(writer, [SUN])


def test_bad_questions():
    with pytest.raises(CoraError, match="there are no questions"):
        write_statements(Writer(), [])
    with pytest.raises(CoraError, match="2 questions have the id 'sun'"):
        write_statements(Writer(), [SUN, SUN])
    with pytest.raises(CoraError, match="needs the column n_choices"):
        complete_statements(pd.DataFrame({"question_id": [], "choice": [], "statement": []}))


def test_a_row_that_was_deleted_or_doubled_completes_nothing():
    table = write_statements(Writer(), [SUN], progress=False)
    assert complete_statements(table.drop(index=3)) == {}
    assert complete_statements(pd.concat([table.drop(index=3), table.iloc[:1]])) == {}


# ---- a model behind a server


def test_a_chat_model_writes(monkeypatch, tmp_path):
    monkeypatch.setattr(random, "uniform", lambda low, high: 0.0)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")

    def plan(asked):
        proposed = re.search(r"Proposed answer: (.*)\nYes-or-no question:$", asked.prompt)[1]
        if proposed == "North":
            return Answer(500, refusal("something broke"))
        if proposed == "West" and "last attempt" not in asked.prompt:
            return Answer(body=completion("Is it true that the sun does not rise in the west?"))
        return Answer(
            body=completion(
                f"<think>easy</think>**Question:** Is it true that the sun rises in the {proposed.lower()}?"
            )
        )

    with FaultyServer(plan) as server, Store(tmp_path / "replies.db") as store:
        model = ChatRespondent("m", base_url=server.url, max_tokens=60, retries=1)
        table = write_statements(model, [SUN], store=store, progress=False)
        assert table["statement"].fillna("-").tolist() == [
            "Is it true that the sun rises in the east?",
            "Is it true that the sun rises in the west?",
            "-",
            "Is it true that the sun rises in the south?",
        ]
        assert (
            table["round"].tolist() == [1, 2, 1, 1]
            and table.loc[2, "reason"] == "no reply: 500 something broke, tried 2 times"
        )
        assert len(server.asked) == 3 + 2 + 1 and server.asked[0].body["max_tokens"] == 60
        assert [m["role"] for m in server.asked[0].body["messages"]] == ["user"]
        server.plan = lambda asked: Answer(body=completion("Is it true that the sun rises in the north?"))
        assert (
            len(complete_statements(write_statements(model, [SUN], store=store, progress=False))) == 4
            and len(server.asked) == 7
        )


# ---- files


@pytest.fixture
def table():
    return write_statements(
        Writer(lambda v: 'nonsense,\n"quoted"' if v.key[::2] == ("sun", 1) else None), QUESTIONS, progress=False
    )


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "T.CSV"])
def test_a_file_gives_the_table_back(table, tmp_path, name):
    save_statements(table, tmp_path / name)
    again = read_statements(tmp_path / name, QUESTIONS)
    pd.testing.assert_frame_equal(again, table)
    facts = table.attrs["facts"]
    assert ("facts" in again.attrs) == name.endswith("parquet") and again.attrs.get("facts", facts) == facts
    save_statements(again, tmp_path / name, overwrite=True)
    pd.testing.assert_frame_equal(
        read_statements(tmp_path / name, QUESTIONS[::-1]).sort_values(["question_id", "choice"], ignore_index=True),
        table.sort_values(["question_id", "choice"], ignore_index=True),
    )
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_file_that_is_there_is_left_alone(table, tmp_path):
    (path := tmp_path / "t.csv").write_text("somebody's afternoon")
    with pytest.raises(CoraError, match="perhaps corrected by hand"):
        save_statements(table, path)
    assert path.read_text() == "somebody's afternoon"
    for bad, why in (
        (tmp_path / "t.xlsx", "must end in .csv or .parquet"),
        (tmp_path / "no" / "t.csv", "there is no folder"),
        (tmp_path / "t", "must end in"),
    ):
        with pytest.raises(CoraError, match=why):
            save_statements(table, bad)
    with pytest.raises(CoraError, match="needs the column reply"):
        save_statements(table.drop(columns="reply"), tmp_path / "u.csv")


def test_a_person_corrects(table, tmp_path):
    save_statements(table, tmp_path / "t.csv")
    sheet = pd.read_csv(tmp_path / "t.csv", dtype=str, keep_default_na=False)
    sheet.loc[1, "statement"] = " Does the sun rise in the west? "  # refused before
    sheet.loc[4, "statement"] = "Is the Baltic not a sea?"  # was good
    sheet.loc[7, "statement"] = "Are none of the three of them seas?"  # was not asked
    sheet.drop(index=9).to_csv(tmp_path / "u.csv", index=False)
    again = read_statements(tmp_path / "u.csv", QUESTIONS)
    assert again["statement"].iloc[[1, 4, 7]].tolist() == [
        "Does the sun rise in the west?",
        "Is the Baltic not a sea?",
        "Are none of the three of them seas?",
    ]
    assert again["round"].tolist() == [1, 0, 1, 1, 0, 1, 1, 0, 1, 0] and again.loc[9, "reason"] == "not in the file"
    assert {id for id, _ in complete_statements(again)} == {"sun", "sea"} and statements_summary(again).loc[
        "written by hand", "choices"
    ] == 3
    save_statements(again, tmp_path / "v.parquet")
    pd.testing.assert_frame_equal(read_statements(tmp_path / "v.parquet", QUESTIONS), again)


def test_statements_of_other_questions_are_noticed(table, tmp_path):
    save_statements(table, tmp_path / "t.csv")
    with pytest.raises(
        BadRow, match="row 1, id 'sun', statement: the writer's statement cannot be used for 'Up': lost the words"
    ) as e:
        read_statements(tmp_path / "t.csv", [replace(SUN, choices=("Up", "Down", "Left", "Right")), SEA, RED])
    assert (e.value.row, e.value.id, e.value.field) == (1, "sun", "statement")


@pytest.mark.parametrize(
    "rows,row,field,value",
    [
        ("moon,0,Is it?", 1, "question_id", "moon"),
        (",0,Is it?", 1, "question_id", ""),
        ("sun,0,Is it?\nsun,4,Is it?", 2, "choice", "4"),
        ("sun,-1,Is it?", 1, "choice", "-1"),
        ("sun,A,Is it?", 1, "choice", "A"),
        ("sun,0.5,Is it?", 1, "choice", "0.5"),
        ("sun,,Is it?", 1, "choice", ""),
        ("sun,²,Is it?", 1, "choice", "²"),
        ('sun,1,"  \n"', 1, "statement", "  \n"),
        ("sun,1,a\nsea,1,b\nsun,1,", 3, "choice", 1),
    ],
)
def test_bad_rows(tmp_path, rows, row, field, value):
    (path := tmp_path / "t.csv").write_text(f"question_id,choice,statement\n{rows}\n", encoding="utf-8")
    with pytest.raises(BadRow) as e:
        read_statements(path, QUESTIONS)
    assert (e.value.file, e.value.row, e.value.field, e.value.value) == (
        str(path),
        row,
        field,
        value,
    ) and "\n" not in str(e.value)


def test_bad_files(tmp_path):
    (tmp_path / "a.csv").write_text("id,statement\nsun,x\n")
    (tmp_path / "b.parquet").write_text("no")
    for name, why in (
        ("a.csv", "no column 'question_id' and no 'choice'"),
        ("b.parquet", "not a readable Parquet file"),
        ("c.csv", "there is no such file"),
    ):
        with pytest.raises(CoraError, match=why):
            read_statements(tmp_path / name, QUESTIONS)
    with pytest.raises(CoraError, match="2 questions have the id"):
        read_statements(tmp_path / "a.csv", [SUN, SUN])
