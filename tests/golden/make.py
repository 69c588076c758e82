"""Write the golden numbers anew: `python tests/golden/make.py [NAME ...] [--why "..."]`. By hand, and only on purpose.

A file whose content changes is written only with a reason, which is kept in REASONS.md.
"""

import argparse
import csv
import io
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def changed_rows(old, new):
    "How much of a CSV differs, in words: rows with another value, gone and new ones."
    known, found = ({tuple(row[:2]): row[2:] for row in csv.reader(io.StringIO(text))} for text in (old, new))
    changed = sum(found.get(key, value) != value for key, value in known.items())
    gone, added = len(known.keys() - found.keys()), len(found.keys() - known.keys())
    more = [f"{n:,} {what}" for n, what in ((gone, "gone"), (added, "new")) if n]
    return ", ".join([f"{changed:,} of {len(known) - 1:,} rows", *more])


def keep(files, why, folder=HERE):
    "Write files (name -> content) into the folder. Ends the program if one of them changes without a reason."
    lines = []
    for name, new in files.items():
        path = folder / name
        old = path.read_text(encoding="utf-8") if path.exists() else None
        if old is not None and old != new:
            lines.append(f"{name}: {changed_rows(old, new)}")
    if lines and not (why and why.strip()):
        raise SystemExit("\n".join([*lines, 'changed and not written: say why with --why "..."']))
    for name, new in files.items():
        (folder / name).write_text(new, encoding="utf-8", newline="\n")
    if lines:
        with open(folder / "REASONS.md", "a", encoding="utf-8", newline="\n") as reasons:
            reasons.writelines(f"- {line}: {' '.join(why.split())}\n" for line in lines)


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of the golden numbers; none: all")
    parser.add_argument("--why", help="the reason, for files that change")
    asked = parser.parse_args(words)
    sys.path.insert(0, str(HERE))
    from compute import GOLDEN

    if unknown := [name for name in asked.names if name not in GOLDEN]:
        raise SystemExit(f"no golden numbers are called {unknown[0]}")
    for name in asked.names or GOLDEN:
        start, made = time.perf_counter(), GOLDEN[name].make()
        if (twice := made.duplicated(["case", "measure"])).any():
            raise SystemExit(f"{name}: {made[twice].head().to_string()}")
        keep({f"{name}.csv": made.to_csv(index=False, lineterminator="\n")}, asked.why)
        print(f"{name}: {len(made)} rows, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
