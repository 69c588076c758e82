"""Three servers of different speed behind one respondent; one is killed in the middle of a run and started again.

Each server is a process of its own that answers a fixed number of requests at a time and keeps a list, on disk, of the
prompts that arrive and of those it has answered. Measured: the rate at each server alone, at all three together beside
the sum of these, and a run in which the fastest server is killed (SIGKILL) and started anew some seconds later.
Checked: each prompt has one reply, it is the right one, and it is in the store; no prompt was answered twice; only
prompts that were under way at the server that died were sent twice. Takes about two minutes, needs no network, and
stops by itself.
"""

import argparse
import asyncio
import json
import multiprocessing
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.responses.columns import REPLIED, in_state
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants

SPEEDS = {"fast": 0.08, "middling": 0.16, "slow": 0.32}  # seconds for one reply
SLOTS = 8  # requests that a server answers at a time; others wait
AT_ONCE = 16  # requests under way at each server
DEATH, AWAY = 0.33, 8.0  # the share of replies at which the fast server is killed; seconds until it is started again


class Serve(asyncio.Protocol):
    "Reads a request, waits for a free slot and the time of a reply, and answers with the end of the prompt."

    def __init__(self, seconds: float, slots: asyncio.Semaphore, log):
        self.seconds, self.slots, self.log = seconds, slots, log

    def connection_made(self, transport):
        self.transport, self.buffer = transport, b""

    def data_received(self, data):
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        if len(rest) >= length:
            self.buffer = rest[length:]
            prompt = json.loads(rest[:length])["messages"][-1]["content"]
            self.task = asyncio.get_running_loop().create_task(self.answer(prompt))

    async def answer(self, prompt: str) -> None:
        self.write_down("asked", prompt)
        async with self.slots:
            await asyncio.sleep(self.seconds)
        said = {"message": {"role": "assistant", "content": prompt[-60:]}, "finish_reason": "stop"}
        body = json.dumps({"choices": [said], "model": "m", "usage": {"prompt_tokens": 90, "completion_tokens": 1}})
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body.encode())}\r\n\r\n"
        if not self.transport.is_closing():
            self.transport.write(head.encode() + body.encode())
            self.write_down("answered", prompt)

    def write_down(self, what: str, prompt: str) -> None:
        self.log.write(json.dumps([what, prompt]) + "\n")
        self.log.flush()


def serve(port: int, seconds: float, log: str, told) -> None:
    "A server's process: tells its port and serves until it is ended."

    async def main():
        slots = asyncio.Semaphore(SLOTS)
        with open(log, "a") as file:
            server = await asyncio.get_running_loop().create_server(
                lambda: Serve(seconds, slots, file), "127.0.0.1", port, backlog=1024
            )
            told.send(server.sockets[0].getsockname()[1])
            await server.serve_forever()

    asyncio.run(main())


class Server:
    "A process that can be killed and started again at the same address."

    def __init__(self, name: str, folder: Path):
        self.name, self.log, self.port = name, folder / f"{name}.jsonl", 0
        self.log.touch()
        self.start()
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        self.process = context.Process(
            target=serve, args=(self.port, SPEEDS[self.name], str(self.log), sender), daemon=True
        )
        self.process.start()
        assert receiver.poll(30), f"the {self.name} server did not start"
        self.port = receiver.recv()

    def kill(self) -> None:
        self.process.kill()
        self.process.join(10)

    def prompts(self, what: str) -> list[str]:
        "The prompts that were asked, or answered, so far."
        entries = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [prompt for done, prompt in entries if done == what]


def run(servers, variants, store, watch=None) -> tuple[float, list[str]]:
    "Replies a second, and the lines that were said. Each reply must be the right one."
    who = ChatRespondent("m", base_url=[s.url for s in servers], concurrency=AT_ONCE, server="fleet under stress")
    if watch is not None:
        watch(store)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        start = time.monotonic()
        found = evaluate(who, variants, Asking("bare"), store=store, progress=False, strict=None)
        seconds = time.monotonic() - start
    texts = [p.text[-60:] for p in make_prompts(variants, template="bare")]
    assert in_state(found.table, *REPLIED).all(), "some prompts failed"
    assert found.table["reply"].tolist() == texts, "some replies stand at the wrong prompt"
    return found.facts.calls["asked"] / seconds, [str(w.message) for w in said]


def kill_and_start_again(server: Server, store_path: Path, at: int, events: list[str]) -> None:
    "Kill a server when so many replies are in the store, and start it again."

    def work():
        with Store(store_path) as seen:
            while len(seen) < at:
                time.sleep(0.02)
            server.kill()
            events.append(f"killed with {len(seen):,} replies in the store")
            time.sleep(AWAY)
            server.start()
            events.append(f"started again with {len(seen):,} replies in the store")

    threading.Thread(target=work, daemon=True).start()


def main(questions: int) -> None:
    benchmark = math_benchmark(n=questions)
    variants = make_variants(benchmark)
    some = make_variants(benchmark[: questions // 8])
    distinct = len({p.text for p in make_prompts(variants, template="bare")})
    with tempfile.TemporaryDirectory() as folder:
        servers = [Server(name, Path(folder)) for name in SPEEDS]
        try:
            rates = {}
            for server in servers:
                with Store(Path(folder, f"{server.name}.sqlite")) as store:
                    rates[server.name], _ = run([server], some, store)
                limit = SLOTS / SPEEDS[server.name]
                print(f"{server.name}: {rates[server.name]:.1f} replies a second (its limit: {limit:.1f})")
            with Store(Path(folder, "together.sqlite")) as store:
                together, lines = run(servers, variants, store)
            total, limit = sum(rates.values()), sum(SLOTS / s for s in SPEEDS.values())
            print(f"all three: {together:.1f} replies a second, {together / total:.3f} of the sum {total:.1f}", end="")
            print(f", {together / limit:.3f} of the sum of their limits {limit:.1f}; said: {lines}")

            for server in servers:
                server.log.write_text("")
            path, events = Path(folder, "death.sqlite"), []
            with Store(path) as store:
                rate, lines = run(
                    servers,
                    variants,
                    store,
                    lambda store: kill_and_start_again(servers[0], path, int(DEATH * distinct), events),
                )
                kept = len(store)
            asked = Counter(p for s in servers for p in s.prompts("asked"))
            answered = Counter(p for s in servers for p in s.prompts("answered"))
            twice = [p for p, n in asked.items() if n > 1]
            print(f"with a death: {rate:.1f} replies a second, {rate / total:.3f} of the sum")
            print(*events, *lines, sep="\n")
            for server in servers:
                print(f"{server.name}: {len(server.prompts('answered')):,} answered")
            print(
                f"{distinct:,} different prompts, {kept:,} in the store, {len(answered):,} answered, "
                f"{sum(n > 1 for n in answered.values())} answered twice, {len(twice)} sent twice "
                f"(under way at the server that died; at most {AT_ONCE})"
            )
            assert kept == len(answered) == distinct and max(answered.values()) == 1
            assert len(twice) <= AT_ONCE and len(events) == 2 and len(lines) == 2
        finally:
            for server in servers:
                server.kill()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=300, help="questions of 20 variants each")
    main(parser.parse_args().questions)
