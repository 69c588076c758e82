"""One sample of an inspect log, as plain objects with the attributes of inspect's."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cora_nb.core import BadRow, LETTERS, Question
from cora_nb.forms import Variant
from cora_nb.interop.inspect_logs import (
    _Reading,
    _read_answer,
    _sample_answer,
    _sample_question,
    _sample_reply,
    _sample_variant,
    _scorer_reading,
    _shown_order,
)

texts = st.text(min_size=1, max_size=12).filter(str.strip)
BEFORE = "Choices were shuffled before generating a response, the following was sent to the model:\n\n"


def explained(shown, answered="A"):
    "What the scorer `choice` of inspect writes, after its source."
    listed = "\n".join(f"{letter}) {text}" for letter, text in zip(LETTERS, shown))
    return f"{BEFORE}{listed}\nShuffled answer:\nANSWER: {answered}"


def sample(**changed):
    "A sample of an ordinary quiz."
    said = SimpleNamespace(message=None, stop_reason="stop", logprobs=None)
    output = SimpleNamespace(choices=[said], completion="ANSWER: B", usage=None)
    parts = {"id": "q", "epoch": 1, "input": "2 + 2?", "choices": ["3", "4", "5"], "target": "B", "metadata": {}}
    parts |= {"scores": {}, "output": output, "error": None, "limit": None, "invalidation": None, "events": []}
    return SimpleNamespace(**parts | changed)


@given(choices=st.lists(texts, min_size=2, max_size=8, unique=True), data=st.data())
def test_the_order_shown_is_found_again(choices, data):
    "Whatever the choices are, with line breaks and letters in them: the order told shows the same texts."
    order = data.draw(st.permutations(range(len(choices))))
    told = explained([choices[i] for i in order], "B")
    try:
        found, answered = _shown_order(told, choices)
    except BadRow:  # one choice begins another, up to a line that looks like the next choice
        assert any("\n" in c for c in choices)
        return
    assert explained([choices[i] for i in found], "B") == told and answered == "B"
    if not any("\n" in c for c in choices):
        assert list(found) == order


def test_order_with_choices_that_begin_alike():
    choices = ["1", "10", "100", "1\nB) 10"]
    assert _shown_order(explained(["10", "100", "1", "1\nB) 10"]), choices)[0] == (1, 2, 0, 3)


@pytest.mark.parametrize(
    "told, choices",
    [
        (explained(["a", "b"]), ["a", "b", "c"]),
        (explained(["a", "b", "c"]), ["a", "b"]),
        (explained(["a", "a", "b"]), ["a", "a", "b"]),  # two equal texts: nobody knows which is which
        (BEFORE + "A) a\nB) b", ["a", "b"]),
        (BEFORE, ["a", "b"]),
    ],
)
def test_order_that_cannot_be_told(told, choices):
    with pytest.raises(BadRow, match="does not tell in which order"):
        _shown_order(told, choices)


@given(A=st.integers(2, 26), data=st.data())
def test_every_letter_names_its_choice(A, data):
    i = data.draw(st.integers(0, A - 1))
    choices = [f"choice {k}" for k in range(A)]
    for target in (LETTERS[i], LETTERS[i].lower(), [LETTERS[i]], f" {LETTERS[i]} ", choices[i], [choices[i]]):
        assert _sample_answer(target, choices) == i


@pytest.mark.parametrize("target", ["AB", "A, B", ["A", "B"], ["A,B"], "A B"])
def test_several_right_choices(target):
    with pytest.raises(BadRow, match="several choices are right"):
        _sample_answer(target, ["x", "y", "z"])


@pytest.mark.parametrize("target", ["D", "", [], "Paris", ["A", "Paris"], "1", "twice"])
def test_target_that_names_no_choice(target):
    with pytest.raises(BadRow, match="must be a letter from A to C, or the text of one choice"):
        _sample_answer(target, ["x", "twice", "twice"])


@pytest.mark.parametrize(
    "answer, named",
    [("B", (1,)), ("b", (1,)), ("A, C", (0, 2)), ("C A", (0, 2)), ("dog", (0,)), ("", ()), (None, ()), ("D", ())]
    + [("A, D", ()), ("I say B", ()), ("a dog", ())],
)
def test_answers_of_scorers(answer, named):
    assert _read_answer(answer, ("A", "B", "C"), ("dog", "cat", "ox")) == named


def test_question_and_variant():
    found = _sample_question(sample(id=7, metadata={"subject": "sums"}))
    assert found == Question("7", "2 + 2?", ("3", "4", "5"), 1, "sums")
    assert _sample_question(sample(metadata={"subject": ["sums"]})).subject is None
    variant, letters = _sample_variant(sample())
    assert variant == Variant(_sample_question(sample()), "cora", "original", 0, ("3", "4", "5"), 1, (0, 1, 2))
    assert letters is None
    choice = SimpleNamespace(value="I", answer="C", explanation=explained(["5", "3", "4"], "A"))
    variant, letters = _sample_variant(sample(scores={"choice": choice}), form="several")
    assert (variant.method, variant.sources, variant.answer, variant.form) == ("shuffled", (2, 0, 1), 2, "several")
    assert _scorer_reading(choice, variant, letters) == _Reading((0,), False, "A")


def test_failures_and_empty_replies_are_told_apart():
    variant = _sample_variant(sample())[0]
    nothing = SimpleNamespace(choices=[], completion="", usage=None)
    empty = SimpleNamespace(choices=sample().output.choices, completion="", usage=None)
    limit = SimpleNamespace(type="token", limit=10.0)
    assert _sample_reply(sample(output=empty), variant).text == ""
    assert _sample_reply(sample(output=nothing), variant).error == "no reply"
    assert _sample_reply(sample(output=nothing, limit=limit), variant).error.endswith("at its limit: token 10")
    assert _sample_reply(sample(limit=limit), variant).text == "ANSWER: B"  # it was answered before
    error = SimpleNamespace(message="down\n\x1b[2J again")
    assert _sample_reply(sample(error=error), variant).error == "down \\x1b[2J again"
    withdrawn = SimpleNamespace(reason=None)
    assert _sample_reply(sample(invalidation=withdrawn), variant).error == "invalidated in the log: no reason given"


def test_raw_words_come_from_the_events():
    raw = SimpleNamespace(event="model", output=SimpleNamespace(**vars(sample().output) | {"completion": "Hm: C"}))
    variant = _sample_variant(sample())[0]
    events = [SimpleNamespace(event="state"), raw, SimpleNamespace(event="score")]
    assert _sample_reply(sample(events=events), variant, raw=True).text == "Hm: C"
    assert _sample_reply(sample(events=events), variant).text == "ANSWER: B"
    assert _sample_reply(sample(), variant, raw=True).text == "ANSWER: B"
