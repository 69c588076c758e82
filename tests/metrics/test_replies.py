"""The flat layout against plain lists, the interval against a solved equation, and tables that are refused."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cora_nb.core import BadRow, CoraError
from cora_nb.metrics.replies import (
    first_of_each,
    flat_replies,
    need_columns,
    of_trial,
    question_codes,
    share_interval,
    share_of_asked,
    whole_numbers,
)
from cora_nb.responses.columns import NOT_ASKED, column_types


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


@given(tables(), st.booleans(), st.booleans(), st.data())
def test_arrays_against_rows(frame, arrow, every, data):
    trial = None if every else data.draw(st.sampled_from(sorted(set(frame["trial"]))))
    typed = (
        frame.assign(sources=pd.array(frame["sources"].tolist(), dtype=column_types()["sources"])) if arrow else frame
    )
    rows = [row for row in frame.to_dict("records") if every or row["trial"] == trial]
    r = flat_replies(typed, trial)
    assert len(r) == len(rows) and r.ids.tolist() == list(dict.fromkeys(frame["question_id"]))  # in order of appearance
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
def test_numbers_of_questions(frame):
    codes, ids, keep = question_codes(frame, None)
    assert keep is None and [ids[c] for c in codes] == frame["question_id"].tolist()
    for trial in range(4):
        here = (frame["trial"] == trial).tolist()
        if not any(here):
            with pytest.raises(CoraError, match=f"no responses of trial {trial} to score"):
                question_codes(frame, trial)
            with pytest.raises(CoraError, match=f"no responses of trial {trial} to score"):
                of_trial(frame, trial)
            continue
        kept = question_codes(frame, trial)[2]
        assert (all(here) and kept is None) or kept.tolist() == here
        assert of_trial(frame, trial)["trial"].tolist() == [trial] * sum(here)


@given(tables())
def test_first_of_each_against_sorting(frame):
    first, second = frame["answer"].to_numpy(), -frame["n_choices"].to_numpy()
    rows = range(len(frame))
    expected = [
        min((i for i in rows if frame["question_id"].iloc[i] == q), key=lambda i: (first[i], second[i], i))
        for q in dict.fromkeys(frame["question_id"])
    ]
    assert first_of_each(frame, first, second).tolist() == expected


# --- intervals ---


def test_interval_against_a_solved_equation():
    "Wilson's limits are where the distance from the share is z standard errors of the limit itself."
    from scipy.optimize import brentq
    from scipy.stats import t

    totals, sizes = np.array([5, 0, 3, 6, 1, 2.5]), np.array([6, 4, 6, 7, 6, 6])
    p, G = totals.sum() / sizes.sum(), 6
    v = G / (G - 1) * ((totals - p * sizes) ** 2).sum() / sizes.sum() ** 2
    gap = lambda x: (p - x) ** 2 - t.ppf(0.95, 5) ** 2 * x * (1 - x) * v / (p * (1 - p))
    np.testing.assert_allclose(share_interval(totals, sizes, 0.9), [p, brentq(gap, 0, p), brentq(gap, p, 1)], rtol=1e-9)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
def test_questions_without_a_reply_say_nothing(pairs):
    pairs = [(min(t, n), n) for t, n in pairs]
    asked = [(t, n) for t, n in pairs if n]
    found = share_of_asked(*np.array(pairs).reshape(-1, 2).T)
    if not asked:
        assert np.isnan(found).all()
    else:
        np.testing.assert_array_equal(found, share_interval(*np.array(asked).T))


@pytest.mark.parametrize(
    "totals, sizes", [([2.0], [1.0]), ([0.0], [0.0]), ([], []), ([1.0, 1.0], [1.0]), ([-1.0], [2.0]), ([np.nan], [2.0])]
)
def test_intervals_refuse(totals, sizes):
    with pytest.raises(CoraError):
        share_interval(totals, sizes)


@pytest.mark.parametrize("level", [0, 1, 95, -0.5])
def test_level(level):
    for interval in (share_interval, share_of_asked):
        with pytest.raises(CoraError, match="level must be between 0 and 1"):
            interval([1.0, 0.0], [1.0, 1.0], level)


# --- bad input ---


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda t: t.iloc[:0], "no responses"),
        (lambda t: t.assign(trial=1), "no responses of trial 0"),
        (lambda t: t.drop(columns="n_choices"), "no column n_choices"),
        (lambda t: t.drop(columns=["sources", "answer"]), "no column sources, answer"),
        (lambda t: t.assign(prediction=3), "row 1, prediction: prediction must be a whole number from -1 to 2, got 3"),
        (lambda t: t.assign(prediction=[0, None, *[0] * 6]), "row 2, prediction"),
        (lambda t: t.assign(answer=-1), "answer must be a whole number from 0 to 2, got -1"),
        (lambda t: t.assign(n_choices=4), "sources must name one source for each choice shown"),
        (lambda t: t.assign(n_choices=[3, 3, 3, 3, 3, 3, 3, 2.5]), "row 8, n_choices"),
        (lambda t: t.assign(sources="abc"), "sources must be a list"),
        (lambda t: t.assign(sources=[None, *t["sources"].iloc[1:]]), "row 1, sources"),
        (lambda t: t.assign(question_id=[None, *t["question_id"].iloc[1:]]), "question_id is missing"),
        (lambda t: t.assign(family=["cyclic", *["cora"] * 7]), "several families, cyclic, cora"),
        (lambda t: t.assign(error=[NOT_ASKED, *[None] * 7]), "1 of 8 replies were not asked for"),
        (lambda t: pd.concat([t, t[["answer"]]], axis=1), "'answer' occurs twice"),
        (lambda t: None, "must be a table, got a NoneType"),
    ],
)
def test_bad_tables(spoil, message):
    with pytest.raises(CoraError, match=message) as error:
        flat_replies(spoil(HAND), 0)
    assert "\n" not in str(error.value)


def test_whole_numbers():
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan]})
    assert whole_numbers(frame.iloc[:2], "x", 0, 2).tolist() == [1, 2]
    with pytest.raises(BadRow) as error:
        whole_numbers(frame, "x", 0, 2)
    assert (error.value.row, error.value.field) == (3, "x")
    with pytest.raises(BadRow, match="from 0 to 1, got 2"):
        whole_numbers(frame.iloc[:2], "x", 0, np.array([1, 1]))
    with pytest.raises(CoraError, match="no column y, z"):
        need_columns(frame, "x", "y", "z")


def test_import_is_light():
    heavy = ("scipy", "matplotlib", "seaborn", "torch", "datasets")
    code = f"import sys, cora_nb.metrics.replies; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
