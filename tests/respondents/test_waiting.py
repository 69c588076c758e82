"""Limits of servers: those that pass soon are waited for, with nothing lost; those that do not end the run at once."""

import re
import time
from datetime import datetime

import pytest

from chat_commands import Desk
from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.responses.files import read_responses
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants
from faulty_server import Answer, Asked, FaultyServer
from providers import (
    HOUR,
    NO_QUOTA,
    OVERLOADED,
    LimitedServer,
    Provider,
    error,
    gemini_limited,
    groq_again,
    loading,
    openrouter_day,
    posts,
    reply,
    reset_in,
)

SOON = 20.0  # seconds for a whole command: not the minutes of waiting


@pytest.fixture(autouse=True)
def desk(tmp_path_factory, monkeypatch, capsys):
    return Desk(tmp_path_factory.mktemp("desk"), capsys, monkeypatch)


def variants(n):
    return make_variants(math_benchmark()[:n])


def limited(**headers):
    return error(429, "Too many requests", {name.replace("_", "-"): value for name, value in headers.items()})


def says(answer):
    return lambda: answer


CLOSED = {  # how a server says that it is closed for a third of a second
    "Retry-After": lambda: limited(Retry_After="0.3"),
    "words": says(groq_again("0.3s")),
    "retry-after-ms": lambda: limited(retry_after_ms="300"),
    "X-RateLimit-Reset": lambda: limited(X_RateLimit_Reset=reset_in(0.3)),
    "x-ratelimit-reset-requests": lambda: limited(x_ratelimit_reset_requests="300ms"),
    "RetryInfo": says(gemini_limited("0.3s")),
    "words in milliseconds": says(groq_again("300ms")),
    "503 with Retry-After": lambda: error(503, "overloaded", {"Retry-After": "0.3"}),
    "429 without a word": says(error(429, "Too many requests")),
    "529": says(OVERLOADED),
}
TIMED = CLOSED.keys() - {"429 without a word", "529"}  # the others have to be tried out
FAST = {"Retry-After", "words"}


@pytest.mark.parametrize(
    "kind", [kind if kind in FAST else pytest.param(kind, marks=pytest.mark.slow) for kind in CLOSED]
)
def test_a_server_that_is_closed_for_a_moment_loses_nothing(kind):
    "All are answered rightly, and the server is not asked again and again while it is closed."
    with LimitedServer(says=CLOSED[kind], closed=0.3) as server:
        run = evaluate(ChatRespondent("m", base_url=server.url, concurrency=16), variants(5), progress=False)
    assert len(run) == 100 and set(run.table["state"]) == {"answered"} and bool(run.table["correct"].all())
    assert 1 <= len(server.refused) <= (2 if kind in TIMED else 5) * 16
    answered = len(posts(server)) - len(server.refused)
    assert answered == len({asked.prompt for asked in posts(server)}), "nothing is paid twice"


@pytest.mark.parametrize("at_once", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_server_that_answers_few_at_once(at_once):
    "The others get 429 without a time; fewer are asked at once, until all have their turn."
    n = 4 if at_once > 1 else 2
    with LimitedServer(at_once=at_once, takes=0.005) as server:
        run = evaluate(ChatRespondent("m", base_url=server.url, concurrency=32), variants(n), progress=False)
    assert len(run) == 20 * n and set(run.table["state"]) == {"answered"} and bool(run.table["correct"].all())


@pytest.mark.slow
def test_a_server_with_a_bucket_of_tokens():
    "200 requests a second, and no more than 20 at a time."
    with LimitedServer(rate=200) as server:
        run = evaluate(ChatRespondent("m", base_url=server.url, concurrency=32), variants(10), progress=False)
    assert len(run) == 200 and set(run.table["state"]) == {"answered"} and bool(run.table["correct"].all())


def test_a_limit_at_the_very_first_prompt_is_waited_for():
    first = Answer(429, error(429, "slow down").body, {"Retry-After": "0.2"})
    good = Provider().plan()
    with FaultyServer(lambda asked: first if asked.number == 0 else good(asked)) as server:
        run = evaluate(ChatRespondent("m", base_url=server.url), variants(1), progress=False)
    assert bool(run.table["correct"].all())
    assert len(posts(server)) == len({asked.prompt for asked in posts(server)}) + 1


# ---- what does not pass soon


LATER = {  # what the server says, a word of it, and the seconds that it names; 0: none
    "OpenRouter's day": (openrouter_day, "free-models-per-day", 9 * HOUR),
    "Groq's day, in words": (says(groq_again("49m38.016s", "tokens per day (TPD)")), "per day", 2978),
    "Groq, in words, no quota named": (says(groq_again("9m38s")), "Rate limit reached", 578),
    "Gemini's RetryInfo": (says(gemini_limited(f"{HOUR}s")), "current quota", HOUR),
    "insufficient_quota": (says(NO_QUOTA), "billing details", 0),
    "Retry-After of an hour": (lambda: limited(Retry_After=str(HOUR)), "Too many", HOUR),
    "reset of an hour": (lambda: limited(x_ratelimit_reset_requests="1h0m0s"), "Too many", HOUR),
    "a month": (says(error(429, "Monthly quota exceeded for this key")), "Monthly quota", 0),
}


def check_time(line, seconds):
    "The moment at which to run again, to the minute, is the one that the server named."
    named = re.search(r"run again after (\d{4}-\d\d-\d\d \d\d:\d\d)", line)
    assert bool(named) == bool(seconds), line
    if named:
        left = (datetime.strptime(named[1], "%Y-%m-%d %H:%M") - datetime.now()).total_seconds()
        assert abs(left - seconds) < 180, (left, seconds)


@pytest.mark.parametrize("command", ["run", "try"])
@pytest.mark.parametrize("kind", LATER)
def test_a_quota_that_is_used_up_is_said_within_seconds(desk, kind, command):
    "At the first prompt: one request, the server's words, and its time."
    answer, words, when = LATER[kind]
    with FaultyServer(lambda asked: answer()) as server:
        began = time.monotonic()
        spec = f"chat:m,base_url={server.url},concurrency=32"
        said = desk.run(spec, limit=3) if command == "run" else desk.try_(spec, questions=3)
        seconds = time.monotonic() - began
    assert said.status != 0 and seconds < SOON and len(posts(server)) == 1
    assert words in said.last
    check_time(said.last, when)


@pytest.mark.parametrize("kind", ["OpenRouter's day", "Gemini's RetryInfo", "insufficient_quota"])
def test_a_quota_that_ends_in_the_middle_keeps_what_was_answered(desk, kind):
    "The run ends within seconds, and the next day's run asks only what is missing."
    answer, words, _ = LATER[kind]
    with LimitedServer(says=answer, free=20) as server:
        began = time.monotonic()
        said = desk.run(f"chat:m,base_url={server.url},concurrency=4", limit=3, store="s.sqlite")
        assert said.status != 0 and time.monotonic() - began < SOON and words in said.all
        assert 1 <= len(server.refused) <= 8  # those that were under way
        before, server.free = len(posts(server)), 0
        again = desk.run(f"chat:m,base_url={server.url},concurrency=4", limit=3, store="s.sqlite")
        assert again.status == 0 and again.score("MCQA") == "1.00"
        prompts = len({asked.prompt for asked in posts(server)})
        assert len(posts(server)) - before == prompts - 20
    assert bool(desk.table["correct"].all())


def test_the_same_from_python():
    with FaultyServer(lambda asked: groq_again("49m38.016s", "tokens per day (TPD)")) as server:
        began = time.monotonic()
        with pytest.raises(CoraError, match="49"):
            evaluate(ChatRespondent("m", base_url=server.url, concurrency=32), variants(3), progress=False)
        assert time.monotonic() - began < SOON and len(posts(server)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("wait", ["1.2s", "0m1.2s"])
def test_times_in_words_that_pass_soon_are_waited_for(wait):
    "Groq's usual words, and no header."
    with LimitedServer(says=says(groq_again(wait)), closed=1.2) as server:
        began = time.monotonic()
        run = evaluate(ChatRespondent("m", base_url=server.url, concurrency=4), variants(1), progress=False)
        assert 1.2 <= time.monotonic() - began < 15
    assert bool(run.table["correct"].all()) and len(server.refused) <= 8


# ---- a model that is being loaded


@pytest.mark.parametrize("seconds", [0.3, pytest.param(1.5, marks=pytest.mark.slow)])
def test_a_model_that_is_being_loaded_is_waited_for_and_said(desk, seconds):
    "llama-server answers 503 without Retry-After."
    with Provider(quirks=(loading(seconds),)).serve() as server:
        said = desk.run(f"chat:m,base_url={server.url},concurrency=32", limit=1)
    assert said.status == 0 and said.score("MCQA") == "1.00"
    assert re.search("loading", said.err, re.IGNORECASE)
    prompts = {asked.prompt for asked in posts(server)}
    assert len(posts(server)) - len(prompts) <= 2 + seconds * 4, "one prompt knocks, and not all"


@pytest.mark.slow
def test_try_waits_for_a_model_that_is_being_loaded(desk):
    with Provider(quirks=(loading(1.0),)).serve() as server:
        said = desk.try_(f"chat:m,base_url={server.url}")
    assert said.status == 0 and "RIGHT" in said.out and re.search("loading", said.all, re.IGNORECASE)


# ---- the server with a limit itself


def test_what_is_limited_is_written_to_disk_as_answered(desk):
    "At the command: no row of the run shows that the server was closed for a moment."
    with LimitedServer(says=lambda: limited(Retry_After="0.2"), closed=0.2) as server:
        said = desk.run(f"chat:m,base_url={server.url},concurrency=8", limit=1)
    assert said.status == 0 and len(server.refused) >= 1
    assert set(read_responses(desk.runs[0]).table["state"]) == {"answered"}


def test_the_limits_are_those_that_they_say():
    "Asked as fast as a loop can: closed, then open; at most so many at once; so many a second; so many at all."
    body = {"model": "m", "messages": [{"role": "user", "content": "Question: What is 3 + 6?\nChoices: A. 9\nB. 8"}]}
    for limits, passes in [(dict(closed=60), 1), (dict(rate=100), 10), (dict(free=7), 7), (dict(at_once=4), 30)]:
        server = LimitedServer(**limits)
        got = [server.choose(Asked(i, "/v1/chat/completions", {}, body)).status for i in range(30)]
        assert abs(got.count(200) - passes) <= 1 and len(server.refused) == 30 - got.count(200)
    server = LimitedServer(at_once=4)
    server.under_way = 4
    assert server.choose(Asked(0, "/v1/chat/completions", {}, body)).status == 429
    assert reply(Asked(0, "", {}, body)).body["choices"][0]["message"]["content"] == "A"
