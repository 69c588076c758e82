"""How long it takes to read a large log of inspect, and how much memory: by inspect's own loop, as a whole, by ours.

By hand: `python tools/peers/measure_inspect_reading.py 3000 [import|loop|whole]...`. The log is made of a recorded one
of our task, its samples repeated under other ids in random order. Each way runs in a process of its own.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "tests" / "recorded" / "inspect_ours" / "cora_style_cora_1_epoch.eval"


def large_log(n: int, path: Path) -> None:
    "A log of `n` samples: 20 for each question."
    import inspect_ai.log  # noqa: F401  it teaches zipfile the compression of its logs

    with zipfile.ZipFile(SOURCE) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
        samples = [json.loads(old.read(name)) for name in old.namelist() if name.startswith("samples/")]
        summaries = {s["id"]: s for s in json.loads(old.read("summaries.json"))}
        header, listed, ids = json.loads(old.read("header.json")), [], []
        for i in range(n):
            sample = samples[i % len(samples)]
            question = f"{i // len(samples)}-{sample['metadata']['question_id']}"
            ids.append((i % len(samples), question, f"{question}/{sample['id'].partition('/')[2]}"))
        header["eval"]["dataset"] |= {"sample_ids": [id for *_, id in ids], "samples": n}
        for place, question, id in random.Random(0).sample(ids, n):
            sample, changed = samples[place], {"id": id, "uuid": id}
            metadata = sample["metadata"] | {"question_id": question}
            new.writestr(f"samples/{id}_epoch_1.json", json.dumps(sample | changed | {"metadata": metadata}))
            listed.append(summaries[sample["id"]] | changed)
        new.writestr("_journal/start.json", old.read("_journal/start.json"))
        new.writestr("summaries.json", json.dumps(listed))
        new.writestr("header.json", json.dumps(header))


def measure(way: str, path: str) -> str:
    "One line."
    from inspect_ai.log import read_eval_log, read_eval_log_samples

    from cora_nb.interop.inspect_logs import import_inspect

    def memory():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    before, wall, start = memory(), time.monotonic(), time.process_time()
    if way == "import":
        n = len(import_inspect(path))
    elif way == "whole":
        n = len(read_eval_log(path, resolve_attachments="core").samples)
    else:
        n = sum(1 for _ in read_eval_log_samples(path, all_samples_required=False, resolve_attachments="core"))
    took = time.process_time() - start, time.monotonic() - wall
    return f"{way}: {n} samples, {took[0]:.1f} s of the processor, {took[1]:.1f} s, {memory() - before:.0f} MB"


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        print(measure(*sys.argv[2:]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "large.eval"
            large_log(int(sys.argv[1]), log)
            print(f"{log.stat().st_size / 1e6:.1f} MB")
            for way in sys.argv[2:] or ("import", "whole", "loop"):
                subprocess.run([sys.executable, __file__, "--one", way, str(log)], check=True)
