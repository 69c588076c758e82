"""When the alarm speaks, how often, what it shows, and what strict does."""

import re
import warnings
from collections import Counter

import pytest

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import CoraError, Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.responses.facts import Facts
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.runs.alarm import (
    Alarm,
    UnreadRepliesWarning,
    alarm_lines,
    responses_alarm,
    too_many_unread,
    _unread_replies,
)
from cora_nb.runs.asking import Asking, Settled
from cora_nb.runs.alarm import Unread
from cora_nb.runs.evaluate import evaluate, prepare, Running
from cora_nb.runs.grading import judge_answers
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants

VARIANTS = make_variants(load_benchmark("math")[:10])
REFUSAL, SENTENCE = "I'm sorry, but I can't help with that.", "The correct answer is **B**."
pytestmark = pytest.mark.filterwarnings("error")


class Says:
    "Answers prompt number i with what a function of i gives: a text or a `Reply`."

    name = "says"

    def __init__(self, what):
        self.what, self.asked = what if callable(what) else lambda i: what, 0

    def describe(self):
        return {"respondent": "says"}

    def request(self, prompt):
        v = prompt.variant
        return {"key": v.key, "trial": prompt.trial}

    async def answer(self, prompts):
        for i in range(len(prompts)):
            reply = self.what(self.asked)
            self.asked += 1
            yield i, reply if isinstance(reply, Reply) else Reply(reply)


def quietly(what, n=100, **more):
    "The run, and the warnings of the alarm."
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = evaluate(Says(what), VARIANTS[:n], progress=False, **more)
    assert {w.category for w in caught} <= {UnreadRepliesWarning}
    return run, [str(w.message) for w in caught]


def head(texts):
    return [re.search(r"(\d+) of (\d+) replies", text).groups() for text in texts]


# ---- when


@pytest.mark.parametrize(
    "what,n,expected",
    [
        (lambda i: REFUSAL if i < 4 else "B", 100, [("4", "32")]),
        (lambda i: REFUSAL if i < 3 else "B", 100, []),
        (lambda i: REFUSAL if 28 <= i < 32 else "B", 100, [("4", "32")]),
        (lambda i: REFUSAL if i >= 50 else "B", 100, [("6", "56")]),  # well at first
        (lambda i: REFUSAL if i < 3 else "B", 29, [("3", "29")]),  # judged at its end
        (lambda i: REFUSAL if i < 3 else "B", 31, []),  # 31 replies may hold three
        (lambda i: REFUSAL if i < 3 else "B", 30, []),
        (lambda i: REFUSAL if i < 1 else "B", 9, [("1", "9")]),
        (REFUSAL, 1, [("1", "1")]),
        (lambda i: Reply(error="no reply within 60 s") if i % 2 else "B", 100, []),  # failures are no replies
        (lambda i: Reply(error="no reply within 60 s") if i % 2 else REFUSAL, 100, [("32", "32")]),
        (Reply("", meta={"finish_reason": "content_filter"}), 40, [("32", "32")]),
        (Reply(scores=(-1.0, -1.0, -2.0, -3.0)), 1, [("1", "1")]),  # tied
        ("", 40, [("32", "32")]),
    ],
)
def test_more_than_a_tenth_of_32_or_more(what, n, expected):
    assert head(quietly(what, n)[1]) == expected


def test_the_share_that_is_too_many():
    assert [too_many_unread(n, 32) for n in (3, 4)] == [False, True] and not too_many_unread(10, 100)


def test_a_respondent_that_is_simply_wrong_does_not_alarm(capsys):
    for scores in (False, True):
        run = evaluate(SimulatedRespondent(knows=0.0, with_scores=scores), VARIANTS, progress=False)
        assert responses_alarm(run) == []
    evaluate(Says("A"), VARIANTS, progress=True)
    assert "cannot be read" not in "".join(capsys.readouterr())


def test_replies_of_the_store_count(tmp_path):
    with Store(tmp_path / "replies.sqlite") as store:
        assert head(quietly(REFUSAL, store=store)[1]) == [("32", "32")]
        run, said = quietly("B", store=store)
        assert run.facts.calls["asked"] == 0 and head(said) == [("32", "32")]


def test_early_stopping_is_judged_at_its_end():
    run, said = quietly(lambda i: REFUSAL if i in (5, 9) else "B", 20, stop=Settled())
    assert head(said) in ([], [("2", str(20 - run.facts.calls["not_asked"]))])


# ---- how


def test_above_the_bar_with_progress_and_as_a_warning_without(capsys):
    evaluate(Says(SENTENCE), VARIANTS, Asking(parse="first_token"), progress=True)
    out, err = capsys.readouterr()
    assert out == "" and err.count("cannot be read") == 1, "once, on the error stream"
    with pytest.warns(UnreadRepliesWarning, match="32 of 32 replies cannot be read") as caught:
        evaluate(Says(SENTENCE), VARIANTS, Asking(parse="first_token"), progress=False)
    assert len(caught) == 1 and str(caught[0].message) in err.replace("\r", "\n")
    assert "in Python: evaluate(respondent, variants, Asking(parse='lenient'))" in err


def test_strict_stops_there_with_one_line_and_keeps_the_replies(tmp_path, capsys):
    with Store(tmp_path / "replies.sqlite") as store:
        for ask in (
            lambda who: evaluate(who, VARIANTS, store=store, progress=False, strict=True),
            lambda who: prepare(VARIANTS).ask(who, Running(store, progress=False, strict=True)),
        ):
            who = Says(REFUSAL)
            with pytest.raises(CoraError, match=r"^says: 32 of 32 replies cannot be read.*replies\.sqlite; .*$") as e:
                ask(who)
            assert "\n" not in str(e.value) and "--template" not in str(e.value), "nothing that was not tried"
        assert who.asked == 0, "the second time, all of them were in the store"
        assert len(store.get([key for key in keys(VARIANTS)])) == 32
        run = evaluate(who, VARIANTS, store=store, progress=False, strict=None)
        assert who.asked == len(VARIANTS) - 32 and len(run) == len(VARIANTS)
    assert capsys.readouterr() == ("", "")
    with pytest.raises(CoraError, match="what to type stands above"):
        evaluate(Says(SENTENCE), VARIANTS, Asking(parse="first_token"), strict=True)
    assert "in a shell: --parse lenient" in capsys.readouterr().err
    with pytest.raises(CoraError, match="may help$"):
        evaluate(Says(REFUSAL), VARIANTS, strict=True)
    assert "in a shell" not in capsys.readouterr().err
    assert len(evaluate(Says("A"), VARIANTS, progress=False, strict=True)) == len(VARIANTS)


def keys(variants):
    from cora_nb.runs.store import asked_prompts

    return asked_prompts(Says(""), make_prompts(variants))[1]


def test_a_judge_that_says_nothing_has_a_warning_of_its_own():
    sun = Question("sun", "Where does the sun rise?", ("East", "West"), 0)
    asked = make_variants([sun], "formats", only="lfgq")
    run = make_responses(asked, ["In the East."], {"lfgq": "in_words"})
    with pytest.warns(UserWarning) as caught:
        judge_answers(run, asked, Says("Hm."), progress=False)
    assert [w.category for w in caught] == [UserWarning]


# ---- what it shows


def shown(text):
    return re.findall(r"^    (\S+), (\w+ \d+): (.*)$", text, re.MULTILINE)


def test_three_replies_different_ones_first_with_what_every_rule_reads():
    replies = [SENTENCE] * 30 + ["It is 'B'."] * 5 + [REFUSAL] * 10
    (text,) = quietly(lambda i: replies[44 - i], 45, asking=Asking(parse="first_token"))[1]
    assert head([text]) == [("32", "32")]
    assert Counter(x[2] for x in shown(text)) == {f'"{SENTENCE}"': 1, "\"It is 'B'.\"": 1, f'"{REFUSAL}"': 1}
    assert '"The correct answer is **B**."\n        read: B by lenient, ' in text and "first_token (in use)" in text


def test_a_rule_of_ones_own_is_named():
    (text,) = quietly("B", 5, asking=Asking(parse=lambda reply, choices: -1))[1]
    assert "(in use)" in text and "B by lenient" in text


def test_model_text_is_escaped_and_shortened_in_its_middle():
    text = "Begin\x1b[2J\u202e\n" + "x" * 10_000 + " end"
    (said,) = quietly(text, 5)[1]
    assert said.isprintable() or set(said) - {"\n"} == {c for c in said if c.isprintable()}
    assert r'"Begin\x1b[2J\u202e\nxxx' in said and ' end"' in said and "more characters" in said
    assert max(map(len, said.splitlines())) < 300
    nasty = Says(REFUSAL)
    nasty.name = "\x1b]0;owned\x07"
    with pytest.warns(UnreadRepliesWarning) as caught:
        evaluate(nasty, VARIANTS[:5], progress=False)
    assert str(caught[0].message).startswith(r"\x1b]0;owned\x07: 5 of 5")


def test_what_was_not_tried_is_named_and_not_typed():
    (text,) = quietly("The second one.", 40)[1]
    assert "may help" in text and "this was not tried" in text
    assert "in a shell" not in text and "in Python" not in text and "--template" not in text


def test_a_rule_that_loses_other_replies_is_not_recommended():
    def own(reply, choices):
        return 0 if reply == "Yes" else -1

    (text,) = quietly(lambda i: SENTENCE if i % 8 == 0 else "Yes", 40, asking=Asking(parse=own))[1]
    assert "in a shell" not in text and "lenient reads" not in text
    (text,) = quietly(lambda i: SENTENCE if i % 8 == 0 else "B", 40, asking=Asking(parse="first_token"))[1]
    assert "lenient reads 5 of 5 such replies and 28 of 28 others" in text or "lenient reads 4 of 4" in text


# ---- from responses


def test_responses_say_the_same_as_the_run_did_also_from_disk(tmp_path):
    run, (text,) = quietly(lambda i: [SENTENCE, "B", ""][i % 3], 30, asking=Asking(parse="first_token"))
    assert "\n".join(responses_alarm(run)) == text
    write_responses(run, tmp_path / "run")
    assert "\n".join(responses_alarm(read_responses(tmp_path / "run"))) == text
    assert "\n".join(responses_alarm(run, name="other")) == "other" + text.removeprefix("says")


def test_an_older_run_has_it_too():
    "Without facts, texts of the choices, or most columns."
    run, _ = quietly(SENTENCE, 30, asking=Asking(parse="first_token"))
    bare = run.to_frame()[["question_id", "method", "n_choices", "answer", "prediction", "correct", "reply"]]
    text = "\n".join(responses_alarm(make_bare(bare)))
    assert "30 of 30 replies cannot be read" in text and "B by lenient" in text
    assert "in a shell: --parse lenient" in text
    assert responses_alarm(make_bare(bare.drop(columns="n_choices"))) == []


def make_bare(table):
    from cora_nb.responses.responses import Responses

    return Responses(table.assign(family="cora", index=range(len(table))))


@pytest.mark.slow
def test_what_rules_would_have_read_knows_the_choices():
    "A reply that is the text of a choice is read by its text, from the table as during the run."
    for v in VARIANTS:
        run = make_responses([v], [Reply(v.choices[v.answer])], "first_token")
        (found,), counts, n = _unread_replies(run)
        assert counts == {"unparsed": 1} and n == 1
        assert found.variant.choices == v.choices, (v.method, v.sources)


def test_every_form_has_its_rules():
    question = Question("sun", "Where does the sun rise?", ("East", "West", "North"), 0)
    for v in make_variants([question], "formats"):
        text = "\n".join(responses_alarm(make_responses([v], ["I would rather not say."])))
        rule = {"mcq": "lenient", "several": "selected", "tfq": "yes_no", "lfgq": "in_words"}[v.form]
        assert rule in re.search("read: (.*)", text)[1]


def test_failures_and_prompts_not_asked_are_no_unreadable_replies():
    run = make_responses(VARIANTS[:4], ["B", Reply(error="500"), Reply(error="500"), Reply(error="500")])
    assert _unread_replies(run)[1:] == (Counter(), 1) and responses_alarm(run) == []
    refused = make_responses(VARIANTS[:2], ["B", Reply("", meta={"finish_reason": "content_filter"})])
    assert _unread_replies(refused)[1:] == (Counter({"refused": 1}), 2)


def test_ties_count_as_unread():
    run = make_responses(VARIANTS[:1], [Reply(scores=(-1.0,) * 4)])
    text = "\n".join(responses_alarm(run))
    assert "(1 tied)" in text and "(two choices are equally likely)" in text


def test_a_long_run_is_examined_in_part():
    run = make_responses(VARIANTS * 1, [SENTENCE] * len(VARIANTS), "first_token")
    unread, counts, n = _unread_replies(run)
    assert len(unread) <= 200 and counts["unparsed"] == n == len(VARIANTS)
    text = "\n".join(alarm_lines("m", unread, counts, n, Facts()))
    assert f"{n} of {n} replies" in text


def test_an_alarm_by_hand():
    said = []
    alarm = Alarm("m", Facts(), said.append)
    alarm.end()
    assert not said, "no replies at all"
    with pytest.raises(CoraError, match="no replies"):
        alarm_lines("m", [], Counter(), 0, Facts())
    assert "m: 1 of 1" in alarm_lines("m", [Unread(VARIANTS[0], None, "refused")], {"refused": 1}, 1, Facts())[0]


def test_replies_without_words_are_no_ties_and_lead_to_no_recommendation(medalpaca):
    "Recorded facts have grades alone: that two choices were equally likely, or a server refused, is not known."
    text = "\n".join(responses_alarm(medalpaca.first_trial()))
    assert text.splitlines() == [
        "medalpaca-7b: 3740 of 33098 replies cannot be read, and count as wrong (3740 no text)",
        "  the words of these replies are not here, so the cause is not known",
    ]


def test_replies_without_words_among_others_are_not_shown():
    run = make_responses(VARIANTS[:10], [SENTENCE] * 10, "first_token")
    table = run.table.assign(reply=run.table["reply"].mask(run.table.index < 6))
    text = "\n".join(responses_alarm(Responses(table, run.questions, run.facts)))
    assert "(4 unparsed, 6 no text)" in text and "not known" in text and text.count("read: B by") == 3
