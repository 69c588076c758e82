"""Records of Every Eval Ever: valid by a copy of its schema 0.3.0, with our numbers and intervals to the last digit."""

import json
import re
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from cora_nb.core import CoraError
from cora_nb.interop.result_files import evaluation_record, _EVERY_EVAL_EVER, export_every_eval_ever
from cora_nb.metrics.scores import register_score, SCORES
from cora_nb.report.tables import score_table
from cora_nb.responses.responses import Responses
from exported_runs import changed, in_part, NASTY, scored, simulated, with_failures

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
SCHEMA = json.loads((Path(__file__).parent / "every_eval_ever/eval.schema.json").read_text())
PATH = re.compile(
    r"data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.json"
)  # of an aggregate in their database, with a UUID of version 4


def check(record: dict) -> None:
    "The schema, and what their validator asks beyond it: finite numbers, and scores within the bounds."
    record = json.loads(json.dumps(record, allow_nan=False))
    jsonschema.Draft7Validator(SCHEMA).validate(record)
    for result in record["evaluation_results"]:
        metric, details = result["metric_config"], result["score_details"]
        low, high = (float(metric[bound]) for bound in ("min_score", "max_score"))
        assert low <= details["score"] <= high
        if ends := details["uncertainty"].get("confidence_interval"):
            assert low <= ends["lower"] <= details["score"] <= ends["upper"] <= high
            assert set(ends) == {"lower", "upper", "confidence_level", "method"}


@pytest.fixture(scope="module")
def run() -> Responses:
    return simulated()


def test_the_copy_of_the_schema_is_the_version_we_write():
    assert SCHEMA["version"] == _EVERY_EVAL_EVER == "0.3.0"
    jsonschema.Draft7Validator.check_schema(SCHEMA)


CHAT = {
    "respondent": "chat",
    "model": "gpt-4o",
    "server": "https://api.openai.com/v1",
    "temperature": 0.7,
    "max_tokens": 16,
    "seed": None,
    "extra": {"top_p": 0.9},
}
CAUSAL = {"respondent": "causal", "model": "small", "dtype": "float32", "max_new_tokens": None, "temperature": 0.0}


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run,
        in_part,
        lambda run: with_failures(run, 2),
        lambda run: with_failures(run, 3),
        lambda run: run.rows(run.table["question_id"] == run.table["question_id"][0]),
        lambda run: run.rows(run.table["method"] == "original", chosen="the originals"),
        lambda run: changed(run, respondent=CHAT),
        lambda run: changed(run, respondent=CAUSAL),
        lambda run: changed(run, imported={"format": "CAT", "file": "x.xlsx", "parse": "as recorded"}),
        lambda run: changed(run, imported={"format": "lm-eval", "versions": {"lm_eval": "0.4.13"}}),
        lambda run: Responses(run.table, run.questions, {}, run.name),
        lambda run: Responses(run.table, None, {"respondent": {}, "variants": {}, "run": {}}, run.name),
        lambda run: scored(),
        lambda run: simulated(knows=1.0, slips=0.0, position=(1,) * 5),
    ],
    ids="whole part few_failed many_failed one originals chat causal cat lm_eval bare odd scored perfect".split(),
)
def test_every_kind_of_run_is_valid(run, change):
    check(evaluation_record(change(run)))


def test_the_schema_is_really_asked(run):
    record = evaluation_record(run)
    for spoil in (
        lambda r: r.pop("model_info"),
        lambda r: r["model_info"]["additional_details"].update(count=3),
        lambda r: r["evaluation_results"][0]["score_details"]["uncertainty"]["confidence_interval"].pop("lower"),
        lambda r: r["evaluation_results"][0]["score_details"].update(score="0.5"),
        lambda r: r.update(extra=1),
    ):
        spoilt = deepcopy(record)
        spoil(spoilt)
        with pytest.raises(jsonschema.ValidationError):
            check(spoilt)


def test_numbers_and_intervals_are_ours_to_the_last_digit(run):
    table = score_table({run.name: run}, ci=0.9)
    results = evaluation_record(run, level=0.9)["evaluation_results"]
    assert [r["metric_config"]["metric_name"] for r in results] == table["score"].tolist()
    for result, row in zip(results, table.itertuples()):
        ends = result["score_details"]["uncertainty"]["confidence_interval"]
        assert result["score_details"]["score"] == row.value
        assert (ends["lower"], ends["upper"], ends["confidence_level"]) == (row.low, row.high, 0.9)
        assert result["score_details"]["uncertainty"]["num_samples"] == 10  # questions, and not the 200 variants
    thresholds = [r["metric_config"].get("metric_parameters") for r in results]
    assert {"c": 0.5} in thresholds and thresholds[0] is None


def test_what_rests_on_a_part_says_so(run):
    found = {r["metric_config"]["metric_name"]: r for r in evaluation_record(in_part(run))["evaluation_results"]}
    assert "CoRA" not in found and "2 of 20 variants" in found["MCQA+"]["score_details"]["details"]["note"]
    failed = {
        r["metric_config"]["metric_name"]: r for r in evaluation_record(with_failures(run, 2))["evaluation_results"]
    }
    assert "2 of 200 failed: at most" in failed["MCQA+"]["score_details"]["details"]["note"]


def test_names_of_evaluations(run):
    results = evaluation_record(run, dataset="me/math", split="test")["evaluation_results"]
    assert [r["evaluation_name"] for r in results[:2]] == ["math", "math.cora"]
    assert results[0]["source_data"]["hf_repo"] == "me/math" and results[0]["source_data"]["samples_number"] == 10
    assert len({r["evaluation_result_id"] for r in results}) == len(results)
    assert results[0]["metric_config"]["evaluation_description"].count("Source:") == 1


def test_who_asked(run):
    assert evaluation_record(run)["eval_library"]["name"] == "cora_nb"
    imported = changed(run, imported={"format": "lm-eval", "versions": {"lm_eval": "0.4.13"}, "parse": "as recorded"})
    library = evaluation_record(imported)["eval_library"]
    assert library["name"] == "lm-eval" and "0.4.13" in library["version"]
    assert library["additional_details"]["scores"].startswith("cora_nb ")


def test_who_answered(run):
    record = evaluation_record(changed(run, respondent=CHAT), model="openai/gpt-4o", availability="closed_weights")
    info, args = record["model_info"], record["evaluation_results"][0]["generation_config"]["generation_args"]
    assert (info["id"], info["developer"], info["name"]) == ("openai/gpt-4o", "openai", "skewed")
    assert args == {"temperature": 0.7, "max_tokens": 16}
    assert info["additional_details"]["extra"] == '{"top_p": 0.9}' and "seed" not in info["additional_details"]
    local = evaluation_record(changed(run, respondent=CAUSAL, versions={"transformers": "5.0"}))["model_info"]
    assert local["inference_engine"] == {"name": "transformers", "version": "5.0"}
    assert local["additional_details"]["deployment_type"] == "self_deployed"


@pytest.mark.parametrize(
    "options, words",
    [
        ({"relationship": "self"}, "relationship must be one of first_party, third_party, collaborative, other"),
        ({"availability": "open"}, "availability must be one of open_weights, closed_weights, unknown"),
        ({"level": 95}, "level"),
    ],
)
def test_words_that_the_schema_lacks(run, options, words):
    with pytest.raises(CoraError, match=words):
        evaluation_record(run, **options)


def test_scores_of_ones_own_have_no_bounds(run):
    try:
        register_score("tall", monotone=True)(lambda counts: 40 * counts.mean(counts.rc))
        record = evaluation_record(run, scores=["tall"])
    finally:
        SCORES.registered.pop("tall", None)
    jsonschema.Draft7Validator(SCHEMA).validate(record)
    metric = record["evaluation_results"][-1]["metric_config"]
    assert (metric["metric_name"], metric["min_score"], metric["max_score"]) == ("tall", "-Infinity", "Infinity")


def test_folder_and_repeated_export(run, tmp_path):
    told = {"organization": "X", "developer": "me", "availability": "open_weights", "dataset": "me/math"}
    exported = export_every_eval_ever(run, tmp_path, retrieved=1_800_000_000, **told)
    (file,) = exported.files
    assert PATH.fullmatch(file) and file.startswith("data/math/me/skewed/") and exported.notes == []
    before = (tmp_path / file).read_bytes()
    assert json.loads(before)["retrieved_timestamp"] == "1800000000"
    later = changed(run, versions={"python": "4"}, calls={"asked": 0})  # the same run, repeated from the store
    assert export_every_eval_ever(later, tmp_path, **told).files == [file]
    assert (tmp_path / file).read_bytes() == before
    other = export_every_eval_ever(simulated(seed=3), tmp_path, **told).files
    assert other != [file] and (tmp_path / file).read_bytes() == before


def test_a_record_that_was_changed_is_left_alone(run, tmp_path):
    (file,) = export_every_eval_ever(run, tmp_path).files
    (tmp_path / file).write_text((tmp_path / file).read_text().replace("unknown", "Mine"))
    with pytest.raises(CoraError, match="something else here already"):
        export_every_eval_ever(run, tmp_path)
    (tmp_path / file).write_text("{")
    with pytest.raises(CoraError, match="something else here already"):
        export_every_eval_ever(run, tmp_path)


def test_one_model_is_not_several(run, tmp_path):
    with pytest.raises(CoraError, match="model='x/y' names one model, and there are 2 runs"):
        export_every_eval_ever([run, simulated("other")], tmp_path, model="x/y")


@pytest.mark.parametrize("name", [*NASTY, "a/b/c", "..", "a:b", "x/..", "/"])
def test_names_stay_names(run, tmp_path, name):
    named = Responses(run.table, run.questions, run.facts.plain() | {"run": {"benchmark": name}}, name)
    if len(name) > 250:
        with pytest.raises(CoraError, match="cannot be written"):
            export_every_eval_ever(named, tmp_path / "out")
        return
    (file,) = export_every_eval_ever(named, tmp_path / "out").files
    assert PATH.fullmatch(file)
    assert [p.relative_to(tmp_path / "out").as_posix() for p in tmp_path.rglob("*.json")] == [file]
    check(json.loads((tmp_path / "out" / file).read_text()))


def test_no_key(run, tmp_path):
    with pytest.raises(CoraError, match="looks like a key"):
        export_every_eval_ever(changed(run, respondent={"extra": {"x": "sk-abcdefghijklmnopqrst"}}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_incomplete_numbers_never_become_numbers(run):
    "NaN cannot stand in a record, and where an interval is not known there is none."
    one = run.rows(run.table["question_id"] == run.table["question_id"][0])
    for result in evaluation_record(one)["evaluation_results"]:
        assert "confidence_interval" not in result["score_details"]["uncertainty"]
        assert np.isfinite(result["score_details"]["score"])


def test_repetitions_and_folders_are_told(run, tmp_path):
    three = changed(simulated(trials=3, slips=0.2), respondent={"respondent": "causal", "path": "/home/me/model"})
    for made, words in ((three, "the first of 3 repetitions"), (three.pool_trials(), "all 3 repetitions")):
        results = evaluation_record(made)["evaluation_results"]
        assert all(r["score_details"]["details"]["trials"] == f"{words} of a prompt" for r in results)
    notes = export_every_eval_ever(three, tmp_path).notes
    assert any(note.endswith("model_info.additional_details.path names a folder of this machine") for note in notes)


def test_half_a_character_in_the_facts(run, tmp_path):
    odd = changed(run, respondent={"respondent": "chat", "system": "half \ud83d"})
    (file,) = export_every_eval_ever(odd, tmp_path).files
    check(json.loads((tmp_path / file).read_bytes()))
