#!/usr/bin/env python3
"""Make slides for a lecture of chapters of the course, as their notebooks are: OUT/NAME.html, to open in any browser.

nbconvert writes the pages, reveal.js shows them, MathJax typesets the formulas; both lie in OUT/slides, and nothing
is asked of the network. A heading begins a slide; a figure begins a sub-slide, and so does the code after a question
(so that the guess comes before the result); the page itself divides what is taller than a slide. Left out are the
badges, imports, exercises with their checks and solutions, and the code of folded cells, whose figures stay.

    python scripts/make_slides.py                   # chapters 1 and 4, into slides/
    python scripts/make_slides.py OUT --chapters nbs/course/07_where_it_leans.ipynb

In the browser: space or the arrow keys for the next slide, `f` for the whole screen, `o` for all slides at once.
"""

import argparse
import ast
import re
import shutil
import sys
from copy import deepcopy
from pathlib import Path

from home import read_settings

ROOT = Path(__file__).resolve().parent.parent
COURSE = ROOT / "nbs" / "course"
TOOLS = ROOT / "scripts" / "slides"
MATHJAX = ROOT / "scripts" / "site" / "mathjax" / "tex-svg-full.js"  # the site's
SHARED = ("slides.css", "slides.js", "reveal/reveal.css", "reveal/reveal.js")
CHAPTERS = [COURSE / f"{name}.ipynb" for name in ("01_what_a_score_hides", "04_consistency_by_hand")]
EXERCISE = re.compile(r"^#{2,3} Exercise", re.MULTILINE)
FOLDED = re.compile(r"# ?@title (Check|Solution)\b")
LINK = re.compile(r"\[([^\[\]]*)\]\(([^()\s]+)\)")


def repository() -> str:
    "Where the files of the project can be read; empty where it has no home."
    cfg = read_settings()
    return cfg["home"] and f"{cfg['home']}/blob/{cfg['branch']}"


def with_addresses(text: str, folder: Path, made: set[str]) -> str:
    "Markdown whose links to files lead to the repository (or are words), or to the slides of another chapter."
    home = repository()

    def address(found: re.Match) -> str:
        words, target = found.groups()
        path, _, place = target.partition("#")
        if not path or re.match(r"\w+:", path):
            return found[0]
        file = (folder / path).resolve()
        if file.stem in made and file.parent == COURSE:
            return f"[{words}]({file.stem}.html)"
        if not home:
            return words
        place = f"#{place}" if place else ""
        return f"[{words}]({home}/{file.relative_to(ROOT).as_posix()}{place})"

    return LINK.sub(address, text)


def only_prepares(cell: dict) -> bool:
    "Whether a code cell only imports or installs."
    if "find_spec" in cell["source"]:
        return True
    try:
        return all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in ast.parse(cell["source"]).body)
    except SyntaxError:
        return False


def sections(text: str) -> list[str]:
    "Markdown divided before each heading of the second level."
    return [part.strip() for part in re.split(r"^(?=## )", text, flags=re.MULTILINE) if part.strip()]


def asks(shown: list) -> bool:
    "Whether the text just before asks something, so that what follows has to wait."
    return bool(shown) and shown[-1].cell_type == "markdown" and "?" in shown[-1].source.split("\n\n")[-1]


def for_slides(notebook: dict, folder: Path, made: set[str]) -> dict:
    "A copy of a notebook with the cells that are shown, each with the kind of slide that it begins."
    import nbformat

    shown, exercises = [], False
    for cell in notebook.cells:
        if cell.cell_type == "code":
            if exercises or only_prepares(cell) or FOLDED.match(cell.source):
                continue
            cell = deepcopy(cell)
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
            figure = any("image/png" in o.get("data", {}) for o in cell.outputs)
            cell.metadata["slideshow"] = {"slide_type": "subslide" if figure or asks(shown) else "-"}
            shown.append(cell)
            continue
        for text in sections(re.sub(r"^\[!\[.*$", "", cell.source, flags=re.MULTILINE)):
            if text.startswith("## "):
                exercises = bool(EXERCISE.match(text))
            exercises = exercises or bool(EXERCISE.search(text))
            if exercises:
                continue
            part = nbformat.v4.new_markdown_cell(with_addresses(text, folder, made))
            part.metadata["slideshow"] = {"slide_type": "slide" if text.startswith("## ") or not shown else "-"}
            shown.append(part)
    return nbformat.v4.new_notebook(cells=shown, metadata=notebook.metadata)


def page(notebook: Path, made: set[str]) -> str:
    "The slides of a notebook, as HTML that reads what lies in `slides/` beside it."
    import nbformat
    from nbconvert import SlidesExporter
    from pygments.formatters import HtmlFormatter
    from traitlets.config import Config

    book = for_slides(nbformat.read(notebook, as_version=4), notebook.parent.resolve(), made)
    title = re.search(r"^# (.+)$", book.cells[0].source, re.MULTILINE)
    config = Config()
    config.TagRemovePreprocessor.enabled = True
    config.TagRemovePreprocessor.remove_input_tags = {"hide-input"}
    exporter = SlidesExporter(
        config=config,
        template_name="template",
        extra_template_basedirs=[str(TOOLS)],
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
    )
    colours = HtmlFormatter(style="friendly").get_style_defs(".highlight")
    facts = {"title": title[1] if title else notebook.stem, "colours": colours}
    return exporter.from_notebook_node(book, resources={"slides": facts})[0]


def make_slides(out: Path, chapters: list[Path], mathjax: Path = MATHJAX) -> list[Path]:
    "Write the pages of chapters and what they share; the pages."
    missing = [str(p) for p in (mathjax, *chapters) if not p.is_file()]
    if missing:
        sys.exit(f"make_slides: not a file: {', '.join(missing)}")
    (out / "slides").mkdir(parents=True, exist_ok=True)
    for file in (*(TOOLS / name for name in SHARED), mathjax):
        shutil.copy(file, out / "slides")
    for name, licence in {"reveal.js": TOOLS / "reveal" / "LICENSE", "MathJax": mathjax.parent / "LICENSE"}.items():
        shutil.copy(licence, out / "slides" / f"LICENSE of {name}")
    pages = [out / f"{chapter.stem}.html" for chapter in chapters]
    for chapter, file in zip(chapters, pages):
        file.write_text(page(chapter, {c.stem for c in chapters}), encoding="utf-8")
    return pages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", nargs="?", type=Path, default=ROOT / "slides", help="a folder (default: slides)")
    parser.add_argument("--chapters", nargs="+", type=Path, default=CHAPTERS, help="notebooks (default: chapters 1, 4)")
    args = parser.parse_args()
    for file in make_slides(args.out, args.chapters):
        print(file)


if __name__ == "__main__":
    main()
