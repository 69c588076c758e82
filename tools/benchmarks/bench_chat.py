"""2,000 requests at a server that takes 50 ms for each, 256 at a time: beside the bare `openai` client and inspect.

The bare client is the same requests by the same number of tasks, as the documentation of `openai` has it, with nothing
of ours around it. Ours adds one prompt before all others, waiting, reading, what is noticed, and the order of replies;
the whole of `evaluate` adds prompts, keys, grading, a store on disk and the table. inspect is its provider for
OpenAI-compatible servers, asked by `InspectRespondent`, a quarter of the requests.

The server is a process of its own on 127.0.0.1. On two cores it takes one and the client the other. Processor time
is the steadier number on a busy machine, and ratios within a round are steadier still. Needs no network, and stops by
itself.
"""

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import statistics
import tempfile
import time
import warnings

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.inspect_models import InspectRespondent
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants
from measure import report

REQUESTS, AT_ONCE, SECONDS = 2000, 256, 0.05
BARE, OURS, WHOLE, INSPECT = "bare openai client", "ours", "ours, the whole of evaluate", "inspect"
LIMIT = 120.0  # seconds for any one of the measurements
BODY = json.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "B"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 90, "completion_tokens": 1, "total_tokens": 91},
    }
).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


class Serve(asyncio.Protocol):
    "Reads a request to the end of its body and answers it SECONDS later."

    def connection_made(self, transport):
        self.transport, self.buffer, self.missing = transport, b"", None

    def data_received(self, data):
        self.buffer += data
        if self.missing is None and (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            self.missing = end + 4 + int(head[head.index(b"content-length:") + 15 :].split(b"\r\n", 1)[0])
        if self.missing is not None and len(self.buffer) >= self.missing:
            self.buffer, self.missing = self.buffer[self.missing :], None
            asyncio.get_running_loop().call_later(SECONDS, self.transport.write, ANSWER)


def serve(port) -> None:
    "The server's process: tells its port and serves until it is ended."

    async def main():
        server = await asyncio.get_running_loop().create_server(Serve, "127.0.0.1", 0, backlog=1024)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


async def bare_client(address: str, prompts) -> int:
    "The `openai` client and nothing else."
    import openai

    todo, texts = iter(prompts), []
    async with openai.AsyncOpenAI(api_key="none", base_url=address, max_retries=0) as client:

        async def worker():
            for p in todo:
                fields = {"model": "m", "messages": p.messages, "temperature": 0.0, "max_tokens": 1}
                texts.append((await client.chat.completions.create(**fields)).choices[0].message.content)

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return texts.count("B")


async def ours(address: str, prompts) -> int:
    "`ChatRespondent`, from its construction to its last reply."
    replies = [r async for _, r in ChatRespondent("m", base_url=address, concurrency=AT_ONCE).answer(prompts)]
    return replies.count(Reply("B", meta=replies[0].meta))


async def inspect(address: str, prompts) -> int:
    "`InspectRespondent`, from its construction to its last reply."
    os.environ |= {"LOCAL_BASE_URL": address, "LOCAL_API_KEY": "none"}
    who = InspectRespondent("openai-api/local/m", concurrency=AT_ONCE)
    return [r.text async for _, r in who.answer(prompts[: REQUESTS // 4])].count("B")


def whole_run(address: str, variants) -> int:
    "`evaluate` with a store: prompts, keys, claims, requests, grading, the store's file, and the table."
    who = ChatRespondent("m", base_url=address, concurrency=AT_ONCE)
    with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/r.sqlite") as store:
        run = evaluate(who, variants, Asking("bare"), store=store, progress=False, strict=None)
    return int((run.table["reply"] == "B").sum()) - run.facts.calls["prompts"] + run.facts.calls["asked"]


def timed(work) -> tuple[float, float]:
    "Requests a second, and milliseconds of processor time for each."
    gc.collect()
    start, cpu = time.perf_counter(), time.process_time()
    answered = work() if callable(work) else asyncio.run(asyncio.wait_for(work, LIMIT))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return answered / seconds, 1000 * cpu / answered


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="each way is measured so often, in turn")
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")  # of libraries
    variants = make_variants(math_benchmark(n=REQUESTS // 20))
    prompts = make_prompts(variants, template="bare")[:REQUESTS]
    assert len(prompts) == REQUESTS
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    server = context.Process(target=serve, args=(sender,), daemon=True)
    server.start()
    try:
        assert receiver.poll(30), "the server did not start"
        address = f"http://127.0.0.1:{receiver.recv()}/v1"
        ways = {
            BARE: lambda: bare_client(address, prompts),
            OURS: lambda: ours(address, prompts),
            WHOLE: lambda: lambda: whole_run(address, variants),
            INSPECT: lambda: inspect(address, prompts),
        }
        found = {name: [] for name in ways}
        for turn in range(-1, rounds):  # the first round is not counted
            for name, way in list(ways.items())[:: -1 if turn % 2 else 1]:
                measured = timed(way())
                found[name] += [measured] if turn >= 0 else []
    finally:
        server.terminate()
        server.join(10)
    for name, runs in found.items():
        best = {"requests_per_second": max(r for r, _ in runs), "processor_ms_per_request": min(c for _, c in runs)}
        report(name, **best)
    for name, other in ((OURS, BARE), (WHOLE, BARE), (OURS, INSPECT)):
        pairs = sorted(a[1] / b[1] for a, b in zip(found[name], found[other]))
        about = {"median": statistics.median(pairs), "lowest": pairs[0], "highest": pairs[-1]}
        report(f"processor time, {name} over {other}, within a round", **about)
