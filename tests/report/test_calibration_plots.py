"""Reliability diagrams: what is drawn."""

import pytest

from cora_nb.core import CoraError
from cora_nb.metrics.calibration import binned, calibration_errors, reliability

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from cora_nb.report.calibration_plots import plot_reliability  # noqa: E402


def test_plot():
    ax = plot_reliability(reliability(binned([0.1, 0.9, 1.0], [0, 1, 1], 5)))
    assert len(ax.patches) == 2 and [t.get_text() for t in ax.texts] == ["1", "2"]
    assert [bar.get_x() for bar in ax.patches] == [0, 0.8]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.2, 0.2])
    assert [bar.get_height() for bar in ax.patches] == pytest.approx([1 / 3, 2 / 3])
    plot_reliability(reliability(binned([0.5], [1], method="distinct")), counts=False)
    matplotlib.pyplot.close("all")


def test_other_results_are_refused():
    table = binned([0.1, 0.9, 1.0], [0, 1, 1], 5)
    with pytest.raises(CoraError, match="is drawn from the result of reliability; there is no confidence of bins"):
        plot_reliability(calibration_errors(table))
    with pytest.raises(CoraError, match="there is no accuracy of bins"):
        plot_reliability(reliability(table).query("score != 'accuracy'"))
