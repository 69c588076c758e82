"""How long a plain table of 100,000 replies takes: letters alone, and with the texts of all choices.

python tools/benchmarks/bench_table.py
"""

import csv
import json
import tempfile
import time
from pathlib import Path

from cora_nb.interop.plain_table import import_table

N, TEXT = 100_000, "a choice of some length, as in a real benchmark " * 4


def rows(texts: bool):
    "20 variants of 5,000 questions, as the cells of a CSV file."
    for i in range(N):
        shown = [f"{TEXT}{(j + i % 20) % 4}" for j in range(4)]
        said = [f"q{i // 20}", "shuffled" if i % 20 else "original", i % 20, "ABCD"[-(i % 20) % 4], "ABC"[i % 3]]
        yield said + ([json.dumps(shown)] if texts else [4])


with tempfile.TemporaryDirectory() as folder:
    for texts in (False, True):
        path = Path(folder) / "replies.csv"
        with path.open("w", newline="") as file:
            last = "choices" if texts else "n_choices"
            csv.writer(file).writerow(["question_id", "method", "index", "answer", "prediction", last])
            csv.writer(file).writerows(rows(texts))
        start, cpu = time.perf_counter(), time.process_time()
        found = import_table(path)
        spent = f"{time.process_time() - cpu:.1f} s of one core, {time.perf_counter() - start:.1f} s"
        print(f"{len(found):,} rows, {path.stat().st_size / 1e6:.0f} MB, with {last}: {spent}")
