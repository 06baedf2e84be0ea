"""What waits for the user: approvals, questions, undo and rewind; and pages that share a session."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.interfaces.web.site import Site, edit, ended, last_turn, read, ready, send

OLD, NEW = "(subtotal + tax) * (1 - discount)", "subtotal * (1 - discount) + tax"


def change(site: Site) -> list[dict[str, Any]]:
    """Answers that read a file, change it, and say so."""
    wrong: dict[str, Any] = {"text": "It is wrong.", "calls": [edit(site, "src/cart.py", OLD, NEW)]}
    return [{"calls": [read("src/cart.py")]}, wrong, {"text": "Mended."}]


@pytest.mark.promise("WEB-6")
def test_edit_is_shown_and_applied_with_a_key(site: Site, page: Page) -> None:
    site.open(page, *change(site))
    send(page, "fix it")
    card = page.locator(".card.change")
    expect(card).to_contain_text("waiting for you")
    expect(card.locator("tr.del mark").first).to_be_visible()
    expect(card.locator(".counts")).to_have_text("+1 −1")  # noqa: RUF001
    expect(page).to_have_title("● asks you · fix it · Handrail")
    expect(page.locator(".session .when")).to_have_text("asks you")
    assert OLD in (site.root / "src/cart.py").read_text()
    expect(card).to_be_focused()
    page.evaluate("() => new Promise((done) => setTimeout(done, 350))")
    page.keyboard.press("y")
    expect(ended(page)).to_contain_text("changed src/cart.py")
    expect(card).to_contain_text("applied")
    assert NEW in (site.root / "src/cart.py").read_text()
    expect(page).to_have_title("fix it · Handrail")


@pytest.mark.promise("WEB-6")
def test_key_that_comes_too_early_decides_nothing(site: Site, page: Page) -> None:
    site.open(page, *change(site))
    # The clock stands still from the moment that the question is there: no key can count.
    page.add_init_script("const now = performance.now(); performance.now = () => now;")
    send(page, "fix it")
    card = page.locator(".card.change.waiting")
    expect(card).to_be_focused()
    page.keyboard.press("y")
    page.keyboard.press("a")
    expect(card).to_contain_text("waiting for you")
    card.get_by_role("button", name="Apply").click()
    ended(page)


@pytest.mark.promise("WEB-6")
def test_rejection_takes_a_reason_to_the_model(site: Site, page: Page) -> None:
    site.open(page, *change(site), {"text": "I see.", "when": "keep the tax out of it"})
    send(page, "fix it")
    page.click("[data-act=reject]")
    page.keyboard.type("keep the tax out of it")
    page.keyboard.press("Enter")
    expect(page.locator(".answer").last).to_have_text("I see.")
    expect(page.locator(".card.change.rejected")).to_contain_text("rejected: keep the tax out of it")
    assert OLD in (site.root / "src/cart.py").read_text()


def test_always_allows_the_same_call_for_the_session(site: Site, page: Page) -> None:
    run = {"calls": [{"name": "run", "arguments": {"command": "echo again"}}]}
    site.open(page, run, {"text": "one"}, run, {"text": "two"})
    send(page, "first")
    expect(page.locator(".card.command.waiting pre.command")).to_have_text("echo again")
    page.get_by_role("button", name="Always in this session").click()
    ended(page)
    send(page, "second")
    expect(page.locator(".answer").last).to_have_text("two")


def test_question_is_answered_by_a_chip_which_stays(site: Site, page: Page) -> None:
    asked = {"question": "Which rounding?", "options": ["half up", "half even"]}
    site.open(
        page, {"calls": [{"name": "ask_user", "arguments": asked}]}, {"text": "Good.", "when": "half even"}
    )
    send(page, "round it")
    page.get_by_role("button", name="half even").click()
    expect(page.locator(".answer").last).to_have_text("Good.")
    expect(page.locator(".question .chip.chosen")).to_have_text("half even")


@pytest.mark.promise("CRED-8")
def test_secret_is_typed_into_a_password_field(site: Site, page: Page) -> None:
    asked = {"name": "SHOP_TOKEN", "why": "to list the orders"}
    site.open(page, {"calls": [{"name": "credential_prompt", "arguments": asked}]}, {"text": "Good."})
    send(page, "list them")
    field = page.get_by_label("SHOP_TOKEN")
    assert field.get_attribute("type") == "password"
    field.fill("swordfish-0123456789")
    page.locator("form[data-act=secret-form]").get_by_role("button", name="Store").click()
    expect(page.locator(".answer").last).to_have_text("Good.")
    expect(page.locator(".question .chip.chosen")).to_have_text("stored")
    assert "swordfish" not in page.content()
    assert site.run("credentials").stdout == "SHOP_TOKEN\n"


@pytest.mark.promise("WEB-7")
def test_change_is_undone_and_redone_from_the_page(site: Site, page: Page) -> None:
    site.open(page, *change(site))
    send(page, "fix it")
    page.click("[data-act=approve] >> nth=0")
    ended(page)
    page.locator(".card.change [data-act=undo]").click()
    expect(page.locator(".card.change.undone")).to_contain_text("rolled back")
    assert OLD in (site.root / "src/cart.py").read_text()
    page.get_by_role("button", name="Redo").first.click()
    expect(page.locator(".card.change.ok")).to_contain_text("applied")
    assert NEW in (site.root / "src/cart.py").read_text()


def test_links_of_a_change_lead_to_its_diff_and_to_the_raw_answers(site: Site, page: Page) -> None:
    site.open(page, *change(site))
    send(page, "fix it")
    page.click("[data-act=approve] >> nth=0")
    ended(page)
    conversation = page.url
    page.locator(".card.change").get_by_role("link", name="change 1").click()
    expect(page.locator("h1")).to_contain_text("Change 1, applied")
    page.goto(conversation)
    ready(page)
    page.click("#tab-changes")
    with page.context.expect_page() as opened:
        page.locator(".change-row a").click(modifiers=["ControlOrMeta"])
    expect(opened.value.locator("h1")).to_contain_text("Change 1, applied")
    opened.value.close()
    page.get_by_role("link", name="raw answer").click()
    expect(page).to_have_url(site.place(f"audit?session={conversation.rpartition('/')[2]}"))


@pytest.mark.promise("WEB-7")
def test_rewind_shows_conflicts_before_it_does_anything(site: Site, page: Page) -> None:
    site.open(page, *change(site))
    send(page, "fix it")
    page.click("[data-act=approve] >> nth=0")
    ended(page)
    cart = site.root / "src/cart.py"
    cart.write_text(cart.read_text().replace(NEW, "0  # mine"))
    page.click("#tab-changes")
    page.get_by_role("button", name="Rewind to before").click()
    dialog = page.locator("dialog")
    expect(dialog).to_contain_text("stays as it is")
    expect(dialog).to_contain_text("0  # mine")
    dialog.get_by_role("button", name="Cancel").click()
    assert "0  # mine" in cart.read_text()
    page.hover(".user")
    page.click("[data-act=rewind-message]")
    dialog.get_by_role("button", name="Rewind conversation").click()
    expect(page.locator(".turn.aside")).to_have_count(1)


@pytest.mark.promise("WEB-8")
def test_two_pages_and_a_terminal_stay_in_step(site: Site, page: Page) -> None:
    site.open(page, *change(site), {"text": "From elsewhere."})
    send(page, "fix it")
    other = page.context.new_page()
    other.goto(page.url)
    ready(other)
    expect(page.locator(".card.change.waiting")).to_be_visible()
    other.locator(".card.change [data-act=approve]").first.click()
    ended(page)
    expect(page.locator(".card.change")).to_contain_text("applied")
    session = page.url.rpartition("/")[2]
    site.run("sessions", "rename", session, "Named in a terminal")
    for each in (page, other):
        expect(each.locator("#head h1")).to_have_text("Named in a terminal")
    other.close()


@pytest.mark.promise("WEB-8")
def test_page_catches_up_after_the_server_was_killed(site: Site, page: Page) -> None:
    site.open(page, *change(site))
    send(page, "fix it")
    expect(page.locator(".card.change.waiting")).to_be_visible()
    site.kill()
    expect(page.locator("#connection")).to_contain_text("attempt")
    site.start()
    expect(page.locator("#connection")).to_be_hidden()
    page.locator(".card.change [data-act=approve]").first.click()
    ended(page)
    expect(last_turn(page)).to_contain_text("Mended.")
    assert NEW in (site.root / "src/cart.py").read_text()
