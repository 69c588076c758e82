"""Logs of inspect tasks that are not ours, made by the real inspect: what `tests/interop/test_inspect_logs.py` reads.

By hand, in any environment that has inspect-ai (cora_nb is not needed):

    python tools/peers/record_inspect_foreign.py [FOLDER]

The questions are written by us, and the model is inspect's own mock: what it says depends on the prompt alone.
"""

import hashlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parents[2] / "tests" / "recorded" / "inspect_foreign"
QUESTIONS = [
    ("Which planet is closest to the sun?", ["Venus", "Mercury", "Earth", "Mars"], "B"),
    ("What is 7 times 8?", ["54", "56", "58"], "B"),
    ("Which metal is liquid at room temperature?", ["Iron", "Gold", "Mercury", "Zinc"], "C"),
    ("Which of these is a mammal?", ["A shark", "A whale", "A trout", "A squid"], "B"),
    ("How many sides has a hexagon?", ["Five", "Six", "Seven", "Eight"], "B"),
    ('In which language is "ja" the word for yes?', ["German", "Spanish", "Greek", "Turkish"], "A"),
]


def said(prompt: str, letters: str = "ABCD") -> str:
    "What the model says: a letter that depends on the prompt alone."
    return letters[hashlib.sha256(prompt.encode()).digest()[0] % len(letters)]


def model(reply):
    "inspect's mock of a model; `reply` takes the prompt's text."
    from inspect_ai.model import get_model

    return get_model("mockllm/model", custom_outputs=lambda input, *settings: reply(input[-1].text))


def output(text: str, stop: str = "stop", logprobs=None):
    "What the model says, with the tokens it took: without them the mock counts, and downloads a tokenizer for it."
    from inspect_ai.model import ModelOutput, ModelUsage

    found = ModelOutput.from_content("mockllm/model", text, stop_reason=stop)
    n = len(text.split())
    found.usage = ModelUsage(input_tokens=60, output_tokens=n, total_tokens=60 + n)
    found.choices[0].logprobs = logprobs
    return found


def plain(prompt: str):
    return output(f"ANSWER: {said(prompt)}")


def both(prompt: str):
    return output("ANSWER: A, B")


def thinking(prompt: str):
    return output(f"Is it A? No.\n\nANSWER: {said(prompt)}")


def motley(prompt: str):
    "Every kind of reply: a letter, a letter behind words, no letter, nothing, cut off, with log-probabilities."
    from inspect_ai.model import Logprob, Logprobs, TopLogprob

    if "planet" in prompt:
        return output("Mercury has the smallest orbit.\n\nANSWER: B")
    if "7 times 8" in prompt:
        return output("I would rather not say.")
    if "metal" in prompt:
        return output("")
    if "mammal" in prompt:
        return output("Sharks are fish, whales breathe air, so the answer must", "max_tokens")
    if "hexagon" in prompt:
        top = [TopLogprob(token="B", logprob=-0.22), TopLogprob(token="A", logprob=-1.61)]
        return output("B", logprobs=Logprobs(content=[Logprob(token="B", logprob=-0.22, top_logprobs=top)]))
    return output("ANSWER: D")


def questions(n: int = len(QUESTIONS), reverse: bool = False, target=None):
    from inspect_ai.dataset import MemoryDataset, Sample

    samples = [
        Sample(id=f"q{i}", input=text, choices=choices, target=target or right, metadata={"subject": "general"})
        for i, (text, choices, right) in enumerate(QUESTIONS[:n], 1)
    ]
    return MemoryDataset(samples[::-1] if reverse else samples, name="general_knowledge")


def tasks():
    "Name of each log -> (task, model, options of `eval`)."
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import answer, choice, includes
    from inspect_ai.solver import generate, multiple_choice, solver

    @solver
    def broken():
        async def solve(state, generate):
            if state.sample_id == "q2":
                raise RuntimeError("the tool that\nthis task needs is not there")
            return state

        return solve

    def quiz(name, solvers=None, scorers=None, data=None, **more):
        return Task(
            dataset=data or questions(),
            solver=solvers or multiple_choice(),
            scorer=scorers or choice(),
            name=name,
            **more,
        )

    shuffled = questions(3)
    shuffled.shuffle_choices(seed=3)
    free = MemoryDataset([Sample(input="What is the capital of France?", target="Paris")], name="capitals")
    numbers = MemoryDataset([Sample(input=q, choices=c, target=t) for q, c, t in QUESTIONS[:3]], name="numbered")
    messy = {"fail_on_error": False}
    return {
        "quiz": (quiz("quiz"), motley, {}),
        "quiz_json": (quiz("quiz", data=questions(2)), motley, {"log_format": "json"}),
        "shuffled": (quiz("shuffled", multiple_choice(shuffle=Random(7))), plain, {"epochs": 2}),
        "shuffled_data": (quiz("shuffled_data", data=shuffled), plain, {}),
        "epochs": (quiz("epochs", data=numbers), plain, {"epochs": 2}),
        "two_scorers": (quiz("two_scorers", scorers=[choice(), answer("letter")]), motley, {}),
        "cot": (quiz("cot", multiple_choice(cot=True), data=questions(3)), thinking, {}),
        "several": (quiz("several", multiple_choice(multiple_correct=True), data=questions(2)), both, {}),
        "several_right": (
            quiz("several_right", multiple_choice(multiple_correct=True), data=questions(2, target=["A", "B"])),
            plain,
            {},
        ),
        "errors": (quiz("errors", [broken(), multiple_choice()], data=questions(4)), plain, messy),
        "failed": (quiz("failed", [broken(), multiple_choice()], data=questions(4)), plain, {"max_samples": 1}),
        "limited": (quiz("limited", message_limit=1), plain, {"limit": 2}),
        "unscored": (quiz("unscored", data=questions(2)), plain, {"score": False}),
        "free_text": (Task(dataset=free, solver=generate(), scorer=includes(), name="free_text"), plain, {}),
    }


def record(folder: Path) -> None:
    "Run every task, and keep its log under the task's name."
    from inspect_ai import eval

    for name, (task, reply, options) in tasks().items():
        with tempfile.TemporaryDirectory() as logs:
            options = {"log_dir": logs, "display": "none", **options}
            (log,) = eval(task, model=model(reply), **options)
            kind = "json" if options.get("log_format") == "json" else "eval"
            (written,) = Path(logs).glob(f"*.{kind}")
            shutil.copy(written, folder / f"{name}.{kind}")
            print(f"{name}.{kind}: {log.status}, {written.stat().st_size} bytes")


def run_slowly(logs: str) -> None:
    "A task that is interrupted: the third reply never comes."
    from inspect_ai import Task, eval
    from inspect_ai.scorer import choice
    from inspect_ai.solver import multiple_choice, solver

    @solver
    def wait():
        async def solve(state, generate):
            import anyio

            if state.sample_id == "q3":
                await anyio.sleep(60)
            return state

        return solve

    task = Task(dataset=questions(), solver=[wait(), multiple_choice()], scorer=choice(), name="cancelled")
    eval(task, model=model(plain), log_dir=logs, display="plain", max_samples=1)


def record_cancelled(folder: Path) -> None:
    "Start a run, press Ctrl-C in its third sample, and keep the log."
    with tempfile.TemporaryDirectory() as logs:
        process = subprocess.Popen([sys.executable, __file__, "--slowly", logs], stdout=subprocess.DEVNULL)
        time.sleep(15)
        process.send_signal(signal.SIGINT)
        process.wait(60)
        (written,) = Path(logs).glob("*.eval")
        shutil.copy(written, folder / "cancelled.eval")
        print(f"cancelled.eval: {written.stat().st_size} bytes")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--slowly"]:
        run_slowly(sys.argv[2])
    else:
        target = Path(sys.argv[1]) if sys.argv[1:] else HERE
        target.mkdir(parents=True, exist_ok=True)
        record(target)
        record_cancelled(target)
