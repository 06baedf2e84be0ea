"""A throwaway folder for one run of an agent, walled off from the machine, and the tests that judge it."""

import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from bench.agents import CACHE
from bench.repair.tasks import PROJECTS, Task

TEST_SECONDS = 60.0
STOP_SECONDS = 20.0
TESTS = CACHE / "tests"
"""A virtual environment with pytest alone: the plugins of this one would take a second of each run."""
GIT = ("-c", "user.name=Bench", "-c", "user.email=bench@example.com", "-c", "commit.gpgsign=false")


class Place(NamedTuple):
    """Where an agent works on a task."""

    home: Path
    folder: Path
    python: Path = Path(sys.executable)
    """What the tests run with, whatever the agent itself runs with."""

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        return {
            "PATH": path,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "GIT_CONFIG_NOSYSTEM": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def python_for_tests() -> Path:
    """The Python of a virtual environment with pytest, made if it is not there."""
    if not (TESTS / "bin" / "pytest").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", TESTS], check=True)
        version = importlib.metadata.version("pytest")
        words = ["-m", "pip", "install", "-q", "--disable-pip-version-check", f"pytest=={version}"]
        subprocess.run([TESTS / "bin" / "python", *words], check=True)
    return TESTS / "bin" / "python"


@contextmanager
def workspace(task: Task) -> Iterator[Place]:
    """The task's files in a git repository, and a home beside it; both are gone afterwards."""
    (CACHE / "homes").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE / "homes", ignore_cleanup_errors=True) as outer:
        place = Place(Path(outer, "home"), Path(outer, task.project.name), python_for_tests())
        place.home.mkdir()
        task.write_start(place.folder)
        (place.folder / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n.aider*\n")
        for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "Begin")):
            subprocess.run(["git", *GIT, *words], cwd=place.folder, env=place.environment, check=True)
        yield place


class Ended(NamedTuple):
    """How a program ended."""

    status: int | None
    """None where it was stopped at the limit."""
    output: str
    errors: str


def run(
    words: list[str],
    place: Place,
    seconds: float,
    environment: dict[str, str] | None = None,
    *,
    walled: bool = True,
) -> Ended:
    """Run a program in the workspace. Walled: it writes only there and in its home, and sees no solutions.

    It ends when the bench does, however that happens.
    """
    command = [*_wall(place), *words] if walled else words
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig=KILL", *command],
        cwd=place.folder,
        env=place.environment | (environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    stopped = False
    for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, STOP_SECONDS)):
        try:
            output, errors = process.communicate(timeout=patience)
            break
        except subprocess.TimeoutExpired:
            stopped = True
            os.killpg(process.pid, number)
    else:
        output, errors = process.communicate()
    return Ended(None if stopped else process.returncode, output, errors)


def _wall(place: Place) -> list[str]:
    outer, python = str(place.folder.parent), str(place.python.parents[1])
    wall = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", tempfile.gettempdir()]
    wall += ["--ro-bind", python, python, "--tmpfs", str(PROJECTS)]  # Python may be in the temporary folder
    wall += ["--bind", outer, outer, "--unshare-pid", "--die-with-parent", "--chdir", str(place.folder)]
    return ["bwrap", *wall, "--"]


class Tested(NamedTuple):
    passed: int
    failed: int

    @property
    def right(self) -> bool:
        return self.passed > 0 and self.failed == 0


def test(place: Place, folder: str) -> Tested:
    """The tests in this folder of the workspace; what does not even run has failed."""
    report = place.home / "report.xml"
    report.unlink(missing_ok=True)
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", folder]
    run([str(place.python), *words], place, TEST_SECONDS, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    try:
        suites = list(ElementTree.parse(report).getroot().iter("testsuite"))  # noqa: S314 our own pytest wrote it
    except (OSError, ElementTree.ParseError):
        return Tested(0, 1)
    total = sum(int(each.get("tests", 0)) for each in suites)
    failed = sum(int(each.get(name, 0)) for each in suites for name in ("failures", "errors", "skipped"))
    return Tested(total - failed, failed)


class Score(NamedTuple):
    visible: bool
    hidden: bool
    tampered: bool
    """The agent changed the tests or their settings; they were restored before this score."""


def score(task: Task, place: Place) -> Score:
    """Whether the code in the workspace is right, by the tests as they were."""
    given = {
        name: text
        for name, text in task.shown.items()
        if name.startswith("tests/") or name == "pyproject.toml"
    }
    now = {name: _text(place.folder / name) for name in given}
    task.restore_tests(place.folder)
    judged = Score(test(place, "tests").right, test(place, "hidden").right, tampered=now != given)
    shutil.rmtree(place.folder / "hidden")
    return judged


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""
