"""The value: one run, checked once, that knows what it holds and what it lacks."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import BadRow, CoraError, Question
from cora_nb.respondents.protocol import NOT_ASKED, Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import checked_table
from cora_nb.responses.facts import as_facts
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.metrics.guessing import replies_shared
from cora_nb.responses.responses import Responses, as_responses, make_responses, need
from cora_nb.responses.columns import questions_table
from cora_nb.responses.runs import Runs, concat
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants
from helpers import replies_for

QUESTIONS = [Question("q", "?", ("a", "b", "c", "d"), 2, "s"), Question("r", "!", ("yes", "no"), 1)]
VARIANTS = make_variants(QUESTIONS)


def run(letters=None, name="me", facts=None, trials=1):
    said = [letters or "ABCD"[v.answer] for v in VARIANTS] * trials
    numbers = [t for t in range(trials) for _ in VARIANTS]
    return make_responses(VARIANTS * trials, said, trials=numbers, name=name, facts=facts)


# ---- one run, each row once


def test_two_runs_pasted_together_are_refused():
    "score(pd.concat([run_a, run_b])) gave a number: 0.42 for runs of 0.76 and 0.42."
    both = pd.concat([run(name="a").table, run("A", name="b").table])
    with pytest.raises(CoraError, match="there are several respondents, a, b; a run has one"):
        need(both, "correct")
    families = [make_responses(make_variants(QUESTIONS, f), ["A"] * n).table for f, n in (("cora", 28), ("cyclic", 6))]
    with pytest.raises(CoraError, match="there are several families, cora, cyclic"):
        Responses(pd.concat(families))
    one = run(name="a").table
    with pytest.raises(CoraError, match="row 29: question 'q', original 0, trial 0 stands in an earlier row already"):
        Responses(pd.concat([one, one.iloc[:1]]))
    with pytest.raises(CoraError, match="several respondents"):  # also where one of them has no name
        Responses(pd.concat([one.iloc[:3], one.iloc[3:].assign(respondent=None)]))


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 4), max_size=12))
def test_rows_that_stand_there_twice_are_found(keys):
    "As pandas finds them, over all four columns of the key."
    table = pd.DataFrame(keys, columns=["question_id", "method", "index", "trial"]).astype(
        {"question_id": str, "method": str}
    )
    twice = table.duplicated()
    if twice.any():
        with pytest.raises(CoraError, match=f"row {twice.argmax() + 1}:"):
            Responses(table)
    else:
        assert len(Responses(table)) == len(table)


def test_a_value_is_never_changed():
    responses = run()
    for field in ("table", "name", "facts", "pooled", "anything"):
        with pytest.raises(AttributeError, match=f"never changed, so {field} cannot be set"):
            setattr(responses, field, None)


def test_the_name_is_that_of_the_table_unless_another_is_given():
    assert Responses(run(name="ann").table).name == "ann"
    renamed = Responses(run(name="ann").table, name="bob")
    assert renamed.name == "bob" and set(renamed.table["respondent"]) == {"bob"}
    assert Responses(run().table.drop(columns="respondent")).name == "responses"
    assert Responses(run().table.assign(respondent=None)).name == "responses"


@pytest.mark.slow
@given(replies_for(VARIANTS))
@settings(max_examples=30)
def test_what_became_of_the_prompts_adds_up(replies):
    responses = make_responses(VARIANTS, replies)
    assert checked_table(responses.table).equals(responses.table)
    counts, each = responses.summary(), responses.outcomes()
    assert (counts[["right", "wrong", "unparsed", "failed", "not_asked"]].sum(axis=1) == counts["rows"]).all()
    assert (each.sum(axis=1) == 1).all() and len(each) == counts.loc["all", "rows"] == len(VARIANTS)
    assert counts.loc["all", "failed"] == sum(r.error is not None for r in replies)


# ---- questions


def test_questions_stand_beside_the_rows_once():
    responses = run()
    assert responses.questions["question_id"].tolist() == ["q", "r"]
    assert responses.questions["choices"].tolist() == [q.choices for q in QUESTIONS]
    only = responses.rows(lambda t: t["question_id"] == "r")
    assert only.questions.equals(responses.questions.iloc[1:].reset_index(drop=True))
    told = responses.to_frame(texts=True)
    assert (
        told["question"].tolist() == ["?"] * 20 + ["!"] * 8 and told["original_answer"].tolist() == [2] * 20 + [1] * 8
    )


def test_a_table_without_questions_tells_what_it_can():
    bare = Responses(run().table)
    assert bare.questions["question_id"].tolist() == ["q", "r"] and bare.questions["subject"].fillna("-").tolist() == [
        "s",
        "-",
    ]
    assert bare.questions[["text", "choices", "answer"]].isna().all(axis=None)
    assert list(bare.questions) == list(run().questions)


def test_questions_that_do_not_fit_are_refused():
    table, questions = run().table, run().questions
    with pytest.raises(CoraError, match="question 'r' is not in the table of questions"):
        Responses(table, questions.iloc[:1])
    with pytest.raises(CoraError, match="question 'q' is in the table of questions twice"):
        Responses(table, pd.concat([questions, questions.iloc[:1]]))
    with pytest.raises(CoraError, match="two different questions have the id 'q'"):
        questions_table([QUESTIONS[0], Question("q", "another", ("a", "b"), 0)])
    with pytest.raises(CoraError, match="the column question_id is missing"):
        as_responses(table.drop(columns="question_id"))


# ---- parts


def test_a_part_keeps_the_facts_and_says_what_it_is():
    whole = run(facts={"run": {"model": "m"}}, trials=2)
    part = whole.rows(lambda t: t["method"] == "original", chosen="originals")
    assert part.facts.plain() == {"run": {"model": "m"}, "rows": {"kept": 4, "of": 56}, "chosen": ["originals"]}
    again = part.trial(1).rows(lambda t: t["question_id"] == "q", chosen="q")
    assert again.facts.rows.plain() == {"kept": 1, "of": 56} and again.facts.chosen == ["originals", "q"]
    assert whole.facts.plain() == {"run": {"model": "m"}} and whole.trial(0).facts.rows.plain() == {
        "kept": 28,
        "of": 56,
    }
    assert whole.rows(np.ones(56, dtype=bool)) is whole


@pytest.mark.parametrize("mask", [[True] * 3, [2] * 28, ["x"] * 28, [None] * 28, True])
def test_truth_values_that_do_not_fit(mask):
    with pytest.raises(CoraError, match="there must be a truth value for each of the 28 rows"):
        run().rows(mask)


def test_trials():
    three = run(trials=3)
    assert three.trials == (0, 1, 2) and len(three.trial(2)) == 28 and len(three.first_trial()) == 28
    assert run().trial(0).table.equals(run().table)
    for wrong in (3, -1, True, "0", None):
        with pytest.raises(CoraError, match=r"me has no trial .*, only 0, 1, 2"):
            three.trial(wrong)
    pooled = three.pool_trials()
    assert len(pooled.first_trial()) == len(need(pooled, "correct")) == 84 and not three.pooled
    assert pooled.rows(lambda t: t["trial"] < 2).pooled  # a part of pooled responses is pooled
    later = three.rows(lambda t: t["trial"] > 0)
    assert later.trials == (1, 2) and later.first_trial().trials == (1,)


def test_parts_make_the_whole_again():
    variants = make_variants([Question(f"q{i}", "?", ("a", "b", "c"), i % 3, "xy"[i % 2]) for i in range(6)])
    shots = [Question(f"shot {s}", "!", ("a", "b"), 0, s) for s in "xy"]
    asking = Asking(shots=shots, k=1)
    whole = evaluate(SimulatedRespondent(), variants, asking, progress=False)
    cut = len(variants) // 6
    shards = [
        evaluate(SimulatedRespondent(), variants[i * cut : (i + 1) * cut], asking, progress=False) for i in range(6)
    ]
    made = concat(shards)
    assert made.table.equals(whole.table) and made.questions.equals(whole.questions)
    assert made.facts.calls == whole.facts.calls and made.facts.respondent == whole.facts.respondent
    assert made.facts.variants.count == whole.facts.variants.count == len(variants)
    assert made.facts.benchmark.plain() == {"questions": 6} and "prompts" not in made.facts.asked.plain()
    assert sorted(made.facts.asked.shots) == ["shot x", "shot y"] == sorted(whole.facts.asked.shots)
    halves = [whole.rows(lambda t, s=s: t["subject"] == s) for s in "xy"]
    assert "rows" not in concat(halves).facts.plain() and "rows" in concat(halves[:1]).facts.plain()
    joined, asked = concat(halves).facts, {k: v for k, v in whole.facts.asked.plain().items() if k != "prompts"}
    known = {k: v for k, v in whole.facts.variants.plain().items() if k != "hash"}
    same = {k: v for k, v in whole.facts.plain().items() if k not in ("calls", "shard")}
    assert joined.plain() == same | {"benchmark": {"questions": 6}, "variants": known, "asked": asked}


def test_facts_describe_the_rows_beside_them():
    variants = make_variants([Question(f"q{i}", "?", ("a", "b", "c"), i % 3, "xy"[i % 2]) for i in range(6)])
    whole = evaluate(SimulatedRespondent(), variants, Asking(trials=2), progress=False)
    assert whole.facts.calls["prompts"] == 2 * len(variants) and whole.facts.variants.count == len(variants)
    part = whole.rows(lambda t: t["question_id"].isin(["q0", "q1"]))
    assert part.facts.benchmark.plain() == {"questions": 2} and "calls" not in part.facts.plain()
    assert part.facts.variants.count == len(variants) // 3 and "hash" not in part.facts.variants.plain()
    assert "prompts" not in part.facts.asked.plain() and part.facts.respondent == whole.facts.respondent
    first = whole.first_trial()  # all questions and variants are there, but not all calls
    assert first.facts.benchmark == whole.facts.benchmark and first.facts.variants == whole.facts.variants
    assert "calls" not in first.facts.plain() and first.facts.rows.plain() == {
        "kept": len(variants),
        "of": 2 * len(variants),
    }
    rest = whole.rows(lambda t: ~t["question_id"].isin(["q0", "q1"]))
    for halves in ([whole.trial(0), whole.trial(1)], [part, rest], [rest, part]):
        joined = concat(halves).facts
        assert not joined.calls and joined.rows.kept is None
        assert joined.variants.count == len(variants) and joined.benchmark.questions == 6
    calls = {"prompts": 4, "asked": 3}  # equal prompts got one reply: a part remembers it
    told = run(facts={"calls": calls})
    assert replies_shared(told.facts) and replies_shared(told.rows(lambda t: t["question_id"] == "q").facts)


def test_what_is_no_part_is_refused():
    variants = make_variants(QUESTIONS)
    one = evaluate(SimulatedRespondent(), variants[:20], progress=False)
    with pytest.raises(CoraError, match="simulated and other are two models"):
        concat([one, evaluate(SimulatedRespondent(name="other"), variants[20:], progress=False)])
    for other in (
        evaluate(SimulatedRespondent(seed=1), variants[20:], progress=False),
        evaluate(SimulatedRespondent(), variants[20:], Asking("bare"), progress=False),
        evaluate(SimulatedRespondent(), variants[20:], Asking(parse="last_line"), progress=False),
    ):
        with pytest.raises(CoraError, match="parts of simulated were not asked in the same way"):
            concat([one, other])
    with pytest.raises(CoraError, match="stands in an earlier row already"):
        concat([one, one])
    with pytest.raises(CoraError, match="no responses to put together"):
        concat([])


# ---- what is missing


def test_an_incomplete_set_says_so():
    "CoRA 0.27 was printed and ranked first, from 2 of 26 variants."
    whole = make_responses(v := make_variants([Question("q", "?", tuple("abcde"), 0)]), ["A"] * 26)
    assert (len(v), whole.complete, whole.coverage) == (26, True, "")
    few = whole.rows(lambda t: t["method"].isin(["original", "shuffled"]))
    assert (few.complete, few.coverage) == (False, "2 of 26 variants")
    assert Runs({"whole": whole, "few": few}).differences()[0] == "few has 2 of 26 variants"
    unknown = Responses(whole.table.drop(columns="family"))
    assert unknown.complete is None and unknown.coverage == ""


def test_a_question_that_lacks_its_first_trial_is_counted():
    "11 originals beside 24 others: what stands only in later trials is not a part of the first."
    both = run(trials=2)
    lost = both.rows((both.table["trial"] == 1) | (both.table["question_id"] == "q"))
    assert lost.members()["there"].tolist() == [20, 0] and lost.members()["expected"].tolist() == [20, 8]
    assert lost.complete is False and lost.coverage == "0 to 20 of 8 to 20 variants"


def test_runs_of_different_questions_are_not_comparable():
    one = run()
    assert Runs([one, run("A", name="other")]).differences() == []
    less = one.rows(lambda t: t["question_id"] == "q")
    assert Runs({"all": one, "less": less}).differences() == [
        "less and all were asked different questions (1 and 2, 1 of them the same)"
    ]
    other = make_responses(w := make_variants(QUESTIONS, "cyclic"), ["A"] * len(w))
    assert Runs({"cora": one, "cyclic": other}).differences() == [
        "cyclic and cora were asked different variants of the same questions"
    ]
    with pytest.raises(CoraError, match="two runs are called 'me'"):
        Runs([one, one])
    for nothing, why in (({}, "there are no runs"), ("me", "runs must be responses"), (7, "runs must be responses")):
        with pytest.raises(CoraError, match=why):
            Runs(nothing)


def test_a_measure_says_what_it_needs():
    responses = run()
    for wrong, why in (
        (lambda: need(responses.table.drop(columns=["scores", "reply"]), "scores", "reply"), "no column scores, reply"),
        (lambda: need(responses.rows(np.zeros(28, dtype=bool))), "there are no responses to score"),
        (lambda: need(responses, forms=("tfq", "lfgq")), "of the form tfq or lfgq, and there are some of mcq"),
        (lambda: need(responses, scores=True), "ask a model that gives log-probabilities"),
        (lambda: need([1]), "responses must be Responses or a table, got a list"),
    ):
        with pytest.raises(CoraError, match=why):
            wrong()
    stopped = make_responses(VARIANTS[:2], ["A", NOT_ASKED])
    assert len(need(stopped, "correct")) == 2
    with pytest.raises(CoraError, match="1 of 2 prompts were not asked because the run stopped early"):
        need(stopped, asked=True)


def test_wrapping_a_large_table_costs_next_to_nothing():
    "A million rows of a user's own: no text is looked at, nothing is copied."
    rows = 1_000_000
    ids = pd.array(np.arange(rows).astype(str), dtype=pd.StringDtype("pyarrow"))
    table = pd.DataFrame({"question_id": ids, "correct": np.ones(rows, dtype=bool), "trial": np.zeros(rows, "int32")})
    found = need(table, "question_id", "correct")
    if not pd.__version__.startswith("2."):  # which copies where a column is added
        assert np.shares_memory(found.table["correct"].to_numpy(), table["correct"].to_numpy())


# ---- pandas


def test_pandas_works_on_the_table(tmp_path):
    "to_parquet and drop_duplicates failed on the table, merge and CSV lost what it was."
    scored = [Reply(scores=(-1.0,) * v.n_choices) for v in VARIANTS]
    responses = make_responses(VARIANTS, scored, name="me", facts={"run": {"a": [1, None]}})
    for table in (responses.table, responses.to_frame(), responses.to_frame(texts=True)):
        table.to_parquet(tmp_path / "t.parquet")
        back = Responses(pd.read_parquet(tmp_path / "t.parquet")).table
        texts = [c for c in table if c == "original_choices"]  # lists that are no numbers come back as arrays
        same = [t.drop(columns=texts).astype(object) for t in (back, Responses(table).table)]
        assert same[0].equals(same[1])
        assert len(pd.concat([table, table]).drop_duplicates()) == len(table)
        assert table.groupby("method")["correct"].mean().between(0, 1).all()
        assert table.groupby("sources").size().sum() == len(table)
        assert len(table.merge(responses.questions, on="question_id", suffixes=("", "_q"))) == len(table)
        table.drop(columns=["sources", "scores", "selected"]).to_csv(tmp_path / "t.csv", index=False)
        back = pd.read_csv(tmp_path / "t.csv")
        assert Responses(back).table["correct"].tolist() == responses.table["correct"].tolist()
        assert Responses(back).name == "me"
    write_responses(responses, tmp_path / "me")
    assert read_responses(tmp_path / "me").facts.plain() == {"run": {"a": [1, None]}}


@pytest.mark.slow
@given(st.permutations(range(28)))
@settings(max_examples=20)
def test_the_matrix_is_that_of_pandas(order):
    responses = Responses(run().table.iloc[list(order)])
    wide = responses.matrix("prediction")
    assert wide.index.tolist() == responses.questions["question_id"].tolist()
    cells = responses.table.set_index(["question_id", "method", "index"])["prediction"]
    for id, (method, index) in itertools.product(wide.index, wide.columns):
        expected = cells.get((id, method, index))
        assert pd.isna(wide.loc[id, (method, index)]) if expected is None else wide.loc[id, (method, index)] == expected
    with pytest.raises(CoraError, match="has 2 trials of a prompt; choose one"):
        run(trials=2).matrix()


def test_equal_means_equal_in_everything():
    one = run(facts={"mine": 1})
    same = Responses(one.to_frame(), one.questions, {"mine": 1}, "me")
    assert one.equals(same) and not one.equals(one.table)
    scored = [
        make_responses(VARIANTS[:1], [Reply(scores=(x, -1.0, -2.0, -3.0))]) for x in (float("nan"), -np.inf, -0.5)
    ]
    assert all(a.equals(b) == (a is b) for a in scored for b in scored)
    assert scored[0].equals(make_responses(VARIANTS[:1], [Reply(scores=(float("nan"), -1.0, -2.0, -3.0))]))
    for other in (
        run("A", facts={"mine": 1}),
        run(facts={"mine": 2}),
        run(name="other", facts={"mine": 1}),
        Responses(one.table, None, {"mine": 1}, "me"),
        one.rows(lambda t: t["question_id"] == "q"),
    ):
        assert not one.equals(other)


def test_bad_rows_are_named():
    with pytest.raises(BadRow, match="mine.csv, row 2, id 'r', answer"):
        Responses(pd.DataFrame({"question_id": ["q", "r"], "n_choices": 2, "answer": [0, 2]}), file="mine.csv")


@pytest.mark.parametrize("cut", ["limit", "sample"])
def test_parts_by_subject_are_parts_of_one_run_unless_each_was_cut(cut):
    "The first 5 questions of law and the first 5 of art are not the first 5 of anything."

    def part(**run):
        return as_facts({"respondent": {"name": "ann"}, "run": {"benchmark": "mmlu"} | run})

    law, art = part(subjects="law"), part(subjects="art")
    assert law.differences_of_parts(art) == []
    assert part(subjects="law", **{cut: None}).differences_of_parts(part(subjects="art", **{cut: None})) == []
    assert part(subjects="law", **{cut: 5}).differences_of_parts(part(subjects="art", **{cut: 5})) == ["run.subjects"]
    assert part(subjects="law", **{cut: 5}).differences_of_parts(part(subjects="law", **{cut: 5})) == []
    assert part(subjects="law").differences_of_parts(part(subjects="law", **{cut: 5}))
