"""The how-to pages: nine tasks, a page each, and a list of them. scripts/run_notebooks.py tests that each runs."""

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "nbs" / "howto"
PAGES = sorted(p for p in FOLDER.glob("*.ipynb") if p.stem != "index")
MOST_LINES = 60  # Markdown and code together


def sources(page: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(page.read_text(encoding="utf-8"))["cells"]]


def lines(page: Path) -> int:
    return sum(len(text.splitlines()) for text in sources(page))


def test_there_are_nine():
    assert len(PAGES) == 9


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_is_short_and_says_what_to_change(page):
    assert lines(page) <= MOST_LINES
    text = "\n\n".join(sources(page))
    assert re.match(r"# [^\n]+\n\n> [^\n]+", text) and "#| " not in text  # nothing exported, nothing skipped
    assert "# for real:" in text
    assert page.stem == "many_gpus" or re.search(r"cora_(run|try|table|import|paper) |\.\./studies/", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_of_a_page_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)", "\n".join(sources(page)))
    assert targets and [t for t in targets if not (FOLDER / t).is_file()] == []


def test_the_list_names_each_page_once():
    text = "\n".join(sources(FOLDER / "index.ipynb"))
    named = re.findall(r"\[(\w+)\]\((\w+)\.ipynb\)", text)
    assert all(a == b for a, b in named)
    assert sorted(name for name, _ in named) == [p.stem for p in PAGES]


def test_outputs_are_stored_and_name_no_folder_of_a_machine():
    for page in PAGES:
        cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
        outputs = [o for cell in cells if cell["cell_type"] == "code" for o in cell["outputs"]]
        assert outputs, page.stem
        assert not re.search(r"/tmp|/home|/root|/work", json.dumps([o for o in outputs if "image" not in str(o)]))


def test_a_page_that_is_too_long_is_found(tmp_path):
    page = tmp_path / "long.ipynb"
    page.write_text(json.dumps({"cells": [{"cell_type": "code", "source": ["x = 1\n"] * 61}]}))
    assert lines(page) == 61 > MOST_LINES
