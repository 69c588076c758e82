"Pickled weights become safetensors, and nothing in them is run."

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time

import pytest
from tiny_models import KINDS, byte_level, save, torch, transformers

from cora_nb.core import CoraError
from cora_nb.respondents.local import LocalModel, convert_weights
from helpers import slow_after


def pickled(folder, n_files=1, kind="llama", **options):
    "A model with pickled weights in so many files."
    model = transformers.AutoModelForCausalLM.from_config(KINDS[kind](len(byte_level()))).eval()
    model.save_pretrained(folder)
    (folder / "model.safetensors").unlink()
    byte_level().save_pretrained(folder)
    tensors = list(model.state_dict().items())
    if n_files == 1:
        torch.save(dict(tensors), folder / "pytorch_model.bin", **options)
        return model
    names = [f"pytorch_model-{i + 1:05}-of-{n_files:05}.bin" for i in range(n_files)]
    for i, name in enumerate(names):
        torch.save(dict(tensors[i::n_files]), folder / name, **options)
    places = {tensor: names[k % n_files] for k, (tensor, _) in enumerate(tensors)}
    index = {"metadata": {"total_size": 0}, "weight_map": places}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    return model


@pytest.fixture
def old(tmp_path):
    (folder := tmp_path / "old").mkdir()
    return folder


def refused(old, why, target=None):
    target = target or old.parent / "new"
    before = sorted(old.parent.rglob("*"))
    with pytest.raises(CoraError, match=why) as e:
        convert_weights(old, target, progress=False)
    assert "\n" not in str(e.value) and len(str(e.value)) < 600
    assert sorted(old.parent.rglob("*")) == before  # nothing is left behind


@pytest.mark.parametrize("kind", slow_after(1, ["llama", "gpt2", "opt", "bloom", "falcon", "mamba"]))
@pytest.mark.parametrize("n_files", [1, 3])
def test_the_copy_says_the_same(old, kind, n_files):
    model, ids = pickled(old, n_files, kind), torch.arange(9)[None]
    new = convert_weights(old, old.parent / "new", progress=False)
    copy = LocalModel(new, device="cpu")
    with torch.no_grad():
        assert torch.equal(copy.model(ids).logits, model(ids).logits)
    assert len(copy.tokenizer) == len(byte_level())
    assert len(list(new.glob("*.safetensors"))) == n_files
    assert (new / "model.safetensors.index.json").exists() == (n_files > 1)


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
def test_old_and_new_pickles(old, options):
    model = pickled(old, **options)
    new = LocalModel(convert_weights(old, old.parent / "new"), device="cpu").model
    assert all(torch.equal(a, b) for a, b in zip(new.state_dict().values(), model.state_dict().values()))


def test_tensors_that_share_memory(old):
    model = pickled(old)
    tensors = model.state_dict()
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]  # two names for one tensor
    both = torch.randn(2, *tensors["model.layers.0.mlp.up_proj.weight"].shape)
    for i in (0, 1):  # two parts of one
        tensors[f"model.layers.{i}.mlp.up_proj.weight"] = both[i]
    tensors["model.layers.0.mlp.down_proj.weight"] = tensors["model.layers.0.mlp.down_proj.weight"].t().clone().t()
    torch.save(dict(tensors), old / "pytorch_model.bin")
    found = LocalModel(convert_weights(old, old.parent / "new"), device="cpu").model.state_dict()
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


def test_nothing_else_is_copied(old):
    pickled(old)
    for name in ("evil.py", "README.md", "optimizer.pt", "training_args.bin", "flax_model.msgpack"):
        (old / name).write_text("x")
    (old / "sub").mkdir()
    (old / "sub" / "config.json").write_text("{}")
    (old / "chat_template.jinja").write_text("{{ messages }}")
    new = convert_weights(old, old.parent / "new")
    assert {f.name for f in new.iterdir()} - {"special_tokens_map.json"} == {  # a file of transformers 4
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "model.safetensors",
    }


def test_code_in_a_pickle_is_not_run(old, tmp_path):
    pickled(old)
    ran = tmp_path / "ran"

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(ran),)

    for write in (
        lambda f: torch.save({"w": Evil()}, f),
        lambda f: torch.save({"w": Evil()}, f, _use_new_zipfile_serialization=False),
        lambda f: f.write_bytes(pickle.dumps({"w": Evil()})),
    ):
        write(old / "pytorch_model.bin")
        refused(old, "cannot be read safely")
    assert not ran.exists()


@pytest.mark.parametrize(
    "content,why",
    [
        ([torch.ones(2)], "must contain tensors by name, got a list"),
        ({}, "must contain tensors by name"),
        ({"state_dict": {"w": torch.ones(2)}}, "'state_dict' is not a tensor"),
        ({"w": torch.ones(2), "epoch": 3}, "'epoch' is not a tensor"),
        ({0: torch.ones(2)}, "'0' is not a tensor|0 is not a tensor"),
        ({"w": torch.eye(3).to_sparse()}, "'w' cannot be written|cannot be read safely"),
    ],
)
def test_what_is_no_table_of_tensors(old, content, why):
    pickled(old)
    torch.save(content, old / "pytorch_model.bin")
    refused(old, why)


@pytest.mark.parametrize("n", [0, 5, 1000])
def test_a_damaged_file(old, n):
    pickled(old)
    path = old / "pytorch_model.bin"
    path.write_bytes(path.read_bytes()[:n])
    refused(old, "pytorch_model.bin: cannot be read safely")


@pytest.mark.parametrize(
    "index,why",
    [
        ("nonsense", "this is not an index of weights"),
        ("[]", "this is not an index of weights"),
        ('{"weight_map": {}}', "must name files of its own folder"),
        ('{"weight_map": {"w": 3}}', "this is not an index of weights"),
        ('{"weight_map": {"w": "../../secret.bin"}}', "must name files of its own folder, got '../../secret.bin'"),
        ('{"weight_map": {"w": "/etc/passwd"}}', "must name files of its own folder, got '/etc/passwd'"),
        ('{"weight_map": {"w": "a.bin", "v": "b.bin"}}', "a.bin is missing, 2 of 2 files"),
    ],
)
def test_a_bad_index(old, index, why):
    pickled(old, 2)
    (old / "pytorch_model.bin.index.json").write_text(index)
    refused(old, why)


def test_a_tensor_in_two_files(old):
    pickled(old, 2)
    first, second = sorted(old.glob("*.bin"))
    shutil.copy(first, second)
    refused(old, "is in another file as well")


def test_folders_that_are_not_right(old, tmp_path):
    refused(old, "not a model's folder")
    save(tmp_path / "safe")
    refused(tmp_path / "safe", "there is no pytorch_model.bin to convert; its weights are safetensors already")
    pickled(old)
    refused(old, "it exists already", tmp_path / "safe")
    refused(old, "it exists already", old)
    refused(old, "there is no folder", tmp_path / "a" / "b")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    refused(old, "it exists already", tmp_path / "link")


def test_the_error_names_the_command(old):
    for n_files, name in ((1, "pytorch_model.bin"), (2, "pytorch_model.bin.index.json")):
        shutil.rmtree(old)
        old.mkdir()
        pickled(old, n_files)
        with pytest.raises(CoraError) as e:
            LocalModel(old, device="cpu").model
        assert f"({name})" in str(e.value) and f"cora convert {old} old-safetensors" in str(e.value)


def command(*args, cwd):
    "The command as its installed script runs it."
    script = cwd / "cora_convert.py"
    script.write_text("from cora_nb.cli.commands import cora_main\n\nif __name__ == '__main__':\n    cora_main()\n")
    return subprocess.Popen(
        [sys.executable, script, "convert", *map(str, args)], cwd=cwd, stdout=-1, stderr=-1, text=True
    )


def test_the_command(old):
    pickled(old, 2)
    done = command("old", "new", cwd=old.parent)
    out, err = done.communicate(timeout=120)
    assert done.returncode == 0 and out == "new: 2 files of weights, as safetensors; use it as causal:new\n"
    assert LocalModel(old.parent / "new", device="cpu").model is not None
    done = command("old", "new", cwd=old.parent)
    assert done.communicate(timeout=120)[1] == "cora convert: new: it exists already and is not overwritten\n"
    assert done.returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_command_leaves_no_half_folder(old, how):
    pickled(old)
    tensors = torch.load(old / "pytorch_model.bin", weights_only=True)
    torch.save(tensors | {f"more.{i}": torch.ones(2**20) for i in range(60)}, old / "pytorch_model.bin")  # 250 MB
    for _ in range(3):
        running, new = command("old", "new", cwd=old.parent), old.parent / "new"
        end = time.monotonic() + 60
        while not list(old.parent.glob(".cora_nb_*/*")) and not new.exists() and time.monotonic() < end:
            time.sleep(0.005)
        running.send_signal(how)
        _, err = running.communicate(timeout=60)
        assert not new.exists() or (new / "model.safetensors").stat().st_size > 2.4e8
        assert "Traceback" not in err
        if how == signal.SIGINT:
            assert not list(old.parent.glob(".cora_nb_*"))
        for left in [*old.parent.glob(".cora_nb_*"), *([new] if new.exists() else [])]:
            shutil.rmtree(left)
