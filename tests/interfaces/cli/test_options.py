import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.app.app import Options
from handrail.interfaces.cli.options import opened_app


@pytest.fixture
def not_collecting() -> Iterator[None]:
    """As while modules are imported."""
    gc.disable()
    yield
    gc.unfreeze()
    gc.enable()


@pytest.mark.anyio
@pytest.mark.usefixtures("not_collecting")
async def test_an_open_application_collects_its_garbage(tmp_path: Path) -> None:
    async with opened_app(Options(workspace=tmp_path)):
        assert gc.isenabled()
