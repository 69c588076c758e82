"""Do the fast tests notice when the package is wrong? One small mistake at a time is put into a copy of it.

    python tools/mutants.py                  # all modules, about ten minutes on two cores
    python tools/mutants.py layouts paired   # modules whose name ends so

A mutant is a real change of what the package does for its users. It is caught if a fast test of its module fails.
For a survivor, sharpen or add one fast test; if nothing that is promised has changed, replace the mutant.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# module: (test files, [(old text, which must occur once, new text), ...])
MUTANTS = {
    "stats/paired": (
        ("stats/test_paired.py", "stats/test_tables.py"),
        [
            ("& (p[made] <= 1)).all()", "& (p[made] < 1)).all()"),
            ("len(order), 0, -1)), 1)", "len(order), 0, -1)), 2)"),
            ("if b + c > n:", "if b + c >= n:"),
            ("law = norm if df is None else t(df)", "law = norm"),
            ("if ratio == 0 and G > 1:", "if ratio == 0 and G > 2:"),
            ("return 0.0, s.shape[1] - 1.0, 1.0", "return 0.0, s.shape[1] - 1.0, 0.0"),
            ("if n >= 4 and", "if n >= 3 and"),
        ],
    ),
    "stats/shares": (
        ("stats/test_shares.py",),
        [
            ("binom.sf(p - 1, M, r)", "binom.sf(p, M, r)"),
            ("share > c if strict else share >= c", "share >= c if strict else share > c"),
            ("norm.ppf((1 + level) / 2) ** 2)", "norm.ppf(level) ** 2)"),
            ("n - 1 if df is None else df", "n if df is None else df"),
            ("((totals >= -1e-9) & (totals <= row_sizes + 1e-9))", "(totals <= row_sizes + 1e-9)"),
            ("n * (population - 1) / (population - n)", "n * population / (population - n)"),
            ("** (look - 2)", "** (look - 1)"),
        ],
    ),
    "stats/components": (
        ("stats/test_components.py", "metrics/test_components.py"),
        [
            ("g.max() < 1:", "g.max() < 2:"),
            ("if (codes < 0).any():", "if False:"),
            ("np.bincount(group, weight**2) / W", "np.bincount(group, weight) / W"),
            ("return float(low) / 2, max", "return float(low), max"),
            ("z, influence = t.ppf((1 + level) / 2, n - 1)", "z, influence = t.ppf((1 + level) / 2, n)"),
            ('parts.append("cell + repetition")', 'parts.append("cell")'),
            ("min(max(value, 0.0) / whole, 1.0)", "min(value / whole, 1.0)"),
        ],
    ),
    "metrics/calibration": (
        ("metrics/test_calibration.py",),
        [
            ("((x >= 0) & (x <= 1))", "((x >= 0) & (x < 1))"),
            ('x, side="left"), return_inverse=True)[::-1]', 'x, side="right"), return_inverse=True)[::-1]'),
            ("if parts % bins:", "if False:"),
            ('"unweighted ECE": gaps.mean()', '"unweighted ECE": gaps.sum() / table["n"].sum()'),
            (".sum()) / (len(chance) + 1)", ".sum()) / len(chance)"),
            ("(y / count - mean) ** 2", "(f / count - mean) ** 2"),
            ('"value": share - mean}', '"value": mean - share}'),
        ],
    ),
    "metrics/guessing": (
        ("metrics/test_guessing.py",),
        [
            ('return not who["temperature"] > 0', 'return who["temperature"] > 0'),
            ("np.where(p == 0, chance,", "np.where(p < 0, chance,"),
            ("[3] * (2 * (A - 1))", "[4] * (2 * (A - 1))"),
            ("hits + hit * at_once", "hits + hit"),
            ("np.minimum(np.arange(MAX_CHOICES), len(weights) - 1)", "np.arange(MAX_CHOICES) % len(weights)"),
            ("float(n_choices) ** -orders", "float(n_choices) ** (1 - orders)"),
            ("(values > 1)]).size", "(values >= 1)]).size"),
        ],
    ),
    "metrics/circular": (
        ("metrics/test_circular.py",),
        [
            ("(r.source(0)[row] + place) %", "(r.source(0)[row] - place) %"),
            ("times.max(axis=1) > 1).any()", "times.max(axis=1) > 2).any()"),
            ("hits[some] >= j", "hits[some] > j"),
            ("some = n > j", "some = n >= j"),
            ("if there.sum() < 2:", "if there.sum() < 1:"),
            ("np.std(values, axis=-1)", "np.std(values, axis=-1, ddof=1)"),
            ("(values >= observed - 1e-12)", "(values > observed + 1e-12)"),
        ],
    ),
    "benchmarks/answers": (
        ("benchmarks/test_load.py", "benchmarks/test_dialects.py", "benchmarks/test_left_out.py"),
        [
            ("return i if i < len(texts) else None", "return i if i <= len(texts) else None"),
            ("if 0 <= int(digits) - first < len(texts) else None", "if int(digits) - first < len(texts) else None"),
            ("_CERTAIN, _FILE = 2, 10", "_CERTAIN, _FILE = 1, 10"),
            ("_CERTAIN, _FILE = 2, 10", "_CERTAIN, _FILE = 2, 2"),
            ("if b is not None and a != b:", "if False:"),
            ("sorted(labels) == [0] * (len(texts) - 1) + [1]", "1 in labels"),
            ("if more <= 0:", "if True:"),
        ],
    ),
    "benchmarks/choices": (
        ("benchmarks/test_load.py", "benchmarks/test_exams.py", "benchmarks/test_published.py"),
        [
            ('(texts[-1] is None or texts[-1] == "")', 'texts[-1] == ""'),
            ("labels is None or len(labels) != len(texts)", "labels is None"),
            ("while not roles.layout and texts", "while texts"),
            ("label and label[1] == letter", "label"),
        ],
    ),
    "interop/plain_table": (
        ("interop/test_plain_table.py", "interop/test_table_cells.py"),
        [
            ("isinstance(value, float) and value % 1 == 0 and", "isinstance(value, float) and"),
            ("or 0 <= found <= 1)", "or 0 <= found < 1)"),
            ("or len(there) == 1)", "or False)"),
            ("answer == n_choices[at]:", "answer == n_choices[at] - 1:"),
            ("answer >= len(choices):", "answer > len(choices):"),
            ("(right := sources[at][place]) >= 0 and right != answer", "(right := sources[at][place]) < -9"),
            ("len(rows.bad) > 9 * len(kept)", "len(rows.bad) > 99 * len(kept)"),
        ],
    ),
}


def main(names: list[str]) -> int:
    chosen = {m: v for m, v in MUTANTS.items() if not names or m.endswith(tuple(names))}
    for module, (_, mutants) in chosen.items():
        text = (ROOT / f"cora_nb/{module}.py").read_text(encoding="utf-8")
        if wrong := [old for old, _ in mutants if text.count(old) != 1]:
            sys.exit(f"{module}: {wrong[0]!r} must occur once, and occurs {text.count(wrong[0])} times")
    caught = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in ("cora_nb", "tests", "scripts"):
            shutil.copytree(ROOT / name, Path(folder, name), ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        Path(folder, "data").symlink_to(ROOT / "data")
        shared = os.environ.get("CORA_SHARED", str(ROOT.parent / "shared"))
        env = os.environ | {"PYTHONPATH": folder, "CORA_SHARED": shared}
        for module, (tests, mutants) in chosen.items():
            file, command = (
                Path(folder, f"cora_nb/{module}.py"),
                [sys.executable, "-m", "pytest", "-n", "2", "-x", "-q"],
            )
            sound = file.read_text(encoding="utf-8")
            for number, (old, new) in enumerate([("", ""), *mutants], 1):
                file.write_text(sound.replace(old, new) if old else sound, encoding="utf-8")
                os.utime(file, (number, number))  # else its bytecode could be that of another of this second and size
                start = time.monotonic()
                ran = subprocess.run(
                    [*command, *(f"tests/{t}" for t in tests)], cwd=folder, env=env, capture_output=True
                )
                failed = ran.returncode != 0
                if failed and (not old or b" failed" not in ran.stdout):
                    sys.exit(f"{module}: {'the tests did not run' if old else 'not sound'}\n{ran.stdout.decode()}")
                caught += failed
                said = ("caught  " if failed else "SURVIVED") if old else "sound   "
                print(f"{said} {time.monotonic() - start:4.0f} s  {module}: {old or 'unchanged'}", flush=True)
            file.write_text(sound, encoding="utf-8")
            os.utime(file)
    total = sum(len(mutants) for _, mutants in chosen.values())
    print(f"{caught} of {total} caught")
    return caught < total


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
