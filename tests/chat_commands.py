"""A command within this process, as a person types it: exit status, output, errors; and what it left on disk."""

import json
import re
import shlex
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from cora_nb.cli.commands import cora_main
from cora_nb.responses.files import read_responses

KEY = "sk-test-0123456789abcdef"
ENVIRONMENT = ("OPENAI_BASE_URL", "OPENAI_ORG_ID", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE")


@dataclass(frozen=True)
class Said:
    "What became of a command."

    status: int
    out: str
    err: str  # with what `sys.exit` says

    @property
    def last(self) -> str:
        "The last line of the error stream."
        lines = [line for line in re.split(r"[\r\n]", self.err) if line.strip()]
        return lines[-1] if lines else ""

    @property
    def all(self) -> str:
        return f"{self.out}\n{self.err}"

    @property
    def to_type(self) -> list[str]:
        "The command that the last line gives; empty if it gives none."
        _, found, line = self.last.partition("type: ")
        return shlex.split(line) if found else []

    def score(self, name: str) -> str:
        found = re.search(rf"(?m)^ *{name} +(\S+)", self.out)
        assert found, f"no {name} in the table: {self.out[-2000:]}\n{self.err[-2000:]}"
        return found[1]

    def lines_with(self, word: str) -> list[str]:
        "All lines, of both streams, that have a word (a regular expression)."
        return [line for line in re.split(r"[\r\n]", self.all) if re.search(word, line, re.IGNORECASE)]


@dataclass
class Desk:
    "A folder in which commands are typed."

    folder: Path
    capsys: object
    patch: object
    said: list[Said] = field(default_factory=list)

    def __post_init__(self):
        self.patch.chdir(self.folder)
        self.patch.setenv("XDG_CACHE_HOME", str(self.folder / "cache"))
        self.patch.setenv("COLUMNS", "120")
        for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"):
            self.patch.setenv(name, KEY)
        for name in ENVIRONMENT:
            self.patch.delenv(name, raising=False)
            self.patch.delenv(name.lower(), raising=False)

    def type(self, *words) -> Said:
        "Run `cora WORDS`; the words may begin with `cora` itself."
        words = [str(word) for word in (words[1:] if words and words[0] == "cora" else words)]
        self.capsys.readouterr()
        self.patch.setattr(sys, "argv", ["cora", *words])
        status, more = 0, ""
        with warnings.catch_warnings():  # pytest keeps warnings back: here they are printed, as in a terminal
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _print_warning
            try:
                cora_main(words)
            except SystemExit as e:
                status = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
                more = e.code if isinstance(e.code, str) else ""
        out, err = self.capsys.readouterr()
        self.said.append(Said(status, out, f"{err}\n{more}" if more else err))
        return self.said[-1]

    def run(self, spec: str, *words, limit: int = 2, store: str = "none") -> Said:
        return self.type("run", spec, "--limit", limit, "--store", store, *words)

    def try_(self, spec: str, *words, questions: int = 1) -> Said:
        return self.type("try", spec, "--questions", questions, *words)

    @property
    def runs(self) -> list[Path]:
        "The folders of all runs."
        return sorted(file.parent for file in self.folder.rglob("facts.json"))

    @property
    def table(self):
        "The rows of the only run."
        [folder] = self.runs
        return read_responses(folder).table

    @property
    def facts_text(self) -> str:
        [folder] = self.runs
        return (folder / "facts.json").read_text()

    @property
    def facts(self) -> dict:
        return json.loads(self.facts_text)

    @property
    def states(self) -> dict[str, int]:
        "State -> rows, of the only run."
        counts = self.table["state"].value_counts()
        return {str(state): int(n) for state, n in counts.items() if n}


def _print_warning(message, category, filename, lineno, file=None, line=None):
    sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))
