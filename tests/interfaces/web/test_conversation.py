"""The conversation in a browser: messages, streaming, tool calls, the composer, the bars."""

from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.interfaces.web.site import Site, edit, ended, last_turn, read, ready, send

ANSWER = """\
The **test** fails.

| a | b |
|---|---|
| 1 | 2 |

```python
def f():
    return 1
```
"""
WATCH = """() => {
  window.seen = { states: new Set(), texts: new Set() };
  new MutationObserver(() => {
    seen.states.add(document.getElementById("status").textContent);
    const live = document.querySelector(".answer.live");
    if (live?.textContent.trim()) seen.texts.add(live.textContent);
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
NEXT = {"label": "Add a test", "input": "Add a test for a full discount"}


@pytest.mark.promise("WEB-3")
def test_answer_streams_into_the_page_with_markdown(site: Site, page: Page) -> None:
    site.open(
        page, {"text": "Hello."}, {"text": ANSWER, "thinking": "Let me see. " * 20, "chunk_delay_ms": 20}
    )
    send(page, "hello")
    ended(page)
    page.evaluate(WATCH)
    send(page, "why does it fail?")
    end = ended(page)
    turn = last_turn(page)
    expect(turn.locator(".answer strong")).to_have_text("test")
    expect(turn.locator(".answer td").first).to_have_text("1")
    expect(turn.locator(".answer .hl-k").first).to_have_text("def")
    expect(turn.locator("details.thinking")).not_to_have_attribute("open", "")
    expect(turn.locator(".live")).to_have_count(0)
    states, texts = page.evaluate("[[...seen.states], [...seen.texts]]")
    assert any("thinking" in state for state in states)
    assert len(texts) > 2
    assert all(longer.startswith(text[:10]) for text, longer in pairwise(texts))
    expect(end).to_contain_text("Done")
    expect(end).to_contain_text("10 in · 5 out")
    expect(end).to_contain_text("$0.00")


@pytest.mark.promise("WEB-3")
def test_tool_calls_are_rows_that_unfold(site: Site, page: Page) -> None:
    calls = [
        read("src/cart.py"),
        read("missing.py"),
        {"name": "run", "arguments": {"command": "echo from the shell"}},
    ]
    site.open(page, {"text": "Looking.", "calls": calls}, {"text": "Done."})
    send(page, "look around")
    turn = last_turn(page)
    expect(turn.locator(".call").nth(0)).to_contain_text("src/cart.py")
    expect(turn.locator(".call").nth(0)).to_contain_text("3 lines")
    expect(turn.locator(".call.refused")).to_contain_text("file_missing")
    page.locator(".card.command.waiting [data-act=approve]").first.click()
    ended(page)
    expect(turn).to_contain_text("echo from the shell")


@pytest.mark.promise("WEB-4")
def test_reader_who_scrolled_up_stays_there(site: Site, page: Page) -> None:
    long = "\n\n".join(f"Paragraph {number}." for number in range(60))
    site.open(page, {"text": long}, {"text": long, "chunk_delay_ms": 5})
    send(page, "first")
    ended(page)
    assert page.evaluate("document.getElementById('scroller').scrollTop") > 0
    first = page.locator("#log > .turn").first
    send(page, "second")
    page.wait_for_selector(".answer.live")
    page.evaluate("document.getElementById('scroller').scrollTop = 400")
    before = first.bounding_box()
    ended(page)
    assert before
    assert first.bounding_box() == before
    page.click("#new-below button")
    assert page.evaluate("document.getElementById('scroller').scrollTop") > 1000


def test_summary_stays_in_view_above_a_long_answer(site: Site, page: Page) -> None:
    sections = [{"title": f"Part {number}", "text": "Words. " * 120} for number in range(12)]
    answer = {
        "summary": "All is well.",
        "sections": sections,
        "next_steps": [NEXT],
        "todos": [],
        "changes": [],
        "commands": ["ls -la"],
    }
    site.open(page, {"text": to_text(answer)})
    page.select_option("#route", "chat")
    send(page, "hello")
    ended(page)
    bar = page.locator("#sticky")
    expect(bar).to_contain_text("All is well.")
    bar.get_by_role("button", name="Add a test").click()
    expect(page.locator("#message")).to_have_value(NEXT["input"])
    bar.get_by_role("button", name="See details").click()
    expect(bar).to_be_hidden()
    expect(page.locator(".commands li")).to_contain_text("ls -la")
    expect(last_turn(page).locator("[data-next] button")).to_have_text("Add a test")


def to_text(value: object) -> str:
    import json

    return json.dumps(value)


@pytest.mark.promise("CTX-8")
@pytest.mark.parametrize("command", ["", "/build "])
def test_file_that_was_chosen_in_the_composer_and_is_gone_is_reported(
    site: Site, page: Page, command: str
) -> None:
    (site.root / "Makefile").touch()
    site.open(page, {"when": "", "text": "Hello."})
    page.fill("#message", command)
    page.locator("#message").press_sequentially("see @Makef")
    expect(page.locator("#completions [role=option]")).to_have_text(["Makefile"])
    page.press("#message", "Tab")
    (site.root / "Makefile").unlink()
    page.press("#message", "Enter")
    expect(page.locator(".user")).to_contain_text("Makefile does not exist.")
    ended(page)


def test_composer_completes_files_and_commands(site: Site, page: Page) -> None:
    site.open(page, {"text": "Hello."})
    page.locator("#message").press_sequentially("look at @src/c")
    expect(page.locator("#completions [role=option]")).to_have_text(["src/cart.py"])
    page.press("#message", "Tab")
    expect(page.locator("#message")).to_have_value("look at @src/cart.py ")
    page.press("#message", "Enter")
    expect(page.locator(".user")).to_contain_text("attached src/cart.py")
    ended(page)
    page.locator("#message").press_sequentially("/mod")
    expect(page.locator("#completions [role=option]").first).to_contain_text("/mode")
    page.fill("#message", "/mode plan")
    page.press("#message", "Enter")
    expect(page.locator("#head")).to_contain_text("mode plan")
    page.fill("#message", "/nonsense")
    page.press("#message", "Enter")
    expect(page.locator(".toast")).to_contain_text("There is no command /nonsense")


@pytest.mark.promise("WEB-5")
def test_escape_stops_the_turn(site: Site, page: Page) -> None:
    site.open(page, {"text": "word " * 400, "chunk_delay_ms": 50})
    send(page, "talk")
    page.wait_for_selector(".answer.live")
    page.keyboard.press("Escape")
    expect(ended(page)).to_contain_text("Stopped")


def test_broken_answer_can_be_retried(site: Site, page: Page) -> None:
    broken = {"text": "x", "error": {"kind": "give_up", "message": "the line is dead", "times": 1}}
    site.open(page, {**broken, "text": "It works now."})
    send(page, "hello")
    banner = page.locator(".banner")
    expect(banner).to_contain_text("the line is dead")
    ended(page)
    banner.get_by_role("button", name="Retry").click()
    expect(page.locator(".answer").last).to_have_text("It works now.")


def test_suggested_commands_run_from_their_card(site: Site, page: Page) -> None:
    text = "Run:\n\n```sh\necho one\n```\n\n```sh\necho two\n```\n"
    decision = {"text": '{"decision": "continue"}', "when": "echo"}
    site.open(page, {"text": text}, {"text": "They ran."}, {"text": "They ran."}, decision)
    send(page, "what should I run?")
    ended(page)
    card = page.locator(".card.commands")
    expect(card.locator("li")).to_have_count(2)
    card.get_by_role("button", name="Run all 2").click()
    panel = page.locator(".card.batch")
    expect(panel).to_contain_text("2 commands")
    expect(panel).to_contain_text("2 succeeded")
    panel.get_by_role("button", name="Close").click()
    expect(panel).to_be_hidden()


def test_earlier_turns_are_fetched_when_asked_for(site: Site, page: Page) -> None:
    site.open(page, *({"text": f"Answer {number}."} for number in range(12)))
    for number in range(12):
        send(page, f"message {number}")
        expect(page.locator(".turn-end")).to_have_count(number + 1)
    page.reload()
    ready(page)
    expect(page.locator("#log > .turn")).to_have_count(10)
    page.evaluate("document.getElementById('scroller').scrollTop = 0")
    page.click("[data-act=earlier]")
    expect(page.locator("#log > .turn")).to_have_count(12)
    expect(page.locator("#log > .turn").first).to_contain_text("message 0")
    expect(page.locator("#earlier")).to_have_count(0)


def test_edits_in_one_answer_are_applied_together(site: Site, page: Page) -> None:
    calls = [
        edit(site, "src/cart.py", "subtotal +", "subtotal *"),
        edit(site, "README.md", "Shop", "The shop"),
    ]
    site.open(page, {"calls": [read("src/cart.py"), read("README.md")]}, {"calls": calls}, {"text": "Both."})
    send(page, "change both")
    card = page.locator(".card.change.waiting")
    expect(card.locator(".file-name > span")).to_have_text(["src/cart.py", "README.md"])
    card.get_by_role("button", name="Apply all").click()
    expect(ended(page)).to_contain_text("changed 2 files")
    assert (site.root / "README.md").read_text() == "# The shop\n"
