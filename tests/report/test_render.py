"Results in each format: the paper's layout, any other, and what odd names, unknown numbers and intervals come out as."

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
from table_readers import printed_table

from cora_nb.core import CoraError
from cora_nb.report.present import number_text, present
from cora_nb.report.render import _width, render
from cora_nb.report.tables import score_table
from cora_nb.results import RESULT, make_result
from helpers import slow_after


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
  BMCA(0.5)        0.83      0.65      0.80      0.63
  BMCA(0.6)        0.74      0.55      0.73      0.54
  BMCA(0.7)        0.65      0.46      0.66      0.44
  BMCA(0.8)        0.56      0.38      0.58      0.36
  BMCA(0.9)        0.47      0.28      0.50      0.27
  BMCA(1.0)        0.33      0.15      0.38      0.16
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
        r"\rlap{\textit{Baselines}} &  &  &  &  \\",
        r"\quad MCQA & 0.80 (2) & 0.72 (3) & 0.82 (1) & 0.64 (4) \\",
    ]
    assert r"\quad BMCA(0.5) & 0.94 & 0.84 & 0.92 & 0.82 \\" in lines
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    assert "multirow" not in "".join(lines)


def test_markdown_has_one_width_for_every_row():
    _, _, runs = published(4)
    lines = render(score_table(runs), "markdown").splitlines()
    assert lines[1] == "|:--|--:|--:|--:|--:|"
    assert {line.count("|") for line in lines} == {6}
    assert len(lines) == 2 + 11 + 3  # head and rule, scores, headings


def test_unknown_numbers():
    nan = float("nan")
    table = score_table(
        {"a": {"MCQA": nan, "CoRA": nan}, "b": {"MCQA": 0.5, "CoRA": None}, "c": {"MCQA": 0.6}, "d": {"MCQA": pd.NA}}
    )
    assert printed_table(table).to_numpy().tolist() == [["–", "0.50 (2)", "0.60 (1)", "–"], ["–"] * 4]
    assert "CoRA & -- & -- & -- & -- " in render(table, "latex")
    assert "| &nbsp;&nbsp;CoRA    | –" in render(table, "markdown")
    assert ">&#8211;</td>" in render(table, "html")
    back = pd.read_csv(io.StringIO(render(table, "csv"))).pivot(index="score", columns="respondent", values="value")
    assert back.loc["MCQA"].fillna(0).tolist() == [0, 0.5, 0.6, 0] and back.loc["CoRA"].isna().all()


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
        r"\quad MCQA & 0.87 [0.83, 0.89] (1) & 0.50 (3) & 0.70 [0.66, 0.72] (2) \\" in tex
        and r"\quad CI & 0.90 [0.86, 0.92] & 0.60 & -- \\" in tex
        and "{lccc}" in tex
    )
    assert "| 0.87 [0.83, 0.89] (1) | 0.50 (3) | 0.70 [0.66, 0.72] (2) |" in md and {
        line.count("|") for line in md.splitlines()
    } == {5}
    found = re.findall(r"<td[^>]*>(.*?)</td>", render(table, "html"))
    assert [unescape(cell) for cell in found] == sum(cells, [])
    rows = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    bounds = {(row["respondent"], row["score"]): [row[c] for c in ("value", "low", "high")] for row in rows}
    assert bounds["a", "MCQA"] == ["0.87", "0.83", "0.89"] and bounds["b", "MCQA"] == ["0.5", "", ""]
    assert bounds["c", "MCQA"] == ["0.7", "0.6599999999999999", "0.72"] and bounds["c", "CI"] == ["", "", ""]


@pytest.mark.slow
@given(st.lists(st.floats(0, 1) | st.just(math.nan), min_size=9, max_size=9))
def test_intervals_go_there_and_back(values):
    frame = pd.DataFrame(np.reshape(values, (3, 3)), index=["MCQA", "MV", "CI"], columns=["value", "low", "high"])
    table = score_table({"a": frame, "b": {"MCQA": 0.5}})
    pd.testing.assert_frame_equal(score_table(table), table)
    back = pd.read_csv(io.StringIO(render(table, "csv"))).set_index(["respondent", "score"])
    bounds = [c for c in ("value", "low", "high") if c in back]
    np.testing.assert_allclose(back.loc["a", bounds].reindex(frame.index), frame[bounds], rtol=1e-14)
    assert back.loc["b", "value"].reindex(frame.index).isna().tolist() == [False, True, True]
    assert back.loc[("b", "MCQA"), "value"] == 0.5 and frame.drop(columns=bounds).isna().all(axis=None)
    for cell, (v, low, high) in zip(printed_table(table, ranks=False)["a"], frame.to_numpy()):
        assert cell == (
            number_text(v)
            if any(math.isnan(x) for x in (v, low, high))
            else f"{number_text(v)} [{number_text(low)}, {number_text(high)}]"
        )


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
    assert _width(lines[1][: lines[1].index("two lines")]) == after


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


@pytest.mark.slow
@given(st.lists(st.floats(0, 1) | st.just(math.nan), min_size=3, max_size=3))
def test_csv_keeps_every_bit(values):
    table = score_table({"a,b": dict(zip(["MCQA", "CI", "CoRA"], values)), 'c"d\ne': {"MCQA": 1 / 3}})
    rows = list(csv.DictReader(io.StringIO(render(table, "csv", digits=1))))
    back = {(row["respondent"], row["score"]): float(row["value"] or "nan") for row in rows}
    assert all(back["a,b", s] == v or math.isnan(v) for s, v in zip(["MCQA", "CI", "CoRA"], values))
    assert back['c"d\ne', "MCQA"] == 1 / 3


@pytest.mark.parametrize("ci", slow_after(1, [None, 0.9]))
@pytest.mark.parametrize("format", ["text", "markdown", "latex", "html"])
def test_unlike_runs_are_not_ranked(simulated, format, ci):
    "Every format has the coverage at the number, no ranks, and one line for each difference; columns keep theirs."
    table = score_table({name: simulated[name] for name in ("a", "part", "half|_<b>")}, ci=ci, guesser=False)
    page = render(table, format)
    page = page.replace("\\_", "_").replace("\\|", "|")
    page = unescape(page).replace(r"\textbar{}", "|").replace(r"\textless{}", "<").replace(r"\textgreater{}", ">")
    assert not re.search(r"\d \(\d+\)", page)
    assert len(re.findall(r"\d\]? \(2 of 20 variants\)", page)) == len(SCORES) - 3  # not MCQA, and no CoRA, no CI
    for line in (
        "No ranks: part has 2 of 20 variants",
        "No ranks: part and a were asked different variants of the same questions",
        "No ranks: half|_<b> and a were asked different questions (10 and 20, 10 of them the same)",
    ):
        assert page.count(line) == 1
    assert table.loc[table["score"] == "CoRA", "value"].isna().tolist() == [False, True, False]
    pd.testing.assert_frame_equal(score_table(table), table)


def test_bad_format_is_refused():
    with pytest.raises(CoraError, match="format must be one of text, markdown, latex, csv, html, xlsx, got 'pdf'"):
        render(score_table({"a": {"MCQA": 0.5}}), "pdf")


# ---------------------------------------------------------------- results of other measures

NAN = math.nan
LONG = make_result(
    pd.DataFrame(
        [
            ("Ann", "original", 1, "picked", 0.26, 0.18, 0.36, NAN, ""),
            ("Ann", "original", 2, "picked", -0.001, -0.08, 0.08, NAN, ""),
            ("Ann", "original", None, "uneven", 0.08, NAN, NAN, 0.77, "df = 3"),
            ("Ann", "nota", 1, "picked", 0.25, 0.17, NAN, NAN, ""),
            ("Ann", "nota", None, "uneven", NAN, NAN, NAN, NAN, "one reply"),
            ("Bob", "original", 1, "picked", 0.41, 0.31, 0.52, NAN, "2 of 26 variants\nBob was asked in another way"),
            ("Bob", "original", None, "uneven", 19.52, NAN, NAN, 0.0002, "df = 3"),
            ("Bob", "original", None, "ratio", 1.5, 1.0, math.inf, 1.0, "\nBob was asked in another way"),
        ],
        columns=["respondent", "method", "place", "score", "value", "low", "high", "p", "note"],
    ),
    benchmark="math",
)
CELLS = [
    ["0.26 [0.18, 0.36]", "0.41 [0.31, 0.52] (2 of 26 variants)"],
    ["0.00 [-0.08, 0.08]", "–"],
    ["0.08, p = 0.77 (df = 3)", "19.52, p < 0.01 (df = 3)"],
    ["0.25", "–"],
    ["– (one reply)", "–"],
    ["–", "1.50 [1.00, inf], p = 1.00"],
]


def test_a_long_result_as_text():
    assert (
        render(LONG, caption="Places")
        == """\
Places
method                  place  score   Ann                      Bob
the original            1      picked  0.26 [0.18, 0.36]         0.41 [0.31, 0.52] (2 of 26 variants)
                        2      picked  0.00 [-0.08, 0.08]        –
                               uneven  0.08, p = 0.77 (df = 3)  19.52, p < 0.01 (df = 3)
with none of the above  1      picked  0.25                      –
                               uneven  – (one reply)             –
the original                   ratio   –                         1.50 [1.00, inf], p = 1.00

Bob was asked in another way"""
    )


def test_a_long_result_as_latex():
    lines = render(LONG, "latex", caption="Places").splitlines()
    assert lines[:8] == [
        r"\begin{table}[htbp]",
        r"\centering",
        r"\footnotesize\setlength{\tabcolsep}{4pt}",
        r"\caption{Places}",
        r"\begin{tabular}{lllcc}",
        r"\toprule",
        r"method & place & score & Ann & Bob \\",
        r"\midrule",
    ]
    assert lines[8] == r"the original & 1 & picked & 0.26 [0.18, 0.36] & 0.41 [0.31, 0.52] (2 of 26 variants) \\"
    assert lines[10] == r" &  & uneven & 0.08, p = 0.77 (df = 3) & 19.52, p \textless{} 0.01 (df = 3) \\"
    assert lines[12] == r" &  & uneven & -- (one reply) & -- \\"
    assert lines[-5:] == [
        r"\bottomrule",
        r"\end{tabular}",
        "",
        r"\noindent\parbox[t]{\linewidth}{\footnotesize\strut Bob was asked in another way\strut}",
        r"\end{table}",
    ]


def test_a_long_result_as_csv_is_the_result():
    text = render(LONG, "csv", digits=1, percent=True, ranks=False, caption="Places")
    head = [c for c in RESULT[:-1] if LONG[c].notna().any()] + ["note"]
    assert text.splitlines()[0] == ",".join(head)
    back = make_result(pd.read_csv(io.StringIO(text)))
    pd.testing.assert_frame_equal(back, LONG, check_dtype=False)
    without = pd.read_csv(io.StringIO(render(LONG, "csv", interval=False)))
    assert list(without) == [c for c in head if c not in ("low", "high")]
    old = pd.read_csv(io.StringIO(text)).drop(columns=["status", "least", "most"])  # as written by version 0.2
    pd.testing.assert_frame_equal(make_result(old), LONG, check_dtype=False)
    with pytest.raises(CoraError, match="digits"):
        render(LONG, "csv", digits=99)


def test_in_percent():
    "One decimal unless told otherwise; p is not in percent."
    row = {"value": 0.9367, "low": 0.9032, "high": 0.9602, "p": 0.0312}
    one = make_result([row], score="Acc")
    assert printed_table(one, percent=True).loc["Acc"].tolist() == ["93.7 [90.3, 96.0], p = 0.03"]
    assert printed_table(one, percent=True, digits=0).loc["Acc"].tolist() == ["94 [90, 96], p = 0.03"]
    assert printed_table(one, percent=True, digits=3).loc["Acc"].tolist() == ["93.670 [90.320, 96.020], p = 0.031"]
    assert printed_table(one, percent=True, interval=False).loc["Acc"].tolist() == ["93.7, p = 0.03"]
    for format in ("text", "markdown", "latex"):
        assert "93.7 [90.3, 96.0], p = 0.03" in render(one, format, percent=True)
    assert "93.7 [90.3, 96.0], p = 0.03" in render(one, "html", percent=True)
    assert render(one, "csv", percent=True) == render(one, "csv")
    two = score_table({"a": {"CoRA": 0.7512}, "b": {"CoRA": 0.7508}})  # ranks go by what is printed
    assert printed_table(two, percent=True).iloc[0].tolist() == ["75.1 (1)", "75.1 (1)"]
    assert printed_table(two, percent=True, digits=2).iloc[0].tolist() == ["75.12 (1)", "75.08 (2)"]


@pytest.mark.parametrize(
    "p, digits, said",
    [
        (0.03, 2, "p = 0.03"),
        (0.03, 0, "p = 0.03"),
        (0.0312, 3, "p = 0.031"),
        (0.005, 2, "p = 0.01"),
        (0.0049, 2, "p < 0.01"),
        (0.0049, 3, "p = 0.005"),
        (1e-300, 4, "p < 0.0001"),
        (0.0, 2, "p < 0.01"),
        (1.0, 2, "p = 1.00"),
    ],
)
def test_p_is_never_printed_as_zero(p, digits, said):
    one = make_result([{"score": "x", "value": 3.0, "p": p}])
    assert printed_table(one, digits=digits).iloc[0].tolist() == [f"{number_text(3.0, digits)}, {said}"]


def test_scores_of_the_paper_on_a_part_are_printed_row_by_row():
    "A method, subject or place makes another quantity of a score; two benchmarks are rows where each run has both."
    scores = make_result([{"score": s, "value": 0.5} for s in ("CI", "MCQA")], respondent="a")
    assert printed_table(scores).index.names == ["group", "score"]
    for column in ("method", "subject", "place"):
        found = printed_table(scores.assign(**{column: "x"}))
        assert found.index.name == "score" and found.index.tolist() == ["CI", "MCQA"]
    two = pd.concat([scores.assign(benchmark=b) for b in ("math", "law")])
    assert printed_table(two).index.tolist() == [(b, s) for b in ("math", "law") for s in ("CI", "MCQA")]


def test_runs_of_different_benchmarks_are_not_ranked():
    rows = [{"respondent": r, "benchmark": b, "score": "MCQA", "value": 0.5} for r, b in (("a", "math"), ("b", "la|w"))]
    assert render(make_result(rows)).splitlines() == [
        "           a     b",
        "Baselines",
        "  MCQA     0.50  0.50",
        "",
        "No ranks: the runs are of different benchmarks (math, la|w)",
    ]
    assert "(1)" in render(make_result(rows[:1] + [rows[1] | {"benchmark": None}]))  # nobody knows
    assert "(1)" in render(make_result(rows[:1] + [rows[1] | {"benchmark": "math"}]))


def test_a_difference_is_a_column_of_its_own():
    rows = [("steady", 0.8), ("skewed", 0.7), ("steady - skewed", 0.1)]
    found = make_result([{"respondent": r, "score": "S_c", "value": v, "p": NAN} for r, v in rows])
    assert printed_table(found).columns.tolist() == [name for name, _ in rows]
    assert printed_table(found).to_numpy().tolist() == [["0.80", "0.70", "0.10"]]


def test_differences_have_no_ranks():
    "A difference of a score that the paper ranks is no score."
    rows = [{"respondent": f"a - {who}", "score": "MCQA", "value": v, "p": 0.5} for who, v in (("b", 0.1), ("c", 0.2))]
    assert printed_table(make_result(rows)).iloc[0].tolist() == ["0.10, p = 0.50", "0.20, p = 0.50"]
    assert "(1)" not in make_result(rows)._repr_html_() and "Baselines" not in make_result(rows)._repr_html_()


def test_a_notebook_keeps_the_order_and_shows_n():
    "A frame that was sorted is shown as it was sorted; the paper's order and groups are for a table in that order."
    paper = make_result([{"score": s, "value": v, "n": 300} for s, v in (("MCQA", 0.5), ("CoRA", 0.25))])
    shown = paper._repr_html_()
    assert "Baselines" in shown and "<td>0.50</td>" in shown and "<td>300</td>" in shown
    turned = paper.sort_values("value")._repr_html_()
    assert turned.index("CoRA") < turned.index("MCQA") and "Baselines" not in turned and "<td>0.250</td>" in turned
    two = make_result([{"respondent": who, "score": "MCQA", "value": 0.5, "n": 300} for who in "ab"])
    assert "300" not in two._repr_html_()


HOSTILE = [
    *ODD,
    "a&b",
    "|",
    "$x$",
    "\x1b]0;title\x07",
    "\u202eabc",
    "cafe\u0301",
    "a\tb",
    "\\n",
    "</td>",
    "&lt;",
    "% c",
]


def hostile(column):
    "A result with a hostile text in each row: as a name, a place, a score or a note."
    rows = [{"method": "m", "place": 1, "score": "s", "value": i / 4, "p": 0.5} for i in range(len(HOSTILE))]
    varied = column if column != "note" else "place"
    for i, (row, text) in enumerate(zip(rows, HOSTILE)):
        row |= {varied: i} | {column: text}
    return make_result(rows) if column == "respondent" else make_result(rows, respondent="run")


def one_line(text):
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


@pytest.mark.parametrize("column", ["respondent", "method", "place", "subject", "score", "note"])
def test_no_text_breaks_a_format(column):
    result = hostile(column)
    below = [one_line(line) for text in HOSTILE for line in text.split("\n")[1:]] if column == "note" else []
    n = 1 if column == "respondent" else len(HOSTILE)
    text = render(result)
    assert len(text.split("\n")) == 1 + n + (1 + len(below) if below else 0)
    assert all(c.isprintable() for c in text.replace("\n", ""))
    markdown = render(result, "markdown")
    table = markdown.split("\n")[: 2 + n]
    assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table}) == 1
    assert "<" not in markdown and "\x1b" not in markdown and len(markdown.split("\n")) == 2 + n + 2 * len(below)
    latex = render(result, "latex")
    bare = re.sub(r"\\[\\&%$#_{}]", "", latex.replace(r"\textbackslash{}", ""))
    assert bare.count("{") == bare.count("}") and bare.count("$") % 2 == 0 and not set("%#_^~") & set(bare)
    rows = [line for line in latex.split("\n") if line.endswith(r"\\")]
    assert len(rows) == 1 + n and len({len(re.findall(r"(?<!\\)&", row)) for row in rows}) == 1
    assert not any(row.startswith(("[", "*")) for row in rows)
    page = render(result, "html")
    for raw in ("<script", "</td></td>", "\x1b", "\u202e", "&#8238;"):
        assert raw not in page
    assert page.count("<td") == page.count("</td>") == len(HOSTILE)


@pytest.mark.parametrize("column", ["respondent", "method", "place", "subject", "score", "note"])
def test_every_text_reads_back(column):
    result = hostile(column)
    mistune = pytest.importorskip("mistune", reason="needs mistune, which nbconvert brings")
    read = mistune.create_markdown(plugins=["table"], escape=False)
    for page in (read(render(result, "markdown")), render(result, "html")):
        page = unescape(re.sub(r"</?(table|thead|tbody|tr|th|td|p|style|caption|br)\b[^>]*>", "\n", page))
        for text in HOSTILE:
            shown = text.split("\n")[0] if column == "note" else text.replace("_", " ") if column == "method" else text
            assert one_line(shown) in page
    back = pd.read_csv(io.StringIO(render(result, "csv")), dtype={column: str}, keep_default_na=False)
    assert back[column].tolist() == HOSTILE


def test_wide_characters_keep_the_columns():
    rows = [
        {"method": m, "score": s, "value": 1, "note": m} for m, s in (("模型", "e\u0301"), ("b", "得点"), ("c", "x"))
    ]
    lines = render(make_result(rows)).splitlines()
    starts = {_width(line[: line.index("1.00")]) for line in lines[1:]} | {_width(lines[0][: lines[0].index("value")])}
    assert len(starts) == 1


@pytest.mark.parametrize(
    "result, says",
    [
        (pd.Series({"MCQA": 0.5}), "a result is needed, as from score or another measure, got a Series"),
        ({"a": {"MCQA": 0.5}}, "got a dict"),
        (None, "got a NoneType"),
        (pd.DataFrame({"MCQA": [0.5]}), "the columns of a result are"),
        (pd.DataFrame({"score": ["x"]}), "there is no column 'value'"),
        (make_result([]), "this result has no numbers to print"),
        (LONG.iloc[:0], "this result has no numbers to print"),
        (pd.concat([LONG, LONG]), "a result has two numbers for"),
        (make_result([{"place": p, "score": "x", "value": 1} for p in (1, "1")]), "two numbers of this result would"),
    ],
)
def test_what_is_no_result_is_refused_in_one_line(result, says):
    with pytest.raises(CoraError, match=re.escape(says)) as caught:
        render(result)
    assert "\n" not in str(caught.value)
    with pytest.raises(CoraError, match=re.escape(says)):
        present(result)
