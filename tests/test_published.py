"""The published tables: well-formed, complete, and equal to what the paper's text prints."""
import os
import re
from pathlib import Path

import pandas as pd
import pytest

from cora_nb.core import CoraError, data_path
from cora_nb.published import load_published

SHARED = Path(os.environ.get("CORA_SHARED", Path(__file__).resolve().parents[2] / "shared"))
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
    with pytest.raises(CoraError, match="table must be a whole number from 1 to 7"): load_published(table)


# --- against the paper's own text --------------------------------------------------------------------------------------------

NUMBER = re.compile(r"(-?\d+\.\d+)(?:\s*\(\s*(\d+)\s*\))?")


def paper_table(text: str, table: int) -> list[str]:
    "The lines from the table's caption to its last row."
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"Table {table}:"))
    return lines[start:start + 24]


def score_rows(lines: list[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    "(score, [(number, the one in parentheses)] for the four models), in the order printed."
    found = []
    for line in lines[1:]:
        if line.startswith("Table "): break
        name = re.match(r"(MCQA\+?|MV|CoRA|CI)\s", line)
        level = re.match(r"(?:c(\d\.\d)c|\$c \\ge (\d\.\d)\$)", line)
        if name or level: found.append((name[1] if name else f"BMCA({level[1] or level[2]})", NUMBER.findall(line)[-4:]))
    return found


@pytest.mark.parametrize("file", ("cora.txt", "cora_acl_submission.txt"))
@pytest.mark.parametrize("table", ROWS)
def test_equal_to_the_text_of_the_paper(file, table):
    path = SHARED / "papers" / file
    if not path.exists(): pytest.skip(f"needs {path}")
    lines, d = paper_table(path.read_text(encoding="utf-8"), table), load_published(table)
    if table == 7:
        rows = [line.split() for line in lines if re.fullmatch(r"\d+\s+\d\.\d+\s+\d\.\d+", line.strip())]
        assert rows == d[["p", "tail_printed", "msgr_printed"]].astype(str).to_numpy().tolist()
        return
    rows = score_rows(lines)
    if table <= 4: rows = rows[:11]
    else: rows, differences = rows[:3], rows[3:6]
    note = d["rank"] if "rank" in d else d["sd_x1000"]
    noted = ["" if pd.isna(x) else str(int(x)) for x in note]
    assert [(s, v, r) for s, four in rows for v, r in four] == list(zip(d["score"], d["value_printed"], noted))
    if table > 4: assert [v for _, four in differences for v, _ in four] == d["difference_from_table_1_printed"].tolist()
