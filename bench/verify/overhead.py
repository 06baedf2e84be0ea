"""The time of `handrail verify` beside the same commands run by hand, in turns."""

import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.agents import CACHE
from bench.timing import Measured

ROUNDS = 5
MODULES = 40
TESTS = 40  # of each module
MODULE = """\
def step(number: int) -> int:
    total = 0
    for each in range(number):
        total += each * {number}
    return total
"""
TEST = """\
import pytest

from shop.module_{number} import step


@pytest.mark.parametrize("given", range({tests}))
def test_step(given: int) -> None:
    assert step(given + 20_000) >= 0
"""
SETTINGS = """\
[project]
name = "shop"
version = "1"
[tool.ruff]
[tool.mypy]
strict = true
[tool.pytest.ini_options]
pythonpath = ["src"]
"""


def project(root: Path) -> Path:
    """A project whose tools have a few seconds of work."""
    (root / "src/shop").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "pyproject.toml").write_text(SETTINGS)
    (root / "src/shop/__init__.py").touch()
    for number in range(MODULES):
        (root / f"src/shop/module_{number}.py").write_text(MODULE.format(number=number))
        (root / f"tests/test_{number}.py").write_text(TEST.format(number=number, tests=TESTS))
    return root


def measure() -> Iterator[Measured]:
    """What `verify` takes beside its tools, all of them started at once as it starts them."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as place:
        root = project(Path(place) / "shop")
        environ = {
            **os.environ,
            "HANDRAIL_HOME": f"{place}/home",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        handrail = [sys.executable, "-P", "-m", "handrail", "verify", "-C", str(root)]
        listed = subprocess.run(
            [*handrail, "--list"], env=environ, capture_output=True, text=True, check=True
        )
        commands = [line.split("  ", 1)[1].strip() for line in listed.stdout.splitlines()]
        report = Path(place) / "report"
        by_hand, ours = [], []
        for number in range(ROUNDS + 1):
            report.mkdir()
            hand = spent(
                [shlex.split(each.replace("$REPORT", str(report))) for each in commands], root, environ
            )
            shutil.rmtree(report)
            verify = spent([[*handrail, "--json"]], root, environ)
            if number:  # the first fills caches
                by_hand.append(hand)
                ours.append(verify)
    whole, tools = statistics.median(ours), statistics.median(by_hand)
    yield Measured("handrail verify", whole, "the same tools by hand", whole / tools)


def spent(commands: list[list[str]], root: Path, environ: dict[str, str]) -> float:
    """Milliseconds from the start of all of them to the end of the last; they must succeed."""
    began = time.perf_counter()
    running = [
        subprocess.Popen(words, cwd=root, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for words in commands
    ]
    for process in running:
        output, errors = process.communicate()
        if process.returncode:
            raise SystemExit(f"{process.args!r} failed:\n{output.decode()}{errors.decode()}")
        if output.startswith(b"{"):
            json.loads(output)
    return (time.perf_counter() - began) * 1000
