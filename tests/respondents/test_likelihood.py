"""Log-likelihoods against the plain way, each text alone: architectures, tokenizers, normalisations, and mistakes."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from tiny_models import (
    KINDS,
    OWN,
    PROMPTS,
    SHOTS,
    TOKENIZERS,
    VARIANTS,
    byte_level,
    make_model,
    own_model,
    plain_logprobs,
    plain_split,
    save,
    torch,
    words,
)

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError, Question
from cora_nb.prompts.templates import Template, make_prompts
from cora_nb.respondents.protocol import Reply, Respondent, ask
from cora_nb.respondents.likelihood import (
    ADAPTATIONS,
    IMPLEMENTATIONS,
    NORMALIZATIONS,
    LikelihoodRespondent,
    context_and_continuations,
    implementations,
    split_tokens,
)
from cora_nb.respondents.local import LocalModel, Weights
from cora_nb.respondents.token_trees import TreeScorer, _make_tree, _next_pack, _sort_texts, _tree_mask, _unseen
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Store, asked_prompts
from cora_nb.variants.families import make_variants
from helpers import slow_after

SOME = PROMPTS[::4]
TREES = {"llama", "gpt2", "gpt_neox", "opt", "falcon"}  # kinds that can be shown a tree of any size


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    "Two threads for models of this size only wait for one another."
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# models


class InMemory(LocalModel):
    "A model that was never in a folder."

    def __init__(self, model, tokenizer=None):
        super().__init__("memory", device="cpu")
        self._loaded |= {"weights": Weights(model), "tokenizer": tokenizer}


@pytest.fixture(scope="module")
def tiny():
    "Models of 40 tokens, one of each kind."
    return {kind: InMemory(make_model(kind, 40)) for kind in KINDS}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    made = {kind: save(root / kind, kind, byte_level(bos=True)) for kind in KINDS}
    return made | {
        name: save(root / f"tokenizer {i}", tokenizer=make()) for i, (name, make) in enumerate(TOKENIZERS.items())
    }


def respondent(folder, **options):
    return LikelihoodRespondent(folder, **{"device": "cpu", **options})


@pytest.fixture
def llama(folders):
    return respondent(folders["llama"], adaptation="joint-desc")


def plain_sums(who, prompt):
    "The sums for a prompt's choices, and how many tokens each has."
    context, continuations = context_and_continuations(prompt, who.adaptation)
    texts = [plain_split(who.tokenizer, context, c) for c in continuations]
    cut = [max(0, len(ids) - 1 - (who.window or len(ids))) for ids, _ in texts]
    return [sum(plain_logprobs(who.model, ids[n:], start - n)) for n, (ids, start) in zip(cut, texts)], [
        len(ids) - start for ids, start in texts
    ]


def close(found, expected, eps=1e-4):
    assert len(found) == len(expected) and np.abs(np.subtract(found, expected)).max() <= eps


def best(replies):
    assert all(r.error is None for r in replies)
    return [int(np.argmax(r.scores)) for r in replies]


def spy(who, monkeypatch, fail=lambda width: None):
    "Numbers of tokens that the model is shown at a time; `fail` may return an exception to raise."
    sizes, forward = [], who.model.forward

    def watched(**inputs):
        n, width = inputs["input_ids"].shape
        assert n == 1
        if e := fail(width):
            raise e
        sizes.append(width)
        return forward(**inputs)

    monkeypatch.setattr(who.model, "forward", watched)
    return sizes


# trees of tokens


@st.composite
def token_texts(draw, most=14, new=8, n_tokens=40):
    "Texts that begin as others do, go on, stop before them, or say the same; and where their continuations begin."
    texts = []
    for _ in range(draw(st.integers(1, most))):
        old = texts[draw(st.integers(0, len(texts) - 1))] if texts else []
        kept = draw(st.integers(0, len(old)))
        texts.append(old[:kept] + draw(st.lists(st.integers(0, n_tokens - 1), min_size=max(0, 2 - kept), max_size=new)))
    return texts, [draw(st.integers(1, len(t) - 1)) for t in texts]


def scored(scorer, texts, starts):
    "In the order of the texts; each exactly once."
    packs = list(scorer.score(texts, starts))
    numbers = [i for pack in packs for i, _ in pack]
    assert sorted(numbers) == list(range(len(texts)))
    found = dict(x for pack in packs for x in pack)
    return [found[i] for i in range(len(texts))]


def benchmark_like(shots=300, questions=10, orders=6, seed=0):
    "Solved questions, question, choices, and four continuations that share their first token with nobody or everybody."
    rng = np.random.default_rng(seed)

    def some(n):
        return rng.integers(2, 40, n).tolist()

    before, texts, starts = some(shots), [], []
    for _ in range(questions):
        question = before + some(30)
        for _ in range(orders):
            context = question + some(20)
            for label in range(4):
                texts.append(context + [label, 7, *some(label + 1)])
                starts.append(len(context))
    return texts, starts


@given(token_texts(most=20), st.integers(1, 40))
def test_packs_follow_one_another_and_fit(texts, room):
    rows = _sort_texts(*texts)
    begin = 0
    while begin < len(rows.rows):
        end, shared = _next_pack(rows, begin, room)
        assert begin < end <= len(rows.rows)
        pack = rows.rows[begin:end]
        assert all(row[:shared].tolist() == pack[0][:shared].tolist() for row in pack) and shared <= min(
            rows.first[begin:end]
        )
        tree = _make_tree(pack, shared)
        assert len(tree.ids) <= room or len({r.tobytes() for r in pack}) == 1
        sees = ~_unseen(torch.from_numpy(tree.ends)).numpy()
        for row, path in zip(pack, tree.paths):
            assert tree.ids[path].tolist() == row[shared:].tolist() and tree.positions[path].tolist() == list(
                range(shared, len(row))
            )
            for place, token in enumerate(path):  # sees its own past and nothing else
                assert set(np.flatnonzero(sees[token])) == set(path[: place + 1].tolist())
        begin = end


def mask_made_here(tree, before, dtype):
    "The mask as it was made before the device did it: a table of n x n in numpy, then a tensor."
    seen = np.zeros((len(tree.ids), before + len(tree.ids)), dtype=bool)
    seen[:, :before] = True
    for path in tree.paths:
        for place, token in enumerate(path):
            seen[token, before + path[: place + 1]] = True
    return torch.zeros(seen.shape, dtype=dtype).masked_fill_(torch.from_numpy(~seen), torch.finfo(dtype).min)


@given(token_texts(most=20), st.integers(0, 30), st.sampled_from([torch.float32, torch.bfloat16, torch.float16]))
def test_the_mask_made_on_the_device_is_the_mask_made_here(texts, before, dtype):
    tree = _make_tree(_sort_texts(*texts).rows, 0)
    mask = _tree_mask(torch.from_numpy(tree.ends), before, dtype)
    assert mask.dtype == dtype and mask.shape[:2] == (1, 1)
    assert torch.equal(mask[0, 0], mask_made_here(tree, before, dtype))
    there = _tree_mask(torch.from_numpy(tree.ends).to("meta"), before, dtype)  # a device without memory
    assert there.device.type == "meta" and there.shape == mask.shape


@given(token_texts(most=20), st.sampled_from(sorted(TREES)))
def test_where_all_fits_nothing_is_computed_twice(tiny, texts, kind):
    scorer = TreeScorer(tiny[kind], room=1000)
    scored(scorer, *texts)
    assert scorer.computed == _sort_texts(*texts).least_tokens


@pytest.mark.parametrize("room,most", [(64, 1.25), (256, 1.05), (512, 1.03), (2000, 1.02)])
def test_close_to_the_least(tiny, room, most):
    texts, starts = benchmark_like()
    scorer = TreeScorer(tiny["llama"], room=room)
    scored(scorer, texts, starts)
    assert scorer.mode == "tree" and scorer.computed <= most * _sort_texts(texts, starts).least_tokens


def test_a_scorer_goes_on_from_what_it_read_last(tiny):
    texts, starts = benchmark_like(questions=4)
    scorer, half = TreeScorer(tiny["llama"]), len(texts) // 2
    first, second = (scored(scorer, texts[s], starts[s]) for s in (slice(half), slice(half, None)))
    for i, found in enumerate([*first, *second]):
        if i % 7 == 0:
            close(found, plain_logprobs(tiny["llama"].model, texts[i], starts[i]))
    assert scorer.computed <= 1.05 * _sort_texts(texts, starts).least_tokens
    assert scored(scorer, [], []) == []


@pytest.mark.parametrize(
    "kind,room,longest", [("mistral", 512, 16), ("gemma3", 512, 16), ("gpt_neo", 4, 12), ("phi3", 512, 40)]
)
def test_where_trees_end(tiny, kind, room, longest):
    "Texts that fit into the window are trees; GPT-Neo's window has to hold the whole row."
    for n, mode in ((longest, "tree"), (longest + 1, "whole" if kind == "phi3" else "start")):
        texts = [[*range(5, 5 + n // 2), *[k] * (n - n // 2)] for k in (1, 2, 3)]
        scorer = TreeScorer(tiny[kind], room=room)
        for text, found in zip(texts, scored(scorer, texts, [n // 2] * 3)):
            close(found, plain_logprobs(tiny[kind].model, text, n // 2))
        assert scorer.mode == mode


def test_a_mode_that_a_model_cannot_do_is_not_used(tiny):
    texts, starts = benchmark_like(shots=40, questions=1)
    for kind, mode in (("bloom", "tree"), ("mistral", "tree"), ("mamba", "tree"), ("mamba", "start")):
        scorer = TreeScorer(tiny[kind], mode=mode)
        scored(scorer, texts, starts)
        assert scorer.mode == ("whole" if kind == "mamba" else "start")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_formats_are_near(dtype):
    "The softmax itself is taken in float32: probabilities sum to 1 as exactly as that can."
    local = InMemory(make_model("llama", 40).to(getattr(torch, dtype)))
    local.dtype = dtype
    texts, starts = benchmark_like(shots=20, questions=2, orders=2)
    for text, start, found in zip(texts, starts, scored(TreeScorer(local), texts, starts)):
        assert found.dtype == np.float32
        close(found, plain_logprobs(local.model, text, start), eps=0.1)
    every = [texts[0][:-1] + [t] for t in range(40)]
    found = scored(TreeScorer(local), every, [len(t) - 1 for t in every])
    assert np.exp(np.concatenate(found).astype(float)).sum() == pytest.approx(1, abs=1e-6)


# the respondent


@pytest.mark.parametrize("adaptation", ADAPTATIONS)
@pytest.mark.parametrize("kind", slow_after(3, KINDS))
def test_scores_of_every_architecture(folders, kind, adaptation):
    who = respondent(folders[kind], adaptation=adaptation)
    for prompt, reply in list(zip(SOME, ask(who, SOME)))[::2]:
        sums, tokens = plain_sums(who, prompt)
        close(reply.scores, sums)
        assert reply.error is None and reply.meta == {"tokens": tokens}
        assert reply.confidence == pytest.approx(max(np.exp(sums)) / np.exp(sums).sum(), rel=1e-3)


def test_what_is_read_and_what_is_scored():
    "The three ways to ask, written out."
    prompt = make_prompts(
        make_variants([Question("q", "Which?", ("x y", "z"), 1)])[:1], template="cora", shots=SHOTS, k=1
    )[0]
    instruction = prompt.text.split("\n\n")[0]
    solved = f"{SHOTS[0].text}\nChoices: " + "\n".join(f"{letter}. {c}" for letter, c in zip("ABCD", SHOTS[0].choices))
    letter, said = "ABCD"[SHOTS[0].answer], SHOTS[0].choices[SHOTS[0].answer]
    asked = "Question: Which?\nChoices: A. x y\nB. z\nAnswer:"
    assert context_and_continuations(prompt, "joint-label") == (
        f"{instruction}\n\nQuestion: {solved}\nAnswer: {letter}\n\n{asked}",
        [" A", " B"],
    )
    assert context_and_continuations(prompt, "joint-label")[0] == prompt.text  # as a model that writes is asked
    assert context_and_continuations(prompt, "joint-desc") == (
        f"{instruction}\n\nQuestion: {solved}\nAnswer: {letter}. {said}\n\n{asked}",
        [" A. x y", " B. z"],
    )
    assert context_and_continuations(prompt, "separate") == (
        f"Question: {SHOTS[0].text}\nAnswer: {said}\n\nQuestion: Which?\nAnswer:",
        [" x y", " z"],
    )


# the seam


@pytest.mark.parametrize("name", slow_after(3, TOKENIZERS))
def test_tokens_are_divided_where_their_characters_are(folders, name):
    tokenizer = respondent(folders[name]).tokenizer
    for prompt in PROMPTS:
        for adaptation in ADAPTATIONS:
            context, continuations = context_and_continuations(prompt, adaptation)
            for c in continuations:
                assert split_tokens(tokenizer, context, c) == plain_split(tokenizer, context, c)


@pytest.mark.parametrize(
    "name,bos,eos",
    [
        ("words", 0, 0),
        ("bytes", 0, 0),
        ("bytes, BOS", 1, 0),
        ("bytes, BOS and EOS", 1, 0),
        ("sentence pieces", 1, 0),
        ("merging", 0, 0),
    ],
)
def test_one_beginning_and_no_end(folders, name, bos, eos):
    tokenizer = respondent(folders[name]).tokenizer
    for prompt in PROMPTS[::10]:
        context, continuations = context_and_continuations(prompt, "joint-desc")
        for c in continuations:
            ids, start = split_tokens(tokenizer, context, c)
            assert (ids.count(0), ids.count(1), ids[:1] == [0]) == (bos, eos, bool(bos)) and start > 1
            alone, start = split_tokens(tokenizer, "", c)
            begin = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
            assert (alone[0], start) == (begin, 1) and alone[1:] == tokenizer(c, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("name", ["bytes", "bytes, BOS", "bytes, BOS and EOS"])
def test_the_space_belongs_to_the_continuation(folders, name):
    tokenizer = respondent(folders[name]).tokenizer
    for context, continuation in (
        ("Answer:", " 12 and 3"),
        ("Answer: ", "12 and 3"),
        ("Answer:  ", "12"),
        ("Answer:\n", "12"),
    ):
        ids, start = split_tokens(tokenizer, context, continuation)
        assert (
            tokenizer.decode(ids[start:]) == context[7:] + continuation
            and tokenizer.decode(ids[:start], skip_special_tokens=True) == "Answer:"
        )


def test_where_the_tokenizer_merges(folders):
    "The merged token is scored in our way and lost in the harness's."
    tokenizer = respondent(folders["merging"]).tokenizer
    context, continuations = context_and_continuations(PROMPTS[0], "joint-desc")
    for c in continuations:
        merged, start = split_tokens(tokenizer, context, c)
        spelled = tokenizer.convert_ids_to_tokens(merged[start:])
        assert spelled[0].startswith((":", "r:", "er:", "wer:")) and "".join(spelled).endswith(c)
        harness, start = split_tokens(tokenizer, context, c, "harness")
        alone = tokenizer(context)["input_ids"]
        assert (
            harness == alone + tokenizer(context + c)["input_ids"][len(alone) :]
            and start == len(alone)
            and len(harness) < len(alone) + len(spelled)
        )


@pytest.mark.parametrize("context", [" ", "\n\n"])
@pytest.mark.parametrize("name", ["words", "bytes", "bytes, BOS"])
def test_a_context_of_nothing_but_space(folders, name, context):
    "Read after a token that begins a text, as no context at all is."
    tokenizer = respondent(folders[name]).tokenizer
    ids, start = split_tokens(tokenizer, context, "12")
    assert ids[0] == (1 if name != "bytes, BOS" else 0) and start == 1 and len(ids) > 1


def test_a_template_that_brings_its_own_beginning(folders):
    "The text says `<s>`, and the tokenizer would add another."
    who = respondent(folders["bytes, BOS"], adaptation="joint-desc")
    mine = Template("mine", instruction="<s>")
    prompt = make_prompts(VARIANTS[:1], template=mine)[0]
    context, continuations = context_and_continuations(prompt, "joint-desc")
    assert context.startswith("<s>Question")
    for c in continuations:
        ids, start = split_tokens(who.tokenizer, context, c)
        assert ids == split_tokens(who.tokenizer, context[3:], c)[0] and ids.count(0) == 1


# texts that are too long


def test_the_window_cuts_from_the_left(folders):
    who, narrow = (respondent(folders["llama"], adaptation="joint-desc") for _ in range(2))
    whole = ask(who, SOME)
    own_model(narrow).config.max_position_embeddings = 60
    cut = [replace(p, truncate=True) for p in SOME]
    replies = ask(narrow, cut)
    n_cut = 0
    for prompt, reply, full in zip(cut, replies, whole):
        lengths = [
            len(plain_split(who.tokenizer, *x)[0])
            for c, k in [context_and_continuations(prompt, "joint-desc")]
            for x in ((c, y) for y in k)
        ]
        close(reply.scores, plain_sums(narrow, prompt)[0])
        assert reply.meta.get("truncated", 0) == max(0, max(lengths) - 61)
        n_cut += max(lengths) > 61
        if max(lengths) <= 61:
            close(reply.scores, full.scores)
    assert 0 < n_cut == narrow.spent["texts_truncated"] and who.spent["texts_truncated"] == 0


def test_the_window_is_a_sharp_limit(folders):
    who = respondent(folders["llama"])
    longest = max(
        len(plain_split(who.tokenizer, c, k[0])[0])
        for c, k in (context_and_continuations(p, "joint-label") for p in PROMPTS)
    )
    for window, cut in ((longest - 1, 0), (longest - 2, 1)):  # the last token is not read
        fresh = respondent(folders["llama"])
        own_model(fresh).config.max_position_embeddings = window
        assert max(r.meta.get("truncated", 0) for r in ask(fresh, [replace(p, truncate=True) for p in PROMPTS])) == cut
        failed = [r.error for r in ask(fresh, PROMPTS) if r.error]
        assert bool(failed) == bool(cut)  # not asked for, it is a failure that names both numbers
        assert all(f"{window + cut} tokens, and the model's window is {window}" in e for e in failed)


def test_a_choice_that_is_too_long(folders):
    who = respondent(folders["llama"], adaptation="separate")
    words_ = " ".join(["bored"] * 40)
    n = len(plain_split(who.tokenizer, "Answer:", f" {words_}")[0]) - len(who.tokenizer("Answer:")["input_ids"])
    prompts = make_prompts(
        make_variants([Question("q", "Which?", (words_, "12"), 1)])[:1] + VARIANTS[:2], template="bare"
    )
    prompts = [replace(p, truncate=True) for p in prompts]
    own_model(who).config.max_position_embeddings = n
    assert ask(who, prompts)[0].meta["truncated"] > 0
    who.model.config.max_position_embeddings = n - 1
    replies = ask(who, prompts)
    assert replies[0].error == f"a choice is too long: {n} tokens, and the model's window is {n - 1}"
    assert [r.error for r in replies[1:]] == [None, None]


# normalisations


@pytest.mark.slow
@pytest.mark.parametrize("adaptation", ADAPTATIONS)
def test_normalisations_by_hand(folders, adaptation):
    who = respondent(folders["llama"], adaptation=adaptation)
    prompts = [p for p in PROMPTS if p.variant.question_id == "sky"]
    replies = {n: ask(replace(who, normalization=n), prompts) for n in NORMALIZATIONS}
    for i, prompt in enumerate(prompts):
        sums, tokens = plain_sums(who, prompt)
        shown = {
            "joint-label": list("ABCDE")[: len(sums)],
            "separate": list(prompt.variant.choices),
            "joint-desc": [f"{a}. {c}" for a, c in zip("ABCDE", prompt.variant.choices, strict=False)],
        }[adaptation]
        alone = [
            sum(plain_logprobs(who.model, [0, *who.tokenizer(f" {t}", add_special_tokens=False)["input_ids"]], 1))
            for t in shown
        ]
        expected = {
            "sum": sums,
            "token": np.divide(sums, tokens),
            "char": [s / len(t) for s, t in zip(sums, shown)],
            "byte": [s / len(t.encode()) for s, t in zip(sums, shown)],
            "pmi": np.subtract(sums, alone),
        }
        for name, reply in ((n, r[i]) for n, r in replies.items()):
            close(reply.scores, expected[name])
            assert reply.confidence == pytest.approx(
                np.exp(max(expected[name])) / np.exp(expected[name]).sum(), rel=1e-3
            )
    grün = "grün"
    assert len(grün) != len(grün.encode())
    if adaptation == "joint-label":
        assert best(replies["sum"]) == best(replies["char"]) == best(replies["byte"])
    else:
        assert len({tuple(best(r)) for r in replies.values()}) > 2


def calls(responses):
    return responses.facts.calls


def test_a_second_normalisation_asks_nothing(folders, tmp_path):
    run = dict(variants=VARIANTS[:40], asking=Asking("bare"), progress=False)
    made = {n: respondent(folders["llama"], adaptation="separate", normalization=n) for n in NORMALIZATIONS}
    fresh = {n: evaluate(who, **run) for n, who in made.items()}
    with Store(tmp_path / "replies.sqlite") as store:
        kept = {n: evaluate(who, store=store, **run) for n, who in made.items()}
        again = {n: evaluate(replace(who), store=store, **run) for n, who in made.items()}
    assert (
        calls(kept["sum"])["asked"] == calls(kept["pmi"])["asked"] == calls(fresh["sum"])["asked"] > 30
        and calls(kept["sum"])["tokens_computed"] > 0
    )
    for n in NORMALIZATIONS:
        old, new = kept[n].table, fresh[n].table
        assert old.drop(columns=["scores", "confidence"]).equals(new.drop(columns=["scores", "confidence"]))
        close(np.concatenate(old["scores"].tolist()), np.concatenate(new["scores"].tolist()), eps=1e-6)
        close(old["confidence"], new["confidence"], eps=1e-6)
        assert (
            again[n].table.equals(kept[n].table) and calls(again[n])["asked"] == calls(again[n])["tokens_computed"] == 0
        )
        if n not in ("sum", "pmi"):
            assert (calls(kept[n])["asked"], calls(kept[n])["tokens_asked"]) == (0, 0) and calls(kept[n])[
                "in_store"
            ] == calls(kept["sum"])["asked"]


def test_a_stored_reply_holds_the_sums(folders, tmp_path):
    "Whoever opens the store finds what every normalisation is made of, and that a text was cut."
    who = respondent(folders["llama"], adaptation="joint-desc", normalization="token")
    own_model(who).config.max_position_embeddings = 50
    with Store(tmp_path / "replies.sqlite") as store:
        evaluate(who, VARIANTS[:1], Asking("bare"), store=store, progress=False)
        keys = asked_prompts(who, make_prompts(VARIANTS[:1], template="bare"))[1]
        (kept,) = store.get(keys).values()
    scores, meta = kept.scores, kept.meta
    sums, tokens = plain_sums(who, make_prompts(VARIANTS[:1], template="bare")[0])
    close(scores, sums)
    assert meta["tokens"] == tokens and ("truncated" in meta) == (
        calls(evaluate(who, VARIANTS[:1], Asking("bare"), progress=False))["texts_truncated"] > 0
    )


# how much at a time


def test_order_and_company_of_the_prompts_do_not_matter(llama):
    whole = ask(llama, PROMPTS)
    for reply, other in zip(ask(llama, PROMPTS[::-3]), whole[::-3]):
        close(reply.scores, other.scores)


@pytest.mark.parametrize(
    "raised",
    slow_after(
        1,
        [
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"),
            RuntimeError("MPS backend out of memory"),
            MemoryError(),
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        ],
    ),
)
def test_smaller_packs_when_memory_runs_out(llama, monkeypatch, raised):
    expected = ask(llama, SOME)
    tried = []
    sizes = spy(llama, monkeypatch, lambda width: tried.append(width) or (raised if width > 70 else None))
    replies = ask(llama, SOME)
    for reply, other in zip(replies, expected):
        close(reply.scores, other.scores)
    assert best(replies) == best(expected)
    assert max(tried) > 200 and 1 < len(tried) - len(sizes) < 5 and max(sizes) <= 70
    failed = [i for i, width in enumerate(tried) if width > 70]
    assert max(failed) < len(tried) // 4  # once it fits, it goes on fitting


def small_device(who, monkeypatch, limit):
    "A device with memory for so many tokens, held and new. Returns the numbers of tokens read at a time."
    sizes, forward = [], who.model.forward

    def watched(**inputs):
        held = inputs["past_key_values"].get_seq_length() if "past_key_values" in inputs else 0
        if held + inputs["input_ids"].shape[1] > limit:
            raise torch.OutOfMemoryError("CUDA out of memory")
        sizes.append(inputs["input_ids"].shape[1])
        return forward(**inputs)

    monkeypatch.setattr(who.model, "forward", watched)
    return sizes


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "bloom", "mamba"])
def test_memory_for_not_even_one(folders, monkeypatch, kind):
    "Where a text does not fit by itself, its prompt gets an error, and the others their scores."
    who = respondent(folders[kind], adaptation="joint-desc")
    expected = ask(who, SOME)
    longest = [
        max(len(plain_split(who.tokenizer, c, x)[0]) - 1 for x in k)
        for c, k in (context_and_continuations(p, "joint-desc") for p in SOME)
    ]
    limit = sorted(longest)[-3]
    small_device(who, monkeypatch, limit)
    for reply, other, n in zip(ask(who, SOME), expected, longest):
        if n > limit:
            assert reply.error == "memory ran out with this prompt alone" and reply.scores is None
        else:
            close(reply.scores, other.scores)


@pytest.mark.slow
def test_after_a_text_that_was_too_large_the_others_are_read_as_before(tiny, monkeypatch):
    texts, starts = benchmark_like(shots=40, questions=4)
    giant = [0, *[1] * 200, 5]  # the first in sorted order
    plenty, spoiled = TreeScorer(tiny["llama"]), TreeScorer(tiny["llama"])
    expected = scored(plenty, texts, starts)
    small_device(tiny["llama"], monkeypatch, 199)
    assert scored(TreeScorer(tiny["llama"]), texts, starts)[0] is not None
    sizes = small_device(tiny["llama"], monkeypatch, 199)
    found = scored(spoiled, [giant, *texts], [201, *starts])
    assert found[0] is None
    for x, y in zip(found[1:], expected):
        close(x, y)
    assert max(sizes) > 100 and len(sizes) < 100


def test_other_failures_are_not_taken_for_memory(llama, monkeypatch):
    ask(llama, SOME[:1])
    spy(llama, monkeypatch, lambda width: RuntimeError("shapes do not match"))
    with pytest.raises(CoraError, match="shapes do not match") as e:
        ask(llama, SOME)
    assert "\n" not in str(e.value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "bloom"])
@pytest.mark.parametrize("normalization", ["sum", "pmi"])
def test_nan_stops_and_names_the_question(folders, kind, normalization):
    who = respondent(folders[kind], normalization=normalization)
    with torch.no_grad():
        own_model(who).get_output_embeddings().weight[7, 0] = math.nan
    with pytest.raises(CoraError, match=r"the model's output for question '.+' is not a number \(NaN\)") as e:
        ask(who, SOME)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_impossible_choices_are_no_silent_answer(folders, normalization):
    "Two choices that the model holds for impossible are tied; where the others are possible they win."
    who = respondent(folders["words"], adaptation="separate", normalization=normalization)
    never = who.tokenizer.convert_tokens_to_ids(["red", "blue"])
    forward = who.model.forward

    def masked(**inputs):
        out = forward(**inputs)
        out.logits[..., never] = -math.inf
        return out

    who.model.forward = masked
    red = Question("q", "Which colour has the sky at noon?", ("red", "blue"), 1)
    more = Question("p", "Which colour has the sky at noon?", ("red", "the sea"), 1)
    responses = evaluate(who, [make_variants([q])[0] for q in (red, more)], Asking("bare"), progress=False)
    assert (
        responses.table["prediction"].tolist() == [-1, 1]
        and responses.table["error"].isna().all()
        and calls(responses)["tied"] == 1
    )
    assert not any(map(math.isnan, np.concatenate(responses.table["scores"].tolist())))


# ties


@pytest.mark.parametrize("kind", slow_after(1, ["llama", "bloom", "mamba"]))
@pytest.mark.parametrize("room", [1, 512])
def test_ties_are_found_and_counted(folders, kind, room):
    twins = Question("twins", "Which colour has the sky at noon?", ("red", "blue", "blue", "the sea"), answer=1)
    who = respondent(folders[kind], adaptation="separate", room=room)
    for normalization in NORMALIZATIONS:
        responses = evaluate(
            replace(who, normalization=normalization), make_variants([twins, *OWN])[:40], Asking("bare"), progress=False
        )
        tied = 0
        for scores, prediction in zip(responses.table["scores"], responses.table["prediction"]):
            ways = [i for i, s in enumerate(scores) if s == max(scores)]
            assert prediction == (ways[0] if len(ways) == 1 else -1)
            tied += len(ways) > 1
        assert calls(responses).get("tied", 0) == tied
    shown = evaluate(who, make_variants([twins], family="permutations"), Asking("bare"), progress=False)
    assert {
        r[1] == r[2]
        for r in (
            [s[list(o).index(i)] for i in range(4)] for s, o in zip(shown.table["scores"], shown.table["sources"])
        )
    } == {True}


# permutations


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "bloom", "mamba"])
def test_separate_scores_do_not_know_the_order(folders, kind):
    questions = [q for q in [*math_benchmark(n=2, seed=3), *OWN] if q.n_choices == 4]
    variants = make_variants(questions, family="permutations")
    assert len(variants) == 24 * len(questions)
    who = respondent(folders[kind], adaptation="separate", normalization="char")
    responses = evaluate(who, variants, Asking("bare", shots=SHOTS, k=2), progress=False)
    for _, rows in responses.table.groupby("question_id"):
        by_source = {
            tuple(dict(sorted(zip(sources, scores))).values())
            for sources, scores in zip(rows["sources"], rows["scores"])
        }
        assert len(by_source) == 1  # to the last bit
        assert len({s[p] for s, p in zip(rows["sources"], rows["prediction"])}) == 1
    spent = calls(responses)
    texts = [
        plain_split(who.tokenizer, c, x)
        for c, k in (
            context_and_continuations(p, "separate") for p in make_prompts(variants, template="bare", shots=SHOTS, k=2)
        )
        for x in k
    ]
    assert spent["tokens_asked"] == sum(len(ids) - 1 for ids, _ in texts)
    once = {tuple(ids[:-1]) for ids, _ in texts}
    assert (
        spent["tokens_computed"] <= (1 if kind == "mamba" else 0.5) * sum(map(len, once)) <= spent["tokens_asked"] / 24
    )
    if kind == "llama":
        assert spent["tokens_computed"] <= 1.05 * _sort_texts(*zip(*texts)).least_tokens


def test_order_matters_where_the_choices_are_shown(folders):
    variants = make_variants(math_benchmark(n=1), family="permutations")
    for adaptation in ("joint-label", "joint-desc"):
        responses = evaluate(
            respondent(folders["llama"], adaptation=adaptation), variants, Asking("bare"), progress=False
        )
        assert (
            len(
                {
                    tuple(dict(sorted(zip(sources, scores))).values())
                    for sources, scores in zip(responses.table["sources"], responses.table["scores"])
                }
            )
            == 24
        )


def test_equal_prompts_are_asked_once(folders):
    twice = [*VARIANTS[:5], *(replace(v, index=v.index + 100) for v in VARIANTS[:5])]
    responses = evaluate(respondent(folders["llama"]), twice, Asking("bare"), progress=False)
    scores = responses.table["scores"].tolist()
    assert calls(responses)["asked"] == 5 and scores[:5] == scores[5:]


# P(Yes)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_p_yes_is_a_probability_whatever_normalises_other_scores(folders, normalization):
    "P(Yes) was 6.8% instead of 0.3% under token or char normalisation: exp of a score that was divided by a length."
    who = respondent(folders["llama"], adaptation="separate", normalization=normalization)
    asked = Question("q", "Is it so?", ("East", "West"), 0)
    (prompt,) = make_prompts(make_variants([asked], "formats", only="tfq"), template="bare")
    sums = (math.log(0.003), math.log(0.9))
    raw = Reply(scores=sums, meta={"tokens": [2, 1], "alone": [-9.0, -2.0]})
    assert who.finish(prompt, raw).scores == sums
    (mcq,) = make_prompts(make_variants([asked], "formats", only="mcq"), template="bare")
    assert (who.finish(mcq, raw).scores == sums) == (normalization == "sum")  # other scores are normalised


def test_p_yes_of_a_run_is_the_same_under_every_normalisation(folders, tmp_path):
    variants = make_variants(OWN[:3], "mcqa_plus")
    tfq = [v for v in variants if v.form == "tfq"]
    run = dict(variants=variants, asking=Asking("bare"), progress=False)
    with Store(tmp_path / "replies.sqlite") as store:
        made = {n: respondent(folders["llama"], adaptation="separate", normalization=n) for n in NORMALIZATIONS}
        tables = {n: evaluate(who, store=store, **run).table for n, who in made.items()}
    said = {n: t[t["form"] == "tfq"]["scores"].tolist() for n, t in tables.items()}
    plain = [plain_sums(made["sum"], p)[0] for p in make_prompts(tfq, template="bare")]
    for n in NORMALIZATIONS:
        close(np.array(said[n]), np.array(plain))
        assert said[n] == said["sum"] or n == "pmi"  # pmi asks anew, and adds up in another order
    others = {n: t[t["form"] == "mcq"]["scores"].tolist() for n, t in tables.items()}
    assert all(others[n] != others["sum"] for n in NORMALIZATIONS if n != "sum")


# the seven


def test_the_seven_share_a_model(folders):
    seven = implementations(folders["llama"], device="cpu")
    assert list(seven) == list(IMPLEMENTATIONS) == ["jl", "jd:All", "jd:To", "jd:Ca", "se:All", "se:To", "se:Ca"]
    assert len({id(w.model) for w in seven.values()}) == 1 and [w.name for w in seven.values()] == list(seven)
    for code, who in seven.items():
        alone = respondent(
            folders["llama"], adaptation=IMPLEMENTATIONS[code][0], normalization=IMPLEMENTATIONS[code][1]
        )
        for reply, other in zip(ask(who, SOME[:6]), ask(alone, SOME[:6])):
            close(reply.scores, other.scores, eps=1e-6)
    assert (
        list(implementations(folders["llama"], which=["se:To"])) == ["se:To"]
        and implementations(folders["llama"], which=[]) == {}
    )
    with pytest.raises(CoraError, match="implementations are jl, jd:All, .*, got 'jl:All'"):
        implementations(folders["llama"], which=["jl", "jl:All"])


# one address for one reply


def test_the_address(folders, tmp_path):
    who, prompt = respondent(folders["llama"]), PROMPTS[0]
    asked = who.request(prompt)
    assert (
        isinstance(who, Respondent)
        and json.loads(json.dumps(asked)) == asked
        and json.loads(json.dumps(who.describe())) == who.describe()
    )
    for same in (
        dict(room=9),
        dict(name="x"),
        dict(normalization="token"),
        dict(normalization="char"),
        dict(normalization="byte"),
    ):
        assert replace(who, **same).request(prompt) == asked
    for other in (
        dict(normalization="pmi"),
        dict(adaptation="separate"),
        dict(seam="harness"),
        dict(dtype="bfloat16"),
        dict(path=folders["gpt2"]),
    ):
        assert replace(who, **other).request(prompt) != asked
    assert who.request(PROMPTS[1]) != asked and replace(who, normalization="char").describe() != who.describe()
    assert "weights" not in who._loaded  # an address costs no weights in memory


@pytest.mark.parametrize(
    "field,value,why",
    [
        ("path", "", "path must name a model"),
        ("adaptation", "joint", "adaptation must be one of joint-label, joint-desc, separate, got 'joint'"),
        ("adaptation", None, "got None"),
        ("adaptation", ["separate"], "adaptation must be"),
        ("normalization", "mean", "normalization must be one of sum, token, char, byte, pmi, got 'mean'"),
        ("seam", "", "seam must be one of merged, harness, got ''"),
        ("room", 0, "room must be a whole number of 1 or more, got 0"),
        ("room", 1.5, "room must be"),
        ("room", True, "room must be"),
        ("dtype", "int8", "dtype must be one of float32"),
    ],
)
def test_bad_fields(field, value, why):
    with pytest.raises(CoraError, match=why) as e:
        LikelihoodRespondent(**{"path": "x", field: value})
    assert "\n" not in str(e.value)


def test_text_that_is_none(folders):
    who = respondent(folders["llama"])
    bad = Question("half", "What is \ud83d?", ("x", "y"), answer=0)
    replies = ask(who, [*make_prompts(make_variants([bad])[:1], template="bare"), *SOME[:2]])
    assert replies[0].error.startswith("the prompt is not valid text") and [r.error for r in replies[1:]] == [
        None,
        None,
    ]


@pytest.mark.slow
def test_a_tokenizer_of_another_model(folders, tmp_path):
    import shutil

    folder = save(tmp_path / "m", tokenizer=words())
    for file in folders["llama"].glob("tokenizer*"):
        shutil.copy(file, folder)
    with pytest.raises(CoraError, match="they do not belong together"):
        ask(respondent(folder), SOME)


def test_an_ending_follows_its_story_without_an_answer_line():
    story = Question("q", "A man sits on a roof. He", ("sings.", "flies."), 1)
    shot = Question("s", "It rains. She", ("leaves.", "stays."), 0)
    prompt = make_prompts(make_variants([story])[:1], "continuation", [shot], k=1)[0]
    assert context_and_continuations(prompt, "separate") == (
        "It rains. She leaves.\n\nA man sits on a roof. He",
        [" sings.", " flies."],
    )
    context, said = context_and_continuations(prompt, "joint-label")
    assert context.endswith("He\nA. sings.\nB. flies.\nAnswer:") and said == [" A", " B"]
    bare = make_prompts(make_variants([story])[:1], "bare")[0]
    assert context_and_continuations(bare, "separate")[0] == "Question: A man sits on a roof. He\nAnswer:"
