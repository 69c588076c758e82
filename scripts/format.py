"""Format notebooks, tests and scripts with ruff: cells that are read at 100 characters, exported ones at 120.

`python scripts/format.py` rewrites the files; with `--check` it changes nothing and fails where a file would change.

ruff knows one width for a file. So a notebook is taken apart into the cells that it exports, which end up in a module
that is read in an editor, and the others, which are read on a page; each part is formatted and linted as a notebook.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = ["tests", "tools", "scripts", "setup.py"]
BLANK = {"cell_type": "markdown", "metadata": {}, "source": []}  # in the place of the other part's cells
WIDTHS = {"exported": 120, "read": 100}


def part_of(
    cell: dict,  # a cell of a notebook
) -> str | None:  # "exported", "read", or None for prose
    if cell["cell_type"] != "code":
        return None
    first = cell["source"][0] if cell["source"] else ""
    return "exported" if first.startswith("#| export") else "read"


def ruff(
    *args: str,  # of the command
) -> int:  # its exit status
    return subprocess.run([sys.executable, "-m", "ruff", *args], cwd=ROOT).returncode


def main(
    check: bool,  # change nothing
) -> int:  # the exit status: 1 where a file would change, or lint finds something
    paths = sorted((ROOT / "nbs").rglob("*.ipynb"))
    paths = [path for path in paths if ".ipynb_checkpoints" not in path.parts]
    books = {path: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    status, changed = 0, set()
    with tempfile.TemporaryDirectory() as folder:
        for part, width in WIDTHS.items():
            for path, book in books.items():
                cells = [cell if part_of(cell) == part else BLANK for cell in book["cells"]]
                copy = Path(folder, part, path.relative_to(ROOT))
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(json.dumps({**book, "cells": cells}), encoding="utf-8")
            options = ["--config", str(ROOT / "pyproject.toml"), "--line-length", str(width)]
            status |= ruff("format", "--quiet", *options, str(Path(folder, part)))
            status |= ruff("check", "--select", "E501,E701,E702,E703", *options, str(Path(folder, part)))
            for path, book in books.items():
                copy = json.loads(Path(folder, part, path.relative_to(ROOT)).read_text(encoding="utf-8"))
                for cell, formatted in zip(book["cells"], copy["cells"], strict=True):
                    if part_of(cell) == part and cell["source"] != formatted["source"]:
                        cell["source"] = formatted["source"]
                        changed.add(path)
    for path in sorted(changed):
        print(("would change " if check else "changed ") + str(path.relative_to(ROOT)))
        if not check:
            book = json.dumps(books[path], indent=1, ensure_ascii=False, sort_keys=True)
            path.write_text(book + "\n", encoding="utf-8")
    status |= ruff("format", *(["--check"] if check else []), *FILES)
    status |= ruff("check", "nbs", *FILES)
    return 1 if status or (check and changed) else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
