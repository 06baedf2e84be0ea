"""The place of checks, with a real project and its real tools."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from handrail.app.builds.check_run import CheckResult, CheckRun, Issue, Verdict
from handrail.app.builds.verify import VerifyOptions
from handrail.interfaces.web.places.checks import MAX_ISSUES, render_run
from tests.interfaces.web.site import Site, ready
from tests.interfaces.web.test_safety import problems
from tests.tools.sandbox.machine import offer
from tests.verification.projects import best_sandbox, python_project, write

COPIES = best_sandbox().name == "bubblewrap"
PYPROJECT = '[project]\nname = "shop"\nversion = "1"\n[tool.ruff]\n[tool.pytest.ini_options]\n'
CART = "def total(prices):\n    return sum(prices)\n\n\ndef tax(price):\n    return price // 4\n"
TESTS = """\
from shop.cart import tax, total


def test_total():
    assert total([1, 2]) == 3


def test_nothing():
    assert total([]) == 0


def test_tax():
    assert tax(10) == 2.5
"""
PROJECT = {
    "pyproject.toml": PYPROJECT,
    ".gitignore": ".venv\n__pycache__\n",
    "src/shop/__init__.py": "",
    "src/shop/cart.py": CART,
    "tests/test_cart.py": TESTS,
}
BROKEN = "import os\n\n\n" + CART.replace("sum(prices)", "sum(prices[1:])")


@pytest.mark.promise("WEB-16")
def test_checks_run_live_and_tell_the_change_from_what_was_broken_before(site: Site, page: Page) -> None:
    offer(best_sandbox())
    python_project(site.root, PROJECT)
    write(site.root, {"src/shop/cart.py": BROKEN})
    site.open(page, {"text": "Hello."}, path="checks", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    expect(page.locator(".checks-found tbody tr")).to_have_count(2)
    expect(page.locator(".check-live")).to_contain_text("Nothing has run yet")
    expect(page.get_by_role("button", name="Stop")).to_be_disabled()
    page.get_by_role("button", name="Run all").click()
    expect(page.locator(".verdict.run")).to_contain_text("Running")
    expect(page.locator(".check-row .dot.run").first).to_be_visible()
    verdict = page.locator(".verdict.bad")
    expect(verdict).to_contain_text("Failed")
    expect(page.locator("#checks-said")).to_contain_text("Failed")
    change = page.locator(".issue-group").first
    title = "Broken by the change" if COPIES else "Issues"
    expect(change.locator("summary")).to_contain_text(title)
    expect(change.locator(".issue-file h3")).to_contain_text(["tests/test_cart.py", "src/shop/cart.py"])
    expect(change.locator(".issue").first).to_contain_text("test_total")
    expect(change.locator(".suspects").first).to_contain_text("src/shop/cart.py:")
    expect(change.locator(".issue").last).to_contain_text("F401")
    if COPIES:
        before = page.locator(".issue-group", has_text="Was there before")
        expect(before.locator(".issue")).to_be_hidden()
        before.locator("summary").click()
        expect(before.locator(".issue")).to_contain_text("test_tax")
    found = problems(page, "light")
    page.context.add_cookies([{"name": "handrail_theme", "value": "dark", "url": site.place("")}])
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    ready(page)
    expect(page.locator(".verdict.bad")).to_be_visible()
    found += problems(page, "dark")
    assert not found, "\n".join(found)
    assert page.evaluate("document.querySelector('.place').scrollWidth <= innerWidth")

    write(site.root, {"src/shop/cart.py": CART.replace("price // 4", "price / 4")})
    page.get_by_role("button", name="Run tests").click()
    expect(page.locator(".verdict.ok")).to_contain_text("Passed: tests passed")
    expect(page.locator(".issue")).to_have_count(0)


@pytest.mark.promise("WEB-16")
def test_what_could_not_be_checked_is_not_green_and_hostile_output_is_text(
    site: Site, page: Page, home: Path
) -> None:
    offer(best_sandbox())
    command = "[[checks.commands]]\nname = 'own'\nkind = 'lint'\nrun = 'sh own.sh'\nseconds = 60\n"
    write(home / "handrail", {"config.toml": f"[checks]\ndetect = false\n{command}"})
    write(site.root, {"own.sh": "echo 'src/cart.py:1: error: <img src=x onerror=window.ran=1>'; exit 1\n"})
    site.open(page, {"text": "Hello."}, path="checks")
    page.get_by_role("button", name="Run all").click()
    expect(page.locator(".issue .message")).to_contain_text("<img src=x")
    assert page.evaluate("window.ran") is None
    write(site.root, {"own.sh": "kill -9 $$\n"})
    page.get_by_role("button", name="Run all").click()
    expect(page.locator(".verdict.off")).to_contain_text("Unverified")
    expect(page.locator(".check-row .dot")).to_have_class("dot off")
    write(site.root, {"own.sh": "sleep 1000\n"})
    page.get_by_role("button", name="Run all").click()
    expect(page.locator(".check-row .dot.run")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".verdict.off")).to_contain_text("Stopped")


def test_project_without_checks_is_told_what_the_place_is_for(site: Site, page: Page) -> None:
    site.open(page, {"text": "Hello."})
    page.get_by_role("link", name="Checks").click()
    expect(page.locator(".empty")).to_contain_text("No checks were found here")


@pytest.mark.promise("WEB-16")
@pytest.mark.anyio
async def test_flaky_tests_are_a_group_of_their_own_and_long_lists_are_cut() -> None:
    found = [Issue("lint", "low", f"issue {number}", path="a.py", origin="before") for number in range(500)]
    flaky = Issue("tests", "low", "timeout", test="test_net", origin="flaky")
    run = CheckRun(VerifyOptions())
    run.verdict = Verdict("passed", (CheckResult("tests", "tests", "passed", (flaky, *found)),), base="HEAD")
    shown = render_run(run)
    assert "Broken by the change" not in shown
    assert shown.index("Flaky: failed, then passed alone") < shown.index("test_net")
    assert shown.index("test_net") < shown.index("Was there before")
    assert f"{500 - MAX_ISSUES} more" in shown
    assert shown.count('class="issue"') == MAX_ISSUES + 1
