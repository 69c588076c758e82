"Results: one list of columns, one number a row, each looked up by what names it."

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cora_nb.core import CoraError
from cora_nb.report.words import SENTENCES
from cora_nb.results import (
    IN_WORDS,
    IDENTITY,
    REMARKS,
    RESULT,
    Remark,
    lookup,
    make_result,
    side_by_side,
    stack_results,
    values_of,
)

words = st.one_of(st.none(), st.sampled_from(["a", "b", "c"]))
rows = st.lists(
    st.fixed_dictionaries(
        {"score": st.sampled_from("xyz"), "value": st.one_of(st.none(), st.floats(-5, 5))},
        optional={"respondent": words, "method": words, "subject": words, "place": st.integers(0, 3)}
        | {c: st.one_of(st.none(), st.floats(0, 1)) for c in ("low", "high", "p")}
        | {"n": st.one_of(st.none(), st.integers(0, 9)), "note": st.one_of(st.none(), st.text(max_size=4))},
    ),
    min_size=1,
    max_size=8,
)


def named_once(some):
    names = [tuple(row.get(c) for c in IDENTITY) for row in some]
    return len(set(names)) == len(names)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(rows.filter(named_once))
def test_a_result_keeps_every_number_in_the_order_of_the_list(some):
    result = make_result(some)
    assert list(result) == list(RESULT)
    assert len(result) == len(some) and list(result.index) == list(range(len(some)))
    for column in ("value", "low", "high", "p", "n"):
        wanted = [np.nan if row.get(column) is None else float(row[column]) for row in some]
        found = result[column].to_numpy(float, na_value=np.nan)
        assert np.array_equal(found, wanted, equal_nan=True)
    assert make_result(result).equals(result)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(rows.filter(named_once))
def test_every_row_is_found_by_what_names_it(some):
    result = make_result(some)
    for i, row in result.iterrows():
        where = {c: None if pd.isna(row[c]) else row[c] for c in IDENTITY if c in result and c != "score"}
        assert lookup(result, row["score"], **where).name == i
    assert values_of(result).to_numpy().tolist() == pytest.approx(result["value"].tolist(), nan_ok=True)


def test_what_all_rows_share_is_given_once():
    result = make_result([{"score": "a", "value": 1}, {"score": "b", "value": 2}], respondent="ada", subject=None, n=3)
    assert list(result) == list(RESULT) and result["n"].tolist() == [3, 3] and result["subject"].isna().all()
    assert values_of(result).to_dict() == {"a": 1, "b": 2}


def test_results_of_two_runs_are_told_apart_by_name():
    one = make_result([{"score": "a", "value": 1, "n": 2}], respondent="ada")
    both = stack_results({"first": one, "second": one})
    assert both["respondent"].tolist() == ["first", "second"]
    assert values_of(both, "n").to_dict() == {("first", "a"): 2, ("second", "a"): 2}
    assert stack_results({}).empty
    with pytest.raises(CoraError, match="two numbers for respondent ada, score a"):
        make_result(pd.concat([one, one]))


@pytest.mark.parametrize(
    "some, said",
    [
        ([{"score": "a"}], "there is no column 'value'"),
        ([{"value": 1}], "there is no column 'score'"),
        ([{"score": "a", "value": 1, "questions": 3}], "got 'questions'"),
        ([{"score": "a", "value": 1}, {"score": "a", "value": 2}], "two numbers for score a"),
        ([{"score": "a", "value": 1, "method": None}] * 2, "two numbers for score a"),
    ],
)
def test_what_is_no_result_is_refused(some, said):
    with pytest.raises(CoraError, match=said):
        make_result(some)


def test_lookup_says_what_there_is():
    result = make_result([{"method": m, "score": "a", "value": 1} for m in ("original", "nota")])
    for call, said in [
        (lambda: lookup(result), "2 numbers of this result fit; say which method: original, nota"),
        (lambda: lookup(result, "b"), "no number of this result has the score 'b'; there are a"),
        (lambda: lookup(result, "a", method="shuffled"), "has the method 'shuffled'; there are original, nota"),
        (lambda: lookup(result, "a", place=1), "this result has no column 'place'; it has method, score, value"),
        (lambda: values_of(result, "p"), "this result has no column 'p'"),
        (lambda: stack_results({"a": result}, "value"), "column must be one of"),
    ]:
        with pytest.raises(CoraError, match=said):
            call()


def test_runs_with_several_names_are_told_apart_by_all_of_them():
    one = make_result([{"score": "a", "value": 1}], respondent="ada")
    both = stack_results({("m", 0.5): one, ("m", 1.0): one}, ("respondent", "place"))
    assert both[["respondent", "place"]].to_numpy().tolist() == [["m", 0.5], ["m", 1.0]]
    for name in ("m", ("m", 1, 2)):
        with pytest.raises(CoraError, match="a name must be a tuple of respondent, place, got"):
            stack_results({name: one}, ("respondent", "place"))


def test_the_note_is_always_there_and_a_point_is_never_without_one():
    assert make_result([{"score": "a", "value": 1}])["note"].tolist() == [""]
    assert make_result([{"score": "a", "value": 1, "note": None}])["note"].tolist() == [""]
    assert make_result([])["note"].tolist() == []
    rows = [dict(score="a", value=1, low=1, high=1), dict(score="b", value=1, low=0, high=1), dict(score="c", value=1)]
    found = make_result([*rows, dict(score="d", value=1, low=1, high=1, note="exact")])
    point = "the interval is a point, since nothing varies here: few to rely on"
    assert found["note"].tolist() == [point, "", "", "exact"]


def test_a_value_that_is_fixed_by_definition_gets_no_remark():
    rows = [{"score": s, "value": 1.0, "low": 1.0, "high": 1.0} for s in ("BMCA(0)", "BMCA(0.0)", "BMCA(1.0)", "MCQA")]
    assert make_result(rows)["note"].map(bool).tolist() == [False, False, True, True]


@settings(max_examples=50)
@given(st.permutations([(who, what) for who in ("bob", "ann", "cid") for what in ("MV", "CoRA")]), st.integers(0, 2))
def test_side_by_side_puts_each_number_where_it_belongs_in_any_order(pairs, missing):
    "pandas before 3 puts numbers into other cells with `unstack(..., sort=False)`."
    pairs = pairs[missing:]
    values = pd.Series(range(len(pairs)), pd.MultiIndex.from_tuples(pairs, names=["respondent", "score"]), dtype=float)
    for level, rest, swapped in (("respondent", "score", False), ("score", "respondent", True)):
        wide = side_by_side(values, level)
        assert list(wide) == list(dict.fromkeys(values.index.get_level_values(level)))
        assert list(wide.index) == list(dict.fromkeys(values.index.get_level_values(rest)))
        for (who, what), value in values.items():
            assert (wide.loc[who, what] if swapped else wide.loc[what, who]) == value
        assert int(wide.notna().sum().sum()) == len(pairs)
    assert side_by_side(values).equals(side_by_side(values, "score"))


def test_side_by_side_of_several_levels():
    pairs = [("bob", "MV", 2), ("bob", "MV", 1), ("ann", "MV", 2), ("ann", "CoRA", 1)]
    values = pd.Series(range(4), pd.MultiIndex.from_tuples(pairs, names=["respondent", "score", "place"]), dtype=float)
    assert list(side_by_side(values, ["place", "score"])) == [(2, "MV"), (1, "MV"), (1, "CoRA")]
    wide = side_by_side(values, ["score", "place"])
    assert (list(wide.index), list(wide)) == (["bob", "ann"], [("MV", 2), ("MV", 1), ("CoRA", 1)])
    assert wide.stack(["score", "place"]).dropna().to_dict() == values.to_dict()


def test_nothing_uses_what_pandas_2_mixes_up():
    root = Path(__file__).parents[1]
    files = [f for folder in ("cora_nb", "nbs", "tests", "scripts") for f in (root / folder).rglob("*.*")]
    texts = {f: f.read_text(encoding="utf-8") for f in files if f.suffix in (".py", ".ipynb")}
    assert [f.name for f, text in texts.items() if re.search(r"\w\.unstack\([^()]*sort=False", text)] == []


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(rows.filter(named_once), st.data())
def test_the_standing_follows_from_the_numbers(some, data):
    ends = [data.draw(st.one_of(st.none(), st.tuples(st.floats(0, 1), st.floats(0, 1)))) for _ in some]
    bounds = [{} if pair is None else {"least": min(pair), "most": max(pair)} for pair in ends]
    result = make_result([row | more for row, more in zip(some, bounds)])
    for row, more in zip(result.itertuples(), bounds):
        apart = bool(more) and more["least"] < more["most"]
        known = row.value == row.value
        assert row.status == ("bounded" if apart else "exact" if known else "unknown")
        assert not apart or (row.least, row.most) == (more["least"], more["most"])
    again = make_result(result.assign(value=0.5))  # another number: what was exact stays so
    assert (again.loc[result["status"] == "exact", ["value", "least", "most"]] == 0.5).all(axis=None)


def test_an_estimate_says_so_itself_and_missing_replies_are_never_exact():
    rows = [dict(score="a", value=0.5, status="estimated"), dict(score="b", value=None, status="estimated")]
    lost = make_result([*rows, dict(score="c", value=0.5, remarks=Remark("unknown", 3, of=5))])
    assert lost["status"].tolist() == ["estimated", "unknown", "bounded"] and lost["least"].isna().all()
    with pytest.raises(CoraError, match="the kind of a remark must be one of unknown, .*, got 'lost'"):
        Remark("lost", 3)
    with pytest.raises(CoraError, match="status must be one of exact, estimated, bounded, unknown, got 'sure'"):
        make_result([dict(score="a", value=1, status="sure")])


def test_people_read_remarks_in_words():
    lost = Remark("unknown", 3, of=33_098, why=("failed",))
    result = make_result([dict(score="a", value=0.3571, least=0.3571, most=0.3577, remarks=(lost,))], respondent="ada")
    said = "3 of 33,098 failed: at most 0.358"
    assert (
        result["note"].tolist() == [said] and lookup(result).note == said and values_of(result, "note").item() == said
    )
    assert repr(result).split() == f"respondent score value note 0 ada a 0.3571 {said}".split()
    assert said in result.to_string() and "benchmark" not in result.to_string()
    assert (
        "0.357 (at most 0.358)</td>" in result._repr_html_()
        and "<p>ada: 3 of 33,098 failed</p>" in result._repr_html_()
    )
    assert "note" not in result and {case.split()[0] for case in SENTENCES} == set(REMARKS)


def test_a_long_result_and_a_part_of_one_are_shown_as_pandas_shows_them():
    "A table of hundreds of rows is nothing to read, and nothing that is displayed may raise."
    rows = make_result([dict(score="x", value=0.5, low=0.4, high=0.6, place=i) for i in range(300)])
    assert "0.500 [0.400, 0.600]" in rows[:50]._repr_html_()
    for result in (rows, rows[["score", "value"]], rows[:0]):
        assert "cora-table" not in result._repr_html_()
    alike = make_result([dict(score="x", value=1, place=place) for place in (1, "1")])
    assert "cora-table" not in alike._repr_html_()  # two numbers in one cell


def test_the_words_of_a_result_are_registered(monkeypatch):
    result = make_result([{"score": "x", "value": 0.5, "remarks": Remark("few", 3, what="question")}])
    assert result["note"].tolist() == ["3 questions: few to rely on"]
    monkeypatch.setitem(IN_WORDS.registered, "note", lambda result: ["peu"] * len(result))
    assert result["note"].tolist() == lookup(result, "x")[["note"]].tolist() == ["peu"]
