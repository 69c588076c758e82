"""`score` on a run in Parquet files that is larger than memory: 260 million replies in 100 files.

The files are made on the spot, in the layout of a run's `responses.parquet`, from a seed; how many questions have how
many right replies is counted while they are made, and the scores are worked out from that by plain arithmetic. Then
other processes, so that making the files does not count, measure time and peak memory: all scores with intervals, the
scores by subject, and the scores of one file in pieces and in memory. The files are removed at the end.

    python tools/benchmarks/bench_parts.py [FILES [QUESTIONS_EACH [FOLDER]]]   # 100 files of 100,000 questions
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from measure import report

METHODS = ("nota", "nota_shuffled", "decoupled", "decoupled_shuffled", "decoupled_nota", "decoupled_nota_shuffled")
SLOTS = [("original", 0, 5), ("shuffled", 0, 5)]
SLOTS += [(m, i, 2 + ("nota" in m) if "decoupled" in m else 5) for m in METHODS for i in range(4)]
V = len(SLOTS)
FACTS = {
    "respondent": {"respondent": "simulated", "name": "made"},
    "variants": {"recipe": {"family": "cora", "seed": 0, "options": {}}},
    "run": {"benchmark": "made"},
}
TEXTS = ("respondent", "question_id", "subject", "family", "method", "form", "state", "reply", "finish", "error")


def coded(codes: np.ndarray, texts: list) -> pa.Array:
    "A text for each row, from a short list."
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(texts, pa.string()))


def shown(n_choices: np.ndarray, rng: np.random.Generator) -> pa.Array:
    "A shuffled list of sources for each row."
    places = np.argsort(rng.random((len(n_choices), 5), dtype=np.float32), axis=1).astype(np.int16)
    kept = np.arange(5) < n_choices[:, None]
    return pa.ListArray.from_arrays(np.r_[0, np.cumsum(n_choices)].astype(np.int32), pa.array(places[kept]))


def make_file(path: Path, number: int, questions: int) -> np.ndarray:
    "Write one file; returns how many questions have each number of right replies, original wrong or right."
    rng, n = np.random.default_rng(number), questions * V
    known = rng.beta(3, 0.4, questions).astype(np.float32)
    correct = rng.random((questions, V), dtype=np.float32) < known[:, None]
    histogram = np.bincount(correct.sum(axis=1) * 2 + correct[:, 0], minlength=2 * (V + 1)).reshape(V + 1, 2)
    slot, flat = np.tile(np.arange(V), questions), correct.reshape(-1)
    n_choices = np.array([k for _, _, k in SLOTS], dtype=np.int32)[slot]
    answer = (rng.random(n, dtype=np.float32) * n_choices).astype(np.int32)
    other = (answer + 1 + (rng.random(n, dtype=np.float32) * (n_choices - 1)).astype(np.int32)) % n_choices
    prediction = np.where(flat, answer, other).astype(np.int32)
    whose, zero = np.repeat(np.arange(questions), V), np.zeros(n, dtype=np.int32)
    ids = [f"made-{number:03}-{i:06}" for i in range(questions)]
    subjects = [f"subject {i:02}" for i in range(57)]
    columns = {
        "respondent": coded(zero, ["made"]),
        "question_id": coded(whose, ids),
        "subject": coded(whose % 57, subjects),
        "family": coded(zero, ["cora"]),
        "method": coded(slot, [m for m, _, _ in SLOTS]),
        "index": pa.array(np.array([i for _, i, _ in SLOTS], dtype=np.int32)[slot]),
        "form": coded(zero, ["mcq"]),
        "trial": pa.array(zero),
        "n_choices": pa.array(n_choices),
        "sources": shown(n_choices, rng),
        "answer": pa.array(answer),
        "prediction": pa.array(prediction),
        "selected": pa.nulls(n, pa.list_(pa.int16())),
        "correct": pa.array(flat),
        "state": coded(zero, ["answered"]),
        "reply": coded(prediction, list("ABCDE")),
        "scores": pa.nulls(n, pa.list_(pa.float64())),
        "confidence": pa.nulls(n, pa.float64()),
        "mean_logprob": pa.nulls(n, pa.float64()),
        "n_tokens": pa.array(zero + 1),
        "finish": coded(zero, ["stop"]),
        "error": pa.nulls(n, pa.string()),
    }
    table = pa.table(columns)
    for name in TEXTS:
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table[name].cast(pa.string()))
    metadata = {b"cora_nb": json.dumps(FACTS).encode(), b"cora_nb_name": b"made"}
    pq.write_table(table.replace_schema_metadata(metadata), path, compression="zstd", write_page_checksum=True)
    return histogram


def scores_of(histogram: np.ndarray) -> dict[str, float]:
    "The scores worked out from the numbers of questions, without our package."
    total, hits = histogram.sum(), np.arange(V + 1)
    by_hits = histogram.sum(axis=1)
    mcqa, rc = histogram[:, 1].sum() / total, (hits @ by_hits) / (V * total)
    found = {"MCQA": mcqa, "MCQA+": rc, "RC": rc, "MV": by_hits[2 * hits > V].sum() / total}
    for tenths in range(5, 11):
        found[f"BMCA({tenths / 10})"] = by_hits[10 * hits >= tenths * V].sum() / total
    ci = 1 - (mcqa - found["BMCA(1.0)"])
    curve = np.array([by_hits[10 * hits >= tenths * V].sum() / total for tenths in range(11)])
    core = ((curve[:-1] + curve[1:]) / 2).mean() * curve[1:].mean()
    return found | {"CI": ci, "CoRA": mcqa * ci, "CORE": core}


MEASURED = """
import json, time
from pathlib import Path
if {frame!r}:
    import pandas as pd
start, cpu = time.perf_counter(), time.process_time()
import cora_nb
from cora_nb.metrics.scoring import score
from cora_nb.responses.parts import ResponseParts

def peak():  # of this process alone: `ru_maxrss` begins with that of the process that started it
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1e3

imported = peak()
if {frame!r}:
    columns = ["question_id", "family", "method", "index", "trial", "n_choices", "correct", "state"]
    run = pd.read_parquet(Path({path!r}), columns=columns, dtype_backend="pyarrow")
    run = run.assign(**{{c: run[c].astype("string[pyarrow]") for c in ("question_id", "family", "method", "state")}})
else:
    run = ResponseParts({path!r})
rows = len(run)
found = score(run, **{options!r})
print(json.dumps({{
    "rows": rows, "seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu,
    "peak": peak(), "imported": imported,
    "subject": found["subject"].tolist() if "subject" in found else [],
    "names": found["score"].tolist(), "values": found["value"].tolist(),
    "low": found["low"].tolist() if "low" in found else [],
}}))
"""


def measured(title: str, path: Path, frame: bool = False, **options: object) -> dict:
    "What another process says, whose memory and time are its own."
    code = MEASURED.format(path=str(path), frame=frame, options=options)
    env = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    told = json.loads(done.stdout)
    report(
        title,
        rows=told["rows"],
        seconds=told["seconds"],
        processor_seconds=told["cpu"],
        peak_MB=told["peak"],
        of_which_imports_MB=told["imported"],
        million_rows_per_second=told["rows"] / told["seconds"] / 1e6,
        load_before=os.getloadavg()[0],
    )
    return told


def compare_with(title: str, told: dict, truth: dict[str, float]) -> None:
    "The largest difference of a score."
    found = dict(zip(told["names"], told["values"]))
    assert found.keys() == truth.keys(), (found, truth)
    most = max(abs(found[name] - value) for name, value in truth.items())
    assert most < 1e-9, (found, truth)
    report(title, scores=len(truth), largest_difference=f"{most:.1e}", CoRA=found["CoRA"], MCQA=found["MCQA"])


def main(files: int = 100, questions: int = 100_000, folder: str | None = None) -> None:
    place = Path(tempfile.mkdtemp(prefix="bench_parts_", dir=folder))
    try:
        start, histograms = time.perf_counter(), []
        for number in range(files):
            histograms.append(make_file(place / f"{number:05}-of-{files:05}.parquet", number, questions))
            assert shutil.disk_usage(place).free > 5e9, "less than 5 GB of disk are left"
        size = sum(f.stat().st_size for f in place.iterdir())
        seconds = time.perf_counter() - start
        report("made", files=files, rows=files * questions * V, GB=size / 1e9, seconds=seconds)
        whole = measured("score, with intervals", place, ci=0.95)
        compare_with("  against the truth", whole, scores_of(sum(histograms)))
        one = place / f"{files // 2:05}-of-{files:05}.parquet"
        pieces = measured("one file in pieces", one, ci=0.95)
        compare_with("  against the truth", pieces, scores_of(histograms[files // 2]))
        memory = measured("the same file in memory", one, frame=True, ci=0.95)
        for what in ("values", "low"):
            assert np.allclose(memory[what], pieces[what], rtol=0, atol=1e-12), what
        by = measured("score by subject", place, by="subject")
        assert len(set(by["subject"])) == 57
        report("memory", whole_over_one_file=whole["peak"] / pieces["peak"])
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:4])
