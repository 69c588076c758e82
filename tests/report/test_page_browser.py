"""The page in a real browser: it opens, sorts, filters, searches, links, exports; nothing runs, nothing is loaded."""

import csv

import pytest

from browser import LIMIT, browser_path, launched
from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import Question
from cora_nb.metrics.account import account, paper_counts
from cora_nb.metrics.scoring import score
from cora_nb.report.page import make_report
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.columns import in_state
from cora_nb.responses.responses import Responses, make_responses
from cora_nb.responses.runs import Runs
from cora_nb.results import lookup
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

BROWSER = browser_path()
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on this machine")]

NASTY = [
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    "<img src=x onerror='window.hacked = 3'>",
    "javascript:window.hacked = 4",
    "&lt;b&gt; &amp; &#x3c;",
    "line\u2028separator\u2029and \u202eright to left\u202c",
    "{{ 7 * 7 }} {% raw %} ${window.hacked = 5}",
    "]]> --> */ \\u003cscript\\u003e",
    "=cmd()|'/C calc'!A0",
    "\U0001f600 \x00 \x1b[31m",
]


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as play:
        yield launched(play)


class Opened:
    "A page in the browser, with what it said and what it asked for."

    def __init__(self, browser, path, fragment=""):
        self.said, self.asked = [], []
        self.context = browser.new_context(viewport={"width": 1200, "height": 900}, accept_downloads=True)
        self.context.set_default_timeout(LIMIT)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(f"file://{path}{fragment}")
        self.page.wait_for_selector("html[data-ready]")

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def until(self, condition):
        "Wait: the page's own policy forbids the browser's way to, which evaluates a text."
        for _ in range(LIMIT // 50):
            if condition():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"waited for {LIMIT / 1000:.0f} seconds")

    def open_all(self):
        self.page.evaluate("document.querySelectorAll('details.variant').forEach(one => { one.open = true })")
        every = "[...document.querySelectorAll('details.variant')].every(one => one.querySelector('.reply'))"
        self.until(lambda: self.page.evaluate(every))

    def listed(self):
        return self.page.locator("#list-body th").all_inner_texts()

    def close(self):
        self.context.close()
        assert self.said == []
        loaded = [url for url in self.asked if not url.startswith(("data:", "blob:"))]
        assert len(loaded) == 1 and loaded[0].startswith("file://")


@pytest.fixture
def opened(browser):
    pages = []
    yield lambda *where: pages.append(Opened(browser, *where)) or pages[-1]
    for page in pages:
        page.close()


@pytest.fixture(scope="module")
def runs():
    variants = make_variants(math_benchmark(40))
    people = (
        SimulatedRespondent(slips=0.1, position=(6, 1), name="leaning"),
        SimulatedRespondent(slips=0.3, name="fair"),
    )
    return Runs([evaluate(who, variants, progress=False) for who in people])


@pytest.fixture(scope="module")
def saved(runs, tmp_path_factory):
    return make_report(runs, pictures=False).save(tmp_path_factory.mktemp("page") / "two.html")


def test_what_is_on_the_screen_equals_the_scores(opened, saved, runs):
    at = opened(saved)
    for name, run in runs.items():
        value = lookup(score(run), "CoRA").value
        column = at.page.locator("#scores table").first.locator("thead th").all_inner_texts().index(name)
        row = at.page.locator("#scores table").first.locator("tr", has=at.page.locator("th", has_text="CoRA"))
        assert row.locator("td").nth(column - 1).inner_text().startswith(f"{value:.2f} [")
    first = paper_counts(account(runs["leaning"])).iloc[0]
    assert f"{first.hits:.0f} of {first.trials:.0f}" in at.page.locator("#list-body tr").first.inner_text()
    assert at.text("#count") == "40 questions"


def test_filters_show_what_pandas_finds(opened, saved, runs):
    at = opened(saved)
    at.page.locator("#runs input").nth(1).uncheck()
    at.page.select_option("#kind", "inconsistent")
    counts = paper_counts(account(runs["leaning"]))
    ids = counts.index[(counts["original"] == 1) & (counts["hits"] < counts["trials"])]
    assert at.text("#count") == f"{len(ids)} of 40 questions" and at.listed() == list(ids[:20])
    at.page.select_option("#kind", "all")
    at.page.select_option("#subject", "addition")
    assert at.text("#count") == "10 of 40 questions"
    at.page.select_option("#subject", "")
    assert at.page.locator("#method option").nth(3).inner_text() == "with none of the above"
    at.page.select_option("#method", "nota")
    table = runs["leaning"].table
    wrong = table[(table["method"] == "nota") & ~table["correct"]]["question_id"].nunique()
    assert at.text("#count") == f"{wrong} of 40 questions"


def test_runs_that_differ(opened, saved, runs):
    at = opened(saved)
    at.page.select_option("#kind", "differ")
    both = [run.matrix("correct") for run in runs.values()]
    assert at.text("#count").startswith(f"{int((both[0] != both[1]).any(axis=1).sum())} ")


def test_sorted_by_consistency(opened, saved, runs):
    at = opened(saved)
    at.page.select_option("#sort", "consistency")
    counts = paper_counts(account(runs["leaning"]))
    order = (counts["hits"] / counts["trials"]).sort_values(kind="stable").index
    assert at.listed() == list(order[:20])


def test_search_in_texts_and_replies(opened, saved, runs):
    at = opened(saved)
    questions = runs["fair"].questions
    words = questions["text"].iloc[7].upper()
    holding = questions["question_id"][questions["text"].str.upper().str.contains(words, regex=False)]
    at.page.fill("#search", words)
    at.until(lambda: " of " in at.text("#count"))
    assert at.listed() == list(holding)


def test_a_question_by_its_address_and_by_keys(opened, saved, runs):
    id = "math-0-12"
    at = opened(saved, f"#q={id}")
    assert at.text("#question-title") == f"Question {id}"
    question = runs["fair"].questions.set_index("question_id").loc[id]
    assert question["text"] in at.text("#question-body")
    prompt = at.page.locator("pre.prompt").first.inner_text()
    assert prompt.startswith("Answer the following multiple choice question.") and question["text"] in prompt
    at.page.locator("#question-title").press("j")
    at.until(lambda: at.text("#question-title").endswith("-13"))
    at.page.locator("#map-scroll").press("Home")
    at.page.locator("#map-scroll").press("ArrowDown")
    assert at.text("#map-said").startswith("math-0-2:")
    at.page.locator("#map-scroll").press("Enter")
    at.until(lambda: at.text("#question-title").endswith("math-0-2"))


def test_prompts_equal_those_that_were_asked(opened, saved, runs):
    from cora_nb.prompts.templates import Prompt

    at = opened(saved, "#q=math-0-3")
    at.open_all()
    titles = at.page.locator("details.variant h4").all_inner_texts()
    assert titles[:3] == ["the original", "the original, shuffled", "with none of the above (1)"]
    shown = [pre.evaluate("node => node.textContent") for pre in at.page.locator("pre.prompt").all()]
    asked = [Prompt(v).text for v in make_variants(math_benchmark(40)) if v.question_id == "math-0-3"]
    assert shown == asked


def test_export_is_the_selection(opened, saved, runs, tmp_path):
    at = opened(saved)
    at.page.locator("#runs input").nth(1).uncheck()
    at.page.select_option("#subject", "division")
    with at.page.expect_download() as waiting:
        at.page.click("#save")
    waiting.value.save_as(tmp_path / "replies.csv")
    with open(tmp_path / "replies.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    table = runs["leaning"].table
    table = table[(table["subject"] == "division").to_numpy()]
    assert [int(r["prediction"]) for r in rows] == table["prediction"].tolist()
    assert [r["method"] for r in rows] == table["method"].tolist()  # codes, as in the frames
    assert [r["outcome"] == "right" for r in rows] == table["correct"].tolist()
    assert {r["run"] for r in rows} == {"leaning"}


def nasty_run():
    "Questions, choices, subjects, replies, errors and a name that want to be code."
    questions = [
        Question(f"q{i} {text}".replace("\x00", ""), text, (text, "b" * 20, "c"), 0, text)
        for i, text in enumerate(NASTY)
    ]
    variants = make_variants(questions)
    replies = [
        Reply(NASTY[i % len(NASTY)] if i % 7 else "x" * 1_000_000, meta={"finish_reason": NASTY[i % 3]})
        if i % 5 or i == 0
        else Reply(error=NASTY[i % len(NASTY)])
        for i in range(len(variants))
    ]
    facts = {"run": {"benchmark": NASTY[0], "command": {"command": "cora_run", "respondents": [NASTY[1]]}}}
    return make_responses(variants, replies, "careful", name=NASTY[1], facts=facts)


def test_nothing_of_a_model_runs(opened, tmp_path):
    run = nasty_run()
    path = make_report(run, title=NASTY[2]).save(tmp_path / "nasty.html")
    at = opened(path)
    for i, id in enumerate(run.questions["question_id"]):
        at.page.evaluate("q => { location.hash = '#q=' + encodeURIComponent(q) }", id)
        at.until(lambda: at.page.evaluate("document.querySelector('#question-title').textContent") == f"Question {id}")
        at.open_all()
        shown = at.page.evaluate("document.querySelector('#question-body .asked').textContent")
        assert shown == run.questions["text"].iloc[i]
    assert at.page.evaluate("window.hacked") is None
    assert at.page.locator("main script, main img:not(figure img), main b").count() == 0
    assert at.page.title() == NASTY[2]


def test_outcomes_are_told_apart(opened, tmp_path):
    run = nasty_run()
    at = opened(make_report(run, pictures=False).save(tmp_path / "o.html"))
    at.page.select_option("#kind", "failed")
    failed = run.table[in_state(run.table, "failed")]["question_id"].nunique()
    assert at.text("#count").startswith(f"{failed} ")
    at.page.select_option("#kind", "unparsed")
    o = run.outcomes()
    unread = run.table[(o["unparsed"] | o["cut_off"]).to_numpy()]["question_id"].nunique()
    assert at.text("#count").startswith(f"{unread} ")


def test_a_narrow_screen_does_not_scroll_sideways(opened, saved):
    at = opened(saved)
    at.page.set_viewport_size({"width": 400, "height": 800})
    at.until(lambda: at.page.evaluate("document.documentElement.scrollWidth") <= 400)


def test_repetitions_and_recorded_texts(opened, tmp_path):
    variants = make_variants(math_benchmark(3), "cyclic")
    run = evaluate(SimulatedRespondent(slips=0.5, name="thrice"), variants, Asking(trials=3), progress=False)
    at = opened(make_report(run, pictures=False).save(tmp_path / "t.html"), "#q=math-0-1")
    assert at.page.locator("details[open] .reply").count() == 3
    assert "repetition 3" in at.text("details[open]")


def test_replies_of_which_only_the_grade_is_known_say_so(opened, runs, tmp_path):
    run = runs["fair"]
    bare = Responses(run.table.assign(reply=None), run.questions, run.facts)
    at = opened(make_report(bare, pictures=False).save(tmp_path / "bare.html"), "#q=math-0-1")
    at.open_all()
    every = at.page.locator(".reply").all_inner_texts()
    assert every and all("(the text of this reply is not in the file)" in text for text in every)
    at = opened(make_report(run, pictures=False).save(tmp_path / "whole.html"), "#q=math-0-1")
    at.open_all()
    assert not any("not in the file" in text for text in at.page.locator(".reply").all_inner_texts())
