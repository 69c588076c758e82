"""The categorical plots: what is drawn is what the table says, and a table that cannot be drawn gets one clear line."""

import subprocess
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pytest  # noqa: E402
from hypothesis import given, settings, strategies as st  # noqa: E402
from matplotlib.collections import LineCollection  # noqa: E402
from matplotlib.colors import to_rgb  # noqa: E402

from cora_nb.core import CoraError, Question  # noqa: E402
from cora_nb.metrics.bias import consistency_table, length_ranks, position_ranks  # noqa: E402
from cora_nb.report.plots import (  # noqa: E402
    NAMES,
    draw_shares,
    order_implementations,
    plot_accuracy,
    plot_lengths,
    plot_positions,
)
from cora_nb.report.style import IMPLEMENTATION_WORDS, SHAPES  # noqa: E402
from cora_nb.respondents.likelihood import IMPLEMENTATIONS  # noqa: E402
from cora_nb.responses.responses import make_responses  # noqa: E402
from cora_nb.results import stack_results  # noqa: E402
from cora_nb.variants.families import make_variants  # noqa: E402

CODES = ["jl", "jd:All", "se:Ca"]
WORDS = [IMPLEMENTATION_WORDS[code] for code in CODES]  # as they stand on an axis


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


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


def test_it_draws_into_the_axes_it_is_given():
    _, (left, right) = plt.subplots(1, 2)
    assert draw_shares(one_panel(rank_rows()), ax=left) is left and not right.containers


@pytest.mark.parametrize("gone", [["low"], ["high"], ["low", "high"]])
def test_without_intervals_there_are_points(gone):
    found = points(draw_shares(one_panel(rank_rows()).drop(columns=gone)))
    assert [len(p) for p in found.values()] == [3, 3] and np.isnan(found["m1"][0][2])


def test_one_unknown_interval_leaves_the_others():
    table = one_panel(rank_rows(models=("m1",))).reset_index(drop=True)
    table.loc[1, ["low", "high"]] = np.nan
    ax, table = draw_shares(table), only(table, "share")
    drawn = ax.containers[0]
    np.testing.assert_allclose(drawn[0].get_ydata().astype(float), table["value"])
    spans = [s[:, 1] for s in drawn[2][0].get_segments() if len(s)]
    np.testing.assert_allclose(spans, table.loc[[0, 2], ["low", "high"]].to_numpy())


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


def test_nothing_expected_and_no_key_where_the_table_has_none():
    ax = draw_shares(only(one_panel(rank_rows()), "share"))
    assert labels(ax) == WORDS and not [line for line in ax.lines if line.get_linestyle() == "--"]


def test_the_key_stands_in_a_column_of_its_own():
    ax = draw_shares(one_panel(rank_rows()))
    (diamonds,) = [line for line in ax.lines if line.get_marker() == "D" and line.get_markerfacecolor() == "white"]
    assert list(diamonds.get_xdata()) == [3] and list(diamonds.get_ydata()) == [0.1]


def test_implementations_stand_in_the_papers_order():
    table = one_panel(rank_rows(codes=["mine", *reversed(IMPLEMENTATIONS)]))
    assert labels(draw_shares(table)) == [*IMPLEMENTATION_WORDS.values(), "mine", "key"]
    assert order_implementations([]) == []


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_the_order_of_rows_means_nothing(seed):
    table = one_panel(rank_rows(level=False))
    one, two = (
        draw_shares(t, models=["m1", "m2"], ax=plt.figure().gca())
        for t in (table, table.sample(frac=1, random_state=seed))
    )
    assert {m: sorted(p) for m, p in points(one).items()} == {m: sorted(p) for m, p in points(two).items()}
    assert labels(one) == labels(two)
    plt.close("all")


def test_models_can_be_told_apart_without_colour():
    table = one_panel(rank_rows(models=[f"m{i}" for i in range(2 * len(SHAPES))]))
    ax = draw_shares(table)
    lines = [c[0] for c in ax.containers]
    assert len({(line.get_marker(), line.get_color()) for line in lines}) == 2 * len(SHAPES)
    assert len({line.get_marker() for line in lines[: len(SHAPES)]}) == len(SHAPES)
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


def test_any_share_can_stand_in_for_accuracy():
    grid = plot_accuracy(accuracy_rows().assign(score="consistency"), "consistency")
    assert grid.axes.flat[0].get_ylabel() == "consistency"


def test_panels_can_be_wrapped():
    grid = plot_accuracy(accuracy_rows(benchmarks=[f"b{i}" for i in range(5)]), col_wrap=2)
    assert len(grid.axes_dict) == 5
    assert plot_lengths(rank_rows(benchmarks=("b1",), ranks=range(4)), col_wrap=2).axes.shape == (4,)


@pytest.mark.parametrize(
    "plot, ranks, first, last",
    [
        (plot_positions, (1, 2, 3, 4), "place 1 (top)", "place 4"),
        (plot_lengths, (0, 1, 2, 3), "length rank 0 (longest)", "length rank 3 (shortest)"),
    ],
)
def test_ranks_have_columns_and_benchmarks_rows(plot, ranks, first, last):
    table = rank_rows(ranks=ranks)
    grid = plot(table.sample(frac=1, random_state=0))
    assert grid.axes.shape == (2, 4)
    names = [name for name in dict.fromkeys(n[1] for n in grid.axes_dict)]
    assert (names[0], names[-1]) == (first, last)
    for (benchmark, name), ax in grid.axes_dict.items():
        part = table[(table["benchmark"] == benchmark) & (table["place"] == ranks[names.index(name)])]
        drawn = sorted(p[1] for found in points(ax).values() for p in found)
        np.testing.assert_allclose(drawn, sorted(only(part, "share")["value"]))
    texts = [t.get_text() for t in grid.legend.get_texts()]
    assert {"m1", "m2", "answer key"} <= set(texts) and any("expected" in t for t in texts)


def test_a_model_keeps_its_shape_where_another_is_missing():
    table = rank_rows()
    grid = plot_positions(table[~((table["respondent"] == "m1") & (table["benchmark"] == "b2"))])
    shapes = {(b, c.get_label()): c[0].get_marker() for (b, _), ax in grid.axes_dict.items() for c in ax.containers}
    assert shapes["b1", "m2"] == shapes["b2", "m2"] != shapes["b1", "m1"]
    assert [labels(ax) for ax in grid.axes[-1]] == [[*WORDS, "key"]] * 4


def test_an_empty_panel_is_left_empty():
    table = rank_rows()
    grid = plot_positions(table[~((table["benchmark"] == "b2") & (table["place"] == 4))])
    assert not grid.axes_dict["b2", "place 4"].containers


def test_long_names_beside_the_rows_are_wrapped():
    grid = plot_positions(rank_rows(benchmarks=("professional law of the united states", "sociology")))
    beside = [t.get_text() for ax in grid.axes.flat for t in ax.texts]
    assert len(beside) == 2 and "\n" in beside[0] and max(map(len, beside[0].split("\n"))) <= 16


def test_titles_and_names_do_not_overlap():
    "Boxes of all titles and tick names in a panel row, as drawn."
    grid = plot_lengths(rank_rows(ranks=range(4), codes=list(IMPLEMENTATIONS)))
    grid.figure.canvas.draw()
    boxes = lambda texts: [t.get_window_extent() for t in texts if t.get_text() and t.get_visible()]
    for texts in ([ax.title for ax in grid.axes[0]], *(ax.get_xticklabels() for ax in grid.axes[-1])):
        found = boxes(texts)
        assert not any(a.overlaps(b) for i, a in enumerate(found) for b in found[:i])


def test_the_table_is_left_as_it_was():
    table = rank_rows()
    before = table.copy()
    plot_positions(table)
    pd.testing.assert_frame_equal(table, before)


# Tables that cannot be drawn


@pytest.mark.parametrize("column", [*NAMES, "place", "score", "value"])
def test_a_missing_column_is_named(column):
    with pytest.raises(CoraError, match=rf"^the result has no column {column}$"):
        plot_positions(rank_rows().drop(columns=column))


def test_all_missing_columns_are_named_at_once():
    with pytest.raises(CoraError, match="^the result has no column respondent, value$"):
        plot_accuracy(accuracy_rows().drop(columns=["respondent", "value"]))


def test_scores_that_belong_to_no_place_are_not_drawn():
    whole = pd.concat([rank_rows(), rank_rows(ranks=(np.nan,)).assign(score="share", value=7.0).drop_duplicates(NAMES)])
    assert len(plot_positions(whole).axes_dict) == 8


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


@pytest.mark.parametrize("chance", [25, -0.1, "1/4", float("nan")])
def test_chance_is_a_share(chance):
    with pytest.raises(CoraError, match="chance must be a number from 0 to 1"):
        plot_accuracy(accuracy_rows(), chance=chance)


def test_wrapping_goes_with_one_benchmark():
    with pytest.raises(CoraError, match="col_wrap goes with one benchmark, and the result has 2"):
        plot_lengths(rank_rows(ranks=range(4)), col_wrap=2)


def test_a_name_that_is_not_drawn_is_told():
    with pytest.raises(CoraError, match="'m2' is in the result but not among the names"):
        draw_shares(one_panel(rank_rows()), models=["m1"])


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


def test_importing_draws_nothing_and_loads_no_drawing_library():
    code = (
        "import sys, cora_nb.report.plots; print([m for m in ('matplotlib', 'seaborn', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
