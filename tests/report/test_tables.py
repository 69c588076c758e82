"Tables in the paper's layout: the published ranks, and what odd names, unknown numbers and ties come out as."

import csv
import io
import math
import re
from decimal import Decimal
from html import unescape

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.stats import rankdata

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import CoraError
from cora_nb.report.tables import (
    competition_ranks,
    notes,
    numbers as values_of,
    printed_table,
    render,
    score_table,
    shown,
    width,
)
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.responses import Runs
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

SCORES = ["MCQA", "MCQA+", "MV", "CoRA", *(f"BMCA({c})" for c in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)), "CI"]

# CoRA, Tables 1 to 4, as printed: four ranked rows, six thresholds, CI.
PUBLISHED = {
    1: """GPT4o MedL BioML BMist
0.85 (1) 0.74 (2) 0.73 (3) 0.38 (4)
0.90 (1) 0.69 (3) 0.75 (2) 0.58 (4)
0.91 (1) 0.73 (3) 0.77 (2) 0.58 (4)
0.74 (1) 0.32 (3) 0.42 (2) 0.28 (4)
0.91 0.75 0.80 0.61
0.89 0.67 0.73 0.49
0.86 0.57 0.66 0.40
0.84 0.49 0.60 0.33
0.79 0.34 0.46 0.22
0.73 0.18 0.31 0.11
0.88 0.44 0.58 0.73""",
    2: """Mist Llam Gran DSeek
0.64 (2) 0.58 (3) 0.65 (1) 0.52 (4)
0.75 (1) 0.62 (3) 0.75 (1) 0.60 (4)
0.78 (1) 0.61 (3) 0.76 (2) 0.58 (4)
0.44 (2) 0.33 (3) 0.47 (1) 0.33 (3)
0.83 0.65 0.80 0.63
0.74 0.55 0.73 0.54
0.65 0.46 0.66 0.44
0.56 0.38 0.58 0.36
0.47 0.28 0.50 0.27
0.33 0.15 0.38 0.16
0.69 0.57 0.73 0.64""",
    3: """Mist Llam Gran DSeek
0.80 (2) 0.72 (3) 0.82 (1) 0.64 (4)
0.90 (1) 0.73 (3) 0.89 (2) 0.73 (3)
0.92 (1) 0.81 (3) 0.91 (2) 0.78 (4)
0.58 (2) 0.25 (4) 0.65 (1) 0.38 (3)
0.94 0.84 0.92 0.82
0.90 0.78 0.88 0.73
0.84 0.69 0.84 0.64
0.80 0.53 0.80 0.53
0.70 0.32 0.73 0.42
0.52 0.07 0.61 0.23
0.72 0.35 0.79 0.59""",
    4: """Mist Llam Gran DSeek
0.41 (1) 0.41 (1) 0.34 (3) 0.34 (3)
0.49 (1) 0.49 (1) 0.39 (4) 0.40 (3)
0.45 (2) 0.47 (1) 0.35 (4) 0.37 (3)
0.28 (1) 0.27 (2) 0.25 (3) 0.24 (4)
0.48 0.51 0.36 0.40
0.40 0.40 0.30 0.31
0.33 0.31 0.25 0.23
0.25 0.22 0.19 0.17
0.16 0.14 0.14 0.11
0.09 0.08 0.09 0.05
0.68 0.67 0.75 0.71""",
}


def published(number):
    "(names, cells as printed, runs as a caller would hand them over: scores in another order)."
    head, *lines = PUBLISHED[number].splitlines()
    cells = [re.findall(r"\d\.\d\d(?: \(\d\))?", line) for line in lines]
    runs = {
        name: pd.Series([float(row[i][:4]) for row in cells], index=SCORES)[sorted(SCORES)]
        for i, name in enumerate(head.split())
    }
    return head.split(), cells, runs


@pytest.mark.parametrize("number", PUBLISHED)
def test_published_numbers_and_ranks(number):
    names, cells, runs = published(number)
    table = score_table(runs)
    assert list(table.columns) == names
    assert table.index.get_level_values("score").tolist() == SCORES
    assert printed_table(table).to_numpy().tolist() == cells


def test_text_has_the_layout_of_table_2():
    _, _, runs = published(2)
    assert (
        render(score_table(runs), "text", caption="Table 2: Results on MMLU dataset.")
        == """\
Table 2: Results on MMLU dataset.
                   Mist      Llam      Gran      DSeek
Baselines
  MCQA             0.64 (2)  0.58 (3)  0.65 (1)  0.52 (4)
  MCQA+            0.75 (1)  0.62 (3)  0.75 (1)  0.60 (4)
  MV               0.78 (1)  0.61 (3)  0.76 (2)  0.58 (4)
Proposed metric
  CoRA             0.44 (2)  0.33 (3)  0.47 (1)  0.33 (3)
Secondary metrics
  BMCA(c)
    c >= 0.5       0.83      0.65      0.80      0.63
    c >= 0.6       0.74      0.55      0.73      0.54
    c >= 0.7       0.65      0.46      0.66      0.44
    c >= 0.8       0.56      0.38      0.58      0.36
    c >= 0.9       0.47      0.28      0.50      0.27
    c >= 1.0       0.33      0.15      0.38      0.16
  CI               0.69      0.57      0.73      0.64"""
    )


def test_latex_has_the_layout_of_table_3():
    _, _, runs = published(3)
    lines = render(score_table(runs), "latex").splitlines()
    assert lines[:6] == [
        r"\begin{tabular}{lcccc}",
        r"\toprule",
        r" & Mist & Llam & Gran & DSeek \\",
        r"\midrule",
        r"\textit{Baselines} &  &  &  &  \\",
        r"MCQA & 0.80 (2) & 0.72 (3) & 0.82 (1) & 0.64 (4) \\",
    ]
    assert r"\quad c $\geq$ 0.5 & 0.94 & 0.84 & 0.92 & 0.82 \\" in lines
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    assert "multirow" not in "".join(lines)


def test_markdown_has_one_width_for_every_row():
    _, _, runs = published(4)
    lines = render(score_table(runs), "markdown").splitlines()
    assert lines[1] == "|:--|--:|--:|--:|--:|"
    assert {line.count("|") for line in lines} == {6}
    assert len(lines) == 2 + 11 + 4  # head and rule, scores, headings


def test_a_new_run_changes_the_ranks_of_the_others():
    _, _, runs = published(3)
    runs["best"] = pd.Series(1.0, index=SCORES)
    assert printed_table(score_table(runs)).iloc[0].tolist() == [
        "0.80 (3)",
        "0.72 (4)",
        "0.82 (2)",
        "0.64 (5)",
        "1.00 (1)",
    ]


numbers = st.floats(-2, 2) | st.sampled_from([0.745, 0.7449, 0.7451, 0.735, 0.125, 0.5, 0.005, 0.0, -0.0, math.nan])


@given(st.lists(numbers, max_size=12), st.integers(0, 6))
def test_ranks_are_those_of_scipy_on_the_printed_numbers(values, digits):
    ranks = competition_ranks(values, digits)
    known = [(float(shown(v, digits)), r) for v, r in zip(values, ranks) if not math.isnan(v)]
    assert [r is None for r in ranks] == [math.isnan(v) for v in values]
    assert [r for _, r in known] == rankdata([-p for p, _ in known], method="min").tolist()


@given(st.lists(numbers, min_size=2, max_size=8), st.integers(0, 6))
def test_equal_texts_have_equal_ranks_and_no_others_have(values, digits):
    texts, ranks = [shown(v, digits) for v in values], competition_ranks(values, digits)
    for a, rank_a in zip(texts, ranks):
        for b, rank_b in zip(texts, ranks):
            assert (a == b) == (rank_a == rank_b)


@given(st.floats(-2, 2), st.integers(1, 15))
def test_shown_is_the_nearest_decimal(value, digits):
    text = shown(np.float64(value), digits)
    assert len(text.split(".")[1]) == digits
    assert abs(Decimal(text) - Decimal(value)) * 2 <= Decimal(1).scaleb(-digits)
    assert not re.fullmatch(r"-0\.0*", text)


def test_ties_hang_on_the_digits():
    runs = {"a": {"MCQA": 0.751}, "b": {"MCQA": 0.749}, "c": {"MCQA": 0.62}}
    assert printed_table(score_table(runs)).iloc[0].tolist() == ["0.75 (1)", "0.75 (1)", "0.62 (3)"]
    assert printed_table(score_table(runs), digits=4).iloc[0].tolist() == ["0.7510 (1)", "0.7490 (2)", "0.6200 (3)"]


def test_unknown_numbers():
    nan = float("nan")
    table = score_table(
        {"a": {"MCQA": nan, "CoRA": nan}, "b": {"MCQA": 0.5, "CoRA": None}, "c": {"MCQA": 0.6}, "d": {"MCQA": pd.NA}}
    )
    assert printed_table(table).to_numpy().tolist() == [["–", "0.50 (2)", "0.60 (1)", "–"], ["–"] * 4]
    assert "CoRA & -- & -- & -- & -- " in render(table, "latex")
    assert "| CoRA                | –" in render(table, "markdown")
    assert ">–</td>" in render(table, "styler").to_html()
    assert render(table, "csv").splitlines() == [
        "group,score,a,b,c,d",
        "Baselines,MCQA,,0.5,0.6,",
        "Proposed metric,CoRA,,,,",
    ]


def sure(scores, width=0.04):
    "As from `score(responses, ci=0.95)`."
    value = pd.Series(scores, dtype=float)
    return pd.DataFrame({"value": value, "low": value - width, "high": value + width / 2})


def test_intervals_stand_behind_the_number_and_before_the_rank():
    table = score_table(
        {
            "a": sure({"MCQA": 0.87, "CI": 0.9}),
            "b": pd.Series({"MCQA": 0.5, "CI": 0.6}),
            "c": sure({"MCQA": 0.7, "CI": math.nan}),
        }
    )
    cells = [["0.87 [0.83, 0.89] (1)", "0.50 (3)", "0.70 [0.66, 0.72] (2)"], ["0.90 [0.86, 0.92]", "0.60", "–"]]
    assert printed_table(table).to_numpy().tolist() == cells
    assert printed_table(table).columns.tolist() == ["a", "b", "c"]
    text, tex, md = (render(table, f) for f in ("text", "latex", "markdown"))
    assert "MCQA             0.87 [0.83, 0.89] (1)  0.50 (3)  0.70 [0.66, 0.72] (2)" in text
    assert (
        r"MCQA & 0.87 [0.83, 0.89] (1) & 0.50 (3) & 0.70 [0.66, 0.72] (2) \\" in tex
        and r"CI & 0.90 [0.86, 0.92] & 0.60 & -- \\" in tex
        and "{lccc}" in tex
    )
    assert "| 0.87 [0.83, 0.89] (1) | 0.50 (3) | 0.70 [0.66, 0.72] (2) |" in md and {
        line.count("|") for line in md.splitlines()
    } == {5}
    assert re.findall(r"<td[^>]*>(.*?)</td>", render(table, "styler").to_html()) == sum(cells, [])
    rows = list(csv.reader(io.StringIO(render(table, "csv"))))
    assert rows[0] == ["group", "score", "a", "a low", "a high", "b", "b low", "b high", "c", "c low", "c high"]
    assert rows[1][2:] == ["0.87", "0.83", "0.89", "0.5", "", "", "0.7", "0.6599999999999999", "0.72"] and rows[2][
        -3:
    ] == ["", "", ""]


@pytest.mark.parametrize("format", ["text", "markdown", "latex", "csv", "styler"])
def test_intervals_can_be_left_out(format):
    runs = {"a": {"MCQA": 0.87, "MV": 0.8}, "b": {"MCQA": 0.7, "MV": 0.9}}
    plain, rich = score_table(runs), score_table({name: sure(run) for name, run in runs.items()})
    pages = [render(plain, format), render(rich, format, interval=False)]
    if format == "styler":
        pages = [page.to_html() for page in pages]
    assert pages[0] == pages[1] != (render(rich, format).to_html() if format == "styler" else render(rich, format))
    pd.testing.assert_frame_equal(values_of(rich), plain)
    np.testing.assert_allclose(values_of(rich, "low"), plain - 0.04)
    assert values_of(plain, "high").isna().all(axis=None)


def test_a_table_without_a_known_interval_is_plain():
    nothing = sure({"MCQA": 0.5}).assign(low=np.nan, high=np.nan)
    assert (
        score_table({"a": nothing}).columns.tolist() == ["a"] == score_table({"a": nothing[["value"]]}).columns.tolist()
    )
    assert score_table({"a": sure({"MCQA": 0.5, "RC": 0.5})}, beyond=True).shape == (2, 3)


@given(st.lists(st.floats(0, 1) | st.just(math.nan), min_size=9, max_size=9))
def test_intervals_go_there_and_back(values):
    frame = pd.DataFrame(np.reshape(values, (3, 3)), index=["MCQA", "MV", "CI"], columns=["value", "low", "high"])
    table = score_table({"a": frame, "b": {"MCQA": 0.5}})
    pd.testing.assert_frame_equal(score_table(table.droplevel("group")), table)
    back = pd.read_csv(io.StringIO(render(table, "csv")), index_col=["group", "score"])
    np.testing.assert_allclose(back.to_numpy(float), table.to_numpy(), rtol=1e-14)
    for cell, (v, low, high) in zip(printed_table(table, ranks=False)["a"], frame.to_numpy()):
        assert cell == (
            shown(v) if any(math.isnan(x) for x in (v, low, high)) else f"{shown(v)} [{shown(low)}, {shown(high)}]"
        )


def test_scores_with_intervals_come_from_score():
    from cora_nb.metrics.cora import score

    rng = np.random.default_rng(0)
    rows = [(f"q{i}", m, rng.random() < 0.7) for i in range(40) for m in ("original", "nota")]
    table = pd.DataFrame(rows, columns=["question_id", "method", "correct"]).assign(trial=0)
    scores = score(table, ci=0.95, resamples=300)
    made = score_table({"with": scores, "without": score(table), "responses": table})
    assert made.droplevel("group").loc["MCQA", "with"].tolist() == scores.loc["MCQA"].tolist()
    assert (
        made.droplevel("group").loc["MCQA"][[("without", "value"), ("responses", "value")]].tolist()
        == [scores.loc["MCQA", "value"]] * 2
    )


def test_one_run_has_no_ranks():
    _, _, runs = published(3)
    table = score_table({"Gran": runs["Gran"]})
    assert printed_table(table).iloc[:, 0].tolist()[:4] == ["0.82", "0.89", "0.91", "0.65"]
    for format in ("text", "markdown", "latex"):
        assert "(1)" not in render(table, format)
    assert "(1)" not in render(table, "styler").to_html()


def test_ranks_can_be_left_out():
    _, _, runs = published(3)
    for format in ("text", "markdown", "latex"):
        assert "(1)" not in render(score_table(runs), format, ranks=False)


def test_beyond_the_paper_and_other_thresholds():
    run = pd.Series({"CORE": 0.1, "BMCA(1.0)": 0.2, "BMCA(0.25)": 0.6, "MCQA": 0.5, "RC": 0.4})
    assert score_table({"a": run}).index.tolist() == [
        ("Baselines", "MCQA"),
        ("Secondary metrics", "BMCA(0.25)"),
        ("Secondary metrics", "BMCA(1.0)"),
    ]
    assert score_table({"a": run}, beyond=True).index.tolist()[3:] == [
        ("Beyond the paper", "CORE"),
        ("Beyond the paper", "RC"),
    ]
    assert "c >= 0.25" in render(score_table({"a": run}))


ODD = [
    "a|b",
    "<script>alert(1)</script>",
    "x_y & z%",
    "模型",
    "two\nlines",
    "\x1b[31mred",
    r"back\slash",
    "{#$^~}",
    "*star*",
    "[link](x)",
    "\\\\",
    '"q"',
    "`c`",
]


def odd_table():
    return score_table({name: {"MCQA": i / 20, "[x] | <b>": 0.5, "*y": 0.1} for i, name in enumerate(ODD)}, beyond=True)


def test_text_stays_aligned():
    lines = render(odd_table(), "text", caption="a\nb").splitlines()
    assert lines[0] == "a b"
    assert len(lines) == 1 + 1 + 2 + 3
    assert "\x1b" not in "".join(lines)
    start = lines[3].index("0.05 (12)")  # MCQA of the second run
    assert lines[1][start:].startswith("<script>")
    after = lines[3].index("0.20 (9)")  # the run after the wide name, which takes four columns and has two characters
    assert width(lines[1][: lines[1].index("two lines")]) == after


def test_markdown_is_escaped():
    lines = render(odd_table(), "markdown", caption="# <b> | c").splitlines()
    assert lines[0] == r"**# &lt;b&gt; \| c**"
    cells = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines[2:]]
    assert set(cells) == {len(ODD) + 2}
    assert "<" not in "".join(lines)
    assert r"a\|b" in lines[2] and r"\*star\*" in lines[2] and r"\[link\](x)" in lines[2] and r"back\\slash" in lines[2]


def test_markdown_reads_back_as_it_was():
    mistune = pytest.importorskip("mistune", reason="needs mistune, which nbconvert brings")
    page = mistune.create_markdown(plugins=["table"], escape=False)(render(odd_table(), "markdown"))
    heads = re.findall(r"<th(?: [^>]*)?>(.*?)</th>", page, flags=re.DOTALL)
    assert [unescape(h) for h in heads] == [
        "",
        *("".join(c if c.isprintable() else " " for c in name).strip() for name in ODD),
    ]


def test_latex_is_escaped():
    text = render(odd_table(), "latex", caption="50% & {more}")
    bare = re.sub(r"\\[\\&%$#_{}]", "", text)  # what is left are the marks of LaTeX itself
    assert bare.count("{") == bare.count("}")
    assert (
        bare.count("$") % 2 == 0
        and "%" not in bare
        and "#" not in bare
        and "_" not in bare
        and "^" not in bare
        and "~" not in bare
    )
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(ODD)}
    assert not any(row.startswith(("[", "*")) for row in rows)  # would be an argument of the line break before
    assert r"\caption{50\% \& \{more\}}" in text and r"\begin{table}[htbp]" in text
    assert text.count(r"\begin{") == text.count(r"\end{") == 2


def test_styler_is_escaped_repeatable_and_still_numeric():
    table = odd_table()
    page = render(table, "styler", caption="<i>").to_html()
    assert "<script" not in page and "&lt;script&gt;" in page and "<b>" not in page and "<i>" not in page
    assert page == render(table, "styler", caption="<i>").to_html()
    assert "0.60 (1)" in page and "0.05 (12)" in page
    assert "font-weight: bold" in render(table, "styler").highlight_max(axis=1, props="font-weight: bold").to_html()


def test_styler_shows_what_the_text_shows():
    _, cells, runs = published(2)
    page = render(score_table(runs), "styler").to_html()
    assert re.findall(r"<td[^>]*>(.*?)</td>", page) == [cell for row in cells for cell in row]
    assert "BMCA(c ≥ 0.5)" in page


@given(st.lists(st.floats(0, 1) | st.just(math.nan), min_size=3, max_size=3))
def test_csv_keeps_every_bit(values):
    table = score_table({"a,b": dict(zip(["MCQA", "CI", "CoRA"], values)), 'c"d\ne': {"MCQA": 1 / 3}})
    head, *rows = csv.reader(io.StringIO(render(table, "csv", digits=1)))
    assert head == ["group", "score", "a,b", 'c"d\ne']
    back = {score: float(cell or "nan") for _, score, cell, _ in rows}
    assert all(back[s] == v or math.isnan(v) for s, v in zip(["MCQA", "CI", "CoRA"], values))
    assert float(rows[0][3]) == 1 / 3


@given(st.lists(st.text(max_size=8), min_size=1, max_size=4, unique=True))
def test_no_name_breaks_a_format(names):
    table = score_table({name: {"MCQA": 0.5, "BMCA(0.5)": 0.5, "CI": 1.0} for name in names})
    assert len(render(table, "text").split("\n")) == 1 + 2 + 4
    assert len(render(table, "markdown").split("\n")) == 2 + 2 + 4
    latex = [line for line in render(table, "latex").split("\n") if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in latex} == {len(names)}
    render(table, "styler").to_html()


def test_responses_are_scored_on_the_way():
    from cora_nb.metrics import cora as metrics

    rows = [
        ("q1", "original", 0, True),
        ("q1", "shuffled", 0, True),
        ("q2", "original", 0, True),
        ("q2", "shuffled", 0, False),
    ]
    responses = pd.DataFrame(rows, columns=["question_id", "method", "index", "correct"]).assign(
        subject=None, family="cora", trial=0, n_choices=4, answer=0, confidence=np.nan, reply=None, error=None
    )
    responses["prediction"] = np.where(responses.correct, 0, 1)
    responses["sources"] = [[0, 1, 2, 3]] * 4
    responses["scores"] = None
    table = score_table({"run": responses})
    expected = metrics.score(responses)
    found = values_of(table).droplevel("group")["run"]
    part = {"CI", "CoRA"}  # two of twenty variants are no divergence set
    assert found.drop(list(part)).to_dict() == pytest.approx({s: expected[s] for s in SCORES if s not in part})
    assert found[list(part)].isna().all()
    assert values_of(table, "coverage")["run"].tolist() == [""] + ["2 of 20 variants"] * (len(SCORES) - 1)
    assert render(table).splitlines()[-1] == "run has 2 of 20 variants"
    responses = responses.drop(columns="family")  # nobody knows what the set is
    whole, expected = score_table({"run": responses}), metrics.score(responses)
    assert whole.droplevel("group")["run"].to_dict() == pytest.approx({s: expected[s] for s in SCORES}, nan_ok=True)


@pytest.fixture(scope="module")
def simulated():
    "Runs of one benchmark: two complete ones, the originals and shuffles of one, half of the questions."
    variants = make_variants(load_benchmark("math")[:20])
    a, b = (evaluate(SimulatedRespondent(name=n, seed=i), variants, progress=False) for i, n in enumerate("ab"))
    part = b.rows(b.table["method"].isin(["original", "shuffled"]))
    half = evaluate(SimulatedRespondent(name="half|_<b>"), variants[:200], progress=False)
    return {"a": a, "b": b, "part": part, "half|_<b>": half}


def test_whatever_runs_can_be_made_of(simulated):
    "Runs, a mapping, a sequence, one value, its table: the same table."
    two = {name: simulated[name] for name in "ab"}
    expected = score_table(two)
    assert expected.columns.tolist() == ["a", "b"] and "(1)" in render(expected)
    for runs in (Runs(two), list(two.values()), {name: run.table for name, run in two.items()}):
        pd.testing.assert_frame_equal(score_table(runs), expected)
    for one in (simulated["a"], simulated["a"].table, [simulated["a"]]):
        pd.testing.assert_frame_equal(score_table(one), expected[["a"]])
    sure = score_table(two, ci=0.9)
    assert values_of(sure).equals(expected) and values_of(sure, "low").notna().all(axis=None)


@pytest.mark.parametrize("ci", [None, 0.9])
@pytest.mark.parametrize("format", ["text", "markdown", "latex", "styler"])
def test_unlike_runs_are_not_ranked(simulated, format, ci):
    "Every format has the coverage at the number, no ranks, and one line for each difference; columns keep theirs."
    table = score_table({name: simulated[name] for name in ("a", "part", "half|_<b>")}, ci=ci)
    page = render(table, format)
    page = unescape(page.to_html()) if format == "styler" else page.replace("\\_", "_").replace("\\|", "|")
    page = unescape(page).replace(r"\textbar{}", "|").replace(r"\textless{}", "<").replace(r"\textgreater{}", ">")
    assert not re.search(r"\d \(\d+\)", page)
    assert len(re.findall(r"\d\]? \(2 of 20 variants\)", page)) == len(SCORES) - 3  # not MCQA, and no CoRA, no CI
    for line in (
        "No ranks: part has 2 of 20 variants",
        "No ranks: part and a were asked different variants of the same questions",
        "No ranks: half|_<b> and a were asked different questions (10 and 20, 10 of them the same)",
    ):
        assert page.count(line) == 1
    assert values_of(table).loc[("Proposed metric", "CoRA")].isna().tolist() == [False, True, False]
    again = score_table(table.droplevel("group"))
    pd.testing.assert_frame_equal(again, table)
    assert notes(table[["a", "part"]]) == notes(table)[:2] and notes(table[["part"]]) == [
        "part has 2 of 20 variants",
        "part and a were asked different variants of the same questions",
    ]


def test_unlike_runs_in_csv(simulated):
    table = score_table({name: simulated[name] for name in ("a", "part")}, ci=0.9)
    for interval in (True, False):
        read = pd.read_csv(
            io.StringIO(render(table, "csv", interval=interval)), index_col="score", keep_default_na=False
        )
        low = ["part low", "part high"] if interval else []
        assert [c for c in read if c.startswith("part")] == ["part", *low, "part coverage", "part note"]
        assert read["part coverage"].tolist() == [""] + ["2 of 20 variants"] * (len(SCORES) - 1)
        assert read["part note"].unique().tolist() == ["part and a were asked different variants of the same questions"]


def test_published_numbers_beside_responses_are_ranked(simulated):
    "Scores by name say nothing of what was asked; the reader knows what he lays side by side."
    table = score_table({"a": simulated["a"], "printed": {"MCQA": 0.1}})
    assert printed_table(table).loc[("Baselines", "MCQA")].tolist()[1] == "0.10 (2)"
    table = score_table({"printed": {"MCQA": 0.1}, "part": simulated["part"]})
    assert printed_table(table).loc[("Baselines", "MCQA")].tolist()[0] == "0.10"


@pytest.mark.parametrize(
    "runs, says",
    [
        ({"a": {"MCQA": "x"}}, "run 'a': the score 'MCQA' must be a finite number, got 'x'"),
        ({"a": {"MCQA": -math.inf}}, "got -inf"),
        ({"a": {"MCQA": [0.5]}}, "must be a finite number, got [0.5]"),
        ({"a": [0.5]}, "run 'a': scores by name or responses are needed, got a list"),
        ({"a": None}, "got a NoneType"),
        ({"a": pd.Series([0.5, 0.6], index=["MCQA", "MCQA"])}, "the score 'MCQA' occurs twice"),
        (
            {"a": pd.DataFrame({"value": [0.5], "low": [0.4]}, index=["MCQA"])},
            "run 'a': scores have the columns value, low and high, and a responses table has question_id; "
            "got value, low",
        ),
        (
            {"a": pd.DataFrame({"value": [0.5], "low": [-math.inf], "high": [1]}, index=["MCQA"])},
            "run 'a': the score 'MCQA, low' must be a finite number, got -inf",
        ),
        ({"a": pd.DataFrame({"value": [0.5, 0.5]}, index=["MCQA", "MCQA"])}, "the score 'MCQA' occurs twice"),
        ({"a": {"CORE": 0.5}}, "nothing to show: no run among ['a'] has a score of the table"),
        ({}, "nothing to show"),
        ({1: {"MCQA": 1}, "1": {"MCQA": 1}}, "two runs have the same name"),
        (pd.DataFrame([[0.5, 0.5]], index=["MCQA"], columns=["a", "a"]), "two runs have the same name"),
        (pd.DataFrame({"question_id": ["q1"]}), "the responses have no column method"),
        ([{"MCQA": 0.5}], "must be given by name"),
        (pd.Series({"MCQA": 0.5}), "must be given by name"),
    ],
)
def test_bad_runs_are_refused_in_one_line(runs, says):
    with pytest.raises(CoraError, match=re.escape(says)) as caught:
        score_table(runs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("digits", [-1, 16, 2.0, "2", None, True])
@pytest.mark.parametrize("format", ["text", "csv", "styler"])
def test_bad_digits_are_refused(digits, format):
    with pytest.raises(CoraError, match="digits must be a whole number from 0 to 15"):
        render(score_table({"a": {"MCQA": 0.5}}), format, digits=digits)


def test_bad_format_is_refused():
    with pytest.raises(CoraError, match="format must be one of text, markdown, latex, csv, styler, got 'html'"):
        render(score_table({"a": {"MCQA": 0.5}}), "html")
