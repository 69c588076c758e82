"""The divergence sets of all 14,042 questions of MMLU, beside a straightforward loop.

The loop does what one would write first: a numpy generator for each shuffled variant, seeded by its key, and a
dictionary from letters to texts. Where the real MMLU is not at hand, questions of the same shape are made up.
"""

import hashlib
import os
from pathlib import Path

import numpy as np

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import LETTERS, Question
from cora_nb.variants.families import make_variants
from measure import measure, report

SHARED = Path(os.environ.get("CORA_SHARED", Path(__file__).resolve().parents[3] / "shared"))


def questions() -> list[Question]:
    if (SHARED / "data").is_dir():
        return load_benchmark("mmlu", path=SHARED / "data" / "hub")
    return [Question(f"q{i}", "?", (f"w{i}", f"x{i}", f"y{i}", f"z{i}"), i % 4) for i in range(14_042)]


def straightforward(qs: list[Question], seed: int = 0) -> list[dict]:
    "One dictionary for each variant, one seeded generator for each shuffle."
    out = []
    for q in qs:
        answer, wrong = q.choices[q.answer], [c for i, c in enumerate(q.choices) if i != q.answer]
        whole, nota = list(q.choices), "None of the above"
        methods = {"original": [whole], "shuffled": [whole]}
        methods["nota"] = methods["nota_shuffled"] = [
            [nota if i == d else c for i, c in enumerate(q.choices)] for d in q.distractors
        ]
        methods["decoupled"] = methods["decoupled_shuffled"] = [[answer, w] for w in wrong]
        methods["decoupled_nota"] = methods["decoupled_nota_shuffled"] = [[answer, w, nota] for w in wrong]
        for method, shown in methods.items():
            for index, texts in enumerate(shown):
                if method.endswith("shuffled"):
                    key = hashlib.sha256(f"{seed}|{q.id}|{method}|{index}".encode()).digest()
                    texts = [
                        texts[i] for i in np.random.default_rng(int.from_bytes(key[:8], "big")).permutation(len(texts))
                    ]
                choices = dict(zip(LETTERS, texts))
                out.append(
                    {
                        "id": q.id,
                        "method": method,
                        "index": index,
                        "choices": choices,
                        "answer": next(k for k, v in choices.items() if v == answer),
                    }
                )
    return out


if __name__ == "__main__":
    qs = questions()
    ours, memory, variants = measure(lambda: make_variants(qs))
    loop, _, baseline = measure(lambda: straightforward(qs), repeat=1)
    assert len(variants) == len(baseline)
    report(
        "make_variants", variants=len(variants), seconds=ours, variants_per_second=len(variants) / ours, peak_MB=memory
    )
    report("straightforward loop", seconds=loop, variants_per_second=len(baseline) / loop)
    # the least: one hash and one sort for each shuffled variant, one tuple of texts for each variant
    shuffles = [v for v in variants if v.method.endswith("shuffled")]
    hashing, _, _ = measure(lambda: [hashlib.shake_128(v.question_id.encode()).digest(32) for v in shuffles])
    copying, _, _ = measure(lambda: [tuple(v.choices) for v in variants])
    report("least (hash each shuffle, copy each variant)", seconds=hashing + copying)
    report("ratios", loop_over_ours=loop / ours, ours_over_least=ours / (hashing + copying))
