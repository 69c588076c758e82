"""Folders of models with a file damaged: what a language model on this machine is made of."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from robustness.cases import Case

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.local import organism
from cora_nb.respondents.protocol import ask
from cora_nb.variants.families import make_variants

PROMPTS = make_prompts(make_variants(load_benchmark("math")[:1])[:2])


def with_file(name: str, change: Callable[[bytes], bytes | None]) -> Callable[[Path], object]:
    "An organism asked, with one of its files changed; None removes it."

    def read(folder):
        shutil.copytree(organism("steady"), folder / "model")
        path = folder / "model" / name
        if (data := change(path.read_bytes())) is None:
            path.unlink()
        else:
            path.write_bytes(data)
        return [r.text for r in ask(CausalRespondent(folder / "model", device="cpu"), PROMPTS)]

    return read


def field(name: str, value: object) -> Callable[[bytes], bytes]:
    "A field of a JSON file changed; ... removes it."

    def change(data):
        found = json.loads(data)
        if value is ...:
            found.pop(name, None)
        else:
            found[name] = value
        return json.dumps(found).encode()

    return change


BYTES = {
    "missing": lambda d: None,
    "empty": lambda d: b"",
    "a pointer of git-lfs": lambda d: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "HTML": lambda d: b"<!DOCTYPE html><html></html>",
    "zeros": lambda d: bytes(len(d)),
    "cut at a tenth": lambda d: d[: len(d) // 10],
    "cut in half": lambda d: d[: len(d) // 2],
    "the last five bytes lost": lambda d: d[:-5],
}
JSONS = {
    "null": lambda d: b"null",
    "a list": lambda d: b"[]",
    "an empty object": lambda d: b"{}",
    "a text": lambda d: b'"x"',
    "no UTF-8": lambda d: b"\xff\xfe" + d,
    "deep": lambda d: b"[" * 100_000,
}
CONFIG = {
    "model_type": ("nosuch", "", None, 7, ...),
    "hidden_size": (0, -1, 1, "x", None, ...),
    "num_hidden_layers": ("x", None, 99),
    "num_attention_heads": (0, 3, "x", None),
    "vocab_size": (0, 1, "x", None),
}


def as_ever(found: object) -> bool:
    "The replies of the model as it is: the change was to words that nobody reads."
    return found == [r.text for r in ask(CausalRespondent("organism/steady", device="cpu"), PROMPTS)]


def cases() -> Iterator[Case]:
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        for what, change in (BYTES | (JSONS if name.endswith("json") else {})).items():
            yield Case("model folder", f"{name}: {what}", with_file(name, change), ("model",))
    for name, values in CONFIG.items():
        for value in values:
            yield Case(
                "model folder",
                f"config.json, {name}={value!r}",
                with_file("config.json", field(name, value)),
                ("model",),
            )
    for n in range(8):
        at = n * 10

        def change(data, at=at):
            data = bytearray(data)
            data[at] ^= 0x5A
            return bytes(data)

        yield Case(
            "model folder",
            f"model.safetensors: byte {at} changed",
            with_file("model.safetensors", change),
            ("model",),
            as_ever,
        )
