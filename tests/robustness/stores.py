"""Damages of a store beyond those of its bytes: disks that are full, files that cannot be written, others at work.

The damages of the bytes are those of `tests/runs/test_store.py`. Each is met by a whole run, which may stop in one line
(then nothing of the store is lost, and the same run goes on once the disk is well), or get through.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import store_children as children
from helpers import apart
from robustness.cases import Case
from runs.test_store import DAMAGES, EMPTY, REFUSED, REST, ROWS, SAME

from cora_nb.core import CoraError
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Store


def byte_cases() -> Iterator[Case]:
    "The file's bytes, pages, tables and rows."
    for name, (damage, expected) in DAMAGES.items():

        def read(folder, damage=damage):
            path = folder / "r.sqlite"
            with Store(path) as store:
                for key, reply in ROWS.items():
                    store.put(key, reply)
            damage(path)
            with Store(path) as store:
                return store.get(ROWS)

        accept = {
            REFUSED: None,
            SAME: lambda f: f == ROWS,
            EMPTY: lambda f: f == {},
            REST: lambda f: f.items() < ROWS.items() and len(f) >= len(ROWS) - 2,
        }[expected]
        yield Case("store", name, read, ("r.sqlite",), accept)


# ---------------------------------------------------------------- what happens around a store while a run goes on


def kept(path: Path) -> dict[str, str]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        begun = db.execute("select 1 from sqlite_master where name = 'cora_replies'").fetchone()
        return dict(db.execute("select key, reply from cora_replies")) if begun else {}


def in_a_child(work: Callable, *args: object) -> str:
    "What a child process says in the end: limits and users are its own."
    reader, writer = apart().Pipe(duplex=False)
    child = apart().Process(target=children.tell, args=(writer, work, *args))
    child.start()
    writer.close()
    said = reader.recv().decode()
    child.join()
    return said


def stopped_and_resumed(path: Path, said: str, heal: Callable[[], object] = lambda: None) -> tuple[str, bool]:
    "The end of a hindered run, and whether the same run afterwards has everything and asks nothing twice."
    if said.startswith("TRACEBACK"):
        raise RuntimeError(said)
    heal()
    before = kept(path) if path.exists() and path.stat().st_size else {}
    run = children.ask_few(path)
    whole = evaluate(SimulatedRespondent(), children.FEW, progress=False)
    calls = run.facts.calls
    good = run.table.equals(whole.table) and calls["in_store"] == len(before) and before.items() <= kept(path).items()
    if not good:
        raise AssertionError(f"after {said!r}: {calls}, {len(before)} kept before")
    if said:
        raise CoraError(said)
    return "got through", True


def limited(size: int) -> Callable[[Path], object]:
    "No file may grow beyond so many bytes: as a disk that is full."

    def read(folder):
        said = in_a_child(children.ask_few_limited, folder / "r.sqlite", size)
        return stopped_and_resumed(folder / "r.sqlite", said)

    return read


def as_nobody(prepare: Callable[[Path], object]) -> Callable[[Path], object]:
    "A user who may not write here."

    def read(folder):
        path = folder / "r.sqlite"
        prepare(path)

        def heal():
            for p in (folder, *folder.iterdir()):
                p.chmod(0o755 if p.is_dir() else 0o644)

        folder.chmod(folder.stat().st_mode | 0o055)
        return stopped_and_resumed(path, in_a_child(children.ask_few_as_nobody, path), heal)

    return read


def half_a_run(path: Path) -> None:
    with Store(path) as store:
        evaluate(SimulatedRespondent(), children.FEW[:60], store=store, progress=False)


def read_only(path: Path) -> None:
    half_a_run(path)
    path.chmod(0o444)


def unreadable(path: Path) -> None:
    half_a_run(path)
    path.chmod(0)


def read_only_folder(path: Path) -> None:
    half_a_run(path)
    path.chmod(0o666)
    path.parent.chmod(0o555)


def locked(seconds: float, how: str) -> Callable[[Path], object]:
    "Another process holds the file for a while."

    def read(folder):
        path = folder / "r.sqlite"
        half_a_run(path)
        held = apart().Event()
        holder = apart().Process(target=children.hold, args=(path, how, seconds, held))
        holder.start()
        held.wait()
        try:
            return stopped_and_resumed(path, in_a_child(children.ask_few, path))
        finally:
            holder.join()

    return read


def in_the_middle(harm: Callable[[Path], object]) -> Callable[[Path], object]:
    "Something happens to the file while a run uses it."

    def read(folder):
        path = folder / "r.sqlite"

        return stopped_and_resumed(path, in_a_child(children.ask_few_harmed, path, harm))

    return read


def tmpfs(size: int) -> Callable[[Path], object]:
    "A file system that is full; only where one may be mounted."

    def read(folder):
        (disk := folder / "disk").mkdir()
        if os.system(f"mount -t tmpfs -o size={size} tmpfs {disk} 2>/dev/null"):
            raise CoraError("r.sqlite: no file system can be mounted here: left out")
        try:
            said = in_a_child(children.ask_few, disk / "r.sqlite")
            return stopped_and_resumed(
                disk / "r.sqlite", said, lambda: os.system(f"mount -o remount,size=50m tmpfs {disk}")
            )
        finally:
            os.system(f"umount {disk}")

    return read


def through(found: object) -> bool:
    return found[1]


def around_cases() -> Iterator[Case]:
    for size in (0, 1, 512, 4096, 8192, 20_000, 33_000, 40_000, 50_000, 65_536, 100_000):
        yield Case("store, full disk", f"files of {size} bytes at most", limited(size), (), through)
    for size in ("40k", "64k", "80k", "120k"):
        yield Case("store, full disk", f"a file system of {size}", tmpfs(size), (), through)
    for prepare in (half_a_run, read_only, unreadable, read_only_folder, lambda path: None):
        name = prepare.__name__.replace("_", " ").replace("<lambda>", "no store yet").replace("half a run", "of root")
        yield Case("store, another's", name, as_nobody(prepare), ("r.sqlite",), through)
    for how in ("immediate", "exclusive"):
        yield Case("store, locked", f"{how}, 2 s", locked(2, how), (), through)
    yield Case("store, in the middle", "replies deleted", in_the_middle(children.delete_replies), (), through)
    for name in ("r.sqlite", "r.sqlite-wal", "r.sqlite-shm"):
        remove = partial(children.remove, name=name)
        yield Case("store, in the middle", f"{name} removed", in_the_middle(remove), (), through)


def cases() -> list[Case]:
    return [*byte_cases(), *around_cases()]
