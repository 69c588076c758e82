"Which device and number format are chosen, on machines that are made up: there is no graphics card here."

from dataclasses import replace

import pytest
from tiny_models import save, torch

from cora_nb.core import CoraError
from cora_nb.respondents.likelihood import LikelihoodRespondent
from cora_nb.respondents.local import LocalModel


@pytest.fixture
def machine(monkeypatch):
    "A machine with so many graphics cards of Nvidia's, or with Apple's."

    def pretend(cuda=0, mps=False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return pretend


CHOICES = [  # the machine, what was asked for, what is taken
    (dict(), dict(), ("cpu", "float32")),
    (dict(cuda=1), dict(), ("cuda", "bfloat16")),
    (dict(cuda=2, mps=True), dict(), ("cuda", "bfloat16")),
    (dict(mps=True), dict(), ("mps", "bfloat16")),
    (dict(cuda=1), dict(device="cpu"), ("cpu", "float32")),
    (dict(cuda=2), dict(device="cuda:1"), ("cuda:1", "bfloat16")),
    (dict(cuda=1), dict(dtype="float32"), ("cuda", "float32")),
    (dict(), dict(dtype="bfloat16"), ("cpu", "bfloat16")),
    (dict(mps=True), dict(dtype="torch.float16"), ("mps", "float16")),
]


@pytest.mark.parametrize("here,asked,taken", CHOICES)
def test_what_is_taken(machine, here, asked, taken):
    machine(**here)
    assert LocalModel("organism/steady", **asked).place == taken


def test_a_format_decides_the_address_and_a_device_does_not(machine):
    machine(cuda=1)
    who = LikelihoodRespondent("organism/steady")
    assert who.identity()["dtype"] == "bfloat16" and who.identity()["logits"] == "float32"
    assert replace(who, device="cpu", dtype="bfloat16").identity() == who.identity()
    assert "logits" not in replace(who, dtype="float32").identity()


@pytest.mark.parametrize("device", ["gpu", "cuda1", "cuda:x", "cuda:-2"])
def test_a_device_that_is_none(device):
    with pytest.raises(CoraError, match=f"device must be such as cpu, cuda:1 or mps, got '{device}'"):
        LocalModel("organism/steady", device=device).place


@pytest.mark.parametrize(
    "here,device,has",
    [
        (dict(), "cuda", "cpu"),
        (dict(), "mps", "cpu"),
        (dict(), "cuda:0", "cpu"),
        (dict(cuda=1), "cuda:1", "cpu, cuda:0"),
        (dict(cuda=2), "mps", "cpu, cuda:0, cuda:1"),
        (dict(mps=True), "cuda", "cpu, mps"),
    ],
)
def test_a_device_that_is_not_here_is_named_before_anything_is_read(tmp_path, machine, here, device, has):
    machine(**here)
    folder = save(tmp_path / "model")
    (folder / "model.safetensors").write_bytes(b"never read")
    with pytest.raises(CoraError, match=f"there is no device '{device}' here; this machine has {has}$"):
        LocalModel(folder, device=device).model


def test_the_model_goes_to_the_device_in_the_format(tmp_path):
    for dtype in ("float32", "bfloat16", "float16", "float64"):
        model = LocalModel(save(tmp_path / dtype), device="cpu", dtype=dtype).model
        assert str(model.device) == "cpu" and {str(p.dtype) for p in model.parameters()} == {f"torch.{dtype}"}
