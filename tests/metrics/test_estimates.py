"""Estimates of the full run: how often they hold, what they refuse, and that they survive files and grading."""

import numpy as np
import pytest
from scipy.stats import hypergeom, t

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.metrics.scoring import score
from cora_nb.metrics.account import Account, account_of_counts, paper_counts, score_counts
from cora_nb.metrics.contributions import score_intervals
from cora_nb.metrics.account import account
from cora_nb.metrics.sampled import estimate_scores, is_estimate, part_estimates
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import REPLIED, StopReason, in_state
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.responses.responses import Responses
from cora_nb.responses.runs import concat
from cora_nb.results import values_of, Remark
from cora_nb.runs.asking import Precise
from cora_nb.runs.evaluate import evaluate
from cora_nb.stats.means import mean_interval
from cora_nb.stats.shares import finite_wilson, look_level, random_order, squared_quantile
from cora_nb.variants.families import make_variants
from helpers import put_in_state, slow_after

VARIANTS = make_variants(math_benchmark(200))
WHO = SimulatedRespondent(knows=0.6, slips=0.02)


def precise(**wanted):
    return evaluate(WHO, VARIANTS, stop=Precise(**{"half_width": 0.07} | wanted), progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("wanted", slow_after(1, ["CoRA", "MCQA", "MV", "MCQA+", "CORE", "BMCA(0.85)", ["RC", "CoRA"]]))
def test_the_estimates_are_those_of_the_sample_at_the_level_of_the_look(wanted):
    "Computed again from the replies of the full run, to the questions that the design names."
    names, full = (
        [wanted] if isinstance(wanted, str) else wanted,
        account(evaluate(WHO, VARIANTS, progress=False)).questions,
    )
    for seed in range(2):
        run = precise(scores=wanted, seed=seed)
        found, sample = estimate_scores(run), run.facts.sample
        assert is_estimate(run) and (found.loc[names, "high"] - found.loc[names, "low"]).max() <= 0.14 + 1e-9
        assert sample.level_at_stop == look_level(0.95, sample.looks) and 25 <= sample.originals < 200
        drawn = full.iloc[random_order(full.index.tolist(), seed)[: sample.originals]]
        again = score_intervals(Account(drawn), (0.85, 1.0), sample.level_at_stop, population=200)
        if sample.kind == "phases":
            z2, names = squared_quantile(sample.level_at_stop), ["MCQA"]
            right = drawn["own_right"].sum()
            ends = finite_wilson(right, len(drawn), 200, z2)
            again.loc["MCQA", ["value", "low", "high"]] = right / len(drawn), *ends
        columns = ["value", "low", "high"]
        np.testing.assert_allclose(found.loc[names, columns], again.loc[names, columns].astype(float), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MV", "RC", "MCQA+", "CORE", "BMCA(0.8)"])
def test_the_interval_of_a_very_strong_respondent_holds(name):
    """2% of the questions are always wrong, the others always right: often the sample has none that is wrong.

    The samples of a size are weighted by their probabilities. An interval that holds nearly always is too wide.
    """
    covers = []
    for N, n, wrong in ((300, 86, 6), (300, 150, 6), (300, 200, 6), (1273, 160, 25), (1273, 500, 25), (1273, 900, 25)):
        truth = values_of_counts(wrong, N)[name]
        seen = np.arange(max(0, wrong - (N - n)), wrong + 1)
        ends = [part_estimates(some_wrong(k, n).questions, N, 0.95, [name]).loc[name] for k in seen]
        held = [e["low"] - 1e-9 <= truth <= e["high"] + 1e-9 for e in ends]
        covers.append(hypergeom.pmf(seen, N, wrong, n)[held].sum())
    assert np.min(covers) > 0.935 and np.mean(covers) < 0.98, covers


def some_wrong(wrong, n, K=20):
    "Counts of questions of which some are always wrong and the others always right."
    hits = np.where(np.arange(n) < wrong, 0, K)
    return account_of_counts(hits, np.full(n, K), hits / K)


def values_of_counts(wrong, n):
    return score_counts(some_wrong(wrong, n), (0.8, 1.0))


def test_no_interval_is_nil_where_all_questions_of_the_sample_agree():
    "Nor narrower than what one further question, always wrong, could change."
    for name, change in (("MV", 1), ("RC", 1), ("MCQA+", 1), ("BMCA(0.8)", 1), ("CORE", 1.9)):
        low, high = part_estimates(some_wrong(0, 100).questions, 1000, 0.95, [name]).loc[name, ["low", "high"]]
        ends = [1.0] * 100 + [1 - change, 1.0]  # one question added at each end
        reach = 1 - np.mean(ends) + t.ppf(0.975, 99) * np.std(ends) * (1 / 101) ** 0.5
        assert high == 1 and 1 - low >= reach * (900 / 999) ** 0.5 - 1e-9


def test_what_the_design_does_not_cover_is_unknown():
    found = estimate_scores(precise())
    known = found["value"].notna()
    assert set(found.index[known]) == {"MCQA", "BMCA(1.0)", "CI", "CoRA"}
    assert set(found["remarks"][~known]) == {(Remark("not_defined", what=StopReason(("CoRA",), 0.07), why="stopped"),)}
    assert set(found["status"][~known]) == {"unknown"} and set(found["status"][known]) == {"estimated"}
    assert set(estimate_scores(precise(scores="MCQA"))["value"].dropna().index) == {"MCQA"}


@pytest.mark.parametrize("wanted", ["MCQA+", "CoRA"])
def test_the_interval_covers_failed_prompts_as_wrong_and_as_right(wanted):
    "Its ends are those of the intervals with all of them wrong and with all of them right, not of the values alone."
    run = precise(scores=wanted)
    right = np.flatnonzero(run.table["correct"] & (run.table["method"] != "original"))
    failed = right[:: len(right) // max(1, int(in_state(run.table, *REPLIED).sum() * 0.009)) + 1]
    table = put_in_state(run.table, failed, "failed", "timed out")
    lost = Responses(table, run.questions, run.facts, run.name)
    runs = (lost, run, lost.count_failed_as_wrong())
    found, best, worst = (estimate_scores(some).loc[wanted] for some in runs)
    assert best["value"] > worst["value"] == found["value"] and found["remarks"][-1].why == ("failed",)
    assert (found["low"], found["high"]) == pytest.approx((worst["low"], best["high"]))


def test_a_file_keeps_the_estimates(tmp_path):
    run = precise()
    write_responses(run, tmp_path / "run")
    assert estimate_scores(read_responses(tmp_path / "run")).equals(estimate_scores(run))


def test_parts_have_no_estimates_and_the_whole_made_of_them_has():
    run = precise()
    first = run.table["question_id"].isin(run.questions["question_id"][:90]).to_numpy()
    parts = [run.rows(first), run.rows(~first)]
    for part in parts:
        assert not is_estimate(part) and estimate_scores(part)["value"].isna().all()
    whole = concat(parts)
    assert is_estimate(whole) and estimate_scores(whole)[["value", "low", "high"]].equals(
        estimate_scores(run)[["value", "low", "high"]]
    )


def test_replies_graded_differently_are_refused():
    run = precise()
    table = run.table.copy()
    asked = in_state(table, *REPLIED)
    table["state"] = table["state"].mask(asked, "answered")
    table.loc[asked, "prediction"] = table.loc[asked, "answer"]
    table.loc[asked, "correct"] = True
    found = estimate_scores(Responses(table, run.questions, run.facts, run.name))
    assert found["value"].isna().all() and "not followed" in str(found["remarks"]["CoRA"][0].what)


def test_an_exact_run_is_no_estimate():
    few = make_variants(math_benchmark(40))
    run, full = (evaluate(WHO, few, stop=stop, progress=False) for stop in (Precise(half_width=0.001), None))
    found, truth = estimate_scores(run), values_of(score(full))
    assert not is_estimate(run) and run.facts.sample.exact
    for name in ("MCQA", "BMCA(1.0)", "CI", "CoRA"):
        assert found.loc[name, ["value", "low", "high"]].tolist() == pytest.approx([truth[name]] * 3)
        assert values_of(score(run))[name] == pytest.approx(truth[name])
    with pytest.raises(CoraError, match="was not asked with stop='precise'"):
        estimate_scores(full)
    assert not is_estimate(full)


def test_everybody_sampled_leaves_no_width():
    known = account(evaluate(WHO, VARIANTS, progress=False))
    rows, counts = known.questions, paper_counts(known)
    found = part_estimates(rows, len(rows), 0.95)
    np.testing.assert_array_equal(found["low"], found["value"])
    np.testing.assert_array_equal(found["high"], found["value"])
    some, passes = rows[::2], (counts["hits"] / counts["trials"] > 0.5)[::2].to_numpy(float)
    for population in (110, 200, 10**9):
        low, high = part_estimates(some, population, 0.95).loc["MV", ["low", "high"]]
        ends, value = mean_interval(passes), passes.mean()
        unseen = ((population - 100) / (population - 1)) ** 0.5
        np.testing.assert_allclose([low, high], [value + (end - value) * unseen for end in ends[:2]], rtol=1e-9)
    with pytest.raises(CoraError, match="population must be a whole number of 101 or more, got 100"):
        score_intervals(Account(some), population=100)
