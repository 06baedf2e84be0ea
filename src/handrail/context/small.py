"""What a small model is shown: a short prompt, three actions, and the files that matter, found by code."""

import re
from collections.abc import Sequence

from handrail.context.prompt import IS_TEST, Prompt
from handrail.models.base import ToolSpec
from handrail.workspace.files import Workspace
from handrail.workspace.walk import walk

SYSTEM = """\
You are Handrail, a coding assistant in a small project. Be brief and exact.
Change as little as possible and keep the style. Never change a test to make it pass.
`write` replaces a whole file: repeat every line that stays as it is."""
ACTIONS = {
    "read": "Show a file.",
    "write": "Write a whole file.",
    "run": "Run a command.",
}
WRITING = ("write",)
LISTED_PATHS, DEPTH = 60, 3
LARGEST_WRITTEN = 6_000
"""Bytes of a file that a small model can be trusted to repeat as a whole."""
SOURCE = re.compile(r"\.(py|js|ts|mjs|cjs|go|rs|c|h|cpp|java|rb|sh|json|toml|txt|md|html|css)$")


def small_prompt(workspace: Workspace, tools: Sequence[ToolSpec], *, checked: bool) -> Prompt:
    """The prompt for a model that takes one action at a time; with a check, tests cannot be written."""
    entries = [
        entry
        for entry in walk(workspace.root, DEPTH, LISTED_PATHS * 5)
        if entry.kind == "file" and SOURCE.search(entry.path) and not entry.path.startswith(".")
    ][:LISTED_PATHS]
    writable = [entry.path for entry in entries if entry.size <= LARGEST_WRITTEN]
    if checked:
        writable = [path for path in writable if not IS_TEST.search(path)]
    return Prompt(
        system=SYSTEM,
        tools=tuple(
            ToolSpec(tool.name, ACTIONS[tool.name], tool.schema) for tool in tools if tool.name in ACTIONS
        ),
        paths=tuple(entry.path for entry in entries),
        writable=tuple(writable),
        writing=WRITING,
    )
