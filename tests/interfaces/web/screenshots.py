"""Draws the pictures of the page in docs/images: `make screenshots`."""

import os
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.interfaces.web.browser import CHROMIUM_FLAGS, find_chromium
from tests.interfaces.web.site import Site, edit, ended, read, ready, send
from tests.interfaces.web.test_checks import BROKEN, PROJECT
from tests.verification.projects import python_project, write

DEADLINE_MS = 120_000
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 760}
EXPLANATION = (
    "The test expects the discount before the tax. `total()` in `src/cart.py:3` applies it after, "
    "so the discount also reduces the tax."
)
DONE = """\
Done: the discount is applied before the tax.

```mermaid
flowchart LR
  A[items] --> B(subtotal)
  B --> C{discount?}
  C -->|yes| D[reduce]
  C -->|no| E([add tax])
  D --> E
```

| case | before | now |
| --- | ---: | ---: |
| no discount | 12.00 | 12.00 |
| half off | 6.00 | 7.00 |
"""


def draw(page: Page, site: Site, folder: Path) -> None:
    def take(name: str, theme: str, size: dict[str, int]) -> None:
        page.context.add_cookies([{"name": "handrail_theme", "value": theme, "url": site.place("")}])
        page.set_viewport_size(size)  # type: ignore[arg-type]
        page.reload()
        ready(page)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=folder / f"{name}.png")

    send(page, "why does test_totals fail? fix it")
    expect(page.locator(".card.change.waiting")).to_be_visible()
    take("page-question", "light", WIDE)
    page.locator("[data-act=approve]").first.click()
    ended(page)
    take("page-dark", "dark", WIDE)
    take("page-narrow", "light", NARROW)
    session = page.url.rpartition("/")[2]
    page.goto(site.place(f"s/{session}/changes/1"))
    take("page-change", "light", {"width": 1280, "height": 420})
    python_project(site.root, PROJECT)
    write(site.root, {"src/shop/cart.py": BROKEN})
    page.goto(site.place("checks"))
    page.get_by_role("button", name="Run all").click()
    expect(page.locator(".verdict.bad")).to_be_visible(timeout=DEADLINE_MS)
    take("page-checks", "light", WIDE)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        os.environ.update(HOME=home, HANDRAIL_HOME=f"{home}/handrail", HANDRAIL_AUTO_ROUTE="off")
        site = Site(Path(home) / "shop")
        old, new = "(subtotal + tax) * (1 - discount)", "subtotal * (1 - discount) + tax"
        change = {"text": EXPLANATION, "calls": [edit(site, "src/cart.py", old, new)]}
        looks = [read("src/cart.py"), {"name": "search", "arguments": {"pattern": "def total"}}]
        usage = {"input_tokens": 2184, "output_tokens": 156}
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
        page = browser.new_context(reduced_motion="reduce").new_page()
        try:
            site.open(page, {"calls": looks}, {**change, "usage": usage}, {"text": DONE, "usage": usage})
            draw(page, site, folder)
        finally:
            browser.close()
            site.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
