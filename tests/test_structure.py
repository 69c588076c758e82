"""The rooms of the package: who imports whom, what things are called, how long modules and lines are.

Exceptions are listed here, each with what it waits for. A list only shrinks: an entry that is no longer needed fails.
"""

import ast
import json
import sys
from collections import defaultdict
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


MODULES = {
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
    return found & MODULES.keys()


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
    assert {room(m) for m in MODULES} <= set(ROOMS)


def test_imports_go_up_the_list_of_rooms():
    def allowed(importer: str, importee: str) -> bool:
        mine, theirs = room(importer), room(importee)
        earlier = ROOMS.index(theirs) <= ROOMS.index(mine)
        return mine == theirs or (earlier and theirs in NARROWER.get(mine, ROOMS))

    edges = {(module, other) for module, tree in MODULES.items() for other in imported(module, tree)}
    assert len(edges) > 100, "the import graph was not read"
    compare_with_list({e for e in edges if not allowed(*e)}, IMPORTS_TO_REMOVE, "imports from a later room")


def test_imports_make_no_circle():
    graph, done = {module: imported(module, tree) - {module} for module, tree in MODULES.items()}, set()

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
    names = {m.split(".")[-1] for m in MODULES} if kind == "module" else {p for m in MODULES for p in m.split(".")[:-1]}
    assert not names & set(sys.stdlib_module_names)


def test_a_public_name_means_one_thing():
    homes = defaultdict(set)
    for module, tree in MODULES.items():
        for name in public_names(tree):
            homes[name].add(module)
    assert len(homes) > 300, "the public names were not read"
    several = {name for name, modules in homes.items() if len(modules) > 1}
    compare_with_list(several, NAMES_TO_SEPARATE, "exported by more than one module")


def test_modules_are_short():
    lines = {m: len((PACKAGE / f"{m.replace('.', '/')}.py").read_text(encoding="utf-8").splitlines()) for m in MODULES}
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
    assert len(long) > 400, "the files were not read"
    found = {name: n for name, n in long.items() if n}
    assert not found, f"lines of more than 120 characters: {found}"
