"""`handrail mcp --http`: the public conformance suite, several clients, and who is let in."""

import socket
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.to_thread import run_sync
from mcp import Client
from mcp_types import ElicitResult

from tests.interfaces.mcp.http_server import TOKEN, http_server, with_token
from tests.interfaces.mcp.test_server import INTENTS, call, refused
from tests.mcp.conformance import run_suite

pytestmark = pytest.mark.anyio
SKIPPED = Path(__file__).parent / "conformance-server.yml"
DEADLINE = 120.0


@pytest.mark.promise("MCPS-6")
async def test_the_public_conformance_suite_passes_but_for_what_is_listed(tmp_path: Path) -> None:
    with http_server(tmp_path) as port:
        async with with_token(port) as url:
            words = ["server", "--url", url, "--suite", "all", "--expected-failures", str(SKIPPED)]
            ran = await run_sync(partial(run_suite, words, tmp_path))
    assert ran.returncode == 0, ran.stdout[-4_000:]
    assert "✓ server-session-lifecycle" in ran.stdout


@pytest.mark.promise("MCPS-7")
@pytest.mark.parametrize(
    ("host", "headers", "status"),
    [
        ("127.0.0.1", "", 401),
        ("127.0.0.1", "authorization: Bearer another-token-0123456789\r\n", 401),
        ("evil.example", f"authorization: Bearer {TOKEN}\r\n", 421),
        ("127.0.0.1", f"authorization: Bearer {TOKEN}\r\norigin: http://evil.example\r\n", 403),
    ],
)
async def test_who_has_no_token_or_comes_from_another_page_is_refused(
    host: str, headers: str, status: int, tmp_path: Path
) -> None:
    body = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    with http_server(tmp_path) as port, socket.create_connection(("127.0.0.1", port), DEADLINE) as wire:
        head = f"POST /mcp HTTP/1.1\r\nhost: {host}:{port}\r\n{headers}content-type: application/json\r\n"
        head += f"accept: application/json, text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n"
        wire.sendall(f"{head}{body}".encode())
        assert wire.recv(100).startswith(f"HTTP/1.1 {status} ".encode())


@pytest.mark.promise("MCPS-5")
async def test_clients_over_http_have_intents_of_their_own_and_are_asked_each_for_itself(
    tmp_path: Path,
) -> None:
    (tmp_path / ".orchestration").mkdir()
    (tmp_path / ".orchestration" / "active_intents.yaml").write_text(INTENTS)
    create = {"changes": [{"form": "create", "path": "notes/a.txt", "text": "a\n"}]}

    async def yes(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"allow": True})

    with http_server(tmp_path) as port, anyio.fail_after(DEADLINE):
        async with (
            with_token(port) as url,
            Client(url, mode="legacy", elicitation_callback=yes) as one,
            Client(url, mode="auto", elicitation_callback=yes) as other,
        ):
            await call(one, "select_active_intent", intent_id="INT-1")
            assert (await refused(other, "edit_files", **create))["reason"] == "missing_intent_id"
            await call(one, "edit_files", **create)
            seen = await call(other, "read", path="notes/a.txt")
            change = {"form": "rewrite", "path": "notes/a.txt", "text": "b\n", "base_hash": seen["hash"]}
            await call(other, "edit_files", changes=[change], intent_id="INT-1")
    assert (tmp_path / "notes" / "a.txt").read_text() == "b\n"
