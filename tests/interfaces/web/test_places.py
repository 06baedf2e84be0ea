"""Places beside the conversation, and the list of sessions."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import NO_SERVER
from tests.interfaces.web.site import Site, edit, ended, read, ready, send

OLD, NEW = "(subtotal + tax) * (1 - discount)", "subtotal * (1 - discount) + tax"
INTENTS = """\
intents:
  - id: INT-1
    name: Totals are right
    status: active
    owned_scope:
      - src/**
  - id: INT-2
    name: Taxes
    status: active
    owned_scope:
      - src/cart.py
"""


def test_sessions_are_searched_renamed_forked_deleted_and_restored(site: Site, page: Page) -> None:
    site.open(page, {"text": "Hello."})
    send(page, "first session")
    ended(page)
    page.goto(site.place(""))
    ready(page)
    send(page, "second session")
    ended(page)
    rows = page.locator(".session .title")
    expect(rows).to_have_text(["second session", "first session"])
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("first")
    expect(rows).to_have_text(["first session"])
    page.fill("#search", "")
    expect(rows).to_have_count(2)

    page.locator(".session .more").last.click()
    page.get_by_role("menuitem", name="Rename").click()
    page.fill("#new-value", "Named anew")
    page.keyboard.press("Enter")
    expect(rows).to_have_text(["Named anew", "second session"])
    page.locator(".session .more").first.click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(rows).to_have_text(["second session"])
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(2)
    before = page.url
    page.locator(".session.current .more").click()
    page.get_by_role("menuitem", name="Fork").click()
    page.wait_for_url(lambda url: url != before)
    expect(page.locator(".answer")).to_have_text("Hello.")


@pytest.mark.promise("WEB-9")
def test_exported_session_is_viewed_without_import_and_imported(
    site: Site, page: Page, tmp_path: Path
) -> None:
    site.open(page, {"text": "Exported **words**."})
    send(page, "keep this")
    ended(page)
    page.locator(".session .more").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Export").click()
    file = tmp_path / "session.handrail"
    download.value.save_as(file)
    page.goto(site.place("viewer"))
    ready(page)
    page.set_input_files("#viewed", file)
    expect(page.locator("#viewer .answer strong")).to_have_text("words")
    expect(page.locator("#viewer [data-act]:visible")).to_have_count(0)
    expect(page.locator(".session")).to_have_count(1)
    page.goto(site.place("settings"))
    ready(page)
    page.set_input_files("#import", file)
    page.wait_for_url("**/s/*")
    expect(page.locator(".answer")).to_contain_text("Exported words.")
    expect(page.locator(".session")).to_have_count(2)


def test_sessions_have_a_status_and_labels(site: Site, page: Page) -> None:
    site.open(page, {"text": "Hello."})
    send(page, "sort the list")
    ended(page)
    page.locator(".session .more").click()
    page.get_by_role("menuitem", name="Labels").click()
    page.fill("#new-value", "ui urgent")
    page.keyboard.press("Enter")
    expect(page.locator(".session .label")).to_have_text(["ui", "urgent"])
    page.fill("#search", "urgent")
    expect(page.locator(".session")).to_have_count(1)
    page.locator(".session .more").click()
    page.get_by_role("menuitem", name="Archive").click()
    expect(page.locator(".session")).to_have_count(0)
    page.select_option("#status-filter", "archived")
    expect(page.locator(".session .title")).to_have_text("sort the list")


def test_intents_board_shows_scope_overlap_timeline_and_blame(site: Site, page: Page) -> None:
    (site.root / ".orchestration").mkdir()
    (site.root / ".orchestration" / "active_intents.yaml").write_text(INTENTS)
    select = {"name": "select_active_intent", "arguments": {"intent_id": "INT-1"}}
    change = {"calls": [edit(site, "src/cart.py", OLD, NEW)]}
    site.open(
        page,
        {"calls": [select]},
        {"calls": [read("src/cart.py")]},
        change,
        {"text": "Done."},
        HANDRAIL_MODE="edit",
    )
    send(page, "fix it")
    expect(page.locator(".card.waiting")).to_contain_text("INT-1 and INT-2 both own")
    page.get_by_role("button", name="Allow").click()
    ended(page)
    expect(page.locator("#head")).to_contain_text("intent INT-1")
    page.goto(site.place("intents"))
    expect(page.locator(".tile")).to_have_count(2)
    page.get_by_role("link", name="Totals are right").click()
    expect(page.locator(".change-row").first).to_contain_text("src/cart.py +1 -1")
    page.get_by_role("link", name="src/cart.py", exact=True).click()
    expect(page.locator(".blame tr").nth(2)).to_contain_text("INT-1")
    expect(page.locator(".blame tr").nth(0).locator(".who")).to_have_text("")


def test_audit_has_the_raw_answer_beside_what_was_understood(site: Site, page: Page) -> None:
    site.open(page, {"text": "Looking.", "calls": [read("src/cart.py")]}, {"text": "It is **fine**."})
    send(page, "look")
    ended(page)
    page.get_by_role("link", name="raw answer").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.select_option("[name=finish]", "tool_calls")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.locator("tbody a").click()
    expect(page.locator(".sides section").nth(0)).to_contain_text('"Looking.')
    expect(page.locator(".sides section").nth(1)).to_contain_text("read ok")
    page.get_by_text("The prompt as it was sent").click()
    expect(page.locator("details pre")).to_contain_text("look")


def test_charts_and_agents_say_what_there_is(site: Site, page: Page) -> None:
    site.open(page, {"text": "Hello.", "usage": {"input_tokens": 1200, "output_tokens": 34}})
    send(page, "hello")
    ended(page)
    page.get_by_role("link", name="Charts").click()
    expect(page.locator(".figures")).to_contain_text("1,200")
    expect(page.locator("svg.plot")).to_have_count(1)
    expect(page.locator(".tile", has_text="Approval decisions")).to_contain_text("None on these days.")
    expect(page.locator("svg.plot rect.bar").first).to_be_attached()
    site.run("agents", "new", "helper")
    page.get_by_role("link", name="Agents").click()
    expect(page.locator(".tile", has_text="helper")).to_be_visible()
    built_in = page.locator(".tile", has_text="built in")
    expect(built_in.get_by_role("button", name="Use @research")).to_be_visible()


def test_theme_is_chosen_and_kept(site: Site, page: Page) -> None:
    site.open(page, {"text": "Hello."}, path="settings")
    page.get_by_role("button", name="Midnight").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "midnight")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "midnight")
    page.get_by_text("settings, with where each was set").click()
    row = page.locator(".setting", has_text="limits.steps")
    row.locator("input").fill("33")
    row.get_by_role("button", name="Store").click()
    expect(page.locator(".toast")).to_contain_text("Stored")
    assert "33" in site.run("config").stdout


@pytest.mark.promise("CRED-6")
def test_credentials_are_stored_and_removed_on_the_page(site: Site, page: Page) -> None:
    site.open(page, {"text": "Hello."}, path="settings")
    form = page.locator("form[data-act=credential-form]")
    form.get_by_label("Name").fill("GITHUB_TOKEN")
    form.get_by_label("Secret").fill("swordfish-0123456789")
    assert form.get_by_label("Secret").get_attribute("type") == "password"
    form.get_by_role("button", name="Store").click()
    row = page.locator("li", has_text="GITHUB_TOKEN")
    expect(row).to_be_visible()
    assert "swordfish" not in page.content()
    assert site.run("credentials").stdout == "GITHUB_TOKEN\n"
    row.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("None is stored.")).to_be_visible()


@pytest.mark.promise("WEB-10")
def test_without_a_model_the_first_page_offers_three_doors(site: Site, page: Page, home: Path) -> None:
    (home / "handrail").mkdir(mode=0o700)
    (home / "handrail" / "config.toml").write_text(NO_SERVER)
    site.open(page)
    expect(page.locator(".door h3")).to_have_text(
        ["Paste a key", "Use a local server", "Download a small model"]
    )
    page.get_by_role("button", name="Look for servers").click()
    expect(page.locator("#servers")).to_have_text("None answers.")
    page.fill("#key", "not-a-known-key")
    page.get_by_role("button", name="Check and store").click()
    expect(page.locator(".toast.bad")).to_contain_text("does not show which provider")


@pytest.mark.promise("WEB-14")
def test_several_workspaces_are_apart_on_one_server(site: Site, page: Page, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    site.folders = [site.root, notes]
    write = {"name": "write", "arguments": {"path": "made.txt", "text": "made\n"}}
    site.open(page, {"calls": [write]}, {"text": "Made."}, HANDRAIL_MODE="edit")
    send(page, "in the shop")
    ended(page)
    assert (site.root / "made.txt").exists()
    page.select_option("#workspace", "notes")
    page.wait_for_url(site.place("", "notes"))
    ready(page)
    expect(page.locator(".session")).to_have_count(0)
    page.locator("#message").press_sequentially("look at @")
    expect(page.locator("#completions")).not_to_contain_text("cart.py")
    send(page, "in the notes")
    ended(page)
    assert (notes / "made.txt").exists()
    expect(page.locator(".session .title")).to_have_text("in the notes")
    theirs = page.url.replace("/w/notes/", "/w/shop/")
    page.goto(site.place(""))
    ready(page)
    expect(page.locator(".session .title")).to_have_text("in the shop")
    page.goto(theirs)
    expect(page.locator("h1")).to_have_text("This cannot be shown")


def test_wrong_addresses_say_what_is_wrong(site: Site, page: Page) -> None:
    site.open(page, {"text": "Hello."}, path="s/nonsense")
    expect(page.locator("h1")).to_have_text("This cannot be shown")
    expect(page.locator(".column")).to_contain_text("No session here is called 'nonsense'")


def test_keys_move_through_cards_and_are_listed(site: Site, page: Page) -> None:
    site.open(page, {"text": "One."}, {"text": "Two."})
    send(page, "first")
    ended(page)
    send(page, "second")
    expect(page.locator(".turn-end")).to_have_count(2)
    page.keyboard.press("Escape")
    page.keyboard.press("k")
    expect(page.locator(".answer").last).to_be_focused()
    page.keyboard.press("k")
    expect(page.locator(".answer").first).to_be_focused()
    page.keyboard.press("?")
    expect(page.locator("dialog dl")).to_contain_text("stop the running turn")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.wait_for_url(site.place(""))


def test_narrow_screens_have_drawers_and_never_scroll_sideways(site: Site, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    wide = "x" * 300
    site.open(page, {"text": f"{wide}\n\n```\n{wide}\n```\n"})
    send(page, "hello")
    ended(page)
    page.get_by_role("button", name="Sessions and places").click()
    expect(page.locator("#side")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#side")).not_to_be_in_viewport()
    page.get_by_role("button", name="Details").click()
    expect(page.locator("#inspector")).to_be_in_viewport()
    for selector in ("document.documentElement", "document.getElementById('scroller')"):
        assert page.evaluate(f"{selector}.scrollWidth <= {selector}.clientWidth")
