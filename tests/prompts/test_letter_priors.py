"""Priors of letters: against plain Python, with ties, letters of probability 0, and scores that are not normalised."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cora_nb.core import CoraError
from cora_nb.prompts.labels import (
    LetterPrior,
    average_by_content,
    choice_orders,
    divide_by_prior,
    highest_place,
    letter_probabilities,
    prior_over_orders,
    tidy_scores,
)

scores = st.lists(st.floats(-20, 0), min_size=2, max_size=6)


@given(scores, st.floats(-50, 50))
def test_probabilities_sum_to_one_and_know_no_constant(s, constant):
    p = letter_probabilities(s)
    assert p.sum() == pytest.approx(1) and (p > 0).all()
    np.testing.assert_allclose(letter_probabilities([x + constant for x in s]), p, rtol=1e-9)


@given(scores)
def test_an_even_prior_changes_nothing(s):
    even = np.full(len(s), 1 / len(s))
    np.testing.assert_allclose(np.exp(divide_by_prior(s, even)), letter_probabilities(s), atol=1e-8)


@given(scores, st.data())
def test_dividing_by_the_same_factor_for_all_keeps_the_order(s, data):
    prior = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=len(s), max_size=len(s))))
    found, p = divide_by_prior(s, prior / prior.sum()), letter_probabilities(s)
    plain = [math.log(a + 1e-10) - math.log(b + 1e-10) for a, b in zip(p, prior / prior.sum())]
    total = math.log(sum(map(math.exp, plain)))
    np.testing.assert_allclose(found, [x - total for x in plain], atol=2e-9)


@given(st.integers(2, 5), st.sampled_from(["cyclic", "full"]))
def test_orders_are_balanced_and_begin_with_the_own_one(n, orders):
    found = choice_orders(n, orders)
    assert found[0] == tuple(range(n)) and len(set(found)) == len(found) == (
        n if orders == "cyclic" else math.factorial(n)
    )
    assert (np.array([np.bincount([o[k] for o in found], minlength=n) for k in range(n)]) == len(found) / n).all()


@given(st.integers(2, 4), st.sampled_from(["cyclic", "full"]), st.integers(0, 1000))
def test_a_liking_that_is_always_the_same_is_found_and_taken_out(n, orders, seed):
    rng = np.random.default_rng(seed)
    liking, belief = rng.dirichlet(np.ones(n) * 3) + 0.01, rng.dirichlet(np.ones(n) * 3) + 0.01
    places = choice_orders(n, orders)
    said = [letter_probabilities(np.log(liking * belief[list(o)])) for o in places]
    prior = prior_over_orders(said)
    np.testing.assert_allclose(prior, liking / liking.sum(), atol=1e-6)
    for o, p in zip(places, said):
        np.testing.assert_allclose(
            np.exp(divide_by_prior(np.log(p), prior)), (belief / belief.sum())[list(o)], atol=1e-6
        )


def test_the_average_is_by_content():
    orders = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    said = [np.array([0.7, 0.2, 0.1]), np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.3, 0.1])]
    plain = [0.0] * 3
    for order, p in zip(orders, said):
        for place, content in enumerate(order):
            plain[content] += p[place] / 3
    np.testing.assert_allclose(average_by_content(orders, said), plain, rtol=1e-12)


def test_a_tie_is_nobodys_even_where_rounding_says_otherwise():
    assert highest_place(tidy_scores([0.1 + 0.2, 0.3, -1])) == -1  # 0.30000000000000004 and 0.3
    assert highest_place(tidy_scores([0.3 + 1e-6, 0.3, -1])) == 0
    mean = average_by_content(choice_orders(3, "full"), [np.array([0.7, 0.2, 0.1])] * 6)  # letters are all that counts
    assert highest_place(tidy_scores(np.log(mean))) == -1


def test_a_letter_of_probability_zero_stays_ruled_out():
    found = divide_by_prior([-0.1, -2.0, -math.inf], np.array([0.9, 0.1, 0.0]))
    assert found[2] == -math.inf and highest_place(found) == 1
    assert divide_by_prior([0.0, -math.inf], np.array([1.0, 0.0])) == (0.0, -math.inf)
    prior = prior_over_orders([np.array([1.0, 0.0]), np.array([0.0, 1.0])])
    np.testing.assert_allclose(prior, [0.5, 0.5])


@pytest.mark.parametrize("bad", [[], [math.nan, 0.0], [-math.inf, -math.inf], [math.inf, 0.0], [[0.0, 1.0]]])
def test_scores_from_which_nothing_follows_are_refused(bad):
    with pytest.raises(CoraError, match="scores must be log-probabilities"):
        letter_probabilities(bad)


def test_a_prior_of_fewer_choices_is_taken_from_the_next_larger_number():
    prior = LetterPrior({5: (0.4, 0.3, 0.1, 0.1, 0.1), 3: (0.2, 0.2, 0.6)})
    assert list(prior.probabilities) == [3, 5]
    np.testing.assert_allclose(prior.of(2), [0.5, 0.5])
    np.testing.assert_allclose(prior.of(4), [4 / 9, 3 / 9, 1 / 9, 1 / 9])
    assert prior.describe()["probabilities"]["3"] == pytest.approx([0.2, 0.2, 0.6])
    with pytest.raises(CoraError, match="about 3, 5 choices, and 6 are shown"):
        prior.of(6)
    with pytest.raises(CoraError, match="gives the first 2 letters no probability"):
        LetterPrior({3: (0, 0, 1)}).of(2)


@pytest.mark.parametrize(
    "bad", [{}, None, {2: (0.5, 0.6)}, {2: (1.5, -0.5)}, {1: (1.0,)}, {3: (0.5, 0.5)}, {2: (math.nan, 1)}]
)
def test_what_is_no_prior_is_refused(bad):
    with pytest.raises(CoraError):
        LetterPrior(bad)
