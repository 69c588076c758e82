"""Replies that version 0.2 kept: found where nothing else decides them; where something does, it is said why not."""

import json
import shutil
import warnings
from pathlib import Path

import pytest
from architectures import save_architecture
from chat_models import save_chat_model
from helpers import run
from safetensors.torch import load_file, save_file
from tiny_models import torch

import cora_nb as cn
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.likelihood import LikelihoodRespondent
from cora_nb.respondents.local import organism
from cora_nb.respondents.protocol import Reply
from cora_nb.runs.evaluate import plan
from cora_nb.runs.store import Store, StoreWarning, reply_key

KINDS = CausalRespondent, LikelihoodRespondent
VARIANTS = cn.make_variants(cn.load_benchmark("math")[:2])
KEPT = Reply("B", None, 0.9, None, {"prompt_tokens": 7, "completion_tokens": 1})


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(organism("steady"), tmp_path / "model"))


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "replies.sqlite") as made:
        yield made


def filled(store, who, reply=KEPT, asking=cn.Asking()):
    "What 0.2 would have kept for all prompts; how many are different."
    keys = {reply_key(who.older_request(p), p.trial) for p in asking.prompts(VARIANTS)}
    for key in keys:
        store.put(key, reply)
    return len(keys)


def asked(store, who, asking=cn.Asking()):
    "How many replies were found and asked, and what was said of those of before."
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        run = cn.evaluate(who, VARIANTS, asking, store=store, progress=False)
    said = [str(w.message) for w in heard if issubclass(w.category, StoreWarning)]
    return run, run.facts.calls["in_store"], run.facts.calls["asked"], said


def test_they_are_found_and_get_their_new_key(folder, store):
    n = filled(store, CausalRespondent(folder, device="cpu"))
    who = CausalRespondent(folder, device="cpu")
    made, found, new, said = asked(store, who)
    assert (found, new, said) == (n, 0, []) and set(made.table.reply) == {"B"}
    assert len(store) == 2 * n
    assert asked(store, CausalRespondent(folder, device="cpu"))[1:] == (n, 0, []) and len(store) == 2 * n


def test_a_plan_counts_them_and_keeps_none(folder, store):
    who = CausalRespondent(folder, device="cpu")
    n = filled(store, who)
    assert plan(who, VARIANTS, store=store)["in_store"] == n == len(store)
    assert who.weights.model is None  # and loads nothing


def test_a_model_that_is_refused_today_has_none(folder, store):
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {"lm_head.bias": torch.ones(338)}, folder / "model.safetensors", metadata={"format": "pt"})
    filled(store, CausalRespondent(folder, device="cpu"))
    with pytest.raises(cn.CoraError, match="lm_head.bias"):
        asked(store, CausalRespondent(folder, device="cpu"))


def test_a_model_that_fails_says_so_in_one_line(folder, store, monkeypatch):
    who = CausalRespondent(folder, device="cpu")
    filled(store, who)

    def fails(*given):
        raise RuntimeError("CUDA error:\nan illegal memory access")

    monkeypatch.setattr(CausalRespondent, "_step", fails)
    with pytest.raises(cn.CoraError, match="illegal memory access") as e:
        asked(store, CausalRespondent(folder, device="cpu"))
    assert len(str(e.value).splitlines()) == 1


def test_a_model_that_sees_the_padding_has_no_words(tmp_path, store):
    causal, likelihood = (kind(save_architecture(tmp_path / "m", "rwkv"), device="cpu") for kind in KINDS)
    (prompt, *_) = cn.Asking("bare").prompts(VARIANTS)
    assert "padding" in causal.why_not_older(prompt, KEPT)
    assert likelihood.why_not_older(prompt, Reply(scores=(-1.0, -2.0, -3.0, -4.0))) == ""


def test_drawn_replies_keep_their_trials(folder, store):
    who = CausalRespondent(folder, device="cpu", temperature=1.0, seed=2)
    asking = cn.Asking(trials=3)
    prompts = asking.prompts(VARIANTS)
    for p in prompts:
        store.put(reply_key(who.older_request(p), p.trial), Reply(f"B{p.trial}", None, 0.5))
    run, _, new, said = asked(store, who, asking)
    repeated = run.table.duplicated(["question_id", "n_choices", "trial"])  # of equal prompts the first was filled in
    assert said == [] and new < len(prompts) / 2
    first = run.table[~repeated]
    assert all(text == f"B{trial}" for text, trial in zip(first.reply, first.trial, strict=True))


@pytest.mark.parametrize("name", ["README.md", "optimizer.pt", "preprocessor_config.json", "model.gguf"])
def test_a_file_that_decides_nothing_changes_nothing(folder, store, name):
    n = filled(store, CausalRespondent(folder, device="cpu"))
    (folder / name).write_text("{}")
    assert asked(store, CausalRespondent(folder, device="cpu"))[1:] == (n, 0, [])


@pytest.mark.parametrize("name", ["tekken.json", "hf_quant_config.json", "unknown", "chat.tiktoken"])
def test_a_file_that_was_not_counted_is_named(folder, store, name):
    (folder / name).write_text("{}")
    n = filled(store, CausalRespondent(folder, device="cpu"))
    _, found, new, (said,) = asked(store, CausalRespondent(folder, device="cpu"))
    assert (found, new) == (0, n) and str(n) in said and name in said and len(said.splitlines()) == 1


def test_another_tokenizer_is_a_reason(folder, store):
    n = filled(store, CausalRespondent(folder, device="cpu"))
    config = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(config, indent=1))  # the same tokenizer, another file
    _, found, new, said = asked(store, CausalRespondent(folder, device="cpu"))
    assert (found, new, said) == (0, n, [])  # it had another fingerprint then, so nothing was there


def test_marks_that_were_deleted_are_a_reason_for_words_and_not_for_scores(tmp_path, store):
    folder = save_chat_model(tmp_path / "thinking")  # with marks of thoughts among its control tokens
    causal, likelihood = (kind(folder, device="cpu") for kind in (CausalRespondent, LikelihoodRespondent))
    prompts = cn.Asking().prompts(VARIANTS)
    reasons = [
        who.why_not_older(prompts[0], reply)
        for who, reply in ((causal, KEPT), (likelihood, Reply(scores=(-1.0, -2.0, -3.0, -4.0))))
    ]
    assert "was deleted from replies" in reasons[0] and reasons[1] == ""


def test_a_prompt_that_was_cut_unasked_is_asked_again(folder, store):
    scored = Reply(scores=(-1.0, -0.1, -2.0, -3.0), meta={"tokens": [1, 1, 1, 1], "truncated": 3})
    who = LikelihoodRespondent(folder, device="cpu")
    n = len({reply_key(who.older_request(p), 0) for p in cn.Asking().prompts(VARIANTS)})
    for p in cn.Asking().prompts(VARIANTS):
        short = Reply(scores=scored.scores[: p.variant.n_choices], meta=scored.meta)
        store.put(reply_key(who.older_request(p), 0), short)
    _, found, new, (said,) = asked(store, who)
    assert (found, new) == (0, n) and "cut" in said
    run, found, new, said = asked(store, LikelihoodRespondent(folder, device="cpu"), cn.Asking(truncate=True))
    assert (found, new, said) == (n, 0, [])
    assert run.facts.calls["texts_truncated"] == len(run.table)


@pytest.mark.slow
def test_workers_find_them_too(tmp_path):
    pytest.importorskip("distributed", reason="dask is not installed")
    variants = cn.make_variants(cn.load_benchmark("math")[:3])
    with Store(tmp_path / "replies.sqlite") as store:
        who = CausalRespondent("organism/steady", device="cpu")
        for p in cn.Asking().prompts(variants):
            store.put(reply_key(who.older_request(p), p.trial), KEPT)
    words = ("cora_run", "causal:organism/steady,device=cpu", "--limit", "3", "--workers", "2", "--out", "runs")
    code, out, errors = run(*words, "--store", tmp_path / "replies.sqlite", cwd=tmp_path)
    assert code == 0, errors
    found = cn.read_responses(tmp_path / "runs/math/steady")
    assert found.facts.calls["asked"] == 0 and set(found.table.reply) == {"B"}


def test_a_question_that_spells_a_control_token_is_asked_again(folder):
    odd = cn.Question("s", "Which tag?", ("</s>", "12", "15", "87"), 1)
    who = CausalRespondent(folder, device="cpu")
    (prompt,) = cn.Asking().prompts(cn.make_variants([odd], family="cyclic")[:1])
    assert who.older_request(prompt) is None and "</s>" in who.request(prompt)["spelled"]


def test_an_empty_store_costs_nothing(folder, store, monkeypatch):
    "And so does one in which everything is found."
    who = CausalRespondent(folder, device="cpu")
    asked(store, who)
    monkeypatch.setattr(CausalRespondent, "older_request", lambda *given: pytest.fail("nothing is missing"))
    assert asked(store, CausalRespondent(folder, device="cpu"))[2] == 0
    with Store(Path(store.path).with_name("empty.sqlite")) as empty:
        asked(empty, CausalRespondent(folder, device="cpu"))


def test_the_hash_of_a_large_file_is_looked_up(folder, tmp_path, monkeypatch):
    "As 0.2 kept it in the cache folder. Without it the fingerprint of before is not known, and nothing is found."
    from cora_nb.respondents import checkpoints

    before = checkpoints.older_fingerprint(folder, tmp_path)
    weights = (folder / "model.safetensors").resolve()
    monkeypatch.setattr(checkpoints, "_WHOLE", 2**20)
    assert weights.stat().st_size > 2**20
    assert checkpoints.older_fingerprint(folder, tmp_path) is None
    import hashlib

    stat = weights.stat()
    kept = {
        "file": [str(weights), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns],
        "sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
    }
    note = tmp_path / f"{hashlib.sha256(str(weights).encode()).hexdigest()}.json"
    note.write_text(json.dumps(kept))
    assert checkpoints.older_fingerprint(folder, tmp_path) == before
    for broken in ("", "{", "[]", '{"file": 1}', '{"file": null, "sha256": "zz"}'):
        note.write_text(broken)
        assert checkpoints.older_fingerprint(folder, tmp_path) is None
