"""What the benchmarks share: time and peak memory of one call."""

import resource
import threading
import time
from collections.abc import Callable


def resident_mb() -> float:
    "Memory of this process now, in MB (0 where the system does not tell)."
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        return 0.0


def measure(work: Callable[[], object], repeat: int = 3) -> tuple[float, float, object]:
    "Best seconds of `repeat` calls, peak resident MB during them, and the last result."
    peak, done = resident_mb(), threading.Event()

    def watch():
        nonlocal peak
        while not done.wait(0.01):
            peak = max(peak, resident_mb())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    best, result = float("inf"), None
    for _ in range(repeat):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    done.set()
    watcher.join()
    return best, max(peak, resident_mb()), result


def report(title: str, **numbers: object) -> None:
    "One line of what was measured."
    shown = ", ".join(
        f"{k.replace('_', ' ')} {v:,.3g}"
        if isinstance(v, float)
        else f"{k.replace('_', ' ')} {v:,}"
        if isinstance(v, int)
        else f"{k.replace('_', ' ')} {v}"
        for k, v in numbers.items()
    )
    print(f"{title}: {shown}", flush=True)
