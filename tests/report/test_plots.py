"""Figures of results: what the table says is drawn, no two labels overlap, and a wrong table gets one line."""

import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from helpers import no_overlap
from hypothesis import given, settings, strategies as st
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from cora_nb.core import CoraError, Question
from cora_nb.metrics.bias import consistency_table, length_ranks, position_ranks
from cora_nb.metrics.cora import Counts, car_curve
from cora_nb.metrics.scoring import score
from cora_nb.metrics.account import account, paper_counts
from cora_nb.report.plots import (
    NAMES,
    _edges,
    curve_table,
    draw_shares,
    order_implementations,
    plot_accuracy,
    plot_bars,
    plot_lengths,
    plot_lines,
    plot_points,
    plot_positions,
    plot_ranks,
    plot_resamples,
    plot_scores,
)
from cora_nb.report.style import IMPLEMENTATION_WORDS, _SHAPES
from cora_nb.respondents.likelihood import IMPLEMENTATIONS
from cora_nb.responses.responses import make_responses
from cora_nb.results import lookup, make_result, stack_results
from cora_nb.variants.families import make_variants

matplotlib.use("Agg")


# --- any result


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def drawn_points(ax):
    "What the markers stand for, by the label of their series."
    found = {}
    for container in ax.containers:
        if hasattr(container, "has_xerr"):
            label = container.get_label()
            found["" if label.startswith("_") else label] = np.column_stack(container.lines[0].get_data()).astype(float)
    return found


ROWS = [
    {"respondent": who, "method": method, "score": "accuracy", "value": value, "low": value - 0.1, "high": value + 0.05}
    for who, values in {"ada": (0.8, 0.7), "bob": (0.6, 0.5)}.items()
    for method, value in zip(("original", "nota"), values)
]


def test_points_are_at_their_values_and_rows():
    ax = plot_points(make_result(ROWS))
    points = drawn_points(ax)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["the original", "with none of the above"]
    assert points["ada"][:, 0].tolist() == [0.8, 0.7] and points["bob"][:, 0].tolist() == [0.6, 0.5]
    assert points["ada"][:, 1].round().tolist() == [0, 1] == points["bob"][:, 1].round().tolist()
    assert (points["ada"][:, 1] < points["bob"][:, 1]).all()  # side by side, not one on the other


def test_p_stands_beside_the_rows_of_one_series():
    rows = [{"score": s, "value": 0.1, "p": p} for s, p in (("a", 0.0004), ("b", 0.25), ("c", np.nan))]
    assert [t.get_text() for t in plot_points(make_result(rows)).texts] == ["p < 0.001", "p = 0.250"]
    two = [r | {"respondent": who} for who in "xy" for r in rows]
    assert not plot_points(make_result(two)).texts


def test_chance_is_drawn_behind_its_row_and_named_once():
    chance = [{"method": m, "score": "chance", "value": v} for m, v in (("original", 0.2), ("nota", 0.25))]
    ax = plot_points(make_result(ROWS + chance))
    strokes = {round(float(np.mean(li.get_ydata()))): li.get_xdata()[0] for li in ax.lines if li.get_linestyle() == ":"}
    assert strokes == {0: 0.2, 1: 0.25}
    assert [t.get_text() for t in ax.get_legend().get_texts()].count("chance") == 1


def test_lines_go_through_their_values_in_the_order_of_the_places():
    rows = [{"respondent": "ada", "place": n, "score": "Acc", "value": 1 / n} for n in (8, 2, 4)]
    ax = plot_lines(make_result(rows))
    assert drawn_points(ax)[""].tolist() == [[2, 0.5], [4, 0.25], [8, 0.125]]


def test_bars_begin_at_zero():
    ax = plot_bars(make_result(ROWS))
    bars = sorted((round(b.get_x() + b.get_width() / 2), b.get_y(), round(b.get_height(), 6)) for b in ax.patches)
    assert bars == [(0, 0, 0.6), (0, 0, 0.8), (1, 0, 0.5), (1, 0, 0.7)]


def test_an_unknown_number_is_a_gap():
    rows = [{"score": "a", "value": np.nan}, {"score": "b", "value": 0.5}]
    assert [b.get_height() for b in plot_bars(make_result(rows)).patches] == [0, 0.5]
    assert np.isnan(drawn_points(plot_points(make_result(rows)))[""][0, 0])


@pytest.mark.parametrize("draw", [plot_points, plot_lines, plot_bars])
@pytest.mark.parametrize(
    "result, said",
    [
        ([1, 2], "a result is needed"),
        (pd.DataFrame({"score": ["a"]}), "no column 'value'"),
        (pd.DataFrame({"score": ["a"], "value": [1.0], "count": [2]}), "got 'count'"),
        (make_result([]), "nothing to draw"),
        (make_result([{"place": 1, "score": "chance", "value": 0.2}]), "nothing to draw but"),
        (make_result([{"place": 1, "score": "a", "value": np.inf}]), "value must be finite, got inf"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, result, said):
    with pytest.raises(CoraError, match=said):
        draw(result)


def test_lines_need_places_that_are_numbers():
    with pytest.raises(CoraError, match="no column 'place'"):
        plot_lines(make_result(ROWS))
    with pytest.raises(CoraError, match="places that are numbers, got 'top'"):
        plot_lines(make_result([{"place": "top", "score": "a", "value": 1}]))


letters = st.text(alphabet="ab $\\_^{}%é", min_size=1, max_size=8)
names = st.one_of(st.none(), letters)
numbers = st.one_of(st.none(), st.floats(-1, 1))


def test_the_axis_of_a_curve_over_c_says_what_c_is():
    curve = make_result([{"place": c, "score": "BMCA(c)", "value": 1 - c / 2} for c in (0, 0.5, 1)])
    assert plot_lines(curve).get_xlabel() == "c, the least share of right replies to a question"
    assert plot_lines(curve.assign(score="recall")).get_xlabel() == "place"


@pytest.mark.parametrize(
    "scores, axis",
    [
        (["found", "held out", "random"], "variants beside the original"),
        (["least squares", "least squares by chance", "accuracy"], "layer"),
        (["Acc", "Acc-H", "S_c"], "choices shown"),
        (["ECE", "Brier score", "accuracy"], "choices shown"),
        (["CoRA, probability of rank"], "rank"),
        (["accuracy"], "place"),
        (["share", "expected"], "place"),
        (["Acc", "BMCA(c)"], "place"),
    ],
)
def test_the_axis_says_what_the_places_of_a_score_are(scores, axis):
    rows = make_result([{"place": n, "score": s, "value": 0.5} for s in scores for n in (1, 2, 3)])
    assert plot_lines(rows, by="score").get_xlabel() == axis
    if len(scores) == 1:
        assert plot_bars(rows).get_xlabel() == axis


# --- scores, ranks and resamples

SCORES = ["MCQA", "MCQA+", "RC", "MV", "BMCA(0.5)", "BMCA(1.0)", "CI", "CoRA"]


def intervals(seed=0, names=SCORES):
    value = np.random.default_rng(seed).uniform(0.2, 0.8, len(names))
    return pd.DataFrame({"value": value, "low": value - 0.1, "high": value + 0.05}, index=names)


def result(seed=0, names=SCORES):
    return make_result(intervals(seed, names).rename_axis("score").reset_index())


def ranks_of(shares, score="CoRA"):
    "As from `rank_table`: a row a respondent, a column a place."
    about = [{"respondent": who, "score": score, "value": 0.5} for who in shares.index]
    named = [{"respondent": who, "score": f"{score}, {what}", "value": 1} for who in shares.index for what in ("rank",)]
    of_rank = [
        {"respondent": who, "score": f"{score}, probability of rank", "place": place, "value": value}
        for (who, place), value in shares.stack().items()
    ]
    return make_result(about + named + of_rank)


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


def drawn(ax):
    "Label -> what errorbar drew: points and ends of the bars."
    return {
        c.get_label(): (c.lines[0].get_xydata(), [p.vertices for p in c.lines[2][0].get_paths()]) for c in ax.containers
    }


# Scores


def test_scores_in_the_papers_order_with_their_intervals():
    plain = result(3).drop(columns=["low", "high"])
    tables = {"a": result(1), "b": result(2).sample(frac=1, random_state=0), "plain": plain}
    ax = plot_scores(stack_results(tables))
    rows = ["MCQA", "MCQA+", "MV", "CoRA", "BMCA(0.5)", "BMCA(1.0)", "CI"]
    assert [t.get_text() for t in ax.get_yticklabels()] == rows
    for name, (points, bars) in drawn(ax).items():
        table = tables[name].set_index("score").loc[rows]
        np.testing.assert_allclose(points[:, 0], table["value"])
        assert np.abs(points[:, 1] - np.arange(len(rows))).max() < 0.5
        if name != "plain":
            np.testing.assert_allclose([b[:, 0] for b in bars], table[["low", "high"]])
        else:
            assert all(np.ptp(b[:, 0]) < 1e-9 for b in bars)
    no_overlap(ax.get_yticklabels())
    assert len({line.get_marker() for c in ax.containers for line in c.lines[:1]}) == 3


def test_scores_that_a_run_lacks_are_left_out_of_its_marks():
    ax = plot_scores(stack_results({"a": result(), "b": result(names=["MCQA", "CI"])}))
    assert np.isfinite(drawn(ax)["b"][0][:, 0]).sum() == 2


# Curves


def test_curve_is_bmca_and_its_band_that_of_score():
    table = responses()
    curve, counts = curve_table(table, points=21), paper_counts(account(table))
    counts = Counts(counts["hits"], counts["trials"], counts["original"])
    expected = car_curve(counts, 21)
    np.testing.assert_allclose(curve["value"], expected)
    np.testing.assert_array_equal(curve["place"], expected.index)
    assert set(curve["score"]) == {"BMCA(c)"} and set(curve["n"]) == {30}
    one = lookup(score(table, ci=0.95, thresholds=(0.75,)), "BMCA(0.75)")
    bounds = ["value", "low", "high"]
    np.testing.assert_allclose(lookup(curve, place=0.75)[bounds].tolist(), one[bounds].tolist())
    assert lookup(curve, place=0)[bounds].tolist() == [1, 1, 1]
    assert (curve["low"] <= curve["value"]).all() and (curve["value"] <= curve["high"]).all()
    wide = curve_table(table, points=21, ci=0.99)
    assert (wide["high"] - wide["low"]).sum() > (curve["high"] - curve["low"]).sum()
    assert not curve_table(table, points=3, clusters="subject").equals(curve_table(table, points=3))


def test_axes_are_taken_and_given_back():
    fig, axes = plt.subplots(1, 4)
    frame = pd.DataFrame({1: [0.5, 0.5], 2: [0.5, 0.5]}, index=["a", "b"])
    assert plot_scores(result(), ax=axes[0]) is axes[0]
    assert plot_ranks(ranks_of(frame), ax=axes[1]) is axes[1]
    assert plot_resamples(pd.DataFrame({"MCQA": [0.1, 0.2]}), axes=axes[3])[0] is axes[3]
    assert len(plt.get_fignums()) == 1


# Ranks and methods


def test_ranks_are_cells_with_their_numbers():
    one = pd.DataFrame([[0.9, 0.1, 0.0], [0.1, 0.6, 0.3], [0.0, 0.3, 0.7]], index=["a", "b", "c"], columns=[1, 2, 3])
    both = make_result(pd.concat([ranks_of(one, "MCQA"), ranks_of(one.iloc[::-1], "CoRA")]))
    for ax, table in ((plot_ranks(ranks_of(one)), one), (plot_ranks(both, "CoRA"), one.iloc[::-1])):
        np.testing.assert_allclose(ax.collections[0].get_array(), table.to_numpy())
        assert [t.get_text() for t in ax.texts] == [f"{v:.2f}" for v in table.to_numpy().ravel()]
        assert [t.get_text() for t in ax.get_yticklabels()] == list(table.index) and [
            t.get_text() for t in ax.get_xticklabels()
        ] == ["1", "2", "3"]
        no_overlap(ax.texts)
    grey = {t.get_text(): t.get_color() for t in ax.texts}
    assert (grey["0.90"], grey["0.10"]) == ("1", "0")


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


@pytest.mark.slow
def test_resamples_in_panels_with_lines():
    rng = np.random.default_rng(0)
    samples = pd.DataFrame({s: rng.normal(0.5, 0.02 * (i + 1), 300) for i, s in enumerate(SCORES)})
    table = intervals().drop(index="CI")
    axes = plot_resamples(samples, result()[result()["score"] != "CI"])
    assert [ax.get_title() for ax in axes] == SCORES
    for ax, name in zip(axes, SCORES):
        assert sum(p.get_height() for p in ax.patches) == 300
        assert [line.get_xdata()[0] for line in ax.lines] == (
            [] if name == "CI" else pytest.approx(table.loc[name].tolist())
        )
    assert np.ptp([np.ptp(ax.get_xlim()) for ax in axes]) < 1e-9
    full = plot_resamples(samples, table["value"], scores=["MCQA"])
    assert [line.get_xdata()[0] for line in full[0].lines] == [table.loc["MCQA", "value"]]
    no_overlap([ax.title for ax in axes])
    for ax in axes:
        no_overlap([t for t in ax.get_xticklabels() if ax.get_xlim()[0] <= t.get_position()[0] <= ax.get_xlim()[1]])


# Mistakes

EVEN = pd.DataFrame({1: [0.5, 0.5], 2: [0.5, 0.5]}, index=["a", "b"])
RANKS = ranks_of(EVEN)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: plot_scores({}), "the scores: a table with the columns value is needed, got a dict"),
        (lambda: plot_scores(intervals()), "the scores: there is no column score"),
        (lambda: plot_scores(0.5), "the scores: a table with the columns value is needed, got a float"),
        (lambda: plot_scores(result().drop(columns="value")), "the scores: there is no column value"),
        (lambda: plot_scores(result().assign(value=50)), "value must be a number from -1 to 1, got 50 for MCQA"),
        (lambda: plot_scores(result(names=["x", "y"])), "nothing to draw: none of x, y is a score of the paper's"),
        (lambda: plot_scores(pd.concat([result(), result()])), "a result has two numbers for score MCQA"),
        (lambda: plot_scores(result().iloc[:0]), "the scores: the table is empty"),
        (lambda: curve_table(responses(), points=1.5), "points must be a whole number of 2 or more, got 1.5"),
        (lambda: curve_table(responses(), ci=95), "level must be between 0 and 1, got 95"),
        (lambda: plot_ranks(result()), "the ranks: no score is called 'CoRA, probability of rank'"),
        (lambda: plot_ranks([1]), "the ranks: a table"),
        (lambda: plot_ranks(RANKS, "MCQA"), "score must be one of CoRA, got 'MCQA'"),
        (
            lambda: plot_ranks(make_result(pd.concat([RANKS, ranks_of(EVEN, "MV")]))),
            "score must be one of CoRA, MV, got None",
        ),
        (lambda: plot_ranks(ranks_of(EVEN * 100)), "value must be a number from 0 to 1, got 50.0 for a, 1.0, CoRA, pr"),
        (lambda: plot_resamples([1]), "the resamples:"),
        (lambda: plot_resamples(pd.DataFrame({"a": ["x"]})), "the resamples: a must be a number, got 'x' for 0"),
        (lambda: plot_resamples(pd.DataFrame({"a": [np.nan]})), "the resamples: a is not known in any of them"),
        (
            lambda: plot_resamples(pd.DataFrame({"a": [1.0], "b": [2.0]}), axes=plt.figure().gca()),
            "there are 2 scores to draw and 1 axes",
        ),
        (lambda: plot_resamples(pd.DataFrame({"a": [1.0]}), scores=[]), "there is no score to draw"),
        (
            lambda: plot_resamples(pd.DataFrame({"a": [1.0]}), pd.DataFrame({"score": ["a"], "low": [1.0]})),
            "the estimates: there is no column value",
        ),
        (
            lambda: plot_resamples(pd.DataFrame({"MV": [1.0]}), stack_results({"a": result(), "b": result()})),
            "the estimates: there are two numbers for MCQA",
        ),
    ],
)
def test_mistakes_get_one_line(call, says):
    with pytest.raises(CoraError) as told:
        call()
    assert says in str(told.value) and "\n" not in str(told.value)


@pytest.mark.slow
def test_importing_draws_nothing_and_loads_no_drawing_library():
    heavy = ("matplotlib", "seaborn", "torch", "scipy.stats", "scipy.optimize")
    code = "import sys, cora_nb.report.plots, cora_nb.report.run_plots, cora_nb.metrics.items; "
    code += f"print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


# --- many models and ways of scoring

CODES = ["jl", "jd:All", "se:Ca"]
WORDS = [IMPLEMENTATION_WORDS[code] for code in CODES]  # as they stand on an axis


def rank_rows(models=("m1", "m2"), benchmarks=("b1", "b2"), codes=CODES, ranks=(1, 2, 3, 4), level=True):
    "A result as from stacked ranks, every share different."
    rows = [(m, b, c, r) for m in models for b in benchmarks for c in codes for r in ranks]
    table = pd.DataFrame(rows, columns=[*NAMES, "place"])
    share = 0.1 + 0.6 * np.arange(len(rows)) / len(rows)
    shares = table.assign(score="share", value=share, low=share - 0.05, high=share + 0.08)
    expected = table.assign(score="expected", value=0.25 if level else share * 0.9)
    key = table.assign(score="key", value=[0.1 * r for r in table["place"]])
    return pd.concat([shares, expected, key], ignore_index=True)


def accuracy_rows(**kwargs):
    return only(rank_rows(ranks=(0,), **kwargs), "share").assign(score="accuracy").drop(columns="place")


def only(result, score):
    "The rows of one score."
    return result[result["score"] == score]


def points(ax):
    "model -> (x, share, low, high) of what is drawn for it."
    found = {}
    for drawn in ax.containers:
        line, _, bars = drawn
        segments = [s[:, 1] for s in bars[0].get_segments()] if bars else [(np.nan, np.nan)] * len(line.get_xdata())
        found[drawn.get_label()] = [(x, y, *s) for x, y, s in zip(line.get_xdata(), line.get_ydata(), segments)]
    return found


def labels(ax):
    return [t.get_text() for t in ax.get_xticklabels()]


def one_panel(table):
    return table[(table["benchmark"] == "b1") & (table["place"] == 1)]


# What is drawn


def test_a_panel_shows_every_row_with_its_interval():
    table = one_panel(rank_rows())
    ax = draw_shares(table)
    found = points(ax)
    assert list(found) == ["m1", "m2"]
    for model, part in only(table, "share").groupby("respondent"):
        np.testing.assert_allclose([p[1:] for p in found[model]], part[["value", "low", "high"]].to_numpy())
        assert [round(p[0]) for p in found[model]] == [0, 1, 2]
    assert all(a[0] < b[0] for a, b in zip(found["m1"], found["m2"]))  # side by side, in the order of the models
    assert labels(ax) == [*WORDS, "key"]


def test_one_line_where_the_same_is_expected_everywhere_else_a_stroke_each():
    level = draw_shares(one_panel(rank_rows()), ax=plt.figure().gca())
    dashed = [line for line in level.lines if line.get_linestyle() == "--"]
    assert [list(line.get_ydata()) for line in dashed] == [[0.25, 0.25]]
    table = one_panel(rank_rows(level=False))
    ax = draw_shares(table, ax=plt.figure().gca())
    assert not [line for line in ax.lines if line.get_linestyle() == "--"]
    strokes = max(
        (c for c in ax.collections if isinstance(c, LineCollection) and len(c.get_segments()) == 2 * len(CODES)),
        key=lambda c: c.get_zorder(),
    )
    np.testing.assert_allclose(
        sorted(s[0, 1] for s in strokes.get_segments()), sorted(only(table, "expected")["value"])
    )
    xs = sorted(p[0] for some in points(ax).values() for p in some)
    np.testing.assert_allclose(sorted(s[:, 0].mean() for s in strokes.get_segments()), xs)  # each at its own point


def test_implementations_stand_in_the_papers_order():
    table = one_panel(rank_rows(codes=["mine", *reversed(IMPLEMENTATIONS)]))
    assert labels(draw_shares(table)) == [*IMPLEMENTATION_WORDS.values(), "mine", "key"]
    assert order_implementations([]) == []


def test_models_can_be_told_apart_without_colour():
    table = one_panel(rank_rows(models=[f"m{i}" for i in range(2 * len(_SHAPES))]))
    ax = draw_shares(table)
    lines = [c[0] for c in ax.containers]
    assert len({(line.get_marker(), line.get_color()) for line in lines}) == 2 * len(_SHAPES)
    assert len({line.get_marker() for line in lines[: len(_SHAPES)]}) == len(_SHAPES)
    colours = [line.get_color() for line in ax.lines] + [c for coll in ax.collections for c in coll.get_colors()]
    assert all(len(set(to_rgb(c))) == 1 for c in colours)  # greys only


# The three figures


def test_accuracy_has_a_panel_for_each_benchmark():
    table = accuracy_rows()
    grid = plot_accuracy(table, chance=0.25)
    assert list(grid.axes_dict) == ["b1", "b2"]
    for benchmark, ax in grid.axes_dict.items():
        part = table[table["benchmark"] == benchmark]
        for model, found in points(ax).items():
            np.testing.assert_allclose(
                [p[1:] for p in found], part.loc[part["respondent"] == model, ["value", "low", "high"]].to_numpy()
            )
        assert [list(line.get_ydata()) for line in ax.lines if line.get_linestyle() == ":"] == [[0.25, 0.25]]
        assert labels(ax)[-1] == "separate, per character"
    assert [t.get_text() for t in grid.legend.get_texts()] == ["m1", "m2", "chance"]


def test_a_model_keeps_its_shape_where_another_is_missing():
    table = rank_rows()
    grid = plot_positions(table[~((table["respondent"] == "m1") & (table["benchmark"] == "b2"))])
    shapes = {(b, c.get_label()): c[0].get_marker() for (b, _), ax in grid.axes_dict.items() for c in ax.containers}
    assert shapes["b1", "m2"] == shapes["b2", "m2"] != shapes["b1", "m1"]
    assert [labels(ax) for ax in grid.axes[-1]] == [[*WORDS, "key"]] * 4


def test_titles_and_names_do_not_overlap():
    "Boxes of all titles and tick names in a panel row, as drawn."
    grid = plot_lengths(rank_rows(ranks=range(4), codes=list(IMPLEMENTATIONS)))
    grid.figure.canvas.draw()
    boxes = lambda texts: [t.get_window_extent() for t in texts if t.get_text() and t.get_visible()]
    for texts in ([ax.title for ax in grid.axes[0]], *(ax.get_xticklabels() for ax in grid.axes[-1])):
        found = boxes(texts)
        assert not any(a.overlaps(b) for i, a in enumerate(found) for b in found[:i])


# Tables that cannot be drawn


@pytest.mark.parametrize("column", [*NAMES, "place", "score", "value"])
def test_a_missing_column_is_named(column):
    with pytest.raises(CoraError, match=rf"^the result has no column {column}$"):
        plot_positions(rank_rows().drop(columns=column))


TOLD = {
    "empty": (lambda t: t.iloc[:0], "no row with the score 'share', so there is nothing to draw"),
    "text": (lambda t: t.assign(value="a lot"), "share must be a share from 0 to 1, got 'a lot' for m1, b1, jl, 1"),
    "percent": (lambda t: t.assign(value=t["value"] * 100), "share must be a share from 0 to 1, got 10"),
    "unknown share": (lambda t: t.assign(value=np.nan), "share must be a share from 0 to 1, got nan for m1, b1, jl, 1"),
    "infinite": (lambda t: t.assign(high=np.inf), "high of share must be a share from 0 to 1, got inf for m1, b1, jl"),
    "twice": (lambda t: pd.concat([t, t.iloc[[5]]]), "two rows for m1, b1, jd:All, 2; a point is drawn once"),
    "twice expected": (
        lambda t: pd.concat([t, only(t, "expected").iloc[[5]]]),
        "two rows for m1, b1, jd:All, 2; a point is drawn once",
    ),
    "nameless": (lambda t: t.assign(respondent=None), "respondent is missing in row 0 of share"),
    "no result": (
        lambda t: t.to_dict(),
        "a result with the columns respondent, benchmark, method, place, score, value is needed, got a dict",
    ),
}


@pytest.mark.parametrize("case", TOLD)
@pytest.mark.parametrize("plot", [plot_positions, plot_lengths])
def test_bad_tables_get_one_line(plot, case):
    spoil, says = TOLD[case]
    with pytest.raises(CoraError) as told:
        plot(spoil(rank_rows()))
    assert says in str(told.value) and "\n" not in str(told.value)
    assert not plt.get_fignums()  # and no half-drawn figure


# From runs to figures


@pytest.fixture(scope="module")
def runs():
    questions = [Question(f"q{i}", "?", ("a", "bb", "ccc", "dddd"), i % 4) for i in range(6)]
    variants = make_variants(questions, "permutations")
    return questions, {
        ("m", "b", "jl"): make_responses(variants, ["A"] * len(variants)),
        ("m", "b", "se:All"): make_responses(variants, ["ABCD"[v.answer] for v in variants]),
    }


def test_results_of_real_runs_can_be_drawn(runs):
    questions, answered = runs
    accuracy = stack_results({name: consistency_table(r) for name, r in answered.items()}, NAMES)
    assert only(accuracy, "accuracy")["value"].tolist() == [0.25, 1.0]
    assert accuracy.drop_duplicates(NAMES)[list(NAMES)].to_numpy().tolist() == [list(name) for name in answered]
    positions, lengths = (
        stack_results({name: ranks(r) for name, r in answered.items()}, NAMES)
        for ranks in (position_ranks, lambda r: length_ranks(r, questions))
    )
    shares = only(positions, "share")
    assert shares["place"].tolist() == [1, 2, 3, 4] * 2 and shares["value"].tolist() == [1, 0, 0, 0] + [0.25] * 4
    grid = plot_accuracy(accuracy)
    np.testing.assert_allclose([p[1] for p in points(grid.axes.flat[0])["m"]], [0.25, 1.0])
    assert plot_positions(positions).axes.shape == plot_lengths(lengths).axes.shape == (1, 4)
