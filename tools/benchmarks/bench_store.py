"""A store in a file beside one in PostgreSQL, on this machine's disk: put, get, copy.

A reply is put alone and is on disk before the next, so `put` is the time of one transaction. SQLite writes to its log
without waiting for the disk (a kill of the process loses nothing, a power cut may cost the last replies); PostgreSQL
waits for the disk, as it does by default. The database runs on this machine: over a network, its round trip is added to
each put.
"""

import sys
import tempfile
import time
from pathlib import Path

from measure import report

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from postgres_server import PostgresServer, missing  # noqa: E402

from cora_nb.respondents.protocol import Reply  # noqa: E402
from cora_nb.runs.store import Store, reply_key  # noqa: E402

N, PUTS = 33_098, 3_000  # a run of MedQA with all variants; replies that are put one by one
KEYS = [reply_key({"prompt": i}) for i in range(N)]


def reply(i: int) -> Reply:
    return Reply("ABCD"[i % 4], (-0.5, -1.5, -2.5, -3.5), 0.5, meta={"prompt_tokens": 200 + i % 50})


def rate(n: int, work) -> float:
    "How many a second."
    start = time.perf_counter()
    work()
    return n / (time.perf_counter() - start)


def fill(store: Store, n: int) -> None:
    for i in range(n):
        store.put(KEYS[i], reply(i))


if __name__ == "__main__":
    if reason := missing():
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as folder, PostgresServer() as server:
        source = Path(folder) / "all.sqlite"
        with Store(source) as store:
            fill(store, N)
        for title, place in {"SQLite": Path(folder) / "r.sqlite", "PostgreSQL": server.empty_store()}.items():
            with Store(place) as store, Store(source) as all_of_them:
                put = rate(PUTS, lambda: fill(store, PUTS))
                copied = rate(N - PUTS, lambda: all_of_them.copy_to(store))
                report(title, put_a_second=put, copied=copied, got=rate(N, lambda: store.get(KEYS)))
