"""How often the intervals of precise stopping hold the truth at the moment of stopping, and what they cost.

python tools/benchmarks/sim_precise.py [--orders 500] [--half-width 0.02] [--only TEXT] [--even]
    [--recorded | --differences | --scores | --planned]

For each kind of respondent and each size of benchmark there is one fixed population of outcomes, and a number of random
orders. A row of the table has: the true MCQA, BMCA(1.0) and CoRA of the population; how often the interval held CoRA;
the mean and the greatest share of the full run's calls, and the mean calls for each question (the price of the plain
benchmark is 1); beside them the share of exact stopping (mean of three orders), and of sampling questions alone: the
smallest random sample of questions, each asked until its first wrong reply, whose expected interval is narrow enough,
found with knowledge of the truth and without looks. Then the greatest number of calls as a multiple of exact stopping,
how many runs had two looks, how many settled every question, and the mean and the spread of the error.

Some methods are harder than others; with `--even` they are not, so that questions fail late, which is the dearest
case. `--recorded` takes the recorded replies and the two organisms (asked once, kept in /tmp) instead.

`--differences` counts for pairs of respondents, correlated by question, how often the interval of the difference of
their CoRA holds the difference on all questions of the kind, and that of the full runs: a new benchmark is drawn each
time. The same order is that of one `sample_seed`.

`--scores` does it for scores that need whole questions, on benchmarks of 300 and 1,273 questions of which 2% fail: how
often the interval held, the mean share of the questions that were asked, and how many runs settled every question.

`--planned` compares the calls with those that `expected_calls` plans, on 300 questions with 20 variants: means of six
populations of each kind, with two orders for exact stopping and four for precise stopping.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import fsolve
from scipy.special import expit, logit, ndtr
from scipy.stats import beta

from cora_nb.core import Question
from cora_nb.metrics.account import Account, score_counts
from cora_nb.metrics.contributions import score_intervals
from cora_nb.metrics.sampled import part_estimates
from cora_nb.runs.asking import Precise
from cora_nb.runs.stopping import ASSUMED, expected_calls, RIGHT, _settling_limits, _Survey, _UNASKED, WRONG
from cora_nb.stats.shares import moved_interval, squared_quantile
from cora_nb.stats.planning import phase_estimates, PhaseCounts
from cora_nb.stats.shares import count_interval
from cora_nb.variants.families import make_variants

SIZES = {"MedQA's size": (1273, 5), "MMLU's size": (14_042, 4)}
KINDS = {  # MCQA and BMCA(1.0) of each half of the subjects, and the lean on the first place
    **{kind: [scores] for kind, scores in ASSUMED.items()},  # weak, middling, strong, very strong
    "leaning": [(0.62, 0.12)],
    "two-faced": [(0.95, 0.65), (0.45, 0.05)],
}
HARDER = {"nota": 1.5, "nota_shuffled": 1.5, "decoupled": -1.0, "decoupled_shuffled": -1.0}  # in log-odds


def layout(N, n_choices):
    "The method and the place of the answer of each prompt, the original first: two arrays of numbers, (N, K)."
    questions = [Question(f"q{i}", "?", tuple("abcdefg"[:n_choices]), i % n_choices) for i in range(N)]
    variants = make_variants(questions)
    names = list(dict.fromkeys(v.method for v in variants))
    K = len(variants) // N
    method = np.array([names.index(v.method) for v in variants]).reshape(N, K)
    place = np.array([v.answer for v in variants]).reshape(N, K)
    assert names[0] == "original" and (method[:, 0] == 0).all()
    return names, method, place


def population(kind, names, method, place, even=False, seed=0):
    "The outcomes of a kind of respondent: abilities are Beta, and harder methods and places lower the odds."
    rng, (N, K) = np.random.default_rng(seed), method.shape
    effect = -np.array([HARDER.get(name, 0.0) * (not even) for name in names])[method]
    if kind == "leaning":
        effect = effect + np.where(place == 0, 2.0, -0.5)
    halves = KINDS[kind]
    subject = rng.integers(57, size=N)
    outcomes = np.zeros((N, K), bool)
    u = (np.arange(400) + 0.5) / 400
    few = effect[rng.choice(N, 100, replace=False)]
    for half, (m, b) in enumerate(halves):

        def off(x):
            g = np.clip(beta.ppf(u, *np.exp(x)), 1e-9, 1 - 1e-12)
            p = expit(logit(g)[:, None, None] + few)
            return p[:, :, 0].mean() - m, np.log(p.prod(axis=2).mean() / b)

        a = np.exp(fsolve(off, [0.0, -0.5 if m > 0.5 else 0.3]))
        rows = np.flatnonzero(subject % len(halves) == half)
        g = np.clip(rng.beta(*a, len(rows)), 1e-9, 1 - 1e-12)
        outcomes[rows] = rng.random((len(rows), K)) < expit(logit(g)[:, None] + effect[rows])
    return outcomes


def cells_of(method, place):
    "A number for each method and place of the answer, and the method of each."
    pairs, cells = np.unique(np.stack([method.ravel(), place.ravel()], 1), axis=0, return_inverse=True)
    return cells.reshape(method.shape), pairs[:, 0]


def survey_once(outcomes, cells, methods, order, batch=4096, stop=Precise(), **options):
    "One run: the survey at its end."
    mine, survey = outcomes[order], _Survey(cells[order], methods, stop, **options)
    while len((asked := survey.ask(batch))[0]):
        survey.tell(*asked, np.where(mine[asked], RIGHT, WRONG))
    return survey


def alone(outcomes, half_width, per_question):
    "Calls of the smallest sample of questions, asked by exact stopping, whose interval is narrow enough."
    N, right = len(outcomes), outcomes[:, 0].mean()
    always, z2 = outcomes.all(axis=1).mean() / right, squared_quantile(0.95)
    low, high = 1, N
    while low < high:
        n = (low + high) // 2
        r = n * right
        counts = PhaseCounts(N, n, r, 0, 0, (r,), (r * always,), (n >= N,))
        _, least, most = phase_estimates(counts, z2, ["CoRA"])["CoRA"]
        low, high = (low, n) if (most - least) / 2 <= half_width else (n + 1, high)
    return low * per_question


def report(name, outcomes, cells, methods, orders, half_width):
    "A row of the table."
    N, K = outcomes.shape
    m, b = outcomes[:, 0].mean(), outcomes.all(axis=1).mean()
    truth, start = m * (1 - m + b), time.process_time()
    options = {"stop": Precise(half_width=half_width)}
    exact = []
    for seed in range(3):
        order = np.random.default_rng(10_000 + seed).permutation(N)
        survey = survey_once(outcomes, cells, methods, order, 256, **options, pilot=N)
        exact.append((survey.state != _UNASKED).sum())
    held, calls, looks, wide, whole, errors = [], [], [], [], 0, []
    for seed in range(orders):
        survey = survey_once(outcomes, cells, methods, np.random.default_rng(seed).permutation(N), **options)
        calls.append((survey.state != _UNASKED).sum())
        looks.append(survey.looks)
        if survey.exact:
            held.append(True)
            whole += 1
            continue
        found = phase_estimates(survey.counts(), squared_quantile(survey.level_at_stop))["CoRA"]
        held.append(found[1] - 1e-12 <= truth <= found[2] + 1e-12)
        wide.append((found[2] - found[1]) / 2)
        errors.append(found[0] - truth)
    calls, exact = np.array(calls), np.array(exact)
    sample = alone(outcomes, half_width, exact.mean() / N)
    print(
        f"{name:28} {m:.2f} {b:.2f} {truth:.3f} {np.mean(held):8.1%} {calls.mean() / N / K:7.1%} "
        f"{calls.max() / N / K:6.1%} {calls.mean() / N:6.2f} {exact.mean() / N / K:7.1%} {sample / N / K:7.1%} "
        f"{calls.max() / exact.max():6.2f} {np.mean(np.array(looks) > 1):6.1%} {whole / orders:6.1%} "
        f"{np.mean(errors) if errors else 0:+.4f} {np.std(errors) if errors else 0:.4f} "
        f"{time.process_time() - start:5.0f}s",
        flush=True,
    )


PAIRS = [("strong", "middling"), ("very strong", "strong"), ("strong", "strong")]
QUANTILES = (np.arange(4000) + 0.5) / 4000


def ability(kind, effect):
    "The abilities of a kind at `QUANTILES`, in log-odds, and its CoRA on all questions of the kind."
    m, b = KINDS[kind][0]
    few = effect[np.random.default_rng(1).choice(len(effect), 100, replace=False)]

    def log_odds(x, at):
        return logit(np.clip(beta.ppf(at, *np.exp(x)), 1e-9, 1 - 1e-12))

    def shares(x, at):
        p = expit(log_odds(x, at)[:, None, None] + few)
        return p[:, :, 0].mean(), p.prod(axis=2).mean()

    def off(x):
        right, always = shares(x, QUANTILES[5::10])
        return right - m, np.log(always / b)

    x = fsolve(off, [0.0, -0.5])
    right, always = np.mean([shares(x, part) for part in QUANTILES.reshape(-1, 400)], axis=0)
    return log_odds(x, QUANTILES), right * (1 - right + always)


def account_of(outcomes, state=None):
    "The account of all outcomes, or of what was asked of them."
    right = outcomes if state is None else state == RIGHT
    unknown = np.zeros(len(right), dtype=int) if state is None else (state == _UNASKED).sum(axis=1)
    table = {"right": right.sum(axis=1), "unknown": unknown, "own_right": right[:, 0].astype(float)}
    table["wrong"] = right.shape[1] - table["right"] - unknown
    return Account(pd.DataFrame(table))


def over_questions(outcomes, cells, methods, order, half_width):
    "CoRA with its interval over questions: of a full run for no order, else of a run that was stopped."
    if order is not None:
        survey = survey_once(outcomes, cells, methods, order, stop=Precise(half_width=half_width))
    if order is None or survey.exact:
        return tuple(score_intervals(account_of(outcomes), (1.0,)).loc["CoRA", ["value", "low", "high"]])
    value, *ends = phase_estimates(survey.counts(), squared_quantile(survey.level_at_stop))["CoRA"]
    wilson = count_interval(value * len(outcomes), len(outcomes), 0.95)[1:]
    return value, *np.clip(moved_interval(value, [ends, wilson]), 0, 1)


def differences(size, pair, method, place, effect, orders, half_width, correlation=0.7):
    "Rows of the table of differences: both estimated in one order, in two orders, and only the first."
    (N, K), (cells, methods), start = method.shape, cells_of(method, place), time.process_time()
    (one, first), (two, second) = (ability(kind, effect) for kind in pair)
    rng, found = np.random.default_rng(0), {"one order": [], "two orders": [], "one in full": []}
    for _ in range(orders):
        common, runs = correlation**0.5 * rng.standard_normal(N), []
        for table in (one, two):
            u = ndtr(common + (1 - correlation) ** 0.5 * rng.standard_normal(N))
            runs.append(rng.random((N, K)) < expit(np.interp(u, QUANTILES, table)[:, None] + effect))
        full = [r[:, 0].mean() * (1 - r[:, 0].mean() + r.all(axis=1).mean()) for r in runs]
        orders_of = {"one order": [np.arange(N)] * 2, "two orders": [np.arange(N), rng.permutation(N)]}
        orders_of["one in full"] = [np.arange(N), None]
        for how, both in orders_of.items():
            (a, *ends), (b, *others) = (over_questions(r, cells, methods, o, half_width) for r, o in zip(runs, both))
            d = a - b
            low, high = moved_interval(d, [[d + e - a for e in ends], [d + b - e for e in others[::-1]]])
            found[how].append((low <= first - second <= high, low <= full[0] - full[1] <= high, (high - low) / 2, d))
    for how, rows in found.items():
        held, full, half, d = np.array(rows, float).T
        print(
            f"{' - '.join(pair):24} {size:14} {how:13} {first - second:.3f} {held.mean():8.1%} {full.mean():8.1%} "
            f"{half.mean():.4f} {1.96 * d.std():.4f} {time.process_time() - start:5.0f}s",
            flush=True,
        )


def one_score(name, outcomes, order, half_width):
    "A run for a score that needs whole questions: the survey at its end, low and high."
    (N, K), mine = outcomes.shape, outcomes[order]

    def ends(questions, level):
        rows = account_of(mine[:questions], survey.state[:questions]).questions
        return part_estimates(rows, N, level, [name]).loc[name, ["low", "high"]].to_numpy(float)

    cells = np.tile(np.maximum(0, np.arange(K) - 1), (N, 1))
    limits = _settling_limits([name])
    survey = _Survey(
        cells, np.arange(K - 1) % 4, Precise(name, half_width), limits, lambda n, level: np.ptp(ends(n, level)) / 2
    )
    while len((asked := survey.ask(10**6))[0]):
        survey.tell(*asked, np.where(mine[asked], RIGHT, WRONG))
    return survey, *((0, 1) if survey.exact else ends(survey.originals, survey.level_at_stop))


def nearly_perfect(N, K):
    "Respondents who fail at 2% of the questions: names and outcomes."
    rng, bad = np.random.default_rng(0), np.arange(N) < round(0.02 * N)
    right = np.where(bad[:, None], 0.0, 1.0) * np.ones(K)
    yield "always wrong at 2%", right > 0.5
    yield "0.4 right at 2%", rng.random((N, K)) < np.where(bad[:, None], 0.4, 1.0)
    yield "0.3 right at 2%, slips", rng.random((N, K)) < np.where(bad[:, None], 0.3, 0.98)


def whole_questions(orders, half_width, only):
    "The table for scores that need whole questions."
    print(f"{'questions':9} {'respondent':24} {'score':10} {'truth':6} {'coverage':8} {'asked':>6} half   {'whole':>6}")
    for N, K in ((300, 20), (1273, 26)):
        for who, outcomes in nearly_perfect(N, K):
            for name in ("MV", "RC", "MCQA+", "CORE", "BMCA(0.8)"):
                if only not in f"{N} {who} {name}":
                    continue
                truth, rows = score_counts(account_of(outcomes))[name], []
                for seed in range(orders):
                    survey, low, high = one_score(
                        name, outcomes, np.random.default_rng(seed).permutation(N), half_width
                    )
                    held = survey.exact or low - 1e-9 <= truth <= high + 1e-9
                    half = np.nan if survey.exact else (high - low) / 2
                    rows.append((held, survey.originals / N, half, survey.exact))
                held, asked, half, whole = np.array(rows, float).T
                print(
                    f"{N:9} {who:24} {name:10} {truth:.4f} {held.mean():8.1%} {asked.mean():6.1%} "
                    f"{np.nanmean(half) if not whole.all() else 0:.4f} {whole.mean():6.1%}",
                    flush=True,
                )


def planned(N=300, n_choices=4, populations=6):
    "The table of calls beside those planned."
    names, method, place = layout(N, n_choices)
    cells, methods = cells_of(method, place)

    def calls(outcomes, seed, half_width, **options):
        order = np.random.default_rng(seed).permutation(N)
        survey = survey_once(outcomes, cells, methods, order, 64, Precise(half_width=half_width), **options)
        return (survey.state != _UNASKED).sum()

    print(f"{'respondent':24} {'MCQA':5} {'BMCA':5} exact planned ratio, and so within 0.02 and within 0.03")
    for kind in ASSUMED:
        for even in (False, True):
            people = [population(kind, names, method, place, even, seed) for seed in range(populations)]
            scores = np.mean([(p[:, 0].mean(), p.all(axis=1).mean()) for p in people], axis=0)
            said = f"{kind + ', even' * even:24} {scores[0]:.3f} {scores[1]:.3f}"
            found = [(np.mean([calls(p, s, 0.02, pilot=N) for p in people for s in range(2)]), "exact", 0.02)]
            found += [(np.mean([calls(p, s, w) for p in people for s in range(4)]), "precise", w) for w in (0.02, 0.03)]
            for mean, what, w in found:
                plan = expected_calls(method.shape, kind, Precise(half_width=w))[what]
                said += f"  {mean:5.0f} {plan:5} {mean / plan:.2f}"
            print(said, flush=True)


def recorded():
    "The recorded replies and the organisms on the bundled benchmark: names and outcomes with their layout."
    from cora_nb.benchmarks.arithmetic import math_benchmark
    from cora_nb.papers.published import load_recorded
    from cora_nb.respondents.causal import CausalRespondent
    from cora_nb.responses.files import read_responses, write_responses
    from cora_nb.runs.evaluate import evaluate

    runs = {"medalpaca-7b, recorded": load_recorded("cat/medqa/medalpaca-7b").first_trial()}
    for organism in ("steady", "skewed"):
        kept = Path(f"/tmp/sim_precise_{organism}")
        if not kept.exists():
            who = CausalRespondent(f"organism/{organism}")
            write_responses(evaluate(who, make_variants(math_benchmark()), progress=False), kept)
        runs[f"organism {organism}"] = read_responses(kept)
    for name, run in runs.items():
        t = run.table.assign(first=run.table["method"] != "original").sort_values(
            ["question_id", "first", "method", "index"], kind="stable"
        )
        N = t["question_id"].nunique()
        K = len(t) // N
        method = t["method"].factorize()[0].reshape(N, K)
        yield name, t["correct"].to_numpy().reshape(N, K), *cells_of(method, t["answer"].to_numpy().reshape(N, K))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=500)
    parser.add_argument("--half-width", type=float, default=0.02)
    parser.add_argument("--only", default="")
    parser.add_argument("--even", action="store_true")
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--differences", action="store_true")
    parser.add_argument("--scores", action="store_true")
    parser.add_argument("--planned", action="store_true")
    args = parser.parse_args()
    if args.planned:
        planned()
        raise SystemExit
    if args.scores:
        whole_questions(args.orders, args.half_width, args.only)
        raise SystemExit
    if args.differences:
        head = f"{'difference':8} {'both full':8} {'half':6} {'paired':6}"
        print(f"{'pair':24} {'size':14} {'estimated':13} {'truth':5} {head}")
        for size, (n, n_choices) in SIZES.items():
            names, method, place = layout(n, n_choices)
            effect = -np.array([HARDER.get(name, 0.0) for name in names])[method]
            for pair in PAIRS:
                if args.only in f"{pair}, {size}":
                    differences(size, pair, method, place, effect, args.orders, args.half_width)
        raise SystemExit
    print(
        f"{'':28} {'MCQA':4} {'BMCA':4} {'CoRA':5} {'coverage':8} {'calls':>7} {'most':>6} {'each q':>6} {'exact':>7} "
        f"{'alone':>7} {'/exact':>6} {'2 looks':>6} {'whole':>6} {'bias':>7} {'sd':6}"
    )
    if args.recorded:
        for row in recorded():
            report(*row, args.orders, args.half_width)
        raise SystemExit
    for size, (n, n_choices) in SIZES.items():
        names, method, place = layout(n, n_choices)
        cells, methods = cells_of(method, place)
        for kind in KINDS:
            if args.only in f"{kind}, {size}":
                outcomes = population(kind, names, method, place, args.even)
                report(f"{kind}, {size}", outcomes, cells, methods, args.orders, args.half_width)
