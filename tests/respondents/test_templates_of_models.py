"""A question and its choices stand in what is sent, whatever the chat template; else the run ends before it scores."""

import html
import json
import shutil
import warnings

import pytest
from chat_models import EACH, IN_PARTS_ALONE, REFUSED, SENT, reads, save_chat_model
from tiny_models import torch, transformers

import cora_nb as cn
from cora_nb.core import CoraError
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.checkpoints import ModelWarning

ODD = cn.Question(
    "odd",
    'Which of these "signs" is a slash?\nSay it \\ as it is.',
    ("a 'quote'", 'a "quote"', "grün & <b>", "/ or \\", "  ends in spaces  "),
    answer=3,
)
ORDINARY = cn.Question("sky", "Which colour has the sky at noon?", ("blue as the sea", "grey", "red", "blue"), answer=3)
THOUGHT = cn.Question("tag", "Which tag ends a thought?", ("</b>", "</think>", "</p>", "</i>"), answer=1)
DATE = "strftime_now('%d %b %Y')"


def variants(question, family="cyclic"):
    return cn.make_variants([question], family=family)


def prompts(question, template="bare"):
    return cn.Asking(template).prompts(variants(question))


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    yield save_chat_model(tmp_path_factory.mktemp("chat") / "m")
    torch.set_num_threads(before)


@pytest.fixture
def with_template(base, tmp_path):
    "A respondent whose folder has a template."

    def make(template, **options):
        folder = shutil.copytree(base, tmp_path / "m", dirs_exist_ok=True)
        (folder / "chat_template.jinja").write_text(template, "utf-8")
        return CausalRespondent(str(folder), **{"device": "cpu", "max_new_tokens": 1, **options})

    return make


def stands(text, words):
    "As it is written, or as JSON writes it, with spaces at its ends or without."
    forms = {words, words.strip()} | {json.dumps(words, ensure_ascii=a)[1:-1] for a in (True, False)}
    forms |= {s.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026") for s in forms}
    forms |= {s.replace("'", "\\u0027") for s in forms}
    return any(s in text or s in html.unescape(text) for s in forms)


@pytest.mark.parametrize("question", [ORDINARY, ODD], ids=["ordinary", "odd"])
@pytest.mark.parametrize("name", SENT)
def test_the_question_and_every_choice_are_sent(with_template, name, question):
    who = with_template(SENT[name])
    for prompt in prompts(question):
        sent = who.sent(prompt)
        assert all(stands(sent, words) for words in (question.text, *prompt.variant.choices)), sent
    run = cn.evaluate(who, variants(question), cn.Asking("bare"), progress=False)
    assert "failed" not in set(run.table.state) and run.table.error.isna().all()


@pytest.mark.parametrize("name", REFUSED)
def test_a_template_that_loses_the_question_is_refused(with_template, name):
    who = with_template(REFUSED[name])
    with pytest.raises(CoraError, match="template") as e:
        cn.evaluate(who, variants(ORDINARY), cn.Asking("bare"), progress=False)
    assert len(str(e.value).splitlines()) == 1 and who.path in str(e.value)


def test_nothing_is_scored_before_a_template_is_refused(with_template):
    "Also where the first questions could be sent: the one that is lost ends the run."
    who = with_template(SENT["splits at a thought's end"])
    some = [*variants(ORDINARY), *variants(THOUGHT)]
    with pytest.raises(CoraError, match="template"):
        cn.evaluate(who, some, cn.Asking("bare"), progress=False)
    alone = cn.evaluate(who, variants(ORDINARY), cn.Asking("bare"), progress=False)
    assert "failed" not in set(alone.table.state)


@pytest.mark.parametrize("name", [n for n in SENT if "thought's end" not in n])
def test_a_thoughts_end_in_a_choice_is_sent(with_template, name):
    who = with_template(SENT[name])
    for prompt in prompts(THOUGHT):
        assert all(stands(who.sent(prompt), words) for words in (THOUGHT.text, *THOUGHT.choices))


def test_examples_are_sent_too(with_template):
    "Solved questions, in every template that takes a conversation of several turns."
    pool = [cn.Question(f"s{i}", f"Which is number {i}?", ("one", "two", "three"), answer=i) for i in range(3)]
    who = with_template(SENT["parts alone"])
    asking = cn.Asking("bare", shots=pool, k=2)
    for prompt in asking.prompts(variants(ORDINARY)):
        sent = who.sent(prompt)
        assert ORDINARY.text in sent and all(shot.text in sent for shot in prompt.shots)


# tokens


@pytest.mark.parametrize("question", [ORDINARY, ODD], ids=["ordinary", "odd"])
@pytest.mark.parametrize("name", SENT)
def test_the_model_reads_what_transformers_makes_of_the_conversation(with_template, name, question, monkeypatch):
    template = SENT[name]
    who, (prompt, *_) = with_template(template), prompts(question)
    messages = [dict(m) for m in prompt.messages]
    if name in IN_PARTS_ALONE:
        messages = [m | {"content": [{"type": "text", "text": m["content"]}]} for m in messages]
    plain = transformers.AutoTokenizer.from_pretrained(who.path)
    expected = plain.apply_chat_template(
        messages,
        chat_template=template.replace(DATE, "'26 Jul 2024'"),  # a run asks the same tomorrow
        tokenize=True,
        add_generation_prompt=True,
        return_dict=False,
    )
    assert reads(who, prompt, monkeypatch) == [list(expected)]


@pytest.mark.parametrize("name", ["ChatML", "parts alone"])
def test_the_raw_prompt_is_read_where_no_conversation_is_wanted(with_template, name, monkeypatch):
    who, (prompt, *_) = with_template(SENT[name], chat=False), prompts(ORDINARY)
    plain = transformers.AutoTokenizer.from_pretrained(who.path)
    assert who.sent(prompt) == prompt.text
    assert reads(who, prompt, monkeypatch) == [plain(prompt.text)["input_ids"]]


def test_options_reach_the_template(with_template, monkeypatch):
    name = "a thought that is closed at once"
    for options, closed in (({}, True), ({"enable_thinking": True}, False), ({"enable_thinking": False}, True)):
        who = with_template(SENT[name], chat_options=options)
        assert who.sent(prompts(ORDINARY)[0]).endswith("</think>\n\n") == closed
        shutil.rmtree(who.path)


def test_a_template_of_an_older_file_is_used_or_named(base, tmp_path):
    "`chat_template.json`, as processors had it: no other file of this folder has a template."
    folder = shutil.copytree(base, tmp_path / "m", dirs_exist_ok=True)
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": SENT["ChatML"]}), "utf-8")
    who = CausalRespondent(str(folder), device="cpu", max_new_tokens=1)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        cn.evaluate(who, variants(ORDINARY), cn.Asking("bare"), progress=False)
    used = "<|im_start|>" in who.sent(prompts(ORDINARY)[0])
    assert used or any("chat_template.json" in str(w.message) for w in heard)


# variables


@pytest.mark.parametrize("options", [{"truncation": True, "max_length": 5}, {"tokenize": True}, {"padding": True}])
def test_what_is_no_variable_of_a_template_is_refused(with_template, options):
    "It would change the tokens and not the text, by which a reply is found again."
    who = with_template(SENT["ChatML"], chat_options=options)
    with pytest.raises(CoraError, match="chat_options") as e:
        cn.evaluate(who, variants(ORDINARY), progress=False)
    assert len(str(e.value).splitlines()) == 1


def test_a_named_template_is_the_one_that_is_sent(with_template):
    "Also where another one writes the date; and one that is not there is refused in a line."
    dated, other = "{{ strftime_now('%Y') }}" + SENT["plain"], "{{ bos_token }}other: " + SENT["plain"]
    texts = {}
    for name in ("default", "other", "nosuch"):
        who = with_template(SENT["plain"], chat_options={"chat_template": name})
        who.tokenizer.chat_template = {"default": dated, "other": other}
        try:
            texts[name] = who.sent(prompts(ORDINARY)[0])
        except CoraError as e:
            texts[name] = str(e)
    assert texts["default"].startswith("26 Jul 2024") and texts["other"].startswith("<s>other: ")
    assert "nosuch" in texts["nosuch"] and len(texts["nosuch"].splitlines()) == 1


def test_a_template_that_drops_the_solved_examples_is_refused(with_template):
    "Their answers are letters, which stand in every question as well."
    shots = [cn.Question(f"s{i}", f"Which is {i}?", ("no", "yes"), 1) for i in range(2)]
    only_users = EACH + "{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"
    for template, sent in ((SENT["ChatML"], True), (only_users, False), ("{{ messages[-1].content }}", False)):
        who = with_template(template)
        prompt = cn.Asking("bare", shots=shots, k=2).prompts(variants(ORDINARY))[0]
        assert len(prompt.messages) == 5
        if sent:
            assert all(stands(who.sent(prompt), m["content"]) for m in prompt.messages)
        else:
            with pytest.raises(CoraError, match="template"):
                who.sent(prompt)


def test_a_template_file_that_is_damaged_is_named_and_harms_no_other(with_template):
    who = with_template(SENT["ChatML"])
    for text in ("", "[]", "{"):
        (who.folder / "chat_template.json").write_text(text)
        with pytest.warns(ModelWarning, match="chat_template.json"):
            assert CausalRespondent(who.folder, device="cpu").sent(prompts(ORDINARY)[0]).startswith("<|im_start|>user")
