"""The bundled examples, put right by the embedded model itself: no key, no network, nothing scripted."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.models.embedded.model_files import LOCAL_MODEL_VARIABLE
from tests.interfaces.cli.program import environment

EXAMPLES = Path(__file__).parents[2] / "examples"
DEADLINE = 600.0


FETCH = """
import sys
from pathlib import Path

import anyio

from handrail.models.embedded.download import download_model
from handrail.models.embedded.model_files import QWEN

print(anyio.run(download_model, QWEN, Path(sys.argv[1]), lambda _: None))
"""


@pytest.fixture(scope="session")
def qwen() -> Path:
    """The model's file, in the user's cache and outside the repository; fetched by a process of its own."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    words = [sys.executable, "-c", FETCH, str(cache / "handrail-models")]
    return Path(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.strip())


@pytest.fixture
def alone(qwen: Path) -> Iterator[None]:
    """One at a time on this machine: two at once take twice the memory, and each twice as long."""
    with qwen.with_name("in-use-by-tests.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.mark.promise("EMB-19")
@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("example", ["leap-year", "todo-js"])
def test_an_example_is_put_right_by_the_embedded_model(example: str, qwen: Path, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    program = Path(sys.executable).with_name("handrail")
    task = environment(
        TASK="make the failing test pass", EXAMPLE=example, **{LOCAL_MODEL_VARIABLE: str(qwen)}
    )
    done = subprocess.run(
        [tmp_path / "examples" / "try", program],
        env=task,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    fixed = tmp_path / ".try" / example
    check = ["sh", "-c", (fixed / "CHECK").read_text()]
    assert subprocess.run(check, cwd=fixed, capture_output=True, check=False).returncode == 0
    for test in EXAMPLES.joinpath(example).glob("*test*"):
        assert (fixed / test.name).read_bytes() == test.read_bytes()
