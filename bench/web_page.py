"""The page in a browser: its first load, and a long session beside a short one."""

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, Response, sync_playwright

from bench.long_session import build
from bench.web_server import serving
from tests.interfaces.web.browser import CHROMIUM_FLAGS, find_chromium

SHORT, LONG = 10, 1_000
RUNS = 7


class Figures(NamedTuple):
    requests: int
    """Of the first load, up to the moment that the page can be used."""
    kilobytes: float
    first_ms: float
    again_ms: float
    """With scripts and styles in the browser's cache."""
    short_ms: float
    long_ms: float


def measure() -> Figures:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.environ["HANDRAIL_HOME"] = str(Path(folder, "home"))
        with serving(Path(folder), [{"text": "Hello.", "when": ""}]) as served:
            workspace = Path(folder, "workspace")
            for turns in (SHORT, LONG):
                build(workspace, f"s_{turns}", turns)
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
            page = browser.new_context().new_page()
            page.goto(f"{served.base}?token={served.token}")  # signs in, and opens the workspace
            base = page.url
            loads = []
            for _ in range(RUNS):
                fresh = browser.new_context(storage_state=page.context.storage_state()).new_page()
                responses = _responses(fresh)
                first = _open_ms(fresh, base)
                size = sum(len(each.body()) for each in responses if each.ok)
                loads.append((len(responses), size / 1000, first, _open_ms(fresh, base)))
                fresh.context.close()
            opened = [
                statistics.median(_open_ms(page, f"{base}s/s_{turns}") for _ in range(RUNS))
                for turns in (SHORT, LONG)
            ]
            browser.close()
    requests, kilobytes, first, again = (statistics.median(each) for each in zip(*loads, strict=True))
    return Figures(int(requests), kilobytes, first, again, *opened)


def _responses(page: Page) -> list[Response]:
    """What the page gets from now on."""
    found: list[Response] = []
    page.on("response", lambda response: found.append(response))  # noqa: PLW0108
    return found


def _open_ms(page: Page, address: str) -> float:
    began = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_selector("html[data-ready]", state="attached")
    return (time.perf_counter() - began) * 1000


def report(found: Figures) -> list[str]:
    ratio = found.long_ms / found.short_ms
    return [
        f"The page: {found.requests} requests, {found.kilobytes:.0f} KB, usable "
        f"after {found.first_ms:.0f} ms, with a full cache after {found.again_ms:.0f}; wanted are 1,000.",
        f"A session of {LONG:,} turns opens in {found.long_ms:.0f} ms, {ratio:.2f} times one of "
        f"{SHORT}; wanted are 1.5.",
    ]


if __name__ == "__main__":
    print("\n".join(report(measure())))
