"""Comparisons against exact enumeration, scipy, and loops over questions."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from cora_nb.core import CoraError
from cora_nb.metrics.account import account_of_counts, paper_counts, score_counts
from cora_nb.metrics.cora import weighted_scores
from cora_nb.metrics.comparison import (
    compare,
    compare_all,
    compare_counts,
    exchange_scores,
    put_together,
    rank_table,
    resampled_scores,
)
from cora_nb.metrics.comparison import matched_accounts, matched_runs
from cora_nb.metrics.scores import SCORES, register_score
from cora_nb.responses.responses import Responses
from cora_nb.responses.runs import Runs
from cora_nb.results import lookup, RESULT, values_of, Remark
from cora_nb.stats.paired import adjust_p
from cora_nb.stats.paired import difference_interval, exchange_p, paired_interval, stretch_exchanged
from helpers import answered, at_random, table


NUMBERS = ["value", "low", "high", "p"]


def all_exchanges(one, two):
    "Differences of all scores for each of the 2^n ways to exchange, with loops."
    gaps = []
    for swap in product([False, True], repeat=len(one)):
        a, b = one.copy(), two.copy()
        rows = np.flatnonzero(swap)
        a.iloc[rows], b.iloc[rows] = two.iloc[rows].to_numpy(), one.iloc[rows].to_numpy()
        gaps.append(pd.Series(weighted_scores(a)) - pd.Series(weighted_scores(b)))
    return pd.DataFrame(gaps)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_p_is_that_of_all_exchanges(seed):
    one, two = matched_accounts({"a": at_random(seed, 7, 0.8), "b": at_random(seed + 10, 7, 0.3)}).values()
    every, drawn = (
        all_exchanges(*(paper_counts(c).astype(float) for c in (one, two))),
        exchange_scores(put_together([one, two]), 40_000, seed),
    )
    for name in ("MCQA", "MCQA+", "MV", "BMCA(1.0)", "CI", "CoRA", "CORE"):
        seen = score_counts(one)[name] - score_counts(two)[name]
        exact = np.mean(every[name].abs() >= abs(seen) - 1e-9)
        assert abs(exchange_p(seen, drawn[name]) - exact) < 0.012, name


def test_clusters_are_exchanged_whole():
    one, two = matched_accounts({"a": at_random(3, 12), "b": at_random(9, 12)}).values()
    clusters = np.repeat(list("abc"), 4)
    drawn = exchange_scores(put_together([one, two]), 2000, 0, clusters)["MCQA+"]
    gaps = (one.questions["right"] - two.questions["right"]).to_numpy().reshape(3, 4).sum(axis=1) / 48
    possible = {round(float(np.dot(gaps, s)), 9) for s in product([1, -1], repeat=3)}
    assert {round(float(d), 9) for d in drawn} == possible


@pytest.mark.slow
def test_the_same_questions_are_drawn_for_both():
    one, two = matched_accounts({"a": at_random(5), "b": at_random(6)}).values()
    together, rng = put_together([one, two]), np.random.default_rng(1)
    drawn = resampled_scores(together, 20_000)["CoRA"]
    rows = rng.integers(0, 60, (1500, 60))
    slow = np.array([[weighted_scores(paper_counts(c).iloc[r])["CoRA"] for c in (one, two)] for r in rows]).T
    np.testing.assert_allclose((drawn[0] - drawn[1]).std(), (slow[0] - slow[1]).std(), rtol=0.08)
    np.testing.assert_allclose(drawn.mean(axis=1), slow.mean(axis=1), atol=0.005)


def test_the_interval_of_a_share_is_tangos():
    one, two = matched_accounts({"a": at_random(7, 100), "b": at_random(8, 100)}).values()
    found = compare_counts(one, two, resamples=500, scores=["MCQA", "MV", "BMCA(1.0)"])
    for name, right in {
        "MCQA": "original",
        "MV": lambda c: c["hits"] > 2,
        "BMCA(1.0)": lambda c: c["hits"] == 4,
    }.items():
        a, b = (c[right] == 1 if isinstance(right, str) else right(c) for c in map(paper_counts, (one, two)))
        tango = paired_interval(int((a & ~b).sum()), int((b & ~a).sum()), 100)[:2]
        low, high = found.loc[name, "low"], found.loc[name, "high"]
        drawn_out = min(tango[0], 0) if found.loc[name, "p"] >= 0.05 else tango[0]
        assert (low, high) == (pytest.approx(drawn_out, abs=1e-9), pytest.approx(tango[1], abs=1e-9)), name


@st.composite
def two_counts(draw):
    "Counts of two respondents on the same questions, of four variants or of two to four."
    n, unequal = draw(st.integers(2, 30)), draw(st.booleans())
    trials = np.array(draw(st.lists(st.integers(2, 4), min_size=n, max_size=n))) if unequal else np.full(n, 4)
    alike = draw(st.integers(0, 2))  # many questions on which the two agree, or few
    tables, hits = [], None
    for _ in range(2):
        new = np.minimum(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), trials)
        keep = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))) < alike
        hits = new if hits is None else np.where(keep, hits, new)
        original = ((hits > draw(st.integers(0, 3))) | (hits == trials)).astype(float)
        tables.append(account_of_counts(hits, trials, original))
    return tables


@pytest.mark.slow
@given(
    two_counts(),
    st.one_of(st.none(), st.integers(2, 8)),
    st.one_of(st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]), st.floats(0.01, 0.999)),
    st.sampled_from([9, 19, 99, 199, 400]),
    st.integers(0, 5),
)
@settings(max_examples=50, deadline=None)
def test_interval_and_p_are_one_thing(pair, clusters, level, resamples, seed):
    "The interval leaves out zero exactly where p < 1 - level: any counts, clusters, scores, levels, draws."
    one, two = pair
    groups = None if clusters is None or len(one) < 3 else np.arange(len(one)) % min(clusters, len(one))
    found = compare_counts(one, two, level, resamples, seed, groups)
    assert found[["low", "high", "p"]].notna().all(axis=None)
    leaves_out = (found["low"] > 0) | (found["high"] < 0)
    assert (leaves_out == (found["p"] < 1 - level)).all(), found
    tolerance = 1e-9
    assert (found["low"] <= found["difference"] + tolerance).all() and found["low"].ge(-1).all()
    assert (found["high"] >= found["difference"] - tolerance).all() and found["high"].le(1).all()


def test_a_score_outside_0_and_1_is_compared_as_one_thing_too(own_scores):
    register_score("points", linear=True)(lambda counts: counts.mean(counts.hits - 1.0))
    register_score("squared")(lambda counts: counts.mean(counts.hits * 3.0) ** 2)
    for seed in range(6):
        pair = matched_accounts({"a": at_random(seed, 40, 0.6), "b": at_random(seed + 50, 40, 0.5)}).values()
        found = compare_counts(*pair, resamples=199, scores=["points", "squared", "RC"])
        assert (((found["low"] > 0) | (found["high"] < 0)) == (found["p"] < 0.05)).all()
        assert ((found["low"] <= found["difference"]) & (found["difference"] <= found["high"])).all()
        assert found.loc["points", "difference"] == pytest.approx(4 * found.loc["RC", "difference"])


def test_what_is_too_few_is_said_once_and_on_each_row():
    right = np.ones((60, 4), bool)
    some = right.copy()
    some[:3] = False
    with pytest.warns(UserWarning) as said:
        found = compare(table(right), table(some), resamples=99, scores=["MCQA", "CI"])
    assert [str(w.message) for w in said] == ["few questions or clusters to rely on: MCQA, CI; see the notes"]
    assert said[0].filename == __file__
    notes = dict(zip(found["score"], found["note"]))
    assert notes == {"MCQA": "3 questions differ: too few to tell", "CI": "no question differs: too few to tell"}
    some[:12] = False
    assert compare(table(right), table(some), resamples=99, scores=["MCQA"])["note"].tolist() == [""]
    one, two = matched_accounts({"a": table(right), "b": table(some)}).values()
    found = compare_counts(one, two, resamples=999, clusters=np.arange(60) % 5, scores=["MCQA"]).loc["MCQA"]
    assert found["remarks"] == (Remark("few", 5, what="cluster", why="exchanges"),)
    assert found["p"] > 0.05 and found["low"] == 0.0 < found["high"]
    some[0] = True
    counts = matched_accounts({"a": table(right), "b": table(some)}).values()
    assert compare_counts(*counts, resamples=9, scores=["MCQA"]).loc["MCQA", "remarks"] == ()


def covered(draw, truth, n, times=250, seed=0, clusters=None, **options):
    "How often the interval of a difference holds the truth, for differences drawn as numbers."
    rng, inside, rejected = np.random.default_rng(seed), 0, 0
    for _ in range(times):
        low, high, p = difference_interval(draw(rng, n), np.ones(n), **options)
        inside, rejected = inside + (low <= truth <= high), rejected + (p < 0.05)
    return inside / times, rejected / times


def test_rare_large_differences_are_covered():
    "Two that know 99% and 98%, the rest guessed, and slip now and then: BCa held the truth in 80 to 90 of 100."

    def draw(rng, n):
        known = [rng.random(n) < k for k in (0.99, 0.98)]
        one, two = (np.where(k, rng.binomial(20, 0.986, n), rng.binomial(20, 0.35, n)) / 20 for k in known)
        return one - two

    truth = 0.01 * (0.986 - 0.35)
    for n in (50, 100, 300):
        inside, _ = covered(draw, truth, n)
        assert inside >= 0.92, (n, inside)


def test_many_small_losses_and_a_rare_gain_are_no_difference():
    "Both are as good on average; exchanging alone takes the many small losses for a difference."
    draw = lambda rng, n: np.where(rng.random(n) < 0.01, 0.495, -0.005)  # its mean is zero
    for n in (50, 100, 300):
        inside, rejected_ = covered(draw, 0.0, n)
        assert inside >= 0.92 and rejected_ <= 0.08, (n, inside, rejected_)


def test_exchanging_the_names_exchanges_the_signs():
    a, b = at_random(1), at_random(2)
    there, back = compare(a, b), compare(b, a)
    np.testing.assert_allclose(there["value"], -back["value"])
    np.testing.assert_allclose(there["low"], -back["high"], atol=0.03)
    np.testing.assert_allclose(there["p"], back["p"], atol=0.02)
    shuffled = b.sample(frac=1, random_state=0)
    np.testing.assert_allclose(compare(a, shuffled)["value"], there["value"])


def test_a_comparison_is_a_result_named_by_its_pair():
    one, two = (at_random(i).assign(respondent=name) for i, name in ((1, "steady"), (2, "skewed")))
    found, counts = compare(one, two, resamples=50), matched_accounts({"steady": one, "skewed": two})
    assert list(found) == list(RESULT) and found[["benchmark", "method", "subject", "place"]].isna().all(axis=None)
    assert set(found["respondent"]) == {"steady - skewed"} and set(found["n"]) == {60}
    by_hand = compare_counts(*counts.values(), resamples=50)
    assert found["score"].tolist() == list(by_hand.index)
    assert found[NUMBERS].to_numpy().tolist() == by_hand[["difference", "low", "high", "p"]].to_numpy().tolist()
    assert (by_hand["difference"] == by_hand["first"] - by_hand["second"]).all()
    assert set(compare(one, one, resamples=50)["respondent"]) == {"first - second"}  # the same name twice
    assert set(compare(at_random(1), at_random(2), resamples=50)["respondent"]) == {"first - second"}  # none


def test_memory_is_cut_in_blocks(monkeypatch):
    from cora_nb.metrics import comparison

    one, two = matched_accounts({"a": at_random(1, 200), "b": at_random(2, 200)}).values()
    together = put_together([one, two])
    monkeypatch.setattr(comparison, "_blocks", lambda total, width: [7] * (total // 7) + [total % 7] * (total % 7 > 0))
    assert resampled_scores(together, 100)["CoRA"].shape == (2, 100) and exchange_scores(together, 100)[
        "CoRA"
    ].shape == (100,)


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=2, max_size=4), st.integers(0, 20))
@settings(max_examples=15)
def test_ranks_by_brute_force(hits, seed):
    runs = {f"r{i}": table(np.arange(4) < np.array(h)[:, None]) for i, h in enumerate(hits)}
    found = rank_table(runs, ["MCQA+"], resamples=200, seed=seed)
    drawn = resampled_scores(put_together(list(matched_accounts(runs).values())), 200, seed)["MCQA+"].round(12)
    R = len(runs)
    p = np.zeros((R, R))
    for column in drawn.T:
        for i, x in enumerate(column):
            ahead, level = sum(column > x), sum(column == x)
            for place in range(ahead, ahead + level):
                p[i, place] += 1 / level / 200
    of_rank = found[found["score"] == "MCQA+, probability of rank"]
    assert (
        of_rank["place"].tolist() == list(range(1, R + 1)) * R
        and of_rank["respondent"].tolist() == np.repeat(list(runs), R).tolist()
    )
    np.testing.assert_allclose(of_rank["value"].to_numpy().reshape(R, R), p, atol=1e-9)
    others = {name: rows["value"].tolist() for name, rows in found[found["place"].isna()].groupby("score")}
    assert list(others) == ["MCQA+", "MCQA+, expected rank", "MCQA+, rank"]
    np.testing.assert_allclose(others["MCQA+, expected rank"], stats.rankdata(-drawn, axis=0).mean(axis=1))
    assert others["MCQA+, rank"] == stats.rankdata(-np.array([sum(h) for h in hits]), "min").tolist()
    np.testing.assert_allclose(others["MCQA+"], [sum(h) / 4 / len(h) for h in hits])


def test_ranks_over_common_questions_and_unknown_scores():
    a, b = at_random(1), at_random(2)
    with pytest.warns(UserWarning, match="left out 1 of 60 questions"):
        found = rank_table({"a": a, "b": b[b["question_id"] != "q7"]}, ["CoRA"], 50)
    assert set(found["n"]) == {59} and found["value"].notna().all()
    plain = {name: t[t["method"] != "original"] for name, t in (("a", a), ("b", b))}
    unknown = rank_table(plain, ["CoRA"], 50)
    assert unknown.loc[unknown["place"].notna(), "value"].isna().all() and unknown["place"].notna().sum() == 4
    found = rank_table({"a": a, "b": b}, resamples=50, clusters="subject")
    assert found.loc[found["place"].notna(), "value"].between(0, 1).all()


PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]


@pytest.mark.parametrize("correction", ["holm", "bh"])
def test_all_pairs_and_their_corrected_p(correction):
    runs = {k: at_random(i, p=p) for i, (k, p) in enumerate({"a": 0.8, "b": 0.5, "c": 0.5}.items())}
    options = dict(resamples=500, scores=["MV", "CoRA"], clusters="subject")
    found, plain = (compare_all(runs, how, **options) for how in (correction, None))
    names = [(s, " - ".join(pair)) for s in ("MV", "CoRA") for pair in PAIRS]
    for result in (found, plain):
        assert list(result[["score", "respondent"]].itertuples(index=False, name=None)) == names
    for s in ("MV", "CoRA"):
        rows = plain["score"] == s
        np.testing.assert_allclose(found.loc[rows, "p"], adjust_p(plain.loc[rows, "p"], correction))
    few = "12 clusters: few to rely on"
    assert set(plain["note"]) == {few}
    assert set(found["note"]) == {f"p, not the interval, adjusted for 3 pairs ({correction})\n{few}"}
    same = ["value", "low", "high", "n"]
    assert found[same].equals(plain[same])
    for one, other in PAIRS:
        mine = plain[plain["respondent"] == f"{one} - {other}"].reset_index(drop=True)
        pair = (runs[name].assign(respondent=name) for name in (one, other))
        pd.testing.assert_frame_equal(mine, compare(*pair, **options))


A, B = at_random(1), at_random(2)


@pytest.mark.parametrize(
    "call, why",
    [
        (
            lambda: compare(A, B[B["question_id"] != "q3"]),
            "second and first were asked different questions (59 and 60, 59 of them the same): "
            "question 'q3' is in the responses of first and not in those of second",
        ),
        (
            lambda: compare(A, B[B["method"] != "nota"]),
            "second and first were asked different variants of the same questions: "
            "question 'q0', variant nota 0: first has 1 replies, second has 0",
        ),
        (lambda: compare(A, B.assign(family="cyclic")), "first has 'cora', second has 'cyclic'"),
        (lambda: compare(A, B.assign(answer=2)), "question 'q0' has its answer in another place"),
        (lambda: compare(A, None), "responses must be Responses or a table, got a NoneType"),
        (lambda: compare(A, B.drop(columns="correct")), "no column correct"),
        (lambda: compare(A.assign(subject="s"), B, clusters="subject"), "all questions belong to one cluster, 's'"),
        (lambda: compare(A, B, scores=["CoRA", "F1"]), "got 'F1'"),
        (lambda: compare(A, B, level=0), "level must be between 0 and 1, got 0"),
        (lambda: compare(A[:4], B[:4]), "a comparison needs at least two questions, got 1"),
        (lambda: compare_all({"a": A}), "at least two runs"),
        (
            lambda: compare_all({"a": A, "b": B}, correction="none", resamples=10),
            "correction must be one of holm, bh, None, got 'none'",
        ),
        (lambda: compare_all({}), "there are no runs"),
        (
            lambda: rank_table({"a": A, "b": B.assign(question_id="x" + B["question_id"])}),
            "no question that all models were asked",
        ),
    ],
)
def test_faults_are_one_line(call, why):
    with pytest.raises(CoraError) as e:
        call()
    assert why in str(e.value) and "\n" not in str(e.value)


# --- runs that may, and may not, be compared ---


def test_other_texts_under_the_same_ids_are_refused():
    one, two = answered(1), answered(2)
    texts = two.questions.assign(text=[*two.questions["text"][:-1], "What is 7 + 7?"])
    with pytest.raises(CoraError, match="question 'q11' has another text in the responses of run 2"):
        compare(one, Responses(two.table, texts, two.facts), resamples=10)
    blanks = two.questions.assign(text="  " + two.questions["text"].str.replace(" ", "\n"))
    compare(one, Responses(two.table, blanks, two.facts), resamples=10)
    compare(one, two.table, resamples=10)  # a plain table has no texts


def test_parts_of_the_divergence_set_have_no_cora():
    "Two of twenty variants: no CI, no CoRA, and a sentence that says so; unlike parts are refused."
    runs = [answered(seed) for seed in (1, 2)]
    parts = [run.rows(run.table["method"].isin(["original", "shuffled"])) for run in runs]
    said = "run 1 has 2 of 20 variants; run 2 has 2 of 20 variants"
    with pytest.warns(UserWarning, match=f"CI and CoRA are not known: {said}") as warned:
        found = compare(*parts, resamples=50)
    unknown = found["score"].isin(["CI", "CoRA"])
    assert found.loc[unknown, NUMBERS].isna().all(axis=None) and set(found["note"].loc[unknown]) == {said}
    assert found.loc[~unknown, NUMBERS].notna().all(axis=None)
    assert (
        found["note"]
        .loc[~unknown]
        .str.fullmatch(r"((\d questions differ|no question differs): too few to tell)?")
        .all()
    )
    assert lookup(found, "MCQA").value == lookup(compare(*runs, resamples=50), "MCQA").value
    with pytest.warns(UserWarning, match="are not known") as ranked:
        ranks = rank_table(Runs(parts), ["MCQA", "CoRA"], 50)
    unknown = ranks["score"].str.startswith("CoRA")
    assert ranks.loc[unknown, "value"].isna().all() and set(ranks["note"].loc[unknown]) == {said}
    assert ranks.loc[~unknown, "value"].notna().all() and set(ranks["note"].loc[~unknown]) == {""}
    with pytest.warns(UserWarning, match="are not known") as paired:
        every = compare_all(Runs(parts), scores=["CoRA"], resamples=50)
    assert every[NUMBERS].isna().all(axis=None) and every["note"].tolist() == [said]
    assert {w.filename for seen in (warned, ranked, paired) for w in seen} == {__file__}  # the caller's line
    with pytest.raises(CoraError, match="different variants of the same questions: question 'q0', variant decoupled 0"):
        compare(runs[0], parts[1])
    chosen = [run.rows(run.table["method"].isin(["original", "shuffled"]), chosen="two methods") for run in runs]
    assert (
        lookup(compare(*chosen, resamples=50), "CoRA")[NUMBERS].notna().all()
    )  # a part that was chosen is a set of its own


def test_the_first_repetition_counts_unless_they_are_pooled():
    a, b = (pd.concat([at_random(i), at_random(i + 24).assign(trial=1)]) for i in (1, 2))
    once = compare(at_random(1), at_random(2), resamples=100)
    first = compare(a, b, resamples=100)
    assert all(said[-1:] == (Remark("incomplete", 1, of=2, why="trials"),) for said in first["remarks"])
    pd.testing.assert_frame_equal(first.assign(remarks=once["remarks"]), once)
    pooled = [Responses(t).pool_trials() for t in (a, b)]
    both = lookup(compare(*pooled, resamples=100), "MCQA+").value
    means = [np.mean([at_random(i)["correct"].mean() for i in seeds]) for seeds in ((1, 25), (2, 26))]
    assert both == pytest.approx(means[0] - means[1]) != lookup(once, "MCQA+").value
    assert matched_runs(pooled[:1])["responses"].pooled
    with pytest.raises(CoraError, match="question 'q0', variant original 0: first has 2 replies, second has 1"):
        compare(pooled[0], b)


@pytest.fixture
def own_scores():
    "Leaves the registry as it was."
    before = dict(SCORES.registered)
    yield
    SCORES.registered.clear()
    SCORES.registered.update(before)


def test_what_a_score_declares_decides_how_it_is_compared(own_scores):
    "CoRA and CI under other names: stretched unless linear, and not known of an incomplete set if complete."
    for name, like in (("my CoRA", "CoRA"), ("my CI", "CI")):
        known = SCORES.registered[like]
        register_score(name, complete=True, linear=known.linear)(known.formula)
    register_score("straight", linear=True)(SCORES.registered["CoRA"].formula)
    found = compare(at_random(1, p=0.8), at_random(2), resamples=60).set_index("score")[NUMBERS]
    for mine, ours in (("my CoRA", "CoRA"), ("my CI", "CI")):
        assert found.loc[mine].tolist() == found.loc[ours].tolist()
    assert found.loc["straight", "p"] != found.loc["CoRA", "p"]
    assert found.loc["straight", "value"] == found.loc["CoRA", "value"]
    parts = [run.rows(run.table["method"].isin(["original", "shuffled"])) for run in (answered(1), answered(2))]
    with pytest.warns(UserWarning, match="CI and CoRA and my CoRA and my CI are not known: run 1 has 2 of 20"):
        few = compare(*parts, resamples=50).set_index("score")[NUMBERS]
    assert few.loc[["CI", "CoRA", "my CoRA", "my CI"]].isna().all(axis=None) and few.loc["MCQA"].notna().all()


# --- the permutation test itself ---


def test_the_difference_seen_counts_as_one_of_the_exchanges():
    "So p is never 0."
    assert exchange_p(0.5, np.array([0.1, -0.5, 0.2])) == (1 + 1) / (1 + 3)
    assert exchange_p(1.0, np.zeros(99)) == 0.01
    apart = compare(table(np.ones((60, 4))), table(np.zeros((60, 4))), resamples=199)
    p = values_of(apart, "p")
    assert (p.drop("CI") == 1 / 200).all() and p["CI"] == 1.0


def test_stretching_leaves_a_mean_with_a_large_difference_alone():
    "Exchanging has the variance sum(g^2) / n^2, which holds d^2 / n: without it p would be too small."
    g = np.repeat([1.0, 0.0], [90, 10])
    exchanged = (np.random.default_rng(0).choice([-1, 1], size=(20_000, 100)) * g).mean(axis=1)
    stretched = stretch_exchanged(exchanged, g.mean(), (g.sum() - g) / 99, np.ones(100))
    np.testing.assert_allclose(stretched.std(), exchanged.std(), rtol=0.01)


@pytest.mark.parametrize("family, said", [("mcqa_plus", (Remark("family", what="mcqa_plus"),)), ("cora", ())])
def test_cora_of_another_family_is_not_taken_for_the_papers(family, said):
    runs = {name: at_random(seed).assign(family=family) for seed, name in enumerate(("a", "b"))}
    for found in (compare(*runs.values(), resamples=99), rank_table(runs, ["MCQA", "CoRA"], resamples=99)):
        told = {
            name: [r for r in remarks if r.kind == "family"] for name, remarks in zip(found["score"], found["remarks"])
        }
        assert tuple(told["CoRA"]) == said and not told["MCQA"]
