"""Tests and intervals for the same questions asked twice, and Fieller's interval for a ratio."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest, chi2, norm, t

from cora_nb.core import CoraError
from cora_nb.stats.paired import (
    difference_interval,
    exchange_p,
    mcnemar_p,
    paired_interval,
    ratio_interval,
    stretch_exchanged,
    stuart_maxwell_statistic,
)
from cora_nb.stats.shares import share_interval


# --- a difference


def squares(least=2, most=6, count=st.integers(0, 12)):
    return (
        st.integers(least, most)
        .flatmap(lambda k: st.lists(st.lists(count, min_size=k, max_size=k), min_size=k, max_size=k))
        .map(np.array)
    )


def groups(pairs):
    "Answers that exchanged answers, directly or through others: lists of two or more."
    left, found = set(range(len(pairs))), []
    while left:
        group, new = set(), {left.pop()}
        while new:
            group |= new
            new = {j for i in new for j in range(len(pairs)) if i != j and pairs[i][j] + pairs[j][i]} - group
        left -= group
        if len(group) > 1:
            found.append(sorted(group))
    return found


def stuart_maxwell(pairs):
    "Group by group, one answer dropped from each, and a linear system solved."
    total = df = 0
    for group in groups(pairs):
        kept = group[:-1]
        d = np.array([sum(pairs[i]) - sum(pairs[:, i]) for i in kept], float)
        V = [
            [
                sum(pairs[i]) + sum(pairs[:, i]) - 2 * pairs[i, i] if i == j else -(pairs[i, j] + pairs[j, i])
                for j in kept
            ]
            for i in kept
        ]
        total, df = total + d @ np.linalg.solve(np.array(V, float), d), df + len(kept)
    return total, df


@given(squares(count=st.integers(0, 12) | st.just(0)))
@settings(max_examples=60)
def test_stuart_maxwell_by_dropping_answers(pairs):
    statistic, df = stuart_maxwell_statistic(pairs)
    expected, degrees = stuart_maxwell(pairs)
    assert statistic == pytest.approx(expected, abs=1e-8) and df == degrees
    assert -1e-9 <= statistic <= pairs.sum() - np.trace(pairs) + 1e-7  # so that V is at most 1


@given(st.integers(0, 60), st.integers(0, 60))
def test_two_answers_are_mcnemars(b, c):
    statistic, df = stuart_maxwell_statistic([[3, b], [c, 5]])
    assert (statistic, df) == (pytest.approx((b - c) ** 2 / (b + c)), 1) if b + c else (0, 0)


def test_large_counts():
    "Rounding must not add a degree of freedom, nor lose one."
    pairs = np.diag([10**7] * 4)
    pairs[0, 1], pairs[1, 0], pairs[2, 3] = 10**6, 10**6 - 1, 1
    assert stuart_maxwell_statistic(pairs)[1] == 2
    assert stuart_maxwell_statistic(pairs)[0] == pytest.approx(1 / (2 * 10**6 - 1) + 1)


@given(st.integers(0, 30), st.integers(0, 30))
def test_exact_p_of_two_answers_is_a_binomial_test(b, c):
    expected = binomtest(b, b + c).pvalue if b + c else 1.0
    assert mcnemar_p(b, c) == expected


def score_by_likelihood(b, c, n, delta):
    "Tango's score with its nuisance probability found by maximising the likelihood."

    def minus_log(q):  # P(second only) = q, P(first only) = q + delta
        parts = [(b, q + delta), (c, q), (n - b - c, 1 - 2 * q - delta)]
        return -sum(k * math.log(x) if x > 0 else -1e9 for k, x in parts if k)

    low, high = max(0, -delta), (1 - delta) / 2
    q = minimize_scalar(minus_log, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
    return (b - c - n * delta) / math.sqrt(n * (2 * q + delta * (1 - delta)))


@pytest.mark.parametrize("b, c, n", [(40, 20, 160), (1, 7, 21), (12, 5, 60), (30, 29, 300), (3, 2, 291), (80, 10, 100)])
def test_tangos_interval_by_likelihood(b, c, n):
    low, high, _ = paired_interval(b, c, n)
    z = norm.ppf(0.975)
    assert score_by_likelihood(b, c, n, low) == pytest.approx(z, abs=2e-3)
    assert score_by_likelihood(b, c, n, high) == pytest.approx(-z, abs=2e-3)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 200), st.floats(0.5, 0.999))
def test_tangos_interval_always(b, c, same, level):
    n = b + c + same
    if not n:
        return
    low, high, p = paired_interval(b, c, n, level)
    assert -1 <= low <= (b - c) / n + 1e-9 and (b - c) / n - 1e-9 <= high <= 1 and low < high
    assert paired_interval(c, b, n, level) == pytest.approx((-high, -low, p), abs=1e-7)
    if b + c:  # it holds zero just when the uncorrected McNemar test does not reject
        z2, limit = (b - c) ** 2 / (b + c), chi2.ppf(level, 1)
        if abs(z2 - limit) > 1e-6:
            assert (low <= 0 <= high) == (z2 < limit)


kinds_of_questions = st.lists(
    st.tuples(st.sampled_from([-1.0, -0.5, -0.05, 0.0, 0.05, 0.3, 1.0]), st.integers(1, 40)), min_size=1, max_size=6
)


def score_of(each, delta):
    "The score of a difference, from the formulas and with plain Python."
    n, total, size = len(each), sum(each), sum(map(abs, each))
    s = sum(d * d for d in each) / size
    up, down = (sum(max(sign * d, 0) for d in each) / s for sign in (1, -1))
    x = delta / s
    variance = 0.0
    if abs(x) < 1:
        half = (2 * n - up + down) * x - up - down
        q = (math.sqrt(max(half**2 + 8 * n * down * x * (1 - x), 0)) - half) / (4 * n)
        variance = s * s * max(2 * q + x * (1 - x), 0)
    s3 = (1 + sum(abs(d) ** 3 for d in each)) / (1 + sum(d * d for d in each))
    variance += abs(total) / size * abs(delta - total / n) * max(s3 - s, 0)
    return (total / n - delta) / math.sqrt(variance / n) if variance else math.inf


@given(kinds_of_questions, st.floats(0.5, 0.999))
def test_the_ends_of_a_difference_by_the_formula(found, level):
    each, sizes = map(np.array, zip(*found))
    low, high, p = difference_interval(each, sizes, level)
    singly = np.repeat(each, sizes).tolist()
    if not any(singly):
        assert (low, high) == pytest.approx(paired_interval(0, 0, len(singly), level)[:2]) and p == 1
        return
    seen, z = sum(singly) / len(singly), norm.ppf((1 + level) / 2)
    assert p == pytest.approx(2 * norm.sf(abs(score_of(singly, 0))) if seen else 1.0, abs=1e-9)
    for end, sign in ((low, 1), (high, -1)):
        if abs(end) < 1 and abs(end) > 1e-6 and abs(end - seen) > 1e-6:
            assert sign * score_of(singly, end) == pytest.approx(z, abs=1e-4)


@given(
    kinds_of_questions,
    st.one_of(st.sampled_from([0.9, 0.95, 0.99]), st.floats(0.01, 0.9999)),
    st.one_of(st.just(1.0), st.floats(0.2, 40)),
    st.one_of(st.none(), st.integers(1, 60)),
    st.one_of(st.just(0.0), st.floats(0, 1)),
    st.sampled_from([1.0, 20.0]),
)
def test_a_difference_is_left_out_where_p_says_so(found, level, effect, df, other_p, most):
    each, sizes = map(np.array, zip(*found))
    low, high, p = difference_interval(each * most, sizes, level, effect, df, most, other_p)
    assert p >= other_p and (low > 0 or high < 0) == (p < 1 - level)
    assert -most <= low <= np.average(each, weights=sizes) * most + 1e-9
    assert high <= most and np.average(each, weights=sizes) * most <= high + 1e-9
    turned = difference_interval(-each * most, sizes, level, effect, df, most, other_p)
    assert turned == pytest.approx((-high, -low, p), abs=1e-7 * most)


def test_a_variance_of_few_degrees_of_freedom_is_students():
    each, sizes = np.array([1.0, -1.0, 0.0]), np.array([9, 2, 9])
    low, high, p = difference_interval(each, sizes, 0.95, df=4)
    assert p == pytest.approx(2 * t(4).sf(norm.isf(difference_interval(each, sizes)[2] / 2)))
    as_wide = 2 * norm.cdf(t(4).ppf(0.975)) - 1
    assert (low, high) == pytest.approx(difference_interval(each, sizes, as_wide)[:2])


def test_what_is_not_known_has_no_interval():
    for case in (difference_interval([np.nan, 1.0], [1, 1]), difference_interval([1.0], [3], other_p=np.nan)):
        assert np.isnan(case).all()


@given(st.floats(-1, 1), st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_exchange_p_counts_the_one_seen(difference, exchanged):
    larger = sum(abs(x) >= abs(difference) - 1e-9 for x in exchanged)
    assert exchange_p(difference, np.array(exchanged)) == (1 + larger) / (1 + len(exchanged)) > 0
    assert math.isnan(exchange_p(math.nan, np.array(exchanged)))
    assert math.isnan(exchange_p(difference, np.array([*exchanged, math.nan])))


def test_stretching_does_nothing_to_a_mean():
    "Exchanging n differences has the variance sum(d^2) / n^2, which is what is wanted but for n - 1 in place of n."
    rng = np.random.default_rng(3)
    each = rng.normal(0.1, 1, 400)
    exchanged = (rng.choice([-1, 1], (4000, 400)) * each).mean(axis=1)
    without = (each.sum() - each) / 399
    stretched = stretch_exchanged(exchanged, each.mean(), without, np.ones(400))
    assert stretched.std() / exchanged.std() == pytest.approx(1, abs=0.03)
    wanted = each.var(ddof=1) / 400 + each.mean() ** 2 / 400
    assert np.mean(stretched**2) == pytest.approx(wanted)


@pytest.mark.parametrize(
    "call, why",
    [
        (lambda: paired_interval(-1, 0, 4), "b must be a whole number of 0 or more, got -1"),
        (lambda: paired_interval(0, 0, 0), "n must be a whole number of 1 or more, got 0"),
        (lambda: paired_interval(3, 3, 5), "at most n together, got 3, 3 and 5"),
        (lambda: paired_interval(3, 1, 5, 95), "level must be between 0 and 1, got 95"),
        (lambda: mcnemar_p(1.5, 2), "b must be a whole number of 0 or more, got 1.5"),
        (lambda: mcnemar_p(1, True), "c must be a whole number of 0 or more, got True"),
    ],
)
def test_faults_are_one_line(call, why):
    with pytest.raises(CoraError) as e:
        call()
    assert why in str(e.value) and "\n" not in str(e.value)


# --- a ratio of two means


@settings(max_examples=60, deadline=None)
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
