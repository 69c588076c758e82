"""200 prompts at a server that allows 5 or 10 requests a second, 32 and 64 at once: the time beside the ideal time.

Three kinds of server: a window (so many requests in the last second), a bucket that holds a second's worth, and a
bucket that holds one request (no two may come together). Each with `Retry-After` in whole seconds, as most servers
send it, and without. The ideal time is that of somebody who knows the limit: 200 requests at that rate. Four runs
wait side by side, and all take about five minutes (name kinds to run fewer). No prompt may fail; that is also what the
tests check.
"""

import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.protocol import ask
from cora_nb.variants.families import make_variants
from measure import report

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from faulty_server import GOOD, Answer, FaultyServer, refusal  # noqa: E402


class Limit:
    "The plan of a server: at most so many requests a second."

    def __init__(self, kind: str, rate: float, tell: bool):
        self.kind, self.rate, self.tell = kind, rate, tell
        self.size = rate if kind == "bucket" else 1
        self.held, self.at, self.times, self.refused = self.size, time.monotonic(), [], 0

    def __call__(self, asked) -> Answer:
        now = time.monotonic()
        if self.kind == "window":
            self.times = [t for t in self.times if t > now - 1]
            allowed, wait = len(self.times) < self.rate, 1.0
            self.times += [now] * allowed
        else:
            self.held = min(self.size, self.held + (now - self.at) * self.rate)
            self.at = now
            allowed, wait = self.held >= 1, (1 - self.held) / self.rate
            self.held -= allowed
        self.refused += not allowed
        headers = {"Retry-After": str(math.ceil(wait))} if self.tell else {}
        return GOOD if allowed else Answer(429, refusal("slow down"), headers)


def measured(limit: Limit, prompts, at_once: int) -> dict[str, object]:
    "What one run takes."
    with FaultyServer(limit) as server:
        start = time.monotonic()
        replies = ask(ChatRespondent("m", base_url=server.url, concurrency=at_once), prompts)
        seconds = time.monotonic() - start
    return {
        "failed": sum(r.error is not None for r in replies),
        "seconds": seconds,
        "refused": limit.refused,
        "over_the_ideal_time": seconds / (len(prompts) / limit.rate),
    }


if __name__ == "__main__":
    prompts = make_prompts(make_variants(math_benchmark(n=10)), template="bare")[:200]
    assert len(prompts) == 200
    kinds = sys.argv[1:] or ["window", "bucket", "bucket of one"]
    with FaultyServer() as server:  # what is imported and built once is not counted
        ask(ChatRespondent("m", base_url=server.url), prompts[:5])
    cases = [
        (k, rate, tell, at_once) for k in kinds for rate in (5, 10) for tell in (True, False) for at_once in (32, 64)
    ]
    with ThreadPoolExecutor(4) as threads:
        found = dict(zip(cases, threads.map(lambda c: measured(Limit(*c[:3]), prompts, c[3]), cases)))
    for kind, rate, tell, at_once in cases:
        told = "with Retry-After" if tell else "without"
        report(f"{kind}, {rate} a second, {told}, {at_once} at once", **found[kind, rate, tell, at_once])
    worst = {k: max(found[c]["over_the_ideal_time"] for c in cases if c[0] == k) for k in {c[0] for c in cases}}
    report("worst", failed=sum(f["failed"] for f in found.values()), **worst)
