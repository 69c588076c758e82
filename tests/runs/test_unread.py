"""Unread replies: their kinds, when a run speaks of them, what it shows, what strict does, and trying a few prompts."""

import re
import warnings
from dataclasses import replace

import pytest

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError, Question
from cora_nb.metrics.account import score_counts
from cora_nb.metrics.account import account
from cora_nb.metrics.gate import gate
from cora_nb.prompts.letters import RULES, register_rule
from cora_nb.report.words import gate_lines
from cora_nb.respondents import chat
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.runs.asking import Asking, Settled
from cora_nb.runs.evaluate import _few_variants, evaluate, try_respondent
from cora_nb.runs.store import Store
from cora_nb.runs.unread import ADVICE, UnreadRepliesWarning, rules_that_read, unread_kind, unread_report
from cora_nb.variants.families import make_variants
from faulty_server import Answer, FaultyServer, completion, refusal
from simulated_time import Clock

QUESTIONS = math_benchmark(n=30)
VARIANTS = make_variants(QUESTIONS[:10])
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
        return {"key": prompt.variant.key, "trial": prompt.trial}

    async def answer(self, prompts):
        for i in range(len(prompts)):
            reply = self.what(self.asked)
            self.asked += 1
            yield i, reply if isinstance(reply, Reply) else Reply(reply)


def quietly(what, n=100, **more):
    "The run, and what it warned of."
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = evaluate(Says(what), VARIANTS[:n], progress=False, **more)
    assert {w.category for w in caught} <= {UnreadRepliesWarning}
    return run, [str(w.message) for w in caught]


def head(texts):
    return [re.search(r"(\d+) of (\d+) replies", text).groups() for text in texts]


# ---- kinds

KIND = {
    "cut off": [("Let us look at", "length"), ("", "length"), ("<think>Sydney is", "stop"), (REFUSAL, "length")],
    "refused": [
        (REFUSAL, "stop"),
        ("I cannot assist with that request.", "stop"),
        ("As an AI language model, I do not have opinions", None),
        ("Sorry, I am not able to answer this.", "stop"),
        ("", "content_filter"),
        ("", "refusal"),
    ],
    "empty": [("", "stop"), (" \n", None), ("<think>\n</think>\n\n", "stop")],
    "unparsed": [("The second one.", "stop"), ("Canberra cannot be it, or can it?", None)],
}


@pytest.mark.parametrize("text,finish,expected", [(*case, kind) for kind, cases in KIND.items() for case in cases])
def test_kinds(text, finish, expected):
    assert unread_kind(Reply(text, meta={"finish_reason": finish}), False) == expected and expected in ADVICE


def test_what_is_read_or_failed_is_not_unread():
    assert unread_kind(Reply("B"), True) == unread_kind(Reply(error="no reply within 60 s"), False) == ""
    assert unread_kind(Reply(scores=(1.0, 1.0)), False) == "tied"
    assert unread_kind(Reply(), False) == "no text"


# ---- a letter that was not shown


@pytest.mark.parametrize("rule", ["careful", "first_token", "last_line"])
@pytest.mark.parametrize("said", ["Z", "(Z)", "The answer is Z.", "**Z**"])
def test_a_letter_that_was_not_shown_is_a_wrong_answer(said, rule, tmp_path):
    run = make_responses(VARIANTS, [said] * len(VARIANTS), rule)
    t = run.table
    assert (t["state"] == "answered").all() and (t["prediction"] == -1).all() and not t["correct"].any()
    assert unread_report(run) == [] and run.outcomes()["wrong"].all()
    write_responses(run, tmp_path / "run")
    assert read_responses(tmp_path / "run").table.equals(t)


@pytest.mark.parametrize("said", ["I cannot answer", "A or B", "", "42", "B or Z", "Zebra", "X-rays"])
def test_other_replies_without_a_choice_are_unread(said):
    assert not (make_responses(VARIANTS[:3], [said] * 3).table["state"] == "answered").any()


# ---- when

FAILED = Reply(error="no reply within 60 s")


@pytest.mark.parametrize(
    "what,n,expected",
    [
        (lambda i: REFUSAL if i < 4 else "B", 100, [("4", "32")]),
        (lambda i: REFUSAL if 28 <= i < 32 else "B", 100, [("4", "32")]),
        (lambda i: REFUSAL if i >= 50 else "B", 100, [("6", "56")]),  # well at first
        (lambda i: REFUSAL if i % 20 == 7 else "B", 200, [("10", "200")]),  # few replies, and every question
        (lambda i: REFUSAL if i == 7 else "B", 200, [("1", "200")]),  # one question of ten
        (lambda i: REFUSAL if i in (7, 27) else "B", 200, [("2", "200")]),
        (lambda i: REFUSAL if i < 1 else "B", 9, [("1", "9")]),
        (REFUSAL, 1, [("1", "1")]),
        (lambda i: FAILED if i % 2 else "B", 100, []),  # failures are no replies
        (lambda i: FAILED if i % 2 else REFUSAL, 100, [("32", "32")]),
        (Reply("", meta={"finish_reason": "content_filter"}), 40, [("32", "32")]),
        (Reply(scores=(-1.0, -1.0, -2.0, -3.0)), 1, [("1", "1")]),  # tied
        ("", 40, [("32", "32")]),
        ("A", 200, []),  # simply wrong
        ("Z", 200, []),
    ],
)
def test_more_than_a_tenth_of_the_replies_or_one_in_fifty_questions(what, n, expected):
    assert head(quietly(what, n)[1]) == expected


@pytest.mark.parametrize("n_unread, expected", [(1, []), (2, [("2", "50")])])
def test_one_question_in_fifty_is_not_reported_and_two_are(n_unread, expected):
    originals = [replace(VARIANTS[0], question=replace(QUESTIONS[0], id=f"q{i}")) for i in range(50)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnreadRepliesWarning)
        evaluate(Says(lambda i: REFUSAL if i < n_unread else "B"), originals, progress=False)
    assert head([str(w.message) for w in caught if w.category is UnreadRepliesWarning]) == expected


def test_a_perfect_respondent_of_whose_replies_few_cannot_be_read_is_told_of():
    run, said = quietly(lambda i: "Perhaps the second." if i % 40 == 3 else "ABCD"[VARIANTS[i].answer], 200)
    assert score_counts(account(run))["CoRA"] <= 0.5 and head(said) == [("5", "200")]
    assert "; 5 of 10 questions have one" in said[0]


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
    asking = Asking(parse="first_token")
    evaluate(Says(SENTENCE), VARIANTS, asking, progress=True)
    out, err = capsys.readouterr()
    assert out == "" and err.count("cannot be read") == 1, "once, on the error stream"
    with pytest.warns(UnreadRepliesWarning, match="32 of 32 replies cannot be read"):
        evaluate(Says(SENTENCE), VARIANTS, asking, progress=False)


def test_three_replies_and_the_rules_that_read_them():
    (text,) = quietly(SENTENCE, 40, asking=Asking(parse="first_token"))[1]
    first, *shown, last = text.splitlines()
    assert first == (
        "says: 32 of 32 replies cannot be read, and count as wrong (32 unparsed); 2 of 2 questions have one"
    )
    assert (
        shown == [f'    math-0-1, the original: "{SENTENCE}"']
        and last == "  read by careful, last_line: --parse careful"
    )
    (text,) = quietly(lambda i: ["The second.", "The third.", "Both.", "None."][i % 4], 40)[1]
    assert len(text.splitlines()) == 5 and text.splitlines()[-1] == f"  {ADVICE['unparsed']}"


@pytest.mark.parametrize("said,kind", [(REFUSAL, "refused"), ("", "empty"), ("<think>so", "cut off")])
def test_what_usually_helps_goes_by_the_commonest_kind(said, kind):
    (text,) = quietly(lambda i: "Perhaps." if i % 9 == 1 else said, 40)[1]
    assert text.splitlines()[-1] == f"  {ADVICE[kind]}"


def test_replies_and_names_are_escaped_and_long_ones_cropped():
    (said,) = quietly("Begin\x1b[2J\u202e\n" + "x" * 10_000 + " end", 5)[1]
    assert all(line.isprintable() for line in said.splitlines()) and max(map(len, said.splitlines())) < 300
    assert r'"Begin\x1b[2J\u202e\nxxx' in said and ' end"' in said and "more characters" in said
    nasty = Says(REFUSAL)
    nasty.name = "\x1b]0;owned\x07"
    with pytest.warns(UnreadRepliesWarning) as caught:
        evaluate(nasty, VARIANTS[:5], progress=False)
    assert str(caught[0].message).startswith(r"\x1b]0;owned\x07: 5 of 5")


def test_strict_tells_of_a_few_and_stops_at_a_tenth():
    with pytest.warns(UnreadRepliesWarning, match="1 of 200 replies cannot be read"):
        evaluate(Says(lambda i: REFUSAL if i == 7 else "B"), VARIANTS[:200], strict=True, progress=False)
    with pytest.raises(CoraError, match="stopped, as strict asks for"):
        evaluate(Says(lambda i: REFUSAL if i in (7, 27) else "B"), VARIANTS[:200], strict=True, progress=False)


def test_strict_stops_with_one_line(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        with pytest.raises(CoraError, match=r"^says: 4 of 32 .*: stopped, as strict asks for, with .*r\.sqlite; ") as e:
            evaluate(Says(lambda i: REFUSAL if i < 4 else "B"), VARIANTS, strict=True, progress=False, store=store)
    assert "\n" not in str(e.value)


def test_every_form_has_its_rules_and_a_broken_one_does_no_harm():
    @register_rule
    def broken(reply, choices):
        raise ValueError

    try:
        capital = Question("capital", "What is the capital of Australia?", ("Sydney", "Canberra", "Perth"), 1)
        asked = {v.form: v for v in make_variants([capital], "formats")}
        assert rules_that_read([(asked["lfgq"], Reply("It is Canberra."))]) == ["same_words"]
        assert rules_that_read([(asked["tfq"], Reply("Yes"))]) == ["yes_no"]
        assert rules_that_read([(VARIANTS[0], Reply(SENTENCE))] * 9 + [(VARIANTS[1], Reply("Hm."))]) == [
            "careful",
            "last_line",
        ]
        assert rules_that_read([(VARIANTS[0], Reply(None))]) == rules_that_read([]) == []
    finally:
        del RULES.registered["broken"]


# ---- of a run that is there


def test_a_run_on_disk_says_the_same(tmp_path):
    run, (text,) = quietly(lambda i: [SENTENCE, "B", ""][i % 3], 30, asking=Asking(parse="first_token"))
    assert "\n".join(unread_report(run)) == text
    write_responses(run, tmp_path / "run")
    assert "\n".join(unread_report(read_responses(tmp_path / "run"))) == text
    assert "\n".join(unread_report(run, name="other")) == "other" + text.removeprefix("says")


def test_a_bare_table_has_it_too():
    "Without facts, texts of the choices, or most columns."
    run, _ = quietly(SENTENCE, 30, asking=Asking(parse="first_token"))
    bare = run.to_frame()[["question_id", "method", "n_choices", "answer", "prediction", "correct", "reply"]]
    bare = bare.assign(family="cora", index=range(len(bare)))
    lines = unread_report(Responses(bare))
    assert (
        "30 of 30 replies cannot be read" in lines[0] and lines[-1] == "  read by careful, last_line: --parse careful"
    )
    assert unread_report(Responses(bare.drop(columns="n_choices"))) == []


@pytest.mark.slow
def test_rules_are_tried_with_the_choices_that_were_shown():
    for v in VARIANTS:
        lines = unread_report(make_responses([v], [Reply(v.choices[v.answer])], "first_token"))
        assert "careful" in lines[-1], (v.method, v.sources)


def test_a_rule_that_would_read_the_whole_reply_is_not_advised_where_it_was_cut():
    cut = Reply("So first we look at it: Answer: B", meta={"finish_reason": "length"})
    assert rules_that_read([(VARIANTS[0], cut)]) == []
    assert unread_report(make_responses(VARIANTS[:20], [cut] * 20))[-1] == f"  {ADVICE['cut off']}"


def test_failures_and_prompts_not_asked_are_no_unread_replies():
    assert unread_report(make_responses(VARIANTS[:4], ["B", *[Reply(error="500")] * 3])) == []
    lines = unread_report(make_responses(VARIANTS[:2], ["B", Reply("", meta={"finish_reason": "content_filter"})]))
    assert "1 of 2 replies" in lines[0] and "(1 refused)" in lines[0]


def test_recorded_grades_without_words(medalpaca):
    first, shown, last = unread_report(medalpaca.first_trial())
    assert first == (
        "medalpaca-7b: 3570 of 33098 replies cannot be read, and count as wrong (3570 no text); "
        "601 of 1273 questions have one"
    )
    assert shown.endswith(": (no text)") and last == f"  {ADVICE['no text']}"


# ---- trying


@pytest.mark.parametrize("family", ["cora", "mcqa_plus", "permutations", "cyclic", "order_swap"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_first_variant_of_each_question_and_every_kind_is_tried(family, n):
    variants = make_variants(QUESTIONS[:n], family=family)
    few = _few_variants(variants)
    assert len({v.key for v in few}) == len(few) and {v.method for v in few} == {v.method for v in variants}
    assert [v.key for v in few if v.index == 0 and v.method == variants[0].method] == [
        variants[[v.question_id for v in variants].index(q.id)].key for q in QUESTIONS[:n]
    ]


def test_questions_come_from_all_over_the_benchmark():
    tried = try_respondent(SimulatedRespondent(), QUESTIONS, n=3)
    assert tried.run.question_codes[1].tolist() == [QUESTIONS[i].id for i in (0, 10, 20)]
    assert len(try_respondent(SimulatedRespondent(), QUESTIONS[:2], n=9).run.question_codes[1]) == 2


def test_what_was_sent_what_came_back_and_what_was_read():
    tried = try_respondent(Says(lambda i: "Hm." if i == 3 else SENTENCE), QUESTIONS, n=1)
    text = str(tried)
    assert text.startswith("says: sent for the first of 8 prompts\n\n    | {") and "8 replies: " in text
    assert "UNREAD  math-0-1" in text and "    | Hm.\n" in text and ", read as B\n    | The correct" in text
    assert "1 of 8 replies cannot be read" in text and "&quot;" in tried._repr_html_()


def test_what_a_server_says_reaches_neither_terminal_nor_page():
    who = Says("\x1b]0;x\x07<script>alert(1)</script>\x9b31m B\u202e")
    who.name = "\x1b[2J<b>"
    tried = try_respondent(who, QUESTIONS, n=1)
    assert all(c == "\n" or c.isprintable() for c in str(tried)) and "<script>" not in tried._repr_html_()


def test_a_server_that_is_not_there_is_said_soon(monkeypatch):
    monkeypatch.setattr(chat, "time", clock := Clock())
    monkeypatch.setattr(chat, "asyncio", clock)
    who = ChatRespondent("m", "http://127.0.0.1:9/v1")
    with pytest.raises(CoraError, match="^m at http://127.0.0.1:9/v1: connection failed"):
        try_respondent(who, QUESTIONS)
    assert 0 < sum(clock.pauses) < 10 and who.retries == 6


@pytest.mark.parametrize("answer", [Answer(401, refusal("Incorrect API key")), Answer(404, refusal("no model 'm'"))])
def test_a_server_that_refuses_everything(answer):
    with FaultyServer(lambda asked: answer) as server:
        with pytest.raises(CoraError, match="401 Incorrect API key|404 no model 'm'"):
            try_respondent(ChatRespondent("m", server.url), QUESTIONS)
    assert len(server.asked) <= 20


def test_one_refused_prompt_does_not_end_a_try():
    with FaultyServer([Answer(body=completion(None, finish_reason="content_filter"))]) as server:
        tried = try_respondent(ChatRespondent("m", server.url), QUESTIONS)
    assert str(tried).count("REFUSED") == 1 and len(server.asked) <= len(tried.run)


def test_wrong_arguments():
    for wrong, why in (({"n": 0}, "n must be"), ({"family": "x"}, "family must be"), ({"asking": "bare"}, "an Asking")):
        with pytest.raises(CoraError, match=why):
            try_respondent(Says("B"), QUESTIONS, **wrong)
    with pytest.raises(CoraError, match="no questions"):
        try_respondent(Says("B"), [])


# ---- at a gate


def test_a_gate_says_how_many_are_unread_and_what_the_score_could_be():
    run, _ = quietly(lambda i: REFUSAL if i % 40 == 3 else "ABCD"[VARIANTS[i].answer], 200)
    (line,) = gate_lines(gate(run, at_least={"CoRA": 0.1}))
    assert "5 of 200 unread" in line and "1.000" in line
    (line,) = gate_lines(gate(make_responses(VARIANTS, ["B"] * len(VARIANTS)), at_least={"MCQA": 0.1}))
    assert "unread" not in line and "at most" not in line
