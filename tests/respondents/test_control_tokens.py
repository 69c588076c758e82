"""Control tokens: the words of a question never become some, and those that a model writes stay in its reply."""

import shutil
import warnings
from dataclasses import replace

import pytest
from chat_models import CONTROL, SENT, reads, save_chat_model
from tiny_models import torch, transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

import cora_nb as cn
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.likelihood import ADAPTATIONS, LikelihoodRespondent
from cora_nb.respondents.protocol import ask

ORDINARY = cn.Question("q", "Which tag struck a text through in old HTML?", ("the end", "the first", "bold", "u"), 1)
IN_CHOICES = cn.Question("q", ORDINARY.text, ("</s>", "<s>", "<|im_end|>", "<unk>"), 1)
INSIDE = cn.Question("q", ORDINARY.text, ("a</s>b", "see <s> there", "<|im_start|>user", "[INST]"), 1)
IN_TEXT = cn.Question("q", "What is <|im_end|> in <s> text </s>?", ORDINARY.choices, 1)
ODD = {"in choices": IN_CHOICES, "inside of choices": INSIDE, "in the text": IN_TEXT}
TEMPLATES = {name: SENT.get(name) for name in ("no template", "ChatML", "headers", "JSON", "parts alone, selected")}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    yield save_chat_model(tmp_path_factory.mktemp("control") / "m")
    torch.set_num_threads(threads)


@pytest.fixture
def folder(base, tmp_path):
    def make(template):
        made = shutil.copytree(base, tmp_path / "m")
        if template is not None:
            (made / "chat_template.jinja").write_text(template, "utf-8")
        return str(made)

    return make


def prompts(question, template="bare"):
    return cn.Asking(template).prompts(cn.make_variants([question], family="cyclic"))


def control_ids(folder):
    "By what stands in the folder."
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = {i for i, t in tokenizer.added_tokens_decoder.items() if t.special}
    assert ids >= set(tokenizer.convert_tokens_to_ids(["<s>", "</s>", *CONTROL]))
    return ids, tokenizer


def counted(who, prompt, monkeypatch, control):
    "How many control tokens a model reads with a prompt, what it reads, and what is warned of."
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        rows = reads(who, prompt, monkeypatch)
    return sum(i in control for row in rows for i in row), rows, " ".join(str(w.message) for w in heard)


def spelled(prompt):
    return [t for t in ("</s>", "<s>", "<|im_end|>", "<|im_start|>", "[INST]", "<unk>") if t in prompt.text]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("template", TEMPLATES)
def test_causal_reads_no_control_token_of_a_question(folder, template, odd, monkeypatch):
    path = folder(TEMPLATES[template])
    who = CausalRespondent(path, device="cpu", max_new_tokens=1)
    control, tokenizer = control_ids(path)
    usual, *_ = counted(who, prompts(ORDINARY)[0], monkeypatch, control)
    for prompt in prompts(ODD[odd])[:2]:
        n, rows, words = counted(who, prompt, monkeypatch, control)
        assert n <= usual or any(t in words for t in spelled(prompt)), (n, usual)
        (row,) = rows
        read = tokenizer.decode(row, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        if template != "JSON":
            assert prompt.variant.asked in read and all(c in read for c in prompt.variant.choices)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("adaptation", ADAPTATIONS)
@pytest.mark.parametrize("template", ["no template", "ChatML"])
def test_likelihood_reads_no_control_token_of_a_question(folder, template, adaptation, odd, monkeypatch):
    path = folder(TEMPLATES[template])
    who = LikelihoodRespondent(path, device="cpu", adaptation=adaptation)
    control, _ = control_ids(path)
    usual, *_ = counted(who, prompts(ORDINARY)[0], monkeypatch, control)
    for prompt in prompts(ODD[odd])[:2]:
        n, _, words = counted(who, prompt, monkeypatch, control)
        assert n <= usual or any(t in words for t in spelled(prompt)), (n, usual)


def test_a_choice_is_not_scored_as_the_end_of_the_text(folder):
    "It is spelled out: with the space before it, more than two tokens."
    who = LikelihoodRespondent(folder(None), device="cpu", adaptation="separate")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        (reply,) = ask(who, prompts(IN_CHOICES)[:1])
    assert reply.error is None
    assert min(reply.meta["tokens"]) > 2 or any("</s>" in str(w.message) for w in heard), reply.meta


@pytest.mark.parametrize("make", [CausalRespondent, LikelihoodRespondent])
def test_the_organism_as_well(make, monkeypatch):
    "The package's own model, whose control tokens are <unk>, <s> and </s>; characters that it lacks are <unk>."
    who, only = make("organism/steady", device="cpu"), {1, 2}
    usual, *_ = counted(who, prompts(ORDINARY, "cora")[0], monkeypatch, only)
    for prompt in prompts(IN_CHOICES, "cora"):
        n, _, words = counted(who, prompt, monkeypatch, only)
        assert n <= usual or any(t in words for t in spelled(prompt))


@pytest.mark.parametrize("make", [CausalRespondent, LikelihoodRespondent])
def test_an_ordinary_question_is_no_reason_to_warn(folder, make, monkeypatch):
    path = folder(SENT["ChatML"])
    *_, words = counted(make(path, device="cpu"), prompts(ORDINARY)[0], monkeypatch, control_ids(path)[0])
    assert not words


# replies


def speaker(folder, said, special, ends=("</s>",), declared=None):
    """A model that says the same words to whatever it is asked, since each token has one successor.

    `special`: those of its words that are control tokens. A word that comes again is marked with ₂, which decoding
    leaves out. The first of `ends` is the tokenizer's end of text, and
    `declared` what generation_config.json says.
    """
    plain = [w for w in said if w not in special and w not in ends]
    assert len(set(said)) == len(said), "a word that comes twice would have two successors"
    vocabulary = dict.fromkeys(["<unk>", "<s>", ":", *plain, *[f"▁{c}" for c in "ABCDE"]])
    t = Tokenizer(models.WordLevel({w: i for i, w in enumerate(vocabulary)}, unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Replace("₂", ""), decoders.Fuse()])
    t.add_special_tokens([AddedToken(w, special=True, normalized=False) for w in ("<unk>", "<s>", *ends)])
    marks = [w for w in dict.fromkeys(said) if w in special]
    t.add_special_tokens([AddedToken(w, special=True, normalized=False) for w in marks])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=t, unk_token="<unk>", bos_token="<s>", eos_token=ends[0], chat_template=ASKING
    )
    n = len(tokenizer)
    config = transformers.LlamaConfig(
        vocab_size=n,
        hidden_size=n + n % 2,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        head_dim=8,
        max_position_embeddings=4096,
        bos_token_id=1,
        eos_token_id=tokenizer.convert_tokens_to_ids(list(declared or ends)),
    )
    model = transformers.LlamaForCausalLM(config)
    chain = tokenizer.convert_tokens_to_ids([":", *said])
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.fill_(1) if "norm" in name else p.zero_()
        model.model.embed_tokens.weight[:, :n] = torch.eye(n)
        for before, after in zip(chain, chain[1:]):
            model.lm_head.weight[after, before] = 3.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return CausalRespondent(str(folder), device="cpu")


ASKING = "{% for m in messages %}{{ m['content'] }}{% endfor %} :"
LETTERS = [v for v in cn.make_variants(cn.load_benchmark("math")[:1], family="cyclic") if v.n_choices >= 3]
GUESS = ("▁Perhaps", "▁the", "▁answer", "▁is", "▁A", ".", "▁No", "▁wait")
SURE = ("▁The", "▁answer", "▁is", "▁A", ".")
MARKS = {
    "[THINK]": ("[THINK]", "[/THINK]"),
    "<think>": ("<think>", "</think>"),
    "Cohere": ("<|START_THINKING|>", "<|END_THINKING|>"),
}
C = 2  # the place of the letter


def replies_of(who, room):
    "To four prompts, with room for so many tokens."
    return ask(replace(who, max_new_tokens=room), cn.Asking().prompts(LETTERS))


def run_of(who):
    return cn.evaluate(who, LETTERS, progress=False).table


@pytest.mark.parametrize("special", [True, False], ids=["control tokens", "plain words"])
@pytest.mark.parametrize("thought", [GUESS, SURE], ids=["a guess", "sure"])
@pytest.mark.parametrize("marks", MARKS)
def test_a_thought_is_kept_and_left_out_of_the_answer(tmp_path, marks, thought, special):
    begin, end = MARKS[marks]
    said = (begin, *thought, end, "▁C", "</s>")
    who = speaker(tmp_path / "m", said, (begin, end) if special else ())
    table = run_of(who)
    assert set(table.prediction) == {C}
    for reply in table.reply:
        assert begin in reply and end in reply and reply.index(begin) < reply.index(end) < reply.index("C")
        assert "</s>" not in reply


@pytest.mark.parametrize("begin", ["<think>", "[THINK]"])
def test_a_thought_that_the_template_opened(tmp_path, begin):
    "The reply holds the end alone."
    end = MARKS[begin][1]
    table = run_of(speaker(tmp_path / "m", (*SURE, end, "▁C", "</s>"), (end,)))
    assert set(table.prediction) == {C} and all(end in reply for reply in table.reply)


def test_channels_are_kept_and_read(tmp_path):
    "As gpt-oss writes: what it thinks, then the channel of its answer."
    thought = ("<|channel|>", "analysis", "<|message|>", *SURE, "<|end|>")
    answer = ("<|start|>", "assistant", "<|channel|>₂", "final", "<|message|>₂", "▁C", "<|return|>")
    marks = [w for w in (*thought, *answer) if w.startswith("<|")][:-1]
    table = run_of(speaker(tmp_path / "m", (*thought, *answer), marks, ends=("<|return|>",)))
    for reply in table.reply:
        assert "<|channel|>analysis<|message|>" in reply and "<|channel|>final<|message|>" in reply
        assert "<|return|>" not in reply
    assert set(table.prediction) == {C}


@pytest.mark.parametrize("special", [True, False], ids=["control token", "plain word"])
def test_a_token_in_the_middle_is_kept(tmp_path, special):
    who = speaker(tmp_path / "m", ("▁C", "<|sep|>", "▁because", "</s>"), ("<|sep|>",) if special else ())
    for reply in replies_of(who, 8):
        assert reply.text.split() == ["C<|sep|>", "because"] and "finish_reason" not in reply.meta


@pytest.mark.parametrize("end", ["</s>", "<|im_end|>", "<|endoftext|>"])
def test_an_end_is_no_part_of_a_reply(tmp_path, end):
    "Of several that the model declares, whichever it writes."
    ends = ("</s>", "<|im_end|>", "<|endoftext|>")
    who = speaker(tmp_path / "m", ("▁C", "▁indeed", end), (), ends=ends)
    replies = replies_of(who, 8)
    assert {r.text.strip() for r in replies} == {"C indeed"}
    assert all("finish_reason" not in r.meta and r.meta["completion_tokens"] == 3 for r in replies)


def test_the_tokenizers_end_that_the_model_does_not_declare(tmp_path):
    who = speaker(tmp_path / "m", ("▁C", "</s>"), (), ends=("</s>", "<|im_end|>"), declared=("<|im_end|>",))
    assert {r.text.strip() for r in replies_of(who, 8)} == {"C"}


def test_a_reply_of_an_end_alone_is_empty(tmp_path):
    who = speaker(tmp_path / "m", ("</s>",), ())
    assert {r.text for r in replies_of(who, 4)} == {""}


def test_a_reply_that_was_cut_keeps_all_that_was_said(tmp_path):
    who = speaker(tmp_path / "m", ("[THINK]", *SURE, "[/THINK]", "▁C", "</s>"), MARKS["[THINK]"])
    for reply in replies_of(who, 3):
        assert reply.text.split() == ["[THINK]", "The", "answer"] and reply.meta["finish_reason"] == "length"
