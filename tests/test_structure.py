"""The rooms of the package: who imports whom, what things are called, how long modules and lines are.

Exceptions are listed here, each with what it waits for. A list only shrinks: an entry that is no longer needed fails.
"""

import ast
import json
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "cora_nb"

ROOMS = (
    *(
        "core",
        "registry",
        "forms",
        "checks",
        "results",
        "stats",
        "benchmarks",
        "variants",
        "prompts",
        "respondents",
        "responses",
        "runs",
    ),
    *("metrics", "report", "interop", "papers", "teaching", "cli", "__main__"),
)  # a module imports from its own room and from rooms earlier in this list
FOUNDATION = {"core", "registry", "forms", "checks", "results"}
NARROWER = {  # rooms that may import less than the order allows, and what
    "stats": FOUNDATION,  # useful without a language model
    "metrics": FOUNDATION | {"benchmarks", "variants", "prompts", "responses", "stats"},  # no metric knows a model
}

IMPORTS_TO_REMOVE = set()
NAMES_TO_SEPARATE = set()
MOST_LINES = 800  # of a module: it is an idea, and what serves one other module lives in it


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts)


@cache
def modules() -> dict[str, ast.Module]:
    return {
        module_name(file): ast.parse(file.read_text(encoding="utf-8"))
        for file in sorted(PACKAGE.rglob("*.py"))
        if file.name not in ("__init__.py", "_modidx.py")
    }


def room(module: str) -> str:
    return module.split(".")[0]


def imported(module: str, tree: ast.Module) -> set[str]:
    "The modules of this package that a module imports, at its top or within a function."
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = ["cora_nb", *module.split(".")][: -node.level] if node.level else []
            base = ".".join([*package, *filter(None, [node.module])])
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        found |= {name.removeprefix("cora_nb.") for name in names if name.startswith("cora_nb.")}
    return found & modules().keys()


def public_names(tree: ast.Module) -> list[str]:
    "What `__all__` lists."
    for node in tree.body:
        if isinstance(node, ast.Assign) and [t.id for t in node.targets if isinstance(t, ast.Name)] == ["__all__"]:
            return ast.literal_eval(node.value)
    return []


def compare_with_list(found: set, listed: set, wrong: str) -> None:
    "Nothing is found that is not listed, and nothing is listed that is not found."
    assert not found - listed, f"{wrong}: {sorted(found - listed)}"
    assert not listed - found, f"no longer needed, remove from the list in this file: {sorted(listed - found)}"


def test_every_module_is_in_a_room():
    assert {room(m) for m in modules()} <= set(ROOMS)


def test_imports_go_up_the_list_of_rooms():
    def allowed(importer: str, importee: str) -> bool:
        mine, theirs = room(importer), room(importee)
        earlier = ROOMS.index(theirs) <= ROOMS.index(mine)
        return mine == theirs or (earlier and theirs in NARROWER.get(mine, ROOMS))

    edges = {(module, other) for module, tree in modules().items() for other in imported(module, tree)}
    assert len(edges) > 100, "the import graph was not read"
    compare_with_list({e for e in edges if not allowed(*e)}, IMPORTS_TO_REMOVE, "imports from a later room")


def test_imports_make_no_circle():
    graph, done = {module: imported(module, tree) - {module} for module, tree in modules().items()}, set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, f"modules import each other: {' -> '.join([*path, module])}"
        if module not in done:
            for other in sorted(graph[module]):
                visit(other, (*path, module))
            done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("kind", ["module", "folder"])
def test_no_name_of_the_standard_library(kind):
    "`import inspect` must never find a module of ours, in whatever folder Python was started."
    names = (
        {m.split(".")[-1] for m in modules()} if kind == "module" else {p for m in modules() for p in m.split(".")[:-1]}
    )
    assert not names & set(sys.stdlib_module_names)


def test_a_public_name_means_one_thing():
    homes = defaultdict(set)
    for module, tree in modules().items():
        for name in public_names(tree):
            homes[name].add(module)
    assert len(homes) > 300, "the public names were not read"
    several = {name for name, modules in homes.items() if len(modules) > 1}
    compare_with_list(several, NAMES_TO_SEPARATE, "exported by more than one module")


def test_modules_are_short():
    lines = {
        m: len((PACKAGE / f"{m.replace('.', '/')}.py").read_text(encoding="utf-8").splitlines()) for m in modules()
    }
    assert not (long := {module: n for module, n in lines.items() if n > MOST_LINES}), long


def code_lines(file: Path) -> list[str]:
    "The lines of a Python file, or of the code cells of a notebook."
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        return text.splitlines()
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return [line for cell in cells for line in "".join(cell["source"]).splitlines()]


def test_lines_are_short():
    files = [ROOT / "setup.py", *(f for d in ("tests", "scripts") for f in (ROOT / d).rglob("*.py"))]
    files += [f for f in (ROOT / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in f.parts]
    long = {f.relative_to(ROOT).as_posix(): sum(len(line) > 120 for line in code_lines(f)) for f in files}
    assert len(long) > 300, "the files were not read"
    found = {name: n for name, n in long.items() if n}
    assert not found, f"lines of more than 120 characters: {found}"


# ---- words are made last, and nobody reads them

MADE_WORDS = {"note", "what", "error", "coverage"}  # attributes and columns that hold words for people
MAKERS_OF_WORDS = {"note_of", "note_lines", "notes", "remark_words", "bounds_words", "unasked_words", "str"}
READS_WORDS = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "find", "contains"}
TEXTS_OF_OTHERS = {  # a library or a server says it in words alone: its one client makes a kind of it
    "benchmarks.hub",  # `datasets`: this data set needs a script
    "respondents.chat",  # a server: the limit of tokens has another name
    "respondents.local",  # `torch`: out of memory
    "responses.files",  # `pyarrow`: what it cannot read, kept to what can be printed
}


def holds_words(
    node: ast.expr,
    errors: set[str],  # names of caught exceptions
) -> bool:
    "Whether an expression is a note, a remark's `what`, an error text, or a sentence of the package."
    if isinstance(node, ast.Attribute):
        return node.attr in MADE_WORDS or node.attr == "str" and holds_words(node.value, errors)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value in MADE_WORDS
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("lower", "casefold", "strip"):
        return holds_words(node.func.value, errors)
    if not isinstance(node.func, ast.Name) or node.func.id not in MAKERS_OF_WORDS:
        return False
    said = node.args[0] if node.args else None
    return node.func.id != "str" or isinstance(said, ast.Name) and said.id in errors or holds_words(said, errors)


def reads_words(tree: ast.Module) -> list[int]:
    "The lines in which code asks what a text of the package says."
    errors = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
    given = [node for node in ast.walk(tree) if isinstance(node, ast.arg) and node.annotation is not None]
    errors |= {node.arg for node in given if ast.unparse(node.annotation).endswith(("Exception", "Error"))}
    lines = []
    for node in ast.walk(tree):
        asked = []
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            asked = node.comparators
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in READS_WORDS:
                asked = [node.func.value]
            elif isinstance(node.func.value, ast.Name) and node.func.value.id == "re":
                asked = node.args
        lines += [node.lineno for each in asked if holds_words(each, errors)]
    return lines


def test_no_code_reads_words():
    found = {name: lines for name, tree in modules().items() if (lines := reads_words(tree))}
    assert set(found) == TEXTS_OF_OTHERS, found


def test_reading_words_is_noticed():
    for code in (
        '"few" in row.note',
        'table["note"].str.contains("few")',
        're.search("of the full run", note_of(row))',
        'remark.what.removesuffix("s")',
        'reply.error.startswith("no reply")',
        'try: f()\nexcept E as e: "locked" in str(e).lower()',
    ):
        assert reads_words(ast.parse(code)), code
    for code in ("reply.error is None", 'row["note"]', '"note" in table', "Remark('all_asked') in row.remarks"):
        assert not reads_words(ast.parse(code)), code
