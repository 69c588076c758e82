"The probe on data whose truth is known, and where the points of a picture lie."

import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from cora_nb.benchmarks.arithmetic import math_benchmark  # noqa: E402
from cora_nb.core import CoraError  # noqa: E402
from cora_nb.metrics.embeddings import (  # noqa: E402
    _between,
    _folds,
    _least_squares,
    _logistic,
    format_prompts,
    head_separability,
    _pair_up,
    project,
    random_halves,
    separability,
)
from cora_nb.respondents.hidden import States, hidden_states  # noqa: E402
from cora_nb.results import lookup, values_of  # noqa: E402


def test_last_words_and_layer_0():
    "With one last word there is nothing to tell apart in layer 0; with two there is nothing to learn."
    pytest.importorskip("torch", reason="torch is not installed")
    same, own = (
        hidden_states("organism/steady", format_prompts(math_benchmark(n=10), ends=e), progress=False)
        for e in ("same", "own")
    )
    found = separability(same, permutations=19)
    first = values_of(found)[0]
    assert first[["distinct vectors", "accuracy", "least squares", "variance between"]].tolist() == [1, 0.5, 0.5, 0]
    assert lookup(found, "least squares", place=0).p == 1 and set(found["respondent"]) == {"steady"}
    assert found["place"].drop_duplicates().tolist() == [0, 1, 2, 3, 4] and (found["n"] == 10).all()
    first = values_of(separability(own, permutations=19))[0]
    assert first[["distinct vectors", "accuracy", "least squares"]].tolist() == [2, 1, 1]
    assert first["variance between"] == pytest.approx(1)


# the probe


def made(n, width, shift=0.0, seed=0, likeness=0.0):
    "States of n questions with one layer; the two prompts of a question are alike, and `shift` lies between them."
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2, width)) + likeness * rng.normal(size=(n, 1, width))
    x[:, 1, 0] += shift
    return States(
        "made",
        x.reshape(2 * n, 1, width).astype("float32"),
        (x.reshape(2 * n, 1, 2, -1) if width % 2 == 0 else x.reshape(2 * n, 1, 1, -1)).astype("float32"),
        tuple(f"q{i}" for i in range(n) for _ in "ab"),
        ("mcq", "lfgq") * n,
    )


def test_what_differs_is_found_and_what_does_not_is_not():
    plain, clear = (separability(made(50, 10, shift), permutations=199) for shift in (0, 5))
    accuracy = lookup(plain, "accuracy")
    assert accuracy.low < 0.5 < accuracy.high and lookup(plain, "least squares").p > 0.05
    line, chance = lookup(clear, "least squares"), lookup(clear, "least squares by chance")
    assert lookup(clear, "accuracy").value > 0.95 and line.p == 1 / 200 and chance.high < 0.7 < line.value
    assert chance.low < chance.value < chance.high
    heads = head_separability(made(50, 10, 5), progress=False)
    assert heads["method"].tolist() == ["head 0", "head 1"] and heads["place"].tolist() == [1, 1]
    assert heads["value"][0] > 0.95 and heads["value"][1] < 0.7 and set(heads["score"]) == {"accuracy"}
    assert set(heads["respondent"]) == {"made"} and heads["n"].tolist() == [50, 50]


@pytest.mark.slow
@pytest.mark.parametrize("likeness", [0, 3])
def test_p_is_uniform_where_nothing_differs(likeness):
    "Also where the two prompts of a question resemble one another."
    found = (separability(made(12, 4, seed=s, likeness=likeness), permutations=19, folds=3, seed=s) for s in range(120))
    p = np.array([lookup(result, "least squares").p for result in found])
    assert (p <= 0.1).mean() < 0.18 and (p <= 0.5).mean() < 0.6  # ties make it careful, never bold


def test_the_cheap_line_is_ridge_regression():
    from sklearn.linear_model import Ridge

    states = made(30, 8, 1)
    x = states.layer(0)[_pair_up(states.formats, states.question_ids)[0]]
    flips = np.where(np.random.default_rng(1).random((30, 4)) < 0.5, -1.0, 1.0)
    for column, found in enumerate(_least_squares(x, flips, 5, 0)):
        y = np.stack([-flips[:, column], flips[:, column]], 1)
        right = [
            np.sign(Ridge(alpha=8).fit(train, y[~new].ravel()).predict(test)) == y[new].ravel()
            for new, test, train in _folds(x, 5, 0)
        ]
        assert found == np.concatenate(right).mean()


def test_folds_keep_questions_together_and_learn_nothing_from_the_rest():
    x = made(23, 6).layer(0).reshape(23, 2, 6)
    parts = [new for new, _, _ in _folds(x, 5, 0)]
    assert (np.sum(parts, 0) == 1).all() and sorted(map(sum, parts)) == [4, 4, 5, 5, 5]
    for new, test, train in _folds(x, 5, 0):
        assert np.allclose(train.mean(0), 0) and np.allclose(train.std(0), 1) and len(test) == 2 * new.sum()
    doubled = np.repeat(
        np.random.default_rng(0).normal(size=(20, 1, 30)), 2, 1
    )  # both prompts of a question are equal: nobody can do better than half
    assert _logistic(doubled, 5, 0).mean() == 0.5


def test_between_is_a_share_of_variance():
    x = made(40, 7, 2).layer(0).reshape(40, 2, 7).astype(float)
    within = ((x - x.mean(0)) ** 2).sum((0, 1)) / ((x - x.mean((0, 1))) ** 2).sum((0, 1))
    assert _between(x) == pytest.approx((1 - within).mean()) and _between(np.ones((3, 2, 4))) == 0


def test_faults_of_the_probe():
    states = made(6, 4)
    for change, what in (
        ({"folds": 7}, "7 folds need as many questions, got 6"),
        ({"folds": 1}, "folds must be"),
        ({"permutations": 0}, "permutations must be"),
        ({"labels": ["a"] * 12}, "separability needs two formats, got 1: a"),
        ({"labels": list("abc") * 4}, "got 3: a, b, c"),
        ({"labels": ["a"]}, "each prompt needs a label and a group, got 1 and 12"),
        ({"groups": ["q"] * 12}, "question 'q' is needed once in each format, but is there 6 times"),
        ({"level": 2}, "level must be"),
    ):
        with pytest.raises(CoraError, match=what):
            separability(states, **change)
    with pytest.raises(CoraError, match="random_halves needs states of one format, got 2"):
        random_halves(states)
    with pytest.raises(CoraError, match="states of the formats mcq, lfgq, got 'tfq'"):
        states.only("tfq")
    odd = random_halves(made(7, 4).only("mcq"))
    assert len(odd.formats) == 6 and len(set(odd.question_ids)) == 3 and odd.heads.shape == (6, 1, 2, 2)


def test_states_without_heads():
    with pytest.raises(CoraError, match="these states have no heads"):
        head_separability(replace(made(6, 4), heads=None))


def test_an_own_reader_gives_what_a_probe_needs():
    "Any frozen dataclass with these fields will do; no model is known to the measure."

    @dataclass(frozen=True)
    class Own:
        layers: np.ndarray
        heads: None
        question_ids: tuple
        formats: tuple

        def layer(self, number):
            return self.layers[:, number]

    s = made(20, 4, 3)
    own = Own(s.layers, None, s.question_ids, s.formats)
    named = separability(s, permutations=9)
    assert set(named["respondent"]) == {"made"}
    found = separability(own, permutations=9)
    assert found["respondent"].isna().all() and found.drop(columns="respondent").equals(
        named.drop(columns="respondent")
    )
    one = Own(s.layers[::2], None, s.question_ids[::2], s.formats[::2])
    assert random_halves(one).question_ids == random_halves(s.only("mcq")).question_ids


def test_the_seed_decides():
    states = made(20, 6, 1)
    pd.testing.assert_frame_equal(separability(states, permutations=50), separability(states, permutations=50))
    assert not separability(states, permutations=50).equals(separability(states, permutations=50, seed=1))
    np.testing.assert_array_equal(project(states), project(states))
    assert not np.array_equal(project(states, perplexity=3), project(states, perplexity=10))


# pictures


def test_few_points_and_equal_points():
    assert np.isfinite(project(made(3, 4))).all() and project(made(1, 4)).shape == (1, 2, 2)
    same = replace(made(5, 4), layers=np.full((10, 2, 4), 0.1, dtype="float32"))
    assert (
        (project(same) == 0).all()
        and (project(same, "pca") == 0).all()
        and project(made(2, 1), "pca").shape == (1, 4, 2)
    )
    copies = replace(s := made(6, 4), layers=np.concatenate([s.layers[:6]] * 2))
    places = project(copies)[0]
    np.testing.assert_array_equal(places[:6], places[6:])
    for change, what in (
        ({"method": "umap"}, "tsne or pca"),
        ({"perplexity": 0}, "above 0"),
        ({"layers": [1]}, "from 0 to 0"),
    ):
        with pytest.raises(CoraError, match=what):
            project(made(3, 4), **change)


def test_the_module_is_light():
    heavy = ("torch", "transformers", "sklearn", "matplotlib", "datasets")
    code = "import sys, cora_nb.metrics.embeddings, cora_nb.report.run_plots; "
    code += f"print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_what_is_missing_is_said(monkeypatch):
    for name in ("sklearn", "sklearn.linear_model", "sklearn.manifold"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(CoraError, match=r"pip install 'cora_nb\[embeddings\]'"):
        separability(made(6, 4))
    with pytest.raises(CoraError, match=r"pip install 'cora_nb\[embeddings\]'"):
        project(made(6, 4))
