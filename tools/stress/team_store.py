"""One store for a team: two processes, ten kills, nothing lost, and what was paid for twice.

    python tools/stress/team_store.py [SEED]

Both processes ask the same 1,000 prompts of one store, and each 250 of its own; each in another order, four at once.
Ten times one of them gets SIGKILL and is started again with the same words: first with a file, then with PostgreSQL
(which is stopped in the middle as in a crash, and started again). A chat server writes down every request, and answers
each differently, so equal replies of two processes come from the store. No process tells the other what it is asking: a
prompt may be paid for twice where both ask it within one portion of 2,000, and the number is printed.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from faulty_server import Answer, FaultyServer, completion  # noqa: E402
from postgres_server import PASSWORD, PostgresServer, missing  # noqa: E402

from cora_nb.benchmarks.load import load_benchmark  # noqa: E402
from cora_nb.core import CoraError  # noqa: E402
from cora_nb.prompts.templates import make_prompts  # noqa: E402
from cora_nb.respondents.chat import ChatRespondent  # noqa: E402
from cora_nb.responses.columns import in_state  # noqa: E402
from cora_nb.runs.evaluate import evaluate  # noqa: E402
from cora_nb.runs.store import Store, asked_prompts  # noqa: E402
from cora_nb.variants.families import make_variants  # noqa: E402

SHARED, OWN, AT_ONCE, WAIT, KILLS = 1000, 250, 4, 0.02, 10
TOTAL = SHARED + 2 * OWN


def variants_of(number: int) -> list:
    "The variants of a process: those that both ask, and its own. Each prompt is there once."
    variants = make_variants(load_benchmark("math"))
    several = list({prompt.text: variant for prompt, variant in zip(make_prompts(variants), variants)}.values())
    start = SHARED + number * OWN
    chosen = several[:SHARED] + several[start : start + OWN]
    random.Random(number).shuffle(chosen)
    return chosen


def work(number: int, url: str, address: str, folder: str) -> None:
    "What one process does: ask all, and write down the replies. A database that went away is waited for."
    os.environ["OPENAI_API_KEY"] = "nobody"
    who, variants = ChatRespondent("m", url, concurrency=AT_ONCE), variants_of(number)
    for attempt in range(10):
        try:
            with Store(address) as store:
                run = evaluate(who, variants, store=store, progress=False, strict=None)
                break
        except CoraError as e:
            print(f"  process {number}: {e}")
            time.sleep(1)
    _, keys = asked_prompts(who, make_prompts(variants))
    found = {"replies": dict(zip(keys, run.table["reply"])), "failed": int(in_state(run.table, "failed").sum())}
    Path(folder, f"{number}.json").write_text(json.dumps(found))


def start(number: int, *words: str) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, __file__, str(number), *words])


def team(title: str, address: str, folder: str, seed: int, crash=None) -> bool:
    "Both processes on one store; whether nothing was lost."
    asked, lock, rng = [], threading.Lock(), random.Random(seed)

    def plan(request) -> Answer:
        with lock:
            asked.append(request.prompt)
        return Answer(body=completion("ABCD"[request.number % 4]), wait=WAIT)

    begun = time.monotonic()
    with FaultyServer(plan) as server:
        words, kills = (server.url, address, folder), [int(TOTAL * (i + 1) / (KILLS + 2)) for i in range(KILLS)]
        team, crash_at = [start(n, *words) for n in range(2)], TOTAL // 2
        while any(child.poll() is None for child in team):
            if kills and len(asked) >= kills[0]:
                kills.pop(0)
                number = rng.choice([n for n in range(2) if team[n].poll() is None] or [0])
                team[number].kill()
                team[number].wait()
                team[number] = start(number, *words)
            if crash and len(asked) >= crash_at:
                crash_at = float("inf")
                crash()
            time.sleep(0.01)
        seconds, before = time.monotonic() - begun, len(asked)
        found = [json.loads(Path(folder, f"{n}.json").read_text()) for n in range(2)]
        for number in range(2):  # both once more: nothing to ask
            work(number, *words)
        again, times = len(asked) - before, Counter(asked)
    replies = {key: reply for one in found for key, reply in one["replies"].items()}
    with Store(address) as store:
        kept = {key: reply.text for key, reply in store.get(replies).items()}
    differing = sum(found[0]["replies"].get(key, reply) != reply for key, reply in found[1]["replies"].items())
    lost = len(replies) - len(kept) + sum(kept[key] != reply for key, reply in replies.items() if key in kept)
    leaked = any(PASSWORD in path.read_text() for path in Path(folder).glob("*.json"))
    print(f"{title}: {TOTAL:,} prompts, {SHARED:,} of them of both, {KILLS - len(kills)} kills, {seconds:.0f} s")
    print(
        f"  requests {before:,}, paid for twice or more {sum(n > 1 for n in times.values())}; asked once more {again}"
    )
    print(f"  in the store {len(kept):,}, lost or other than in a run {lost}, other in the two runs {differing}")
    failed = sum(one["failed"] for one in found)
    return len(kept) == TOTAL and not (lost or differing or again or leaked or failed or kills)


def main(seed: int) -> None:
    right = []
    with tempfile.TemporaryDirectory() as folder:
        right.append(team("a file", str(Path(folder) / "r.sqlite"), folder, seed))
    if reason := missing():
        print(reason)
    with tempfile.TemporaryDirectory() as folder, nullcontext() if reason else PostgresServer() as database:
        if database:

            def crash():
                database.stop("immediate")
                time.sleep(1)
                database.start()

            right.append(team("PostgreSQL", database.empty_store(), folder, seed, crash))
    print("RIGHT" if all(right) else "WRONG")
    sys.exit(0 if all(right) else 1)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        work(int(sys.argv[1]), *sys.argv[2:])
    else:
        main(int(sys.argv[1]) if len(sys.argv) == 2 else 0)
