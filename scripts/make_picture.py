#!/usr/bin/env python3
"""Draw the picture of the README, nbs/images/organisms.png, from the default run of `cora_run`.

Two maps, what became of each of 6,000 prompts for `steady` and for `skewed`: a row is a question, a column one way to
show its choices, and the questions are sorted by the number of right replies, the fewest on top. Beside them four
scores of each model with their intervals, and those of a guesser. All is drawn by the package's own functions. The two
models are asked first, with the replies that are in the store: about a minute where there are none. The same runs give
the same bytes with the same Matplotlib. The numbers that are drawn stand in the file as well (`Description`), where a
test reads them.

    python scripts/make_picture.py                           # run cora_run, then draw
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
SHOWN = ("MCQA", "MCQA+", "BMCA(1.0)", "CoRA")
LABELS = {  # of the columns: the methods that lie side by side, in words
    ("original",): "as written",
    ("shuffled",): "shuffled",
    ("nota", "nota_shuffled"): "with\nNone of\nthe above",
    ("decoupled", "decoupled_shuffled"): "two\nchoices",
    ("decoupled_nota", "decoupled_nota_shuffled"): "two, and\nNone of\nthe above",
}
MEANT = {"right": "right", "wrong": "wrong", "unparsed": "none of the choices"}
SIZE, DPI = (9.0, 4.5), 100  # inches, pixels an inch
FONT = 10.5  # points


def read_runs(folder: Path) -> dict:
    "Both runs of a folder that `cora_run` wrote."
    import cora_nb as cn

    return {name: cn.read_responses(folder / name) for name in NAMES}


def default_run() -> dict:
    "What `cora_run` writes without an argument."
    from cora_nb.cli.run import cora_run

    with tempfile.TemporaryDirectory() as folder:
        cora_run(out=folder)
        return read_runs(Path(folder) / "math")


def draw_run(run: object, ax: object) -> dict:
    "The map of one run, and what its colours mean."
    from cora_nb.report.run_plots import plot_map

    plot_map(run, order="consistency", ax=ax)
    middles = dict(zip(dict.fromkeys(run.table["method"]), ax.get_xticks()))
    ax.set_xticks([sum(middles[m] for m in methods) / len(methods) for methods in LABELS], LABELS.values())
    ax.tick_params(axis="x", labelsize=FONT - 1)
    for text in ax.get_xticklabels():
        upright = text.get_text() in ("as written", "shuffled")  # above a single narrow column
        text.set(rotation=90 if upright else 0, ha="center", va="top", rotation_mode="default")
    ax.set_ylabel(f"{ax.get_ylabel()}, fewest right replies on top")
    legend = ax.get_legend()
    legend.remove()
    return {MEANT[text.get_text()]: patch for text, patch in zip(legend.get_texts(), legend.get_patches())}


def shown_scores(runs: dict) -> object:
    "A result: the scores of the two models with their intervals, and those of a guesser."
    import cora_nb as cn
    from cora_nb.stats.resampling import FewWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewWarning)  # about BMCA(1.0) of `skewed`, which is 0
        scores = {name: cn.score(run, ci=0.95) for name, run in runs.items()}
    scores = cn.stack_results(scores | {"guesser": cn.chance_scores(next(iter(runs.values())))})
    return scores[scores["score"].isin(SHOWN)].sort_values("score", key=lambda s: s.map(SHOWN.index), kind="stable")


def draw(runs: dict) -> tuple:
    "The figure, and the numbers in it as a result."
    import matplotlib.pyplot as plt

    from cora_nb.report.plots import plot_points

    scores, meant = shown_scores(runs), {}
    with plt.rc_context({"font.size": FONT, "axes.titlesize": FONT + 2, "legend.fontsize": FONT}):
        figure, axes = plt.subplots(1, 3, figsize=SIZE, layout="constrained", width_ratios=[1.25, 1.25, 0.75])
        for ax, (name, run) in zip(axes, runs.items()):
            meant |= draw_run(run, ax)
            ax.set_title(name)
        axes[1].set_ylabel("")
        figure.legend(meant.values(), meant, loc="outside lower left", ncols=len(meant), frameon=False)
        ax = plot_points(scores, ax=axes[2])
        ax.set(title="Scores", xlabel="", xlim=(-0.02, 1), xticks=[0, 0.5, 1])
        handles = ax.get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower right", ncols=3, frameon=False, columnspacing=1, handletextpad=0.3)
        ax.get_legend().remove()
    return figure, scores


def save(figure: object, scores: object, picture: Path) -> None:
    "The picture with its numbers, and without what differs between machines."
    said = ", ".join(f"{row.respondent} {row.score} {row.value:.2f}" for row in scores.itertuples())
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=DPI, format="png", metadata={"Software": None, "Description": said})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=Path, help="a folder that cora_run wrote, with the two runs in it")
    parser.add_argument("--out", type=Path, default=PICTURE, help="where the picture goes")
    args = parser.parse_args()
    save(*draw(read_runs(args.runs) if args.runs else default_run()), args.out)
    print(f"{args.out}: {args.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
