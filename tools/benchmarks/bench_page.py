"""The page of a run: size of the file, time to make it, time until it can be used in headless Chromium, its memory.

    python tools/benchmarks/bench_page.py

Asked of 33,098 replies: under 1.5 MB and 2 s. The recorded replies need `../shared/data` or a network; the other runs
are made on the spot. Without Chromium and playwright the browser's columns are left out. About three minutes.
"""

import sys
import tempfile
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "scripts")]

import numpy as np
from browser import browser_path
from measure import measure, report

from cora_nb.benchmarks.load import load_benchmark
from cora_nb.core import CoraError, Question
from cora_nb.interop.cat import import_cat
from cora_nb.papers.published import recorded_file
from cora_nb.report.page import make_report
from cora_nb.respondents.protocol import Reply
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.responses.responses import make_responses
from cora_nb.responses.runs import Runs
from cora_nb.runs.evaluate import evaluate
from cora_nb.variants.families import make_variants

WORDS = (
    "which of these results would the theory of fair shares predict for people who know nothing of each other".split()
)


def questions(n: int, choices: int) -> list[Question]:
    "Questions as long as those of MedQA and MMLU, out of a few words, none like another."
    rng = np.random.default_rng(0)
    text = lambda k: " ".join(rng.choice(WORDS, k))
    return [
        Question(
            f"q{i}", f"{text(25)} ({i})?", tuple(f"{text(5)} {c}" for c in range(choices)), i % choices, f"s{i % 57}"
        )
        for i in range(n)
    ]


def troubled(n: int):
    "A run with long replies, failures, and replies that cannot be read."
    variants = make_variants(questions(n, 4))
    rng = np.random.default_rng(1)
    kinds = rng.choice(3, len(variants), p=[0.9, 0.08, 0.02])
    said = lambda i: f"The answer is {'ABCD'[i % 2]}. " + " ".join(rng.choice(WORDS, 60))
    replies = [
        [Reply(said(i)), Reply("I cannot say."), Reply(error="the server is gone")][k] for i, k in enumerate(kinds)
    ]
    return make_responses(variants, replies, "careful", name="troubled")


def cases():
    math = make_variants(load_benchmark("math"))
    people = [("steady", 0.05, None), ("leaning", 0.1, (6, 1)), ("weak", 0.5, None)]
    ask = lambda variants, k: Runs([
        evaluate(SimulatedRespondent(name=n, slips=s, **({"position": p} if p else {})), variants, progress=False)
        for n, s, p in people[:k]
    ])  # fmt: skip
    yield "two respondents, 300 questions", ask(math, 2)
    try:
        yield "medalpaca, recorded", Runs([import_cat(recorded_file("cat/medqa/medalpaca-7b")).first_trial()])
    except CoraError as e:
        print(f"medalpaca, recorded: not measured ({e})")
    yield "three respondents, MedQA's size", ask(make_variants(questions(1273, 5)), 3)
    yield "failures, unparsed, long replies", Runs([troubled(300)])
    yield "one respondent, MMLU's size", ask(make_variants(questions(14_042, 4)), 1)


def in_browser(path: Path) -> dict[str, float]:
    "Seconds until the map is there, memory of the page's script, and seconds of a search and of scrolling to the end."
    browser = browser_path()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        browser = None
    if browser is None:
        return {}
    with sync_playwright() as play:
        page = play.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        start = time.perf_counter()
        page.goto(f"file://{path}")
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        ready = time.perf_counter() - start
        probe = page.context.new_cdp_session(page)
        memory = probe.send("Runtime.getHeapUsage")["usedSize"] / 1e6
        once = "(act) => { const start = performance.now(); act(); return (performance.now() - start) / 1000; }"
        searched = page.evaluate(f"({once})(() => {{ document.getElementById('search').value = 'people'; pick(); }})")
        scrolled = page.evaluate(
            f"({once})(() => {{ const box = $('map-scroll'); box.scrollTop = box.scrollHeight; draw(); }})"
        )
    return {"s_until_usable": ready, "MB_in_the_browser": memory, "s_of_a_search": searched, "s_to_draw": scrolled}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for name, runs in cases():
            seconds, memory, page = measure(lambda: make_report(runs), repeat=2)
            bare, _, _ = measure(lambda: make_report(runs, pictures=False), repeat=2)
            path = page.save(Path(folder) / "page.html")
            size = path.stat().st_size / 1e6
            told = {
                "replies": sum(map(len, runs.values())),
                "MB": size,
                "s_to_make": seconds,
                "s_without_pictures": bare,
            }
            report(name, **told, MB_of_memory=memory, **in_browser(path))
