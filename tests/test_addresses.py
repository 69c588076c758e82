"""No address that is not ours: every host named in the project is known to exist and needed, or can be nobody's."""

import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from home import badges, citation_with_home, install_cell, read_settings, readme_line, with_home, write_home

ROOT = Path(__file__).resolve().parent.parent
KNOWN = {
    *("arxiv.org", "doi.org", "openreview.net", "aclanthology.org", "huggingface.co", "pypi.org"),  # papers, data
    *("api.openai.com", "platform.openai.com", "lab.openai.azure.com"),  # servers that chat models stand behind
    *("www.apache.org", "www.w3.org", "json-schema.org", "semver.org", "git-lfs.github.com"),  # licences and formats
    *(
        "www.fatiando.org",
        "jinja.palletsprojects.com",
        "ipywidgets.readthedocs.io",
        "inspect.aisi.org.uk",
    ),  # their docs
    *("distributed.dask.org", "jobqueue.dask.org", "kubernetes.dask.org", "matplotlib.org"),
    *("www.mathjax.org", "revealjs.com", "hakim.se", "cdn.jsdelivr.net"),  # vendored MathJax and reveal.js name these
}
OWNERS = {
    "IBM",
    "Meetyou-AI-Lab",
    "EleutherAI",
    "mokhld",
    "evaleval",
    "hakimel",
    "mathjax",
    "google",
    "zorkow",
    "mhchem",
}
MADE_BY = {
    "setup.py",
    "tests/course/test_slides.py",
    "scripts/home.py",
    "tests/test_addresses.py",
    "tests/test_picture.py",
    "tests/test_site.py",
}
MADE = {"colab.research.google.com", "mybinder.org", "raw.githubusercontent.com", "github.com"}  # from a home, by these
RESERVED = re.compile(r"(.*\.)?(example|invalid|test|localhost)|127\.0\.0\.1")  # can be nobody's
WEB = re.compile(
    r"\b(?:https?|ftp|ssh|postgres(?:ql)?|wss?)://(?:[^\s/@\"'`<>\\]*@)?([A-Za-z0-9][A-Za-z0-9.-]*)(/[^/\s\"')`>\\]+)?"
)
MAIL = re.compile(r"[\w.+-]+@((?:[A-Za-z][A-Za-z0-9-]*\.)+[A-Za-z]{2,})\b")
BARE = re.compile(r"\b[A-Za-z0-9-]+\.(?:github|gitlab|readthedocs)\.io\b")


def unknown(text: str, file: str = "") -> set[str]:
    "The hosts and owners in a text that are not on the list; one word without a dot is nobody's on the internet."
    found = set()
    for host, owner in WEB.findall(text):
        host = host.rstrip(".-").lower()
        if "." not in host or RESERVED.fullmatch(host) or host in KNOWN or (file in MADE_BY and host in MADE):
            continue
        if host == "github.com" and (not owner or owner[1:] in OWNERS):
            continue
        found.add(host + (owner if host == "github.com" else ""))
    found |= {host for host in MAIL.findall(text) if not RESERVED.fullmatch(host.lower())}
    found |= {host for host in BARE.findall(text) if host not in KNOWN}
    if re.search(r"pip install (?:-\S+ )*cora_nb(?![\w\[/])", text):
        found.add("cora_nb on PyPI")
    return found


def texts(file: Path) -> str:
    "A file's text; of a notebook its sources and outputs, without pictures."
    if file.suffix != ".ipynb":
        return file.read_text(encoding="utf-8", errors="replace")
    parts = []
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        parts.append("".join(cell["source"]))
        for output in cell.get("outputs", []):
            shown = {"text": output.get("text", "")} | output.get("data", {})
            parts += ["".join(words) for kind, words in shown.items() if not kind.startswith("image/png")]
    return "\n".join(part if isinstance(part, str) else json.dumps(part) for part in parts)


def tracked() -> list[str]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.slow
def test_every_address_in_the_project_is_known():
    binary = (".eval", ".safetensors", ".png", ".parquet", ".gz", ".xlsx", ".zip")
    # Texts of another kind: words of attacks that are tried, and a program of others with addresses in comments.
    vendored = ("scripts/site/mathjax/", "scripts/slides/reveal/")
    files = [name for name in tracked() if not name.endswith(binary)]
    found = {}
    for name in files:
        wrong = unknown(texts(ROOT / name), name)
        if name.startswith(vendored):  # minified code: what looks like a mailbox is a package and its version
            wrong = {host for host in wrong if "." in host and "/" in host}
        if name == "tests/test_addresses.py":
            wrong = set()  # the examples below
        if wrong:
            found[name] = wrong
    assert len(files) > 600 and found == {}


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("%pip install --quiet git+https://github.com/cora-nb/cora_nb", {"github.com/cora-nb"}),
        ("[a site](https://cora-nb.github.io/cora_nb/)", {"cora-nb.github.io"}),
        ("see cora-nb.github.io", {"cora-nb.github.io"}),
        ("author_email = cora_nb@example.org", {"example.org"}),
        ("mailto:me@lab.org", {"lab.org"}),
        ("pip install cora_nb", {"cora_nb on PyPI"}),
        ("pip install --quiet cora_nb && cora_run", {"cora_nb on PyPI"}),
        ("pip install ./cora_nb; pip install 'cora_nb[inspect]'", set()),
        ("postgresql://ann:pw@db.example/team http://127.0.0.1:8000/v1 http://gpu1:8000/v1", set()),
        ("https://github.com/IBM/cat and https://arxiv.org/abs/2511.21860.", set()),
    ],
)
def test_what_the_test_above_finds(text, wrong):
    assert unknown(text) == wrong


# --- a home, in settings.ini ---------------------------------------------------------------------------------------

HOME, SITE = "https://github.com/me/it", "https://me.example/it"


def test_there_is_no_home_yet_and_committed_files_are_as_the_settings_say(tmp_path):
    assert (read_settings()["home"], read_settings()["site"]) == ("", "")
    for name in ("settings.ini", "CITATION.cff"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "nbs" / "course", tmp_path / "nbs" / "course")
    write_home(tmp_path)
    for file in (p for p in tmp_path.rglob("*") if p.is_file()):
        assert file.read_bytes() == (ROOT / file.relative_to(tmp_path)).read_bytes(), file.name


def test_a_home_is_written_wherever_it_is_named_and_taken_away_again(tmp_path):
    shutil.copyfile(ROOT / "CITATION.cff", tmp_path / "CITATION.cff")
    shutil.copytree(ROOT / "nbs" / "course", tmp_path / "nbs" / "course")
    empty = (ROOT / "settings.ini").read_text(encoding="utf-8")
    filled = empty.replace("\nhome =\n", f"\nhome = {HOME}\n").replace("\nsite =\n", f"\nsite = {SITE}\n")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    (tmp_path / "settings.ini").write_text(filled, encoding="utf-8")
    for _ in range(2):  # the second time changes nothing
        write_home(tmp_path)
        chapters = sorted((tmp_path / "nbs" / "course").glob("[0-9]*.ipynb"))
        assert len(chapters) == 11
        for file in chapters:
            _, needs, install, *_ = json.loads(file.read_text(encoding="utf-8"))["cells"]
            line = "".join(needs["source"]).split("\n")[0]
            assert line == badges(HOME, "main", f"nbs/course/{file.name}")
            assert f"/github/me/it/blob/main/nbs/course/{file.name})" in line
            assert line.endswith(f"/v2/gh/me/it/main?urlpath=lab%2Ftree%2Fnbs%2Fcourse%2F{file.name})")
            assert install["source"][-1] == f"    %pip install --quiet git+{HOME}"
        citation = yaml.safe_load((tmp_path / "CITATION.cff").read_text(encoding="utf-8"))
        assert (citation["repository-code"], citation["url"]) == (HOME, SITE)
    (tmp_path / "settings.ini").write_text(empty, encoding="utf-8")
    write_home(tmp_path)
    assert {p: p.read_bytes() for p in before} == before


def test_without_the_package_a_chapter_says_one_line(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    exec(install_cell(""), {})
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "pip install -e '.[local]'" in said and "copy" in said and unknown(said) == set()


def test_colab_and_binder_open_only_what_is_on_github():
    assert badges("", "main", "a.ipynb") == badges("https://lab.example/it", "main", "a.ipynb") == ""
    chapter = {"cells": [{}, {"source": ["Needs.\n"]}, {"source": []}]}
    assert with_home(chapter, "", "main", "a.ipynb")["cells"][1]["source"] == ["Needs.\n"]
    assert readme_line("", "") == "" and citation_with_home("license: MIT\n", "", "") == "license: MIT\n"
    assert readme_line(HOME, SITE) == f"[The repository]({HOME}) · [the site with search]({SITE})"


def test_the_package_is_told_its_home_or_none(monkeypatch):
    given = {}
    monkeypatch.setattr("setuptools.setup", lambda **told: given.update(told))
    addresses = runpy.run_path(str(ROOT / "setup.py"))["addresses"]
    assert not {"url", "project_urls", "author_email"} & set(given)
    assert addresses("", "", "main") == {}
    urls = {name: f"{HOME}/blob/main/{name}" for name in ("CHANGELOG.md", "CITATION.cff")}
    assert addresses(HOME, SITE, "main") == {"url": HOME, "project_urls": urls | {"Documentation": SITE}}
