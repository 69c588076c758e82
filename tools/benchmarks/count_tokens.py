"""How many tokens CoRA's variants of all of MMLU take: read one by one, and where what texts share is computed once.

    python tools/benchmarks/count_tokens.py TOKENIZER --out data/measured/mmlu_tokens.csv

TOKENIZER is a folder or a name that transformers knows, or a `tekken` file of Mistral (needs `tiktoken`). The committed
numbers were counted with `tekken_240911.json`, 131,072 tokens, as the package mistral_common 1.13.1 ships it. Needs the
shared data; four to ten minutes.

One line for each number of solved questions shown first and each part of the run: the originals alone, or a share of
all variants, drawn at random over the benchmark. A run that stops early asks such a share, but not at random: it asks
some questions in more of their variants, which then share more. So its least lies below the least here. Its columns:

- `questions`, `prompts`, `different` (prompts that differ: equal ones are asked once);
- `read`: tokens of the different prompts, each read from its beginning, as a server without a prefix cache reads them;
- `cached`: tokens that a server computes which keeps what it has computed in whole blocks of 16 tokens (vLLM does), as
  long as nothing is dropped from its cache: the different beginnings that are whole blocks, and what is left of each
  prompt behind its last whole block;
- `least`: the number of different beginnings among them: no method can compute fewer.

A prompt is read up to the place where the letter follows, which is all that is needed to write one token, or to score
the letters (`likelihood` with `joint-label`).
"""

import argparse
import base64
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from cora_nb.benchmarks.load import load_benchmark, load_shots
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.token_trees import _sort_texts
from cora_nb.variants.families import make_variants

HUB = Path(os.environ.get("CORA_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data" / "hub"
SHARES = (0.01, 0.02, 0.05, 0.08, 0.12, 0.24, 0.51, 0.81, 1)


def encoder(tokenizer: str) -> Callable[[list[str]], list[list[int]]]:
    "Texts to tokens, without tokens at the beginning or the end."
    if not tokenizer.endswith(".json"):
        import transformers

        loaded = transformers.AutoTokenizer.from_pretrained(tokenizer)
        return lambda texts: loaded(texts, add_special_tokens=False)["input_ids"]
    import tiktoken

    file = json.loads(Path(tokenizer).read_text(encoding="utf-8"))
    size = file["config"]["default_vocab_size"] - file["config"]["default_num_special_tokens"]
    ranks = {base64.b64decode(t["token_bytes"]): t["rank"] for t in file["vocab"][:size]}
    coder = tiktoken.Encoding("tekken", pat_str=file["config"]["pattern"], mergeable_ranks=ranks, special_tokens={})
    return lambda texts: coder.encode_ordinary_batch(texts, num_threads=2)


BLOCK = 16  # tokens


def computed_tokens(texts: list[list[int]], block: int = BLOCK) -> tuple[int, int]:
    "Tokens that must be computed of different texts that are read to their ends: in whole blocks, and at least."
    found = _sort_texts([[*t, 0] for t in texts], [len(t) for t in texts])
    blocks = sum(len(row) // block - shared // block for row, shared in zip(found.rows, found.shared))
    return block * blocks + sum(len(row) % block for row in found.rows), found.least_tokens


def counts(reads: list[list[int]], texts: list[str], some: list[int]) -> dict[str, int]:
    "The numbers of some of the prompts of a subject."
    different = list({texts[i]: reads[i] for i in some}.values())
    cached, least = computed_tokens(different) if different else (0, 0)
    read = sum(map(len, different))
    return {"prompts": len(some), "different": len(different), "read": read, "cached": cached, "least": least}


def parts_of(variants: list, seed: int) -> dict[str, list[int]]:
    "The numbers of the variants of each part of the run."
    shuffled = [int(i) for i in np.random.default_rng(seed).permutation(len(variants))]
    parts = {"original": [i for i, v in enumerate(variants) if v.method == "original"]}
    return parts | {f"{share}": sorted(shuffled[: round(share * len(variants))]) for share in SHARES}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer")
    parser.add_argument("--out", type=Path, help="a CSV file; without it the sums are only printed")
    parser.add_argument("--subjects", type=int, help="only so many, to try it out")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # MMLU has its own "None of the above" in 190 questions
    encode, lines = encoder(options.tokenizer), []
    questions, pool = load_benchmark("mmlu", path=HUB), load_shots("mmlu", path=HUB)
    for number, subject in enumerate(sorted({q.subject for q in questions})[: options.subjects]):
        variants = make_variants([q for q in questions if q.subject == subject])
        parts = parts_of(variants, number)
        for shots in (0, 5):
            texts = [p.text for p in (make_prompts(variants, shots=pool, k=shots) if shots else make_prompts(variants))]
            reads = encode(texts)
            for part, some in parts.items():
                lines.append({"shots": shots, "part": part, "questions": len(parts["original"])})
                lines[-1] |= counts(reads, texts, some)
        print(subject, lines[-1], flush=True)
    frame = pd.DataFrame(lines).groupby(["shots", "part"], sort=False).sum().reset_index()
    if options.out:
        frame.to_csv(options.out, index=False)
    print(frame.to_string())
