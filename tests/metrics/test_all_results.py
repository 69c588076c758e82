"Every measure returns a result: one list of columns, printed by one `render`, drawn by one picture."

import importlib
import inspect
import warnings
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from fastcore.docments import docments

import cora_nb
from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.metrics import (
    ablations,
    beliefs,
    bias,
    calibration,
    circular,
    comparison,
    consistency,
    faults,
    guessing,
    invariability,
    items,
    order,
    scoring,
)
from cora_nb.metrics.account import account, score_counts
from cora_nb.metrics.scores import run_scores
from cora_nb.papers import hidden_states
from cora_nb.papers.mcqa_plus import mcqa_plus_results, mcqa_plus_steps, stack_tables, prepare_steps
from cora_nb.report.plots import curve_of, curve_table, plot_points
from cora_nb.report.sentences import short_table
from cora_nb.report.tables import GUESSER, score_table
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import FailureWarning
from cora_nb.responses.responses import Responses
from cora_nb.responses.runs import Runs
from cora_nb.results import IDENTITY, RESULT, STATUS, make_result
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate, Running
from cora_nb.stats.paired import correlations
from cora_nb.variants.families import make_variants
from helpers import put_in_state, stopped_when_precise

# Tables that are not results: a row for each question or reply, resamples, bins, counts, texts; formulas over counts.
MATERIALS = {
    *("right_matrix", "variant_bootstrap", "paper_layout", "order_consistency", "binned", "joined"),
    *("paper_counts", "count_kinds", "score_bounds", "contributions"),
    *("compare_counts", "answer_shares", "label_shares", "unified_confidence", "confidences", "label_sequences"),
    *("prompt_sequences", "agreement_matrix", "car_curve", "known_scores", "score_counts", "score_intervals"),
    *(
        "guess_rates",
        "order_counts",
        "misleading_choices",
        "outcome_matrix",
        "slot_table",
        "finders",
        "item_consistency",
        "item_table",
    ),
    *("model_cards", "load_recorded", "recorded_swaps", "plan_list", "plan_calls", "published_ablation"),
    *("published_scores", "published_mcqa_plus", "with_paper"),
    *("item_breaks", "swap_table", "letter_table", "swap_counts", "published_swaps", "swap_tables"),
    *(
        "question_column",
        "load_published",
        "corrected",
        "written_result",
        "estimate_bounds",
        "estimate_scores",
        "estimated_difference",
        "part_estimates",
    ),
}
ROOMS = ("metrics", "stats", "papers", "report")


def tables_of_the_package():
    "Public functions of the rooms that measure and return a table -> what their source says of it."
    found = {}
    for room in ROOMS:
        for file in sorted((Path(cora_nb.__file__).parent / room).glob("[a-z]*.py")):
            module = importlib.import_module(f"cora_nb.{room}.{file.stem}")
            for name in module.__all__:
                f = getattr(module, name)
                if inspect.isfunction(f) and (
                    "DataFrame" in (kind := str(inspect.signature(f).return_annotation)) or "Series" in kind
                ):
                    found[name] = docments(f, returns=True).get("return") or ""
    return found


@pytest.fixture(scope="module")
def made():
    questions = math_benchmark(12, seed=3)
    people = [
        SimulatedRespondent(knows=k, slips=0.1, seed=i, name=n) for i, (n, k) in enumerate((("ann", 0.8), ("bob", 0.5)))
    ]
    families = {
        name: make_variants(questions, name) for name in ("cora", "permutations", "reorderings", "formats", "cyclic")
    }
    runs = {
        family: {who.name: evaluate(who, variants, progress=False) for who in people}
        for family, variants in families.items()
    }
    both = make_variants(questions, "order_swap")
    runs["swaps"] = {who.name: evaluate(who, both, progress=False) for who in people}
    runs["repeated"] = {
        who.name: evaluate(who, make_variants(questions, "reorderings"), Asking(trials=3), progress=False)
        for who in people
    }
    battery = prepare_steps(mcqa_plus_steps(questions)).ask(people[0], Running(progress=False))
    return questions, runs, battery


def measures(questions, runs, battery):
    "Name -> a call of each measure on small runs."
    ann, bob = runs["cora"].values()
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.3, 1, 60)
    right = (rng.random(60) < sure).astype(int)
    bins = calibration.binned(sure, right)
    samples = cache(lambda: ablations.variant_bootstrap(ann, resamples=20))
    plus, found = battery["mcqa_plus"], cache(lambda: items.finders(items.slot_table(ann)))
    swaps = cache(lambda: order.swap_table(runs["swaps"]["ann"]))
    states = hidden_states.HiddenStates("made", rng.normal(size=(5, 2, 2, 4)), np.zeros((5, 2, 1, 2, 2)))
    formats = [runs["formats"]["ann"].rows(lambda t, f=f: t["form"] == f) for f in ("mcq", "tfq")]
    sequences = cache(lambda: consistency.prompt_sequences(runs["repeated"]["ann"]))
    several = battery["misleading"].rows(lambda t: t["method"] == "multiple_selection")
    sizes = {n: r for n, r in battery.items() if n.startswith("options_")}
    tables = cache(lambda: {number: mcqa_plus_results(battery, number) for number in (2, 3, 4, 7)})
    misleading = cache(lambda: invariability.misleading_choices(plus))
    return {
        "correlations": lambda: correlations(sure, right),
        "subset_scores": lambda: ablations.subset_scores(ann),
        "ablation_table": lambda: ablations.ablation_table(runs["cora"]),
        "bootstrap_summary": lambda: ablations.bootstrap_summary(samples(), score_counts(account(ann))),
        "bootstrap_table": lambda: ablations.bootstrap_table(runs["cora"], resamples=20),
        "agreement_rate": lambda: consistency.agreement_rate(ann),
        "agreement_scores": lambda: consistency.agreement_scores(ann),
        "circular_scores": lambda: circular.circular_scores(runs["cyclic"]["ann"]),
        "position_spread": lambda: circular.position_spread(runs["cyclic"]["ann"], threshold=None, resamples=200),
        "position_spread_scores": lambda: circular.position_spread_scores(runs["cyclic"]["ann"]),
        "true_false_scores": lambda: beliefs.true_false_scores(plus),
        "confidence_ratio": lambda: beliefs.confidence_ratio(plus),
        "multiple_selection": lambda: beliefs.multiple_selection(several, misleading()),
        "consistency_table": lambda: bias.consistency_table(runs["permutations"]),
        "rank_test": lambda: bias.rank_test(*np.eye(3)[rng.integers(0, 3, (2, 40))], rng.integers(0, 2, 40)),
        "position_ranks": lambda: bias.position_ranks(runs["permutations"]["bob"]),
        "length_ranks": lambda: bias.length_ranks(runs["permutations"]["bob"], questions),
        "calibration_errors": lambda: calibration.calibration_errors(bins),
        "ece_interval": lambda: calibration.ece_interval(sure, right, resamples=50),
        "brier_parts": lambda: calibration.brier_parts(bins),
        "reliability": lambda: calibration.reliability(bins),
        "calibration_table": lambda: calibration.calibration_table(with_confidence(ann)),
        "compare": lambda: comparison.compare(ann, bob, resamples=50),
        "compare_all": lambda: comparison.compare_all(runs["cora"], resamples=50),
        "rank_table": lambda: comparison.rank_table(runs["cora"], resamples=50),
        "inconsistency_components": lambda: consistency.inconsistency_components(runs["repeated"]["ann"]),
        "consistency_by": lambda: consistency.consistency_by({"ann": sequences()}),
        "compare_right": lambda: consistency.compare_right(right, right[::-1], resamples=50),
        "compare_formats": lambda: consistency.compare_formats(*formats),
        "letter_recall": lambda: bias.letter_recall(runs["permutations"]["bob"]),
        "recall_spread": lambda: bias.recall_spread(runs["permutations"]["bob"], methods=()),
        "run_scores": lambda: run_scores(ann, ["agreement"]),
        "score": lambda: scoring.score(runs["cora"], ci=0.9),
        "separability": lambda: hidden_states.separability(states, permutations=5),
        "expected_scores": lambda: guessing.expected_scores([([0.5, 0.5], 0.5, 1)]),
        "guesser_scores": lambda: guessing.guesser_scores(4),
        "chance_scores": lambda: guessing.chance_scores(ann),
        "guesser_order_scores": lambda: guessing.guesser_order_scores(4),
        "order_scores": lambda: invariability.order_scores(runs["reorderings"]["ann"]),
        "consistency_classes": lambda: invariability.consistency_classes(runs["reorderings"]["ann"]),
        "nota_table": lambda: invariability.nota_table(invariability.orders(plus), battery["nota_answer"]),
        "mcqa_plus_scores": lambda: invariability.mcqa_plus_scores(plus),
        "choices_sweep": lambda: invariability.choices_sweep({"mcqa_plus": invariability.orders(plus)} | sizes),
        "method_table": lambda: items.method_table(ann),
        "method_costs": lambda: items.method_costs(ann),
        "finding_table": lambda: items.finding_table(found()),
        "order_tests": lambda: order.order_tests(swaps()),
        "accuracy_gap": lambda: order.accuracy_gap(swaps()),
        "order_table": lambda: order.order_table(runs["swaps"]),
        "wrong_places": lambda: order.wrong_places(swaps()),
        "pattern_table": lambda: order.pattern_table(runs["swaps"]),
        "curve_table": lambda: curve_table(ann, points=3),
        "curve_of": lambda: curve_of(scoring.score(ann, thresholds=(0, 0.5, 1), ci=0.95), (0, 0.5, 1)),
        "score_table": lambda: score_table(runs["cora"]),
        "faults": lambda: faults.faults(ann),
        "short_table": lambda: short_table(Runs(runs["cora"])),
        "mcqa_plus_results": lambda: tables()[7],
        "stack_tables": lambda: stack_tables(tables()),
    }


def with_confidence(responses):
    table = responses.table
    table = responses.to_frame().assign(confidence=np.linspace(0.1, 1, len(table)))
    return Responses(table, responses.questions, responses.facts, responses.name, failed_wrong=responses.failed_wrong)


def test_every_table_is_a_result_or_known_not_to_be_one():
    said = tables_of_the_package()
    results = {name for name, what in said.items() if what.startswith("a result")}
    assert set(said) - results == MATERIALS, "say `a result: ...` beside what is returned, or list it in MATERIALS"


def test_every_measure_is_called_below(made):
    results = {name for name, what in tables_of_the_package().items() if what.startswith("a result")}
    assert results == set(measures(*made))


@pytest.mark.slow
def test_measures_return_results_that_are_drawn(made):
    for name, call in measures(*made).items():
        result = call()
        assert isinstance(result, pd.DataFrame) and (len(result) or name == "faults"), name
        if name == "faults":  # of respondents in order there is none
            continue
        assert list(result) == list(RESULT), name
        assert set(result["status"]) <= set(STATUS) and result["value"].isna().ge(result["status"] == "unknown").all()
        exact = result[result["status"] == "exact"]
        assert (exact["least"] == exact["value"]).all() and (exact["most"] == exact["value"]).all(), name
        pd.testing.assert_frame_equal(make_result(result), result, obj=name)
        finite = result[np.isfinite(result["value"].astype(float))]
        plot_points(finite[~finite["score"].isin(["chance", "expected"])])
        plt.close("all")


# ---- prompts that failed

APART = {"multiple_selection", "calibration_table"}  # say themselves how many replies they rest on


def failed(run, every):
    "The run, with one prompt in so many failed."
    drawn = np.random.default_rng(every).permutation(len(run))
    lost = np.isin(np.arange(len(run)), drawn[: -(-len(run) // every)])
    lost[0] |= every == 20  # an original
    table = put_in_state(run.table, lost, "failed", "timed out after 60 s")
    return Responses(table, run.questions, run.facts, run.name)


def numbers(call):
    "The numbers of a result by what they are of, its notes, and whether there was a warning; or why there is none."
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = call()
        except CoraError as e:
            return None, str(e), any(issubclass(w.category, FailureWarning) for w in told)
    names = [c for c in IDENTITY if c in result]
    notes = " ".join(result["note"])
    warned = any(issubclass(w.category, FailureWarning) for w in told)
    return result.astype(dict.fromkeys(names, str)).set_index(names)["value"].astype(float), notes, warned


@pytest.mark.slow
@pytest.mark.parametrize("every", [200, 20])
def test_no_measure_takes_failed_prompts_for_answers(made, every):
    """Half a failed prompt in a hundred, and five: what changes a number is warned of, or refused.

    More than one in a hundred is refused in words that say what to do, or the number is NaN. Where failed prompts are
    asked to be wrong answers, nothing is refused.
    """
    questions, runs, battery = made
    less = {family: {name: failed(run, every) for name, run in some.items()} for family, some in runs.items()}
    few = {name: failed(run, every) for name, run in battery.items()}
    wrong = {f: {name: run.count_failed_as_wrong() for name, run in some.items()} for f, some in less.items()}
    taken = {name: run.count_failed_as_wrong() for name, run in few.items()}
    before, asked_for, touched, refused = measures(*made), measures(questions, wrong, taken), set(), set()
    for name, call in before.items():
        truth, *_ = numbers(call)
        found, said, warned = numbers(lambda: measures(questions, less, few)[name]())
        if found is None:
            assert "failed, more than one in a hundred" in said and "--failed wrong" in said, name
            refused.add(name)
        elif not (found.index.equals(truth.index) and np.allclose(found, truth, equal_nan=True)):
            assert warned, name
            touched.add(name)
            if every == 20 and name not in APART:
                changed = found.reindex(truth.index)[~np.isclose(found.reindex(truth.index), truth, equal_nan=True)]
                resampled = changed.index.get_level_values("score").str.contains(" rank")  # of a score that is known
                assert changed[~resampled].isna().all(), name
        old, said, warned = numbers(asked_for[name])
        assert old is not None and not warned, (name, said)
    if every == 20:
        assert len(refused) > 20 and {"score", "compare", "rank_table", "mcqa_plus_scores"} <= touched, (
            refused,
            touched,
        )
    else:
        assert len(touched) > 15, (refused, touched)
    untouched = set(before) - touched - refused
    assert {"chance_scores", "guesser_scores", "rank_test"} <= untouched
    assert not {"score", "position_ranks", "method_table", "order_tests", "consistency_by"} & untouched


# ---- a run that was stopped when precise enough

ESTIMATED = {"score", "compare", "compare_all", "rank_table", "curve_table", "curve_of", "score_table", "short_table"}


@pytest.mark.slow
def test_no_measure_takes_the_prompts_asked_for_the_full_run(made):
    """Of a run that was stopped when precise enough, every number is marked as an estimate and has its interval.

    Or it is NaN, or the measure refuses in one line that says why and what to do; or it does not read the replies.
    """
    questions, runs, battery = made
    less = {f: {name: stopped_when_precise(run) for name, run in some.items()} for f, some in runs.items()}
    few = {name: stopped_when_precise(run) for name, run in battery.items()}
    marked, refused, unknown = set(), set(), set()
    for name, call in measures(*made).items():
        try:
            found = measures(questions, less, few)[name]()
        except CoraError as e:
            assert "precise enough" in str(e) and "run again without stop" in str(e) and "\n" not in str(e), (name, e)
            refused.add(name)
            continue
        truth = call().reindex(columns=found.columns)
        if found.equals(truth):
            continue  # nothing of it comes from replies
        known = found[found["value"].notna()]
        if not len(known):
            assert (found["note"].str.contains("not estimated") | found["score"].str.contains("difference")).all(), name
            unknown.add(name)
            continue
        estimates = known[known["status"] == "estimated"]
        others = known.drop(estimates.index)
        assert estimates[["low", "high"]].notna().all(axis=None), name
        others = others[others["respondent"] != GUESSER]  # asked of nobody
        assert name in ("curve_table", "curve_of") and set(others["place"]) == {0.0} or not len(others), (name, others)
        marked.add(name)
    assert marked == ESTIMATED
    assert unknown == {"subset_scores", "ablation_table"}
    assert len(refused) > 30 and {"method_table", "bootstrap_table", "calibration_table", "nota_table"} <= refused
