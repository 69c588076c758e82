"""What a respondent says it sends is what it sends: compared with what arrives, and with the tokens a model reads."""

import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import Question
from cora_nb.prompts.templates import Prompt, make_prompts
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.checks import inert_text
from cora_nb.respondents.protocol import ask, outgoing_text
from cora_nb.variants.families import make_variants
from faulty_server import Answer, FaultyServer, completion, refusal
from helpers import Forgetful

PROMPTS = make_prompts(make_variants(math_benchmark(n=2)))
STRANGE = Question("q", 'What does "\x1b[2J" \x9b31m do\x85?\u202e \t', ("übung 中", "\x07", "\U0001f600"), 1)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"temperature": 0.7, "seed": 3, "max_tokens": 9},
        {"top_logprobs": 5, "extra": {"reasoning": {"effort": "low"}, "stop": ["\n"]}},
        {"endpoint": "completions", "top_logprobs": 2},
        {"api_version": "2024-06-01"},
    ],
    ids=str,
)
def test_the_body_shown_is_the_body_that_arrives(fields, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    endpoint = fields.get("endpoint", "chat")
    good = completion() if endpoint == "chat" else {"choices": [{"index": 0, "text": "B", "finish_reason": "stop"}]}
    with FaultyServer(lambda asked: Answer(body=good)) as server:
        root = server.url.removesuffix("/v1") if "api_version" in fields else server.url
        who = ChatRespondent("some model", root, **fields)
        prompt = Prompt(make_variants([STRANGE])[0], trial=1, shots=(Question("s", "1 + 1?", ("2", "3"), 0),))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # this server sends no log-probabilities
            (reply,) = ask(who, [prompt])
    assert reply.error is None
    place, _, body = who.outgoing(prompt).partition("\n")
    (asked,) = server.asked
    assert json.loads(body) == asked.body and place == f"POST {server.url.removesuffix('/v1')}{asked.path}"
    assert "sk-0123" not in who.outgoing(prompt) and "sk-0123" in str(asked.headers)


def test_the_limit_has_the_name_that_the_server_took():
    def plan(asked):
        if "max_tokens" in asked.body:
            return Answer(400, refusal("Unsupported parameter: use 'max_completion_tokens' instead"))
        return Answer()

    with FaultyServer(plan) as server:
        who = ChatRespondent("m", server.url)
        assert '"max_tokens"' in who.outgoing(PROMPTS[0])
        ask(who, PROMPTS[:1])
    assert json.loads(who.outgoing(PROMPTS[0]).partition("\n")[2]) == server.asked[-1].body


@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize("chat", [False, True])
def test_the_text_shown_is_what_a_language_model_reads(tmp_path, bos, chat):
    from tiny_models import byte_level, save

    from cora_nb.respondents.causal import CausalRespondent

    tokenizer = byte_level(bos=bos)
    if chat:
        tokenizer.chat_template = "{{ bos_token }}{% for m in messages %}[{{ m.content }}]{% endfor %}>>"
    save(tmp_path, "llama", tokenizer)
    who = CausalRespondent(tmp_path)
    shown = who.outgoing(PROMPTS[0])
    read = who.encode(who.sent(PROMPTS[0]))
    assert who.tokenizer(shown, add_special_tokens=False)["input_ids"] == read
    assert shown.startswith("<s>") == bos and shown.endswith(">>") == chat and PROMPTS[0].text in shown


def test_what_is_scored_is_shown_with_its_spaces():
    from cora_nb.respondents.likelihood import LikelihoodRespondent

    for adaptation in ("joint-label", "joint-desc", "separate"):
        who = LikelihoodRespondent("organism/steady", adaptation=adaptation)
        asked, lines = who.request(PROMPTS[0]), who.outgoing(PROMPTS[0]).splitlines()
        assert who.outgoing(PROMPTS[0]).startswith(asked["context"] + "\n")
        assert [json.loads(line) for line in lines[-4:]] == asked["continuations"]


def test_a_respondent_that_does_not_say_shows_its_request():
    assert json.loads(outgoing_text(Forgetful(), PROMPTS[0])) == {"text": PROMPTS[0].text}


@given(st.text() | st.sampled_from(["\x1b]0;x\x07", "\u2028", "\r\n", "a\x00b", "\u200b", STRANGE.text]))
def test_nothing_that_a_terminal_obeys(text):
    shown = inert_text(text)
    assert all(c == "\n" or c.isprintable() for c in shown) and shown.count("\n") == text.count("\n")
    assert inert_text(shown) == shown and (shown == text) == all(c == "\n" or c.isprintable() for c in text)
    shown.encode()
