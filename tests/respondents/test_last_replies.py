"""Replies that are under way when a run stops are paid for: they are waited for a little, and kept."""

import os
import signal
import subprocess
import time

import pytest

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import CoraError
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents import workers
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.protocol import Reply, stream
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants
from faulty_server import Answer, FaultyServer, refusal
from helpers import WITH_TORCH, command, stored_replies

VARIANTS = [v for v in make_variants(load_benchmark("math")) if v.method == "original"][:40]
PROMPTS = make_prompts(VARIANTS, template="bare")
NOT_TODAY = Answer(429, refusal("come back tomorrow"), {"Retry-After": "86400"})


def test_a_server_that_sends_us_away(tmp_path):
    "Request 10 is told to come back tomorrow; the seven beside it are answered a moment later."
    plan = [Answer()] * 10 + [NOT_TODAY] + [Answer(wait=0.3)] * 7
    with FaultyServer(plan) as server, Store(tmp_path / "r.sqlite") as store:
        model = ChatRespondent("m", base_url=server.url, concurrency=8)
        with pytest.raises(CoraError, match="come back tomorrow"):
            evaluate(model, VARIANTS, store=store, progress=False)
        asked = len(server.asked)
        assert len(store) == asked - 1 >= 10  # all but the one that was refused
        server.plan = ()
        run = evaluate(model, VARIANTS, store=store, progress=False)
        assert run.table["error"].isna().all() and len(server.asked) == 1 + len(VARIANTS)  # nothing asked twice


def test_a_reader_that_has_seen_enough(tmp_path):
    "Its error ends the asking; the replies under way still reach it."
    seen = {}

    def enough(position, reply):
        seen[position] = reply
        if len(seen) >= 8:
            raise CoraError("seen enough")

    with FaultyServer(lambda asked: Answer(wait=0.02 if asked.number < 8 else 0.3)) as server:
        with pytest.raises(CoraError, match="seen enough"):
            stream(ChatRespondent("m", base_url=server.url, concurrency=6), PROMPTS, enough)
        assert len(seen) == len(server.asked) < len(PROMPTS) and all(r.error is None for r in seen.values())


def test_what_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(workers, "GRACE", 0.2)
    plan = [Answer()] + [Answer(wait=3600)] * 3 + [NOT_TODAY]
    with FaultyServer(plan) as server:
        start = time.monotonic()
        with pytest.raises(CoraError, match="come back tomorrow"):
            stream(ChatRespondent("m", base_url=server.url, concurrency=4), PROMPTS, lambda i, r: None)
        assert time.monotonic() - start < 60 and len(server.asked) == 5


class Plain:
    "A respondent that knows nothing of all this."

    name = "plain"
    ended = False

    async def answer(self, prompts):
        try:
            for i, _ in enumerate(prompts):
                yield i, Reply("A")
        finally:
            self.ended = True


def test_any_other_respondent_ends_at_once():
    def enough(position, reply):
        assert position < 3
        if position == 2:
            raise CoraError("seen enough")

    with pytest.raises(CoraError, match="seen enough"):
        stream(who := Plain(), PROMPTS, enough)
    assert who.ended


@pytest.mark.guard
@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 8])
def test_ctrl_c(tmp_path, at_once):
    "Everything that was asked is in the store when the command ends."
    with FaultyServer(lambda asked: Answer(wait=0.05 if asked.number < 20 else 0.4)) as server:
        who = f"chat:m,base_url={server.url},concurrency={at_once}"
        done = subprocess.Popen(
            command("cora_run", who, "--limit", "4", "--store", tmp_path / "r.sqlite"),
            cwd=tmp_path,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        while stored_replies(tmp_path / "r.sqlite") < 15:
            assert done.poll() is None, done.communicate()
            time.sleep(0.001)
        done.send_signal(signal.SIGINT)
        _, err = done.communicate(timeout=WITH_TORCH)
        kept = stored_replies(tmp_path / "r.sqlite")
        assert done.returncode == 1 and b"Traceback" not in err, err
        assert kept == len(server.asked) and f"; {kept} new replies are kept" in err.decode()
