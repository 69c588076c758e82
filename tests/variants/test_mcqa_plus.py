"""The families `mcqa_plus` and `misleading`, on 1,000 questions of MMLU and on any question there may be."""

import re
import warnings
from collections import Counter
from math import factorial

import pytest
from helpers import check_lettered, numbered, questions
from hypothesis import given, settings, strategies as st

from cora_nb.core import CoraError, Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.variants.families import make_variants
from cora_nb.variants.files import read_variants, write_variants
from cora_nb.variants.mcqa_plus import SIZES
from cora_nb.benchmarks.phrases import says_none


def check_set(q, variants):
    "All variants of one question."
    A = q.n_choices
    of = {}
    for v in variants:
        assert v.question is q and v.family == "mcqa_plus"
        of.setdefault(v.method, []).append(v)
        if v.form == "mcq":
            check_lettered(v, v.method == "nota_answer")
    assert len({v.key for v in variants}) == len(variants)
    assert list(of) == [
        "original",
        "reordered",
        *(f"options_{n}" for n in SIZES if n != A),
        "nota_answer",
        "true_false",
    ]
    assert all([v.index for v in vs] == list(range(len(vs))) for vs in of.values())
    assert of["original"][0].sources == tuple(range(A)) and len(of["original"]) == 1
    orders = [v.sources for v in of["original"] + of["reordered"]]
    assert len(set(orders)) == len(orders) == 1 + min(3, factorial(A) - 1) and all(
        sorted(o) == list(range(A)) for o in orders
    )
    sized = [of[f"options_{n}"] for n in SIZES if n != A]
    assert [[v.n_choices for v in vs] for vs in sized] == [[n] for n in SIZES if n != A]
    for (v,) in sized:
        kept = [s for s in v.sources if s >= 0]
        assert (
            kept == sorted(kept)
            and len(kept) == min(A, v.n_choices)
            and v.sources[len(kept) :] == tuple(range(-1, -1 - (v.n_choices - len(kept)), -1))
        )
    for (small,), (large,) in zip(sized, sized[1:]):
        assert set(small.choices) <= set(large.choices)
    for method in ("options", "nota_answer", "true_false"):  # within each, one number for one text
        new = [(s, c) for v in variants if v.method.startswith(method) for s, c in zip(v.sources, v.choices) if s < 0]
        assert len(set(new)) == len({s for s, _ in new}) == len({c for _, c in new})
    (nota,) = of["nota_answer"]
    assert nota.n_choices == A and all(s in (i, -1) for i, s in enumerate(nota.sources)) and nota.sources.count(-1) <= 1
    for i, v in enumerate(of["true_false"]):
        assert (v.form, v.choices, v.sources, v.answer) == ("tfq", ("Yes", "No"), (-1, -2), 0 if i == q.answer else 1)
        assert v.asked == f"{q.text}\nProposed answer: {q.choices[i]}\nIs the proposed answer correct?"


@pytest.mark.slow
def test_fourteen_variants_of_a_thousand_mmlu_questions(mmlu):
    variants = make_variants(mmlu, family="mcqa_plus")
    assert len(mmlu) == 1000 and len(variants) == 14_000
    for i, q in enumerate(mmlu):
        mine = variants[14 * i : 14 * i + 14]
        check_set(q, mine)
    assert variants == make_variants(mmlu, family="mcqa_plus")
    assert make_variants(mmlu[500:510][::-1], family="mcqa_plus")[:14] == variants[14 * 509 : 14 * 510]
    assert make_variants(mmlu, family="mcqa_plus", seed=1) != variants


@pytest.mark.slow
def test_no_filler_of_mmlu_is_a_word(mmlu, words):
    shown = {
        c
        for v in make_variants(mmlu, family="mcqa_plus")
        for c, s in zip(v.choices, v.sources)
        if v.method.startswith("options") and s < 0
    }
    assert len(shown) > 5000 and not {c.casefold() for c in shown} & words


@pytest.mark.parametrize("name", ["medqa", "truthfulqa", "arc"])
def test_other_benchmarks(shared, name):
    from cora_nb.benchmarks.load import load_benchmark

    try:
        asked = load_benchmark(name, path=shared / "hub", on_bad="skip")[:300]
    except (CoraError, OSError) as e:
        pytest.skip(f"{name} cannot be read: {e}")
    for q in asked:
        check_set(q, make_variants([q], family="mcqa_plus", seed=3))


@given(questions(), st.integers(0, 2**40))
def test_any_question(q, seed):
    variants = make_variants([q], family="mcqa_plus", seed=seed)
    check_set(q, variants)
    assert variants == make_variants([q], family="mcqa_plus", seed=seed)
    assert variants == make_variants([numbered(4, "other"), q], family="mcqa_plus", seed=seed)[14:]


@pytest.mark.parametrize("A", range(2, 27))
def test_numbers_of_variants(A):
    expected = 1 + {2: 1}.get(A, 3) + (4 if A in (2, 3, 6, 8, 10) else 5) + 1 + A
    variants = make_variants([numbered(A)], family="mcqa_plus")
    assert len(variants) == expected
    check_set(variants[0].question, variants)


@pytest.mark.slow
def test_answer_is_everywhere_in_the_reordered():
    asked = [numbered(4, f"q{i}") for i in range(4000)]
    places = Counter(v.answer for v in make_variants(asked, family="mcqa_plus") if v.method == "reordered")
    # 23 orders without the original: place 2 (its own) in 5 of them, the others in 6
    for place, n in places.items():
        assert abs(n - 12_000 * (5 if place == 2 else 6) / 23) < 5 * 50


@pytest.mark.slow
def test_each_distractor_is_removed_equally_often():
    asked = [numbered(4, f"q{i}") for i in range(6000)]
    kept = Counter(
        next(s for s in v.sources if s != 2)
        for v in make_variants(asked, family="mcqa_plus")
        if v.method == "options_2"
    )
    assert set(kept) == {0, 1, 3} and all(abs(n - 2000) < 5 * 37 for n in kept.values())


# Sampling


@given(questions(most=6), st.integers(0, 2**40), st.integers(1, 40))
def test_a_sample_is_part_of_the_whole_and_grows(q, seed, sample):
    whole = make_variants([q], family="mcqa_plus", seed=seed)
    some = make_variants([q], family="mcqa_plus", seed=seed, sample=sample)
    assert len(some) == min(sample, len(whole)) and [v for v in whole if v in some] == some
    assert make_variants([q], family="mcqa_plus", seed=seed, sample=1)[0] in some


def test_one_of_fourteen_is_drawn_evenly_and_alone(mmlu):
    one = make_variants(mmlu, family="mcqa_plus", sample=1)
    assert [v.question for v in one] == list(mmlu)
    drawn = Counter((v.method, v.index) for v in one)
    assert (
        len(drawn) == 14 and sum((n - 1000 / 14) ** 2 / (1000 / 14) for n in drawn.values()) < 34.5
    )  # chi-squared, 13 degrees of freedom, p = 0.001
    assert make_variants(mmlu[::-1][:9], family="mcqa_plus", sample=1) == one[::-1][:9]


# True or false


def test_written_statements_are_told_apart():
    q = numbered(3)
    written = {("q", 0): "Is it 0?", ("q", 2): "Is it 2?", ("other", 1): "not mine"}
    got = [v for v in make_variants([q], family="mcqa_plus", statements=written) if v.form == "tfq"]
    assert [(v.method, v.index, v.answer) for v in got] == [
        ("true_false_written", 0, 1),
        ("true_false", 1, 0),
        ("true_false_written", 2, 1),
    ]
    assert [v.asked for v in got][::2] == ["Is it 0?", "Is it 2?"]


def test_shots_of_a_true_or_false_question_are_true_or_false_questions():
    pool = [numbered(A, f"shot {A}") for A in (2, 3, 4, 5, 6)]
    q = Question("asked", "Which?", ("x", "y", "z", "w"), 3)
    for p in make_prompts(make_variants([q], family="mcqa_plus"), template="bare", shots=pool, k=5):
        said = [m["content"] for m in p.messages if m["role"] == "assistant"]
        if p.variant.form == "tfq":
            assert said == ["Yes", "No", "Yes", "No", "Yes"]
            assert p.text.count("Is the proposed answer correct?") == 6 and "A. " not in p.text
            for shot, s in zip(pool, p.shots):
                assert (
                    f"Proposed answer: {shot.choices[shot.answer if s.answer == 0 else shot.distractors[0]]}" in s.asked
                )
        else:
            assert said == ["B", "B", "C", "C", "D"] and "Proposed" not in p.text


# To a file and back, and what is refused


def test_round_trip(tmp_path, mmlu):
    variants = make_variants(mmlu[:50], family="mcqa_plus", statements={(mmlu[0].id, 1): "Is it?"})
    variants += make_variants(mmlu[:50], family="reorderings", n_choices=6, nota=True)
    assert "true_false_written" in {v.method for v in variants}
    write_variants(variants, tmp_path / "variants.parquet")
    assert read_variants(tmp_path / "variants.parquet") == variants


@pytest.mark.parametrize(
    "family,options,says",
    [
        ("mcqa_plus", dict(sample=0), "sample must be a whole number of 1 or more, got 0"),
        ("mcqa_plus", dict(sample=1.0), "sample must be a whole number of 1 or more, got 1.0"),
        (
            "mcqa_plus",
            dict(statements="Is it?"),
            "statements must map (question id, index of the choice) to a text, got str",
        ),
        (
            "mcqa_plus",
            dict(statements={("q", 1): 3}),
            "the statement about choice 1 of question 'q' must be a non-empty text, got 3",
        ),
        ("mcqa_plus", dict(statements={("q", 1): "\n"}), "must be a non-empty text, got '\\n'"),
        ("mcqa_plus", dict(nota=None), "nota must be a non-empty text, got None"),
        ("mcqa_plus", dict(orders=0), "orders must be a whole number of 1 or more, got 0"),
        (
            "mcqa_plus",
            dict(limit=3),
            "family 'mcqa_plus' takes the options sample, statements, nota, nota_place, orders, got 'limit'",
        ),
    ],
)
def test_bad_options_get_one_clear_line(family, options, says):
    with pytest.raises(CoraError) as e:
        make_variants([numbered(4)], family=family, **options)
    assert says in str(e.value) and "\n" not in str(e.value)


@settings(max_examples=30)
@given(st.integers(2, 26), st.text(min_size=1).filter(str.strip))
def test_another_wording_of_none_of_the_above(A, nota):
    q = numbered(A)
    v = next(v for v in make_variants([q], family="mcqa_plus", nota=nota) if v.method == "nota_answer")
    if not any(says_none(c, nota) for c in q.choices):
        assert v.choices[v.answer] == nota and v.sources[v.answer] == -1


# Questions that were answered wrongly: the family `misleading`


def check_misleading(variants, question, wrong):
    "What the two variants of a question must be, written from the definition."
    several, replaced = variants
    assert (several.method, several.form, several.index, replaced.method, replaced.form, replaced.index) == (
        "multiple_selection",
        "several",
        0,
        "replaced",
        "mcq",
        0,
    )
    assert (
        several.choices == question.choices
        and several.sources == tuple(range(question.n_choices))
        and several.answer == question.answer
    )
    for i, (text, source) in enumerate(zip(replaced.choices, replaced.sources)):
        if i != wrong:
            assert text == question.choices[i] and source == i
    new = replaced.choices[wrong]
    assert (
        replaced.sources[wrong] == -1
        and replaced.answer == question.answer
        and replaced.asked == several.asked == question.text
    )
    assert (
        re.fullmatch("[bcdfghjklmnpqrstvxz]{4,6}", new)
        and new not in "\n".join((question.text, *question.choices)).casefold()
    )
    return new


@given(questions(), st.data())
def test_any_question_that_was_answered_wrongly(question, data):
    wrong = data.draw(st.sampled_from(question.distractors))
    variants = make_variants([question], "misleading", misleading={question.id: wrong})
    check_misleading(variants, question, wrong)
    assert variants == make_variants([question], "misleading", misleading={question.id: wrong, "another": 0})


def test_wrong_answers_to_mmlu(mmlu, words, tmp_path):
    "No filler is a word; any subset gives the same variants; files give them back; another seed, other fillers."
    wrong = {q.id: q.distractors[i % len(q.distractors)] for i, q in enumerate(mmlu)}
    variants = make_variants(mmlu, "misleading", misleading=wrong)
    assert len(variants) == 2 * len(mmlu)
    new = {check_misleading(variants[2 * i : 2 * i + 2], q, wrong[q.id]) for i, q in enumerate(mmlu)}
    assert not new & words and len(new) > 900, "fillers are no words, and differ from question to question"
    assert make_variants(mmlu[40:60][::-1], "misleading", misleading=wrong) == [
        v for i in range(59, 39, -1) for v in variants[2 * i : 2 * i + 2]
    ]
    other = make_variants(mmlu, "misleading", seed=1, misleading=wrong)
    assert sum(a != b for a, b in zip(variants[1::2], other[1::2])) > 990 and other[::2] == variants[::2]
    write_variants(variants, tmp_path / "v.parquet")
    assert read_variants(tmp_path / "v.parquet") == variants


def test_left_out(mmlu):
    "Questions without a misleading choice are left out, and counted."
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert len(make_variants(mmlu[:5], "misleading", misleading={mmlu[0].id: mmlu[0].distractors[0]})) == 2
    assert (
        len(said) == 1 and "4 of 5" in str(said[0].message) and "no misleading choice is known" in str(said[0].message)
    )


@pytest.mark.parametrize("wrong", [-1, 9, True, 1.0, "B"])
def test_no_wrong_choice(mmlu, wrong):
    with pytest.raises(CoraError, match=rf"misleading choice of question .* got {wrong!r}"):
        make_variants(mmlu[:1], "misleading", misleading={mmlu[0].id: wrong})
    with pytest.raises(CoraError, match="misleading choice of question"):
        make_variants(mmlu[:1], "misleading", misleading={mmlu[0].id: mmlu[0].answer})
