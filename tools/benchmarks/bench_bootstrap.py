"""The bootstrap over variants: 10,000 resamples of 100 slots, for four runs of 1,273 x 26 and for one of 14,042 x 20.

Three ways. Ours, from responses to tables of scores. A plain loop over resamples, as one would write it first: take the
columns drawn, average, compare; it gets the very same draws, is timed on fewer resamples, and its scores must be equal.
And the least: the one matrix product that gives the hits, by the same blocks, and nothing counted.

Each workload comes in two kinds of data: as real runs are, with many questions right in all variants or in none, and
the worst case, where no two questions are alike. Each way runs in a process of its own that does nothing else, so that
the peak of its memory (`getrusage`, libraries included) is its own. Run it when nothing else runs.
"""

import argparse
import json
import subprocess
import sys

RESAMPLES, DRAWS = 10_000, 100
METHODS = ["nota", "nota_shuffled", "decoupled", "decoupled_shuffled", "decoupled_nota", "decoupled_nota_shuffled"]
WORKLOADS = {
    "medqa": (4, 1273, 5, 2.0, 500),
    "mmlu": (1, 14_042, 4, 15.0, 1000),
}  # runs, questions, choices, seconds and MB allowed
FEWER = {"medqa": 500, "mmlu": 100}  # resamples that the loop is timed on


def answers(n_questions: int, n_slots: int, alike: bool, seed: int):
    "Right and wrong, questions by slots; not `alike`: no two rows are equal."
    import numpy as np

    rng = np.random.default_rng(seed)
    if not alike:
        rows = rng.choice(2**n_slots, n_questions, replace=False)
        return (rows[:, None] >> np.arange(n_slots)) & 1 == 1
    known, ease = rng.choice([0.02, 0.999], n_questions, p=[0.3, 0.7]), rng.normal(0, 1, n_slots)
    known = np.where(rng.random(n_questions) < 0.3, rng.random(n_questions), known)
    return rng.random((n_questions, n_slots)) < 1 / (1 + np.exp(-(np.log(known / (1 - known))[:, None] + ease)))


def responses(right):
    "As a responses table, the columns that are read."
    import numpy as np
    import pandas as pd

    n, slots = right.shape
    names = [("original", 0), ("shuffled", 0), *((m, i) for m in METHODS for i in range((slots - 2) // 6))]
    return pd.DataFrame(
        {
            "question_id": np.repeat([f"q{i}" for i in range(n)], slots),
            "method": [m for m, _ in names] * n,
            "index": [i for _, i in names] * n,
            "trial": 0,
            "correct": right.ravel(),
        }
    )


def loop(right, mcqa: float, slots, resamples: int):
    "One resample after the other: MCQA+, MV, BMCA(c), CoRA."
    import numpy as np

    found = []
    for times in slots[:resamples]:
        rc = right[:, np.repeat(np.arange(len(times)), times)].mean(axis=1)
        bmca = {c: (rc >= c).mean() for c in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)}
        found.append((rc.mean(), (rc > 0.5).mean(), *bmca.values(), mcqa * (1 - (mcqa - bmca[1.0]))))
    return np.array(found)


def product(right, slots, room: int = 1 << 21) -> None:
    "The hits of all resamples, by blocks, and nothing done with them."
    import numpy as np

    rows, step = np.unique(right, axis=0).T.astype(np.float32), max(1, room // len(right))
    for start in range(0, len(slots), step):
        slots[start : start + step].astype(np.float32) @ rows


def work(way: str, workload: str, alike: bool) -> dict:
    "In a process of its own: seconds, peak MB, and what the libraries and the data took before."
    import resource
    import time

    import numpy as np
    from cora_nb.metrics.ablations import _draw_slots, right_matrix, variant_bootstrap

    runs, questions, choices, *_ = WORKLOADS[workload]
    data = [answers(questions, 2 + 6 * (choices - 1), alike, seed) for seed in range(runs)]
    tables = [responses(right) for right in data]
    variant_bootstrap(tables[0].iloc[:260], resamples=10, by_size=True)  # what is loaded on first use
    matrices, originals = [right_matrix(t) for t in tables], [right[:, 0].mean() for right in data]
    columns, matrices = matrices[0], [m.to_numpy(bool) for m in matrices]  # the slots in their own order
    seed = np.random.default_rng(
        np.random.SeedSequence(0).spawn(2)[0]
    )  # the draws that `variant_bootstrap` makes of seed 0
    slots, resamples = _draw_slots(columns, DRAWS, RESAMPLES, seed), RESAMPLES if way != "loop" else FEWER[workload]

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)

    before, start = peak(), time.perf_counter()
    if way == "ours":
        found = [variant_bootstrap(t, DRAWS, RESAMPLES) for t in tables]
    elif way == "loop":
        found = [loop(right, mcqa, slots, resamples) for right, mcqa in zip(matrices, originals)]
    else:
        found = [product(right, slots) for right in data]
    out = {
        "seconds": (time.perf_counter() - start) * RESAMPLES / resamples,
        "peak_MB": peak(),
        "MB_before": before,
        "resamples": resamples,
    }
    if way == "loop":
        ours = variant_bootstrap(tables[0], DRAWS, RESAMPLES)[:resamples].drop(columns=["MCQA", "CI"]).to_numpy()
        out["largest_difference"] = float(abs(found[0] - ours).max())
    out["kinds"] = sum(len(np.unique(right, axis=0)) for right in data)
    return out


def measured(way: str, workload: str, alike: bool, rounds: int) -> dict:
    "The best of several processes."
    runs = [
        json.loads(
            subprocess.run(
                [sys.executable, __file__, "--child", way, workload, str(int(alike))],
                check=True,
                capture_output=True,
                text=True,
            ).stdout.splitlines()[-1]
        )
        for _ in range(rounds)
    ]
    return {**min(runs, key=lambda r: r["seconds"]), "peak_MB": max(r["peak_MB"] for r in runs)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="each way is measured so often, in turn; the best time counts, and the largest memory",
    )
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        way, workload, alike = args.child
        print(json.dumps(work(way, workload, alike == "1")))
        raise SystemExit
    for workload, (runs, questions, choices, seconds, megabytes) in WORKLOADS.items():
        for alike in (True, False):
            ours, slow, least = (measured(way, workload, alike, args.rounds) for way in ("ours", "loop", "product"))
            resampled = f"{RESAMPLES:,} resamples of {DRAWS}; {ours['kinds']:,} different rows of {runs * questions:,}"
            print(f"{runs} x {questions:,} questions of {2 + 6 * (choices - 1)} variants, {resampled}", flush=True)
            memory = f"peak {ours['peak_MB']:.0f} MB (asked: {megabytes}), of which {ours['MB_before']:.0f} before"
            print(f"  ours          {ours['seconds']:8.2f} s (asked: {seconds:g}), {memory}: libraries and data")
            scaled = f"SCALED from {slow['resamples']} resamples"
            difference = f"largest difference from ours {slow['largest_difference']:.1e}"
            print(f"  plain loop    {slow['seconds']:8.2f} s, {scaled}; {difference}")
            print(f"  product alone {least['seconds']:8.2f} s, with the search for equal rows")
            ratios = slow["seconds"] / ours["seconds"], ours["seconds"] / least["seconds"]
            print("  ratios        loop over ours {:.0f}, ours over product {:.1f}".format(*ratios), flush=True)
            assert slow["largest_difference"] < 1e-12
            assert ours["seconds"] < seconds and ours["peak_MB"] < megabytes, "slower or larger than asked"
