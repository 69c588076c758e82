"""One respondent that fails, refuses, is unread, runs out of its budget and is sampled: its account by hand beside what
every face says of it."""

import csv
import io
import warnings

import numpy as np
import pytest

import cora_nb as cn
from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.cli.gate import cora_gate
from cora_nb.metrics.account import account
from cora_nb.metrics.sampled import is_estimate
from cora_nb.respondents.protocol import OVER_BUDGET, Reply

pytestmark = pytest.mark.filterwarnings("ignore")
FIVE = cn.make_variants(math_benchmark(5, n_choices=2))  # five questions of eight variants
MANY = cn.make_variants(math_benchmark(200, seed=3, n_choices=3))
PLACE = {id(v): i % size for variants, size in ((FIVE, 8), (MANY, 14)) for i, v in enumerate(variants)}
FAILED, REFUSED, UNREAD = Reply(error="timed out"), Reply("", meta={"finish_reason": "refusal"}), Reply("Who knows?")


class Ann:
    "Right, except where it is told what to reply to a question's variant of some number."

    name, spending = "ann", None

    def __init__(self, told):
        self.told = told

    def describe(self):
        return {"respondent": "ann"}

    def request(self, prompt):
        return {"asked": [prompt.variant.question_id, prompt.variant.method, prompt.variant.index]}

    async def answer(self, prompts):
        for i, prompt in enumerate(prompts):
            ticket = await self.spending.admit(1, 1) if self.spending else 0
            variant = prompt.variant
            reply = self.told.get((variant.question_id, PLACE[id(variant)]), Reply("ABCDE"[variant.answer]))
            if ticket:
                self.spending.settle(ticket, reply)
            yield i, OVER_BUDGET if ticket is None else reply


def questions(variants):
    return list(dict.fromkeys(v.question_id for v in variants))


@pytest.fixture(scope="module")
def run():
    "The second question is refused once, the third unread once, the fourth's original fails, the fifth is cut off."
    ids = questions(FIVE)
    told = {(ids[1], 3): REFUSED, (ids[2], 5): UNREAD, (ids[3], 0): FAILED}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cn.evaluate(Ann(told), FIVE, budget=cn.Budget(calls=37), progress=False, strict=None)


def best():
    return cn.evaluate(Ann({}), FIVE, progress=False).rows(lambda t: t["index"] >= 0)


# By hand. The five originals: right, right, right, failed, right. Hits: 8, 7, 7, 7 and 5 of 8; the third question may
# have 8, if its unread reply was right, the fourth 8, the fifth 6, 7 or 8. All five have more than half of their
# variants right, whatever the others would be. With m for MCQA and b for BMCA(1.0), CoRA is m (1 - m + b): m is 0.8 or
# 1, and b is at least 0.2, and 0.2 more for each of the third question, the fourth (if its original is right, so that
# m is 1) and the fifth.
BY_HAND = {
    "MCQA": (0.8, 1.0),
    "MCQA+": (34 / 40, 39 / 40),
    "MV": (1.0, 1.0),
    "BMCA(1.0)": (0.2, 0.8),
    "CI": (0.4, 0.8),
    "CoRA": (0.8 * (1 - 0.8 + 0.2), 1.0 * (1 - 1 + 0.8)),
}


def test_the_account(run):
    states = run.table["state"].value_counts()
    assert {s: n for s, n in states.items() if n} == {
        "answered": 34,
        "over_budget": 3,
        "unread": 1,
        "refused": 1,
        "failed": 1,
    }
    known = account(run)
    assert known.questions["right"].tolist() == [8, 7, 7, 7, 5] and set(known.trials) == {8}
    assert known.questions["own_right"].tolist() == [1, 1, 1, 0, 1]
    assert known.questions["own_unknown"].tolist() == [0, 0, 0, 1, 0]
    assert known.questions["unknown"].tolist() == [0, 0, 0, 1, 3] and known.why == ("failed", "over_budget")
    assert known.questions["unread"].tolist() == [0, 0, 1, 0, 0] and not known.questions["missing"].any()


def test_the_scores(run):
    found = cn.score(run).set_index("score")
    for name, (least, most) in BY_HAND.items():
        row = found.loc[name]
        assert (row["least"], row["most"]) == (pytest.approx(least), pytest.approx(most)), name
        assert row["status"] == ("exact" if least == most else "bounded")
        assert row["value"] == least if least == most else np.isnan(row["value"])
        assert bool(row["remarks"]) == (least != most)
    again = cn.score(run, failed="wrong").set_index("score")  # the failed original is wrong, and the cut ones are open
    assert again.loc["MCQA", "value"] == 0.8 and again.loc["CoRA", "status"] == "bounded"


def test_a_comparison_has_the_bounds_of_the_difference(run):
    found = cn.compare(run, best(), resamples=50).set_index("score")
    for name, (least, most) in BY_HAND.items():
        whole = 1.0  # of a run in which everything is right
        ends = found.loc[name, ["least", "most"]].astype(float).tolist()
        assert ends == pytest.approx([least - whole, most - whole]), name
        assert np.isnan(found.loc[name, "p"]) == (least != most), name


def test_the_table_the_csv_and_the_page_say_the_same(run):
    table = cn.render(cn.score_table([run]))
    told = csv.DictReader(io.StringIO(cn.render(cn.score_table([run]), "csv")))
    rows = {r["score"]: r for r in told if r["respondent"] == "ann"}
    page = cn.make_report(run, pictures=False).html
    for name in ("MCQA", "MCQA+", "CoRA", "CI"):
        least, most = BY_HAND[name]
        words = f"from {least:.3f} to {most:.3f}"
        (line,) = [line for line in table.splitlines() if line.split()[:1] == [name]]
        assert words in line and words in rows[name]["note"] and rows[name]["value"] == ""
        assert words in page
    assert "MV" in rows and float(rows["MV"]["value"]) == 1 and "1.00" in table


def test_the_gate_does_not_pass_what_is_not_known(run, tmp_path, capsys):
    cn.write_responses(run, tmp_path / "ann")
    with pytest.raises(SystemExit) as ended:
        cora_gate(str(tmp_path / "ann"), at_least="CoRA=0.3,MCQA=0.5")  # even the least reaches both
    assert ended.value.code == 3
    said = capsys.readouterr().out
    assert said.count("not known") >= 2 and "4 of 40 prompts" in said and "1 of 5 prompts" in said


@pytest.mark.slow
@pytest.mark.parametrize("lost", [{}, {7: FAILED, 90: FAILED}])
def test_a_sample_counts_refused_and_unread_as_wrong_and_covers_failures(lost):
    "The scores of the full run, in which all that failed is right, or all wrong, lie in the interval."
    ids = questions(MANY)
    told = {(ids[k], 0): reply for k, reply in {3: REFUSED, 4: UNREAD, 5: Reply("wrong"), **lost}.items()}
    told |= {(ids[k], 2): UNREAD for k in range(20, 60)}
    part, whole = (
        cn.evaluate(Ann(told), MANY, stop=stop, progress=False, strict=None)
        for stop in (cn.Precise(half_width=0.08), None)
    )
    assert is_estimate(part)
    row, other = (cn.lookup(cn.score(part), name) for name in ("CoRA", "MV"))
    worst = cn.lookup(cn.score(whole, failed="wrong"), "CoRA").value
    right = {key: reply for key, reply in told.items() if reply is not FAILED}
    most = cn.lookup(cn.score(cn.evaluate(Ann(right), MANY, progress=False)), "CoRA").value
    assert row.status == "estimated" and row.low <= min(worst, most) and max(worst, most) <= row.high
    assert other.status == "unknown" and np.isnan(other.value)
    (line,) = [line for line in cn.render(cn.score_table([part])).splitlines() if line.split()[:1] == ["CoRA"]]
    assert f"≈{row.value:.2f} [{row.low:.2f}, {row.high:.2f}]" in line
    assert f"≈{row.value:.2f}" in cn.make_report(part, pictures=False).html
