"""What a small model is shown in a conversation: a short prompt, a few actions, the files that were named."""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress

from handrail.context.intent_words import short_words
from handrail.context.prompt import IS_TEST, Prompt
from handrail.models.base import NO_FIELDS, ToolSpec
from handrail.protocol.errors import PathProblem
from handrail.protocol.intent import REQUEST, SELECT
from handrail.workspace.files import Workspace
from handrail.workspace.intents.intent_file import Intents
from handrail.workspace.walk import Entry, walk

SYSTEM = """\
You are Handrail, a coding assistant in a small project. Be brief and exact.
Answer questions in words. Change a file only when the user asks for a change; keep its style."""
ACTIONS = {
    "write": "Change or create a file; its text is asked for next.",
    "read": "Look at a file that was not shown.",
    "run": "Run a command, when the user asks for it.",
}
INTENT_ACTIONS = {
    SELECT: "Select the intent that the change is part of, before the first change.",
    REQUEST: "Ask the user to let the intent change one more file.",
}
WRITING = ("write",)
LISTED_PATHS, DEPTH = 60, 3
LARGEST_WRITTEN = 6_000
"""Bytes of a file that a small model can be trusted to repeat as a whole."""
ASKS = re.compile(
    r"^\W*(what|why|how|who|where|when|which|is|are|does|do|did|can|could|should|would|explain|describe|show|tell)\b"
    r"|\?\s*$",
    re.IGNORECASE,
)
CHANGES = re.compile(
    r"\b(add|append|change|convert|correct|create|delete|drop|extract|fix|implement|improve|insert|introduce|make|mend"
    r"|move|put|refactor|remove|rename|replace|rewrite|simplify|split|turn|update|use|write)\b",
    re.IGNORECASE,
)
GREETS = re.compile(
    r"\W*(?:hi|hello|hey|good (?:morning|evening|day)|thanks|thank you|bye|goodbye|ok|okay|great|nice)\b"
    r"(?:\W+\w+){0,3}\W*",
    re.IGNORECASE,
)
RUNS = re.compile(r"\b(run|execute|start|install|build|test|tests|command)\b", re.IGNORECASE)
SOURCE = re.compile(r"\.(py|js|ts|mjs|cjs|go|rs|c|h|cpp|java|rb|sh|json|toml|txt|md|html|css)$")


FILE_NAME = re.compile(r"(?<![\w@/.~-])[\w-][\w./-]*\.\w{1,8}(?![\w/])")
PLAIN_NAME = re.compile(r"(?<![\w@/.~-])(?:[A-Z][a-z]+file|LICENSE|CODEOWNERS)(?![\w/.-]*\w)")
"""Names of files that have no ending, such as Makefile."""
MOST_NAMED = 20
MOST_IN_PLAY = 2
MOST_INTENTS = 100


def small_prompt(
    workspace: Workspace,
    tools: Sequence[ToolSpec],
    words: str = "",
    seen: Collection[str] = (),
    *,
    checked: bool,
    intents: Intents | None = None,
    active: str = "",
) -> Prompt:
    """The prompt for a model that takes one action at a time; with a check, tests cannot be written.

    Small models choose badly, so that code leaves little to choose: a question changes nothing, a file that
    was shown is not read again, and where the user names files these are the ones to write, else those that
    were shown last.
    """
    entries = source_files(workspace)
    paths = [entry.path for entry in entries]
    named = [name for name in file_names(words) if SOURCE.search(name)]
    writable = [entry.path for entry in entries if _is_short(entry)]
    if checked:
        writable = [path for path in writable if not IS_TEST.search(path)]
    elif named:
        writable = [name for name in named if name in writable or name not in paths]
    elif talked_of := [path for path in _shown_last(words, seen, writable) if not IS_TEST.search(path)]:
        writable = talked_of
    readable = [path for path in paths if path not in seen]
    left = {
        "write": bool(writable) and (checked or wants_change(words, named)),
        "read": bool(readable) and not set(named) & set(seen) and not GREETS.fullmatch(words),
        "run": not words or bool(RUNS.search(words)),
    }
    offered = {tool.name: tool for tool in tools}
    return Prompt(
        system=SYSTEM,
        tools=tuple(
            ToolSpec(name, told, offered[name].schema)
            for name, told in (ACTIONS | INTENT_ACTIONS).items()
            if name in offered
        ),
        actions=tuple(name for name in ACTIONS if left[name]),
        fields={"intent_id": {"enum": ids}} if (ids := selectable(intents)) else NO_FIELDS,
        intents=short_words(intents, active) if intents else "",
        paths=tuple(readable),
        writable=tuple(writable),
        writing=WRITING,
    )


def selectable(intents: Intents | None) -> list[str]:
    """Ids that the model can choose from."""
    return [each.id for each in intents.selectable[:MOST_INTENTS]] if intents else []


def wants_change(words: str, named: Sequence[str]) -> bool:
    """Whether the words ask for one, as far as code can tell: a question or a greeting never does."""
    return not ASKS.search(words) and bool(named or CHANGES.search(words))


def file_names(words: str) -> list[str]:
    """Names of files that stand in the user's words, once each, in order."""
    return list(dict.fromkeys(name for name in FILE_NAME.findall(words) if ".." not in name))


def named_files(words: str, workspace: Workspace) -> list[str]:
    """Files of the workspace that the user names: a small model is shown them without having to ask."""
    found = []
    for name in dict.fromkeys([*file_names(words), *PLAIN_NAME.findall(words)]):
        with suppress(PathProblem):
            place = workspace.resolve(name)
            if place.inside and place.absolute.is_file():
                found.append(name)
    return found


def files_in_play(words: str, seen: Collection[str], workspace: Workspace) -> list[str]:
    """What a small model is shown with a message: the files it names, or those that `fix it` can be about.

    `seen` are those that it was shown, the latest last.
    """
    if found := named_files(words, workspace):
        return found
    return _shown_last(words, seen, [each.path for each in source_files(workspace) if _is_short(each)])


def _shown_last(words: str, seen: Collection[str], short: Collection[str]) -> list[str]:
    """The short files that a change without a name can be about."""
    return [path for path in seen if path in short][-MOST_IN_PLAY:] if wants_change(words, []) else []


def _is_short(entry: Entry) -> bool:
    return entry.size <= LARGEST_WRITTEN


def file_list(workspace: Workspace) -> str:
    """What there is, in one line."""
    paths = [entry.path for entry in source_files(workspace)]
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return f"[Files: {', '.join(paths[:MOST_NAMED])}{more}.]" if paths else ""


def source_files(workspace: Workspace) -> list[Entry]:
    """The files of a small project that a small model can be asked about."""
    return [
        entry
        for entry in walk(workspace.root, DEPTH, LISTED_PATHS * 5)
        if entry.kind == "file" and SOURCE.search(entry.path) and not entry.path.startswith(".")
    ][:LISTED_PATHS]
