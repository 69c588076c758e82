"""Shares: Wilson's interval against SciPy and a solved equation, and questions without a reply."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import binomtest

from cora_nb.core import CoraError
from cora_nb.stats.shares import count_interval, share_interval, share_of_asked, share_row


@given(st.integers(1, 5000), st.data(), st.floats(0.01, 0.9999))
def test_wilson_is_scipys(n, data, level):
    k = data.draw(st.sampled_from([0, n]) | st.integers(0, n))
    share, low, high = count_interval(k, n, level)
    theirs = binomtest(k, n).proportion_ci(level, method="wilson")
    assert share == k / n
    np.testing.assert_allclose((low, high), theirs, rtol=1e-12, atol=1e-15)


def test_counts_are_told_one_by_one_and_none_is_not_known():
    found = count_interval([[0, 2], [3, 1]], [[2], [4]])
    for i, (k, n) in enumerate([(0, 2), (2, 2), (3, 4), (1, 4)]):
        np.testing.assert_allclose([x.flat[i] for x in found], count_interval(k, n), rtol=1e-15)
    assert np.isnan(count_interval([0, 1], [0, 1])).tolist() == [[True, False]] * 3
    with pytest.raises(CoraError, match="level must be between 0 and 1, got 95"):
        count_interval(1, 2, 95)


def test_interval_against_a_solved_equation():
    "The limits are where the distance from the share is t standard errors, with the spread that there would be there."
    from scipy.optimize import brentq
    from scipy.stats import t

    totals, sizes = np.array([5, 0, 3, 6, 1, 2.5]), np.array([6, 4, 6, 7, 6, 6])
    p = totals.sum() / sizes.sum()
    x = p + (totals - p * sizes) / sizes.mean()

    def gap(distance, one_more):
        "With one more question, always right or always wrong, that shows how the spread grows."
        seen = np.append(x, one_more) - p
        growth = (seen**3).sum() / (seen**2).sum()
        variance = np.mean((x - p) ** 2) + growth * distance - distance**2
        return 6 * distance**2 - t.ppf(0.95, 5) ** 2 * variance

    ends = [p + brentq(gap, -p, 0, args=(0,)), p + brentq(gap, 0, 1 - p, args=(1,))]
    np.testing.assert_allclose(share_interval(totals, sizes, 0.9), [p, *ends], rtol=1e-9)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
def test_questions_without_a_reply_say_nothing(pairs):
    pairs = [(min(t, n), n) for t, n in pairs]
    asked = [(t, n) for t, n in pairs if n]
    found = share_of_asked(*np.array(pairs).reshape(-1, 2).T)
    row = share_row(*np.array(pairs).reshape(-1, 2).T)
    assert list(row) == ["value", "low", "high", "n"] and row["n"] == sum(n for _, n in pairs)
    np.testing.assert_array_equal([row["value"], row["low"], row["high"]], found)
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
