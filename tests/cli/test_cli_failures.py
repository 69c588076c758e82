"""Commands whose prompts fail, or whose respondents give up: what is printed, and the exit status."""

import re
from zlib import crc32

import pytest

from cora_nb.responses.files import read_responses
from faulty_server import Answer, FaultyServer, refusal
from helpers import run

BROKEN = Answer(500, refusal("overloaded"))
WRONG_KEY = Answer(401, refusal("Incorrect API key provided", code="invalid_api_key"))


def words(server, *others, limit=10, name="cora_run"):
    "A command that asks a server, and others."
    asked = f"chat:m,base_url={server.url},concurrency=4,retries=0"
    return [name, asked, *others, "--limit", limit, "--store", "r.sqlite"]


@pytest.mark.slow
def test_a_few_failures_and_how_to_ask_for_the_rest(tmp_path):
    "One prompt in 200 fails: the scores with their bounds, why, how to ask again; then all is well."
    prompts = []

    def plan(asked):
        if asked.prompt not in prompts:
            prompts.append(asked.prompt)
        return BROKEN if prompts.index(asked.prompt) == 77 else Answer()

    with FaultyServer(plan) as server:
        code, out, err = run(*words(server), cwd=tmp_path, OPENAI_API_KEY="none")
        assert code == 3 and "Traceback" not in err and "FailureWarning" not in err
        failed = int(re.search(r"  (\d+) of 200 prompts failed", out)[1])  # equal prompts share a reply
        assert failed in (1, 2) and f"0 unparsed, {failed} failed" in out
        number = f"{failed} {'is' if failed == 1 else 'are'} asked"
        again = f"run the same command again: {200 - failed} replies are kept, {number}"
        assert f"{failed} of 200 prompts failed (500 overloaded, tried 1 times); {again}" in out
        table = run("cora_table", "responses/math/m", cwd=tmp_path)
        assert table[0] == 3 and re.search(r"MCQA\+ +0\.\d\d \(at most 0\.\d\d\d\)", table[1])
        assert f"m: {failed} of 200 failed" in table[1] and f"cora_table: m: {failed} of 200 prompts" in table[2]
        wrong = run("cora_table", "responses/math/m", "--failed", "wrong", cwd=tmp_path)
        assert wrong[0] == 0 and "counted as wrong" in wrong[1] and "at most" not in wrong[1] and wrong[2] == ""
        server.plan, before = (), len(server.asked)
        code, out, _ = run(*words(server), cwd=tmp_path, OPENAI_API_KEY="none")
        assert code == 0 and len(server.asked) == before + 1
        assert "200 replies: 60 right, 140 wrong, 0 unparsed, 0 failed\n" in out and "prompts failed" not in out
        assert read_responses(tmp_path / "responses" / "math" / "m").failed_remarks == ()


@pytest.mark.slow
def test_more_than_one_in_a_hundred_is_no_score(tmp_path):
    "What somebody with a rate-limited key got for an answer: 28% of the prompts scored as wrong, and exit status 0."

    def plan(asked):  # by what is asked, not by when it comes: which originals fail decides what is known
        return BROKEN if crc32(asked.prompt.encode()) % 4 == 1 else Answer()

    with FaultyServer(plan) as server:
        code, out, err = run(*words(server), cwd=tmp_path, OPENAI_API_KEY="none")
        assert code == 3 and "Traceback" not in err
        assert re.search(r"CoRA +– \(from 0\.\d\d\d to 0\.\d\d\d\)", out)
    code, out, _ = run("cora_table", "responses/math/m", cwd=tmp_path)
    assert code == 3 and re.search(r"MCQA\+ +– \(from 0\.\d\d\d to 0\.\d\d\d\)", out)
    code, out, _ = run("cora_table", "responses/math/m", "--failed", "wrong", cwd=tmp_path)
    assert code == 0 and re.search(r"CoRA +0\.\d\d +0\.19\n", out)


@pytest.mark.slow
def test_a_wrong_key_takes_nobody_elses_scores(tmp_path):
    "The one before it and the one after it are in the table; the error is on the other stream; nothing is 0."
    with FaultyServer(lambda asked: WRONG_KEY) as server:
        asked = words(server)
        line = [asked[0], "simulated:name=ann", asked[1], "simulated:name=bob,knows=0.5", *asked[2:]]
        code, out, err = run(*line, cwd=tmp_path, OPENAI_API_KEY="none")
        assert (
            code == 3
            and re.search(r"ann +bob +a guesser\n", out)
            and "ann: 200 replies" in out
            and "bob: 200 replies" in out
        )
        said = [line for line in err.splitlines() if line.startswith("cora_run: ")]
        assert len(said) == 2 and all("401 Incorrect API key provided" in line for line in said), err
        assert "m is not in the table" in said[1] and "Traceback" not in err
        code, out, err = run(*asked, cwd=tmp_path, OPENAI_API_KEY="none")  # alone: no table, one line
        assert code == 1 and out == "" and err.strip().splitlines()[-1].startswith("cora_run: m at http")
        line = [asked[0], asked[1] + ",name=a", asked[1] + ",name=b", *asked[2:]]
        code, out, err = run(*line, cwd=tmp_path, OPENAI_API_KEY="none")
        assert code == 1 and out == "" and err.count("401 Incorrect") == 2


@pytest.mark.slow
def test_a_record_without_these_questions_beside_a_good_one(tmp_path):
    "All prompts of one fail: it is not in the table, and the other is."
    (tmp_path / "mine.csv").write_text("question,A,B,answer\nWhat is 1 + 1?,2,3,A\n")
    assert run("cora_run", "simulated:name=a", "--limit", 2, cwd=tmp_path)[0] == 0
    line = ["recorded:responses/math/a", "simulated:name=b", "--benchmark", "mine", "--path", "mine.csv"]
    code, out, err = run("cora_run", *line, cwd=tmp_path)
    assert code == 3 and "b: 8 replies" in out and "a: 8 replies" not in out
    assert "a is not in the table: all 8 replies failed, the first of them: nothing was recorded" in err
