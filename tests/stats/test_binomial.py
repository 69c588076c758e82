"""Binomial and Poisson-binomial: exact fractions, every outcome, the former convolution."""

import itertools
from fractions import Fraction
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import CoraError
from cora_nb.stats.binomial import (
    binomial_pmf,
    binomial_tail,
    combinations,
    poisson_binomial_pmf,
    poisson_binomial_tail,
)
from helpers import slow_after

trials = st.integers(1, 60).flatmap(lambda M: st.tuples(st.integers(0, M), st.just(M)))
rates_1_to_8 = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def exact_tail(p: int, M: int, r: Fraction) -> Fraction:
    return sum((comb(M, j) * r**j * (1 - r) ** (M - j) for j in range(p, M + 1)), Fraction(0))


def exact_pmf(rates: list[Fraction]) -> list[Fraction]:
    pmf = [Fraction(1)]
    for r in rates:
        pmf = [(1 - r) * a + r * b for a, b in zip(pmf + [Fraction(0)], [Fraction(0)] + pmf)]
    return pmf


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
@given(st.integers(1, 80), st.floats(0, 1))
def test_tail_falls_in_p_and_starts_at_one(M, r):
    tail = binomial_tail(np.arange(M + 1), M, r)
    assert tail[0] == 1 and np.all(np.diff(tail) <= 1e-15)


@settings(deadline=None)
@given(trials, st.floats(0, 1), st.floats(0, 1))
def test_tail_rises_in_r(pM, r, s):
    low, high = sorted((r, s))
    assert binomial_tail(*pM, low) <= binomial_tail(*pM, high) + 1e-14


@settings(deadline=None)
@given(rates_1_to_8)
def test_pmf_against_every_outcome(rates):
    slow = np.zeros(len(rates) + 1)
    for outcome in itertools.product((0, 1), repeat=len(rates)):
        slow[sum(outcome)] += prod(r if hit else 1 - r for hit, r in zip(outcome, rates))
    np.testing.assert_allclose(poisson_binomial_pmf(rates), slow, rtol=1e-12, atol=1e-300)


@settings(deadline=None)
@given(st.integers(1, 60), st.just(0.0) | st.floats(1e-9, 1))  # SciPy 1.15 overflows near 1e-300
def test_equal_rates_are_binomial(M, r):
    np.testing.assert_allclose(
        poisson_binomial_pmf([r] * M), binomial_pmf(np.arange(M + 1), M, r), rtol=1e-9, atol=1e-300
    )


@settings(deadline=None)
@given(rates_1_to_8, st.randoms())
def test_order_of_trials_does_not_matter(rates, random):
    shuffled = random.sample(rates, len(rates))
    np.testing.assert_allclose(poisson_binomial_pmf(shuffled), poisson_binomial_pmf(rates), rtol=1e-12, atol=1e-300)


@settings(deadline=None)
@given(rates_1_to_8, st.floats(0, 1), st.floats(0, 1))
def test_tail_falls_in_c(rates, c, d):
    low, high = sorted((c, d))
    assert poisson_binomial_tail(rates, 0) == 1
    assert poisson_binomial_tail(rates, high) <= poisson_binomial_tail(rates, low)
    assert poisson_binomial_tail(rates, low, strict=True) <= poisson_binomial_tail(rates, low)
    assert poisson_binomial_tail(rates, 1.0, strict=True) == 0


@pytest.mark.parametrize("n", slow_after(30, range(1, 153)))
def test_thresholds_are_exact(n):
    "The threshold h/n, computed as a float, counts h hits in and does not count them where more is asked for."
    certain = np.zeros(n)
    for h in range(n + 1):
        certain[:h] = 1
        assert poisson_binomial_tail(certain, h / n) == 1 and poisson_binomial_tail(certain, h / n, strict=True) == 0


def convolved(rates):
    "As it was computed before SciPy had it: one trial at a time."
    pmf = np.ones(1)
    for r in rates:
        pmf = np.convolve(pmf, [1 - r, r])
    return pmf


@pytest.mark.parametrize("seed", range(60))
def test_pmf_by_the_former_convolution(seed):
    rng = np.random.default_rng(seed)
    n, power = rng.integers(1, 160), rng.choice([0.3, 1, 3])
    edges = rng.choice([0, 1, 0.5, 1 / 3, 1e-9, 0.2], n)
    for rates in (rng.random(n) ** power, edges, np.full(n, rng.random())):
        np.testing.assert_allclose(poisson_binomial_pmf(rates), convolved(rates), rtol=1e-12, atol=0)


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


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(1, 4), st.randoms())
@settings(deadline=None, max_examples=50)
def test_times_scale_and_order_do_not_matter(rates, m, random):
    plain = poisson_binomial_pmf(rates)
    scaled = poisson_binomial_pmf(rates, [m] * len(rates))
    np.testing.assert_allclose(scaled[::m], plain, rtol=1e-9, atol=1e-300)
    assert scaled.sum() == pytest.approx(1) and np.count_nonzero(scaled) <= len(plain)
    pairs = [(r, 1 + i % 3) for i, r in enumerate(rates)]
    shuffled = random.sample(pairs, len(pairs))
    one, other = (poisson_binomial_pmf(*zip(*some)) for some in (pairs, shuffled))
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-300)


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
