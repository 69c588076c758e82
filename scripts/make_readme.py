#!/usr/bin/env python3
"""Write README.md from nbs/index.ipynb, without quarto and without a network.

Only the standard library is used, so the same notebook gives the same README whatever else is installed. nbdev's
directives are obeyed: a cell with `#| hide`, `#| export` or `#| default_exp` is left out, `#| echo: false` hides the
code, `#| output: false` what came of it. Links that are right beside the notebook are made right beside the README, and
must lead to a file. Outputs are taken as stored and shown as text; a picture has no place in a README made this way.

Run it from anywhere: `python scripts/make_readme.py`
"""

import argparse
import json
import posixpath
import re
import sys
from pathlib import Path

from home import read_settings, readme_line

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = {"hide", "export", "exporti", "default_exp", "include: false"}
NO_CODE, NO_OUTPUT = {"echo: false", "hide_input"}, {"output: false", "hide_output"}


def split_directives(source: str) -> tuple[set[str], str]:
    "A cell's directives and the rest of it."
    lines = source.split("\n")
    found = [line for line in lines if re.match(r"\s*#\s*\|", line)]
    directives = {re.sub(r"\s*:\s*", ": ", line.split("|", 1)[1].strip()) for line in found}
    directives |= {d.split()[0].rstrip(":") for d in directives if d}  # `default_exp core` counts as `default_exp`
    return directives, "\n".join(line for line in lines if line not in found).strip("\n")


def fenced(text: str, language: str = "") -> str:
    "A code block whose fence is longer than any fence inside."
    inside = [len(ticks) for ticks in re.findall(r"`{3,}", text)]
    fence = "`" * (max(inside, default=2) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def output_text(output: dict, where: str) -> str:
    "One output as Markdown."
    if output["output_type"] == "error":
        sys.exit(f"{where}: the stored output is an error, {output['ename']}: {output['evalue']}")
    data = {"text/plain": output["text"]} if output["output_type"] == "stream" else output["data"]
    pictures = [kind for kind in data if kind.startswith("image/")]
    if pictures:
        sys.exit(f"{where}: the README cannot show {pictures[0]}; draw in another notebook and link to it")
    kind = next((k for k in ("text/markdown", "text/plain") if k in data), None)
    if kind is None:
        sys.exit(f"{where}: the README cannot show {', '.join(data)}")
    text = "".join(data[kind])
    return (
        text.strip("\n") if kind == "text/markdown" else fenced(re.sub(r"\x1b\[[0-9;]*m", "", text).strip("\n"), "text")
    )


def moved_links(text: str, notebook: Path, readme: Path) -> str:
    "Markdown with its relative links, written beside the notebook, made right beside the README."

    def move(found):
        target, _, anchor = found[1].partition("#")
        if not target or re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|/", target):
            return found[0]
        if not (notebook.parent / target).exists():
            sys.exit(f"{notebook.name}: the link {found[1]!r} leads nowhere")
        here = posixpath.relpath((notebook.parent / target).resolve().as_posix(), readme.parent.resolve().as_posix())
        return f"({here}{'#' + anchor if anchor else ''}{found[2] or ''})"

    parts = re.split(r"(^```.*?^```[^\n]*|`[^`\n]+`)", text, flags=re.MULTILINE | re.DOTALL)  # odd parts are code
    link = r'(?<=\])\(([^()\s]+)(\s+"[^"]*")?\)'
    return "".join(part if i % 2 else re.sub(link, move, part) for i, part in enumerate(parts))


def readme_text(notebook: Path, readme: Path) -> str:
    "The whole README."
    blocks = []
    for n, cell in enumerate(json.loads(notebook.read_text(encoding="utf-8"))["cells"], 1):
        where = f"{notebook.name}, cell {n}"
        directives, source = (
            split_directives("".join(cell["source"]))
            if cell["cell_type"] == "code"
            else (set(), "".join(cell["source"]))
        )
        if cell["cell_type"] == "raw" or directives & LEFT_OUT:
            continue
        if cell["cell_type"] == "markdown":
            blocks.append(moved_links(source, notebook, readme))
            continue
        if source and not directives & NO_CODE:
            blocks.append(fenced(source, "python"))
        if not directives & NO_OUTPUT:
            blocks += [output_text(o, where) for o in cell["outputs"]]
    source = posixpath.relpath(notebook.resolve().as_posix(), readme.parent.resolve().as_posix())
    generated = f"<!-- made from {source} by scripts/make_readme.py: edit the notebook -->"
    cfg = read_settings()
    blocks.append(readme_line(cfg["home"], cfg["site"]))
    return "\n\n".join([generated, *(block.strip("\n") for block in blocks if block.strip())]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--notebook", type=Path, default=ROOT / "nbs" / "index.ipynb")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    args = parser.parse_args()
    if not args.notebook.exists():
        sys.exit(f"{args.notebook} does not exist")
    args.readme.write_text(readme_text(args.notebook, args.readme), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
