"""Scores for a model card and for .eval_results: the numbers are ours, nothing is replaced, no key is written."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

from cora_nb.core import CoraError
from cora_nb.interop.formats import distinct_names, runs_to_publish, write_new_files
from cora_nb.interop.result_files import _metric_name, eval_results, export_model_card, known_scores, model_index
from cora_nb.metrics.scores import register_score, SCORES
from cora_nb.report.tables import plain_line, score_table
from cora_nb.responses.responses import Responses
from exported_runs import changed, in_part, NASTY, simulated, with_failures


@pytest.fixture(scope="module")
def run() -> Responses:
    return simulated()


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


def test_all_scores_of_the_table_are_known(run):
    known, table = known_scores(run), score_table({run.name: run}, ci=0.95)
    assert known.left_out == []
    assert known.table["score"].tolist() == table["score"].tolist()
    np.testing.assert_array_equal(known.table[["value", "low", "high"]], table[["value", "low", "high"]])


def test_a_part_has_neither_cora_nor_ci_and_says_so(run):
    known = known_scores(in_part(run))
    assert {"CoRA", "CI"}.isdisjoint(known.table["score"])
    assert known.left_out == [f"skewed: {name} is not known and left out (2 of 20 variants)" for name in ("CoRA", "CI")]
    index = model_index(in_part(run))
    names = [metric["name"] for metric in index[0]["results"][0]["metrics"]]
    assert names[:2] == ["MCQA", "MCQA+ (2 of 20 variants)"]


def test_few_failures_are_told_beside_the_number(run):
    metrics = model_index(with_failures(run, 2))[0]["results"][0]["metrics"]
    told = {metric["type"]: metric["name"] for metric in metrics}
    assert told["cora_nb.mcqa_plus"].startswith("MCQA+ (2 of 200 failed: at most 0.")


def test_many_failures_leave_scores_out_with_the_reason(run):
    known = known_scores(with_failures(run, 20))
    assert "CoRA" not in known.table["score"].tolist()
    assert any(
        line.startswith("skewed: CoRA is not known and left out (20 of 200 failed: from ") for line in known.left_out
    )


def test_no_known_score_is_one_line_and_no_file(run, tmp_path):
    lost = with_failures(run, 200)
    with pytest.raises(CoraError, match="skewed: no score is known; skewed: MCQA is not known"):
        export_model_card(lost, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_one_question_has_scores_without_intervals(run):
    one = run.rows(run.table["question_id"] == run.table["question_id"][0])
    metrics = model_index(one)[0]["results"][0]["metrics"]
    assert all("low" not in metric["args"] for metric in metrics) and len(metrics) == 11
    assert "interval" not in eval_results(one)[0]["notes"]


def test_a_score_of_ones_own_needs_a_direction(run):
    try:
        register_score("upwards", monotone=True)(lambda counts: 100 * counts.mean(counts.rc))
        register_score("wherever")(lambda counts: counts.mean(counts.rc) - 0.5)
        metrics = model_index(run, scores=["upwards"])[0]["results"][0]["metrics"]
        assert metrics[-1]["type"] == "cora_nb.upwards" and metrics[-1]["value"] > 1
        with pytest.raises(CoraError, match="the score 'wherever' does not declare monotone=True"):
            known_scores(run, scores=["wherever"])
    finally:
        for name in ("upwards", "wherever"):
            SCORES.registered.pop(name, None)
    with pytest.raises(CoraError, match="score must be one of"):
        known_scores(run, scores=["upwards"])


def test_names_of_metrics():
    assert [_metric_name(s) for s in ("MCQA", "MCQA+", "BMCA(0.5)", "CoRA")] == [
        "accuracy",
        "cora_nb.mcqa_plus",
        "cora_nb.bmca",
        "cora_nb.cora",
    ]


def test_the_hub_library_reads_the_card_back(run, tmp_path):
    export_model_card(
        run, tmp_path, dataset="me/math", split="test", source="https://huggingface.co/datasets/me/replies"
    )
    text = (tmp_path / "skewed/model-index.yaml").read_text()
    card = ModelCard(f"---\nlicense: mit\n{text}---\n# Mine\n")
    assert card.data.model_name == "skewed"
    table = known_scores(run).table.set_index("score")
    assert len(card.data.eval_results) == len(table)
    for result, (name, row) in zip(card.data.eval_results, table.iterrows()):
        assert result.metric_type == _metric_name(name) and result.dataset_type == "me/math"
        assert result.metric_value == round(row["value"], 6)
        assert (result.metric_args["low"], result.metric_args["high"]) == (round(row["low"], 6), round(row["high"], 6))
        assert result.metric_args["questions"] == 10 and result.source_url.endswith("me/replies")


def test_eval_results_hold_accuracy_alone(run, tmp_path):
    exported = export_model_card(run, tmp_path, dataset="me/math", task="test", date="2026-11-22")
    assert exported.files == ["skewed/model-index.yaml", "skewed/.eval_results/math.yaml"] and exported.notes == []
    (entry,) = parse_eval_result_entries(yaml.safe_load((tmp_path / exported.files[1]).read_text()))
    value = known_scores(run).table.set_index("score")["value"]
    assert (entry.dataset_id, entry.task_id, entry.value) == ("me/math", "test", round(value["MCQA"], 6))
    assert "10 questions; 0 shots" in entry.notes
    assert f"CoRA {value['CoRA']:.3f}, 95% interval" in entry.notes and entry.date == "2026-11-22"


def test_what_only_the_user_knows_is_marked(run, tmp_path):
    exported = export_model_card(run, tmp_path)
    assert exported.notes == ["skewed/.eval_results/math.yaml: fill in dataset and task"]
    text = (tmp_path / "skewed/.eval_results/math.yaml").read_text()
    assert text.startswith("# FILL-IN") and yaml.safe_load(text)[0]["dataset"]["id"] == "FILL-IN/FILL-IN"


def test_without_originals_there_are_no_eval_results(run, tmp_path):
    without = changed(run, run.table[run.table["method"] != "original"].reset_index(drop=True))
    exported = export_model_card(without, tmp_path)
    assert exported.files == ["skewed/model-index.yaml"]
    assert "skewed: there are no .eval_results, because MCQA is not known" in exported.notes


@pytest.mark.parametrize("name", NASTY)
def test_names_stay_names(run, tmp_path, name):
    named = Responses(run.table, run.questions, run.facts.plain() | {"run": {"benchmark": name}}, name)
    exported = export_model_card({name: named}, tmp_path / "out")
    assert set(files_in(tmp_path)) == {f"out/{file}" for file in exported.files}  # nothing above or beside the folder
    (index,) = yaml.safe_load((tmp_path / "out" / exported.files[0]).read_text())["model-index"]
    assert index["name"] == plain_line(name)
    assert {result["dataset"]["name"] for result in index["results"]} == {plain_line(name)}


def test_names_for_files_are_distinct():
    found = distinct_names([*NASTY, "A-B", "a b", "ALL", "", "."])
    assert len({part.lower() for part in found.values()}) == len(found)
    assert all(part and part[0] != "." and "/" not in part and len(part) <= 84 for part in found.values())


@pytest.mark.parametrize(
    "facts, place",
    [
        ({"respondent": {"api_key": "abc"}}, "facts.respondent.api_key is called like a key"),
        ({"respondent": {"extra": {"headers": {"Authorization": "x"}}}}, "headers.Authorization is called like a key"),
        ({"respondent": {"extra": {"password": ["x"]}}}, "facts.respondent.extra.password is called like a key"),
        (
            {"run": {"command": {"parse": "sk-abcdefghijklmnopqrst"}}},
            "facts.run.command.parse holds what looks like a key",
        ),
        ({"run": {"list": [1, "Bearer abcdefghij"]}}, "facts.run.list holds what looks like a key"),
        ({"respondent": {"server": "https://me:secret@host/v1"}}, "facts.respondent.server holds what looks like"),
        ({"run": {"hf_abcdefghijklmnopqrstuvw": 1}}, "the names in facts.run holds what looks like a key"),
        ({"run": {"note": "as in the environment: not-so-secret-42"}}, "facts.run.note holds what looks like a key"),
    ],
)
def test_keys_are_never_written(run, tmp_path, monkeypatch, facts, place):
    monkeypatch.setenv("MY_API_KEY", "not-so-secret-42")
    with pytest.raises(CoraError, match=place) as told:
        export_model_card(changed(run, **facts), tmp_path / "out")
    assert not (tmp_path / "out").exists() and "\n" not in str(told.value)
    assert not any(secret in str(told.value) for secret in ("sk-abc", "hf_abc", "secret-42", "me:secret"))


def test_a_key_in_the_words_of_a_failure_is_found(run):
    with pytest.raises(CoraError, match="the error of a row holds what looks like a key"):
        runs_to_publish(with_failures(run, 1, "401: wrong key sk-abcdefghijklmnopqrst"))


def test_ordinary_facts_hold_no_key(run):
    runs_to_publish(changed(run, respondent={"max_tokens": 5, "top_logprobs": 3, "server": "http://127.0.0.1:8000/v1"}))
    runs_to_publish(changed(run, respondent={"api_key": None, "model": "sk-small", "extra": {"token": ""}}))


def test_nothing_is_replaced(run, tmp_path):
    export_model_card(run, tmp_path)
    before = files_in(tmp_path)
    export_model_card(run, tmp_path)  # the same again
    with pytest.raises(CoraError, match="there is something else here already, and it is left alone"):
        export_model_card({"other": simulated("other"), "skewed": simulated(seed=2)}, tmp_path)
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("there", ["file", "folder"])
def test_a_file_or_folder_in_the_way(tmp_path, there):
    if there == "file":
        (tmp_path / "a").write_text("x")
        with pytest.raises(CoraError, match="this is a file, and a folder is to be written"):
            write_new_files(tmp_path / "a", {"b": b""})
    else:
        (tmp_path / "a").mkdir()
        with pytest.raises(CoraError, match="something else here already"):
            write_new_files(tmp_path, {"c": b"", "a": b""})
        assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("level", [0, 1, 95, "0.9", None])
def test_levels_that_make_no_sense(run, level):
    with pytest.raises(CoraError, match="level"):
        known_scores(run, level)
