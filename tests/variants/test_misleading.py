"""The family `misleading`: wrongly answered questions asked again, on 1,000 questions of MMLU and on any question there may be."""

import re
import warnings

import pytest
from hypothesis import given, strategies as st

from cora_nb.core import CoraError
from cora_nb.variants.families import make_variants, read_variants, write_variants
from helpers import questions


def check(variants, question, wrong):
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
def test_any_question(question, data):
    wrong = data.draw(st.sampled_from(question.distractors))
    variants = make_variants([question], "misleading", misleading={question.id: wrong})
    check(variants, question, wrong)
    assert variants == make_variants([question], "misleading", misleading={question.id: wrong, "another": 0})


def test_mmlu(mmlu, words, tmp_path):
    "No filler is a word; any subset gives the same variants; what is written is read back; another seed draws other fillers."
    wrong = {q.id: q.distractors[i % len(q.distractors)] for i, q in enumerate(mmlu)}
    variants = make_variants(mmlu, "misleading", misleading=wrong)
    assert len(variants) == 2 * len(mmlu)
    new = {check(variants[2 * i : 2 * i + 2], q, wrong[q.id]) for i, q in enumerate(mmlu)}
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
