"""Timing: several runs, the median counts, and a ratio to something everybody has."""

import resource
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


class PythonPass(NamedTuple):
    """Milliseconds of `python -c pass`: by the clock, and of CPU time."""

    whole: float
    cpu: float


def python_pass_ms(runs: int = 9) -> PythonPass:
    """What starting Python costs on this machine, now."""
    before = children_ms()
    whole = median_ms(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), runs)
    return PythonPass(whole, (children_ms() - before) / runs)


def children_ms() -> float:
    """The CPU time of all processes that this one has started and seen end."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000
