"""The family `order_swap`: two orders of the same choices, for any number of choices, by an independent definition."""

import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from cora_nb.core import CoraError, Question
from cora_nb.variants.families import LeftOut, make_variants, read_variants, write_variants
from cora_nb.variants.order_swap import order_swap


@st.composite
def questions(draw):
    "Any question of at least three choices, which may repeat."
    choices = draw(
        st.lists(
            st.sampled_from(["a", "b", "None of the above", "42"]) | st.text(min_size=1).filter(str.strip),
            min_size=3,
            max_size=26,
        )
    )
    return Question("q", "?", tuple(choices), draw(st.integers(0, len(choices) - 1)))


def check(one, two):
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


@given(questions(), st.integers(0, 2**40))
def test_both_cases_of_any_question(q, seed):
    made = make_variants([q], "order_swap", seed=seed)
    assert len(made) == 2
    check(*made)
    assert made == make_variants([q], "order_swap")  # nothing is random


@pytest.mark.parametrize("name, least", [("mmlu", 14_042), ("arc", 1_150)])
def test_every_real_question(shared, name, least):
    from cora_nb.benchmarks.load import load_benchmark

    asked = load_benchmark(name, path=shared / "hub", on_bad="skip")
    made = make_variants(asked, "order_swap")
    assert len(made) == 2 * len(asked) and len(asked) >= least
    for one, two in zip(made[::2], made[1::2]):
        check(one, two)


def test_two_choices_are_left_out():
    pair, triple = Question("p", "?", ("yes", "no"), 0), Question("t", "?", ("a", "b", "c"), 0)
    with pytest.raises(LeftOut, match="nothing to exchange"):
        list(order_swap(pair))
    with pytest.warns(UserWarning, match=r"order_swap: left out 1 of 2 questions: two choices"):
        made = make_variants([pair, triple], "order_swap")
    assert [v.sources for v in made] == [(1, 2, 0), (2, 1, 0)]


def test_options_are_refused():
    with pytest.raises(CoraError, match=r"takes no options, got 'answer_last'\Z"):
        make_variants([], "order_swap", answer_last=True)


def test_written_and_read_back(tmp_path):
    made = make_variants([Question("t", "?", ("a", "b", "c", "d"), 1, "s")], "order_swap")
    write_variants(made, tmp_path / "v.parquet")
    assert read_variants(tmp_path / "v.parquet") == made


def test_the_family_is_found_by_name():
    "In a fresh interpreter, without importing its module."
    code = "from cora_nb.core import Question; from cora_nb.variants.families import make_variants; print(len(make_variants([Question('q', '?', ('a', 'b', 'c'), 0)], 'order_swap')))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "2"
    )
