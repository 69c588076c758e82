"""The entry of a public name on its module's page: signature, docstring, a table of its parameters, the source's place.

The sentence beside a parameter is what `help()` shows, from the same function (`cora_nb.words_beside`).
"""

import importlib
import inspect
import re
from functools import partial

from fastcore.docments import docments

import cora_nb

LONGEST = 60  # characters of a default or a value; longer ones are shown as `...`
PARAMETERS = "Parameters:"  # where the front door begins to list them in a docstring


def is_callable(thing: object) -> bool:
    "Whether a public name is a function or a class, and no value that can be called by chance."
    return inspect.isroutine(thing) or inspect.isclass(thing) or hasattr(thing, "__wrapped__")


def plain(text: str) -> str:
    "Words from a comment or docstring as Markdown: code in backticks stays, everything else is taken literally."
    parts = re.split(r"(``[^`]+``|`[^`]+`)", text)  # odd parts are code
    return "".join(part if i % 2 else re.sub(r"([\\*_<>\[\]${}~^%@#])", r"\\\1", part) for i, part in enumerate(parts))


def in_table(text: str) -> str:
    "Words within a cell of a table: on one line, no bar that would end the cell."
    return plain(" ".join(text.split())).replace("|", "\\|")


def in_code(text: str) -> str:
    "Code within a cell of a table."
    fence = "``" if "`" in text else "`"
    return fence + text.replace("|", "\\|") + fence


def type_words(annotation: object) -> str:
    "A type as one reads it: without the modules that its names come from."
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(?=[A-Za-z_])", "", text)


def default_words(default: object) -> str:
    "A default as it can be typed, `...` where it is long or has no such form."
    if isinstance(default, type):
        return default.__name__
    text = repr(default)
    try:
        compile(text, "default", "eval")
    except SyntaxError:
        return "..."
    return text if len(text) <= LONGEST and "\n" not in text else "..."


def call_of(thing: object) -> inspect.Signature | None:
    "The signature of a function or class, None where Python cannot tell."
    try:
        return inspect.signature(thing)
    except (TypeError, ValueError):
        return None


def signature_words(thing: object, method: bool = False) -> str:
    "A signature on one line: names and defaults; the types stand in the table."
    call = call_of(thing)
    if call is None:
        return "()"
    parameters = [p.replace(annotation=inspect.Parameter.empty) for p in call.parameters.values()]
    if method and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    words, star = [], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not star:
            words.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        words.append(stars + p.name + ("" if p.default is p.empty else f"={default_words(p.default)}"))
    return f"({', '.join(words)})"


def returned(thing: object) -> tuple[str, str]:
    "The type of what comes back, and the words beside it."
    call = call_of(thing)
    if inspect.isclass(thing) or call is None:
        return "", ""
    try:
        said = docments(thing).get("return") or ""
    except (OSError, TypeError, SyntaxError, ValueError, AttributeError):
        said = ""
    kind = "" if call.return_annotation in (inspect.Signature.empty, None) else type_words(call.return_annotation)
    return ("" if kind == "None" else kind), " ".join(str(said).split())


def table_lines(thing: object, method: bool = False) -> list[str]:
    "The table of parameters, a row each: name, type, default, meaning; the last row is what comes back."
    call, words = call_of(thing), cora_nb.words_beside(thing)
    rows = []
    for name, p in (call.parameters if call else {}).items():
        if method and name in ("self", "cls"):
            continue
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        kind = type_words(p.annotation)
        default = "" if p.default is p.empty else in_code(default_words(p.default))
        rows.append([in_code(stars + name), in_code(kind) if kind else "", default, in_table(words.get(name, ""))])
    kind, said = returned(thing)
    if kind or said:
        rows.append(["*returns*", in_code(kind) if kind else "", "", in_table(said)])
    if not rows:
        return []
    head = ["| Parameter | Type | Default | Meaning |", "|---|---|---|---|"]
    table = [*head, *(f"| {' | '.join(row)} |" for row in rows)]
    return ["", ":::{container} parameters", "", *table, "", ":::"]


def doc_lines(thing: object) -> list[str]:
    "The docstring, without the list of parameters that the front door adds, and without what a dataclass makes up."
    text = inspect.getdoc(thing) or ""
    text = text.split(f"\n\n{PARAMETERS}\n")[0].removeprefix(f"{PARAMETERS}\n").strip()
    name = getattr(thing, "__name__", "")
    if text.startswith(f"{name}(") or (inspect.isclass(thing) and "__doc__" not in vars(thing)):
        return []
    return ["", *(plain(line) for line in text.splitlines())]


def fenced(kind: str, head: str, body: list[str], colons: int) -> list[str]:
    "A directive with what it holds."
    return [f"{':' * colons}{{{kind}}} {head}", *body, "", ":" * colons, ""]


def member_lines(name: str, member: object, colons: int) -> list[str]:
    "The entry of a method or property; none for what is neither."
    if isinstance(member, property):
        return fenced("py:property", name, doc_lines(member), colons)
    kind = {staticmethod: "py:staticmethod", classmethod: "py:classmethod"}.get(type(member), "py:method")
    member = getattr(member, "__func__", member)
    if not inspect.isfunction(member):
        return []
    method = kind != "py:staticmethod"
    return fenced(
        kind, name + signature_words(member, method), [*doc_lines(member), *table_lines(member, method)], colons
    )


def method_lines(owner: type, elsewhere: set[str]) -> list[str]:
    "The entries of a class's own public methods and properties, in the order of the source."
    lines, below = [], [name for name in vars(owner) if f"{owner.__name__}.{name}" in elsewhere]
    if below:
        links = [f"[`{name}`](project:#{owner.__module__}.{owner.__name__}.{name})" for name in below]
        lines += ["", f"Further methods on this page: {', '.join(links)}"]
    for name, member in vars(owner).items():
        if not name.startswith("_") and f"{owner.__name__}.{name}" not in elsewhere:
            lines += ["", *member_lines(name, member, 4)]
    return lines


class Entry:
    "A renderer for nbdev's `show_doc`: `show_doc(thing, renderer=Entry)` shows the entry as MyST Markdown."

    def __init__(self, sym: object, name: str | None = None, title_level: int = 3, elsewhere: set[str] = frozenset()):
        self.thing, self.name, self.elsewhere = sym, name or sym.__name__, elsewhere

    def _repr_markdown_(self) -> str:
        thing, is_class = self.thing, inspect.isclass(self.thing)
        if "." in self.name:
            return "\n".join(member_lines(self.name, thing, 6))
        kind = "py:function"
        if is_class:
            kind = "py:exception" if issubclass(thing, BaseException) else "py:class"
        body = [*doc_lines(thing), *table_lines(thing)]
        head = self.name + signature_words(thing)
        return "\n".join(fenced(kind, head, body + (method_lines(thing, self.elsewhere) if is_class else []), 6))


def entry(
    module: str,  # the module's name
    name: str,  # of a function or a class in it, or of a method, as `Class.method`
    elsewhere: set[str] = frozenset(),  # methods that have an entry of their own on the page
) -> str:  # its entry as MyST Markdown
    "One name shown by nbdev's `show_doc`, which fails where there is no such name."
    from nbdev.showdoc import show_doc

    thing = importlib.import_module(module)
    for part in name.split("."):
        thing = vars(thing)[part] if inspect.isclass(thing) and part in vars(thing) else getattr(thing, part)
    shown = show_doc(thing, renderer=partial(Entry, elsewhere=elsewhere), name=name)._repr_markdown_()
    if not shown:
        raise TypeError(f"{type(thing).__name__} has no entry")
    return shown


def value_entry(
    module: str,  # the module's name
    name: str,  # of a value in it
) -> str:  # its entry as MyST Markdown
    "A constant, a registry, a type: its value where it is short, and the comment at its line of the source."
    found = importlib.import_module(module)
    text = repr(getattr(found, name))
    beside = re.search(rf"^{name}\b[^#\n]*?=[^#\n]*#\s*(.+)$", inspect.getsource(found), re.MULTILINE)
    options = [f":value: {text}"] if len(text) <= LONGEST and "<" not in text and "\n" not in text else []
    words = ["", plain(beside[1])] if beside else []
    return "\n".join(fenced("py:data", name, [*options, *words], 6))


def public_names(module: str) -> list[str]:
    "What a module exports."
    return list(getattr(importlib.import_module(module), "__all__", []))
