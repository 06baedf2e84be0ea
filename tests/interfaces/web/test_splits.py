"""The place of splits: plan one, start it, see it run, settle its conflict, and undo it."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.app.splits.splitting import CHECKS, answer, edited
from tests.interfaces.web.site import Site
from tests.pipelines.build.builds import COPIES
from tests.tools.sandbox.machine import offer
from tests.verification.projects import best_sandbox, write

FILES = {f"m{n}.py": f"# Module {n}.\n\nONE = {n}\n" for n in range(3)}
PLAN = {
    "task": "Change them",
    "subtasks": [
        {"id": "first", "instruction": "Do first.", "files": ["m0.py", "m1.py"]},
        {"id": "second", "instruction": "Do second.", "files": ["m1.py"]},
        {"id": "third", "instruction": "Do third.", "files": ["m2.py"], "depends_on": ["first"]},
    ],
}


@pytest.mark.promise("SPLIT-12")
def test_split_is_planned_started_and_settled_on_the_page(
    site: Site, page: Page, home: Path, tmp_path: Path
) -> None:
    offer(best_sandbox())
    write(site.root, FILES)
    write(home / "handrail", {"config.toml": CHECKS})
    answers = [
        answer("Do first.", edited("m0.py", "ONE = 0", "ONE = 'a'"), edited("m1.py", "ONE = 1", "ONE = 'a'")),
        answer("Do second.", edited("m1.py", "ONE = 1", "ONE = 'b'")),
        answer("Do third.", edited("m2.py", "ONE = 2", "ONE = 'c'")),
        answer("Improve each.", edited("m0.py", "ONE", "TWO")),
    ]
    site.open(page, *answers, path="splits")
    page.get_by_label("Task").fill("Improve each.")
    page.get_by_label("For each file that matches").fill("m*.py")
    page.get_by_role("button", name="Plan it").click()
    expect(page.locator("#split")).to_contain_text("by dependencies (chosen)")
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.locator(".verdict")).to_contain_text("cancelled")
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    made = json.loads(site.run("split", "--plan", str(tmp_path / "plan.json"), "--json").stdout)
    page.goto(site.place(f"splits/{made['session_id']}"))
    expect(page.locator(".check-row", has_text="third")).to_contain_text("waiting on first")
    page.get_by_role("button", name="Start").click()
    conflict = page.locator(".split-conflict")
    expect(conflict).to_contain_text("ONE = 'a'")
    expect(conflict).to_contain_text("ONE = 'b'")
    assert (site.root / "m0.py").read_text() == FILES["m0.py"]
    page.get_by_role("button", name="Take theirs: m1.py").click()
    expect(conflict).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    if not COPIES:
        page.get_by_role("button", name="Apply all the same").click()
    expect(page.locator(".verdict")).to_contain_text("complete")
    expect(page.locator("#split")).to_contain_text("Applied: ")
    page.get_by_role("link", name="See the change, or undo it").click()
    expect(page.locator("main")).to_contain_text("m1.py")
    expect(page.locator("#status")).to_be_empty()
    assert (site.root / "m1.py").read_text() == FILES["m1.py"].replace("ONE = 1", "ONE = 'b'")
