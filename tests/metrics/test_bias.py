"""Consistency, position and length ranks: by hand, against plain loops, and simulations of level and coverage."""

import itertools
import re
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from cora_nb.core import CoraError, Question
from cora_nb.metrics.bias import (
    NO_CHOICE,
    _rank_statistics,
    _choice_lengths,
    consistency_table,
    expected_shares,
    length_ranks,
    order_consistency,
    position_ranks,
    rank_test,
)
from cora_nb.responses.columns import column_types
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.results import lookup, values_of
from cora_nb.stats.shares import share_interval
from cora_nb.variants.families import make_variants
from helpers import put_in_state

LETTERS = "ABCDEFGHIJ"


def table(rows):
    "Rows (question_id, sources, answer, prediction) or with a trial after them; only the columns that measures need."
    full = [(*row, 0) if len(row) == 4 else row for row in rows]
    frame = pd.DataFrame(full, columns=["question_id", "sources", "answer", "prediction", "trial"])
    return frame.assign(n_choices=[len(s) for s in frame["sources"]])


def pooled(t):
    "All rows count, whatever their trial."
    return Responses(t).pool_trials()


def by_rank(ranks):
    "`share`, `expected`, `key` by place, and the interval of the share."
    placed = ranks[ranks["place"].notna()]
    shares = placed[placed["score"] == "share"].set_index("place")
    return values_of(placed).unstack("score").join(shares[["low", "high"]])


def counted(ranks):
    "Questions and replies counted, and replies left out, by reason, as numbers of them."
    some = ranks[ranks["score"].str.startswith("replies ")].set_index("score")
    assert some["n"].nunique() == 1 and some["value"].sum() == pytest.approx(1)
    numbers = (some["value"] * some["n"]).to_numpy(float)
    np.testing.assert_allclose(numbers, numbers.round(), atol=1e-9)
    return {"questions": lookup(ranks, "accuracy").n} | dict(
        zip(some.index.str.removeprefix("replies "), numbers.round())
    )


def texts(*lengths):
    return tuple(LETTERS[i] * n for i, n in enumerate(lengths))


# --- by hand --------------------------------------------------------------------------------------

HAND = table(
    [
        ("q", [0, 1, 2], 0, 0),
        ("q", [2, 0, 1], 1, 1),
        ("q", [1, 2, 0], 2, 0),
        ("q", [1, 0, 2], 1, -1),  # choices 0, 0, 1, none
        ("r", [0, 1, 2], 2, 1),
        ("r", [2, 1, 0], 0, 1),  # choice 1 twice
        ("s", [0, 1, 2], 0, 0),
        ("s", [2, 1, 0], 2, 0),  # a tie: 0 and 2
    ]
)


def test_consistency_by_hand():
    per = order_consistency(HAND)
    assert per.index.tolist() == ["q", "r", "s"]
    assert per["consistency"].tolist() == [0.5, 1.0, 0.5]  # the unparsed reply counts in the four of q
    assert per["always"].tolist() == [False, True, False]
    assert per["choice"].tolist() == [0, 1, pd.NA]
    assert (
        per["right"].tolist() == [2, 0, 1]
        and per["no_choice"].tolist() == [1, 0, 0]
        and per["replies"].tolist() == [4, 2, 2]
    )
    found = consistency_table({"run": HAND})
    assert found["respondent"].tolist() == ["run"] * 4
    assert values_of(found, "n").to_dict() == {"accuracy": 8, "consistency": 3, "always": 3, NO_CHOICE: 8}
    assert values_of(found).to_dict() == pytest.approx(
        {"accuracy": 3 / 8, "consistency": 2 / 3, "always": 1 / 3, NO_CHOICE: 1 / 8}
    )
    known = found[found["score"] != NO_CHOICE]
    assert (known["low"] < known["value"]).all() and (known["value"] < known["high"]).all()


def test_position_by_hand():
    ranks = position_ranks(HAND)
    shares = by_rank(ranks)
    assert shares.index.tolist() == [1, 2, 3]
    assert shares["share"].tolist() == pytest.approx([4 / 7, 3 / 7, 0])
    assert shares["key"].tolist() == pytest.approx([3 / 7, 1 / 7, 3 / 7])
    c, q = 3 / 7, np.array([3, 1, 3]) / 7
    assert shares["expected"].tolist() == pytest.approx((c * q + (1 - c) * (1 - q) / 2).tolist())
    assert counted(ranks) == {"questions": 3, "counted": 7, "to other numbers of choices": 0, "without a choice": 1}


def test_length_by_hand():
    "q: lengths 5, 3, 3 (rank 0; ranks 1 and 2 shared). r: 1, 2, 3. s: all 4, left out."
    questions = [
        Question("q", "?", texts(5, 3, 3), 0),
        Question("r", "?", texts(1, 2, 3), 2),
        Question("s", "?", texts(4, 4, 4), 0),
    ]
    ranks = length_ranks(HAND, questions)
    shares = by_rank(ranks)
    assert shares.index.tolist() == [0, 1, 2]
    assert shares["share"].tolist() == pytest.approx([2 / 5, (0.5 + 2) / 5, 0.5 / 5])  # q: 0, 0, tied; r: rank 1 twice
    assert shares["key"].tolist() == pytest.approx([5 / 5, 0, 0])
    assert counted(ranks) == {
        "questions": 2,
        "counted": 5,
        "to other numbers of choices": 0,
        "to choices that the question never had": 0,
        "to equally long choices": 2,
        "without a choice": 1,
    }
    test = lookup(ranks, "chi-squared")
    assert np.isnan(test.p) and test.note == "no test: the right answer has the same rank everywhere"
    turned = length_ranks(HAND, questions, length=lambda t: -len(t) + 9)  # the longest became the shortest
    assert by_rank(turned)["key"].tolist() == pytest.approx([0, 0, 1])


def test_paper_key_is_what_an_all_knowing_respondent_shows():
    key = [0.298, 0.303, 0.18, 0.219]
    assert sum(key) == pytest.approx(1)
    np.testing.assert_allclose(expected_shares(key, 1.0), key)
    np.testing.assert_allclose(expected_shares(key, 0.25), [0.25] * 4)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_two_choices_are_mcnemar(a, b, same):
    if a + b + same == 0:
        return
    x = np.array([[2, 0]] * a + [[0, 2]] * b + [[1, 1]] * same)
    result = lookup(rank_test(x, np.ones_like(x), np.ones(len(x))), "chi-squared")
    assert result.value == pytest.approx((a - b) ** 2 / (a + b) if a + b else 0)
    assert result.p == pytest.approx(chi2.sf((a - b) ** 2 / (a + b), 1) if a + b else 1)
    assert result.n == len(x) and not result.note


# --- plain loops ----------------------------------------------------------------------------------


def loop_consistency(t):
    "question -> (replies, no choice, right, mode's share, mode or None)"
    out, rows = {}, defaultdict(list)
    for r in t.itertuples():
        rows[r.question_id].append(r)
    for q, rs in rows.items():
        seen = Counter(r.sources[r.prediction] for r in rs if r.prediction >= 0)
        top = max(seen.values(), default=0)
        modes = [s for s, n in seen.items() if n == top]
        out[q] = (
            len(rs),
            sum(r.prediction < 0 for r in rs),
            sum(r.prediction == r.answer for r in rs),
            top / len(rs),
            modes[0] if len(modes) == 1 else None,
        )
    return out


def loop_length_mass(lengths, place):
    "Share of a choice at each rank, from all orders of ties."
    A, mass, n = len(lengths), np.zeros(len(lengths)), 0
    for order in itertools.permutations(range(A)):
        ranked = sorted(order, key=lambda i: -lengths[i])  # stable: ties stand in the order given
        mass[ranked.index(place)] += 1
        n += 1
    return mass / n


def loop_ranks(rows, mass):
    "Everything in the result, one question and one rank at a time; `mass(row, place)` says where a choice falls."
    by_question = defaultdict(list)
    for r in rows:
        by_question[r.question_id].append(r)
    X = {q: sum(mass(r, r.prediction) for r in rs) for q, rs in by_question.items()}
    K = {q: sum(mass(r, r.answer) for r in rs) for q, rs in by_question.items()}
    C = {q: sum(r.prediction == r.answer for r in rs) for q, rs in by_question.items()}
    N = {q: len(rs) for q, rs in by_question.items()}
    n, A, G = sum(N.values()), len(next(iter(X.values()))), len(N)
    share, key, c = sum(X.values()) / n, sum(K.values()) / n, sum(C.values()) / n
    expected = [c * k + (1 - c) * (1 - k) / (A - 1) for k in key]
    M, T = np.zeros((A, A)), np.zeros(A)
    for q in N:
        s = np.array(
            [
                X[q][k]
                - N[q] * expected[k]
                - (C[q] - N[q] * c) * (key[k] - (1 - key[k]) / (A - 1))
                - (K[q][k] - N[q] * key[k]) * (c - (1 - c) / (A - 1))
                for k in range(A)
            ]
        )
        s[np.abs(s) < 1e-9] = 0
        z = np.array([s[k] / expected[k] ** 0.5 if expected[k] > 1e-12 else 0 for k in range(A)])
        M, T = M + np.outer(z, z), T + z
    spread, squared = np.trace(M), np.trace(M @ M)
    statistic, df = (T @ T * spread / squared, spread**2 / squared) if spread else (0, A - 1)
    if max(key) > 1 - 1e-12:
        statistic = df = np.nan
    v = [sum((X[q][k] - share[k] * N[q]) ** 2 for q in N) / n**2 * G / (G - 1) if G > 1 else np.nan for k in range(A)]
    return share, key, expected, statistic, df, v


@st.composite
def runs(draw, new=False):
    "A table with odd shapes, and its questions."
    rows, questions = [], []
    for i in range(draw(st.integers(1, 5))):
        A = draw(st.integers(2, 4))
        questions.append(
            Question(
                f"q{i}",
                "?",
                texts(*draw(st.lists(st.integers(1, 4), min_size=A, max_size=A))),
                draw(st.integers(0, A - 1)),
            )
        )
        for trial in range(draw(st.integers(1, 7))):
            shown = draw(st.permutations(range(A)))
            shown = shown[: draw(st.integers(2, A))] if draw(st.integers(0, 3)) == 0 else shown
            if new and draw(st.integers(0, 3)) == 0:
                shown = [*shown[:-1], -draw(st.integers(1, 3))]
            rows.append(
                (
                    f"q{i}",
                    list(shown),
                    draw(st.integers(0, len(shown) - 1)),
                    draw(st.integers(-1, len(shown) - 1)),
                    trial,
                )
            )
    order = draw(st.permutations(range(len(rows))))
    return table([rows[i] for i in order]), questions


@given(runs(new=True))
def test_consistency_against_loops(run):
    per, expected = order_consistency(pooled(run[0])), loop_consistency(run[0])
    assert list(per.index) == list(expected)
    for q, r in per.iterrows():
        assert (r["replies"], r["no_choice"], r["right"]) == expected[q][:3] and r["consistency"] == pytest.approx(
            expected[q][3]
        )
        assert r["always"] == (expected[q][3] == 1)
        assert (None if pd.isna(r["choice"]) else r["choice"]) == expected[q][4]


def compare(ranks, rows, mass):
    share, key, expected, statistic, df, v = loop_ranks(rows, mass)
    shares, test, counts = by_rank(ranks), lookup(ranks, "chi-squared"), counted(ranks)
    for column, value in (("share", share), ("key", key), ("expected", expected)):
        np.testing.assert_allclose(shares[column], value, atol=1e-12)
    for found, value in (
        (test.value, statistic),
        (lookup(ranks, "degrees of freedom").value, df),
        (test.p, chi2.sf(statistic, df)),
    ):
        np.testing.assert_allclose(found, value, rtol=1e-6, atol=1e-9)
    assert counts["counted"] == len(rows) and counts["questions"] == len({r.question_id for r in rows})
    if counts["questions"] == 1:
        assert shares[["low", "high"]].isna().all(axis=None)
    else:
        assert (shares["low"] <= shares["share"] + 1e-9).all() and (shares["share"] <= shares["high"] + 1e-9).all()


@pytest.mark.slow
@settings(max_examples=60)
@given(runs(new=True), st.booleans())
def test_positions_against_loops(run, arrow):
    t, rows = run[0], list(run[0].itertuples())
    if arrow:
        t = t.assign(sources=pd.array([list(s) for s in t["sources"]], dtype=column_types()["sources"]))
    A = max(Counter(r.n_choices for r in rows).items(), key=lambda x: (x[1], x[0]))[0]
    kept = [r for r in rows if r.n_choices == A and r.prediction >= 0]
    if not kept:
        with pytest.raises(CoraError, match="no reply is left"):
            position_ranks(pooled(t))
        return
    ranks = position_ranks(pooled(t))
    compare(ranks, kept, lambda r, place: np.eye(A)[place])
    counts = counted(ranks)
    assert sum(counts.values()) - counts["questions"] == len(rows)
    assert counts["to other numbers of choices"] == sum(r.n_choices != A for r in rows)


@pytest.mark.slow
@settings(max_examples=60)
@given(runs(new=True), st.integers(2, 4))
def test_lengths_against_loops(run, A):
    t, rows, questions = run[0], list(run[0].itertuples()), {q.id: q for q in run[1]}
    shown = lambda r: [len(questions[r.question_id].choices[s]) for s in r.sources]
    kept = [
        r for r in rows if r.n_choices == A and r.prediction >= 0 and min(r.sources) >= 0 and len(set(shown(r))) > 1
    ]
    if not kept:
        with pytest.raises(CoraError, match="no reply is left|that was shown"):
            length_ranks(pooled(t), run[1], n_choices=A)
        return
    ranks = length_ranks(pooled(t), run[1], n_choices=A)
    compare(ranks, kept, lambda r, place: loop_length_mass(shown(r), place))
    counts = counted(ranks)
    assert sum(counts.values()) - counts["questions"] == len(rows)


# --- level and coverage ---------------------------------------------------------------------------

KEY, A, ORDERS = np.array([0.4, 0.3, 0.2, 0.1]), 4, 24


def respondent(kind, rng, G):
    "Sums for each question of a respondent without a bias: predictions, right answers, right replies."
    one, key, right = np.eye(A)[rng.integers(A, size=G)], np.full((G, A), ORDERS / A), np.full(G, ORDERS / A)
    if kind == "guess":
        return rng.multinomial(ORDERS, [1 / A] * A, size=G), key, right
    if kind == "habit":
        return (
            18 * one + rng.multinomial(ORDERS - 18, [1 / A] * A, size=G),
            key,
            right,
        )  # a favourite place of each question
    if kind == "knows":  # 60%, with a favourite place on the rest
        knows = rng.random(G) < 0.6
        return np.where(knows[:, None], ORDERS / A, ORDERS * one), key, np.where(knows, ORDERS, ORDERS / A)
    answer = rng.choice(A, p=KEY, size=G)  # lengths: one choice in all orders, the key is not balanced
    picked = np.where(rng.random(G) < 0.6, answer, (answer + rng.integers(1, A, size=G)) % A)
    return ORDERS * np.eye(A)[picked], ORDERS * np.eye(A)[answer], ORDERS * (picked == answer)


TRUE = {"length": expected_shares(KEY, 0.6)}


def p_of(x, key, right):
    "The p of `rank_test` without the result around it, which thousands of runs do not need."
    return _rank_statistics(x, key, right)[2]


def test_p_of_a_simulated_run_is_that_of_the_result():
    run = respondent("length", np.random.default_rng(0), 30)
    assert p_of(*run) == lookup(rank_test(*run), "chi-squared").p


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["guess", "habit", "knows", "length"])
@pytest.mark.parametrize("G", [20, 80])
def test_level_and_coverage(kind, G):
    rng, runs = np.random.default_rng(G), 600
    alarms, covered, truth = 0, 0, TRUE.get(kind, np.full(A, 1 / A))
    for _ in range(runs):
        x, key, right = respondent(kind, rng, G)
        alarms += p_of(x, key, right) < 0.05
        _, low, high = share_interval(x, x.sum(axis=1))
        covered += ((low <= truth + 1e-9) & (truth <= high + 1e-9)).mean()
    assert alarms / runs < 0.08  # 0.05 + 3.4 standard errors
    assert alarms / runs > (0.02 if G == 80 else 0)  # and it is no empty promise
    assert 0.92 < covered / runs < 0.98 if G == 80 else covered / runs > 0.86


def test_it_finds_a_bias():
    rng, found = np.random.default_rng(0), 0
    for _ in range(100):
        x = rng.multinomial(24, [0.3, 0.25, 0.25, 0.2], size=60)
        found += p_of(x, np.full((60, A), 6.0), np.full(60, 6.0)) < 0.05
    assert found > 95


@pytest.mark.parametrize("family", ["permutations", "cyclic"])
def test_a_respondent_without_regard_to_order_is_exactly_balanced(family):
    rng = np.random.default_rng(0)
    questions = [Question(f"q{i}", "?", texts(*rng.integers(1, 9, size=4)), int(rng.integers(4))) for i in range(20)]
    held = {q.id: rng.integers(4) for q in questions}
    variants = make_variants(questions, family)
    run = make_responses(variants, [LETTERS[v.sources.index(held[v.question_id])] for v in variants])
    ranks = position_ranks(run)
    shares = by_rank(ranks)[["share", "low", "high", "expected", "key"]]
    assert (shares[["share", "expected", "key"]] == 0.25).all(axis=None) and lookup(ranks, "chi-squared").p == 1
    assert ((shares["low"] < 0.25) & (shares["high"] > 0.25)).all()  # other questions might say otherwise
    assert order_consistency(run)["always"].all() and order_consistency(run)["choice"].to_dict() == held
    assert by_rank(length_ranks(run, questions))["share"].sum() == pytest.approx(1)


# --- bad input ------------------------------------------------------------------------------------

QUESTIONS = [Question(q, "?", texts(1, 2, 3), 0) for q in "qrs"]
EVERY = [order_consistency, position_ranks, lambda t: length_ranks(t, QUESTIONS)]


@pytest.mark.parametrize("measure", EVERY)
@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda t: t.iloc[:0], "no responses"),
        (lambda t: t.drop(columns=["sources", "answer"]), "no column sources, answer"),
        (lambda t: t.assign(prediction=3), "row 1, id 'q', prediction: prediction must be an index .* got 3"),
        (lambda t: put_in_state(t, [0], "not_asked"), "1 of 8 prompts were not asked"),
    ],
)
def test_bad_tables(measure, spoil, message):
    "All of them are read by `need` and `flat_replies`, which tests/responses and tests/metrics/test_replies.py test."
    with pytest.raises(CoraError, match=message):
        measure(spoil(HAND))


@pytest.mark.parametrize("measure", EVERY[1:])
@pytest.mark.parametrize("form", ["tfq", "lfgq"])
def test_ranks_need_choices_that_were_shown(measure, form):
    with pytest.raises(CoraError, match=f"replies of the form mcq or several, and there are some of {form}"):
        measure(HAND.assign(form=["mcq", *[form] * 7]))


def test_choices_a_question_never_had_are_told_apart():
    "Two fillers, chosen twice and once: 2 of 4, and not 3 of 4."
    shown = table(
        [("q", [0, -1, -2], 0, 1), ("q", [-2, 0, -1], 1, 2), ("q", [0, -1, -2], 0, 2), ("q", [0, 1, -3], 0, 0)]
    )
    per = order_consistency(shown).loc["q"]
    assert per[["consistency", "choice"]].tolist() == [0.5, -1]


def test_all_predictions_unrecognised():
    silent = HAND.assign(prediction=-1)
    assert (order_consistency(silent)["consistency"] == 0).all() and order_consistency(silent)["choice"].isna().all()
    found = consistency_table({"silent": silent})
    assert values_of(found).to_dict() == {"accuracy": 0, "consistency": 0, "always": 0, NO_CHOICE: 1}
    assert lookup(found, NO_CHOICE).n == 8
    with pytest.raises(CoraError, match=r"no reply is left to count: replies without a choice \(8\)"):
        position_ranks(silent)
    with pytest.raises(CoraError, match=r"no reply is left to count: replies without a choice \(8\)"):
        length_ranks(silent, QUESTIONS)


def test_bad_questions():
    with pytest.raises(
        CoraError,
        match="1 of the 3 questions in the responses are not among the questions given, the first of them 'r'",
    ):
        length_ranks(HAND, [QUESTIONS[0], QUESTIONS[2]])
    with pytest.raises(CoraError, match="3 of the 3 questions"):
        length_ranks(HAND, [])
    with pytest.raises(CoraError, match="two questions have the id 'q'"):
        length_ranks(HAND, [*QUESTIONS, QUESTIONS[0]])
    with pytest.raises(CoraError, match="question 'r': the responses show its choice number 3, but it has 2"):
        length_ranks(HAND, [QUESTIONS[0], Question("r", "?", ("a", "b"), 0), QUESTIONS[2]])
    for value in (None, "x", -1, float("nan"), float("inf")):
        with pytest.raises(CoraError, match="length of a choice must be a number of at least 0"):
            _choice_lengths(QUESTIONS, lambda text: value)


def test_other_bad_arguments():
    with pytest.raises(CoraError, match=r"that was shown \(3\), got 4"):
        position_ranks(HAND, n_choices=4)
    with pytest.raises(CoraError, match="got True"):
        position_ranks(HAND, n_choices=True)
    with pytest.raises(CoraError, match="level must be between 0 and 1, got 95"):
        position_ranks(HAND, level=95)
    with pytest.raises(CoraError, match="no runs"):
        consistency_table({})
    for x, key, right in [
        ([[1, 2]], [[1, 1]], [1]),
        ([[0, 0]], [[0, 0]], [0]),
        ([[1, 1]], [[1, 1]], [3]),
        ([1, 1], [1, 1], [1]),
        ([[1]], [[1]], [1]),
        ([[1, 1]], [[1, 1]], [1, 1]),
    ]:
        with pytest.raises(CoraError):
            rank_test(np.array(x), np.array(key), np.array(right))
    for key, accuracy in [([0.5, 0.6], 0.5), ([1.0], 0.5), ([0.5, 0.5], 1.1), ([-0.5, 1.5], 0.5)]:
        with pytest.raises(CoraError):
            expected_shares(key, accuracy)


def test_sizes_are_counted_and_new_choices_left_out():
    "A divergence set of CoRA: 26 variants for five choices, most often five are shown."
    questions = [Question(f"q{i}", "?", texts(1, 2, 3, 4, 5), i % 5) for i in range(6)]
    run = make_responses(make_variants(questions), ["A"] * 26 * 6)
    assert counted(position_ranks(run)) == {
        "questions": 6,
        "counted": 60,
        "to other numbers of choices": 96,
        "without a choice": 0,
    }
    assert counted(length_ranks(run, questions)) == {
        "questions": 6,
        "counted": 12,
        "to other numbers of choices": 96,
        "to choices that the question never had": 48,
        "to equally long choices": 0,
        "without a choice": 0,
    }
    assert len(by_rank(position_ranks(run, n_choices=2))) == 2
    why = "replies to other numbers of choices (108), replies to choices that the question never had (48)"
    with pytest.raises(CoraError, match=re.escape(f"no reply is left to count: {why}")):
        length_ranks(run, questions, n_choices=3)
