"Runs that several test files of this folder use."

import pytest

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants


@pytest.fixture(scope="module")
def simulated():
    "Runs of one benchmark: two complete ones, the originals and shuffles of one, half of the questions."
    variants = make_variants(load_benchmark("math")[:20])
    a, b = (evaluate(SimulatedRespondent(name=n, seed=i), variants, progress=False) for i, n in enumerate("ab"))
    part = b.rows(b.table["method"].isin(["original", "shuffled"]))
    half = evaluate(SimulatedRespondent(name="half|_<b>"), variants[:200], progress=False)
    return {"a": a, "b": b, "part": part, "half|_<b>": half}
