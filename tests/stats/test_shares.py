"""Hits and shares: exact distributions, intervals against theory and simulation, finite populations."""

import itertools
from fractions import Fraction
from math import comb, prod

import numpy as np
import pytest
from helpers import slow_after
from hypothesis import given, settings, strategies as st
from scipy.stats import binomtest, hypergeom, t

from cora_nb.core import CoraError
from cora_nb.stats.shares import (
    binomial_pmf,
    binomial_tail,
    combinations,
    count_interval,
    finite_wilson,
    graded_interval,
    look_level,
    moved_interval,
    poisson_binomial_pmf,
    poisson_binomial_tail,
    random_order,
    share_interval,
    share_of_asked,
    share_row,
    squared_quantile,
    wilson,
)


# --- hits by luck

trials = st.integers(1, 60).flatmap(lambda M: st.tuples(st.integers(0, M), st.just(M)))
rates_1_to_8 = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def exact_tail(p: int, M: int, r: Fraction) -> Fraction:
    return sum((comb(M, j) * r**j * (1 - r) ** (M - j) for j in range(p, M + 1)), Fraction(0))


@pytest.mark.parametrize("M", range(1, 11))
def test_combinations_count_outcomes(M):
    outcomes = [sum(o) for o in itertools.product((0, 1), repeat=M)]
    assert [combinations(p, M) for p in range(M + 1)] == [outcomes.count(p) for p in range(M + 1)]


def test_combinations_are_exact_beyond_floats():
    assert combinations(76, 152) == comb(152, 76) > 2**53


@settings(deadline=None)
@given(trials, st.fractions(0, 1, max_denominator=50))
def test_pmf_and_tail_against_fractions(pM, r):
    (p, M), exact = pM, float(exact_tail(*pM, r))
    assert binomial_tail(p, M, float(r)) == pytest.approx(exact, rel=1e-10, abs=1e-300)
    assert binomial_pmf(p, M, float(r)) == pytest.approx(
        float(comb(M, p) * r**p * (1 - r) ** (M - p)), rel=1e-10, abs=1e-300
    )


@settings(deadline=None)
@given(rates_1_to_8)
def test_pmf_against_every_outcome(rates):
    slow = np.zeros(len(rates) + 1)
    for outcome in itertools.product((0, 1), repeat=len(rates)):
        slow[sum(outcome)] += prod(r if hit else 1 - r for hit, r in zip(outcome, rates))
    np.testing.assert_allclose(poisson_binomial_pmf(rates), slow, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("n", slow_after(30, range(1, 153)))
def test_thresholds_are_exact(n):
    "The threshold h/n, computed as a float, counts h hits in and does not count them where more is asked for."
    certain = np.zeros(n)
    for h in range(n + 1):
        certain[:h] = 1
        assert poisson_binomial_tail(certain, h / n) == 1 and poisson_binomial_tail(certain, h / n, strict=True) == 0


@pytest.mark.parametrize("seed", range(40))
def test_what_is_certain_has_the_probability_one(seed):
    "The probabilities may sum to 0.9999999999999999, and a share of at least 0 is certain all the same."
    rates = np.random.default_rng(seed).random(1 + seed % 30)
    assert poisson_binomial_tail(rates, 0) == 1.0
    tails = [poisson_binomial_tail(rates, k / len(rates)) for k in range(len(rates) + 1)]
    strict = [poisson_binomial_tail(rates, k / len(rates), strict=True) for k in range(len(rates) + 1)]
    assert np.all(np.diff(tails) <= 0) and np.all(np.array(strict) <= tails) and strict[-1] == 0


def test_the_cases_that_were_seen():
    "The sum of all probabilities was less than the sum of some: 1.0 <= 0.9999999999999999."
    for rates in ([0.3, 0.4, 1.0, 0.1, 1.0, 0.3, 0.0], [1.0, 0.4, 0.8, 0.6, 0.4, 0.9, 0.5]):
        assert poisson_binomial_pmf(rates).sum() < poisson_binomial_pmf(rates)[1:].sum()
        assert poisson_binomial_tail(rates, 0) == poisson_binomial_tail(rates, 0, strict=True) == 1.0  # one hit is sure


@pytest.mark.parametrize(
    "call, why",
    [
        (lambda: combinations(-1, 3), "p must be a whole number from 0 to 3, got -1"),
        (lambda: combinations(1, 0), "M must be a whole number of 1 or more, got 0"),
        (lambda: binomial_pmf(2.5, 3, 0.5), "p must be a whole number of 0 or more, got 2.5"),
        (lambda: binomial_tail(11, 10, 0.5), "p must be at most M, got p=11 and M=10"),
        (lambda: binomial_tail(1, 10, 1.2), "r must be a number from 0 to 1, got 1.2"),
        (lambda: poisson_binomial_pmf([]), "rates must be a list of at least one number"),
        (lambda: poisson_binomial_pmf([[0.5]]), "rates must be a list of at least one number"),
        (lambda: poisson_binomial_pmf([0.2, 1.3]), "rates must be a number from 0 to 1, got 1.3"),
        (lambda: poisson_binomial_tail([0.5], -0.5), "c must be a number from 0 to 1, got -0.5"),
    ],
)
def test_faults_are_one_line(call, why):
    with pytest.raises(CoraError) as e:
        call()
    assert why in str(e.value) and "\n" not in str(e.value)


# --- trials that count several times --------------------------------------------------------------------------------

jumping = st.lists(st.tuples(st.fractions(0, 1, max_denominator=40), st.integers(1, 5)), min_size=1, max_size=9)


@settings(deadline=None)
@given(jumping)
def test_trials_that_count_several_times_against_every_outcome(trials):
    slow = [Fraction(0)] * (sum(m for _, m in trials) + 1)
    for outcome in itertools.product((0, 1), repeat=len(trials)):
        hits = sum(m for hit, (_, m) in zip(outcome, trials) if hit)
        slow[hits] += prod(r if hit else 1 - r for hit, (r, _) in zip(outcome, trials))
    rates, times = ([float(r) for r, _ in trials], [m for _, m in trials])
    found = poisson_binomial_pmf(rates, times)
    np.testing.assert_allclose(found, [float(x) for x in slow], rtol=1e-12, atol=1e-300)
    assert np.arange(len(found)) @ found == pytest.approx(np.dot(rates, times))  # the mean minds no multiplicity
    whole = [x for h, x in enumerate(slow) if h / (len(slow) - 1) >= 0.6]
    assert poisson_binomial_tail(rates, 0.6, times=times) == pytest.approx(float(sum(whole)), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    "times, says",
    [
        ([1], "times must have one number for each rate, got 1 for 2"),
        ([1, 0], "times must be a whole number of 1 or more, got 0"),
        ([1, 1.5], "times must be a whole number of 1 or more, got 1.5"),
    ],
)
def test_times_out_of_range(times, says):
    with pytest.raises(CoraError, match=says):
        poisson_binomial_pmf([0.2, 0.3], times)


# --- a share and its interval


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


graded = st.lists(
    st.tuples(st.sampled_from([0.0, 0.05, 0.35, 0.5, 0.95, 1.0]), st.integers(1, 60)), min_size=1, max_size=6
).filter(lambda rows: sum(n for _, n in rows) > 1)


@given(graded, st.floats(0.5, 0.999), st.floats(0.5, 30), st.one_of(st.none(), st.integers(2, 50)))
def test_graded_ends_by_the_formula(rows, level, effect, df):
    "Each end is where n x^2 is z^2 (variance + J x - x^2), with one more question at that end."
    each, sizes = map(np.array, zip(*rows))
    low, high = graded_interval(each, sizes, level, effect, df)
    values = np.repeat(each, sizes)
    n, m = len(values), values.mean()
    z = t.ppf((1 + level) / 2, n - 1 if df is None else df)
    assert 0 <= low <= m + 1e-12 and m - 1e-12 <= high <= 1
    for end, one_more in ((low, 0.0), (high, 1.0)):
        if 1e-9 < end < 1 - 1e-9:
            moments = [sum((v - m) ** k for v in [*values, one_more]) for k in (2, 3)]
            x, J = end - m, moments[1] / moments[0]
            assert n / effect * x**2 == pytest.approx(z**2 * (values.var() + J * x - x**2), rel=1e-6, abs=1e-9)
    turned = graded_interval(1 - each, sizes, level, effect, df)
    assert turned == pytest.approx((1 - high, 1 - low), abs=1e-9)


# --- a part of a finite population

IDS = st.lists(st.text(max_size=5), unique=True, max_size=20)


@given(IDS, st.integers(0, 5), st.randoms())
def test_the_order_depends_on_the_seed_and_the_ids_only(ids, seed, shuffler):
    order = [ids[i] for i in random_order(ids, seed)]
    again = ids.copy()
    shuffler.shuffle(again)
    assert sorted(order) == sorted(ids) and order == [again[i] for i in random_order(again, seed)]


@given(st.integers(1, 200), st.data())
def test_the_interval_holds_what_was_seen_and_what_is_certain(population, data):
    n = data.draw(st.integers(1, population))
    hits = data.draw(st.integers(0, n))
    low, high = finite_wilson(hits, n, population, 3.84)
    assert hits / population - 1e-12 <= low <= hits / n + 1e-12 and hits / n - 1e-12 <= high
    assert high <= 1 - (n - hits) / population + 1e-12
    assert (low == high) == (n == population) or n == population
    wide = wilson(hits / n, n, 3.84)
    assert high - low <= wide[1] - wide[0] + 1e-12


@pytest.mark.parametrize(("population", "n"), [(200, 60), (1273, 150), (1273, 900), (60, 30)])
def test_coverage(population, n):
    covers, z2 = [], squared_quantile(0.95)
    for truth in range(1, population, max(1, population // 100)):
        hits = np.arange(max(0, truth - (population - n)), min(n, truth) + 1)
        ends = np.array([finite_wilson(h, n, population, z2) for h in hits])
        inside = (ends[:, 0] <= truth / population + 1e-12) & (ends[:, 1] >= truth / population - 1e-12)
        covers.append(hypergeom.pmf(hits, population, truth, n)[inside].sum())
    assert 0.945 < np.mean(covers) < 0.96 and np.min(covers) > 0.87  # without the population, it holds too often


@pytest.mark.parametrize("hits, n, population", [(3, 10, 40), (40, 60, 200), (7, 20, 50)])
def test_ends_of_a_part_of_a_population_by_cochrans_variance(hits, n, population):
    "Each end is where the distance from the share is z standard errors."
    for end in finite_wilson(hits, n, population, 1.5):
        variance = end * (1 - end) / n * (population - n) / (population - 1)
        assert (hits / n - end) ** 2 == pytest.approx(1.5 * variance)


def test_a_large_population_is_endless():
    np.testing.assert_allclose(finite_wilson(60, 100, 1e9, 3.84), wilson(0.6, 100, 3.84), rtol=1e-6)


def test_moves_add_in_squares_and_only_the_unfavourable_ones():
    low, high = moved_interval(0.5, [(0.47, 0.5), (0.46, 0.62), (0.55, 0.6)])
    np.testing.assert_allclose([low, high], [0.45, 0.5 + np.sqrt(0.12**2 + 0.1**2)])


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_all_looks_together_keep_the_level(level):
    missed = [1 - look_level(level, look) for look in range(1, 12)]
    np.testing.assert_allclose(sum(missed), 1 - level, rtol=1e-6)
    assert (np.diff(missed) < 0).all()
    with pytest.raises(CoraError):
        look_level(1.0, 1)
