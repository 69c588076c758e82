"""Sequence consistency, its correlation with accuracy and the 2 x 2 matrix.

By hand, against plain loops, properties, the authors' raw data.
"""

import math
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cora_nb.core import CoraError, Question
from cora_nb.metrics.consistency import (
    UNPARSED,
    agreement_matrix,
    chance_consistency,
    compare_formats,
    compare_right,
    consistency_by,
    label_sequences,
    prompt_sequences,
    sequence_accuracy,
    sequence_consistency,
)
from cora_nb.papers.published import load_recorded
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.results import lookup, values_of
from cora_nb.stats.paired import agreement_statistics
from cora_nb.variants.families import make_variants
from helpers import put_in_state

SEQUENCE = st.lists(st.sampled_from(["A", "B", "C", "D", None]), min_size=1, max_size=12)


def plain(answers, right, unparsed="nothing"):
    "K, accuracy, share of the most frequent option, whether it is right: the paper's words, one answer at a time."
    counts = Counter(a for a in answers if a is not None or unparsed == "option")
    D, most = len(answers), max(counts.values(), default=0)
    top = [o for o, c in counts.items() if c == most]
    K = math.nan if D == 1 else (most + sum(c - 1 for o, c in counts.items() if o != top[0])) / D if top else 0.0
    return K, sum(a == right for a in answers) / D, most / D, top.count(right) / len(top) if top else 0.0


@settings(max_examples=60)
@given(st.lists(SEQUENCE, min_size=1, max_size=8), st.sampled_from(UNPARSED), st.data())
def test_against_the_words_of_the_paper(answers, unparsed, data):
    rights = data.draw(st.lists(st.sampled_from("ABCD"), min_size=len(answers), max_size=len(answers)))
    table = label_sequences(answers, rights, unparsed=unparsed)
    expected = [plain(a, r, unparsed) for a, r in zip(answers, rights)]
    np.testing.assert_allclose(
        table[["K", "accuracy", "mode_share", "mode_right"]].to_numpy(float), expected, rtol=1e-12
    )
    assert table["trials"].tolist() == [len(a) for a in answers] and table["no_choice"].tolist() == [
        a.count(None) for a in answers
    ]
    assert sequence_accuracy(answers[0], rights[0]) == expected[0][1]


def test_by_hand():
    assert [sequence_consistency(s) for s in ("AAAAB", "AAABB", "BCDAB", "AA", "AB")] == pytest.approx(
        [0.8, 0.8, 0.4, 1, 0.5]
    )
    assert math.isnan(sequence_consistency("A")) and sequence_consistency([float("nan"), pd.NA, None]) == 0
    assert sequence_consistency([(1, 2), (1, 2), (3,)]) == pytest.approx(2 / 3)  # any label that can be compared
    assert sequence_consistency(pd.Series(["A", "B", None])) == pytest.approx(1 / 3)


@pytest.mark.parametrize("n, D", [(1, 2), (2, 2), (2, 4), (3, 3), (4, 4)])
def test_chance_against_all_sequences(n, D):
    grids = np.indices([n] * D).reshape(D, -1).T
    assert chance_consistency(n, D) == pytest.approx(np.mean([sequence_consistency(list(map(int, g))) for g in grids]))


VARIANTS = [
    v
    for v in make_variants([Question(f"q{i}", "Which?", ("a", "b", "c", "d"), i % 4) for i in range(6)], "cora")
    if v.method in ("original", "shuffled")
]


def run(rng, D=5):
    asked = [v for v in VARIANTS for _ in range(D)]
    replies = [rng.choice(list("ABCD?"), p=[0.4, 0.2, 0.1, 0.1, 0.2]) for _ in asked]
    return make_responses(asked, replies, trials=[*range(D)] * len(VARIANTS)), replies


def test_from_responses_in_any_order():
    responses, replies = run(np.random.default_rng(0))
    table = prompt_sequences(responses)
    for k, v in enumerate(VARIANTS):
        said = [None if r == "?" else r for r in replies[5 * k : 5 * k + 5]]
        row, (K, accuracy, share, right) = table.loc[v.key], plain(said, "ABCD"[v.answer])
        assert row[["K", "accuracy", "mode_share", "mode_right"]].astype(float).tolist() == pytest.approx(
            [K, accuracy, share, right]
        )
        top = Counter(s for s in said if s).most_common(2)
        if top and (len(top) == 1 or top[0][1] > top[1][1]):
            assert row["mode"] == "ABCD".index(top[0][0])
        else:
            assert row["mode"] is pd.NA
    mixed = prompt_sequences(responses.table.sample(frac=1, random_state=1))
    pd.testing.assert_frame_equal(mixed.sort_index(), table.sort_index())
    assert prompt_sequences(responses, "option")["K"].ge(table["K"] - 1e-12).all()


def test_faults_of_responses():
    "What is wrong with a table as such is tested in tests/responses."
    responses, _ = run(np.random.default_rng(1))
    rows = responses.table.drop(columns="correct")
    for bad, words in [
        (rows.iloc[:0], "no responses"),
        (responses.trial(2), "asked once"),
        (pd.concat([rows, rows.iloc[[3]]]), "row 61: question 'q0', original 0, trial 3 stands in an earlier row"),
        (rows.drop(columns="method"), "no column method"),
        (rows.drop(columns="prediction"), "no column prediction"),
        (rows[rows["trial"] == 0].drop(columns="trial"), "no column trial"),
        (put_in_state(rows, slice(None), "not_asked"), "stopped early"),
        (
            rows.assign(answer=[*rows["answer"][:-1], (rows["answer"].iloc[-1] + 1) % 4]),
            "row 60: the right answer differs from that of the other trials",
        ),
    ]:
        with pytest.raises(CoraError, match=words) as e:
            prompt_sequences(bad)
        assert "\n" not in str(e.value)


def test_all_repetitions_count():
    "Other measures look at the first repetition; here repetition is the subject."
    responses, _ = run(np.random.default_rng(2))
    table = prompt_sequences(responses)
    assert (table["trials"] == 5).all()
    pd.testing.assert_frame_equal(prompt_sequences(responses.pool_trials()), table)
    pd.testing.assert_frame_equal(prompt_sequences(Responses(responses.table)), table)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: label_sequences([], "A"), "answers is empty"),
        (lambda: label_sequences(["A", ""], "A", ids=["x", "y"]), "question 'y' has no answer"),
        (lambda: label_sequences(["AB"], [None]), "no right option"),
        (lambda: chance_consistency(0, 5), "n_options must be .* 1 or more, got 0"),
        (lambda: consistency_by(pd.DataFrame()), "by name"),
        (lambda: consistency_by({"x": pd.DataFrame()}), "no column trials"),
        (lambda: compare_right([], []), "not empty"),
        (lambda: compare_right([1, 0], [1]), "equally long"),
        (
            lambda: compare_right([1, math.nan], [1, 1], ("mc", "lf")),
            "mc: right must be 0 or 1, got nan for question number 1",
        ),
        (
            lambda: agreement_matrix(consistency_by({"x": label_sequences(["AB"], "A")})),
            "must be about two formats, but it has shares of 0",
        ),
    ],
)
def test_faults(call, words):
    with pytest.raises(CoraError, match=words) as e:
        call()
    assert "\n" not in str(e.value)


def test_by_group():
    tables = {
        0: label_sequences(["AAAA", "BBBB", "A"], "A", ids=list("xyz")),
        "warm": label_sequences(["AAAB", "ABCC", "BBAA"], "A"),
    }
    table = consistency_by(tables)
    assert table["respondent"].drop_duplicates().tolist() == ["0", "warm"]
    values, n = (values_of(table, what).unstack("respondent").loc[:, ["0", "warm"]] for what in ("value", "n"))
    assert values.loc["K"].tolist() == pytest.approx([1, (0.75 + 0.5 + 0.75) / 3])  # who was asked once has no K ...
    assert values.loc["accuracy"].tolist() == pytest.approx([5 / 9, 6 / 12])  # ... and an accuracy
    assert values.loc["most frequent right"].tolist() == pytest.approx([1 / 2, (1 + 0 + 0.5) / 3])
    assert math.isnan(values.loc["Pearson's r", "0"])
    assert n.loc["replies without a choice"].tolist() == [9, 12] and values.loc["prompts"].tolist() == [3, 3]
    assert n.loc["K"].tolist() == [2, 3] and n.loc["accuracy"].tolist() == [3, 3]
    once = values_of(consistency_by({"once": label_sequences(["A", "B"], "A")}))
    assert math.isnan(once["K"]) and once["accuracy"] == 0.5
    responses, replies = run(np.random.default_rng(3))
    both = consistency_by({"run": prompt_sequences(responses)})
    K = lookup(both, "K")
    assert (K.n, lookup(both, "prompts").value) == (6, 12) and K.low < K.value < K.high
    silent = lookup(both, "replies without a choice")
    assert (silent.value, silent.n) == (replies.count("?") / 60, 60)


def test_groups_are_named_in_the_columns_asked_for():
    table = label_sequences(["AAB", "ABB"], "A")
    by_temperature = consistency_by({0.5: table, 1.0: table}, column="place")
    assert (
        by_temperature["place"].drop_duplicates().tolist() == [0.5, 1.0] and by_temperature["respondent"].isna().all()
    )
    pairs = consistency_by({("gpt", 0.5): table}, column=("respondent", "place"))
    assert set(pairs["respondent"]) == {"gpt"} and set(pairs["place"]) == {0.5}
    with pytest.raises(CoraError, match="a name must be a tuple of respondent, place, got 'gpt'"):
        consistency_by({"gpt": table}, column=("respondent", "place"))


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_matrix_against_definitions(pairs):
    x, y = np.array(pairs, dtype=float).T
    found, swapped = (compare_right(*pair, resamples=20) for pair in ((x, y), (y, x)))
    phi, kappa, largest = (lookup(found, score).value for score in ("phi", "kappa", "largest phi"))
    gap = lookup(found, "accuracy", method="first - second").value
    counts = [[(x * y).sum(), (x * (1 - y)).sum()], [((1 - x) * y).sum(), ((1 - x) * (1 - y)).sum()]]
    assert agreement_matrix(found).to_numpy().tolist() == counts and (found["n"] == len(pairs)).all()
    assert gap == pytest.approx(x.mean() - y.mean())
    if 0 < x.mean() < 1 and 0 < y.mean() < 1:
        assert phi == pytest.approx(np.corrcoef(x, y)[0, 1]) and phi <= largest + 1e-9
        ordered = compare_right(np.sort(x), np.sort(y), resamples=1)  # the most alike these accuracies can be
        assert lookup(ordered, "phi").value == pytest.approx(largest)
    else:
        assert math.isnan(phi)
    agree = (x == y).mean()
    chance = x.mean() * y.mean() + (1 - x.mean()) * (1 - y.mean())
    if chance < 1:
        assert kappa == pytest.approx((agree - chance) / (1 - chance))
    assert [lookup(swapped, score).value for score in ("phi", "kappa")] == pytest.approx([phi, kappa], nan_ok=True)
    assert lookup(swapped, "accuracy", method="first - second").value == -gap


@pytest.mark.slow
def test_bootstrap_of_phi_covers():
    rng, P, inside = np.random.default_rng(4), np.array([0.3, 0.25, 0.1, 0.35]), 0
    true = agreement_statistics(P)[0]
    for _ in range(200):
        cells = rng.multinomial(100, P)
        x, y = np.repeat([1, 1, 0, 0], cells), np.repeat([1, 0, 1, 0], cells)
        low, high = lookup(compare_right(x, y, resamples=400), "phi")[["low", "high"]]
        inside += low <= true <= high
    assert 0.89 <= inside / 200 <= 0.99


def test_formats_from_responses():
    table = lambda ids, right, **more: pd.DataFrame({"question_id": ids, "trial": 0, "correct": right, **more})
    found = compare_formats(
        table(["a", "b", "c", "d"], [True, True, False, False]), table(["d", "c", "a", "x"], [0, 1, 1, 1]), ("mc", "lf")
    )
    matrix = agreement_matrix(found)
    assert matrix.to_numpy().tolist() == [[1, 0], [1, 1]] and lookup(found, "phi").n == 3
    for name in ("mc", "lf"):
        left = lookup(found, "questions left out", method=name)
        assert (left.value, left.n) == (1 / 4, 4)
    assert (matrix.index.name, matrix.columns.name) == ("mc", "lf")
    for first, words in [
        (table(["a", "a"], [1, 1]), "mc: question 'a' has several replies; choose one method and index"),
        (table(["a"], [0], state="not_asked"), "mc: 1 of 1 prompts were not asked because the run stopped early"),
        (table([None], [1]), "mc: .*question_id must not be missing"),
        (table(["a"], [2]), "correct must be true or false"),
        (table(["a"], [1]).drop(columns="correct"), "mc: the responses have no column correct"),
        (table(["b"], [1]), "no question is in both runs; mc begins with 'b', lf with 'a'"),
    ]:
        with pytest.raises(CoraError, match=words):
            compare_formats(first, table(["a"], [1]), ("mc", "lf"))


def test_the_authors_raw_data():
    recorded = load_recorded("li2024/consistency_lfg_gpt35")
    table = label_sequences(recorded["Answer"], "D")
    np.testing.assert_allclose(table["K"], recorded["Consistency"], atol=1e-8)
    np.testing.assert_allclose(table["accuracy"], recorded["Accuracy"], atol=1e-8)
    found = consistency_by({"gpt": table})
    r = lookup(found, "Pearson's r")
    assert f"{lookup(found, 'K').value:.3f}" == "0.850" and f"{r.value:.3f}" == "0.416"
    assert [r.low, r.high] == pytest.approx([0.239, 0.566], abs=1e-3) and r.p < 1e-4


def test_light_import():
    heavy = {"scipy", "matplotlib", "seaborn", "torch", "sklearn"}
    code = f"import sys, cora_nb.metrics.consistency as m; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
