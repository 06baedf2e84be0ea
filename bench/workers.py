"""`python -m bench.workers`: many subtasks on many workers of which some are killed, and what that costs.

Each size is a split of so many subtasks, one file each, on worker processes with several jobs at once. A fake
model on this machine answers after a pause. Workers are killed, and begun again, so often that about one job
in twenty loses its worker. All of it is on one machine, whose processor is the limit, not PostgreSQL.
"""

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import psycopg

from tests.models.fake_server import FakeServer, Recorded, Reply, Said, body_for
from tests.postgres import Server

WORKSPACE = "simulation"
TOKENS, USD = 120, 100e-6 + 20 * 2e-6
"""Of one answer."""
ROOT = Path(__file__).parent.parent
PULSE = 0.25


class Load(NamedTuple):
    """What the database has done."""

    commits: int
    written: int
    megabytes: float


class Figures(NamedTuple):
    subtasks: int
    seconds: float
    wait_p50: float
    wait_p99: float
    kills: int
    asked: int
    load: Load
    conductor_cpu: float
    conductor_mb: float
    exact: bool


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.workers", description=__doc__)
    parser.add_argument("--subtasks", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--processes", type=int, default=10, help="worker processes")
    parser.add_argument(
        "--parallel", type=int, default=10, help="jobs at once in each: 10 x 10 are 100 workers"
    )
    parser.add_argument("--pause", type=float, default=0.5, help="seconds until the model has answered")
    parser.add_argument("--killed", type=float, default=0.05, help="share of jobs that lose their worker")
    parser.add_argument("--results", type=Path, default=ROOT / "bench" / "results" / "workers.json")
    parser.add_argument("--model", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.model:
        serve_model(options.pause)
        return
    found = [measure(count, options) for count in options.subtasks]
    print("\n".join(report(found, options)), flush=True)
    options.results.parent.mkdir(exist_ok=True)
    rows = [{**each._asdict(), "load": each.load._asdict()} for each in found]
    options.results.write_text(json.dumps(rows, indent=2))
    sys.exit(0 if all(each.exact for each in found) else 1)


def report(found: list[Figures], options: argparse.Namespace) -> list[str]:
    rows = [
        [
            f"{each.subtasks:,}",
            f"{each.seconds:.1f}",
            f"{each.subtasks / each.seconds:.1f}",
            f"{each.wait_p50:.2f}",
            f"{each.wait_p99:.2f}",
            f"{each.kills}",
            f"{each.asked - each.subtasks:,}",
            f"{each.load.commits / each.subtasks:.1f}",
            f"{each.load.written / each.subtasks:.1f}",
            f"{each.load.megabytes:.0f}",
            f"{1000 * each.conductor_cpu / each.subtasks:.1f}",
            f"{each.conductor_mb:.0f}",
            "yes" if each.exact else "NO",
        ]
        for each in found
    ]
    head = [
        *(
            "subtasks",
            "s",
            "per s",
            "wait p50",
            "p99",
            "kills",
            "asked again",
            "transactions each",
            "rows each",
        ),
        *("database MB", "conductor ms each", "MB", "exact"),
    ]
    workers = options.processes * options.parallel
    said = f"{options.processes} processes with {options.parallel} jobs each: {workers} workers"
    return [
        f"{said}; an answer takes {options.pause} s",
        "",
        *(f"| {' | '.join(each)} |" for each in [head, ["---:"] * len(head), *rows]),
    ]


def measure(count: int, options: argparse.Namespace) -> Figures:
    folder = Path(tempfile.mkdtemp(prefix="handrail-workers-"))
    server = Server()
    try:
        with model_process(options.pause) as model:
            write_home(folder / "home", model.url)
            os.environ |= {
                "HANDRAIL_HOME": str(folder / "home"),
                "HANDRAIL_DATABASE": server.url,
                "HANDRAIL_DATABASE_WORKSPACE": WORKSPACE,
            }
            root = folder / "work"
            root.mkdir()
            for number in range(count):
                (root / f"m{number:05}.py").write_text(f"ONE = {number}\n\nTEXT = 'same'\n")
            fleet = Fleet(options, count)
            try:
                return anyio.run(run, root, options, fleet, server.url, model)
            finally:
                fleet.close()
    finally:
        server.remove()


async def run(
    root: Path, options: argparse.Namespace, fleet: "Fleet", url: str, model: "ModelProcess"
) -> Figures:
    from handrail.app.app import Options, open_app
    from handrail.app.splits.plans import keep_plan
    from handrail.app.splits.run import read_split, run_split
    from handrail.protocol.events import SubtaskDone, SubtaskStarted
    from handrail.protocol.subtask import SplitLimits, SplitPlan, Subtask

    count = fleet.count
    subtasks = tuple(Subtask(f"t{number}", "Change TEXT.", (f"m{number:05}.py",)) for number in range(count))
    parallel = min(256, 2 * options.processes * options.parallel)
    plan = SplitPlan("", subtasks, limits=SplitLimits(parallel=parallel), run_on="workers")
    began_at: dict[str, float] = {}
    waits: list[float] = []

    def saw(recorded: Any) -> None:
        match recorded.event:
            case SubtaskStarted(subtask_id=name):
                began_at[name] = recorded.at
            case SubtaskDone(subtask_id=name, seconds=seconds):
                waits.append(recorded.at - began_at[name] - seconds)
                fleet.done = len(waits)

    async with open_app(Options(root)) as app:
        session_id = keep_plan(app, plan)
        before = load_of(url)
        used, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fleet.kill_some)
            await run_split(app, session_id, saw=saw)
            tasks.cancel_scope.cancel()
        seconds, now = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
        report = read_split(app, session_id)
        after = load_of(url)
    asked, distinct = model.asked()
    exact = (report.counts["done"], report.tokens, distinct) == (count, count * TOKENS, count)
    exact = exact and abs((report.usd or 0.0) - count * USD) < 1e-6 * count
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    waits.sort()
    return Figures(
        subtasks=count,
        seconds=seconds,
        wait_p50=waits[len(waits) // 2],
        wait_p99=waits[int(len(waits) * 0.99)],
        kills=fleet.kills,
        asked=asked,
        load=Load(after.commits - before.commits, after.written - before.written, after.megabytes),
        conductor_cpu=cpu,
        conductor_mb=now.ru_maxrss / 1024,
        exact=exact,
    )


def load_of(url: str) -> Load:
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("SELECT pg_stat_clear_snapshot()")
        [found] = database.execute(
            """
            SELECT xact_commit, tup_inserted + tup_updated + tup_deleted, pg_database_size(datname) / 1e6
            FROM pg_stat_database WHERE datname = current_database()"""
        ).fetchall()
    return Load(int(found[0]), int(found[1]), float(found[2]))


class Fleet:
    """Worker processes, of which some are killed as the split goes on."""

    def __init__(self, options: argparse.Namespace, count: int) -> None:
        self.kills = self.done = 0
        self.count = count
        self._wanted = round(count * options.killed / options.parallel)
        self._words = [
            *(sys.executable, "-P", "-m", "handrail", "worker", "--workspace", WORKSPACE),
            *("--parallel", str(options.parallel)),
        ]
        self._chance = random.Random(1)
        self._processes = [self._start() for _ in range(options.processes)]

    def _start(self) -> "subprocess.Popen[bytes]":
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        return subprocess.Popen(
            self._words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )

    async def kill_some(self) -> None:
        """Kill as many as the share asks for, evenly over the subtasks."""
        while self.kills < self._wanted:
            if self.done * (self._wanted + 1) < (self.kills + 1) * self.count:
                await anyio.sleep(PULSE)
                continue
            number = self._chance.randrange(len(self._processes))
            self._processes[number].kill()
            self._processes[number].wait()
            self._processes[number] = self._start()
            self.kills += 1

    def close(self) -> None:
        for each in self._processes:
            each.send_signal(signal.SIGKILL)
            each.wait()


# The model


class ModelProcess(NamedTuple):
    url: str
    process: "subprocess.Popen[str]"

    def asked(self) -> tuple[int, int]:
        """How often it was asked, and for how many different subtasks; it ends then."""
        said, _ = self.process.communicate("\n", timeout=60)
        total, distinct = json.loads(said)
        return total, distinct


@contextmanager
def model_process(pause: float) -> Iterator[ModelProcess]:
    words = [sys.executable, "-m", "bench.workers", "--model", "--pause", str(pause)]
    with subprocess.Popen(
        words,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        try:
            yield ModelProcess(process.stdout.readline().strip(), process)
        finally:
            process.kill()


def serve_model(pause: float) -> None:
    """Answer until a line comes; then print how often, and for how many keys."""
    asked: dict[str, int] = {}
    edit = {"search": "TEXT = 'same'", "replace": "TEXT = 'new'"}

    def answer(request: Recorded) -> Reply:
        key = request.headers.get("idempotency-key", "")
        asked[key] = asked.get(key, 0) + 1
        words = request.json["messages"][-1]["content"]
        path = words[words.index("### ") + 4 :].partition(" ")[0]
        text = json.dumps({"summary": "Done", "files": [{"path": path, "edits": [edit]}]})
        said = Said(text=(text,), input_tokens=100, cached_tokens=0, output_tokens=20)
        body = body_for(request.path, said)
        server.requests.clear()
        return Reply(body, step=len(body) // 2 + 1, pause=pause)

    with FakeServer(answer) as server:
        print(server.url, flush=True)
        sys.stdin.readline()
        print(json.dumps([sum(asked.values()), len(asked)]), flush=True)


def write_home(home: Path, url: str) -> None:
    home.mkdir()
    (home / "config.toml").write_text(
        f"""\
[models]
main = "mine/test-model"
[connections.mine]
protocol = "openai"
base_url = "{url}/v1"
price = {{ input = 1.0, output = 2.0 }}
[splits]
worker_seconds = 3.0
[checks]
detect = false
skip = ["consistency"]
[[checks.commands]]
name = "tests"
run = "true"
"""
    )


if __name__ == "__main__":
    main()
