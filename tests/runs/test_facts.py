"""Facts repeat a run: they differ whenever anything that is sent or read differs, and are equal for equal runs."""

import functools
import json
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import Question, THRESHOLDS
from cora_nb.prompts.letters import first_alphanumeric, last_line
from cora_nb.prompts.templates import Template
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.server_settings import _RESERVED
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import RecordedRespondent, SimulatedRespondent
from cora_nb.responses.responses import make_responses
from cora_nb.runs.asking import Asking, Settled
from cora_nb.runs.evaluate import evaluate, prepare, Running
from cora_nb.variants.families import make_variants

QUESTIONS = [Question(f"q{i}", f"Question {i}?", ("a", "b", "c", "d"), i % 4, "xy"[i % 2]) for i in range(4)]
SHOTS = [Question(f"shot {i}", f"Shot {i}?", ("e", "f", "g"), i % 3, "xy"[i % 2]) for i in range(6)]
MINE = Template("mine", "Choose.\n")


def facts(
    respondent=None, questions=QUESTIONS, family="cora", options=None, stop=None, facts=None, store=None, **asked
):
    variants = make_variants(questions, family, **(options or {}))
    who = respondent or SimulatedRespondent()
    asking = Asking(**{"template": MINE, "shots": SHOTS, "k": 1, **asked})
    return prepare(variants, asking, stop, facts).ask(who, Running(store, progress=False)).facts


BASE = facts()
TEXTS = [f.name for f in fields(Template) if f.type in (str, "str") and f.name != "name"]


def my_rule(reply, choices):
    return 0


def other_rule(reply, choices):
    return 0


CHANGES = {
    "two templates of one name": dict(template=replace(MINE, instruction="Choose one.\n")),
    "another template": dict(template="bare"),
    "shots of other words and equal ids": dict(shots=[replace(s, text=f"{s.text}!") for s in SHOTS]),
    "shots of another answer and equal words": dict(shots=[replace(s, answer=(s.answer + 1) % 3) for s in SHOTS]),
    "shots in another order": dict(shots=SHOTS[::-1]),
    "more shots": dict(k=2),
    "no shots": dict(k=0),
    "another seed of the variants": dict(options={"seed": 1}),
    "another family": dict(family="cyclic"),
    "an option of the family": dict(options={"answer_first": False}),
    "another word for none of the above": dict(options={"nota": "Nothing of that"}),
    "other questions": dict(questions=QUESTIONS[:3]),
    "questions in another order": dict(questions=QUESTIONS[::-1]),
    "a question of another text": dict(questions=[replace(QUESTIONS[0], text="Other?"), *QUESTIONS[1:]]),
    "a question of another answer": dict(questions=[replace(QUESTIONS[0], answer=2), *QUESTIONS[1:]]),
    "more trials": dict(trials=2),
    "another rule": dict(parse="last_line"),
    "a rule for another form": dict(parse={"lfgq": "exact_number"}),
    "a rule of one's own": dict(parse=my_rule),
    "another rule of one's own": dict(parse=other_rule),
    "early stopping": dict(stop=Settled()),
    "early stopping for more": dict(stop=Settled(THRESHOLDS)),
    "early stopping for some thresholds": dict(stop=Settled((0.5,))),
    "early stopping in other batches": dict(stop=Settled(batch=7)),
    "a respondent that knows more": dict(respondent=SimulatedRespondent(knows=0.7)),
    "a respondent of another seed": dict(respondent=SimulatedRespondent(seed=1)),
    "a respondent that leans": dict(respondent=SimulatedRespondent(position=(2, 1))),
    "what the user says": dict(facts={"model": "m"}),
}


@functools.cache
def changed_facts(what):
    return facts(**CHANGES[what])


@pytest.mark.parametrize("what", CHANGES)
def test_facts_differ_whenever_anything_differs(what):
    changed = changed_facts(what)
    assert BASE.differences(changed)
    others = [changed_facts(w) for w in ("another rule", "early stopping") if w != what]
    assert all(changed.differences(other) for other in others)
    assert not changed.differences(facts(**CHANGES[what])) and json.loads(changed.as_json()) == changed.plain()


@pytest.mark.parametrize("field", TEXTS)
def test_every_field_of_a_template_counts(field):
    "Also where it changes nothing that this run sends: two templates of one name are two templates."
    other = replace(MINE, **{field: getattr(MINE, field) + "#"})
    assert "asked.template_hash" in BASE.differences(facts(template=other))


words = st.text(min_size=1, max_size=5).filter(str.strip)
settings_of_a_run = st.fixed_dictionaries(
    {
        "respondent": st.builds(
            SimulatedRespondent,
            knows=st.sampled_from([0.0, 0.5]),
            seed=st.integers(0, 1),
            with_scores=st.booleans(),
            position=st.sampled_from([(1,), (2, 1)]),
        ),
        "family": st.sampled_from(["cora", "cyclic"]),
        "options": st.fixed_dictionaries({}, optional={"seed": st.integers(0, 1)}),
        "template": st.sampled_from(["bare", MINE, replace(MINE, before_answer="\n"), replace(MINE, instruction="!")]),
        "shots": st.sampled_from([SHOTS, SHOTS[2:], [replace(s, text="Shot?") for s in SHOTS]]),
        "k": st.integers(0, 2),
        "trials": st.integers(1, 2),
        "parse": st.sampled_from(
            ["first_token", "last_line", last_line, first_alphanumeric, my_rule, {"tfq": my_rule}]
        ),
        "questions": st.sampled_from([QUESTIONS[:2], QUESTIONS[1:3], [replace(q, text="?") for q in QUESTIONS[:2]]]),
    }
)


def seen(run):
    "What a run sends and how it reads, worked out without the facts."
    from cora_nb.prompts.letters import rules_by_form
    from cora_nb.prompts.templates import get_template, make_prompts

    variants = make_variants(run["questions"], run["family"], **run["options"])
    asked = {k: run[k] for k in ("template", "shots", "k", "trials")}
    prompts = make_prompts(variants, **asked)
    sent = [(p.text, str(p.messages), p.trial, p.variant.key, p.variant.sources, p.variant.answer) for p in prompts]
    return sent, run["respondent"], get_template(run["template"]), rules_by_form(run["parse"]), run["questions"]


@pytest.mark.slow
@given(settings_of_a_run, settings_of_a_run, st.data())
@settings(max_examples=60)
def test_equal_facts_mean_equal_runs(one, other, data):
    "Two runs that differ in some settings, drawn so that many differ in one alone."
    other = {k: data.draw(st.sampled_from([one[k], other[k]]), k) for k in one}
    a, b = facts(**one), facts(**other)
    if seen(one) != seen(other):
        assert a.differences(b)
    elif one["options"].get("seed", 0) == other["options"].get("seed", 0):
        assert a.differences(b) == []


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "model": words,
            "base_url": words.map(lambda w: f"http://{w.encode().hex()}/v1"),
            "endpoint": st.sampled_from(["chat", "completions"]),
            "temperature": st.floats(0, 2),
            "max_tokens": st.integers(1, 99),
            "top_logprobs": st.integers(0, 5),
            "seed": st.integers(0, 9),
            "extra": st.dictionaries(words.filter(lambda w: w not in _RESERVED), st.integers()),
        },
    )
)
@settings(max_examples=50)
def test_every_setting_of_a_chat_respondent_is_a_fact(changed):
    base = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
    before, after = ChatRespondent(**base), ChatRespondent(**{**base, **changed})
    different = any(getattr(after, name) != getattr(before, name) for name in changed)
    assert (before.describe() != after.describe()) == different


def test_how_a_run_went_is_no_fact_of_what_was_asked(tmp_path):
    from cora_nb.runs.store import Store

    with Store(tmp_path / "r.sqlite") as store:
        first, second = facts(store=store), facts(store=store)
    assert first.calls != second.calls and not first.differences(second) and not first.differences(BASE)


def test_two_records_have_two_facts():
    variants = make_variants(QUESTIONS)
    one, other = (make_responses(variants, [Reply(x)] * len(variants)) for x in "AB")
    a, b = (evaluate(RecordedRespondent(r), variants, progress=False).facts for r in (one, other))
    assert a.differences(b) == ["respondent.hash"]


@pytest.mark.parametrize("what", [w for w in CHANGES if w not in ("other questions", "questions in another order")])
def test_facts_are_known_before_anything_is_asked(what):
    "So that a run that would replace another is refused in time."
    asked = {"template": MINE, "shots": SHOTS, "k": 1, **CHANGES[what]}
    who, questions = asked.pop("respondent", SimulatedRespondent()), asked.pop("questions", QUESTIONS)
    variants = make_variants(questions, asked.pop("family", "cora"), **asked.pop("options", {}))
    how = {"stop": asked.pop("stop", None), "facts": asked.pop("facts", None)}
    after = prepare(variants, Asking(**asked), **how).ask(who, Running(progress=False)).facts
    assert prepare(variants, Asking(**asked), **how).facts(who) == after.without("calls")
