"""The command `cora_run`, as a user runs it: in another process, reading what is printed."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path

import pytest

from cora_nb.cli.commands import COMMANDS
from cora_nb.cli.run import cora_run
from cora_nb.metrics.scoring import score
from cora_nb.results import lookup
from cora_nb.responses.files import read_responses
from faulty_server import Answer, FaultyServer
from helpers import WITH_TORCH, command, run, slow_after, stored_replies


@pytest.mark.slow
def test_run_without_arguments(organism_run):
    "Both organisms, without a network; a second run with early stopping finds all it needs in the store."
    folder, code, out, err = organism_run
    assert code == 0 and "300 questions, 6000 variants" in out and out.count("6000 replies") == 2 and "100%" in err
    here = folder / "responses" / "math"
    full = {name: read_responses(here / name) for name in ("steady", "skewed")}
    for name in ("MCQA", "BMCA(1.0)", "CoRA"):  # with intervals, and without ranks
        (line,) = [x for x in out.splitlines() if x.startswith(f"{name} ")]
        shown = re.fullmatch(r"\S+ +(\S+) \[\S+, \S+\] +(\S+) \[\S+, \S+\] +0\.\d\d", line)
        assert shown and list(shown.groups()) == [f"{lookup(score(run), name).value:.2f}" for run in full.values()]
    facts = json.loads((here / "steady" / "facts.json").read_text())
    assert facts == full["steady"].facts.plain() and facts["run"]["benchmark"] == "math"
    assert facts["respondent"]["path"] == "organism/steady" and facts["calls"]["asked"] > 5000
    code, out, _ = run("cora_run", "--stop", "cora", "--out", "again", cwd=folder)
    assert code == 0 and "not asked" in out
    for name, responses in full.items():
        again = read_responses(folder / "again" / "math" / name)
        assert again.facts.calls["asked"] == 0
        assert lookup(score(again), "CoRA").value == lookup(score(responses), "CoRA").value


@pytest.mark.slow
def test_a_local_model_answers_once(tmp_path):
    "A language model on this machine: its replies are kept, and early stopping finds them all again."
    pytest.importorskip("transformers")
    from tiny_models import byte_level, save

    save(tmp_path / "model", "llama", byte_level())
    words = ("cora_run", "causal:model,name=tiny", "--limit", 5)
    assert run(*words, cwd=tmp_path)[0] == 0
    full = read_responses(tmp_path / "responses" / "math" / "tiny")
    assert full.facts.calls["asked"] > 0 and full.facts.respondent["fingerprint"]
    assert run(*words, "--stop", "cora", "--out", "again", cwd=tmp_path)[0] == 0
    again = read_responses(tmp_path / "again" / "math" / "tiny")
    assert again.facts.calls["asked"] == 0
    assert lookup(score(again), "CoRA").value == lookup(score(full), "CoRA").value


@pytest.mark.slow
def test_a_run_is_repeatable(tmp_path):
    code, _, _ = run("cora_run", "simulated:name=a", "simulated:name=b", "--limit", 30, cwd=tmp_path)
    a, b = (read_responses(tmp_path / "responses" / "math" / name) for name in "ab")
    assert code == 0 and (a.name, b.name) == ("a", "b")
    assert a.table.drop(columns="respondent").equals(b.table.drop(columns="respondent"))
    assert a.questions.equals(b.questions)


@pytest.mark.slow
def test_a_record_can_be_graded_again(tmp_path):
    assert run("cora_run", "simulated:name=a", "--limit", 5, cwd=tmp_path)[0] == 0
    record = "recorded:responses/math/a"
    code, out, _ = run("cora_run", record, "--limit", 5, "--parse", "last_line", "--out", "b", cwd=tmp_path)
    assert code == 0 and "0 failed" in out
    code, out, _ = run("cora_run", record, "--limit", 6, "--out", "c", cwd=tmp_path)
    assert code == 3 and "20 failed" in out  # the sixth question was never recorded


@pytest.mark.slow
def test_a_dry_run_asks_nobody(tmp_path):
    code, out, err = run("cora_run", "chat:gpt-4o-mini", "--dry", "--price", "1/2", cwd=tmp_path, OPENAI_API_KEY="")
    assert code == 0 and "calls" in out and "cost" in out and not (tmp_path / "responses").exists()


def files(folder):
    "What is on disk, and what it holds."
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_another_run_is_refused_before_anything_is_asked(tmp_path, monkeypatch, capsys):
    "Whatever differs in what is asked; also where only the second of two respondents has been there."
    monkeypatch.chdir(tmp_path)
    cora_run(["simulated:name=a"], limit=3)
    (tmp_path / "words.py").write_text(
        "from cora_nb.prompts.templates import Template\nbare = Template('cora', before_question='')\n"
    )
    before = files(tmp_path)
    for who, options, fact in [
        (["simulated:name=a,seed=1"], {}, "respondent.seed"),
        (["simulated:name=new", "simulated:name=a"], {"seed": 1}, "other seed (0 there, 1 now);"),
        (["simulated:name=a"], {"limit": 4}, "other limit (3 there, 4 now), benchmark.questions (3 there, 4 now)"),
        (["simulated:name=a"], {"seed": 1}, "other seed (0 there, 1 now);"),
        (["simulated:name=a"], {"template": "bare"}, "other template (cora there, bare now);"),
        (["simulated:name=a"], {"template": "words.py:bare"}, "asked.template_hash"),
        (["simulated:name=a"], {"shots": 1}, "other shots (0 there, 1 now)"),
        (["simulated:name=a"], {"trials": 2}, "other trials (1 there, 2 now);"),
        (["simulated:name=a"], {"parse": "last_line"}, "other parse (careful there, last_line now)"),
        (["simulated:name=a"], {"stop": "cora"}, "other stop (none there, cora now), batch (none there, 256 now);"),
        (["simulated:name=a"], {"family": "permutations"}, "other family (cora there, permutations now), "),
    ]:
        capsys.readouterr()
        with pytest.raises(SystemExit, match="responses/math/a: there is another run here already, with other ") as e:
            cora_run(who, **{"limit": 3, **options})
        printed = capsys.readouterr()
        assert fact in str(e.value) and printed.out == "" and "replies" not in printed.err
    assert files(tmp_path) == before
    cora_run(["simulated:name=a"], limit=3)  # the same run is taken up again
    assert files(tmp_path).keys() == before.keys()


def test_prompts_are_made_once_for_all_respondents(tmp_path, monkeypatch):
    from cora_nb.prompts.templates import make_prompts

    monkeypatch.chdir(tmp_path)
    made = []

    def counted(variants, *rest):
        made.append(len(variants))
        return make_prompts(variants, *rest)

    monkeypatch.setattr("cora_nb.runs.asking.make_prompts", counted)
    cora_run(["simulated:name=a", "simulated:name=b"], limit=3)
    assert made == [3 * 20]


MINE = """
from cora_nb.respondents.protocol import Reply
from cora_nb.variants.operators import make_variant

def mirrored(question, seed=0):
    order = tuple(range(question.n_choices))
    yield make_variant(question, "mirrored", "original", 0, order)
    yield make_variant(question, "mirrored", "reversed", 0, order[::-1])

def second_word(reply, choices):
    return "ABCDEFGH".find(reply.split()[1])

class Wordy:
    def __init__(self, wrong=0, name="wordy"):
        self.wrong, self.name = wrong, name
    def describe(self):
        return {"respondent": "wordy", "wrong": self.wrong}
    def request(self, prompt):
        return {"text": prompt.text, **self.describe()}
    async def answer(self, prompts):
        for i, prompt in enumerate(prompts):
            v = prompt.variant
            yield i, Reply("certainly " + v.labels[(v.answer + self.wrong) % v.n_choices])
"""


@pytest.mark.slow
def test_parts_of_a_user_in_a_file(tmp_path):
    "A family, a parsing rule and two respondents by `file.py:name`: used, named in the facts, refused where wrong."
    (tmp_path / "mine.py").write_text(MINE)
    words = ("--family", "mine.py:mirrored", "--parse", "mine.py:second_word", "--limit", 6)
    code, out, err = run("cora_run", "mine.py:Wordy", "mine.py:Wordy,wrong=1,name=liar", *words, cwd=tmp_path)
    assert code == 0 and "6 questions, 12 variants of the family mine.py:mirrored" in out, err
    wordy, liar = (read_responses(tmp_path / "responses" / "math" / name) for name in ("wordy", "liar"))
    assert wordy.table["correct"].all() and not liar.table["correct"].any() and (liar.table["prediction"] >= 0).all()
    assert set(wordy.table["method"]) == {"original", "reversed"}
    assert wordy.facts.asked.parse["mcq"].endswith("second_word") and liar.facts.respondent["wrong"] == 1
    for bad, says in [
        (("mine.py:Silent", "--limit", 1), "mine.py has no 'Silent'"),
        (("mine.py:Wordy,wrong=very", "--limit", 1), "the field wrong of a mine.py:Wordy respondent cannot be 'very'"),
        (("lost.py:Wordy", "--limit", 1), "there is no file lost.py"),
        (("simulated", "--parse", "mine.py:first_word", "--limit", 1), "mine.py has no 'first_word'"),
        (("simulated", "--family", "mine.py:turned", "--limit", 1), "mine.py has no 'turned'"),
        (("simulated", "--template", "mine.py:mirrored", "--limit", 1), "this is not a Template but a function"),
    ]:
        code, out, err = run("cora_run", *bad, cwd=tmp_path)
        assert code == 1 and out == "" and says in err and len(err.strip().splitlines()) == 1


@pytest.mark.slow
def test_names_that_no_folder_can_have(tmp_path):
    code, out, _ = run("cora_run", "simulated:name=lab/a b", "simulated:name=..", "--limit", 1, cwd=tmp_path)
    assert code == 0
    here = tmp_path / "responses" / "math"
    assert sorted(p.name for p in here.iterdir()) == ["lab-a-b", "run"]
    assert read_responses(here / "lab-a-b").name == "lab/a b"


@pytest.mark.slow
def test_names_that_meet_in_one_file_name_are_told_apart(tmp_path):
    "In one command, and in two after one another; each finds its own run again."
    here = tmp_path / "responses" / "math"
    code, out, _ = run("cora_run", "simulated:name=a b", "simulated:name=a-b,seed=1", "--limit", 1, cwd=tmp_path)
    assert code == 0 and sorted(p.name for p in here.iterdir()) == ["a-b", "a-b-c8687a"]
    assert read_responses(here / "a-b").name == "a-b" and read_responses(here / "a-b-c8687a").name == "a b"
    before = files(here)
    for spec in ("simulated:name=a b", "simulated:name=a-b,seed=1", "simulated:name=a:b"):
        assert run("cora_run", spec, "--limit", 1, cwd=tmp_path)[0] == 0
    assert files(here).keys() > before.keys() and len(list(here.iterdir())) == 3
    assert {read_responses(p).name for p in here.iterdir()} == {"a b", "a-b", "a:b"}
    assert {k: v for k, v in files(here).items() if k in before} == before
    code, _, _ = run("cora_run", "simulated:name=x/y", "simulated:name=x y", "--limit", 1, cwd=tmp_path)
    assert code == 0 and len(list(here.iterdir())) == 5


def test_the_installed_scripts_are_those_of_the_settings():
    "Each command is installed, under the name and from the module that `settings.ini` gives."
    settings = ConfigParser(interpolation=None)
    settings.read(Path(__file__).resolve().parents[2] / "settings.ini", encoding="utf-8")
    scripts = dict(line.split("=") for line in settings["DEFAULT"]["console_scripts"].split())
    asked = {f"cora_{name}": address for name, address in COMMANDS.lazy.items()}
    assert scripts == asked | {"cora": "cora_nb.cli.commands:cora_main"}
    for name, target in scripts.items():
        module, function = target.split(":")
        text = (Path(sysconfig.get_path("scripts")) / name).read_text()
        assert f"from {module} import {function}" in text, f"{name}: install the package again"


MISTAKES = [
    (["cora_run", "--benchmark", "maths"], "maths"),
    (["cora_run", "simulated", "--path", "nowhere.csv", "--benchmark", "mine"], "nowhere.csv"),
    (["cora_run", "simulated", "--family", "corra"], "family must be one of"),
    (["cora_run", "oracle"], "respondent must be one of"),
    (["cora_run", "simulated:knows=60"], "knows must be"),
    (["cora_run", "recorded:none.parquet"], "none.parquet: there is no such file"),
    (["cora_run", "chat:"], "needs a model"),
    (["cora_run", "chat:m,concurrency=0"], "concurrency must be"),
    (["cora_run", "causal:nowhere/at-all", "--limit", "1"], "nowhere/at-all" if find_spec("torch") else "needs torch"),
    (["cora_run", "causal:organism/wise"], "organisms are steady and skewed"),
    (["cora_run", "likelihood:organism/steady,adaptation=both"], "adaptation must be one of"),
    (["cora_run", "simulated", "simulated"], "two models are called 'simulated'"),
    (["cora_run", "simulated", "--template", "corra"], "corra"),
    (["cora_run", "simulated", "--parse", "wishful"], "wishful"),
    (["cora_run", "simulated", "--limit", "0"], "limit"),
    (["cora_run", "simulated", "--stop", "soon"], "stop must be"),
    (["cora_run", "simulated", "--trials", "0"], "trials"),
    (["cora_run", "simulated", "--shots", "-1"], "-1"),
    (["cora_run", "simulated", "--out", "no/where"], "there is no folder no"),
    (["cora_run", "simulated", "--split", "tset"], "tset"),
    (["cora_run", "simulated", "--malformed", "ignore"], "ignore"),
    (["cora_run", "simulated", "--digits", "-1"], "digits must be"),
    (["cora_run", "simulated", "--out", "note.txt"], "note.txt: this is a file"),
    (["cora_run", "simulated", "--dry", "--price", "cheap"], "price must be two numbers"),
    (["cora_run", "simulated", "--benchmark", "mine", "--path", "mine.csv", "--shots", "1"], "--pool"),
    (["cora_run", "simulated", "--store", "note.txt", "--limit", "1"], "not a usable store"),
    (["cora_run", "caht:gpt-4o-mini"], "or module:name, got 'caht'"),
    (
        ["cora_run", "simulated", "--benchmark", "mine", "--path", "mine.csv", "--out", "taken"],
        "holds something else (b.txt)",
    ),
    (["cora_run", "recorded:taken"], "taken: there is no run here"),
    (["cora_run", "simulated", "--sample", "301"], "sample must be at most the number of questions, 300, got 301"),
    (["cora_run", "simulated", "--sample", "5", "--limit", "5"], "limit=5 and sample=5 exclude each other"),
    (["cora_run", "simulated", "--subjects", "sums"], "no subject 'sums'"),
    (["cora_run", "simulated", "--existing_nota", "drop"], "existing_nota must be one of keep, skip, warn"),
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    "A folder with a run, files that are none, and a folder that holds something else."
    folder = tmp_path_factory.mktemp("desk")
    (folder / "note.txt").write_text("hello")
    (folder / "fake.xlsx").write_text("hello")
    (folder / "mine.csv").write_text("question,A,B,answer\nWhat is 1 + 1?,2,3,A\n")
    (folder / "taken" / "mine" / "simulated").mkdir(parents=True)
    (folder / "taken" / "mine" / "simulated" / "b.txt").write_text("mine")
    assert run("cora_run", "simulated:name=a", "--limit", 2, cwd=folder)[0] == 0
    os.rename(folder / "responses" / "math" / "a", folder / "a")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "words,says", slow_after(3, MISTAKES), ids=lambda x: " ".join(x) if isinstance(x, list) else None
)
def test_a_mistake_gets_one_clear_line(desk, words, says):
    code, out, err = run(*words, cwd=desk)
    assert code == 1 and "Traceback" not in err
    assert all(line.startswith(("mine: 1 question", "first: ")) for line in out.splitlines())  # what was read
    assert says in err and len(err.strip().splitlines()) == 1 and err.startswith(words[0] + ": ")


@pytest.mark.slow
def test_misspelt_options_end_with_code_2(desk):
    code, _, err = run("cora_run", "simulated", "--limits", "3", cwd=desk)
    assert code == 2 and "--limits" in err and "Traceback" not in err


@pytest.mark.slow
def test_a_run_in_which_nothing_was_answered_is_no_result(desk):
    code, out, err = run("cora_run", "recorded:a", "--benchmark", "mine", "--path", "mine.csv", "--out", "z", cwd=desk)
    assert code == 1 and "Baselines" not in out and "Traceback" not in err
    assert "all 8 replies failed, the first of them: nothing was recorded" in err


@pytest.mark.slow
def test_what_is_there_stays_there(desk, tmp_path):
    "Neither a file, nor a pipe, nor a folder that holds something else is replaced by accident; a link is followed."
    here = tmp_path / "responses" / "math"
    here.mkdir(parents=True)
    os.mkfifo(here / "pipe")
    (here / "text").write_text("mine")
    (here / "other").mkdir()
    (here / "other" / "facts.json").write_text("{}")
    (tmp_path / "real").mkdir()
    (here / "link").symlink_to("../../real")
    for name, says in (("pipe", "this is a file"), ("text", "this is a file"), ("other", "left alone")):
        code, _, err = run("cora_run", f"simulated:name={name}", "--limit", 2, cwd=tmp_path)
        assert code == 1 and says in err
    assert (here / "pipe").is_fifo() and (here / "text").read_text() == "mine"
    assert (here / "other" / "facts.json").read_text() == "{}" and len(list((here / "other").iterdir())) == 1
    assert run("cora_run", "simulated:name=link", "--limit", 3, cwd=tmp_path)[0] == 0
    assert (here / "link").is_symlink() and len(read_responses(tmp_path / "real")) == 60
    assert sorted(p.name for p in here.iterdir()) == ["link", "other", "pipe", "text"]


@pytest.mark.guard
@pytest.mark.slow
def test_ctrl_c_is_one_line(desk):
    "Interrupted once its progress bar shows. The shell around the tests may have its children ignore interrupts."
    done = subprocess.Popen(
        command("cora_run", "simulated", "--trials", "20", "--out", "slow"),
        cwd=desk,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    seen = b""
    while b"replies" not in seen:
        seen += (more := done.stderr.read(1))
        assert more, seen
    done.send_signal(signal.SIGINT)
    _, err = done.communicate(timeout=WITH_TORCH)
    assert done.returncode == 1 and b"Traceback" not in err and b"cora_run: interrupted" in err
    assert not (desk / "slow").exists()


def asking(folder, *words, **options):
    "The words of a command that asks a server, with a store in this folder."
    return ("cora_run", *words, "--limit", "4", "--store", folder / "r.sqlite")


@pytest.mark.slow
def test_the_command_says_what_came_from_the_store(tmp_path):
    with FaultyServer() as server:
        words = asking(tmp_path, f"chat:m,base_url={server.url}")
        first = run(*words, cwd=tmp_path)
        asked = len(server.asked)
        second = run(*words, cwd=tmp_path)
        assert first[0] == second[0] == 0 and len(server.asked) == asked, (first, second)
        third = run(*words[:-2], "--store", "none", cwd=tmp_path)
        assert len(server.asked) == 2 * asked
    path = tmp_path / "r.sqlite"
    assert f"\n  {asked} asked, 0 from {path}\n" in first[1]
    assert f"\n  0 asked, {asked} from {path} (--store none asks again)\n" in second[1]
    assert " asked, " not in third[1] and third[0] == 0
    score = [out.split("\n\nm: ")[0] for _, out, _ in (first, second, third)]
    assert len(set(score)) == 1


@pytest.mark.guard
@pytest.mark.slow
def test_ctrl_c_says_what_is_kept(tmp_path):
    "After the n-th reply; the same command then asks only for the rest."
    with FaultyServer(lambda asked: Answer(wait=0.05 if asked.number < 20 else 0.3)) as server:
        words = asking(tmp_path, f"chat:m,base_url={server.url},concurrency=2")
        done = subprocess.Popen(
            command(*words),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        while stored_replies(tmp_path / "r.sqlite") < 10:
            assert done.poll() is None, done.communicate()
            time.sleep(0.001)
        done.send_signal(signal.SIGINT)
        _, err = done.communicate(timeout=WITH_TORCH)
        kept = stored_replies(tmp_path / "r.sqlite")
        last = err.decode().strip().splitlines()[-1]
        path = tmp_path / "r.sqlite"
        assert last.endswith(f"interrupted; {kept} new replies are kept in {path}: the same command goes on from there")
        assert done.returncode == 1 and "Traceback" not in err.decode() and kept >= 10
        server.plan, before = (), len(server.asked)
        code, out, _ = run(*words, cwd=tmp_path)
        assert code == 0 and f"{len(server.asked) - before} asked, {kept} from" in out


HEAVY = ("torch", "transformers", "datasets", "openai", "matplotlib", "seaborn", "scipy.stats", "sklearn")


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    slow_after(
        2,
        [
            "cora_nb",
            "cora_nb.cli.run",
            "cora_nb.metrics.cora",
            "cora_nb.metrics.guessing",
            "cora_nb.report.present",
            "cora_nb.report.tables",
            "cora_nb.variants.families",
            "cora_nb.respondents.chat",
            "cora_nb.respondents.local",
            "cora_nb.respondents.causal",
            "cora_nb.respondents.likelihood",
            "cora_nb.cli.table",
            "cora_nb.cli.paper",
            "cora_nb.cli.respondents",
        ],
    ),
)
def test_imports_stay_light(module):
    code = f"import sys, {module}; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split() == []


# ---------------------------------------------------------------- which questions


def nota_file(folder):
    "Forty questions of two subjects; the right choice of all is B, and three have a None of the above of their own."
    lines = ["question,A,B,C,answer,subject"]
    lines += [
        f"Which is {i}?,x,y,{'None of these' if i < 3 else 'z'},B,{'odd' if i % 2 else 'even'}" for i in range(40)
    ]
    (folder / "mine.csv").write_text("\n".join(lines) + "\n")
    return "--benchmark", "mine", "--path", "mine.csv"


@pytest.mark.slow
def test_a_sample_is_repeatable_printed_and_kept_in_the_facts(tmp_path):
    words = ("cora_run", "simulated", *nota_file(tmp_path), "--shuffle_original")
    some = (*words, "--sample", 10, "--seed", 4, "--subjects", "odd", "--existing_nota", "skip")
    code, out, err = run(*some, cwd=tmp_path)
    chosen = "subjects odd; a random sample, seed 4; without those that have a None of the above of their own; choices"
    assert (
        code == 0 and f"mine: 10 questions ({chosen} in random order, seed 4), 140 variants of the family cora" in out
    )
    run_facts = json.loads((tmp_path / "responses" / "mine" / "simulated" / "facts.json").read_text())["run"]
    assert (
        run_facts.items()
        >= dict(sample=10, seed=4, subjects="odd", existing_nota="skip", shuffle_original=True).items()
    )
    assert err.splitlines()[0] == (
        "cora_run: mine: left out 1 of 20 questions with a choice like 'None of the above' of their own"
    )
    assert run(*some, cwd=tmp_path)[:2] == (0, out)  # the same questions: the same run
    code, _, err = run(*words, "--sample", 10, cwd=tmp_path)
    assert code == 1 and "there is another run here already" in err
    code, out, _ = run(*some, "--dry", cwd=tmp_path)
    assert code == 0 and f"\nmine: 10 questions ({chosen}" in out


@pytest.mark.slow
def test_what_decides_scores_unseen_is_said_on_the_error_stream(tmp_path):
    words = ("cora_run", "simulated", *nota_file(tmp_path))
    code, out, err = run(*words, cwd=tmp_path)
    assert code == 0 and "None of the above" not in out and "RIGHT CHOICE" not in out
    said = [line for line in err.splitlines() if line.startswith("cora_run: mine: ")]
    assert len(said) == 2 and "3 of 40 questions have a choice like 'None of the above'" in said[0]
    assert "THE RIGHT CHOICE IS B IN 40 OF 40 QUESTIONS" in said[1] and "BenchmarkWarning" not in err
    facts = json.loads((tmp_path / "responses" / "mine" / "simulated" / "facts.json").read_text())
    assert not {"sample", "subjects", "existing_nota", "shuffle_original"} & facts["run"].keys()
    code, again, err = run(*words, "--existing_nota", "keep", cwd=tmp_path)  # the same questions: the same run
    assert (code, again) == (0, out) and "None of the above" not in err


@pytest.mark.slow
def test_the_bundled_benchmark_comes_without_a_warning(tmp_path):
    code, _, err = run("cora_run", "simulated", cwd=tmp_path)
    assert code == 0 and "cora_run:" not in err and "Warning" not in err
