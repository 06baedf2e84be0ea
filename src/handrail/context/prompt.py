"""What comes with every request of a turn."""

from typing import NamedTuple

from handrail.models.base import ToolSpec


class Prompt(NamedTuple):
    """The system prompt, the tools, and for small models the files that an action can name."""

    system: str
    tools: tuple[ToolSpec, ...]
    paths: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    writing: tuple[str, ...] = ()
