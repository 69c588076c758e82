"""Shards: every row in one of them, the same run as one process, kills, failures, and other runs."""

import asyncio
import random
import shutil
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cora_nb.core import CoraError, Question, THRESHOLDS
from cora_nb.metrics.scoring import score
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import in_state
from cora_nb.responses.files import read_facts, read_responses, write_responses
from cora_nb.responses.parts import ResponseParts
from cora_nb.responses.runs import concat
from cora_nb.results import values_of
from cora_nb.runs.asking import Asking, Precise, Settled
from cora_nb.runs.evaluate import evaluate, prepare, Running
from cora_nb.runs.shards import (
    Shard,
    as_shard,
    ask_shard,
    divided,
    join_shards,
    missing_shards,
    shard_bytes,
    shard_file,
    shard_ranges,
    shard_runs,
    shards_there,
    usual_count,
)
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants
from helpers import slow_after


def some(n, **more):
    return [
        Question(f"q{i}", f"How many is {i}?", ("one", "two", "three", f"{i} more"), i % 4, **more) for i in range(n)
    ]


def ask_all(prepared, respondent, count, folder, seed=0, store=None):
    "Each shard alone, in a random order."
    numbers = list(range(1, count + 1))
    random.Random(seed).shuffle(numbers)
    for n in numbers:
        ask_shard(prepared, respondent, f"{n}/{count}", folder, Running(store, progress=False))


def same_run(joined, alone):
    assert joined.equals(alone)
    assert joined.table.equals(alone.table)
    assert joined.questions.equals(alone.questions)
    assert joined.facts.differences(alone.facts) == []
    assert set(joined.facts.plain()) == set(alone.facts.plain())
    assert joined.facts.calls == alone.facts.calls


@pytest.mark.parametrize(
    "wrong, why",
    [
        ("0/64", r"\$\(\(SLURM_ARRAY_TASK_ID \+ 1\)\)/64"),
        ("65/64", "from 1 to 64, got 65"),
        ("1/0", "the count of shards"),
        ("-1/4", "such as 3/64"),
        ("3", "such as 3/64"),
        ("3/64/2", "such as 3/64"),
        ("", "such as 3/64"),
        (3, "such as 3/64"),
    ],
)
def test_what_is_not_a_shard(wrong, why):
    with pytest.raises(CoraError, match=why):
        as_shard(wrong)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.integers(1, 20), st.integers(1, 3))
def test_every_prompt_is_in_one_shard_and_questions_stay_whole(texts, count, trials):
    questions = [Question(f"q{i}", f"text {t}", ("a", "b"), 0) for i, t in enumerate(texts)]
    prompts = prepare(make_variants(questions, family="cyclic"), Asking(trials=trials)).prompts
    different = len(set(texts))
    if count > different:
        with pytest.raises(CoraError, match=f"{count} shards are more than there are different questions, {different}"):
            divided(prompts, count)
        return
    parts = divided(prompts, count)
    assert sorted(i for part in parts for i in part) == list(range(len(prompts)))
    assert all(part == sorted(part) for part in parts)
    held = [{prompts[i].variant.question.text for i in part} for part in parts]
    assert sum(map(len, held)) == different  # none in two shards
    assert max(map(len, held)) - min(map(len, held)) <= 1


def test_the_usual_count_depends_on_the_run_alone():
    assert usual_count(prepare(make_variants(some(3))).prompts) == 2
    assert usual_count(prepare(make_variants(some(20))).prompts) == 13  # 400 prompts, 32 each
    assert usual_count(prepare(make_variants(some(60))).prompts) == 16
    assert usual_count(prepare(make_variants(some(450))).prompts) == 18  # 9000 prompts, 512 each
    assert usual_count(prepare(make_variants(some(2)), Asking(trials=100)).prompts) == 2  # not more than questions


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize(
    "asking", slow_after(1, [Asking(), Asking(trials=3, parse="first_token"), Asking(shots=some(9), k=2)])
)
def test_joined_shards_are_the_run_of_one_process(tmp_path, count, asking):
    variants = make_variants(some(11, subject="sums"), seed=3)
    ann = SimulatedRespondent(name="ann", knows=0.5, slips=0.2, position=(3, 1, 1, 1))
    facts = {"benchmark": "sums", "seed": 3}
    ask_all(prepare(variants, asking, facts=facts), ann, count, tmp_path / "ann", seed=count)
    alone = prepare(variants, asking, facts=facts).ask(ann, Running(progress=False))
    same_run(join_shards(tmp_path / "ann"), alone)
    same_run(read_responses(tmp_path / "ann"), alone)


def test_rows_keep_the_order_of_the_variants(tmp_path):
    variants = sorted(make_variants(some(8)), key=lambda v: (v.method, v.index, v.question_id))
    ann = SimulatedRespondent(name="ann", knows=0.5)
    ask_all(prepare(variants), ann, 3, tmp_path / "ann")
    same_run(join_shards(tmp_path / "ann"), evaluate(ann, variants, progress=False))


class Drawing:
    "Draws its replies: each repetition of a request gets another one."

    name, calls = "drawing", 0

    def describe(self):
        return {"respondent": "drawing"}

    def request(self, prompt):
        return {"text": prompt.text, "temperature": 1.0, "room": self.room(prompt)}

    def room(self, prompt):
        return 3 + len(prompt.variant.question.choices)

    async def answer(self, prompts):
        for i, p in enumerate(prompts):
            await asyncio.sleep(0)
            self.calls += 1
            drawn = random.Random(f"{p.text} {p.trial}").randrange(p.variant.n_choices)
            yield i, Reply(p.variant.labels[drawn], meta={"completion_tokens": 1})


def test_the_same_question_twice_and_replies_that_are_drawn(tmp_path):
    "Equal prompts are repetitions of one request, in one process and in shards."
    one, *others = some(9)
    questions = [one, *others, replace(one, id="again"), Question("long", "More?", tuple("abcdefg"), 2)]
    variants = make_variants(questions, family="cyclic")
    ask_all(prepare(variants), Drawing(), 4, tmp_path / "run")
    joined, alone = join_shards(tmp_path / "run"), evaluate(Drawing(), variants, progress=False)
    same_run(joined, alone)
    assert joined.facts.asked.room == {"mcq": 10}  # of the whole run, though only one shard has this question
    told = alone.table.set_index("question_id")["reply"]
    assert told["q0"].tolist() != told["again"].tolist()


def test_texts_that_are_no_unicode_and_no_subject(tmp_path):
    odd = [replace(q, text=f"{q.text} \ud83d", choices=("\udc00 one", *q.choices[1:])) for q in some(4)]
    ann = SimulatedRespondent(name="ann\ud800", knows=0.5)
    ask_all(prepare(make_variants(odd)), ann, 2, tmp_path / "run")
    alone = evaluate(ann, make_variants(odd), progress=False)
    joined = join_shards(tmp_path / "run")
    assert joined.table.equals(alone.table) and joined.questions.equals(alone.questions)


@pytest.mark.parametrize("stop", [Settled(), Settled(THRESHOLDS)])
def test_early_stopping_is_exact_in_shards(tmp_path, stop):
    variants = make_variants(some(40))
    ann = SimulatedRespondent(name="ann", knows=0.6, slips=0.1)
    ask_all(prepare(variants, stop=stop), ann, 5, tmp_path / "ann")
    joined, full = join_shards(tmp_path / "ann"), evaluate(ann, variants, progress=False)
    assert joined.facts.calls["not_asked"] > 0
    assert values_of(score(joined))["CoRA"] == values_of(score(full))["CoRA"]


def test_a_shard_is_asked_once(tmp_path):
    who, prepared = Drawing(), prepare(make_variants(some(4), family="cyclic"))
    file = ask_shard(prepared, who, "1/2", tmp_path / "run", Running(progress=False))
    calls, before = who.calls, file.stat().st_mtime_ns
    assert ask_shard(prepared, who, Shard(1, 2), tmp_path / "run", Running(progress=False)) == file
    assert who.calls == calls > 0 and file.stat().st_mtime_ns == before
    assert [p.name for p in file.parent.iterdir()] == ["00001-of-00002.parquet"]


class Shaky(SimulatedRespondent):
    "Fails for the prompts with these places of the right answer, and counts its calls."

    bad, calls = (1, 2), 0

    async def answer(self, prompts):
        async for i, reply in super().answer(prompts):
            self.calls += 1
            yield i, Reply(error="gone") if prompts[i].variant.answer in self.bad else reply


@pytest.mark.parametrize("stored", [False, True])
def test_only_failed_prompts_are_asked_again(tmp_path, stored):
    variants = make_variants(some(12))
    prepared, who, place = prepare(variants), Shaky(name="shaky", knows=0.6), tmp_path / "shaky"
    store = Store(tmp_path / "replies.sqlite") if stored else None
    ask_all(prepared, who, 3, place, store=store)
    first, facts = who.calls, [read_facts(file).shard.failed for file in shards_there(place).values()]
    joined = join_shards(place)
    assert sum(facts) == in_state(joined.table, "failed").sum() > 0
    who.bad, who.calls = (2,), 0
    ask_all(prepared, who, 3, place, store=store)
    again = in_state(joined.table, "failed").sum()
    assert 0 < who.calls <= again < first  # equal prompts share a reply, so perhaps fewer calls than rows
    who.bad, who.calls = (), 0
    ask_all(prepared, who, 3, place, store=store)
    fine = join_shards(place)
    assert fine.table.equals(evaluate(SimulatedRespondent(name="shaky", knows=0.6), variants, progress=False).table)
    who.calls = 0
    ask_all(prepared, who, 3, place, store=store)
    assert who.calls == 0


def test_with_early_stopping_a_shard_with_failures_is_asked_whole(tmp_path):
    variants, who = make_variants(some(12)), Shaky(name="shaky", knows=0.6)
    ask_all(prepare(variants, stop=Settled()), who, 3, tmp_path / "run")
    who.bad = ()
    ask_all(prepare(variants, stop=Settled()), who, 3, tmp_path / "run")
    alone = evaluate(SimulatedRespondent(name="shaky", knows=0.6), variants, progress=False)
    assert values_of(score(join_shards(tmp_path / "run")))["CoRA"] == values_of(score(alone))["CoRA"]


ANN = SimulatedRespondent(name="ann", knows=0.5)


@pytest.mark.parametrize(
    "other, why",
    [
        (
            lambda q, place: ask_shard(prepare(make_variants(q, seed=1)), ANN, "2/3", place),
            r"other seed \(0 there, 1 now\);",
        ),
        (lambda q, place: ask_shard(prepare(make_variants(q), Asking("bare")), ANN, "2/3", place), "other template"),
        (lambda q, place: ask_shard(prepare(make_variants(q)), ANN, "2/4", place), "are of 3, and not of 4"),
        (
            lambda q, place: ask_shard(prepare(make_variants(q)), replace(ANN, slips=0.5), "1/3", place),
            "respondent.slips",
        ),
        (lambda q, place: ask_shard(prepare(make_variants(q[1:])), ANN, "1/3", place), "benchmark.questions"),
    ],
)
def test_another_run_is_refused_and_nothing_changes(tmp_path, other, why):
    file = ask_shard(prepare(make_variants(some(6))), ANN, "1/3", tmp_path / "run", Running(progress=False))
    before = file.read_bytes()
    with pytest.raises(CoraError, match=why):
        other(some(6), tmp_path / "run")
    assert file.read_bytes() == before and list(file.parent.iterdir()) == [file]


def test_what_cannot_be_joined(tmp_path):
    prepared, place = prepare(make_variants(some(8))), tmp_path / "run"
    with pytest.raises(CoraError, match="there are no shards here"):
        join_shards(place)
    for n in (1, 3, 4, 7):
        ask_shard(prepared, ANN, f"{n}/8", place, Running(progress=False))
    with pytest.raises(CoraError, match=r"4 of 8 shards are missing: 2,5-6,8; ask them, such as --shard 2/8"):
        join_shards(place)
    ask_all(prepared, ANN, 8, place)
    assert missing_shards(place) == []
    good, file = {f: f.read_bytes() for f in shards_there(place).values()}, shard_file(place, Shard(2, 8))
    other = prepare(make_variants(some(8), seed=1))
    wrong = {
        "two runs, with different variants.hash": shard_bytes(
            shard_runs(other, 8)[Shard(2, 8)].ask(ANN, Running(progress=False))
        ),
        "do not hold each row": good[shard_file(place, Shard(3, 8))],
        "not a Parquet file": good[file][: len(good[file]) // 2],
    }
    for why, content in wrong.items():
        file.write_bytes(content)
        with pytest.raises(CoraError, match=why):
            join_shards(place)
    file.write_bytes(good[file])
    shutil.copy(file, file.with_name("00002-of-00009.parquet"))
    with pytest.raises(CoraError, match="there are shards of 8 and of 9"):
        join_shards(place)
    file.with_name("00002-of-00009.parquet").unlink()
    same_run(join_shards(place), evaluate(ANN, make_variants(some(8)), progress=False))


def test_a_run_in_a_plain_file_is_no_shard(tmp_path):
    ask_all(prepare(make_variants(some(2))), ANN, 1, tmp_path / "run")
    join_shards(tmp_path / "run")
    shutil.copy(tmp_path / "run/responses.parquet", shard_file(tmp_path / "run", Shard(1, 1)))
    with pytest.raises(CoraError, match="this is not a shard of a run"):
        join_shards(tmp_path / "run")


def test_what_kills_leave_behind_does_no_harm(tmp_path, monkeypatch):
    from cora_nb.responses import files

    prepared, place = prepare(make_variants(some(4))), tmp_path / "run"
    ask_all(prepared, ANN, 2, place)
    (place / "shards/.cora_nb_abcd").mkdir()
    (place / "shards/.cora_nb_abcd/part").write_bytes(b"half")
    written, whole = [], files.write_whole

    def killed_at_the_last(path, write):
        if path.name == "responses.parquet":
            raise KeyboardInterrupt
        written.append(path.name)
        whole(path, write)

    monkeypatch.setattr(files, "write_whole", killed_at_the_last)
    with pytest.raises(KeyboardInterrupt):
        join_shards(place)
    monkeypatch.undo()
    assert written == ["facts.json", "questions.parquet"] and not (place / "responses.parquet").exists()
    shard_file(place, Shard(1, 2)).unlink()
    ask_shard(prepared, ANN, "1/2", place, Running(progress=False))
    assert (place / "facts.json").exists()  # another process may be joining now
    same_run(join_shards(place), evaluate(ANN, make_variants(some(4)), progress=False))


def test_asking_while_a_join_writes_leaves_the_run_whole(tmp_path, monkeypatch):
    from cora_nb.responses import files

    prepared, place, whole = prepare(make_variants(some(4))), tmp_path / "run", files.write_whole
    ask_all(prepared, ANN, 2, place)

    def asked_between(path, write):
        if path.name == "responses.parquet":
            monkeypatch.undo()
            ask_shard(prepared, ANN, "1/2", place, Running(progress=False))
            join_shards(place)  # and another join is faster
        whole(path, write)

    monkeypatch.setattr(files, "write_whole", asked_between)
    join_shards(place)
    names = sorted(p.name for p in place.iterdir())
    assert names == ["facts.json", "questions.parquet", "responses.parquet", "shards"]
    same_run(read_responses(place), evaluate(ANN, make_variants(some(4)), progress=False))


def test_precise_stopping_is_refused_before_anything_is_asked(tmp_path):
    who, prepared = Drawing(), prepare(make_variants(some(4)), stop=Precise())
    with pytest.raises(CoraError, match="looks at all replies while it asks"):
        ask_shard(prepared, who, "1/2", tmp_path / "run", Running(progress=False))
    assert who.calls == 0 and not (tmp_path / "run").exists()


def test_shards_over_another_run_are_refused_before_anything_is_asked(tmp_path):
    variants, who = make_variants(some(4), family="cyclic"), Drawing()
    write_responses(evaluate(Drawing(), variants, Asking("bare"), progress=False), tmp_path / "run")
    with pytest.raises(CoraError, match=r"another run here already, with other template \(bare there, cora now\);"):
        ask_shard(prepare(variants), who, "1/2", tmp_path / "run", Running(progress=False))
    assert who.calls == 0 and not (tmp_path / "run/shards").exists()
    ask_shard(prepare(variants, Asking("bare")), who, "1/2", tmp_path / "run", Running(progress=False))  # the same run
    assert who.calls > 0


def test_a_damaged_shard_is_to_be_deleted(tmp_path):
    file = ask_shard(prepare(make_variants(some(2))), ANN, "1/1", tmp_path / "run", Running(progress=False))
    file.write_bytes(file.read_bytes()[:1000])
    for read in (
        lambda: join_shards(tmp_path / "run"),
        lambda: ask_shard(prepare(make_variants(some(2))), ANN, "1/1", tmp_path / "run", Running(progress=False)),
    ):
        with pytest.raises(CoraError, match="00001-of-00001.parquet: .*; delete it and ask this shard again"):
            read()


def test_parts_of_shards_know_the_room_of_the_whole(tmp_path):
    questions = [*some(5), Question("long", "More?", tuple("abcdefg"), 2)]
    prepared = prepare(make_variants(questions, family="cyclic"))
    ask_all(prepared, Drawing(), 3, tmp_path / "run")
    facts = ResponseParts(tmp_path / "run").facts
    joined = join_shards(tmp_path / "run").facts
    assert facts.asked.room == joined.asked.room == {"mcq": 10}
    assert facts.calls == joined.calls


def test_a_shard_is_a_table_of_responses_and_no_whole_run(tmp_path):
    prepared = prepare(make_variants(some(6)))
    files = [ask_shard(prepared, ANN, f"{n}/2", tmp_path / "run", Running(progress=False)) for n in (1, 2)]
    part = read_responses(files[0])
    assert 0 <= values_of(score(part))["MCQA"] <= 1 and part.facts.shard.plain() == {
        "number": 1,
        "of": 2,
        "failed": 0,
        "room": {},
    }
    with pytest.raises(CoraError, match="these are shards of ann: put them together with join_shards or cora join"):
        concat(map(read_responses, files))
    part.facts.as_json()


@given(st.sets(st.integers(1, 99), min_size=1))
def test_ranges_name_each_shard_once(numbers):
    said = shard_ranges([Shard(n, 99) for n in sorted(numbers)])
    ends = [[int(n) for n in part.split("-")] for part in said.split(",")]
    assert [n for a, *b in ends for n in range(a, (b[0] if b else a) + 1)] == sorted(numbers)
