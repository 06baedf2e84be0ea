import pytest

from tests.tools.sandbox.machine import working


@pytest.fixture(autouse=True, scope="session")
def looked() -> None:
    """Look for sandboxes before the loop of the first test runs."""
    working()
