"""Checks of statements: what is accepted and refused on 1,000 questions of MMLU, on any reply, and by hand."""

import re
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from cora_nb.core import Question
from cora_nb.runs.statements import CHECKS, OTHERS, _check_statement
from statement_texts import SUN, built, one_line, places


# ---- the checks, on MMLU


@pytest.mark.slow
def test_good_sentences_are_accepted(mmlu):
    reasons = {(q.id, i): _check_statement(built(q, i), q, i) for q, i in places(mmlu)}
    print(Counter(reasons.values()))
    assert set(reasons.values()) == {"", OTHERS}
    assert Counter(reasons.values())[OTHERS] < 0.015 * len(reasons)
    assert sum(any(reasons[q.id, i] for i in range(q.n_choices)) for q in mmlu) < 0.05 * len(mmlu)


SPOILED = {
    "is not": lambda q, i: built(q, i).replace('" is "', '" is not "'),
    "isn’t": lambda q, i: built(q, i).replace('" is "', '" isn’t "'),
    "false": lambda q, i: built(q, i).replace("Is it true that", "Is it true that it is false that"),
    "no mark": lambda q, i: built(q, i)[:-1],
    "no lead": lambda q, i: built(q, i).replace("Is it true that", "Is"),
    "correction below": lambda q, i: f"{built(q, i)}\nNo.",
    "twice": lambda q, i: f"{built(q, i)} {built(q, i)}",
    "empty": lambda q, i: "",
    "none": lambda q, i: None,
    "thoughts only": lambda q, i: f"<think>{built(q, i)}",
    "choice cut": lambda q, i: built(q, i).replace(f'"{one_line(q.choices[i])}"?', '"..."?'),
}


@pytest.mark.parametrize("how", SPOILED)
def test_spoiled_sentences_are_refused(mmlu, how):
    for q, i in places(mmlu[::16]):
        said = SPOILED[how](q, i)
        if (
            said is not None
            and how == "choice cut"
            and re.search(
                rf"(?<!\w){re.escape(one_line(q.choices[i]).rstrip('. ').lower())}(?!\w)",
                built(q, i).lower().rpartition('" is "')[0],
            )
        ):
            continue  # the question holds the choice
        assert _check_statement(said, q, i) in CHECKS, (said, q.choices[i])


def test_the_wrong_choice_is_refused(mmlu):
    "Only where one choice holds the other, or the question holds both, may a sentence pass for its neighbour's."
    passed = 0
    for q, i in places(mmlu):
        j = (i + 1) % q.n_choices
        if _check_statement(built(q, j), q, i) == "":
            passed += 1
            assert one_line(q.choices[i]).rstrip(" .,;:").lower() in built(q, j).lower()
    assert passed < 0.01 * 4 * len(mmlu)


def test_a_lost_not_is_refused(mmlu):
    asked = [q for q in mmlu if re.search(r"\b(NOT|EXCEPT)\b", q.text)]
    assert len(asked) > 20
    for q, i in places(asked):
        assert _check_statement(f"Is it true that it is {q.choices[i]}?", q, i) in (
            "lost the negation of the question",
            OTHERS,
        )


# ---- the checks, on anything


texts = st.text(min_size=1, max_size=30).filter(str.strip)
choice_lists = st.lists(
    texts | st.sampled_from(["9", "19", "-9", "not", "East", "east.", "A and B", "?", "..."]), min_size=2, max_size=5
)


@given(st.integers(-999, 999), st.integers(-999, 999))
def test_numbers_stand_for_themselves(a, b):
    q = Question("q", "Which number?", (str(a), "none such"), 0)
    assert (_check_statement(f"Is it true that the number is {b}?", q, 0) == "") == (a == b)


@pytest.mark.parametrize(
    "said,choice,reason",
    [
        ("Is it true that the sun rises in the East?", 0, ""),
        ("IS IT TRUE THAT the sun rises in the east?", 0, ""),
        ("Is it true that the sun rises in the southeast?", 0, "lost the words of the proposed answer"),
        ("Is it true that the sun rises in the East, not the West?", 0, "names another choice beside it"),
        ("Is it true that the sun never rises in the West?", 1, "adds a negation"),
        ("Is it true, that the sun rises in the West?", 1, "does not begin with Is it true that"),
        ("The sun rises in the West.", 1, "does not begin with Is it true that"),
    ],
)
def test_by_hand(said, choice, reason):
    assert _check_statement(said, SUN, choice) == reason
