"""Every kind of fault of a server that we could think of: what becomes of the prompt, and of those around it.

Each fault strikes one prompt of eight, in the middle of a run: always (`recorded`, or `stopped` where it cannot be the
prompt's), or once (`well` in the end). `pytest -s -k list` prints the list of what happened.
"""

import gzip
import json
import random
import re
import zlib

import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.protocol import is_refusal, stream
from cora_nb.runs.store import Store, reply_key
from cora_nb.variants.families import make_variants
from helpers import CUT_OFF
from faulty_server import AGAIN, LIMITS, RECORDED, STOPS, Answer, FaultyServer, _Connection, completion, refusal

PROMPTS = list({p.text: p for p in make_prompts(make_variants(math_benchmark(n=10)), template="bare")}.values())[:8]
KEY = "sk-secret-0123456789"
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\r"
NAN, INF = float("nan"), float("inf")
pytestmark = pytest.mark.filterwarnings("error", "ignore::cora_nb.respondents.chat.ServerWarning", CUT_OFF)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(random, "uniform", lambda low, high: 0.0)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def raw(head: str, body: bytes = b"", close: bool = False) -> Answer:
    return Answer(raw=head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body, close=close)


def usage(**counts) -> Answer:
    return Answer(body=completion() | {"usage": counts})


def top(*pairs, logprob=-0.1) -> Answer:
    tops = [{"token": t, "logprob": x} for t, x in pairs]
    return Answer(body=completion(logprobs={"content": [{"token": "B", "logprob": logprob, "top_logprobs": tops}]}))


OK = json.dumps(completion()).encode()
PLAIN = "HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: "
DEEP = b'{"choices": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
WELL = {  # a clean reply, at once
    "packed with zlib": Answer(body=zlib.compress(OK), headers={"Content-Encoding": "deflate"}),
    "packed with brotli": Answer(body=OK, headers={"Content-Encoding": "br"}),
    "packed twice": Answer(body=gzip.compress(gzip.compress(OK)), headers={"Content-Encoding": "gzip, gzip"}),
    "packed with escapes": Answer(headers={"Content-Encoding": "\x80\x9b31m"}),
    "a body of 2 MB": Answer(body=completion("B" * 2_000_000)),
    "lone surrogate": Answer(body=completion("B \ud800")),
    "the other half": Answer(body=completion("B \udc00\ud800")),
    "a pair of surrogates": Answer(body=completion("B \ud83d\ude00")),
    "surrogate in the model's name": Answer(body=completion() | {"model": "\ud800"}),
    "NUL in the text": Answer(body=completion("B\0")),
    "escape sequences in the text": Answer(body=completion("B" + ESCAPES)),
    "the key in the text": Answer(body=completion(f"B {KEY}")),
    "the key as the model's name": Answer(body=completion() | {"model": KEY, "system_fingerprint": KEY}),
    "null as text": Answer(body=completion(None)),
    "usage null": Answer(body=completion() | {"usage": None}),
    "usage a text": Answer(body=completion() | {"usage": "many"}),
    "usage a list": Answer(body=completion() | {"usage": [9, 1]}),
    "usage a number": Answer(body=completion() | {"usage": 10}),
    "usage of texts": usage(prompt_tokens="9", completion_tokens="1"),
    "usage of lists": usage(prompt_tokens=[9], completion_tokens={}),
    "usage NaN": usage(prompt_tokens=NAN, completion_tokens=NAN),
    "usage infinite": usage(prompt_tokens=INF, completion_tokens=-INF),
    "usage 1e999": Answer(body=OK.replace(b'"prompt_tokens": 9', b'"prompt_tokens": 1e999')),
    "usage negative": usage(prompt_tokens=-9, completion_tokens=-1),
    "usage of 10**30": usage(prompt_tokens=10**30, completion_tokens=2**31),
    "usage true": usage(prompt_tokens=True, completion_tokens=False),
    "usage of fractions": usage(prompt_tokens=9.5, completion_tokens=1.25),
    "usage of whole fractions": usage(prompt_tokens=9.0, completion_tokens=1.0),
    "model an object": Answer(body=completion() | {"model": {"a": 1}}),
    "model a list": Answer(body=completion() | {"model": [1]}),
    "fingerprint a number": Answer(body=completion() | {"system_fingerprint": 1.5}),
    "choices that differ": Answer(body=completion() | {"choices": completion()["choices"] * 3}),
    "unknown fields": Answer(body=completion() | {"\x1b[2J": {"a": [None]}}),
    "doubled fields": Answer(body=OK[:-1] + b', "model": "other"}'),
    "JSON called HTML": Answer(headers={"Content-Type": "text/html"}),
    "JSON without a type": raw(f"HTTP/1.1 200 OK\nContent-Length: {len(OK)}", OK),
    "an unknown charset": Answer(headers={"Content-Type": "application/json; charset=rot13"}),
    "white space around the JSON": Answer(body=b" \r\n" * 1000 + OK + b"\n" * 1000),
    "a text of 100,000 characters": Answer(body=completion("B" * 100_000)),
    "packed": Answer(body=gzip.compress(OK), headers={"Content-Encoding": "gzip"}),
    "packed, in capitals": Answer(body=gzip.compress(OK), headers={"Content-Encoding": "GZIP"}),
    "chunked": raw(
        "HTTP/1.1 200 OK\nContent-Type: application/json\nTransfer-Encoding: chunked",
        b"%x\r\n%s\r\n0\r\n\r\n" % (len(OK), OK),
    ),
    "chunked, with a trailer": raw(
        "HTTP/1.1 200 OK\nContent-Type: application/json\nTransfer-Encoding: chunked",
        b"%x\r\n%s\r\n0\r\nX-After: 1\r\n\r\n" % (len(OK), OK),
    ),
    "no length, to the end": raw("HTTP/1.1 200 OK\nContent-Type: application/json", OK, close=True),
    "HTTP/1.0": raw(f"HTTP/1.0 200 OK\nContent-Type: application/json\nContent-Length: {len(OK)}", OK, close=True),
    "HTTP/9.9": raw(f"HTTP/9.9 200 OK\nContent-Length: {len(OK)}", OK, close=True),
    "100 before it": raw(f"HTTP/1.1 100 Continue\n\n{PLAIN}{len(OK)}", OK),
    "103 before it": raw(f"HTTP/1.1 103 Early Hints\nLink: </x>\n\n{PLAIN}{len(OK)}", OK),
    "a header three times": raw(f"{PLAIN}{len(OK)}\nX-A: 1\nX-A: 2\nX-A: 3", OK),
    "headers of 50,000 characters": raw(f"{PLAIN}{len(OK)}\nX-Long: {'x' * 50_000}", OK),
    "no reason": raw(f"HTTP/1.1 200\nContent-Type: application/json\nContent-Length: {len(OK)}", OK),
    "half a response behind it": raw(f"{PLAIN}{len(OK)}", OK + b"HTTP/1.1 200 OK\r\nConte"),
    "nonsense behind it": raw(f"{PLAIN}{len(OK)}", OK + b"\0\1\2 nonsense"),
    "an empty line behind it": raw(f"{PLAIN}{len(OK)}", OK + b"\r\n"),
    "closed behind it, unannounced": Answer(close=True),
    "closed behind it, as announced": Answer(close=True, headers={"Connection": "close"}),
}
ODD = {  # no reply to be had from it: tried again, then recorded
    "no text at all": Answer(body={"choices": [{"message": {}}]}),
    "surrogate in the reason to finish": Answer(body=completion(finish_reason="\ud800")),
    "finish a list": Answer(body=completion(finish_reason=["stop"])),
    "finish an object": Answer(body=completion(finish_reason={"deep": 1})),
    "finish a number": Answer(body=completion(finish_reason=7)),
    "finish of 100,000 characters": Answer(body=completion(finish_reason="x" * 100_000)),
    "error 500 with escapes": Answer(500, refusal(ESCAPES)),
    "error 500 with the key": Answer(500, refusal(f"{KEY} and Bearer {KEY}")),
    "error 500 with half a character": Answer(500, refusal("\ud800")),
    "error 500 of 1 MB": Answer(500, b"x" * 900_000, {"Content-Type": "text/plain"}),
    "error 500, deep": Answer(500, DEEP),
    "error 500, a list": Answer(500, [1, 2]),
    "error 500, a number": Answer(500, 7),
    "error 500, message an object": Answer(500, {"error": {"message": {"a": [1]}}}),
    "error 500, message a list": Answer(500, {"error": {"message": [ESCAPES]}}),
    "error 500, error a text": Answer(500, {"error": "broken" + ESCAPES}),
    "error 500, error null": Answer(500, {"error": None}),
    "error 500, code a list": Answer(500, {"error": {"message": "x", "code": [1], "type": {"a": 1}}}),
    "error 500, no UTF-8": Answer(500, b"\xff\xfe\x00\x1b[2J", {"Content-Type": "text/plain"}),
    "error 500, charset undefined": Answer(500, b"x", {"Content-Type": "text/plain; charset=undefined"}),
    "error 500, charset idna": Answer(500, b"x..y", {"Content-Type": "text/plain; charset=idna"}),
    "error 500, empty": Answer(500, b""),
    "error 501": Answer(501, refusal("not made")),
    "error 504": Answer(504, b"<html>Gateway Time-out</html>", {"Content-Type": "text/html"}),
    "error 520": Answer(520, b"unknown"),
    "error 599": Answer(599, b""),
    "status 999": Answer(999, b""),
    "error 200 with escapes": Answer(body=refusal(ESCAPES)),
    "error 200 with the key": Answer(body=refusal(KEY)),
    "deep JSON": Answer(body=DEEP),
    "deep message": Answer(
        body=b'{"choices": [{"message": {"content": ' + b'{"a":' * 20_000 + b"1" + b"}" * 20_000 + b"}}]}"
    ),
    "a number of 10,000 digits": Answer(body=b'{"choices": [{"message": {"content": ' + b"9" * 10_000 + b"}}]}"),
    "a text": Answer(body="B"),
    "a number": Answer(body=7),
    "true": Answer(body=True),
    "an empty object": Answer(body={}),
    "an empty list": Answer(body=[]),
    "choices null": Answer(body={"choices": None}),
    "choices a text": Answer(body={"choices": "B"}),
    "choices a number": Answer(body={"choices": 7}),
    "choice null": Answer(body={"choices": [None]}),
    "choice a list": Answer(body={"choices": [[]]}),
    "choice a number": Answer(body={"choices": [7]}),
    "message a text": Answer(body=completion(message="B")),
    "message a list": Answer(body=completion(message=["B"])),
    "content a number": Answer(body=completion(7)),
    "content true": Answer(body=completion(True)),
    "content a list": Answer(body=completion([1, 2])),
    "log-probabilities a text": Answer(body=completion(logprobs="yes")),
    "log-probabilities a list": Answer(body=completion(logprobs=[1])),
    "log-probabilities of numbers": Answer(body=completion(logprobs={"content": 7})),
    "log-probabilities of nulls": Answer(body=completion(logprobs={"content": [None]})),
    "log-probability NaN": top(("B", -0.1), logprob=NAN),
    "log-probability a text": top(("B", -0.1), logprob="-0.1"),
    "log-probability infinite": top(("B", -0.1), logprob=INF),
    "first tokens NaN": top(("B", NAN)),
    "first tokens a text": top(("B", "x")),
    "first tokens without names": top((None, -0.1)),
    "first tokens with lists for names": top(([1], -0.1)),
    "first tokens a number": Answer(
        body=completion(logprobs={"content": [{"token": "B", "logprob": -0.1, "top_logprobs": 7}]})
    ),
    "a body of 300 MB, announced": raw(f"{PLAIN}300000000", OK, close=True),
    "a body of 10**30 bytes, announced": raw(f"{PLAIN}{10**30}", OK, close=True),
    "a body of 2 MB, chunked": raw(
        "HTTP/1.1 200 OK\nContent-Type: application/json\nTransfer-Encoding: chunked",
        b"200000\r\n" + b" " * 2**21 + b"\r\n0\r\n\r\n",
    ),
    "a packed body of 100 MB": Answer(body=gzip.compress(b" " * 10**8), headers={"Content-Encoding": "gzip"}),
    "a packed body without its end": Answer(body=gzip.compress(OK)[:-12], headers={"Content-Encoding": "gzip"}),
    "a packed body that is none": Answer(body=OK, headers={"Content-Encoding": "gzip"}),
    "UTF-16": Answer(body=OK.decode().encode("utf-16")[3:]),
    "no UTF-8": Answer(body=b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),
    "charset undefined": Answer(body=b"{", headers={"Content-Type": "text/plain; charset=undefined"}),
    "a stream of events": Answer(body=b"data: " + OK + b"\n\n", headers={"Content-Type": "text/event-stream"}),
    "several objects": Answer(body=OK + OK),
    "JSON with comments": Answer(body=b"// B\n" + OK),
    "204": Answer(204, b""),
    "206, half": Answer(206, OK[: len(OK) // 2]),
}
LOST = {  # the connection does not hold: tried again; eight times in a row stop the run
    "no HTTP": Answer(raw=b"SSH-2.0-OpenSSH_9.2\r\n", close=True),
    "nonsense": Answer(raw=bytes(range(256)), close=True),
    "escapes for a status line": Answer(raw=ESCAPES.encode() + b"\r\n\r\n", close=True),
    "status of letters": raw("HTTP/1.1 OK fine\nContent-Length: 0", close=True),
    "status of 4 digits": raw("HTTP/1.1 2000 OK\nContent-Length: 0", close=True),
    "header without a colon": raw("HTTP/1.1 200 OK\nnonsense", close=True),
    "header with NUL": raw("HTTP/1.1 200 OK\nX: \0", close=True),
    "headers of 200,000 characters": raw(f"{PLAIN}{len(OK)}\nX-Long: {'x' * 200_000}", OK, close=True),
    "length negative": raw(f"{PLAIN}-1", OK, close=True),
    "length of letters": raw(f"{PLAIN}many", OK, close=True),
    "two lengths": raw(f"{PLAIN}{len(OK)}\nContent-Length: 3", OK, close=True),
    "length too great": raw(f"{PLAIN}{len(OK) + 10}", OK, close=True),
    "an unknown transfer": raw("HTTP/1.1 200 OK\nTransfer-Encoding: magic", OK, close=True),
    "chunk without a size": raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", b"xyz\r\n" + OK, close=True),
    "chunk cut": raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", b"ffff\r\n" + OK, close=True),
    "headers cut": Answer(raw=b"HTTP/1.1 200 OK\r\nConten", close=True),
    "a hundred times 100": Answer(raw=b"HTTP/1.1 100 Continue\r\n\r\n" * 100, close=True),
    "never a body": raw(f"{PLAIN}{len(OK)}"),
    "never a word": Answer(wait=3600),
    "a redirect without end": Answer(307, b"", {"Location": "/v1/chat/completions"}),
    "a redirect to another protocol": Answer(307, b"", {"Location": "gopher://x/"}),
    "a redirect to nowhere": Answer(307, b"", {"Location": "http://127.0.0.1:99999/"}),
    "a redirect with escapes": Answer(307, b"", {"Location": "http://\x9b31m/"}),
    "length too small": raw(f"{PLAIN}{len(OK) - 10}", OK),
}
FORBIDDEN = {f"{name}, later": answer for name, answer in STOPS.items() if answer.status in (403, 404)}
REFUSED = RECORDED | {
    "error 400 with escapes": Answer(400, refusal(ESCAPES)),
    "error 400 with the key": Answer(400, refusal(KEY)),
    "error 400, an object for a message": Answer(400, {"error": {"message": {"a": ESCAPES}}}),
    "error 413": Answer(413, b"<h1>too\nlarge</h1>", {"Content-Type": "text/html"}),
    "error 418": Answer(418, b"\x1b[31mteapot"),
    "error 451": Answer(451, refusal("censored")),
    "redirect without an address": Answer(302, b""),
    "304": Answer(304, b""),
}
END = {name: answer for name, answer in STOPS.items() if answer.status not in (403, 404)}
GROUPS = {"well": WELL, "odd": AGAIN | ODD, "lost": LOST, "refused": REFUSED | FORBIDDEN, "stop": END, "limit": LIMITS}
FAULTS = [(group, name) for group, faults in GROUPS.items() for name in faults]
HAPPENED: dict[str, str] = {}


def run(answer: Answer, often: int, tmp_path, **options) -> tuple[dict[int, object], str, FaultyServer]:
    "Eight prompts, of which the fourth meets the fault so often: the replies as a store keeps them, and the end."
    met, replies, end = [], {}, ""

    def plan(asked):
        if asked.prompt == PROMPTS[3].text and len(met) < often:
            met.append(asked)
            return answer
        return Answer(body=completion(f"reply to {asked.prompt[-40:]}"))

    with FaultyServer(plan) as server, Store(tmp_path / f"{often}.db") as store:
        model = ChatRespondent("m", base_url=server.url, concurrency=2, retries=2, **options)

        def arrived(position, reply):
            if reply.error is None and not is_refusal(reply):
                store.put(reply_key(model.request(PROMPTS[position])), reply)
                reply = store.get([reply_key(model.request(PROMPTS[position]))]).popitem()[1]
            replies[position] = reply

        try:
            stream(model, PROMPTS, arrived)
        except CoraError as e:
            end = str(e)
    return replies, end, server


def check_harmless(words: str) -> None:
    "One line that can be printed, of bounded length and without the key."
    assert words.isprintable() and len(words) < 500 and KEY not in words and words.strip(), ascii(words)


# quick: every third of the many that are odd, and all others; not those that are waited for
QUICK = {f for n, f in enumerate(FAULTS) if (n % 3 == 0 or f[0] not in ("well", "odd")) and "never" not in f[1]}
WITH_MARKS = [pytest.param(*f, marks=[] if f in QUICK else [pytest.mark.slow], id=f[1]) for f in FAULTS]


@pytest.mark.parametrize("group,name", WITH_MARKS)
def test_a_fault(group, name, tmp_path):
    answer = GROUPS[group][name]
    limit = {"timeout": 1.5 if name.startswith("never") else 60.0}  # a busy machine must not look like a fault
    replies, end, server = run(answer, 10**9 if group != "limit" else 3, tmp_path, **limit)
    others = {i: r for i, r in replies.items() if i != 3}
    for i, r in others.items():  # whatever happens to one prompt: no other one gets a wrong reply
        assert r.text == f"reply to {PROMPTS[i].text[-40:]}" and r.error is None, (i, r)
    if group == "stop":
        assert 3 not in replies and end.startswith(f"m at {server.url}: ")
        HAPPENED[name] = f"stops: {end.removeprefix(f'm at {server.url}: ')}"
        return check_harmless(end)
    assert not end and len(others) == 7 and 3 in replies, end
    found = replies[3]
    if found.error is not None:
        check_harmless(found.error)
        assert found.text is None
    tries = sum(a.prompt == PROMPTS[3].text for a in server.asked)
    if group == "well":
        assert found.error is None and tries == 1 and KEY not in repr(found), found
        found.text.encode()
        assert all(type(n) is int for what, n in found.meta.items() if what.endswith("tokens"))
    elif group == "limit":
        assert found.error is None and tries == 4
    elif group == "refused":  # for good, which is a reply without words; or for another reason, which is a failure
        for_good = name in ("400", "content filter", "refused with 400")
        assert ((found.text, found.error) == ("", None) if for_good else found.error is not None) and tries == 1
    else:
        assert found.error is not None and found.error.endswith("tried 3 times"), found
        once, end, _ = run(answer, 1, tmp_path, **limit)
        assert not end and [once[i].text for i in range(8)] == [f"reply to {p.text[-40:]}" for p in PROMPTS]
    said = f"reply {ascii(found.text)[:60]}" if found.error is None else f"failed: {found.error}"
    HAPPENED[name] = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", said)


def test_there_are_enough_kinds_and_here_is_the_list():
    assert len(FAULTS) == len({name for _, name in FAULTS}) >= 120
    for name, what in HAPPENED.items():
        print(f"{name:40s} {what[:160]}")


def test_connections_are_used_again(monkeypatch):
    made, connect = [], _Connection.connection_made
    monkeypatch.setattr(_Connection, "connection_made", lambda self, t: (made.append(t), connect(self, t))[1])
    with FaultyServer() as server:
        stream(ChatRespondent("m", base_url=server.url, concurrency=2), PROMPTS * 5, lambda i, r: None)
    assert len(made) == 2


def test_a_lone_surrogate_does_not_kill_a_run(tmp_path):
    replies, end, _ = run(Answer(body=completion("B \ud800")), 1, tmp_path)
    assert replies[3].text == "B \ufffd" and not end
