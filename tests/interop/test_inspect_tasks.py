"""The task `cora_nb/cora` for inspect: samples, replies and scores equal to ours, options refused, nothing heavy."""

import math
import os
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed; pip install 'cora_nb[inspect]' to run this test")

from inspect_ai import eval as inspect_eval  # noqa: E402
from inspect_ai import score as inspect_score  # noqa: E402
from inspect_ai._util.error import PrerequisiteError  # noqa: E402
from inspect_ai.log import read_eval_log  # noqa: E402
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: E402
from inspect_ai.scorer import SampleScore, Score  # noqa: E402

from cora_nb.benchmarks.load import load_benchmark, load_shots  # noqa: E402
from cora_nb.benchmarks.samples import Part  # noqa: E402
from cora_nb.core import CoraError  # noqa: E402
from cora_nb.interop.inspect_logs import import_inspect  # noqa: E402
from cora_nb.interop.inspect_tasks import (  # noqa: E402
    _SHOWN_SCORES,
    _SHOWN_SPREADS,
    _sample_variants,
    _shown_values,
    _table_scores,
    variant_scorer,
)
from cora_nb.interop.inspect_tasks import (  # noqa: E402
    cora_task,
    inspect_template,
    prepare_task,
    _prompt_samples,
    _task_options,
)
from cora_nb.metrics.circular import position_spread  # noqa: E402
from cora_nb.metrics.scoring import score  # noqa: E402
from cora_nb.prompts.templates import make_prompts  # noqa: E402
from cora_nb.responses.facts import as_facts
from cora_nb.respondents.protocol import Reply  # noqa: E402
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate  # noqa: E402
from cora_nb.variants.families import make_variants  # noqa: E402
from cora_nb.variants.files import row_variants  # noqa: E402
from helpers import WITH_TORCH, slow_after  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "recorded" / "inspect_ours"


class Biased:
    "Says what depends on the prompt alone: often A, sometimes another letter, a word, or nothing that can be read."

    name = "biased"
    said = ("A", "A", "A: because", "B", "The answer is (C).", "Yes", "No", "nine", "I do not know", "D", "A, B")

    def say(self, text):
        return self.said[sum(map(ord, text)) % len(self.said)]

    def describe(self):
        return {"respondent": "biased"}

    def request(self, prompt):
        return {"messages": prompt.messages}

    async def answer(self, prompts):
        for i, prompt in enumerate(prompts):
            yield i, Reply(self.say(prompt.messages[-1]["content"]))

    def output(self, messages, tools, tool_choice, config):
        "The same as a model of inspect."
        assert config.temperature == 0.0 and config.max_tokens == 512
        output = ModelOutput.from_content("mockllm/model", self.say(messages[-1].text))
        output.usage = ModelUsage()  # else inspect downloads a tokenizer to count
        return output


def run_task(tmp_path, epochs=1, output=Biased().output, how={}, **options):
    "The log of an evaluation in this process."
    model = get_model("mockllm/model", custom_outputs=output)
    how = {"log_dir": str(tmp_path), "display": "none", "epochs": epochs, **how}
    (log,) = inspect_eval(cora_task(**options), model=model, **how)
    assert log.status == "success", log.error
    return log


def shown(log):
    "What the table of inspect shows under `cora`."
    (found,) = [s for s in log.results.scores if s.name == "cora"]
    return {name: m.value for name, m in found.metrics.items()}


def same(a, b):
    return a == b or math.isnan(a) and math.isnan(b)


def check_equal(log, ours):
    "The samples of a log are the rows of our own run, and so are the scores in its table."
    rows = {}
    for s in log.samples:
        (v,) = row_variants([s.metadata], "log")
        assert s.id == f"{v.question_id}/{v.family}/{v.method}/{v.index}"
        rows[v.key] = s.output.completion, s.scores["cora"].metadata["prediction"], s.scores["cora"].value
    said = ours.table[["reply", "prediction", "correct"]].itertuples(index=False)
    keys = ours.table[["question_id", "method", "index"]].itertuples(index=False, name=None)
    expected = {k: (r.reply, r.prediction, "C" if r.correct else "I") for k, r in zip(keys, said)}
    assert rows == expected
    found = score(ours).set_index("score")["value"]
    assert all(same(shown(log)[name], found[name]) for name in _SHOWN_SCORES)
    imported, key = import_inspect(log.location), ["question_id", "method", "index"]
    columns = ["form", "sources", "answer", "prediction", "selected", "correct", "reply"]
    theirs, own = (run.table.set_index(key)[columns].sort_index() for run in (imported, ours))
    assert imported.trials == (0,) and theirs.equals(own) and imported.coverage == ours.coverage


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    slow_after(
        1,
        [
            {"limit": 3},
            {"limit": 2, "family": "cyclic", "shots": 2, "shots_as": "like_variant"},
            {"limit": 2, "family": "formats", "template": "bare"},
            {"sample": 3, "seed": 1, "family": "mcqa_plus", "parse": "careful"},
            {"limit": 1, "family": "wording", "subjects": "addition"},
        ],
    ),
    ids=str,
)
def test_as_our_own_run(tmp_path, options):
    log = run_task(tmp_path, **options)
    o = _task_options(**options)
    part = {name: o[name] for name in ("limit", "sample", "subjects", "seed")}
    variants = make_variants(Part(**part).of(load_benchmark("math")), family=o["family"], seed=o["seed"])
    template = o["template"] or "cora"
    asking = Asking(template, load_shots("math"), o["shots"], o["shots_as"], parse=o["parse"])
    ours = evaluate(Biased(), variants, asking, progress=False, strict=None)
    check_equal(log, ours)
    assert row_variants([s.metadata for s in cora_task(**options).dataset], "task") == variants
    facts = log.eval.metadata["cora_nb"]
    assert not ours.facts.without("respondent", "run").differences(as_facts(facts).without("run"))
    try:
        spread = position_spread(ours, threshold=None).set_index("score")["value"]
    except CoraError:  # several forms
        assert all(math.isnan(shown(log)[name]) for name in _SHOWN_SPREADS)
    else:
        assert all(shown(log)[name] == spread[name] for name in _SHOWN_SPREADS)


@pytest.mark.slow
def test_epochs_are_trials(tmp_path):
    "Each epoch says something else; the table has the scores of the first, as `score` has of several trials."
    times = {}

    def changing(messages, tools, tool_choice, config):
        text = messages[-1].text
        times[text] = times.get(text, -1) + 1
        output = ModelOutput.from_content("mockllm/model", "ABCD"[(len(text) + times[text]) % 4])
        output.usage = ModelUsage()
        return output

    log = run_task(tmp_path, epochs=3, output=changing, limit=3, family="cyclic")
    first = {s.id: s for s in log.samples if s.epoch == 1}
    assert len(log.samples) == 36 and len(first) == 12
    assert sorted({s.scores["cora"].metadata["trial"] for s in log.samples}) == [0, 1, 2]
    variants = _sample_variants([s.metadata for s in first.values()])
    predictions = ["ABCD".index(s.output.completion) for s in first.values()]
    expected = _shown_values(variants, predictions, [None] * 12, [0] * 12)
    assert shown(log) == expected and not any(map(math.isnan, expected.values()))
    assert 0 < expected["MCQA+"] < 1


@pytest.mark.slow
def test_style_inspect(tmp_path):
    "inspect makes the prompts that our template makes, and reads fewer replies than we do."
    prompts = []

    def told(messages, tools, tool_choice, config):
        prompts.append(messages[-1].text)
        place = len(prompts[-1]) % 4
        output = ModelOutput.from_content("mockllm/model", ("ANSWER: B", "ANSWER: A", "The answer is A.", "?")[place])
        output.usage = ModelUsage()
        return output

    log = run_task(tmp_path, output=told, limit=3, style="inspect")
    run = prepare_task(limit=3, style="inspect")
    assert sorted(prompts) == sorted(p.text for p in run.prompts)
    assert [m["content"] for p in run.prompts for m in p.messages] == [p.text for p in run.prompts]
    by_us, by_inspect = ({s.id: s.scores[name].answer for s in log.samples} for name in ("cora", "choice"))
    said = {s.id: s.output.completion for s in log.samples}
    assert set(said.values()) == {"ANSWER: B", "ANSWER: A", "The answer is A.", "?"}
    assert by_us == {id: text.strip(".")[-1].replace("?", "") for id, text in said.items()}
    assert by_inspect == {id: text[-1] if "ANSWER" in text else "" for id, text in said.items()}
    assert log.eval.metadata["cora_nb"]["asked"]["template"] == "inspect"
    choices = {s.id: s.choices for s in log.samples}
    assert choices == {s.id: s.metadata["choices"] for s in log.samples}, "inspect never shuffles"


def test_the_template_of_inspect_is_that_of_its_solver():
    from inspect_ai.solver._multiple_choice import prompt
    from inspect_ai.solver._task_state import Choices

    (v,) = make_variants(load_benchmark("math")[:1], "cora")[:1]
    (ours,) = make_prompts([v], inspect_template())
    words = inspect_template().instruction
    assert ours.text == prompt(question=v.asked, choices=Choices(list(v.choices)), template=words)
    assert ours.messages == [{"role": "user", "content": ours.text}]


def test_each_form_has_its_target_and_its_room():
    targets = {s.metadata["form"]: s.target for s in cora_task(limit=1, family="formats").dataset}
    assert set(targets) == {"mcq", "tfq", "lfgq"} and targets["tfq"] in ("Yes", "No") and targets["mcq"] in "ABCD"
    assert cora_task(limit=1, parse="first_token").config.max_tokens == 1
    assert cora_task(limit=1).config.max_tokens == 512 and cora_task(limit=1).config.temperature == 0.0


@pytest.mark.slow
def test_different_rooms(tmp_path, monkeypatch):
    "Where prompts need different room, each request has its own."
    import cora_nb.interop.inspect_tasks as tasks

    asked = []

    def rooms(messages, tools, tool_choice, config):
        asked.append(config.max_tokens)
        output = ModelOutput.from_content("mockllm/model", "A")
        output.usage = ModelUsage()
        return output

    monkeypatch.setattr(tasks, "_room", lambda prompt: 7 + prompt.variant.n_choices)
    log = run_task(tmp_path, output=rooms, limit=1)
    assert sorted(asked) == sorted(7 + len(s.choices) for s in log.samples) and set(asked) == {9, 10, 11}


@pytest.mark.slow
@pytest.mark.parametrize("scored", [False, True])
def test_a_failed_sample_is_no_wrong_reply(tmp_path, scored):
    "What inspect goes on without is left out, and CI and CoRA are not known, for a divergence set is incomplete."

    def fails(messages, tools, tool_choice, config):
        if "A. None of the above" in messages[-1].text:
            raise ValueError("the server is gone")
        return Biased().output(messages, tools, tool_choice, config)

    how = {"fail_on_error": False, "score_on_error": scored}
    log = run_task(tmp_path, output=fails, how=how, limit=2)
    lost = [s for s in log.samples if s.error]
    rest = [s for s in log.samples if not s.error]
    assert lost and all(math.isnan(s.scores["cora"].value) if scored else not s.scores for s in lost)
    right = sum(s.scores["cora"].value == "C" for s in rest)
    assert shown(log)["MCQA+"] == right / len(rest) and math.isnan(shown(log)["CoRA"])
    assert not math.isnan(shown(log)["MCQA"]), "the originals were answered"


# The metric alone


def graded(variants, predictions, trial=0):
    rows = [s.metadata for s in _prompt_samples(make_prompts(variants))]
    told = [{"trial": trial, "prediction": p, "selected": None} for p in predictions]
    return [
        SampleScore(score=Score(value="C", metadata=t), sample_id=str(i), sample_metadata=row)
        for i, (t, row) in enumerate(zip(told, rows))
    ]


def test_an_empty_list_and_half_a_run():
    metric = _table_scores()
    assert list(metric([])) == [*_SHOWN_SCORES, *_SHOWN_SPREADS] and all(map(math.isnan, metric([]).values()))
    variants = make_variants(load_benchmark("math")[:2], "cora")
    scores = graded(variants, [v.answer for v in variants])
    whole, half = metric(scores), metric(scores[:30])
    assert whole | {"position range": 1.0, "position sd": 1.0} == dict.fromkeys(whole, 1.0)
    assert half["MCQA"] == half["MCQA+"] == 1.0 and math.isnan(half["CI"]) and math.isnan(half["CoRA"])
    assert metric(scores[::-1]) == whole, "samples stand in the order of completion"
    later = metric(graded(variants, [-1] * 40, trial=1))
    assert all(map(math.isnan, later.values())), "nothing of the first epoch so far"
    assert metric(scores + graded(variants, [-1] * 40, trial=1)) == whole


def test_samples_of_another_task_are_refused():
    with pytest.raises(CoraError, match="not of the task cora_nb/cora"):
        _sample_variants([None], "sample 3")
    with pytest.raises(CoraError, match="sample 3: the metadata of this sample have no variant"):
        _sample_variants([{"question": "?"}], "sample 3")


# Options


@pytest.mark.parametrize(
    "options, why",
    [
        ({"family": "nix"}, "family must be one of answer_swap, cora, "),
        ({"benchmark": "nope"}, "no benchmark 'nope'; known are arabicmmlu, arc, "),
        ({"path": "none.csv"}, "none.csv: there is no such file"),
        ({"limit": 2, "sample": 3}, "exclude each other"),
        ({"template": "nix"}, "template must be one of bare, cat, "),
        ({"style": "nix"}, "style must be one of cora, inspect, got 'nix'"),
        ({"famly": "cora"}, "there is no option 'famly'; there are benchmark, path, "),
        ({"style": "inspect", "template": "bare"}, "there is no place for the template 'bare'"),
        ({"style": "inspect", "shots": 5}, "which shows no examples: got shots=5"),
        ({"style": "inspect", "parse": "first_token"}, "parse=first_token reads one token; use parse=careful"),
        ({"style": "inspect", "family": "formats"}, "tfq of the family formats has the form tfq; use style=cora"),
        ({"style": "inspect", "family": "wording"}, "has other words around it; use style=cora"),
    ],
    ids=str,
)
def test_a_bad_option_is_one_line(options, why):
    with pytest.raises(PrerequisiteError) as refused:
        cora_task(**options)
    assert why in refused.value.message and refused.value.message.startswith("cora_nb/cora: ")
    assert "\n" not in refused.value.message


def test_shots_are_not_the_questions_that_are_asked(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("question,A,B,answer\n1 + 1?,2,3,A\n2 + 2?,5,4,B\n")
    with pytest.raises(PrerequisiteError) as refused:
        cora_task(benchmark="mine", path=str(file), shots=1)
    assert "name another file with pool=" in refused.value.message
    pool = tmp_path / "pool.csv"
    pool.write_text("question,A,B,answer\n3 + 3?,6,7,A\n")
    task = cora_task(benchmark="mine", path=str(file), pool=str(pool), shots=1, family="cyclic")
    assert "3 + 3?" in task.dataset[0].input[0].content


# What is recorded, and scoring it again


@pytest.mark.parametrize("name", ["cora_style_cora_1_epoch.eval", "inspect_style_cyclic_1_epoch.eval"])
def test_a_log_is_scored_again(name, monkeypatch):
    monkeypatch.setenv("LOCAL_API_KEY", "none")  # the model is not asked, but made
    monkeypatch.setenv("LOCAL_BASE_URL", "http://127.0.0.1:9/v1")
    log = read_eval_log(str(RECORDED / name))
    again = inspect_score(log, variant_scorer(), action="overwrite", display="none")
    assert shown(again) == shown(log) and shown(log)["MCQA"] > 0


# The plug-in


def python(code, folder):
    "Run code in a process of its own, in which this checkout counts as installed."
    installed = folder / "cora_nb-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: cora_nb\nVersion: 0.1.0\n")
    (installed / "direct_url.json").write_text(f'{{"url": "file://{ROOT}", "dir_info": {{"editable": true}}}}')
    (installed / "entry_points.txt").write_text("[inspect_ai]\ncora_nb = cora_nb.interop.inspect_tasks\n")
    known = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "COLUMNS": "200"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True, timeout=WITH_TORCH)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_inspect_finds_the_task_and_imports_nothing_heavy(tmp_path):
    "By its entry point, as `setup.py` declares it."
    code = """
import sys
import inspect_ai
from inspect_ai._util.entrypoints import ensure_entry_points
before = set(sys.modules)
ensure_entry_points("cora_nb")
added = {name.partition(".")[0] for name in set(sys.modules) - before}
heavy = added & {"torch", "transformers", "datasets", "pandas", "scipy", "seaborn", "pyarrow", "matplotlib", "fastcore"}
assert not heavy, heavy
print("added", sorted(added))
print("modules", sorted(name for name in sys.modules if name.startswith("cora_nb.")))
from inspect_ai._eval.loader import load_tasks
(task,) = load_tasks(["cora_nb/cora"], {"limit": 1})
print("samples", len(task.dataset), task.registry_name)
assert not {"torch", "transformers"} & set(sys.modules)
"""
    status, said = python(code, tmp_path)
    assert status == 0, said
    assert "samples 20 cora_nb/cora" in said
    assert "modules ['cora_nb.core', 'cora_nb.forms', 'cora_nb.interop', 'cora_nb.interop.inspect_tasks']" in said


def test_the_entry_point_is_declared():
    settings = ConfigParser(delimiters=["="])
    settings.read(ROOT / "settings.ini", encoding="utf-8")
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    assert settings["DEFAULT"]["lib_name"] == "cora_nb"
    assert """"inspect_ai": [f"{cfg['lib_name']} = cora_nb.interop.inspect_tasks"]""" in text
