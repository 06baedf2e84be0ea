"""The page's place Sources: rights and health of each, the test of its connection, and trust by a click."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from handrail.config.credentials import Credentials
from handrail.config.places import find_places
from tests.interfaces.web.site import Site, ready
from tests.tools.sources.places import shared, words


@pytest.mark.promise("SOURCE-23")
def test_a_source_is_trusted_as_it_was_shown_and_its_connection_is_tested(site: Site, page: Page) -> None:
    program, *arguments = words()
    shared(site.root, plain={"command": program, "args": arguments, "description": "A <b>plain</b> one."})
    site.open(page, {"text": "Hello."}, path="sources")
    tile = page.locator("section.tile").first
    expect(tile).to_contain_text("A <b>plain</b> one.")
    expect(tile).to_contain_text("in the sandbox; network: yes; writes: nothing")
    tile.get_by_role("button", name="Trust it").click()
    expect(page.get_by_role("button", name="Test connection")).to_be_visible()
    page.get_by_role("button", name="Test connection").click()
    expect(page.locator(".trial")).to_contain_text("Works: plain 1", timeout=60_000)
    expect(page.locator(".trial")).to_contain_text("Say it again.")
    expect(page.locator(".health")).to_have_text("ready")
    page.reload()
    ready(page)
    expect(page.locator("section.tile").first).to_contain_text("ready")
    page.get_by_role("button", name="github").click()
    page.get_by_label("GITHUB_TOKEN").fill("ghp-of-this-test")
    page.get_by_role("button", name="Store").click()
    github = page.locator("section.tile", has_text="Issues, pull requests")
    expect(github.get_by_label("GITHUB_TOKEN")).to_have_count(0)
    github.get_by_role("button", name="Remove").click()
    expect(github).to_have_count(1)
    github.get_by_role("button", name="Yes, remove it with its secrets").click()
    expect(github).to_have_count(0)
    assert Credentials(find_places(os.environ), os.environ).names() == []
    assert Path(site.root, ".mcp.json").exists()


@pytest.mark.promise("SOURCE-24")
def test_all_that_is_trusted_with_a_source_is_shown_where_it_is_trusted(site: Site, page: Page) -> None:
    """What is not on the tile would be trusted unseen: variables, secrets, calls without a question."""
    program = site.root / "serve.py"
    program.write_text("pass")
    stdio = {
        "command": "python3",
        "args": ["serve.py", "-c", "# harmless\nevil()"],
        "env": {"LD_PRELOAD": "<b>x.so</b>", "K": "${SOME_API_KEY}\u202e"},
        "handrail": {"tools": {"unasked": ["*"]}, "trust_annotations": True, "writes": ["workspace"]},
    }
    http: dict[str, object] = {
        "url": "https://there.example/mcp",
        "headers": {"Authorization": "Bearer ${OTHER_API_KEY}"},
    }
    http["handrail"] = {"oauth": {"scopes": ["all"]}}
    shared(site.root, local=stdio, far=http)
    site.open(page, {"text": "Hello."}, path="sources")
    local = page.locator("section.tile", has_text="local").locator(".rights li")
    expect(local).to_have_text(
        [
            "runs: python3 serve.py -c '# harmless\\nevil()'",
            "LD_PRELOAD = <b>x.so</b>",
            "K = ${SOME_API_KEY}<U+202E>",
            "gets your variables or secrets: SOME_API_KEY",
            "in the sandbox; network: yes; writes: workspace",
            "its tools run without asking where it says that they only read",
            "without asking in mode auto and sandbox: *",
            "serve.py: 4 bytes, run as it is now",
        ]
    )
    far = page.locator("section.tile", has_text="far").locator(".rights li")
    expect(far).to_have_text(
        [
            "reaches: https://there.example/mcp",
            "Authorization = Bearer ${OTHER_API_KEY}",
            "gets your sign-in there for all, once you have signed in",
            "gets your variables or secrets: OTHER_API_KEY",
        ]
    )
    told = page.request.get(site.place("trust").replace("/w/", "/api/w/"))
    rights = {each["name"]: each["rights"] for each in told.json()["sources"]}
    assert "gets your variables or secrets: OTHER_API_KEY" in rights["far"]
    assert len(rights["local"]) == 8
