"""Workers and shards under kills, by hand: `python tools/stress/kill_workers.py [PART...] [--questions 300]`.

The package's model `causal:organism/steady` is asked questions of the bundled benchmark in all variants, and every run
below must have the rows of one process: the same order, predictions identical, scores within 1e-4, as many prompts
asked.

    speed    one process, 1 worker and 2 workers on this machine: rows and time
    workers  20 times SIGKILL to a random worker that is in the middle of a shard
    command  10 times SIGKILL to `cora run --workers 2` while replies arrive, and the same command again
    array    `cora run --shard n/12` in processes of their own, 10 times SIGKILL while replies arrive, then `cora join`

A kill that does not hit work under way fails the script. What it prints is the result.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.cli.respondents import make_respondent
from cora_nb.responses.files import read_responses
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.shards import shards_there
from cora_nb.runs.workers import local_workers
from cora_nb.runs.workers import evaluate_on, Dividing
from cora_nb.variants.families import make_variants
from helpers import command

SPEC = "causal:organism/steady"


def check_equal(run, alone, what: str) -> str:
    "Fail unless two runs have the same rows, and say how much their scores differ."
    columns = [c for c in alone.table if c not in ("scores", "confidence")]
    assert run.table[columns].equals(alone.table[columns]), f"{what}: other rows"
    assert run.questions.equals(alone.questions), f"{what}: other questions"
    scores = [np.array(r.table["scores"].tolist(), dtype=object) for r in (run, alone)]
    apart = max(float(np.abs(np.subtract(a, b, dtype=float)).max()) for a, b in zip(*scores))
    assert apart <= 1e-4, f"{what}: scores differ by {apart}"
    asked = [r.facts.calls["asked"] for r in (run, alone)]
    assert asked[0] == asked[1], f"{what}: {asked[0]} prompts asked, and {asked[1]} by one process"
    told = [r.facts.without("run") for r in (run, alone)]
    assert not told[0].differences(told[1]), f"{what}: other facts"
    return f"{len(run):,} rows as in one process, scores within {apart:.1e}, {asked[0]:,} prompts asked"


def speed(variants, alone, folder: Path, repeats: int) -> None:
    "Rows and times without kills."
    for n in (1, 2):
        taken = []
        for attempt in range(repeats):
            out = folder / f"speed-{n}-{attempt}"
            with local_workers(n) as client:
                start = time.perf_counter()
                run = evaluate_on(client, SPEC, variants, out, dividing=Dividing(progress=False))
                taken.append(time.perf_counter() - start)
                start = time.perf_counter()
                again = evaluate_on(client, SPEC, variants, out, dividing=Dividing(progress=False))
                skipped = time.perf_counter() - start
                assert again.equals(run)
                start = time.perf_counter()
                evaluate_on(client, SPEC, variants, folder / f"warm-{n}-{attempt}", dividing=Dividing(progress=False))
                warm = time.perf_counter() - start
            print(f"  {n} worker(s): {check_equal(run, alone, 'speed')}")
            load = os.getloadavg()[0]
            print(f"    {taken[-1]:.1f} s, {warm:.1f} s with torch imported, again {skipped:.1f} s; load {load:.1f}")


def workers(variants, alone, folder: Path, kills: int, random_: random.Random) -> None:
    "Kill random workers in the middle of a shard."
    done, runs = 0, 0
    while done < kills:
        out, result = folder / f"workers-{runs}", {}
        with local_workers(2) as client:

            def ask(out=out, client=client, result=result):
                try:
                    result["run"] = evaluate_on(client, SPEC, variants, out, dividing=Dividing(progress=False))
                except BaseException as e:
                    result["error"] = e

            asking = threading.Thread(target=ask)
            asking.start()
            last = 0  # shards there at the last kill
            while asking.is_alive() and done < kills:
                time.sleep(random_.uniform(0.2, 3.0))
                if done % 2 and len(shards_there(out)) == last:
                    continue  # every other kill comes after more shards have been finished
                busy = [address for address, keys in client.processing().items() if keys]
                if not busy:
                    continue
                address = random_.choice(sorted(busy))
                try:
                    pid = client.run(os.getpid, workers=[address])[address]
                    stacks = client.call_stack(keys=list(client.processing()[address]))
                except (KeyError, OSError, ValueError):
                    continue  # it has just ended by itself
                if not stacks:
                    continue  # queued there, and not begun
                there = last = len(shards_there(out))
                os.kill(pid, signal.SIGKILL)
                done += 1
                print(f"    kill {done}: worker {pid} in the middle of a shard, {there} shards finished", flush=True)
            asking.join()
        if "error" in result:
            raise result["error"]
        runs += 1
        print(f"  run {runs}: {check_equal(result['run'], alone, 'workers')}")
    print(f"  {done} kills of workers in {runs} runs: nothing lost, nothing twice")


class Watched:
    "A command whose progress bar is read."

    def __init__(self, *words, cwd: Path):
        self.error = open(cwd / f"stderr-{random.getrandbits(40)}", "w+b")
        env = {**os.environ, "XDG_CACHE_HOME": str(cwd), "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
        full = command(*words)
        self.process = subprocess.Popen(full, cwd=cwd, stdout=subprocess.PIPE, stderr=self.error, env=env, text=True)

    def replies(self) -> tuple[int, int]:
        "How many replies the bar shows, of how many."
        text = Path(self.error.name).read_text(errors="replace")
        found = re.findall(r"\b(\d+)/(\d+) \[", text)
        return (int(found[-1][0]), int(found[-1][1])) if found else (0, 0)

    def kill_at_work(self, random_: random.Random, at_start: int) -> tuple[int, int] | None:
        "SIGKILL once some more replies have arrived and not all; the replies then. None if the command ended before."
        more = random_.random()
        while self.process.poll() is None:
            now, of = self.replies()
            if at_start < now < of and now - at_start > more * of / 6:
                if self.process.poll() is None:
                    self.process.send_signal(signal.SIGKILL)
                    self.process.wait()
                    return now, of
            time.sleep(0.02)
        return None

    def end(self) -> str:
        "Wait for the end; what was printed."
        out = self.process.communicate(timeout=600)[0]
        assert self.process.returncode == 0, Path(self.error.name).read_text(errors="replace")[-2000:]
        return out


def children(pid: int) -> list[int]:
    "The processes that a process has started, and theirs."
    found = []
    for task in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = task.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found += [int(task.parent.name), *children(int(task.parent.name))]
    return found


def whole_command(questions: int, alone, folder: Path, kills: int, random_: random.Random) -> None:
    "Kill the whole command, again and again."
    words = ["cora", "run", SPEC, "--limit", questions, "--workers", 2, "--store", "none", "--out", "command"]
    out, done, runs = folder / "command/math/steady", 0, 0
    while done < kills:
        there = sum(len(read_responses(file)) for file in shards_there(out).values())
        watched = Watched(*words, cwd=folder)
        while watched.process.poll() is None and len(workers_ := children(watched.process.pid)) < 2:
            time.sleep(0.05)
        hit = watched.kill_at_work(random_, there)
        if hit is None:
            watched.end()
            runs += 1
            print(f"  run {runs}: {check_equal(read_responses(out), alone, 'command')}")
            (folder / "command").rename(folder / f"command-{runs}")
            continue
        done += 1
        now = sum(len(read_responses(file)) for file in shards_there(out).values())  # each of them is whole
        began = time.monotonic()
        while alive := [pid for pid in workers_ if Path(f"/proc/{pid}/cmdline").exists() and cmdline(pid)]:
            assert time.monotonic() - began < 30, f"workers stay behind: {alive}"
            time.sleep(0.1)
        print(f"    kill {done}: at reply {hit[0]} of {hit[1]}, {now} rows in shards, workers gone", flush=True)
    print(f"  after {done} kills:", end=" ")
    Watched(*words, cwd=folder).end()
    print(check_equal(read_responses(out), alone, "command"))
    print(f"  {done} kills of the whole command: nothing lost, nothing twice")


def cmdline(pid: int) -> bytes:
    "The words of a process; empty if it has ended."
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def array(questions: int, alone, folder: Path, kills: int, random_: random.Random, count: int = 12) -> None:
    "Shards in processes of their own, as the tasks of an array."
    words = ["cora", "run", SPEC, "--limit", questions, "--store", "none", "--out", "array"]
    out, done = folder / "array/math/steady", 0
    todo = list(range(1, count + 1))
    random_.shuffle(todo)
    while todo:
        pair, todo = todo[:2], todo[2:]
        tasks = {n: Watched(*words, "--shard", f"{n}/{count}", cwd=folder) for n in pair}
        for n, task in tasks.items():
            if done < kills and (hit := task.kill_at_work(random_, 0)):
                file = out / f"shards/{n:05}-of-{count:05}.parquet"
                assert not file.exists(), "the shard had ended"
                done += 1
                todo.append(n)
                print(f"    kill {done}: shard {n}/{count} at reply {hit[0]} of {hit[1]}", flush=True)
            else:
                task.end()
        if len(shards_there(out)) < count:
            said = subprocess.run(command("cora join", out), cwd=folder, capture_output=True, text=True)
            assert said.returncode == 1, said
    assert done == kills, f"only {done} kills"
    print(Watched("cora join", out, cwd=folder).end().split("\n\n")[1])
    print(f"  {check_equal(read_responses(out), alone, 'array')}")
    print(f"  {done} kills of array tasks: nothing lost, nothing twice")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", help="speed, workers, command or array; without any, all")
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, help="in place of 20 and 10")
    given = parser.parse_args()
    parts = given.parts or ["speed", "workers", "command", "array"]
    variants = make_variants(load_benchmark("math", limit=given.questions))
    taken = []
    for _ in range(given.repeats if "speed" in parts else 1):
        start = time.perf_counter()
        alone = evaluate(make_respondent(SPEC), variants, progress=False)
        taken.append(f"{time.perf_counter() - start:.1f}")
    load = os.getloadavg()[0]
    print(f"{given.questions} questions, {len(variants):,} variants; {os.cpu_count()} cores, load {load:.1f}")
    print(f"one process: {', '.join(taken)} s")
    random_ = random.Random(given.seed)
    with tempfile.TemporaryDirectory(prefix="kill_workers_") as name:
        folder = Path(name)
        for part in parts:
            print(f"{part}:", flush=True)
            start = time.perf_counter()
            if part == "speed":
                speed(variants, alone, folder, given.repeats)
            elif part == "workers":
                workers(variants, alone, folder, given.kills or 20, random_)
            elif part == "command":
                whole_command(given.questions, alone, folder, given.kills or 10, random_)
            elif part == "array":
                array(given.questions, alone, folder, given.kills or 10, random_)
            print(f"  ({time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
