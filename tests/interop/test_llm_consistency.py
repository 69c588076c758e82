"""The package llm-consistency, an implementation of CAT by others: its files, and its numbers beside ours.

The files under tests/recorded/llm_consistency are of a real run of version 1.1.0, and the numbers in
data/measured/llm_consistency.csv of both packages: tools/peers/llm_consistency_peer.py made them, by hand.
"""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cora_nb.core import CoraError, data_path
from cora_nb.interop.formats import IMPORTERS, import_responses, recognise_tool
from cora_nb.metrics.scoring import score
from cora_nb.metrics.counts import count_hits
from cora_nb.responses.responses import as_responses

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "tests" / "recorded" / "llm_consistency"
REPORT = json.loads((RUN / "report.json").read_text())


def load_peer():
    "The script as a module."
    path = ROOT / "tools" / "peers" / "llm_consistency_peer.py"
    spec = importlib.util.spec_from_file_location("llm_consistency_peer", path)
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    return module


@pytest.fixture(scope="module")
def replies():
    return import_responses(RUN / "replies.csv", parse="tolerant")


# its files


@pytest.mark.parametrize("name", ["report.json", "report.csv", "checkpoint.jsonl"])
def test_its_results_hold_no_replies_and_are_refused_with_the_reason(tmp_path, name):
    assert "llm-consistency" not in IMPORTERS
    why = f"{name}: a result of llm-consistency holds no replies, only which variants were answered rightly; keep"
    with pytest.raises(CoraError, match=why):
        recognise_tool(RUN / name)
    text = (RUN / name).read_text()
    for change in (text[: len(text) // 2], "\ufeff" + text, text.replace("\n", "\r\n")):  # cut off, other ends of lines
        (tmp_path / name).write_text(change, newline="")
        with pytest.raises(CoraError, match="a result of llm-consistency holds no replies"):
            import_responses(tmp_path / name)


def test_there_is_indeed_no_reply_in_them():
    "A later version that holds replies fails here, if its files are recorded again."
    words = set(pd.read_csv(RUN / "replies.csv")["reply"].dropna())
    assert {"Answer: A", "I cannot say."} <= words
    kept = [line for name in ("report.json", "checkpoint.jsonl") for line in (RUN / name).read_text().splitlines()]
    assert not any("Answer: " in line for line in kept)
    assert all("raw" not in response for q in REPORT["results"] for response in q["scored_responses"])
    assert set(REPORT["results"][0]["scored_responses"][0]) == {
        *("question_id", "is_correct", "score", "scoring_method", "perturbation_type")
    }


def test_other_tables_and_logs_are_not_taken_for_its_own(tmp_path):
    for name, text, tool in [
        ("a.csv", "question_id,rc_correct,answer,prediction\n", "table"),
        ("b.jsonl", '{"question_id": "mca_threshold", "reply": "perturbation_types"}\n', "table"),
        ("c.json", '{"eval": {}, "mca_threshold": 1}', "inspect"),
        ("d.json", "{", "table"),
    ]:
        (tmp_path / name).write_text(text)
        assert recognise_tool(tmp_path / name) == tool


# its numbers and ours, on a run of its own


def test_both_packages_say_the_same_of_its_run(replies):
    theirs, counts = REPORT["results"], count_hits(replies)
    assert counts["hits"].to_dict() == {q["question_id"]: q["correct_count"] for q in theirs}
    assert counts["trials"].to_dict() == {q["question_id"]: q["total_variants"] for q in theirs}
    values = score(replies, thresholds=np.arange(1, 11) / 10).set_index("score")["value"]
    assert values["RC"] == pytest.approx(REPORT["mean_rc_correct"], abs=1e-12)
    assert values["CORE"] == pytest.approx(REPORT["aggregate"]["core_index"], abs=1e-12)
    for c, y in REPORT["aggregate"]["car_curve"][1:]:
        assert values[f"BMCA({c})"] == pytest.approx(y, abs=1e-12)
    assert np.isnan(values["MCQA"])  # it never asks the original


def test_each_reply_is_right_or_wrong_in_both(replies):
    theirs = [s["is_correct"] for q in REPORT["results"] for s in q["scored_responses"]]
    assert replies.table["correct"].tolist() == theirs


def test_what_it_shows_is_traced_back(replies):
    assert set(replies.table["method"]) == {"option_reorder", "separator_change"} and replies.family == "table"
    for row in replies.table.itertuples():
        assert sorted(row.sources) == [0, 1, 2, 3]
        assert (row.sources == (0, 1, 2, 3)) == (row.method == "separator_change")
    rights = replies.questions.set_index("question_id")["answer"]
    assert all(row.sources[row.answer] == rights[row.question_id] for row in replies.table.itertuples())


# the numbers of the study


@pytest.fixture(scope="module")
def measured():
    return pd.read_csv(data_path("measured", "llm_consistency.csv")).rename(columns={"llm-consistency": "theirs"})


def test_what_the_study_says_is_equal_is_equal(measured):
    same = measured[measured["quantity"].str.fullmatch(r"RC|CORE|core_index|mean_rc_correct|MCA\([\d.]+\)|McNemar.*")]
    same = same.dropna()
    assert len(same) > 80 and (same["ours"] - same["theirs"]).abs().max() < 1e-12
    apart = measured[measured["run"].str.endswith("unread replies apart")].dropna()
    apart = apart[~apart["run"].str.startswith("says nothing")]
    assert len(apart) > 10 and (apart["ours"] - apart["theirs"]).abs().max() < 1e-12


def test_our_side_of_the_study_still_holds(measured):
    "The respondents that need no recorded file, computed again."
    peer = load_peer()
    runs = [r for r in peer.runs_to_compare(recorded=False)]
    assert [r.name for r in runs] == ["slips", "first place", "says nothing", "always A"]
    for run in runs:
        ours = peer.flat(peer.ours_of(as_responses(run)))
        stored = measured[measured["run"] == run.name].set_index("quantity")["ours"]
        assert {*stored.index} == {name for name in ours if not name.startswith("CAR")}
        for name, value in stored.items():
            assert ours[name] == pytest.approx(value, abs=1e-9, nan_ok=True), (run.name, name)


def test_our_side_of_the_recorded_replies_still_holds(measured, medalpaca):
    peer = load_peer()
    ours = peer.flat(peer.ours_of(medalpaca.first_trial()))
    stored = measured[measured["run"] == "medalpaca-7b"].set_index("quantity")["ours"]
    for name, value in stored.items():
        assert ours[name] == pytest.approx(value, abs=1e-9), name
