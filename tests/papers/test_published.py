"""The published tables: well-formed, complete, and equal to what the paper's text prints."""

import re

import pandas as pd
import pytest
from conftest import SHARED

from cora_nb.core import CoraError, data_path
from cora_nb.papers.published import PAPERS, load_published

LEVELS = [f"BMCA({c / 10})" for c in range(5, 11)]
SCORES = ["MCQA", "MCQA+", "MV", "CoRA", *LEVELS, "CI"]
ROWS = {1: 44, 2: 44, 3: 44, 4: 44, 5: 12, 6: 12, 7: 11}
BENCHMARK = {1: "MedQA", 2: "MMLU", 3: "Arc-C", 4: "TruthfulQA", 5: "MedQA", 6: "MedQA"}


@pytest.mark.parametrize("table", ROWS)
def test_every_table_is_there_and_names_its_source(table):
    raw = pd.read_csv(data_path("published", f"cora_table_{table}.csv"))
    assert len(raw) == ROWS[table]
    assert raw["source"].eq(f"arXiv 2511.21860 Table {table}").all()
    assert f"cora_table_{table}.csv" in data_path("published", "README.md").read_text()


@pytest.mark.parametrize("table", range(1, 7))
def test_each_model_has_each_score_once(table):
    d = load_published(table)
    scores = SCORES if table <= 4 else ["MCQA+", "MV", "CoRA"]
    assert d["benchmark"].eq(BENCHMARK[table]).all() and d["model"].nunique() == 4
    assert not d.duplicated(["model", "score"]).any()
    assert list(d["score"].unique()) == scores
    assert (d.groupby("model")["model_name"].nunique() == 1).all()
    assert d["value"].between(0, 1).all() and d["value_printed"].str.fullmatch(r"[01]\.\d\d").all()
    assert (d["value_printed"].astype(float) == d["value"]).all()


@pytest.mark.parametrize("table", range(1, 6))
def test_ranks(table):
    d = load_published(table)
    assert d["rank"].dtype == "Int64"
    assert (d["rank"].isna() == d["score"].isin([*LEVELS, "CI"])).all()
    ranked = d.dropna(subset=["rank"])
    assert (ranked.groupby("score")["value"].rank(method="min", ascending=False) == ranked["rank"].astype(float)).all()


@pytest.mark.parametrize("table", (5, 6))
def test_differences_from_table_1(table):
    first = load_published(1).set_index(["model", "score"])["value"]
    d = load_published(table).set_index(["model", "score"])
    assert ((d["value"] - first.reindex(d.index)).round(2) == d["difference_from_table_1"]).all()


def test_table_6_deviations_and_table_7():
    assert load_published(6)["sd_x1000"].between(1, 21).all()
    d = load_published(7)
    assert d["p"].tolist() == list(range(11))
    assert d["tail"].is_monotonic_decreasing and d["msgr"].is_monotonic_increasing
    assert d["tail_printed"].iloc[-1] == "0.0000001" and d["msgr_printed"].iloc[-1] == "0.9999"


@pytest.mark.parametrize("table", (0, 8, -1, "1", None, 1.5, True))
def test_unknown_table(table):
    with pytest.raises(CoraError, match="table must be a whole number from 1 to 7"):
        load_published(table)


@pytest.mark.parametrize("table", (0, 1, 9, "2", None, 2.5, True))
def test_unknown_table_of_the_mcqa_plus_paper(table):
    with pytest.raises(CoraError, match=r"\Atable must be a whole number from 2 to 8, got [^\n]*\Z"):
        load_published(table, "mcqa_plus")


@pytest.mark.parametrize("paper", ("mcqa", "", None, ["cora"], 1))
def test_unknown_paper(paper):
    with pytest.raises(CoraError, match=r"\Apaper must be one of cora, mcqa_plus, li2024, got [^\n]*\Z"):
        load_published(2, paper)


# --- the MCQA+ paper: what is there ---------------------------------------------------------------------------------

PLUS_ROWS = {2: 54, 3: 48, 4: 24, 5: 24, 6: 24, 7: 36, 8: 216}
LLAMA, BAICHUAN, CHATGPT = "LLaMA2-13B", "Baichuan2-13B", "ChatGPT 3.5"
WHO = ["model", "benchmark"]


def plus(table: int) -> pd.DataFrame:
    return load_published(table, "mcqa_plus")


def exceptions(rows: pd.DataFrame, holds: pd.Series, keys: list[str]) -> set[tuple]:
    "The keys of the rows where a relation fails; each of them must have a note that says so."
    failed = rows[~holds]
    assert failed["note"].str.contains("contradiction: |rounding: |suspect: ").all()
    return set(failed[keys].itertuples(index=False, name=None))


def test_every_known_paper_has_all_its_tables():
    assert {p: list(t) for p, t in PAPERS.items()} == {"cora": list(ROWS), "mcqa_plus": list(PLUS_ROWS), "li2024": [3]}


@pytest.mark.parametrize("table", PLUS_ROWS)
def test_every_mcqa_plus_table_is_complete(table):
    d = plus(table)
    assert len(d) == PLUS_ROWS[table]
    assert d["source"].eq(f"arXiv 2402.01349 Table {table}").all()
    assert f"| `mcqa_plus_table_{table}.csv` | {len(d)} |" in data_path("published", "README.md").read_text()
    keys = [c for c in ("model", "benchmark", "shots", "subset", "n_same", "n_choices", "score") if c in d]
    assert not d.duplicated(keys).any()
    assert (d.groupby(WHO).size() == len(d) // (4 if table == 5 else 6)).all()
    assert set(d["model"]) == {LLAMA, BAICHUAN} | ({CHATGPT} if table != 5 else set()) and set(d["benchmark"]) == {
        "MMLU",
        "MedMCQA",
    }
    assert d["shots"].dtype == "Int64" and set(d["shots"].dropna()) == {2: {0}, 6: set()}.get(table, {0, 5})
    assert d["value"].between(0, 100).all() and d["value_printed"].str.fullmatch(r"\d{1,2}\.\d\d").all()
    said = d.loc[d["note"] != "", "note"]
    assert said.str.match("OCR: |contradiction: |rounding: |suspect: ").all()


def test_what_each_mcqa_plus_table_is_about():
    subsets = {t: set(plus(t)["subset"]) for t in PLUS_ROWS}
    assert subsets == {
        2: {"all"},
        3: {"all", "always right"},
        4: {"always right"},
        5: {"always right"},
        6: {"wrong on the original"},
        7: {"all"},
        8: {"all"},
    }
    two = plus(2)
    assert (two["n_same"].isna() == two["score"].isin(["Acc", "Acc-H"])).all()
    assert sorted(two.loc[two["score"] == "accuracy", "n_same"].unique()) == [2, 3, 4]
    assert set(plus(8)["n_choices"]) == {2, 3, 4, 6, 8, 10}
    seven = plus(7)
    assert (seven["difference"].isna() == (seven["score"] == "MCQA")).all()
    assert seven["difference_printed"].dropna().str.fullmatch(r"[+-]\d+\.\d\d").all()


# --- the MCQA+ paper: relations between its numbers, and where they fail --------------------------------------------

NOT_THE_SAME_S_C = {
    (LLAMA, "MMLU"): "shares make 78.49, printed 75.06",
    (LLAMA, "MedMCQA"): "shares make 65.53, printed 68.12",
}
NOT_THE_SAME_ACC = {(CHATGPT, "MMLU", 5, "MCQA"): "39.80 in Table 7, 89.80 in Table 8"}
WRONG_DIFFERENCE_3 = {
    (BAICHUAN, "MMLU", 0, "all", "Acc"): "-59.48, not -58.48",
    (BAICHUAN, "MMLU", 0, "all", "Acc-H"): "-26.06, not -36.06",
    (LLAMA, "MMLU", 0, "always right", "Acc-H"): "-99.99, not -98.99",
}
ROUNDED_DIFFERENCE_7 = {
    (LLAMA, "MedMCQA", 0, "MCQA+"): "-2.02, not -2.03",
    (BAICHUAN, "MMLU", 0, "MCQA+ (x1)"): "-14.55, not -14.54",
}
WRONG_DIFFERENCE_7 = {
    (CHATGPT, "MMLU", 5, "MCQA+"): "from 89.80, with 39.80 printed above it",
    (CHATGPT, "MMLU", 5, "MCQA+ (x1)"): "from 89.80, with 39.80 printed above it",
}
NO_SHARE = {
    (CHATGPT, "MMLU", 5, 6, "Acc-H"): "30.71 of 452 questions",
    (CHATGPT, "MedMCQA", 5, 4, "Acc-H"): "31.97 of 967 questions",
    (CHATGPT, "MedMCQA", 5, 6, "Acc-H"): "34.51 of 967 questions, printed for MMLU too",
    (CHATGPT, "MedMCQA", 5, 6, "Acc"): "57.00 of 967 questions",
}
LOW_ACC_H = {(CHATGPT, b, s, 2, "Acc-H"): "cannot go with S_c and Acc" for b in ("MMLU", "MedMCQA") for s in (0, 5)}
QUESTIONS = {"MMLU": 452, "MedMCQA": 967}  # nearly all Acc-H are shares of these; the paper does not give them


def test_table_2_shares_sum_to_100():
    two = plus(2)
    assert two[two["score"] == "share"].groupby(WHO)["value"].sum().round(2).eq(100).all()


def test_table_2_acc_h_is_share_times_accuracy_where_all_four_agree():
    wide = plus(2).query("n_same.isna() or n_same == 4").pivot(index=WHO, columns="score", values="value")
    slack = 0.005 + 0.005 * (wide["share"] + wide["accuracy"]) / 100 + 1e-4  # each printed number is rounded
    assert ((wide["share"] * wide["accuracy"] / 100 - wide["Acc-H"]).abs() <= slack).all()


def test_table_2_shares_make_the_s_c_of_table_8():
    share = plus(2).query("score == 'share'")
    mean = (share["value"] * share["n_same"].astype(float) / 4).groupby([share[c] for c in WHO]).sum()
    rows = plus(8).query("n_choices == 4 and shots == 0 and score == 'S_c'").set_index(WHO)
    holds = (rows["value"] - mean.reindex(rows.index)).abs() <= 0.005 + 0.005 * 2.5 + 1e-4
    assert exceptions(rows.reset_index(), holds.reset_index(drop=True), WHO) == set(NOT_THE_SAME_S_C)


def original_of_table_8() -> pd.Series:
    return plus(8).query("n_choices == 4").set_index([*WHO, "shots", "score"])["value"]


def test_the_original_is_the_same_in_tables_2_7_and_8():
    eight = original_of_table_8()
    for table, names in ((2, {"Acc": "Acc", "Acc-H": "Acc-H"}), (7, {"MCQA": "Acc"})):
        rows = plus(table).query("score in @names")
        there = [eight[m, b, s, names[x]] for m, b, s, x in rows[[*WHO, "shots", "score"]].itertuples(index=False)]
        expected = set(NOT_THE_SAME_ACC) if table == 7 else set()
        assert exceptions(rows, rows["value"] == there, [*WHO, "shots", "score"]) == expected


def test_table_3_differences():
    rows, eight = plus(3), original_of_table_8()
    before = [
        100 if sub == "always right" else eight[m, b, s, x]
        for m, b, s, sub, x in rows[[*WHO, "shots", "subset", "score"]].itertuples(index=False)
    ]
    holds = (rows["value"] - before).round(2) == rows["difference"]
    assert exceptions(rows, holds, [*WHO, "shots", "subset", "score"]) == set(WRONG_DIFFERENCE_3)


@pytest.mark.parametrize("start", ("as printed", "from Table 8"))
def test_table_7_differences(start):
    rows = plus(7).query("score != 'MCQA'")
    first = plus(7).query("score == 'MCQA'").set_index([*WHO, "shots"])["value"]
    if start == "from Table 8":
        first = original_of_table_8().xs("Acc", level="score")
    holds = (rows["value"] - [first[k] for k in rows[[*WHO, "shots"]].itertuples(index=False, name=None)]).round(
        2
    ) == rows["difference"]
    expected = set(ROUNDED_DIFFERENCE_7) | (set(WRONG_DIFFERENCE_7) if start == "as printed" else set())
    assert exceptions(rows, holds, [*WHO, "shots", "score"]) == expected
    off = (
        rows["value"]
        - rows["difference"]
        - [first[k] for k in rows[[*WHO, "shots"]].itertuples(index=False, name=None)]
    ).round(2)
    assert off[off != 0].abs().isin([0.01, 50.0]).all()  # one in the last digit, or 89.80 for 39.80


def test_table_5_ratios():
    wide = plus(5).pivot(index=[*WHO, "shots"], columns="score", values="value")
    assert (100 * wide["Conf_wrong*"] / wide["Conf_right"]).round(2).eq(wide["Conf_wrong*/Conf_right"]).all()


def is_share(percent: float, n: int) -> bool:
    "Is it k / n for a whole k, rounded or cut off after two decimals?"
    k = int(percent * n / 100)
    return any(-0.00501 <= 100 * j / n - percent < 0.00999 for j in (k, k + 1))


def test_percentages_are_shares_of_the_questions():
    eight = plus(8).query("score == 'Acc-H' or (score == 'Acc' and benchmark == 'MedMCQA')")
    holds = eight.apply(lambda r: is_share(r["value"], QUESTIONS[r["benchmark"]]), axis=1)
    assert exceptions(eight, holds, [*WHO, "shots", "n_choices", "score"]) == set(NO_SHARE)
    three = plus(3).query("subset == 'all'")
    assert three.apply(lambda r: is_share(r["value"], QUESTIONS[r["benchmark"]]), axis=1).all()


def test_table_8_acc_is_no_higher_than_acc_h_and_s_c_allow():
    """If the original order is one of the four, it is right where all are, or where the replies differ.

    Replies that differ cost a question at least 1/4 of S_c, so at most 4 (100 - S_c) percent of questions have them.
    """
    keys = [*WHO, "shots", "n_choices"]
    wide = plus(8).pivot(index=keys, columns="score", values="value")
    rows = plus(8).query("score == 'Acc-H'").set_index(keys)
    assert (wide["Acc-H"] <= wide["Acc"]).all() and (wide["S_c"] >= 25).all()
    holds = (wide["Acc"] <= wide["Acc-H"] + 4 * (100 - wide["S_c"])).reindex(rows.index)
    assert exceptions(rows.reset_index(), holds.reset_index(drop=True), [*keys, "score"]) == set(LOW_ACC_H)


def test_what_stands_twice():
    eight = plus(8).set_index(["model", "benchmark", "shots", "n_choices", "score"])
    for score in ("S_c", "Acc-H"):
        a, b = eight.loc[CHATGPT, "MedMCQA", 5, 6, score], eight.loc[CHATGPT, "MMLU", 5, 8, score]
        assert a["value"] == b["value"] and "suspect" in a["note"] and "suspect" in b["note"]
    nota = plus(3).query("subset == 'all' and score == 'Acc'").pivot(index=WHO, columns="shots", values="value")
    assert set(nota.index[nota[0] == nota[5]]) == {(BAICHUAN, "MMLU"), (BAICHUAN, "MedMCQA")}


def test_sentences_about_the_mcqa_plus_tables():
    "What the paper's text says of its tables, and the rows of which it is not true."
    who = [*WHO, "shots", "score"]
    rows = plus(3).query(
        "subset == 'all' and score == 'Acc-H' and not (model == @CHATGPT and shots == 5)"
    )  # Section 3.1
    assert exceptions(rows, rows["value"] < 5, who) == {
        (BAICHUAN, "MedMCQA", 0, "Acc-H"),
        (CHATGPT, "MedMCQA", 0, "Acc-H"),
    }
    assert plus(3)["difference"].where(plus(3)["subset"] == "all").min() == -70.9
    rows = plus(4).query("score == 'T/F: right'")  # Section 3.2
    assert exceptions(rows, rows["value"] != rows["value"].max(), who) == {
        (BAICHUAN, "MMLU", 5, "T/F: right")
    }  # 91.04, not 91.07
    assert round(100 - plus(4).query("score == 'T/F: wrong'")["value"].min(), 2) == 51.49
    rows = plus(5).query("score == 'Conf_wrong*/Conf_right'")  # Section 3.3
    assert exceptions(rows, rows["value"].between(83.84, 92.69), who) == {
        (BAICHUAN, "MMLU", s, "Conf_wrong*/Conf_right") for s in (0, 5)
    }
    six = plus(6).set_index("score")["value"]
    assert six["Recall_r"].agg(["min", "max"]).tolist() == [78.91, 92.5] and six["Accuracy"].agg(
        ["min", "max"]
    ).tolist() == [39.23, 57.99]
    swept = (
        plus(8)
        .query("n_choices != 4 and shots == 0 and benchmark == 'MMLU' and score == 'Acc'")
        .groupby("model")["value"]
    )
    assert swept.min()[[LLAMA, BAICHUAN]].tolist() == [28.76, 44.44] and swept.max()[[LLAMA, BAICHUAN]].tolist() == [
        49.06,
        75.45,
    ]
    rows = plus(8).query(
        "model == @LLAMA and benchmark == 'MedMCQA' and shots == 0 and n_choices >= 6 and score == 'Acc-H'"
    )  # Section 2.2.1
    assert exceptions(rows, rows["value"] == 0, [*who, "n_choices"]) == {(LLAMA, "MedMCQA", 0, "Acc-H", 6)}


def test_notes_count():
    "A note appears or disappears only on purpose."
    notes = pd.concat([plus(t) for t in PLUS_ROWS])["note"]
    kinds = (
        notes[notes != ""]
        .str.split("; ")
        .explode()
        .str.extract("^(OCR|contradiction|rounding|suspect): ")[0]
        .value_counts()
    )
    assert kinds.to_dict() == {"contradiction": 23, "OCR": 20, "suspect": 15, "rounding": 2}


# --- against the paper's own text -----------------------------------------------------------------------------------

NUMBER = re.compile(r"(-?\d+\.\d+)(?:\s*\(\s*(\d+)\s*\))?")


def paper_table(text: str, table: int) -> list[str]:
    "The lines from the table's caption to its last row."
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"Table {table}:"))
    return lines[start : start + 24]


def score_rows(lines: list[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    "(score, [(number, the one in parentheses)] for the four models), in the order printed."
    found = []
    for line in lines[1:]:
        if line.startswith("Table "):
            break
        name = re.match(r"(MCQA\+?|MV|CoRA|CI)\s", line)
        level = re.match(r"(?:c(\d\.\d)c|\$c \\ge (\d\.\d)\$)", line)
        if name or level:
            found.append((name[1] if name else f"BMCA({level[1] or level[2]})", NUMBER.findall(line)[-4:]))
    return found


@pytest.mark.parametrize("file", ("cora.txt", "cora_acl_submission.txt"))
@pytest.mark.parametrize("table", ROWS)
def test_equal_to_the_text_of_the_paper(file, table):
    path = SHARED / "papers" / file
    if not path.exists():
        pytest.skip(f"needs {path}")
    lines, d = paper_table(path.read_text(encoding="utf-8"), table), load_published(table)
    if table == 7:
        rows = [line.split() for line in lines if re.fullmatch(r"\d+\s+\d\.\d+\s+\d\.\d+", line.strip())]
        assert rows == d[["p", "tail_printed", "msgr_printed"]].astype(str).to_numpy().tolist()
        return
    rows = score_rows(lines)
    if table <= 4:
        rows = rows[:11]
    else:
        rows, differences = rows[:3], rows[3:6]
    note = d["rank"] if "rank" in d else d["sd_x1000"]
    noted = ["" if pd.isna(x) else str(int(x)) for x in note]
    assert [(s, v, r) for s, four in rows for v, r in four] == list(zip(d["score"], d["value_printed"], noted))
    if table > 4:
        assert [v for _, four in differences for v, _ in four] == d["difference_from_table_1_printed"].tolist()


PLUS_NUMBER = re.compile(r"[+-]?\d+\.\d+|[+-]?\d{3,4}(?!\d)")  # 7321 is 73.21 without its point


def plus_paper_table(text: str, table: int) -> list[str]:
    "The numbers of a table of the MCQA+ paper, as the text reads them, in the order printed."
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"Table {table}:"))
    found = []
    for line in lines[start:]:
        if len(numbers := PLUS_NUMBER.findall(line)) >= 4:
            found += numbers
        elif found and re.match(r"Table |(\d|[A-Z]) [A-Z]", line):
            break
    return found


@pytest.mark.parametrize("table", PLUS_ROWS)
def test_equal_to_the_text_of_the_mcqa_plus_paper(table):
    path = SHARED / "papers" / "mcqa_plus.txt"
    if not path.exists():
        pytest.skip(f"needs {path}")
    ours = [
        (number, note)
        for row in plus(table).itertuples()
        for number, note in [(row.value_printed, row.note), (getattr(row, "difference_printed", pd.NA), row.note)]
        if not pd.isna(number)
    ]
    read = plus_paper_table(path.read_text(encoding="utf-8"), table)
    assert len(read) == len(ours)
    lost = 0
    for theirs, (number, note) in zip(read, ours):
        if "." not in theirs:
            lost += 1
            assert number.replace(".", "") == theirs and f"the text reads {theirs}," in note
        else:
            assert number == theirs
    assert lost == plus(table)["note"].str.contains("OCR: ").sum()


# --- Li et al. ---


def test_table_3_of_li_et_al_is_complete():
    d = load_published(3, "li2024")
    models, benchmarks = ["GPT-3.5-turbo", "GPT-4", "ChatGLM-6B"], ["CARE-MI", "M3KE", "ARC", "MATH"]
    assert list(d["model"].unique()) == models and list(d["benchmark"].unique()) == benchmarks
    assert len(d) == 48 and not d.duplicated(["model", "benchmark", "score"]).any()
    assert d["source"].nunique() == 1 and "at 18d4664b" in d["source"][0]
    forms = {"X²": r"\d+\.\d{3}", "p": r"0\.\d{3}", "accuracy": r"0\.\d{3}", "accuracy gap": r"[+-]0\.\d{2,3}"}
    for score, form in forms.items():
        assert d[d["score"] == score]["value_printed"].str.fullmatch(form).all()
    stars = d[d["score"] == "p"].set_index(["model", "benchmark"])
    assert (stars["mark"] != "").eq(stars["value"] < 0.05).all() and (d[d["score"] != "p"]["mark"] == "").all()
    odd = stars[(stars["mark"] == "**") & (stars["value"] >= 0.001)]
    assert list(odd.index) == [("ChatGLM-6B", "M3KE")] and odd["note"].str.contains("the caption keeps").all()


def test_table_3_is_the_one_of_the_authors_readme(shared):
    file = shared / "recorded" / "li2024" / "table_3_printed.csv"
    if not file.exists():
        pytest.skip(f"needs {file}")
    names = {"chi_squared": "X²", "p": "p", "accuracy": "accuracy", "gap": "accuracy gap"}
    theirs = pd.read_csv(file, dtype=str).set_index(["source", "metric"])
    for row in load_published(3, "li2024").itertuples():
        metric = next(k for k, v in names.items() if v == row.score)
        assert theirs.loc[(row.benchmark, metric), row.model] == row.value_printed + row.mark
