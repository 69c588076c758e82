#!/usr/bin/env python3
"""Build the documentation site from the notebooks: `python scripts/make_site.py [OUT]`; OUT is `_site` by default.

No quarto, no network: nbdev's processors prepare the notebooks (scripts/site/notebooks.py), Sphinx with myst-nb and
pydata-sphinx-theme makes the pages (scripts/site/conf.py), MathJax lies beside it. No notebook is executed: what is
shown is what is committed. The build fails on a broken link or anchor, a failed `show_doc`, a warning of Sphinx, a
formula that is not typeset, and on anything that would be loaded from another host (scripts/site/checks.py).

Install what it needs with `pip install -e '.[site]'`; the formulas are checked in Chromium or Chrome.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

TOOLS = Path(__file__).resolve().parent / "site"
ROOT = TOOLS.parent.parent
sys.path[:0] = [str(ROOT), str(TOOLS), str(TOOLS.parent)]

import checks  # noqa: E402
import navigation  # noqa: E402
import notebooks  # noqa: E402
from home import read_settings  # noqa: E402
from notebooks import Page, Project, SiteError  # noqa: E402

WORKERS = max(1, min(2, os.cpu_count() or 1))


def say(text: str) -> None:
    "A line of progress."
    print(text, flush=True)


def read_project(root: Path) -> Project:
    "The pages that there will be, by their paths."
    cfg, nbs = read_settings(root), root / "nbs"
    project = Project(root, nbs, cfg["home"], cfg["branch"])
    files = [f for f in nbs.rglob("*.ipynb") if not any(p.startswith((".", "_")) for p in f.relative_to(nbs).parts)]
    for file in sorted(files):
        page = notebooks.read_page(file, nbs)
        if page.path != "index.ipynb":
            project.pages[page.path] = page
    readme = (root / "README.md").read_text(encoding="utf-8")
    project.pages["index.md"] = Page("index.md", cfg["title"], anchors=notebooks.anchors_of([readme]))
    return project


def with_names(project: Project) -> None:
    "The public names of every module that has a page, and where each is at home."
    import entries

    for page in project.pages.values():
        if page.module:
            try:
                page.names = entries.public_names(page.module)
            except Exception as e:
                raise SiteError(f"{page.path}: {page.module} cannot be imported: {type(e).__name__}: {e}") from e
            project.homes |= {name: f"{page.module}.{name}" for name in page.names}


def convert_all(jobs: tuple[Project, list[str], Path, dict[str, str]]) -> list[str]:
    "Write the pages of some notebooks; what is wrong with them comes back."
    project, paths, source, trees = jobs
    wrong = []
    for path in paths:
        page, file, to = project.pages[path], project.nbs / path, source / path
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            made = notebooks.converted(file, page, project)
            if path in trees:
                made["cells"].append({"cell_type": "markdown", "id": "tree", "metadata": {}, "source": trees[path]})
            to.write_text(json.dumps(made), encoding="utf-8")
        except SiteError as e:
            wrong.append(str(e))
    return wrong


def write_sources(
    project: Project,
    source: Path,  # folder for the pages
) -> None:
    "All pages, as Sphinx reads them."
    readme = (project.root / "README.md").read_text(encoding="utf-8")
    indexes = {p: notebook_text(project.nbs / p) for p in project.pages if re.fullmatch(r"[^/]+/index\.ipynb", p)}
    trees = navigation.own_indexes(project, indexes)
    made = navigation.made_pages(project, readme)
    for path, text in made.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text + "\n", encoding="utf-8")
    for picture in navigation.picture_files(project.nbs):
        to = source / picture.relative_to(project.nbs)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, to)
    paths = [p for p in project.pages if p != "index.md"]
    parts = [paths[n :: WORKERS * 8] for n in range(min(WORKERS * 8, len(paths)))]
    wrong, done = [], 0
    with ProcessPoolExecutor(WORKERS) as pool:
        for part, found in zip(parts, pool.map(convert_all, [(project, p, source, trees) for p in parts]), strict=True):
            wrong, done = wrong + found, done + len(part)
            say(f"  {done} of {len(paths)} notebooks")
    if wrong:
        raise SiteError("\n".join(sorted(wrong)))


def notebook_text(file: Path) -> str:
    "The Markdown of a notebook."
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def write_settings(root: Path, source: Path) -> None:
    "What Sphinx is told: conf.py, the facts of the project, MathJax and our style."
    cfg = read_settings(root)
    names = ("title", "author", "copyright", "version", "branch", "home")
    facts = {name: cfg[name] for name in names}
    facts |= {"tools": str(TOOLS), "templates": str(TOOLS / "templates"), "static": [str(TOOLS / "static")]}
    facts["baseurl"] = f"{cfg['site']}/" if cfg["site"] else ""
    shutil.copyfile(TOOLS / "conf.py", source / "conf.py")
    mathjax = source / "mathjax_files" / "mathjax"
    mathjax.mkdir(parents=True)
    for name in ("tex-svg-full.js", "LICENSE"):
        shutil.copyfile(TOOLS / "mathjax" / name, mathjax / name)
    facts["static"].append(str(source / "mathjax_files"))
    (source / "site.json").write_text(json.dumps(facts), encoding="utf-8")


def run_sphinx(source: Path, out: Path) -> None:
    "Make the pages; a warning is an error, and all are shown."
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-j", str(WORKERS), "-W", "--keep-going", "-q", "-T"]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [*command, "-d", str(source / "_build"), str(source), str(out)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        words = (done.stderr or done.stdout).replace(f"{source}/", "").strip().splitlines()
        raise SiteError("Sphinx:\n" + "\n".join(words[:200]))


def build(
    root: Path,  # a checkout: README.md, settings.ini and nbs/
    out: Path,  # folder for the site
    formulas: bool = True,  # typeset every formula in a browser
    keep: Path | None = None,  # folder for the pages as Sphinx reads them, instead of a temporary one
) -> str:  # the last line: what was built
    "The whole build. Raises `SiteError` where something is wrong."
    begin = time.perf_counter()
    if formulas:
        checks.try_browser()  # now, and not when all pages are made
    with tempfile.TemporaryDirectory() as folder:
        source = keep or Path(folder, "source")
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir(parents=True)
        project = read_project(root.resolve())
        with_names(project)
        say(f"{len(project.pages)} pages, {len(project.homes)} public names")
        write_sources(project, source)
        write_settings(root, source)
        say(f"Sphinx, after {time.perf_counter() - begin:.0f} s")
        shutil.rmtree(out, ignore_errors=True)
        run_sphinx(source, out)
    for extra in (".buildinfo", "objects.inv.bak"):
        (out / extra).unlink(missing_ok=True)
    (out / ".nojekyll").touch()  # GitHub's pages would leave out folders that begin with an underscore
    say(f"checks, after {time.perf_counter() - begin:.0f} s")
    found = checks.check_site(out, project, say)
    if formulas:
        found |= checks.check_formulas(out, found.pop("pages with formulas"), WORKERS, say)
    else:
        found["formulas"] = "no"
    size = sum(f.stat().st_size for f in out.rglob("*") if f.is_file()) / 1e6
    seconds = time.perf_counter() - begin
    checked = found["formulas"] if formulas is False else f"{found['formulas']:,}"
    facts = [f"{found['pages']:,} pages", f"{size:.0f} MB", f"{found['links']:,} links checked"]
    return f"{out}: {', '.join(facts)}, {checked} formulas typeset, {found['names']:,} names, {seconds:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", nargs="?", type=Path, default=ROOT / "_site", help="folder for the site")
    parser.add_argument("--root", type=Path, default=ROOT, help="another folder with README.md, settings.ini and nbs/")
    parser.add_argument("--no-formulas", action="store_true", help="do not typeset the formulas in a browser")
    parser.add_argument("--keep", type=Path, help="keep the pages as Sphinx reads them in this folder")
    args = parser.parse_args()
    try:
        print(build(args.root, args.out, not args.no_formulas, args.keep))
    except SiteError as e:
        sys.exit(f"the site was not built:\n{e}")


if __name__ == "__main__":
    main()
