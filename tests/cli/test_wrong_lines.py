"""Forty and more mistyped command lines: each gets one line that says what to type, and no status but 1 or 2."""

import os
import shlex

import pytest

from cora_nb.cli.commands import cora_main
from cora_nb.cli.run import cora_run

MISTYPED = {  # status 2: these words are no command line
    "rnu": "no command 'rnu'; did you mean run?",
    "run --limt 3": "Unknown option: --limt. Did you mean --limit?",
    "run -q": "Unknown option: -q",
    "run --limit many": "--limit: must be a whole number, got 'many'",
    "run --limit 2.5": "--limit: must be a whole number, got '2.5'",
    "run --limit": "--limit requires an argument",
    "run --limit 3 --limit 4": "--limit specified multiple times",
    "run --digits x": "--digits: must be a whole number, got 'x'",
    "run --dry=perhaps": '--dry: unable to convert "perhaps" into bool',
    "table": "needs RUNS, folders of runs",
    "gate": "needs RUN, the run that is to pass",
    "gate a b": "'b' is a word too many",
    "export nosuch": "needs FOLDER, the folder to write",
    "store count": "needs STORES, count: stores",
    "convert": "needs SOURCE, a model's folder",
}
REFUSED = {  # status 1: a value that is not right
    "run simulatd": "did you mean simulated?",
    "run simulated:knows=2": "knows must be a number from 0 to 1, got 2.0",
    "run simulated:nosuch=2": "has the fields knows, slips, position, nota, seed, ",
    "run simulated simulated": "two respondents are called 'simulated'; give one another name with ,name=...",
    "run chat": "chat: needs a model, such as model=MODEL",
    "run --limit 0": "limit must be a whole number of 1 or more, got 0",
    "run --limit -1": "limit must be a whole number of 1 or more, got -1",
    "run --benchmark maths": "no benchmark 'maths'; did you mean math?; known are arc, ",
    "run --family corra": "did you mean cora?",
    "run --template coraa": "did you mean cora?",
    "run --parse first_tokn": "did you mean first_token?",
    "run --stop corra": "stop must be one of cora, bmca, precise, got 'corra'; did you mean cora?",
    "run --stop precise --half_width 2": "half_width must be between 0 and 0.5, got 2.0",
    "run --half-width 0.1": "--half_width goes with --stop precise",
    "run --max_cost 5": "--max_cost needs the prices of a million tokens",
    "run --price cheap": "price must be two numbers as in 2.5/10, got 'cheap'",
    "run --shard 5/4": "the number of a shard must be a whole number from 1 to 4, got 5",
    "run --shard 1": "a shard is a number and a count, such as 3/64, got '1'",
    "run --workers 0": "--workers must be a whole number of 1 or more, got 0",
    "run --workers 2 --shard 1/2": "--workers and --shard both divide the run: give one of them",
    "run --subjects nosuch": "there is no subject 'nosuch' among the 4",
    "run --sample 1000000": "sample must be at most the number of questions, 300, got 1000000",
    "run --shots -1": "the number of shots k must be a whole number of 0 or more, got -1",
    "run --trials 0": "the number of trials must be a whole number of 1 or more, got 0",
    "run --score nosuch": "score must be one of BMCA, CI, ",
    "run --failed right": "failed must be one of unknown, wrong, got 'right'",
    "run --malformed ignore": "malformed must be one of raise, skip, got 'ignore'",
    "run --existing_nota maybe": "existing_nota must be one of keep, skip, warn, got 'maybe'",
    "run --config missing.toml": "--config missing.toml: No such file or directory",
    "run --config name.toml": "--config name.toml: cora run has no option 'limt'; did you mean limit?",
    "run --config kind.toml": "--config kind.toml: limit must be a whole number, got '3'",
    "run --config text.toml": "--config text.toml: this is not TOML",
    "run simulated --store nosuchdir/x.sqlite --limit 2": "there is no folder nosuchdir",
    "table nowhere": "nowhere: there is no such file",
    "table responses/math/ann --format pdf": "format must be one of text, markdown, latex, csv, html, xlsx, got 'pdf'",
    "table responses/math/ann --interval 2": "interval must be a level between 0 and 1, such as 0.95, got 2.0",
    "report responses/math/ann --out page.pdf": "out must be an .html file, got 'page.pdf'",
    "paper nosuch": "a plan is one of cora, mcqa_plus, quadruple_slit, li2024",
    "paper cora/table_99": "cora has no item 'table_99'; there are table_1, ",
    "list nosuch": "list must be one of benchmarks, families, ",
    "join nowhere": "nowhere: there are no shards here",
    "import nowhere": "nowhere: there is no such file",
    "store nosuch x": "what must be one of count, copy, export, got 'nosuch'",
    "store count nowhere.sqlite": "nowhere.sqlite: there is no store of replies",
    "try nosuch": "respondent must be one of causal, chat, ",
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    "A folder with one run, and files of options that are wrong."
    place, here = tmp_path_factory.mktemp("desk"), os.getcwd()
    os.chdir(place)
    (place / "name.toml").write_text("limt = 3\n")
    (place / "kind.toml").write_text('limit = "3"\n')
    (place / "text.toml").write_text("limit = \n")
    cora_run(["simulated:name=ann"], limit=3, store="none")
    yield place
    os.chdir(here)


def ended(line, capsys):
    "The status and the only line with which a command ends."
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        cora_main(shlex.split(line))
    code, said = stop.value.code, capsys.readouterr()
    text = (said.err if isinstance(code, int) else code).rstrip("\n")
    assert said.out == "" and "\n" not in text
    return code if isinstance(code, int) else 1, text


@pytest.mark.parametrize("line", MISTYPED)
def test_mistyped_words(line, desk, capsys):
    status, said = ended(line, capsys)
    assert status == 2 and MISTYPED[line] in said and said.endswith(" --help shows all options)")


@pytest.mark.parametrize("line", REFUSED)
def test_a_value_that_is_not_right(line, desk, capsys):
    status, said = ended(line, capsys)
    command = " ".join(["cora", line.split()[0]])
    assert status == 1 and said.startswith(f"{command}: ") and REFUSED[line] in said


def test_dashes_are_read_as_underscores(desk, capsys):
    cora_main(["run", "simulated:name=ann", "--limit", "3", "--existing-nota=keep", "--store", "none", "--dry"])
    assert "60" in capsys.readouterr().out
