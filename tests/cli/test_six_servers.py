"""Six ordinary models behind six servers: the right score at once, or an alarm, and the right score after its cure.

All servers know the same questions. They differ in how they say what they know, as models do. Each is asked through
the real command, with no option but its address and the questions; what the alarm says is typed as it stands.
"""

import csv
import re

import pytest
from faulty_server import Answer, FaultyServer, completion
from helpers import run, slow_after

from cora_nb.core import LETTERS

CAPITALS = {  # country -> its capital, and other cities
    "Australia": ("Canberra", "Sydney", "Melbourne", "Perth"),
    "Canada": ("Ottawa", "Toronto", "Montreal", "Vancouver"),
    "Turkey": ("Ankara", "Istanbul", "Izmir", "Bursa"),
    "Brazil": ("Brasilia", "Sao Paulo", "Recife", "Salvador"),
    "Morocco": ("Rabat", "Casablanca", "Fez", "Tangier"),
}
UNKNOWN = "Morocco"  # the one question that no server knows: four of five are right
RIGHT = "0.80"
THOUGHT = "The first choice is a large city, but is it the capital? Let me go through them one by one. " * 10
LONG_THOUGHT = 1000  # tokens that the fifth model thinks, whatever it is asked
REFUSAL = "I'm sorry, but I can't help with that."


def right_letter(messages):
    "What a model that knows four of five capitals would say."
    asked = messages[-1]["content"]
    choices = re.findall(r"^(?:Choices: )?([A-Z])\. (.*)$", asked, re.MULTILINE)
    country = re.search(r"capital of (\w+)\?", asked)[1]
    letters = {text: letter for letter, text in choices}
    right = letters.get(CAPITALS[country][0]) or letters["None of the above"]
    return right if country != UNKNOWN else next(x for x in LETTERS if x != right)


def said(shape):
    "A server that says the letter in the given way, and stops where its room ends: a word is a token."

    def plan(asked):
        words = shape.replace("X", right_letter(asked.body["messages"])).split(" ")
        room = asked.body["max_tokens"]
        return Answer(body=completion(" ".join(words[:room]), finish_reason="stop" if len(words) <= room else "length"))

    return plan


def reasons_apart(asked):
    "Thinks for a thousand tokens in a field of its own, and says nothing where its room ends before."
    enough = asked.body["max_tokens"] > LONG_THOUGHT
    letter = right_letter(asked.body["messages"]) if enough else ""
    message = {"role": "assistant", "content": letter, "reasoning_content": THOUGHT}
    return Answer(body=completion(message=message, finish_reason="stop" if enough else "length"))


def refuses(asked):
    "Refuses whatever does not come with a system message."
    messages = asked.body["messages"]
    return Answer(body=completion(right_letter(messages) if messages[0]["role"] == "system" else REFUSAL))


READ_AT_ONCE = {
    "a bare letter": "X",
    "a sentence": "The correct answer is **X**.",
    "in quotes": "'X'",
    "after a thought": f"<think>\n{THOUGHT}\n</think>\n\nX",
}


@pytest.fixture
def desk(tmp_path):
    with open(tmp_path / "capitals.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "question", "A", "B", "C", "D", "answer"])
        for i, (country, cities) in enumerate(CAPITALS.items()):
            places = cities[1 : 1 + i % 4] + cities[:1] + cities[1 + i % 4 :]
            rows.writerow([country, f"What is the capital of {country}?", *places, LETTERS[i % 4]])
    return tmp_path


def ask(server, desk, *more):
    "The command with nothing but the address and the questions."
    spec = f"chat:m,base_url={server.url}"
    return run("cora_run", spec, "--benchmark", "capitals", "--path", "capitals.csv", *more, cwd=desk)


def mcqa(out):
    return re.search(r"^ *MCQA +(\S+)", out, re.MULTILINE)[1]


@pytest.mark.slow
@pytest.mark.parametrize("shape", slow_after(1, READ_AT_ONCE.values()), ids=READ_AT_ONCE)
def test_what_ordinary_models_write_is_read_at_once(shape, desk):
    with FaultyServer(said(shape)) as server:
        code, out, err = ask(server, desk)
    assert code == 0 and mcqa(out) == RIGHT and "cannot be read" not in out + err
    assert {a.body["max_tokens"] for a in server.asked} == {512}


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan,kind,help",
    [(reasons_apart, "cut off", "max_tokens=4096"), (refuses, "refused", "system=An exam")],
    ids=["reasoning apart", "refusals"],
)
def test_what_cannot_be_read_raises_an_alarm_and_what_it_names_helps(plan, kind, help, desk):
    with FaultyServer(plan) as server:
        code, out, err = ask(server, desk)
        head = rf"^m: (\d+) of (\d+) replies cannot be read, and count as wrong \((\d+) {kind}\); \d+ of \d+ questions"
        assert code == 0 and mcqa(out) == "0.00"
        while_it_went_on = re.search(head, err, re.MULTILINE)
        assert while_it_went_on.groups() == ("32", "32", "32") and while_it_went_on.start() < err.rindex("100/100")
        assert len(re.findall(head, err, re.MULTILINE)) == 1 and "cannot be read" not in out  # said once
        assert help.partition("=")[0] + "=" in err.rpartition("\n  ")[2]
        fields = f",{help},name=m-{'4096' if kind == 'cut off' else 'system'}"
        spec = f"chat:m,base_url={server.url}{fields}"
        code, out, err = run("cora_run", spec, "--benchmark", "capitals", "--path", "capitals.csv", cwd=desk)
    assert code == 0 and mcqa(out) == RIGHT and "cannot be read" not in out + err
    assert {folder.name for folder in (desk / "responses" / "capitals").iterdir()} == {
        "m",
        "m-4096" if kind == "cut off" else "m-system",
    }
