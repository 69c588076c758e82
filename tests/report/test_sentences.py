"""Sentences that follow from numbers."""

import re

import numpy as np
import pandas as pd
import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import Question
from cora_nb.metrics.scoring import score
from cora_nb.metrics.circular import position_spread
from cora_nb.metrics.account import account, paper_counts
from cora_nb.report.findings import findings
from cora_nb.report.sentences import fault_lines, sentences, steadiness_lines
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.responses.runs import Runs
from cora_nb.results import lookup
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants
from helpers import put_in_state

VARIANTS = make_variants(math_benchmark(80))


def ask(name, **options):
    return evaluate(SimulatedRespondent(name=name, **options), VARIANTS, progress=False)


def said(*runs):
    return sentences(Runs(list(runs)))


def one(found, pattern):
    matching = [sentence for sentence in found if re.search(pattern, sentence)]
    assert len(matching) == 1, found
    return matching[0]


def test_the_numbers_are_those_of_the_run():
    run = ask("m", slips=0.2)
    counts, table = paper_counts(account(run)), score(run, ci=0.95)
    right = counts[counts["original"] == 1]
    fail = (right["hits"] < right["trials"]).sum()
    assert f"Of the {len(right)} questions that m gets right as they stand, {fail} (" in one(said(run), "as they stand")
    plain, cora = lookup(table, "MCQA"), lookup(table, "CoRA")
    told = f"The accuracy of m is {plain.value:.2f}; with consistency counted in, CoRA, it is {cora.value:.2f} "
    assert f"{told}[{cora.low:.2f}, {cora.high:.2f}]." in said(run)


@pytest.mark.parametrize("position, leans", [((8, 1), True), (None, False)])
def test_a_leaning_is_said_where_there_is_one(position, leans):
    run = ask("m", slips=0.1, **({"position": position} if position else {}))
    sentence = one(said(run), "lean|No effect of the right answer")
    assert sentence.startswith("m leans on place 1 of 4: it is right in ") == leans
    assert ("No effect of the right answer's place on the accuracy of m is seen" in sentence) != leans


@pytest.mark.parametrize("position, leans", [((8, 1), True), (None, False)])
def test_a_leaning_where_the_answer_never_moves(position, leans):
    variants = [v for v in make_variants(math_benchmark(200)) if v.method == "original"]
    who = SimulatedRespondent(slips=0.4, name="m", **({"position": position} if position else {}))
    sentence = one(said(evaluate(who, variants, progress=False)), "lean|No effect of the right|No preference")
    table = position_spread(evaluate(who, variants, progress=False), threshold=None, resamples=1000)
    assert ("leans" in sentence) == (lookup(table, "position range").p < 0.05)


def test_who_always_answers_right_or_wrong():
    right = ask("right", slips=0.0, knows=1.0)
    assert "0 (0%" in one(said(right), "as they stand")
    replies = [Reply("B" if v.answer == 0 else "A") for v in VARIANTS]
    wrong = make_responses(VARIANTS, replies, name="wrong")
    assert "wrong gets none of the 80 questions right as they stand." in said(wrong)


def test_unread_and_failed():
    kinds = [Reply("???"), Reply(error="gone"), Reply("A"), Reply("A"), Reply("A"), Reply("A"), Reply("A")]
    replies = [kinds[i % 7] for i in range(len(VARIANTS))]
    found = said(make_responses(VARIANTS, replies, name="m"))
    assert "229 of 1,600 replies of m cannot be read, and count as wrong." in found
    assert "229 of 1,600 prompts for m failed, so these replies are not known." in found
    assert not [s for s in found if s.startswith("The accuracy of m is")]
    assert one(found, "CoRA of m is not known")


def test_how_steady_a_run_is():
    "By hand: of what is known. Up to one reply in a hundred may be unknown, as for scores."
    run = ask("m", knows=0.6, slips=0.1)
    first = np.flatnonzero(run.table["question_id"] == run.table["question_id"][0])  # 20: more than one in a hundred
    for lost, as_wrong in [([], 0), ([3], 0), (range(16), 0), (range(17), 0), (first, 0), (first, 1)]:  # of 1,600
        some = Responses(put_in_state(run.table, list(lost), "failed", "gone"), run.questions, run.facts, "m")
        some = some.count_failed_as_wrong() if as_wrong else some
        known = run.table.assign(correct=run.table["correct"].mask(run.table.index.isin(lost), False))
        known = known if as_wrong else known.drop(index=known.index[list(lost)])
        rights = known.groupby("question_id")["correct"].agg(["any", "all"])
        mixed = int((rights["any"] & ~rights["all"]).sum())
        four = known[known["n_choices"] == 4]
        places = [f"{k + 1}: {100 * four[four['answer'] == k]['correct'].mean():.0f}%" for k in range(4)]
        assert steadiness_lines(findings({"m": some}), "m") == (
            []
            if len(lost) > 16 and not as_wrong
            else [
                f"m: {mixed} of {len(rights)} questions are right in some variants and wrong in others",
                f"m: right by the place of the answer among 4 choices: {', '.join(places)}",
            ]
        )


@pytest.mark.slow
def test_one_is_ahead_or_they_cannot_be_told_apart():
    strong, weak, same = ask("strong", slips=0.02), ask("weak", slips=0.1), ask("same", slips=0.02, seed=1)
    assert one(said(strong, weak), "By CoRA").startswith("By CoRA, strong is ahead of weak (strong - weak: ")
    assert one(said(weak, strong), "By CoRA").startswith("By CoRA, strong is ahead of weak (weak - strong: -")
    assert one(said(strong, same), "By CoRA").startswith("By CoRA, strong and same cannot be told apart")


def test_runs_that_cannot_be_compared_say_nothing_of_each_other():
    other = make_variants([Question("x", "?", ("a", "b"), 0), Question("y", "?", ("a", "b"), 1)])
    found = said(ask("m"), evaluate(SimulatedRespondent(name="n"), other, progress=False))
    assert not [s for s in found if s.startswith("By ")]


def test_a_notebook_shows_runs_with_intervals_and_never_raises():
    "MCQA, BMCA(1.0) and CoRA of each run and a guesser's; runs that cannot be scored by their names."
    runs = Runs([ask("fair", slips=0.1), ask("leaning", position=(6, 1))])
    page = runs._repr_html_()
    for name, run in runs.items():
        row = lookup(score(run, ci=0.95), "CoRA")
        assert f"<td>{row.value:.2f} [{row.low:.2f}, {row.high:.2f}]</td>" in page and f">{name}</th>" in page
    assert "a guesser" in page and "in brackets: 95% intervals" in page and "BMCA(1.0): right in every variant" in page
    table = pd.DataFrame({"question_id": ["q"], "correct": [True], "respondent": ["<b>"]})
    odd = Runs({"<b>": Responses(table)})
    assert "<b>" not in odd._repr_html_() and "&lt;b&gt;" in odd._repr_html_()


def test_one_place_nearly_always_chosen_is_said_once():
    "Not also that the others are never chosen."
    replies = ["B"] * len(VARIANTS)
    known = findings(make_responses(VARIANTS, [Reply(text) for text in replies], "careful", name="b"))
    (line,) = [line for line in fault_lines(known, "b") if "place" in line]
    assert line.startswith("place 2 is chosen in 100% of ")
    assert not any(re.search(r"place [134]", line) for line in sentences(known) if "fault" in line)
