"""Sample sizes: just enough and no more, against simulation and one another."""

import numpy as np
import pytest
from scipy.stats import norm

from cora_nb.core import CoraError
from cora_nb.stats.planning import n_for_difference, n_for_two_shares, n_for_width
from cora_nb.stats.shares import wilson


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
        (lambda: n_for_difference("x", 0.2), "difference must be a number"),
        (lambda: n_for_difference(0.1, 0.2, power=1), "power must be between 0 and 1, got 1"),
        (lambda: n_for_two_shares(0.5, 0.5), "difference must not be 0"),
        (lambda: n_for_two_shares(0.5, 1.5), "second must be a number from 0 to 1, got 1.5"),
    ],
)
def test_faults_are_one_line(call, why):
    with pytest.raises(CoraError) as e:
        call()
    assert why in str(e.value) and "\n" not in str(e.value)
