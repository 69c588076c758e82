"""What several test files use: a command run as a user runs it, a respondent that forgets, questions of every kind,
and what every variant with lettered choices is."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

from hypothesis import strategies as st

from cora_nb.core import Question
from cora_nb.respondents.protocol import Reply
from cora_nb.variants.operators import filler, says_none


def command(*words):
    "The words of a command, to be run in another process."
    return [sys.executable, str(Path(__file__).with_name("run_command.py")), *map(str, words)]


def run(*words, cwd, **env):
    "Exit code, output, errors of a command; replies are kept in a store of the folder's own."
    env = {**os.environ, "COLUMNS": "120", "XDG_CACHE_HOME": str(cwd), **env}
    done = subprocess.run(command(*words), cwd=cwd, capture_output=True, text=True, timeout=120, env=env)
    return done.returncode, done.stdout, done.stderr


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
