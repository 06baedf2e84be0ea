"""`handrail serve`: its start, memory per idle client, a thousand readers, a turn that is watched."""

import json
import os
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import NamedTuple

import httpx2

from handrail.config.places import find_places, workspace_folder
from handrail.protocol.events import Nudged, SessionStarted
from handrail.protocol.ids import new_id
from handrail.sessions.session import Session
from handrail.storage.event_log import Log

CLIENTS = 1_000
EVENTS_PER_SECOND = 100
SECONDS = 30
IDLE_CLIENTS = 200
STARTS = 9
TURNS = 7
CALLS = 40
WATCHERS = 3
DEADLINE_SECONDS = 120.0
FILES = 8_192
SHARED_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108
EVENT = re.compile(rb'^id: (\d+)\ndata: \{"seq":\d+,"at":([\d.]+)', re.MULTILINE)


class Readers(NamedTuple):
    clients: int
    delivered: int
    lost: int
    p50_ms: float
    p99_ms: float
    worst_ms: float


class Turn(NamedTuple):
    milliseconds: float
    cpu_ms: float
    """Of the whole server."""


class Figures(NamedTuple):
    start_ms: float
    """From the start of the process to the printed address."""
    start_cpu_ms: float
    memory_kb: float
    """For each idle client."""
    readers: Readers
    alone: "Turn"
    """Of forty calls, and nobody watches."""
    watched: "Turn"


class Serving:
    def __init__(self, process: "subprocess.Popen[str]", address: str, started: float) -> None:
        self.process = process
        self.started_ms = started * 1000
        self.base, _, self.token = address.partition("?token=")
        self.port = int(self.base.rstrip("/").rpartition(":")[2])
        headers = {"authorization": f"Bearer {self.token}"}
        self.client = httpx2.Client(base_url=self.base, headers=headers, timeout=DEADLINE_SECONDS)

    def follow(self, session: str, after: int) -> socket.socket:
        """A reader of the session's events."""
        reader = socket.create_connection(("127.0.0.1", self.port))
        head = f"GET /api/sessions/{session}/events?after={after} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
        reader.sendall(f"{head}Authorization: Bearer {self.token}\r\n\r\n".encode())
        return reader

    def cpu_ms(self) -> float:
        used = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, used)) * 1000 / os.sysconf("SC_CLK_TCK")

    def resident_kb(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])


@contextmanager
def serving(folder: Path, script: list[dict[str, object]]) -> Iterator[Serving]:
    workspace, answers = folder / "workspace", folder / "script.json"
    workspace.mkdir(exist_ok=True)
    answers.write_text(json.dumps(script))
    words = [sys.executable, "-P", "-m", "handrail", "serve", "--port", "0", "--model", f"scripted/{answers}"]
    began = time.monotonic()
    with subprocess.Popen(words, cwd=workspace, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            address = process.stdout.readline().split()[-1]
            served = Serving(process, address, time.monotonic() - began)
            with served.client:
                yield served
            process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE_SECONDS)
        finally:
            process.kill()


def measure() -> Figures:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, hard) if hard > 0 else FILES, hard))
    try:
        with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as folder:
            os.environ["HANDRAIL_HOME"] = str(Path(folder, "home"))
            place = Path(folder)
            starts = [_start(place) for _ in range(STARTS)]
            start, cpu = (statistics.median(each) for each in zip(*starts, strict=True))
            memory = _memory_kb(place)
            readers = thousand_readers(place)
            alone, watched = _turns(place)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return Figures(start, cpu, memory, readers, alone, watched)


def _start(folder: Path) -> tuple[float, float]:
    """Wall clock and CPU time until the address was printed."""
    with serving(folder, []) as served:
        return served.started_ms, served.cpu_ms()


def _memory_kb(folder: Path) -> float:
    with serving(folder, []) as served, ExitStack() as held:
        session = served.client.post("/api/sessions", json={}).json()["id"]
        _received(held.enter_context(served.follow(session, 0)), b"session_started")
        before = served.resident_kb()
        for _ in range(IDLE_CLIENTS):
            _received(held.enter_context(served.follow(session, 0)), b"session_started")
        return (served.resident_kb() - before) / IDLE_CLIENTS


def _received(reader: socket.socket, words: bytes) -> None:
    reader.settimeout(DEADLINE_SECONDS)
    data = b""
    while words not in data:
        data += reader.recv(65_536)


def thousand_readers(folder: Path, clients: int = CLIENTS, seconds: int = SECONDS) -> Readers:
    """Readers of one session that another process writes, as a terminal does."""
    log = Log(workspace_folder(find_places(os.environ), folder / "workspace"))
    session = Session(log, new_id("s"))
    assert session.try_hold()
    session.append(SessionStarted(session_id=session.id, workspace=str(folder), version="bench"))
    session.release()
    log.close()
    wanted = seconds * EVENTS_PER_SECOND
    words = [sys.executable, "-m", "bench.web_server", str(folder / "workspace"), session.id, str(wanted)]
    with serving(folder, []) as served, ExitStack() as held, DefaultSelector() as selector:
        writer = held.enter_context(
            subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert writer.stdin
        assert writer.stdout
        writer.stdout.readline()  # it holds the session
        places: dict[int, int] = {}
        rest: dict[int, bytes] = {}
        for _ in range(clients):
            reader = held.enter_context(served.follow(session.id, 1))
            _received(reader, b"retry")
            reader.settimeout(0)
            selector.register(reader, EVENT_READ)
            places[reader.fileno()], rest[reader.fileno()] = 1, b""
        writer.stdin.write("go\n")
        writer.stdin.flush()
        written: dict[int, float] = {}
        delays: list[float] = []
        lost, deadline = 0, time.monotonic() + seconds + DEADLINE_SECONDS
        waiting = clients
        while waiting and time.monotonic() < deadline:
            for key, _ in selector.select(1.0):
                source = key.fileobj
                assert isinstance(source, socket.socket)
                number = source.fileno()
                data = rest[number] + source.recv(1_000_000)
                now = time.time()
                whole, _, rest[number] = data.rpartition(b"\n\n")
                for found in EVENT.finditer(whole):
                    seq = int(found[1])
                    lost += seq != places[number] + 1
                    places[number] = seq
                    at = written.setdefault(seq, float(found[2]))
                    delays.append(now - at)
                if places[number] == wanted + 1:
                    waiting -= 1
                    selector.unregister(source)
        writer.wait(DEADLINE_SECONDS)
        delays.sort()
        missing = sum(wanted + 1 - place for place in places.values())
        return Readers(
            clients,
            len(delays),
            lost + missing,
            delays[len(delays) // 2] * 1000,
            delays[len(delays) * 99 // 100] * 1000,
            delays[-1] * 1000,
        )


def write_events(workspace: str, session_id: str, count: int) -> None:
    """The process that holds the session: so many events, evenly in time."""
    session = Session(Log(workspace_folder(find_places(os.environ), Path(workspace))), session_id).load()
    assert session.try_hold()
    print("held", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began + number / EVENTS_PER_SECOND - time.monotonic()))
        session.append(Nudged(turn_id="t", text=f"event {number} of a turn that goes on for a while"))
    session.release()
    session.log.close()


def _turns(folder: Path) -> tuple[Turn, Turn]:
    """A turn, alone and watched, the median of turns that take turns."""
    script: list[dict[str, object]] = []
    for number in range(CALLS):
        (folder / "workspace" / f"{number}.txt").write_text(f"file {number}\n")
        script.append({"calls": [{"name": "read", "arguments": {"path": f"{number}.txt"}}]})
    alone, watched = list[Turn](), list[Turn]()
    with serving(folder, [*script, {"text": "Done."}]) as served:
        for number in range(2 * TURNS + 2):
            session = served.client.post("/api/sessions", json={"route": "agent"}).json()["id"]
            with ExitStack() as held:
                if number % 2:
                    for _ in range(WATCHERS):
                        _received(held.enter_context(served.follow(session, 0)), b"session_started")
                spent = _turn(served, session)
            if number > 1:  # the first two fill caches
                (watched if number % 2 else alone).append(spent)
    alone_median, watched_median = (
        Turn(*map(statistics.median, zip(*each, strict=True))) for each in (alone, watched)
    )
    return alone_median, watched_median


def _turn(served: Serving, session: str) -> Turn:
    before = served.cpu_ms()
    served.client.post(f"/api/sessions/{session}/messages", json={"text": "look around"})
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        time.sleep(0.2)
        detail = served.client.get(f"/api/sessions/{session}").json()
        if detail["turns"] and not detail["running"]:
            break
    spent = served.cpu_ms() - before
    page = served.client.get(f"/api/sessions/{session}/log", params={"limit": 1000}).json()["events"]
    began = next(one["at"] for one in page if one["event"]["type"] == "turn_started")
    ended = next(one["at"] for one in page if one["event"]["type"] == "turn_finished")
    return Turn(float(ended - began) * 1000, spent)


def report(found: Figures) -> list[str]:
    readers = found.readers
    alone, watched = found.alone, found.watched
    slower = watched.milliseconds / alone.milliseconds - 1
    return [
        f"The server has started after {found.start_ms:.0f} ms, {found.start_cpu_ms:.0f} of them CPU time; "
        "wanted are 500.",
        f"An idle client takes {found.memory_kb:.0f} KB.",
        f"{readers.clients:,} readers, {EVENTS_PER_SECOND} events a second for {SECONDS} s: "
        f"{readers.delivered:,} delivered, {readers.lost} lost; half after {readers.p50_ms:.0f} ms, "
        f"99 % after {readers.p99_ms:.0f}, all after {readers.worst_ms:.0f}.",
        f"A turn takes {alone.milliseconds:.0f} ms, with {WATCHERS} readers {watched.milliseconds:.0f} "
        f"({slower:+.1%}; CPU time {alone.cpu_ms:.0f} and {watched.cpu_ms:.0f} ms); wanted are 5 % at most.",
    ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_events(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        print("\n".join(report(measure())))
