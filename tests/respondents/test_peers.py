"""The same log-likelihoods as lm-evaluation-harness's `hf` backend, on over a thousand pairs for each tokenizer.

Runs where `lm_eval` is installed: `pip install -e '.[dev,peers]'`, then `pytest -m peers`.
"""

from dataclasses import replace
import logging

import numpy as np
import pytest

pytestmark = pytest.mark.peers
pytest.importorskip("lm_eval", reason="lm_eval is not installed: pip install -e '.[peers]'")

from tiny_models import OWN, SHOTS, byte_level, merging, save, sentence_piece, torch, transformers  # noqa: E402

from cora_nb.benchmarks.arithmetic import math_benchmark  # noqa: E402
from cora_nb.prompts.templates import make_prompts  # noqa: E402
from cora_nb.respondents.protocol import ask  # noqa: E402
from cora_nb.respondents.likelihood import (  # noqa: E402
    ADAPTATIONS,
    LikelihoodRespondent,
    context_and_continuations,
    split_tokens,
)
from cora_nb.respondents.local import organism  # noqa: E402
from cora_nb.variants.families import make_variants  # noqa: E402

VARIANTS = make_variants([*math_benchmark(n=14, seed=2), *OWN])


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def by_harness(who, pairs, batch_size=16):
    "What the harness says, with a model and a tokenizer of its own from the same folder."
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    logging.disable(logging.WARNING)
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(who.folder, dtype=torch.float32).eval()
        harness = HFLM(
            pretrained=model, tokenizer=transformers.AutoTokenizer.from_pretrained(who.folder), batch_size=batch_size
        )
        return [
            x
            for x, _ in harness.loglikelihood(
                [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)], disable_tqdm=True
            )
        ]
    finally:
        logging.disable(logging.NOTSET)


def of_prompts(who, prompts):
    "(context, continuation) -> our sum."
    found = {}
    for prompt, reply in zip(prompts, ask(who, prompts)):
        assert reply.error is None
        context, continuations = context_and_continuations(prompt, who.adaptation)
        found |= {(context, c): s for c, s in zip(continuations, reply.scores)}
    return found


def compared(who, found, least):
    assert len(found) >= least
    difference = np.abs(np.subtract(list(found.values()), by_harness(who, list(found))))
    assert difference.max() < 1e-4, f"{(difference >= 1e-4).sum()} of {len(found)} differ, by up to {difference.max()}"


def prompts_for(adaptation):
    "Different contexts: with and without an instruction and solved questions."
    return [
        p
        for template, k in (("bare", 0), ("cora", 0), ("bare", 2), ("cora", 1))
        for p in make_prompts(VARIANTS, template=template, shots=SHOTS, k=k)
    ]


def test_word_level():
    "A model of ours that has been trained, and whose tokenizer knows words."
    found = {}
    for adaptation in ADAPTATIONS:
        who = LikelihoodRespondent(organism("steady"), device="cpu", adaptation=adaptation)
        found |= of_prompts(who, prompts_for(adaptation))
    compared(who, found, 1000)


@pytest.mark.parametrize(
    "kind,make",
    [
        ("llama", byte_level),
        ("llama", lambda: byte_level(bos=True)),
        ("gpt2", byte_level),
        ("gpt2", sentence_piece),
        ("bloom", byte_level),
        ("mistral", byte_level),
    ],
    ids=["llama", "llama, BOS", "gpt2", "gpt2, sentence pieces", "bloom", "mistral"],
)
def test_byte_level(tmp_path, kind, make):
    folder, found = save(tmp_path / "m", kind, make()), {}
    for adaptation in ADAPTATIONS:
        who = LikelihoodRespondent(folder, device="cpu", adaptation=adaptation)
        found |= of_prompts(who, prompts_for(adaptation))
    compared(who, found, 1000)


def test_merging_across_the_seam(tmp_path):
    "In the harness's way. Where nothing is left of a continuation the harness stops, so such pairs are left out."
    folder, found, merged = save(tmp_path / "m", tokenizer=merging()), {}, 0
    for adaptation in ADAPTATIONS:
        who = LikelihoodRespondent(folder, device="cpu", adaptation=adaptation, seam="harness")
        for (context, continuation), score in of_prompts(who, prompts_for(adaptation)).items():
            alone, whole = (len(who.tokenizer(t)["input_ids"]) for t in (context, context + continuation))
            if whole > alone:
                found[context, continuation] = score
                merged += split_tokens(who.tokenizer, context, continuation) != split_tokens(
                    who.tokenizer, context, continuation, "harness"
                )
    assert merged >= 1000
    compared(who, found, 1000)


def test_continuations_alone(tmp_path):
    "The unconditional log-likelihoods of the harness's mutual information."
    for folder in (
        organism("steady"),
        *(
            save(tmp_path / str(i), tokenizer=make())
            for i, make in enumerate((byte_level, lambda: byte_level(bos=True), sentence_piece, merging))
        ),
    ):
        who = LikelihoodRespondent(folder, device="cpu", adaptation="joint-desc", normalization="pmi", seam="harness")
        found, raw = {}, {}
        prompts = make_prompts(VARIANTS, template="bare")
        ask(who, prompts, raw.__setitem__)
        for i, prompt in enumerate(prompts):
            found |= {
                ("", c): s for c, s in zip(context_and_continuations(prompt, "joint-desc")[1], raw[i].meta["alone"])
            }
        compared(who, found, 100)


@pytest.mark.parametrize("window", [64, 40])
def test_texts_that_are_too_long(tmp_path, window):
    "Both keep the same end."
    folder = save(tmp_path / "m", tokenizer=byte_level(bos=True))
    config = transformers.AutoConfig.from_pretrained(folder)
    config.max_position_embeddings = window
    config.save_pretrained(folder)
    who = LikelihoodRespondent(folder, device="cpu", adaptation="joint-desc")
    prompts = make_prompts(VARIANTS, template="bare", shots=SHOTS, k=1)
    found = of_prompts(who, [replace(p, truncate=True) for p in prompts])
    assert who.spent["texts_truncated"] > 100
    compared(who, found, 500)
