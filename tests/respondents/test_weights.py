"""One set of weights in memory at a time, and the last layer in float32."""

import gc
import json
import shutil
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace

import pytest
from helpers import WITH_TORCH
from tiny_models import VARIANTS, byte_level, make_model, save, torch, transformers

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.likelihood import LikelihoodRespondent
from cora_nb.respondents.local import LocalModel, Weights, _shared_weights, _widen_head
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

SOME = VARIANTS[:6]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    return {kind: save(root / kind, kind) for kind in ("llama", "gpt2")}


def ask(who):
    return evaluate(who, SOME, Asking("bare"), progress=False)


# one at a time


@pytest.mark.slow
def test_equal_weights_are_shared_and_others_are_given_back(folders):
    a, other = LikelihoodRespondent(folders["llama"]), CausalRespondent(folders["gpt2"])
    same = CausalRespondent(folders["llama"], name="the same weights")
    ask(a)
    assert a.weights is same.weights and a.weights.model is not None and other.weights.model is None
    loaded = a.model
    ask(same)
    assert same.model is loaded
    del loaded
    ask(other)
    assert a.weights.model is None and other.weights.model is not None
    before = [r.scores for r in ask(a).table.itertuples()]
    ask(other)
    assert [r.scores for r in ask(a).table.itertuples()] == before  # loaded again, the same


@pytest.mark.parametrize("other", [dict(dtype="bfloat16"), dict(dtype="float64"), dict(device="meta")])
def test_another_format_or_device_is_another_model(folders, other):
    who = LocalModel(folders["llama"], device="cpu")
    assert replace(who).weights is who.weights and replace(who, **other).weights is not who.weights


@pytest.mark.slow
def test_changed_files_are_another_model(folders, tmp_path):
    folder = shutil.copytree(folders["llama"], tmp_path / "copy")
    before = LocalModel(folder)
    assert before.model is LocalModel(folder).model
    make_model("llama", len(byte_level()), seed=5).save_pretrained(folder)
    assert LocalModel(folder).model is not before.model


def test_altered_weights_are_not_given_to_the_next_respondent(folders):
    one = LikelihoodRespondent(folders["llama"])
    right = [r.scores for r in ask(one).table.itertuples()]
    assert not one.weights.altered() and replace(one).weights is one.weights
    with torch.no_grad():
        one.model.lm_head.weight[5] = float("nan")
    two = replace(one)
    assert one.weights.altered() and two.weights is not one.weights and two.model is not one.model
    assert [r.scores for r in ask(two).table.itertuples()] == right
    two.model.forward = lambda **inputs: None
    assert two.weights.altered() and replace(one).weights not in (one.weights, two.weights)


@pytest.mark.slow
def test_weights_go_with_the_last_respondent(folders):
    who = LocalModel(folders["llama"])
    key = (str(who.folder.resolve()), who.fingerprint, *who.place)
    assert who.model is not None and _shared_weights(*key) is who.weights
    del who
    gc.collect()
    assert _shared_weights(*key).model is None


@pytest.mark.slow
def test_what_is_in_use_stays():
    a, b, loads = _shared_weights("a"), _shared_weights("b"), []

    def load(what):
        return lambda: loads.append(what) or what

    with a.in_use(), b.in_use():
        for _ in range(3):
            assert (a.get(load("a")), b.get(load("b"))) == ("a", "b")
    assert loads == ["a", "b"]
    c = _shared_weights("c")
    assert c.get(load("c")) == "c" and a.model is None and b.model is None


def test_two_threads_load_once():
    weights, loads, start = Weights(), [], threading.Barrier(8)

    def ask():
        start.wait()
        weights.get(lambda: loads.append(1) or object())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert loads == [1]


@pytest.mark.slow
def test_a_model_that_does_not_load_leaves_nothing_behind(folders, tmp_path):
    folder = shutil.copytree(folders["llama"], tmp_path / "broken")
    (folder / "model.safetensors").write_bytes(b"nothing")
    broken, good = LocalModel(folder), LocalModel(folders["gpt2"])
    for _ in range(2):
        with pytest.raises(CoraError, match="the model cannot be loaded"):
            broken.model
        assert good.model is not None


@pytest.mark.slow
def test_a_run_of_three_holds_one_model(tmp_path):
    """A command with two models, the second asked in two ways: how often weights are loaded, and how many models are
    alive whenever one has been loaded. What a process holds in bytes depends on the machine, this does not."""
    for seed in (0, 1):
        torch.manual_seed(seed)
        config = transformers.LlamaConfig(
            vocab_size=len(byte_level()),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
        )
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / f"m{seed}")
        byte_level().save_pretrained(tmp_path / f"m{seed}")
    code = textwrap.dedent("""
        import sys, weakref
        import transformers
        from cora_nb.cli.run import cora_run

        alive, loads, most = weakref.WeakSet(), 0, 0
        load = transformers.AutoModelForCausalLM.from_pretrained

        def counting(*words, **named):
            global loads, most
            loaded = load(*words, **named)
            alive.add(loaded[0] if isinstance(loaded, tuple) else loaded)
            loads, most = loads + 1, max(most, len(alive))
            return loaded

        transformers.AutoModelForCausalLM.from_pretrained = counting
        cora_run(sys.argv[1:], limit=1, family="cyclic", template="bare", store="none", out="runs")
        print(loads, most)
    """)
    who = ("causal:m0,max_new_tokens=1", "causal:m1,max_new_tokens=1", "likelihood:m1,name=again")
    words = [sys.executable, "-c", code, *who]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=WITH_TORCH)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-2:] == ["2", "1"]  # both models, one after the other, and m1 once for both ways


# the last layer

PECULIAR = {  # what happens to the logits after the last layer, or in it
    "Llama": {},
    "GPT2": dict(n_embd=32, n_layer=2, n_head=2),
    "Gemma2": dict(head_dim=16, final_logit_softcapping=3.0),  # a soft cap
    "Gemma3Text": dict(head_dim=16),
    "Cohere": dict(logit_scale=0.25),  # a factor
    "Granite": dict(logits_scaling=8.0),  # a divisor
    "GraniteMoe": dict(logits_scaling=4.0),
    "Qwen2": dict(tie_word_embeddings=True),
    "Qwen3": dict(head_dim=16),
    "Phi": {},  # a bias
    "GPTJ": dict(n_embd=32, n_layer=2, n_head=2, rotary_dim=8),  # a bias
    "Phi3": {},
    "Olmo2": {},
    "StableLm": {},
    "Falcon": {},
    "OPT": {},
    "Bloom": {},
    "Mamba": {},
}
SMALL = dict(
    vocab_size=61,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    bos_token_id=None,
    eos_token_id=1,
    pad_token_id=0,
)
IDS = torch.tensor([[5, 9, 2, 33, 60, 7]])


def peculiar(kind, dtype):
    "A model with large logits, and a bias where it has one."
    torch.manual_seed(1)
    config = getattr(transformers, f"{kind}Config")(**{**SMALL, **PECULIAR[kind]})
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    head = model.get_output_embeddings()
    with torch.no_grad():
        head.weight.mul_(20)
        if head.bias is not None:
            head.bias.uniform_(-2, 2)
    return model.to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", PECULIAR)
def test_logits_are_those_of_the_models_own_last_steps_in_float32(kind, dtype, monkeypatch):
    monkeypatch.setattr("cora_nb.respondents.local._BLOCK", 32 * 7)  # seven rows at a time, and some left over
    model, heard = peculiar(kind, dtype), []
    model.get_output_embeddings().register_forward_pre_hook(lambda layer, given: heard.append(given[0]))
    with torch.no_grad():
        rounded = model(IDS).logits
        assert _widen_head(model)
        logits = model(IDS).logits
    wide = peculiar(kind, dtype).float()  # the same weights
    wide.get_output_embeddings().register_forward_pre_hook(lambda layer, given: (heard[1].float(),))
    with torch.no_grad():
        expected = wide(IDS).logits
    assert logits.dtype == torch.float32 and logits.shape == (1, 6, 61)
    torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-5)
    assert (rounded.float() - expected).abs().max() > 1e-4  # there was something to mend
    if "final_logit_softcapping" in PECULIAR[kind]:
        assert logits.abs().max() <= 3.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_other_formats_are_left_alone(dtype):
    model = peculiar("Llama", dtype)
    assert not _widen_head(model) and "forward" not in vars(model.get_output_embeddings())


def test_a_layer_with_a_way_of_its_own_is_left_alone():
    class Own(torch.nn.Linear):
        def forward(self, states):
            return super().forward(states)

    model = peculiar("Llama", "bfloat16")
    model.set_output_embeddings(Own(32, 61, dtype=torch.bfloat16))
    assert not _widen_head(model)


@pytest.mark.slow
@pytest.mark.parametrize("adaptation", ["separate", "joint-label"])
def test_no_ties_in_bfloat16(adaptation):
    "24 of 960 with the last layer as it was, under `separate`; 6 and 3 under `joint-label`."
    variants = make_variants(math_benchmark(n=40), "permutations")
    for name in ("steady", "skewed"):
        who = LikelihoodRespondent(f"organism/{name}", device="cpu", dtype="bfloat16", adaptation=adaptation)
        scores = evaluate(who, variants, Asking("bare"), progress=False).table["scores"]
        assert sum(len(set(s)) < len(s) for s in scores) == 0


def test_letters_in_bfloat16_are_not_rounded(folders):
    who = CausalRespondent(folders["llama"], device="cpu", dtype="bfloat16", max_new_tokens=1)
    scores = [x for s in ask(who).table["scores"].dropna() for x in s]
    assert scores and any(x != float(torch.tensor(x).bfloat16()) for x in scores)


def test_replies_of_before_are_not_found_again(folders):
    who = LikelihoodRespondent(folders["llama"], device="cpu")
    assert "logits" not in who.identity()  # float32 is what it was, and so is its address
    for dtype in ("bfloat16", "float16"):
        assert replace(who, dtype=dtype).identity()["logits"] == "float32"
        assert json.dumps(replace(who, dtype=dtype).describe())
