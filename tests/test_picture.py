"""The picture of the README, and any picture that README.md or nbs/index.ipynb names: there, small, and up to date."""

import importlib.util
import io
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageStat

import cora_nb as cn
from cora_nb.responses.files import write_responses

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "nbs" / "images" / "organisms.png"
IMAGE = r"!\[([^\]]*)\]\(([^)\s]+)[^)]*\)"
MOST_BYTES = 120_000


def script():
    "scripts/make_picture.py as a module."
    spec = importlib.util.spec_from_file_location("make_picture", ROOT / "scripts" / "make_picture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def index_cells():
    return json.loads((ROOT / "nbs" / "index.ipynb").read_text(encoding="utf-8"))["cells"]


def named_images():
    "(page, words for who cannot see it, address) of each image that the pages name."
    pages = {"README.md": (ROOT / "README.md").read_text(encoding="utf-8")}
    said = ["".join(cell["source"]) for cell in index_cells() if cell["cell_type"] == "markdown"]
    pages["nbs/index.ipynb"] = "\n\n".join(said)
    return [(page, *found) for page, text in pages.items() for found in re.findall(IMAGE, text)]


def test_it_is_there_and_fits_a_readme():
    assert PICTURE.stat().st_size < MOST_BYTES
    picture = Image.open(PICTURE)
    assert picture.format == "PNG" and picture.size == (900, 450)


def test_every_image_that_is_named_is_there():
    "Not on the network: a reader without one sees it, too. PyPI gets an address, see below."
    for page, words, address in named_images():
        file = (ROOT / page).parent / address
        assert file.is_file(), f"{page}: the image {address} leads nowhere"
        assert len(words) > 20, f"{page}: the image {address} needs words for those who cannot see it"
        assert file.stat().st_size < MOST_BYTES and 300 <= Image.open(file).width <= 1000


def test_readme_and_index_name_the_same_images():
    files = {p: {((ROOT / p).parent / a).resolve() for q, _, a in named_images() if q == p} for p, *_ in named_images()}
    assert len(set(map(frozenset, files.values()))) <= 1, files


def test_its_numbers_are_those_of_the_page():
    "What the script drew stands in the file; the page's cell prints the table of the same run, its words some of it."
    drawn = dict(re.findall(r"(\w+ \S+) (\d\.\d\d)", Image.open(PICTURE).info["Description"]))
    (output,) = [o for c in index_cells() for o in c.get("outputs", [])]
    table = "".join(output["text"])
    for score in ("MCQA", "MCQA+", "CoRA"):
        (line,) = re.findall(rf"^  {re.escape(score)} .*", table, re.M)  # with ranks, unless the score tells nothing
        printed = dict(zip(("steady", "skewed", "guesser"), re.findall(r"\d\.\d\d", line), strict=True))
        assert printed == {who: drawn[f"{who} {score}"] for who in printed}, score
    (words,) = {words for _, words, address in named_images() if address.endswith(PICTURE.name)}
    for score in ("MCQA", "CoRA"):
        assert "{}, {} and {}".format(*(drawn[f"{who} {score}"] for who in ("steady", "skewed", "guesser"))) in words


@pytest.mark.slow
def test_the_script_draws_the_committed_picture(organism_run, tmp_path):
    make_picture = script()
    figure, scores = make_picture.draw(make_picture.read_runs(organism_run[0] / "responses" / "math"))
    make_picture.save(figure, scores, tmp_path / "new.png")
    new, committed = (Image.open(file) for file in (tmp_path / "new.png", PICTURE))
    assert new.info["Description"] == committed.info["Description"]
    difference = ImageChops.difference(new.convert("L"), committed.convert("L"))
    assert ImageStat.Stat(difference).mean[0] < 1, "run python scripts/make_picture.py"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    "Two small runs as `cora_run` writes them, by the names of the organisms."
    folder = tmp_path_factory.mktemp("runs")
    variants = cn.make_variants(cn.load_benchmark("math")[:30])
    for name, seed in (("steady", 1), ("skewed", 2)):
        who = cn.SimulatedRespondent(name=name, knows=0.7, position=(3, 1), seed=seed)
        write_responses(cn.evaluate(who, variants, progress=False), folder / name)
    return folder


def test_the_script_draws_the_same_twice(saved, tmp_path):
    import matplotlib.pyplot as plt

    make_picture = script()
    for name in ("one.png", "two.png"):
        figure, scores = make_picture.draw(make_picture.read_runs(saved))
        make_picture.save(figure, scores, tmp_path / name)
        plt.close(figure)
    one, two = ((tmp_path / name).read_bytes() for name in ("one.png", "two.png"))
    assert one == two
    picture = Image.open(io.BytesIO(one))
    assert picture.size == (900, 450) and "Software" not in picture.info
    value = cn.lookup(scores, "CoRA", respondent="steady").value
    assert f"steady CoRA {value:.2f}" in picture.info["Description"]


def test_rows_are_sorted_by_right_replies(saved):
    "Counted from the colours of the map, not from the run."
    import matplotlib.pyplot as plt
    import numpy as np

    make_picture = script()
    for run in make_picture.read_runs(saved).values():
        figure, ax = plt.subplots()
        make_picture.draw_run(run, ax)
        (drawn,) = ax.collections
        right = (np.ma.filled(drawn.get_array(), -1) == 0).sum(axis=1)
        assert (np.diff(right) >= 0).all() and right[0] < right[-1] and ax.get_ylim() == (30, 0)
        plt.close(figure)


def test_no_words_lie_on_one_another(saved):
    "Labels of the maps, titles, legends: what the picture says can be read."
    import matplotlib.pyplot as plt

    make_picture = script()
    figure, _ = make_picture.draw(make_picture.read_runs(saved))
    figure.canvas.draw()
    renderer, width, height = figure.canvas.get_renderer(), *figure.get_size_inches() * figure.dpi
    for ax in figure.axes:
        boxes = [t.get_window_extent(renderer) for t in (*ax.get_xticklabels(), ax.title) if t.get_text()]
        for i, box in enumerate(boxes):
            assert 0 <= box.x0 and box.x1 <= width and 0 <= box.y0 and box.y1 <= height
            assert not any(box.padded(-1).overlaps(other) for other in boxes[:i])
    legends = [legend.get_window_extent(renderer) for legend in figure.legends]
    assert len(legends) == 2 and not legends[0].overlaps(legends[1])
    plt.close(figure)


def packaged(monkeypatch):
    "What setup.py hands to setuptools, and its function that makes the long description."
    given = {}
    monkeypatch.setattr("setuptools.setup", lambda **told: given.update(told))
    return given, runpy.run_path(str(ROOT / "setup.py"))["long_description"]


def test_pypi_gets_addresses(monkeypatch):
    "PyPI shows the README far from the files: no image and no link of it is relative there, with a home or without."
    given, made = packaged(monkeypatch)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    without, with_home = (made(readme, home, "main") for home in ("", "https://github.com/me/it"))
    for text, least in ((given["long_description"], 0), (without, 0), (with_home, 20)):
        text = re.sub(r"^```.*?^```|`[^`\n]+`", "", text, flags=re.M | re.S)
        targets = re.findall(r"\]\(([^()\s]+)", text)
        assert len(targets) >= least and all(re.match("https?:|#", target) for target in targets)
    assert given["long_description_content_type"] == "text/markdown"


@pytest.mark.parametrize(
    "markdown, expected",
    [
        ("![a map](nbs/a.png)", "![a map](RAW/nbs/a.png)"),
        ("[core](nbs/core.ipynb#x)", "[core](https://github.com/me/it/blob/main/nbs/core.ipynb#x)"),
        ("[![a](b.png)](c.md)", "[![a](RAW/b.png)](https://github.com/me/it/blob/main/c.md)"),
        ("[`compare`](nbs/a.ipynb)", "[`compare`](https://github.com/me/it/blob/main/nbs/a.ipynb)"),
        ("[arXiv](https://arxiv.org/abs/1) [here](#here)", "[arXiv](https://arxiv.org/abs/1) [here](#here)"),
        ("`f[0](x)` and\n```python\nf[0](x)\n```", "`f[0](x)` and\n```python\nf[0](x)\n```"),
    ],
)
def test_an_address_for_each_file(monkeypatch, markdown, expected):
    expected = expected.replace("RAW", "https://raw.githubusercontent.com/me/it/main")
    assert packaged(monkeypatch)[1](markdown, "https://github.com/me/it", "main") == expected


@pytest.mark.parametrize(
    "markdown, expected",
    [
        ("![a map](nbs/a.png) [core](nbs/core.ipynb#x)", " core"),
        ("[`compare`](nbs/a.ipynb), [![a](b.png)](c.md)", "`compare`, "),
        ("[arXiv](https://arxiv.org/abs/1) `f[0](x)`", "[arXiv](https://arxiv.org/abs/1) `f[0](x)`"),
    ],
)
def test_without_a_home_links_are_words(monkeypatch, markdown, expected):
    assert packaged(monkeypatch)[1](markdown, "", "main") == expected


def test_a_picture_in_the_index_reaches_the_readme(tmp_path):
    "make_readme.py makes the address of an image right beside the README."
    notebook = {"cells": [{"cell_type": "markdown", "source": "![what became of it](images/organisms.png)"}]}
    (tmp_path / "nbs" / "images").mkdir(parents=True)
    (tmp_path / "nbs" / "images" / "organisms.png").write_bytes(PICTURE.read_bytes())
    (tmp_path / "nbs" / "index.ipynb").write_text(json.dumps(notebook))
    command = [sys.executable, str(ROOT / "scripts" / "make_readme.py"), "--readme", str(tmp_path / "README.md")]
    subprocess.run([*command, "--notebook", str(tmp_path / "nbs" / "index.ipynb")], check=True)
    assert "![what became of it](nbs/images/organisms.png)" in (tmp_path / "README.md").read_text(encoding="utf-8")
