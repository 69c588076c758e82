"""A Llama with random weights and a tokenizer trained on the texts, for benchmarks that measure time and tokens."""

from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 2048


def train_tokenizer(folder: Path, texts: list[str], vocabulary: int = VOCABULARY) -> None:
    "A byte-level BPE tokenizer, saved into a folder; token 0 ends a text."
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocabulary,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=["</s>"],
            show_progress=False,
        ),
    )
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>").save_pretrained(folder)


def make_llama(
    folder: Path,
    shape: tuple[int, ...],  # hidden, intermediate, layers, heads, and heads of keys and values if they are fewer
    vocabulary: int = VOCABULARY,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",  # where the weights are drawn: for billions of them, a GPU takes seconds
    **more: object,  # other fields of `LlamaConfig`
) -> int:  # parameters
    "A model with random weights, saved into a folder."
    hidden, inner, layers, heads, *keys = shape
    usual = {"max_position_embeddings": 8192, "tie_word_embeddings": True, "initializer_range": 0.05}
    config = transformers.LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=keys[0] if keys else heads,
        bos_token_id=None,
        eos_token_id=0,
        dtype=dtype,
        **(usual | more),
    )
    torch.manual_seed(0)
    torch.set_default_dtype(dtype)  # 8 billion parameters in float32 would take twice the room
    try:
        with torch.device(device):
            model = transformers.LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(torch.float32)
    model.save_pretrained(folder)
    return sum(p.numel() for p in model.parameters())
