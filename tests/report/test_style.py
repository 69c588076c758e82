"""What every figure has in common: any name, any number of series, nothing cut off, nothing on top of another."""

import re
import warnings
from io import BytesIO

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pytest  # noqa: E402
from hypothesis import given, settings, strategies as st  # noqa: E402

from cora_nb.metrics.calibration import binned, reliability  # noqa: E402
from cora_nb.metrics.consistency import label_sequences  # noqa: E402
from cora_nb.report.run_plots import plot_consistency, plot_items, plot_map, plot_reliability
from cora_nb.report.plots import (
    _WIDEST,
    draw_shares,
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
from cora_nb.report.style import (  # noqa: E402
    escape_name,
    legend_name,
)
from helpers import slow_after  # noqa: E402

NASTY = (
    "$x$",
    "_",
    "<b>bold</b> & more",
    "a%b \\frac{1}{2}",
    "eighty characters, the name of a question as somebody wrote it, all of it, to the",
    "a rocket \U0001f680 and \u6a21\u578b",
    "two\nlines\t\x1b[31m\u202e",
    "W" * 80,
)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def rows_of(series, names, column="subject", score="accuracy", **more):
    "A result: a row for each series and name, with an interval."
    found = [{"respondent": s, column: name, "score": score} for s in series for name in names]
    value = np.linspace(0.1, 0.9, len(found))
    return pd.DataFrame(found).assign(value=value, low=value - 0.1, high=value + 0.08, **more)


def shares_of(series, benchmarks, places=(1, 2, 3, 4, 5)):
    rows = [(s, b, m, p) for s in series for b in benchmarks for m in ("jl", "jd:Ca", "se:Ca") for p in places]
    table = pd.DataFrame(rows, columns=["respondent", "benchmark", "method", "place"])
    value = np.linspace(0.1, 0.6, len(table))
    drawn = table.assign(score="share", value=value, low=value - 0.05, high=value + 0.05)
    return pd.concat([drawn, table.assign(score="expected", value=0.2)], ignore_index=True)


def points(names):
    return plot_points(rows_of(names, NASTY[: len(names)]))


def one_series_with_p(names):
    return plot_points(rows_of(names[:1], names, p=0.02))


def lines(names):
    return plot_lines(rows_of(names, range(5), "place"))


def bars(names):
    return plot_bars(rows_of(names, names))


def bars_at_places(names):
    return plot_bars(rows_of(names, range(1, 6), "place", "share"))


def scores(names):
    return plot_scores(rows_of(names, [""], "method", "CoRA").drop(columns="method"))


def own_scores(names):
    table = pd.concat([rows_of(names[:2], [""], "method", n).drop(columns="method") for n in names])
    return plot_scores(table, beyond=True)


def ranks(names):
    ranked = rows_of(names, range(1, len(names) + 1), "place", "CoRA, probability of rank")
    return plot_ranks(ranked)


def resamples(names):
    return plot_resamples(pd.DataFrame({n: np.random.default_rng(k).normal(size=99) for k, n in enumerate(names)}))


def items(names):
    where = np.linspace(0.1, 0.9, len(names))
    return plot_items(pd.DataFrame({"difficulty": where, "discrimination": where}, index=list(names)), name=names)


def consistency(names):
    return plot_consistency(label_sequences(["AAAAA", "AAAAA", "BBBBB", "AAAAB", "ABBBC"], "A"))


def calibration(names):
    return plot_reliability(reliability(binned([0.1, 0.5, 0.9, 1.0], [0, 1, 1, 1], 5)))


def panel(names):
    one = shares_of(names, ["b"], [1])
    return draw_shares(one.drop(columns=["benchmark", "place"]))


def accuracy(names):
    table = shares_of(names[:2], names, [1]).query("score == 'share'")
    return plot_accuracy(table.drop(columns="place").assign(score="accuracy"), chance=0.25)


def positions(names):
    return plot_positions(shares_of(names, ["b"]))


def lengths(names):
    return plot_lengths(shares_of(names[:2], names[:3], (0, 1, 2, 3)))


def the_map(names):
    rows = [(f"q{i}", n, 0, "A", (i + k) % 3 > 0) for i in range(30) for k, n in enumerate(names)]
    table = pd.DataFrame(rows, columns=["question_id", "method", "index", "prediction", "correct"])
    return plot_map(table.assign(trial=0, prediction=0))


FIGURES = [points, one_series_with_p, lines, bars, bars_at_places, scores, own_scores, ranks, resamples, items]
FIGURES += [consistency, calibration, panel, accuracy, positions, lengths, the_map]


def texts_in_rows(figure):
    "Groups of texts that must not lie on one another."
    for ax in figure.axes:
        yield [t for t in ax.get_xticklabels() if t.get_text()]
        yield [t for t in ax.get_yticklabels() if t.get_text()]
        if ax.get_legend():
            yield ax.get_legend().get_texts()
        yield [t for t in ax.texts if t.get_fontsize() == 9]
    for legend in figure.legends:
        yield legend.get_texts()
    yield [ax.title for ax in figure.axes if ax.title.get_text()]


def corners(text, renderer):
    "Middle, directions and half sizes of the box of a text, which may be turned."
    angle = np.radians(text.get_rotation())
    text.set_rotation(0)
    box = text.get_window_extent(renderer)
    text.set_rotation(np.degrees(angle))
    turned = text.get_window_extent(renderer)
    middle = np.array([(turned.x0 + turned.x1) / 2, (turned.y0 + turned.y1) / 2])
    along = np.array([np.cos(angle), np.sin(angle)])
    return middle, np.array([along, [-along[1], along[0]]]), np.array([box.width, box.height]) / 2


def overlap(one, two, slack=1.5):
    "Whether two turned boxes of the same angle share more than a seam."
    (a, axes, half_a), (b, _, half_b) = one, two
    return (np.abs(axes @ (a - b)) < half_a + half_b - slack).all()


def check_figure(drawn):
    figure = np.ravel(drawn)[0].figure if isinstance(drawn, (np.ndarray, list)) else drawn.figure
    for kind in ("svg", "png"):
        figure.savefig(BytesIO(), format=kind)
    renderer = figure.canvas.get_renderer()
    box = figure.get_tightbbox(renderer)
    wide, high = figure.get_size_inches()
    inside = (box.x0, box.y0, wide - box.x1, high - box.y1)
    assert min(inside) > -0.02, f"{inside} inches beyond a canvas of {wide:.1f} x {high:.1f}"
    for group in texts_in_rows(figure):
        boxes = [corners(text, renderer) for text in group]
        for k, one in enumerate(boxes):
            for j, two in enumerate(boxes[:k]):
                assert not overlap(one, two), (group[k].get_text(), group[j].get_text())
    for ax in figure.axes:
        frame = ax.get_window_extent(renderer)
        if ax.get_label() == "<colorbar>" or not ax.has_data():
            continue
        assert frame.width > 50 and frame.height > 20, "the axes are squeezed"
        if ax.get_legend():
            assert ax.get_legend().get_window_extent(renderer).x0 >= frame.x1, "the legend lies on the data"
    return figure


@pytest.mark.parametrize("n", slow_after(1, [8, 2, 5]))
@pytest.mark.parametrize("draw", slow_after(4, FIGURES), ids=lambda f: f.__name__)
def test_any_name_is_printed_and_nothing_is_cut_off(draw, n):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_figure(draw(NASTY[:n] if n < 8 else NASTY))


def test_all_series_are_in_the_legend_and_all_names_on_the_axis():
    ax = points(NASTY)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [legend_name(name) for name in NASTY]
    assert [t.get_text() for t in ax.get_yticklabels()] == [escape_name(name, 40) for name in NASTY]


def test_names_that_look_alike_remain_two():
    long = ["n" * 200 + end for end in "ab"]
    ax = plot_points(rows_of(long, ["x"]))
    assert len(ax.get_legend().get_texts()) == 2


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=150), st.none() | st.integers(5, 50))
def test_escaped_names_have_no_formula_and_no_control_characters(name, width):
    text = escape_name(name, width)
    assert not re.search(r"(?<!\\)\$", text)
    assert all(c.isprintable() for c in text.replace("\n", ""))
    if width:
        assert all(len(line.replace(r"\$", "$")) <= width for line in text.split("\n"))
    else:
        assert "\n" not in text


@pytest.mark.slow
def test_many_panels_are_wrapped():
    for n in (2, 5, 8):
        figure = plot_positions(shares_of([f"m{k}" for k in range(n)], ["b"])).figure
        assert figure.get_figwidth() <= _WIDEST + 0.1
    assert len({ax.get_position().y0.round(2) for ax in figure.axes}) > 1
