#!/usr/bin/env python3
"""Write the home of the project, `home` and `site` in settings.ini, where a committed file names it; empty: nowhere.

    python scripts/home.py     # after a change of `home` or `site`; then nbdev_export && python scripts/make_readme.py

The chapters of the course get badges and a cell that installs the package from the home; without one they have no
badge, and the cell says how to install from a copy. CITATION.cff gets the addresses. setup.py, make_readme.py,
make_site.py and make_slides.py read settings.ini themselves.
"""

import json
import re
from configparser import ConfigParser
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
GITHUB = "https://github.com/"
MISSING = "cora_nb is missing: run `pip install -e '.[local]'` in your copy, then restart"


def read_settings(root: Path = ROOT) -> dict[str, str]:
    "What settings.ini says."
    ini = ConfigParser(delimiters=["="])
    ini.read(root / "settings.ini", encoding="utf-8")
    return dict(ini["DEFAULT"])


def badges(
    home: str,  # address of the repository; empty where there is none
    branch: str,
    path: str,  # of a notebook in it
) -> str:  # Markdown of one line; empty where the home is none that Colab and Binder can open
    "The badges that open a notebook in Colab and in Binder."
    if not home.startswith(GITHUB):
        return ""
    name = home.removeprefix(GITHUB)
    colab = f"https://colab.research.google.com/github/{name}/blob/{branch}/{path}"
    binder = f"https://mybinder.org/v2/gh/{name}/{branch}?urlpath={quote(f'lab/tree/{path}', safe='')}"
    return (
        f"[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({colab}) "
        f"[![Open in Binder](https://mybinder.org/badge_logo.svg)]({binder})"
    )


def install_cell(home: str) -> str:
    "The code of a chapter's first cell: what to do where the package is missing."
    then = f"%pip install --quiet git+{home}" if home else f'print("{MISSING}")'
    return f'import importlib.util\n\nif importlib.util.find_spec("cora_nb") is None:\n    {then}'


def with_home(
    chapter: dict,  # a notebook
    home: str,
    branch: str,
    path: str,  # of the notebook
) -> dict:  # the notebook with its badges and the cell that installs, in its second and third cell
    "A chapter of the course as the home has it."
    needs, install = chapter["cells"][1:3]
    text = re.sub(r"\A(\[!\[[^\n]*\n)?\n*", "", "".join(needs["source"]))
    line = badges(home, branch, path)
    needs["source"] = (f"{line}\n\n{text}" if line else text).splitlines(keepends=True)
    install["source"] = install_cell(home).splitlines(keepends=True)
    return chapter


def citation_with_home(text: str, home: str, site: str) -> str:
    "CITATION.cff with the addresses of the repository and the site, each left out where it is empty."
    text = re.sub(r"^(repository-code|url): .*\n", "", text, flags=re.MULTILINE)
    lines = "".join(f'{key}: "{value}"\n' for key, value in (("repository-code", home), ("url", site)) if value)
    return re.sub(r"^license: .*\n", lambda found: found[0] + lines, text, flags=re.MULTILINE)


def readme_line(home: str, site: str) -> str:
    "The last line of README.md; empty without a home and a site."
    links = (("The repository", home), ("the site with search", site))
    return " · ".join(f"[{words}]({address})" for words, address in links if address)


def write_home(root: Path = ROOT) -> None:
    "Bring the chapters and CITATION.cff of a checkout up to date with its settings.ini."
    cfg = read_settings(root)
    for file in sorted((root / "nbs" / "course").glob("[0-9]*.ipynb")):
        chapter = json.loads(file.read_text(encoding="utf-8"))
        made = with_home(chapter, cfg["home"], cfg["branch"], file.relative_to(root).as_posix())
        file.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
    citation = root / "CITATION.cff"
    text = citation_with_home(citation.read_text(encoding="utf-8"), cfg["home"], cfg["site"])
    citation.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write_home()
