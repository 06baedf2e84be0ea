"""A tool call on the page: a row, a card with a diff, or a command; with the question about it."""

from msgspec import Struct

from handrail.interfaces.cli.render.approvals import missing_lines
from handrail.interfaces.cli.render.styles import clean, count_of, one_line
from handrail.interfaces.cli.render.tool_calls import FIXABLE_BY_MODEL, SENTENCE, SHORT_TOOL_NAMES
from handrail.interfaces.web.conversation.blocks import button, clock, dot
from handrail.interfaces.web.diff import counts, is_diff, location, parse, plus_minus, render_diff
from handrail.interfaces.web.highlight import highlighted
from handrail.interfaces.web.html import Html, h
from handrail.protocol.events import ApprovalAsked, ToolFinished

OPEN_ROWS = 40
"""A diff with more rows starts folded, unless the user is asked about it."""
COMMAND_TOOLS = ("run", "background", "check")
FILE_HEADER = "--- "
STATES = {
    "waiting": ("wait", "waiting for you"),
    "running": ("run", "running"),
    "ok": ("ok", "applied"),
    "refused": ("bad", "refused"),
    "failed": ("bad", "failed"),
    "cancelled": ("off", "stopped"),
    "interrupted": ("bad", "interrupted"),
    "undone": ("off", "rolled back"),
    "rejected": ("bad", "rejected"),
}


class Call(Struct):
    """What is known about one call so far."""

    block_id: str
    tool: str
    subject: str = ""
    since: float = 0.0
    arguments: str = ""
    asked: ApprovalAsked | None = None
    decision: str = ""
    """The user's answer; empty while it is open, or if nobody was asked."""
    note: str = ""
    finished: ToolFinished | None = None
    output: str = ""
    """The end of what a running command has written."""
    change_id: str = ""
    change_number: int = 0
    undone: bool = False
    picked: bool = False

    @property
    def state(self) -> str:
        if self.undone:
            return "undone"
        if self.finished:
            rejected = self.finished.error and self.finished.error.reason == "user_rejected"
            return "rejected" if rejected else self.finished.status
        return "waiting" if self.asked and not self.decision else "running"

    @property
    def diff(self) -> str:
        shown = self.finished.shown if self.finished else ""
        for text in (shown, self.asked.preview if self.asked else ""):
            if is_diff(text):
                return text
        return ""

    @property
    def is_command(self) -> bool:
        return self.tool in COMMAND_TOOLS


def render_call(call: Call) -> Html:
    if call.diff:
        return _change_card(call)
    if call.asked and (not call.finished or call.is_command):
        return _asked_card(call, call.asked)
    return _row(call)


def _row(call: Call) -> Html:
    """`read   src/cart.py   88 lines`, with what it showed folded below."""
    name = h("span", SHORT_TOOL_NAMES.get(call.tool, call.tool), class_="tool")
    subject = h("code", one_line(call.subject), class_="subject")
    body = _body(call)
    head = (name, subject, h("span", *_result(call), class_="result"))
    if body is None:
        return h("div", *head, id=call.block_id, class_=f"call row {call.state}")
    opened = call.is_command and call.state == "failed"
    return h(
        "details", h("summary", *head), body, id=call.block_id, class_=f"call row {call.state}", open=opened
    )


def _result(call: Call) -> list[Html]:
    end = call.finished
    if end is None:
        return [dot("run", "running"), clock(call.since)]
    if end.status == "ok":
        return [h("span", end.summary)]
    colour, word = STATES[call.state]
    return [
        dot(colour, word),
        h("span", f"{word}: {_why(call)}" if _why(call) else word, class_=f"t-{colour}"),
    ]


def _why(call: Call) -> str:
    end = call.finished
    if end is None or end.error is None:
        return end.summary if end else ""
    if end.error.reason == "user_rejected" and call.note:
        return call.note
    text = " ".join(end.error.message.split())
    if end.error.reason in FIXABLE_BY_MODEL:
        text = SENTENCE.split(text, maxsplit=1)[0]
    return text if end.error.reason == "user_rejected" else f"{end.error.reason}: {text}"


def _body(call: Call) -> Html | None:
    shown = call.finished.shown if call.finished else call.output
    parts = [h("pre", clean(shown.rstrip()), class_="output", tabindex="0")] if shown.strip() else []
    if call.arguments and call.finished and call.finished.status != "ok":
        parts.append(h("pre", clean(call.arguments), class_="output arguments", tabindex="0"))
    return h("div", *parts) if parts else None


def _change_card(call: Call) -> Html:
    files = split_files(call.diff)
    colour, word = STATES[call.state]
    why = f"{word}: {_why(call)}" if call.state in ("refused", "failed", "rejected") else word
    added, removed = counts(call.diff)
    name = call.subject if len(files) == 1 or not call.subject else f"{count_of(len(files), 'file')}"
    name = name or ", ".join(path for path, _ in files)
    state = h("span", why, class_=f"state t-{colour}")
    link = None
    if call.change_id and call.state in ("ok", "undone"):
        number = f"change {call.change_number}" if call.change_number else "change"
        link = h("a", number, href="#", data_place=f"changes/{call.change_id}", class_="soft")
    undo = (
        button("Undo", "undo", class_="quiet small", change=call.change_id)
        if link and call.state == "ok"
        else None
    )
    head = h(
        "header",
        dot(colour, word),
        h("code", one_line(name), class_="path"),
        plus_minus(added, removed),
        h("span", class_="space"),
        state,
        link,
        undo,
        copy_path(files[0][0] or call.subject, files[0][1]) if len(files) == 1 else None,
        class_="card-head",
    )
    bodies = [
        [
            h("div", h("span", path), copy_path(path, text), class_="file-name") if len(files) > 1 else None,
            render_diff(text, path or call.subject),
        ]
        for path, text in files
    ]
    rows = len(parse(call.diff))
    waiting = call.state == "waiting"
    folded = not waiting and (rows > OPEN_ROWS or call.state in ("undone", "refused", "rejected"))
    body = (
        h("details", h("summary", f"Show {count_of(rows, 'line')}"), *bodies, class_="fold")
        if folded
        else bodies
    )
    return h(
        "section",
        head,
        body,
        _question(call, len(files)),
        id=call.block_id,
        class_=f"card change {call.state}",
        tabindex="-1",
        data_card=True,
        aria_label=f"change of {one_line(name)}, {why}",
    )


def copy_path(path: str, diff: str) -> Html:
    """A button that copies `path:line`, to open the place in an editor."""
    where = location(one_line(path), diff)
    return button("Copy path", "copy-path", class_="quiet small", label=f"Copy path {where}", path=where)


def split_files(diff: str) -> list[tuple[str, str]]:
    """(path, diff) of each file in a diff of several."""
    starts = [0]
    lines = diff.split("\n")
    for at, line in enumerate(lines):
        follows = at + 1 < len(lines) and lines[at + 1].startswith("+++ ")
        if at and line.startswith(FILE_HEADER) and follows:
            starts.append(at)
    found = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        part = lines[start:end]
        names = [
            line[4:]
            for line in part[:2]
            if line.startswith((FILE_HEADER, "+++ ")) and line[4:] != "/dev/null"
        ]
        found.append((names[-1].removeprefix("b/").removeprefix("a/") if names else "", "\n".join(part)))
    return found


def _asked_card(call: Call, asked: ApprovalAsked) -> Html:
    """A command, or another call that is no edit, with the question about it."""
    colour, word = STATES[call.state]
    if call.state == "ok":
        word = call.finished.summary if call.finished and call.finished.summary else "done"
    text = asked.preview if asked.preview.strip() else asked.summary
    head = h(
        "header",
        dot(colour, word),
        h("span", SHORT_TOOL_NAMES.get(call.tool, call.tool), class_="tool"),
        h("code", one_line(asked.summary), class_="path") if not call.is_command else None,
        h("span", class_="space"),
        clock(call.since) if call.state == "running" else None,
        h(
            "span",
            word if not _why(call) or call.state == "ok" else f"{word}: {_why(call)}",
            class_=f"state t-{colour}",
        ),
        class_="card-head",
    )
    language = "bash" if call.is_command else ""
    body = h("pre", h("code", highlighted(clean(text.rstrip()), language)), class_="command", tabindex="0")
    shown = call.finished.shown if call.finished else call.output
    output = None
    if shown.strip():
        pre = h("pre", clean(shown.rstrip()), class_="output", tabindex="0")
        lines = count_of(len(shown.splitlines()), "line")
        output = h("details", h("summary", f"Output, {lines}"), pre, open=call.state != "ok", class_="fold")
    return h(
        "section",
        head,
        body,
        output,
        _question(call, 1),
        id=call.block_id,
        class_=f"card command {call.state}",
        tabindex="-1",
        data_card=True,
        aria_label=f"{call.tool} {one_line(asked.summary)}, {word}",
    )


def _question(call: Call, files: int) -> Html | None:
    asked = call.asked
    if asked is None or call.state != "waiting":
        if asked and call.decision == "always":
            return h("footer", "allowed always in this session", class_="soft")
        if asked and call.decision == "allow":
            return h("footer", f"{asked.entry}: allowed from now on, in your settings", class_="soft")
        return None
    edits = bool(call.diff)
    yes = ("Apply all" if files > 1 else "Apply") if edits else "Run" if call.is_command else "Allow"
    target = asked.approval_id
    missing = missing_lines(asked)
    buttons = [
        button(yes, "approve", class_="primary", key="y", id=target, decision="once"),
        button("Reject", "reject", key="n", id=target),
        button("Always in this session", "approve", key="a", id=target, decision="always"),
    ]
    if asked.entry:
        words = f"Always allow {one_line(asked.entry)}"
        buttons.append(button(words, "approve", id=target, decision="allow"))
    reason = h(
        "form",
        h("label", "What should be done instead? The model is told.", for_=f"why-{target}"),
        h("input", id=f"why-{target}", name="note", maxlength="4000", autocomplete="off"),
        h("button", "Reject", type="submit", class_="primary"),
        h("button", "Back", type="button", data_act="reject-back", class_="quiet"),
        class_="reason",
        hidden=True,
        data_act="reject-form",
        data_id=target,
    )
    cut = f"{count_of(missing, 'line')} of this change cannot be shown here. " if missing else ""
    intent = f" · for intent {asked.intent}" if asked.intent else ""
    why = h("span", f"{cut}{one_line(asked.why)}{intent}", class_="why")
    return h("footer", h("div", *buttons, why, class_="buttons"), reason, class_="ask", data_question=target)
