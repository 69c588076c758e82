"""The real lm-evaluation-harness on tasks that `export_lm_eval` wrote, compared with our own respondents. By hand.

    python -m venv /tmp/peers/lm && /tmp/peers/lm/bin/pip install "lm-eval[hf]==0.4.13"
    python tools/peers/lm_eval_peer.py --python /tmp/peers/lm/bin/python math shots chat plus odd medqa

Parts, each with the bundled organism `skewed` (for `steady` everything is 1.0 and proves nothing):

- `math`: 100 questions of the bundled benchmark, all variants of the family cora, no examples.
- `shots`: 20 questions of it with 5 examples, altered like the variant.
- `chat`: 20 questions with `--apply_chat_template`, which is a chat respondent's prompt as long as there are no shots.
- `plus`: 20 questions, the family mcqa_plus, with its true-or-false questions.
- `odd`: three questions of our own that a template, a guess at types or YAML would change.
- `medqa`: 30 questions of MedQA from ../shared/data; nothing of it is kept.
- `record`: 2 questions of the bundled benchmark, with the short template bare; the harness's files go to
  recorded/lm_eval_ours, for the tests of the import. What tells about the machine is taken out of them.

Each part exports, moves the folder (it must run from anywhere), runs `lm_eval run` on both tasks, imports its samples
with `import_responses`, and compares: the prompts in the harness's own samples with ours to the letter,
log-likelihoods within 1e-4, predictions, replies to the letter, all other columns, and all scores. The exit status is 1
where something differs. One to two minutes for each thousand variants on one core.

With long prompts, log-likelihoods in float32 are off by up to 3e-4 from those in float64, the harness's and ours alike.
So `shots` is compared in float64, unless `--dtype` says otherwise.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path

import numpy as np

from cora_nb.benchmarks.load import load_benchmark, load_shots
from cora_nb.core import Question
from cora_nb.interop.formats import import_responses
from cora_nb.interop.lm_eval_tasks import export_lm_eval
from cora_nb.prompts.templates import make_prompts
from cora_nb.report.tables import score_table
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.likelihood import LikelihoodRespondent, context_and_continuations
from cora_nb.responses.responses import Responses
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

ROOT = Path(__file__).resolve().parents[2]
MODEL = "organism/skewed"
RECORDED = Path(__file__).with_name("recorded") / "lm_eval_ours"
MACHINE = ("pretty_env_info", "git_hash", "upper_git_hash")  # facts of `results_*.json` about the machine


def run_harness(python: str, task: Path, out: Path, *options: str, dtype: str = "float32") -> None:
    "Run both tasks of a folder."
    command = [
        python,
        "-m",
        "lm_eval",
        "run",
        "--model",
        "hf",
        "--model_args",
        f"pretrained=data/models/skewed,dtype={dtype}",
    ]
    command += ["--tasks", "cora_mc,cora_gen", "--include_path", str(task), "--log_samples", "--device", "cpu"]
    quiet = {
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
    }
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | quiet
    done = subprocess.run(
        [*command, "--output_path", str(out), *options], cwd=ROOT, env=env, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"lm_eval ended with {done.returncode}:\n{done.stderr[-3000:]}")


def read_output(out: Path) -> tuple[dict[str, Path], dict]:
    "The files of samples by task, and what `results_*.json` says."
    samples = {p.name.split("_20")[0].removeprefix("samples_"): p for p in out.rglob("samples_*.jsonl")}
    return samples, json.loads(next(out.rglob("results_*.json")).read_text())


def export_moved(variants: list, place: Path, **asked) -> Path:
    "A task folder that lies elsewhere than it was written."
    folder = export_lm_eval(variants, place / "written" / "task", **asked).folder
    return Path(shutil.move(folder, place / "task"))


def record(python: str, place: Path) -> bool:
    "Keep the harness's files of two questions."
    variants = make_variants(load_benchmark("math")[:2])
    told = {"benchmark": "math", "limit": 2, "family": "cora", "seed": 0}
    task = export_moved(
        variants, place, asking=Asking("bare", parse="first_token"), facts=told
    )  # half as long as with cora
    run_harness(python, task, place / "out")
    samples, _ = read_output(place / "out")
    shutil.rmtree(RECORDED, ignore_errors=True)
    RECORDED.mkdir(parents=True)
    for path in samples.values():
        shutil.copy(path, RECORDED / path.name)
    for path in place.joinpath("out").rglob("results_*.json"):
        told = json.loads(path.read_text().replace(f"{place}{os.sep}", ""))
        results = {what: value for what, value in told.items() if what not in MACHINE}
        (RECORDED / path.name).write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    for path in task.glob("*.yaml"):
        shutil.copy(path, RECORDED / path.name)
    print(f"{RECORDED}: {sum(p.stat().st_size for p in RECORDED.iterdir())} bytes")
    return True


def read_samples(path: Path) -> list[dict]:
    "The harness's samples in the order of the documents."
    with open(path, encoding="utf-8") as file:
        return sorted(map(json.loads, file), key=lambda sample: sample["doc_id"])


def asked(samples: list[dict]) -> list[tuple[str, list[str]]]:
    "What the harness says it has asked: context and continuations, or a prompt and nothing."
    found = []
    for sample in samples:
        arguments = [sample["arguments"][f"gen_args_{i}"] for i in range(len(sample["arguments"]))]
        (context,) = {a["arg_0"] for a in arguments}
        found.append((context, [a["arg_1"] for a in arguments if isinstance(a["arg_1"], str)]))
    return found


def clustered(run: Responses) -> float:
    "The standard error of the mean reply, over questions and not over replies."
    correct = run.table.groupby("question_id")["correct"]
    totals, sizes = correct.sum(), correct.size()
    residuals = totals - run.table["correct"].mean() * sizes
    return float(np.sqrt(len(sizes) / (len(sizes) - 1) * (residuals**2).sum()) / sizes.sum())


class Comparison:
    "Lines of what is equal and what is not."

    def __init__(self):
        self.equal = True

    def say(self, what: str, equal: bool, words: object) -> None:
        self.equal &= bool(equal)
        print(f"  {'equal    ' if equal else 'DIFFERENT'}  {what}: {words}", flush=True)

    def count(self, what: str, one: Iterable, other: Iterable) -> None:
        "How many of two lists are equal, which must be all."
        pairs = list(zip_longest(one, other))
        same = sum(a == b for a, b in pairs)
        self.say(what, same == len(pairs), f"{same} of {len(pairs)}")

    def runs(self, kind: str, own: Responses, got: Responses) -> None:
        "Our run and the imported one: predictions, all other columns that both know, and all scores."
        one, other = own.table, got.table
        if kind == "mc":
            gap = max(float(np.abs(np.subtract(a, b)).max()) for a, b in zip(one["scores"], other["scores"]))
            n = int(one["n_choices"].sum())
            self.say("log-likelihoods, within 1e-4", gap <= 1e-4, f"largest difference {gap:.1e} of {n}")
        else:
            self.count("replies, to the letter", one["reply"], other["reply"])
        self.count(f"predictions ({kind})", one["prediction"], other["prediction"])
        rest = [c for c in one if c not in ("scores", "confidence", "mean_logprob", "n_tokens", "finish")]
        differ = [c for c in rest if one[c].astype(str).tolist() != other[c].astype(str).tolist()]
        self.say(f"the other columns ({kind})", not differ, ", ".join(differ) or f"{len(rest)} columns")
        a, b = (score_table({"run": run}, beyond=True)[["score", "value"]] for run in (own, got))
        some = [f"{s} {v:.4f}" for s, v in zip(b["score"], b["value"]) if s in ("MCQA", "MCQA+", "CI", "CoRA")]
        self.say(f"scores ({kind})", a.equals(b), f"{len(a)} scores, {', '.join(some)}")


def compare(given: argparse.Namespace, place: Path, part: str, variants: list, chat: bool = False, **put) -> bool:
    "Export, run, import and compare; whether all is equal."
    found, n = Comparison(), len({v.question_id for v in variants})
    counts = f"{n} questions, {len(variants)} variants of {variants[0].family}, {put.get('k', 0)} shots"
    print(f"\n{part}: {counts}, {given.dtype}", flush=True)
    options = ["--apply_chat_template"] if chat else []
    if not place.joinpath("out").exists():
        task = export_moved(variants, place, asking=Asking(parse="first_token", **put))
        run_harness(given.python, task, place / "out", *options, dtype=given.dtype)
    samples, results = read_output(place / "out")
    prompts = make_prompts(variants, "cora", parse="first_token", **put)
    causal = CausalRespondent(MODEL, chat=chat, max_new_tokens=1, dtype=given.dtype)
    who = (
        {"gen": causal}
        if chat
        else {"mc": LikelihoodRespondent(MODEL, seam="harness", dtype=given.dtype), "gen": causal}
    )
    for kind, respondent in who.items():
        told = asked(read_samples(samples[f"cora_{kind}"]))
        if kind == "mc":
            texts = [context_and_continuations(p, "joint-label") for p in prompts]
            found.count("contexts and continuations, to the letter", told, texts)
        else:
            found.count("prompts, to the letter", [text for text, _ in told], map(causal.sent, prompts))
        own = evaluate(respondent, variants, Asking(parse="first_token", **put), progress=False, strict=None)
        got = import_responses(samples[f"cora_{kind}"], model=own.name)
        found.runs(kind, own, got)
        metric, mean = {"mc": "acc", "gen": "exact_match"}[kind], own.table["correct"].mean()
        value, error = (results["results"][f"cora_{kind}"][f"{what},none"] for what in (metric, f"{metric}_stderr"))
        print(f"             lm_eval prints {metric} {value:.4f} ± {error:.4f};", end=" ")
        print(f"clustered by question {mean:.4f} ± {clustered(own):.4f}")
        for note in got.facts.imported.get("notes", []):
            print(f"             import: {note}")
    return found.equal


ODD = [  # what a template, a guess at types or YAML would change
    Question("dates", "{{ question }} {% raw %} When?", ("1969-07-20", "1970-01-01", "2000-02-29"), 0),
    Question("numbers", "12", ("1", "2.0", "1e5", "null"), 2),
    Question("letters", "Größe – 量 😀 \\n \u2028", ("'", '"', "\\", "True"), 3),
]


def run_part(part: str, given: argparse.Namespace, place: Path) -> bool:
    "One part of this script; whether all is equal."
    if part == "record":
        return record(given.python, place)
    if part == "medqa":
        path = ROOT.parent / "shared" / "data" / "hub" / "bigbio__med_qa"
        return compare(given, place, part, make_variants(load_benchmark("medqa", path=path)[:30]))
    if part == "odd":
        return compare(given, place, part, make_variants(ODD))
    questions = load_benchmark("math")[: 100 if part == "math" else 20]
    put = {"shots": load_shots("math"), "k": 5, "shots_as": "like_variant"} if part == "shots" else {}
    family = "mcqa_plus" if part == "plus" else "cora"
    return compare(given, place, part, make_variants(questions, family=family), part == "chat", **put)


def main() -> None:
    told = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    told.add_argument("parts", nargs="+", choices=["math", "shots", "chat", "plus", "odd", "medqa", "record"])
    told.add_argument("--python", required=True, help="of an environment with lm-eval[hf]==0.4.13")
    told.add_argument("--dtype", choices=["float32", "float64"], help="of both; without it, float64 for shots alone")
    told.add_argument("--keep", help="a folder for what the harness writes, which is compared again where it is there")
    given, equal = told.parse_args(), True
    dtype = given.dtype
    for part in given.parts:
        given.dtype = dtype or ("float64" if part == "shots" else "float32")
        with tempfile.TemporaryDirectory() as place:
            kept = Path(given.keep or place, f"{part}_{given.dtype}")
            kept.mkdir(parents=True, exist_ok=True)
            equal &= run_part(part, given, kept)
    sys.exit(not equal)


if __name__ == "__main__":
    main()
