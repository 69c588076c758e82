"""The real lm-evaluation-harness on tasks that `export_lm_eval` wrote, compared with our own respondents. By hand.

    python -m venv /tmp/peers/lm && /tmp/peers/lm/bin/pip install "lm-eval[hf]==0.4.13"
    python tests/peers/lm_eval_peer.py --python /tmp/peers/lm/bin/python math shots medqa

Parts, each with the bundled organism `skewed` (for `steady` everything is 1.0 and proves nothing):

- `math`: 100 questions of the bundled benchmark, all variants of the family cora, no examples.
- `shots`: 20 other questions of it with 5 examples, altered like the variant.
- `medqa`: 30 questions of MedQA from ../shared/data; nothing of it is kept.
- `record`: 2 questions of the bundled benchmark; the harness's files go to recorded/lm_eval_ours, for the tests of the
  import. What tells about the machine is taken out of them.

Each part exports, moves the folder (it must run from anywhere), runs `lm_eval run` on both tasks, and compares: the
prompts in the harness's own samples with ours to the letter, log-likelihoods within 1e-4, predictions, replies to the
letter, and all scores. The exit status is 1 where something differs. About a minute for each thousand variants.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.interop.lm_eval_tasks import export_lm_eval
from cora_nb.variants.families import make_variants

ROOT = Path(__file__).resolve().parents[2]
MODEL = "data/models/skewed"
RECORDED = Path(__file__).with_name("recorded") / "lm_eval_ours"
MACHINE = ("pretty_env_info", "git_hash", "upper_git_hash")  # facts of `results_*.json` about the machine


def run_harness(python: str, task: Path, out: Path, *options: str) -> tuple[dict[str, Path], dict]:
    "Run both tasks of a folder; the files of samples by task, and what `results_*.json` says."
    command = [python, "-m", "lm_eval", "run", "--model", "hf", "--model_args", f"pretrained={MODEL},dtype=float32"]
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


def record(python: str, place: Path) -> None:
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


def main() -> None:
    told = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    told.add_argument("parts", nargs="+", choices=["math", "shots", "medqa", "record"])
    told.add_argument("--python", required=True, help="of an environment with lm-eval[hf]==0.4.13")
    given = told.parse_args()
    for part in given.parts:
        with tempfile.TemporaryDirectory() as place:
            if part == "record":
                record(given.python, Path(place))


if __name__ == "__main__":
    main()
