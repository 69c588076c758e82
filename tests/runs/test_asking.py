"""What is asked, what need not be, and what it may cost: checked when it is made, the same in facts, found again."""

import dataclasses
import json
import pickle

import pytest
from hypothesis import given, strategies as st

import cora_nb as cn
from cora_nb.core import CoraError
from cora_nb.runs.asking import (
    Asking,
    Budget,
    Precise,
    Settled,
    check_asking,
    check_stop,
    facts_of_stop,
    stop_from_facts,
)
from cora_nb.responses.facts import as_facts

shares = st.floats(0, 1)
stops = st.one_of(
    st.just(None),
    st.builds(Settled, st.lists(shares, min_size=1, max_size=4), st.integers(1, 999)),
    st.builds(
        Precise,
        st.lists(st.sampled_from(["CoRA", "MCQA", "MV"]), min_size=1),
        st.floats(0.001, 0.499),
        st.floats(0.01, 0.99),
        st.integers(0, 99),
        st.integers(1, 999),
    ),
)


@given(stops)
def test_a_stop_is_read_back_from_the_json_of_its_facts(stop):
    assert stop_from_facts(as_facts({"asked": json.loads(json.dumps(facts_of_stop(stop)))})) == stop
    assert pickle.loads(pickle.dumps(stop)) == stop and check_stop(stop) is stop


def test_facts_without_a_stop_asked_everything():
    assert stop_from_facts(as_facts({})) is stop_from_facts(as_facts({"asked": {"k": 0}})) is None


@pytest.mark.parametrize(
    "asked, said",
    [
        ({"stop": "soon"}, "stop must be one of cora, bmca, got 'soon'"),
        ({"stop": "bmca", "thresholds": [2]}, r"thresholds must be numbers in \[0, 1\]"),
        ({"stop": "cora", "batch": -1}, "batch must be a whole number of 1 or more, got -1"),
        ({"stop": "precise", "scores": [1]}, "asked.scores.0 must be a text, got 1"),
        ({"stop": "precise", "half_width": "wide"}, "asked.half_width must be a number, got 'wide'"),
        ({"stop": ["precise"]}, "what asked and sample say of how the run stopped is not what a run writes"),
    ],
)
def test_facts_that_no_run_can_have_written(asked, said):
    with pytest.raises(CoraError, match=said):
        stop_from_facts(as_facts({"asked": asked}))


WHO = cn.SimulatedRespondent(knows=0.6, slips=0.1, seed=1, name="ann")
LIKE = Asking("bare", cn.load_shots("math"), 2, "like_variant", 2, "first_token")


def test_values_are_frozen_and_equal_by_what_they_say():
    assert Asking(shots=[]) == Asking(shots=None) == Asking() and Settled([1]) == Settled()
    assert Precise("CoRA") == Precise(["CoRA", "CoRA"]) and Precise() != Settled()
    for value in (Asking(), Settled(), Precise(), Budget(calls=1)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.calls = 2


@pytest.mark.parametrize("wrong", [None, "bare", {"trials": 3}, Settled(), Asking])
def test_what_is_no_asking(wrong):
    with pytest.raises(CoraError, match="asking must be an Asking, such as Asking"):
        check_asking(wrong)


@pytest.mark.parametrize("wrong", [False, "cora", (1.0,), Asking(), Settled])
def test_what_is_no_stop(wrong):
    with pytest.raises(CoraError, match=r"stop must be None, Settled\(...\) or Precise\(...\), got "):
        check_stop(wrong)


def test_the_front_door_hands_out_what_is_asked():
    variants = cn.make_variants(cn.load_benchmark("math")[:40])
    run = cn.evaluate(WHO, variants, cn.Asking("bare"), cn.Precise("CoRA", half_width=0.2), progress=False)
    assert run.facts.asked.template == "bare" and run.facts.sample.half_width == 0.2
    assert cn.Settled is Settled and cn.Budget is Budget
