"What a benchmark holds that decides scores unseen: the warnings, their options, and the numbers with and without."

import warnings

import pytest
from conftest import SHARED

from cora_nb.benchmarks.load import load_benchmark, load_shots, read_benchmark, write_benchmark
from cora_nb.benchmarks.phrases import says_none
from cora_nb.benchmarks.pitfalls import BenchmarkWarning, _answer_twice, _constant_place, has_nota, warn_of_pitfalls
from cora_nb.benchmarks.samples import Part
from cora_nb.core import CoraError, Question
from cora_nb.metrics.scoring import score
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.results import values_of
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

HUB = SHARED / "data" / "hub"
needs_hub = pytest.mark.skipif(not HUB.is_dir(), reason=f"the real benchmarks are not at {HUB}")


def load(tmp_path, questions, **fields):
    "What `load_benchmark`, or a command with a `Part`, makes of these questions in a file, and what it warns of."
    path = write_benchmark(questions, tmp_path / "mine.jsonl")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if fields:
            loaded, part = read_benchmark("mine", path=path), Part(**fields)
            assert not said, "reading warns"
            found = part.of(loaded.questions, "mine")
            loaded.say(found, part.existing_nota)
        else:
            found = load_benchmark("mine", path=path)
    assert all(w.category is BenchmarkWarning for w in said)
    assert all(w.filename == __file__ for w in said), "the warning does not point to the caller"
    return found, [str(w.message) for w in said]


def mixed(n, *choices):
    "Questions with the right choice in every place."
    return [Question(f"q{i}", f"Which is {i}?", choices or ("a", "b", "c", "d"), i % 4) for i in range(n)]


OWN = [
    Question("n1", "Which?", ("a", "b", "c", "none of these."), 1),
    Question("n2", "Which?", ("a", "b", "c", "None of the above"), 3),
    Question("n3", "Which?", ("a", "b", "c", "None of the above."), 3),
]


# ---------------------------------------------------------------- None of the above


def test_existing_nota(tmp_path):
    questions = [*mixed(20), *OWN]
    found, said = load(tmp_path, questions)
    assert found == questions and len(said) == 1
    assert "3 of 23 questions have a choice like 'None of the above' of their own, in 2 of them" in said[0]
    assert "variants of 1 questions show the right choice's text twice" in said[0]
    assert load(tmp_path, questions, existing_nota="warn") == (found, said)
    assert load(tmp_path, questions, existing_nota="keep") == (questions, [])
    found, said = load(tmp_path, questions, existing_nota="skip")
    assert found == questions[:20]
    assert said == ["mine: left out 3 of 23 questions with a choice like 'None of the above' of their own"]
    assert load(tmp_path, mixed(20), existing_nota="skip") == (mixed(20), [])


def test_what_is_not_asked_is_not_warned_of(tmp_path):
    assert load(tmp_path, [*mixed(20), *OWN], limit=20)[1] == []
    assert load(tmp_path, [*OWN, *mixed(20)], limit=20, existing_nota="skip")[0] == mixed(20)  # the first 20 that stay


def test_only_questions_with_their_own(tmp_path):
    with pytest.raises(CoraError, match="every question has a choice like 'None of the above' of its own"):
        load(tmp_path, OWN, existing_nota="skip")


class Reader:
    "Knows everything, and takes the first of those choices that say what the right one says."

    name = "reader"

    def describe(self):
        return {"respondent": "reader"}

    def request(self, prompt):
        return {"text": prompt.text}

    async def answer(self, prompts):
        for i, prompt in enumerate(prompts):
            v = prompt.variant
            right = v.choices[v.answer]
            alike = [c == right or (says_none(c) and says_none(right)) for c in v.choices]
            yield i, Reply(v.labels[alike.index(True)])


def scores(respondent, questions):
    return values_of(score(evaluate(respondent, make_variants(questions), progress=False)))


@pytest.mark.slow
@needs_hub
def test_mmlu_with_and_without():
    with pytest.warns(BenchmarkWarning, match="191 of 14042 .* in 37 of them .* variants of 11 questions"):
        whole = load_benchmark("mmlu", path=HUB)
    with pytest.warns(BenchmarkWarning, match="left out 191 of 14042"):
        without = Part(existing_nota="skip").of(whole, "mmlu")
    own = [q for q in whole if has_nota(q)]
    assert without == [q for q in whole if not has_nota(q)] and len(own) == 191 and len(without) == 13_851
    right = [q for q in own if says_none(q.choices[q.answer])]
    twice = [q for q in whole if _answer_twice(q)]
    assert (len(right), len(twice), sum(map(has_nota, twice))) == (37, 11, 7)
    shown = {v.question_id for v in make_variants([*own, *twice[:0]]) if v.choices.count(v.choices[v.answer]) > 1}
    assert shown == {q.id for q in twice if has_nota(q)}
    reader = scores(Reader(), own)
    assert reader["MCQA"] == 1 and round(reader["CoRA"], 3) == 0.806  # it knows all 191
    assert scores(Reader(), right)["CoRA"] == 0
    rest = [q for q in without if not _answer_twice(q)][::50]
    assert scores(Reader(), rest)["CoRA"] == 1


@needs_hub
def test_examples_are_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert any(map(has_nota, load_shots("mmlu", path=HUB)))


# ---------------------------------------------------------------- the place of the right choice


def test_constant_place(tmp_path):
    always_b = [Question(f"q{i}", f"Which is {i}?", tuple("abcd"), 1) for i in range(40)]
    found, said = load(tmp_path, always_b)
    assert found == always_b and len(said) == 1 and "THE RIGHT CHOICE IS B IN 40 OF 40 QUESTIONS" in said[0]
    assert "gets MCQA 1.00" in said[0] and "Part(shuffle_original=True) (--shuffle_original)" in said[0]
    found, said = load(tmp_path, always_b, shuffle_original=True)
    assert said == [] and len({q.answer for q in found}) == 4
    assert load(tmp_path, always_b[:19])[1] == []  # too few to say
    assert load(tmp_path, mixed(40))[1] == []


def test_nearly_constant_place_and_the_last_one():
    last = [Question(f"q{i}", "Which?", tuple("abcdef"[: 2 + i % 4]), 1 + i % 4) for i in range(40)]
    assert _constant_place(last) == ("the last choice", 40)
    nearly = [Question(f"q{i}", "Which?", tuple("abc"), int(i < 4)) for i in range(40)]
    assert _constant_place(nearly) == ("A", 36)
    assert _constant_place([*nearly[:4], *nearly[:36]]) is None


@pytest.mark.slow
@needs_hub
def test_truthfulqa_with_and_without():
    with pytest.warns(BenchmarkWarning, match="truthfulqa: THE RIGHT CHOICE IS A IN 817 OF 817 QUESTIONS"):
        published = load_benchmark("truthfulqa", path=HUB)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = read_benchmark("truthfulqa", path=HUB)
        shuffled = Part(shuffle_original=True).of(loaded.questions)
        loaded.say(shuffled)
        load_benchmark("arc", path=HUB)
    likes_a = SimulatedRespondent(knows=0, position=(100, 1))
    before, after = scores(likes_a, published), scores(likes_a, shuffled)
    assert (round(before["MCQA"], 2), round(after["MCQA"], 2)) == (0.97, 0.24)
    assert before["CoRA"] < 0.04


# ---------------------------------------------------------------- fewer choices


def test_a_choice_that_got_lost(tmp_path):
    pandas = pytest.importorskip("pandas")
    rows = [dict(question=f"How many of {i}?", A="0", B="1", C="2", D="3", answer="A") for i in range(19)]
    rows.append(dict(question="How many of them?", A="1", B="2", C="3", D="None", answer="B"))
    pandas.DataFrame(rows).to_csv(tmp_path / "mine.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = read_benchmark("mine", path=tmp_path / "mine.csv")
        loaded.say(shuffled := Part(shuffle_original=True).of(loaded.questions))
        assert shuffled[-1].n_choices == 4
    for suffix in ("csv", "xlsx"):
        frame = pandas.read_csv(tmp_path / "mine.csv")  # "None" becomes a missing value ...
        getattr(frame, "to_csv" if suffix == "csv" else "to_excel")(
            tmp_path / f"again.{suffix}", index=False
        )  # nothing
        with pytest.warns(
            BenchmarkWarning, match=r"1 with fewer choices than the 4 of nearly .*: again-20 \(3\); was a"
        ):
            load_benchmark("again", path=tmp_path / f"again.{suffix}")


def test_questions_of_many_lengths_are_not_warned_of(tmp_path):
    several = [Question(f"q{i}", f"Which is {i}?", tuple("abcd"[: 2 + i % 3]), i % 2) for i in range(60)]
    assert load(tmp_path, several)[1] == []
    assert load(tmp_path, [*mixed(8), Question("q8", "Which?", ("a", "b"), 1)])[1] == []  # too few to say
    longer = [*mixed(20), Question("long", "Which?", tuple("abcde"), 1)]
    assert load(tmp_path, longer)[1] == []


# ---------------------------------------------------------------- nearly all refused


def test_nearly_all_rows_refused(tmp_path):
    def file(n_bad, n_good):
        lines = [f"Which is {i}?,,no,B\n" for i in range(n_bad)] + [f"Is it {i}?,yes,no,A\n" for i in range(n_good)]
        (tmp_path / "mine.csv").write_text("question,A,B,answer\n" + "".join(lines))
        return tmp_path / "mine.csv"

    with pytest.raises(CoraError) as caught:
        load_benchmark("mine", path=file(95, 5), on_bad="skip")
    assert "mine.csv: 95 of 100 rows were refused, so the columns probably mean something else" in str(caught.value)
    assert "row 1, id 'mine-1', A to B: choice A must be a non-empty text, got ''" in str(caught.value)
    with pytest.warns(BenchmarkWarning, match="dropped 9 malformed rows"):
        assert len(load_benchmark("mine", path=file(9, 1), on_bad="skip")) == 1


@pytest.mark.parametrize("on_bad", ["raise", "skip"])
def test_most_answers_cannot_be_read(on_bad, tmp_path):
    lines = [f"Which is {i}?,yes,no,perhaps\n" for i in range(11)] + [f"Is it {i}?,yes,no,A\n" for i in range(10)]
    (tmp_path / "mine.csv").write_text("question,A,B,answer\n" + "".join(lines))
    with pytest.raises(CoraError, match="mine.csv, row 1, id 'mine-1', answer: most answers are neither.*'perhaps'"):
        load_benchmark("mine", path=tmp_path / "mine.csv", on_bad=on_bad)


# ---------------------------------------------------------------- all of them


def told(questions, nota="warn"):
    "What `warn_of_pitfalls` says of these questions."

    def loader():
        warn_of_pitfalls("mine", questions, nota)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        loader()
    assert all(w.category is BenchmarkWarning and w.filename == __file__ for w in said)
    return [str(w.message) for w in said]


def distinct(n, *choices, text="Which is number {}?", answer=None):
    "Questions with different texts, the right choice in every place."
    choices = choices or ("alpha", "beta", "gamma", "delta")
    return [Question(f"q{i}", text.format(i), choices, i % 4 if answer is None else answer) for i in range(n)]


SOUND = distinct(40)


def test_sound_questions_are_not_warned_of():
    assert told(SOUND) == [] and told(SOUND[:1]) == [] and told([]) == []


def test_the_old_warnings_have_their_words():
    said = told([*SOUND, *OWN])
    assert said[0].startswith(
        "mine: 3 of 43 questions have a choice like 'None of the above' of their own, in 2 of them"
    )
    words = (
        "variants of 1 questions show the right choice's text twice. Part(existing_nota='skip') (--existing_nota skip) "
    )
    assert f"{words}leaves the 3 out" in said[0]
    assert len(said) == 1 and told([*SOUND, *OWN], "keep") == told([*SOUND, *OWN], "skip") == []
    (said,) = told(distinct(40, answer=1))
    assert "THE RIGHT CHOICE IS B IN 40 OF 40 QUESTIONS" in said
    assert "Part(shuffle_original=True) (--shuffle_original) gives" in said
    (said,) = told([*SOUND, Question("x", "Which has three?", ("a", "b", "c"), 0)])
    assert "of 41 questions, 1 with fewer choices than the 4 of nearly all others: x (3)" in said
    assert "keep_default_na=False" in said


@pytest.mark.parametrize(
    "choice", ["A and B only", "All of the above", "Both A and C", "Neither (a) nor (b)", "以上都对"]
)
def test_choices_that_refer_to_others(choice):
    (said,) = told([*SOUND, Question("x", "Which of these?", ("a", "b", "c", choice), 3)])
    assert said.startswith(f"mine: choices refer to other choices in 1 of 41 questions (x), such as {choice!r}")


def test_the_right_choice_twice():
    questions = [
        Question("x", "Which?", ("iron", "neon", " iron", "boron"), 0),
        Question("y", "Who?", ("a", "b", "b"), 0),
    ]
    (said,) = [s for s in told([*SOUND, *questions]) if "fewer" not in s]
    assert said.startswith("mine: the right choice's text stands twice in 1 of 42 questions (x)")


def test_a_space_that_tells():
    texts = [(" b", 1), ("b ", 1), ("b\n", 1), ("b", 1), (" b", 0)]
    questions = [Question(f"s{i}", f"Is it {i}?", ("a", text, "c", "d"), k) for i, (text, k) in enumerate(texts)]
    questions.append(Question("all", "Is it all?", (" a", " b", " c", " d"), 1))
    (said,) = told([*SOUND, *questions])
    assert said.startswith("mine: only the right choice begins or ends with a space in 3 of 46 questions (s0, s1, s2)")


def test_lost_texts():
    texts = ["N/A", "nan", "#NAME?", "#REF!", "NaN", "#DIV/0!", "None", "null", "NA", "nano"]
    questions = [Question(f"l{i}", f"Is it {i}?", ("a", text, "c", "d"), i % 4) for i, text in enumerate(texts)]
    (said,) = told([*SOUND, *questions])
    assert "in 6 of 50 questions (l0, l1, l2, ...)" in said and "'#NAME?': 1" in said and "'NaN': 1" in said


def test_questions_that_repeat():
    copies = [Question("c1", SOUND[0].text, SOUND[0].choices, 0), Question("c2", SOUND[1].text, SOUND[1].choices, 3)]
    (said,) = told([*SOUND, *copies])
    assert said.startswith("mine: 2 questions repeat another (text and choices are equal; c1 = q0, c2 = q1)")
    assert ", 1 of them with another right choice: each counts again" in said
    (said,) = told([*SOUND, copies[0], Question("c3", SOUND[0].text, SOUND[0].choices[::-1], 3)])
    assert said.startswith("mine: 1 questions repeat another") and "another right choice" not in said


@pytest.mark.parametrize(
    "form", ["{}\nA) {}\nB) {}", "{} (A){} (B){}", "{}\n{}\n{}", "{} 1. {} 2. {}", "{} A: {}, B: {}"]
)
def test_a_text_that_holds_its_choices(form):
    def question(i, form):
        return Question(f"h{i}", form.format(f"Which is {i}?", "iron", "neon"), ("iron", "neon"), i % 2)

    questions = [question(i, form if i < 2 else "{} One of {} and {}.") for i in range(10)]
    (said,) = told(questions)
    assert said.startswith("mine: the text of 2 of 10 questions (h0, h1) holds its choices already")
    assert told(questions[1:]) == [] and told([question(i, "{} {} or {}?") for i in range(10)]) == []


def test_questions_of_another_language():
    (said,) = told(distinct(40, text="下列第{}项元素中哪一种是金属？"))
    assert said.startswith(
        "mine: the questions look Chinese: nota='以上都不对' (--nota '以上都不对') words None of the above"
    )
    (said,) = told(
        distinct(40, text="Welche der folgenden Aussagen zu {} ist richtig und wird von der Forschung belegt?")
    )
    assert "the questions look German: nota='Keine der genannten' (--nota 'Keine der genannten') words" in said


def test_all_at_once_and_in_order():
    questions = [
        *distinct(40, answer=0),
        Question("x1", "Which of these?", ("N/A", "b", "None of these", "All of these"), 0),
        Question("x2", "Which of those?", (" b", "b", "c", "d"), 0),
        Question("x3", "Which of those?", (" b", "b", "c", "d"), 0),
        Question("x4", "Which of three?", ("b", "c", "d"), 0),
    ]
    said = told(questions)
    words = ["of their own", "refer to", "stands twice", "a space", "an empty cell", "repeat", "THE RIGHT", "fewer"]
    assert len(said) == len(words) and all(word in line for word, line in zip(words, said))
    with pytest.raises(CoraError, match="nota must be one of keep, skip, warn, got 'leave'"):
        warn_of_pitfalls("mine", questions, "leave")


@needs_hub
def test_mmlu():
    questions = read_benchmark("mmlu", path=HUB).questions
    said = " ".join(told(questions))
    for found in (
        "191 of 14042",
        "in 467 of 14042",
        "twice in 4 of 14042",
        "'#NAME?': 1",
        "105 questions repeat another",
    ):
        assert found in said, found
    assert "look" not in said and "PLACE" not in said
