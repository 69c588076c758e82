"Exercises: what passes, what does not, and that a wrong answer that passes is refused when the exercise is made."

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cora_nb.core import CoraError
from cora_nb.teaching import Exercise, explore, has_reader, same_answer


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        (0.667, 2 / 3),
        (np.float64(0.667), 2 / 3),
        (1, 1.0),
        (float("nan"), np.nan),
        ("  skewed", "Skewed"),
        (True, np.bool_(True)),
        (np.array([1, 2]), [1, 2]),
        (pd.Series([0.5, 1.0]), (0.5, 1)),
        ({"a": 1.0}, {"a": 1}),
        ({"nota", "shuffled"}, {"shuffled", "nota"}),
        ([], []),
    ],
)
def test_same(answer, right):
    assert same_answer(answer, right)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        (0.66, 2 / 3),
        (True, 1),
        (1, True),
        ("0.5", 0.5),
        ("A", "B"),
        ([1], [1, 2]),
        ({"a": 1}, {"b": 1}),
        (float("nan"), 0),
        (None, 0),
        ("AB", ["A", "B"]),
        (0.5, [0.5]),
        (np.array([0.5]), 0.5),
    ],
)
def test_not_same(answer, right):
    assert not same_answer(answer, right)


@given(st.floats(-1e3, 1e3), st.floats(0, 1), st.floats(-2, 2))
def test_tolerance_is_absolute(right, tolerance, off):
    expected = abs((right + off) - right) <= tolerance + 1e-12
    assert same_answer(right + off, right, tolerance) is expected


def test_a_wrong_answer_that_passes_is_refused():
    with pytest.raises(CoraError, match=r"exercise 4.2: the wrong answer 0.801 passes; its hint is 'x'"):
        Exercise("4.2", 0.8, wrong=[(0.801, "x")])
    with pytest.raises(CoraError, match="passes"):
        Exercise("4.3", cases=[((2,), 4)], wrong=[(lambda n: n + n, "doubled")])


def test_a_function_is_judged_by_its_cases():
    square = Exercise("1.1", cases=[((2,), 4), ((3,), 9)], wrong=[(lambda n: 2 * n, "that doubles")])
    assert square.grade(lambda n: n * n) == (True, "right")
    assert square.grade(lambda n: n + n) == (False, "that doubles")
    assert square.grade(lambda n: 4)[1] == "not yet: for (3) it returns 4, and 9 is right"
    assert square.grade(lambda: 4)[1].startswith("for (2) it raises TypeError: ")
    assert square.grade(...)[1].startswith("replace the dots")


def test_what_a_check_prints(capsys):
    exercise = Exercise("1.2", "B", wrong=[("A", "A is the share of right replies")])
    for answer in (..., "A", "C", "b "):
        exercise.check(answer)
    printed = capsys.readouterr().out.splitlines()
    assert [line[0] for line in printed] == ["…", "✗", "✗", "✓"]
    assert printed[1] == "✗ Exercise 1.2: A is the share of right replies."


def test_without_a_reader_it_draws_once_with_the_defaults(monkeypatch):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.delenv("COLAB_RELEASE_TAG", raising=False)
    assert not has_reader()
    drawn = []
    explore(lambda power=2: drawn.append(power), power=(1, 9))
    assert drawn == [2]


def controls(monkeypatch, draw, **asked):
    "What `explore` shows a reader: the controls, and where the picture goes."
    pytest.importorskip("ipywidgets", reason="ipywidgets is not installed")
    shown = []
    monkeypatch.setenv("JPY_SESSION_NAME", "course/04.ipynb")
    monkeypatch.setattr("IPython.display.display", shown.append)
    explore(draw, **asked)
    (box,) = shown
    return box.children[:-1]


def test_with_a_reader_there_are_sliders(monkeypatch):
    drawn = []

    def draw(power=2, half_width=0.03, model="skewed"):
        drawn.append((power, half_width, model))

    asked = {"power": (1, 9), "half_width": (0.01, 0.1, 0.005), "model": ["steady", "skewed"]}
    power, width, model = controls(monkeypatch, draw, **asked)
    assert (power.min, power.max, power.step, power.value) == (1, 9, 1, 2)
    assert (width.min, width.max, width.step, width.value) == (0.01, 0.1, 0.005, 0.03)
    assert (width.readout_format, width.description) == (".3f", "half width")
    assert (model.options, model.value) == (("steady", "skewed"), "skewed")
    assert drawn == [(2, 0.03, "skewed")]
    power.value = 3
    model.value = "steady"
    assert drawn[1:] == [(3, 0.03, "skewed"), (3, 0.03, "steady")]


@pytest.mark.parametrize(
    ("range_", "shown"), [((0, 1, 0.05), ".2f"), ((0.5, 5, 0.1), ".1f"), ((0.99, 1, 0.0001), ".4f"), ((0, 1.0), ".1f")]
)
def test_a_slider_shows_the_decimals_of_its_steps(monkeypatch, range_, shown):
    (slider,) = controls(monkeypatch, lambda share=1.0: None, share=range_)
    assert slider.readout_format == shown


def test_a_widget_is_left_as_it_is(monkeypatch):
    widgets = pytest.importorskip("ipywidgets", reason="ipywidgets is not installed")
    mine = widgets.Checkbox(True)
    assert controls(monkeypatch, lambda log=False: None, log=mine) == (mine,)
