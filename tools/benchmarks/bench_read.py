"""A run of seven million replies read from its folder and scored: seconds, and bytes a row.

Read as `cora table` reads it (what scores need), and once with every column. The least is `pyarrow.dataset` reading the
same columns.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from measure import report, resident_mb

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.metrics.scoring import score
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

ROWS, FILES = 7_000_000, 7
COLUMNS = ["n_choices", "answer"]  # beside those that are always read


def write(folder: Path) -> int:
    "The replies to 200 questions, again and again under other ids, in several files; how many rows."
    run = evaluate(SimulatedRespondent(with_scores=True), make_variants(math_benchmark(200)), progress=False)
    write_responses(run, folder)
    table = pq.read_table(folder / "responses.parquet")
    (folder / "responses.parquet").unlink()
    (folder / "questions.parquet").unlink()
    times, ids = ROWS // len(table), table["question_id"].combine_chunks().to_pylist()
    for f in range(FILES):
        with pq.ParquetWriter(folder / f"{f}.parquet", table.schema) as out:
            for k in range(f, times, FILES):
                own = pa.array([f"{id}-{k}" for id in ids], table.schema.field("question_id").type)
                out.write_table(table.set_column(table.column_names.index("question_id"), "question_id", own))
    return times * len(table)


def timed(work):
    start, before = time.perf_counter(), resident_mb()
    found = work()
    return found, time.perf_counter() - start, resident_mb() - before


if __name__ == "__main__":
    columns = None if "--all" in sys.argv else COLUMNS
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        rows = write(folder)
        files = sorted(folder.glob("*.parquet"))
        if columns:
            needed = ["question_id", "method", "index", "correct", "n_choices", "answer"]
            _, least, _ = timed(lambda: ds.dataset(files).to_table(columns=needed))
            report("pyarrow.dataset alone", seconds=least)
        run, seconds, mb = timed(lambda: read_responses(folder, columns=columns))
        report(f"read {rows:,} rows", seconds=seconds, bytes_a_row=mb * 1e6 / rows)
        found, seconds, mb = timed(lambda: score(run))
        report("score", seconds=seconds, bytes_a_row=mb * 1e6 / rows)
        assert np.isfinite(found["value"]).all()
