"""Reading what a small model answers: an action as JSON, or code in a block that was begun for it."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

from handrail.models.base import CallPart, Finish, Finished, Part, Text
from handrail.models.reading import parsed
from handrail.protocol.ids import new_id
from handrail.protocol.values import Excerpt, ToolCall

ANSWER = "answer"
FENCE = "```"
HASH = "[hash: "


class Reader(Protocol):
    """Takes an answer as it comes."""

    def feed(self, piece: str) -> str:
        """What can be shown now."""

    def end(self, reason: Finish) -> Iterator[Part]:
        """What the answer comes to."""


class ActionReader:
    """Reads the object as it comes: the words of an answer can be shown at once, all else is for the end."""

    OPENING = f'{{"action":"{ANSWER}","text":"'

    def __init__(self) -> None:
        self._written = ""
        self._shown = 0

    def feed(self, piece: str) -> str:
        """What of an answer's words can be shown now."""
        self._written += piece
        words = self._words()
        new, self._shown = words[self._shown :], len(words)
        return new

    def end(self, reason: Finish) -> Iterator[Part]:
        """The call, or the rest of the words, and how it ended."""
        action = self._action() if reason != "length" else None
        if action is None or action.get("action") == ANSWER:
            said = (
                self._written if action is None and not self._shown else str((action or {}).get("text", ""))
            )
            if said[self._shown :]:
                yield Text(said[self._shown :])
            yield Finished(reason)
            return
        arguments = {field: value for field, value in action.items() if field != "action"}
        yield CallPart(ToolCall(id=new_id("call"), name=str(action["action"]), arguments=arguments))
        yield Finished("tool_calls")

    def _action(self) -> dict[str, Any] | None:
        value = parsed(self._written)
        return value if isinstance(value, dict) and isinstance(value.get("action"), str) else None

    def _words(self) -> str:
        """The words of an answer so far, as far as they are whole characters."""
        head, _, text = self._written.partition('"text"')
        if "".join(head.split()) != self.OPENING.partition('"text"')[0] or ":" not in text:
            return ""
        opened = text.partition(":")[2].lstrip()
        if not opened.startswith('"'):
            return ""
        return _unescaped(opened[1:])


class CodeReader(ABC):
    """Reads the code of a block that was begun for it; nothing is shown before it is a call."""

    def __init__(self) -> None:
        self._written = ""

    def feed(self, piece: str) -> str:
        self._written += piece
        return ""

    def end(self, reason: Finish) -> Iterator[Part]:
        """The call, and how it ended; code that was cut off is only words."""
        code = self._written.partition(FENCE)[0].rstrip()
        if reason != "stop" or not code:
            yield Text(self._written)
            yield Finished(reason)
            return
        yield CallPart(self.call(code))
        yield Finished("tool_calls")

    @abstractmethod
    def call(self, code: str) -> ToolCall:
        """What the code is for."""


class RewriteReader(CodeReader):
    """Code that goes on from the lines of an excerpt that stay: an edit of just that part."""

    def __init__(self, excerpt: Excerpt) -> None:
        super().__init__()
        self._excerpt = excerpt

    def call(self, code: str) -> ToolCall:
        last = "\n" if self._excerpt.text.endswith("\n") else ""
        edit = {"search": self._excerpt.text, "replace": f"{self._excerpt.kept}{code}{last}"}
        arguments = {"path": self._excerpt.path, "edits": [edit]}
        return ToolCall(id=new_id("call"), name="edit", arguments=arguments)


class TextReader(CodeReader):
    """The text of a file that an action is about."""

    def __init__(self, action: ToolCall) -> None:
        super().__init__()
        self._action = action

    def call(self, code: str) -> ToolCall:
        first, _, rest = code.partition("\n")
        text = rest.lstrip("\n") if HASH in first else code  # a heading of ours, copied
        arguments = {"path": self._action.arguments.get("path", ""), "text": f"{text}\n"}
        return ToolCall(id=self._action.id, name=self._action.name, arguments=arguments)


def _unescaped(text: str) -> str:
    """The decoded start of a JSON string whose end may not have come yet."""
    end = 0
    while end < len(text) and text[end] != '"':
        step = 1 if text[end] != "\\" else 6 if text[end : end + 2] == "\\u" else 2
        if end + step > len(text):
            break
        end += step
    decoded: str = json.loads(f'"{text[:end]}"', strict=False)
    # Half of a pair is not shown before the other half has come.
    return decoded[:-1] if decoded and "\ud800" <= decoded[-1] <= "\udbff" else decoded
