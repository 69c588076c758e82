"""What is looked at in the finished pages: links and anchors, other hosts, alt texts, names, formulas."""

import http.server
import inspect
import re
import threading
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

from browser import LIMIT, browser_path
from browser import launched as launched_browser
from notebooks import Project, SiteError

from cora_nb import words_beside

LOADING = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("audio", "src")}
LOADING |= {("object", "data"), ("embed", "src"), ("input", "src"), ("img", "srcset"), ("form", "action")}
LOADED_LINKS = {"stylesheet", "preload", "prefetch", "icon", "modulepreload", "preconnect", "dns-prefetch", "manifest"}
ADDRESS = re.compile(r"(?:https?:)?//", re.IGNORECASE)
NO_PROSE = {"script", "style", "pre", "code", "textarea"}
RAW_FORMULA = re.compile(r"\$\$|\\\(|\\\[|\\begin\{|\\(?:frac|cdot|sum|text|mathrm)\b")
VOID = set("area base br col embed hr img input link meta param source track wbr".split())


class Reader(HTMLParser):
    "The links, anchors, loaded addresses, prose and text of a page."

    def __init__(self):
        super().__init__()
        self.links, self.ids, self.loaded, self.without_alt = [], set(), [], []
        self.prose, self.text, self.formulas, self.inside = [], [], 0, []

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and LOADED_LINKS & set(given.get("rel", "").split()):
            self.loaded.append(given.get("href", ""))
        self.loaded += [value for name, value in given.items() if (tag, name) in LOADING]
        self.loaded += re.findall(r"url\(['\"]?([^'\")]+)", given.get("style", ""))
        if tag == "img" and not given.get("alt", "").strip():
            self.without_alt.append(given.get("src", ""))
        if tag not in VOID:
            self.inside.append((tag, "math" in given.get("class", "").split()))
            self.formulas += self.inside[-1][1]

    def handle_endtag(self, tag):
        while self.inside and any(t == tag for t, _ in self.inside):
            if self.inside.pop()[0] == tag:
                break

    def handle_data(self, data):
        if not any(tag in NO_PROSE or formula for tag, formula in self.inside):
            self.prose.append(data)
        if not any(tag in ("script", "style") for tag, _ in self.inside):
            self.text.append(data)


def read_html(file: Path) -> Reader:
    "One page, read."
    reader = Reader()
    reader.feed(file.read_text(encoding="utf-8"))
    return reader


def check_site(
    out: Path,  # the site
    project: Project,
    say=print,  # shows progress
) -> dict:  # what was counted
    "Everything that can be seen without a browser. Raises `SiteError` with all that is wrong."
    files = sorted(out.rglob("*.html"))
    files = [f for f in files if "_static" not in f.relative_to(out).parts]
    with ProcessPoolExecutor(2) as pool:
        pages = dict(zip(files, pool.map(read_html, files, chunksize=8), strict=True))
    wrong, links = [], 0
    for file, page in pages.items():
        here = file.relative_to(out).as_posix()
        links += len(page.links)
        wrong += [f"{here}: {words}" for words in wrong_links(file, page, pages, out)]
        wrong += [f"{here}: {address} would be loaded from another host" for address in page.loaded if foreign(address)]
        wrong += [f"{here}: no alt text for {picture}" for picture in page.without_alt]
        raw = RAW_FORMULA.search("\n".join(page.prose))
        if raw:
            text = "\n".join(page.prose)
            around = " ".join(text[max(0, raw.start() - 40) : raw.end() + 40].split())
            wrong.append(f"{here}: a formula that is no formula: {around}")
    for file in sorted(out.rglob("*.css")):
        for address in re.findall(r"(?:url\(|@import\s)\s*['\"]?([^'\")\s;]+)", file.read_text(encoding="utf-8")):
            if foreign(address):
                wrong.append(f"{file.relative_to(out)}: {address} would be loaded from another host")
    wrong += missing_names(out, project, pages)
    wrong += silent_pages(out, project, pages)
    if wrong:
        raise SiteError("\n".join(wrong))
    with_formulas = [f.relative_to(out).as_posix() for f, page in pages.items() if page.formulas]
    say(f"  {links:,} links lead somewhere")
    return {"pages": len(files), "links": links, "names": len(project.homes), "pages with formulas": with_formulas}


def foreign(address: str) -> bool:
    "Whether an address lies on a host of its own."
    return bool(ADDRESS.match(address.strip()))


def wrong_links(file: Path, page: Reader, pages: dict[Path, Reader], out: Path) -> list[str]:
    "The links of a page that lead to no file, or to no place in it."
    wrong = []
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        path = unquote(parts.path)
        to = (out / path.lstrip("/") if path.startswith("/") else file.parent / path).resolve() if path else file
        to = to / "index.html" if to.is_dir() else to
        anchor = unquote(parts.fragment)
        if not to.is_file():
            wrong.append(f"the link {link!r} leads to no page")
        elif anchor and to in pages and anchor not in pages[to].ids:
            wrong.append(f"the link {link!r} leads to no place in the page")
    return wrong


def missing_names(out: Path, project: Project, pages: dict[Path, Reader]) -> list[str]:
    "Public names without an entry on their module's page."
    wrong = []
    for page in project.pages.values():
        file = out / (page.path.rsplit(".", 1)[0] + ".html")
        ids = pages[file].ids if file in pages else set()
        wrong += [f"{page.path}: no entry for {n}" for n in page.names if f"{page.module}.{n}" not in ids]
    return wrong


def squeezed(text: str) -> str:
    "Text without what a page shows in another way: spaces, marks of code."
    return "".join(text.replace("`", "").split())


def silent_pages(out: Path, project: Project, pages: dict[Path, Reader]) -> list[str]:
    "What the source says of a public function or class, paragraph by paragraph, and its page does not."
    wrong = []
    for page in project.pages.values():
        file = out / (page.path.rsplit(".", 1)[0] + ".html")
        text = squeezed("".join(pages[file].text)) if file in pages else ""
        for name in page.names:
            for said in help_sentences(getattr(import_module(page.module), name)):
                if squeezed(said) not in text:
                    wrong.append(f"{page.path}: help({name}) says {said!r}, the page does not")
    return wrong


def help_sentences(thing: object) -> list[str]:
    "The paragraphs of a docstring, and the words beside each parameter; of a class, those of its methods too."
    if not (inspect.isroutine(thing) or inspect.isclass(thing) or hasattr(thing, "__wrapped__")):
        return []
    doc = (inspect.getdoc(thing) or "").partition("Parameters:\n")[0]
    if inspect.isclass(thing) and ("__doc__" not in vars(thing) or doc.startswith(f"{thing.__name__}(")):
        doc = ""  # inherited, or made up by `dataclass`
    said = [part for part in doc.split("\n\n") if part.strip()]
    said += [words for words in words_beside(thing).values() if words]
    if inspect.isclass(thing):
        methods = (getattr(m, "__func__", m) for n, m in vars(thing).items() if not n.startswith("_"))
        said += [words for m in methods if inspect.isfunction(m) for words in help_sentences(m)]
    return said


class Server(http.server.ThreadingHTTPServer):
    "A server that bears with a browser that leaves in the middle of a page."

    def handle_error(self, request, client_address):
        pass


class Quiet(http.server.SimpleHTTPRequestHandler):
    "What it answers, without a log."

    def log_message(self, *args):
        pass


def serve(folder: Path) -> Server:
    "The site on a free port of this machine."
    server = Server(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


LOOK = """async () => {
    if (!window.MathJax || !MathJax.startup) return {mathjax: false};
    await MathJax.startup.promise;
    const wrong = [];
    for (const e of document.querySelectorAll('[data-mjx-error], mjx-merror'))
        wrong.push(e.getAttribute('data-mjx-error') || e.textContent);
    const left = [...document.querySelectorAll('span.math, div.math')].filter(e => !e.querySelector('mjx-container'));
    return {mathjax: true, wrong, left: left.map(e => e.textContent.trim().slice(0, 80)),
            done: document.querySelectorAll('mjx-container').length};
}"""


def launched(play):
    "A browser, playwright's own where no other is found. Raises `SiteError` where none starts."
    from playwright.sync_api import Error

    try:
        return launched_browser(play)
    except Error as e:
        which = browser_path() or "neither $CHROMIUM nor PATH has one, and playwright's own"
        why = f"{which} does not start: {e.message.splitlines()[0]}"
        raise SiteError(f"the formulas need a browser, Chromium or Chrome ({why}); --no-formulas skips them") from None


def try_browser() -> None:
    "Raise `SiteError` unless a browser starts."
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        launched(play).close()


def look_at_formulas(work: tuple[Path, list[str]]) -> tuple[int, list[str]]:
    "Load pages in a browser that may reach this machine alone; how many formulas there were, and what is wrong."
    from playwright.sync_api import sync_playwright

    out, pages = work
    server, wrong, formulas = serve(out.resolve()), [], 0
    base = f"http://127.0.0.1:{server.server_port}/"
    with sync_playwright() as play:
        browser = launched(play)
        tab = browser.new_page()
        tab.set_default_timeout(LIMIT)
        asked, missing = [], []
        tab.route(lambda url: not url.startswith(base), lambda route: (asked.append(route.request.url), route.abort()))
        tab.on("response", lambda got: missing.append(f"{got.status} {got.url}") if got.status >= 400 else None)
        for page in pages:
            asked.clear(), missing.clear()
            tab.goto(base + page, wait_until="load")
            seen = tab.evaluate(LOOK)
            wrong += [f"{page}: asked for {url}" for url in asked if not url.startswith(("data:", "blob:"))]
            wrong += [f"{page}: loads what is not there: {words}" for words in missing]
            if not seen["mathjax"]:
                wrong.append(f"{page}: MathJax was not loaded")
                continue
            formulas += seen["done"]
            wrong += [f"{page}: MathJax cannot read a formula: {words}" for words in seen["wrong"]]
            wrong += [f"{page}: a formula is not typeset: {words}" for words in seen["left"]]
        browser.close()
    server.shutdown()
    return formulas, wrong


def check_formulas(
    out: Path,  # the site
    pages: list[str],  # with formulas
    workers: int,
    say=print,  # shows progress
) -> dict:  # how many formulas were typeset
    "Every formula, typeset in a browser. Raises `SiteError` with all that is wrong."
    parts = [pages[n :: workers * 4] for n in range(workers * 4)]
    total, wrong, done = 0, [], 0
    with ProcessPoolExecutor(workers) as pool:
        for part, (n, words) in zip(parts, pool.map(look_at_formulas, [(out, p) for p in parts]), strict=True):
            total, wrong, done = total + n, wrong + words, done + len(part)
            say(f"  {total:,} formulas on {done} of {len(pages)} pages")
    if wrong:
        raise SiteError("\n".join(wrong))
    return {"formulas": total}
