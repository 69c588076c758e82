"""Agreement in content: pairs counted one by one, the limiting cases, what agrees with what."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import CoraError, LETTERS, Question
from cora_nb.metrics.consistency import _agreement_counts, agreement_rate, agreement_scores
from cora_nb.metrics.bias import order_consistency
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import FailureWarning
from cora_nb.responses.responses import make_responses
from cora_nb.results import lookup
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants
from helpers import put_in_state

FAMILIES = ["cora", "cyclic", "answer_swap", "permutations", "mcqa_plus", "reorderings", "order_swap"]


def quiz(sizes, subjects="s"):
    return [
        Question(f"q{i}", f"{i}?", tuple(f"{i} {j}" for j in range(n)), i % n, subjects[i % len(subjects)])
        for i, n in enumerate(sizes)
    ]


def by_hand(run, key="question_id"):
    "Agreeing pairs and pairs of each question, from the definition: every pair looked at."
    agreeing, pairs = Counter(), Counter()
    for unit, rows in run.table.groupby(key, sort=False):
        id = unit if isinstance(unit, str) else unit[0]
        said = []
        for row in rows.to_dict("records"):
            source = row["sources"][row["prediction"]] if row["prediction"] >= 0 else None
            said.append(None if source is None else (source, source < 0 and row["correct"]))
        for a, b in itertools.combinations(said, 2):
            pairs[id] += 1
            agreeing[id] += a is not None and a == b
    return agreeing, pairs


@pytest.mark.slow
@given(
    st.lists(st.integers(3, 6), min_size=1, max_size=5), st.sampled_from(FAMILIES), st.randoms(use_true_random=False)
)
@settings(max_examples=60, deadline=None)
def test_as_pair_by_pair(sizes, family, rng):
    variants = make_variants(quiz(sizes), family, **({"limit": 6} if family == "permutations" else {}))
    said = [rng.choice([*LETTERS[: v.n_choices], "no idea"]) if v.form == "mcq" else "Yes" for v in variants]
    run = make_responses(variants, said)
    counts, (agreeing, pairs) = _agreement_counts(run), by_hand(run)
    assert dict(counts["agreeing"]) == {id: agreeing[id] for id in counts.index}
    assert dict(counts["pairs"]) == {id: pairs[id] for id in counts.index}
    row = lookup(agreement_rate(run))
    assert row.value == pytest.approx(sum(agreeing.values()) / sum(pairs.values()))
    assert row.n == sum(n > 0 for n in pairs.values())
    if family in ("cyclic", "answer_swap", "permutations"):  # all choices are the question's own
        theirs = order_consistency(run)
        assert (counts["most"] / counts["replies"]).tolist() == theirs["consistency"].tolist()
        assert counts[["replies", "no_choice", "right"]].equals(theirs[["replies", "no_choice", "right"]])


@pytest.mark.slow
@given(st.lists(st.integers(2, 5), min_size=1, max_size=6), st.sampled_from(["cyclic", "answer_swap"]), st.data())
@settings(max_examples=40, deadline=None)
def test_limiting_cases(sizes, family, data):
    questions = quiz(sizes)
    variants = make_variants(questions, family)
    own = {q.id: data.draw(st.integers(0, q.n_choices - 1)) for q in questions}
    rate = lambda said: agreement_rate(make_responses(variants, said))["value"][0]
    assert rate([LETTERS[v.sources.index(own[v.question_id])] for v in variants]) == 1
    assert rate(["I do not know"] * len(variants)) == 0
    habit = rate([LETTERS[own[v.question_id]] for v in variants])
    if family == "cyclic":
        assert habit == 0
    else:
        same = [(n - 1) * (n - 2) / 2 * (own[q.id] != q.answer) for q, n in zip(questions, sizes)]
        assert habit == pytest.approx(sum(same) / sum(n * (n - 1) / 2 for n in sizes))


@pytest.mark.slow
def test_the_interval_holds_the_truth_and_counts_questions():
    "Knows 0.6, slips: two replies agree with p^2 + (1 - p)^2 / 3 on what it knows, 1/4 elsewhere; 100 runs."
    p = 1 - 0.3 * 3 / 4
    truth = 0.6 * (p**2 + (1 - p) ** 2 / 3) + 0.4 / 4
    inside = 0
    rng, variants = np.random.default_rng(0), make_variants(quiz([4] * 100), "cyclic")
    for _ in range(100):
        knows = dict(zip({v.question_id for v in variants}, rng.random(100) < 0.6))
        said = []
        for v in variants:
            right = knows[v.question_id] and rng.random() >= 0.3
            said.append(LETTERS[v.answer if right else rng.integers(4)])
        row = lookup(agreement_rate(make_responses(variants, said)))
        inside += row.low <= truth <= row.high
    assert 88 <= inside  # 95% of 100, less three standard deviations


# What agrees with what


def test_none_of_the_above_is_a_content_and_another_one_where_it_is_right():
    q = Question("q", "?", ("a", "b", "c", "d"), 0)
    cora = [v for v in make_variants([q]) if v.method in ("nota", "nota_shuffled")]
    run = make_responses(cora, [LETTERS[v.sources.index(-1)] for v in cora])
    assert agreement_rate(run)["value"][0] == 1
    plus = [v for v in make_variants([q], "mcqa_plus") if -1 in v.sources and v.form == "mcq"]
    assert {v.sources[v.answer] < 0 for v in plus} == {True, False}
    counts = _agreement_counts(make_responses(plus, [LETTERS[v.sources.index(-1)] for v in plus]))
    right = sum(v.sources[v.answer] == -1 for v in plus)
    wrong = len(plus) - right
    assert counts["agreeing"].iloc[0] == wrong * (wrong - 1) // 2 + right * (right - 1) // 2


def test_repetitions_variants_and_pooled_replies():
    variants = make_variants(quiz([4, 4, 3]), "cyclic")
    run = evaluate(SimulatedRespondent(knows=0.4, slips=0.5), variants, Asking(trials=4), progress=False)
    agreeing, pairs = by_hand(run, ["question_id", "method", "index"])
    counts = _agreement_counts(run, "repetitions")
    assert dict(counts["agreeing"]) == dict(agreeing) and dict(counts["pairs"]) == dict(pairs)
    assert (counts["replies"] == [16, 16, 12]).all() and (counts["pairs"] == [24, 24, 18]).all()
    assert agreement_rate(run).equals(agreement_rate(run.trial(0)))
    agreeing, pairs = by_hand(run)
    pooled = _agreement_counts(run.pool_trials())
    assert dict(pooled["agreeing"]) == dict(agreeing) and dict(pooled["pairs"]) == dict(pairs)
    once = agreement_rate(run.trial(0), pairs="repetitions")
    assert np.isnan(once["value"][0]) and once["note"][0] == "no question has two replies to compare"


def test_by_subject_and_method():
    variants = make_variants(quiz([4] * 10, "st"), "cora")
    run = evaluate(SimulatedRespondent(knows=0.5), variants, progress=False)
    table = agreement_rate(run, by="subject")
    assert table["subject"].tolist() == ["s", "t"]
    for subject, value in zip(table["subject"], table["value"]):
        part = run.rows(lambda t: t["subject"] == subject)
        assert value == agreement_rate(part)["value"][0]
    table = agreement_rate(run, by="method").set_index("method")
    assert list(table.index) == [m for m in dict.fromkeys(run.table["method"]) if m != "original"]
    agreeing, pairs = by_hand(run.rows(lambda t: t["method"].isin(["original", "nota"])))
    assert table["value"]["nota"] == pytest.approx(sum(agreeing.values()) / sum(pairs.values()))
    thrice = evaluate(SimulatedRespondent(knows=0.5), variants[:30], Asking(trials=3), progress=False)
    parts = agreement_rate(thrice, pairs="repetitions", by="method")
    whole = _agreement_counts(thrice, "repetitions")
    assert set(parts["method"]) == set(thrice.table["method"]) and whole["pairs"].sum() == 3 * 30


def test_a_part_of_a_set_says_so():
    run = evaluate(SimulatedRespondent(), make_variants(quiz([4] * 5), "cyclic"), progress=False)
    part = run.rows(lambda t: t["index"] < 2)
    assert run.complete and agreement_scores(part)["note"].str.contains("3 of 4 variants").all()


# Bad input


def test_bad_input():
    variants = make_variants(quiz([4, 4]), "cyclic")
    run = make_responses(variants, ["A"] * 8)
    stopped = put_in_state(run.table, [0], "not_asked")
    for call, says in [
        (lambda: agreement_rate(run, pairs="letters"), "pairs must be one of variants, repetitions, got 'letters'"),
        (lambda: agreement_rate(run, by="place"), "by must be one of subject, method, None, got 'place'"),
        (lambda: agreement_rate(run, level=1.0), "level must be between 0 and 1, got 1.0"),
        (lambda: agreement_rate(run.table.drop(columns="sources")), "the responses have no column sources"),
        (lambda: agreement_rate(run.rows(np.zeros(8, dtype=bool))), "there are no responses to score"),
        (lambda: agreement_rate(stopped), "1 of 8 prompts were not asked because the run stopped early"),
        (lambda: agreement_rate("run.parquet"), "responses must be Responses or a table, got a str"),
    ]:
        with pytest.raises(CoraError) as e:
            call()
        assert says in str(e.value) and "\n" not in str(e.value)


@pytest.mark.slow
def test_failed_prompts_are_few_or_refused():
    variants = make_variants(quiz([4] * 50), "cyclic")
    table = make_responses(variants, [LETTERS[v.answer] for v in variants]).table
    table = put_in_state(table, [0, 7], "failed", "timeout")
    with pytest.warns(FailureWarning):
        found = agreement_scores(table)
    assert lookup(found, "agreement rate").value == pytest.approx((300 - 3 - 3) / 300)
    assert "2 of 200 failed" in found["note"][0]
    many = put_in_state(table, table["index"] == 1, "failed", "timeout")
    with pytest.raises(CoraError, match="failed"):
        agreement_rate(many)


def test_only_the_whole_rate_of_variants_says_how_much_of_the_set_is_there():
    "Repetitions compare a prompt with itself, and a part by subject or method is chosen."
    variants = make_variants(quiz([4] * 40, "st"), "cyclic")
    run = evaluate(SimulatedRespondent(knows=0.6, slips=0.2), variants, Asking(trials=2), progress=False)
    part = run.rows(lambda t: t["index"] < 2)
    assert part.coverage and not run.coverage

    def notes(found):
        return "; ".join(found["note"])

    assert part.coverage in notes(agreement_rate(part))
    for options in ({"pairs": "repetitions"}, {"by": "subject"}, {"by": "method"}):
        assert part.coverage not in notes(agreement_rate(part, **options)), options
    assert "variants" not in notes(agreement_rate(run))
