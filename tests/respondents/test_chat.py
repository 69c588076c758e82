"""The chat respondent against a server that fails in every way: what is retried, recorded, and stops the run.

And limits, order, keys.
"""

import asyncio
import email.utils
import gc
import json
import math
import random
import re
import time
import warnings
from collections import Counter
from contextlib import aclosing

import numpy as np
import openai
import pytest
from hypothesis import given, strategies as st

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError, Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents import chat
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.chat_replies import asked_wait, letter_scores
from cora_nb.respondents.protocol import ServerWarning, ask, stream
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Store, asked_prompts
from cora_nb.variants.families import make_variants
from faulty_server import AGAIN, GOOD, LIMITS, RECORDED, STOPS, Answer, FaultyServer, completion, refusal
from simulated_time import Clock
from helpers import CUT_OFF, slow_after

VARIANTS = make_variants(math_benchmark(n=100, seed=1))
ALL = make_prompts(
    VARIANTS, template="bare"
)  # some say the same: of the few orders of two choices, a shuffle may be any
PROMPTS = list({p.text: p for p in ALL}.values())
KEY = "sk-secret-0123456789"
pytestmark = pytest.mark.filterwarnings("error", CUT_OFF)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    "No time passes between two tries, unless a server asks for it."
    monkeypatch.setattr(random, "uniform", lambda low, high: 0.0)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(random, "uniform", lambda low, high: high)
    monkeypatch.setattr(chat, "time", clock := Clock())
    monkeypatch.setattr(chat, "asyncio", clock)
    return clock


def texts(replies):
    return [r.text for r in replies]


# ---- failures


@pytest.mark.parametrize("fault", AGAIN | LIMITS)
def test_a_bad_moment_is_tried_again(fault):
    with FaultyServer([(AGAIN | LIMITS)[fault]] * 2) as server:
        replies = ask(ChatRespondent("m", base_url=server.url, concurrency=1), PROMPTS[:2])
        assert texts(replies) == ["B", "B"] and [r.error for r in replies] == [None, None]
        assert [a.prompt for a in server.asked] == [PROMPTS[0].text] * 3 + [PROMPTS[1].text]


@pytest.mark.parametrize("fault", AGAIN)
def test_a_bad_moment_that_does_not_pass_is_recorded(fault):
    with FaultyServer(lambda asked: AGAIN[fault] if asked.prompt == PROMPTS[1].text else GOOD) as server:
        good, broken = ask(ChatRespondent("m", base_url=server.url, concurrency=1, retries=2), PROMPTS[:2])
        assert (
            broken.text is None
            and broken.error.endswith(", tried 3 times")
            and len(broken.error) < 400
            and "\n" not in broken.error
        )
        assert good.text == "B" and len(server.asked) == 4


def test_what_the_errors_say():
    said = {
        "503": "503 overloaded",
        "502, in HTML": "502 <html> <body>Bad Gateway",
        "cut in the body": "connection failed",
        "malformed JSON": "unusable reply",
        "a list": "the server sent no JSON object",
        "no choices": "the server sent no choices",
        "an error with status 200": "upstream is down",
        "no message": "the server sent no message",
        "message null": "the server sent no message",
        "content that is no text": "the server sent no text",
    }
    for fault, words in said.items():
        with FaultyServer([GOOD, AGAIN[fault]]) as server:
            model = ChatRespondent("m", base_url=server.url, retries=0)
            ask(model, PROMPTS[:1])
            assert words in ask(model, PROMPTS[1:2])[0].error


@pytest.mark.parametrize("fault", [fault for fault, answer in STOPS.items() if answer.status not in (403, 404)])
def test_what_concerns_all_prompts_stops_the_run_with_the_servers_words(fault):
    answer = STOPS[fault]
    with FaultyServer([GOOD, GOOD, *[answer] * 1000]) as server:
        with pytest.raises(CoraError) as e:
            ask(ChatRespondent("some-model", base_url=server.url, concurrency=4), PROMPTS[:500])
        words = answer.body["error"]["message"] if isinstance(answer.body, dict) else answer.body.decode()
        assert str(e.value).startswith(f"some-model at {server.url}: {answer.status} {words}")
        assert len(server.asked) <= 2 + 4 + 4  # nobody is asked after that but by requests that were on their way


@pytest.mark.parametrize("fault", RECORDED)
def test_what_concerns_one_prompt_is_recorded_and_the_run_goes_on(fault):
    with FaultyServer(lambda asked: RECORDED[fault] if asked.prompt == PROMPTS[3].text else GOOD) as server:
        replies = ask(ChatRespondent("m", base_url=server.url, concurrency=3), PROMPTS[:9])
        assert texts(replies).count("B") == 8 and len(server.asked) == 9  # not tried again
        if fault == "422":
            assert [i for i, r in enumerate(replies) if r.error] == [3] and replies[3].error.startswith("422 ")
        else:  # refused for good: a reply that says nothing, and no failure
            assert [r.error for r in replies] == [None] * 9 and replies[3].text == ""
            assert replies[3].meta["finish_reason"] in ("refusal", "content_filter")


@pytest.mark.parametrize("fault", ["400", "content filter", "refused with 400"])
def test_what_a_server_refuses_for_good_is_unparsed(fault, tmp_path):
    "A content filter and a prompt that is too long are no failures, and no answers: a later run asks again."
    with FaultyServer(lambda asked: RECORDED[fault] if asked.prompt == PROMPTS[3].text else GOOD) as server:
        with Store(tmp_path / "s.sqlite") as store:
            who, asked = ChatRespondent("m", base_url=server.url, concurrency=3), VARIANTS[:9]
            first, again = (
                evaluate(who, asked, Asking("bare"), store=store, progress=False, strict=None) for _ in range(2)
            )
            assert len(store) == first.facts.calls["asked"] - 1
        total = first.summary().loc["all"]
        assert (total["failed"], total["unparsed"]) == (0, 1) and first.failed_remarks == ()
        assert again.facts.calls["asked"] == 1 and again.table.equals(first.table)
        (refused,) = np.flatnonzero(first.table["reply"] == "")
        assert first.table["finish"][refused] in ("refusal", "content_filter")


@pytest.mark.slow
@pytest.mark.parametrize("status", [403, 404])
def test_forbidden_prompts_are_recorded_up_to_a_limit(status):
    "A moderated prompt in sixty makes no run impossible; a key that has run out ends it."
    forbidden = Answer(status, refusal("not this one"))
    with FaultyServer(lambda asked: forbidden if asked.number % 30 == 29 else GOOD) as server:
        replies = ask(ChatRespondent("m", base_url=server.url, concurrency=4), ALL[:1000])
        assert {r.error for r in replies} == {None, f"{status} not this one"} and len(server.asked) == 1000
        assert sum(r.error is not None for r in replies) == 33
    with FaultyServer(lambda asked: forbidden if asked.number >= 10 else GOOD) as server:
        model, came = ChatRespondent("m", base_url=server.url, concurrency=1), []
        with pytest.raises(CoraError, match=f"{status} not this one"):
            stream(model, PROMPTS[:100], lambda position, reply: came.append(reply))
        assert len(server.asked) == 10 + 21 and [r.text for r in came[:10]] == ["B"] * 10 and len(came) >= 30
    with FaultyServer([forbidden]) as server:  # at the start
        with pytest.raises(CoraError, match=f"{status} not this one"):
            ask(ChatRespondent("m", base_url=server.url, concurrency=1), PROMPTS[:100])
        assert len(server.asked) == 1


def test_a_server_that_refuses_every_prompt_stops_the_run():
    """A request it does not understand is not the prompts' fault.

    One reply in between, and the refusals are single prompts' again.
    """
    refused = RECORDED["400"]
    with FaultyServer(lambda asked: refused) as server:
        with pytest.raises(CoraError, match="400 .*the first 20 prompts were all refused"):
            ask(ChatRespondent("m", base_url=server.url, concurrency=4), PROMPTS[:500])
        assert len(server.asked) < 30
    with FaultyServer(lambda asked: GOOD if asked.number == 7 else refused) as server:
        replies = ask(ChatRespondent("m", base_url=server.url, concurrency=4), PROMPTS[:60])
        assert texts(replies).count("B") == 1 and len(server.asked) == 60
        assert texts(replies).count("") == 59 and not any(r.error for r in replies)  # refused, each of them


def test_prompts_that_are_refused_again_are_failures_again(tmp_path):
    "A second run asks only those that failed: all are refused, and its replies in the store show that they are why."
    variants = make_variants(math_benchmark(n=4))
    bad = {p.text for p in make_prompts(variants)[-30:]}
    refused = Answer(422, refusal("bad thing"))
    with FaultyServer(lambda asked: refused if asked.prompt in bad else GOOD) as server, Store(tmp_path / "s") as store:
        for _ in range(2):
            run = evaluate(ChatRespondent("m", base_url=server.url), variants, store=store, progress=False, strict=None)
            assert int(run.table["error"].notna().sum()) == sum(p.text in bad for p in make_prompts(variants)) >= 25
        with pytest.raises(CoraError, match="422 bad thing"):
            ask(ChatRespondent("m", base_url=server.url), make_prompts(variants)[-30:])


def test_kept_refusals_do_not_speak_for_a_server(tmp_path):
    "A wrongly configured server refuses the second run as it refused the first, part of which is in the store."
    variants = make_variants(math_benchmark(n=6))
    with FaultyServer(lambda asked: RECORDED["400"]) as server, Store(tmp_path / "s") as store:
        for _ in range(2):
            with pytest.raises(CoraError, match="400 .*the first 20 prompts were all refused"):
                evaluate(ChatRespondent("m", base_url=server.url), variants, store=store, progress=False, strict=None)


@pytest.mark.slow
def test_timeouts_and_slow_replies():
    slow = Answer(wait=60)
    with FaultyServer(lambda asked: slow if asked.prompt == PROMPTS[1].text else GOOD) as server:
        replies = ask(ChatRespondent("m", base_url=server.url, timeout=2.5, retries=1, concurrency=1), PROMPTS[:3])
        assert replies[1].error == "no reply within 2.5 s, tried 2 times" and texts(replies)[::2] == ["B", "B"]
    with FaultyServer([slow]) as server:  # once slow
        assert texts(ask(ChatRespondent("m", base_url=server.url, timeout=2.5), PROMPTS[:1])) == ["B"]
    with FaultyServer([Answer(wait=0.3)] * 4) as server:  # slow, and patient
        assert texts(ask(ChatRespondent("m", base_url=server.url), PROMPTS[:4])) == ["B"] * 4 and len(server.asked) == 4


@pytest.mark.slow
def test_a_reply_that_trickles_in_has_no_more_time_than_another():
    # each byte arrives in time, the whole would take 10 s
    with FaultyServer([Answer(drip=0.05)] * 2) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore", ServerWarning)
        assert (
            texts(ask(ChatRespondent("m", base_url=server.url, timeout=2.5), PROMPTS[:1])) == ["B"]
            and len(server.asked) == 3
        )
    with FaultyServer([Answer(drip=0.0005)]) as server:  # slowly, but surely
        assert (
            texts(ask(ChatRespondent("m", base_url=server.url, timeout=60), PROMPTS[:1])) == ["B"]
            and len(server.asked) == 1
        )


def test_nobody_there():
    with FaultyServer() as server:
        address = server.url  # closed again
    with pytest.raises(CoraError, match="m at .*: connection failed"):
        ask(ChatRespondent("m", base_url=address, retries=1), PROMPTS[:40])


def test_a_server_that_answers_badly_from_the_start_stops_the_run():
    for fault in ("500", "malformed JSON"):
        with FaultyServer(lambda asked: AGAIN[fault]) as server:
            with pytest.raises(CoraError, match="500 something broke; tried 2 times|unusable reply"):
                ask(ChatRespondent("m", base_url=server.url, retries=1), PROMPTS[:100])
            assert len(server.asked) == 2


def test_a_server_that_goes_away_later():
    server = FaultyServer()
    with server:
        model = ChatRespondent("m", base_url=server.url, retries=1)
        assert texts(ask(model, PROMPTS[:3])) == ["B"] * 3
    assert all("connection failed" in r.error and r.error.endswith("tried 2 times") for r in ask(model, PROMPTS[:3]))


def test_json_by_another_name():
    with FaultyServer([Answer(headers={"Content-Type": "text/plain"})]) as server:
        assert texts(ask(ChatRespondent("m", base_url=server.url), PROMPTS[:1])) == ["B"] and len(server.asked) == 1


def test_null_content_is_an_empty_reply():
    with FaultyServer([Answer(body=completion(None)), Answer(body=completion(""))]) as server:
        assert texts(ask(ChatRespondent("m", base_url=server.url, concurrency=1), PROMPTS[:2])) == ["", ""]


def test_a_prompt_that_is_no_text_does_not_end_the_run():
    odd = make_prompts(make_variants([Question("odd", "half a pair: \ud800", ("x", "y"), 0)]), template="bare")
    with FaultyServer() as server:
        replies = ask(ChatRespondent("m", base_url=server.url), [odd[0], PROMPTS[0]])
        assert replies[0].text == "B" or "cannot be sent" in replies[0].error  # older HTTP libraries can send it
        assert replies[1].text == "B" and len(server.asked) <= 2  # in any case nothing is tried again


@pytest.mark.slow
def test_two_thousand_prompts_and_every_fault():
    """Every prompt is answered or recorded with its error, and the counts add up.

    What happens to a prompt depends on its text and on how often it was tried, so it is the same in every run.
    """
    tries, often = Counter(), [*AGAIN.values(), Answer(wait=0.02), Answer(drip=0.0001)]
    assert len(ALL) == 2000

    def fate(text):  # of a prompt: 1 in 40 is refused, 1 in 40 always fails
        draw = random.Random(text).random()
        return "refused" if draw < 0.025 else "broken" if draw < 0.05 else "well"

    def plan(asked):
        tries[asked.prompt] += 1
        draw = random.Random(f"{asked.prompt} {tries[asked.prompt]}")
        if (f := fate(asked.prompt)) == "refused":
            return draw.choice(list(RECORDED.values()))
        if f == "broken":
            return draw.choice(list(AGAIN.values()))
        if tries[asked.prompt] == 1 and draw.random() < 0.01:
            return Answer(wait=60)  # past the client's timeout
        return draw.choice(often) if draw.random() < 0.3 else GOOD

    with FaultyServer(plan) as server:
        responses = evaluate(
            ChatRespondent("m", base_url=server.url, concurrency=64, timeout=3.0, retries=5),
            VARIANTS,
            Asking("bare"),
            progress=False,
            strict=None,
        )
    assert [p.variant.question_id for p in ALL] == responses.table["question_id"].tolist() and set(tries) == {
        p.text for p in PROMPTS
    }
    answered = responses.table["reply"].notna()
    assert (answered ^ responses.table["error"].notna()).all()  # one or the other, never both or neither
    fates = [fate(p.text) for p in ALL]
    for f, error, ok, finish in zip(fates, responses.table["error"], answered, responses.table["finish"]):
        if f == "refused":  # for good, which is a reply, or for another reason
            assert finish in ("content_filter", "refusal") if ok else error.startswith("422")
        elif f == "broken":
            assert error.endswith("tried 6 times")
        else:
            assert ok or error.endswith("tried 6 times")
    lost = sum(f == "well" and not ok for f, ok in zip(fates, answered))  # six bad moments in a row, 0.3**6
    refused = sum(f == "refused" and not ok for f, ok in zip(fates, answered))
    assert (
        fates.count("refused") > 20
        and 0 < refused < fates.count("refused")
        and fates.count("broken") > 20
        and lost < 20
    )
    total = responses.summary().loc["all"]
    assert total["rows"] == 2000 == total["right"] + total["wrong"] + total["unparsed"] + total["failed"]
    assert total["failed"] == refused + fates.count("broken") + lost == 2000 - answered.sum()
    assert total["unparsed"] == fates.count("refused") - refused


# ---- pauses


def test_pauses_double_up_to_a_minute(clock):
    with FaultyServer(lambda asked: AGAIN["500"] if asked.number else GOOD) as server:
        ask(ChatRespondent("m", base_url=server.url, retries=10, concurrency=1), PROMPTS[:2])
    assert clock.pauses == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60]


@pytest.mark.slow
def test_no_number_of_retries_is_too_many(clock):
    with FaultyServer(lambda asked: AGAIN["500"] if 0 < asked.number < 1100 else GOOD) as server:
        model = ChatRespondent("m", base_url=server.url, retries=2000, concurrency=1)
        assert texts(ask(model, PROMPTS[:2])) == ["B"] * 2


@pytest.mark.parametrize(
    "headers,least,most",
    [
        ({"Retry-After": "4"}, 4, 4.21),  # and up to a twentieth more
        ({"retry-after-ms": "2500"}, 2.5, 2.63),
        ({"Retry-After": "4", "retry-after-ms": "1500"}, 1.5, 1.58),
        ({}, 0.1, 0.106),
        ({"Retry-After": "later"}, 0.1, 0.106),
        ({"Retry-After": "-1"}, 0.1, 0.106),
        ({"Retry-After": "0"}, 0.1, 0.106),
    ],
)
def test_the_pause_a_server_asks_for(clock, headers, least, most):
    with FaultyServer([Answer(429, refusal("slow down"), headers)]) as server:
        ask(ChatRespondent("m", base_url=server.url, concurrency=1), PROMPTS[:1])
    assert len(clock.pauses) == 1 and least <= clock.pauses[0] <= most


def test_a_pause_until_a_date(clock):
    date = email.utils.formatdate(time.time() + 200, usegmt=True)
    with FaultyServer([Answer(503, refusal("overloaded"), {"Retry-After": date})]) as server:
        with pytest.warns(ServerWarning, match="overloaded"):
            assert texts(ask(ChatRespondent("m", base_url=server.url, concurrency=1), PROMPTS[:1])) == ["B"]
    assert 150 < sum(clock.pauses) <= 210


def test_a_pause_holds_for_everybody(clock, monkeypatch):
    "After the server's word has been heard, no request starts before the time it named."
    starts, send = [], ChatRespondent._send

    async def seen(self, *about):
        starts.append((clock.now, self._pace.quiet_until))
        return await send(self, *about)

    monkeypatch.setattr(ChatRespondent, "_send", seen)
    with (
        FaultyServer(
            lambda asked: Answer(429, refusal("slow down"), {"Retry-After": "50"}) if asked.number in (3, 20) else GOOD
        ) as server,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", ServerWarning)
        assert texts(ask(ChatRespondent("m", base_url=server.url, concurrency=4), PROMPTS[:60])) == ["B"] * 60
    assert all(now >= quiet for now, quiet in starts)
    assert len(starts) == 62 and starts[0][0] == 1000 and starts[-1][0] >= 1100  # two pauses of 50 s
    assert sum(now < 1050 for now, _ in starts) < 15  # and those not only for the request that was refused


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms"]),
        st.text(max_size=40)
        | st.floats().map(str)
        | st.datetimes().map(lambda d: d.strftime("%a, %d %b %Y %H:%M:%S GMT")),
    )
)
def test_any_retry_after_gives_a_number(headers):
    assert 0 <= asked_wait(headers, {}) < float("inf")


# ---- how many at a time, and when


@pytest.mark.parametrize("concurrency", [1, 3, 8, 33])
def test_never_more_at_a_time_than_allowed(concurrency):
    faults = [LIMITS["429 with Retry-After"], *(AGAIN[f] for f in ("500", "malformed JSON", "no choices"))]
    with FaultyServer(
        lambda asked: faults[asked.number % 4] if asked.number % 7 == 3 else GOOD, gate=concurrency
    ) as server:
        assert (
            texts(ask(ChatRespondent("m", base_url=server.url, concurrency=concurrency), PROMPTS[:150])) == ["B"] * 150
        )
        assert server.most_at_once == concurrency  # the gate opens only when so many are under way; never more


def test_no_more_at_a_time_than_there_are_prompts():
    with FaultyServer(gate=4) as server:
        assert texts(ask(ChatRespondent("m", base_url=server.url, concurrency=1000), PROMPTS[:5])) == ["B"] * 5
    assert ask(ChatRespondent("m", base_url="http://127.0.0.1:9"), []) == []


def test_the_next_question_waits_until_the_last_reply_was_taken_over():
    async def slow_reader(model, server):
        taken = 0
        async for _ in model.answer(PROMPTS[:12]):
            await asyncio.sleep(0.03)  # time enough for a worker that does not wait
            assert len(server.asked) <= 3 + taken
            taken += 1
        return taken

    with FaultyServer() as server:
        assert (
            asyncio.run(slow_reader(ChatRespondent("m", base_url=server.url, concurrency=3), server))
            == 12
            == len(server.asked)
        )


def test_each_prompt_once_and_every_reply_in_its_place():
    with FaultyServer(
        lambda asked: Answer(body=completion(asked.prompt[-60:]), wait=random.Random(asked.number).random() / 50)
    ) as server:
        replies = ask(ChatRespondent("m", base_url=server.url, concurrency=16), PROMPTS[:100])
        assert texts(replies) == [p.text[-60:] for p in PROMPTS[:100]]
        assert Counter(a.prompt for a in server.asked) == Counter(p.text for p in PROMPTS[:100])


@pytest.mark.parametrize("after", slow_after(1, [1, 0, 7]))
def test_an_early_end_leaves_nothing_behind(after):
    async def leave(model):
        async with aclosing(model.answer(PROMPTS[:200])) as replies:
            if after == 0:  # while the first is still awaited
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(anext(replies), 0.2)
            else:
                for _ in range(after):
                    await anext(replies)
        return [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]

    complaints = []
    with (
        FaultyServer(lambda asked: Answer(wait=0.01 if after else 60)) as server,
        warnings.catch_warnings(record=True) as said,
    ):
        warnings.simplefilter("always")
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda loop, context: complaints.append(context))
        try:
            assert loop.run_until_complete(leave(ChatRespondent("m", base_url=server.url, concurrency=20))) == []
        finally:
            loop.close()
        gc.collect()
        assert complaints == [] and [str(w.message) for w in said] == []
        asked = len(server.asked)
        assert asked <= 20 + after


def test_a_reader_that_fails_ends_the_asking():
    def no_room(position, reply):
        raise CoraError("the disk is full")

    with FaultyServer() as server:
        with pytest.raises(CoraError, match="the disk is full"):
            stream(ChatRespondent("m", base_url=server.url, concurrency=2), PROMPTS[:100], no_room)
        assert len(server.asked) <= 2


# ---- what is sent


def test_what_is_sent():
    with FaultyServer() as server:
        model = ChatRespondent("m", base_url=server.url + "/", max_tokens=7, temperature=0.5, extra={"top_p": 0.9})
        ask(model, PROMPTS[:1])
    asked = server.asked[0]
    assert (
        asked.path == "/v1/chat/completions"
        and asked.headers["authorization"] == f"Bearer {KEY}"
        and asked.headers["content-type"] == "application/json"
    )
    assert asked.body == {
        "model": "m",
        "messages": PROMPTS[0].messages,
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 7,
    }
    assert model.request(PROMPTS[0]) == {"server": server.url, "endpoint": "chat", **asked.body}


def test_a_system_message_is_sent_ahead_and_is_part_of_the_key():
    with FaultyServer() as server:
        plain, system = (ChatRespondent("m", base_url=server.url, system=words) for words in ("", "This is an exam."))
        for model in (plain, system):
            ask(model, PROMPTS[:1])
    sent = [a.body["messages"] for a in server.asked]
    assert sent == [PROMPTS[0].messages, [{"role": "system", "content": "This is an exam."}, *PROMPTS[0].messages]]
    assert [m.request(PROMPTS[0])["messages"] for m in (plain, system)] == sent
    assert "system" not in plain.describe() and system.describe()["system"] == "This is an exam."
    assert asked_prompts(plain, PROMPTS)[1] != asked_prompts(system, PROMPTS)[1]
    for wrong in ({"system": ["x"]}, {"system": "x", "endpoint": "completions"}):
        with pytest.raises(CoraError, match="system"):
            ChatRespondent("m", base_url=server.url, **wrong)


def test_room_for_several_letters():
    "Where several letters may be named, one token would make every model name one."
    from dataclasses import replace

    several = replace(PROMPTS[0], variant=replace(PROMPTS[0].variant, form="several"))
    with FaultyServer() as server:
        models = [ChatRespondent("m", base_url=server.url, max_tokens=n) for n in (1, 50)]
        for model in models:
            ask(model, [several])
    assert (
        [a.body["max_tokens"] for a in server.asked]
        == [3 * several.variant.n_choices, 50]
        == [m.request(several)["max_tokens"] for m in models]
    )


def test_seeds_are_the_same_every_time_and_differ_between_trials():
    prompts = make_prompts(VARIANTS[:3], trials=3)
    seen = []
    for _ in range(2):
        with FaultyServer() as server:
            ask(ChatRespondent("m", base_url=server.url, seed=40, temperature=1, concurrency=2), prompts)
        seen.append({(a.prompt, a.body["seed"]) for a in server.asked})
    assert seen[0] == seen[1] == {(p.text, 40 + p.trial) for p in prompts}
    with FaultyServer() as server:
        ask(ChatRespondent("m", base_url=server.url), prompts)
    assert all("seed" not in a.body for a in server.asked)


@pytest.mark.parametrize("concurrency,retries", [(1, 0), (8, 0), (8, 3)])
def test_a_model_that_wants_max_completion_tokens(concurrency, retries):
    "The first request finds out, and none is lost."
    new = Answer(
        400,
        refusal(
            "Unsupported parameter: 'max_tokens' is not supported with this model."
            " Use 'max_completion_tokens' instead.",
            code="unsupported_parameter",
        ),
    )
    with FaultyServer(lambda asked: new if "max_tokens" in asked.body else GOOD) as server:
        model = ChatRespondent("m", base_url=server.url, max_tokens=5, concurrency=concurrency, retries=retries)
        assert texts(ask(model, PROMPTS[:30])) == ["B"] * 30
        assert len(server.asked) == 31 and server.asked[-1].body["max_completion_tokens"] == 5
        ask(model, PROMPTS[:5])
        assert len(server.asked) == 36  # it remembers
    with FaultyServer(lambda asked: new) as server:  # a server that is never content
        with pytest.raises(CoraError, match="max_completion_tokens"):
            ask(ChatRespondent("m", base_url=server.url), PROMPTS[:1])
        assert len(server.asked) == 2


def test_azure():
    with FaultyServer() as server:
        assert texts(
            ask(
                ChatRespondent("my-model", base_url=server.url.removesuffix("/v1"), api_version="2024-10-21"),
                PROMPTS[:2],
            )
        ) == ["B", "B"]
    assert {a.path for a in server.asked} == {"/openai/deployments/my-model/chat/completions?api-version=2024-10-21"}
    assert {a.headers["api-key"] for a in server.asked} == {KEY}


ITS_OWN = {"x-stainless-read-timeout", "host", "content-length"}  # headers that may differ: our time limit is shorter


def test_a_request_is_the_one_of_the_openai_package():
    "The same fields and the same headers, except those named above."

    async def as_documented(url):
        async with openai.AsyncOpenAI(base_url=url, max_retries=0) as client:
            await client.chat.completions.create(
                model="m", messages=PROMPTS[0].messages, temperature=0.0, max_tokens=30, extra_body={"ä": "–"}
            )

    with FaultyServer() as server:
        asyncio.run(as_documented(server.url))
        ask(ChatRespondent("m", base_url=server.url, max_tokens=30, extra={"ä": "–"}), PROMPTS[:1])
        theirs, ours = server.asked
    assert ours.body == theirs.body and ours.path == theirs.path
    differ = {n for n in theirs.headers | ours.headers if theirs.headers.get(n) != ours.headers.get(n)}
    assert differ <= ITS_OWN
    assert ours.headers["user-agent"].removeprefix("Async") == theirs.headers["user-agent"].removeprefix("Async")


def test_cookies_and_redirects_are_followed():
    "A load balancer may keep a connection at one server with a cookie, and a proxy may move the address."
    with FaultyServer(
        [Answer(headers={"Set-Cookie": "at=gpu7; Path=/"}), GOOD, Answer(307, b"", {"Location": "/v2"})]
    ) as server:
        assert texts(ask(ChatRespondent("m", base_url=server.url, concurrency=1), PROMPTS[:3])) == ["B"] * 3
    assert [a.headers.get("cookie") for a in server.asked] == [None] + ["at=gpu7"] * 3
    assert [a.path for a in server.asked[2:]] == ["/v1/chat/completions", "/v2"]
    assert server.asked[3].body == server.asked[2].body == {**server.asked[0].body, "messages": PROMPTS[2].messages}


@pytest.mark.parametrize("azure", [False, True])
def test_another_server_gets_no_key_by_a_redirect(azure):
    with FaultyServer() as other:
        with FaultyServer([Answer(307, b"", {"Location": other.url + "/chat/completions"})]) as server:
            dialect = {"api_version": "2024-10-21"} if azure else {}
            assert texts(ask(ChatRespondent("m", base_url=server.url, **dialect), PROMPTS[:1])) == ["B"]
    assert KEY in str(server.asked[0].headers) and KEY not in str(other.asked[0].headers)
    assert other.asked[0].body == server.asked[0].body


ENVIRONMENT = {  # what the `openai` package reads by itself
    "OPENAI_ORG_ID": "our-organization",
    "OPENAI_PROJECT_ID": "our-project",
    "OPENAI_CUSTOM_HEADERS": "X-Team: cora",
    "AZURE_OPENAI_AD_TOKEN": "a-token",
    "OPENAI_BASE_URL": "http://another.invalid/v1",
}


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
@pytest.mark.parametrize("path, api_version", [("/v1", None), ("/v1/", None), ("", "2024-10-21")])
def test_the_environment_counts_as_in_the_openai_package(monkeypatch, endpoint, path, api_version):
    "Address and headers are those of its asynchronous client, and requests go through the proxy of the environment."
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    address = "http://server.invalid" + path

    def client():
        if api_version is None:
            return openai.AsyncOpenAI(base_url=address, max_retries=0)
        azure = {"azure_endpoint": address, "azure_deployment": "m", "api_key": KEY}
        return openai.AsyncAzureOpenAI(api_version=api_version, max_retries=0, **azure)

    async def as_documented():
        async with client() as asks:
            if endpoint == "chat":
                return await asks.chat.completions.create(model="m", messages=PROMPTS[0].messages)
            return await asks.completions.create(model="m", prompt=PROMPTS[0].text)

    body = completion()
    body["choices"][0]["text"] = "B"  # for completions
    with FaultyServer(lambda asked: Answer(body=body)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        asyncio.run(as_documented())
        who = ChatRespondent("m", base_url=address, endpoint=endpoint, api_version=api_version)
        assert texts(ask(who, PROMPTS[:1])) == ["B"]
        theirs, ours = proxy.asked
    assert ours.path == theirs.path and "server.invalid" in ours.path + ours.headers["host"]
    differ = {n for n in theirs.headers | ours.headers if theirs.headers.get(n) != ours.headers.get(n)}
    assert differ <= ITS_OWN and ours.headers["host"] == theirs.headers["host"]


# ---- log-probabilities


TOKENS = [
    {
        "token": "B",
        "logprob": -0.25,
        "top_logprobs": [
            {"token": "B", "logprob": -0.25},
            {"token": " A", "logprob": -2.0},
            {"token": "The", "logprob": -3.0},
        ],
    },
    {"token": ".", "logprob": -0.5, "top_logprobs": []},
]


def test_logprobs_of_chat():
    named = completion("B.", logprobs={"content": TOKENS}) | {"model": "m-2024-08-06"}
    with FaultyServer(lambda asked: Answer(body=named)) as server:
        (reply,) = ask(ChatRespondent("m", base_url=server.url, top_logprobs=3, max_tokens=2), PROMPTS[:1])
    assert server.asked[0].body["logprobs"] is True and server.asked[0].body["top_logprobs"] == 3
    assert reply.scores == pytest.approx((-2.0, -0.25, *[-float("inf")] * (PROMPTS[0].variant.n_choices - 2)))
    assert reply.confidence == pytest.approx(2.718281828**-0.75) and reply.meta["mean_logprob"] == -0.375
    assert {k: reply.meta[k] for k in ("prompt_tokens", "completion_tokens", "finish_reason", "model")} == {
        "prompt_tokens": 9,
        "completion_tokens": 1,
        "finish_reason": "stop",
        "model": "m-2024-08-06",
    }


def test_logprobs_of_completions():
    body = {
        "choices": [
            {
                "text": " B",
                "finish_reason": "length",
                "logprobs": {"tokens": [" B"], "token_logprobs": [-0.25], "top_logprobs": [{" B": -0.25, " A": -2.0}]},
            }
        ]
    }
    with FaultyServer(lambda asked: Answer(body=body)) as server:
        (reply,) = ask(
            ChatRespondent("m", base_url=server.url, endpoint="completions", top_logprobs=2, max_tokens=1), PROMPTS[:1]
        )
    asked = server.asked[0]
    assert asked.path == "/v1/completions" and asked.body == {
        "model": "m",
        "prompt": PROMPTS[0].text,
        "temperature": 0.0,
        "logprobs": 2,
        "max_tokens": 1,
    }
    assert (
        reply.text == " B"
        and reply.scores[:2] == pytest.approx((-2.0, -0.25))
        and reply.confidence == pytest.approx(2.718281828**-0.25)
    )


@pytest.mark.parametrize(
    "endpoint,good", [("chat", completion()), ("completions", {"choices": [{"text": "B", "logprobs": None}]})]
)
def test_dropped_logprobs_are_noticed_once(endpoint, good):
    with (
        FaultyServer(lambda asked: Answer(body=good)) as server,
        pytest.warns(UserWarning, match="asked for log-probabilities and sent none") as said,
    ):
        replies = ask(ChatRespondent("m", base_url=server.url, endpoint=endpoint, top_logprobs=5), PROMPTS[:20])
    assert (
        len(said) == 1
        and texts(replies) == ["B"] * 20
        and all(r.scores is None and r.confidence is None for r in replies)
    )


@given(
    st.dictionaries(st.sampled_from(["A", " A", "B", "\nB", "C", "the", "AB", ""]), st.floats(-50, 0), max_size=8),
    st.integers(2, 26),
)
def test_letter_scores_keep_the_probability_there_is(top, n):
    scores = letter_scores(top, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:n])
    letters = {token: 2.718281828459045**x for token, x in top.items() if token.strip() in list("ABC"[:n])}
    if not letters:
        assert scores is None
    else:
        assert len(scores) == n and sum(2.718281828459045**s for s in scores) == pytest.approx(sum(letters.values()))


# ---- keys


def test_the_key_goes_to_the_server_and_nowhere_else(monkeypatch):
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")  # as files end
    echoes = [
        GOOD,
        Answer(400, refusal(f"your key {KEY} may not ask this")),
        Answer(500, refusal(f"key {KEY} broke it")),
        Answer(body=refusal(f"{KEY}?")),
        Answer(401, refusal(f"Incorrect API key provided: {KEY}.")),
    ]
    with FaultyServer(echoes) as server:
        model = ChatRespondent("m", base_url=server.url, key_variable="MY_KEY", retries=0, concurrency=1)
        seen = [repr(model), str(vars(model)), json.dumps(model.describe()), json.dumps(model.request(PROMPTS[0]))]
        seen += [repr(r) for r in ask(model, PROMPTS[:4])]
        with pytest.raises(CoraError) as e:
            ask(model, PROMPTS[:1])
        seen += [str(e.value), repr(e.getrepr(style="long"))]
        assert e.value.__cause__ is None
    assert [a.headers["authorization"] for a in server.asked] == [f"Bearer {KEY}"] * 5
    assert not any(KEY in s or "secret" in s for s in seen) and "401 Incorrect API key provided: ***." in str(e.value)


def test_bad_keys(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret\nsk-other")
    with pytest.raises(CoraError, match="MY_KEY does not contain a valid key") as e:
        ask(ChatRespondent("m", base_url="http://127.0.0.1:9", key_variable="MY_KEY"), PROMPTS[:1])
    assert "secret" not in str(e.value)
    monkeypatch.setenv("MY_KEY", "  ")
    with pytest.raises(CoraError, match="MY_KEY contains no key for https://api.openai.com/v1"):
        ask(ChatRespondent("m", key_variable="MY_KEY"), PROMPTS[:1])
    with FaultyServer() as server:
        ask(
            ChatRespondent("m", base_url=server.url, key_variable="MY_KEY"), PROMPTS[:1]
        )  # a server of one's own wants none
    assert server.asked[0].headers["authorization"] == "Bearer none"


# ---- parameters


@pytest.mark.parametrize(
    "field,value,why",
    [
        ("endpoint", "talk", "endpoint must be one of chat, completions, got 'talk'"),
        ("temperature", -1, "temperature must be at least 0"),
        ("temperature", float("nan"), "temperature must be"),
        ("max_tokens", 0, "max_tokens must be a whole number of 1 or more"),
        ("concurrency", 2.5, "concurrency must be a whole number"),
        ("retries", -1, "retries must be"),
        ("top_logprobs", -1, "top_logprobs must be"),
        ("timeout", 0, "timeout must be more than 0"),
        ("base_url", "localhost:8000", "must start with http"),
        ("base_url", ["http://a/v1", "http://b/v1"], "must be one address"),
        ("base_url", "http://a/v1+http://b/v1", "must be one address"),
        ("server", "two\nlines", "server must be a name on one line"),
        ("server", "https://me:secret@host/v1", "must not contain a name or a password"),
        ("base_url", "https://me:secret@host/v1", "must not contain a name or a password"),
        ("base_url", "me:secret@host/v1", "must not contain a name or a password"),
        ("base_url", "https://host/v1?api_key=secret", "must end before any . or #; put the key into the environment"),
        ("base_url", "https://host/v1#secret", "must end before any . or #"),
        ("base_url", "http://127.0.0.1:99999/v1", "not a valid address, got 'http://127.0.0.1:99999/v1'"),
        ("base_url", "http://127.0.0.1:0/v1", "not a valid address"),
        ("base_url", "http://127.0.0.1:x/v1", "not a valid address"),
        ("base_url", "http://[::1/v1", "not a valid address"),
        ("base_url", "http:///v1", "not a valid address"),
        ("base_url", "http://ho st/v1", "not a valid address"),
        ("base_url", "http://host\x1b[2J/v1", "not a valid address, got 'http://host\\\\x1b"),
    ],
)
def test_bad_parameters(field, value, why):
    with pytest.raises(CoraError, match=why) as e:
        ChatRespondent("m", **{field: value})
    assert "secret" not in str(e.value)


def test_defaults_and_the_environment(monkeypatch):
    assert ChatRespondent("m").base_url == "https://api.openai.com/v1" and ChatRespondent("m").name == "m"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1/")
    assert ChatRespondent("m").base_url == "http://127.0.0.1:8000/v1"


# ---- what is the setting's fault, and not the prompts'


TOO_SMALL = refusal(
    "This model's maximum context length is 16 tokens, however you requested 99", code="context_length_exceeded"
)
SINGLE = [v for v in VARIANTS if v.method == "original"]  # no two with the same prompt
TEXTS = [p.text for p in make_prompts(SINGLE, "bare")]
ALIKE = {  # what a wrong setting says to everything
    "413": Answer(413, b"<html>Request Entity Too Large</html>", {"Content-Type": "text/html"}),
    "451": Answer(451, b"blocked by policy", {"Content-Type": "text/plain"}),
    "a window too small": Answer(400, TOO_SMALL),
}


@pytest.mark.parametrize("fault", ALIKE)
@pytest.mark.parametrize("n", [5, 26])
def test_a_refusal_of_all_prompts_is_no_reply(fault, n, tmp_path):
    "After the repair, the same command asks everything: nothing was stored."
    answers = iter(())
    with FaultyServer(lambda asked: next(answers, ALIKE[fault])) as server, Store(tmp_path / "s.sqlite") as store:

        def run():
            who = ChatRespondent("m", base_url=server.url, concurrency=3)
            return evaluate(who, SINGLE[:n], Asking("bare"), store=store, progress=False, strict=None)

        if n < 20 and fault == "a window too small":
            assert run().table["error"].notna().all()
        else:
            with pytest.raises(CoraError, match=f"m at .*: {ALIKE[fault].status} "):
                run()
        assert len(store) == 0
        answers = iter([GOOD] * 1000)  # repaired
        assert run().table["reply"].eq("B").all() and len(store) == n


@pytest.mark.parametrize("status", ["413", "451"])
def test_a_server_that_begins_to_refuse_everything_stops_the_run(status, tmp_path):
    with FaultyServer(lambda asked: GOOD if asked.number < 30 else ALIKE[status]) as server:
        with Store(tmp_path / "s.sqlite") as store:
            who = ChatRespondent("m", base_url=server.url, concurrency=3)
            with pytest.raises(CoraError, match=f"prompts in a row failed: {status}"):
                evaluate(who, SINGLE[:90], Asking("bare"), store=store, progress=False, strict=None)
            assert len(store) == 30


def test_single_prompts_are_refused_first_and_last(tmp_path):
    "They are no failures beside an answer, and only answers are stored: a later run asks for them again."
    long = {TEXTS[i] for i in (0, 1, 2, 8)}
    plan = lambda asked: ALIKE["a window too small"] if asked.prompt in long else GOOD  # noqa: E731
    with FaultyServer(plan) as server, Store(tmp_path / "s.sqlite") as store:
        for asked in (9, 13):
            who = ChatRespondent("m", base_url=server.url, concurrency=1)
            run = evaluate(who, SINGLE[:9], Asking("bare"), store=store, progress=False, strict=None)
            assert list(run.table["reply"]) == ["", "", "", "B", "B", "B", "B", "B", ""] and len(server.asked) == asked


@pytest.mark.parametrize("status", ["413", "451"])
def test_a_status_alone_says_nothing_about_a_prompt(status, tmp_path):
    "Beside answers it is a failure, however rare, and is asked again."
    plan = lambda asked: ALIKE[status] if asked.prompt == TEXTS[3] else GOOD  # noqa: E731
    with FaultyServer(plan) as server, Store(tmp_path / "s.sqlite") as store:
        for asked in (9, 10):
            who = ChatRespondent("m", base_url=server.url, concurrency=1)
            run = evaluate(who, SINGLE[:9], Asking("bare"), store=store, progress=False, strict=None)
            assert list(run.table["error"].notna()) == [i == 3 for i in range(9)]
            assert len(store) == 8 and len(server.asked) == asked


INSIDE = {  # failures inside an answer with status 200
    "of the choice": completion("", error={"code": 502, "message": "upstream is down"}, finish_reason="error"),
    "as the reason": completion("The ans", finish_reason="error"),
    "of the answer": completion("") | {"error": {"message": "upstream is down"}},
}


@pytest.mark.parametrize("what", INSIDE)
def test_a_failure_inside_an_answer_is_a_failure(what, tmp_path):
    with FaultyServer([GOOD, Answer(body=INSIDE[what])]) as server:  # once: tried again
        replies = ask(ChatRespondent("m", base_url=server.url, concurrency=1), PROMPTS[:3])
        assert texts(replies) == ["B"] * 3 and len(server.asked) == 4
    bad = TEXTS[1]
    plan = lambda asked: Answer(body=INSIDE[what]) if asked.prompt == bad else GOOD  # noqa: E731
    with FaultyServer(plan) as server, Store(tmp_path / "s.sqlite") as store:
        who = ChatRespondent("m", base_url=server.url, retries=0)
        run = evaluate(who, SINGLE[:3], Asking("bare"), store=store, progress=False, strict=None)
        assert list(run.table["error"].notna()) == [False, True, False] and len(store) == 2
        assert re.search("the server sent an error|502 upstream is down", run.table["error"][1])


THOUGHT = ["<think>", "A", " or", " B", "?", "</think>", "\n\n"]


def spelled(*tokens, likely="B"):
    "Log-probabilities of tokens; at each, A and B are among the likeliest, and first `likely`."
    other = "A" if likely == "B" else "B"
    top = [{"token": likely, "logprob": -0.1}, {"token": other, "logprob": -3.0}]
    wrong = [{"token": "A", "logprob": -0.2}, {"token": "B", "logprob": -2.0}]
    rows = [{"token": t, "logprob": -0.1, "top_logprobs": top if t.strip() == likely else wrong} for t in tokens]
    return {"content": rows}


@pytest.mark.parametrize("text", ["".join(THOUGHT) + "B", "B", "\n\nB"], ids=["in the text", "apart", "apart, spaced"])
@pytest.mark.parametrize("end", [[], ["<|im_end|>"]], ids=["", "with its end"])
def test_scores_are_of_the_first_token_of_the_reply_itself(text, end):
    "A reasoning model writes other tokens first; the reasoning may be in the text, or in a field of its own."
    with FaultyServer(lambda asked: Answer(body=completion(text, logprobs=spelled(*THOUGHT, "B", *end)))) as server:
        (reply,) = ask(ChatRespondent("m", base_url=server.url, top_logprobs=2), PROMPTS[:1])
    assert reply.scores[:2] == pytest.approx((-3.0, -0.1)) and np.argmax(reply.scores) == 1
    assert reply.confidence == pytest.approx(math.exp(-0.1 * (1 + len(end)))), "without the reasoning's tokens"


@pytest.mark.parametrize("text,tokens", [("B", ["C"]), ("B", THOUGHT), ("B", ["The", " answer", " is", " B"])])
def test_tokens_of_another_text_give_no_scores_and_one_warning(text, tokens):
    with FaultyServer(lambda asked: Answer(body=completion(text, logprobs=spelled(*tokens)))) as server:
        with pytest.warns(UserWarning, match="sent those of another text") as said:
            replies = ask(ChatRespondent("m", base_url=server.url, top_logprobs=2), PROMPTS[:3])
    assert len(said) == 1 and {(r.scores, r.confidence) for r in replies} == {(None, None)}


def test_a_sentence_has_a_confidence_and_no_scores():
    "Its first token is no letter, so the likeliest letters there say nothing about the answer."
    logprobs = spelled("The", " answer", " is", " B")
    with FaultyServer(lambda asked: Answer(body=completion("The answer is B", logprobs=logprobs))) as server:
        (reply,) = ask(ChatRespondent("m", base_url=server.url, top_logprobs=2), PROMPTS[:1])
    assert reply.scores is None and reply.confidence == pytest.approx(math.exp(-0.4))
