"""Unread replies in the commands: above every table, and as the end of a strict run."""

import json
import re

import pytest
from faulty_server import Answer, FaultyServer, completion
from helpers import stored_replies

from cora_nb.cli.failures import print_unread
from cora_nb.cli.run import cora_run
from cora_nb.cli.table import cora_table
from cora_nb.responses.files import write_responses
from cora_nb.responses.responses import make_responses
from cora_nb.variants.families import make_variants
from cora_nb.core import Question

REFUSAL, SENTENCE = "I'm sorry, but I can't help with that.", "The correct answer is **B**."


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def server(text):
    return FaultyServer(lambda asked: Answer(body=completion(text)))


def heads(screen):
    return re.findall(
        r"^(.*): (\d+) of (\d+) replies cannot be read", re.sub("\r|\x1b\\[A", "\n", screen), re.MULTILINE
    )


def test_strict_stops_the_run_with_one_line_and_the_replies_in_the_store(desk, capsys):
    with server(REFUSAL) as there:
        with pytest.raises(SystemExit) as e:
            cora_run([f"chat:m,base_url={there.url}", "simulated"], limit=5, strict=True)
    out, err = capsys.readouterr()
    assert out == "" and heads(err) == [("m", "32", "32")]
    assert re.fullmatch(r"cora_run: m: 32 of 32 replies cannot be read.*: stopped, as strict asks for.*", e.value.code)
    kept = stored_replies(desk / "cora_nb" / "replies.sqlite")
    assert 20 <= kept <= len(there.asked) < 89 and not (desk / "responses").exists()
    with server(REFUSAL) as there:  # another server: nothing of the first
        cora_run([f"chat:m,base_url={there.url}"], limit=1, store="none")
    out, err = capsys.readouterr()
    assert heads(err) == [("m", "20", "20")] and not heads(out), "judged at its end, and printed once"


def test_strict_lets_a_run_that_can_be_read_go_on(capsys):
    cora_run(["simulated:knows=0"], limit=5, strict=True)
    out, err = capsys.readouterr()
    assert "MCQA" in out and "cannot be read" not in out + err


@pytest.mark.slow
def test_a_table_of_a_run_on_disk_has_it_too(desk, capsys):
    with server(REFUSAL) as there:
        cora_run([f"chat:m,base_url={there.url}"], limit=2)
    cora_run(["simulated:name=fine"], limit=2)
    capsys.readouterr()
    cora_table(["responses/math/m", "responses/math/fine"])
    out, err = capsys.readouterr()
    assert heads(out) == [("m", "40", "40")] and out.index("cannot be read") < out.index("MCQA") and err == ""
    assert "the model refuses: system=" in out
    cora_table(["responses/math/m"], format="csv")
    out, err = capsys.readouterr()
    assert heads(err) == [("m", "40", "40")] and not heads(out) and out.startswith("respondent,")
    cora_table(["responses/math/fine"])
    assert not heads("".join(capsys.readouterr()))


# ---- words


def test_each_run_has_its_own(capsys):
    sun = make_variants([Question("sun", "Where does the sun rise?", ("East", "West"), 0)])
    runs = {name: make_responses(sun, [text] * len(sun), "first_token") for name, text in
            (("a", SENTENCE), ("b", "B"), ("c", SENTENCE), ("d", REFUSAL))}  # fmt: skip
    print_unread(runs)
    out, err = capsys.readouterr()
    assert [name for name, _, _ in heads(out)] == ["a", "c", "d"] and err == ""
    print_unread(runs, aside=True)
    assert capsys.readouterr() == ("", out)


def test_letters_that_were_not_shown_are_wrong_answers(desk, capsys):
    with server("J") as there:
        cora_run([f"chat:m,base_url={there.url}"], limit=4)
    out, err = capsys.readouterr()
    assert not heads(out) and not heads(err) and "80 replies: 0 right, 80 wrong" in out


@pytest.mark.slow
def test_the_bundled_demonstration_raises_no_alarm(desk, capsys):
    cora_run(limit=12, store="none")
    out, err = capsys.readouterr()
    assert not heads(out) and not heads(err)


def test_a_rule_named_in_facts_does_not_reach_the_terminal(desk, capsys):
    "Facts may come from a stranger: the name of their rule is shown escaped (case runs/07)."
    cora_run(["simulated:name=fine"], limit=2)
    facts = json.loads((desk / "responses/math/fine/facts.json").read_text())
    facts["asked"]["parse"]["mcq"] = "x\x1b]0;owned\x07\x1b[2J"
    sun = make_variants([Question("sun", "Where does the sun rise?", ("East", "West"), 0)])
    run = make_responses(sun, ["???"] * len(sun), name="theirs")
    write_responses(run.with_facts({"asked": {"parse": facts["asked"]["parse"]}}), desk / "theirs")
    capsys.readouterr()
    cora_table([str(desk / "theirs")])
    out, err = capsys.readouterr()
    assert heads(out) and "\x1b" not in out + err
