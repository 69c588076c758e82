"""Properties of the operators: fillers that are no words, new choices that can be told apart, None of the above."""

from collections import Counter

import pytest
from helpers import NOTA, check_lettered, numbered, questions
from hypothesis import example, given, strategies as st

from conftest import DICTIONARY
from cora_nb.core import CoraError, Question, permutation, uniforms
from cora_nb.variants import operators
from cora_nb.variants.operators import check_nota, filler, fillers, make_variant, nota_for_answer, resize, shuffle


def test_shuffles_are_fair():
    "All 24 orders of four items, over 24,000 keys: chi-squared below its 99.99% quantile (23 df: 60.1)."
    seen = Counter(tuple(permutation(4, "fair", i)) for i in range(24_000))
    assert len(seen) == 24
    assert sum((n - 1000) ** 2 / 1000 for n in seen.values()) < 60.1


def test_keys_do_not_collide():
    assert uniforms(1, "a", "bc") != uniforms(1, "ab", "c")
    assert uniforms(3, "k")[:2] == uniforms(2, "k")


@given(questions(), st.integers(0, 99))
def test_a_shuffle_keeps_what_is_shown(q, seed):
    shown = (*range(q.n_choices), -1, -2)
    assert sorted(shuffle(shown, seed, q.id)) == sorted(shown) and shuffle(shown, seed, q.id) == shuffle(
        shown, seed, q.id
    )


# From sources to a variant


def test_new_choices_have_texts_of_their_own():
    v = make_variant(numbered(4), "f", "m", 3, [2, -2, 0, -1], new=("first", "second"))
    assert v.choices == ("choice 2", "second", "choice 0", "first") and v.sources == (2, -2, 0, -1) and v.answer == 0
    assert make_variant(numbered(4), "f", "m", 0, (2, -1)).choices == ("choice 2", NOTA)


@pytest.mark.parametrize("sources", [(), (0, 1), (2, 2), (2, -1, -1), (2, 4), (2, -2)])
def test_sources_that_make_no_variant(sources):
    with pytest.raises(CoraError) as e:
        make_variant(numbered(4), "f", "m", 0, sources)
    assert str(e.value) == (
        "f, m: sources must hold the answer (2) of question 'q' and other indices below 4, "
        f"or -1 to -1 for new choices, none twice, got {sources}"
    )


# Fillers


def test_no_filler_at_all_is_a_word(words):
    "The rule, not a sample of it: no word known has the letters of a filler."
    could = [
        w
        for w in words
        if 4 <= len(w) <= 6
        and len(set(w)) == len(w)
        and not set(w) - set("bcdfghjklmnpqrstvxz")
        and sum(c in "jqxz" for c in w) == 2
    ]
    assert could == []


def test_no_filler_is_a_word_of_the_dictionary():
    if not DICTIONARY.exists():
        pytest.skip(f"no dictionary at {DICTIONARY}")
    known = set(DICTIONARY.read_text(errors="ignore").casefold().split())
    assert not {filler(i) for i in range(50_000)} & known


@given(questions(), st.integers(0, 99), st.integers(0, 30), st.integers(0, 30))
def test_fillers_are_new_and_a_longer_list_begins_with_the_shorter(q, seed, m, n):
    m, n = sorted((m, n))
    found = fillers(q, n, seed)
    assert len(set(found)) == n and found[:m] == fillers(q, m, seed)
    assert not any(f in t.casefold() for f in found for t in (q.text, *q.choices))


def test_a_filler_that_is_in_the_question_is_passed_over():
    first = fillers(numbered(4), 1)[0]
    for q in (Question("q", f"What is {first.upper()}?", ("a", "b"), 0), Question("q", "?", ("a", first), 0)):
        assert first not in fillers(q, 24)


@given(questions(most=9), st.integers(0, 99), st.integers(2, 26), st.integers(2, 26))
def test_the_same_filler_has_the_same_number_at_every_size(q, seed, m, n):
    small, large = (resize(q, k, seed) for k in sorted((m, n)))
    numbers = [{c: s for c, s in zip(v.choices, v.sources) if s < 0} for v in (small, large)]
    assert numbers[0].items() <= numbers[1].items()
    assert list(numbers[1].values()) == list(range(-1, -1 - max(max(m, n) - q.n_choices, 0), -1))


# None of the above


@given(questions(most=9), st.integers(0, 99), st.integers(2, 26))
@example(Question("q", "a", ("a", "a", "a", "a", "None of the above"), 0), 0, 2)
@example(Question("q", "?", ("a", "None of the above", "None of the above"), 0), 0, 2)
def test_none_of_the_above_in_place_of_the_answer(q, seed, n):
    before, v = resize(q, n, seed), nota_for_answer(resize(q, n, seed), seed)
    check_lettered(v, nota=True)
    assert v.n_choices == n and v.method == f"{before.method}_nota_answer".replace("original_", "")
    for i, (old, new) in enumerate(zip(before.sources, v.sources)):
        if i != before.answer:
            assert v.choices[i] == before.choices[i]
            assert new == old if old >= 0 or v.sources[before.answer] >= 0 else new == old - 1
    if v.sources[before.answer] < 0:
        assert v.sources[before.answer] == -1  # the newcomer is first, whatever else is new


def test_the_questions_own_none_of_the_above_comes_back():
    "It was removed, and the question did have it: its source is its index, as a random question once showed."
    q = Question("q", "a", ("a", "a", "a", "a", NOTA), 0)
    assert resize(q, 2).sources == (0, 3)
    v = nota_for_answer(resize(q, 2))
    assert (v.choices, v.sources, v.answer) == ((NOTA, "a"), (4, 3), 0)
    other = nota_for_answer(resize(q, 2), nota="I do not see it")  # a wording that the question does not have
    assert (other.choices, other.sources) == (("I do not see it", "a"), (-1, 3))


@pytest.mark.parametrize("nota", ["", " ", None, 1])
def test_texts_that_no_choice_can_have(nota):
    with pytest.raises(CoraError, match="nota must be a non-empty text, got"):
        check_nota(nota)


def test_no_two_fillers_of_a_question_are_the_same(monkeypatch):
    "A filler that comes twice is passed over, as is one that is in the question."
    drawn = ["jqx", "jqx", "KNOWN", "zxb", "jqx", "zxb", "qjd"]
    monkeypatch.setattr(operators, "filler", lambda *key: drawn[key[-1]].casefold())
    assert fillers(Question("q", "Is it known?", ("a", "b"), 0), 3) == ["jqx", "zxb", "qjd"]
    sized = resize(Question("q", "Is it known?", ("a", "b"), 0), 5)
    assert sized.choices == ("a", "b", "jqx", "zxb", "qjd") and sized.sources == (0, 1, -1, -2, -3)
