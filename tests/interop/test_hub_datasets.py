"""Runs as data sets: written, loaded with the real library from a folder in the hub's layout, and equal afterwards."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import datasets
from cora_nb.core import BadRow, CoraError
from cora_nb.interop.hub_datasets import export_hub, from_dataset, load_hub_runs, to_dataset
from cora_nb.report.tables import score_table
from cora_nb.responses.responses import Responses
from cora_nb.responses.runs import Runs
from exported_runs import changed, in_part, NASTY, scored, simulated, with_failures
from helpers import slow_after

datasets.disable_progress_bars()


@pytest.fixture(scope="module")
def run() -> Responses:
    return simulated()


@pytest.fixture
def load(tmp_path):
    "Read a folder, with a cache that a user keeps from one call to the next."
    return lambda folder, **options: load_hub_runs(folder, cache_dir=str(tmp_path / "cache"), **options)


def without_texts(run):
    return Responses(run.table, None, run.facts, run.name)


def with_column(run, values):
    return changed(run, run.table.assign(latency=values))


KINDS = {
    "whole": lambda run: run,
    "part": in_part,
    "failed": lambda run: with_failures(run, 3),
    "scored": lambda run: scored(),
    "no texts": without_texts,
    "no facts": lambda run: Responses(run.table, run.questions, {}, run.name),
    "trials": lambda run: simulated(trials=3, slips=0.2),
    "further column": lambda run: with_column(run, np.linspace(0, 1, len(run))),
    "few columns": lambda run: Responses(
        run.table[["question_id", "method", "index", "correct", "prediction", "answer"]]
    ),
    "one question": lambda run: run.rows(run.table["question_id"] == run.table["question_id"][0]),
    "odd facts": lambda run: changed(run, run={"note": "\U0001f600 half \ud83d <b>", "benchmark": "math"}),
    "emoji": lambda run: changed(run, run.table.assign(reply="B \U0001f600 \x00 \u2028 |<b>")),
}


@pytest.mark.parametrize("kind", slow_after(3, KINDS))
def test_what_is_written_is_read_back(run, tmp_path, load, kind):
    made = KINDS[kind](run)
    assert from_dataset(to_dataset(made)).equals(made)
    export_hub(made, tmp_path / "out")
    (found,) = load(tmp_path / "out").values()
    assert found.equals(made) and list(found.table) == list(made.table)
    pd.testing.assert_frame_equal(score_table(found, ci=0.95), score_table(made, ci=0.95))


@pytest.mark.slow
def test_several_runs_of_all_kinds_stand_side_by_side(run, tmp_path, load):
    made = {kind: make(run) for kind, make in KINDS.items()}
    exported = export_hub(made, tmp_path / "out")
    found = load(tmp_path / "out")
    assert list(found) == list(made)
    for kind, one in found.items():
        assert one.equals(Responses(made[kind].table, made[kind].questions, made[kind].facts, kind)), kind
    assert exported.files[-1] == "README.md" and "responses/no_texts.parquet" in exported.files
    assert {kind: one.name for kind, one in found.items()} == {kind: kind for kind in made}


def test_in_memory_several_runs_are_a_dict_of_splits(run):
    made = Runs({"a b": run, "c": scored()})
    found = to_dataset(made)
    assert isinstance(found, datasets.DatasetDict) and list(found) == ["a_b", "c"]
    back = from_dataset(found)
    assert list(back) == ["a b", "c"] and all(back[name].equals(made[name]) for name in made)


def test_columns_have_types(run, tmp_path):
    export_hub(run, tmp_path / "out")
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    kinds = loaded["skewed"].features
    assert kinds == to_dataset(run).features
    assert {name: kinds[name].dtype for name in ("index", "correct", "confidence", "reply")} == {
        "index": "int32",
        "correct": "bool",
        "confidence": "float64",
        "reply": "string",
    }
    row = loaded["skewed"][0]
    assert row["question"] and len(row["original_choices"]) == 4 and isinstance(row["sources"][0], int)
    facts = datasets.load_dataset(str(tmp_path / "out"), "runs", split="runs", cache_dir=str(tmp_path / "cache"))
    assert json.loads(facts[0]["facts"]) == run.facts.plain() and facts[0]["rows"] == len(run)


def test_a_data_set_by_itself_has_no_facts(run, tmp_path):
    export_hub(run, tmp_path / "out")
    loaded = datasets.load_dataset(str(tmp_path / "out"), split="skewed", cache_dir=str(tmp_path / "cache"))
    bare = from_dataset(loaded)
    assert bare.facts.plain() == {} and bare.name == "skewed" and bare.table.equals(run.table)
    assert from_dataset(loaded, facts=run.facts).equals(run)


def test_a_filtered_data_set_is_a_part(run):
    part = from_dataset(to_dataset(run).filter(lambda row: row["method"] in ("original", "shuffled")))
    assert part.coverage == "2 of 20 variants" and len(part) == 20
    shuffled = from_dataset(to_dataset(run).shuffle(seed=1))
    assert shuffled.table["correct"].sum() == run.table["correct"].sum() and not shuffled.equals(run)


def test_save_to_disk_keeps_everything(run, tmp_path):
    to_dataset(run).save_to_disk(tmp_path / "saved")
    assert from_dataset(datasets.load_from_disk(tmp_path / "saved")).equals(run)


@pytest.mark.slow
def test_names_stay_names(run, tmp_path, load):
    made = {
        name: Responses(run.table, run.questions, run.facts.plain() | {"run": {"benchmark": name}}, name)
        for name in NASTY
    }
    exported = export_hub(made, tmp_path / "out")
    written = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert written == {f"out/{file}" for file in exported.files}
    found = load(tmp_path / "out")
    assert list(found) == NASTY and all(found[name].equals(made[name]) for name in NASTY)


def test_a_data_set_that_is_not_ours(run):
    rows = to_dataset(run)
    for spoilt, words in (
        (rows.remove_columns("method"), "the column method is missing"),
        (rows.remove_columns("reply"), "the run had a column 'reply', which the data set lacks"),
        (rows.cast_column("answer", datasets.Value("string")), "the column answer must hold int32, and holds string"),
        (datasets.Dataset.from_dict({"text": ["a"]}), "the column question_id, method, index, correct is missing"),
    ):
        with pytest.raises(CoraError, match=words) as told:
            from_dataset(spoilt)
        assert "\n" not in str(told.value)
    with pytest.raises(BadRow, match="prediction must be an index of a choice shown"):
        from_dataset(rows.map(lambda row: {"prediction": 9, "correct": False}))
    with pytest.raises(CoraError, match="facts are those of one run"):
        from_dataset(to_dataset([run]), facts={})


def test_questions_that_say_something_else_than_the_rows(run):
    questions = run.questions.assign(subject="botany")
    with pytest.raises(CoraError, match="skewed, question 'math-0-1': its subject is 'botany', and in the rows"):
        to_dataset(Responses(run.table, questions, run.facts, run.name))
    with pytest.raises(CoraError, match="its questions have a column 'source', which a data set cannot store"):
        to_dataset(Responses(run.table, run.questions.assign(source="x"), run.facts, run.name))
    with pytest.raises(CoraError, match="a column of the run is called 'question', as one of its questions"):
        to_dataset(changed(run, run.table.assign(question="x")))


def test_columns_that_hold_different_things(run):
    other = changed(simulated("other"), simulated("other").table.assign(latency="slow"))
    with pytest.raises(CoraError, match="other: the column 'latency' holds string, and in another run double"):
        to_dataset([with_column(run, 0.5), other])
    mixed = with_column(run, pd.Series([1, "x"] * (len(run) // 2), dtype=object))
    with pytest.raises(CoraError, match="skewed: the column 'latency' cannot be stored"):
        to_dataset(mixed)


@pytest.mark.slow
def test_nothing_is_replaced(run, tmp_path):
    export_hub(run, tmp_path / "out")
    before = {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    export_hub(run, tmp_path / "out")
    for other in (simulated(seed=2), [run, scored()], changed(run, asked={"template": "other"})):
        with pytest.raises(CoraError, match="something else here already, and it is left alone"):
            export_hub(other, tmp_path / "out")
    assert before == {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}


def test_a_card_that_was_filled_in_is_left_alone(run, tmp_path):
    export_hub(run, tmp_path / "out")
    card = tmp_path / "out/README.md"
    card.write_text(card.read_text().replace("# license: FILL IN", "license: mit #"))
    filled = card.read_bytes()
    with pytest.raises(CoraError, match="README.md: there is something else here already"):
        export_hub(run, tmp_path / "out")
    assert card.read_bytes() == filled


def test_an_export_that_was_cut_off_goes_on(run, tmp_path, load):
    export_hub(run, tmp_path / "out")
    (tmp_path / "out/README.md").unlink()
    (tmp_path / "out/runs.parquet").unlink()
    (tmp_path / "out/.gitattributes").write_text("*.parquet filter=lfs")  # a clone of a repository of the hub
    export_hub(run, tmp_path / "out")
    assert load(tmp_path / "out")["skewed"].equals(run)


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), b"x"])
def test_facts_that_are_no_json(run, tmp_path, value):
    with pytest.raises(CoraError, match="skewed: the facts of a run must be plain JSON values"):
        export_hub(changed(run, other=value), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_how_trials_count_is_kept_under_another_name(run, tmp_path, load):
    three = simulated(trials=3, slips=0.2).pool_trials()
    export_hub({"mine": three}, tmp_path / "out")
    assert "Scores are of all 3 repetitions" in (tmp_path / "out/README.md").read_text()
    assert load(tmp_path / "out")["mine"].table["trial"].nunique() == 3


def test_no_key(run, tmp_path):
    with pytest.raises(CoraError, match="looks like a key"):
        export_hub(changed(run, respondent={"note": "sk-abcdefghijklmnopqrst"}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def other_facts(file: Path) -> None:
    rows = pq.read_table(file).to_pylist()
    pq.write_table(pa.Table.from_pylist([rows[0] | {"facts": "[1"}]), file)


def other_split(file: Path) -> None:
    rows = pq.read_table(file).to_pylist()
    pq.write_table(pa.Table.from_pylist([rows[0] | {"split": "nobody"}]), file)


def fewer_rows(file: Path) -> None:
    pq.write_table(pq.read_table(file).slice(0, 150), file)


def no_table(file: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), file)


@pytest.mark.parametrize(
    "file, spoil, words",
    [
        ("responses/skewed.parquet", cut, "cannot be loaded as a data set of runs"),
        ("responses/skewed.parquet", Path.unlink, "cannot be loaded as a data set of runs"),
        ("responses/skewed.parquet", fewer_rows, "there are 150 replies, and there were 200"),
        ("responses/skewed.parquet", no_table, "there are 1 replies, and there were 200"),
        ("runs.parquet", cut, "cannot be loaded as a data set of runs"),
        ("runs.parquet", Path.unlink, "cannot be loaded as a data set of runs"),
        ("runs.parquet", no_table, "the configuration runs lacks the column 'split'"),
        ("runs.parquet", other_facts, "the facts of the run are broken"),
        ("runs.parquet", other_split, "there are facts of nobody, and replies of skewed"),
        ("README.md", Path.unlink, "cannot be loaded as a data set of runs"),
        ("README.md", cut, ""),
    ],
)
def test_a_broken_folder_is_one_clear_line(run, tmp_path, load, file, spoil, words):
    export_hub(run, tmp_path / "out")
    spoil(tmp_path / "out" / file)
    if not words:  # the end of the card says nothing to the library
        assert load(tmp_path / "out")["skewed"].equals(run)
        return
    with pytest.raises(CoraError, match=words) as told:
        load(tmp_path / "out")
    assert str(told.value).startswith(str(tmp_path / "out")) and "\n" not in str(told.value)


def test_a_source_that_is_not_there(tmp_path, load):
    for source in (tmp_path / "nothing", "just-a-name", "a/b/c", "../up/there", ""):
        with pytest.raises(CoraError, match="there is no such folder|cannot be loaded"):
            load(source)
    with pytest.raises(CoraError, match="somebody/nothing-here: cannot be loaded as a data set of runs") as told:
        load("somebody/nothing-here")  # the tests are offline
    assert "no copy on this machine" in str(told.value) and "\n" not in str(told.value)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CoraError, match="empty: cannot be loaded"):
        load(tmp_path / "empty")


def test_a_folder_that_moved_is_the_same(run, tmp_path, load):
    export_hub(run, tmp_path / "out")
    shutil.move(tmp_path / "out", tmp_path / "moved")
    assert load(tmp_path / "moved")["skewed"].equals(run)


def test_a_folder_leaves_nothing_in_the_cache_of_the_library(run, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    export_hub(run, tmp_path / "out")
    found = load_hub_runs(tmp_path / "out")["skewed"]
    assert found.equals(run) and not (tmp_path / "cache").exists()  # and the rows outlive the temporary folder


def test_another_export_in_the_same_place_is_not_read_from_the_cache(run, tmp_path, load):
    export_hub(run, tmp_path / "out")
    load(tmp_path / "out")
    shutil.rmtree(tmp_path / "out")
    export_hub(other := simulated(seed=2), tmp_path / "out")
    assert load(tmp_path / "out")["skewed"].equals(other) and not other.equals(run)
    plain = datasets.load_dataset(str(tmp_path / "out"), split="skewed", cache_dir=str(tmp_path / "cache"))
    assert from_dataset(plain).table.equals(other.table)


def test_a_folder_of_the_same_name_is_not_read_from_the_cache(run, tmp_path):
    for made, place in ((run, "a"), (simulated(seed=2), "b")):
        export_hub(made, tmp_path / place / "out")
    for made, place in ((run, "a"), (simulated(seed=2), "b"), (run, "a")):
        folder, cache = str(tmp_path / place / "out"), str(tmp_path / "cache")
        plain = datasets.load_dataset(folder, split="skewed", cache_dir=cache)
        assert from_dataset(plain).table.equals(made.table)
        assert load_hub_runs(folder, cache_dir=cache)["skewed"].equals(made)


def test_a_file_that_was_changed_after_loading_is_read_anew(run, tmp_path, load):
    export_hub(run, tmp_path / "out")
    load(tmp_path / "out")
    fewer_rows(tmp_path / "out/responses/skewed.parquet")
    with pytest.raises(CoraError, match="there are 150 replies|num_examples=150"):
        load(tmp_path / "out")


def test_a_run_without_rows(run):
    empty = run.rows(np.zeros(len(run), dtype=bool))
    assert from_dataset(to_dataset(empty)).table.equals(empty.table)
    with pytest.raises(CoraError, match="there are no responses to score"):
        export_hub(empty, "never")
    assert not Path("never").exists()


@pytest.mark.slow
def test_real_replies_come_back(shared, tmp_path, load):
    from cora_nb.papers.published import load_recorded

    first = load_recorded("cat/medqa/medalpaca-7b", shared / "recorded", texts=True).first_trial()
    few = first.rows(first.table["question_id"].isin(first.questions["question_id"][:30]))
    export_hub(few, tmp_path / "out")
    (found,) = load(tmp_path / "out").values()
    assert found.equals(few)
