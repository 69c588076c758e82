"""Checkpoints as they are found in the wild: copies of the organism `steady` with weights stored in another way.

Each function in `CHECKPOINTS` changes a copy of the organism's folder and returns what it left to be noticed.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load_file, save_file
from tiny_models import torch

from cora_nb.respondents.local import organism

WEIGHTS, FORMAT, NARROW = "model.safetensors", {"format": "pt"}, torch.float8_e4m3fn


@dataclass(frozen=True)
class Left:
    "What is odd about a folder."

    tensors: tuple[str, ...] = ()  # that the model has no place for
    words: tuple[str, ...] = ()  # of which a refusal names one, besides these tensors


@dataclass(frozen=True)
class Checkpoint:
    "How to change a folder, and what may come of it."

    change: Callable[[Path], Left]
    may: tuple[str, ...]  # "right": as the model; "warned": the same, and a warning; "refused"


# files


def tensors_of(folder: Path) -> dict:
    return load_file(folder / WEIGHTS)


def write(folder: Path, tensors: dict, name: str = WEIGHTS) -> None:
    save_file({k: t.contiguous() for k, t in tensors.items()}, folder / name, metadata=FORMAT)


def merge_json(file: Path, **fields) -> None:
    "A JSON file with other values of some fields; ... removes one."
    found = json.loads(file.read_text("utf-8")) if file.exists() else {}
    found = {k: v for k, v in (found | fields).items() if v is not ...}
    file.write_text(json.dumps(found), "utf-8")


def configure(folder: Path, **fields) -> None:
    merge_json(folder / "config.json", **fields)


def copy_of_steady(folder: Path) -> Path:
    return Path(shutil.copytree(organism("steady"), folder))


def random(*shape: int) -> torch.Tensor:
    "The same numbers at every call, large enough to matter."
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def adding(extra: Callable[[dict], dict], *words: str, **config) -> Callable[[Path], Left]:
    "More tensors in the weights file."

    def change(folder):
        tensors = tensors_of(folder)
        added = extra(tensors)
        assert added and not tensors.keys() & added.keys()
        write(folder, tensors | added)
        configure(folder, **config)
        return Left(tuple(sorted(added)), words)

    return change


# narrow formats


def linear(tensors: dict) -> list[str]:
    return [k for k in tensors if k.endswith("_proj.weight")]


def fp8_in_blocks(folder: Path) -> Left:
    "As DeepSeek and Qwen publish them, and transformers reads them."
    tensors, side = tensors_of(folder), 128
    for k in linear(tensors):
        rows, columns = (n // side for n in tensors[k].shape)
        blocks = tensors[k].reshape(rows, side, columns, side)
        scale = blocks.abs().amax((1, 3), keepdim=True) / 448
        tensors[k] = (blocks / scale).reshape(rows * side, columns * side).to(NARROW)
        tensors[f"{k}_scale_inv"] = scale.reshape(rows, columns)
    write(folder, tensors)
    quantised = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [side, side]}
    configure(folder, quantization_config=quantised)
    return Left(words=("fp8", "scale"))


def fp8(suffix: str | None, config: dict | None = None, file: dict | None = None, half: bool = False, kind=NARROW):
    """One scale for each matrix, under a name or in no file.

    `config`: what config.json says of it. `file`: what hf_quant_config.json says. `half`: every second scale is gone.
    """

    def change(folder):
        tensors, scales = tensors_of(folder), {}
        most = 448 if kind is NARROW else 127
        for i, k in enumerate(linear(tensors)):
            scale = tensors[k].abs().max() / most
            narrow = tensors[k] / scale
            tensors[k] = (narrow if kind is NARROW else narrow.round()).to(kind)
            if suffix and not (half and i % 2):
                scales[k.removesuffix("weight") + suffix] = scale.reshape(1)
        write(folder, tensors | scales)
        if config:
            configure(folder, quantization_config=config)
        if file:
            (folder / "hf_quant_config.json").write_text(json.dumps(file), "utf-8")
        method = (config or {}).get("quant_method", "")
        about = (method,) * bool(method) + ("float8", "int8", "quant", "scale")
        return Left(tuple(sorted(scales)), about + tuple(k for k in tensors if k.endswith("_proj.weight")))

    return change


MODELOPT_FILE = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}


def gptq(*, told: bool) -> Callable[[Path], Left]:
    "Eight numbers of four bits in each integer, as GPTQ packs them; the configuration may or may not say so."

    def change(folder):
        tensors = tensors_of(folder)
        for k in linear(tensors):
            out, into = tensors.pop(k).shape
            stem = k.removesuffix("weight")
            tensors[f"{stem}qweight"] = torch.zeros(into // 8, out, dtype=torch.int32)
            tensors[f"{stem}qzeros"] = torch.zeros(1, out // 8, dtype=torch.int32)
            tensors[f"{stem}scales"] = torch.ones(1, out, dtype=torch.float16)
            tensors[f"{stem}g_idx"] = torch.zeros(into, dtype=torch.int32)
        write(folder, tensors)
        if told:
            configure(folder, quantization_config={"quant_method": "gptq", "bits": 4, "group_size": -1})
        return Left(tuple(k for k in tensors if "qweight" in k or "scales" in k), ("gptq", "_proj.weight"))

    return change


# tensors that decide something


def lora(tensors: dict) -> dict:
    return {
        k.replace(".weight", f".lora_{w}.weight"): random(*shape)
        for k in tensors
        if k.endswith("q_proj.weight")
        for w, shape in (("A", (4, 128)), ("B", (128, 4)))
    }


def biases(tensors: dict) -> dict:
    return {k.replace("weight", "bias"): random(len(tensors[k])) for k in tensors if k.endswith("q_proj.weight")}


def lora_in_a_second_file(folder: Path) -> Left:
    "In a shard that the index names."
    tensors = tensors_of(folder)
    added, first, second = lora(tensors), "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    (folder / WEIGHTS).unlink()
    write(folder, tensors, first)
    write(folder, added, second)
    places = dict.fromkeys(tensors, first) | dict.fromkeys(added, second)
    index = {"metadata": {"total_size": 1}, "weight_map": places}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index), "utf-8")
    return Left(tuple(sorted(added)), ("lora",))


def lora_in_a_pickle(folder: Path) -> Left:
    tensors = tensors_of(folder)
    added = lora(tensors)
    (folder / WEIGHTS).unlink()
    torch.save(tensors | added, folder / "pytorch_model.bin")
    return Left(tuple(sorted(added)), ("lora",))


def last_bias(tensors: dict) -> dict:
    return {"lm_head.bias": 9 * random(len(tensors["model.embed_tokens.weight"]))}


def in_a_pickle(change: Callable[[Path], Left]) -> Callable[[Path], Left]:
    "The same tensors in the older format."

    def pickled(folder):
        left = change(folder)
        torch.save(tensors_of(folder), folder / "pytorch_model.bin")
        (folder / WEIGHTS).unlink()
        return left

    return pickled


def other_weights_beside(folder: Path) -> Left:
    "In formats that need scales, for other programs; and a file that was not downloaded."
    narrow = {k: t.to(torch.int8) for k, t in tensors_of(folder).items()}
    (folder / "int8").mkdir()
    write(folder / "int8", narrow)
    write(folder, narrow, "model.fp8.safetensors")
    (folder / "extra.safetensors").write_text("version https://git-lfs.github.com/spec/v1")
    return Left()


def adapter(folder: Path, lacking: str = "") -> Left:
    "An adapter that changes a lot, beside whole weights or beside some that lack a layer."
    tensors = tensors_of(folder)
    prefix = "base_model.model."
    write(folder, {prefix + k: t for k, t in lora(tensors).items()}, "adapter_model.safetensors")
    if lacking:
        write(folder, {k: t for k, t in tensors.items() if lacking not in k})
    about = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": 4,
        "lora_alpha": 8,
        "target_modules": ["q_proj"],
        "bias": "none",
        "inference_mode": True,
        "base_model_name_or_path": str(organism("steady")),
    }
    (folder / "adapter_config.json").write_text(json.dumps(about), "utf-8")
    return Left(words=("adapter", "peft", *([lacking] if lacking else [])))


# tensors that decide nothing


def one_layer_more(tensors: dict) -> dict:
    "As DeepSeek's checkpoints hold the layer that drafts the token after the next."
    return {k.replace("layers.3.", "layers.4."): t.clone() for k, t in tensors.items() if "layers.3." in k}


def mtp_head(tensors: dict) -> dict:
    layer = {k.replace("model.layers.3.", "mtp.layers.0."): t.clone() for k, t in tensors.items() if ".3." in k}
    return layer | {"mtp.fc.weight": random(128, 256), "mtp.norm.weight": torch.ones(128)}


def vision_tower(tensors: dict) -> dict:
    blocks = {
        f"vision_tower.blocks.{i}.{name}": random(*shape)
        for i in range(5)
        for name, shape in {"attn.qkv.weight": (48, 16), "attn.proj.weight": (16, 16), "norm.weight": (16,)}.items()
    }
    return blocks | {"multi_modal_projector.linear_1.weight": random(128, 16)}


def value_head(tensors: dict) -> dict:
    return {"v_head.summary.weight": random(1, 128), "v_head.summary.bias": random(1)}


def cache_scales(tensors: dict) -> dict:
    return {f"model.layers.{i}.self_attn.{w}_scale": torch.tensor(0.7) for i in range(4) for w in "kv"}


def cache_scales_of_projections(tensors: dict) -> dict:
    return {f"model.layers.{i}.self_attn.{w}_proj.{w}_scale": torch.tensor(0.7) for i in range(4) for w in "kv"}


def quantised_vision_tower(tensors: dict) -> dict:
    "Its scales have no place either, and belong to weights that have none."
    weights = {k: t.to(NARROW) for k, t in vision_tower(tensors).items() if t.ndim == 2}
    return weights | {k.replace("weight", "weight_scale"): torch.tensor(0.1) for k in weights}


def causal_masks(tensors: dict) -> dict:
    "As old checkpoints of GPT-2, GPT-J and GPT-Neo hold them, in bytes."
    attention = [f"model.layers.{i}.self_attn" for i in range(4)]
    masks = {f"{a}.bias": torch.ones(1, 1, 8, 8, dtype=torch.uint8).tril() for a in attention}
    return masks | {f"{a}.masked_bias": torch.tensor(-1e9) for a in attention}


# too little, or elsewhere


def a_layer_less(folder: Path) -> Left:
    write(folder, {k: t for k, t in tensors_of(folder).items() if "layers.2." not in k})
    return Left(words=("layers.2.",))


def another_shape(folder: Path) -> Left:
    tensors, name = tensors_of(folder), "model.layers.1.mlp.up_proj.weight"
    tensors[name] = tensors[name][:200]
    write(folder, tensors)
    return Left(words=(name,))


def another_prefix(folder: Path) -> Left:
    write(folder, {f"language_part.{k}": t for k, t in tensors_of(folder).items()})
    return Left(words=("language_part.", "embed_tokens", "layers.", "norm", "lm_head"))


RIGHT, REFUSED, WARNED = ("right",), ("refused",), ("warned",)
EITHER = ("right", "warned", "refused")  # but never another score
UNKNOWN = {"quant_method": "newquant"}
MODELOPT = {"quant_method": "modelopt", "quant_algo": "FP8"}
PLAIN_FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}

CHECKPOINTS: dict[str, Checkpoint] = {
    "as it is": Checkpoint(lambda folder: Left(), RIGHT),
    "FP8 in blocks": Checkpoint(fp8_in_blocks, RIGHT),
    "FP8 of ModelOpt": Checkpoint(fp8("weight_scale", MODELOPT), EITHER),
    "FP8 of ModelOpt, told in a file of its own": Checkpoint(fp8("weight_scale", file=MODELOPT_FILE), EITHER),
    "FP8, a method of tomorrow": Checkpoint(fp8("weight_scale", UNKNOWN), EITHER),
    "a method of tomorrow, and plain weights": Checkpoint(
        lambda folder: configure(folder, quantization_config=UNKNOWN) or Left(words=("newquant",)), REFUSED
    ),
    **{f"FP8, scales called {s}": Checkpoint(fp8(s), EITHER) for s in ("weight_scale", "scale", "scale_weight")},
    "FP8, scales called weight_scale_inv": Checkpoint(fp8("weight_scale_inv"), EITHER),
    "fp8 that finds its scales under no name": Checkpoint(fp8("weight_step", PLAIN_FP8), REFUSED),
    "fp8 with half of its scales": Checkpoint(fp8("weight_scale_inv", PLAIN_FP8, half=True), REFUSED),
    "float8 with scales in no file": Checkpoint(fp8(None), REFUSED),
    "int8 with scales in no file": Checkpoint(fp8(None, kind=torch.int8), REFUSED),
    "int8, scales called SCB": Checkpoint(fp8("SCB", kind=torch.int8), EITHER),
    "LoRA in the weights file": Checkpoint(adding(lora, "lora"), REFUSED),
    "LoRA in a second file": Checkpoint(lora_in_a_second_file, REFUSED),
    "LoRA in a pickle": Checkpoint(lora_in_a_pickle, REFUSED),
    "a bias of q_proj": Checkpoint(adding(biases), REFUSED),
    "a bias of the last layer": Checkpoint(adding(last_bias), REFUSED),
    "a bias of the attention": Checkpoint(
        adding(lambda t: {f"model.layers.{i}.self_attn.bias": random(128) for i in range(4)}), REFUSED
    ),
    "float8 in a pickle": Checkpoint(in_a_pickle(fp8(None)), REFUSED),
    "int8 in a pickle": Checkpoint(in_a_pickle(fp8(None, kind=torch.int8)), REFUSED),
    "other weights beside it": Checkpoint(other_weights_beside, RIGHT),
    "a q_norm in one layer": Checkpoint(
        adding(lambda t: {"model.layers.1.self_attn.q_norm.weight": 3 + random(32)}), REFUSED
    ),
    "GPTQ": Checkpoint(gptq(told=True), REFUSED),
    "GPTQ that nobody tells": Checkpoint(gptq(told=False), REFUSED),
    "one layer more": Checkpoint(adding(one_layer_more), WARNED),
    "an MTP head": Checkpoint(adding(mtp_head), WARNED),
    "a vision tower": Checkpoint(adding(vision_tower), WARNED),
    "a quantised vision tower": Checkpoint(adding(quantised_vision_tower), WARNED),
    "causal masks": Checkpoint(adding(causal_masks), RIGHT),
    "a value head": Checkpoint(adding(value_head), WARNED),
    "scales of the cache": Checkpoint(adding(cache_scales), WARNED),
    "scales of the cache in the projections": Checkpoint(adding(cache_scales_of_projections), WARNED),
    "a layer less": Checkpoint(a_layer_less, REFUSED),
    "another shape": Checkpoint(another_shape, REFUSED),
    "another prefix": Checkpoint(another_prefix, ("right", "refused")),
}


def made(name: str, folder: Path) -> tuple[Path, Left]:
    "The folder of a checkpoint, and what is odd about it."
    copy_of_steady(folder)
    return folder, CHECKPOINTS[name].change(folder)
