"""Prompts against a slow rendering written out by hand, for every template, any text and any number of choices."""

import pytest
from hypothesis import given, strategies as st

from cora_nb.core import CoraError, LETTERS, Question
from cora_nb.forms import Variant
from cora_nb.prompts.templates import choose_shots
from cora_nb.prompts.templates import Prompt, TEMPLATES, Template, get_template, make_prompts

texts = st.one_of(
    st.sampled_from(
        [
            "$CHOICES$",
            "$QUESTION$ and $LETTERS$",
            "{question}",
            "{0} {}",
            r"\1 \g<0>",
            "%s %(a)s",
            "Answer: B",
            "a\n\nQuestion: b",
            "None",
        ]
    ),
    st.text(min_size=1).filter(str.strip),
)


@st.composite
def questions(draw, id="q", subject=None):
    choices = draw(st.lists(texts, min_size=2, max_size=26))
    return Question(id, draw(texts), tuple(choices), draw(st.integers(0, len(choices) - 1)), subject)


def as_variant(q, method="original", index=0):
    return Variant(q, "cora", method, index, q.choices, q.answer, tuple(range(q.n_choices)))


INSTRUCTION = (
    "Answer the following multiple choice question. The first line of your response should be of the following format: "
    "'LETTER' (without quotes), where LETTER is one of XXX (depending on the number of alternatives), "
    "followed by a step-by-step explanation."
)


def slow_text(name, q, shots):
    "What the prompt must be, piece by piece."
    letters = LETTERS[: len(q.choices)]
    out = {
        "cora": INSTRUCTION.replace("XXX", letters) + "\n\n",
        "cat": INSTRUCTION.replace("XXX", "ABCD"),
        "bare": "",
        "continuation": "",
        "li2024": "",
        "reasoned": "Answer the following multiple choice question. Think step by step. Then write your answer on the "
        f"last line, as 'Answer: LETTER' (without quotes), where LETTER is one of {letters}.\n\n",
    }[name]
    for s in [*shots, q]:
        out += (
            {"li2024": "Please select a correct option.\n", "continuation": ""}.get(name, "Question: ") + s.text + "\n"
        )
        if name == "cora":
            out += "Choices: "
        for i, choice in enumerate(s.choices):
            out += LETTERS[i] + ". " + choice + "\n"
        if name == "reasoned":  # it thinks before it answers
            out = out[:-1] + ("" if s is q else "\n\nAnswer: " + LETTERS[s.answer] + "\n\n")
            continue
        out += "Only one option can be selected. No explanation is allowed." if name == "li2024" else "Answer:"
        if s is not q:
            out += {"cat": "", "li2024": "\n"}.get(name, " ") + LETTERS[s.answer] + "\n\n"
    return out


@given(questions(), st.lists(questions(id="shot"), max_size=3), st.sampled_from(list(TEMPLATES)))
def test_text_is_the_slow_rendering(q, shots, name):
    assert Prompt(as_variant(q), template=name, shots=shots).text == slow_text(name, q, shots)


@given(questions(), st.lists(questions(id="shot"), max_size=3), st.sampled_from(list(TEMPLATES)))
def test_messages_hold_the_same_words_in_turns(q, shots, name):
    prompt = Prompt(as_variant(q), template=name, shots=shots)
    messages = prompt.messages
    assert [m["role"] for m in messages] == ["user", "assistant"] * len(shots) + ["user"]
    said = "Answer: " if name == "reasoned" else ""  # as it asks the model to say it
    assert [m["content"] for m in messages[1::2]] == [said + LETTERS[s.answer] for s in shots]
    gap = TEMPLATES[name].before_letter.removesuffix(said)
    joined = "".join(m["content"] if m["role"] == "user" else f"{gap}{m['content']}\n\n" for m in messages)
    assert joined == prompt.text
    if not shots:
        assert messages == [{"role": "user", "content": prompt.text}]


def test_messages_are_fresh_each_time():
    prompt = Prompt(as_variant(Question("q", "?", ("a", "b"), 0)))
    prompt.messages[0]["content"] = "spoilt"
    assert prompt.messages[0]["content"] == prompt.text


def pool_of(sizes):
    "A pool with that many questions of each subject."
    return [
        Question(f"{subject}-{j}", f"{subject} {j}?", ("a", "b"), j % 2, subject)
        for subject, n in sizes.items()
        for j in range(n)
    ]


@given(
    st.dictionaries(st.sampled_from("stuv"), st.integers(1, 6), min_size=1),
    st.sampled_from(["s", "t", None, "other"]),
    st.integers(0, 26),
    st.data(),
)
def test_shots_are_the_first_of_the_own_subject_and_never_the_question(sizes, subject, k, data):
    pool = pool_of(sizes)
    member = data.draw(st.sampled_from([None, *pool]))
    q = member if member is not None else Question("new", "new?", ("a", "b"), 0, subject)
    if data.draw(st.booleans()):
        q = Question("another id", q.text + " ", q.choices, q.answer, q.subject)
    own = [s for s in pool if s.subject == q.subject] if q.subject is not None else []
    candidates = [s for s in (own or pool) if s.id != q.id and s.text.strip() != q.text.strip()]
    if k > len(candidates):
        with pytest.raises(CoraError, match=f"needs {k} shots and the pool has {len(candidates)}"):
            choose_shots(pool, q, k)
    else:
        assert choose_shots(pool, q, k) == tuple(candidates[:k])


def test_all_variants_of_a_question_see_the_same_shots_and_order_is_kept():
    pool = pool_of({"s": 5, "t": 5})
    variants = [
        as_variant(Question(f"q{i}", f"text {i}", ("a", "b", "c"), 0, "st"[i % 2]), index=j)
        for i in range(4)
        for j in range(3)
    ]
    prompts = make_prompts(variants, "bare", shots=pool, k=5, trials=2)
    assert [(p.variant, p.trial) for p in prompts] == [(v, t) for v in variants for t in range(2)]
    assert all([s.subject for s in p.shots] == [p.variant.subject] * 5 for p in prompts)
    scattered = make_prompts(
        variants[::3] + variants[1::3], "bare", shots=pool, k=5
    )  # a question's variants need not be neighbours
    assert [p.text for p in scattered] == [p.text for p in prompts[::6] + prompts[2::6]]


def test_two_pools_are_not_confused():
    q = as_variant(Question("q", "?", ("a", "b"), 0))
    one, two = (Question("s", text, ("a", "b"), 0) for text in ("one", "two"))
    assert "one" in Prompt(q, shots=(one,)).text and "two" in Prompt(q, shots=(two,)).text


@pytest.mark.parametrize(
    "options, says",
    [
        (
            dict(template="corra"),
            "template must be one of bare, cat, continuation, cora, li2024, reasoned, or module:name, got 'corra'",
        ),
        (dict(template=None), "or module:name, got None"),
        (dict(template=["cora"]), "template must be one of"),
        (dict(k=-1), "k must be a whole number of 0 or more, got -1"),
        (dict(k=2.5), "k must be a whole number of 0 or more, got 2.5"),
        (dict(k="5"), "k must be a whole number of 0 or more, got '5'"),
        (dict(k=5), "k=5 needs a pool"),
        (dict(k=5, shots=[]), "k=5 needs a pool"),
        (dict(k=5, shots=pool_of({"s": 4})), "question 'q' needs 5 shots and the pool has 4 besides"),
        (dict(trials=0), "trials must be a whole number of 1 or more, got 0"),
        (dict(trials=True), "trials must be a whole number of 1 or more, got True"),
    ],
)
def test_mistakes_get_one_clear_line(options, says):
    with pytest.raises(CoraError) as caught:
        make_prompts([as_variant(Question("q", "?", ("a", "b"), 0))], **options)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_a_template_of_ones_own():
    mine = Template("mine", instruction="Pick one of $LETTERS$.", after_instruction="\n")
    prompt = make_prompts([as_variant(Question("q", "$LETTERS$?", ("a", "b"), 0))], template=mine)[0]
    assert prompt.text == "Pick one of AB.\nQuestion: $LETTERS$?\nA. a\nB. b\nAnswer:"
    assert get_template(prompt.template).name == "mine"


def test_a_large_benchmark_with_shots_by_subject():
    variants = [
        as_variant(Question(f"q{i}", "word " * 30, ("one", "two", "three", "four"), i % 4, f"s{i % 57}"), index=j)
        for i in range(1400)
        for j in range(20)
    ]
    pool = pool_of({f"s{i}": 5 for i in range(57)})
    assert sum(len(p.text) for p in make_prompts(variants, shots=pool, k=5)) > 28_000 * 600
