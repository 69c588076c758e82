"""Figures of repetitions: what is drawn is what was counted."""

import matplotlib
import pytest

from cora_nb.core import CoraError
from cora_nb.metrics.consistency import label_sequences
from cora_nb.report.consistency_plots import plot_consistency

matplotlib.use("Agg")


def test_a_circle_for_each_pair_of_values():
    table = label_sequences(["AAAAA", "AAAAA", "BBBBB", "AAAAB", "A"], "A")  # the last has no K
    ax = plot_consistency(table)
    (circles,) = ax.collections
    assert sorted(map(tuple, circles.get_offsets().round(6).tolist())) == [(0.8, 0.8), (1.0, 0.0), (1.0, 1.0)]
    assert [text.get_text() for text in ax.texts] == ["2"]
    assert plot_consistency(table, ax) is ax


def test_nothing_to_draw():
    with pytest.raises(CoraError, match="no K is known"):
        plot_consistency(label_sequences(["A"], "A"))
