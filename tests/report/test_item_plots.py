"Figures of methods and questions: what the table says is drawn, and no two labels overlap."

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pytest  # noqa: E402
from hypothesis import given, settings, strategies as st  # noqa: E402

from cora_nb.core import CoraError  # noqa: E402
from cora_nb.report.item_plots import _spread, plot_found, plot_items, plot_methods  # noqa: E402
from helpers import no_overlap  # noqa: E402

METHODS = pd.DataFrame({"value": [0.5, 0.7]}, index=["original", "pair"])
ITEMS = pd.DataFrame({"difficulty": [0.2, 0.5], "discrimination": [0.1, 0.2]}, index=["x", "y"])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_axes_are_taken_and_given_back():
    fig, axes = plt.subplots(1, 3)
    assert plot_methods({"a": METHODS}, ax=axes[0]) is axes[0]
    assert plot_found(pd.DataFrame({"found": [0, 0.5, 1]}), ax=axes[1]) is axes[1]
    assert plot_items(ITEMS, ax=axes[2]) is axes[2]
    assert len(plt.get_fignums()) == 1


def test_methods_side_by_side():
    a = pd.DataFrame({"value": [0.5, 0.7], "chance": [0.25, 0.5]}, index=["original", "pair"])
    b = pd.DataFrame({"value": [0.6, 0.4], "chance": [0.5, 0.25]}, index=["pair", "original"])
    ax = plot_methods({"a": a, "b": b})
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b", "chance"]
    np.testing.assert_allclose(ax.collections[0].get_array(), [[0.5, 0.7], [0.4, 0.6], [0.25, 0.5]])
    other = plot_methods({"a": a, "b": b.assign(chance=0.2).rename(index={"pair": "triple"})})
    assert [t.get_text() for t in other.get_yticklabels()] == ["a", "b"] and [
        t.get_text() for t in other.get_xticklabels()
    ] == ["original", "pair", "triple"]
    assert [t.get_text() for t in other.texts] == ["0.50", "0.70", "0.40", "0.60"]


def test_eight_methods_and_long_names_do_not_overlap():
    names = [
        "original",
        "shuffled",
        "nota",
        "nota_shuffled",
        "decoupled",
        "decoupled_shuffled",
        "decoupled_nota",
        "decoupled_nota_shuffled",
    ]
    ax = plot_methods(
        {f"a model with a long name {k}": pd.DataFrame({"value": np.linspace(0, 1, 8)}, index=names) for k in range(6)}
    )
    no_overlap(ax.texts)
    no_overlap(ax.get_yticklabels())
    ends = [t.get_window_extent().x1 for t in ax.get_xticklabels()]  # slanted and parallel: apart if their ends are
    assert np.diff(ends).min() > 10


# Variants and questions


def test_found_curve():
    curve = pd.DataFrame(
        {
            "slot": ["", "a", "b"],
            "found": [0, 0.7, 1],
            "held_out": [0, 0.6, 1],
            "low": [0, 0.5, 1],
            "high": [0, 0.7, 1],
            "random": [0, 0.55, 1],
        },
        index=pd.RangeIndex(3, name="variants"),
    )
    ax = plot_found(curve, share=0.9)
    for line, column in zip(ax.lines, ["found", "held_out", "random"]):
        np.testing.assert_allclose(line.get_ydata(), curve[column])
    assert ax.lines[3].get_ydata()[0] == 0.9 and len(ax.collections) == 1
    assert len(plot_found(curve[["found"]], share=None).lines) == 1
    assert len({line.get_linestyle() for line in ax.lines[:3]}) == 3


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
        (lambda: plot_methods({"a": METHODS.iloc[[0, 0]]}), "a: two rows for original"),
        (
            lambda: plot_methods({"a": METHODS.assign(value=2)}),
            "a: value must be a number from 0 to 1, got 2 for original",
        ),
        (lambda: plot_found(None), "the curve: a table"),
        (lambda: plot_found(pd.DataFrame({"found": [2]})), "the curve: found must be a number from 0 to 1, got 2"),
        (lambda: plot_found(pd.DataFrame({"found": [1]}), share=95), "share must be a number from 0 to 1, got 95"),
        (lambda: plot_items(None), "the items: a table"),
        (lambda: plot_items(ITEMS.drop(columns="difficulty")), "the items: there is no column difficulty"),
        (lambda: plot_items(ITEMS, name=-1), "name must be a whole number of 0 or more, got -1"),
        (lambda: plot_items(ITEMS, name="x"), "name must be a number or a list of ids, got 'x'"),
        (lambda: plot_items(ITEMS, name=["z"]), "there is no question 'z'"),
        (lambda: plot_items(pd.concat([ITEMS, ITEMS])), "two rows for x"),
        (lambda: plot_methods({}), "tables must be given by name"),
    ],
)
def test_mistakes_get_one_line(call, says):
    with pytest.raises(CoraError) as told:
        call()
    assert says in str(told.value) and "\n" not in str(told.value)
