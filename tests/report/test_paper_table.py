"A table for a paper: what is in bold, what is compared with what, which words stand below; in every format."

import io
import re
import shutil
import subprocess

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
from cora_nb.responses.responses import Responses
from cora_nb.responses.runs import Runs
from cora_nb.runs.asking import Precise
from cora_nb.stats.paired import adjust_p
from helpers import WITH_TORCH, put_in_state, slow_after

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
    heading, others = "difference from Bob", ("Ann", "Cas", "Dan")
    assert table.grouped and [labels[1] for labels in table.rows if labels[0] == heading] == [
        label for who in others for label in (who, "p")
    ]
    lower = [row for (group, _), row in zip(table.rows, table.cells) if group]
    for i, name in enumerate(table.names):
        each = {who: cn.lookup(compare(runs[who], runs["Bob"]), name) for who in others}
        adjusted = adjust_p([row.p for row in each.values()])
        for row, numbers, p in zip(lower[::2], each.values(), adjusted):
            value, low, high = (number_text(numbers[c]) for c in ("value", "low", "high"))
            assert str(row[i]) == f"{value} [{low}, {high}]" and not row[i].best
        assert [str(row[i]) for row in lower[1::2]] == ["< 0.01" if p < 0.005 else number_text(p) for p in adjusted]
    assert "p: adjusted for the comparisons of a score, at most 3 (Holm)" in table.below
    two = paper_table({n: runs[n] for n in ("Ann", "Bob")}, compare="Ann")
    assert not any(line.startswith("p: ") for line in two.below)


def test_a_cora_that_depends_on_accuracy_alone_orders_nobody(runs):
    "Neither bold type nor p: CoRA falls where the accuracy rises above .5."
    slips = [SimulatedRespondent(0.95, slips, seed=9, name=f"slips {slips}") for slips in (0.3, 0.5)]
    loose = Runs([cn.evaluate(who, VARIANTS, progress=False) for who in slips])
    table = paper_table(loose, compare="slips 0.3")
    assert best_of(table)["CoRA"] == set() and best_of(table)["MCQA"]
    number, p = [row[table.names.index("CoRA")].number for labels, row in zip(table.rows, table.cells) if labels[0]]
    assert number != "–" and p == "–"
    assert any(line.startswith("slips 0.5: CoRA depends on the accuracy alone") for line in table.below)


def test_unlike_runs_have_nothing_in_bold_and_are_not_compared(runs):
    part = runs["Bob"].rows(runs["Bob"].table["method"].isin(["original", "shuffled"]))
    fewer = cn.evaluate(SimulatedRespondent(name="few"), VARIANTS[:400], progress=False)
    for other in (part, fewer):
        table = paper_table({"Ann": runs["Ann"], "other": other})
        assert not any(best_of(table).values()) and not table.best
        assert any(line.startswith("Nothing in bold: ") for line in table.below)
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
    assert text.count("]*") == best and "\n*: the best of a column" in text
    assert len(re.findall(r"\*\*\d\.\d\d \[", markdown)) == best and "\nin bold: the best of a column" in markdown
    assert latex.count(r"\textbf{") == best and r"\label{tab:four}" in latex and r"\caption{Four people}" in latex
    assert page.count("<b>") == best and "<p>in bold: the best of a column" in page
    sheet = load_workbook(io.BytesIO(cn.render(table, "xlsx"))).active
    assert sum(bool(cell.font.bold) for row in sheet.iter_rows(min_row=2) for cell in row) == best
    back = pd.read_csv(io.StringIO(cn.render(table, "csv")))
    assert len(back) == (len(runs) + 1) * 3 + 3 * 3 and cn.lookup(cn.score(runs["Ann"]), "CoRA").value in set(
        back["value"]
    )
    assert table._repr_html_() == page and repr(table) == text and "in brackets: 95% intervals" in text


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
    _, rows, *_ = read_markdown(re.sub(r"\*\*(\d\.\d\d[^*]*)\*\*", r"\1", cn.render(table, "markdown")))
    assert [row for _, row in rows if any(row)] == cells


@pytest.mark.parametrize("name", slow_after(6, [name for name in NASTY if shown(name)]))
def test_a_nasty_name_is_only_a_name(name, runs):
    "As a model, as the one that others are compared with, as a caption."
    two = {name: runs["Ann"], "Bob": runs["Dan"]}
    table = paper_table(two, ["MCQA"], compare=name, caption=name)
    heading = f"difference from {shown(name)}"
    for format, read in (("markdown", read_markdown), ("latex", read_latex)):
        page = re.sub(r"\*\*(\d\.\d\d[^*]*)\*\*", r"\1", cn.render(table, format))
        page = re.sub(r"\\textbf\{(\d\.\d\d[^}]*)\}", r"\1", page)
        _, rows, _, caption = read(page)
        assert [labels[0] for labels, _ in rows][:1] == [shown(name)] and caption == shown(name)
        assert heading in [labels[0] for labels, _ in rows]
    _, rows, _, caption = read_html(cn.render(table, "html"), 2)
    assert rows[0][0] == ("", shown(name)) and rows[-2][0] == (heading, "Bob") and caption == shown(name)
    sheet = load_workbook(io.BytesIO(cn.render(table, "xlsx"))).active
    assert {cell.data_type for row in sheet for cell in row} <= {"s", "n"}


def test_measures_of_runs_have_columns_and_no_test(runs):
    "One or several, asked for once or twice; alone there is nothing to compare."
    two = {name: runs[name] for name in ("Ann", "Cas")}
    table = paper_table(two, ["MCQA", "agreement", "position_spread", "MCQA"], compare="Ann")
    assert table.names[0] == "MCQA" and len(table.names) == len(set(table.names)) == 4
    assert {name for name, best in best_of(table).items() if best} == {"MCQA"}
    assert [str(cell) for cell in table.cells[-2]][1:] == ["–"] * (len(table.names) - 1)
    with pytest.raises(CoraError, match="nothing to compare: "):
        paper_table(two, ["agreement"], compare="Ann")
    assert paper_table(two, "MV").names == ["MV"] and paper_table(two, ["BMCA(0.75)"]).names == ["BMCA(0.75)"]
    assert paper_table(two, ["BMCA(1)"]).names == ["BMCA(1.0)"] and len(paper_table(two, ["BMCA"]).names) == 6


def test_families_stand_side_by_side():
    questions = math_benchmark(20)
    who = SimulatedRespondent(0.8, 0.1, name="x")
    both = {
        f: cn.evaluate(who, cn.make_variants(questions, family=f), progress=False) for f in ("cora", "permutations")
    }
    table = paper_table(both, ["CoRA", "MCQA"])
    assert table.names == ["CoRA", "CoRA (permutations)", "MCQA"] and not table.best
    assert paper_table(both, ["CoRA (permutations)"]).names == ["CoRA", "CoRA (permutations)"]


def test_what_cannot_be_compared_is_said_and_shown(runs):
    "Other repetitions, one question, a run that is not known: nothing in bold, and no error without `compare`."
    thrice = cn.evaluate(SimulatedRespondent(0.5, 0.2, name="thrice"), VARIANTS, cn.Asking(trials=2), progress=False)
    table = paper_table({"Ann": runs["Ann"], "thrice": thrice.pool_trials()})
    assert not table.best and any(line.startswith("Nothing in bold: ") for line in table.below)
    lost = put_in_state(runs["Bob"].table, range(0, 1200, 5), "failed", "timeout")
    open_ = Responses(lost, runs["Bob"].questions, runs["Bob"].facts, "lost")
    table = paper_table({"Ann": runs["Ann"], "Dan": runs["Dan"], "lost": open_}, ["MCQA"])
    assert not table.best and "–" in str(table.cells[2][0])  # it may be the best
    numbered = paper_table({1: runs["Ann"], 2: runs["Bob"]}, compare=1)
    assert [labels[1] for labels in numbered.rows][:2] == ["1", "2"]
    with pytest.raises(CoraError, match="two names of runs look the same"):
        paper_table({"x y": runs["Ann"], "x\ty": runs["Bob"]})


def test_a_label_is_no_command(runs):
    "The one text that reaches LaTeX as it is."
    two = {name: runs[name] for name in ("Ann", "Bob")}
    assert r"\label{tab:a.b-c_1}" in cn.render(paper_table(two, label="tab:a.b-c_1"), "latex")
    for label in (r"x}\input{secret}\label{y", "a b", "%", "\n", "a\n"):
        with pytest.raises(CoraError, match="a label has letters, digits and the signs"):
            paper_table(two, label=label)


def test_what_is_said_of_intervals_is_true(runs):
    "Nothing where there are none, and that estimates have their own level."
    two = {name: runs[name] for name in ("Ann", "Bob")}
    assert "intervals" not in cn.render(paper_table(two, interval=False))
    variants = cn.make_variants(math_benchmark(150, seed=1))
    early, full = SimulatedRespondent(0.6, 0.05, name="early"), SimulatedRespondent(0.9, name="full")
    part = cn.evaluate(early, variants, stop=Precise(half_width=0.08), progress=False)
    full = cn.evaluate(full, variants, progress=False)
    text = cn.render(paper_table([full, part], ["CoRA"], compare="full", level=0.5))
    assert "in brackets: 50% intervals, unless said otherwise" in text and "intervals of 95% in brackets" in text
    assert "\np: " not in text
    assert "in brackets: 50%" not in cn.render(paper_table([part], ["CoRA"], level=0.5))
    with pytest.raises(CoraError, match="this table has been printed already: give digits where it is made"):
        cn.render(paper_table(two), digits=4)


def test_settings_of_pandas_change_nothing(runs):
    table = paper_table({name: runs[name] for name in ("Ann", "Bob")}, compare="Ann", caption="x")
    plain = {format: cn.render(table, format) for format in ("text", "markdown", "latex", "html", "csv")}
    settings = ("styler.format.escape", "latex", "styler.latex.environment", "longtable", "display.multi_sparse", False)
    with pd.option_context(*settings, "display.max_colwidth", 5, "display.precision", 1):
        assert {format: cn.render(table, format) for format in plain} == plain


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX on this machine")
def test_a_table_of_three_models_fits_on_a_page(runs, tmp_path):
    "In the margins of a plain article."
    three = dict(zip(("Llama-3.1-8B", "Qwen2.5-7B", "Gemma-2-9B"), runs.values()))
    page = cn.render(paper_table(three, compare="Qwen2.5-7B", caption="Three models.", label="tab:a"), "latex")
    lines = [r"\documentclass{article}", r"\usepackage{booktabs}", r"\begin{document}", page, r"\end{document}"]
    (tmp_path / "t.tex").write_text("\n".join(lines), encoding="utf-8")
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "t.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=WITH_TORCH)
    assert done.returncode == 0 and "Overfull" not in done.stdout, done.stdout[-2000:]


def test_scores_by_name_and_published_numbers_need_responses():
    with pytest.raises(CoraError):
        paper_table({"a": sure({"MCQA": 0.5})})


def test_somebody_who_knows_all_has_all_and_a_guesser_a_quarter():
    table = paper_table({"x": cn.evaluate(SimulatedRespondent(1.0, name="x"), VARIANTS[:200], progress=False)})
    assert [cell.row["value"] for cell in table.cells[0]] == [1.0, 1.0, 1.0]
    assert np.isclose([cell.row["value"] for cell in table.cells[1]][0], 0.25)
