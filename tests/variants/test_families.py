"""Properties of the operators and of the family `cora`, for every number of choices."""

from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import CoraError, Question, permutation, uniforms
from cora_nb.variants.families import (
    NEW,
    make_variants,
    read_variants,
    register_family,
    FAMILIES,
    variants_dataset,
    write_variants,
)

METHODS = [
    "original",
    "shuffled",
    "nota",
    "nota_shuffled",
    "decoupled",
    "decoupled_shuffled",
    "decoupled_nota",
    "decoupled_nota_shuffled",
]


@st.composite
def questions(draw, id="q"):
    "Any question, with choices that may repeat."
    choices = draw(
        st.lists(
            st.sampled_from(["a", "b", "B", "None of the above", "42"]) | st.text(min_size=1).filter(str.strip),
            min_size=2,
            max_size=26,
        )
    )
    return Question(id, "?", tuple(choices), draw(st.integers(0, len(choices) - 1)))


@given(questions(), st.integers(0, 2**40))
def test_every_variant_keeps_the_answer_and_tells_its_sources(q, seed):
    variants = make_variants([q], seed=seed)
    A = q.n_choices
    assert Counter(v.method for v in variants) == {m: 1 if m in METHODS[:2] else A - 1 for m in METHODS}
    assert len(variants) == 2 + 6 * (A - 1)
    for v in variants:
        assert v.sources.count(q.answer) == 1 and v.sources[v.answer] == q.answer
        assert len(v.sources) == len(v.choices) and len(set(v.sources)) == len(v.sources)
        assert v.choices == tuple("None of the above" if s == NEW else q.choices[s] for s in v.sources)


@given(questions())
def test_what_each_method_shows(q):
    by_method = {m: [v for v in make_variants([q]) if v.method == m] for m in METHODS}
    everything, distractors = set(range(q.n_choices)), set(range(q.n_choices)) - {q.answer}
    assert by_method["original"][0].sources == tuple(range(q.n_choices))
    assert set(by_method["shuffled"][0].sources) == everything
    for m, size in [
        ("nota", q.n_choices),
        ("nota_shuffled", q.n_choices),
        ("decoupled", 2),
        ("decoupled_shuffled", 2),
        ("decoupled_nota", 3),
        ("decoupled_nota_shuffled", 3),
    ]:
        assert all(len(v.sources) == size for v in by_method[m])
        assert [v.index for v in by_method[m]] == list(range(q.n_choices - 1))
        assert all((NEW in v.sources) == ("nota" in m) for v in by_method[m])
    for m in ("nota", "nota_shuffled"):  # each distractor is missing from exactly one
        assert Counter(frozenset(everything - set(v.sources)) for v in by_method[m]) == Counter(
            frozenset({d}) for d in distractors
        )
    for m in METHODS[4:]:  # each distractor meets the answer exactly once
        assert Counter(frozenset(set(v.sources) - {NEW, q.answer}) for v in by_method[m]) == Counter(
            frozenset({d}) for d in distractors
        )
    for m in ("nota", "decoupled", "decoupled_nota"):  # a shuffled method shows what its base shows
        for base, shuffled in zip(by_method[m], by_method[m + "_shuffled"]):
            assert sorted(base.sources) == sorted(shuffled.sources)
    assert all(v.answer == 0 for m in ("decoupled", "decoupled_nota") for v in by_method[m])
    own_order = [v for v in make_variants([q], answer_first=False) if v.method == "decoupled"]
    assert all(list(v.sources) == sorted(v.sources) for v in own_order)


@given(st.lists(st.integers(0, 10**6), unique=True, max_size=12), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_any_subset_in_any_order_gives_the_same_variants(numbers, rng):
    qs = [Question(f"q{n}", "?", ("w", "x", "y", "z", "v")[: 2 + n % 4], 1) for n in numbers]
    whole = {v.key: v for v in make_variants(qs)}
    rng.shuffle(qs)
    part = qs[: len(qs) // 2]
    assert {v.key: v for v in make_variants(part)} == {k: v for k, v in whole.items() if k[0] in {q.id for q in part}}


def test_variants_are_the_same_on_every_machine():
    "Literal expectation: a change of the hash, of Python or of numpy must not move a single choice."
    q = Question("capital", "?", ("Sydney", "Canberra", "Melbourne", "Perth", "Hobart"), 1)
    got = {(v.method, v.index): v.sources for v in make_variants([q], seed=7) if v.method.endswith("shuffled")}
    assert got == EXPECTED
    assert uniforms(2, 7, "capital") == EXPECTED_UNIFORMS


EXPECTED = {
    ("shuffled", 0): (2, 0, 3, 1, 4),
    ("nota_shuffled", 0): (3, 2, 1, -1, 4),
    ("nota_shuffled", 1): (0, 3, -1, 4, 1),
    ("nota_shuffled", 2): (-1, 4, 0, 1, 2),
    ("nota_shuffled", 3): (-1, 2, 3, 0, 1),
    ("decoupled_shuffled", 0): (0, 1),
    ("decoupled_shuffled", 1): (2, 1),
    ("decoupled_shuffled", 2): (1, 3),
    ("decoupled_shuffled", 3): (4, 1),
    ("decoupled_nota_shuffled", 0): (1, 0, -1),
    ("decoupled_nota_shuffled", 1): (2, 1, -1),
    ("decoupled_nota_shuffled", 2): (1, 3, -1),
    ("decoupled_nota_shuffled", 3): (4, -1, 1),
}
EXPECTED_UNIFORMS = [0.8507197097189936, 0.8175711756246383]


def test_shuffles_are_fair():
    "All 24 orders of four items, over 24,000 keys: chi-squared below its 99.99% quantile (23 degrees of freedom: 60.1)."
    seen = Counter(tuple(permutation(4, "fair", i)) for i in range(24_000))
    assert len(seen) == 24
    assert sum((n - 1000) ** 2 / 1000 for n in seen.values()) < 60.1


def test_keys_do_not_collide():
    assert uniforms(1, "a", "bc") != uniforms(1, "ab", "c")
    assert uniforms(3, "k")[:2] == uniforms(2, "k")


def test_other_wordings_and_unknown_names():
    q = Question("q", "?", ("a", "b", "c"), 0)
    assert "Keine davon" in make_variants([q], nota="Keine davon")[2].choices
    with pytest.raises(CoraError, match="family must be one of .*got '../cora'"):
        make_variants([q], family="../cora")
    with pytest.raises(CoraError, match="got 'shots'"):
        make_variants([q], shots=3)


def test_a_family_can_join():
    @register_family
    def backwards(question, seed=0):
        from cora_nb.variants.families import make_variant

        yield make_variant(question, "backwards", "backwards", 0, tuple(range(question.n_choices))[::-1])

    try:
        (v,) = make_variants([Question("q", "?", ("a", "b", "c"), 0)], family="backwards")
        assert v.choices == ("c", "b", "a") and v.answer == 2
    finally:
        del FAMILIES["backwards"]


@given(st.lists(questions(), max_size=3))
@settings(max_examples=25)
def test_files_give_back_what_was_written(tmp_path_factory, qs):
    from dataclasses import replace

    variants = make_variants([replace(q, id=f"q{i}", subject=None if i else "s") for i, q in enumerate(qs)])
    path = tmp_path_factory.mktemp("variants") / "v.parquet"
    write_variants(variants, path)
    assert read_variants(path) == variants


def test_a_published_dataset_can_be_read_back(tmp_path):
    variants = make_variants([Question("q", "?", ("a", "b", "c"), 0), Question("r", "!", ("a", "b"), 1, "s")])
    dataset = variants_dataset(variants)
    assert len(dataset) == len(variants) and dataset[0]["choices"] == ["a", "b", "c"]
    dataset.to_parquet(tmp_path / "d.parquet")
    assert read_variants(tmp_path / "d.parquet") == variants


def test_unreadable_files_are_named(tmp_path):
    import pyarrow as pa, pyarrow.parquet as pq

    with pytest.raises(CoraError, match="nothing.parquet: there is no such file"):
        read_variants(tmp_path / "nothing.parquet")
    pq.write_table(pa.table({"question_id": ["q"]}), tmp_path / "half.parquet")
    with pytest.raises(CoraError, match="half.parquet: the column subject, .* is missing"):
        read_variants(tmp_path / "half.parquet")


@pytest.mark.parametrize(
    "field,value,why",
    [
        ("answer", 5, "answer must be an index"),
        ("answer", None, "answer must not be missing"),
        ("sources", [77, 1, 2], "sources must be indices"),
        ("choices", ["x", "b", "c"], "must be those that sources name"),
        ("original_answer", 9, "the answer must be an index"),
        ("question_id", None, "must not be missing"),
    ],
)
def test_rows_that_are_no_variants_are_named(tmp_path, field, value, why):
    import pyarrow as pa, pyarrow.parquet as pq
    from cora_nb.variants.families import variants_table

    table = variants_table(make_variants([Question("q", "?", ("a", "b", "c"), 0)]))
    rows = table.to_pylist()
    rows[0][field] = value
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), tmp_path / "bad.parquet")
    with pytest.raises(CoraError, match=f"bad.parquet, row 1.*{why}"):
        read_variants(tmp_path / "bad.parquet")
