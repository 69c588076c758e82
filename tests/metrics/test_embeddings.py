"Hidden states against plain transformers, and the probe on data whose truth is known."

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from tiny_models import KINDS, byte_level, save, torch  # noqa: E402

from cora_nb.benchmarks.arithmetic import math_benchmark  # noqa: E402
from cora_nb.core import CoraError, Question  # noqa: E402
from cora_nb.metrics.embeddings import (  # noqa: E402
    States,
    _between,
    _folds,
    _least_squares,
    _logistic,
    format_prompts,
    head_separability,
    hidden_states,
    pair_up,
    plot_layers,
    plot_separability,
    project,
    random_halves,
    separability,
)
from cora_nb.prompts.templates import Prompt  # noqa: E402
from cora_nb.respondents.causal import CausalRespondent  # noqa: E402
from cora_nb.variants.families import make_variants  # noqa: E402

import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

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
    with pytest.raises(CoraError, match="these states have no heads"):
        head_separability(read(folder, "mamba"))


def test_the_hooks_leave_a_respondent_as_it_was(folder):
    "The same loaded model is used, and it replies as before."
    local = CausalRespondent(folder / "llama")
    model = local.model
    a, b = hidden_states(local, PROMPTS, progress=False), hidden_states(local, PROMPTS[::-1], progress=False)
    assert (
        not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules())
        and local.model is model
        and "generate" not in vars(local)
        and local.max_new_tokens == 1
    )
    np.testing.assert_allclose(a.layers, b.layers[::-1], atol=1e-4)


def test_memory_that_runs_out_halves_the_batch(folder):
    local, sizes = CausalRespondent(folder / "llama"), []
    room, expected = [3], read(folder, "llama").layers

    def small(module, args, named):
        sizes.append(len(named["input_ids"]))
        if sizes[-1] > room[0]:
            raise torch.OutOfMemoryError("CUDA out of memory")

    local.model.register_forward_pre_hook(small, with_kwargs=True)
    np.testing.assert_allclose(hidden_states(local, PROMPTS, progress=False).layers, expected, atol=1e-4)
    assert sizes[0] == 10 and max(sizes[2:]) <= 3
    room[0] = 0
    with pytest.raises(CoraError, match="question 'long': memory ran out"):
        hidden_states(local, PROMPTS, progress=False)


def test_no_numbers_are_refused_by_name(folder):
    local = CausalRespondent(folder / "llama")
    with torch.no_grad():
        local.model.model.layers[1].mlp.down_proj.weight.fill_(float("nan"))
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


def test_last_words_and_layer_0():
    "With one last word there is nothing to tell apart in layer 0; with two there is nothing to learn."
    same, own = (
        hidden_states("organism/steady", format_prompts(math_benchmark(n=10), ends=e), progress=False)
        for e in ("same", "own")
    )
    assert separability(same, permutations=19).loc[
        0, ["distinct", "accuracy", "least_squares", "p", "between"]
    ].tolist() == [1, 0.5, 0.5, 1, 0]
    assert separability(own, permutations=19).loc[0, ["distinct", "accuracy", "least_squares"]].tolist() == [2, 1, 1]
    assert separability(own, permutations=19).loc[0, "between"] == pytest.approx(1)


# the probe


def made(n, width, shift=0.0, seed=0, likeness=0.0):
    "States of n questions with one layer; the two prompts of a question are alike, and `shift` lies between them."
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2, width)) + likeness * rng.normal(size=(n, 1, width))
    x[:, 1, 0] += shift
    return States(
        "made",
        x.reshape(2 * n, 1, width).astype("float32"),
        (x.reshape(2 * n, 1, 2, -1) if width % 2 == 0 else x.reshape(2 * n, 1, 1, -1)).astype("float32"),
        tuple(f"q{i}" for i in range(n) for _ in "ab"),
        ("mcq", "lfgq") * n,
    )


def test_what_differs_is_found_and_what_does_not_is_not():
    plain, clear = (
        separability(made(50, 10), permutations=199).loc[0],
        separability(made(50, 10, 5), permutations=199).loc[0],
    )
    assert plain["low"] < 0.5 < plain["high"] and plain["p"] > 0.05
    assert clear["accuracy"] > 0.95 and clear["p"] == 1 / 200 and clear["chance_high"] < 0.7 < clear["least_squares"]
    heads = head_separability(made(50, 10, 5), progress=False)
    assert heads.shape == (1, 2) and heads.loc[1, 0] > 0.95 and heads.loc[1, 1] < 0.7


@pytest.mark.parametrize("likeness", [0, 3])
def test_p_is_uniform_where_nothing_differs(likeness):
    "Also where the two prompts of a question resemble one another."
    p = np.array(
        [
            separability(made(12, 4, seed=s, likeness=likeness), permutations=19, folds=3, seed=s).loc[0, "p"]
            for s in range(120)
        ]
    )
    assert (p <= 0.1).mean() < 0.18 and (p <= 0.5).mean() < 0.6  # ties make it careful, never bold


def test_the_cheap_line_is_ridge_regression():
    from sklearn.linear_model import Ridge

    states = made(30, 8, 1)
    x = states.layer(0)[pair_up(states.formats, states.question_ids)[0]]
    flips = np.where(np.random.default_rng(1).random((30, 4)) < 0.5, -1.0, 1.0)
    for column, found in enumerate(_least_squares(x, flips, 5, 0)):
        y = np.stack([-flips[:, column], flips[:, column]], 1)
        right = [
            np.sign(Ridge(alpha=8).fit(train, y[~new].ravel()).predict(test)) == y[new].ravel()
            for new, test, train in _folds(x, 5, 0)
        ]
        assert found == np.concatenate(right).mean()


def test_folds_keep_questions_together_and_learn_nothing_from_the_rest():
    x = made(23, 6).layer(0).reshape(23, 2, 6)
    parts = [new for new, _, _ in _folds(x, 5, 0)]
    assert (np.sum(parts, 0) == 1).all() and sorted(map(sum, parts)) == [4, 4, 5, 5, 5]
    for new, test, train in _folds(x, 5, 0):
        assert np.allclose(train.mean(0), 0) and np.allclose(train.std(0), 1) and len(test) == 2 * new.sum()
    doubled = np.repeat(
        np.random.default_rng(0).normal(size=(20, 1, 30)), 2, 1
    )  # both prompts of a question are equal: nobody can do better than half
    assert _logistic(doubled, 5, 0).mean() == 0.5


def test_between_is_a_share_of_variance():
    x = made(40, 7, 2).layer(0).reshape(40, 2, 7).astype(float)
    within = ((x - x.mean(0)) ** 2).sum((0, 1)) / ((x - x.mean((0, 1))) ** 2).sum((0, 1))
    assert _between(x) == pytest.approx((1 - within).mean()) and _between(np.ones((3, 2, 4))) == 0


def test_faults_of_the_probe():
    states = made(6, 4)
    for change, what in (
        ({"folds": 7}, "7 folds need as many questions, got 6"),
        ({"folds": 1}, "folds must be"),
        ({"permutations": 0}, "permutations must be"),
        ({"labels": ["a"] * 12}, "two formats are needed to tell apart, got 1: a"),
        ({"labels": list("abc") * 4}, "got 3: a, b, c"),
        ({"labels": ["a"]}, "each prompt needs a label and a group, got 1 and 12"),
        ({"groups": ["q"] * 12}, "question 'q' is needed once in each format, and is there 6 times"),
        ({"level": 2}, "level must be"),
    ):
        with pytest.raises(CoraError, match=what):
            separability(states, **change)
    with pytest.raises(CoraError, match="halves are made of one format, got 2"):
        random_halves(states)
    with pytest.raises(CoraError, match="states of the formats mcq, lfgq, got 'tfq'"):
        states.only("tfq")
    odd = random_halves(made(7, 4).only("mcq"))
    assert len(odd.formats) == 6 and len(set(odd.question_ids)) == 3 and odd.heads.shape == (6, 1, 2, 2)


def test_the_seed_decides():
    states = made(20, 6, 1)
    pd.testing.assert_frame_equal(separability(states, permutations=50), separability(states, permutations=50))
    assert not separability(states, permutations=50).equals(separability(states, permutations=50, seed=1))
    np.testing.assert_array_equal(project(states), project(states))
    assert not np.array_equal(project(states, perplexity=3), project(states, perplexity=10))


# pictures


def test_few_points_and_equal_points():
    assert np.isfinite(project(made(3, 4))).all() and project(made(1, 4)).shape == (1, 2, 2)
    same = replace(made(5, 4), layers=np.full((10, 2, 4), 0.1, dtype="float32"))
    assert (
        (project(same) == 0).all()
        and (project(same, "pca") == 0).all()
        and project(made(2, 1), "pca").shape == (1, 4, 2)
    )
    copies = replace(s := made(6, 4), layers=np.concatenate([s.layers[:6]] * 2))
    places = project(copies)[0]
    np.testing.assert_array_equal(places[:6], places[6:])
    for change, what in (
        ({"method": "umap"}, "tsne or pca"),
        ({"perplexity": 0}, "above 0"),
        ({"layers": [1]}, "from 0 to 0"),
    ):
        with pytest.raises(CoraError, match=what):
            project(made(3, 4), **change)


def test_figures_have_a_panel_for_each_layer():
    states = replace(s := made(6, 4), layers=np.repeat(s.layers, 8, 1))
    scores = separability(states, permutations=9)
    axes = plot_layers(project(states, "pca"), states.formats, scores)
    assert axes.shape == (2, 6) and [len(a.lines) for a in axes.flat] == [2] * 8 + [0] * 4
    assert axes.flat[7].get_title() == f"layer 7: {scores.loc[7, 'accuracy']:.2f}" and [
        t.get_text() for t in axes.flat[0].figure.legends[0].get_texts()
    ] == ["mcq", "lfgq"]
    given = plt.subplots()[1]
    assert (
        plot_layers(project(states, "pca", layers=[3]), states.formats, layers=[3], axes=given).item() is given
        and given.get_title() == "layer 3"
    )
    with pytest.raises(CoraError, match=r"places must have the shape \(8, 11, 2\), got \(8, 12, 2\)"):
        plot_layers(project(states, "pca"), states.formats[1:])
    assert plot_separability(scores, ax=given) is given
    assert {t.get_text() for t in plot_separability({"a": scores, "b": scores}).get_legend().get_texts()} == {
        "chance",
        "a",
        "b",
    }
    for wrong, what in (({}, "one or more tables"), ({"a": scores[["p"]]}, "one or more tables")):
        with pytest.raises(CoraError, match=what):
            plot_separability(wrong)
    with pytest.raises(CoraError, match="what must be one of accuracy, between, got 'p'"):
        plot_separability(scores, "p")
    plt.close("all")


def test_the_module_is_light():
    heavy = ("torch", "transformers", "sklearn", "matplotlib", "datasets")
    code = f"import sys, cora_nb.metrics.embeddings; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_what_is_missing_is_said(monkeypatch):
    for name in ("sklearn", "sklearn.linear_model", "sklearn.manifold"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(CoraError, match=r"pip install 'cora_nb\[embeddings\]'"):
        separability(made(6, 4))
    with pytest.raises(CoraError, match=r"pip install 'cora_nb\[embeddings\]'"):
        project(made(6, 4))
