"""What a small model is shown: a short prompt, three actions, and the files that matter, found by code."""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from handrail.context.mentions import Attached, attach_files
from handrail.context.prompt import Prompt
from handrail.models.base import ToolSpec
from handrail.protocol.errors import PathProblem
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
ATTACHED = 2_600
"""Characters of files shown at once: a small model reads some sixty tokens a second."""
IS_TEST = re.compile(r"(^|[/_.-])(tests?|spec)([/_.-]|$)")
NO_STATEMENT = re.compile(
    r"(def|class|async def|function|import|from|module|export|const \w+ = require|else|try|finally)\b"
    r"|[#/*@]|\w+\(.*\) \{$"
)
QUOTES = ('"""', "'''")
MOST_LINES = 80
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
        lines=statement_lines(workspace, writable) if checked else (),
    )


def statement_lines(workspace: Workspace, paths: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Lines that do something, each with its file: headers, comments and lines that stand twice left out."""
    found: list[tuple[str, str]] = []
    for path in paths:
        with suppress(PathProblem):
            quoted = False
            for line in workspace.read(workspace.resolve(path)).text.splitlines():
                text = line.strip()
                if text.startswith(QUOTES):
                    quoted = text[3:].count(text[:3]) == 0 and not quoted
                elif not quoted and len(text) > 2 and not NO_STATEMENT.match(text):
                    found.append((path, line))
                elif quoted and text.endswith(QUOTES):
                    quoted = False
    counts = Counter(line for _, line in found)
    return tuple((path, line) for path, line in found if counts[line] == 1)[:MOST_LINES]


def attach_relevant(workspace: Workspace, prompt: Prompt, output: str) -> Attached:
    """The files that a check's output names, then the others that may be changed, as many as fit."""

    def place(path: str) -> tuple[bool, bool]:
        return (path not in output and path.rpartition("/")[2] not in output, path not in prompt.writable)

    candidates = [path for path in prompt.paths if path in prompt.writable or not place(path)[0]]
    return attach_files(sorted(candidates, key=place), workspace, ATTACHED, how="auto")
