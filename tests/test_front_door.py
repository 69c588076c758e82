"""The front door: quick, light, explained; and what every public name of the package must have."""

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import cora_nb as cn

MODULES = sorted(m.name for m in pkgutil.walk_packages(cn.__path__, "cora_nb.") if not m.name.endswith("_modidx"))


def public(module):
    "The functions and classes that a module exports."
    found = importlib.import_module(module)
    names = getattr(found, "__all__", [])
    return {
        n: getattr(found, n)
        for n in names
        if inspect.isfunction(getattr(found, n)) or inspect.isclass(getattr(found, n))
    }


def test_the_door_is_light():
    "Nothing heavy is imported, and all names are there."
    heavy = ("numpy", "pandas", "torch", "scipy", "openai", "datasets")
    code = f"import sys, cora_nb as cn; print([m for m in {heavy} if m in sys.modules], 'evaluate' in dir(cn))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "[] True\n"


@pytest.mark.parametrize("name", sorted(cn._MODULES))
def test_help_explains_every_parameter(name):
    thing = getattr(cn, name)
    if name == "CoraError":
        return  # has no parameters of its own
    unexplained = [p for p in inspect.signature(thing).parameters if f"    {p}: " not in thing.__doc__]
    assert "Parameters:" in thing.__doc__ and not unexplained, f"help(cn.{name}) is silent on {', '.join(unexplained)}"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'cora_nb' has no attribute 'scores'"):
        cn.scores


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_can_be_shown_and_explains_its_parameters(module):
    "`show_doc` works on it, and fastcore finds a comment beside each parameter."
    showdoc = pytest.importorskip("nbdev.showdoc")
    silent = []
    for name, thing in public(module).items():
        assert str(showdoc.show_doc(thing)._repr_markdown_()), name
        if inspect.isfunction(thing):
            silent += [f"{name}({p})" for p, words in cn.words_beside(thing).items() if not words]
    assert not silent, f"{module}: no words beside {', '.join(silent)}"
