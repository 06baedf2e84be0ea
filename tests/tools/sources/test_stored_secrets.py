"""Whose stored secrets are: a source of the same name elsewhere gets none of them."""

import os
from pathlib import Path

import pytest

from handrail.app.app import App, Options, open_app
from handrail.app.extensions.sources import (
    keep_secret,
    missing_variables,
    remove_source,
    sign_in,
    source_rows,
    try_source,
)
from handrail.config.places import find_places
from handrail.config.sources import SourceFolders
from handrail.config.trust import trust_sources
from handrail.protocol.errors import UsageProblem
from tests.tools.sources.oauth_server import OAuthServer, browser, serving
from tests.tools.sources.places import own, shared, words

pytestmark = pytest.mark.anyio


def workspace(folder: Path, **servers: object) -> Options:
    """A workspace whose sources are trusted."""
    folder.mkdir(exist_ok=True)
    shared(folder, **servers)
    places = find_places(os.environ)
    waiting, _ = SourceFolders(places, folder).untrusted()
    trust_sources(places, folder, {source.name: source.sha256 for source, _ in waiting})
    return Options(workspace=folder)


def missing(app: App) -> list[str]:
    return missing_variables(app, app.sources.folders.named("plain"))


@pytest.mark.promise("SOURCE-30")
@pytest.mark.parametrize("expired", [False, True])
@pytest.mark.parametrize("whose", ["yours", "workspace"])
async def test_a_sign_in_is_sent_to_the_address_where_it_was_made_alone(
    tmp_path: Path, whose: str, expired: bool
) -> None:
    """Another workspace names its source like yours, and its own address gets your token."""
    mine, theirs = OAuthServer(), OAuthServer()
    async with serving(mine) as url, serving(theirs) as other:
        if whose == "yours":
            own(os.environ, "guarded", url=url)
            here = Options(workspace=tmp_path)
        else:
            here = workspace(tmp_path / "a", guarded={"url": url})
        async with open_app(here) as app:
            assert (await sign_in(app, "guarded", browser)).ok
            assert [row.signed_in for row in source_rows(app)] == [True]
            if expired:
                credentials = app.model_pool.credentials
                (name,) = credentials.names()
                kept = credentials.get(name) or ""
                credentials.set(name, kept.replace('"expires_at":', '"expires_at":1,"was":'))
        if whose == "yours":
            own(os.environ, "guarded", url=other)
            there = here
        else:
            there = workspace(tmp_path / "b", guarded={"url": other})
        async with open_app(there) as app:
            found = await try_source(app, "guarded")
            signed_in = [row.signed_in for row in source_rows(app)]
    assert theirs.last == ""
    assert "`handrail sources auth guarded` signs in" in found.problem
    assert mine.refreshed == 0
    assert signed_in == [False]


@pytest.mark.promise("SOURCE-30")
async def test_a_workspaces_secret_is_for_what_it_started_when_it_was_stored(tmp_path: Path) -> None:
    program, *arguments = words()
    plain = {"command": program, "args": arguments, "env": {"K": "${SHOP_KEY}"}}
    here = workspace(tmp_path / "a", plain=plain)
    async with open_app(here) as app:
        keep_secret(app, "plain", "SHOP_KEY", "secret-1234567")
        assert missing(app) == []
    async with open_app(workspace(tmp_path / "b", plain=plain)) as app:
        assert missing(app) == ["SHOP_KEY"]
        assert "needs SHOP_KEY" in (await try_source(app, "plain")).problem
    workspace(tmp_path / "a", plain={**plain, "args": ["evil.py"]})
    async with open_app(here) as app:
        assert missing(app) == ["SHOP_KEY"]
    workspace(tmp_path / "a", plain=plain)
    async with open_app(here) as app:
        assert missing(app) == []
        with pytest.raises(UsageProblem, match="its secrets are removed"):
            remove_source(app, "plain")
        assert app.model_pool.credentials.names() == []
    own(os.environ, env={"K": "${SHOP_KEY}"})
    async with open_app(here) as app:  # yours now, which hides the workspace's
        keep_secret(app, "plain", "SHOP_KEY", "secret-7654321")
        assert app.model_pool.credentials.names() == ["source/plain/SHOP_KEY"]
