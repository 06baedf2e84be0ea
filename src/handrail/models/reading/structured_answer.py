"""Structured answers: their JSON shown as text while it streams, and one value at the end."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from msgspec import ValidationError, convert
from msgspec.structs import replace

from handrail.models.model import (
    BlockedCalls,
    CallPart,
    Capabilities,
    Finished,
    Model,
    Part,
    Request,
    StopReason,
    StructuredPart,
    Text,
)
from handrail.models.reading.cut_answer import merge_answers, recover_answer, recovered_as_markdown
from handrail.models.reading.json_reader import parse_answer, read_object
from handrail.models.reading.streamed_json import StreamedJsonReader, StringPiece
from handrail.protocol.errors import ModelProblem
from handrail.protocol.problems import problems_in
from handrail.protocol.values import CONTINUE_INPUT, NextStep, StructuredAnswer, Todo

MAX_STEPS, MAX_STEP_LENGTH = 7, 300


def with_valid_steps(answer: StructuredAnswer) -> StructuredAnswer:
    """The answer with only the steps that can be shown in full on one line."""
    steps = (NextStep(label=_one_line(step.label), input=_one_line(step.input)) for step in answer.next_steps)
    valid = [step for step in steps if step.label and 0 < len(step.input) <= MAX_STEP_LENGTH]
    return replace(answer, next_steps=tuple(valid[:MAX_STEPS]))


def step_as_markdown(step: NextStep) -> str:
    """A step's label with the whole message it would send: a label alone can promise anything."""
    if step.input in (CONTINUE_INPUT, step.label):
        return step.label
    longest = max((len(run) for run in re.findall("`+", step.input)), default=0)
    fence = "`" * (longest + 1)
    inner = f" {step.input} " if longest else step.input
    return f"{step.label}: {fence}{inner}{fence}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


STRING = {"type": "string"}
TEXT_LIST = {"type": "array", "items": STRING}
OBJECT_START = re.compile(r"(?:<response>\s*)?(?:```\w*\s*)?\{")
POSSIBLE_START = re.compile(r"(?:<\w{0,8}>?\s*)?(?:`{0,3}\w{0,8}\s*)?")
POSSIBLE_LATE_START = re.compile(r"^(?:```json\b|\{|<response>)", re.MULTILINE)


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required or properties)}


def _list(**properties: Any) -> dict[str, Any]:
    return {"type": "array", "items": _object(**properties)}


ANSWER_FIELDS: dict[str, Any] = {
    "summary": STRING,
    "sections": _list(title=STRING, text=STRING),
    "commands": TEXT_LIST,
    "next_steps": _list(label=STRING, input=STRING),
}
CHANGE_FIELDS: dict[str, Any] = {
    "summary": STRING,
    "sections": ANSWER_FIELDS["sections"],
    "todos": {"type": "array", "items": _object(("text",), text=STRING, command=STRING)},
    "changes": {
        "type": "array",
        "items": _object(
            ("form", "path"),
            form={"type": "string", "enum": ["create", "replace", "rewrite", "delete"]},
            path=STRING,
            todo=STRING,
            base_hash=STRING,
            text=STRING,
            edits={
                "type": "array",
                "items": _object(
                    ("search", "replace"), search=STRING, replace=STRING, replace_all={"type": "boolean"}
                ),
            },
        ),
    },
    "commands": TEXT_LIST,
    "next_steps": ANSWER_FIELDS["next_steps"],
}
MAX_CHANGES = 200
"""Nobody can review more in one answer; larger requests are done step by step."""


def answer_schema(*, changing: bool) -> dict[str, Any]:
    """The schema of an answer; only with `changing` can it contain changes."""
    return _object(("summary",), **(CHANGE_FIELDS if changing else ANSWER_FIELDS))


def _reading_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """What an answer is read by: all that answers have, also where no change was asked for, and nothing else.

    A change is left as it is: what is not known of it may say what it does, and whoever makes it refuses it.
    """
    changes = schema["properties"].get("changes", {"type": "array", "items": {"type": "object"}})
    known = CHANGE_FIELDS | schema["properties"] | {"changes": {**changes, "maxItems": MAX_CHANGES}}
    for name, field in known.items():
        if name != "changes" and "properties" in (items := field.get("items", {})):
            known[name] = {**field, "items": {**items, "additionalProperties": False}}
    return {**_object(("summary",), **known), "additionalProperties": False}


class StructuredModel:
    """A model whose answers are read as structured ones: text streams, the value comes at the end."""

    def __init__(
        self,
        inner: Model,
        schema: dict[str, Any],
        kept: StructuredAnswer | None = None,
        todos: Sequence[Todo] = (),
    ) -> None:
        """`kept`: complete parts of a cut answer, of which this one is the rest; `todos`: the session's."""
        self._inner = inner
        self._schema = schema
        self._kept = kept
        self._todos = todos

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    async def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        reader = StructuredReader(self._schema, self._kept, self._todos)
        try:
            async with aclosing(self._read(request, reader)) as parts:
                async for part in parts:
                    yield part
        except ModelProblem:
            yield reader.end("cut")
            raise

    async def _read(self, request: Request, reader: "StructuredReader") -> AsyncGenerator[Part, None]:
        async with aclosing(self._inner.stream(request)) as parts:
            async for part in parts:
                match part:
                    case Text(text):
                        if shown := reader.feed(text):
                            yield Text(shown)
                    case CallPart() | BlockedCalls():
                        pass  # no tool was offered, and nothing of an answer is a call
                    case Finished(reason):
                        ended: StopReason = "stop" if reason == "tool_calls" else reason
                        whole = reader.end(ended)
                        if whole.text.startswith(reader.shown) and (rest := whole.text[len(reader.shown) :]):
                            yield Text(rest)
                        yield whole
                        yield Finished(ended)
                    case _:
                        yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


class StructuredReader:
    """Reads an answer as it streams: summary and sections can be shown at once."""

    def __init__(
        self, schema: dict[str, Any], kept: StructuredAnswer | None = None, todos: Sequence[Todo] = ()
    ) -> None:
        self._schema = schema
        self._kept = kept
        self._todos = todos
        self._written: list[str] = []
        self._shown: list[str] = []
        self._start = ""
        """The text so far, until it is clear whether it is prose or an object."""
        self._line = ""
        """The start of the current line of prose."""
        self._json: StreamedJsonReader | None = None
        self._prose = self._late = self._any_shown = False

    @property
    def shown(self) -> str:
        return "".join(self._shown)

    def feed(self, piece: str) -> str:
        """Text that can be shown now."""
        self._written.append(piece)
        new = self._visible(piece)
        self._shown.append(new)
        return new

    def _visible(self, piece: str) -> str:
        if self._json:
            return "".join(map(self._visible_text, self._json.feed(piece)))
        if self._prose:
            return self._visible_prose(piece)
        self._start = (self._start + piece).lstrip()
        if opened := OBJECT_START.match(self._start):
            self._json = StreamedJsonReader()
            return self._visible(self._start[opened.end() - 1 :])
        if len(self._start) < 40 and POSSIBLE_START.fullmatch(self._start):
            return ""
        self._prose = True
        return self._visible_prose(self._start)

    def _visible_prose(self, piece: str) -> str:
        """Prose is shown only until an object starts: text around the object is not the answer."""
        if not self._late:
            text = self._line + piece
            self._late = POSSIBLE_LATE_START.search(text) is not None
            line = text.rfind("\n") + 1
            self._line = text[line : line + 16]
        return "" if self._late else piece

    def _visible_text(self, piece: StringPiece) -> str:
        """The text, with a heading mark or a blank line before the first characters of a part."""
        match piece.path:
            case ("summary",) | ("sections", int(), "text"):
                mark = ""
            case ("sections", int(), "title"):
                mark = "### "
            case _:
                return ""
        before = "\n\n" if self._any_shown else ""
        self._any_shown = True
        return f"{before}{mark}{piece.text}" if piece.first else piece.text

    def end(self, reason: StopReason) -> StructuredPart:
        """The whole answer; without a value if it cannot be read."""
        written = "".join(self._written)
        if reason != "stop":
            return self._cut(written, f"it was cut off ({reason})")
        talking = "changes" not in self._schema["properties"]
        if talking and self._prose and '"summary"' not in written:
            answer = StructuredAnswer(summary=written.strip())  # text is all that was asked for
            return StructuredPart(answer, written.lstrip(), read=("words",))
        value, problems, read = parse_answer(written, _reading_schema(self._schema), alone=True)
        if value is None:
            was_cut = read_object(written).how == "cut"
            return self._cut(written, *problems) if was_cut else self._unread(written, *problems)
        try:
            answer = convert(value, StructuredAnswer)
        except ValidationError:
            first = problems_in(value, StructuredAnswer)[0]
            return self._unread(written, f"`{first.where}` {first.should}")
        answer = self._with_kept(answer)
        answer = answer if talking else with_continue_step(answer, self._todos)
        text = "\n\n".join(part for part in (*self._full_text(answer), *offers_as_markdown(answer)) if part)
        return StructuredPart(answer, text, read=read)

    def _with_kept(self, answer: StructuredAnswer) -> StructuredAnswer:
        answer = merge_answers(self._kept, with_valid_steps(answer))
        return answer if "changes" in self._schema["properties"] else without_changes(answer)

    def _cut(self, written: str, *problems: str) -> StructuredPart:
        """The text so far, and the complete parts besides it."""
        unread = self._unread(written, *problems)
        found = recover_answer(written, _reading_schema(self._schema))
        if found is None and self._kept is None:
            return unread
        answer = self._with_kept(found or StructuredAnswer(""))
        parts = (unread.text.rstrip(), *recovered_as_markdown(answer), *offers_as_markdown(answer))
        return replace(unread, text="\n\n".join(filter(None, parts)), recovered=answer)

    def _full_text(self, answer: StructuredAnswer) -> tuple[str, ...]:
        """The whole text, starting with what was shown, in whatever order it came."""
        text, shown = answer_as_markdown(answer), self.shown
        if text.startswith(shown):
            return (text,)
        texts = [answer.summary, *(section.text for section in answer.sections)]
        return (shown,) if all(each in shown for each in texts) else (shown.rstrip("\n"), text)

    def _unread(self, written: str, *problems: str) -> StructuredPart:
        text = written.lstrip() if self._prose else self.shown or written
        return StructuredPart(None, text, problems)


def without_changes(answer: StructuredAnswer) -> StructuredAnswer:
    """The answer to a question: changes in it become a next step that asks for them."""
    if not answer.changes:
        return replace(answer, todos=())
    paths = dict.fromkeys(str(change.get("path", "")) for change in answer.changes)
    step = NextStep(label="Make this change", input=f"Make the change that you described: {', '.join(paths)}")
    return replace(answer, todos=(), changes=(), next_steps=(*answer.next_steps, step))


def with_continue_step(answer: StructuredAnswer, todos: Sequence[Todo]) -> StructuredAnswer:
    """The answer with a `Continue` step, if it leaves todos that a change can complete."""
    offered = any(step.input == CONTINUE_INPUT for step in answer.next_steps)
    texts = {todo.id: todo.text for todo in todos}
    named = (_one_line(str(change.get("todo", ""))) for change in answer.changes)
    settled = {texts.get(name, name) for name in named} | {todo.text for todo in todos if todo.done}
    if offered or all(todo.command or _one_line(todo.text) in settled for todo in answer.todos):
        return answer
    others = tuple(step for step in answer.next_steps if step.label.strip().lower() != "continue")
    step = NextStep(label="Continue", input=CONTINUE_INPUT)
    return replace(answer, next_steps=(step, *others))


def answer_as_markdown(answer: StructuredAnswer) -> str:
    parts = [answer.summary]
    for section in answer.sections:
        parts += [f"### {section.title}"] if section.title else []
        parts += [section.text] if section.text else []
    return "\n\n".join(part for part in parts if part)


def offers_as_markdown(answer: StructuredAnswer) -> list[str]:
    """Commands in a code block, and numbered next steps."""
    parts = []
    if answer.commands:
        commands = "\n".join(answer.commands)
        longest = max((len(run) for run in re.findall("`{3,}", commands)), default=2)
        fence = "`" * (longest + 1)
        parts.append(f"{fence}sh\n{commands}\n{fence}")
    if answer.next_steps:
        steps = [f"{at}. {step_as_markdown(step)}" for at, step in enumerate(answer.next_steps, start=1)]
        parts.append("**Next**\n\n" + "\n".join(steps))
    return parts
