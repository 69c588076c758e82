"""Respondents that debias while they answer: the same as debiasing a run, stores, failures, prompts without content."""

import asyncio
import math

import numpy as np
import pandas as pd
import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.metrics.scoring import score
from cora_nb.metrics.debiasing import debias, estimate_prior
from cora_nb.prompts.labels import LetterPrior
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.debiased import _CONTENT_FREE, AveragedRespondent, DebiasedRespondent, contextual_prior
from cora_nb.respondents.protocol import Reply, Respondent, ask
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.runs.asking import Settled
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants

COLUMNS = ["question_id", "method", "index", "prediction", "correct", "reply", "scores", "confidence"]
LEANING = SimulatedRespondent(knows=0.5, position=(4, 1), with_scores=True)
PRIOR = LetterPrior({4: (0.4, 0.3, 0.2, 0.1)}, "mine")


class Scripted:
    "Gives the scores that a function of the variant says, and counts its prompts."

    name = "scripted"

    def __init__(self, says, drawn=0.0):
        self.says, self.asked, self.drawn = says, 0, drawn

    def describe(self):
        return {"respondent": "scripted"}

    def request(self, prompt):
        return {"text": prompt.text, "temperature": self.drawn}

    async def answer(self, prompts):
        for i in range(len(prompts) - 1, -1, -1):
            self.asked += 1
            await asyncio.sleep(0)
            said = self.says(prompts[i].variant)
            yield i, said if isinstance(said, Reply) else Reply("A", said)


def run_of(who, variants, **options):
    return evaluate(who, variants, progress=False, strict=None, **options)


def same(a, b):
    pd.testing.assert_frame_equal(a.table[COLUMNS], b.table[COLUMNS])


@pytest.mark.parametrize("how", ["prior", "cyclic", "full"])
def test_while_it_answers_or_afterwards(how):
    variants = make_variants(math_benchmark(12), "permutations")
    raw = run_of(LEANING, variants)
    if how == "prior":
        prior = estimate_prior(raw)
        same(run_of(DebiasedRespondent(LEANING, prior), variants), debias(raw, prior))
    else:
        mine, theirs = run_of(AveragedRespondent(LEANING, how), variants), debias(raw, "average", orders=how)
        plain = [
            c for c in COLUMNS if c not in ("scores", "confidence")
        ]  # sums in another order differ in a last digit
        pd.testing.assert_frame_equal(mine.table[plain], theirs.table[plain])
        for a, b in zip(mine.table["scores"], theirs.table["scores"]):
            np.testing.assert_allclose(a, b)


def test_they_are_respondents_and_say_what_they_do():
    for who in (DebiasedRespondent(LEANING, PRIOR), AveragedRespondent(LEANING)):
        assert isinstance(who, Respondent)
    mine, other = (DebiasedRespondent(LEANING, p) for p in (PRIOR, LetterPrior({4: (0.25,) * 4})))
    assert mine.name == "simulated+mine" and mine.describe()["prior"]["probabilities"] == {"4": [0.4, 0.3, 0.2, 0.1]}
    assert mine.describe() != other.describe() and mine.describe()["of"] == LEANING.describe()
    cyclic, full = AveragedRespondent(LEANING), AveragedRespondent(LEANING, "full")
    prompt = make_prompts(make_variants(math_benchmark(1)))[0]
    assert cyclic.request(prompt) != full.request(prompt) and len(full.request(prompt)["asked"]) == 24
    assert AveragedRespondent(Scripted(None, 0.7)).request(prompt)["temperature"] == 0.7  # repetitions are drawn anew


def test_raw_replies_of_a_store_are_debiased_for_nothing(tmp_path):
    who, variants = Scripted(lambda v: (-0.1, -0.2, -3.0, -3.0)), make_variants(math_benchmark(6), "cyclic")
    with Store(tmp_path / "replies.sqlite") as store:
        raw = run_of(who, variants, store=store)
        asked = who.asked
        done = run_of(DebiasedRespondent(who, PRIOR), variants, store=store)
        assert who.asked == asked and (raw.table["prediction"] == 0).all() and (done.table["prediction"] == 1).all()
        again = run_of(who, variants, store=store)  # and the raw replies are still raw
        assert who.asked == asked and again.table.equals(raw.table)
        averaged = run_of(AveragedRespondent(who), variants, store=store)
        more = who.asked
        assert more > asked and (averaged.table["prediction"] == -1).all()
        assert run_of(AveragedRespondent(who), variants, store=store).table.equals(averaged.table) and who.asked == more


def test_equal_prompts_are_asked_once():
    who = Scripted(lambda v: tuple(-0.1 * s for s in v.sources))
    averaged = AveragedRespondent(who, "full")
    run = run_of(averaged, make_variants(math_benchmark(3), "permutations"))
    assert who.asked == averaged.spent["prompts_asked"] == run.facts.calls["prompts_asked"] == 3 * 24
    content = [s[p] for s, p in zip(run.table["sources"], run.table["prediction"])]
    assert set(content) == {0} and run.facts.respondent["of"] == {"respondent": "scripted"}


def test_a_liking_alone_is_no_answer():
    who = Scripted(lambda v: (0.0, -1.0, -2.0, -3.0)[: v.n_choices])
    for orders in ("cyclic", "full"):
        run = run_of(AveragedRespondent(who, orders), make_variants(math_benchmark(4)))
        assert (run.table["prediction"] == -1).all() and run.table["reply"].isna().all()
    blind = contextual_prior(who, (2, 3, 4))
    assert (run_of(DebiasedRespondent(who, blind), make_variants(math_benchmark(4))).table["prediction"] == -1).all()


def test_failures_and_missing_scores():
    variants = make_variants(math_benchmark(4), "cyclic")
    bad = variants[5]

    def sometimes(v, reply):
        return reply if v.question_id == bad.question_id and v.sources == bad.sources else (-1.0, -2.0, -3.0, -4.0)

    failing = Scripted(lambda v: sometimes(v, Reply(error="timeout")))
    done = run_of(DebiasedRespondent(failing, PRIOR), variants)
    assert done.table["error"].notna().tolist() == [i == 5 for i in range(16)]
    averaged = run_of(AveragedRespondent(failing), variants)
    assert averaged.table["error"].notna().tolist() == [4 <= i < 8 for i in range(16)]
    refusing = Scripted(lambda v: sometimes(v, Reply("I will not")))
    done = run_of(DebiasedRespondent(refusing, PRIOR), variants)
    assert done.table["error"].str.contains("scripted gave no scores").fillna(False).tolist() == [
        i == 5 for i in range(16)
    ]
    for who in (DebiasedRespondent, AveragedRespondent):
        args = (Scripted(lambda v: Reply("A")), PRIOR)[: 2 if who is DebiasedRespondent else 1]
        with pytest.raises(CoraError, match="scripted gave no scores for question .*: ask one that gives log-prob"):
            run_of(who(*args), variants)
    with pytest.raises(CoraError, match="scores must be log-probabilities"):
        run_of(AveragedRespondent(Scripted(lambda v: (math.nan,) * 4)), variants)


def test_other_forms_are_answered_as_ever():
    variants = make_variants(math_benchmark(5), "formats")
    raw = run_of(LEANING, variants)
    for who in (DebiasedRespondent(LEANING, PRIOR), AveragedRespondent(LEANING)):
        done = run_of(who, variants)
        others = (raw.table["form"] != "mcq").to_numpy()
        assert others.any()
        pd.testing.assert_frame_equal(done.table.loc[others, COLUMNS], raw.table.loc[others, COLUMNS])


def test_early_stopping_gives_the_scores_of_the_whole_run():
    variants = make_variants(math_benchmark(8))
    prior = LetterPrior({4: (0.4, 0.2, 0.2, 0.2)})
    for who in (DebiasedRespondent(LEANING, prior), AveragedRespondent(LEANING)):
        whole, short = run_of(who, variants), run_of(who, variants, stop=Settled())
        a, b = (score(r).set_index("score")["value"] for r in (whole, short))
        assert a["CoRA"] == b["CoRA"] and len(short.table) == len(whole.table)


def test_prompts_without_content():
    seen = []

    def says(v):
        seen.append((v.asked.strip(), v.choices))
        return (-0.2, -1.8, *[-3.0] * (v.n_choices - 2)) if v.asked == "N/A" else (0.0,) * v.n_choices

    prior = contextual_prior(Scripted(says), [2, 4])
    assert prior.calls == 6 and prior.method == "contextual" and prior.about["inputs"] == list(_CONTENT_FREE)
    assert {text for text, _ in seen} == {"N/A", "[MASK]", ""} and all(set(c) == {t} for t, c in seen)
    for n in (2, 4):  # plain Python: normalise, average
        one = [math.exp(s) for s in (-0.2, -1.8, *[-3.0] * (n - 2))]
        plain = [(x / sum(one) + 2 / n) / 3 for x in one]
        np.testing.assert_allclose(prior.of(n), plain)
    assert contextual_prior(Scripted(says), 3, inputs=("N/A",)).calls == 1


def test_prompts_without_content_stand_under_the_shots_of_the_run():
    texts, pool = [], math_benchmark(6, seed=9)

    class Listening(Scripted):
        async def answer(self, prompts):
            texts.extend(p.text for p in prompts)
            async for found in super().answer(prompts):
                yield found

    contextual_prior(Listening(lambda v: (0.0,) * v.n_choices), 4, "bare", shots=pool, k=2)
    assert all(t.count("Question:") == 3 and pool[0].text in t for t in texts)


def test_what_is_refused():
    failing, variants = Scripted(lambda v: Reply(error="gone")), make_variants(math_benchmark(2))
    refused = {
        "a prompt without content failed": lambda: contextual_prior(failing, 4),
        "inputs must be texts": lambda: contextual_prior(LEANING, 4, inputs=()),
        "gave no scores for question 'content-free": lambda: contextual_prior(SimulatedRespondent(), 4),
        "prior must be a LetterPrior": lambda: DebiasedRespondent(LEANING, {4: (0.25,) * 4}),
        "orders must be one of": lambda: AveragedRespondent(LEANING, "all"),
        "about 2 choices, and 4 are shown": lambda: run_of(
            DebiasedRespondent(LEANING, LetterPrior({2: (0.5, 0.5)})), variants
        ),
    }
    for message, call in refused.items():
        with pytest.raises(CoraError, match=message):
            call()
    from cora_nb.core import Question

    seven = make_variants([Question("q", "?", tuple("abcdefg"), 0)], "cyclic")
    with pytest.raises(CoraError, match="all orders of 7 choices are too many to ask"):
        run_of(AveragedRespondent(LEANING, "full"), seven)


def test_an_organism_is_debiased_while_it_answers():
    pytest.importorskip("torch", reason="torch is not installed")
    from cora_nb.respondents.likelihood import LikelihoodRespondent

    skewed = LikelihoodRespondent("organism/skewed", device="cpu")  # its scores are made in `finish`
    variants = make_variants(math_benchmark(4), "cyclic")
    raw = run_of(skewed, variants)
    same(run_of(DebiasedRespondent(skewed, PRIOR), variants), debias(raw, PRIOR))
    plain = [c for c in COLUMNS if c not in ("scores", "confidence")]
    averaged = run_of(AveragedRespondent(skewed), variants)
    pd.testing.assert_frame_equal(averaged.table[plain], debias(raw, "average").table[plain])


def test_asked_by_hand():
    prompts = make_prompts(make_variants(math_benchmark(3), "cyclic"))
    for who in (DebiasedRespondent(LEANING, PRIOR), AveragedRespondent(LEANING)):
        assert all(r.error is None and len(r.scores) == 4 for r in ask(who, prompts))
    assert DebiasedRespondent(LEANING, PRIOR).room(prompts[0]) is AveragedRespondent(LEANING).room(prompts[0]) is None
