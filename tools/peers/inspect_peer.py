"""The real `inspect eval cora_nb/cora` beside our own chat respondent, on one server: replies, predictions, scores.

By hand: `python tools/peers/inspect_peer.py --inspect ENV/bin/inspect` with `--math 100`, `--medqa 30`, `--shots 5`,
`--record` or `--without OTHER/bin/inspect`. ENV is an environment with this package and inspect (`pip install
inspect-ai CHECKOUT`). `--medqa` needs the folder of real benchmarks (CORA_SHARED), and says so. `--record` writes the
small logs in `recorded/inspect_ours`, which the tests read. `--without` measures how long inspect takes to start.

The server knows the replies of the organism `skewed` to all prompts, and nothing else: a request that differs in one
character, in its temperature or in its room is answered with an error, and the evaluation fails. In the style of
inspect the replies are those to our prompts, put as inspect wants them, every seventh one otherwise.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from faulty_server import Answer, FaultyServer, completion, refusal  # noqa: E402

from cora_nb.core import data_path  # noqa: E402
from cora_nb.interop.inspect_logs import import_inspect  # noqa: E402
from cora_nb.interop.inspect_tasks import _SHOWN_SCORES, _SHOWN_SPREADS  # noqa: E402
from cora_nb.interop.inspect_tasks import prepare_task  # noqa: E402
from cora_nb.metrics.circular import position_spread  # noqa: E402
from cora_nb.metrics.scoring import score  # noqa: E402
from cora_nb.respondents.causal import CausalRespondent  # noqa: E402
from cora_nb.respondents.chat import ChatRespondent  # noqa: E402
from cora_nb.respondents.protocol import ask  # noqa: E402
from cora_nb.responses.responses import Responses  # noqa: E402
from cora_nb.runs.evaluate import PreparedRun  # noqa: E402
from cora_nb.runs.evaluate import Running

RECORDED = Path(__file__).resolve().parents[2] / "tests" / "recorded" / "inspect_ours"
MODEL = "skewed"
KEY = ["question_id", "method", "index", "trial"]


def request_key(body: dict) -> str:
    "All that decides a reply, as one text."
    return json.dumps([body["messages"], body["max_tokens"], body["temperature"]])


def known_replies(run: PreparedRun, asked: dict) -> dict[str, str]:
    "What the server says to each request that our chat respondent would send."
    chat, words = ChatRespondent(MODEL, base_url="http://127.0.0.1:9/v1"), run.prompts
    if asked["style"] == "inspect":  # the organism was trained on our prompts
        words = prepare_task(**asked | {"style": "cora"}).prompts
    replies, found = ask(CausalRespondent(data_path("models", MODEL), device="cpu"), words), {}
    for number, (prompt, reply) in enumerate(zip(run.prompts, replies)):
        said = reply.text
        if asked["style"] == "inspect":
            said = f"The correct option is {said.strip()[:1]}." if number % 7 == 6 else f"ANSWER: {said.strip()[:1]}"
        found[request_key(chat.body(prompt) | {"max_tokens": chat.room(prompt)})] = said
    return found


class Server(FaultyServer):
    "Answers what it knows."

    def __init__(self, replies: dict[str, str]):
        super().__init__(self.reply)
        self.replies = replies

    def reply(self, asked) -> Answer:
        said = self.replies.get(request_key(asked.body))
        return Answer(400, refusal("this prompt is unknown")) if said is None else Answer(body=completion(said))


def inspect_eval(inspect: str, url: str, folder: Path, asked: dict, *more: str) -> tuple[Path, str, float]:
    "The log of an evaluation by inspect, what was printed, and the seconds it took."
    options = [f"-T{name}={value}" for name, value in asked.items()]
    command = [inspect, "eval", "cora_nb/cora", *options, "--model", f"openai-api/local/{MODEL}", *more]
    known = {"LOCAL_BASE_URL": url, "LOCAL_API_KEY": "none", "COLUMNS": "100", "INSPECT_LOG_LEVEL": "warning"}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | known  # what is installed, not this
    start = time.monotonic()
    done = subprocess.run(
        [*command, "--display", "plain", "--log-dir", str(folder)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    (log,) = [file for file in folder.iterdir() if file.suffix in (".eval", ".json")]
    return log, done.stdout, time.monotonic() - start


def sample_rows(log: Path) -> list[dict]:
    "What a log says of each sample, sorted by what was asked."
    from inspect_ai.log import read_eval_log

    rows = []
    for s in read_eval_log(str(log)).samples:
        said = {"reply": s.output.completion, "prediction": s.scores["cora"].metadata["prediction"]}
        right = {"correct": s.scores["cora"].value == "C"}
        by_inspect = {"by inspect": s.scores["choice"].answer} if "choice" in s.scores else {}
        place = {k: s.metadata[k] for k in ("question_id", "method", "index")} | {"trial": s.epoch - 1}
        assert (
            s.id == f"{s.metadata['question_id']}/{s.metadata['family']}/{s.metadata['method']}/{s.metadata['index']}"
        )
        rows.append(place | said | right | by_inspect)
    return sorted(rows, key=lambda row: [row[k] for k in KEY])


def table_values(log: Path) -> dict[str, float]:
    "What the table of inspect shows under `cora`."
    from inspect_ai.log import read_eval_log

    (ours,) = [s for s in read_eval_log(str(log), header_only=True).results.scores if s.name == "cora"]
    return {name: m.value for name, m in ours.metrics.items()}


def own_values(run: Responses) -> dict[str, float]:
    "The same from our own run."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = score(run).set_index("score")["value"]
        spread = position_spread(run, threshold=None).set_index("score")["value"]
    return {name: float(found[name]) for name in _SHOWN_SCORES} | {name: float(spread[name]) for name in _SHOWN_SPREADS}


def compare(inspect: str, asked: dict, epochs: int = 1) -> None:
    "One line: what was asked, how many rows agree, how long both took, and the scores."
    run = prepare_task(**asked)
    replies = known_replies(run, asked)
    with Server(replies) as server, tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        ours = run.ask(ChatRespondent(MODEL, base_url=server.url), Running(progress=False, strict=None))
        took = time.monotonic() - start
        log, _, theirs_took = inspect_eval(inspect, server.url, Path(folder), asked, "--epochs", str(epochs))
        theirs, shown = sample_rows(log), table_values(log)
        imported = compare_import(log, ours, epochs)
    own = ours.table.sort_values(KEY[:3], kind="stable").to_dict("records")
    own = [row | {"trial": trial} for row in own for trial in range(epochs)]
    agree = {what: sum(a[what] == b[what] for a, b in zip(own, theirs)) for what in (*KEY, "reply", "prediction")}
    same = {name: abs(value - shown[name]) <= 1e-12 for name, value in own_values(ours).items()}
    where = ", ".join(f"{name} {value}" for name, value in asked.items() if name != "path") + f", epochs {epochs}"
    print(f"{where}: {len(theirs)} rows, equal: {agree}")
    print(f"  scores equal: {same}\n  inspect {shown}")
    print(f"  {imported}")
    if asked["style"] == "inspect":
        read = sum(bool(row["by inspect"]) for row in theirs)
        print(
            f"  inspect's own choice() found a letter in {read} replies, we in {sum(r['prediction'] >= 0 for r in own)}"
        )
    print(f"  inspect took {theirs_took:.1f} s with its start, our respondent {took:.1f} s")
    assert len(own) == len(theirs) and set(agree.values()) == {len(theirs)} and all(same.values())


def compare_import(log: Path, ours: Responses, epochs: int) -> str:
    "What `import_inspect` makes of the log, beside our own run: columns that differ, and notes."
    imported, own = import_inspect(log), ours.table.drop(columns=["respondent", "trial"])
    assert imported.trials == tuple(range(epochs)), imported.trials
    differ = set()
    for trial in imported.trials:
        theirs = imported.trial(trial).table.drop(columns=["respondent", "trial"]).set_index(KEY[:3])
        theirs = theirs.loc[list(own[KEY[:3]].itertuples(index=False, name=None))].reset_index()[list(own)]
        differ |= {name for name in own if not theirs[name].equals(own[name])}
    told = "; ".join(imported.facts.imported["notes"])
    return f"import_inspect: {len(imported)} rows, columns that differ: {sorted(differ) or 'none'}; notes: {told}"


def record(inspect: str) -> None:
    "The logs that the tests read: 3 questions in both styles, with 1 and 2 epochs, as .eval and as .json."
    RECORDED.mkdir(parents=True, exist_ok=True)
    for style, family, epochs, suffix in LOGS:  # a sample takes 3 KB as .eval and 17 KB as .json
        asked = {"limit": 3, "style": style, "family": family}
        with Server(known_replies(prepare_task(**asked), asked)) as server, tempfile.TemporaryDirectory() as folder:
            more = ("--epochs", str(epochs), "--log-format", suffix)
            log, said, _ = inspect_eval(inspect, server.url, Path(folder), asked, *more)
            target = RECORDED / f"{style}_style_{family}_{epochs}_epochs.{suffix}".replace("1_epochs", "1_epoch")
            target.write_bytes(log.read_bytes())
            print(said, f"{target.name}: {target.stat().st_size:,} bytes")


LOGS = (
    ("cora", "cora", 1, "eval"),
    ("cora", "order_swap", 2, "eval"),
    ("cora", "order_swap", 1, "json"),
    ("inspect", "cyclic", 1, "eval"),
    ("inspect", "order_swap", 2, "eval"),
)


PLAIN = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match

@task
def plain():
    return Task(dataset=[Sample(input="Say B.", target="B")], scorer=match())
"""
ENTRY_POINTS = "import inspect_ai; from inspect_ai._util.entrypoints import ensure_entry_points as load; load()"


def startup(inspect: str, without: str, times: int = 5) -> None:
    "How long inspect takes to start, with this package installed and without: medians, in seconds."
    ways = {
        "inspect list tasks": lambda env: [str(env / "inspect"), "list", "tasks"],
        "import, all entry points": lambda env: [str(env / "python"), "-c", ENTRY_POINTS],
        "inspect eval plain.py, to the first call": lambda env: [str(env / "inspect"), "eval", "plain.py"],
        "inspect eval cora_nb/cora, to the first call": lambda env: [str(env / "inspect"), "eval", "cora_nb/cora"],
    }
    places = {"without": Path(without).parent, "with": Path(inspect).parent}
    print(f"median of {times} (lowest): seconds, and seconds of the processor for the whole command")
    for name, command in ways.items():
        there = {where: env for where, env in places.items() if where == "with" or "cora_nb" not in name}
        taken = {where: [] for where in there}
        for _ in range(times):  # in turn: a busy moment meets both
            for where, env in there.items():
                taken[where].append(_time_start(command(env)))
        for where, found in taken.items():
            wall, cpu = ([x[i] for x in found] for i in (0, 1))
            words = f"{median(wall):5.2f} ({min(wall):.2f})   {median(cpu):5.2f} ({min(cpu):.2f})"
            print(f"{name:46} {where:8} {words}", flush=True)


def _time_start(command: list[str]) -> tuple[float, float]:
    "Seconds to the first request, or to the end where there is none; seconds of the processor to the end."
    first = []

    def reply(asked) -> Answer:
        first.append(time.monotonic())
        return Answer(body=completion("B"))

    with FaultyServer(reply) as server, tempfile.TemporaryDirectory() as folder:
        Path(folder, "plain.py").write_text(PLAIN)
        known = {"LOCAL_BASE_URL": server.url, "LOCAL_API_KEY": "none"}
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | known
        if "eval" in command:
            more = ["--display", "none", "--model", f"openai-api/local/{MODEL}"]
            command = [*command, *more, *(["-Tlimit=1", "-Tfamily=cyclic"] if "cora_nb/cora" in command else [])]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True, timeout=300)
        end, after = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (first[0] if first else end) - start, cpu


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inspect", required=True, help="the command of an environment with this package")
    parser.add_argument("--math", type=int, default=0, help="so many questions of the bundled benchmark")
    parser.add_argument("--medqa", type=int, default=0, help="so many questions of MedQA")
    parser.add_argument("--shots", type=int, default=0, help="so many solved questions above each, in our style alone")
    parser.add_argument("--record", action="store_true", help="write the logs that the tests read")
    parser.add_argument("--without", help="the command of an environment without it: measures how long inspect starts")
    given = parser.parse_args(arguments)
    if given.without:
        startup(given.inspect, given.without)
    if given.record:
        record(given.inspect)
    hub = Path(os.environ.get("CORA_SHARED", ROOT.parent / "shared")) / "data" / "hub"
    if given.medqa and not hub.is_dir():
        parser.error(f"MedQA was not found under {hub}; set CORA_SHARED")
    for name, limit, where in (("math", given.math, {}), ("medqa", given.medqa, {"path": str(hub)})):
        more = where | ({"shots": given.shots} if given.shots else {})
        ways = (("cora", 1),) if given.shots else (("cora", 1), ("inspect", 1), ("cora", 2))
        for style, epochs in ways if limit else ():
            compare(given.inspect, {"benchmark": name, "limit": limit, "style": style, **more}, epochs)


if __name__ == "__main__":
    main()
