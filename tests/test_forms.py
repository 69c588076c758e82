"""Variants: what one can do does not depend on what else was imported."""

import subprocess
import sys

import pytest

from helpers import A_PYTHON, slow_after

ALONE = """
import cora_nb as cn
from importlib import import_module
from pkgutil import walk_packages

def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}

alone = public(cn.NAME)
for module in walk_packages(cn.__path__, "cora_nb."):
    import_module(module.name)
print(sorted(public(cn.NAME) ^ alone))
"""


def said(code):
    "What a fresh Python prints."
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=A_PYTHON)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.parametrize("name", slow_after(1, ["Variant", "Responses", "Question", "Runs"]))
def test_no_class_is_completed_from_afar(name):
    "A class is whole once it is there: no module imported later adds to it."
    assert said(ALONE.replace("NAME", name)) == "[]"


def test_a_variant_has_labels_whatever_was_imported():
    code = """
import cora_nb as cn
print(cn.Variant(cn.Question("q", "?", ("a", "b"), 0), "cora", "original", 0, ("a", "b"), 0, (0, 1)).labels)
print(cn.make_variants([cn.Question("q", "?", ("a", "b"), 0)])[0].labels)
"""
    assert said(code).splitlines() == ["('A', 'B')"] * 2
