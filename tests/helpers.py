"""What several test files use: a command run as a user runs it, a respondent that forgets, questions of every kind."""

import asyncio
import os
import subprocess
import sysconfig
from pathlib import Path

from hypothesis import strategies as st

from cora_nb.core import Question
from cora_nb.respondents.protocol import Reply
from cora_nb.variants.mcqa_plus import filler

BIN = Path(sysconfig.get_path("scripts"))


def run(*words, cwd, **env):
    "Exit code, output, errors of a command; replies are kept in a store of the folder's own."
    env = {"XDG_CACHE_HOME": str(cwd), **env}
    command = [str(BIN / words[0]), *map(str, words[1:])]
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=120, env={**os.environ, "COLUMNS": "120", **env}
    )
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
def questions(draw, most=26):
    "Any question, with choices that may repeat, may be fillers, and may say None of the above."
    choices = draw(st.lists(texts, min_size=2, max_size=most))
    return Question(
        draw(st.sampled_from(["q", "p"]) | st.text(min_size=1)),
        draw(texts),
        tuple(choices),
        draw(st.integers(0, len(choices) - 1)),
    )


def no_overlap(texts):
    "Assert that no two words of a figure lie on one another; lines that lead from a word to a point may."
    from matplotlib.text import Text

    texts[0].get_figure().canvas.draw()
    boxes = [Text.get_window_extent(t) for t in texts if t.get_text()]
    assert not [(i, j) for i in range(len(boxes)) for j in range(i) if boxes[i].overlaps(boxes[j])]
