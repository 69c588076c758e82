"""Shared by all tests: where the real data lie, and a skip with a reason where they do not."""
import os
from pathlib import Path

import pytest
from hypothesis import settings

SHARED = Path(os.environ.get("CORA_SHARED", Path(__file__).resolve().parents[2] / "shared"))

settings.register_profile("cora_nb", deadline=None)  # a busy machine is no failure
settings.load_profile("cora_nb")


def pytest_configure(config):
    config.addinivalue_line("markers", "peers: compares with another package, and is skipped where that is not installed")


@pytest.fixture(scope="session")
def shared() -> Path:
    "The folder of real benchmarks and recorded replies."
    if not (SHARED / "data").is_dir():
        pytest.skip(f"real data not found under {SHARED}; set CORA_SHARED to run this test")
    return SHARED / "data"


@pytest.fixture(scope="session")
def medalpaca(shared):
    "The recorded replies of medalpaca-7b on MedQA, imported once."
    from cora_nb.importers import import_cat

    return import_cat(shared / "recorded" / "cat_medqa_medalpaca-7b.xlsx")
