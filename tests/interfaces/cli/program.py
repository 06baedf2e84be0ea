"""Handrail as a process: run to its end, or talked with in a real terminal."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.project.source import ROOT

DEADLINE = 60.0
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[=>()][0-9A-B]?")

IN_TERMINAL = """
import fcntl, os, signal, sys, termios
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""A controlling terminal for a program, as a shell gives one: closing it is a signal, and so is Ctrl-C.

Both may have been ignored by whatever runs the tests, as `nohup` and `&` in a script have it.
"""


def environment(**changes: str) -> dict[str, str]:
    """The test's own environment (see conftest) for a child that runs from the source."""
    return os.environ | {"PYTHONPATH": str(ROOT / "src"), "TERM": "xterm-256color"} | changes


def command(*arguments: str) -> list[str]:
    """As the installed program runs: with no module of the folder that it is called in."""
    return [sys.executable, "-P", "-m", "handrail", *arguments]


def run(
    *arguments: str, cwd: Path, stdin: str | None = "", **changes: str
) -> "subprocess.CompletedProcess[str]":
    """Run to the end; what it wrote and its status."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        input=stdin,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def script(folder: Path, *answers: dict[str, Any], name: str = "script.json") -> str:
    """A scripted model that gives these answers."""
    path = folder / name
    path.write_text(json.dumps(list(answers)), encoding="utf-8")
    return f"scripted/{path}"


class Terminal:
    """A process in a terminal of 80 columns and 24 rows; `text` is all it has written, escapes left out."""

    def __init__(self, process: "subprocess.Popen[bytes]", master: int, slave: int) -> None:
        self.process = process
        self._master = master
        self._slave = slave
        self._raw = b""
        self._seen = 0

    @property
    def raw(self) -> str:
        return self._raw.decode(errors="replace")

    @property
    def text(self) -> str:
        decoded = ESCAPES.sub("", self.raw)
        return decoded.replace("\r\n", "\n").replace("\r", "")

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def expect(self, words: str) -> str:
        """Wait until these words were written after those that were expected last."""
        deadline = time.monotonic() + DEADLINE
        while (at := self.text.find(words, self._seen)) < 0:
            if not self._read(deadline):
                raise AssertionError(f"{words!r} was not written. There was:\n{self.text[self._seen :]}")
        self._seen = at + len(words)
        return self.text[:at]

    def echoes(self) -> bool:
        """Whether the terminal is as a shell wants it."""
        return bool(termios.tcgetattr(self._slave)[3] & termios.ECHO)

    def close_window(self) -> int:
        """Take the terminal away, as closing its window does; the status of the process."""
        os.close(self._slave)
        os.close(self._master)
        self._master = self._slave = -1
        return self.process.wait(timeout=DEADLINE)

    def close(self) -> None:
        for descriptor in (self._master, self._slave):
            if descriptor >= 0:
                os.close(descriptor)

    def end(self) -> int:
        """Wait until the process has ended; its status."""
        deadline = time.monotonic() + DEADLINE
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(min(deadline, time.monotonic() + 0.05))
        self._read(time.monotonic())
        return self.process.wait(timeout=0.1)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        self._raw += os.read(self._master, 65536)
        return True


@contextmanager
def terminal(*arguments: str, cwd: Path, **changes: str) -> Iterator[Terminal]:
    """Handrail in a terminal of its own, ended with the block."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", IN_TERMINAL, *command(*arguments)],
        cwd=cwd,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment(**changes),
        start_new_session=True,
    )
    talk = Terminal(process, master, slave)
    try:
        yield talk
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=DEADLINE)
        talk.close()
