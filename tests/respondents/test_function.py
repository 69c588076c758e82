"""A function as a respondent: every kind of callable, what it raises and gives, its keys, many at a time, ends."""

import asyncio
import functools
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from cora_nb.core import CoraError, Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.named import make_respondent
from cora_nb.respondents.function import FunctionRespondent
from cora_nb.respondents.protocol import Reply, ask, run_async, stream
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate, plan
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants
from helpers import A_PYTHON

VARIANTS = make_variants([Question(f"q{i}", f"Number {i}?", ("w", "x"), answer=i % 2) for i in range(8)])
PROMPTS = make_prompts(VARIANTS)
TEXTS = [p.text for p in PROMPTS]


def letter(text):
    return "AB"[len(text) % 2] + f" {hash(text)}"


async def waits(text):
    await asyncio.sleep(0)
    return letter(text)


class Model:
    def __call__(self, text):
        return letter(text)

    def says(self, text):
        return letter(text)

    async def says_later(self, text):
        return await waits(text)


class LaterModel:
    async def __call__(self, text):
        return await waits(text)


def several(texts):
    return [letter(t) for t in texts]


async def several_later(texts):
    return [await waits(t) for t in texts]


KINDS = {
    "function": dict(f=letter),
    "asynchronous": dict(f=waits),
    "lambda": dict(f=lambda text: letter(text)),
    "lambda that calls an asynchronous one": dict(f=lambda text: waits(text)),
    "partial": dict(f=functools.partial(lambda way, text: letter(text), "way")),
    "partial, asynchronous": dict(f=functools.partial(waits)),
    "method": dict(f=Model().says),
    "method, asynchronous": dict(f=Model().says_later),
    "object": dict(f=Model()),
    "object, asynchronous": dict(f=LaterModel()),
    "cached": dict(f=functools.lru_cache(letter)),
    "in threads": dict(f=letter, concurrency=5),
    "in threads, something to wait for": dict(f=lambda text: waits(text), concurrency=5),
    "asyncio.run inside": dict(f=lambda text: asyncio.run(waits(text))),
    "a loop inside": dict(f=lambda text: asyncio.get_event_loop().run_until_complete(waits(text))),
    "numpy's text": dict(f=lambda text: np.str_(letter(text))),
    "a Reply": dict(f=lambda text: Reply(letter(text))),
    "lists": dict(f=several, batch=5),
    "lists of one": dict(f=several, batch=1),
    "one list": dict(f=several, batch=1000),
    "lists, in threads": dict(f=several, batch=5, concurrency=3),
    "lists, asynchronous": dict(f=several_later, batch=5),
    "lists that are arrays": dict(f=lambda texts: np.array(several(texts)), batch=5),
    "lists from a generator": dict(f=lambda texts: (letter(t) for t in texts), batch=5),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_function_gives_each_prompt_its_reply(kind):
    assert ask(FunctionRespondent(**KINDS[kind]), PROMPTS) == [Reply(letter(t)) for t in TEXTS]


def test_in_a_running_loop_as_in_a_notebook():
    async def cell():
        return [ask(FunctionRespondent(**KINDS[kind]), PROMPTS[:9]) for kind in KINDS]

    assert asyncio.run(cell()) == [[Reply(letter(t)) for t in TEXTS[:9]]] * len(KINDS)


def test_names():
    named = [(letter, "letter"), (lambda t: t, "function"), (Model(), "Model"), (Model().says, "says")]
    named += [(functools.partial(letter), "letter"), (functools.lru_cache(letter), "letter")]
    assert [FunctionRespondent(f).name for f, _ in named] == [name for _, name in named]
    assert FunctionRespondent(letter, name="mine").name == "mine"


@pytest.mark.parametrize(
    "wrong",
    [
        dict(f="letter"),
        dict(f=None),
        dict(f=letter, version=""),
        dict(f=letter, version=True),
        dict(f=letter, version=1.5),
        dict(f=letter, batch=0),
        dict(f=letter, batch=True),
        dict(f=letter, concurrency=0),
        dict(f=Model().says, version="1"),
        dict(f=lambda t: t, version="1"),
        dict(f=functools.partial(letter), version="1"),
    ],
)
def test_fields_that_are_wrong_are_refused(wrong):
    with pytest.raises(CoraError) as told:
        FunctionRespondent(**wrong)
    assert "\n" not in str(told.value)


# ---------------------------------------------------------------- what it raises and gives

MODES = {"plain": {}, "in threads": {"concurrency": 4}, "asynchronous": {"later": True}}
MODES |= {f"{mode}, in lists": {**how, "batch": 1} for mode, how in MODES.items()}


def made(f, mode):
    "A respondent whose function does this with each text."
    how = dict(MODES[mode])
    later, batch = how.pop("later", False), "batch" in how
    one = (lambda texts: [f(texts[0])]) if batch else f

    async def waited(given):
        await asyncio.sleep(0)
        return one(given)

    return FunctionRespondent(waited if later else one, name="mine", **how)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("error", [ValueError("the key is\nwrong"), KeyError("x"), StopIteration(), AssertionError()])
def test_what_the_first_raises_ends_the_run_after_one_call(mode, error):
    calls = []

    def f(text):
        calls.append(text)
        raise error

    with pytest.raises(CoraError) as told:
        ask(made(f, mode), PROMPTS)
    assert len(calls) == 1 and isinstance(told.value.__cause__, Exception)
    assert "mine" in str(told.value) and "\n" not in str(told.value) and not str(told.value).endswith(": ")
    if isinstance(error, (ValueError, AssertionError)):
        assert type(error).__name__ in str(told.value) and told.value.__cause__ is error


@pytest.mark.parametrize("mode", MODES)
def test_what_a_later_one_raises_is_a_failure_of_its_prompt(mode):
    bad = set(TEXTS[3:9:2]) - set(TEXTS[:1])

    def f(text):
        if text in bad:
            raise ValueError(f"half a \ud800\n{text}" * 100)
        return letter(text)

    replies = ask(made(f, mode), PROMPTS)
    for text, reply in zip(TEXTS, replies):
        assert (reply.error is not None) == (text in bad)
        if text in bad:
            assert reply.error.startswith("ValueError: half a") and len(reply.error) <= 300
            reply.error.encode()


@pytest.mark.parametrize("mode", MODES)
def test_failures_in_a_row_end_the_run(mode):
    calls = []

    def f(text):
        calls.append(text)
        if len(calls) > 5:
            raise ConnectionError("gone")
        return "A"

    got = []
    respondent = made(f, mode)
    with pytest.raises(CoraError, match="20 failures in a row.*ConnectionError: gone"):
        stream(respondent, PROMPTS, lambda i, reply: got.append(reply))
    assert sum(r.error is None for r in got) == 5 and 25 <= len(calls) < 25 + 32
    calls.clear()
    with pytest.raises(CoraError, match="20 failures in a row"):  # and so does the next run, from the beginning
        ask(respondent, PROMPTS)


def test_failures_that_are_not_in_a_row_do_not_end_it():
    calls = []

    def f(text):
        calls.append(text)
        if len(calls) % 20:
            raise ValueError
        return "A"

    respondent = FunctionRespondent(lambda text: "A")
    ask(respondent, PROMPTS[:1])
    respondent.f = f
    replies = ask(respondent, PROMPTS)
    assert len(calls) == len(PROMPTS) and sum(r.error is None for r in replies) == len(PROMPTS) // 20


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("at", [1, 4])
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, CoraError])
def test_what_ends_a_program_passes(mode, at, stop):
    calls = []

    def f(text):
        calls.append(text)
        if len(calls) == at:
            raise stop("enough")
        return "A"

    with pytest.raises(stop):
        ask(made(f, mode), PROMPTS)
    assert ask(FunctionRespondent(waits), PROMPTS[:3])  # the loop of asynchronous functions is still there


WRONG = {
    "None": None,
    "number": 1,
    "dict": {"text": "A"},
    "tuple": ("A", 1.0),
    "list": ["A"],
    "bytes": b"A",
    "type": str,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_text_is_an_error(mode, what):
    calls = []

    def f(text):
        calls.append(text)
        return WRONG[what] if len(calls) == at else "A"

    at = 1
    with pytest.raises(CoraError) as told:
        ask(made(f, mode), PROMPTS)
    assert "mine" in str(told.value) and "str" in str(told.value) and len(calls) == 1
    calls.clear()
    at = 3
    assert sum(r.error is not None for r in ask(made(f, mode), PROMPTS)) == 1


@pytest.mark.parametrize("given", ["AB", b"AB", {"a": 1, "b": 2}, {"A", "B"}, ["A"], ["A"] * 3, [], None, 2, [None, 1]])
def test_a_list_that_does_not_fit_is_an_error(given):
    with pytest.raises(CoraError, match="function mine: must give"):
        ask(FunctionRespondent(lambda texts: given, name="mine", batch=2), PROMPTS[:2])


def test_in_a_list_what_is_no_text_fails_alone():
    replies = ask(FunctionRespondent(lambda texts: ["A", None, "B"], batch=3), PROMPTS[:3])
    assert [r.text for r in replies] == ["A", None, "B"] and replies[1].error


def test_lists_are_as_long_as_asked_and_the_first_is_alone():
    lists, busy = [], []

    def f(texts):
        busy.append(threading.active_count())
        lists.append(list(texts))
        return several(texts)

    ask(FunctionRespondent(f, batch=7, concurrency=3), PROMPTS)
    assert sorted(t for some in lists for t in some) == sorted(TEXTS)
    assert lists[0] == TEXTS[:7] and sorted({len(some) for some in lists}) in ([7], [len(TEXTS) % 7, 7])


def test_odd_characters_break_no_file(tmp_path):
    odd = "A\x00 half \ud800 and \udfff\u2028 \x1b[31m"
    with Store(tmp_path / "r.sqlite") as store:
        run = evaluate(FunctionRespondent(lambda text: odd), VARIANTS, store=store, progress=False, strict=None)
        assert len(store) == len(VARIANTS)
    write_responses(run, tmp_path / "run.parquet")
    kept = set(read_responses(tmp_path / "run.parquet").table["reply"])
    assert kept == set(run.table["reply"]) == {odd.replace("\ud800", "\ufffd").replace("\udfff", "\ufffd")}


# ---------------------------------------------------------------- keys


def test_with_a_version_replies_are_found_again_and_without_one_never(tmp_path):
    calls = []

    def f(text):
        calls.append(text)
        return "A"

    def asked(**how):
        calls.clear()
        evaluate(FunctionRespondent(f, **{"name": "f"} | how), VARIANTS, Asking(trials=2), store=store, progress=False)
        return len(calls)

    n = 2 * len(VARIANTS)  # equal prompts and trials are asked each
    assert len(set(TEXTS)) < len(TEXTS)
    with Store(tmp_path / "r.sqlite") as store:
        assert [asked() for _ in range(2)] == [n, n]
        assert [asked(version="1") for _ in range(2)] == [n, 0]
        assert [asked(version="2"), asked(version="1", name="g"), asked(version=1)] == [n, n, 0]
        assert plan(FunctionRespondent(f), VARIANTS, Asking(trials=2), store)["calls"] == n
        assert plan(FunctionRespondent(f, "f", version="2"), VARIANTS, Asking(trials=2), store)["calls"] == 0


def test_facts_name_the_version_and_keys_do_not_depend_on_the_machine():
    assert FunctionRespondent(letter).describe()["version"] is None
    assert FunctionRespondent(letter, version=3).describe()["version"] == "3"
    one, other = (FunctionRespondent(letter, version="3", **how) for how in ({}, {"batch": 4, "concurrency": 2}))
    assert one.request(PROMPTS[0]) == other.request(PROMPTS[0])


# ---------------------------------------------------------------- many at a time, and early ends


@pytest.mark.parametrize("how", [dict(concurrency=6), dict(later=True), dict(later=True, concurrency=6), dict()])
def test_as_many_at_a_time_as_asked_after_one_alone(how):
    later, n, counts, lock = how.pop("later", False), [0], [], threading.Lock()

    def enter(by):
        with lock:
            n[0] += by
            counts.append(n[0])

    def f(text):
        enter(1)
        time.sleep(0.005)
        enter(-1)
        return "A"

    async def g(text):
        enter(1)
        await asyncio.sleep(0.005)
        enter(-1)
        return "A"

    ask(FunctionRespondent(g if later else f, **how), PROMPTS)
    most = how.get("concurrency", 32 if later else 1)
    assert counts[:2] == [1, 0] and max(counts) == most


def test_a_plain_function_runs_in_the_thread_that_waits_and_others_do_not():
    seen = set()

    def f(text):
        seen.add(threading.current_thread())
        return "A"

    respondent = FunctionRespondent(f)
    ask(respondent, PROMPTS)
    assert seen == {threading.current_thread()} and respondent.blocking
    seen.clear()
    respondent = FunctionRespondent(f, concurrency=2)
    ask(respondent, PROMPTS)
    assert threading.current_thread() not in seen and all(t.daemon for t in seen) and not respondent.blocking
    assert not FunctionRespondent(waits).blocking


@pytest.mark.parametrize("mode", ["plain", "in threads", "asynchronous"])
def test_each_reply_is_handed_over_before_others_are_asked(mode):
    calls, got = [], []

    def f(text):
        calls.append(text)
        assert len(calls) - len(got) <= (1 if mode == "plain" else 32)
        return "A"

    stream(made(f, mode), PROMPTS, lambda i, reply: got.append(i))
    assert sorted(got) == list(range(len(PROMPTS)))


def test_a_client_may_live_longer_than_a_run():
    loops = set()

    async def f(text):
        loops.add(asyncio.get_running_loop())
        return "A"

    for _ in range(3):
        ask(FunctionRespondent(f), PROMPTS[:5])
    assert len(loops) == 1


def test_after_a_reply_a_second_portion_is_not_a_beginning():
    calls = []

    def f(text):
        calls.append(text)
        if len(calls) == 4:
            raise ValueError("once")
        return "A"

    respondent = FunctionRespondent(f)
    ask(respondent, PROMPTS[:3])
    assert [r.error for r in ask(respondent, PROMPTS[:3])] == ["ValueError: once", None, None]


@pytest.mark.parametrize("way", ["close", "cancel", "throw"])
def test_when_the_caller_stops_nothing_goes_on(way):
    begun, ended, cancelled = [], [], []

    async def f(text):
        begun.append(text)
        try:
            await asyncio.sleep(0 if len(begun) == 1 else 60)
        except asyncio.CancelledError:
            cancelled.append(text)
            raise
        ended.append(text)
        return "A"

    async def work():
        arriving = FunctionRespondent(f, concurrency=4).answer(PROMPTS)
        assert (await anext(arriving))[1].text == "A"
        if way == "close":
            return await arriving.aclose()
        if way == "throw":
            with pytest.raises(LookupError):
                await arriving.athrow(LookupError())
            return
        task = asyncio.ensure_future(anext(arriving))
        while len(begun) < 5:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    began = time.monotonic()
    run_async(work())
    assert time.monotonic() - began < 30 and len(ended) == 1
    end = time.monotonic() + 30
    while len(cancelled) < len(begun) - 1 and time.monotonic() < end:
        time.sleep(0.001)
    assert len(cancelled) == len(begun) - 1 == (4 if way == "cancel" else 0)


def test_what_has_arrived_when_a_run_breaks_is_handed_over():
    got = []

    async def f(text):
        await asyncio.sleep(0)
        return "A"

    def arrived(i, reply):
        got.append(i)
        if len(got) == 2:
            raise LookupError("the disk is full")

    with pytest.raises(LookupError):
        stream(FunctionRespondent(f, concurrency=8), PROMPTS, arrived)
    assert 2 <= len(got) <= 9 and len(set(got)) == len(got)


def test_what_is_under_way_at_an_early_end_may_still_arrive():
    got, begun = [], []

    async def f(text):
        begun.append(text)
        await asyncio.sleep(0.05 if len(begun) > 1 else 0)
        return "A"

    def arrived(i, reply):
        got.append(i)
        if len(got) == 4:
            raise LookupError("the disk is full")

    with pytest.raises(LookupError):
        stream(FunctionRespondent(f, concurrency=8), PROMPTS, arrived)
    assert len(got) == len(set(got)) == len(begun)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["error", "interrupt"])
def test_threads_do_not_hold_back_the_end_of_the_process(tmp_path, end):
    (tmp_path / "mine.py").write_text(
        f"""
import _thread, threading, time
from cora_nb.core import Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.function import FunctionRespondent
from cora_nb.respondents.protocol import ask
from cora_nb.variants.families import make_variants

calls = []
def f(text):
    calls.append(text)
    if len(calls) == 3 and {end == "interrupt"}:
        _thread.interrupt_main()
    if len(calls) == 3 and {end == "error"}:
        raise SystemExit(3)
    if len(calls) > 1:
        time.sleep(3600)
    return "A"

ask(FunctionRespondent(f, concurrency=4), make_prompts(make_variants([Question("q", "?", ("a", "b", "c"), answer=0)])))
"""
    )
    done = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, timeout=A_PYTHON)
    assert done.returncode == (3 if end == "error" else -2) or "KeyboardInterrupt" in done.stderr


def test_functions_that_share_a_name_share_no_replies(tmp_path):
    "Closures need a name of their own, and functions of two files are two."

    def made(letter):
        def answer(text):
            return letter

        return answer

    with pytest.raises(CoraError, match="needs a name"):
        FunctionRespondent(made("A"), version=1)
    found = []
    for letter in "AB":
        (tmp_path / letter).mkdir()
        file = tmp_path / letter / f"mine_{letter}.py"
        file.write_text(f"def f(text):\n    return {letter!r}\n")
        with Store(tmp_path / "r.sqlite") as store:
            who = make_respondent(f"{file}:f,version=1")
            found.append(set(evaluate(who, VARIANTS, store=store, progress=False).table["reply"]))
    assert found == [{"A"}, {"B"}]


def test_a_key_in_an_exception_is_not_shown(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "sk-secret-0123456789")

    def f(text):
        raise ValueError("403 for url https://g.example/v1?key=sk-secret-0123456789")

    with pytest.raises(CoraError) as e:
        evaluate(f, VARIANTS, progress=False)
    assert "secret" not in str(e.value) and "403 for url" in str(e.value)


def test_a_cancelled_task_of_a_function_is_a_failure():
    async def f(text):
        raise asyncio.CancelledError

    with pytest.raises(CoraError, match="CancelledError"):
        evaluate(f, VARIANTS, progress=False)
