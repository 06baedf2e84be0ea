"""A plugin of pytest (`-p handrail_screening`): the same tests for many texts of one file, one run for each.

Stands alone: it runs in the project's own Python. pytest loads it before the project's code. Each run is a
fork from here, so it does not wait for Python and pytest to start, and has no memory of the runs before it.
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
from typing import Any

FOLDER = os.environ["HANDRAIL_SCREENING_FOLDER"]
RESULTS = os.path.join(FOLDER, "screened")
POLL = 0.002
FEW = 3
"""After so many runs without a result, tests do not run in this process."""


def load_other_plugins() -> None:
    """Import what every run needs; each run registers it for itself."""
    if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        return
    with contextlib.suppress(Exception):  # pytest says it better
        for point in entry_points(group="pytest11"):
            point.load()


def fork_for_each_text() -> int:
    """The number of the text, in the process that is to test it; the first process never returns."""
    with open(os.path.join(FOLDER, "candidates"), encoding="utf-8") as stream:
        wanted = json.load(stream)
    load_other_plugins()
    if threading.active_count() > 1 or is_loaded(wanted["path"]):
        os._exit(0)  # a fork would lose threads, or keep the old code
    gc.freeze()  # a collection after a fork would copy all of the memory
    path, end = wanted["path"], time.monotonic() + wanted["seconds"]
    with open(path, "rb") as stream:
        before = stream.read()
    try:
        for number, text in enumerate(wanted["texts"]):
            if time.monotonic() > end or (number >= FEW and not os.path.exists(RESULTS)):
                break
            with open(path, "wb") as stream:
                stream.write(text.encode())
            process = os.fork()
            if process == 0:
                become_quiet()
                return number
            wait_for(process, wanted["seconds_each"])
    finally:
        if os.getpid() == FIRST:
            with open(path, "wb") as stream:
                stream.write(before)
    os._exit(0)


def is_loaded(path: str) -> bool:
    """Whether a plugin has imported the file already."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return any(file and os.path.realpath(file) == os.path.realpath(path) for file in files)


def become_quiet() -> None:
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)


def wait_for(process: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(OSError):
                    kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return
        time.sleep(POLL)


FIRST = os.getpid()
NUMBER = fork_for_each_text()
ran: set[str] = set()
failed: set[str] = set()


def pytest_runtest_logreport(report: Any) -> None:
    ran.add(report.nodeid)
    if report.failed:
        failed.add(report.nodeid)


def pytest_unconfigure() -> None:
    with open(RESULTS, "a", encoding="utf-8") as stream:
        stream.write(f"{NUMBER} {len(ran)} {len(ran - failed)}\n")
    sys.stdout.flush()
    os._exit(0)
