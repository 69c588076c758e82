"""Faults of a server: those of `tests/respondents/test_server_faults.py`, for the list."""

from pathlib import Path

import pytest
from respondents import test_server_faults as faults
from robustness.cases import Case

impatient = getattr(faults.impatient, "__wrapped__", None) or faults.impatient.__pytest_wrapped__.obj


def met(group: str, name: str, folder: Path) -> str:
    "What happened."
    with pytest.MonkeyPatch.context() as patch:
        impatient(patch)
        faults.test_a_fault(group, name, folder)
    return faults.HAPPENED[name]


def cases() -> list[Case]:
    return [
        Case(f"server, {group}", name, lambda folder, g=group, n=name: met(g, n, folder), (), lambda found: found)
        for group, name in faults.FAULTS
    ]
