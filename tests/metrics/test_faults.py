"""What looks like a fault is said before any score, and healthy runs have none."""

import numpy as np
import pytest

import cora_nb as cn
from cora_nb.core import Question
from cora_nb.metrics.faults import faults
from cora_nb.report.findings import findings
from cora_nb.report.sentences import fault_lines
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.responses import make_responses
from cora_nb.variants.families import method_words

pytestmark = pytest.mark.filterwarnings("ignore")


def questions(n, size=4):
    return [Question(f"q{i}", f"Question {i}?", tuple(f"c{i}{j}" for j in range(size)), i % size) for i in range(n)]


def graded(variants, reply):
    return make_responses(variants, [reply(v) for v in variants], "careful", name="who")


VARIANTS = cn.make_variants(questions(60))


def test_a_server_that_never_returns_a():
    run = graded(VARIANTS, lambda v: "" if v.labels[v.answer] == "A" else v.labels[v.answer])
    found = faults(run)
    assert found[["score", "place"]].iloc[0].tolist() == ["never chosen", 1] and found["n"].iloc[0] > 100
    line = fault_lines(findings(run), "who")[0]
    assert line.startswith("place 1 is never chosen in") and "until shown otherwise" in line
    page = cn.make_report(run, pictures=False).html
    assert page.index("place 1 is never chosen") < page.index("with consistency counted in")
    assert "leans on place" not in page


def test_one_letter_nearly_always():
    found = faults(graded(VARIANTS, lambda v: "B"))
    assert {(s, p) for s, p in zip(found["score"], found["place"]) if p == p} >= {
        ("nearly always", 2),
        ("never chosen", 1),
    }


@pytest.mark.parametrize("kind, right, score", [("nota", False, "none right"), ("nota", True, "all right")])
def test_a_kind_of_variant_that_is_never_or_always_right(kind, right, score):
    rng = np.random.default_rng(0)
    run = graded(
        VARIANTS, lambda v: v.labels[(v.answer + (not right if v.method == kind else rng.random() < 0.5)) % v.n_choices]
    )
    found = faults(run)
    assert found[["score", "method"]].to_numpy().tolist() == [[score, kind]]
    (line,) = fault_lines(findings(run), "who")
    assert f"replies to “{method_words(kind)}”" in line and "place" not in line


@pytest.mark.parametrize("knows", [0.0, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("size, n", [(4, 20), (10, 20), (4, 100)])
def test_healthy_runs_have_no_fault(knows, size, n):
    variants = cn.make_variants(questions(n, size))
    for seed in range(3):
        who = SimulatedRespondent(knows=knows, seed=seed, name="who")
        assert not len(faults(cn.evaluate(who, variants, progress=False)))


def test_answers_that_all_stand_at_one_place_are_no_fault_of_the_server():
    first = [Question(f"q{i}", "?", ("a", "b", "c", "d"), 0) for i in range(200)]
    originals = [v for v in cn.make_variants(first) if v.method == "original"]
    assert not len(faults(graded(originals, lambda v: "A")))
