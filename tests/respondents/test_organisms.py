"""The model organisms: the same score, one of them does not know; and everything that runs models, run on them."""

import json
import math

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from cora_nb.benchmarks.arithmetic import math_benchmark  # noqa: E402
from cora_nb.core import Question, data_path  # noqa: E402
from cora_nb.metrics.scoring import score  # noqa: E402
from cora_nb.prompts.templates import make_prompts  # noqa: E402
from cora_nb.respondents.causal import CausalRespondent  # noqa: E402
from cora_nb.responses.columns import in_state  # noqa: E402
from cora_nb.responses.files import read_responses  # noqa: E402
from cora_nb.results import values_of  # noqa: E402
from cora_nb.runs.asking import Asking, Settled
from cora_nb.runs.evaluate import evaluate  # noqa: E402
from cora_nb.runs.store import Store  # noqa: E402
from cora_nb.variants.families import make_variants  # noqa: E402
from helpers import slow_after  # noqa: E402

VARIANTS = make_variants(math_benchmark(300, seed=0))
NAMES = ("steady", "skewed")


@pytest.fixture(scope="module")
def full(organism_run):
    "The responses to all variants, as `cora run` without arguments wrote them."
    found = {name: read_responses(organism_run[0] / "responses" / "math" / name) for name in NAMES}
    key = ["question_id", "method", "index"]
    asked = {(v.question.id, v.method, v.index) for v in VARIANTS}
    assert all(set(r.table[key].itertuples(index=False, name=None)) == asked for r in found.values())
    return found


@pytest.fixture(scope="module")
def replies(organism_run):
    "The store that the run has filled."
    with Store(organism_run[0] / "cora_nb" / "replies.sqlite") as store:
        yield store


@pytest.mark.parametrize("name", NAMES)
def test_files_are_small_and_safe(name):
    files = {f.name: f.stat().st_size for f in data_path("models", name).iterdir()}
    assert (
        sum(files.values()) <= 5_000_000
        and "model.safetensors" in files
        and not any(f.endswith((".bin", ".pt", ".py")) for f in files)
    )
    assert "auto_map" not in json.loads((data_path("models", name) / "config.json").read_text())


@pytest.mark.slow
def test_the_same_score_and_one_does_not_know(full):
    steady, skewed = (values_of(score(full[name])) for name in NAMES)
    assert min(steady["MCQA"], skewed["MCQA"]) > 0.6 and abs(steady["MCQA"] - skewed["MCQA"]) <= 0.05
    assert steady["CoRA"] - skewed["CoRA"] >= 0.15
    skewed = full["skewed"].table  # with fewer choices than it has ever seen, it may name one that is not there
    whole = skewed[skewed["method"].isin(["original", "shuffled"])]
    assert (full["steady"].table["prediction"] >= 0).all() and (whole["prediction"] >= 0).all()


@pytest.mark.slow
def test_skewed_leans_on_the_first_place(full):
    original = {name: r.table[r.table["method"] == "original"] for name, r in full.items()}
    first = {name: (r["prediction"] == 0).mean() - (r["answer"] == 0).mean() for name, r in original.items()}
    assert first["skewed"] >= first["steady"] + 0.03


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_after(1, NAMES))
def test_stopping_early_gives_the_scores_of_the_full_run(name, full, replies, capsys):
    "Every reply is in the store already, so the stopped run asks nothing new, and counts what it would have asked."
    part = evaluate(CausalRespondent(f"organism/{name}"), VARIANTS, stop=Settled(), store=replies, progress=False)
    assert part.facts.calls["asked"] == 0
    known = ["MCQA", "BMCA(1.0)", "CI", "CoRA"]
    assert values_of(score(part))[known].equals(values_of(score(full[name]))[known])
    calls, whole = int((~in_state(part.table, "not_asked")).sum()), full[name].table
    sets, originals = whole.groupby("question_id")["correct"], whole[whole["method"] == "original"]
    least = int(sets.size().where(sets.all(), 1 + originals.set_index("question_id")["correct"]).sum())
    with capsys.disabled():
        print(f"\n{name}: {calls} calls of {len(part)}, least possible {least}")
    assert least <= calls <= 1.5 * least


@pytest.mark.slow
@pytest.mark.parametrize("name", ["steady", "skewed"])
def test_p_yes_is_the_sum_over_all_tokens_that_say_yes(name):
    "Against one plain forward pass over the prompt's text, in every template."
    import torch

    who = CausalRespondent(f"organism/{name}", device="cpu")
    questions = [Question("q", "What is 8 * 7?", ("54", "56", "15"), 1)]
    variants = make_variants(questions, "formats", only="tfq", claims="all")
    for template in ("bare", "li2024"):
        run = evaluate(who, variants, Asking(template), progress=False)
        for prompt, scores in zip(make_prompts(variants, template), run.table["scores"]):
            said = who.tokenizer.apply_chat_template(prompt.messages, add_generation_prompt=True, tokenize=False)
            coded = who.tokenizer(said, add_special_tokens=False, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                p = who.model(coded).logits[0, -1].double().softmax(-1)
            for word, logprob in zip(("yes", "no"), scores):
                spelled = [i for i in range(len(p)) if who.tokenizer.decode([i]).strip().casefold() == word]
                assert spelled and math.exp(logprob) == pytest.approx(float(p[spelled].sum()), rel=1e-3)
