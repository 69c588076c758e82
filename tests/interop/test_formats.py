"""All formats: who writes for other tools, and settings of other tools without their secrets, by name and by shape."""

import copy

import pytest

from cora_nb.core import CoraError
from cora_nb.interop.formats import _holds_secret, EXPORTERS, get_exporter, without_secrets

KEY = "sk-" + "a1B2" * 6


@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_are_searched_and_hidden_whole_under_a_name_that_suggests_a_secret(kind):
    settings = {
        "api_key": kind(["one", "two"]),
        "stop": kind(["\n", f"Bearer {KEY}", {"token": "abc", "n": kind([1, f"https://me:word@host/{KEY}"])}]),
        "args": kind(["model=m,api_key=xyz", 3, None, True]),
    }
    before = copy.deepcopy(settings)
    assert without_secrets(settings) == {
        "api_key": "***",
        "stop": ["\n", "***", {"token": "***", "n": [1, "https://***@host/***"]}],
        "args": ["model=m,api_key=***", 3, None, True],
    }
    assert settings == before


def test_what_is_empty_or_no_text_stays():
    plain = {"api_key": [], "token": "", "password": None, "secret": True, "max_tokens": 5, "seeds": [1, 2], "x": {}}
    assert without_secrets(plain) == plain
    assert without_secrets([[], {}, ""]) == [[], {}, ""]


def test_texts_that_hold_a_secret():
    assert _holds_secret(f"a {KEY} b") and _holds_secret("https://me:word@host")
    assert not _holds_secret("sk-short, a@b.c")


@pytest.mark.parametrize("kind", list(EXPORTERS.lazy))
def test_every_exporter_can_be_called_by_the_command(kind):
    export, exports_run = get_exporter(kind)
    names = export.__code__.co_varnames[: export.__code__.co_argcount]
    assert names[:2] == (("runs" if exports_run else "variants"), "folder")


def test_ones_own(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def cards(runs, folder): ...\ndef other(table, folder): ...\nx = 1\n")
    monkeypatch.chdir(tmp_path)
    assert get_exporter("mine.py:cards")[1] is True
    for name in ("other", "x"):
        with pytest.raises(CoraError, match="whose first parameter is variants or runs"):
            get_exporter(f"mine.py:{name}")
