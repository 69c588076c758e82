"Score tables in each format: the paper's layout, and what odd names, unknown numbers and intervals come out as."

import csv
import io
import math
import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from score_tables import SCORES, published, sure

from cora_nb.core import CoraError
from cora_nb.report.render import render, width
from cora_nb.report.tables import notes, numbers as values_of, printed_table, score_table, shown


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


def test_ranks_can_be_left_out():
    _, _, runs = published(3)
    for format in ("text", "markdown", "latex"):
        assert "(1)" not in render(score_table(runs), format, ranks=False)


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


@pytest.mark.parametrize("digits", [-1, 16, 2.0, "2", None, True])
@pytest.mark.parametrize("format", ["text", "csv", "styler"])
def test_bad_digits_are_refused(digits, format):
    with pytest.raises(CoraError, match="digits must be a whole number from 0 to 15"):
        render(score_table({"a": {"MCQA": 0.5}}), format, digits=digits)


def test_bad_format_is_refused():
    with pytest.raises(CoraError, match="format must be one of text, markdown, latex, csv, styler, got 'html'"):
        render(score_table({"a": {"MCQA": 0.5}}), "html")
