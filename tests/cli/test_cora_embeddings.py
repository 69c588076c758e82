"""The command `cora embeddings`, as a user runs it."""

import re

import pandas as pd
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from cora_nb.benchmarks.arithmetic import math_benchmark  # noqa: E402
from cora_nb.cli.models import cora_embeddings  # noqa: E402
from cora_nb.metrics.embeddings import format_prompts, head_separability, separability  # noqa: E402
from cora_nb.respondents.hidden import hidden_states  # noqa: E402
from cora_nb.report.render import written_result  # noqa: E402
from cora_nb.results import lookup  # noqa: E402
from helpers import run  # noqa: E402


@pytest.mark.slow
def test_the_command(tmp_path):
    words = ("--limit", 12, "--permutations", 19, "--heads", "--out", "pictures")
    code, out, err = run("cora embeddings", "organism/steady", *words, cwd=tmp_path, HF_HUB_OFFLINE="1", COLUMNS="150")
    assert code == 0, err
    assert "steady, 12 questions: scores" in out and "tables and figures: pictures" in out
    assert sorted(p.name for p in (tmp_path / "pictures").iterdir()) == [
        "steady-heads.csv",
        "steady-scores.csv",
        "steady-separability.png",
        "steady-tsne.png",
    ]
    states = hidden_states("organism/steady", format_prompts(math_benchmark(n=300)[:12]), heads=True, progress=False)
    scores = pd.read_csv(tmp_path / "pictures" / "steady-scores.csv").fillna({"note": ""})
    expected = written_result(separability(states, permutations=19))
    assert lookup(scores, "accuracy", place=0).value == 0.5
    assert scores["place"].drop_duplicates().tolist() == [0, 1, 2, 3, 4]
    pd.testing.assert_frame_equal(scores, expected, atol=1e-6, check_dtype=False)
    heads = pd.read_csv(tmp_path / "pictures" / "steady-heads.csv").fillna({"note": ""})
    pd.testing.assert_frame_equal(
        heads, written_result(head_separability(states, progress=False)), atol=1e-6, check_dtype=False
    )
    assert re.search(r"steady, 12 questions: heads\n +head 0 +head 1 +head 2 +head 3\nlayer +\n1 ", out)


@pytest.mark.parametrize(
    "words, what",
    [
        (("organism/nobody",), "the model organisms are steady and skewed, got 'nobody'"),
        (("--ends", "open"), "ends must be one of same, own, got 'open'"),
        (("--limit", "3"), "limit must be a whole number of 5 or more, got 3"),
        (("--out", "no/where"), "there is no folder no"),
        (("organism/steady", "organism/steady"), "two models are called 'steady'"),
        (("--template", "none"), "'none'"),
    ],
)
def test_mistakes_end_in_one_line(tmp_path, monkeypatch, words, what, capsys):
    monkeypatch.chdir(tmp_path)
    models, options = [w for w in words if w.startswith("organism")], [w for w in words if not w.startswith("organism")]
    named = dict(zip((o.removeprefix("--") for o in options[::2]), options[1::2]))
    if "limit" in named:
        named["limit"] = int(named["limit"])
    with pytest.raises(SystemExit) as e:
        cora_embeddings(models, **named)
    assert (
        str(e.value).startswith("cora embeddings: ")
        and what in str(e.value)
        and "\n" not in str(e.value)
        and not list(tmp_path.iterdir())
    )


@pytest.mark.slow
def test_a_sample(tmp_path):
    words = ("--sample", 10, "--seed", 1, "--permutations", 9, "--perplexity", 3)
    code, out, err = run("cora embeddings", "organism/steady", *words, cwd=tmp_path, HF_HUB_OFFLINE="1", COLUMNS="150")
    assert code == 0, err
    assert "steady, 10 questions (a random sample, seed 1): scores" in out
