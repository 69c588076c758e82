"""The front door: quick, light, explained; and what every public name of the package must have."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from dataclasses import dataclass
from typing import NamedTuple

import pytest

import cora_nb as cn
import cora_nb.respondents.likelihood  # noqa: F401

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


@pytest.mark.parametrize("name", sorted(n for n in cn._MODULES if inspect.isclass(getattr(cn, n))))
def test_help_explains_methods_inherited_ones_too(name):
    silent = []
    for method, found in inspect.getmembers(getattr(cn, name), callable):
        words = {} if method.startswith("_") else cn.words_beside(found)
        silent += [f"{method}({p})" for p, said in words.items() if said and f"    {p}: {said}" not in found.__doc__]
    assert not silent, f"help(cn.{name}) is silent on {', '.join(silent)}"


def test_only_the_door_explains_and_only_what_it_hands_out():
    "No hook is left in Python's imports, and modules are modules."
    code = """
import sys, types, cora_nb
from cora_nb.metrics.cora import mcqa
from cora_nb.metrics.scoring import score
from cora_nb.runs import evaluate
assert [f for f in (*sys.meta_path, *sys.path_hooks) if str(getattr(f, "__module__", "")).startswith("cora_nb")] == []
assert type(evaluate) is type(sys.modules["cora_nb.runs"]) is types.ModuleType
assert "Parameters:" not in score.__doc__ + mcqa.__doc__
assert cora_nb.score is score and score.__doc__.count("Parameters:") == 1 and "Parameters:" not in mcqa.__doc__
assert cora_nb.evaluate is evaluate.evaluate
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@dataclass
class Person:
    name: str  # in "tables" # and plots
    age: int = 3
    _: int = 0

    def greet(self, *others: str, age: int = 1) -> None:  # what the method says is not the field's
        self.age: int = age  # nor is this


@dataclass
class Pupil(Person):
    age: int = 7  # in years


class Pair(NamedTuple):
    left: int  # the first
    right: int = "#"  # the second


class Own(Person):
    def __init__(
        self,
        age: str = "# 3",  # as text
        /,
        *names: str,  # any number
        **options: int,  # the rest
    ):
        pass


def test_words_beside_of_classes_and_of_what_has_no_source():
    assert cn.words_beside(Pupil) == {"name": 'in "tables" # and plots', "age": "in years", "_": ""}
    assert cn.words_beside(Pair) == {"left": "the first", "right": "the second"}
    assert cn.words_beside(Own) == {"age": "as text", "names": "any number", "options": "the rest"}
    assert cn.words_beside(Person.greet) == {"others": "", "age": ""}
    made = {}
    exec("def made(x): 'It has no source.'", made)
    assert cn.words_beside(made["made"]) == {"x": ""} and cn.words_beside(cn.CoraError) == {}
    assert cn.words_beside(lambda x: x) == {"x": ""} and cn.words_beside(len) == {"obj": ""}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'cora_nb' has no attribute 'scores'"):
        cn.scores


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_can_be_shown_and_explains_its_parameters(module):
    "`show_doc` works on it, and fastcore finds a comment beside each parameter."
    showdoc = pytest.importorskip("nbdev.showdoc")
    if module == "cora_nb.interop.inspect_tasks":
        pytest.importorskip("inspect_ai")  # needs Python 3.11
    silent = []
    for name, thing in public(module).items():
        assert str(showdoc.show_doc(thing)._repr_markdown_()), name
        if inspect.isfunction(thing):
            silent += [f"{name}({p})" for p, words in cn.words_beside(thing).items() if not words]
    assert not silent, f"{module}: no words beside {', '.join(silent)}"
