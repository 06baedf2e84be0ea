"""The public conformance suite against Handrail's client, for both protocol eras."""

import sys

import anyio.to_thread
import pytest

from tests.mcp.client import serve
from tests.mcp.conformance import HERE, run_suite

pytestmark = pytest.mark.anyio


@pytest.mark.promise("SOURCE-19")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_client_does_what_the_revision_requires(
    tmp_path_factory: pytest.TempPathFactory, revision: str
) -> None:
    folder = tmp_path_factory.mktemp("c")  # short: it becomes a part of a socket's address
    async with serve(folder) as socket:
        command = f"{sys.executable} -I -S {HERE / 'forward.py'} {socket}"
        expected = HERE / f"client-{revision}.yml"
        words = [
            "client",
            "--command",
            command,
            "--requirements",
            revision,
            "--timeout",
            "240000",
            "--expected-failures",
            str(expected),
        ]
        done = await anyio.to_thread.run_sync(lambda: run_suite(words, folder))
    assert done.returncode == 0, done.stdout
