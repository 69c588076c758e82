"""The slides of two chapters in a real browser: nothing is cut off, formulas are typeset, all files are at hand."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from browser import LIMIT, browser_path, launched

ROOT = Path(__file__).resolve().parents[2]
WIDTH, HEIGHT = 1280, 720
OVERFLOW = """() => Reveal.getSlides().flatMap((slide, i) => {
    Reveal.slide(...Object.values(Reveal.getIndices(slide)));
    const box = slide.getBoundingClientRect();
    const ends = [...slide.querySelectorAll("*")].map(e => e.getBoundingClientRect());
    const low = Math.max(0, ...ends.map(e => e.bottom)), right = Math.max(0, ...ends.map(e => e.right));
    const fits = slide.scrollHeight <= %d && slide.scrollWidth <= %d && low <= innerHeight && right <= innerWidth;
    return fits ? [] : [{slide: i + 1, height: slide.scrollHeight, width: slide.scrollWidth, low, right}];
})""" % (HEIGHT, WIDTH)
FORMULAS = """() => ({
    typeset: document.querySelectorAll("mjx-container").length,
    wrong: [...document.querySelectorAll("mjx-container [data-mml-node=merror]")].map(e => e.textContent),
    left: [...document.querySelectorAll(".slides p, .slides li")].filter(e => {
        const copy = e.cloneNode(true);
        copy.querySelectorAll("code").forEach(code => code.remove());
        return /\\$/.test(copy.textContent);
    }).map(e => e.textContent),
})"""


@pytest.fixture(scope="module")
def maker():
    pytest.importorskip("nbconvert", reason="nbconvert is not installed")
    spec = importlib.util.spec_from_file_location("make_slides", ROOT / "scripts" / "make_slides.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not module.MATHJAX.is_file():
        pytest.skip(f"MathJax is not at {module.MATHJAX}")
    return module


@pytest.fixture(scope="module")
def pages(maker, tmp_path_factory):
    return maker.make_slides(tmp_path_factory.mktemp("slides"), maker.CHAPTERS)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if browser_path() is None:
        pytest.skip("there is no Chromium on this machine")
    with playwright.sync_playwright() as play:
        browser = launched(play)
        yield browser
        browser.close()


def opened(browser, file: Path):
    "The page when its slides are divided; addresses that it asked for, and errors."
    page, asked, errors = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}), [], []
    page.set_default_timeout(LIMIT)
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    return page, asked, errors


@pytest.mark.parametrize(
    "home, expected",
    [
        ("", "core, [4](04_consistency_by_hand.html), [CoRA](https://arxiv.org/abs/2511.21860)"),
        (
            "https://github.com/me/it",
            "[core](https://github.com/me/it/blob/main/nbs/core.ipynb#x), [4](04_consistency_by_hand.html), "
            "[CoRA](https://arxiv.org/abs/2511.21860)",
        ),
    ],
)
def test_links_lead_to_the_home_or_are_words(maker, monkeypatch, home, expected):
    monkeypatch.setattr(maker, "read_settings", lambda: {"home": home, "branch": "main"})
    text = "[core](../core.ipynb#x), [4](04_consistency_by_hand.ipynb), [CoRA](https://arxiv.org/abs/2511.21860)"
    assert maker.with_addresses(text, ROOT / "nbs" / "course", {"04_consistency_by_hand"}) == expected


def test_what_is_shown(maker, pages):
    "Figures and headings of the chapter; no exercise, check, solution, badge, or code of a folded cell."
    for notebook, file in zip(maker.CHAPTERS, pages):
        html = file.read_text(encoding="utf-8")
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        figures = [c for c in cells if any("image/png" in o.get("data", {}) for o in c.get("outputs", []))]
        assert html.count("data:image/png") == len(figures) > 1
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        headings = [h.partition(":")[0] for h in re.findall(r"^## (.+)", text, re.MULTILINE) if h != "Exercises"]
        shown = re.findall(r"<h2[^>]*>([^<:]+)", html)
        assert shown == headings
        for words in ("@title", "colab", "find_spec", "Exercise(", "import ", "<h3"):
            assert words not in html, words


@pytest.mark.slow
@pytest.mark.parametrize("i", (0, 1))
def test_in_a_browser(maker, pages, browser, i):
    page, asked, errors = opened(browser, pages[i])
    number = page.evaluate("Reveal.getTotalSlides()")
    assert 15 <= number <= 45
    for step in range(1, number):
        page.keyboard.press("ArrowRight")
        assert page.evaluate("Reveal.getSlidePastCount()") == step
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("Reveal.getSlidePastCount()") == number - 2
    assert page.evaluate(OVERFLOW) == []
    formulas = page.evaluate(FORMULAS)
    assert formulas["wrong"] == formulas["left"] == []
    assert (formulas["typeset"] > 5) == pages[i].name.startswith("04")
    assert errors == [] and all(re.match("file:|data:", url) for url in asked)
    assert page.evaluate("[...document.images].every(image => image.width > 500)"), "a small figure"
    page.close()


def test_what_is_too_tall_is_divided(maker, browser, tmp_path):
    "A list of many items, many paragraphs, long code: on several slides, and all of it."
    import nbformat

    items, lines = [f"item {i} of a list" for i in range(40)], [f"line_{i} = {i}" for i in range(34)]
    cells = [
        nbformat.v4.new_markdown_cell("# A chapter\n\n> of tall things"),
        nbformat.v4.new_markdown_cell("## A list\n\nFirst:\n\n" + "\n".join(f"1. {item}" for item in items)),
        nbformat.v4.new_markdown_cell("## Paragraphs\n\n" + "\n\n".join(["words and words " * 30] * 12)),
        nbformat.v4.new_markdown_cell("## Code"),
        nbformat.v4.new_code_cell("\n".join(lines)),
    ]
    notebook = tmp_path / "tall.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), notebook)
    (file,) = maker.make_slides(tmp_path / "out", [notebook])
    page, _, errors = opened(browser, file)
    assert page.evaluate(OVERFLOW) == errors == []
    assert page.evaluate("Reveal.getTotalSlides()") > 7
    assert page.evaluate("[...document.querySelectorAll('li')].map(e => e.textContent.trim())") == items
    assert page.evaluate("[...document.querySelectorAll('ol')].map(e => e.start)")[1] > 5
    text = page.evaluate("document.querySelector('.slides').textContent")
    assert text.count("words and words") == 12 * 30 and all(line in text for line in lines)
    page.close()


def test_a_missing_file_is_named(maker, tmp_path):
    with pytest.raises(SystemExit, match=r"make_slides: not a file: .*nowhere\.ipynb"):
        maker.make_slides(tmp_path, [tmp_path / "nowhere.ipynb"])
