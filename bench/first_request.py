"""What the harness adds: to the first request, and between a tool's result and the next one.

The server answers at once, so all that is measured is Handrail. It also counts the bytes that are sent.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from bench.timing import Measured
from tests.models.fake_server import FakeServer, Recorded, Reply, Said, body_for

RUNS = 9
READ = Said(calls=(("c1", "read", '{"path": "a.py"}'),))
EDIT = Said(calls=(("c2", "edit", '{"path": "a.py", "edits": [{"search": "x = 1", "replace": "x = 2"}]}'),))
DONE = Said(text=("Done.",))


def measure(python: float) -> Iterator[Measured]:
    """One task with one read and one edit, several times in fresh processes."""
    starts, gaps, wholes = [], [], []
    size = 0
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            began, ended, times, size = one_edit(Path(folder))
        starts.append(times[0] - began)
        gaps += [later - earlier for earlier, later in pairwise(times)]
        wholes.append(ended - began)
    for name, values in (
        ("process start to first request", starts),
        ("request to next request, with a tool call between", gaps),
        ("whole task: read, edit, answer", wholes),
    ):
        spent = statistics.median(values) * 1000
        yield Measured(name, spent, "python -c pass", spent / python)
    print(f"first request with all tools: {size:,} bytes")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"peak memory of a process: {peak:.0f} MB")


def one_edit(folder: Path) -> tuple[float, float, list[float], int]:
    """When it began and ended, when each request came, and how large the first one was."""
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "a.py").write_text("x = 1\n")
    times: list[float] = []
    sizes: list[int] = []

    def answer(request: Recorded) -> Reply:
        times.append(time.perf_counter())
        sizes.append(len(request.body))
        turns = sum(message["role"] == "assistant" for message in json.loads(request.body)["messages"])
        return Reply(body_for(request.path, (READ, EDIT, DONE)[turns]))

    with FakeServer(answer) as server:
        home = folder / "home"
        home.mkdir()
        (home / "config.toml").write_text(f'[connections.fake]\nbase_url = "{server.url}/v1"\n')
        arguments = ["run", "hi", "--mode", "edit", "--model", "fake/test-model", "-C", str(workspace)]
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "handrail", *arguments],
            check=True,
            capture_output=True,
            env=os.environ | {"HANDRAIL_HOME": str(home)},
        )
        ended = time.perf_counter()
    if (workspace / "a.py").read_text() != "x = 2\n":
        raise RuntimeError("the task was not done, so its time means nothing")
    return began, ended, times, sizes[0]
