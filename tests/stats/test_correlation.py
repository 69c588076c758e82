"""Correlations and their intervals against SciPy and the former formula."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import norm, pearsonr, spearmanr

from cora_nb.core import CoraError
from cora_nb.results import lookup
from cora_nb.stats.correlation import correlations

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


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(pairs, st.floats(0.01, 0.999), st.sampled_from([None, 1, -1]))
def test_pearsons_interval_by_the_former_formula(rows, level, slope):
    x, y = np.array(rows, float).T / 5
    y = y if slope is None else slope * x
    found = lookup(correlations(x, y, level, resamples=1), PEARSON)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert found[["value", "low", "high", "p"]].isna().all()
        return
    r, half = pearsonr(x, y).statistic, norm.ppf((1 + level) / 2) / np.sqrt(len(x) - 3)
    z = np.arctanh(np.clip(r, -1, 1)) if abs(r) < 1 else np.inf * r
    np.testing.assert_allclose([found["low"], found["high"]], np.tanh([z - half, z + half]), rtol=1e-12, atol=1e-15)


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
