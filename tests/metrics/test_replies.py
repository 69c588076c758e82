"""The flat layout against plain lists, the interval against a solved equation, and tables that are refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cora_nb.core import CoraError
from cora_nb.metrics.replies import first_of_each, flat_replies
from cora_nb.responses.responses import need
from helpers import put_in_state


def table(rows):
    "Rows (question_id, sources, answer, prediction) or with a trial after them; only the columns the metrics need."
    full = [(*row, 0) if len(row) == 4 else row for row in rows]
    frame = pd.DataFrame(full, columns=["question_id", "sources", "answer", "prediction", "trial"])
    return frame.assign(n_choices=[len(s) for s in frame["sources"]])


HAND = table(
    [
        ("q", [0, 1, 2], 0, 0),
        ("q", [2, 0, 1], 1, 1),
        ("q", [1, 2, 0], 2, 0),
        ("q", [1, 0, 2], 1, -1),  # choices 0, 0, 1, none
        ("r", [0, 1, 2], 2, 1),
        ("r", [2, 1, 0], 0, 1),  # choice 1 twice
        ("s", [0, 1, 2], 0, 0),
        ("s", [2, 1, 0], 2, 0),  # a tie: 0 and 2
    ]
)


# --- plain lists ---


@st.composite
def tables(draw):
    "Questions with any number of choices, in several trials."
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        sources = draw(st.lists(st.integers(-3, 9), min_size=2, max_size=6))
        rows.append(
            (
                f"q{draw(st.integers(0, 3))}",
                sources,
                draw(st.integers(0, len(sources) - 1)),
                draw(st.integers(-1, len(sources) - 1)),
                draw(st.integers(0, 2)),
            )
        )
    return table(rows)


@pytest.mark.slow
@given(tables(), st.booleans(), st.data())
def test_arrays_against_rows(frame, every, data):
    found = need(frame).pool_trials() if every else need(frame).trial(data.draw(st.sampled_from(need(frame).trials)))
    rows = found.table.to_dict("records")
    r = flat_replies(found)
    assert len(r) == len(rows) and r.ids.tolist() == list(dict.fromkeys(row["question_id"] for row in rows))
    assert [r.ids[c] for c in r.codes] == [row["question_id"] for row in rows]
    for name in ("n_choices", "answer", "prediction"):
        assert getattr(r, name).tolist() == [row[name] for row in rows]
    assert r.source(r.answer).tolist() == [row["sources"][row["answer"]] for row in rows]
    assert r.source(1).tolist() == [row["sources"][1] for row in rows]
    mask = np.array([data.draw(st.booleans()) for _ in rows], dtype=bool)
    some, left = r[mask], [row for row, m in zip(rows, mask) if m]
    assert some.source(some.answer).tolist() == [row["sources"][row["answer"]] for row in left]
    assert (
        some.count().tolist() == r.count(mask).tolist() == [sum(row["question_id"] == q for row in left) for q in r.ids]
    )


@given(tables())
def test_first_of_each_against_sorting(frame):
    first, second = frame["answer"].to_numpy(), -frame["n_choices"].to_numpy()
    rows = range(len(frame))
    expected = [
        min((i for i in rows if frame["question_id"].iloc[i] == q), key=lambda i: (first[i], second[i], i))
        for q in dict.fromkeys(frame["question_id"])
    ]
    assert first_of_each(need(frame, trials="all"), first, second).tolist() == expected


# --- bad input ---


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda t: t.iloc[:0], "there are no responses to score"),
        (lambda t: t.drop(columns="n_choices"), "no column n_choices"),
        (lambda t: t.drop(columns=["sources", "answer"]), "no column sources, answer"),
        (lambda t: put_in_state(t, [0], "not_asked"), "1 of 8 prompts were not asked"),
    ],
)
def test_bad_tables(spoil, message):
    "What is impossible in itself is refused when responses are made (tests/responses)."
    with pytest.raises(CoraError, match=message) as error:
        flat_replies(need(spoil(HAND)))
    assert "\n" not in str(error.value)
