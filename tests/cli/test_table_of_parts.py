"""`cora table` on a folder of parts: the table of the run itself, its lines and exit status; other commands refuse."""

import pytest

from cora_nb.cli.commands import COMMANDS
from cora_nb.core import Question
from cora_nb.respondents.protocol import OVER_BUDGET, Reply
from cora_nb.responses.files import write_responses
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.variants.families import make_variants

VARIANTS = make_variants([Question(f"q{i}", f"Number {i}?", ("a", "b", "c"), i % 3, f"s{i % 2}") for i in range(30)])


@pytest.fixture
def run(capsys, monkeypatch):
    "Runs a command in a folder; returns its exit code, output and errors."

    def in_folder(name, *words, cwd):
        monkeypatch.chdir(cwd)
        status = 0
        try:
            COMMANDS[name.removeprefix("cora ")].typed([str(word) for word in words])
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
            said = "" if isinstance(end.code, int) else f"{end.code}\n"  # Python prints it on the error stream
            out, err = capsys.readouterr()
            return status, out, err + said
        return (status, *capsys.readouterr())

    return in_folder


def made(replies, failed=0, lost=Reply(error="timed out"), trials=(0,)):
    "A run that gives these replies in turn, and has none to some prompts."
    rows = [(v, t) for v in VARIANTS for t in trials]
    without = [bool(failed) and i % failed == failed - 1 for i in range(len(rows))]
    said = [lost if gone else replies[i % len(replies)] for i, gone in enumerate(without)]
    return make_responses([v for v, _ in rows], said, trials=[t for _, t in rows], name="fair")


def divide(responses, folder, files=3):
    "The run in parts, each with some of its questions."
    folder.mkdir(parents=True)
    codes = responses.question_codes[0]
    for n in range(files):
        some = Responses(responses.table[codes % files == n], responses.questions, responses.facts, "fair")
        write_responses(some, folder / f"{n}")
        (folder / f"{n}" / "responses.parquet").rename(folder / f"{n}.parquet")
    return folder


CASES = {
    "plain": (made("AAAAB"), (), 0),
    "intervals": (made("AB"), ("--interval", "0.9", "--format", "markdown"), 0),
    "failed": (made("AAB", failed=150), ("--format", "csv"), 3),
    "many failed": (made("AAB", failed=20), (), 3),
    "failed, wrong": (made("AAB", failed=20), ("--failed", "wrong"), 0),
    "over budget": (made("AAB", failed=7, lost=OVER_BUDGET), (), 3),
    "repeated": (made("AABBB", trials=(0, 1)), ("--trials", "all"), 0),
    "one repetition": (made("AABBB", trials=(0, 1)), ("--trial", "1"), 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_table_is_that_of_the_run(case, tmp_path, run):
    responses, words, status = CASES[case]
    write_responses(responses, tmp_path / "memory" / "fair")
    divide(responses, tmp_path / "parts" / "fair")
    memory, parts = (run("cora table", tmp_path / p / "fair", *words, cwd=tmp_path) for p in ("memory", "parts"))
    assert parts == memory and parts[0] == status


def test_replies_that_cannot_be_read_are_said(tmp_path, run):
    divide(made("A?"), tmp_path / "fair")
    status, out, err = run("cora table", "fair", cwd=tmp_path)
    assert (status, err) == (0, "")
    first, blank, *table = out.splitlines()
    assert first == (
        "fair: 210 of 420 replies cannot be read, and count as wrong; look at some: "
        "ResponseParts('fair').read(100).table['reply']"
    )
    assert not blank and "MCQA" in "".join(table)
    status, out, err = run("cora table", "fair", "--format", "csv", cwd=tmp_path)
    assert err.startswith("fair: 210 of 420 replies") and out.startswith("group,score,fair")


def test_uneven_repetitions_are_said(tmp_path, run):
    whole = made("AAB", trials=(0, 1))
    some = whole.rows(lambda t: (t["trial"] == 0) | (t["method"] == "original"))
    divide(some, tmp_path / "fair")
    status, out, err = run("cora table", "fair", "--trials", "all", cwd=tmp_path)
    assert status == 0 and "fair: repetitions are pooled, 1 to 2 for each variant; variants do not count" in err


@pytest.mark.parametrize(
    "words",
    [
        ("cora report", "fair"),
        ("cora gate", "fair", "--at_least", "CoRA=0.1"),
        ("cora export", "every-eval-ever", "out", "--run", "fair"),
    ],
)
def test_other_commands_say_what_to_do(words, tmp_path, run):
    divide(made("AB"), tmp_path / "fair")
    status, out, err = run(*words, cwd=tmp_path)
    assert (status, out) == (1, "") and len(err.splitlines()) == 1, err
    assert (
        "fair: here are the parts of a run, which are not read at once: print their scores with cora table fair" in err
    )


def test_measures_of_the_choices_are_refused(tmp_path, run):
    divide(made("AB"), tmp_path / "fair")
    status, out, err = run("cora table", "fair", "--score", "agreement", cwd=tmp_path)
    assert (status, out, len(err.splitlines())) == (1, "", 1)
    assert "take the Responses to some questions, such as ResponseParts('fair').read(1000)" in err
    (tmp_path / "fair" / "1.parquet").write_bytes(b"not this")
    status, _, err = run("cora table", "fair", cwd=tmp_path)
    assert status == 1 and err.startswith("cora table: fair/1.parquet: not a Parquet file (")
