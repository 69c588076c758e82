"""What a model believes about the wrong choices: against plain loops, coverage of the intervals, what is refused."""

import math
from collections import defaultdict

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cora_nb.core import BadRow, CoraError, Question
from cora_nb.metrics.beliefs import confidence_ratio, multiple_selection, true_false_scores
from cora_nb.prompts.letters import selected
from cora_nb.papers.published import load_published
from cora_nb.respondents.chat_replies import letter_scores
from cora_nb.respondents.protocol import Reply
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.results import lookup, values_of
from cora_nb.variants.families import make_variants
from cora_nb.variants.mcqa_plus import YES_NO
from choice_tables import table, typed

RATIO = "Conf_wrong*/Conf_right"

# --- true or false ---


@st.composite
def claims(draw):
    rows = []
    for q in range(draw(st.integers(1, 5))):
        n = draw(st.integers(2, 5))
        right = draw(st.integers(0, n - 1))
        for i in range(n):
            score = draw(st.none() | st.tuples(*[st.floats(-20, 0) | st.just(-math.inf)] * 2).map(list))
            rows.append((f"q{q}", "true_false", i, [-1, -2], int(i != right), draw(st.integers(-1, 1)), score))
    rows = draw(st.permutations(rows))
    return table([r[:-1] for r in rows]).assign(scores=pd.Series([r[-1] for r in rows], dtype=object))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(claims(), st.booleans())
def test_claims_against_loops(frame, normalise):
    hits, conf = {0: [], 1: []}, defaultdict(lambda: {0: [], 1: []})
    for row in frame.to_dict("records"):
        hits[row["answer"]].append(row["prediction"] == row["answer"])
        s = row["scores"]
        if s is None:
            p = math.nan
        elif not normalise:
            p = math.exp(s[0])
        else:
            p = math.exp(s[0]) / (math.exp(s[0]) + math.exp(s[1])) if max(s) > -math.inf else math.nan
        conf[row["question_id"]][row["answer"]].append(p)
    scores = true_false_scores(frame)
    for name, h, answer in zip(("T/F: right", "T/F: wrong"), hits.values(), hits):
        row, silent = (lookup(scores, s) for s in (name, f"{name}, without a choice"))
        assert row.value == pytest.approx(sum(h) / len(h)) and row.n == silent.n == len(h)
        judged = frame[frame["answer"] == answer]
        assert silent.value == pytest.approx((judged["prediction"] < 0).mean())
    known = [(c[0][0], max(c[1])) for c in conf.values() if not any(map(math.isnan, c[0] + c[1]))]
    found = confidence_ratio(frame, normalise)
    assert found["score"].tolist() == ["Conf_right", "Conf_wrong*", RATIO, "questions without scores"]
    assert found[["benchmark", "method", "subject", "place", "p"]].isna().all(axis=None)
    lost, found = found.iloc[3], found.iloc[:3].set_index("score")
    assert (found["n"] == len(known)).all()
    assert (lost["value"], lost["n"]) == (pytest.approx((len(conf) - len(known)) / len(conf)), len(conf))
    if not known:
        assert found["value"].isna().all()
        return
    right, wrong = (sum(k[i] for k in known) / len(known) for i in (0, 1))
    assert found["value"].tolist()[:2] == pytest.approx([right, wrong])
    assert found.loc[RATIO, "value"] == pytest.approx(wrong / right) if right else math.isnan(found.loc[RATIO, "value"])
    sure = found.dropna()
    assert (
        (sure["low"] <= sure["value"] + 1e-9).all()
        and (sure["value"] <= sure["high"] + 1e-9).all()
        and (sure["low"] >= 0).all()
        and (sure["high"].iloc[:2] <= 1).all()
    )


def test_p_yes_does_not_depend_on_how_scores_are_normalised():
    "Version 0.1 took exp of a score that was divided by tokens or characters: 6.8% instead of 0.3%."
    pytest.importorskip("torch", reason="torch is not installed")
    from cora_nb.respondents.likelihood import LikelihoodRespondent
    from cora_nb.runs.evaluate import evaluate

    asked = [Question(f"q{i}", f"What is {i} + 3?", (str(i + 3), "99", "98"), 0) for i in range(3)]
    variants = [v for v in make_variants(asked, "mcqa_plus") if v.form == "tfq"]
    found = {}
    for how in ("sum", "token", "char"):
        who = LikelihoodRespondent("organism/steady", normalization=how)
        found[how] = confidence_ratio(evaluate(who, variants, progress=False))
    assert (found["sum"]["n"] == 3).all() and lookup(found["sum"], "questions without scores").value == 0
    pd.testing.assert_frame_equal(found["token"], found["sum"])
    pd.testing.assert_frame_equal(found["char"], found["sum"])


# --- several choices ---


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_selection_against_loops(data):
    "The column `selected` is what counts: what the form's rule read, or what somebody else graded; None is not known."
    rows, misled, texts = (
        [],
        {},
        ["A", "A, B", "B and D", "C, D", "A, B, C, D", "none", "", None, "The answers are A and C."],
    )
    for q in range(data.draw(st.integers(1, 6))):
        shown = data.draw(st.permutations(range(data.draw(st.integers(2, 4)))))
        right, wrong = data.draw(st.permutations(range(len(shown))))[:2]
        misled[f"q{q}"] = shown[wrong]
        rows.append((f"q{q}", "several", 0, list(shown), right, -1, wrong, data.draw(st.sampled_from(texts))))
    named = [None if r[7] is None else selected(r[7], r[3]) for r in rows]
    frame = table([r[:6] for r in rows]).assign(selected=pd.Series(named, dtype=object))
    known = [i for i, s in enumerate(named) if s is not None]
    for among in ("several", "all"):
        count = [i for i in known if len(named[i]) > 1 or among == "all"]
        found = multiple_selection(frame, misled, among=among)
        assert values_of(found, "n").to_dict() == {"%multi": len(known), "Recall_r": len(count), "Recall_m": len(count)}
        hits = (found["value"].fillna(0) * found["n"].astype(float)).tolist()
        assert hits == pytest.approx(
            [
                sum(len(named[i]) > 1 for i in known),
                sum(rows[i][4] in named[i] for i in count),
                sum(rows[i][6] in named[i] for i in count),
            ]
        )
        assert found["value"].isna().tolist() == [not known, not count, not count]
        assert multiple_selection(typed(frame), misled, among=among).equals(found)


ASKED = [Question(f"q{i}", "Which?", ("12", "14", "15", "19"), 0) for i in range(4)]
MISLED = {q.id: 2 for q in ASKED}
AGAIN = [v for v in make_variants(ASKED, "misleading", misleading=MISLED) if v.method == "multiple_selection"]


@pytest.mark.parametrize("reply", ["A, C", "A. 12, C. 15", "Both A and C are correct.", "a, c", "A and C"])
def test_every_wording_of_two_choices_names_two(reply):
    "Version 0.1 read the reply a second time, by a rule of its own: %multi was 1 for `A, C` and 0 for the next two."
    found = multiple_selection(make_responses(AGAIN, [reply] * 4), MISLED)
    assert found["value"].tolist() == [1, 1, 1] and found["n"].tolist() == [4, 4, 4]


def test_who_only_scores_names_nobody_knows_what():
    "Version 0.1 gave 0.0 with an interval."
    found = multiple_selection(make_responses(AGAIN, [Reply(scores=(-0.1, -3.0, -0.2, -5.0))] * 4), MISLED)
    assert found["n"].eq(0).all()
    assert found[["value", "low", "high"]].isna().all(axis=None)


def test_a_failed_prompt_is_left_out():
    found = multiple_selection(make_responses(AGAIN, ["A, C", "B", "?", Reply(error="lost")]), MISLED)
    multi = lookup(found, "%multi")
    assert (multi.n, multi.value) == (3, 1 / 3) and set(found["note"]) == {"1 of 4 failed"}


def test_several_replies_to_one_question_are_told():
    "Replies count, and a further row says of how many questions they are."
    rows = [("q", "several", i, [0, 1, 2], 0, -1) for i in range(2)] + [("r", "several", 0, [0, 1, 2], 0, -1)]
    frame = table(rows).assign(selected=pd.Series([(0, 1), (0,), (0, 2)], dtype=object))
    found = multiple_selection(frame, {"q": 1, "r": 2})
    assert lookup(found, "%multi").n == 3 and lookup(found, "%multi, questions").value == 2
    assert found["score"].tolist() == ["%multi", "%multi, questions", "Recall_r", "Recall_m"]


def test_other_forms_are_not_looked_at():
    "The family `misleading` has replaced choices too."
    variants = make_variants(ASKED, "misleading", misleading=MISLED)
    whole = make_responses(variants, ["A, C" if v.form == "several" else "A" for v in variants])
    assert {v.form for v in variants} == {"several", "mcq"}
    part = make_responses(AGAIN, ["A, C"] * 4)
    pd.testing.assert_frame_equal(multiple_selection(whole, MISLED), multiple_selection(part, MISLED))
    with pytest.raises(CoraError, match="no responses to score"):
        multiple_selection(whole.rows(whole.table["form"] == "mcq"), MISLED)


# --- the printed numbers ---


def test_printed_ratio_is_a_ratio_of_means():
    five = load_published(5, "mcqa_plus").pivot(index=["model", "benchmark", "shots"], columns="score", values="value")
    assert (100 * five["Conf_wrong*"] / five["Conf_right"] - five["Conf_wrong*/Conf_right"]).abs().max() < 0.03


# --- what is refused ---

OK = table([("q", "original", 0, [0, 1], 0, 0), ("q", "reordered", 0, [1, 0], 1, 0)])
TF = table([("q", "true_false", i, [-1, -2], int(i > 0), 0) for i in range(3)])


def test_other_methods_are_not_looked_at():
    mixed = pd.concat([OK, TF, OK.assign(method="nota_answer", index=[0, 1])])
    assert true_false_scores(mixed)["value"].tolist() == true_false_scores(TF)["value"].tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: true_false_scores(TF.assign(n_choices=3, sources=[[-1, -2, -3]] * 3)), "must have 2 choices"),
        (lambda: true_false_scores(TF, level=0), "level must be between 0 and 1"),
        (
            lambda: confidence_ratio(TF.assign(scores=["x", "y", "z"])),
            "wrong type (scores: a list of numbers was expected, got 'x')",
        ),
        (lambda: multiple_selection(OK, {"q": 1}), "no column selected"),
        (lambda: multiple_selection(OK.assign(selected=[(0,)] * 2), {"q": "B"}), "misleading must be a whole number"),
        (
            lambda: multiple_selection(OK.assign(selected=[(0,)] * 2), {"q": 1}, among="some"),
            "among must be one of several, all, got 'some'",
        ),
        (lambda: true_false_scores(Responses(pd.concat([TF, TF.assign(trial=1)])).pool_trials()), "'q' has 2 and 4"),
        (lambda: confidence_ratio(OK), "got none"),
    ],
)
def test_refused(call, message):
    with pytest.raises(CoraError) as error:
        call()
    assert message in str(error.value) and "\n" not in str(error.value)


def test_wrong_scores_name_the_row():
    with pytest.raises(BadRow) as error:
        confidence_ratio(TF.assign(scores=[[-1.0, -1.0], [-1.0], [-1.0, -1.0]]))
    assert (error.value.row, error.value.field) == (2, "scores")


@pytest.mark.parametrize(
    "top, p_yes, p_no",
    [
        ({"Yes": 0.2, " yes": 0.1, "YES": 0.05, "No": 0.3, " Not": 0.2}, 0.35, 0.3),
        ({"yes": 0.4}, 0.4, 0.0),  # No is not among the likeliest tokens
        ({"Yes": 0.6, "no": 0.4}, 0.6, 0.4),
    ],
)
def test_p_yes_is_the_sum_over_all_spellings(top, p_yes, p_no):
    "Of a server's likeliest tokens; and it is a share of Yes and No only where that is asked for."
    q = Question("q", "Is it so?", ("East", "West"), 0)
    variants = [v for v in make_variants([q], "mcqa_plus") if v.form == "tfq"]
    scores = letter_scores({token: math.log(p) for token, p in top.items()}, YES_NO)
    assert [math.exp(s) for s in scores] == pytest.approx([p_yes, p_no])
    run = make_responses(variants, [Reply("Yes", scores)] * 2, {"tfq": "yes_no"})
    found, shares = (values_of(confidence_ratio(run, normalise)) for normalise in (False, True))
    assert found["Conf_right"] == found["Conf_wrong*"] == pytest.approx(p_yes)
    assert shares["Conf_right"] == pytest.approx(p_yes / (p_yes + p_no))


def test_p_yes_of_several_questions_and_all_rows_of_a_family():
    "Questions of other forms, with scores of letters above, do not count."
    q = Question("q", "Is it so?", ("East", "West", "North"), 0)
    variants = make_variants([q], "mcqa_plus")
    p = {0: 0.5, 1: 0.2, 2: 0.4}
    replies = [
        Reply("Yes", (math.log(p[v.index]), math.log(0.1))) if v.form == "tfq" else Reply("A", (-0.01,) * v.n_choices)
        for v in variants
    ]
    found = values_of(confidence_ratio(make_responses(variants, replies, {"tfq": "yes_no"})))
    assert (found["Conf_right"], found["Conf_wrong*"]) == pytest.approx((0.5, 0.4))
    assert found["Conf_wrong*/Conf_right"] == pytest.approx(0.8)
