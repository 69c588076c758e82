"""Scores of a run in parts equal those of the run in memory, whatever failed, was left out, or was asked repeatedly."""

import warnings

import numpy as np
import pandas as pd
import pytest

from cora_nb.core import CoraError, Question
from cora_nb.metrics import counts as account
from cora_nb.metrics.scoring import score
from cora_nb.metrics.estimates import score_intervals
from cora_nb.metrics.counts import count_hits
from cora_nb.metrics.scores import SCORES, register_score
from cora_nb.metrics.counts import count_kinds, count_parts, different_prompts
from cora_nb.report.render import render
from cora_nb.report.tables import score_table
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import UNSENT
from cora_nb.responses.failures import FailureWarning
from cora_nb.responses.files import write_responses
from cora_nb.responses.parts import ResponseParts
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.responses.runs import run_differences
from cora_nb.runs.asking import Settled
from cora_nb.runs.evaluate import evaluate
from cora_nb.stats.resampling import FewWarning
from cora_nb.variants.families import make_variants
from helpers import SUMS_VARIANTS, put_in_state, slow_after

RECIPE = {"variants": {"recipe": {"family": "cora", "seed": 0, "options": {}}}, "run": {"benchmark": "made"}}


def made(seed=0, questions=30, trials=1, failed=0.0, early=False, cut=0.0, missing=0.0, name="fair"):
    "A run of questions of three to five choices, some answered well and some not."
    rng = np.random.default_rng(seed)
    asked = [
        Question(f"q{i}", f"Number {i}?", tuple("abcde"[: 3 + i % 3]), i % 3, f"subject {i % 4}")
        for i in range(questions)
    ]
    variants = make_variants(asked)
    rows = [(v, t) for v in variants for t in range(trials)]
    known = dict(zip((q.id for q in asked), rng.beta(1.2, 0.4, questions)))
    said = ["ABCDE"[v.answer if rng.random() < known[v.question_id] else v.answer - 1] for v, _ in rows]
    run = make_responses([v for v, _ in rows], said, trials=[t for _, t in rows], name=name, facts=RECIPE)
    lost, table = rng.random(len(run)), run.table
    states = np.where(lost < failed, "failed", "")
    if early:  # after the first wrong reply to a question, nothing more is asked
        wrong = (~table["correct"]).groupby(table["question_id"].to_numpy()).cumsum().to_numpy()
        states[(wrong - ~table["correct"].to_numpy() > 0) & (states == "")] = "not_asked"
    if cut:
        states[int(len(table) * (1 - cut)) :] = "over_budget"
    for state, words in (
        ("failed", np.where(lost < failed / 2, "timed out", "HTTP 500")),
        *dict.fromkeys(UNSENT).items(),
    ):
        table = put_in_state(table, states == state, state, words)
    kept = (rng.random(len(table)) >= missing) | (table["method"] == "original").to_numpy()
    return Responses(table[kept], run.questions, RECIPE, name)


def in_parts(run, folder, files=4, seed=1):
    "The run's questions in several files, in an order of their own."
    codes, ids = run.question_codes
    place = np.random.default_rng(seed).integers(0, files, len(ids))
    folder.mkdir(parents=True)
    for n in range(files):
        if not (place == n).any():
            continue
        write_responses(Responses(run.rows((place == n)[codes]).table, None, run.facts, run.name), folder / "one")
        (folder / "one" / "responses.parquet").rename(folder / f"{n}.parquet")
        for file in (folder / "one").iterdir():
            file.unlink()
        (folder / "one").rmdir()
    return ResponseParts(folder)


def equal(found, expected):
    "Results are equal up to rounding, and their notes are equal; methods are in the order of the files."
    if "method" in expected:
        found, expected = (t.sort_values("method", kind="stable", ignore_index=True) for t in (found, expected))
    numbers = [c for c in ("value", "low", "high", "p") if c in expected]
    pd.testing.assert_frame_equal(found.drop(columns=numbers), expected.drop(columns=numbers))
    for column in numbers:
        np.testing.assert_allclose(found[column], expected[column], rtol=0, atol=1e-9, err_msg=column)


KINDS = {
    "complete": {},
    "a few failed": {"failed": 0.008},
    "many failed": {"failed": 0.1},
    "stopped early": {"early": True},
    "stopped early, a few failed": {"early": True, "failed": 0.005},
    "over budget": {"cut": 0.2},
    "over budget and failed": {"cut": 0.1, "failed": 0.02},
    "incomplete": {"missing": 0.3},
    "repeated": {"trials": 3, "failed": 0.01, "questions": 20},
    "one question": {"questions": 1},
}
EVERY_OPTION = ("complete", "a few failed", "over budget and failed")
OPTIONS = [
    {},
    {"ci": 0.9},
    {"by": "subject"},
    {"by": "method"},
    {"ci": 0.95, "method": "percentile", "resamples": 200, "seed": 3},
    {"by": "subject", "ci": 0.9},
    {"thresholds": (0.25, 0.75), "failed": "wrong"},
    {"ci": 0.95, "clusters": "subject", "resamples": 200},
    {"by": "method", "ci": 0.9, "clusters": "subject", "resamples": 100, "failed": "wrong"},
]


@pytest.mark.parametrize("kind", slow_after(2, KINDS))
def test_scores_are_those_in_memory(kind, tmp_path):
    run = made(**KINDS[kind])
    parts = in_parts(run, tmp_path / "run")
    for options in OPTIONS if kind in EVERY_OPTION else OPTIONS[:4]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewWarning)
            warnings.simplefilter("ignore", FailureWarning)
            equal(score(parts, **options), score(run, **options))


@pytest.mark.slow
def test_pooled_repetitions_and_a_single_one(tmp_path):
    run = made(trials=3, failed=0.005, questions=40)
    table = run.table[~((run.table["question_id"] == "q3") & (run.table["trial"] == 0))]  # one starts at trial 1
    run = Responses(table, run.questions, RECIPE)
    parts = in_parts(run, tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailureWarning)
        for way in (lambda r: r.pool_trials(), lambda r: r.trial(2), lambda r: r.first_trial(), lambda r: r):
            for options in ({}, {"ci": 0.9}, {"by": "method"}, {"by": "subject"}):
                equal(score(way(parts), **options), score(way(run), **options))
    assert parts.trials == run.trials and parts.trial(1).trials == (1,)


@pytest.mark.parametrize("most_rows", [60, 200])
def test_one_large_file_is_read_in_pieces(most_rows, tmp_path, monkeypatch):
    monkeypatch.setattr("cora_nb.responses.parts._BATCH", 50)
    run = made(questions=20, trials=2, failed=0.02)
    write_responses(run, tmp_path / "run")
    parts = ResponseParts(tmp_path / "run", most_rows=most_rows)
    pieces = list(parts.pieces("correct"))
    assert len(pieces) > 2 and sum(len(p.question_codes[1]) for p in pieces) == 20
    with pytest.warns(FailureWarning):
        equal(score(parts), score(run))
    with pytest.raises(
        CoraError, match=r"the rows of question 'q\d+' do not stand together, and the file is too large"
    ):
        mixed = run.table.sort_values("trial", kind="stable")
        write_responses(Responses(mixed, run.questions, RECIPE), tmp_path / "mixed")
        score(ResponseParts(tmp_path / "mixed", most_rows=most_rows).pool_trials())


def test_counts_of_each_question(tmp_path):
    run = made(failed=0.05, cut=0.1, missing=0.1)
    counts, expected = count_parts(in_parts(run, tmp_path / "run")), count_hits(run)
    pd.testing.assert_frame_equal(
        counts.loc[expected.index].astype(float), expected.astype(float), check_index_type=False
    )
    assert counts["hits"].dtype == np.int8


def test_coverage_and_notes_are_those_of_the_whole(tmp_path):
    "Each file alone would have another range of variants, and another share of failures."
    run = made(missing=0.3, failed=0.004, questions=80)
    parts = in_parts(run, tmp_path / "run")
    notes = [score(p)["note"].iloc[-1] for p in map(ResponseParts, sorted((tmp_path / "run").iterdir()))]
    with pytest.warns(FailureWarning, match=r"fair: \d+ of \d,\d+ prompts failed"):
        whole = score(parts)
    assert run.coverage in whole["note"].iloc[-1] and len({*notes, whole["note"].iloc[-1]}) == 5
    assert parts.failed_remarks == run.failed_remarks


def test_a_chosen_part_counts_as_complete(tmp_path):
    run = made().rows(lambda t: t["method"].isin(["original", "nota"]), chosen="original and nota")
    equal(score(in_parts(run, tmp_path / "run")), score(run))
    assert score(run)["value"].notna().all()


def test_a_family_whose_size_only_the_questions_tell(tmp_path):
    "Without its original, nothing but the text of a question says how many variants it has."
    run = made(missing=0.2)
    run = Responses(run.table[run.table["method"] != "original"], run.questions, RECIPE)
    parts = in_parts(run, tmp_path / "run")
    assert not score(parts)["note"].any()  # not known
    write_responses(run, tmp_path / "with questions")
    (tmp_path / "with questions" / "questions.parquet").rename(tmp_path / "run" / "questions.parquet")
    equal(score(ResponseParts(tmp_path / "run")), score(run))
    assert run.coverage in score(run)["note"].iloc[-1]


@pytest.mark.slow
def test_many_failed_originals_are_grouped(tmp_path, monkeypatch):
    "Bounds from groups are close to those from single questions, and the scores are equal."
    run = made(questions=400, failed=0.05)
    parts = in_parts(run, tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailureWarning)
        monkeypatch.setattr(account, "_MOST_APART", 5)
        ((_, kinds, _),) = count_kinds(parts)
        assert kinds["questions"].sum() == 400 and (kinds["questions"][kinds["original_failed"] > 0] < 5).all()
        found, expected = score(parts), score(run)
        assert found["value"].equals(expected["value"]) and expected["value"].isna().all()
        ends = ["least", "most"]
        np.testing.assert_allclose(found[ends], expected[ends], atol=0.005)
        equal(score(parts, failed="wrong"), score(run, failed="wrong"))


def test_resamples_are_the_same(tmp_path):
    "A score outside [0, 1] on some question has an interval from resamples, drawn alike for kinds and for questions."
    run = made(questions=40)
    parts = in_parts(run, tmp_path / "run")
    ((_, kinds, _),) = count_kinds(parts)
    found, expected = (score_intervals(c, resamples=300, seed=5, method="bca") for c in (kinds, count_hits(run)))
    np.testing.assert_allclose(found[["low", "high"]], expected[["low", "high"]], atol=1e-12)


@pytest.mark.slow
def test_tables_of_runs_and_parts(tmp_path):
    fair, other = made(questions=40), made(seed=5, questions=40, name="other")
    fewer = made(questions=30, name="fewer")
    parts = in_parts(fair, tmp_path / "fair")
    theirs = in_parts(fewer, tmp_path / "fewer")
    for mine, memory in (
        ({"fair": parts, "other": other}, {"fair": fair, "other": other}),
        ({"other": other, "fair": parts, "fewer": theirs}, {"other": other, "fair": fair, "fewer": fewer}),
    ):
        for format in ("text", "markdown", "csv"):
            assert render(score_table(mine, ci=0.9), format) == render(score_table(memory, ci=0.9), format)
        equal(score(mine), score(memory))
    assert render(score_table(parts)) == render(score_table([parts])) == render(score_table(fair))
    with pytest.raises(CoraError, match="two runs are called 'fair'"):
        score([parts, fair])


def test_different_prompts_are_noticed(tmp_path):
    run = made(questions=20)
    parts = in_parts(run, tmp_path / "a")
    for n, other in enumerate((made(questions=15), made(missing=0.2, questions=20), made(seed=3, questions=20))):
        other = Responses(other.table, other.questions, RECIPE, "other")
        expected = next(iter(run_differences({"a": run, "b": other})), None)
        for mine, theirs in ((parts, other), (run, in_parts(other, tmp_path / f"b{n}"))):
            assert different_prompts({"a": mine, "b": theirs}) == expected
    again = in_parts(run, tmp_path / "again", files=2, seed=9)  # in another order
    assert different_prompts({"a": parts, "b": again}) is None


def test_errors_say_what_is_missing(tmp_path):
    run = made(questions=8)
    parts = in_parts(run, tmp_path / "run")
    with pytest.raises(CoraError, match=r"fair is not loaded .* needs more than counts: take the Responses to some"):
        score(parts, also=["agreement"])
    with pytest.raises(CoraError, match="take the Responses to some questions, such as ResponseParts"):
        score_table([parts], beyond=["circular"])
    with pytest.raises(CoraError, match="the responses have no column topic"):
        score(parts, ci=0.95, clusters="topic")
    with pytest.raises(CoraError, match="by must be one of"):
        score(parts, by="trial")
    table = run.table.copy()
    table.loc[table["question_id"].isin(["q1", "q2"]), "subject"] = None
    with pytest.raises(CoraError, match="2 of 8 questions have no subject"):
        score(in_parts(Responses(table, None, RECIPE), tmp_path / "some"), by="subject")
    write_responses(Responses(table[:0], None, RECIPE, "nobody"), tmp_path / "empty")
    with pytest.raises(CoraError, match="there are no responses to score"):
        score(ResponseParts(tmp_path / "empty"))
    with pytest.raises(CoraError, match="there are no responses to score"):
        count_parts(ResponseParts(tmp_path / "empty"))


def test_a_score_of_ones_own_must_use_the_weights(tmp_path):
    run = made(questions=30)
    parts = in_parts(run, tmp_path / "run")
    try:
        register_score("lucky", linear=True)(lambda counts: counts.share(lambda rc: rc > 0))
        equal(score(parts), score(run))
        register_score("unweighted")(lambda counts: float(np.mean(counts.hits > 3)))
        with pytest.raises(CoraError, match="the score unweighted ignores the weights"):
            score(parts)
    finally:
        SCORES.registered.pop("lucky"), SCORES.registered.pop("unweighted", None)


def test_a_run_that_stopped_when_settled_is_scored_from_its_files_too(tmp_path):
    run = evaluate(SimulatedRespondent(knows=0.8), SUMS_VARIANTS, stop=Settled(), progress=False)
    write_responses(run, tmp_path / "run")
    found, whole = score(ResponseParts(tmp_path / "run")), score(run)
    assert found["value"].notna().any() and (found["remarks"].map(bool) & found["value"].isna()).any()
    pd.testing.assert_frame_equal(found, whole)
