"""The registry: four places where a name is looked for, and one line for whatever is not found."""

import subprocess
import sys

import pytest

from cora_nb.cli.respondents import RESPONDENTS
from cora_nb.core import CoraError
from cora_nb.prompts.letters import RULES
from cora_nb.registry import Registry, load_address, _load_file
from cora_nb.variants.families import FAMILIES


def error(call) -> str:
    "The message of the `CoraError` that a call raises, which must be one line."
    with pytest.raises(CoraError) as e:
        call()
    assert "\n" not in str(e.value)
    return str(e.value)


@pytest.fixture
def package(tmp_path, monkeypatch):
    "A package `their_package` with a module and entry points, as an installer leaves it."
    (tmp_path / "their_package").mkdir()
    (tmp_path / "their_package" / "__init__.py").write_text("")
    (tmp_path / "their_package" / "things.py").write_text("def half(x):\n    return x / 2\n")
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[cora_nb]\n"
        "parsing_rule.half = their_package.things:half\n"
        "parsing_rule.gone = their_package.nowhere:half\n"
        "parsing_rule.lost = their_package.things:no_such\n"
        "family.other = their_package.things:half\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [m for m in sys.modules if m.startswith("their_package")]:
        del sys.modules[name]


def test_an_installed_package_adds_names(package):
    rules = Registry("parsing rule", lazy={"first": "math:sqrt"})
    assert rules.names() == ["first"]  # installed packages are not asked
    assert rules.get("half")(5) == 2.5
    assert "their_package.nowhere" in error(lambda: rules.get("gone"))
    assert error(lambda: rules.get("lost")).endswith("their_package.things has no 'no_such'")
    assert (
        error(lambda: rules.get("other"))
        == "parsing rule must be one of first, gone, half, lost, or module:name, got 'other'"
    )


def test_installed_packages_are_asked_last_and_only_if_needed(package, monkeypatch):
    rules = Registry("parsing rule", lazy={"half": "math:sqrt"})
    monkeypatch.setattr("cora_nb.registry.entry_points", lambda group: pytest.fail("asked"))
    assert rules.get("half")(9) == 3  # ours, not theirs
    assert rules.typed("math:floor")(2.5) == 2
    rules.register(abs, "half")
    assert rules.get("half") is abs


def test_a_decorator_with_and_without_a_name():
    shapes = Registry("shape")

    @shapes.register
    def square():
        return 4

    @shapes.register(name="a triangle")
    def three():
        return 3

    class Circle:
        name = "circle"

    circle = shapes.register(Circle())
    assert shapes.names() == ["a triangle", "circle", "square"]
    assert (shapes.get("square"), shapes.get("a triangle"), shapes.get("circle")) == (square, three, circle)
    shapes.register(three, "square")
    assert shapes.get("square") is three


@pytest.mark.parametrize("thing, name", [(7, None), (abs, "a:b"), (abs, " "), (lambda: 0, 3)])
def test_names_that_cannot_be_used(thing, name):
    assert "a name must be a non-empty text without a colon" in error(lambda: Registry("shape").register(thing, name))


@pytest.mark.parametrize("name", ["", None, 3, ["square"], "../x"])
def test_unknown_names_list_those_there_are(name):
    shapes = Registry("shape", lazy={"circle": "math:pi"})
    shapes.register(abs, "square")
    known = "shape must be one of circle, square, or module:name"
    assert error(lambda: shapes.get(name)) == f"{known}, got {name!r}"
    assert error(lambda: shapes.get("squar")) == f"{known}, got 'squar'; did you mean square?"


def test_a_users_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\n\n\n"
        "@dataclass\nclass Point:\n    x: int = 1\n\n\n"
        "def double(x):\n    return 2 * x\n"
    )
    numbers = Registry("number")
    assert numbers.typed("mine.py:double")(4) == numbers.typed(f"{tmp_path}/mine.py:double")(4) == 8
    assert numbers.typed("mine.py:Point") is numbers.typed("./mine.py:Point")  # one file, one module
    assert _load_file("mine.py").Point().x == 1
    (tmp_path / "mine.py").write_text("def double(x):\n    return x + x + 1\n")
    assert numbers.typed("mine.py:double")(4) == numbers.get("mine.py:double")(4) == 9  # an edited file counts at once


def test_a_name_from_data_is_never_loaded(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    code = "from pathlib import Path\nPath(__file__).with_suffix('.done').touch()\n\ndef f(x):\n    return x\n"
    (tmp_path / "strangers_own.py").write_text(code)
    things = Registry("thing", lazy={"root": "math:sqrt"})
    for address in ("strangers_own:f", f"{tmp_path}/strangers_own.py:f", "math:floor", "pydoc:pipepager"):
        for look_up in (things.get, things.__getitem__):
            assert error(lambda: look_up(address)).startswith(f"thing {address!r} was not loaded")
        assert address not in things
    assert not list(tmp_path.glob("*.done"))
    assert (
        things.typed("strangers_own:f") is things.get("strangers_own:f") is things["strangers_own:f"]
    )  # a person typed it


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("x = 1\n")
    get = Registry("score").typed
    assert error(lambda: get("yours.py:f")) == "score 'yours.py:f': there is no file yours.py"
    assert error(lambda: get("mine.py:f")) == "score 'mine.py:f': mine.py has no 'f'"
    assert error(lambda: get("math:f")) == "score 'math:f': math has no 'f'"
    assert (
        error(lambda: get("cora_nb.nowhere:f"))
        == "score 'cora_nb.nowhere:f': there is no module 'cora_nb.nowhere' (a file is written as file.py:f)"
    )
    assert "there is no module 'nowhere'" in error(lambda: get("nowhere.at.all:f"))
    for bad in ("mine.py:", ":f", "a b:f", "mine.py:1f", "http://x:f", "mine!.txt:f"):
        assert error(lambda: get(bad)) == f"score must be module:name or file.py:name, got {bad!r}"


def test_what_a_users_file_raises_is_not_hidden(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "needs.py").write_text("import no_such_module_at_all\n")
    (tmp_path / "wrong.py").write_text("1 / 0\n")
    (tmp_path / "no_python.py").write_text("def\n")
    for address, what in [("needs.py:f", ModuleNotFoundError), ("wrong.py:f", ZeroDivisionError)]:
        with pytest.raises(what):
            load_address(address)
        with pytest.raises(what):  # and is not remembered as good
            load_address(address)
    with pytest.raises(SyntaxError):
        load_address("no_python.py:f")


def test_our_own_are_imported_when_first_asked_for():
    code = """if True:
        import sys
        from cora_nb.registry import Registry
        colours = Registry("colour", lazy={"hue": "colorsys:rgb_to_hsv", "sum": "netrc:netrc"})
        assert not {"colorsys", "netrc"} & set(sys.modules)
        colours.get("hue")
        print(*sorted({"colorsys", "netrc"} & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["colorsys"]


OURS = [(registry, name) for registry in (RESPONDENTS, RULES, FAMILIES) for name in registry.lazy]


@pytest.mark.parametrize(("registry", "name"), OURS, ids=[f"{r.kind} {name}" for r, name in OURS])
def test_our_own_are_where_the_registry_says(registry, name):
    assert callable(load_address(registry.lazy[name]))  # simulated was looked for where it no longer was
