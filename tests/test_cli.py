"""The commands, as a user runs them: in another process, reading what is printed."""
import csv
import io
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from cora_nb.responses import read_responses

BIN = Path(sysconfig.get_path("scripts"))


def run(*words, cwd, **env):
    "Exit code, output, errors of a command."
    command = [str(BIN / words[0]), *map(str, words[1:])]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, env={**os.environ, "COLUMNS": "120", **env})
    return done.returncode, done.stdout, done.stderr


def test_run_without_arguments(tmp_path):
    code, out, err = run("cora_run", cwd=tmp_path)
    assert code == 0 and "300 questions, 6000 variants" in out and "CoRA" in out and "6000 replies" in out
    assert "100%" in err and len(read_responses(tmp_path / "responses.parquet")) == 6000


def test_run_is_repeatable_and_table_compares(tmp_path):
    for name, more in [("a", []), ("b", []), ("c", ["--respondent", "simulated:knows=0.6,position=6/1,name=leaning"])]:
        assert run("cora_run", "--limit", 30, "--out", f"{name}.parquet", *more, cwd=tmp_path)[0] == 0
    assert read_responses(tmp_path / "a.parquet").equals(read_responses(tmp_path / "b.parquet"))
    code, out, err = run("cora_table", "a.parquet", "c.parquet", cwd=tmp_path)
    assert (code, err) == (0, "") and re.search(r"a +c", out) and "(1)" in out and "(2)" in out
    code, out, _ = run("cora_table", "a.parquet", "c.parquet", "--format", "csv", cwd=tmp_path)
    rows = list(csv.reader(io.StringIO(out)))
    assert code == 0 and rows[0][-2:] == ["a", "c"] and any("CoRA" in r for r in rows)
    for format in ("markdown", "latex"):
        assert run("cora_table", "a.parquet", "--format", format, cwd=tmp_path)[0] == 0


def test_a_record_can_be_graded_again(tmp_path):
    assert run("cora_run", "--limit", 5, "--out", "a.parquet", cwd=tmp_path)[0] == 0
    code, out, _ = run("cora_run", "--limit", 5, "--respondent", "recorded:a.parquet", "--parse", "tolerant", "--out", "b.parquet", cwd=tmp_path)
    assert code == 0 and "0 failed" in out
    code, out, _ = run("cora_run", "--limit", 6, "--respondent", "recorded:a.parquet", "--out", "c.parquet", cwd=tmp_path)
    assert code == 0 and "20 failed" in out  # the sixth question was never recorded


def test_import_and_table_print_the_published_layout(tmp_path, shared):
    file = shared / "recorded" / "cat_medqa_medalpaca-7b.xlsx"
    code, out, _ = run("cora_import", file, "--out", "medalpaca.parquet", cwd=tmp_path)
    assert code == 0 and "1273 questions, 58558 replies" in out
    code, out, _ = run("cora_table", "medalpaca.parquet", "--digits", 4, cwd=tmp_path)
    numbers = re.findall(r"\d\.\d{4}", out)
    assert code == 0
    assert numbers == ["0.2608", "0.3571", "0.2435", "0.1954", "0.2938", "0.1830", "0.1108", "0.0762", "0.0299", "0.0102", "0.7494"]


MISTAKES = [
    (["cora_run", "--benchmark", "maths"], "maths"), (["cora_run", "--path", "nowhere.csv", "--benchmark", "mine"], "nowhere.csv"),
    (["cora_run", "--family", "corra"], "family must be one of"), (["cora_run", "--respondent", "oracle"], "a respondent is one of"),
    (["cora_run", "--respondent", "simulated:knows=60"], "knows must be in"), (["cora_run", "--respondent", "recorded:none.parquet"], "none.parquet: there is no such file"),
    (["cora_run", "--template", "corra"], "corra"), (["cora_run", "--parse", "wishful"], "wishful"), (["cora_run", "--limit", "0"], "limit"),
    (["cora_run", "--trials", "0"], "trials"), (["cora_run", "--shots", "-1"], "-1"), (["cora_run", "--out", "no/where.parquet"], "there is no folder no"), (["cora_run", "--split", "tset"], "tset"),
    (["cora_run", "--malformed", "ignore"], "ignore"), (["cora_import", "none.xlsx"], "none.xlsx: there is no such file"), (["cora_import", "note.txt"], "note.txt"),
    (["cora_import", "fake.xlsx"], "fake.xlsx: not a readable xlsx file"), (["cora_table", "none.parquet"], "none.parquet: there is no such file"),
    (["cora_table", "note.txt"], "note.txt: not a Parquet file"), (["cora_table", "a.parquet", "--trial", "7"], "no responses of trial 7"),
    (["cora_table", "a.parquet", "--format", "pdf"], "pdf"), (["cora_table", "a.parquet", "--format", "styler"], "one of text, markdown, latex, csv"),
    (["cora_run", "--digits", "-1"], "digits must be"), (["cora_run", "--out", "."], "this is a folder"), (["cora_table", "."], "this is a folder"), (["cora_import", "."], "this is a folder"), (["cora_table", "a.parquet", "a.parquet"], "a.parquet: named twice"),
    (["cora_run", "--out", "note.txt"], "holds no responses; it is left alone"), (["cora_import", "fake.xlsx", "--out", "fake.xlsx"], "left alone"),
    (["cora_run", "--benchmark", "mine", "--path", "mine.csv", "--shots", "1"], "--pool"), (["cora_run", "--benchmark", "mine", "--path", "mine.csv", "--out", "mine.csv"], "left alone"), (["cora_table", "a.parquet", "--digits", "99"], "99"),
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    "A folder with a good file and two bad ones."
    folder = tmp_path_factory.mktemp("desk")
    (folder / "note.txt").write_text("hello")
    (folder / "fake.xlsx").write_text("hello")
    (folder / "mine.csv").write_text("question,A,B,answer\nWhat is 1 + 1?,2,3,A\n")
    assert run("cora_run", "--limit", 2, "--out", "a.parquet", cwd=folder)[0] == 0
    return folder


@pytest.mark.parametrize("words,says", MISTAKES, ids=lambda x: " ".join(x) if isinstance(x, list) else None)
def test_a_mistake_gets_one_clear_line(desk, words, says):
    code, out, err = run(*words, cwd=desk)
    assert code == 1 and out == "" and "Traceback" not in err
    assert says in err and len(err.strip().splitlines()) == 1 and err.startswith(words[0] + ": ")


def test_misspelt_options_end_with_code_2(desk):
    code, _, err = run("cora_run", "--limits", "3", cwd=desk)
    assert code == 2 and "--limits" in err and "Traceback" not in err
    assert run("cora_table", cwd=desk)[0] == 2


def test_no_markup_from_a_file_reaches_the_terminal_table(desk):
    os.rename(desk / "a.parquet", desk / "a|b.parquet")
    try:
        code, out, _ = run("cora_table", "a|b.parquet", "--format", "markdown", cwd=desk)
        assert code == 0 and "a\\|b" in out
    finally:
        os.rename(desk / "a|b.parquet", desk / "a.parquet")


def test_a_run_in_which_nothing_was_answered_is_no_result(desk):
    code, out, err = run("cora_run", "--benchmark", "mine", "--path", "mine.csv", "--respondent", "recorded:a.parquet", "--out", "z.parquet", cwd=desk)
    assert code == 1 and out == "" and "all 8 replies failed, the first of them: nothing was recorded" in err and "Traceback" not in err


def test_what_is_there_stays_there(desk, tmp_path):
    "Neither another file, nor a pipe, nor the target of a link is replaced by accident."
    os.mkfifo(tmp_path / "pipe")
    code, _, err = run("cora_run", "--limit", 2, "--out", "pipe", cwd=tmp_path)
    assert code == 1 and "no ordinary file" in err and (tmp_path / "pipe").is_fifo()
    (tmp_path / "real.parquet").write_bytes((desk / "a.parquet").read_bytes())
    (tmp_path / "link.parquet").symlink_to("real.parquet")
    assert run("cora_run", "--limit", 3, "--out", "link.parquet", cwd=tmp_path)[0] == 0
    assert (tmp_path / "link.parquet").is_symlink() and len(read_responses(tmp_path / "real.parquet")) == 60
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.parquet", "pipe", "real.parquet"]


def test_a_terminal_without_the_letters(desk):
    code, out, err = run("cora_table", "a.parquet", "--format", "markdown", cwd=desk, PYTHONIOENCODING="cp1252", PYTHONUTF8="0")
    assert code == 0 and "Traceback" not in err


def test_ctrl_c_is_one_line(desk):
    "Interrupted once its progress bar shows. The shell that runs the tests may have told its children to ignore interrupts."
    import signal

    command = [str(BIN / "cora_run"), "--trials", "200", "--out", "slow.parquet"]
    done = subprocess.Popen(command, cwd=desk, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    seen = b""
    while b"replies" not in seen:
        seen += done.stderr.read(1)
    done.send_signal(signal.SIGINT)
    _, err = done.communicate(timeout=120)
    assert done.returncode == 1 and b"Traceback" not in err and b"cora_run: interrupted" in err and not (desk / "slow.parquet").exists()


def test_a_reader_that_goes_away_is_no_error(desk):
    shell = f"{BIN / 'cora_table'} a.parquet | head -1"
    done = subprocess.run(shell, shell=True, cwd=desk, capture_output=True, text=True)
    assert "Traceback" not in done.stderr


HEAVY = ("torch", "transformers", "datasets", "openai", "matplotlib", "seaborn", "scipy.stats", "sklearn")


@pytest.mark.parametrize("module", ["cora_nb", "cora_nb.metrics", "cora_nb.metrics.guessing", "cora_nb.tables", "cora_nb.variants", "cora_nb.cli"])
def test_imports_stay_light(module):
    code = f"import sys, {module}; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split() == []
