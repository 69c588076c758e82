"""Respondents: what all have in common, and how they are asked."""

import asyncio

import pytest
from helpers import A_PYTHON, Forgetful

from cora_nb.core import CoraError, Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.protocol import ask, run_async
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.variants.families import make_variants

QUESTIONS = [Question(f"q{i}", "?", ("a", "b", "c", "d", "e")[: 2 + i % 4], i % 2) for i in range(40)]
PROMPTS = make_prompts(make_variants(QUESTIONS), trials=2)


def test_inside_a_running_loop():
    "As in a notebook."

    async def cell():
        return ask(SimulatedRespondent(), PROMPTS[:3])

    assert asyncio.run(cell()) == ask(SimulatedRespondent(), PROMPTS[:3])


def test_errors_come_out_of_the_loop():
    async def fails():
        raise CoraError("no such model")

    with pytest.raises(CoraError, match="no such model"):
        run_async(fails())


def test_a_respondent_that_forgets_is_counted_not_trusted():
    replies = ask(Forgetful(), PROMPTS[:6])
    assert [r.error for r in replies] == ["no reply", None] * 3


def test_an_interrupt_inside_a_running_loop_stops_the_work(tmp_path):
    "As the Stop button of a notebook: a run of an hour ends long before, in a process of its own."
    import subprocess
    import sys

    code = """
import asyncio, signal, sys, time
from cora_nb.respondents.protocol import run_async
async def slow():
    for _ in range(72_000): await asyncio.sleep(0.05)  # an hour
async def cell():
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    signal.signal(signal.SIGALRM, lambda *a: (_ for _ in ()).throw(KeyboardInterrupt()))
    try: run_async(slow())
    except KeyboardInterrupt: print("stopped")
asyncio.run(cell())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=A_PYTHON)
    assert done.stdout.strip() == "stopped"
