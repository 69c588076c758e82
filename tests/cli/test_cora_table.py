"""The commands `cora_table` and `cora_import`, as a user runs them."""

import csv
import io
import json
import os
import re
import subprocess

import pytest
from openpyxl import load_workbook

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.metrics.scoring import score
from cora_nb.results import lookup
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.responses.responses import Responses
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants
from helpers import WITH_TORCH, command, put_in_state, run, slow_after


def simulated(name, n=30, **fields):
    "A run of the bundled benchmark."
    variants = make_variants(load_benchmark("math")[:n])
    trials = fields.pop("trials", 1)
    return evaluate(SimulatedRespondent(name=name, **fields), variants, Asking(trials=trials), progress=False)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    "A folder with runs, like and unlike, and with files that are none."
    folder = tmp_path_factory.mktemp("desk")
    (folder / "note.txt").write_text("hello")
    (folder / "fake.xlsx").write_text("hello")
    a, c = simulated("a"), simulated("c", knows=0.6, position=(6, 1))
    write_responses(a, folder / "a")
    write_responses(c, folder / "c")
    write_responses(simulated("thrice", slips=0.2, trials=3), folder / "thrice")
    write_responses(c.rows(c.table["method"].isin(["original", "shuffled"])), folder / "part")
    write_responses(c.rows(c.table["method"] == "original"), folder / "originals")
    write_responses(simulated("others", n=20), folder / "others")
    return folder


@pytest.mark.slow
def test_runs_side_by_side(desk):
    code, out, err = run("cora_table", "a", "c", cwd=desk)
    assert (code, err) == (0, "") and re.search(r"a +c +a guesser\n", out) and "(1)" in out and "(2)" in out
    value = lookup(score(read_responses(desk / "a")), "CoRA").value
    assert re.search(rf"CoRA +{value:.2f} \(\d\)", out)
    code, text, _ = run("cora_table", "a", "c", "--format", "csv", cwd=desk)
    read = {(r["respondent"], r["score"]): r["value"] for r in csv.DictReader(io.StringIO(text))}
    assert code == 0 and float(read["a", "CoRA"]) == value and ("a guesser", "CoRA") in read
    for format in ("markdown", "latex"):
        assert run("cora_table", "a", "--format", format, cwd=desk)[0] == 0
    code, sure, err = run("cora_table", "a", "c", "--interval", 0.95, cwd=desk)
    assert (code, err) == (0, "") and re.search(r"MCQA +\d\.\d\d \[\d\.\d\d, \d\.\d\d\] \(\d\)", sure)
    table, below = sure.split("\n\n")
    assert "in brackets: 95% intervals" in below.splitlines()
    without = [re.sub(r" \[[^]]*\]", "", line).split() for line in table.splitlines()]
    assert without == [line.split() for line in out.partition("\n\n")[0].splitlines()]
    head = run("cora_table", "a", "--interval", 0.95, "--format", "csv", cwd=desk)[1].splitlines()[0]
    assert head == "respondent,score,value,low,high,n,status,least,most,note"


@pytest.mark.slow
def test_rows_of_models(desk):
    "A table for a paper: the three scores to be read together, or those that are named, and differences."
    code, out, err = run("cora_table", "a", "c", "--rows", "models", "--compare", "a", cwd=desk)
    head, *rows = out.partition("\n\n")[0].splitlines()
    assert (code, err) == (0, "") and head.split() == ["MCQA", "BMCA(1.0)", "CoRA"]
    assert [row.split("  ")[0] for row in rows[:4]] == ["a", "c", "a guesser", "difference from a"]
    for name in head.split():
        row = lookup(score(read_responses(desk / "a"), ci=0.95), name)
        assert f"{row.value:.2f} [{row.low:.2f}, {row.high:.2f}]*" in rows[0]
    words = ("--rows", "models", "--scores", "MV,CoRA", "--interval", 0.9, "--caption", "Two", "--label", "tab:two")
    code, out, err = run("cora_table", "a", "c", *words, "--format", "latex", cwd=desk)
    assert (code, err) == (0, "") and r"\caption{Two}" in out and r"\label{tab:two}" in out and " & MV & CoRA " in out
    assert r"in brackets: 90\% intervals" in out
    code, out, err = run("cora_table", "a", "c", "--scores", "CoRA,BMCA(0.7)", cwd=desk)
    assert [line.split()[0] for line in out.splitlines()[1:6]] == ["Proposed", "CoRA", "Secondary", "BMCA(0.7)"][:5]


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_after(1, ["t.xlsx", "t.txt", "t.md", "t.tex", "t.csv", "t.html"]))
def test_a_table_goes_to_a_file(desk, tmp_path, name):
    "The same that is printed; again only if told so; a page is whole; the facts are in a workbook."
    said = {"txt": "text", "md": "markdown", "tex": "latex"}
    format = said.get(name[2:], name[2:])
    words = ("cora_table", desk / "a", desk / "c", "--interval", 0.9, "--caption", "Two | 50%")
    for force in ((), ("--force",)):
        done = run(*words, "--out", name, *force, cwd=tmp_path)
        assert done == (0, f"{name}: the scores of 2 runs, as {format}\n", "")
    code, out, err = run(*words, "--out", name, cwd=tmp_path)
    assert code == 1 and out == "" and "there is a file of this name, and it is left alone; --force" in err
    assert os.listdir(tmp_path) == [name]
    if format == "xlsx":
        book = load_workbook(tmp_path / name)
        assert book.sheetnames == ["scores", "facts"]
        below = [row[0] for row in book["scores"].iter_rows(values_only=True) if row[0] and row[1] is None]
        assert below[:2] == ["Two | 50%", "low and high: 90% intervals"]
        facts = {row[0]: row[1:] for row in book["facts"].iter_rows(values_only=True)}
        assert facts["fact"] == ("a", "c") and facts["read_from"] == (str(desk / "a"), str(desk / "c"))
        assert facts["respondent.knows"] == (read_responses(desk / "a").facts.respondent["knows"], 0.6)
        return
    text = (tmp_path / name).read_text(encoding="utf-8")
    code, out, err = run(*words, "--format", format, cwd=tmp_path)
    assert (code, err) == (0, "") and (out in text if format == "html" else out == text)
    assert format != "html" or "<p>in brackets: 90% intervals</p>" in out and text.startswith("<!doctype html>")


@pytest.mark.slow
def test_what_is_said_of_a_run_stays_off_the_file(desk, tmp_path):
    "Alarms and failures go to the error stream, the exit status stays, and the file is written."
    lost = read_responses(desk / "a")
    table = put_in_state(lost.table, [0, 1], "failed", "timeout")
    write_responses(Responses(table, lost.questions, lost.facts, "lost"), tmp_path / "lost")
    code, out, err = run("cora_table", "lost", "--out", "t.html", cwd=tmp_path)
    assert code == 3 and out == "t.html: the scores of 1 run, as html\n"
    assert err == "cora_table: lost: 2 of 600 prompts failed (timeout)\n"
    assert "lost: 2 of 600 failed" in (tmp_path / "t.html").read_text()


@pytest.mark.slow
def test_a_file_of_an_older_version(desk):
    "A single Parquet file is a run, called after the file; beside a folder of that name both have their whole path."
    old = desk / "old" / "a.parquet"
    old.parent.mkdir()
    old.write_bytes((desk / "a" / "responses.parquet").read_bytes())
    code, out, _ = run("cora_table", "old/a.parquet", "c", cwd=desk)
    assert code == 0 and out.split()[:2] == ["a", "c"]
    code, out, _ = run("cora_table", "old/a.parquet", "a", cwd=desk)
    assert code == 0 and out.split()[:2] == ["old/a.parquet", "a"]


@pytest.mark.slow
@pytest.mark.parametrize("format", slow_after(1, ["text", "markdown", "latex"]))
def test_part_of_a_divergence_set_is_said_at_the_number(desk, format):
    "2 of 20 variants beside a complete run: no CoRA, no ranks, the count at each number, the reason below."
    code, out, err = run("cora_table", "a", "part", "--format", format, cwd=desk)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    for name in ("MCQA+", "MV", "BMCA(0.5)", "BMCA(1.0)"):
        (line,) = [x for x in lines if re.search(rf"{re.escape(name)}[ &|$\\]", x)]
        assert line.count("(2 of 20 variants)") == 1 and re.search(r"\d\.\d\d \(2 of 20 variants\)", line)
    (mcqa,) = [x for x in lines if re.search(r"MCQA[ &|]", x)]
    assert "of 20 variants" not in mcqa and len(re.findall(r"\d\.\d\d", mcqa)) == 3  # and a guesser's
    for name in ("CoRA", "CI"):
        (line,) = [x for x in lines if re.search(rf"\b{name}[ &|]", x)]
        assert len(re.findall(r"\d\.\d\d", line)) == 2 and "(" not in line and re.search("–|--", line)
    assert not re.search(r"\d \(\d\)", out)
    below = [line for line in lines if "No ranks: " in line]
    assert [line[line.index("No ranks") :].replace(r"\strut}", "") for line in below] == [
        "No ranks: part has 2 of 20 variants",
        "No ranks: part and a were asked different variants of the same questions",
    ]


@pytest.mark.slow
def test_part_of_a_divergence_set_in_csv(desk):
    code, out, _ = run("cora_table", "a", "part", "--format", "csv", cwd=desk)
    rows = list(csv.DictReader(io.StringIO(out)))
    whole, part = ({r["score"]: r for r in rows if r["respondent"] == name} for name in ("a", "part"))
    assert code == 0 and not any(row["note"] for row in whole.values())
    assert {s for s, row in part.items() if row["note"].startswith("2 of 20 variants\n")} == set(part) - {"MCQA"}
    assert {s for s, row in part.items() if row["value"] == ""} == {"CoRA", "CI"}
    said = "part and a were asked different variants of the same questions"
    assert {row["note"].split("\n")[-1] for row in part.values()} == {said}


@pytest.mark.slow
def test_originals_alone_have_no_cora(desk):
    code, out, _ = run("cora_table", "originals", cwd=desk)
    assert code == 0 and re.search(r"CoRA +–\n", out) and re.search(r"CI +–\n", out)
    assert re.search(r"MCQA +\d\.\d\d\n", out) and re.search(r"MV +\d\.\d\d \(1 of 20 variants\)\n", out)
    assert out.splitlines()[-1] == "originals has 1 of 20 variants"


@pytest.mark.slow
def test_runs_of_different_questions_are_not_ranked(desk):
    code, out, _ = run("cora_table", "a", "others", "c", cwd=desk)
    assert code == 0 and not re.search(r"\d \(\d\)", out) and "of 20 variants" not in out
    assert out.splitlines()[-1] == (
        "No ranks: others and a were asked different questions (20 and 30, 20 of them the same)"
    )


@pytest.mark.slow
def test_which_repetition(desk):
    "The first by default, another by its number, all of them on purpose; any other number is refused."
    thrice = read_responses(desk / "thrice")
    for words, part in [
        ((), thrice.trial(0)),
        (("--trial", 0), thrice.trial(0)),
        (("--trial", 2), thrice.trial(2)),
        (("--trials", "all"), thrice.pool_trials()),
    ]:
        code, out, err = run("cora_table", "thrice", *words, "--digits", 6, cwd=desk)
        value = lookup(score(part), "MCQA+").value
        assert (code, err) == (0, "") and f"{value:.6f}" in out and "of 20 variants" not in out
    parts = [*(thrice.trial(i) for i in range(3)), thrice.pool_trials()]
    assert len({lookup(score(part), "MCQA+").value for part in parts}) == 4


@pytest.mark.slow
def test_import_and_table_print_the_published_layout(tmp_path, recorded_at):
    file = recorded_at("cat/medqa/medalpaca-7b")
    code, out, _ = run("cora_import", file, "--out", "medalpaca", cwd=tmp_path)
    assert code == 0 and "1273 questions, 58558 replies" in out
    code, out, _ = run("cora_table", "medalpaca", "--digits", 4, cwd=tmp_path)
    numbers = re.findall(r"^  .*?(\d\.\d{4})", out, re.M)  # its own; a guesser's are beside them
    assert code == 0
    assert numbers == "0.2608 0.3571 0.2435 0.1954 0.2938 0.1830 0.1108 0.0762 0.0299 0.0102 0.7494".split()
    facts = json.loads((tmp_path / "medalpaca" / "facts.json").read_text())
    assert facts["imported"]["file"] == file.name and re.fullmatch("[0-9a-f]{64}", facts["imported"]["hash"])
    # the sixth repetition was recorded of the original and of one shuffle only
    code, out, err = run("cora_table", "medalpaca", "--trial", 5, cwd=tmp_path)
    assert (code, err) == (0, "") and re.search(r"MCQA\+ +\d\.\d\d \(2 of 26 variants\)\n", out)
    assert re.search(r"CoRA +– \(from 0\.\d{3} to 0\.\d{3}\)\n", out)  # by what there is and what could have been
    assert out.splitlines()[-2:] == ["medalpaca has 2 of 26 variants", "medalpaca: 6 of 2,546 unread"]
    # eleven replies to each original and one to most variants, pooled
    code, out, err = run("cora_table", "medalpaca", "--trials", "all", cwd=tmp_path)
    assert code == 0 and "of 26 variants" not in out
    assert err == "" and "1 to 11 of 11 repetitions of a variant: variants do not count alike" in out


def cat_file(path, output="A", says="A"):
    "One question as the CAT tool writes it."
    choices = {"A": "two", "B": "three"}
    entry = {"choices": choices, "correct_choice": "A", "model_choice": says, "output": output}
    cell = json.dumps({"standard_MC": [entry]})
    with open(path, "w", newline="") as out:
        csv.writer(out).writerows([["question", "expanded_evaluation"], ["What is 1 + 1?", cell]])


@pytest.mark.slow
def test_an_import_never_replaces_another(tmp_path):
    "The same file again is the same run; another file of that name, or another rule, is not."
    cat_file(tmp_path / "kept.csv")
    assert run("cora_import", "kept.csv", "--model", "lab/m", cwd=tmp_path)[0] == 0
    assert read_responses(tmp_path / "kept").name == "lab/m"
    assert run("cora_import", "kept.csv", "--model", "lab/m", cwd=tmp_path)[0] == 0
    code, _, err = run("cora_import", "kept.csv", "--model", "lab/m", "--parse", "last_line", cwd=tmp_path)
    assert (
        code == 1
        and "there is another run here already, with other imported.parse (as recorded there, last_line now);" in err
    )
    cat_file(tmp_path / "kept.csv", "B", "B")
    code, _, err = run("cora_import", "kept.csv", "--model", "lab/m", cwd=tmp_path)
    assert code == 1 and "there is another run here already, with other imported.hash" in err
    assert read_responses(tmp_path / "kept").table["reply"].tolist() == ["A"]


MISTAKES = [
    (["cora_import", "none.xlsx"], "none.xlsx: there is no such file"),
    (["cora_import", "note.txt"], "note.txt"),
    (["cora_import", "."], "this is a folder"),
    (["cora_import", "fake.xlsx"], "fake.xlsx: not a readable xlsx file"),
    (["cora_import", "fake.xlsx", "--out", "fake.xlsx"], "fake.xlsx: this is a file, and a folder is to be written"),
    (["cora_import", "fake.xlsx", "--out", "."], "holds something else"),
    (["cora_table", "none.parquet"], "none.parquet: there is no such file"),
    (["cora_table", "note.txt"], "note.txt: not a Parquet file"),
    (["cora_table", "."], ".: there is no run here"),
    (["cora_table", "a", "a"], "a: named twice"),
    (["cora_table", "a", "--trial", "7"], "a has no trial 7"),
    (["cora_table", "a", "--trial", "-1"], "--trials all counts all of them"),
    (["cora_table", "a", "--trials", "some"], "trials must be first or all, got 'some'"),
    (["cora_table", "a", "--trial", "0", "--trials", "all"], "--trial and --trials all exclude each other"),
    (["cora_table", "a", "--format", "pdf"], "pdf"),
    (["cora_table", "a", "--format", "styler"], "one of text, markdown, latex, csv"),
    (["cora_table", "a", "--digits", "99"], "99"),
    (["cora_table", "a", "--format", "xlsx"], "a table as xlsx needs a file: give --out FILE.xlsx"),
    (["cora_table", "a", "--out", "note.txt"], "note.txt: there is a file of this name, and it is left alone; --force"),
    (["cora_table", "a", "--out", "fake.xlsx"], "fake.xlsx: there is a file of this name, and it is left alone"),
    (
        ["cora_table", "a", "--out", "c"],
        "c: the name of a table must end in one of .txt, .md, .markdown, .tex, .csv, .html",
    ),
    (["cora_table", "a", "--out", "c", "--format", "csv"], "c: this is a folder, and a file is to be written"),
    (["cora_table", "a", "--out", "none/t.md"], "none/t.md: there is no folder none"),
    (["cora_table", "a", "--out", "t.csv", "--format", "latex"], "t.csv: a file of this name holds csv, and latex was"),
    (["cora_table", "a", "--rows", "runs"], "rows must be one of scores, models, got 'runs'"),
    (["cora_table", "a", "--compare", "a"], "--compare goes with --rows models"),
    (["cora_table", "a", "--label", "tab:a"], "--label goes with --rows models"),
    (["cora_table", "a", "--rows", "models", "--compare", "b"], "there is no run 'b' to compare with; there are a"),
    (["cora_table", "a", "--scores", "MCAQ"], "score must be one of "),
    (["cora_table", "a", "--interval", "95"], "interval must be a level between 0 and 1, such as 0.95, got 95.0"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words,says", slow_after(2, MISTAKES), ids=lambda x: " ".join(x) if isinstance(x, list) else None
)
def test_a_mistake_gets_one_clear_line(desk, words, says):
    code, out, err = run(*words, cwd=desk)
    assert code == 1 and out == "" and "Traceback" not in err
    assert says in err and len(err.strip().splitlines()) == 1 and err.startswith(words[0] + ": ")


@pytest.mark.slow
def test_a_run_has_to_be_named(desk):
    code, _, err = run("cora_table", cwd=desk)
    assert code == 2 and "Traceback" not in err


@pytest.mark.slow
def test_no_markup_from_a_name_reaches_the_terminal_table(desk):
    os.rename(desk / "a", desk / "a|b")
    try:
        code, out, _ = run("cora_table", "a|b", "--format", "markdown", cwd=desk)
        assert code == 0 and "a\\|b" in out
    finally:
        os.rename(desk / "a|b", desk / "a")


@pytest.mark.slow
def test_a_terminal_without_the_letters(desk):
    words = ("cora_table", "a", "--format", "markdown")
    code, out, err = run(*words, cwd=desk, PYTHONIOENCODING="cp1252", PYTHONUTF8="0")
    assert code == 0 and "Traceback" not in err


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(desk):
    table = subprocess.Popen(command("cora_table", "a"), cwd=desk, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    table.stdout.close()
    _, err = table.communicate(timeout=WITH_TORCH)
    assert b"Traceback" not in err
