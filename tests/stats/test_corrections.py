"""Corrections for many tests against loops."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cora_nb.core import CoraError
from cora_nb.stats.corrections import adjust_p


@pytest.mark.slow
@given(st.lists(st.floats(0, 1) | st.just(math.nan), max_size=12))
def test_corrections_by_loops(p):
    made = sorted(x for x in p if not math.isnan(x))
    m = len(made)
    holm, bh = adjust_p(p), adjust_p(p, "bh")
    for x, h, b in zip(p, holm, bh):
        if math.isnan(x):
            assert math.isnan(h) and math.isnan(b)
        else:
            assert h == pytest.approx(min(1, max((m - i) * y for i, y in enumerate(made) if y <= x)))
            assert b == pytest.approx(min(1, min(m / (i + 1) * y for i, y in enumerate(made) if y >= x)))
            assert x <= b * (1 + 1e-12) + 1e-15 and b <= h * (1 + 1e-12) + 1e-15


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_benjamini_hochberg_by_the_former_formula(p):
    order, m = np.argsort(p), len(p)
    steps = np.array(p)[order] * m / np.arange(1, m + 1)
    expected = np.empty(m)
    expected[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1)
    np.testing.assert_allclose(adjust_p(p, "bh"), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    "call, why",
    [
        (lambda: adjust_p([0.1], "none"), "method must be one of holm, bh, got 'none'"),
        (lambda: adjust_p([1.5]), "p must be from 0 to 1, got 1.5"),
        (lambda: adjust_p([0.1, -0.1]), "p must be from 0 to 1, got -0.1"),
        (lambda: adjust_p("x"), "p must be numbers from 0 to 1, got 'x'"),
    ],
)
def test_faults_are_one_line(call, why):
    with pytest.raises(CoraError) as e:
        call()
    assert why in str(e.value) and "\n" not in str(e.value)
