"Figures of questions: what the table says is drawn, and no two labels overlap."

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pytest  # noqa: E402
from hypothesis import given, settings, strategies as st  # noqa: E402

from cora_nb.core import CoraError  # noqa: E402
from cora_nb.report.item_plots import _spread, plot_items  # noqa: E402
from helpers import no_overlap  # noqa: E402

ITEMS = pd.DataFrame({"difficulty": [0.2, 0.5], "discrimination": [0.1, 0.2]}, index=["x", "y"])


@pytest.fixture(autouse=True)
def close_figures():
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
