"The figures of hidden states: what is drawn, and what is refused."

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from cora_nb.core import CoraError  # noqa: E402
from cora_nb.metrics.embeddings import project, separability  # noqa: E402
from cora_nb.report.embedding_plots import plot_layers, plot_separability  # noqa: E402
from cora_nb.respondents.hidden import States  # noqa: E402
from cora_nb.results import lookup  # noqa: E402


def made(n, width):
    "States of n questions in two formats, one layer of noise."
    x = np.random.default_rng(0).normal(size=(2 * n, 1, width)).astype("float32")
    return States("made", x, None, tuple(f"q{i // 2}" for i in range(2 * n)), ("mcq", "lfgq") * n)


def test_figures_have_a_panel_for_each_layer():
    states = replace(s := made(6, 4), layers=np.repeat(s.layers, 8, 1))
    scores = separability(states, permutations=9)
    axes = plot_layers(project(states, "pca"), states.formats, scores)
    assert axes.shape == (2, 6) and [len(a.lines) for a in axes.flat] == [2] * 8 + [0] * 4
    assert axes.flat[7].get_title() == f"layer 7: {lookup(scores, 'accuracy', place=7).value:.2f}"
    assert [t.get_text() for t in axes.flat[0].figure.legends[0].get_texts()] == ["mcq", "lfgq"]
    given = plt.subplots()[1]
    assert (
        plot_layers(project(states, "pca", layers=[3]), states.formats, layers=[3], axes=given).item() is given
        and given.get_title() == "layer 3"
    )
    with pytest.raises(CoraError, match=r"places must have the shape \(8, 11, 2\), got \(8, 12, 2\)"):
        plot_layers(project(states, "pca"), states.formats[1:])
    assert plot_separability(scores, ax=given) is given
    assert {t.get_text() for t in plot_separability({"a": scores, "b": scores}).get_legend().get_texts()} == {
        "chance",
        "a",
        "b",
    }
    empty = {"a": scores, "b": scores[scores["score"] != "accuracy"]}
    for wrong, what in (
        ({}, "one or more results"),
        ({"a": scores[["p"]]}, "one or more results"),
        (empty, "scores must be results of separability; b has no score 'accuracy'"),
    ):
        with pytest.raises(CoraError, match=what):
            plot_separability(wrong)
    plt.close("all")
