#!/usr/bin/env python3
"""Draw the picture of the README, nbs/images/organisms.png, from the default run of `cora run`.

Two maps side by side, what became of each of 6,000 prompts for `steady` and for `skewed`, sorted by consistency, and
their scores beside them; all drawn by the package's own functions. The two models are asked first, with the replies
that are in the store: about a minute where there are none. The same runs give the same bytes with the same Matplotlib.
The numbers that are drawn stand in the file as well (`Description`), where a test reads them.

    python scripts/make_picture.py                           # run cora run, then draw
    python scripts/make_picture.py --runs responses/math     # draw a run that is there
"""

import argparse
import os
import tempfile
import warnings
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "agg")

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "nbs" / "images" / "organisms.png"
NAMES = ("steady", "skewed")
SHOWN = ("MCQA", "MCQA+", "MV", "CI", "CoRA")
SIZE, DPI = (9.0, 4.5), 100  # inches, pixels an inch
FONT = 10.5  # points


def read_runs(folder: Path) -> dict:
    "Both runs of a folder that `cora run` wrote."
    import cora_nb as cn

    return {name: cn.read_responses(folder / name) for name in NAMES}


def default_run() -> dict:
    "What `cora run` writes without an argument."
    from cora_nb.cli.run import cora_run

    with tempfile.TemporaryDirectory() as folder:
        cora_run(out=folder)
        return read_runs(Path(folder) / "math")


def draw_run(run: object, ax: object) -> dict:
    "The map of one run, and what its colours mean."
    from cora_nb.report.run_plots import plot_map

    plot_map(run, order="consistency", ax=ax)
    names = [text.get_text().replace(" ", "\n") for text in ax.get_xticklabels()]
    places = ax.get_xticks()
    places[0] -= 0.25  # the first two columns are narrow
    ax.set_xticks(places, names, rotation=90, ha="center", va="top", rotation_mode="default")
    legend = ax.get_legend()
    legend.remove()
    return {text.get_text(): patch for text, patch in zip(legend.get_texts(), legend.get_patches())}


def draw(runs: dict) -> tuple:
    "The figure, and the numbers in it as a result."
    import matplotlib.pyplot as plt

    import cora_nb as cn
    from cora_nb.report.plots import plot_scores
    from cora_nb.stats.resampling import FewWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewWarning)  # about BMCA(1.0), which is not drawn
        scores = cn.score(runs, ci=0.95)
    scores, meant = scores[scores["score"].isin(SHOWN)], {}
    with plt.rc_context({"font.size": FONT, "axes.titlesize": FONT + 2, "legend.fontsize": FONT + 0.5}):
        figure, axes = plt.subplots(1, 3, figsize=SIZE, layout="constrained", width_ratios=[1.2, 1.2, 0.8])
        for ax, (name, run) in zip(axes, runs.items()):
            meant |= draw_run(run, ax)
            ax.set_title(f"{name}: CoRA {cn.lookup(scores, 'CoRA', respondent=name).value:.2f}")
        axes[1].set_ylabel("")
        figure.legend(meant.values(), meant, loc="outside lower left", ncols=len(meant), frameon=False)
        ax = plot_scores(scores, ax=axes[2])
        ax.set(title="Scores", xlim=(0, 1), xticks=[0, 0.5, 1])
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower right", ncols=2, frameon=False)
        ax.get_legend().remove()
    return figure, scores


def save(figure: object, scores: object, picture: Path) -> None:
    "The picture with its numbers, and without what differs between machines."
    said = ", ".join(f"{row.respondent} {row.score} {row.value:.2f}" for row in scores.itertuples())
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=DPI, format="png", metadata={"Software": None, "Description": said})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=Path, help="a folder that cora run wrote, with the two runs in it")
    parser.add_argument("--out", type=Path, default=PICTURE, help="where the picture goes")
    args = parser.parse_args()
    save(*draw(read_runs(args.runs) if args.runs else default_run()), args.out)
    print(f"{args.out}: {args.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
