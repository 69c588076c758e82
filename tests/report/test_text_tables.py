"""The same numbers, ranks, intervals and sentences in every format, whatever runs are called, read back.

Markdown is rendered by markdown-it, LaTeX read by a tokenizer that forgives nothing (and by a real LaTeX where there is
one), HTML by `html.parser`, a workbook by openpyxl.
"""

import csv
import io
import re
import shutil
import subprocess

import pytest
from helpers import WITH_TORCH, slow_after
from hypothesis import given, settings, strategies as st
from score_tables import published, sure
from table_readers import NASTY, latex_text, printed_table, read_html, read_latex, read_markdown, read_xlsx, shown

from cora_nb.report.present import number_text
from cora_nb.report.render import _latex, _markdown, _markdown_paragraph, render
from cora_nb.report.tables import score_table
from cora_nb.responses.files import from_csv_cell
from cora_nb.results import make_result
from cora_nb.variants.families import method_words

VALUES = {"MCQA": 0.735, "MCQA+": 0.62, "MV": 0.5, "BMCA(0.5)": 0.5, "BMCA(1.0)": 0.25, "CI": 0.515, "CoRA": 0.378525}


def without(run, name):
    return {score: value for score, value in run.items() if score != name}


def tables(simulated):
    "Tables with and without intervals, ranks, notes, and unknown numbers."
    runs = {"Ann": VALUES, "=B|o_b": {k: v / 2 for k, v in VALUES.items()}, "<c>": without(VALUES, "MV")}
    yield score_table(runs)
    yield score_table({name: sure(run) for name, run in runs.items()})
    yield score_table({"one": sure(VALUES)})
    yield score_table(published(2)[2])
    for ci in (None, 0.9):
        yield score_table({name: simulated[name] for name in ("a", "part", "half|_<b>")}, ci=ci)


@pytest.mark.slow
@pytest.mark.parametrize("digits", [0, 2, 4])
def test_the_same_numbers_in_every_format(simulated, digits):
    for table in tables(simulated):
        plain = printed_table(table, digits)
        cells, names = plain.to_numpy().tolist(), list(map(shown, plain))
        pages = {
            format: render(table, format, digits=digits) for format in ("text", "markdown", "latex", "html", "xlsx")
        }
        for format, read in (("markdown", read_markdown), ("latex", read_latex), ("html", read_html)):
            head, rows, below, _ = read(pages[format])
            numbers = [(labels, row) for labels, row in rows if any(row)]
            assert head == names and [row for _, row in numbers] == cells, format
            assert [label for (label,), _ in numbers] == [score for _, score in plain.index], format
            assert below == [line for line in pages["text"].partition("\n\n")[2].split("\n") if line], format
        head, rows, below = read_xlsx(pages["xlsx"], digits)
        assert head == names and [row for _, row in rows] == cells
        assert [labels for labels, _ in rows] == plain.index.tolist() and below == read_html(pages["html"])[2]
        text = pages["text"].partition("\n\n")[0].split("\n")[1:]
        text = [line for line in text if re.search(r"  ", line.strip())]
        assert [re.split(r"\s{2,}", line.strip())[1:] for line in text] == cells
        read = csv.DictReader(io.StringIO(render(table, "csv")))
        values = {(from_csv_cell(row["respondent"]), row["score"]): row["value"] for row in read}
        for name in plain:
            said = [re.split(r"[ ,]", cell)[0] for cell in printed_table(table, 2)[name]]
            known = [values[name, score] for _, score in plain.index]
            assert [number_text(float(v)) if v else "–" for v in known] == said


@pytest.mark.parametrize("name", slow_after(8, NASTY))
def test_a_nasty_name_is_the_same_in_every_format(name):
    "As a run, a score, a caption and a sentence below."
    note = f"\n{name} and Ann"
    result = score_table({name: {**VALUES, name: 0.5}, "Ann": {**VALUES, name: 0.25}}, beyond=True)
    result["note"] = note
    for format, read in (("markdown", read_markdown), ("latex", read_latex), ("html", read_html)):
        head, rows, below, caption = read(render(result, format, caption=name, below=[name]))
        assert head == [shown(name), "Ann"], format
        assert ((shown(name),), ["0.50", "0.25"]) in rows, format
        assert [line for line in below if line] == [*filter(None, [shown(name)]), *said_of(result)], format
        assert (caption or "") == shown(name), format
    if shown(name):
        head, rows, below = read_xlsx(render(result, "xlsx", caption=name, below=[name]))
        assert head == [shown(name), "Ann"] and rows[-1][0] == ("Beyond the paper", shown(name))
        assert below == [shown(name), shown(name), *said_of(result)]


def said_of(result):
    "The sentences below the plain text."
    return [line for line in render(result).partition("\n\n")[2].split("\n") if line]


names = st.lists(
    st.one_of(
        st.sampled_from(NASTY), st.text(max_size=12), st.text("|\\`*_[]<>&$#~^{}%=+-@'\",.:/!?\n\t ax1", max_size=12)
    ),
    min_size=1,
    max_size=4,
    unique_by=shown,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(names, st.booleans())
def test_any_names_are_the_same_in_every_format(runs, paper):
    if paper:
        result = score_table({name: sure(VALUES) for name in runs})
    else:
        rows = [{"method": m, "score": "x", "value": 0.5, "note": f"{m} of 2\n{m}!"} for m in runs]
        result = make_result(rows, respondent=runs[0])
    plain, heads = printed_table(result), 1 if paper or len(runs) == 1 else 2
    for format, read in (("markdown", read_markdown), ("latex", read_latex), ("html", read_html)):
        head, rows, below, _ = read(render(result, format), heads)
        assert head == list(map(shown, plain)), format
        assert [row for _, row in rows if any(row)] == plain.to_numpy().tolist(), format
        assert sorted(below) == sorted(line for line in said_of(result) if line), format
        if not paper and heads == 2:
            words = [method_words(m) for m in runs]
            words = words if len(set(words)) == len(words) else runs
            assert [labels[0] for labels, _ in rows] == list(map(shown, words)), format


@given(st.text())
def test_any_text_is_only_text(text):
    "In a paragraph and in a cell of Markdown, and in LaTeX."
    one = shown(text)
    assert latex_text(_latex(one)) == one
    page = f"| a |\n|:--|\n| {_markdown(one)} |\n\n{_markdown_paragraph(text)}"
    _, rows, below, _ = read_markdown(page, 0)
    assert rows == [((), [one])] and [line for line in below if line] == [one] * bool(one)


def test_the_readers_forgive_nothing():
    "A reader that takes anything would prove nothing."
    for wrong in ("a_b", "50%", "a & b", "x^2", "{", r"\foo", "a|b", "``", "''", '"'):
        with pytest.raises(AssertionError):
            latex_text(wrong)
    for wrong in ("<b>x</b>", '<td onclick="x">', "<p>", "<!-- x -->", "<script></script>", "text"):
        with pytest.raises((AssertionError, IndexError)):
            read_html(wrong)
    assert read_markdown("| a | b |\n|:--|--:|\n| *x* | 1 |".replace("*", r"\*"))[1] == [(("*x*",), ["1"])]
    with pytest.raises(AssertionError):
        read_markdown("| a | b |\n|:--|--:|\n| *x* | 1 |")


def latin(name):
    return all(ord(c) < 128 or c in "≥–é" for c in shown(name))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX on this machine")
def test_a_real_latex_compiles_it(tmp_path):
    "Every name in Latin letters, in one document, without an error."
    tables = [score_table({name: sure(VALUES), "Ann": VALUES}, beyond=True) for name in NASTY if latin(name)]
    pages = [render(t, "latex", caption=name, below=[name]) for t, name in zip(tables, filter(latin, NASTY))]
    lines = [r"\documentclass{article}", r"\usepackage{booktabs}", r"\begin{document}"]
    for page in pages:
        lines += [page, r"\clearpage"]
    (tmp_path / "t.tex").write_text("\n".join([*lines, r"\end{document}"]), encoding="utf-8")
    if subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True).returncode:
        pytest.skip("this LaTeX has no booktabs")
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "t.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=WITH_TORCH)
    assert done.returncode == 0, done.stdout[-2000:]
    assert f"({len(pages)} pages" in done.stdout
