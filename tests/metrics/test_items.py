"Which variants find what, and what questions are like: against plain loops, brute force over all subsets, and scipy."

import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, strategies as st
from scipy.stats import pearsonr

from cora_nb.core import CoraError
from cora_nb.metrics.items import (
    finders,
    finding_table,
    item_breaks,
    item_consistency,
    item_table,
    method_table,
    slot_table,
)
from cora_nb.responses.responses import Responses
from cora_nb.results import lookup
from cora_nb.stats.shares import share_interval
from helpers import put_in_state

METHODS = [("original", 0), ("shuffled", 0), ("nota", 0), ("nota", 1), ("decoupled", 0), ("decoupled", 1)]


def responses_of(cells, prefix="q"):
    "A responses table from rows of 1, 0 and None (no such variant), one a question."
    rows = [
        (f"{prefix}{i}", m, k, bool(v))
        for i, row in enumerate(cells)
        for (m, k), v in zip(METHODS, row)
        if v is not None
    ]
    return pd.DataFrame(rows, columns=["question_id", "method", "index", "correct"]).assign(
        trial=0, subject="s", n_choices=4, family="cora", error=None
    )


cell = st.sampled_from([0, 1, 1, None])
tables = st.integers(2, 6).flatmap(
    lambda w: st.lists(st.tuples(st.sampled_from([0, 1]), *[cell] * (w - 1)), min_size=1, max_size=14)
)


@pytest.mark.slow
@given(tables)
def test_slots_are_what_was_answered(cells):
    slots = slot_table(responses_of(cells))
    for i, row in enumerate(cells):
        for slot, v in zip(METHODS, row):
            if v is not None:
                assert slots.loc[f"q{i}", slot] == v
            elif slot in slots:
                assert math.isnan(slots.loc[f"q{i}", slot])
    assert set(slots.columns) == {s for row in cells for s, v in zip(METHODS, row) if v is not None}


@pytest.mark.slow
@given(tables)
def test_finders_by_the_book(cells):
    slots = slot_table(responses_of(cells))
    mixed = {f"q{i}" for i, row in enumerate(cells) if {0, 1} <= set(row)}
    lost = {f"q{i}" for i, row in enumerate(cells) if row[0] == 1 and 0 in row}
    for what, expected in (("mixed", mixed), ("lost", lost)):
        found = finders(slots, what)
        assert set(found.index) == expected and ("original", 0) not in found
        for id in found.index:
            row = cells[int(id[1:])]
            for slot, v in zip(METHODS[1:], row[1:]):
                if slot in found:
                    assert found.loc[id, slot] == (v is not None and v != row[0] and (what == "mixed" or row[0] == 1))


@pytest.mark.slow
@given(tables)
def test_finding_table_counts_one_by_one(cells):
    found = finders(slot_table(responses_of(cells)))
    assume(len(found))
    table = finding_table(found)
    who = {id: {m for m, k in found.columns if found.loc[id, (m, k)]} for id in found.index}
    assert set(table["method"]) == {m for m, _ in found.columns} and (table["n"] == len(found)).all()
    for method in table["method"]:
        alone, all_of = lookup(table, "found by no other", method=method), lookup(table, "found", method=method)
        assert all_of.value == pytest.approx(sum(method in w for w in who.values()) / len(found))
        assert alone.value == pytest.approx(sum(w == {method} for w in who.values()) / len(found))
        n = sum(m == method for m, _ in found.columns)
        assert lookup(table, "variants", method=method).value == n
    assert len(finding_table(found, "slot")) == 3 * found.shape[1]


@pytest.mark.slow
@given(tables)
def test_accuracy_by_method_with_a_plain_loop(cells):
    responses = responses_of(cells)
    table = method_table(responses)
    for method, part in responses.groupby("method"):
        row = lookup(table, "accuracy", method=method)
        assert row.value == pytest.approx(part["correct"].mean())
        assert row.n == part["question_id"].nunique()
        each = part.groupby("question_id")["correct"]
        np.testing.assert_allclose(
            row[["value", "low", "high"]].astype(float),
            np.array([float(x) for x in share_interval(each.sum().to_numpy(), each.size().to_numpy())]),
        )
        assert lookup(table, "chance", method=method).value == 0.25


runs_of = st.tuples(st.integers(1, 5), st.integers(2, 6), st.integers(1, 4)).flatmap(
    lambda n: st.lists(
        st.lists(st.lists(st.sampled_from([0, 1]), min_size=n[2], max_size=n[2]), min_size=n[1], max_size=n[1]),
        min_size=n[0],
        max_size=n[0],
    )
)


@pytest.mark.slow
@given(runs_of)
def test_items_against_scipy(cells):
    runs = {f"r{i}": responses_of(table) for i, table in enumerate(cells)}
    items, rc = item_table(runs), np.mean(cells, axis=2).T  # questions x respondents
    np.testing.assert_allclose(item_consistency(runs), rc)
    for q in range(len(rc)):
        row, rest = items.loc[f"q{q}"], np.delete(rc, q, axis=0).mean(axis=0)
        assert row["difficulty"] == pytest.approx(rc[q].mean()) and row["subject"] == "s"
        if len(cells) == 1:
            assert math.isnan(row["disagreement"])
        else:
            assert (
                row["disagreement"] == pytest.approx(np.mean((rc[q] - rc[q].mean()) ** 2))
                and row["disagreement"] <= 0.25 + 1e-12
            )
        if len(cells) < 3 or np.ptp(rc[q]) < 1e-9 or np.ptp(rest) < 1e-9:
            assert math.isnan(row["discrimination"])
        else:
            assert row["discrimination"] == pytest.approx(pearsonr(rc[q], rest)[0], abs=1e-6)


@pytest.mark.slow
@given(tables)
def test_breaks_name_every_wrong_reply(cells):
    breaks = item_breaks(responses_of(cells))
    for i, row in enumerate(cells):
        asked = [v for v in row if v is not None]
        got = breaks.loc[f"q{i}"]
        assert (got["right"], got["asked"]) == (sum(asked), len(asked)) and got["rc"] == pytest.approx(
            sum(asked) / len(asked)
        )
        told = {m: (int(w), int(a)) for m, w, a in re.findall(r"(\w+) (\d+) of (\d+)", got["broken_by"])}
        by = {m: [v for (x, _), v in zip(METHODS, row) if x == m and v is not None] for m, _ in METHODS}
        assert told == {m: (v.count(0), len(v)) for m, v in by.items() if 0 in v}


def test_other_trials_and_other_types_of_text():
    table = responses_of([(1, 0), (1, 1)])
    both = pd.concat([table, table.assign(trial=1, correct=~table["correct"])]).astype(
        {"method": "string", "question_id": "string"}
    )
    run = Responses(both)
    assert slot_table(run.trial(1)).to_numpy().tolist() == [[0, 1], [0, 0]]
    assert len(finders(slot_table(both))) == 1
    assert item_table({"a": run.pool_trials()})["difficulty"].tolist() == [0.5, 0.5]
    with pytest.raises(CoraError, match="2 trials of a prompt; choose one, such as .trial"):
        slot_table(run.pool_trials())


GOOD = responses_of([(1, 0, 1), (1, 1, 1), (0, 0, 0)])


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: slot_table(GOOD.drop(columns="correct")), "no column correct"),
        (lambda: slot_table(put_in_state(GOOD, [0], "not_asked")), "1 of 9 prompts were not asked"),
        (lambda: slot_table(pd.concat([GOOD, GOOD])), "question 'q0', original 0, trial 0 stands in an earlier row"),
        (lambda: finders(slot_table(GOOD), base=("cyclic", 0)), "no variant is called cyclic 0"),
        (
            lambda: finders(slot_table(responses_of([(1, 1), (1, None)])), base=("shuffled", 0)),
            "shuffled 0 was not asked of 1 questions, the first of them 'q1'",
        ),
        (
            lambda: finding_table(finders(slot_table(GOOD)), by="subject"),
            "by must be one of method, slot, got 'subject'",
        ),
        (lambda: finding_table(finders(slot_table(GOOD.assign(correct=True)))), "no question is inconsistent"),
        (lambda: item_table({}), "there are no runs"),
        (lambda: item_table({"a": GOOD, "b": GOOD.assign(family="cyclic")}), "several families, cora, cyclic"),
        (
            lambda: item_table({"a": GOOD, "b": GOOD[GOOD["question_id"] != "q1"]}),
            "b: other questions than a, 1 are in only one of them, such as 'q1'",
        ),
        (lambda: item_table({"a": GOOD, "b": GOOD.iloc[:-1]}), "b: 2 variants of 'q2', but a has 3"),
    ],
)
def test_mistakes_get_one_line(call, says):
    with pytest.raises(CoraError) as told:
        call()
    assert says in str(told.value) and "\n" not in str(told.value)


@pytest.mark.slow
def test_the_recorded_replies(medalpaca):
    slots = slot_table(medalpaca)
    assert slots.shape == (1273, 26) and not slots.isna().any(axis=None)
    assert {what: len(finders(slots, what)) for what in ("mixed", "lost")} == {"mixed": 1206, "lost": 319}
    original = lookup(method_table(medalpaca), "accuracy", method="original")
    assert original.value == pytest.approx(0.2608, abs=5e-5)
