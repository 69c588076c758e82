"Tables in the paper's order: the published ranks, what is known of a run, and what is refused."

import math
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from score_tables import PUBLISHED, SCORES, published, sure
from table_readers import printed_table
from scipy.stats import rankdata

from cora_nb.core import CoraError
from cora_nb.metrics.guessing import chance_scores
from cora_nb.metrics.scoring import score
from cora_nb.report.present import competition_ranks, number_text
from cora_nb.report.render import render
from cora_nb.report.tables import GUESSER, score_table
from cora_nb.responses.runs import RunDifference, Runs
from cora_nb.results import CHANCE, Remark, RESULT, lookup, make_result, values_of


def wide(table, what="value"):
    "Scores x runs."
    return table.pivot(index="score", columns="respondent", values=what).loc[
        table["score"].unique(), table["respondent"].unique()
    ]


@pytest.mark.parametrize("number", PUBLISHED)
def test_published_numbers_and_ranks(number):
    names, cells, runs = published(number)
    table = score_table(runs)
    assert list(table) == list(RESULT) and set(table["status"]) <= {"exact", "unknown"} and not table["remarks"].any()
    assert table["respondent"].tolist() == [name for name in names for _ in SCORES]
    assert table["score"].tolist() == SCORES * len(names)
    printed = printed_table(table)
    assert list(printed) == names and printed.index.get_level_values("score").tolist() == SCORES
    assert printed.to_numpy().tolist() == cells


def test_a_new_run_changes_the_ranks_of_the_others():
    _, _, runs = published(3)
    runs["best"] = pd.Series(1.0, index=SCORES)
    assert printed_table(score_table(runs)).iloc[0].tolist() == [
        "0.80 (3)",
        "0.72 (4)",
        "0.82 (2)",
        "0.64 (5)",
        "1.00 (1)",
    ]


numbers = st.floats(-2, 2) | st.sampled_from([0.745, 0.7449, 0.7451, 0.735, 0.125, 0.5, 0.005, 0.0, -0.0, math.nan])


@given(st.lists(numbers, max_size=12), st.integers(0, 6))
def test_ranks_are_those_of_scipy_on_the_printed_numbers(values, digits):
    ranks = competition_ranks(values, digits)
    known = [(float(number_text(v, digits)), r) for v, r in zip(values, ranks) if not math.isnan(v)]
    assert [r is None for r in ranks] == [math.isnan(v) for v in values]
    assert [r for _, r in known] == rankdata([-p for p, _ in known], method="min").tolist()


@given(st.lists(numbers, min_size=2, max_size=8), st.integers(0, 6))
def test_equal_texts_have_equal_ranks_and_no_others_have(values, digits):
    texts, ranks = [number_text(v, digits) for v in values], competition_ranks(values, digits)
    for a, rank_a in zip(texts, ranks):
        for b, rank_b in zip(texts, ranks):
            assert (a == b) == (rank_a == rank_b)


@given(st.floats(-2, 2), st.integers(1, 15))
def test_a_number_is_printed_as_the_nearest_decimal(value, digits):
    text = number_text(np.float64(value), digits)
    assert len(text.split(".")[1]) == digits
    assert abs(Decimal(text) - Decimal(value)) * 2 <= Decimal(1).scaleb(-digits)
    assert not re.fullmatch(r"-0\.0*", text)


def test_ties_hang_on_the_digits():
    runs = {"a": {"MCQA": 0.751}, "b": {"MCQA": 0.749}, "c": {"MCQA": 0.62}}
    assert printed_table(score_table(runs)).iloc[0].tolist() == ["0.75 (1)", "0.75 (1)", "0.62 (3)"]
    assert printed_table(score_table(runs), digits=4).iloc[0].tolist() == ["0.7510 (1)", "0.7490 (2)", "0.6200 (3)"]


def test_a_table_without_a_known_interval_is_plain():
    nothing = sure({"MCQA": 0.5}).assign(low=np.nan, high=np.nan)
    plain, known = score_table({"a": nothing[["value"]]}), score_table({"a": sure({"MCQA": 0.5})})
    assert list(plain) == list(known) == list(RESULT) and plain["low"].isna().all() and known["low"].notna().all()
    for format in ("text", "markdown", "latex", "csv"):
        assert render(score_table({"a": nothing}), format) == render(plain, format) != render(known, format)
    assert score_table({"a": sure({"MCQA": 0.5, "RC": 0.5})}, beyond=True).shape == (2, len(RESULT))


def test_scores_with_intervals_come_from_score():
    rng = np.random.default_rng(0)
    rows = [(f"q{i}", m, rng.random() < 0.7) for i in range(40) for m in ("original", "nota")]
    table = pd.DataFrame(rows, columns=["question_id", "method", "correct"]).assign(trial=0)
    scores = score(table, ci=0.95)
    made = score_table({"with": scores, "without": score(table), "responses": table})
    bounds = ["value", "low", "high"]
    mcqa = lookup(scores, "MCQA")
    assert lookup(made, "MCQA", respondent="with")[bounds].tolist() == mcqa[bounds].tolist()
    for name in ("without", "responses"):
        found = lookup(made, "MCQA", respondent=name)
        assert found.value == mcqa.value and math.isnan(found.low) and math.isnan(found.high)


def test_one_run_has_no_ranks():
    _, _, runs = published(3)
    table = score_table({"Gran": runs["Gran"]})
    assert printed_table(table).iloc[:, 0].tolist()[:4] == ["0.82", "0.89", "0.91", "0.65"]
    for format in ("text", "markdown", "latex"):
        assert "(1)" not in render(table, format)
    assert "(1)" not in render(table, "html")


def test_beyond_the_paper_and_other_thresholds():
    run = pd.Series({"CORE": 0.1, "BMCA(1.0)": 0.2, "BMCA(0.25)": 0.6, "MCQA": 0.5, "RC": 0.4})
    assert score_table({"a": run})["score"].tolist() == ["MCQA", "BMCA(0.25)", "BMCA(1.0)"]
    assert score_table({"a": run}, beyond=True)["score"].tolist()[3:] == ["CORE", "RC"]
    assert score_table({"a": run}, beyond=["RC"])["score"].tolist()[3:] == ["RC"]
    assert printed_table(score_table({"a": run}, beyond=True)).index.tolist() == [
        ("Baselines", "MCQA"),
        ("Secondary metrics", "BMCA(0.25)"),
        ("Secondary metrics", "BMCA(1.0)"),
        ("Beyond the paper", "CORE"),
        ("Beyond the paper", "RC"),
    ]
    assert "BMCA(0.25)" in render(score_table({"a": run}))


def test_responses_are_scored_on_the_way():
    rows = [
        ("q1", "original", 0, True),
        ("q1", "shuffled", 0, True),
        ("q2", "original", 0, True),
        ("q2", "shuffled", 0, False),
    ]
    responses = pd.DataFrame(rows, columns=["question_id", "method", "index", "correct"]).assign(
        subject=None, family="cora", trial=0, n_choices=4, answer=0, confidence=np.nan, reply=None, error=None
    )
    responses["prediction"] = np.where(responses.correct, 0, 1)
    responses["sources"] = [[0, 1, 2, 3]] * 4
    responses["scores"] = None
    table = score_table({"run": responses}, guesser=False)
    expected = values_of(score(responses))
    found = values_of(table)
    part = {"CI", "CoRA"}  # two of twenty variants are no divergence set
    assert found.drop(list(part)).to_dict() == pytest.approx({s: expected[s] for s in SCORES if s not in part})
    assert found[list(part)].isna().all()
    assert table["note"].tolist() == [""] + ["2 of 20 variants"] * (len(SCORES) - 1)
    assert render(table).splitlines()[-1] == "run has 2 of 20 variants"
    responses = responses.drop(columns="family")  # nobody knows what the set is
    whole, expected = score_table({"run": responses}, guesser=False), values_of(score(responses))
    assert values_of(whole).to_dict() == pytest.approx({s: expected[s] for s in SCORES}, nan_ok=True)


def test_whatever_runs_can_be_made_of(simulated):
    "Runs, a mapping, a sequence, one value, its table: the same table."
    two = {name: simulated[name] for name in "ab"}
    expected = score_table(two)
    assert expected["respondent"].unique().tolist() == ["a", "b", GUESSER] and "(1)" in render(expected)
    for runs in (Runs(two), list(two.values()), {name: run.table for name, run in two.items()}):
        pd.testing.assert_frame_equal(score_table(runs), expected)
    for one in (simulated["a"], simulated["a"].table, [simulated["a"]]):
        own = expected[expected["respondent"] == "a"]
        pd.testing.assert_frame_equal(score_table(one, guesser=False), own)
    plain = score_table(two, guesser=False)
    pd.testing.assert_frame_equal(
        score_table(wide(plain)), plain.assign(benchmark=None, n=pd.NA).astype({"n": "Int64"})
    )
    sure = score_table(two, ci=0.9)
    same = ["respondent", "score", "value"]  # intervals have remarks of their own
    own = (sure["respondent"] != GUESSER).to_numpy()
    assert sure[same].equals(expected[same]) and sure.loc[own, ["low", "high"]].notna().all(axis=None)


def test_results_go_in_as_they_came_out(simulated):
    "Alone, part by part, under other names, beside responses and plain scores, and read back from CSV."
    runs = {name: simulated[name] for name in ("a", "part", "half|_<b>")}
    table = score_table(runs, ci=0.9, beyond=True)
    pd.testing.assert_frame_equal(score_table(table, beyond=True), table)
    parts = dict(list(table.groupby("respondent", sort=False)))
    pd.testing.assert_frame_equal(score_table(parts, beyond=True), table)
    one = table[table["respondent"] == "a"]
    renamed = score_table({"new": one, "plain": {"MCQA": 0.5}, "run": simulated["a"]}, ci=0.9, beyond=True)
    assert renamed["respondent"].unique().tolist() == ["new", "plain", "run", GUESSER]
    for name in ("new", "run"):
        again = renamed[renamed["respondent"] == name].assign(respondent="a").reset_index(drop=True)
        pd.testing.assert_frame_equal(make_result(again), make_result(one))
    scores = renamed[renamed["respondent"] == "plain"]
    assert scores["score"].tolist() == one["score"].tolist() and scores["value"].notna().tolist() == [True] + [
        False
    ] * (len(scores) - 1)
    lines = render(table, "text"), render(score_table(parts, beyond=True), "text")
    assert lines[0] == lines[1]


def test_every_number_of_the_table_is_a_row_of_a_result(simulated):
    table = score_table({name: simulated[name] for name in ("a", "part")}, ci=0.9, guesser=False)
    assert set(table) <= set(RESULT) and len(table) == 2 * len(SCORES)
    unlike = Remark("unlike", what=(RunDifference(("part", "a")),), why="runs")
    part = table[table["respondent"] == "part"].set_index("score")["remarks"]
    told = {name: [r for r in part[name] if r.kind != "few"] for name in ("MV", "MCQA")}
    assert told == {"MV": [Remark("incomplete", 2, of=20), unlike], "MCQA": [unlike]}
    assert {r.kind for said in table.loc[table["respondent"] == "a", "remarks"] for r in said} <= {"few"}


def test_results_of_incomplete_runs_say_so(simulated):
    "As the runs themselves do."
    table = score_table({"part": score(simulated["part"])})
    pd.testing.assert_frame_equal(table, score_table({"part": simulated["part"]}, guesser=False))
    assert set(table["note"].loc[table["score"] != "MCQA"]) == {"2 of 20 variants"}


def test_published_numbers_beside_responses_are_ranked(simulated):
    "Scores by name say nothing of what was asked; the reader knows what he lays side by side."
    table = score_table({"a": simulated["a"], "printed": {"MCQA": 0.1}})
    assert printed_table(table).loc[("Baselines", "MCQA")].tolist()[1] == "0.10 (2)"
    table = score_table({"printed": {"MCQA": 0.1}, "part": simulated["part"]})
    assert printed_table(table).loc[("Baselines", "MCQA")].tolist()[0] == "0.10"


def test_a_name_cannot_break_a_note(simulated):
    "A run's name with a line break stays in one line of the note."
    table = score_table({"a\nb": simulated["a"], "p\nq": simulated["part"]})
    said = lookup(table, "MV", respondent="p\nq").note.split("\n")
    assert said == ["2 of 20 variants", "p q and a b were asked different variants of the same questions"]
    assert [line for line in render(table).splitlines() if "ranks" in line] == [
        "No ranks: p q has 2 of 20 variants",
        "No ranks: p q and a b were asked different variants of the same questions",
    ]


@pytest.mark.parametrize(
    "runs, says",
    [
        ({"a": {"MCQA": "x"}}, "run 'a': the score 'MCQA' must be a finite number, got 'x'"),
        ({"a": {"MCQA": -math.inf}}, "got -inf"),
        ({"a": {"MCQA": [0.5]}}, "must be a finite number, got [0.5]"),
        ({"a": [0.5]}, "run 'a': scores by name or responses are needed, got a list"),
        ({"a": None}, "got a NoneType"),
        ({"a": pd.Series([0.5, 0.6], index=["MCQA", "MCQA"])}, "the score 'MCQA' occurs twice"),
        (
            {"a": pd.DataFrame({"value": [0.5], "low": [0.4]}, index=["MCQA"])},
            "run 'a': scores have the columns value, low and high, and a responses table has question_id; "
            "got value, low",
        ),
        (
            {"a": pd.DataFrame({"value": [0.5], "low": [-math.inf], "high": [1]}, index=["MCQA"])},
            "run 'a': the score 'MCQA, low' must be a finite number, got -inf",
        ),
        ({"a": pd.DataFrame({"value": [0.5, 0.5]}, index=["MCQA", "MCQA"])}, "the score 'MCQA' occurs twice"),
        ({"a": {"CORE": 0.5}}, "nothing to show: no run among ['a'] has a score of the table"),
        ({}, "nothing to show"),
        ({1: {"MCQA": 1}, "1": {"MCQA": 1}}, "two runs have the same name"),
        (pd.DataFrame([[0.5, 0.5]], index=["MCQA"], columns=["a", "a"]), "two runs have the same name"),
        (pd.DataFrame({"question_id": ["q1"]}), "the responses have no column method"),
        ([{"MCQA": 0.5}], "must be given by name"),
        (pd.Series({"MCQA": 0.5}), "must be given by name"),
        (make_result([{"score": "MCQA", "value": 0.5}]), "must be given by name"),
        (
            make_result([{"method": m, "score": "MCQA", "value": 0.5} for m in "xy"], respondent="a"),
            "run 'a': the score 'MCQA' occurs twice",
        ),
        (
            make_result([{"score": "MCQA", "value": 0.5}], respondent="a").assign(value="x"),
            "run 'a': the score 'MCQA' must be a finite number, got 'x'",
        ),
    ],
)
def test_bad_runs_are_refused_in_one_line(runs, says):
    with pytest.raises(CoraError, match=re.escape(says)) as caught:
        score_table(runs)
    assert "\n" not in str(caught.value)


def test_what_a_guesser_gets_stands_beside_the_runs_without_a_rank(simulated):
    two = {name: simulated[name] for name in "ab"}
    table = score_table(two)
    chance = values_of(chance_scores(simulated["a"]))
    for name in ("MCQA", "BMCA(1.0)", "CoRA"):
        row = lookup(table, name, respondent=GUESSER)
        assert row.value == pytest.approx(chance[name]) and row.remarks == (CHANCE,) and not row.note
    text = render(table)
    (line,) = [line for line in text.splitlines() if line.split()[:1] == ["MCQA"]]
    assert "(1)" in line and "(2)" in line and not line.rstrip().endswith(")")  # the guesser has no rank
    one = render(score_table({"a": simulated["a"]}))
    assert GUESSER in one and "(1)" not in one and "No ranks" not in one
    assert GUESSER not in render(score_table({"a": simulated["a"]}, guesser=False))
    assert GUESSER not in render(score_table({"a": score(simulated["a"])}))  # of scores alone it is not known


def test_a_cora_that_depends_on_the_accuracy_alone_gives_no_rank():
    "Two respondents of MCQA .75 and .62 that are never right in all variants: the better one has the lower CoRA."
    rows = []
    for q in range(200):
        for i, method in enumerate(("original", "nota", "shuffled", "decoupled")):
            rows.append((f"q{q}", method, 0, q, i))
    table = pd.DataFrame(rows, columns=["question_id", "method", "index", "q", "i"])
    runs = {
        f"{m}": table.assign(correct=(table["i"] == 0) & (table["q"] < 200 * m) | (table["i"] == 1))
        for m in (0.75, 0.62)
    }
    made = score_table({name: run.drop(columns=["q", "i"]) for name, run in runs.items()})
    assert values_of(made)["0.75"]["CoRA"] == pytest.approx(0.75 * 0.25)
    assert values_of(made)["0.62"]["CoRA"] == pytest.approx(0.62 * 0.38)
    text = render(made)
    (cora,) = [line for line in text.splitlines() if line.split()[:1] == ["CoRA"]]
    (mcqa,) = [line for line in text.splitlines() if line.split()[:1] == ["MCQA"]]
    assert "(" not in cora and "(1)" in mcqa and text.count("depends on the accuracy alone") == 2
