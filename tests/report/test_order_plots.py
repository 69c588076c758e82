"""Figures of the order of choices: what is drawn is what was counted."""

import subprocess
import sys

import pytest

from cora_nb.metrics.order import letter_table, published_swaps, wrong_places
from cora_nb.report.order_plots import plot_places


def test_places():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2)
    table = published_swaps()["GPT-3.5-turbo", "CARE-MI"]
    for ax, what in zip(axes, (table, wrong_places(table))):
        assert plot_places(what, ax) is ax
        assert [bar.get_height() for bar in ax.patches] == pytest.approx(wrong_places(table)["share"].tolist())
    assert plot_places(letter_table("DD", "DA")).get_ylim() == (0, 1)  # no wrong prediction in the first order: no bars
    plt.close("all")


def test_importing_is_light():
    code = "import sys, cora_nb.report.order_plots; print([m for m in ('scipy', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
