"""How many questions: promises kept by simulation, closed forms against pilots, faults."""

import numpy as np
import pytest

from cora_nb.core import CoraError
from cora_nb.metrics.comparison import matched_accounts
from cora_nb.metrics.planning import questions_needed
from helpers import answered, at_random, rejected


@pytest.mark.slow
def test_power():
    "A small version of the study, 400 benchmarks with as many questions as planned."
    # both known: 1 and 1. known to one: differ if the other misses. neither: differ with 2 * 0.3 * 0.7
    n = questions_needed(difference=0.1 * 0.7, discordance=0.1 * 0.7 + 0.4 * 0.42)
    assert 0.73 < rejected((0.6, 0.5), n) < 0.87


@pytest.mark.slow
def test_planning_from_a_pilot_agrees_with_the_closed_form():
    a, b = at_random(1, 4000), at_random(2, 4000, 0.5)
    first, second = (c.questions["own_right"].to_numpy() for c in matched_accounts({"a": a, "b": b}).values())
    p = first.mean()
    assert abs(questions_needed(half_width=0.02, pilot=a) / (1.96**2 * p * (1 - p) / 0.02**2) - 1) < 0.06
    planned = questions_needed(
        difference=0.05, discordance=np.mean(first != second) - (first - second).mean() ** 2 + 0.05**2
    )
    assert abs(questions_needed(difference=-0.05, pilot=(a, b)) / planned - 1) < 0.05
    assert questions_needed(pilot=(a, b), score="CoRA") > 1
    assert (
        questions_needed(difference=0.05, accuracy=0.6, power=0.9)
        > questions_needed(difference=0.05, accuracy=0.6)
        > questions_needed(difference=0.05, accuracy=0.6, level=0.9)
    )


def test_an_incomplete_pilot_has_no_cora():
    runs = [answered(seed) for seed in (1, 2)]
    parts = [run.rows(run.table["method"].isin(["original", "shuffled"])) for run in runs]
    with pytest.raises(CoraError, match="its CoRA is not known, pilot 1 has 2 of 20 variants"):
        questions_needed(difference=0.1, pilot=parts, score="CoRA")
    assert questions_needed(difference=0.1, pilot=parts, score="MCQA") > 1
    with pytest.raises(CoraError, match="got 'F1'"):
        questions_needed(difference=0.1, pilot=parts, score="F1")


A, B = at_random(1), at_random(2)


@pytest.mark.parametrize(
    "call, why",
    [
        (lambda: questions_needed(), "give half_width (for an interval) or difference (for a test)"),
        (
            lambda: questions_needed(half_width=0.03, accuracy=0.5, score="CoRA"),
            "without a pilot only MCQA can be planned, got 'CoRA'",
        ),
        (
            lambda: questions_needed(half_width=0.03, pilot=A, accuracy=0.5),
            "accuracy and discordance come from the pilot",
        ),
        (lambda: questions_needed(half_width=0.1, pilot=[A, B]), "of one model, got 2"),
        (lambda: questions_needed(difference=0.1, pilot="A"), "pilot must be a run, or two of them, got a str"),
        (
            lambda: questions_needed(half_width=float("nan"), accuracy=0.5),
            "half_width must be between 0 and 0.5, got nan",
        ),
        (lambda: questions_needed(difference=0.3, accuracy=0.9), "accuracy + difference must be a number from 0 to 1"),
        (lambda: questions_needed(difference=0.1, accuracy=0.5, power=80), "power must be between 0 and 1, got 80"),
        (lambda: questions_needed(pilot=[A, A]), "difference must not be 0"),
    ],
)
def test_faults_are_one_line(call, why):
    with pytest.raises(CoraError) as e:
        call()
    assert why in str(e.value) and "\n" not in str(e.value)
