"""The gate: passes only what is shown to be not worse by the margin, keeps its level at the border, and never passes in
silence what is not known."""

import re
from dataclasses import replace

import numpy as np
import pytest
from helpers import at_random, put_in_state, slow_after, table
from hypothesis import given, settings
from hypothesis import strategies as st

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.metrics.comparison import compare, rank_table
from cora_nb.metrics.scoring import score
from cora_nb.metrics.gate import Gate, gate
from cora_nb.metrics.scores import SCORES, register_score
from cora_nb.report.findings import findings
from cora_nb.report.page import _table_parts
from cora_nb.report.render import render
from cora_nb.report.sentences import sentences
from cora_nb.report.tables import score_table
from cora_nb.report.words import condition_words, gate_lines
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import REPLIED, in_state
from cora_nb.responses.columns import FailureWarning
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.responses.runs import PromptDifference, Runs, concat, prompt_differences
from cora_nb.results import lookup
from cora_nb.runs.asking import Precise, Settled
from cora_nb.runs.evaluate import evaluate
from cora_nb.stats.paired import paired_interval
from cora_nb.variants.families import make_variants

VARIANTS = make_variants(math_benchmark(80))


def simulated(knows=0.8, slips=0.01, seed=0, name="ann", **options):
    return evaluate(SimulatedRespondent(knows, slips, seed=seed, name=name), VARIANTS, progress=False, **options)


BASE, NEW = simulated(name="base"), simulated(0.7, 0.02, name="new")


def without_reply(run, rows, state="failed"):
    "The same run, some rows of which have no reply."
    lost = put_in_state(run.table, rows, state)
    return Responses(lost, run.questions, run.facts, run.name)


# ---- the decision


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:few questions")
@settings(max_examples=15, deadline=None)
@given(
    seeds=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    margin=st.floats(0, 0.5),
    alpha=st.floats(0.001, 0.4),
    name=st.sampled_from(["MCQA", "MCQA+", "MV", "BMCA(0.8)", "RC"]),
)
def test_it_is_the_lower_end_of_compare(seeds, margin, alpha, name):
    one, two = (Responses(at_random(seed, m=2)) for seed in seeds)
    (found,) = gate(one, two, name, margin, alpha=alpha, resamples=200).conditions
    row = compare(one, two, 1 - 2 * alpha, 200, scores=[name]).iloc[0]
    assert (found.value, found.low, found.high) == (row["value"], row["low"], row["high"])
    assert found.passed is bool(row["low"] > -margin)
    assert found.n == 60 and condition_words(found).startswith("passed: " if found.passed else "not passed: ")


def test_mcqa_by_hand():
    "30 questions, 3 right only in the first, 5 only in the second."
    one, two = (Responses(table(np.array(r)[:, None])) for r in ([1] * 25 + [0] * 5, [0] * 3 + [1] * 27))
    low = paired_interval(3, 5, 30, level=0.9)[0]
    (found,) = gate(one, two, "MCQA", 0.25).conditions
    assert found.value == pytest.approx(-2 / 30) and found.low == pytest.approx(low)
    assert gate(one, two, "MCQA", abs(low) + 1e-6).passed and not gate(one, two, "MCQA", abs(low) - 1e-6).passed


def test_at_least_is_the_lower_end_of_the_score():
    row = score(BASE, ci=0.9).set_index("score").loc["CoRA"]
    assert gate(BASE, at_least={"CoRA": row["low"]}).passed
    assert gate(BASE, at_least={"CoRA": row["low"] + 1e-9}).passed is False
    assert gate(BASE, at_least={"CoRA": row["value"]}).passed is False, "the score itself is not sure"


def test_a_margin_of_nothing_asks_for_better():
    assert gate(BASE, BASE, margin=0).passed is False
    assert gate(BASE, NEW, margin=0).passed is True
    assert gate(NEW, BASE, margin=0).passed is False


@pytest.mark.slow
def test_false_counts_more_than_not_known():
    lost = without_reply(NEW, [3])
    assert gate(lost, BASE, margin=0.1, at_least={"MCQA": 0.99}).passed is False
    assert gate(lost, BASE, margin=0.5, at_least={"MCQA": 0.1}).passed is None
    assert Gate(gate(BASE, at_least={"MCQA": 0.1}).conditions).passed is True


# ---- the level


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 300])
@pytest.mark.parametrize("name", ["CoRA", "MCQA"])
def test_exactly_the_margin_worse_passes_in_at_most_one_of_twenty(name, n):
    """Four variants; the one knows 60%, the other less by as much as makes 5 points of the score.

    The study intervals_cover has many more; this finds a wrong sign or a two-sided level.
    """
    guess = 0.25
    slope = {"MCQA": 1 - guess, "CoRA": None}[name]

    def truth(k):
        right, whole = k + (1 - k) * guess, k + (1 - k) * guess**4
        return right if name == "MCQA" else right * (1 - right + whole)

    lower = (
        0.6 - 0.05 / slope
        if slope
        else min(np.linspace(0.3, 0.6, 3001), key=lambda k: abs(truth(0.6) - truth(k) - 0.05))
    )
    rng, passed, times = np.random.default_rng(5), 0, 150
    for _ in range(times):
        hard = rng.random(n)
        one, two = ((hard < k)[:, None] | (rng.random((n, 4)) < guess) for k in (lower, 0.6))
        runs = [Responses(table(right).assign(family="own")) for right in (one, two)]
        passed += gate(*runs, name, 0.05, resamples=1).passed
    assert passed / times < 0.05 + 3 * np.sqrt(0.05 * 0.95 / times)


# ---- what is not known, and what is refused


@pytest.mark.parametrize("side", ["run", "baseline"])
@pytest.mark.parametrize(
    ("state", "said"),
    [("failed", "1 of 1,600 prompts of {} failed; run again"), ("over_budget", "1 of 1,600 prompts of {} not asked")],
)
def test_missing_replies_are_no_pass(side, state, said):
    "One failed prompt of 1,600 keeps a score elsewhere; here a decision hangs on it."
    runs = [without_reply(BASE, [7], state), BASE] if side == "run" else [BASE, without_reply(BASE, [7], state)]
    found = gate(*runs, margin=0.4)
    assert found.passed is None and said.format(f"the {side}") in gate_lines(found)[0]
    assert gate_lines(found)[0].startswith("not known: ")


@pytest.mark.slow
@pytest.mark.parametrize("stop", [Settled(), Precise(half_width=0.1)])
def test_failed_prompts_are_told_of_those_asked(stop):
    "As everywhere: prompts that the run did not need are not among them."
    run = simulated(stop=stop)
    asked = np.flatnonzero(in_state(run.table, *REPLIED))
    lost = without_reply(run, [asked[-1]])
    assert len(asked) < len(run) == 1600
    with pytest.warns(FailureWarning, match=f"1 of {len(asked):,} prompts failed"):
        score(lost)
    for found in (gate(lost, at_least={"CoRA": 0.1}), gate(lost, lost, margin=0.4)):
        assert (
            f": 1 of {len(asked):,} prompts of " in gate_lines(found)[0] and "failed; run again" in gate_lines(found)[0]
        )
    first = asked[run.table["method"].iloc[asked] == "original"]
    (line,) = gate_lines(gate(without_reply(run, [first[0]]), at_least={"MCQA": 0.1}))
    assert f": 1 of {len(first)} prompts of ann failed" in line


def test_a_failed_variant_does_not_matter_to_mcqa():
    row = int(np.flatnonzero(BASE.table["method"] == "nota")[0])
    assert gate(without_reply(BASE, [row]), BASE, "MCQA", 0.4).passed is True


def test_incomplete_sets_are_no_pass():
    part = BASE.rows(BASE.table["method"] != "nota")
    found = gate(part, part, ["CoRA", "MCQA+", "MCQA"], 0.4)
    assert [c.passed for c in found.conditions] == [None, None, True]
    assert "has 17 of 20 variants" in gate_lines(found)[0]


@pytest.mark.slow
def test_early_stopping_settles_cora_and_nothing_else():
    whole, short = (
        [simulated(0.75, 0.02), BASE],
        [simulated(0.75, 0.02, stop=Settled()), simulated(stop=Settled(), name="base")],
    )
    assert in_state(short[0].table, "not_asked").any()
    full, early = (gate(*runs, margin=0.2).conditions[0] for runs in (whole, short))
    assert (early.value, early.low, early.passed) == pytest.approx((full.value, full.low, full.passed))
    assert gate(*short, "MCQA+", 0.2).passed is None
    mixed = gate(short[0], whole[1], margin=0.2).conditions[0]
    assert mixed.low == pytest.approx(full.low)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t[t["question_id"] != "math-0-1"], "asked different questions"),
        (lambda t: t[~((t["question_id"] == "math-0-1") & (t["method"] == "nota"))], "compare the same variants"),
        (lambda t: t.assign(family="other"), "only runs of one family"),
        (lambda t: t.assign(question_id=t["question_id"] + "x"), "asked different questions"),
    ],
)
def test_other_questions_or_members_are_refused(change, said):
    other = Responses(change(BASE.table), name="other")
    for runs in ((BASE, other), (other, BASE)):
        with pytest.raises(CoraError, match=said):
            gate(*runs, margin=0.4)


def test_a_score_without_direction_is_refused():
    @register_score("my error rate")
    def error_rate(counts):
        return 1 - counts.mean(counts.hits / counts.trials)

    try:
        with pytest.raises(
            CoraError, match="my error rate is not declared to be better where it is higher: use register_score"
        ):
            gate(BASE, BASE, "my error rate", 0.1)
    finally:
        del SCORES.registered["my error rate"]
    with pytest.raises(CoraError, match="recall_spread is a measure without a paired test; a gate takes MCQA, "):
        gate(BASE, BASE, "recall_spread", 0.1)
    with pytest.raises(CoraError, match="scores must be among MCQA, .*got 'RStd'"):
        gate(BASE, at_least={"RStd": 0.1})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "a gate needs a condition"),
        ({"margin": 0.1, "at_least": {"MCQA": 0.1}}, "margin needs a baseline"),
        ({"against": BASE}, "a baseline needs a margin"),
        ({"against": BASE, "margin": -0.1}, "margin must be a number from 0 to 1"),
        ({"against": BASE, "margin": 0.1, "scores": []}, "needs the name of a score"),
        ({"against": BASE, "margin": 0.1, "scores": ["MCQA", "MCQA"]}, "MCQA is named twice"),
        ({"against": BASE, "margin": 0.1, "alpha": 0.5}, "alpha must be between 0 and 0.5"),
        ({"at_least": {"CoRA": 40}}, "at_least for CoRA must be a number from 0 to 1, got 40"),
        ({"at_least": {"CoRA": 0.4}, "clusters": "nowhere"}, "nowhere"),
    ],
)
def test_options_that_make_no_sense(options, said):
    with pytest.raises(CoraError, match=said):
        gate(BASE, **options)


def test_two_questions_at_least():
    one = BASE.rows(BASE.table["question_id"] == BASE.table["question_id"].iloc[0])
    with pytest.raises(CoraError, match="at least two questions"):
        gate(one, one, margin=0.4)
    assert gate(one, at_least={"MCQA": 0.1}).passed is None, "a single question has no interval"


# ---- a question that the first trial lacks


def _without_first_trial():
    "Two trials of five questions, four of them always right; the fifth has rows in the second trial only."
    asked = make_variants(math_benchmark(5))
    pairs = [(v, t) for v in asked for t in (0, 1) if t or v.question_id != asked[-1].question_id]
    said = ["ABCDE"[v.answer - (v.question_id == asked[-1].question_id)] for v, _ in pairs]
    recipe = {"variants": {"recipe": {"family": "cora", "seed": 0, "options": {}}}}
    return make_responses([v for v, _ in pairs], said, trials=[t for _, t in pairs], name="ann", facts=recipe)


def _first_of(kind, tmp_path):
    run = _without_first_trial()
    if kind == "plain table":
        return run.to_frame()
    if kind == "file":
        write_responses(run, tmp_path / "run")
        return read_responses(tmp_path / "run")
    if kind == "joined":
        last = run.table["question_id"] == run.table["question_id"].iloc[-1]
        return concat([run.rows(~last), run.rows(last)])
    return run.first_trial() if kind == "chosen" else run


@pytest.mark.parametrize("kind", slow_after(3, ["chosen", "joined", "file", "run", "plain table"]))
@pytest.mark.parametrize("by", [None, "method"])
def test_a_question_without_a_row_in_the_first_trial_is_not_dropped(kind, by, tmp_path):
    found = score(_first_of(kind, tmp_path), by=by)
    for name in ("MCQA", "RC", "BMCA(1.0)", "CI", "CoRA"):
        rows = found[found["score"] == name]
        assert rows["value"].isna().all() and (rows["n"] == 5).all()
        assert rows["note"].str.contains("not in this repetition").all() and (rows["most"] > rows["least"]).all()


def test_the_gate_does_not_pass_a_run_that_lacks_a_question_in_the_first_trial():
    for run in (_without_first_trial(), _without_first_trial().first_trial()):
        assert run.complete is False and run.coverage == "0 to 20 of 20 variants"
        found = gate(run, at_least={"CoRA": 0.6, "MCQA": 0.6})
        assert found.passed is None and [c.passed for c in found.conditions] == [None, None]
        assert all("not in this repetition" in line for line in gate_lines(found))


# ---- runs that were not asked the same


@pytest.mark.slow
@pytest.mark.parametrize(
    "made, words",
    [
        (dict(answer_first=False), "answer_first"),
        (dict(seed=5), r"seed \(0 and 5\)"),
        (dict(template="plain"), "template"),
        (dict(text="Another text"), "the text of 10 questions, such as"),
    ],
)
def test_unlike_runs_are_named_and_not_ranked(made, words):
    questions = math_benchmark(10)
    one = evaluate(SimulatedRespondent(0.9, name="one"), make_variants(questions), progress=False)
    text, template = made.pop("text", None), made.pop("template", None)
    if text:
        questions = [replace(q, text=f"{text}: {q.text}") for q in questions]
    two = evaluate(SimulatedRespondent(0.5, name="two"), make_variants(questions, **made), progress=False)
    if template:
        asked = two.facts.asked.plain() | {"template": template, "template_hash": "another"}
        two = Responses(two.table, two.questions, two.facts.plain() | {"asked": asked}, two.name)
    (said,) = Runs([one, two]).differences()
    assert re.search(words, said)
    printed = render(score_table(Runs([one, two])))
    assert "No ranks: " in printed and re.search(words, " ".join(printed.split())) and "(1)" not in printed
    if text:
        with pytest.raises(CoraError, match="another text"):
            compare(one, two, resamples=50)
        return
    assert compare(one, two, resamples=50)["note"].str.contains(words).all()
    ranks = rank_table(Runs([one, two]), ["CoRA"], resamples=50)
    ranks = ranks[ranks["score"] != "CoRA"]
    assert ranks["value"].isna().all() and ranks["note"].str.contains(words).all()
    found = gate(one, two, margin=0.5, resamples=50)
    assert found.passed is None and re.search(words, gate_lines(found)[0])
    unknown = Responses(two.table, two.questions, {}, "two")  # only what the rows show is known to differ
    assert all("choices shown of" in said for said in Runs([one, unknown]).differences())
    assert not any("is ahead of" in line for line in sentences(Runs([one, two])))


def test_a_difference_on_purpose_is_named_and_ranked():
    questions = math_benchmark(10)
    one = evaluate(SimulatedRespondent(0.9, name="one"), make_variants(questions), progress=False)
    two = evaluate(SimulatedRespondent(0.5, name="two"), make_variants(questions, seed=5), progress=False)
    ranks = rank_table(Runs([one, two]), ["CoRA"], resamples=50, differ=("seed",))
    ranks = ranks[ranks["score"] != "CoRA"]
    assert ranks["value"].notna().all() and ranks["note"].str.contains(r"on purpose .* seed \(0 and 5\)").all()
    assert rank_table(Runs([one, two]), ["CoRA"], resamples=50, differ=("template",))["value"].isna().any()
    found = gate(one, two, margin=0.5, resamples=50, differ=("seed",))
    assert found.passed is not None and "seed (0 and 5)" in gate_lines(found)[0]


def _told(run, **recipe):
    variants = run.facts.variants.plain()
    return Responses(
        run.table,
        run.questions,
        run.facts.plain() | {"variants": variants | {"recipe": variants["recipe"] | recipe}},
        run.name,
    )


def test_a_default_option_may_be_named_or_left_out():
    run = evaluate(SimulatedRespondent(0.9, name="one"), make_variants(math_benchmark(4)), progress=False)
    assert run.facts.variants.recipe.options == {}
    assert prompt_differences(run, _told(run, options={"answer_first": True})) == []
    assert prompt_differences(run, _told(run, options={"answer_first": False})) == [
        PromptDifference("answer_first", ("True", "False"))
    ]
    unknown = [_told(run, family="nobody_knows:this", options=o) for o in ({}, {"x": 1})]
    assert prompt_differences(*unknown) == [PromptDifference("x", ("the default", "1"))]


def test_constrained_and_free_replies_are_not_the_same_task():
    variants = make_variants(math_benchmark(4))
    free = evaluate(SimulatedRespondent(0.9, name="one"), variants, progress=False)
    facts = free.facts.plain()
    constrained = Responses(free.table, free.questions, facts | {"asked": facts["asked"] | {"constrain": True}}, "two")
    assert prompt_differences(free, constrained) == [PromptDifference("constrain", ("False", "True"))]
    assert prompt_differences(constrained, constrained) == prompt_differences(free, free) == []
    other = {name: value for name, value in facts["asked"].items() if name != "template_hash"}  # another tool's
    unknown = Responses(free.table, free.questions, facts | {"asked": other}, "three")
    assert prompt_differences(unknown, constrained) == []


def test_other_choices_under_the_same_ids_are_named():
    run = evaluate(SimulatedRespondent(0.9, name="one"), make_variants(math_benchmark(4)), progress=False)
    other = run.questions.copy()
    other["choices"] = [
        tuple(f"{c}!" for c in choices) if i == 2 else choices for i, choices in enumerate(other["choices"])
    ]
    other = Responses(run.table, other, run.facts, "two")
    (said,) = prompt_differences(run, other)
    assert (said.name, said.questions) == ("choices", 1)
    assert re.fullmatch(r"the choices of 1 question, such as .*", str(said))


def test_rows_of_a_first_trial_keep_the_questions_that_it_lacks(tmp_path):
    first = _without_first_trial().first_trial()
    some = first.rows(lambda t: t["method"] != "no such method").rows(lambda t: t["index"] < 1)
    lost = set(first.absent["question_id"])
    assert lost and set(some.absent["question_id"]) == lost
    assert gate(some, at_least={"CoRA": 0.1}).passed is None
    mask = first.table["index"].to_numpy() < 1
    write_responses(first, tmp_path / "first")
    again = read_responses(tmp_path / "first")
    assert again.complete is False and again.first_trial().coverage == first.coverage
    assert gate(again, at_least={"CoRA": 0.1}).passed is None
    assert set(first.rows(mask).absent["question_id"]) == lost


def test_cora_of_another_family_is_found_by_its_name():
    run = evaluate(SimulatedRespondent(0.9, name="a"), make_variants(math_benchmark(6), "cyclic"), progress=False)
    table = score_table(run)
    assert "CoRA (cyclic)" in set(table["score"]) and "CoRA" not in set(table["score"])
    assert (
        lookup(table, "CoRA", respondent="a").value
        == lookup(table, "CoRA (cyclic)", respondent="a").value
        == lookup(score(run), "CoRA").value
    )
    assert gate(run, at_least={"CoRA": 0.1}).table["score"].iloc[0] == "CoRA (cyclic)"
    other = evaluate(SimulatedRespondent(0.4, name="b"), make_variants(math_benchmark(6), "cyclic"), progress=False)
    tables = _table_parts(findings([run, other]))
    assert "CoRA (cyclic)" in tables[1].caption
    assert all("CoRA (cyclic)" in str(t.groups) for t in (tables[0], tables[2]))


def test_respondents_that_are_shown_examples_in_their_own_way_are_ranked():
    "A chat model reads its examples as turns, a base model as text: the same template and shots."
    variants = make_variants(math_benchmark(6))
    one, two = (evaluate(SimulatedRespondent(k, name=n), variants, progress=False) for k, n in ((0.9, "a"), (0.4, "b")))
    shown = [
        Responses(
            run.table,
            run.questions,
            run.facts.plain() | {"asked": run.facts.asked.plain() | {"k": 3, "shots_hash": "ab", "shots_as": how}},
            run.name,
        )
        for run, how in ((one, "turns"), (two, "text"))
    ]
    assert Runs(shown).differences() == []
    assert "(1)" in render(score_table(Runs(shown)))
