"""Variants in files: what is written is read back, files of version 0.1 are read too, and wrong rows are named."""

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import questions
from hypothesis import given, settings, strategies as st

from cora_nb.core import CoraError, Question
from cora_nb.variants.families import make_variants
from cora_nb.variants.files import read_variants, variants_dataset, variants_table, write_variants


@given(st.lists(questions(), max_size=3))
@settings(max_examples=25)
def test_files_give_back_what_was_written(tmp_path_factory, qs):
    variants = make_variants([replace(q, id=f"q{i}", subject=None if i else "s") for i, q in enumerate(qs)])
    path = tmp_path_factory.mktemp("variants") / "v.parquet"
    write_variants(variants, path)
    assert read_variants(path) == variants
    assert [v.recipe for v in read_variants(path)] == [v.recipe for v in variants]


def test_a_published_dataset_can_be_read_back(tmp_path):
    variants = make_variants([Question("q", "?", ("a", "b", "c"), 0), Question("r", "!", ("a", "b"), 1, "s")])
    dataset = variants_dataset(variants)
    assert len(dataset) == len(variants) and dataset[0]["choices"] == ["a", "b", "c"]
    dataset.to_parquet(tmp_path / "d.parquet")
    assert read_variants(tmp_path / "d.parquet") == variants
    assert json.loads(read_variants(tmp_path / "d.parquet")[0].recipe)["family"] == "cora"


def as_version_0_1_wrote_it(variants, path):
    "No recipe, and every new choice is -1."
    rows = variants_table(variants).drop_columns(["recipe"])
    old = pa.array([[max(s, -1) for s in v.sources] for v in variants], rows.schema.field("sources").type)
    pq.write_table(rows.set_column(rows.column_names.index("sources"), "sources", old), path)


@given(questions(most=8), st.integers(0, 99), st.sampled_from([None, 2, 6, 10]), st.booleans())
@settings(max_examples=40)
def test_files_of_version_0_1(tmp_path_factory, q, seed, n, nota):
    "They are read, and the new choices numbered as they are today."
    path = tmp_path_factory.mktemp("variants") / "v.parquet"
    q = replace(q, subject=None)
    made = make_variants([q], "mcqa_plus", seed=seed) + make_variants([q], "formats", seed=seed, claims="all")
    made += make_variants([q], "reorderings", seed=seed, n_choices=n, nota=nota)
    made += make_variants([q], "misleading", seed=seed, misleading={q.id: q.distractors[0]})
    as_version_0_1_wrote_it(made, path)
    assert read_variants(path) == made and {v.recipe for v in read_variants(path)} == {""}


def test_part_of_a_file_of_version_0_1_tells_fillers_apart(tmp_path):
    q = Question("q", "?", ("a", "b", "c"), 0)
    made = [v for v in make_variants([q], "reorderings", n_choices=8) if v.method == "reordered"]
    as_version_0_1_wrote_it(made, tmp_path / "v.parquet")
    numbers = {}
    for old, new in zip(made, read_variants(tmp_path / "v.parquet")):
        assert (new.choices, new.answer) == (old.choices, old.answer)
        assert sorted(new.sources) == sorted(old.sources)
        for text, source in zip(new.choices, new.sources):
            assert numbers.setdefault(text, source) == source


def test_two_new_choices_of_one_text_are_two(tmp_path):
    v = make_variants([Question("q", "?", ("a", "b"), 0)], "reorderings", n_choices=4)[0]
    v = replace(v, choices=("a", "b", "same", "same"))
    as_version_0_1_wrote_it([v], tmp_path / "v.parquet")
    assert read_variants(tmp_path / "v.parquet") == [v]


def test_unreadable_files_are_named(tmp_path):
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
    table = variants_table(make_variants([Question("q", "?", ("a", "b", "c"), 0)]))
    rows = table.to_pylist()
    rows[0][field] = value
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), tmp_path / "bad.parquet")
    with pytest.raises(CoraError, match=f"bad.parquet, row 1.*{why}"):
        read_variants(tmp_path / "bad.parquet")
