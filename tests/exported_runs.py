"""Runs that the tests of exporters write: complete, in part, with failures, with names that break things."""

import numpy as np

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.responses import make_responses, Responses
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import prepare
from cora_nb.variants.families import make_variants
from helpers import put_in_state

VARIANTS = make_variants(load_benchmark("math")[:10], family="cora")

NASTY = [
    "a|b",
    "<script>alert(1)</script>",
    "two\nlines\n---\nlicense: mit",
    'it\'s "quoted": {yes}',
    "../../up",
    "/etc/passwd",
    "$x$ `code` *b* [l](u) #",
    "模型",
    "x" * 300,
    "\u202egpj",
    "CON",
    "all",
]


def simulated(name="skewed", trials=1, benchmark="math", **settings) -> Responses:
    who = SimulatedRespondent(name=name, **{"knows": 0.6, "position": (4, 1, 1, 1, 1), "seed": 1} | settings)
    return prepare(VARIANTS, Asking(trials=trials), facts={"benchmark": benchmark, "family": "cora"}).ask(who)


def changed(responses: Responses, table=None, /, **facts) -> Responses:
    table = responses.table if table is None else table
    return Responses(table, responses.questions, responses.facts.plain() | facts, responses.name)


def in_part(run: Responses) -> Responses:
    "Two of the variants of each question, as an interrupted import has them."
    return changed(run, run.table[run.table["method"].isin(["original", "shuffled"])].reset_index(drop=True))


def with_failures(run: Responses, n: int, words="timed out") -> Responses:
    "The last n prompts have no reply."
    return changed(run, put_in_state(run.table, np.arange(len(run)) >= len(run) - n, "failed", words))


def scored(name="scored") -> Responses:
    "Log-probabilities, some of them infinite or not a number; nobody wrote anything."
    rng = np.random.default_rng(0)
    replies = []
    for i, v in enumerate(VARIANTS):
        values = rng.normal(size=v.n_choices)
        values[0] = [values[0], -np.inf, np.nan][i % 3]
        replies.append(Reply(scores=tuple(values), confidence=0.25 if i % 2 else None))
    return make_responses(VARIANTS, replies, name=name)
