"""The fingerprint of a model's folder beside reading every byte of it: 2.2 GB in four files, cold and warm.

Random bytes, in tensors of 30 MiB, of 3 MiB, as models of many experts have them, and of 107 KiB, which no large model
has: there two blocks of each tensor take longer than all of it. The last two numbers are the seconds that 70 GB of such
tensors would take.
"""

import hashlib
import json
import os
import struct
import tempfile
import time
from pathlib import Path

from measure import report

from cora_nb.respondents.checkpoints import folder_fingerprint

FILES, BYTES = 4, 550 * 2**20


def fill(folder: Path, size: int) -> None:
    "Four files of tensors of this size."
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    names, n = [f"model-{i:05}-of-{FILES:05}.safetensors" for i in range(FILES)], BYTES // size
    tensor = {"dtype": "BF16", "shape": [size // 2]}
    for name in names:
        header = {f"{name[6:11]}.{j}": tensor | {"data_offsets": [j * size, (j + 1) * size]} for j in range(n)}
        with open(folder / name, "wb") as file:
            text = json.dumps(header).encode()
            file.write(struct.pack("<Q", len(text)) + text)
            for _ in range(n):
                file.write(os.urandom(size))
    places = {f"{name[6:11]}.{j}": name for name in names for j in range(n)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


def forget(folder: Path) -> None:
    "Let the system read the files from the disk again."
    os.sync()
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def whole(folder: Path) -> None:
    "All bytes of all files."
    for path in folder.iterdir():
        with open(path, "rb") as file:
            hashlib.file_digest(file, "sha256")


def seconds(folder: Path, work, cold: bool) -> float:
    "The best of three."
    best = float("inf")
    for _ in range(3):
        if cold:
            forget(folder)
        start = time.perf_counter()
        work(folder)
        best = min(best, time.perf_counter() - start)
    return best


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for title, size in {"30 MiB": 30 * 2**20, "3 MiB": 3 * 2**20, "107 KiB": 107 * 2**10}.items():
            fill(folder := Path(place) / str(size), size)
            cold, warm = (seconds(folder, folder_fingerprint, c) for c in (True, False))
            every, scale = seconds(folder, whole, True), 70e9 / (FILES * BYTES)
            ratios = {"cold": cold, "warm": warm, "every_byte_cold": every, "times_faster": every / cold}
            report(title, **ratios, cold_70_GB=cold * scale, warm_70_GB=warm * scale)
