"""Calibration: bins against plain loops and other packages, errors and Brier parts as properties.

Chance and intervals by simulation; the authors' raw data.
"""

import math
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cora_nb.core import CoraError, Question, data_path
from cora_nb.metrics.calibration import (
    BINNINGS,
    binned,
    brier,
    brier_parts,
    calibration_errors,
    calibration_table,
    chance_errors,
    ece,
    ece_interval,
    joined,
    reliability,
)
from cora_nb.metrics.confidence import confidences
from cora_nb.papers.published import load_recorded
from cora_nb.respondents.protocol import Reply
from cora_nb.responses.responses import make_responses
from cora_nb.results import lookup, values_of, Remark
from cora_nb.variants.families import make_variants

LEVELS = st.one_of(st.integers(0, 20).map(lambda k: k / 20), st.floats(0, 1))
PAIRS = st.lists(st.tuples(LEVELS, st.booleans()), min_size=1, max_size=40)


def by_score(result):
    "The rows of each score by their place."
    return {score: rows.set_index("place") for score, rows in result.groupby("score", sort=False)}


def plain_bins(x, y, B):
    "The answers of each bin of equal width: upper edge in, lower edge out, 0 in the first."
    bins = defaultdict(list)
    for f, o in zip(x, y):
        b = next(b for b in range(B) if f <= (b + 1) / B)
        bins[b].append((f, o))
    return dict(sorted(bins.items()))


@pytest.mark.slow
@settings(max_examples=60)
@given(PAIRS, st.integers(1, 25))
def test_ece_against_plain_loops(pairs, B):
    x, y = [p[0] for p in pairs], [p[1] for p in pairs]
    bins = plain_bins(x, y, B)
    gaps = {b: abs(np.mean([o for _, o in v]) - np.mean([f for f, _ in v])) for b, v in bins.items()}
    table, errors = binned(x, y, B), values_of(calibration_errors(binned(x, y, B)))
    assert table.index.tolist() == list(bins) and table["n"].tolist() == [len(v) for v in bins.values()]
    assert (
        errors["ECE"]
        == pytest.approx(sum(len(bins[b]) / len(x) * g for b, g in gaps.items()), abs=1e-12)
        == pytest.approx(ece(x, y, B), abs=1e-12)
    )
    assert (
        errors["unweighted ECE"]
        == pytest.approx(np.mean(list(gaps.values())), abs=1e-12)
        == pytest.approx(ece(x, y, B, weighted=False), abs=1e-12)
    )
    assert (
        errors["MCE"] == pytest.approx(max(gaps.values()), abs=1e-12)
        and errors["MCE"] + 1e-12 >= errors["ECE"] >= abs(np.mean(x) - np.mean(y)) - 1e-12
    )


@pytest.mark.slow
@settings(max_examples=60)
@given(PAIRS, st.integers(1, 12), st.sampled_from(BINNINGS))
def test_every_answer_is_in_one_bin_and_brier_adds_up(pairs, B, method):
    x, y = np.array(pairs, dtype=float).T
    table = binned(x, y, B, method)
    parts, errors = values_of(brier_parts(table)), calibration_errors(table)
    assert (errors["n"] == len(x)).all() and (brier_parts(table)["n"] == len(x)).all()
    assert (
        table["n"].sum() == len(x)
        and table["right"].sum() == y.sum()
        and len(table) <= (len(np.unique(x)) if method == "distinct" else B)
    )
    assert table["confidence"].sum() == pytest.approx(x.sum())
    means = table["confidence"] / table["n"]
    assert (means >= table["low"] - 1e-9).all() and (means <= table["high"] + 1e-9).all()
    assert (
        parts["Brier score"] == pytest.approx(np.mean((x - y) ** 2), abs=1e-12) == pytest.approx(brier(x, y), abs=1e-12)
    )
    total = (
        parts["reliability"]
        - parts["resolution"]
        + parts["uncertainty"]
        + parts["variance within bins"]
        - 2 * parts["covariance within bins"]
    )
    assert total == pytest.approx(parts["Brier score"], abs=1e-10)
    if method == "distinct":
        within = parts[["variance within bins", "covariance within bins"]]
        assert within.abs().max() < 1e-12 and len(table) == len(np.unique(x))
    bins = by_score(reliability(table))
    shown = bins["accuracy"]
    assert ((shown["low"] <= shown["value"] + 1e-12) & (shown["value"] <= shown["high"] + 1e-12)).all()
    assert shown.index.tolist() == table["high"].tolist() and shown["n"].tolist() == table["n"].tolist()
    assert bins["lower edge"]["value"].tolist() == table["low"].tolist()
    np.testing.assert_allclose(bins["gap"]["value"], shown["value"] - bins["confidence"]["value"], atol=1e-12)


@settings(max_examples=60)
@given(PAIRS, st.sampled_from([1, 2, 4, 5, 10, 20, 25, 50]))
def test_joined_bins_are_the_wide_ones(pairs, B):
    x, y = np.array(pairs, dtype=float).T
    pd.testing.assert_frame_equal(
        joined(binned(x, y, 100), B), binned(x, y, B), check_dtype=False, check_index_type=False, atol=1e-9
    )


def test_edges():
    at = lambda v, B: binned([v], [1], B).index[0]
    assert [at(v, 5) for v in (0, 0.2, 0.2000001, 0.4, 0.8, 1.0)] == [0, 0, 1, 1, 3, 4]
    assert [at(k / 100, 100) for k in range(101)] == [
        0,
        *range(100),
    ]  # also for 0.28 and 0.29, which multiplication puts elsewhere
    assert binned([0.5, 0.5, 0.5], [1, 0, 1], 10, "mass")["n"].tolist() == [3]
    assert binned([0.0, 0.1, 0.1, 1.0], [1, 0, 1, 1], method="distinct")["n"].tolist() == [1, 2, 1]
    mass = binned(np.arange(1, 101) / 100, np.ones(100), 4, "mass")
    assert mass["n"].tolist() == [25] * 4


@pytest.mark.peers
@pytest.mark.parametrize("method, strategy", [("width", "uniform"), ("mass", "quantile")])
def test_bins_errors_and_brier_against_scikit_learn(method, strategy):
    peer = pytest.importorskip("sklearn.calibration", reason="scikit-learn is not installed").calibration_curve
    brier_loss = pytest.importorskip("sklearn.metrics").brier_score_loss
    rng = np.random.default_rng(0)
    for x in (rng.random(300), np.r_[rng.integers(0, 17, 300) / 16, 0, 1]):  # the second lie on edges of 8 bins
        y, B = rng.random(len(x)) < x**2, 8
        accuracy, confidence = peer(y, x, n_bins=B, strategy=strategy)
        table, gaps = binned(x, y, B, method), np.abs(accuracy - confidence)
        shown = {score: rows["value"] for score, rows in by_score(reliability(table)).items()}
        np.testing.assert_allclose(shown["accuracy"], accuracy)
        np.testing.assert_allclose(shown["confidence"], confidence)
        np.testing.assert_allclose(shown["gap"], accuracy - confidence, atol=1e-12)
        assert ece(x, y, B, method, weighted=False) == pytest.approx(gaps.mean())
        assert ece(x, y, B, method) == pytest.approx(np.average(gaps, weights=table["n"]))
        assert values_of(calibration_errors(table))["MCE"] == pytest.approx(gaps.max())
        assert brier(x, y) == pytest.approx(brier_loss(y, x)) == values_of(brier_parts(table))["Brier score"]


def test_two_bins_by_hand():
    "Two bins, worked out on paper; the slow tests have the same for any answers."
    x, y = [0.0, 0.2, 0.5, 0.75, 1.0], [0, 1, 0, 1, 1]
    table = binned(x, y, 2)
    assert table["n"].tolist() == [3, 2] and table["right"].tolist() == [1, 2]
    errors, parts = values_of(calibration_errors(table)), values_of(brier_parts(table))
    gaps = abs(1 / 3 - 0.7 / 3), abs(1 - 1.75 / 2)
    assert errors["ECE"] == pytest.approx((3 * gaps[0] + 2 * gaps[1]) / 5) == ece(x, y, 2)
    assert errors["unweighted ECE"] == pytest.approx(sum(gaps) / 2) == ece(x, y, 2, weighted=False)
    assert errors["MCE"] == pytest.approx(gaps[1])
    assert parts["resolution"] == pytest.approx((3 * (1 / 3 - 0.6) ** 2 + 2 * (1 - 0.6) ** 2) / 5)
    left = parts["reliability"] - parts["resolution"] + parts["uncertainty"] + parts["variance within bins"]
    brier_score = (0.8**2 + 0.5**2 + 0.25**2) / 5
    assert left - 2 * parts["covariance within bins"] == pytest.approx(brier_score)
    assert brier(x, y) == pytest.approx(brier_score) == parts["Brier score"]
    assert by_score(reliability(table))["gap"]["value"].tolist() == pytest.approx([gaps[0], gaps[1]])


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: ece([0.2, -0.1], [0, 1]), r"confidence must be in \[0, 1\], got -0.1 \(number 1\)"),
        (
            lambda: ece([math.nan, 0.2, math.nan], [0, 1, 1]),
            r"2 of 3 confidences are missing \(NaN\), the first of them number 0",
        ),
        (lambda: ece([0.2], [0.5]), r"right must be 0 or 1, got 0.5"),
        (lambda: ece(["a"], [1]), "lists of numbers"),
        (lambda: ece([[0.2]], [[1]]), "one length"),
        (lambda: ece([], []), "no answers"),
        (lambda: ece([0.2], [1], bins=2.5), "bins must be .* got 2.5"),
        (lambda: ece([0.2], [1], method=None), "method must be one of .* got None"),
        (lambda: chance_errors([0.2], simulations=0), "simulations must be"),
        (lambda: ece_interval([0.2], [1], level=1), "level .* got 1"),
        (lambda: ece_interval([0.2], [1], groups=[None]), "1 missing"),
        (lambda: joined(binned([0.2], [1], 10), 3), "10 bins cannot be joined to 3"),
        (lambda: calibration_table({}), "no runs"),
    ],
)
def test_faults(call, words):
    with pytest.raises(CoraError, match=words) as e:
        call()
    assert "\n" not in str(e.value)


@pytest.mark.slow
def test_chance_against_its_definition():
    rng, x = np.random.default_rng(2), np.random.default_rng(3).random(80)
    for weighted, method in ((True, "width"), (False, "mass")):
        slow = [ece(x, rng.random(80) < x, 7, method, weighted) for _ in range(400)]
        fast = chance_errors(x, 7, method, weighted, simulations=2000)
        assert fast.mean() == pytest.approx(np.mean(slow), abs=4 * np.std(slow) / 20) and np.std(fast) == pytest.approx(
            np.std(slow), rel=0.15
        )
    np.testing.assert_array_equal(
        chance_errors(x, simulations=30), chance_errors(x[::-1], simulations=30)
    )  # seeded, and the order is nothing


@pytest.mark.slow
def test_p_keeps_its_level_and_interval_covers():
    rng, alarms, inside = np.random.default_rng(4), 0, 0
    for _ in range(120):
        x = rng.beta(4, 1.5, 200)
        alarms += lookup(ece_interval(x, rng.random(200) < x, 5, resamples=199), "ECE").p < 0.05
        found = lookup(ece_interval(x, rng.random(200) < 0.2, 5, resamples=199), "ECE")
        inside += found.low <= 4 / 5.5 - 0.2 <= found.high  # far from calibrated: the truth is a difference of means
    assert alarms <= 14 and inside >= 105


def test_groups_widen_the_interval():
    rng = np.random.default_rng(5)
    x, y = rng.random(60), rng.random(60) < 0.3
    copies = (np.repeat(x, 8), np.repeat(y, 8), 5)
    one = lookup(ece_interval(x, y, 5), "ECE")
    many = lookup(ece_interval(*copies, groups=np.repeat(np.arange(60), 8)), "ECE")
    assert (many.value, many.low, many.high) == pytest.approx((one.value, one.low, one.high))  # copies say nothing new
    alone = lookup(ece_interval(*copies), "ECE")
    assert alone.high - alone.low < 0.6 * (one.high - one.low) and (one.n, many.n, alone.n) == (60, 480, 480)
    assert math.isnan(lookup(ece_interval([0.5, 0.5], [1, 1], groups=["q", "q"]), "ECE").high)


@pytest.mark.parametrize("weighted, name", [(True, "ECE"), (False, "unweighted ECE")])
def test_ece_beside_what_it_is_by_chance(weighted, name):
    rng = np.random.default_rng(6)
    x, y = rng.random(50), rng.random(50) < 0.6
    found, draws = ece_interval(x, y, 5, weighted=weighted, level=0.9), chance_errors(x, 5, weighted=weighted)
    assert found["score"].tolist() == [name, f"{name} by chance"] and found["n"].tolist() == [50, 50]
    seen, chance = lookup(found, name), lookup(found, f"{name} by chance")
    assert seen.value == ece(x, y, 5, weighted=weighted) and seen.p == (1 + (draws >= seen.value - 1e-12).sum()) / 1001
    assert (chance.value, chance.high) == (draws.mean(), np.quantile(draws, 0.9)) and math.isnan(chance.low)


QUESTIONS = [Question(f"q{i}", "Which?", ("a", "b", "c", "d")[: 2 + i % 3], 0) for i in range(60)]
VARIANTS = [v for v in make_variants(QUESTIONS, "cora") if v.method == "original"]


def run(rng):
    scores = [tuple(rng.normal(size=v.n_choices)) for v in VARIANTS]
    return make_responses(
        VARIANTS,
        [Reply("ABCD"[int(np.argmax(s))] if i % 10 else "?", s, 0.9 if i % 7 else None) for i, s in enumerate(scores)],
    ), scores


def test_table_by_number_of_choices():
    responses, _ = run(np.random.default_rng(7))
    found, each = calibration_table({"r": responses}, bins=5), confidences(responses).dropna()
    assert set(found["respondent"]) == {"r"} and found["place"].drop_duplicates().tolist() == [2, 3, 4]
    scores = by_score(found)
    assert scores["questions"]["value"].tolist() == [20] * 3
    for score in ("replies without a confidence", "replies without a choice", "accuracy of all replies"):
        assert scores[score]["n"].tolist() == [20] * 3
    counts = {score: scores[score]["value"] @ scores[score]["n"] for score in scores if score.startswith("replies")}
    assert counts == pytest.approx({"replies without a confidence": 9, "replies without a choice": 6})
    for A in (2, 3, 4):
        part = each[each["n_choices"] == A]
        values = [scores[s].loc[A, "value"] for s in ("accuracy", "confidence", "ECE", "Brier score")]
        assert values == pytest.approx(
            [part["right"].mean(), 0.9, abs(part["right"].mean() - 0.9), ((part["right"] - 0.9) ** 2).mean()]
        )
        assert {scores[s].loc[A, "n"] for s in ("accuracy", "ECE", "ECE by chance", "Brier score")} == {len(part)}
        alone = ece_interval(part["confidence"], part["right"], 5, groups=part["question_id"])
        rows = found[(found["place"] == A) & found["score"].isin(alone["score"])].reset_index(drop=True)
        named = ["respondent", "place"]
        pd.testing.assert_frame_equal(rows.drop(columns=named), alone.drop(columns=named))
    alike = calibration_table(responses.table, bins=5)
    pd.testing.assert_frame_equal(alike.drop(columns="respondent"), found.drop(columns="respondent"))
    none = by_score(calibration_table(responses.table.assign(confidence=np.nan)))
    assert none["replies without a confidence"]["value"].tolist() == [1] * 3
    for score in ("accuracy", "confidence", "ECE", "ECE by chance", "unweighted ECE", "Brier score"):
        assert none[score]["value"].isna().all() and none[score]["n"].tolist() == [0] * 3


# --- the authors' data ---

COLUMNS = {"4 choices": "4_MC", "3 choices": "3_MC", "2 choices": "2_MC", "long form": "4_LFG"}


def test_the_authors_raw_data():
    raw = load_recorded("li2024/confidence_gpt35")
    x, y = raw["4_MC_C"], raw["4_MC_L"]
    assert [f"{v:.3f}" for v in (ece(x, y, 5, weighted=False), ece(x, y, 5), ece(x, y, 100))] == [
        "0.427",
        "0.635",
        "0.637",
    ]
    shipped = pd.read_csv(data_path("published", "li2024_confidence_bins.csv")).set_index("bin")
    for form, c in COLUMNS.items():
        mine = binned(raw[f"{c}_C"], raw[f"{c}_L"], 100)
        pd.testing.assert_frame_equal(
            shipped.loc[shipped["form"] == form, mine.columns.tolist()], mine, check_dtype=False, atol=1e-8
        )


def test_an_interval_without_width_says_so():
    found = ece_interval([1.0] * 500, [True] * 500, resamples=50).set_index("score")
    assert tuple(found.loc["ECE", ["low", "high"]]) == (0, 0) and found["remarks"]["ECE"] == (
        Remark("few", what="interval", why="point"),
    )
