"""Everything that may be damaged, and what happened: `python -m tests.robustness [servers inputs models stores kills]`.

Prints a line for each case (kind, damage, what happened) and the totals. Some ten minutes on two cores; the kills and
the locks take most of it. Exit status 1 where something did not end as it must.
"""

import sys
import time
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from robustness.cases import check_all, listed  # noqa: E402

PARTS = {
    "servers": ("servers",),
    "inputs": ("benchmark_files", "run_files", "words"),
    "models": ("model_folders",),
    "stores": ("stores",),
    "kills": ("kills",),
}

if __name__ == "__main__":
    chosen, bad, totals = sys.argv[1:] or list(PARTS), 0, {}
    if unknown := [part for part in chosen if part not in PARTS]:
        sys.exit(f"tests.robustness: {unknown[0]!r} must be one of {', '.join(PARTS)}")
    for part in chosen:
        start = time.monotonic()
        outcomes = check_all(case for name in PARTS[part] for case in import_module(f"robustness.{name}").cases())
        print(f"{part.upper()}\n\n{listed(outcomes)}\n", flush=True)
        bad += sum(not o.good for o in outcomes)
        totals[part] = f"{len(outcomes)} cases, {time.monotonic() - start:.0f} s"
    print(*(f"{part}: {what}" for part, what in totals.items()), sep="\n")
    sys.exit(1 if bad else 0)
