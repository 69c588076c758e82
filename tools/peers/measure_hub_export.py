"""By hand: size and time of the exports of the recorded run of the CoRA paper's authors, 33,098 replies of one trial.

python tools/peers/measure_hub_export.py ../shared/data/recorded
"""

import sys
import tempfile
import time
from pathlib import Path

import datasets
from cora_nb.interop.result_files import export_every_eval_ever
from cora_nb.interop.hub_datasets import export_hub, load_hub_runs
from cora_nb.interop.result_files import export_model_card
from cora_nb.papers.published import load_recorded


def timed(what, make):
    start = time.perf_counter()
    made = make()
    print(f"{what}: {time.perf_counter() - start:.1f} s")
    return made


def main(folder: str) -> None:
    datasets.disable_progress_bars()
    whole = load_recorded("cat/medqa/medalpaca-7b", folder)
    for run in (whole.first_trial(), whole):
        print(f"\n{len(run):,} replies to {len(run.questions):,} questions")
        with tempfile.TemporaryDirectory() as at:
            for export in (export_hub, export_every_eval_ever, export_model_card):
                made = timed(export.__name__, lambda: export(run, f"{at}/{export.__name__}"))
                for file in made.files:
                    print(f"  {(made.folder / file).stat().st_size:>9,} bytes  {Path(file).name}")
            back = timed("load_hub_runs", lambda: load_hub_runs(f"{at}/export_hub", cache_dir=f"{at}/cache"))
            print(f"  equal: {back[run.name].equals(run)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
