"""Fieller's interval against t-tests, textbooks and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import CoraError
from cora_nb.stats.ratios import ratio_interval
from cora_nb.stats.shares import share_interval


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 1)), min_size=2, max_size=12), st.sampled_from([0.8, 0.95]))
def test_interval_holds_what_a_t_test_does_not_reject(pairs, level):
    from scipy.stats import ttest_1samp

    r, w = np.array(pairs).T
    ratio, low, high = ratio_interval(w, r, level)
    assert ratio == pytest.approx(sum(w) / sum(r))
    if np.isnan(low):  # the mean of r itself is not told from zero
        assert ttest_1samp(r, 0).pvalue > (1 - level) * (1 - 1e-6)
        return
    assert low * (1 - 1e-9) <= ratio <= high * (1 + 1e-9)
    if high - low < 1e-6 * ratio or np.ptp(w - ratio * r) < 1e-6:
        return  # all questions have one ratio: the test would divide rounding errors by one another
    for limit, clipped in ((low, low == 0), (high, False)):
        p = ttest_1samp(w - limit * r, 0).pvalue
        assert p == pytest.approx(1 - level, rel=1e-3) if not clipped else p >= (1 - level) * (1 - 1e-3)
    assert (
        ttest_1samp(w - (0.9 * low + 0.1 * high) * r, 0).pvalue
        > 1 - level
        > ttest_1samp(w - (1.1 * high - 0.1 * low) * r, 0).pvalue
    )


def test_ratio_is_not_known_everywhere():
    nan = (math.nan,) * 3
    np.testing.assert_equal(ratio_interval([], []), nan)
    np.testing.assert_equal(ratio_interval([0.5, 0.2], [0, 0]), nan)
    np.testing.assert_equal(ratio_interval([0.5], [0.25]), (2, math.nan, math.nan))
    np.testing.assert_equal(ratio_interval([0.5, 0.5, 0.5], [0.9, 0, 0]), (0.5 / 0.3, math.nan, math.nan))
    np.testing.assert_allclose(ratio_interval([0.2] * 4, [0.4] * 4), (0.5, 0.5, 0.5))
    np.testing.assert_allclose(ratio_interval([0.875] * 2, [0.01] * 2), (87.5, 87.5, 87.5))  # no digits are lost


def classical_fieller(w, r, level):
    "The limits as textbooks have them."
    from scipy.stats import t

    s, (mr, mw) = np.cov(r, w) / len(r) * t.ppf((1 + level) / 2, len(r) - 1) ** 2, (np.mean(r), np.mean(w))
    a, b, c = mr**2 - s[0, 0], mr * mw - s[0, 1], mw**2 - s[1, 1]
    return mw / mr, (b - (b * b - a * c) ** 0.5) / a, (b + (b * b - a * c) ** 0.5) / a


def test_against_the_textbook():
    rng = np.random.default_rng(0)
    for level in (0.5, 0.9, 0.95):
        for n in (10, 50):
            r, w = rng.uniform(0.3, 1, n), rng.uniform(0.3, 1, n)
            np.testing.assert_allclose(ratio_interval(w, r, level), classical_fieller(w, r, level), rtol=1e-9)


def test_a_ratio_refuses():
    assert ratio_interval([0, 0, 0], [0.5, 0.4, 0.6]) == (0, 0, 0)
    for wrong in ([-0.1, 0.2], [math.nan, 0.2]):
        with pytest.raises(CoraError, match="at least 0"):
            ratio_interval(wrong, [1, 1])
    with pytest.raises(CoraError, match="two numbers for each question"):
        ratio_interval([[0.1]], [[0.2]])
    with pytest.raises(CoraError, match="level must be"):
        ratio_interval([0.1], [0.2], level=95)


def believers(kind, rng, G):
    "P(Yes) of the right choice and of the most credible of three wrong ones; both lean on the question."
    lean, odds = rng.normal(size=G), lambda x: 1 / (1 + np.exp(-x))
    if kind == "moderate":
        return odds(0.6 * lean + 0.8 * rng.normal(size=G)), odds(-1 + 0.6 * lean + 0.8 * rng.normal(size=(3, G))).max(
            axis=0
        )
    if kind == "doubtful":
        return odds(-3 + 0.6 * lean + 1.9 * rng.normal(size=G)), odds(
            -4 + 0.6 * lean + 1.9 * rng.normal(size=(3, G))
        ).max(axis=0)
    return np.where(rng.random(G) < 0.8, 0.99, 0.01), np.where(rng.random((3, G)) < 0.2, 0.99, 0.01).max(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["moderate", "doubtful", "sure"])
@pytest.mark.parametrize("G", [20, 100])
def test_coverage(kind, G):
    "1,000 runs. The standard error of a coverage of 95% is 0.7%; 92.5% is 3.6 of these below."
    rng, runs = np.random.default_rng(G), 1000
    right, wrong = believers(kind, np.random.default_rng(9), 400_000)
    truth, ones = [wrong.mean() / right.mean(), right.mean(), wrong.mean()], np.ones(G)
    covered = np.zeros(3)
    for _ in range(runs):
        r, w = believers(kind, rng, G)
        for i, (_, low, high) in enumerate([ratio_interval(w, r), share_interval(r, ones), share_interval(w, ones)]):
            covered[i] += low <= truth[i] <= high
    assert 0.925 < covered[0] / runs < 0.98
    assert (covered[1:] / runs > 0.925).all() and (covered[1:] / runs < (0.985 if G > 20 else 0.995)).all()


@pytest.mark.slow
def test_the_delta_method_covers_less():
    "What the notebook says: mean confidences of 10%, 20 questions, 6,000 runs."
    from scipy.stats import t

    rng, G, delta, ours = np.random.default_rng(1), 20, 0, 0
    right, wrong = believers("doubtful", np.random.default_rng(9), 400_000)
    truth = wrong.mean() / right.mean()
    assert right.mean() == pytest.approx(0.1, abs=0.03)
    for _ in range(6000):
        r, w = believers("doubtful", rng, G)
        ratio, low, high = ratio_interval(w, r)
        delta += abs(ratio - truth) <= t.ppf(0.975, G - 1) * (w - ratio * r).std(ddof=1) / G**0.5 / r.mean()
        ours += low <= truth <= high
    assert delta / 6000 == pytest.approx(0.91, abs=0.01) and ours / 6000 == pytest.approx(0.95, abs=0.01)
