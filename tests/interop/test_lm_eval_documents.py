"""Documents of lm-evaluation-harness: which choices they have, and which of them is right."""

import json
import re

import pytest

from cora_nb.core import BadRow
from cora_nb.interop.lm_eval_logs import _doc_choices, _read_sample, _right_choice, _scored_question, _written_question
from lm_eval_rows import scored_row, written_row


@pytest.mark.parametrize(
    ("doc", "choices"),
    [
        ({"choices": ["a", "b"]}, ("a", "b")),
        ({"options": {"A": "a", "B": "b"}}, ("a", "b")),
        ({"options": [{"key": "A", "value": "a"}, {"key": "B", "value": "b"}]}, ("a", "b")),
        ({"choices": {"text": ["a", "b"], "label": ["A", "B"]}}, ("a", "b")),
        ({"choices": [{"text": "a"}, {"text": "b"}]}, ("a", "b")),
        ({"A": "a", "B": "b", "C": ""}, ("a", "b")),
        ({"option1": "a", "option2": "b"}, ("a", "b")),
        ({"ending0": "a", "ending1": "b", "ending2": "c"}, ("a", "b", "c")),
        ({"choices": ["a"]}, None),
        ({"choices": ["a", None]}, None),
        ({"A": "a", "C": "c"}, None),
    ],
)
def test_choices_of_a_document(doc, choices):
    assert _doc_choices(doc) == choices


@pytest.mark.parametrize(
    ("target", "doc", "field", "acc", "answer"),
    [
        ("1", {}, None, None, 1),
        ("2", {}, None, 0.0, 2),
        ("y", {}, "{{right}}", None, 1),
        ("z", {"answer": "z"}, "answer", 0.0, 2),
        ("[2]", {"answers": [2]}, "answers", 0.0, 2),
        ("0", {}, 0, 0.0, 0),
        ("3", {}, None, None, "the target is none of the choices, got '3'"),
        ("-1", {"label": -1}, "label", 0.0, "the target is none of the choices, got -1"),
        ("[0, 1]", {}, None, 1.0, "2 choices are right, and a question here has one right choice, got .0, 1."),
        ("1", {}, None, 0.37, "this task counts in a way of its own"),
    ],
)
def test_which_choice_is_right(target, doc, field, acc, answer):
    sample = _read_sample(scored_row(doc=doc, target=target, acc=acc), 7, "log")
    if isinstance(answer, int):
        assert _right_choice(sample, ("x", "y", "z"), field, "log") == answer
    else:
        with pytest.raises(BadRow, match=f"log, row 7, id '0', .*{answer}"):
            _right_choice(sample, ("x", "y", "z"), field, "log")


def test_a_number_may_be_an_index_or_a_text():
    for lls, acc, answer in (((-1, -2, -3), 0.0, None), ((-2, -1, -3), 1.0, 1), ((-2, -1, -3), 0.0, 2)):
        sample = _read_sample(scored_row(lls=lls, acc=acc, choices=("10", "9", "1")), 1, "log")
        if answer is None:
            with pytest.raises(BadRow, match="which of the choices is right cannot be known, got '1'"):
                _right_choice(sample, ("10", "9", "1"), None, "log")
        else:
            assert _right_choice(sample, ("10", "9", "1"), None, "log") == answer
        assert _right_choice(sample, ("10", "9", "1"), "{{answer}}", "log") == 1


def test_choices_are_continuations_less_the_delimiter():
    row = scored_row(choices=(": x", ": y", ": z"))
    for config, choices in ({}, (": x", ": y", ": z")), ({"target_delimiter": " : "}, ("x", "y", "z")):
        assert _scored_question(_read_sample(row, 1, "log"), "q", config, "log").choices == choices
    listed = scored_row(doc={"options": ["up", "down", "left"]}, choices=("(A)", "(B)", "(C)"))
    found = _scored_question(_read_sample(listed, 1, "log"), "q", {}, "log")
    assert found.choices == ("up", "down", "left") and found.text == "Q0?"
    other = scored_row(doc={"options": ["up", "down"]}, choices=("A", "B", "C"))
    assert _scored_question(_read_sample(other, 1, "log"), "q", {}, "log").choices == ("A", "B", "C")
    mixed = scored_row()
    mixed["arguments"]["gen_args_1"]["arg_0"] = "Other?"
    with pytest.raises(BadRow, match="both contexts and continuations differ"):
        _scored_question(_read_sample(mixed, 1, "log"), "q", {}, "log")


def blank_row(texts, acc, following=" so."):
    row = scored_row(doc={}, target="so.", lls=[-float(i + 1) for i in range(len(texts))], choices=["so."] * len(texts))
    for text, sent in zip(texts, row["arguments"].values()):
        sent |= {"arg_0": text, "arg_1": following}
    return row | {"acc": acc}


@pytest.mark.parametrize(
    ("texts", "question", "choices"),
    [
        (("the cup is", "the cap is"), "the _ is so.", ("cup", "cap")),
        (("Anna is", "Bo is"), "_ is so.", ("Anna", "Bo")),
        (("it was red", "it was blue"), "it was _ so.", ("red", "blue")),
        (("is it", "is it it"), "is _ so.", ("it", "it it")),
        (("is ", "is it "), "so.", ("is", "is it")),
    ],
)
def test_a_blank_in_the_context(texts, question, choices):
    found = _scored_question(_read_sample(blank_row(texts, 0.0), 1, "log"), "q", {}, "log")
    assert (found.text.strip(), found.choices, found.answer) == (question, choices, 1)


def test_a_blank_with_three_choices_needs_more_than_a_verdict():
    three = ("a cup", "a cap", "a cop")
    assert _scored_question(_read_sample(blank_row(three, 1.0), 1, "log"), "q", {}, "log").answer == 0
    with pytest.raises(BadRow, match="which of the choices is right cannot be known"):
        _scored_question(_read_sample(blank_row(three, 0.0), 1, "log"), "q", {}, "log")


@pytest.mark.parametrize(
    ("change", "config", "answer"),
    [
        ({}, {}, 1),
        ({"target": "(C)"}, {}, 2),
        ({"target": "z"}, {}, 2),
        ({"target": "2"}, {"doc_to_choice": ["A", "B", "C"]}, 2),
        ({"target": "0"}, {"doc_to_choice": "{{choices}}"}, 0),
        ({"target": "1", "doc": {"q": 1}}, {"doc_to_choice": {"no": "No", "yes": "Yes"}}, 1),
        ({"target": "2"}, {}, "the target must be the letter or the text of one choice, got '2'"),
        ({"context": "A. y\nB. x\nC. z"}, {}, "the prompt does not show these choices in this order"),
        ({"doc": {"q": 1}}, {}, "no known column contains the choices"),
        ({"doc": {"choices": ["x", "B", "z"]}, "context": "x B z"}, {}, 1),
        ({"doc": {"choices": ["B", "y", "z"]}, "context": "B y z"}, {}, "the letter or the text of one choice"),
    ],
)
def test_a_question_answered_in_words(change, config, answer):
    sample = _read_sample(written_row(**change), 3, "log")
    if isinstance(answer, int):
        assert _written_question(sample, "q", config, "log").answer == answer
    else:
        with pytest.raises(BadRow, match=f"log, row 3, .*{re.escape(answer)}"):
            _written_question(sample, "q", config, "log")


def test_what_a_chat_model_was_sent():
    row = written_row(doc={"choices": ["x", "y", "z"]})
    sent = json.dumps([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Q\nA. x\nB. y\nC. z"}])
    row["arguments"]["gen_args_0"]["arg_0"] = [sent]
    sample = _read_sample(row, 1, "log")
    assert sample.contexts == ["Be brief.\n\nQ\nA. x\nB. y\nC. z"]
    assert _written_question(sample, "q", {}, "log").text == sample.contexts[0]
