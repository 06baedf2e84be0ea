"""What comes with every request of a turn."""

from typing import NamedTuple

from handrail.models.base import ToolSpec

FILE_EVERY = 4
"""Small models are much better at one line than at a file; some things need more than a line."""


class Prompt(NamedTuple):
    """The system prompt, the tools, and for small models the files that an action can name."""

    system: str
    tools: tuple[ToolSpec, ...]
    paths: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    writing: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    """(path, text) of lines of which one can be replaced."""

    def for_attempt(self, number: int) -> "Prompt":
        """One thing asked at a time: a better line, and in every fourth attempt a better file."""
        if not self.lines or number == 0:
            return self._replace(lines=())
        if number % FILE_EVERY:
            return self._replace(tools=())
        return self._replace(tools=tuple(tool for tool in self.tools if tool.name in self.writing), lines=())
