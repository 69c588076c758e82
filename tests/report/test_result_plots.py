"Any result as points, lines or bars: everything in the result is drawn, nothing else, and bad input is refused."

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cora_nb.core import CoraError
from cora_nb.report.result_plots import plot_bars, plot_lines, plot_points
from cora_nb.results import make_result


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
    assert [t.get_text() for t in ax.get_yticklabels()] == ["original", "nota"]
    assert points["ada"][:, 0].tolist() == [0.8, 0.7] and points["bob"][:, 0].tolist() == [0.6, 0.5]
    assert points["ada"][:, 1].round().tolist() == [0, 1] == points["bob"][:, 1].round().tolist()
    assert (points["ada"][:, 1] < points["bob"][:, 1]).all()  # side by side, not one on the other


def test_intervals_end_where_the_result_says():
    ax = plot_points(make_result(ROWS[:1]))
    (segments,) = ax.containers[0].lines[2]
    assert np.allclose(segments.get_segments()[0][:, 0], [0.7, 0.85])


def test_another_column_can_tell_series_apart():
    ax = plot_points(make_result(ROWS), by="method")
    assert set(drawn_points(ax)) == {"original", "nota"}
    assert [t.get_text() for t in ax.get_yticklabels()] == ["ada", "bob"]


def test_p_stands_beside_the_rows_of_one_series():
    rows = [{"score": s, "value": 0.1, "p": p} for s, p in (("a", 0.0004), ("b", 0.25), ("c", np.nan))]
    assert [t.get_text() for t in plot_points(make_result(rows)).texts] == ["p < 0.001", "p = 0.250"]
    two = [r | {"respondent": who} for who in "xy" for r in rows]
    assert not plot_points(make_result(two)).texts


@pytest.mark.parametrize("low, lines", [(-0.2, 1), (0.0, 0)])
def test_a_line_at_zero_only_where_something_lies_below(low, lines):
    ax = plot_points(make_result([{"score": "a", "value": 0.1, "low": low, "high": 0.3}]))
    assert (
        sum(np.allclose(np.asarray(line.get_xdata(), float), 0) and line.get_linestyle() == "-" for line in ax.lines)
        == lines
    )


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


def test_ticks_that_somebody_has_set_stay():
    ax = plt.subplots()[1]
    ax.set_xticks([2, 4, 10])
    plot_lines(pd.DataFrame({"place": [2, 4, 10], "score": "a", "value": [0.5, 0.4, 0.3]}), ax=ax)
    assert ax.get_xticks().tolist() == [2, 4, 10]


def test_many_points_have_a_band():
    rows = [{"place": c, "score": "a", "value": c, "low": c - 0.1, "high": c + 0.1} for c in np.linspace(0, 1, 20)]
    assert len(plot_lines(make_result(rows)).collections) == 1
    assert len(plot_lines(make_result(rows[:5])).containers) == 1


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


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(names, names, st.integers(1, 5), letters, numbers, numbers), min_size=1, max_size=8))
def test_any_result_is_drawn_whole(rows):
    keys = ("respondent", "method", "place", "score", "value", "low")
    table = pd.DataFrame([dict(zip(keys, row)) for row in rows]).drop_duplicates(list(keys[:4]))
    result = make_result(table[~table["score"].isin(["chance", "expected"])].to_dict("records") or ROWS)
    points, bars = plot_points(result), plot_bars(result)
    drawn = [c.lines[0].get_xdata() for c in points.containers]
    assert sum(map(len, drawn)) == len(result) == len(bars.patches)
    points.figure.canvas.draw(), bars.figure.canvas.draw()  # names with dollars and backslashes are no formulas
    plt.close("all")


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
