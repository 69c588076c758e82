"Hidden states against plain transformers: whatever the batch, whatever the architecture."

import numpy as np
import pytest

from tiny_models import KINDS, byte_level, own_model, save, torch

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError, Question
from cora_nb.metrics.embeddings import format_prompts
from cora_nb.prompts.templates import Prompt
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.hidden import hidden_states
from cora_nb.variants.families import make_variants

QUESTIONS = [
    *math_benchmark(n=4),
    Question(
        "long",
        "Which of these words, said so often that it bores, is right? " * 2,
        ("this", "that one over there"),
        answer=1,
    ),
]
PROMPTS = format_prompts(QUESTIONS)
OUT = {
    "llama": "model.layers.{}.self_attn.o_proj",
    "gpt2": "transformer.h.{}.attn.c_proj",
    "gpt_neox": "gpt_neox.layers.{}.attention.dense",
    "opt": "model.decoder.layers.{}.self_attn.out_proj",
    "falcon": "transformer.h.{}.self_attention.dense",
    "bloom": "transformer.h.{}.self_attention.dense",
    "mpt": "transformer.blocks.{}.attn.out_proj",
    "mistral": "model.layers.{}.self_attn.o_proj",
    "gemma3": "model.layers.{}.self_attn.o_proj",
    "gpt_neo": "transformer.h.{}.attn.attention.out_proj",
    "phi3": "model.layers.{}.self_attn.o_proj",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    "Each architecture, saved once."
    root, tokenizer = tmp_path_factory.mktemp("models"), byte_level(bos=True)
    for kind in KINDS:
        save(root / kind, kind, tokenizer)
    return root


def read(folder, kind, prompts=PROMPTS, heads=None, **options):
    return hidden_states(
        CausalRespondent(folder / kind, **options),
        prompts,
        heads=kind in OUT if heads is None else heads,
        progress=False,
    )


@torch.no_grad()
def plainly(local, prompt, kind):
    "Hidden states and what the output projections are given: one prompt, no batch, no mask."
    ids, given, hooks = torch.tensor([local.encode(local.sent(prompt))]), {}, []
    for i in range(2 * (kind in OUT)):
        module = local.model.get_submodule(OUT[kind].format(i))
        hooks.append(
            module.register_forward_hook(lambda m, args, out, i=i: given.update({i: args[0][0, -1].numpy().copy()}))
        )
    layers = local.model(ids, output_hidden_states=True).hidden_states
    for hook in hooks:
        hook.remove()
    return torch.stack(layers)[:, 0, -1].numpy(), np.array([given[i] for i in sorted(given)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_states_are_those_of_transformers_whatever_the_batch(folder, kind):
    local, alone = CausalRespondent(folder / kind), read(folder, kind, batch_tokens=1)
    many = read(folder, kind)
    assert many.layers.shape == (10, 3, 32) and many.layers.dtype == np.float32 and many.formats == ("mcq", "lfgq") * 5
    assert many.question_ids == tuple(q.id for q in QUESTIONS for _ in range(2))
    for i, prompt in enumerate(PROMPTS):
        layers, given = plainly(local, prompt, kind)
        if kind == "mamba":
            layers = np.stack(
                [
                    local.model.get_input_embeddings().weight[local.encode(prompt.text)[-1]].detach(),
                    layers[0],
                    layers[2],
                ]
            )  # transformers leaves out the embedding
        np.testing.assert_allclose(many.layers[i], layers, atol=2e-4, rtol=1e-3)
        if kind in OUT:
            np.testing.assert_allclose(many.heads[i].reshape(2, -1), given, atol=2e-4, rtol=1e-3)
    np.testing.assert_allclose(alone.layers, many.layers, atol=2e-4, rtol=1e-3)


def test_a_model_without_heads(folder):
    with pytest.raises(
        CoraError, match=r"layer 1 of a MambaForCausalLM has no attention heads that can be read; ask for layers only"
    ):
        read(folder, "mamba", heads=True)


def test_the_hooks_leave_a_respondent_as_it_was(folder):
    "The same loaded model is used, and it replies as before."
    local = CausalRespondent(folder / "llama")
    model = local.model
    a, b = hidden_states(local, PROMPTS, progress=False), hidden_states(local, PROMPTS[::-1], progress=False)
    assert (
        not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules())
        and local.model is model
        and "generate" not in vars(local)
        and local.max_new_tokens is None
    )
    np.testing.assert_allclose(a.layers, b.layers[::-1], atol=1e-4)


@pytest.mark.slow
def test_memory_that_runs_out_halves_the_batch(folder):
    local, sizes = CausalRespondent(folder / "llama"), []
    room, expected = [3], read(folder, "llama").layers

    def small(module, args, named):
        sizes.append(len(named["input_ids"]))
        if sizes[-1] > room[0]:
            raise torch.OutOfMemoryError("CUDA out of memory")

    own_model(local).register_forward_pre_hook(small, with_kwargs=True)
    np.testing.assert_allclose(hidden_states(local, PROMPTS, progress=False).layers, expected, atol=1e-4)
    assert sizes[0] == 10 and max(sizes[2:]) <= 3
    room[0] = 0
    with pytest.raises(CoraError, match="question 'long': memory ran out"):
        hidden_states(local, PROMPTS, progress=False)


def test_no_numbers_are_refused_by_name(folder):
    local = CausalRespondent(folder / "llama")
    with torch.no_grad():
        own_model(local).model.layers[1].mlp.down_proj.weight.fill_(float("nan"))
    with pytest.raises(CoraError, match=r"output for question '.+' is not a number"):
        hidden_states(local, PROMPTS, progress=False)


def test_faults_of_models_and_prompts(folder):
    with pytest.raises(CoraError, match="there is no such folder"):
        hidden_states(folder / "nowhere", PROMPTS)
    with pytest.raises(CoraError, match="no prompts to read"):
        hidden_states(folder / "llama", [])
    long = [Prompt(v) for v in make_variants([Question("endless", "word " * 900, ("a", "b"), 0)])]
    with pytest.raises(CoraError, match="question 'endless': the prompt is too long"):
        hidden_states(folder / "llama", long, progress=False)
    states = read(folder, "llama")
    for number, what in ((3, "from 0 to 2"), (-1, "0 or more"), (True, "whole number"), ("1", "whole number")):
        with pytest.raises(CoraError, match=what):
            states.layer(number)
