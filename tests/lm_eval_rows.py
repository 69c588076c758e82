"""Logs of lm-evaluation-harness for tests: the real ones that are recorded, and rows of our own make."""

import json
import re
from pathlib import Path

import numpy as np

_RECORDED = Path(__file__).resolve().parent / "recorded"
RECORDED = _RECORDED / "lm_eval"
OURS = _RECORDED / "lm_eval_ours"
STAMP = "2026-11-22T10-00-00.000000"


def recorded(task: str, which: int = 0) -> Path:
    return sorted(RECORDED.glob(f"samples_{task}_2*.jsonl"))[which]


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def config_of(path: Path) -> dict:
    results = json.loads(path.with_name(f"results_{path.stem.rpartition('_')[2]}.json").read_text())
    return results["configs"][re.fullmatch(r"samples_(.+)_2\d{3}-.*", path.stem)[1]]


def write_log(folder: Path, rows: list, task: str = "t", results: dict | None = None) -> Path:
    path = folder / f"samples_{task}_{STAMP}.jsonl"
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    if results is not None:
        (folder / f"results_{STAMP}.json").write_text(json.dumps(results))
    return path


def scored_row(i=0, doc=None, target="1", lls=(-3.0, -1.0, -2.0), choices=("x", "y", "z"), **more) -> dict:
    sent = {f"gen_args_{k}": {"arg_0": f"Q{i}?", "arg_1": f" {c}"} for k, c in enumerate(choices)}
    said = [[[str(x), "False"]] for x in lls]
    right = float(str(int(np.argmax(lls))) == target)
    row = {"doc_id": i, "doc": {"question": f"Q{i}?"} if doc is None else doc, "target": target, "arguments": sent}
    return row | {"resps": said, "filtered_resps": [r[0] for r in said], "metrics": ["acc"], "acc": right} | more


def written_row(i=0, doc=None, target="B", replies=("B",), context=None, **more) -> dict:
    doc = {"question": f"Q{i}?", "choices": ["x", "y", "z"]} if doc is None else doc
    context = f"Q{i}?\nA. x\nB. y\nC. z\nAnswer:" if context is None else context
    sent = {"gen_args_0": {"arg_0": context, "arg_1": {"until": []}}}
    row = {"doc_id": i, "doc": doc, "target": target, "arguments": sent, "resps": [list(replies)]}
    verdict = float(replies[0] == target)
    return row | {"filtered_resps": [replies[0]], "metrics": ["exact_match"], "exact_match": verdict} | more
