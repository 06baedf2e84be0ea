"""A download as a person watches it: one line that says how far it is."""

import signal
import sys
import time
from collections import deque
from typing import TYPE_CHECKING

from handrail.interfaces.cli.terminal import is_terminal
from handrail.protocol.errors import HandrailError, UsageProblem

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.models.embedded.fetch import Fetched
    from handrail.models.embedded.files import ModelFile

MEGABYTE = 1_000_000
REDRAW_SECONDS = 0.1
PIPED_SECONDS = 10.0
SPEED_SECONDS = 10.0
"""The time over which the speed is averaged."""


class DownloadLine:
    """Shows progress on stderr: redrawn in a terminal, a line now and then elsewhere."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._live = is_terminal(sys.stderr)
        self._past: deque[tuple[float, int]] = deque()
        self._shown = float("-inf")

    def __call__(self, fetched: "Fetched") -> None:
        now = time.monotonic()
        self._past.append((now, fetched.done))
        while now - self._past[0][0] > SPEED_SECONDS:
            self._past.popleft()
        if now - self._shown >= (REDRAW_SECONDS if self._live else PIPED_SECONDS):
            self._shown = now
            text = download_text(self._name, fetched, self._speed())
            print(f"\r\x1b[K{text}" if self._live else text, end="" if self._live else "\n", file=sys.stderr)
            sys.stderr.flush()

    def close(self) -> None:
        if self._live and self._past:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _speed(self) -> float:
        (first, had), (last, has) = self._past[0], self._past[-1]
        return max(0.0, (has - had) / (last - first)) if last > first else 0.0


def download_text(name: str, fetched: "Fetched", speed: float) -> str:
    """`download  qwen2.5-coder-1.5b  412/1117 MB  38 MB/s  0:19 left`."""
    text = f"download  {name}  {fetched.done // MEGABYTE}/{fetched.total // MEGABYTE} MB"
    if speed < 1000:
        return f"{text}  from the {fetched.source}" if fetched.source != "another Handrail" else text
    minutes, seconds = divmod(round((fetched.total - fetched.done) / speed), 60)
    digits = 0 if speed >= 10 * MEGABYTE else 1
    return f"{text}  {speed / MEGABYTE:.{digits}f} MB/s  {minutes}:{seconds:02} left"


def may_download(file: "ModelFile", *, yes: bool) -> bool:
    """Whether the user wants it; asked in a terminal, and never taken for granted elsewhere."""
    if yes:
        return True
    size = f"{file.size / 1e9:.1f} GB"
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageProblem(f"This downloads {size}, and nobody can be asked. With --yes it is done.")
    print(f"download {size}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


async def fetch_shown(file: "ModelFile", folder: "Path") -> "Path":
    """Fetch the file with a line of progress; where it lies. Ctrl-C keeps what has come, and says so."""
    import anyio

    from handrail.models.embedded.fetch import fetch
    from handrail.models.embedded.partial import bytes_so_far

    line, stopped = DownloadLine(file.model), False

    async def stop(scope: anyio.CancelScope) -> None:
        nonlocal stopped
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                stopped = True
                scope.cancel()

    path: Path | None = None
    problem: Exception | None = None
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop, tasks.cancel_scope)
            path = await fetch(file, folder, line)
            tasks.cancel_scope.cancel()
    except* HandrailError as problems:
        problem = problems.exceptions[0]  # raised here, it would be wrapped again
    finally:
        line.close()
    if problem:
        raise problem
    if path is None:
        kept = f"{megabytes(bytes_so_far(file, folder))} of {megabytes(file.size)} MB are kept"
        print(f"stopped   {kept}; the next download goes on from there.", file=sys.stderr, flush=True)
        raise KeyboardInterrupt
    return path


def megabytes(count: int) -> str:
    return f"{count // MEGABYTE:,}"
