"""Whatever somebody else's data say, nothing of theirs runs: every reader, every field, every way to look at them.

Each field is given the address of code that would make a file: a module, a file, and a function of the standard
library that hands the seed to a shell. No file may appear, and anything but a `CoraError` is a failure too.
"""

import contextlib
import copy
import csv
import io
import json
import sqlite3
import sys
import time
import warnings
import zlib
from collections import Counter
from contextlib import closing
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cora_nb as cn
from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.cli.commands import COMMANDS, read_config
from cora_nb.core import CoraError
from cora_nb.interop.publish import publish
from cora_nb.interop.formats import import_responses
from cora_nb.metrics.guessing import chance_scores
from cora_nb.papers.reproduce import load_plan, plan_text
from cora_nb.papers.reproduce import Size, make_item, _prepare_run
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.metrics.guessing import prompt_numbers
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.responses.runs import Runs, concat
from cora_nb.responses.shown import shown_variants
from cora_nb.runs.evaluate import evaluate, prepare, Running
from cora_nb.runs.grading import read_labels, write_labels
from cora_nb.runs.store import Store
from cora_nb.variants.families import FAMILIES, alter_like, get_family, make_variants
from cora_nb.variants.files import read_variants, variants_table

pytestmark = pytest.mark.guard

QUESTIONS = math_benchmark(n=2)
VARIANTS = make_variants(QUESTIONS)
LONG = make_variants(QUESTIONS, "formats", only=("lfgq",))
TRIED = Counter()  # readers, fields, displays -> how often
SEEN: dict[str, set] = {"readers": set(), "fields": set(), "displays": set()}


FIELD_BY_FIELD = pytest.mark.parametrize(  # field by field, one way of attack in the fast stage
    "attack", ["file", *(pytest.param(name, marks=pytest.mark.slow) for name in ("module", "shell"))]
)


@lru_cache
def sound_run(name="theirs"):
    facts = {"benchmark": "math", "family": "cora", "limit": 2, "command": {"command": "cora_run", "limit": 2}}
    return prepare(VARIANTS, facts=facts).ask(SimulatedRespondent(name=name), Running(progress=False))


class Trap:
    "Code that leaves a file behind, and the words that would run it."

    def __init__(self, folder: Path):
        self.folder = folder / "ran"
        self.folder.mkdir()
        code = f"from pathlib import Path\nPath({str(self.folder)!r}, NAME).touch()\n"
        code += f"def f(*given, **more):\n    Path({str(self.folder)!r}, NAME + ' called').touch()\n"
        (folder / "strangers_module.py").write_text(code.replace("NAME", "'module'"))
        (folder / "evil.py").write_text(code.replace("NAME", "'file'"))
        shell = f"touch {self.folder}/shell; cat > /dev/null"
        self.attacks = {  # what stands in a field with a name, and what in one of numbers
            "module": ("strangers_module:f", "strangers_module:f"),
            "file": (f"{folder}/evil.py:f", f"{folder}/evil.py:f"),
            "shell": ("pydoc:pipepager", shell),
        }

    def check(self, what: object) -> None:
        ran = sorted(p.name for p in self.folder.iterdir())
        assert not ran, f"{what}: ran {ran}"


@pytest.fixture
def trap(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield Trap(tmp_path)
    assert not [m for m in sys.modules if m.startswith(("strangers_module", "evil_"))]


def leaves(told: object, at: tuple = ()):
    "The places of all values of nested groups and lists, the groups themselves too."
    if at:
        yield at
    for key, value in told.items() if isinstance(told, dict) else enumerate(told[:1]) if isinstance(told, list) else ():
        yield from leaves(value, (*at, key))


def changed(told: dict, place: tuple, value: object) -> dict:
    told = copy.deepcopy(told)
    group = told
    for key in place[:-1]:
        group = group[key]
    group[place[-1]] = value
    return told


def attacked(told: dict, attack: tuple[str, str]):
    "Facts with an address in one field after another, and in all that name something at once."
    name, number = attack
    for place in leaves(told):
        yield place, changed(told, place, name)
    recipe = {"family": name, "seed": number, "options": {}}
    yield "recipe and seed", changed(told, ("variants", "recipe"), recipe)
    yield "recipe", changed(told, ("variants", "recipe"), recipe | {"seed": 0})
    every = changed(told, ("variants", "recipe"), recipe | {"seed": 0})
    every["asked"] |= {"template": name, "parse": {"mcq": name, "lfgq": name}}
    every["run"] |= {"benchmark": name, "family": name, "parse": name, "score": name, "template": name}
    every["respondent"] |= {"respondent": name, "model": name, "kind": name}
    yield "all names", every


def no_more_than_refused(what: tuple, action) -> object:
    "The action's result; None if it was refused in the proper way."
    reader, field, display = what
    for kind, value in zip(SEEN, (reader, (reader, field), display)):
        SEEN[kind].add(value)
    TRIED["cases"] += 1
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return action()
    except CoraError as e:
        assert len(str(e).splitlines()) == 1, (what, str(e))
    except SystemExit as e:
        assert isinstance(e.code, int | str), what
    except Exception as e:
        raise AssertionError(f"{what}: {type(e).__name__}: {e}") from e
    return None


def cheap_displays(run) -> dict:
    "Ways to look at a run, a few milliseconds each."
    return {
        "repr": lambda: repr(run),
        "html": lambda: run._repr_html_(),
        "summary": lambda: run.summary(),
        "coverage": lambda: run.coverage,
        "score": lambda: cn.score(run),
        "prompts": lambda: prompt_numbers(run),
        "shown": lambda: shown_variants(run),
        "concat": lambda: concat([run]),
        "runs": lambda: repr(Runs({"a": run, "b": sound_run()})) + str(Runs({"a": run, "b": sound_run()}).differences),
    }


def dear_displays(run, folder: Path) -> dict:
    "Ways to look at a run that take longer."
    return {
        "chance": lambda: chance_scores(run),
        "table": lambda: cn.render(cn.score_table({"a": run, "b": sound_run()})),
        "compare": lambda: cn.compare(run, sound_run(), resamples=20),
        "report": lambda: cn.make_report({"a": run}, pictures=False).save(folder / "report.html"),
        "hub": lambda: publish({"a": run}, folder / "hub"),
        "alter": lambda: [alter_like(QUESTIONS[0], v) for v in shown_variants(run).values()],
    }


def commands(path: Path, sound: Path, n: int) -> dict:
    "Commands about a run's folder or file."
    one = COMMANDS["table"], COMMANDS["report"], COMMANDS["gate"], COMMANDS["export"], COMMANDS["run"]
    table, report, gate, export, run = one
    return {
        "cora_table": lambda: table([str(path)]),
        "cora_report": lambda: report([str(path)], out=f"report-{n}.html", pictures=False),
        "cora_gate": lambda: gate(str(path), against=str(sound)),
        "cora_gate at_least": lambda: gate(str(path), at_least="CoRA=0.1"),
        "cora_export": lambda: export("hub", f"hub-{n}", run=str(path)),
        "cora_run recorded": lambda: run([f"recorded:{path}"], limit=2, store="none", out=f"out-{n}"),
    }


def look(trap: Trap, reader: str, field: object, run, *displays: dict) -> None:
    for display, show in [pair for some in displays for pair in some.items()]:
        no_more_than_refused((reader, field, display), show)
        trap.check((reader, field, display))


def with_facts(folder: Path, facts: dict) -> None:
    (folder / "facts.json").write_text(json.dumps(facts))


# ---------------------------------------------------------------- runs and their facts


@FIELD_BY_FIELD
@pytest.mark.slow
def test_every_field_of_the_facts(trap, tmp_path, attack):
    "Each field alone."
    write_responses(sound_run(), tmp_path / "run")
    for n, (field, told) in enumerate(attacked(sound_run().facts.plain(), trap.attacks[attack])):
        with_facts(tmp_path / "run", told)
        run = no_more_than_refused(("run folder", field, "read"), lambda: read_responses(tmp_path / "run"))
        trap.check(("run folder", field))
        if run is not None:
            look(trap, "run folder", field, run, cheap_displays(run))
        if isinstance(field, str):
            look(trap, "run folder", field, None, commands(tmp_path / "run", tmp_path / "run", n))


@pytest.mark.slow
def test_every_field_in_every_display(trap, tmp_path, attack="module"):  # all attacks at once stand below
    write_responses(sound_run(), tmp_path / "run")
    write_responses(sound_run(), tmp_path / "sound")
    for n, (field, told) in enumerate(attacked(sound_run().facts.plain(), trap.attacks[attack])):
        with_facts(tmp_path / "run", told)
        run = no_more_than_refused(("run folder", field, "read"), lambda: read_responses(tmp_path / "run"))
        if run is not None:
            look(trap, "run folder", field, run, dear_displays(run, tmp_path / f"d{n}"))
        look(trap, "run folder", field, run, commands(tmp_path / "run", tmp_path / "sound", n))


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["module", "file", "shell"])
def test_all_names_at_once_in_every_display(trap, tmp_path, attack):
    found = dict(attacked(sound_run().facts.plain(), trap.attacks[attack]))
    field, told = "all names", found["all names"]
    write_responses(sound_run(), tmp_path / "run")
    write_responses(sound_run(), tmp_path / "sound")
    with_facts(tmp_path / "run", found["recipe and seed"])
    with pytest.raises(CoraError, match=r"facts\.json: .*variants\.recipe\.seed must be a whole"):
        read_responses(tmp_path / "run")
    with_facts(tmp_path / "run", told)
    run = read_responses(tmp_path / "run")
    with pytest.warns(UserWarning, match="are not known, since code that data name is not loaded; if you trust it"):
        shown_variants(run)
    look(trap, "run folder", field, run, dear_displays(run, tmp_path / "dear"))
    look(trap, "run folder", field, run, commands(tmp_path / "run", tmp_path / "sound", 0))


# ---------------------------------------------------------------- rows, logs and tables of others


@FIELD_BY_FIELD
def test_text_cells_of_a_run(trap, tmp_path, attack):
    name = trap.attacks[attack][0]
    for part in ("responses", "questions"):
        write_responses(sound_run(), tmp_path / part)
        file = tmp_path / part / f"{part}.parquet"
        table = pq.read_table(file)
        for at, column in enumerate(table.schema):
            if pa.types.is_string(column.type):
                there = pa.array([name] * len(table), column.type)
                pq.write_table(table.set_column(at, column, there).replace_schema_metadata(table.schema.metadata), file)
                where = f"{part}.{column.name}"
                run = no_more_than_refused(("run folder", where, "read"), lambda p=part: read_responses(tmp_path / p))
                trap.check(where)
                if run is not None:
                    look(trap, "run folder", where, run, cheap_displays(run))


@pytest.mark.slow
@FIELD_BY_FIELD
def test_tables_logs_and_sheets(trap, tmp_path, attack):
    name, number = trap.attacks[attack]
    table = sound_run().table.assign(sources=None, scores=None, selected=None)
    for column in table.columns:  # a table of replies
        table.assign(**{column: name}).to_csv(tmp_path / "t.csv", index=False)
        read_and_look(trap, "CSV", column, lambda: import_responses(tmp_path / "t.csv", tool="table"))
    entry = {"choices": {"A": "a", "B": "b"}, "correct_choice": "B", "model_choice": "A", "output": "A"}
    for field in ("question", "answer", "options", *entry):  # a file of the CAT
        cell = json.dumps({"standard_MC": [entry | ({field: name} if field in entry else {})]})
        row = [name if field == head else "Q?" for head in ("question", "answer", "options")]
        with (tmp_path / "cat.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["question", "answer", "options", "expanded_evaluation"], [*row, cell]])
        read_and_look(trap, "CAT", field, lambda: import_responses(tmp_path / "cat.csv", tool="cat"))
    sheet = evaluate(SimulatedRespondent(), LONG, progress=False)
    write_labels(sheet, LONG, tmp_path / "labels.csv")
    rows = list(csv.DictReader((tmp_path / "labels.csv").open()))
    for field in rows[0]:  # a sheet of labels
        with (tmp_path / "filled.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(row | {"label": "right"} | {field: name} for row in rows)
        no_more_than_refused(("labels", field, "read"), lambda: read_labels(tmp_path / "filled.csv", LONG))
        trap.check(("labels", field))
    variants = variants_table(VARIANTS)
    recipe = json.dumps({"family": name, "seed": number, "options": {}})
    for at, column in enumerate(variants.schema):  # a file of variants
        if pa.types.is_string(column.type):
            for value in (name, recipe) if column.name == "recipe" else (name,):
                there = pa.array([value] * len(variants), column.type)
                pq.write_table(variants.set_column(at, column, there), tmp_path / "v.parquet")
                found = no_more_than_refused(("variants", column.name, "read"), lambda: read_variants("v.parquet"))
                act = {
                    "alter": lambda: [alter_like(QUESTIONS[1], v) for v in found],
                    "ask": lambda: evaluate(SimulatedRespondent(), found, progress=False),
                }
                look(trap, "variants", (column.name, value), found, act if found else {})


def read_and_look(trap, reader, field, read) -> None:
    run = no_more_than_refused((reader, field, "read"), read)
    trap.check((reader, field))
    if run is not None:
        look(trap, reader, field, run, cheap_displays(run))


@FIELD_BY_FIELD
@pytest.mark.slow
def test_logs_of_other_tools(trap, tmp_path, attack):
    from interop.test_lm_eval_logs import exported_results, own_rows
    from lm_eval_rows import write_log

    name, number = trap.attacks[attack]
    rows, facts = own_rows(VARIANTS, ["A"] * len(VARIANTS), None), sound_run().facts.plain()
    recipe = json.dumps({"family": name, "seed": number, "options": {}})
    for field in rows[0]["doc"]:
        for value in (name, recipe) if field == "recipe" else (name,):
            theirs = [row | {"doc": row["doc"] | {field: value}} for row in rows]
            log = write_log(tmp_path, theirs, results=exported_results(**facts))
            read_and_look(trap, "lm-eval", field, lambda: import_responses(log, tool="lm-eval"))
    for n, (field, told) in enumerate(attacked(facts, trap.attacks[attack])):
        if n % 3 == 0 or isinstance(field, str):
            log = write_log(tmp_path, rows, results=exported_results(**told))
            read_and_look(trap, "lm-eval", field, lambda: import_responses(log, tool="lm-eval"))
    pytest.importorskip("inspect_ai")
    from interop.test_inspect_logs import edited, OURS

    source = OURS / "cora_style_order_swap_1_epoch.json"
    log = json.loads(source.read_text())
    places = [("metadata", "cora_nb", *p) for p in leaves(log["eval"]["metadata"]["cora_nb"])]
    for place in places[:: 1 if attack == "file" else 5]:
        path = edited(tmp_path, lambda log: log.update(eval=changed(log["eval"], place, name)), source)
        read_and_look(trap, "inspect", place, lambda: import_responses(path, tool="inspect"))
    for field in log["samples"][0]["metadata"]:
        for value in (name, recipe) if field == "recipe" else (name,):

            def change(log):
                for sample in log["samples"]:
                    sample["metadata"][field] = value

            path = edited(tmp_path, change, source)
            read_and_look(trap, "inspect", field, lambda: import_responses(path, tool="inspect"))


# ---------------------------------------------------------------- plans, options, stores


@pytest.mark.parametrize("attack", ["module", "file", "shell"])
def test_plans(trap, tmp_path, attack):
    name, text = trap.attacks[attack][0], plan_text(load_plan("cora/table_2"))
    lines = [n for n, line in enumerate(text.splitlines()) if " = " in line]
    more = [
        f"[runs.theirs]\nbenchmark = 'math'\n{key} = '{name}'\nprompts = 1" for key in ("family", "template", "parse")
    ]
    theirs = [*(replaced(text, n, name) for n in lines), *(f"{text}\n{run}\n" for run in more)]
    for n, told in enumerate(theirs):
        (tmp_path / "theirs.toml").write_text(told)
        plan = no_more_than_refused(("plan", n, "read"), lambda: load_plan("theirs.toml"))
        act = {} if plan is None else {
            "repr": lambda: repr(plan),
            "text": lambda: plan_text(plan),
            "prepare": lambda: [_prepare_run(run, Size(1, "math")) for run in plan.runs.values()],
            "items": lambda: [make_item(item, {run: {} for run in item.runs}) for item in plan.items.values()],
        }  # fmt: skip
        for display, show in act.items():
            if display == "items":  # a measure that is given no replies may break; it is ours
                with contextlib.suppress(Exception):
                    show()
            else:
                no_more_than_refused(("plan", n, display), show)
            trap.check(("plan", n, display))
    with pytest.raises(CoraError, match="measure cannot be '.*': code that a file names is not loaded"):
        (tmp_path / "theirs.toml").write_text(text.replace('measure = "scores"', f'measure = "{name}"', 1))
        load_plan("theirs.toml")


def replaced(text: str, n: int, name: str) -> str:
    lines = text.splitlines()
    lines[n] = f"{lines[n].partition(' = ')[0]} = {json.dumps(name)}"
    return "\n".join(lines)


def test_options_in_a_file(trap, tmp_path):
    import inspect

    for command in COMMANDS.lazy:
        function = COMMANDS[command]
        for option, kind in inspect.signature(function).parameters.items():
            if kind.annotation not in (str, list[str]):
                continue
            for name, _ in trap.attacks.values():
                for value in (name, f"chat:m,{name}"):
                    value = [value] if kind.annotation == list[str] else value
                    (tmp_path / "o.toml").write_text(f"{option} = {json.dumps(value)}\n")
                    told = {"run": {"command": {"command": f"cora_{command}", option: value}}}
                    (tmp_path / "o.json").write_text(json.dumps(told))
                    for file in ("o.toml", "o.json"):
                        found = no_more_than_refused(
                            ("--config", (command, option), "read"), lambda f=file: read_config(f, function)
                        )
                        assert found is None or "chat:m," in str(value), (command, option, value)
    trap.check("--config")


@pytest.mark.parametrize(
    "option, value, what",
    [
        ("family", "pydoc:pipepager", "code to run"),
        ("parse", "mine.py:rule", "code to run"),
        ("respondents", ["mine.py:Model,name=x"], "code to run"),
        ("respondents", ["chat:m,base_url=http://theirs.invalid/v1"], "a server"),
        ("respondents", ["chat:m,key_variable=AWS_SECRET_ACCESS_KEY"], "the variable with a key"),
        ("respondents", ["chat:m,base_url=http://x.invalid,key_variable=AWS"], "the variable with a key"),
        ("store", "postgresql://theirs.invalid/replies", "a server"),
        ("scheduler", "theirs.invalid:8786", "a server"),
    ],
)
def test_the_line_to_type(tmp_path, monkeypatch, option, value, what):
    monkeypatch.chdir(tmp_path)
    cora_run = COMMANDS["run"]
    Path("theirs.toml").write_text(f"{option} = {json.dumps(value)}\nlimit = 2\n")
    with pytest.raises(CoraError, match=f"--config theirs.toml: {option} names {what}, which has to be typed") as e:
        read_config("theirs.toml", cora_run)
    words = [*value] if isinstance(value, list) else [f"--{option}", value]
    assert str(e.value).endswith(f"if you trust it: cora_run {' '.join(words)} --config theirs.toml")
    assert read_config("theirs.toml", cora_run, typed=[option]) == {"limit": 2}


@pytest.mark.slow
def test_stores(trap, tmp_path):
    for name, number in trap.attacks.values():
        who = SimulatedRespondent(name="kept")
        for place, value in {0: name, 1: [name], 3: {name: name, "finish_reason": name}}.items():
            file = tmp_path / f"{time.monotonic_ns()}.sqlite"
            with Store(file) as store:
                evaluate(who, VARIANTS, store=store, progress=False)
            with closing(sqlite3.connect(file)) as data:
                for key, text in data.execute("select key, reply from cora_replies").fetchall():
                    reply = json.loads(text)  # text, scores, confidence, meta
                    reply[place] = value
                    changed = json.dumps(reply)
                    told = (changed, zlib.crc32(f"{key} {changed}".encode()), key)
                    data.execute("update cora_replies set reply = ?, crc = ? where key = ?", told)
                data.commit()

            def ask():
                with Store(file) as store:
                    return evaluate(who, VARIANTS, store=store, progress=False)

            read_and_look(trap, "store", place, ask)


def test_what_was_tried():
    "The last: how much the tests before it in this process have tried; nothing to check where they ran elsewhere."
    print({kind: len(values) for kind, values in SEEN.items()}, dict(TRIED), sorted(SEEN["readers"]))
    if len(SEEN["readers"]) >= 12:
        assert len(SEEN["fields"]) > 300 and len(SEEN["displays"]) >= 20


def test_a_family_of_ones_own_is_used_where_it_was_typed(tmp_path, monkeypatch, recwarn):
    "A run of it in another process is scored, and says in a line what is not known; `get_family` loads it."
    monkeypatch.chdir(tmp_path)
    code = "from cora_nb.variants.operators import make_variant\n\n\ndef turned(question, seed=0):\n"
    code += "    yield make_variant(question, 'turned', 'original', 0, tuple(range(question.n_choices)))\n"
    code += "    yield make_variant(question, 'turned', 'back', 0, tuple(range(question.n_choices))[::-1])\n"
    Path("mine.py").write_text(code)
    made = make_variants(QUESTIONS, "mine.py:turned")
    run = evaluate(SimulatedRespondent(), made, progress=False)
    write_responses(run, "run")
    recipes = {v.recipe for v in shown_variants(read_responses("run")).values()}
    assert recipes == {made[0].recipe} and not [
        w for w in recwarn if "not known" in str(w.message)
    ]  # typed in this process
    del FAMILIES.loaded["mine.py:turned"]
    found = read_responses("run")
    with pytest.warns(UserWarning, match=r"family 'mine.py:turned' are not known.*get_family\('mine.py:turned'\)"):
        assert {v.recipe for v in shown_variants(found).values()} == {""}
    assert cn.score(found)["value"].notna().any()
    get_family("mine.py:turned")
    assert {v.recipe for v in shown_variants(found).values()} == {made[0].recipe}
