"""The scores against a second implementation, written straight from the equations with loops and exact fractions."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import THRESHOLDS, CoraError, Question
from cora_nb.metrics.gate import gate
from cora_nb.metrics.cora import Counts, bmca, car_curve, core_index, robustness, weighted_scores
from cora_nb.metrics.scoring import score

from cora_nb.metrics.contributions import contributions, score_intervals
from cora_nb.stats.means import degrees_of_freedom, mean_interval
from cora_nb.metrics.account import Account, account, account_of_counts, paper_counts, score_counts
from cora_nb.metrics.scores import SCORES, get_score, register_score
from cora_nb.report.render import render
from cora_nb.report.tables import score_table
from cora_nb.report.words import gate_lines
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.responses.runs import Runs
from cora_nb.results import RESULT, Remark, lookup, make_result, side_by_side, values_of
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.stats.resampling import FewWarning
from cora_nb.variants.families import make_variants

METHODS = ["original", "shuffled", "nota", "decoupled"]


def slow_scores(rows, thresholds):
    "Equations 1 to 7 as they stand in the paper. rows: dicts with question_id, method, trial, correct."
    divergence = defaultdict(list)
    for r in rows:
        divergence[r["question_id"]].append(r)
    N = len(divergence)
    RC = {i: Fraction(sum(r["correct"] for r in s), len(s)) for i, s in divergence.items()}
    originals = {i: [r["correct"] for r in s if r["method"] == "original"] for i, s in divergence.items()}
    MCQA = None if not all(originals.values()) else sum(Fraction(sum(o), len(o)) for o in originals.values()) / N
    BMCA = {c: Fraction(sum(RC[i] >= Fraction(str(c)) for i in RC), N) for c in thresholds}
    BMCA1 = Fraction(sum(RC[i] == 1 for i in RC), N)
    CI = None if MCQA is None else 1 - (MCQA - BMCA1)
    out = {
        "MCQA": MCQA,
        "MCQA+": Fraction(sum(r["correct"] for r in rows), len(rows)),
        "RC": sum(RC.values()) / N,
        "MV": Fraction(sum(RC[i] > Fraction(1, 2) for i in RC), N),
        **{f"BMCA({float(c)})": BMCA[c] for c in thresholds},
        "CI": CI,
        "CoRA": None if MCQA is None else MCQA * CI,
        "CORE": slow_core(RC.values()),
    }
    return {k: float("nan") if v is None else float(v) for k, v in out.items()}


def slow_core(RC):
    "Area under the CAR curve times (1 - DTW / DTW of the worst curve), with a real dynamic time warping."
    y = [Fraction(sum(r >= Fraction(k, 10) for r in RC), len(RC)) for k in range(11)]
    area = sum((a + b) / 2 * Fraction(1, 10) for a, b in zip(y, y[1:]))
    return area * (1 - dtw(y, [1] * 11) / dtw([1] * 11, [1] + [0] * 10))


def dtw(a, b):
    "Dynamic time warping with absolute differences."
    cost = [[None] * len(b) for _ in a]
    for i in range(len(a)):
        for j in range(len(b)):
            before = [
                cost[i - 1][j] if i else None,
                cost[i][j - 1] if j else None,
                cost[i - 1][j - 1] if i and j else None,
            ]
            cost[i][j] = abs(Fraction(a[i]) - Fraction(b[j])) + min((x for x in before if x is not None), default=0)
    return cost[-1][-1]


@st.composite
def tables(draw):
    "Random responses: questions with sets of unequal size, repeated trials, sometimes without the original."
    rows = []
    for q in range(draw(st.integers(1, 6))):
        for method in METHODS:
            if method == "original" and draw(st.integers(0, 9)) == 0 and len(rows) >= 0:
                continue
            for index in range(1 if method in METHODS[:2] else draw(st.integers(1, 4))):
                for trial in range(draw(st.integers(1, 2))):
                    rows.append(
                        {
                            "question_id": f"q{q}",
                            "subject": "xyz"[q % 3],
                            "method": method,
                            "index": index,
                            "trial": trial,
                            "correct": draw(st.booleans()),
                        }
                    )
    return rows


def assert_same(fast, slow):
    assert list(fast.index) == list(slow)
    np.testing.assert_allclose(fast.to_numpy(float), list(slow.values()), rtol=0, atol=1e-12)


@pytest.mark.slow
@given(
    tables(),
    st.booleans(),
    st.lists(st.sampled_from([0.0, 0.28, 0.3, 1 / 3, 0.5, 0.7, 0.9, 1.0]), unique=True, max_size=4),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60)
def test_score_follows_the_equations(rows, pooled, thresholds, rng):
    rng.shuffle(rows)
    kept = [r for r in rows if pooled or r["trial"] == 0]
    responses = Responses(pd.DataFrame(rows))
    found = score(responses.pool_trials() if pooled else responses, thresholds=tuple(thresholds))
    assert (found["n"] == len({r["question_id"] for r in kept})).all()
    assert_same(values_of(found), slow_scores(kept, thresholds))


@pytest.mark.slow
@given(tables())
@settings(max_examples=50)
def test_by_subject_and_by_method(rows):
    first = [r for r in rows if r["trial"] == 0]
    subjects, methods = (
        side_by_side(score(pd.DataFrame(rows), by=by).set_index([by, "score"])["value"]) for by in ("subject", "method")
    )
    assert set(subjects.index) == {r["subject"] for r in first} and set(methods.index) == {r["method"] for r in first}
    for s, row in subjects.iterrows():
        assert_same(row, slow_scores([r for r in first if r["subject"] == s], THRESHOLDS))
    for m, row in methods.iterrows():
        assert_same(row, slow_scores([r for r in first if r["method"] in ("original", m)], THRESHOLDS))


@pytest.mark.parametrize("kind", ["object", "string[pyarrow]", "category"])
def test_any_kind_of_text_column(kind):
    frame = pd.DataFrame(
        {
            "question_id": ["a", "a", "b", "b"],
            "subject": ["s", "s", "t", "t"],
            "method": ["original", "nota"] * 2,
            "trial": 0,
            "correct": [True, False, True, True],
        }
    )
    expected = score(frame)
    assert score(frame.astype({c: kind for c in ("question_id", "subject", "method")})).equals(expected)
    subjects = score(frame.astype({c: kind for c in ("question_id", "subject", "method")}), by="subject")
    assert lookup(subjects, "CoRA", subject="t").value == 1 and (subjects["n"] == 1).all()


def test_thresholds_are_exact():
    "Every k/n meets the threshold k/n, for all n up to 100: the comparison is on the quotient."
    for n in range(1, 101):
        for k in range(n + 1):
            assert bmca(Counts([k], [n], [1]), k / n) == 1
    assert bmca(Counts([7], [25], [1]), 0.28) == 1 and 0.28 * 25 > 7


def test_responses_are_checked():
    frame = pd.DataFrame({"question_id": ["a", None], "method": "original", "trial": 0, "correct": True})
    with pytest.raises(CoraError, match="row 2, question_id: question_id must not be missing"):
        score(frame)
    for kind in ("int64", "boolean", "Int64", "bool[pyarrow]"):
        truth = pd.Series([1, 0]).astype(bool).astype(kind)
        assert score(frame.assign(question_id=["a", "b"], correct=truth))["value"][0] == 0.5


def test_a_question_without_subject_is_named_not_dropped():
    frame = pd.DataFrame(
        {"question_id": ["a", "b"], "subject": ["s", None], "method": "original", "trial": 0, "correct": True}
    )
    with pytest.raises(CoraError, match="1 of 2 questions have no subject, the first of them 'b'"):
        score(frame, by="subject")


def test_a_curve_of_many_points():
    counts = Counts([0, 1, 2], [2, 2, 2], [0, 1, 1])
    assert car_curve(counts, 101).iloc[[0, 1, 50, 51, 100]].tolist() == [1, 2 / 3, 2 / 3, 1 / 3, 1 / 3]
    assert core_index(car_curve(Counts([2], [2], [1]))) == robustness(Counts([2], [2], [1])) == 1
    with pytest.raises(CoraError, match="points must be a whole number of 2 or more, got 1"):
        car_curve(counts, 1)


PAPER_ORDER = {
    "MCQA": 0.2608,
    "MCQA+": 0.3571,
    "MV": 0.2435,
    "BMCA(0.5)": 0.2938,
    "BMCA(0.6)": 0.1830,
    "BMCA(0.7)": 0.1108,
    "BMCA(0.8)": 0.0762,
    "BMCA(0.9)": 0.0299,
    "BMCA(1.0)": 0.0102,
    "CI": 0.7494,
    "CoRA": 0.1954,
}


def test_recorded_medqa_replies(medalpaca):
    "The 33,098 replies of medalpaca-7b, first trial of the 26 variants, to four decimals."
    assert values_of(score(medalpaca))[list(PAPER_ORDER)].round(4).to_dict() == PAPER_ORDER
    assert (paper_counts(account(medalpaca))["trials"] == 26).all()


# What is not there


def test_an_original_that_was_not_asked_is_not_wrong():
    "Early stopping left out the original of b: its share is unknown, and so are the scores that need it."
    frame = pd.DataFrame(
        {
            "question_id": ["a", "a", "b", "b"],
            "method": ["original", "nota"] * 2,
            "correct": [True, True, False, False],
            "state": ["answered", "answered", "not_asked", "answered"],
        }
    )
    known = account(frame)
    assert known.questions["own_right"].tolist() == [1, 0] and known.questions["own_unknown"].tolist() == [0, 1]
    assert known.questions["unknown"].tolist() == [0, 1] and known.trials.tolist() == [2, 2]
    found = values_of(score(frame))
    assert found[["MCQA", "CI"]].isna().all() and found["BMCA(1.0)"] == 0.5
    assert found["CoRA"] == 0.5  # 0.5 * (1 - 0.5 + 0.5) where it would be wrong, 1 * (1 - 1 + 0.5) where right
    again = frame.assign(method=["original", "nota", "nota", "original"], state=[*["answered"] * 3, "not_asked"])
    assert account(again).questions.loc["b", "own_unknown"] == 1


@pytest.fixture(scope="module")
def run():
    asked = make_variants(math_benchmark(12, n_choices=5))
    return evaluate(SimulatedRespondent(knows=0.7, seed=1), asked, Asking(trials=2), progress=False)


def unknown(found, what="value"):
    return found["score"][found[what].isna()].tolist()


def test_an_incomplete_divergence_set_has_no_cora(run):
    assert unknown(score(run)) == []
    few = run.rows(lambda t: t["method"].isin(["original", "shuffled"]))
    assert few.coverage == "2 of 26 variants" and unknown(score(few)) == ["CI", "CoRA"]
    assert unknown(score(few, ci=0.95), "low") == ["CI", "CoRA"]
    assert lookup(score(few), "MV").value == lookup(score(few.table.drop(columns="family")), "MV").value
    originals = run.rows(lambda t: t["method"] == "original")
    assert unknown(score(originals)) == ["CI", "CoRA"]
    assert unknown(score(originals.table)) == ["CI", "CoRA"]  # the plain table says its family, too
    assert unknown(score(originals.table[["question_id", "method", "correct"]])) == []  # nobody knows
    first_nota = ((run.table["method"] == "nota") & (run.table["trial"] == 0)).to_numpy(bool).argmax()
    one_lacks_one = run.rows(np.arange(len(run)) != first_nota)
    assert unknown(score(one_lacks_one)) == ["CI", "CoRA"] and unknown(score(one_lacks_one.trial(1))) == []


def test_a_chosen_part_is_a_set_of_its_own(run):
    run = run.trial(0)
    part = run.rows(lambda t: t["method"].isin(["original", "shuffled"]), chosen="without replaced choices")
    assert unknown(score(part)) == [] and not account(part).questions["missing"].any()
    assert set(score(part).query("score != 'MCQA'")["note"]) == {"2 of 26 variants"}  # what was chosen, all the same
    assert unknown(score(run, by="method")) == [] and not score(run, by="method")["note"].any()


def test_by_subject_only_the_incomplete_one_is_not_known(run):
    ids = run.questions["question_id"]
    frame = run.trial(0).table
    frame = frame.assign(subject=np.where(frame["question_id"].isin(ids[:5]), "x", "y"))
    frame = frame[(frame["subject"] == "x") | (frame["method"] != "nota")]
    found = score(frame, by="subject")
    values = values_of(found).unstack()
    assert values["CoRA"].notna().to_dict() == {"x": True, "y": False} and values["MV"].notna().all()
    notes = values_of(found, "note").unstack()
    assert set(notes.loc["x"]) == {""} and all(
        note.startswith("22 of 26 variants") for note in notes.loc["y"].drop("MCQA")
    )


def test_where_only_the_first_of_several_repetitions_counts_every_score_says_so(run):
    first = (Remark("incomplete", 1, of=2, why="trials"),)
    for found in (score(run), score(run.first_trial()), score(run, by="method")):
        assert all(set(first) <= set(said) for said in found["remarks"])
    for found in (score(run.trial(0)), score(run.trial(1)), score(run.pool_trials())):
        assert not any(remark.why == "trials" for said in found["remarks"] for remark in said)
    assert render(score_table(run)).count("the first of 2 repetitions") == 1
    line = gate_lines(gate(run, at_least={"MCQA": 0.01}))[0]
    assert "the first of 2 repetitions" in line


def test_one_trial_of_a_recorded_file(medalpaca):
    "Trial 5 holds two of 26 variants; its CoRA was printed and ranked before."
    part = medalpaca.trial(5)
    assert part.coverage == "2 of 26 variants" and unknown(score(part)) == ["CI", "CoRA"]
    assert unknown(score(medalpaca)) == [] and unknown(score(medalpaca.pool_trials())) == []


# The shape of the result


def test_several_runs_are_one_result(run):
    few = run.rows(lambda t: t["method"].isin(["original", "shuffled"]))
    both = score(Runs({"all": run, "few": few}), ci=0.9)
    assert both.equals(score({"all": run, "few": few}, ci=0.9))
    for name, alone in {"all": run, "few": few}.items():
        part = make_result(both[both["respondent"] == name])
        pd.testing.assert_frame_equal(part, score(alone, ci=0.9).assign(respondent=name))
    named = [Responses(run.table.drop(columns="respondent"), name=name) for name in "ab"]
    assert score(named)["respondent"].unique().tolist() == ["a", "b"]
    methods = score(named, by="method")
    assert list(methods) == list(RESULT) and methods[["subject", "place", "low", "high", "p"]].isna().all(axis=None)
    assert len(methods) == 2 * 8 * len(score(run))
    with pytest.raises(CoraError, match="nowhere: there is no such file"):
        score("nowhere")  # a folder of a run may be named
    with pytest.raises(CoraError, match="runs must be responses or a mapping from names to them, got a int"):
        score(5)


def test_intervals_where_no_score_is_known():
    known = Account(pd.DataFrame({"right": [0, 1, 1], "wrong": [1, 0, 0], "unknown": 3, "own": 0, "own_right": np.nan}))
    table = score_intervals(known)
    assert table[["value", "low", "high"]].isna().all(axis=None) and not table["remarks"].any()


def test_originals_alone_have_no_cora_in_a_bare_table():
    "Without the column `family`, too: an original alone is no divergence set, and CI would be 1."
    table = pd.DataFrame({"question_id": ["a", "b"], "method": "original", "correct": [True, False]})
    found = values_of(score(table))
    assert found["MCQA"] == 0.5
    assert np.isnan(found[["CI", "CoRA"]].to_numpy(float)).all()


def test_one_question_has_no_interval_and_says_why():
    one = make_responses(
        asked := make_variants([Question("q", "?", ("a", "b"), 0)]), ["ABCDE"[v.answer] for v in asked]
    )
    with pytest.warns(FewWarning):
        found = score(one, ci=0.95)
    assert found["low"].isna().all() and (found["note"] == "1 question: few to rely on").all()


def test_scores_that_say_monotone_never_fall_and_one_that_does_not_is_not_known_from_its_ends():
    "Early stopping takes a score for known where best and worst case agree: right only for a monotone score."
    rng = np.random.default_rng(3)
    counts = pd.DataFrame({"hits": rng.integers(0, 4, 60), "trials": 5, "original": rng.integers(0, 2, 60) * 1.0})
    for _ in range(40):
        more = counts.assign(hits=counts["hits"] + rng.integers(0, 2, 60))
        before, after = weighted_scores(counts), weighted_scores(more)
        assert all(after[name] >= before[name] for name in before if get_score(name).monotone)

    @register_score("at the ends", monotone=False)
    def at_the_ends(counts):
        return counts.mean((counts.rc == 0) | (counts.rc == 1))

    @register_score("half", monotone=True)
    def half(counts):
        return counts.mean(counts.rc * 0 + 0.5)

    try:
        open_ = Account(pd.DataFrame({"right": [0], "unknown": [3], "own_right": [0.0], "own_unknown": [1.0]}))
        values = score_counts(open_)
        assert np.isnan(values["at the ends"]) and values["half"] == 0.5  # 0 or 3 right: 1; 1 or 2 right: 0
    finally:
        for name in ("at the ends", "half"):
            del SCORES.registered[name]


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_an_interval_is_that_of_the_scores_without_each_question(level):
    "By hand, one question at a time; a population draws both ends towards the value."
    rng = np.random.default_rng(1)
    hits = rng.integers(0, 5, 80)
    counts = pd.DataFrame({"hits": hits, "trials": 4, "original": (hits > rng.integers(0, 4, 80)) * 1.0})
    known = account_of_counts(*counts.to_numpy(float).T)
    found, few = score_intervals(known, level=level), score_intervals(known, (1.0,), level, population=320)
    whole, without = weighted_scores(counts), [weighted_scores(counts.drop(index=i)) for i in range(80)]
    for name in ("MCQA", "MCQA+", "CI", "CoRA", "CORE"):
        each = [80 * whole[name] - 79 * left[name] for left in without]
        assert np.mean(each) == pytest.approx(whole[name], abs=2e-3)  # exactly so for means
        np.testing.assert_allclose(contributions(counts)[name].std(), np.std(each, ddof=1), rtol=1e-6)
        centred = np.array(each) - np.mean(each) + whole[name]
        ends = mean_interval(centred, level)[:2]
        assert found.loc[name, ["low", "high"]].tolist() == pytest.approx(ends, abs=1e-6)
        if name in ("MCQA", "MCQA+"):
            drawn_in = [whole[name] + (end - whole[name]) * (240 / 319) ** 0.5 for end in ends]
            assert few.loc[name, ["low", "high"]].tolist() == pytest.approx(drawn_in, rel=1e-6)


def test_clusters_are_a_column_of_rows_or_of_questions(run):
    questions = run.questions.assign(passage=[f"p{i % 5}" for i in range(len(run.questions))])
    run = Responses(run.table, questions, run.facts, run.name).first_trial()
    passages = dict(zip(questions["question_id"], questions["passage"]))
    in_rows = Responses(run.table.assign(part=run.table["question_id"].map(passages)), questions, run.facts, run.name)
    ends = [score(r, ci=0.95, clusters=c)[["low", "high"]] for r, c in ((run, "passage"), (in_rows, "part"))]
    assert ends[0].equals(ends[1])
    alone = score(run, ci=0.95, clusters="question_id")[["low", "high"]]  # each question is its own cluster
    assert alone.notna().all(axis=None)
    with pytest.raises(CoraError, match="method is no column of questions: .* has several values of it"):
        score(run, ci=0.95, clusters="method")


def test_degrees_of_freedom_of_many_clusters_take_no_matrix():
    sizes = np.random.default_rng(0).integers(1, 40, 200_000)  # a matrix would have 320 GB
    assert 100_000 < degrees_of_freedom(sizes) < 200_000
