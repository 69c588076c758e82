"""Numbers of questions that suffice, and surveys in phases: counts against a loop, no bias, plans that are kept."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import norm

from cora_nb.core import CoraError
from cora_nb.stats.planning import (
    Aim,
    PRIOR,
    PhaseCounts,
    PhaseDesign,
    assumed_hazards,
    _consistent_share,
    count_phases,
    group_edges,
    group_hazards,
    n_for_difference,
    n_for_two_shares,
    n_for_width,
    phase_estimates,
    plan_phases,
)
from cora_nb.stats.shares import squared_quantile, wilson


# --- a share and a difference


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("half", [0.01, 0.05, 0.2])
def test_wilson_is_just_narrow_enough(share, half, level):
    n, z2 = n_for_width(half, share, level), norm.ppf((1 + level) / 2) ** 2
    width = lambda n: np.sqrt(z2 * share * (1 - share) / n + (z2 / n) ** 2 / 4) / (1 + z2 / n)
    assert width(n) <= half * (1 + 1e-9) and (n == 1 or width(n - 1) > half * (1 - 1e-9))
    if 0.05 < share < 0.95:  # nothing is cut off at 0 or 1
        low, high = wilson(share, n, z2)
        assert (high - low) / 2 == pytest.approx(width(n))


def test_power_is_what_was_planned():
    rng, z = np.random.default_rng(1), norm.ppf(0.975)
    n = n_for_difference(0.1, 0.3 - 0.01, power=0.9)
    counts = rng.multinomial(n, [0.2, 0.1, 0.7], size=4000)
    seen = np.abs(counts[:, 0] - counts[:, 1]) / np.sqrt(counts[:, 0] + counts[:, 1])
    assert np.mean(seen > z) == pytest.approx(0.9, abs=0.02)
    n = n_for_two_shares(0.6, 0.7)
    a, b = rng.binomial(n, 0.6, 4000) / n, rng.binomial(n, 0.7, 4000) / n
    pooled = (a + b) / 2
    assert np.mean(np.abs(a - b) / np.sqrt(2 * pooled * (1 - pooled) / n) > z) == pytest.approx(0.8, abs=0.03)


def test_limits():
    assert n_for_difference(1, 0) == 4 and n_for_difference(-0.05, 0.1975) == n_for_difference(0.05, 0.1975)
    assert n_for_two_shares(0.6, 0.65) == n_for_two_shares(0.65, 0.6) == n_for_two_shares(0.4, 0.35) == 1471


@pytest.mark.parametrize(
    "call, why",
    [
        (lambda: n_for_width(5, 0.5), "half_width must be between 0 and 0.5, got 5"),
        (lambda: n_for_width(0.05, None), "share must be a number from 0 to 1, got None"),
        (lambda: n_for_width(0.05, 0.5, level=95), "level must be between 0 and 1, got 95"),
        (lambda: n_for_difference(0, 0.2), "difference must not be 0"),
        (lambda: n_for_difference(0.1, 0.2, power=1), "power must be between 0 and 1, got 1"),
        (lambda: n_for_two_shares(0.5, 1.5), "second must be a number from 0 to 1, got 1.5"),
    ],
)
def test_faults_are_one_line(call, why):
    with pytest.raises(CoraError) as e:
        call()
    assert why in str(e.value) and "\n" not in str(e.value)


# --- surveys in phases

Z2 = squared_quantile(0.95)


def world(seed, N=400, K=8):
    rng = np.random.default_rng(seed)
    return rng.random((N, K)) < np.where(rng.random(N) < 0.5, 0.99, rng.beta(4, 1.5, N))[:, None]


def follow(outcomes, pilot, originals, profile):
    "What a survey with these sizes sees of outcomes in their order: the arguments of `count_phases`."
    N, K = outcomes.shape
    first, made, wrong = np.full(N, -1), np.zeros(N, int), np.zeros(N, bool)
    for i in range(N):
        depth = max([end for end, n in profile if i < n], default=0) if i >= pilot else K - 1
        if i < originals:
            first[i] = outcomes[i, 0]
        if first[i] == 1:
            for k in range(1, depth + 1):
                made[i], wrong[i] = k, not outcomes[i, k]
                if wrong[i]:
                    break
    return first, made, wrong, np.full(N, K - 1), PhaseDesign(pilot, originals, profile)


SIZES = st.lists(st.integers(12, 40), min_size=4, max_size=4).map(lambda n: sorted(n, reverse=True))


@given(st.integers(0, 1000), SIZES)
@settings(max_examples=40)
def test_the_counts_are_those_of_a_loop(seed, sizes):
    outcomes, pilot = world(seed, 40), 10
    originals, *rest = sizes
    profile = list(zip((1, 3, 7), rest))
    found = count_phases(*follow(outcomes, pilot, originals, profile))
    right = outcomes[:, 0]
    assert (found.asked, found.right) == (originals, right[:originals].sum())
    assert found.pilot_right == right[:pilot].sum() and found.pilot_always == outcomes[:pilot].all(axis=1).sum()
    for j, (start, (end, n)) in enumerate(zip((0, 1, 3), profile)):
        part = outcomes[pilot:n]
        assert found.at_risk[j] == part[:, : start + 1].all(axis=1).sum()
        assert found.survived[j] == part[:, : end + 1].all(axis=1).sum()


def test_a_question_that_was_not_followed_is_refused():
    first, made, wrong, *rest = follow(world(0), 20, 100, [(2, 80), (7, 50)])
    stopped = np.flatnonzero((first == 1) & ~wrong & (made == 7))[-1]
    made[stopped] = 5
    with pytest.raises(CoraError, match="1 questions were not followed"):
        count_phases(first, made, wrong, *rest)
    first[3] = -1
    with pytest.raises(CoraError, match="1 of 100 first attempts were not made"):
        count_phases(first, made, wrong, *rest)


def test_no_bias_and_the_right_spread_over_random_orders():
    "With sizes that do not depend on the replies, the mean error is nil, and z-scores have a spread of one."
    outcomes, rng, errors, scaled = world(1), np.random.default_rng(0), [], []
    truth = outcomes.all(axis=1).sum() / outcomes[:, 0].sum()
    for _ in range(400):
        counts = count_phases(*follow(outcomes[rng.permutation(400)], 40, 250, [(1, 200), (3, 160), (7, 120)]))
        share, worth = _consistent_share(counts)
        errors.append(share - truth)
        scaled.append((share - truth) / np.sqrt(truth * (1 - truth) / worth))
    assert abs(np.mean(errors)) < 3.5 * np.std(errors) / 20
    assert 0.9 < np.std(scaled) < 1.1


EMPTY = PhaseCounts(1000, 150, 60, 40, 10, (20, 2, 0), (2, 2, 0), (False,) * 3)


def test_an_empty_group_is_not_survived():
    "Survivors that were not followed any further could all fail, so the main part says nothing; the pilot does."
    assert _consistent_share(EMPTY) == _consistent_share(replace(EMPTY, at_risk=(), survived=(), everyone=()))
    nobody = replace(EMPTY, pilot_right=0, pilot_always=0)
    assert _consistent_share(nobody) == (0.0, 0.0)
    m = 60 / 150
    assert phase_estimates(nobody, Z2)["BMCA(1.0)"][1:] == pytest.approx((0, m), abs=0.1)
    assert phase_estimates(nobody, Z2)["BMCA(1.0)"][2] >= m


def test_a_group_that_nobody_can_enter_is_needed_for_nothing():
    "Without a survivor the share is 0 whatever follows, and as sure as the groups before make it."
    none = replace(EMPTY, pilot_right=0, pilot_always=0, at_risk=(20, 0, 0), survived=(0, 0, 0))
    share, worth = _consistent_share(none)
    assert share == 0 and 10 < worth < 50


def test_the_interval_holds_where_a_group_is_empty():
    "Few survive the first group, and the second is followed on few questions: in one order of five nobody enters it."
    rng, N, held = np.random.default_rng(0), 300, []
    outcomes = rng.random((N, 4)) < np.where(rng.random(N) < 0.05, 0.97, 0.3)[:, None]
    truth = outcomes.all(axis=1).mean()
    for _ in range(500):
        counts = count_phases(*follow(outcomes[rng.permutation(N)], 20, 160, [(1, 140), (3, 30)]))
        if counts.at_risk[1] == 0 < counts.survived[0]:
            _, low, high = phase_estimates(counts, Z2, ["BMCA(1.0)"])["BMCA(1.0)"]
            held.append(low <= truth <= high)
    assert len(held) > 80 and np.mean(held) > 0.93, (len(held), np.mean(held))  # 0.21 if the group counted as survived


def test_everything_asked_is_exact():
    outcomes = world(2)
    m, b = outcomes[:, 0].mean(), outcomes.all(axis=1).mean()
    counts = count_phases(*follow(outcomes, 0, 400, [(7, 400)]))
    for name, value in {"MCQA": m, "BMCA(1.0)": b, "CI": 1 - m + b, "CoRA": m * (1 - m + b)}.items():
        np.testing.assert_allclose(phase_estimates(counts, Z2)[name], [value] * 3, atol=1e-12)


@given(st.integers(1, 130))
def test_groups_grow_and_end_with_the_last_attempt(attempts):
    edges = (0, *group_edges(attempts))
    widths = np.diff(edges)
    assert edges[-1] == attempts and (widths > 0).all() and (np.diff(widths)[:-1] >= 0).all() and len(edges) < 12


def planned(plan, pilot, counts, hazards, names):
    "The half widths that the sizes of a plan promise."
    m = (counts.right + 0.5) / (counts.asked + 1)
    reach = m * np.cumprod((1, *hazards.survive))
    main = np.array(plan.sizes) - pilot
    risk = tuple(main * reach[:-1]) if main[0] > 0 else ()
    held = tuple(np.multiply(risk, hazards.survive)) if risk else ()
    everyone = tuple(n >= counts.population for n in plan.sizes) if risk else ()
    told = replace(
        counts, asked=plan.originals, right=m * plan.originals, at_risk=risk, survived=held, everyone=everyone
    )
    return {name: (high - low) / 2 for name, (_, low, high) in phase_estimates(told, Z2, names).items()}


CASES = [(0.35, 0.03), (0.78, 0.21), (0.93, 0.49), (0.98, 0.8), (0.5, 0.95)]


@pytest.mark.parametrize(("m", "q"), CASES)
@pytest.mark.parametrize("N", [1273, 14_042])
@pytest.mark.parametrize("names", [["CoRA"], ["MCQA", "BMCA(1.0)"]])
def test_a_plan_promises_what_was_wanted_and_no_more(m, q, N, names):
    pilot, hazards = 120, assumed_hazards(q, 19)
    counts = PhaseCounts(N, pilot, round(m * pilot), round(m * pilot), round(q * m * pilot))
    plan = plan_phases(counts, hazards, Aim(names, 0.02, Z2), pilot)
    assert N >= plan.originals >= plan.sizes[0] and (np.diff(plan.sizes) <= 0).all() and plan.sizes[-1] >= pilot
    assert plan.calls <= plan.everything * (1 + 1e-9)
    found = planned(plan, pilot, counts, hazards, names)
    assert max(found.values()) <= 0.02 + 1e-9
    if len(names) == 1 and plan.calls < plan.everything and plan.sizes[-1] > pilot + 50:
        assert max(found.values()) > 0.0195


def test_no_neighbouring_plan_is_cheaper():
    "The sizes are moved at random and then scaled until they promise the same: hardly any calls are saved."
    pilot, hazards, rng = 120, assumed_hazards(0.49, 19), np.random.default_rng(0)
    counts = PhaseCounts(14_042, pilot, 112, 112, 55)
    plan = plan_phases(counts, hazards, Aim(["CoRA"], 0.02, Z2), pilot)
    m = 112.5 / 121
    w = np.array([1, *(m * np.cumprod((1, *hazards.survive))[:-1] * hazards.calls)])
    best = np.array([plan.originals, *plan.sizes])
    for _ in range(40):
        moved = np.minimum.accumulate(best * rng.uniform(0.7, 1.3, len(best)))
        low, high = 0.5, 2.0
        while high - low > 1e-4:
            n = np.maximum(pilot + 1, moved * (low + high) / 2)
            other = replace(plan, originals=n[0], sizes=tuple(n[1:]))
            wide = planned(other, pilot, counts, hazards, ["CoRA"])["CoRA"] > 0.02
            low, high = ((low + high) / 2, high) if wide else (low, (low + high) / 2)
        assert n @ w > 0.98 * plan.calls


def test_sizes_never_fall_below_what_was_asked():
    counts, hazards = PhaseCounts(5000, 600, 480, 96, 48), assumed_hazards(0.5, 7)
    least = [600, 500, 400, 300, 300][: 1 + len(hazards.edges)]
    plan = plan_phases(counts, hazards, Aim(["CoRA"], 0.2, Z2), 120, least)
    assert [plan.originals, *plan.sizes] == least


# ---- lines whose loss nothing else would notice


def test_the_main_part_is_worth_no_more_questions_than_entered_it():
    "Two groups with hardly a failure each: the odds of the product would make 30 questions worth more than 30."
    counts = PhaseCounts(10**9, 10**8, 10**8 // 2, 0, 0, (30, 500, 500), (29, 250, 250), (False,) * 3)
    odds, plain, smooth = 0.0, 0.0, 1.0
    for at_risk, survived in zip(counts.at_risk, counts.survived):
        s = (survived + 0.5) / (at_risk + 0.5 + 0.5 / 3)
        smooth, plain = smooth * s, plain + (1 - s) / (s * at_risk)
    odds = (1 - smooth) / smooth
    assert odds / plain > 100, "the cap would not be reached"
    share, worth = _consistent_share(replace(counts, pilot_right=20, pilot_always=10))
    product = 29 / 30 / 4
    assert share == pytest.approx((20 * 0.5 + 30 * product) / 50), "the pilot of 20 and the main part of 30"


def test_cora_is_greatest_between_the_ends_of_the_interval_of_m():
    "m (1 - m + m q) with q = 0.1 rises to m = 1/1.8 and falls after it; both ends are lower."
    counts = PhaseCounts(10**6, 45, 25, 25, 2)
    q = _consistent_share(counts)[0]
    (value, _, high), (_, few, many) = (phase_estimates(counts, Z2)[name] for name in ("CoRA", "MCQA"))
    top = 1 / (2 * (1 - q))
    assert few < top < many
    best = max(m * (1 - m + m * q) for m in np.linspace(few, many, 20_001))
    none = wilson(q, _consistent_share(counts)[1], Z2)
    up = max(0, best - value), max(m_q * 25 / 45 for m_q in [25 / 45 * (float(end) - q) for end in none])
    assert high == pytest.approx(value + np.hypot(*up), abs=1e-7)
    ends = max(m * (1 - m + m * q) for m in (few, many))
    assert best - max(ends, value) > 1e-6 or top == pytest.approx(25 / 45, abs=0.01)


@pytest.mark.parametrize(("depth", "short"), [(7, 1), (6, 1), (3, 1)])
def test_a_question_that_stopped_one_attempt_early_is_refused(depth, short):
    "In the main part and in the pilot."
    for rank in (0, 15):
        first, made, wrong = np.ones(30, int), np.full(30, depth), np.zeros(30, bool)
        given = (wrong, np.full(30, depth), PhaseDesign(10, 30, [(depth, 30)]))
        assert count_phases(first, made, *given).survived == (20,)
        made[rank] -= short
        with pytest.raises(CoraError, match="^1 questions were not followed"):
            count_phases(first, made, *given)


def test_hazards_add_one_to_the_questions_at_risk():
    "The fitted rate of one attempt is (failed + 0.5) / (at risk + 1): without a question, one half."
    for at_risk, failed in ((10, 0), (10, 4), (1, 0)):
        usual = min(0.9, (failed + 0.5) / (at_risk + 1))
        added = PRIOR / usual
        expected = (at_risk - failed + (1 - usual) * added) / (at_risk + added)
        assert group_hazards(np.array([at_risk]), np.array([failed])).survive == pytest.approx((expected,))


def test_a_plan_expects_half_a_right_reply_more_of_one_more_question():
    "m is (right + 0.5) / (asked + 1), and so 1 or 0 is never taken for certain: the calls tell."
    hazards = assumed_hazards(0.5, 3)
    for right in (0, 10, 20):
        plan = plan_phases(PhaseCounts(1000, 20, right, right, right // 2), hazards, Aim(["CoRA"], 0.05, Z2), 20)
        m = (right + 0.5) / 21
        per_question = 1 + m * (np.cumprod((1, *hazards.survive))[:-1] * hazards.calls).sum()
        assert plan.everything == pytest.approx(1000 * per_question)
