"""The course: what every chapter has, how it is ended, and that a typical wrong answer to an exercise is refused.

The notebooks are read here, not run: `scripts/run_notebooks.py` runs them and compares what they print. Only the
exercises are run once more, with the wrong answers that each of them lists.
"""

import ast
import contextlib
import io
import json
import re
from pathlib import Path

import pytest
from home import badges as home_badges
from home import install_cell, read_settings

ROOT = Path(__file__).resolve().parents[2]
COURSE = ROOT / "nbs" / "course"
NAMES = (
    "01_what_a_score_hides",
    "02_altering_a_question",
    "03_asking_and_reading",
    "04_consistency_by_hand",
    "05_what_guessing_gives",
    "06_how_sure_is_a_score",
    "07_where_it_leans",
    "08_confidence_and_calibration",
    "09_your_model_your_benchmark",
    "10_reading_a_paper",
    "11_a_project",
)
PAGES = {f"{name}.ipynb" for name in (*NAMES, "index", "glossary", "for_teachers")}
MOST_WORDS, MOST_WORDS_BEFORE_CORA, LEAST_EXERCISES = 2500, 6000, 40
HIDDEN = {"jupyter": {"source_hidden": True}, "cellView": "form", "tags": ["hide-input"]}
SOLUTION = {"jupyter": {"source_hidden": True, "outputs_hidden": True}, "cellView": "form", "tags": ["hide-cell"]}
HEADING = re.compile(r"^### Exercise (\d+\.\d+) *$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")

each_chapter = pytest.mark.parametrize("name", NAMES)


def cells(name: str) -> list[dict]:
    return json.loads((COURSE / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def source(cell: dict) -> str:
    "A cell without the flag that keeps it out of the first run of the tests."
    return "".join(cell["source"]).removeprefix("#| slow\n")


def prose(name: str) -> str:
    return "\n\n".join(source(cell) for cell in cells(name) if cell["cell_type"] == "markdown")


def printed(cell: dict) -> str:
    return "".join("".join(o["text"]) for o in cell["outputs"] if o["output_type"] == "stream")


def exercises(name: str) -> dict[str, list[dict]]:
    "Number of each exercise -> its text, the reader's cell, the check, the solution."
    book, found = cells(name), {}
    for i, cell in enumerate(book):
        if cell["cell_type"] == "markdown":
            numbers = HEADING.findall(source(cell))
            assert len(numbers) <= 1, f"one cell has several exercises: {numbers}"
            found |= {number: book[i : i + 4] for number in numbers}
    return found


def answer_name(cell: dict) -> str:
    "The name in a reader's cell that the dots stand for."
    last = ast.parse(source(cell)).body[-1]
    assert isinstance(last, ast.Assign) and len(last.targets) == 1, "the last statement must be: name = ..."
    assert isinstance(last.value, ast.Constant) and last.value.value is ..., "the last statement must be: name = ..."
    return last.targets[0].id


def last_call(cell: dict) -> str:
    return ast.unparse(ast.parse(source(cell)).body[-1])


@each_chapter
def test_the_page_begins_alike(name):
    "Title with number and question; what is needed, below badges if there is a home; a line without the package."
    title, needs, install, *_ = cells(name)
    number = int(name[:2])
    assert re.fullmatch(rf"# {number}\. \S[^\n]*\n\n> \S[^\n]*", source(title).strip()), source(title)
    cfg = read_settings()
    badges = home_badges(cfg["home"], cfg["branch"], f"nbs/course/{name}.ipynb")
    assert source(needs).startswith(badges) and ("[![" in source(needs)) == bool(badges)
    line = source(needs).removeprefix(badges)
    assert line.strip() and "minutes" in line, "what one needs, how long it takes, what one can do afterwards"
    assert install["cell_type"] == "code" and source(install) == install_cell(cfg["home"])


@each_chapter
def test_nothing_is_exported(name):
    for cell in cells(name):
        assert not re.search(r"^#\| *(export|exports|exporti|default_exp)\b", source(cell), re.MULTILINE)


@each_chapter
def test_length(name):
    assert len(prose(name).split()) <= MOST_WORDS


def test_cora_comes_early():
    "Before CoRA is defined there are three chapters at most, of 6,000 words together."
    before = [name for name in NAMES if name[:2] in ("01", "02", "03")]
    assert sum(len(prose(name).split()) for name in before) <= MOST_WORDS_BEFORE_CORA


@each_chapter
def test_cora_is_defined_in_chapter_4_alone(name):
    text = prose(name)
    defined = "**CoRA**" in text or "consistency-rebalanced" in text.lower()
    assert defined == name.startswith("04"), "CoRA is defined in chapter 4, and only there"
    if name[:2] in ("01", "02", "03"):
        assert not re.search(r"CoRA\}? *=", text), "a formula of CoRA before it is defined"


@each_chapter
def test_the_page_ends_alike(name):
    "A summary of three to five points, links to read on, and the next chapter."
    text = prose(name)
    summary = text.partition("\n## Summary")[2].partition("\n## ")[0]
    assert 3 <= len(re.findall(r"^- ", summary, re.MULTILINE)) <= 5
    read_on = text.partition("\n## Read on")[2]
    assert LINK.search(read_on), "no link under Read on"
    if name != NAMES[-1]:
        following = NAMES[NAMES.index(name) + 1]
        last = text.strip().splitlines()[-1]
        assert re.fullmatch(rf"Next: \[{int(following[:2])}\. [^\]]+\]\({following}\.ipynb\)", last), last


@each_chapter
def test_links_exist(name):
    for link in LINK.findall(prose(name)):
        path = link.partition("#")[0]
        if path and not re.match(r"\w+:", path):
            assert (COURSE / path).exists(), link


@each_chapter
def test_exercises_are_four_cells(name):
    "Text, a cell for the reader, a check, a solution: titles, tags, and what they print in the committed notebook."
    found, chapter = exercises(name), int(name[:2])
    assert 3 <= len(found) <= 6
    assert list(found) == [f"{chapter}.{i}" for i in range(1, len(found) + 1)]
    for number, (_, reader, check, solution) in found.items():
        assert [c["cell_type"] for c in (reader, check, solution)] == ["code"] * 3, number
        call = f"exercise_{number.replace('.', '_')}.check({answer_name(reader)})"
        for cell, kind, metadata in ((check, "Check", HIDDEN), (solution, "Solution", SOLUTION)):
            assert re.fullmatch(rf"# ?@title {kind} {number}", source(cell).splitlines()[0]), number
            assert cell["metadata"] == metadata, f"{kind} {number}: {cell['metadata']}"
            assert last_call(cell) == call, f"{kind} {number} must end with {call}"
        assert printed(reader) == "", number
        assert printed(check).startswith(f"… Exercise {number}: replace the dots"), number
        assert printed(solution) == f"✓ Exercise {number}: right.\n", number
        assert f"`{answer_name(reader)}`" in source(found[number][0]), f"{number} does not say the variable's name"


@each_chapter
def test_exercises_know_a_wrong_answer(name):
    for number, (_, _, check, _) in exercises(name).items():
        calls = [n for n in ast.walk(ast.parse(source(check))) if isinstance(n, ast.Call)]
        (made,) = [n for n in calls if isinstance(n.func, ast.Name) and n.func.id == "Exercise"]
        assert ast.literal_eval(made.args[0]) == number
        (wrong,) = [k.value for k in made.keywords if k.arg == "wrong"]
        assert isinstance(wrong, (ast.List, ast.Tuple)) and wrong.elts, f"{number} lists no wrong answer"
        for pair in wrong.elts:
            assert isinstance(pair, ast.Tuple) and len(pair.elts) == 2 and ast.literal_eval(pair.elts[1]), number


def test_there_are_forty_exercises():
    "When all chapters are there."
    numbers = {name: len(exercises(name)) for name in NAMES}
    assert sum(numbers.values()) >= LEAST_EXERCISES, numbers


@each_chapter
def test_drawings_are_folded(name):
    "Long code that only draws lies in cells that a reader may skip."
    for cell in cells(name):
        if cell["cell_type"] == "code":
            titled = re.match(r"# ?@title Drawing", source(cell))
            assert not titled or cell["metadata"] == HIDDEN
            assert not any(o["output_type"] == "error" or o.get("name") == "stderr" for o in cell["outputs"])


LIGHT = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def say(code: str, names: dict, title: str) -> str:
    "Run a cell, and return what it printed."
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, title, "exec"), names)
    return out.getvalue()


@each_chapter
def test_wrong_answers_are_refused(name):
    """Each check, run with each of its wrong answers, prints ✗ and the hint.

    Of the other cells only imports and definitions are run: no check needs a model. That the solutions pass is shown by
    the notebook's own outputs, which `scripts/run_notebooks.py` compares.
    """
    names, parts = {"__name__": name}, exercises(name)
    checks = {source(part[2]): number for number, part in parts.items()}
    seen = set()
    for cell in cells(name)[3:]:
        if cell["cell_type"] != "code":
            continue
        code = source(cell)
        if code not in checks:
            light = [node for node in ast.parse(code).body if isinstance(node, LIGHT)]
            say(ast.unparse(ast.Module(light, [])), names, name)
            continue
        number, title = checks[code], f"Check {checks[code]}"
        answer = answer_name(parts[number][1])
        names[answer] = ...
        assert say(code, names, title).startswith(f"… Exercise {number}: ")
        wrong = names[f"exercise_{number.replace('.', '_')}"].wrong
        assert wrong
        for given, hint in wrong:
            assert say(code, names | {answer: given}, title) == f"✗ Exercise {number}: {hint}.\n"
        seen.add(number)
    assert seen == parts.keys()
