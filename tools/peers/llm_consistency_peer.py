"""The package llm-consistency (PyPI, 1.1.0) beside ours, on the same replies. By hand, with an environment of its own:

    python -m venv /tmp/cat && /tmp/cat/bin/pip install llm-consistency==1.1.0
    python tools/peers/llm_consistency_peer.py /tmp/cat/bin/python [--record] [--out data/measured/llm_consistency.csv]

It compares MCA, the CAR curve, CORE, AGA, agreement, intervals and McNemar's test on the recorded replies of
medalpaca-7b to MedQA (33,098 rows) and on replies to the bundled benchmark; the same replies as both packages read
them; and a run of the package itself, whose replies are kept as a plain table. `--record` writes that run's files, of a
few questions, to tests/recorded/llm_consistency, where the tests read them. `--out` stores the numbers that the
study shows.
"""

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

RECORDED = Path(__file__).resolve().parents[2] / "tests" / "recorded" / "llm_consistency"
LEVELS = [k / 10 for k in range(11)]
GATES = (0.5, 0.8, 1.0)


# what runs in the other environment: it knows nothing of cora_nb


def inside_metrics(told: dict) -> dict:
    "Their numbers on the answers of some respondents: name -> question -> [(what was picked, whether right)]."
    from llm_consistency import metrics as m

    found, results = {}, {}
    for name, questions in told["answers"].items():
        r = [m.build_question_consistency_result(q, [tuple(a) for a in said]) for q, said in questions.items()]
        results[name] = r
        mca, core = m.mca_with_ci(r, 1.0, seed=0), m.core_index_with_ci(r, seed=0)
        found[name] = {
            "MCA": [m.mca(r, c) for c in LEVELS],
            "CAR": [y for _, y in m.car_curve(r)],
            "CORE": m.core_index(r),
            "RC": sum(q.rc_correct for q in r) / len(r),
            "agreement": sum(q.rc_agree for q in r) / len(r),
            "AGA": [m.agreement_gated_accuracy(r, t) for t in GATES],
            "MCA(1.0) interval": [mca.ci_lower, mca.ci_upper],
            "CORE interval": [core.ci_lower, core.ci_upper],
        }
    pairs = [(a, b, t) for a, b in told.get("pairs", []) for t in GATES]
    tests = [m.compare_mca_paired(results[a], results[b], t) for a, b, t in pairs]
    return {"metrics": found, "McNemar": [[*p, t.p_value, t.n_discordant] for p, t in zip(pairs, tests)]}


def inside_reading(told: dict) -> dict:
    "What their scorer reads in raw replies: a letter or None."
    from llm_consistency.scoring import _extract_mc_answer

    return {"read": [_extract_mc_answer(text, frozenset("ABCDEFGHIJ"[:n])) for text, n in told["replies"]]}


def inside_run(told: dict) -> dict:
    "A run of the package with a provider that keeps what was asked and said."
    from llm_consistency import perturbations  # noqa: F401 - registers the perturbations
    from llm_consistency.datasets import MCDataset
    from llm_consistency.providers._mock import MockLLMProvider
    from llm_consistency.reports._csv_export import export_csv
    from llm_consistency.reports._json_export import export_json
    from llm_consistency.runners import BatchRunner
    from llm_consistency.runners._pipeline import generate_variants_for_question
    from llm_consistency.scoring import get_scorer
    from llm_consistency.types import EvaluationConfig, PerturbationType

    folder = Path(told["folder"])
    (folder / "questions.json").write_text(json.dumps({"questions": told["questions"]}))
    dataset = MCDataset.load(folder / "questions.json")
    kinds = (PerturbationType.OPTION_REORDER, PerturbationType.SEPARATOR_CHANGE)
    config = EvaluationConfig(
        model="mock", provider="mock", perturbation_types=kinds, scorer="exact_match", num_variants=4
    )
    replies, rows = {}, []
    for question in dataset:
        for i, v in enumerate(generate_variants_for_question(question, config)):
            options = v.presented_options
            label = {o.original_label: o.label for o in options}
            said = told["said"][question.id][i % len(told["said"][question.id])]
            replies[f"{question.id}_v{i}"] = said = said.replace("$", label[told["picks"][question.id]])
            right = next(o.label for o in options if o.is_correct)
            rows.append([question.id, v.perturbation_type.value, v.variant_index, question.stem])
            rows[-1] += [json.dumps([o.text for o in options]), right, said]
    provider, kept = MockLLMProvider(model="mock", responses=replies), {}
    ask = provider.query

    async def query(prompt, question_id, **more):
        reply = await ask(prompt, question_id, **more)
        kept[question_id] = reply.raw_output
        return reply

    provider.query = query
    runner = BatchRunner()
    checkpoint = folder / "checkpoint.jsonl"
    report = asyncio.run(runner.run(dataset, config, provider, get_scorer("exact_match"), checkpoint_path=checkpoint))
    export_json(report, folder / "report.json", metadata=runner.last_metadata)
    export_csv(report, folder / "report.csv")
    assert kept == replies  # the study's way of keeping replies keeps them all
    return {"rows": rows, "report": json.loads((folder / "report.json").read_text())}


def ask_peer(python: str, what: str, told: dict) -> dict:
    "The answer of the other environment."
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "told.json").write_text(json.dumps(told))
        done = subprocess.run([python, "-W", "ignore", __file__, "--inside", what, str(path)], capture_output=True)
        if done.returncode:
            sys.exit(done.stderr.decode())
        return json.loads(done.stdout)


# what runs in ours


def answers_of(responses, apart: bool = False) -> dict[str, list]:
    """What was picked, as llm-consistency's own pipeline names it, and whether it was right, by question.

    A reply that was read is named by the original choice, one that was not by its words; or, `apart`, by a name that no
    other reply has.
    """
    found = {}
    for row in responses.first_trial().table.itertuples():
        key = str(row.sources[row.prediction]) if row.prediction >= 0 else f"<{(row.reply or '').strip()}>"
        if row.prediction >= 0 and row.sources[row.prediction] < 0:
            key = f"new {row.correct}"
        if row.prediction < 0 and apart:
            key = f"<{row.Index}>"
        found.setdefault(row.question_id, []).append((key, bool(row.correct)))
    return found


def ours_of(responses) -> dict:
    "Our numbers, under their names."
    import warnings

    from cora_nb.metrics.consistency import _agreement_counts, agreement_gated_accuracy
    from cora_nb.metrics.cora import Counts, bmca, car_curve, core_index
    from cora_nb.metrics.scoring import score
    from cora_nb.metrics.estimates import score_intervals
    from cora_nb.metrics.counts import count_hits

    counts = count_hits(responses)
    both = Counts(*(counts[c].to_numpy(float) for c in ("hits", "trials", "original")))
    agree = _agreement_counts(responses)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ends, scores = score_intervals(counts), score(responses).set_index("score")["value"]
    curve = car_curve(both)
    return {
        "MCA": [bmca(both, c) for c in LEVELS],
        "CAR": [*curve],
        "CORE": core_index(curve),
        "RC": scores["RC"],
        "agreement": float((agree["most"] / agree["replies"]).mean()),
        "AGA": [*agreement_gated_accuracy(responses, GATES)["value"]],
        "MCA(1.0) interval": ends.loc["BMCA(1.0)", ["low", "high"]].tolist(),
        "CORE interval": ends.loc["CORE", ["low", "high"]].tolist(),
    }


def flat(numbers: dict) -> dict[str, float]:
    "One number under each name."
    found = {}
    for name, value in numbers.items():
        if name in ("MCA", "CAR"):
            found |= {f"{name}({c})": v for c, v in zip(LEVELS, value)}
        elif name == "AGA":
            found |= {f"AGA({t})": v for t, v in zip(GATES, value)}
        elif isinstance(value, list):
            found |= {f"{name} low": value[0], f"{name} high": value[1]}
        else:
            found[name] = value
    return found


def guarded_gates() -> list:
    "Small cases in which the two packages are known to differ, as responses."
    from cora_nb.core import Question
    from cora_nb.responses.responses import make_responses
    from cora_nb.variants.families import make_variants

    asked = [Question(f"q{i}", "Which?", ("a", "b", "c", "d"), 0) for i in range(10)]
    variants = make_variants(asked, "cyclic")
    silent = make_responses(variants, [""] * len(variants), name="says nothing")
    always = make_responses(variants, ["A"] * len(variants), name="always A")
    return [silent, always]


def runs_to_compare(recorded: bool = True) -> list:
    "The recorded replies, as recorded, where they can be had; and simulated ones to the bundled benchmark."
    from cora_nb.benchmarks.load import load_benchmark
    from cora_nb.core import CoraError
    from cora_nb.papers.published import load_recorded
    from cora_nb.respondents.simulated import SimulatedRespondent
    from cora_nb.runs.evaluate import evaluate
    from cora_nb.variants.families import make_variants

    variants = make_variants(load_benchmark("math")[:100], "cora")
    people = [
        SimulatedRespondent(knows=0.6, slips=0.2, name="slips"),
        SimulatedRespondent(knows=0.7, position=(5, 1), name="first place", seed=1),
    ]
    found = [evaluate(person, variants, progress=False) for person in people] + guarded_gates()
    if not recorded:
        return found
    try:
        found.insert(0, load_recorded("cat/medqa/medalpaca-7b").first_trial())
    except CoraError as e:
        print(f"without the recorded replies: {e}")
    return found


def compare_metrics(python: str, runs: list) -> list[list]:
    "Rows of (run, quantity, ours, theirs)."
    told = {"answers": {run.name: answers_of(run) for run in runs}, "pairs": [["slips", "first place"]]}
    told["answers"] |= {f"{run.name}, apart": answers_of(run, apart=True) for run in runs}
    theirs, rows = ask_peer(python, "metrics", told), []
    for run in runs:
        ours, other = flat(ours_of(run)), flat(theirs["metrics"][run.name])
        assert all(ours[f"CAR({c})"] == ours[f"MCA({c})"] and other[f"CAR({c})"] == other[f"MCA({c})"] for c in LEVELS)
        rows += [[run.name, name, value, other[name]] for name, value in ours.items() if not name.startswith("CAR")]
        apart = flat(theirs["metrics"][f"{run.name}, apart"])
        names = ["agreement", *(f"AGA({t})" for t in GATES)]
        rows += [[f"{run.name}, unread replies apart", name, ours[name], apart[name]] for name in names]
    return rows + compare_tests(runs, theirs["McNemar"])


def without_originals(run) -> list[list]:
    "What the scores are where the original does not count, as in a run of llm-consistency, which never asks it."
    from cora_nb.metrics.scoring import score

    part = run.rows((run.table["method"] != "original").to_numpy(), chosen="all but the original")
    names, rows = ("MCQA", "RC", "BMCA(0.8)", "BMCA(1.0)", "CORE", "CoRA"), []
    for which, responses in (("with", run), ("without", part)):
        values = score(responses).set_index("score")["value"]
        rows += [[f"{run.name}, {which} the original", name, values[name], None] for name in names]
    return rows


def compare_tests(runs: list, theirs: list) -> list[list]:
    "McNemar's test of MCA(c), ours on the same counts."
    from cora_nb.metrics.counts import count_hits
    from cora_nb.stats.paired import mcnemar_p

    rc = {run.name: (c := count_hits(run))["hits"] / c["trials"] for run in runs}
    rows = []
    for one, other, c, p, n in theirs:
        up, down = int(((rc[one] >= c) & (rc[other] < c)).sum()), int(((rc[one] < c) & (rc[other] >= c)).sum())
        assert up + down == n
        rows.append([f"{one} and {other}", f"McNemar p of MCA({c})", mcnemar_p(up, down), p])
    return rows


def compare_reading(python: str, run) -> list[list]:
    "Rows of (rule, quantity, ours, theirs): what their scorer and our rules read in the same raw replies."
    from cora_nb.core import LETTERS
    from cora_nb.metrics.scoring import score
    from cora_nb.prompts.letters import get_rule
    from cora_nb.responses.responses import Responses

    t = run.table
    texts, sizes = [text or "" for text in t["reply"]], t["n_choices"].tolist()
    read = ask_peer(python, "reading", {"replies": [*zip(texts, sizes)]})["read"]
    rules = {
        "recorded": t["prediction"].tolist(),
        "llm-consistency": [-1 if x is None else LETTERS.index(x) for x in read],
    }
    for rule in ("first_token", "tolerant", "lenient"):
        rules[rule] = [get_rule(rule)(text, "ABCDEFGH"[:n]) for text, n in zip(texts, sizes)]
    rows = []
    for name, said in rules.items():
        said = [p if isinstance(p, int) and p >= 0 else -1 for p in said]
        table = t.assign(prediction=said, correct=[p == a for p, a in zip(said, t["answer"])])
        values = score(Responses(table, run.questions, run.facts, name)).set_index("score")["value"]
        values["unread"], values["unlike theirs"] = (
            said.count(-1),
            sum(p != q for p, q in zip(said, rules["llm-consistency"])),
        )
        for what in ("MCQA+", "BMCA(0.8)", "BMCA(1.0)", "CORE", "unread", "unlike theirs"):
            rows.append([f"reading: {name}", what, values[what], None])
    mine, other = rules["tolerant"], rules["llm-consistency"]
    apart = [(text, a, b) for text, a, b in zip(texts, mine, other) if a != b]
    invented = [x for x in apart if "\nQuestion:" in x[0]]  # the model goes on with a question of its own
    rows.append(["reading: tolerant", "unlike theirs, and the reply goes on with a new question", len(invented), None])
    print(f"tolerant and llm-consistency differ in {len(apart)} replies, {len(invented)} with a made-up question:")
    name = lambda i: LETTERS[i] if i >= 0 else "-"
    for text, a, b in invented[:4] + [x for x in apart if x not in invented][:24]:
        print(f"  {text!r:.70}: tolerant {name(a)}, llm-consistency {name(b)}")
    return rows


def compare_run(python: str, folder: Path, limit: int) -> list[list]:
    "A run of the package itself; its replies as a plain table, imported."
    import csv

    from cora_nb.benchmarks.load import load_benchmark
    from cora_nb.core import CoraError
    from cora_nb.interop.formats import import_responses

    questions, letters = load_benchmark("math")[:limit], "ABCDE"
    options = lambda q: [
        {"label": c, "text": t, "is_correct": i == q.answer} for i, (c, t) in enumerate(zip(letters, q.choices))
    ]
    told = {
        "questions": [{"id": q.id, "stem": q.text, "options": options(q)} for q in questions],
        "folder": str(folder),
    }
    picks = [q.answer if i % 3 else (q.answer + 1) % q.n_choices for i, q in enumerate(questions)]
    told["picks"] = {q.id: letters[p] for q, p in zip(questions, picks)}
    forms = (["Answer: $"], ["$"], ["Answer: $", "$", "A", ""], ["I cannot say.", "Answer: $"], ["I cannot say."])
    told["said"] = {q.id: forms[i % len(forms)] for i, q in enumerate(questions)}
    found = ask_peer(python, "run", told)
    with (folder / "replies.csv").open("w", newline="") as file:
        head = ["question_id", "method", "index", "question", "choices", "answer", "reply"]
        original = {q.id: (json.dumps(q.choices), str(q.answer)) for q in questions}
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*head, "original_choices", "original_answer"])
        out.writerows([*row, *original[row[0]]] for row in found["rows"])
    for name in ("report.json", "report.csv", "checkpoint.jsonl"):
        try:
            import_responses(folder / name)
        except CoraError as e:
            print(f"refused: {str(e).replace(str(folder), '...')}")
    run = import_responses(folder / "replies.csv", parse="tolerant")
    theirs, ours = found["report"], ours_of(run)
    rows = [
        ["its own run", name, ours[key], theirs[name]]
        for name, key in (("mean_rc_correct", "RC"), ("mean_rc_agree", "agreement"))
    ]
    rows += [["its own run", "core_index", ours["CORE"], theirs["aggregate"]["core_index"]]]
    return rows + [
        ["its own run", f"MCA({c})", y, other]
        for c, y, (_, other) in zip(LEVELS, ours["MCA"], theirs["aggregate"]["car_curve"])
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", help="the Python of an environment with llm-consistency 1.1.0")
    parser.add_argument("--out", help="a CSV file for the numbers")
    parser.add_argument("--record", action="store_true", help="write the files of its own run for the tests")
    options = parser.parse_args()
    import pandas as pd

    runs = runs_to_compare()
    rows = compare_metrics(options.python, runs)
    if runs[0].name.startswith("medalpaca"):
        rows += without_originals(runs[0]) + compare_reading(options.python, runs[0])
    with tempfile.TemporaryDirectory() as folder:
        rows += compare_run(options.python, Path(folder), 60)
    if options.record:
        shutil.rmtree(RECORDED, ignore_errors=True)  # it would go on from its checkpoint
        RECORDED.mkdir(parents=True)
        compare_run(options.python, RECORDED, 10)
    table = pd.DataFrame(rows, columns=["run", "quantity", "ours", "llm-consistency"])
    table["difference"] = table["ours"] - table["llm-consistency"].astype(float)
    print(table.round(6).to_string())
    if options.out:
        table.drop(columns="difference").to_csv(options.out, index=False, lineterminator="\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        told = json.loads(Path(sys.argv[3]).read_text())
        print(json.dumps({"metrics": inside_metrics, "reading": inside_reading, "run": inside_run}[sys.argv[2]](told)))
    else:
        main()
