"""The study of what CoRA depends on: its table, as stored, and its claims on a few questions."""

import json
from pathlib import Path

import pytest

from cora_nb.benchmarks.load import load_benchmark, load_shots
from cora_nb.core import CoraError
from cora_nb.benchmarks.samples import shuffle_choices
from cora_nb.metrics.comparison import compare
from cora_nb.metrics.cora import score
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.results import values_of
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

STUDY = Path(__file__).resolve().parents[2] / "nbs" / "studies" / "cora_sensitivity.ipynb"
COLUMNS = ("CoRA", "low", "high", "p", "holm", "n", "MCQA", "MCQA+", "MV")


@pytest.fixture(scope="module")
def table():
    "(respondent, option) -> numbers, as the notebook prints them."
    cells = json.loads(STUDY.read_text(encoding="utf-8"))["cells"]
    lines = ["".join(o.get("text", [])) for c in cells for o in c.get("outputs", [])]
    (text,) = [t for t in lines if "p, Holm" in t]
    found = {}
    for line in text.splitlines()[1:]:
        words = line.split()
        found[words[0], " ".join(words[1:-9])] = dict(zip(COLUMNS, map(float, words[-9:])))
    return found


def test_what_moves_cora(table):
    moved = {key for key, row in table.items() if row["holm"] < 0.05 and abs(row["CoRA"]) >= 0.01}
    assert moved == {
        ("steady", "16 tokens, tolerant rule"),
        ("skewed", "sampled at temperature 1"),
        ("skewed", "as the published code, no examples"),
        ("medalpaca-7b", "most frequent of 11 replies"),
    }


def test_sampling_lowers_accuracy_and_raises_cora(table):
    row = table["skewed", "sampled at temperature 1"]
    assert row["CoRA"] > 0.1 and row["low"] > 0 and row["MCQA"] < -0.1 and row["MCQA+"] < 0


def test_what_concerns_orders_moves_other_scores(table):
    row = table["skewed", "pairs in the question's own order"]
    assert row["CoRA"] == row["MCQA"] == 0 and row["MCQA+"] < -0.1 and row["MV"] <= -0.2


def test_rules_hardly_move_the_recorded_replies(table):
    rules = [row for (who, option), row in table.items() if who == "medalpaca-7b" and "rule" in option]
    assert len(rules) == 7 and all(0 <= row["CoRA"] <= 0.002 and row["MCQA"] == 0 for row in rules)
    assert table["medalpaca-7b", "lenient rule, cut after 16 words"] == table["medalpaca-7b", "lenient rule"]


def test_examples_pairs_and_seeds_leave_the_original_alone():
    questions, pool = load_benchmark("math")[:5], load_shots("math")
    ways = [
        make_prompts(make_variants(questions), shots=pool, k=2),
        make_prompts(make_variants(questions), shots=pool, k=2, shots_as="like_variant"),
        make_prompts(make_variants(questions, answer_first=False), shots=pool, k=2),
        make_prompts(make_variants(questions, seed=1), shots=pool, k=2),
    ]
    originals = [[p.text for p in prompts if p.variant.method == "original"] for prompts in ways]
    assert all(texts == originals[0] for texts in originals)
    assert len({tuple(p.text for p in prompts) for prompts in ways}) == 4


def test_doors():
    "CoRA moves by MCQA and BMCA(1.0) alone; another order of the originals is not for `compare`."
    questions, organism = load_benchmark("math")[:8], CausalRespondent("organism/skewed")
    runs = [
        evaluate(organism, make_variants(asked), parse="first_token", progress=False, strict=None)
        for asked in (questions, shuffle_choices(questions, 3))
    ]
    one, other = (values_of(score(run)) for run in runs)
    m, b, dm, db = one["MCQA"], one["BMCA(1.0)"], other["MCQA"] - one["MCQA"], other["BMCA(1.0)"] - one["BMCA(1.0)"]
    by_formula = (1 - 2 * m + b) * dm - dm**2 + dm * db + m * db
    assert other["CoRA"] - one["CoRA"] == pytest.approx(by_formula)
    with pytest.raises(CoraError, match="its answer in another place"):
        compare(*runs, resamples=10)
