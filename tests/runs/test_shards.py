"""A divided run is the run, row for row, whoever asks it; nothing is paid for twice; what is wrong is said first."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.benchmarks.load import write_benchmark
from cora_nb.cli.gate import cora_gate
from cora_nb.cli.respondents import make_respondent
from cora_nb.cli.run import cora_run
from cora_nb.cli.table import cora_table
from cora_nb.core import CoraError, Question
from cora_nb.metrics.ablations import ablation_table, bootstrap_table, subset_scores
from cora_nb.metrics.scoring import score
from cora_nb.respondents.protocol import REFUSED_REPLY
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import in_state
from cora_nb.responses.files import read_facts, read_responses, write_responses
from cora_nb.responses.runs import concat
from cora_nb.results import values_of
from cora_nb.runs import shards
from cora_nb.runs.asking import Asking, Budget, Precise, Settled
from cora_nb.runs.evaluate import Running, prepare
from cora_nb.runs.shards import Shard, ask_shard, divide, join_shards, local_workers, missing_shards, shard_of
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants
import counting
from counting import BAD, Counting
from helpers import Beaten, command, run as run_command, slow_after, stored_replies

pytestmark = pytest.mark.guard
QUIET = Running(progress=False, strict=None)
WHO = SimulatedRespondent(knows=0.6, slips=0.1, name="ann")


def quiet(store):
    return Running(store, progress=False, strict=None)


def whole(n=11, family="cora", seed=0, **options):
    return prepare(make_variants(math_benchmark(n), family=family, seed=seed), **options)


def check_equal(joined, alone):
    "Rows, questions, facts, scores."
    assert joined.table.equals(alone.table) and joined.questions.equals(alone.questions)
    assert not joined.facts.differences(alone.facts)
    assert score(joined).equals(score(alone)) and joined.complete == alone.complete


def ask_all(prepared, who, count, folder, running=QUIET, order=None):
    for number in order or range(1, count + 1):
        ask_shard(prepared, who, Shard(number, count), folder, running)
    return join_shards(folder)


class NeverAsked(SimulatedRespondent):
    async def answer(self, prompts):
        raise AssertionError("asked")
        yield


# ---------------------------------------------------------------- the run of one process


SETTINGS = [{}, {"asking": Asking(trials=2)}, {"family": "mcqa_plus"}, {"facts": {"benchmark": "m"}, "seed": 3}]


@pytest.mark.parametrize("options", slow_after(2, SETTINGS))
@pytest.mark.parametrize("count", slow_after(2, [4, 1, 11]))
def test_shards_joined_are_the_run_of_one_process(tmp_path, count, options):
    prepared = whole(**options)
    order = [count, *range(1, count)]
    joined = ask_all(prepared, WHO, count, tmp_path, order=order)
    check_equal(joined, alone := prepared.ask(WHO, QUIET))
    assert joined.facts.calls == alone.facts.calls
    assert read_responses(tmp_path).equals(joined) and join_shards(tmp_path).equals(joined)


@pytest.mark.parametrize("order", ["by method", "at random"])
def test_rows_keep_the_order_of_the_variants(tmp_path, order):
    variants, rng = make_variants(math_benchmark(8)), random.Random(1)
    variants.sort(key=lambda v: (v.method, v.index, v.question_id) if order == "by method" else rng.random())
    prepared = prepare(variants)
    check_equal(ask_all(prepared, WHO, 3, tmp_path, order=(2, 3, 1)), prepared.ask(WHO, QUIET))
    assert read_responses(tmp_path).table["question_id"].tolist() == [v.question_id for v in variants]


def test_every_prompt_is_in_one_shard_and_questions_stay_whole():
    prepared = whole(asking=Asking(trials=2))
    parts = [shard_of(prepared, Shard(n, 4)).prompts for n in (1, 2, 3, 4)]
    assert sorted(map(id, sum(parts, []))) == sorted(map(id, prepared.prompts))
    owners = [{p.variant.question_id for p in part} for part in parts]
    assert sum(map(len, owners)) == len(set().union(*owners)) == 11 and max(map(len, owners)) == 3


def test_settled_shards_have_the_scores_of_one_process(tmp_path):
    prepared = whole(stop=Settled())
    joined = ask_all(prepared, WHO, 2, tmp_path)
    scores = [values_of(score(run))[["CoRA", "BMCA(1.0)", "MCQA"]] for run in (joined, prepared.ask(WHO, QUIET))]
    assert scores[0].equals(scores[1]) and in_state(joined.table, "not_asked").any()


def pairs(n):
    "Questions of which each two show one prompt."
    return [Question(f"{q.id}-{twin}", q.text, q.choices, q.answer) for q in math_benchmark(n) for twin in "ab"]


@pytest.mark.parametrize("trials", [1, 2])
@pytest.mark.parametrize("kept", [True, False])
def test_equal_prompts_of_two_shards_are_draws_of_their_own(tmp_path, trials, kept):
    "Two questions that show one prompt: a shard that numbered its own prompts asked both as the same draw."
    prepared = prepare(make_variants(pairs(20), family="cyclic"), Asking(trials=trials))
    with Store(tmp_path / "r.sqlite") as store:
        joined = ask_all(prepared, Counting(0.7), 2, tmp_path / "run", quiet(store if kept else None))
    alone = prepared.ask(Counting(0.7), QUIET)
    assert joined.table.equals(alone.table)
    by_twin = [alone.table[alone.table["question_id"].str.endswith(twin)]["reply"].tolist() for twin in "ab"]
    assert by_twin[0] != by_twin[1]  # else the draws of the two would say nothing


def test_replies_that_are_not_drawn_are_shared(tmp_path):
    prepared = prepare(make_variants(pairs(6), family="cyclic"))
    joined, alone = ask_all(prepared, Counting(), 2, tmp_path), prepared.ask(Counting(), QUIET)
    assert joined.table.equals(alone.table)


def test_a_local_model(tmp_path):
    "Rows are equal; scores too, but for the last digits, since a shard has other batches."
    pytest.importorskip("torch", reason="torch is not installed")
    prepared = whole(5)
    for spec in ("causal:organism/steady,device=cpu", "likelihood:organism/steady,device=cpu"):
        who = make_respondent(spec)
        joined, alone = ask_all(prepared, who, 2, tmp_path / spec[:6]), prepared.ask(who, QUIET)
        loose = ["scores", "confidence", "mean_logprob"]
        assert joined.table.drop(columns=loose).equals(alone.table.drop(columns=loose))
        for one, other in zip(joined.table["scores"], alone.table["scores"]):
            assert one is None and other is None or one == pytest.approx(other, abs=1e-4)


# ---------------------------------------------------------------- what is there is not asked again


def test_a_shard_that_is_there_is_not_asked_again(tmp_path):
    there = ask_shard(whole(), WHO, Shard(1, 2), tmp_path, QUIET)
    again = ask_shard(whole(), NeverAsked(knows=0.6, slips=0.1, name="ann"), Shard(1, 2), tmp_path, QUIET)
    assert again.equals(there) and len(again) == 120


@pytest.mark.parametrize("stop", [None, Settled()])
def test_only_failed_prompts_are_asked_again(tmp_path, stop):
    prepared = whole(stop=stop)
    first, again = Counting(fails={7}), Counting()
    with Store(tmp_path / "r.sqlite") as store:
        run = ask_shard(prepared, first, Shard(1, 2), tmp_path / "run", quiet(store))
        assert in_state(run.table, "failed").any()
        run = ask_shard(prepared, again, Shard(1, 2), tmp_path / "run", quiet(store))
        assert not in_state(run.table, "failed").any()
        assert not set(again.asked) & set(first.asked[:6] + first.asked[7:])
        assert first.asked[6] in again.asked and (stop or len(again.asked) == 1)
        joined = ask_all(prepared, Counting(), 2, tmp_path / "run", quiet(store))
    alone = prepared.ask(Counting(), QUIET)
    if stop is None:
        check_equal(joined, alone)
    scores = [values_of(score(run))[["CoRA", "BMCA(1.0)", "MCQA"]] for run in (joined, alone)]
    assert scores[0].equals(scores[1])


def test_a_server_that_is_away_costs_nothing_that_was_there(tmp_path):
    "Without a store, the shard is asked anew; with more failures than before it is not written."
    ask_shard(whole(), Counting(fails={7}), Shard(1, 2), tmp_path, QUIET)
    worse = ask_shard(whole(), Counting(fails=range(6, 999)), Shard(1, 2), tmp_path, QUIET)
    on_disk = read_responses(Shard(1, 2).folder(tmp_path))
    assert worse.equals(on_disk) and in_state(on_disk.table, "failed").sum() <= 2
    better = ask_shard(whole(), Counting(), Shard(1, 2), tmp_path, QUIET)
    assert not in_state(better.table, "failed").any() and read_responses(Shard(1, 2).folder(tmp_path)).equals(better)


def test_what_a_budget_left_out_is_asked_again(tmp_path):
    prepared = whole()
    with Store(tmp_path / "r.sqlite") as store:
        ask_shard(prepared, WHO, Shard(1, 2), tmp_path / "run", Running(store, Budget(calls=30), False, None))
        run = ask_shard(prepared, WHO, Shard(1, 2), tmp_path / "run", quiet(store))
    assert not in_state(run.table, "over_budget").any() and run.facts.calls["in_store"] == 30


class Refusing(Counting):
    "Refuses every fifth prompt."

    async def answer(self, prompts):
        async for i, reply in super().answer(prompts):
            yield i, REFUSED_REPLY if i % 5 == 0 else reply


def test_refusals_are_asked_again_as_in_one_process(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        run = ask_shard(whole(), Refusing(), Shard(1, 2), tmp_path / "run", quiet(store))
        refused = in_state(run.table, "refused").sum()
        again = Counting()
        run = ask_shard(whole(), again, Shard(1, 2), tmp_path / "run", quiet(store))
    assert 0 < len(again.asked) <= refused and in_state(run.table, "answered").all()


class Late(Counting):
    "Before it answers, another process asks shard 1/2 of a run in the same folder."

    def __init__(self, fails, theirs, folder):
        super().__init__(fails=fails)
        self.theirs = (theirs, Counting(), Shard(1, 2), folder, QUIET)

    async def answer(self, prompts):
        other = threading.Thread(target=ask_shard, args=self.theirs)
        other.start()
        other.join()
        async for found in super().answer(prompts):
            yield found


def test_what_another_process_has_finished_meanwhile_stays(tmp_path):
    "A job that its queue has started twice: the one that fails does not overwrite the other's shard."
    run = ask_shard(whole(), Late(range(1, 999), whole(), tmp_path), Shard(1, 2), tmp_path, QUIET)
    assert not in_state(run.table, "failed").any() and read_responses(Shard(1, 2).folder(tmp_path)).equals(run)


def test_another_run_that_comes_meanwhile_is_refused(tmp_path):
    "Also where this one has failures, so that it would not be written."
    with pytest.raises(CoraError, match="another run here already, with other seed"):
        ask_shard(whole(), Late({7}, whole(seed=1), tmp_path), Shard(1, 2), tmp_path, QUIET)
    assert read_responses(Shard(1, 2).folder(tmp_path)).facts.variants.recipe.seed == 1


def test_a_join_does_not_replace_a_better_run(tmp_path):
    for number in (1, 2):
        ask_shard(whole(), Counting(fails={5}), Shard(number, 2), tmp_path, QUIET)
    assert in_state(join_shards(tmp_path).table, "failed").any()
    better = whole().ask(Counting(), QUIET)
    write_responses(better, tmp_path)
    assert join_shards(tmp_path).equals(better) and read_responses(tmp_path).equals(better)


def test_a_respondent_that_draws_for_some_questions_only(tmp_path):
    class Router(Counting):
        def request(self, prompt):
            drawn = prompt.variant.question_id < "math-0-3"
            return {"text": prompt.text, "temperature": 0.7 if drawn else 0.0}

    prepared = prepare(make_variants(pairs(6), family="cyclic"))
    assert ask_all(prepared, Router(), 2, tmp_path).table.equals(prepared.ask(Router(), QUIET).table)


def test_a_store_is_shared_by_shards(tmp_path):
    prepared = whole()
    with Store(tmp_path / "r.sqlite") as store:
        prepared.ask(WHO, quiet(store))
        joined = ask_all(prepared, WHO, 2, tmp_path / "run", quiet(store))
    assert joined.facts.calls["asked"] == 0 and joined.facts.calls["in_store"] > 0


# ---------------------------------------------------------------- another run


OTHERS = {
    "seed": lambda: (whole(seed=1), WHO),
    "template": lambda: (whole(asking=Asking("bare")), WHO),
    "trials": lambda: (whole(asking=Asking(trials=2)), WHO),
    "questions": lambda: (whole(12), WHO),
    "respondent": lambda: (whole(), SimulatedRespondent(knows=0.1, name="ann")),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("there", ["the same shard", "another shard", "the run"])
def test_another_run_is_refused_before_anything_is_asked(tmp_path, other, there):
    prepared, who = OTHERS[other]()
    if there == "the run":
        write_responses(whole().ask(WHO, QUIET), tmp_path)
    else:
        ask_shard(whole(), WHO, Shard(1, 2), tmp_path, QUIET)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    never = NeverAsked(knows=who.knows, slips=who.slips, name="ann")
    with pytest.raises(CoraError, match="another run") as e:
        ask_shard(prepared, never, Shard(1 if there == "the same shard" else 2, 2), tmp_path, QUIET)
    assert "\n" not in str(e.value)
    assert before == {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}


def test_another_count_is_refused_before_anything_is_asked(tmp_path):
    ask_shard(whole(), WHO, Shard(1, 2), tmp_path, QUIET)
    with pytest.raises(CoraError, match="divided by 2, not by 3"):
        ask_shard(whole(), NeverAsked(knows=0.6, slips=0.1, name="ann"), Shard(2, 3), tmp_path, QUIET)


def test_other_versions_of_packages_are_no_other_run(tmp_path):
    "As in one process: a machine of a cluster may have another torch."
    ask_shard(whole(), WHO, Shard(1, 2), tmp_path, QUIET)
    ask_shard(whole(), Counting(fails={1}), Shard(1, 2), tmp_path / "b", QUIET)
    for place in (Shard(1, 2).folder(tmp_path), Shard(1, 2).folder(tmp_path / "b")):
        facts = json.loads((place / "facts.json").read_text())
        facts["versions"]["torch"] = facts["shard"]["whole"]["versions"]["torch"] = "0.1"
        (place / "facts.json").write_text(json.dumps(facts))
    ask_shard(whole(), WHO, Shard(2, 2), tmp_path, QUIET)
    joined = join_shards(tmp_path)
    check_equal(joined, whole().ask(WHO, QUIET))
    assert "torch" not in joined.facts.versions and "python" in joined.facts.versions
    ask_shard(whole(), Counting(), Shard(1, 2), tmp_path / "b", QUIET)  # written over


# ---------------------------------------------------------------- a join


def edited(change):
    "Change the facts of shard 2."

    def damage(run):
        file = run / "shards/00002-of-00003/facts.json"
        facts = json.loads(file.read_text())
        change(facts)
        file.write_text(json.dumps(facts))

    return damage


def exchanged(run):
    one, two, away = (run / "shards" / name for name in ("00001-of-00003", "00002-of-00003", "away"))
    one.rename(away), two.rename(one), away.rename(two)


def renamed(run):
    for n in (1, 2):
        (run / f"shards/0000{n}-of-00003").rename(run / f"shards/0000{n}-of-00002")
    shutil.rmtree(run / "shards/00003-of-00003")


def copied(run):
    shutil.rmtree(run / "shards/00002-of-00003")
    shutil.copytree(run / "shards/00001-of-00003", run / "shards/00002-of-00003")


def foreign(run):
    ask_shard(whole(seed=1), WHO, Shard(2, 3), run / "other", QUIET)
    shutil.rmtree(run / "shards/00002-of-00003")
    (run / "other/shards/00002-of-00003").rename(run / "shards/00002-of-00003")
    shutil.rmtree(run / "other")


def of_another_count(run):
    ask_shard(whole(), WHO, Shard(1, 4), run / "other", QUIET)
    (run / "other/shards/00001-of-00004").rename(run / "shards/00001-of-00004")
    shutil.rmtree(run / "other")


def row_less(run):
    place = run / "shards/00002-of-00003"
    part = read_responses(place)
    shutil.rmtree(place)
    write_responses(type(part)(part.table.iloc[:-1], part.questions, part.facts, part.name), place)


def other_texts(run):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for n in (1, 2, 3):
        file = run / f"shards/0000{n}-of-00003/questions.parquet"
        table = pq.read_table(file)
        texts = pa.array(["What else?"] * len(table))
        pq.write_table(
            table.set_column(table.schema.names.index("text"), "text", texts), file, write_page_checksum=True
        )
        facts = json.loads(file.with_name("facts.json").read_text())
        facts["benchmark"].pop("hash", None)  # of this shard's questions
        file.with_name("facts.json").write_text(json.dumps(facts))


def changed_byte(run):
    file = run / "shards/00002-of-00003/responses.parquet"
    there = bytearray(file.read_bytes())
    there[len(there) // 3] ^= 1
    file.write_bytes(there)


DAMAGES = {
    "missing": lambda run: shutil.rmtree(run / "shards/00002-of-00003"),
    "nothing there": lambda run: shutil.rmtree(run / "shards"),
    "exchanged": exchanged,
    "renamed, and a third is missing": renamed,
    "copied": copied,
    "foreign": foreign,
    "another count beside": of_another_count,
    "another number": edited(lambda facts: facts["shard"].update(number=3)),
    "another name": edited(lambda facts: facts["shard"]["whole"]["respondent"].update(name="bob")),
    "no word of a shard": edited(lambda facts: facts.pop("shard")),
    "the whole a text": edited(lambda facts: facts["shard"].update(whole="x")),
    "the whole empty": edited(lambda facts: facts["shard"].update(whole={})),
    "a row less": row_less,
    "other texts": other_texts,
    "no facts": lambda run: (run / "shards/00002-of-00003/facts.json").unlink(),
    "no questions": lambda run: (run / "shards/00002-of-00003/questions.parquet").unlink(),
    "no rows": lambda run: (run / "shards/00002-of-00003/responses.parquet").unlink(),
    "a changed byte": changed_byte,
}


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    run = tmp_path_factory.mktemp("three") / "run"
    for number in (1, 2, 3):
        ask_shard(whole(), WHO, Shard(number, 3), run, QUIET)
    return run


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_cannot_be_joined_is_one_line_and_nothing_is_written(three, tmp_path, damage):
    run = shutil.copytree(three, tmp_path / "run")
    DAMAGES[damage](run)
    with pytest.raises(CoraError) as e:
        join_shards(run)
    assert "\n" not in str(e.value) and str(run) in str(e.value)
    assert [p.name for p in run.iterdir()] in (["shards"], [])


def test_a_damaged_shard_is_named_and_can_be_asked_again(three, tmp_path):
    run = shutil.copytree(three, tmp_path / "run")
    changed_byte(run)
    with pytest.raises(CoraError, match="00002-of-00003.*delete this shard"):
        ask_shard(whole(), WHO, Shard(2, 3), run, QUIET)
    shutil.rmtree(run / "shards/00002-of-00003")
    ask_shard(whole(), WHO, Shard(2, 3), run, QUIET)
    check_equal(join_shards(run), whole().ask(WHO, QUIET))


def test_missing_shards_are_named(tmp_path):
    ask_shard(whole(), WHO, Shard(2, 4), tmp_path, QUIET)
    assert missing_shards(tmp_path) == [Shard(1, 4), Shard(3, 4), Shard(4, 4)]
    with pytest.raises(CoraError, match="of 4 shards 3 are missing: 1/4, 3/4, 4/4; .* --shard 1/4"):
        join_shards(tmp_path)


class Bob(Counting):
    name = "bob"


def test_another_respondents_run_is_refused_though_it_says_the_same_of_itself(tmp_path):
    ask_shard(whole(), Counting(), Shard(1, 2), tmp_path / "a", QUIET)
    write_responses(whole().ask(Counting(), QUIET), tmp_path / "b")
    for folder in ("a", "b"):
        for number in (1, 2):
            with pytest.raises(CoraError, match="a run of 'counting' here, and this is one of 'bob'"):
                ask_shard(whole(), bob := Bob(), Shard(number, 2), tmp_path / folder, QUIET)
            assert not bob.asked


@pytest.mark.parametrize("harm", [lambda facts: facts.write_text("{"), lambda facts: facts.unlink()])
def test_a_damaged_shard_neither_stops_nor_blinds_the_others(three, tmp_path, harm):
    run = shutil.copytree(three, tmp_path / "run")
    shutil.rmtree(Shard(3, 3).folder(run))
    harm(Shard(1, 3).folder(run) / "facts.json")
    with pytest.raises(CoraError, match="a shard of another run"):
        ask_shard(whole(seed=1), WHO, Shard(3, 3), run, QUIET)
    ask_shard(whole(), WHO, Shard(3, 3), run, QUIET)
    with pytest.raises(CoraError, match="00001-of-00003"):
        join_shards(run)


def test_parts_that_count_failures_in_two_ways_are_not_joined(three):
    one, *others = [read_responses(place) for place in sorted((three / "shards").iterdir())]
    for parts in ([one.count_failed_as_wrong(), *others], [*others, one.count_failed_as_wrong()]):
        with pytest.raises(CoraError, match="count failed prompts as wrong, and others do not"):
            concat(parts)


def test_concat_joins_shards_in_any_order_and_nothing_less(three):
    parts = [read_responses(place) for place in sorted((three / "shards").iterdir())]
    check_equal(concat(reversed(parts)), whole().ask(WHO, QUIET))
    for some in (parts[:2], parts[:1], [*parts, parts[0]], [*parts[:2], parts[2].rows(parts[2].table.index > 0)]):
        with pytest.raises(CoraError):
            concat(some)


def test_a_join_over_another_run_is_refused(three, tmp_path):
    run = shutil.copytree(three, tmp_path / "run")
    there = whole(seed=1).ask(WHO, QUIET)
    write_responses(there, tmp_path / "other")
    for file in (tmp_path / "other").iterdir():
        shutil.copy(file, run)
    with pytest.raises(CoraError, match="another run here already"):
        join_shards(run)
    assert read_responses(run).equals(there)


def test_asking_while_a_join_writes_leaves_the_run_whole(three, tmp_path, monkeypatch):
    "A join that was killed between two files: shards can be asked, and the next join writes all."
    run = shutil.copytree(three, tmp_path / "run")
    whole_run = join_shards(run)
    (run / "responses.parquet").unlink()
    ask_shard(whole(), WHO, Shard(2, 3), run, QUIET)
    assert join_shards(run).equals(whole_run) and read_responses(run).equals(whole_run)


def test_a_shard_is_not_the_run(tmp_path):
    shard = ask_shard(whole(), WHO, Shard(1, 3), tmp_path, QUIET)
    assert shard.facts.rows.kept == len(shard) < shard.facts.rows.of == 220 and shard.facts.benchmark.questions == 4
    with pytest.raises(CoraError, match="there is no run here .*cora_join"):
        read_responses(tmp_path)
    for number, prepared in ((1, whole(stop=Precise())), (12, whole())):
        with pytest.raises(CoraError, match="precise stopping looks at all replies|more than there are questions"):
            shard_of(prepared, Shard(1, number))


@pytest.mark.parametrize("by", [None, "subject", "method"])
def test_a_shard_has_no_scores_of_the_run(three, tmp_path, by):
    "In no table of scores, with an interval or without: a remark says which shard it is. There are bounds of the run."
    found = score(read_responses(three / "shards/00002-of-00003"), by=by, ci=0.95)
    assert found[["value", "low", "high"]].isna().all(axis=None)
    assert all(any(r.why == "shard" and (r.n, r.of) == (2, 3) for r in remarks) for remarks in found["remarks"])
    if by is None:
        whole = score(join_shards(shutil.copytree(three, tmp_path / "run")))
        least, most, truth = (values_of(found, "least"), values_of(found, "most"), values_of(whole))
        assert (least <= truth + 1e-9).all() and (truth <= most + 1e-9).all() and (least < most).all()


@pytest.mark.parametrize("name", ["score", "score, failed wrong", "subset_scores", "ablation_table", "bootstrap_table"])
def test_the_remark_on_a_shard_is_made_once(three, name):
    shard = read_responses(three / "shards/00002-of-00003")
    made = {
        "score": score,
        "score, failed wrong": partial(score, failed="wrong"),
        "subset_scores": subset_scores,
        "ablation_table": ablation_table,
        "bootstrap_table": partial(bootstrap_table, draws=5, resamples=3),
    }
    for remarks in made[name](shard)["remarks"]:
        assert [(r.n, r.of) for r in remarks if r.why == "shard"] == [(2, 3)]


def test_table_and_gate_say_that_it_is_a_shard(three, capsys):
    shard = str(three / "shards/00002-of-00003")
    cora_table([shard], interval=0.95)
    assert "shard 2 of 3" in capsys.readouterr().out
    with pytest.raises(SystemExit) as e:
        cora_gate(shard, at_least="CoRA=0.01,MCQA=0.01")
    out = capsys.readouterr().out
    assert e.value.code == 3 and out.count("shard 2 of 3") == 2


# ---------------------------------------------------------------- workers


@pytest.fixture
def who(tmp_path):
    "The address of a respondent in a file, for workers and commands; its requests are the lines of `log`."
    shutil.copy(counting.__file__, tmp_path / "who.py")
    return f"{tmp_path}/who.py:Logged"


@pytest.fixture(scope="module")
def client():
    with local_workers(2) as client:
        yield client


def requests(folder, log="log"):
    return (folder / log).read_text().splitlines() if (folder / log).exists() else []


@pytest.mark.slow
@pytest.mark.parametrize("trials", [1, 2])
def test_workers_share_the_store_of_the_run(client, tmp_path, who, trials):
    "Each prompt is asked once, and what is in the store not at all."
    prepared, make = whole(asking=Asking(trials=trials)), partial(make_respondent, who)
    with Store(tmp_path / "r.sqlite") as store:
        first = divide(client, make, prepared, tmp_path / "a", store).ask(progress=False)
        n = len(requests(tmp_path))
        assert n == len(store) == first.facts.calls["asked"]
        again = divide(client, make, prepared, tmp_path / "b", store).ask(progress=False)
        assert again.facts.calls["asked"] == 0 and len(requests(tmp_path)) == n
    alone = prepared.ask(make_respondent(f"{who},log=alone"), QUIET)
    check_equal(first, alone), check_equal(again, alone)


@pytest.mark.slow
def test_draws_on_workers(client, tmp_path, who):
    prepared = prepare(make_variants(pairs(10), family="cyclic"))
    make = partial(make_respondent, f"{who},temperature=0.7")
    alone = prepared.ask(make(), QUIET)
    for name, store in (("a", None), ("b", Store(tmp_path / "r.sqlite"))):
        assert divide(client, make, prepared, tmp_path / name, store).ask(progress=False).table.equals(alone.table)


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_what_was_under_way(tmp_path, who):
    prepared, make = whole(), partial(make_respondent, f"{who},dies=2,wait=0.02")
    with local_workers(2) as client, Store(tmp_path / "r.sqlite") as store:
        run = divide(client, make, prepared, tmp_path / "a", store).ask(progress=False)
        assert len(list(tmp_path.glob("died*"))) == 2
        assert len(store) <= len(requests(tmp_path)) <= len(store) + 2 * 10  # replies that had not arrived
    check_equal(run, prepared.ask(make_respondent(f"{who},log=alone"), QUIET))


@pytest.mark.slow
def test_the_reply_that_was_stored_first_counts_on_workers(client, tmp_path, who):
    with Beaten(tmp_path / "r.sqlite") as store:
        run = divide(client, partial(make_respondent, who), whole(), tmp_path / "a", store).ask(progress=False)
        assert set(run.table["reply"]) == {"E"} and len(requests(tmp_path)) == len(store)


@pytest.mark.slow
@pytest.mark.parametrize("breaks", ["cora", "other"])
def test_a_shard_that_fails_does_not_stop_the_others(client, tmp_path, who, breaks):
    "What went wrong is said once, in one line, and is not tried again; the rest is kept."
    make = partial(make_respondent, f"{who},breaks={breaks}")
    with Store(tmp_path / "r.sqlite") as store:
        with pytest.raises(CoraError) as e:
            divide(client, make, whole(), tmp_path / "a", store, count=11).ask(progress=False)
        said = str(e.value)
        assert "\n" not in said and "\x1b" not in said and said.count("model") + said.count("memory") == 1
        assert len(missing_shards(tmp_path / "a")) == 1 and len(store) > 150
        assert sum(line.endswith(f" {BAD}") for line in requests(tmp_path)) == 1
        fixed = divide(client, partial(make_respondent, who), whole(), tmp_path / "a", store).ask(progress=False)
    assert fixed.complete


@pytest.mark.slow
def test_what_is_wrong_is_said_before_anything_is_asked(client, tmp_path, who):
    make = partial(make_respondent, who)
    write_responses(whole(seed=1).ask(make_respondent(f"{who},log=other"), QUIET), tmp_path / "a")
    ask_shard(whole(seed=1), make_respondent(f"{who},log=other"), Shard(1, 8), tmp_path / "b", QUIET)
    for folder in ("a", "b"):
        with pytest.raises(CoraError, match="another run"):
            divide(client, make, whole(), tmp_path / folder)
    with pytest.raises(CoraError, match="workers failed") as e:
        divide(client, partial(print, threading.Lock()), whole(), tmp_path / "c")
    assert "\n" not in str(e.value)
    with pytest.raises(CoraError) as e:
        divide(client, partial(make_respondent, "causal:/nowhere/at/\x1b[31mall"), whole(), tmp_path / "c")
    assert "\n" not in str(e.value) and "\x1b" not in str(e.value) and "nowhere" in str(e.value)
    assert not requests(tmp_path) and not (tmp_path / "c").exists()


@pytest.mark.slow
def test_another_number_of_workers_goes_on_with_the_shards_that_are_there(client, tmp_path, who):
    make = partial(make_respondent, who)
    ask_shard(whole(), make(), Shard(2, 3), tmp_path / "a", QUIET)
    n = len(requests(tmp_path))
    run = divide(client, make, whole(), tmp_path / "a").ask(progress=False)
    assert len(requests(tmp_path)) - n < len(run) - n + 1 and run.complete
    assert len(list((tmp_path / "a/shards").iterdir())) == 3


@pytest.mark.slow
def test_a_disk_that_refuses_ends_the_run_in_one_line(client, tmp_path, who):
    import contextlib
    import sqlite3

    with Store(tmp_path / "r.sqlite") as store:
        with contextlib.closing(sqlite3.connect(tmp_path / "r.sqlite")) as db:
            full = "create trigger full before insert on cora_replies begin select raise(abort, 'disk is full'); end"
            db.execute(full)
        with pytest.raises(CoraError, match="could not be kept") as e:
            divide(client, partial(make_respondent, who), whole(), tmp_path / "a", store).ask(progress=False)
        assert "\n" not in str(e.value)


@pytest.mark.slow
def test_a_scheduler_that_is_gone_is_one_line(tmp_path, who):
    pytest.importorskip("distributed")
    import distributed

    address = tmp_path / "scheduler.json"
    words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    quiet_too = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen([*words, "--no-dashboard", "--scheduler-file", str(address)], **quiet_too)
    worker = None
    try:
        while not address.exists() or not address.read_text().strip():
            assert scheduler.poll() is None
            time.sleep(0.05)
        words = [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            "--scheduler-file",
            str(address),
            "--no-dashboard",
        ]
        worker = subprocess.Popen([*words, "--nthreads", "1"], **quiet_too)
        with distributed.Client(scheduler_file=str(address)) as client:
            client.wait_for_workers(1, timeout=120)
            divided = divide(client, partial(make_respondent, f"{who},wait=0.05"), whole(), tmp_path / "a")
            scheduler.kill()
            with pytest.raises(CoraError) as e:
                divided.ask(progress=False)
            assert "\n" not in str(e.value)
    finally:
        for process in filter(None, (worker, scheduler)):
            process.kill()
            process.wait()


@pytest.mark.slow
def test_each_worker_has_a_gpu_of_its_own_and_its_share_of_the_cores(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(shards, "_visible_gpus", lambda: ["4", "7"])
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    names = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")
    with local_workers(2) as client:
        seen = client.run(lambda names: [os.environ.get(name) for name in names], names)
    assert sorted(map(tuple, seen.values())) == [("4", "3"), ("7", "3")]
    with pytest.raises(CoraError, match="3 workers are more than there are GPUs, 2"):
        with local_workers(3):
            pass


# ---------------------------------------------------------------- commands


@pytest.mark.slow
def test_the_command_divides_a_run(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    words = ["cora_run", "causal:organism/steady,device=cpu", "--limit", 5, "--trials", 2]
    assert run_command(*words, "--out", "alone", cwd=tmp_path)[0] == 0
    store = "--store", tmp_path / "r.sqlite"
    code, out, err = run_command(*words, "--out", "workers", "--workers", 3, *store, cwd=tmp_path)
    assert code == 0 and "CoRA" in out, err
    asked = read_responses(tmp_path / "workers/math/steady").facts.calls["asked"]
    assert asked == stored_replies(tmp_path / "r.sqlite") and f"{asked} asked, 0 from" in out
    for shard in ("1/3", "2/3", "3/3"):
        assert run_command(*words, "--out", "shards", "--shard", shard, cwd=tmp_path)[0] == 0
        assert (tmp_path / f"shards/math/steady/shards/0000{shard[0]}-of-00003.sqlite").exists()
    assert not list((tmp_path / "cora_nb").glob("*.sqlite*")) or stored_replies(tmp_path / "cora_nb/replies.sqlite")
    code, out, err = run_command("cora_join", "shards/math/steady", cwd=tmp_path)
    assert code == 0 and "CoRA" in out, err
    alone, *others = (read_responses(tmp_path / out / "math/steady") for out in ("alone", "workers", "shards"))
    for run in others:
        plain = ["question_id", "method", "index", "trial", "prediction", "correct", "reply", "state"]
        assert run.table[plain].equals(alone.table[plain])
        assert not run.facts.differences(alone.facts)
        assert run.facts.run.command["command"] == "cora_run" and "shard" not in run.facts.run.command


@pytest.mark.slow
@pytest.mark.parametrize("how", [("--workers", 2), ("--shard", "1/2")])
def test_a_command_that_is_killed_goes_on_from_what_it_had(tmp_path, who, how):
    spec = f"{who},wait=0.01"
    held = f"{spec},holds=15" if how[0] == "--workers" else f"{spec},holds=50"  # then it answers no more
    store = tmp_path / ("r.sqlite" if how[0] == "--workers" else "out/math/counting/shards/00001-of-00002.sqlite")
    more = ("--store", store) if how[0] == "--workers" else ()
    words = ["--limit", 11, "--out", "out", *map(str, how), *map(str, more)]
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    first = subprocess.Popen(command("cora_run", held, *words), cwd=tmp_path, env=env, start_new_session=True, **pipes)
    try:
        while stored_replies(store) < 25:
            assert first.poll() is None
            time.sleep(0.01)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    time.sleep(1)  # what the workers have under way ends with them
    kept, before = stored_replies(store), len(requests(tmp_path))
    code, out, err = run_command("cora_run", spec, *words, cwd=tmp_path)
    assert code == 0, err
    n = stored_replies(store)
    assert len(requests(tmp_path)) - before == n - kept and n > kept
    if how[0] == "--shard":
        code, out, err = run_command("cora_run", spec, *words[:-1], "2/2", cwd=tmp_path)
        assert code == 0 and run_command("cora_join", "out/math/counting", cwd=tmp_path)[0] == 0
    joined = read_responses(tmp_path / "out/math/counting")
    check_equal(joined, whole(facts=joined.facts.run.plain()).ask(make_respondent(f"{who},log=alone"), QUIET))


@pytest.mark.slow
def test_ctrl_c_keeps_what_the_workers_handed_over(tmp_path, who):
    store = tmp_path / "r.sqlite"
    words = ["cora_run", f"{who},wait=0.02,holds=15", "--limit", "11", "--workers", "2", "--store", str(store)]
    usual = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    run = subprocess.Popen(
        command(*words), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=usual
    )
    while stored_replies(store) < 25:
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=600)
    assert run.returncode == 1 and b"Traceback" not in err and b"interrupted; " in err
    assert stored_replies(store) >= 25


@pytest.mark.slow
def test_workers_replies_that_cannot_be_read_are_told(tmp_path, who):
    (tmp_path / "rule.py").write_text("def nothing(reply, choices):\n    return -1\n")
    words = "--limit", 4, "--workers", 1, "--parse", "rule.py:nothing"
    code, out, err = run_command("cora_run", who, *words, cwd=tmp_path)
    assert code == 0 and "80 of 80 replies cannot be read" in out, err


def test_failed_prompts_of_a_shard_end_with_status_3(tmp_path, monkeypatch, capsys, who):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(SystemExit) as e:
        cora_run([f"{who},fails=5"], limit=4, shard="1/2")
    assert e.value.code == 3 and "1 failed" in capsys.readouterr().out


@pytest.mark.slow
def test_failed_prompts_end_with_status_3(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "responses/math/counting"
    for number in (1, 2):
        ask_shard(whole(), Counting(fails={5}), Shard(number, 2), out, QUIET)
    code, printed, err = run_command("cora_join", out, cwd=tmp_path)
    assert code == 3 and "failed" in err


@pytest.mark.slow
@pytest.mark.parametrize("store", [(), ("--store", "r.sqlite")])
def test_ctrl_c_in_a_shard_says_what_its_store_keeps(tmp_path, who, store):
    words = ["cora_run", f"{who},holds=30", "--limit", 11, "--shard", "1/2", *store]
    kept = tmp_path / (store[1] if store else "responses/math/counting/shards/00001-of-00002.sqlite")
    usual = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    run = subprocess.Popen(command(*words), cwd=tmp_path, stderr=subprocess.PIPE, preexec_fn=usual)
    while stored_replies(kept) < 30:
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=600)
    assert run.returncode == 1 and b"30 new replies are kept in" in err and b"Traceback" not in err


def test_what_is_free_is_kept_in_no_store(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for shard in ("1/2", "2/2"):
        cora_run(["simulated:name=ann"], limit=4, shard=shard)
    cora_run(["simulated:name=ann"], limit=4, shard="1/2", dry=True, out="other")
    assert not list(tmp_path.rglob("*.sqlite*")) and not (tmp_path / "other").exists()


def test_a_respondent_that_fails_does_not_stop_the_other(tmp_path, monkeypatch, capsys, who):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as e:
        cora_run([f"{who},breaks=cora", who.replace("Logged", "Other")], limit=11, shard="2/2")
    assert e.value.code == 3 and "no such" in capsys.readouterr().err
    assert len(read_responses("responses/math/other/shards/00002-of-00002")) == 100


def test_a_dry_run_of_a_shard_tells_of_the_shard(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cora_run(["simulated:name=ann"], limit=5, shard="1/2", dry=True)
    assert " 60 " in (out := capsys.readouterr().out) and " 100 " not in out and not os.path.exists("responses")
    with pytest.raises(SystemExit) as e:
        cora_run(["simulated:name=ann"], limit=5, shard="6/6", dry=True)
    assert "more than there are questions" in str(e.value)


@pytest.mark.parametrize("store", [None, "r.sqlite"])
def test_a_dry_run_of_a_shard_knows_what_its_store_has(tmp_path, monkeypatch, capsys, who, store):
    "By the keys of the whole run: equal prompts of two shards are draws of their own."
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_benchmark(pairs(6), tmp_path / "pairs.jsonl")
    named = {"benchmark": "pairs", "path": "pairs.jsonl", "family": "cyclic", "store": store, "shard": "2/2"}
    spec, told = f"{who},temperature=0.7", []
    for dry in (True, False, True):
        cora_run([spec], dry=dry, **named)
        told.append(capsys.readouterr().out)
    n = len(requests(tmp_path))
    numbers = [re.search(r"^counting +(.*)$", told[i], re.MULTILINE)[1].split() for i in (0, 2)]
    assert [line[:4] for line in numbers] == [[str(n), str(n), "0", str(n)], [str(n), str(n), str(n), "0"]]


def test_a_command_refuses_another_run_before_it_asks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cora_run(["simulated:name=ann"], limit=4, shard="1/2")
    for shard in ("1/2", "2/2"):
        with pytest.raises(SystemExit) as e:
            cora_run(["simulated:name=ann"], limit=4, seed=1, shard=shard)
        assert "another run" in str(e.value) and "seed" in str(e.value) and "\n" not in str(e.value)
    assert read_facts("responses/math/ann/shards/00001-of-00002").shard.number == 1
    assert not os.path.exists("responses/math/ann/shards/00002-of-00002")


def test_strict_needs_all_replies(tmp_path, monkeypatch, capsys):
    "A shard or a worker sees its own replies alone: the option was left out in silence."
    monkeypatch.chdir(tmp_path)
    for option in ({"shard": "1/2"}, {"workers": 2}):
        with pytest.raises(SystemExit) as e:
            cora_run(["simulated"], limit=4, store="none", strict=True, **option)
        assert "--strict looks at all replies" in str(e.value)
    assert not (tmp_path / "responses").exists()
