"""The default rule, and the rules for models that answer on the last line."""

import pytest
from hypothesis import given, strategies as st

from cora_nb.core import LETTERS
from cora_nb.prompts.letters import (
    answer_part,
    first_token,
    last_answer,
    last_line,
    last_line_several,
    last_line_yes_no,
    lenient,
    parse,
    rules_by_form,
    selected,
    tolerant,
)

CITIES = ("Sydney", "Canberra", "Melbourne", "Perth")
SAID = [
    "A",
    "B ",
    "'C'",
    "The answer is",
    " **B**.",
    "\n",
    "Canberra",
    "<think>",
    "</think>",
    "Answer: ",
    "D.",
    "I think",
]
replies = st.lists(st.sampled_from(SAID), max_size=6).map("".join)


@given(replies)
def test_lenient_is_the_strict_rule_where_that_reads_anything(reply):
    strict = first_token(answer_part(reply), CITIES)  # the rule itself looks at no reply that deliberates first
    assert lenient(reply, CITIES) == (tolerant(reply, CITIES) if strict == -1 else strict)
    assert first_token(reply, CITIES) in (-1, lenient(reply, CITIES))


TEN = tuple(f"choice {i}" for i in range(10))
ENDS = ("The answer is C.", "The correct option is (C).", "So the answer would be C", "Answer: C")


@pytest.mark.parametrize("opening", ["A patient with these signs needs rest.", "A 45-year-old man has a fever.",
                                     '"A healthy" man?', "A PATIENT IS ILL.", "(A common mistake.)", "*A note:*",
                                     "I cannot be sure.", "I, as a model, guess.", "I'd guess.", "I think so.",
                                     "A is tempting.", "B was my first thought."])  # fmt: skip
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("rule", [lenient, tolerant])
def test_an_article_a_pronoun_or_a_sentence_about_a_letter_is_no_answer(opening, end, rule):
    assert rule(f"{opening} {end}", TEN) == rule(f"<think>B</think>{opening}\n{end}", TEN) == 2


@pytest.mark.parametrize("said", ["I cannot answer", "I don't know.", "I, for one, have no idea", "A difficult one",
                                  "I was not told", "I CANNOT ANSWER"])  # fmt: skip
def test_without_an_answer_nothing_is_read(said):
    assert lenient(said, TEN) == tolerant(said, TEN) == -1 and selected(said, TEN) == ()


@given(
    st.sampled_from("AI"),
    st.sampled_from(["{}", "{}.", "{})", "({})", "{}:", "**{}**", "{}, because", "{} because it fits", "{} - text",
                     "{} is right", "{}\npatients know", "**{}** is what I think", "{} (the answer)"]),
)  # fmt: skip
def test_a_letter_is_a_letter_in_every_dress(letter, dress):
    assert lenient(dress.format(letter), TEN) == LETTERS.index(letter) == first_token(dress.format(letter), TEN)


def test_a_letter_before_the_text_of_its_choice_is_no_article():
    cells = ("red blood cell", "white blood cell", "platelet")
    assert lenient("A red blood cell", cells) == 0 == lenient("A red blood cell, since it is round", cells)
    assert lenient("A white blood cell", cells) == -1, "an article, or the letter of another choice"
    assert lenient("I choice 8", TEN) == 8


@given(st.sampled_from("ABCD"), st.sampled_from([s for s in SAID if not s.startswith("<")]))
def test_a_perfect_respondent_in_words_is_always_read(letter, before):
    text = f"A man saw {before.strip()} there. The answer is {letter}."
    assert lenient(text, CITIES) == LETTERS.index(letter)


def test_the_first_word_after_a_thought_decides():
    assert first_token("<think>A?</think>B A", CITIES) == -1 and lenient("<think>A?</think>B A", CITIES) == 1


@given(replies, replies)
def test_no_rule_reads_what_was_thought(thought, said):
    thought = thought.replace("<think>", "").replace("</think>", "")
    said = said.replace("<think>", "").replace("</think>", "")
    for rule in ("lenient", "tolerant", "last_line", "yes_no", "in_words"):
        assert parse(f"<think>{thought}</think>{said}", CITIES, rule) == parse(said, CITIES, rule), rule
        assert parse(f"<think>{thought}", CITIES, rule) == -1, rule
    for rule in ("first_token", "first_alphanumeric", "first_character"):  # they look at the beginning alone
        for reply in (f"<think>{thought}</think>{said}", f"{thought}</think>{said}", f"<think>{thought}"):
            assert parse(reply, CITIES, rule) == -1, rule


@pytest.mark.parametrize(
    "opens,closes", [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]")]
)
def test_thoughts_in_several_brackets(opens, closes):
    assert answer_part(f"{opens}A{closes}B") == "B" == answer_part(f"A{closes}B") and answer_part(f"{opens}A") == ""


@pytest.mark.parametrize(
    "reply,index",
    [
        ("Sydney is larger.\n\nAnswer: B", 1),
        ("Sydney is larger.\n\n**Answer: B**", 1),
        ("Sydney is larger.\n\n**Answer:** B", 1),
        ("Sydney is larger.\n\nAnswer:\nB", 1),
        ("Sydney is larger.\n\nFinal answer: (B) Canberra", 1),
        ("Sydney is larger.\n\nSo the answer is B.", 1),
        ("Sydney is larger.\n\nAnswer: Canberra", 1),
        ("Sydney is larger.\n\nB", 1),
        ("Sydney is larger.\n\nB. Canberra", 1),
        ("Answer: A\nWait, no.\nAnswer: B", 1),
        ("<think>Answer: A</think>\nAnswer: B", 1),
        ("B", 1),
        ("Sydney is larger, so A is wrong. B", -1),
        ("Sydney is the largest city, but that does not make it the capital, so the answer is A or", -1),
        ("Answer: none of these", -1),
        ("Answer: F", -1),
        ("A", 0),
        ("", -1),
        (None, -1),
    ],
)
def test_the_last_line(reply, index):
    assert last_line(reply, CITIES) == index


def test_the_last_line_of_the_other_forms():
    assert last_line_several("A is wrong.\nAnswer: B, D", CITIES) == (1, 3)
    assert last_line_several("A is wrong.\nB and D", CITIES) == (1, 3)
    assert last_line_several("A is wrong, and C", CITIES) == ()
    assert last_line_yes_no("No doubt about it.\nAnswer: Yes") == 0 and last_line_yes_no("Hm.\nNo.") == 1
    assert last_line_yes_no("No doubt about it, said") == -1
    own = rules_by_form("last_line")
    assert [own[f].__name__ for f in ("several", "tfq", "lfgq")] == [
        "last_line_several",
        "last_line_yes_no",
        "last_line_in_words",
    ]
    assert rules_by_form({"mcq": "last_line"})["tfq"].__name__ == "yes_no"  # a mapping is taken at its word


@given(replies)
def test_an_answer_is_one_line(reply):
    assert "\n" not in last_answer(reply)[0]
