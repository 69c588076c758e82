"""The default rule, and the rules for models that answer on the last line."""

import pytest
from hypothesis import given, strategies as st

from cora_nb.core import LETTERS
from cora_nb.prompts import replies as own
from cora_nb.prompts.languages import LANGUAGES, add_language, vocabulary
from cora_nb.prompts.letters import (
    first_token,
    last_answer,
    last_line,
    last_line_several,
    last_line_yes_no,
    parse,
    rules_by_form,
    selected,
)
from cora_nb.prompts.reading import careful
from cora_nb.prompts.replies import answer_part


def read(reply, choices=("Sydney", "Canberra", "Melbourne", "Perth"), **known):
    "What the default rule reads, with a letter that was not shown as none."
    return max(careful(reply, choices, **known), -1)


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


TEN = tuple(f"choice {i}" for i in range(10))
ENDS = ("The answer is C.", "The correct option is (C).", "So the answer would be C", "Answer: C")


@pytest.mark.parametrize("opening", ["A patient with these signs needs rest.", "A 45-year-old man has a fever.",
                                     '"A healthy" man?', "A PATIENT IS ILL.", "(A common mistake.)", "*A note:*",
                                     "I cannot be sure.", "I, as a model, guess.", "I'd guess.", "I think so.",
                                     "A is tempting.", "B was my first thought."])  # fmt: skip
@pytest.mark.parametrize("end", ENDS)
def test_an_article_a_pronoun_or_a_sentence_about_a_letter_is_no_answer(opening, end):
    assert read(f"{opening} {end}", TEN) == read(f"<think>B</think>{opening}\n{end}", TEN) == 2


@pytest.mark.parametrize("said", ["I cannot answer", "I don't know.", "I, for one, have no idea", "A difficult one",
                                  "I was not told", "I CANNOT ANSWER"])  # fmt: skip
def test_without_an_answer_nothing_is_read(said):
    assert read(said, TEN) == -1 and selected(said, TEN) == ()


@given(
    st.sampled_from("AI"),
    st.sampled_from(["{}", "{}.", "{})", "({})", "{}:", "**{}**", "{}, because", "{} because it fits", "{} - text",
                     "{} is right", "{}\npatients know", "{} (the answer)"]),
)  # fmt: skip
def test_a_letter_is_a_letter_in_every_dress(letter, dress):
    assert read(dress.format(letter), TEN) == LETTERS.index(letter) == first_token(dress.format(letter), TEN)


def test_a_letter_before_the_text_of_its_choice_is_no_article():
    cells = ("red blood cell", "white blood cell", "platelet")
    assert read("A red blood cell", cells) == 0 == read("A red blood cell, since it is round", cells)
    assert read("A white blood cell", cells) == -1, "an article, or the letter of another choice"
    assert read("I choice 8", TEN) == 8


@given(st.sampled_from("ABCD"), st.sampled_from([s for s in SAID if not s.startswith("<")]))
def test_a_perfect_respondent_in_words_is_always_read(letter, before):
    text = f"A man saw {before.strip()} there. The answer is {letter}."
    assert read(text, CITIES) == LETTERS.index(letter)


def test_the_first_word_after_a_thought_decides():
    assert first_token("<think>A?</think>B", CITIES) == -1 and read("<think>A?</think>B", CITIES) == 1


@given(replies, replies)
def test_no_rule_reads_what_was_thought(thought, said):
    thought = thought.replace("<think>", "").replace("</think>", "")
    said = said.replace("<think>", "").replace("</think>", "")
    for rule in ("careful", "last_line", "yes_no", "in_words"):
        assert parse(f"<think>{thought}</think>{said}", CITIES, rule) == parse(said, CITIES, rule), rule
        assert parse(f"<think>{thought}", CITIES, rule) == -1, rule
    for rule in ("first_token", "first_alphanumeric", "first_character"):  # they look at the beginning alone
        for reply in (f"<think>{thought}</think>{said}", f"{thought}</think>{said}", f"<think>{thought}"):
            assert parse(reply, CITIES, rule) == -1, rule


@pytest.mark.parametrize(
    "opens,closes",
    [
        *((f"<{tag}>", f"</{tag}>") for tag in ("think", "thinking", "thought", "reasoning", "seed:think", "mm:think")),
        ("[THINK]", "[/THINK]"),
        ("◁think▷", "◁/think▷"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|channel>thought\n", "<channel|>"),
        ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
        ("<|channel|>analysis<|message|>", "<|channel|>final <|constrain|>json<|message|>"),
    ],
)
def test_thoughts_between_known_marks(opens, closes):
    assert answer_part(f"{opens}A{closes}B") == "B" == answer_part(f"A{closes}B") and answer_part(f"{opens}A") == ""


@pytest.mark.parametrize(
    "opens,closes", [("analysis", "assistantfinal"), ("THOUGHT:\n", "\nAnswer: "), ("Thinking: ", "\n**Answer:** ")]
)
def test_thoughts_that_a_word_opens(opens, closes):
    for thought in ("The answer is A.", "A is tempting. Wait: the answer is C?", "\nC\n"):
        assert read(f"{opens}{thought}{closes}B", CITIES) == 1
        assert read(f"{opens}{thought}", CITIES) == -1
    assert read("Analysis shows that the answer is B", CITIES) == read("My thoughts: B is correct", CITIES) == 1


def test_a_mark_that_only_ends_a_thought(monkeypatch):
    monkeypatch.setattr(own, "THOUGHTS", dict(own.THOUGHTS))
    own.register_thought(None, "[:end of musing:]")
    assert read("The answer is A. No.[:end of musing:]B", CITIES) == 1 == read("The answer is B.", CITIES)


def test_a_mark_of_ones_own(monkeypatch):
    monkeypatch.setattr(own, "THOUGHTS", dict(own.THOUGHTS))
    assert read("{musing}The answer is A.", CITIES) == 0
    own.register_thought("{musing}", "{done}")
    assert read("{musing}The answer is A.{done}\nB", CITIES) == 1 and read("{musing}The answer is A.", CITIES) == -1


LEFT = ["<|tool_call|>{}", "<|python_tag|>{}", "[THINK]{}", "{}<|channel|>analysis", "<unused7>{}"]


@pytest.mark.parametrize("left", LEFT)
def test_a_token_of_the_chat_format_that_is_left_means_unread(left):
    assert read(left.format("The answer is B."), CITIES) == -1


AROUND = ["{}<|eot_id|>", "{}<|im_end|>\n<|im_start|>user\nThe answer is A", "<|im_start|>assistant\n{}", "{}</s>"]


@pytest.mark.parametrize("around", [*AROUND, "assistant\n\n{}"])
def test_roles_and_ends_of_turns_are_no_part_of_the_reply(around):
    assert read(around.format("B"), CITIES) == read(around.format("The answer is B."), CITIES) == 1


FURTHER = ["Question: What is 2 + 2?\nA. 3\nAnswer: A", "Q: Which?\nA: A", "Human: The answer is A.", "User: A"]


@pytest.mark.parametrize("further", [*FURTHER, "### Question 2\nThe answer is A."])
def test_what_a_model_writes_on_after_its_answer_is_cut_away(further):
    for said in ("B", "The answer is B.", "Answer: B. Canberra"):
        assert read(f"{said}\n\n{further}", CITIES) == read(f"{said}\n\n{further}", CITIES, finish="length") == 1


CUT = {  # as far as the reply came -> what may be read
    "B": 1, "(B)": 1, "B. Canberra was": 1, "**B**\n\nBecause it": 1, "The answer is B. It was built": 1,
    "Answer: B, because": 1, "The answer is B": -1, "The correct answer is **B": -1, "A": 0, "": -1,
    "So the answer is A. But check:": -1, "Let us see. The answer is A?": -1,
    "At first I would say A. Wait, let me": -1,
    "Option A is not right, because": -1, "(a) The speed is 3 m/s. (b) The": -1,
}  # fmt: skip


@pytest.mark.parametrize("reply", CUT)
def test_of_a_reply_that_was_cut_the_beginning_is_read(reply):
    assert read(reply, CITIES, finish="length") == CUT[reply] and last_line(reply, CITIES, finish="length") == -1


OBJECTS = [
    '{"answer": "B"}',
    '{"reasoning": "A is large", "answer": "B"}',
    '```json\n{"final_answer": "B"}\n```',
    "{'choice': 'B'}",
    '{"answer": "Canberra", "confidence": 0.9}',
    '{"answer_letter":"B","why":"A is not"}',
]


@pytest.mark.parametrize("reply", OBJECTS)
def test_the_field_of_a_json_object(reply):
    assert read(reply, CITIES) == 1


def test_a_language_can_be_added():
    assert read("Rätt svar: B, tror jag", CITIES) == read("Rätt svar är B.", CITIES) == -1
    add_language("sv", answer="svar", right="rätt", be="är")
    try:
        assert read("Rätt svar: B, tror jag", CITIES) == read("Rätt svar är B.", CITIES) == 1
    finally:
        del LANGUAGES["sv"]
        vocabulary.cache_clear()


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
    assert max(last_line(reply, CITIES), -1) == index


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


@pytest.mark.parametrize(
    "reply,place",
    [
        ("The `[INST]` tag opens the user's turn in Llama 2, so the answer is B.", 1),
        ("The padding token is <pad>. Answer: C", 2),
        ("A [INST] tag opens the user's turn. So the answer is: B", 1),
        ("[INST]", 1),
        ("<pad>", 2),
        ("<|inner_prefix|>A, perhaps?<|inner_suffix|>So B", 1),
        ("<｜Assistant｜>B<｜end▁of▁sentence｜>", 1),
        ("<|startoftext|>B", 1),
        ("B<|pad|><|pad|>", 1),
    ],
)
def test_marks_of_a_chat_format_and_words_about_them(reply, place):
    assert read(reply, ("[CLS]", "[INST]", "<pad>", "</s>")) == place
