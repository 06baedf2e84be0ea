"""One session in three processes: an editor's agent, a terminal, and the server with a real browser."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.interfaces.acp.raw_client import raw_client
from tests.interfaces.cli.program import terminal
from tests.interfaces.web.site import Site, ready

ENTER = "\r"


def write(name: str) -> dict[str, Any]:
    return {"calls": [{"name": "write", "arguments": {"path": name, "text": f"{name}\n"}}]}


@pytest.mark.promise("ACP-7")
def test_editor_terminal_and_browser_see_the_same_and_each_answers_for_the_others(
    site: Site, page: Page
) -> None:
    """The editor's agent runs the turn; each question is asked in all three, and answered in another one."""
    answers: list[dict[str, Any]] = [
        {"text": "Ready."},
        write("page.txt"),
        write("terminal.txt"),
        write("editor.txt"),
    ]
    model = site.script(*answers, {"text": "All three."}, {"text": "Heard in the editor."}, {"text": "Bye."})
    with raw_client(site.root, model) as editor:
        session = editor.new()
        editor.answer(editor.prompt(session, "are you there?"))
        site.open(page, path=f"s/{session}")
        expect(page.locator(".answer").last).to_have_text("Ready.")
        with terminal("resume", session, "--model", model, cwd=site.root) as talk:
            talk.expect("Ready.")
            talk.expect("another process runs this session")
            prompt = editor.prompt(session, "write three files")
            expect(page.locator(".user .bubble").last).to_have_text("write three files")
            talk.expect("> write three files")

            editor.asked("page.txt")
            talk.expect("y yes")
            page.locator(".card.waiting [data-act=approve]").first.click()
            asked = editor.asked("terminal.txt")
            expect(page.locator(".card.waiting")).to_contain_text("terminal.txt")
            talk.expect("terminal.txt")
            talk.expect("y yes")
            talk.type("y")
            closed = editor.until(lambda each: each.get("method") == "$/cancel_request")
            assert closed["params"]["requestId"] < asked["id"], "the first question was answered in the page"
            last = editor.asked("editor.txt")
            expect(page.locator(".card.waiting")).to_contain_text("editor.txt")
            talk.expect("editor.txt")
            talk.expect("y yes")
            editor.permit(last)
            assert editor.answer(prompt) == {"stopReason": "end_turn"}
            assert sum(each.get("method") == "$/cancel_request" for each in editor.seen) == 2
            expect(page.locator(".card.waiting")).to_have_count(0)
            expect(page.locator(".answer").last).to_have_text("All three.")
            talk.expect("All three.")
            for name in ("page.txt", "terminal.txt", "editor.txt"):
                assert (site.root / name).read_text() == f"{name}\n"

            talk.expect("$0.00")
            talk.type("said in the terminal" + ENTER)
            editor.shows("said in the terminal")
            expect(page.locator(".answer").last).to_have_text("Heard in the editor.")
            talk.expect("Heard in the editor.")
            page.fill("#message", "said in the page")
            page.press("#message", "Enter")
            talk.expect("> said in the page")
            talk.expect("Bye.")
            editor.shows("said in the page")
            page.reload()
            ready(page)
            expect(page.locator(".user .bubble")).to_have_text(
                ["are you there?", "write three files", "said in the terminal", "said in the page"]
            )
