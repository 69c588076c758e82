"""Failed prompts are not answers: what scores are given, between which bounds, and what is said of them."""

import warnings

import numpy as np
import pandas as pd
import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.metrics.comparison import compare, rank_table
from cora_nb.metrics.scoring import score
from cora_nb.metrics.account import score_counts
from cora_nb.metrics.account import account
from cora_nb.report.render import render
from cora_nb.report.tables import score_table
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.report.words import bounds_words, remark_words
from cora_nb.responses.columns import FailureWarning
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.responses.responses import Responses, need
from cora_nb.responses.runs import concat
from cora_nb.results import lookup, Remark, values_of
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants
from helpers import put_in_state

pytestmark = [pytest.mark.guard, pytest.mark.filterwarnings("ignore::cora_nb.responses.columns.FailureWarning")]
VARIANTS = make_variants(math_benchmark(100, seed=2, n_choices=3))  # 1,400 prompts
ANN, BOB = (
    evaluate(SimulatedRespondent(knows=k, slips=0.02, seed=i, name=n), VARIANTS, progress=False)
    for i, (n, k) in enumerate((("ann", 0.8), ("bob", 0.3)))
)
ORIGINALS = np.flatnonzero(ANN.table["method"] == "original")
OTHERS = np.flatnonzero(ANN.table["method"] != "original")


def lose(run, rows, state="failed"):
    "The run, without the replies of these rows."
    table = put_in_state(run.table, rows, state, "timed out" if state == "failed" else None)
    return Responses(table, run.questions, run.facts, run.name)


def lost_of(result, name, **where):
    "What a row says of failed prompts, and its bounds."
    row = lookup(result, name, **where)
    return "; ".join(map(remark_words, row.remarks)), (row.least, row.most)


def test_unread_replies_are_said_at_the_number():
    said = Responses(ANN.table.assign(state=ANN.table["state"]), ANN.questions, ANN.facts, ANN.name)
    assert not said.table["state"].isin(["unread"]).any()
    rows = OTHERS[::40]
    run = lose(ANN, rows, "unread")
    row = lookup(score(run), "CoRA")
    assert row.status == "bounded" and row.least == row.value < row.most <= lookup(score(ANN), "CoRA").value + 1e-9
    assert remark_words(row.remarks[0]) == f"{len(rows)} of 1,400 unread"
    assert lookup(score(run), "MCQA").status == "exact", "no original is unread"
    difference = lookup(compare(run, BOB), "CoRA")
    assert difference.most > difference.value and any(r.kind == "unread" for r in difference.remarks)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_up_to_one_in_a_hundred_a_score_is_given_with_its_bounds(seed):
    rng = np.random.default_rng(seed)
    few, many = (lose(ANN, rng.choice(OTHERS, n, replace=False)) for n in (14, 15))
    truth = values_of(score(ANN))
    for name, value in values_of(score(few)).items():
        row = lookup(score(few), name)
        wrong = score_counts(account(few.count_failed_as_wrong()))[name]
        assert value == wrong  # counted as wrong
        if name == "MCQA":
            assert row.remarks == () and value == truth["MCQA"]  # looks at the originals alone
        elif row.status == "bounded":
            assert row.remarks == (Remark("unknown", 14, of=1400, why=("failed",)),) and bounds_words(row).startswith(
                "at most "
            )
            assert row.least - 1e-9 <= value <= truth[name] <= row.most + 1e-9
        else:
            assert row.remarks == () and value == truth[name] == row.most  # whatever they would have said
    for name, value in values_of(score(many)).items():
        row = lookup(score(many), name)
        if row.status == "bounded":
            assert np.isnan(value) and row.remarks == (Remark("unknown", 15, of=1400, why=("failed",)),)
            assert row.least - 1e-9 <= truth[name] <= row.most + 1e-9
        else:
            assert value == truth[name]
    assert np.isnan(lookup(score(many), "CoRA").value) and lookup(score(many), "MCQA").value == truth["MCQA"]


def test_failed_originals_are_counted_among_the_originals():
    one, two = lose(ANN, ORIGINALS[:1]), lose(ANN, ORIGINALS[:2])
    assert lost_of(score(one), "MCQA")[0] == "1 of 100 failed" and lookup(score(one), "MCQA").value > 0
    assert lost_of(score(two), "MCQA")[0] == "2 of 100 failed" and np.isnan(lookup(score(two), "MCQA").value)
    assert lookup(score(two), "MCQA+").value == pytest.approx(score_counts(account(ANN))["MCQA+"], abs=2.001 / 1400)
    low, high = lost_of(score(two), "MCQA")[1]
    assert high - low == pytest.approx(0.02, abs=1e-9)


def test_ci_may_be_lower_than_with_the_failed_ones_wrong():
    "An original that is right while a variant is wrong is not consistent."
    hits = ANN.matrix().astype(float)
    mixed = np.flatnonzero((hits["original"][0].to_numpy() == 1) & (hits.to_numpy() == 0).any(axis=1))
    run = lose(ANN, ORIGINALS[mixed[:1]])
    low, high = lost_of(score(run), "CI")[1]
    assert low < lookup(score(run), "CI").value <= high and low <= lookup(score(ANN), "CI").value


def test_what_was_not_asked_is_not_a_failure():
    stopped = lose(ANN, OTHERS[:100], "not_asked")
    assert stopped.failed_remarks == () and {r.why for said in score(stopped)["remarks"] for r in said} == {
        ("not_asked",)
    }
    row, true = lookup(score(stopped), "MCQA+"), lookup(score(ANN), "MCQA+").value
    assert np.isnan(row.value) and row.status == "bounded" and row.least < true < row.most
    assert row.most - row.least == pytest.approx(100 / 1400)
    both = lose(stopped, OTHERS[200:203])
    assert both.failed_remarks == (Remark("unknown", 3, of=1300, why=("failed",)),)


def test_warnings_and_how_to_ask_for_the_old_reading():
    few, many = lose(ANN, OTHERS[:3]), lose(ANN, OTHERS[:30])
    with pytest.warns(FailureWarning, match="ann: 3 of 1,400 prompts failed, and what they would have said is not"):
        score(few)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        old = score(many, failed="wrong")
        same = score(many.count_failed_as_wrong())
        score(ANN)
    pd.testing.assert_frame_equal(old, same)
    assert old["value"].notna().all() and set(old["note"]) == {"30 of 1,400 failed, counted as wrong"}
    np.testing.assert_array_equal(
        old["value"], score(lose(ANN, OTHERS[:30]).table.drop(columns=["error", "state"]))["value"]
    )
    with pytest.raises(CoraError, match="failed must be"):
        score(many, failed="right")


def test_the_reading_goes_with_the_responses(tmp_path):
    wrong = lose(ANN, OTHERS[:30]).count_failed_as_wrong()
    halves = [wrong.rows(lambda t, h=h: t["question_id"].isin(t["question_id"].unique()[h::2])) for h in (0, 1)]
    for run in (wrong.rows(lambda t: t["index"] == 0), wrong.trial(0), wrong.pool_trials(), concat(halves)):
        assert run.failed_wrong and need(run, "correct").failed_wrong
    assert not lose(ANN, OTHERS[:3]).pool_trials().failed_wrong
    assert wrong.pool_trials().pooled and not wrong.pooled
    assert not read_responses(write_responses(wrong, tmp_path / "run") or tmp_path / "run").failed_wrong


def test_ranks():
    "A run with few failures is ranked as given; a score that is not known has no rank."
    few, many = lose(ANN, OTHERS[:3]), lose(ANN, OTHERS[:30])
    printed = render(score_table([few, BOB]))
    assert "(1) (at most" in printed and "ann: 3 of 1,400 failed" in printed and "No ranks" not in printed
    printed = render(score_table([many, BOB]))
    row = next(line for line in printed.splitlines() if "MCQA+" in line)
    assert "– (from 0." in row and "(1)" in row and "(2)" not in row, printed  # bob is the only one
    assert "ann: 30 of 1,400 failed" in printed
    assert lookup(rank_table([few, BOB], scores="CoRA", resamples=50), "CoRA, rank", respondent="ann").value == 1
    unknown = rank_table([many, BOB], scores="CoRA", resamples=50)
    assert unknown[unknown["score"].str.contains("rank")]["value"].isna().all()
    table = render(score_table([few, BOB]), "csv")
    assert "3 of 1,400 failed: at most" in table and "coverage" not in table


def test_comparisons_have_the_bounds_of_the_difference():
    truth = compare(ANN, BOB, resamples=50)
    few, many = lose(ANN, OTHERS[:3]), lose(ANN, OTHERS[:30])
    for run, known in ((few, True), (many, False)):
        found = compare(run, lose(BOB, OTHERS[5:9]), resamples=50)
        row = lookup(found, "MCQA+")
        failed, (low, high) = lost_of(found, "MCQA+")
        assert failed == f"{7 if known else 34} of 2,800 failed" and low <= lookup(truth, "MCQA+").value <= high
        assert np.isnan(row.value) != known and np.isnan(row.p) != known and np.isnan(row.low) != known
    assert not compare(ANN, BOB, resamples=50)["note"].any()


def test_a_subject_of_its_own_has_its_own_share():
    "30 failed prompts in one subject: the scores of the others are given."
    subject = ANN.table["subject"] == ANN.table["subject"].iloc[0]
    rows = np.flatnonzero(subject & (ANN.table["method"] != "original"))[:30]
    found = score(lose(ANN, rows), by="subject")
    for name, part in found.groupby("subject"):
        assert lookup(part, "MCQA+").value != lookup(part, "MCQA+").value or name != ANN.table["subject"].iloc[0]
        assert name == ANN.table["subject"].iloc[0] or part["value"].notna().all() and (part["note"] == "").all()
