from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.knowledge.base import KnowledgeBase
from tests.knowledge.samples import WORDS


@pytest.fixture
def base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    opened = KnowledgeBase(tmp_path / "kb", WORDS)
    yield opened
    opened.close()
