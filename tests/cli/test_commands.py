"""How functions become commands: words, files of options, help, the list of names, and all of them under one name."""

import inspect
import json
import re
import shlex
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

import cora_nb
from cora_nb.cli.commands import COMMANDS, VALUES, command, cora_main, parse_words, read_config
from cora_nb.cli.commands import cora_list
from cora_nb.cli.names import LISTS, list_families, names_of
from cora_nb.papers.published import model_cards
from cora_nb.papers.reproduce import plan_list
from cora_nb.cli.run import cora_run
from cora_nb.cli.shared import own_scores
from cora_nb.core import CoraError
from helpers import WITH_TORCH, run


def takes(
    what: list[str] = (),  # things
    name: str = "x",  # a text
    count: int = 1,  # a whole number
    share: float = 0.5,  # a number, such as 50%
    flag: bool = False,  # true or false
):
    "Take everything."


ALL = {"what": ["a", "b"], "name": "n", "count": 3, "share": 0.25, "flag": True}


def test_words_and_files_give_the_same_values(tmp_path):
    words = "a b --name n --count 3 --share 0.25 --flag"
    assert parse_words(takes, words.split()) == ALL
    assert parse_words(takes, [*words.split()[2:], "a", "b"]) == ALL
    file = tmp_path / "all.toml"
    file.write_text("what = ['a', 'b']\nname = 'n'\ncount = 3\nshare = 0.25\nflag = true\n")
    assert parse_words(takes, ["--config", str(file)]) == read_config(str(file), takes) == ALL
    typed = parse_words(takes, ["c", "--count=4", "--no-flag", "--config", str(file)])
    assert typed == ALL | {"what": ["c"], "count": 4, "flag": False}
    assert parse_words(takes, []) == {}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_examples_of_a_command_are_understood(name, monkeypatch):
    found = []

    def kept(function, words, program, examples):
        found.append((function, examples))
        raise CoraError("not run")

    monkeypatch.setattr("cora_nb.cli.commands.parse_words", kept)
    with pytest.raises(SystemExit):
        COMMANDS.get(name).typed([])
    (function, examples), *_ = found
    assert len(examples) >= 2
    for example in examples:
        program, *words = shlex.split(example, comments=True)
        given = parse_words(function, words)
        assert program == function.__name__
        if given.get("score") and ".py:" not in given["score"]:
            own_scores(given["score"])


@pytest.mark.parametrize(
    "line, says",
    [
        ("counts = 3", "takes has no option 'counts'; did you mean count?"),
        ("zebra = 3", "takes has no option 'zebra'"),
        ("count = '3'", "count must be a whole number, got '3'"),
        ("count = true", "count must be a whole number, got True"),
        ("count = 1.0", "count must be a whole number, got 1.0"),
        ("share = 'half'", "share must be a number, got 'half'"),
        ("share = false", "share must be a number, got False"),
        ("flag = 1", "flag must be true or false, got 1"),
        ("name = 7", "name must be a text, got 7"),
        ("what = 'a'", "what must be a list of texts, got 'a'"),
        ("what = ['a', 1]", "what must be a list of texts, got ['a', 1]"),
        ("[count]\nx = 1", "count must be a whole number, got {'x': 1}"),
        ("count 3", "this is not TOML ("),
        ("command = 'cora_run'", "these are options of cora_run, and not of takes"),
    ],
)
def test_a_wrong_file_is_named_with_key_and_value(tmp_path, line, says):
    (file := tmp_path / "wrong.toml").write_text(line)
    with pytest.raises(CoraError, match=re.escape(f"--config {file}: {says}")):
        read_config(str(file), takes)


@pytest.mark.parametrize(
    "text, says",
    [
        ("{", "this is not JSON ("),
        ("[]", "do not say which command"),
        ("{}", "do not say which command"),
        ('{"run": 3}', "do not say which command"),
        ('{"run": {"benchmark": "math"}}', "do not say which command"),
    ],
)
def test_facts_without_a_command_cannot_be_repeated(tmp_path, text, says):
    (file := tmp_path / "facts.json").write_text(text)
    with pytest.raises(CoraError, match=re.escape(says)):
        read_config(str(file), takes)


def test_a_config_that_is_not_there_or_no_text(tmp_path):
    for path in (tmp_path, tmp_path / "none.toml", tmp_path / "none.json"):
        with pytest.raises(CoraError, match=f"--config {path}: "):
            read_config(str(path), takes)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(CoraError, match="not TOML"):
        read_config(str(tmp_path / "bytes.toml"), takes)


@pytest.mark.parametrize(
    "words, says",
    [
        ("--counts 3", "unrecognized arguments: --counts; did you mean --count?"),
        ("--coun 3", "unrecognized arguments: --coun; did you mean --count?"),
        ("--count three", "argument --count: must be a whole number, got 'three'"),
        ("--share half", "argument --share: must be a number, got 'half'"),
        ("--count", "argument --count: expected one argument"),
    ],
)
def test_a_mistyped_word_gets_one_line_and_status_2(capsys, words, says):
    with pytest.raises(SystemExit) as e:
        parse_words(takes, words.split())
    out, err = capsys.readouterr()
    assert (e.value.code, out) == (2, "") and err.startswith(f"takes: {says}") and len(err.splitlines()) == 1


def test_what_is_needed_is_asked_for_and_may_stand_in_a_file(capsys, tmp_path):
    def needs(
        runs: list[str],  # the runs
        out: str,  # where to
    ):
        "Need two."

    (file := tmp_path / "a.toml").write_text("runs = ['a']\nout = 'b'\n")
    assert parse_words(needs, ["--config", str(file)]) == {"runs": ["a"], "out": "b"}
    for words, says in (([], "needs RUNS, the runs"), (["a"], "needs OUT, where to")):
        with pytest.raises(SystemExit):
            parse_words(needs, words)
        assert says in capsys.readouterr().err


def test_an_annotation_that_no_option_can_have_is_a_mistake_of_ours():
    def odd(x: dict = None):
        "Odd."

    with pytest.raises(TypeError, match="odd: x: dict"):
        parse_words(odd, [])


def test_a_command_is_a_function_in_python_and_reads_words_in_a_script(monkeypatch):
    taken = []

    @command("collect", "collect a")
    def collect(
        what: list[str] = (),  # things
        count: int = 1,  # how many
    ):
        "Collect."
        taken.append((tuple(what), count))
        return 3

    monkeypatch.setattr(sys, "argv", ["/usr/bin/other", "b", "--count", "2"])
    assert collect() == 3 and collect(["a"]) == 3
    monkeypatch.setattr(sys, "argv", ["/usr/bin/collect", "b", "--count", "2"])
    assert collect() == 3 and collect(["a"]) == 3
    assert taken == [((), 1), (("a",), 1), (("b",), 2), (("a",), 1)]


@pytest.mark.parametrize("name", list(COMMANDS.lazy))
def test_help_has_every_option_the_valid_values_and_examples_that_parse(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")
    function = COMMANDS[name]
    with pytest.raises(SystemExit) as e:
        function.typed(["--help"])
    out = capsys.readouterr().out
    assert e.value.code == 0 and f"usage: cora_{name} " in out and "--config" in out and "--version" in out
    original = function.__wrapped__
    for option in list(inspect.signature(original).parameters):
        assert re.search(rf"^  (--)?{option}\b.*", out, re.MULTILINE | re.IGNORECASE), option
        if option in VALUES and (names := names_of(VALUES[option])):
            assert f"one of {', '.join(names)}" in out
    examples = [line.split() for line in out.partition("examples:\n")[2].splitlines() if line.strip()]
    assert len(examples) >= 2 and all(words[0] == f"cora_{name}" for words in examples)
    for line in examples:
        assert set(parse_words(original, shlex.split(" ".join(line))[1:])) <= set(
            inspect.signature(original).parameters
        )


def test_every_option_has_words_of_help():
    for name in COMMANDS.lazy:
        words = cora_nb.words_beside(COMMANDS[name])
        assert words and all(words.values()), (name, words)


def terminal(*words):
    "Status, output and errors of `python -m cora_nb`."
    done = subprocess.run([sys.executable, "-m", "cora_nb", *words], capture_output=True, text=True, timeout=WITH_TORCH)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_python_m_cora_nb(tmp_path):
    code, out, err = terminal()
    assert (code, err) == (0, "") and all(re.search(rf"^  {name} +\S", out, re.MULTILINE) for name in COMMANDS.lazy)
    assert terminal("--version") == (0, f"cora_nb {cora_nb.__version__}\n", "")
    assert terminal("run", "--version") == (0, f"cora_nb {cora_nb.__version__}\n", "")
    code, out, err = terminal("rum")
    assert (code, out, err) == (2, "", "python -m cora_nb: no command 'rum'; did you mean run?\n")
    code, out, err = terminal("run", "--limits", "3")
    assert code == 2 and err.startswith(
        "python -m cora_nb run: unrecognized arguments: --limits; did you mean --limit?"
    )
    code, out, err = terminal("run", "simulated", "--limit", "2", "--out", str(tmp_path / "r"))
    assert code == 0 and "2 questions, 40 variants" in out
    code, out, err = terminal("run", "oracle")
    assert code == 1 and out == "" and err.startswith("cora_run: respondent must be one of")


@pytest.mark.slow
def test_help_loads_nothing_that_is_slow():
    code = (
        "import sys; sys.argv = ['cora_run', '--help']\nfrom cora_nb.cli.run import cora_run\n"
        "try:\n    cora_run()\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('torch', 'transformers', 'datasets', 'openai', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.endswith("\n[]\n"), done


def test_a_package_adds_a_command_and_names(monkeypatch, capsys):
    added = [
        EntryPoint("command.collect", "cora_nb.cli.commands:cora_list", "cora_nb"),
        EntryPoint("family.doubled", "json:dumps", "cora_nb"),
        EntryPoint("family.gone", "no_such_module:x", "cora_nb"),
        EntryPoint("list.recipes", "cora_nb.cli.names:list_rules", "cora_nb"),
    ]
    monkeypatch.setattr("cora_nb.registry.entry_points", lambda group: added)
    cora_main(["collect", "recipes"])
    assert "careful" in capsys.readouterr().out
    cora_main([])
    assert re.search(r"^  collect +List the", capsys.readouterr().out, re.MULTILINE)
    rows = dict(list_families())
    assert rows["doubled"].startswith("Serialize") and rows["gone"].startswith("(cannot be loaded: ") and rows["cora"]
    assert "recipes" in names_of("")


# ---------------------------------------------------------------- cora_list


def test_every_name_has_one_line():
    for kind in LISTS:
        rows = LISTS[kind]()
        assert rows and all(name and line and "\n" not in line for name, line in rows), kind


def test_what_the_lists_say(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    cora_list(["respondents", "scores", "benchmarks"])
    out = capsys.readouterr().out
    assert re.search(r"^chat:MODEL +A model behind an OpenAI-compatible server$", out, re.MULTILINE)
    assert re.search(r"^  concurrency +whole number; requests under way at a time \[32\]$", out, re.MULTILINE)
    assert re.search(r"^  model +text; the model's name on the server \(needed\)$", out, re.MULTILINE)
    assert re.search(r"^CoRA +.+ \(CoRA, Eq. 7\)$", out, re.MULTILINE)
    assert re.search(r"^mmlu +cais/mmlu/all, split test; examples from mmlu dev. .+", out, re.MULTILINE)
    cora_list([])
    assert capsys.readouterr().out.count("cora_list ") == len(list(LISTS))


@pytest.mark.slow
def test_an_unknown_list_is_one_line(tmp_path):
    code, out, err = run("cora_list", "receipts", cwd=tmp_path)
    assert (code, out, len(err.splitlines())) == (1, "", 1) and "benchmarks, families" in err


# ---------------------------------------------------------------- a run, repeated


def test_the_facts_of_a_run_repeat_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text("respondents = ['simulated:name=a', 'simulated:name=b']\nlimit = 9\nseed = 4\n")
    cora_run.typed(["--config", "run.toml", "--limit", "3"])
    facts = tmp_path / "responses" / "math" / "b" / "facts.json"
    told = json.loads(facts.read_text())["run"]["command"]
    assert told.items() >= {"command": "cora_run", "respondents": ["simulated:name=b"], "limit": 3, "seed": 4}.items()
    assert told.items() >= {"family": "cora", "template": "cora", "digits": 2, "shuffle_original": False}.items()
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.*") if p.is_file()}
    cora_run.typed(["--config", str(facts)])  # the same run, in its own folder
    assert {p: p.read_bytes() for p in tmp_path.rglob("*.*") if p.is_file()} == before
    cora_run.typed(["--config", str(facts), "--out", "again"])
    again = json.loads((tmp_path / "again" / "math" / "b" / "facts.json").read_text())
    assert again["run"].pop("command") == told | {"out": "again"}
    assert again == {**(old := json.loads(facts.read_text())), "run": {**old["run"]}} | {"run": again["run"]}
    assert {**old["run"], "command": None} == {**again["run"], "command": None}
    with pytest.raises(SystemExit, match="these are options of cora_run, and not of cora_table"):
        COMMANDS["table"].typed(["--config", str(facts)])
    capsys.readouterr()


@pytest.mark.slow
def test_how_a_run_was_started_does_not_make_it_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cora_run(["simulated:name=a"], limit=3)
    cora_run(["simulated:name=a", "simulated:name=b"], limit=3, digits=4)
    told = json.loads((tmp_path / "responses" / "math" / "a" / "facts.json").read_text())["run"]["command"]
    assert told["digits"] == 4 and told["respondents"] == ["simulated:name=a"]
    cora_run(limit=1, out="organisms", dry=True)


@pytest.mark.slow
def test_nobody_named_means_the_organisms_for_their_arithmetic_only(tmp_path):
    (tmp_path / "mine.csv").write_text("question,A,B,answer\nWhat is 1 + 1?,2,3,A\n")
    for words in (("--benchmark", "mine", "--path", "mine.csv"), ("--benchmark", "medqa"), ("--path", "mine.csv")):
        code, out, err = run("cora_run", *words, "--dry", cwd=tmp_path)
        assert (code, out, len(err.splitlines())) == (1, "", 1) and "say who answers: chat:MODEL, causal:PATH" in err


@pytest.mark.slow
def test_a_dry_run_with_early_stopping_says_at_most(tmp_path):
    words = ("cora_run", "simulated", "--limit", 2, "--dry", "--price", "1/2")
    code, out, _ = run(*words, cwd=tmp_path)
    assert code == 0 and "cost, at most" in out and "calls, at most" not in out and out.startswith("nothing was asked")
    code, out, _ = run(*words, "--stop", "cora", cwd=tmp_path)
    assert code == 0 and "calls, at most" in out and "tokens read, at most" in out and "asks less than that" in out


def test_models_and_tables_of_the_papers_are_listed(capsys):
    cora_list(["models", "papers"])
    out = " ".join(capsys.readouterr().out.split())
    cards, items = model_cards(), plan_list()
    assert all(f"{card.paper}/{card.key} {card.name}: " in out for card in cards.itertuples())
    assert all(missing in out for missing in cards["not_known"])
    assert all(f"{item.item} {item.about} (" in out for item in items.itertuples())
    assert names_of("models") == (cards["paper"] + "/" + cards["key"]).tolist()
    assert names_of("papers") == items["item"].tolist() and "(33,098 prompts)" in out and "(nobody is asked)" in out


HALF_MADE_BAR = """
import tqdm
from cora_nb.cli.shared import one_line_errors

def interrupted(*_):
    raise KeyboardInterrupt

tqdm.tqdm._get_free_pos = classmethod(interrupted)  # what comes before a bar has its place

@one_line_errors
def cora_wait():
    with tqdm.tqdm(total=2):
        pass

cora_wait()
"""


def test_an_interrupt_while_a_bar_is_made_is_one_line():
    "The bar, half made, complained as it was thrown away."
    done = subprocess.run([sys.executable, "-c", HALF_MADE_BAR], capture_output=True, text=True, timeout=WITH_TORCH)
    assert done.returncode == 1 and done.stderr == "cora_wait: interrupted\n"
