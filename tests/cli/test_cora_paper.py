"The command that makes tables and figures of the papers."

import pytest

from cora_nb.cli.paper import cora_paper
from cora_nb.papers.plans import load_plan, parse_plan
from cora_nb.responses.files import read_responses

ANN = "simulated,knows=0.8,name=ann"


def run(capsys, *words, **options):
    "What the command prints."
    cora_paper(list(words), **options)
    return capsys.readouterr().out


def test_the_list_names_every_item(capsys):
    out = run(capsys, list=True)
    for paper in ("cora", "mcqa_plus", "quadruple_slit", "li2024"):
        for name, item in load_plan(paper).items.items():
            assert f"{paper}/{name}" in out and item.about in out
    assert run(capsys) == out  # nothing named: the same


def test_a_table_is_printed_with_what_differs_and_written(capsys, tmp_path):
    out = run(capsys, "cora/table_2", ANN, sample=4, benchmark="math", out=str(tmp_path / "papers"))
    assert "cora/table_2: MMLU, 5 examples" in out and "Gran (paper)" in out and "ann" in out
    assert "- Here: 4 questions of each benchmark, drawn at random." in out
    assert "all 14,042 of the benchmark have 4" in out
    folder = tmp_path / "papers" / "cora_sample_4_math"
    assert (folder / "table_2.txt").read_text(encoding="utf-8").strip() in out
    taken = read_responses(folder / "runs" / "mmlu" / "ann")
    assert len(taken.questions) == 4 and taken.facts["run"]["plan"]["shots"] == 5
    assert "respondent" in (folder / "table_2.csv").read_text(encoding="utf-8").splitlines()[0]
    assert run(capsys, "cora/table_2", ANN, sample=4, benchmark="math", out=str(tmp_path / "papers")) == out


def test_steps_lie_in_folders_of_their_own(capsys, tmp_path):
    run(capsys, "mcqa_plus/table_3", ANN, sample=3, benchmark="math", out=str(tmp_path))
    runs = tmp_path / "mcqa_plus_sample_3_math" / "runs" / "medmcqa_5" / "ann"
    assert sorted(p.name for p in runs.iterdir()) == ["mcqa_plus", "nota_answer"]


def test_a_plan_is_printed_changed_and_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = run(capsys, "cora/table_4", plan=True)
    assert parse_plan(text) == load_plan("cora/table_4")
    changed = text.replace('benchmark = "truthfulqa"', 'benchmark = "math"\nsample = 3')
    (tmp_path / "mine.toml").write_text(changed, encoding="utf-8")
    out = run(capsys, "mine.toml", ANN)
    assert "cora/table_4" in out and (tmp_path / "papers" / "cora" / "table_4.csv").is_file()


def test_dry_asks_nobody(capsys, tmp_path):
    out = run(capsys, "cora/table_1", ANN, sample=4, benchmark="math", dry=True, out=str(tmp_path / "papers"))
    assert "medqa ann" in " ".join(out.split()) and not (tmp_path / "papers").exists()


def test_a_recorded_run_is_measured_as_it_is(capsys, tmp_path):
    run(capsys, "cora/table_4", ANN, sample=5, benchmark="math", out=str(tmp_path))
    folder = tmp_path / "cora_sample_5_math" / "runs" / "truthfulqa" / "ann"
    out = run(capsys, "cora/table_1", f"recorded:{folder},name=before", out=str(tmp_path / "again"))
    assert "before" in out and not (tmp_path / "again" / "cora" / "runs").exists()


@pytest.mark.parametrize(
    "words, said",
    [
        (["cora/table_8", ANN], "cora has no item 'table_8'"),
        (["cora/table_1", ANN, ANN], "two respondents are called 'ann'"),
        (["quadruple_slit/figure_2", ANN], "name them as likelihood:PATH"),
        (["cora/table_1", "recorded:nowhere"], "nowhere"),
        (["no.toml"], "no.toml: there is no such file"),
    ],
)
def test_what_is_wrong_is_one_line(words, said, tmp_path):
    with pytest.raises(SystemExit) as e:
        cora_paper(words, sample=2, benchmark="math", out=str(tmp_path))
    assert said in str(e.value) and "\n" not in str(e.value)
