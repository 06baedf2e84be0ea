"""What a run asks or offers, clicked in a browser: unclear messages, pauses, cut answers, plans."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.interfaces.cli.commands.test_build import CHECKS, TESTS
from tests.interfaces.web.site import Site, ended, last_turn, ready, send
from tests.pipelines.agents import GOOD, QUESTION, QUOTE, answers, demo
from tests.pipelines.build import builds
from tests.tools.sandbox.machine import offer
from tests.verification.projects import best_sandbox, write

ROUTED = {"HANDRAIL_AUTO_ROUTE": "on"}
OPTIONS = [{"id": "chat", "title": "only look"}, {"id": "agent", "title": "anything"}]
UNSURE = {"decision": "clarify", "confidence": 0.9, "question": "Which **way**?", "options": OPTIONS}
NOTHING: dict[str, list[str]] = {"patterns": [], "urls": [], "mentions": [], "todos": []}
CUT = (
    '{"summary": "Two parts.", "commands": ["ls -l"], "next_steps": [{"label": "Why", "input": "Why?"}, {"la'
)
LOOKED = {"when": "Output of look", "text": json.dumps(NOTHING)}
STEPS = [{"description": "Write a.txt", "files": ["a.txt"], "check": ""}]


@pytest.mark.promise("WEB-13")
def test_unclear_message_is_settled_by_a_chip_which_stays(site: Site, page: Page) -> None:
    unsure = {"when": "The user's message:", "text": json.dumps(UNSURE)}
    site.open(page, unsure, {"when": "", "text": "It is clean."}, **ROUTED)
    send(page, "clean up")
    card = page.locator(".card.question")
    expect(card.locator("strong")).to_have_text("way")
    card.get_by_role("button", name="do it in the files").click()
    expect(page.locator(".answer").last).to_have_text("It is clean.")
    expect(card.locator(".chip.chosen")).to_have_text("do it in the files")
    expect(card.get_by_role("button")).to_have_count(0)


@pytest.mark.promise("WEB-13")
def test_paused_run_goes_on_by_a_chip(site: Site, page: Page) -> None:
    demo(site.root)
    site.open(page, *answers(first=GOOD), path="agents/report", HANDRAIL_MODE="edit")
    page.get_by_role("button", name="Trust it").click()
    expect(page.locator(".banner")).to_have_count(0)
    page.goto(site.place(""))
    ready(page)
    send(page, f"@report {QUESTION}")
    card = page.locator(".card.question")
    expect(card).to_contain_text("Are passengers refunded when a crossing is cancelled?")
    card.get_by_role("button", name="Look it up").click()
    expect(last_turn(page).locator(".turn-end")).to_contain_text("Done")
    expect(card.locator(".chip.chosen")).to_have_text("Look it up")
    assert QUOTE in (site.root / "report.md").read_text()
    page.click("#tab-run")
    expect(page.locator("#inspector")).to_contain_text("gather")


@pytest.mark.promise("WEB-13")
def test_cut_answer_is_recovered_and_continued(site: Site, page: Page) -> None:
    rest = {"when": "was cut. The user accepts", "text": json.dumps({"summary": "The rest of it."})}
    site.open(page, LOOKED, rest, {"when": "what is", "text": CUT, "finish": "length"}, **ROUTED)
    send(page, "what is missing here?")
    banner = page.locator(".banner.wait")
    expect(banner).to_contain_text("Recovered: the summary, 1 command")
    expect(ended(page)).to_contain_text("Recovered")
    banner.get_by_role("button", name="Retry").click()
    expect(banner).to_have_count(2)
    expect(page.locator(".turn-end")).to_have_count(2)
    banner.last.get_by_role("button", name="Continue").click()
    expect(page.locator(".answer").last).to_contain_text("The rest of it.")


@pytest.mark.promise("WEB-13")
def test_plan_is_approved_on_its_card_and_followed(site: Site, page: Page) -> None:
    write = {"path": "a.txt", "text": "a\n", "todo": "t1"}
    site.open(
        page,
        {"when": "Do step 1 of ", "calls": [{"name": "write", "arguments": write}]},
        {"when": "Change nothing now", "text": "The file is missing."},
        {"when": "Output of look", "text": json.dumps({"objective": "One file", "steps": STEPS})},
        {"when": "", "text": "Written."},
        HANDRAIL_MODE="plan",
        **ROUTED,
    )
    send(page, "Write a.txt.")
    card = page.locator(".card.plan")
    expect(card).to_contain_text("One file")
    ended(page)
    card.get_by_role("button", name="Approve").click()
    expect(card).to_contain_text("plan, approved")
    expect(card.get_by_role("button")).to_have_count(0)
    expect(page.locator("#head")).to_contain_text("mode edit")
    page.click("#tab-todos")
    expect(page.locator(".todo")).to_contain_text("Write a.txt")
    expect(page.locator(".card.change").last).to_contain_text("applied")
    assert (site.root / "a.txt").read_text() == "a\n"


@pytest.mark.promise("WEB-19")
def test_plan_is_edited_before_it_is_approved_and_a_wrong_text_is_kept(site: Site, page: Page) -> None:
    site.open(
        page,
        {"when": "Change nothing now", "text": "The file is missing."},
        {"when": "Output of look", "text": json.dumps({"objective": "One file", "steps": STEPS})},
        {"when": "", "text": "Looked."},
        HANDRAIL_MODE="plan",
        **ROUTED,
    )
    send(page, "Write a.txt.")
    ended(page)
    card, text, dialog = page.locator(".card.plan"), page.locator("#plan-text"), page.locator("#dialog")
    card.get_by_role("button", name="Edit", exact=True).click()
    expect(text).to_have_value("Objective: One file\n\n1. Write a.txt\n   files: a.txt")
    text.fill("Only words.")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("This text has no steps.")
    expect(text).to_have_value("Only words.")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.fill("#message", "/plan edit")
    page.press("#message", "Enter")
    expect(text).to_have_value("Only words.")
    text.fill("Objective: Two files\n\n1. Write b.txt\n   check: test -f b.txt")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    expect(card).to_have_count(2)
    expect(card.first).to_contain_text("plan, replaced")
    expect(card.first.get_by_role("button")).to_have_count(0)
    expect(card.last).to_contain_text("Write b.txt")
    page.fill("#message", "/plan approve")
    page.press("#message", "Enter")
    expect(card.last).to_contain_text("plan, approved")
    page.click("#tab-todos")
    expect(page.locator(".todo")).to_contain_text("Write b.txt")


@pytest.mark.promise("WEB-18")
def test_slash_commands_start_sessions_and_sort_them(site: Site, page: Page) -> None:
    site.open(page, {"when": "", "text": "Written."}, HANDRAIL_MODE="edit", **ROUTED)
    page.fill("#message", "/init")
    page.press("#message", "Enter")
    expect(page.locator(".user .bubble")).to_contain_text("Write a first AGENTS.md")
    ended(page)
    ready(page)
    for words in ("/label cart v2", "/label -v2", "/status in progress", "/auto on"):
        page.fill("#message", words)
        page.press("#message", "Enter")
        expect(page.locator("#message")).to_have_value("")
    expect(page.locator(".session .label")).to_have_text(["cart"])
    expect(page.locator(".session .when")).to_have_text("in progress")
    page.fill("#message", "/archive")
    page.press("#message", "Enter")
    page.wait_for_url(site.place(""))
    expect(page.locator(".session")).to_have_count(0)
    page.goto(site.place("builds"))
    page.get_by_role("button", name="Start a build").click()
    expect(page.locator("#message")).to_have_value("/build ")


@pytest.mark.promise("BUILD-21")
def test_build_in_the_composer_applies_what_the_checks_accept(site: Site, page: Page, home: Path) -> None:
    offer(best_sandbox())
    write(home / "handrail", {"config.toml": CHECKS + TESTS})
    write(site.root, {"calc.py": builds.WRONG})
    site.open(page, *builds.script([builds.FIX]), HANDRAIL_MODE="edit")
    page.fill("#message", f"/build {builds.TASK}")
    page.press("#message", "Enter")
    expect(page.locator(".user .bubble")).to_have_text(builds.TASK)
    ended(page)
    if builds.COPIES:
        expect(page.locator("#log")).to_contain_text("Complete: double returns twice its number")
    assert (site.root / "calc.py").read_text() == (builds.RIGHT if builds.COPIES else builds.WRONG)
