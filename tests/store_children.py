"""What the processes do that share a store in `runs/test_store.py`; it lies here because a child must import it."""

import os
import threading
import time

from tqdm.auto import tqdm

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Store, reply_key
from cora_nb.variants.families import make_variants

VARIANTS = make_variants(load_benchmark("math")[:100])


class Logged:
    "A slow respondent that writes down every call before it answers, and answers no more after some of them."

    def __init__(self, log, pause=0.0, most=None):
        self.inner, self.log, self.pause = SimulatedRespondent(knows=0.5, slips=0.1), log, pause
        self.calls, self.most = 0, most
        self.name, self.describe, self.request = self.inner.name, self.inner.describe, self.inner.request

    async def answer(self, prompts):
        for i, p in enumerate(prompts):
            os.write(self.log, (reply_key(self.request(p), p.trial) + "\n").encode())
            time.sleep(3600 if self.calls == self.most else self.pause)
            self.calls += 1
            async for _, reply in self.inner.answer([p]):
                yield i, reply


def run(place, folder, log_name, pause, stop, most=None):
    "Ask all prompts, with a store; the process ends with it."
    # tqdm's own lock is shared by the children of one process: one killed while it holds it would block everybody
    tqdm.set_lock(threading.RLock())
    log = os.open(folder / log_name, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    with Store(place) as store:
        evaluate(Logged(log, pause, most), VARIANTS, store=store, stop=stop, progress=False)
    os._exit(0)


def open_together(place, together):
    "Open a store at the same moment as others do; the process ends with the number of its replies."
    together.wait()
    with Store(place) as store:
        os._exit(len(store))
