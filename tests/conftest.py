"""Shared by all tests: where the real data lie, and a skip with a reason where they do not; runs that several need."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import settings

if "PYTEST_XDIST_WORKER" in os.environ:  # a worker for each core: more threads would be in each other's way
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch when it is imported, here and in commands

SHARED = Path(os.environ.get("CORA_SHARED", Path(__file__).resolve().parents[2] / "shared"))

DICTIONARY = Path("/usr/share/dict/words")

settings.register_profile("cora_nb", deadline=None)  # a busy machine is no failure
settings.load_profile("cora_nb")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "peers: compares with another package, and is skipped where that is not installed"
    )


@pytest.fixture(scope="session")
def shared() -> Path:
    "The folder of real benchmarks and recorded replies."
    if not (SHARED / "data").is_dir():
        pytest.skip(f"real data not found under {SHARED}; set CORA_SHARED to run this test")
    return SHARED / "data"


@pytest.fixture(scope="session")
def medalpaca(shared):
    "The recorded replies of medalpaca-7b on MedQA, imported once."
    from cora_nb.interop.cat import import_cat

    return import_cat(shared / "recorded" / "cat_medqa_medalpaca-7b.xlsx")


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
