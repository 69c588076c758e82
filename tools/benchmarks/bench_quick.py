"""Measures that should cost next to nothing: seconds of each, and the ratio to half of the work (2: in proportion)."""

import numpy as np
import pandas as pd

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.metrics.guessing import chance_scores
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.responses import need
from cora_nb.runs.evaluate import evaluate
from cora_nb.stats.components import component_interval, component_share, variance_components
from cora_nb.variants.families import make_variants
from measure import measure, report


def components(n):
    "Variance components of n questions with 26 variants and 3 trials, with all intervals."
    rng = np.random.default_rng(0)
    q, v, _ = np.indices((n, 26, 3)).reshape(3, -1)
    y, place = (rng.random(q.shape) < 0.5).astype(float), rng.integers(0, 5, (n, 26))[q, v]

    def work():
        found = variance_components(y, q, v, {"method": v // 4, "place": place})
        return [(component_interval(found, name), component_share(found, name)) for name in found.values]

    return work


def chance(n):
    "What a guesser gets on n questions."
    variants = make_variants(math_benchmark(n))
    return lambda: chance_scores(variants, position=(3, 1))


def shared(n):
    "The chance of a run, given what was answered."
    run = evaluate(SimulatedRespondent(knows=0), make_variants(math_benchmark(n)), progress=False)
    return lambda: chance_scores(run, shared=True)


def wrapped(n):
    "A table of n rows of a user's own, as a measure takes it."
    ids = pd.array(np.arange(n).astype(str), dtype=pd.StringDtype("pyarrow"))
    table = pd.DataFrame({"question_id": ids, "correct": np.ones(n, dtype=bool), "trial": np.zeros(n, "int32")})
    return lambda: need(table, "question_id", "correct")


if __name__ == "__main__":
    for make, n in ((components, 300), (chance, 300), (shared, 300), (wrapped, 1_000_000)):
        (half, *_), (whole, *_) = measure(make(n // 2)), measure(make(n))
        report(make.__name__, n=n, seconds=whole, ratio_to_half=whole / half)
