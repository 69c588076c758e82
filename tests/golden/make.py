"""Write the golden numbers anew: `python tests/golden/make.py [NAME ...]`. To be run by hand, and only on purpose."""

import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from compute import GOLDEN, TEXTS  # noqa: E402


def main(names):
    for name, golden in GOLDEN.items():
        if names and name not in names:
            continue
        start = time.perf_counter()
        table = golden.make()
        if table.duplicated(["case", "measure"]).any():
            raise SystemExit(f"{name}: {table[table.duplicated(['case', 'measure'])].head().to_string()}")
        table.to_csv(HERE / f"{name}.csv", index=False, lineterminator="\n")
        print(f"{name}: {len(table)} rows, {time.perf_counter() - start:.1f} s", flush=True)
    for name, golden in TEXTS.items():
        if names and name not in names:
            continue
        start = time.perf_counter()
        texts = golden.make()
        for file, text in texts.items():
            (HERE / f"{file}.txt").write_text(text, encoding="utf-8", newline="\n")
        print(f"{name}: {len(texts)} texts, {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
