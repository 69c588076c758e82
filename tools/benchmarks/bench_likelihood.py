"""Log-likelihoods of 20 ARC-Challenge questions with 25 shots, beside lm-evaluation-harness's `hf` backend.

Two workloads on one model, random weights and 6.8 million parameters: all CoRA variants under `joint-desc`, and the 24
orders of each question under `separate`. Same requests, same limit of tokens at a time, and every number must be the
same. With texts of 2,800 tokens the limit leaves the harness one at a time, which on two cores is what it is fastest
with. It is given questions until its minutes are over; where that was not all of them, its time is scaled by the tokens
that are left, and the line says so. The least is the number of different beginnings among all texts: no method can
compute fewer tokens.

On a busy machine both sides are slower by factors that have nothing to do with them: run it when nothing else does.

Needs `lm-eval` (without it only our side is measured) and, for the real questions, the shared data.
"""

import argparse
import logging
import os
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import transformers

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.benchmarks.load import load_benchmark, load_shots
from cora_nb.core import Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.likelihood import LikelihoodRespondent, context_and_continuations, split_tokens
from cora_nb.respondents.token_trees import _sort_texts
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants
from measure import measure, report
from random_llama import make_llama, train_tokenizer

HUB = Path(os.environ.get("CORA_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data" / "hub"

SHAPE = (256, 688, 8, 4)  # of the model, as `make_llama` takes it
WORKLOADS = {"joint-desc": "cora", "separate": "permutations"}  # adaptation -> family


def questions_and_pool(n: int) -> tuple[list, list]:
    "ARC-Challenge and its validation questions, or arithmetic where they are not at hand."
    if HUB.is_dir():
        return load_benchmark("arc", path=HUB)[:n], load_shots("arc", path=HUB)
    return math_benchmark(n), [
        Question(f"shot {i}", q.text, q.choices, q.answer) for i, q in enumerate(math_benchmark(40, seed=1))
    ]


class Counted:
    "Tokens that go through a model while this is open, padding included."

    def __init__(self, model):
        self.model = model

    def __enter__(self):
        self.tokens = 0
        self.hook = self.model.register_forward_pre_hook(self.take, with_kwargs=True)
        return self

    def take(self, model, args, kwargs):
        self.tokens += (args[0] if args else kwargs["input_ids"]).numel()

    def __exit__(self, *_):
        self.hook.remove()


def ours(folder: Path, variants, pool, adaptation: str, limit: int) -> tuple[float, int, list[float]]:
    "Seconds from variants to responses, tokens computed, and all sums in the order of the prompts."
    who = LikelihoodRespondent(folder, adaptation=adaptation, device="cpu", room=limit)
    who.tokenizer  # loading is not measured, on neither side
    with Counted(who.model) as counted:
        seconds, _, responses = measure(
            lambda: evaluate(who, variants, Asking(shots=pool, k=25), progress=False), repeat=1
        )
    return seconds, counted.tokens, [s for scores in responses.table["scores"] for s in scores]


def by_harness(
    folder: Path, groups: list[list], limit: int, longest: int, minutes: float
) -> tuple[float, int, list[float]]:
    "The same of the harness, for as many groups of requests as its minutes allow."
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    logging.disable(logging.WARNING)
    harness = HFLM(
        pretrained=model,
        tokenizer=transformers.AutoTokenizer.from_pretrained(folder),
        batch_size=max(1, limit // longest),
    )
    seconds, found = 0.0, []
    with Counted(model) as counted:
        for group in groups:
            if seconds > 60 * minutes:
                break
            start = time.perf_counter()
            found += [
                x
                for x, _ in harness.loglikelihood(
                    [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(group)], disable_tqdm=True
                )
            ]
            seconds += time.perf_counter() - start
    return seconds, counted.tokens, found


def compare(folder: Path, variants, pool, adaptation: str, limit: int, minutes: float, rounds: int) -> None:
    "Both sides on one workload, in turn; of several rounds the best counts."
    prompts = make_prompts(variants, shots=pool, k=25)
    pairs = [
        [(context, c) for c in continuations]
        for context, continuations in (context_and_continuations(p, adaptation) for p in prompts)
    ]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts, starts = zip(*(split_tokens(tokenizer, *pair) for asked in pairs for pair in asked))
    asked, least, longest = (
        sum(len(t) - 1 for t in texts),
        _sort_texts(texts, starts).least_tokens,
        max(map(len, texts)) - 1,
    )
    report(
        f"family {variants[0].family}, {adaptation}",
        prompts=len(prompts),
        texts=len(texts),
        longest_text=longest,
        tokens_asked=asked,
        least_tokens=least,
        tokens_at_a_time=limit,
    )
    questions, ours_all, theirs_all, peer = {}, [], [], find_spec("lm_eval")
    for p, requests in zip(prompts, pairs):
        questions.setdefault(p.variant.question_id, []).extend(requests)
    for _ in range(rounds):
        ours_all.append(ours(folder, variants, pool, adaptation, limit))
        if peer:
            theirs_all.append(by_harness(folder, list(questions.values()), limit, longest, minutes))
    seconds, computed, mine = min(ours_all)
    report(
        "  ours",
        seconds=seconds,
        tokens_computed=computed,
        over_least=computed / least,
        tokens_per_second=computed / seconds,
    )
    if not peer:
        return print("  harness: not measured, lm-eval is not installed")
    slow, theirs, found = min(theirs_all, key=lambda run: run[0] / len(run[2]))
    difference = float(np.abs(np.subtract(mine[: len(found)], found)).max())
    assert difference < 1e-4, f"the two differ by {difference}"
    done = sum(len(t) - 1 for t in texts[: len(found)])
    report(
        "  harness",
        seconds=slow,
        tokens_computed=theirs,
        requests=len(found),
        largest_difference=difference,
        tokens_per_second=theirs / slow,
    )
    if done < asked:
        slow, theirs = slow * asked / done, round(theirs * asked / done)
        report(
            f"  harness, SCALED from {len(found):,} of {len(texts):,} requests "
            f"({done / asked:.0%} of the tokens) to all",
            seconds=slow,
            tokens_computed=theirs,
        )
    report(
        "  ratios",
        harness_over_ours_time=slow / seconds,
        harness_over_ours_tokens=theirs / computed,
        ours_over_least_tokens=computed / least,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument(
        "--limit", type=int, default=512, help="most tokens at a time, for both; a single text may be longer"
    )
    parser.add_argument("--only", choices=WORKLOADS, help="one of the two workloads")
    parser.add_argument(
        "--rounds", type=int, default=1, help="each side is measured so often, in turn; the best counts"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=10,
        help="how long the harness may take for each workload before its time is scaled",
    )
    options = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    questions, pool = questions_and_pool(options.questions)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train_tokenizer(folder, [p.text for p in make_prompts(make_variants(questions + pool)[::20])])
        report("model", parameters=make_llama(folder, SHAPE), threads=torch.get_num_threads())
        for adaptation in [options.only] if options.only else WORKLOADS:
            compare(
                folder,
                make_variants(questions, family=WORKLOADS[adaptation]),
                pool,
                adaptation,
                options.limit,
                options.minutes,
                options.rounds,
            )
