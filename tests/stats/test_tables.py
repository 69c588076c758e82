"""Chi-squared in three readings and agreement of two columns, against SciPy, loops and definitions."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import chi2, chi2_contingency, chisquare

from cora_nb.core import CoraError
from cora_nb.stats.tables import agreement_statistics, contingency_statistic, fit_statistic, rao_scott


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


columns_of_counts = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=2, max_size=8)


@given(st.lists(columns_of_counts.filter(lambda c: len(c) == 4), min_size=1, max_size=5))
def test_many_tables_are_those_one_by_one(tables):
    stack = np.array(tables, float).transpose(0, 2, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        for statistic in (contingency_statistic, fit_statistic):
            together = statistic(stack)
            for k, one in enumerate(stack):
                np.testing.assert_equal((together[0][k], together[1][k]), statistic(one))


def test_contingency_is_scipys_to_the_last_digits():
    rng = np.random.default_rng(0)
    for _ in range(300):
        counts = rng.integers(1, rng.choice([3, 60, 10**6]), (2, rng.integers(2, 9)))
        theirs = chi2_contingency(counts, correction=False)
        np.testing.assert_allclose(
            contingency_statistic(counts), (theirs.statistic, theirs.dof), rtol=1e-12, atol=1e-12
        )


# --- counts that belong together --------------------------------------------------------------------------------------


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_two_answers_are_mcnemars(a, b, same):
    statistic, df, p = rao_scott([[1, -1]] * a + [[-1, 1]] * b + [[0, 0]] * (same + 1), [0.5, 0.5])
    assert statistic == pytest.approx((a - b) ** 2 / (a + b) if a + b else 0) and df == pytest.approx(1)
    assert p == pytest.approx(chi2.sf((a - b) ** 2 / (a + b), 1) if a + b else 1)


@given(st.lists(st.integers(0, 12), min_size=2, max_size=5).filter(lambda n: sum(n) > 0), st.integers(1, 6))
def test_one_answer_a_question_is_pearson_once_a_question(counts, times):
    A, G = len(counts), sum(counts)
    s = times * (np.repeat(np.eye(A), counts, axis=0) - 1 / A)
    statistic, df, p = rao_scott(s, np.full(A, 1 / A))
    assert statistic / df == pytest.approx(chisquare(counts).statistic / (A - 1))
    assert df <= A - 1 + 1e-9 and statistic / df <= G + 1e-9 and p == pytest.approx(chi2.sf(statistic, df))


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
