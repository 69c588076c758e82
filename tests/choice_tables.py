"""Replies typed in by hand, a row for each prompt, for the tests of what is read off choices and their sources."""

import pandas as pd

from cora_nb.responses.columns import column_types
from cora_nb.responses.responses import Responses

FULL = {"subject": None, "family": "reorderings", "reply": None, "scores": None, "error": None}


def table(rows):
    "Rows (question_id, method, index, sources, answer, prediction)."
    frame = pd.DataFrame(rows, columns=["question_id", "method", "index", "sources", "answer", "prediction"])
    frame = frame.assign(trial=0, n_choices=[len(s) for s in frame["sources"]])
    return frame.assign(correct=frame["answer"] == frame["prediction"])


def typed(frame, **columns):
    "The same as real responses, with arrow columns."
    full = frame.assign(**{k: v for k, v in (FULL | columns).items() if k not in frame})
    return Responses(full[[c for c in column_types() if c in full]])
