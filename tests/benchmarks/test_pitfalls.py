"What a benchmark holds that decides scores unseen: the warnings, their options, and the numbers with and without."

import warnings

import pytest
from conftest import SHARED

from cora_nb.benchmarks.load import load_benchmark, load_shots, write_benchmark
from cora_nb.benchmarks.pitfalls import BenchmarkWarning, _answer_twice, _constant_place, has_nota, says_none
from cora_nb.core import CoraError, Question
from cora_nb.metrics.scoring import score
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.results import values_of
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

HUB = SHARED / "data" / "hub"
needs_hub = pytest.mark.skipif(not HUB.is_dir(), reason=f"the real benchmarks are not at {HUB}")


def load(tmp_path, questions, **options):
    "What `load_benchmark` returns for these questions in a file, and what it warns of."
    path = write_benchmark(questions, tmp_path / "mine.jsonl")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = load_benchmark("mine", path=path, **options)
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
    with pytest.warns(BenchmarkWarning, match="190 of 14042 .* in 37 of them .* variants of 11 questions"):
        whole = load_benchmark("mmlu", path=HUB)
    with pytest.warns(BenchmarkWarning, match="left out 190 of 14042"):
        without = load_benchmark("mmlu", path=HUB, existing_nota="skip")
    own = [q for q in whole if has_nota(q)]
    assert without == [q for q in whole if not has_nota(q)] and len(own) == 190 and len(without) == 13_852
    right = [q for q in own if says_none(q.choices[q.answer])]
    twice = [q for q in whole if _answer_twice(q)]
    assert (len(right), len(twice), sum(map(has_nota, twice))) == (37, 11, 7)
    shown = {v.question_id for v in make_variants([*own, *twice[:0]]) if v.choices.count(v.choices[v.answer]) > 1}
    assert shown == {q.id for q in twice if has_nota(q)}
    reader = scores(Reader(), own)
    assert reader["MCQA"] == 1 and round(reader["CoRA"], 3) == 0.805  # it knows all 190
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
    always_b = [Question(f"q{i}", "Which?", tuple("abcd"), 1) for i in range(40)]
    found, said = load(tmp_path, always_b)
    assert found == always_b and len(said) == 1 and "THE RIGHT CHOICE IS B IN 40 OF 40 QUESTIONS" in said[0]
    assert "gets MCQA 1.00" in said[0] and "shuffle_original=True (--shuffle_original)" in said[0]
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
        shuffled = load_benchmark("truthfulqa", path=HUB, shuffle_original=True)
        for name in ("medqa", "arc", "csqa"):
            load_benchmark(name, path=HUB)
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
        assert load_benchmark("mine", path=tmp_path / "mine.csv", limit=19)
        assert load_benchmark("mine", path=tmp_path / "mine.csv", shuffle_original=True)[-1].n_choices == 4
    for suffix in ("csv", "xlsx"):
        frame = pandas.read_csv(tmp_path / "mine.csv")  # "None" becomes a missing value ...
        getattr(frame, "to_csv" if suffix == "csv" else "to_excel")(
            tmp_path / f"again.{suffix}", index=False
        )  # nothing
        with pytest.warns(
            BenchmarkWarning, match=r"1 with fewer choices than the 4 of nearly .*: again-20 \(3\); was a"
        ):
            load_benchmark("again", path=tmp_path / f"again.{suffix}", shuffle_original=True)


def test_questions_of_many_lengths_are_not_warned_of(tmp_path):
    several = [Question(f"q{i}", "Which?", tuple("abcd"[: 2 + i % 3]), i % 2) for i in range(60)]
    assert load(tmp_path, several)[1] == []
    assert load(tmp_path, [*mixed(8), Question("q8", "Which?", ("a", "b"), 1)])[1] == []  # too few to say
    longer = [*mixed(20), Question("long", "Which?", tuple("abcde"), 1)]
    assert load(tmp_path, longer)[1] == []


# ---------------------------------------------------------------- nearly all refused


def test_nearly_all_rows_refused(tmp_path):
    def file(n_bad, n_good):
        lines = [f"Which is {i}?,yes,no,yes\n" for i in range(n_bad)] + [f"Is it {i}?,A,B,A\n" for i in range(n_good)]
        (tmp_path / "mine.csv").write_text("question,A,B,answer\n" + "".join(lines))
        return tmp_path / "mine.csv"

    with pytest.warns(BenchmarkWarning), pytest.raises(CoraError) as caught:
        load_benchmark("mine", path=file(95, 5), on_bad="skip")
    assert "mine.csv: 95 of 100 rows were refused, so the columns probably mean something else" in str(caught.value)
    assert "row 1, id 'mine-1', answer: the answer must be one of the letters A to B" in str(caught.value)
    with pytest.warns(BenchmarkWarning, match="dropped 9 malformed rows"):
        assert len(load_benchmark("mine", path=file(9, 1), on_bad="skip")) == 1
