"""Scores, differences, gates and ranks of runs that were stopped when precise enough."""

import warnings
import zlib

import numpy as np
import pandas as pd
import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.metrics.comparison import compare, compare_all, estimate_bounds, rank_table
from cora_nb.metrics.scoring import score
from cora_nb.metrics.sampled import estimate_scores, is_estimate
from cora_nb.metrics.gate import gate
from cora_nb.metrics.planning import questions_needed
from cora_nb.report.page import make_report
from cora_nb.report.render import render
from cora_nb.report.tables import score_table
from cora_nb.report.words import gate_lines
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import REPLIED, in_state
from cora_nb.responses.columns import FailureWarning
from cora_nb.responses.responses import Responses
from cora_nb.results import Remark, lookup, values_of
from cora_nb.runs.asking import Budget, Precise, Settled
from cora_nb.runs.asking import Spending, budget_line
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.stopping import SMALL
from cora_nb.variants.families import make_variants
from helpers import put_in_state, stopped_when_precise

NUMBERS = ["value", "low", "high"]
FAILED = (
    "not estimated: more than one prompt in a hundred failed; run the same command again to ask for them, "
    'or take them as wrong: failed="wrong", --failed wrong'
)


@pytest.fixture(scope="module")
def runs():
    "Two respondents, in full and stopped within 0.06."
    variants = make_variants(math_benchmark(150, seed=1))
    people = [
        SimulatedRespondent(knows=k, slips=0.05, seed=i, name=n)
        for i, (n, k) in enumerate((("ann", 0.8), ("bob", 0.4)))
    ]
    found = {who.name: evaluate(who, variants, progress=False) for who in people}
    for who in people:
        found[f"{who.name} part"] = evaluate(who, variants, stop=Precise(half_width=0.06), progress=False)
    assert is_estimate(found["ann part"]) and is_estimate(found["bob part"])
    return found


def test_every_score_is_the_estimate_with_its_interval(runs):
    for options in ({}, {"ci": 0.95}, {"ci": 0.8}):
        for name in ("ann part", "bob part"):
            table = score(runs[name], **options).set_index("score")
            estimates = estimate_scores(runs[name])
            pd.testing.assert_frame_equal(table[NUMBERS], estimates.reindex(table.index)[NUMBERS], check_names=False)
            known = table[table["value"].notna()]
            assert known[["low", "high"]].notna().all(axis=None) and {"CoRA", "MCQA"} <= set(known.index)
            wide = known[known["low"] < known["high"]]
            assert (wide["status"] == "estimated").all() and "CoRA" in wide.index
            settled = known[known["low"] == known["high"]]
            assert (
                set(settled["remarks"]) <= {(Remark("exact", why="all_asked"),)}
                and (settled["status"] == "exact").all()
            )
            assert table["note"][table["value"].isna()].str.startswith("not estimated: the run stopped when CoRA").all()


def test_a_higher_level_has_no_number(runs):
    table = score(runs["ann part"], ci=0.99).set_index("score")
    assert table.loc["CoRA", NUMBERS].isna().all()
    assert table["note"].loc["CoRA"] == "not estimated at 99%: the run was stopped with intervals of 95%"


@pytest.mark.slow
def test_parts_of_it_are_not_estimated(runs):
    for by in ("subject", "method"):
        for options in ({}, {"ci": 0.95}):
            table = score(runs["ann part"], by=by, **options)
            known, open_ = table[table["value"].notna()], table[table["value"].isna()]
            assert len(open_) > len(known) and open_["note"].str.contains("precise enough").all()
            truth = score(runs["ann"], by=by).set_index([by, "score"])["value"]
            for row in known.itertuples():  # what is known follows from the replies
                assert truth[(getattr(row, by), row.score)] == pytest.approx(row.value)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda run: score(run, ci=0.95, clusters="subject"), "clusters need all replies, and of ann the run stopped"),
        (
            lambda run: score(run, also=["agreement"]),
            "were not asked because the run stopped when CoRA was precise enough",
        ),
        (lambda run: compare(run, run, clusters="subject"), "clusters need all replies"),
        (
            lambda run: questions_needed(0.02, pilot=run),
            "a pilot needs all replies, and of ann the run stopped when CoRA",
        ),
    ],
)
def test_what_needs_all_replies_refuses_in_one_line(runs, call, why):
    with pytest.raises(CoraError, match=why) as e:
        call(runs["ann part"])
    assert "\n" not in str(e.value)


# ---- differences


def test_a_difference_adds_the_squares_of_four_distances(runs):
    one, two = (estimate_bounds(runs[f"{name} part"], ["CoRA"]).loc["CoRA"] for name in ("ann", "bob"))
    row = lookup(compare(runs["ann part"], runs["bob part"], scores=["CoRA"]), "CoRA")
    assert row.value == pytest.approx(one["value"] - two["value"]) and np.isnan(row.p) and row.status == "estimated"
    below = np.hypot(one["value"] - one["low"], two["high"] - two["value"])
    above = np.hypot(one["high"] - one["value"], two["value"] - two["low"])
    assert (row.value - row.low, row.high - row.value) == pytest.approx((below, above))
    back = lookup(compare(runs["bob part"], runs["ann part"], scores=["CoRA"]), "CoRA")
    assert (back.low, back.high) == pytest.approx((-row.high, -row.low))


@pytest.mark.slow
def test_an_estimate_never_says_more_than_all_replies(runs):
    """Half as many questions, a tenth, or all: the interval of the difference is wider the less is known.

    The paired interval may be as wide as that of independent respondents, and by chance a little wider.
    """
    full = compare(runs["ann"], runs["bob"]).set_index("score")
    before = 0.95 * (full["high"] - full["low"])
    for share in (0.99, 0.5, 0.1):
        part = stopped_when_precise(runs["ann"], share)
        table = compare(part, runs["bob"]).set_index("score")
        width = (table["high"] - table["low"]).drop("CORE")
        assert width.notna().all() and (width > before[width.index]).all()
        before = width
    assert (
        lookup(compare(part, runs["bob"]), "CORE").note
        == "not estimated: how much CORE differs between questions is not known"
    )


def test_the_level_of_a_comparison_is_not_above_that_of_the_run(runs):
    row = lookup(compare(runs["ann part"], runs["bob"], level=0.99, scores=["CoRA"]), "CoRA")
    assert np.isnan(row.value) and "not estimated at 99%" in row.note
    narrow, wide = (
        lookup(compare(runs["ann part"], runs["bob"], level=level, scores=["CoRA"]), "CoRA") for level in (0.5, 0.95)
    )
    assert wide.high - wide.low > narrow.high - narrow.low > 0.06  # the estimate's part keeps its own level


def test_many_pairs(runs):
    some = {"ann": runs["ann"], "bob": runs["bob"], "part": runs["ann part"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = compare_all(some, resamples=50)
    alone, pairs = compare(runs["ann"], runs["bob"], resamples=50), table.set_index(["respondent", "score"])
    assert pairs.loc["ann - bob", "value"].tolist() == alone["value"].tolist()
    assert pairs.loc["ann - bob", "p"].notna().all() and pairs.loc["ann - part", "p"].isna().all()
    assert "adjusted" not in pairs["note"].loc[("ann - part", "CoRA")]


def test_estimates_have_no_ranks(runs):
    table = rank_table({"ann": runs["ann"], "part": runs["bob part"]}, ["CoRA"], resamples=50)
    ranks = table[table["score"] != "CoRA"]
    assert ranks["value"].isna().all() and set(ranks["note"]) == {"no ranks: part has estimates of the full run"}
    row = lookup(table, "CoRA", respondent="part")
    assert row.status == "estimated" and row.low < row.value < row.high
    assert np.isnan(lookup(table, "CoRA", respondent="ann").low)


# ---- gates


@pytest.mark.slow
def test_a_gate_is_not_easier_to_pass_with_fewer_replies(runs):
    "The minimum that a run just passes is lower where its scores are estimates."
    for name in ("MCQA", "CoRA"):
        least = {}
        for which in ("ann", "ann part"):
            (condition,) = gate(runs[which], at_least={name: 0.01}).conditions
            assert condition.passed
            least[which] = condition.low
        drop = lookup(score(runs["ann part"]), name).value - lookup(score(runs["ann"]), name).value
        assert least["ann part"] < least["ann"] + max(drop, 0)
    (line,) = gate_lines(gate(runs["ann part"], runs["bob part"], margin=0.02))
    assert line.startswith("passed: ann - bob: CoRA not worse") and "estimate of the full runs" in line
    assert gate(runs["bob part"], runs["ann part"], margin=0.02).passed is False


def test_a_gate_does_not_know_what_is_not_estimated(runs):
    found = gate(runs["ann part"], at_least={"MV": 0.5})
    assert (
        found.passed is None and "not estimated: the run stopped when CoRA was precise enough" in gate_lines(found)[0]
    )
    strict = gate(runs["ann part"], at_least={"MCQA": 0.1}, alpha=0.01)  # needs intervals of 98%
    assert strict.passed is None and "not estimated at 98%" in gate_lines(strict)[0]


# ---- what is not an estimate, or not known


def test_a_run_that_settled_everything_is_exact(runs):
    run = runs["ann"]
    sample = stopped_when_precise(run, 1.0).facts.sample.plain() | {"exact": True}
    exact = Responses(run.to_frame(), run.questions, run.facts.plain() | {"sample": sample}, run.name)
    assert not is_estimate(exact) and values_of(score(exact)).equals(values_of(score(run)))
    assert score(exact)[["low", "high"]].isna().all(axis=None)


def test_a_small_benchmark_is_exact_and_says_so():
    "Its known scores say that the half width was not used, the others why they are not known; a table says each once."
    variants, who = make_variants(math_benchmark(30, seed=1)), SimulatedRespondent(knows=0.7, slips=0.02, name="ann")
    run, full = (evaluate(who, variants, stop=stop, progress=False) for stop in (Precise(half_width=0.2), None))
    table, truth = score(run).set_index("score"), score(full).set_index("score")["value"]
    known = table["value"].notna()
    assert table["value"][known].equals(truth[known]) and {"MCQA", "CI", "CoRA"} <= set(table.index[known])
    (why,), open_ = set(table["note"][known]), table["note"][~known]
    assert f"fewer than {SMALL} questions" in why and "half width" in why and set(table["status"][known]) == {"exact"}
    settled = "the run stopped when every question was settled for CoRA"
    assert {note.split("\n")[0] for note in open_} == {f"not asked: {settled}; run again without stop to know it"}
    assert (table["least"] <= truth).all() and (truth <= table["most"]).all()
    text = render(score_table(run, ci=0.95))
    assert text.count("ann: MCQA, CoRA, BMCA(1.0), CI exact for the full run: fewer") == 1
    assert text.count(settled) == 1 and f"{table.value['CoRA']:.2f} [" in text  # the interval is over questions
    assert settled in make_report(run, pictures=False).html
    part = score(run, by="method").dropna(subset=["value"])  # nothing was planned for the parts
    assert len(part) and not part["note"].astype(str).str.contains("exact").any()


@pytest.mark.parametrize(("stop", "settled"), [(Settled(), "CoRA"), (Settled((0.8, 1.0)), "BMCA(c) with c = 0.8, 1")])
def test_early_stopping_says_why_other_scores_are_not_known(stop, settled):
    variants, who = make_variants(math_benchmark(30, seed=1)), SimulatedRespondent(knows=0.7, slips=0.02, name="ann")
    table = score(evaluate(who, variants, stop=stop, progress=False)).set_index("score")
    known = table["value"].notna()
    assert known["BMCA(1.0)"] and not table["note"][known].fillna("").str.contains("not asked").any()
    why = f"not asked: the run stopped when every question was settled for {settled}; run again without stop to know it"
    assert not known["MCQA+"] and {note.split("\n")[0] for note in table["note"][~known]} == {why}
    with pytest.warns(UserWarning, match="stopped by its budget"):
        cut = evaluate(who, variants, stop=stop, budget=Budget(calls=40), progress=False)
    assert not score(cut)["note"].fillna("").str.contains("settled").any()  # that is not what stopped it
    full = evaluate(SimulatedRespondent(knows=0, name="bob"), variants, progress=False)
    assert not score(full)["note"].str.contains("not asked").any()


def test_failures_and_incomplete_sets_of_an_exact_run_have_their_own_notes(runs):
    run = runs["ann"]
    sample = stopped_when_precise(run, 1.0).facts.sample.plain() | {"exact": True}
    table = put_in_state(run.table, np.flatnonzero(run.table["correct"])[::300], "failed", "timed out")
    failing = Responses(table, run.questions, run.facts.plain() | {"sample": sample}, run.name)
    with pytest.warns(FailureWarning):
        notes = score(failing).set_index("score")["note"]
    assert "failed" in notes["CoRA"] and "exact" not in notes["CoRA"]
    variants = make_variants(math_benchmark(30, seed=1), family="cora")
    some = [v for v in variants if v.index == 0]
    few = evaluate(SimulatedRespondent(knows=0.7, name="ann"), some, stop=Precise(half_width=0.2), progress=False)
    table = score(few).set_index("score")
    assert few.complete is False and np.isnan(table.value["CoRA"]) and "without stop" not in table["note"]["CoRA"]


def test_a_run_that_its_budget_cut_off_before_has_bounds():
    variants = make_variants(math_benchmark(60, seed=1))
    who, spending = SimulatedRespondent(knows=0.8, seed=1, name="ann"), Spending(Budget(calls=40))
    with pytest.warns(UserWarning, match="stopped by its budget"):
        cut = evaluate(who, variants, stop=Precise(half_width=0.05), progress=False, budget=spending)
    assert not is_estimate(cut) and "questions are complete" in budget_line(cut, spending)
    row = lookup(score(cut), "CoRA")
    assert np.isnan(row.value) and "not asked: from" in row.note and "estimate" not in row.note


def test_failed_prompts_of_an_estimate(runs):
    "One in a hundred counts as wrong, and the note says so; more than that, and nothing is estimated."
    part = runs["ann part"]
    asked = np.flatnonzero(in_state(part.table, *REPLIED))
    for lost, known in ((3, True), (len(asked) // 10, False)):
        table = put_in_state(part.table, asked[np.linspace(0, len(asked) - 1, lost).astype(int)], "failed", "timed out")
        run = Responses(table, part.questions, part.facts, part.name)
        with pytest.warns(FailureWarning):
            row = lookup(score(run), "CoRA")
        assert ("failed" in row.note) and (row.value == row.value) == known
        assert (row.status == "estimated") == known
    advice, said = row.note.split("\n")
    assert said == f"{lost} of {len(asked):,} failed" and advice == FAILED  # and not that it was precise enough


class Failing(SimulatedRespondent):
    "Gives no reply to one prompt in twenty."

    async def answer(self, prompts):
        async for at, reply in super().answer(prompts):
            lost = zlib.crc32(prompts[at].text.encode()) % 20 == 0
            yield at, Reply(error="timed out") if lost else reply


def test_a_run_in_which_too_many_prompts_failed():
    "The reason is the failures, for the scores that the sample would tell; each reason stands below a table once."
    who = Failing(knows=0.8, slips=0.05, seed=0, name="ann")
    variants = make_variants(math_benchmark(150, seed=1))
    run = evaluate(who, variants, stop=Precise(half_width=0.06), progress=False)
    with pytest.warns(FailureWarning):
        table, text = score(run).set_index("score"), render(score_table(run))
    covered = ["MCQA", "CoRA", "BMCA(1.0)", "CI"]
    assert table["value"].isna().all() and set(table.index[table["note"].str.startswith(FAILED)]) == set(covered)
    others = table["note"].drop(covered)
    assert others.str.contains("precise enough (within 0.06); run again without stop", regex=False).all()
    assert f"ann: {', '.join(covered)} {FAILED}" in text and text.count("run again without stop") == 1
    wrong = score(run, failed="wrong").set_index("score")
    assert wrong.loc["CoRA", "status"] == "estimated" and wrong.loc["CoRA", "low"] < wrong.loc["CoRA", "high"]


def test_the_reason_of_the_estimator_is_passed_on(runs, monkeypatch):
    def refused(run, names, level):
        found = estimate_scores(run, names, level).assign(value=np.nan, low=np.nan, high=np.nan, status="unknown")
        return found.assign(
            remarks=[(Remark("not_defined", what="3 replies were graded differently", why="error"),)] * len(found)
        )

    monkeypatch.setattr("cora_nb.metrics.scoring.estimate_scores", refused)
    assert set(score(runs["ann part"])["note"]) == {"not estimated: 3 replies were graded differently"}
