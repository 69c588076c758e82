"""Families that change nothing but the order: `permutations`, `cyclic`, `reorderings`, `order_swap`, `answer_swap`."""

import itertools
import warnings
from collections import Counter
from math import factorial

import pytest
from helpers import check_lettered, numbered, questions
from hypothesis import example, given, settings, strategies as st

from cora_nb.core import CoraError, Question
from cora_nb.variants.families import LeftOut, divergence_set, get_family, make_variants
from cora_nb.variants.mcqa_plus import SIZES
from cora_nb.variants.orders import cyclic, _order_of_rank, order_swap, permutations, _random_numbers, _sample_orders


def orders(question, **options):
    return [v.sources for v in make_variants([question], family="permutations", most_choices=26, **options)]


# What every variant is


@given(questions(), st.integers(0, 2**40), st.integers(1, 130))
def test_orders_are_different_and_the_answer_is_found(q, seed, limit):
    variants = make_variants([q], family="permutations", seed=seed, limit=limit, most_choices=26)
    assert len(variants) == len({v.sources for v in variants}) == min(limit, factorial(q.n_choices))
    for v in variants:
        assert sorted(v.sources) == list(range(q.n_choices))
        assert v.choices == tuple(q.choices[s] for s in v.sources)
        assert v.sources[v.answer] == q.answer
        assert v.question is q and v.family == "permutations"
    assert variants[0].choices == q.choices
    assert [(v.method, v.index) for v in variants] == [("original", 0)] + [
        ("permuted", i) for i in range(len(variants) - 1)
    ]


@given(questions(), st.integers(0, 2**40))
def test_every_rotation_once_and_every_choice_in_every_place_once(q, seed):
    variants = make_variants([q], family="cyclic", seed=seed)
    A = q.n_choices
    assert [(v.method, v.index) for v in variants] == [("original", 0)] + [("rotated", i) for i in range(A - 1)]
    assert variants[0].choices == q.choices
    for v in variants:
        assert (
            v.choices == tuple(q.choices[s] for s in v.sources)
            and v.sources[v.answer] == q.answer
            and v.family == "cyclic"
        )
        assert all(
            (second - first) % A == 1 for first, second in itertools.pairwise(v.sources)
        )  # the ring is never torn
    for place in range(A):
        assert sorted(v.sources[place] for v in variants) == list(range(A))


@given(questions(most=5), st.integers(0, 99))
def test_rotations_are_among_all_orders(q, seed):
    everything = {v.sources for v in make_variants([q], family="permutations", seed=seed, limit=120)}
    assert {v.sources for v in make_variants([q], family="cyclic")} <= everything


# All orders where they fit, a sample where they do not


@pytest.mark.parametrize("A", range(2, 7))
def test_all_orders_are_there_when_they_fit(A):
    for limit in (factorial(A), factorial(A) + 1, 10**9):
        assert orders(numbered(A), limit=limit) == list(itertools.permutations(range(A)))
        assert orders(numbered(A), limit=limit, seed=1) == orders(numbered(A), limit=limit)


@pytest.mark.parametrize("A,limit", [(5, 100), (5, 119), (6, 719), (7, 5039), (26, 100), (26, 5000)])
def test_a_sample_is_as_long_as_it_should_be(A, limit):
    got = orders(numbered(A), limit=limit)
    assert len(got) == len(set(got)) == limit and got[0] == tuple(range(A))


def test_the_24_orders_of_the_paper_and_our_limit_of_100():
    assert len(orders(numbered(4))) == 24 and len(orders(numbered(5))) == 100 and len(orders(numbered(6))) == 100


@given(st.integers(5, 26), st.integers(1, 119), st.integers(1, 119), st.integers(0, 2**40))
def test_a_larger_limit_only_adds(A, m, n, seed):
    small, large = sorted((m, n))
    assert orders(numbered(A), limit=large, seed=seed)[:small] == orders(numbered(A), limit=small, seed=seed)


def test_samples_are_fair():
    "A = 4, limit 10, 2,300 keys: each other order is drawn 900 times on average, as without repetition."
    drawn = Counter(order for i in range(2300) for order in list(_sample_orders(4, 10, "fair", i))[1:])
    assert len(drawn) == 23 and (0, 1, 2, 3) not in drawn
    deviations = [(n - 900) / (2300 * 9 / 23 * 14 / 23) ** 0.5 for n in drawn.values()]
    assert sum(d * d for d in deviations) * 22 / 23 < 56  # 22 degrees of freedom, 99.99% quantile 56


# The parts


@given(st.integers(2, 26).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, factorial(n) - 1))))
def test_the_rank_of_an_order_can_be_counted_back(case):
    n, rank = case
    order = _order_of_rank(rank, n)
    back = sum(factorial(n - 1 - i) * sum(later < here for later in order[i + 1 :]) for i, here in enumerate(order))
    assert sorted(order) == list(range(n)) and back == rank


@pytest.mark.parametrize(
    "call,says",
    [
        (lambda: _order_of_rank(-1, 3), "rank must be a whole number of 0 or more, got -1"),
        (lambda: _order_of_rank(6, 3), "rank must be less than 3! = 6, got 6"),
        (lambda: _order_of_rank(1.0, 3), "rank must be a whole number of 0 or more, got 1.0"),
        (lambda: _order_of_rank(0, 0), "n must be a whole number of 1 or more, got 0"),
        (lambda: _sample_orders(5, -3, "k"), "limit must be a whole number of 1 or more, got -3"),
        (lambda: _sample_orders(5, 0, "k"), "limit must be a whole number of 1 or more, got 0"),
        (lambda: _sample_orders(-1, 5, "k"), "n must be a whole number of 1 or more, got -1"),
    ],
)
def test_parts_refuse_what_is_out_of_range(call, says):
    with pytest.raises(CoraError) as e:
        call()
    assert str(e.value) == says


# What the variants depend on


@given(st.integers(0, 2**40), st.integers(0, 2**40), st.integers(5, 26))
@settings(max_examples=50)
def test_same_seed_same_orders_other_seed_others(seed, other, A):
    sample = orders(numbered(A), seed=seed, limit=60)
    assert sample == orders(numbered(A), seed=seed, limit=60)
    if other != seed:
        assert set(sample) != set(orders(numbered(A), seed=other, limit=60))


def test_questions_do_not_share_their_orders():
    samples = {frozenset(orders(numbered(5, id=f"q{i}"))) for i in range(200)}
    assert len(samples) == 200


@given(
    st.lists(st.integers(0, 10**6), unique=True, max_size=12),
    st.randoms(use_true_random=False),
    st.sampled_from(["permutations", "cyclic", "answer_swap"]),
)
@settings(max_examples=30)
def test_any_subset_in_any_order_gives_the_same_variants(numbers, rng, family):
    qs = [numbered(2 + n % 5, id=f"q{n}") for n in numbers]
    whole = {v.key: v for v in make_variants(qs, family=family)}
    rng.shuffle(qs)
    part = qs[: len(qs) // 2]
    assert {v.key: v for v in make_variants(part, family=family)} == {
        k: v for k, v in whole.items() if k[0] in {q.id for q in part}
    }


def test_orders_are_the_same_on_every_machine():
    "Literal expectation: a change of the hash, of Python or of numpy must not move a single choice."
    assert (
        orders(Question("capital", "?", ("Sydney", "Canberra", "Melbourne", "Perth", "Hobart"), 1), seed=7, limit=6)
        == EXPECTED
    )
    assert _random_numbers([6, factorial(26)], 7, "capital") == EXPECTED_NUMBERS


EXPECTED = [(0, 1, 2, 3, 4), (2, 4, 0, 3, 1), (4, 0, 1, 2, 3), (1, 0, 2, 3, 4), (3, 2, 1, 4, 0), (4, 0, 3, 1, 2)]
EXPECTED_NUMBERS = [5, 302835503647968103418033345]


def test_equal_texts_are_different_choices():
    q = Question("q", "?", ("same", "same", "same", "other"), 2)
    variants = make_variants([q], family="permutations")
    assert len({v.sources for v in variants}) == 24 and len({v.choices for v in variants}) == 4
    assert all(v.sources[v.answer] == 2 for v in variants)


# Questions left out, options


@given(st.lists(st.integers(2, 26), max_size=30), st.integers(2, 26))
@settings(max_examples=50)
def test_questions_left_out_are_counted(sizes, most):
    qs = [numbered(A, id=f"q{i}") for i, A in enumerate(sizes)]
    too_long = sum(A > most for A in sizes)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        variants = make_variants(iter(qs), family="permutations", limit=2, most_choices=most)
    assert {v.question_id for v in variants} == {q.id for q in qs if q.n_choices <= most}
    expected = [
        f"permutations: left out {too_long} of {len(qs)} questions: "
        f"more than {most} choices (see the option most_choices)"
    ]
    assert [str(w.message) for w in said] == (expected if too_long else [])
    assert all(w.filename == __file__ for w in said)


def test_asked_directly_the_family_refuses():
    with pytest.raises(LeftOut, match="^more than 6 choices"):
        next(permutations(numbered(7)))


# A few orders: the family `reorderings`


@example(Question("q", "a", ("a", "a", "a", "a", "None of the above"), 0), 0, 2, True, 1)
@given(questions(most=9), st.integers(0, 99), st.none() | st.integers(2, 26), st.booleans(), st.integers(1, 30))
def test_reorderings_of_any_question(q, seed, n, nota, orders):
    variants = make_variants([q], family="reorderings", seed=seed, n_choices=n, nota=nota, orders=orders)
    shown = n or q.n_choices
    assert len(variants) == min(orders, factorial(shown))
    base = "original" if shown == q.n_choices else f"options_{shown}"
    start = base if not nota else "nota_answer" if base == "original" else f"{base}_nota_answer"
    assert [(v.method, v.index) for v in variants] == [(start, 0)] + [("reordered", i) for i in range(1, len(variants))]
    for v in variants:
        assert v.n_choices == shown and v.family == "reorderings" and v.question is q
        check_lettered(v, nota)
        assert sorted(zip(v.choices, v.sources)) == sorted(zip(variants[0].choices, variants[0].sources))
        assert (
            v.choices[v.answer] == variants[0].choices[variants[0].answer]
            and v.sources[v.answer] == variants[0].sources[variants[0].answer]
        )
    assert variants == make_variants([q], family="reorderings", seed=seed, n_choices=n, nota=nota, orders=orders)


def test_both_families_draw_the_same():
    asked = [numbered(A, f"q{A}") for A in range(2, 27)]
    plus = {v.key: v for v in make_variants(asked, family="mcqa_plus", seed=5)}
    for n in (None, *SIZES):
        for v in make_variants(asked, family="reorderings", seed=5, n_choices=n):
            if n is None or v.method != "reordered":
                same = plus[v.question_id, v.method, v.index - (v.method == "reordered")]
                assert (same.choices, same.sources, same.answer) == (v.choices, v.sources, v.answer)


@given(questions(most=9), st.integers(0, 99), st.integers(2, 26), st.booleans(), st.integers(2, 6))
def test_a_text_has_one_number_in_all_orders(q, seed, n, nota, orders):
    variants = make_variants([q], family="reorderings", seed=seed, n_choices=n, nota=nota, orders=orders)
    numbers = {s: c for s, c in zip(variants[0].sources, variants[0].choices)}
    assert len(numbers) == n
    assert all(numbers == dict(zip(v.sources, v.choices)) for v in variants)


# Two orders: the family `order_swap`


def check_swap(one, two):
    "What the two cases of any question are."
    q = one.question
    assert (one.method, two.method) == ("case_1", "case_2") and one.index == two.index == 0
    for v in (one, two):
        assert v.family == "order_swap" and v.form == "mcq" and v.asked == q.text
        assert sorted(v.sources) == list(range(q.n_choices))
        assert v.answer == q.n_choices - 1 and v.sources[-1] == q.answer
        assert v.choices == tuple(q.choices[s] for s in v.sources)
    wrong = [i for i in range(q.n_choices) if i != q.answer]
    assert list(one.sources) == wrong + [q.answer]
    assert list(two.sources) == [wrong[1], wrong[0]] + wrong[2:] + [q.answer]


@pytest.mark.parametrize("name, least", [("mmlu", 14_042), ("arc", 1_150)])
def test_both_cases_of_every_real_question(shared, name, least):
    from cora_nb.benchmarks.load import load_benchmark

    asked = load_benchmark(name, path=shared / "hub", on_bad="skip")
    made = make_variants(asked, "order_swap")
    assert len(made) == 2 * len(asked) and len(asked) >= least
    for one, two in zip(made[::2], made[1::2]):
        check_swap(one, two)


def test_two_choices_are_left_out():
    pair, triple = Question("p", "?", ("yes", "no"), 0), Question("t", "?", ("a", "b", "c"), 0)
    with pytest.raises(LeftOut, match="nothing to exchange"):
        list(order_swap(pair))
    with pytest.warns(UserWarning, match=r"order_swap: left out 1 of 2 questions: with two choices"):
        made = make_variants([pair, triple], "order_swap")
    assert [v.sources for v in made] == [(1, 2, 0), (2, 1, 0)]


# Options


@pytest.mark.parametrize(
    "family,options,says",
    [
        ("permutations", {"limit": 0}, "limit must be a whole number of 1 or more, got 0"),
        ("permutations", {"limit": -3}, "limit must be a whole number of 1 or more, got -3"),
        ("permutations", {"limit": 2.0}, "limit must be a whole number of 1 or more, got 2.0"),
        ("permutations", {"limit": True}, "limit must be a whole number of 1 or more, got True"),
        ("permutations", {"limit": None}, "limit must be a whole number of 1 or more, got None"),
        ("permutations", {"limit": "24"}, "limit must be a whole number of 1 or more, got '24'"),
        ("permutations", {"most_choices": 1}, "most_choices must be a whole number of 2 or more, got 1"),
        ("permutations", {"most_choices": float("nan")}, "most_choices must be a whole number of 2 or more, got nan"),
        ("permutations", {"most": 5}, "family 'permutations' takes the options limit, most_choices, got 'most'"),
        ("order_swap", {"answer_last": True}, "family 'order_swap' takes no options, got 'answer_last'"),
        ("reorderings", {"orders": 0}, "orders must be a whole number of 1 or more, got 0"),
        ("reorderings", {"n_choices": 1}, "n_choices must be a whole number of 2 or more, got 1"),
        ("reorderings", {"n_choices": 0}, "n_choices must be a whole number of 2 or more, got 0"),
        ("reorderings", {"n_choices": 27}, "n_choices must be at most 26, got 27"),
        ("reorderings", {"n_choices": "6"}, "n_choices must be a whole number of 2 or more, got '6'"),
        ("reorderings", {"nota": " "}, "nota must be a non-empty text, got ' '"),
        ("reorderings", {"nota": 1}, "nota must be a non-empty text, got 1"),
        (
            "reorderings",
            {"sample": 1},
            "family 'reorderings' takes the options n_choices, nota, orders, nota_place, got 'sample'",
        ),
        ("cyclic", {"limit": 5}, "family 'cyclic' takes no options, got 'limit'"),
    ],
)
def test_bad_options_get_one_clear_line(family, options, says):
    with pytest.raises(CoraError) as e:
        make_variants([numbered(3)], family=family, **options)
    assert str(e.value) == says and not isinstance(e.value, LeftOut)


def test_the_families_are_found_by_name():
    assert get_family("permutations") is permutations and get_family("cyclic") is cyclic
    assert get_family("order_swap") is order_swap


# --- None of the above last ---


@given(questions(), st.integers(0, 5), st.sampled_from([None, 2, 3, 6]), st.integers(2, 9))
@settings(max_examples=60, deadline=None)
def test_none_of_the_above_stays_last_while_the_others_change_places(q, seed, n, orders):
    options = {"n_choices": n, "nota": True, "orders": orders}
    last = make_variants([q], "reorderings", seed, nota_place="last", **options)
    place = make_variants([q], "reorderings", seed, **options)
    size = n or q.n_choices
    assert len(last) == min(orders, factorial(size - 1)) and len(place) == min(orders, factorial(size))
    assert all(v.answer == size - 1 and set(v.sources) == set(place[0].sources) for v in last)
    assert len({v.sources for v in last}) == len(last)
    kept = [s for s in place[0].sources if s != place[0].sources[place[0].answer]]
    assert list(last[0].sources[:-1]) == kept  # the others in their own order, moved up
    assert divergence_set("reorderings", q.n_choices, options | {"nota_place": "last"}) in (
        None,
        dict(Counter(v.method for v in last)),
    )
    unchanged = make_variants([q], "reorderings", seed, orders=orders)
    assert unchanged == make_variants([q], "reorderings", seed, orders=orders, nota_place="last")


def test_places_of_none_of_the_above_are_named():
    q = Question("q", "?", ("a", "b", "c"), 0)
    for family in ("reorderings", "mcqa_plus"):
        with pytest.raises(CoraError, match="nota_place must be one of answer, last, got 'first'"):
            make_variants([q], family, nota_place="first")


# The right answer at every place: the family `answer_swap`


@given(questions(), st.integers(0, 2**40))
def test_the_answer_changes_places_with_each_other_choice(q, seed):
    variants = make_variants([q], family="answer_swap", seed=seed)
    assert variants == make_variants([q], family="answer_swap") and len(variants) == q.n_choices
    assert [(v.method, v.index) for v in variants] == [("original", 0)] + [
        ("answer_swap", i) for i in range(q.n_choices - 1)
    ]
    for v, place in zip(variants, [q.answer, *q.distractors]):
        check_lettered(v)
        choices = list(q.choices)
        choices[place], choices[q.answer] = choices[q.answer], choices[place]
        assert (v.answer, list(v.choices), v.family) == (place, choices, "answer_swap")
        assert v.sources[place] == q.answer and v.sources[q.answer] == place


@given(questions(most=5))
def test_exchanges_of_the_answer_are_among_all_orders(q):
    everything = {v.sources for v in make_variants([q], family="permutations", limit=120)}
    assert {v.sources for v in make_variants([q], family="answer_swap")} <= everything
