"""What comes with every request of a turn."""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from handrail.models.base import NO_FIELDS, ToolSpec
from handrail.protocol.errors import ToolError
from handrail.protocol.intent import REQUEST, SELECT
from handrail.protocol.values import Excerpt

REWRITING = "You are a careful programmer. Fix the bug with the smallest change."
HOOKS_TELL = "The user's own programs tell you, for the whole session:"
NEEDS_INTENT = ("missing_intent_id", "unknown_intent", "intent_done", "intent_ignored")
MOST_READ = 3
"""Files that a small model reads before it answers."""
IS_TEST = re.compile(r"(^|[/_.-])(tests?|spec)([/_.-]|$)")


class Prompt(NamedTuple):
    """The system prompt, the tools, and for small models the files that an action can name."""

    system: str
    tools: tuple[ToolSpec, ...]
    paths: tuple[str, ...] = ()
    """Those that it can look at."""
    writable: tuple[str, ...] = ()
    writing: tuple[str, ...] = ()
    actions: tuple[str, ...] | None = None
    """Those of the tools that make sense now; the prompt names all, so that it stays the same."""
    rewrite: Excerpt | None = None
    intents: str = ""
    """What is said of the workspace's intents."""
    fields: Mapping[str, dict[str, Any]] = NO_FIELDS
    """For small models: what a field of an action can be, where that is not any text."""

    @property
    def whole(self) -> str:
        """All words of the system prompt."""
        return f"{self.system}\n\n{self.intents}" if self.intents else self.system

    def answering(self, refusal: ToolError | None) -> "Prompt":
        """For a small model after a refusal: what the refusal asks for is all that can be done next."""
        if self.actions is None or refusal is None:
            return self
        if refusal.reason in NEEDS_INTENT:
            return self._replace(actions=(SELECT,))
        if refusal.reason == "scope_violation" and refusal.file and refusal.tool != REQUEST:
            wanted = {"type": "array", "items": {"enum": [refusal.file]}, "minItems": 1, "maxItems": 1}
            return self._replace(actions=(REQUEST,), fields={**self.fields, "paths": wanted})
        return self

    def only_reading(self, read: Collection[str]) -> "Prompt":
        """For a small model where nothing may be changed: it can read a few files, each once, and answer.

        Left alone it reads the same two files in turn, and never answers.
        """
        if self.actions is None:
            return self
        paths = tuple(path for path in self.paths if path not in read)
        more = "read" in self.actions and bool(paths) and len(read) < MOST_READ
        return self._replace(actions=("read",) if more else (), paths=paths)

    def told(self, text: str | None) -> "Prompt":
        """With what hooks of the user's tell for the whole session, if there is anything."""
        return self._replace(system=f"{self.system}\n\n{HOOKS_TELL}\n{text}") if text else self

    def rewriting(self, excerpt: Excerpt | None) -> "Prompt":
        """One thing asked at a time: only a better text for this part of a file, if there is one."""
        return (
            self
            if excerpt is None
            else self._replace(system=REWRITING, tools=(), intents="", rewrite=excerpt)
        )
