"""The notebooks of a folder in one process, one after the other, backwards: `nbdev_test` itself goes forwards.

`nbdev_test` runs many notebooks in each of its processes. What one leaves behind (a registered score, a variable of the
environment, an option of pandas or matplotlib, another working folder, damaged weights) meets the next one.
"""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = sorted({p.parent.relative_to(ROOT).as_posix() for p in (ROOT / "nbs").rglob("*.ipynb")})
FOLDERS = [folder for folder in FOLDERS if "/." not in folder]

RUN = """
import os, pkgutil, sys, warnings
from importlib import import_module
from pathlib import Path

import nbdev.test
from nbdev.config import get_config


def registries():
    "The registries, all modules of the package that fill them imported."
    import cora_nb

    for folder in ("metrics", "prompts", "variants"):
        for module in pkgutil.iter_modules([f"{cora_nb.__path__[0]}/{folder}"]):
            import_module(f"cora_nb.{folder}.{module.name}")
    from cora_nb.metrics.scores import RUN_SCORES, SCORES
    from cora_nb.prompts.letters import RULES
    from cora_nb.variants.families import FAMILIES

    return SCORES, RUN_SCORES, RULES, FAMILIES


def left_behind():
    import matplotlib
    import pandas as pd

    known = {"folder": os.getcwd(), "font size": matplotlib.rcParams["font.size"]}
    ours = ("CORA", "XDG", "HF_", "OPENAI", "PRACTICE", "COLUMNS")
    known |= {f"environment: {k}": v for k, v in os.environ.items() if k.startswith(ours)}
    known |= {name: pd.get_option(name) for name in ("display.max_rows", "display.width", "display.max_columns")}
    known |= {"registered": [sorted(set(r.registered) - own) for r, own in OURS]}
    return known | {"everything ignored": ("ignore", None, Warning, None, 0) in warnings.filters}


root, folder, order = Path(sys.argv[1]), *sys.argv[2:]
notebooks = sorted((root / folder).glob("*.ipynb"), reverse=order == "backwards")
skip, failed = get_config(path=root).tst_flags.split(), []
sys.path.insert(0, str(root))
OURS = [(registry, set(registry.registered)) for registry in registries()]  # a module's notebook registers them anew
before = left_behind()
for notebook in notebooks:
    passed, _ = nbdev.test.test_nb(notebook, skip_flags=skip, basepath=root)
    after = left_behind()
    failed += [] if passed else [f"{notebook.name} failed"]
    changed = [k for k in {*before, *after} if before.get(k) != after.get(k)]
    failed += [f"{notebook.name} leaves {k}: {after.get(k)}, before: {before.get(k)}" for k in changed]
    before = after
print(f"{len(notebooks)} notebooks")
sys.exit("\\n".join(failed) or 0)
"""


def run(root: Path, folder: str, order: str) -> subprocess.CompletedProcess:
    "Run the notebooks of one folder in one process."
    return subprocess.run([sys.executable, "-c", RUN, root, folder, order], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_notebooks_of_a_folder_in_one_process(folder):
    done = run(ROOT, folder, "backwards")
    assert done.returncode == 0 and not done.stdout.startswith("0 "), done.stderr[-6000:]


CASES = {  # what a notebook does, and what is said of it
    "import os; os.environ['XDG_CACHE_HOME'] = 'x'": "a.ipynb leaves environment: XDG_CACHE_HOME: x, before: None",
    "import os; os.chdir('/')": "",  # nbdev itself goes back
    "import matplotlib.pyplot as plt; plt.rcParams['font.size'] = 3": "a.ipynb leaves font size: 3.0, before: 10.0",
    "import pandas as pd; pd.set_option('display.width', 7)": "a.ipynb leaves display.width: 7, before: 80",
    "import warnings; warnings.simplefilter('ignore')": "a.ipynb leaves everything ignored: True, before: False",
    "from cora_nb.metrics.scores import register_score; register_score('x', source='y')(lambda c: 1)": (
        "a.ipynb leaves registered: [['x'], [], [], []], before: [[], [], [], []]"
    ),
    "1 / 0": "a.ipynb failed",
}


@pytest.mark.slow
@pytest.mark.parametrize("code", CASES)
def test_what_a_notebook_leaves_behind_is_found(tmp_path, code):
    (tmp_path / "settings.ini").write_text((ROOT / "settings.ini").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "nbs").mkdir()
    for name, source in (("a", code), ("b", "print(1)")):
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
        nbformat.write(book, tmp_path / "nbs" / f"{name}.ipynb")
    done = run(tmp_path, "nbs", "forwards")
    assert done.stdout == "2 notebooks\n" and (done.returncode == 1) == bool(CASES[code])
    said = [line for line in done.stderr.splitlines() if line.startswith("a.ipynb")]
    assert said == [CASES[code]] * bool(CASES[code])
