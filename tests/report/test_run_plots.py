"""Figures of runs: what the table says is drawn, no two labels overlap, and a wrong table gets one line."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from helpers import no_overlap
from hypothesis import given, settings, strategies as st

from cora_nb.core import CoraError
from cora_nb.metrics.calibration import binned, calibration_errors, reliability
from cora_nb.metrics.consistency import label_sequences
from cora_nb.report.run_plots import _spread, plot_consistency, plot_items, plot_reliability

matplotlib.use("Agg")


# --- methods and questions

ITEMS = pd.DataFrame({"difficulty": [0.2, 0.5], "discrimination": [0.1, 0.2]}, index=["x", "y"])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_axes_are_taken_and_given_back():
    ax = plt.subplots()[1]
    assert plot_items(ITEMS, ax=ax) is ax
    assert len(plt.get_fignums()) == 1


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(1, 60), st.integers(0, 20), st.integers(0, 99))
def test_items_are_points_and_no_name_lies_on_another(n, name, seed):
    rng = np.random.default_rng(seed)
    items = pd.DataFrame(
        {
            "subject": "s",
            "difficulty": rng.random(n),
            "discrimination": rng.uniform(-1, 1, n) if seed % 2 else 0.9,
            "disagreement": rng.random(n) / 4,
        },
        index=[f"question {i}" for i in range(n)],
    )
    ax = plot_items(items, name=name)
    np.testing.assert_allclose(ax.collections[0].get_offsets(), items[["difficulty", "discrimination"]])
    assert {t.get_text() for t in ax.texts} == set(items.nlargest(min(name, 20), "disagreement").index)
    if ax.texts:
        no_overlap(ax.texts)
    for text in ax.texts:
        assert tuple(text.xy) == tuple(items.loc[text.get_text(), ["difficulty", "discrimination"]])
    plt.close("all")


@given(st.lists(st.floats(0, 1), max_size=20))
def test_names_keep_their_distance_and_their_order(wanted):
    placed = _spread(sorted(wanted, reverse=True))
    assert len(placed) == len(wanted)
    gap = min(0.065, 1 / max(len(wanted) - 1, 1))
    assert all(a - b >= gap - 1e-9 for a, b in zip(placed, placed[1:])) and all(-1e-9 <= p <= 1 + 1e-9 for p in placed)


def test_items_without_disagreement_name_the_least_telling():
    items = pd.DataFrame({"difficulty": [0.2, 0.5, 0.7], "discrimination": [0.9, -0.5, np.nan]}, index=["x", "y", "z"])
    ax = plot_items(items, name=1)
    assert [t.get_text() for t in ax.texts] == ["y"] and len(ax.collections[0].get_offsets()) == 2


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: plot_items(None), "the items: a table"),
        (lambda: plot_items(ITEMS.drop(columns="difficulty")), "the items: there is no column difficulty"),
        (lambda: plot_items(ITEMS, name=-1), "name must be a whole number of 0 or more, got -1"),
        (lambda: plot_items(ITEMS, name="x"), "name must be a number or a list of ids, got 'x'"),
        (lambda: plot_items(ITEMS, name=["z"]), "there is no question 'z'"),
        (lambda: plot_items(pd.concat([ITEMS, ITEMS])), "two rows for x"),
    ],
)
def test_mistakes_get_one_line(call, says):
    with pytest.raises(CoraError) as told:
        call()
    assert says in str(told.value) and "\n" not in str(told.value)


# --- accuracy against consistency


def test_a_circle_for_each_pair_of_values():
    table = label_sequences(["AAAAA", "AAAAA", "BBBBB", "AAAAB", "A"], "A")  # the last has no K
    ax = plot_consistency(table)
    (circles,) = ax.collections
    assert sorted(map(tuple, circles.get_offsets().round(6).tolist())) == [(0.8, 0.8), (1.0, 0.0), (1.0, 1.0)]
    assert [text.get_text() for text in ax.texts] == ["2"]
    assert plot_consistency(table, ax) is ax


def test_without_a_known_k_there_is_nothing_to_draw():
    with pytest.raises(CoraError, match="no K is known"):
        plot_consistency(label_sequences(["A"], "A"))


# --- accuracy against confidence


def test_columns_are_shares_and_points_lie_at_confidence_and_accuracy():
    ax = plot_reliability(reliability(binned([0.1, 0.9, 1.0], [0, 1, 1], 5)))
    assert len(ax.patches) == 2 and [t.get_text() for t in ax.texts] == ["1", "2"]
    assert [bar.get_x() for bar in ax.patches] == [0, 0.8]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.2, 0.2])
    assert [bar.get_height() for bar in ax.patches] == pytest.approx([1 / 3, 2 / 3])
    plot_reliability(reliability(binned([0.5], [1], method="distinct")), counts=False)


def test_a_reliability_diagram_needs_the_result_of_reliability():
    table = binned([0.1, 0.9, 1.0], [0, 1, 1], 5)
    with pytest.raises(CoraError, match="is drawn from the result of reliability; there is no confidence of bins"):
        plot_reliability(calibration_errors(table))
    with pytest.raises(CoraError, match="there is no accuracy of bins"):
        plot_reliability(reliability(table).query("score != 'accuracy'"))
