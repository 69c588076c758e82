"""Logs of inspect: those of our own task, anybody's, and broken ones. The logs in tests/recorded are real."""

import json
import shutil
import sys
import warnings
import zipfile
from pathlib import Path

import pytest
from faulty_server import Answer, FaultyServer, completion

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import BadRow, CoraError
from cora_nb.interop import inspect_logs
from cora_nb.interop.formats import import_responses
from cora_nb.interop.inspect_logs import import_inspect, read_inspect
from cora_nb.metrics.scoring import score
from cora_nb.prompts.letters import first_token
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

pytest.importorskip("inspect_ai")

RECORDED = Path(__file__).resolve().parents[1] / "recorded"
FOREIGN, OURS = RECORDED / "inspect_foreign", RECORDED / "inspect_ours"
CORA = OURS / "cora_style_cora_1_epoch.eval"


def columns(run, *names):
    return [list(row) for row in run.table[list(names)].astype(object).where(run.table.notna(), None).to_numpy()]


def notes(run):
    return run.facts.imported["notes"]


def edited(tmp_path, change, source=FOREIGN / "quiz_json.json"):
    "A copy of a log in JSON that something has been done to."
    log = json.loads(source.read_text())
    change(log)
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    return path


def rezipped(tmp_path, source, change):
    "A copy of a log whose members are changed by `change(name, bytes)`, or left out where it returns None."
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            if (data := change(name, old.read(name))) is not None:
                new.writestr(name, data)
    return path


# ---- our own task


def test_our_log_equals_the_run_of_our_chat_respondent():
    "The same replies, asked for by our own respondent: the same table, the same questions, the same scores."
    imported = import_inspect(CORA)
    variants = make_variants(load_benchmark("math")[:3])
    said = dict(zip([v.key for v in variants], imported.table["reply"]))
    assert [v.key for v in variants] == [tuple(row) for row in columns(imported, "question_id", "method", "index")]
    asked = {}

    class Listening(ChatRespondent):
        def body(self, prompt):
            found = super().body(prompt)
            asked[json.dumps(found["messages"])] = said[prompt.variant.key]
            return found

    with FaultyServer(lambda r: Answer(body=completion(asked[json.dumps(r.body["messages"])]))) as server:
        run = evaluate(Listening("m", base_url=server.url), variants, progress=False, strict=None)
    assert imported.table.drop(columns="respondent").equals(run.table.drop(columns="respondent"))
    assert imported.questions.equals(run.questions)
    assert score(imported)["value"].tolist() == score(run)["value"].tolist()
    assert imported.complete and imported.coverage == ""
    known = {group: facts for group, facts in run.facts.plain().items() if group in ("benchmark", "variants", "asked")}
    known["asked"].pop("room")
    assert known.items() <= imported.facts.plain().items()
    assert imported.name == "openai-api/local/skewed"


@pytest.mark.parametrize("suffix, epochs", [("eval", 2), ("json", 1)])
def test_epochs_are_trials_in_both_formats(suffix, epochs):
    (log,) = OURS.glob(f"cora_style_order_swap_{epochs}_epoch*.{suffix}")
    run = import_inspect(log)
    variants = make_variants(load_benchmark("math")[:3], "order_swap")
    expected = [[*v.key, trial] for v in variants for trial in range(epochs)]
    assert columns(run, "question_id", "method", "index", "trial") == expected
    assert run.facts.asked.trials == epochs and run.table["correct"].any()


def test_style_of_inspect():
    "Our rule reads more than inspect's, which wants ANSWER: B; both are compared, and either can be had."
    (log,) = OURS.glob("inspect_style_cyclic_*.eval")
    ours, theirs = import_inspect(log), import_inspect(log, select="choice")
    assert ours.facts.imported["parse"] == "careful"
    assert theirs.facts.imported["parse"] == "as recorded by choice"
    unread = [r for r, p in columns(theirs, "reply", "prediction") if p < 0]
    assert unread and all("ANSWER" not in r for r in unread)
    assert (ours.table["prediction"] >= 0).all()
    assert notes(ours)[0] == "inspect's cora and this reading differ on 0 of 12 replies"
    assert notes(ours)[1].startswith(
        f"inspect's choice and this reading differ on {len(unread)} of 12 replies, first on"
    )


def test_another_rule_goes_before_that_of_the_log():
    run = import_inspect(CORA, parse="first_character")
    assert run.facts.imported["parse"] == "first_character" == run.facts.asked.parse["mcq"]
    assert import_inspect(CORA, parse=first_token).facts.imported["parse"] == "first_token"


def test_rule_with_code_is_not_taken_from_a_log(tmp_path):
    (tmp_path / "evil.py").write_text("raise SystemExit('run')\ndef rule(reply, choices):\n    return 0\n")

    def change(log):
        log["eval"]["metadata"]["cora_nb"]["asked"]["parse"]["mcq"] = f"{tmp_path}/evil.py:rule"

    path = edited(tmp_path, change, OURS / "cora_style_order_swap_1_epoch.json")
    with pytest.raises(CoraError, match="in the log is not one of ours; name the rule yourself"):
        import_inspect(path)
    assert len(import_inspect(path, parse="careful")) == 6


@pytest.mark.parametrize(
    "field, value, says",
    [
        ("answer", 9, "id 'math-0-1', answer: answer must be an index of a choice shown, got 9"),
        ("sources", None, "sources: sources must not be missing"),
        ("form", "song", "form must be one of"),
        ("wording", "{", "wording must be empty or JSON"),
    ],
)
def test_variant_that_is_none(tmp_path, field, value, says):
    source = OURS / "cora_style_order_swap_1_epoch.json"
    path = edited(tmp_path, lambda log: log["samples"][0]["metadata"].update({field: value}), source)
    with pytest.raises(BadRow) as e:
        import_inspect(path)
    assert says in str(e.value) and str(path) in str(e.value) and "\n" not in str(e.value)
    with pytest.warns(UserWarning, match="left out 1 samples"):
        assert len(import_inspect(path, on_bad="skip")) == 5


# ---- anybody's multiple-choice task


def test_ordinary_quiz():
    run = import_inspect(FOREIGN / "quiz.eval")
    assert run.name == "mockllm/model" and run.family == "cora"
    assert columns(run, "question_id", "subject", "method", "answer", "prediction", "correct", "finish") == [
        ["q1", "general", "original", 1, 1, True, "stop"],
        ["q2", "general", "original", 1, -1, False, "stop"],
        ["q3", "general", "original", 2, -1, False, "stop"],
        ["q4", "general", "original", 1, -1, False, "length"],
        ["q5", "general", "original", 1, -1, False, "stop"],
        ["q6", "general", "original", 0, 3, False, "stop"],
    ]
    outcomes = run.summary().loc["all"]
    assert outcomes[["right", "wrong", "unparsed", "cut_off", "failed"]].tolist() == [1, 1, 3, 1, 0]
    assert notes(run) == [
        "1 empty reply (inspect: N, no response)",
        "inspect's choice and this reading differ on 0 of 6 replies",
        "our rule last_line reads 1 of 5 replies otherwise: --parse last_line",
    ]
    assert run.table["reply"][2] == "" and run.table["n_tokens"][0] == 7
    found = score(run).set_index("score")
    assert found["value"]["MCQA"] == pytest.approx(1 / 6)
    assert (
        found["note"]["CoRA"].startswith("1 of 14 to 20 variants\n4 of 6 unread: from")
        and found["value"].isna()["CoRA"]
    )


def test_log_probabilities():
    "B at -0.22 and A at -1.61 were recorded for the reply B; no other reply has any."
    table = import_inspect(FOREIGN / "quiz.eval").table
    assert table["scores"][4][:2] == pytest.approx((-1.61, -0.22))
    assert table["confidence"][4] == pytest.approx(0.8025, abs=1e-4)
    assert table["mean_logprob"][4] == pytest.approx(-0.22)
    assert table["scores"].notna().sum() == table["confidence"].notna().sum() == 1


def test_json_and_zip_read_alike():
    zipped, plain = import_inspect(FOREIGN / "quiz.eval"), import_inspect(FOREIGN / "quiz_json.json")
    assert plain.table.equals(zipped.table[:2]) and plain.questions.equals(zipped.questions[:2])


def test_choices_shuffled_when_the_question_was_put():
    "What was really shown, and the model's own words: inspect rewrites both."
    records = read_inspect(FOREIGN / "shuffled.eval")
    assert len(records) == 12
    for r in records:
        v, reading = r.variant, r.readings["choice"]
        assert v.method == "shuffled" and v.choices[v.answer] == v.question.choices[v.question.answer]
        letter = r.reply.text.removeprefix("ANSWER: ")
        assert reading.answer == letter if reading.named else "ABCD".index(letter) >= v.n_choices
    assert len({r.variant.sources for r in records}) > 4
    by_scorer, by_rule = import_inspect(FOREIGN / "shuffled.eval"), import_inspect(FOREIGN / "shuffled.eval", "careful")
    assert by_scorer.table.equals(by_rule.table)
    assert notes(by_rule) == [
        "the task shuffled the choices of every sample: all rows are shuffled variants, none is original",
        "inspect's choice and this reading differ on 0 of 12 replies",
    ]


def test_shuffled_without_its_order_is_refused(tmp_path):
    def change(name, data):
        if name.startswith("samples/q1_epoch_1"):
            sample = json.loads(data)
            sample["scores"]["other"] = sample["scores"].pop("choice")
            return json.dumps(sample)
        return data

    path = rezipped(tmp_path, FOREIGN / "shuffled.eval", change)
    with pytest.raises(BadRow, match="id 'q1', scores: the choices were shuffled .* only the scorer choice"):
        import_inspect(path, parse="careful")


def test_choices_shuffled_when_the_data_were_read():
    "The log knows no other order, so the one shown is the original."
    run = import_inspect(FOREIGN / "shuffled_data.eval")
    assert run.questions["choices"][0] == ("Mars", "Venus", "Earth", "Mercury")
    assert columns(run, "method", "answer") == [["original", 3], ["original", 2], ["original", 2]]


def test_several_scorers_need_a_choice():
    log = FOREIGN / "two_scorers.eval"
    with pytest.raises(CoraError, match="the log has several scorers, choice, answer; select one, or name a rule"):
        import_inspect(log)
    with pytest.raises(CoraError, match="there is no scorer 'match'; the log has choice, answer"):
        import_inspect(log, select="match")
    choice, answer = (import_inspect(log, select=name) for name in ("choice", "answer"))
    assert choice.table.equals(answer.table) and choice.facts.imported["scorer"] == "choice"
    assert len(notes(import_inspect(log, parse="last_line"))) == 3  # one for each scorer


def test_several_choices_may_be_named():
    run = import_inspect(FOREIGN / "several.eval")
    assert columns(run, "form", "prediction", "selected", "correct") == [["several", -1, (0, 1), False]] * 2
    assert import_inspect(FOREIGN / "several.eval", "last_line").table.equals(run.table)


def test_several_right_choices_are_refused():
    log = FOREIGN / "several_right.eval"
    with pytest.raises(BadRow, match="id 'q1', target: several choices are right, and a question here has one"):
        import_inspect(log)
    with pytest.raises(CoraError, match="none of the 2 samples can be read, the first: .*several choices are right"):
        import_inspect(log, on_bad="skip")


def test_errors_are_no_replies():
    run = import_inspect(FOREIGN / "errors.eval")
    assert run.summary().loc["all", "failed"] == 1
    assert run.table["error"][1] == r"RuntimeError('the tool that\nthis task needs is not there')"
    assert notes(run)[0].startswith("1 sample without a reply, the first: RuntimeError")


@pytest.mark.parametrize("name, status, here, failed", [("cancelled", "cancelled", 2, 0), ("failed", "error", 2, 1)])
def test_stopped_evaluations(name, status, here, failed):
    "What was under way when the evaluation was stopped was not answered, and did not fail."
    run = import_inspect(FOREIGN / f"{name}.eval")
    assert len(run) == here and run.summary().loc["all", "failed"] == failed
    assert notes(run)[0].startswith(f"the evaluation's status is {status}: {here} of ")
    assert run.facts.imported["status"] == status


def test_killed_evaluation(tmp_path):
    "A run that was killed leaves no header and no list of its samples, only the journal."
    left = ("header.json", "summaries.json", "reductions.json")
    path = rezipped(tmp_path, FOREIGN / "quiz.eval", lambda name, data: None if name in left else data)
    run = import_inspect(path)
    assert run.facts.imported["status"] == "started"
    assert run.table.equals(import_inspect(FOREIGN / "quiz.eval").table)


def test_limits_are_no_replies():
    run = import_inspect(FOREIGN / "limited.eval", parse="last_line")
    assert run.table["error"].tolist() == ["inspect stopped the sample at its limit: message 1"] * 2
    assert run.facts.run.config == {"limit": 2, "epochs": 1}


def test_unscored_log_needs_a_rule():
    with pytest.raises(CoraError, match="the log has no scores; name a rule"):
        import_inspect(FOREIGN / "unscored.eval")
    assert import_inspect(FOREIGN / "unscored.eval", parse="last_line").table["prediction"].tolist() == [0, 2]


def test_other_tasks_are_refused():
    with pytest.raises(BadRow) as e:
        import_inspect(FOREIGN / "free_text.eval")
    says = "id '1', choices: the sample has no choices, and only multiple-choice tasks can be imported"
    assert says in str(e.value)


def test_scorer_without_letters_is_refused(tmp_path):
    def change(log):
        for sample in log["samples"]:
            sample["scores"]["choice"] |= {"answer": "I think\nso", "value": "C"}

    with pytest.raises(
        CoraError, match=r"the scorer choice names no choices \(it recorded 'I think so'\); name a rule"
    ):
        import_inspect(edited(tmp_path, change))


@pytest.mark.parametrize("value, right", [("C", True), (1, True), (True, True), ("N", False), (0.0, False)])
def test_values_of_scorers(tmp_path, value, right):
    path = edited(tmp_path, lambda log: log["samples"][0]["scores"]["choice"].update(value=value))
    assert read_inspect(path)[0].readings["choice"].right is right


def test_verdicts_that_differ_are_counted(tmp_path):
    path = edited(tmp_path, lambda log: log["samples"][0]["scores"]["choice"].update(value="I"))
    assert notes(import_inspect(path))[0] == "inspect's choice and this reading differ on 1 of 2 replies, first on 'q1'"


def test_content_filter_is_an_empty_reply(tmp_path):
    def change(log):
        log["samples"][0]["output"]["choices"][0]["stop_reason"] = "content_filter"

    run = import_inspect(edited(tmp_path, change))
    assert columns(run, "reply", "finish", "error")[0] == ["", "content_filter", None]


def test_keys_are_never_taken_over(tmp_path):
    args = {"api_key": "sk-123456789", "auth_token": "abc", "device": "cpu", "tokenizer": "t"}
    told = {"model_args": args, "task_args": args, "model_base_url": "https://me:secret@host/v1"}
    facts = import_inspect(edited(tmp_path, lambda log: log["eval"].update(told))).facts
    hidden = {"api_key": "***", "auth_token": "***", "device": "cpu", "tokenizer": "t"}
    assert facts.respondent["model_args"] == facts.run.task_args == hidden
    assert facts.respondent["base_url"] == "https://***@host/v1"


def test_facts_are_plain_and_stored(tmp_path):
    for log in (CORA, FOREIGN / "quiz.eval"):
        run = import_responses(log)
        write_responses(run, tmp_path / log.stem)
        assert read_responses(tmp_path / log.stem).equals(run)
    facts = run.facts
    assert facts.run.benchmark == "general_knowledge" and facts.run.task == "quiz"
    assert facts.imported["versions"] == {"log": 2, "inspect_ai": "0.3.285"}
    assert facts.imported["usage"]["mockllm/model"]["input_tokens"] == 360


# ---- files that are no logs, and broken ones


def says_one_line(path, *parts, **options):
    with pytest.raises(CoraError) as e:
        import_inspect(path, **options)
    message = str(e.value)
    assert all(part in message for part in (str(path), *parts)), message
    assert "\n" not in message and len(message) < len(str(path)) + 400


@pytest.mark.parametrize("part", [0.02, 0.5, 0.999])
def test_log_cut_off(tmp_path, part):
    data = (FOREIGN / "quiz.eval").read_bytes()
    (path := tmp_path / "cut.eval").write_bytes(data[: int(len(data) * part)])
    says_one_line(path, "this is not a log of inspect: its end is missing, so it was cut off")
    data = (FOREIGN / "quiz_json.json").read_bytes()
    (path := tmp_path / "cut.json").write_bytes(data[: int(len(data) * part)])
    says_one_line(path, "inspect cannot read")


def test_no_log_at_all(tmp_path):
    (path := tmp_path / "x.eval").write_bytes(b"not a zip")
    says_one_line(path, "this is not a log of inspect: it is not a zip file")
    path.write_bytes(b"")
    says_one_line(path, "the file is empty")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("letter.txt", "hello")
    says_one_line(path, "inspect cannot read the header of this log")
    (path := tmp_path / "x.json").write_text("[1, 2]")
    says_one_line(path, "inspect cannot read the header of this log")
    says_one_line(tmp_path / "none.eval", "there is no such file")
    (path := tmp_path / "log.csv").write_text("a,b\n")
    says_one_line(path, "a log of inspect is called LOG.eval or LOG.json")


def test_folder_of_logs(tmp_path):
    "Several logs are several tasks or models: one is needed."
    for name in ("quiz", "cot"):
        shutil.copy(FOREIGN / f"{name}.eval", tmp_path)
    says_one_line(tmp_path, "this is a folder with 2 logs, and one log is needed")


def test_newer_version(tmp_path):
    says_one_line(edited(tmp_path, lambda log: log.update(version=99)), "inspect cannot read")


def test_older_version(tmp_path):
    "Until version 2, a sample had one score. inspect itself knows how to read that."

    def change(log):
        log["version"] = 1
        for sample in log["samples"]:
            sample["score"] = sample.pop("scores")["choice"]

    run = import_inspect(edited(tmp_path, change))
    assert run.table["prediction"].tolist() == [1, -1]


def test_log_without_samples(tmp_path):
    says_one_line(edited(tmp_path, lambda log: log.update(samples=[])), "holds no samples (its status is success)")
    path = rezipped(tmp_path, FOREIGN / "failed.eval", lambda n, d: None if "q" in n or "summaries" in n else d)
    says_one_line(path, "the log holds no samples (its status is error: RuntimeError")


@pytest.mark.parametrize("bad", [b'{"id": "q2", "epoch"', b'{"id": "q2"}', b"\xff\xfe\x00", b"[]", b""])
def test_broken_sample(tmp_path, bad, caplog):
    def change(name, data):
        return bad if name.startswith("samples/q2") else data

    path = rezipped(tmp_path, FOREIGN / "quiz.eval", change)
    says_one_line(path, "id 'q2', epoch: inspect cannot read this sample (")
    with pytest.warns(UserWarning, match="left out 1 samples that could not be read, the first of them: .*'q2'"):
        run = import_inspect(path, on_bad="skip")
    assert run.table["question_id"].tolist() == ["q1", "q3", "q4", "q5", "q6"]
    assert notes(run)[0] == "left out: 1 sample that could not be read"
    assert not caplog.records


@pytest.mark.parametrize(
    "change, says",
    [
        ({"choices": ["only one"]}, "a question needs 2 to 26 choices and has 1"),
        ({"choices": ["a", " ", "c", "d"]}, "choice B must be a non-empty text"),
        ({"target": "E"}, "the target must be a letter from A to D, or the text of one choice"),
        ({"input": ""}, "the question must be a non-empty text"),
    ],
)
def test_sample_that_is_no_question(tmp_path, change, says):
    path = edited(tmp_path, lambda log: log["samples"][0].update(change))
    says_one_line(path, "id 'q1'", says)


def test_target_by_text_and_input_by_messages(tmp_path):
    words = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Which planet?"}]
    path = edited(tmp_path, lambda log: log["samples"][0].update(target="Mercury", input=words))
    run = import_inspect(path)
    assert run.questions["text"][0] == "Which planet?" and run.table["correct"][0]


def test_huge_texts(tmp_path):
    "A reply of 20 MB is read, and one of its kind in an error is cut."
    reply = "x" * 20_000_000 + "\nANSWER: B"

    def change(log):
        log["samples"][0]["output"] |= {"completion": reply}
        log["samples"][1]["error"] = {"message": "y" * 1_000_000, "traceback": "", "traceback_ansi": ""}

    run = import_inspect(edited(tmp_path, change), parse="last_line")
    assert run.table["prediction"][0] == 1 and len(run.table["reply"][0]) == len(reply)
    assert len(run.table["error"][1]) == 300 and all(len(note) < 200 for note in notes(run))


def test_inspect_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    with pytest.raises(CoraError, match=r"needs inspect_ai 0.3.250 or newer: pip install 'cora_nb\[inspect\]'"):
        import_inspect(FOREIGN / "quiz.eval")


def test_samples_are_read_in_batches(monkeypatch):
    "The order and the rows do not depend on how many samples are read at a time."
    whole = import_inspect(CORA)
    monkeypatch.setattr(inspect_logs, "_BATCH", 7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert import_inspect(CORA).equals(whole)


@pytest.mark.parametrize("suffix", ["eval", "json"])
def test_score_that_is_no_number(tmp_path, suffix):
    "inspect writes NaN, which is no JSON, for a sample that a scorer left unscored: no verdict to compare with."

    def change(log):
        log["samples"][0]["scores"]["choice"]["value"] = float("nan")

    def member(name, data):
        return data.replace(b'"C"', b"NaN") if name.startswith("samples/q1") else data

    path = edited(tmp_path, change) if suffix == "json" else rezipped(tmp_path, FOREIGN / "quiz.eval", member)
    assert b"NaN" in path.read_bytes()
    assert read_inspect(path)[0].readings["choice"].right is None
