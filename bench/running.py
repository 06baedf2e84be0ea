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

from bench.agents import AFTER, CACHE, CALLS, EDITED, TASK, Agent, Bed, new_file, touch
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


class CallGaps(NamedTuple):
    """Milliseconds from an answer with a call to the next request, the first of each kind first."""

    writes: list[float]
    commands: list[float]


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
    _serve(place, moves)
    used, began = children_ms(), time.perf_counter()
    try:
        output = _finished(_start(place, place.agent.words(place.bed, TASK)))
        ended, used = time.perf_counter(), children_ms() - used
        if (place.bed.workspace / EDITED).read_text() != f"{AFTER}\n":
            raise Failed(f"it did not edit the file: {output[-TOLD:]}")
    finally:
        restore(place.bed.workspace)
    gaps = _gaps(place, len(moves))
    return Edit((place.server.asked[0].came - began) * 1000, gaps, (ended - began) * 1000, used)


def call_gaps(place: Place) -> CallGaps | None:
    """The times of calls that write files and run commands, done and checked; None: not for this agent."""
    calls = place.agent.call_moves(place.bed)
    if calls is None:
        return None
    moves = [*calls.writes, *calls.commands, Said("Done.")]
    _serve(place, moves)
    try:
        output = _finished(_start(place, place.agent.call_words(place.bed, TASK)))
        made = (*map(new_file, range(CALLS)), *(touch(number).split()[1] for number in range(CALLS)))
        if missing := [name for name in made if not (place.bed.workspace / name).exists()]:
            raise Failed(f"it did not make {', '.join(missing)}: {output[-TOLD:]}")
    finally:
        restore(place.bed.workspace)
    gaps = _gaps(place, len(moves))
    return CallGaps(gaps[:CALLS], gaps[CALLS:])


def _serve(place: Place, moves: list[Said]) -> None:
    def said(number: int, request: dict[str, Any]) -> Said | None:
        return moves[min(number, len(moves) - 1)] if place.agent.is_work(request) else None

    place.server.begin(said)


def _gaps(place: Place, wanted: int) -> list[float]:
    asked = place.server.asked
    if len(asked) != wanted:
        raise Failed(f"it sent {len(asked)} requests, not {wanted}")
    return [(later.came - earlier.answered) * 1000 for earlier, later in pairwise(asked)]


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
    _serve(place, place.agent.moves(place.bed))
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
