"""Where inconsistency comes from: against formulas in pandas, known respondents, odd runs, and the recorded replies."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.metrics.consistency import inconsistency_components
from cora_nb.metrics.scoring import score
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import FailureWarning
from cora_nb.results import lookup, values_of
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants
from helpers import put_in_state

PARTS = ["question", "method", "place", "question x variant", "repetition"]
LAST = "question x variant + repetition"


def variances(result):
    rows = result[result["score"].str.startswith("variance, ")]
    return dict(zip(rows["score"].str.removeprefix("variance, "), rows["value"]))


def table(right, places=None, sources=None):
    "Responses from an array (questions, variants, trials): a method each for the variants, the answer first."
    n, m, r = np.shape(right)
    rows = []
    for q, v, k in np.ndindex(n, m, r):
        place = 0 if places is None else int(places[q][v])
        row = {"question_id": f"q{q}", "method": f"m{v}", "index": 0, "trial": k, "answer": place}
        if sources is not None:
            row |= {"sources": list(sources[q][v][k]), "n_choices": len(sources[q][v][k])}
        rows.append(row | {"correct": bool(right[q][v][k])})
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def run():
    who = SimulatedRespondent(knows=0.6, slips=0.2, position=(4, 2, 1, 1), name="leaning")
    return evaluate(who, make_variants(math_benchmark(40, seed=2), "cora"), Asking(trials=3), progress=False)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.integers(2, 4), st.integers(2, 3), st.integers(0, 10**6))
def test_formulas_in_pandas(n, m, r, seed):
    "Complete, and the answer always first: the textbook's mean squares, from tables of means."
    right = np.random.default_rng(seed).random((n, m, r)) < 0.6
    t = table(right).assign(right=lambda t: t["correct"].astype(float))
    found = variances(inconsistency_components(t))
    cell = t.groupby(["question_id", "method"])["right"].mean().unstack()
    e = t.groupby(["question_id", "method"])["right"].var().mean()
    residual = cell.sub(cell.mean(axis=1), axis=0).sub(cell.mean(axis=0), axis=1) + cell.to_numpy().mean()
    both = (residual**2).to_numpy().sum() / ((n - 1) * (m - 1))
    assert found["repetition"] == pytest.approx(e, abs=1e-8)
    assert found["question x variant"] == pytest.approx(both - e / r, abs=1e-8)
    assert found["method"] == pytest.approx(cell.mean().var(ddof=0) - (m - 1) / m * both / n, abs=1e-8)
    assert found["question"] == pytest.approx(cell.mean(axis=1).var() - both / m, abs=1e-8)
    assert found["place"] == pytest.approx(0, abs=1e-12)
    p, per_question = t["right"].mean(), cell.mean(axis=1)
    assert found["total"] == pytest.approx(p * (1 - p) + per_question.var() / n, abs=1e-8)


def test_parts_add_up(run):
    found = inconsistency_components(run)
    parts = variances(found)
    assert sum(parts[name] for name in PARTS) == pytest.approx(parts["total"], abs=1e-12)
    for what, names in (("share", PARTS), ("share of inconsistency", PARTS[1:])):
        shares = [lookup(found, f"{what}, {name}") for name in names]
        assert sum(row.value for row in shares) == pytest.approx(1)
        assert all(0 <= row.low <= row.value <= row.high <= 1 for row in shares)
    assert (found["n"] == 40).all() and set(found["respondent"]) == {"leaning"}
    p = score(run.pool_trials()).set_index("score").loc["MCQA+", "value"]
    assert parts["total"] == pytest.approx(p * (1 - p), abs=0.005)  # less what the mean itself varies
    assert found["score"].is_unique and len(found) == 15


def test_a_leaning_respondent(run):
    "Known: 0.6 known questions, of which a fifth is guessed; guesses prefer A."
    found = inconsistency_components(run)
    assert lookup(found, "variance, place").low > 0 and lookup(found, "variance, method").low > 0
    truth = 0.0  # repetition: p(1 - p) over variants, in closed form from the respondent itself
    for v in make_variants(math_benchmark(40, seed=2), "cora"):
        p = SimulatedRespondent(knows=0.6, slips=0.2, position=(4, 2, 1, 1)).probabilities(v)[v.answer]
        truth += p * (1 - p) / (40 * 20)
    row = lookup(found, "variance, repetition")
    assert row.low < truth < row.high


def test_greedy_respondents_never_repeat_themselves_differently(run):
    first = run.first_trial().table
    twice = pd.concat([first, first.assign(trial=1)])
    found = inconsistency_components(twice)
    once = inconsistency_components(run.first_trial())
    row = lookup(found, "variance, repetition")
    assert row.value == row.low == 0 and 0 < row.high < 0.06
    assert lookup(found, "variance, question x variant").value == pytest.approx(lookup(once, f"variance, {LAST}").value)
    assert lookup(found, "share, repetition").value == 0 < lookup(found, "share, repetition").high < 0.3


def test_without_repetitions_the_last_two_are_one(run):
    found = inconsistency_components(run.first_trial())
    parts = variances(found)
    assert np.isnan([parts["repetition"], parts["question x variant"]]).all()
    assert sum(parts[name] for name in ("question", "method", "place", LAST)) == pytest.approx(parts["total"])
    shares = values_of(found.drop(columns=["respondent"]))
    assert sum(shares[f"share, {name}"] for name in ("question", "method", "place", LAST)) == pytest.approx(1)
    for name in ("repetition", "question x variant"):
        assert LAST in lookup(found, f"variance, {name}").note
    assert lookup(found, "variance, repetition").n == 0


def test_one_prompt_a_question(run):
    found = inconsistency_components(run.rows(lambda t: t["method"] == "original"))
    parts = variances(found)
    assert np.isnan([parts[n] for n in ("question", "question x variant", "place")]).all() and parts["method"] == 0
    assert parts["question + question x variant"] + parts["repetition"] == pytest.approx(parts["total"])
    assert "question + question x variant" in lookup(found, "variance, question").note
    once = run.first_trial().rows(lambda t: t["method"] == "original")
    nothing = variances(inconsistency_components(once))
    assert np.isfinite(nothing["total"]) and np.isnan([nothing[name] for name in PARTS if name != "method"]).all()


def test_a_place_that_never_changes_is_the_questions(run):
    kept = run.rows(lambda t: t["method"].isin(["original", "nota"]))
    found = inconsistency_components(kept)
    parts = variances(found)
    assert (
        np.isnan(parts["place"])
        and "place cannot be separated from the question" in lookup(found, "variance, place").note
    )
    assert sum(v for n, v in parts.items() if n not in ("place", "total")) == pytest.approx(parts["total"])


def test_another_order_is_another_variant():
    "As in CAT's files: one method and index, a new order in each trial. Only equal orders repeat a prompt."
    rng = np.random.default_rng(4)
    orders = [[[tuple(rng.permutation(3)) for _ in range(4)] for _ in range(2)] for _ in range(60)]
    by_order = [[[hash((q, o)) % 3 == 0 for o in cell] for cell in row] for q, row in enumerate(orders)]
    found = variances(inconsistency_components(table(by_order, sources=orders)))
    assert found["repetition"] == 0 and found["question x variant"] > 0.1
    ignored = variances(inconsistency_components(table(by_order)))
    assert ignored["repetition"] > 0.1
    parts = [found[name] for name in PARTS]
    assert sum(parts) == pytest.approx(found["total"])


def test_each_variant_weighs_the_same_however_often_it_was_asked():
    right = np.zeros((20, 2, 11), bool)
    right[:, 0] = True  # the original is always right, the other variant never
    some = table(right)[lambda t: (t["trial"] == 0) | (t["method"] == "m0")]
    found = variances(inconsistency_components(some))
    assert found["total"] == pytest.approx(0.25) and found["method"] == pytest.approx(0.25)


def test_always_right():
    found = inconsistency_components(table(np.ones((25, 3, 2), bool)))
    assert all(value == pytest.approx(0, abs=1e-12) for value in variances(found).values())
    shares = found[found["score"].str.startswith("share")]
    assert shares[["value", "low", "high"]].isna().all(axis=None)
    assert lookup(found, "variance, total").high > 0.1


def test_failed_prompts_are_not_answers(run):
    def failed(every):
        return put_in_state(run.table, np.arange(len(run)) % every == 3, "failed", "timed out")

    with pytest.warns(FailureWarning):
        found = inconsistency_components(failed(200))
    assert "failed" in lookup(found, "variance, total").note
    with pytest.raises(CoraError, match="more than one in a hundred"):
        inconsistency_components(failed(20))


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda t: t[t["question_id"] == "q0"], "variance components need at least two questions, got 1"),
        (lambda t: t.drop(columns="answer"), "the responses have no column answer"),
        (lambda t: t.iloc[:0], "there are no responses to score"),
        (lambda t: pd.concat([t, t]), "stands in an earlier row already"),
    ],
)
def test_bad_input_is_named(change, said):
    with pytest.raises(CoraError, match=said):
        inconsistency_components(change(table(np.ones((3, 2, 2), bool))))


def test_medalpaca(medalpaca):
    "Of the inconsistency of the two methods that were sampled, 95% is repetition; of all 26 variants it is not known."
    sampled = medalpaca.rows(lambda t: t["method"].isin(["original", "shuffled"]))
    found = inconsistency_components(sampled)
    row = lookup(found, "share of inconsistency, repetition")
    assert [round(x, 3) for x in (row.value, row.low, row.high)] == [0.951, 0.927, 0.975]
    t = sampled.table  # by hand: half the squared differences of two tries, over prompts of one order
    original = t[t["method"] == "original"].groupby("question_id")["correct"].mean()
    by_hand = (11 / 10 * original * (1 - original)).mean()
    assert lookup(found, "variance, repetition").value == pytest.approx(by_hand, abs=0.003)
    first = medalpaca.first_trial().table
    assert np.isnan(lookup(inconsistency_components(medalpaca.first_trial()), "variance, repetition").value)

    shown = first.assign(shown=[tuple(s) for s in first["sources"]])
    pairs = shown[~shown["method"].isin(["original", "shuffled"])].groupby(["question_id", "shown"])["prediction"]
    twice = pairs.agg(["size", "nunique"]).query("size > 1")
    assert len(twice) == 3479 and (twice["nunique"] == 1).all()  # these were not sampled: no repetition stands for them
