"""Real models, fetched once for all runs of the tests: SmolLM2 for the protocol, Qwen for real answers."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from handrail.models.embedded.download import download_model
from handrail.models.embedded.model_files import SMOLLM2

FETCH = """
import sys
from pathlib import Path

import anyio

from handrail.models.embedded.download import download_model
from handrail.models.embedded.model_files import QWEN

print(anyio.run(download_model, QWEN, Path(sys.argv[1]), lambda _: None))
"""


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The file, in the user's cache and outside the repository."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache) / "handrail-models"
    return anyio.run(download_model, SMOLLM2, folder, lambda _: None)


@pytest.fixture
def models(home: Path, smollm2: Path) -> Path:
    """This test's own folder of models, with the file in its place."""
    folder = home / "handrail" / "models"
    folder.mkdir(parents=True, mode=0o700)
    (folder / smollm2.name).symlink_to(smollm2)
    return folder


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
