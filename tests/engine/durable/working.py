"""Jobs that do as their instruction says; as a program, a worker: `python -m tests.engine.durable.working`.

`count FILE` adds a line to the file; `hold FILE` does that too, and ends when FILE.go is there.
"""

import sys
from pathlib import Path

import anyio

from handrail.engine.durable.jobs import Job, JobResult
from handrail.engine.durable.queue import queue_name
from handrail.engine.durable.worker import Worker, WorkerNews, WorkerSettings
from handrail.protocol.subtask import Subtask

LOST_AFTER = 1.0


def job(key: str, instruction: str) -> Job:
    subtask = Subtask(key.partition("/")[0], instruction, ("a.py",))
    return Job(key, subtask, "", (), (), split_id="s_1")


async def perform(given: Job) -> JobResult:
    verb, _, name = given.subtask.instruction.partition(" ")
    add_line(Path(name), given.key)
    while verb == "hold" and not Path(f"{name}.go").exists():
        await anyio.sleep(0.01)
    return JobResult(given.key, summary=verb)


def add_line(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def tell(news: WorkerNews) -> None:
    sys.stdout.write(f"{news.kind} {news.job}\n")
    sys.stdout.flush()


def started() -> None:
    sys.stdout.write("started\n")
    sys.stdout.flush()


async def main(url: str, workspace: str) -> None:
    settings = WorkerSettings(url, (queue_name(workspace),), "none", 4, LOST_AFTER)
    await Worker(settings, perform, tell).run(started)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2])
