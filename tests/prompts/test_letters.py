"""Parsing rules against any text, against slow implementations, 125 replies read by a person, and recorded ones."""

import json
import string
import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, strategies as st

from cora_nb.core import CoraError, LETTERS
from cora_nb.prompts.letters import LETTER_RULES, first_alphanumeric, first_character, first_token, parse
from cora_nb.prompts.reading import NOT_SHOWN, UNREAD, careful, explain
from cora_nb.prompts.replies import answer_part
from helpers import slow_after


def read(reply, choices=("Sydney", "Canberra", "Melbourne", "Perth"), **known):
    "What the default rule reads, with a letter that was not shown as none."
    return max(careful(reply, choices, **known), -1)


CITIES = ("Sydney", "Canberra", "Melbourne", "Perth")

fragments = st.sampled_from(
    [
        "A",
        "B",
        "E",
        "I",
        "Z",
        "b",
        "a",
        "(",
        ")",
        ".",
        ",",
        ":",
        "**",
        "'",
        " ",
        "\n",
        "or",
        " or ",
        "and",
        "answer",
        "The answer is ",
        "Answer: ",
        "not ",
        "option ",
        "so ",
        "I think",
        "it is ",
        "is correct",
        "\\boxed{",
        "}",
        "<think>",
        "</think>",
        "\nQuestion:",
        "答案是",
        "Ｂ",
        "（",
        "Canberra",
        "Perth",
        "1",
        "\x00",
        "\ud800",
        "\u0301",
        "ﬁ",
    ]
)
replies = st.one_of(st.text(), st.lists(fragments, max_size=12).map("".join), st.none())
choice_lists = st.lists(
    st.one_of(
        st.text(max_size=20), st.sampled_from(["A", "B", "b", "E. coli", "5", "5!", "None of the above", "", " "])
    ),
    min_size=1,
    max_size=26,
).map(tuple)


@given(replies, choice_lists, st.sampled_from(LETTER_RULES))
@example(None, CITIES, "careful")
def test_any_reply_gives_a_choice_or_minus_one(reply, choices, rule):
    i = parse(reply, choices, rule)
    assert type(i) is int and -1 <= i < len(choices)


@pytest.mark.parametrize("rule", LETTER_RULES)
@pytest.mark.parametrize("reply", [float("nan"), None, pd.NA, 3, b"B", ["B"]])
def test_what_is_no_text_names_no_choice(reply, rule):
    assert parse(reply, CITIES, rule) == -1


@pytest.mark.parametrize("n", [2, 5, 13, 26])
@pytest.mark.parametrize("rule", LETTER_RULES)
def test_a_bare_letter_is_read_alike_and_past_the_last_choice_is_none(n, rule):
    choices = tuple(f"text {j}" for j in range(n))
    assert [parse(letter, choices, rule) for letter in LETTERS] == [*range(n), *[-1] * (26 - n)]


def slow_first_token(reply, n):
    "Character by character: skip space, collect up to the next space, drop what is neither letter nor digit."
    token, started = "", False
    for c in reply:
        if c.isspace():
            if started:
                break
        else:
            started = True
            token += c
    kept = [c for c in token if unicodedata.category(c)[0] in "LN"]
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:n].find(kept[0]) if len(kept) == 1 else -1


@given(
    st.one_of(st.text(), st.lists(fragments, max_size=6).map("".join), st.text(alphabet=string.printable)),
    st.integers(1, 26),
)
def test_first_token_agrees_with_a_slow_one(reply, n):
    assert first_token(reply, ("x",) * n) == slow_first_token(reply, n)


@given(st.one_of(st.text(), st.lists(fragments, max_size=6).map("".join)), st.integers(1, 26))
def test_first_alphanumeric_agrees_with_a_slow_one(reply, n):
    first = next((c for c in reply if c.isalnum()), "") if answer_part(reply) == reply else ""  # deliberation is none
    assert first_alphanumeric(reply, ("x",) * n) == (LETTERS[:n].index(first) if first and first in LETTERS[:n] else -1)


WRAPPINGS = [
    "{}",
    " {} ",
    "{}.",
    "{} . it is so",
    "{} ) it is so",
    "{})",
    "({})",
    "[{}]",
    "{{{}}}",
    "<{}>",
    "'{}'",
    '"{}"',
    "“{}”",
    "`{}`",
    "**{}**",
    "__{}__",
    "*({})*",
    "${}$",
    "\\boxed{{{}}}",
    "$\\boxed{{\\text{{{}}}}}$",
    "- {}",
    "> {}",
    "# {}",
    "{}\n\nBecause it is.",
    "{}\nThe others are wrong.",
    "{}: it is so",
    "{}, because it is",
    "{} because it is",
    "{} - it is so",
    "{} – so it is",
    "{} (it is so)",
    "Answer: {}",
    "Answer:{}",
    "answer: {}",
    "ANSWER: {}",
    "Answer:\n\n**{}**",
    "Final answer: {}",
    "**Final answer:** {}",
    "Correct answer: {}.",
    "Option {}",
    "option {}.",
    "Choice {}",
    "Option ({})",
    "The answer is {}",
    "The answer is {}.",
    "The answer is ({}).",
    "The answer is **{}**.",
    "The answer is: {}",
    "The answer is option {}.",
    "The correct answer is {} because it is.",
    "the correct option is {})",
    "The best choice would be {}.",
    "The answer is most likely {}.",
    "It is late, so the answer is {}",
    "I think it is {}",
    "I think it's {}.",
    "I would say {}",
    "I choose {}.",
    "I'd go with option {}.",
    "So {}.",
    "{} is correct.",
    "({}) is the correct answer.",
    "Option {} is the best choice.",
    "Long thoughts.\n\nTherefore, the answer is {}.",
    "<think>Some thoughts, X.</think>\n{}",
    "<answer>{}</answer>",
    "{}</s>",
    "{}<|eot_id|>",
    "答案是{}",
    "答案：{}",
    "选{}",
    "正确答案是（{}）。",
    "Die Antwort ist {}.",
    "La respuesta es {}",
    "#### {}",
    "The answer is not clear, but it must be {}.",
    "{}\n\nQuestion: What is next?\nA. this\nB. that",
]


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_every_letter_in_every_wrapping(wrapping):
    for n in (2, 5, 26):
        choices = tuple(f"text {j}" for j in range(n))
        for j in range(n):
            for letter in {LETTERS[j], chr(0xFF21 + j)}:
                assert read(wrapping.format(letter), choices) == j, explain(wrapping.format(letter), choices)
        for letter in LETTERS[n:]:
            assert read(wrapping.format(letter), choices) == -1, explain(wrapping.format(letter), choices)


@pytest.mark.parametrize(
    "wrapping", ["{}", "{})", "({})", "{}.", "Answer: {}", "Option {}", "**{}**", "({}) it is", "{}) it is"]
)
def test_small_letters_where_they_can_only_be_letters(wrapping):
    for j in range(5):
        assert read(wrapping.format(LETTERS[j].lower()), ("v", "w", "x", "y", "zz")) == j


@pytest.mark.parametrize(
    "two",
    [
        "{} or {}",
        "{}, {}",
        "{} and {}",
        "{}/{}",
        "({}) or ({})",
        "Answer: {} or {}",
        "The answer is {} and {}.",
        "Either {} or {}",
        "I think {} or {}",
        "{}. or {}.",
        "The answer is ({}), ({})",
    ],
)
def test_two_letters_are_no_answer(two):
    for a in LETTERS[:5]:
        for b in LETTERS[:5]:
            if a != b:
                assert read(two.format(a, b), ("one", "two", "three", "four", "five")) == -1


@given(
    st.sampled_from(
        [
            "Answer",
            "Apple pie",
            "Both",
            "Canberra is",
            "Don't know",
            "Every one",
            "I think",
            "A patient came",
            "An apple",
            "Because",
            "A-delta fibres",
            "B cells",
            "C-reactive protein",
            "Dr. No",
            "E-cadherin",
            "A.M.",
            "D'accord",
        ]
    )
)
def test_words_that_begin_with_a_letter(reply):
    choices = ("one", "two", "three", "four", "five")
    assert read(reply, choices) == -1
    if reply.partition(" ")[0] not in ("A", "B"):
        assert first_token(reply, choices) == -1


@given(
    st.lists(
        st.text(alphabet=string.ascii_lowercase + " ", min_size=3, max_size=15).filter(lambda t: len(t.strip()) > 2),
        min_size=2,
        max_size=8,
        unique_by=lambda t: " ".join(t.split()),
    ).map(tuple),
    st.data(),
)
def test_a_choices_own_text_is_that_choice(choices, data):
    i = data.draw(st.integers(0, len(choices) - 1))
    for wrapping in ["{}", " {} ", "{}.", "{}\n\nBecause.", "**{}**"]:
        assert read(wrapping.format(choices[i]), choices) == i
    assert read(choices[i].upper(), choices) == i


def test_texts_that_need_care():
    assert read("B", ("C", "N", "B")) == 1  # a bare letter is a label, even for boron
    assert read("N", ("C", "N", "B")) == -1
    assert [read(t, ("AA", "Aa", "aa")) for t in ("AA", "Aa", "aa", "aA")] == [0, 1, 2, -1]
    assert [read(t, ("5", "-5", "5!", "$5")) for t in ("5", "-5", "5!", "$5")] == [0, 1, 2, 3]
    assert read("same", ("same", "same", "other")) == -1
    assert read("C++", ("C", "C++", "C#")) == 1
    bacteria = ("S. aureus", "E. coli", "H. pylori", "C. tetani", "T. pallidum")
    assert read("E. coli", bacteria) == read("The answer is E. coli", bacteria) == 1
    assert read("E. coli is the most frequent", bacteria) == -1
    assert read("E", bacteria) == read("E.", bacteria) == 4
    assert (
        read("None of the above", ("x", "None of the above"))
        == read("none of the above.", ("x", "None of the above"))
        == 1
    )


READ_BY_A_PERSON = [  # written down before `careful` had seen any of them; "-" is no choice
    ("Correct answer: B", "B"),
    ("Ans: B", "B"),
    ("ANSWER: B", "B"),
    ("The answer is: b", "B"),
    ("The answer would be option B.", "B"),
    ("I'd go with B.", "B"),
    ("My final answer is (B) Canberra.", "B"),
    ("B is the answer", "B"),
    ("Based on the above, option B is correct.", "B"),
    ("The capital of Australia is Canberra.", "B"),
    ("The capital is (B) Canberra.", "B"),
    ("Choice B", "B"),
    ("[[B]]", "B"),
    ("Answer: [B]", "B"),
    ("**Answer: B**", "B"),
    ("**Answer:** B", "B"),
    ("### Answer\nB", "B"),
    ("### Answer\n\nB. Canberra", "B"),
    ("```\nB\n```", "B"),
    ('{"answer": "B"}', "B"),
    ("<answer>B</answer>", "B"),
    ("B</s>", "B"),
    ("B<|eot_id|>", "B"),
    ("LETTER: B", "B"),
    ("'B'\n\nCanberra was chosen as the capital in 1908.", "B"),
    ("B\nStep 1: Sydney is not the capital.", "B"),
    ("Sure! The answer is B.", "B"),
    ("Sure, here is my answer:\n\nB", "B"),
    ("Let's think step by step. A is a large city. C is large too. Therefore, the answer is B.", "B"),
    ("The correct option is B) Canberra", "B"),
    ("The correct choice is **B. Canberra**.", "B"),
    ("Option (B)", "B"),
    ("(b) Canberra", "B"),
    ("B – Canberra", "B"),
    ("B | Canberra", "B"),
    ("b. Canberra", "B"),
    ("2", "-"),
    ("The second option", "-"),
    ("None of these", "-"),
    ("A or B?", "-"),
    ("It could be A, but it could also be B.", "-"),
    ("A and B", "-"),
    ("Either B or D", "-"),
    ("Not A", "-"),
    ("I don't know.", "-"),
    ("As an AI, I cannot answer.", "-"),
    ("A good question!", "-"),
    ("Being the capital, Canberra", "-"),
    ("C'est la vie", "-"),
    ("D'accord", "-"),
    ("E. None of the above", "-"),
    ("Z", "-"),
    ("La respuesta es B", "B"),
    ("La réponse est B.", "B"),
    ("Antwort: B", "B"),
    ("答案：B", "B"),
    ("正确答案是（B）", "B"),
    ("选B", "B"),
    ("正解はBです", "B"),
    ("Ответ: B", "B"),
    ("선택: B", "B"),
    ("Answer: \\textbf{B}", "B"),
    ("The answer is \\(\\boxed{B}\\).", "B"),
    ("Final Answer: The final answer is $\\boxed{B}$. I hope it is correct.", "B"),
    ("Answer B", "B"),
    ("Answer is B", "B"),
    ("answer:B", "B"),
    ("The answer must be B since A is not a capital.", "B"),
    ("The answer isn't A. It's B.", "B"),
    ("A is incorrect because Sydney is not the capital. B is correct because it is.", "B"),
    (
        "A. Sydney: wrong\nB. Canberra: correct\nC. Melbourne: wrong",
        "B",
    ),  # "-" before verdicts on single options were read
    ("A: no\nB: yes\nThe answer is B", "B"),
    ("The answer is B, not A.", "B"),
    ("The answer is B and not A.", "B"),
    ("The answer is both A and B", "-"),
    ("The answer is neither A nor B", "-"),
    ("I choose B because it's right", "B"),
    ("B!", "B"),
    ("B?", "B"),
    ("B;", "B"),
    ("\tB\n", "B"),
    ("\n\nB", "B"),
    ("B B B B", "-"),
    ("BBBB", "-"),
    ("B\nB\nB", "B"),
    ("Answer: (B) Canberra\n\nExplanation: (A) is only the largest city.", "B"),
    ("The best answer is B: Canberra", "B"),
    ("Canberra (B)", "B"),
    ("Canberra is the capital, so (B) is the correct choice.", "B"),
    ('The correct answer to the question "What is the capital?" is B.', "B"),
    ("I believe the answer is C, Melbourne", "C"),
    ("Option D: Perth is the capital", "D"),
    ("The letter of the correct answer is B", "B"),
    ("So, B", "B"),
    ("Thus, the correct letter is D.", "D"),
    ("Hence (D).", "D"),
    ("A", "A"),
    ("a", "A"),
    ("A.", "A"),
    ("a)", "A"),
    ("A)", "A"),
    ("The answer is A", "A"),
    ("Answer: A", "A"),
    ("I think it's A.", "A"),
    ("A, since it is", "A"),
    ("A because", "A"),
    ("A most interesting case", "-"),
    ("A: Sydney", "A"),
    ("The answer is a tricky one", "-"),
    ("The answer is a", "-"),
    ("The answer is A lot", "-"),
    ("I", "-"),
    ("I.", "-"),
    ("It is a city", "-"),
    ("so a city", "-"),
    ("So I think B", "B"),
    ("So I would say D", "D"),
    ("The user asks about A. We need B or C. Answer: C", "C"),
    ("D\n\nHowever, the answer is B", "B"),  # a person read D, before it was settled that the last one counts
    ("Sydney", "A"),
    ("SYDNEY!", "A"),
    ("Answer: Perth.", "D"),
    ("**Perth**", "D"),
    ("The answer is Perth, the western city", "D"),  # "-" before what follows a comma was left aside
    ("Sydney Canberra", "-"),
]
MISSED = {"Canberra (B)"}


def test_the_number_of_replies_is_the_one_the_notebook_names():
    assert len(READ_BY_A_PERSON) == 125


@pytest.mark.parametrize("reply, reader", READ_BY_A_PERSON)
def test_read_like_a_person_or_not_at_all(reply, reader):
    expected = -1 if reply in MISSED or reader == "-" else LETTERS.index(reader)
    assert read(reply, CITIES) == expected, explain(reply, CITIES)


def test_explain_names_what_decided():
    said = {
        "B": "label", "Canberra": "text", "So the answer is B": "statement",
        "The answer is A. Wait, no: B.": "taken back",
        "(B) is correct": "verdict", "It must be B.": "weaker words", "B, because it is": "beginning",
        "The capital is Canberra.": "last sentence", "A, C and D are wrong.": "what is left", "Hmm": "",
    }  # fmt: skip
    assert {reply: explain(reply, CITIES)[0] for reply in said} == said
    assert {explain(reply, CITIES)[1] for reply, how in said.items() if how} == {1}
    assert explain("B. Canberra was", CITIES, finish="length") == ("beginning", 1)


N = 200_000
ADVERSARIAL = [
    "a" * N,
    " " * N,
    "(" * N,
    "*" * N,
    "\n" * N,
    "<" * N,
    "<a" * N,
    "[" * N,
    "answer is " * (N // 10),
    "answer to " * (N // 10),
    "answer to" + " x" * N,
    "so " * N,
    "it is " * N,
    "A " * N,
    "(A)" * N,
    "A, " * N,
    "boxed{" * N,
    "\\boxed{\\text{" * N,
    "B\n" * N,
    "I think that " * N,
    "B (" + "x" * N,
    "a\u0301" * N,
    "\u0301\u0316" * N,
    "答案" * N,
    "<think>" * N,
    "</think>" * N,
    "\nQuestion:" * N,
    "B is the " * N,
    "- " * N,
    "answer is" + " " * N + "B",
    "\r\n" * N,
    "answer is Canberra " * (N // 10),
    "ﷺ" * N,
    "A. x\n" * N,
    "final answer " * (N // 10),
]


@pytest.mark.parametrize("rule", slow_after(1, reversed(LETTER_RULES)))
def test_no_reply_hangs(rule):
    "A pattern that backtracks would not come back from these for hours."
    for reply in ADVERSARIAL:
        assert -1 <= parse(reply, CITIES, rule) < len(CITIES)


def test_the_answer_at_either_end_of_a_very_long_reply_is_found():
    filler = "word " * 50_000
    assert read(f"B\n\n{filler}", CITIES) == read(f"{filler} So the answer is B.", CITIES) == 1


def test_a_rule_is_a_name_or_a_function():
    assert parse("x", CITIES, lambda reply, choices: np.int64(2)) == 2
    assert [parse("x", CITIES, lambda reply, choices: i) for i in (None, -7, 4)] == [-1, -1, -1]
    with pytest.raises(
        CoraError,
        match="parsing rule must be one of careful, exact_number, first_alphanumeric, first_character, first_token",
    ):
        parse("B", CITIES, "last")
    with pytest.raises(CoraError, match="got 'B'"):
        parse("B", CITIES, lambda reply, choices: "B")


@pytest.fixture(scope="module")
def recorded(recorded_at):
    "Every recorded reply: method, reply, choices, the letter the authors' tool took."
    cells = pd.read_excel(recorded_at("cat/medqa/medalpaca-7b"))["expanded_evaluation"]
    return [
        (e["output"], tuple(e["choices"].values()), e["model_choice"])
        for cell in cells
        for group in json.loads(cell).values()
        for e in group
    ]


@pytest.mark.slow
def test_the_recorded_letter_is_the_first_character(recorded):
    assert len(recorded) == 58_558
    assert all(reply[:1] == letter for reply, _, letter in recorded)
    assert all(
        first_character(reply, choices)
        == (LETTERS[: len(choices)].index(letter) if letter and letter in LETTERS[: len(choices)] else -1)
        for reply, choices, letter in recorded
    )


@pytest.mark.slow
def test_the_recorded_letter_is_nearly_always_the_first_alphanumeric(recorded):
    differ = [
        (reply, letter)
        for reply, choices, letter in recorded
        if first_alphanumeric(reply, choices) != first_character(reply, choices)
    ]
    assert sorted(differ) == [
        ("(A)", "("),
        (". Alcohol withdrawal\n\nQuestion", "."),
        (". Alcohol withdrawal\n\nQuestion", "."),
        (". Biceps tendonitis\nD", "."),
    ]


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        ("At first the answer is (A). But that is wrong. The answer is (B).", 1),
        ("The answer is: B. No, the answer is: A", 0),
        ("The answer is (C). Let me check again. The answer is hard to find.", 2),  # the last cue names nothing
    ],
)
def test_the_last_statement_of_an_answer_counts(reply, choice):
    assert parse(reply, ("cold", "warm", "hot")) == choice


def test_of_what_contradicts_itself_only_a_later_statement_is_read():
    choices = ("cold", "warm", "hot")
    assert careful("The answer is (A). The answer is (B).", choices) == 1
    assert careful("The answer is (C). The answer is not known", choices) == 2
    assert careful("I think it is A, no, I think it is B", choices) == 1
    assert careful("I think it is B, I think it is Z", choices) == NOT_SHOWN
    assert careful("A is correct. No: B is correct", choices) == 1
    assert careful("A is correct. B is correct", choices) == UNREAD
    assert careful("B is correct. Z is correct", choices) == 1
    assert careful("The answer is B. B is wrong, though.", choices) == UNREAD
    assert careful("The answer is A and B.", choices) == careful("The answer is A or Z.", choices) == UNREAD
