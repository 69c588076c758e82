"""Confidences from each of their sources: scores, whole replies, and repeated answers against their description."""

import math
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cora_nb.core import CoraError, Question
from cora_nb.metrics.calibration import calibration_table, ece
from cora_nb.metrics.confidence import (
    SOURCES,
    answer_shares,
    confidences,
    label_shares,
    mean_logprob,
    reply_groups,
    reply_logprobs,
    score_confidence,
    unified_confidence,
)
from cora_nb.respondents.protocol import Reply
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.responses.responses import make_responses
from cora_nb.runs.grading import apply_labels
from cora_nb.variants.families import make_variants
from helpers import put_in_state

QUESTIONS = [Question(f"q{i}", "Which?", ("a", "b", "c", "d")[: 2 + i % 3], 0) for i in range(60)]
VARIANTS = [v for v in make_variants(QUESTIONS, "cora") if v.method == "original"]


def run(rng):
    scores = [tuple(rng.normal(size=v.n_choices)) for v in VARIANTS]
    return make_responses(
        VARIANTS,
        [Reply("ABCD"[int(np.argmax(s))] if i % 10 else "?", s, 0.9 if i % 7 else None) for i, s in enumerate(scores)],
    ), scores


def test_confidences_from_both_sources():
    responses, scores = run(np.random.default_rng(6))
    given, soft = confidences(responses), confidences(responses, "scores")
    assert given["confidence"].isna().sum() == 9 and given.loc[10, ["confidence", "right", "no_choice"]].tolist() == [
        0.9,
        False,
        True,
    ]  # unrecognised: wrong, and kept
    for i, s in enumerate(scores):
        if i % 10:
            assert soft.loc[i, "confidence"] == pytest.approx(max(np.exp(s)) / sum(np.exp(s)))
        else:
            assert math.isnan(soft.loc[i, "confidence"])
    t = responses.table
    for bad, words in [
        (t.drop(columns="confidence"), "no column confidence"),
        (t.assign(confidence=1.01), "got 1.01 for question 'q0'"),
        (put_in_state(t, slice(None), "not_asked"), "stopped early"),
        (t.iloc[:0], "no responses"),
    ]:
        with pytest.raises(CoraError, match=words):
            confidences(bad)
    with pytest.raises(CoraError, match="source must be one of"):
        confidences(responses, "x")


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: score_confidence([(0.0,)], [1]), "the prediction is choice number 2, but there are 1 scores"),
        (lambda: score_confidence([(0.0, math.inf)], [0]), "log-probabilities"),
        (lambda: mean_logprob("x"), "must be numbers"),
        (lambda: mean_logprob([]), "at least one token"),
        (lambda: mean_logprob([-1, 0.1]), "at most 0, got 0.1"),
        (
            lambda: reply_logprobs(pd.DataFrame({"question_id": ["q"], "confidence": [1.5], "n_tokens": [1]})),
            "reply number 0: confidence .* got 1.5",
        ),
        (lambda: reply_logprobs(pd.DataFrame({"question_id": ["q"]})), "neither the column mean_logprob nor"),
        (lambda: answer_shares(["A"], [-1.0], width=0), "width"),
    ],
)
def test_faults(call, words):
    with pytest.raises(CoraError, match=words) as e:
        call()
    assert "\n" not in str(e.value)


# --- unified confidence ---


def plain_unified(answers, logprobs, label, W):
    "The five steps of the paper, one at a time."
    counts, best = Counter(answers), {}
    for a, x in zip(answers, logprobs):
        best[a] = max(best.get(a, -math.inf), x)
    first = sorted(counts, key=lambda a: (-counts[a], -best[a]))[:W]
    total, sums = sum(math.exp(best[a]) for a in first), defaultdict(float)
    for a in first:
        sums[label(a)] += math.exp(best[a]) / total
    return dict(sums)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abcdefg"), st.floats(-30, 0)), min_size=1, max_size=12), st.integers(1, 6))
def test_unified_against_its_steps(pairs, W):
    answers, logprobs = zip(*pairs)
    label = lambda a: "abc".find(a)
    table = answer_shares(answers, logprobs, label, W)
    sums = label_shares(table)
    assert sums.to_dict() == pytest.approx(plain_unified(answers, logprobs, label, W), abs=1e-12)
    assert (
        table["confidence"].sum() == pytest.approx(1)
        and table["kept"].sum() == min(W, len(set(answers)))
        and sums.is_monotonic_decreasing
    )
    moved = answer_shares(
        answers, [x - 700 for x in logprobs], label, W
    )  # only differences count, and nothing underflows
    np.testing.assert_allclose(moved["confidence"], table["confidence"], atol=1e-9)


def test_unified_ties_and_extremes():
    assert answer_shares(["b", "a"], [-1.0, -1.0])["answer"].tolist() == ["b", "a"]
    assert label_shares(answer_shares(["b", "a", "c"], [-1.0] * 3)).index.tolist() == ["b", "a", "c"]
    assert answer_shares(["a ", "a", "b"], [-math.inf] * 3)["confidence"].tolist() == [0.5, 0.5]
    assert label_shares(answer_shares(["a", "b"], [-1.0, -1.0], {"a": 1}.get)).to_dict() == {1: 0.5}


def test_unified_from_responses():
    asked = [v for v in VARIANTS[:3] for _ in range(4)]
    texts, logprobs = (
        ["A", "A", "B", "?", "?", "?", "!", "?", None, "B", "B.", "B"],
        [-1, -2, -0.5, -3, -1, -1, -1, -1, -1, math.nan, -1, -1],
    )
    responses = make_responses(asked, [Reply(t, error=None if t else "lost") for t in texts], trials=[*range(4)] * 3)
    table = unified_confidence(responses, logprobs)
    total = sum(map(math.exp, (-1, -0.5, -3)))
    assert (
        table["prediction"].tolist() == [1, -1, 1]
        and table["unused"].tolist() == [0, 0, 2]
        and table["right"].tolist() == [False] * 3
    )
    assert table["confidence"].tolist() == pytest.approx([math.exp(-0.5) / total, math.nan, 1.0], nan_ok=True)
    order = np.random.default_rng(0).permutation(12)
    mixed = unified_confidence(responses.table.iloc[order], np.array(logprobs)[order])
    pd.testing.assert_frame_equal(mixed.sort_index(), table.sort_index())
    with pytest.raises(CoraError, match="one for each of the 12 rows"):
        unified_confidence(responses, [-1.0])
    with pytest.raises(CoraError, match="at most 0, got 1.0"):
        unified_confidence(responses, np.ones(12))


@pytest.mark.slow
def test_unified_needs_no_second_run(tmp_path):
    "What the respondent said beside its replies stands in the responses, also after a round trip through files."
    asked, rng = [v for v in VARIANTS[:5] for _ in range(4)], np.random.default_rng(3)
    replies, logprobs = [], []
    for i in range(20):
        n, mean = int(rng.integers(1, 9)), -float(rng.random())
        meta = {"mean_logprob": mean} if i % 3 else {"completion_tokens": n}
        known = i % 7 != 0
        replies.append(Reply("AB?"[i % 3], confidence=math.exp(mean * n) if known else None, meta=meta))
        logprobs.append(mean if i % 3 or known else math.nan)
    run = make_responses(asked, replies, trials=[*range(4)] * 5)
    np.testing.assert_allclose(reply_logprobs(run), logprobs, rtol=1e-12)
    expected = unified_confidence(run, logprobs)
    pd.testing.assert_frame_equal(unified_confidence(run), expected)
    write_responses(run, tmp_path / "run")
    again = read_responses(tmp_path / "run")
    pd.testing.assert_frame_equal(unified_confidence(again), expected)
    known = confidences(again, "unified")
    assert known["question_id"].tolist() == expected.index.get_level_values(0).tolist()
    for column in ("n_choices", "confidence", "right"):
        np.testing.assert_array_equal(known[column], expected[column])
    np.testing.assert_array_equal(known["no_choice"], expected["prediction"] < 0)
    found = calibration_table({"run": run}, "unified", bins=5)
    missing = found[found["score"] == "replies without a confidence"]
    assert missing["n"].sum() == 5
    assert missing["value"] @ missing["n"].astype(float) == pytest.approx(expected["confidence"].isna().sum())


def test_sources_look_at_one_repetition_and_unified_at_all():
    asked = [v for v in VARIANTS[:2] for _ in range(2)]
    replies = [Reply("A", (0.0, -1.0) if v.n_choices == 2 else (0.0, -1.0, -2.0), 0.5) for v in asked]
    run = make_responses(asked, replies, trials=[0, 1, 0, 1])
    assert [len(confidences(run, source)) for source in SOURCES] == [2, 2, 2]
    assert len(confidences(run.pool_trials())) == 4 and len(confidences(run.trial(1))) == 2


# --- unified confidence of long form: a wrong sentence is an answer ---

FOUR = [Question(f"f{i}", f"Which {i}?", ("red", "green", "blue", "grey"), i % 4) for i in range(40)]


def pandas_unified(table, width=4):
    "The paper's steps in a few lines of pandas: the label is the group, and whether it was graded right."
    said = table.assign(words=table["reply"].str.strip(), row=range(len(table)))
    long = (said["form"] == "lfgq") & (said["prediction"] < 0)
    said["group"] = said["prediction"].astype(object).mask(long, said["words"]).mask(~long & (said["prediction"] < 0))
    by, keys = ["question_id", "method", "index"], ["question_id", "method", "index", "group"]
    how = dict(count=("row", "size"), p=("mean_logprob", "max"), group=("group", "first"), row=("row", "min"))
    answers = said.groupby([*by, "words"], sort=False).agg(**how, right=("correct", "first")).reset_index()
    answers = answers.sort_values(["count", "p", "row"], ascending=[False, False, True]).groupby(by).head(width)
    weight = np.exp(answers["p"])
    answers["c"] = weight / weight.groupby([answers[k] for k in by]).transform("sum")
    sums = answers.groupby(keys, sort=False).agg(c=("c", "sum"), right=("right", "first")).reset_index()
    best = sums.sort_values("c", ascending=False, kind="stable").groupby(by).head(1).set_index(by)
    return best.reindex(pd.MultiIndex.from_frame(table[by].drop_duplicates()))


def drawn_run(variants, rng, trials=5):
    "Sentences right and wrong, letters, words for yes and no, and now and then nothing that can be read."
    asked, replies = [v for v in variants for _ in range(trials)], []
    for i, v in enumerate(asked):
        if v.form == "lfgq":
            words = [f"It is {v.choices[v.answer]}.", v.choices[v.answer], "It is something else.", "Who knows?"]
            words += [f"{v.choices[i]}, I think." for i in v.question.distractors] + ["Nothing of that.", "Pink."]
        else:
            words = [*v.labels, *(f"{label}." for label in v.labels), "hm"]
        if i % trials == 0:  # some prompts get the same answer every time
            favourite, loyal = rng.integers(len(words)), rng.choice([0, 0.6, 1])
        text = words[favourite if rng.random() < loyal else rng.integers(len(words))]
        replies.append(Reply(text, meta={"mean_logprob": -float(rng.exponential())}))
    rules = {"mcq": "careful", "tfq": "yes_no", "lfgq": "in_words"}
    return make_responses(asked, replies, rules, trials=[*range(trials)] * len(variants))


def check_against_pandas(run):
    found, expected = unified_confidence(run), pandas_unified(run.to_frame())
    np.testing.assert_allclose(found["confidence"], expected["c"].to_numpy(float), rtol=1e-12)
    np.testing.assert_array_equal(found["right"], expected["right"].fillna(False).astype(bool))
    long = found.xs("lfgq", level="method")
    assert long["confidence"].notna().all() and (~long["right"]).sum() > 3
    assert ((long["prediction"] == -1) & (long["confidence"] > 0.99)).any()  # the same wrong sentence every time
    table = calibration_table(run, "unified", bins=100, by_method=True)
    table = table[table["score"] == "ECE"].set_index(["method", "place"])
    for (form, n), part in found.groupby([found.index.get_level_values("method"), "n_choices"]):
        c, y = part["confidence"].dropna(), part.loc[part["confidence"].notna(), "right"]
        bins = pd.cut(c, np.arange(101) / 100, include_lowest=True)
        gaps = (y.astype(float) - c).groupby(bins, observed=True).sum().abs().sum() / len(c)
        assert ece(c, y, 100) == pytest.approx(gaps, abs=1e-12)
        assert table.loc[(form, n), "value"] == pytest.approx(gaps, abs=1e-12) and table.loc[(form, n), "n"] == len(c)


def test_unified_confidence_of_all_forms_is_a_few_lines_of_pandas():
    variants = make_variants(FOUR, "formats", only=("tfq", "lfgq"), sizes=(2, 3, 4))
    check_against_pandas(drawn_run(variants, np.random.default_rng(0)))


def test_five_times_the_same_wrong_sentence_is_sure_and_wrong():
    "It was no answer at all: NaN, and left out of the ECE."
    variants = make_variants(FOUR[:2], "formats", only="lfgq")
    replies = [Reply("No idea what this is.", meta={"mean_logprob": -0.5})] * 5 + [
        Reply(text, meta={"mean_logprob": -0.5}) for text in ("green", "Pink.", "Pink.", "Brown.", "White.")
    ]
    run = make_responses([v for v in variants for _ in range(5)], replies, {"lfgq": "in_words"}, [*range(5)] * 2)
    found = unified_confidence(run)
    assert found["confidence"].tolist() == [1.0, 0.25] and found["right"].tolist() == [False, False]
    assert found["prediction"].tolist() == [-1, -1]  # a tie of four: the answer given most often, "Pink."
    by_hand = unified_confidence(run, groups=["a"] * 5 + ["g", "other", "other", "other", "other"])
    assert by_hand["confidence"].tolist() == pytest.approx([1.0, 0.75])
    missing = unified_confidence(run, groups=[None] * 5 + ["g", None, np.nan, None, None])
    assert missing["confidence"].tolist() == pytest.approx([math.nan, 0.25], nan_ok=True)
    assert missing["right"].tolist() == [False, True]
    with pytest.raises(CoraError, match="groups must be one for each of the 10 rows, got 1"):
        unified_confidence(run, groups=["a"])
    with pytest.raises(CoraError, match="question 'f1': one group holds 'green', which was graded right, and 'Pink.'"):
        unified_confidence(run, groups=["x"] * 10)


def test_a_persons_verdict_decides_what_is_right():
    variants = make_variants(FOUR[:1], "formats", only="lfgq")
    replies = [Reply(text, meta={"mean_logprob": -0.5}) for text in ("Crimson.", "Crimson.", "blue", "Pink.", "Navy.")]
    run = make_responses(variants * 5, replies, {"lfgq": "in_words"}, range(5))
    assert unified_confidence(run)["right"].tolist() == [False]
    labels = run.to_frame()[["question_id", "method", "index", "trial", "reply"]].assign(right=pd.NA, choice=-1)
    labels.loc[[0, 1], "right"], labels.loc[[0, 1], "choice"] = True, 0
    graded = unified_confidence(apply_labels(run, labels, variants))
    assert graded[["prediction", "right"]].values.tolist() == [[0, True]]
    labels.loc[[3, 4], "right"], labels.loc[[3, 4], "choice"] = False, 2  # a person says: both mean blue
    graded = unified_confidence(apply_labels(run, labels, variants))
    assert graded["confidence"].tolist() == pytest.approx([0.75]) and graded["prediction"].tolist() == [2]


@pytest.mark.parametrize("measure", [unified_confidence, reply_groups, lambda run: confidences(run, "unified")])
def test_words_that_do_not_ship_are_not_taken_for_empty_replies(measure, medalpaca):
    with pytest.raises(
        CoraError, match=r"\Amedalpaca-7b: this needs the words of the replies, [^\n]*texts=True[^\n]*\Z"
    ):
        measure(medalpaca)
