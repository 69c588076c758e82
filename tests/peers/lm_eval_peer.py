"""The real lm-evaluation-harness on tasks that `export_lm_eval` wrote, compared with our own respondents. By hand.

    python -m venv /tmp/peers/lm && /tmp/peers/lm/bin/pip install "lm-eval[hf]==0.4.13"
    python tests/peers/lm_eval_peer.py --python /tmp/peers/lm/bin/python math shots medqa

Parts, each with the bundled organism `skewed` (for `steady` everything is 1.0 and proves nothing):

- `math`: 100 questions of the bundled benchmark, all variants of the family cora, no examples.
- `shots`: 20 questions of it with 5 examples, altered like the variant.
- `chat`: 20 questions with `--apply_chat_template`, which is a chat respondent's prompt as long as there are no shots.
- `medqa`: 30 questions of MedQA from ../shared/data; nothing of it is kept.
- `record`: 2 questions of the bundled benchmark; the harness's files go to recorded/lm_eval_ours, for the tests of the
  import. What tells about the machine is taken out of them.

Each part exports, moves the folder (it must run from anywhere), runs `lm_eval run` on both tasks, imports its samples
with `import_responses`, and compares: the prompts in the harness's own samples with ours to the letter,
log-likelihoods within 1e-4, predictions, replies to the letter, all other columns, and all scores. The exit status is 1
where something differs. About a minute for each thousand variants on one core.

With long prompts, log-likelihoods in float32 are off by up to 3e-4 from those in float64, the harness's and ours alike:
`--dtype float64` tells rounding from a difference.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from cora_nb.benchmarks.load import load_benchmark, load_shots
from cora_nb.interop.importers import import_responses
from cora_nb.interop.lm_eval_tasks import export_lm_eval
from cora_nb.prompts.templates import make_prompts
from cora_nb.report.tables import score_table
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.likelihood import LikelihoodRespondent, context_and_continuations
from cora_nb.responses.responses import Responses
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

ROOT = Path(__file__).resolve().parents[2]
MODEL = "data/models/skewed"
RECORDED = Path(__file__).with_name("recorded") / "lm_eval_ours"
MACHINE = ("pretty_env_info", "git_hash", "upper_git_hash")  # facts of `results_*.json` about the machine


def run_harness(
    python: str, task: Path, out: Path, *options: str, dtype: str = "float32"
) -> tuple[dict[str, Path], dict]:
    "Run both tasks of a folder; the files of samples by task, and what `results_*.json` says."
    command = [python, "-m", "lm_eval", "run", "--model", "hf", "--model_args", f"pretrained={MODEL},dtype={dtype}"]
    command += ["--tasks", "cora_mc,cora_gen", "--include_path", str(task), "--log_samples", "--device", "cpu"]
    quiet = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | quiet
    done = subprocess.run(
        [*command, "--output_path", str(out), *options], cwd=ROOT, env=env, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"lm_eval ended with {done.returncode}:\n{done.stderr[-3000:]}")
    samples = {p.name.split("_20")[0].removeprefix("samples_"): p for p in out.rglob("samples_*.jsonl")}
    return samples, json.loads(next(out.rglob("results_*.json")).read_text())


def export_moved(variants: list, place: Path, **asked) -> Path:
    "A task folder that lies elsewhere than it was written."
    folder = export_lm_eval(variants, place / "written" / "task", **asked)
    return Path(shutil.move(folder, place / "task"))


def record(python: str, place: Path) -> bool:
    "Keep the harness's files of two questions."
    variants = make_variants(load_benchmark("math", limit=2))
    told = {"benchmark": "math", "limit": 2, "family": "cora", "seed": 0}
    task = export_moved(variants, place, parse="first_token", facts=told)
    samples, _ = run_harness(python, task, place / "out")
    shutil.rmtree(RECORDED, ignore_errors=True)
    RECORDED.mkdir(parents=True)
    for path in samples.values():
        shutil.copy(path, RECORDED / path.name)
    for path in place.joinpath("out").rglob("results_*.json"):
        results = {what: value for what, value in json.loads(path.read_text()).items() if what not in MACHINE}
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
        texts = [a["arg_1"] for a in arguments if isinstance(a["arg_1"], str)]
        assert len({a["arg_0"] for a in arguments}) == 1
        found.append((arguments[0]["arg_0"], texts))
    return found


def clustered(run: Responses) -> float:
    "The standard error of the mean reply, over questions and not over replies."
    correct = run.table.groupby("question_id")["correct"]
    totals, sizes = correct.sum(), correct.size()
    residuals = totals - run.table["correct"].mean() * sizes
    return float(np.sqrt(len(sizes) / (len(sizes) - 1) * (residuals**2).sum()) / sizes.sum())


def compare(
    python: str, place: Path, part: str, questions: list, options: tuple = (), chat=False, dtype="float32", **put
) -> bool:
    "Export, run, import and compare; whether all is equal."
    variants, ok = make_variants(questions), True
    print(
        f"\n{part}: {len(questions)} questions, {len(variants)} variants, {put.get('k', 0)} shots, {dtype}", flush=True
    )

    def say(what: str, equal: bool, words: object) -> None:
        nonlocal ok
        ok &= bool(equal)
        print(f"  {'equal    ' if equal else 'DIFFERENT'}  {what}: {words}", flush=True)

    task = export_moved(variants, place, parse="first_token", **put)
    samples, results = run_harness(python, task, place / "out", *options, dtype=dtype)
    prompts = make_prompts(variants, "cora", parse="first_token", **put)
    causal = CausalRespondent(f"organism/{MODEL[12:]}", chat=chat, max_new_tokens=1, dtype=dtype)
    if not chat:
        ours = LikelihoodRespondent(f"organism/{MODEL[12:]}", seam="harness", dtype=dtype)
        told = asked(read_samples(samples["cora_mc"]))
        same = sum(
            one == (c, list(t))
            for one, p in zip(told, prompts)
            for c, t in [context_and_continuations(p, "joint-label")]
        )
        say("context and continuations, to the letter", same == len(told) == len(prompts), f"{same} of {len(told)}")
    told = asked(read_samples(samples["cora_gen"]))
    same = sum(text == causal.sent(p) for (text, _), p in zip(told, prompts))
    say("prompts, to the letter", same == len(told) == len(prompts), f"{same} of {len(told)}")
    for kind, respondent in [("mc", ours), ("gen", causal)] if not chat else [("gen", causal)]:
        own = evaluate(respondent, variants, "cora", parse="first_token", progress=False, **put)
        got = import_responses(samples[f"cora_{kind}"], model=own.name)
        one, other = own.table, got.table
        if kind == "mc":
            gap = max(float(np.abs(np.subtract(a, b)).max()) for a, b in zip(one["scores"], other["scores"]))
            say("log-likelihoods, within 1e-4", gap <= 1e-4, f"largest difference {gap:.1e}")
        else:
            same = int((one["reply"] == other["reply"]).sum())
            say("replies, to the letter", same == len(one), f"{same} of {len(one)}")
        same = int((one["prediction"] == other["prediction"]).sum())
        say(f"predictions ({kind})", same == len(one) == len(other), f"{same} of {len(one)}")
        rest = [c for c in one if c not in ("scores", "confidence", "mean_logprob", "n_tokens", "finish")]
        differ = [c for c in rest if one[c].astype(str).tolist() != other[c].astype(str).tolist()]
        say(f"the other columns ({kind})", not differ, ", ".join(differ) or f"{len(rest)} columns")
        a, b = (score_table({"run": run}, beyond=True)[["score", "value"]] for run in (own, got))
        say(
            f"scores ({kind})",
            a.equals(b),
            f"{len(a)} scores, "
            + ", ".join(f"{s} {v:.4f}" for s, v in zip(b["score"], b["value"]) if s in ("MCQA", "MCQA+", "CI", "CoRA")),
        )
        metric = {"mc": "acc", "gen": "exact_match"}[kind]
        told = results["results"][f"cora_{kind}"]
        print(
            f"             lm_eval prints {metric} {told[f'{metric},none']:.4f} ± {told[f'{metric}_stderr,none']:.4f};"
            f" clustered by question {own.table['correct'].mean():.4f} ± {clustered(own):.4f}"
        )
        for note in got.facts["imported"].get("notes", []):
            print(f"             import: {note}")
    return ok


def medqa() -> list:
    return load_benchmark("medqa", path=ROOT.parent / "shared" / "data" / "hub" / "bigbio__med_qa", limit=30)


def run_part(part: str, python: str, place: Path, dtype: str) -> bool:
    "One part of this script; whether all is equal."
    if part == "record":
        return record(python, place)
    if part == "math":
        return compare(python, place, part, load_benchmark("math", limit=100), dtype=dtype)
    if part == "shots":
        put = {"shots": load_shots("math"), "k": 5, "shots_as": "like_variant"}
        return compare(python, place, part, load_benchmark("math", limit=20), dtype=dtype, **put)
    if part == "chat":
        options = ("--apply_chat_template",)
        return compare(python, place, part, load_benchmark("math", limit=20), options, chat=True, dtype=dtype)
    return compare(python, place, part, medqa(), dtype=dtype)


def main() -> None:
    told = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    told.add_argument("parts", nargs="+", choices=["math", "shots", "chat", "medqa", "record"])
    told.add_argument("--python", required=True, help="of an environment with lm-eval[hf]==0.4.13")
    told.add_argument("--dtype", default="float32", choices=["float32", "float64"], help="of both; see above")
    given, equal = told.parse_args(), True
    for part in given.parts:
        with tempfile.TemporaryDirectory() as place:
            equal &= run_part(part, given.python, Path(place), given.dtype)
    sys.exit(not equal)


if __name__ == "__main__":
    main()
