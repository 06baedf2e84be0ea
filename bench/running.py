"""One run of an agent in a process of its own, and what it took."""

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from bench.agents import AFTER, CACHE, EDITED, TASK, Agent, Bed
from bench.repository import restore
from bench.server import Server
from bench.timing import children_ms
from bench.wire import Said

LONGEST_SECONDS = 600.0
SAMPLE_SECONDS = 0.01
TOLD = 300


class Failed(Exception):
    """The agent did not do what was to be measured, with the reason."""


class Edit(NamedTuple):
    """Milliseconds of a task with one read and one edit."""

    first: float
    """Process start to first request."""
    gaps: list[float]
    """From the end of an answer with a call to the next request, the call included."""
    whole: float
    cpu: float
    """What the process and its children used."""


class Place(NamedTuple):
    """An agent, ready to run in a repository."""

    agent: Agent
    bed: Bed
    environ: dict[str, str]
    server: Server


@contextmanager
def placed(agent: Agent, workspace: Path, server: Server) -> Iterator[Place]:
    """The agent with a throwaway home."""
    homes = CACHE / "homes"
    homes.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=homes, ignore_cleanup_errors=True) as home:
        bed = Bed(Path(home), workspace, server.url)
        known = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8", "TERM": "dumb"}
        yield Place(agent, bed, known | agent.prepare(bed), server)


def one_edit(place: Place) -> Edit:
    """The times of one task, done and checked."""
    moves = place.agent.moves(place.bed)

    def said(number: int, request: dict[str, Any]) -> Said | None:
        return moves[min(number, len(moves) - 1)] if place.agent.is_work(request) else None

    place.server.begin(said)
    used, began = children_ms(), time.perf_counter()
    try:
        output = _finished(_start(place, place.agent.words(place.bed, TASK)))
        ended, used = time.perf_counter(), children_ms() - used
        if (place.bed.workspace / EDITED).read_text() != f"{AFTER}\n":
            raise Failed(f"it did not edit the file: {output[-TOLD:]}")
    finally:
        restore(place.bed.workspace)
    asked = place.server.asked
    if len(asked) != len(moves):
        raise Failed(f"it sent {len(asked)} requests, not {len(moves)}")
    gaps = [(later.came - earlier.answered) * 1000 for earlier, later in pairwise(asked)]
    return Edit((asked[0].came - began) * 1000, gaps, (ended - began) * 1000, used)


def hello_bytes(place: Place, words: list[str]) -> int:
    """How many bytes the first request for "hi" has."""
    place.server.begin(lambda _number, _request: Said("Hello."))
    try:
        output = _finished(_start(place, words))
    finally:
        restore(place.bed.workspace)
    if not place.server.asked:
        raise Failed(f"it asked nothing: {output[-TOLD:]}")
    return max(asked.size for asked in place.server.asked)


def peak_megabytes(place: Place) -> float:
    """The most memory that the process and its children held together during the task, as sampled."""
    moves = place.agent.moves(place.bed)
    place.server.begin(
        lambda number, request: moves[min(number, len(moves) - 1)] if place.agent.is_work(request) else None
    )
    process = _start(place, place.agent.words(place.bed, TASK))
    peak = 0

    def sample() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, sum(resident(each) for each in tree(process.pid)))
            time.sleep(SAMPLE_SECONDS)

    watcher = threading.Thread(target=sample)
    watcher.start()
    try:
        _finished(process)
    finally:
        watcher.join()
        restore(place.bed.workspace)
    return peak / 1024


def version_ms(place: Place) -> float:
    """Process start to end of `--version`."""
    began = time.perf_counter()
    _finished(_start(place, ["--version"]))
    return (time.perf_counter() - began) * 1000


def tree(root: int) -> list[int]:
    """A process and all below it, but for what is still its parent: a fork that has not become a program."""
    found = [root]
    for pid in found:
        own = _command(pid)
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                children = [int(child) for child in task.read_text().split()]
            except OSError:
                continue
            found += [child for child in children if _command(child) != own]
    return found


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def resident(pid: int) -> int:
    """Kilobytes of memory that a process holds; none when it has gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


def _start(place: Place, words: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [str(place.agent.program), *words],
        cwd=place.bed.workspace,
        env=place.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _finished(process: "subprocess.Popen[str]") -> str:
    """What it wrote; raises Failed where it did not end well or in time."""
    try:
        output, _ = process.communicate(timeout=LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        raise Failed(f"it had not ended after {LONGEST_SECONDS:.0f} s: {output[-TOLD:]}") from None
    if process.returncode:
        raise Failed(f"it ended with status {process.returncode}: {output[-TOLD:]}")
    return output
