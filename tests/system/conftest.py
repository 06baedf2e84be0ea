"""Workers and their database; the real small models are here as for the tests of their own room."""

from collections.abc import Iterator

import pytest

from tests.models.embedded.conftest import alone, models, qwen, smollm2
from tests.postgres import Server
from tests.system.worker_fleet import FakeModel

__all__ = ["alone", "models", "qwen", "smollm2"]


@pytest.fixture
def place(postgres: Server) -> tuple[str, str]:
    """URL and name of a workspace of which there is nothing yet."""
    found = postgres.workspace()
    return found.url, found.workspace


@pytest.fixture
def model() -> Iterator[FakeModel]:
    found = FakeModel(pause=0.1)
    with found.server:
        yield found
