"A configuration that points to the hub fetches no code."

import json
import os
import subprocess
import sys
import warnings

import pytest
from helpers import WITH_TORCH
from tiny_models import byte_level, save, torch, transformers

from cora_nb.core import CoraError
from cora_nb.respondents.checkpoints import ModelWarning, without_hub_code
from cora_nb.respondents.local import LocalModel

pytestmark = pytest.mark.guard

KERNEL = "kernels-community/flash-attn2"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    "A model, and a `transformers` that fails where it would fetch code."

    def fetch(*args, **named):
        raise AssertionError(f"code would be fetched: {args}")

    for name in ("get_kernel", "load_and_register_attn_kernel"):
        monkeypatch.setattr(f"transformers.integrations.hub_kernels.{name}", fetch, raising=False)
    return save(tmp_path / "model")


def change(folder, **config):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))


def logits(folder):
    with torch.no_grad():
        return LocalModel(folder, device="cpu").model(torch.arange(7)[None]).logits


@pytest.mark.slow
@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
@pytest.mark.parametrize("value", [KERNEL, "flash_attention_2", "flash_attention_3", "paged|x/y", "../evil.py"])
def test_attention_from_elsewhere_is_ignored_in_one_line(folder, key, value):
    expected = logits(folder)
    change(folder, **{key: value})
    with pytest.warns(ModelWarning, match="may fetch code and is ignored") as said:
        found = logits(folder)
    assert torch.equal(found, expected)
    lines = [str(w.message) for w in said if w.category is ModelWarning]
    assert len(lines) == 1 and "\n" not in lines[0] and value in lines[0] and str(folder) in lines[0]


@pytest.mark.parametrize("value", ["eager", "sdpa"])
def test_attention_of_torch_is_kept_without_a_word(folder, value):
    change(folder, attn_implementation=value)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        assert LocalModel(folder, device="cpu").model.config._attn_implementation == value


@pytest.mark.parametrize("key", ["experts_implementation", "_experts_implementation"])
def test_experts_from_elsewhere_are_ignored(folder, key):
    change(folder, **{key: "sonicmoe"})
    with pytest.warns(ModelWarning, match="experts_implementation 'sonicmoe' may fetch code"):
        logits(folder)


def test_configurations_inside_others():
    config = transformers.Gemma3Config(text_config={"vocab_size": 50, "_attn_implementation": KERNEL})
    config.attn_implementation = config._attn_implementation = {"": "x/y", "text_config": KERNEL}
    with pytest.warns(ModelWarning) as said:
        without_hub_code(config, "m")
    assert {c._attn_implementation for c in (config, config.text_config, config.vision_config)} == {None}
    assert len(said) >= 2


@pytest.mark.parametrize("method", ["eetq", "fbgemm_fp8", "metal", "nvfp4"])
def test_weights_that_need_code_are_refused(folder, method):
    change(folder, quantization_config={"quant_method": method})
    with pytest.raises(CoraError, match=f"quantised as {method}, which needs code from the hub"):
        logits(folder)


@pytest.mark.parametrize("method", ["mxfp4", "fp8", "mxfp8"])
def test_weights_that_can_be_widened_are_widened(method):
    config = transformers.LlamaConfig(quantization_config={"quant_method": method})
    assert without_hub_code(config, "m").quantization_config["dequantize"] is True


def test_named_code_is_never_run(folder):
    expected = logits(folder)
    (folder / "evil.py").write_text("raise SystemExit('run')")
    change(folder, auto_map={"AutoConfig": "evil.C", "AutoModelForCausalLM": "someone/repo--evil.M"})
    assert torch.equal(logits(folder), expected)  # an architecture that transformers knows
    change(folder, model_type="evil", architectures=["Evil"])
    with pytest.raises(CoraError, match="the model cannot be loaded") as e:
        logits(folder)
    assert "\n" not in str(e.value)


@pytest.mark.slow
def test_the_command_says_it_in_one_line(folder, tmp_path):
    change(folder, attn_implementation=KERNEL)
    code = (
        "from cora_nb.cli.run import cora_run; import sys; "
        "cora_run(sys.argv[1:], limit=1, store='none', family='cyclic')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, f"causal:{folder}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WITH_TORCH,
    )
    lines = [line for line in done.stderr.splitlines() if KERNEL in line]
    assert done.returncode == 0 and len(lines) == 1 and f"cora_run: {folder}: its" in lines[0]
    assert ".py:" not in lines[0]


@pytest.mark.slow
def test_kernels_are_switched_off_before_transformers_is_imported():
    code = (
        "import os; os.environ.pop('USE_HUB_KERNELS', None); from cora_nb.respondents.local import libraries; "
        "libraries(); from transformers.integrations import hub_kernels; print(hub_kernels._kernels_enabled)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=WITH_TORCH, env=os.environ
    )
    assert done.stdout.split() == ["False"]


def test_a_tokenizer_that_names_code(folder):
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": {"AutoTokenizer": ["evil.T", None]}}))
    assert len(LocalModel(folder).tokenizer) == len(byte_level())
