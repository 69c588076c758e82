"""Finite populations: the order, Wilson's interval and its coverage, moves, and the price of looks."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import hypergeom

from cora_nb.core import CoraError
from cora_nb.stats.finite import finite_wilson, look_level, moved_interval, random_order, squared_quantile
from cora_nb.stats.shares import wilson

IDS = st.lists(st.text(max_size=5), unique=True, max_size=20)


@given(IDS, st.integers(0, 5), st.randoms())
def test_the_order_depends_on_the_seed_and_the_ids_only(ids, seed, shuffler):
    order = [ids[i] for i in random_order(ids, seed)]
    again = ids.copy()
    shuffler.shuffle(again)
    assert sorted(order) == sorted(ids) and order == [again[i] for i in random_order(again, seed)]


def test_the_order_is_random():
    "Each of 50 ids stands in the first half about equally often."
    ids = [f"math-0-{i}" for i in range(50)]
    first = np.zeros(50)
    for seed in range(400):
        first[random_order(ids, seed)[:25]] += 1
    assert abs(first - 200).max() < 4.5 * 10  # standard deviations of a count of 400 coins


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
