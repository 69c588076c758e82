"""Reliability diagrams: what is drawn."""

import pytest

from cora_nb.metrics.calibration import binned

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from cora_nb.report.calibration_plots import plot_reliability  # noqa: E402


def test_plot():
    ax = plot_reliability(binned([0.1, 0.9, 1.0], [0, 1, 1], 5))
    assert len(ax.patches) == 2 and [t.get_text() for t in ax.texts] == ["1", "2"]
    plot_reliability(binned([0.5], [1], method="distinct"), counts=False)
    matplotlib.pyplot.close("all")
