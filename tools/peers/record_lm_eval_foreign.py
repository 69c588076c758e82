"""Logs of lm-evaluation-harness about tasks that are not ours, recorded with the real tool. By hand, not in CI:

    python tools/peers/record_lm_eval_foreign.py --lm-eval /path/to/venv/bin/lm_eval

lm-eval[hf] 0.4.13 lives in an environment of its own; two runs, one to three minutes. A few questions of the bundled
`math` benchmark become tasks as people write them (YAML and JSON Lines), the bundled organism `skewed` answers, and the
logs go to `tests/recorded/lm_eval`, where the tests of `cora_nb.interop.lm_eval_logs` read them. What tells of
this machine is taken out of the results files: paths above the project, and what the harness says of the computer.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "tests" / "recorded" / "lm_eval"
MODEL = ROOT / "data" / "models" / "skewed"
MACHINE = ("pretty_env_info", "upper_git_hash", "git_hash", "start_time", "end_time", "total_evaluation_time_seconds")

CHOICES = "\n".join(f"{letter}. {{{{choices[{i}]}}}}" for i, letter in enumerate("ABCD"))
LISTED = f"Question: {{{{question}}}}\nChoices: {CHOICES}\nAnswer:"
EXACT = {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}


def metrics(*names: str) -> list[dict]:
    return [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in names]


def letters(name: str, *more: str) -> dict:
    "A filter that takes the first letter out of each reply."
    extract = {"function": "regex", "regex_pattern": "([ABCD])"}
    return {"name": name, "filter": [extract, *({"function": function} for function in (*more, "take_first"))]}


GENERATE = {
    "output_type": "generate_until",
    "doc_to_text": LISTED,
    "doc_to_target": "{{'ABCD'[answer]}}",
    "generation_kwargs": {"until": ["\n\n"], "max_gen_toks": 8, "do_sample": False},
    "metric_list": [EXACT],
}
TASKS = {  # name -> (which file of documents, what its YAML says)
    "arith_cloze": (
        "ties",  # the last document shows the same text twice
        {
            "output_type": "multiple_choice",
            "doc_to_text": "Question: {{question}}\nAnswer:",
            "doc_to_choice": "choices",
            "doc_to_target": "answer",
            "metric_list": metrics("acc", "acc_norm"),
        },
    ),
    "arith_letters": (
        "plain",
        {
            "output_type": "multiple_choice",
            "doc_to_text": LISTED,
            "doc_to_choice": ["A", "B", "C", "D"],
            "doc_to_target": "{{answer}}",
            "fewshot_split": "train",
            "metric_list": metrics("acc", "acc_norm"),
        },
    ),
    "arith_pmi": (
        "plain",
        {
            "output_type": "multiple_choice",
            "doc_to_text": LISTED,
            "doc_to_choice": "{{choices}}",
            "doc_to_target": "right",  # a column with the text; in a template, "9" would become the index 9
            "metric_list": metrics("acc", "acc_mutual_info"),
        },
    ),
    "arith_blank": (  # like winogrande: the choice stands in the context, and what follows is the same
        "blank",
        {
            "output_type": "multiple_choice",
            "doc_to_text": "label",
            "doc_to_choice": "{{[sentence.replace('_', option1), sentence.replace('_', option2)]}}",
            "doc_to_target": "{{ending}}",
            "metric_list": metrics("acc"),
        },
    ),
    "arith_several": (  # two right choices
        "several",
        {
            "output_type": "multiple_choice",
            "doc_to_text": "Question: {{question}}\nAnswer:",
            "doc_to_choice": "choices",
            "doc_to_target": "answers",
            "metric_list": metrics("acc"),
        },
    ),
    "arith_gen": ("plain", GENERATE | {"filter_list": [letters("capital"), letters("small", "lowercase")]}),
    "arith_draws": (  # three replies to each prompt
        "plain",
        GENERATE
        | {"repeats": 3, "generation_kwargs": {"until": [], "max_gen_toks": 1, "do_sample": True, "temperature": 1.0}},
    ),
    "arith_open": (  # a question without choices
        "open",
        {
            "output_type": "generate_until",
            "doc_to_text": "Question: {{question}}\nAnswer:",
            "doc_to_target": "{{result}}",
            "generation_kwargs": {"until": ["\n"], "max_gen_toks": 8, "do_sample": False},
            "metric_list": [EXACT],
        },
    ),
}


def documents(questions: list[dict]) -> dict[str, list[dict]]:
    "The files of documents: plain questions, and what the other tasks make of them."
    plain = [q | {"right": q["choices"][q["answer"]]} for q in questions[::25]]
    twice = {"id": "tie", "question": "What is 3 + 4?", "choices": ["7", "7"], "answer": 0}
    twice |= {"subject": "addition", "right": "7"}
    blank = [
        {
            "id": q["id"],
            "sentence": f"{q['question'].removeprefix('What is ').removesuffix('?')} = _ is",
            "option1": q["choices"][q["answer"]] if i % 2 else q["choices"][q["answer"] - 1],
            "option2": q["choices"][q["answer"] - 1] if i % 2 else q["choices"][q["answer"]],
            "label": 0 if i % 2 else 1,
            "ending": "right.",
        }
        for i, q in enumerate(plain)
    ]
    several = [
        {"id": q["id"], "question": q["question"], "choices": q["choices"], "answers": [q["answer"], 3 - q["answer"]]}
        for q in plain[:2]
    ]
    alone = [{"question": q["question"], "result": q["right"]} for q in plain[:2]]
    train = questions[100:110]
    return {"plain": plain, "ties": [*plain, twice], "blank": blank, "several": several, "open": alone, "train": train}


def write_tasks(folder: Path) -> None:
    "A folder that `lm_eval run --include_path` takes. YAML holds JSON, so JSON will do."
    questions = [json.loads(line) for line in (ROOT / "data/benchmarks/math.jsonl").read_text().splitlines()]
    for name, docs in documents(questions).items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    for name, (docs, task) in TASKS.items():
        files = {"test": str(folder / f"{docs}.jsonl")}
        files |= {"train": str(folder / "train.jsonl")} if "fewshot_split" in task else {}
        data = {"dataset_path": "json", "dataset_kwargs": {"data_files": files}, "test_split": "test"}
        (folder / f"{name}.yaml").write_text(json.dumps({"task": name, **data, **task, "metadata": {"version": 1.0}}))


def run(lm_eval: str, folder: Path, tasks: list[str], *more: str) -> Path:
    "One run of the tool; the folder with its files."
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "PYTHONPATH": ""}
    command = [lm_eval, "run", "--model", "hf", "--model_args", f"pretrained={MODEL},dtype=float32", "--device", "cpu"]
    command += ["--tasks", ",".join(tasks), "--include_path", str(folder), "--log_samples", *more]
    subprocess.run([*command, "--output_path", str(folder / "logs")], check=True, env=environment)
    (logs,) = (folder / "logs").iterdir()
    return logs


def keep(logs: Path, folder: Path) -> None:
    "Copy the files, without what tells of this machine."
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    for file in sorted(logs.iterdir()):
        text = file.read_text(encoding="utf-8").replace(f"{folder}/", "").replace(f"{ROOT}/", "")
        if file.name.startswith("results_"):
            told = {what: value for what, value in json.loads(text).items() if what not in MACHINE}
            text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
        (OUT / file.name).write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lm-eval", default="/tmp/peers/lm/bin/lm_eval", help="the command of lm-eval")
    lm_eval = parser.parse_args().lm_eval
    if not Path(lm_eval).exists():
        sys.exit(f"{lm_eval}: there is no such command; install lm-eval[hf]==0.4.13 in an environment of its own")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write_tasks(folder)
        run(lm_eval, folder, list(TASKS))
        keep(run(lm_eval, folder, ["arith_letters"], "--limit", "3", "--num_fewshot", "2"), folder)
    for file in sorted(OUT.iterdir()):
        print(f"{file.stat().st_size:8,}  {file.name}")


if __name__ == "__main__":
    main()
