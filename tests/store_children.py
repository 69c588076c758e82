"""What other processes do with a store in `runs/test_store.py` and `robustness/stores.py`.

It lies here because a child must import it.
"""

import contextlib
import os
import resource
import signal
import sqlite3
import threading
import time

from tqdm.auto import tqdm

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import CoraError
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


# ---------------------------------------------------------------- what happens around a store while a run goes on

FEW = make_variants(load_benchmark("math")[:10])


def tell(pipe, work, *args):
    "Send what a piece of work says in the end: nothing, the line of an error, or that it had no such line."
    said = ""
    try:
        work(*args)
    except CoraError as e:
        said = str(e)
    except BaseException as e:
        said = f"TRACEBACK {type(e).__name__}: {e}"
    pipe.send(said.encode("utf-8", "backslashreplace"))
    os._exit(0)


def ask_few(path, who=SimulatedRespondent()):
    with Store(path) as store:
        return evaluate(who, FEW, store=store, progress=False)


def ask_few_limited(path, size):
    "No file may grow beyond so many bytes."
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    ask_few(path)


def ask_few_as_nobody(path):
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    ask_few(path)


class Harmful(SimulatedRespondent):
    "Does something to a file after its fiftieth reply."

    def __init__(self, path, harm):
        super().__init__()
        self.path, self.harm = path, harm

    async def answer(self, prompts):
        n = 0
        async for position, reply in super().answer(prompts):
            if (n := n + 1) == 50:
                self.harm(self.path)
            yield position, reply


def ask_few_harmed(path, harm):
    ask_few(path, Harmful(path, harm))


def delete_replies(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("delete from cora_replies")


def remove(path, name):
    path.with_name(name).unlink(missing_ok=True)


def hold(path, how, seconds, held):
    "Lock a store for a while, and say when."
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"begin {how}")
        held.set()
        time.sleep(seconds)
        db.execute("rollback")
