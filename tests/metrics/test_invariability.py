"""The metrics of the MCQA+ paper on choices shown together: by hand, against plain loops, and what is refused."""

import math
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import LETTERS, CoraError, Question
from cora_nb.metrics.invariability import (
    acc_h,
    always_right,
    choices_sweep,
    consistency_classes,
    _first_order,
    mcqa_plus_scores,
    misleading_choices,
    nota_table,
    order_counts,
    order_scores,
    orders,
    s_c,
    wrong_on_original,
)
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.results import lookup, values_of
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants
from choice_tables import table


@st.composite
def order_tables(draw, equal=False, least=2):
    """Several orders of a few questions; 0 to 3 of the choices are new; the right one may be new too.

    New choices are numbered, or all -1 as in version 0.1.
    """
    rows, n, step = [], draw(st.integers(least, 5)), draw(st.sampled_from([0, 1]))
    for q in range(draw(st.integers(1, 5))):
        size, n_new = draw(st.integers(2, 5)), draw(st.integers(0, 3))
        items = [*range(max(size - n_new, 1)), *(-1 - step * i for i in range(n_new))]
        if len(items) < 2:
            items.append(7)
        right = draw(st.integers(0, len(items) - 1))
        for i in range(n if equal else draw(st.integers(least, 5))):
            order = draw(st.permutations(range(len(items))))
            rows.append(
                (
                    f"q{q}",
                    "original" if i == 0 else "reordered",
                    max(i - 1, 0),
                    [items[k] for k in order],
                    order.index(right),
                    draw(st.integers(-1, len(items) - 1)),
                )
            )
    return table(draw(st.permutations(rows)))


def loop_counts(frame):
    "One question after the other, one reply after the other."
    by_question = defaultdict(list)
    for row in frame.to_dict("records"):
        by_question[row["question_id"]].append(row)
    result = {}
    for q, rows in by_question.items():
        names = []
        for row in rows:
            p = row["prediction"]
            if p < 0:
                continue
            source = row["sources"][p]
            if p == row["answer"]:
                names.append("right")
            else:
                names.append(source)
        count = Counter(names)
        most = max(count.values(), default=0)
        result[q] = dict(
            orders=len(rows),
            no_choice=len(rows) - len(names),
            right=count["right"],
            n_same=most,
            n_modes=sum(c == most for c in count.values() if most),
        )
    return result


# --- orders ---


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(order_tables())
def test_counts_and_scores_against_loops(frame):
    loop = loop_counts(frame)
    assert order_counts(frame).to_dict("index") == loop
    assert acc_h(frame) == pytest.approx(sum(c["right"] == c["orders"] for c in loop.values()) / len(loop))
    assert s_c(frame) == pytest.approx(sum(c["n_same"] / c["orders"] for c in loop.values()) / len(loop))
    assert set(always_right(frame)) == {q for q, c in loop.items() if c["right"] == c["orders"]}
    assert acc_h(frame) <= s_c(frame) + 1e-12


@pytest.mark.parametrize("n, nota", [(6, False), (10, False), (10, True)])
def test_fillers_are_choices_of_their_own(n, nota):
    "Eq. 1 counted by the texts chosen, above the original number of choices."
    asked = [Question(f"q{i}", "?", ("w", "x", "y", "z"), i % 4) for i in range(60)]
    variants = make_variants(asked, "reorderings", n_choices=n, nota=nota)
    names = {q.id: make_variants([q], "reorderings", n_choices=n, nota=nota)[0].choices[-1] for q in asked}
    fond = [v.choices.index(names[v.question_id]) if i % 5 else i % n for i, v in enumerate(variants)]
    responses = make_responses(variants, [LETTERS[p] for p in fond])
    texts = defaultdict(list)
    for v, p in zip(variants, fond):
        texts[v.question_id].append(v.choices[p])
    expected = np.mean([max(Counter(t).values()) / len(t) for t in texts.values()])
    assert expected > 0.7 and s_c(responses) == pytest.approx(expected)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(order_tables(equal=True), st.sampled_from(["share", "wrong", "right"]))
def test_classes_against_loops(frame, ties):
    loop, classes = loop_counts(frame), consistency_classes(frame, ties=ties)
    n = next(iter(loop.values()))["orders"]
    share, accuracy = (classes[classes["score"] == s].set_index("place") for s in ("share", "accuracy"))
    assert share.index.tolist() == accuracy.index.tolist() == list(range(n, -1, -1))
    assert (share["n"] == len(loop)).all() and accuracy["n"].sum() == len(loop)
    for same in share.index:
        here = [c for c in loop.values() if c["n_same"] == same]
        assert share.loc[same, "value"] == pytest.approx(len(here) / len(loop))
        assert accuracy.loc[same, "n"] == len(here)
        if same < 2 or not here:
            assert math.isnan(accuracy.loc[same, "value"])
            continue
        worth = [
            0
            if c["right"] < same
            else 1
            if c["n_modes"] == 1
            else {"share": 1 / c["n_modes"], "wrong": 0, "right": 1}[ties]
            for c in here
        ]
        assert accuracy.loc[same, "value"] == pytest.approx(sum(worth) / len(here))
    assert s_c(frame) == pytest.approx((share.index / n * share["value"]).sum())
    assert acc_h(frame) == pytest.approx(share.loc[n, "value"] * np.nan_to_num(accuracy.loc[n, "value"]))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(order_tables(least=1))
def test_subsets_against_loops(frame):
    wrong, misled = set(), {}
    for row in frame[frame["method"] == "original"].to_dict("records"):
        if row["prediction"] == row["answer"]:
            continue
        wrong.add(row["question_id"])
        if row["prediction"] >= 0 and row["sources"][row["prediction"]] >= 0:
            misled[row["question_id"]] = row["sources"][row["prediction"]]
    assert set(wrong_on_original(frame)) == wrong and misleading_choices(frame).to_dict() == misled
    first = _first_order(frame).table
    assert (first["method"] == "original").all() and first["question_id"].is_unique


def test_repetitions():
    "The first repetition counts, another where it is chosen, and all where they are pooled."
    rows = [("q", "original", 0, [0, 1], 0, 0), ("q", "reordered", 0, [1, 0], 1, 1)]
    frame = pd.concat([table(rows), table([(*r[:5], 0) for r in rows]).assign(trial=1)], ignore_index=True)
    run = Responses(frame)
    assert acc_h(run) == acc_h(frame) == 1 and acc_h(run.trial(1)) == 0 and acc_h(run.pool_trials()) == 0
    assert order_counts(run.pool_trials()).loc["q", ["orders", "right"]].tolist() == [4, 3]
    assert orders(run).trials == (0, 1) and len(_first_order(run)) == 1
    assert lookup(mcqa_plus_scores(run.trial(1)), "MCQA+").value == 1 / 2


def test_tie_of_three_and_a_single_reply():
    shown = [0, 1, 2]
    frame = table(
        [("q", "reordered", i, shown, 0, p) for i, p in enumerate([0, 0, 1, 1, 2, 2])]
        + [("r", "reordered", i, shown, 0, p) for i, p in enumerate([0, -1, -1, -1, -1, -1])]
    )
    classes = consistency_classes(frame)
    assert lookup(classes, "accuracy", place=2).value == pytest.approx(1 / 3)
    alone = lookup(classes, "accuracy", place=1)
    assert alone.n == 1 and math.isnan(alone.value)


def test_orders_takes_four_of_fourteen():
    shown = [0, 1, 2, 3]
    rows = [
        ("q", "original", 0, shown, 0, 0),
        *[("q", "reordered", i, shown[::-1], 3, 3) for i in range(3)],
        ("q", "options_2", 0, [0, 1], 0, 0),
        ("q", "nota_answer", 0, [-1, 1, 2, 3], 0, 1),
        *[("q", "true_false", i, [-1, -2], int(i > 0), 0) for i in range(4)],
    ]
    frame = table(rows)
    assert len(orders(frame)) == 4 and acc_h(orders(frame)) == 1
    with pytest.raises(CoraError, match="'q' was shown different choices"):
        acc_h(frame)
    sweep = choices_sweep(frame)
    assert values_of(sweep, "n").unstack()["S_c"].to_dict() == {2: 0, 4: 1}
    assert values_of(sweep).unstack()["Acc"].to_dict() == {2: 1, 4: 1}
    denied = nota_table(orders(frame), frame[frame["method"] == "nota_answer"])
    assert values_of(denied).unstack()["Acc after"].to_dict() == {"all": 0, "always right": 0}


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(order_tables(), st.data())
def test_nota_table_against_loops(frame, data):
    after = frame.assign(
        prediction=[data.draw(st.integers(-1, n - 1)) for n in frame["n_choices"]],
        method=frame["method"].replace("original", "nota_answer"),
        index=frame["index"] + (frame["method"] != "original"),
    )
    after["correct"] = after["prediction"] == after["answer"]
    kept = data.draw(st.booleans())
    if kept:
        after = after[after["question_id"].isin(set(always_right(frame)) or {"q0"})]
    result = nota_table(frame, after)

    def scores(t):
        acc, hard = {}, {}
        for row in t.to_dict("records"):
            ok = row["prediction"] == row["answer"]
            hard[row["question_id"]] = hard.get(row["question_id"], True) and ok
            if row["method"] in ("original", "nota_answer"):
                acc[row["question_id"]] = ok
        return {"Acc": acc, "Acc-H": hard}

    was, now = scores(frame), scores(after)
    assert len(result) == 2 * 2 * 3 and set(result["method"]) == {"all", "always right"}
    for subset in ("all", "always right"):
        ids = [q for q, ok in was["Acc-H"].items() if ok or subset == "all"]
        for score in ("Acc", "Acc-H"):
            rows = [lookup(result, f"{score} {w}", method=subset) for w in ("before", "after", "difference")]
            there = sum(q in now[score] for q in ids)
            assert [row.n for row in rows] == [len(ids), there, there]
            if not ids or there < len(ids):
                assert math.isnan(rows[1].value) and math.isnan(rows[2].value)
                continue
            before, then = (sum(t[score][q] for q in ids) / len(ids) for t in (was, now))
            assert [row.value for row in rows] == pytest.approx([before, then, then - before])


def test_nota_table_refuses_what_was_not_changed():
    rows = table([("q", "original" if i == 0 else "reordered", max(i - 1, 0), [0, 1, 2], 0, 0) for i in range(4)])
    with pytest.raises(
        CoraError,
        match="after must have None of the above as the right choice, but question 'q' is in its original form",
    ):
        nota_table(rows, rows)


def test_sets_that_agree_in_sum_and_squares_are_different_sets():
    frame = table([("q", "original", 0, [1, 5, 6], 0, 0), ("q", "reordered", 0, [2, 3, 7], 0, 0)])
    with pytest.raises(CoraError, match="'q' was shown different choices"):
        s_c(frame)


def test_sweep_against_the_parts():
    rng = np.random.default_rng(5)
    rows = [
        (f"q{q}", f"options_{n}", i, list(rng.permutation([*range(min(n, 4)), *range(-1, 3 - n, -1)])), 0, 0)
        for q in range(30)
        for n in (2, 3, 4, 6)
        for i in range(4)
    ]
    frame = table(rows)
    frame["answer"] = [list(s).index(0) for s in frame["sources"]]
    frame["prediction"] = [
        int(rng.integers(-1, n)) if rng.random() < 0.5 else a for n, a in zip(frame["n_choices"], frame["answer"])
    ]
    frame["correct"] = frame["answer"] == frame["prediction"]
    sweep = choices_sweep(frame)
    assert list(dict.fromkeys(sweep["place"])) == [2, 3, 4, 6]
    for n, row in values_of(sweep).unstack().iterrows():
        part, acc = frame[frame["n_choices"] == n], lookup(sweep, "Acc", place=n)
        assert row["Acc-H"] == pytest.approx(acc_h(part)) and row["S_c"] == pytest.approx(s_c(part))
        assert row["Acc"] == pytest.approx(part.loc[part["index"] == 0, "correct"].mean())
        assert acc.low <= acc.value <= acc.high


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(order_tables(least=1))
def test_order_scores_against_loops(frame):
    loop = loop_counts(frame)
    several = [c for c in loop.values() if c["orders"] > 1]
    right = [row["correct"] for row in frame.to_dict("records") if row["method"] == "original"]
    columns = {
        "Acc": [float(x) for x in right],
        "S_c": [c["n_same"] / c["orders"] for c in several],
        "Acc-H": [float(c["right"] == c["orders"]) for c in several],
    }
    found = order_scores(frame)
    assert found["score"].tolist() == list(columns)
    assert found[["benchmark", "method", "subject", "place", "p"]].isna().all(axis=None)
    for name, values in columns.items():
        row = lookup(found, name)
        assert row.n == len(values)
        if not values:
            assert row[["value", "low", "high"]].isna().all()
            continue
        assert row.value == pytest.approx(sum(values) / len(values))
        if len(values) < 2:
            assert row[["low", "high"]].isna().all()
            continue
        assert row.low - 1e-9 <= row.value <= row.high + 1e-9
        wider = lookup(order_scores(frame, level=0.99), name)
        assert wider.low <= row.low and row.high <= wider.high


# --- which rows the sweep takes ---

QUESTIONS = [Question(f"q{i}", "?", ("north", "south", "east", "west"), i % 4) for i in range(6)] + [
    Question("own", "?", ("4", "7", "9", "None of these"), 1)
]


def replies_of(family, seed=0, luck=0, **options):
    "Graded replies of somebody who guesses."
    variants, rng = make_variants(QUESTIONS, family, seed=seed, **options), np.random.default_rng(luck)
    return make_responses(variants, ["ABCDEFGHIJ"[rng.integers(v.n_choices)] for v in variants])


@pytest.mark.slow
def test_sweep_leaves_out_other_forms():
    "Every method of both families, and those that are still to come."
    plain = {str(n): replies_of("reorderings", luck=n, n_choices=n) for n in (2, 4, 6)}
    denied = {f"{n} denied": replies_of("reorderings", luck=n, n_choices=n, nota=True) for n in (2, 4, 6)}
    expected = choices_sweep(plain)
    methods = {m for r in denied.values() for m in r.table["method"]}
    assert methods == {"nota_answer", "options_2_nota_answer", "options_6_nota_answer", "reordered"}
    pd.testing.assert_frame_equal(choices_sweep(plain | denied), expected)
    mixed = {k: r.table.sample(frac=1, random_state=1) for k, r in (denied | plain).items()}
    pd.testing.assert_frame_equal(choices_sweep(mixed), expected)
    one_order = {k: r.table.drop_duplicates("question_id") for k, r in plain.items()}
    for method in (
        "true_false",
        "true_false_written",
        "multiple_selection",
        "replaced",
        "options_6_replaced",
        "nota_answer",
        "x_nota_answer",
    ):
        other = {
            f"{k} {method}": t.assign(method=method, prediction=0, correct=t["answer"] == 0)
            for k, t in one_order.items()
        }
        pd.testing.assert_frame_equal(choices_sweep(plain | other), expected)
        with pytest.raises(CoraError, match="there are no responses to score"):
            choices_sweep(other)
    with pytest.raises(CoraError, match="there are no responses to score"):
        choices_sweep(denied)
    further = {  # known by the new choice that is right
        k: r.rows(lambda t: (t["method"] == "reordered") & (t["question_id"] != "own")) for k, r in denied.items()
    }
    pd.testing.assert_frame_equal(choices_sweep(plain | further), expected)
    with pytest.raises(CoraError, match="there are no responses to score"):
        choices_sweep(further)


def test_sweep_takes_both_families_and_no_order_twice():
    plus, sized = (
        replies_of("mcqa_plus", luck=9),
        {str(n): replies_of("reorderings", luck=n, n_choices=n) for n in (2, 6, 10)},
    )
    both = choices_sweep({"plus": plus} | sized)

    def at(sweep, *places):
        return sweep[sweep["place"].isin(places)].reset_index(drop=True)

    pd.testing.assert_frame_equal(at(both, 2, 6, 10), choices_sweep(sized))
    pd.testing.assert_frame_equal(at(both, 4), choices_sweep(orders(plus)))
    n = values_of(both, "n").unstack()
    assert n.loc[[3, 8], "S_c"].tolist() == [0, 0] and n["Acc"].eq(len(QUESTIONS)).all()
    again = replies_of("reorderings", luck=4)
    pd.testing.assert_frame_equal(at(choices_sweep({"plus": plus, "again": again}), 4), choices_sweep(again))
    for other in (again, again.table.assign(family="other")):
        with pytest.raises(CoraError, match="'q0' was asked with 4 choices in two of the runs"):
            choices_sweep({"plus": plus.table.assign(family="other"), "again": other})
    with pytest.raises(CoraError, match="runs must be of one model, got respondent, bob"):
        choices_sweep({"ann": plus, "bob": again.table.assign(respondent="bob")})


# --- Table 7 ---


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(order_tables(), st.integers(0, 5))
def test_mcqa_plus_against_loops(frame, seed):
    rows = frame.to_dict("records")
    original = [r["correct"] for r in rows if r["method"] == "original"]
    found = mcqa_plus_scores(frame, seed=seed)
    value = values_of(found)
    assert value["MCQA"] == pytest.approx(sum(original) / len(original))
    assert value["MCQA+"] == pytest.approx(sum(r["correct"] for r in rows) / len(rows))
    assert values_of(found, "n").to_dict() == {
        **dict.fromkeys(["MCQA", "MCQA+ (x1)", "MCQA+ (x1) difference"], len(original)),
        **dict.fromkeys(["MCQA+", "MCQA+ difference"], len(rows)),
    }
    for name in ("MCQA+", "MCQA+ (x1)"):
        assert value[f"{name} difference"] == value[name] - value["MCQA"]
    shuffled = frame.sample(frac=1, random_state=seed)
    pd.testing.assert_frame_equal(mcqa_plus_scores(shuffled, seed=seed), found)
    sampled = frame[frame["method"] == "original"]
    same = mcqa_plus_scores(frame, original=sampled, sampled=sampled)
    assert lookup(same, "MCQA+ (x1) difference").value == 0


def test_a_part_of_the_variants_is_told():
    "As `score` does: two of the fourteen variants are not MCQA+, and the number says so."
    variants, who = make_variants(QUESTIONS[:6], "mcqa_plus"), SimulatedRespondent(knows=0.5)
    two = [v for v in variants if v.method in ("original", "options_2")]
    whole, part = (evaluate(who, v, progress=False) for v in (variants, two))
    assert not mcqa_plus_scores(whole)["note"].any()
    notes = values_of(mcqa_plus_scores(part), "note")
    assert notes["MCQA"] == "" and notes.drop("MCQA").eq("2 of 14 variants").all()
    sampled = evaluate(who, make_variants(QUESTIONS[:6], "mcqa_plus", sample=1), progress=False)
    notes = values_of(mcqa_plus_scores(part, sampled=sampled), "note")
    assert notes["MCQA+"] == "2 of 14 variants" and notes["MCQA+ (x1)"] == ""


# --- the printed numbers ---


# --- what is refused ---

OK = table([("q", "original", 0, [0, 1], 0, 0), ("q", "reordered", 0, [1, 0], 1, 0)])
STOPPED = table([("q", "original", 0, [0, 1], 0, 0), ("q", "reordered", 0, [1, 0], 1, -1)]).assign(
    state=["answered", "not_asked"]
)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: s_c(STOPPED), "stopped early"),
        (lambda: s_c(OK.assign(family=["a", "b"])), "several families, a, b"),
        (lambda: s_c(OK.assign(sources=[[0, 1], [2, 0]])), "was shown different choices"),
        (lambda: acc_h(OK.iloc[:1]), "'q' was asked in 1"),
        (lambda: order_scores(OK, level=1), "level must be between 0 and 1, got 1"),
        (lambda: orders(OK.drop(columns="method")), "no column method"),
        (lambda: _first_order(None), "responses must be Responses or a table, got a NoneType"),
        (lambda: consistency_classes(OK, level=95), "level must be between 0 and 1, got 95"),
        (lambda: nota_table(OK.iloc[:1], OK), "before must have at least 2 orders"),
        (lambda: mcqa_plus_scores(OK, original=OK), "MCQA needs one reply to each question, but 'q' has 2"),
        (
            lambda: mcqa_plus_scores(OK, sampled=OK.iloc[:1].assign(question_id="r")),
            "2 questions are in only one of the runs, such as 'q'",
        ),
        (lambda: mcqa_plus_scores(OK.iloc[1:]), "no originals among the responses"),
    ],
)
def test_refused(call, message):
    with pytest.raises(CoraError) as error:
        call()
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("options", [{}, {"orders": 6}, {"nota_place": "last"}])
def test_one_of_each_is_the_one_that_the_family_draws(seed, options):
    "MCQA+ (x1) counted on all replies is that of a run of `sample=1` with the same seed."
    questions = load_benchmark("math")[:80]
    written = {(q.id, 1): f"Is it so? {q.text}" for q in questions[:40]}
    who = SimulatedRespondent(knows=0.5, seed=3)
    for more in (options, options | {"statements": written}):
        whole = evaluate(who, make_variants(questions, "mcqa_plus", seed, **more), progress=False)
        one = evaluate(who, make_variants(questions, "mcqa_plus", seed, sample=1, **more), progress=False)
        here, there = mcqa_plus_scores(whole), mcqa_plus_scores(whole, sampled=one)
        pd.testing.assert_frame_equal(here.drop(columns="remarks"), there.drop(columns="remarks"))
        again = mcqa_plus_scores(whole.table.sample(frac=1, random_state=1), seed=seed)  # a table does not say its seed
        assert values_of(again)["MCQA+ (x1)"] == values_of(here)["MCQA+ (x1)"]
