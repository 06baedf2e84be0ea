"""A plugin of pytest (`-p handrail_screening`): the same tests for many texts of one file, one run for each.

Stands alone: it runs in the project's own Python. pytest loads it before the project's code. Each run is a
fork from here, so it neither waits for Python and pytest to start nor sees anything of the runs before it.
A line of the results is: number of the text, tests that ran, tests that passed.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import threading
import time
from importlib.metadata import entry_points
from math import inf
from statistics import median
from typing import Any

FOLDER = os.environ["HANDRAIL_SCREENING_FOLDER"]
RESULTS = os.path.join(FOLDER, "screened")
POLL = 0.002
FEW, LEAST_SECONDS, TIMES_SLOWER = 2, 0.5, 10.0
"""After so many runs it is known how long one takes; many edits of a loop never end."""


def load_other_plugins() -> None:
    """Import what every run needs; each run registers it for itself."""
    if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        return
    if sys.version_info < (3, 10):
        return  # it finds them in another way
    for point in entry_points(group="pytest11"):
        with contextlib.suppress(Exception):  # pytest says it better
            point.load()


def fork_for_each_text() -> int:
    """The number of the text, in the process that is to test it; the first process never returns."""
    with open(os.path.join(FOLDER, "candidates"), encoding="utf-8") as stream:
        wanted = json.load(stream)
    load_other_plugins()
    if threading.active_count() > 1:  # a fork would have only one of them
        os._exit(0)
    gc.freeze()  # a collection after a fork would copy all of the memory
    path, end = wanted["path"], time.monotonic() + wanted["seconds"]
    took: list[float] = []
    with open(path, "rb") as stream:
        before = stream.read()
    try:
        for number, text in enumerate(wanted["texts"]):
            if time.monotonic() > end:
                break
            with open(path, "wb") as stream:
                stream.write(text.encode())
            process = os.fork()
            if process == 0:
                become_quiet()
                return number
            usual = max(LEAST_SECONDS, TIMES_SLOWER * median(took)) if len(took) > FEW else inf
            began = time.monotonic()
            if wait_for(process, min(usual, wanted["seconds_each"])):
                took.append(time.monotonic() - began)
    finally:
        if os.getpid() == FIRST:
            with open(path, "wb") as stream:
                stream.write(before)
    os._exit(0)


def become_quiet() -> None:
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)


def wait_for(process: int, seconds: float) -> bool:
    """Whether it ended by itself within the time."""
    end = time.monotonic() + seconds
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(OSError):
                    kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return False
        time.sleep(POLL)
    return True


FIRST = os.getpid()
NUMBER = fork_for_each_text()
ran: set[str] = set()
failed: set[str] = set()


def pytest_runtest_logreport(report: Any) -> None:
    ran.add(report.nodeid)
    if not report.passed:
        failed.add(report.nodeid)


def pytest_unconfigure() -> None:
    with open(RESULTS, "a", encoding="utf-8") as stream:
        stream.write(f"{NUMBER} {len(ran)} {len(ran - failed)}\n")
    sys.stdout.flush()
    os._exit(0)
