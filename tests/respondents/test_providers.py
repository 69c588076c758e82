"""Providers and servers of models as they are: what `cora run` and `cora try` do and say at each one's quirks.

The servers are in `providers`, with the sources of what they do; each has a model that is always right.
"""

import csv
import json
import re
import shlex
import time

import pytest

from chat_commands import Desk
from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.protocol import ask
from cora_nb.responses.files import read_responses
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants
from faulty_server import Answer, Asked, FaultyServer
from helpers import slow_after
from providers import PROVIDERS, Provider, choices_of, posts, reply, right, root, schema_of

ROWS = 40  # of two questions: 20 variants each


@pytest.fixture
def desk(tmp_path_factory, monkeypatch, capsys):
    "A folder whose name says nothing of the test: what is printed may have it."
    return Desk(tmp_path_factory.mktemp("desk"), capsys, monkeypatch)


def answered_rightly(desk, said, rows=ROWS):
    "Exit status 0, all rows answered, all right, and the table says so."
    assert said.status == 0, said.err[-2000:]
    assert desk.states == {"answered": rows} and bool(desk.table["correct"].all())
    assert said.score("MCQA") == said.score("CoRA") == "1.00"


def works_as_it_stands(desk, said):
    "What stands after `type: ` is a command, and gives the full score at the same server."
    words = said.to_type
    assert words and words[0] == "cora", f"no line to type: {said.last}"
    again = desk.type(*words)
    assert again.status == 0, f"{shlex.join(words)}: {again.err[-2000:]}"
    if words[1] == "run":
        assert again.score("MCQA") == "1.00"
    else:
        assert "RIGHT" in again.out
    return again


# ---- the servers themselves


def test_the_model_of_the_servers_is_always_right():
    "Against the key of the package, on every variant of twenty questions."
    variants = make_variants(math_benchmark()[:20])
    for variant, prompt in zip(variants, Asking().prompts(variants)):
        shown = choices_of(prompt.text)
        assert tuple(shown.values()) == tuple(variant.choices)
        assert list(shown).index(right(prompt.text)) == variant.answer


@pytest.mark.parametrize("name", PROVIDERS)
def test_each_server_answers_by_its_own_rules(name):
    "Every body is JSON (or text that is meant to be none), and no server says the same id twice unless it is a cache."
    choose = PROVIDERS[name].plan()
    prompts = Asking().prompts(make_variants(math_benchmark()[:1]))[:10]
    ids = []
    for number, prompt in enumerate(prompts):
        body = {"model": "m", "messages": [{"role": "user", "content": prompt.text}], "max_tokens": 512}
        answer = choose(Asked(number, "/v1/chat/completions", {}, body))
        assert isinstance(answer, Answer) and answer.status >= 200
        if not isinstance(answer.body, bytes):
            json.dumps(answer.body)
            ids.append(answer.body.get("id", number) if isinstance(answer.body, dict) else number)
    assert name in ("cache", "lost connections") or len(set(ids)) == len(ids)


# ---- a setting that is refused: one request, the server's words, and a line that works


REFUSED = [  # provider, more fields, requests at most, the server's words, a word that names the thing
    ("openai o-series", "", 2, "Only the default", "temperature=none"),  # 2: after max_completion_tokens
    ("openai gpt-5", "", 2, "Only the default", "temperature=none"),
    ("openai gpt-5", ",temperature=none,extra.top_p=0.9", 2, "not supported with this model", "top_p"),
    ("openai gpt-5", ",temperature=none,top_logprobs=5", 2, "not supported with this model", "logprobs"),
    ("anthropic", "", 1, "deprecated for this model", "temperature=none"),
    ("gemini", ",seed=1", 1, "Cannot find field", "seed"),
    ("mistral", ",seed=1", 1, "Extra inputs are not permitted", "seed"),
    ("vllm system", "", 1, "System role not supported", "system"),
    ("vllm window", "", 1, "maximum context length is 1000", "max_tokens"),
    ("groq minute", "", 1, "Request too large", "max_tokens"),
    ("lm studio path", "", 1, "Unexpected endpoint", "/v1"),
    ("wrong parameter", ",extra.verbosity=low", 1, "Unrecognized request argument", "verbosity"),
]


@pytest.mark.parametrize("name,more,requests,words,thing", REFUSED, ids=lambda value: str(value)[:40])
def test_what_is_refused_of_the_first_prompt_is_said_with_a_line_that_works(desk, name, more, requests, words, thing):
    provider = PROVIDERS[name]
    with provider.serve() as server:
        said = desk.run(provider.spec(server, more))
        assert said.status != 0 and 1 <= len(posts(server)) <= requests
        assert words in said.last and thing in said.last.replace(root(server), "").replace("System", "system")
        assert not desk.runs, "a run that was not asked is not on disk"
        works_as_it_stands(desk, said)
    assert bool(desk.table["correct"].all()) and desk.states == {"answered": ROWS}


@pytest.mark.parametrize("name", ["openai o-series", "anthropic"])
def test_the_line_to_type_keeps_what_was_typed(desk, name):
    "Names with spaces and commas, options and their values: only what was refused is changed."
    provider = PROVIDERS[name]
    with provider.serve() as server:
        spec = provider.spec(server, ',concurrency=3,name="a, b",system="Say only, a letter."')
        said = desk.run(spec, "--parse", "careful", "--out", "my runs", store=str(desk.folder / "s p.sqlite"))
        typed = said.to_type
        assert typed[:2] == ["cora", "run"] and "temperature=none" in typed[2]
        assert typed[typed.index("--out") + 1] == "my runs" and typed[typed.index("--limit") + 1] == "2"
        works_as_it_stands(desk, said)
    assert posts(server)[-1].body["messages"][0] == {"role": "system", "content": "Say only, a letter."}
    assert [folder.relative_to(desk.folder).parts[0] for folder in desk.runs] == ["my runs"]


@pytest.mark.parametrize("name", ["openai gpt-5", "anthropic", "lm studio path"])
def test_try_says_it_too(desk, name):
    provider = PROVIDERS[name]
    with provider.serve() as server:
        said = desk.try_(provider.spec(server))
        assert said.status != 0 and len(posts(server)) <= 2 and said.to_type[:2] == ["cora", "try"]
        works_as_it_stands(desk, said)


def test_try_and_run_take_a_store(desk):
    with PROVIDERS["well"].serve() as server:
        assert desk.try_(PROVIDERS["well"].spec(server), "--store", "none").status == 0
    assert not desk.runs


SAID_ONCE = [  # what is wrong with the server or the account: nothing to type, so only its words
    ("ollama missing", "try pulling it first"),
    ("deepseek balance", "Insufficient Balance"),
    ("wrong key", "Incorrect API key"),
    ("wrong model", "does not exist"),
    ("wrong address", "404"),
    ("quota", "exceeded your current quota"),
]


@pytest.mark.parametrize("command", ["run", "try"])
@pytest.mark.parametrize("name,words", SAID_ONCE, ids=[name for name, _ in SAID_ONCE])
def test_what_concerns_all_prompts_is_said_after_one_request(desk, name, words, command):
    "However many may be under way at once."
    provider = PROVIDERS[name]
    with provider.serve() as server:
        spec = provider.spec(server, ",concurrency=32")
        said = desk.run(spec, limit=5) if command == "run" else desk.try_(spec, questions=5)
    assert said.status != 0 and len(posts(server)) == 1
    assert words in said.last and "Traceback" not in said.all


def test_the_same_from_python(desk):
    "A `CoraError` with the server's words, after one request."
    prompts = Asking().prompts(make_variants(math_benchmark()[:5]))
    for name, words in [*SAID_ONCE, ("openai gpt-5", "Only the default"), ("vllm window", "maximum context length")]:
        provider, more = PROVIDERS[name], {"max_tokens": 4096} if name == "vllm window" else {}
        with provider.serve() as server:
            model = ChatRespondent(provider.model, base_url=f"{root(server)}{provider.path}", concurrency=32, **more)
            with pytest.raises(CoraError, match=re.escape(words)):
                ask(model, prompts)
        assert 1 <= len(posts(server)) <= (2 if name == "openai gpt-5" else 1), name


@pytest.mark.slow
def test_lost_connections_are_not_believed_for_long(desk):
    "Not 32 at once seven times."
    provider = PROVIDERS["lost connections"]
    with provider.serve() as server:
        said = desk.run(provider.spec(server, ",concurrency=32"), limit=5)
    assert said.status != 0 and 1 <= len(posts(server)) <= 4 and re.search("connection", said.last, re.IGNORECASE)


def test_a_system_message_that_breaks_a_server_is_not_asked_for_minutes(desk):
    "sglang 892: 500 without a word. A person can only be told that it is the first prompt already."
    provider = PROVIDERS["sglang system"]
    with provider.serve() as server:
        said = desk.run(provider.spec(server, ",concurrency=32"))
        assert said.status != 0 and len(posts(server)) <= 3  # the first prompt, and two retries
        assert "500" in said.last
        if said.to_type:
            works_as_it_stands(desk, said)


# ---- what is answered rightly whatever the quirk


RIGHT = [
    "well",
    "openai dated",
    "gemini",
    "mistral",
    "openrouter",
    "azure",
    "azure apart",
    "vllm -9999",
    "sglang logprobs",
    "lm studio",
    "deepseek",
    "xai",
    "cohere",
    "together",
    "tgi",
    "anthropic ending",
]


@pytest.mark.parametrize("name", RIGHT)
def test_a_model_that_is_right_is_right(desk, name):
    provider = PROVIDERS[name]
    with provider.serve() as server:
        said = desk.run(provider.spec(server))
    answered_rightly(desk, said)
    assert len(posts(server)) == len({asked.prompt for asked in posts(server)}), "each prompt is paid once"
    assert {asked.headers.get("authorization") or asked.headers.get("api-key") for asked in posts(server)} != {None}


@pytest.mark.parametrize("name", ["well", "openai dated", "gemini", "openrouter", "mistral", "deepseek"])
def test_nothing_is_said_where_all_is_well(desk, name):
    "A dated name or a prefix is no other model, and replies of their own ids come from no cache."
    provider = PROVIDERS[name]
    with provider.serve() as server:
        said = desk.run(provider.spec(server))
    assert said.status == 0
    for word in (r"gpt-4o-2024-08-06", "models/gemini", r"\bcach", "prompt_tokens", "warning", "reasoning_content"):
        assert not said.lines_with(word), word


def test_max_completion_tokens_is_sent_where_it_is_wanted(desk):
    "openai o-series and GPT-5: by itself, at one request's price; Mistral refuses that very field (eca 231)."
    for name, more in [("openai gpt-5", ",temperature=none"), ("mistral", "")]:
        provider = PROVIDERS[name]
        with provider.serve() as server:
            said = desk.run(provider.spec(server, more + ",max_tokens=777"), "--out", name.replace(" ", "-"))
        assert said.status == 0 and said.score("MCQA") == "1.00"
        bodies = [asked.body for asked in posts(server)]
        wanted, other = ("max_completion_tokens", "max_tokens")[:: 1 if "gpt" in name else -1]
        assert all(body[wanted] == 777 and other not in body for body in bodies[1:])
        asked = ROWS if more else len({asked.prompt for asked in posts(server)})  # drawn replies are each asked
        assert len(bodies) - asked <= 1


ONCE = [
    "openrouter breaks once",
    "anthropic overloaded",
    "vllm abort once",
    "sglang abort object once",
    "deepseek resource once",
    "groq again",
]


@pytest.mark.parametrize("name", slow_after(1, ONCE))
def test_what_went_wrong_once_is_asked_again(desk, name):
    "An overload, an engine that was paused, a failure inside a 200: no row has it in the end."
    provider = PROVIDERS[name]
    with provider.serve() as server:
        said = desk.run(provider.spec(server))
    answered_rightly(desk, said)
    paid = [asked.prompt for asked in posts(server)]
    assert 1 <= len(paid) - len(set(paid)) <= 3


def test_azure_is_asked_at_its_deployment(desk):
    for i, name in enumerate(["azure", "azure apart"]):
        with PROVIDERS[name].serve() as server:
            assert desk.run(PROVIDERS[name].spec(server), "--out", str(i)).status == 0
        for asked in posts(server):
            assert asked.path == "/openai/deployments/gpt4o/chat/completions?api-version=2024-10-21"


@pytest.mark.parametrize("tail", ["/v1", "/v1/", "/v1//", "/v1/chat/completions", "/v1/chat/completions/"])
def test_addresses_as_people_type_them(desk, tail):
    "dialoqbase 146, lm-evaluation-harness 3125."
    with Provider().serve() as server:
        said = desk.try_(f"chat:m,base_url={root(server)}{tail}")
    assert said.status == 0 and {asked.path for asked in posts(server)} == {"/v1/chat/completions"}
    with Provider().serve() as server:
        assert desk.try_(f"chat:m,base_url= {root(server)}{tail} ").status == 0


@pytest.mark.parametrize("name", ["sglang logprobs", "vllm -9999"])
def test_scores_are_those_of_the_replys_own_first_token(desk, name):
    "A thought's tokens speak of other letters; minus infinity is a number there."
    provider = PROVIDERS[name]
    with provider.serve() as server:
        said = desk.run(provider.spec(server))
    assert said.status == 0
    table = desk.table
    for scores, answer in zip(table["scores"], table["answer"]):
        assert scores is None or max(range(len(scores)), key=lambda i: (scores[i] == scores[i], scores[i])) == answer
    known = table["confidence"].dropna()
    assert known.between(0, 1).all()


# ---- refused, failed, unread: what becomes of a row


STATES = [  # provider, state of the rows concerned, exit status, words that say why
    ("openrouter moderates", "refused", 0, ""),
    ("openrouter moderates the first", "refused", 0, ""),
    ("azure filter", "refused", 0, ""),
    ("openai refusal", "refused", 0, ""),
    ("llama.cpp context", "refused", 0, ""),
    ("groq large", "failed", 3, "max_tokens"),
    ("vllm window for some", "failed", 3, "max_tokens"),
]
STATES_SLOW = [
    ("openrouter breaks", "failed", 3, "went away"),
    ("sglang abort", "failed", 3, "abort"),
    ("deepseek resource", "failed", 3, "insufficient_system_resource"),
]


@pytest.mark.parametrize("name,state,status,word", slow_after(len(STATES), STATES + STATES_SLOW))
def test_what_concerns_some_prompts_alone_does_not_end_the_run(desk, name, state, status, word):
    "A refusal is about the prompt, counts as wrong and is no failure; everything else failed, and is asked again."
    provider = PROVIDERS[name]
    with provider.serve() as server:
        said = desk.run(provider.spec(server, ",retries=1" if name == "openrouter breaks" else ""))
    assert said.status == status, said.err[-2000:]
    table = desk.table
    assert set(desk.states) == {"answered", state} and desk.states["answered"] > ROWS / 2
    assert bool(table.loc[table["state"] == "answered", "correct"].all())
    assert not table.loc[table["state"] == state, "correct"].any()
    assert bool(table["error"].notna().any()) == (state == "failed")
    assert word in said.all


def test_what_failed_is_asked_again_by_the_next_run(desk):
    "Of a limit on the reply's room nothing is kept; the same command with less room for some asks only these."
    some = PROVIDERS["vllm window for some"]
    with some.serve() as server:
        first = desk.run(some.spec(server), store="s.sqlite")
        asked = len(posts(server))
        server.plan = Provider().plan()  # started again, with a larger window
        second = desk.run(some.spec(server), store="s.sqlite")
        again = len(posts(server)) - asked
    assert first.status == 3 and second.status == 0 and 1 <= again < ROWS / 2
    assert second.score("MCQA") == "1.00" and bool(desk.table["correct"].all())


def test_the_words_of_a_refusal_are_kept(desk):
    with PROVIDERS["openai refusal"].serve() as server:
        desk.run(PROVIDERS["openai refusal"].spec(server))
    refused = desk.table.query("state == 'refused'")
    assert len(refused) and refused["reply"].str.contains("can't assist").all()


@pytest.mark.parametrize("name", ["gemini thinks", "cohere cut"])
def test_a_reply_that_was_cut_off_is_paid_once(desk, name):
    "A choice without a message, ended by the limit, is an empty reply; the words say what to raise."
    provider = PROVIDERS[name]
    with provider.serve() as server:
        said = desk.run(provider.spec(server))
    assert desk.states == {"unread": ROWS} and said.status == 0 and "max_tokens" in said.all
    assert len(posts(server)) == len({asked.prompt for asked in posts(server)})
    if name == "gemini thinks":
        assert set(desk.table["finish"]) == {"length"}


def test_an_answer_in_the_wrong_field_is_named(desk):
    with PROVIDERS["vllm reasoning"].serve() as server:
        said = desk.run(PROVIDERS["vllm reasoning"].spec(server))
    assert said.status == 0 and said.lines_with("reasoning_content") and "failed" not in desk.states


# ---- what is remarkable of a server, said once


def test_another_model_answers(desk):
    with PROVIDERS["lm studio"].serve() as server:
        said = desk.run(PROVIDERS["lm studio"].spec(server))
    assert len(said.lines_with("qwen2.5-0.5b-instruct")) == 1 and "qwen2.5-0.5b-instruct" in desk.facts_text


def test_a_model_that_changes_in_the_middle(desk):
    with PROVIDERS["lm studio changes"].serve() as server:
        said = desk.run(PROVIDERS["lm studio changes"].spec(server))
    assert said.lines_with("phi-3-mini") and "qwen2.5-0.5b" in desk.facts_text and "phi-3-mini" in desk.facts_text


def test_try_says_which_model_answers(desk):
    with PROVIDERS["lm studio"].serve() as server:
        assert desk.try_(PROVIDERS["lm studio"].spec(server)).lines_with("qwen2.5-0.5b-instruct")


def test_another_model_is_a_warning_in_python(desk):
    variants = make_variants(math_benchmark()[:1])
    with PROVIDERS["lm studio"].serve() as server:
        with pytest.warns(UserWarning, match="qwen2.5-0.5b-instruct") as said:
            evaluate(ChatRespondent("llama-3.1-8b", base_url=server.url), variants, progress=False)
    assert len([w for w in said if "qwen2.5" in str(w.message)]) == 1


def test_a_cache_is_said(desk):
    "Two trials with one id at temperature 1: the second was not drawn."
    with PROVIDERS["cache"].serve() as server:
        said = desk.run(PROVIDERS["cache"].spec(server), "--trials", 2, limit=1)
    assert said.status == 0 and len(said.lines_with("cache")) == 1


def test_trials_that_were_drawn_are_no_cache(desk):
    with PROVIDERS["well"].serve() as server:
        said = desk.run(PROVIDERS["well"].spec(server, ",temperature=1"), "--trials", 2, limit=1)
    assert said.status == 0 and not said.lines_with("cache") and len(posts(server)) == 40


def long_questions(folder):
    "Sums after passages of different lengths, all above 4,096 tokens."
    with open(folder / "long.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "question", "A", "B", "C", "D", "answer"])
        for i, (a, b) in enumerate([(3, 6), (20, 12), (47, 30)]):
            passage = " ".join(f"Sentence {j} of passage {i} says nothing." for j in range(600 + 150 * i))
            choices = [str(a + b), str(a + b + 1), str(a + b + 3), str(a + b + 10)]
            shown = choices[-i:] + choices[:-i]
            rows.writerow([f"long-{i}", f"{passage} What is {a} + {b}?", *shown, "ABCD"[i % 4]])
    return "--benchmark", "long", "--path", "long.csv"


@pytest.mark.parametrize("name,says", [("ollama cuts", True), ("well", False)])
def test_prompts_that_a_server_cuts(desk, name, says):
    "What it read is the same for prompts of every length; a server that reads all is not suspected."
    provider, words = PROVIDERS[name], long_questions(desk.folder)
    with provider.serve() as server:
        said = desk.run(provider.spec(server), *words, limit=3)
    assert said.status == 0, said.err[-2000:]
    found = said.lines_with(r"prompt_tokens|\bcuts?\b|window|num_ctx|4,?096")
    assert bool(found) == says and len(found) <= 2, found


# ---- tokens


@pytest.mark.parametrize("name,each", [("gemini", 402), ("xai", 2001), ("well", 2), ("deepseek", 30)])
def test_tokens_written_are_those_that_are_billed(desk, name, each):
    "max(completion, total - prompt): reasoning may stand in the total alone."
    provider = PROVIDERS[name]
    with provider.serve() as server:
        desk.run(provider.spec(server))
    assert desk.facts["calls"]["completion_tokens"] == each * len(posts(server))


def test_a_cost_counts_them_too(desk):
    "inspect_ai 5528: a limit of money that sees one token of 2,001 spends far too much."
    with PROVIDERS["xai"].serve() as server:
        spec = PROVIDERS["xai"].spec(server, ",max_tokens=4096")
        desk.run(spec, "--price", "3/15", "--max_cost", "2.0", limit=5)  # 89 prompts cost 2.70
    assert len(posts(server)) * (100 * 3 + 2001 * 15) / 1e6 <= 2.5


# ---- names and values as they are typed


NAMES = ["qwen3:8b", "deepseek/deepseek-r1:free", "@cf/meta/llama", '"lora,adapter"', '"gpt=4"', '"a,b=c:d"']


@pytest.mark.parametrize("typed", NAMES)
def test_names_are_asked_as_typed(desk, typed):
    with Provider().serve() as server:
        said = desk.run(f"chat:{typed},base_url={server.url}", limit=1)
    assert said.status == 0 and {asked.body["model"] for asked in posts(server)} == {typed.strip('"')}
    assert desk.facts["respondent"]["model"] == typed.strip('"')


EXTRA = [  # as typed, as sent
    ("extra.reasoning_effort=low", {"reasoning_effort": "low"}),
    ("extra.top_p=0.9", {"top_p": 0.9}),
    ("extra.top_k=20", {"top_k": 20}),
    ("extra.store=false", {"store": False}),
    ('extra.verbosity="low"', {"verbosity": "low"}),
    ("extra.chat_template_kwargs.enable_thinking=false", {"chat_template_kwargs": {"enable_thinking": False}}),
    ('extra.provider.order=["a","b"]', {"provider": {"order": ["a", "b"]}}),
    ('extra.provider={"order":["a","b"],"sort":"price"}', {"provider": {"order": ["a", "b"], "sort": "price"}}),
    ("extra.provider.sort=price,extra.provider.zdr=true", {"provider": {"sort": "price", "zdr": True}}),
]


@pytest.mark.parametrize("typed,sent", EXTRA, ids=[typed[:30] for typed, _ in EXTRA])
def test_further_fields_are_sent_and_kept(desk, typed, sent):
    with Provider().serve() as server:
        said = desk.run(f"chat:m,base_url={server.url},{typed}", limit=1)
    assert said.status == 0, said.err[-2000:]
    for asked in posts(server):
        assert {name: asked.body.get(name, "absent") for name in sent} == sent and "extra" not in asked.body
    assert desk.facts["respondent"]["extra"] == sent


def test_further_fields_from_python(desk):
    extra = {"reasoning_effort": "low", "provider": {"order": ["a", "b"]}}
    with Provider().serve() as server:
        model = ChatRespondent("m", base_url=server.url, extra=extra)
        run = evaluate(model, make_variants(math_benchmark()[:1]), progress=False)
    assert all(extra.items() <= asked.body.items() for asked in posts(server))
    assert run.facts.plain()["respondent"]["extra"] == extra and bool(run.table["correct"].all())


def test_a_key_of_the_store_knows_further_fields(desk):
    "Two settings are two questions; the same setting again is none."
    with Provider().serve() as server:
        for out, effort, more in [("a", "low", 20), ("b", "high", 20), ("c", "low", 0)]:
            before = len(posts(server))
            said = desk.run(
                f"chat:m,base_url={server.url},extra.reasoning_effort={effort}", "--out", out, limit=1, store="s.sqlite"
            )
            asked = posts(server)[before:]
            assert said.status == 0 and {a.body["reasoning_effort"] for a in asked} == ({effort} if more else set())
            assert bool(asked) == bool(more)


def test_a_temperature_that_is_not_sent(desk):
    "Absent from the body, null in the facts; replies are drawn, so equal prompts are each asked."
    counts = {}
    for temperature in ("none", "1", "0"):
        with Provider().serve() as server:
            said = desk.run(f"chat:m,base_url={server.url},temperature={temperature}", "--out", temperature)
        assert said.status == 0
        counts[temperature] = len(posts(server))
        sent = {asked.body.get("temperature", "absent") for asked in posts(server)}
        assert sent == {"none": {"absent"}, "1": {1}, "0": {0}}[temperature]
        facts = json.loads(next((desk.folder / temperature).rglob("facts.json")).read_text())
        assert facts["respondent"]["temperature"] == {"none": None, "1": 1, "0": 0}[temperature]
    assert counts["none"] == counts["1"] == ROWS > counts["0"]


@pytest.mark.parametrize("field", ["seed", "top_logprobs"])
def test_other_fields_can_be_left_out(desk, field):
    "A limit on the reply's room is always sent: without one, it is the template's."
    with Provider().serve() as server:
        said = desk.try_(f"chat:m,base_url={server.url},{field}=none")
    assert said.status == 0
    assert not any({field, field.removeprefix("top_")} & asked.body.keys() for asked in posts(server))


def test_a_value_in_quotes(desk):
    with Provider().serve() as server:
        said = desk.try_(f'chat:m,base_url={server.url},system="An exam, with A=1: answer."')
    assert said.status == 0
    assert {asked.body["messages"][0]["content"] for asked in posts(server)} == {"An exam, with A=1: answer."}


def test_evaluate_takes_a_spec_and_questions(desk):
    import cora_nb as cn

    with Provider().serve() as server:
        run = cn.evaluate(f"chat:m,base_url={server.url}", math_benchmark()[:2])
    assert len(run) == ROWS and bool(run.table["correct"].all())


# ---- one prompt before many


@pytest.mark.parametrize("name,more", [("wrong key", ""), ("wrong model", ""), ("wrong address", ""),
                                       ("wrong parameter", ",extra.verbosity=low")])  # fmt: skip
def test_one_prompt_is_asked_before_many(desk, name, more):
    provider = PROVIDERS[name]
    with provider.serve() as server:
        began = time.monotonic()
        said = desk.run(provider.spec(server, f"{more},concurrency=32"), limit=10)
        assert said.status != 0 and len(posts(server)) == 1 and time.monotonic() - began < 10


def test_the_first_prompt_is_alone_and_the_others_are_not(desk):
    "The server answers the first after a while: nothing else has been asked by then."
    arrived = []

    def plan(asked):
        arrived.append((time.monotonic(), asked.prompt))
        answer = reply(asked)
        return Answer(body=answer.body, wait=0.3 if len(arrived) == 1 else 0.02)

    with FaultyServer(plan) as server:
        said = desk.run(f"chat:m,base_url={server.url},concurrency=8")
    answered_rightly(desk, said)
    assert arrived[1][0] - arrived[0][0] >= 0.29 and server.most_at_once > 1
    assert len(arrived) == len({prompt for _, prompt in arrived}), "the first is not asked twice"


# ---- constrained answers


def test_the_schema_of_a_prompt_has_the_labels_shown():
    variants = make_variants(math_benchmark()[:2])
    for variant, prompt in zip(variants, Asking(constrain=True).prompts(variants)):
        assert prompt.schema["properties"]["answer"]["enum"] == list(choices_of(prompt.text))
        assert list(prompt.schema["properties"]) == ["answer"] == list(prompt.schema["required"])
    assert all(prompt.schema is None for prompt in Asking().prompts(variants))


def test_a_server_that_takes_a_schema(desk):
    with PROVIDERS["schema taken"].serve() as server:
        said = desk.run(PROVIDERS["schema taken"].spec(server), "--constrain")
    answered_rightly(desk, said)
    for asked in posts(server):
        form = asked.body["response_format"]
        assert form["type"] == "json_schema" and form["json_schema"]["name"] == "answer"
        assert form["json_schema"]["strict"] is True
        assert schema_of(asked)["properties"]["answer"]["enum"] == list(choices_of(asked.prompt))
    assert "constrain" in desk.facts_text


def test_a_server_that_ignores_a_schema_is_said(desk):
    "And what it wrote is read as ever."
    with PROVIDERS["schema ignored"].serve() as server:
        said = desk.run(PROVIDERS["schema ignored"].spec(server), "--constrain")
    assert said.status == 0 and bool(desk.table["correct"].all())
    assert 1 <= len(said.lines_with("constrain|response_format|schema")) <= 2


def test_a_server_that_refuses_a_schema_gets_one_request(desk):
    with PROVIDERS["schema refused"].serve() as server:
        said = desk.run(PROVIDERS["schema refused"].spec(server), "--constrain")
        assert said.status != 0 and len(posts(server)) == 1 and "response_format" in said.last
        assert "--constrain" not in said.to_type
        works_as_it_stands(desk, said)


def test_a_constrained_reply_is_another_reply(desk):
    "In the store they are kept apart."
    with PROVIDERS["schema taken"].serve() as server:
        spec = PROVIDERS["schema taken"].spec(server)
        for out, words in [("a", ()), ("b", ("--constrain",))]:
            before = len(posts(server))
            assert desk.run(spec, *words, "--out", out, limit=1, store="s.sqlite").status == 0
            assert len(posts(server)) > before
    assert all(bool(read_responses(folder).table["correct"].all()) for folder in desk.runs)


def test_no_constraint_is_sent_unless_asked_for(desk):
    with PROVIDERS["well"].serve() as server:
        desk.run(PROVIDERS["well"].spec(server))
    assert not any("response_format" in asked.body for asked in posts(server))
