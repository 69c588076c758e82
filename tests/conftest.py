"""Shared by all tests: where the real data lie, and a skip with a reason where they do not; runs that several need."""

import gc
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test asks the hub, nor does a command that a test runs

if "PYTEST_XDIST_WORKER" in os.environ:  # a worker for each core: more threads would be in each other's way
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch when it is imported, here and in commands

SHARED = Path(os.environ.get("CORA_SHARED", Path(__file__).resolve().parents[2] / "shared"))

DICTIONARY = Path("/usr/share/dict/words")

# A busy machine is no failure, and the same code gives the same answer; `--hypothesis-profile search` tries others.
settings.register_profile("cora_nb", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("search", deadline=None)
settings.load_profile("cora_nb")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "peers: compares with another package, and is skipped where that is not installed"
    )
    config.addinivalue_line(
        "markers",
        "slow: kills, workers, servers of databases, browsers, the site, simulations of coverage, whole benchmarks, "
        "whole commands, exhaustive grids; plain `pytest` leaves it out, `pytest -m slow` runs it",
    )
    config.addinivalue_line(
        "markers",
        "guard: what must never break (kills, the store, divided runs, foreign data names no code); `pytest -m guard` "
        "runs these files whole, and `.ci/run` what is slow in them",
    )


def pytest_collection_finish(session):
    "What was imported stays: the garbage collector does not look at it again, so those that tests ask for are quick."
    gc.freeze()


@pytest.fixture(scope="session")
def shared() -> Path:
    "The folder of real benchmarks and recorded replies."
    if not (SHARED / "data").is_dir():
        pytest.skip(f"real data not found under {SHARED}; set CORA_SHARED to run this test")
    return SHARED / "data"


@pytest.fixture(scope="session")
def organism_run(tmp_path_factory):
    """`cora_run` without arguments, run once for all tests and workers: (folder, exit code, output, errors).

    In the folder lie the responses of both organisms to the 6000 variants, and the store with all their replies. The
    proxies lead nowhere, so it is known that no network was needed.
    """
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    from filelock import FileLock

    from helpers import run

    root = tmp_path_factory.getbasetemp()
    folder = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "organism_run"
    with FileLock(f"{folder}.lock"):
        if not (folder / "said.json").exists():
            folder.mkdir()
            names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
            offline = {"HF_HUB_OFFLINE": "1", **dict.fromkeys(names, "http://127.0.0.1:9")}
            (folder / "said.json").write_text(json.dumps(run("cora_run", cwd=folder, **offline)))
    return folder, *json.loads((folder / "said.json").read_text())


@pytest.fixture(scope="session")
def postgres():
    "A PostgreSQL server of this session's own; its `empty_store()` gives an address."
    from postgres_server import PostgresServer, missing

    if reason := missing():
        pytest.skip(reason)
    with PostgresServer("fsync=off") as server:  # a machine that crashes is not among the tests
        yield server


@pytest.fixture(scope="session")
def recorded_at():
    """Where a published file of raw data is, by its name in `papers.recorded`; looked for once in a session.

    In a folder or in the cache: no test downloads. One that cannot have its file is skipped, with the reason.
    """
    from cora_nb.core import CoraError
    from cora_nb.papers.published import recorded_file

    found = {}

    def find(name: str) -> Path:
        if name not in found:
            try:
                found[name] = recorded_file(name, download=False)
            except CoraError as e:
                found[name] = e
        if isinstance(found[name], CoraError):
            pytest.skip(str(found[name]))
        return found[name]

    return find


@pytest.fixture(scope="session")
def medalpaca():
    "The facts of the recorded replies of medalpaca-7b on MedQA, read once."
    from cora_nb.papers.published import load_recorded

    return load_recorded("cat/medqa/medalpaca-7b")


@pytest.fixture(scope="session")
def medalpaca_texts(recorded_at):
    "The same replies with all texts, imported once."
    from cora_nb.papers.published import load_recorded

    recorded_at("cat/medqa/medalpaca-7b")
    return load_recorded("cat/medqa/medalpaca-7b", texts=True)


@pytest.fixture(scope="session")
def mmlu(shared):
    "Every fourteenth question of MMLU, from all subjects."
    from cora_nb.benchmarks.load import load_benchmark

    if not (shared / "hub" / "cais__mmlu").is_dir():
        pytest.skip(f"MMLU not found under {shared / 'hub'}")
    return load_benchmark("mmlu", path=shared / "hub")[::14][:1000]


@pytest.fixture(scope="session")
def words(shared):
    "Every word of the real benchmarks, and the machine's dictionary where there is one."
    from cora_nb.benchmarks.load import load_benchmark

    names = {
        "cais__mmlu": "mmlu",
        "bigbio__med_qa": "medqa",
        "allenai__ai2_arc": "arc",
        "truthfulqa__truthful_qa": "truthfulqa",
        "tau__commonsense_qa": "csqa",
    }
    there = [name for folder, name in names.items() if (shared / "hub" / folder).is_dir()]
    if not there:
        pytest.skip(f"no benchmark found under {shared / 'hub'}")
    asked = [q for name in there for q in load_benchmark(name, path=shared / "hub", on_bad="skip")]
    found = set(re.findall(r"[^\W\d_]+", "\n".join(t for q in asked for t in (q.text, *q.choices)).casefold()))
    return found | set(DICTIONARY.read_text(errors="ignore").casefold().split()) if DICTIONARY.exists() else found
