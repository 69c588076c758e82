"""The command `cora_try`: what it prints, and what it says where nothing can be tried."""

import json
import re
from dataclasses import replace

import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.cli.run import cora_try
from cora_nb.runs.evaluate import try_respondent
from faulty_server import Answer, FaultyServer, completion, refusal

RIGHT = {q.text: q.choices[q.answer] for q in math_benchmark()}


def letter(asked):
    "What a model that knows all sums would choose."
    text = asked.body["messages"][-1]["content"]
    shown = {choice: name for name, choice in re.findall(r"(?m)^(?:Choices: )?([A-Z])\. (.*)$", text)}
    return shown.get(RIGHT[re.findall(r"(?m)^Question: (.*)$", text)[-1]]) or shown["None of the above"]


@pytest.fixture
def try_it(tmp_path, monkeypatch, capsys):
    "The command within this process, in a folder of its own: output and errors."
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")

    def tried(spec, **options):
        said = None
        try:
            cora_try(spec, **options)
        except SystemExit as e:
            said = str(e)
        return said, *capsys.readouterr()

    return tried


def test_what_is_printed(try_it, tmp_path):
    "The very body that is sent, each reply, what is read, and what the full run would take; nothing is kept."
    with FaultyServer(lambda asked: Answer(body=completion(f"The answer is **{letter(asked)}**."))) as server:
        said, out, err = try_it(f"chat:m,base_url={server.url}", price="1/2")
    assert (said, err) == (None, "")
    sent = out.split("\n\n")[1].splitlines()
    body = json.loads("\n".join(x.removeprefix("    | ") for x in sent[1:]))
    assert body in [asked.body for asked in server.asked] and "sk-0123" not in out  # many at once, in any order
    assert len(server.asked) <= out.count("RIGHT") == out.count("| The answer is **") == 20
    assert "20 replies: 20 right" in out
    assert re.search(r"RIGHT  math-0-1, the original: right is B, read as B\n", out)
    last = dict(line.split(maxsplit=1) for line in out.splitlines()[-4:])
    assert last["calls"] == "5,343" and last["money"].startswith("about ") and "minutes" in last["time"]
    assert not list(tmp_path.iterdir()), "nothing is stored"


def test_none_of_the_above_in_other_words(try_it):
    with FaultyServer(lambda asked: Answer(body=completion("A"))) as server:
        said, _, _ = try_it(f"chat:m,base_url={server.url}", questions=2, nota="以上都不对")
    sent = " ".join(asked.body["messages"][-1]["content"] for asked in server.asked)
    assert said is None and "以上都不对" in sent and "None of the above" not in sent


def test_replies_that_cannot_be_read_come_with_what_would_read_them(try_it):
    with FaultyServer(lambda asked: Answer(body=completion(f"The answer is {letter(asked)}."))) as server:
        _, out, _ = try_it(f"chat:m,base_url={server.url}", parse="first_token", questions=2)
    assert "10 of 10 replies cannot be read" in out and "read by careful, last_line: --parse careful" in out


def test_nothing_of_a_server_reaches_the_terminal(try_it):
    evil = " \x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
    with FaultyServer(lambda asked: Answer(body=completion(f"{letter(asked)}.\n{evil}"))) as server:
        _, out, err = try_it(f"chat:m,base_url={server.url}", questions=1)
    assert all(c == "\n" or c.isprintable() for c in out + err) and "\\x1b]0;owned" in out


def test_the_minutes_are_those_of_the_calls_at_the_rate_seen(try_it, monkeypatch):
    slow = lambda *given, **more: replace(try_respondent(*given, **more), seconds=60.0)  # noqa: E731
    monkeypatch.setattr("cora_nb.cli.run.try_respondent", slow)
    with FaultyServer(lambda asked: Answer(body=completion(letter(asked)))) as server:
        _, out, _ = try_it(f"chat:m,base_url={server.url}", limit=20, questions=1)
    calls = int(re.search(r"calls +([\d,]+)", out)[1].replace(",", ""))
    assert calls > 100 and "8 replies: " in out and f"about {calls / 8:,.1f} minutes" in out


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["causal:organism/steady", "likelihood:organism/skewed,adaptation=separate"])
def test_models_on_this_machine(try_it, spec):
    pytest.importorskip("torch", reason="torch is not installed")
    said, out, err = try_it(spec, questions=1)
    assert (said, err) == (None, "") and re.search("\n[78] replies: ", out) and "the full run would take" in out


@pytest.mark.parametrize(
    "answer,says", [(Answer(401, refusal("Incorrect API key")), "401"), (Answer(500, refusal("broken")), "broken")]
)
def test_a_server_that_cannot_be_tried_gets_one_line(try_it, answer, says):
    with FaultyServer(lambda asked: answer) as server:
        said, out, _ = try_it(f"chat:m,base_url={server.url}", questions=1)
    assert said.startswith("cora_try: ") and says in said and "\n" not in said


def test_a_mark_after_a_thought_can_be_named(try_it, monkeypatch):
    from cora_nb.prompts import replies

    monkeypatch.setattr(replies, "THOUGHTS", dict(replies.THOUGHTS))
    with FaultyServer(lambda asked: Answer(body=completion(f"The answer is Z? {{done}} {letter(asked)}"))) as server:
        _, out, _ = try_it(f"chat:m,base_url={server.url}", think_end="{done}", questions=1)
    assert "8 replies: 8 right" in out


def test_the_forecast_is_of_what_was_asked_and_not_of_what_the_store_had(try_it, tmp_path):
    with FaultyServer(lambda asked: Answer(body=completion(letter(asked)))) as server:
        for questions in (2, 5):  # 9 tokens read and 1 written for each request
            _, out, _ = try_it(f"chat:m,base_url={server.url}", questions=questions, store=str(tmp_path / "s.sqlite"))
            calls = int(re.search(r"calls +([\d,]+)", out)[1].replace(",", ""))
            assert f"about {9 * calls:,} read, about {calls:,} written" in out
