"Figures of scores: what is drawn is what the table says, no labels overlap, and a wrong table gets one line."

import subprocess
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pytest  # noqa: E402
from hypothesis import given, settings, strategies as st  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from cora_nb.core import CoraError  # noqa: E402
from cora_nb.metrics.cora import bmca, count_hits, response_consistency, score  # noqa: E402
from cora_nb.report.score_plots import (
    _edges,
    _spread,
    curve_table,
    plot_curves,
    plot_differences,
    plot_found,
    plot_items,
    plot_methods,  # noqa: E402
    plot_ranks,
    plot_resamples,
    plot_scores,
)

SCORES = ["MCQA", "MCQA+", "RC", "MV", "BMCA(0.5)", "BMCA(1.0)", "CI", "CoRA"]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def intervals(seed=0, names=SCORES):
    value = np.random.default_rng(seed).uniform(0.2, 0.8, len(names))
    return pd.DataFrame({"value": value, "low": value - 0.1, "high": value + 0.05}, index=names)


def responses(seed=0, n=30):
    rng = np.random.default_rng(seed)
    rows = [
        (f"q{i}", m, k, rng.random() < p)
        for i, p in enumerate(rng.random(n))
        for m, k in (("original", 0), ("nota", 0), ("nota", 1), ("nota", 2))
    ]
    return pd.DataFrame(rows, columns=["question_id", "method", "index", "correct"]).assign(
        trial=0, subject=[f"s{int(q[1:]) % 5}" for q, *_ in rows]
    )


def no_overlap(texts):
    figure = texts[0].get_figure()
    figure.canvas.draw()
    boxes = [
        Text.get_window_extent(t) for t in texts if t.get_text()
    ]  # of the words, without the line that leads to a point
    assert not [(i, j) for i in range(len(boxes)) for j in range(i) if boxes[i].overlaps(boxes[j])]


def drawn(ax):
    "Label -> what errorbar drew: points and ends of the bars."
    return {
        c.get_label(): (c.lines[0].get_xydata(), [p.vertices for p in c.lines[2][0].get_paths()]) for c in ax.containers
    }


# Scores


def test_scores_in_the_papers_order_with_their_intervals():
    tables = {"a": intervals(1), "b": intervals(2).sample(frac=1, random_state=0), "plain": intervals(3)["value"]}
    ax = plot_scores(tables)
    rows = ["MCQA", "MCQA+", "MV", "CoRA", "BMCA(0.5)", "BMCA(1.0)", "CI"]
    assert [t.get_text() for t in ax.get_yticklabels()] == rows
    for name, (points, bars) in drawn(ax).items():
        table = tables[name].to_frame("value") if name == "plain" else tables[name]
        np.testing.assert_allclose(points[:, 0], 100 * table.loc[rows, "value"])
        assert np.abs(points[:, 1] - np.arange(len(rows))).max() < 0.5
        if name != "plain":
            np.testing.assert_allclose([b[:, 0] for b in bars], 100 * table.loc[rows, ["low", "high"]])
        else:
            assert all(np.ptp(b[:, 0]) < 1e-9 for b in bars)
    no_overlap(ax.get_yticklabels())
    assert len({line.get_marker() for c in ax.containers for line in c.lines[:1]}) == 3


def test_scores_beyond_the_paper_and_below_zero():
    ax = plot_scores({"a": pd.Series({"MCQA": 0.5, "corrected": -0.1})}, beyond=True)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["MCQA", "corrected"]
    np.testing.assert_allclose(drawn(ax)["a"][0][:, 0], [50, -10])


def test_scores_that_a_run_lacks_are_left_out_of_its_marks():
    ax = plot_scores({"a": intervals(), "b": intervals(names=["MCQA", "CI"])})
    assert np.isfinite(drawn(ax)["b"][0][:, 0]).sum() == 2


# Curves


def test_curve_is_bmca_and_its_band_that_of_score():
    table = responses()
    curve, counts = curve_table(table, points=21, resamples=500, seed=3), count_hits(table)
    np.testing.assert_allclose(
        curve["value"], [bmca(response_consistency(counts["hits"], counts["trials"]), c) for c in curve.index]
    )
    one = score(table, ci=0.95, thresholds=(0.75,), resamples=500, seed=3).loc["BMCA(0.75)"]
    np.testing.assert_allclose(curve.loc[0.75], one)
    assert (
        curve.loc[0.0].tolist() == [1, 1, 1]
        and (curve["low"] <= curve["value"]).all()
        and (curve["value"] <= curve["high"]).all()
    )
    wide = curve_table(table, points=21, resamples=500, seed=3, ci=0.99)
    assert (wide["high"] - wide["low"]).sum() > (curve["high"] - curve["low"]).sum()
    assert not curve_table(table, points=3, resamples=500, clusters="subject").equals(
        curve_table(table, points=3, resamples=500)
    )


def test_curves_are_drawn_as_they_are():
    curves = {name: curve_table(responses(i), points=11, resamples=200) for i, name in enumerate("abc")}
    ax = plot_curves(curves | {"bare": curves["a"][["value"]]})
    for line, (name, curve) in zip(ax.lines, (curves | {"bare": curves["a"]}).items()):
        assert line.get_label() == name
        np.testing.assert_allclose(line.get_xydata(), curve["value"].reset_index())
    assert len(ax.collections) == 3
    for band, curve in zip(ax.collections, curves.values()):
        points = np.round(band.get_paths()[0].vertices, 9)
        for c in curve.index:
            ends = points[np.isclose(points[:, 0], c), 1]
            assert ends.min() == pytest.approx(curve.loc[c, "low"]) and ends.max() == pytest.approx(
                curve.loc[c, "high"]
            )
    assert len({(line.get_linestyle(), line.get_marker()) for line in ax.lines}) == 4


def test_axes_are_taken_and_given_back():
    fig, axes = plt.subplots(1, 8)
    frame = pd.DataFrame({1: [0.5, 0.5], 2: [0.5, 0.5]}, index=["a", "b"])
    items = pd.DataFrame({"difficulty": [0.2, 0.5], "discrimination": [0.1, 0.2]}, index=["x", "y"])
    assert plot_scores({"a": intervals()}, ax=axes[0]) is axes[0]
    assert plot_curves({"a": intervals(names=[0.0, 1.0])}, ax=axes[1]) is axes[1]
    assert plot_ranks(frame, ax=axes[2]) is axes[2]
    assert plot_methods({"a": intervals()}, ax=axes[3]) is axes[3]
    assert plot_differences(intervals().rename(columns={"value": "difference"}), ax=axes[4]) is axes[4]
    assert plot_found(pd.DataFrame({"found": [0, 0.5, 1]}), ax=axes[5]) is axes[5]
    assert plot_items(items, ax=axes[6]) is axes[6]
    assert plot_resamples(pd.DataFrame({"MCQA": [0.1, 0.2]}), axes=axes[7])[0] is axes[7]
    assert len(plt.get_fignums()) == 1


# Ranks and methods


def test_ranks_are_cells_with_their_numbers():
    one = pd.DataFrame([[0.9, 0.1, 0.0], [0.1, 0.6, 0.3], [0.0, 0.3, 0.7]], index=["a", "b", "c"], columns=[1, 2, 3])
    both = pd.concat({"MCQA": one, "CoRA": one.iloc[::-1]}, names=["score", "respondent"]).assign(
        value=0.5, rank=1, expected=1.2
    )
    for ax, table in ((plot_ranks(one), one), (plot_ranks(both, "CoRA"), one.iloc[::-1])):
        np.testing.assert_allclose(ax.collections[0].get_array(), table.to_numpy())
        assert [t.get_text() for t in ax.texts] == [f"{v:.2f}" for v in table.to_numpy().ravel()]
        assert [t.get_text() for t in ax.get_yticklabels()] == list(table.index) and [
            t.get_text() for t in ax.get_xticklabels()
        ] == ["1", "2", "3"]
        no_overlap(ax.texts)
    grey = {t.get_text(): t.get_color() for t in ax.texts}
    assert (grey["0.90"], grey["0.10"]) == ("1", "0")


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


# Resamples


@given(st.integers(2, 400), st.integers(1, 40))
@settings(max_examples=40)
def test_bins_hold_every_value_and_as_many_steps(n, bins):
    values = np.random.default_rng(n).binomial(n, 0.4, 500) / n
    edges = _edges(values, np.ptp(values) / bins or 0.1)
    counts, _ = np.histogram(values, edges)
    steps, _ = np.histogram(np.arange(n + 1) / n, edges)
    assert counts.sum() == 500 and np.ptp(steps[:-1] if len(steps) > 1 else steps) <= (
        1 if len(np.unique(values)) < 3 or np.diff(np.unique(values)).min() > 1.5 / n else 0
    )


def test_resamples_in_panels_with_lines():
    rng = np.random.default_rng(0)
    samples = pd.DataFrame({s: rng.normal(0.5, 0.02 * (i + 1), 300) for i, s in enumerate(SCORES)})
    table = intervals().drop(index="CI")
    axes = plot_resamples(samples, table)
    assert [ax.get_title() for ax in axes] == SCORES
    for ax, name in zip(axes, SCORES):
        assert sum(p.get_height() for p in ax.patches) == 300
        assert [line.get_xdata()[0] for line in ax.lines] == (
            [] if name == "CI" else pytest.approx(table.loc[name].tolist())
        )
    assert np.ptp([np.ptp(ax.get_xlim()) for ax in axes]) < 1e-9
    full = plot_resamples(samples, table.rename(columns={"value": "full"})[["full"]], scores=["MCQA"])
    assert [line.get_xdata()[0] for line in full[0].lines] == [table.loc["MCQA", "value"]]
    no_overlap([ax.title for ax in axes])
    for ax in axes:
        no_overlap([t for t in ax.get_xticklabels() if ax.get_xlim()[0] <= t.get_position()[0] <= ax.get_xlim()[1]])


def test_resamples_that_all_agree():
    (ax,) = plot_resamples(pd.DataFrame({"MCQA": [1.0] * 50}), pd.Series({"MCQA": 1.0}))
    assert sum(p.get_height() for p in ax.patches) == 50


# Differences


def test_differences_points_bars_and_p():
    table = pd.DataFrame(
        {
            "difference": [0.1, -0.05, 0.0],
            "low": [0.02, -0.1, np.nan],
            "high": [0.2, 0.01, np.nan],
            "p": [0.0004, 0.21, np.nan],
            "first": "x",
        },
        index=["MCQA", "CI", "CoRA"],
    )
    ax = plot_differences(table, ("Ann", "Bob"))
    marks = ax.collections[-1]
    np.testing.assert_allclose(marks.get_offsets(), [[10, 0], [-5, 1], [0, 2]], atol=1e-9)
    assert [c[0] for c in marks.get_facecolors()] == [0, 1, 1]  # filled where the interval leaves out zero
    bars = [p.vertices[:, 0] for p in ax.containers[0].lines[2][0].get_paths()]
    np.testing.assert_allclose(bars[:2], [[2, 20], [-10, 1]])
    assert [t.get_text() for t in ax.texts] == ["p < 0.001", "p = 0.210"] and ax.get_xlabel().startswith(
        "Ann minus Bob"
    )
    many = pd.concat([table[["difference", "low", "high", "p"]].assign(p=0.5)] * 8)
    many.index = pd.MultiIndex.from_tuples([(f"BMCA({i})", "Ann", "Bob") for i in range(24)])
    ax = plot_differences(many)
    assert ax.get_yticklabels()[0].get_text() == "BMCA(0), Ann, Bob"
    no_overlap(ax.get_yticklabels())
    no_overlap(ax.texts)


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


# Mistakes

ITEMS = pd.DataFrame({"difficulty": [0.2, 0.5], "discrimination": [0.1, 0.2]}, index=["x", "y"])


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: plot_scores({}), "tables must be given by name"),
        (lambda: plot_scores(intervals()), "tables must be given by name"),
        (lambda: plot_scores({"a": 0.5}), "a: a table with the columns value is needed, got a float"),
        (lambda: plot_scores({"a": intervals().drop(columns="value")}), "a: there is no column value"),
        (lambda: plot_scores({"a": intervals() * 100}), "a: value must be a number from -1 to 1, got"),
        (lambda: plot_scores({"a": intervals(names=["x", "y"])}), "nothing to draw: no run among ['a'] has a score"),
        (lambda: plot_scores({"a": pd.concat([intervals(), intervals()])}), "a: a row for each score is needed"),
        (lambda: plot_scores({"a": intervals().iloc[:0]}), "a: the table is empty"),
        (lambda: plot_curves({"a": intervals()}), "a: c must be a number from 0 to 1, got 'MCQA'"),
        (lambda: plot_curves({"a": intervals(names=[0, 2])}), "a: c must be a number from 0 to 1, got 2"),
        (lambda: plot_curves({"a": [1]}), "a: a table with the columns value is needed, got a list"),
        (lambda: curve_table(responses(), points=1.5), "points must be a whole number of 2 or more, got 1.5"),
        (lambda: curve_table(responses(), ci=95), "level must be between 0 and 1, got 95"),
        (lambda: plot_ranks(ITEMS), "the ranks have no columns 1, 2, ..."),
        (lambda: plot_ranks([1]), "the ranks: a table"),
        (
            lambda: plot_ranks(pd.concat({"MCQA": pd.DataFrame({1: [1.0]}, index=["a"])})),
            "score must be one of MCQA, got None",
        ),
        (lambda: plot_methods({"a": intervals().iloc[[0, 0]]}), "a: two rows for MCQA"),
        (
            lambda: plot_methods({"a": intervals().assign(value=2)}),
            "a: value must be a number from 0 to 1, got 2 for MCQA",
        ),
        (lambda: plot_resamples([1]), "the resamples:"),
        (lambda: plot_resamples(pd.DataFrame({"a": ["x"]})), "the resamples: a must be a number, got 'x' for 0"),
        (lambda: plot_resamples(pd.DataFrame({"a": [np.nan]})), "the resamples: a is not known in any of them"),
        (
            lambda: plot_resamples(pd.DataFrame({"a": [1.0], "b": [2.0]}), axes=plt.figure().gca()),
            "there are 2 scores to draw and 1 axes",
        ),
        (lambda: plot_resamples(pd.DataFrame({"a": [1.0]}), scores=[]), "there is no score to draw"),
        (
            lambda: plot_resamples(pd.DataFrame({"a": [1.0]}), pd.DataFrame({"low": [1.0]})),
            "the estimates: there is no column value",
        ),
        (lambda: plot_differences(intervals()), "the differences: there is no column difference"),
        (lambda: plot_differences(None), "the differences: a table"),
        (lambda: plot_found(None), "the curve: a table"),
        (lambda: plot_found(pd.DataFrame({"found": [2]})), "the curve: found must be a number from 0 to 1, got 2"),
        (lambda: plot_found(pd.DataFrame({"found": [1]}), share=95), "share must be a number from 0 to 1, got 95"),
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


def test_importing_draws_nothing_and_loads_no_drawing_library():
    heavy = ("matplotlib", "seaborn", "torch", "scipy.stats", "scipy.optimize")
    modules = "cora_nb.report.score_plots, cora_nb.metrics.items"
    code = f"import sys, {modules}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
