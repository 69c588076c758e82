"""Loading MMLU by format: seconds, and as a ratio to the time that pandas takes to read the same file."""

import tempfile
import warnings
from pathlib import Path

import pandas as pd
from cora_nb.benchmarks.load import read_benchmark
from cora_nb.benchmarks.pitfalls import warn_of_pitfalls
from measure import measure, report

HUB = Path(__file__).resolve().parents[3] / "shared" / "data" / "hub"
READERS = {
    "parquet": pd.read_parquet,
    "csv": pd.read_csv,
    "jsonl": lambda path: pd.read_json(path, lines=True),
    "xlsx": pd.read_excel,
}


def write(folder):
    "MMLU, or the bundled benchmark as often, in each format; path by ending."
    asked = read_benchmark("mmlu", HUB).questions if HUB.is_dir() else read_benchmark("math").questions * 47
    table = pd.DataFrame(
        [(q.text, *q.choices[:4], "ABCD"[q.answer]) for q in asked], columns=["question", *"ABCD", "answer"]
    )
    paths = {ending: folder / f"mine.{ending}" for ending in READERS}
    table.to_parquet(paths["parquet"])
    table.to_csv(paths["csv"], index=False)
    table.to_json(paths["jsonl"], orient="records", lines=True)
    table.to_excel(paths["xlsx"], index=False)
    return paths, table


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paths, table = write(Path(folder))
        for ending, path in paths.items():
            (pandas, *_), (ours, *_) = (
                measure(lambda: READERS[ending](path)),
                measure(lambda: read_benchmark(path, on_bad="skip")),
            )
            report(f"MMLU as {ending}", seconds=ours, ratio_to_pandas=ours / pandas)
        report("MMLU as a data frame", seconds=measure(lambda: read_benchmark(table))[0])
        questions = read_benchmark(table).questions
        report("looking for pitfalls", seconds=measure(lambda: warn_of_pitfalls("mmlu", questions))[0])
