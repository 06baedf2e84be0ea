"""A fake model, splits and workers as real processes on one database."""

import json
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from tests.interfaces.cli.program import DEADLINE, command, environment, run
from tests.models.fake_server import FakeServer, Recorded, Reply, Said, body_for

TOKENS, USD = 120, 100e-6 + 20 * 2e-6
"""Of one answer of the fake model."""
TOKEN = "token-of-the-tests-0123456789"
SHOWN = re.compile(r"### (m\d+\.py) ")


class FakeModel:
    """Changes one line of the file that it is shown, and counts what it is asked."""

    def __init__(self, pause: float = 0.0) -> None:
        self.asked: Counter[str] = Counter()
        """{idempotency key: how often}"""
        self.seen: list[str] = []
        """What it was shown."""
        self.refuses = False
        """With the status for a wrong key."""
        self._pause = pause
        self._lock = threading.Lock()
        self.server = FakeServer(self._answer)

    def _answer(self, request: Recorded) -> Reply:
        if self.refuses:
            body = b'{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}'
            return Reply(body, status=401, content_type="application/json", framing="length")
        words = str(request.json["messages"])
        with self._lock:
            self.asked[request.headers.get("idempotency-key", "")] += 1
            self.seen.append(words)
        found = SHOWN.search(words)
        path = found.group(1) if found else "m00.py"
        edit = {"search": "TEXT = 'same'", "replace": f"TEXT = 'new {path}'"}
        text = json.dumps({"summary": "It is done", "files": [{"path": path, "edits": [edit]}]})
        said = Said(text=(text,), input_tokens=100, cached_tokens=0, output_tokens=20)
        body = body_for(request.path, said)
        return Reply(body, step=len(body) // 2 + 1, pause=self._pause)


class HeldModel(FakeModel):
    """Answers once it is let."""

    def __init__(self) -> None:
        self.came, self.go = threading.Event(), threading.Event()
        super().__init__()

    def _answer(self, request: Recorded) -> Reply:
        self.came.set()
        self.go.wait(DEADLINE)
        return super()._answer(request)


def settings(model: FakeModel, home: Path, **more: str) -> Path:
    """A home with settings for the fake model."""
    home.mkdir(parents=True, exist_ok=True)
    extra = "\n".join(f"{key} = {value}" for key, value in more.items())
    (home / "config.toml").write_text(
        f"""\
[models]
main = "mine/test-model"
[connections.mine]
protocol = "openai"
base_url = "{model.server.url}/v1"
price = {{ input = 1.0, output = 2.0 }}
[splits]
worker_seconds = 1.0
{extra}
[checks]
detect = false
skip = ["consistency"]
[[checks.commands]]
name = "tests"
run = "true"
"""
    )
    return home


def project(root: Path, count: int) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (root / f"m{number:02}.py").write_text(f"ONE = {number}\n\nTEXT = 'same'\n")
    return root


def changed(root: Path) -> list[str]:
    """The files that have what the fake model writes, and nothing else."""
    names = sorted(path.name for path in root.glob("*.py"))
    return [
        name
        for number, name in enumerate(names)
        if (root / name).read_text() == f"ONE = {number}\n\nTEXT = 'new {name}'\n"
    ]


@contextmanager
def worker(*words: str, home: Path, url: str, **changes: str) -> Iterator["Running"]:
    """`handrail worker`, from the moment at which it takes jobs."""
    with running("worker", *words, home=home, url=url, cwd=Path("/"), **changes) as found:
        found.until("worker ")
        yield found


@contextmanager
def running(*words: str, home: Path, url: str, cwd: Path, **changes: str) -> Iterator["Running"]:
    changes = {"HANDRAIL_HOME": str(home), "HANDRAIL_DATABASE": url, **changes}
    process = subprocess.Popen(
        command(*words),
        cwd=cwd,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    found = Running(process)
    try:
        yield found
    finally:
        process.kill()
        process.wait(DEADLINE)
        found.join()


class Running:
    """A process whose output is read as it comes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []
        self._new = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            with self._new:
                self.lines.append(line.rstrip("\n"))
                self._new.notify_all()
        with self._new:
            self._ended = True
            self._new.notify_all()

    def join(self) -> None:
        self._reader.join(DEADLINE)
        assert self.process.stdout
        self.process.stdout.close()

    def until(self, words: str, seconds: float = DEADLINE) -> str:
        """The line with these words, once it is there."""

        def found() -> bool:
            return self._ended or any(words in line for line in self.lines)

        with self._new:
            self._new.wait_for(found, seconds)
            hits = [line for line in self.lines if words in line]
        assert hits, f"{words!r} was not written. There was:\n" + "\n".join(self.lines)
        return hits[0]

    def end(self, seconds: float = DEADLINE) -> int:
        status = self.process.wait(seconds)
        self._reader.join(DEADLINE)
        return status

    @property
    def json(self) -> Any:
        """The JSON that it has written, behind its complaints."""
        text = "\n".join(self.lines)
        return json.loads(text[text.index("\n{") if not text.startswith("{") else 0 :])


@contextmanager
def serving(root: Path, *, home: Path, url: str, name: str) -> Iterator["Serving"]:
    """`handrail serve` for a folder, which is the workspace of this name in the database."""
    words = ("serve", "--port", "0", "--token", TOKEN)
    with running(*words, home=home, url=url, cwd=root, HANDRAIL_DATABASE_WORKSPACE=name) as process:
        address = process.until("Handrail is at ").split()[-1].partition("?")[0]
        headers = {"authorization": f"Bearer {TOKEN}"}
        with httpx2.Client(base_url=f"{address}api", headers=headers, timeout=DEADLINE) as client:
            yield Serving(process, client, root)


class Serving(NamedTuple):
    """A server, as a page sees it."""

    running: Running
    client: httpx2.Client
    root: Path

    def start_split(self, parallel: int) -> str:
        """The id of a split over all files, which runs."""
        body = {"task": "Change TEXT", "files": ["*.py"], "granularity": "fine"}
        made = self.client.post("/splits", json=body | {"limits": {"parallel": parallel}})
        assert made.status_code == 201, made.text
        split_id: str = made.json()["split"]["session_id"]
        self.tell(split_id, "start")
        return split_id

    def tell(self, split_id: str, action: str) -> None:
        told = self.client.post(f"/splits/{split_id}/commands", json={"action": action})
        assert told.status_code == 202, told.text

    def split(self, split_id: str) -> Any:
        """Its report as of now."""
        shown = self.client.get(f"/splits/{split_id}").json()
        assert not shown["problem"], shown["problem"]
        return shown["split"]


SPLIT = ("split", "Change TEXT", "--files", "*.py", "--granularity", "fine", "--start", "--workers", "--json")


def split_words(parallel: int = 8, *more: str) -> tuple[str, ...]:
    return (*SPLIT, "--parallel", str(parallel), *more)


def query(url: str, statement: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as database:
        cursor = database.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def split_of(
    root: Path, files: int, home: Path, place: tuple[str, str], *words: str, **changes: str
) -> Iterator[Running]:
    """A split on workers, of a new project with so many files."""
    if not root.exists():
        project(root, files)
    url, name = place
    changes["HANDRAIL_DATABASE_WORKSPACE"] = name
    with running(*split_words(8, *words), home=home, url=url, cwd=root, **changes) as found:
        yield found


def all_done_once(report: dict[str, Any], root: Path) -> None:
    """The split is applied, and each of its files was asked for and paid once."""
    count = len(list(root.glob("*.py")))
    assert report["status"] == "complete"
    assert (report["counts"]["done"], len(report["files"])) == (count, count)
    assert report["tokens"] == count * TOKENS
    assert report["usd"] == pytest.approx(count * USD)
    assert len(changed(root)) == count
    assert all(row["worker"] for row in report["subtasks"])


def last_split(root: Path, home: Path, place: tuple[str, str]) -> str:
    """The split that was begun last."""
    listed = run(
        *("splits", "list", "--json"),
        cwd=root,
        HANDRAIL_HOME=str(home),
        HANDRAIL_DATABASE=place[0],
        HANDRAIL_DATABASE_WORKSPACE=place[1],
    )
    found: str = json.loads(listed.stdout)[0]["session_id"]
    return found
