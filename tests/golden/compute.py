"""The drivers behind the golden numbers: one small function for each CSV, and a registry of them.

A driver fills tidy rows: case, measure, value. Where modules move or signatures change, the drivers here are edited,
and the CSVs stay as they are.
"""

import json
import math
import warnings
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from cora_nb.benchmarks.arithmetic import math_benchmark, _math_capacity
from cora_nb.benchmarks.load import benchmark_hash, load_benchmark, load_shots
from cora_nb.benchmarks.phrases import says_none
from cora_nb.cli.respondents import make_respondent
from cora_nb.core import THRESHOLDS, permutation, uniforms
from cora_nb.metrics import ablations, calibration, comparison, consistency, guessing, order, planning
from cora_nb.metrics.account import account, paper_counts, score_counts
from cora_nb.metrics.cora import Counts, car_curve, core_index
from cora_nb.metrics.scoring import score
from cora_nb.papers.cora_items import paper_layout
from cora_nb.papers.mcqa_plus import mcqa_plus_results, mcqa_plus_steps, prepare_steps
from cora_nb.papers.published import PAPERS, load_published, load_recorded
from cora_nb.prompts.letters import parse, selected
from cora_nb.prompts.reading import explain
from cora_nb.prompts.templates import make_prompts
from cora_nb.report.plots import curve_table
from cora_nb.respondents.simulated import RecordedRespondent, SimulatedRespondent
from cora_nb.responses.columns import in_state
from cora_nb.responses.responses import as_responses
from cora_nb.results import lookup, side_by_side, values_of
from cora_nb.runs.asking import Asking, Settled
from cora_nb.runs.evaluate import Running, evaluate, variants_hash
from cora_nb.runs.stopping import is_settled
from cora_nb.runs.store import reply_key
from cora_nb.stats import paired
from cora_nb.variants import operators, orders
from cora_nb.variants.families import make_variants
from material import ANN, BOB, FIRST_TOKEN, ORGANISMS, QUESTIONS, SHARED, WORDED, Tidy
from material import four, label, medalpaca, mixed, organism_families, organism_runs, recorded_runs, short_hash
from material import simulated_variants, simulations, text_of

HERE = Path(__file__).resolve().parent
RESAMPLES = 500
TEMPLATES = ("cora", "cat", "bare", "li2024")
METHODS = ("original", "shuffled", "nota", "nota_shuffled", "decoupled", "decoupled_shuffled", "decoupled_nota")
METHODS += ("decoupled_nota_shuffled",)


@dataclass(frozen=True)
class Golden:
    "A driver, the runs it is given, what it needs, and how near its numbers must be where they are next to nothing."

    driver: object
    runs: object  # a function, or None
    needs: tuple  # "shared": the benchmarks; "recorded": published replies with texts; "torch": a model here
    absolute: float

    def make(self):
        t = Tidy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # questions left out and the like
            self.driver(t, *([self.runs()] if self.runs else []))
        return t.table()


GOLDEN = {}


def golden(name, *needs, runs=None, absolute=1e-13):
    "Register a driver as that of a CSV."

    def register(driver):
        GOLDEN[name] = Golden(driver, runs, needs, absolute)
        return driver

    return register


# ---- what is asked: benchmarks, variants, prompts


def content_hash(questions):
    "Everything the questions say."
    return short_hash([[q.id, q.text, q.choices, q.answer, q.subject] for q in questions])


@golden("benchmarks")
def benchmarks(t):
    made = {"bundled math": load_benchmark("math"), "math shots": load_shots("math")}
    for how in [(300, 0, 100, 4), (50, 1, 100, 4), (40, 3, 20, 2), (40, 4, 1000, 5), (20, 5, 10**6, 26)]:
        made["math n={} seed={} largest={} choices={}".format(*how)] = math_benchmark(*how)
    for case, questions in made.items():
        t.add(case, {"questions": len(questions), "hash": content_hash(questions)})
        shown = questions[:40] if len(questions[0].choices) < 10 else []
        t.add(case, {"answers": "".join(str(q.answer) for q in shown)})
    t.add("first questions", {q.id: [q.text, *q.choices, q.answer] for q in four(12)})
    t.add("capacity", {n: _math_capacity(n) for n in (4, 5, 10, 50, 100, 1000)})


@golden("benchmarks_hub", "shared")
def benchmarks_of_the_hub(t):
    hub = SHARED / "data" / "hub"
    for name in ("medqa", "mmlu", "arc", "truthfulqa", "csqa"):
        questions = load_benchmark(name, path=hub, on_bad="skip")
        sizes = pd.Series([q.n_choices for q in questions]).value_counts().sort_index()
        t.add(name, {"questions": len(questions), "hash": content_hash(questions)})
        t.add(name, {"answers": sum(q.answer for q in questions)} | {f"of {k} choices": n for k, n in sizes.items()})
    for name in ("mmlu", "arc"):
        shots = load_shots(name, path=hub)
        t.add(f"{name} shots", {"questions": len(shots), "hash": content_hash(shots)})


@golden("randomness")
def randomness(t):
    t.add("uniforms", uniforms(6, 0, "question", "method", 3))
    t.add("permutation", {n: permutation(n, 1, "key") for n in (1, 2, 5, 12)})
    t.add("shuffle", list(operators.shuffle((3, 0, -1, 2), 0, "q", "nota_shuffled", 1)))
    t.add("fillers", {q.id: operators.fillers(q, 4, 5) for q in WORDED})
    ranks = [(3, 0), (3, 5), (5, 77), (8, 40_000), (26, math.factorial(26) - 2)]
    t.add("order of rank", {f"{rank} of {n}!": list(orders._order_of_rank(rank, n)) for n, rank in ranks})
    for n, limit in [(3, 10), (4, 5), (6, 4), (12, 3)]:
        found = orders._sample_orders(n, limit, 3, "x")
        t.add("sampled orders", {f"{limit} of {n}!": [list(o) for o in found]})
    texts = ("None of the above", "none of these.", "None", "None of the above are correct", "All of the above")
    t.add("says none", {text: says_none(text) for text in texts})


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


def shown(v):
    "What a variant shows. A choice that the question never had is only told from those it had."
    return [v.question_id, v.method, v.index, v.choices, v.answer, [max(s, -1) for s in v.sources], v.form, v.asked]


@golden("variants")
def variants(t):
    groups = [("math", load_benchmark("math"), 0), ("mixed", mixed(), 0), ("mixed", mixed(), 7), ("worded", WORDED, 0)]
    for case, options in VARIANTS.items():
        for group, questions, seed in groups:
            made = make_variants(questions, case.split()[0], seed, **options)
            by = {}
            for v in made:
                by.setdefault(v.method, []).append(shown(v))
            case_of = f"{case}, {group}, seed {seed}"
            t.add(case_of, {"variants": len(made), "answers": sum(v.answer for v in made)})
            t.add(case_of, {method: f"{len(some)} {short_hash(some)}" for method, some in by.items()})
    wrong = {q.id: q.distractors[i % len(q.distractors)] for i, q in enumerate(mixed()) if i % 4}
    written = {(q.id, i): f"Is it true that {q.text} {c}?" for q in WORDED for i, c in enumerate(q.choices)}
    for case, made in {
        "misleading, mixed": make_variants(mixed(), "misleading", misleading=wrong),
        "mcqa_plus written, worded": make_variants(WORDED, "mcqa_plus", statements=written),
    }.items():
        t.add(case, {"variants": len(made), "hash": short_hash([shown(v) for v in made])})


@golden("prompts")
def prompts(t):
    pool, questions = load_shots("math"), four(4)
    asked = {
        "cora": make_variants(questions),
        "mcqa_plus": make_variants(questions, "mcqa_plus"),
        "formats": make_variants(mixed(2), "formats", claims="all"),
        "misleading": make_variants(questions, "misleading", misleading={q.id: q.distractors[0] for q in questions}),
        "worded": make_variants(WORDED),
    }
    for template in TEMPLATES:
        for name, vs in asked.items():
            for k in (0, 3):
                made, case = make_prompts(vs, template, pool, k), f"{template}, {name}, {k} shots"
                t.add(case, {"prompts": len(made), "characters": sum(len(p.text) for p in made)})
                t.add(case, {"text": short_hash("\x1e".join(p.text for p in made))})
                t.add(case, {"messages": short_hash([p.messages for p in made])})
    first = make_prompts(asked["cora"][:1], "cora", pool, 1)[0]
    t.add("the first one with a shot", {"text": json.dumps(first.text), "messages": json.dumps(first.messages)})
    t.add("trials", [p.trial for p in make_prompts(asked["cora"][:2], trials=3)])


@golden("continuations")
def continuations(t):
    "What is asked where likelihoods are compared."
    from cora_nb.respondents.likelihood import ADAPTATIONS, context_and_continuations

    vs, pool = [*make_variants(WORDED[:3]), *make_variants(four(3), "mcqa_plus")], load_shots("math")
    for adaptation in ADAPTATIONS:
        for template in TEMPLATES:
            for k in (0, 2):
                made = [context_and_continuations(p, adaptation) for p in make_prompts(vs, template, pool, k)]
                t.add(f"{adaptation}, {template}, {k} shots", {"texts": len(made), "hash": short_hash(made)})


@golden("keys")
def keys(t):
    "Hashes by which replies and runs are found again: a run kept on disk is worth nothing once they change."
    math_questions = load_benchmark("math")
    t.add("benchmark_hash", {"math": benchmark_hash(math_questions), "worded": benchmark_hash(WORDED)})
    for family in ("cora", "mcqa_plus", "permutations", "cyclic", "reorderings", "order_swap", "formats"):
        for name, questions in {"math": math_questions, "worded": WORDED}.items():
            t.add("variants_hash", {f"{family}, {name}": variants_hash(make_variants(questions, family))})
    made = make_prompts(make_variants(four(2))[:3], trials=2, parse="first_token")
    for spec in ("chat:gpt-4o-mini", "chat:m,temperature=0.5,max_tokens=20,top_logprobs=5,seed=3", "simulated:seed=1"):
        who = make_respondent(spec)
        if getattr(who, "max_tokens", 1) is None:
            who.max_tokens = 1  # as was asked for once where nothing was said
        t.add(f"reply_key {spec}", [reply_key(who.request(p), p.trial) for p in made])
        t.add(f"describe {spec}", json.dumps(who.describe(), sort_keys=True))
    for spec in ("causal:organism/steady", "causal:organism/skewed,temperature=0.5", "likelihood:organism/steady"):
        who = make_respondent(f"{spec},device=cpu")
        t.add(f"reply_key of 0.2, {spec}", [reply_key(who.older_request(p), p.trial) for p in made])


# ---- how replies are read, and what was answered


NUMBERS = ("12", "-12", "1,200", "1/2", "0.5 km")
LETTER_RULES = ("first_token", "first_alphanumeric", "first_character", "careful")
RULES = {rule: rule for rule in LETTER_RULES} | {"yes_no": "yes_no", "only_one": "selected"}  # as it was: as it is
RULES |= {rule: rule for rule in ("in_words", "exact_number", "same_words")}


@golden("parsing")
def parsing(t):
    cities = WORDED[0].choices
    for i, reply in enumerate(json.loads((HERE / "replies.json").read_text(encoding="utf-8"))):
        case = f"{i:03} {reply!r}"
        for name, choices in {"cities": cities, "numbers": NUMBERS}.items():
            t.add(case, {name: " ".join(f"{was}={parse(reply, choices, rule)}" for was, rule in RULES.items())})
        t.add(case, {"selected": list(selected(reply, cities)), "pattern": " ".join(map(str, explain(reply, cities)))})
    t.add("nothing at all", {was: parse(None, cities, rule) for was, rule in RULES.items()})


def add_answers(t, name, responses):
    "The letters of each method in a hash, and what became of them."
    for method, part in responses.table.groupby("method", sort=False):
        ordered = part.sort_values(["question_id", "index", "trial"], kind="stable")
        for what, column in {"predictions": "prediction", "answers": "answer"}.items():
            t.add(name, {f"{method}/{what}": short_hash(",".join(map(str, ordered[column])))})
    outcomes = responses.summary()
    assert not outcomes.pop("cut_off").any()
    for method, row in outcomes.iterrows():
        t.add(name, {f"counts/{method}": " ".join(f"{what}={n}" for what, n in row.items())})


@golden("organism_answers", "torch", runs=organism_families)
def answers(t, runs):
    for name, responses in runs.items():
        add_answers(t, name, responses)
        known = account(responses.pool_trials())
        t.digest(f"{name}, hits", paper_counts(known).assign(unasked=known.questions["unknown"]))


@golden("organism_letters", "torch", runs=organism_runs)
def organism_letters(t, runs):
    "What the organisms say to every variant, one letter each: all that their scores rest on."
    for name, run in runs.items():
        place = run.table["method"].map({method: i for i, method in enumerate(METHODS)})
        ordered = run.table.assign(place=place).sort_values(["question_id", "place", "index"])
        letters = ordered.assign(letter=["-" if p < 0 else "ABCDE"[p] for p in ordered["prediction"]])
        t.add(name, letters.groupby("question_id")["letter"].agg("".join))


@golden("recorded_answers", "recorded")
def recorded_answers(t):
    whole = load_recorded("cat/medqa/medalpaca-7b", texts=True)
    part = whole.table[whole.table["question_id"].isin(whole.questions["question_id"][:60])].reset_index(drop=True)
    add_answers(t, "as recorded", medalpaca())
    for rule in LETTER_RULES:
        read = [parse(reply, "ABCDE"[:n], rule) for reply, n in zip(part["reply"], part["n_choices"])]
        told = {"prediction": read, "correct": np.array(read) == part["answer"].to_numpy()}
        found = as_responses(part.drop(columns="state").assign(**told))
        add_answers(t, f"parse {rule}", found)
        t.add(f"parse {rule}, scores", values_of(score(found)))
    sources = [",".join(str(max(s, -1)) for s in row) for row in medalpaca().table["sources"]]
    t.add("sources", short_hash("\n".join(sources)))


@golden("likelihoods", "torch", absolute=1e-4)
def likelihoods(t):
    "Scores of each adaptation and normalisation, for some questions as they are and with fewer choices."
    from cora_nb.respondents.likelihood import LikelihoodRespondent, implementations

    few = [v for v in make_variants(four(2)) if v.method == "original" or v.method == "decoupled" and v.index == 0]
    asked = [few, make_variants(four(1), "mcqa_plus")[-2:]]  # a run is of one family
    others = [
        {"adaptation": "joint-desc", "normalization": "byte"},
        {"adaptation": "separate", "normalization": "pmi"},
        {"adaptation": "joint-label", "seam": "harness"},
    ]
    for name in ORGANISMS:
        found = implementations(f"organism/{name}")
        first = next(iter(found.values()))
        for options in others:
            made = found[" ".join(options.values())] = LikelihoodRespondent(f"organism/{name}", **options)
            made._loaded, made._lock = first._loaded, first._lock
        for way, respondent in found.items():
            runs = [evaluate(respondent, vs, Asking("bare", parse="first_token"), progress=False).table for vs in asked]
            for r in pd.concat(runs).itertuples():
                t.add(f"{name} {way} {r.question_id} {r.method} {r.index}", [*r.scores, r.confidence, r.prediction])


# ---- scores


PRINTED = ["MCQA", "MCQA+", "MV", "BMCA(1.0)", "CI", "CoRA"]


@golden("scores", runs=simulations)
@golden("recorded_scores", runs=recorded_runs)
@golden("organism_scores", "torch", runs=organism_runs)
def scores(t, runs):
    for name, responses in runs.items():
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
                t.add(f"{name}, by {by}", found[PRINTED])
                t.digest(f"{name}, by {by}", found)
        counts = paper_counts(account(responses))
        curve = car_curve(Counts(counts["hits"], counts["trials"], counts["original"]), 21)
        t.add(f"{name}, curve", curve)
        t.add(f"{name}, CORE of it", core_index(curve))


@golden("intervals", runs=lambda: simulations("ann", "guesser", "knows all", "mixed bob", "in order"))
@golden("recorded_intervals", runs=recorded_runs)
def intervals(t, runs):
    for name, responses in runs.items():
        for level in (0.95, 0.8):
            found = score(responses, ci=level).set_index("score")
            t.add(f"{name}, {level}", found[["low", "high"]])
        curve = curve_table(responses, points=6)
        t.add(f"{name}, curve", curve.set_index("place")[["value", "low", "high"]])
        if responses.table["subject"].notna().all():
            found = score(responses, ci=0.95, clusters="subject")
            t.add(f"{name}, clusters", found.set_index("score").loc[PRINTED, ["low", "high"]])
            found = score(responses, by="subject", ci=0.9, thresholds=(1.0,))
            t.digest(f"{name}, by subject", found.set_index(["subject", "score"])[["value", "low", "high"]])
        found = score(responses, by="method", ci=0.9, thresholds=())
        t.digest(f"{name}, by method", found.set_index(["method", "score"])[["value", "low", "high"]])


@golden("recorded_chance", runs=recorded_runs, absolute=0.0)
def chance(t, runs):
    for name, responses in runs.items():
        for position in ((1,), (4, 1), (1, 2, 3)):
            t.add(f"{name}, position {position}", values_of(guessing.chance_scores(responses, position=position)))
        by_chance = guessing.chance_scores(responses)
        t.add(f"{name}, corrected", values_of(guessing.corrected(score(responses), by_chance)))
        rows = np.flatnonzero(responses.table["trial"] == responses.trials[0])  # numbered as in the whole table
        t.digest(f"{name}, rates", guessing.guess_rates(responses).set_axis(rows))


@golden("stopping")
def stopping(t):
    "How many calls early stopping takes, and what it then knows."
    ways = [
        ({"stop": "cora"}, Settled()),
        ({"stop": "bmca"}, Settled(THRESHOLDS)),
        ({"stop": "bmca", "thresholds": (0.8,)}, Settled((0.8,))),
        ({"stop": "cora", "batch": 20}, Settled(batch=20)),
    ]
    for name, responses in simulations("ann", "bob", "guesser", "knows all", "mixed ann").items():
        for called, stop in ways:
            replayed = RecordedRespondent(responses)
            part = evaluate(replayed, simulated_variants(name), FIRST_TOKEN, stop, progress=False)
            case, calls = f"{name}, {called}", part.facts.calls
            t.add(f"{case}, calls", {what: calls[what] for what in ("prompts", "asked", "not_asked")})
            t.add(f"{case}, scores", values_of(score(part)))
            gone = in_state(part.table, "not_asked")
            t.add(f"{case}, asked by method", part.table[~gone].groupby("method").size())
    places = [(n, h, u) for n in (5, 25) for h in (0, 2, 5) for u in (0, 1, 5) if h + u <= n]
    for c in (0.28, 0.5, 1.0):
        t.add(f"settled at {c}", {f"{h} of {n}, {u} left": is_settled(h, u, n, (c,)) for n, h, u in places})


# ---- comparison


def paired_table(found, first, second):
    "Differences beside what each of the two has by itself."
    each = {"first": score_counts(account(first)), "second": score_counts(account(second))}
    columns = {"difference": values_of(found), **{c: values_of(found, c) for c in ("low", "high", "p")}}
    return pd.DataFrame({what: values.loc[found["score"]] for what, values in each.items()} | columns)


def wide_ranks(found):
    "A row for each score and respondent: value, rank, expected rank, and the probabilities of the ranks."
    rows, columns = {}, {"": "value", "rank": "rank", "expected rank": "expected"}
    for row in found.itertuples():
        name, _, what = row.score.partition(", ")
        rows.setdefault((name, row.respondent), {})[columns.get(what, row.place)] = row.value
    return pd.DataFrame(rows).T


@golden("comparison", runs=lambda: simulations("ann", "bob", "guesser", "knows all"))
def compared(t, some):
    names, options = list(some), dict(scores=["MCQA", "MV", "CoRA"], resamples=RESAMPLES, level=0.9, seed=3)
    first, second = pair = [some[name] for name in names[:2]]
    for clusters in (None, "subject"):
        found = comparison.compare(first, second, resamples=RESAMPLES, clusters=clusters)
        t.add(f"{names[0]} and {names[1]}, clusters {clusters}", paired_table(found, first, second))
        found = comparison.rank_table(some, resamples=RESAMPLES, clusters=clusters)
        t.add(f"ranks, clusters {clusters}", wide_ranks(found))
    plain = comparison.compare_all(some, None, **options)
    for correction in ("holm", "bh"):
        found = comparison.compare_all(some, correction, **options)
        tables = {}
        for one, other in combinations(names, 2):
            mine, adjusted = (part[part["respondent"] == f"{one} - {other}"] for part in (plain, found))
            assert mine[["score", "value", "low", "high"]].equals(adjusted[["score", "value", "low", "high"]])
            p = values_of(adjusted, "p")
            tables[one, other] = paired_table(mine, some[one], some[other]).assign(p_adjusted=p)
        rows = {(s, *names): table.loc[s] for s in options["scores"] for names, table in tables.items()}
        t.add(f"all, {correction}", pd.DataFrame(rows).T)
    for asked in ({"half_width": 0.03}, {"difference": 0.05}, {}):
        for s in ("MCQA", "CoRA"):
            pilot = first if "half_width" in asked else pair
            found = planning.questions_needed(pilot=pilot, score=s, resamples=RESAMPLES, **asked)
            t.add(f"questions needed, {s}, {asked}", found)


# ---- papers


@golden("published")
def published(t):
    for paper, numbers in [(p, PAPERS[p]) for p in ("cora", "mcqa_plus")]:
        for number in numbers:
            table = load_published(number, paper)
            table.index = [f"{i:04}" for i in range(len(table))]
            t.digest(f"{paper} table {number}", table)
    for (model, benchmark), table in order.published_swaps().items():
        t.add(f"swaps {model} {benchmark}", [",".join(map(str, row)) for row in table.to_numpy()])


COUNTED_WITH = {  # (table, score) -> the score of the same place that rests on the number of questions
    (2, "share"): "accuracy",
    (4, "T/F: wrong"): "T/F: right",
    (7, "MCQA+"): "MCQA",
    (8, "S_c"): "Acc",
    (8, "Acc-H"): "Acc",
}


def paper_tables(runs):
    "The numbers of Tables 2 to 8 by their places in the paper, and how many questions they rest on."
    rows, columns = {}, ["method", "place", "score", "value", "low", "high", "n"]
    for number in range(2, 9):
        found = mcqa_plus_results(runs, number).reindex(columns=columns).astype(object)
        found = found.where(found.notna(), None)
        of = {(row["method"], row["place"], row["score"]): row for row in found.to_dict("records")}
        for (method, place, name), row in of.items():
            if name.endswith(" difference"):
                continue
            subset, _, setting = (method or "all").partition(", ")
            of_choices, of_same = (int(place) if number == n and place is not None else "nan" for n in (8, 2))
            counted = of[method, place, COUNTED_WITH.get((number, name), name)]
            numbers = {what: row[what] for what in ("value", "low", "high")}
            numbers["difference"] = of.get((method, place, f"{name} difference"), {"value": None})["value"]
            key = (number, subset, setting or "nan", of_choices, of_same, name)
            rows[key] = numbers | {"questions": counted["n"]}
    return rows


@golden("battery")
def battery(t):
    who = {"ann": SimulatedRespondent(**ANN, with_scores=True), "bob": SimulatedRespondent(**BOB)}
    for name, respondent in who.items():
        for group in ("few", "mixed"):
            runs = prepare_steps(mcqa_plus_steps(QUESTIONS[group]())).ask(respondent, Running(progress=False))
            t.add(f"{name}, {group}, rows", {step: len(r) for step, r in runs.items()})
            for key, numbers in paper_tables(runs).items():
                t.add(f"{name}, {group}", {f"{label(key)}/{what}": value for what, value in numbers.items()})


# ---- recorded replies: ablations, consistency, calibration


def by_part(result):
    "A row for each score: on all, mean, sd, difference and interval of the resamples."
    values = values_of(result)
    names = [name for name in values.index if ", " not in name]

    def part(what, values=values):
        return values[[f"{name}, {what}" for name in names]].to_numpy()

    sd, low, high = part("sd of resamples"), *(part("mean of resamples", values_of(result, c)) for c in ("low", "high"))
    columns = {"full": values[names], "mean": part("mean of resamples"), "sd": sd, "sd_x1000": 1000 * sd}
    columns |= {"difference": part("difference from all"), "low": low, "high": high}
    return pd.DataFrame(columns, index=names)


def add_table(t, name, table, **parts):
    "A table of ablations by its parts, the standard deviations times 1,000, and as the paper prints it."
    values = table[table["method"] != "all"].set_index(["respondent", "score"])["value"]
    for part, suffix in parts.items():
        for (who, s), value in values.items():
            if s.removesuffix(suffix) in ablations.PRINTED_SCORES and s.endswith(suffix):
                factor = 1000 if part == "sd_x1000" else 1
                t.add(name, {f"{part}:{s.removesuffix(suffix)}/{who}": factor * value})
    t.add(f"{name} in print", paper_layout(table))


@golden("recorded_ablations", "recorded", runs=recorded_runs)
def ablation(t, runs):
    for name, responses in runs.items():
        for methods in ("same_size", "decoupled", ["original", "nota"], lambda r: r["index"] == 0):
            case = f"{name}, {'first of each' if callable(methods) else methods}"
            t.add(case, values_of(ablations.subset_scores(responses, methods)))
        full = score_counts(account(responses))
        for over in ablations.OVER:
            drawn = ablations.variant_bootstrap(responses, resamples=RESAMPLES // 2, over=over, seed=5)
            found = by_part(ablations.bootstrap_summary(drawn, full))
            t.add(f"{name}, over {over}", found[["mean", "sd_x1000", "low", "high"]].loc[PRINTED])
            t.digest(f"{name}, over {over}", found)
        few = ablations.variant_bootstrap(responses, draws=7, resamples=100, methods="same_size")
        t.digest(f"{name}, 7 draws", by_part(ablations.bootstrap_summary(few, full, 0.8)))
        right = ablations.right_matrix(responses, by_size=True)
        rows = [",".join([label(key), *map(text_of, row)]) for key, row in zip(right.index, right.to_numpy().tolist())]
        t.add(f"{name}, right matrix", f"{len(right)} x {right.shape[1]}, {short_hash(chr(10).join(sorted(rows)))}")
    add_table(t, "table 5", ablations.ablation_table(runs), subset="", difference=", difference from all")
    table = ablations.bootstrap_table(runs, resamples=RESAMPLES // 2, by_size=True)
    names = {"mean": ", mean of resamples", "sd_x1000": ", sd of resamples", "difference": ", difference from all"}
    add_table(t, "table 6", table, **names)
    tests = [lambda rc: rc > 0.5, *(lambda rc, c=c: rc >= c for c in (0.28, 0.5, 1.0))]
    t.add("least hits", {n: [ablations._least_hits(n, passes) for passes in tests] for n in (1, 7, 25, 100)})


GROUP_SCORES = {
    "K": "K",
    "accuracy": "accuracy",
    "mode_right": "most frequent right",
    "pearson": "Pearson's r",
    "spearman": "Spearman's rho",
}


def add_group(t, case, name, sequences, *level):
    "Counts, means and correlations of a group."
    some = consistency.consistency_by({name: sequences}, *level).set_index("score")
    silent = some.loc["replies without a choice"]
    row = {"questions": some.loc["accuracy", "n"], "prompts": int(some.loc["prompts", "value"])}
    row |= {"answers": silent["n"], "no_choice": round(silent["value"] * silent["n"])}
    for what, named in GROUP_SCORES.items():
        row |= dict(zip((what, f"{what}_low", f"{what}_high"), some.loc[named, ["value", "low", "high"]]))
    row |= {f"{what}_p": some.loc[GROUP_SCORES[what], "p"] for what in ("pearson", "spearman")}
    t.add(case, {f"{name}/{what}": value for what, value in row.items()})


@golden("recorded_consistency", "recorded")
def recorded_consistency(t):
    found = consistency.label_sequences(load_recorded("li2024/consistency_lfg_gpt35")["Answer"].tolist(), "D")
    t.digest("long form", found)
    add_group(t, "long form, group", "gpt-3.5", found)
    both = paired.correlations(found["K"], found["accuracy"], resamples=RESAMPLES)
    both = both.set_index(both["score"].str.split("'").str[0].str.lower())
    t.add("long form, correlations", both[["value", "low", "high", "p", "n"]])
    first, table = medalpaca().questions["question_id"][:200], medalpaca().table
    originals = table["question_id"].isin(first) & (table["method"] == "original")
    for unparsed in consistency.UNPARSED:
        found = consistency.prompt_sequences(medalpaca().rows(originals.to_numpy(), chosen="original"), unparsed)
        t.digest(f"medalpaca, {unparsed}", found)
        add_group(t, f"medalpaca, {unparsed}, group", "medalpaca", found, 0.9)


def errors_of(table):
    return values_of(calibration.calibration_errors(table)).rename({"unweighted ECE": "ECE_unweighted"})


def reliability_of(table):
    "A row for each bin."
    scores = {s: rows.set_index("place") for s, rows in calibration.reliability(table).groupby("score")}
    kept = scores["accuracy"]
    edges = pd.DataFrame({"low": scores["lower edge"]["value"], "high": kept.index}, kept.index)
    means = {"confidence": scores["confidence"]["value"], "accuracy": kept["value"]}
    means |= {"accuracy_low": kept["low"], "accuracy_high": kept["high"], "gap": scores["gap"]["value"]}
    return edges.assign(n=kept["n"].astype(int), **means).set_axis(table.index)


PARTS = {"Brier score": "brier", "variance within bins": "within_variance"}
PARTS |= {"covariance within bins": "within_covariance"}


@golden("recorded_calibration", "recorded")
def recorded_calibration(t):
    raw = load_recorded("li2024/confidence_gpt35")
    for name in ("4_MC", "3_MC", "2_MC", "4_LFG"):
        x, y = raw[f"{name}_C"].to_numpy(), raw[f"{name}_L"].to_numpy()
        for method in calibration.BINNINGS:
            for bins in (5, 100):
                table, case = calibration.binned(x, y, bins, method), f"{name}, {method} {bins}"
                t.add(f"{case}, errors", errors_of(table))
                t.add(f"{case}, brier", values_of(calibration.brier_parts(table)).rename(PARTS))
                t.digest(f"{case}, reliability", reliability_of(table))
        t.add(f"{name}, brier", calibration.brier(x, y))
        for weighted in (True, False):
            t.add(f"{name}, ece {weighted}", calibration.ece(x, y, weighted=weighted))
            found = calibration.ece_interval(x, y, weighted=weighted, resamples=300)
            ece = "ECE" if weighted else "unweighted ECE"
            seen, by_chance = lookup(found, ece), lookup(found, f"{ece} by chance")
            row = {"ECE": seen["value"], "low": seen["low"], "high": seen["high"]}
            row |= {"by_chance": by_chance["value"], "by_chance_high": by_chance["high"], "p": seen["p"]}
            t.add(f"{name}, interval {weighted}", row)
            t.add(f"{name}, chance {weighted}", calibration.chance_errors(x, weighted=weighted, simulations=200).mean())
        t.add(f"{name}, joined", errors_of(calibration.joined(calibration.binned(x, y, 100), 20)))
