"""A tiny model that knows the control tokens of many chat formats, chat templates for it, and what it reads."""

from pathlib import Path

from tiny_models import byte_level, torch, transformers

from cora_nb.respondents.protocol import ask

CONTROL = (
    *("<|im_start|>", "<|im_end|>", "<start_of_turn>", "<end_of_turn>", "[INST]", "[/INST]", "<|eot_id|>"),
    *("<|start_header_id|>", "<|end_header_id|>", "<|endoftext|>"),
    *("<|start|>", "<|end|>", "<|channel|>", "<|message|>"),
)

EACH = "{% for m in messages %}"
IN_PARTS = "{% for p in m.content %}"

SENT: dict[str, str] = {  # templates that can send a question
    "plain": EACH + "{{ m.content }}\n{% endfor %}",
    "ChatML": EACH
    + "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    + "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "headers": "{{ bos_token }}"
    + EACH
    + "{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + m.content | trim + '<|eot_id|>' }}{% endfor %}"
    + "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}",
    "headers and a date": "{{ bos_token }}<|start_header_id|>system<|end_header_id|>\n\nToday Date: "
    + "{{ strftime_now('%d %b %Y') }}<|eot_id|>"
    + EACH
    + "<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content }}<|eot_id|>{% endfor %}",
    "turns": "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    + EACH
    + "<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim }}<end_of_turn>\n"
    + "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}",
    "INST": "{{ bos_token }}"
    + EACH
    + "{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    + "{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]{% else %} {{ m['content'] }}{{ eos_token }}"
    + "{% endif %}{% endfor %}",
    "channels": "<|start|>system<|message|>Reasoning: low<|end|>"
    + EACH
    + "{% if m.role == 'assistant' %}<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>{% else %}"
    + "<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}{% endfor %}<|start|>assistant",
    "an opened thought": EACH
    + "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n<think>\n",
    "a thought that is closed at once": EACH
    + "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
    + "{% if enable_thinking is not defined or not enable_thinking %}<think>\n\n</think>\n\n{% endif %}",
    "string or parts": EACH
    + "{% if m.content is string %}{{ m.content }}{% else %}"
    + IN_PARTS
    + "{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}{% endif %}\n{% endfor %}",
    "parts alone": EACH + IN_PARTS + "{% if p['type'] == 'text' %}{{ p['text'] }}{% endif %}{% endfor %}\n{% endfor %}",
    "parts alone, selected": "{{ bos_token }}"
    + EACH
    + "{{ m.role }}: {% for p in m.content | selectattr('type', 'equalto', 'text') %}{{ p.text }} {% endfor %}"
    + "<|im_end|>\n{% endfor %}assistant:",
    "the first part": EACH + "{{ m.role }}: {{ m.content[0]['text'] }}\n{% endfor %}assistant:",
    "JSON": "{{ bos_token }}" + EACH + "{{ {'role': m.role, 'content': m.content} | tojson }}\n{% endfor %}",
    "HTML": EACH + "<p class={{ m.role }}>{{ m.content | e }}</p>{% endfor %}",
    "trims": EACH + "{{ m.content.strip() }}{% if not loop.last %}\n\n{% endif %}{% endfor %}",
    "splits at a thought's end": EACH + "{{ m.role }}: {{ m.content.split('</think>')[-1] }}\n{% endfor %}",
}
IN_PARTS_ALONE = ("parts alone", "parts alone, selected", "the first part")

REFUSED: dict[str, str] = {  # templates that cannot
    "drops the user's words": EACH + "{% if m.role != 'user' %}{{ m.content }}{% endif %}{% endfor %}assistant:",
    "no words at all": "{{ bos_token }}assistant:",
    "refuses the user": EACH
    + "{% if m.role == 'user' %}{{ raise_exception('Only system and tool') }}{% endif %}{% endfor %}",
    "the first words": EACH + "{{ m.content[:30] }}{% endfor %}",
    "the first line": EACH + "{{ m.content.split('\n')[0] }}{% endfor %}",
    "another field": EACH + "{{ m.role }}: {{ m.value }}\n{% endfor %}",
    "no template": "{% for m in messages %}{{ m.content }}",
}


def save_chat_model(folder: Path, template: str | None = None) -> Path:
    "Random weights, a tokenizer that spells any text in bytes, and a template."
    tokenizer = byte_level(bos=True)
    tokenizer.add_special_tokens({"extra_special_tokens": list(CONTROL)})
    tokenizer.add_tokens(["<think>", "</think>"])
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=4096,
        eos_token_id=1,
        initializer_range=0.3,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if template is not None:
        (Path(folder) / "chat_template.jinja").write_text(template, "utf-8")
    return Path(folder)


def reads(who, prompt, monkeypatch, put=None) -> list[list[int]]:
    """The tokens of every text that goes through the model for a prompt, without padding.

    It is asked twice, so that tests of the model are over; `put` asks it in another way.
    """
    put = put or (lambda: ask(who, [prompt]))
    put()
    rows, forward = [], who.model.forward

    def heard(*words, **named):
        ids = named["input_ids"] if "input_ids" in named else words[0]
        mask = named.get("attention_mask")
        flat = isinstance(mask, torch.Tensor) and mask.dim() == 2 and mask.shape == ids.shape
        rows.extend(row[keep.bool()].tolist() for row, keep in zip(ids, mask if flat else torch.ones_like(ids)))
        return forward(*words, **named)

    with monkeypatch.context() as patch:
        patch.setattr(who.model, "forward", heard)
        put()
    return rows
