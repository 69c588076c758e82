"""What lm-evaluation-harness 0.4.13 makes of letters in the benchmark SCORE: closed forms, and the harness's own file.

The tests marked `peers` run where lm-eval 0.4.13 is installed: `pip install -e '.[dev,peers]'`, then `pytest -m peers`.
"""

import importlib.util
import json
from importlib.metadata import PackageNotFoundError, version
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from cora_nb.core import LETTERS, Question
from cora_nb.metrics.consistency import agreement_rate
from cora_nb.responses.responses import make_responses
from cora_nb.variants.families import make_variants


def quiz(n, A):
    return [Question(f"q{i}", f"{i}?", tuple(f"{i} {j}" for j in range(A)), i % A) for i in range(n)]


def at(v, source):
    return LETTERS[v.sources.index(source)]


RESPONDENTS = {
    "the key's letter": lambda v, rng: LETTERS[v.question.answer],
    "a wrong choice": lambda v, rng: at(v, v.question.distractors[0]),
    "the right choice": lambda v, rng: at(v, v.question.answer),
    "always A": lambda v, rng: "A",
    "at random": lambda v, rng: LETTERS[rng.integers(v.n_choices)],
    "often unreadable": lambda v, rng: ["A", "B", f"hm {rng.random()}"][rng.integers(3)],
}


def asked(name, n=40, A=4):
    "A run of `answer_swap`, and what the harness keeps of it."
    rng, variants = np.random.default_rng(5), make_variants(quiz(n, A), "answer_swap")
    said = [RESPONDENTS[name](v, rng) for v in variants]
    kept = [
        (v.question_id, LETTERS[v.answer], reply, v.question.answer, (v.answer,)) for v, reply in zip(variants, said)
    ]
    return make_responses(variants, said), kept


def pooled(samples, reading):
    "Agreeing pairs over pairs, each letter being read before."
    replies = {}
    for question, s, reply, original, _ in samples:
        replies.setdefault(question, []).append(reading(reply, LETTERS[original], s))
    return np.mean([a == b for read in replies.values() for a, b in combinations(read, 2)])


def two_ifs(reply, o, s):
    return o if reply in (o, s) else reply


def else_if(reply, o, s):
    return {o: s, s: o}.get(reply, reply)


@pytest.mark.parametrize("A", [2, 3, 4, 5, 10])
@pytest.mark.parametrize("name", RESPONDENTS)
def test_letters_read_rightly_are_the_agreement_rate(name, A):
    if A == 2 and name == "often unreadable":
        pytest.skip("two choices")
    run, samples = asked(name, A=A)
    assert agreement_rate(run)["value"][0] == pytest.approx(pooled(samples, else_if))


@pytest.mark.parametrize("A", [3, 4, 5, 10])
def test_closed_forms(A):
    for name, wrongly, rightly in [
        ("the key's letter", 1, 0),
        ("a wrong choice", (A - 2) / A, 1),
        ("the right choice", 1, 1),
    ]:
        _, samples = asked(name, A=A)
        assert pooled(samples, two_ifs) == pytest.approx(wrongly)
        assert pooled(samples, else_if) == pytest.approx(rightly)


# The harness's own file


@pytest.fixture(scope="module")
def harness():
    found = importlib.util.find_spec("lm_eval")
    try:
        installed = found and version("lm_eval")
    except PackageNotFoundError:
        installed = None
    if installed != "0.4.13":
        pytest.skip("lm_eval 0.4.13 is not installed: pip install -e '.[peers]'")
    folder = Path(found.submodule_search_locations[0]) / "tasks" / "score"
    spec = importlib.util.spec_from_file_location("score_utils", folder / "utils.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.peers
@pytest.mark.parametrize("A", [3, 4, 5, 10])
@pytest.mark.parametrize("name", RESPONDENTS)
def test_the_harness_reads_letters_as_two_ifs_do(harness, name, A):
    _, samples = asked(name, A=A)
    theirs = harness.options_consistency_rate(samples, list(LETTERS[:A]))
    assert theirs == pytest.approx(pooled(samples, two_ifs))


@pytest.mark.peers
def test_the_harness_asks_what_answer_swap_asks(harness, tmp_path):
    datasets = pytest.importorskip("datasets")
    questions = quiz(6, 4)
    docs = [
        {"question_id": q.id, "question": q.text, "options": list(q.choices), "answer_index": q.answer, "answer": ""}
        for q in questions
    ]
    (tmp_path / "templates.json").write_text(
        json.dumps({"order": {"prompt": "{question}", "options_format": "{letter}"}})
    )
    made = harness.option_order_robustness_process_docs(
        datasets.Dataset.from_list(docs), str(tmp_path / "templates.json"), "order", list("ABCD")
    )
    theirs = {(d["question_id"], d["answer_index"]): tuple(d["options"]) for d in made}
    ours = {(v.question_id, v.answer): v.choices for v in make_variants(questions, "answer_swap")}
    assert theirs == ours and len(made) == len(ours) == 24
    assert [d["always_same_option"] for d in made] == list("ABCD") * 6
    assert all(d["original_answer_index"] == int(d["question_id"][1:]) % 4 for d in made)
