"""Variants in files: what is written is read back and wrong rows are named."""

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


@pytest.mark.slow
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
