"""The chat respondent and a real OpenAI-compatible server, `transformers serve`, with the organism `steady`."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
for package in ("accelerate", "fastapi", "pydantic", "rich", "starlette", "uvicorn"):
    pytest.importorskip(
        package, reason=f"{package} is not installed; pip install 'transformers[serving]' to run this test"
    )

from cora_nb.benchmarks.arithmetic import math_benchmark  # noqa: E402
from cora_nb.cli.run import cora_run, cora_try  # noqa: E402
from cora_nb.cli.table import cora_table  # noqa: E402
from cora_nb.core import data_path  # noqa: E402
from cora_nb.prompts.templates import make_prompts  # noqa: E402
from cora_nb.respondents.protocol import ask  # noqa: E402
from cora_nb.respondents.causal import CausalRespondent  # noqa: E402
from cora_nb.respondents.chat import ChatRespondent  # noqa: E402
from cora_nb.responses.files import read_responses  # noqa: E402
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate  # noqa: E402
from cora_nb.runs.store import Store  # noqa: E402
from cora_nb.variants.families import make_variants  # noqa: E402
from helpers import A_PYTHON, WITH_TORCH  # noqa: E402
from postgres_server import free_port  # noqa: E402

pytestmark = pytest.mark.slow

VARIANTS = make_variants(math_benchmark(n=12))
PROMPTS = make_prompts(VARIANTS)


def wait_until_ready(server: subprocess.Popen, address: str, log: Path, seconds: float = WITH_TORCH) -> None:
    "Until the server says it is well; a server that ended or never gets well fails the test with its own words."
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        try:
            if urllib.request.urlopen(f"{address}/health", timeout=5).status == 200:
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"transformers serve did not get ready: {log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    "(address, folder of the model)"
    root = tmp_path_factory.mktemp("served")
    folder, log = data_path("models", "steady"), root / "log.txt"
    (root / "hub").mkdir()
    port = free_port()
    environment = os.environ | {
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(root),
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }
    command = [
        sys.executable,
        "-c",
        "from transformers.cli.transformers import main; main()",
        "serve",
        str(folder),
        "--device",
        "cpu",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    with log.open("w") as out:
        server = subprocess.Popen(
            command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=environment, start_new_session=True
        )
    try:
        wait_until_ready(server, f"http://127.0.0.1:{port}", log)
        yield f"http://127.0.0.1:{port}/v1", folder
    finally:
        os.killpg(server.pid, signal.SIGKILL)  # a process group of its own
        server.wait(A_PYTHON)


def greedy(folder, messages, n=1):
    "The reply of plain transformers, decoded by hand: the likeliest token, `n` times."
    tokenizer, model = (
        transformers.AutoTokenizer.from_pretrained(folder),
        transformers.AutoModelForCausalLM.from_pretrained(folder),
    )
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)[
        "input_ids"
    ]
    start = ids.shape[1]
    for _ in range(n):
        with torch.no_grad():
            token = model(ids).logits[0, -1].argmax()
        if token == tokenizer.eos_token_id:
            break
        ids = torch.cat([ids, token.view(1, 1)], 1)
    return tokenizer.decode(ids[0, start:], skip_special_tokens=True)


def test_replies_equal_a_greedy_decode_by_hand(served):
    address, folder = served
    replies = ask(ChatRespondent(str(folder), base_url=address, max_tokens=1, concurrency=4), PROMPTS[:12])
    assert [r.error for r in replies] == [None] * 12
    assert [r.text for r in replies] == [greedy(folder, p.messages) for p in PROMPTS[:12]]
    assert all(r.meta["completion_tokens"] == 1 and r.meta["prompt_tokens"] > 10 for r in replies)


def test_longer_replies_and_the_other_endpoint(served):
    address, folder = served
    (reply,) = ask(ChatRespondent(str(folder), base_url=address, max_tokens=6), PROMPTS[:1])
    assert reply.text == greedy(folder, PROMPTS[0].messages, 6)
    (reply,) = ask(ChatRespondent(str(folder), base_url=address, endpoint="completions", max_tokens=2), PROMPTS[:1])
    assert reply.error is None and isinstance(reply.text, str)


def test_dropped_logprobs_are_noticed(served):
    address, folder = served
    with pytest.warns(UserWarning, match="asked for log-probabilities and sent none") as said:
        replies = ask(ChatRespondent(str(folder), base_url=address, top_logprobs=5), PROMPTS[:3])
    assert len([w for w in said if "log-probabilities" in str(w.message)]) == 1 and all(
        r.scores is None and r.text is not None for r in replies
    )


def test_server_and_local_model_say_the_same(served, tmp_path):
    "The same questions through the causal respondent and through the server; and from the store, without the server."
    address, folder = served
    model = ChatRespondent(str(folder), base_url=address, concurrency=4)
    with Store(tmp_path / "replies.sqlite") as store:
        theirs = evaluate(model, VARIANTS, Asking(parse="first_token"), store=store, progress=False)
        again = evaluate(model, VARIANTS, Asking(parse="first_token"), store=store, progress=False)
    ours = evaluate(
        CausalRespondent(folder, device="cpu", name="local"), VARIANTS, Asking(parse="first_token"), progress=False
    )
    said, own = theirs.table, ours.table
    assert said["error"].isna().all() and again.table.equals(said)
    assert said["reply"].tolist() == own["reply"].tolist() and said["reply"].nunique() > 1
    assert said["prediction"].tolist() == own["prediction"].tolist() and said["correct"].mean() > 0.5


def test_all_of_it_through_the_commands(served, tmp_path, monkeypatch, capsys):
    "What a newcomer types: a try, a dry run, the run, the same from the store, and the table."
    address, folder = served
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    spec = f"chat:{folder},base_url={address},name=served,concurrency=4"
    cora_try(spec, limit=2, questions=1, parse="first_token")
    tried = capsys.readouterr().out
    assert f"POST {address}/chat/completions" in tried and '"max_tokens": 1\n' in tried
    assert tried.count("RIGHT") >= 5 and "the full run would take" in tried
    cora_run([spec], limit=2, parse="first_token", dry=True)
    plan = capsys.readouterr().out.splitlines()
    prompts, different, in_store, calls, _, written = map(int, plan[-1].split()[1:])
    assert (prompts, in_store) == (40, 0) and calls == different == written, "a try stores nothing"
    cora_run([spec], limit=2, parse="first_token")
    first = capsys.readouterr().out
    assert "40 replies: " in first and ", 0 unparsed, 0 failed" in first and f"{calls} asked, 0 from" in first
    cora_run([spec], limit=2, parse="first_token")
    again = capsys.readouterr().out
    assert f"0 asked, {different} from" in again and "--store none asks again" in again
    cora_table(["responses/math/served"])
    table = capsys.readouterr().out
    for name, guessed in (("MCQA", "0.25"), ("CoRA", "0.19")):
        assert re.search(rf"{name} +1\.00 +{guessed}\n", table)
        assert re.search(rf"{name} +1\.00 \[0\.\d\d, 1\.00\] +{guessed}\n", first)
    local = evaluate(CausalRespondent(folder, device="cpu"), make_variants(math_benchmark()[:2]), progress=False)
    assert read_responses("responses/math/served").table["prediction"].tolist() == local.table["prediction"].tolist()
