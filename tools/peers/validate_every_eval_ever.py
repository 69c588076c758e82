"""By hand: our records under the validator of Every Eval Ever itself, which asks more than its schema does.

    pip download every-eval-ever==0.3.0 --no-deps --python-version 3.12 --only-binary=:all:
    unzip -q every_eval_ever-0.3.0-py3-none-any.whl -d WHEEL
    python tools/peers/validate_every_eval_ever.py WHEEL

The package asks for Python 3.12; its validator ran in 3.11 with pydantic, jsonschema and rich.
"""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from cora_nb.interop.result_files import export_every_eval_ever
from exported_runs import changed, in_part, simulated, with_failures


def main(wheel: str) -> int:
    sys.path.insert(0, str(Path(wheel).resolve()))
    from every_eval_ever.validator.validate import main as validate

    run = simulated("me/skewed")
    told = {"organization": "X", "availability": "open_weights", "dataset": "me/math", "split": "test"}
    kinds = {"part": in_part(run), "failed": with_failures(run, 2), "trials": simulated("x/y", trials=3, slips=0.2)}
    kinds["imported"] = changed(run, imported={"format": "lm-eval", "versions": {"lm_eval": "0.4.13"}})
    with tempfile.TemporaryDirectory() as folder:
        files = [export_every_eval_ever(run, folder, **told).files[0]]
        files += [export_every_eval_ever({f"me/{kind}": made}, folder, **told).files[0] for kind, made in kinds.items()]
        os.chdir(folder)
        return validate(files)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
