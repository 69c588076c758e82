"""A user's own score, family, respondent, rule and layout: ten lines each, named where a name is expected."""

import re
import textwrap

import pytest

import cora_nb as cn
from cora_nb.metrics.ablations import variant_bootstrap
from cora_nb.metrics.scores import SCORES, load_score
from cora_nb.results import lookup
from helpers import run

PARTS = {
    "score": """
        def never(counts):
            "Questions that were never answered correctly."
            return counts.share(lambda rc: rc == 0)
        """,
    "family": """
        from cora_nb.variants.operators import make_variant

        def backwards(question, seed=0):
            "The question's own order, and the same read from its end."
            order = tuple(range(question.n_choices))
            yield make_variant(question, "backwards", "original", 0, order)
            yield make_variant(question, "backwards", "backwards", 0, order[::-1])
        """,
    "respondent": """
        from cora_nb.respondents.protocol import Reply

        class First:
            "Always the first choice."
            name = "first"
            def describe(self): return {"respondent": "first"}
            def request(self, prompt): return {"text": prompt.text}
            async def answer(self, prompts):
                for i, prompt in enumerate(prompts): yield i, Reply(f"the answer: {prompt.variant.labels[0]}!")
        """,
    "rule": """
        def after_colon(reply, choices):
            "The letter after the last colon."
            return "ABCDEFGHIJ".find((reply or "").rpartition(":")[2].strip(" !"))
        """,
    "layout": """
        from cora_nb.benchmarks.layouts import Layout

        def divided(row):
            return row | {"say": row["say"].split("/")}

        quiz = Layout(question="ask", choices="say", answer="right", counts="from 1", change=divided)
        """,
}
QUIZ = "ask,say,right\nHow many?,one/two/three,1\nWhich color?,red/green/blue,2\nWho?,you/me/her,1\n"


@pytest.fixture
def desk(tmp_path):
    "A folder with a file for each part, and a benchmark in columns of its own."
    for part, source in PARTS.items():
        text = textwrap.dedent(source).strip() + "\n"
        assert len(text.splitlines()) <= 10, part
        (tmp_path / f"my_{part}.py").write_text(text)
    (tmp_path / "quiz.csv").write_text(QUIZ)
    return tmp_path


@pytest.mark.slow
def test_all_of_them_in_one_run(desk):
    code, out, err = run(
        *("cora_run", "my_respondent.py:First", "--benchmark", "my_layout.py:quiz", "--path", "quiz.csv"),
        *("--family", "my_family.py:backwards", "--parse", "my_rule.py:after_colon", "--score", "my_score.py:never"),
        cwd=desk,
    )
    assert code == 0, err
    assert "3 questions, 6 variants of the family" in out
    assert re.search(r"^never +0\.\d\d \[0\.\d\d, \d\.\d\d\] +0\.\d\d$", out, re.M)  # and what guessing gives
    (folder,) = (p.parent for p in desk.rglob("responses.parquet"))
    found = cn.read_responses(folder)
    assert found.summary().loc["all"].to_dict() == dict(
        rows=6, right=2, wrong=4, unparsed=0, cut_off=0, failed=0, not_asked=0
    )
    assert (found.coverage, found.family, found.trials) == ("", "backwards", (0,))
    code, out, err = run("cora_table", str(folder), "--score", "my_score.py:never", "--interval", 0.9, cwd=desk)
    assert code == 0 and re.search(r"^Beyond the paper\n  never +0\.\d\d \[", out, re.M), err


def test_a_score_of_ones_own_is_everywhere(desk):
    variants = cn.make_variants(cn.load_benchmark("math")[:60])
    runs = {
        name: cn.evaluate(cn.SimulatedRespondent(knows=knows, position=(3, 1), name=name), variants, progress=False)
        for name, knows in (("ann", 0.5), ("bob", 0.6))
    }
    load_score(str(desk / "my_score.py") + ":never")
    try:
        scores = cn.score(runs["ann"], ci=0.95)
        assert lookup(scores, "never").low <= lookup(scores, "never").value <= lookup(scores, "never").high
        assert "never" in set(cn.compare(runs["ann"], runs["bob"], resamples=500)["score"])
        assert "never" in variant_bootstrap(runs["ann"], resamples=20)
        assert 0 <= lookup(cn.chance_scores(runs["ann"]), "never").value < 1
        table = cn.score_table(runs, beyond=["never"])
        assert set(table.loc[table["score"] == "never", "respondent"]) == {"ann", "bob", "a guesser"}
        lines = cn.render(table).splitlines()
        assert "Beyond the paper" in lines and any(line.startswith("  never ") for line in lines)
    finally:
        del SCORES.registered["never"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words, says",
    [
        (["cora_run", "nothing.py:First"], "there is no file nothing.py"),
        (["cora_run", "my_respondent.py:Second"], "my_respondent.py has no 'Second'"),
        (["cora_run", "simulated", "--family", "my_family.py:sideways"], "my_family.py has no 'sideways'"),
        (
            ["cora_run", "simulated", "--parse", "my_score.py:never", "--limit", "2", "--score", "lucky"],
            "score must be",
        ),
        (["cora_run", "simulated", "--benchmark", "my_layout.py:divided", "--path", "quiz.csv"], "must be a Layout"),
    ],
)
def test_a_mistake_gets_one_clear_line(desk, words, says):
    code, out, err = run(*words, cwd=desk)
    assert code == 1 and says in err and "Traceback" not in err and len(err.strip().splitlines()) == 1
