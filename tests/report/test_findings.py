"""What is known of some runs: computed once, the same as from the measures, and no error where data is missing."""

import ast
import warnings
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.metrics.comparison import compare
from cora_nb.metrics.scoring import score
from cora_nb.report import findings as module
from cora_nb.report import page, sentences as rules
from cora_nb.report.findings import Findings, findings
from cora_nb.report.page import make_report, save_pictures
from cora_nb.report.sentences import fault_lines, sentences, short_table, steadiness_lines
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import FailureWarning
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.runs.asking import Settled
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

VARIANTS = make_variants(math_benchmark(20))
MEASURES = {  # name in the module of findings -> calls for a page of two runs, without pictures and with them
    "score_table": (1, 1),
    "account": (2, 2),
    "faults": (2, 2),
    "method_table": (2, 2),
    "position_spread": (2, 2),
    "position_ranks": (0, 2),
    "length_ranks": (0, 2),
    "score": (0, 2),  # by subject
    "inconsistency_components": (0, 2),
    "confidences": (0, 2),
    "rank_table": (1, 1),
    "compare": (1, 1),
}
OF_EACH = ("run_scores", "accounts", "methods", "answer_places", "chosen_places", "chosen_lengths", "curves")
OF_EACH += ("subjects", "components", "reliabilities")


def ask(name, variants=VARIANTS, **options):
    return evaluate(SimulatedRespondent(name=name, **options), variants, progress=False)


@pytest.fixture(scope="module")
def runs():
    return {"fair": ask("fair", slips=0.1), "leaning": ask("leaning", slips=0.1, position=(6, 1))}


@pytest.fixture
def calls(monkeypatch):
    "How often each measure is called for findings."
    counted = Counter()

    def counting(name):
        measure = getattr(module, name)

        def called(*given, **options):
            counted[name] += 1
            return measure(*given, **options)

        return called

    for name in MEASURES:
        monkeypatch.setattr(module, name, counting(name))
    return counted


@pytest.mark.parametrize("pictures", [False, True])
def test_a_page_computes_each_measure_once(runs, calls, pictures):
    make_report(runs, pictures=pictures)
    assert calls == Counter({name: times[pictures] for name, times in MEASURES.items()})


def test_a_command_computes_each_measure_once(runs, calls, tmp_path):
    "The short table, faults, lines, sentences, page and figures of one run of a command."
    known = findings(runs)
    for name in runs:
        fault_lines(known, name), steadiness_lines(known, name)
    short_table(known), sentences(known), make_report(known), save_pictures(known, tmp_path)
    assert calls == Counter({name: times for name, (_, times) in MEASURES.items()})


def test_who_words_and_draws_computes_nothing():
    "The page and the sentences import no measure; of the metrics, only a remark by its name."
    for reader in (page, rules):
        tree = ast.parse(Path(reader.__file__).read_text(encoding="utf-8"))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names = [alias.name for node in imports if "metrics" in (node.module or "") for alias in node.names]
        assert set(names) <= {"ACCURACY_ALONE"}, names


def test_the_numbers_are_those_of_the_measures(runs):
    "Also of the two rows of a difference that a sentence reads, where they are compared alone."
    known = findings(runs)
    for name, run in runs.items():
        mine, own = (t.set_index("score").sort_index() for t in (known.run_scores[name], score(run, ci=0.95)))
        columns = ["value", "low", "high", "least", "most", "status", "remarks"]
        pd.testing.assert_frame_equal(pd.DataFrame(mine[columns]), pd.DataFrame(own[columns]))
    ((pair, difference),) = known.differences.items()
    assert pair == ("fair", "leaning") and len(difference) > 10
    alone = compare(*runs.values(), scores=["MCQA", "CoRA"])
    pd.testing.assert_frame_equal(difference[difference["score"].isin(alone["score"])].reset_index(drop=True), alone)
    assert known.why("differences", *pair) == known.why("ranks") == ""


def test_scores_of_other_families_keep_their_plain_names_run_by_run(runs):
    known = findings(runs | {"cyclic": ask("cyclic", make_variants(math_benchmark(20), "cyclic"))})
    assert "CoRA (cyclic)" in set(known.scores["score"])
    assert "CoRA" in set(known.run_scores["cyclic"]["score"])
    said = [remark.kind for remarks in known.run_scores["cyclic"]["remarks"] for remark in remarks]
    assert "unlike" not in said  # that is said of runs side by side


def test_findings_are_returned_as_they_are(runs):
    known = findings(runs, 0.8)
    assert isinstance(known, Findings) and findings(known, 0.95) is known
    assert "80% intervals" in make_report(known, pictures=False).html
    assert sentences(known) == sentences(runs, 0.8)


def nearly_all_lost():
    return make_responses(VARIANTS, [Reply("A")] + [Reply(error="gone")] * (len(VARIANTS) - 1), name="lost")


def bare(*columns):
    return lambda: Responses(ask("bare").table[[*columns]].copy(), name="bare")


@pytest.mark.parametrize(
    "make",
    [
        nearly_all_lost,
        bare("question_id", "method", "correct"),
        bare("question_id", "correct"),
        lambda: ask("originals", [v for v in VARIANTS if v.method == "original"]),
        lambda: ask("few", VARIANTS[:20]),
        lambda: evaluate(SimulatedRespondent(name="stopped"), VARIANTS, stop=Settled(), progress=False),
    ],
)
def test_missing_data_gives_no_error(make):
    run = make()
    known = findings({"run": run})
    for measure in OF_EACH:
        (entry,) = getattr(known, measure).values()
        assert (entry is None) == bool(known.why(measure, "run"))
    assert known.reliabilities["run"] is None
    assert known.faults["run"] is not None and known.differences == {}
    lines = steadiness_lines(known, "run") + (sentences(known) if "method" in run.table else [])
    assert all(isinstance(line, str) for line in lines)


def test_runs_that_cannot_be_compared(runs):
    known = findings({"fair": runs["fair"], "other": ask("other", make_variants(math_benchmark(20, seed=5)))})
    assert known.ranks is None and known.why("ranks")
    assert [*known.differences.values()] == [None] and known.why("differences", "fair", "other")
    assert f"The runs cannot be compared: {known.why('ranks')}"[:60] in make_report(known, pictures=False).html


def test_only_the_scores_warn():
    "As `score` does, of failed prompts: a page warns once, whatever reads the scores first."
    lost = [Reply(error="gone") if i % 10 == 0 else Reply("A") for i in range(len(VARIANTS))]
    run = make_responses(VARIANTS, lost, name="lost")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sentences(run)
    with pytest.warns(FailureWarning) as seen:
        make_report(run, pictures=False)
    assert len(seen) == 1
