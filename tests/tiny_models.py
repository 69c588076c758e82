"""Tiny causal models with random weights, tokenizers of several kinds, and the plain way to score a text.

For the tests and benchmarks of `likelihood`.
"""

import copy
import os

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers  # noqa: E402

from cora_nb.benchmarks.arithmetic import math_benchmark  # noqa: E402
from cora_nb.core import Question  # noqa: E402
from cora_nb.prompts.templates import make_prompts  # noqa: E402
from cora_nb.respondents.local import Weights  # noqa: E402
from cora_nb.variants.families import make_variants  # noqa: E402

transformers.utils.logging.disable_progress_bar()

OWN = [
    Question("sky", "Which colour has the sky at noon?", ("blue as the sea", "grün", "red", "blue"), answer=3),
    Question(
        "long",
        "Which of these words, said so often that it bores, is right? " * 2,
        ("this", "that one over there"),
        answer=1,
    ),
    Question(
        "odd",
        "Which number is odd, and which of them is said in words?",
        ("two", "three: 3", "12", "twenty-two, or 22", "0"),
        answer=1,
    ),
]
QUESTIONS = [*math_benchmark(n=3), *OWN]
SHOTS = [
    Question(f"shot {i}", q.text, q.choices, q.answer) for i, q in enumerate(math_benchmark(n=3, seed=9))
]  # of no subject: for all
VARIANTS = make_variants(QUESTIONS)
PROMPTS = make_prompts(VARIANTS, template="bare", shots=SHOTS, k=2)


# tokenizers


def texts():
    return [
        f"{p.text} {letter}. {choice}"
        for p in PROMPTS
        for letter, choice in zip("ABCDE", p.variant.choices, strict=False)
    ]


def finished(tokenizer, bos=False, eos=False):
    "With ids 0 and 1 for the beginning and the end of a text, added or not."
    parts = [*(["<s>"] if bos else []), "$A", *(["</s>"] if eos else [])]
    if bos or eos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=" ".join(parts), special_tokens=[("<s>", 0), ("</s>", 1)]
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>" if bos else None, eos_token="</s>"
    )


def trained(tokenizer, size=420, corpus=None, **options):
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<s>", "</s>", "<unk>"], show_progress=False, **options
    )
    tokenizer.train_from_iterator(corpus or texts(), trainer)
    return tokenizer


def byte_level(bos=False, eos=False, size=420, corpus=None):
    "As GPT-2 and Llama 3 spell: the space belongs to the word after it."
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return finished(trained(t, size, corpus, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), bos, eos)


def sentence_piece():
    "As Llama 2 spells: a space before every text, and BOS."
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.pre_tokenizer, t.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    return finished(trained(t), bos=True)


def words():
    "One token for a word; the space is no part of it."
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.train_from_iterator(
        texts(), trainers.WordLevelTrainer(special_tokens=["<s>", "</s>", "<unk>"], show_progress=False)
    )
    return finished(t)


def merging():
    "Knows no words: `: B` may be one token, half context and half choice."
    return finished(trained(Tokenizer(models.BPE(unk_token="<unk>")), max_token_length=5))


TOKENIZERS = {
    "words": words,
    "bytes": byte_level,
    "bytes, BOS": lambda: byte_level(bos=True),
    "bytes, BOS and EOS": lambda: byte_level(bos=True, eos=True),
    "sentence pieces": sentence_piece,
    "merging": merging,
}


# models

SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, bos_token_id=None, eos_token_id=1)
LLAMA = dict(SMALL, intermediate_size=64, num_key_value_heads=1, max_position_embeddings=600, initializer_range=0.2)
GPT2 = dict(n_embd=32, n_layer=2, n_head=2, n_positions=600, bos_token_id=None, eos_token_id=1, initializer_range=0.2)
KINDS = {  # how they know positions, and how far they see
    "llama": lambda n: transformers.LlamaConfig(vocab_size=n, **LLAMA),
    "gpt2": lambda n: transformers.GPT2Config(vocab_size=n, **GPT2),
    "gpt_neox": lambda n: transformers.GPTNeoXConfig(
        vocab_size=n, **{k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}
    ),
    "opt": lambda n: transformers.OPTConfig(
        vocab_size=n,
        hidden_size=32,
        word_embed_proj_dim=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        ffn_dim=64,
        max_position_embeddings=600,
        pad_token_id=1,
        bos_token_id=None,
        eos_token_id=1,
        init_std=0.2,
    ),
    "falcon": lambda n: transformers.FalconConfig(
        vocab_size=n, alibi=False, max_position_embeddings=600, initializer_range=0.2, **SMALL
    ),
    "bloom": lambda n: transformers.BloomConfig(
        vocab_size=n, initializer_range=0.2, **SMALL
    ),  # a slope over the mask, no positions
    "mpt": lambda n: transformers.MptConfig(
        vocab_size=n, d_model=32, n_layers=2, n_heads=2, max_seq_len=600, initializer_range=0.2
    ),
    "mistral": lambda n: transformers.MistralConfig(vocab_size=n, sliding_window=16, **LLAMA),  # sees 16 tokens
    "gemma3": lambda n: transformers.Gemma3TextConfig(
        vocab_size=n, head_dim=16, sliding_window=16, layer_types=["sliding_attention", "full_attention"], **LLAMA
    ),
    "gpt_neo": lambda n: transformers.GPTNeoConfig(
        vocab_size=n,
        hidden_size=32,
        num_layers=2,
        num_heads=2,
        attention_types=[[["global", "local"], 1]],
        window_size=16,
        max_position_embeddings=600,
        bos_token_id=None,
        eos_token_id=1,
        initializer_range=0.2,
    ),
    "phi3": lambda n: transformers.Phi3Config(
        vocab_size=n,
        pad_token_id=0,
        rope_parameters={
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "short_factor": [1.0] * 8,
            "long_factor": [3.0] * 8,
            "factor": 15.0,
        },
        original_max_position_embeddings=40,
        **LLAMA,
    ),  # positions change their meaning in texts of more than 40 tokens
    "mamba": lambda n: transformers.MambaConfig(
        vocab_size=n,
        hidden_size=32,
        num_hidden_layers=2,
        state_size=4,
        bos_token_id=None,
        eos_token_id=1,
        initializer_range=0.2,
    ),  # no attention at all
}


def make_model(kind, n_tokens, seed=0):
    torch.manual_seed(seed)
    return transformers.AutoModelForCausalLM.from_config(KINDS[kind](n_tokens)).eval()


def save(folder, kind="llama", tokenizer=None, seed=0):
    "A model and its tokenizer as a folder."
    tokenizer = tokenizer or byte_level()
    make_model(kind, len(tokenizer), seed).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def own_model(who):
    "The respondent's model as a copy that no other respondent shares: to be damaged."
    who._loaded["weights"] = Weights(copy.deepcopy(who.model))
    return who.model


# the plain way


def plain_split(tokenizer, context, continuation):
    "All tokens, and the first that reaches beyond the context, by the places of characters that the tokenizer gives."
    context, continuation = context.rstrip(), context[len(context.rstrip()) :] + continuation
    coded = tokenizer(context + continuation, return_offsets_mapping=True)
    ids, ends = list(coded["input_ids"]), [end for _, end in coded["offset_mapping"]]
    while ends[-1] == 0:  # an end-of-text token that was added
        ids.pop(), ends.pop()
    return ids, next(i for i, end in enumerate(ends) if end > len(context))


@torch.no_grad()
def plain_logprobs(model, ids, start):
    "Log-probabilities of a text's tokens from `start` on: one text, no cache, no mask."
    logprobs = model(torch.tensor([list(ids[:-1])])).logits[0].double().log_softmax(-1)
    return [logprobs[i - 1, ids[i]].item() for i in range(start, len(ids))]
