"""Models that inspect knows: settings, keys, replies, failures, secrets, and the same run as with our own client."""

import asyncio
import json
import os
import subprocess
import sys
import time

import pytest

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed; pip install 'cora_nb[inspect]' to run this test")

from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: E402

from cora_nb.core import CoraError, Question  # noqa: E402
from cora_nb.metrics.scoring import score  # noqa: E402
from cora_nb.prompts.templates import make_prompts  # noqa: E402
from cora_nb.respondents.chat import ChatRespondent  # noqa: E402
from cora_nb.respondents.inspect_models import InspectRespondent  # noqa: E402
from cora_nb.respondents.protocol import ask, is_refusal, run_async  # noqa: E402
from cora_nb.runs.evaluate import evaluate  # noqa: E402
from cora_nb.runs.store import Store, asked_prompts, is_drawn, reply_key  # noqa: E402
from cora_nb.variants.families import make_variants  # noqa: E402
from faulty_server import Answer, FaultyServer, completion, refusal  # noqa: E402
from helpers import WITH_TORCH  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning:inspect_ai")]
VARIANTS = make_variants([Question(f"q{i}", f"Number {i}?", ("w", "x"), answer=i % 2) for i in range(8)])
PROMPTS = make_prompts(VARIANTS)
SECRET = "sk-very-secret-0123456789"
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["A", "B"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


def usage(read=20, written=1, total=None, **more):
    return ModelUsage(input_tokens=read, output_tokens=written, total_tokens=total or read + written, **more)


def mocked(f, **fields):
    "A respondent whose model answers with what `f` makes of inspect's messages and settings."
    fields = {"extra": {"max_retries": 0}} | fields
    respondent = InspectRespondent("mockllm/model", **fields)

    def output(messages, tools, tool_choice, config):
        return f(messages, config)

    respondent._asks = get_model("mockllm/model", custom_outputs=output)
    return respondent


def said(text="B", why="stop", used=None, **more):
    output = ModelOutput.from_content("served-1", text, stop_reason=why)
    output.usage = used or usage()
    return output


@pytest.fixture
def local(monkeypatch):
    "Starts a respondent of a server on this machine."

    def started(server, **fields):
        monkeypatch.setenv("LOCAL_BASE_URL", server.url)
        monkeypatch.setenv("LOCAL_API_KEY", SECRET)
        return InspectRespondent("openai-api/local/tiny", **fields)

    return started


# ---------------------------------------------------------------- settings and keys


@pytest.mark.parametrize(
    "wrong",
    [
        dict(model="claude"),
        dict(model="/claude"),
        dict(model="anthropic/"),
        dict(model=None),
        dict(temperature=-1),
        dict(temperature=float("nan")),
        dict(temperature=True),
        dict(max_tokens=0),
        dict(system=None),
        dict(concurrency=0),
        dict(batch=0),
        dict(batch=-5),
        dict(extra=None),
        dict(extra={1: 2}),
        dict(extra={"temprature": 0.5}),
        dict(extra={"temperature": 0.5}),
        dict(extra={"max_tokens": 5}),
        dict(extra={"seed": 5}),
        dict(extra={"system_message": "x"}),
        dict(extra={"batch": True}),
        dict(extra={"max_connections": 1}),
        dict(extra={"num_choices": 2}),
        dict(extra={"cache": True}),
        dict(extra={"top_p": "much"}),
        dict(extra={"reasoning_effort": "enormous"}),
        dict(extra={"extra_body": {"a": {1, 2}}}),
        dict(extra={"extra_body": {"a": float("nan")}}),
    ],
)
def test_fields_that_are_wrong_are_refused(wrong):
    with pytest.raises(CoraError) as told:
        InspectRespondent(**{"model": "mockllm/model"} | wrong)
    assert "\n" not in str(told.value)
    assert all(str(name) in str(told.value) for name in wrong.get("extra") or () if name != "extra_body")


def test_everything_that_decides_a_reply_is_in_the_key():
    def key(model="p/m", prompt=PROMPTS[0], **fields):
        return reply_key(InspectRespondent(model, **fields).request(prompt), prompt.trial)

    different = [
        {},
        {"model": "p/n"},
        {"model": "o/m"},
        {"temperature": 0.5},
        {"temperature": None},
        {"max_tokens": 77},
    ]
    different += [{"system": "x"}, {"seed": 0}, {"seed": 1}, {"extra": {"top_p": 0.5}}, {"extra": {"effort": "low"}}]
    different += [{"prompt": PROMPTS[1]}]
    assert len({key(**fields) for fields in different}) == len(different)
    same = [
        {"name": "x"},
        {"concurrency": 1},
        {"batch": True},
        {"batch": 50},
        {"temperature": 0},
        {"temperature": -0.0},
    ]
    assert {key(**fields) for fields in same} == {key()}
    trials = make_prompts(VARIANTS[:1], trials=3)
    assert [InspectRespondent("p/m", seed=5).request(p)["seed"] for p in trials] == [5, 6, 7]


def test_without_a_temperature_replies_are_drawn():
    drawn = {t: is_drawn(InspectRespondent("p/m", temperature=t).request(PROMPTS[0])) for t in (None, 0, 0.7)}
    assert drawn == {None: True, 0: False, 0.7: True}


class Shaped:
    "A prompt with a schema."

    def __init__(self, prompt, schema):
        self.prompt, self.schema = prompt, schema

    def __getattr__(self, name):
        return getattr(self.prompt, name)


def test_what_is_set_is_what_is_sent(local):
    with FaultyServer() as server:
        plain, shots = PROMPTS[0], make_prompts(VARIANTS[:1], shots=[Question("s", "?", ("a", "b"), answer=0)], k=1)[0]
        ask(local(server), [plain])
        ask(local(server, temperature=None, max_tokens=9, seed=3, system="Be short."), [shots])
        ask(
            local(server, extra={"top_p": 0.5, "extra_body": {"chat_template_kwargs": {"a": 1}}}),
            [Shaped(plain, SCHEMA)],
        )
        bodies = [asked.body for asked in server.asked]
    first, second, third = bodies
    assert first["messages"] == plain.messages and first["temperature"] == 0 and first["model"] == "tiny"
    assert plain.room in (first.get("max_tokens"), first.get("max_completion_tokens")) and "seed" not in first
    assert "temperature" not in second and second["seed"] == 3 and "response_format" not in second
    assert 9 in (second.get("max_tokens"), second.get("max_completion_tokens"))
    assert second["messages"][0]["content"] == "Be short." and second["messages"][0]["role"] in ("system", "developer")
    assert second["messages"][1:] == shots.messages
    assert third["top_p"] == 0.5 and third["chat_template_kwargs"] == {"a": 1}
    sent = third["response_format"]["json_schema"]
    assert sent["name"] == "answer" and sent["schema"]["properties"]["answer"]["enum"] == ["A", "B"]
    assert InspectRespondent.constrains and "schema" in InspectRespondent("p/m").request(Shaped(plain, SCHEMA))
    assert "schema" not in InspectRespondent("p/m").request(plain)


# ---------------------------------------------------------------- replies


@pytest.mark.parametrize(
    "output, expected",
    [
        (said(), ("B", "stop", 20, 1)),
        (said(used=usage(20, 1, 121)), ("B", "stop", 20, 101)),
        (said(used=usage(5, 9, 34, input_tokens_cache_read=20)), ("B", "stop", 25, 9)),
        (said("The", "max_tokens"), ("The", "length", 20, 1)),
        (said("The", "model_length"), ("The", "length", 20, 1)),
        (said("", "stop"), ("", "stop", 20, 1)),
        (said("half \ud800"), ("half \ufffd", "stop", 20, 1)),
    ],
)
def test_an_answer(output, expected):
    reply = ask(mocked(lambda messages, config: output), PROMPTS[:1])[0]
    meta = reply.meta
    got = reply.text, meta["finish_reason"], meta["prompt_tokens"], meta["completion_tokens"]
    assert reply.error is None and got == expected and meta["model"] == "served-1"


def test_thinking_is_left_out(local):
    body = completion("B")
    body["choices"][0]["message"]["reasoning_content"] = "A would be wrong."
    with FaultyServer([Answer(body=body)]) as server:
        assert ask(local(server), PROMPTS[:1])[0].text == "B"


@pytest.mark.parametrize(
    "answer, refused",
    [
        (Answer(body=completion(None, finish_reason="content_filter")), True),
        (Answer(body=completion("I can", finish_reason="content_filter")), True),
        (Answer(400, refusal("filtered", code="content_filter")), True),
        (Answer(400, refusal("maximum context length is 9 tokens", code="context_length_exceeded")), True),
        (Answer(400, refusal("max_tokens is too large: 512", code="context_length_exceeded")), False),
        (Answer(400, refusal("something is wrong")), False),
        (Answer(body=completion("B", finish_reason="tool_calls")), False),
        (Answer(body=completion("B", finish_reason="abort")), False),
    ],
)
def test_refused_or_failed(local, answer, refused):
    with FaultyServer(lambda asked: answer if asked.number == 2 else Answer()) as server:
        replies = ask(local(server, concurrency=1), PROMPTS[:5])
    assert [r.text for r in replies[:2] + replies[3:]] == ["B"] * 4
    assert is_refusal(replies[2]) if refused else replies[2].error


# ---------------------------------------------------------------- failures

ENDS = {
    "unknown provider": lambda local, server: InspectRespondent("nobody/model"),
    "missing package": lambda local, server: InspectRespondent("groq/model"),
    "missing key": lambda local, server: InspectRespondent("openai-api/keyless/model"),
    "wrong key": lambda local, server: local(server),
}


@pytest.mark.parametrize("what", ENDS)
def test_what_the_first_raises_ends_the_run_in_one_line(local, what):
    words = f"Incorrect API key provided: {SECRET}\x1b[31m " + "x" * 1000
    with FaultyServer(lambda asked: Answer(401, refusal(words, code="invalid_api_key"))) as server:
        with pytest.raises(CoraError) as told:
            ask(ENDS[what](local, server), PROMPTS)
        assert len(server.asked) == (what == "wrong key")
    line = str(told.value)
    assert line.isprintable() and len(line) <= 350 and SECRET not in line
    assert "[bold]" not in line and "ERROR" not in line
    assert what != "wrong key" or "Incorrect API key provided" in line
    assert what != "missing key" or "KEYLESS_API_KEY" in line


def test_a_later_failure_is_that_prompts_own_and_many_in_a_row_end_the_run():
    calls, bad = [], {3}

    def f(messages, config):
        calls.append(messages)
        if len(calls) in bad:
            raise ValueError(f"no {SECRET}\nanswer")
        return said()

    os.environ["SOME_API_KEY"] = SECRET
    try:
        replies = ask(mocked(f, concurrency=1), PROMPTS)
        assert [i for i, r in enumerate(replies) if r.error] == [2]
        assert replies[2].error == "no *** answer"
    finally:
        del os.environ["SOME_API_KEY"]
    calls.clear()
    bad = range(5, 10**6)
    with pytest.raises(CoraError, match="20 failures in a row"):
        ask(mocked(f, concurrency=4), PROMPTS)
    assert len(calls) < 24 + 4


def test_rate_limits_are_waited_for(local):
    limited = Answer(429, refusal("slow down"), {"Retry-After": "0.01"})
    with FaultyServer(lambda asked: limited if asked.number in (3, 4) else Answer()) as server:
        replies = ask(local(server), PROMPTS[:6])
    assert [r.text for r in replies] == ["B"] * 6


@pytest.mark.parametrize("batch, most", [(False, 6), (True, 63), (50, 63)])
def test_as_many_at_a_time_as_asked_after_one_alone(batch, most):
    n, counts = 0, []

    async def f(messages, config):
        nonlocal n
        n += 1
        counts.append(n)
        await asyncio.sleep(0.05)
        n -= 1
        return said()

    prompts = make_prompts(make_variants([Question(f"q{i}", "?", ("w", "x"), answer=0) for i in range(8)]))
    assert len(prompts) == 64
    ask(mocked(f, concurrency=6, batch=batch), prompts)
    assert counts[:2] == [1, 1] and max(counts) == most


def test_when_the_caller_stops_requests_end(local):
    with FaultyServer(lambda asked: Answer(wait=60 if asked.number else 0)) as server:

        async def work():
            arriving = local(server, concurrency=4).answer(PROMPTS)
            await anext(arriving)
            task = asyncio.ensure_future(anext(arriving))
            while server.under_way < 4:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        run_async(work())
        end = time.monotonic() + 30
        while server.under_way and time.monotonic() < end:
            time.sleep(0.01)
        assert not server.under_way and len(server.asked) == 5


# ---------------------------------------------------------------- beside our own client, and what is printed


def test_the_same_run_as_with_our_own_client(local, tmp_path):
    def plan(asked):
        words = ("A", "B", "B, because", "nine", "(A)")
        return Answer(body=completion(words[len(asked.prompt) * 7 % 5]))

    def asks(server):
        return [json.dumps(asked.body["messages"]) for asked in server.asked]

    with FaultyServer(plan) as one, FaultyServer(plan) as other, Store(tmp_path / "r.sqlite") as store:
        ours = ChatRespondent("tiny", base_url=one.url, concurrency=1)
        theirs = local(other, concurrency=1)
        runs = [evaluate(who, VARIANTS, store=store, progress=False, strict=None) for who in (ours, theirs)]
        again = evaluate(local(other), VARIANTS, store=store, progress=False, strict=None)
        assert asks(one) == asks(other)
        keys = [asked_prompts(who, PROMPTS)[1] for who in (ours, theirs)]
    assert [keys[0].index(k) for k in keys[0]] == [keys[1].index(k) for k in keys[1]]
    tables = [run.table.drop(columns=["model"], errors="ignore") for run in (*runs, again)]
    for column in ("reply", "prediction", "correct", "state"):
        assert tables[0][column].tolist() == tables[1][column].tolist() == tables[2][column].tolist()
    assert score(runs[0]).to_string() == score(runs[1]).to_string()
    assert again.facts.calls["asked"] == 0
    assert runs[1].facts.respondent["inspect_ai"]


def test_nothing_is_printed_and_nothing_is_set_up(tmp_path):
    (tmp_path / "mine.py").write_text(
        f"""
import logging, sys
import cora_nb.respondents.inspect_models as door
assert "inspect_ai" not in sys.modules
from cora_nb.core import Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.protocol import ask
from cora_nb.variants.families import make_variants
sys.path.insert(0, {str(os.path.dirname(os.path.dirname(__file__)))!r})
from faulty_server import Answer, FaultyServer, refusal
import os
prompts = make_prompts(make_variants([Question("q", "?", ("a", "b", "c"), answer=0)]))
hook, root = sys.excepthook, list(logging.getLogger().handlers)
with FaultyServer(lambda asked: Answer(429, refusal("slow")) if asked.number == 2 else Answer()) as server:
    os.environ |= {{"LOCAL_BASE_URL": server.url, "LOCAL_API_KEY": "x" * 20}}
    replies = ask(door.InspectRespondent("openai-api/local/m", seed=1), prompts)
assert [r.text for r in replies] == ["B"] * len(prompts)
assert sys.excepthook is hook and logging.getLogger().handlers == root
"""
    )
    done = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, timeout=WITH_TORCH)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [f.name for f in tmp_path.iterdir() if f.name != "__pycache__"] == ["mine.py"]


def test_where_inspect_is_missing_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CoraError, match="pip install 'cora_nb\\[inspect\\]'"):
        InspectRespondent("anthropic/m")


def test_two_servers_are_two_models(monkeypatch):
    "The address stands in the environment, and is part of keys and facts."
    keys = []
    for address in ("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"):
        monkeypatch.setenv("LOCAL_BASE_URL", address)
        who = InspectRespondent("openai-api/local/tiny")
        assert who.describe()["server"] == address
        keys.append(reply_key(who.request(PROMPTS[0])))
    given = InspectRespondent("openai-api/local/tiny", base_url="http://127.0.0.1:2/v1")
    assert keys[0] != keys[1] == reply_key(given.request(PROMPTS[0]))
    monkeypatch.delenv("LOCAL_BASE_URL")
    assert "server" not in InspectRespondent("anthropic/m").describe()
