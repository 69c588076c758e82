"""A store in a file beside one in PostgreSQL, on this machine's disk: put, get, claims, copy.

A reply is put alone and is on disk before the next, so `put` is the time of one transaction. SQLite writes to its log
without waiting for the disk (a kill of the process loses nothing, a power cut may cost the last replies); PostgreSQL
waits for the disk (`fsync` and `synchronous_commit` as they are by default), and once more without waiting for it
(`synchronous_commit=off`). The database runs on this machine: over a network, its round trip is added to each put.
"""

import sys
import tempfile
import time
from pathlib import Path

from measure import report

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from postgres_server import PostgresServer, missing  # noqa: E402

from cora_nb.respondents.protocol import Reply  # noqa: E402
from cora_nb.runs.sqlite_store import reply_row  # noqa: E402
from cora_nb.runs.store import Claims, Store, reply_key  # noqa: E402
from cora_nb.runs.store import copy_replies  # noqa: E402

N, PUTS = 33_098, 3_000  # a run of MedQA with all variants; replies that are put one by one
KEYS = [reply_key({"prompt": i}) for i in range(N)]


def reply(i: int) -> Reply:
    return Reply("ABCD"[i % 4], (-0.5, -1.5, -2.5, -3.5), 0.5, meta={"prompt_tokens": 200 + i % 50})


def rate(n: int, work) -> float:
    "How many a second."
    start = time.perf_counter()
    work()
    return n / (time.perf_counter() - start)


def measure_store(title: str, place) -> None:
    "What the usual steps take."
    with Store(place) as store:
        one_by_one = rate(PUTS, lambda: [store.put(KEYS[i], reply(i)) for i in range(PUTS)])
        together = rate(N - PUTS, lambda: store.rows.add([reply_row(KEYS[i], reply(i)) for i in range(PUTS, N)]))
        got = rate(N, lambda: store.get(KEYS))
        with Claims(store) as claims:
            new = [f"new {key}" for key in KEYS]
            claimed = rate(N, lambda: claims.take(new))
        report(title, put_a_second=one_by_one, added_together=together, got=got, claimed=claimed)


if __name__ == "__main__":
    if reason := missing():
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "r.sqlite"
        measure_store("SQLite", file)
        for title, settings in {
            "PostgreSQL": (),
            "PostgreSQL, synchronous_commit off": ("synchronous_commit=off",),
        }.items():
            with PostgresServer(*settings) as server:
                measure_store(title, server.empty_store())
                with Store(file) as source, Store(server.empty_store()) as target:
                    there = rate(N, lambda: copy_replies(source, target))
                    again = rate(N, lambda: copy_replies(source, target))
                    with Store(Path(folder) / f"{len(settings)}.sqlite") as back:
                        report(
                            f"{title}, copied",
                            there=there,
                            again=again,
                            back=rate(N, lambda: copy_replies(target, back)),
                        )
