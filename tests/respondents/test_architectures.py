"""Families of models against plain transformers: the same replies and scores, in any batch; or a refusal in words."""

import functools

import pytest
from architectures import ALSO_SEE, LOOK_AHEAD, TEXTS, TRANSLATE, exists, plain_model, save_architecture
from tiny_models import PROMPTS, VARIANTS, plain_logprobs, plain_split, torch, transformers

from cora_nb.core import CoraError
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.likelihood import LikelihoodRespondent, context_and_continuations
from cora_nb.respondents.protocol import ask

FAST = ("llama", "qwen3", "gemma3_text", "gpt_oss", "mamba", "deepseek_v4", "mistral3", "bert")
NEW, END = 6, 1  # tokens of a reply, and the token that ends it
EVERY = sorted([*make_prompts(VARIANTS, template="bare"), *PROMPTS], key=lambda p: len(p.text))
SOME = [EVERY[1], *EVERY[::28]]  # without and with examples: two of one length, and others up to six times as long


def families(*tables):
    "The names in these tables as cases of a test, most of them slow."
    names = [name for table in tables for name in table]
    return [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in names]


every_family = pytest.mark.parametrize("name", families(TEXTS, ALSO_SEE))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    "From the name of a family to the folder of a model."
    made = functools.cache(lambda name: save_architecture(tmp_path_factory.mktemp(name), name))

    def find(name):
        if not exists(name):
            pytest.skip(f"transformers {transformers.__version__} has no {name}")
        return made(name)

    return find


def tokenizer_of(folder):
    "The tokenizer that the file describes; for some families (qwen2), transformers would take another."
    return transformers.PreTrainedTokenizerFast.from_pretrained(folder)


def written(folder, batch_tokens):
    "The texts and the scores of all letters, from a respondent with batches of this size."
    replies = ask(CausalRespondent(folder, device="cpu", max_new_tokens=NEW, batch_tokens=batch_tokens), SOME)
    assert [r.error for r in replies] == [None] * len(SOME)
    return [r.text for r in replies], [score for r in replies for score in r.scores]


@every_family
def test_a_reply_does_not_depend_on_its_batch(folder, name):
    texts, scores = written(folder(name), batch_tokens=8192)
    texts_alone, scores_alone = written(folder(name), batch_tokens=1)
    assert texts == texts_alone
    assert scores == pytest.approx(scores_alone, rel=0, abs=1e-4)


@every_family
def test_a_reply_is_what_the_model_generates(folder, name):
    model, tokenizer = plain_model(folder(name), name), tokenizer_of(folder(name))
    greedy = transformers.GenerationConfig(do_sample=False, max_new_tokens=NEW, eos_token_id=END, pad_token_id=0)
    expected = []
    for prompt in SOME:
        ids = tokenizer(prompt.text, return_tensors="pt")["input_ids"]
        said = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=greedy)[0, ids.shape[1] :]
        said = said.tolist()[: said.tolist().index(END) if END in said else None]
        expected.append(tokenizer.decode(said, skip_special_tokens=False, clean_up_tokenization_spaces=False))
    assert len(set(expected)) > 2  # else a model that reads nothing would pass
    assert written(folder(name), batch_tokens=8192)[0] == expected


@every_family
def test_a_likelihood_is_that_of_a_plain_forward_pass(folder, name):
    who = LikelihoodRespondent(folder(name), device="cpu", adaptation="joint-desc", normalization="sum")
    model, tokenizer = plain_model(folder(name), name), tokenizer_of(folder(name))
    for prompt, reply in zip(SOME, ask(who, SOME), strict=True):
        context, continuations = context_and_continuations(prompt, who.adaptation)
        texts = [plain_split(tokenizer, context, continuation) for continuation in continuations]
        assert reply.error is None
        assert reply.scores == pytest.approx([sum(plain_logprobs(model, *text)) for text in texts], rel=0, abs=1e-4)


@pytest.mark.parametrize("make", [CausalRespondent, LikelihoodRespondent])
@pytest.mark.parametrize("name", families(LOOK_AHEAD, TRANSLATE))
def test_a_model_that_does_not_continue_texts_is_refused(folder, name, make):
    reason = "later|ahead|causal" if name in LOOK_AHEAD else "continue|causal"
    with pytest.raises(CoraError, match=reason):
        who = make(folder(name), device="cpu")
        ask(who, SOME if who.model is not None else [])
