"""Respondents that remember what they were asked; `runs/test_shards.py` gives workers and commands a copy of it."""

import asyncio
import os
import signal
import time
from pathlib import Path

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.respondents.protocol import Reply

HERE = Path(__file__).parent
BAD = math_benchmark(11)[3].id  # the question at which `Logged` breaks


class Counting:
    "Answers by the text of a prompt and its trial; the requests that `fails` counts, from 1, get no reply."

    name = "counting"

    def __init__(self, temperature=0.0, fails=()):
        self.temperature, self.fails, self.asked = temperature, fails, []

    def describe(self):
        return {"respondent": "counting"}

    def request(self, prompt):
        return {"text": prompt.text, "temperature": self.temperature}

    async def answer(self, prompts):
        for i, p in enumerate(prompts):
            self.asked.append((p.text, p.trial))
            letter = "ABCDE"[(sum(p.text.encode()) + 7 * p.trial) % p.variant.n_choices]
            yield i, Reply(error="timeout") if len(self.asked) in self.fails else Reply(letter)


class Logged(Counting):
    "Writes each request to a file beside this one; waits, holds, dies or breaks where it is told to."

    def __init__(
        self,
        temperature: float = 0,
        wait: float = 0,
        dies: int = 0,
        breaks: str = "",
        holds: int = 0,
        fails: int = 0,
        log: str = "log",
    ):
        super().__init__(temperature, {fails})
        self.wait, self.dies, self.breaks, self.holds, self.log = wait, dies, breaks, holds, HERE / log

    async def answer(self, prompts):
        for i, p in enumerate(prompts):
            with open(self.log, "a") as log:
                log.write(f"{os.getpid()} {p.variant.question_id}\n")
            if self.dies and self.log.read_text().count("\n") > 40 and len(list(HERE.glob("died*"))) < self.dies:
                (HERE / f"died{time.time_ns()}").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if p.variant.question_id == BAD and self.breaks == "cora":
                raise CoraError("no such \x1b[31mmodel")
            if p.variant.question_id == BAD and self.breaks == "other":
                raise RuntimeError("out of \x1b[31mmemory\nhere")
            await asyncio.sleep(600 if self.holds and i == self.holds else self.wait)
            async for _, reply in super().answer([p]):
                yield i, reply


class Other(Logged):
    name = "other"
