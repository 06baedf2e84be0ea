"""A real model, so small that a test can wait for it: SmolLM2, fetched once for all runs of the tests."""

import os
from pathlib import Path

import anyio
import pytest

from handrail.models.embedded.download import download_model
from handrail.models.embedded.model_files import SMOLLM2


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
