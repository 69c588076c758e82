"""One run on workers of this machine, beside one process: `python tools/benchmarks/bench_workers.py [--size 50m]`.

A Llama with random weights (about 50 or 110 million parameters, made on the spot with a tokenizer trained on the
questions) is asked the bundled benchmark in all variants: in one process with torch's usual threads, in one process
with one thread, on 1 worker and on 2. The workers have loaded the model before. In each round every way is timed once,
one after the other, so that a busy machine is busy for all of them; the best round of each way counts. The processor
time of all processes stands beside the clock's: on a busy machine, it is what one can compare.

The speed-up against one process with one thread is at most the number of workers. Against one process with all threads
it is what dividing a run brings beyond what torch already does.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import torch
from measure import report
from random_llama import make_llama, train_tokenizer

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.cli.respondents import make_respondent
from cora_nb.prompts.templates import make_prompts
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.workers import local_workers
from cora_nb.runs.workers import evaluate_on, Dividing
from cora_nb.variants.families import make_variants

SHAPES = {"tiny": (128, 344, 2, 4), "50m": (640, 1728, 10, 10), "110m": (768, 2048, 16, 12)}


def worker_time(client) -> float:
    "Processor seconds of all workers so far."
    return sum(client.run(time.process_time).values())


class Best:
    "The fastest round of one way to ask."

    def __init__(self, what: str):
        self.what, self.wall, self.cpu, self.load = what, float("inf"), 0.0, 0.0

    def take(self, work, others=lambda: 0.0):
        "Time one round; what the work returns."
        mine, theirs, start = time.process_time(), others(), time.perf_counter()
        found = work()
        wall = time.perf_counter() - start
        cpu = time.process_time() - mine + others() - theirs
        if wall < self.wall:
            self.wall, self.cpu, self.load = wall, cpu, os.getloadavg()[0]
        print(f"  {self.what}: {wall:.1f} s, {cpu:.1f} s of processors, load {os.getloadavg()[0]:.1f}", flush=True)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", choices=SHAPES, default="50m")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2, help="beside 1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--respondent", choices=("causal", "likelihood"), default="likelihood")
    given = parser.parse_args()
    variants = make_variants(math_benchmark(given.questions))
    usual = torch.get_num_threads()
    ways = {name: Best(name) for name in (f"one process, {usual} threads", "one process, 1 thread")}
    with tempfile.TemporaryDirectory(prefix="bench_workers_") as name:
        folder = Path(name)
        train_tokenizer(folder / "random", [p.text for p in make_prompts(variants)])
        parameters = make_llama(folder / "random", SHAPES[given.size])
        spec = f"{given.respondent}:{folder / 'random'}"
        print(f"{parameters:,} parameters, {given.respondent}, {len(variants):,} variants, {os.cpu_count()} cores")
        respondent = make_respondent(spec)
        evaluate(respondent, variants[:20], progress=False)  # loads the model
        for round_ in range(given.rounds):
            for best, threads in zip([*ways.values()][:2], (usual, 1)):
                torch.set_num_threads(threads)
                alone = best.take(lambda: evaluate(respondent, variants, progress=False))
            torch.set_num_threads(usual)
            for n in (1, given.workers):
                with local_workers(n, gpus=[]) as client:
                    client.wait_for_workers(n)
                    load = folder / f"load-{round_}-{n}"
                    evaluate_on(client, spec, variants[: 80 * n], load, dividing=Dividing(progress=False, shards=4 * n))
                    each = sorted(set(client.run(_threads).values()))
                    what = f"{n} worker{'s' if n > 1 else ''}, {each[0]} thread{'s' if each[0] > 1 else ''} each"
                    out = folder / f"run-{round_}-{n}"
                    best = ways.setdefault(what, Best(what))
                    run = best.take(
                        lambda out=out, client=client: evaluate_on(
                            client, spec, variants, out, dividing=Dividing(progress=False)
                        ),
                        lambda client=client: worker_time(client),
                    )
                    assert run.table["prediction"].equals(alone.table["prediction"]), "other predictions"
    whole, single = [*ways.values()][:2]
    for best in ways.values():
        report(
            best.what,
            seconds=best.wall,
            processor_seconds=best.cpu,
            load=best.load,
            speed_up=whole.wall / best.wall,
            speed_up_over_1_thread=single.wall / best.wall,
        )


def _threads() -> int:
    "The threads that torch uses in a worker."
    import torch

    return torch.get_num_threads()


if __name__ == "__main__":
    main()
