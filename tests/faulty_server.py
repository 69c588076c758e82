"""An OpenAI-compatible server on this machine that fails in every way we could think of, on demand.

`FaultyServer(plan)` asks its plan for an `Answer` to each request. A plan is a list of answers, given in the order in
which requests arrive (after the last one, all is well), or a function of the request. The server counts: who asked
what, and how many requests were under way at once.
"""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


def completion(text: Any = "B", **choice: Any) -> dict[str, Any]:
    "The JSON of a good chat completion; `choice` adds to its only choice or replaces parts of it."
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"} | choice],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
    }


def refusal(message: str, **more: Any) -> dict[str, Any]:
    "The JSON of an error, as OpenAI words it."
    return {"error": {"message": message, "type": "error", "param": None, "code": None} | more}


@dataclass(frozen=True)
class Answer:
    "What the server does with one request."

    status: int = 200
    body: Any = field(default_factory=completion)  # JSON values, or bytes as they are
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0  # seconds before anything is sent
    cut: str | None = None  # "before": the connection ends without a byte; "mid": in the middle of the body
    drip: float = 0.0  # seconds between the bytes of the body
    raw: bytes | None = None  # sent in place of a response, byte for byte
    twice: bool = False  # the same response once more, in the same segment
    close: bool = False  # the connection ends after this


@dataclass(frozen=True)
class Asked:
    "One request as it arrived."

    number: int  # from 0
    path: str
    headers: dict[str, str]  # names in lower case
    body: Any  # JSON values

    @property
    def prompt(self) -> str:
        "The last thing that was said."
        return self.body["messages"][-1]["content"] if "messages" in self.body else self.body["prompt"]


GOOD = Answer()
LIMITS = {  # too many requests: waited for, as often as it takes
    "429": Answer(429, refusal("slow down")),
    "429 with Retry-After": Answer(429, refusal("slow down"), {"Retry-After": "0.01"}),
    "429 with retry-after-ms": Answer(429, refusal("slow down"), {"retry-after-ms": "10"}),
    "429 with a date": Answer(429, refusal("slow down"), {"Retry-After": "Fri, 20 Nov 2020 20:00:00 GMT"}),
    "429 with nonsense": Answer(429, refusal("slow down"), {"Retry-After": "Fri, 31 Dec 99999 23:59:59 GMT"}),
    "503 with Retry-After": Answer(503, refusal("overloaded"), {"Retry-After": "0.01"}),
}
AGAIN = {  # a bad moment: the respondent should try again
    "408": Answer(408, refusal("too late")),
    "409": Answer(409, refusal("locked")),
    "500": Answer(500, refusal("something broke")),
    "502, in HTML": Answer(502, b"<html>\n<body>Bad Gateway</body>\n</html>", {"Content-Type": "text/html"}),
    "503": Answer(503, refusal("overloaded")),
    "cut before any byte": Answer(cut="before"),
    "cut in the body": Answer(cut="mid"),
    "malformed JSON": Answer(body=b'{"choices": [{"mess'),
    "no JSON": Answer(body=b"all is well", headers={"Content-Type": "text/plain"}),
    "empty body": Answer(body=b""),
    "JSON without end": Answer(body=b"[" * 100_000),
    "a list": Answer(body=[1, 2, 3]),
    "null": Answer(body=None),
    "no choices": Answer(body={"choices": []}),
    "choices that are no list": Answer(body={"choices": {"a": 1}}),
    "a choice that is none": Answer(body={"choices": ["B"]}),
    "an error with status 200": Answer(body=refusal("upstream is down")),
    "no message": Answer(body={"choices": [{"index": 0, "finish_reason": "stop"}]}),
    "message null": Answer(body=completion(message=None)),
    "content that is no text": Answer(body=completion({"deep": 1})),
    "log-probability of 10,000": Answer(body=completion(logprobs={"content": [{"token": "B", "logprob": 1e4}]})),
}
STOPS = {  # the same for all prompts: the run should stop
    "wrong key": Answer(401, refusal("Incorrect API key provided", code="invalid_api_key")),
    "unknown model": Answer(404, refusal("The model 'some-model' does not exist", code="model_not_found")),
    "wrong address": Answer(404, b"not found", {"Content-Type": "text/plain"}),
    "no permission": Answer(403, refusal("not for you")),
    "account empty": Answer(
        429, refusal("You exceeded your current quota", type="insufficient_quota", code="insufficient_quota")
    ),
    "account empty, elsewhere": Answer(402, refusal("Insufficient balance")),
    "not made for this": Answer(405, refusal("Method not allowed")),
}
RECORDED = {  # this prompt will not be answered
    "400": Answer(400, refusal("this prompt is too long")),
    "422": Answer(422, {"detail": "bad field"}),
    "content filter": Answer(body=completion(None, finish_reason="content_filter")),
    "refused with 400": Answer(400, refusal("filtered", code="content_filter")),
}


class FaultyServer:
    "A server in a thread of its own, to be used with `with`."

    def __init__(
        self,
        plan: Sequence[Answer] | Callable[[Asked], Answer] = (),  # what to do with each request
        gate: float = 0,  # no request after the first is answered before so many are under way, or before `open_gate`
        port: int = 0,  # 0: any that is free
    ):
        self.plan, self.gate, self.port = plan, gate, port
        self.asked: list[Asked] = []
        self.under_way = self.most_at_once = 0

    def __enter__(self):
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(120), "the server did not start"
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(30)

    def wait_until_left(self, seconds: float = 120) -> None:
        "Wait until `asked` has everything that was sent by clients that have ended; no other client may be there."
        # Connections are taken in the order in which they came: when this one is there, so were all others.
        with socket.create_connection(self._listening.sockets[0].getsockname()) as connection:
            last = connection.getsockname()
        end = time.monotonic() + seconds
        while self._connections or self._newest != last:
            assert time.monotonic() < end, "a client is still there"
            time.sleep(0.001)

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._end, self._open = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        self._connections: set[asyncio.Transport] = set()
        self._newest = None  # address of the client that came last
        server = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port, backlog=1024)
        self._listening = server
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        ready.set()
        await self._end.wait()
        server.close()
        for transport in list(self._connections):
            transport.abort()
        await asyncio.sleep(0)  # each connection hears of its end

    def open_gate(self) -> None:
        "Answer what the gate has held back, and from now on everything; from any thread."
        self._loop.call_soon_threadsafe(self._open.set)

    def choose(self, asked: Asked) -> Answer:
        "The plan's answer."
        if callable(self.plan):
            return self.plan(asked)
        return self.plan[asked.number] if asked.number < len(self.plan) else GOOD


class _Connection(asyncio.Protocol):
    "One connection: reads a request, answers it, reads the next."

    def __init__(self, server: FaultyServer):
        self.server, self.buffer, self.task = server, b"", None

    def connection_made(self, transport):
        self.transport = transport
        self.server._connections.add(transport)
        self.server._newest = transport.get_extra_info("peername")

    def connection_lost(self, exc):
        self.server._connections.discard(self.transport)
        if self.task:
            self.task.cancel()

    def data_received(self, data):
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        self.buffer = rest[length:]
        asked = Asked(len(self.server.asked), first.split(" ")[1], headers, json.loads(rest[:length] or b"null"))
        self.server.asked.append(asked)
        self.task = self.server._loop.create_task(self.answer(self.server.choose(asked), asked))

    async def answer(self, answer: Answer, asked: Asked) -> None:
        server = self.server
        server.under_way += 1
        server.most_at_once = max(server.most_at_once, server.under_way)
        if server.under_way >= server.gate:
            server._open.set()
        try:
            if asked.number:
                await server._open.wait()
            if answer.wait:
                await asyncio.sleep(answer.wait)
        finally:
            server.under_way -= 1  # before the first byte: the client cannot ask anew before it has seen one
        await self.send(answer, asked)

    async def send(self, answer: Answer, asked: Asked) -> None:
        if answer.cut == "before":
            return self.transport.abort()
        if answer.raw is not None:
            self.transport.write(answer.raw)
            return self.transport.close() if answer.close else None
        body = answer.body
        if isinstance(body, dict) and "choices" in body and isinstance(asked.body, dict):
            body = {"model": asked.body.get("model")} | body  # the model that was asked for answers
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))} | answer.headers
        head = (
            f"HTTP/1.1 {answer.status} Status\r\n"
            + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            + "\r\n"
        )
        if answer.cut == "mid":
            self.transport.write(head.encode() + body[: len(body) // 2])
            return self.transport.close()
        if not answer.drip:
            self.transport.write((head.encode("latin-1") + body) * (2 if answer.twice else 1))
            return self.transport.close() if answer.close else None
        self.transport.write(head.encode())
        for i in range(len(body)):
            await asyncio.sleep(answer.drip)
            self.transport.write(body[i : i + 1])
