"""nbs/gallery.ipynb: every figure of the package stands in it, small, with the lines that drew it.

A plot function that is added is found by introspection and fails here until it has its place. The notebook is run once,
in a process of its own, and what its lines draw is compared with the pictures that are stored.
"""

import base64
import io
import json
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import cora_nb

ROOT = Path(__file__).resolve().parent.parent
GALLERY = ROOT / "nbs" / "gallery.ipynb"
CELLS = json.loads(GALLERY.read_text(encoding="utf-8"))["cells"]
MOST_LINES, WIDTH, STUDY_WIDTH, MOST_BYTES = 3, 360, 480, 600_000
MOST_DIFFERENCE = 2  # of 255, on average over what is printed, at a quarter of the size; other data are 8 or more apart
OTHER_MATPLOTLIB = 60  # from 3.10 to 3.11 up to 36: another figure is found, the same with other data is not
UPDATE = "run `python scripts/run_notebooks.py --update nbs/gallery.ipynb`, and look at it"


def plot_functions():
    "Public functions of the package that draw -> the module that exports them."
    found = {}
    for info in pkgutil.walk_packages(cora_nb.__path__, "cora_nb."):
        if info.name.endswith("__main__") or info.name.startswith("cora_nb.papers."):  # a paper's figure is its study's
            continue
        module = import_module(info.name)
        names = [n for n in getattr(module, "__all__", []) if re.match("(plot|draw)_", n)]
        found |= {n: info.name for n in names if draws_data(getattr(module, n))}
    return found


def draws_data(function):
    "Whether a function draws data: all `plot_*`, and of `draw_*` those that take results and axes."
    return function.__name__.startswith("plot_") or "result" in function.__annotations__


def text(cell):
    return "".join(cell["source"])


def pictures(cell):
    "The PNG files among a cell's outputs."
    found = [o["data"]["image/png"] for o in cell.get("outputs", []) if "image/png" in o.get("data", {})]
    return [base64.b64decode("".join(data)) for data in found]


def sections(cells):
    "(heading of the third level, the words below it, the cell that draws) for each picture."
    found, heading, words = [], None, ""
    for cell in cells:
        if cell["cell_type"] == "markdown":
            headings = re.findall(r"^### (.+)$", text(cell), re.M)
            heading, words = headings[-1] if headings else heading, text(cell)
        elif pictures(cell):
            found.append((heading, words, cell))
    return found


SECTIONS = sections(CELLS)
FUNCTIONS = plot_functions()
DRAWN = [s for s in SECTIONS if s[0] in FUNCTIONS]
STUDIES = [s for s in SECTIONS if "study_picture(" in text(s[2])]


def test_the_functions_were_found():
    assert {"plot_map", "plot_scores", "plot_points", "draw_shares"} <= set(FUNCTIONS)
    assert len(FUNCTIONS) >= 14


def test_every_plot_function_has_a_picture():
    missing = set(FUNCTIONS) - {heading for heading, *_ in DRAWN}
    assert not missing, f"no section with a picture in nbs/gallery.ipynb: {sorted(missing)}"


def test_a_new_function_is_found(monkeypatch):
    from cora_nb.report import run_plots

    monkeypatch.setattr(run_plots, "plot_new", lambda responses, ax=None: ax, raising=False)
    run_plots.plot_new.__name__ = "plot_new"
    monkeypatch.setattr(run_plots, "__all__", [*run_plots.__all__, "plot_new"])
    assert set(plot_functions()) - set(FUNCTIONS) == {"plot_new"}


def test_every_picture_belongs_to_a_function_or_a_study():
    assert len(DRAWN) + len(STUDIES) == len(SECTIONS)
    headings = re.findall(r"^### (\w+_\w+)$", "\n".join(text(c) for c in CELLS if c["cell_type"] == "markdown"), re.M)
    gone = [h for h in headings if h not in FUNCTIONS]
    assert not gone, f"headings of functions that do not exist: {gone}"


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_name_links_to_its_notebook(name):
    "And the table of what a reader wants to see leads to it."
    module = FUNCTIONS[name].removeprefix("cora_nb.").replace(".", "/")
    words = [words for heading, words, _ in DRAWN if heading == name]
    links = set(re.findall(r"\]\(([\w/]+\.ipynb)\)", "\n".join(words)))
    assert links and all((ROOT / "nbs" / link).is_file() for link in links)
    assert f"{module}.ipynb" in links, f"{name} is defined in {module}"
    assert f"](#{name})" in text(CELLS[0])


@pytest.mark.parametrize("heading, words, cell", DRAWN, ids=[f"{s[0]}-{s[2]['id']}" for s in DRAWN])
def test_few_lines_draw_it(heading, words, cell):
    lines = text(cell).splitlines()
    assert 1 <= len(lines) <= MOST_LINES
    assert f"{heading}(" in text(cell) and len(pictures(cell)) == 1


@pytest.mark.parametrize("heading, words, cell", STUDIES, ids=[s[2]["id"] for s in STUDIES])
def test_a_study_is_linked_and_is_the_one_shown(heading, words, cell):
    (name,) = re.findall(r'study_picture\("(\w+)"', text(cell))
    assert f"](studies/{name}.ipynb)" in words and (ROOT / "nbs" / "studies" / f"{name}.ipynb").is_file()


def test_each_paper_has_a_picture():
    assert {"CoRA", "MCQA+", "Quadruple-Slit", "Li et al."} <= {heading for heading, *_ in STUDIES}


def test_pictures_are_small():
    for heading, _, cell in SECTIONS:
        width = Image.open(io.BytesIO(pictures(cell)[0])).width
        assert abs(width - WIDTH) <= 3 or (heading not in FUNCTIONS and width == STUDY_WIDTH), (heading, width)
    assert sum(len(json.dumps(cell.get("outputs", []))) for cell in CELLS) < MOST_BYTES


@pytest.fixture(scope="module")
def run_again(tmp_path_factory):
    "The gallery's pictures drawn anew, by the id of the cell that draws them."
    new = tmp_path_factory.mktemp("gallery") / "gallery.ipynb"
    code = "from execnb.shell import CaptureShell; import sys; a, b = sys.argv[1:]; "
    code += "CaptureShell().execute(a, b, exc_stop=True)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(GALLERY), str(new)], cwd=GALLERY.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {cell["id"]: pictures(cell) for cell in json.loads(new.read_text(encoding="utf-8"))["cells"]}


def difference(one, other):
    "How far two pictures are apart, of 255, on average over what is not white, at a quarter of their size."
    small = [Image.open(io.BytesIO(data)).convert("L") for data in (one, other)]
    size = (small[0].width // 4, small[0].height // 4)
    a, b = (np.asarray(image.resize(size, Image.BOX), dtype=float) for image in small)
    return np.abs(a - b).sum() / max(((a < 250) | (b < 250)).sum(), 1)


def version(picture):
    "Which Matplotlib drew it, such as 3.11."
    return re.search(r"version(\d+\.\d+)", picture.info["Software"])[1]


@pytest.mark.slow
@pytest.mark.parametrize("heading, words, cell", SECTIONS, ids=[f"{s[0]}-{s[2]['id']}" for s in SECTIONS])
def test_the_lines_draw_the_picture(run_again, heading, words, cell):
    "To the pixel, nearly, by the same Matplotlib; another one sets text in other places."
    (stored,), (drawn,) = pictures(cell), run_again[cell["id"]]
    images = [Image.open(io.BytesIO(data)) for data in (stored, drawn)]
    same = version(images[0]) == version(images[1])
    sizes = [np.array(image.size) for image in images]
    assert np.abs(sizes[0] - sizes[1]).max() <= (2 if same else 16), f"the picture of {heading} is not this: {UPDATE}"
    most = MOST_DIFFERENCE if same else OTHER_MATPLOTLIB
    assert difference(stored, drawn) <= most, f"the picture of {heading} is not this: {UPDATE}"


def test_the_comparison_sees_other_data():
    "Two pictures of the same function are further apart than the comparison allows."
    points = [pictures(cell)[0] for heading, _, cell in DRAWN if heading == "plot_points"]
    assert difference(*points[:2]) > 2 * MOST_DIFFERENCE
