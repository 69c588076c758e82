"""From a reply to a row: words, scores and errors, in every form."""

import math

import pandas as pd
import pytest
from hypothesis import given, settings

from cora_nb.core import CoraError, Question
from cora_nb.forms import FORMS, Variant, Verdict
from cora_nb.prompts.letters import rules_by_form
from cora_nb.respondents.protocol import Reply
from cora_nb.responses.columns import grade_reply, graded_table
from cora_nb.variants.families import make_variants
from helpers import replies_for

VARIANTS = make_variants([Question("q", "?", ("a", "b", "c", "d"), 2, "s"), Question("r", "!", ("yes", "no"), 1)])
RULES = rules_by_form("careful")


@given(replies_for(VARIANTS))
@settings(max_examples=50)
def test_a_row_says_what_was_asked_and_what_came_back(replies):
    table = graded_table(VARIANTS, replies)
    for row, v, r in zip(table.itertuples(), VARIANTS, replies):
        assert (row.sources, row.answer, row.form) == (v.sources, v.answer, v.form)
        assert row.correct == (row.prediction == v.answer) and row.selected is None
        assert (row.reply is pd.NA) == (r.text is None) and row.scores == r.scores
        assert grade_reply(v, r, RULES)[:3] == (row.prediction, row.selected, row.correct)


def predict(reply, choices):
    variant = Variant(Question("q", "?", tuple(choices), 0), "f", "m", 0, tuple(choices), 0, tuple(range(len(choices))))
    return grade_reply(variant, reply, RULES).prediction


def test_scores_with_a_tie_choose_nothing():
    assert predict(Reply(scores=(-1.0, -1.0, -2.0)), "abc") == -1
    assert predict(Reply(scores=(-2.0, -1.0, -1.5)), "abc") == 1
    assert predict(Reply(scores=(float("nan"), 0.0)), "ab") == predict(Reply(scores=()), "ab") == -1
    assert predict(Reply(scores=(-math.inf, -math.inf)), "ab") == -1
    assert predict(Reply(text="B", scores=(0.0, -9.0)), "ab") == 1  # words win over scores


@pytest.mark.parametrize("form", FORMS)
def test_an_error_is_no_answer_whatever_stands_beside_it(form):
    v = Variant(Question("q", "?", ("a", "b"), 0), "f", "m", 0, ("a", "b"), 0, (0, 1), form)
    for reply in (Reply(error="timeout"), Reply("A", (0.0, -1.0), error="cut off")):
        assert grade_reply(v, reply, RULES) == Verdict(-1, None, False)


def test_lengths_must_agree():
    with pytest.raises(CoraError, match="equally many, got 2, 1 and 2"):
        graded_table(VARIANTS[:2], ["A"])


@pytest.mark.parametrize(
    "noted", [{"completion_tokens": "7"}, {"completion_tokens": 7.5}, {"finish_reason": 3}, {"mean_logprob": "x"}]
)
def test_what_a_server_says_amiss_is_not_known(noted):
    "A run is not lost because a server counts tokens in words."
    (row,) = graded_table(VARIANTS[:1], [Reply("A", meta=noted)]).itertuples()
    assert row.n_tokens is pd.NA and row.finish is pd.NA and math.isnan(row.mean_logprob)


def test_what_a_respondent_says_beside_a_reply_is_kept():
    meta = {"completion_tokens": 7, "finish_reason": "length", "mean_logprob": -0.25, "model": "m"}
    (row,) = graded_table(VARIANTS[:1], [Reply("A", meta=meta)]).itertuples()
    assert (row.n_tokens, row.finish, row.mean_logprob) == (7, "length", -0.25)
