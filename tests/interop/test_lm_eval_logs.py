"""Logs of lm-evaluation-harness: real ones of lm-eval 0.4.13, some of our own make, and broken ones.

`tools/peers/record_lm_eval_foreign.py` makes the real ones.
"""

import copy
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.cli.importing import cora_import
from cora_nb.core import BadRow, CoraError
from cora_nb.interop.formats import import_responses, recognise_tool
from cora_nb.interop.lm_eval_logs import _read_sample, _scored_question
from cora_nb.interop.lm_eval_logs import import_lm_eval
from cora_nb.metrics.scoring import score
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.files import read_responses
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate, Running, prepare
from cora_nb.variants.families import make_variants
from cora_nb.variants.files import variant_rows
from lm_eval_rows import OURS, RECORDED, config_of, recorded, rows_of, scored_row, write_log, written_row

# Real logs of tasks that are not ours


@pytest.mark.parametrize("task", ["arith_cloze", "arith_letters", "arith_pmi"])
def test_a_real_task_of_multiple_choice(task):
    path = recorded(task)
    rows, found = rows_of(path), import_lm_eval(path)
    assert found.name == "skewed" and found.family == "cora" and found.table["method"].eq("original").all()
    assert found.facts.run.benchmark == task
    for row, (_, line) in zip(rows, found.table.iterrows()):
        likelihoods = [float(r[0][0]) for r in row["resps"][: len(row["doc"]["choices"])]]
        assert line["question_id"] == row["doc"]["id"] and line["subject"] == row["doc"]["subject"]
        assert list(line["scores"]) == likelihoods and line["answer"] == row["doc"]["answer"]
        tied = likelihoods.count(max(likelihoods)) > 1
        assert line["prediction"] == (-1 if tied else int(np.argmax(likelihoods)))
        assert tied or line["correct"] == bool(row["acc"])
        assert line["confidence"] == pytest.approx(np.exp(max(likelihoods)) / np.exp(likelihoods).sum())
    assert [list(c) for c in found.questions["choices"]] == [row["doc"]["choices"] for row in rows]
    assert found.questions["text"].tolist() == [row["doc"]["question"] for row in rows]


def test_a_real_task_that_varies_the_context():
    path = recorded("arith_blank")
    found, rows = import_lm_eval(path), rows_of(path)
    assert found.table["answer"].tolist() == [row["doc"]["label"] for row in rows]
    assert found.table["correct"].tolist() == [bool(row["acc"]) for row in rows]
    assert [list(c) for c in found.questions["choices"]] == [[r["doc"]["option1"], r["doc"]["option2"]] for r in rows]
    assert found.questions["text"].tolist() == [f"{row['doc']['sentence']} right." for row in rows]
    # where the right one stands behind a function, as in Winogrande, the verdict tells it
    config = config_of(path) | {"doc_to_text": "def doc_to_text(doc):\n    return doc['label']\n"}
    again = [_scored_question(_read_sample(r, 1, "log"), "q", config, "log").answer for r in rows]
    assert again == [row["doc"]["label"] for row in rows]


def test_real_filters_and_repetitions():
    path = recorded("arith_gen")
    with pytest.raises(CoraError, match="several filters have read the replies, capital, small; choose one of them"):
        import_lm_eval(path)
    with pytest.raises(CoraError, match="there is no filter 'large', only capital, small"):
        import_lm_eval(path, select="large")
    capital, small, raw = import_lm_eval(path, select="capital"), import_lm_eval(path, select="small"), None
    assert capital.table["correct"].tolist() == [bool(r["exact_match"]) for r in rows_of(path)[:12]]
    assert capital.facts.imported["notes"] == ["exact_match of lm-eval and our verdict agree on all 12 documents"]
    assert "differ on 11 of 12 documents: it compares texts" in small.facts.imported["notes"][0]
    raw = import_lm_eval(path, parse="first_token")
    assert raw.table["prediction"].equals(capital.table["prediction"])
    assert raw.facts.imported["parse"] == "first_token"
    assert capital.facts.imported["parse"] == "careful, of what the filter made"
    draws = import_lm_eval(recorded("arith_draws"))
    assert draws.trials == (0, 1, 2) and len(draws) == 36
    assert draws.table["reply"].tolist() == [said for r in rows_of(recorded("arith_draws")) for said in r["resps"][0]]
    assert draws.facts.respondent["shares"] is False and raw.facts.respondent["shares"] is True


def test_real_tasks_that_are_refused():
    with pytest.raises(BadRow, match="row 1, id '0', target: 2 choices are right, and a question here has one"):
        import_lm_eval(recorded("arith_several"))
    why = "no known column contains the choices, so there is nothing to choose from, got .'question', 'result'"
    with pytest.raises(BadRow, match=why):
        import_lm_eval(recorded("arith_open"))
    with pytest.raises(CoraError, match="no row could be read, the first of them: "):
        import_lm_eval(recorded("arith_open"), on_bad="skip")


def test_real_limit_and_examples():
    found = import_lm_eval(recorded("arith_letters", 1))
    imported = found.facts.imported
    assert "lm-eval ran with --limit 3: 3 of 12 documents" in imported["notes"]
    assert imported["n_shot"] == 2 and found.facts.run.limit == 3 and imported["lm_eval_version"] == "0.4.13"
    assert imported["task_config"]["doc_to_choice"] == ["A", "B", "C", "D"] and imported["settings"]["device"] == "cpu"
    assert found.questions["text"].tolist() == import_lm_eval(recorded("arith_letters")).questions["text"].tolist()[:3]


def test_the_command(tmp_path, capsys, monkeypatch):
    path = Path(shutil.copy(recorded("arith_cloze"), tmp_path))
    shutil.copy(path.parent / path.name, tmp_path / "again.jsonl")
    for results in RECORDED.glob("results_*.json"):
        shutil.copy(results, tmp_path)
    assert recognise_tool(path) == "lm-eval"
    cora_import(str(path), out=str(tmp_path / "run"))
    said = capsys.readouterr().out
    assert "13 questions" in said and "  acc of lm-eval and our verdict differ on 1 of 13 documents" in said
    back = read_responses(tmp_path / "run")
    assert back.equals(import_responses(path)) and back.facts.imported["file"] == path.name
    assert import_responses(tmp_path / "again.jsonl").table["correct"].sum() == back.table["correct"].sum()


# Tasks of our own


def own_rows(variants, replies, scores, trials=1) -> list[dict]:
    rows = []
    for i, doc in enumerate(variant_rows(variants)):
        mine = slice(i * trials, (i + 1) * trials)
        if scores is None:
            rows.append(written_row(i, doc | {"prompt": "p"}, "A", list(replies[mine]), "p"))
            if trials > 1:
                rows[-1]["filtered_resps"] = [list(replies[mine])]
        else:
            rows.append(scored_row(i, doc | {"context": f"Q{i}?"}, "0", list(scores[mine][0]), doc["choices"]))
            rows[-1]["resps"] = [[[str(s[k]), "False"] for s in scores[mine]] for k in range(len(doc["choices"]))]
    return rows


@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize("scored", [False, True])
@pytest.mark.parametrize("family", ["cora", "mcqa_plus", "permutations"])
def test_our_own_task_comes_back_equal(tmp_path, family, scored, trials):
    variants = [v for v in make_variants(load_benchmark("math")[:4], family) if v.form in ("mcq", "tfq")]
    run = evaluate(SimulatedRespondent(knows=0.5, with_scores=True), variants, Asking(trials=trials), progress=False)
    t = run.table
    path = write_log(tmp_path, own_rows(variants, t["reply"], t["scores"].tolist() if scored else None, trials))
    back = import_lm_eval(path)
    kept = [c for c in t if c not in ("respondent", "reply", "scores", "confidence", "n_tokens", "finish")]
    kept = [c for c in kept if not scored or c not in ("prediction", "correct")]
    pd.testing.assert_frame_equal(back.table[kept], t[kept])
    assert back.facts.variants == run.facts.variants and back.facts.benchmark == run.facts.benchmark
    if scored:
        assert all(np.allclose(a, b, atol=1e-9) for a, b in zip(back.table["scores"], t["scores"]))
    else:
        assert back.table["reply"].equals(t["reply"])
        assert score(back)["value"].equals(score(run)["value"])


@pytest.mark.skipif(not OURS.is_dir(), reason="tools/peers/lm_eval_peer.py has recorded nothing here")
def test_real_logs_of_our_own_task():
    paths = sorted(OURS.rglob("samples_*.jsonl"))
    assert len(paths) >= 2
    for path in paths:
        found = import_lm_eval(path)
        docs = [row["doc"] for row in rows_of(path)]
        assert found.complete and found.facts.imported["left_out"] == 0
        assert found.table["method"].tolist() == [doc["method"] for doc in docs]
        assert found.facts.imported["notes"][0].endswith(f"agree on all {len(docs)} documents")


def exported_results(**facts) -> dict:
    return {"configs": {"t": {"metadata": {"cora_nb": facts}}}, "model_name": "org/model"}


def test_what_an_export_says_of_itself(tmp_path):
    variants = make_variants(load_benchmark("math")[:2])
    run = prepare(variants, Asking(parse="first_token"), facts={"benchmark": "math", "limit": 9}).ask(
        SimulatedRespondent(), Running(progress=False)
    )
    told = run.facts.without("version", "respondent", "versions", "calls").plain()
    rows = own_rows(variants, run.table["reply"], None)
    found = import_lm_eval(write_log(tmp_path, rows, results=exported_results(**told)))
    assert found.name == "org/model" and found.facts.run.benchmark == "math"
    assert found.facts.asked == run.facts.asked
    assert found.facts.imported["parse"] == run.facts.asked.parse and found.facts.run.limit == 9
    assert "cora_nb" not in found.facts.imported["task_config"]["metadata"]
    part = import_lm_eval(write_log(tmp_path, rows[:25], results=exported_results(**told)))
    assert part.coverage == "5 to 20 of 20 variants" and "prompts" not in part.facts.asked.plain()
    for row in rows:
        row["arguments"]["gen_args_0"]["arg_0"] = "shots first, p"
    notes = import_lm_eval(write_log(tmp_path, rows)).facts.imported["notes"]
    assert any(note.startswith("40 of 40 prompts are not those that were exported: --num_fewshot") for note in notes)


def test_nothing_of_a_strangers_is_run(tmp_path):
    (tmp_path / "owned.py").write_text("from pathlib import Path\nPath(__file__).with_suffix('.done').touch()\nf = 1\n")
    theirs = f"{tmp_path}/owned.py:f"
    variants = make_variants(load_benchmark("math")[:1])
    rows = own_rows(variants, ["A"] * len(variants), None)
    for row in rows:
        row["doc"]["recipe"] = json.dumps({"family": theirs, "seed": 0, "options": {}})
        row["doc"]["family"] = theirs
    told = {"asked": {"parse": {"mcq": theirs}, "template": theirs}}
    found = import_lm_eval(write_log(tmp_path, rows, results=exported_results(**told)))
    assert found.complete is None and score(found)["value"].notna().any()
    assert "recipe" not in found.facts.variants.plain() and "asked" not in found.facts.plain()
    function = {
        "doc_to_target": "def f(doc):\n    raise SystemExit",
        "doc_to_choice": "{{1/0}}",
        "doc_to_text": "{{1/0}}",
    }
    found = import_lm_eval(write_log(tmp_path, [scored_row()], results={"configs": {"t": function}}))
    assert found.table["answer"].tolist() == [1]
    assert not (tmp_path / "owned.done").exists()


def test_secrets_are_not_kept(tmp_path):
    settings = {"model_args": {"pretrained": "m", "api_key": "S1", "tokenizer": "kept"}, "gen_kwargs": "token=S2,x=1"}
    task = {"metadata": {"hf_token": "S3"}}
    path = write_log(tmp_path, [scored_row()], results={"configs": {"t": task}, "config": settings})
    facts = import_lm_eval(path).facts.as_json()
    assert not re.search(r"S\d", facts) and "kept" in facts and "token=***,x=1" in facts


def test_a_filter_that_makes_one_of_several_replies(tmp_path):
    rows = [written_row(i, replies=("B", "C", "B"), filter="vote", filtered_resps=["B"]) for i in range(2)]
    path = write_log(tmp_path, rows)
    with pytest.raises(CoraError, match="3 replies to a prompt, of which the filter vote makes 1; name a rule"):
        import_lm_eval(path)
    assert import_lm_eval(path, parse="first_token").table["prediction"].tolist() == [1, 2, 1] * 2
    rows = [row | {"filtered_resps": [["b", "c", "[invalid]"]]} for row in rows]
    found = import_lm_eval(write_log(tmp_path, rows)).table
    assert found["prediction"].tolist() == [1, 2, -1] * 2 and found["reply"].tolist() == ["B", "C", "B"] * 2


def test_a_task_without_a_question(tmp_path):
    row = scored_row(
        doc={"sentence_good": "It is.", "sentence_bad": "It are."}, target="0", choices=("It is.", "It are.")
    )
    row["resps"] = row["resps"][:2]
    for sent in row["arguments"].values():
        sent["arg_0"] = ""
    found = import_lm_eval(write_log(tmp_path, [row | {"acc": 0.0}]))
    assert found.questions["text"].tolist() == ["Which of these is the likeliest?"]
    assert (
        "nothing stands before the choices: they are whole texts, one of which is right"
        in (found.facts.imported["notes"])
    )


def test_values_that_are_no_numbers(tmp_path):
    rows = [
        scored_row(0, lls=(-np.inf, -1, -2)),
        scored_row(1, lls=(-np.inf,) * 3),
        scored_row(2, lls=(np.nan, -1, -2)),
    ]
    found = import_lm_eval(write_log(tmp_path, rows)).table
    assert found["prediction"].tolist() == [1, -1, -1]
    assert found["confidence"].isna().tolist() == [False, True, True]


def test_ids_of_questions(tmp_path):
    def ids(*docs):
        rows = [scored_row(i, doc={"question": "Q?"} | doc) for i, doc in enumerate(docs)]
        return import_lm_eval(write_log(tmp_path, rows)).table["question_id"].tolist()

    assert ids({"id": "a"}, {"id": "b"}) == ["a", "b"]
    assert ids({"id": 7}, {"id": 9}) == ["7", "9"]
    assert ids({"id": "a"}, {"id": "a"}) == ids({"id": "a"}, {}) == ids({"id": ""}, {"id": "b"}) == ["0", "1"]


def test_rows_come_in_the_order_of_the_documents(tmp_path):
    rows = [scored_row(i) for i in (2, 0, 1)]
    assert import_lm_eval(write_log(tmp_path, rows)).table["question_id"].tolist() == ["0", "1", "2"]


# Broken logs


BROKEN = {
    "not an object": ([1, 2], "the line must be a JSON object, got"),
    "nonsense": ("no json", "the line is not JSON .Expecting value., got 'no json"),
    "older": ({"doc_id": 1, "doc": {}, "target": "1"}, "arguments: the key arguments is missing, which lm-eval 0.4.13"),
    "arguments": (scored_row(1, arguments=[["Q", " x"]]), "arguments must be an object of gen_args_0"),
    "no document": (scored_row(1, doc="Q"), "doc must be an object"),
    "fewer replies": (scored_row(1, resps=[[["-1", "True"]]]), "resps must hold the replies to 3 requests"),
    "no likelihood": (scored_row(1, resps=[[["x", "True"]]] * 3), "a reply to a choice must be a log-likelihood"),
    "perplexity": (scored_row(1, arguments={"gen_args_0": {"arg_0": "x"}}), "there are no choices"),
    "one text": (
        scored_row(1, arguments={"gen_args_0": {"arg_0": "x", "arg_1": " y"}}, resps=[[["-1", "True"]]]),
        "how likely one text is .output_type loglikelihood., so there are no choices",
    ),
    "mutual": (scored_row(1, metrics=["acc_mutual_info"]), "acc_mutual_info needs each choice a second time"),
    "empty choice": (scored_row(1, choices=("x", "", "z")), "choice B must be a non-empty text, got ''"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_line_that_cannot_be_read_is_named(tmp_path, name):
    bad, why = BROKEN[name]
    path = write_log(tmp_path, [scored_row(0), bad, scored_row(2)])
    with pytest.raises(BadRow, match=why) as e:
        import_lm_eval(path)
    assert str(e.value).startswith(f"{path}, row 2") and "\n" not in str(e.value) and len(str(e.value)) < 500
    with pytest.warns(UserWarning, match="left out 1 rows that could not be read, the first of them"):
        rest = import_lm_eval(path, on_bad="skip")
    assert rest.table["question_id"].tolist() == ["0", "2"] and rest.facts.imported["left_out"] == 1


def test_a_log_that_is_cut_off(tmp_path):
    path = write_log(tmp_path, [scored_row(i) for i in range(3)])
    path.write_text(path.read_text()[:-100])
    with pytest.raises(BadRow, match=r"row 3: the line is cut off \(.*\), got"):
        import_lm_eval(path)
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(scored_row(0)).encode() + b"\r\n\r\n")
    assert len(import_lm_eval(path)) == 1
    path.write_bytes(b'{"doc_id": 0, "doc": "\xff"}\n')
    with pytest.raises(BadRow, match=r"row 1: the line is not JSON \(UnicodeDecodeError\)"):
        import_lm_eval(path)
    path.write_bytes(b"")
    with pytest.raises(CoraError, match="the file is empty"):
        import_lm_eval(path)


def test_huge_lines(tmp_path):
    huge = "x" * 5_000_000
    path = write_log(tmp_path, [scored_row(0, doc={"question": "Q?", "passage": huge}), scored_row(1)])
    assert len(import_lm_eval(path)) == 2
    for bad in (huge, f'{{"doc": "{huge}'):
        with pytest.raises(BadRow, match="row 2: the line is not JSON") as e:
            import_lm_eval(write_log(tmp_path, [scored_row(0), bad]))
        assert len(str(e.value)) < 400


def test_joined_and_mixed_logs(tmp_path):
    with pytest.raises(CoraError, match="row 3: document 0 stands in row 1 already; are two logs joined in this file"):
        import_lm_eval(write_log(tmp_path, [scored_row(0), scored_row(1), scored_row(0, doc={"question": "other"})]))
    with pytest.raises(CoraError, match="row 2: this document is of another task than that of row 1"):
        import_lm_eval(write_log(tmp_path, [scored_row(0), written_row(1)]))
    variants = make_variants(load_benchmark("math")[:1])
    own = own_rows(variants, ["A"] * len(variants), None)
    with pytest.raises(CoraError, match="row 21: this document is of another task"):
        import_lm_eval(write_log(tmp_path, [*own, written_row(20)]))


@pytest.mark.parametrize("change", ["lose", "swap", "edit"])
def test_the_seal_of_the_results_file(tmp_path, change):
    rows, path = rows_of(recorded("arith_letters")), recorded("arith_letters")
    shutil.copy(path.with_name(f"results_{path.stem.rpartition('_')[2]}.json"), tmp_path)
    if change == "lose":
        rows = rows[:-1]
    elif change == "swap":
        rows[0], rows[1] = rows[1], rows[0]
    else:
        rows[3]["target_hash"] = rows[4]["target_hash"][::-1]
    broken = tmp_path / path.name
    broken.write_text("".join(json.dumps(r) + "\n" for r in rows))
    why = f"its lines, of {len(rows)} documents, are not those its results file was written with, of 12 documents"
    with pytest.raises(CoraError, match=why):
        import_lm_eval(broken)
    found = import_lm_eval(broken, on_bad="skip")
    assert len(found) == len(rows) and re.match(why, found.facts.imported["notes"][0])


def test_results_that_are_not_there_or_of_another_run(tmp_path):
    path = Path(shutil.copy(recorded("arith_letters"), tmp_path))
    stamp = path.stem.rpartition("_")[2]
    assert import_lm_eval(path).facts.imported["notes"][0] == (
        f"results_{stamp}.json is not beside it: model and settings are not known"
    )
    other = Path(shutil.copy(sorted(RECORDED.glob("results_*.json"))[1], tmp_path))
    assert f"({other.name} is of another run)" in import_lm_eval(path).facts.imported["notes"][0]
    results = tmp_path / f"results_{stamp}.json"
    results.write_text(other.read_text().replace("arith_letters", "arith_other"))
    with pytest.raises(CoraError, match=f"the task arith_letters of {path.name} is not there; it is about arith_other"):
        import_lm_eval(path)
    results.write_text("[]")
    with pytest.raises(CoraError, match="is not there; it holds no configs"):
        import_lm_eval(path)
    results.write_text(other.read_text()[:100])
    with pytest.raises(CoraError, match=f"{results.name}: the file is not JSON"):
        import_lm_eval(path)
    found = import_lm_eval(path.rename(tmp_path / "mine.jsonl"))
    assert "is not named samples_TASK_STAMP.jsonl" in found.facts.imported["notes"][0] and found.name == "mine"


def test_what_is_no_log(tmp_path):
    with pytest.raises(CoraError, match="this is a folder, and a file samples_.* is needed; it holds no log"):
        import_lm_eval(tmp_path)
    with pytest.raises(CoraError, match=r"it holds samples_arith_blank_\S+ and \d+ more$"):
        import_lm_eval(RECORDED)
    with pytest.raises(CoraError, match="cannot be read .No such file"):
        import_lm_eval(tmp_path / "nothing.jsonl")
    with pytest.raises(CoraError, match="on_bad must be one of raise, skip, got 'ignore'"):
        import_lm_eval(tmp_path, on_bad="ignore")
    with pytest.raises(CoraError, match="parse is a rule for written replies, and here the choices were scored"):
        import_lm_eval(recorded("arith_cloze"), parse="careful")
    with pytest.raises(CoraError, match="no_such_rule"):
        import_lm_eval(recorded("arith_draws"), parse="no_such_rule")


def test_a_bad_row_of_our_own_task(tmp_path):
    variants = make_variants(load_benchmark("math")[:1])
    rows = own_rows(variants, None, [tuple(-float(i + 1) for i in range(v.n_choices)) for v in variants])
    rows[3]["doc"]["answer"] = 9
    rows[5]["resps"] = rows[5]["resps"][:1] * 2
    rows[5]["arguments"] = {f"gen_args_{i}": rows[5]["arguments"]["gen_args_0"] for i in range(2)}
    rows.insert(0, "")
    with pytest.raises(BadRow, match="row 5, id 'math-0-1', answer: answer must be an index of a choice shown, got 9"):
        import_lm_eval(write_log(tmp_path, rows))
    rows[4]["doc"]["answer"] = variants[3].answer
    with pytest.raises(BadRow, match=f"there must be {variants[5].n_choices} log-likelihoods, .* got 2"):
        import_lm_eval(write_log(tmp_path, rows))
    rows[4]["doc"]["sources"] = ["a"]
    with pytest.warns(UserWarning, match="left out 2 rows"):
        rest = import_lm_eval(write_log(tmp_path, rows), on_bad="skip")
    assert len(rest) == len(variants) - 2 and rest.coverage == "18 of 20 variants"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)


def places(value, path=()):
    "Every place in a JSON value."
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


@pytest.mark.slow
@given(data=st.data(), kind=st.sampled_from(["scored", "written", "own", "results"]), value=JSON_VALUES)
def test_whatever_a_log_holds_nothing_but_our_own_errors(tmp_path_factory, data, kind, value):
    own = own_rows(make_variants(load_benchmark("math")[:1])[:2], ["A", "B"], None)
    rows = {"scored": [scored_row(0), scored_row(1)], "written": [written_row(0), written_row(1)], "own": own}
    rows = rows.get(kind, own)
    results = exported_results(asked={"parse": {"mcq": "first_token"}, "template": "cora"}, run={"benchmark": "b"})
    results |= {"config": {"limit": 3}, "n-samples": {"t": {"original": 5, "effective": 2}}, "task_hashes": {"t": "x"}}
    changed = copy.deepcopy(results if kind == "results" else rows[1])
    spot = data.draw(st.sampled_from([p for p in places(changed) if p]))
    holder = changed
    for key in spot[:-1]:
        holder = holder[key]
    holder[spot[-1]] = value
    folder = tmp_path_factory.mktemp("fuzz")
    lines = rows if kind == "results" else [rows[0], changed]
    path = write_log(folder, lines, results=changed if kind == "results" else results)
    try:
        found = import_lm_eval(path)
    except CoraError as e:
        assert "\n" not in str(e)
    else:
        found.facts.as_json()
        score(found)
