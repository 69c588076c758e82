"""The columns of responses: what fits passes unchanged, and what is wrong is named with its row."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import BadRow, CoraError, Question
from cora_nb.responses.columns import checked_table, column_types
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.variants.families import make_variants

VARIANTS = make_variants([Question("q", "?", ("a", "b", "c", "d"), 2, "s"), Question("r", "!", ("yes", "no"), 1)])


def six():
    return make_responses(VARIANTS[:6], list("AAAAAA")).table


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
    ("form", "essay", "form must be one of mcq, several, tfq, lfgq"),
    ("form", None, "form must be one of mcq, several, tfq, lfgq"),
    ("n_choices", 27, "n_choices must be from 2 to 26"),
    ("n_choices", 1, "n_choices must be from 2 to 26"),
    ("n_choices", 3, "sources must name one source"),
    ("sources", [0], "sources must name one source"),
    ("answer", 4, "answer must be an index of a choice shown"),
    ("answer", -1, "answer must be an index"),
    ("prediction", 4, "prediction must be an index of a choice shown, or -1"),
    ("prediction", -2, "prediction must be"),
    ("selected", (0, 4), "selected must be indices of choices shown, each once"),
    ("selected", (1, 1), "selected must be indices of choices shown, each once"),
    ("correct", True, "correct must say whether"),
    ("correct", None, "correct must not be missing"),
    ("prediction", None, "prediction must not be missing"),
    ("scores", [0.1, 0.2], "scores must be one number for each choice"),
    ("error", "timeout", "error must be missing unless the prompt failed"),
    ("state", "lost", "state must be one of answered, unread, refused, failed, not_asked, over_budget"),
    ("state", None, "state must not be missing"),
    ("state", "not_asked", "reply must be missing where the prompt was not asked"),
    ("state", "over_budget", "reply must be missing where the prompt was not asked"),
    ("state", "failed", "a prompt that is not answered has no prediction but -1"),
    ("state", "refused", "a prompt that is not answered has no prediction but -1"),
]


@pytest.mark.parametrize("column,value,why", BREAKS)
def test_the_first_broken_row_is_named(column, value, why):
    broken = six().astype(object)
    broken.at[3, column] = value
    with pytest.raises(BadRow) as e:
        checked_table(broken, "some.parquet")
    assert why in str(e.value) and "some.parquet, row 4" in str(e.value)


@pytest.mark.parametrize("column", ["index", "trial", "n_choices", "answer", "prediction"])
@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_a_truth_value_is_not_an_index(column, value):
    "True is 1 to Python, and a table that says so has mistaken `correct` for a choice."
    one = six().astype({column: object})
    one.at[2, column] = value
    with pytest.raises(BadRow, match=f"row 3, id 'q', {column}: {column} must be a whole number, got {bool(value)}"):
        checked_table(one)
    with pytest.raises(BadRow, match=f"row 1, id 'q', {column}: {column} must be a whole number, got {bool(value)}"):
        checked_table(six().assign(**{column: np.full(6, value)}))


def test_wrong_types_and_columns_that_occur_twice():
    with pytest.raises(CoraError, match="wrong type .*sources: a list of numbers was expected, got 'B'"):
        checked_table(six().astype(object).assign(sources="B"))
    with pytest.raises(CoraError, match="x.parquet: the column 'trial' occurs twice"):
        checked_table(pd.concat([six(), six()[["trial"]]], axis=1), "x.parquet")
    with pytest.raises(CoraError, match="responses must be a table, got a dict"):
        checked_table({"question_id": ["q"]})


def test_further_columns_stay_and_missing_ones_are_not_invented():
    table = checked_table(six().assign(note="mine").drop(columns=["scores", "reply"]))
    assert list(table) == [c for c in column_types() if c not in ("scores", "reply")] + ["note"]
    assert dict(table.dtypes.drop("note")) == {c: k for c, k in column_types().items() if c in table}


def test_one_reference_answer_is_enough_for_a_reply_in_own_words():
    "A statement's writer is compared with one text; a lettered question has two choices at least."
    row = {"question_id": ["q"], "n_choices": [1], "answer": [0]}
    assert len(checked_table(pd.DataFrame(row | {"form": ["lfgq"]}))) == 1
    for form in ({"form": ["tfq"]}, {"form": ["mcq"]}, {}):
        with pytest.raises(BadRow, match="n_choices must be from 2 to 26, got 1"):
            checked_table(pd.DataFrame(row | form))


@pytest.mark.slow
@given(st.data())
@settings(max_examples=30)
def test_what_was_checked_is_checked(data):
    "A second look changes nothing, whatever types and index the columns came with."
    table = make_responses(VARIANTS, data.draw(st.lists(st.sampled_from("ABCDX"), min_size=28, max_size=28))).table
    assert dict(table.dtypes) == column_types()
    kept = data.draw(st.lists(st.integers(0, 27), min_size=1, unique=True))
    given_ = table.iloc[kept]
    expected = given_.reset_index(drop=True)
    lists = given_.assign(sources=[list(s) for s in given_["sources"]])
    arrays = given_.assign(sources=pd.Series([np.array(s) for s in given_["sources"]], index=given_.index))
    for other in (given_, given_.astype(object), given_.astype({"index": float, "correct": int}), lists, arrays):
        assert checked_table(other).equals(expected)


def test_a_table_that_changes_afterwards_changes_nothing():
    "The value shares memory with the table that it was made from, and still is a value."
    mine = six()
    responses = Responses(mine)
    before = responses.to_frame()
    mine.loc[0, "correct"] = True
    mine.loc[0, "prediction"] = 2
    mine["reply"] = "Z"
    assert responses.table.equals(before)
