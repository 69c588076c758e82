"""Figures of the order of choices: what is drawn is what was counted."""

import subprocess
import sys

import pytest

from cora_nb.core import CoraError
from cora_nb.metrics.order import letter_table, pattern_table, published_swaps, wrong_places
from cora_nb.report.order_plots import plot_places


def test_places():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2)
    swaps, name = published_swaps(), ("GPT-3.5-turbo", "CARE-MI")
    places, patterns = wrong_places(swaps[name]), pattern_table(swaps)
    ours = patterns[(patterns["respondent"] == name[0]) & (patterns["benchmark"] == name[1])]
    for ax, result in zip(axes, (places, ours)):
        assert plot_places(result, ax) is ax
        assert [bar.get_height() for bar in ax.patches] == pytest.approx(places["value"].tolist())
    without = wrong_places(letter_table("DD", "DA"))  # no wrong prediction in the first order: no bars
    assert plot_places(without).get_ylim() == (0, 1)
    plt.close("all")


@pytest.mark.parametrize(
    "table, says",
    [
        ([1, 2], "draws a result of wrong_places"),
        (letter_table("DD", "DA"), "draws a result of wrong_places"),
        (wrong_places(letter_table("DD", "DA")).query("method == 'case_1'"), "draws a result of wrong_places"),
        (pattern_table(published_swaps()), "draws one run, got 12: choose rows by respondent and benchmark"),
    ],
)
def test_other_tables_are_refused(table, says):
    with pytest.raises(CoraError, match=says):
        plot_places(table)


def test_importing_is_light():
    code = "import sys, cora_nb.report.order_plots; print([m for m in ('scipy', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
