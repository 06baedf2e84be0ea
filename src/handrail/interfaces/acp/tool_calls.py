"""A tool call as the client shows it: title, kind, place, state, and what it did."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acp import schema
from acp.helpers import text_block, tool_content, tool_diff_content
from msgspec import Struct, field

from handrail.app.history.changes import ChangedText
from handrail.protocol import events
from handrail.protocol.values import FileChange

SHOWN_CHARACTERS = 8_000
"""Of a command's output, or of a result."""
KINDS: dict[str, schema.ToolKind] = {
    **dict.fromkeys(("read", "list", "skill"), "read"),
    **dict.fromkeys(("glob", "search", "survey"), "search"),
    **dict.fromkeys(("edit", "write", "apply_diff", "write_notes", "record_lesson", "changes"), "edit"),
    "delete": "delete",
    "move": "move",
    **dict.fromkeys(("run", "background"), "execute"),
    "fetch": "fetch",
    "subagent": "think",
}
SUBJECTS = ("path", "command", "pattern", "query", "url", "question", "task", "name")
"""The arguments that say best what a call is about."""
COMMAND_TOOL = "run"
WITHOUT_CALL = ("todos", "ask_user", "next_steps", "record_plan")
"""Tools whose success has an event of its own, which is shown instead."""
STATES: dict[events.CallStatus, schema.ToolCallStatus] = {"ok": "completed"}

Content = list[
    schema.ContentToolCallContent | schema.FileEditToolCallContent | schema.TerminalToolCallContent
]


class Call(Struct, eq=False):
    """A call that the client knows."""

    id: str
    """Unique in the session, which the model's own ids are not."""
    tool: str
    title: str
    arguments: dict[str, Any] = field(default_factory=dict)
    places: list[schema.ToolCallLocation] = field(default_factory=list)
    content: Content = field(default_factory=list)
    output: str = ""
    steps: list[str] = field(default_factory=list)
    """What a sub-agent has done."""
    state: schema.ToolCallStatus = "pending"
    terminal: str = ""

    @property
    def over(self) -> bool:
        return self.state in ("completed", "failed")

    def start(self) -> schema.ToolCallStart:
        return schema.ToolCallStart(
            session_update="tool_call",
            tool_call_id=self.id,
            title=self.title,
            kind=KINDS.get(self.tool, "other"),
            status=self.state,
            content=self.content or None,
            locations=self.places or None,
            raw_input=self.arguments or None,
        )

    def update(self) -> schema.ToolCallProgress:
        """All that is known about it now."""
        return schema.ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id=self.id,
            title=self.title,
            kind=KINDS.get(self.tool, "other"),
            status=self.state,
            content=self.content or None,
            locations=self.places or None,
        )

    def terminal_content(self) -> Content:
        """The terminal with its output; nothing where there is none."""
        if not self.terminal:
            return []
        return [schema.TerminalToolCallContent(type="terminal", terminal_id=self.terminal)]

    def asked(self) -> schema.ToolCallUpdate:
        """The call in a question to the user."""
        return schema.ToolCallUpdate(**self.update().model_dump(exclude={"session_update"}))


def new_call(call_id: str, tool: str, arguments: dict[str, Any], root: Path) -> Call:
    subject = next((str(arguments[name]) for name in SUBJECTS if arguments.get(name)), "")
    call = Call(call_id, tool, titled(tool, subject), arguments)
    if isinstance(path := arguments.get("path"), str) and path:
        start = arguments.get("start")
        call.places = [place(root, path, start if isinstance(start, int) and start > 0 else None)]
    return call


def titled(tool: str, subject: str) -> str:
    first, *others = subject.strip().split("\n")
    text = f"{first} …" if others else first
    return text if tool == COMMAND_TOOL and text else f"{tool} {text}".strip()


def place(root: Path, path: str, line: int | None = None) -> schema.ToolCallLocation:
    return schema.ToolCallLocation(path=str(root / path), line=line)


def text_content(text: str) -> Content:
    return [tool_content(text_block(text))] if text.strip() else []


def asked_content(asked: events.ApprovalAsked) -> Content:
    """The command or the diff itself, and why it is asked about."""
    shown = asked.preview.strip("\n") or asked.summary
    language = "diff" if shown.startswith(("--- ", "@@")) or "\n@@" in shown else ""
    intent = f"\n\nIntent: {asked.intent}" if asked.intent else ""
    return text_content(f"{fenced(shown, language)}\n\n{asked.why}{intent}")


def finished_content(call: Call, event: events.ToolFinished) -> Content:
    """What the call did: diffs of files, else what a person is shown of its result."""
    if event.error:
        return text_content(event.error.message)
    diffs: Content = [each for each in call.content if isinstance(each, schema.FileEditToolCallContent)]
    if diffs and event.status == "ok":
        return diffs + text_content(event.summary)
    if call.terminal:
        return call.terminal_content() + text_content(event.summary)
    shown = event.shown or (event.content if KINDS.get(call.tool) in ("read", "search") else "")
    body = fenced(_clipped(shown)) if shown.strip() else ""
    return text_content("\n\n".join(part for part in (body, event.summary) if part))


def diff_content(texts: Sequence[ChangedText], root: Path) -> Content:
    return [tool_diff_content(str(root / each.path), each.new or "", each.old) for each in texts]


def output_content(text: str) -> Content:
    return text_content(fenced(_clipped(text)))


def change_places(files: Sequence[FileChange], root: Path) -> list[schema.ToolCallLocation]:
    return [
        place(root, file.destination or file.path, file.ranges[0].start if file.ranges else None)
        for file in files
    ]


def fenced(text: str, language: str = "") -> str:
    """A code block that nothing in the text can end."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _clipped(text: str) -> str:
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"[{len(text) - SHOWN_CHARACTERS:,} characters before this]\n{text[-SHOWN_CHARACTERS:]}"
