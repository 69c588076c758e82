#!/usr/bin/env python3
"""Make `data/recorded/`: the facts of the raw data that the papers' authors published, without any text.

    python scripts/make_recorded.py                    # from the published files: a folder, the cache, a download
    python scripts/make_recorded.py --out /tmp/facts   # elsewhere

Kept are numbers and letters (see data/recorded/README.md). A table of Li et al. whose hash is not that of the known
excerpt is an error.
"""

import argparse
import hashlib
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from cora_nb.papers.published import RECORDED, load_recorded, recorded_facts, recorded_file


def excerpt(name: str) -> bytes:
    "The columns with numbers and letters of a table of Li et al., as CSV."
    known = RECORDED[name]
    content = recorded_file(name).read_bytes()
    if hashlib.sha256(content).hexdigest() != known.excerpt:  # the whole published file
        options = {"encoding": "utf-8-sig", "encoding_errors": "replace", "dtype": str, "keep_default_na": False}
        table = pd.read_csv(recorded_file(name), usecols=list(known.columns) or None, **options)
        content = table[list(known.columns) or list(table)].to_csv(index=False).encode()
    if hashlib.sha256(content).hexdigest() != known.excerpt:
        sys.exit(f"{name}: the excerpt is not the known one")
    return content


def make(out: Path) -> None:
    "Write all files."
    for name, known in RECORDED.items():
        if name == "li2024/math_300":
            continue  # questions: nothing but texts
        is_run = name.startswith("cat/")
        path = out / (f"{name}.parquet" if is_run else known.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_run:
            facts = recorded_facts(load_recorded(name, texts=True))
            pq.write_table(facts, path, compression="zstd", compression_level=19)
        else:
            path.write_bytes(excerpt(name))
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = Path(__file__).resolve().parent.parent / "data" / "recorded"
    parser.add_argument("--out", type=Path, default=here, help="the folder to write")
    make(parser.parse_args().out)
