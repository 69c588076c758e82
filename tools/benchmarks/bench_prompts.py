"""Prompts and parsing rules on as many prompts as MMLU has variants, beside the plainest formatting there is."""

import os
from pathlib import Path

from cora_nb.benchmarks.load import load_benchmark, load_shots
from cora_nb.core import LETTERS
from cora_nb.prompts.letters import LETTER_RULES, parse
from cora_nb.prompts.templates import make_prompts
from cora_nb.variants.families import make_variants
from measure import measure, report

HUB = Path(os.environ.get("CORA_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data" / "hub"
REPLIES = [
    "B",
    "B. ",
    "(C)",
    "The answer is (B).",
    "I think it is D",
    "",
    "**A**",
    "Because of the reasons given, none of these convinces me.",
]

if __name__ == "__main__":
    real = HUB.is_dir()
    questions = load_benchmark("mmlu", path=HUB) if real else load_benchmark("math") * 47
    pool = load_shots("mmlu", path=HUB) if real else load_shots("math")
    variants = make_variants(questions)
    plain, _, _ = measure(
        lambda: [
            f"{v.question.text}\n" + "\n".join(f"{LETTERS[i]}. {c}" for i, c in enumerate(v.choices)) for v in variants
        ]
    )
    report("least (question and choices joined)", prompts=len(variants), seconds=plain)
    for k in (0, 5):
        seconds, memory, _ = measure(lambda: [p.text for p in make_prompts(variants, shots=pool, k=k)], repeat=2)
        report(
            f"{k} shots",
            seconds=seconds,
            prompts_per_second=len(variants) / seconds,
            over_least=seconds / plain,
            peak_MB=memory,
        )
    for rule in LETTER_RULES:
        seconds, _, _ = measure(
            lambda: [parse(r, ("one", "two", "three", "four"), rule) for r in REPLIES for _ in range(2500)]
        )
        report(rule, replies_per_second=20_000 / seconds)
