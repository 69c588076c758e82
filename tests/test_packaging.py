"""What a research package is expected to have: old names that warn, citation, changes, a release that is tried first."""

import ast
import configparser
import importlib
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import cora_nb as cn

ROOT = Path(__file__).resolve().parent.parent
VERSION = "0.2.0"
LAST_OF_0_1 = "fc9a1e0"  # the last commit before Part 7, which moved the names
OLD_NAMES = [
    (module, *word.partition("=")[::2], place)
    for module, places in cn._OLD_PLACES.items()
    for place, words in places.items()
    for word in words.split()
]


def python(code: str, *options: str) -> subprocess.CompletedProcess:
    "A program in a process of its own, with the package of this checkout."
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


# --- what the package says of itself -----------------------------------------------------------------------------


def test_the_version_is_the_same_everywhere():
    ini = configparser.ConfigParser(delimiters=["="])
    ini.read(ROOT / "settings.ini", encoding="utf-8")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
    found = {ini["DEFAULT"]["version"], cn.__version__, str(citation["version"]), newest}
    assert found == {VERSION}


def test_the_package_says_what_it_is():
    assert cn.__doc__.startswith("Is a multiple-choice score worth anything?")
    shown = python("import cora_nb; help(cora_nb)").stdout
    assert "computes" in shown and "arXiv 2511.21860" in shown and "dir(cora_nb)" in shown


def test_the_program_in_the_docstring_is_the_six_lines_of_the_readme():
    program = re.search(r"(?:^    .*\n|^\n)+", cn.__doc__[cn.__doc__.index("    import") :], re.MULTILINE)[0]
    lines = [line.strip() for line in program.splitlines() if line.strip()]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(lines) == 6
    ast.parse("\n".join(lines))
    assert [line for line in lines if line not in readme.replace(", progress=False", "")] == []


def test_ipywidgets_comes_with_the_package_and_extras_are_those_of_settings():
    ini = (ROOT / "settings.ini").read_text(encoding="utf-8")
    assert re.search(r"^requirements = .*\bipywidgets>=8\b", ini, re.MULTILINE)
    assert "widgets_requirements" not in ini
    told = [f for f in [ROOT / "README.md", *(ROOT / "nbs").rglob("*.ipynb")] if "cora_nb[widgets]" in f.read_text()]
    assert told == []


# --- names of 0.1 ------------------------------------------------------------------------------------------------


def test_every_old_name_is_the_thing_at_its_new_place_and_warns_once():
    "All of the table in one fresh process; each import stands in a line of its own, twice."
    code = ["import warnings, importlib, cora_nb", "warnings.simplefilter('always')"]
    for module, old, new, place in OLD_NAMES:
        code += [f"from cora_nb.{module} import {old} as a", f"from cora_nb.{module} import {old} as b"]
        code += [f"assert a is b is importlib.import_module('cora_nb.{place}').{new or old}, '{module}.{old}'"]
    done = python("\n".join(code))
    assert done.returncode == 0, done.stderr[-2000:]
    said = [line for line in done.stderr.splitlines() if "DeprecationWarning" in line]
    expected = [
        f"DeprecationWarning: cora_nb.{module}.{old} is now cora_nb.{place}.{new or old}; "
        "the old place will be gone in version 0.3"
        for module, old, new, place in OLD_NAMES
    ]
    assert [line.partition(": ")[2] for line in said] == expected
    lines = [int(re.match(r"<string>:(\d+): ", line)[1]) for line in said]  # points at the import, not at the package
    assert lines == [3 + 3 * i for i in range(len(OLD_NAMES))]


@pytest.mark.parametrize("first", ["", "cora_nb.evaluate; ", "import cora_nb.cli.run; "])
def test_evaluate_of_runs_can_be_called_whatever_was_imported_before(first):
    "Where 0.1 had a function, there is a module of the same name now."
    code = f"import cora_nb; {first}from cora_nb.runs import evaluate\n"
    code += "for _ in range(2):\n    try: evaluate(None, [])\n    except cora_nb.CoraError as e: print(e)\n"
    done = python(code, "-W", "always")
    assert done.stdout.count("a respondent needs") == 2, done.stderr
    assert done.stderr.count("DeprecationWarning") == 1
    assert "cora_nb.runs.evaluate is now cora_nb.runs.evaluate.evaluate, or cora_nb.evaluate" in done.stderr


def test_the_new_places_are_silent():
    code = "import cora_nb as cn\nfrom cora_nb.runs.evaluate import evaluate\nfrom cora_nb.metrics.cora import score\n"
    code += "import cora_nb.runs.evaluate as module\n"
    code += "assert cn.evaluate is evaluate is module.evaluate and cn.score is score; cn.render"
    done = python(code, "-W", "error::DeprecationWarning:__main__")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_first_program_of_the_readme_of_0_1_still_runs():
    code = """
from cora_nb.benchmarks import load_benchmark
from cora_nb.metrics import score
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.runs import evaluate
from cora_nb.tables import render, score_table
from cora_nb.variants import make_variants

questions = load_benchmark("math")[:10]
variants = make_variants(questions)
organism = CausalRespondent("organism/steady")
scores = {name: score(evaluate(organism, variants, progress=False)) for name in ("steady",)}
print(render(score_table(scores)))
"""
    done = python(code)
    assert done.returncode == 0 and "CoRA" in done.stdout, done.stderr


def test_an_unknown_old_name_is_one_line_that_names_the_list():
    done = python("from cora_nb.tables import to_csv")
    assert done.stderr.splitlines()[-1].startswith("ImportError: cannot import name 'to_csv' from 'cora_nb.tables'")
    with pytest.raises(AttributeError, match="CHANGELOG.md lists the names of 0.1"):
        sys.modules["cora_nb.tables"].to_csv
    assert python("import cora_nb.no_such_module").returncode == 1


def test_the_door_lists_only_its_own_names():
    listed = {name for name in dir(cn) if not name.startswith("__")}
    assert listed == set(cn._MODULES)
