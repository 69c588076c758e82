"""What became of each prompt: one column says so, whichever way the responses were made, and files without it read."""

import numpy as np
import pandas as pd
import pytest

from cora_nb.core import BadRow, CoraError, Question
from cora_nb.interop.plain_table import import_table
from cora_nb.respondents.protocol import REFUSED_REPLY, Reply
from cora_nb.respondents.simulated import RecordedRespondent
from cora_nb.responses.columns import STATES, UNSENT, in_state
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.responses.responses import Responses
from cora_nb.responses.runs import concat
from cora_nb.runs.asking import Budget, Settled
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

QUESTIONS = [
    Question(f"q{n}", f"What is {n} + {n}?", (str(2 * n), str(2 * n + 1), str(2 * n + 2)), 0, "sums")
    for n in range(1, 9)
]
VARIANTS = make_variants(QUESTIONS, family="cora", seed=0)
WORDS = "status 500: out of order"
COUNTS = {"answered": 41, "unread": 2, "refused": 2, "failed": 1, "not_asked": 65, "over_budget": 1}
SAID = {
    ("q1", "shuffled"): Reply(error=WORDS),
    ("q2", "original"): REFUSED_REPLY,
    ("q3", "original"): Reply("", meta={"finish_reason": "content_filter"}),
    ("q4", "original"): Reply("I do not know.", meta={"finish_reason": "stop"}),
    ("q5", "original"): Reply("Let me think about", meta={"finish_reason": "length"}),
}


class Moody:
    "Fails, is refused and is unreadable once or twice; otherwise right, except for one original."

    name = "moody"

    def describe(self):
        return {"respondent": "moody"}

    def request(self, prompt):
        return {"moody": prompt.text}

    async def answer(self, prompts):
        for i, p in enumerate(prompts):
            v = p.variant
            wrong = (v.question_id, v.method) == ("q6", "original")
            yield i, SAID.get((v.question_id, v.method)) or Reply(v.labels[(v.answer + wrong) % v.n_choices])


@pytest.fixture(scope="module")
def run():
    with pytest.warns(UserWarning, match="stopped by its budget"):
        return evaluate(Moody(), VARIANTS, stop=Settled(batch=4), budget=Budget(calls=38), progress=False, strict=None)


def states_of(found):
    return {state: int(in_state(found.table, state).sum()) for state in STATES}


def test_a_run_has_every_state(run):
    assert states_of(run) == COUNTS
    t = run.table
    assert t["error"].dropna().tolist() == [WORDS] and t["state"][t["error"].notna()].tolist() == ["failed"]
    assert t.loc[in_state(t, *UNSENT), ["reply", "scores", "selected", "finish", "error"]].isna().all(axis=None)
    assert not t["correct"][~in_state(t, "answered")].any() and (t["prediction"][~in_state(t, "answered")] == -1).all()
    outcome = run.summary().loc["all"].to_dict()
    assert outcome == {"rows": 112, "right": 40, "wrong": 1, "unparsed": 3, "cut_off": 1, "failed": 1, "not_asked": 66}


def test_states_of_a_table_of_csv(run, tmp_path):
    run.to_frame(texts=True).to_csv(tmp_path / "new.csv", index=False)
    new = import_table(tmp_path / "new.csv")
    assert new.table["state"].tolist() == run.table["state"].tolist()
    silent = run.to_frame(texts=True).assign(error=None)
    silent.to_csv(tmp_path / "silent.csv", index=False)
    lost = import_table(tmp_path / "silent.csv").table
    assert lost["error"].dropna().tolist() == ["the table does not say why"] and states_of(run) == COUNTS
    silent.assign(state="Ohio").to_csv(tmp_path / "other.csv", index=False)  # a column of that name of another tool
    assert set(import_table(tmp_path / "other.csv").table["state"]) == {"answered", "unread", "refused"}


def test_a_record_replays_every_state(run):
    again = evaluate(RecordedRespondent(run), VARIANTS, progress=False, strict=None)
    assert again.table["state"].tolist() == run.table["state"].tolist()
    assert again.table["error"].equals(run.table["error"])


def test_parts_of_a_run_keep_their_states(run):
    half = np.arange(len(run)) < 56
    joined = concat([run.rows(half), run.rows(~half)])
    assert joined.table["state"].equals(run.table["state"])
    assert run.trial(0).first_trial().table["state"].dtype == run.table["state"].dtype


def test_a_table_must_not_contradict_its_states(run):
    for column, value, why in (
        ("correct", True, "correct must say whether prediction equals answer"),
        ("error", "lost", "error must be missing unless the prompt failed"),
        ("scores", (0.1, 0.2, 0.3), "scores must be missing where the prompt was not asked"),
        ("state", "answered", "state is answered only where the reply names a choice, or a letter that was not shown"),
    ):
        table = run.table.copy().astype(object)
        row = int(np.flatnonzero(in_state(run.table, "not_asked"))[0])
        table.at[row, column] = value
        with pytest.raises(BadRow, match=f"row {row + 1}, .*{why}"):
            Responses(table)
    few = pd.DataFrame({"question_id": ["a"], "method": ["original"], "correct": [True], "state": ["unread"]})
    with pytest.raises(BadRow, match="only a prompt that is answered can be correct"):
        Responses(few)


def test_states_in_another_order_are_the_same(run):
    "A category of the same names in another order is equal to ours in pandas, unless ours has an order."
    for order in (sorted(STATES), STATES[::-1]):
        states = pd.Categorical(run.table["state"].astype(object), categories=order)
        assert states_of(Responses(run.table.assign(state=states))) == COUNTS


def test_a_file_with_an_unknown_state_is_named(run, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_responses(run, tmp_path / "run")
    file = tmp_path / "run" / "responses.parquet"
    table = pq.read_table(file)
    place = table.schema.get_field_index("state")
    pq.write_table(table.set_column(place, "state", pa.array(["lost"] * len(table))), file)
    with pytest.raises(CoraError, match="state must be one of answered"):
        read_responses(tmp_path / "run")
