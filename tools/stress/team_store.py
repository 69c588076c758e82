"""One store for a team: four processes, ten kills and two restarts of the database, nothing lost.

    python tools/stress/team_store.py [SEED]

Starts a PostgreSQL server and a chat server that writes down every request. 2,000 prompts, of which all four processes
ask the same 1,000, and each of them 250 of its own. Ten times a process gets SIGKILL and is started again with the same
words, and its claims hold until their time has passed. The database is stopped twice in the middle, once in order and
once as in a crash (`immediate`), and started again two seconds later.

The server answers each request differently, so equal replies of two processes come from the store. A prompt may be
asked again only if its request was under way when its process was killed: such requests are paid for and lost with
the process. Every request of a prompt that had been asked before is compared with the kills.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from faulty_server import Answer, FaultyServer, completion  # noqa: E402
from postgres_server import PASSWORD, PostgresServer, missing  # noqa: E402

from cora_nb.benchmarks.load import load_benchmark  # noqa: E402
from cora_nb.prompts.templates import make_prompts  # noqa: E402
from cora_nb.respondents.chat import ChatRespondent  # noqa: E402
from cora_nb.responses.columns import in_state  # noqa: E402
from cora_nb.runs.evaluate import evaluate  # noqa: E402
from cora_nb.runs.store import Store, asked_prompts  # noqa: E402
from cora_nb.variants.families import make_variants  # noqa: E402

PROCESSES, SHARED, OWN, AT_ONCE, WAIT, KILLS = 4, 1000, 250, 4, 0.1, 10


def variants_of(number: int) -> list:
    "The variants of a process: those that all ask, and its own. Each prompt is there once."
    variants = make_variants(load_benchmark("math"))
    different = {prompt.text: variant for prompt, variant in zip(make_prompts(variants), variants)}
    several = list(different.values())
    start = SHARED + number * OWN
    chosen = several[:SHARED] + several[start : start + OWN]
    random.Random(number).shuffle(chosen)
    return chosen


def respondent(url: str, who: str) -> ChatRespondent:
    "The same model for everybody; the key, which is in no prompt and no address of a reply, says who asks."
    os.environ["OPENAI_API_KEY"] = who
    return ChatRespondent("m", url, concurrency=AT_ONCE)


def work(number: int, life: int, url: str, address: str, folder: str) -> None:
    "What one process does: ask all, and write down the replies."
    who = respondent(url, f"{number}-{life}")
    variants = variants_of(number)
    with Store(address) as store:
        run = evaluate(who, variants, store=store, progress=False, strict=None)
    _, keys = asked_prompts(who, make_prompts(variants))
    found = {"replies": dict(zip(keys, run.table["reply"])), "failed": int(in_state(run.table, "failed").sum())}
    Path(folder, f"{number}.json").write_text(json.dumps(found | {"calls": run.facts.calls}, default=str))


class Team:
    "The processes, each with the number of its life."

    def __init__(self, url: str, address: str, folder: str):
        self.words, self.lives, self.children, self.kills = (url, address, folder), Counter(), {}, []
        for number in range(PROCESSES):
            self.start(number)

    def start(self, number: int) -> None:
        words = [sys.executable, __file__, str(number), str(self.lives[number]), *self.words]
        self.children[number] = subprocess.Popen(words)

    def kill_one(self, rng: random.Random, busy: set[int]) -> None:
        "SIGKILL to a process that is asking, and the same words again."
        alive = [n for n, child in self.children.items() if child.poll() is None and n in busy]
        number = rng.choice(alive or [n for n, child in self.children.items() if child.poll() is None])
        self.kills.append((f"{number}-{self.lives[number]}", time.monotonic()))
        self.children[number].kill()
        self.children[number].wait()
        self.lives[number] += 1
        self.start(number)


def main(seed: int) -> None:
    asked: list[tuple[str, str, float]] = []  # prompt, who, when
    lock = threading.Lock()

    def plan(request) -> Answer:
        who = request.headers["authorization"].removeprefix("Bearer ")
        with lock:
            asked.append((request.prompt, who, time.monotonic()))
        return Answer(body=completion("ABCD"[request.number % 4]), wait=WAIT)

    rng, start, restarts = random.Random(seed), time.monotonic(), []
    with PostgresServer() as database, FaultyServer(plan) as server, tempfile.TemporaryDirectory() as folder:
        address = database.empty_store()
        team = Team(server.url, address, folder)
        total = SHARED + PROCESSES * OWN
        todo = [(int(total * (i + 1) / (KILLS + 1)), "kill") for i in range(KILLS)]
        todo = sorted([*todo, (int(total * 0.4), "fast"), (int(total * 0.7), "immediate")])
        while any(child.poll() is None for child in team.children.values()):
            assert time.monotonic() - start < 900, "it takes too long"
            if todo and len(asked) >= todo[0][0]:
                _, what = todo.pop(0)
                if what == "kill":
                    recent = {int(who[0]) for _, who, when in asked[-40:] if time.monotonic() - when < 2}
                    team.kill_one(rng, recent)
                else:
                    restarts.append((what, len(asked)))
                    database.stop(what)
                    time.sleep(2)
                    database.start()
            time.sleep(0.02)
        seconds = time.monotonic() - start
        ended = [child.returncode for child in team.children.values()]
        found = [json.loads(Path(folder, f"{n}.json").read_text()) for n in range(PROCESSES)]
        with Store(address) as store:
            stored = {row[0]: row[1] for row in store.rows.piece("", 10_000)}
        again = len(asked)
        for number in range(PROCESSES):  # everybody once more: nothing to ask
            work(number, 99, server.url, address, folder)
        again = len(asked) - again
        paths = "".join(p.read_text() for p in Path(folder).iterdir())
    print_results(asked, team, restarts, ended, found, stored, again, seconds, PASSWORD in paths)
    assert not todo, f"it ended before {todo}"


def print_results(asked, team, restarts, ended, found, stored, again, seconds, leaked) -> None:
    "Compare, print, and fail if anything was lost or asked twice without a kill."
    requests = defaultdict(list)
    for text, who, when in asked:
        requests[text].append((who, when))
    killed = dict(team.kills)
    repeated = {text: all_of for text, all_of in requests.items() if len(all_of) > 1}
    more = sum(len(all_of) - 1 for all_of in repeated.values())
    unexplained = [
        (text, who)
        for text, all_of in repeated.items()
        for who, when in all_of[:-1]
        if who not in killed or not when <= killed[who] + 0.1 or killed[who] - when > WAIT + 1.0
    ]
    together: dict[str, set] = defaultdict(set)
    for one in found:
        for key, reply in one["replies"].items():
            together[key].add(reply)
    total = SHARED + PROCESSES * OWN
    print(f"{PROCESSES} processes, {total:,} prompts ({SHARED:,} asked by all): {seconds:.0f} s, exit codes {ended}")
    print(f"kills: {len(team.kills)} ({', '.join(who for who, _ in team.kills)}, as process-life)")
    print(f"restarts of the database: {', '.join(f'{how} after {n:,} requests' for how, n in restarts)}")
    print(f"requests: {len(asked):,} for {len(requests):,} prompts; {len(repeated)} prompts asked more than once")
    print(f"  asked again because the process was killed with them under way: {more - len(unexplained)}")
    print(f"  asked again without such a reason: {len(unexplained)}")
    print(f"replies in the store: {len(stored):,}; failed: {sum(one['failed'] for one in found)}")
    differing = sum(len(replies) > 1 for replies in together.values())
    lost = sum(stored.get(key) not in replies for key, replies in together.items())
    print(f"prompts with different replies in two processes: {differing}; not as in the store: {lost}")
    print(f"asked when all four run once more: {again}; password in a file: {leaked}")
    right = (
        not unexplained
        and len(stored) == len(requests) == len(together) == total
        and more <= KILLS * AT_ONCE
        and ended == [0] * PROCESSES
        and not (differing or lost or again or leaked)
        and not any(one["failed"] for one in found)
    )
    print("RIGHT" if right else "WRONG")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        work(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
    elif reason := missing():
        sys.exit(reason)
    else:
        main(int(sys.argv[1]) if len(sys.argv) == 2 else 0)
