"""Limits: bodies, headers, connections and slow clients; and addresses that lead nowhere."""

import json
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest

from handrail.interfaces.http import connection, endpoint
from handrail.interfaces.http.api.table import ENDPOINTS
from handrail.interfaces.http.endpoint import EVENT_STREAM, PARAMETER
from handrail.interfaces.web.places import PLACE_PAGES
from tests.interfaces.http.serving import DEADLINE, TOKEN, Served, serving

pytestmark = pytest.mark.anyio


def head(served: Served, first: str, **headers: str) -> bytes:
    wanted = {"host": f"127.0.0.1:{served.server.access.port}", "authorization": f"Bearer {TOKEN}"} | headers
    lines = [first, *(f"{name}: {value}" for name, value in wanted.items())]
    return "\r\n".join([*lines, "", ""]).encode()


async def answer_to(served: Served, *parts: bytes) -> bytes:
    """All that the server sends back, until it closes the connection or has answered."""
    async with await anyio.connect_tcp("127.0.0.1", served.server.access.port) as stream:
        with anyio.fail_after(DEADLINE):
            try:
                for part in parts:
                    await stream.send(part)
                return await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return b""


@pytest.mark.promise("HTTP-10")
async def test_oversized_bodies_are_refused_before_they_are_read(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        large = json.dumps({"mode": "ask", "intent": "x" * endpoint.MAX_BODY})
        response = await served.client.post(
            "/api/sessions", content=large, headers={"content-type": "application/json"}
        )
        assert (response.status_code, response.json()["error"]["code"]) == (413, "too_large")
        typed = {"content-type": "application/json"}
        declared = head(served, "POST /api/sessions HTTP/1.1", **typed, **{"content-length": str(10**15)})
        assert (await answer_to(served, declared)).startswith(b"HTTP/1.1 413")
        chunked = head(served, "POST /api/sessions HTTP/1.1", **typed, **{"transfer-encoding": "chunked"})
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        assert (await answer_to(served, chunked, *[chunk] * 20)).startswith(b"HTTP/1.1 413")
        assert (await served.get("/sessions"))["sessions"] == []


@pytest.mark.promise("HTTP-10")
async def test_oversized_headers_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for size in (40_000, 400_000):
            sent = head(served, "GET /api/sessions HTTP/1.1", **{"x-large": "a" * size})
            assert (await answer_to(served, sent[:30_000], sent[30_000:])).startswith(b"HTTP/1.1 431"), size
        long = head(served, f"GET /api/sessions?search={'a' * 400_000} HTTP/1.1")
        assert (await answer_to(served, long[:30_000], long[30_000:])).startswith(b"HTTP/1.1 431")


@pytest.mark.promise("HTTP-10")
async def test_client_that_is_too_slow_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEADER_SECONDS", 0.1)
    monkeypatch.setattr(endpoint, "BODY_SECONDS", 0.1)
    async with serving(tmp_path) as served:
        assert await answer_to(served, b"GET / HTTP/1.1\r\nHost:") == b""
        assert await answer_to(served) == b""
        typed = {"content-type": "application/json", "content-length": "10"}
        for path in ("/api/sessions", "/w/workspace/viewer"):
            sent = head(served, f"POST {path} HTTP/1.1", **typed)
            assert (await answer_to(served, sent, b"{")).startswith(b"HTTP/1.1 408"), path


@pytest.mark.promise("HTTP-10")
async def test_too_many_connections_are_refused_and_then_answered_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_CONNECTIONS", 50)
    async with serving(tmp_path) as served:
        port = served.server.access.port
        idle = [await anyio.connect_tcp("127.0.0.1", port) for _ in range(60)]
        refused = await answer_to(served, head(served, "GET /api/sessions HTTP/1.1"))
        assert refused.startswith(b"HTTP/1.1 503")
        for each in idle:
            await each.aclose()
        with anyio.fail_after(DEADLINE):
            while not (await answer_to(served, head(served, "GET /api/sessions HTTP/1.1"))).startswith(
                b"HTTP/1.1 200"
            ):
                pass


async def test_body_of_another_type_or_no_json_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        post = served.client.post
        for given in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            response = await post("/api/sessions", content="{}", headers={"content-type": given})
            assert response.status_code == 415
        for wrong in (b"", b"{", b"\xff", b'{"mode": "ask"} x', b"[" * 100_000, b"null", b'"\\ud800"'):
            response = await post(
                "/api/sessions", content=wrong, headers={"content-type": "application/json"}
            )
            assert response.status_code == 400, wrong[:20]
            assert response.json()["error"]["code"] == "invalid_request"


async def test_half_of_a_surrogate_pair_is_refused_and_not_stored(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await served.session()
        typed = {"content-type": "application/json"}
        for path, body in (
            ("messages", b'{"text": "\\ud800"}'),
            ("commands", b'{"type":"rename","title":"\\ud800"}'),
        ):
            response = await served.client.post(
                f"/api/sessions/{session}/{path}", content=body, headers=typed
            )
            assert response.status_code in (400, 409)


async def test_unknown_paths_and_methods_say_so_in_json(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for path in ("/api", "/api/nothing", "/api/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/a//b"):
            response = await served.client.get(path)
            assert response.status_code == 404, path
            assert response.json()["error"]["code"] == "not_found"
        response = await served.client.delete("/api/sessions")
        assert response.status_code == 405
        assert set(response.headers["allow"].split(", ")) == {"GET", "POST"}
        assert (await served.client.head("/api/sessions")).status_code == 405


HOSTILE = ("../../etc/passwd", "\0", "9" * 25, "-1", "²", "' OR 1=1 --", "<b>", "a" * 3_000)


async def test_no_id_and_no_number_of_a_request_ends_in_a_bug(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        known = {"session": await served.session(), "workspace": "workspace"}
        paths = [(each.method, f"/api{each.path}") for each in ENDPOINTS if each.returns != EVENT_STREAM]
        paths += [("GET", f"/w/{{workspace}}{path}") for path in PLACE_PAGES]
        for method, path in paths:
            names = PARAMETER.findall(path)
            for asked in names:
                for wrong in HOSTILE:
                    given = {name: known.get(name, "x") for name in names} | {asked: quote(wrong, safe="")}
                    response = await served.client.request(method, path.format(**given))
                    assert 400 <= response.status_code < 500, (method, path, given)
        for path in PLACE_PAGES:
            if "{" not in path:
                for name in ("session", "path", "status", "number", "start"):
                    for wrong in HOSTILE:
                        response = await served.client.get(f"/w/workspace{path}", params={name: wrong})
                        assert response.status_code < 500, (path, name, wrong)
