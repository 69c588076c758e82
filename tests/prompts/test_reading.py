"""The default rule in 22 languages: sentences, hostile replies, what is not said, bytes, letters alike, and time."""

import json
import random
import time
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import LETTERS, CoraError, Question, data_path
from cora_nb.forms import ALPHABETS, Variant, Wording
from cora_nb.prompts import languages
from cora_nb.prompts.labels import apply_rule
from cora_nb.prompts.languages import LANGUAGES, ROLES, add_language, plain, vocabulary
from cora_nb.prompts.letters import last_line, parse, rules_by_form
from cora_nb.prompts.reading import NOT_SHOWN, UNREAD, careful
from cora_nb.respondents.protocol import Reply
from cora_nb.responses.columns import grade_reply
from helpers import slow_after

CITIES = ("Sydney", "Canberra", "Melbourne", "Perth")
ODD = ("zumba", "vorkel", "plimt", "graxo", "tenvi")  # texts of choices that occur in no sentence
SAID = json.loads(data_path("replies", "statements.json").read_text(encoding="utf-8"))


def rows(name):
    lines = data_path("replies", f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


REPORTS = {"h-it-18", "h-vi-18"}  # "according to the first author it is A": nothing in them is known to report


def outcome(row):
    found = careful(row["reply"], tuple(row["choices"]), row.get("labels"), row.get("finish"))
    if row["right"] < 0:
        return "heard" if found >= 0 else "silent"
    return "read" if found == row["right"] else "another" if found >= 0 else "unread"


def over_pairs(sentence):
    "What is read of a sentence, for all pairs of a letter that is meant and one that is not."
    pairs = [(x, y) for x in "ABCDE" for y in "ABCDE" if x != y]
    found = Counter()
    for x, y in pairs:
        i = careful(sentence.format(x=x, y=y), ODD)
        found["read" if i == LETTERS.index(x) else "unread" if i == UNREAD else "another"] += 1
    return found


@pytest.mark.parametrize("language", SAID["common"])
def test_the_common_sentences_of_each_language_are_read(language):
    assert len(SAID["common"][language]) >= 15
    for sentence in SAID["common"][language]:
        assert over_pairs(sentence) == {"read": 20}, sentence


def test_less_common_sentences_are_read_or_unread():
    found = sum((over_pairs(s) for said in SAID["less common"].values() for s in said), Counter())
    assert found["another"] == 0 and found["read"] >= 0.98 * found.total(), found


def test_a_language_without_a_row_is_unread_and_never_another_letter():
    found = sum((over_pairs(s) for s in SAID["without a row"]), Counter())
    assert found["another"] == 0 and found["unread"] > found["read"], found


@pytest.mark.parametrize("name, least", [("sentences", 0.9), ("hostile", 0.4)])
def test_replies_written_without_a_look_at_the_rule(name, least):
    every = rows(name)
    every = [row for row in every if row["kind"] != "letter with other text" and row["id"] not in REPORTS]
    found = Counter(map(outcome, every))
    assert found["another"] == found["heard"] == 0, [r["id"] for r in every if outcome(r) in ("another", "heard")]
    assert found["read"] >= least * (found["read"] + found["unread"]), found


def test_a_letter_with_the_text_of_another_choice_counts_as_the_letter():
    every = [row for row in rows("hostile") if row["kind"] == "letter with other text"]
    assert len(every) == 10 and careful("B. Sydney", CITIES) == 1
    assert all(outcome(row) in ("heard", "silent") for row in every)


def mixture(draw, stated):
    "A reply of sentences about other options, with a statement among them or without: what is meant, and the reply."
    x = draw.choice("ABCDE")
    others = [draw.choice([c for c in "ABCDE" if c != x]) for _ in range(8)]
    parts = []
    for i in range(draw.randint(1, 6)):
        z = others[i - 1] if others[i - 1] != others[i] else "Z"
        parts.append(draw.choice(SAID["nothing"]).format(y=others[i], z=z))
    if stated:
        said = draw.choice([s for sentences in SAID["common"].values() for s in sentences])
        parts.insert(draw.randint(0, len(parts)), said.format(x=x, y=others[7]).rstrip(".") + ".")
    return LETTERS.index(x) if stated else UNREAD, draw.choice(("\n", " ", "\n\n")).join(parts)


@pytest.mark.parametrize("n", [400, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("stated", [True, False])
def test_hostile_mixtures_never_give_another_letter(n, stated):
    draw, read = random.Random(n), 0
    for _ in range(n):
        meant, reply = mixture(draw, stated)
        found = careful(reply, ODD)
        assert found in (meant, UNREAD), (reply, found, meant)
        read += found == meant
    assert read >= 0.95 * n


def test_letters_are_read_alike():
    "A rule that is stricter with one letter gives every model a preference that it does not have."
    ten = tuple(f"{word}{word[::-1]}" for word in "zum vork plim grax tenv hosk wiff drel quon jask".split())
    every = [(language, s) for language, said in SAID["common"].items() for s in said]
    read = Counter()
    for language, sentence in every:
        for i, letter in enumerate(LETTERS[:10]):
            other = LETTERS[(i + 3) % 10]
            read[letter] += careful(sentence.format(x=letter, y=other), ten) == i
    assert set(read.values()) == {len(every)}, read


@pytest.mark.parametrize(
    "alphabet", ["12345", "АБВГД", "أبجده", "कखगघङ", "কখগঘঙ", "アイウエオ", "①②③④⑤", "กขคงจ", "PQRST"]
)
def test_other_labels(alphabet):
    for language, said in SAID["common"].items():
        for sentence in said[:4]:
            for i, label in enumerate(alphabet):
                reply = sentence.format(x=label, y=alphabet[(i + 2) % 5])
                assert careful(reply, ODD, labels=alphabet) in (i, UNREAD), reply
    for said in ("The answer is {}.", "{}", "({})", "{}.", "Answer: {}"):
        assert [careful(said.format(label), ODD, labels=alphabet) for label in alphabet] == [0, 1, 2, 3, 4]


SAME = [  # the same letters in other bytes
    ("Đáp án đúng là B", ["NFD"]),
    ("정답은 B입니다", ["NFD"]),
    ("Réponse\u202f: B", []),
    ("La réponse\u00a0est\u2009B.", ["NFD"]),
    ("\u200fالإجابة: B", []),
    ("The answer is \u200bB\u200b.", []),
    ("The\u2003answer\u2007is\u205fB", []),
    ("\ufeffB", []),
    ("答案：Ｂ", []),
    ("（Ｂ）", []),
    ("Ⓑ", []),
    ("𝐁", []),
    ("The answer is\u3000B。", []),
    ("Ba\u00adsed on this, the ans\u00adwer is B.", []),
]


@pytest.mark.parametrize("reply, forms", SAME)
def test_the_same_letters_in_other_bytes(reply, forms):
    import unicodedata

    assert careful(reply, CITIES) == 1
    for form in forms:
        assert careful(unicodedata.normalize(form, reply), CITIES) == 1


def test_texts_of_choices_in_other_bytes():
    import unicodedata

    choices = ("Hà Nội", "Đà Nẵng", "well-being", "−5", "a b")
    for i, choice in enumerate(choices):
        for form in ("NFC", "NFD"):
            assert careful(unicodedata.normalize(form, choice), choices) == i
            assert careful(choice, tuple(unicodedata.normalize(form, c) for c in choices)) == i
    assert careful("well\u2011being", choices) == 2 and careful("-5", choices) == 3
    assert careful("The answer is \u22125.", choices) == 3 and careful("a\u00a0b", choices) == 4


SIGNS = [
    ("init", "__init__", "_init", "init_"),
    ("P v Q", "~P v Q", "P v ~Q", "~P v ~Q"),
    ("100", "$100", "100%", "€100"),
    ("SELECT", "SELECT *", "SELECT **", "`SELECT`"),
    ("ab", "-ab", "ab!", "√ab"),
]


@pytest.mark.parametrize("choices", SIGNS)
@pytest.mark.parametrize("said", ["{}", "The answer is {}.", "Answer: {}", "**{}**", '"{}"', "The answer is {}"])
def test_signs_that_belong_to_a_choice(choices, said):
    for i, choice in enumerate(choices):
        assert careful(said.format(choice), choices) in (i, UNREAD), (said, choice)
    if said in ("{}", '"{}"', "Answer: {}"):
        assert [careful(said.format(choice), choices) for choice in choices] == [0, 1, 2, 3]


CHINESE = [  # the shapes of replies that judge options one by one, or explain after the answer
    "【答案】B 【解析】选项A错误,选项C错误。",
    "应选B,不选A。",
    "A选项错误,B选项正确,C选项错误,D选项错误。",
    "答案是B。选项A说的是河流,不正确。",
    "A错,B对,C错,D错。",
    "排除A、C、D,故选B。",
    "選項A不正確,選項B正確。",
    "本题选B。A项与题意不符。",
    "正确答案：B\n\n解析：A、C、D均不正确。",
]


@pytest.mark.parametrize("reply", CHINESE)
def test_chinese_replies_that_judge_options(reply):
    swap = {"A": "D", "D": "A"}
    assert careful(reply, ODD[:4]) == 1
    assert careful("".join(swap.get(c, c) for c in reply), ODD[:4]) == 1


@pytest.mark.parametrize(
    "reply",
    [
        "A única opção possível está na letra C.", "A Itália é um país. A resposta é a letra C.",
        "E' chiaro che la risposta è C.",
        "A\u0300 mon avis, la réponse est C.", "O item correto é C.", "Y la respuesta es C.", "A resposta é C.",
        "A. E. Housman wrote it. The answer is C.", "I think that the answer is C.", "À vrai dire, c'est C.",
        "A Programmable Logic Array has planes. The answer is (C).", "Answer: A ... I need to correct this. Answer: C",
        "A. It is big. Incorrect. B. It is old. Incorrect. The answer is (C).",
    ],
)  # fmt: skip
def test_a_first_word_of_one_letter_is_no_answer(reply):
    assert careful(reply, ODD) == 2


@pytest.mark.parametrize("finish", [None, "stop", "length"])
def test_a_label_that_was_not_shown_is_a_wrong_answer_and_not_unread(finish):
    for said in ("F", "(F)", "F. ", "**F**"):
        assert careful(said, ODD, finish=finish) == NOT_SHOWN, said
    assert careful("The answer is F.", ODD) == NOT_SHOWN == careful("Answer: (Z)", ODD)
    assert careful("Vitamin F is a name", ODD) == UNREAD
    shown = Variant(Question("q", "?", ODD, 0), "cora", "original", 0, ODD, 0, tuple(range(5)))
    for rule in ("careful", "first_token", "last_line"):
        verdict = grade_reply(shown, Reply("F"), rules_by_form(rule))
        assert (verdict.prediction, verdict.correct, verdict.parsed) == (-1, False, True), rule


CUT = [
    "Let me think. Option A",
    "The answer is B",
    "A. coli",
    "Well, the answer is B. But",
    "B is",
    "(A) rivers (B) vor",
]


@pytest.mark.parametrize("reply", CUT)
def test_a_thought_that_was_cut_gives_no_letter(reply):
    assert careful(reply, ("rivers", *ODD[1:]), finish="length") == UNREAD
    assert last_line(reply, ODD, finish="length") == UNREAD


def test_a_rule_is_told_labels_and_the_end_if_it_takes_them():
    told = []

    def mine(reply, choices, labels=None, finish=None):
        told.append((reply, labels, finish))
        return 0

    def plainly(reply, choices):
        told.append((reply, None, None))
        return 0

    v = Variant(Question("q", "?", CITIES, 0), "x", "d", 0, CITIES, 0, (0, 1, 2, 3), wording=Wording(alphabet="digits"))
    apply_rule(mine, "2", v, "length")
    apply_rule(plainly, "2", v, "length")
    assert told == [("2", tuple(ALPHABETS["digits"][:4]), "length"), ("B", None, None)]


def test_words_stand_once_in_a_row_and_words_with_two_roles_are_few():
    for language, row in LANGUAGES.items():
        words = [w for role in row if role != "question" for w in plain(row[role]).casefold().split()]
        assert not [w for w, n in Counter(words).items() if n > 1], language
    several = {w for w in vocabulary().several if w == w.casefold()}
    assert len(several) <= 45, sorted(several)  # look at what a new row changes before you raise this


def test_languages_are_added_with_roles_that_exist(monkeypatch):
    monkeypatch.setattr(languages, "LANGUAGES", {name: dict(row) for name, row in LANGUAGES.items()})
    for wrong in ({"noun": "svar"}, {"answer": " "}, {"answer": ["svar"]}):
        with pytest.raises(CoraError):
            add_language("sv", **wrong)
    vocabulary.cache_clear()
    assert set(ROLES) >= {role for row in LANGUAGES.values() for role in row}


pieces = st.sampled_from(
    ["A", "B", "(C)", "D.", "Z", "答案", "是", "не", "ответ", "La réponse est", "not", "wait", "?", "\n", " ", ",",
     "**", "\\boxed{", "}", '{"answer": ', '"', "<answer>", "</answer>", "zumba", "Question:",
     "É", "\u0301", "か。", "1", "の"]
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(pieces, max_size=25).map("".join), st.sampled_from([None, "length"]))
def test_any_text_is_taken_by_the_default_rule(reply, finish):
    assert -2 <= careful(reply, ODD, finish=finish) < 5
    assert -2 <= careful(reply, ODD[:4], labels="абвг", finish=finish) < 4


LONG = [  # written to hang
    "The answer is " * 7_000, "A, B, " * 16_000, "not A but " * 10_000, "\n" * 100_000, "\n A." * 25_000,
    "\u0301\u0316" * 50_000, "答案是" * 30_000, "I think that " * 8_000, "<answer>" * 12_000, '{"a' * 30_000,
    "A?" * 50_000,
    "(" * 100_000, "students say that " * 6_000, "A is wrong, " * 8_000, "1. What?\n" * 11_000, "Вопрос " * 14_000,
]  # fmt: skip


@pytest.mark.parametrize("reply", slow_after(3, LONG), ids=range(len(LONG)))
def test_long_replies_do_not_hang(reply):
    began = time.process_time()
    for said in (reply, f"{reply} The answer is B.", f"B\n\n{reply}", f"The answer is B. {reply}"):
        for known in ({}, {"finish": "length"}, {"labels": "12345"}):
            assert -2 <= careful(said, ODD, **known) < 5
    assert time.process_time() - began < 30  # tenths of a second; a pattern that looks back takes hours


def test_one_reading_everywhere():
    "The same reply under the names of the rule, by the function and in a graded row."
    v = Variant(Question("q", "?", CITIES, 1), "cora", "original", 0, CITIES, 1, (0, 1, 2, 3))
    for row in rows("sentences")[::7]:
        found = careful(row["reply"], CITIES)
        assert parse(row["reply"], CITIES) == max(found, -1)
        assert grade_reply(v, Reply(row["reply"]), rules_by_form("careful")).prediction == max(found, -1)


# ---- found by a stranger: choices whose texts are words of the table, explanations, lists that were cut, fields

TEXTS = [
    ("None of the above", "Canberra", "Neither of these", "All of the above"),
    ("No", "Yes", "Not known", "Only if it rains"),
    ("False, False", "True, False", "Wrong, Wrong", "Not wrong, Not wrong"),
    ("Wait and see", "Hold the medication", "Correction of the dose", "If needed, surgery"),
    ("Both A and B", "A", "C", "D or B"),
    ("E. coli", "B. F. Skinner", "A. Sydney", "C++"),
]
FORMS = ["({L}) {T}", "{L}) {T}", "{L}. {T}", "The answer is ({L}) {T}.", "The answer is {L}. {T}", "Answer: {L}) {T}",
         "**{L}. {T}**", "The correct answer is:\n\n**{L}. {T}**", "The answer is {L} ({T})."]  # fmt: skip


@pytest.mark.parametrize("choices", TEXTS)
@pytest.mark.parametrize("form", FORMS)
def test_a_label_before_its_own_text_is_read_whatever_the_text(form, choices):
    read = [careful(form.format(L=letter, T=text), choices) for letter, text in zip("ABCD", choices)]
    assert read == [0, 1, 2, 3]


def test_a_text_ends_where_it_ends_however_long_it_is_without_case():
    for choices in (("Straße", "Fluß", "Maß", "Fuß"), ("İzmir", "İznik", "Van", "Iğdır")):
        for i, text in enumerate(choices):
            other = "ABCD"[(i + 1) % 4]
            assert careful(f"{'ABCD'[i]}. {text}. Nicht {other}.", choices) == i, text


AFTER = [
    "By conservation of angular momentum the law must hold.", "The patient should wait two weeks.",
    "Use a Bonferroni correction.", "Sorry for the confusion.", "Sydney is not the capital.", "He felt sorry for her.",
    "El momento angular se conserva.", "Das Moment der Kraft ist null.", "Attendez deux semaines.",
    "Solving, we find $C(5)=0.6$.", "I hope this helps!", "(A) is larger, and (D) is in the west.", "A is wrong.",
]  # fmt: skip


@pytest.mark.parametrize("after", AFTER)
def test_an_explanation_after_a_statement_does_not_take_it_back(after):
    assert careful(f"The correct answer is B. {after}", CITIES) == careful(f"Answer: B\n\n{after}", CITIES) == 1


@pytest.mark.parametrize("after", ["That is not correct.", "Wait, no.", "This is wrong."])
def test_what_is_taken_back_is_unread(after):
    assert careful(f"The answer is B. {after}", CITIES) == UNREAD
    assert careful(f"The answer is B. {after} The answer is C.", CITIES) == 2


LISTS = [
    "A. Sydney: large city, not the capital.\n\nB. Canberra: this is", "A) Sydney - wrong\nB) Canberra",
    "A. Sydney\nB. Canberra\n", "A\nB\n", "Option A: Sydney is big.\nOption B: Canberra", "The answer is A, but wait",
    "A. Sydney is wrong because it", "### A. Sydney\nThis is incorrect be", "(A) Sydney (B) Canberra (C) Melb",
]  # fmt: skip


@pytest.mark.parametrize("reply", LISTS)
def test_of_a_list_that_was_cut_the_first_item_is_no_answer(reply):
    assert careful(reply, CITIES, finish="length") == UNREAD


@pytest.mark.parametrize("reply", ["A. Sydney B. Canberra C. Melbourne D. Perth", "A\nB\nC\nD"])
def test_a_list_is_no_answer(reply):
    assert careful(reply, CITIES) == UNREAD


def test_the_field_for_the_answer_is_told_from_others():
    for other in ("wrong_answer", "second_answer", "alternative", "worst_option"):
        assert careful(json.dumps({"answer": "B", other: "A"}), CITIES) == 1, other
        assert careful(json.dumps({other: "A", "correct_answer": "B"}), CITIES) == 1, other


@pytest.mark.parametrize(
    "reply", ["Hepatitis B is the most likely diagnosis.", "Drug B is the correct treatment.", "Vitamin C ist richtig.",
              "Choose A at random.", "We find C(5) = 3.", "Option A and option C are both correct.",
              "There is no way to know."],
)  # fmt: skip
def test_a_letter_that_belongs_to_a_name_or_a_formula_is_no_answer(reply):
    assert careful(reply, ("acyclovir", "ribavirin", "interferon", "lamivudine")) == UNREAD


def test_a_letter_in_a_box_is_a_label_whatever_the_choices_say():
    assert careful("C", tuple("HCNO")) == careful(r"\boxed{C}", tuple("HCNO")) == careful("**C**", tuple("HCNO")) == 2


def test_any_callable_is_a_rule():
    from dataclasses import dataclass
    from functools import partial, wraps

    @dataclass
    class Fixed:
        i: int

        def __call__(self, reply, choices):
            return self.i

    def wrapped(rule):
        @wraps(rule)
        def inner(reply, choices):
            return rule(reply, choices)

        return inner

    v = Variant(Question("q", "?", CITIES, 0), "cora", "original", 0, CITIES, 0, (0, 1, 2, 3))
    for rule, found in ((Fixed(2), 2), (wrapped(careful), 1), (partial(careful), 1), (lambda *given: 3, 3)):
        assert apply_rule(rule, "B", v, "length") == found
