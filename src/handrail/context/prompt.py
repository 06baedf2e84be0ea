"""What comes with every request of a turn."""

import re
from typing import NamedTuple

from handrail.models.base import ToolSpec
from handrail.protocol.values import Excerpt

REWRITING = "You are a careful programmer. Fix the bug with the smallest change."
HOOKS_TELL = "The user's own programs tell you, for the whole session:"
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

    def told(self, text: str | None) -> "Prompt":
        """With what hooks of the user's tell for the whole session, if there is anything."""
        return self._replace(system=f"{self.system}\n\n{HOOKS_TELL}\n{text}") if text else self

    def rewriting(self, excerpt: Excerpt | None) -> "Prompt":
        """One thing asked at a time: only a better text for this part of a file, if there is one."""
        return self if excerpt is None else self._replace(system=REWRITING, tools=(), rewrite=excerpt)
