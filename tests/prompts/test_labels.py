"""Replies under other labels: read by every rule for every label style, and nothing read that is no label."""

import random
import re
import time

import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import LETTERS, CoraError, Question
from cora_nb.forms import ALPHABETS, Variant, Wording
from cora_nb.prompts.labels import apply_rule, _in_letters, label_room, said_label
from cora_nb.prompts.letters import first_alphanumeric, first_character, first_token, last_line
from cora_nb.prompts.reading import careful
from cora_nb.variants.mcqa_plus import formats
from cora_nb.variants.families import AXES

CITIES = ("Sydney", "Canberra", "Perth", "Hobart", "Darwin", "Adelaide", "Cairns", "Geelong")
OTHERS = [a for a in ALPHABETS if a != "capitals"]


def shown(alphabet, choices=CITIES, answer=1):
    "A variant under these labels."
    question = Question("q", "Where?", tuple(choices), answer)
    places = tuple(range(len(choices)))
    return Variant(question, "x", "labels", 0, question.choices, answer, places, wording=Wording(alphabet=alphabet))


SAID = [
    "{}", "{}.", "({})", "{})", "{}) {text}", "({}) {text}", "{}. {text}", "{}: {text}", "**{}**", "**{}) {text}**",
    "Answer: {}", "The answer is {}.", "The correct answer is ({}).", "Option {} is correct.", "\\boxed{{{}}}",
    "The best option is {}, because it is the capital.", "Let me think.\n\nIt is not small.\nAnswer: {}",
    "I would say that the answer is {}.", "{}\n\nIt is the seat of parliament.", "<think>a or 1 or i?</think>{}",
    "'{}'", "__{}__", "<answer>{}</answer>", "{}</s>", "答案：{}", "正确答案是（{}）。", "- {}", "So {}.",
    "{} (it is so)",
    "#### {}", "{} - it is so", "{}, because it is", "I'd go with option {}.", "{}<|eot_id|>", "I think it's {}.",
]  # fmt: skip


@pytest.mark.parametrize("alphabet", OTHERS)
@pytest.mark.parametrize("said", SAID)
def test_every_label_is_read_back_however_it_is_said(alphabet, said):
    v = shown(alphabet)
    for place, label in enumerate(v.labels):
        reply = said.format(label, text=CITIES[place])
        assert apply_rule(careful, reply, v) == place, (reply, label)
        if alphabet != "digits":
            assert apply_rule(careful, said.format(label.upper(), text=CITIES[place]), v) == place, reply


@pytest.mark.parametrize("alphabet", OTHERS)
def test_strict_rules_read_a_label_at_the_beginning(alphabet):
    v = shown(alphabet)
    for place, label in enumerate(v.labels):
        for said in ("{}", "{}.", "{}) {text}", "({}) {text}"):
            reply = said.format(label, text=CITIES[place])
            assert apply_rule(first_token, reply, v) == apply_rule(first_alphanumeric, reply, v) == place, reply
        assert apply_rule(first_character, label, v) == place
        assert apply_rule(last_line, f"I have thought about it.\n\nAnswer: {label}", v) == place


NOT_SAID = {
    "roman": [
        "I think that none of them is right.", "I am not sure", "i don't know", "I'm sorry, I cannot help with that.",
        "As far as I can tell, there is no answer.", "It depends on x and v.", "x = 3", "Iv", "Do you mean me or I?",
        "I, for one, do not know.", "B", "2", "The answer is B.", "i and only i have asked", "Malcolm X was there.",
    ],
    "digits": [
        "There are 3 of them.", "It has 3.5 million people.", "3% of them", "$3", "-3", "2 + 2", "99", "B", "(B)", "ii",
        "In 3 years it will be known.", "The answer is B.", "Vitamin B", "3,000 people", "f(3)", "1.5", "I don't know.",
    ],
    "small": ["a city on a lake", "I think so", "a big one", "An answer is hard to find", "it's a", "2", "ii", "don't"],
}  # fmt: skip


@pytest.mark.parametrize("alphabet, reply", [(a, r) for a, replies in NOT_SAID.items() for r in replies])
def test_what_only_looks_like_a_label_is_not_read(alphabet, reply):
    v = shown(alphabet, CITIES[:5])
    assert apply_rule(careful, reply, v) == -1, _in_letters(reply, v.labels, v.choices)


def test_a_pronoun_alone_is_a_numeral_where_one_is_asked_for():
    assert [apply_rule(careful, said, shown("roman")) for said in ("I", "I.", "(I)", "I think")] == [0, 0, 0, -1]


LISTS = {
    "1. It is small.\n2. It is old.\n\nThe answer is 3.": 2,
    "1) Sydney\n2) Canberra\n3) Perth\n4) Hobart\n\nAnswer: 4": 3,
    "Step 1: look at the map.\nStep 2: think.\nThe answer is 2.": 1,
    "1. It is small.\n2. It is old.": -1,
}


def test_numbered_lines_are_no_answer():
    v = shown("digits", CITIES[:4])
    assert {reply: apply_rule(careful, reply, v) for reply in LISTS} == LISTS


def test_texts_of_choices_are_read_and_never_taken_apart():
    v = shown("digits", ("Type 1", "Type 2", "Vitamin C", "A level"))
    said = {"Type 1": 0, "Type 2": 1, "2) Type 2": 1, "1": 0, "Vitamin C": 2, "A level": 3, "The answer is Type 2.": 1}
    assert {reply: apply_rule(careful, reply, v) for reply in said} == said
    elements = shown("roman", ("C", "N", "I", "V"))
    assert [apply_rule(careful, r, elements) for r in ("C", "N", "ii", "iv", "(i)")] == [0, 1, 1, 3, 0]


def test_a_number_that_is_two_things_is_read_where_a_label_was_asked_for_and_else_not():
    v = shown("digits", ("3", "4", "5", "22"))
    said = {
        "4": 3,
        "4.": 3,
        "(4)": 3,
        "Answer: 4": 3,
        "2) 4": 1,
        "2": 1,
        "So 2 + 2 is 4, and the answer is 4.": -1,
        "22": 3,
    }
    assert {reply: apply_rule(careful, reply, v) for reply in said} == said


@pytest.mark.slow
@pytest.mark.parametrize("alphabet", OTHERS)
def test_long_replies_take_no_longer_than_short_ones(alphabet):
    for piece in ("1 ", "i ", "1) ", "\n1) x", "answer a ", "(1)", "Type 1 ", "I think that ", "<a", "is i, "):
        began = time.process_time()
        _in_letters(piece * 100_000, ALPHABETS[alphabet][:4], ("Type 1", "3", "x " * 50, "d"))
        assert time.process_time() - began < 60, piece  # hundredths of a second; a rule that looks back takes hours


@given(
    st.text(max_size=60),
    st.sampled_from(OTHERS),
    st.lists(st.text(min_size=1).filter(str.strip), min_size=2, max_size=9),
)
@settings(max_examples=60)
def test_any_text_is_taken(reply, alphabet, choices):
    v = shown(alphabet, choices, 0)
    for rule in (careful, first_token, last_line):
        assert -2 <= apply_rule(rule, reply, v) < len(choices)


@given(st.text(alphabet="ABCDabcdxiv1234 .,:()\n", max_size=40))
def test_letters_and_other_forms_are_left_alone(reply):
    question = Question("q", "Where?", CITIES[:4], 1)
    assert _in_letters(reply, LETTERS[:4], CITIES[:4]) == reply
    for v in formats(question):
        if v.form == "lfgq":
            assert apply_rule(lambda text, choices: text, reply, v) == reply


@given(st.integers(0, 25), st.sampled_from(OTHERS), st.randoms(use_true_random=False))
def test_no_label_among_26_is_mistaken_for_another(place, alphabet, rng: random.Random):
    v = shown(alphabet, [f"text {LETTERS[i]}{LETTERS[i]}" for i in range(26)])
    reply = rng.choice(["{}", "({})", "{}.", "The answer is {}.", "Answer: {}"]).format(v.labels[place])
    assert apply_rule(careful, reply, v) == place
    assert said_label(reply, v.labels) == (place if re.fullmatch(r"\W*\w+\W*", reply) else -1)


def test_room_for_labels():
    rooms = {m: {label_room(Variant(Question("q", "?", CITIES, 0), "x", m, 0, CITIES, 0, tuple(range(8)), wording=w), 1)
                 for w in members} for m, members in AXES.items()}  # fmt: skip
    assert rooms == {"instruction": {1}, "labels": {6}, "separator": {1}, "answer_line": {1}}


def test_wordings_that_make_no_sense_are_named():
    for wrong, says in (
        ({"alphabet": "greek"}, "alphabet must be one of capitals, small, digits, roman, got 'greek'"),
        ({"choice": "{}"}, "choice must contain two places {}, for label and text, got '{}'"),
        ({"between": None}, "between must be a text, got None"),
        ({"answer_line": 3}, "answer_line must be a text, got 3"),
    ):
        with pytest.raises(CoraError) as e:
            Wording(**wrong)
        assert str(e.value) == says
