"""5,000 requests at a server that takes 50 ms for each, 256 at a time, beside three bounds on what is possible.

The ideal is 256 / 50 ms. The server's capacity is what a raw socket load (no HTTP library) gets out of it. The bare
`openai` client is the same 5,000 requests by the same number of tasks with nothing of ours around it: as its
documentation uses it, and then with our measures, pools of four connections (with one SSL context) and the reply left
as plain JSON. Ours differs from the last of these in two ways: it adds a layer (retries, pauses, deadlines, reading,
order), and it saves what the package does to build each request, because it copies a pattern that was built once.
A last way is the whole of `evaluate`, with a store on disk: prompts, keys, grading, progress, and the table as well.

The server is a process of its own on 127.0.0.1. On two cores it takes one and the client the other. Processor time
is printed beside the rate: on a busy machine it is the steadier of the two, but not steady. So ours and the bare client
with plain JSON are measured next to each other in each round, first the one and then the other, and the ratio is taken
within a round. `--pairs` measures only these two. Needs no network, and stops by itself.
"""

import argparse
import asyncio
import gc
import json
import multiprocessing
import statistics
import tempfile
import time
import warnings

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.chat_replies import ssl_context
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants
from measure import report

REQUESTS, AT_ONCE, SECONDS = 5000, 256, 0.05
LEAST = "bare openai client, pools of 4, plain JSON"
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


class Load(asyncio.Protocol):
    "One raw connection: sends the next request when the last one is answered."

    def __init__(self, request: bytes, left: list[int], done: asyncio.Event):
        self.request, self.left, self.done, self.missing = request, left, done, 0

    def connection_made(self, transport):
        self.transport = transport
        self.next()

    def next(self):
        if self.left[0] == 0:
            return self.transport.close()
        self.left[0] -= 1
        self.missing = len(ANSWER)
        self.transport.write(self.request)

    def data_received(self, data):
        self.missing -= len(data)
        if self.missing:
            return
        self.left[1] -= 1
        if not self.left[1]:
            self.done.set()
        self.next()


async def raw_load(address: str, prompts) -> int:
    "All requests over bare sockets."
    host, port = address.removeprefix("http://").removesuffix("/v1").split(":")
    body = json.dumps(ChatRespondent("m", base_url=address).body(prompts[0]) | {"max_tokens": 1}).encode()
    request = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer none\r\nContent-Length: %d\r\n\r\n%s"
        % (len(body), body)
    )
    left, done = [len(prompts), len(prompts)], asyncio.Event()
    loop = asyncio.get_running_loop()
    for _ in range(AT_ONCE):
        await loop.create_connection(lambda: Load(request, left, done), host, int(port))
    await done.wait()
    return len(prompts) - left[1]


async def bare_client(address: str, prompts, pool: int, typed: bool = True) -> int:
    "The `openai` client and nothing else: `pool` connections for each; replies are openai's objects or plain JSON."
    import openai

    limits = type(openai.DEFAULT_CONNECTION_LIMITS)(max_connections=pool, max_keepalive_connections=pool)
    http = [openai.DefaultAsyncHttpxClient(limits=limits, verify=ssl_context()) for _ in range(-(-AT_ONCE // pool))]
    clients = [
        openai.AsyncOpenAI(api_key="none", base_url=address, max_retries=0, timeout=60, http_client=h) for h in http
    ]
    todo, texts = iter(prompts), []

    async def worker(client):
        for p in todo:
            fields = {"model": "m", "messages": p.messages, "temperature": 0.0, "max_tokens": 1}
            if typed:
                texts.append((await client.chat.completions.create(**fields)).choices[0].message.content)
            else:
                texts.append(
                    (await client.post("/chat/completions", body=fields, cast_to=object))["choices"][0]["message"][
                        "content"
                    ]
                )

    await asyncio.gather(*(worker(clients[i % len(clients)]) for i in range(AT_ONCE)))
    await asyncio.gather(*(c.close() for c in clients))
    return texts.count("B")


async def ours(address: str, prompts) -> int:
    "`ChatRespondent`, from its construction to its last reply."
    replies = [r async for _, r in ChatRespondent("m", base_url=address, concurrency=AT_ONCE).answer(prompts)]
    return replies.count(Reply("B", meta=replies[0].meta))


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
    assert answered == REQUESTS or callable(work), f"{answered} of {REQUESTS} answered"
    return answered / seconds, 1000 * cpu / answered


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="each way is measured so often, in turn; the best counts")
    parser.add_argument("--pairs", action="store_true", help="only ours and the bare client with plain JSON")
    rounds, only_pairs = parser.parse_args().rounds, parser.parse_args().pairs
    warnings.simplefilter("error")
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
            "server's capacity (raw sockets)": lambda: raw_load(address, prompts),
            "bare openai client": lambda: bare_client(address, prompts, AT_ONCE),
            "bare openai client, pools of 4": lambda: bare_client(address, prompts, 4),
            LEAST: lambda: bare_client(address, prompts, 4, typed=False),
            "ours": lambda: ours(address, prompts),
            "ours, the whole of evaluate": lambda: lambda: whole_run(address, variants),
        }
        if only_pairs:
            ways = {name: ways[name] for name in (LEAST, "ours")}
        found = {name: [] for name in ways}
        for turn in range(-1, rounds):  # the first round is not counted
            for name, way in list(ways.items())[:: -1 if turn % 2 else 1]:
                measured = timed(way())
                found[name] += [measured] if turn >= 0 else []
    finally:
        server.terminate()
        server.join(10)
    rate = {name: max(r for r, _ in runs) for name, runs in found.items()}
    cpu = {name: min(c for _, c in runs) for name, runs in found.items()}
    pairs = sorted(a[1] / b[1] for a, b in zip(found["ours"], found[LEAST]))
    report(
        f"processor time, ours over {LEAST}, within a round",
        median=statistics.median(pairs),
        lowest=pairs[0],
        highest=pairs[-1],
        of_sums=sum(c for _, c in found["ours"]) / sum(c for _, c in found[LEAST]),
        of_the_best=cpu["ours"] / cpu[LEAST],
    )
    if only_pairs:
        raise SystemExit
    ideal = AT_ONCE / SECONDS
    report("ideal", requests_per_second=ideal)
    for name in ways:
        report(name, requests_per_second=rate[name], processor_ms_per_request=cpu[name])
    capacity, plain, small, least = (rate[n] for n in list(ways)[:4])
    report(
        "rate, ours over",
        ideal=rate["ours"] / ideal,
        capacity=rate["ours"] / capacity,
        lower_of_both=rate["ours"] / min(ideal, capacity),
        bare_client=rate["ours"] / plain,
        pools_of_4=rate["ours"] / small,
        pools_of_4_plain_JSON=rate["ours"] / least,
    )
    report(
        "processor time, ours over",
        bare_client=cpu["ours"] / cpu["bare openai client"],
        pools_of_4_plain_JSON=cpu["ours"] / cpu[LEAST],
    )
