"""Order sensitivity: the published statistics, each statistic by another formula, levels, coverage and faults."""

import math
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import binomtest, chi2, chi2_contingency

from cora_nb.core import CoraError, Question
from cora_nb.metrics.order import (
    ODD,
    TESTS,
    accuracy_gap,
    _count_contents,
    letter_table,
    order_table,
    order_tests,
    pattern_table,
    published_swaps,
    swap_counts,
    swap_table,
    swap_tables,
    wrong_places,
)
from cora_nb.papers.published import load_published
from cora_nb.papers.published import load_recorded, recorded_swaps
from cora_nb.stats.paired import adjust_p, contingency_statistic, fit_statistic
from cora_nb.stats.paired import stuart_maxwell_statistic
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.responses.runs import concat
from cora_nb.results import lookup, values_of
from cora_nb.variants.families import make_variants
from helpers import put_in_state

RECOMPUTED = {  # the statistics of Table 3 of arXiv 2403.17752, from the authors' predictions
    ("GPT-3.5-turbo", "CARE-MI"): 144.192,
    ("GPT-4", "CARE-MI"): 15.660,
    ("ChatGLM-6B", "CARE-MI"): 27.605,
    ("GPT-3.5-turbo", "M3KE"): 90.308,
    ("GPT-4", "M3KE"): 20.828,
    ("ChatGLM-6B", "M3KE"): 12.377,
    ("GPT-3.5-turbo", "ARC"): 36.512,
    ("GPT-4", "ARC"): 2.681,
    ("ChatGLM-6B", "ARC"): 10.511,
    ("GPT-3.5-turbo", "MATH"): 25.129,
    ("GPT-4", "MATH"): 4.513,
    ("ChatGLM-6B", "MATH"): 90.566,
}
# --- the published numbers ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def raw():
    "Swap tables straight from the authors' letters."
    return recorded_swaps()


def test_the_counts_that_ship_are_those_of_the_letters(raw):
    shipped = published_swaps()
    assert list(shipped) == list(RECOMPUTED)
    for name, table in raw.items():
        pd.testing.assert_frame_equal(shipped[name], table, check_dtype=False)


def test_recomputed_statistics_by_hand():
    "Without any of our code: count, and scipy."
    letters = load_recorded("li2024/order_predictions")
    codes = {"GPT-3.5-turbo": "3", "GPT-4": "4", "ChatGLM-6B": "G"}
    for (model, benchmark), value in RECOMPUTED.items():
        column = f"{benchmark.removesuffix('-MI')}_{codes[model]}_MC"
        counts = [[(letters[c] == x).sum() for x in "ABCD"] for c in (column, f"{column}_R")]
        assert round(chi2_contingency(counts, correction=False).statistic, 3) == value


def test_all_48_printed_numbers_against_the_predictions():
    "36 are the same; the twelve others are those that the notes of the published table name, with the same number."
    table = order_table(published_swaps())
    tests = table[table["score"] == "contingency"].set_index(["respondent", "benchmark"])
    right = {m: t.iloc[:4, :4].sum(axis=1)["D"] / t.to_numpy().sum() for m, t in published_swaps().items()}
    again = {m: t.sum()["D"] / t.to_numpy().sum() for m, t in published_swaps().items()}
    found = {}
    for name in RECOMPUTED:
        found[("X²", *name)], found[("p", *name)] = tests.loc[name, ["value", "p"]]
        found[("accuracy", *name)], found[("accuracy gap", *name)] = right[name], again[name] - right[name]
    rows = load_published(3, "li2024").set_index(["score", "model", "benchmark"])
    assert set(rows.index) == set(found) and len(rows) == 48
    unlike = {key for key, value in found.items() if round(value, 3) != rows.loc[key, "value"]}
    noted = rows["note"].str.extract(r"predictions give ([+-]?\d+\.\d{3})")[0].dropna().astype(float)
    assert unlike == set(noted.index) and len(unlike) == 12
    assert all(round(found[key], 3) == value for key, value in noted.items())
    assert {key[2] for key in unlike if abs(found[key] - rows.loc[key, "value"]) > 0.01} == {"M3KE"}


# --- accuracy -------------------------------------------------------------------------------------


def test_accuracy_counts_unreadable_replies_as_wrong():
    table = letter_table(["D", "D", "?", "D", None], ["D", "x", "D", "", "D"])
    gap = accuracy_gap(table)
    assert gap["score"].tolist() == ["accuracy", "accuracy", "accuracy gap"] and gap["n"].tolist() == [3] * 3
    assert gap["method"].tolist() == ["case_1", "case_2", "case_1 - case_2"]
    assert gap["value"].tolist() == [2 / 3, 2 / 3, 0] and lookup(gap, "accuracy gap").p == 1
    assert swap_counts(table)[ODD].to_numpy().tolist() == [[1, 1], [1, 1]]


# --- levels: which test keeps its promise ---------------------------------------------------------


def joint(weight, held):
    place = np.array([weight, 1, 1, 1]) / (weight + 3)
    return np.diag(held) + (1 - sum(held)) * np.outer(place, place[[1, 0, 2, 3]])


def shares(weight, held, n=300, times=2000):
    tables = np.random.default_rng(11).multinomial(n, joint(weight, held).ravel(), size=times).reshape(-1, 4, 4)
    counts = np.stack([tables.sum(axis=2), tables.sum(axis=1)], axis=1)
    return dict(
        zip(
            TESTS,
            [
                float((chi2.sf(x, df) < 0.05).mean())
                for x, df in (contingency_statistic(counts), fit_statistic(counts), stuart_maxwell_statistic(tables))
            ],
        )
    )


def within(share, times=2000, p=0.05):
    return abs(share - p) < 3 * math.sqrt(p * (1 - p) / times)


def test_levels_without_a_preference():
    independent, knows, holds = shares(1, [0] * 4), shares(1, [0, 0, 0, 0.6]), shares(1, [0.2] * 4)
    assert all(within(s["Stuart-Maxwell"]) for s in (independent, knows, holds))
    assert within(independent["contingency"]) and knows["contingency"] < 0.04 and holds["contingency"] < 0.005
    assert independent["goodness of fit"] > 0.2 and knows["goodness of fit"] > 0.15 and holds["goodness of fit"] < 0.01


# --- from responses -------------------------------------------------------------------------------


@pytest.mark.slow
@given(
    st.integers(3, 7).flatmap(
        lambda A: st.tuples(
            st.just(A),
            st.lists(
                st.tuples(st.integers(-1, A - 1), st.integers(-1, A - 1), st.integers(0, A - 1)),
                min_size=1,
                max_size=12,
            ),
        )
    ),
    st.randoms(use_true_random=False),
)
@settings(max_examples=40)
def test_swap_table_by_a_loop(asked, rng):
    A, rows = asked
    questions = [
        Question(f"q{i}", "?", tuple(f"c{k}" for k in range(A)), answer) for i, (_, _, answer) in enumerate(rows)
    ]
    variants = make_variants(questions, "order_swap")
    letters = "ABCDEFG"
    replies = [letters[p] if p >= 0 else "?" for a, b, _ in rows for p in (a, b)]
    responses = make_responses(variants, replies)
    expected = Counter()
    for i, (a, b, answer) in enumerate(rows):
        wrong = [k for k in range(A) if k != answer]
        names = {source: letters[k] for k, source in enumerate([*wrong, answer])} | {None: "no_choice"}
        expected[
            tuple(names[None if p < 0 else v.sources[p]] for p, v in zip((a, b), variants[2 * i : 2 * i + 2]))
        ] += 1
    mixed = responses.table.iloc[rng.sample(range(len(responses)), len(responses))]
    for table in (swap_table(responses), swap_table(mixed)):
        assert _count_contents(table) == A
        assert {k: n for k, n in table.stack().items() if n} == dict(expected)


def four_questions(A=4):
    return make_variants([Question(f"q{i}", "?", tuple(f"c{k}" for k in range(A)), 1) for i in range(4)], "order_swap")


def test_other_sizes_are_left_out_with_a_warning():
    variants = four_questions() + make_variants([Question("three", "?", ("a", "b", "c"), 0)], "order_swap")
    responses = make_responses(variants, ["A"] * len(variants))
    with pytest.warns(UserWarning, match=r"left out 1 of 5 questions: they do not have 4 choices"):
        table = swap_table(responses)
    assert table.loc["A", "B"] == table.to_numpy().sum() == 4
    with pytest.warns(UserWarning, match="left out 4 of 5"):
        assert _count_contents(swap_table(responses, n_choices=3)) == 3


def test_one_order_only_and_repetitions():
    responses = make_responses(four_questions(), ["A"] * 8)
    rows = responses.table
    assert swap_table(rows.iloc[:-1]).loc["A", "not_asked"] == 1
    assert swap_table(rows.iloc[1:]).loc["not_asked", "B"] == 1
    again = Responses(rows.assign(trial=1, prediction=3, correct=True), responses.questions)
    both = concat([responses, again])
    assert swap_table(both).loc["A", "B"] == 4 and swap_table(both.trial(1)).loc["D", "D"] == 4
    with pytest.raises(CoraError, match=r"question 'q0' was answered several times in one order; choose one trial\Z"):
        swap_table(both.pool_trials())
    assert swap_table(responses.pool_trials()).equals(swap_table(responses))


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda r: r.iloc[:0], "no responses"),
        (lambda r: r.drop(columns="method"), "no column method"),
        (lambda r: r.drop(columns="sources"), "no column sources"),
        (lambda r: r.assign(method="shuffled"), r"with the methods case_1 and case_2; got the method 'shuffled'"),
        (
            lambda r: r.assign(method="case_2"),
            r"question 'q0', case_2: choice A is not the one that the family order_swap shows there",
        ),
        (lambda r: r.assign(answer=0), "is not the one that the family order_swap shows there"),
        (lambda r: put_in_state(r, slice(None), "not_asked"), "stopped early"),
    ],
)
def test_faulty_responses(change, says):
    "What is wrong with a table as such is tested in tests/responses."
    table = make_responses(four_questions(), ["A"] * 8).table.assign(index=range(8))
    with pytest.raises(CoraError, match=says) as e:
        swap_table(change(table.drop(columns="correct")))
    assert "\n" not in str(e.value)


GOOD = letter_table("ABCD", "BACD")


@pytest.mark.parametrize(
    "call, says",
    [
        (
            lambda: swap_table(make_responses(four_questions(), ["A"] * 8), n_choices=True),
            "that was shown .4., got True",
        ),
        (lambda: letter_table([], []), "there are no letters to count"),
        (lambda: letter_table("A", "A", 1), "n_choices must be a whole number from 2 to 26, got 1"),
        (
            lambda: order_tests(GOOD.to_numpy()),
            "table must be a swap table, from swap_table or letter_table, got a ndarray",
        ),
        (lambda: order_tests(GOOD.iloc[::-1]), "the same rows and columns"),
        (lambda: order_tests(GOOD - 1), "counts of at least 0"),
        (lambda: order_tests(letter_table("??", "AB")), "no answer in case_1 names a choice"),
        (lambda: accuracy_gap(GOOD * 0), "no question was asked in both orders"),
        (lambda: accuracy_gap(GOOD, level=1), "level must be between 0 and 1, got 1"),
        (lambda: adjust_p([0.1, -1]), "p must be from 0 to 1, got -1.0"),
        (lambda: order_table([GOOD]), "runs must be given by name"),
        (lambda: order_table({("m", "b"): GOOD, "m": GOOD}), "runs must all be named by model"),
        (lambda: wrong_places(GOOD, level=0), "level must be between 0 and 1, got 0"),
    ],
)
def test_faults(call, says):
    with pytest.raises(CoraError, match=says) as e:
        call()
    assert "\n" not in str(e.value)


def test_notes_say_what_is_doubtful():
    notes = values_of(order_tests(letter_table("AAB?" + "D" * 40, "BBA" + "D" * 41)), "note")
    assert (
        notes["contingency"] == "never chosen: C; expected below 5: A, B; left out: 1 reply without a choice in case_1"
    )
    assert (
        "left out: 1 reply without a choice in case_1" in notes["Stuart-Maxwell"]
        and "never changed: C" in notes["Stuart-Maxwell"]
    )
    some = order_tests(letter_table(["A", "B", "D", "?"], ["A", "B", None, "A"]))
    assert lookup(some, "contingency").note.endswith(
        "1 reply without a choice in case_1; left out: 1 question not asked in case_2"
    )
    apart = order_tests(letter_table(["A", None], [None, "B"]))  # nobody was asked both
    assert lookup(apart, "Stuart-Maxwell")[["value", "p"]].astype(float).isna().all()
    assert np.isnan(lookup(apart, "Stuart-Maxwell V").value)


def test_order_table_of_responses_and_tables_together():
    responses = make_responses(four_questions(), list("ABDDDDAA"))
    runs = {"ours": responses, "theirs": published_swaps()["GPT-4", "ARC"]}
    table = order_table(runs, "bh")
    assert table["benchmark"].isna().all() and table["respondent"].drop_duplicates().tolist() == ["ours", "theirs"]
    assert table.loc[table["score"] == "accuracy gap", "n"].tolist() == [4, 291]
    for test in TESTS:
        raw, adjusted = table[table["score"] == test], table[table["score"] == f"{test}, adjusted p"]
        assert adjusted.index.tolist() == [i + 1 for i in raw.index]  # each below its test
        assert adjusted["value"].tolist() == pytest.approx(adjust_p(raw["p"], "bh").tolist(), nan_ok=True)
        assert adjusted["note"].eq("bh, 2 runs").all()
    assert list(swap_tables(runs)) == [("ours",), ("theirs",)]
    patterns = pattern_table(runs)
    assert patterns.groupby(["respondent", "method"], sort=False)["place"].agg(list).tolist() == [[1, 2, 3]] * 4
    expected = patterns[patterns["score"] == "expected"]
    assert expected["value"].tolist() == [1 / 3] * 6 and expected["place"].tolist() == [1, 2, 3] * 2


# --- places ---------------------------------------------------------------------------------------


def test_wrong_places_against_scipy():
    for table in published_swaps().values():
        letters = {"case_1": "ABC", "case_2": "BAC"}
        counts, got = swap_counts(table), wrong_places(table, 0.9)
        for case, order in letters.items():
            n = int(counts.loc[case, list("ABC")].sum())
            for place, letter in enumerate(order, start=1):
                k, row = int(counts.loc[case, letter]), lookup(got, method=case, place=place)
                interval = binomtest(k, n).proportion_ci(0.9, "wilson")
                assert row[["value", "low", "high", "n"]].tolist() == pytest.approx(
                    [k / n, interval.low, interval.high, n]
                )


@pytest.mark.slow
def test_importing_is_light():
    "Neither scipy nor matplotlib before they are needed."
    heavy = ("scipy", "matplotlib", "seaborn", "torch", "datasets")
    code = f"import sys, cora_nb.metrics.order; print([m for m in {heavy} if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
