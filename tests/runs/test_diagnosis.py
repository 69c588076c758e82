"""What every rule would have read, what kind of unreadable reply it is, and what to change."""

import pytest

from cora_nb.cli.respondents import make_respondent
from cora_nb.core import CoraError, Question
from cora_nb.prompts.letters import RULES, register_rule
from cora_nb.responses.facts import as_facts
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.protocol import Reply
from cora_nb.runs.alarm import SYSTEM, UNREAD_KINDS, Unread, cure, cured_spec, _form_rules, readings, unread_kind
from cora_nb.variants.families import make_variants

CAPITAL = Question("capital", "What is the capital of Australia?", ("Sydney", "Canberra", "Melbourne", "Perth"), 1)
ASKED = {v.form: v for v in make_variants([CAPITAL], "formats")}
ASKED["mcq"] = make_variants([CAPITAL])[0]
SENTENCE, REFUSAL, HARMLESS = (
    "The correct answer is **B**.",
    "I'm sorry, but I can't help with that.",
    "The second one.",
)


def kind(text=None, finish="stop", **more):
    return unread_kind(Reply(text, meta={"finish_reason": finish}, **more), False)


def found(*texts, finish="stop", rule="lenient", room=512, who="chat", template="cora", form="mcq", tokens=None, **own):
    fields = {"max_tokens": None, "endpoint": "chat", **own} if who == "chat" else own
    asked = {"template": template, "parse": {form: rule}, "room": {} if room is None else {form: room}}
    facts = {"respondent": {"respondent": who, **fields}, "asked": asked}
    scores = {t: {"scores": (1.0, 1.0)} if t is None else {} for t in texts}  # no text: the choices were scored
    return cure([Unread(ASKED[form], t, kind(t, finish, **scores[t]), tokens) for t in texts], as_facts(facts))


# ---- readings


def test_every_registered_rule_is_tried_on_its_own_form():
    names = {form: set(_form_rules(form)) for form in ("mcq", "several", "tfq", "lfgq")}
    assert names["mcq"] | {"selected", "yes_no", "in_words", "same_words", "exact_number"} >= set(RULES.names())
    assert names["several"] == {"selected", "last_line"} and names["tfq"] == {"yes_no", "last_line"}
    assert names["lfgq"] == {"in_words", "same_words", "exact_number", "last_line"}
    assert _form_rules("tfq")["last_line"].__name__ == "last_line_yes_no", "as it is typed, and as it is used"


def test_readings_are_labels():
    assert readings(ASKED["mcq"], SENTENCE)["lenient"] == "B" and readings(ASKED["mcq"], SENTENCE)["first_token"] == ""
    assert readings(ASKED["lfgq"], "It is Canberra.")["same_words"] == "Canberra"
    assert readings(ASKED["tfq"], "Answer: No") == {"yes_no": "No", "last_line": "No"}
    assert set(readings(ASKED["mcq"], None).values()) == {""}


def test_a_rule_that_fails_has_read_nothing(monkeypatch):
    monkeypatch.setattr(RULES, "registered", dict(RULES.registered))

    @register_rule
    def broken(reply, choices):
        raise KeyError(reply)

    @register_rule
    def odd(reply, choices):
        return "B"

    assert readings(ASKED["mcq"], "B")["broken"] == readings(ASKED["mcq"], "B")["odd"] == ""


# ---- kinds

KIND = {
    "cut off": [("Let us look at", "length"), ("", "length"), ("<think>Sydney is", "stop"), (REFUSAL, "length")],
    "refused": [
        (REFUSAL, "stop"),
        ("I cannot assist with that request.", "stop"),
        ("As an AI language model, I do not have opinions", None),
        ("Sorry, I am not able to answer this.", "stop"),
        ("", "content_filter"),
        ("", "refusal"),
    ],
    "empty": [("", "stop"), (" \n", None), ("<think>\n</think>\n\n", "stop")],
    "unparsed": [(HARMLESS, "stop"), ("Canberra cannot be it, or can it?", None)],
}


@pytest.mark.parametrize("text,finish,expected", [(*case, kind) for kind, cases in KIND.items() for case in cases])
def test_kinds(text, finish, expected):
    assert unread_kind(Reply(text, meta={"finish_reason": finish}), False) == expected and expected in UNREAD_KINDS


def test_what_is_read_or_failed_is_not_unread():
    assert unread_kind(Reply("B"), True) == unread_kind(Reply(error="no reply within 60 s"), False) == ""
    assert unread_kind(Reply("", meta={"finish_reason": "content_filter"}), False) == "refused"
    assert unread_kind(Reply(scores=(1.0, 1.0)), False) == "tied"
    assert unread_kind(Reply(), False) == "no text"


# ---- cures


@pytest.mark.parametrize(
    "case,fields,options",
    [
        (found("", "<think>A", finish="length"), {"max_tokens": 4096}, {}),
        (found("", finish="length", room=4096), {"max_tokens": 16384}, {}),
        (found("", finish="length", room=1, rule="first_token"), {"max_tokens": 4096}, {"parse": "lenient"}),
        (found("The", "'", finish="length", room=1, rule="first_token"), {}, {"parse": "lenient"}),
        (found("The", finish="length", room=16, max_tokens=16), {"max_tokens": 512}, {}),
        (found("The", finish="length", room=16, endpoint="completions"), {"max_tokens": 512}, {}),
        (found("The", finish="length", room=16, who="causal"), {"max_new_tokens": 512}, {}),
        (found("Let us see", finish="length"), {}, {"template": "reasoned", "parse": "last_line"}),
        (found("Let us see", finish="length", template="reasoned", room=4096), {"max_tokens": 16384}, {}),
        (found("Let us see", finish="length", who="mine", room=None, template="mine"), {}, {}),
        (found(SENTENCE, rule="first_token"), {}, {"parse": "lenient"}),
        (found(*[SENTENCE] * 9, HARMLESS, rule="first_token"), {}, {"parse": "lenient"}),
        (
            found(*[SENTENCE] * 8, *[HARMLESS] * 2, rule="first_token"),  # lenient reads too few of them
            {},
            {"template": "reasoned", "parse": "last_line"},
        ),
        (found("It is Canberra.", rule="in_words", form="lfgq"), {}, {"parse": {"lfgq": "same_words"}}),
        (found("Hm.\nAnswer: No", rule="yes_no", form="tfq"), {}, {"parse": "last_line"}),
        (found(HARMLESS), {}, {"template": "reasoned", "parse": "last_line"}),
        (found(REFUSAL), {"system": SYSTEM}, {}),
        (found(REFUSAL, system="Answer."), {}, {"template": "reasoned", "parse": "last_line"}),
        (found(""), {}, {"template": "reasoned", "parse": "last_line"}),
        (found("", tokens=300), {"max_tokens": 4096}, {}),
        (found("", endpoint="completions"), {"endpoint": "chat"}, {}),
        (found(None, who="likelihood", dtype="bfloat16"), {"dtype": "float32"}, {}),
        (found(None, who="likelihood", dtype="float32"), {}, {}),
    ],
)
def test_cures(case, fields, options):
    assert (case.fields, case.options) == (fields, options)
    assert bool(case) == bool(fields or options)


def test_a_rule_is_recommended_only_where_it_reads_the_replies_at_hand(monkeypatch):
    assert found(SENTENCE, rule="first_token").tried and not found(HARMLESS).tried
    assert "may help" in found(HARMLESS).why and "may help" in found(REFUSAL).why
    as_an_ai = found("About this we say nothing.", rule="first_token")  # two rules take the A of "About"
    assert as_an_ai.options["parse"] == "last_line" and not as_an_ai.tried
    monkeypatch.setattr(RULES, "registered", dict(RULES.registered))

    @register_rule
    def ordinal(reply, choices):
        return ["first", "second"].index(reply.split()[1])

    assert found(HARMLESS).options == {"parse": "ordinal"} and found(HARMLESS).tried


def test_the_commonest_kind_decides():
    assert found("", "", REFUSAL).kind == "empty" and found(REFUSAL, "", REFUSAL).kind == "refused"
    with pytest.raises(CoraError, match="no replies"):
        cure([], as_facts({}))
    assert cure([Unread(ASKED["mcq"], HARMLESS, "unparsed")], as_facts({})).words == "", (
        "facts of an older run say nothing"
    )


def test_a_model_on_this_machine_need_not_write():
    base = found("Certainly! :-)", who="causal", chat=False)
    assert base.respondent == "likelihood" and "likelihood:PATH" in base.words
    assert cured_spec("causal:m,temperature=1,device=cpu", base) == "likelihood:m,device=cpu"
    assert base.python == "evaluate(LikelihoodRespondent(...), variants)"


# ---- words to type


def test_words_become_a_command_that_can_be_run():
    longer = found("", finish="length")
    spec = "chat:m,base_url=http://127.0.0.1:1/v1,max_tokens=16"
    assert cured_spec(spec, longer) == "chat:m,base_url=http://127.0.0.1:1/v1,max_tokens=4096"
    assert cured_spec("chat:max_tokens=3,model=m", longer) == "chat:,model=m,max_tokens=4096"
    assert make_respondent(cured_spec("chat:max_tokens=3,model=m", longer)) == ChatRespondent("m", max_tokens=4096)
    thinks = found("Let us see", finish="length")
    assert thinks.words.split() == ["--template", "reasoned", "--parse", "last_line"]
    assert thinks.python == "evaluate(respondent, variants, Asking(template='reasoned', parse='last_line'))"


def test_without_words_there_is_nothing_to_recommend():
    case = cure([Unread(ASKED["mcq"], None, "no text")], as_facts({"respondent": {"respondent": "chat"}}))
    assert not case and case.kind == "no text" and "not known" in case.why
