"""What models really write, and what a run makes of it: live, and graded by hand."""

import re

import pytest
from faulty_server import Answer, FaultyServer, completion

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import CoraError
from cora_nb.core import LETTERS
from cora_nb.prompts.letters import RULES, SENTENCE, get_rule, register_rule, rule_room, rules_by_form
from cora_nb.prompts.templates import Prompt, make_prompts
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.responses.columns import grade_reply
from cora_nb.respondents.protocol import Reply
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate, plan
from cora_nb.variants.families import make_variants

VARIANTS = make_variants(load_benchmark("math")[:4], "permutations")[:40]
BY_TEXT = {Prompt(v).messages[-1]["content"]: v for v in VARIANTS}
THOUGHT = "<think>" + "A? Perhaps A is right, or C. The answer is A. Let me see. " * 17 + "</think>\n\n"

SHAPES = {  # replies of models that know the right letter, `X`
    "bare": "X",
    "in quotes, as the prompt shows it": "'X'",
    "bold": "**X**",
    "a sentence": "The correct answer is **X**.",
    "a sentence before": "Let me see. That gives X.\n\nAnswer: X",
    "boxed": "$\\boxed{X}$",
    "bracketed, with reasons": "(X) because it is the sum of both numbers.",
    "letter, then explanation": "X\n\nStep 1: A is too small. Step 2: B is too large.",
    "thought": THOUGHT + "X",
    "thought, then a sentence": THOUGHT + "The correct answer is **X**.",
    "thought, opened by the chat template": THOUGHT.removeprefix("<think>") + "X",
}
SILENT = {  # replies that give no answer, and how many of them the limit cut off
    "a refusal": (completion("I'm sorry, but I can't help with that."), 0),
    "nothing": (completion(""), 0),
    "half a thought": (completion(THOUGHT[:500], finish_reason="length"), 1),
    "a letter within half a thought": (completion("<think>A\nB\nThe answer is A.", finish_reason="length"), 1),
    "half a sentence": (completion("Let us first look at", finish_reason="length"), 1),
    "all thought, nothing said": (
        completion(message={"content": None, "reasoning_content": "The answer is A."}, finish_reason="length"),
        1,
    ),
    "all thought, elsewhere": (completion(message={"content": "", "reasoning": "A"}, finish_reason="length"), 1),
    "all thought, no reason given": (completion(message={"content": "", "reasoning": "A"}, finish_reason=None), 1),
}


def server(shape):
    "A model that knows every answer, and says it in its own way."
    return FaultyServer(lambda asked: Answer(body=completion(shape.replace("X", letter(asked.body)))))


def letter(body):
    v = BY_TEXT[body["messages"][-1]["content"]]
    return LETTERS[v.answer]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_right_answer_is_read_in_every_shape(shape):
    with server(shape) as there:
        model = ChatRespondent("m", base_url=there.url)
        run = evaluate(model, VARIANTS, progress=False)
    assert run.table["correct"].all() and run.summary().loc["all", "right"] == len(VARIANTS)
    rules = rules_by_form({})
    assert all(grade_reply(v, Reply(shape.replace("X", LETTERS[v.answer])), rules).correct for v in VARIANTS)


@pytest.mark.parametrize("body,cut_off", SILENT.values(), ids=SILENT)
def test_what_gives_no_answer_is_not_read_and_what_was_cut_off_is_counted_apart(body, cut_off):
    with FaultyServer(lambda asked: Answer(body=body)) as there:
        found = evaluate(ChatRespondent("m", base_url=there.url), VARIANTS[:5], progress=False)
    counts = found.summary().loc["all"].to_dict()
    nothing = dict(right=0, wrong=0, failed=0, not_asked=0)
    assert counts == nothing | dict(rows=5, unparsed=5 * (1 - cut_off), cut_off=5 * cut_off)
    assert (found.table["prediction"] == -1).all() and (found.table["state"] == "unread").all()


def test_a_reply_that_was_cut_off_and_read_is_an_answer():
    with FaultyServer(lambda asked: Answer(body=completion("A. Because", finish_reason="length"))) as there:
        found = evaluate(ChatRespondent("m", base_url=there.url), VARIANTS[:5], progress=False)
    assert found.summary().loc["all", ["unparsed", "cut_off"]].tolist() == [0, 0]


# ---- room


def sent(there):
    return {a.body["max_tokens"] for a in there.asked}


def shouted(reply, choices):
    return -1


@pytest.mark.parametrize(
    "rule,limit,room",
    [
        ("first_token", None, 1),
        ("careful", None, rule_room(get_rule("careful"))),
        ("last_line", None, 4096),
        (shouted, None, SENTENCE),
        ("first_token", 7, 7),
        ("last_line", 7, 7),
    ],
)
def test_the_rule_says_how_much_is_asked_for_unless_somebody_else_does(rule, limit, room):
    with FaultyServer() as there:
        model = ChatRespondent("m", base_url=there.url, max_tokens=limit)
        found = evaluate(model, VARIANTS[:3], Asking(parse=rule), progress=False)
    assert sent(there) == {room} and found.facts.asked.room == {"mcq": room}
    prompts = make_prompts(VARIANTS[:3], parse=rule)
    assert {model.request(p)["max_tokens"] for p in prompts} == {room}
    assert plan(model, VARIANTS[:3], Asking(parse=rule))["tokens_written_at_most"] == 3 * room


def test_a_rule_of_ones_own_says_how_much_room_it_needs():
    @register_rule(room=20)
    def whispered(reply, choices):
        return -1

    try:
        assert rule_room(get_rule("whispered")) == 20
        assert {p.room for p in make_prompts(VARIANTS[:3], parse="whispered")} == {20}
    finally:
        del RULES.registered["whispered"]
    with pytest.raises(CoraError, match="room must be a whole number of 1 or more, got 0"):
        register_rule(whispered, room=0)
    whispered.room = "much"
    with pytest.raises(CoraError, match="room of the parsing rule whispered must be a whole number"):
        make_prompts(VARIANTS[:3], parse=whispered)


def test_the_shipped_models_say_one_token_under_every_rule():
    who = CausalRespondent("organism/steady", device="cpu")
    assert {who.room(p) for p in make_prompts(VARIANTS[:3], parse="last_line")} == {1}
    assert who.request(Prompt(VARIANTS[0]))["max_new_tokens"] == 1
    assert CausalRespondent("organism/steady", max_new_tokens=9).room(Prompt(VARIANTS[0])) == 9
    found = evaluate(who, VARIANTS[:8], progress=False).table
    assert (found["n_tokens"] == 1).all() and found["finish"].isna().all()  # one token is all they say: not cut off
    strict = evaluate(who, VARIANTS[:8], Asking(parse="first_token"), progress=False).table
    assert found["reply"].equals(strict["reply"]) and found["prediction"].equals(strict["prediction"])


# ---- models that reason first


@pytest.mark.parametrize("family,form", [("permutations", "mcq"), ("mcqa_plus", None), ("formats", None)])
def test_models_that_reason_first_are_read_on_their_last_line(family, form):
    variants = make_variants(load_benchmark("math")[:3], family)
    by_text = {Prompt(v, template="reasoned").messages[-1]["content"]: v for v in variants}

    def reason(asked):
        v = by_text[asked.body["messages"][-1]["content"]]
        assert re.search(r"on the last line, as 'Answer: ", asked.prompt)
        right = v.labels[v.answer]
        return Answer(body=completion(f"A is what many would say. No doubt. The answer is A.\n\n**Answer: {right}**"))

    with FaultyServer(reason) as there:
        model = ChatRespondent("m", base_url=there.url)
        found = evaluate(model, variants, Asking("reasoned", parse="last_line"), progress=False)
    assert found.table["correct"].all() and sent(there) == {4096}
    assert form is None or set(found.table["form"]) == {form}


def test_progress_tells_what_was_cut_off(capsys):
    with FaultyServer(lambda asked: Answer(body=completion("Let us", finish_reason="length"))) as there:
        evaluate(ChatRespondent("m", base_url=there.url), VARIANTS[:5])
    assert "cut_off=" in capsys.readouterr().err
