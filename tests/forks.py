"""Processes that have all imports behind them: many can be begun and killed in little time.

They are forked by a process that has one thread: one that runs tests may have more.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.forking import END, PID
from tests.project.source import ROOT

DEADLINE = 60.0


class Forks:
    """One child at a time. What it writes is read here."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin
        assert process.stdout
        self._orders, self._output = process.stdin.fileno(), process.stdout.fileno()
        self.said = b""
        """What the child has written so far."""
        self._pid = 0

    def start(self, *words: str) -> None:
        self.said = b""
        os.write(self._orders, json.dumps(words).encode() + b"\n")
        self.read(DEADLINE, lines=1)
        first, _, self.said = self.said.partition(b"\n")
        self._pid = int(first.removeprefix(PID))

    def read(self, seconds: float, *, lines: int = sys.maxsize) -> None:
        """Take in what it writes: for so long, until so many lines are there, or to its end."""
        until = time.monotonic() + seconds
        while self.said.count(b"\n") < lines and not self.said.endswith(END):
            ready, _, _ = select.select([self._output], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                return
            more = os.read(self._output, 65536)
            assert more, "nobody is there who forks"
            self.said += more

    def kill(self) -> bytes:
        """What it has written up to now, where it is killed unless it has ended by itself."""
        os.kill(self._pid, signal.SIGKILL)
        self.read(DEADLINE)
        assert self.said.endswith(END), "a process outlives being killed"
        os.write(self._orders, b"\n")
        return self.said.removesuffix(END)


@contextmanager
def forks(module: str, *ahead: str, folder: Path, complaints: Path) -> Iterator[Forks]:
    """Children that call `module.forked` in this folder; these modules are imported before, once."""
    with (
        complaints.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.forking", module, *ahead],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield Forks(process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
