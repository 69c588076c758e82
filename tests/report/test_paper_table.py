"A table for a paper: what is in bold, what is compared with what, which words stand below; in every format."

import io
import re

import numpy as np
import pandas as pd
import pytest
from openpyxl import load_workbook
from score_tables import sure
from table_readers import NASTY, read_html, read_latex, read_markdown, shown

import cora_nb as cn
from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.metrics.comparison import compare
from cora_nb.report.paper_table import PAPER_SCORES, paper_table
from cora_nb.report.present import number_text
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.runs import Runs
from cora_nb.runs.asking import Precise
from cora_nb.stats.paired import adjust_p
from helpers import slow_after

VARIANTS = cn.make_variants(math_benchmark(60, seed=1))
KINDS = {"Ann": (0.9, 0.01), "Bob": (0.9, 0.02), "Cas": (0.85, 0.15), "Dan": (0.3, 0.0)}


@pytest.fixture(scope="module")
def runs():
    people = [SimulatedRespondent(knows, slips, seed=i, name=n) for i, (n, (knows, slips)) in enumerate(KINDS.items())]
    return Runs([cn.evaluate(who, VARIANTS, progress=False) for who in people])


def best_of(table):
    "The names in bold, by column."
    models = [labels[-1] for labels in table.rows]
    return {name: {who for who, row in zip(models, table.cells) if row[i].best} for i, name in enumerate(table.names)}


def test_rows_are_models_and_columns_the_scores_that_were_asked_for(runs):
    table = paper_table(runs)
    assert table.names == list(PAPER_SCORES) and table.heads == ["model"]
    assert [who for (who,) in table.rows] == [*runs, "a guesser"]
    scores = cn.score_table(runs, ci=0.95).set_index(["respondent", "score"])
    for (who,), row in zip(table.rows, table.cells):
        for name, cell in zip(table.names, row):
            value, low, high = (number_text(scores.loc[(who, name), c]) for c in ("value", "low", "high"))
            assert str(cell) == (value if who == "a guesser" else f"{value} [{low}, {high}]")
    chosen = ["CI", "MV", "BMCA(0.7)"]
    assert paper_table(runs, chosen).names == chosen
    assert paper_table(runs, ["CORE", "MCQA"]).names == ["CORE", "MCQA"]  # beyond the paper's tables, too


def test_in_bold_is_the_best_and_all_that_cannot_be_told_from_it(runs):
    "Checked by comparing each with the best again, without the code of the table."
    found = best_of(paper_table(runs))
    for name in PAPER_SCORES:
        values = {who: cn.lookup(cn.score(run), name).value for who, run in runs.items()}
        first = max(values, key=values.get)
        p = {who: cn.lookup(compare(run, runs[first]), name).p for who, run in runs.items() if who != first}
        alike = {who for who, adjusted in zip(p, adjust_p(list(p.values()))) if adjusted >= 0.05}
        assert found[name] == {first} | alike, name
    assert "Dan" not in found["MCQA"] and {"Ann", "Bob"} <= found["MCQA"] and "Cas" not in found["CoRA"]


def test_differences_are_those_of_compare(runs):
    table = paper_table(runs, compare="Bob")
    heading = "difference from Bob"
    assert table.grouped and [labels[1] for labels in table.rows if labels[0] == heading] == ["Ann", "Cas", "Dan"]
    for i, name in enumerate(table.names):
        each = {who: cn.lookup(compare(runs[who], runs["Bob"]), name) for who in ("Ann", "Cas", "Dan")}
        adjusted = dict(zip(each, adjust_p([row.p for row in each.values()])))
        for (group, who), row in zip(table.rows, table.cells):
            if group:
                told, numbers = str(row[i]), each[who]
                value, low, high = (number_text(numbers[c]) for c in ("value", "low", "high"))
                p = "p < 0.01" if adjusted[who] < 0.005 else f"p = {number_text(adjusted[who])}"
                assert told == f"{value} [{low}, {high}], {p}" and not row[i].best
    assert "differences: paired by questions, p adjusted for 3 comparisons (Holm)" in table.below
    assert "adjusted" not in " ".join(paper_table({n: runs[n] for n in ("Ann", "Bob")}, compare="Ann").below)


def test_a_cora_that_depends_on_accuracy_alone_orders_nobody(runs):
    "Neither bold type nor p: CoRA falls where the accuracy rises above .5."
    slips = [SimulatedRespondent(0.95, slips, seed=9, name=f"slips {slips}") for slips in (0.3, 0.5)]
    loose = Runs([cn.evaluate(who, VARIANTS, progress=False) for who in slips])
    table = paper_table(loose, compare="slips 0.3")
    assert best_of(table)["CoRA"] == set() and best_of(table)["MCQA"]
    (cell,) = [row[table.names.index("CoRA")] for labels, row in zip(table.rows, table.cells) if labels[0]]
    assert cell.p == "" and cell.number != "–"
    assert any("depends on the accuracy alone" in line for line in table.below)


def test_unlike_runs_have_nothing_in_bold_and_are_not_compared(runs):
    part = runs["Bob"].rows(runs["Bob"].table["method"].isin(["original", "shuffled"]))
    fewer = cn.evaluate(SimulatedRespondent(name="few"), VARIANTS[:400], progress=False)
    for other in (part, fewer):
        table = paper_table({"Ann": runs["Ann"], "other": other})
        assert not any(best_of(table).values()) and not table.best
        assert any(line.startswith("No ranks: ") for line in table.below)
        with pytest.raises(CoraError):
            paper_table({"Ann": runs["Ann"], "other": other}, compare="Ann")


def test_estimates_have_no_rank_and_a_level_of_their_own(runs):
    people = SimulatedRespondent(0.6, 0.05, name="early")
    variants = cn.make_variants(math_benchmark(150, seed=1))
    part = cn.evaluate(people, variants, stop=Precise(half_width=0.08, level=0.9), progress=False)
    full = cn.evaluate(SimulatedRespondent(0.9, name="full"), variants, progress=False)
    table = paper_table([full, part], ["CoRA"])
    assert table.printing.level == 0.9 and not any(best_of(table).values())
    assert str(table.cells[1][0]).startswith("≈")


def test_one_model_and_what_cannot_be_asked_for(runs):
    one = paper_table(runs["Ann"], compare="Ann")
    assert not one.best and not one.grouped and len(one.rows) == 2
    with pytest.raises(CoraError, match="there is no run 'Eve' to compare with; there are Ann, Bob, Cas, Dan"):
        paper_table(runs, compare="Eve")
    with pytest.raises(CoraError, match="no run has the score 'MCAQ'; there are MCQA, "):
        paper_table(runs, ["MCAQ"])


def test_every_format_sets_the_best_apart_and_says_what_that_means(runs):
    table = paper_table(runs, compare="Ann", caption="Four people", label="tab:four")
    text, markdown, latex, page = (cn.render(table, format) for format in ("text", "markdown", "latex", "html"))
    best = sum(map(len, best_of(table).values()))
    assert text.count("]*") == best and "\n*: the best of each column" in text
    assert len(re.findall(r"\*\*\d\.\d\d \[", markdown)) == best and "\nin bold: the best of each column" in markdown
    assert latex.count(r"\textbf{") == best and r"\label{tab:four}" in latex and r"\caption{Four people}" in latex
    assert page.count("<b>") == best and "<p>in bold: the best of each column" in page
    sheet = load_workbook(io.BytesIO(cn.render(table, "xlsx"))).active
    assert sum(bool(cell.font.bold) for row in sheet.iter_rows(min_row=2) for cell in row) == best
    back = pd.read_csv(io.StringIO(cn.render(table, "csv")))
    assert len(back) == (len(runs) + 1) * 3 + 3 * 3 and cn.lookup(cn.score(runs["Ann"]), "CoRA").value in set(
        back["value"]
    )
    assert table._repr_html_() == page and "in brackets: 95% intervals" in text


def test_the_cells_are_the_same_in_every_format(runs):
    table = paper_table(runs, compare="Ann")
    cells = [[f"{cell.number}{cell.behind}" for cell in row] for row in table.cells]
    plain = cn.render(table, "latex").replace(r"\textbf{", "{").replace(r"$-$", "-")
    _, rows, *_ = read_latex(re.sub(r"\{(\d\.\d\d \[[^]]*\])\}", r"\1", plain))
    assert [row for _, row in rows if any(row)] == cells
    _, rows, *_ = read_html(cn.render(table, "html"), 2)
    assert [row for _, row in rows] == cells and [labels for labels, _ in rows] == table.rows
    text = [re.split(r"\s{2,}", line.strip())[1:] for line in cn.render(table).partition("\n\n")[0].splitlines()[1:]]
    assert [[cell.replace("*", "") for cell in row] for row in text if row] == cells
    _, rows, *_ = read_markdown(re.sub(r"\*\*(\d[^*]*)\*\*", r"\1", cn.render(table, "markdown")))
    assert [row for _, row in rows if any(row)] == cells


@pytest.mark.parametrize("name", slow_after(6, [name for name in NASTY if shown(name)]))
def test_a_nasty_name_is_only_a_name(name, runs):
    "As a model, as the one that others are compared with, as a caption."
    two = {name: runs["Ann"], "Bob": runs["Dan"]}
    table = paper_table(two, ["MCQA"], compare=name, caption=name)
    heading = f"difference from {shown(name)}"
    for format, read in (("markdown", read_markdown), ("latex", read_latex)):
        page = re.sub(r"\*\*(\d[^*]*)\*\*", r"\1", cn.render(table, format))
        page = re.sub(r"\\textbf\{(\d[^}]*)\}", r"\1", page)
        _, rows, _, caption = read(page)
        assert [labels[0] for labels, _ in rows][:1] == [shown(name)] and caption == shown(name)
        assert heading in [labels[0] for labels, _ in rows]
    _, rows, _, caption = read_html(cn.render(table, "html"), 2)
    assert rows[0][0] == ("", shown(name)) and rows[-1][0] == (heading, "Bob") and caption == shown(name)
    sheet = load_workbook(io.BytesIO(cn.render(table, "xlsx"))).active
    assert {cell.data_type for row in sheet for cell in row} <= {"s", "n"}


def test_scores_by_name_and_published_numbers_need_responses():
    with pytest.raises(CoraError):
        paper_table({"a": sure({"MCQA": 0.5})})


def test_somebody_who_knows_all_has_all_and_a_guesser_a_quarter():
    table = paper_table({"x": cn.evaluate(SimulatedRespondent(1.0, name="x"), VARIANTS[:200], progress=False)})
    assert [cell.row["value"] for cell in table.cells[0]] == [1.0, 1.0, 1.0]
    assert np.isclose([cell.row["value"] for cell in table.cells[1]][0], 0.25)
