"""Timing: several runs, the median counts, and a ratio to something everybody has."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Measured(NamedTuple):
    name: str
    milliseconds: float
    against: str
    ratio: float


def median_ms(action: Callable[[], Any], runs: int) -> float:
    """The median time of an action in milliseconds."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        action()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def python_pass_ms(runs: int = 15) -> float:
    """What starting Python costs on this machine, now."""
    return median_ms(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), runs)
