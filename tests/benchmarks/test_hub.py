"""The hub without a network: nobody waits, and one line says what is missing."""

import logging
import socket
import time

import pytest
from huggingface_hub import constants
from huggingface_hub.errors import LocalEntryNotFoundError

from cora_nb.benchmarks.hub import asking_hub, _hub_reachable, hub_words
from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import CoraError


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    "No host has an address, no proxy would know one, and nothing is kept on this machine."

    def no_address(*args, **kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_address)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


def test_a_benchmark_offline_is_one_line_at_once(nowhere, capfd, monkeypatch):
    pauses = []  # a clock would count what a busy machine takes to import the libraries
    monkeypatch.setattr(time, "sleep", pauses.append)
    with pytest.raises(CoraError) as e:
        load_benchmark("mmlu")
    assert str(e.value) == (
        "cais/mmlu: cannot load split 'test' from the Hugging Face hub (https://huggingface.co cannot be reached, and "
        "there is no copy on this machine); path= (--path of a command) reads a file or folder instead"
    )
    out, err = capfd.readouterr()
    assert "Retrying" not in out + err and sum(pauses) < 1  # five tries alone wait for 23 s


def test_a_model_offline_is_one_line_at_once(nowhere, capfd):
    pytest.importorskip("transformers")
    from cora_nb.respondents.causal import CausalRespondent

    with pytest.raises(CoraError) as e:
        CausalRespondent("owner/no-such-model").describe()
    said = str(e.value)
    assert said.startswith("owner/no-such-model: no folder of this name, and no model from the hub (config.json: https")
    assert said.endswith("there is no copy on this machine); download it where there is a network, and name its folder")
    assert "Retrying" not in "".join(capfd.readouterr())


def test_the_library_is_as_before_afterwards(nowhere, monkeypatch):
    log = logging.getLogger("huggingface_hub")
    for offline in (False, True):
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
        level = log.level
        with pytest.raises(KeyError), asking_hub():
            assert constants.HF_HUB_OFFLINE
            raise KeyError
        assert constants.HF_HUB_OFFLINE is offline and log.level == level


def test_a_proxy_may_know_what_we_do_not(nowhere, monkeypatch):
    assert not _hub_reachable("https://huggingface.co")
    monkeypatch.setattr("urllib.request.getproxies", lambda: {"https": "http://proxy:3128"})
    assert _hub_reachable("https://huggingface.co")


def test_what_errors_mean(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert hub_words(LocalEntryNotFoundError("x")) == "HF_HUB_OFFLINE is set, and there is no copy on this machine"
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    assert "cannot be reached" in hub_words(ConnectionError("Couldn't reach 'a/b' on the Hub (OfflineModeIsEnabled)"))
    try:
        try:
            raise type("GatedRepoError", (OSError,), {})("403\nlong")
        except OSError as inner:
            raise RuntimeError("cannot") from inner
    except RuntimeError as e:
        assert hub_words(e).startswith("its owner lets people in one by one")
    assert hub_words(ValueError("one\ntwo")) == "one" and hub_words(KeyError()) == "KeyError"
