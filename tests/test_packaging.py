"""What a research package is expected to have: one version, citation, changes, a release tried first."""

import ast
import configparser
import importlib.util
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import cora_nb as cn
from helpers import WITH_TORCH

ROOT = Path(__file__).resolve().parent.parent


def git(*command: str, check: bool = True) -> subprocess.CompletedProcess:
    "What git says of this checkout; a skip where there is no git, or the files came without their history."
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    if not (ROOT / ".git").exists():
        pytest.skip(f"{ROOT} is no git checkout")
    return subprocess.run(["git", *command], capture_output=True, text=True, check=check, cwd=ROOT)


# --- what the package says of itself -----------------------------------------------------------------------------


def test_the_version_is_the_same_everywhere():
    ini = configparser.ConfigParser(delimiters=["="])
    ini.read(ROOT / "settings.ini", encoding="utf-8")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
    found = {ini["DEFAULT"]["version"], cn.__version__, str(citation["version"]), newest}
    assert len(found) == 1, found


@pytest.mark.slow
def test_the_package_says_what_it_is():
    assert cn.__doc__.startswith("Is a multiple-choice score worth anything?")
    command = [sys.executable, "-c", "import cora_nb; help(cora_nb)"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert "computes" in shown and "arXiv 2511.21860" in shown and "dir(cora_nb)" in shown


def test_the_program_in_the_docstring_is_the_six_lines_of_the_readme():
    program = re.search(r"(?:^    .*\n|^\n)+", cn.__doc__[cn.__doc__.index("    import") :], re.MULTILINE)[0]
    lines = [line.strip() for line in program.splitlines() if line.strip()]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(lines) == 6
    ast.parse("\n".join(lines))
    assert [line for line in lines if line not in readme.replace(", progress=False", "")] == []


def test_ipywidgets_comes_with_the_package_and_extras_are_those_of_settings():
    ini = (ROOT / "settings.ini").read_text(encoding="utf-8")
    assert re.search(r"^requirements = .*\bipywidgets>=8\b", ini, re.MULTILINE)
    assert "widgets_requirements" not in ini
    told = [f for f in [ROOT / "README.md", *(ROOT / "nbs").rglob("*.ipynb")] if "cora_nb[widgets]" in f.read_text()]
    assert told == []


def test_the_door_lists_only_its_own_names():
    listed = {name for name in dir(cn) if not name.startswith("__")}
    assert listed == set(cn._MODULES)


# --- CHANGELOG.md, CITATION.cff, CONTRIBUTING.md -----------------------------------------------------------------


def cff_errors(cff: dict) -> list[str]:
    "What the schema of CFF 1.2.0 asks of the fields that are used here; cffconvert checks all of it."
    needed = {"cff-version": str, "message": str, "title": str, "authors": list}
    wrong = [f"{key} is missing" for key, kind in needed.items() if not isinstance(cff.get(key), kind)]
    wrong += [] if cff.get("cff-version") == "1.2.0" else ["cff-version must be 1.2.0"]
    wrong += [] if cff.get("type", "software") in ("software", "dataset") else ["type"]
    for part in [cff, *cff.get("references", [])]:
        title = part.get("title", "")[:30]
        if part is not cff:
            kinds = {"article", "conference-paper", "unpublished", "software", "generic", "report"}
            wrong += [] if part.get("type") in kinds else [f"{title}: type"]
            wrong += [] if part.get("title") and part.get("authors") else [f"{title}: title and authors are needed"]
        for who in part.get("authors") or []:
            person, entity = {"family-names", "given-names"}, {"name"}
            wrong += [] if set(who) in (person, entity) else [f"{title}: author {who}"]
        for identifier in part.get("identifiers", []):
            good = identifier.get("type") in ("doi", "url", "swh", "other") and isinstance(identifier["value"], str)
            wrong += [] if good else [f"{title}: identifier {identifier}"]
    return wrong


def test_citation_is_valid_and_names_the_four_papers():
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cff_errors(cff) == []
    papers = {r["title"]: r for r in cff["references"]}
    found = [i["value"] for r in papers.values() for i in r.get("identifiers", [])]
    assert found == ["arXiv:2511.21860", "arXiv:2402.01349", "arXiv:2403.17752"] and len(papers) == 4
    assert [a["family-names"] for a in cff["references"][0]["authors"]][:2] == ["Cavalin", "Sanctos"]
    plans = "".join(f.read_text(encoding="utf-8") for f in (ROOT / "data" / "plans").glob("*.toml"))
    assert [title for title in papers if f'title = "{title}"' not in plans] == []


@pytest.mark.parametrize(
    "change",
    [
        {"authors": []},
        {"authors": [{"family-name": "Li"}]},
        {"cff-version": "1.1.0"},
        {"message": None},
        {"references": [{"title": "No type", "authors": [{"name": "A"}]}]},
        {"references": [{"type": "article", "title": "No authors"}]},
    ],
)
def test_a_citation_with_an_error_is_found(change):
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    if change == {"authors": []}:
        del cff["authors"]
    else:
        cff |= change
    assert cff_errors(cff)


def test_the_papers_have_the_titles_and_authors_of_their_texts(shared):
    "As far as the extracted texts have them: the MCQA+ paper's stand in the references of the CoRA paper."
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    folder = shared.parent / "papers"
    if not folder.is_dir():
        pytest.skip(f"the papers are not at hand under {folder}")
    for reference, file in zip(cff["references"], ("cora.txt", "cora.txt", "quadruple_slit.txt", "mcq_useful.txt")):
        text = " ".join((folder / file).read_text(encoding="utf-8").split())
        assert reference["title"].lower() in text.lower()
        names = [f"{a['given-names']} {a['family-names']}" for a in reference["authors"] if "name" not in a]
        assert [name for name in names if name not in text] == []


def test_files_and_commands_that_contributing_names_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {w.split()[0] for w in re.findall(r"`([^`\n]+)`", text)} | set(re.findall(r"\]\(([^)]+)\)", text))
    paths = {w for w in named if re.fullmatch(r"[\w./]+", w) and "/" in w and not w.endswith(":")}
    paths |= {w for block in re.findall(r"`(?:python|bash) ([\w./]+)", text) for w in [block]}
    assert len(paths) > 20 and [p for p in sorted(paths) if not (ROOT / p).exists()] == []
    assert len(re.search(r"## Set up in two commands.*?```sh\n(.*?)```", text, re.DOTALL)[1].splitlines()) == 2


# --- the wheel, and the release ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel_holds():
    spec = importlib.util.spec_from_file_location("wheel_holds", ROOT / "scripts" / "wheel_holds.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda files: files, []),
        (
            lambda files: {k: v for k, v in files.items() if not k.endswith("page.js")},
            ["missing: cora_nb/data/page.js"],
        ),
        (lambda files: files | {"cora_nb/core.py": b"x = 2"}, ["altered: cora_nb/core.py"]),
        (lambda files: files | {"cora_nb/old.py": b""}, ["not in the source: cora_nb/old.py"]),
        (lambda files: files | {"cora_nb-0.2.0.dist-info/METADATA": b""}, []),
    ],
)
def test_a_wheel_that_lacks_a_file_is_found(tmp_path, wheel_holds, change, says):
    files = {"cora_nb/core.py": b"x = 1", "cora_nb/data/page.js": b"go()"}
    for name, content in {"cora_nb/core.py": b"x = 1", "data/page.js": b"go()", "cora_nb/__pycache__/x": b""}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        for name, content in change(files).items():
            archive.writestr(name, content)
    assert wheel_holds.differences(tmp_path / "a.whl", tmp_path) == says


@pytest.mark.slow
def test_the_sdist_holds_what_the_build_reads(tmp_path):
    "Without settings.ini in it, no wheel can be made from the sdist. Built in a copy, by setuptools alone."
    pytest.importorskip("setuptools")
    copy = tmp_path / "copy"
    tracked = git("ls-files").stdout.splitlines()
    for name in tracked:
        if name.startswith(("cora_nb/", "data/")) or "/" not in name:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "setup.py", "--quiet", "sdist", "--dist-dir", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, cwd=copy)
    with tarfile.open(tmp_path / f"cora_nb-{cn.__version__}.tar.gz") as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {name for name in tracked if name.startswith(("cora_nb/", "data/"))}
    wanted |= {"settings.ini", "setup.py", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"}
    assert len(wanted) > 150 and wanted - held == set()


def test_the_release_tries_before_it_publishes():
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    jobs = release["jobs"]
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]["test"]
    assert jobs["try"]["strategy"]["matrix"] == tests["strategy"]["matrix"] == {"python": ["3.11", "3.12", "3.13"]}
    assert (jobs["try"]["needs"], jobs["publish"]["needs"]) == ("build", "try")
    assert jobs["publish"]["if"].startswith("startsWith(github.ref, 'refs/tags/v') && vars.")
    assert any("scripts/check_wheel.sh" in step.get("run", "") for step in jobs["try"]["steps"])
    assert release["permissions"] == {"contents": "read"} and "secrets." not in yaml.dump(release)


# --- a notebook without a warning --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_progress_bar_in_a_notebook_prints_no_warning():
    "Without ipywidgets, tqdm writes `IProgress not found` with the path of its file into every notebook."
    pytest.importorskip("ipywidgets")
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    code = "import cora_nb as cn\nv = cn.make_variants(cn.load_benchmark('math')[:2])\n"
    code += "len(cn.evaluate(cn.SimulatedRespondent(), v).table)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=WITH_TORCH).execute()
    said = [o for o in notebook.cells[0].outputs if o.output_type == "stream" and o.name == "stderr"]
    assert said == [] and notebook.cells[0].outputs[-1]["data"]["text/plain"] == "40"


def test_progress_bars_and_sliders_are_neither_stored_nor_compared():
    spec = importlib.util.spec_from_file_location("run_notebooks", ROOT / "scripts" / "run_notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    bar = {"output_type": "display_data", "data": {"text/plain": "0/40 [00:00<?, ?it/s]", module.WIDGET: {}}}
    value = {"output_type": "execute_result", "data": {"text/plain": "40"}}
    assert module.shown([bar, value]) == module.shown([value]) == "[text/plain]\n40"
