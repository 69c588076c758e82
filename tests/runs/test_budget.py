"""A budget is never exceeded, whatever the server does and however many requests are under way; nothing is asked twice;
and what was not asked makes no score wrong."""

import asyncio
import random
import warnings

import numpy as np
import pytest
from faulty_server import AGAIN, GOOD, LIMITS, Answer, FaultyServer, completion, refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError, THRESHOLDS
from cora_nb.metrics.scoring import score
from cora_nb.metrics.account import account
from cora_nb.metrics.items import method_table, slot_table
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents import chat
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import UNSENT, in_state
from cora_nb.runs.asking import Budget, Settled
from cora_nb.runs.asking import BudgetWarning, Spending, question_order
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants
from helpers import slow_after

VARIANTS = make_variants(math_benchmark(6))  # 6 questions of 20 variants
PRICES = (2.0, 30.0)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    "No pauses between tries."

    monkeypatch.setattr(random, "uniform", lambda low, high: 0.0)
    monkeypatch.setattr(chat.Pace, "limited", lambda self, *how: 0.0)
    monkeypatch.setattr(chat.Pace, "lost", lambda self, *how: False)


def run(url, budget, at_once=8, store=None, variants=VARIANTS, **options):
    "A run under a budget, without the warning."
    who = ChatRespondent("tiny", base_url=url, concurrency=at_once, name="tiny", max_tokens=options.pop("room", 64))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        return evaluate(who, variants, store=store, budget=budget, progress=False, strict=None, **options)


def billed(server, prices=PRICES):
    "What the server's own count of tokens costs, over all answers that it began to send."
    tokens = [a.body["usage"] for a in server.sent if isinstance(a.body, dict) and "usage" in a.body]
    read, wrote = (sum(t[what] for t in tokens) for what in ("prompt_tokens", "completion_tokens"))
    return (read * prices[0] + wrote * prices[1]) / 1e6


class Billing(FaultyServer):
    "A server that remembers what it answered."

    def choose(self, asked):
        answer = super().choose(asked)
        self.__dict__.setdefault("sent", []).append(answer)
        return answer


def usage(read, wrote, text="B"):
    "A good answer with a count of tokens."
    return Answer(body=completion(text) | {"usage": {"prompt_tokens": read, "completion_tokens": wrote}}, wait=0.001)


# ---- calls


@pytest.mark.parametrize("at_once", slow_after(2, [1, 7, 2, 32, 64]))
@pytest.mark.parametrize("calls", [1, 5, 63, 64, 65])
def test_never_more_requests_than_calls(at_once, calls):
    with FaultyServer(lambda asked: Answer(wait=0.001)) as server:
        spending = Spending(Budget(calls=calls))
        found = run(server.url, spending, at_once)
    assert len(server.asked) == spending.calls_made == calls, "all that may be asked is asked, and no more"
    assert (~in_state(found.table, "over_budget")).sum() >= calls
    assert found.facts.calls["requests"] == calls


@pytest.mark.parametrize("trouble", slow_after(12, ["max_completion_tokens", *LIMITS, *AGAIN]))
def test_retries_are_calls(trouble):
    "Every second request fails in some way; each counts."
    rng = random.Random(1)
    known = AGAIN | LIMITS

    def plan(asked):
        if trouble == "max_completion_tokens":
            wants = "max_tokens" in asked.body
            return Answer(400, refusal("use max_completion_tokens")) if wants else GOOD
        return known[trouble] if rng.random() < 0.5 else GOOD

    with FaultyServer(plan) as server:
        spending = Spending(Budget(calls=40))
        found = run(server.url, spending, 8, variants=VARIANTS[:60])
    assert len(server.asked) <= 40 and spending.calls_made <= 40
    assert len(server.asked) == 40 or not in_state(found.table, "over_budget").any()


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(at_once=st.integers(1, 64), calls=st.integers(20, 150), seed=st.integers(0, 99))
def test_resume_asks_nothing_twice(at_once, calls, seed, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "s.sqlite"
    with FaultyServer(lambda asked: Answer(wait=0.0005 * (asked.number % 3))) as server:
        whole = run(server.url, None, at_once, variants=VARIANTS)
        different = len(server.asked)
        server.asked.clear()
        for _ in range(200):
            with Store(path) as store:
                before = len(server.asked)
                found = run(server.url, Budget(calls=calls), at_once, store, variants=VARIANTS)
                assert len(server.asked) - before <= calls
            if not in_state(found.table, "over_budget").any():
                break
        texts = [asked.prompt for asked in server.asked]
    assert len(texts) == len(set(texts)) == different, "each prompt once, over all runs"
    assert found.table.equals(whole.table)


def test_what_is_stored_costs_nothing(tmp_path):
    with Store(tmp_path / "s.sqlite") as store, FaultyServer() as server:
        run(server.url, None, store=store)
        server.asked.clear()
        spending = Spending(Budget(calls=1))
        again = run(server.url, spending, store=store)
    assert not server.asked and spending.calls_made == 0 and not in_state(again.table, *UNSENT).any()


# ---- money


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(at_once=st.integers(1, 64), cost=st.floats(1e-6, 0.2), seed=st.integers(0, 10**6), trouble=st.floats(0, 0.5))
def test_never_more_money_than_the_budget(at_once, cost, seed, trouble):
    "By the server's own count: replies of any length within their room, some broken off in the middle."
    rng = random.Random(seed)

    def plan(asked):
        wrote = rng.randint(0, asked.body["max_tokens"])
        good = usage(rng.randint(1, len(asked.prompt.encode()) + 40), wrote)
        if rng.random() < trouble:
            return rng.choice([Answer(429, refusal("slow")), Answer(body=good.body, cut="mid")])
        return good

    with Billing(plan) as server:
        spending = Spending(Budget(cost=cost, prices=PRICES))
        found = run(server.url, spending, at_once, variants=VARIANTS[:60])
        spent = billed(server) if server.asked else 0.0
    assert spent <= spending.money + 1e-15 and spending.money <= cost
    assert spending.money == pytest.approx(found.facts.calls["cost"])
    cut = in_state(found.table, "over_budget")
    assert spending.used_up == bool(cut.any())


def test_the_budget_is_used_not_only_kept():
    "What requests turn out to cost makes room for others: all but the most of one prompt is spent."
    with Billing(lambda asked: usage(20, 1)) as server:
        spending = Spending(Budget(cost=0.006, prices=PRICES))
        run(server.url, spending, 64)
    most = (700 * PRICES[0] + 64 * PRICES[1]) / 1e6
    assert spending.budget.cost - most <= spending.money <= spending.budget.cost and billed(server) == spending.money


def test_a_server_that_reads_more_than_is_sent_is_believed():
    "5,000 tokens of its own above each prompt: after the first reply, the account knows."
    with Billing(lambda asked: usage(5000, 1)) as server:
        spending = Spending(Budget(cost=0.1, prices=(2.0, 0.0)))
        run(server.url, spending, 1)
    assert billed(server, (2.0, 0.0)) <= 0.1 and len(server.asked) == 10


def test_replies_without_a_count_cost_their_most():
    plain = {k: v for k, v in completion("B").items() if k != "usage"}
    with FaultyServer(lambda asked: Answer(body=plain)) as server:
        spending = Spending(Budget(cost=0.01, prices=PRICES))
        found = run(server.url, spending, 8)
    assert spending.money <= 0.01 and 0 < len(server.asked) < 120
    who = ChatRespondent("tiny", base_url=server.url, max_tokens=64)
    read, wrote = who.most(make_prompts(VARIANTS)[0])
    assert read > len(make_prompts(VARIANTS)[0].text.encode()) and wrote == who.room(make_prompts(VARIANTS)[0])
    assert found.facts.calls["prompt_tokens"] == 0


# ---- whoever answers


class Counted:
    "A respondent of somebody else, which counts what it is asked; some replies fail."

    name = "counted"

    def __init__(self, tokens=None):
        self.asked, self.tokens = [], tokens

    def describe(self):
        return {"respondent": "counted"}

    def request(self, prompt):
        return {"text": prompt.text}

    async def answer(self, prompts):
        for i, p in enumerate(prompts):
            self.asked.append(p)
            meta = None if self.tokens is None else {"prompt_tokens": self.tokens, "completion_tokens": 1}
            yield i, Reply("A", meta=meta) if i % 7 else Reply(error="lost")


@pytest.mark.filterwarnings("ignore::cora_nb.runs.asking.BudgetWarning")
@settings(max_examples=15, deadline=None)
@given(calls=st.integers(1, 130))
def test_any_respondent_can_have_a_budget(calls):
    who = Counted()
    found = evaluate(who, VARIANTS, budget=Budget(calls=calls), progress=False, strict=None)
    assert len(who.asked) == min(calls, found.facts.calls["asked"] + 0) <= calls
    done = ~in_state(found.table, *UNSENT)
    ids = found.table["question_id"].to_numpy()
    last = ids[np.flatnonzero(done)[-1]]
    assert set(ids[done]) & set(ids[~done]) <= {last}, "question after question"


@pytest.mark.filterwarnings("ignore::cora_nb.runs.asking.BudgetWarning")
@settings(max_examples=15, deadline=None)
@given(cost=st.floats(1e-5, 0.1), tokens=st.none() | st.integers(1, 100))
def test_any_respondent_stays_within_its_money(cost, tokens):
    who, spending = Counted(tokens), Spending(Budget(cost=cost, prices=PRICES))
    evaluate(who, VARIANTS, budget=spending, progress=False, strict=None)
    least = 0 if tokens is None else len(who.asked) * (PRICES[0] + PRICES[1]) / 1e6  # lost ones count at their most
    assert least <= spending.money + 1e-12 and spending.money <= cost


def test_runs_share_a_budget():
    ann, spending = SimulatedRespondent(seed=1), Spending(Budget(calls=150))
    with pytest.warns(BudgetWarning, match="stopped by its budget of at most 150 calls"):
        first = evaluate(ann, VARIANTS, budget=spending, progress=False)
        second = evaluate(SimulatedRespondent(seed=2), VARIANTS, budget=spending, progress=False)
        third = evaluate(SimulatedRespondent(seed=3), VARIANTS, budget=spending, progress=False)
    asked = [r.facts.calls["requests"] for r in (first, second, third)]
    assert asked == [120, 30, 0] and not in_state(first.table, *UNSENT).any()
    assert in_state(third.table, "over_budget").all() and third.facts.calls["asked"] == 0


def test_a_run_that_was_stopped_in_the_middle_is_paid():
    "What was under way when somebody pressed Ctrl-C may have been billed."
    spending = Spending(Budget(cost=1, prices=PRICES))
    assert len(spending.reserve([(100, 10)] * 3)) == 3
    assert spending.money == 0
    spending.begin()
    assert spending.money == pytest.approx(3 * (100 * 2 + 10 * 30) / 1e6)


# ---- no score is wrong


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cora_nb.runs.asking.BudgetWarning")
@settings(max_examples=12, deadline=None)
@given(
    calls=st.integers(1, 119),
    stop=st.sampled_from([None, Settled(batch=8), Settled(THRESHOLDS, batch=8)]),
    seed=st.integers(0, 50),
)
def test_scores_are_exact_or_bounded(calls, stop, seed):
    who = SimulatedRespondent(knows=0.7, slips=0.1, seed=seed)
    true = score(evaluate(who, VARIANTS, progress=False)).set_index("score")["value"]
    part = evaluate(who, VARIANTS, stop=stop, budget=Budget(calls=calls), progress=False)
    found = score(part).set_index("score")
    for row in found.itertuples():
        if not np.isnan(row.value):
            assert row.value == pytest.approx(true[row.Index]), row
        elif row.status == "bounded":
            assert {remark.kind for remark in row.remarks} in ({"unknown"}, {"not_defined"}, {"unknown", "not_defined"})
            assert row.least - 1e-9 <= true[row.Index] <= row.most + 1e-9, row
    if in_state(part.table, "over_budget").any() and stop is None:
        assert found.loc[["MCQA+", "RC"], "value"].isna().all()


@pytest.mark.filterwarnings("ignore::cora_nb.runs.asking.BudgetWarning")
def test_a_single_prompt_left_out_counts_as_a_failed_one_does():
    "One in a thousand counts as wrong, with the most that the score could be beside it, whatever the cause."
    variants = make_variants(math_benchmark(60))
    part = evaluate(SimulatedRespondent(seed=3), variants, budget=Budget(calls=1199), progress=False)
    assert in_state(part.table, "over_budget").sum() == 1 and not in_state(part.table, "failed").any()
    found = score(part).set_index("score")
    assert found["note"].loc["MCQA+"].startswith("1 of 1,200 not asked: at most ")
    assert found.loc["MCQA+", "value"] == found.loc["MCQA+", "least"] < found.loc["MCQA+", "most"]
    assert not np.isnan(found.loc["MCQA", "value"])


def test_a_stop_is_not_early_stoppings_knowledge():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        part = evaluate(SimulatedRespondent(seed=3), VARIANTS, stop=Settled(), budget=Budget(calls=10), progress=False)
    assert in_state(part.table, "over_budget").any()
    assert account(part).questions["unknown"].sum() == in_state(part.table, "over_budget", "not_asked").sum()
    for measure in (method_table, slot_table):
        with pytest.raises(CoraError, match="not asked because the budget was used up.*run again to go on"):
            measure(part)


def test_trials_of_a_question_go_together():
    prompts = make_prompts(VARIANTS, trials=3)
    order = question_order(prompts)
    assert sorted(order) == list(range(len(prompts)))
    ids = [prompts[i].variant.question_id for i in order]
    assert sum(a != b for a, b in zip(ids, ids[1:])) == 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "a budget needs a limit"),
        ({"calls": 0}, "calls must be a whole number"),
        ({"calls": 1.5}, "calls must be a whole number"),
        ({"cost": 1}, "a cost needs prices"),
        ({"cost": float("nan"), "prices": (1, 1)}, "cost must be a number above 0, got nan"),
        ({"cost": float("inf"), "prices": (1, 1)}, "cost must be a number above 0, got inf"),
        ({"cost": 1, "prices": 3}, "prices must be two numbers"),
        ({"cost": 1, "prices": (1, -1)}, "a price must be a number of 0 or more, got -1"),
        ({"cost": 1, "prices": (0, 0)}, "at these everything is free"),
    ],
)
def test_budgets_that_make_no_sense(options, said):
    with pytest.raises(CoraError, match=said):
        Budget(**options)


# ---- requests that used more than their most


def next_ticket(spending, way, need):
    "A ticket for a request that needs so much at most, or None."
    if way == "admit":
        return asyncio.run(spending.admit(*need))
    return next(iter(spending.reserve([need])), None)


@pytest.mark.parametrize("way", ["admit", "reserve"])
@pytest.mark.parametrize("used", [(15, 10), (10, 15)], ids=["read", "wrote"])
@pytest.mark.parametrize(("cost", "fits"), [(44, False), (49.9, False), (50, True)])
def test_what_a_request_used_above_its_most_is_expected_of_the_next(way, used, cost, fits):
    "10 and 10 tokens at most, and the first takes 25: the next one may take 25, too. A token costs 1."
    spending = Spending(Budget(cost=cost, prices=(1e6, 1e6)))
    first = next_ticket(spending, way, (10, 10))
    spending.settle(first, Reply("A", meta=dict(zip(("prompt_tokens", "completion_tokens"), used))))
    assert spending.money == 25
    second = next_ticket(spending, way, (10, 10))
    assert (second is not None) == fits and spending.used_up != fits
    if fits:
        spending.settle(second, None)  # its cost is not known, so it counts as the most it may take
        assert spending.money == 50


@pytest.mark.parametrize("way", ["admit", "reserve"])
def test_requests_that_use_more_than_expected_again_raise_what_is_expected(way):
    "13, then 3 more than the 23 expected, then 16; one that uses less lowers nothing."
    spending = Spending(Budget(cost=1000, prices=(1e6, 0)))
    for used, expected in ((13, 13), (16, 16), (2, 16)):
        spending.settle(next_ticket(spending, way, (10, 0)), Reply("A", meta={"prompt_tokens": used}))
        before = spending.money
        spending.settle(next_ticket(spending, way, (10, 0)), None)
        assert spending.money - before == expected
