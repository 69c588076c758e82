"""Settings of other tools without their secrets, by name and by shape."""

import copy

import pytest

from cora_nb.interop.formats import holds_secret, without_secrets

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
    assert holds_secret(f"a {KEY} b") and holds_secret("https://me:word@host")
    assert not holds_secret("sk-short, a@b.c")
