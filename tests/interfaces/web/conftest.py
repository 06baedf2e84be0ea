"""A real browser for tests of the page: one for each worker, with a fresh context for each test.

Playwright keeps an event loop running in its thread, in which no other test could run one. So the browser and
the body of every test that uses it have a thread of their own.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from tests.interfaces.web.browser import CHROMIUM_FLAGS, find_chromium
from tests.interfaces.web.site import Site
from tests.models.embedded.conftest import alone, qwen

__all__ = ["alone", "qwen"]

DEADLINE_MS = 60_000
TEST_SECONDS = 300


@pytest.fixture(scope="session")
def browser_thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, thread_name_prefix="browser") as thread:
        yield thread


@pytest.fixture(scope="session")
def browser(browser_thread: ThreadPoolExecutor) -> Iterator[Browser]:
    def start() -> tuple[Playwright, Browser]:
        expect.set_options(timeout=DEADLINE_MS)
        playwright = sync_playwright().start()
        return playwright, playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)

    playwright, browser = browser_thread.submit(start).result(TEST_SECONDS)
    yield browser
    browser_thread.submit(browser.close).result(TEST_SECONDS)
    browser_thread.submit(playwright.stop).result(TEST_SECONDS)


@pytest.fixture
def page(browser: Browser, browser_thread: ThreadPoolExecutor) -> Iterator[Page]:
    """An empty page of 1,440 by 900; errors of the page's own scripts fail the test."""
    errors: list[str] = []

    def start() -> Page:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        context.set_default_timeout(DEADLINE_MS)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        return page

    page = browser_thread.submit(start).result(TEST_SECONDS)
    yield page
    browser_thread.submit(page.context.close).result(TEST_SECONDS)
    assert not errors


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A workspace with a few files; `start` serves it."""
    site = Site(tmp_path / "shop")
    yield site
    site.stop()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if "page" not in pyfuncitem.fixturenames:
        return None
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    thread = pyfuncitem.funcargs["browser_thread"]
    assert isinstance(thread, ThreadPoolExecutor)
    thread.submit(pyfuncitem.obj, **arguments).result(TEST_SECONDS)
    return True
