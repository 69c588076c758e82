"""The causal respondent against plain transformers: same tokens, whatever the batch; and what can go wrong."""

import json
import math
import os
import pickle
import shutil
import struct
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import LETTERS, CoraError, Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents import causal
from cora_nb.respondents.protocol import Respondent, ask, stream
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.checkpoints import folder_fingerprint
from cora_nb.variants.families import make_variants

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
import safetensors.torch  # noqa: E402
from tiny_models import own_model  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers  # noqa: E402
from helpers import slow_after  # noqa: E402

QUESTIONS = [
    *math_benchmark(n=8),
    Question(
        "long", "Which of these words, said so often that it bores, is right? " * 3, ("this", "that", "those"), answer=1
    ),
]
VARIANTS = make_variants(QUESTIONS)[::3]
PROMPTS = make_prompts(VARIANTS, template="bare")
CHAT = "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]{{ suffix }}"


class Loud:
    "Its pickle writes a file when it is read."

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def bpe_tokenizer():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    texts = [f"{p.text} {letter}" for p in PROMPTS for letter in "ABCD"]
    t.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=320,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=["<s>", "</s>"],
            show_progress=False,
        ),
    )
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<s>", eos_token="</s>")


def word_tokenizer(letters="ABCD"):
    words = {
        "[UNK]": 0,
        "</s>": 1,
        **{
            w: i
            for i, w in enumerate(
                [
                    *letters,
                    *"Question:.?",
                    "What",
                    "is",
                    "Answer",
                    "+",
                    "None",
                    "of",
                    "the",
                    "above",
                    *map(str, range(210)),
                ],
                2,
            )
        },
    }
    t = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=t, unk_token="[UNK]", eos_token="</s>")


SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, bos_token_id=None, eos_token_id=1)
KINDS = {  # positions: rotary, learned, only a slope over the mask, other ones in long texts; and no attention at all
    "llama": lambda n: transformers.LlamaConfig(
        vocab_size=n, intermediate_size=64, max_position_embeddings=400, initializer_range=0.5, **SMALL
    ),
    "gpt2": lambda n: transformers.GPT2Config(
        vocab_size=n,
        n_embd=32,
        n_layer=2,
        n_head=2,
        n_positions=400,
        bos_token_id=None,
        eos_token_id=1,
        initializer_range=0.3,
    ),
    "bloom": lambda n: transformers.BloomConfig(vocab_size=n, initializer_range=0.5, **SMALL),
    "phi3": lambda n: transformers.Phi3Config(
        vocab_size=n,
        pad_token_id=0,
        intermediate_size=64,
        max_position_embeddings=400,
        original_max_position_embeddings=100,
        initializer_range=0.5,
        rope_parameters={
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "short_factor": [1.0] * 8,
            "long_factor": [9.0] * 8,
            "factor": 4.0,
        },
        **SMALL,
    ),
    "mistral": lambda n: transformers.MistralConfig(  # sees 60 places back, padding included
        vocab_size=n,
        intermediate_size=64,
        num_key_value_heads=1,
        max_position_embeddings=400,
        sliding_window=60,
        initializer_range=0.5,
        **SMALL,
    ),
    "mamba": lambda n: transformers.MambaConfig(
        vocab_size=n, hidden_size=32, num_hidden_layers=2, state_size=4, eos_token_id=1, initializer_range=0.5
    ),
}


def save(folder, kind="llama", tokenizer=None, chat=False, seed=0):
    tokenizer = tokenizer or bpe_tokenizer()
    if chat:
        tokenizer.chat_template = CHAT
    torch.manual_seed(seed)
    transformers.AutoModelForCausalLM.from_config(KINDS[kind](len(tokenizer))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    transformers.utils.logging.disable_progress_bar()
    made = {kind: save(root / kind, kind) for kind in KINDS}
    return made | {"words": save(root / "words", tokenizer=word_tokenizer()), "chat": save(root / "chat", chat=True)}


def respondent(folder, **options):
    return CausalRespondent(folder, **{"device": "cpu", "max_new_tokens": 1, **options})


@pytest.fixture
def llama(folders):
    return respondent(folders["llama"])


def texts(replies):
    assert all(r.error is None for r in replies)
    return [r.text for r in replies]


def plain_logprobs(who, prompt, chat=False):
    "One prompt, no padding, no options."
    if chat:
        text = who.tokenizer.apply_chat_template(prompt.messages, tokenize=False, add_generation_prompt=True)
        ids = who.tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    else:
        ids = who.tokenizer(prompt.text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        return ids, who.model(ids).logits[0, -1].log_softmax(-1)


# the same as plain transformers


@pytest.mark.parametrize("kind", ["llama", "gpt2", "bloom", "mamba", "words", "chat"])
def test_first_token_is_that_of_a_plain_forward_pass(folders, kind):
    who = respondent(folders[kind])
    replies = ask(who, PROMPTS)
    assert len(set(texts(replies))) > 1
    for prompt, reply in zip(PROMPTS, replies):
        ids, logprobs = plain_logprobs(who, prompt, kind == "chat")
        best = int(logprobs.argmax())
        assert reply.text == who.tokenizer.decode([best], skip_special_tokens=True)
        assert reply.confidence == pytest.approx(float(logprobs[best].exp()), rel=1e-3)
        assert reply.meta in (
            meta := {"prompt_tokens": ids.shape[1], "completion_tokens": 1},
            meta | {"finish_reason": "length"},
        )
        for letter, score in zip(LETTERS, reply.scores, strict=False):
            spelled = [i for t, i in who.tokenizer.get_vocab().items() if t in (letter, f"Ġ{letter}")]
            assert len(spelled) == (1 if kind == "words" else 2)
            assert score == pytest.approx(math.log(sum(math.exp(logprobs[i]) for i in spelled)), abs=1e-3)
        assert len(reply.scores) == prompt.variant.n_choices


def generated(who, prompt, chat, n):
    ids, _ = plain_logprobs(who, prompt, chat)
    return who.model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=n, pad_token_id=1
    )[0, ids.shape[1] :].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "gpt2", "bloom", "mamba", "chat"])
def test_short_generation_is_that_of_generate(folders, kind):
    "Greedy, six tokens; tokens the model likes are declared to end a reply, so that rows stop at different steps."
    who, chat, some = respondent(folders[kind], max_new_tokens=6), kind == "chat", slice(None, None, 5)
    who.model.generation_config.eos_token_id = sorted(
        {1, *(said[i % 4 + 1] for i, p in enumerate(PROMPTS[some]) if len(said := generated(who, p, chat, 6)) == 6)}
    )
    lengths, ends = set(), who.model.generation_config.eos_token_id
    for prompt, reply in zip(PROMPTS[some], ask(who, PROMPTS)[some]):
        said = generated(who, prompt, chat, 6)
        kept = said[:-1] if said[-1] in ends else said  # what ends a reply is no part of it
        assert reply.text == who.tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        assert reply.meta["completion_tokens"] == len(said)
        lengths.add(len(said))
    assert len(lengths) > 1


@torch.no_grad()
def test_confidence_is_the_probability_of_the_whole_reply(folders):
    who = respondent(folders["llama"], max_new_tokens=3)
    prompt, reply = PROMPTS[0], ask(who, PROMPTS[:1])[0]
    ids, _ = plain_logprobs(who, prompt)
    total = 1.0
    for _ in range(3):
        logprobs = who.model(ids).logits[0, -1].log_softmax(-1)
        total *= float(logprobs.max().exp())
        ids = torch.cat([ids, logprobs.argmax()[None, None]], 1)
    assert reply.confidence == pytest.approx(total, rel=1e-3)


def test_the_cache_spares_reading_twice(folders, monkeypatch):
    who = respondent(folders["llama"], max_new_tokens=4)
    sizes = spy(who, monkeypatch)
    ask(who, PROMPTS[:1])
    assert [width for _, width in sizes] == [len(who.encode(PROMPTS[0].text)), 1, 1, 1]


def test_end_at_once_is_an_empty_reply(folders):
    who = respondent(folders["llama"], max_new_tokens=4)
    who.model.generation_config.eos_token_id = list(range(who.model.config.vocab_size))
    reply = ask(who, PROMPTS[:1])[0]
    assert reply.meta["completion_tokens"] == 1 and reply.error is None and reply.confidence < 1


# whoever else is in the batch


@pytest.mark.parametrize("kind", slow_after(2, ["llama", "gpt2", "bloom", "mamba", "mistral", "phi3", "words", "chat"]))
@pytest.mark.parametrize("new", [1, 4])
def test_batches_do_not_matter(folders, kind, new):
    large = ask(respondent(folders[kind], max_new_tokens=new), PROMPTS)
    for size in (1, 300):
        small = ask(respondent(folders[kind], max_new_tokens=new, batch_tokens=size), PROMPTS)
        assert texts(small) == texts(large)
        assert max(abs(x - y) for a, b in zip(small, large) for x, y in zip(a.scores, b.scores)) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("new", [1, 4])
def test_drawn_replies_depend_on_text_trial_and_seed_alone(folders, new):
    who = respondent(folders["llama"], max_new_tokens=new, temperature=1.0)
    prompts = make_prompts(VARIANTS[:30], template="bare", trials=3)
    whole = texts(ask(who, prompts))
    assert texts(ask(replace(who, batch_tokens=1), prompts[::-1])) == whole[::-1]
    assert texts(ask(who, prompts[10:20])) == whole[10:20]
    assert whole[::3] != whole[1::3] != whole[2::3]
    assert texts(ask(replace(who, seed=1), prompts)) != whole
    assert texts(ask(replace(who, temperature=1e-9), prompts)) == texts(ask(replace(who, temperature=0), prompts))


def test_the_length_limit_does_not_change_what_is_drawn(folders):
    "Word tokens, since half a character at a text's end is shown differently from a whole one."
    who = respondent(folders["words"], max_new_tokens=5, temperature=1.0)
    long, short = texts(ask(who, PROMPTS)), texts(ask(replace(who, max_new_tokens=2), PROMPTS))
    assert all(x.startswith(y) for x, y in zip(long, short)) and long != short


@given(st.lists(st.floats(-20, 20), min_size=2, max_size=8), st.floats(0.1, 3))
@settings(max_examples=50)
def test_draws_follow_the_probabilities(logits, temperature):
    "A thousand evenly spaced numbers hit every token as often as its probability says, give or take one."
    u = (torch.arange(1000, dtype=torch.float64) + 0.5) / 1000
    block = torch.tensor(logits).expand(1000, -1)
    shares = (torch.tensor(logits).double() / temperature).softmax(-1)
    hits = torch.bincount(causal._choose_tokens(block, temperature, u), minlength=len(logits))
    assert (hits - shares * 1000).abs().max() <= 1.01


@pytest.mark.parametrize("u", [0.0, 1 - 2**-53])
def test_the_ends_of_the_unit_interval_draw_possible_tokens(u):
    logits = torch.tensor([[-math.inf, 0.0, 1.0, -math.inf]])
    assert int(causal._choose_tokens(logits, 0.7, torch.tensor([u], dtype=torch.float64))) == (1 if u == 0 else 2)


# what all prompts of a batch begin with

SHORT = [p for p in make_prompts(VARIANTS, template="cora") if p.variant.question_id != "long"]
BRIEF = [p for p in PROMPTS if p.variant.question_id != "long"]


@pytest.mark.parametrize("kind", slow_after(3, ["llama", "gpt2", "bloom", "mistral", "phi3", "chat"]))
@pytest.mark.parametrize("new", [1, 4])
def test_a_common_start_is_computed_once_and_changes_nothing(folders, kind, new, monkeypatch):
    "Texts of many lengths, so that padding lies between the start and the rest."
    prompts = BRIEF if kind in ("mistral", "phi3") else SHORT  # the others are beyond their limits
    who = respondent(folders[kind], max_new_tokens=new)
    spared = spy_starts(who, monkeypatch)
    shared = ask(who, prompts)
    monkeypatch.setattr(CausalRespondent, "_common", lambda self, rows: 0)
    whole = ask(respondent(folders[kind], max_new_tokens=new), prompts)
    assert any(start for _, start in spared) and texts(shared) == texts(whole)
    assert [r.meta for r in shared] == [r.meta for r in whole]
    assert max(abs(x - y) for a, b in zip(shared, whole) for x, y in zip(a.scores, b.scores)) < 1e-3
    assert max(abs(a.confidence - b.confidence) for a, b in zip(shared, whole)) < 1e-4


def spy_starts(who, monkeypatch):
    "The longest text of each batch and how many of its tokens were computed once."
    seen, begin = [], causal._begin_batch

    def watched(model, texts, start):
        if model is who.model and len(texts) > 3:  # the test of the model has three
            seen.append((max(map(len, texts)), start))
        return begin(model, texts, start)

    monkeypatch.setattr(causal, "_begin_batch", watched)
    return seen


@pytest.mark.parametrize("kind, limit", [("mistral", 60), ("phi3", 100)])
def test_where_the_padding_or_the_length_would_matter_prompts_are_computed_whole(folders, kind, limit, monkeypatch):
    who = respondent(folders[kind], max_new_tokens=3)
    seen = spy_starts(who, monkeypatch)
    ask(who, [*PROMPTS, *SHORT])
    assert any(n + 2 > limit for n, _ in seen) and any(start for _, start in seen)
    assert all(start == 0 for n, start in seen if n + 2 > limit)


def test_a_model_without_keys_and_values_computes_prompts_whole(folders, monkeypatch):
    who = respondent(folders["mamba"])
    seen = spy_starts(who, monkeypatch)
    ask(who, SHORT)
    assert seen and not any(start for _, start in seen) and not who._start_agrees()


def test_a_model_that_gets_other_numbers_computes_prompts_whole(folders, monkeypatch):
    "An architecture that counts positions from what it is given, whatever it is told."
    who = respondent(folders["llama"])
    forward = who.model.model.forward

    def deaf(**inputs):
        return forward(**{k: v for k, v in inputs.items() if k != "position_ids"})

    monkeypatch.setattr(who.model.model, "forward", deaf)
    seen = spy_starts(who, monkeypatch)
    ask(who, SHORT)
    assert seen and not any(start for _, start in seen)


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=5))
@settings(max_examples=60)
def test_the_common_start_leaves_something_of_each(some):
    n = causal._shared_start(some)
    assert all(t[:n] == some[0][:n] for t in some) and n < min(map(len, some))
    assert n + 1 == min(map(len, some)) or len({t[n] for t in some}) > 1


def test_every_prompt_gets_one_reply_in_portions(llama, monkeypatch):
    whole = texts(ask(llama, PROMPTS))
    monkeypatch.setattr(causal, "_PORTION", 7)
    seen = []
    stream(llama, PROMPTS, lambda position, reply: seen.append(position))
    assert texts(ask(llama, PROMPTS)) == whole
    assert sorted(seen) == list(range(len(PROMPTS))) and ask(llama, []) == []


def test_longest_first(llama, monkeypatch):
    ask(llama, PROMPTS)  # the test of the model is over
    sizes, llama._room = spy(llama, monkeypatch), 200
    ask(llama, PROMPTS)
    widths = [w for _, w in sizes]
    assert (
        widths == sorted(widths, reverse=True)
        and all(n * w <= 200 or n == 1 for n, w in sizes)
        and sum(n for n, _ in sizes) == len(PROMPTS)
    )


def spy(who, monkeypatch, fail=lambda n, width: None):
    "Shapes of the batches, their common start included; 1 wide from the second step on. `fail` may give an exception."
    sizes, forward = [], who.model.forward

    def watched(**inputs):
        n, width = inputs["input_ids"].shape
        width += inputs["attention_mask"].shape[1] - width if width > 1 else 0
        if e := fail(n, width):
            raise e
        sizes.append((n, width))
        return forward(**inputs)

    monkeypatch.setattr(who.model, "forward", watched)
    return sizes


# text and special tokens


def test_chat_template_on_and_off(folders):
    on, off = respondent(folders["chat"]), respondent(folders["chat"], chat=False)
    prompt = PROMPTS[0]
    assert on.uses_chat and not off.uses_chat and not respondent(folders["llama"]).uses_chat
    assert on.sent(prompt) == f"<s>[user] {prompt.text}\n[assistant]" and off.sent(prompt) == prompt.text
    assert on.encode(on.sent(prompt)).count(0) == off.encode(off.sent(prompt)).count(0) == 1
    assert on.request(prompt) != off.request(prompt) and texts(ask(on, PROMPTS)) != texts(ask(off, PROMPTS))
    assert replace(on, chat_options={"suffix": "!"}).sent(prompt).endswith("[assistant]!")
    with pytest.raises(CoraError, match="chat=True needs a chat template"):
        ask(respondent(folders["words"], chat=True), PROMPTS)


def test_a_template_that_refuses(folders):
    who = respondent(folders["chat"])
    who.tokenizer.chat_template = "{{ raise_exception('no such role') }}"
    with pytest.raises(CoraError, match="chat template refuses the prompt .no such role"):
        ask(who, PROMPTS)


def test_no_end_of_text_before_the_reply(folders):
    who = respondent(folders["llama"])
    expected = who.encode("Answer:")
    who.tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    assert who.tokenizer("Answer:")["input_ids"][-1] == 1 and who.encode("Answer:") == expected


def test_letters_without_a_token_give_no_scores(tmp_path):
    who = respondent(save(tmp_path / "m", tokenizer=word_tokenizer("AB")))
    for prompt, reply in zip(PROMPTS, ask(who, PROMPTS)):
        assert (reply.scores is None) == (prompt.variant.n_choices > 2) and reply.confidence > 0


# one address for one reply


def test_the_address(folders, tmp_path):
    who, prompt = respondent(folders["llama"]), PROMPTS[0]
    asked = who.request(prompt)
    assert (
        isinstance(who, Respondent)
        and json.loads(json.dumps(asked)) == asked
        and json.loads(json.dumps(who.describe())) == who.describe()
    )
    copy = shutil.copytree(folders["llama"], tmp_path / "elsewhere" / "llama")
    for same in (dict(batch_tokens=9), dict(device="cpu"), dict(seed=3), dict(name="x"), dict(path=copy)):
        assert replace(who, **same).request(prompt) == asked
    for other in (dict(max_new_tokens=2), dict(temperature=0.5), dict(dtype="bfloat16"), dict(path=folders["gpt2"])):
        assert replace(who, **other).request(prompt) != asked
    assert replace(who, temperature=1, seed=1).request(prompt) != replace(who, temperature=1, seed=2).request(prompt)
    assert who.request(PROMPTS[1]) != asked
    assert "weights" not in who._loaded  # an address costs no weights in memory


def test_other_weights_have_another_fingerprint(folders, tmp_path):
    copy = shutil.copytree(folders["llama"], tmp_path / "llama")
    before = folder_fingerprint(copy)
    assert before == folder_fingerprint(folders["llama"])
    save(copy, seed=1)
    assert folder_fingerprint(copy) != before
    (copy / "README.md").write_text("nothing")
    after = folder_fingerprint(copy)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"rms_norm_eps": 0.1}))
    assert folder_fingerprint(copy) != after


def test_every_byte_below_a_limit_counts_and_every_block_above_it(tmp_path, monkeypatch):
    "Weights of 4 MiB in two tensors: read whole, and as a file that is too large for that."
    folder, tensors = tmp_path / "m", {n: torch.zeros(2**19) for n in ("a", "b")}
    folder.mkdir()
    (folder / "config.json").write_text("{}")

    def changed(where, value):
        safetensors.torch.save_file(tensors, folder / "model.safetensors")
        with open(folder / "model.safetensors", "r+b") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            file.seek(8 + size + where)
            file.write(value)
        return folder_fingerprint(folder)

    same = changed(0, b"\0")
    for where in (0, 2_345_678, 2**22 - 1):
        assert changed(where, b"x") != same
    monkeypatch.setattr("cora_nb.respondents.checkpoints._WHOLE", 2**20)
    large = changed(0, b"\0")
    assert large == changed(0, b"\0") and large == folder_fingerprint(shutil.copytree(folder, tmp_path / "copy"))
    block = 2**12
    seen = [0, block - 1, 2**21 - 1, 2**21, 2**22 - block, 2**22 - 1]  # the beginning and the end of each tensor
    assert all(changed(where, b"x") != large for where in seen)
    tensors = {n: t + 0.5 for n, t in tensors.items()}
    assert changed(9, b"") != large
    tensors = {"a": torch.zeros(2**19), "c": torch.zeros(2**19)}
    assert changed(0, b"") != large  # another name
    (folder / "model.safetensors").write_bytes(bytes(2**21))  # no safetensors
    assert folder_fingerprint(folder) != large


@pytest.mark.parametrize("width", [512, 1024, 1536, 2048, 4096])
def test_half_the_columns_of_a_large_matrix_count(tmp_path, monkeypatch, width):
    "Also where a row is a part of a MiB, so that the same place in each MiB would be the same column."
    monkeypatch.setattr("cora_nb.respondents.checkpoints._WHOLE", 2**20)
    (tmp_path / "config.json").write_text("{}")
    matrix, seen = torch.zeros(2**22 // width, width), set()  # 16 MiB
    for columns in (slice(0, 0), slice(0, width // 2), slice(width // 4, 3 * width // 4), slice(width // 2, width)):
        changed = matrix.clone()
        changed[:, columns] = 1
        safetensors.torch.save_file({"a": changed}, tmp_path / "model.safetensors")
        seen.add(folder_fingerprint(tmp_path))
    assert len(seen) == 4


@pytest.mark.slow
def test_a_model_of_the_hub_is_known_by_its_commit(folders, tmp_path, monkeypatch):
    "A cache as the hub's client keeps it; no network."
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    root = tmp_path / "models--some--llama"
    for commit, kind in (("a" * 40, "llama"), ("b" * 40, "words")):
        shutil.copytree(folders[kind], root / "snapshots" / commit)
    for ref, commit in (("main", "a" * 40), ("dev", "b" * 40)):
        (root / "refs").mkdir(exist_ok=True)
        (root / "refs" / ref).write_text(commit)
    who = CausalRespondent("some/llama", max_new_tokens=1, device="cpu")
    assert (who.name, who.fingerprint) == ("llama", "a" * 40)
    dev = replace(who, revision="dev")
    assert dev.fingerprint == "b" * 40 and dev.request(PROMPTS[0]) != who.request(PROMPTS[0])
    (root / "refs" / "main").write_text("b" * 40)  # main moves on before the weights are read: what was found stays
    assert texts(ask(who, PROMPTS)) == texts(ask(respondent(folders["llama"]), PROMPTS)) and who.fingerprint == "a" * 40
    assert CausalRespondent("some/llama", device="cpu").fingerprint == "b" * 40
    with pytest.raises(CoraError, match="some/other: no folder of this name, and no model from the hub") as e:
        ask(CausalRespondent("some/other"), PROMPTS)
    assert "\n" not in str(e.value)


@pytest.mark.slow
def test_dtype(folders):
    import numpy as np

    half = respondent(folders["llama"], dtype=torch.bfloat16)
    assert half.request(PROMPTS[0])["dtype"] == "bfloat16" and respondent(folders["llama"]).place == ("cpu", "float32")
    assert next(half.model.parameters()).dtype == torch.bfloat16
    exact = ask(respondent(folders["llama"], dtype="float64"), PROMPTS[:20])
    for reply, other in zip(ask(respondent(folders["llama"]), PROMPTS[:20]), exact):
        np.testing.assert_allclose(reply.scores, other.scores, atol=1e-3)
    assert all(r.error is None for r in ask(half, PROMPTS[:20]))


# what goes wrong


@pytest.mark.parametrize(
    "raised",
    slow_after(
        1,
        [
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"),
            RuntimeError("MPS backend out of memory"),
            MemoryError(),
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        ],
    ),
)
def test_smaller_batches_when_memory_runs_out(llama, monkeypatch, raised):
    expected = texts(ask(llama, PROMPTS))
    tried = []
    sizes = spy(llama, monkeypatch, lambda n, width: tried.append(n) or (raised if n * width > 400 else None))
    assert texts(ask(llama, PROMPTS)) == expected
    fitted = next(i for i, n in enumerate(tried) if n == sizes[0][0])
    assert fitted > 2 and all(b == a // 2 for a, b in zip(tried[:fitted], tried[1 : fitted + 1]))
    assert len(tried) == len(sizes) + fitted  # once it fits, it goes on fitting
    tried.clear(), sizes.clear()
    assert texts(ask(llama, PROMPTS)) == expected and len(tried) == len(sizes)  # and the next call remembers


@pytest.mark.slow
def test_memory_that_runs_out_in_the_middle_of_a_reply(folders, monkeypatch):
    "The second attempt starts from the beginning."
    who = respondent(folders["llama"], max_new_tokens=4)
    expected = ask(who, PROMPTS)
    spy(
        who,
        monkeypatch,
        lambda n, width: torch.OutOfMemoryError("CUDA out of memory") if width == 1 and n > 20 else None,
    )
    replies = ask(who, PROMPTS)
    assert texts(replies) == texts(expected) and [r.meta for r in replies] == [r.meta for r in expected]


@pytest.mark.slow
def test_memory_for_not_even_one(llama, monkeypatch):
    n_tokens = [len(llama.encode(p.text)) for p in PROMPTS]
    limit = sorted(n_tokens)[-5]
    spy(
        llama,
        monkeypatch,
        lambda n, width: torch.OutOfMemoryError("CUDA out of memory") if width > limit or n > 4 else None,
    )
    replies = ask(llama, PROMPTS)
    for n, reply in zip(n_tokens, replies):
        assert (
            (reply.error == f"memory ran out with this prompt of {n} tokens alone")
            if n > limit
            else reply.error is None
        )
    assert 0 < sum(r.error is not None for r in replies) <= 4


def test_other_failures_are_not_taken_for_memory(llama, monkeypatch):
    spy(llama, monkeypatch, lambda n, width: RuntimeError("shapes do not match"))
    with pytest.raises(CoraError, match="shapes do not match") as e:
        ask(llama, PROMPTS)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("new", [1, 3])
def test_nan_stops_and_names_the_question(folders, new):
    who = respondent(folders["llama"], max_new_tokens=new)
    with torch.no_grad():
        own_model(who).lm_head.weight[7, 0] = math.nan
    with pytest.raises(CoraError, match=r"output for question '.+' is not a number \(NaN\)"):
        ask(who, PROMPTS)


@pytest.mark.parametrize("new", [1, 5])
def test_the_window_is_a_sharp_limit(folders, new):
    who = respondent(folders["llama"], max_new_tokens=new)
    n = max(len(who.encode(p.text)) for p in PROMPTS)
    expected = texts(ask(who, PROMPTS))
    own_model(who).config.max_position_embeddings = n + new - 1
    assert texts(ask(who, PROMPTS)) == expected
    who.model.config.max_position_embeddings -= 1
    replies = ask(who, PROMPTS)
    errors = [r.error for r in replies if r.error]
    assert errors and all(
        e.startswith(f"the prompt is too long: {n} tokens") and f"window is {n + new - 2};" in e for e in errors
    )
    assert [r.text for r in replies if not r.error] == [t for t, r in zip(expected, replies) if not r.error]


@pytest.mark.slow
def test_windows_of_other_architectures(folders):
    assert respondent(folders["gpt2"]).window == 400 and respondent(folders["bloom"]).window is None


def test_text_that_is_none(llama):
    bad = Question("half", "What is \ud83d?", ("x", "y"), answer=0)
    replies = ask(llama, [*make_prompts(make_variants([bad])[:1]), *PROMPTS[:2]])
    assert replies[0].error.startswith("the prompt is not valid text") and texts(replies[1:]) == texts(
        ask(llama, PROMPTS[:2])
    )


def refused(folder, why, **options):
    with pytest.raises(CoraError, match=why) as e:
        ask(respondent(folder, **options), PROMPTS[:1])
    assert "\n" not in str(e.value)


@pytest.mark.slow
def test_folders_that_are_no_model(folders, tmp_path):
    from safetensors.torch import load_file, save_file

    refused(tmp_path, "not a model's folder, there is no config.json in it")
    refused(tmp_path / "none", "there is no such folder")
    refused("./none", "there is no such folder")

    def copy(name):
        return shutil.copytree(folders["llama"], tmp_path / name)

    (copy("a") / "tokenizer.json").unlink()
    refused(tmp_path / "a", "the tokenizer cannot be loaded")
    (copy("b") / "model.safetensors").write_bytes(b"not weights")
    refused(tmp_path / "b", "the model cannot be loaded")
    (copy("c") / "config.json").write_text("{")
    refused(tmp_path / "c", "cannot be loaded")
    weights = load_file(copy("d") / "model.safetensors")
    weights.pop("model.layers.1.mlp.up_proj.weight")
    save_file(weights, tmp_path / "d" / "model.safetensors", {"format": "pt"})
    refused(
        tmp_path / "d",
        r"1 of the model's weights are missing or of another shape, such as model.layers.1.mlp.up_proj.weight",
    )
    (copy("e") / "model.safetensors").unlink()
    torch.save(weights, tmp_path / "e" / "pytorch_model.bin")  # read, as tensors only
    refused(tmp_path / "e", r"1 of the model's weights are missing")
    (copy("g") / "model.safetensors").unlink()
    (tmp_path / "g" / "pytorch_model.bin").write_bytes(pickle.dumps(Loud(tmp_path / "ran")))
    refused(tmp_path / "g", "the model cannot be loaded")
    assert not (tmp_path / "ran").exists()  # a pickle may name any function; none is called
    transformers.T5Config(vocab_size=50, d_model=8).save_pretrained(copy("f"))
    refused(tmp_path / "f", "no model that continues texts")  # an encoder-decoder goes on from nothing


def test_code_that_comes_with_a_model_is_not_run(folders, tmp_path):
    folder = shutil.copytree(folders["llama"], tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.C", "AutoModelForCausalLM": "mine.M"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    refused(folder, "cannot be loaded .*custom code")
    assert not (tmp_path / "ran").exists()


def test_a_tokenizer_of_another_model(folders, tmp_path):
    folder = save(tmp_path / "m", tokenizer=word_tokenizer())
    for file in folders["llama"].glob("tokenizer*"):
        shutil.copy(file, folder)
    refused(folder, "its tokenizer gives token .* they do not belong together")


@pytest.mark.parametrize(
    "field,value,why",
    [
        ("path", "", "path must name a model"),
        ("max_new_tokens", 0, "max_new_tokens must be a whole number"),
        ("batch_tokens", 1.5, "batch_tokens must be"),
        ("temperature", -0.1, "temperature must be at least 0"),
        ("temperature", math.nan, "temperature must be"),
        ("temperature", "0", "temperature must be"),
        ("chat", "yes", "chat must be True, False or None"),
        ("dtype", "int8", "dtype must be one of float32"),
    ],
)
def test_bad_parameters(field, value, why):
    with pytest.raises(CoraError, match=why):
        CausalRespondent(**{"path": "x", field: value})


def test_a_device_that_is_not_there(folders):
    refused(folders["llama"], "device must be such as cpu, cuda:1 or mps, got .abacus.", device="abacus")


def test_import_is_light():
    heavy = {"torch", "transformers", "tokenizers", "huggingface_hub"}
    code = "import sys, cora_nb.respondents.causal as c; c.CausalRespondent('x');"
    code += f" print({heavy} & set(sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "set()"
    )


def test_without_torch(folders, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(CoraError, match=r"needs torch and transformers: pip install 'cora_nb\[local\]'"):
        respondent(folders["llama"]).place


@pytest.mark.slow
def test_room_for_several_letters(llama):
    "Prompts that allow several letters get room for them, those beside them do not; alone or together is the same."
    several = [replace(p, variant=replace(p.variant, form="several")) for p in PROMPTS[:4]]
    mixed = [p for pair in zip(several, PROMPTS[4:8]) for p in pair]
    together = ask(llama, mixed)
    lengths = [r.meta["completion_tokens"] for r in together]
    assert (
        lengths[1::2] == [1] * 4
        and all(n <= 3 * p.variant.n_choices for n, p in zip(lengths[::2], several))
        and max(lengths) > 1
    )
    assert texts(together) == [texts(ask(llama, [p]))[0] for p in mixed]
    assert (
        llama.request(several[0])["max_new_tokens"] == 3 * several[0].variant.n_choices
        and llama.request(PROMPTS[4])["max_new_tokens"] == 1
    )


def test_room_that_the_window_does_not_have_is_not_asked_for(folders):
    "A rule that wants more room than there is made every prompt too long."
    roomy = respondent(folders["llama"], max_new_tokens=None)
    tight = replace(PROMPTS[0], room=10 * roomy.window)
    (reply,) = ask(roomy, [tight])
    assert reply.error is None and reply.meta["completion_tokens"] <= roomy.window
    (refused,) = ask(respondent(folders["llama"], max_new_tokens=10 * roomy.window), [tight])
    assert "too long" in refused.error


def test_a_template_that_writes_the_date_asks_the_same_tomorrow(tmp_path):
    "Templates of Llama 3.2 and others write today's date (case data/15)."
    who = CausalRespondent(str(save(tmp_path / "dated", chat=True)))
    who.tokenizer.chat_template = "{{ strftime_now('%d %b %Y, %H:%M:%S') }}{{ messages[0].content }}"
    assert who.sent(PROMPTS[0]).startswith("26 Jul 2024" + PROMPTS[0].messages[0]["content"][:5])
