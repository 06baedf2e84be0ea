"""The page in a browser: its first load, a long session beside a short one, and a long list of tasks."""

import os
import statistics
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, Response, sync_playwright

from bench.long_session import build
from bench.web_server import Serving, serving
from tests.interfaces.web.browser import CHROMIUM_FLAGS, find_chromium

SHORT, LONG = 10, 1_000
FEW_TASKS, TASKS = 10, 10_000
SHOWN_ROWS = 1_000
RUNS = 7
FRAMES = """async ({step}) => {
  const place = document.getElementById("task-scroller");
  place.scrollTop = 0;
  const times = [];
  let last = await new Promise(requestAnimationFrame);
  while (times.length < 120 || (step && place.scrollTop + place.clientHeight < place.scrollHeight - 1)) {
    place.scrollTop += step;
    const now = await new Promise(requestAnimationFrame);
    times.push(now - last);
    last = now;
  }
  return times;
}"""
"""Milliseconds of each frame while the list is scrolled by so many pixels a frame, to its end."""


class Figures(NamedTuple):
    requests: int
    """Of the first load, up to the moment that the page can be used."""
    kilobytes: float
    first_ms: float
    again_ms: float
    """With scripts and styles in the browser's cache."""
    short_ms: float
    long_ms: float
    tasks: "TaskFigures"


class TaskFigures(NamedTuple):
    """Of the place of tasks with a long list, beside a short one and a page at rest."""

    few_ms: float
    many_ms: float
    search_ms: float
    """From the last key to the found tasks, with the pause that waits for more keys."""
    frame_ratio: float
    """The median frame while scrolling, to that at rest."""
    late_frames: float
    """The part of the frames that took more than twice as long as one at rest."""
    worst_frame_ms: float


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
            tasks = _tasks(page, base, served)
            browser.close()
    requests, kilobytes, first, again = (statistics.median(each) for each in zip(*loads, strict=True))
    return Figures(int(requests), kilobytes, first, again, opened[0], opened[1], tasks)


def _tasks(page: Page, base: str, served: Serving) -> TaskFigures:
    add_tasks(served, 0, FEW_TASKS)
    few = statistics.median(_open_ms(page, f"{base}tasks") for _ in range(RUNS))
    add_tasks(served, FEW_TASKS, TASKS)
    many = statistics.median(_open_ms(page, f"{base}tasks") for _ in range(RUNS))
    while page.locator(".task").count() < SHOWN_ROWS:
        before = page.locator(".task").count()
        page.locator("[data-act=task-more]").first.click()
        page.locator(".task").nth(before).wait_for(state="attached")
    rest = statistics.median(page.evaluate(FRAMES, {"step": 0}))
    frames: list[float] = page.evaluate(FRAMES, {"step": 120})
    late = sum(each > 2 * rest for each in frames) / len(frames)
    began = time.perf_counter()
    page.fill("#task-search", "number 1234")
    page.wait_for_selector(".task-group.found")
    found = (time.perf_counter() - began) * 1000
    return TaskFigures(few, many, found, statistics.median(frames) / rest, late, max(frames))


def add_tasks(served: Serving, first: int, end: int) -> None:
    """Tasks of the next year, 200 in a request."""
    today = datetime.now().astimezone().date()
    for start in range(first, end, 200):
        titles = [(n, f"Task number {n}") for n in range(start, min(start + 200, end))]
        made = [
            {"op": "create", "title": title, "scheduled_for": str(today + timedelta(days=n % 365))}
            for n, title in titles
        ]
        served.client.post("api/llm/apply", json={"operations": made}).raise_for_status()


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
    ratio, tasks = found.long_ms / found.short_ms, found.tasks
    return [
        f"The page: {found.requests} requests, {found.kilobytes:.0f} KB, usable "
        f"after {found.first_ms:.0f} ms, with a full cache after {found.again_ms:.0f}; wanted are 1,000.",
        f"A session of {LONG:,} turns opens in {found.long_ms:.0f} ms, {ratio:.2f} times one of "
        f"{SHORT}; wanted are 1.5.",
        f"A list of {TASKS:,} tasks opens in {tasks.many_ms:.0f} ms, {tasks.many_ms / tasks.few_ms:.2f} "
        f"times one of {FEW_TASKS}, wanted are 2; words are found in {tasks.search_ms:.0f} ms.",
        f"Scrolling {SHOWN_ROWS:,} of them: a frame takes {tasks.frame_ratio:.2f} times one at rest, "
        f"{tasks.late_frames:.1%} are late, wanted are 5 %; the worst took {tasks.worst_frame_ms:.0f} ms.",
    ]


if __name__ == "__main__":
    print("\n".join(report(measure())))
