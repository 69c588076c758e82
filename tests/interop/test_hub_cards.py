"""The card of a data set: what the library reads, what people read, and nothing that a name could break."""

import re

import datasets
import numpy as np
import pytest
import yaml
from huggingface_hub import DatasetCard

from cora_nb.core import CoraError
from cora_nb.interop.hub_datasets import _hub_card, _markdown_text, _score_figure
from cora_nb.interop.hub_datasets import export_hub
from cora_nb.report.tables import plain_line, score_table
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import REPLIED, in_state
from cora_nb.responses.responses import Responses
from cora_nb.runs.asking import Budget, Precise, Settled
from cora_nb.runs.evaluate import evaluate
from exported_runs import changed, in_part, NASTY, scored, simulated, VARIANTS, with_failures


@pytest.fixture(scope="module")
def run() -> Responses:
    return simulated()


def stopped(name: str, **how) -> Responses:
    return evaluate(SimulatedRespondent(knows=0.6, seed=1, name=name), VARIANTS, progress=False, **how)


def card_of(runs, **options) -> str:
    named = runs if isinstance(runs, dict) else {runs.name: runs}
    splits = {name: f"split_{i}" for i, name in enumerate(named)}
    return _hub_card(named, splits, score_table(named, ci=0.95), 0.95, **options)


def table_rows(text: str) -> list[list[str]]:
    "The cells of all lines of tables; an escaped pipe ends no cell."
    lines = [line for line in text.split("\n") if line.startswith("|")]
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]


def test_the_hub_library_reads_the_front_matter(run):
    card = DatasetCard(card_of({"a": run, "b": scored()}, title='My: "title"'))
    assert card.data.pretty_name == 'My: "title"' and card.data.license is None
    assert [config["config_name"] for config in card.data.configs] == ["responses", "runs"]
    assert card.data.configs[0]["data_files"][1] == {"split": "split_1", "path": "responses/split_1.parquet"}
    assert card.data.size_categories == "n<1K" and "cora_nb" in card.data.tags


def test_the_licence_is_one_line_to_fill_in(run):
    text = card_of(run)
    assert text.split("\n")[1].startswith("# license: FILL IN")
    assert DatasetCard(text.replace("# license: FILL IN, such as", "license: mit #")).data.license == "mit"
    assert "**FILL IN before publishing:** the questions and choices are those of math." in text


def test_scores_stand_with_their_intervals(run):
    text, row = card_of(run), score_table({"x": run}, ci=0.95).set_index("score").loc["CoRA"]
    (line,) = [line for line in text.split("\n") if line.startswith("| CoRA")]
    assert f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]" in line
    assert "In brackets: 95% intervals over questions." in text and "score_table(runs, ci=0.95)" in text


def test_a_part_and_failures_are_told(run):
    text = card_of({"part": in_part(run), "whole": run, "lost": with_failures(run, 20)})
    assert "| missing variants | there are 2 of 20 variants |  |  |" in text
    assert "No ranks: part has 2 of 20 variants" in text
    assert "lost: 20 of 200 failed" in text and "20 failed" in text
    (line,) = [line for line in text.split("\n") if line.startswith("| CoRA")]
    assert line.count("–") == 2


def test_a_run_that_stopped_early_says_how_many_replies_it_has(run):
    "Rows of prompts that were not asked are no replies; the page says how many, why, and what they look like."
    early = stopped("early", stop=Settled())
    asked = int(in_state(early.table, *REPLIED).sum())
    text, rows = card_of(early), {row[0].strip(): row[1].strip() for row in table_rows(card_of(early)) if len(row) == 2}
    assert 0 < asked < 200 and rows["replies"] == f"{asked}, of 200 prompts"
    why = "the run stopped when every question was settled for CoRA"
    said = f"{200 - asked} of the 200 prompts were not asked: {why}. Their rows have no reply"
    assert f"every reply is here. {said}, and `state` says so." in text
    assert early.table["error"].isna().all() and f"| not asked because | {why} |" in text
    small = stopped("small", stop=Precise(half_width=0.2))
    both = card_of({"early": early, "full": run})
    assert f"{200 - asked} of the 400 prompts were not asked: {why}. " in both
    assert f"prompts were not asked: {why}. " in card_of({"early": early, "small": small})  # once
    assert f"| not asked because | {why} |" in card_of(small)
    whole = card_of(run)
    assert "not asked" not in whole and "| replies | 200 |" in whole and "null where there is one" in whole


@pytest.mark.filterwarnings("ignore::cora_nb.runs.asking.BudgetWarning")
def test_a_run_that_its_budget_cut_off_says_so(run):
    cut, early = stopped("cut", budget=Budget(calls=50)), stopped("early", stop=Settled())
    assert "150 of the 200 prompts were not asked: the budget was used up. " in card_of(cut)
    assert "| not asked because | the budget was used up |" in card_of(cut)
    reasons = "the budget was used up; the run stopped when every question was settled for CoRA"
    assert f"prompts were not asked: {reasons}. " in card_of({"cut": cut, "early": early, "full": run})


def test_facts_of_a_run_that_says_nothing(run):
    bare = Responses(run.table, run.questions, {"asked": {}, "respondent": {}}, run.name)
    text = card_of(bare)
    assert "| replies | 200 |" in text and "of the benchmark." in text


def test_folders_of_this_machine_are_named(run):
    facts = {"run": {"benchmark": "math", "path": "/home/me/x", "command": {"out": "~/runs", "list": ["C:\\x", "a/b"]}}}
    text = card_of(changed(run, **facts))
    assert "facts.run.command.list, facts.run.command.out, facts.run.path." in text.replace("\\_", "_")
    assert "They name folders" not in card_of(run)


@pytest.mark.parametrize("name", NASTY)
def test_names_break_nothing(run, name):
    facts = {"run": {"benchmark": name}, "respondent": {"respondent": name, "model": name}, "asked": {"template": name}}
    text = card_of({name: changed(run, **facts), "other": run}, title=name)
    front, _, body = text.removeprefix("---\n").partition("\n---\n")
    assert yaml.safe_load(front)["pretty_name"] == plain_line(name) and "license" not in yaml.safe_load(front)
    assert "<script" not in body and "\u202e" not in text
    widths = [len(row) for row in table_rows(body)]
    assert set(widths) <= {2, 3} and widths.count(3) > 15
    for row in table_rows(body):
        assert "`" not in "".join(row).replace("\\`", "").replace("`mcq`", "").replace("`several`", "").replace(
            "`tfq`", ""
        ).replace("`lfgq`", "")


def test_what_markdown_would_obey():
    assert _markdown_text("a|b <i>`c`\n# d [e](f) *g* $h$") == (r"a\|b &lt;i&gt;\`c\` \# d \[e\]\(f\) \*g\* \$h\$")


def test_the_figure_is_the_same_every_time(run):
    table = score_table({"$x$|\n" + "y" * 50: run, "$x$| " + "y" * 60: scored(), "模型": run}, ci=0.95)
    first = _score_figure(table)
    assert first.startswith(b"\x89PNG") and first == _score_figure(table)


def test_no_figure_without_a_score(run, tmp_path):
    lost = with_failures(run, 200)
    assert _score_figure(score_table({"x": lost}, ci=0.95)) is None
    exported = export_hub(lost, tmp_path / "out")
    assert "scores.png" not in exported.files
    text = (tmp_path / "out/README.md").read_text()
    assert "scores.png" not in text and "200 of 200 failed" in text
    assert not re.search(r"\| CoRA +\| *[01]\.", text)


def test_no_number_is_invented(run):
    table = score_table({"x": in_part(run)}, ci=0.95).set_index("score")
    assert np.isnan(table.loc[["CoRA", "CI"], "value"]).all()
    assert not re.search(r"\| (CoRA|CI) +\| *[01]\.", card_of({"x": in_part(run)}))


def test_which_repetitions_the_scores_are_of(run):
    three = simulated(trials=3, slips=0.2)
    assert "repetitions" not in card_of(run)
    first, pooled = card_of(three), card_of(three.pool_trials())
    assert "Scores are of the first of 3 repetitions of a prompt." in first and "pool_trials" not in first
    assert "Scores are of all 3 repetitions of a prompt." in pooled
    assert "runs = {name: run.pool_trials() for name, run in runs.items()}\nprint(" in pooled
    assert first.split("## To load")[0].split("CoRA")[1] != pooled.split("## To load")[0].split("CoRA")[1]
    assert "count_failed_as_wrong()" in card_of(with_failures(run, 20).count_failed_as_wrong())
    with pytest.raises(CoraError, match="pool_trials was called for some of the runs only"):
        card_of({"a": three, "b": three.pool_trials()})


def test_the_lines_of_the_card_give_its_scores(run, tmp_path, capsys, monkeypatch):
    "The code under `To get the scores again` is run as it stands there, with the folder for USER/NAME."
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    made = with_failures(run, 20).count_failed_as_wrong()
    export_hub(made, tmp_path / "out")
    text = (tmp_path / "out/README.md").read_text()
    code = re.findall(r"```python\n(.*?)```", text, re.S)[1].replace("USER/NAME", str(tmp_path / "out"))
    exec(compile(code, "card", "exec"), {})
    shown = [line for line in capsys.readouterr().out.split("\n") if "CoRA" in line][0].split(maxsplit=1)[1]
    assert re.search(rf"\| CoRA +\| +{re.escape(shown)} +\|", text)


def test_a_card_says_where_only_grades_are_there(run):
    assert "and every reply is here." in card_of(run)
    bare = Responses(run.table.assign(reply=None, scores=None), run.questions, run.facts)
    assert f"the grade of every reply, but not the words of {len(run):,} of them, is here." in card_of(bare)
