#!/usr/bin/env python3
"""Does a wheel hold every module of `cora_nb/` and every file of `data/` of the folder that it was built from?

    python scripts/wheel_holds.py dist/cora_nb-0.2.0-py3-none-any.whl .

Every file of the wheel is compared by its content, and a file that the folder does not have is an error, too.
"""

import sys
import zipfile
from pathlib import Path


def differences(
    wheel: Path,  # a file, `*.whl`
    source: Path,  # the folder that holds `cora_nb/` and `data/`
) -> list[str]:  # one line for each file that is missing, altered or unknown; empty where all is well
    "What the package in a wheel has otherwise than its source."
    folders = {"cora_nb": source / "cora_nb", "cora_nb/data": source / "data"}
    expected = {
        f"{inside}/{file.relative_to(folder).as_posix()}": file
        for inside, folder in folders.items()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist() if name.startswith("cora_nb/")}
    found = [f"missing: {name}" for name in expected if name not in held]
    found += [f"not in the source: {name}" for name in held if name not in expected]
    return found + [
        f"altered: {name}" for name in expected if name in held and held[name] != expected[name].read_bytes()
    ]


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    wheel, source = map(Path, sys.argv[1:])
    found = differences(wheel, source)
    if found:
        sys.exit("\n".join([f"{wheel.name}: {len(found)} file(s) differ from {source}", *found]))
    with zipfile.ZipFile(wheel) as archive:
        data = sum(name.startswith("cora_nb/data/") for name in archive.namelist())
        modules = sum(name.startswith("cora_nb/") and name.endswith(".py") for name in archive.namelist())
    print(f"{wheel.name} holds all {modules} modules and all {data} files of data/")


if __name__ == "__main__":
    main()
