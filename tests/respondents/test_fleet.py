"""Several servers behind one respondent: who is asked, who is left out, what is kept, and what the store finds again.

The servers are real ones on this machine (`FaultyServer`) that count what they are asked. The heavy version, with
servers of different speed and rates beside their sum, is tools/stress/fleet.py.
"""

import itertools
import math
import random
import threading
import time
import warnings
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.cli.respondents import make_respondent
from cora_nb.core import CoraError
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents import chat, chat_server
from cora_nb.respondents.chat import ChatRespondent, _Fleet
from cora_nb.respondents.protocol import Reply, ask, outgoing_text
from cora_nb.respondents.chat_server import Patience
from cora_nb.runs.asking import Asking, Budget
from cora_nb.runs.asking import BudgetWarning, Spending
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Store, reply_key
from cora_nb.variants.families import make_variants
from faulty_server import Answer, FaultyServer, completion, refusal
from simulated_time import Clock

VARIANTS = make_variants(math_benchmark(n=10))
PROMPTS = list({p.text: p for p in make_prompts(VARIANTS, template="bare")}.values())
NOBODY = "http://127.0.0.1:9/v1"  # nobody listens there
BROKEN, GONE = Answer(500, refusal("out of memory")), Answer(cut="before")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    "No random pauses, and servers that are gone are tried again soon."
    monkeypatch.setattr(random, "uniform", lambda low, high: 0.0)
    monkeypatch.setattr(chat, "_LATER", 0.05)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def echo(asked, wait=0.0):
    return Answer(body=completion(asked.prompt[-40:]), wait=wait)


def servers(*plans, gates=itertools.repeat(0)):
    "An `ExitStack` of running servers, and the servers."
    stack = ExitStack()
    return stack, [stack.enter_context(FaultyServer(plan, gate)) for plan, gate in zip(plans, gates)]


def asked_of(*those, **options):
    "A respondent with these servers."
    return ChatRespondent("m", base_url=[s if isinstance(s, str) else s.url for s in those], **options)


def check_all_answered(replies, prompts):
    assert [r.error for r in replies] == [None] * len(prompts)
    assert [r.text for r in replies] == [p.text[-40:] for p in prompts]


def lines_of(said):
    return [str(w.message) for w in said if "left out" in str(w.message) or "is back" in str(w.message)]


# ---- who is asked


def test_all_are_asked_each_prompt_once_and_never_more_than_concurrency():
    "No server answers before it has three requests under way, so a server with fewer would end the test."
    stack, (a, b, c) = servers(*[lambda asked: echo(asked, 0.01)] * 3, gates=(3, 3, 3))
    with stack, warnings.catch_warnings():
        warnings.simplefilter("error")
        replies = ask(asked_of(a, b, c, concurrency=3), PROMPTS[:120])
    check_all_answered(replies, PROMPTS[:120])
    assert Counter(x.prompt for s in (a, b, c) for x in s.asked) == Counter(p.text for p in PROMPTS[:120])
    assert all(s.most_at_once == 3 for s in (a, b, c))
    said = Counter(r.meta["server"] for r in replies)
    assert said == {s.url: len(s.asked) for s in (a, b, c)}  # each reply says who gave it


def test_a_fast_server_gets_more():
    "The slow one answers nothing until the fast one has been asked 100 times."

    def answers(asked):
        if asked.number == 100:
            slow.open_gate()
        return echo(asked)

    stack, (fast, slow) = servers(answers, echo, gates=(0, math.inf))
    with stack:
        check_all_answered(ask(asked_of(slow, fast, concurrency=4), PROMPTS[:150]), PROMPTS[:150])
    assert len(fast.asked) > 2 * len(slow.asked) and slow.most_at_once == 4


def test_a_rate_limit_of_one_server_does_not_hold_up_the_other():
    "It wants a pause of five minutes after five replies."

    def limit(asked):
        return echo(asked) if asked.number < 5 else Answer(429, refusal("slow down"), {"Retry-After": "300"})

    stack, (limited, free) = servers(limit, lambda asked: echo(asked, 0.02))
    with stack, warnings.catch_warnings():
        warnings.simplefilter("error")  # it is there, and only asks for a pause
        start = time.monotonic()
        check_all_answered(ask(asked_of(limited, free, concurrency=4, retries=0), PROMPTS[:150]), PROMPTS[:150])
        assert time.monotonic() - start < 300 and len(free.asked) == 145 and len(limited.asked) <= 5 + 4


# ---- who is left out


@pytest.mark.parametrize("fault", ["nobody", GONE, BROKEN], ids=["nobody", "cut", "500"])
def test_a_server_that_never_works_costs_no_prompt_and_no_try(fault, monkeypatch):
    "Not even one that fails at once, and so is never busy."
    monkeypatch.setattr(chat, "_LATER", 5.0)  # how often it is tried again must not depend on how busy this machine is
    stack, (good, bad) = servers(lambda asked: echo(asked, 0.01), lambda asked: fault)
    with stack, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        where = NOBODY if fault == "nobody" else bad
        replies = ask(asked_of(where, good, concurrency=4, retries=0), PROMPTS[:150])
    check_all_answered(replies, PROMPTS[:150])
    (line,) = lines_of(said)
    assert line.startswith(f"m: {where if where == NOBODY else where.url} is left out, without a reply so far (")
    assert line.endswith("; one server goes on, and it is tried again now and then")
    assert len(good.asked) == 150 and len(bad.asked) < 60


def test_a_server_that_dies_and_comes_back(tmp_path):
    "Said once each; what failed is answered by the other at once; nothing is asked twice of those that answered."
    answered, down = [], threading.Event()

    def plan(asked):
        if down.is_set():
            return GONE
        answered.append(asked.prompt)
        return echo(asked, 0.01)

    def other(asked):
        answered.append(asked.prompt)
        if len(answered) > 60:
            (down.set if len(answered) < 120 else down.clear)()
        return echo(asked, 0.01)

    stack, (a, b) = servers(plan, other)
    with stack, warnings.catch_warnings(record=True) as said, Store(tmp_path / "r.db") as store:
        warnings.simplefilter("always")
        who = asked_of(a, b, concurrency=2, retries=0)
        run = evaluate(who, VARIANTS, Asking("bare"), store=store, progress=False, strict=None)
        assert len(store) == len(PROMPTS)
    assert run.table["error"].isna().all() and Counter(answered) == Counter(p.text for p in PROMPTS)
    gone, back = lines_of(said)
    assert gone.startswith(f"m: {a.url} is left out, after ") and "(connection failed" in gone
    assert back.startswith(f"m: {a.url} is back after ") and back.endswith(": now 2 of 2")


def test_a_server_that_asks_for_a_day_is_left_out_and_the_other_goes_on():
    stack, (a, b) = servers(
        lambda asked: Answer(429, refusal("quota"), {"Retry-After": "86400"}) if asked.number >= 5 else echo(asked),
        lambda asked: echo(asked, 0.01),
    )
    with stack, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check_all_answered(ask(asked_of(a, b, concurrency=2), PROMPTS[:100]), PROMPTS[:100])
    (line,) = lines_of(said)
    assert "(the server asks for a pause of 24 h); one server goes on" in line and len(a.asked) <= 7


@pytest.mark.filterwarnings("ignore:.*(left out|is back)")
def test_all_gone_stops_the_run_and_the_store_keeps_what_came(tmp_path, monkeypatch):
    count = itertools.count()  # of both servers, which are two threads

    def plan(asked):
        return GONE if next(count) >= 40 else echo(asked)

    stack, (a, b) = servers(plan, plan)
    with stack, Store(tmp_path / "r.db") as store:
        who = asked_of(a, b, concurrency=4)
        with pytest.raises(CoraError, match="none of 2 servers can be asked: m at http://.*8 times in a row") as e:
            evaluate(who, VARIANTS, Asking("bare"), store=store, progress=False, strict=None)
        assert "\n" not in str(e.value) and len(store) == 40
        a.plan = b.plan = echo
        run = evaluate(who, VARIANTS, Asking("bare"), store=store, progress=False, strict=None)
        assert run.table["error"].isna().all() and len(store) == len(PROMPTS)


def test_a_prompt_that_no_server_can_answer_is_recorded_and_the_servers_stay(monkeypatch):
    monkeypatch.setattr(chat, "_DETOUR", 60.0)  # a busy server must not be avoided because this machine is busy
    poison = PROMPTS[3].text
    stack, (a, b) = servers(*[lambda asked: BROKEN if asked.prompt == poison else echo(asked, 0.002)] * 2)
    with stack, warnings.catch_warnings():
        warnings.simplefilter("error")
        replies = ask(asked_of(a, b, concurrency=4, retries=2), PROMPTS[:100])
    assert [i for i, r in enumerate(replies) if r.error] == [3]
    assert replies[3].error == "500 out of memory, tried 3 times"
    assert sum(x.prompt == poison for s in (a, b) for x in s.asked) == 6  # each try at both


@pytest.mark.parametrize("status,word", [(401, "no such key"), (404, "no such model")])
def test_a_mistake_in_the_setup_of_one_server_stops_the_run_with_its_address(status, word):
    stack, (a, b) = servers(lambda asked: echo(asked, 0.01), lambda asked: Answer(status, refusal(word)))
    with stack, pytest.raises(CoraError, match=f"^m at {b.url}: {status} {word}$"):
        ask(asked_of(a, b, concurrency=2), PROMPTS[:50])


def test_different_models_are_mentioned_once():
    as_ = [lambda asked, name=name: Answer(body=completion() | {"model": name}, wait=0.01) for name in ("x-7b", "x-8b")]
    stack, (a, b) = servers(*as_)
    with stack, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ask(asked_of(a, b, concurrency=2), PROMPTS[:40])
    (line,) = [str(w.message) for w in said]
    assert f"{a.url} says 'x-7b'" in line and f"{b.url} says 'x-8b'" in line


# ---- money, keys and facts


def test_one_budget_for_all(tmp_path):
    stack, (a, b, c) = servers(echo, lambda asked: BROKEN if asked.number % 3 == 0 else echo(asked), echo)
    with stack, warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        spending = Spending(Budget(calls=70))
        run = evaluate(asked_of(a, b, c), VARIANTS, Asking("bare"), budget=spending, progress=False, strict=None)
    assert sum(len(s.asked) for s in (a, b, c)) == 70 == spending.calls_made
    assert run.facts.calls["requests"] == 70


A, B, C = (f"http://gpu{i}:8000/v1" for i in "abc")


def key(base_url, **options):
    who = ChatRespondent("m", base_url=base_url, **options)
    return reply_key(who.request(PROMPTS[0])), who.describe()


def test_the_key_of_a_fleet_does_not_depend_on_its_servers():
    keys = [key(urls)[0] for urls in ([A, B], [B, A], [A, B, C], f"{A} {C}", f"{A}+{B}/")]
    assert len(set(keys)) == 1
    assert key([A, B], server="lab")[0] != keys[0] != key(A)[0]
    assert key([A, B], server="lab")[0] == key([C], server="lab")[0]


def test_the_key_of_one_server_is_what_it_was():
    who = ChatRespondent("m", base_url=A)
    expected = {"server": A, "endpoint": "chat", "max_tokens": who.room(PROMPTS[0]), "model": "m"}
    expected |= {"messages": PROMPTS[0].messages, "temperature": 0.0}
    assert who.request(PROMPTS[0]) == expected and who.describe()["server"] == A and "servers" not in who.describe()
    assert key([A]) == key(A) == key(A, server=A)
    assert key([A, B], server=A)[0] == key(A)[0]  # a second server for a run that began with one


def test_facts_list_the_servers():
    facts = key([B, A])[1]
    assert facts["server"] == "fleet" and facts["servers"] == [B, A]
    assert key(A, server="lab")[1] | {"server": "lab", "servers": [A]} == key(A, server="lab")[1]


def test_replies_are_found_again_with_one_more_server(tmp_path):
    stack, (a, b, c) = servers(echo, echo, echo)
    with stack, Store(tmp_path / "r.db") as store:
        evaluate(asked_of(a, b), VARIANTS, Asking("bare"), store=store, progress=False, strict=None)
        before = len(a.asked) + len(b.asked)
        again = evaluate(asked_of(c, b, a), VARIANTS, Asking("bare"), store=store, progress=False, strict=None)
        assert before == len(PROMPTS) and again.facts.calls["asked"] == 0 and not c.asked


def test_on_the_command_line():
    who = make_respondent(f"chat:m,base_url={A}+{B},concurrency=8,server=lab")
    assert who.describe()["servers"] == [A, B] and who.request(PROMPTS[0])["server"] == "lab"
    assert outgoing_text(who, PROMPTS[0]).startswith(f"POST {A}/chat/completions (one of 2 servers)\n")


@pytest.mark.parametrize(
    "options,why",
    [
        ({"base_url": [A, A + "/"]}, f"base_url contains {A} twice"),
        ({"base_url": [A, 5]}, "must be an address or a list of addresses"),
        ({"base_url": f"{A}+https://me:secret@host/v1"}, "must not contain a name or a password"),
        ({"base_url": A + "+"}, f"must contain an address behind '+', got '{A}+'"),
        ({"base_url": [A + ",", B]}, f"must contain an address behind ',', got '{A},'"),
        ({"base_url": f"{A}++{B}"}, f"must contain an address behind '+', got '{A}+'"),
        ({"base_url": A, "server": "two\nlines"}, "server must be a name on one line"),
        ({"base_url": A, "server": "https://me:secret@host/v1"}, "must not contain a name or a password"),
    ],
)
def test_bad_addresses(options, why):
    with pytest.raises(CoraError, match=why.replace("+", r"\+")) as e:
        ChatRespondent("m", **options)
    assert "secret" not in str(e.value)


# ---- what a review found


def test_a_copy_with_another_address_has_the_keys_of_that_address():
    first = ChatRespondent("m", base_url="http://127.0.0.1:1/v1")
    second = replace(first, base_url="http://127.0.0.1:2/v1")
    assert second.request(PROMPTS[0])["server"] == second.describe()["server"] == "http://127.0.0.1:2/v1"
    assert replace(first, server="lab").request(PROMPTS[0])["server"] == "lab"


def test_a_fleet_whose_servers_all_break_ends_as_one_server_does(monkeypatch):
    monkeypatch.setattr(chat, "_LATER", 30.0)  # as in real life: the last server must not be left out
    stack, broken = servers(lambda asked: BROKEN, lambda asked: BROKEN)
    with stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.monotonic()
        with pytest.raises(CoraError, match="without a usable reply"):
            ask(asked_of(*broken, concurrency=4, retries=1), PROMPTS[:60])
        assert time.monotonic() - start < 60 and all(server.asked for server in broken)


def test_a_prompt_that_waits_for_one_server_does_not_keep_others_from_a_free_one(monkeypatch):
    """The tenth reply of the fast server is unusable, and its prompt waits for the slow one.

    The slow one answers nothing until the fast one has been asked 15 times.
    """
    monkeypatch.setattr(chat, "_DETOUR", 60.0)  # the prompt waits, however busy this machine is
    asked_of_slow = []

    def broken_once(asked):
        if asked.number == 14:
            asked_of_slow.append(len(slow.asked))
            slow.open_gate()
        return BROKEN if asked.number == 9 else echo(asked)

    stack, (fast, slow) = servers(broken_once, echo, gates=(0, math.inf))
    with stack:
        check_all_answered(ask(asked_of(fast, slow, concurrency=2, retries=0), PROMPTS[:80]), PROMPTS[:80])
    assert fast.asked[9].prompt in [x.prompt for x in slow.asked]
    assert asked_of_slow[0] <= 2, "the fast server stood still while a prompt waited for the slow one"


# ---- who is gone, back, or pausing, in simulated time


@pytest.fixture
def simulated(monkeypatch):
    "(clock, a function that makes a fleet of so many servers, and the list of what it says)"
    clock = Clock()
    for module in (chat, chat_server):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(chat, "_LATER", 30.0)

    def made(n):
        said = []
        some = [SimpleNamespace(patience=Patience(f"m at {x}"), address=x, who=f"m at {x}") for x in "abcd"[:n]]
        for server in some:
            server.patience.open(8)
        return _Fleet(some, said.append), said

    return clock, made


def rest_of(member, clock):
    return member.patience.quiet_until - clock.now


def test_only_a_reply_to_what_was_sent_after_a_server_was_missed_brings_it_back(simulated):
    clock, made = simulated
    servers, said = made(2)
    gone, _ = servers.members
    for _ in range(2):
        servers.lost(gone, clock.now, "connection failed")
        clock.now += 1
    missed = gone.gone_since
    assert missed == clock.now - 1 and len(said) == 1 and "a is left out" in said[0]
    servers.replied(gone, Reply("B"), missed - 0.001)  # was under way when the server was missed
    assert gone.gone_since == missed and len(said) == 1
    clock.now += 9
    servers.replied(gone, Reply("B"), missed)
    assert gone.gone_since is None and said[1:] == ["a is back after 10 s: now 2 of 2"]
    servers.replied(gone, Reply("B"), clock.now)
    assert len(said) == 2


def test_a_server_with_nothing_but_unusable_replies_pauses_longer_and_longer(simulated):
    clock, made = simulated
    servers, said = made(2)
    broken, other = servers.members
    rests = []
    for _ in range(9):
        servers.unusable(broken, clock.now, "500")
        servers.unusable(broken, clock.now - 0.5, "500")  # sent before the last one was counted
        rests.append(rest_of(broken, clock))
        clock.now += max(1.0, rests[-1])
    assert rests[2:] == [2, 4, 8, 16, 30, 30, 30] and max(rests[:2]) <= 0
    assert broken.patience.at_once == 2 and len(said) == 1  # one at a time; the reply after that heard it
    assert other.patience.quiet_until == 0 and other.gone_since is None
    servers.replied(broken, Reply("B"), clock.now)
    servers.unusable(broken, clock.now, "500")
    assert broken.gone_since is None and rest_of(broken, clock) <= 0, "it begins anew"


def test_the_last_server_does_not_pause_for_unusable_replies(simulated):
    clock, made = simulated
    servers, said = made(2)
    first, last = servers.members
    for member in (first, last):
        for _ in range(5):
            servers.unusable(member, clock.now, "500")
            clock.now += 100
    assert first.gone_since is not None and last.gone_since is None and last.patience.quiet_until == 0


def test_a_server_that_is_given_up_is_tried_again_when_it_said_or_after_a_while(simulated):
    clock, made = simulated
    servers, said = made(3)
    slow, dead, third = servers.members
    servers.limited(slow, clock.now, 7200.0, False)
    assert rest_of(slow, clock) == 7200 and slow.gone_since == clock.now and slow.given_up is not None
    assert "the server asks for a pause of 2 h" in said[0]
    for _ in range(8):
        servers.lost(dead, clock.now, "connection failed")
        clock.now += 1
    assert rest_of(dead, clock) == 29 and dead.given_up is not None
    with pytest.raises(CoraError, match="none of 3 servers can be asked: m at c: the server asks for a pause of 2 h"):
        servers.limited(third, clock.now, 7200.0, False)


def test_when_the_last_server_goes_the_others_are_tried_at_once_unless_they_asked_for_a_pause(simulated):
    clock, made = simulated
    servers, said = made(3)
    broken, slow, last = servers.members
    for _ in range(7):
        servers.unusable(broken, clock.now, "500")
        clock.now += 0.01
    servers.limited(slow, clock.now, 7200.0, False)
    assert rest_of(broken, clock) > 20, "while one is left, pauses stay"
    broken.patience.quiet_until, asked_for = clock.now + 20, slow.patience.quiet_until
    for _ in range(2):
        servers.lost(last, clock.now, "connection failed")
        assert rest_of(broken, clock) == (20 if last.gone_since is None else 1)
    assert "no other is left" in said[-1] and slow.patience.quiet_until == asked_for
    assert rest_of(last, clock) <= 0, "a shorter pause is not made longer"
