"Part of a benchmark: samples that anybody can repeat, subjects, and choices in a random order."

import json
from collections import Counter
from dataclasses import replace

import pytest
from conftest import SHARED
from hypothesis import given
from hypothesis import strategies as st

from cora_nb.benchmarks.load import load_benchmark, read_benchmark
from cora_nb.benchmarks.pitfalls import BenchmarkWarning
from cora_nb.benchmarks.samples import Part, of_subjects, sample_questions, shuffle_choices
from cora_nb.core import CoraError, Question

HUB = SHARED / "data" / "hub"
needs_hub = pytest.mark.skipif(not HUB.is_dir(), reason=f"the real benchmarks are not at {HUB}")

POOL = [
    Question(f"q{i}", f"How many is {i}?", (str(i), str(i + 1), str(i + 2)), 0, ("low", "high, higher")[i // 100])
    for i in range(200)
]


@pytest.mark.slow
@given(n=st.integers(1, 200), seed=st.integers(0, 5), order=st.randoms(use_true_random=False))
def test_a_sample_depends_on_what_the_questions_say(n, seed, order):
    whole = sample_questions(POOL, n, seed)
    assert len(whole) == n and whole == [q for q in POOL if q in whole]  # in the order of the file
    assert set(sample_questions(POOL, max(1, n // 2), seed)) <= set(whole)
    mixed = [replace(q, id=f"other-{i}") for i, q in enumerate(POOL)]
    order.shuffle(mixed)
    assert {q.text for q in sample_questions(mixed, n, seed)} == {q.text for q in whole}
    fewer = [q for q in POOL if q in whole or order.random() < 0.5]  # without some that were not drawn
    assert sample_questions(fewer, n, seed) == whole


def test_the_sample_of_a_subject_is_what_a_sample_of_all_takes_first():
    low = of_subjects(POOL, "low")
    of_all = of_subjects(sample_questions(POOL, 60), "low")
    assert sample_questions(low, len(of_all)) == of_all


def test_every_question_is_as_likely():
    drawn = Counter(q.id for seed in range(400) for q in sample_questions(POOL, 50, seed))
    assert len(drawn) == 200 and 60 < min(drawn.values()) and max(drawn.values()) < 140  # 100 expected


def test_the_sample_is_the_same_everywhere():
    assert [q.id for q in sample_questions(POOL, 5)] == ["q8", "q39", "q60", "q95", "q178"]


def test_equal_questions_draw_apart():
    twins = [Question(f"t{i}", "Which?", ("yes", "no"), 0) for i in range(1000)]
    assert len(sample_questions(twins, 500)) == 500


@pytest.mark.parametrize(
    "n, seed, words",
    [(0, 0, "sample must be a whole number of 1 or more"), (201, 0, "the number of questions, 200, got 201")]
    + [(True, 0, "got True"), ("5", 0, "got '5'"), (5, -1, "seed must be")],
)
def test_sample_is_refused(n, seed, words):
    with pytest.raises(CoraError, match=words):
        sample_questions(POOL, n, seed)


def test_subjects():
    assert len(of_subjects(POOL, "low")) == 100
    assert len(of_subjects(POOL, "high, higher")) == 100  # a whole name, with its comma
    assert of_subjects(POOL, ["high, higher", "low"]) == POOL
    with pytest.raises(CoraError, match="no subject 'lw' among the 2; there is 'low', ..."):
        of_subjects(POOL, "low,lw")
    for nothing in ("", " , ", [], [3], 3):
        with pytest.raises(CoraError, match="subjects must be one or more names"):
            of_subjects(POOL, nothing)
    with pytest.raises(CoraError, match="the questions have no subjects, so none can be 'low'"):
        of_subjects([replace(q, subject=None) for q in POOL], "low")


@given(seed=st.integers(0, 20))
def test_shuffled_choices_are_the_same_question(seed):
    for before, after in zip(POOL, shuffle_choices(POOL, seed), strict=True):
        assert sorted(before.choices) == sorted(after.choices)
        assert before.choices[before.answer] == after.choices[after.answer]
        assert replace(after, choices=before.choices, answer=before.answer) == before


def test_places_after_shuffling():
    assert Counter(q.answer for q in POOL) == {0: 200}
    assert min(Counter(q.answer for q in shuffle_choices(POOL)).values()) > 45  # 67 expected
    assert shuffle_choices(POOL) == shuffle_choices(POOL) != shuffle_choices(POOL, 1)


# ---------------------------------------------------------------- together, as a command takes them


@pytest.fixture
def file(tmp_path):
    rows = [
        dict(id=q.id, question=q.text, choices=q.choices, answer=i % 3, subject=q.subject) for i, q in enumerate(POOL)
    ]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "mine.jsonl"


def test_part_of_a_file(file):
    whole = load_benchmark("mine", path=file)
    assert Part().of(whole) == whole and Part().of(whole) is not whole
    assert Part(sample=20, seed=2).of(whole) == sample_questions(whole, 20, 2)
    assert Part(limit=7).of(whole) == whole[:7] and Part(limit=1000).of(whole) == whole
    assert Part(subjects="low", limit=7).of(whole) == whole[:7]
    assert Part(subjects=["high, higher"], limit=7).of(whole) == whole[100:107]
    assert Part(shuffle_original=True, seed=3).of(whole) == shuffle_choices(whole, 3)
    both = Part(subjects=["high, higher"], sample=10, shuffle_original=True).of(whole)
    assert both == shuffle_choices(sample_questions(whole[100:], 10))


def test_part_skips_questions_with_their_own_nota_before_it_counts():
    own = [replace(q, id=f"n{q.id}", choices=(*q.choices[:2], "None of these")) for q in POOL[:5]]
    with pytest.warns(
        BenchmarkWarning, match="^mine: left out 5 of 205 questions with a choice like 'None of the"
    ) as w:
        assert Part(existing_nota="skip", limit=20).of([*own, *POOL], "mine") == POOL[:20]
    assert len(w) == 1
    for nota in ("keep", "warn"):
        assert Part(existing_nota=nota, limit=20).of([*own, *POOL], "mine") == [*own, *POOL[:15]]
    assert Part(existing_nota="skip").of(POOL) == POOL
    with pytest.raises(CoraError, match="mine: every question has a choice like 'None of the above' of its own, so"):
        Part(existing_nota="skip").of(own, "mine")


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(limit=3, sample=3), "limit=3 and sample=3 exclude each other"),
        (dict(limit=0), "limit must be a whole number of 1 or more, got 0"),
        (dict(limit=-3), "got -3"),
        (dict(limit=2.0), "got 2.0"),
        (dict(limit=True), "got True"),
        (dict(sample=0), "sample must be a whole number of 1 or more, got 0"),
        (dict(sample=201), "got 201"),
        (dict(subjects="low", sample=101), "the number of questions, 100, got 101"),
        (dict(seed=-1), "seed must be"),
        (dict(subjects="lo"), "no subject 'lo'"),
        (dict(shuffle_original="yes"), "shuffle_original must be one of True, False, got 'yes'"),
        (dict(existing_nota="drop"), "existing_nota must be one of keep, skip, warn, got 'drop'"),
    ],
)
def test_parameter_is_refused(options, words, file):
    with pytest.raises(CoraError) as caught:
        Part(**options).of(load_benchmark("mine", path=file))
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("field", ["limit", "sample", "seed"])
def test_a_part_checks_its_fields_before_there_are_questions(field):
    for wrong in (-1, 1.5, "5", True):
        with pytest.raises(CoraError, match=f"{field} must be a whole number"):
            Part(**{field: wrong})


@pytest.mark.slow
@needs_hub
def test_mmlu_is_sorted_by_subject_and_a_sample_is_not():
    whole = read_benchmark("mmlu", path=HUB).questions
    assert len({q.subject for q in Part(limit=400).of(whole)}) == 4
    sample = Part(sample=400).of(whole)
    assert len({q.subject for q in sample}) == 57
    assert len(set(sample) & set(Part(sample=400, seed=1).of(whole))) < 40
    few = Part(subjects="astronomy,virology", sample=100).of(whole)
    assert Counter(q.subject for q in few).keys() == {"astronomy", "virology"}


@needs_hub
def test_the_sample_is_the_same_from_a_file_of_ones_own(tmp_path):
    from cora_nb.benchmarks.load import write_benchmark

    whole = load_benchmark("csqa", path=HUB)
    mine = write_benchmark([replace(q, id=f"x{i}") for i, q in enumerate(whole[::-1])], tmp_path / "mine.jsonl")
    a, b = Part(sample=50).of(whole), Part(sample=50).of(load_benchmark("mine", path=mine))
    assert {q.text for q in a} == {q.text for q in b} and len(a) == len(b) == 50
