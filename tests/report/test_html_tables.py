"A table as a page: what a screen reader is told, what stands alone, what no name can break."

import re

import pytest
from hypothesis import given, settings, strategies as st
from score_tables import published, sure
from table_readers import NASTY, Marks, read_html, shown

from cora_nb.report.render import html_page, render
from cora_nb.report.tables import score_table
from cora_nb.results import make_result


def test_the_layout_of_table_2():
    head, rows, below, caption = read_html(render(score_table(published(2)[2]), "html", caption="Table 2"))
    assert head == ["Mist", "Llam", "Gran", "DSeek"] and caption == "Table 2" and not below
    assert rows[0] == (("MCQA",), ["0.64 (2)", "0.58 (3)", "0.65 (1)", "0.52 (4)"])
    assert [label for (label,), _ in rows][3:6] == ["CoRA", "BMCA(c ≥ 0.5)", "BMCA(c ≥ 0.6)"]


def test_every_heading_says_what_it_is_the_heading_of():
    page = render(score_table({"a": {"MCQA": 0.5, "CoRA": 0.4}, "b": {"MCQA": 0.6, "CoRA": 0.3}}), "html")
    assert re.findall(r'<th scope="(\w+)"', page) == ["col"] * 2 + ["rowgroup", "row"] * 2
    assert page.count("<tbody>") == 2 and 'colspan="3">Baselines' in page
    long = make_result([{"method": m, "score": "x", "value": 0.5} for m in "ab"])
    page = render(long, "html")
    assert re.findall(r'<th scope="(\w+)"', page) == ["col"] * 3 + ["row"] * 4 and page.count("<tbody>") == 1
    assert ">a</th>" in page and ">b</th>" in page


def test_what_is_below_describes_the_table():
    page = render(score_table({"a": {"MCQA": 0.5}}), "html", below=["in brackets: 95% intervals"])
    (id,) = re.findall(r'aria-describedby="([\w-]+)"', page)
    assert f'<div id="{id}">\n<p>in brackets: 95% intervals</p>\n</div>' in page
    other = render(score_table({"b": {"MCQA": 0.5}}), "html", below=["in brackets: 95% intervals"])
    assert id not in other  # both may stand on one page
    assert page == render(score_table({"a": {"MCQA": 0.5}}), "html", below=["in brackets: 95% intervals"])
    assert "aria-describedby" not in render(score_table({"a": {"MCQA": 0.5}}), "html")
    assert 'aria-label="Table"' in page
    assert 'aria-label="x &quot;y&quot;"' in render(score_table({"a": {"MCQA": 0.5}}), "html", caption='x "y"')


def test_a_page_needs_nothing_else():
    "No scripts, no addresses, nothing but ASCII, colours of the page around it."
    runs = {name: sure({"MCQA": 0.5, "CoRA": 0.4}) for name in ("模型", "a≥b", "<script src=//x>")}
    fragment = render(score_table(runs), "html", caption="ä", below=["–"])
    page = html_page(fragment, "ä <b>")
    assert page.isascii() and page.startswith("<!doctype html>") and fragment in page
    assert "<title>&#228; &lt;b&gt;</title>" in page and "color-scheme: light dark" in page
    marks = set(re.findall(r"<(\w+)", page)) - Marks.ALLOWED
    assert marks == {"html", "head", "meta", "title", "body"}
    style = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    assert not re.search(r"url|@|https?:|#[0-9a-f]{3}|[ {;](color|background): (?!inherit|none)\w", style)
    assert not re.search(r"\b(?:href|src|on\w+)=", re.sub(r"&lt;.*?&gt;", "", page))


def test_a_long_name_may_break():
    page = render(score_table({"n" * 300: {"MCQA": 0.5}, "lab/some-model_v1:2": {"MCQA": 0.5}}), "html")
    assert page.count("n" * 20 + "<wbr>") == 14 and "n" * 21 not in page
    assert "lab/<wbr>some-<wbr>model_<wbr>v1:<wbr>2" in page


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(*[st.sampled_from(NASTY) | st.text(max_size=6)] * 3), min_size=1, max_size=4, unique=True),
    st.text(),
)
def test_any_text_is_only_text(rows, caption):
    "Every reader gives back the labels as they are shown, and the caption."
    result = make_result(
        [{"method": m, "subject": s, "score": x, "value": 0.5, "note": m} for m, s, x in rows], respondent=caption
    )
    page = render(result, "html", caption=caption, below=[caption])
    assert page.isascii()
    found = Marks(page)
    assert (found.caption or "") == shown(caption) and found.lines[0] == shown(caption)
    heads = len(found.rows[0]) - 1
    texts = [cell for row in found.rows[1:] for cell in row[:heads]]
    if found.rows[0][0]:  # not a table of the paper
        assert sum(shown(x) in texts for *_, x in rows) == len(rows)


@pytest.mark.parametrize("name", ["pandas", "bs4"])
def test_others_read_it(name):
    "A parser of HTML that is not ours finds the same cells."
    bs4 = pytest.importorskip("bs4")
    page = html_page(render(score_table({"a": sure({"MCQA": 0.5}), "b": {"MCQA": 0.6}}), "html"))
    rows = [[c.get_text() for c in row.find_all(["td", "th"])] for row in bs4.BeautifulSoup(page, "html.parser")("tr")]
    assert rows == [["", "a", "b"], ["Baselines"], ["MCQA", "0.50 [0.46, 0.52] (2)", "0.60 (1)"]]
    if name == "pandas":
        pytest.importorskip("lxml")
        import io

        import pandas as pd

        (table,) = pd.read_html(io.StringIO(page))
        assert table.iloc[1].tolist() == rows[2]
