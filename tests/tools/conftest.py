"""Benches that are closed after the test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tools.calls import Bench, open_bench


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Make a bench with a mode and options of one's own."""
    made: list[Bench] = []

    def make(*arguments: Any, **options: Any) -> Bench:
        made.append(open_bench(tmp_path, *arguments, **options))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    """A bench in mode auto, where edits need no asking."""
    return make_bench()
