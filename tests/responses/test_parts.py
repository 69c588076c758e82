"""A run in Parquet files: described by their footers, read in pieces, and never two runs or half a run unnoticed."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.core import BadRow, CoraError, Question
from cora_nb.metrics.bias import position_ranks
from cora_nb.metrics.comparison import compare
from cora_nb.metrics.scoring import score
from cora_nb.respondents.protocol import Reply
from cora_nb.responses.facts import Facts
from cora_nb.responses.files import is_parts_folder, part_files, read_responses, write_responses
from cora_nb.responses.parts import ResponseParts, count_lost, runs_or_parts
from cora_nb.responses.parts import asked_hashes, make_piece, question_hashes
from cora_nb.responses.responses import Responses, as_responses, make_responses
from cora_nb.responses.runs import Runs
from cora_nb.results import Remark
from cora_nb.variants.families import make_variants

RECIPE = {"variants": {"recipe": {"family": "cora", "seed": 0, "options": {}}}, "calls": {"asked": 7, "prompts": 9}}
QUESTIONS = [Question(f"q{i}", f"Number {i}?", ("a", "b", "c"), i % 3, f"s{i % 2}") for i in range(12)]
VARIANTS = make_variants(QUESTIONS)


def made(variants=VARIANTS, name="fair", facts=RECIPE, replies="AB?"):
    "A run whose replies are right, wrong, unreadable and failed."
    said = [Reply(error="timed out") if i % 37 == 0 else replies[i % len(replies)] for i in range(len(variants))]
    return make_responses(variants, said, name=name, facts=facts)


def add_part(run, file, keep=None, **facts):
    "Some questions of a run as one file."
    table = run.table if keep is None else run.table[run.table["question_id"].isin(keep)]
    folder = file.with_name(f"{file.stem} run")
    write_responses(Responses(table, run.questions, run.facts.plain() | facts, run.name), folder)
    (folder / "responses.parquet").replace(file)
    for other in folder.iterdir():
        other.unlink()
    folder.rmdir()
    return file


@pytest.fixture
def parts(tmp_path):
    for n in range(3):
        add_part(made(), tmp_path / f"{n}.parquet", [f"q{i}" for i in range(12) if i % 3 == n])
    return ResponseParts(tmp_path)


def change(file, change_table):
    "Write a file again with another table, and the same metadata."
    table = pq.read_table(file)
    pq.write_table(change_table(table).replace_schema_metadata(table.schema.metadata), file)


def replaced(column, values):
    return lambda table: table.set_column(table.schema.get_field_index(column), column, values(table))


def test_what_the_footers_say(parts, tmp_path, monkeypatch):
    monkeypatch.setattr("pyarrow.parquet.ParquetFile.iter_batches", None)  # no row is read
    again = ResponseParts(tmp_path)
    run = made()
    assert (again.name, again.family, len(again), again.trials) == ("fair", "cora", len(run), (0,))
    assert again.facts.plain() == RECIPE | {"calls": {"asked": 21, "prompts": 27}}  # calls of the parts, added
    assert repr(again) == "ResponseParts('fair': 3 files, 168 replies, not loaded, cora)"
    assert again.first_trial().trials == (0,) and again.trial(0).trials == (0,)
    assert ResponseParts(tmp_path / "0.parquet").name == "fair" and ResponseParts(tmp_path, "mine").name == "mine"
    assert [f.path.name for f in ResponseParts([tmp_path / "2.parquet", tmp_path / "0.parquet"]).files] == [
        "2.parquet",
        "0.parquet",
    ]


def test_what_the_rows_say(parts):
    run = made()
    assert count_lost(parts) == count_lost(run) == (168, Counter(failed=5), Counter({"timed out": 5}))
    assert parts.failed_remarks == run.failed_remarks == (Remark("failed", 5, of=168),)
    assert parts.count_failed_as_wrong().failed_remarks == run.count_failed_as_wrong().failed_remarks
    assert parts.n_questions == 12 and parts.repetitions() == (1, 1)
    assert parts.summary().to_dict() == run.summary().to_dict()
    assert parts.summary().index[-1] == "all" and parts.summary().loc["all", "unparsed"] > 50


def test_files_of_two_runs_are_refused(parts, tmp_path):
    place = tmp_path / "other"
    place.mkdir()

    def refused(run, match, **facts):
        file = add_part(run, place / "x.parquet", **facts)
        with pytest.raises(CoraError, match=match):
            ResponseParts([tmp_path / "0.parquet", file])

    refused(made(name="other"), "parts of several runs: the respondent is fair in .*0.parquet and other in .*x.parquet")
    refused(made(facts={"respondent": {"model": "m"}}), "the facts have other variants.recipe, respondent in ")
    refused(made(), "the facts have other chosen in", chosen=["original and nota"])
    refused(made(), "the facts have other asked.template", asked={"template": "plain"})
    other = make_variants(QUESTIONS[:2], "cyclic")
    refused(make_responses(other, ["A"] * len(other), name="fair", facts=RECIPE), "the family is cora in .* cyclic in")
    add_part(
        made(), place / "x.parquet", asked={"prompts": "ab"}, benchmark={"questions": 4}, rows={"kept": 1, "of": 2}
    )
    ResponseParts([tmp_path / "0.parquet", place / "x.parquet"])  # facts of a part may differ


def test_a_question_in_two_files_is_refused(parts, tmp_path):
    add_part(made(), tmp_path / "more.parquet", ["q4"])
    with pytest.raises(CoraError, match=r"question 'q4' is in .*1.parquet and in .*more.parquet: all replies to a"):
        score(ResponseParts(tmp_path))
    with pytest.raises(CoraError, match="question 'q4' is in"):
        ResponseParts(tmp_path).n_questions


def test_equal_numbers_of_different_questions_are_no_error(parts, monkeypatch):
    "Two texts may have the same 64-bit number: then the texts themselves are compared."

    def few_numbers(ids, seed=0):
        return question_hashes(ids, seed) % np.uint64(5)

    monkeypatch.setattr("cora_nb.responses.parts.question_hashes", few_numbers)
    monkeypatch.setattr("cora_nb.responses.parts.question_hashes", few_numbers)
    assert parts.n_questions == 12


@pytest.mark.parametrize(
    "broken, match",
    [
        (lambda t: pa.concat_tables([t, t[5:6]]), r"1.parquet, row 57: question 'q1', .* stands in an earlier row"),
        (replaced("trial", lambda t: pa.array([-1] + [0] * (len(t) - 1))), "trial must be at least 0"),
        (replaced("index", lambda t: pa.array([0.5] * len(t))), "1.parquet: index must be a whole number"),
        (replaced("correct", lambda t: pa.array([None] + [True] * (len(t) - 1))), "correct must not be missing, "),
        (replaced("correct", lambda t: pa.array([2] * len(t))), "1.parquet: correct must be true or false"),
        (replaced("question_id", lambda t: pa.array([None] + ["q"] * (len(t) - 1))), "question_id must not be missing"),
        (replaced("method", lambda t: pa.array([None] * len(t), pa.string())), "method must not be missing"),
        (lambda t: t.drop_columns("correct"), "1.parquet: the column correct is missing; this is not a part of a run"),
        (replaced("correct", lambda t: pa.array(["yes"] * len(t))), "the column correct must hold bool"),
        (replaced("family", lambda t: pa.array(["a", "b"] * (len(t) // 2))), "the family is cora in .* and a in"),
    ],
)
def test_impossible_rows_are_refused(parts, tmp_path, broken, match):
    change(tmp_path / "1.parquet", broken)
    with pytest.raises(CoraError, match=match):
        score(ResponseParts(tmp_path))


def test_files_that_are_no_parts(parts, tmp_path):
    for content, match in ((b"text", "not a Parquet file"), (b"PAR1" * 9, "not a Parquet file")):
        (tmp_path / "3.parquet").write_bytes(content)
        with pytest.raises(CoraError, match=f"3.parquet: {match}"):
            ResponseParts(tmp_path)
    (tmp_path / "3.parquet").unlink()
    (tmp_path / ".3.parquet").write_bytes(b"being written")
    assert len(ResponseParts(tmp_path)) == len(parts)
    footer, data = pq.read_metadata(tmp_path / "0.parquet"), bytearray((tmp_path / "0.parquet").read_bytes())
    columns = [footer.row_group(0).column(i) for i in range(footer.num_columns)]
    at = next(c.data_page_offset + c.total_compressed_size // 2 for c in columns if c.path_in_schema == "correct")
    data[at] ^= 0xFF
    (tmp_path / "0.parquet").write_bytes(data)
    with pytest.raises(CoraError, match="0.parquet: not a Parquet file"):  # the checksum of a page
        score(ResponseParts(tmp_path))
    for path, match in (
        (tmp_path / "none", "there is no such file"),
        ([], "there are no files"),
        ([tmp_path / "none.parquet"], "none.parquet: there is no such file"),
    ):
        with pytest.raises(CoraError, match=match):
            ResponseParts(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CoraError, match="empty: there are no Parquet files here"):
        ResponseParts(tmp_path / "empty")


def test_files_of_other_programs(parts, tmp_path):
    "Without statistics and metadata, with categories, numbers as ids and 64 bits: read all the same."
    run, place = made(), tmp_path / "plain"
    place.mkdir()
    for n in range(3):
        table = pq.read_table(tmp_path / f"{n}.parquet").replace_schema_metadata(None).to_pandas()
        table["question_id"] = table["question_id"].str[1:].astype(int)
        table = table.astype({"method": "category", "index": "int64", "correct": "int8"})
        table.to_parquet(place / f"{n}.parquet", write_statistics=False, compression="gzip", row_group_size=17)
    plain = ResponseParts(place)
    assert (plain.name, plain.family, plain.trials, plain.facts) == ("fair", "cora", (0,), Facts())
    expected = score(run)
    found = score(plain)
    np.testing.assert_allclose(found["value"], expected["value"])
    assert list(plain.read(12).questions["question_id"]) == [str(i) for n in range(3) for i in range(n, 12, 3)]


def test_questions_are_read_whole(parts, tmp_path):
    run = made()
    for wanted in (["q7", "q3"], [f"q{i}" for i in range(12)], ["q0"]):
        part = parts.read(wanted)
        expected = run.rows(run.table["question_id"].isin(wanted).to_numpy())
        order = ["question_id", "method", "index"]
        pd.testing.assert_frame_equal(
            part.table.sort_values(order, ignore_index=True), expected.table.sort_values(order, ignore_index=True)
        )
    assert part.facts.rows.plain() == expected.facts.rows.plain() | {"kept": 14, "of": 168}
    assert part.facts.variants.plain() == RECIPE["variants"]
    assert parts.read(100).facts == parts.facts and len(parts.read(100)) == 168
    assert parts.count_failed_as_wrong().read(2).failed_wrong and parts.pool_trials().read(2).pooled
    for wanted, match in (
        (["q1", "q99"], "fair has no question 'q99'"),
        ("q1", "questions must be a number of questions or a list of ids, got 'q1'"),
        (0, "questions must be a whole number of 1 or more, got 0"),
    ):
        with pytest.raises(CoraError, match=match):
            parts.read(wanted)
    write_responses(run, tmp_path / "run")
    (tmp_path / "run" / "questions.parquet").rename(tmp_path / "questions.parquet")
    found = ResponseParts(tmp_path).read(["q5"])
    assert found.questions.loc[0, "choices"] == ("a", "b", "c") and found.questions.loc[0, "text"] == "Number 5?"
    change(tmp_path / "2.parquet", replaced("prediction", lambda t: pa.array([9] * len(t), pa.int32())))
    with pytest.raises(BadRow, match="prediction must be an index of a choice shown"):
        ResponseParts(tmp_path).read(["q5"])


@pytest.mark.slow
def test_a_random_sample_is_random(parts):
    drawn = [tuple(sorted(parts.read(3, seed=seed).questions["question_id"])) for seed in range(60)]
    assert drawn[0] == tuple(sorted(parts.read(3, seed=0).questions["question_id"]))
    counts = pd.Series([id for ids in drawn for id in ids]).value_counts()
    assert len(set(drawn)) > 40 and len(counts) == 12 and counts.min() >= 5 and counts.max() <= 28  # 15 expected


def test_measures_say_what_to_do(parts):
    for measure in (as_responses, position_ranks, lambda p: compare(p, p), lambda p: Runs([p])):
        with pytest.raises(CoraError, match=r"fair is not loaded \(168 replies in 3 files\), and this needs more"):
            measure(parts)
    assert list(runs_or_parts([parts, made(name="b")])) == ["fair", "b"]
    assert list(runs_or_parts({"x": parts, "y": made().table})) == ["x", "y"]


def test_a_folder_of_parts_is_not_a_run(parts, tmp_path):
    assert is_parts_folder(tmp_path) and not is_parts_folder(tmp_path / "0.parquet")
    with pytest.raises(CoraError, match=r"here are the parts of a run, .* cora table .*, or read some questions"):
        read_responses(tmp_path)
    write_responses(made(), tmp_path / "run")
    assert not is_parts_folder(tmp_path / "run") and [f.name for f in part_files(tmp_path / "run")] == [
        "responses.parquet"
    ]
    np.testing.assert_allclose(score(ResponseParts(tmp_path / "run"))["value"], score(made())["value"])


def test_shards_in_the_folder_of_their_run(tmp_path):
    "Files with the fact `shard`: all of them must be there, and their questions stand in the metadata."
    run, shards = made(), tmp_path / "run" / "shards"
    shards.mkdir(parents=True)
    for n in range(3):
        keep = [f"q{i}" for i in range(12) if i % 3 == n]
        table = run.table.assign(row=range(len(run)))
        one = Responses(table, run.questions, run.facts, run.name)
        told = {"number": n + 1, "of": 3, "failed": n, "room": {"mcq": n}}
        file = add_part(one, shards / f"{n}.parquet", keep, shard=told)
        written = pq.read_table(file)
        asked = run.questions[run.questions["question_id"].isin(keep)].astype(object).to_dict("records")
        metadata = written.schema.metadata | {b"cora_nb_questions": json.dumps(asked).encode()}
        pq.write_table(written.replace_schema_metadata(metadata), file)
    parts = ResponseParts(tmp_path / "run")
    assert is_parts_folder(tmp_path / "run") and "shard" not in parts.facts.plain() and len(parts) == 168
    part = parts.read(["q3", "q4"])
    assert part.questions["text"].tolist() == ["Number 3?", "Number 4?"] and "row" not in part.table
    file = shards / "1.parquet"
    change(file, lambda t: t.filter(pc.not_equal(t["method"], "original")))
    assert set(list(parts.pieces("n_choices"))[1].members()["expected"]) == {14}  # from the questions
    file.unlink()
    with pytest.raises(CoraError, match=r"1 of 3 shards are missing: 2; ask them first, or name the files"):
        ResponseParts(tmp_path / "run")
    assert len(ResponseParts(sorted(shards.iterdir()))) == 112


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_pieces_find_every_repeated_row(data):
    n = data.draw(st.integers(1, 12))
    rows = {
        "question_id": data.draw(st.lists(st.sampled_from(["a", "b", "ü"]), min_size=n, max_size=n)),
        "method": data.draw(st.lists(st.sampled_from(["original", "nota"]), min_size=n, max_size=n)),
        "index": data.draw(st.lists(st.sampled_from([0, 1, 10**6]), min_size=n, max_size=n)),
        "trial": data.draw(st.lists(st.sampled_from([0, 2]), min_size=n, max_size=n)),
        "correct": data.draw(st.lists(st.booleans(), min_size=n, max_size=n)),
    }
    twice = pd.DataFrame(rows).duplicated(["question_id", "method", "index", "trial"])
    if twice.any():
        with pytest.raises(CoraError, match=rf"f, row {twice.argmax() + 1}: question .* stands in an earlier row"):
            make_piece(pa.table(rows), "f")
        return
    piece = make_piece(pa.table(rows), "f", family="mine")
    assert piece.question_codes[1].tolist() == list(dict.fromkeys(rows["question_id"]))
    back = data.draw(st.permutations(range(n)))
    other = make_piece(pa.table(rows).take(pa.array(back)), "f", family="mine")
    assert asked_hashes(piece)[1] == asked_hashes(other)[1] and len(piece) == n
    if 2 in rows["trial"]:
        one = make_piece(pa.table(rows), "f", which=2)
        kept = [id for id, trial in zip(rows["question_id"], rows["trial"]) if trial == 2]
        assert one.table["question_id"].tolist() == kept and set(one.question_codes[1]) == set(kept)


def repeated(file, trials, errors, replies="AB?"):
    "A run of several repetitions as one file; `errors` has the words of the repetitions that failed."
    said, numbers = [], []
    for trial in trials:
        words = errors.get(trial)
        said += [Reply(error=words) if words and i % 5 == 0 else replies[i % 3] for i in range(len(VARIANTS))]
        numbers += [trial] * len(VARIANTS)
    run = make_responses(VARIANTS * len(trials), said, trials=numbers, name="fair", facts=RECIPE)
    return run, add_part(run, file)


def test_errors_are_counted_in_the_repetitions_that_count(tmp_path):
    "The first one, or one that was chosen, or all once they are pooled: as for a run in memory."
    run, file = repeated(tmp_path / "0.parquet", (0, 1, 2), {0: "timed out", 1: "lost"})
    parts, n = ResponseParts(file), len(VARIANTS)
    failed = -(-n // 5)
    views = {
        "first": (parts, run.first_trial(), {"timed out": failed}, n),
        "chosen": (parts.trial(1), run.trial(1), {"lost": failed}, n),
        "without": (parts.trial(2), run.trial(2), {}, n),
        "chosen, then pooled": (parts.trial(1).pool_trials(), run.trial(1).pool_trials(), {"lost": failed}, n),
        "pooled, then chosen": (parts.pool_trials().trial(1), run.pool_trials().trial(1), {"lost": failed}, n),
        "all": (parts.pool_trials(), run.pool_trials(), {"timed out": failed, "lost": failed}, 3 * n),
    }
    for which, (view, same, errors, asked) in views.items():
        lost = Counter(failed=sum(errors.values()))
        assert count_lost(view) == (asked, lost, Counter(errors)) == count_lost(same), which
        assert view.failed_remarks == same.failed_remarks, which


def test_rows_of_files_without_errors_are_counted_by_repetition(tmp_path):
    for trials in ((0, 1), (1,), (0,)):
        run, file = repeated(tmp_path / f"{len(trials)}{trials[0]}.parquet", trials, {})
        change(file, lambda t: t.drop_columns(["error", "state"]))
        parts = ResponseParts(file)
        assert count_lost(parts) == (len(VARIANTS), Counter(), Counter()), trials
        assert count_lost(parts.pool_trials()) == (len(VARIANTS) * len(trials), Counter(), Counter()), trials
