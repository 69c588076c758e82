"""Variance components against pairs counted in plain Python, analysis of variance, a mixed model, and simulation."""

import warnings
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import t

from cora_nb.core import CoraError
from cora_nb.stats.components import component_interval, component_names, component_share, variance_components


def holes(seed, n=7, m=3, r=3, kept=0.7, weighted=True):
    "Right or wrong with holes: values, groups, cells, method, place, weights; every method in many groups."
    rng = np.random.default_rng(seed)
    q, v, _ = np.indices((n, m * 2, r)).reshape(3, -1)
    place = rng.integers(0, 2, (n, m * 2))[q, v]
    y = (rng.random(q.shape) < 0.3 + 0.3 * (q % 2) + 0.1 * place).astype(float)
    some = rng.random(q.shape) < kept
    w = rng.choice([0.5, 1.0, 2.0], q.shape) if weighted else np.ones(q.shape)
    return [a[some] for a in (y, q, v, v // 2, place, w)]


# ---- a second implementation, from the definitions


def by_pairs(y, q, c, levels, w):
    "T, H with the level means of a fit with a dummy for each group, R: from pairs. Levels: a label for each value."
    names, groups = sorted(set(levels)), sorted(set(q))
    X = np.array([[l == name for name in names[1:]] + [g == group for group in groups] for l, g in zip(levels, q)])

    def fit(some):
        root = np.sqrt(w[some])
        return np.linalg.lstsq(X[some] * root[:, None], y[some] * root, rcond=None)[0][: len(names) - 1]

    everything = np.ones(len(y), bool)
    mu = np.concatenate([[0.0], fit(everything)])[[names.index(l) for l in levels]]
    z, pairs = y - mu, list(permutations(range(len(y)), 2))

    def half_difference(of, those, divided=None):
        above = sum(w[i] * w[j] * (of[i] - of[j]) ** 2 / 2 / (divided[q[i]] if divided else 1) for i, j in those)
        below = sum(w[i] * w[j] / (divided[q[i]] if divided else 1) for i, j in those)
        return above, below

    above, below = half_difference(y, [(i, j) for i, j in pairs if q[i] != q[j]])
    T = above / below
    sizes = {group: w[q == group].sum() for group in groups}
    apart = half_difference(z, [(i, j) for i, j in pairs if q[i] == q[j] and c[i] != c[j]], sizes)
    cells, R = {(g, k) for g, k in zip(q, c)}, []
    for g, k in cells:
        own = np.flatnonzero((q == g) & (c == k))
        if len(own) > 1:
            above, below = half_difference(y, list(permutations(own, 2)))
            R.append((above / below, w[own].sum()))
    R = np.average([r for r, _ in R], weights=[s for _, s in R])

    # what fitting takes by chance: refits without each group, of which each part of b is the own
    W = sum(sizes.values())
    inner = np.array([[l == name for name in names] for l in levels], float)
    b, A = {}, {}
    for g in groups:
        own = q == g
        mean = np.average(inner[own], axis=0, weights=w[own])
        b[g] = ((w[own] * y[own])[:, None] * (inner[own] - mean)).sum(axis=0)
        A[g] = ((w[own])[:, None, None] * inner[own][:, :, None] * (inner[own] - mean)[:, None, :]).sum(axis=0)
    inverse = np.linalg.pinv(sum(A.values()))
    noise = np.zeros((len(names), len(names)))
    for g in groups:
        without = np.concatenate([[0.0], fit(q != g)])
        noise += np.outer(b[g] - A[g] @ without, b[g])
    H = (apart[0] + np.trace(inverse @ noise)) / apart[1]
    means = np.concatenate([[0.0], fit(everything)])
    share = np.array([w[[l == name for l in levels]].sum() for name in names]) / W
    covariance = inverse @ noise @ inverse

    def explained(partition):
        "The variance of the level means averaged within the parts, without noise."
        kinds, B = [partition(name) for name in names], -np.outer(share, share)
        for kind in set(kinds):
            own = np.array([k == kind for k in kinds]) * share
            B += np.outer(own, own) / own.sum()
        return means @ B @ means - np.trace(B @ covariance)

    return T, H, R, explained


@pytest.mark.parametrize("seed", range(6))
def test_pairs_counted_one_by_one(seed):
    y, q, c, method, place, w = holes(seed)
    found = variance_components(y, q, c, {"method": method, "place": place}, w).values
    levels = list(zip(method.tolist(), place.tolist()))
    T, H, R, explained = by_pairs(y, q, c * 2 + place, levels, w)  # a cell has one place
    first, both = explained(lambda name: name[0]), explained(lambda name: name)
    expected = {"total": T, "repetition": R, "cell + repetition": H, "cell": H - R, "method": first}
    expected |= {"place": both - first, "group": T - both - H, "within": both + H, "group + cell": T - both - R}
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-9), name


# ---- a mixed model


def reml(table):
    "The components of a linear mixed model with crossed effects, by statsmodels."
    formula = pytest.importorskip("statsmodels.formula.api")
    parts = {"group": "0 + C(q)", "method": "0 + C(m)", "cell": "0 + C(cell)"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of statsmodels, about its own optimisers
        model = formula.mixedlm("y ~ 1", table, groups=np.ones(len(table)), vc_formula=parts)
        fit = model.fit(reml=True, method=["powell", "lbfgs"])
    return dict(zip(model.exog_vc.names, fit.vcomp)) | {"repetition": fit.scale}


# ---- properties


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_parts_add_up_and_names_do_not_matter(seed, weighted):
    y, q, c, method, place, w = holes(seed, weighted=weighted)
    found = variance_components(y, q, c, {"method": method, "place": place}, w)
    five = [found.values[name] for name in component_names(found)]
    assert sum(five) == pytest.approx(found.values["total"], abs=1e-12)
    whole = sum(found.influence[name] for name in component_names(found))
    np.testing.assert_allclose(whole, found.influence["total"], atol=1e-12)
    assert found.values["within"] == pytest.approx(found.values["total"] - found.values["group"], abs=1e-12)

    # 1e-6: a level that one group alone has leaves a residual of rounding errors
    order = np.random.default_rng(seed).permutation(len(y))
    names = np.array([f"question {9 - g}" for g in q])
    same = variance_components(y[order], names[order], c[order], {"m": -method[order], "p": place[order]}, 3 * w[order])
    assert list(same.values.values()) == pytest.approx(list(found.values.values()), abs=1e-6)
    wrong = variance_components(1 - y, q, c, {"method": method, "place": place}, w)
    assert list(wrong.values.values()) == pytest.approx(list(found.values.values()), abs=1e-6)
    half = variance_components(y / 2, q, c, {"method": method, "place": place}, w)
    assert [4 * v for v in half.values.values()] == pytest.approx(list(found.values.values()), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 0.8, 0.95]))
def test_intervals_enclose_the_estimate_and_shares_add_up(seed, level):
    y, q, c, method, place, w = holes(seed)
    found = variance_components(y, q, c, {"method": method, "place": place}, w)
    for name in found.values:
        value, low, high = component_interval(found, name, level)
        assert low <= max(value, 0.0 if name in found.noise else value) + 1e-12 and value <= high + 1e-12, name
        assert high > low or found.values["total"] < 1e-12, name
        _, lower, higher = component_interval(found, name, (1 + level) / 2)
        assert lower <= low + 1e-6 and high <= higher + 1e-6, name
    for of in ("total", "within"):
        shares = [component_share(found, name, of, level) for name in component_names(found, of)]
        assert sum(share for share, *_ in shares) == pytest.approx(1)
        assert all(0 <= low <= high <= 1 for _, low, high in shares)


def test_influence_is_what_leaving_a_group_out_does():
    y, q, c, method, place, w = holes(3, n=60)
    effects = {"method": method, "place": place}
    found = variance_components(y, q, c, effects, w)
    without = {name: [] for name in found.values}
    for g in range(60):
        keep = q != g
        less = variance_components(y[keep], q[keep], c[keep], {n: e[keep] for n, e in effects.items()}, w[keep])
        for name, value in less.values.items():
            without[name].append(value)
    for name, values in without.items():
        jackknife = 59 / 60 * ((np.array(values) - np.mean(values)) ** 2).sum()
        linear = 60 / 59 * (found.influence[name] ** 2).sum()
        small = 2 * found.second.get(name, 0.0)
        assert linear == pytest.approx(jackknife, rel=0.15, abs=small), name


def test_limits_of_an_effect_are_a_noncentral_chi_squared_inverted():
    from scipy.stats import ncx2

    y, q, c, method, *_ = holes(4, n=30)
    y = np.clip(y + (method == 0), 0, 1)
    found = variance_components(y, q, c, {"method": method})
    value, low, high = component_interval(found, "method", 0.9)
    variance = 30 / 29 * (found.influence["method"] ** 2).sum() - found.second["method"]
    scale = variance / (2 * found.noise["method"] + 4 * value)
    k, seen = found.noise["method"] / scale, (value + found.noise["method"]) / scale
    assert 0 < low < value < high
    assert ncx2.cdf(seen, k, low / scale) == pytest.approx(0.95, abs=1e-6)
    assert ncx2.cdf(seen, k, high / scale) == pytest.approx(0.05, abs=1e-6)


def test_the_total_of_right_and_wrong_has_the_limits_of_the_mean():
    "Without cells and repetitions that matter, T is p(1-p): its interval is the image of p's."

    rng = np.random.default_rng(1)
    y = np.repeat((rng.random(50) < 0.55).astype(float), 4)
    found = variance_components(y, np.repeat(np.arange(50), 4), np.tile([0, 0, 1, 1], 50))
    p, half = y.mean(), t.ppf(0.975, 49) * (y[::4].var(ddof=1) / 50) ** 0.5
    image = [x * (1 - x) for x in (p - half, p, p + half)]
    value, low, high = component_interval(found, "total")
    assert low == pytest.approx(min(image), abs=1e-6)
    assert high == pytest.approx(max(value, 0.25 if p - half < 0.5 < p + half else max(image)), abs=1e-6)


# ---- edges


def test_what_cannot_be_told_apart_is_not_guessed():
    y, q, v = np.array([1, 0, 1, 1, 0, 0.0]), np.repeat([0, 1, 2], 2), np.tile([0, 1], 3)
    once = variance_components(y, q, v, {"method": v})
    assert np.isnan([once.values["cell"], once.values["repetition"]]).all() and once.n["repetition"] == 0
    assert component_names(once) == ["method", "group", "cell + repetition"]
    assert np.isnan(component_interval(once, "cell")).all() and np.isnan(component_share(once, "cell")).all()

    single = variance_components(y, q, 0 * v, {"method": 0 * v})
    assert component_names(single) == ["method", "group + cell", "repetition"]
    assert np.isnan([single.values[name] for name in ("group", "cell", "cell + repetition", "within")]).all()

    own = variance_components(y, q, v, {"method": v, "class": q})  # never changes within a group
    assert np.isnan(own.values["class"]) and own.values["method"] == once.values["method"]
    assert component_names(own) == component_names(once)
    apart = variance_components(y, q, v, {"class": q, "method": v})  # nor does a method within a class
    assert np.isnan([apart.values["class"], apart.values["method"]]).all()


def test_nothing_differs():
    q, v = np.repeat(np.arange(30), 4), np.tile([0, 0, 1, 1], 30)
    right = variance_components(np.ones(120), q, v, {"method": v})
    assert all(value == pytest.approx(0, abs=1e-12) for value in right.values.values())
    for name in ("method", "cell", "repetition", "total"):  # seen in none of thirty groups
        value, low, high = component_interval(right, name)
        assert low == pytest.approx(0) and 0.02 < high < 0.13, name
    assert np.isnan(component_share(right, "group")).all()

    steady = variance_components(np.repeat(np.arange(30) < 15, 4).astype(float), q, v, {"method": v})
    assert steady.values["group"] == pytest.approx(steady.values["total"]) and steady.values["total"] > 0.25
    assert component_share(steady, "group")[0] == pytest.approx(1)
    share, low, high = component_share(steady, "repetition")
    assert share == low == 0 and high > 0.1
    assert component_interval(variance_components(np.ones(120), q, v, {"method": 0 * v}), "method") == (0, 0, 0)


def test_a_level_of_one_group_alone():
    y, q, c, method, place, w = holes(5, n=20)
    place = np.where((q == 3) & (c == 1), 9, place)
    found = variance_components(y, q, c, {"method": method, "place": place}, w)
    assert all(np.isfinite(component_interval(found, name)).all() for name in found.values)
    assert abs(found.values["place"]) < 0.1


@pytest.mark.parametrize(
    "change, said",
    [
        ({"values": [1, 0, 2, 0]}, "values must be a number from 0 to 1, got 2"),
        ({"values": [1, 0, float("nan"), 0]}, "values must be a number from 0 to 1, got nan"),
        ({"groups": [1, 1, 1, 1]}, "variance components need at least two groups, got 1"),
        ({"groups": [1, 1, None, 2]}, "groups is missing for value number 3"),
        ({"groups": [1, 1, 2]}, "groups must have one label for each of the 4 values, got 3"),
        ({"effects": {"method": [1, 1, 2, 3]}, "cells": [1, 1, 1, 1]}, "value number 4 has another level of an effect"),
        ({"weights": [1, 1, 1, 0]}, "values need a weight above 0 each"),
    ],
)
def test_bad_input_is_named(change, said):
    with pytest.raises(CoraError, match=said.replace("(", r"\(")) as e:
        variance_components(**{"values": [1, 0, 1, 0], "groups": [1, 1, 2, 2], "cells": [1, 2, 1, 2]} | change)
    assert "\n" not in str(e.value)


def test_bad_names_and_levels():
    found = variance_components([1, 0, 1, 0], [1, 1, 2, 2], [1, 2, 1, 2])
    with pytest.raises(CoraError, match="name must be one of group, cell"):
        component_interval(found, "question")
    with pytest.raises(CoraError, match="of must be one of total, within"):
        component_share(found, "group", "everything")
    with pytest.raises(CoraError, match="level must be between 0 and 1"):
        component_interval(found, "group", 95)


# ---- simulation


def respondents():
    "Four kinds: the probability of being right in 300 x 8 cells, four methods, and the truth of the components."
    g = np.repeat([0.2, 0.25, 0.5, 1 / 3], 2)  # chance of guessing, two variants of each of four methods

    def knower(rng, n):
        return np.where(rng.random((n, 1)) < 0.6, 1.0, g)

    lost, apart = 1 - g, 1 - np.eye(8)
    shared = 0.24 * (np.outer(lost, lost) * apart).sum() / 56
    truth_of_knower = {
        "repetition": 0.4 * (g * (1 - g)).mean(),
        "method": 0.16 * g.var(),
        "group": shared,
        "cell": 0.24 * (lost**2).mean() - shared,
    }

    def guesser(rng, n):
        return np.broadcast_to(g, (n, 8))

    def slipper(rng, n):  # knows 70%, but not in 1 of 5 variants; no luck
        return ((rng.random((n, 1)) < 0.7) & (rng.random((n, 8)) < 0.8)).astype(float)

    def sampled(rng, n):  # right with probability 0.9 or 0.3 in each variant, more often 0.9 where it knows
        return np.where(rng.random((n, 8)) < np.where(rng.random((n, 1)) < 0.5, 0.8, 0.2), 0.9, 0.3)

    return {
        "knows 60%, guesses the rest": (knower, truth_of_knower),
        "guesses": (guesser, {"repetition": (g * (1 - g)).mean(), "method": g.var(), "group": 0.0, "cell": 0.0}),
        "slips": (slipper, {"repetition": 0.0, "method": 0.0, "group": 0.21 * 0.64, "cell": 0.7 * 0.16}),
        "sampled": (sampled, {"repetition": 0.15, "method": 0.0, "group": 0.36 * 0.09, "cell": 0.36 * 0.16}),
    }


@pytest.mark.parametrize("name", respondents())
def test_known_truth_is_recovered(name):
    """60 benchmarks of 100 questions: intervals cover, and there is no bias.

    At 95%, 49 or fewer of 60 happens once in 4,000 times. The study has 1,000 benchmarks of each.
    """
    draw, truth = respondents()[name]
    q, v, _ = np.indices((100, 8, 2)).reshape(3, -1)
    rng, found = np.random.default_rng(7), {component: [] for component in truth}
    for _ in range(60):
        y = rng.random((100, 8, 2)) < draw(rng, 100)[..., None]
        parts = variance_components(y.ravel().astype(float), q, v, {"method": v // 2})
        for component in truth:
            found[component].append(component_interval(parts, component))
    for component, rows in found.items():
        value, low, high = np.array(rows).T
        assert ((low <= truth[component] + 1e-12) & (truth[component] - 1e-12 <= high)).sum() >= 50, component
        assert abs(value.mean() - truth[component]) <= 4 * value.std() / 60**0.5 + 1e-12, component
