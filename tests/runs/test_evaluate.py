"""Runs: whole roads from questions to scores."""

import pytest

from cora_nb.benchmarks.load import benchmark_hash, load_benchmark
from cora_nb.core import CoraError, Question
from cora_nb.metrics.scoring import score
from cora_nb.metrics.guessing import guesser_scores
from cora_nb.respondents.simulated import RecordedRespondent, SimulatedRespondent
from cora_nb.responses.columns import checked_table
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.results import values_of
from cora_nb.runs.asking import Asking, Settled
from cora_nb.runs.evaluate import evaluate, prepare, Running
from cora_nb.runs.evaluate import variants_hash
from cora_nb.variants.families import make_variants
from helpers import Forgetful

MATH = load_benchmark("math")


def test_the_road_and_back(tmp_path):
    variants = make_variants(MATH[:40])
    first = evaluate(SimulatedRespondent(knows=0.5), variants, Asking(trials=2), progress=False)
    assert checked_table(first.table).equals(first.table) and len(first) == 40 * 20 * 2
    write_responses(first, tmp_path / "r")
    record = RecordedRespondent(read_responses(tmp_path / "r"), name="simulated")
    assert evaluate(record, variants, Asking(trials=2), progress=False).table.equals(first.table)
    facts = first.facts
    assert (
        facts.benchmark.plain() == {"questions": 40, "hash": benchmark_hash(MATH[:40])}
        and facts.respondent["knows"] == 0.5
    )
    assert facts.asked.plain() == {
        "template": "cora",
        "template_hash": facts.asked.template_hash,
        "k": 0,
        "shots": [],
        "prompts": facts.asked.prompts,
        "trials": 2,
        "parse": {"mcq": "careful", "several": "selected", "tfq": "yes_no", "lfgq": "in_words"},
        "stop": None,
        "thresholds": None,
        "batch": None,
    }
    assert facts.variants.hash == variants_hash(variants)
    assert variants_hash(make_variants(MATH[:40], seed=1)) != variants_hash(variants)


@pytest.mark.slow
def test_scores_of_a_known_truth():
    "Who knows 60% and never guesses right by NOTA scores what the truth says, within sampling error."
    variants = make_variants(MATH)
    who = SimulatedRespondent(knows=0.6)
    truth = sum(who.knows_question(q.id) for q in MATH) / len(MATH)
    s = values_of(score(evaluate(who, variants, progress=False)))
    chance = values_of(guesser_scores(4))
    assert s["BMCA(1.0)"] == pytest.approx(truth, abs=1e-9)
    for name in ("MCQA", "MCQA+"):
        assert s[name] == pytest.approx(truth + (1 - truth) * chance[name], abs=0.06)


def test_unparsed_and_failed_are_counted():
    def never(reply, choices):
        return -1

    variants = make_variants(MATH[:3])
    counts = evaluate(SimulatedRespondent(), variants, Asking(parse=never), progress=False).summary().loc["all"]
    assert counts["unparsed"] == 60 and counts["right"] == 0
    lost = evaluate(Forgetful(), variants, progress=False).summary().loc["all"]
    assert lost["failed"] == 30 and lost["rows"] == 60


def test_progress_goes_to_the_error_stream(capsys):
    evaluate(Forgetful(), make_variants(MATH[:2]), progress=True)
    out, err = capsys.readouterr()
    assert out == "" and "forgetful" in err


def test_shots_come_from_the_pool():
    seen = []

    class Reader(Forgetful):
        async def answer(self, prompts):
            seen.extend(p.text for p in prompts)
            async for pair in super().answer(prompts):
                yield pair

    pool = [Question("shot", "What is 1 + 1?", ("2", "3"), 0)]
    evaluate(Reader(), make_variants(MATH[:1]), Asking(shots=pool, k=1), progress=False)
    assert all(t.count("What is 1 + 1?") == 1 and t.index("1 + 1") < t.index(MATH[0].text) for t in seen)


def test_nothing_to_ask():
    with pytest.raises(CoraError, match="no variants"):
        evaluate(SimulatedRespondent(), [])


@pytest.mark.parametrize("stop", [None, Settled(), Settled((0.5, 1.0))])
def test_the_facts_of_a_run_are_known_before_it_is_asked(stop):
    "All but what it took; and nobody is asked for them."
    who, variants = Forgetful(), make_variants(load_benchmark("math")[:5])
    asking = Asking("bare", parse="last_line", trials=2 if stop is None else 1)
    asked = {"asking": asking, "stop": stop, "facts": {"place": "here"}}
    before = prepare(variants, **asked).facts(who)
    after = prepare(variants, **asked).ask(who, Running(progress=False)).facts
    assert before == after.without("calls") and after.calls
    with pytest.raises(CoraError, match="there are no variants to ask"):
        prepare([])
    with pytest.raises(CoraError, match="a respondent needs name, describe"):
        prepare(variants, **asked).facts("who")


@pytest.mark.parametrize("stop", [None, Settled(batch=8)])
def test_a_prepared_run_asks_each_respondent_as_evaluate_does(stop):
    "The second respondent too, and the same one again: nothing of the first is left in it."
    variants = make_variants(load_benchmark("math")[:12])
    run = prepare(variants, Asking("bare"), stop, facts={"place": "here"})
    for knows in (0.3, 0.9, 0.3):
        who = SimulatedRespondent(knows=knows, name=f"knows {knows}")
        found = run.ask(who, Running(progress=False))
        alone = evaluate(who, variants, Asking("bare"), stop, progress=False)
        assert found.facts == alone.facts.changed(run={"place": "here"}) and found.table.equals(alone.table)
        found.facts.asked.parse["mcq"] = "another"  # is of this run alone
    assert [p.variant for p in run.prompts] == variants


@pytest.mark.parametrize(
    "asked, said",
    [
        (lambda v: prepare(v, stop="soon"), r"stop must be None, Settled\(...\) or Precise\(...\), got 'soon'"),
        (lambda v: prepare(v, "bare"), r"asking must be an Asking, such as .*, got 'bare'"),
        (lambda v: prepare(v, stop=Settled((2,))), "thresholds must be numbers in"),
        (lambda v: prepare(v, Asking(trials=2), Settled()), "one trial"),
        (lambda v: prepare(v, Asking("corra")), "template must be one of"),
        (lambda v: prepare(v, Asking(k=1)), "needs a pool of shots"),
        (lambda v: prepare(v, Asking(parse="firstt")), "firstt"),
    ],
)
def test_what_cannot_be_asked_is_refused_when_it_is_prepared(asked, said):
    with pytest.raises(CoraError, match=said):
        asked(make_variants(load_benchmark("math")[:2]))
