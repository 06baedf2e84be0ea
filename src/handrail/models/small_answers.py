"""Reading what a small model answers: an action as JSON, or code in a block that was begun for it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

from handrail.models.base import CallPart, Finish, Finished, Part, Text
from handrail.models.reading import parsed
from handrail.models.streamed_json import StreamedJson, Words
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

    def __init__(self) -> None:
        self._written: list[str] = []
        self._json = StreamedJson()
        self._action = ""
        self._shown = False

    def feed(self, piece: str) -> str:
        """What of an answer's words can be shown now."""
        self._written.append(piece)
        new = "".join(map(self._told, self._json.feed(piece)))
        self._shown = self._shown or bool(new)
        return new

    def end(self, reason: Finish) -> Iterator[Part]:
        """The call, or the words that were not shown, and how it ended; what is no action is words."""
        written = "".join(self._written)
        action = _action(written) if reason != "length" else None
        if action and action["action"] != ANSWER:
            arguments = {field: value for field, value in action.items() if field != "action"}
            yield CallPart(ToolCall(id=new_id("call"), name=str(action["action"]), arguments=arguments))
            yield Finished("tool_calls")
            return
        said = written if action is None else str(action.get("text", ""))
        if said and not self._shown:
            yield Text(said)
        yield Finished(reason)

    def _told(self, words: Words) -> str:
        match words.path:
            case ("action",):
                self._action = words.text if words.begun else self._action + words.text
            case ("text",) if self._action == ANSWER:
                return words.text
        return ""


def _action(written: str) -> dict[str, Any] | None:
    value = parsed(written)
    return value if isinstance(value, dict) and isinstance(value.get("action"), str) else None


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


class FileReader(CodeReader):
    """The text of a file that an action is about."""

    def __init__(self, action: ToolCall) -> None:
        super().__init__()
        self._action = action

    def call(self, code: str) -> ToolCall:
        first, _, rest = code.partition("\n")
        text = rest.lstrip("\n") if HASH in first else code  # a heading of ours, copied
        arguments = {"path": self._action.arguments.get("path", ""), "text": f"{text}\n"}
        return ToolCall(id=self._action.id, name=self._action.name, arguments=arguments)
