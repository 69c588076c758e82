"""`score` on 26 million responses (1,000,000 questions of 26 variants), beside a pandas groupby and the least time.

The least any implementation needs is one pass over the bytes of the columns it cannot do without.
"""

import numpy as np
import pandas as pd
import pyarrow as pa

from cora_nb.metrics.scoring import score
from cora_nb.results import values_of
from measure import measure, report, resident_mb

QUESTIONS, VARIANTS = 1_000_000, 26
METHODS = [
    "original",
    "shuffled",
    *(
        m
        for m in (
            "nota",
            "nota_shuffled",
            "decoupled",
            "decoupled_shuffled",
            "decoupled_nota",
            "decoupled_nota_shuffled",
        )
        for _ in range(4)
    ),
]


def responses(seed: int = 0) -> pd.DataFrame:
    "The columns that `score` reads, with the types of the responses table."
    rng = np.random.default_rng(seed)
    n = QUESTIONS * VARIANTS
    text = pd.StringDtype("pyarrow")
    ids = pa.array([f"q{i:07d}" for i in range(QUESTIONS)]).take(
        pa.array(np.repeat(np.arange(QUESTIONS, dtype=np.int32), VARIANTS))
    )
    methods = pa.array(METHODS).take(pa.array(np.tile(np.arange(VARIANTS, dtype=np.int32), QUESTIONS)))
    known = np.repeat(rng.beta(2, 1, QUESTIONS).astype(np.float32), VARIANTS)
    return pd.DataFrame(
        {
            "question_id": pd.array(ids, dtype=text),
            "method": pd.array(methods, dtype=text),
            "trial": np.zeros(n, dtype=np.int32),
            "correct": rng.random(n, dtype=np.float32) < known,
        }
    )


def by_groupby(frame: pd.DataFrame) -> dict[str, float]:
    "The straightforward way: a groupby for the counts, another for the originals."
    groups = frame.groupby("question_id")["correct"]
    rc = groups.mean()
    mcqa = frame.loc[frame["method"] == "original", "correct"].mean()
    bmca_1 = (rc >= 1).mean()
    return {
        "MCQA": mcqa,
        "MCQA+": frame["correct"].mean(),
        "MV": (rc > 0.5).mean(),
        "BMCA(1.0)": bmca_1,
        "CoRA": mcqa * (1 - (mcqa - bmca_1)),
    }


if __name__ == "__main__":
    frame = responses()
    report("table", rows=len(frame), MB_before_scoring=resident_mb())
    seconds, memory, ours = measure(lambda: score(frame), repeat=2)
    report("score", seconds=seconds, peak_MB=memory, rows_per_second=len(frame) / seconds)
    slow, _, theirs = measure(lambda: by_groupby(frame), repeat=1)
    ours = values_of(ours)
    assert all(np.isclose(ours[k], v) for k, v in theirs.items())
    report("pandas groupby", seconds=slow)
    least, _, _ = measure(
        lambda: (
            frame["correct"].to_numpy().sum(),
            frame["trial"].to_numpy().sum(),
            *(
                sum(
                    int(np.frombuffer(b, np.uint8)[::64].sum())
                    for c in pa.chunked_array(pa.array(frame[k])).chunks
                    for b in c.buffers()
                    if b
                )
                for k in ("question_id", "method")
            ),
        )
    )
    report("least (read every column once)", seconds=least)
    report("ratios", groupby_over_ours=slow / seconds, ours_over_least=seconds / least)
