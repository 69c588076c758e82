"""The bounds of every score, against all ways in which what is not known of a run could have come out.

The scores are written here again from their definitions, with plain loops: nothing is taken from the package's own.
"""

import itertools
import math
import random

import numpy as np
import pandas as pd
import pytest

import cora_nb as cn
from cora_nb.core import Question
from cora_nb.respondents.protocol import NOT_ASKED, OVER_BUDGET, Reply
from cora_nb.responses.responses import make_responses
from helpers import slow_after

pytestmark = pytest.mark.filterwarnings("ignore")

FACTS = {"variants": {"recipe": {"family": "cora", "seed": 0, "options": {}}, "families": ["cora"]}}
OPEN_REPLIES = {
    "failed": Reply(error="timed out"),
    "over_budget": OVER_BUDGET,
    "not_asked": NOT_ASKED,
    "unread": Reply("no idea"),
}
UNKNOWN = ("failed", "over_budget", "not_asked", "absent")  # an unread reply is known, and counts as wrong
THRESHOLDS = ("0.5", "0.6", "0.7", "0.8", "0.9", "1.0")
SCORES = ("MCQA", "MCQA+", "RC", "MV", *(f"BMCA({c})" for c in THRESHOLDS), "CI", "CoRA", "CORE")
MOST_WAYS = 2**12
TINY = 1e-9


# The scores of one way, from their definitions


def terms(hits, trials, original_hits, original_trials):
    "What one question adds to each sum: exact numbers are compared, never rounded shares."
    reached = [10 * hits >= k * trials for k in range(11)]
    return (original_hits / original_trials, hits, trials, hits / trials, 2 * hits > trials, *reached)


def scores_of_sums(n, own, hits, trials, share, majority, *reached):
    "All scores of n questions, from the sums of their terms."
    y = [r / n for r in reached]  # y[k] is BMCA(k/10)
    found = {"MCQA": own / n, "MCQA+": hits / trials, "RC": share / n, "MV": majority / n}
    found |= {f"BMCA({c})": y[round(10 * float(c))] for c in THRESHOLDS}
    found["CI"] = 1 - (found["MCQA"] - y[10])
    found["CoRA"] = found["MCQA"] * found["CI"]
    area = sum((y[k] + y[k + 1]) / 2 for k in range(10)) / 10
    found["CORE"] = area * sum(y[1:]) / 10
    return found


def scores_of(way):
    "All scores of one way, which is a list of what each question adds."
    return scores_of_sums(len(way), *(sum(column) for column in zip(*way)))


def extremes(ways):
    "The smallest and the largest value of each score over all ways."
    found = [scores_of(way) for way in ways]
    return {name: (min(f[name] for f in found), max(f[name] for f in found)) for name in SCORES}


# A run is made from the fate of each of its prompts: right, wrong, unread, failed, over_budget, not_asked, missing (it
# has no row) or absent (it has no row in this trial, and its question none either, but there is another trial).


class Case:
    "Questions, and the fate of every prompt, by the place of its question, its method, its index and its trial."

    def __init__(self, n_choices, n_trials=1, pooled=False, subjects=None):
        self.questions = [
            Question(f"q{i}", f"Question {i}?", tuple(f"c{i}{j}" for j in range(a)), i % a, subjects and subjects[i])
            for i, a in enumerate(n_choices)
        ]
        self.variants = list(cn.make_variants(self.questions, "cora", 0))
        assert len(self.variants) == sum(2 + 6 * (a - 1) for a in n_choices)
        self.n_trials, self.pooled = n_trials, pooled
        self.fates = {self.place(v, t): "right" for t in range(n_trials) for v in self.variants}

    def place(self, variant, trial):
        return int(variant.question_id[1:]), variant.method, variant.index, trial

    def run(self):
        "The run, without the rows that are missing or absent."
        replies = [self.reply(v, self.fates[self.place(v, t)]) for t in range(self.n_trials) for v in self.variants]
        trials = [t for t in range(self.n_trials) for _ in self.variants]
        run = make_responses(self.variants * self.n_trials, replies, "careful", trials, "x", FACTS)
        there = np.array([fate not in ("missing", "absent") for fate in self.fates.values()])
        run = run if there.all() else run.rows(there)
        return run.pool_trials() if self.pooled else run

    def reply(self, variant, fate):
        shift = 0 if fate == "right" else 1
        right_or_wrong = variant.labels[(variant.answer + shift) % variant.n_choices]
        return OPEN_REPLIES.get(fate, right_or_wrong)

    def cells(self, question=None):
        "The places of the prompts that the scores use."
        return [c for c in self.fates if (question is None or c[0] == question) and (self.pooled or c[3] == 0)]

    def open_cells(self, question=None):
        return [c for c in self.cells(question) if self.fates[c] not in ("right", "wrong")]

    def outcomes(self, question):
        "All that a question may add. Its open replies are told apart only by whether the original was shown."
        fates = {c: self.fates[c] for c in self.cells(question)}
        own = [fate for c, fate in fates.items() if c[1] == "original"]
        rest = [fate for c, fate in fates.items() if c[1] != "original"]
        return [
            terms(own.count("right") + i + rest.count("right") + j, len(fates), own.count("right") + i, len(own))
            for i in range(sum(fate not in ("right", "wrong") for fate in own) + 1)
            for j in range(sum(fate not in ("right", "wrong") for fate in rest) + 1)
        ]

    def n_ways(self):
        return math.prod(len(self.outcomes(i)) for i in range(len(self.questions)))

    def bounds(self, chosen=None):
        "The smallest and the largest value of each score, over all ways; of some questions only, if they are chosen."
        chosen = range(len(self.questions)) if chosen is None else chosen
        return extremes(itertools.product(*(self.outcomes(i) for i in chosen)))

    def values(self, bounds, chosen=None):
        """What each score may say: the values, of which it must say one; None if the definition leaves it open.

        Replies that are not known count as wrong, as long as they are at most one in a hundred of those there.
        """
        chosen = range(len(self.questions)) if chosen is None else chosen
        there = {c: self.fates[c] for i in chosen for c in self.cells(i) if self.fates[c] != "missing"}
        if self.n_trials > 1 and not self.pooled:  # an absent question has the prompts that it has in the other trial
            there = {c: f for c, f in there.items() if f != "absent" or self.fates[(*c[:3], 1)] != "missing"}
        parted = any(self.fates[c] == "missing" for i in chosen for c in self.cells(i))
        parted |= len({c[:3] for c in there}) < len({c[:3] for i in chosen for c in self.cells(i)})
        way = []
        for i in chosen:
            own = [fate == "right" for c, fate in there.items() if c[0] == i and c[1] == "original"]
            every = [fate == "right" for c, fate in there.items() if c[0] == i]
            way.append(terms(sum(every), len(every), sum(own), len(own) or 1))
        found = scores_of(way)
        if lost := [i for i in chosen if not any(c[0] == i and c[1] == "original" for c in there)]:
            shares = [w[0] for i, w in zip(chosen, way) if i not in lost]
            found["MCQA"] = sum(shares) / len(shares) if shares else math.nan
        possible = {}
        for name in SCORES:
            used = [fate for c, fate in there.items() if name != "MCQA" or c[1] == "original"]
            unknown = sum(fate in UNKNOWN for fate in used)
            least, most = bounds[name]
            if parted and name in ("CI", "CoRA"):
                possible[name] = [math.nan, least] if most - least < TINY else [math.nan]
            elif most - least < TINY:
                possible[name] = [least]
            elif self.elsewhere(chosen):
                possible[name] = None
            elif name == "MCQA" and lost:
                possible[name] = None if unknown else [found[name], math.nan]
            elif 100 * unknown <= len(used) or self.known_all_the_same(name, there, chosen):
                possible[name] = [found[name]]
            else:
                possible[name] = [math.nan]
        return possible

    def known_all_the_same(self, name, there, chosen):
        "Whether a score is one number, however unknown replies came out, if unread ones are wrong."
        ways = []
        for i in chosen:
            fates = {c: f for c, f in there.items() if c[0] == i}
            own = [f for c, f in fates.items() if c[1] == "original"]
            rest = [f for c, f in fates.items() if c[1] != "original"]
            ways.append(
                [
                    terms(
                        own.count("right") + a + rest.count("right") + b,
                        len(fates),
                        own.count("right") + a,
                        len(own) or 1,
                    )
                    for a in range(sum(f in UNKNOWN for f in own) + 1)
                    for b in range(sum(f in UNKNOWN for f in rest) + 1)
                ]
            )
        if name not in ("CI", "CoRA"):  # these rise with every right reply
            least, most = (scores_of([way[end] for way in ways])[name] for end in (0, -1))
            return most - least < TINY
        if math.prod(map(len, ways)) > 1 << 12:
            return False  # so many ways of originals are never one number
        least, most = extremes(itertools.product(*ways))[name]
        return most - least < TINY

    def elsewhere(self, chosen):
        """Whether some variant has a row in another trial only, and its question has others in the first.

        Its reply is open. Whether it is one of those that may be one in a hundred, the definitions do not say.
        """
        mine = [c for i in chosen for c in self.cells(i) if self.fates[c] == "missing"]
        later = [(*c[:3], t) for c in mine for t in range(1, self.n_trials)]
        return not self.pooled and any(self.fates[c] != "missing" for c in later)

    def settled(self, chosen=None):
        "The scores of which nothing is open: MCQA looks at the originals alone."
        chosen = range(len(self.questions)) if chosen is None else chosen
        methods = {c[1] for i in chosen for c in self.open_cells(i)}
        return () if "original" in methods else ("MCQA",) if methods else SCORES


def same(a, b):
    return math.isnan(a) and math.isnan(b) or abs(a - b) < TINY


def differences(table, case, chosen=None, bounds=None):
    "Where a table of scores is not what the oracle says: nothing, if all is right."
    bounds = bounds or case.bounds(chosen)
    possible, settled, table = case.values(bounds, chosen), case.settled(chosen), table.set_index("score")
    assert set(SCORES) <= set(table.index)
    assert {"value", "least", "most", "status", "remarks"} <= set(table)
    wrong = {}
    for name in SCORES:
        row, (least, most) = table.loc[name], bounds[name]
        if not (same(row["least"], least) and same(row["most"], most)):
            wrong[name, "bounds"] = f"got {row['least']} to {row['most']}, all ways {least} to {most}"
        if possible[name] is not None and not any(same(row["value"], v) for v in possible[name]):
            wrong[name, "value"] = f"got {row['value']}, should be {' or '.join(map(str, possible[name]))}"
        if most - least > TINY and row["status"] == "exact" or name in settled and row["status"] != "exact":
            wrong[name, "status"] = f"got {row['status']}, all ways {least} to {most}"
    return wrong


def check(case):
    "Assert that the scores of a run are as the oracle says."
    wrong = differences(pd.DataFrame(cn.score(case.run())), case)
    assert not wrong, "\n".join([f"{name} {what}: {words}" for (name, what), words in wrong.items()])


# Random runs


def known_case(rng, n_trials=1, pooled=False, n_choices=None, subjects=None):
    "A run in which nothing is open; many of its questions are wholly right or wholly wrong."
    n_choices = n_choices or [rng.choice((2, 2, 3)) for _ in range(rng.randint(2, 5))]
    case = Case(n_choices, n_trials, pooled, subjects)
    for i in range(len(n_choices)):
        mood = rng.choice(
            ("right", "right", "right", "wrong", "wrong", "one wrong", "one right", "own", "rest", "mixed")
        )
        cells = [c for c in case.fates if c[0] == i]
        odd = rng.choice(cells)
        for c in cells:
            original = c[1] == "original"
            right = {
                "right": True,
                "wrong": False,
                "one wrong": c != odd,
                "one right": c == odd,
                "own": original,
                "rest": not original,
                "mixed": rng.random() < 0.6,
            }[mood]
            case.fates[c] = "right" if right else "wrong"
    return case


def open_up(case, rng, kinds):
    "Leave some replies open, one after the other, while there are not too many ways."
    for _ in range(rng.choice((1, 1, 2, 3, 4, 6, 8, 10))):
        question, kind = rng.randrange(len(case.questions)), rng.choice(kinds)
        before = dict(case.fates)
        if kind == "absent":
            lose_first_trial(case, rng, question, "missing" in kinds)
        else:
            cells = [c for c in case.cells(question) if case.fates[c] not in ("missing", "absent")]
            own = [c for c in cells if c[1] == "original"]
            some = own if own and rng.random() < 0.4 else cells
            drawn = rng.sample(some, min(1, len(some)))
            for c in cells if rng.random() < 0.05 else drawn:
                lose(case, rng, c, kind)
        if case.n_ways() > MOST_WAYS or not all(has_row(case, i) for i in range(len(case.questions))):
            case.fates = before
    return case


def lose(case, rng, cell, kind):
    "Leave one reply open. A variant that is missing has no row in any trial that counts."
    case.fates[cell] = kind
    if kind == "missing":
        for c in case.fates:
            if c[:3] == cell[:3] and (case.pooled or c[3] > 0 and rng.random() < 0.5):
                case.fates[c] = kind


def lose_first_trial(case, rng, question, also_later):
    "A question that has rows in trial 1 only; perhaps not all of them, if some may be missing there."
    for c in case.cells(question):
        case.fates[c] = "absent"
    if also_later:
        later = [c for c in case.fates if c[0] == question and c[3] == 1]
        for c in rng.sample(later, rng.choice((0, 0, 1, len(later) - 1))):
            case.fates[c] = "missing"


def has_row(case, question):
    "Whether a question has a row in the first trial, or is absent there and has one in another; and the run has one."
    gone = ("missing", "absent")
    here = any(case.fates[c] != "missing" for c in case.cells(question))
    somewhere = any(fate not in gone for c, fate in case.fates.items() if c[0] == question)
    return here and somewhere and any(fate not in gone for c, fate in case.fates.items() if c[3] == 0)


def random_case(seed, *kinds, **how):
    rng = random.Random(f"{seed} {kinds} {how}")
    return open_up(known_case(rng, **how), rng, kinds)


def seeds(fast, of):
    "The seeds of a test, of which all but the first are slow."
    return slow_after(fast, range(of))


# The oracle itself


def test_the_oracle_by_hand():
    "Two questions of 8 variants: of one, only the original is open and the rest is right; of the other, 3 are right."
    case = Case([2, 2])
    case.fates[0, "original", 0, 0] = "failed"
    others = [c for c in case.cells(1) if c[1] != "original"]
    case.fates |= {c: "wrong" for c in others[2:]}
    bounds = case.bounds()
    assert bounds["MCQA"] == (1 / 2, 1) and bounds["MCQA+"] == (10 / 16, 11 / 16) == bounds["RC"]
    assert bounds["MV"] == (1 / 2, 1 / 2) == bounds["BMCA(0.8)"]
    assert bounds["BMCA(0.9)"] == (0, 1 / 2) == bounds["BMCA(1.0)"]  # 7 of 8 are less than 0.9
    assert bounds["CI"] == (1 / 2, 1 / 2) and bounds["CoRA"] == (1 / 4, 1 / 2)
    y = [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0, 0]  # 3 of 8 reach 0.3, 7 of 8 reach 0.8
    low = (sum(y) - 0.5) / 10 * sum(y[1:]) / 10
    assert bounds["CORE"] == pytest.approx((low, (sum(y) + 1 - 0.75) / 10 * (sum(y[1:]) + 1) / 10), abs=1e-12)


def test_an_original_that_becomes_right_can_lower_cora_by_hand():
    "3 of 4 originals are right and nothing else is: CoRA falls from 3/4 * 1/4 to 1 * 0 if the fourth is right too."
    case = Case([2, 2, 2, 2])
    case.fates = {c: "right" if c[1] == "original" else "wrong" for c in case.fates}
    case.fates[3, "original", 0, 0] = "failed"
    assert case.bounds()["CI"] == (0, 1 / 4) and case.bounds()["CoRA"] == (0, 3 / 16)


def test_shares_of_the_originals_by_hand():
    "Two trials of one question pooled: one of 2 originals is right, and 7 of the 14 others; one more other is open."
    case = Case([2], n_trials=2, pooled=True)
    case.fates = {c: "right" if c[3] == 0 else "wrong" for c in case.fates}
    case.fates[0, "nota", 0, 1] = "unread"
    bounds = case.bounds()
    assert bounds["MCQA"] == (1 / 2, 1 / 2) and bounds["MCQA+"] == (8 / 16, 9 / 16)
    assert bounds["MV"] == (0, 1) and bounds["BMCA(0.5)"] == (1, 1) and bounds["CoRA"] == (1 / 4, 1 / 4)


@pytest.mark.parametrize("seed", range(12))
def test_the_oracle_against_every_set_of_right_replies(seed):
    "Each open reply right or wrong by itself, and not only how many of a question are."
    case = random_case(seed, "failed", "unread", "missing")
    case.fates |= dict.fromkeys(case.open_cells()[10:], "wrong")
    ways = []
    for right in itertools.product((False, True), repeat=len(case.open_cells())):
        fates = {c: case.fates[c] == "right" for c in case.cells()} | dict(zip(case.open_cells(), right))
        of = [{c: hit for c, hit in fates.items() if c[0] == i} for i in range(len(case.questions))]
        own = [[hit for c, hit in f.items() if c[1] == "original"] for f in of]
        ways.append([terms(sum(f.values()), len(f), sum(o), len(o)) for f, o in zip(of, own)])
    found, bounds = extremes(ways), case.bounds()
    for name in SCORES:
        assert found[name] == pytest.approx(bounds[name], abs=1e-12), name


# The package


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("how", [{}, {"n_trials": 2}, {"n_trials": 5, "pooled": True}], ids=["once", "first", "pooled"])
def test_a_run_in_which_nothing_is_open_is_exact(seed, how):
    case = known_case(random.Random(seed), **how)
    table = pd.DataFrame(cn.score(case.run()))
    assert not differences(table, case)
    table = table.set_index("score").loc[list(SCORES)]
    assert (table["status"] == "exact").all()
    assert (table["least"] == table["value"]).all() and (table["most"] == table["value"]).all()


@pytest.mark.parametrize("seed", seeds(32, 240))
def test_failed_prompts(seed):
    check(random_case(seed, "failed"))


@pytest.mark.parametrize("seed", seeds(32, 240))
def test_prompts_not_asked(seed):
    check(random_case(seed, "over_budget", "over_budget", "not_asked"))


@pytest.mark.parametrize("seed", seeds(32, 240))
def test_unread_replies(seed):
    check(random_case(seed, "unread"))


@pytest.mark.parametrize("seed", seeds(32, 240))
def test_missing_variants(seed):
    check(random_case(seed, "missing"))


@pytest.mark.parametrize("seed", seeds(32, 240))
def test_questions_absent_from_the_first_trial(seed):
    check(random_case(seed, "absent", n_trials=2))


@pytest.mark.parametrize("seed", seeds(32, 240))
def test_repetitions_pooled(seed):
    check(random_case(seed, "failed", "over_budget", "unread", n_trials=2 + seed % 4, pooled=True))


@pytest.mark.parametrize("seed", seeds(32, 240))
def test_missing_variants_of_repetitions_pooled(seed):
    check(random_case(seed, "missing", "missing", "unread", "failed", n_trials=2, pooled=True))


@pytest.mark.parametrize("seed", seeds(32, 240))
def test_all_mixed(seed):
    check(random_case(seed, *OPEN_REPLIES, "missing"))


@pytest.mark.parametrize("seed", seeds(32, 240))
def test_all_mixed_in_the_first_of_two_trials(seed):
    check(random_case(seed, *OPEN_REPLIES, "missing", "absent", n_trials=2))


@pytest.mark.parametrize("seed", seeds(32, 160))
def test_by_subject(seed):
    "Each subject is scored as if its questions were the whole run."
    rng = random.Random(f"subjects {seed}")
    n_choices = [rng.choice((2, 2, 3)) for _ in range(rng.randint(3, 6))]
    subjects = ["art", "law", *(rng.choice(("art", "law")) for _ in n_choices[2:])]
    kinds, how = ([*OPEN_REPLIES, "missing"], {}) if seed % 2 else ([*OPEN_REPLIES, "absent"], {"n_trials": 2})
    case = random_case(seed, *kinds, n_choices=n_choices, subjects=subjects, **how)
    table = pd.DataFrame(cn.score(case.run(), by="subject"))
    wrong = {}
    for subject in ("art", "law"):
        chosen = [i for i, s in enumerate(subjects) if s == subject]
        wrong[subject] = differences(table[table["subject"] == subject], case, chosen)
    assert not any(wrong.values()), wrong


@pytest.mark.parametrize("n_open", [8, 9])
@pytest.mark.parametrize("own", [0, 1, 2])
@pytest.mark.parametrize("kind", ["failed", "over_budget"])
@pytest.mark.parametrize("unread", [0, 2])
def test_one_in_a_hundred_may_be_unknown(n_open, own, kind, unread):
    "Of 100 originals 1 may be unknown, and of all 800 replies 8; unread ones are not unknown."
    rng = random.Random(f"{n_open} {own}")
    case = known_case(rng, n_trials=5, pooled=True, n_choices=[2] * 20)
    originals = [c for c in case.fates if c[1] == "original"]
    others = [c for c in case.fates if c[1] != "original"]
    for c in rng.sample(originals, own) + rng.sample(others, n_open - own):
        case.fates[c] = kind
    for c in rng.sample([c for c in case.fates if case.fates[c] in ("right", "wrong")], unread):
        case.fates[c] = "unread"
    check(case)


@pytest.mark.parametrize("seed", seeds(12, 60))
def test_many_open_originals(seed):
    """All 60 originals are open, and all else is known.

    It is enough to try how many originals become right where all other variants are right, and how many elsewhere:
    MCQA, CI and CoRA depend on no more, and all other scores only rise, so that they are least if none becomes right
    and most if all do.
    """
    rng = random.Random(f"many {seed}")
    case = known_case(rng, n_choices=[2] * 60)
    kinds = rng.choice((["failed"], ["over_budget"], ["unread"], list(OPEN_REPLIES)))
    for c in case.fates:
        if c[1] == "original":
            case.fates[c] = rng.choice(kinds)
    pairs = [case.outcomes(i) for i in range(60)]  # the original wrong, and right
    assert all(len(pair) == 2 for pair in pairs)
    full, rest = ([pair for pair in pairs if (pair[1][1] == 8) == which] for which in (True, False))
    bounds = extremes(
        [pair[place < i] for place, pair in enumerate(full)] + [pair[place < j] for place, pair in enumerate(rest)]
        for i in range(len(full) + 1)
        for j in range(len(rest) + 1)
    )
    wrong = differences(pd.DataFrame(cn.score(case.run())), case, bounds=bounds)
    assert not wrong, wrong


# What nobody can count, and two runs of which one lacks something.


def two_runs():
    questions = [Question(f"q{i}", f"Question {i}?", ("a", "b", "c"), i % 3) for i in range(20)]
    variants = list(cn.make_variants(questions, "cora", 0))
    return [
        make_responses(
            variants,
            [v.labels[(v.answer + (random.Random(f"{name}{v.key}").random() < 0.2)) % v.n_choices] for v in variants],
            "careful",
            None,
            name,
            FACTS,
        )
        for name in "ab"
    ]


@pytest.mark.parametrize(
    "lost", [2, 2000, -1, True, "8", 10**15, {"left_out": 2, "left_out_of": {"q0": 10**9}}], ids=lambda x: str(x)[:12]
)
def test_rows_left_out_of_nobody_knows_which_question_leave_no_bounds(lost):
    run, other = two_runs()
    told = lost if isinstance(lost, dict) else {"left_out": lost}
    run = run.with_facts(FACTS | {"imported": told})
    found = cn.score(run)
    assert found["least"].isna().all() and not (found["status"] == "exact").any()
    assert all(any(r.kind == "unknown" and "left_out" in r.why for r in said) for said in found["remarks"])
    few = lost == 2 or isinstance(lost, dict)
    assert np.isnan(found["value"][0]) and found["value"][1:].notna().all() == few  # 2 of 20 originals are too many
    compared = cn.compare(run, other, resamples=20)
    assert compared["value"][1:].notna().all() == few and (compared["status"] != "exact").all()


@pytest.mark.parametrize("whole", [{}, {"variants": {"count": -5}, "benchmark": {"questions": 0}}])
def test_a_shard_of_a_run_of_unknown_size_has_no_scores(whole):
    run = two_runs()[0].with_facts(FACTS | {"shard": {"number": 1, "of": 2, "whole": whole}})
    assert cn.score(run, ci=0.95)[["value", "low", "least", "most"]].isna().all(axis=None)


def test_runs_without_some_originals_are_compared_by_what_they_have():
    one, two = (run.rows((run.table["method"] != "original").to_numpy(bool)) for run in two_runs())
    found = cn.compare(one, two, resamples=20).set_index("score")
    assert np.isnan(found.loc["MCQA", "value"]) and found.loc["MCQA+", "status"] == "exact"
