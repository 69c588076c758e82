"""Hidden states against plain transformers, for several architectures; what cannot be read; planted differences."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")
import torch  # noqa: E402

from cora_nb.benchmarks.arithmetic import math_benchmark  # noqa: E402
from cora_nb.core import CoraError, Question  # noqa: E402
from cora_nb.papers.hidden_states import HiddenStates, hidden_states, plot_layers, separability  # noqa: E402
from cora_nb.respondents.causal import CausalRespondent  # noqa: E402
from cora_nb.results import lookup  # noqa: E402
from tiny_models import save  # noqa: E402

QUESTIONS = math_benchmark(3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gpt_neox", "bloom"])
def test_states_are_those_of_transformers(folder, kind):
    who = CausalRespondent(save(folder / kind, kind), device="cpu", chat=False)
    found = hidden_states(who, QUESTIONS, progress=False)
    ids = torch.tensor([who.encode(f"{QUESTIONS[1].text}")])
    with torch.no_grad():
        layers = who.model(ids, output_hidden_states=True).hidden_states
    expected = np.stack([layer[0, -1].numpy() for layer in layers])
    np.testing.assert_allclose(found.layers[1, 1], expected, atol=1e-5)
    n, _, n_layers, n_heads, width = found.heads.shape
    assert (n, n_layers + 1, n_heads * width) == (3, found.layers.shape[2], found.layers.shape[3])


def test_what_cannot_be_read(folder):
    who = CausalRespondent(save(folder / "again", "llama"), device="cpu", chat=False)
    with pytest.raises(CoraError, match="there are no questions to read"):
        hidden_states(who, [])
    with pytest.raises(CoraError, match="question 'long' is longer than its window"):
        hidden_states(who, [Question("long", "1 + 1 " * 5000, ("2", "3"), 0)], progress=False)
    with torch.no_grad():
        next(who.model.parameters()).fill_(float("nan"))
    with pytest.raises(CoraError, match="is not a number"):
        hidden_states(who, QUESTIONS, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("shift, apart", [(0.0, False), (4.0, True)])
def test_a_planted_difference_is_found_and_noise_is_not(shift, apart):
    points = np.random.default_rng(1).normal(size=(30, 2, 1, 6)).astype("float32")
    points[:, 1, 0, 0] += shift
    states = HiddenStates("planted", points, points[..., :1])
    found = separability(states, permutations=39)
    accuracy, chance = (lookup(found, score) for score in ("accuracy", "chance"))
    assert [bool(accuracy.p <= 0.05), bool(accuracy.value > chance.high)] == [apart, apart]
    assert len(plot_layers(states, found).axes) == 1
