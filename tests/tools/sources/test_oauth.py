"""Signing in at an HTTP source, against a real authorization server."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response

from handrail.app.app import App, Options, open_app
from handrail.app.extensions.sources import SourceTrial, sign_in, try_source
from handrail.protocol.errors import UsageProblem
from tests.tools.sources.oauth_server import OAuthServer, browser, serving
from tests.tools.sources.places import own

pytestmark = pytest.mark.anyio


class SlowToRefresh(OAuthServer):
    """Keeps a new token back until another process has given up, if it does."""

    def __init__(self) -> None:
        super().__init__()
        self.given_up = anyio.Event()

    async def tokens_endpoint(self, request: Request) -> Response:
        answer = await super().tokens_endpoint(request)
        if self.refreshed and answer.status_code == 200:
            with anyio.move_on_after(0.5):
                await self.given_up.wait()
        return answer


@asynccontextmanager
async def application(folder: Path) -> AsyncIterator[App]:
    async with open_app(Options(workspace=folder)) as app:
        yield app


async def signed_in(app: App) -> SourceTrial:
    return await sign_in(app, "guarded", browser)


@pytest.mark.promise("SOURCE-18")
async def test_a_sign_in_is_stored_refreshed_and_used_by_the_next_process(tmp_path: Path) -> None:
    server = OAuthServer(lifetime=31)  # refreshed at once: the last 30 seconds are not used
    async with serving(server) as url:
        own(os.environ, "guarded", url=url)
        async with application(tmp_path) as app:
            before = await try_source(app, "guarded")
            assert not before.ok
            assert "`handrail sources auth guarded` signs in" in before.problem
            found = await signed_in(app)
            assert found.ok, found.problem
            assert [tool.name for tool in found.tools] == ["whoami"]
            credentials = app.model_pool.credentials
            kept = credentials.get("source/guarded/sign-in") or ""
        assert len(server.clients) == 1
        server.expire()
        async with application(tmp_path) as app:
            app.model_pool.credentials.set(
                "source/guarded/sign-in", kept.replace('"expires_at":', '"expires_at":1,"was":')
            )
            again = await try_source(app, "guarded")
            assert again.ok, again.problem
        assert server.refreshed >= 1
    files = [path for path in Path(os.environ["HANDRAIL_HOME"]).rglob("*") if path.is_file()]
    stored = b"".join(path.read_bytes() for path in files)
    assert not any(token.encode() in stored for token in server.issued)


@pytest.mark.promise("SOURCE-18")
async def test_a_token_that_another_process_has_refreshed_is_used(tmp_path: Path) -> None:
    """A refresh token counts once: who keeps the old one is signed out."""
    async with serving(OAuthServer(lifetime=30)) as url:  # refreshed before each request
        own(os.environ, "guarded", url=url)
        async with application(tmp_path) as first, application(tmp_path) as second:
            assert (await signed_in(first)).ok
            for app in (first, second, first):
                found = await try_source(app, "guarded")
                assert found.ok, found.problem


@pytest.mark.promise("SOURCE-31")
async def test_two_processes_that_need_a_new_token_at_once_refresh_it_once(tmp_path: Path) -> None:
    """Otherwise both send the same refresh token, and the second is signed out."""
    server, found = SlowToRefresh(), list[SourceTrial]()
    async with serving(server) as url:
        own(os.environ, "guarded", url=url)
        async with application(tmp_path) as first, application(tmp_path) as second:
            assert (await signed_in(first)).ok
            credentials = first.model_pool.credentials
            kept = credentials.get("source/guarded/sign-in") or ""
            await first.sources.forget("guarded")
            expired = kept.replace('"expires_at":', '"expires_at":1,"was":')
            credentials.set("source/guarded/sign-in", expired)

            async def use(app: App) -> None:
                found.append(await try_source(app, "guarded"))
                server.given_up.set()

            async with anyio.create_task_group() as tasks:
                for app in (first, second):
                    tasks.start_soon(use, app)
    assert [each.problem for each in found] == ["", ""]
    assert server.refreshed == 1


async def test_an_expired_sign_in_that_cannot_be_refreshed_says_how_to_sign_in(tmp_path: Path) -> None:
    server = OAuthServer()
    async with serving(server) as url:
        own(os.environ, "guarded", url=url)
        async with application(tmp_path) as app:
            assert (await signed_in(app)).ok
        server.expire()
        server.refresh.clear()
        async with application(tmp_path) as app:
            found = await try_source(app, "guarded")
            assert not found.ok
            assert "`handrail sources auth guarded` signs in again" in found.problem


async def test_a_redirect_with_another_state_does_not_sign_in(tmp_path: Path) -> None:
    async def forged(address: str) -> None:
        redirect = httpx2.URL(address).params["redirect_uri"]
        async with httpx2.AsyncClient() as client:
            await client.get(redirect, params={"code": "stolen", "state": "forged"})

    async with serving(OAuthServer()) as url:
        own(os.environ, "guarded", url=url)
        async with application(tmp_path) as app:
            with pytest.raises(UsageProblem, match="State parameter mismatch"):
                await sign_in(app, "guarded", forged)
            assert not (await try_source(app, "guarded")).ok
