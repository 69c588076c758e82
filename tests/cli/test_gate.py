"""cora_gate: its exit statuses and its lines, and the workflow that ships with the project."""

import re
import shlex

import pytest
import yaml
from helpers import run
from pathlib import Path

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.cli.failures import stop_line
from cora_nb.cli.options import CostOptions, read_budget
from cora_nb.cli.commands import parse_words
from cora_nb.cli.gate import cora_gate, read_floors
from cora_nb.cli.run import cora_run
from cora_nb.core import CoraError, LETTERS
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.responses.responses import make_responses
from cora_nb.runs.asking import Budget
from cora_nb.runs.asking import Spending
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

WORKFLOW = Path(__file__).resolve().parents[2] / "data" / "workflows" / "cora_gate.yml"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder, variants = tmp_path_factory.mktemp("runs"), make_variants(math_benchmark(60))
    for name, knows in (("base", 0.8), ("new", 0.81), ("worse", 0.4)):
        write_responses(evaluate(SimulatedRespondent(knows, name=name), variants, progress=False), folder / name)
    with pytest.warns(UserWarning, match="stopped by its budget"):
        cut = evaluate(SimulatedRespondent(0.8, name="cut"), variants, budget=Budget(calls=1100), progress=False)
    write_responses(cut, folder / "cut")
    other = make_variants(math_benchmark(60, seed=1))
    write_responses(evaluate(SimulatedRespondent(0.8, name="other"), other, progress=False), folder / "other")
    return folder


def typed(line, folder, capsys, monkeypatch):
    "Exit status, output and error of words behind `cora_gate`."
    monkeypatch.chdir(folder)
    status, said = 0, ""
    try:
        cora_gate.typed(shlex.split(line))
    except SystemExit as e:
        status, said = (e.code, "") if isinstance(e.code, int) else (1, e.code)
    out, err = capsys.readouterr()
    return status, out.splitlines(), said or err


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("new --against base --margin 0.2", 0, r"passed: new - base: CoRA not worse by more than 0\.2: "),
        ("new --against base --margin 0.2 --score CoRA,MCQA+ --at_least MCQA=0.5", 0, "passed: "),
        ("worse --against base --margin 0.1", 4, "not passed: worse - base: CoRA"),
        ("new --at_least CoRA=0.99", 4, r"not passed: new: CoRA at least 0\.99: "),
        ("cut --against base --margin 0.2", 3, r"not known: cut - base: .*100 of 1,200 prompts of cut not asked"),
        ("base --against cut --margin 0.2", 3, r"not known: base - cut: "),
        ("cut --at_least MCQA+=0.1", 3, r"not known: cut: MCQA\+ at least 0\.1"),
        ("cut --at_least MCQA+=0.1 --against base --margin 0.2", 3, "not known"),
    ],
)
def test_statuses(line, status, said, runs, capsys, monkeypatch):
    found, lines, err = typed(line, runs, capsys, monkeypatch)
    assert found == status and not err
    assert all(re.match(said, text) for text in lines) and lines


def test_not_passed_counts_more_than_not_known(runs, capsys, monkeypatch):
    found, lines, _ = typed("cut --against base --margin 0.2 --at_least CoRA=0.999", runs, capsys, monkeypatch)
    assert found == 3 and len(lines) == 2
    found, lines, _ = typed("worse --against cut --margin 0.1 --at_least CoRA=0.999", runs, capsys, monkeypatch)
    assert found == 4 and [text.split(":")[0] for text in lines] == ["not known", "not passed"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("new --against nowhere --margin 0.2", "nowhere"),
        ("nowhere --at_least CoRA=0.4", "nowhere"),
        ("new --against other --margin 0.2", "another text|different questions"),
        ("new --against new --margin 0.2", "the run and its baseline are the same"),
        ("new --against ./new/ --margin 0.2", "the run and its baseline are the same"),
        ("new --against base", "a baseline needs a margin"),
        ("new --margin 0.2", "a gate needs a condition"),
        ("new --score CoRA", "--score goes with --against"),
        ("new", "a gate needs a condition"),
        ("new --against base --margin 2", "margin must be a number from 0 to 1"),
        ("new --against base --margin 0.1 --score RStd", "got 'RStd'"),
        ("new --against base --margin 0.1 --score recall_spread", "a measure without a paired test"),
        ("new --at_least CoRA", "--at_least takes scores with numbers, such as CoRA=0.4,MCQA=0.6, got 'CoRA'"),
        ("new --at_least CoRA=0.4,CoRA=0.5", "names CoRA twice"),
        ("new --at_least CoRA=nan", "at_least for CoRA must be a number"),
        ("new --at_least CoRA=0.4 --trials some", "trials must be first or all"),
        ("new --at_least CoRA=0.4 --alpha 0.7", "alpha must be between"),
    ],
)
def test_errors_are_one_line_and_status_1(line, said, runs, capsys, monkeypatch):
    status, lines, err = typed(line, runs, capsys, monkeypatch)
    assert status == 1 and not lines
    assert err.startswith("cora_gate: ") and "\n" not in err.strip() and re.search(said, err)


def test_mistyped_words_are_status_2(runs, capsys, monkeypatch):
    assert typed("new --marign 0.2", runs, capsys, monkeypatch)[0] == 2
    assert typed("--margin 0.2", runs, capsys, monkeypatch)[0] == 2


def test_help_says_the_statuses(capsys):
    with pytest.raises(SystemExit):
        cora_gate.typed(["--help"])
    said = capsys.readouterr().out
    assert "Exit status: 0 passed; 1 error; 2 mistyped; 3 not known, since replies are missing; 4 not passed." in said


def test_floors():
    assert read_floors("CoRA=0.4, BMCA(0.8)=.5") == {"CoRA": 0.4, "BMCA(0.8)": 0.5} and read_floors(None) == {}
    for bad in ("", "=0.4", "CoRA=", "CoRA=0.4,", "0.4"):
        with pytest.raises(CoraError, match="--at_least takes scores with numbers"):
            read_floors(bad)


# ---- the workflow


def test_the_workflow_has_commands_that_exist():
    found = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    steps = found["jobs"]["gate"]["steps"]
    lines = [step["run"] for step in steps if step.get("run", "").startswith("cora_")]
    assert [line.split()[0] for line in lines] == ["cora_run", "cora_gate"]
    options = {}
    for line, command in zip(lines, (cora_run, cora_gate)):
        name, *words = shlex.split(line)
        options[name] = parse_words(command, words)  # leaves the program for an option that does not exist
    asked, decided = options["cora_run"], options["cora_gate"]
    assert decided["run"] == f"{asked['out']}/{asked['benchmark']}/gpt-4o-mini" and decided["against"] != decided["run"]
    assert read_floors(decided["at_least"]) == {"CoRA": 0.4}
    assert read_budget(CostOptions(max_cost=asked["max_cost"], price=asked["price"])).cost == asked["max_cost"]


# ---- a budget, as typed


@pytest.mark.slow
def test_a_budget_of_a_command(tmp_path):
    words = ["cora_run", "simulated:name=ann", "simulated:seed=1,name=bob", "--limit", "5"]
    status, out, err = run(*words, "--max_calls", "150", cwd=tmp_path)
    assert status == 3 and "Traceback" not in err
    assert "bob: 50 replies: " in out and "50 not asked" in out
    (line,) = [text for text in out.splitlines() if "stopped by its budget" in text]
    assert "of at most 150 calls (150 calls spent): 50 of 100 prompts were not asked, 2 of 5 questions" in line
    assert line.endswith("to go on, run the same command again: nothing is kept, so all are asked again")
    assert read_responses(tmp_path / "responses/math/ann").failed_remarks == ()
    status, out, err = run(*words[:2], "--limit", "5", "--max_calls", "50", cwd=tmp_path)
    assert status == 3 and "the run there has 100 replies, and within the budget there are 50; it is left alone" in err
    status, _, err = run(*words[:2], "--limit", "5", "--max_cost", "5", cwd=tmp_path)
    assert status == 1 and "--max_cost needs the prices" in err and len(err.splitlines()) == 1
    status, _, err = run(*words[:2], "--limit", "5", "--max_calls", "0", cwd=tmp_path)
    assert status == 1 and "calls must be" in err


@pytest.mark.slow
def test_a_respondent_that_gets_nothing_is_named(tmp_path):
    words = ["cora_run", "simulated:name=ann", "simulated:seed=1,name=bob", "--limit", "5", "--max_calls", "100"]
    status, out, err = run(*words, cwd=tmp_path)
    assert status == 3 and "cora_run: bob is not in the table: no prompt was answered within the budget" in err
    assert not (tmp_path / "responses/math/bob").exists()


def test_what_to_type_to_go_on(tmp_path):
    with pytest.warns(UserWarning):
        part = evaluate(SimulatedRespondent(), make_variants(math_benchmark(3)), budget=Budget(calls=5), progress=False)
    assert stop_line(part, Spending(Budget(calls=5)), "a store").endswith("what was answered is not asked again")
    assert stop_line(part, None, None) == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "cora_paper mcqa_plus/table_2 simulated:name=ann --sample 4 --benchmark math",
        "cora_paper cora/table_2 simulated:name=ann --sample 4 --benchmark math",
    ],
)
def test_commands_of_several_runs_make_nothing_of_a_part(command, tmp_path):
    "A table of a part would look like one of the whole."
    status, out, err = run(*command.split(), "--max_calls", "30", cwd=tmp_path)
    assert status == 3 and "stopped by its budget of at most 30 calls" in err and "run again to go on" in err
    assert "Table" not in out


# ---- repetitions


@pytest.mark.slow
def test_all_repetitions_count_in_the_run_and_in_its_baseline(tmp_path, capsys, monkeypatch):
    "Right in the first repetition and wrong in the second: 1 or 0.5, and the same for the baseline."
    variants = make_variants(math_benchmark(60))
    right = [LETTERS[v.answer] for v in variants]
    wrong = [LETTERS[(v.answer + 1) % v.n_choices] for v in variants]
    trials = [0] * len(variants) + [1] * len(variants)
    for name, replies in (("fading", right + wrong), ("fading too", right + wrong), ("steady", right + right)):
        write_responses(make_responses(variants * 2, replies, trials=trials, name=name), tmp_path / name)
    for line, statuses in {
        "fading --at_least MCQA=0.7": (0, 4),
        "fading --against steady --score MCQA --margin 0.2": (0, 4),
        "fading --against 'fading too' --score MCQA --margin 0.2": (0, 0),
    }.items():
        for trials, status in zip(("", " --trials first", " --trials all"), (statuses[0], *statuses)):
            assert typed(line + trials, tmp_path, capsys, monkeypatch)[0] == status, line + trials


def test_a_difference_must_be_meant(runs, tmp_path, capsys, monkeypatch):
    run = evaluate(SimulatedRespondent(0.81, name="seeded"), make_variants(math_benchmark(60), seed=5), progress=False)
    write_responses(run, tmp_path / "seeded")
    line = f"{tmp_path / 'seeded'} --against base --margin 0.3"
    status, lines, _ = typed(line, runs, capsys, monkeypatch)
    assert status == 3 and "they differ in seed (5 and 0)" in lines[0]
    assert typed(f"{line} --differ template", runs, capsys, monkeypatch)[0] == 3
    status, lines, _ = typed(f"{line} --differ template,seed", runs, capsys, monkeypatch)
    assert status == 0 and "they differ in seed" in lines[0]
