"""The page as a file: what is in it, and what keeps it safe."""

import base64
import hashlib
import re
from contextlib import suppress

import matplotlib.pyplot as plt
import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.cli.table import cora_report
from cora_nb.core import CoraError
from cora_nb.report.findings import findings
from cora_nb.report.page import make_report
from cora_nb.report.page import _figures, _command_line
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.files import write_responses
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants


@pytest.fixture(scope="module")
def run():
    return evaluate(SimulatedRespondent(name="m"), make_variants(math_benchmark(10)), progress=False)


@pytest.fixture(scope="module")
def page(run):
    return make_report(run)


def test_only_the_one_script_and_style_may_run(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page.html)[1].replace("&#39;", "'")
    blocks = re.findall(r"<(style|script)>(.*?)</\1>", page.html, re.S)
    assert [kind for kind, _ in blocks] == ["style", "script"] and "default-src 'none'" in policy
    for kind, text in blocks:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_nothing_is_loaded(page):
    body = page.html
    assert not re.findall(r'(?:src|href)="(?!#|data:)', body) and "url(" not in body and "@import" not in body


@pytest.mark.slow
def test_the_same_run_gives_the_same_page(run, page):
    assert make_report(run).html == page.html


def test_a_notebook_shows_it_in_a_frame_that_may_do_nothing_else(page):
    frame = page._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts allow-downloads"') and "<script" not in frame


def test_figures_are_there_and_have_words(page):
    assert len(re.findall(r'<img src="data:image/svg\+xml;base64,[^"]+" alt="Figure: [^"]+"', page.html)) >= 5


def test_saving(page, tmp_path):
    path = page.save(tmp_path / "a.html")
    assert path.read_text(encoding="utf-8") == page.html
    page.save(path)  # a page replaces a page
    (tmp_path / "mine.html").write_text("<p>mine")
    with pytest.raises(CoraError, match="there is another file of this name already"):
        page.save(tmp_path / "mine.html")
    with pytest.raises(CoraError, match="this is a folder"):
        page.save(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.html", "mine.html"]


@pytest.mark.slow
def test_the_command(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_responses(run, tmp_path / "m")
    cora_report([str(tmp_path / "m")], title="a < b")
    assert "report: report.html (" in capsys.readouterr().out
    assert "<title>a &lt; b</title>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    with pytest.raises(SystemExit, match="out must be an .html file, got 'x.txt'"):
        cora_report([str(tmp_path / "m")], out="x.txt")


@pytest.mark.parametrize(
    "told, line",
    [
        ({"command": "cora_run", "respondents": ["chat:m,name=a b"], "limit": 5, "dry": False, "strict": True},
         "cora_run 'chat:m,name=a b' --limit 5 --strict"),
        ({"command": "cora_run", "system": "'; rm -rf /"}, "cora_run --system ''\"'\"'; rm -rf /'"),
        (None, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_the_command_to_repeat_it(told, line):
    assert _command_line(told) == line


def test_the_axes_of_figures_say_what_is_counted(run):
    names = {}
    for (name, _), draw in _figures(findings({"m": run})).items():
        with suppress(CoraError):
            names[name] = draw().get_xlabel()
    plt.close("all")
    assert names["lengths"] == "length rank of the chosen choice (0: the longest)" and names["places"] == "place"
    assert names["answer_places"] == "place of the right answer"
