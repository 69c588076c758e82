"The command that makes tables and figures of the papers."

import re
import os
import signal
import subprocess
from collections import Counter

import pytest
from faulty_server import Answer, FaultyServer, completion
from helpers import command, kill_at_reply, slow_after
from helpers import run as run_command

from cora_nb.cli.paper import cora_paper
from cora_nb.papers.reproduce import PLANS, load_plan, parse_plan
from cora_nb.responses.files import read_responses

ANN = "simulated,knows=0.8,name=ann"


def run(capsys, *words, **options):
    "What the command prints."
    cora_paper(list(words), **options)
    return capsys.readouterr().out


def test_the_list_names_every_item(capsys):
    out = run(capsys, list=True)
    for paper in ("cora", "mcqa_plus", "quadruple_slit", "li2024"):
        for name, item in load_plan(paper).items.items():
            assert f"{paper}/{name}" in out and item.about in out
    assert run(capsys) == out  # nothing named: the same


def test_a_table_is_printed_with_what_differs_and_written(capsys, tmp_path):
    out = run(capsys, "cora/table_2", ANN, sample=4, benchmark="math", out=str(tmp_path / "papers"))
    assert "cora/table_2: MMLU, 5 examples" in out and "Gran (paper)" in out and "ann" in out
    assert "- Here: 4 questions of each benchmark, drawn at random." in out
    assert "all 14,042 of the benchmark have 4" in out
    folder = tmp_path / "papers" / "cora_sample_4_math"
    assert (folder / "table_2.txt").read_text(encoding="utf-8").strip() in out
    taken = read_responses(folder / "runs" / "mmlu" / "ann")
    assert len(taken.questions) == 4 and taken.facts.run.plan["shots"] == 5
    assert "respondent" in (folder / "table_2.csv").read_text(encoding="utf-8").splitlines()[0]
    assert run(capsys, "cora/table_2", ANN, sample=4, benchmark="math", out=str(tmp_path / "papers")) == out


def test_steps_lie_in_folders_of_their_own(capsys, tmp_path):
    run(capsys, "mcqa_plus/table_3", ANN, sample=3, benchmark="math", out=str(tmp_path))
    runs = tmp_path / "mcqa_plus_sample_3_math" / "runs" / "medmcqa_5" / "ann"
    assert sorted(p.name for p in runs.iterdir()) == ["mcqa_plus", "nota_answer"]


def test_a_plan_is_printed_changed_and_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = run(capsys, "cora/table_4", plan=True)
    assert parse_plan(text) == load_plan("cora/table_4")
    changed = text.replace('benchmark = "truthfulqa"', 'benchmark = "math"\nsample = 3')
    (tmp_path / "mine.toml").write_text(changed, encoding="utf-8")
    out = run(capsys, "mine.toml", ANN)
    assert "cora/table_4" in out and (tmp_path / "papers" / "cora" / "table_4.csv").is_file()


def test_dry_asks_nobody(capsys, tmp_path):
    out = run(capsys, "cora/table_1", ANN, sample=4, benchmark="math", dry=True, out=str(tmp_path / "papers"))
    assert "medqa ann" in " ".join(out.split()) and not (tmp_path / "papers").exists()


def test_a_recorded_run_is_measured_as_it_is(capsys, tmp_path):
    run(capsys, "cora/table_4", ANN, sample=5, benchmark="math", out=str(tmp_path))
    folder = tmp_path / "cora_sample_5_math" / "runs" / "truthfulqa" / "ann"
    out = run(capsys, "cora/table_1", f"recorded:{folder},name=before", out=str(tmp_path / "again"))
    assert "before" in out and not (tmp_path / "again" / "cora" / "runs").exists()


@pytest.mark.parametrize(
    "words, said",
    [
        (["cora/table_8", ANN], "cora has no item 'table_8'"),
        (["cora/table_1", ANN, ANN], "two models are called 'ann'"),
        (["quadruple_slit/figure_2", ANN], "name them as likelihood:PATH"),
        (["cora/table_1", "recorded:nowhere"], "nowhere"),
        (["no.toml"], "no.toml: there is no such file"),
        (["cora/table_1", "paper:mistral-7b"], "name one: causal:mistralai/Mistral-7B-v0.1 or causal:"),
        (["cora/table_1", "paper:llama2-13b"], "llama2-13b need not be the same model in each paper"),
        (["mcqa_plus/table_2", "paper:llama2-13b"], "the paper leaves open base or chat"),
        (["quadruple_slit/figure_2", "paper:llama-7b"], "name one: likelihood:huggyllama/llama-7b"),
    ],
)
def test_what_is_wrong_is_one_line(words, said, tmp_path):
    with pytest.raises(SystemExit) as e:
        cora_paper(words, sample=2, benchmark="math", out=str(tmp_path))
    assert said in str(e.value) and "\n" not in str(e.value)


FAULTY = """
from cora_nb.core import CoraError
from cora_nb.respondents.protocol import Reply


class Faulty:
    "Answers B; in `few` of a hundred prompts not at all; has no key where there are examples; or talks."

    def __init__(self, few: int = 0, shots: bool = True, says: str = "B", name: str = "faulty"):
        self.few, self.shots, self.says, self.name = few, shots, says, name

    def describe(self):
        return {"respondent": self.name, "few": self.few, "says": self.says}

    def request(self, prompt):
        return {"text": prompt.text}

    async def answer(self, prompts):
        if not self.shots and prompts[0].text.count("Answer:") > 1:
            raise CoraError("no key")
        for i, _ in enumerate(prompts):
            yield i, Reply(None, error="server is down") if i % 100 < self.few else Reply(self.says)
"""


@pytest.fixture
def faulty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "faulty.py").write_text(FAULTY)
    return "faulty.py:Faulty"


def ends(capsys, *words, code=3, **options):
    "What a command prints that does not end well."
    with pytest.raises(SystemExit) as e:
        cora_paper(list(words), benchmark="math", store="none", **options)
    assert e.value.code == code or code is None
    return str(e.value.code), *capsys.readouterr()


@pytest.mark.slow
def test_one_respondents_failure_takes_nobody_elses_table_away(capsys, faulty):
    _, out, err = ends(capsys, "mcqa_plus/table_4", f"{faulty},shots=false", ANN, sample=3)
    assert "cora_paper: faulty, run mmlu_5: no key" in err and "faulty, run medmcqa_5 is not in the table" in err
    table = out[out.index("mcqa_plus/table_4:") :].partition("papers/")[0]
    assert "ann" in table and "faulty" not in table


@pytest.mark.slow
def test_a_run_that_fails_takes_no_other_item_away(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, out, err = ends(capsys, "li2024", ANN, sample=5)
    assert "run states_arc reads hidden states" in err
    assert "li2024/table_3: Two orders" in out and "li2024/table_6: not made" in out
    assert (tmp_path / "papers" / "li2024_sample_5_math" / "table_4.csv").is_file()


@pytest.mark.slow
def test_failed_prompts_are_said_and_counted_as_wrong_if_wished(capsys, faulty):
    words = ["cora/table_1", f"{faulty},few=10", ANN]
    _, out, _ = ends(capsys, *words, sample=12)
    assert "prompts failed (server is down)" in out
    _, wrong, _ = ends(capsys, *words, sample=12, failed="wrong")
    assert "– (from " in out and "– (from " not in wrong and re.search(r"0\.17 \[[^]]*\] \(2\)", wrong)


def test_failed_prompts_and_a_store(capsys, faulty, tmp_path):
    "What is kept is said after the store is closed."
    with pytest.raises(SystemExit) as e:
        cora_paper(["cora/table_1", f"{faulty},few=10"], sample=5, benchmark="math", store=str(tmp_path / "r.sqlite"))
    assert e.value.code == 3 and re.search(r"run the same command again: \d+ replies are kept", capsys.readouterr().out)


def test_nobody_answers(capsys, faulty):
    said, out, _ = ends(capsys, "cora/table_1", f"{faulty},few=100", sample=3, code=None)
    assert "replies failed, the first of them: server is down" in said and not out


@pytest.mark.slow
def test_replies_that_cannot_be_read_are_said_while_the_run_goes_on(capsys, faulty):
    talker = f"{faulty},says=The answer is B,name=talker"
    cora_paper(["cora/table_1", talker, ANN], sample=4, benchmark="math", store="none")
    head = capsys.readouterr().err  # said while the run goes on, once
    assert "talker, medqa: " in head and "replies cannot be read, and count as wrong" in head
    typed = next(line for line in head.splitlines() if line.startswith("  read by "))
    rule = typed.split("--parse ")[1].split()[0]
    again = run(capsys, "cora/table_1", talker, ANN, sample=4, benchmark="math", store="none", parse=rule)
    assert "cannot be read" not in again and f"- Here: the rule {rule} in place of the paper's." in again


def test_strict_stops_there(capsys, faulty):
    talker = f"{faulty},says=The answer is B,name=talker"
    said, out, _ = ends(capsys, "cora/table_1", talker, sample=4, strict=True, code=None)
    assert "cannot be read" in said and "cora/table_1" not in out
    _, out, err = ends(capsys, "cora/table_1", talker, ANN, sample=4, strict=True)
    assert "talker, run medqa is not in the table" in err and "ann" in out


def test_a_run_repeats_itself_from_its_facts(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = run(capsys, "cora/table_4", ANN, sample=3, benchmark="math")
    facts = tmp_path / "papers" / "cora_sample_3_math" / "runs" / "truthfulqa" / "ann" / "facts.json"
    cora_paper.typed(["--config", str(facts)])
    assert capsys.readouterr().out == first


def says(asked) -> Answer:
    "The same answer to the same prompt, after a moment."
    return Answer(body=completion("ABCD"[sum(asked.prompt.encode()) % 4]), wait=0.002)


@pytest.mark.guard
@pytest.mark.slow
def test_killed_in_the_middle_it_ends_with_the_same_table(tmp_path):
    "SIGKILL in the third of the steps: what was stored is not asked again, and the table is that of a whole run."
    at_once = 4
    with FaultyServer(says) as server:

        def words(out, store):
            who = f"chat:m,base_url={server.url},concurrency={at_once},max_tokens=1"
            size = ("--sample", "5", "--benchmark", "math", "--store", tmp_path / store, "--out", tmp_path / out)
            return ("cora_paper", "mcqa_plus/table_3", who, *size)

        env = {**os.environ, "OPENAI_API_KEY": "none", "XDG_CACHE_HOME": str(tmp_path)}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        first = subprocess.Popen(command(*words("killed", "r.sqlite")), cwd=tmp_path, env=env, **quiet)
        kept = kill_at_reply(first.pid, tmp_path / "r.sqlite", 110, lambda: first.poll() is None)
        assert first.wait() == -signal.SIGKILL and not list((tmp_path / "killed").glob("*/table_3.txt"))
        before = len(server.asked)
        assert kept <= before <= kept + at_once
        code, out, err = run_command(*words("killed", "r.sqlite"), cwd=tmp_path, OPENAI_API_KEY="none")
        assert code == 0 and "ChatGPT 3.5 (paper)" in out, err
        asked = Counter(str(a.body["messages"]) for a in server.asked)
        assert len(server.asked) - len(asked) <= at_once and max(asked.values()) <= 2
        code, whole, _ = run_command(*words("whole", "other.sqlite"), cwd=tmp_path, OPENAI_API_KEY="none")
        assert code == 0 and len(server.asked) > 2 * len(asked) - 1
    for kind in ("csv", "txt"):  # what is printed besides are the folders and the stores
        files = [next((tmp_path / name).glob(f"*/table_3.{kind}")).read_text("utf-8") for name in ("killed", "whole")]
        assert files[0] == files[1] and (kind == "csv" or all(files[0].strip() in screen for screen in (out, whole)))


@pytest.mark.slow
@pytest.mark.parametrize("paper", slow_after(1, sorted(PLANS)))
def test_every_item_at_its_smallest_size_through_the_command(paper, capsys, tmp_path):
    "All of a paper at once, as a user types it: each item is printed, named and written with its figures."
    people = {
        "cora": [ANN],
        "mcqa_plus": [ANN + ",with_scores=true", "simulated,knows=0.2,name=bob,with_scores=true"],
        "quadruple_slit": ["likelihood:organism/steady,device=cpu"],
        "li2024": ["causal:organism/steady,device=cpu"],
    }[paper]
    n = 2 if paper in ("cora", "mcqa_plus") else 6  # lengths have to differ, and five folds need five questions
    out = run(capsys, paper, *people, sample=n, benchmark="math", store=str(tmp_path / "r.sqlite"), out=str(tmp_path))
    folder = tmp_path / f"{paper}_sample_{n}_math"
    for name, item in load_plan(paper).items.items():
        text = (folder / f"{name}.txt").read_text(encoding="utf-8")
        assert text.startswith(f"{paper}/{name}: {item.about}") and text.strip() in out
        assert (f"Here: {n} questions" in text) == bool(item.runs)
        assert (folder / f"{name}.csv").stat().st_size > 100
        assert bool(list(folder.glob(f"{name}*.png"))) == name.startswith("figure"), name
