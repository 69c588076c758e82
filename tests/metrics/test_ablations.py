"""Scores on some variants, and the bootstrap over variants, against plain loops with the very same draws.

Also against all draws there are, and on recorded replies.
"""

import itertools
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import binom

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.metrics.account import score_counts
from cora_nb.metrics.cora import weighted_scores
from cora_nb.papers.cora_items import paper_layout
from cora_nb.metrics.account import account
from cora_nb.metrics.ablations import (
    ablation_table,
    bootstrap_summary,
    bootstrap_table,
    _DrawnCounts,
    _draw_slots,
    right_matrix,
    subset,
    subset_scores,
    variant_bootstrap,
)
from cora_nb.stats.resampling import draw_questions, kinds
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.results import values_of
from cora_nb.responses.responses import Responses
from cora_nb.results import lookup
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants
from helpers import put_in_state

THRESHOLDS = (0.5, 0.28, 0.9)


def table(right, names=None, prefix="q"):
    "Right and wrong as a responses table; slot 0 is the original."
    right = np.asarray(right, dtype=bool)
    n, slots = right.shape
    names = names or [("original", 0), *(("nota", i) for i in range(slots - 1))]
    return pd.DataFrame(
        {
            "question_id": np.repeat([f"{prefix}{i}" for i in range(n)], slots),
            "method": [m for m, _ in names] * n,
            "index": [i for _, i in names] * n,
            "trial": 0,
            "n_choices": 5,
            "correct": right.ravel(),
        }
    )


def scores_of(responses):
    "All scores of a run by name."
    return score_counts(account(responses))


def generators(seed):
    return [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2)]


def slow_scores(questions, thresholds):
    "In exact fractions; questions: (right replies of the drawn slots, original, size of the set) of each one drawn."
    n = len(questions)
    rc = [Fraction(sum(drawn), len(drawn)) for drawn, _, _ in questions]
    mcqa = Fraction(sum(o for _, o, _ in questions), n)
    at_least = lambda c: Fraction(sum(r >= Fraction(str(c)) for r in rc), n)
    ci = 1 - (mcqa - at_least(1))
    return [
        float(x)
        for x in (
            mcqa,
            sum(r * size for r, (_, _, size) in zip(rc, questions)) / sum(size for *_, size in questions),
            Fraction(sum(r > Fraction(1, 2) for r in rc), n),
            *map(at_least, thresholds),
            ci,
            mcqa * ci,
        )
    ]


@st.composite
def unequal(draw):
    "Responses of sets of one to three sizes, in any order of rows."
    seed, sizes = (
        draw(st.integers(0, 10**6)),
        draw(st.lists(st.sampled_from([2, 3, 5, 8]), min_size=1, max_size=3, unique=True)),
    )
    rng = np.random.default_rng(seed)
    parts = [table(rng.random((int(rng.integers(1, 5)), s)) < rng.random(), prefix=f"size {s} number ") for s in sizes]
    return pd.concat(parts, ignore_index=True).sample(frac=1, random_state=seed)


@pytest.mark.slow
@given(
    unequal(),
    st.integers(1, 9),
    st.sampled_from(["variants", "both"]),
    st.integers(0, 3),
    st.sampled_from([1, 40, 1 << 21]),
)
@settings(max_examples=60)
def test_a_plain_loop_with_the_same_draws(responses, draws, over, seed, room):
    ours = variant_bootstrap(responses, draws, 7, seed, THRESHOLDS, over, by_size=True, room=room)
    right = right_matrix(responses, by_size=True)
    slot_rng, question_rng = generators(seed)
    slots = _draw_slots(right, draws, 7, slot_rng)
    values, originals = (
        right.to_numpy(),
        dict(
            zip(
                responses["question_id"][responses["method"] == "original"],
                responses["correct"][responses["method"] == "original"],
            )
        ),
    )
    size = (~np.isnan(values)).sum(axis=1)
    _, kind = kinds(np.column_stack([np.nan_to_num(values), size, [float(originals[q]) for q in right.index]]))
    times = draw_questions(kind, 7, question_rng) if over == "both" else [np.bincount(kind)] * 7
    for row, drawn, weights in zip(ours.to_numpy(), slots, times):
        picked = []
        for k, weight in enumerate(weights):
            q = int(np.flatnonzero(kind == k)[0])  # questions of one kind are alike
            replies = [
                int(values[q, s]) for s in range(len(drawn)) for _ in range(drawn[s]) if not np.isnan(values[q, s])
            ]
            assert len(replies) == draws
            picked += [(replies, int(originals[right.index[q]]), int(size[q]))] * int(weight)
        expected = slow_scores(picked, THRESHOLDS)
        if (size == 1).any():  # an original alone is not a divergence set: it has no CI and no CoRA
            expected[-2:] = [np.nan] * 2
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_slots, draws", [(26, 2), (3, 5), (5, 1), (4, 4)])
def test_all_draws_there_are(n_slots, draws):
    rng = np.random.default_rng(n_slots)
    right = rng.random((6, n_slots)) < 0.6
    responses, size = table(right), np.full(6, float(n_slots))
    every = np.array(
        [np.bincount(picked, minlength=n_slots) for picked in itertools.product(range(n_slots), repeat=draws)]
    )
    slow = np.array(
        [
            slow_scores(
                [(np.repeat(row.astype(int), times).tolist(), int(row[0]), n_slots) for row in right], THRESHOLDS
            )
            for times in every
        ]
    )
    drawn = _DrawnCounts(every @ right.T.astype(float), draws, right[:, 0].astype(float), size, np.ones(6))
    names = ["MCQA", "MCQA+", "MV", *(f"BMCA({c})" for c in THRESHOLDS), "CI", "CoRA"]
    ours = pd.DataFrame(weighted_scores(drawn, THRESHOLDS, names=names))
    np.testing.assert_allclose(ours.to_numpy(), slow, rtol=0, atol=1e-12)
    drawn = variant_bootstrap(responses, draws, 20_000, thresholds=THRESHOLDS)
    sd = slow.std(axis=0)
    assert (abs(drawn.mean() - slow.mean(axis=0)) <= 5 * sd / 20_000**0.5 + 1e-12).all()
    np.testing.assert_allclose(drawn.std(ddof=0), sd, rtol=0.05, atol=1e-9)


def test_rows_drawn_apart_follow_the_binomial():
    right = np.random.default_rng(1).random((50, 26)) < np.random.default_rng(2).random((50, 1))
    p, samples = right.mean(axis=1), variant_bootstrap(table(right), draws=30, resamples=5000, over="apart")
    np.testing.assert_allclose(samples["MCQA+"].std(), np.sqrt((p * (1 - p) / 30).sum()) / 50, rtol=0.05)
    passed = binom.sf(15, 30, p)
    np.testing.assert_allclose(samples["MV"].mean(), passed.mean(), atol=0.003)
    np.testing.assert_allclose(samples["MV"].std(), np.sqrt((passed * (1 - passed)).sum()) / 50, rtol=0.06)


@pytest.mark.slow
def test_memory_does_not_grow_with_questions_times_resamples():
    responses = table(np.random.default_rng(4).random((3000, 26)) < 0.5)
    peaks = []
    for resamples in (1000, 9000):
        tracemalloc.start()
        variant_bootstrap(responses, resamples=resamples)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (
        peaks[1] - peaks[0] < 8000 * 1000 < 3000 * 8000
    )  # the draws and the scores grow; a byte for each question and resample would be 24 MB
    assert peaks[1] < 60e6


@pytest.mark.parametrize("draws", [255, 256, 70_000])
def test_many_draws(draws):
    right = np.array([[1, 1, 0, 1], [1, 0, 0, 0]])
    samples = variant_bootstrap(table(right), draws=draws, resamples=50)
    assert (samples["MV"] == 0.5).all() and (abs(samples["MCQA+"] - 0.5) < 3 / draws**0.5).all()


def test_same_size_goes_by_the_choices_shown():
    for n, kept in (
        (5, 10),
        (4, 8),
        (3, 10),
        (2, 6),
    ):  # of three choices, a pair with None of the above is as large as the question
        variants = make_variants(math_benchmark(n=2, n_choices=n), "cora")
        rows = pd.DataFrame(
            {
                "question_id": [v.question_id for v in variants],
                "method": [v.method for v in variants],
                "index": [v.index for v in variants],
                "trial": 0,
                "n_choices": [v.n_choices for v in variants],
                "correct": True,
            }
        )
        left = subset(rows).table
        assert len(left) == 2 * kept and (left["n_choices"] == n).all()
        if n >= 4:
            assert left.equals(subset(rows, ["original", "shuffled", "nota", "nota_shuffled"]).table)


def test_a_subset_of_everything_is_everything():
    responses = table(np.random.default_rng(5).random((20, 8)) < 0.6)
    every = subset_scores(responses, lambda r: r["index"] >= 0)
    pd.testing.assert_series_equal(values_of(every), scores_of(responses), check_names=False)
    assert set(every["method"]) == {"by a function"} and set(every["n"]) == {20}
    both = ablation_table({"a": responses}, ["original", "nota"], scores=["MCQA", "CoRA", "CORE"])
    part, whole = (values_of(both[both["method"] == m]) for m in ("original, nota", "all"))
    assert (part[[f"{name}, difference from all" for name in ("MCQA", "CoRA", "CORE")]] == 0).all()
    pd.testing.assert_series_equal(part[["MCQA", "CoRA", "CORE"]], whole)
    pd.testing.assert_frame_equal(
        variant_bootstrap(responses, resamples=20, methods=["nota", "original"]),
        variant_bootstrap(responses, resamples=20),
    )


def test_the_original_is_mcqa_even_where_it_is_left_out():
    responses = table(np.random.default_rng(6).random((20, 8)) < 0.6)
    part, whole = values_of(subset_scores(responses, "nota")), scores_of(responses)
    nota = responses[responses["method"] == "nota"].groupby("question_id")["correct"]
    assert (
        part["MCQA"] == whole["MCQA"]
        and part["MCQA+"] == pytest.approx(nota.mean().mean())
        and part["BMCA(1.0)"] == nota.all().mean()
    )
    assert part["CI"] == pytest.approx(1 - part["MCQA"] + part["BMCA(1.0)"])
    assert (variant_bootstrap(responses, resamples=5, methods="nota")["MCQA"] == whole["MCQA"]).all()


def test_other_trials_do_not_count():
    responses = table(np.random.default_rng(7).random((10, 4)) < 0.6)
    more = Responses(pd.concat([responses, responses.assign(trial=1, correct=False)]))
    columns = ["score", "value", "least", "most"]
    assert subset_scores(more)[columns].equals(subset_scores(responses)[columns])
    assert subset_scores(more)["note"].str.contains("first of 2 repetitions").all()
    assert right_matrix(more).equals(right_matrix(responses))
    assert (variant_bootstrap(more.trial(1), resamples=5)["MCQA+"] == 0).all()
    with pytest.raises(CoraError, match="has 2 trials of a prompt; choose one"):
        right_matrix(more.pool_trials())


def test_paper_layout():
    runs = {name: table(np.random.default_rng(8 + i).random((30, 8)) < 0.6 + 0.1 * i) for i, name in enumerate("abc")}
    five, six = ablation_table(runs, ["original", "nota"]), bootstrap_table(runs, resamples=200)
    printed = paper_layout(five)
    for name in ("MCQA+", "MV", "CoRA"):
        texts = printed.loc[("subset", name)]
        numbers = [float(t.split()[0]) for t in texts]
        assert [int(t.split("(")[1][:-1]) for t in texts] == [1 + sum(m > n for m in numbers) for n in numbers]
    mean, sd = (lookup(six, f"MV, {part} of resamples", respondent="a").value for part in ("mean", "sd"))
    assert paper_layout(six).loc[("mean", "MV"), "a"] == f"{mean:.2f} ({1000 * sd:.0f})"
    assert (
        paper_layout(ablation_table({"a": runs["a"]}, "nota")).loc["subset", "a"].str.len() == 4
    ).all()  # one run has no rank
    assert "-0.00" not in paper_layout(six, 2).to_string()


@pytest.mark.slow
def test_recorded_replies_give_the_numbers_of_the_issue(medalpaca):
    found = values_of(bootstrap_table({"medalpaca": medalpaca}))
    assert round(found["MCQA+, mean of resamples"], 3) == 0.357
    assert abs(1000 * found["MCQA+, sd of resamples"] - 8.5) < 0.2
    assert round(found["MV, mean of resamples"], 3) == 0.265
    assert right_matrix(medalpaca).shape == (1273, 26)
    apart = values_of(bootstrap_table({"medalpaca": medalpaca}, over="apart", resamples=500))
    assert 1000 * apart["MCQA+, sd of resamples"] < 1.5 < 1000 * found["MCQA+, sd of resamples"] / 5
    ten = subset(medalpaca).first_trial()
    assert len(ten) == 1273 * 10 and round(values_of(subset_scores(medalpaca))["MCQA+"], 3) == 0.267


GOOD = table([[1, 0, 1], [0, 0, 1]])


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: subset(GOOD, "colour"), "methods must be 'same_size' or among original, nota, got 'colour'"),
        (lambda: subset(GOOD, []), "methods must name at least one method, got none"),
        (lambda: subset(GOOD, lambda r: [True]), "a truth value for each of the 6 rows, got bool of the shape (1,)"),
        (lambda: subset(GOOD, 5), "methods must be 'same_size', a method, several, or a function, got 5"),
        (lambda: subset(GOOD.drop(columns="n_choices")), "no column n_choices"),
        (lambda: subset(GOOD[1:]), "question 'q0' has no original"),
        (
            lambda: subset(GOOD, lambda r: r["question_id"] == "q1"),
            "1 questions have no variant in the subset, the first of them 'q0'",
        ),
        (lambda: ablation_table({}), "there are no runs"),
        (lambda: bootstrap_table({"a": GOOD}, scores=["RC"], resamples=2), "scores must be among MCQA, MCQA+"),
        (
            lambda: right_matrix(GOOD[:-1]),
            "sets of different sizes (1 questions of 2 variants, 1 questions of 3 variants); by_size=True",
        ),
        (lambda: right_matrix(GOOD.assign(index=0)), "question 'q0', nota 0, trial 0 stands in an earlier row already"),
        (
            lambda: right_matrix(GOOD.assign(index=[0, 0, 1, 0, 0, 2])),
            "question 'q0' has no variant nota 2, which other questions with 3 variants have",
        ),
        (
            lambda: right_matrix(put_in_state(GOOD, [0], "not_asked")),
            "1 of 6 prompts were not asked because the run stopped early",
        ),
        (
            lambda: variant_bootstrap(GOOD, over="models"),
            "over must be one of variants, apart, questions, both, got 'models'",
        ),
        (lambda: variant_bootstrap(GOOD, draws=2.5), "draws must be a whole number of 1 or more, got 2.5"),
        (lambda: variant_bootstrap(GOOD, thresholds=(50,)), "c must be a number from 0 to 1, got 50"),
        (
            lambda: bootstrap_summary(variant_bootstrap(GOOD, resamples=2), scores_of(GOOD), level=95),
            "level must be between 0 and 1, got 95",
        ),
        (lambda: paper_layout(subset_scores(GOOD, "nota")), "a result of ablation_table or bootstrap_table"),
    ],
)
def test_what_is_refused(call, says):
    with pytest.raises(CoraError) as e:
        call()
    assert says in str(e.value) and "\n" not in str(e.value)


def test_parts_of_an_incomplete_run():
    "A chosen part has all scores; what was chosen from an incomplete run has no CoRA, and neither do its draws."
    asked = make_variants(math_benchmark(n=8, n_choices=4))
    run = evaluate(SimulatedRespondent(knows=0.6, seed=1), asked, progress=False)
    assert scores_of(subset(run)).notna().all() and subset_scores(run)["value"].notna().all()
    assert variant_bootstrap(run, resamples=5).notna().all(axis=None)
    few = run.rows(lambda t: t["method"].isin(["original", "shuffled", "nota"]))
    assert few.complete is False
    for found in (values_of(subset_scores(few)), variant_bootstrap(few, resamples=5).loc[0]):
        assert list(found.index[found.isna()]) == ["CI", "CoRA"]
    for found, n in ((ablation_table({"a": few}), 3), (bootstrap_table([few], resamples=5), 4)):
        unknown = found[found["value"].isna()]
        assert len(unknown) == n and unknown["score"].str.startswith("CoRA").all()


@pytest.mark.filterwarnings("ignore::cora_nb.responses.columns.FailureWarning")
def test_an_original_that_failed_leaves_a_mark_on_a_part_without_originals():
    "MCQA is that of the originals, even if the subset has none; so are its failures."
    full = table(np.ones((200, 4), dtype=bool))
    lost = np.flatnonzero(full["method"] == "original")[:1]
    run = put_in_state(full, lost, "failed", "timed out")
    row = lookup(subset_scores(run, "nota"), "MCQA")
    assert row.value == 199 / 200 and row.note == lookup(subset_scores(run, ["original", "nota"]), "MCQA").note
    assert row.note == "1 of 200 failed: at most 1.000"
