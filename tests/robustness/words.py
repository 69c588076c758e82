"""What a person types: names of respondents with a field damaged, and options of the commands."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from robustness.cases import Case

from cora_nb.cli.respondents import make_respondent, make_respondents
from cora_nb.cli.run import cora_run
from cora_nb.cli.importing import cora_import
from cora_nb.cli.table import cora_table

NO_COUNT = ("-1", "0", "1.5", "one", "", "1e3", "inf", "nan", "0x10", "\u0661\u0661\u0661x", "9x", "true", "null")
NO_NUMBER = ("-0.1", "-inf", "inf", "nan", "one", "", "0,5", "1/2", "true", "1e999", "--1")
ADDRESSES = (
    "127.0.0.1:8000/v1",
    "localhost",
    "http://",
    "http:///v1",
    "https://user:secret@host/v1",
    "http://host:99999/v1",
    "http://host:-1/v1",
    "http://host:port/v1",
    "http://host/v1?api_key=sk-1",
    "http://host/v1?token=sk-1",
    "ftp://host/v1",
    "file:///etc/passwd",
    "http://[::1",
    "http://ho st/v1",
    "http://host/v1#part",
    "http://host/\x1b[2J",
    "javascript:1",
    "//host/v1",
    "\u0000",
)
KINDS = (
    "",
    ":",
    ",",
    "chat",
    "chat:",
    "chat:,",
    "chat:,temperature=0",
    "chats:m",
    "Chat:m",
    "chat :m",
    "gpt-4o-mini",
    "causal",
    "causal:",
    "likelihood:",
    "recorded",
    "recorded:",
    "recorded:nowhere",
    "recorded:,name=x",
    "no_such_module:Thing",
    "os:nothing",
    "os:path",
    "os",
    "os:sep",
    "os:getcwd",
    "nowhere.py:Thing",
    "nowhere.py",
    "/tmp:Thing",
    "..:x",
    "simulated:knows",
    "simulated:knows=",
    "simulated:=1",
    "simulated:knows=0.5=0.6",
    "simulated:unknown=1",
    "simulated:0.5",
    "simulated:,,unknown",
    "hub:org/model",
    "causal:organism/nobody",
    "builtins:int",
    "json:dumps",
    "math:pi",
    "chat:m;rm -rf",
    "-",
    "--",
    "chat:m,",
    "simulated:knows=0.5,knows=2",
    "\x00",
    "chat:\x1b[2J,temperature=x",
    "a" * 300,
    "simulated:" + "x" * 300,
)
FIELDS = {
    "chat:m,{}": {
        "temperature": NO_NUMBER,
        "max_tokens": NO_COUNT,
        "concurrency": NO_COUNT,
        "retries": [v for v in NO_COUNT if v != "0"],
        "timeout": ("0", *NO_NUMBER),
        "top_logprobs": [v for v in NO_COUNT if v != "0"],
        "seed": [v for v in NO_COUNT if v not in ("0", "-1")],
        "endpoint": ("", "Chat", "chats", "chat/completions", "/v1", "none", "1", "responses"),
        "base_url": ADDRESSES,
        "extra": ("", "x", "{}", "1"),
        "tempereature": ("0",),
        "api_key": ("sk-1",),
        "key": ("sk-1",),
    },
    "simulated:{}": {
        "knows": [*NO_NUMBER, "1.1", "2", "-1"],
        "slips": [*NO_NUMBER, "1.1", "2", "-1"],
        "seed": [v for v in NO_COUNT if v not in ("0", "-1")],
        "prefer": ("x", "", "0.5/x", "/", "1,2", "nan/1", "-1/2", "inf/1"),
        "nobody": ("1",),
    },
}


def spec_cases() -> Iterator[Case]:
    "A respondent's name that means none."
    import inspect

    from cora_nb.respondents.simulated import SimulatedRespondent

    for spec in KINDS:
        yield Case("respondent", repr(spec)[:60], lambda folder, s=spec: make_respondents([s]), (), sound_spec(spec))
    known = inspect.signature(SimulatedRespondent).parameters
    for form, fields in FIELDS.items():
        for field, values in fields.items():
            if form.startswith("simulated") and field not in known and field != "nobody":
                continue
            for value in values:
                spec = form.format(f"{field}={value}")
                shown = f"{form.partition(':')[0]}: {field}={value!r}"[:70]
                yield Case("respondent", shown, lambda folder, s=spec: make_respondent(s), (), sound_spec(spec))


def sound_spec(spec: str) -> Callable[[object], bool] | None:
    "What looks odd and is not."
    if spec in ("chat:m,", "simulated:,,unknown", "chat:m;rm -rf"):
        return lambda found: True
    return None


def run_here(command: Callable, folder: Path, *words: Any, **options: Any) -> object:
    "A command, called in this folder."
    before = os.getcwd()
    os.chdir(folder)
    try:
        return command(*words, **options)
    finally:
        os.chdir(before)
        left = [p.name for p in Path(folder).rglob("*") if p.suffix in (".parquet", ".sqlite")]
        assert not left, f"a refused command left {left}"


NOT_COUNTS = (-1, 0, 1.5, "3", True)
RUN_OPTIONS: dict[str, tuple] = {
    "benchmark": ("", "nosuch", "MATH", "math ", "../math", "module:nosuch", "os:path", ":", "x" * 300, "\x1b[2J"),
    "path": (
        "",
        "nowhere.csv",
        "/nowhere/x.jsonl",
        ".",
        "/",
        "/dev/null",
        "x" * 300,
        "~nobody/x.csv",
        "http://host/x.csv",
    ),
    "split": ("test", "train", " "),
    "limit": NOT_COUNTS,
    "sample": (*NOT_COUNTS, 401, 10**9),
    "subjects": ("", ",", "nosuch", "Addition", "addition;division", "addition,,nosuch"),
    "malformed": ("", "drop", "Skip", "ignore", 7, None, True),
    "existing_nota": ("", "drop", "Keep", "yes", 7, None, True),
    "shuffle_original": ("yes", 2, None, "true"),
    "family": ("", "nosuch", "CoRA", "cora ", "os:path", "nowhere.py:X", ":", 7, None),
    "template": ("", "nosuch", "Cora", "os:path", "nowhere.py:X", ":", 7, None),
    "shots": (-1, 1.5, "1", 10**6),
    "trials": NOT_COUNTS,
    "parse": ("", "nosuch", "Lenient", "os:path", "nowhere.py:X", ":", 7, None),
    "stop": ("", "nosuch", "Cora", "mcqa", 7),
    "seed": (-1, 1.5, "0", None),
    "store": ("/nowhere/r.sqlite", ".", "/", "/dev/full/x", "x" * 300),
    "price": ("", "1", "1/2/3", "a/b", "1/", "-1/2", "nan/1", "inf/1", "1,2"),
    "score": ("nosuch", "os:path", "os:nothing", "nowhere.py:X", ":"),
    "digits": (-1, 1.5, 16, 10**9, "2", None),
    "out": ("/nowhere/deep/out", "/dev/null", "/proc/x", "x" * 300),
}


def option_cases() -> Iterator[Case]:
    "An option of a command with a value that it cannot have."
    for option, values in RUN_OPTIONS.items():
        for value in values:
            more = {"limit": 2} if option not in ("limit", "sample", "subjects", "price") else {}
            more |= {"dry": True, "limit": 2} if option == "price" else {}
            more |= {"store": "none"} if option != "store" else {}
            who = ["chat:m,base_url=http://127.0.0.1:9/v1,retries=0"] if option == "store" else ["simulated"]

            def read(folder, option=option, value=value, more=more, who=who):
                return run_here(cora_run, folder, who, **more, **{option: value})

            yield Case("cora_run", f"{option}={value!r}"[:60], read)
    for path in ("", "nowhere", ".", "/dev/null", "/", "x" * 300, "\x1b[2J"):
        yield Case("cora_table", f"runs={path!r}"[:60], lambda folder, p=path: run_here(cora_table, folder, [p]))
        yield Case("cora_import", f"file={path!r}"[:60], lambda folder, p=path: run_here(cora_import, folder, p))
    for option, values in {
        "format": ("", "Text", "styler", 7),
        "interval": (0, 1, -0.5, 2, float("nan")),
        "trials": ("", "last", "All", 7),
        "trial": (-1, 99),
    }.items():
        for value in values:

            def read_table(folder, option=option, value=value):
                from robustness.run_files import some_run

                from cora_nb.responses.files import write_responses

                write_responses(some_run(), Path(folder) / "run")
                try:
                    return cora_table([str(Path(folder) / "run")], **{option: value})
                finally:
                    (Path(folder) / "run" / "responses.parquet").unlink()

            yield Case("cora_table", f"{option}={value!r}", read_table)


def cases() -> list[Case]:
    return [*spec_cases(), *option_cases()]
