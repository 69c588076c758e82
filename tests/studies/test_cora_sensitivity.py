"""The study of what CoRA depends on: its claims, computed anew."""

from functools import lru_cache

import pytest

from cora_nb.benchmarks.load import load_benchmark, load_shots
from cora_nb.core import CoraError
from cora_nb.benchmarks.samples import shuffle_choices
from cora_nb.interop.cat import read_cat
from cora_nb.metrics.account import account
from cora_nb.metrics.comparison import compare, compare_counts
from cora_nb.metrics.scoring import score
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.protocol import Reply
from cora_nb.responses.responses import make_responses
from cora_nb.results import values_of
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

QUESTIONS = load_benchmark("math")[:100]
SCORES = ["CoRA", "MCQA", "MCQA+", "MV"]
ORGANISMS = {  # option -> how the organism is asked
    "base": {},
    "sampled": {"temperature": 1.0},
    "16 tokens, lenient": {"max_new_tokens": 16, "rule": "careful"},
    "own order": {"variants": {"answer_first": False}},
    "as the published code": {
        "template": "cat",
        "rule": "first_alphanumeric",
        "max_new_tokens": 3,
        "temperature": 1.0,
        "chat": False,
    },
}


@lru_cache(maxsize=None)
def known(name, option):
    "The account of an organism that is asked in one of the ways."
    how = {"max_new_tokens": 1, **ORGANISMS[option]}
    made = make_variants(QUESTIONS, **how.pop("variants", {}))
    asking = Asking(how.pop("template", "cora"), parse=how.pop("rule", "first_token"))
    return account(evaluate(CausalRespondent(f"organism/{name}", **how), made, asking, progress=False, strict=None))


def moved(name, option):
    "Differences of scores from the base."
    return compare_counts(known(name, option), known(name, "base"), resamples=2000, scores=SCORES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "option", "moves"),
    [
        ("steady", "16 tokens, lenient", False),
        ("skewed", "sampled", True),
        ("skewed", "as the published code", True),
        ("steady", "sampled", False),
        ("skewed", "own order", False),
    ],
)
def test_what_moves_cora(name, option, moves):
    found = moved(name, option).loc["CoRA"]
    assert (found["p"] < 0.05 and abs(found["difference"]) >= 0.01) == moves, found


@pytest.mark.slow
def test_sampling_lowers_accuracy_and_raises_cora():
    found = moved("skewed", "sampled")
    difference = found["difference"]
    assert difference["CoRA"] > 0.1 and found.loc["CoRA", "low"] > 0
    assert difference["MCQA"] < -0.1 and difference["MCQA+"] < 0


@pytest.mark.slow
def test_what_concerns_orders_moves_other_scores():
    difference = moved("skewed", "own order")["difference"]
    assert difference["CoRA"] == difference["MCQA"] == 0 and difference["MCQA+"] < -0.1 and difference["MV"] <= -0.2


@pytest.mark.slow
def test_rules_hardly_move_the_recorded_replies(recorded_at):
    records = [r for r in read_cat(recorded_at("cat/medqa/medalpaca-7b")) if r.trial == 0]

    def scores(rule, words=None):
        texts = [r.reply.text if words is None else " ".join(r.reply.text.split()[:words]) for r in records]
        replies = [Reply(text) for text in texts]
        return values_of(score(make_responses([r.variant for r in records], replies, parse=rule)))

    base = scores("first_token")
    rules = ["first_alphanumeric", "first_character", "careful"]
    found = {rule: scores(rule) for rule in rules} | {"cut": scores("careful", 16)}
    for rule, values in found.items():
        assert 0 <= values["CoRA"] - base["CoRA"] <= 0.002 and values["MCQA"] == base["MCQA"], rule


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


@pytest.mark.slow
def test_doors():
    "CoRA moves by MCQA and BMCA(1.0) alone; another order of the originals is not for `compare`."
    questions, organism = load_benchmark("math")[:8], CausalRespondent("organism/skewed")
    runs = [
        evaluate(organism, make_variants(asked), Asking(parse="first_token"), progress=False, strict=None)
        for asked in (questions, shuffle_choices(questions, 3))
    ]
    one, other = (values_of(score(run)) for run in runs)
    m, b, dm, db = one["MCQA"], one["BMCA(1.0)"], other["MCQA"] - one["MCQA"], other["BMCA(1.0)"] - one["BMCA(1.0)"]
    by_formula = (1 - 2 * m + b) * dm - dm**2 + dm * db + m * db
    assert other["CoRA"] - one["CoRA"] == pytest.approx(by_formula)
    with pytest.raises(CoraError, match="its answer in another place"):
        compare(*runs, resamples=10)
