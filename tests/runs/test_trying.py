"""A try of a respondent: which prompts, what is measured, what is kept, and what it says of the full run."""

import asyncio
import html
import re

import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError, Question
from cora_nb.respondents import chat_server
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate, plan
from cora_nb.runs.store import Store
from cora_nb.runs.trying import _choose_variants, duration, forecast_lines, spread, try_respondent, tryout_text
from cora_nb.variants.families import make_variants
from faulty_server import Answer, FaultyServer, completion, refusal
from simulated_time import Clock

QUESTIONS = math_benchmark(n=30)


class Says:
    "Answers with the same words, and counts the tokens."

    name, temperature = "says", 0.0

    def __init__(self, text="B", meta=None, wait=0.0):
        self.text, self.meta, self.wait, self.asked = text, meta, wait, []

    def describe(self):
        return {"respondent": "says"}

    def request(self, prompt):
        return {"text": prompt.text, "temperature": self.temperature}

    async def answer(self, prompts):
        self.asked.append(len(prompts))
        for i, prompt in enumerate(prompts):
            await asyncio.sleep(self.wait)
            yield i, Reply(self.text, meta=self.meta)


def test_questions_come_from_all_over_the_benchmark():
    assert spread(range(10), 3) == [0, 3, 6] and spread(range(2), 3) == [0, 1] and spread([], 3) == []
    tried = try_respondent(SimulatedRespondent(), QUESTIONS, n=3).tried
    assert list(dict.fromkeys(t.prompt.variant.question_id for t in tried)) == [QUESTIONS[i].id for i in (0, 10, 20)]


@pytest.mark.parametrize("family", ["cora", "mcqa_plus", "permutations", "cyclic", "order_swap"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_first_variant_of_each_question_and_every_kind(family, n):
    variants = make_variants(QUESTIONS[:n], family=family)
    few = _choose_variants(variants)
    assert len({v.key for v in few}) == len(few)
    for q in QUESTIONS[:n]:
        mine = [v for v in few if v.question_id == q.id]
        assert mine[0] == next(v for v in variants if v.question_id == q.id)
    assert {v.method for v in few} == {v.method for v in variants}


def test_the_first_prompt_goes_alone_and_equal_prompts_once():
    who = Says()
    tried = try_respondent(who, QUESTIONS, n=2)
    assert who.asked[0] == 1 and sum(who.asked) == len(tried.tried) and len(who.asked) == 3
    texts = [t.prompt.text for t in tried.tried]
    assert len(set(texts)) == len(texts)
    who = Says()
    two = [Question(f"q{i}", f"What is {i}?", ("a", "b"), 0) for i in range(5)]  # shuffled, half are as they were
    tried = try_respondent(who, two)
    assert sum(who.asked) == len({t.prompt.text for t in tried.tried}) < len(_choose_variants(make_variants(two)))
    assert [t.prompt.variant.method for t in tried.tried if t.prompt.variant.question_id == "q0"][0] == "original"


def test_the_forecast_is_the_plan_with_what_was_measured():
    who = Says(meta={"prompt_tokens": 50, "completion_tokens": 7}, wait=0.002)
    tried = try_respondent(who, QUESTIONS, Asking(shots=QUESTIONS, k=1, trials=2), prices=(2.0, 10.0))
    known = plan(who, make_variants(QUESTIONS), Asking(shots=QUESTIONS, k=1, trials=2))
    f = tried.forecast
    assert [f[x] for x in ("prompts", "different", "calls")] == [known[x] for x in ("prompts", "different", "calls")]
    assert f["prompts"] == 2 * len(make_variants(QUESTIONS)) and f["tokens_written"] == 7 * f["calls"]
    assert 45 < f["tokens_read"] / f["calls"] < 55 and 100 < f["replies_a_second"] < 500
    assert f["seconds"] == f["calls"] / f["replies_a_second"]
    assert f["cost"] == pytest.approx((2 * f["tokens_read"] + 10 * f["tokens_written"]) / 1e6)
    assert "at most" not in forecast_lines(f) and "    money    about " in forecast_lines(f)  # it has no limit


def test_a_large_benchmark_is_planned_in_proportion(monkeypatch):
    monkeypatch.setattr("cora_nb.runs.trying._PLANNED", 10)
    f = try_respondent(Says(), QUESTIONS).forecast
    assert f["prompts"] == 600 and 500 < f["calls"] <= 600


def test_replies_are_kept_for_the_run_and_asked_for_anew(tmp_path):
    variants = make_variants(QUESTIONS)
    with Store(tmp_path / "r.sqlite") as store:
        first = try_respondent(Says(), QUESTIONS, store=store)
        again = Says("C")
        second = try_respondent(again, QUESTIONS, store=store)
        assert sum(again.asked) == len(first.tried) and second.forecast["in_store"] == len(first.tried)
        run = evaluate(Says("A"), variants, store=store, progress=False)
    assert run.facts.calls["in_store"] == len(first.tried)  # the first reply counts
    assert sorted(set(run.table["reply"])) == ["A", "B"]


def test_one_reply_in_ten_may_be_unreadable():
    class Odd(Says):
        async def answer(self, prompts):
            for i, prompt in enumerate(prompts):
                self.asked.append(1)
                yield i, Reply("no idea" if len(self.asked) <= self.odd else "B")

    for odd, readable in ((0, True), (1, True), (2, False)):
        who = Odd()
        who.odd = odd
        tried = try_respondent(who, QUESTIONS)
        assert len(tried.tried) == 19 and tried.readable == readable and tried.outcomes.get("unparsed", 0) == odd
        assert bool(tried.cure) == (not readable)


def test_a_server_that_is_not_there_is_said_soon(monkeypatch):
    monkeypatch.setattr(chat_server, "time", clock := Clock())
    monkeypatch.setattr(chat_server, "asyncio", clock)
    who = ChatRespondent("m", "http://127.0.0.1:9/v1")
    with pytest.raises(CoraError, match="^m at http://127.0.0.1:9/v1: connection failed"):
        try_respondent(who, QUESTIONS)
    assert 0 < sum(clock.pauses) < 5 and who.retries == 6


@pytest.mark.parametrize(
    "answer, says",
    [
        (Answer(401, refusal("Incorrect API key provided")), "401 Incorrect API key"),
        (Answer(404, refusal("The model 'm' does not exist")), "404 The model 'm' does not exist"),
        (Answer(400, refusal("max_tokens is too large")), "the first 3 prompts failed: 400 max_tokens is too large"),
        (Answer(500, refusal("broken")), "the first 3 prompts failed: 500 broken"),
    ],
)
def test_a_server_that_refuses_everything(answer, says):
    with FaultyServer(lambda asked: answer) as server:
        with pytest.raises(CoraError, match=re.escape(says)):
            try_respondent(ChatRespondent("m", server.url), QUESTIONS)
    assert len(server.asked) <= 6


def test_one_refused_prompt_does_not_end_a_try():
    bad = Answer(body=completion(None, finish_reason="content_filter"))
    with FaultyServer([bad]) as server:
        tried = try_respondent(ChatRespondent("m", server.url), QUESTIONS)
    assert tried.tried[0].outcome == "refused" and tried.readable and len(server.asked) == len(tried.tried)
    assert "REFUSED" in str(tried)


def test_what_a_server_says_reaches_neither_terminal_nor_page():
    evil = "\x1b]0;x\x07<script>alert(1)</script>\x9b31m B\u202e"
    who = Says(evil)
    who.name = "\x1b[2J<b>"
    tried = try_respondent(who, QUESTIONS, n=1)
    for text in (str(tried), tryout_text(tried, whole=True)):
        assert all(c == "\n" or c.isprintable() for c in text) and "\\x1b]0;x\\x07<script>" in text
    page = tried._repr_html_()
    assert "<script>" not in page and "<b>" not in page and html.escape("<script>") in page
    assert page.count(QUESTIONS[0].id) >= 7


def test_long_replies_are_cropped_and_shown_whole_on_demand():
    tried = try_respondent(Says("x" * 5000 + "\nAnswer: B"), QUESTIONS, n=1)
    assert "[... 4110 more characters ...]" in str(tried) and "Answer: B" in str(tried)
    whole = tryout_text(tried, whole=True)
    assert "x" * 5000 in whole and whole.count("Question: ") == len(tried.tried) and str(tried).count("Question: ") == 1


def test_what_every_rule_reads_is_shown():
    tried = try_respondent(Says("**B**\nbecause"), QUESTIONS, Asking(parse="first_alphanumeric"), n=1)
    (line,) = {x for x in str(tried).splitlines() if x.startswith("    B read by")}
    assert line.startswith("    B read by first_alphanumeric, ") and "tolerant" in line
    assert "    nothing read by first_character" in str(tried)
    table = tried.table
    assert set(table["first_alphanumeric"]) == {"B"} and set(table["first_character"]) == {""}
    assert list(table["outcome"]) == ["right" if a == "B" else "wrong" for a in table["answer"]]


@pytest.mark.parametrize(
    "seconds, said",
    [(0, "0.0 seconds"), (1.94, "1.9 seconds"), (80, "80 seconds"), (95, "1.6 minutes"), (3600, "60 minutes")]
    + [(7200, "2.0 hours"), (5 * 86400, "5.0 days")],
)
def test_durations(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize("wrong", [{"n": 0}, {"family": "corra"}, {"asking": Asking(k=1)}, {"asking": "bare"}])
def test_bad_arguments(wrong):
    with pytest.raises(CoraError):
        try_respondent(Says(), QUESTIONS, **wrong)
