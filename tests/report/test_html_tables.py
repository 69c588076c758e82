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
    head, rows, below, caption = read_html(render(score_table(published(2)[2]), "html", caption="Table 2"), 2)
    assert head == ["Mist", "Llam", "Gran", "DSeek"] and caption == "Table 2" and not below
    assert rows[0] == (("Baselines", "MCQA"), ["0.64 (2)", "0.58 (3)", "0.65 (1)", "0.52 (4)"])
    assert [labels for labels, _ in rows][2:5] == [
        ("Baselines", "MV"),
        ("Proposed metric", "CoRA"),
        ("Secondary metrics", "BMCA(0.5)"),
    ]


def test_labels_are_headings_and_numbers_are_not():
    page = render(score_table({"a": {"MCQA": 0.5, "CoRA": 0.4}, "b": {"MCQA": 0.6, "CoRA": 0.3}}), "html")
    assert page.count("<td>") == 4 and re.findall(r'<th scope="(\w+)"', page) == ["col"] * 4 + ["row"] * 4
    three = {name: {"MCQA": 0.5, "MV": 0.4} for name in ("a", "שלום")}
    page = render(score_table(three), "html")
    assert re.findall(r'<th scope="(\w+)"', page) == ["col"] * 4 + ["rowgroup", "row", "row"]
    assert page.count('dir="auto"') == 7  # each name in the direction of its letters
    long = make_result([{"method": m, "score": "x", "value": 0.5} for m in "ab"])
    assert read_html(render(long, "html"), 2)[1] == [(("a", "x"), ["0.50"]), (("b", "x"), ["0.50"])]


def test_what_is_below_and_what_it_is_called():
    page = render(score_table({"a": {"MCQA": 0.5}}), "html", below=["in brackets: 95% intervals"])
    assert page == render(score_table({"a": {"MCQA": 0.5}}), "html", below=["in brackets: 95% intervals"])
    assert page.endswith("</table>\n<p>in brackets: 95% intervals</p>\n</div>")
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
    spans = zip(found.rows[found.heads :], found.labels[found.heads :])
    texts = [cell for row, labels in spans for cell in row[: len(labels)]]
    assert all(shown(x) in texts for *_, x in rows)


@pytest.mark.parametrize("name", ["pandas", "bs4"])
def test_others_read_it(name):
    "A parser of HTML that is not ours finds the same cells."
    bs4 = pytest.importorskip("bs4")
    page = html_page(render(score_table({"a": sure({"MCQA": 0.5}), "b": {"MCQA": 0.6}}), "html"))
    rows = [[c.get_text() for c in row.find_all(["td", "th"])] for row in bs4.BeautifulSoup(page, "html.parser")("tr")]
    assert rows == [["", "", "a", "b"], ["Baselines", "MCQA", "0.50 [0.46, 0.52] (2)", "0.60 (1)"]]
    if name == "pandas":
        pytest.importorskip("lxml")
        import io

        import pandas as pd

        (table,) = pd.read_html(io.StringIO(page))
        assert table.iloc[0].tolist() == rows[1]
