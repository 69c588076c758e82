"Blocks of texts: the same ids and masks as made one by one here, wherever the device is."

from hypothesis import given, strategies as st
from tiny_models import torch, transformers

from cora_nb.respondents.causal import _begin_batch, pad_left

ROWS = st.lists(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=12), min_size=1, max_size=9)


@given(ROWS)
def test_ids_and_mask_are_those_made_row_by_row(rows):
    longest = max(map(len, rows))
    ids, mask = torch.zeros((2, len(rows), longest), dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, longest - len(row) :] = torch.tensor(row)
        mask[i, longest - len(row) :] = 1
    found = pad_left(rows)
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(found, (ids, mask)))


def test_the_mask_of_a_batch_is_made_where_the_model_is():
    "The device `meta` has no memory: nothing can come from it by a copy, and a tensor from elsewhere is refused."
    config = transformers.LlamaConfig(
        vocab_size=20, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2
    )
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config)
    texts = [[3, 1, 4, 1, 5, 9], [3, 1, 4, 2]]
    for start in (0, 3):
        ids, mask, cache = _begin_batch(model, texts, start)
        assert (ids.device.type, mask.device.type) == ("meta", "meta")
        assert ids.shape == (2, 6 - start) and mask.shape == (2, 6)
        assert cache is None or {layer.keys.device.type for layer in cache.layers} == {"meta"}
