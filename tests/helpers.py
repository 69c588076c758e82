"""What several test files use: a command run as a user runs it, a respondent that forgets, questions of every kind,
what every variant with lettered choices is, and runs to compare."""

import asyncio
import functools
import multiprocessing
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from multiprocessing import forkserver
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from cora_nb.core import Question
from cora_nb.metrics.comparison import exchange_scores, put_together
from cora_nb.metrics.account import account_of_counts, score_counts
from cora_nb.respondents.protocol import Reply
from cora_nb.responses.columns import with_states
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.runs.store import Store
from cora_nb.stats.shares import random_order
from cora_nb.stats.paired import exchange_p
from cora_nb.variants.families import make_variants
from cora_nb.variants.operators import filler
from cora_nb.benchmarks.phrases import says_none


# Limits on other processes, in seconds. They are there to end a hang: a busy machine must not look like one.
A_PYTHON = 120  # imports pandas or this package, 2 s of a quiet processor
WITH_TORCH = 600  # may import torch or transformers, start a kernel, or run a whole command

# For tests in which a warning is an error: a request that is given up while it connects, perhaps by an earlier test,
# leaves a socket that is closed when it is collected.
CUT_OFF = r"ignore:Exception ignored in. <(socket|function _SelectorTransport):pytest.PytestUnraisableExceptionWarning"


def command(*words):
    "The words of a command, to be run in another process."
    return [sys.executable, str(Path(__file__).with_name("run_command.py")), *map(str, words)]


def run(*words, cwd, **env):
    "Exit code, output, errors of a command; replies are kept in a store of the folder's own."
    env = {**os.environ, "COLUMNS": "120", "XDG_CACHE_HOME": str(cwd), **env}
    done = subprocess.run(command(*words), cwd=cwd, capture_output=True, text=True, timeout=WITH_TORCH, env=env)
    return done.returncode, done.stdout, done.stderr


def slow_after(n: int, cases):
    "The cases of a parametrised test, of which all but the first n are slow."
    cases = list(cases)
    marked = [pytest.param(*(c if isinstance(c, tuple) else (c,)), marks=pytest.mark.slow) for c in cases[n:]]
    return cases[:n] + marked


@functools.cache
def apart():
    """A way to begin processes that are forked from a server, which has imported `store_children` once.

    The process that pytest runs in has threads, and what a fork of it inherits of their locks nobody gives back. A
    server that could not import it is told by nobody, and each of its children then takes seconds to begin: Python 3.11
    looks only where PYTHONPATH says.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["store_children"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        forkserver.ensure_running()
    return context


def kill_at_reply(pid: int, store: Path | str, n: int, alive, pause: float = 0.0) -> int:
    """SIGKILL to a process once it has stored its n-th reply, and `pause` seconds later; the replies in the store then.

    What a clock says has no part in it: on a busy machine, all kills after a time came before the first reply.
    `alive` says whether the process still runs: one that ends before its n-th reply fails the test.
    """
    while stored_replies(store) < n:
        assert alive(), f"the process ended by itself, with {stored_replies(store)} replies and not {n}"
        time.sleep(0.0002)
    time.sleep(pause)
    assert alive(), f"the process ended by itself before it could be killed, at reply {n}"
    os.kill(pid, signal.SIGKILL)
    return stored_replies(store)


def stored_replies(store: Path | str) -> int:
    "How many replies lie in a store, which another process may be about to create: a file, or an address."
    if isinstance(store, str):
        import psycopg

        with psycopg.connect(store) as db:
            begun = db.execute("select to_regclass('cora_replies')").fetchone()[0]
            return db.execute("select count(*) from cora_replies").fetchone()[0] if begun else 0
    if not store.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
            return db.execute("select count(*) from cora_replies").fetchone()[0]
    except sqlite3.OperationalError:  # not yet a store, or the other process is at work on its log, whatever the words
        return 0


class Beaten(Store):
    "A store in which another run stores each reply first."

    def put(self, key, reply):
        with Store(self.path) as other:
            other.put(key, Reply("E"))
        return super().put(key, reply)


class Forgetful:
    "Answers every second prompt, in reverse order."

    name = "forgetful"

    def describe(self):
        return {"respondent": "forgetful"}

    def request(self, prompt):
        return {"text": prompt.text}

    async def answer(self, prompts):
        for i in range(len(prompts) - 1, -1, -2):
            await asyncio.sleep(0)
            yield i, Reply("A")


def put_in_state(table, rows, state, words=None):
    """A copy of a table of responses in which some rows, by place or by a truth value for each, have no reply.

    A table without the column `state` gets it.
    """
    table, gone = with_states(table).copy(), np.zeros(len(table), dtype=bool)
    gone[rows] = True
    rows = pd.Series(gone, table.index)
    table.loc[rows, "state"] = state
    for column in ("reply", "confidence", "mean_logprob", "n_tokens", "finish", "selected", "scores"):
        if column in table:
            table[column] = table[column].where(~rows)
    if "prediction" in table:
        table["prediction"] = table["prediction"].where(~rows, -1)
    if "correct" in table:
        table["correct"] = table["correct"] & ~rows
    if words is not None or "error" in table:
        old = table["error"] if "error" in table else pd.Series(None, table.index, dtype="string")
        table["error"] = old.astype(object).where(~rows, words)
    return table


def stopped_when_precise(run, share=0.5, scores=("CoRA",), half_width=0.05):
    """A complete run as `stop="precise"` would have left it: of a share of its questions, drawn at random, all prompts
    were asked, and of the others none."""
    codes, ids = run.question_codes
    drawn = random_order(ids.tolist(), 0)[: max(2, round(share * len(ids)))]
    table = put_in_state(run.to_frame(), ~np.isin(codes, drawn), "not_asked")
    sample = {"scores": list(scores), "half_width": half_width, "level": 0.95, "level_at_stop": 0.955, "seed": 0}
    sample |= {"prompts": len(run), "kind": "questions", "originals": len(drawn), "exact": False, "ended": True}
    return Responses(
        table, run.questions, run.facts.plain() | {"sample": sample}, run.name, failed_wrong=run.failed_wrong
    )


texts = st.sampled_from(
    ["a", "b", "None of the above", "none of these.", "42", filler(0, "q", "filler", 0), filler(0, "q", "filler", 2)]
) | st.text(min_size=1).filter(str.strip)


@st.composite
def questions(draw, least=2, most=26):
    "Any question, with choices that may repeat, may be fillers, and may say None of the above."
    choices = draw(st.lists(texts, min_size=least, max_size=most))
    return Question(
        draw(st.sampled_from(["q", "p"]) | st.text(min_size=1)),
        draw(texts),
        tuple(choices),
        draw(st.integers(0, len(choices) - 1)),
    )


# What every variant is: written from the definition, without the package's own operators

NOTA = "None of the above"


def numbered(A, id="q"):
    return Question(id, "?", tuple(f"choice {i}" for i in range(A)), A // 2)


def check_lettered(v, nota=False):
    "What holds for every variant with lettered choices."
    q = v.question
    assert v.form == "mcq" and v.text == "" and v.asked == q.text
    assert len(v.choices) == len(v.sources) and 0 <= v.answer < v.n_choices
    old = [s for s in v.sources if s >= 0]
    assert len(old) == len(set(old)) and all(0 <= s < q.n_choices for s in old)
    assert all(v.choices[i] == q.choices[s] for i, s in enumerate(v.sources) if s >= 0)
    new = [c for c, s in zip(v.choices, v.sources) if s < 0]
    assert sorted(s for s in v.sources if s < 0) == list(range(-len(new), 0)), "each has a number of its own"
    assert len(set(new)) == len(new) and not set(new) & set(q.choices), "a choice was introduced twice"
    for text in set(new) - {NOTA}:
        assert re.fullmatch("[bcdfghjklmnpqrstvxz]{4,6}", text) and len(set(text)) == len(text)
        assert text not in "\n".join((q.text, *q.choices)).casefold()
    assert nota or NOTA not in new
    if nota:
        check_nota(v)
    else:
        assert v.sources[v.answer] == q.answer


def check_nota(v):
    "The right choice is gone and None of the above is right; or it was right before."
    q = v.question
    assert says_none(v.choices[v.answer])
    if says_none(q.choices[q.answer]):
        assert v.sources[v.answer] == q.answer
    else:
        assert q.answer not in v.sources
    if v.choices[v.answer] == NOTA and v.sources[v.answer] < 0:
        assert sum(map(says_none, v.choices)) == 1


def no_overlap(texts):
    "Assert that no two words of a figure lie on one another; lines that lead from a word to a point may."
    from matplotlib.text import Text

    texts[0].get_figure().canvas.draw()
    boxes = [Text.get_window_extent(t) for t in texts if t.get_text()]
    assert not [(i, j) for i in range(len(boxes)) for j in range(i) if boxes[i].overlaps(boxes[j])]


def replies_for(variants):
    "Replies of every kind, fitting each variant."

    def one(v):
        scores = st.lists(st.floats(-50, 0), min_size=v.n_choices, max_size=v.n_choices).map(tuple)
        return st.one_of(
            st.builds(Reply, text=st.text(max_size=20)),
            st.builds(Reply, text=st.sampled_from("ABCDEF")),
            st.builds(Reply, scores=scores, confidence=st.floats(0, 1)),
            st.builds(Reply, error=st.sampled_from(["timeout", "429"])),
        )

    return st.tuples(*map(one, variants))


# Runs to compare

METHODS = ["original", "shuffled", "nota", "decoupled"]


def table(right, **columns):
    "Responses from an array of right and wrong, shape (n_questions, n_variants)."
    right = np.asarray(right, bool)
    n, m = right.shape
    return pd.DataFrame(
        {
            "question_id": np.repeat([f"q{i}" for i in range(n)], m),
            "subject": np.repeat([f"s{i // 5}" for i in range(n)], m),
            "family": "cora",
            "method": METHODS[:m] * n,
            "index": 0,
            "trial": 0,
            "answer": 1,
            "correct": right.ravel(),
            **columns,
        }
    )


def at_random(seed, n=60, p=0.6, m=4):
    return table(
        np.random.default_rng(seed).random((n, m)) < np.random.default_rng(seed + 1).beta(3 * p, 3 * (1 - p), (n, 1))
    )


SUMS = [Question(f"q{i}", f"What is {i} + {i}?", tuple(str(i + k) for k in range(4)), i % 4) for i in range(12)]
SUMS_VARIANTS = make_variants(SUMS, "cora")


def answered(seed, variants=SUMS_VARIANTS):
    "A run with texts and facts, answered by chance."
    replies = np.random.default_rng(seed).choice(list("AB"), size=len(variants))
    return make_responses(variants, replies.tolist(), name=f"run {seed}")


def rejected(knows, n, times=400):
    "How often p is below 0.05, on benchmarks of n questions; four variants, a share known, the rest guessed."
    rng, ps = np.random.default_rng(0), []
    for seed in range(times):
        u = rng.random(n)
        counts = [
            account_of_counts(h, np.full(n, 4), (h > 0) * 1.0)
            for h in ((u < k) * 3 + (rng.random(n) < 0.3) for k in knows)
        ]
        seen = score_counts(counts[0])["MCQA"] - score_counts(counts[1])["MCQA"]
        ps.append(exchange_p(seen, exchange_scores(put_together(counts), 400, seed)["MCQA"]))
    return np.mean(np.array(ps) < 0.05)
