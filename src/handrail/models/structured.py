"""Structured answers: a model's JSON as words while it comes, and as one value at its end."""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from pydantic import ValidationError

from handrail.models.base import (
    Blocked,
    CallPart,
    Capabilities,
    Finish,
    Finished,
    Model,
    Part,
    Request,
    Structured,
    Text,
)
from handrail.models.next_steps import shown, with_sayable_steps
from handrail.models.reading import shaped
from handrail.models.streamed_json import StreamedJson, Words
from handrail.protocol.structured import CONTINUE, NextStep, StructuredAnswer

TEXTS = {"type": "array", "items": {"type": "string"}}
OPENED = re.compile(r"(?:<response>\s*)?(?:```\w*\s*)?\{")
MAY_OPEN = re.compile(r"(?:<\w{0,8}>?\s*)?(?:`{0,3}\w{0,8}\s*)?")
LONGEST_OPENING = 40
MAY_OPEN_LATE = re.compile(r"^(?:```json\b|\{|<response>)", re.MULTILINE)
LONGEST_MARK = 16


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required or properties)}


def _list(**properties: Any) -> dict[str, Any]:
    return {"type": "array", "items": _object(**properties)}


STRING = {"type": "string"}
TALK: dict[str, Any] = {
    "summary": STRING,
    "sections": _list(title=STRING, text=STRING),
    "commands": TEXTS,
    "next_steps": _list(label=STRING, input=STRING),
}
WORK: dict[str, Any] = {
    "summary": STRING,
    "sections": TALK["sections"],
    "todos": _list(text=STRING, done={"type": "boolean"}),
    "changes": {
        "type": "array",
        "items": _object(
            ("form", "path"),
            form={"type": "string", "enum": ["create", "replace", "rewrite", "delete"]},
            path=STRING,
            base_hash=STRING,
            text=STRING,
            edits=_list(search=STRING, replace=STRING),
        ),
    },
    "commands": TEXTS,
    "next_steps": TALK["next_steps"],
}
MOST_CHANGES = 200
"""In one answer: nobody can look through more, and a request of more is done step by step."""


def schema_of(*, changing: bool) -> dict[str, Any]:
    """What an answer has to be; without `changing` it has nothing that could be done."""
    return _object(("summary",), **(WORK if changing else TALK))


def _reading(schema: dict[str, Any]) -> dict[str, Any]:
    """What an answer is read by: all that answers have, also where no change was asked for, and nothing else.

    A change is left as it is: what is not known of it may say what it does, and whoever makes it refuses it.
    """
    changes = schema["properties"].get("changes", {"type": "array", "items": {"type": "object"}})
    known = {name: _closed(each) for name, each in (WORK | schema["properties"]).items()}
    known["changes"] = {**changes, "maxItems": MOST_CHANGES}
    return {**_object(("summary",), **known), "additionalProperties": False}


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    items = schema.get("items", {})
    if "properties" not in items:
        return schema
    return {**schema, "items": {**items, "additionalProperties": False}}


class StructuredModel:
    """A model whose answer is read as a structured one: what streams are words, the rest comes whole."""

    def __init__(self, inner: Model, schema: dict[str, Any]) -> None:
        self._inner = inner
        self._schema = schema

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    async def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        reader = StructuredReader(self._schema)
        async with aclosing(self._inner.stream(request)) as parts:
            async for part in parts:
                match part:
                    case Text(text):
                        if shown := reader.feed(text):
                            yield Text(shown)
                    case CallPart() | Blocked():
                        pass  # no tool was offered, and nothing of an answer is a call
                    case Finished(reason):
                        ended: Finish = "stop" if reason == "tool_calls" else reason
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
    """Reads an answer as it comes: its summary and its sections can be shown at once."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._written: list[str] = []
        self._shown: list[str] = []
        self._start = ""
        """What has come, until it is known to be prose or an object."""
        self._line = ""
        """Of prose, the beginning of the line that comes."""
        self._json: StreamedJson | None = None
        self._prose = self._late = self._told_any = False

    @property
    def shown(self) -> str:
        """All that could be shown so far."""
        return "".join(self._shown)

    def feed(self, piece: str) -> str:
        """What can be shown now."""
        self._written.append(piece)
        new = self._words(piece)
        self._shown.append(new)
        return new

    def _words(self, piece: str) -> str:
        if self._json:
            return "".join(map(self._told, self._json.feed(piece)))
        if self._prose:
            return self._prose_words(piece)
        self._start = (self._start + piece).lstrip()
        if opened := OPENED.match(self._start):
            self._json = StreamedJson()
            return self._words(self._start[opened.end() - 1 :])
        if len(self._start) < LONGEST_OPENING and MAY_OPEN.fullmatch(self._start):
            return ""
        self._prose = True
        return self._prose_words(self._start)

    def _prose_words(self, piece: str) -> str:
        """Words around the object are not the answer: they show only as long as none has begun."""
        if not self._late:
            text = self._line + piece
            self._late = MAY_OPEN_LATE.search(text) is not None
            line = text.rfind("\n") + 1
            self._line = text[line : line + LONGEST_MARK]
        return "" if self._late else piece

    def _told(self, words: Words) -> str:
        """The words, with the mark of a heading or the space between two parts before the first of them."""
        match words.path:
            case ("summary",) | ("sections", int(), "text"):
                mark = ""
            case ("sections", int(), "title"):
                mark = "### "
            case _:
                return ""
        before = "\n\n" if self._told_any else ""
        self._told_any = True
        return f"{before}{mark}{words.text}" if words.begun else words.text

    def end(self, reason: Finish) -> Structured:
        """The whole answer; without a value where it cannot be read, and nothing of it may be used then."""
        written = "".join(self._written)
        if reason != "stop":
            return self._unread(written, f"it was cut off ({reason})")
        talking = "changes" not in self._schema["properties"]
        if talking and self._prose and '"summary"' not in written:
            answer = StructuredAnswer(summary=written.strip())  # words are all that was asked for
            return Structured(answer, written.lstrip(), read=("words",))
        value, problems, read = shaped(written, _reading(self._schema), alone=True)
        if value is None:
            return self._unread(written, *problems)
        try:
            answer = StructuredAnswer.model_validate(value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            return self._unread(written, f"`{'.'.join(map(str, first['loc']))}`: {first['msg']}")
        answer = with_sayable_steps(answer)
        answer = only_said(answer) if talking else going_on(answer)
        words = "\n\n".join(part for part in (*self._all_words(answer), *offered(answer)) if part)
        return Structured(answer, words, read=read)

    def _all_words(self, answer: StructuredAnswer) -> tuple[str, ...]:
        """All words of the answer, what was shown before everything else, in whichever order it came."""
        words, shown = said(answer), self.shown
        if words.startswith(shown):
            return (words,)
        texts = [answer.summary, *(section.text for section in answer.sections)]
        return (shown,) if all(text in shown for text in texts) else (shown.rstrip("\n"), words)

    def _unread(self, written: str, *problems: str) -> Structured:
        words = written.lstrip() if self._prose else self.shown or written
        return Structured(None, words, problems)


def only_said(answer: StructuredAnswer) -> StructuredAnswer:
    """The answer to somebody who only asked: a change in it is something that they could ask for next."""
    if not answer.changes:
        return answer.model_copy(update={"todos": ()})
    paths = dict.fromkeys(str(change.get("path", "")) for change in answer.changes)
    step = NextStep(label="Make this change", input=f"Make the change that you described: {', '.join(paths)}")
    return answer.model_copy(update={"todos": (), "changes": (), "next_steps": (*answer.next_steps, step)})


def going_on(answer: StructuredAnswer) -> StructuredAnswer:
    """The answer with a step that goes on, where it leaves todos."""
    if all(todo.done for todo in answer.todos) or any(step.input == CONTINUE for step in answer.next_steps):
        return answer
    others = tuple(step for step in answer.next_steps if step.label.strip().lower() != "continue")
    step = NextStep(label="Continue", input=CONTINUE)
    return answer.model_copy(update={"next_steps": (step, *others)})


def said(answer: StructuredAnswer) -> str:
    """Its words, as every interface shows them: markdown."""
    parts = [answer.summary]
    for section in answer.sections:
        parts += [f"### {section.title}"] if section.title else []
        parts += [section.text] if section.text else []
    return "\n\n".join(part for part in parts if part)


def offered(answer: StructuredAnswer) -> list[str]:
    """What the user can do with it: commands in a block that can be run from, and next steps by number."""
    parts = []
    if answer.commands:
        commands = "\n".join(answer.commands)
        longest = max((len(run) for run in re.findall("`{3,}", commands)), default=2)
        fence = "`" * (longest + 1)
        parts.append(f"{fence}sh\n{commands}\n{fence}")
    if answer.next_steps:
        steps = (f"{number}. {shown(step)}" for number, step in enumerate(answer.next_steps, start=1))
        parts.append("**Next**\n\n" + "\n".join(steps))
    return parts
