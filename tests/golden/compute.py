"""The drivers behind the golden numbers: one small function for each CSV, and a registry of them.

A driver returns a tidy table with the columns `case`, `measure` and `value`. The redesign moves modules and changes
signatures: then the drivers here are edited, and the CSVs stay as they are.
"""

import hashlib
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from cora_nb.stats import paired, resampling, shares
from cora_nb.stats.paired import ratio_interval
from cora_nb.benchmarks.arithmetic import math_benchmark, _math_capacity
from cora_nb.papers.cora_items import paper_layout
from cora_nb.papers.mcqa_plus import mcqa_plus_results, mcqa_plus_steps, prepare_steps
from cora_nb.benchmarks.load import benchmark_hash, load_benchmark, load_shots
from cora_nb.core import THRESHOLDS, Question, permutation, uniforms
from cora_nb.metrics.cora import Counts, car_curve, core_index, response_consistency
from cora_nb.metrics.scoring import score
from cora_nb.metrics.estimates import score_counts
from cora_nb.metrics.counts import count_hits, first_of_each, flat_replies
from cora_nb.metrics import ablations, beliefs, bias, calibration, comparison, confidence, consistency, guessing
from cora_nb.metrics import invariability, items, order, planning
from cora_nb.metrics.cora import weighted_scores
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import RecordedRespondent, SimulatedRespondent
from cora_nb.papers.published import load_recorded, recorded_file
from cora_nb.responses.columns import in_state
from cora_nb.responses.responses import as_responses, make_responses
from cora_nb.results import lookup, make_result, side_by_side, values_of
from cora_nb.runs.asking import Asking, Settled
from cora_nb.runs.evaluate import evaluate, plan, Running
from cora_nb.runs.evaluate import variants_hash
from cora_nb.variants import operators, orders as orders_of
from cora_nb.variants.families import make_variants
from cora_nb.variants.mcqa_plus import long_form

SHARED = Path(os.environ.get("CORA_SHARED", Path(__file__).resolve().parents[3] / "shared"))
HUB = SHARED / "data" / "hub"
MEDALPACA = "cat/medqa/medalpaca-7b"  # the recorded replies, by their name in `papers.recorded`
ORGANISMS = ("steady", "skewed")
RESAMPLES = 500
_PRINTED = ["MCQA", "MCQA+", "MV", "BMCA(1.0)", "CI", "CoRA"]
METHODS = (
    "original",
    "shuffled",
    "nota",
    "nota_shuffled",
    "decoupled",
    "decoupled_shuffled",
    "decoupled_nota",
    "decoupled_nota_shuffled",
)


# ---- tidy rows


def text_of(value):
    "A value as the CSV holds it: whole numbers exact, other numbers with 12 digits, missing ones as nan."
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False)
    if value is None or value is pd.NA or (not isinstance(value, str) and value != value):
        return "nan"
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.12g}"
    return str(value)


def label(key):
    "An index entry as text."
    if isinstance(key, tuple):
        return ":".join(map(label, key))
    return "nan" if text_of(key) == "nan" else str(key)  # what is missing has other names in other versions of pandas


def matrix_hash(table):
    "Shape and content of a table of whole numbers, its rows in the order of their names."
    rows = [",".join([label(key), *map(text_of, row)]) for key, row in zip(table.index, table.to_numpy().tolist())]
    return f"{len(table)} x {table.shape[1]}, {short_hash(chr(10).join(sorted(rows)))}"


def short_hash(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Tidy:
    "Collects rows."

    def __init__(self):
        self.rows = []

    def add(self, case, found):
        "Every number of a scalar, mapping, list, Series or table."
        if isinstance(found, pd.DataFrame):
            for key, row in zip(found.index, found.itertuples(index=False, name=None)):
                self.rows += [(case, f"{label(key)}/{label(c)}", text_of(v)) for c, v in zip(found.columns, row)]
        elif isinstance(found, (pd.Series, dict)):
            self.rows += [(case, label(key), text_of(v)) for key, v in found.items()]
        elif isinstance(found, (list, tuple, np.ndarray)):
            values = np.asarray(found, dtype=object).ravel()
            self.rows += [(case, str(i), text_of(v)) for i, v in enumerate(values)]
        else:
            self.rows.append((case, "", text_of(found)))

    def digest(self, case, table):
        "Long tables in a few numbers for each column: sums, sums weighted by place, missing ones; texts as a hash."
        table = table.to_frame("value") if isinstance(table, pd.Series) else table
        table = table.iloc[np.argsort([label(k) for k in table.index], kind="stable")]
        self.rows.append((case, "rows", str(len(table))))
        for name, column in zip(map(label, table.columns), (table.iloc[:, i] for i in range(table.shape[1]))):
            numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
            missing = column.isna().to_numpy()
            if (np.isnan(numbers) != missing).any():
                self.rows.append((case, f"{name}/hash", short_hash("\n".join(map(text_of, column)))))
                continue
            filled = np.nan_to_num(numbers)
            parts = {"missing": int(missing.sum())} if missing.any() else {}
            parts |= {"sum": filled.sum(), "by place": filled @ np.arange(1, len(filled) + 1)}
            self.rows += [(case, f"{name}/{what}", text_of(v)) for what, v in parts.items()]

    def attempt(self, case, work):
        "What comes out of some work; None where it is refused, which is noted. The words of the refusal may change."
        try:
            return work()
        except ValueError:
            self.rows.append((case, "", "refused"))
            return None

    def table(self):
        return pd.DataFrame(self.rows, columns=["case", "measure", "value"], dtype=str)


def quietly(driver):
    "A driver whose warnings (questions left out and the like) are not shown."

    def run(*args, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return driver(*args, **options)

    return run


# ---- questions


@lru_cache
def four(n=60):
    "Questions with four choices."
    return math_benchmark(n, seed=0)


@lru_cache
def mixed(n=14):
    "Questions with three, four and five choices."
    return [q for k in (3, 4, 5) for q in math_benchmark(n, seed=10 + k, n_choices=k)]


WORDED = [
    Question(
        "capital", "What is the capital of Australia?", ("Sydney", "Canberra", "Melbourne", "Perth"), 1, "geography"
    ),
    Question("except", "Which of these is NOT a mammal?", ("A whale", "A bat", "A shark"), 2, "biology"),
    Question("none", "Which planet has no moon?", ("Mars", "Jupiter", "Saturn", "None of the above"), 3, "astronomy"),
    Question("none wrong", "Which is a prime number?", ("4", "7", "9", "None of the above."), 1, "arithmetic"),
    Question(
        "all", "Which colours does a flag of Italy have?", ("Green", "White", "Red", "All of the above", "Blue"), 3
    ),
    Question("two", "Is the Earth flat?", ("Yes", "No"), 1),
    Question("accents", "Où est né Molière ?", ("À Paris", "Lyon", "Zürich – «Altstadt»", "東京"), 0, "lettres"),
    Question("repeated", "Which one is right?", ("same", "same", "other", "right"), 3),
    Question("many", "Which letter comes last?", tuple("abcdefg"), 6),
]


# ---- responses


@dataclass(frozen=True)
class Simulation:
    "A run whose every reply is fixed by seeds."

    questions: str
    family: str = "cora"
    options: tuple = ()
    respondent: tuple = ()
    trials: int = 1
    seed: int = 0


def simulation(questions, family="cora", trials=1, options=(), **respondent):
    return Simulation(questions, family, tuple(dict(options).items()), tuple(respondent.items()), trials)


ANN = {"knows": 0.6, "slips": 0.1, "position": (4, 2, 1), "nota": 0.5, "seed": 1}
BOB = {"knows": 0.7, "slips": 0.3, "position": (1, 1, 1, 3), "nota": 2.0, "seed": 2}
SURE = {**ANN, "with_scores": True}
SIMULATIONS = {
    "cora ann": simulation("four", **ANN),
    "cora bob": simulation("four", **BOB),
    "cora guesser": simulation("four", knows=0.0, seed=3),
    "cora knows all": simulation("four", knows=1.0),
    "cora mixed ann": simulation("mixed", **ANN),
    "cora mixed bob": simulation("mixed", **BOB),
    "cora trials": simulation("few", trials=4, **BOB),
    "cora in order": simulation("mixed", options={"answer_first": False, "nota": "No answer fits"}, **BOB),
    "mcqa_plus four": simulation("four", "mcqa_plus", **SURE),
    "mcqa_plus mixed": simulation("mixed", "mcqa_plus", **BOB),
    "mcqa_plus sampled": simulation("mixed", "mcqa_plus", options={"sample": 5}, **BOB),
    "permutations four": simulation("few", "permutations", **SURE),
    "permutations mixed": simulation("mixed", "permutations", options={"limit": 8}, **BOB, with_scores=True),
    "permutations trials": simulation("few", "permutations", trials=3, options={"limit": 4}, **BOB),
    "cyclic four": simulation("four", "cyclic", **ANN),
    "cyclic mixed": simulation("mixed", "cyclic", **SURE),
    "cyclic trials": simulation("mixed", "cyclic", trials=5, **BOB),
    "reorderings four": simulation("four", "reorderings", **ANN),
    "reorderings nota": simulation("four", "reorderings", options={"nota": True}, **ANN),
    "reorderings six": simulation("mixed", "reorderings", options={"n_choices": 6, "orders": 3}, **BOB),
    "order_swap four": simulation("four", "order_swap", **ANN),
    "order_swap mixed": simulation("mixed", "order_swap", **BOB),
    "order_swap bob": simulation("four", "order_swap", **BOB),
    "formats four": simulation("four", "formats", **SURE),
    "formats mixed": simulation(
        "mixed", "formats", options={"claims": "all", "sizes": (2, 3)}, **BOB, with_scores=True
    ),
    "formats trials": simulation("few", "formats", trials=5, **SURE),
}


def questions_called(name):
    return {"four": four, "mixed": mixed, "few": partial(four, 12)}[name]()


@lru_cache
@quietly
def simulated(name):
    "The responses of one of `SIMULATIONS`."
    s = SIMULATIONS[name]
    variants = make_variants(questions_called(s.questions), s.family, s.seed, **dict(s.options))
    return evaluate(
        SimulatedRespondent(**dict(s.respondent)),
        variants,
        Asking(trials=s.trials, parse="first_token"),
        progress=False,
    )


@lru_cache
def asked_again():
    "Questions that ann got wrong, in the family `misleading`: the variants, and her replies to them."
    wrong = invariability.misleading_choices(simulated("mcqa_plus four"))
    variants = make_variants([q for q in four() if q.id in wrong.index], "misleading", misleading=wrong)
    return variants, evaluate(SimulatedRespondent(**ANN), variants, Asking(parse="first_token"), progress=False)


@lru_cache
def misled():
    "The same run, with several choices named in every third reply."
    variants, found = asked_again()
    replies = [r if i % 3 else f"{r}, A and C" for i, r in enumerate(found.table["reply"])]
    return make_responses(variants, replies, name=found.name)


@lru_cache
def of_family(family):
    "The simulated runs of a family by name."
    return {name: simulated(name) for name, s in SIMULATIONS.items() if s.family == family}


@lru_cache
def organism(name):
    "A model organism, loaded once."
    from cora_nb.respondents.causal import CausalRespondent
    import torch

    torch.set_num_threads(1)  # these models are so small that a second thread only costs time
    return CausalRespondent(f"organism/{name}")


def ask_organism(name):
    "All questions of the bundled benchmark, family cora."
    return evaluate(organism(name), make_variants(load_benchmark("math")), Asking(parse="first_token"), progress=False)


ORGANISM_RUN = []  # the folder of a `cora run` without arguments, where a test has it already


@lru_cache
def organism_runs():
    "Both organisms on all questions, at the same time."
    if ORGANISM_RUN:
        from cora_nb.responses.files import read_responses

        return {name: read_responses(ORGANISM_RUN[0] / "responses" / "math" / name) for name in ORGANISMS}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as beside:
        other = beside.submit(ask_organism, ORGANISMS[1])
        return {ORGANISMS[0]: ask_organism(ORGANISMS[0]), ORGANISMS[1]: other.result()}


def organism_run(name):
    return organism_runs()[name]


SMALL = {
    "mcqa_plus": {},
    "permutations": {"limit": 8},
    "cyclic": {},
    "reorderings": {},
    "order_swap": {},
    "formats": {"claims": "all", "sizes": (2, 3, 4)},
}


@lru_cache
def organism_small(name, family):
    "A few questions in another family."
    return evaluate(
        organism(name), make_variants(four(8), family, **SMALL[family]), Asking(parse="first_token"), progress=False
    )


def organism_family(family):
    return {f"{name} {family}": organism_small(name, family) for name in ORGANISMS}


@lru_cache
def medalpaca():
    "The recorded replies of medalpaca-7b."
    return load_recorded(MEDALPACA)


@lru_cache
def recorded_part(n=200):
    "The first questions of these."
    whole = medalpaca()
    return whole.rows(whole.table["question_id"].isin(whole.questions["question_id"][:n]).to_numpy())


def recorded_runs():
    return {"medalpaca": medalpaca()}


def recorded_part_runs():
    return {"medalpaca": recorded_part()}


def li2024(name):
    return load_recorded(f"li2024/{name}")


# ---- benchmarks, variants, prompts


def content_hash(questions):
    "Everything the questions say."
    return short_hash(json.dumps([[q.id, q.text, q.choices, q.answer, q.subject] for q in questions]))


@quietly
def benchmarks():
    t = Tidy()
    made = {"bundled math": load_benchmark("math"), "math shots": load_shots("math")}
    for n, seed, largest, k in [
        (300, 0, 100, 4),
        (50, 1, 100, 4),
        (40, 3, 20, 2),
        (40, 4, 1000, 5),
        (20, 5, 10**6, 26),
    ]:
        made[f"math n={n} seed={seed} largest={largest} choices={k}"] = math_benchmark(n, seed, largest, k)
    for case, questions in made.items():
        t.add(
            case,
            {
                "questions": len(questions),
                "hash": content_hash(questions),
                "answers": "".join(str(q.answer) for q in questions[:40]) if len(questions[0].choices) < 10 else "",
            },
        )
    t.add("first questions", {q.id: [q.text, *q.choices, q.answer] for q in four(12)})
    t.add("capacity", {n: _math_capacity(n) for n in (4, 5, 10, 50, 100, 1000)})
    return t.table()


@quietly
def benchmarks_of_the_hub():
    t = Tidy()
    for name in ("medqa", "mmlu", "arc", "truthfulqa", "csqa"):
        questions = load_benchmark(name, path=HUB, on_bad="skip")
        sizes = pd.Series([q.n_choices for q in questions]).value_counts().sort_index()
        t.add(
            name,
            {
                "questions": len(questions),
                "hash": content_hash(questions),
                "answers": sum(q.answer for q in questions),
                **{f"of {k} choices": n for k, n in sizes.items()},
            },
        )
    for name in ("mmlu", "arc"):
        shots = load_shots(name, path=HUB)
        t.add(f"{name} shots", {"questions": len(shots), "hash": content_hash(shots)})
    return t.table()


def shown(v):
    "What a variant shows. A choice that the question never had is only told from those it had."
    return [v.question_id, v.method, v.index, v.choices, v.answer, [max(s, -1) for s in v.sources], v.form, v.asked]


VARIANTS = {
    "cora": {},
    "cora in order": {"answer_first": False},
    "cora worded": {"nota": "No answer fits"},
    "mcqa_plus": {},
    "mcqa_plus sample 1": {"sample": 1},
    "mcqa_plus sample 6": {"sample": 6},
    "permutations": {},
    "permutations limit 7": {"limit": 7},
    "permutations of four": {"most_choices": 4},
    "cyclic": {},
    "order_swap": {},
    "reorderings": {},
    "reorderings nota": {"nota": True},
    "reorderings 2": {"n_choices": 2},
    "reorderings 6": {"n_choices": 6, "orders": 5},
    "reorderings nota 10": {"n_choices": 10, "nota": "Nothing of this"},
    "formats": {},
    "formats all": {"claims": "all"},
    "formats sizes": {"only": "mcq", "sizes": (2, 3)},
}


@quietly
def variants():
    t = Tidy()
    groups = {"math": load_benchmark("math"), "mixed": mixed(), "worded": WORDED}
    for case, options in VARIANTS.items():
        for group, questions in groups.items():
            for seed in (0, 7) if group == "mixed" else (0,):
                made = make_variants(questions, case.split()[0], seed, **options)
                by = {}
                for v in made:
                    by.setdefault(v.method, []).append(shown(v))
                t.add(
                    f"{case}, {group}, seed {seed}",
                    {"variants": len(made), "answers": sum(v.answer for v in made)}
                    | {m: f"{len(s)} {short_hash(json.dumps(s))}" for m, s in by.items()},
                )
    wrong = {q.id: q.distractors[i % len(q.distractors)] for i, q in enumerate(mixed()) if i % 4}
    made = make_variants(mixed(), "misleading", misleading=wrong)
    t.add("misleading, mixed", {"variants": len(made), "hash": short_hash(json.dumps([shown(v) for v in made]))})
    written = {(q.id, i): f"Is it true that {q.text} {c}?" for q in WORDED for i, c in enumerate(q.choices)}
    made = make_variants(WORDED, "mcqa_plus", statements=written)
    t.add(
        "mcqa_plus written, worded", {"variants": len(made), "hash": short_hash(json.dumps([shown(v) for v in made]))}
    )
    return t.table()


@quietly
def randomness():
    t = Tidy()
    t.add("uniforms", uniforms(6, 0, "question", "method", 3))
    t.add("permutation", {n: permutation(n, 1, "key") for n in (1, 2, 5, 12)})
    t.add("shuffle", list(operators.shuffle((3, 0, -1, 2), 0, "q", "nota_shuffled", 1)))
    t.add("fillers", {q.id: operators.fillers(q, 4, 5) for q in WORDED})
    t.add(
        "order of rank",
        {
            f"{rank} of {n}!": list(orders_of._order_of_rank(rank, n))
            for n, rank in [(3, 0), (3, 5), (5, 77), (8, 40_000), (26, math.factorial(26) - 2)]
        },
    )
    t.add(
        "sampled orders",
        {
            f"{limit} of {n}!": [list(o) for o in orders_of._sample_orders(n, limit, 3, "x")]
            for n, limit in [(3, 10), (4, 5), (6, 4), (12, 3)]
        },
    )
    t.add(
        "says none",
        {
            text: operators.says_none(text)
            for text in (
                "None of the above",
                "none of these.",
                "None",
                "None of the above are correct",
                "All of the above",
            )
        },
    )
    return t.table()


@quietly
def prompts():
    t = Tidy()
    pool, asked = (
        load_shots("math"),
        {
            "cora": make_variants(four(4)),
            "mcqa_plus": make_variants(four(4), "mcqa_plus"),
            "formats": make_variants(mixed(2), "formats", claims="all"),
            "misleading": make_variants(four(4), "misleading", misleading={q.id: q.distractors[0] for q in four(4)}),
            "worded": make_variants(WORDED),
        },
    )
    for template in ("bare", "cat", "cora", "li2024"):
        for name, vs in asked.items():
            for k in (0, 3):
                made = make_prompts(vs, template, pool, k)
                t.add(
                    f"{template}, {name}, {k} shots",
                    {
                        "prompts": len(made),
                        "characters": sum(len(p.text) for p in made),
                        "text": short_hash("\x1e".join(p.text for p in made)),
                        "messages": short_hash(json.dumps([p.messages for p in made])),
                    },
                )
    first = make_prompts(asked["cora"][:1], "cora", pool, 1)[0]
    t.add("the first one with a shot", {"text": json.dumps(first.text), "messages": json.dumps(first.messages)})
    t.add("trials", [p.trial for p in make_prompts(asked["cora"][:2], trials=3)])
    return t.table()


@quietly
def continuations():
    from cora_nb.respondents.likelihood import ADAPTATIONS, context_and_continuations

    t, pool = Tidy(), load_shots("math")
    for adaptation in ADAPTATIONS:
        for template in ("bare", "cat", "cora", "li2024"):
            for k in (0, 2):
                vs = [*make_variants(WORDED[:3]), *make_variants(four(3), "mcqa_plus")]
                made = [context_and_continuations(p, adaptation) for p in make_prompts(vs, template, pool, k)]
                t.add(
                    f"{adaptation}, {template}, {k} shots", {"texts": len(made), "hash": short_hash(json.dumps(made))}
                )
    return t.table()


@quietly
def keys():
    "Hashes by which replies and runs are found again: a run kept on disk is worth nothing once they change."
    from cora_nb.runs.batch import _batch_line
    from cora_nb.cli.respondents import make_respondent
    from cora_nb.runs.store import reply_key

    t, vs = Tidy(), make_variants(four(2))
    t.add("benchmark_hash", {"math": benchmark_hash(load_benchmark("math")), "worded": benchmark_hash(WORDED)})
    for family in ("cora", "mcqa_plus", "permutations", "cyclic", "reorderings", "order_swap", "formats"):
        t.add(
            "variants_hash",
            {
                f"{family}, math": variants_hash(make_variants(load_benchmark("math"), family)),
                f"{family}, worded": variants_hash(make_variants(WORDED, family)),
            },
        )
    for spec in ("chat:gpt-4o-mini", "chat:m,temperature=0.5,max_tokens=20,top_logprobs=5,seed=3", "simulated:seed=1"):
        who = make_respondent(spec)
        who = strict(who)
        made = make_prompts(vs[:3], trials=2, parse="first_token")
        t.add(f"reply_key {spec}", [reply_key(who.request(p), p.trial) for p in made])
        t.add(f"describe {spec}", json.dumps(who.describe(), sort_keys=True))
    line = _batch_line(make_respondent("chat:gpt-4o-mini,max_tokens=5"), make_prompts(vs[:1])[0])
    t.add("batch_line", json.dumps(line, sort_keys=True))
    return t.table()


def strict(who):
    "A respondent that asks for one token unless it was told otherwise, as all of them once did."
    if getattr(who, "max_tokens", 1) is None:
        who.max_tokens = 1
    return who


def outcomes(responses):
    "What became of the prompts; none of these runs has a reply that was cut off."
    found = responses.summary()
    assert not found.pop("cut_off").any()
    return found


@quietly
def plans():
    from cora_nb.cli.respondents import make_respondent

    t = Tidy()
    asked = {
        "cora": make_variants(four()),
        "mcqa_plus": make_variants(mixed(), "mcqa_plus"),
        "worded": make_variants(WORDED),
    }
    for spec in ("chat:gpt-4o-mini", "chat:m,max_tokens=30,temperature=1", "simulated"):
        for name, vs in asked.items():
            for extra in ({}, {"trials": 2, "template": "bare"}, {"shots": load_shots("math"), "k": 2}):
                case = f"{spec}, {name}, {', '.join(f'{k}={v}' for k, v in extra.items() if k != 'shots')}"
                t.add(
                    case,
                    plan(strict(make_respondent(spec)), vs, Asking(parse="first_token", **extra), prices=(2.5, 10.0)),
                )
    return t.table()


@quietly
def kept():
    "Whatever is written to a file and read back, and files in plain columns."
    from cora_nb.benchmarks.load import write_benchmark
    from cora_nb.respondents.chat_replies import letter_scores
    from cora_nb.responses.files import read_responses, write_responses
    from cora_nb.variants.files import read_variants, write_variants

    t, made = Tidy(), make_variants(WORDED)
    with tempfile.TemporaryDirectory() as folder:
        file = write_benchmark(WORDED, Path(folder, "worded.jsonl"))
        t.add(
            "benchmark",
            {"bytes": short_hash(file.read_text("utf-8")), "equal": load_benchmark("mine", path=file) == WORDED},
        )
        write_variants(made, Path(folder, "v.parquet"))
        t.add("variants", read_variants(Path(folder, "v.parquet")) == made)
        write_responses(simulated("cora ann"), Path(folder, "run"))
        back = read_responses(Path(folder, "run"))
        t.add("responses", {"equal": back.equals(simulated("cora ann")), **dict(answers(back))})
        for column, cells in {"answer": "BA", "answer_text": ["y", "u"], "answer_index": "10"}.items():
            plain = Path(folder, f"{column}.csv")
            plain.write_text(f"question,A,B,C,{column}\nOne?,x,y,z,{cells[0]}\nTwo?,u,v,,{cells[1]}\n")
            t.add(f"plain {column}", [[q.id, q.text, *q.choices, q.answer] for q in load_benchmark("mine", path=plain)])
    for labels in (("A", "B", "C"), ("Yes", "No")):
        top = {"A": -0.5, " A": -2.0, "B": -1.5, "yes": -0.3, " Yes": -3.0, "no": -1.9, "x": -4.0}
        t.add(f"letters of a server {labels}", letter_scores(top, labels))
    return t.table()


# ---- parsing


CHOICES = ("Sydney", "Canberra", "Melbourne", "Perth")
NUMBERS = ("12", "-12", "1,200", "1/2", "0.5 km")
REPLIES = [
    "A",
    "B",
    "b",
    "(C)",
    "D.",
    "E",
    " B ",
    "\nB",
    "**B**",
    "`C`",
    "$D$",
    "A)",
    "[B]",
    "B: Canberra",
    "B. Canberra",
    "B Canberra",
    "Answer: B",
    "Answer: b",
    "The answer is B.",
    "The answer is (B).",
    "the correct answer is b",
    "Option C",
    "Choice: D",
    "ANSWER - A",
    "Final answer: \\boxed{C}",
    "\\boxed{\\text{B}}",
    "#### D",
    "Canberra",
    "canberra.",
    '"Canberra"',
    "It is Canberra.",
    "Sydney or Canberra",
    "Not Sydney, but Canberra",
    "The capital is Canberra, not Sydney.",
    "A or B",
    "A and B",
    "A, B",
    "A/B",
    "A, C and D",
    "Both A and C",
    "A and A",
    "B is the correct answer",
    "I think it's B",
    "I think that the answer must be C because it is big.",
    "So B.",
    "Therefore, D",
    "Thus the answer is A",
    "It is not A. The answer is B.",
    "A is wrong. B is right.",
    "A. Sydney\nB. Canberra\nC. Melbourne\nD. Perth",
    "None of the above",
    "I don't know",
    "",
    "   ",
    "I am an AI model and cannot answer.",
    "As an AI",
    "A capital is Canberra",
    "Yes",
    "No",
    "yes.",
    "No, it is not",
    "Yes, that's true",
    "True",
    "False",
    "true or false",
    "Not true",
    "It isn't correct.",
    "I'm not sure",
    "yes and no",
    "Wait, no",
    "No. Actually yes",
    "correct",
    "incorrect",
    "That is right",
    "<think>A or B?</think>B",
    "<think>still thinking",
    "B\nQuestion: What next?\nAnswer: C",
    "Ｂ",
    "Ⓑ",
    "𝐁",
    "答案是B",
    "答案：C。",
    "La réponse est B",
    "La respuesta es C.",
    "Die Antwort ist D",
    "Ответ: A",
    "12",
    "-12",
    "−12",
    "1200",
    "1,200",
    "0.5",
    "1/2",
    "\\frac{1}{2}",
    "The answer is 12.",
    "7 + 5 = 12",
    "It is 12 or 13",
    "between 12 and 14",
    "12 km",
    "not 12",
    "12!",
    "The result is 1 200",
    "12 * 1 = 12",
    "500 m, that is 0.5 km",
    "I would go with option (b) since it is the capital",
    "The answer is E",
    "Z",
    "7",
    "a",
    "i",
    "I",
    "A.\n\nExplanation: C is tempting.",
    "Explanation: A looks good.\n\nAnswer: D",
    "the best choice would be C",
    "Correct option: [D]",
    '{"answer": "B"}',
    "answer=B",
    "- B",
    "1. B",
    "(A) or (B)?",
    "A! Surely.",
    "<b>C</b>",
    "Ａ．シドニー",
]
LETTER_RULES = ("first_token", "first_alphanumeric", "first_character", "tolerant")
RULES = {rule: rule for rule in LETTER_RULES} | {
    "yes_no": "yes_no",
    "only_one": "selected",
}  # as it was called: as it is
RULES |= {rule: rule for rule in ("in_words", "exact_number", "same_words")}


@quietly
def parsing():
    from cora_nb.prompts.letters import explain, parse, selected

    t = Tidy()
    for i, reply in enumerate(REPLIES):
        t.add(
            f"{i:03} {reply!r}",
            {
                "cities": " ".join(f"{name}={parse(reply, CHOICES, rule)}" for name, rule in RULES.items()),
                "numbers": " ".join(f"{name}={parse(reply, NUMBERS, rule)}" for name, rule in RULES.items()),
                "selected": list(selected(reply, CHOICES)),
                "pattern": " ".join(map(str, explain(reply, CHOICES))),
            },
        )
    t.add("nothing at all", {name: parse(None, CHOICES, rule) for name, rule in RULES.items()})
    return t.table()


@quietly
def numbers_in_words():
    from cora_nb.prompts.words import _bare_words, _choice_number, _numbers_in, _stated_number

    t = Tidy()
    for reply in (
        *REPLIES[85:110],
        "3 apples and 4 pears, so 7",
        "x = 2^3",
        "-5 - 7 = -12",
        "Q3 2020",
        "1e6",
        "50%",
        "$1,000.50",
    ):
        t.add(
            repr(reply),
            {
                "stated": str(_stated_number(reply)),
                "choice": str(_choice_number(reply)),
                "numbers": [str(n) for n, _, _ in _numbers_in(reply)],
                "words": _bare_words(reply),
            },
        )
    return t.table()


STATEMENTS = [
    "Is it true that Canberra is the capital of Australia?",
    "Is it true that Sydney is the capital of Australia?",
    "Is Canberra the capital?",
    "",
    "Is it true that Canberra is the capital",
    'Statement: "Is it true that Canberra is the capital of Australia?"',
    "Is it true that Canberra is not the capital of Australia?",
    "Is it true that Canberra is the capital?\nIs it true that it is?",
    "Is it true that Canberra, and not Sydney, is the capital of Australia?",
    "Is it true that a shark is not a mammal?",
    "Is it true that a shark is a mammal?",
    "Is it true that a bat is not a mammal?",
    "Is it true that 7 is a prime number?",
    "is it true that 17 is a prime number?",
    "```\nIs it true that Canberra is the capital of Australia?\n```",
]


@quietly
def statements():
    from cora_nb.runs.statements import _check_statement, clean
    from cora_nb.runs.statements import _request_text, statement_variants, statements_summary, statements_table

    t = Tidy()
    for i, said in enumerate(STATEMENTS):
        t.add(
            f"check {i:02}",
            {f"{q.id}:{c}": _check_statement(said, q, c) for q in WORDED[:4] for c in range(q.n_choices)},
        )
        t.add(f"clean {i:02}", clean(said))
    t.add(
        "request",
        short_hash(
            "\x1e".join(_request_text(q, i, r) for q in WORDED for i in range(q.n_choices) for r in ("", "is empty"))
        ),
    )
    t.add("variants", short_hash(json.dumps([shown(v) for v in statement_variants(WORDED)])))
    found = {}
    for k, (q, c) in enumerate((q, c) for q in WORDED for c in range(q.n_choices)):
        said = STATEMENTS[k % len(STATEMENTS)]
        why = _check_statement(said, q, c)
        found[q.id, c] = (None if why else clean(said), 1 + k % 2, said, why, False)
    t.add("summary", statements_summary(statements_table(WORDED, found)))
    return t.table()


def grading_before(result):
    "What `grading_summary` gave before there were results: counts in the place of shares."
    value, n = values_of(result), values_of(result, "n")
    counts = (value * n.astype(float)).fillna(0).round().astype(int)
    measured = value[["agreement", "kappa"]].to_dict()
    counts = {"replies": n["right"], **counts.drop(["agreement", "kappa"]), "labels": counts["labelled"], **measured}
    return {name: number for name, number in counts.items() if name != "labelled"}


@quietly
def grading():
    from cora_nb.runs.grading import grades, grading_summary, _judge_text, regrade
    from cora_nb.runs.grading import _read_label

    t = Tidy()
    asked = [long_form(WORDED[0])] * 12
    asked = [replace(v, index=i) for i, v in enumerate(asked)]
    said = [
        "Canberra",
        "It is Canberra.",
        "Sydney",
        "not Canberra",
        "I do not know",
        "Perth or Sydney",
        "canberra!",
        "The capital is Canberra, not Sydney",
        "Melbourne.",
        "",
        Reply(error="timeout"),
        "B",
    ]
    run = make_responses(asked, said, "in_words")
    labels = (
        run.table[["question_id", "method", "index", "trial"]]
        .iloc[[0, 1, 2, 3, 5, 8]]
        .assign(
            reply=[said[i] for i in (0, 1, 2, 3, 5, 8)],
            right=pd.array([True, True, False, False, False, True], dtype="boolean"),
            choice=[1, 1, 0, -1, 3, 1],
        )
    )
    for grader in (None, "same_words", "in_words", "exact_number", "tolerant"):
        for name, given in (("", None), (" and a person", labels)):
            found = grades(run, asked, grader, given)
            t.add(f"{grader}{name}", grading_before(grading_summary(found)))
            t.add(
                f"{grader}{name}, each",
                {i: f"{g} {p}" for i, (g, p) in enumerate(zip(found["graded"], found["prediction"]))},
            )
            t.add(f"{grader}{name}, summary", outcomes(regrade(run, asked, grader, given)).loc["all"])
    t.add(
        "labels",
        {
            text: _read_label(text, asked[0])
            for text in ("1", "yes", "wrong", "b", "(C)", "canberra", "E", "perhaps", "0.0")
        },
    )
    t.add("judge", short_hash(_judge_text(asked[0], "It is Canberra.")))
    return t.table()


# ---- what was answered


def answers(responses):
    "The letters of each method in a hash, and what became of them."
    t = Tidy()
    for method, part in responses.table.groupby("method", sort=False):
        ordered = part.sort_values(["question_id", "index", "trial"], kind="stable")
        t.add(
            method,
            {
                "predictions": short_hash(",".join(map(str, ordered["prediction"]))),
                "answers": short_hash(",".join(map(str, ordered["answer"]))),
            },
        )
    for method, row in outcomes(responses).iterrows():
        t.add("counts", {method: " ".join(f"{what}={n}" for what, n in row.items())})
    return [(f"{case}/{measure}" if measure else case, value) for case, measure, value in t.rows]


def runs_answers(runs):
    t = Tidy()
    for name, responses in runs().items():
        t.add(name, dict(answers(responses)))
        t.digest(f"{name}, hits", count_hits(responses.pool_trials())[["hits", "trials", "original", "unasked"]])
    return t.table()


def simulated_runs():
    return {**{name: simulated(name) for name in SIMULATIONS}, "misleading": asked_again()[1]}


@quietly
def organism_letters():
    "What the organisms say to every variant, one letter each: all that their scores rest on."
    t = Tidy()
    for name, run in organism_runs().items():
        responses = run.table
        order_of = {m: i for i, m in enumerate(METHODS)}
        ordered = responses.assign(place=responses["method"].map(order_of)).sort_values(
            ["question_id", "place", "index"]
        )
        letters = ordered.assign(letter=["-" if p < 0 else "ABCDE"[p] for p in ordered["prediction"]])
        t.add(name, letters.groupby("question_id")["letter"].agg("".join))
    return t.table()


def organism_small_runs():
    return {name: r for family in SMALL for name, r in organism_family(family).items()}


@quietly
def organism_confidence():
    "Log-probabilities and confidences of some replies."
    t = Tidy()
    for name, run in organism_runs().items():
        responses = run.table
        part = responses[responses["question_id"].isin([q.id for q in four(2)])]
        for row in part.itertuples():
            t.add(f"{name} {row.question_id} {row.method} {row.index}", [*row.scores, row.confidence])
        known = responses["confidence"]
        t.add(f"{name}, all", {"confidence": known.mean(), "first score": np.mean([s[0] for s in responses["scores"]])})
    return t.table()


@quietly
def organism_words():
    "Longer replies, drawn at a temperature, and answers in own words."
    from cora_nb.respondents.causal import CausalRespondent

    t = Tidy()
    asked = make_variants(four(4), "formats", only=("mcq", "lfgq"))
    for name in ORGANISMS:
        drawn = CausalRespondent(f"organism/{name}", max_new_tokens=4, temperature=1.0, seed=3)
        drawn._loaded, drawn._lock = organism(name)._loaded, organism(name)._lock
        found = evaluate(drawn, asked, Asking(trials=3, parse="first_token"), progress=False)
        t.add(name, {f"{r.question_id} {r.method} {r.trial}": json.dumps(r.reply) for r in found.table.itertuples()})
    return t.table()


@quietly
def likelihoods():
    "Scores of each adaptation and normalisation, for some questions as they are and with fewer choices."
    from cora_nb.respondents.likelihood import LikelihoodRespondent, implementations

    t = Tidy()
    few = [v for v in make_variants(four(2)) if v.method == "original" or v.method == "decoupled" and v.index == 0]
    asked = [few, make_variants(four(1), "mcqa_plus")[-2:]]  # a run is of one family
    for name in ORGANISMS:
        found = implementations(f"organism/{name}")
        first = next(iter(found.values()))
        for extra in (
            {"adaptation": "joint-desc", "normalization": "byte"},
            {"adaptation": "separate", "normalization": "pmi"},
            {"adaptation": "joint-label", "seam": "harness"},
        ):
            made = LikelihoodRespondent(f"organism/{name}", **extra)
            made._loaded, made._lock = first._loaded, first._lock
            found[" ".join(extra.values())] = made
        for way, respondent in found.items():
            runs = [evaluate(respondent, vs, Asking("bare", parse="first_token"), progress=False).table for vs in asked]
            for row in pd.concat(runs).itertuples():
                t.add(
                    f"{name} {way} {row.question_id} {row.method} {row.index}",
                    [*row.scores, row.confidence, row.prediction],
                )
    return t.table()


# ---- scores


@quietly
def scores(runs):
    t = Tidy()
    for name, responses in runs().items():
        parts = {0: responses}
        if len(responses.trials) > 1:
            parts |= {1: responses.trial(1), None: responses.pool_trials()}
        for trial, part in parts.items():
            t.add(f"{name}, trial {trial}", values_of(score(part)))
        found = values_of(score(responses, thresholds=(0.0, 0.25, 0.28, 1 / 3, 0.75)))
        t.add(f"{name}, thresholds", found.filter(like="BMCA"))
        for by in ("method", "subject"):
            if responses.table[by].notna().all():
                found = score(responses, by=by, thresholds=(0.5, 1.0))
                found = side_by_side(found.set_index([by, "score"])["value"])
                t.add(f"{name}, by {by}", found[_PRINTED])
                t.digest(f"{name}, by {by}", found)
        counts = count_hits(responses)
        curve = car_curve(Counts(counts["hits"], counts["trials"], counts["original"]), 21)
        t.add(f"{name}, curve", curve)
        t.add(f"{name}, CORE of it", core_index(curve))
    return t.table()


@quietly
def score_arrays():
    "Scores of counts small enough to be checked by hand."
    t = Tidy()
    counts = pd.DataFrame({"hits": [20, 13, 7, 0, 26], "trials": [26, 26, 14, 20, 26], "original": [1.0, 1, 0, 0, 1]})
    t.add("five questions", score_counts(counts))
    t.add("one original unknown", score_counts(counts.assign(original=[1.0, np.nan, 0, 0, 1])))
    t.add("some unasked", score_counts(counts.assign(unasked=[6, 0, 7, 0, 0])))
    weights = np.array([[1, 1, 1, 1, 1], [3, 0, 1, 1, 0], [0, 0, 0, 5, 0]])
    t.add("weighted", pd.DataFrame(weighted_scores(counts, weights=weights)))
    t.add("RC", response_consistency(counts["hits"], counts["trials"]))
    return t.table()


@quietly
def intervals(runs):
    from cora_nb.report.plots import curve_table

    t = Tidy()
    for name, responses in runs().items():
        for how in ({"ci": 0.95}, {"ci": 0.8, "method": "percentile", "seed": 4}):
            case = ", ".join(map(str, how.values()))
            found = score(responses, resamples=RESAMPLES, **how).set_index("score")
            t.add(f"{name}, {case}", found[["low", "high"]])
        curve = curve_table(responses, points=6, resamples=RESAMPLES)
        t.add(f"{name}, curve", curve.set_index("place")[["value", "low", "high"]])
        if responses.table["subject"].notna().all():
            for method in ("wilson", "bca", "percentile"):
                found = score(responses, ci=0.95, clusters="subject", resamples=RESAMPLES, method=method)
                found = found.set_index("score").loc[_PRINTED, ["low", "high"]]
                t.add(f"{name}, clusters, {method}", found)
            found = score(responses, by="subject", ci=0.9, resamples=RESAMPLES, thresholds=(1.0,))
            t.digest(f"{name}, by subject", found.set_index(["subject", "score"])[["value", "low", "high"]])
        found = score(responses, by="method", ci=0.9, resamples=RESAMPLES, thresholds=())
        t.digest(f"{name}, by method", found.set_index(["method", "score"])[["value", "low", "high"]])
    return t.table()


def by_part(result):
    "A row for each score: on all, mean, sd, difference and interval of the resamples."
    values, low, high = (values_of(result, what) for what in ("value", "low", "high"))
    names = [name for name in values.index if ", " not in name]
    mean, sd, difference = (
        values[[f"{name}, {part}" for name in names]].to_numpy()
        for part in ("mean of resamples", "sd of resamples", "difference from all")
    )
    columns = {"full": values[names], "mean": mean, "sd": sd, "sd_x1000": 1000 * sd, "difference": difference}
    bounds = {"low": low, "high": high}
    bounds = {k: v[[f"{name}, mean of resamples" for name in names]].to_numpy() for k, v in bounds.items()}
    return pd.DataFrame(columns | bounds, index=names)


def by_part_and_run(result, **suffixes):
    "Rows (part, score), a column for each run; the standard deviations times 1,000."
    part = result[result["method"] != "all"]
    wide = part.pivot(index="score", columns="respondent", values="value")[result["respondent"].unique()]
    factor = {"sd_x1000": 1000}
    names = ablations.PRINTED_SCORES
    rows = {
        (label, name): factor.get(label, 1) * wide.loc[name + suffix]
        for label, suffix in suffixes.items()
        for name in names
    }
    return pd.DataFrame(rows).T


@quietly
def ablation(runs):
    t, some = Tidy(), runs()
    for name, responses in some.items():
        sizes = responses.first_trial().table.groupby("question_id").size().nunique() > 1
        for methods in ("same_size", "decoupled", ["original", "nota"], lambda r: r["index"] == 0):
            t.add(
                f"{name}, {'first of each' if callable(methods) else methods}",
                values_of(ablations.subset_scores(responses, methods)),
            )
        full = score_counts(count_hits(responses))
        for over in ablations.OVER:
            drawn = ablations.variant_bootstrap(responses, resamples=RESAMPLES // 2, over=over, by_size=sizes, seed=5)
            found = by_part(ablations.bootstrap_summary(drawn, full))
            t.add(f"{name}, over {over}", found[["mean", "sd_x1000", "low", "high"]].loc[_PRINTED])
            t.digest(f"{name}, over {over}", found)
        methods = ["original", "shuffled", "nota"] if sizes else "same_size"
        few = ablations.variant_bootstrap(responses, draws=7, resamples=100, methods=methods, by_size=sizes)
        t.digest(f"{name}, 7 draws", by_part(ablations.bootstrap_summary(few, full, 0.8)))
        t.add(f"{name}, right matrix", matrix_hash(ablations.right_matrix(responses, by_size=True)))
    table = ablations.ablation_table(some)
    t.add("table 5", by_part_and_run(table, subset="", difference=", difference from all"))
    t.add("table 5 in print", paper_layout(table))
    table = ablations.bootstrap_table(some, resamples=RESAMPLES // 2, by_size=True)
    names = {"mean": ", mean of resamples", "sd_x1000": ", sd of resamples", "difference": ", difference from all"}
    t.add("table 6", by_part_and_run(table, **names))
    t.add("table 6 in print", paper_layout(table))
    tests = [lambda rc: rc > 0.5, *(lambda rc, c=c: rc >= c for c in (0.28, 0.5, 1.0))]
    t.add("least hits", {n: [ablations._least_hits(n, passes) for passes in tests] for n in (1, 7, 25, 100)})
    return t.table()


@quietly
def chance(runs):
    t = Tidy()
    for name, responses in runs().items():
        for position in ((1,), (4, 1), (1, 2, 3)):
            t.add(f"{name}, position {position}", values_of(guessing.chance_scores(responses, position=position)))
        by_chance = guessing.chance_scores(responses)
        t.add(f"{name}, corrected", values_of(guessing.corrected(score(responses), by_chance)))
        rows = np.flatnonzero(responses.table["trial"] == responses.trials[0])  # numbered as in the whole table
        t.digest(f"{name}, rates", guessing.guess_rates(responses).set_axis(rows))
    return t.table()


@quietly
def guessing_numbers():
    t, M = Tidy(), np.array([1, 10, 26, 100])
    for p, m, r in [
        (0, 1, 0.2),
        (1, 10, 0.2),
        (5, 10, 0.25),
        (10, 10, 0.25),
        (14, 26, 0.3),
        (26, 26, 0.2),
        (60, 100, 0.5),
    ]:
        t.add(
            f"p={p} M={m} r={r}",
            {
                "pmf": shares.binomial_pmf(p, m, r),
                "tail": shares.binomial_tail(p, m, r),
                "combinations": shares.combinations(p, m),
            },
        )
    t.add("tails of lists", shares.binomial_tail(M // 2, M, 0.25))
    for k in (2, 4, 5):
        t.add(f"MSGR of 10, k={k}", {p: guessing.msgr(p, 10, k) for p in range(11)})
        t.add(f"MSGR of 26 at 0.95, k={k}", {p: guessing.msgr(p, 26, k, 0.95) for p in (0, 1, 13, 20, 26)})
    for A in range(2, 9):
        rates = guessing.divergence_set_rates(A)
        t.add(f"A={A}, rates", rates)
        t.add(f"A={A}, guesser", values_of(guessing.guesser_scores(A)))
        tails = {c: shares.poisson_binomial_tail(rates, c) for c in (0.3, 0.5, 0.6, 0.9, 1.0)}
        t.add(f"A={A}, tails", {**tails, "MV": shares.poisson_binomial_tail(rates, 0.5, strict=True)})
        t.add(f"A={A}, knowledge", {c: guessing.minimum_knowledge(rates, c) for c in (0.5, 0.8, 1.0)})
    t.add("A=5, pmf", shares.poisson_binomial_pmf(guessing.divergence_set_rates(5)))
    for n, m in [(2, 2), (3, 4), (4, 4), (5, 24), (10, 3)]:
        t.add(f"{n} choices in {m} orders", values_of(guessing.guesser_order_scores(n, m)))
    two_kinds = guessing.expected_scores([([0.2, 0.5, 0.9], 0.9, 10), ([0.5, 0.5], 0.5, 3.5)])
    t.add("expected of two kinds", values_of(two_kinds))
    t.add("corrected", guessing.corrected([0.2, 0.25, 0.9, np.nan], 0.25))
    for family in ("cora", "mcqa_plus", "permutations", "cyclic", "order_swap", "reorderings"):
        made = [v for v in make_variants(mixed(), family) if v.form == "mcq"]
        t.add(f"variants of {family}", values_of(guessing.chance_scores(made, thresholds=(0.5, 1.0))))
    return t.table()


# ---- bias, order, orders


LEFT_OUT = {
    "replies counted": "replies",
    bias._OTHER_SIZES: "other_sizes",
    bias._NEW_CHOICES: "new_choices",
    bias.EQUALLY_LONG: "equally_long",
    bias.NO_CHOICE: "no_choice",
}


def share_table(found):
    "Shares by rank, with what is expected and the key."
    placed = found[found["place"].notna()]
    shares = placed[placed["score"] == "share"].set_index("place")
    table = values_of(placed[["place", "score", "value"]]).unstack("score").join(shares[["low", "high"]])
    return table.rename_axis("rank")[["share", "low", "high", "expected", "key"]]


def rank_tests(found):
    "The test of ranks."
    test = lookup(found, "chi-squared")
    names = {"accuracy": "accuracy", "distance": "distance", "df": "degrees of freedom"}
    numbers = {name: lookup(found, score).value for name, score in names.items()}
    return pd.Series(numbers | {"statistic": test.value, "p": test.p})


def rank_counts(found):
    "Questions and replies counted, and replies left out."
    some = found[found["score"].isin(LEFT_OUT)].set_index("score")
    counts = (some["value"] * some["n"]).rename(LEFT_OUT).round().astype(int)
    return pd.Series({"questions": lookup(found, "accuracy").n, **counts})


def ranks_in_words(found):
    counts, test = rank_counts(found), lookup(found, "chi-squared")
    p = "p < 0.0001" if test.p < 0.0001 else f"p = {test.p:.4f}"
    said = f"chi-squared {test.value:.1f} on {test.note.removeprefix('df = ')} df, {p}"
    tested = "no test" if np.isnan(test.p) else said
    left = [f"{n} {why.replace('_', ' ')}" for why, n in counts.iloc[2:].items() if n]
    places = found["place"].nunique()
    whole = f"{counts['replies']} replies to {counts['questions']} questions, {places} choices; {tested}"
    return f"{whole}; left out: {', '.join(left)}" if left else whole


def consistency_of_runs(found):
    "Counts and shares, a row a run."
    rows = {}
    for name, some in found.groupby("respondent", sort=False):
        some = some.set_index("score")
        n = some["n"]
        unread = round(some["value"][bias.NO_CHOICE] * n[bias.NO_CHOICE])
        row = {"questions": n["consistency"], "replies": n["accuracy"], "no_choice": unread}
        for what in ("accuracy", "consistency", "always"):
            row |= dict(zip((what, f"{what}_low", f"{what}_high"), some.loc[what, ["value", "low", "high"]]))
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index")


@quietly
def place_bias(runs, questions):
    t, some = Tidy(), runs()
    asked = questions()
    for name, responses in some.items():
        pooled = responses.pool_trials()
        t.digest(f"{name}, trial 0, consistency", bias.order_consistency(responses))
        if len(responses.trials) > 1:
            t.digest(f"{name}, trial None, consistency", bias.order_consistency(pooled))
        sizes = sorted(responses.table["n_choices"].unique())
        for n in [None, *sizes[:-1]] if len(sizes) > 1 else sizes:
            for what, found in {
                "place": lambda: bias.position_ranks(pooled, n),
                "length": lambda: bias.length_ranks(pooled, asked, len, n, 0.9),
            }.items():
                ranks = t.attempt(f"{name}, {n} choices, {what}", found)
                if ranks is None:
                    continue
                t.add(f"{name}, {n} choices, {what}", share_table(ranks))
                t.add(f"{name}, {n} choices, {what}, test", rank_tests(ranks))
                t.add(f"{name}, {n} choices, {what}, counts", rank_counts(ranks))
                t.add(f"{name}, {n} choices, {what}, in words", ranks_in_words(ranks))
    t.add("table", consistency_of_runs(bias.consistency_table(some)))
    everything = {name: r.pool_trials() for name, r in some.items()}
    t.add("table at 0.8", consistency_of_runs(bias.consistency_table(everything, 0.8)))
    shares = {name: share_table(bias.position_ranks(r)) for name, r in some.items()}
    t.digest("ranks of all", pd.concat(shares, names=["run"]).reset_index())
    return t.table()


@quietly
def bias_numbers():
    t, rng = Tidy(), np.random.default_rng(5)
    t.add("expected shares", bias.expected_shares([0.1, 0.2, 0.3, 0.4], 0.6))
    predicted = rng.multinomial(10, [0.4, 0.3, 0.2, 0.1], size=40)
    key = np.eye(4)[rng.integers(4, size=40)] * 10
    right = np.minimum((predicted * key / 10).sum(axis=1), 10)
    t.add("rank test", rank_tests(bias.rank_test(predicted, key, right)))
    t.add("rank test, one place", rank_tests(bias.rank_test(predicted, np.eye(4)[[0] * 40] * 10, predicted[:, 0])))
    ids, lengths = bias._choice_lengths(WORDED)
    t.add("lengths", pd.DataFrame(lengths, index=ids))
    return t.table()


def of_families(*families):
    return {name: r for family in families for name, r in of_family(family).items()}


def tests_by_name(result):
    "The tests of a swap table, a row for each."
    rows = {}
    for test in order.TESTS:
        row, (df, _, note) = lookup(result, test), lookup(result, test).note.partition("; ")
        numbers = {"statistic": row.value, "df": int(df.removeprefix("df = ")), "p": row.p}
        numbers |= {"v": lookup(result, f"{test} V").value, "n": int(row.n), "note": note}
        rows[re.sub("[ -]", "_", test.lower())] = numbers
    return pd.DataFrame.from_dict(rows, orient="index")


def exact_test(result):
    "The exact p with all that was said of it."
    row = lookup(result)
    (how,) = row.remarks
    return {"statistic": row.value, "p": row.p, "outcomes": how.n, "exact": how.of is not None}


def gap_numbers(result):
    "Accuracy in both orders and their difference, in one row."
    gap = lookup(result, "accuracy gap")
    row = {f"accuracy_{i}": lookup(result, "accuracy", method=f"case_{i}").value for i in (1, 2)}
    return {"n": int(gap.n), **row, "gap": gap.value, "gap_low": gap.low, "gap_high": gap.high, "gap_p": gap.p}


def places_of_runs(result):
    "Wrong predictions by run, order and place, as counts and shares."
    names = [c for c in ("respondent", "benchmark", "method", "place") if result[c].notna().any()]
    table = result[result["score"] != "expected"].set_index(names)
    table["wrong"] = (table["value"] * table["n"]).fillna(0).round().astype(int)
    return table[["wrong", "value", "low", "high"]].rename(columns={"value": "share"})


def odds_by_name(result):
    table = result.set_index(result["score"].str.removesuffix(" odds"))
    return table[["value", "low", "high"]].rename(columns={"value": "odds"})


def order_row(result):
    "All that `order_table` says of one run, in one row."
    tests, unread = tests_by_name(result), lookup(result, "replies without a choice")
    row = gap_numbers(result) | {"no_choice": round(unread.value * unread.n)}
    for test, (name, values) in zip(order.TESTS, tests.iterrows()):
        row |= {f"{name}_{what}": values[what] for what in ("statistic", "df", "p", "v")}
        row[f"{name}_p_adjusted"] = lookup(result, f"{test}, adjusted p").value
    notes = [f"{name.replace('_', ' ')}: {note}" for name, note in tests["note"].items() if note]
    return row | {"note": " | ".join(notes)}


def order_rows(result):
    "A row for each run."
    names = [c for c in ("respondent", "benchmark") if result[c].notna().any()]
    rows = {name if len(names) > 1 else name[0]: order_row(part) for name, part in result.groupby(names, sort=False)}
    return pd.DataFrame(list(rows.values()), index=pd.Index(list(rows)))


def swap_measures(t, name, table):
    "All that is known of one swap table."
    t.add(f"{name}, counts", order.swap_counts(table))
    for no_choice in (False, True):
        t.add(f"{name}, tests, no choice {no_choice}", tests_by_name(order.order_tests(table, no_choice)))
    t.add(f"{name}, exact", exact_test(order.exact_p(table, draws=499)))
    t.add(f"{name}, gap", gap_numbers(order.accuracy_gap(table)))
    t.add(f"{name}, gap at 0.8", gap_numbers(order.accuracy_gap(table, 0.8)))
    t.add(f"{name}, places", places_of_runs(order.wrong_places(table)))
    t.add(f"{name}, odds", odds_by_name(order.place_odds(table)))


@quietly
def order_of_runs(runs):
    t, some = Tidy(), runs()
    for name, responses in some.items():
        for n in sorted(responses.table["n_choices"].unique()):
            table = order.swap_table(responses, n)
            t.add(f"{name}, {n} choices, table", table)
            swap_measures(t, f"{name}, {n} choices", table)
    t.add("all", order_rows(order.order_table(some)))
    t.add("all, bh", order_rows(order.order_table(some, "bh")).filter(like="_p_adjusted"))
    t.add("patterns", places_of_runs(order.pattern_table(some)))
    return t.table()


@quietly
def order_published():
    t, tables = Tidy(), order.published_swaps()
    for (model, benchmark), table in tables.items():
        swap_measures(t, f"{model} {benchmark}", table)
    t.digest("all", order_rows(order.order_table(tables)))
    t.digest("patterns", places_of_runs(order.pattern_table(tables)))
    return t.table()


@quietly
def order_numbers():
    t = Tidy()
    for b, c, n in [(0, 0, 1), (3, 1, 10), (0, 7, 30), (10, 10, 20), (25, 3, 300), (5, 0, 5)]:
        t.add(
            f"paired interval {b} {c} {n}",
            {level: list(map(text_of, paired.paired_interval(b, c, n, level)[:2])) for level in (0.8, 0.95)},
        )
    p = [0.01, 0.04, np.nan, 0.03, 0.005, 1.0]
    for method in ("holm", "bh"):
        t.add(f"adjusted, {method}", paired.adjust_p(p, method))
    counts = np.array([[[30, 20, 10, 0], [25, 25, 10, 0]], [[5, 1, 0, 4], [4, 0, 2, 4]]])
    for name in ("contingency_statistic", "fit_statistic"):
        t.add(name, np.stack(getattr(paired, name)(counts)))
    pairs = np.array([[[10, 2, 3], [1, 20, 0], [4, 4, 5]], [[5, 0, 0], [0, 5, 0], [0, 0, 5]]])
    t.add("paired_statistic", np.stack(paired.stuart_maxwell_statistic(pairs)))
    t.add("letters", order.letter_table(list("ABCDDA") + [None, "x"], list("ABDDCB") + ["A"]))
    return t.table()


@quietly
def recorded_order():
    t, raw, tables = Tidy(), li2024("order_predictions"), {}
    for column in [c for c in raw if "_MC_R" not in c]:
        table = order.letter_table(raw[column], raw[column.replace("_MC", "_MC_R")])
        tables[column] = table
        t.add(f"{column}, tests", tests_by_name(order.order_tests(table)))
        t.add(f"{column}, exact", exact_test(order.exact_p(table, draws=499)))
        t.add(f"{column}, counts", order.swap_counts(table))
    t.add("all", order_rows(order.order_table(tables)))
    t.add("places", places_of_runs(order.pattern_table(tables)))
    return t.table()


def in_columns(result, *columns):
    "The numbers of a result in columns: a row for each score."
    return result.set_index("score")[["n", "value", *columns]].rename(columns={"n": "questions", "value": "share"})


def order_table(responses, **options):
    return in_columns(invariability.order_scores(responses, **options), "low", "high")


def class_table(responses, ties):
    "A row for each number of replies that agree."
    found = invariability.consistency_classes(responses, ties=ties)
    share, accuracy = (found[found["score"] == s].set_index("place") for s in ("share", "accuracy"))
    table = pd.DataFrame({"c": share.index / share.index.max(), "questions": accuracy["n"], "share": share["value"]})
    accuracies = accuracy[["value", "low", "high"]].set_axis(["accuracy", "accuracy_low", "accuracy_high"], axis=1)
    return table.join(share[["low", "high"]]).join(accuracies).rename_axis("n_same")


def sweep_table(responses):
    "A row for each number of choices."
    found = invariability.choices_sweep(responses)
    rows = {}
    for n, part in found.groupby("place"):
        part = part.set_index("score")
        rows[n] = {"questions": part.loc["Acc", "n"], "in_orders": part.loc["S_c", "n"]}
        for name, row in part.iterrows():
            rows[n] |= {name: row["value"], f"{name}_low": row["low"], f"{name}_high": row["high"]}
    return pd.DataFrame.from_dict(rows, orient="index")


def plus_table(responses, **options):
    "MCQA, MCQA+ and x1 with their differences; MCQA takes one reply to each question."
    found = invariability.mcqa_plus_scores(responses, **options).set_index("score")
    table = found.loc[[s for s in found.index if not s.endswith("difference")], ["n", "value", "low", "high"]]
    table = table.rename(columns={"n": "replies", "value": "share"})
    table.insert(0, "questions", table.loc["MCQA", "replies"])
    return table.assign(difference=[found["value"].get(f"{s} difference", math.nan) for s in table.index])


def before_and_after(*runs, **options):
    found = invariability.nota_table(*runs, **options).set_index(["method", "score"])
    rows = {}
    for subset, name in dict.fromkeys((subset, words.split()[0]) for subset, words in found.index):
        before, after, difference = (found.loc[(subset, f"{name} {w}")] for w in ("before", "after", "difference"))
        counts = {"questions": before["n"], "asked": after["n"], "before": before["value"], "after": after["value"]}
        rows[subset, name] = counts | {"low": after["low"], "high": after["high"], "difference": difference["value"]}
    return pd.DataFrame.from_dict(rows, orient="index")


@quietly
def invariance(plus_runs, other_runs):
    t, others = Tidy(), other_runs()
    asked = {**{name: invariability.orders(r) for name, r in plus_runs().items()}, **others}
    for name, responses in asked.items():
        for fillers in ("apart", "together"):
            t.digest(f"{name}, {fillers}", invariability.order_counts(responses, fillers=fillers))
            t.add(f"{name}, {fillers}, scores", order_table(responses, fillers=fillers))
        if (invariability.order_counts(responses)["orders"] < 2).any():
            continue
        t.add(
            f"{name}, alone",
            {
                "acc_h": invariability.acc_h(responses),
                "s_c": invariability.s_c(responses),
                "always right": len(invariability.always_right(responses)),
                "always": short_hash(",".join(sorted(invariability.always_right(responses)))),
            },
        )
        if invariability.order_counts(responses)["orders"].nunique() == 1:
            for ties in ("share", "wrong", "right"):
                found = class_table(responses, ties)
                t.digest(f"{name}, classes, {ties}", found)
            t.add(f"{name}, classes", found.loc[found["questions"] > 0, ["questions", "share", "accuracy"]])
        sweep = t.attempt(f"{name}, sweep", partial(sweep_table, responses))
        if sweep is not None:
            t.add(f"{name}, sweep", sweep)
    for name, responses in plus_runs().items():
        t.add(f"{name}, MCQA+", plus_table(responses))
        t.add(f"{name}, MCQA+, another draw", plus_table(responses, seed=9, level=0.8))
        t.add(f"{name}, sweep of all", sweep_table(responses))
        t.digest(f"{name}, misleading", invariability.misleading_choices(responses))
        t.add(f"{name}, wrong", short_hash(",".join(sorted(invariability.wrong_on_original(responses)))))
    return t.table()


def complete_plus():
    return {name: r for name, r in of_family("mcqa_plus").items() if "sampled" not in name}


@quietly
def nota():
    t = Tidy()
    table = before_and_after(simulated("reorderings four"), simulated("reorderings nota"))
    t.add("reorderings", table)
    table = before_and_after(
        invariability.orders(simulated("mcqa_plus four")), simulated("reorderings nota"), level=0.8
    )
    t.add("mcqa_plus", table)
    return t.table()


def true_false_table(responses, level):
    "A row for right and wrong statements; every question has one right statement."
    found = beliefs.true_false_scores(responses, level=level).set_index("score")
    rows = {}
    for name in ("right", "wrong"):
        row, silent = found.loc[f"T/F: {name}"], found.loc[f"T/F: {name}, without a choice"]
        counts = {"questions": found.loc["T/F: right", "n"], "replies": row["n"]}
        counts["no_choice"] = round(silent["value"] * silent["n"])
        rows[name] = counts | {"share": row["value"], "low": row["low"], "high": row["high"]}
    return pd.DataFrame.from_dict(rows, orient="index")


def ratio_table(responses, normalise):
    found = beliefs.confidence_ratio(responses, normalise).set_index("score")
    lost = found.loc["questions without scores"]
    table = found.drop(index=lost.name)[["n", "value", "low", "high"]].rename(columns={"n": "questions"})
    table.insert(1, "missing", round(lost["value"] * lost["n"]))
    return table.rename(index={"Conf_wrong*/Conf_right": "ratio"})


def selection_table(responses, wrong, among):
    "Every question was asked once, so there are as many questions as replies."
    table = in_columns(beliefs.multiple_selection(responses, wrong, among=among), "low", "high")
    table.insert(1, "replies", table["questions"])
    table.insert(2, "count", (table["share"] * table["replies"]).fillna(0).round().astype(int))
    return table.rename(index={"%multi": "multi", "Recall_r": "recall_right", "Recall_m": "recall_misleading"})


@quietly
def believed(runs):
    t = Tidy()
    for name, responses in runs().items():
        for level in (0.95, 0.8):
            t.add(f"{name}, true or false, {level}", true_false_table(responses, level))
        for normalise in (False, True):
            t.add(f"{name}, ratio, {normalise}", ratio_table(responses, normalise))
    return t.table()


@quietly
def several():
    t = Tidy()
    wrong = invariability.misleading_choices(simulated("mcqa_plus four"))
    found = misled().rows(lambda t: t["method"] == "multiple_selection")
    for among in ("several", "all"):
        t.add(f"multiple selection, {among}", selection_table(found, wrong, among))
    rng = np.random.default_rng(2)
    above, below = rng.random(30), rng.random(30) / 2
    for level in (0.8, 0.95):
        t.add(f"ratio interval, {level}", ratio_interval(above, below, level))
    t.add("ratio interval, one", ratio_interval([0.5], [0.25]))
    return t.table()


COUNTED_WITH = {  # (table, score) -> the score of the same place that rests on the number of questions
    (2, "share"): "accuracy",
    (4, "T/F: wrong"): "T/F: right",
    (7, "MCQA+"): "MCQA",
    (8, "S_c"): "Acc",
    (8, "Acc-H"): "Acc",
}


def paper_tables(runs):
    "The numbers of Tables 2 to 8, their places as the paper has them, and how many questions they rest on."
    rows = []
    for number in range(2, 9):
        found = mcqa_plus_results(runs, number).reindex(
            columns=["method", "place", "score", "value", "low", "high", "n"]
        )
        found = found.astype(object).where(found.notna(), None)
        of = {(row["method"], row["place"], row["score"]): row for row in found.to_dict("records")}
        for (method, place, name), row in of.items():
            if name.endswith(" difference"):
                continue
            subset, _, setting = (method or "all").partition(", ")
            counted = of[method, place, COUNTED_WITH.get((number, name), name)]
            rows.append(
                {"table": number, "subset": subset, "setting": setting or None}
                | {"n_choices": place if number == 8 else None, "n_same": place if number == 2 else None}
                | {"score": name, **{c: row[c] for c in ("value", "low", "high")}}
                | {"difference": of.get((method, place, f"{name} difference"), {"value": math.nan})["value"]}
                | {"questions": counted["n"]}
            )
    whole = {"n_choices": "Int64", "n_same": "Int64", "value": float, "low": float, "high": float}
    return pd.DataFrame(rows).astype(whole)


@quietly
def battery():
    t = Tidy()
    who = {"ann": SimulatedRespondent(**SURE), "bob": SimulatedRespondent(**BOB)}
    for name, respondent in who.items():
        for group in ("few", "mixed"):
            runs = prepare_steps(mcqa_plus_steps(questions_called(group))).ask(respondent, Running(progress=False))
            t.add(f"{name}, {group}, rows", {step: len(r) for step, r in runs.items()})
            found = paper_tables(runs)
            named = found[["table", "subset", "setting", "n_choices", "n_same", "score"]].astype(object)
            found.index = pd.MultiIndex.from_frame(named.where(named.notna(), "nan").astype(str))
            t.add(f"{name}, {group}", found[["value", "low", "high", "difference", "questions"]])
    return t.table()


# ---- consistency, calibration


def correlated(*arguments, **options):
    "Both correlations by name."
    table = paired.correlations(*arguments, **options)
    return table.set_index(table["score"].str.split("'").str[0].str.lower())[["value", "low", "high", "p", "n"]]


GROUP_SCORES = {
    "K": "K",
    "accuracy": "accuracy",
    "mode_right": "most frequent right",
    "pearson": "Pearson's r",
    "spearman": "Spearman's rho",
}


def groups_of(groups, *options):
    "Counts, means and correlations, a row a group."
    rows = {}
    for name, some in consistency.consistency_by(groups, *options).groupby("respondent", sort=False):
        some = some.set_index("score")
        value, n = some["value"], some["n"]
        silent = "replies without a choice"
        row = {"questions": n["accuracy"], "prompts": int(value["prompts"])}
        row |= {"answers": n[silent], "no_choice": round(value[silent] * n[silent])}
        for what, named in GROUP_SCORES.items():
            row |= dict(zip((what, f"{what}_low", f"{what}_high"), some.loc[named, ["value", "low", "high"]]))
        row |= {f"{what}_p": some["p"][GROUP_SCORES[what]] for what in ("pearson", "spearman")}
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def add_formats(t, name, found):
    "What is known of two formats, as rows, as counts and in words."
    first, second = found["method"].iloc[:2]
    rows = {
        "accuracy_first": lookup(found, "accuracy", method=first),
        "accuracy_second": lookup(found, "accuracy", method=second),
        "gap": lookup(found, "accuracy", method=f"{first} - {second}"),
        "phi": lookup(found, "phi"),
        "kappa": lookup(found, "kappa"),
    }
    largest, phi = lookup(found, "largest phi").value, rows["phi"]
    t.add(name, pd.DataFrame(rows).T[["value", "low", "high", "p"]])
    t.add(f"{name}, counts", consistency.agreement_matrix(found))
    interval = f"{phi.low:.3f} to {phi.high:.3f}"
    words = f"phi {phi.value:.3f} ({interval}) of at most {largest:.3f}, p = {phi.p:.2g}"
    t.add(f"{name}, words", f"{phi.n} questions in both; {words}")


@quietly
def repeated(runs):
    "K, accuracy and their correlation where prompts were asked several times."
    t, some = Tidy(), runs()
    tables = {}
    for name, responses in some.items():
        for unparsed in consistency.UNPARSED:
            tables[f"{name}, {unparsed}"] = found = consistency.prompt_sequences(responses, unparsed)
            t.digest(f"{name}, {unparsed}", found)
        for method, part in found.groupby(level="method"):
            t.add(f"{name}, {method}", correlated(part["K"], part["accuracy"], 0.9, 300, 2))
    t.add("groups", groups_of(tables))
    return t.table()


@quietly
def consistency_numbers():
    t = Tidy()
    lists = ["AAAAB", "ABCDE", "AAAAA", "AABB", "A", ["A", None, "B", "B"], [None, None], [1, 2, 2, 2]]
    for unparsed in consistency.UNPARSED:
        t.add(f"labels, {unparsed}", consistency.label_sequences(lists, list("AABBABA") + [2], unparsed=unparsed))
    t.add("K", {"".join(map(str, s)): consistency.sequence_consistency(s) for s in lists})
    t.add("accuracy", {"".join(map(str, s)): consistency.sequence_accuracy(s, "A") for s in lists})
    t.add(
        "chance",
        {f"{n} options, {D} answers": consistency.chance_consistency(n, D) for n in (1, 2, 4, 5) for D in (2, 5, 9)},
    )
    counts = np.array([[50, 10, 20, 20], [10, 0, 0, 5], [3, 4, 5, 6]])
    t.add("matrix", pd.DataFrame(paired.agreement_statistics(counts), columns=["phi", "kappa", "gap"]))
    rng = np.random.default_rng(8)
    x, y = rng.random(60) < 0.6, rng.random(60) < 0.5
    add_formats(t, "right in both", consistency.compare_right(x, x | y, resamples=RESAMPLES))
    t.add("correlations", correlated(rng.random(25), rng.random(25), resamples=RESAMPLES))
    return t.table()


@quietly
def two_formats(runs):
    t = Tidy()
    for name, responses in runs().items():
        methods = responses.table["method"]
        by = {m: responses.rows(methods == m, chosen=m) for m in methods.unique()}
        for one, two in [("mcq", "lfgq"), ("mcq", "mcq_2"), ("mcq_2", "mcq_3")]:
            if one not in by or two not in by:
                continue
            found = consistency.compare_formats(by[one], by[two], (one, two), level=0.9)
            add_formats(t, f"{name}, {one} {two}", found)
            t.add(f"{name}, {one} {two}, largest phi", lookup(found, "largest phi").value)
    return t.table()


@quietly
def recorded_consistency():
    t, raw = Tidy(), li2024("consistency_lfg_gpt35")
    found = consistency.label_sequences(raw["Answer"].tolist(), "D")
    t.digest("long form", found)
    t.add("long form, group", groups_of({"gpt-3.5": found}))
    t.add("long form, correlations", correlated(found["K"], found["accuracy"], resamples=RESAMPLES))
    part = recorded_part()
    rows = part.rows(part.table["method"] == "original", chosen="original")
    for unparsed in consistency.UNPARSED:
        table = consistency.prompt_sequences(rows, unparsed)
        t.digest(f"medalpaca, {unparsed}", table)
        t.add(f"medalpaca, {unparsed}, group", groups_of({"medalpaca": table}, 0.9))
    return t.table()


PARTS_BEFORE = {
    "Brier score": "brier",
    "variance within bins": "within_variance",
    "covariance within bins": "within_covariance",
}


def errors_before(result):
    "What `calibration_errors` gave before there were results."
    return values_of(result).rename({"unweighted ECE": "ECE_unweighted"})


def interval_before(result, name="ECE"):
    "What `ece_interval` gave before there were results."
    seen, chance = lookup(result, name), lookup(result, f"{name} by chance")
    found = {"ECE": seen["value"], "low": seen["low"], "high": seen["high"]}
    return found | {"by_chance": chance["value"], "by_chance_high": chance["high"], "p": seen["p"]}


def reliability_before(result, bins):
    "What `reliability` gave before there were results, by the numbers of the bins."
    scores = {score: rows.set_index("place") for score, rows in result.groupby("score")}
    kept = scores["accuracy"]
    edges = pd.DataFrame([(said[0].n, said[0].of) for said in kept["remarks"]], kept.index, ["low", "high"])
    means = {"confidence": scores["confidence"]["value"], "accuracy": kept["value"]}
    means |= {"accuracy_low": kept["low"], "accuracy_high": kept["high"], "gap": scores["gap"]["value"]}
    return edges.assign(n=kept["n"].astype(int), **means).set_axis(bins)


def calibration_before(result):
    "What `calibration_table` gave before there were results."
    rows = {}
    for (name, n_choices), part in result.groupby(["respondent", "place"], sort=False):
        by = part.set_index("score")
        value, replies = by["value"], by.loc["questions", "n"]
        share = by.loc["accuracy"]
        rows[name, n_choices] = {
            "questions": int(value["questions"]),
            "replies": replies,
            "no_confidence": round(value["replies without a confidence"] * replies),
            "no_choice": round(value["replies without a choice"] * replies),
            "accuracy_all": value["accuracy of all replies"],
            **{"accuracy": share["value"], "accuracy_low": share["low"], "accuracy_high": share["high"]},
            "confidence": value["confidence"],
            **{f"ECE_{what}".removesuffix("_value"): by.loc["ECE", what] for what in ("value", "low", "high")},
            **{"ECE_by_chance": value["ECE by chance"], "ECE_p": by.loc["ECE", "p"]},
            **{"ECE_unweighted": value["unweighted ECE"], "brier": value["Brier score"]},
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def calibration_of(t, name, x, y, groups=None):
    "All that is known of confidences and outcomes."
    for method in calibration.BINNINGS:
        for bins in (5, 100):
            table = calibration.binned(x, y, bins, method)
            case = f"{name}, {method} {bins}"
            t.add(f"{case}, errors", errors_before(calibration.calibration_errors(table)))
            t.add(f"{case}, brier", values_of(calibration.brier_parts(table)).rename(PARTS_BEFORE))
            t.digest(f"{case}, reliability", reliability_before(calibration.reliability(table), table.index))
    t.add(f"{name}, brier", calibration.brier(x, y))
    for weighted in (True, False):
        t.add(f"{name}, ece {weighted}", calibration.ece(x, y, weighted=weighted))
        found = calibration.ece_interval(x, y, weighted=weighted, groups=groups, resamples=300)
        t.add(f"{name}, interval {weighted}", interval_before(found, "ECE" if weighted else "unweighted ECE"))
        t.add(f"{name}, chance {weighted}", calibration.chance_errors(x, weighted=weighted, simulations=200).mean())
    joined = calibration.joined(calibration.binned(x, y, 100), 20)
    t.add(f"{name}, joined", errors_before(calibration.calibration_errors(joined)))


@quietly
def calibration_numbers():
    t, rng = Tidy(), np.random.default_rng(11)
    x = np.round(rng.beta(3, 1, size=400), 3)
    y = rng.random(400) < x**2
    calibration_of(t, "beta", x, y, np.repeat(np.arange(100), 4))
    calibration_of(t, "few values", np.array([0.5, 0.5, 0.9, 1.0, 0.0, 0.28]), np.array([1, 0, 1, 1, 0, 1]))
    scores_ = [(-1.0, -2.0, -0.5), None, (0.0, -np.inf), (-3.0, -3.0)]
    t.add("of scores", confidence.score_confidence(scores_, [2, 0, 0, 1]))
    return t.table()


@quietly
def calibration_of_runs(runs):
    t = Tidy()
    for name, responses in runs().items():
        for source in ("confidence", "scores"):
            table = confidence.confidences(responses, source)
            t.digest(f"{name}, {source}", table.set_axis([f"{i:05}" for i in range(len(table))]))
            table = calibration.calibration_table({"run": responses}, source, bins=5)
            t.add(f"{name}, {source}, table", calibration_before(table))
    return t.table()


@quietly
def recorded_calibration():
    t, raw = Tidy(), li2024("confidence_gpt35")
    for form in ("4_MC", "3_MC", "2_MC", "4_LFG"):
        calibration_of(t, form, raw[f"{form}_C"].to_numpy(), raw[f"{form}_L"].to_numpy())
    return t.table()


def known_scores():
    return {name: simulated(name) for name in ("mcqa_plus four", "permutations mixed", "cyclic mixed", "formats mixed")}


@quietly
def unified():
    t = Tidy()
    said = ["Canberra", "Canberra ", "Sydney", "It is Canberra", "Perth", "Melbourne", "Sydney", "no idea"]
    logprobs = [[-0.1, -0.3], -0.5, -0.7, [-0.9, -1.0, -0.2], -2.0, -1.5, -0.2, -0.05]

    def meaning(text):
        return next((c for c in CHOICES if c in text), None)

    for width in (1, 2, 4, 10):
        shares = confidence.answer_shares(said, logprobs, meaning, width)
        t.add(f"width {width}", shares.set_index("answer"))
        t.add(f"width {width}, labels", confidence.label_shares(shares))
    some = [
        Reply("A", meta={"mean_logprob": -0.4}),
        Reply("A", confidence=0.25, meta={"completion_tokens": 2}),
        Reply("A"),
    ]
    variants = make_variants(four(1))[: len(some)]
    t.add("of replies", confidence.reply_logprobs(make_responses(variants, some)))
    for name in ("cyclic trials", "formats trials", "permutations trials"):
        responses = simulated(name)
        logs = -np.array(uniforms(len(responses), "logprobs", name))
        logs[::17] = np.nan
        for width in (4,) if name == "permutations trials" else (2,):
            found = confidence.unified_confidence(responses, logs, width)
            t.digest(f"{name}, width {width}", found.drop(columns="n_choices"))
    return t.table()


# ---- resampling and replies


@quietly
def resampling_numbers():
    t, rng = Tidy(), np.random.default_rng(4)
    rows = np.array([[1.0, 2], [1, np.nan], [1, 2], [0, 2], [1, np.nan], [1, 2]])
    found, kind = resampling.kinds(rows)
    t.add("kinds", found)
    t.add("kind of each", kind)
    kind = rng.integers(0, 5, size=60)
    clusters = rng.integers(0, 9, size=60)
    for name, c in (("alone", None), ("clusters", clusters)):
        drawn = resampling.draw_questions(kind, 50, 3, c)
        t.digest(f"drawn, {name}", pd.DataFrame(drawn, index=[f"{i:03}" for i in range(50)]))
        without, sizes = resampling.left_out(kind, c)
        t.digest(f"left out, {name}", pd.DataFrame(without, index=[f"{i:03}" for i in range(len(without))]))
        t.add(f"left out, {name}, sizes", sizes)
    t.add("cluster table", resampling.cluster_table(kind, clusters))
    x = rng.gamma(2, size=40)
    samples = rng.choice(x, size=(800, 40)).mean(axis=1)
    jackknife = (x.sum() - x) / 39
    for method in resampling.METHODS:
        for level in (0.8, 0.95):
            t.add(
                f"interval, {method} {level}",
                resampling.interval(samples, x.mean(), jackknife, np.ones(40), level, method),
            )
    for edge in (0.0, 1.0, 0.3):
        t.add(f"interval at {edge}", resampling.interval(np.full(9, edge), edge, np.full(20, edge), np.ones(20)))
    return t.table()


@quietly
def reply_numbers():
    t = Tidy()
    totals, sizes = np.array([3, 0, 2, 5, 1]), np.array([5, 2, 2, 5, 4])
    for level in (0.8, 0.95):
        t.add(f"share interval {level}", list(map(float, shares.share_interval(totals, sizes, level))))
        t.add(f"share of asked {level}", shares.share_of_asked([3, 0, 0, 5], [5, 0, 2, 5], level))
    t.add("share interval, one question", list(map(float, shares.share_interval([1], [2]))))
    t.add("share interval, all right", list(map(float, shares.share_interval(sizes, sizes))))
    t.add("share interval, ranks", np.stack(shares.share_interval(np.stack([totals, sizes - totals], axis=1), sizes)))
    seen = np.array([0.0, 0.2, 0.5, 1.0, np.nan])
    t.add("wilson", np.stack(shares.wilson(seen, np.array([10, 20, 3.5, 100, 5]), 1.96**2)))
    for name in ("cora mixed ann", "cora trials", "mcqa_plus mixed", "reorderings six"):
        responses = simulated(name)
        r = flat_replies(responses)
        t.add(
            f"{name}, flat",
            {
                "rows": len(r),
                "questions": len(r.ids),
                "sources": int(np.maximum(r.flat, -1).sum()),
                "starts": int(r.starts.sum()),
                "predicted sources": int(np.maximum(r.source(np.maximum(r.prediction, 0)), -1).sum()),
            },
        )
        t.add(f"{name}, first of each", int(first_of_each(responses, -responses.table["index"].to_numpy()).sum()))
    return t.table()


# ---- items, comparison


def first_number(remarks):
    return [said[0].n for said in remarks]


def accuracy_by_method(result):
    "A row for each method: questions, replies, accuracy with its interval, and chance, where it is known."
    table = result[result["score"] == "accuracy"].set_index("method")
    found = pd.DataFrame({"questions": table["n"].astype(int), "replies": first_number(table["remarks"])})
    found[["value", "low", "high"]] = table[["value", "low", "high"]]
    if not (chance := result[result["score"] == "chance"]).empty:
        found["chance"] = chance.set_index("method")["value"]
    return found


def finds_by_name(result):
    "A row for each method or slot: its variants, and what it finds, alone and with others, as counts and shares."
    table = result[result["score"] == "found"].set_index("method")
    alone = result[result["score"] == "found by no other"].set_index("method")["value"]
    columns = {"variants": first_number(table["remarks"]), "finds": (table["value"] * table["n"]).round().astype(int)}
    only = (alone * table["n"]).round().astype(int)
    return pd.DataFrame(columns | {"share": table["value"], "only": only, "only_share": alone})


def wide_curve(result):
    "A row for each number of variants."
    found, held, blind = (result[result["score"] == s].set_index("place") for s in ("found", "held out", "random"))
    columns = {"slot": found["note"], "found": found["value"], "held_out": held["value"]}
    return pd.DataFrame(columns | {"low": held["low"], "high": held["high"], "random": blind["value"]})


@quietly
def item_numbers(runs, together):
    t, some = Tidy(), runs()
    for name, responses in some.items():
        t.add(f"{name}, methods", accuracy_by_method(items.method_table(responses)))
        slots = items.slot_table(responses)
        t.add(f"{name}, slots", matrix_hash(slots))
        for what in items.WHAT:
            found = items.finders(slots, what)
            if len(found) < 2:
                t.add(f"{name}, {what}", len(found))
                continue
            t.add(f"{name}, {what}, by method", finds_by_name(items.finding_table(found)))
            t.digest(f"{name}, {what}, by slot", finds_by_name(items.finding_table(found, "slot")))
            t.add(f"{name}, {what}, greedy", " ".join(map(str, items._greedy_order(found))))
            fewest = items.fewest_variants(found, 0.9)
            t.add(
                f"{name}, {what}, fewest",
                {
                    "variants": len(fewest.slots),
                    "of": fewest.of,
                    "least": fewest.least,
                    "greedy": fewest.greedy,
                    "exact": fewest.exact,
                },
            )
            t.digest(f"{name}, {what}, curve", wide_curve(items.finding_curve(found, splits=20)))
        t.digest(f"{name}, breaks", items.item_breaks(responses))
    for names in together:
        group = {name: some[name] for name in names}
        t.digest(f"{' and '.join(names)}, table", items.item_table(group))
        t.digest(f"{' and '.join(names)}, RC", items.item_consistency(group))
    return t.table()


def paired_table(found, first, second):
    "Differences beside what each of the two has by itself."
    each = {"first": score_counts(count_hits(first)), "second": score_counts(count_hits(second))}
    columns = {"difference": values_of(found), **{c: values_of(found, c) for c in ("low", "high", "p")}}
    return pd.DataFrame({what: values.loc[found["score"]] for what, values in each.items()} | columns)


def wide_ranks(found):
    "A row for each score and respondent: value, rank, expected rank, and the probabilities of the ranks."
    rows, columns = {}, {"": "value", "rank": "rank", "expected rank": "expected"}
    for row in found.itertuples():
        name, _, what = row.score.partition(", ")
        rows.setdefault((name, row.respondent), {})[columns.get(what, row.place)] = row.value
    return pd.DataFrame(rows).T


@quietly
def compared(runs):
    t, some = Tidy(), runs()
    names, options = list(some), dict(scores=["MCQA", "MV", "CoRA"], resamples=RESAMPLES, level=0.9, seed=3)
    for clusters in (None, "subject"):
        found = comparison.compare(some[names[0]], some[names[1]], resamples=RESAMPLES, clusters=clusters)
        t.add(f"{names[0]} and {names[1]}, clusters {clusters}", paired_table(found, *(some[n] for n in names[:2])))
        found = comparison.rank_table(some, resamples=RESAMPLES, clusters=clusters)
        t.add(f"ranks, clusters {clusters}", wide_ranks(found))
    plain = comparison.compare_all(some, None, **options)
    for correction in ("holm", "bh"):
        found = comparison.compare_all(some, correction, **options)
        tables = {}
        for pair in combinations(names, 2):
            mine, adjusted = (part[part["respondent"] == " - ".join(pair)] for part in (plain, found))
            assert mine[["score", "value", "low", "high"]].equals(adjusted[["score", "value", "low", "high"]])
            p = values_of(adjusted, "p")
            tables[pair] = paired_table(mine, *(some[n] for n in pair)).assign(p_adjusted=p)
        rows = {(s, *pair): table.loc[s] for s in options["scores"] for pair, table in tables.items()}
        t.add(f"all, {correction}", pd.DataFrame(rows).T)
    for asked in ({"half_width": 0.03}, {"difference": 0.05}, {}):
        pilot = some[names[0]] if "half_width" in asked else [some[names[0]], some[names[1]]]
        for s in ("MCQA", "CoRA"):
            found = planning.questions_needed(pilot=pilot, score=s, resamples=RESAMPLES, **asked)
            t.add(f"questions needed, {s}, {asked}", found)
    return t.table()


@quietly
def planned():
    t = Tidy()
    for h in (0.01, 0.03, 0.1, 0.3):
        for a in (0.5, 0.8, 1.0):
            t.add(
                "half width",
                {
                    f"{h} at {a}, {level}": planning.questions_needed(h, accuracy=a, level=level)
                    for level in (0.8, 0.95)
                },
            )
    for d in (0.02, -0.05, 0.2):
        t.add(
            "difference",
            {
                f"{d}, power {p}": planning.questions_needed(difference=d, accuracy=0.6, power=p)
                for p in (0.5, 0.8, 0.95)
            },
        )
        t.add(
            "discordance",
            {f"{d}, {q}": planning.questions_needed(difference=d, discordance=q) for q in (0.2, 0.5, 1.0)},
        )
    t.add(
        "exchange p",
        [paired.exchange_p(0.1, np.array([0.05, -0.2, 0.1, 0.0])), paired.exchange_p(math.nan, np.zeros(2))],
    )
    return t.table()


def comparable():
    return {name: simulated(name) for name in ("cora ann", "cora bob", "cora guesser", "cora knows all")}


def varied():
    names = ("cora ann", "cora guesser", "cora knows all", "cora mixed bob", "cora in order")
    return {name: simulated(name) for name in names}


# ---- early stopping


@quietly
def stopping(runs):
    "How many calls early stopping takes, and what it then knows."
    from cora_nb.runs.stopping import is_settled

    t = Tidy()
    for name, (responses, asked) in runs().items():
        ways = [
            ({"stop": "cora"}, Settled()),
            ({"stop": "bmca"}, Settled(THRESHOLDS)),
            ({"stop": "bmca", "thresholds": (0.8,)}, Settled((0.8,))),
            ({"stop": "cora", "batch": 20}, Settled(batch=20)),
        ]
        for called, stop in ways[: 2 if name in ORGANISMS else 4]:
            part = evaluate(RecordedRespondent(responses), asked, Asking(parse="first_token"), stop, progress=False)
            case = f"{name}, {called}"
            calls = part.facts.calls
            t.add(f"{case}, calls", {what: calls[what] for what in ("prompts", "asked", "not_asked")})
            t.add(f"{case}, scores", values_of(score(part)))
            gone = in_state(part.table, "not_asked")
            t.add(f"{case}, asked by method", part.table[~gone].groupby("method").size())
    for c in (0.28, 0.5, 1.0):
        t.add(
            f"settled at {c}",
            {
                f"{h} of {n}, {u} left": is_settled(h, u, n, (c,))
                for n in (5, 25)
                for h in (0, 2, 5)
                for u in (0, 1, 5)
                if h + u <= n
            },
        )
    return t.table()


def stopped_simulations():
    return {
        name: (
            simulated(name),
            make_variants(questions_called(SIMULATIONS[name].questions), **dict(SIMULATIONS[name].options)),
        )
        for name in ("cora ann", "cora bob", "cora guesser", "cora knows all", "cora mixed ann")
    }


def stopped_organisms():
    return {name: (organism_run(name), make_variants(load_benchmark("math"))) for name in ORGANISMS}


# ---- hidden states


def separability_before(result):
    "What `separability` gave before there were results."
    by = {score: rows.set_index("place") for score, rows in result.groupby("score")}
    accuracy, line, chance = (by[score] for score in ("accuracy", "least squares", "least squares by chance"))
    columns = {"distinct": by["distinct vectors"]["value"].astype(int)}
    columns |= {"accuracy": accuracy["value"], "low": accuracy["low"], "high": accuracy["high"]}
    columns |= {"least_squares": line["value"], "chance_low": chance["low"], "chance_high": chance["high"]}
    return pd.DataFrame(columns | {"p": line["p"], "between": by["variance between"]["value"]})


@quietly
def separated():
    from cora_nb.metrics.embeddings import head_separability, _pair_up, project, random_halves, separability
    from cora_nb.respondents.hidden import States

    t, rng = Tidy(), np.random.default_rng(6)
    n, layers, width = 20, 3, 6
    points = rng.normal(size=(2 * n, layers, width)).astype(np.float32)
    points[::2, 1] += 0.8
    points[::2, 2] += 3
    heads = rng.normal(size=(2 * n, 2, 2, 3)).astype(np.float32)
    heads[::2, 1, 0] += 2
    ids = tuple(f"q{i // 2}" for i in range(2 * n))
    states = States("made", points, heads, ids, ("mcq", "lfgq") * n)
    t.add("separability", separability_before(separability(states, permutations=99)))
    other = separability(states, folds=4, permutations=50, seed=2, level=0.8)
    t.add("separability, 4 folds", separability_before(other))
    heads = head_separability(states, progress=False).pivot(index="place", columns="method", values="value")
    t.add("heads", heads.rename(columns=lambda head: int(head.removeprefix("head "))))
    t.add("pairs", _pair_up(states.formats, states.question_ids)[0].sum(axis=0))
    halves = random_halves(states.only("mcq"), 3)
    t.add(
        "halves",
        {
            "ids": short_hash(",".join(halves.question_ids)),
            "first": float(halves.layers[0].sum()),
            "rows": len(halves.layers),
        },
    )
    t.digest("pca", pd.DataFrame(np.abs(project(states, "pca")).sum(axis=1)))
    return t.table()


@quietly
def hidden():
    from cora_nb.metrics.embeddings import format_prompts
    from cora_nb.respondents.hidden import hidden_states

    t = Tidy()
    for ends in ("same", "own"):
        asked = format_prompts(four(4), ends=ends)
        t.add(f"prompts, {ends}", short_hash("\x1e".join(p.text for p in asked)))
        for name in ORGANISMS:
            found = hidden_states(organism(name), asked, heads=True, progress=False)
            sizes = np.linalg.norm(found.layers, axis=-1)
            t.add(f"{name}, {ends}, norms", pd.DataFrame(sizes, index=range(len(sizes))))
            t.add(f"{name}, {ends}, means", found.layers.mean(axis=(0, 2)))
            t.add(f"{name}, {ends}, heads", np.abs(found.heads).mean(axis=(0, 3)))
    return t.table()


# ---- published tables, printed tables


@quietly
def published():
    from cora_nb.papers.published import PAPERS, load_published

    t = Tidy()
    for paper, numbers in [(p, PAPERS[p]) for p in ("cora", "mcqa_plus")]:
        for number in numbers:
            table = load_published(number, paper)
            table.index = [f"{i:04}" for i in range(len(table))]
            t.digest(f"{paper} table {number}", table)
    for (model, benchmark), table in order.published_swaps().items():
        t.add(f"swaps {model} {benchmark}", [",".join(map(str, row)) for row in table.to_numpy()])
    return t.table()


@quietly
def imported():
    from cora_nb.prompts.letters import parse

    t, whole = Tidy(), load_recorded(MEDALPACA, texts=True)
    part = whole.table[whole.table["question_id"].isin(whole.questions["question_id"][:60])].reset_index(drop=True)
    t.add("as recorded", dict(answers(medalpaca())))
    for rule in LETTER_RULES:
        read = [parse(reply, "ABCDE"[:n], rule) for reply, n in zip(part["reply"], part["n_choices"])]
        told = {"prediction": read, "correct": np.array(read) == part["answer"].to_numpy()}
        found = as_responses(part.drop(columns="state").assign(**told))
        t.add(f"parse {rule}", dict(answers(found)))
        t.add(f"parse {rule}, scores", values_of(score(found)))
    sources = [",".join(str(max(s, -1)) for s in row) for row in medalpaca().table["sources"]]
    t.add("sources", short_hash("\n".join(sources)))
    return t.table()


@quietly
def table_parts():
    from cora_nb.core import threshold
    from cora_nb.report.grid import competition_ranks, number_text as printed
    from cora_nb.report.render import printed_table
    from cora_nb.report.tables import arrange, score_table

    t = Tidy()
    t.add("ranks", competition_ranks([0.751, 0.749, 0.75, math.nan, 0.2, 0.9]))
    t.add("ranks, 3 digits", competition_ranks([0.751, 0.749, 0.75, math.nan, 0.2, 0.9], 3))
    t.add(
        "shown", {f"{v} {d}": printed(v, d) for v in (0.005, 0.015, -0.001, 1.0, math.nan, 0.12345) for d in (0, 2, 4)}
    )
    t.add("threshold", {s: threshold(s) for s in ("BMCA(0.5)", "BMCA(1)", "CoRA")})
    runs = {name: score(simulated(name)) for name in ("cora ann", "cora bob")}
    t.add("arranged", [" ".join(pair) for pair in arrange(runs["cora ann"]["score"])])
    table = score_table(runs, beyond=True)
    wide = side_by_side(values_of(table), "respondent")
    t.add("score table", wide.set_axis(pd.MultiIndex.from_tuples(arrange(wide.index))))
    steps = mcqa_plus_steps(four(12))
    found = {
        name: paper_tables(prepare_steps(steps).ask(SimulatedRespondent(**who), Running(progress=False)))
        for name, who in (("ann", SURE), ("bob", BOB))
    }
    parts = []
    for name, table in found.items():  # each number by its old columns
        named = table[["table", "subset", "setting", "n_choices", "n_same"]].astype(object)
        names = [":".join("" if pd.isna(v) else str(v) for v in row) for row in named.to_numpy()]
        parts.append(table[["score", "value", "low", "high"]].assign(method=names, respondent=name))
    result = make_result(pd.concat(parts))
    t.add("results", printed_table(result, percent=True))
    t.add("results, no intervals", printed_table(result, 3, interval=False, percent=True))
    return t.table()


# ---- texts: what is printed


@lru_cache
def printed_tables():
    "A score table in every format, with and without intervals."
    from cora_nb.report.render import render
    from cora_nb.report.tables import score_table

    plain = score_table({name: score(simulated(name)) for name in ("cora ann", "cora bob", "cora guesser")})
    sure = {name: score(simulated(name), ci=0.95, resamples=RESAMPLES) for name in ("cora ann", "cora bob")}
    texts = {}
    for name, table in (("plain", plain), ("intervals", score_table(sure, beyond=True))):
        for format in ("text", "markdown", "latex", "csv"):
            texts[f"table_{name}_{format}"] = render(
                table, format, digits=3 if name == "intervals" else 2, caption="A caption & more"
            )
        texts[f"table_{name}_html"] = render(table, "styler", caption="A caption & more").to_html()
    return texts


RUN = "simulated:knows=0.6,position=4/1,seed=1,name=ann", "simulated:knows=0.8,nota=2,seed=2,name=bob"
COMMANDS = {
    "run_organisms": ["cora", "run", "--limit", "4", "--store", "none"],
    "run_simulated": ["cora", "run", *RUN, "--limit", "30", "--digits", "3"],
    "run_trials": ["cora", "run", RUN[1], "--limit", "10", "--trials", "3", "--out", "three"],
    "run_shots": [
        "cora",
        "run",
        *RUN,
        "--limit",
        "5",
        "--shots",
        "2",
        "--template",
        "bare",
        "--parse",
        "tolerant",
        "--out",
        "shots",
    ],
    "run_stop": ["cora", "run", RUN[0], "--limit", "20", "--stop", "cora", "--out", "stopped"],
    "run_mcqa_plus_family": ["cora", "run", RUN[0], "--limit", "8", "--family", "mcqa_plus", "--out", "plus"],
    "run_seed": ["cora", "run", RUN[0], "--limit", "8", "--family", "permutations", "--seed", "3", "--out", "orders"],
    "run_again": [
        "cora",
        "run",
        "recorded:responses/ann.parquet",
        "--limit",
        "30",
        "--parse",
        "first_alphanumeric",
        "--out",
        "again",
    ],
    "run_dry": [
        "cora",
        "run",
        "chat:gpt-4o-mini",
        "chat:other,max_tokens=20",
        *RUN,
        "--dry",
        "--price",
        "2.5/10",
        "--store",
        "none",
        "--parse",
        "first_token",
    ],
    "run_dry_shots": [
        "cora",
        "run",
        "chat:m",
        "--dry",
        "--shots",
        "3",
        "--trials",
        "2",
        "--family",
        "mcqa_plus",
        "--store",
        "none",
        "--parse",
        "first_token",
    ],
    "table_text": ["cora", "table", "responses/ann.parquet", "responses/bob.parquet"],
    "table_one": ["cora", "table", "responses/ann.parquet", "--digits", "4"],
    "table_trial": ["cora", "table", "three/bob.parquet", "--trial", "2"],
    "table_trials": ["cora", "table", "three/bob.parquet", "--trial", "-1"],
    "table_markdown": ["cora", "table", "responses/ann.parquet", "responses/bob.parquet", "--format", "markdown"],
    "table_latex": ["cora", "table", "responses/ann.parquet", "responses/bob.parquet", "--format", "latex"],
    "table_csv": ["cora", "table", "responses/ann.parquet", "responses/bob.parquet", "--format", "csv"],
    "table_ci": ["cora", "table", "responses/ann.parquet", "responses/bob.parquet", "--ci", "0.95"],
    "table_ci_markdown": [
        "cora",
        "table",
        "responses/ann.parquet",
        "responses/bob.parquet",
        "--ci",
        "0.9",
        "--format",
        "markdown",
    ],
    "table_ci_latex": ["cora", "table", "responses/ann.parquet", "--ci", "0.9", "--format", "latex"],
    "table_ci_csv": [
        "cora",
        "table",
        "responses/ann.parquet",
        "responses/bob.parquet",
        "--ci",
        "0.9",
        "--format",
        "csv",
    ],
    "mcqa_plus": ["cora", "mcqa_plus", *RUN, "--limit", "12", "--out", "battery"],
    "mcqa_plus_organism": [
        "cora",
        "mcqa_plus",
        "causal:organism/skewed",
        "--limit",
        "2",
        "--store",
        "none",
        "--out",
        "battery",
    ],
    "mcqa_plus_dry": [
        "cora",
        "mcqa_plus",
        "chat:gpt-4o-mini",
        "--limit",
        "12",
        "--dry",
        "--price",
        "1/2",
        "--store",
        "none",
    ],
    "embeddings": ["cora", "embeddings", "organism/steady", "--limit", "8", "--permutations", "20"],
}
RECORDED_COMMANDS = {
    "import": ["cora", "import", "FILE", "--out", "medalpaca.parquet"],
    "import_table": ["cora", "table", "medalpaca.parquet", "--digits", "4"],
    "import_table_ci": ["cora", "table", "medalpaca.parquet", "--ci", "0.95", "--format", "markdown"],
    "import_table_trials": ["cora", "table", "medalpaca.parquet", "--trial", "-1", "--format", "csv"],
    "import_parse": [
        "cora",
        "import",
        "FILE",
        "--out",
        "first.parquet",
        "--parse",
        "first_token",
        "--model",
        "m",
        "--benchmark",
        "medqa",
    ],
}
PROGRAM = """
import contextlib, io, json, sys
import matplotlib
matplotlib.use("Agg")
from cora_nb.cli.commands import cora_main
found = {}
for name, words in json.load(sys.stdin).items():
    out, left = io.StringIO(), ""
    with contextlib.redirect_stdout(out):
        try:
            cora_main(words[1:])
        except SystemExit as e:
            left = e.code
    found[name] = [out.getvalue(), left or ""]
print(json.dumps(found))
"""


@lru_cache
def printed_by(which):
    "What each command prints, one after the other in one folder and one process."
    lines = COMMANDS if which == "commands" else RECORDED_COMMANDS
    words = {name: shlex.split(run_folders(" ".join(line))) for name, line in lines.items()}
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "XDG_CACHE_HOME": folder, "COLUMNS": "120", "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
        env |= {
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }  # as small as all this is, more threads only cost time
        env["PYTHONPATH"] = os.pathsep.join(
            map(str, [Path(__file__).resolve().parents[2], os.environ.get("PYTHONPATH", "")])
        )
        program = Path(folder, "program.py")
        program.write_text(PROGRAM)  # a command reads its words only where a file calls it at its top level
        done = subprocess.run(
            [sys.executable, "-W", "ignore", program],
            input=json.dumps(words),
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        found = json.loads(done.stdout)
    return {
        f"command_{name}": masked(" ".join(COMMANDS.get(name) or RECORDED_COMMANDS[name]), out, left, folder)
        for name, (out, left) in found.items()
    }


def run_folders(line):
    "A golden command, which names files, as it is said today: a run is a folder, and repetitions are pooled by name."
    line = re.sub(r"\b(responses|three)/(\w+)\.parquet", r"\1/math/\2", line)
    line = re.sub(r"\b(medalpaca|first)\.parquet", r"\1", line).replace("--trial -1", "--trials all")
    line = line.replace("--ci ", "--interval ")
    return line.replace("FILE", str(recorded_file(MEDALPACA))) if "FILE" in line else line


def run_files(text):
    "The folders of runs in what is printed today as the files of the golden texts."
    text = re.sub(r"\b(\w+)/math/(\w+)/mcqa_plus_tables\.csv", r"\1/\2.mcqa_plus_tables.csv", text)
    text = re.sub(r"^(  \w+)/math/(\w+)$", r"\1/\2.parquet", text, flags=re.M)
    return re.sub(r"^(responses: \w+)$", r"\1.parquet", text, flags=re.M)


OLD_NAMES = {2: ["n_same"], 3: ["subset"], 4: ["subset"], 5: ["subset"], 6: ["setting"], 7: [], 8: ["n_choices"]}


def mcqa_plus_tables(text):
    "The tables of the MCQA+ paper in what is printed today in the layout and with the names of the golden texts."

    def old_layout(found):
        number, (head, *lines) = int(found[1]), found[2].splitlines()
        starts = [m.start() for m in re.finditer(r"\S+", head)]
        rows = [[line[a:b].strip() for a, b in zip(starts, [*starts[1:], None])] for line in lines]
        names = [*OLD_NAMES[number], "score"]
        if head.startswith("method"):  # left out where it is that of the row above
            for above, row in zip(rows, rows[1:]):
                row[0] = row[0] or above[0]
            which = {"subset": 0, "setting": -1}[names[0]]  # of "always right, true/false"
            rows = [[row[0].split(", ")[which], *row[1:]] for row in rows]
        index = pd.MultiIndex.from_tuples([tuple(row[: len(names)]) for row in rows], names=names)
        cells = pd.DataFrame([row[len(names) :] for row in rows], index, head.split()[len(names) :])
        with pd.option_context("display.width", None, "display.max_columns", None, "display.max_rows", None):
            return f"Table {number}\n{cells}\n"

    return re.sub(r"^Table (\d)\n((?:.+\n)+)", old_layout, text, flags=re.M)


OLD_PLAN = {"in the store": "in_store", "tokens written, at most": "tokens_written_at_most", "cost, at most": "cost"}
OLD_PLAN["tokens read"] = "tokens_read"


def explained(text):
    "What is printed today without the words that explain it: of plans, of intervals, and above the MCQA+ tables."

    def old_plan(found):
        heads, *rows = [re.split(r"\s{2,}", line.strip()) for line in found[1].splitlines()]
        heads = [OLD_PLAN.get(head, head) for head in heads]
        cells = [[float(cell) if "." in cell else int(cell) for cell in row[1:]] for row in rows]
        return pd.DataFrame(cells, [row[0] for row in rows], heads).to_string() + "\n"

    text = re.sub(r"^nothing was asked; the run would take\n( .+\n(?:\S+  .+\n)+)", old_plan, text, flags=re.M)
    text = re.sub(r"^(?:% )?in brackets: [\d.]+% intervals\n\n", "", text, flags=re.M)
    return re.sub(r"^(Table \d): .+\n(?:  .+\n)+\n", r"\1\n", text, flags=re.M)


def masked(command, out, left, folder):
    "A command and what it printed, without what differs from machine to machine."
    text = f"$ {command}\n{out}" + (f"exit: {left}\n" if left else "")
    text = mcqa_plus_tables(run_files(explained(text.replace(f"{folder}/", ""))))
    text = re.sub(r"\d+(\.\d+)? ?(seconds|s)\b", "SECONDS", text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


# ---- the registry


@dataclass(frozen=True)
class Golden:
    "A driver, what it needs, and how near its numbers must be."

    make: object
    needs: tuple = ()  # "shared": the benchmarks; "recorded": published replies; "torch": a model here; "sklearn"
    relative: float = 1e-9
    absolute: float = 1e-13


REAL, RECORDED, MODEL = ("shared",), ("recorded",), ("torch",)  # recorded: the files with texts
cora_runs = partial(of_family, "cora")
GOLDEN = {
    "benchmarks": Golden(benchmarks),
    "benchmarks_hub": Golden(benchmarks_of_the_hub, REAL),
    "randomness": Golden(randomness),
    "variants": Golden(variants),
    "prompts": Golden(prompts),
    "continuations": Golden(continuations),
    "keys": Golden(keys),
    "plans": Golden(plans),
    "kept": Golden(kept),
    "parsing": Golden(parsing),
    "numbers_in_words": Golden(numbers_in_words),
    "statements": Golden(statements),
    "grading": Golden(grading),
    "answers": Golden(partial(runs_answers, simulated_runs)),
    "recorded_answers": Golden(imported, RECORDED),
    "organism_letters": Golden(organism_letters, MODEL),
    "organism_answers": Golden(partial(runs_answers, organism_small_runs), MODEL),
    "organism_confidence": Golden(organism_confidence, MODEL, absolute=1e-4),
    "organism_words": Golden(organism_words, MODEL),
    "likelihoods": Golden(likelihoods, MODEL, absolute=1e-4),
    "scores": Golden(partial(scores, cora_runs)),
    "recorded_scores": Golden(partial(scores, recorded_runs)),
    "organism_scores": Golden(partial(scores, organism_runs), MODEL),
    "score_arrays": Golden(score_arrays),
    "intervals": Golden(partial(intervals, varied)),
    "recorded_intervals": Golden(partial(intervals, recorded_runs)),
    "organism_intervals": Golden(partial(intervals, organism_runs), MODEL),
    "ablations": Golden(partial(ablation, varied)),
    "recorded_ablations": Golden(partial(ablation, recorded_runs)),
    "organism_ablations": Golden(partial(ablation, organism_runs), MODEL),
    "chance": Golden(partial(chance, cora_runs), absolute=0.0),
    "recorded_chance": Golden(partial(chance, recorded_runs), absolute=0.0),
    "organism_chance": Golden(partial(chance, organism_runs), MODEL, absolute=0.0),
    "guessing": Golden(guessing_numbers, absolute=0.0),
    "bias": Golden(partial(place_bias, partial(of_families, "permutations", "cyclic"), lambda: [*four(), *mixed()])),
    "organism_bias": Golden(partial(place_bias, partial(organism_family, "permutations"), four), MODEL),
    "bias_arrays": Golden(bias_numbers),
    "order": Golden(partial(order_of_runs, partial(of_family, "order_swap"))),
    "order_published": Golden(order_published, absolute=0.0),
    "organism_order": Golden(partial(order_of_runs, partial(organism_family, "order_swap")), MODEL),
    "recorded_order": Golden(recorded_order),
    "order_arrays": Golden(order_numbers),
    "invariability": Golden(
        partial(invariance, complete_plus, partial(of_families, "reorderings", "permutations", "cyclic"))
    ),
    "organism_invariability": Golden(
        partial(invariance, partial(organism_family, "mcqa_plus"), partial(organism_family, "reorderings")), MODEL
    ),
    "nota": Golden(nota),
    "beliefs": Golden(partial(believed, complete_plus)),
    "organism_beliefs": Golden(partial(believed, partial(organism_family, "mcqa_plus")), MODEL, absolute=1e-4),
    "several": Golden(several),
    "battery": Golden(battery),
    "consistency": Golden(partial(repeated, lambda: {n: simulated(n) for n in SIMULATIONS if "trials" in n})),
    "consistency_arrays": Golden(consistency_numbers),
    "recorded_consistency": Golden(recorded_consistency),
    "formats": Golden(partial(two_formats, partial(of_family, "formats"))),
    "organism_formats": Golden(partial(two_formats, partial(organism_family, "formats")), MODEL),
    "calibration": Golden(partial(calibration_of_runs, known_scores)),
    "calibration_arrays": Golden(calibration_numbers),
    "recorded_calibration": Golden(recorded_calibration),
    "organism_calibration": Golden(
        partial(calibration_of_runs, partial(organism_family, "permutations")), MODEL, absolute=1e-4
    ),
    "unified_confidence": Golden(unified),
    "resampling": Golden(resampling_numbers),
    "replies": Golden(reply_numbers),
    "items": Golden(
        partial(
            item_numbers, cora_runs, [("cora ann", "cora bob", "cora guesser"), ("cora mixed ann", "cora mixed bob")]
        )
    ),
    "recorded_items": Golden(partial(item_numbers, recorded_part_runs, [])),
    "organism_items": Golden(partial(item_numbers, organism_runs, [ORGANISMS]), MODEL),
    "comparison": Golden(partial(compared, comparable)),
    "organism_comparison": Golden(partial(compared, organism_runs), MODEL),
    "planning": Golden(planned),
    "stopping": Golden(partial(stopping, stopped_simulations)),
    "organism_stopping": Golden(partial(stopping, stopped_organisms), MODEL),
    "embeddings": Golden(separated, ("sklearn",), 1e-6, 1e-6),
    "hidden_states": Golden(hidden, ("torch", "sklearn"), absolute=1e-3),
    "published": Golden(published),
    "table_parts": Golden(table_parts),
}
TEXTS = {
    "tables": Golden(printed_tables),
    "commands": Golden(partial(printed_by, "commands"), ("torch", "sklearn")),
    "recorded_commands": Golden(partial(printed_by, "recorded_commands"), RECORDED),
}
