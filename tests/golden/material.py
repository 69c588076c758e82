"""What the golden numbers are made of: tidy rows, questions, and runs whose every reply is known."""

import hashlib
import json
import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import Question
from cora_nb.papers.published import load_recorded
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.files import read_responses
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

SHARED = Path(os.environ.get("CORA_SHARED", Path(__file__).resolve().parents[3] / "shared"))
ORGANISMS = ("steady", "skewed")
FIRST_TOKEN = Asking(parse="first_token")


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


def short_hash(content):
    "Of a text, or of anything that JSON can hold."
    text = content if isinstance(content, str) else json.dumps(content)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Tidy:
    "Collects rows: case, measure, value."

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

    def table(self):
        return pd.DataFrame(self.rows, columns=["case", "measure", "value"], dtype=str)


# ---- questions


@lru_cache
def four(n=60):
    "Questions with four choices."
    return math_benchmark(n, seed=0)


@lru_cache
def mixed(n=14):
    "Questions with three, four and five choices."
    return [q for k in (3, 4, 5) for q in math_benchmark(n, seed=10 + k, n_choices=k)]


QUESTIONS = {"four": four, "mixed": mixed, "few": lambda: four(12)}
CITIES = ("Sydney", "Canberra", "Melbourne", "Perth")
FLAG = ("Green", "White", "Red", "All of the above", "Blue")
WORDED = [
    Question("capital", "What is the capital of Australia?", CITIES, 1, "geography"),
    Question("except", "Which of these is NOT a mammal?", ("A whale", "A bat", "A shark"), 2, "biology"),
    Question("none", "Which planet has no moon?", ("Mars", "Jupiter", "Saturn", "None of the above"), 3, "astronomy"),
    Question("none wrong", "Which is a prime number?", ("4", "7", "9", "None of the above."), 1, "arithmetic"),
    Question("all", "Which colours does a flag of Italy have?", FLAG, 3),
    Question("two", "Is the Earth flat?", ("Yes", "No"), 1),
    Question("accents", "Où est né Molière ?", ("À Paris", "Lyon", "Zürich – «Altstadt»", "東京"), 0, "lettres"),
    Question("repeated", "Which one is right?", ("same", "same", "other", "right"), 3),
    Question("many", "Which letter comes last?", tuple("abcdefg"), 6),
]


# ---- runs


ANN = {"knows": 0.6, "slips": 0.1, "position": (4, 2, 1), "nota": 0.5, "seed": 1}
BOB = {"knows": 0.7, "slips": 0.3, "position": (1, 1, 1, 3), "nota": 2.0, "seed": 2}
IN_ORDER = {"answer_first": False, "nota": "No answer fits"}
SIMULATIONS = {  # name: questions, repetitions, respondent, options of the variants
    "cora ann": ("four", 1, ANN, {}),
    "cora bob": ("four", 1, BOB, {}),
    "cora guesser": ("four", 1, {"knows": 0.0, "seed": 3}, {}),
    "cora knows all": ("four", 1, {"knows": 1.0}, {}),
    "cora mixed ann": ("mixed", 1, ANN, {}),
    "cora mixed bob": ("mixed", 1, BOB, {}),
    "cora trials": ("few", 4, BOB, {}),
    "cora in order": ("mixed", 1, BOB, IN_ORDER),
}


def simulated_variants(name):
    questions, _, _, options = SIMULATIONS[name]
    return make_variants(QUESTIONS[questions](), **options)


@lru_cache
def simulated(name):
    "The responses of one of `SIMULATIONS`."
    _, trials, who, _ = SIMULATIONS[name]
    asking = Asking(trials=trials, parse="first_token")
    return evaluate(SimulatedRespondent(**who), simulated_variants(name), asking, progress=False)


def simulations(*names):
    "Those of these names without their `cora`; none: all."
    names = [f"cora {name}" for name in names] or SIMULATIONS
    return {name: simulated(name) for name in names}


@lru_cache
def organism(name):
    "A model organism, loaded once."
    from cora_nb.respondents.causal import CausalRespondent
    import torch

    torch.set_num_threads(1)  # these models are so small that a second thread only costs time
    return CausalRespondent(f"organism/{name}")


ORGANISM_RUN = []  # the folder of a `cora_run` without arguments, where a test has it already


@lru_cache
def organism_runs():
    "Both organisms on all questions of the bundled benchmark, family cora."
    if ORGANISM_RUN:
        return {name: read_responses(ORGANISM_RUN[0] / "responses" / "math" / name) for name in ORGANISMS}
    variants = make_variants(load_benchmark("math"))
    return {name: evaluate(organism(name), variants, FIRST_TOKEN, progress=False) for name in ORGANISMS}


FAMILIES = {
    "mcqa_plus": {},
    "permutations": {"limit": 8},
    "cyclic": {},
    "reorderings": {},
    "order_swap": {},
    "formats": {"claims": "all", "sizes": (2, 3, 4)},
}


def organism_families():
    "Both organisms on a few questions in each other family."
    made = {family: make_variants(four(8), family, **options) for family, options in FAMILIES.items()}
    return {
        f"{name} {family}": evaluate(organism(name), variants, FIRST_TOKEN, progress=False)
        for family, variants in made.items()
        for name in ORGANISMS
    }


@lru_cache
def medalpaca():
    "The recorded replies of medalpaca-7b."
    return load_recorded("cat/medqa/medalpaca-7b")


def recorded_runs():
    return {"medalpaca": medalpaca()}
