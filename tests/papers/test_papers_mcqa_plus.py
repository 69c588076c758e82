"""The runs behind Tables 2 to 8: what is asked of whom, every number against plain loops, taking up what stopped."""

import json
import math
from collections import Counter, defaultdict

import pandas as pd
import pytest

from cora_nb.metrics.beliefs import confidence_ratio
from cora_nb.papers.mcqa_plus import _SUBSETS, TABLES, mcqa_plus_results, mcqa_plus_steps, prepare_steps, stack_tables
from cora_nb.prompts.templates import make_prompts
from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import CoraError, Question, uniforms
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.results import RESULT, lookup, values_of
from cora_nb.runs.asking import Asking
from cora_nb.runs.store import Store
from cora_nb.variants.mcqa_plus import true_false
from cora_nb.runs.evaluate import Running


class Moody:
    "Answers by a draw from the prompt's words: two of three right, some unreadable, several letters where allowed."

    name = "moody"

    def __init__(self, until=math.inf):
        self.asked, self.until = 0, until

    def describe(self):
        return {"respondent": "moody"}

    def request(self, prompt):
        return {"text": prompt.text}

    async def answer(self, prompts):
        for position, prompt in enumerate(prompts):
            if self.asked >= self.until:
                raise KeyboardInterrupt
            self.asked += 1
            v, (luck, place, second) = prompt.variant, uniforms(3, prompt.text)
            labels = [*v.labels, "dunno"]
            said = labels[v.answer] if luck < 0.65 else labels[int(place * len(labels))]
            if v.form == "several" and second < 0.5:
                said = f"{said}, {labels[int(second * 2 * v.n_choices)]}"
            yes = 0.2 + 0.6 * place
            yield position, Reply(said, (math.log(yes), math.log(0.95 - yes)) if v.form == "tfq" else None)


@pytest.fixture(scope="module")
def questions():
    return load_benchmark("math")[:120]


@pytest.fixture(scope="module")
def runs(questions):
    return prepare_steps(mcqa_plus_steps(questions)).ask(Moody(), Running(progress=False))


def number(results, table, score, method="", place=None):
    "One number of several tables."
    where = {"place": place} if "place" in results else {}
    return lookup(results, score, method=f"Table {table}: {method}".removesuffix(": "), **where)


def rows(responses):
    return responses.table.to_dict("records")


def chosen(row):
    "The choice a reply stands for: its source, which tells new choices apart too."
    p = row["prediction"]
    return None if p < 0 else row["sources"][p]


def by_question(some):
    found = defaultdict(list)
    for row in some:
        found[row["question_id"]].append(row)
    return found


def same(replies):
    return max(Counter(c for c in map(chosen, replies) if c is not None).values(), default=0) / len(replies)


def test_every_step_asks_what_it_should(questions, runs):
    plus = rows(runs["mcqa_plus"])
    misled = {
        r["question_id"]: r["sources"][r["prediction"]]
        for r in plus
        if r["method"] == "original" and r["prediction"] not in (-1, r["answer"])
    }
    assert 12 < len(misled) < 50
    assert {name: (len(r), len(r.questions)) for name, r in runs.items()} == {
        "mcqa_plus": (1680, 120),
        "nota_answer": (480, 120),
        "options_2": (240, 120),
        "options_3": (480, 120),
        "options_6": (480, 120),
        "options_8": (480, 120),
        "options_10": (480, 120),
        "misleading": (2 * len(misled), len(misled)),
    }
    for r in rows(runs["misleading"]):
        if r["method"] == "replaced":
            assert [i for i, s in enumerate(r["sources"]) if s < 0] == [misled[r["question_id"]]]
    assert [r.facts.run.step for r in runs.values()] == list(runs)


@pytest.mark.slow
def test_orders_and_numbers_of_choices(runs):
    "Tables 2 and 8."
    results = mcqa_plus_results(runs)
    assert list(results) == list(RESULT) and results[["benchmark", "subject", "p"]].isna().all(axis=None)
    assert {int(m[6]) for m in results["method"]} == set(TABLES) == set(range(2, 9))
    apart = {table: mcqa_plus_results(runs, table) for table in TABLES}
    pd.testing.assert_frame_equal(stack_tables(apart), results)
    plus = rows(runs["mcqa_plus"])
    sized = {
        4: [r for r in plus if r["method"] in ("original", "reordered")],
        **{n: rows(runs[f"options_{n}"]) for n in (2, 3, 6, 8, 10)},
    }
    for n, some in sized.items():
        sets = by_question(some).values()
        first = [min(s, key=lambda r: (r["method"] == "reordered", r["index"])) for s in sets]
        assert number(results, 8, "Acc", place=n)["value"] == pytest.approx(sum(r["correct"] for r in first) / 120)
        assert number(results, 8, "Acc-H", place=n)["value"] == pytest.approx(
            sum(all(r["correct"] for r in s) for s in sets) / 120
        )
        assert number(results, 8, "S_c", place=n)["value"] == pytest.approx(sum(map(same, sets)) / 120)
    assert (
        number(results, 2, "Acc")["value"]
        == number(results, 8, "Acc", place=4)["value"]
        == number(results, 7, "MCQA")["value"]
    )
    shares = Counter(round(4 * same(s)) for s in by_question(sized[4]).values())
    assert {k: number(results, 2, "share", place=k)["value"] for k in range(5)} == pytest.approx(
        {k: shares[k] / 120 for k in range(5)}
    )


def test_none_of_the_above(runs):
    "Table 3."
    results = mcqa_plus_results(runs, tables=[3])
    before = by_question(r for r in rows(runs["mcqa_plus"]) if r["method"] in ("original", "reordered"))
    after = by_question(rows(runs["nota_answer"]))
    always = [q for q, s in before.items() if all(r["correct"] for r in s)]
    for subset, ids in {"all": list(before), "always right": always}.items():
        acc, was = (
            sum(
                next(r["correct"] for r in of[q] if r["index"] == 0 and r["method"] in ("original", "nota_answer"))
                for q in ids
            )
            / len(ids)
            for of in (after, before)
        )
        how = f"{subset}, None of the above"
        row, change = (number(results, 3, score, how) for score in ("Acc", "Acc difference"))
        assert (row["value"], change["value"], row["n"], change["n"]) == (
            pytest.approx(acc),
            pytest.approx(acc - was),
            len(ids),
            len(ids),
        )
        assert number(results, 3, "Acc-H", how)["value"] == pytest.approx(
            sum(all(r["correct"] for r in after[q]) for q in ids) / len(ids)
        )


def test_beliefs(runs):
    "Tables 4 to 7."
    results = mcqa_plus_results(runs)
    plus = rows(runs["mcqa_plus"])
    always = {
        q
        for q, s in by_question(r for r in plus if r["method"] in ("original", "reordered")).items()
        if all(r["correct"] for r in s)
    }
    for subset, ids in {"all": {r["question_id"] for r in plus}, "always right": always}.items():
        claims = [r for r in plus if r["method"] == "true_false" and r["question_id"] in ids]
        for name, answer in {"right": 0, "wrong": 1}.items():
            some = [r["correct"] for r in claims if r["answer"] == answer]
            assert number(results, 4, f"T/F: {name}", f"{subset}, true/false")["value"] == pytest.approx(
                sum(some) / len(some)
            )
        right = [math.exp(r["scores"][0]) for r in claims if r["answer"] == 0]
        wrong = [
            max(math.exp(r["scores"][0]) for r in s)
            for s in by_question(r for r in claims if r["answer"] == 1).values()
        ]
        found = {
            name: number(results, 5, name, f"{subset}, true/false")
            for name in ("Conf_right", "Conf_wrong*", "Conf_wrong*/Conf_right")
        }
        assert [r["value"] for r in found.values()] == pytest.approx(
            [sum(right) / len(ids), sum(wrong) / len(ids), sum(wrong) / sum(right)]
        )
        assert all(r["low"] < r["value"] < r["high"] for r in found.values())
    several = [r for r in rows(runs["misleading"]) if r["method"] == "multiple_selection"]
    misled = {r["question_id"]: r["prediction"] for r in plus if r["method"] == "original"}
    named = {
        r["question_id"]: {"ABCD".index(c) for c in r["reply"].replace(", ", "")}
        if "dunno" not in r["reply"]
        else set()
        for r in several
    }
    multi = [q for q, letters in named.items() if len(letters) > 1]
    how = "wrong on the original, multiple selection"
    assert number(results, 6, "%multi", how)["value"] == pytest.approx(len(multi) / len(several))
    assert number(results, 6, "Recall_m", how)["value"] == pytest.approx(
        sum(misled[q] in named[q] for q in multi) / len(multi)
    )
    assert number(results, 6, "Recall_r", how)["value"] == pytest.approx(
        sum(r["answer"] in named[r["question_id"]] for r in several if r["question_id"] in multi) / len(multi)
    )
    replaced = [r["correct"] for r in rows(runs["misleading"]) if r["method"] == "replaced"]
    assert number(results, 6, "Accuracy", "wrong on the original, replacement")["value"] == pytest.approx(
        sum(replaced) / len(replaced)
    )
    assert number(results, 7, "MCQA+")["value"] == pytest.approx(sum(r["correct"] for r in plus) / len(plus))


@pytest.mark.slow
def test_stopped_anywhere_and_taken_up_again(questions, runs, tmp_path):
    "Whatever the moment, nothing is asked twice, and the numbers are those of runs that were never stopped."
    expected = mcqa_plus_results(runs)
    with Store(tmp_path / "whole.sqlite") as store:
        whole = Moody()
        prepare_steps(mcqa_plus_steps(questions)).ask(whole, Running(store=store, progress=False))
    for moment in (0, 1, 900, 1681, 1700, 3500, whole.asked - 1):
        with Store(tmp_path / f"{moment}.sqlite") as store:
            first, second = Moody(until=moment), Moody()
            with pytest.raises(KeyboardInterrupt):
                prepare_steps(mcqa_plus_steps(questions)).ask(first, Running(store=store, progress=False))
            again = prepare_steps(mcqa_plus_steps(questions)).ask(second, Running(store=store, progress=False))
        assert first.asked + second.asked == whole.asked
        pd.testing.assert_frame_equal(mcqa_plus_results(again), expected)


@pytest.mark.slow
def test_runs_read_back_from_folders(runs, tmp_path):
    for name, responses in runs.items():
        write_responses(responses, tmp_path / name)
    again = {name: read_responses(tmp_path / name) for name in runs}
    pd.testing.assert_frame_equal(mcqa_plus_results(again), mcqa_plus_results(runs))


def test_questions_of_all_sizes():
    "From 2 to 13 choices: each number of choices holds all questions once; classes of c only those with four orders."
    mixed = [
        Question(
            f"q{i}", f"Which is number {i}?", tuple(f"number {i + k}" for k in range(2 + i % 12)), i % (2 + i % 12)
        )
        for i in range(36)
    ]
    asked = prepare_steps(mcqa_plus_steps(mixed)).ask(SimulatedRespondent(knows=0.5), Running(progress=False))
    counted = values_of(mcqa_plus_results(asked, 8), "n").unstack()["Acc"]
    assert counted[[2, 3, 6, 8, 10]].tolist() == [36] * 5 and counted[[4, 5, 7, 9, 11, 12, 13]].tolist() == [3] * 7
    classes = mcqa_plus_results(asked, 2)
    assert classes.loc[classes["score"] == "share", "n"].max() <= 33
    assert lookup(mcqa_plus_results(asked, 7), "MCQA").n == 36


def test_written_statements_are_a_setting_of_their_own(questions):
    written = {(q.id, i): true_false(q, i).text + " Is that so?" for q in questions[:10] for i in range(4)}
    results = mcqa_plus_results(
        prepare_steps(mcqa_plus_steps(questions, statements=written)).ask(Moody(), Running(progress=False)), tables=4
    )
    found = values_of(results, "n").xs("T/F: right", level="score")
    assert {m: n for m, n in found.items() if m.startswith("all")} == {
        "all, true/false": 110,
        "all, true/false, written": 10,
    }


def test_no_scores_no_confidence(questions):
    results = mcqa_plus_results(
        prepare_steps(mcqa_plus_steps(questions[:5])).ask(SimulatedRespondent(knows=0.9), Running(progress=False)),
        tables=[5],
    )
    assert len(results) and results["value"].isna().all()


def test_what_is_told_before_a_run_is_what_is_kept_of_it(questions):
    "Facts come before anything is asked, run by run, and a run can be refused on their account."
    told, order = {}, []
    asked = {"before": lambda name, facts: (told.update({name: facts}), order.append(f"before {name}"))}
    asked["on_run"] = lambda name, responses: order.append(name)
    steps = prepare_steps(mcqa_plus_steps(questions[:20]), facts={"place": "here"})
    runs = steps.ask(Moody(), Running(progress=False), **asked)
    assert order == [line for name in runs for line in (f"before {name}", name)]
    kept = {name: r.facts.without("calls") for name, r in runs.items()}
    assert told == kept and {f.run.place for f in told.values()} == {"here"}

    def refuse(name, facts):
        raise CoraError(f"not {name}")

    with pytest.raises(CoraError, match="not mcqa_plus"):
        prepare_steps(mcqa_plus_steps(questions[:2])).ask(who := Moody(), Running(progress=False), before=refuse)
    assert who.asked == 0


@pytest.mark.slow
def test_prepared_steps_are_those_that_are_asked(questions, monkeypatch):
    "The same runs with the same facts, for two respondents, and no prompt is made twice."
    steps, options = mcqa_plus_steps(questions[:20]), {"facts": {"place": "here"}, "asking": Asking("bare")}
    alone = {
        knows: prepare_steps(steps, **options).ask(SimulatedRespondent(knows=knows), Running(progress=False))
        for knows in (0, 0.9)
    }
    made = []

    def counted(variants, *rest):
        made.append(len(variants))
        return make_prompts(variants, *rest)

    monkeypatch.setattr("cora_nb.runs.asking.make_prompts", counted)
    prepared = prepare_steps(steps, **options)
    assert "misleading" not in prepared.known and prepared.known.keys() == steps.keys() - {"misleading"}
    known = len(made)
    for knows, wanted in alone.items():
        told, who = {}, SimulatedRespondent(knows=knows)
        found = prepared.ask(who, Running(progress=False), before=told.__setitem__)
        assert found.keys() == wanted.keys() == told.keys() and "misleading" in found
        assert all(found[name].equals(wanted[name]) and found[name].facts == wanted[name].facts for name in wanted)
        assert all(told[name] == r.facts.without("calls") for name, r in found.items())
    assert known == len(prepared.known) and len(made) == known + 2  # what is misleading is known of each by itself


def test_errors(runs):
    with pytest.raises(CoraError, match="tables must be among 2, 3, 4, 5, 6, 7, 8, got 9"):
        mcqa_plus_results(runs, tables=[9])
    with pytest.raises(CoraError, match="there is no run nota_answer; there are mcqa_plus"):
        mcqa_plus_results({"mcqa_plus": runs["mcqa_plus"]})
    with pytest.raises(CoraError, match="there are no questions|nothing to ask"):
        prepare_steps(mcqa_plus_steps([])).ask(Moody(), Running(progress=False))


def test_more_orders_and_none_of_the_above_last(questions):
    "Appendix A has more orders than four, and the paper's figures show None of the above last."
    some = questions[:6]
    steps = mcqa_plus_steps(some, orders=6)
    plain = mcqa_plus_steps(some)
    made = {name: step({}) for name, step in steps.items()}
    for q in some:
        own = {name: [v for v in vs if v.question_id == q.id] for name, vs in made.items()}
        same = [v for v in own["mcqa_plus"] if v.method in ("original", "reordered")]
        assert len({v.sources for v in same}) == len(same) == min(6, math.factorial(q.n_choices))
        denied = [v for v in [*own["mcqa_plus"], *own["nota_answer"]] if v.method.endswith("nota_answer")]
        assert denied and all(v.answer == v.n_choices - 1 for v in denied)
        assert len(own["options_6"]) == 6 and len(own["nota_answer"]) == min(6, math.factorial(q.n_choices - 1))
    recipe = json.loads(made["nota_answer"][0].recipe)
    assert recipe["options"] == {"nota": True, "orders": 6, "nota_place": "last"}
    again = mcqa_plus_steps(some, orders=4, nota_place="last")
    assert all([v.recipe for v in again[name]({})] == [v.recipe for v in plain[name]({})] for name in plain)
    there = mcqa_plus_steps(some, nota_place="answer")["nota_answer"]({})
    assert [v.answer for v in there if v.method == "nota_answer"] == [q.answer for q in some]
    assert "nota_place" not in json.loads(there[0].recipe)["options"]
    runs = prepare_steps(steps).ask(SimulatedRespondent(knows=1.0), Running(progress=False))
    shares = mcqa_plus_results(runs, 2)
    assert shares.loc[shares["score"] == "share", "place"].max() == 6
    three = mcqa_plus_results(runs, 3)
    assert (three.loc[three["score"].isin(["Acc", "Acc-H"]), "value"] == 1).all() and runs["nota_answer"].complete
    for options, says in [
        (dict(orders=1), "orders must be a whole number of 2 or more, got 1"),
        (dict(nota_place="first"), "nota_place must be one of answer, last, got 'first'"),
    ]:
        with pytest.raises(CoraError, match=says):
            mcqa_plus_steps(some, **options)


def test_subsets_and_normalisation_of_table_5(questions, runs):
    plus = runs["mcqa_plus"].table
    right = set(plus[(plus["method"] == "original") & plus["correct"]]["question_id"])
    always = set(
        plus[plus["method"].isin(["original", "reordered"])].groupby("question_id")["correct"].min()[lambda x: x].index
    )
    assert always < right < {q.id for q in questions}
    for normalise in (False, True):
        found = mcqa_plus_results(runs, 5, subsets=_SUBSETS, normalise=normalise)
        for subset, ids in zip(_SUBSETS, (always, right, {q.id for q in questions})):
            some = runs["mcqa_plus"].rows((plus["method"] == "true_false") & plus["question_id"].isin(ids))
            expected = values_of(confidence_ratio(some, normalise))
            mine = values_of(found[found["method"] == f"{subset}, true/false"])
            for name, value in mine.items():
                assert value == pytest.approx(expected[name if isinstance(name, str) else name[-1]], nan_ok=True)
    four = mcqa_plus_results(runs, 4, subsets=["right on the original"])
    assert set(four["method"]) == {"right on the original, true/false"}
    with pytest.raises(CoraError, match="subsets must be among always right, right on the original, all"):
        mcqa_plus_results(runs, 5, subsets=["right"])
