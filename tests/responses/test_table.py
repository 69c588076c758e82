"""The responses table: what goes in comes out, and what is wrong is named."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import BadRow, CoraError, Question
from cora_nb.respondents.protocol import Reply
from cora_nb.responses.columns import checked_table, column_types
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.responses.responses import make_responses
from cora_nb.responses.rows import grade_reply
from cora_nb.variants.families import make_variants

VARIANTS = make_variants([Question("q", "?", ("a", "b", "c", "d"), 2, "s"), Question("r", "!", ("yes", "no"), 1)])


def replies_for(variants):
    "Replies of every kind, fitting each variant."

    def one(v):
        scores = st.lists(st.floats(-50, 0), min_size=v.n_choices, max_size=v.n_choices).map(tuple)
        return st.one_of(
            st.builds(Reply, text=st.text(max_size=20)),
            st.builds(Reply, text=st.sampled_from("ABCDEF")),
            st.builds(Reply, scores=scores, confidence=st.floats(0, 1)),
            st.builds(Reply, error=st.sampled_from(["timeout", "429"])),
        )

    return st.tuples(*map(one, variants))


@given(replies_for(VARIANTS))
@settings(max_examples=50)
def test_round_trip_and_counts(tmp_path_factory, replies):
    table = make_responses(VARIANTS, replies)
    assert checked_table(table).equals(table) and dict(table.dtypes) == column_types()
    path = tmp_path_factory.mktemp("r") / "r.parquet"
    write_responses(table, path, {"model": "m"})
    again = read_responses(path)
    assert again.equals(table) and dict(again.dtypes) == column_types() and again.facts == {"model": "m"}
    counts = table.summary()
    assert (counts[["right", "wrong", "unparsed", "failed", "not_asked"]].sum(axis=1) == counts["rows"]).all()
    assert counts.loc["all", "rows"] == len(VARIANTS) and counts.loc["all", "failed"] == sum(
        r.error is not None for r in replies
    )
    for row, v, r in zip(table.itertuples(), VARIANTS, replies):
        assert (
            tuple(row.sources) == v.sources and row.answer == v.answer and row.correct == (row.prediction == v.answer)
        )
        assert (row.reply is pd.NA) == (r.text is None) and (row.scores is pd.NA or tuple(row.scores) == r.scores)


def test_texts_and_lone_surrogates_do_not_break_a_file(tmp_path):
    table = make_responses(VARIANTS[:2], ["A\x00B", "日本\u202e"])
    write_responses(table, tmp_path / "t.parquet")
    assert read_responses(tmp_path / "t.parquet")["reply"].tolist() == ["A\x00B", "日本\u202e"]
    half = make_responses(VARIANTS[:2], ["A \ud83d", Reply(error="\ud800")])
    write_responses(half, tmp_path / "t.parquet")
    again = read_responses(tmp_path / "t.parquet")
    assert (
        again["reply"][0] == "A \\ud83d" and again["error"][1] == "\\ud800" and again["prediction"].tolist() == [0, -1]
    )


def test_scores_with_a_tie_choose_nothing():
    assert predict(Reply(scores=(-1.0, -1.0, -2.0)), "abc", "first_token") == -1
    assert predict(Reply(scores=(-2.0, -1.0, -1.5)), "abc", "first_token") == 1
    assert (
        predict(Reply(scores=(float("nan"), 0.0)), "ab", "first_token")
        == predict(Reply(scores=()), "ab", "first_token")
        == -1
    )
    assert predict(Reply(text="B", scores=(0.0, -9.0)), "ab", "first_token") == 1  # words win over scores


def test_lengths_must_agree():
    with pytest.raises(CoraError, match="equally many, got 2, 1 and 2"):
        make_responses(VARIANTS[:2], ["A"])


BREAKS = [
    ("question_id", None, "question_id must not be missing"),
    ("family", None, "family must not be missing"),
    ("method", None, "method must not be missing"),
    ("prediction", 1.9, "prediction must be a whole number"),
    ("index", 2**40, "index must be a whole number"),
    ("correct", 2, "correct must be true or false"),
    ("trial", "x", "trial must be a whole number"),
    ("index", -1, "index must be at least 0"),
    ("trial", -2, "trial must be at least 0"),
    ("n_choices", 27, "n_choices must be from 2 to 26"),
    ("n_choices", 3, "sources must name one source"),
    ("sources", [0], "sources must name one source"),
    ("answer", 4, "answer must be an index of a choice shown"),
    ("answer", -1, "answer must be an index"),
    ("prediction", 4, "prediction must be an index of a choice shown, or -1"),
    ("prediction", -2, "prediction must be"),
    ("correct", True, "correct must say whether"),
    ("correct", None, "correct must not be missing"),
    ("prediction", None, "prediction must not be missing"),
    ("scores", [0.1, 0.2], "scores must be one number for each choice"),
    ("error", "timeout", "a failed reply has no prediction"),
]


@pytest.mark.parametrize("column,value,why", BREAKS)
def test_the_first_broken_row_is_named(column, value, why):
    table = make_responses(VARIANTS[:6], list("AAAAAA"))
    broken = table.astype(object)
    broken.at[3, column] = value
    with pytest.raises(BadRow) as e:
        checked_table(broken, "some.parquet")
    assert why in str(e.value) and "some.parquet, row 4" in str(e.value)


def test_duplicates_wrong_types_and_missing_columns():
    table = make_responses(VARIANTS[:3], list("AAA"))
    with pytest.raises(BadRow, match="row 4.*earlier row"):
        checked_table(pd.concat([table, table.iloc[:1]], ignore_index=True))
    with pytest.raises(CoraError, match="wrong type"):
        checked_table(table.astype(object).assign(sources="B"))
    with pytest.raises(CoraError, match="'trial' occurs twice"):
        checked_table(pd.concat([table, table[["trial"]]], axis=1))
    with pytest.raises(CoraError, match="x.parquet: the column correct is missing"):
        checked_table(table.drop(columns="correct"), "x.parquet")
    extra = checked_table(table.assign(note="kept out"))
    assert list(extra.columns) == list(column_types())


def test_files_that_are_none(tmp_path):
    (tmp_path / "text.parquet").write_text("hello")
    (tmp_path / "empty.parquet").write_bytes(b"")
    whole = make_responses(VARIANTS, ["A"] * len(VARIANTS))
    write_responses(whole, tmp_path / "cut.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "cut.parquet").read_bytes()[:-100])
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "other.parquet")
    for name in ("text", "empty", "cut"):
        with pytest.raises(CoraError, match=f"{name}.parquet: not a Parquet file"):
            read_responses(tmp_path / f"{name}.parquet")
    with pytest.raises(CoraError, match="other.parquet: the column question_id"):
        read_responses(tmp_path / "other.parquet")
    with pytest.raises(CoraError, match="there is no such file"):
        read_responses(tmp_path / "nothing.parquet")
    with pytest.raises(CoraError, match="this is a folder"):
        read_responses(tmp_path)
    with pytest.raises(CoraError, match="there is no folder"):
        write_responses(whole, tmp_path / "no" / "where.parquet")


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    "A table that is refused leaves the file that was there untouched, and no part of itself."
    good = make_responses(VARIANTS[:2], list("AA"))
    write_responses(good, tmp_path / "r.parquet")
    with pytest.raises(BadRow):
        write_responses(good.assign(prediction=np.int32(9)), tmp_path / "r.parquet")
    assert read_responses(tmp_path / "r.parquet").equals(good) and [p.name for p in tmp_path.iterdir()] == ["r.parquet"]


def test_facts_survive_pandas_and_pyarrow(tmp_path):
    table = make_responses(VARIANTS[:2], list("AA"))
    table.facts = {"model": "日本", "shots": 5, "nested": {"a": [1, None]}}
    write_responses(table, tmp_path / "r.parquet")
    assert read_responses(tmp_path / "r.parquet").facts == table.facts
    assert "question_id" in pd.read_parquet(tmp_path / "r.parquet")  # any Parquet reader can open it
    json.dumps(table.facts)
