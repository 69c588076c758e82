"""Rewrite mentions of the fourteen commands of old: `cora_run` becomes `cora run`. Idempotent; run it in a tree's root.

Python names (`cora_run(...)`, `from ... import cora_run`, `cora_run.typed`) and facts (`"command": "cora_run"`) stay.
Usage: python rename_commands.py [PATH ...]   (without a path: all that git tracks)
"""

import io
import json
import re
import subprocess
import sys
import tokenize
from pathlib import Path

NAMES = "run|table|report|join|export|gate|import|embeddings|try|convert|paper|store|list|mcqa_plus"
BEFORE = r"(?<![\w./:])(?<!import )(?<!/)"
NAME = rf"cora_({NAMES})"
AFTER = r"(?![\w(]|\.typed|\.app\b|\.py\b|\.ipynb|\.ya?ml|\.__|=)"
MENTION = re.compile(BEFORE + NAME + AFTER)
FACT = re.compile(
    r"""(options_in_force\(\s*|command\\?["']?\]?\s*(?::|=|==|!=)\s*|"command",\s*(?:None\)\s*!=\s*)?|(?:!=|==)\s*)"""
    rf"""(\\?["']){NAME}\2"""
)
WORD = re.compile(rf"""(\[\s*)(["']){NAME}\2(?=\s*[,\]])(?!\]\s*=)""")  # the first word of a list of words
KEEP = "\0"


def in_text(text: str) -> str:
    "A text of a file or a cell."
    kept = FACT.sub(lambda m: m[0].replace("cora_", "cora" + KEEP), text)
    kept = WORD.sub(r"\1\2cora\2, \2\3\2", kept)
    return MENTION.sub(r"cora \1", kept).replace(KEEP, "_")


def in_code(code: str) -> str:
    "Python: only within texts and comments."
    shell = re.sub(r"^(\s*!.*)$", lambda m: MENTION.sub(r"cora \1", m[0]), code, flags=re.M)
    if code.startswith("%%") or shell != code or re.search(r"^\s*[!%]", code, re.M):
        return in_text(shell) if code.startswith("%%") else shell
    code = FACT.sub(lambda m: m[0].replace("cora_", "cora" + KEEP), code)
    code = WORD.sub(r"\1\2cora\2, \2\3\2", code)
    lines, found = code.splitlines(keepends=True), []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code.replace(KEEP, "_")).readline):
            if token.type in (tokenize.STRING, tokenize.COMMENT):
                found.append((token.start, token.end))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return code.replace(KEEP, "_")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for (r, c), (s, d) in reversed(found):
        a, b = starts[r - 1] + c, starts[s - 1] + d
        code = code[:a] + MENTION.sub(r"cora \1", code[a:b]) + code[b:]
    return code.replace(KEEP, "_")


def strings(value, change):
    "All strings of an output, changed. A list of lines is one text."
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [strings(v, change) for v in value]
    return {k: strings(v, change) for k, v in value.items()} if isinstance(value, dict) else value


def in_notebook(text: str) -> str:
    nb = json.loads(text)
    for cell in nb["cells"]:
        source = "".join(cell["source"])
        new = in_code(source) if cell["cell_type"] == "code" else in_text(source)
        if new != source:
            cell["source"] = new.splitlines(keepends=True)
        if cell.get("outputs"):
            cell["outputs"] = strings(cell["outputs"], in_text)
    return json.dumps(nb, indent=1, ensure_ascii=False) + "\n"


def main(paths):
    for path in paths or subprocess.check_output(["git", "ls-files"], text=True).splitlines():
        file = Path(path)
        if not file.is_file() or str(path).startswith("cora_nb/") or path.endswith("rename_commands.py"):
            continue  # modules are exported from notebooks
        kind = file.suffix
        if path == "settings.ini" or kind not in (
            ".ipynb",
            ".py",
            ".md",
            ".toml",
            ".yml",
            ".yaml",
            ".txt",
            ".sh",
            ".css",
            ".html",
            ".cfg",
            ".j2",
        ):
            continue
        try:
            text = file.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue
        if "cora_" not in text:
            continue
        new = in_notebook(text) if kind == ".ipynb" else in_code(text) if kind == ".py" else in_text(text)
        if new != text and (kind != ".ipynb" or json.loads(new) != json.loads(text)):
            file.write_bytes(new.encode("utf-8"))
            print(path)


main(sys.argv[1:])
