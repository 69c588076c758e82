"""The documentation site: what a small one shows, and that each check of the build finds its planted error.

The real site is built by `.ci/full` and by a workflow. Here the same builder makes a site of a few pages: a stand-in of
the course, a how-to page, a real module, a study, the gallery.
"""

import importlib
import inspect
import json
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import cora_nb as cn
from browser import LIMIT

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "scripts" / "site"  # the folder above it is on the path, by pyproject.toml
FIGURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
README = """<!-- made -->

# cora_nb

> A score

[paired](nbs/stats/paired.ipynb#by-hand), [course](nbs/course/01_one.ipynb), [licence](LICENSE)

## Read it

| folder | notebooks |
|---|---|
| `stats/` | [paired](nbs/stats/paired.ipynb) |

Studies: [one](nbs/studies/one.ipynb)
"""
BADGE = (
    "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/x)"
)


def cell(kind: str, source: str, tags: tuple = (), outputs: tuple = ()) -> dict:
    made = {"cell_type": kind, "id": f"c{abs(hash(source)) % 10**8:08d}", "metadata": {"tags": list(tags)}}
    made["source"] = source.splitlines(True)
    return made | ({"execution_count": None, "outputs": list(outputs)} if kind == "code" else {})


def shown(**data: str) -> dict:
    data = {name.replace("_", "/"): text for name, text in data.items()}
    return {"output_type": "display_data", "metadata": {}, "data": data}


def md(text: str) -> dict:
    return cell("markdown", text)


PAIRED = [
    md("# paired\n\n> A mean over a mean"),
    cell("code", "#| default_exp stats.paired"),
    md("## By hand\n\nThe ratio is $r/w$, and\n\n$$\\sum_i r_i = 1$$\n\n`linear_bootstrap` elsewhere."),
]
CHAPTER = [
    md("# 1. One\n\n> Which is better?"),
    md(f"{BADGE}\n\nSee [paired](../stats/paired.ipynb#By-hand) and [here](#the-end), and `cn.evaluate`."),
    cell("code", "%pip install --quiet ./cora_nb\nx = 1  # shown"),
    md("Two bars, one longer than the other."),
    cell("code", "draw()", outputs=[shown(image_png=FIGURE, text_plain="<Figure>")]),
    cell("code", "print('folded solution')", tags=["hide-cell"]),
    cell("code", "# @title Drawing\nprint('folded drawing')", tags=["hide-input"]),
    cell("code", "print('vanished')", tags=["remove-cell"]),
    cell("code", "#| hide\nprint('hidden by nbdev')"),
    md("## The end\n\nIt costs \\$5."),
]


@pytest.fixture(scope="module")
def tools():
    "The builder's modules."
    for name in ("sphinx", "myst_nb", "pydata_sphinx_theme", "nbdev"):
        pytest.importorskip(name, reason="pip install -e '.[site]'")
    saved = sys.path.copy()  # the builder adds folders of its own
    sys.path.insert(0, str(TOOLS))
    try:
        yield importlib.import_module("make_site")
    finally:
        sys.path[:] = saved


def exported(names: str, module: str = "stats.paired") -> list[dict]:
    "The cells of the real notebook that export functions."
    book = json.loads((ROOT / "nbs" / f"{module.replace('.', '/')}.ipynb").read_text())
    return [c for c in book["cells"] if "".join(c["source"]).startswith("#| export")]


def project(folder: Path, home: bool = True, **changed: list) -> Path:
    "A checkout of a few pages; `changed` adds cells to some: paired, chapter, study; and a line to the readme."
    pages = {
        "stats/paired": [*PAIRED, *exported("paired"), *changed.get("paired", [])],
        "course/index": [md("# The course\n\n> In this order\n\n[One](01_one.ipynb), [words](glossary.ipynb)")],
        "course/01_one": [*CHAPTER, *changed.get("chapter", [])],
        "course/extra": [md("# Extra\n\n> No page links here")],
        "course/glossary": [md("# Glossary\n\n> Words")],
        "howto/index": [md("# How to\n\n> Do things\n\n[a task](task.ipynb)")],
        "howto/task": [md("# A task\n\n> Do it\n\n[One](../course/01_one.ipynb)")],
        "studies/one": [md("# A study\n\n> Of one"), *changed.get("study", [])],
        "gallery": [md("# Gallery\n\n> Figures")],
    }
    for path, cells in pages.items():
        file = folder / "nbs" / f"{path}.ipynb"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    (folder / "README.md").write_text(README + "".join(changed.get("readme", [])))
    (folder / "LICENSE").write_text("free")
    settings = (ROOT / "settings.ini").read_text(encoding="utf-8")
    addresses = {"home": "https://github.com/me/it", "site": "https://site.example"}
    for key, address in addresses.items():
        settings = re.sub(rf"^{key} =.*$", f"{key} = {address if home else ''}", settings, flags=re.MULTILINE)
    (folder / "settings.ini").write_text(settings, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def site(tools, tmp_path_factory):
    "A small site without an error, and the last line of its build."
    folder = tmp_path_factory.mktemp("site")
    line = tools.build(project(folder), folder / "out", formulas=browser(tools))
    return folder / "out", line


def browser(tools) -> bool:
    "Whether formulas can be looked at."
    return bool(importlib.util.find_spec("playwright") and tools.checks.browser_path())


def text_of(file: Path) -> str:
    return re.sub(r"<[^>]+>", "", file.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_last_line_counts(site, tools):
    out, line = site
    assert re.search(r"\d+ pages, \d+ MB, \d+ links checked, (\d+|no) formulas typeset, \d+ names, \d+ s$", line)
    if browser(tools):
        assert int(re.search(r"(\d+) formulas", line)[1]) == 2


@pytest.mark.slow
def test_all_sections_are_in_the_navigation(site):
    start = (site[0] / "index.html").read_text()
    sections = re.findall(
        r'<li class="nav-item[^"]*">\s*<a class="nav-link[^"]*" href="([^"]+)"[^>]*>\s*([^<]+?)\s*</a>', start
    )
    assert [name for _, name in dict.fromkeys(sections)] == [
        "Start",
        *"Course How-to Reference Studies Gallery".split(),
    ]
    assert beside(site[0] / "course" / "index.html") == ["01_one.html", "glossary.html", "extra.html"]
    assert beside(site[0] / "howto" / "index.html") == ["task.html"]


def beside(page: Path) -> list[str]:
    "The pages of its section in the sidebar."
    tree = re.search(r'<ul class="nav bd-sidenav">.*?</nav>', page.read_text(encoding="utf-8"), re.DOTALL)[0]
    return re.findall(r'<li class="toctree-l1[^"]*"><a class="[^"]*" href="([^"]+)"', tree)


@pytest.mark.slow
def test_links_lead_to_pages(site):
    out = site[0]
    assert 'href="../course/01_one.html"' in (out / "howto" / "task.html").read_text()
    chapter = (out / "course" / "01_one.html").read_text()
    assert 'href="../stats/paired.html#by-hand"' in chapter and 'href="#the-end"' in chapter
    assert "colab-badge.svg" not in chapter and ">Open in Colab<" in chapter
    assert 'href="stats/paired.html#by-hand"' in (out / "index.html").read_text()
    assert 'href="https://github.com/me/it/blob/main/LICENSE"' in (out / "index.html").read_text()
    assert 'href="https://site.example/course/01_one.html"' in chapter  # the canonical address


@pytest.mark.slow
def test_without_a_home_no_link_leads_to_it(tools, tmp_path):
    tools.build(project(tmp_path, home=False), tmp_path / "out", formulas=False)
    start = (tmp_path / "out" / "index.html").read_text()
    assert "licence" in text_of(tmp_path / "out" / "index.html") and "LICENSE" not in start and "NOWHERE" not in start
    for page in (tmp_path / "out").rglob("*.html"):
        words = page.read_text(encoding="utf-8")
        assert "github.com" not in re.sub(r"https://github.com/pydata[^\"]*", "", words), page
        assert "/blob/main" not in words and 'rel="canonical"' not in words and "This page is a notebook" not in words


@pytest.mark.slow
def test_cells_fold_and_vanish(site):
    chapter = (site[0] / "course" / "01_one.html").read_text()
    assert "vanished" not in chapter and "hidden by nbdev" not in chapter
    assert "%pip" in text_of(site[0] / "course" / "01_one.html")
    folded = re.findall(r'<details class="[^"]*\bhide\b[^"]*">.*?</details>', chapter, re.DOTALL)
    assert len(folded) == 2 and "folded solution" in re.sub("<[^>]+>", "", folded[0])
    assert ">Drawing</p>" in folded[1] and "@title" not in chapter


@pytest.mark.slow
def test_figures_have_words(site):
    chapter = (site[0] / "course" / "01_one.html").read_text()
    assert 'alt="Figure: 1. One. Two bars, one longer than the other."' in chapter


@pytest.mark.slow
def test_every_public_name_has_an_entry(site):
    paired = importlib.import_module("cora_nb.stats.paired")
    page = (site[0] / "stats" / "paired.html").read_text()
    assert all(f'id="cora_nb.stats.paired.{name}"' in page for name in paired.__all__)
    assert "https://github.com/me/it/blob/main/cora_nb/stats/paired.py#L" in page  # the source
    assert 'href="https://github.com/me/it/blob/main/nbs/stats/paired.ipynb"' in page  # the notebook
    assert (site[0] / "objects.inv").exists() and "default_exp" not in page and "#| export" not in page


def public():
    "Every public function and class: its module, its name, itself."
    for info in pkgutil.walk_packages(cn.__path__, "cora_nb."):
        if not info.name.endswith("_modidx"):
            module = importlib.import_module(info.name)
            for name in getattr(module, "__all__", []):
                thing = getattr(module, name)
                if inspect.isroutine(thing) or inspect.isclass(thing) or hasattr(thing, "__wrapped__"):
                    yield info.name, name, thing


def unescaped(text: str) -> str:
    "Markdown as it is read, without spaces and marks of code."
    return "".join(re.sub(r"\\([\\*_<>\[\]${}~^%@#|])", r"\1", text).replace("`", "").split())


@pytest.mark.slow
def test_the_page_and_help_say_the_same(tools):
    "For every public function and class, each paragraph of `help` and its words for each parameter are in its entry."
    import checks
    import entries

    names, sentences, differ = 0, 0, []
    for module, name, thing in public():
        entry, names = unescaped(entries.entry(module, name)), names + 1
        for said in checks.help_sentences(thing):
            sentences += 1
            if "".join(said.replace("`", "").split()) not in entry:
                differ.append(f"{module}.{name}: {said}")
    assert names > 800 and sentences > 3000 and not differ, differ


@pytest.mark.slow
def test_words_beside_are_those_that_fastcore_finds():
    "Of functions; ours also knows named tuples and inherited fields."
    from fastcore.docments import docments

    differ, functions = [], 0
    for module, name, thing in public():
        if inspect.isfunction(thing) and not hasattr(thing, "__wrapped__"):
            theirs = {p: " ".join(said.split()) for p, said in docments(thing).items() if said and p != "return"}
            functions += 1
            ours = cn.words_beside(thing)
            differ += [f"{module}.{name}({p})" for p, said in theirs.items() if ours.get(p) != said]
    assert functions > 600 and not differ, differ


PLANTED = {  # what is wrong: what is changed, what the build says
    "a link to no page": ({"chapter": [md("[x](../stats/gone.ipynb)")]}, "'../stats/gone.ipynb' leads nowhere"),
    "a link to no heading": (
        {"chapter": [md("[x](../stats/paired.ipynb#no-such)")]},
        "leads to no heading of stats/paired.ipynb",
    ),
    "a link of the README": ({"readme": ["[x](nbs/gone.ipynb)"]}, "index.md: the link 'nbs/gone.ipynb' leads nowhere"),
    "a name that the module lacks": (
        {"paired": [cell("code", "#| export\ndef no_such_name(x):\n    return x")]},
        "stats/paired.ipynb: show_doc(no_such_name) failed: AttributeError",
    ),
    "a warning of Sphinx": ({"chapter": [md("```{nonsense}\n```")]}, "Unknown directive type: 'nonsense'"),
    "a formula that is left as text": ({"chapter": [md("See $$x = 1 and no end.")]}, "a formula that is no formula"),
    "a picture from elsewhere": (
        {"chapter": [md("![x](https://lab.example/a.png)")]},
        "https://lab.example/a.png would be loaded from another host",
    ),
    "a script from elsewhere": (
        {"study": [cell("code", "x", outputs=[shown(text_html='<script src="//lab.example/a.js"></script>')])]},
        "//lab.example/a.js would be loaded from another host",
    ),
    "a picture without words": (
        {"study": [cell("code", "x", outputs=[shown(text_html='<img src="../_static/favicon.svg">')])]},
        "no alt text for ../_static/favicon.svg",
    ),
    "a link in an output": (
        {"study": [cell("code", "x", outputs=[shown(text_html='<a href="../gone.html">x</a>')])]},
        "'../gone.html' leads to no page",
    ),
    "an anchor in an output": (
        {"study": [cell("code", "x", outputs=[shown(text_html='<a href="../gallery.html#gone">x</a>')])]},
        "'../gallery.html#gone' leads to no place in the page",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_error_fails_the_build(what, tools, tmp_path):
    changed, message = PLANTED[what]
    with pytest.raises(tools.SiteError, match=re.escape(message)):
        tools.build(project(tmp_path, **changed), tmp_path / "out", formulas=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formula", "message"),
    [(r"$\frac{1}$", "MathJax cannot read a formula"), (r"$\nosuchmacro$", "MathJax cannot read a formula")],
)
def test_a_formula_that_cannot_be_read_fails_the_build(formula, message, tools, tmp_path):
    if not browser(tools):
        pytest.skip("no browser, or playwright is not installed")
    with pytest.raises(tools.SiteError, match=f"course/01_one.html: {message}"):
        tools.build(project(tmp_path, chapter=[md(formula)]), tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chromium", "message"),
    [
        ("", "neither $CHROMIUM nor PATH has one, and playwright's own does not start: "),
        ("no-such-browser", "neither $CHROMIUM nor PATH has one, and playwright's own does not start: "),
        (sys.executable, f"{sys.executable} does not start: "),
    ],
)
def test_without_a_browser_one_line_names_the_option(chromium, message, site, tools, tmp_path, monkeypatch):
    "Neither on PATH, nor in $CHROMIUM, nor playwright's own."
    pytest.importorskip("playwright", reason="pip install -e '.[site]'")
    for name, value in {"CHROMIUM": chromium, "PATH": str(tmp_path), "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    for look in (
        lambda: tools.build(project(tmp_path / "checkout"), tmp_path / "out"),
        lambda: tools.checks.check_formulas(site[0], ["index.html"], 1),
    ):
        with pytest.raises(tools.SiteError, match=re.escape(message)) as wrong:
            look()
        assert "--no-formulas" in str(wrong.value) and "\n" not in str(wrong.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_name_without_an_entry_and_a_page_that_says_less_than_help(site, tools):
    "Both are looked for in the finished pages."
    made = tools.read_project(site[0].parent)
    tools.with_names(made)
    page = made.pages["stats/paired.ipynb"]
    page.names = [*page.names, "Forgotten"]
    files = {file: tools.checks.read_html(file) for file in site[0].rglob("*.html")}
    assert tools.checks.missing_names(site[0], made, files) == ["stats/paired.ipynb: no entry for Forgotten"]
    page.names = page.names[:-1]
    assert tools.checks.silent_pages(site[0], made, files) == []
    files[site[0] / "stats" / "paired.html"].text = ["nothing"]
    assert any("the page does not" in words for words in tools.checks.silent_pages(site[0], made, files))


@pytest.mark.slow
def test_a_request_of_a_script_is_seen(site, tools):
    "What a page asks for only when it runs, and a file that is not there."
    if not browser(tools):
        pytest.skip("no browser, or playwright is not installed")
    page = site[0] / "asking.html"
    loads = '<script src="_static/mathjax/tex-svg-full.js"></script><script src="_static/gone.js"></script>'
    page.write_text(f"<html><body>{loads}<script>fetch('https://lab.example/x')</script></body></html>")
    try:
        found = tools.checks.look_at_formulas((site[0], ["asking.html"]))[1]
    finally:
        page.unlink()
    assert any("asked for https://lab.example/x" in words for words in found)
    assert any("loads what is not there: 404" in words for words in found)


@pytest.mark.slow
def test_search_finds_a_name(site, tools):
    if not browser(tools):
        pytest.skip("no browser, or playwright is not installed")
    from playwright.sync_api import sync_playwright

    name = importlib.import_module("cora_nb.stats.paired").__all__[0]
    server = tools.checks.serve(site[0])
    with sync_playwright() as play:
        chromium = tools.checks.launched(play)
        tab = chromium.new_page()
        tab.set_default_timeout(LIMIT)
        tab.goto(f"http://127.0.0.1:{server.server_port}/search.html?q={name}")
        tab.wait_for_selector("#search-results li a")
        assert "stats/paired.html" in tab.get_attribute("#search-results li a", "href")
        tab.set_viewport_size({"width": 390, "height": 800})
        for path in ("index.html", "stats/paired.html", "course/01_one.html"):  # nothing sticks out of a phone
            tab.goto(f"http://127.0.0.1:{server.server_port}/{path}")
            assert tab.evaluate("document.documentElement.scrollWidth") <= 390, path
        chromium.close()
    server.shutdown()


def test_chapters_stand_in_the_order_of_the_front_page(tools):
    "Although one of its paragraphs links to 1, 2, 4 and 6 alone."
    real = tools.read_project(ROOT)
    text = tools.notebook_text(ROOT / "nbs" / "course" / "index.ipynb")
    tree = tools.navigation.own_indexes(real, {"course/index.ipynb": text})["course/index.ipynb"]
    assert re.findall(r"^/course/(\d\d)_", tree, re.MULTILINE) == [f"{n:02}" for n in range(1, 12)]
