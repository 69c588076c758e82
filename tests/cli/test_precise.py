"""`--stop precise`: its options, what a dry run says, the table, and the commands that read the run afterwards."""

import json
import re

import pandas as pd
import pytest

from cora_nb.cli.gate import cora_gate
from cora_nb.cli.options import StopOptions, read_stop
from cora_nb.cli.shared import expected_lines
from cora_nb.cli.table import cora_report
from cora_nb.cli.run import cora_run
from cora_nb.cli.table import cora_table
from cora_nb.core import CoraError
from cora_nb.metrics.scoring import score
from cora_nb.responses.files import read_responses
from cora_nb.results import lookup
from cora_nb.runs.asking import Precise
from cora_nb.runs.stopping import expected_calls
from cora_nb.runs.evaluate import plan
from cora_nb.variants.families import make_variants
from helpers import SUMS, run

ANN = "simulated:knows=0.8,slips=0.03,name=ann"
STOP = {"stop": "precise", "half_width": 0.06}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    "Ann in full, and Ann and Bob stopped within 0.06: their folders under `responses` and `precise`."
    here = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        cora_run([ANN], limit=150)
        cora_run([ANN, "simulated:knows=0.4,name=bob"], limit=150, out="precise", **STOP)
    return here


@pytest.mark.slow
def test_a_run_prints_estimates_and_keeps_its_options(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    cora_run([ANN, "simulated:knows=0.4,name=bob"], limit=150, out="precise", **STOP)  # the same run again
    out = capsys.readouterr().out
    found = read_responses("precise/math/ann")
    row = lookup(score(found), "CoRA")
    assert f"≈{row.value:.2f} [{row.low:.2f}, {row.high:.2f}]" in out and row.status == "estimated"
    assert "ann: ≈ estimate of the full run: " in out and "not asked" in out
    told = found.facts.run.command
    assert (told["stop"], told["half_width"]) == ("precise", 0.06) and "level" not in told
    assert found.facts.sample.scores == ["CoRA"] and found.facts.sample.half_width == 0.06


def test_scores_level_and_seed_arrive(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cora_run(
        [ANN], limit=150, seed=3, stop="precise", precise_for="MCQA, BMCA(1), BMCA(1.0)", half_width=0.1, level=0.9
    )
    assert " CORE " not in (out := capsys.readouterr().out) and "intervals of 90% in brackets" in out
    sample = read_responses("responses/math/ann").facts.sample.plain()
    wanted = {"scores": ["MCQA", "BMCA(1.0)"], "half_width": 0.1, "level": 0.9, "seed": 3}
    assert {name: sample[name] for name in wanted} == wanted
    cora_run([ANN], limit=150, stop="precise", precise_for="MV,CORE", half_width=0.15, out="own")
    assert re.search(r"CORE +≈0", capsys.readouterr().out)  # beyond the paper, but asked for


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"level": 0.9}, "--level goes with --stop precise"),
        ({"stop": "cora", "half_width": 0.1}, "--half_width goes with --stop precise"),
        ({"precise_for": "MCQA"}, "--precise_for goes with --stop precise"),
        ({"stop": "precise", "precise_for": "CORA"}, "got 'CORA'"),
        ({"stop": "precise", "precise_for": " ,"}, "--precise_for needs the name of a score, such as CoRA, got ' ,'"),
        ({"stop": "precise", "precise_for": "BMCA(0.55)"}, "BMCA(c) for c = 0.5, 0.6, 0.7, 0.8, 0.9, 1.0; another c"),
        ({"stop": "precise", "half_width": 2.0}, "half_width must be between 0 and 0.5, got 2.0"),
        ({"stop": "precise", "half_width": 0.5}, "between 0 and 0.5, got 0.5; the ends are excluded"),
        ({"stop": "precise", "level": 95.0}, "level must be"),
        ({"stop": "precise", "trials": 2}, "one trial"),
        ({"stop": "precisely"}, "stop must be one of None, cora, bmca, precise, got 'precisely'"),
    ],
)
@pytest.mark.parametrize("dry", [False, True])
def test_what_cannot_be_is_refused_in_one_line(options, why, dry, tmp_path, monkeypatch, capsys):
    "Before the benchmark is loaded, so also in a dry run."
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as e:
        cora_run([ANN], limit=5, dry=dry, **options)
    assert why in str(e.value) and "\n" not in str(e.value) and not (tmp_path / "responses").exists()


@pytest.mark.slow
def test_a_dry_run_plans_for_four_respondents(tmp_path):
    words = ("cora_run", "chat:gpt-4o-mini", "--dry", "--price", "1/2", "--stop", "precise", "--half-width", 0.05)
    code, out, _ = run(*words, cwd=tmp_path, OPENAI_API_KEY="")
    assert code == 0 and "expected with --stop precise (CoRA within 0.05, 95%), if the model is" in out
    heads = "MCQA  *CoRA  *calls  *of the full run  *times plain accuracy  *calls with --stop cora  *cost, at most"
    assert re.search(heads, out.split("model is")[1])
    scores = {"weak": "0.35 +0.23", "middling": "0.78 +0.30", "strong": "0.93 +0.49", "very strong": "0.98 +0.79"}
    for kind, known in scores.items():
        calls = expected_calls((300, 20), kind, Precise(half_width=0.05))
        numbers = re.search(rf"^{kind} +{known} +([\d,]+) +([\d.]+)% +([\d.]+) +([\d,]+) +([\d.]+)$", out, re.MULTILINE)
        assert numbers, out
        precise, share, times, exact, cost = numbers.groups()
        assert int(precise.replace(",", "")) == calls["precise"] and int(exact.replace(",", "")) == calls["exact"]
        assert float(share) == pytest.approx(100 * calls["precise"] / 6000, abs=0.051)
        assert float(times) == pytest.approx(calls["precise"] / 300, abs=0.051) and float(cost) > 0
    assert "replies in the store" not in out
    assert "expected with" not in run(*words[:5], "--stop", "cora", cwd=tmp_path, OPENAI_API_KEY="")[1]


def test_the_money_of_each_respondent():
    from cora_nb.respondents.simulated import SimulatedRespondent

    people, variants = [SimulatedRespondent(name=name) for name in "ab"], make_variants(SUMS)
    plans = [plan(who, variants, prices=(1000, 2000)) for who in people]
    said = expected_lines(variants, plans, Precise(half_width=0.2))
    assert "cost of a, at most" in said and "cost of b, at most" in said
    plans = [plan(who, variants) for who in people]
    assert "cost" not in expected_lines(variants, plans, Precise(half_width=0.2))
    with pytest.raises(CoraError, match="--level goes with"):
        read_stop(StopOptions(level=0.9), 0)


def test_replies_in_the_store_are_said_to_cost_nothing():
    variants, options = make_variants(SUMS), Precise(half_width=0.2)
    plans = [pd.Series({"calls": 10, "in_store": n}, name=name) for name, n in (("a", 0), ("b", 1234), ("c", 2))]
    *_, table, last = expected_lines(variants, plans, options).splitlines()
    assert last == "replies in the store cost nothing, and are counted here as calls (1,234 of b, 2 of c are there)"
    assert table.startswith("very strong") and expected_lines(variants, plans[:1], options).splitlines()[-1] == table


def test_a_run_in_full_is_another_run(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit, match="there is another run here already"):
        cora_run([ANN], limit=150, **STOP)
    with pytest.raises(SystemExit, match=r"with other half_width \(0.06 there, 0.05 now\);"):
        cora_run([ANN], limit=150, out="precise", stop="precise", half_width=0.05)


@pytest.mark.slow
def test_the_table_command(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    runs = ["responses/math/ann", "precise/math/bob"]
    cora_table(runs)
    out = capsys.readouterr().out
    assert re.search(r"CoRA +0\.\d\d +≈0\.\d\d \[0\.\d\d, 0\.\d\d\]", out) and "No ranks: bob has estimates" in out
    cora_table(runs, interval=0.99)
    assert "not estimated at 99%: the run was stopped with intervals of 95%" in capsys.readouterr().out
    cora_table(runs, format="csv")
    assert "estimate of the full run: " in capsys.readouterr().out
    with pytest.raises(SystemExit, match="precise enough"):
        cora_table(runs, score="agreement")


@pytest.mark.slow
def test_the_report_command(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    cora_report(["responses/math/ann", "precise/math/bob"], out="page.html")
    page = (folder / "page.html").read_text()
    assert "estimated for the full run: the run stopped when CoRA was precise enough (within 0.06)" in page
    assert "≈" in page and "Figure: Scores with intervals" in page
    words = "Accuracy of each kind of variant, and what guessing gives; not of bob: not all prompts were asked"
    assert f"Figure: {words}" in page  # of Ann alone
    cora_report(["precise/math/bob"], out="alone.html")
    page = (folder / "alone.html").read_text()
    assert "Figure: Scores with intervals" in page and "Figure: Accuracy of each kind" not in page


def test_the_gate_command(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as e:
        cora_gate("precise/math/bob", against="responses/math/ann", margin=0.02)
    assert e.value.code == 4 and "estimate of the full runs" in capsys.readouterr().out
    cora_gate("precise/math/ann", at_least="CoRA=0.2")
    assert "passed: ann: CoRA at least 0.2" in capsys.readouterr().out
    with pytest.raises(SystemExit) as e:
        cora_gate("precise/math/ann", at_least="MV=0.2")
    assert e.value.code == 3 and "not known: ann: MV" in capsys.readouterr().out


@pytest.mark.slow
def test_options_in_a_file(folder, tmp_path):
    "The facts of a run repeat it with all options of precise stopping."
    code, out, _ = run("cora_run", "--config", folder / "precise/math/ann/facts.json", "--out", "again", cwd=tmp_path)
    facts = json.loads((tmp_path / "again/math/ann/facts.json").read_text())
    assert code == 0 and facts["sample"] == read_responses(folder / "precise/math/ann").facts.sample.plain()
