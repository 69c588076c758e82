"""Causal and likelihood respondents on a GPU: tokens over the least, memory, and time beside lm-evaluation-harness.

A model of 1 to 8 billion parameters with random weights in bfloat16 (the shape of a Llama or Qwen model of that size,
made on the spot with a tokenizer trained on the texts) is asked CoRA's variants of 200 MMLU questions after 5 solved
ones. What is measured does not depend on what the weights say: time (from variants to responses, so prompts and
tokenizing count), peak memory, and the tokens that went through the model, over the least. The least is the number of
different beginnings among all texts: no method can compute fewer. TFLOP/s count two operations for each parameter and
token.

lm-eval (extra `peers`) gets the same texts on the same device with the same weights in the same number format, as many
at a time as it finds room for (`batch_size="auto"`). It is given questions until its minutes are over; if these are not
all, its time is scaled by the tokens that are left, and the line says so. The sums of the two differ by what bfloat16
rounds.

Without a GPU, a tiny model and a few questions run on the CPU: this shows that the script works, and nothing of a GPU.
"""

import argparse
import logging
import os
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import transformers
from bench_likelihood import Counted
from count_tokens import computed_tokens
from measure import measure, report
from random_llama import make_llama, train_tokenizer

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.benchmarks.load import load_benchmark, load_shots
from cora_nb.core import Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.likelihood import LikelihoodRespondent, context_and_continuations, split_tokens
from cora_nb.respondents.token_trees import _sort_texts
from cora_nb.respondents.local import free_memory
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

HUB = Path(os.environ.get("CORA_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data" / "hub"
SHAPES = {  # hidden, intermediate, layers, heads, heads of keys and values; vocabulary
    "1b": ((2048, 8192, 16, 32, 8), 128_256),  # Llama 3.2 1B
    "3b": ((3072, 8192, 28, 24, 8), 128_256),  # Llama 3.2 3B
    "7b": ((3584, 18944, 28, 28, 4), 152_064),  # Qwen 2.5 7B
    "8b": ((4096, 14336, 32, 32, 8), 128_256),  # Llama 3.1 8B
    "tiny": ((256, 688, 8, 4, 4), 2048),
}
LEARNT = 8192  # most words that the tokenizer learns: the rows of the vocabulary behind them are never used


def questions_and_pool(n: int, data: Path) -> tuple[list, list, str]:
    "MMLU questions of all subjects and its solved ones, or arithmetic where they are not at hand."
    if (data / "cais__mmlu").is_dir():
        every = load_benchmark("mmlu", path=data)
        return every[:: len(every) // n][:n], load_shots("mmlu", path=data), "MMLU"
    solved = [Question(f"shot {i}", q.text, q.choices, q.answer) for i, q in enumerate(math_benchmark(40, seed=1))]
    return math_benchmark(n), solved, "arithmetic (MMLU is not at hand)"


def measured(device: str, model, work) -> tuple[dict, object]:
    "Seconds, tokens through the model, peak memory in MB (of the device where there is one), and the result."
    if device != "cpu":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    with Counted(model) as counted:
        seconds, peak, result = measure(work, repeat=1)
    if device != "cpu":
        peak = torch.cuda.max_memory_allocated() / 1e6
    rate = counted.tokens / seconds
    done = {"computed": counted.tokens, "seconds": seconds, "tokens_per_second": rate, "peak_MB": peak}
    return done | {"TFLOP/s": 2 * rate * sum(p.numel() for p in model.parameters()) / 1e12}, result


def asked_texts(prompts, tokenizer, adaptation: str) -> tuple[list[list[tuple[str, str]]], list, list]:
    "For each prompt the texts that are scored, and the tokens and starts of all."
    pairs = [
        [(context, c) for c in said] for context, said in (context_and_continuations(p, adaptation) for p in prompts)
    ]
    texts, starts = zip(*(split_tokens(tokenizer, *pair) for asked in pairs for pair in asked))
    return pairs, texts, starts


def likelihood(folder: Path, variants, pool, adaptation: str, place: dict) -> dict:
    "The likelihood respondent: what it computed beside the least."
    who = LikelihoodRespondent(folder, adaptation=adaptation, **place)
    prompts = make_prompts(variants, shots=pool, k=5)
    pairs, texts, starts = asked_texts(prompts, who.tokenizer, adaptation)
    least, asked = _sort_texts(texts, starts).least_tokens, sum(len(t) - 1 for t in texts)
    work = lambda: evaluate(who, variants, Asking(shots=pool, k=5), progress=False)  # noqa: E731
    done, responses = measured(place["device"], who.model, work)
    report(
        f"likelihood, {adaptation}",
        prompts=len(prompts),
        texts=len(texts),
        longest_text=max(map(len, texts)),
        tokens_asked=asked,
        least=least,
        asked_over_least=asked / least,
        computed_over_least=done["computed"] / least,
        **done,
    )
    sums = [s for scores in responses.table["scores"] for s in scores]
    return {"pairs": pairs, "texts": texts, "sums": sums, **done}


def causal(folder: Path, variants, pool, place: dict) -> None:
    "The causal respondent with a reply of one token. It keeps only what all prompts of a batch begin with."
    who = CausalRespondent(folder, max_new_tokens=1, chat=False, **place)
    prompts = {p.text: p for p in make_prompts(variants, shots=pool, k=5)}
    texts = [who.encode(who.sent(p)) for p in prompts.values()]
    asked, least = sum(map(len, texts)), computed_tokens(texts)[1]
    work = lambda: evaluate(who, variants, Asking(shots=pool, k=5), progress=False)  # noqa: E731
    done, _ = measured(place["device"], who.model.base_model, work)
    report(
        "causal, one token each",
        prompts=len(texts),
        tokens_asked=asked,
        least=least,
        asked_over_least=asked / least,
        computed_over_least=done["computed"] / least,
        **done,
    )


def harness(folder: Path, ours: dict, place: dict, minutes: float) -> None:
    "The same texts by lm-eval's `hf` backend, and the two beside each other."
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    logging.disable(logging.WARNING)
    device, dtype = place["device"], getattr(torch, place["dtype"])
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    lm = HFLM(pretrained=model, tokenizer=tokenizer, batch_size="auto" if device.startswith("cuda") else 4)
    requests = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(p for q in ours["pairs"] for p in q)]
    portion = max(200, len(requests) // 10)

    def until_time_is_over():
        found, until = [], time.perf_counter() + 60 * minutes
        while len(found) < len(requests) and time.perf_counter() < until:
            part = requests[len(found) : len(found) + portion]
            found += [x for x, _ in lm.loglikelihood(part, disable_tqdm=True)]
        return found

    done, found = measured(device, model, until_time_is_over)
    share = sum(len(t) - 1 for t in ours["texts"][: len(found)]) / sum(len(t) - 1 for t in ours["texts"])
    difference = float(np.abs(np.subtract(ours["sums"][: len(found)], found)).max())
    report("  lm-eval", requests=len(found), of=len(requests), **done, largest_difference=difference)
    report(
        "  lm-eval over ours" + (f", SCALED from {share:.0%} of the tokens" if share < 1 else ""),
        time=done["seconds"] / share / ours["seconds"],
        tokens=done["computed"] / share / ours["computed"],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SHAPES, help="of the model; without it 8b on a GPU and tiny elsewhere")
    parser.add_argument("--questions", type=int, help="without it 200 on a GPU and 5 elsewhere")
    parser.add_argument("--data", type=Path, default=HUB, help="a folder with cais__mmlu, as the hub stores it")
    parser.add_argument("--dtype", default="bfloat16", help="number format of the weights")
    parser.add_argument("--minutes", type=float, default=5, help="how long lm-eval may take for each workload")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # random weights answer nothing that could be read
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    size = options.size or ("8b" if device != "cpu" else "tiny")
    where = torch.cuda.get_device_name() if device != "cpu" else "NO GPU HERE: the numbers say nothing of one"
    questions, pool, source = questions_and_pool(options.questions or (200 if device != "cpu" else 5), options.data)
    place = {"device": device, "dtype": options.dtype}
    with tempfile.TemporaryDirectory() as name:
        folder, variants = Path(name), make_variants(questions)
        learnt = [p.text for p in make_prompts(make_variants(questions + pool[:50])[::20])]
        shape, vocabulary = SHAPES[size]
        train_tokenizer(folder, learnt, min(LEARNT, vocabulary))
        parameters = make_llama(
            folder,
            shape,
            vocabulary,
            getattr(torch, options.dtype),
            device,
            tie_word_embeddings=size in ("1b", "3b", "tiny"),
            initializer_range=0.02,
        )
        report(
            where,
            model=size,
            parameters=parameters,
            dtype=options.dtype,
            questions=len(questions),
            of=source,
            shots=5,
            variants=len(variants),
        )
        free_memory()
        causal(folder, variants, pool, place)
        for adaptation in ("joint-label", "joint-desc"):
            free_memory()
            ours = likelihood(folder, variants, pool, adaptation, place)
            free_memory()
            if find_spec("lm_eval"):
                harness(folder, ours, place, options.minutes)
            else:
                print("  lm-eval: not measured, it is not installed (extra peers)")
