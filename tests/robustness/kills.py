"""SIGKILL to real `cora_run` processes at different moments: nothing lost, nothing asked twice, the same end.

Each case: a server that counts, a run that is killed, then the same command again. Good is: the second run ends with
the responses of a run that nobody disturbed, every reply that was stored before is still there and not asked again,
and no prompt was asked more often than once in all, but for those under way when the process died.
"""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from faulty_server import Answer, FaultyServer, completion
from helpers import WITH_TORCH, command, stored_replies
from robustness.cases import Case

from cora_nb.responses.files import read_responses

AT_ONCE = 4


def says(asked) -> Answer:
    "The same answer to the same prompt, after a moment."
    return Answer(body=completion("ABCD"[sum(asked.prompt.encode()) % 4]), wait=0.004)


@dataclass
class Desk:
    "A folder, a server, and commands that ask it."

    folder: Path
    server: FaultyServer
    names: tuple[str, ...] = ("m",)
    store: Path = field(init=False)

    def __post_init__(self):
        self.store = self.folder / "r.sqlite"

    def start(self, out: str = "responses", *more: str) -> subprocess.Popen:
        who = [f"chat:{n},base_url={self.server.url},concurrency={AT_ONCE},max_tokens=1" for n in self.names]
        words = command("cora_run", *who, "--limit", "6", "--store", self.store, "--out", out, *more)
        env = {**os.environ, "OPENAI_API_KEY": "none", "XDG_CACHE_HOME": str(self.folder)}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        return subprocess.Popen(words, cwd=self.folder, env=env, start_new_session=True, **quiet)

    def stored(self) -> int:
        return stored_replies(self.store)


def kill(process: subprocess.Popen) -> None:
    "SIGKILL, to its children too."
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()


def until(true: Callable[[], bool], process: subprocess.Popen, seconds: float = WITH_TORCH) -> None:
    "Wait for something, or for the end of the process."
    end = time.monotonic() + seconds
    while not true() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.0005)


def at_reply(n: int, pause: float = 0.0) -> Callable[[Desk], None]:
    def disturb(desk):
        process = desk.start()
        until(lambda: desk.stored() >= n, process)
        time.sleep(pause)
        kill(process)

    return disturb


def at_time(seconds: float) -> Callable[[Desk], None]:
    def disturb(desk):
        process = desk.start()
        time.sleep(seconds)
        kill(process)

    return disturb


def at_request(n: int) -> Callable[[Desk], None]:
    def disturb(desk):
        process = desk.start()
        until(lambda: len(desk.server.asked) >= n, process)
        kill(process)

    return disturb


def at_file(pattern: str) -> Callable[[Desk], None]:
    "When a file of the results appears."

    def disturb(desk):
        process = desk.start()
        until(lambda: any(desk.folder.glob(pattern)), process)
        kill(process)

    return disturb


def again_and_again(desk: Desk) -> None:
    rng = random.Random(0)
    for n in range(6):
        process = desk.start()
        before = desk.stored()
        until(lambda: desk.stored() >= before + 5, process)
        time.sleep(rng.uniform(0, 0.01))
        kill(process)


def both(desk: Desk) -> None:
    one, two = desk.start("one"), desk.start("two")
    until(lambda: desk.stored() >= 40, one)
    kill(one)
    kill(two)


def one_of_two(desk: Desk) -> None:
    one, two = desk.start("one"), desk.start("two")
    until(lambda: desk.stored() >= 40, one)
    kill(one)
    code = two.wait(WITH_TORCH)
    assert code == 0, two.stderr.read()
    two.stderr.close()


def stopping_early(desk: Desk) -> None:
    process = desk.start("stopped", "--stop", "cora")
    until(lambda: desk.stored() >= 12, process)
    kill(process)


def between(desk: Desk) -> None:
    "When the first respondent's run is on disk, and the second has begun."
    process = desk.start()
    until(lambda: (desk.folder / "responses/math/m/facts.json").exists(), process)
    kill(process)


def in_the_second(desk: Desk) -> None:
    process = desk.start()
    until(lambda: any(a.body["model"] == "n" for a in desk.server.asked[-5:]), process)
    time.sleep(0.05)
    kill(process)


def finished(desk: Desk) -> None:
    "A run over the results of one that was finished, killed while it starts."
    assert desk.start().wait(WITH_TORCH) == 0
    process = desk.start()
    time.sleep(1.0)
    kill(process)


MOMENTS: dict[str, tuple] = {
    "0.3 s after the start": (at_time(0.3),),
    "1 s after the start": (at_time(1.0),),
    "at the first request": (at_request(1),),
    "at the fourth request": (at_request(4),),
    "at request 30": (at_request(30),),
    "at request 99": (at_request(99),),
    "at the first reply": (at_reply(1),),
    **{f"at reply {n}": (at_reply(n, 0.001 * (n % 5)),) for n in (2, 5, 10, 20, 33, 47, 60, 75, 90, 99, 105)},
    "while the run's folder is written": (at_file("responses/math/.cora_nb_*"),),
    "while its first file is written": (at_file("responses/math/.cora_nb_*/run/*.parquet"),),
    "when its folder is there": (at_file("responses/math/m"),),
    "six times in a row": (again_and_again,),
    "two runs with one store, both": (both,),
    "two runs with one store, one of them": (one_of_two,),
    "while stopping early": (stopping_early,),
    "after the first of two respondents": (between, ("m", "n")),
    "in the second of two respondents": (in_the_second, ("m", "n")),
    "a run that was finished already": (finished,),
}


def killed(disturb: Callable[[Desk], None], names: tuple[str, ...] = ("m",)) -> Callable[[Path], object]:
    def read(folder):
        with FaultyServer(says) as server:
            desk = Desk(folder, server, names)
            disturb(desk)
            server.wait_until_left()  # else what the dead have sent would count as asked afterwards
            kept, before = desk.stored(), len(server.asked)
            most = max(Counter((a.body["model"], a.prompt) for a in server.asked).values(), default=0)
            last = desk.start()
            code = last.wait(WITH_TORCH)
            said = last.stderr.read().decode()
            last.stderr.close()
            assert code == 0 and "Traceback" not in said, said[-500:]
            asked = Counter((a.body["model"], a.prompt) for a in server.asked)
            twice = sum(n - 1 for n in asked.values())
            different, again = len(asked), len(server.asked) - before
            assert desk.stored() == different == kept + again, (desk.stored(), different, kept, again)
            (whole := folder / "whole").mkdir()
            undisturbed = Desk(whole, server, names)
            assert undisturbed.start().wait(WITH_TORCH) == 0
            for name in names:
                runs = [read_responses(where / "responses" / "math" / name) for where in (folder, whole)]
                assert runs[0].table.equals(runs[1].table), "another result"
            left = [p.name for p in folder.rglob(".cora_nb_*")]
            return kept, again, twice, most, different, left

    return read


def as_it_was(found: tuple, kills: int, at_once: int) -> str:
    """What a killed run came to, in words; empty where too much was asked twice.

    Each process that was killed may have had `AT_ONCE` prompts under way, which are asked again. Nobody claims a
    prompt, and a run looks into a store only now and then: of so many that ran at once, each may ask a prompt once, and
    none twice.
    """
    kept, again, twice, most, different, left = found
    too_often = twice > (at_once - 1) * different + kills * AT_ONCE or (at_once > 1 and most > at_once)
    words = f"{kept} kept, {again} asked afterwards, {twice} of them a second time; the same end"
    return "" if too_often else words + f"; left behind: {', '.join(left)}" * bool(left)


def kill_cases() -> Iterator[Case]:
    for name, (disturb, *names) in MOMENTS.items():
        kills = {again_and_again: 6, both: 2}.get(disturb, 1)
        at_once = 2 if disturb in (both, one_of_two) else 1

        def accept(found, kills=kills, at_once=at_once):
            return as_it_was(found, kills, at_once)

        yield Case("kill", name, killed(disturb, *names), (), accept)


def cases() -> list[Case]:
    return list(kill_cases())
