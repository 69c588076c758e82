"""One road from a reply to a row: the same reply comes to the same whoever asked, wrote it down or reads it again."""

import math
import zlib
from collections import Counter

import pytest

from cora_nb.core import Question
from cora_nb.forms import Variant, get_form
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import RecordedRespondent
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.responses.responses import make_responses
from cora_nb.runs.asking import Asking, Settled
from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants
from faulty_server import Answer, FaultyServer, completion

QUESTIONS = [
    Question("planet", "Which planet is the largest?", ("Mars", "Jupiter", "Venus", "Earth"), 1, "sky"),
    Question("leap", "How many days has a leap year?", ("365", "366", "364", "360"), 1),
    Question("gold", "What is the symbol of gold?", ("Ag", "Go", "Gd", "Au"), 3, "chemistry"),
]
STATEMENTS = {
    ("leap", i): f"Is it true that a leap year has {text} days?" for i, text in enumerate(QUESTIONS[1].choices)
}
FAMILIES = {
    "cora": {},
    "mcqa_plus": {},
    "mcqa_plus with statements": {"statements": STATEMENTS},
    "permutations": {},
    "cyclic": {},
    "answer_swap": {},
    "order_swap": {},
    "reorderings": {},
    "misleading": {"misleading": {q.id: 0 for q in QUESTIONS}},
    "formats": {},
    "formats with all claims": {"claims": "all", "sizes": (2, 3)},
}


def variants_of(family):
    return make_variants(QUESTIONS, family.split()[0], **FAMILIES[family])


def several(question=QUESTIONS[0]):
    "The question with leave to name several choices."
    shown = question.choices, question.answer, tuple(range(question.n_choices))
    return Variant(question, "formats", "several", 0, *shown, "several")


def perfect(v):
    return v.labels[v.answer]


class Says:
    "Says what it is told to say of each variant, and counts how often a reply of its is finished."

    name = "somebody"

    def __init__(self, habit):
        self.habit, self.finished = habit, Counter()

    def describe(self):
        return {"respondent": "somebody"}

    def request(self, prompt):
        return {"family": prompt.variant.family, "key": prompt.variant.key}

    async def answer(self, prompts):
        for i, p in enumerate(prompts):
            said = self.habit(p.variant)
            yield i, said if isinstance(said, Reply) else Reply(said)

    def finish(self, prompt, reply):
        self.finished[prompt.variant.key, prompt.trial] += 1
        return reply


# ---- the roads: each takes variants and what is said of each, and gives responses


def asked(variants, habit, folder):
    return evaluate(Says(habit), variants, progress=False)


def graded(variants, habit, folder):
    return make_responses(variants, [habit(v) for v in variants], name="somebody")


def recorded(variants, habit, folder):
    "Asked, written to disk, read back, and repeated from the record."
    write_responses(asked(variants, habit, folder), folder / "run")
    return evaluate(RecordedRespondent(read_responses(folder / "run"), "somebody"), variants, progress=False)


ROADS = (asked, graded, recorded)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_perfect_respondent_is_right_in_every_form(tmp_path, family, road):
    "It scored 1.0 through `evaluate`, 0.714 (mcqa_plus) and 0.0 (tfq and lfgq of formats) through `grade`."
    variants = variants_of(family)
    table = road(variants, perfect, tmp_path).table
    assert table["correct"].all() and len(table) == len(variants) > 0
    assert table["form"].tolist() == [v.form for v in variants]
    expected = [(v.answer,) if get_form(v).several else None for v in variants]
    assert table["selected"].tolist() == expected and table["prediction"].tolist() == [v.answer for v in variants]


@pytest.mark.parametrize("road", ROADS[1:])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_road_gives_the_table_of_the_first(tmp_path, family, road):
    "Right, wrong and unreadable replies, in a pattern that every road sees alike."

    def habit(v):  # equal prompts get equal replies, as from a server at temperature 0
        said = ["nothing to say", "A and B", f"{v.labels[0]}.", *v.labels, perfect(v), perfect(v), perfect(v)]
        return said[zlib.crc32(f"{v.asked}{v.choices}{v.form}".encode()) % len(said)]

    (tmp_path / "first").mkdir()
    variants = variants_of(family)
    first = asked(variants, habit, tmp_path / "first").table
    said = ["n_tokens", "finish"]  # the server's own words about a reply
    assert road(variants, habit, tmp_path).table.drop(columns=said).equals(first.drop(columns=said))
    assert 0 < first["correct"].sum() < len(first)


SPELLINGS = {
    "A. Mars, C. Venus": (0, 2),
    "Both A and C": (0, 2),
    "Both A and C are correct.": (0, 2),
    "a, c": (0, 2),
    "A, C": (0, 2),
    "A, B and D": (0, 1, 3),
    "B": (1,),
    "B. Jupiter": (1,),
    "None of them.": (),
}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("said", SPELLINGS)
def test_a_list_of_letters_is_read_as_what_it_says(tmp_path, said, road):
    'What named several was 1.0 for "A, C" and 0.0 for "A. 12, C. 15" or "Both A and C are correct.".'
    responses = road([several()], lambda v: said, tmp_path)
    (row,) = responses.table.itertuples()
    named = SPELLINGS[said]
    assert row.selected == named and row.prediction == (named[0] if len(named) == 1 else -1)
    assert row.correct == (named == (1,))
    outcome = "right" if named == (1,) else "wrong" if named else "unparsed"
    assert responses.summary().loc["all", outcome] == 1


@pytest.mark.parametrize("road", (asked, graded, recorded))
def test_a_failure_is_no_answer_on_any_road(tmp_path, road):
    for variant in (several(), *variants_of("formats")[:3]):
        (folder := tmp_path / variant.method).mkdir()
        responses = road([variant], lambda v: Reply(error="timeout"), folder)
        (row,) = responses.table.itertuples()
        assert (row.prediction, row.selected, row.correct, row.error) == (-1, None, False, "timeout")
        assert responses.summary().loc["all", "failed"] == 1


# ---- how much is asked for


def test_letters_are_scored_where_letters_are_shown():
    variants = [several(), *variants_of("formats")[:3]]
    likely = [{"token": t, "logprob": math.log(p)} for t, p in (("A", 0.5), ("Yes", 0.25), ("B", 0.125))]
    body = completion("A", logprobs={"content": [likely[0] | {"top_logprobs": likely}]})
    with FaultyServer(lambda asked: Answer(body=body)) as server:
        model = ChatRespondent("m", base_url=server.url, top_logprobs=5)
        table = evaluate(model, variants, Asking("bare"), progress=False).table
    assert table["form"].tolist() == ["several", "mcq", "tfq", "lfgq"]
    first, low = math.log(0.5), math.log(0.125)  # the reply's own first token is no label of a statement: no scores
    assert table["scores"].tolist() == [(first, low, -math.inf, -math.inf)] * 2 + [None, None]


# ---- finish


def test_each_reply_is_finished_once(tmp_path):
    "Asked, taken from the store, in several trials, and with early stopping: once for each row that was asked."
    variants = variants_of("cora")
    every = Counter({(v.key, trial): 1 for v in variants for trial in range(2)})
    with Store(tmp_path / "r.sqlite") as store:
        for _ in range(2):
            who = Says(perfect)
            evaluate(who, variants, Asking(trials=2), store=store, progress=False)
            assert who.finished == every
    for habit in (perfect, lambda v: "A", lambda v: Reply(error="down")):
        who = Says(habit)
        stopped = evaluate(who, variants, stop=Settled(batch=3), progress=False)
        assert set(who.finished.values()) == {1}
        assert len(who.finished) == len(variants) - stopped.facts.calls["not_asked"]
    for readings in (perfect, lambda v: "unreadable"):  # counting the unreadable does not read again
        who = Says(readings)
        evaluate(who, variants, progress=False)
        assert set(who.finished.values()) == {1} and len(who.finished) == len(variants)


def test_each_reply_is_read_once():
    "The bar counts the unreadable, early stopping the right ones, and the table all: from one reading."
    read = Counter()

    def rule(reply, choices):
        read[reply] += 1
        return 0

    variants = variants_of("cora")
    evaluate(Says(lambda v: f"{v.key}"), variants, Asking(parse=rule), progress=False)
    assert read == Counter({f"{v.key}": 1 for v in variants})
    read.clear()
    evaluate(Says(lambda v: f"{v.key}"), variants, Asking(parse=rule), stop=Settled(), progress=False)
    assert set(read.values()) == {1}
