"""Constrained replies: whatever a schema allows is read, by the default rule of its form, as the choice it names."""

import json
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError, Question
from cora_nb.forms import ALPHABETS, FORMS, Variant, Wording, get_form
from cora_nb.prompts.letters import RULES, last_line, rules_by_form
from cora_nb.prompts.reading import careful
from cora_nb.prompts.replies import constrained_answer
from cora_nb.prompts.templates import Prompt
from cora_nb.respondents.protocol import Reply
from cora_nb.responses.columns import grade_reply
from cora_nb.runs.asking import Asking
from cora_nb.variants.families import AXES, FAMILIES, make_variants

ELSEWHERE = {  # labels of other scripts; a user adds them to `ALPHABETS`
    "cyrillic": tuple("АБВГДЕЖЗИК"),
    "greek": tuple("ΑΒΓΔΕΖΗΘΙΚ"),
    "arabic": tuple("أبجدهوزحطي"),
    "hebrew": tuple("אבגדהוזחטי"),
    "thai": tuple("กขคงจฉชซญด"),
    "hindi": tuple("कखगघङचछजझञ"),
    "chinese": tuple("甲乙丙丁戊己庚辛壬癸"),
    "hangul": tuple("가나다라마바사아자차"),
    "kana": tuple("アイウエオカキクケコ"),
    "arabic digits": tuple("١٢٣٤٥٦٧٨٩") + ("١٠",),
    "circled": tuple("①②③④⑤⑥⑦⑧⑨⑩"),
    "wide": tuple("ＡＢＣＤＥＦＧＨＩＪ"),
    "words": tuple(f"Choice {i}" for i in range(1, 11)),
    "quoted": tuple(f'"{i}\\' for i in range(1, 11)),
    "lines": tuple(f"{i}\n" for i in range(1, 11)),
}
LABELS = [*ALPHABETS, *ELSEWHERE]
CITIES = ("Sydney", "Canberra", "Perth", "Hobart", "Darwin")
TEXTS = {  # choices that look like labels, like other labels, or like the object itself
    "cities": CITIES,
    "numbers": ("3", "4", "5", "22", "1"),
    "letters": ("B", "A", "D", "C", "e"),
    "others": ("Б", "А", "乙", "ii", "١"),
    "sentences": ("not B", "A and C", "None of the above", "I do not know", "the answer is A"),
    "objects": ('{"answer": "B"}', '{"answer": "A"}', '["A"]', "[]", "answer"),
    "yes": ("No", "Yes", "no", "yes", "neither"),
}
RULE_OF_FORM = rules_by_form(Asking().parse)


@pytest.fixture(autouse=True, scope="module")
def more_labels():
    "The labels of other scripts, for this module."
    ALPHABETS.update(ELSEWHERE)
    yield
    for name in ELSEWHERE:
        del ALPHABETS[name]


def constrained(variant):
    "The prompt of a variant whose reply may be an object only."
    return Prompt(variant, constrain=True)


def allowed(variant):
    "Every value that the schema of a variant allows, and the places it names; of lists, all with each label once."
    value = constrained(variant).schema["properties"]["answer"]
    if value["type"] == "string":
        return [(label, (place,)) for place, label in enumerate(value["enum"])]
    names = value["items"]["enum"]
    sets = [places for k in range(len(names) + 1) for places in combinations(range(len(names)), k)]
    return [([names[i] for i in places], places) for places in sets[:300]]


def graded(variant, text, rules=RULE_OF_FORM, finish="stop"):
    "How a run reads this reply."
    return grade_reply(variant, Reply(text, meta={"finish_reason": finish}), rules)


def names_only(variant, places, verdict):
    "Whether a verdict names these places and no others, and is right where they are."
    several = get_form(variant).several
    wanted = places if several else None
    prediction = places[0] if len(places) == 1 else -1
    right = prediction == variant.answer
    return (verdict.prediction, verdict.selected, verdict.correct) == (prediction, wanted, right)


def written(value):
    "An object as servers write it."
    said = {"answer": value}
    compact, wide = json.dumps(said, separators=(",", ":")), json.dumps(said, indent=4)
    plain, escaped = json.dumps(said, ensure_ascii=False), json.dumps(said)
    fenced = [f"```json\n{plain}\n```", f"```\n{wide}\n```"]
    thought = [f'<think>A? No, B: {{"answer": "C"}}</think>\n{plain}', f"[THINK]it is A[/THINK]{fenced[0]}"]
    return [compact, wide, plain, escaped, *fenced, *thought, f"\n {plain} \n", f"{plain}<|im_end|>"]


def misread(variant, rules=RULE_OF_FORM):
    "The replies that are not read as the choice they name, with what was read."
    return [
        (text, verdict)
        for value, places in allowed(variant)
        for text in written(value)
        if not names_only(variant, places, verdict := graded(variant, text, rules))
    ]


def lettered(form, alphabet, choices):
    "A variant with these labels."
    words = Wording(alphabet=alphabet) if FORMS[form].shows_choices else None
    places = tuple(range(len(choices)))
    return Variant(Question("q", "Where?", choices, 1), "x", form, 0, choices, 1, places, form, wording=words)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_reply_of_every_family_is_read(family):
    questions = [*math_benchmark(3), Question("q", "What is the capital?", CITIES, 1)]
    wrong = {"misleading": {q.id: (q.answer + 1) % q.n_choices for q in questions}} if family == "misleading" else {}
    variants = [v for v in make_variants(questions, family, **wrong) if get_form(v).guessable]
    assert variants and [m for v in variants for m in misread(v)] == []


@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.parametrize("alphabet", LABELS)
@pytest.mark.parametrize("form", ["mcq", "several"])
def test_every_label_is_read_whatever_the_choices_say(form, alphabet, texts):
    assert misread(lettered(form, alphabet, TEXTS[texts])) == []


@pytest.mark.parametrize("method", AXES)
def test_every_wording_is_read(method):
    for words in AXES[method]:
        for form in ("mcq", "several"):
            assert misread(replace(lettered(form, "capitals", CITIES), wording=words)) == []


@pytest.mark.parametrize("choices", [("Yes", "No"), ("No", "Yes"), ("Ja", "Nein"), ("是", "否"), ("صحيح", "خطأ")])
def test_yes_and_no_are_read_in_any_language(choices):
    variant = lettered("tfq", "capitals", choices)
    assert misread(variant) == []


@pytest.mark.parametrize("form", ["mcq", "several", "tfq"])
def test_the_last_line_is_read_too(form):
    variant = lettered(form, "capitals", ("Yes", "No") if form == "tfq" else CITIES)
    assert misread(variant, rules_by_form(last_line)) == []


@given(
    form=st.sampled_from(["mcq", "several", "tfq"]),
    alphabet=st.sampled_from(LABELS),
    texts=st.sampled_from(list(TEXTS)),
    n=st.integers(2, 5),
    spaces=st.lists(st.sampled_from(["", " ", "\n", "\t", "\r\n", "\n\n\n  "]), min_size=8, max_size=8),
    escaped=st.booleans(),
    fence=st.sampled_from(["", "```", "```json", "```JSON", "~~~"]),
    thought=st.sampled_from(["", "think", "reasoning", "thinking"]),
    words=st.text('AB乙Б1.: {}"answer[]', max_size=30),
    data=st.data(),
)
@settings(max_examples=400, deadline=None)
def test_spaces_fences_and_thoughts_change_nothing(
    form, alphabet, texts, n, spaces, escaped, fence, thought, words, data
):
    choices = TEXTS[texts][:n] if FORMS[form].shows_choices else ("Yes", "No")
    variant = lettered(form, alphabet, choices)
    value, places = data.draw(st.sampled_from(allowed(variant)))
    one = [json.dumps(v, ensure_ascii=escaped) for v in (value if isinstance(value, list) else [value])]
    between = f"{spaces[0]},{spaces[1]}".join(one)
    inner = f"[{spaces[2]}{between}{spaces[3]}]" if isinstance(value, list) else between
    reply = f'{{{spaces[4]}"answer"{spaces[5]}:{spaces[6]}{inner}{spaces[7]}}}'
    reply = f"{fence}\n{reply}\n{fence[:3]}" if fence else reply
    reply = f"<{thought}>{words}</{thought}>{spaces[0]}{reply}" if thought else reply
    verdict = graded(variant, reply)
    assert names_only(variant, places, verdict), (reply, verdict)


@given(st.text(max_size=6), st.sampled_from(LABELS), st.sampled_from(["mcq", "several"]))
@settings(max_examples=300, deadline=None)
def test_what_is_no_label_names_no_other_choice(said, alphabet, form):
    "A small letter for a capital one, or brackets around a label, are read as in any other reply."
    variant = lettered(form, alphabet, CITIES)
    loose = {label.casefold().strip(): i for i, label in enumerate(variant.labels)}
    value = [said, variant.labels[0]] if form == "several" else said
    verdict = graded(variant, json.dumps({"answer": value}))
    if form == "mcq" and verdict.prediction >= 0:
        named = [i for label, i in loose.items() if label in said.casefold()]
        assert verdict.prediction in named or said.strip(" .") in CITIES
    if form == "several" and said not in variant.labels:
        assert verdict.selected == ()


@pytest.mark.parametrize("value", ["Z", "AB", "", " ", "A or B", "none", "E."])
@pytest.mark.parametrize("alphabet", ["capitals", "cyrillic", "digits"])
def test_a_value_that_is_not_shown_names_no_choice(alphabet, value):
    for form in ("mcq", "several"):
        variant = lettered(form, alphabet, CITIES[:4])
        said = [variant.labels[0], value] if form == "several" else value
        verdict = graded(variant, json.dumps({"answer": said}))
        assert verdict.prediction == -1 and not verdict.selected and not verdict.correct
    assert graded(lettered("tfq", "capitals", ("Yes", "No")), json.dumps({"answer": value})).prediction == -1


def test_an_empty_list_selects_nothing_and_is_wrong():
    verdict = graded(lettered("several", "capitals", CITIES), '{"answer": []}')
    assert (verdict.prediction, verdict.selected, verdict.correct) == (-1, (), False)


@pytest.mark.parametrize("finish", ["length", "max_tokens", None, "stop"])
def test_a_whole_object_is_read_whatever_ended_the_reply(finish):
    assert graded(lettered("mcq", "cyrillic", CITIES), '{"answer": "Б"}', finish=finish).prediction == 1


@pytest.mark.parametrize(
    "reply",
    [
        'The answer: {"answer": "B"}', '{"answer": "B"} or {"answer": "C"}', '{"answer": "B", "why": "it is"}',
        '{"answer": "A", "answer": "B"}', '{"answer": {"answer": "B"}}', '{"answer": [["A"]]}', '{"answer": 1}',
        '{"answer": ["A", 2]}', '{"answer": "B"', '{"Answer": "B"}', '["A"]', '"B"', "", "B", '{"answer": null}',
        '{"answer": ' + "[" * 100_000, '{"answer": "' + "\\" * 99_999, '<think>{"answer": "B"}', '{"answer": "\\ud8"}',
    ],
)  # fmt: skip
def test_any_other_reply_is_none(reply):
    assert constrained_answer(reply) is None


# ---- rules that cannot read it


READERS = {"careful", "lenient", "tolerant", "last_line", "selected"}


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_rule_that_cannot_read_an_object_is_refused(rule):
    if rule in READERS:
        assert Asking(parse=rule, constrain=True).constrain
    else:
        with pytest.raises(CoraError, match="does not read a constrained reply"):
            Asking(parse=rule, constrain=True)
        Asking(parse=rule)


@pytest.mark.parametrize("form, rule", [("mcq", "careful"), ("several", "selected"), ("tfq", "yes_no")])
def test_a_mapping_names_a_rule_for_each_form(form, rule):
    assert Asking(parse={form: rule}, constrain=True).constrain
    for wrong in ("first_token", "first_character", "exact_number"):
        with pytest.raises(CoraError, match=f"rule {wrong!r} does not read .* {form}"):
            Asking(parse={form: wrong}, constrain=True)
    assert Asking(parse={form: rule, "lfgq": "exact_number"}, constrain=True).constrain
    assert Asking(parse={"mcq": careful, form: RULE_OF_FORM[form]}, constrain=True).constrain


def test_a_rule_of_ones_own_that_reads_objects_is_taken():
    def own(reply, choices):
        return "ABCDE".find(json.loads(reply)["answer"])

    def shy(reply, choices):
        return json.loads(reply)["choice"]

    assert Asking(parse=own, constrain=True).constrain
    with pytest.raises(CoraError, match="rule 'shy' does not read"):
        Asking(parse=shy, constrain=True)
