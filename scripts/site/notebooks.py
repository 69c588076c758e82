"""From a notebook to a page: nbdev's processors without quarto, entries for public names, links, folds, alt texts.

nbdev decides what a reader sees: hidden and exported cells go, `show_doc` comes after each definition. The entries are
made from the module itself and not from the notebook's cells, so nothing is executed but the module's import.
"""

import ast
import json
import posixpath
import re
from dataclasses import dataclass, field
from pathlib import Path

CODE = re.compile(r"(^```.*?^```[^\n]*|^~~~.*?^~~~[^\n]*|``[^`]+``|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r'(?<=\])\(([^()\s]+)((?:\s+"[^"]*")?)\)')
BADGE = re.compile(r"\[!\[([^\]]*)\]\(https?://[^)\s]+\)\]\(([^)\s]+)\)")
SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
NOWHERE = re.compile(r"\[([^\[\]]*)\]\(NOWHERE\)")  # a link to a file of a repository that has no home
LONGEST_ALT = 300  # characters


class SiteError(Exception):
    "Something in a page that must be put right before the site can be built."


def slug(
    heading: str,  # as it stands in the page
) -> str:  # its anchor
    "The anchor of a heading, as GitHub makes it; links written Jupyter's way (`#My-Heading`) are led there, too."
    text = re.sub(r"[`*$\\]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@dataclass
class Page:
    "A page of the site, and what other pages need to know of it."

    path: str  # in the site's source folder: `metrics/cora.ipynb`
    title: str  # its first heading
    summary: str = ""  # the line below it
    module: str = ""  # the module that its notebook exports
    anchors: dict[str, str] = field(default_factory=dict)  # heading's anchor in any spelling -> its slug
    names: list[str] = field(default_factory=list)  # the public names of its module


@dataclass
class Project:
    "What all pages share: where things are, and which pages there will be."

    root: Path  # the checkout
    nbs: Path  # the folder of notebooks
    home: str  # the repository's address; empty where it has none
    branch: str
    pages: dict[str, Page] = field(default_factory=dict)  # path -> page
    homes: dict[str, str] = field(default_factory=dict)  # public name -> `module.name`


def prose(text: str) -> str:
    "Markdown without its code."
    return "".join(part for i, part in enumerate(CODE.split(text)) if i % 2 == 0)


def headings(text: str) -> list[str]:
    "The headings of a piece of Markdown."
    blocks = re.sub(r"^(```|~~~).*?^\1[^\n]*", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^#{1,6}\s+(.+?)\s*#*\s*$", blocks, re.MULTILINE)


def anchors_of(
    texts: list[str],  # Markdown, in the order of the page
) -> dict[str, str]:  # an anchor in lower case -> the slug; repeated headings get -1, -2, ...
    found, seen = {}, {}
    for heading in (h for text in texts for h in headings(text)):
        name = slug(heading)
        n = seen[name] = seen.get(name, -1) + 1
        name = f"{name}-{n}" if n else name
        found.setdefault(name.lower(), name)
        found.setdefault(heading.strip().replace(" ", "-").lower(), name)  # as Jupyter writes it
    return found


def read_page(
    file: Path,  # a notebook
    nbs: Path,  # the folder of notebooks
) -> Page:  # what other pages need to know
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
    title = next((h for text in texts for h in headings(text)), file.stem)
    summary = re.search(r"^>\s*(.+)$", texts[0], re.MULTILINE) if texts else None
    code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    module = re.search(r"^#\|\s*default_exp\s+(\S+)", code, re.MULTILINE)
    name = "" if not module else "cora_nb" if module[1] == "__init__" else f"cora_nb.{module[1]}"
    return Page(file.relative_to(nbs).as_posix(), title, summary[1] if summary else "", name, anchors_of(texts))


def led_elsewhere(
    target: str,  # of a link, as written
    folder: Path,  # where the page that holds it lies
    here: str,  # the page's path in the site
    project: Project,
) -> str:  # the target in the site
    "Where a link leads: a page, an anchor that exists, a picture, a file of the repository; NOWHERE without a home."
    if SCHEME.match(target) or target.startswith("//"):
        return target
    path, _, anchor = target.partition("#")
    file = (folder / path).resolve() if path else None
    if file is None:
        page = project.pages[here]
    else:
        if not file.exists():
            raise SiteError(f"{here}: the link {target!r} leads nowhere")
        if file == project.nbs / "index.ipynb" or file == project.root / "README.md":
            page = project.pages["index.md"]
        elif file.is_relative_to(project.nbs) and file.relative_to(project.nbs).as_posix() in project.pages:
            page = project.pages[file.relative_to(project.nbs).as_posix()]
        elif file.suffix.lower() in (".png", ".svg", ".jpg", ".jpeg", ".gif"):
            return "/" + file.relative_to(project.nbs).as_posix()
        else:
            kind = "tree" if file.is_dir() else "blob"
            if not project.home:
                return "NOWHERE"
            return f"{project.home}/{kind}/{project.branch}/{file.relative_to(project.root).as_posix()}"
    if anchor and anchor.lower() not in page.anchors:
        if anchor in page.names:
            return f"project:#{page.module}.{anchor}"
        raise SiteError(f"{here}: the link {target!r} leads to no heading of {page.path}")
    at = posixpath.relpath(page.path, posixpath.dirname(here) or ".")
    slug_there = page.anchors[anchor.lower()] if anchor else ""
    return ("" if file is None else at) + (f"#{slug_there}" if anchor else "")


def named(code: str, project: Project, own: set[str]) -> str | None:
    "The public name that a piece of code in prose stands for, if a reader would take it for one."
    name = re.fullmatch(r"`(?:cn\.)?([A-Za-z_]\w*)(?:\(\))?`", code)
    if not name or name[1] in own or name[1] not in project.homes:
        return None
    distinct = "_" in name[1].strip("_") or re.search(r"[a-z][A-Z]", name[1]) or code.endswith("()`")
    return project.homes[name[1]] if distinct or code.startswith("`cn.") else None


def linked(
    text: str,  # Markdown as written
    folder: Path,  # where its file lies
    here: str,  # the page's path in the site
    project: Project,
    own: set[str] = frozenset(),  # public names of the page itself, which get no link
) -> str:  # the same for the site
    "Links between notebooks as links between pages; public names in code lead to their entries; badges are words."

    def move(found: re.Match) -> str:
        return f"({led_elsewhere(found[1], folder, here, project)}{found[2]})"

    def inside_link(before: str) -> bool:
        return before.rfind("[") > before.rfind("]")

    text, done = BADGE.sub(lambda found: f"[{found[1]}]({found[2]})", text), ""
    for i, part in enumerate(CODE.split(text)):  # odd parts are code
        if i % 2 == 0:
            done += LINK.sub(move, part)
            continue
        home = named(part, project, own)
        heading = done.rsplit("\n", 1)[-1].lstrip().startswith("#")
        done += f"[{part}](project:#{home})" if home and not heading and not inside_link(done) else part
    return NOWHERE.sub(r"\1", done)


def first_sentence(text: str) -> str:
    "Prose as plain words, up to the length of an alt text."
    words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    words = " ".join(re.sub(r"[`*$|]|^[>#-]+\s*", "", words, flags=re.MULTILINE).split())
    return words if len(words) <= LONGEST_ALT else words[:LONGEST_ALT].rsplit(" ", 1)[0] + " …"


def alt_text(heading: str, before: str) -> str:
    "What a figure shows, for those who do not see it: the heading it stands under, and the paragraph before it."
    paragraphs = [p for p in re.split(r"\n\s*\n", before) if p.strip() and not p.lstrip().startswith(("#", "|", "```"))]
    said = first_sentence(paragraphs[-1]) if paragraphs else ""
    heading = first_sentence(heading)
    return f"Figure: {heading}. {said}".strip() if heading else f"Figure. {said}".strip()


def tags_of(directives: dict) -> set[str]:
    "What nbdev's and quarto's directives mean in the tags of myst-nb."
    words = {key.rstrip(":"): " ".join(args).lower() for key, args in directives.items()}
    tags = set()
    if words.get("echo") == "false" or "hide_input" in words:
        tags.add("remove-input")
    if words.get("output") == "false" or "hide_output" in words:
        tags.add("remove-output")
    if words.get("include") == "false":
        tags.add("remove-cell")
    if "code-fold" in words and words["code-fold"] not in ("false", "show"):
        tags.add("hide-input")
    return tags


class ShowDocs:
    "A processor in the place of nbdev's `exec_show_docs`: each `show_doc` cell becomes the entry of its name."

    def __init__(self, nb):
        self.nb = nb

    def begin(self):
        import entries
        from nbdev.processors import _is_showdoc

        page = self.nb.page
        cells = [c for c in self.nb.cells if c.cell_type == "code" and getattr(c, "source", None) and _is_showdoc(c)]
        calls = [next(n.value for n in ast.parse(c.source).body if isinstance(n, ast.Expr)) for c in cells]
        shown = [ast.unparse(call.args[0]) for call in calls]
        for cell, name in zip(cells, shown, strict=True):
            try:
                cell.source = entries.entry(page.module, name, {n for n in shown if "." in n})
            except Exception as e:
                raise SiteError(f"{page.path}: show_doc({name}) failed: {type(e).__name__}: {e}") from e
            cell.cell_type, cell.is_entry = "markdown", True
            cell.pop("outputs", None)
        self.nb.rest = [name for name in page.names if name not in shown]


def rest_of(page: Page, names: list[str]) -> str:
    "The entries of public names that no `show_doc` showed: values, and what is not defined by `def` or `class`."
    import importlib

    import entries

    module = importlib.import_module(page.module)
    parts = []
    for name in names:
        if entries.is_callable(getattr(module, name)):
            parts.append(entries.entry(page.module, name))
        else:
            parts.append(entries.value_entry(page.module, name))
    return "\n\n".join(["## Also exported", *parts]) if parts else ""


def processors() -> list:
    "nbdev's own, in its order, less what serves quarto or executes cells."
    from nbdev import processors as p

    names = (p.populate_language, p.add_show_docs, p.strip_ansi, p.hide_line, p.filter_stream_, p.rm_header_dash)
    return [*names, ShowDocs, p.rm_export, p.hide_, p.mv_exports, p.strip_hidden_metadata]


def converted(
    file: Path,  # the notebook
    page: Page,
    project: Project,
) -> dict:  # the notebook of the page
    "One notebook for the site."
    from execnb.nbio import read_nb
    from nbdev.process import NBProcessor

    nb = read_nb(file)
    nb.page = page
    processor = NBProcessor(nb=nb, procs=processors())
    processor.process()
    nb = processor.nb
    heading = before = ""
    cells = []
    for cell in nb.cells:
        directives, source = cell.get("directives_") or {}, cell.source
        meta = {"tags": sorted({*cell.metadata.get("tags", []), *tags_of(directives)})}
        made = {"cell_type": cell.cell_type, "id": cell.get("id") or f"entry-{len(cells)}", "metadata": meta}
        if cell.cell_type == "markdown":
            if not getattr(cell, "is_entry", False):
                source = linked(source, file.parent, page.path, project, set(page.names))
                source = re.sub(r"^%", r"\\%", source, flags=re.MULTILINE)
                if not cells and page.module:
                    source += f"\n\n{head_of(page)}"
                heading, before = (headings(source) or [heading])[-1], source
        elif cell.cell_type == "code":
            source = re.sub(r"\A(\s*#\s*\|[^\n]*\n?)+", "", source)
            alt = directives.get("fig-alt:") or directives.get("fig-alt") or []
            meta["mystnb"] = {"image": {"alt": " ".join(alt).strip("\"'") or alt_text(heading, before)}}
            title = re.match(r"# ?@title +(.+)\n?", source)
            if title:  # of a folded cell of the course
                source = source[title.end() :]
                meta["mystnb"] |= {"code_prompt_show": title[1], "code_prompt_hide": title[1]}
            made |= {"execution_count": None, "outputs": [dict(o) for o in cell.get("outputs", [])]}
        made["source"] = source
        cells.append(made)
    rest = rest_of(page, nb.rest) if page.module else ""
    if rest:
        cells.append({"cell_type": "markdown", "id": "also-exported", "metadata": {}, "source": rest})
    language = {"name": "python", "pygments_lexer": "ipython3"}
    metadata = {"kernelspec": {"display_name": "python3", "language": "python", "name": "python3"}}
    return {"cells": cells, "metadata": metadata | {"language_info": language}, "nbformat": 4, "nbformat_minor": 5}


def head_of(page: Page) -> str:
    "The line below a module's title, and what names on the page belong to."
    return f"```{{py:module}} {page.module}\n```\n\n`{page.module}`"
