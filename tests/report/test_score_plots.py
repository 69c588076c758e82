"Figures of scores: what the table says is drawn, no two labels overlap, and a wrong table gets one line."

import subprocess
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pytest  # noqa: E402
from hypothesis import given, settings, strategies as st  # noqa: E402

from cora_nb.core import CoraError  # noqa: E402
from cora_nb.metrics.cora import car_curve, Counts, score  # noqa: E402
from cora_nb.metrics.counts import count_hits  # noqa: E402
from cora_nb.report.result_plots import plot_lines  # noqa: E402
from cora_nb.report.score_plots import (  # noqa: E402
    _edges,
    curve_table,
    plot_ranks,
    plot_resamples,
    plot_scores,
)
from cora_nb.results import lookup, make_result, stack_results, values_of  # noqa: E402
from helpers import no_overlap  # noqa: E402

SCORES = ["MCQA", "MCQA+", "RC", "MV", "BMCA(0.5)", "BMCA(1.0)", "CI", "CoRA"]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


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


def test_scores_beyond_the_paper_and_below_zero():
    rows = [{"respondent": "a", "score": s, "value": v} for s, v in (("corrected", -0.1), ("MCQA", 0.5))]
    ax = plot_scores(make_result(rows), beyond=True)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["MCQA", "corrected"]
    np.testing.assert_allclose(drawn(ax)["a"][0][:, 0], [0.5, -0.1])
    assert [t.get_text() for t in plot_scores(make_result(rows)).get_yticklabels()] == ["MCQA"]


def test_scores_that_a_run_lacks_are_left_out_of_its_marks():
    ax = plot_scores(stack_results({"a": result(), "b": result(names=["MCQA", "CI"])}))
    assert np.isfinite(drawn(ax)["b"][0][:, 0]).sum() == 2


# Curves


def test_curve_is_bmca_and_its_band_that_of_score():
    table = responses()
    curve, counts = curve_table(table, points=21, resamples=500, seed=3), count_hits(table)
    counts = Counts(counts["hits"], counts["trials"], counts["original"])
    expected = car_curve(counts, 21)
    np.testing.assert_allclose(curve["value"], expected)
    np.testing.assert_array_equal(curve["place"], expected.index)
    assert set(curve["score"]) == {"BMCA(c)"} and set(curve["n"]) == {30}
    one = lookup(score(table, ci=0.95, thresholds=(0.75,), resamples=500, seed=3), "BMCA(0.75)")
    bounds = ["value", "low", "high"]
    np.testing.assert_allclose(lookup(curve, place=0.75)[bounds].tolist(), one[bounds].tolist())
    assert lookup(curve, place=0)[bounds].tolist() == [1, 1, 1]
    assert (curve["low"] <= curve["value"]).all() and (curve["value"] <= curve["high"]).all()
    wide = curve_table(table, points=21, resamples=500, seed=3, ci=0.99)
    assert (wide["high"] - wide["low"]).sum() > (curve["high"] - curve["low"]).sum()
    assert not curve_table(table, points=3, resamples=500, clusters="subject").equals(
        curve_table(table, points=3, resamples=500)
    )


def test_curves_of_several_runs_are_drawn_as_they_are():
    runs = {name: responses(i) for i, name in enumerate("abc")}
    curves = {name: curve_table(run, points=21, resamples=200) for name, run in runs.items()}
    both = curve_table(runs, points=21, resamples=200)
    pd.testing.assert_frame_equal(both, stack_results(curves))
    ax = plot_lines(both)
    for line, (name, curve) in zip(ax.lines, curves.items()):
        assert line.get_label() == name
        np.testing.assert_allclose(line.get_xydata(), curve[["place", "value"]])
    assert len(ax.lines) == len(ax.collections) == 3
    for band, curve in zip(ax.collections, curves.values()):
        points = np.round(band.get_paths()[0].vertices, 9)
        for c, low, high in curve[["place", "low", "high"]].itertuples(index=False):
            ends = points[np.isclose(points[:, 0], c), 1]
            assert ends.min() == pytest.approx(low) and ends.max() == pytest.approx(high)


def test_curves_of_each_subject_say_what_is_missing():
    table = responses().assign(family="cora", n_choices=4)
    curve = curve_table(table, points=3, resamples=50, by="subject")
    notes = values_of(curve, "note").str.split("\n")
    assert set(notes.str[0]) == {"4 of 20 variants"} and curve["subject"].nunique() == 5
    assert notes.str[1].str.endswith("count alike: few to rely on").all()  # four questions a subject


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


def test_resamples_that_all_agree():
    (ax,) = plot_resamples(pd.DataFrame({"MCQA": [1.0] * 50}), pd.Series({"MCQA": 1.0}))
    assert sum(p.get_height() for p in ax.patches) == 50


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


def test_importing_draws_nothing_and_loads_no_drawing_library():
    heavy = ("matplotlib", "seaborn", "torch", "scipy.stats", "scipy.optimize")
    code = "import sys, cora_nb.report.score_plots, cora_nb.report.item_plots, cora_nb.metrics.items; "
    code += f"print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
