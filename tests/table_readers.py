"""Readers of printed tables, one for each format, written apart from the package: each gives back what a table says.

A table is (names of the columns, rows as (labels, cells), sentences below, caption). A cell is a text such as
"0.75 [0.51, 0.91] (1)". None of the readers forgives anything: a sign that a format would take for a mark fails.
"""

import io
import re
from html.parser import HTMLParser

from cora_nb.report.present import UNKNOWN, number_text, present
from cora_nb.report.tables import plain_line


def printed_table(result, digits=None, **printing):
    "Every number as the text that is printed."
    return present(result, digits=digits, **printing).texts


NASTY = [
    *("a|b", "\\\\", "<script>alert(1)</script>", "$x$"),  # these first: quick tests take the first eight
    *("=cmd|' /C calc'!A0", "_x0041_", "two\nlines", "\x00\x01\x1b[31m"),
    *(r"a\|b", "a\\", "||", "`a`", "**b**", "_c_", "~~d~~", "[l](http://x)", "![i](x)", "<b>", "</td>"),
    *("&lt;", "&amp;amp;", "$$", "50%", "#1", "a^b", "{", "}", "{}", "~", '"q"'),
    *("'q'", "''q''", "``q''", "a--b", "a---b", "?`", ",,x", "=1+1", "+1", "-1", "@SUM(1)"),
    *("\t=1", "#N/A", "=", "_x005F_", "cr\rlf\r\n", "\u202eabc\u2066"),
    *(
        "\u200e\u200f",
        "שלום",
        "مرحبا",
        "模型",
        "🙂👩\u200d💻",
        "cafe\u0301",
        "n" * 300,
        "- a",
        "# a",
        "1. a",
        "> a",
        "---",
    ),
    *("www.a.test", "me@a.test", "http://a.test/?a=1&b=2", "[1]: x", "*", "]", "&", "\\end{tabular}", "\\input{x}"),
    *("%", "c ≥ 0.5", "–", "\ufffe\uffff", "", " ", "|:--|", "^^41", "\\verb|x|", "<!-- -->", "--", "x,y"),
]


class Marks(HTMLParser):
    "Rows of cells, paragraphs and captions of a page; every mark must be one of a table."

    ALLOWED = set("div style table caption thead tbody tr th td p b".split())

    def __init__(self, page, also=()):
        super().__init__()
        self.allowed, self.open, self.rows, self.lines, self.caption = self.ALLOWED | set(also), [], [], [], None
        self.scopes, self.heads = [], 0  # of headings; how many rows of headings there are
        self.labels = []  # of each row, how many rows each of its labels takes
        self.feed(page)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        assert tag in self.allowed, f"a mark {tag} in the page"
        assert not any(name.startswith("on") or name in ("href", "src") for name, _ in attrs), attrs
        assert dict(attrs).get("style") in (None, "text-align: left;"), attrs
        if tag == "th":
            self.scopes.append((dict(attrs).get("scope"), dict(attrs).get("dir")))
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
            self.labels.append([])
            self.heads += "thead" in self.open
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            if tag == "th":
                self.labels[-1].append(int(dict(attrs).get("rowspan") or 1))
        elif tag == "p":
            self.lines.append("")
        elif tag == "caption":
            self.caption = ""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> where another mark is open"

    def handle_decl(self, decl):
        raise AssertionError(f"<!{decl}> in the page")

    handle_pi = handle_comment = handle_decl

    def handle_data(self, data):
        if "style" in self.open:
            assert "<" not in data and "url" not in data and "@" not in data
        elif "caption" in self.open:
            self.caption += data
        elif "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data
        elif "p" in self.open:
            self.lines[-1] += data
        else:
            assert not data.strip(), f"a text between the marks: {data!r}"


def read_html(page, heads=1):
    "What a fragment says; the last `heads` labels of a row."
    found = Marks(page)
    rows, above = [], []  # above: labels that go on, with the number of rows that they still take
    for row, spans in zip(found.rows[found.heads :], found.labels[found.heads :]):
        above = [[text, left - 1] for text, left in above if left > 1]
        above += [[text, span] for text, span in zip(row, spans)]
        rows.append((tuple(text for text, _ in above)[-heads:], row[len(spans) :]))
    assert len({len(cells) for _, cells in rows}) == 1 and found.heads in (1, 2)
    assert {direction for _, direction in found.scopes} == {"auto"}
    assert {scope for scope, _ in found.scopes} <= {"col", "row", "rowgroup"}
    return found.rows[0][-len(rows[0][1]) :], rows, found.lines, found.caption


def read_markdown(text, heads=1):
    "What Markdown says, rendered by markdown-it with GitHub's tables."
    from markdown_it import MarkdownIt

    page = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).render(text)
    page = re.sub(r'(<t[hd]) style="text-align:(left|right)"', r"\1", page)
    found = Marks(page, also=["strong"])
    head, *body = found.rows
    rows = [(tuple(label.strip("\xa0") for label in row[:heads]), row[heads:]) for row in body]
    lines = list(found.lines)
    assert page.count("<strong>") == page.count("<td><strong>") + page.count("<p><strong>") <= len(body) + 1
    caption = lines.pop(0) if "<p><strong>" in page else None
    return head[heads:], rows, lines, caption


LATEX = {
    **{"\\" + c: c for c in "&%$#_{}"},
    **{r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textless{}": "<"},
    **{r"\textgreater{}": ">", r"\textbar{}": "|", r"\textasciigrave{}": "`", r"\symbol{34}": '"', r"$\geq$": "≥"},
    **{"--": "–", "{}": "", r"\quad ": "", r"\quad": "", "$-$": "-"},
}
JOINED = ("--", "''", ",,", "``", "<<", ">>", "?`", "!`")  # what fonts make one sign of


def latex_text(source):
    "The text that a piece of LaTeX prints."
    found, i = "", 0
    while i < len(source):
        known = next((mark for mark in sorted(LATEX, key=len, reverse=True) if source.startswith(mark, i)), None)
        if known is None:
            assert source[i] not in '\\{}$&#^_~%"`<>|', f"{source[i]!r} would be a mark: {source[i - 20 : i + 20]!r}"
            assert source[i : i + 2] not in JOINED, f"would be joined: {source[i : i + 2]!r}"
        found += source[i] if known is None else LATEX[known]
        i += 1 if known is None else len(known)
    return found


def read_latex(source, heads=1):
    "What a `tabular`, perhaps within a `table`, says."
    lines, caption = source.split("\n"), None
    if lines[0] == r"\begin{table}[htbp]":
        assert (
            lines[1:3] == [r"\centering", r"\footnotesize\setlength{\tabcolsep}{4pt}"] and lines[-1] == r"\end{table}"
        )
        caption = latex_text(re.fullmatch(r"\\caption\{(.*)\}", lines[3])[1])
        lines = lines[4:-1]
    (columns,) = re.fullmatch(r"\\begin\{tabular\}\{(l+c+)\}", lines[0]).groups()
    end = lines.index(r"\end{tabular}")
    assert [lines[1], lines[3], lines[end - 1]] == [r"\toprule", r"\midrule", r"\bottomrule"]
    body = []
    for line in [lines[2], *lines[4 : end - 1]]:
        if line == r"\addlinespace":
            continue
        assert line.endswith(r" \\") and not line.startswith(("[", "*"))
        cells = re.split(r"(?<!\\)&", line[:-3])
        assert len(cells) == len(columns)
        cells = [re.sub(r"^\\rlap\{\\textit\{(.*)\}\}$", r"\1", cell.strip(" ")) for cell in cells]
        body.append([latex_text(cell) for cell in cells])
    below = lines[end + 1 :]
    assert not any(below[::2])
    wrapped = r"\\noindent\\parbox\[t\]\{\\linewidth\}\{\\footnotesize\\strut (.*)\\strut\}"
    said = [latex_text(re.fullmatch(wrapped, line)[1]) for line in below[1::2]]
    return body[0][heads:], [(tuple(row[:heads]), row[heads:]) for row in body[1:]], said, caption


def read_xlsx(data, digits=2, heads=2, percent=False):
    "What the first sheet of a workbook says, numbers as they are printed."
    from openpyxl import load_workbook
    from openpyxl.utils.escape import unescape

    sheet = load_workbook(io.BytesIO(data)).worksheets[0]
    assert all(cell.data_type in "sn" for row in sheet for cell in row)
    rows = [[unescape(v) if isinstance(v, str) else v for v in row] for row in sheet.iter_rows(values_only=True)]
    rows = [["" if v is None and i < heads else v for i, v in enumerate(row)] for row in rows]
    head, after = rows[0], next((n for n, row in enumerate(rows) if n and not any(row)), len(rows))
    said = [row[0] for row in rows[after + 1 :]]
    names = ["" if v is None else v for v in head[heads:]]
    kinds = ("low", "high", "rank", "p", "note")
    own = [n for n, name in enumerate(names) if not any(name == f"{other} {k}" for other in names for k in kinds)]
    found = []
    for row in rows[1:after]:
        cells = []
        for n in own:
            cell = {k: row[heads + i] for i, name in enumerate(names) for k in kinds if name == f"{names[n]} {k}"}
            scale = 100 if percent else 1
            numbers = [row[heads + n], cell.get("low"), cell.get("high")]
            value, low, high = (UNKNOWN if v is None else number_text(scale * float(v), digits) for v in numbers)
            text = value if UNKNOWN in (value, low, high) else f"{value} [{low}, {high}]"
            text += f" ({cell['rank']})" if cell.get("rank") else ""
            cells.append(text + (f" ({cell['note']})" if cell.get("note") else ""))
        found.append((tuple(row[:heads]), cells))
    return [names[n] for n in own], found, said


def shown(name):
    "A name as every format for people shows it."
    return plain_line(name)
