"""The alarm in the commands: above every table, and as the end of a strict run."""

import json
import re

import pytest
from faulty_server import Answer, FaultyServer, completion
from helpers import stored_replies

from cora_nb.cli.failures import print_alarms
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


def test_a_table_of_a_run_on_disk_has_it_too(desk, capsys):
    with server(REFUSAL) as there:
        cora_run([f"chat:m,base_url={there.url}"], limit=2)
    cora_run(["simulated:name=fine"], limit=2)
    capsys.readouterr()
    cora_table(["responses/math/m", "responses/math/fine"])
    out, err = capsys.readouterr()
    assert heads(out) == [("m", "40", "40")] and out.index("cannot be read") < out.index("MCQA") and err == ""
    assert "a system message" in out and "this was not tried" in out, "named as possible"
    assert "in a shell:" not in out and "in Python:" not in out and "type:" not in out
    cora_table(["responses/math/m"], format="csv")
    out, err = capsys.readouterr()
    assert heads(err) == [("m", "40", "40")] and not heads(out) and out.startswith("group,score")
    cora_table(["responses/math/fine"])
    assert not heads("".join(capsys.readouterr()))


# ---- words


def test_each_remedy_is_shown_once(capsys):
    sun = make_variants([Question("sun", "Where does the sun rise?", ("East", "West"), 0)])
    runs = {name: make_responses(sun, [text] * len(sun), "first_token") for name, text in
            (("a", SENTENCE), ("b", "B"), ("c", SENTENCE), ("d", REFUSAL))}  # fmt: skip
    print_alarms(runs)
    out, err = capsys.readouterr()
    assert [name for name, _, _ in heads(out)] == ["a", "c", "d"] and err == ""
    assert out.count("in Python") == 1 + ("in Python" in out.rpartition("d: ")[2])
    print_alarms(runs, aside=True)
    assert capsys.readouterr() == ("", out)


def test_letters_that_were_not_shown_are_the_models_mistake(desk, capsys):
    "No alarm and nothing to type, and one line below the table."
    with server("J") as there:
        cora_run([f"chat:m,base_url={there.url}"], limit=4)
    out, err = capsys.readouterr()
    assert not heads(out) and not heads(err) and "type:" not in out + err
    assert len(re.findall("80 of the unparsed replies name a letter that was not shown", out)) == 1
    assert out.index("CoRA") < out.index("name a letter that was not shown")


def test_letters_that_were_not_shown_are_counted_by_every_command(desk, capsys):
    line = "of the unparsed replies name a letter that was not shown"
    with server("J") as there:
        cora_run([f"chat:n,base_url={there.url}"], limit=1)
    capsys.readouterr()
    cora_table(["responses/math/n"])
    out, err = capsys.readouterr()
    assert f"20 {line}" in err and line not in out, "the table alone goes where it is sent"


def test_the_bundled_demonstration_raises_no_alarm(desk, capsys):
    cora_run(limit=12, store="none")
    out, err = capsys.readouterr()
    assert not heads(out) and not heads(err) and "type:" not in out + err
    assert out.count("name a letter that was not shown") == 1, "skewed leans on a place, and names it where it is not"


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
    assert heads(out) and "\\x1b]0;owned" in out and "\x1b" not in out + err
