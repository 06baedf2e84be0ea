"""Who is answered: nobody without the token, no other origin, no other host; and what every answer says."""

import os
from pathlib import Path

import anyio
import httpx2
import pytest

from handrail.config.places import find_places
from handrail.interfaces.http.access import Access, stored_token
from handrail.interfaces.http.api.table import ENDPOINTS
from handrail.protocol.errors import ConfigProblem
from tests.interfaces.http.serving import TOKEN, Served, client_of, serving

pytestmark = pytest.mark.anyio


async def cookie_of(served: Served) -> dict[str, str]:
    """The cookie that a browser gets for the printed address."""
    async with httpx2.AsyncClient(base_url=served.url) as browser:
        response = await browser.get("/", params={"token": TOKEN})
        assert response.status_code == 303
        return {"cookie": response.headers["set-cookie"].partition(";")[0]}


@pytest.mark.promise("HTTP-1")
async def test_no_path_answers_without_the_token(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, httpx2.AsyncClient(base_url=served.url) as stranger:
        paths = [("GET", "/"), ("GET", "/openapi.json"), ("GET", "/nothing"), ("GET", "/static/page.css")]
        paths += [(each.method, f"/api{each.path}") for each in ENDPOINTS]
        for method, path in paths:
            for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": "handrail=x"}):
                response = await stranger.request(method, path, headers=headers)
                assert response.status_code == 401, path
        assert (await stranger.get("/", params={"token": "wrong"})).status_code == 401
        assert (await stranger.post("/api/sessions", params={"token": TOKEN})).status_code == 401


@pytest.mark.promise("HTTP-1")
async def test_printed_address_gives_a_cookie_and_takes_the_token_out_of_the_address(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, httpx2.AsyncClient(base_url=served.url) as browser:
        response = await browser.get("/some/place", params={"a": "1", "token": TOKEN})
        assert (response.status_code, response.headers["location"]) == (303, "/some/place?a=1")
        cookie = response.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert TOKEN not in cookie
        name, _, value = cookie.partition(";")[0].partition("=")
        response = await browser.get("/api/sessions", headers={"cookie": f"other=1; {name}={value}"})
        assert response.status_code == 200
        for wrong in (f"{name}={value}x", f"{name}=", f"other={value}"):
            assert (await browser.get("/api/sessions", headers={"cookie": wrong})).status_code == 401
        host = f"Host: 127.0.0.1:{served.server.access.port}"
        evil = await raw(served, f"GET //evil.example/x?token={TOKEN} HTTP/1.1\r\n{host}\r\n\r\n".encode())
        assert b"\r\nlocation: /evil.example/x\r\n" in evil


@pytest.mark.promise("HTTP-2")
async def test_another_host_is_refused_whatever_it_knows(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        port = served.server.access.port
        for host in (
            "evil.example",
            f"evil.example:{port}",
            "127.0.0.1",
            f"127.0.0.1:{port + 1}",
            "",
            f"127.0.0.1.evil.example:{port}",
            f"[::2]:{port}",
        ):
            async with client_of(served.server, host=host) as client:
                assert (await client.get("/api/sessions")).status_code in (400, 421), host
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
            async with client_of(served.server, host=host) as client:
                assert (await client.get("/api/sessions")).status_code == 200, host


@pytest.mark.promise("HTTP-2")
async def test_pages_of_another_origin_read_and_command_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        cookie = await cookie_of(served)
        port = served.server.access.port
        foreign = [
            {"origin": "http://evil.example"},
            {"origin": "null"},
            {"origin": f"http://127.0.0.1:{port + 1}"},
            {"origin": f"https://127.0.0.1:{port}"},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
        ]
        async with httpx2.AsyncClient(base_url=served.url, headers=cookie) as browser:
            for headers in foreign:
                for method in ("GET", "POST", "OPTIONS", "DELETE"):
                    response = await browser.request(method, "/api/sessions", headers=headers)
                    assert response.status_code == 403, headers
                    assert "access-control-allow-origin" not in response.headers
            # A form says neither: a cookie alone commands nothing.
            form = {"content-type": "text/plain"}
            response = await browser.post("/api/sessions", content='{"mode": "auto"}', headers=form)
            assert response.status_code == 403
            own = {"origin": served.url, "sec-fetch-site": "same-origin"}
            response = await browser.post("/api/sessions", json={}, headers=own)
            assert response.status_code == 201
        assert len((await served.get("/sessions"))["sessions"]) == 1


@pytest.mark.promise("HTTP-3")
async def test_every_answer_forbids_scripts_of_others_frames_and_guessed_types(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, httpx2.AsyncClient(base_url=served.url) as stranger:
        answers = [
            await served.client.get("/"),
            await served.client.get("/api/sessions"),
            await served.client.get("/api/nothing"),
            await served.client.get("/api/sessions/s_none/events"),
            await served.client.post("/api/sessions", content="x"),
            await stranger.get("/"),
            await stranger.get("/", headers={"host": "evil.example"}),
        ]
        for answer in answers:
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert answer.headers["cache-control"] == "no-store"
            assert "server" not in answer.headers


def test_token_is_kept_for_this_user_alone_and_can_be_renewed(home: Path) -> None:
    places = find_places(os.environ)
    token = stored_token(places)
    path = home / "handrail" / "server-token"
    assert path.stat().st_mode & 0o777 == 0o600
    assert stored_token(places) == token
    assert stored_token(places, renew=True) != token
    path.chmod(0o644)
    with pytest.raises(ConfigProblem, match="--new-token"):
        stored_token(places)


@pytest.mark.parametrize(
    ("bound", "host", "allowed"),
    [
        ("127.0.0.1", "127.0.0.1:8000", True),
        ("127.0.0.1", "192.168.0.7:8000", False),
        ("0.0.0.0", "192.168.0.7:8000", True),  # noqa: S104
        ("0.0.0.0", "evil.example:8000", False),  # noqa: S104
        ("::", "[fe80::1]:8000", True),
        ("box.local", "box.local:8000", True),
        ("box.local", "other.local:8000", False),
    ],
)
def test_names_are_answered_only_where_no_rebinding_can_use_them(
    bound: str, host: str, allowed: bool
) -> None:
    assert Access(TOKEN, bound, 8000).allows_host(host) is allowed


async def test_a_request_without_or_with_two_hosts_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        good = f"Host: 127.0.0.1:{served.server.access.port}\r\n"
        for hosts in ("", good * 2):
            head = f"GET /api/sessions HTTP/1.1\r\n{hosts}Authorization: Bearer {TOKEN}\r\n\r\n"
            assert (await raw(served, head.encode())).split()[1] in (b"400", b"421")


async def raw(served: Served, data: bytes) -> bytes:
    async with await anyio.connect_tcp("127.0.0.1", served.server.access.port) as stream:
        await stream.send(data)
        with anyio.fail_after(60):
            return await stream.receive()
