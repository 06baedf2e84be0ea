"""The page of a conversation: its top bar, its blocks, and the composer."""

from collections.abc import Sequence
from typing import get_args

from handrail.app.history.sessions import SessionState
from handrail.interfaces.cli.render.styles import format_usd, one_line
from handrail.interfaces.web.conversation.blocks import ROOT, button
from handrail.interfaces.web.conversation.feed import Shown, status_line
from handrail.interfaces.web.frame import drawer_buttons
from handrail.interfaces.web.html import EMPTY, Html, h, join
from handrail.protocol.values import Mode

MODES = {
    "explore": "Explore: read only",
    "plan": "Plan: read, then propose",
    "ask": "Ask: edits are asked",
    "edit": "Edit: edits go through",
    "auto": "Auto: allowed commands too",
    "sandbox": "Sandbox: all, confined",
}
STARTS = {
    "Explain this project": "Explain what this project does and how it is organised.",
    "Find a bug": "Look for a bug in @",
    "Fix a failing test": "Run the tests, and fix what fails.",
}
IMAGES = "image/png,image/jpeg,image/gif,image/webp"


def conversation_page(
    state: SessionState, shown: Shown, model: str, routes: Sequence[str], route: str
) -> Html:
    left, right = drawer_buttons()
    bar = h("header", left, h("div", top_bar(state, model), id="head", class_="head"), right, class_="topbar")
    earlier = None
    if shown.start > 0:
        more = button("Show earlier turns", "earlier", class_="quiet small")
        earlier = h("div", more, class_="earlier", id="earlier")
    log = h(
        "div",
        shown.timeline.html(),
        id=ROOT,
        class_="log",
        role="log",
        aria_live="off",
        aria_label="Conversation",
    )
    scroller = h("div", earlier, log, class_="scroller", id="scroller", tabindex="-1")
    sticky = h("div", class_="sticky", id="sticky", hidden=True, role="status")
    form = composer(state.mode, routes, route, status=status_line(shown.activity))
    return h("main", bar, sticky, scroller, form, class_="centre", id="main")


def top_bar(state: SessionState, model: str) -> Html:
    """The title, and what the session works with; it changes as the session goes on."""
    tokens = state.usage.input_tokens + state.usage.output_tokens
    cost = format_usd(state.cost_usd if state.cost_known else None)
    intent = f"intent {one_line(state.intent)}"
    return join(
        h("h1", one_line(state.title) or "New session"),
        h("span", intent, class_="chip accent wide") if state.intent else None,
        h("span", f"mode {state.mode}", class_="chip wide"),
        h("span", class_="space"),
        h(
            "span",
            one_line(model).rpartition("/")[2],
            class_="chip wide model",
            title=f"answers come from {model}",
        )
        if model
        else None,
        h("span", f"{cost} · {_short(tokens)} tokens", class_="chip", title=f"{tokens:,} tokens so far"),
    )


def _short(count: int) -> str:
    return f"{count / 1000:.0f}k" if count >= 10_000 else f"{count:,}"


def composer(mode: str, routes: Sequence[str], route: str, *, status: Html = EMPTY) -> Html:
    modes = [
        h("option", MODES[each].partition(":")[0], value=each, selected=each == mode, title=MODES[each])
        for each in get_args(Mode)
    ]
    ways = [h("option", each.capitalize(), value=each, selected=each == route) for each in routes]
    text = h(
        "textarea",
        id="message",
        name="message",
        rows="1",
        placeholder="Message, @file, /command",
        autocomplete="off",
        aria_controls="completions",
        aria_autocomplete="list",
    )
    file = h(
        "input", type="file", id="file", accept=IMAGES, hidden=True, multiple=True, aria_label="Attach images"
    )
    tools = h(
        "div",
        h("label", "Route", for_="route", class_="hidden-label"),
        h("select", *ways, id="route", data_act="route", title="Where messages go"),
        h("label", "Mode", for_="mode", class_="hidden-label"),
        h("select", *modes, id="mode", data_act="mode", title="What may be done without asking"),
        button("@ mention", "mention", class_="quiet small hint"),
        button("Attach", "attach", class_="quiet small"),
        file,
        h("span", class_="space"),
        h("button", h("kbd", "Esc"), "stop", type="button", class_="quiet", data_act="stop", id="stop"),
        h("button", "Send", type="submit", class_="primary", id="send"),
        class_="tools",
    )
    form = h(
        "form",
        h(
            "div",
            id="completions",
            class_="completions",
            role="listbox",
            hidden=True,
            aria_label="Suggestions",
        ),
        h("label", "Message", for_="message", class_="hidden-label"),
        text,
        h("div", id="attached", class_="chips"),
        tools,
        class_="composer",
        id="composer",
    )
    below = h("div", button("↓ New below", "to-end"), class_="new-below", id="new-below", hidden=True)
    line = h("div", status, class_="status", id="status", role="status", aria_live="off")
    return h("div", below, line, form, class_="bottom")


def new_session_page(
    mode: str, routes: Sequence[str], route: str, notices: Sequence[str], doors: Html | None
) -> Html:
    """The page before the first message; with the three doors where no model is ready."""
    left, _ = drawer_buttons()
    bar = h("header", left, h("h1", "New session"), class_="topbar")
    words = "Ask about this code, or say what to change. Edits are shown to you before they are made."
    lines = [h("p", one_line(each), class_="soft") for each in notices]
    chips = [button(label, "fill", class_="chip", text=text) for label, text in STARTS.items()]
    asked = join(
        h("h2", "What should be done?"), h("p", words, class_="soft"), h("div", *chips, class_="next")
    )
    content = doors or asked
    welcome = h("div", content, *lines, class_="welcome")
    scroller = h("div", welcome, class_="scroller", id="scroller", tabindex="-1")
    return h("main", bar, scroller, composer(mode, routes, route), class_="centre", id="main")
