"""The command `cora try`: what it prints, what it recommends, and what it says where nothing can be tried."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.cli.run import TryOptions, cora_try, run_options
from faulty_server import Answer, FaultyServer, completion, refusal
from helpers import run

RIGHT = {q.text: q.choices[q.answer] for q in math_benchmark()}


def letter(asked):
    "What a model that knows all sums would choose."
    text = asked.body["messages"][-1]["content"]
    shown = {choice: name for name, choice in re.findall(r"(?m)^(?:Choices: )?([A-Z])\. (.*)$", text)}
    return shown.get(RIGHT[re.findall(r"(?m)^Question: (.*)$", text)[-1]]) or shown["None of the above"]


def says(words):
    "A plan: a template of words with {} for the letter, cut off at the limit that was asked for."

    def plan(asked):
        said = words.format(letter(asked)).split(" ")
        limit = asked.body["max_tokens"]
        answer = completion(" ".join(said[:limit]), finish_reason="stop" if len(said) <= limit else "length")
        return Answer(body=answer | {"usage": {"prompt_tokens": 90, "completion_tokens": min(len(said), limit)}})

    return plan


def recommended(out, label="the command for the full run"):
    "The words of the command that is recommended."
    program, name, *words = shlex.split(out.split(f"{label}\n")[1].splitlines()[0])
    return [f"{program} {name}", *words]


@pytest.fixture
def try_it(tmp_path, monkeypatch, capsys):
    "The command within this process, in a folder of its own: exit code, output, errors."
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")

    def tried(spec, **options):
        code = 0
        try:
            cora_try(spec, **{"limit": 20, **options})
        except SystemExit as e:
            code = 1
            print(e, file=sys.stderr)  # as Python does
        return code, *capsys.readouterr()

    return tried


def test_what_is_printed(tmp_path):
    "In a process of its own: the very body that is sent, each reply, what rules read, tokens, seconds, the command."
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "OPENAI_API_KEY": "sk-0123456789abcdef"}
    with FaultyServer(says("The answer is **{}**.")) as server:
        words = [f"chat:m,base_url={server.url}", "--price", "1/2"]
        done = subprocess.run(
            [sys.executable, "-m", "cora_nb", "try", *words],
            env=env,
            cwd=tmp_path,
            text=True,
            capture_output=True,
            timeout=120,
        )
    out = done.stdout
    assert (done.returncode, done.stderr) == (0, "")
    body = json.loads("\n".join(x.removeprefix("    | ") for x in out.splitlines()[3:15]))
    assert body == server.asked[0].body and "sk-0123" not in out
    assert len(server.asked) == out.count("RIGHT") == out.count("| The answer is **") == 17
    assert out.count(" read by lenient, ") == out.count("nothing read by first_alphanumeric, ") == 17
    assert "17 replies: 17 right" in out
    assert re.search(r"RIGHT  math-0-1, original 0, right is B \(90 tokens read, 4 tokens written, \d+\.\d\d s\)", out)
    assert re.search(r"prompts  6,000, 5,343 different\n    calls    5,343\n", out)
    assert re.search(r"tokens   about [\d,]+ read, 21,372 written \(at most 2,735,616\)\n", out)
    assert re.search(r"time     about .* at the rate seen here: \d+(\.\d)? replies a second, \d+ at once\n", out)
    assert re.search(r"money    about \d\.\d\d\n", out)
    assert recommended(out) == ["cora run", f"chat:m,base_url={server.url}"] and out.endswith(server.url + "\n")


@pytest.mark.slow
def test_the_recommended_command_works_and_does_not_ask_those_prompts_again(try_it, tmp_path):
    with FaultyServer(says("{}")) as server:
        options = {"limit": 2, "template": "bare", "seed": 7, "store": str(tmp_path / "r.sqlite")}
        code, out, _ = try_it(f"chat:m,base_url={server.url}", **options)
        tried, typed = len(server.asked), recommended(out)
        assert code == 0 and typed[:2] == ["cora run", f"chat:m,base_url={server.url}"]
        assert typed[2:] == shlex.split(f"--limit 2 --seed 7 --template bare --store {tmp_path / 'r.sqlite'}")
        code, out, err = run(*typed, cwd=tmp_path)
    texts = [a.prompt for a in server.asked]
    assert code == 0 and tried < len(texts) == len(set(texts)) and re.search(r"MCQA +1\.00", out)


@pytest.mark.parametrize(
    "words, spec, typed",
    [
        ("The sum is easy. The answer is {}.", "max_tokens=3", "chat:m,base_url={},max_tokens=512"),
        ("<think>" + "well, " * 600 + "</think> {}", "name=x", "chat:m,base_url={},name=x,max_tokens=4096"),
    ],
    ids=["cut off", "thinks"],
)
def test_a_remedy_is_tried_before_it_is_recommended(try_it, words, spec, typed):
    with FaultyServer(says(words)) as server:
        code, out, err = try_it(f"chat:m,base_url={server.url},{spec}", questions=2)
    assert (code, err) == (0, "") and recommended(out)[:2] == ["cora run", typed.format(server.url)]
    assert out.index("CUT OFF") < out.index("trying that: cora try chat:m") < out.index("RIGHT")
    assert re.search(r"\n\d+ replies: \d+ cut off\n", out) and re.search(r"\n\d+ replies: \d+ right\n", out)
    assert server.asked[-1].body["max_tokens"] == int(typed.rpartition("=")[2])


def test_a_model_that_refuses_is_asked_with_a_system_message(try_it):
    def plan(asked):
        system = asked.body["messages"][0]["role"] == "system"
        return Answer(body=completion(letter(asked) if system else "I'm sorry, but I can't help with that."))

    with FaultyServer(plan) as server:
        code, out, _ = try_it(f"chat:m,base_url={server.url}", questions=2)
        typed = recommended(out)
        assert code == 0 and "system=" in typed[1] and out.index("REFUSED") < out.index('"role": "system"')
        assert cora_try(typed[1], limit=2, questions=1, store="none") is None  # as typed


def test_a_rule_that_reads_the_replies_at_hand_is_recommended(try_it):
    with FaultyServer(says("The answer is {}.")) as server:
        code, out, _ = try_it(f"chat:m,base_url={server.url},max_tokens=9", parse="first_token")
    assert code == 0 and recommended(out)[2:] == ["--limit", "20"]  # lenient, which is the default
    n = len(server.asked)
    assert (
        f"{n} replies: {n} unparsed" in out and f"the rule first_token finds no answer, and lenient reads {n} of" in out
    )


def test_nothing_helps(try_it):
    with FaultyServer(says("Who knows.")) as server:
        code, out, err = try_it(f"chat:m,base_url={server.url}", questions=1)
    assert code == 1 and err.startswith("cora try: no way to read these replies was found")
    assert len(err.splitlines()) == 1 and "the command for the full run" not in out


def test_a_letter_and_an_explanation_need_one_token(try_it):
    label = "every reply begins with its letter: one token of each is enough"
    with FaultyServer(says("{}\n\nbecause it is the sum of the two numbers")) as server:
        code, out, _ = try_it(f"chat:m,base_url={server.url}")
    assert code == 0 and recommended(out, label)[2:] == ["--limit", "20", "--parse", "first_token"]
    for words in ("{}", "'{}' because it is the sum", "**{}** because it is the sum"):
        with FaultyServer(says(words)) as server:
            assert label not in try_it(f"chat:m,base_url={server.url}", questions=1, store="none")[1]


def test_nothing_of_a_server_reaches_the_terminal(try_it):
    def plan(asked):
        return Answer(body=completion(f"{letter(asked)} \x1b]0;owned\x07\x1b[2J\x9b31m\u202e"))

    with FaultyServer(plan) as server:
        code, out, err = try_it(f"chat:m,base_url={server.url}", questions=1, whole=True)
    assert code == 0 and all(c == "\n" or c.isprintable() for c in out + err) and "\\x1b]0;owned" in out
    assert out.count('"messages"') == 7  # whole: every request


@pytest.mark.parametrize(
    "answer, says_so",
    [
        (Answer(401, refusal("Incorrect API key \x1b[31mprovided")), "401 Incorrect API key \\x1b[31mprovided"),
        (Answer(404, refusal("The model 'm' does not exist")), "404 The model 'm' does not exist"),
        (Answer(404, b"<html>\nnot\nhere</html>", {"Content-Type": "text/html"}), "404 <html> not here</html>"),
        (Answer(422, {"detail": "no such field"}), "the first 3 prompts failed: 422"),
        (
            Answer(400, refusal("max_tokens=512 cannot be greater than max_model_len=256.")),
            "max_model_len=256. (asked for were 512 tokens; say how many with max_tokens=... behind the respondent)",
        ),
        pytest.param(
            Answer(cut="before"), "the first 3 prompts failed: connection failed", marks=pytest.mark.slow, id="cut"
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_server_that_cannot_be_tried_gets_one_line(try_it, answer, says_so):
    with FaultyServer(lambda asked: answer) as server:
        code, out, err = try_it(f"chat:m,base_url={server.url}")
    assert code == 1 and out == "" and says_so in err
    assert err.startswith("cora try: ") and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "spec, options, says_so",
    [
        ("chat:m,base_url=http://127.0.0.1:9/v1", {}, "m at http://127.0.0.1:9/v1: connection failed"),
        ("chat:", {}, "needs a model"),
        ("oracle", {}, "respondent must be one of"),
        ("causal:nowhere/at/all", {}, "there is no such folder"),
        ("simulated", {"questions": 0}, "questions must be"),
        ("simulated", {"benchmark": "maths"}, "maths"),
        ("simulated", {"template": "corra"}, "corra"),
        ("simulated", {"price": "cheap"}, "price must be two numbers"),
        ("simulated", {"trials": 0}, "trials"),
    ],
    ids=str,
)
def test_a_mistake_gets_one_clear_line(try_it, spec, options, says_so):
    code, out, err = try_it(spec, **options)
    assert code == 1 and out == "" and says_so in err
    assert err.startswith("cora try: ") and len(err.splitlines()) == 1


@pytest.mark.parametrize("spec", ["causal:organism/steady", "likelihood:organism/skewed,adaptation=separate"])
def test_every_kind_of_respondent(try_it, spec):
    code, out, err = try_it(spec, questions=1)
    assert (code, err) == (0, "") and recommended(out)[:2] == ["cora run", spec]
    assert re.search("\n[78] replies: ", out) and "were not counted" not in out


def test_options_that_a_run_has_anyway_are_left_out():
    assert run_options(TryOptions("simulated", questions=3, whole=True, price="1/2")) == {}
    assert run_options(TryOptions("simulated", shuffle_original=True, limit=5)) == {
        "shuffle_original": True,
        "limit": 5,
    }
