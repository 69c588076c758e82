"""`cora_report`, and the page at the end of the commands that ask."""

import re
import shlex

import pytest

from cora_nb.cli.paper import cora_paper
from cora_nb.cli.table import cora_report
from cora_nb.cli.run import cora_run
from cora_nb.core import CoraError, Question
from cora_nb.report.page import make_report
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

TWO = ["simulated:name=a", "simulated:name=b b,slips=0.3"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_run_ends_with_the_line_that_makes_its_page(place, capsys):
    cora_run(TWO, limit=3)
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("a page to look at: cora_report ")
    command, *words = shlex.split(line.partition(": ")[2])
    assert command == "cora_report" and words == ["responses/math/a", "responses/math/b-b"]
    cora_report(words)
    assert re.fullmatch(r"report: report.html \(\d\.\d MB\)\n", capsys.readouterr().out)
    page = (place / "report.html").read_text(encoding="utf-8")
    assert "<h3>a</h3>" in page and "cora_run simulated:name=a " in page


@pytest.mark.slow
def test_a_run_makes_its_page(place, capsys):
    cora_run(TWO, limit=3, report=True)
    assert capsys.readouterr().out.splitlines()[-1].startswith("report: responses/math/report.html (")
    cora_run(TWO[:1], limit=4, out="again", report=True)
    assert (place / "again" / "math" / "report.html").is_file()


@pytest.mark.slow
def test_figures_for_print(place, capsys):
    cora_run(TWO, limit=12, figures="plots")
    line = capsys.readouterr().out.splitlines()[-1]
    files = sorted(p.name for p in (place / "plots").iterdir())
    assert line == f"figures: {len(files)} files in plots" and {"scores.svg", "scores.png", "methods.svg"} <= set(files)
    (place / "taken").write_text("")
    with pytest.raises(SystemExit, match="taken: this is a file, and a folder is to be written"):
        cora_run(TWO, limit=12, figures="taken")


@pytest.mark.slow
def test_a_paper_makes_a_page_for_each_run_of_its_plan(place, capsys):
    cora_paper(["cora/table_2", *TWO], sample=3, benchmark="math")
    line = capsys.readouterr().out.splitlines()[-1]
    words = shlex.split(line.removeprefix("a page to look at: cora_report "))
    cora_report(words)
    cora_paper(["cora/table_2", *TWO], sample=3, benchmark="math", report=True)
    assert re.search(r"^report: papers/.*\.html \(", capsys.readouterr().out, re.M)


@pytest.mark.parametrize(
    "words, why",
    [
        ({"runs": ["none"]}, "none"),
        ({"runs": ["a", "a"]}, "named twice"),
        ({"runs": ["a"], "out": "a.pdf"}, ".html file"),
    ],
)
def test_one_line(place, words, why):
    with pytest.raises(SystemExit, match=why):
        cora_report(**words)


def test_questions_of_one_name_that_are_not_the_same():
    one, other = (make_variants([Question("q", text, ("x", "y"), 0)]) for text in ("this?", "that?"))
    runs = [evaluate(SimulatedRespondent(name=n), v, progress=False) for n, v in (("a", one), ("b", other))]
    with pytest.raises(CoraError, match="question 'q' differs between the runs"):
        make_report(runs, pictures=False)
