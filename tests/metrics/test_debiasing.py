"""PriDe, averages over orders, batch calibration: against plain Python on the organisms' scores; what is refused."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError, Question, uniforms
from cora_nb.metrics.scoring import score
from cora_nb.metrics.debiasing import debias, estimate_prior, estimation_questions, _pride_variants
from cora_nb.prompts.labels import apply_rule
from cora_nb.prompts.labels import LetterPrior
from cora_nb.prompts.reading import careful
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.protocol import NOT_ASKED, Reply, ask
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

UNCHANGED = ["question_id", "subject", "family", "method", "index", "form", "trial", "n_choices", "sources", "answer"]
LEANING = SimulatedRespondent(knows=0.5, position=(4, 1), with_scores=True)


# The formulas once more, in plain Python: a question is {order: scores of the letters}, an order the contents by place


def shares(scores):
    total = sum(math.exp(s) for s in scores)
    return [math.exp(s) / total for s in scores]


def rotations(order):
    return [order[r:] + order[:r] for r in range(len(order))]


def plain_prior(question, orders):
    "softmax over letters of the mean over orders of log P"
    logs = [[math.log(p + 1e-10) for p in shares(question[o])] for o in orders]
    return shares([sum(column) / len(orders) for column in zip(*logs)])


def plain_average(question, orders):
    "content -> mean P over orders"
    means = {}
    for o in orders:
        for content, p in zip(o, shares(question[o])):
            means[content] = means.get(content, 0) + p / len(orders)
    return means


def plain_best(values):
    "Index of the highest, -1 for a tie up to rounding."
    best = max(values)
    near = [i for i, v in enumerate(values) if v >= best - 1e-9]
    return near[0] if len(near) == 1 else -1


def plain_divided(scores, prior):
    return plain_best([math.log(p + 1e-10) - math.log(q + 1e-10) for p, q in zip(shares(scores), prior)])


def as_questions(run):
    found = {}
    for id, sources, scores in zip(run.table["question_id"], run.table["sources"], run.table["scores"]):
        found.setdefault(id, {})[sources] = scores
    return found


@pytest.fixture(scope="module")
def organisms():
    "Both organisms on ten questions in all 24 orders."
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    from cora_nb.respondents.causal import CausalRespondent
    from cora_nb.runs.evaluate import evaluate

    variants = make_variants(math_benchmark(10), "permutations")
    names = ("steady", "skewed")
    return {n: evaluate(CausalRespondent(f"organism/{n}", device="cpu"), variants, progress=False) for n in names}


@pytest.fixture(params=["steady", "skewed", "simulated"])
def run(request, organisms):
    if request.param in organisms:
        return organisms[request.param]
    variants = make_variants(math_benchmark(10), "permutations")
    return make_responses(variants, ask(LEANING, make_prompts(variants)), name="simulated")


@pytest.mark.parametrize("alpha, seed, orders", [(0.05, 0, "cyclic"), (0.3, 1, "cyclic"), (1.0, 0, "full")])
def test_pride_is_the_formula(run, alpha, seed, orders):
    own = (0, 1, 2, 3)
    all_of_them = rotations(own) if orders == "cyclic" else list(itertools.permutations(own))
    questions = as_questions(run)
    drawn = sorted(questions, key=lambda id: uniforms(1, seed, id, "pride")[0])[: max(1, int(alpha * 10))]
    priors = [plain_prior(questions[id], all_of_them) for id in drawn]
    prior = [sum(column) / len(priors) for column in zip(*priors)]
    np.testing.assert_allclose(estimate_prior(run, "pride", alpha, seed, orders).of(4), prior, rtol=1e-6)

    done = debias(run, "pride", alpha, seed, orders)
    for id, sources, scores, said in zip(*(done.table[c] for c in ("question_id", "sources", "scores", "prediction"))):
        if id in drawn:
            turned = rotations(sources) if orders == "cyclic" else all_of_them
            mean = plain_average(questions[id], turned)
            wanted = plain_best([math.log(mean[s]) if mean[s] > 0 else -math.inf for s in sources])
        else:
            wanted = plain_divided(questions[id][sources], prior)
        assert said == wanted
    k = 4 if orders == "cyclic" else 24
    assert done.facts.debiased["calls"] == 10 + len(drawn) * (k - 1)
    assert done.facts.debiased["calls_an_answer"] == pytest.approx(1 + len(drawn) / 10 * (k - 1))
    assert done.facts.debiased["estimated_from"] == drawn and done.name == f"{run.name}+pride"


@pytest.mark.parametrize("orders", ["cyclic", "full"])
def test_an_average_is_the_formula(run, orders):
    questions, done = as_questions(run), debias(run, "average", orders=orders)
    for id, sources, scores, said in zip(*(done.table[c] for c in ("question_id", "sources", "scores", "prediction"))):
        turned = rotations(sources) if orders == "cyclic" else list(itertools.permutations(sources))
        mean = plain_average(questions[id], turned)
        np.testing.assert_allclose(np.exp(scores), [mean[s] for s in sources], atol=1e-9)
        assert said == plain_best([math.log(mean[s]) if mean[s] > 0 else -math.inf for s in sources])
    assert done.facts.debiased["calls_an_answer"] == (4 if orders == "cyclic" else 24)
    if orders == "full":  # one answer, in whatever order
        content = [s[p] if p >= 0 else None for s, p in zip(done.table["sources"], done.table["prediction"])]
        assert pd.Series(content).groupby(done.table["question_id"]).nunique(dropna=False).max() == 1


def test_a_batch_is_the_formula(run):
    everything = [shares(s) for s in run.table["scores"]]
    prior = [sum(column) / len(everything) for column in zip(*everything)]
    np.testing.assert_allclose(estimate_prior(run, "batch").of(4), prior, rtol=1e-9)
    done = debias(run, "batch")
    assert done.table["prediction"].tolist() == [plain_divided(s, prior) for s in run.table["scores"]]
    assert done.facts.debiased["calls_an_answer"] == 1


@pytest.mark.parametrize("how", [("pride",), ("average",), ("batch",), (LetterPrior({4: (0.4, 0.3, 0.2, 0.1)}),)])
def test_what_is_not_debiased_stays_and_files_give_it_back(run, how, tmp_path):
    done = debias(run, *how)
    pd.testing.assert_frame_equal(done.table[UNCHANGED], run.table[UNCHANGED])
    assert done.questions.equals(run.questions) and done.facts.without("debiased") == run.facts
    t = done.table
    assert (t["correct"] == (t["prediction"] == t["answer"])).all()
    best = [max(s) for s in t["scores"]]
    assert [s.count(b) > 1 for s, b in zip(t["scores"], best)] == (t["prediction"] < 0).tolist()
    letters = [None if p < 0 else "ABCD"[p] for p in t["prediction"]]
    assert [None if pd.isna(x) else x for x in t["reply"]] == letters
    np.testing.assert_allclose(t["confidence"], np.where(t["prediction"] < 0, np.nan, np.exp(best)))
    write_responses(done, tmp_path / "run")
    assert read_responses(tmp_path / "run").equals(done)


def test_only_what_is_asked_is_needed():
    "A run of `_pride_variants` gives the very answers of the whole run."
    questions = math_benchmark(40)
    whole, part = make_variants(questions, "cyclic"), _pride_variants(make_variants(questions, "cyclic"), 0.1, seed=3)
    assert len(part) == 40 + 4 * 3
    runs = [debias(make_responses(v, ask(LEANING, make_prompts(v))), "pride", 0.1, seed=3) for v in (whole, part)]
    firsts = [r.table[r.table["method"] == "original"].reset_index(drop=True) for r in runs]
    pd.testing.assert_frame_equal(*firsts)
    assert [r.facts.debiased["calls"] for r in runs] == [52, 52] and len(runs[1]) == 52


@given(st.lists(st.integers(2, 5), min_size=1, max_size=60), st.floats(0.001, 1), st.integers(0, 5))
def test_questions_are_drawn_of_each_number_of_choices(sizes, alpha, seed):
    ids = {f"q{i}": n for i, n in enumerate(sizes)}
    drawn = estimation_questions(ids, alpha, seed)
    for n in set(sizes):
        assert sum(ids[id] == n for id in drawn) == max(1, math.floor(alpha * sizes.count(n) + 1e-9))
    assert set(drawn) <= set(estimation_questions(ids, min(1, 2 * alpha), seed)) and len(set(drawn)) == len(drawn)
    assert estimation_questions(dict(reversed(ids.items())), alpha, seed) == drawn  # whatever order they stand in


def test_every_number_of_choices_has_its_own_prior():
    questions = [Question(f"q{i}", "?", tuple(f"c{k}" for k in range(n)), 0) for i, n in enumerate([2, 3, 5] * 4)]
    variants = make_variants(questions, "cyclic")
    liking = {2: (3, 1), 3: (1, 1, 4), 5: (5, 1, 1, 1, 2)}
    replies = [Reply(scores=tuple(map(math.log, liking[v.n_choices]))) for v in variants]
    run = make_responses(variants, replies)
    for prior in (estimate_prior(run), estimate_prior(run, "batch")):
        for n, weights in liking.items():
            np.testing.assert_allclose(prior.of(n), np.array(weights) / sum(weights), atol=1e-8)
    assert (debias(run, "pride").table["prediction"] == -1).all()  # nothing but a liking


def test_a_prior_from_one_run_debiases_another():
    questions = math_benchmark(30)
    orders, sets = make_variants(questions, "cyclic"), make_variants(questions)
    prior = estimate_prior(make_responses(orders, ask(LEANING, make_prompts(orders))))
    raw = make_responses(sets, ask(LEANING, make_prompts(sets)), name="leaning")
    done = debias(raw, prior)
    assert done.complete and len(score(done)) == len(score(raw)) and done.name == "leaning+pride"
    assert done.facts.debiased["calls"] == len(raw) + 120
    pairs = done.table["n_choices"] == 2  # from the first two letters of four
    first_two = prior.of(4)[:2] / prior.of(4)[:2].sum()
    wanted = [plain_divided(s, first_two) for s in raw.table["scores"][pairs]]
    assert done.table["prediction"][pairs].tolist() == wanted


def test_a_letter_of_probability_zero():
    variants = make_variants(math_benchmark(4), "cyclic")
    replies = [Reply(scores=(-math.inf if i % 2 else -3.0, -1.0, -0.6, -math.inf)) for i in range(len(variants))]
    run = make_responses(variants, replies)
    for how in ("pride", "batch", LetterPrior({4: (0.5, 0.5, 0, 0)})):
        done = debias(run, how)
        assert all(s[3] == -math.inf for s in done.table["scores"] if how != "pride")
        assert not done.table["scores"].map(lambda s: any(map(math.isnan, s))).any()
    nothing = make_responses(variants, [Reply(scores=(-math.inf,) * 4)] * len(variants))
    with pytest.raises(CoraError, match=f"question '{variants[0].question_id}', original: scores must be log-prob"):
        debias(nothing, "batch")


def test_failed_prompts_stay_failed():
    variants = make_variants(math_benchmark(5), "cyclic")
    replies = ask(LEANING, make_prompts(variants))
    replies[1] = Reply(error="timeout")  # one of the orders of the first question
    run = make_responses(variants, replies)
    averaged = debias(run, "average").table
    assert averaged["state"].tolist() == ["failed"] * 4 + ["answered"] * (len(run) - 4)
    assert (averaged["error"][:4] == "timeout").all() and averaged["error"][4:].isna().all()
    assert (averaged["prediction"][:4] == -1).all()
    batch = debias(run, "batch").table
    assert batch["error"].notna().tolist() == run.table["error"].notna().tolist() and batch["scores"][1] is None
    assert estimate_prior(run).about["questions"] == 4
    with pytest.raises(CoraError, match="no question has replies to all of its orders"):
        estimate_prior(make_responses(variants[:4], replies[:4]))
    stopped = make_responses(variants, [NOT_ASKED if i % 4 else r for i, r in enumerate(replies)])
    assert debias(stopped, "batch").table["state"].equals(stopped.table["state"])
    assert (debias(stopped, "average").table["state"] == "not_asked").all()


def test_repetitions_are_debiased_one_by_one():
    variants = [v for v in make_variants(math_benchmark(5), "cyclic") for _ in range(2)]
    replies = ask(LEANING, make_prompts(variants))
    replies[1] = replace(replies[1], scores=(0.0, -9.0, -9.0, -9.0))
    twice = make_responses(variants, replies, trials=[0, 1] * 20)
    once = twice.trial(0)
    done = debias(twice, "average")
    assert done.trial(0).table["prediction"].tolist() == debias(once, "average").table["prediction"].tolist()
    np.testing.assert_allclose(estimate_prior(twice).of(4), estimate_prior(once).of(4))
    assert done.facts.debiased["calls"] == 20


def test_what_is_refused():
    variants = make_variants(math_benchmark(5), "cyclic")
    run = make_responses(variants, ask(LEANING, make_prompts(variants)), name="leaning")
    part = run.rows(lambda t: t["index"] < 2)
    words = make_responses(variants, ["A"] * len(variants))
    half = make_responses(variants, [Reply("A"), Reply("A", (0.0, -1.0, -1.0, -1.0))] * 10)
    texts = make_variants(math_benchmark(5), "formats")
    refused = {
        "20 of 20 replies have none: ask a model that gives log-probabilities": lambda: debias(words, "pride"),
        "10 of 20 replies have none": lambda: debias(half, "batch"),
        "has 3 of the 4 cyclic orders of its choices": lambda: debias(part, "average"),
        "ask the family cyclic or permutations": lambda: debias(part, "pride"),
        "ask the family permutations": lambda: debias(run, "average", orders="full"),
        "alpha must be above 0": lambda: debias(run, "pride", alpha=0),
        "alpha must be a number from 0 to 1, got 1.5": lambda: debias(run, "pride", alpha=1.5),
        "alpha must be a number from 0 to 1, got nan": lambda: debias(run, "pride", alpha=math.nan),
        "seed must be": lambda: debias(run, "pride", seed=-1),
        "orders must be one of cyclic, full": lambda: debias(run, "average", orders="some"),
        "method must be one of pride, average, batch": lambda: debias(run, "PriDe"),
        "method must be one of pride, batch": lambda: estimate_prior(run, "average"),
        "contextual_prior": lambda: debias(run, "contextual"),
        "about 3 choices, and 4 are shown": lambda: debias(run, LetterPrior({3: (0.2, 0.2, 0.6)})),
        r"leaning\+batch is debiased already": lambda: debias(debias(run, "batch"), "pride"),
        "of the form": lambda: debias(make_responses(texts, ["A"] * len(texts)), "batch"),
        "no column n_choices": lambda: debias(Responses(run.table.drop(columns="n_choices")), "batch"),
        "no responses": lambda: debias(run.rows(lambda t: t["index"] > 9), "batch"),
    }
    for message, call in refused.items():
        with pytest.raises(CoraError, match=message):
            call()


def test_a_worded_variant_is_answered_with_its_own_label():
    "What `debias` writes is read back by the rules, also where the choices are called 1), 2), ... or i., ii., ..."
    variants = make_variants(math_benchmark(6), "wording")
    run = evaluate(SimulatedRespondent(position=(3, 1), with_scores=True), variants, progress=False)
    found = debias(run, "batch")
    assert {"1", "i", "a", "A"} <= set(found.table["reply"])
    read = [apply_rule(careful, r, v) if isinstance(r, str) else -1 for r, v in zip(found.table["reply"], variants)]
    assert read == found.table["prediction"].tolist()
