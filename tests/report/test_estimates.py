"""Estimates of the full run in every printed form, on the page, in figures and in exported files: always marked."""

import io
import math
import re
import warnings

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from openpyxl import load_workbook

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.metrics.comparison import compare
from cora_nb.metrics.scoring import score
from cora_nb.report.findings import findings
from cora_nb.report.page import make_report
from cora_nb.report.page import _asked_parts, _picture_parts, _table_parts
from cora_nb.report.present import present
from cora_nb.report.render import FORMATS, render
from cora_nb.report.plots import curve_table, plot_bars, plot_lines, plot_points, plot_scores
from cora_nb.report.sentences import sentences
from cora_nb.report.tables import score_table
from cora_nb.report.words import note_of
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import REPLIED, in_state
from cora_nb.responses.runs import Runs
from cora_nb.results import lookup, make_result, Remark
from cora_nb.runs.asking import Budget, Precise, Settled
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants
from helpers import slow_after

EXACT = {"float_precision": "round_trip"}  # of CSV; pandas before 3 reads other last digits
MARKS = {"text": "≈", "markdown": "≈", "latex": r"$\approx$", "html": "&#8776;"}


@pytest.fixture(scope="module")
def runs():
    "Ann in full, and Bob stopped within 0.06."
    variants = make_variants(math_benchmark(150, seed=1))
    ann, bob = (
        SimulatedRespondent(knows=k, slips=0.05, seed=i, name=n)
        for i, (n, k) in enumerate((("ann", 0.8), ("bob", 0.4)))
    )
    part = evaluate(bob, variants, stop=Precise(half_width=0.06), progress=False)
    return Runs({"ann": evaluate(ann, variants, progress=False), "bob": part})


@pytest.mark.parametrize("interval", slow_after(1, [False, True]))
@pytest.mark.parametrize("format", [f for f in FORMATS if f not in ("csv", "xlsx")])
def test_every_estimate_is_printed_with_mark_and_interval(runs, format, interval):
    "Also where no intervals were asked for; and a number that is known exactly has no mark."
    row, printed = lookup(score(runs["bob"]), "CoRA"), render(score_table(runs), format, interval=interval)
    assert f"{MARKS[format]}{row.value:.2f} [{row.low:.2f}, {row.high:.2f}]" in printed
    known = score(runs["bob"]).dropna(subset=["value"])
    paper = known[~known["score"].isin(["RC", "CORE"])]["status"].eq("estimated").sum()
    assert printed.count(MARKS[format]) == paper + 1  # and in the sentence below
    assert f"{lookup(score(runs['ann']), 'CoRA').value:.2f}" in printed
    assert "No ranks: bob has estimates of the full run" in printed and "not estimated: the run stopped" in printed


@pytest.mark.parametrize("interval", [True, False])
def test_files_for_programs_have_the_bounds_and_the_note(runs, interval):
    row = lookup(score(runs["bob"]), "CoRA")
    table = pd.read_csv(io.StringIO(render(score_table(runs), "csv", interval=interval)), **EXACT)
    bob = table.set_index(["respondent", "score"]).loc[("bob", "CoRA")]
    assert (bob["value"], bob["low"], bob["high"]) == (row.value, row.low, row.high)
    assert "estimate of the full run: " in bob["note"]
    plain = pd.read_csv(io.StringIO(render(curve_table(runs["bob"], 11), "csv", interval=interval)))
    assert {"low", "high", "note"} <= set(plain)
    sheet = load_workbook(io.BytesIO(render(score_table(runs), "xlsx", interval=interval))).active
    heads, *rows = [list(line) for line in sheet.iter_rows()]
    names = [cell.value for cell in heads]
    (cora,) = [line for line in rows if line[1].value == "CoRA"]
    cells = {name: cora[names.index(name)] for name in ("ann", "bob", "bob low", "bob high")}
    assert [float(cells[name].value) for name in ("bob", "bob low", "bob high")] == [row.value, row.low, row.high]
    assert cells["bob"].number_format == '"≈"0.00' and cells["ann"].number_format == "0.00"
    assert "bob rank" not in names and "ann rank" not in names


def test_estimates_are_not_ranked(runs):
    table = present(score_table(runs))
    assert all(cell.rank is None for row in table.cells for cell in row) and not table.ranked
    full = present(score_table({"ann": runs["ann"], "again": runs["ann"]}))
    assert any(cell.rank == 1 for row in full.cells for cell in row) and full.ranked == ["ann", "again"]
    texts = present(score_table(runs), percent=True).texts
    assert texts.loc[("Proposed metric", "CoRA"), "bob"].startswith("≈")


@pytest.mark.slow
def test_the_page_marks_them(runs):
    page = make_report(runs, pictures=False).html
    scores, difference = _table_parts(findings(runs))
    row = lookup(score(runs["bob"]), "CoRA")
    text = f"≈{row.value:.2f} [{row.low:.2f}, {row.high:.2f}]"
    assert [cells for group, rows in scores.groups for name, cells in rows if name == "CoRA"][0][1] == text
    assert text in page and "the run stopped when CoRA was precise enough (within 0.06)" in page
    assert difference.caption.startswith("Difference, estimated") and "p = " not in page.split("What was asked")[0]
    assert any(line.startswith("ann - bob: ≈ estimate of the full runs") for line in difference.below)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cora_nb.runs.asking.BudgetWarning")
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"stop": Settled()}, "the run stopped when every question was settled for CoRA"),
        ({"stop": Precise(half_width=0.1)}, "the run stopped when CoRA was precise enough (within 0.1)"),
        ({"budget": Budget(calls=500)}, "the budget was used up"),
    ],
)
def test_the_page_says_why_prompts_were_not_asked_and_draws_the_others(options, why, runs):
    variants = make_variants(math_benchmark(150, seed=1))
    early = evaluate(SimulatedRespondent(knows=0.8, name="early"), variants, progress=False, **options)
    asked, both = int(in_state(early.table, *REPLIED).sum()), Runs({"ann": runs["ann"], "early": early})
    assert 0 < asked < 3000
    assert _asked_parts(Runs({"early": early})).about == f"150 questions, {asked:,} replies, of 3,000 prompts"
    whole, told = (dict(run.facts) for run in _asked_parts(both).runs)
    assert told["not asked because"] == why and told["replies"].startswith(f"{asked:,}, of 3,000 prompts: ")
    assert "not asked because" not in whole and whole["replies"].startswith("3,000: ")
    captions = [picture.caption for picture in _picture_parts(findings(both))]
    words = "Accuracy of each kind of variant, and what guessing gives; not of early: not all prompts were asked"
    assert words in captions and "Scores with intervals" in captions


def test_without_a_p_no_run_is_called_ahead(runs, monkeypatch):
    "Such as where a score is not known for the questions one by one."
    row = {"score": "CoRA", "value": 0.5, "low": math.nan, "high": math.nan, "p": math.nan, "respondent": "ann - bob"}
    monkeypatch.setattr("cora_nb.report.findings.compare", lambda *_, **__: make_result([row, row | {"score": "MCQA"}]))
    said = " ".join(sentences(runs))
    assert "ahead of" not in said and "By CoRA, ann and bob cannot be told apart" in said and ", estimated)" not in said


def test_sentences_say_that_they_are_estimates(runs):
    said = " ".join(sentences(runs))
    assert "The accuracy of ann is 0." in said and "estimated for the full run: the run stopped when CoRA" in said
    assert "that bob gets right as they stand" not in said  # most of them were not asked again
    assert re.search(r"By CoRA, ann is ahead of bob \(ann - bob: 0\.\d\d \[0\.\d\d, 0\.\d\d\], estimated\)", said)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row = lookup(compare(*runs.values()), "CoRA")
    assert row.low > 0


def rings(ax):
    "The middles of the rings in a figure, without that of the legend."
    found = [line for line in ax.lines if line.get_markerfacecolor() == "none" and line.get_markersize() == 10]
    return [tuple(xy) for line in found for xy in line.get_xydata()]


def test_figures_have_rings_around_them(runs):
    table = score(runs, ci=0.95)
    row = lookup(table, "CoRA", respondent="bob")
    ax = plot_scores(table)
    assert row.value in [x for x, _ in rings(ax)]
    assert len(rings(ax)) == table["status"].eq("estimated").sum()
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words[-1] == "in a ring: estimate of the full run"
    bars = table[table["score"].isin(["MCQA", "CoRA"])]
    assert row.value in [y for _, y in rings(plot_bars(bars))]
    curve = curve_table(runs, 21)
    ax = plot_lines(curve)
    top = lookup(table, "BMCA(1.0)", respondent="bob")
    assert (1.0, top.value) in rings(ax)
    drawn = [segment for bars in ax.collections for segment in getattr(bars, "get_segments", list)()]
    ends = [(round(float(low), 9), round(float(high), 9)) for (_, low), (_, high) in drawn]
    assert (round(top.low, 9), round(top.high, 9)) in ends  # with its interval, although most places are not known
    assert not rings(plot_points(score(runs["ann"], ci=0.95)))
    plt.close("all")


def test_what_is_said_below():
    told = Remark("estimate", 5310, of=280840, level=0.9)
    row = {
        "remarks": (Remark("unknown", 3, of=52, why=("failed",)), told, Remark("incomplete", 2, of=26)),
        "status": "estimated",
    }
    said = "estimate of the full run: 5,310 of 280,840 prompts asked, intervals of 90%"
    assert note_of(row) == f"2 of 26 variants\n{said}\n3 of 52 failed"
    why = Remark("not_defined", what="why", why="error")
    cells = make_result([{"score": n, "value": None, "remarks": why} for n in "rstuvwxyz"])
    assert present(cells).below == ["r, s, t, u, v and 4 more not estimated: why"]
    lost = make_result([{"score": "r", "value": 0.5, "remarks": Remark("unknown", 3, of=5, why=("failed",))}])
    assert present(lost).below == ["3 of 5 failed"]
