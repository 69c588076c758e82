"A score of a user's own shows up wherever ours do, and what a score declares decides what is known."

import itertools
import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.benchmarks.load import load_benchmark
from cora_nb.cli.names import list_scores
from cora_nb.core import CoraError, THRESHOLDS
from cora_nb.metrics.ablations import bootstrap_table, subset_scores, variant_bootstrap
from cora_nb.metrics.scoring import score
from cora_nb.metrics.account import account_of_counts, paper_counts, score_counts
from cora_nb.metrics.cora import weighted_scores
from cora_nb.metrics.account import account
from cora_nb.metrics.guessing import chance_scores, corrected, expected_scores
from cora_nb.metrics.scores import (
    RUN_SCORES,
    SCORES,
    Score,
    get_score,
    load_score,
    register_run_score,
    register_score,
    score_members,
)
from cora_nb.report.plots import plot_scores
from cora_nb.report.render import render
from cora_nb.report.tables import score_table
from cora_nb.results import lookup, make_result, Remark
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.results import values_of
from cora_nb.runs.evaluate import evaluate
from cora_nb.stats.shares import share_row
from cora_nb.variants.families import make_variants

OURS = ["MCQA", "MCQA+", "RC", "MV", *(f"BMCA({c})" for c in THRESHOLDS), "CI", "CoRA", "CORE"]
MINE = """
    "Questions that were right on the original and in fewer than four fifths of the variants."
    from cora_nb.metrics.scores import register_score

    @register_score("lucky", source="mine", originals=True, linear=True)
    def my_score(counts):
        return counts.mean(counts.original * (counts.rc < 0.8))
"""


@pytest.fixture(autouse=True)
def registry():
    "Leaves the registry as it was."
    before = dict(SCORES.registered)
    yield
    SCORES.registered.clear()
    SCORES.registered.update(before)


@pytest.fixture(scope="module")
def runs():
    asked = make_variants(math_benchmark(40, n_choices=4))
    people = {"ann": SimulatedRespondent(knows=0.6, slips=0.1, seed=1), "bob": SimulatedRespondent(knows=0.3, seed=2)}
    return {name: evaluate(who, asked, progress=False) for name, who in people.items()}


@pytest.fixture
def mine(tmp_path):
    "The address of a score in a scratch file of less than ten lines."
    file = tmp_path / "mine.py"
    file.write_text(textwrap.dedent(MINE).lstrip())
    assert len(file.read_text().splitlines()) <= 10
    return f"{file}:my_score"


def lucky(responses):
    "By hand."
    counts = paper_counts(account(responses))
    return (counts["original"] * (counts["hits"] / counts["trials"] < 0.8)).mean()


def test_ours_are_registered_in_the_order_of_tables():
    assert list(score_members(THRESHOLDS)) == OURS
    assert [n for n in OURS if get_score(n).complete] == ["CI", "CoRA"]
    assert [n for n in OURS if get_score(n).originals] == ["MCQA", "CI", "CoRA"]
    assert [n for n in OURS if not get_score(n).linear] == ["CoRA", "CORE"]
    assert all(get_score(n).monotone and get_score(n).source for n in OURS)


@pytest.mark.slow
def test_a_score_of_ones_own_is_found_everywhere(runs, mine):
    ann = runs["ann"]
    assert "lucky" not in set(score(ann)["score"])
    assert load_score(mine) is get_score("lucky") and load_score(mine) is get_score("lucky")
    value = lookup(score(ann), "lucky").value
    assert value == pytest.approx(lucky(ann)) and lucky(ann) > 0
    spread = lookup(score(ann, ci=0.95), "lucky")
    assert spread.value == value
    assert 0 <= spread["low"] < spread["value"] < spread["high"]
    assert lookup(score(ann, by="method"), "lucky", method="original").value == 0
    for over in ("variants", "apart", "questions", "both"):
        drawn = variant_bootstrap(ann, resamples=200, over=over)["lucky"]
        assert drawn.std() > 0 and abs(drawn.mean() - lucky(ann)) < 0.1
    assert "lucky, mean of resamples" in set(bootstrap_table(runs, ["MCQA+", "lucky"], resamples=20)["score"])
    assert lookup(subset_scores(ann), "lucky").value >= 0
    chance = chance_scores(ann)
    # right on the original by luck, and hardly ever elsewhere
    assert lookup(chance, "lucky").value == pytest.approx(0.25, abs=1e-3)
    assert np.isfinite(lookup(corrected(score(ann), chance), "lucky").value)
    table = score_table({name: score(r, ci=0.9) for name, r in runs.items()}, beyond=True)
    assert lookup(table, "lucky", respondent="ann").value == value
    lines = render(table, "text").splitlines()
    beyond = lines.index("Beyond the paper")
    assert any(line.startswith("  lucky ") for line in lines[beyond:])
    ax = plot_scores(score(runs), beyond=True)
    assert "lucky" in [t.get_text() for t in ax.get_yticklabels()]
    plt.close(ax.figure)


def test_chance_of_ones_own_score_against_every_outcome(mine):
    "The original is one of the variants, so its hit and the number of hits are not independent."
    load_score(mine)
    rates = np.array([1 / 4, 1 / 2, 1 / 3])
    slow = 0
    for outcome in itertools.product((0, 1), repeat=3):
        slow += np.prod(np.where(outcome, rates, 1 - rates)) * outcome[0] * (np.mean(outcome) < 0.8)
    assert lookup(expected_scores([(rates, 1 / 4, 1)]), "lucky").value == pytest.approx(slow)


def test_a_plain_function_and_a_family_by_threshold(runs, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def never(counts):\n    return counts.share(lambda rc: rc == 0)\n")
    assert load_score(f"{file}:never") == Score("never", SCORES.registered["never"].formula)
    rc = paper_counts(account(runs["bob"])).eval("hits / trials")
    assert lookup(score(runs["bob"]), "never").value == (rc == 0).mean()

    @register_score("below", by_threshold=True)
    def below(counts, c):
        return counts.share(lambda rc: rc < c)

    found = values_of(score(runs["bob"], thresholds=(0.3, 0.5)))
    assert found["below(0.3)"] == (rc < 0.3).mean() and "below(0.7)" not in found
    assert not get_score("below(0.3)").monotone
    drawn = variant_bootstrap(runs["bob"], resamples=50, thresholds=(0.3,))
    np.testing.assert_allclose(drawn["below(0.3)"], 1 - drawn["BMCA(0.3)"], rtol=1e-6)


def test_what_a_score_declares_decides_what_is_known(runs):
    register_score("hits needed", complete=True)(lambda counts: counts.mean(counts.hits))
    register_score("of originals", originals=True)(lambda counts: counts.mean(np.nan_to_num(counts.original)))
    register_score("spread")(lambda counts: counts.mean(abs(counts.rc - 0.5)))
    register_score("rising", monotone=True)(lambda counts: counts.share(lambda rc: rc > 0))
    few = runs["ann"].rows(lambda t: t["method"] != "nota")
    assert np.isnan(lookup(score(few), "hits needed").value)
    assert np.isnan(variant_bootstrap(few, resamples=3)["hits needed"]).all()
    assert np.isnan(lookup(chance_scores(few), "hits needed").value)
    assert lookup(score(runs["ann"]), "hits needed").value > 1
    without = runs["ann"].rows(lambda t: t["method"] != "original")
    found = values_of(score(without))
    assert np.isnan(found["of originals"]) and not np.isnan(found["spread"])
    frame = pd.DataFrame(
        {
            "question_id": "a",
            "method": ["original", "nota", "shuffled"],
            "correct": [True, False, False],
            "state": ["answered", "answered", "not_asked"],
        }
    )
    # right once or twice of three: |RC - 1/2| is 1/6 in both cases, and still not said to be known
    stopped = values_of(score(frame))
    assert np.isnan(stopped["spread"]) and stopped["rising"] == 1


def test_our_own_can_be_replaced(runs):
    "The last one registered under a name counts, as when a cell of a notebook is run again."
    register_score("MV", source="mine")(lambda counts: counts.share(lambda rc: rc >= 0.5))
    assert list(score_members(THRESHOLDS)) == OURS
    found = values_of(score(runs["ann"]))
    assert found["MV"] == found["BMCA(0.5)"]


COUNTS = pd.DataFrame({"hits": [3, 1], "trials": 4, "original": [1.0, 0.0]})


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: get_score("F1"), "score must be one of MCQA, MCQA+, RC, MV, BMCA, CI, CoRA, CORE, got 'F1'"),
        (lambda: get_score("MV(0.5)(0.5)"), "got 'MV(0.5)(0.5)'"),
        (lambda: get_score("BMCA(1.2.3)"), "got 'BMCA(1.2.3)'"),
        (lambda: load_score("no/such.py:score"), "there is no file no/such.py"),
        (lambda: load_score("math:pi"), "a score must be a function of the counts, but math:pi is a float"),
        (lambda: register_score("mine", exact=True), "a score declares source, originals, originals_only, complete"),
        (lambda: register_score("a:b")(len), "a name must be a non-empty text without a colon, got 'a:b'"),
        (lambda: weighted_scores(COUNTS, names=["MV", "F1"]), "scores must be among MCQA, MCQA+"),
        (lambda: weighted_scores(COUNTS, (50,)), "c must be a number from 0 to 1, got 50"),
    ],
)
def test_mistakes_get_one_line(call, says):
    with pytest.raises(CoraError) as told:
        call()
    assert says in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize("gives", [lambda counts: counts.rc, lambda counts: "high", lambda counts: None])
def test_a_formula_that_gives_no_number_is_named(gives):
    register_score("mine")(gives)
    with pytest.raises(CoraError, match="the score mine must give one number, got"):
        score_counts(account_of_counts(*COUNTS.to_numpy(float).T))
    with pytest.raises(CoraError, match="the score mine must give one number for each of 3 resamples"):
        weighted_scores(COUNTS, weights=np.ones((3, 2)), names=["mine"])


@pytest.fixture
def measure():
    "A measure of runs that says how often the first place was named."

    @register_run_score("first place", source="made up")
    def first_place(responses, level=0.95):
        "How often the first choice was named."
        named = (responses.table["prediction"] == 0).to_numpy()
        return make_result([{"score": "names A", **share_row(named, np.ones(len(named)), level)}])

    yield first_place
    del RUN_SCORES.registered["first place"]


def test_a_measure_of_runs_stands_beside_the_scores(measure):
    run = evaluate(SimulatedRespondent(), make_variants(load_benchmark("math")[:20]), progress=False)
    plain, with_it = score(run, ci=0.9), score(run, ci=0.9, also=["first place"])
    assert with_it.iloc[:-1].reset_index(drop=True).equals(plain)
    own = with_it.iloc[-1]
    assert (own["score"], own["respondent"]) == ("names A", run.name)
    assert own["value"] == pytest.approx((run.table["prediction"] == 0).mean())
    assert own["low"] < own["value"] < own["high"]
    assert score(run, also=["first place"])[["low", "high"]].isna().all(axis=None)
    shown = score_table({"a": run, "b": run}, beyond=["first place"], guesser=False)
    assert shown.groupby("respondent")["score"].agg(list).map(lambda s: "names A" in s and "CORE" not in s).all()
    assert "names A" not in set(score_table(run, beyond=True)["score"])
    assert ("first place", "How often the first choice was named (made up)") in list_scores()
    with pytest.raises(CoraError, match="also needs the whole run, so it cannot be combined with by='method'"):
        score(run, by="method", also=["first place"])
    with pytest.raises(CoraError, match="run score must be one of"):
        score(run, also=["last place"])


def test_a_measure_that_a_table_cannot_show(measure):
    @register_run_score("first place")
    def twice(responses, level=0.95):
        return make_result([{"score": "names A", "place": i, "value": 0} for i in range(2)])

    run = evaluate(SimulatedRespondent(), make_variants(load_benchmark("math")[:2]), progress=False)
    with pytest.raises(CoraError, match="first place has two numbers for the score 'names A'"):
        score(run, also=["first place"])


def test_what_a_measure_notes_keeps_nobody_from_being_ranked(measure):
    @register_run_score("first place")
    def noted(responses, level=0.95):
        said = Remark("note", what="two prompts were left out"), Remark("few", 3, what="question")
        return make_result([{"score": "names A", "value": 0.5, "remarks": said}])

    variants = make_variants(load_benchmark("math")[:20])
    runs = {k: evaluate(SimulatedRespondent(knows=k, name=f"knows {k}"), variants, progress=False) for k in (0.2, 0.9)}
    plain, with_it = (render(score_table(runs, beyond=beyond)) for beyond in ((), ["first place"]))
    assert "(1)" in plain and plain.splitlines()[:4] == with_it.splitlines()[:4] and "No ranks" not in with_it
    assert "names A" in with_it and "few questions or clusters to rely on: names A" in with_it
    assert "left out" not in with_it and "left out" in score(runs[0.2], also=["first place"])["note"].iloc[-1]
