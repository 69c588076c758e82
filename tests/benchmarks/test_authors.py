"The papers' published files in their authors' own columns, workbooks, and where a folder may point."

import datetime
import warnings

import pytest
from conftest import SHARED
from openpyxl import Workbook

from cora_nb.benchmarks.load import load_benchmark, load_shots
from cora_nb.core import BadRow, CoraError, Question

HUB = SHARED / "data" / "hub"
needs_hub = pytest.mark.skipif(not HUB.is_dir(), reason=f"the benchmarks of the hub are not at {HUB}")


def workbook(path, *lines):
    book = Workbook()
    for line in lines:
        book.active.append(list(line))
    book.save(path)
    return path


# ---------------------------------------------------------------- published files


@needs_hub
def test_the_cora_authors_medqa_is_the_hubs_word_for_word(recorded_at):
    file = recorded_at("cat/medqa/medalpaca-7b")
    assert load_benchmark("medqa", path=file) == load_benchmark("medqa", path=HUB)
    assert [q.id for q in load_benchmark("mine", path=file)[:2]] == ["mine-1", "mine-2"]


def test_math_300_of_li_et_al(recorded_at):
    questions = load_benchmark("math_300", path=recorded_at("li2024/math_300"))
    assert len(questions) == 300
    assert questions[0] == Question("math_300-1", "10 / 2 等于多少?", ("5", "11", "6", "2"), 0)


@pytest.mark.parametrize("name", ["order_predictions", "consistency_lfg_gpt35"])
def test_published_replies_are_no_benchmark(name, recorded_at):
    with pytest.raises(CoraError, match=f"{name}.csv: cannot tell which column holds the question and the choices"):
        load_benchmark(name, path=recorded_at(f"li2024/{name}"))


CAT = ["question", "answer", "options", "expanded_evaluation"]
FINE = [[f"Which is {i}?", ("iron", "neon")[i % 2], "{'A': 'iron', 'B': 'neon'}"] for i in range(18)]


def test_authors_columns_from_csv_and_json_dictionaries(tmp_path):
    import csv

    path = tmp_path / "mine.csv"
    with path.open("w", newline="") as f:
        csv.writer(f).writerows(
            [CAT, ["Which?", "it's", "{'A': \"it's\", 'B': 'no'}", ""], ["Or?", "b", '{"A":"a","B":"b"}', ""]]
        )
    assert [q.choices[q.answer] for q in load_benchmark("mine", path=path)] == ["it's", "b"]
    assert load_benchmark("mine", path=path, answer_as="text") == load_benchmark("mine", path=path)
    with pytest.raises(BadRow, match="mine.csv, row 1, id 'mine-1', answer: most answers are neither"):
        load_benchmark("mine", path=path, answer_as="from 0")


@pytest.mark.parametrize(
    "options, answer, field, words",
    [
        ("boron, neon", "boron", "options", "must be a list"),
        ("[1, 2]", "x", "options", "choice A must be a non-empty text"),
        ("open('x')", "x", "options", "must be a list"),
        ("(" * 5000, "x", "options", "must be a list"),
        ("", "x", "options", "must be a list"),
        ("{}", "x", "options", "must be a list"),
        ("{'A': 'x'}", "x", "options", "needs 2 to 26 choices and has 1"),
        ("{'A': 'x', 'B': 3}", "x", "options", "choice B must be a non-empty text"),
        ("{'A': 'x', 'B': 'y'}", "A", "answer", "must be one of the texts of the choices"),
        ("{'A': 'x', 'B': 'y'}", "z", "answer", "must be one of the texts of the choices"),
        ("{'A': 'x', 'B': 'x'}", "x", "answer", "matches choices A and B"),
    ],
)
def test_malformed_row_of_a_cora_file(options, answer, field, words, tmp_path):
    path = workbook(tmp_path / "f.xlsx", CAT, FINE[0], ["Which?", answer, options], *FINE)
    with pytest.raises(BadRow) as caught:
        load_benchmark("mine", path=path)
    assert caught.value.row == 2 and caught.value.field == field and words in str(caught.value)


@pytest.mark.parametrize(
    "options, choices",
    [("{'B': 'x', 'A': 'y'}", ("x", "y")), ("{'a': 'y', 'b': 'x'}", ("y", "x")), ("['z', 'x']", ("z", "x"))],
)
def test_row_of_a_cora_file_that_is_written_otherwise(options, choices, tmp_path):
    path = workbook(tmp_path / "f.xlsx", CAT, FINE[0], ["Which?", "x", options], *FINE)
    found = load_benchmark("mine", path=path)
    assert found[1] == Question("mine-2", "Which?", choices, choices.index("x"))
    assert [q.choices[q.answer] for q in found[2:]] == [line[1] for line in FINE]


def test_malformed_row_of_a_li_et_al_file(tmp_path):
    head = "Question,A,B,True Answer,True_Option\n"
    fine = "".join(f"{i}?,{10 + i},{20 + i},{(20, 10)[i % 2] + i},{'BA'[i % 2]}\n" for i in range(19))
    (tmp_path / "f.csv").write_text(head + fine)
    assert [q.answer for q in load_benchmark("f", path=tmp_path / "f.csv")] == [1 - i % 2 for i in range(19)]
    for line in ("2?,1,2,1,B", "2?,1,2,2,C", "2?,1,2,3,B", "2?,1,2,2,", "2?,3,4,3,B"):
        (tmp_path / "f.csv").write_text(head + line + "\n" + fine)
        with pytest.raises(BadRow) as caught:
            load_benchmark("f", path=tmp_path / "f.csv")
        assert caught.value.row == 1 and caught.value.field in ("True Answer", "True_Option")
        assert str(caught.value).startswith(f"{tmp_path / 'f.csv'}, row 1, id 'f-1', True")


# ---------------------------------------------------------------- workbooks


def test_a_workbook_is_read_like_csv(tmp_path):
    path = workbook(
        tmp_path / "mine.XLSX",
        [None, "id", "question", "A", "B", "C", "answer", "subject"],
        [0, 7, "How many are 2 + 3?", 5, 6, "None", "A", "sums"],
        [1, "b", "Half of one?", 0.5, True, None, "A", None],
        [None] * 8,
        [2, "c", "Which?", "x", "y", "", "B", ""],
    )
    assert load_benchmark("mine", path=path) == [
        Question("7", "How many are 2 + 3?", ("5", "6", "None"), 0, "sums"),
        Question("b", "Half of one?", ("0.5", "TRUE"), 0),
        Question("c", "Which?", ("x", "y"), 1),
    ]


def test_a_workbook_says_which_kind_its_answers_are(tmp_path):
    plain = ["Which?", '["a", "b"]', 1]
    assert (
        load_benchmark("m", path=workbook(tmp_path / "i.xlsx", ["question", "choices", "answer_index"], plain))[
            0
        ].answer
        == 1
    )
    path = workbook(tmp_path / "a.xlsx", ["question", "choices", "answer"], plain)
    with pytest.raises(
        BadRow, match='row 1, id .m-1., answer: .* in 2 ways.*answer_as="from 0" .then.*answer_as="from 1"'
    ):
        load_benchmark("m", path=path)
    assert load_benchmark("m", path=path, answer_as="from 0")[0].answer == 1
    assert load_benchmark("m", path=path, answer_as="from 1")[0].answer == 0


def test_a_date_in_a_workbook_is_refused(tmp_path):
    head, fine = ["question", "A", "B", "answer"], ["Which?", "x", "y", "A"]
    path = workbook(tmp_path / "f.xlsx", head, fine, ["Score?", datetime.datetime(2024, 2, 1), "3-2", "B"])
    with pytest.raises(
        BadRow,
        match="f.xlsx, row 2, id 'mine-2', A, cell B3: the cell holds a date, a time or .*; format the column as text",
    ):
        load_benchmark("mine", path=path)
    with pytest.warns(UserWarning, match="dropped 1 malformed row"):
        assert len(load_benchmark("mine", path=path, on_bad="skip")) == 1


@pytest.mark.parametrize(
    "lines, words",
    [
        ([], "the file has no rows"),
        ([["question", "A", "B", "answer"]], "the file has no rows"),
        ([["question", "A", "A", "answer"], ["?", "x", "y", "A"]], "the header names 'A' twice"),
        ([["wer", "A", "B", "answer"], ["?", "x", "y", "A"]], "cannot tell which column holds the question"),
    ],
)
def test_a_workbook_that_is_wrong_as_a_whole(lines, words, tmp_path):
    with pytest.raises(CoraError, match=words):
        load_benchmark("mine", path=workbook(tmp_path / "f.xlsx", *lines))


def test_a_column_q_is_no_choice(tmp_path):
    "One letter of the alphabet that is far behind the choices is the question."
    path = workbook(tmp_path / "f.xlsx", ["q", "A", "B", "answer"], ["Which?", "x", "y", "A"], ["Who?", "x", "y", "B"])
    want = [Question("mine-1", "Which?", ("x", "y"), 0), Question("mine-2", "Who?", ("x", "y"), 1)]
    assert load_benchmark("mine", path=path, columns={"question": "q"}) == want
    try:
        assert load_benchmark("mine", path=path) == want
    except CoraError as e:
        assert "which column holds the question" in str(e)


# ---------------------------------------------------------------- path=hub and path=hub/cais__mmlu


@pytest.fixture
def hub(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for split, text in (("test", "a?"), ("dev", "b?")):
        for folder, config in (("cais__mmlu", "all"), ("edinburgh-dawg__mmlu-redux-2.0", "anatomy")):
            file = tmp_path / "hub" / folder / config / f"{split}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            row = dict(question=text, subject="s", choices=["x", "y"], answer=0, error_type="ok")
            pq.write_table(pa.Table.from_pylist([row]), file)
    return tmp_path / "hub"


def test_a_folder_of_one_benchmark_or_of_all(hub, monkeypatch):
    whole = load_benchmark("mmlu", path=hub)
    assert load_benchmark("mmlu", path=hub / "cais__mmlu") == whole
    assert load_benchmark("mmlu", path=str(hub / "cais__mmlu") + "/") == whole
    monkeypatch.chdir(hub / "cais__mmlu")
    assert load_benchmark("mmlu", path=".") == whole
    shots = load_shots("mmlu_redux", path=hub / "edinburgh-dawg__mmlu-redux-2.0")  # they are MMLU's, beside it
    assert [q.text for q in shots] == ["b?"] == [q.text for q in load_shots("mmlu", path=hub / "cais__mmlu")]
    with pytest.raises(CoraError, match="no folder bigbio__med_qa; there is all"):
        load_benchmark("medqa", path=hub / "cais__mmlu")


@needs_hub
def test_the_real_folders():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, folder in (
            ("mmlu", "cais__mmlu"),
            ("truthfulqa", "truthfulqa__truthful_qa"),
            ("arc", "allenai__ai2_arc"),
        ):
            assert load_benchmark(name, path=HUB / folder) == load_benchmark(name, path=HUB)
