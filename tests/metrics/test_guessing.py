"""Guessing: against exact fractions, brute-force enumeration and the published Table 7."""

import itertools
import os
import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from math import prod
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import CoraError, Question
from cora_nb.forms import FORMS, get_form
from cora_nb.metrics.scoring import score
from cora_nb.metrics.account import account, paper_counts
from cora_nb.metrics import guessing
from cora_nb.metrics.guessing import (
    chance_rates,
    chance_scores,
    corrected,
    divergence_set_rates,
    expected_scores,
    form_chances,
    guess_rates,
    guesser_order_scores,
    guesser_scores,
    msgr,
)
from cora_nb.stats.shares import binomial_tail, poisson_binomial_pmf
from cora_nb.prompts.templates import make_prompts
from cora_nb.papers.published import load_published
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.responses import Responses, need
from cora_nb.results import lookup, make_result, Remark, values_of
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

EVERY_A = range(2, 27)
trials = st.integers(1, 60).flatmap(lambda M: st.tuples(st.integers(0, M), st.just(M)))


def exact_pmf(rates: list[Fraction]) -> list[Fraction]:
    pmf = [Fraction(1)]
    for r in rates:
        pmf = [(1 - r) * a + r * b for a, b in zip(pmf + [Fraction(0)], [Fraction(0)] + pmf)]
    return pmf


def exact_set(A: int) -> list[Fraction]:
    "Written out from Section 5 of the paper: original, shuffled, then six methods with A - 1 variants each."
    shown = [A, A]
    for _ in range(A - 1):
        shown += [A, A, 2, 2, 3, 3]
    return [Fraction(1, n) for n in shown]


# --- the same question M times --------------------------------------------------------------------------------------


# --- MSGR -----------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(trials.filter(lambda pM: pM[0] > 0), st.integers(2, 26), st.floats(0.001, 0.9999))
def test_msgr_inverts_the_tail(pM, k, confidence):
    r = msgr(*pM, k, confidence)
    assert 0 < r < 1
    assert binomial_tail(*pM, r) == pytest.approx(confidence, rel=1e-9)


def test_msgr_limits_and_broadcasting():
    assert [msgr(0, M, k) for M, k in ((1, 2), (10, 5), (26, 26))] == [1 / 2, 1 / 5, 1 / 26]
    p, M, k, confidence = (
        np.arange(4)[:, None, None, None],
        np.array([3, 7])[:, None, None],
        np.array([2, 5])[:, None],
        np.array([0.5, 0.9, 0.9996]),
    )
    table = msgr(p, M, k, confidence)
    assert table.shape == (4, 2, 2, 3)
    assert table[2, 1, 0, 1] == msgr(2, 7, 2, 0.9)
    np.testing.assert_allclose(table[3, 0], np.tile(confidence ** (1 / 3), (2, 1)), rtol=1e-12)
    assert np.all(np.diff(table[1:], axis=0) > 0) and np.all(np.diff(table[1:], axis=-1) > 0)


def test_table_7_to_the_printed_digits():
    paper = load_published(7)
    for p, tail, rate in zip(paper["p"], paper["tail_printed"], paper["msgr_printed"]):
        assert f"{binomial_tail(p, 10, 1 / 5):.{len(tail) - 2}f}" == tail
        digits = len(rate) - 2
        computed = msgr(p, 10, 5)
        if p in (9, 10):
            computed = np.floor(computed * 10**digits) / 10**digits  # the paper cuts these two off
        assert f"{computed:.{digits}f}" == rate


# --- the real divergence set ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("A", EVERY_A)
def test_far_tails_are_exact(A):
    assert len(divergence_set_rates(A)) == 2 + 6 * (A - 1)
    assert sorted(divergence_set_rates(A)) == sorted(float(r) for r in exact_set(A))
    exact = exact_pmf(exact_set(A))
    np.testing.assert_allclose(poisson_binomial_pmf(divergence_set_rates(A)), [float(x) for x in exact], rtol=1e-12)


@pytest.mark.parametrize("A", EVERY_A)
def test_guesser_scores_against_fractions(A):
    pmf, scores = exact_pmf(exact_set(A)), values_of(guesser_scores(A))
    n = len(pmf) - 1
    slow = {
        "MCQA": Fraction(1, A),
        "MCQA+": sum(h * x for h, x in enumerate(pmf)) / n,
        "MV": sum(x for h, x in enumerate(pmf) if 2 * h > n),
    }
    for tenths in range(5, 11):
        slow[f"BMCA({tenths / 10})"] = sum(x for h, x in enumerate(pmf) if 10 * h >= tenths * n)
    slow["CI"] = 1 - (slow["MCQA"] - slow["BMCA(1.0)"])
    slow["CoRA"] = slow["MCQA"] * slow["CI"]
    assert list(scores.index) == list(slow)
    np.testing.assert_allclose(scores, [float(x) for x in slow.values()], rtol=1e-12)


# --- chance on what was asked, and the correction -------------------------------------------------------------------


def quiz(sizes, n=1, shift=0):
    return [Question(f"{A}/{i}", "?", tuple("abcdefghij"[:A]), answer=(i + shift) % A) for A in sizes for i in range(n)]


def shown(*questions):
    "A table of what was asked: for each question the (choices, answer) of its variants, the original first."
    rows = [
        (f"q{i}", "decoupled" if j else "original", max(j - 1, 0), n, a)
        for i, q in enumerate(questions)
        for j, (n, a) in enumerate(q)
    ]
    return pd.DataFrame(rows, columns=["question_id", "method", "index", "n_choices", "answer"])


def graded(table, hits):
    "A responses table in which some of the replies are right."
    return table.assign(correct=list(hits))


asked_sets = st.lists(
    st.lists(st.integers(2, 4).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))), min_size=2, max_size=4),
    min_size=1,
    max_size=3,
).filter(lambda s: sum(map(len, s)) <= 6)


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(asked_sets, st.sampled_from([(1,), (3, 1), (1, 2, 5)]))
def test_chance_scores_against_every_outcome(sets, position):
    "Each score that is a mean, from `score` itself over all outcomes; CoRA and CORE are products of such means."
    table = shown(*sets)
    rates = [
        position[min(a, len(position) - 1)] / sum(position[min(i, len(position) - 1)] for i in range(n))
        for n, a in zip(table["n_choices"], table["answer"])
    ]
    assert guess_rates(table, position=position)["rate"].tolist() == pytest.approx(rates)
    slow = 0
    for outcome in itertools.product((False, True), repeat=len(table)):
        chance = prod(r if hit else 1 - r for hit, r in zip(outcome, rates))
        slow = slow + chance * values_of(score(graded(table, outcome)))
    result = chance_scores(table, position=position)
    assert (result["n"] == len(sets)).all() and (result["respondent"] == "chance").all()
    found = values_of(result)
    assert list(found.index) == list(slow.index)
    pd.testing.assert_series_equal(
        found.drop(["CoRA", "CORE"]), slow.drop(["CoRA", "CORE"]), rtol=1e-10, check_names=False
    )
    assert found["CoRA"] == pytest.approx(found["MCQA"] * found["CI"], nan_ok=True)
    if len(sets) == 1 and not np.isnan(slow["CoRA"]):  # originals alone have no CoRA
        assert slow["CoRA"] == pytest.approx(found["BMCA(1.0)"])


def test_chance_scores_from_variants_and_responses_agree():
    variants = make_variants(quiz([3, 5], 10))
    responses = evaluate(SimulatedRespondent(), variants, Asking(trials=2), progress=False)
    whole = chance_scores(variants, thresholds=(0.3,))
    assert "BMCA(0.3)" in set(whole["score"]) and "BMCA(0.5)" not in set(whole["score"])
    pd.testing.assert_frame_equal(chance_scores(responses, (0.3,)), whole)
    mixed = Responses(responses.table.sample(frac=1, random_state=0)).trial(1)
    pd.testing.assert_frame_equal(chance_scores(mixed, (0.3,)), whole)
    pd.testing.assert_frame_equal(chance_scores(mixed.table, (0.3,)), whole)
    pd.testing.assert_frame_equal(chance_scores(iter(variants), (0.3,)), whole)
    twice = values_of(chance_scores(responses.pool_trials(), (1.0,)))
    assert twice["MCQA"] == pytest.approx(lookup(whole, "MCQA").value) and twice["BMCA(1.0)"] < 1e-6
    part = chance_scores(responses.rows(lambda t: t["method"] != "original"))
    assert part["score"][part["value"].isna()].tolist() == ["MCQA", "CI", "CoRA"]  # as `score` does


def test_chance_of_an_incomplete_divergence_set():
    responses = evaluate(SimulatedRespondent(), make_variants(quiz([5], 6)), progress=False)
    few = responses.rows(lambda t: t["method"].isin(["original", "shuffled"]))
    found, scored = chance_scores(few), score(few)
    for result in (found, scored):
        assert result["score"][result["value"].isna()].tolist() == ["CI", "CoRA"]
    assert found["note"].equals(scored["note"]) and lookup(found, "MV").note == "2 of 26 variants"
    assert lookup(found, "MCQA").note == ""
    chosen = few.rows(np.ones(len(few), bool), chosen="two")
    assert chance_scores(chosen)["value"].notna().all()


@pytest.mark.parametrize("form", FORMS)
def test_chance_by_the_form_of_each_row(form):
    assert form_chances(need(shown([(2, 0), (4, 1)]).assign(form=form))).tolist() == [
        get_form(form).chance(2),
        get_form(form).chance(4),
    ]
    known = {"mcq": 1 / 4, "several": 1 / 15, "tfq": 1 / 4, "lfgq": 0}
    found = values_of(chance_scores(shown([(4, 1)]).assign(form=form)))
    assert found["MCQA"] == found["MCQA+"] == pytest.approx(known[form]) and found["BMCA(1.0)"] == pytest.approx(
        known[form]
    )


def test_chance_of_mixed_forms():
    table = shown([(4, 1), (4, 0), (4, 2)]).assign(form=["mcq", "several", "lfgq"])
    assert guess_rates(table)["rate"].tolist() == pytest.approx([1 / 4, 1 / 15, 0])
    found = values_of(chance_scores(table))
    assert found["BMCA(1.0)"] == 0 and found["MCQA+"] == pytest.approx((1 / 4 + 1 / 15) / 3)
    assert guess_rates(table.assign(form=["mcq", "mcq", "lfgq"]), (3, 1))["rate"].tolist() == [1 / 6, 1 / 2, 0]
    without = chance_scores(table.drop(columns="form"))
    assert lookup(without, "MCQA+").value == pytest.approx(
        1 / 4
    )  # nothing says that they are not questions with one letter
    words = evaluate(SimulatedRespondent(), make_variants(quiz([4], 5), "formats"), progress=False)
    only = words.rows(lambda t: t["form"] == "lfgq", chosen="lfgq")
    assert lookup(chance_scores(only), "MCQA+").value == 0


@pytest.mark.slow
def test_equal_questions_of_a_benchmark_of_thousands_are_computed_once(monkeypatch):
    "The seconds: tools/benchmarks/bench_quick.py."
    done, plain = [], guessing.poisson_binomial_pmf
    monkeypatch.setattr(guessing, "poisson_binomial_pmf", lambda *a, **k: done.append(1) or plain(*a, **k))
    chance_scores(make_variants(quiz([4], 3000)), position=(3, 1))
    assert 0 < len(done) < 600


@pytest.mark.parametrize("n, orders", [(2, 1), (2, 2), (2, 5), (3, 3), (4, 4), (5, 4), (3, 7)])
def test_guesser_order_scores_against_every_sequence(n, orders):
    rows = list(itertools.product(range(n), repeat=orders))
    slow = [1 / n, np.mean([max(r.count(c) for c in r) / orders for r in rows]), n**-orders]
    found = guesser_order_scores(n, orders)
    assert found["score"].tolist() == ["Acc", "S_c", "Acc-H"] and set(found["respondent"]) == {"pure guesser"}
    np.testing.assert_allclose(found["value"], slow, rtol=1e-12)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(st.floats(0, 1), st.integers(2, 8))
def test_a_knower_who_guesses_the_rest_is_corrected_to_what_it_knows(kappa, A):
    rates, zero = divergence_set_rates(A), guesser_scores(A)
    expected = expected_scores(
        [(np.ones(len(rates)), 1, kappa), (rates, 1 / A, 1 - kappa)]
        if 0 < kappa < 1
        else [(np.ones(len(rates)), 1, 1)]
        if kappa
        else [(rates, 1 / A, 1)]
    )
    found = values_of(corrected(expected[expected["score"].isin(zero["score"])], zero))
    assert list(found.index) == zero["score"].tolist() and np.isnan(found["CI"])
    np.testing.assert_allclose(found.drop(["CoRA", "CI"]), kappa, atol=1e-10)
    m, ci = lookup(zero, "MCQA").value, lookup(zero, "CI").value
    assert found["CoRA"] == pytest.approx(kappa - kappa * (1 - kappa) * (1 - m) * (1 - ci) / (1 - m * ci), abs=1e-10)


def test_numbers_are_corrected():
    assert corrected([0.2, 0.6, 1, 0], 0.2).tolist() == pytest.approx([0, 0.5, 1, -0.25])
    assert np.isnan(corrected([np.nan, 1], [0.5, 1])).all()  # not known; nothing is above a chance of 1


def test_the_weight_of_the_last_place_repeats():
    v = make_variants([Question("q", "?", tuple("abcd"), 3)], "cyclic")
    found = dict(zip((x.answer for x in v), guess_rates(v, position=(4, 2, 1))["rate"]))
    assert found == pytest.approx({0: 4 / 8, 1: 2 / 8, 2: 1 / 8, 3: 1 / 8})


_NOT_CORRECTED = Remark("not_defined", 1.0, why="zero")


@pytest.mark.slow
def test_corrected_keeps_the_shape():
    variants = make_variants([Question(f"q{i}", "?", tuple("abcd"), i % 4, subject="xy"[i % 2]) for i in range(40)])
    responses, zero = evaluate(SimulatedRespondent(), variants, progress=False), chance_scores(variants)
    plain, intervals = score(responses), score(responses, ci=0.9)
    both = score(responses, by="subject", ci=0.9)
    once = corrected(plain, zero)
    same = ["value", "least", "most", "status", "remarks"]
    assert once.drop(columns=same).equals(plain.drop(columns=same)) and not plain["note"].any()
    assert once["note"].ne("").tolist() == (plain["score"] == "CI").tolist()
    assert lookup(once, "MCQA").value == pytest.approx((lookup(plain, "MCQA").value - 0.25) / 0.75)
    chance = values_of(zero)
    for found, was in ((corrected(intervals, zero), intervals), (corrected(both, zero), both)):
        more = [(_NOT_CORRECTED,) if name == "CI" else () for name in was["score"]]
        assert found["remarks"].tolist() == [own + some for own, some in zip(was["remarks"], more)]
        numbers = ["low", "high", *same]
        assert make_result(found).equals(found)
        assert found.drop(columns=numbers).equals(was.drop(columns=numbers))
        for what in ("value", "low", "high"):
            slow = [np.nan if s == "CI" else (x - chance[s]) / (1 - chance[s]) for s, x in zip(was["score"], was[what])]
            np.testing.assert_allclose(found[what], slow, rtol=1e-15)
    shuffled = plain.sample(frac=1, random_state=0)
    assert values_of(corrected(shuffled, zero)).equals(values_of(once)[shuffled["score"]])  # by name, not by place
    meant = plain[plain["score"] != "CI"]
    assert corrected(meant, 0.2)["value"].tolist() == corrected(meant["value"].tolist(), 0.2).tolist()
    assert corrected(meant, zero)["value"].tolist() == once["value"].dropna().tolist()
    assert not corrected(meant, zero)["note"].any()
    assert corrected(0.6, 0.2) == pytest.approx(0.5) and corrected([0.2, 1], 0.2).tolist() == [0, 1]
    assert corrected(0.1, 0.2) < 0 and np.isnan(corrected(np.nan, 0.2)) and np.isnan(corrected(1, 1))
    assert corrected([[0.2, 0.5], [1, 0.75]], [0.2, 0.5]).tolist() == [[0, 0], [1, 0.5]]


def test_results_are_corrected_by_all_the_names_they_share():
    rows = [("x", "a", 0.5), ("y", "a", 0.6), ("x", "b", 0.7)]
    scores = make_result([{"method": m, "score": s, "value": v, "low": 0.4} for m, s, v in rows], respondent="ann")
    zero = make_result([{"method": m, "score": s, "value": v - 0.3} for m, s, v in rows[::-1]], respondent="chance")
    assert corrected(scores, zero)["value"].tolist() == pytest.approx([0.3 / 0.8, 0.3 / 0.7, 0.3 / 0.6])
    assert corrected(scores, zero)["low"].tolist() == pytest.approx([0.2 / 0.8, 0.1 / 0.7, 0])
    one = make_result([{"score": "a", "value": 0.2}, {"score": "b", "value": 0.3}])  # the same for every method
    assert corrected(scores, one)["value"].tolist() == pytest.approx([0.3 / 0.8, 0.4 / 0.8, 0.4 / 0.7])
    placed = make_result([{"place": k, "score": "a", "value": 0.5} for k in (2, 4)])
    by_place = make_result([{"place": k, "score": "a", "value": 1 / k} for k in (4.0, 3.0, 2.0)])
    assert corrected(placed, by_place)["value"].tolist() == pytest.approx([0, 1 / 3])
    for a, b, says in [
        (scores.drop(columns="method").head(1), zero, "chance has two numbers for a"),
        (scores, zero.head(2), "chance has no value for a, x"),
        (scores.assign(value=2.0), zero, "scores must be from 0 to 1, got 2"),
        (scores, zero.assign(value=-0.5), "chance must be from 0 to 1, got -0.5"),
        (scores.drop(columns="score"), zero, "no column 'score'"),
    ]:
        with pytest.raises(CoraError, match=says):
            corrected(a, b)


# --- scores without a reading above chance --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["CI", "BMCA(0.0)"])
def test_what_somebody_who_is_never_right_gets_is_not_corrected(name):
    variants = make_variants(quiz([4], 20))
    run, thresholds = evaluate(SimulatedRespondent(), variants, progress=False), (0.0, 0.5)
    scores, zero = score(run, thresholds=thresholds, ci=0.9), chance_scores(variants, thresholds)
    row = lookup(corrected(scores, zero), name)
    assert np.isnan([row["value"], row["low"], row["high"]]).all()
    assert row["remarks"][-1] == _NOT_CORRECTED
    alone = scores[scores["score"] == name]
    by_subject = pd.concat([alone.assign(subject=x) for x in "ab"])
    for only in (alone, by_subject):
        for chance in (zero, 0.2):
            with pytest.raises(CoraError, match=re.escape(f"{name} is not corrected for chance: a model that")):
                corrected(only, chance)
    assert corrected(0.9, 0.8) == pytest.approx(0.5)  # numbers have no names
    lost = (Remark("unknown", 3, of=80, why=("failed",)),)
    noted = corrected(scores.assign(remarks=[lost] * len(scores)), zero)
    assert lookup(noted, name).remarks == (*lost, _NOT_CORRECTED) and lookup(noted, "MV").remarks == lost


def test_a_score_of_ones_own_is_asked_what_never_being_right_gives(monkeypatch):
    from cora_nb.metrics.scores import SCORES, register_score

    monkeypatch.setattr(SCORES, "registered", dict(SCORES.registered))
    register_score("mistakes")(lambda counts: counts.mean(1 - counts.rc))
    register_score("half hits")(lambda counts: counts.mean(counts.rc) / 2)
    variants = make_variants(quiz([4], 5))
    found = corrected(score(evaluate(SimulatedRespondent(), variants, progress=False)), chance_scores(variants))
    assert found["score"][found["value"].isna()].tolist() == ["CI", "mistakes"]


# --- equal prompts that share a reply -------------------------------------------------------------------------------

HUB = Path(os.environ.get("CORA_SHARED", Path(__file__).parents[2].parent / "shared")) / "data" / "hub"


def words_of(variants):
    "What each variant says, and a number for it: by the whole text, not by sources."
    texts = [(p.variant.question_id, p.text) for p in make_prompts(variants)]
    return [texts.index(t) for t in texts]


@pytest.mark.slow
@settings(deadline=None, max_examples=8)
@given(st.lists(st.integers(2, 3), min_size=1, max_size=2), st.integers(0, 20), st.randoms(), st.booleans())
def test_shared_replies_against_every_outcome(sizes, seed, random, lean):
    "Some variants of small questions: every combination of guesses at the different texts, scored by `score`."
    questions = [Question(f"q{i}", "?", tuple("abc"[:A]), random.randrange(A)) for i, A in enumerate(sizes)]
    variants = make_variants(questions, seed=seed)
    few = set(
        sorted(set(words_of(variants)), key=lambda number: (variants[number].method != "original", random.random()))[:5]
    )
    variants = [v for v, number in zip(variants, words_of(variants)) if number in few]  # five texts: 32 outcomes
    position, numbers = (3, 1) if lean else (1,), words_of(variants)
    weights = [[position[min(i, len(position) - 1)] for i in range(v.n_choices)] for v in variants]
    table = pd.DataFrame(
        [(v.question_id, v.method, v.index, v.n_choices, v.answer, v.sources) for v in variants],
        columns=["question_id", "method", "index", "n_choices", "answer", "sources"],
    )
    different = sorted(set(numbers))
    slow = 0
    for hits in itertools.product((False, True), repeat=len(different)):
        right = dict(zip(different, hits))
        rates = {n: weights[n][variants[n].answer] / sum(weights[n]) for n in different}
        chance = prod(rates[n] if hit else 1 - rates[n] for n, hit in right.items())
        slow = slow + chance * values_of(score(graded(table, [right[n] for n in numbers])))
    products = ["CoRA", "CORE"]
    for asked in (table, Responses(table), variants):
        found = values_of(chance_scores(asked, position=position, shared=True)).reindex(slow.index)
        known = slow.index if asked is not variants else slow.index.drop(["CI", "CoRA"])  # an incomplete set of cora
        pd.testing.assert_series_equal(
            found[known].drop(products, errors="ignore"),
            slow[known].drop(products, errors="ignore"),
            rtol=1e-10,
            check_names=False,
        )
    rows = guess_rates(variants, position, shared=True)
    assert len(set(zip(rows["draw"], numbers))) == len(different) == rows["draw"].nunique()


def test_two_choices_by_hand():
    "Both right: 1/4 drawn apart; shared, 1/2 where the shuffle left the order, and 1/4 where it did not."
    for seed in range(8):
        variants = make_variants([Question("q", "?", ("yes", "no"), 0)], seed=seed)
        pair = [v for v in variants if v.method in ("original", "shuffled")]
        same = pair[0].choices == pair[1].choices
        found = values_of(chance_scores(pair, (1.0,), shared=True))
        assert found["BMCA(1.0)"] == (1 / 2 if same else 1 / 4) and found["MCQA"] == found["MCQA+"] == 1 / 2
        assert values_of(chance_scores(pair, (1.0,)))["BMCA(1.0)"] == 1 / 4
        pmf, times = np.ones(1), pd.Series(words_of(variants)).value_counts(sort=False)
        for number, m in times.items():
            n = variants[number].n_choices
            pmf = np.convolve(pmf, [1 - 1 / n, *[0] * (m - 1), 1 / n])
        found = values_of(chance_scores(variants, shared=True))
        assert found["BMCA(1.0)"] == pytest.approx(pmf[-1], rel=1e-12)
        assert found["MV"] == pytest.approx(pmf[5:].sum(), rel=1e-12)


def test_the_facts_of_a_run_say_whether_replies_are_shared():
    variants = make_variants(quiz([2, 3], 8))
    runs = {s: evaluate(SimulatedRespondent(shares=s), variants, progress=False) for s in (False, True)}
    both = {s: chance_scores(variants, shared=s) for s in (False, True)}
    assert chance_scores(variants).equals(both[False])  # nobody was asked: a draw for each variant
    assert not values_of(both[True]).equals(values_of(both[False]))
    for s, run in runs.items():
        assert chance_scores(run).equals(both[s])
        for wanted in (False, True):
            assert chance_scores(run, shared=wanted).equals(both[wanted])
        for temperature in (0.0, 1.0):
            who = {"respondent": "chat", "temperature": temperature}
            other = Responses(run.table, run.questions, run.facts.plain() | {"respondent": who})
            assert chance_scores(other).equals(both[temperature == 0])
        assert guess_rates(run)["draw"].nunique() == guess_rates(variants, shared=s)["draw"].nunique()
        assert chance_scores(run.table).equals(both[False])  # a table says nothing
    note = lookup(both[True], "MV").note
    assert note == f"{guess_rates(variants, shared=True)['draw'].nunique()} of {len(variants)} prompts differ, and " + (
        "equal ones share a reply"
    )
    assert lookup(both[True], "MCQA").note == "" and not both[False]["note"].any()


def test_repetitions_at_temperature_0_are_one_reply():
    variants = make_variants(quiz([3], 6))
    run = evaluate(SimulatedRespondent(knows=0, shares=True), variants, Asking(trials=3), progress=False)
    once, thrice = chance_scores(run), chance_scores(run.pool_trials())
    np.testing.assert_allclose(once["value"], thrice["value"], rtol=1e-12)
    apart = values_of(chance_scores(run.pool_trials(), shared=False))
    assert apart["BMCA(1.0)"] < values_of(thrice)["BMCA(1.0)"]
    drawn = score(run), score(run.pool_trials())
    np.testing.assert_allclose(drawn[0]["value"], drawn[1]["value"], rtol=1e-12)


def simulated_guessers(variants, seeds, **fields):
    "Scores that are means over questions, with their standard errors: guessers that share replies."
    counts = []
    for seed in seeds:
        who = SimulatedRespondent(knows=0, shares=True, seed=seed, **fields)
        counts.append(paper_counts(account(evaluate(who, variants, progress=False))))
    rc = pd.concat(counts).eval("hits / trials")
    each = pd.DataFrame({"RC": rc, "MV": rc > 0.5, "BMCA(0.5)": rc >= 0.5, "BMCA(0.6)": rc >= 0.6}).astype(float)
    return each.mean(), each.std() / len(each) ** 0.5


@pytest.mark.slow
@pytest.mark.skipif(
    not (HUB / "bigbio__med_qa").exists(), reason="MedQA is not beside the project (../shared/data/hub)"
)
def test_guessers_at_temperature_0_on_medqa():
    "The design's page: MV .0328 and P(RC = 1) 1.15e-12 where replies are shared, .0206 and 6.1e-14 where not."
    variants = make_variants(load_benchmark("medqa", path=HUB))
    assert len(variants) == 33_098 and guess_rates(variants, shared=True)["draw"].nunique() == 29_644
    shared, apart = (values_of(chance_scores(variants, shared=s)) for s in (True, False))
    assert f"{shared['MV']:.4f} {shared['BMCA(1.0)']:.3g}" == "0.0328 1.15e-12"
    assert f"{apart['MV']:.4f} {apart['BMCA(1.0)']:.2g}" == "0.0206 6.1e-14"
    mean, error = simulated_guessers(variants, range(2))
    assert ((mean - shared[mean.index]).abs() < 2 * error).all(), (mean - shared[mean.index]) / error
    assert ((mean - apart[mean.index])[["MV", "BMCA(0.5)"]] > 3 * error[["MV", "BMCA(0.5)"]]).all()


def test_examples_altered_like_the_variant_leave_nothing_to_share():
    pool = [Question(f"s{i}", f"Example {i}?", tuple("wxyz"), i) for i in range(4)]
    variants, how = make_variants(quiz([3], 5)), Asking(shots=pool, k=2)
    plain, like = (
        evaluate(SimulatedRespondent(shares=True), variants, replace(how, shots_as=way), progress=False)
        for way in ("plain", "like_variant")
    )
    assert values_of(chance_scores(plain)).equals(values_of(chance_scores(variants, shared=True)))
    assert values_of(chance_scores(like)).equals(values_of(chance_scores(variants)))


def test_expected_scores_of_replies_that_count_several_times():
    rates, times = [1 / 3, 1 / 2, 1 / 2], [2, 1, 3]
    found = values_of(expected_scores([(rates, 1 / 3, 2, times)], (0.5,)))
    slow = 0
    for hits in itertools.product((0, 1), repeat=3):
        chance = prod(r if h else 1 - r for r, h in zip(rates, hits))
        rc = np.dot(hits, times) / 6
        slow = slow + chance * pd.Series({"MCQA": hits[0], "RC": rc, "MV": rc > 0.5, "BMCA(0.5)": rc >= 0.5}).astype(
            float
        )
    np.testing.assert_allclose(found[slow.index], slow, rtol=1e-12)
    plain = expected_scores([(rates, 1 / 3, 2)])
    np.testing.assert_allclose(expected_scores([(rates, 1 / 3, 2, [1, 1, 1])])["value"], plain["value"], rtol=1e-12)
    alone = values_of(expected_scores([([1 / 4], 1 / 4, 1, [5])]))
    assert alone["MV"] == alone["BMCA(1.0)"] == alone["MCQA"] == pytest.approx(1 / 4)
    unknown = values_of(expected_scores([(rates, np.nan, 1, times)]))
    assert np.isnan(unknown["MCQA"]) and unknown["RC"] == pytest.approx(np.dot(rates, times) / 6)


# --- what bad input gets --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: binomial_tail(1, 3, float("nan")), "got nan"),
        (lambda: binomial_tail(None, 3, 0.5), "got None"),
        (lambda: msgr(11, 10, 5), "p must be at most M, got p=11 and M=10"),
        (lambda: msgr(1, 10, 1), "k must be a whole number of 2 or more, got 1"),
        (lambda: msgr(1, 10, 5, 0), "confidence must be between 0 and 1, got 0"),
        (lambda: chance_rates([5, 1]), "n_choices must be a whole number of 2 or more, got 1"),
        (lambda: divergence_set_rates(27), "A must be a whole number from 2 to 26, got 27"),
        (lambda: guesser_scores(1), "A must be a whole number from 2 to 26, got 1"),
        (lambda: expected_scores([]), "there are no questions"),
        (lambda: chance_scores([]), "there are no responses"),
        (lambda: chance_scores("responses.parquet"), "asked must be variants or responses, got a str"),
        (
            lambda: chance_scores(shown([(3, 1)]).assign(form="several"), position=(4, 1)),
            "position needs replies that name one choice, and some have the form several",
        ),
        (
            lambda: chance_scores(make_variants(quiz([3])) + make_variants(quiz([3]), "cyclic")),
            "several families, cora, cyclic",
        ),
        (lambda: chance_scores(shown([(3, 1)]).drop(columns="n_choices")), "no column n_choices"),
        (lambda: chance_scores(shown([(3, 3)])), "answer must be an index of a choice shown, got 3"),
        (
            lambda: chance_scores(shown([(3, 1)]), position=()),
            "position must be positive weights, one for each place, such as (4, 1), got ()",
        ),
        (lambda: chance_scores(shown([(3, 1)]), position=(1, -1)), "position must be a number of 0 or more, got -1"),
        (lambda: guesser_order_scores(1), "n_choices must be a whole number of 2 or more, got 1"),
        (lambda: guesser_order_scores(4, 0), "orders must be a whole number of 1 or more, got 0"),
        (lambda: chance_scores(shown([(3, 1)]), shared="yes"), "shared must be True, False or None, got 'yes'"),
        (lambda: chance_scores(shown([(3, 1)]), shared=True), "the responses have no column sources"),
        (lambda: corrected(35.7, 0.2), "scores must be from 0 to 1, got 35.7"),
        (lambda: corrected("high", 0.2), "scores and chance must be numbers"),
        (lambda: corrected([0.1, 0.2, 0.3], [0.1, 0.2]), "do not fit: they have the shapes (3,) and (2,)"),
        (
            lambda: corrected(make_result([{"score": "ECE", "value": 0.1}]), guesser_scores(4)),
            "chance has no value for ECE",
        ),
        (lambda: corrected(values_of(guesser_scores(4)), 0.2), "scores and chance are matched by name in results"),
    ],
)
def test_bad_input_is_named(call, says):
    with pytest.raises(CoraError) as e:
        call()
    assert says in str(e.value) and "\n" not in str(e.value)


def test_import_does_not_load_scipy_stats():
    code = "import sys, cora_nb.metrics.guessing; sys.exit('scipy.stats' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
