"""Benchmarks that are spread over several files or tables, in folders laid out like the hub."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cora_nb.benchmarks.layouts import LAYOUTS, _PICTURES, read_exam
from cora_nb.benchmarks.load import load_benchmark, load_shots
from cora_nb.benchmarks.samples import Part
from cora_nb.core import BadRow, CoraError, Question

OPTIONS = dict(A="None", B="x", C="y")


def asked(no, **changes):
    "A question as the hub has it."
    return dict(no=no, question=f"What is {no}?", options=OPTIONS) | changes


def lay_out(root, step_1, solutions=None, pictures=(2,)):
    "The seven files, with these questions in step 1 and one question in each of the others."
    home = root / "medalpaca__medical_meadow_usmle_self_assessment"
    home.mkdir(exist_ok=True)
    for step in (1, 2, 3):
        rows = step_1 if step == 1 else [asked(1)]
        solved = solutions if step == 1 and solutions is not None else {str(n): "c" for n in range(9)}
        (home / f"step{step}.json").write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
        (home / f"step{step}_solutions.json").write_text(json.dumps(solved))
    (home / _PICTURES).write_text(json.dumps({"step1": list(pictures), "step2": [], "step3": []}))
    return home


def test_usmle_from_a_folder_and_from_a_file(tmp_path):
    rows = [asked(1), asked(2), asked("3", options=dict(a="1", b="2")), asked(4, options={})]
    home = lay_out(tmp_path, rows, {"1": "C", "3": "b"})
    choices = ("None", "x", "y")
    want = [
        Question("step1-1", "What is 1?", choices, 2, "step1"),
        Question("step1-3", "What is 3?", ("1", "2"), 1, "step1"),
    ]
    more = [Question(f"step{n}-1", "What is 1?", choices, 2, f"step{n}") for n in (2, 3)]
    assert load_benchmark("usmle", path=tmp_path) == load_benchmark("usmle", path=home) == want + more
    assert load_benchmark("usmle", path=home / "step1.json") == want
    assert Part(subjects="step3").of(load_benchmark("usmle", path=tmp_path)) == more[1:]


def test_usmle_from_the_hub(tmp_path, monkeypatch):
    import huggingface_hub

    home, wanted = lay_out(tmp_path, [asked(1)]), []

    def download(name, repo_type):
        wanted.append((name, repo_type))
        return str(home)

    def fail(name, repo_type):
        raise OSError("gone")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert load_benchmark("usmle") == load_benchmark("usmle", path=home)
    assert wanted == [("medalpaca/medical_meadow_usmle_self_assessment", "dataset")]
    (home / "step2.json").unlink()
    with pytest.raises(CoraError, match="no file 'step2.json'; there are question_with_images.json, step1.json"):
        load_benchmark("usmle")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(CoraError, match="medical_meadow_usmle_self_assessment: cannot load split 'test' from the Hug"):
        load_benchmark("usmle")


BAD = {
    "no solution": (asked(8), {"1": "A"}, "solution", "there is no solution to question 8"),
    "a letter that is no option": (asked(8), {"1": "A", "8": "D"}, "solution", "one of labels of the choices"),
    "a solution that is no text": (asked(8), {"1": "A", "8": 2}, "solution", "one of labels of the choices"),
    "options twice": (
        asked(8, options=dict(A="x", a="y")),
        {"1": "A", "8": "A"},
        "solution",
        "two or more of the choices",
    ),
    "a list of options": (
        asked(8, options=["x", "y"]),
        {"1": "A", "8": "A"},
        "solution",
        "one of labels of the choices",
    ),
    "one option": (asked(8, options=dict(A="x")), {"1": "A", "8": "A"}, "options", "has 1"),
    "an empty option": (asked(8, options=dict(A="x", B="")), {"1": "A", "8": "A"}, "options", "choice B must be"),
    "no options": ({"no": 8, "question": "?"}, {"1": "A", "8": "A"}, "options", "the field is missing"),
    "no number": (dict(question="?", options=OPTIONS), {"1": "A"}, "no", "the field is missing"),
    "a text": ("what?", {"1": "A"}, "", "must be a JSON object"),
    "a number twice": (asked(1), {"1": "A"}, "id", "the id must be unique, and is that of row 1"),
}


@pytest.mark.parametrize("kind", BAD)
def test_malformed_question_is_refused_by_name_and_place(kind, tmp_path):
    bad, solutions, field, words = BAD[kind]
    home = lay_out(tmp_path, [asked(1), bad], solutions)
    with pytest.raises(BadRow) as caught:
        load_benchmark("usmle", path=tmp_path)
    assert (caught.value.file, caught.value.row, caught.value.field) == (str(home / "step1.json"), 2, field)
    assert words in str(caught.value)
    with pytest.warns(UserWarning, match="dropped 1 malformed row"):
        assert len(load_benchmark("usmle", path=tmp_path, on_bad="skip")) == 3


BROKEN = {
    "step1.json": [
        ("{", "step1.json: the file is not JSON"),
        ("{}", "step1.json: the file must hold a JSON list of objects, and holds dict"),
        ("[]", "step1.json: the file has no rows"),
        ('[{"no": 1, "no": 2}]', "step1.json: the file is not JSON ('no' is named twice)"),
        (None, "no file 'step1.json'; there are"),
    ],
    "step2_solutions.json": [
        ("[1]", "step2_solutions.json: the file must hold a JSON object, and holds list"),
        (None, "step2.json: step2_solutions.json must lie in the same folder, and is not there"),
    ],
    _PICTURES: [
        ('{"step1": 4}', f"{_PICTURES}: step1 must be a list of numbers, got 4"),
        (None, f"step1.json: {_PICTURES} must lie in the same folder, and is not there"),
    ],
}


@pytest.mark.parametrize("file, text, words", [(f, *case) for f, cases in BROKEN.items() for case in cases])
def test_broken_file_is_refused_by_name(file, text, words, tmp_path):
    home = lay_out(tmp_path, [asked(1)])
    (home / file).unlink() if text is None else (home / file).write_text(text)
    with pytest.raises(CoraError, match=re.escape(words)):
        load_benchmark("usmle", path=tmp_path)


def test_exam_has_one_split_and_no_examples(tmp_path):
    lay_out(tmp_path, [asked(1)])
    with pytest.raises(CoraError, match="no split 'train'; the files are not split, and their questions are 'test'"):
        load_benchmark("usmle", tmp_path, split="train")
    for name in ("usmle", "m3ke", "arc_all"):
        with pytest.raises(CoraError, match=f"{name} has one split only"):
            load_shots(name, path=tmp_path)


def test_options_in_a_column_of_objects_end_where_the_texts_end(tmp_path):
    "Parquet has every letter in every row."
    options = [dict(A="x", B="y", C=None, D=None), dict(A="x", B="y", C="z", D="w")]
    rows = [dict(question=f"{i}?", options=options[i % 2], answer="BD"[i % 2]) for i in range(20)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "f.parquet")
    found = load_benchmark("mine", path=tmp_path / "f.parquet")
    assert found[0] == Question("mine-1", "0?", ("x", "y"), 1)
    assert [(q.n_choices, q.answer) for q in found] == [(2, 1), (4, 3)] * 10
    rows[2]["answer"] = "C"
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "f.parquet")
    with pytest.raises(BadRow, match="row 3, id 'mine-3', answer: .*labels of the choices.*has 2 choices, got 'C'"):
        load_benchmark("mine", path=tmp_path / "f.parquet")
    for hole in (None, ""):
        rows[2].update(options=dict(A="x", B=hole, C="z", D=None), answer="A")
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "f.parquet")
        with pytest.raises(BadRow, match="row 3, id 'mine-3', options: choice B must be a non-empty text"):
            load_benchmark("mine", path=tmp_path / "f.parquet")


def test_row_knows_its_exam(tmp_path):
    home = lay_out(tmp_path, [asked(1), asked(2), asked(3)])
    table = read_exam(home / "step1.json")
    assert table.columns == ("no", "question", "options", "solution", "subject", "id")
    assert [(n, row["id"], row["solution"], row["subject"]) for n, row in table.rows] == [
        (1, "step1-1", "c", "step1"),
        (3, "step1-3", "c", "step1"),  # the second has a picture
    ]


# ---------------------------------------------------------------- several splits


def arc(id):
    return dict(id=id, question=f"{id}?", choices=dict(text=["3", "4"], label=["1", "2"]), answerKey="2")


def put(root, name, config, split, rows):
    file = root / LAYOUTS[name].hub.replace("/", "__") / config / f"{split}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), file)


def test_the_whole_of_arc(tmp_path, monkeypatch):
    import datasets

    places = [(c, s) for c in ("ARC-Challenge", "ARC-Easy") for s in ("train", "validation", "test")]
    for config, split in places:
        put(tmp_path, "arc_all", config, split, [arc(f"{config} {split} {n}") for n in (1, 2)])
    found = load_benchmark("arc_all", path=tmp_path)
    assert [(q.id, q.subject, q.answer) for q in found] == [(f"{c} {s} {n}", c, 1) for c, s in places for n in (1, 2)]
    assert [q.id for q in load_benchmark("arc", path=tmp_path)] == ["ARC-Challenge test 1", "ARC-Challenge test 2"]
    wanted = []

    def load_dataset(hub, config, split):
        wanted.append((config, split))
        return datasets.Dataset.from_list([arc(f"{config} {split} {n}") for n in (1, 2)])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(datasets, "get_dataset_config_names", lambda hub: ["ARC-Challenge", "ARC-Easy"])
    assert load_benchmark("arc_all") == found and wanted == places


def test_several_splits_of_any_benchmark(tmp_path):
    "Ids without a number of their own say which split they are from."
    row = dict(question="a?", subject="s", choices=["x", "y"], answer=1)
    for split in ("dev", "test"):
        put(tmp_path, "mmlu", "all", split, [row])
    assert [q.id for q in load_benchmark("mmlu", tmp_path, split="dev+test")] == ["mmlu-dev-1", "mmlu-test-1"]
    for wrong in ("dev+train", "dev+"):
        with pytest.raises(CoraError, match=f"no split '{wrong.split('+')[1]}'; there are dev, test"):
            load_benchmark("mmlu", tmp_path, split=wrong)


def test_m3ke_has_subjects_and_no_answers_in_its_test_split(tmp_path):
    row = dict(id=0, question="a?", A="w", B="x", C="y", D="z", answer="D")
    for subject in ("Music", "Dance"):
        put(tmp_path, "m3ke", subject, "dev", [row, row | {"id": 1}])
        put(tmp_path, "m3ke", subject, "test", [row | {"answer": ""}])
    found = load_benchmark("m3ke", path=tmp_path)
    assert [q.id for q in found] == ["Dance-0", "Dance-1", "Music-0", "Music-1"]
    with pytest.raises(BadRow, match="Dance/test.parquet, row 1, id 'Dance-0', answer: .*got ''"):
        load_benchmark("m3ke", tmp_path, split="test")
