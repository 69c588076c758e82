"""Reading replies: microseconds of the default rule for a letter, a reply, and the slowest of long ones, as ratios."""

import json
import time

from cora_nb.core import data_path
from cora_nb.prompts.letters import first_token
from cora_nb.prompts.reading import careful
from measure import measure, report

ROWS = [json.loads(line) for line in data_path("replies", "sentences.jsonl").read_text(encoding="utf-8").splitlines()]
ORDINARY = [(row["reply"], tuple(row["choices"])) for row in ROWS]
LETTERS = [("ABCD"[i % 4], ORDINARY[i][1]) for i in range(len(ORDINARY))]
PIECES = [
    "The answer is A. ",
    "A, B, ",
    "not A but ",
    "\n",
    "\n A.",
    "\u0301\u0316",
    "答案是",
    "I think ",
    "<answer>",
    '{"a',
]
LONG = [(piece * (100_000 // len(piece)), ORDINARY[0][1]) for piece in PIECES]


def seconds_of(rule, replies):
    "Seconds for a reply."
    (seconds, *_) = measure(lambda: [rule(*row) for row in replies])
    return seconds / len(replies)


def slowest(replies):
    "Seconds of the slowest reply."
    taken = []
    for row in replies:
        began = time.perf_counter()
        careful(*row)
        taken.append(time.perf_counter() - began)
    return max(taken)


if __name__ == "__main__":
    paper, letter, reply = (
        seconds_of(first_token, ORDINARY),
        seconds_of(careful, LETTERS),
        seconds_of(careful, ORDINARY),
    )
    report("a letter", microseconds=letter * 1e6, ratio_to_first_token=letter / paper)
    report("a reply in words", microseconds=reply * 1e6, ratio_to_first_token=reply / paper)
    report("slowest of 100,000 characters", seconds=slowest(LONG), ratio_to_a_reply=slowest(LONG) / reply)
