"""Properties of the families `mcqa_plus` and `reorderings`, on 1,000 questions of MMLU and on any question there may be."""

import re
import subprocess
import sys
from collections import Counter
from math import factorial

import pytest
from helpers import questions
from hypothesis import given, settings, strategies as st

from conftest import DICTIONARY
from cora_nb.core import CoraError, Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.variants.families import make_variants, read_variants, write_variants
from cora_nb.variants.mcqa_plus import SIZES, filler, fillers, says_none

NOTA = "None of the above"


def numbered(A, id="q"):
    return Question(id, "?", tuple(f"choice {i}" for i in range(A)), A // 2)


# What every variant is: written from the definition, without the module's own operators


def check_lettered(v, nota=False):
    "What holds for every variant with lettered choices."
    q = v.question
    assert v.form == "mcq" and v.text == "" and v.asked == q.text
    assert len(v.choices) == len(v.sources) and 0 <= v.answer < v.n_choices
    old = [s for s in v.sources if s != -1]
    assert len(old) == len(set(old)) and all(0 <= s < q.n_choices for s in old)
    assert all(v.choices[i] == q.choices[s] for i, s in enumerate(v.sources) if s != -1)
    new = [c for c, s in zip(v.choices, v.sources) if s == -1]
    assert len(set(new)) == len(new) and not set(new) & set(q.choices), "a choice was introduced twice"
    for text in set(new) - {NOTA}:
        assert re.fullmatch("[bcdfghjklmnpqrstvxz]{4,6}", text) and len(set(text)) == len(text)
        assert text not in "\n".join((q.text, *q.choices)).casefold()
    assert nota or NOTA not in new
    if nota:
        check_nota(v)
    else:
        assert v.sources[v.answer] == q.answer


def check_nota(v):
    "The right choice is gone and None of the above is right; or it was right before."
    q = v.question
    assert says_none(v.choices[v.answer])
    if says_none(q.choices[q.answer]):
        assert v.sources[v.answer] == q.answer
    else:
        assert q.answer not in v.sources
    if v.choices[v.answer] == NOTA and v.sources[v.answer] == -1:
        assert sum(map(says_none, v.choices)) == 1


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
        kept = [s for s in v.sources if s != -1]
        assert (
            kept == sorted(kept)
            and len(kept) == min(A, v.n_choices)
            and v.sources[len(kept) :] == (-1,) * (v.n_choices - len(kept))
        )
    for (small,), (large,) in zip(sized, sized[1:]):
        assert set(small.choices) <= set(large.choices)
    (nota,) = of["nota_answer"]
    assert nota.n_choices == A and all(s in (i, -1) for i, s in enumerate(nota.sources)) and nota.sources.count(-1) <= 1
    for i, v in enumerate(of["true_false"]):
        assert (v.form, v.choices, v.sources, v.answer) == ("tfq", ("Yes", "No"), (-1, -1), 0 if i == q.answer else 1)
        assert v.asked == f"{q.text}\nProposed answer: {q.choices[i]}\nIs the proposed answer correct?"


def test_fourteen_variants_of_a_thousand_mmlu_questions(mmlu):
    variants = make_variants(mmlu, family="mcqa_plus")
    assert len(mmlu) == 1000 and len(variants) == 14_000
    for i, q in enumerate(mmlu):
        mine = variants[14 * i : 14 * i + 14]
        check_set(q, mine)
    assert variants == make_variants(mmlu, family="mcqa_plus")
    assert make_variants(mmlu[500:510][::-1], family="mcqa_plus")[:14] == variants[14 * 509 : 14 * 510]
    assert make_variants(mmlu, family="mcqa_plus", seed=1) != variants


def test_no_filler_of_mmlu_is_a_word(mmlu, words):
    shown = {
        c
        for v in make_variants(mmlu, family="mcqa_plus")
        for c, s in zip(v.choices, v.sources)
        if v.method.startswith("options") and s == -1
    }
    assert len(shown) > 5000 and not {c.casefold() for c in shown} & words


def test_no_filler_at_all_is_a_word(words):
    "The rule, not a sample of it: no word known has the letters of a filler."
    could = [
        w
        for w in words
        if 4 <= len(w) <= 6
        and len(set(w)) == len(w)
        and not set(w) - set("bcdfghjklmnpqrstvxz")
        and sum(c in "jqxz" for c in w) == 2
    ]
    assert could == []


def test_no_filler_is_a_word_of_the_dictionary():
    if not DICTIONARY.exists():
        pytest.skip(f"no dictionary at {DICTIONARY}")
    known = set(DICTIONARY.read_text(errors="ignore").casefold().split())
    assert not {filler(i) for i in range(50_000)} & known


@pytest.mark.parametrize("name", ["medqa", "truthfulqa", "arc"])
def test_other_benchmarks(shared, name):
    from cora_nb.benchmarks.load import load_benchmark

    try:
        asked = load_benchmark(name, path=shared / "hub", limit=300, on_bad="skip")
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


def test_answer_is_everywhere_in_the_reordered():
    asked = [numbered(4, f"q{i}") for i in range(4000)]
    places = Counter(v.answer for v in make_variants(asked, family="mcqa_plus") if v.method == "reordered")
    # 23 orders without the original: place 2 (its own) in 5 of them, the others in 6
    for place, n in places.items():
        assert abs(n - 12_000 * (5 if place == 2 else 6) / 23) < 5 * 50


def test_each_distractor_is_removed_equally_often():
    asked = [numbered(4, f"q{i}") for i in range(6000)]
    kept = Counter(
        next(s for s in v.sources if s != 2)
        for v in make_variants(asked, family="mcqa_plus")
        if v.method == "options_2"
    )
    assert set(kept) == {0, 1, 3} and all(abs(n - 2000) < 5 * 37 for n in kept.values())


# Fillers


@given(questions(), st.integers(0, 99), st.integers(0, 30), st.integers(0, 30))
def test_fillers_are_new_and_a_longer_list_begins_with_the_shorter(q, seed, m, n):
    m, n = sorted((m, n))
    found = fillers(q, n, seed)
    assert len(set(found)) == n and found[:m] == fillers(q, m, seed)
    assert not any(f in t.casefold() for f in found for t in (q.text, *q.choices))


def test_a_filler_that_is_in_the_question_is_passed_over():
    first = fillers(numbered(4), 1)[0]
    for q in (Question("q", f"What is {first.upper()}?", ("a", "b"), 0), Question("q", "?", ("a", first), 0)):
        assert first not in fillers(q, 24)


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


# The family `reorderings`


@given(questions(most=9), st.integers(0, 99), st.none() | st.integers(2, 26), st.booleans(), st.integers(1, 30))
def test_reorderings_of_any_question(q, seed, n, nota, orders):
    variants = make_variants([q], family="reorderings", seed=seed, n_choices=n, nota=nota, orders=orders)
    shown = n or q.n_choices
    assert len(variants) == min(orders, factorial(shown))
    base = "original" if shown == q.n_choices else f"options_{shown}"
    start = base if not nota else "nota_answer" if base == "original" else f"{base}_nota_answer"
    assert [(v.method, v.index) for v in variants] == [(start, 0)] + [("reordered", i) for i in range(1, len(variants))]
    for v in variants:
        assert v.n_choices == shown and v.family == "reorderings" and v.question is q
        check_lettered(v, nota)
        assert sorted(zip(v.choices, v.sources)) == sorted(zip(variants[0].choices, variants[0].sources))
        assert (
            v.choices[v.answer] == variants[0].choices[variants[0].answer]
            and v.sources[v.answer] == variants[0].sources[variants[0].answer]
        )
    assert variants == make_variants([q], family="reorderings", seed=seed, n_choices=n, nota=nota, orders=orders)


@pytest.mark.parametrize("n", [None, *SIZES])
@pytest.mark.parametrize("nota", [False, True])
def test_reorderings_of_mmlu(mmlu, n, nota):
    for q in mmlu[:300]:
        variants = make_variants([q], family="reorderings", n_choices=n, nota=nota)
        assert len(variants) == (2 if n == 2 else 4)
        assert len({tuple(zip(v.sources, v.choices)) for v in variants}) == len(variants)
        for v in variants:
            check_lettered(v, nota)


def test_both_families_draw_the_same():
    asked = [numbered(A, f"q{A}") for A in range(2, 27)]
    plus = {v.key: v for v in make_variants(asked, family="mcqa_plus", seed=5)}
    for n in (None, *SIZES):
        for v in make_variants(asked, family="reorderings", seed=5, n_choices=n):
            if n is None or v.method != "reordered":
                same = plus[v.question_id, v.method, v.index - (v.method == "reordered")]
                assert (same.choices, same.sources, same.answer) == (v.choices, v.sources, v.answer)


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
        ("mcqa_plus", dict(orders=3), "family 'mcqa_plus' takes the options sample, statements, nota, got 'orders'"),
        ("reorderings", dict(orders=0), "orders must be a whole number of 1 or more, got 0"),
        ("reorderings", dict(n_choices=1), "n_choices must be a whole number of 2 or more, got 1"),
        ("reorderings", dict(n_choices=0), "n_choices must be a whole number of 2 or more, got 0"),
        ("reorderings", dict(n_choices=27), "n_choices must be at most 26, got 27"),
        ("reorderings", dict(n_choices="6"), "n_choices must be a whole number of 2 or more, got '6'"),
        ("reorderings", dict(nota=" "), "nota must be a non-empty text, got ' '"),
        ("reorderings", dict(nota=1), "nota must be a non-empty text, got 1"),
        ("reorderings", dict(sample=1), "family 'reorderings' takes the options n_choices, nota, orders, got 'sample'"),
    ],
)
def test_bad_options_get_one_clear_line(family, options, says):
    with pytest.raises(CoraError) as e:
        make_variants([numbered(4)], family=family, **options)
    assert says in str(e.value) and "\n" not in str(e.value)


def test_importing_the_package_imports_neither_family():
    code = "import sys, cora_nb.variants.families, cora_nb.prompts.templates; print([m for m in sys.modules if 'mcqa_plus' in m or 'reorderings' in m])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


@settings(max_examples=30)
@given(st.integers(2, 26), st.text(min_size=1).filter(str.strip))
def test_another_wording_of_none_of_the_above(A, nota):
    q = numbered(A)
    v = next(v for v in make_variants([q], family="mcqa_plus", nota=nota) if v.method == "nota_answer")
    if not any(says_none(c, nota) for c in q.choices):
        assert v.choices[v.answer] == nota and v.sources[v.answer] == -1
