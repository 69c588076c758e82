"""Tiny models with random weights, one for each architecture family of a table, as folders that can be loaded."""

import functools

from tiny_models import byte_level, torch, transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

tokenizer = functools.cache(byte_level)
IMAGE = 2  # the token in whose place an image would stand; no text holds it

# sizes that many families share, whatever else they have; names that a family does not know change nothing

TEXT = dict(
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    max_position_embeddings=600,
    tie_word_embeddings=False,  # where they are tied, a random model repeats the last token for ever
    initializer_range=0.2,  # with the usual one, all tokens are about as likely
    bos_token_id=None,
    eos_token_id=1,
    pad_token_id=None,  # its embedding would be zeros, which hide that a model sees the padding
)
SIGHT = dict(
    hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14
)
HEADS = dict(head_dim=16)
EXPERTS = dict(
    num_experts=4,
    num_local_experts=4,
    n_routed_experts=4,
    n_shared_experts=1,
    num_experts_per_tok=2,
    moe_intermediate_size=32,
    shared_expert_intermediate_size=32,
)
GROUPS = dict(n_group=1, topk_group=1, first_k_dense_replace=1)  # of experts; the first layer has none
LATENT = dict(
    num_key_value_heads=2,
    kv_lora_rank=8,
    q_lora_rank=8,
    qk_nope_head_dim=8,
    qk_rope_head_dim=8,
    v_head_dim=8,
    head_dim=8,
)
STATES = dict(state_size=4, mamba_d_state=4, mamba_n_heads=4, mamba_d_head=16, mamba_n_groups=1, mamba_chunk_size=8)

# what the two layers are: one of a newer kind, and one that sees all words before

NEAR = HEADS | dict(sliding_window=16, layer_types=["sliding_attention", "full_attention"])
LINEAR = HEADS | dict(layer_types=["linear_attention", "full_attention"])
DELTA = LINEAR | dict(linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8, linear_value_head_dim=8)
SECOND = dict(attn_layer_offset=1, attn_layer_period=2, expert_layer_offset=1, expert_layer_period=2)
AGAIN = dict(hidden_size_per_layer_input=8, vocab_size_per_layer_input=420)  # each layer reads the token once more
COMPRESSED = HEADS | dict(
    layer_types=["compressed_sparse_attention", "heavily_compressed_attention"],
    compress_rates={"compressed_sparse_attention": 4, "heavily_compressed_attention": 8},
    mlp_layer_types=["hash_moe", "moe"],
    sliding_window=16,
    partial_rotary_factor=0.5,
    q_lora_rank=8,
    o_groups=2,
    o_lora_rank=8,
    index_n_heads=2,
    index_head_dim=16,
    index_topk=64,
    hc_mult=2,
)

# the table: a model type of transformers, and its sizes beside those of `TEXT`

TEXTS = {
    "llama": {},
    "qwen2": {},
    "qwen2_moe": EXPERTS,
    "qwen3": HEADS,
    "qwen3_moe": EXPERTS | HEADS,
    "qwen3_next": EXPERTS | DELTA,
    "qwen3_5_text": DELTA,
    "qwen3_5_moe_text": EXPERTS | DELTA,
    "gemma": HEADS,
    "gemma2": NEAR,
    "gemma3_text": NEAR,
    "gemma4_text": NEAR | AGAIN | dict(global_head_dim=16, pad_token_id=IMAGE),
    "mistral": dict(sliding_window=16),
    "mixtral": EXPERTS,
    "ministral": NEAR,
    "ministral3": HEADS,
    "gpt_oss": EXPERTS | NEAR,
    "deepseek_v2": EXPERTS | GROUPS | LATENT,
    "deepseek_v3": EXPERTS | GROUPS | LATENT,
    "deepseek_v4": EXPERTS | COMPRESSED,
    "glm": HEADS,
    "glm4": HEADS,
    "glm4_moe": EXPERTS | GROUPS | HEADS,
    "minimax": EXPERTS | LINEAR | dict(block_size=8),
    "lfm2": dict(layer_types=["conv", "full_attention"]),
    "mamba": STATES,
    "mamba2": dict(state_size=4, num_heads=4, head_dim=16, n_groups=1, chunk_size=8),
    "falcon_mamba": STATES,
    "jamba": EXPERTS | STATES | SECOND,
    "bamba": STATES | dict(attn_layer_indices=[1]),
    "falcon_h1": STATES | HEADS | dict(mamba_d_ssm=64),
    "olmo": {},
    "olmo2": {},
    "olmo3": NEAR,
    "granite": {},
    "granitemoe": EXPERTS,
    "granitemoehybrid": EXPERTS | STATES | dict(layer_types=["mamba", "attention"], shared_intermediate_size=32),
    "phi": {},
    "phi3": {},
    "phimoe": EXPERTS,
    "smollm3": {},
    "exaone4": NEAR,
    "llama4_text": EXPERTS | HEADS | dict(intermediate_size_mlp=64),
    "cohere": dict(logit_scale=1.0),
    "cohere2": NEAR | dict(logit_scale=1.0),
    "stablelm": {},
    "gpt2": {},
    "gpt_neox": {},
    "opt": dict(word_embed_proj_dim=32, ffn_dim=64, init_std=0.2),
    "bloom": {},
    "mpt": {},
    "rwkv": dict(attention_hidden_size=32),
    "recurrent_gemma": dict(
        lru_width=32, attention_window_size=16, block_types=["recurrent", "attention"], w_init_variance_scale=1.0
    ),
}

QWEN_SIGHT = dict(
    depth=1, embed_dim=32, num_heads=2, out_hidden_size=32, num_position_embeddings=16, deepstack_visual_indexes=[0]
)
QWEN_PLACES = dict(rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]})
LLAMA_SIGHT = dict(vision_output_dim=32, projector_input_dim=32, projector_output_dim=32)
ALSO_SEE = {  # the type of the part that reads texts, its sizes, and those of the part that sees
    "gemma3": ("gemma3_text", TEXTS["gemma3_text"], {}),
    "gemma4": ("gemma4_text", TEXTS["gemma4_text"], HEADS | dict(num_key_value_heads=2, position_embedding_size=16)),
    "qwen3_5": ("qwen3_5_text", TEXTS["qwen3_5_text"], QWEN_SIGHT),
    "qwen3_5_moe": ("qwen3_5_moe_text", TEXTS["qwen3_5_moe_text"], QWEN_SIGHT),
    "llama4": ("llama4_text", TEXTS["llama4_text"], LLAMA_SIGHT),
    "mistral3": ("mistral", TEXTS["mistral"], HEADS),
    "qwen2_vl": ("qwen2_vl_text", QWEN_PLACES, QWEN_SIGHT),
    "qwen2_5_vl": ("qwen2_5_vl_text", QWEN_PLACES, QWEN_SIGHT),
    "qwen3_vl": ("qwen3_vl_text", HEADS, QWEN_SIGHT),
    "llava": ("llama", {}, {}),
    "internvl": ("qwen2", {}, {}),
    "smolvlm": ("llama", {}, {}),
    "idefics3": ("llama", {}, {}),
}

LOOK_AHEAD = {"bert": {}, "roberta": dict(pad_token_id=0)}  # a word depends on the words after it
TRANSLATE = {"t5": dict(d_model=32, d_ff=64, d_kv=16, num_layers=2, num_heads=2)}  # a text and its answer are two

# from the table to folders


def exists(name):
    "Whether the installed transformers has this family."
    return name in CONFIG_MAPPING


def has_text_model(name):
    "Whether a class of its own reads texts, without the part that sees."
    return name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES


def configuration(name):
    "The sizes of a family, for the tokenizer that all of them share."
    text = TEXT | dict(vocab_size=len(tokenizer()))
    if name not in ALSO_SEE:
        return transformers.AutoConfig.for_model(name, **text | (TEXTS | LOOK_AHEAD | TRANSLATE)[name])
    kind, sizes, sight = ALSO_SEE[name]
    return transformers.AutoConfig.for_model(
        name,
        text_config=text | sizes | dict(model_type=kind),
        vision_config=SIGHT | sight,
        image_token_id=IMAGE,
        image_token_index=IMAGE,
        video_token_id=IMAGE,
        tie_word_embeddings=False,
        initializer_range=0.2,
    )


def save_architecture(folder, name, seed=0):
    "A random model of this family and its tokenizer, saved as its makers save it: with the part that sees."
    kinds = {"ImageTextToText": ALSO_SEE, "CausalLM": TEXTS, "MaskedLM": LOOK_AHEAD, "Seq2SeqLM": TRANSLATE}
    maker = next(getattr(transformers, f"AutoModelFor{kind}") for kind, names in kinds.items() if name in names)
    torch.manual_seed(seed)
    maker.from_config(configuration(name), dtype=torch.float32).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def plain_model(folder, name):
    "The model as transformers itself loads it for texts."
    maker = transformers.AutoModelForCausalLM if has_text_model(name) else transformers.AutoModelForImageTextToText
    return maker.from_pretrained(folder, dtype=torch.float32).eval()
