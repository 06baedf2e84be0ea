"""The place of splits: plan one, start it, see it run, settle its conflict, and undo it."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.app.splits.splitting import CHECKS, answer, edited
from tests.interfaces.cli.program import DEADLINE
from tests.interfaces.web.site import Site
from tests.pipelines.build.builds import COPIES
from tests.system.worker_fleet import HeldModel, settings
from tests.tools.sandbox.machine import offer
from tests.verification.projects import best_sandbox, write

FILES = {f"m{n}.py": f"# Module {n}.\n\nONE = {n}\n" for n in range(3)}
PLAN: dict[str, Any] = {
    "task": "Change them",
    "subtasks": [
        {"id": "first", "instruction": "Do first.", "files": ["m0.py", "m1.py"]},
        {"id": "second", "instruction": "Do second.", "files": ["m1.py"]},
        {"id": "third", "instruction": "Do third.", "files": ["m2.py"], "depends_on": ["first"]},
    ],
}
IN_ORDER = {
    "task": "End them",
    "limits": {"parallel": 1},
    "subtasks": [
        {"id": "first", "instruction": "Do it.", "files": ["m00.py"]},
        {"id": "second", "instruction": "Do it.", "files": ["m01.py"], "depends_on": ["first"]},
        {"id": "third", "instruction": "Do it.", "files": ["m02.py"]},
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
    page.get_by_label("Task", exact=True).fill("Improve each.")
    page.get_by_label("For each file that matches").fill("m*.py")
    page.get_by_role("button", name="Plan it").click()
    expect(page.get_by_role("radio", name="by dependencies")).to_be_checked()
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.locator(".verdict")).to_contain_text("cancelled")
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    made = json.loads(site.run("split", "--plan", str(tmp_path / "plan.json"), "--json").stdout)
    page.goto(site.place(f"splits/{made['session_id']}"))
    expect(page.get_by_role("listitem").filter(has_text="Do third.")).to_contain_text("after first")
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


def plan_in(site: Site, page: Page) -> dict[str, Any]:
    """The plan that the page shows, as it is stored."""
    split = page.url.rpartition("/")[2]
    found: dict[str, Any] = json.loads(site.run("splits", "show", split, "--plan", "--json").stdout)
    return found


@pytest.mark.promise("SPLIT-10")
@pytest.mark.promise("SPLIT-12")
def test_plan_is_shaped_on_the_page_before_it_starts(site: Site, page: Page, home: Path) -> None:
    offer(best_sandbox())
    write(site.root, FILES)
    write(home / "handrail", {"config.toml": CHECKS})
    answers = [answer("Do it well.", edited(f"m{n}.py", f"ONE = {n}", "ONE = 'x'")) for n in (2, 1)]
    answers = [each | {"when": f"### m{n}.py"} for each, n in zip(answers, (2, 1), strict=True)]
    site.open(page, *answers, path="splits")
    page.get_by_label("Task", exact=True).fill("Improve each.")
    page.get_by_label("For each file that matches").fill("m*.py")
    page.get_by_label("Granularity").select_option("fine")
    page.get_by_label("Strategy").select_option("sequential")
    page.get_by_text("Limits", exact=True).click()
    page.get_by_role("spinbutton", name="At once").fill("2")
    page.get_by_label("USD in all").fill("0.25")
    page.get_by_role("button", name="Plan it").click()
    rows = page.locator(".split-plan li")
    expect(rows).to_have_count(3)
    expect(page.locator("#split")).to_contain_text(
        "3 subtasks, fine. At most 2 at once, 2 tries, $0.25 in all."
    )
    expect(page.locator(".split-strategies")).to_contain_text("tokens")
    expect(page.get_by_role("radio", name="one by one")).to_be_checked()
    page.get_by_role("radio", name="all at once").check()
    page.get_by_role("button", name="Up: 3-m2.py").click()
    expect(rows.nth(1)).to_contain_text("3-m2.py")
    page.get_by_role("button", name="Down: 1-m0.py").click()
    expect(rows.first).to_contain_text("3-m2.py")
    page.get_by_role("button", name="Edit: 2-m1.py").click()
    page.get_by_label("Instruction").fill("Do it well.")
    page.get_by_label("Depends on").fill("none")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("depends on none, which is no other subtask")
    page.get_by_label("Depends on").fill("1-m0.py 3-m2.py")
    page.get_by_label("What it may change").fill("m1.py\ntests/")
    page.get_by_role("button", name="Save").click()
    expect(rows.last).to_contain_text("after 1-m0.py, 3-m2.py")
    page.get_by_role("button", name="Remove: 1-m0.py").click()
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Limits").click()
    page.get_by_label("USD in all").fill("")
    page.get_by_label("Tokens of a subtask").fill("9000")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#split")).to_contain_text("At most 2 at once, 2 tries, 9,000 tokens for each.")
    plan = plan_in(site, page)
    assert (plan["strategy"], plan["limits"]["usd"], plan["limits"]["subtask_tokens"]) == (
        "all_at_once",
        None,
        9000,
    )
    last = plan["subtasks"][1]
    assert (last["id"], last["instruction"], last["depends_on"]) == ("2-m1.py", "Do it well.", ["3-m2.py"])
    assert (last["files"], last["writes"]) == (["m1.py"], ["m1.py", "tests/"])
    page.get_by_role("button", name="Start").click()
    if not COPIES:
        page.get_by_role("button", name="Apply all the same").click()
    expect(page.locator(".verdict")).to_contain_text("complete")
    assert [(site.root / f"m{n}.py").read_text() != FILES[f"m{n}.py"] for n in range(3)] == [
        False,
        True,
        True,
    ]


@pytest.mark.promise("SPLIT-12")
def test_message_is_split_from_the_conversation(site: Site, page: Page) -> None:
    planned = {"subtasks": [{"id": "one", "instruction": "Do one.", "files": ["src/cart.py"]}]}
    site.open(page, {"when": "The request: Improve it.", "text": [json.dumps(planned)]})
    page.fill("#message", "/split Improve it.")
    page.press("#message", "Enter")
    expect(page.locator(".split-plan li")).to_contain_text("src/cart.py")
    expect(page.get_by_role("button", name="Remove: one")).to_have_count(0)


@pytest.mark.promise("SPLIT-4")
@pytest.mark.promise("SPLIT-12")
def test_budget_is_raised_and_a_conflict_settled_by_own_words_on_the_page(
    site: Site, page: Page, home: Path, tmp_path: Path
) -> None:
    offer(best_sandbox())
    write(site.root, FILES)
    write(home / "handrail", {"config.toml": CHECKS})
    answers = [
        answer("Do first.", edited("m1.py", "ONE = 1", "ONE = 'a'")),
        answer("Do second.", edited("m1.py", "ONE = 1", "ONE = 'b'")),
    ]
    plan = PLAN | {"limits": {"tokens": 100}, "subtasks": PLAN["subtasks"][:2]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    made = json.loads(site.run("split", "--plan", str(tmp_path / "plan.json"), "--json").stdout)
    site.open(page, *answers, path=f"splits/{made['session_id']}")
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".verdict")).to_contain_text("paused: budget")
    expect(page.get_by_role("button", name="Resume", exact=True)).to_have_count(0)
    expect(page.locator(".split-counts")).to_contain_text("2 waiting")
    page.get_by_role("button", name="Resume with a larger budget").click()
    expect(page.get_by_label("Tokens in all")).to_have_value("100")
    page.get_by_label("Tokens in all").fill("90000")
    page.get_by_role("button", name="Resume", exact=True).click()
    page.get_by_role("button", name="Write it yourself: m1.py").click()
    expect(page.get_by_label("What stands in m1.py from line 3 on")).to_have_value("ONE = 'a'\n")
    page.get_by_label("What stands in m1.py from line 3 on").fill("ONE = 'mine'")
    page.get_by_role("button", name="Settle with this").click()
    expect(page.locator(".split-conflict")).to_have_count(0)
    page.get_by_role("button", name="Resume", exact=True).click()
    if not COPIES:
        page.get_by_role("button", name="Apply all the same").click()
    expect(page.locator(".verdict")).to_contain_text("complete")
    assert (site.root / "m1.py").read_text() == FILES["m1.py"].replace("ONE = 1", "ONE = 'mine'")


@pytest.mark.promise("SPLIT-8")
@pytest.mark.promise("SPLIT-12")
def test_split_is_paused_and_parts_are_left_out_and_tried_again_on_the_page(
    site: Site, page: Page, home: Path, tmp_path: Path
) -> None:
    offer(best_sandbox())
    model = HeldModel()
    with model.server:
        settings(model, home / "handrail")
        write(site.root, dict.fromkeys(("m00.py", "m01.py", "m02.py"), "TEXT = 'same'\n"))
        (tmp_path / "plan.json").write_text(json.dumps(IN_ORDER))
        name = json.loads(site.run("split", "--plan", str(tmp_path / "plan.json"), "--json").stdout)[
            "session_id"
        ]
        site.open(page, path=f"splits/{name}")
        page.get_by_role("button", name="Start").click()
        assert model.came.wait(DEADLINE)
        row = page.locator(".check-row")
        expect(row.nth(0)).to_contain_text("running")
        expect(row.nth(1)).to_contain_text("waiting on first")
        page.get_by_role("button", name="Pause").click()
        expect(page.locator(".verdict")).to_contain_text("paused: user")
        model.go.set()
        expect(row.nth(0)).to_contain_text("It is done")
        page.get_by_role("button", name="Leave out: third").click()
        expect(row.nth(2)).to_contain_text("cancelled")
        page.get_by_role("button", name="Try again: first").click()
        if not COPIES:
            page.get_by_role("button", name="Apply all the same").click()
        expect(page.locator(".verdict")).to_contain_text("complete")
        expect(row.nth(0)).to_contain_text("240 tokens")
        assert sum(model.asked.values()) == 3
    assert "'same'" in (site.root / "m02.py").read_text()
    assert "'same'" not in (site.root / "m01.py").read_text()
