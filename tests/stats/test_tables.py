"""Tests of tables of counts, agreement and correlation of columns, and p-values corrected for many tests."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.stats import chi2, chi2_contingency, pearsonr, spearmanr

from cora_nb.core import CoraError
from cora_nb.results import lookup
from cora_nb.stats.paired import (
    adjust_p,
    agreement_statistics,
    contingency_statistic,
    correlations,
    fit_statistic,
    rao_scott,
)


# --- counts


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=2, max_size=8))
def test_contingency_is_scipys(columns):
    counts = np.array(columns).T
    used = counts[:, counts.sum(axis=0) > 0]
    if used.shape[1] < 2 or not used.sum(axis=1).all():
        return
    theirs, (statistic, df) = chi2_contingency(used, correction=False), contingency_statistic(counts)
    assert statistic == pytest.approx(theirs.statistic, abs=1e-9) and df == theirs.dof


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=2, max_size=8))
def test_goodness_of_fit_by_a_loop(columns):
    statistic, df = fit_statistic(np.array(columns).T)
    if any(r == 0 < o for o, r in columns):
        assert np.isnan(statistic)
    else:
        assert statistic == pytest.approx(sum((o - r) ** 2 / r for o, r in columns if r))
        assert df == sum(r > 0 for _, r in columns) - 1


# --- counts that belong together --------------------------------------------------------------------------------------


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_two_answers_are_mcnemars(a, b, same):
    statistic, df, p = rao_scott([[1, -1]] * a + [[-1, 1]] * b + [[0, 0]] * (same + 1), [0.5, 0.5])
    assert statistic == pytest.approx((a - b) ** 2 / (a + b) if a + b else 0) and df == pytest.approx(1)
    assert p == pytest.approx(chi2.sf((a - b) ** 2 / (a + b), 1) if a + b else 1)


def test_rao_scott_leaves_out_what_is_not_expected_and_refuses_other_shapes():
    s = np.array([[1.0, -1, 0], [-1, 1, 0], [1, -1, 0]])
    assert rao_scott(s, [0.5, 0.5, 0]) == rao_scott(s[:, :2], [0.5, 0.5])
    with pytest.raises(CoraError, match=r"got the shapes \(3, 3\) and \(2,\)"):
        rao_scott(s, [0.5, 0.5])
    with pytest.raises(CoraError, match="a column for each share"):
        rao_scott([1, 2], [0.5, 0.5])


# --- two columns of yes and no ----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_agreement_by_definition(pairs):
    x, y = np.array(pairs, dtype=float).T
    phi, kappa, gap = agreement_statistics(np.bincount((2 * (1 - x) + (1 - y)).astype(int), minlength=4))
    assert gap == pytest.approx(x.mean() - y.mean())
    if 0 < x.mean() < 1 and 0 < y.mean() < 1:
        assert phi == pytest.approx(np.corrcoef(x, y)[0, 1])
    else:
        assert np.isnan(phi)
    chance = x.mean() * y.mean() + (1 - x.mean()) * (1 - y.mean())
    if chance < 1:
        assert kappa == pytest.approx(((x == y).mean() - chance) / (1 - chance))


# --- two columns of numbers

PEARSON, SPEARMAN = "Pearson's r", "Spearman's rho"
NUMBERS = ["value", "low", "high", "p", "n"]


def test_correlations_against_scipy_and_nan():
    rng = np.random.default_rng(2)
    x = rng.normal(size=60).round(1)
    y = (x + rng.normal(size=60)).round(1)
    found = correlations([*x, math.nan, 1], [*y, 1, math.nan])
    expected, interval = pearsonr(x, y), pearsonr(x, y).confidence_interval()
    assert found["score"].tolist() == [PEARSON, SPEARMAN]
    assert lookup(found, PEARSON)[NUMBERS].tolist() == pytest.approx(
        [expected.statistic, *interval, expected.pvalue, 60]
    )
    assert lookup(found, SPEARMAN)[["value", "p"]].tolist() == pytest.approx(
        [spearmanr(x, y).statistic, spearmanr(x, y).pvalue]
    )
    drawn = np.random.default_rng(0).integers(60, size=(200, 60))  # the first part of the resamples, one at a time
    slow = [spearmanr(x[i], y[i]).statistic for i in drawn]
    assert lookup(correlations(x, y, resamples=200), SPEARMAN)[["low", "high"]].tolist() == pytest.approx(
        np.quantile(slow, [0.025, 0.975]).tolist()
    )
    pd.testing.assert_frame_equal(correlations(x, y), correlations(x, y))
    perfect = correlations(x, 2 * x)
    assert (
        perfect["value"].tolist() == pytest.approx([1, 1])
        and lookup(perfect, PEARSON).high <= 1
        and lookup(perfect, SPEARMAN).low == pytest.approx(1)
    )
    assert correlations([1, 2, 3], [1, 2, 3])["value"].isna().all() and correlations([1, 2, 3], [1, 2, 3])[
        "n"
    ].tolist() == [3, 3]


pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=4, max_size=40)


@pytest.mark.parametrize(
    "call, why",
    [
        (lambda: correlations([1, 2], [1]), "lists of one length, got the shapes (2,) and (1,)"),
        (lambda: correlations([1, math.inf], [1, 2]), "x and y must be finite numbers or NaN, got inf"),
        (lambda: correlations([1, 2], [1, 2], level=95), "level must be between 0 and 1, got 95"),
        (lambda: correlations([1, 2], [1, 2], resamples=0), "resamples must be a whole number of 1 or more, got 0"),
    ],
)
def test_faults_are_one_line(call, why):
    with pytest.raises(CoraError) as e:
        call()
    assert why in str(e.value) and "\n" not in str(e.value)


# --- many tests


@pytest.mark.parametrize("method, expected", [("holm", [0.03, 1, 1, math.nan]), ("bh", [0.03, 0.9, 1, math.nan])])
def test_a_corrected_p_reaches_one_and_never_more(method, expected):
    "An exact test has p = 1 where nothing changed; 2 * 0.6 is no probability."
    np.testing.assert_allclose(adjust_p([0.01, 0.6, 1.0, math.nan], method), expected)
    assert adjust_p([0, 1], method).tolist() == [0, 1]


@pytest.mark.slow
@given(st.lists(st.floats(0, 1) | st.just(math.nan), max_size=12))
def test_corrections_by_loops(p):
    made = sorted(x for x in p if not math.isnan(x))
    m = len(made)
    holm, bh = adjust_p(p), adjust_p(p, "bh")
    for x, h, b in zip(p, holm, bh):
        if math.isnan(x):
            assert math.isnan(h) and math.isnan(b)
        else:
            assert h == pytest.approx(min(1, max((m - i) * y for i, y in enumerate(made) if y <= x)))
            assert b == pytest.approx(min(1, min(m / (i + 1) * y for i, y in enumerate(made) if y >= x)))
            assert x <= b * (1 + 1e-12) + 1e-15 and b <= h * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize(
    "call, why",
    [
        (lambda: adjust_p([0.1], "none"), "method must be one of holm, bh, got 'none'"),
        (lambda: adjust_p([1.5]), "p must be from 0 to 1, got 1.5"),
        (lambda: adjust_p([0.1, -0.1]), "p must be from 0 to 1, got -0.1"),
        (lambda: adjust_p("x"), "p must be numbers from 0 to 1, got 'x'"),
    ],
)
def test_faults_are_one_line_corrections(call, why):
    with pytest.raises(CoraError) as e:
        call()
    assert why in str(e.value) and "\n" not in str(e.value)
