#!/usr/bin/env python3
"""Run the notebooks as `nbdev_test` does, and compare the text they print with the text that is committed.

`nbdev_test` throws away what the cells print, so a notebook can show numbers that its code no longer computes. This
script runs nbdev's own `test_nb`, which decides what is run (it skips cells flagged `#| eval: false` or with one of the
`tst_flags` of settings.ini, changes into the notebook's folder, and fails at the first error), and hands it a shell
that keeps what each cell printed. So one execution is both the test and the comparison. With `--slow`, the cells that
take seconds run as well; those that take minutes (`full`), a graphics card (`gpu`) or a network stay out.

Compared are stdout, plain text, Markdown and LaTeX, HTML by the text it shows, and pictures by their number: words to
the letter, fractions as numbers (`near`), since their last digits are the processor's. Addresses of objects
(`at 0x7f...`) and stderr are not compared. Some cells read data that lie beside the checkout, in `../shared` or where
`CORA_SHARED` says. A cell that looks there for what is missing is run, and not compared (`Missed`), nor are those that
use what it made. Each notebook runs in a process of its own, which is forked from one that has imported the heavy
libraries, with as many at once as there are cores, and as the memory that is free allows (`EACH` for one).

    python scripts/run_notebooks.py                              # all of nbs/
    python scripts/run_notebooks.py nbs/core.ipynb nbs/metrics   # some: files or folders
    python scripts/run_notebooks.py --slow                       # also the cells flagged `slow`
    python scripts/run_notebooks.py --update                     # store the new outputs of the notebooks that differ

`--update` runs the notebooks that differ (those that are named, whether they differ or not) once more in a Jupyter
kernel, because only that keeps texts and pictures in the order in which they came. It stores neither stderr nor widgets
(progress bars show times), and cleans with `nbdev_clean`.
"""

import argparse
import ast
import difflib
import html
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from near import settled

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ["nbdev.test", "matplotlib_inline.backend_inline", "pandas", "pyarrow", "scipy.stats", "seaborn"]
HEAVY += ["sklearn.manifold", "torch", "transformers", "datasets", "openai"]
WIDGET = "application/vnd.jupyter.widget-view+json"  # a progress bar or a slider: nothing without its running notebook
SHARED = [ROOT.parent / "shared", *map(Path, filter(None, [os.environ.get("CORA_SHARED")]))]
EACH = 3 * 2**30  # bytes that a notebook with torch may take
DIFF_LINES = 12  # of each cell that differs, this many lines are shown


class Result(NamedTuple):
    "What came of one notebook."

    notebook: Path
    passed: bool
    ran: list[int]  # numbers of the cells that were run, from 0
    differences: list[tuple[int, list[str]]]  # (number of the cell, diff)
    seconds: float
    cpu_seconds: float
    left_out: list[int]  # numbers of cells that were run and not compared: they need data that are not here


def names_of(statement: ast.stmt) -> tuple[set[str], set[str]]:
    "The names that a statement of a cell uses, and those that it gives; loops' and functions' own are neither."
    own, used, given = set(), set(), set()
    for node in ast.walk(statement):
        if isinstance(node, (ast.For, ast.comprehension)):
            own |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else given).add(node.id)
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        own, given = own | given, {statement.name}
    return used - own, given - own


class Missed:
    """Which cells need data beside the checkout that are not there, seen as they run.

    Nothing in a notebook says so: a cell may look for the data itself or have a function do it. Cells are such if
    they looked for a path there in vain, or use a name that such a cell gave to something.
    """

    def __init__(self):
        self.looked, self.names = False, set()
        self.places = [os.path.abspath(place) + os.sep for place in SHARED]
        self.stat = os.stat
        os.stat = self.noting_stat  # what `exists` and `is_file` ask; there is no audit event for it
        sys.addaudithook(lambda event, args: event in ("open", "os.listdir", "os.scandir") and self.look(args[0]))

    def noting_stat(self, path, *args, **options):
        try:
            return self.stat(path, *args, **options)
        except OSError:
            self.note(path)
            raise

    def note(self, path):
        if isinstance(path, (str, os.PathLike)):
            self.looked |= (os.path.abspath(path) + os.sep).startswith(tuple(self.places))

    def look(self, path):
        try:
            self.stat(path)
        except (OSError, TypeError, ValueError):
            self.note(path)

    def without_data(self, source: str) -> bool:
        "Whether the cell that has just been run is such a cell; the names that it gave are remembered."
        try:
            statements = ast.parse(source).body
        except SyntaxError:  # a magic
            statements = []
        looked, found, own = self.looked, self.looked, set()
        for statement in statements:
            used, given = names_of(statement)
            through = bool((used - own) & self.names)
            plain = isinstance(statement, (ast.FunctionDef, ast.ClassDef))  # its text is the same, with data or without
            without = through or (looked and not plain)
            self.names = self.names | given if without else self.names - given
            own = own - given if without else own | given
            found |= through
        self.looked = False
        return found


def free_memory() -> int | None:
    "Bytes that new processes can have; None where the system does not say."
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None


def at_once() -> int:
    "How many notebooks may run at once: one for each core, if the memory that is free allows."
    free = free_memory()
    return max(1, min(os.cpu_count() or 1, free // EACH if free is not None else sys.maxsize))


def masked(text: str | list[str]) -> str:
    "Text without what differs from run to run: addresses of objects (`nbdev_clean` removes some, too)."
    text = re.sub(r"( at )?\b0x[0-9a-fA-F]{6,}\b", "", "".join(text))
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def html_text(source: str) -> str:
    "The text that a piece of HTML shows, one line for each row of a table."
    source = re.sub(r"<(style|script)\b.*?</\1>|<!--.*?-->", "", source, flags=re.DOTALL | re.IGNORECASE)
    source = re.sub(r"\s+", " ", source)
    source = re.sub(r"</(tr|p|div|li|h\d|pre)>|<br */?>", "\n", source, flags=re.IGNORECASE)
    lines = html.unescape(re.sub(r"<[^>]*>", " ", source)).splitlines()
    return "\n".join(" ".join(line.split()) for line in lines if line.strip())


def shown(outputs: list[dict]) -> str:
    """What a cell's outputs say, as one text that can be compared.

    nbdev's shell puts stdout before what is displayed and that before the value of the cell, where Jupyter keeps the
    order in which they came; so they are gathered in that order here.
    """
    stdout, displayed, values, pictures = [], [], [], 0
    for output in outputs:
        if output["output_type"] == "stream":
            stdout += [output["text"]] if output["name"] == "stdout" else []
        elif output["output_type"] == "error":
            values.append(f"{output['ename']}: {output['evalue']}")
        elif WIDGET in output["data"]:
            continue
        elif any(kind.startswith("image/") for kind in output["data"]):
            pictures += 1
        else:
            data = {kind: "".join(text) for kind, text in output["data"].items() if kind.startswith("text/")}
            if "text/html" in data:
                data["text/html"] = html_text(data["text/html"])
            texts = [f"[{kind}]\n{masked(data[kind])}" for kind in sorted(data)]
            (values if output["output_type"] == "execute_result" else displayed).extend(texts)
    texts = [masked("".join("".join(text) for text in stdout)), *displayed, *values]
    return "\n".join([text for text in texts if text] + [f"[{pictures} picture(s)]"] * (pictures > 0))


def check(notebook: Path, skip_flags: list[str]) -> Result:
    "Run one notebook in this process."
    import nbdev.test
    import pandas as pd

    pd.set_option("display.max_columns", 20)  # as in a Jupyter kernel; in a terminal, its width decides

    class Comparing(nbdev.test.CaptureShell):
        "nbdev's shell, which notes where a cell printed something else than before."

        def cell(self, cell, **options):
            if cell.cell_type != "code":
                return
            before, cell.outputs = shown(cell.outputs), []
            missed.looked = False
            super().cell(cell, **options)
            after = shown(cell.outputs)
            ran.append(cell.idx_)
            if missed.without_data("".join(cell.source)):
                left_out.append(cell.idx_)
                return
            now = settled(before, after)
            if before.splitlines() != now and not self.exc:
                lines = difflib.unified_diff(before.splitlines(), now, "committed", "now", n=1, lineterm="")
                differences.append((cell.idx_, list(lines)[2:]))

    ran, differences, left_out, missed = [], [], [], Missed()
    nbdev.test.CaptureShell = Comparing
    start, cpu_start = time.perf_counter(), time.process_time()
    passed, _ = nbdev.test.test_nb(notebook, skip_flags=skip_flags, basepath=ROOT)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    return Result(notebook, passed, ran, differences, seconds, cpu_seconds, left_out)


def send(pipe, *args) -> None:
    pipe.send(check(*args))


def check_apart(context, notebook: Path, skip_flags: list[str]) -> Result:
    "Run one notebook in a process of its own. A process that dies is a failure."
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=send, args=(there, notebook, skip_flags))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        process.join()
        print(f"{name(notebook)}: {how_it_ended(process.exitcode)}", file=sys.stderr)
        return Result(notebook, False, [], [], 0.0, 0.0, [])
    finally:
        process.join()


def how_it_ended(code: int) -> str:
    "What is said of a process that ended without a result; of one that was killed, how much memory is left."
    if code >= 0:
        return f"its process ended with exit code {code}"
    free = free_memory()
    left = "how much memory is free is not known" if free is None else f"{free / 2**30:.1f} GB of memory are free now"
    return f"its process was killed by {signal.Signals(-code).name}; {left}, a notebook may take {EACH / 2**30:.0f}"


def update(result: Result) -> None:
    "Run a notebook in a Jupyter kernel and store its outputs. Cells that the check skips keep theirs."
    import nbformat
    from nbclient import NotebookClient

    class Client(NotebookClient):
        async def async_execute_cell(self, cell, cell_index, *args, **options):
            if cell_index not in result.ran:
                return cell
            return await super().async_execute_cell(cell, cell_index, *args, **options)

    notebook = nbformat.read(result.notebook, as_version=4)
    folder = {"metadata": {"path": str(result.notebook.parent)}}
    Client(notebook, timeout=None, kernel_name="python3", resources=folder).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            kept = [o for o in cell.outputs if o.get("name") != "stderr" and WIDGET not in o.get("data", {})]
            cell.outputs = kept  # without progress bars, which show times
    notebook.metadata.pop("widgets", None)
    nbformat.write(notebook, result.notebook)
    subprocess.run(["nbdev_clean", "--fname", str(result.notebook)], check=True, cwd=ROOT)


def notebooks_in(paths: list[Path]) -> list[Path]:
    "The notebooks among files and folders, the studies and tutorials, which take longest, first."
    found = [p for path in paths for p in (sorted(path.rglob("*.ipynb")) if path.is_dir() else [path])]
    missing = [str(p) for p in found if not p.is_file()]
    if missing:
        sys.exit(f"run_notebooks: not a file: {', '.join(missing)}")
    visible = [p.resolve() for p in found if not any(part.startswith((".", "_")) for part in p.parts)]
    return sorted(dict.fromkeys(visible), key=lambda p: p.parent.name not in ("studies", "tutorials"))


def name(notebook: Path) -> str:
    return os.path.relpath(notebook, ROOT)


def report(result: Result) -> None:
    "One line for a notebook, and what differs below it."
    words = "FAILED" if not result.passed else "differs" if result.differences else "ok"
    print(f"{words:>7} {result.seconds:6.1f} s  {name(result.notebook)}", flush=True)
    if result.left_out:
        print(f"    not compared without the data beside the checkout: cells {[n + 1 for n in result.left_out]}")
    for cell, lines in result.differences:
        left_out = [f"... {len(lines) - DIFF_LINES} more lines"] if len(lines) > DIFF_LINES else []
        print(f"    {name(result.notebook)}, cell {cell + 1}:")
        print(*(f"        {line}" for line in lines[:DIFF_LINES] + left_out), sep="\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks or folders of notebooks (default: nbs)")
    parser.add_argument("--slow", action="store_true", help="run the cells flagged `slow`, too")
    parser.add_argument("--update", action="store_true", help="store the outputs of what differs, or of what is named")
    parser.add_argument(
        "--workers", type=int, default=at_once(), help="notebooks at once (default: cores, free memory)"
    )
    parser.add_argument("--slowest", type=int, default=15, help="how many of the slowest notebooks to list")
    args = parser.parse_args()

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // args.workers)))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    from nbdev.config import get_config

    notebooks = notebooks_in(args.paths or [ROOT / "nbs"])
    skip_flags = [f for f in get_config(path=ROOT).tst_flags.split() if not (args.slow and f == "slow")]
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if forks else "spawn")
    context.set_forkserver_preload(HEAVY)
    results = []
    with ThreadPoolExecutor(args.workers) as pool:  # a thread for each notebook, which waits for its process
        for future in as_completed([pool.submit(check_apart, context, p, skip_flags) for p in notebooks]):
            results.append(future.result())
            report(results[-1])

    print(f"\nslowest of {len(results)} (seconds, of the processor):")
    for r in sorted(results, key=lambda r: -r.seconds)[: args.slowest]:
        print(f"{r.seconds:8.1f} {r.cpu_seconds:8.1f}  {name(r.notebook)}")
    failed = [r for r in results if not r.passed]
    different = [r for r in results if r.passed and r.differences]
    if args.update:
        for r in [r for r in results if r.passed and (r.differences or args.paths)]:
            print(f"updating {name(r.notebook)}", flush=True)
            update(r)
    if failed or (different and not args.update):
        sys.exit(f"run_notebooks: {len(failed)} failed, {len(different)} print something else than what is committed")
    print("Success.")


if __name__ == "__main__":
    main()
