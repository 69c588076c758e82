"The policy of waiting: rate limits, servers that are gone, waits that are too long. In simulated time, and over HTTP."

import asyncio
import math
import random
import time

import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents import chat
from cora_nb.respondents.chat import ChatRespondent, Pace
from cora_nb.respondents.protocol import ask
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants
from helpers import CUT_OFF
from faulty_server import GOOD, Answer, FaultyServer, completion, refusal
from simulated_time import Clock

VARIANTS = make_variants(math_benchmark(n=10))
PROMPTS = list({p.text: p for p in make_prompts(VARIANTS, template="bare")}.values())
pytestmark = pytest.mark.filterwarnings("error", "ignore::cora_nb.respondents.protocol.ServerWarning", CUT_OFF)


class SimulatedLoop(asyncio.SelectorEventLoop):
    "An event loop in which waiting takes no time."

    def __init__(self):
        super().__init__()
        self.now, select = 0.0, self._selector.select

        def at_once(timeout):
            self.now += timeout or 0.0
            return select(0)

        self._selector.select = at_once

    def time(self):
        return self.now

    monotonic = time


class Bucket:
    "At most so many requests a second; so many may come together."

    def __init__(self, rate, size):
        self.rate, self.size, self.held, self.at = rate, size, size, 0.0

    def wait(self, now):
        "0 for a request that is let pass, else the seconds until one would be."
        self.held, self.at = min(self.size, self.held + (now - self.at) * self.rate), now
        if self.held >= 1:
            self.held -= 1
            return 0.0
        return (1 - self.held) / self.rate


class Window(Bucket):
    "At most so many requests within a second."

    def __init__(self, rate, size):
        self.rate, self.times = rate, []

    def wait(self, now):
        self.times = [t for t in self.times if t > now - 1]
        if len(self.times) < self.rate:
            self.times.append(now)
            return 0.0
        return self.times[0] + 1 - now


def simulated(monkeypatch, server, tell, latency, at_once, n=200):
    "(seconds that n requests take, how many were refused)"
    loop, todo, refused, pace = SimulatedLoop(), iter(range(n)), [], Pace(at_once)
    monkeypatch.setattr(chat, "time", loop)

    async def worker():
        for _ in todo:
            while True:
                async with pace.turn() as started:
                    await asyncio.sleep(0.003)
                    wait = server.wait(loop.now)
                    await asyncio.sleep(0.003 if wait else latency)
                    if wait:
                        refused.append(wait)
                        pace.limited(started, {"no": 0.0, "seconds": math.ceil(wait), "exactly": wait}[tell])
                if not wait:
                    pace.replied()
                    break

    async def main():
        pace.open()
        await asyncio.gather(*(worker() for _ in range(at_once)))

    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
    return loop.now, len(refused)


@pytest.mark.slow
@pytest.mark.parametrize("tell", ["no", "seconds", "exactly"])
@pytest.mark.parametrize("rate", [5, 10])
@pytest.mark.parametrize("kind", [Bucket, Window])
def test_a_limited_server_is_asked_nearly_as_fast_as_it_allows(monkeypatch, kind, rate, tell):
    for latency in (0.01, 0.3, 1.0):
        for at_once in (32, 64):
            for seed in range(3):
                random.seed(seed)
                seconds, refused = simulated(monkeypatch, kind(rate, rate), tell, latency, at_once)
                assert seconds <= 1.8 * 200 / rate and refused < 600, (latency, at_once, seed, seconds, refused)


@pytest.mark.parametrize("tell", ["no", "seconds", "exactly"])
def test_a_server_without_any_burst(monkeypatch, tell):
    for rate in (5, 10):
        for at_once in (32, 64):
            random.seed(1)
            seconds, refused = simulated(monkeypatch, Bucket(rate, 1), tell, 0.3, at_once)
            most = {"no": 4, "seconds": 11, "exactly": 5}[tell] * 200 / rate
            assert seconds <= most and refused < 700, (rate, at_once, seconds, refused)


def test_a_limit_that_was_lifted_is_forgotten(monkeypatch):
    "One refusal, and a server without limits after it: 20,000 requests of 10 ms take no two minutes."

    class Once(Bucket):
        def wait(self, now):
            self.rate, once = 0, self.rate
            return float(once)

    seconds, refused = simulated(monkeypatch, Once(1.0, 1), "no", 0.01, 64, n=20_000)
    assert refused == 1 and seconds < 120


@pytest.mark.slow
def test_rate_limits_over_http_use_no_try_and_lose_no_prompt():
    "The small version of tools/benchmarks/bench_patience.py: 20 requests a second, no retries allowed."
    times = []

    def plan(asked):
        now = time.monotonic()
        if sum(t > now - 1 for t in times) < 20:
            times.append(now)
            return GOOD
        return Answer(429, refusal("slow down"), {"retry-after-ms": "200"} if asked.number % 2 else {})

    with FaultyServer(plan) as server:
        replies = ask(ChatRespondent("m", base_url=server.url, concurrency=32, retries=0), PROMPTS[:60])
        assert [r.text for r in replies] == ["B"] * 60 and len(server.asked) < 160


@pytest.mark.parametrize("status", [429, 503])
def test_a_pause_of_more_than_ten_minutes_stops_the_run_and_says_when_to_come_back(status, tmp_path):
    "One Retry-After of 999999999 froze a run."
    slow = Answer(status, refusal("quota of today"), {"Retry-After": "999999999"})
    with FaultyServer(lambda asked: slow if asked.number >= 10 else GOOD) as server, Store(tmp_path / "s.db") as store:
        model = ChatRespondent("m", base_url=server.url, concurrency=1)
        with pytest.raises(CoraError, match="quota of today; .*run again in more than ten years: ") as e:
            evaluate(model, VARIANTS, Asking("bare"), store=store, progress=False, strict=None)
        assert len(store) == 10 == len(server.asked) - 1 and "\n" not in str(e.value)
    slow = Answer(status, refusal("quota of today"), {"Retry-After": "7200"})
    with FaultyServer([slow]) as server:
        with pytest.raises(CoraError, match=r"quota of today; .*run again after \d{4}-\d\d-\d\d \d\d:\d\d: what is in"):
            ask(ChatRespondent("m", base_url=server.url), PROMPTS[:1])


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(chat, "time", clock := Clock())
    monkeypatch.setattr(chat, "asyncio", clock)
    return clock


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "20"}])
def test_nothing_but_rate_limits_for_ten_minutes_stops_the_run(clock, headers):
    with FaultyServer(lambda asked: Answer(429, refusal("no"), headers) if asked.number else GOOD) as server:
        with pytest.raises(CoraError, match="nothing but limits; run again after"):
            ask(ChatRespondent("m", base_url=server.url, concurrency=1), PROMPTS[:5])
        # pauses are at most half a minute, and a twentieth
        assert 560 < clock.now - 1000 <= 635 and len(server.asked) < 60
    start = clock.now
    with FaultyServer(lambda asked: Answer(429, refusal("no"), headers)) as server:  # nothing but that from the start
        with pytest.raises(CoraError, match="nothing but limits; run again after"):
            ask(ChatRespondent("m", base_url=server.url, concurrency=1), PROMPTS[:5])
        assert 55 < clock.now - start <= 125 and len(server.asked) < 12


def test_a_prompt_that_is_limited_for_ever_is_recorded_while_others_are_answered(clock):
    never = Answer(429, refusal("request too large: tokens per minute"))
    with FaultyServer(lambda asked: never if asked.prompt == PROMPTS[1].text else Answer()) as server:
        replies = ask(ChatRespondent("m", base_url=server.url, concurrency=3), PROMPTS[:150])
    assert [i for i, r in enumerate(replies) if r.error] == [1]
    assert replies[1].error.startswith("429 request too large: tokens per minute, ")
    assert replies[1].error.endswith("times while other prompts were answered")


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 32])
@pytest.mark.parametrize("death", ["gone", "cut"])
def test_a_server_that_dies_and_comes_back_after_the_stop(death, concurrency, tmp_path, clock):
    "All prompts are answered on the second run, and none twice."
    answered = []

    def plan(asked):
        if len(answered) >= 40 and death == "cut":
            return Answer(cut="before")
        answered.append(asked.prompt)
        if len(answered) == 40 and death == "gone":
            server._loop.call_later(0.05, server._listening.close)
            server._loop.call_later(0.05, lambda: [t.abort() for t in list(server._connections)])
        return Answer(body=completion(asked.prompt[-9:])) if len(answered) < 40 or death == "cut" else Answer(wait=60)

    with Store(tmp_path / "replies.db") as store:
        with FaultyServer(plan) as server:
            model = ChatRespondent("m", base_url=server.url, concurrency=concurrency)
            with pytest.raises(CoraError, match=", 8 times in a row with no reply between; run again when ") as e:
                evaluate(model, VARIANTS, Asking("bare"), store=store, progress=False, strict=None)
            assert "\n" not in str(e.value) and clock.now - 1000 < 60 * 9
            kept = len(store)
            assert kept == (40 if death == "cut" else 39)
        port = server.url.split(":")[2].removesuffix("/v1")
        with FaultyServer(lambda asked: Answer(body=completion(asked.prompt[-9:])), port=int(port)) as again:
            responses = evaluate(model, VARIANTS, Asking("bare"), store=store, progress=False, strict=None)
        assert responses.table["reply"].notna().all() and len(store) == len(PROMPTS)
        first, second = answered[:kept], [a.prompt for a in again.asked]
        assert len(second) == len(set(second)) == len(PROMPTS) - kept and not set(first) & set(second)


def test_one_lost_connection_holds_nobody_up():
    lost = Answer(cut="before")
    with FaultyServer(lambda asked: lost if asked.number == 5 else GOOD, gate=0) as server:
        model = ChatRespondent("m", base_url=server.url, concurrency=8)
        assert [r.text for r in ask(model, PROMPTS[:60])] == ["B"] * 60
        assert model._pace.at_once == 8 and model._pace.quiet_until == 0


def test_connections_lost_together_are_one_loss(clock):
    "A server that starts anew while 32 requests are under way is given its time, and no try is wasted on it."
    with FaultyServer(lambda asked: Answer(cut="before") if 0 < asked.number < 36 else GOOD, gate=0) as server:
        model = ChatRespondent("m", base_url=server.url, concurrency=32)
        assert [r.text for r in ask(model, PROMPTS[:100])] == ["B"] * 100


class BlockingStore(Store):
    "Stands still once, like a database that is being restarted."

    def put(self, key, reply):
        if self.kept == 10:
            time.sleep(4.0)
        return super().put(key, reply)


@pytest.mark.slow
def test_replies_that_arrive_while_a_reply_is_stored_are_received(tmp_path):
    "A time limit of 2.5 s, and a store that stands still for 4 s: nothing is asked, and paid, twice."
    variants = make_variants(math_benchmark(n=12))[:60]
    with FaultyServer(lambda asked: Answer(wait=0.1)) as server, BlockingStore(tmp_path / "s.db") as store:
        who = ChatRespondent("m", server.url, concurrency=16, timeout=2.5)
        found = evaluate(who, variants, store=store, progress=False)
        assert found.table["error"].isna().all()
        assert len(server.asked) == len(store)


@pytest.mark.slow
def test_a_server_that_is_too_slow_is_still_given_up(monkeypatch, tmp_path):
    "The store stands still all the time, and the time limit still ends a request that gets no reply."
    variants = make_variants(math_benchmark(n=12))[:30]
    monkeypatch.setattr(Store, "put", lambda self, key, reply, put=Store.put: time.sleep(0.15) or put(self, key, reply))
    with FaultyServer(lambda asked: Answer(wait=60 if asked.number == 3 else 0.01)) as server:
        with Store(tmp_path / "s.db") as store:
            who = ChatRespondent("m", server.url, concurrency=2, timeout=2.5, retries=1)
            assert evaluate(who, variants, store=store, progress=False).table["error"].isna().all()
            assert len(server.asked) == len(store) + 1


# ---- a prompt that is limited for ever


def test_a_prompt_is_not_given_up_while_no_other_is_answered(clock):
    "Then it is the server that is busy: 21 refusals, and a reply."
    limited = Answer(429, refusal("slow down"))
    with FaultyServer(lambda asked: limited if 0 < asked.number < 22 else GOOD) as server:
        replies = ask(ChatRespondent("m", base_url=server.url, concurrency=1, retries=0), PROMPTS[:2])
        assert [r.error for r in replies] == [None] * 2 and len(server.asked) == 23


def limiting_the_first(times, most, limited):
    "A plan that answers the first prompt with a rate limit so many times, and notes when it was asked."

    def plan(asked):
        if asked.prompt != PROMPTS[1].text:
            return GOOD
        times.append(asked.number)
        return limited if len(times) <= most else GOOD

    return plan


@pytest.mark.parametrize("others", [10, 19])
def test_a_prompt_is_not_given_up_while_few_others_are_answered(clock, others):
    times = []
    with FaultyServer(limiting_the_first(times, 22, Answer(429, refusal("slow down")))) as server:
        replies = ask(ChatRespondent("m", base_url=server.url, concurrency=2, retries=0), PROMPTS[: 2 + others])
    assert [r.error for r in replies] == [None] * (2 + others) and len(times) == 23


def test_a_prompt_is_given_up_after_twenty_refusals_not_before(clock):
    "However many others were answered until then."
    times, limited = [], Answer(429, refusal("too large"))
    with FaultyServer(limiting_the_first(times, 19, limited)) as server:
        replies = ask(ChatRespondent("m", base_url=server.url, concurrency=3, retries=0), PROMPTS[:150])
    assert [r.error for r in replies] == [None] * 150 and len(times) == 20
    with FaultyServer(lambda asked: limited if asked.prompt == PROMPTS[1].text else GOOD) as server:
        replies = ask(ChatRespondent("m", base_url=server.url, concurrency=3, retries=0), PROMPTS[:150])
        asked = sum(a.prompt == PROMPTS[1].text for a in server.asked)
    assert replies[1].error == f"429 too large, {asked} times while other prompts were answered" and asked >= 20


def test_a_respondent_begins_anew_after_a_run_that_was_given_up(clock):
    "What ended one run is no reason to end the next, and a server that is there again is asked."
    state = {"plan": Answer(429, refusal("no"))}
    with FaultyServer(lambda asked: state["plan"]) as server:
        model = ChatRespondent("m", base_url=server.url, concurrency=1)
        with pytest.raises(CoraError, match="nothing but limits"):
            ask(model, PROMPTS[:5])
        clock.now += 3600
        asked, state["plan"] = len(server.asked), Answer(429, refusal("no"))
        with pytest.raises(CoraError, match="nothing but limits"):
            ask(model, PROMPTS[:5])
        assert len(server.asked) - asked > 3
        clock.now += 3600
        state["plan"] = GOOD
        assert [r.error for r in ask(model, PROMPTS[:5])] == [None] * 5


def test_a_limit_within_status_200_is_waited_for():
    "OpenRouter sends the code of its provider in the body."
    said = {"error": {"code": 429, "message": "rate limited upstream, retry in 0.05 s"}}
    with FaultyServer(lambda asked: Answer(body=said) if asked.number in (1, 2, 3) else GOOD) as server:
        model = ChatRespondent("m", base_url=server.url, concurrency=1, retries=0)
        assert [r.text for r in ask(model, PROMPTS[:6])] == ["B"] * 6


def test_a_busy_server_is_asked_again_at_the_first_prompt(clock):
    with FaultyServer([Answer(503, refusal("The model is overloaded"))] * 4) as server:
        model = ChatRespondent("m", base_url=server.url, concurrency=1)
        assert [r.text for r in ask(model, PROMPTS[:2])] == ["B"] * 2
