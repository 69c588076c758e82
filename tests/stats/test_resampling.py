"""Resamples and intervals against slow loops, scipy's bootstrap, and respondents whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from cora_nb.core import CoraError
from cora_nb.metrics.account import account_of_counts, score_counts
from cora_nb.metrics.contributions import score_intervals
from cora_nb.metrics.cora import weighted_scores
from cora_nb.metrics.scores import register_score, SCORES
from cora_nb.results import Remark
from cora_nb.stats.resampling import (
    cluster_table,
    design_effect,
    draw_questions,
    interval,
    kinds,
    left_out,
    pseudo_values,
)


def as_account(counts):
    "The account of counts, by the columns of scores."
    return account_of_counts(*counts[["hits", "trials", "original"]].to_numpy(float).T)


number = st.sampled_from([0.0, -0.0, 1.0, 2.5, float("nan")])


@given(st.lists(st.tuples(number, number), min_size=1, max_size=30))
def test_kinds_are_the_different_rows(rows):
    found, kind = kinds(rows)
    assert kind.shape == (len(rows),) and set(kind) == set(range(len(found)))
    np.testing.assert_array_equal(found[kind], np.array(rows) + 0.0)
    assert len(found) == len({tuple("nan" if x != x else x + 0.0 for x in row) for row in rows})


def test_draws_have_the_distribution_of_drawing_questions_one_by_one():
    kind = np.array([0] * 5 + [1] * 3 + [2] * 2)
    drawn, rng = draw_questions(kind, 20_000, seed=1), np.random.default_rng(2)
    slow = np.stack([np.bincount(kind[rng.integers(0, 10, 10)], minlength=3) for _ in range(20_000)])
    np.testing.assert_allclose(drawn.mean(axis=0), [5, 3, 2], atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(slow.T), atol=0.1)
    assert stats.chi2_contingency([np.bincount(d[:, 1], minlength=11)[:8] for d in (drawn, slow)]).pvalue > 0.001


def test_whole_clusters_are_drawn():
    kind, clusters = np.array([0, 1, 1, 2, 2, 2, 0]), list("abbccca")
    table = cluster_table(kind, clusters)
    assert table.tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 3]]
    drawn, rng = draw_questions(kind, 20_000, 1, clusters), np.random.default_rng(2)
    slow = table[rng.integers(0, 3, (20_000, 3))].sum(axis=1)
    assert (drawn % [2, 2, 3] == 0).all() and set(drawn.sum(axis=1)) <= set(range(6, 10))
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(slow.T), atol=0.15)
    rows, sizes = left_out(kind, clusters)
    assert rows.tolist() == [[0, 2, 3], [2, 0, 3], [2, 2, 0]] and sizes.tolist() == [1, 1, 1]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_intervals_agree_with_scipy(seed, method):
    values = np.random.default_rng(seed).choice([0.0, 0.1, 0.35, 1.0], 60, p=[0.5, 0.3, 0.15, 0.05])
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=40_000,
        method={"bca": "BCa"}.get(method, method),
        rng=np.random.default_rng(seed),
    ).confidence_interval
    found, kind = kinds(values[:, None])
    mean = lambda w: w @ found[:, 0] / w.sum(axis=1)
    without, sizes = left_out(kind)
    ours = interval(mean(draw_questions(kind, 40_000, seed)), values.mean(), mean(without), sizes, method=method)
    np.testing.assert_allclose(ours, theirs, atol=0.03 * (theirs.high - theirs.low))


def test_clusters_of_one_and_clusters_that_are_copies():
    rng = np.random.default_rng(0)
    counts = pd.DataFrame({"hits": rng.integers(0, 5, 80), "trials": 4}).assign(
        original=lambda c: (c["hits"] > 1).astype(float)
    )
    each = score_intervals(as_account(counts), clusters=np.arange(80))
    ends = ["value", "low", "high"]
    copied = score_intervals(as_account(pd.concat([counts] * 3)), clusters=np.tile(np.arange(80), 3))
    np.testing.assert_allclose(each[ends], copied[ends], atol=0.005)  # copies of a question tell no more than one
    single = score_intervals(as_account(counts))  # half a cluster is added at each end where one question is
    np.testing.assert_allclose(single[ends], each[ends], atol=0.02)


@given(st.integers(2, 400), st.floats(0.5, 0.999), st.booleans())
@settings(max_examples=30)
def test_at_the_edge_it_is_clopper_and_pearson(n, level, right):
    ours = interval(np.full(100, float(right)), float(right), np.full(1, float(right)), np.array([n]), level)
    theirs = stats.binomtest(n * right, n).proportion_ci(level, "exact")
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_unknown_scores_have_no_interval():
    counts = pd.DataFrame({"hits": [1, 2, 4, 3], "trials": 4, "original": [1, 0, np.nan, 1]})
    found = score_intervals(as_account(counts))
    ends = ["value", "low", "high"]
    assert found.loc[["MCQA", "CI", "CoRA"], ends].isna().all(axis=None)
    assert found.loc[["MCQA+", "MV", "BMCA(1.0)"], ends].notna().all(axis=None)
    assert not found.loc[["MCQA", "CI", "CoRA"], "remarks"].any()
    assert score_intervals(as_account(counts[:1]))[["low", "high"]].isna().all(axis=None)


@pytest.mark.parametrize(
    "call, why",
    [
        (lambda: kinds(np.zeros(3)), "at least one row of numbers, got the shape (3,)"),
        (lambda: draw_questions(np.array([0, 0]), 2.5), "resamples must be a whole number of 1 or more, got 2.5"),
        (
            lambda: draw_questions(np.array([0, 1]), 5, clusters=["a", None]),
            "1 questions have no cluster, the first of them number 2",
        ),
        (lambda: draw_questions(np.array([0, 1]), 5, clusters=["a"]), "one cluster for each question, got 1 for 2"),
        (lambda: draw_questions(np.array([0, 1]), 5, clusters=["a", "a"]), "all questions belong to one cluster, 'a'"),
        (
            lambda: interval(np.zeros(3), 0.0, np.zeros(1), np.ones(1), level=True),
            "level must be between 0 and 1, got True",
        ),
        (lambda: interval(np.zeros(3), 0.0, np.zeros(1), np.ones(1), method="t"), "one of bca, percentile, got 't'"),
    ],
)
def test_faults_are_one_line(call, why):
    with pytest.raises(CoraError) as e:
        call()
    assert why in str(e.value) and "\n" not in str(e.value)


def test_pseudo_values_of_a_mean_are_its_values():
    rng = np.random.default_rng(2)
    values = rng.choice([0.0, 0.25, 1.0], 40)
    found, kind = kinds(values[:, None])
    without, sizes = left_out(kind)
    mean = lambda w: w @ found[:, 0] / w.sum(axis=1)
    each = pseudo_values(values.mean(), mean(without), sizes)
    np.testing.assert_allclose(each, found[:, 0], atol=1e-9)
    for clusters in (np.arange(40) // 4, np.arange(40) % 3, np.repeat([0, 1, 2], [30, 6, 4])):
        names, code = np.unique(clusters, return_inverse=True)
        left = np.array([values[code != g].mean() for g in range(len(names))])
        v = (len(names) - 1) / len(names) * ((left - values.mean()) ** 2).sum()
        by_hand = max(v / (values.var(ddof=1) / 40), 1)
        ours = design_effect(values.mean(), each, sizes, mean(left_out(kind, clusters)[0]))
        assert ours == pytest.approx(by_hand)


def drawn_counts(rng, known, right_if_not=0.35):
    hits = np.where(known, 20, rng.binomial(20, right_if_not, len(known)) if right_if_not else 7)
    return pd.DataFrame({"hits": hits, "trials": 20, "original": (rng.random(len(known)) < hits / 20) * 1.0})


@pytest.mark.slow
@pytest.mark.parametrize("G", [5, 10, 20])
def test_few_clusters_are_covered_and_said(G):
    "BCa held the truth in 81 to 92 of 100."
    rng, inside, said = np.random.default_rng(G), [], []
    for _ in range(150):
        clusters = np.arange(100) % G
        known = rng.random(100) < rng.beta(3, 2, G)[clusters]
        found = score_intervals(as_account(drawn_counts(rng, known)), (1.0,), clusters=clusters).loc["MCQA+"]
        inside.append(found["low"] <= 0.6 + 0.4 * 0.35 <= found["high"])
        said.append(Remark("few", G, what="cluster", why="unlike") in found["remarks"])
    # half a cluster at each end is most of the interval, unless those seen differ much
    assert np.mean(said) == 1 if G == 5 else np.mean(said) > 0.5 if G == 10 else np.mean(said) < 0.1
    assert np.mean(inside) >= 0.91  # of 150, so give or take 2 points


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 100, 300])
@pytest.mark.parametrize("right_if_not", [0.35, None])
def test_a_rare_group_is_covered(n, right_if_not):
    "Two questions in a hundred are known, the others guessed, or all 7 of 20: BCa held the truth in 67 to 82 of 100."
    rng, inside = np.random.default_rng(n), []
    for _ in range(150):
        found = score_intervals(as_account(drawn_counts(rng, rng.random(n) < 0.02, right_if_not)), (1.0,)).loc["MCQA+"]
        inside.append(found["low"] <= 0.02 + 0.98 * 0.35 <= found["high"])
    assert np.mean(inside) >= 0.9  # Wilson's for six of 300 covers 0.93, and so few of one kind are said in a remark


def test_all_alike_is_no_certainty():
    counts = as_account(pd.DataFrame({"hits": 7, "trials": 20, "original": 0.0}, index=range(300)))
    found = score_intervals(counts)
    few = (Remark("few", 300, what="question", why="unlike"),)
    assert (found["low"] < found["high"]).all() and set(found["remarks"]) == {few}
    assert found.loc["RC", "low"] < 0.35 < found.loc["RC", "high"] < 0.36
    clustered = score_intervals(counts, clusters=np.arange(300) % 30)
    assert clustered.loc["RC", "high"] - 0.35 > 5 * (found.loc["RC", "high"] - 0.35)


def test_a_score_outside_0_and_1_has_bca():
    rng = np.random.default_rng(4)
    counts = drawn_counts(rng, rng.random(80) < 0.5)
    before = dict(SCORES.registered)
    try:
        register_score("points", linear=True)(lambda c: c.mean(c.hits * 1.0))
        found = score_intervals(as_account(counts))
    finally:
        SCORES.registered.clear()
        SCORES.registered.update(before)
    rows, kind = kinds(counts["hits"].to_numpy(float)[:, None])
    (without, sizes), draws = left_out(kind), draw_questions(kind, 10_000, 0)
    drawn, apart = (w @ rows[:, 0] / w.sum(axis=1) for w in (draws, without))
    ends = interval(drawn, counts["hits"].mean(), apart, sizes)  # BCa's
    assert (
        found.loc["points", ["low", "high"]].tolist() == pytest.approx(ends, abs=0.05)
        and found.loc["points", "high"] > 1
    )


def test_weights_are_copies_of_questions():
    rng = np.random.default_rng(4)
    counts = pd.DataFrame({"hits": rng.integers(0, 7, 9), "trials": 6}).assign(
        original=lambda c: (c["hits"] > 2).astype(float)
    )
    weights = rng.multinomial(9, np.full(9, 1 / 9), size=5)
    many = pd.DataFrame(weighted_scores(counts, weights=weights))
    for w, row in zip(weights, many.to_dict("records")):
        np.testing.assert_allclose(
            list(row.values()), score_counts(as_account(counts.loc[np.repeat(np.arange(9), w)])).to_numpy(), atol=1e-12
        )
