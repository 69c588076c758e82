"""The fingerprint of a folder changes with everything that may decide a reply, and with nothing else."""

import json
import os
import shutil
import warnings
from pathlib import Path

import pytest
from helpers import run
from safetensors.torch import load_file, save_file
from tiny_models import torch

from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.likelihood import LikelihoodRespondent
from cora_nb.respondents.local import LocalModel, organism

DECIDES = {
    "tekken.json": '{"vocab": []}',
    "chat_template.json": '{"chat_template": "{{ messages }}"}',
    "chat_template.jinja": "{{ messages[0].content }}",
    "hf_quant_config.json": '{"quantization": {"quant_algo": "FP8"}}',
    "adapter_config.json": '{"peft_type": "LORA"}',
    "adapter_model.safetensors": "x",
    "adapter_model.bin": "x",
    "something.json": "{}",
    "unknown": "x",
    "tokenizer_config.json": "{}",
    "tokenizer.model": "x",
    "tokenizer.model.v3": "x",
    "processor_config.json": "{}",
    "generation_config.json": "{}",
    "special_tokens_map.json": "{}",
    "vocab.txt": "a",
    "qwen.tiktoken": "YQ== 0",
    "model-00002-of-00002.safetensors": "x",
    "model.safetensors.index.json": "{}",
    "additional_chat_templates/x.jinja": "{{ messages }}",
}
HARMLESS = {
    "README.md": "# A model",
    "LICENSE": "All of it",
    ".gitattributes": "*.safetensors filter=lfs",
    "optimizer.pt": "x",
    "trainer_state.json": '{"epoch": 3}',
    "training_args.bin": "x",
    "model-Q4_K_M.gguf": "GGUF",
    "picture.png": "x",
    "picture.jpg": "x",
    "figures/loss.png": "x",
    "replies.sqlite": "x",
    "replies.sqlite-wal": "x",
    "replies.sqlite-shm": "x",
    "responses/math/steady/facts.json": "{}",
    "responses/math/steady/questions.parquet": "x",
    "responses/math/steady/responses.parquet": "x",
}


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(organism("steady"), tmp_path / "model"))


def fingerprint(folder):
    return LocalModel(str(folder)).fingerprint


def put(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


@pytest.mark.parametrize("name", DECIDES)
def test_what_decides(folder, name):
    "Added or changed, changed again without another size, and taken away."
    seen = [fingerprint(folder)]
    before = (folder / name).read_bytes() if (folder / name).exists() else None
    put(folder / name, DECIDES[name] + " ")
    seen.append(fingerprint(folder))
    put(folder / name, DECIDES[name] + "\n")
    seen.append(fingerprint(folder))
    assert len(set(seen)) == 3
    if before is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(before)
    assert fingerprint(folder) == seen[0]  # an empty folder that stays is nothing


@pytest.mark.parametrize("name", HARMLESS)
def test_what_does_not(folder, name):
    before = fingerprint(folder)
    put(folder / name, HARMLESS[name])
    assert fingerprint(folder) == before
    put(folder / name, HARMLESS[name] + " more")
    assert fingerprint(folder) == before


def test_notes_of_a_download_do_not_decide(folder):
    "`hf download --local-dir` keeps the time of each download, so two of the same model differ there."
    before = fingerprint(folder)
    put(folder / ".cache/huggingface/download/config.json.metadata", "0123abcd\netag\n1764300000.5\n")
    put(folder / ".cache/huggingface/.gitignore", "*")
    assert fingerprint(folder) == before


def test_names_count_as_well_as_contents(folder):
    put(folder / "first.json", "{}")
    before = fingerprint(folder)
    (folder / "first.json").rename(folder / "second.json")
    assert fingerprint(folder) != before


def test_the_place_of_a_file_counts(folder):
    "Of the folders inside, transformers reads the one with further templates."
    put(folder / "additional_chat_templates" / "x.jinja", "x")
    before = fingerprint(folder)
    (folder / "additional_chat_templates").rename(folder / "b")
    assert fingerprint(folder) != before


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("name", ["consolidated.safetensors", "checkpoint-5/model.safetensors", "original/w.pth"])
def test_weights_count_wherever_the_folder_says_they_are(folder, name, index):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / "model.safetensors").rename(folder / name)
    if index:
        put(folder / "model.safetensors.index.json", json.dumps({"weight_map": {"a": name}}))
    else:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        put(folder / "config.json", json.dumps(config | {"transformers_weights": name}))
    before = fingerprint(folder)
    with open(folder / name, "ab") as file:
        file.write(b"x")
    assert fingerprint(folder) != before


def test_an_index_may_name_a_file_elsewhere(folder, tmp_path):
    elsewhere = tmp_path / "w.safetensors"
    (folder / "model.safetensors").rename(elsewhere)
    put(folder / "model.safetensors.index.json", json.dumps({"weight_map": {"a": str(elsewhere)}}))
    before = fingerprint(folder)
    with open(elsewhere, "ab") as file:
        file.write(b"x")
    assert fingerprint(folder) != before


@pytest.mark.parametrize("beside", ["model.fp16.safetensors", "draft/model.safetensors", "adapter/model.safetensors"])
def test_pickled_weights_count_where_they_are_the_ones_that_are_read(folder, beside):
    (folder / "model.safetensors").unlink()
    put(folder / "pytorch_model.bin", "x")
    put(folder / beside, "y")
    before = fingerprint(folder)
    put(folder / "pytorch_model.bin", "z")
    assert fingerprint(folder) != before


def test_pickled_weights_beside_safetensors_are_not_read(folder):
    before = fingerprint(folder)
    put(folder / "pytorch_model.bin", "x")
    assert fingerprint(folder) == before


def test_what_a_run_writes_into_the_folder_does_not_count(folder):
    before = fingerprint(folder)
    for name in ("cut/math/m/facts.json", "cut/math/m/responses.parquet", "page.html", "replies.sqlite"):
        put(folder / name, "{}")
    assert fingerprint(folder) == before


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors", "tokenizer_config.json", "config.json"])
def test_nothing_is_loaded(folder, name):
    "Whatever the files hold, and whoever asks."
    before = fingerprint(folder)
    (folder / name).write_bytes(b"{ broken")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {make(str(folder)).fingerprint for make in (LocalModel, CausalRespondent, LikelihoodRespondent)}
    assert len(found) == 1 and before not in found


def test_a_tekken_file_that_nobody_can_read_has_a_fingerprint(folder):
    (folder / "tokenizer.json").unlink()
    put(folder / "tekken.json", "{ broken")
    assert fingerprint(folder)


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "model.safetensors"])
def test_every_byte_of_small_files_counts(folder, name):
    "At the beginning, in the middle, at the end; the size and the times stay."
    file, seen = folder / name, {fingerprint(folder)}
    size, stat = file.stat().st_size, file.stat()
    for at in (0, size // 3, size // 2, size - 1):
        data = bytearray(file.read_bytes())
        data[at] ^= 1
        file.write_bytes(data)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        seen.add(fingerprint(folder))
    assert len(seen) == 5


def test_a_copy_elsewhere_has_the_same(folder, tmp_path):
    "Also through links, as in the cache of the hub."
    copy, links = shutil.copytree(folder, tmp_path / "far" / "other name"), tmp_path / "links"
    links.mkdir()
    for file in folder.iterdir():
        (links / file.name).symlink_to(file)
    assert fingerprint(folder) == fingerprint(copy) == fingerprint(links) == fingerprint(f"{folder}/")


def test_a_link_into_nothing_and_a_loop_are_no_traceback(folder):
    before = fingerprint(folder)
    (folder / "figures").mkdir()
    (folder / "figures" / "round").symlink_to(folder, target_is_directory=True)
    (folder / "lost.png").symlink_to(folder / "nowhere.png")
    assert fingerprint(folder) == before


def test_it_is_the_same_whichever_way_is_asked_and_whatever_was_asked(folder):
    who = CausalRespondent(str(folder), device="cpu")
    before = who.fingerprint
    assert who.model and who.tokenizer
    assert before == who.fingerprint == CausalRespondent(str(folder)).fingerprint == fingerprint(folder)


# what the package writes


@pytest.mark.slow
def test_a_run_inside_the_folder_changes_nothing(folder):
    "With its store beside the weights."
    before = fingerprint(folder)
    words = ("cora_run", "causal:.,name=m", "likelihood:.,name=l", "--limit", "2", "--family", "cyclic")
    for _ in range(2):
        code, said, errors = run(*words, "--store", "replies.sqlite", cwd=folder, XDG_CACHE_HOME=str(folder.parent))
        assert code == 0, errors
        assert fingerprint(folder) == before
    assert (folder / "responses").is_dir() and (folder / "replies.sqlite").exists()
    assert " 0 asked" in said  # the second run found everything


# large files


def large(folder, ones=()):
    "A folder with ten tensors of 30 MiB in one file, all zeros but these."
    folder.mkdir()
    (folder / "config.json").write_text("{}", "utf-8")
    n, head = 30 * 2**20, {}
    for i in range(10):
        head[f"layers.{i}.weight"] = {"dtype": "F32", "shape": [n // 4], "data_offsets": [i * n, (i + 1) * n]}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        start = file.tell()
        file.truncate(start + 10 * n)
        for i in ones:
            file.seek(start + i * n)
            file.write(b"\1" * n)
    return folder


@pytest.mark.slow
def test_one_tensor_changed_in_a_large_file(tmp_path):
    seen = {fingerprint(large(tmp_path / f"m{i}", ones)) for i, ones in enumerate([(), (0,), (4,), (9,), (4, 9)])}
    assert len(seen) == 5
    assert fingerprint(large(tmp_path / "again", (4,))) in seen


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "tokenizer.json"])
def test_a_large_file_that_is_not_what_its_name_says(tmp_path, name):
    "No header, or a damaged one: still a fingerprint, without a traceback, and another for other bytes."
    seen = set()
    for byte in (b"\0", b"\1", b"\xff"):
        folder = tmp_path / byte.hex()
        folder.mkdir()
        (folder / "config.json").write_text("{}", "utf-8")
        with open(folder / name, "wb") as file:
            file.truncate(300 * 2**20)
            file.seek(0)
            file.write(byte * 2**20)
        seen.add(fingerprint(folder))
    assert len(seen) == 3


def test_a_tensor_of_small_weights_counts(folder):
    before, tensors = fingerprint(folder), load_file(folder / "model.safetensors")
    tensors["model.norm.weight"][5] = torch.nextafter(tensors["model.norm.weight"][5], torch.tensor(9.0))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert fingerprint(folder) != before


# names


HASH = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def snapshot(tmp_path):
    "As the hub's cache keeps a model: links to files that are called by their hashes."
    root = tmp_path / "hub" / "models--Org--Some-Name"
    blobs, folder = root / "blobs", root / "snapshots" / HASH
    blobs.mkdir(parents=True), folder.mkdir(parents=True)
    for i, file in enumerate(sorted(organism("steady").iterdir())):
        shutil.copy(file, blobs / f"{i:040x}")
        (folder / file.name).symlink_to(Path("..") / ".." / "blobs" / f"{i:040x}")
    return folder


@pytest.mark.parametrize("make", [LocalModel, CausalRespondent, LikelihoodRespondent])
@pytest.mark.parametrize("end", ["", "/"])
def test_a_snapshot_is_called_by_its_repository_and_its_commit(snapshot, make, end):
    who = make(f"{snapshot}{end}")
    assert "Some-Name" in who.name and HASH[:8] in who.name and HASH not in who.name
    assert "/" not in who.name  # it names a folder of responses
    assert make(str(snapshot), name="mine").name == "mine"


def test_a_snapshot_has_the_fingerprint_of_its_files(snapshot):
    assert fingerprint(snapshot) == fingerprint(organism("steady"))


def test_two_commits_have_two_names(snapshot):
    other = snapshot.with_name("f" * 40)
    shutil.copytree(snapshot, other)
    assert LocalModel(str(snapshot)).name != LocalModel(str(other)).name


def test_a_snapshot_named_from_inside(snapshot, monkeypatch):
    monkeypatch.chdir(snapshot)
    name = LocalModel(".").name
    assert "Some-Name" in name and HASH not in name


def test_other_folders_keep_their_names(folder, tmp_path):
    assert LocalModel(str(folder)).name == "model" and LocalModel("organism/steady").name == "steady"
    lone = shutil.copytree(folder, tmp_path / "snapshots" / HASH)  # nothing says which repository this is
    assert LocalModel(str(lone)).name.startswith(HASH[:8])
