"""The prompt for a small model: a short system prompt, few actions, and the files that the user named."""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress

from handrail.context.prompt import UNREADABLE, Prompt, short_name
from handrail.models.model import ActionChoices, ToolSpec
from handrail.protocol.errors import PathProblem, ToolError
from handrail.protocol.intent import REQUEST_SCOPE, SELECT_INTENT
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentList
from handrail.workspace.test_files import is_test_file
from handrail.workspace.walk import Entry, walk

SMALL_SYSTEM_PROMPT = """\
You are Handrail, a coding assistant in a small project. Be brief and exact.
Answer questions in words. Change a file only when the user asks for a change; keep its style."""
ACTIONS = {
    "write": "Change or create a file; its text is asked for next.",
    "read": "Look at a file that was not shown.",
    "run": "Run a command, when the user asks for it.",
}
INTENT_ACTIONS = {
    SELECT_INTENT: "Select the intent that the change is part of, before the first change.",
    REQUEST_SCOPE: "Ask the user to let the intent change one more file.",
}
LISTED_PATHS, DEPTH = 60, 3
MAX_WRITTEN_BYTES = 6_000
"""Larger files cannot be rewritten whole by a small model."""
QUESTION = re.compile(
    r"^\W*(what|why|how|who|where|when|which|is|are|does|do|did|can|could|should|would|explain|describe|show|tell)\b"
    r"|\?\s*$",
    re.IGNORECASE,
)
CHANGE_VERB = re.compile(
    r"\b(add|append|change|convert|correct|create|delete|drop|extract|fix|implement|improve|insert|introduce|make|mend"
    r"|move|put|refactor|remove|rename|replace|rewrite|simplify|split|turn|update|use|write)\b",
    re.IGNORECASE,
)
GREETING = re.compile(
    r"\W*(?:hi|hello|hey|good (?:morning|evening|day)|thanks|thank you|bye|goodbye|ok|okay|great|nice)\b"
    r"(?:\W+\w+){0,3}\W*",
    re.IGNORECASE,
)
RUN_WORD = re.compile(r"\b(run|execute|start|install|build|test|tests|command)\b", re.IGNORECASE)
SOURCE_FILE = re.compile(r"\.(py|js|ts|mjs|cjs|go|rs|c|h|cpp|java|rb|sh|json|toml|txt|md|html|css)$")


FILE_NAME = re.compile(r"(?<![\w@/.~-])[\w-][\w./-]*\.\w{1,8}(?![\w/])")
PLAIN_NAME = re.compile(r"(?<![\w@/.~-])(?:[A-Z][a-z]+file|LICENSE|CODEOWNERS)(?![\w/.-]*\w)")
"""Files without an extension, such as Makefile."""
MAX_NAMED_FILES = 20
MAX_FILES_SHOWN = 2
MAX_INTENTS, LISTED_INTENTS = 100, 12
NEEDS_INTENT = ("missing_intent_id", "unknown_intent", "intent_done", "intent_ignored")
MAX_FILES_READ = 3


def small_prompt(
    workspace: Workspace,
    tools: Sequence[ToolSpec],
    message: str = "",
    seen: Collection[str] = (),
    *,
    checked: bool,
    intents: IntentList | None = None,
    active: str = "",
) -> Prompt:
    """The prompt of a turn; with a check, tests cannot be written.

    Small models choose badly, so code leaves them little choice: a question changes nothing, a file that was
    shown is not read again, and only files that the user names, or that were shown last, can be written.
    """
    entries = source_files(workspace)
    paths = [entry.path for entry in entries]
    named = [name for name in file_names(message) if SOURCE_FILE.search(name)]
    writable = [entry.path for entry in entries if entry.size <= MAX_WRITTEN_BYTES]
    if checked:
        writable = [path for path in writable if not is_test_file(path)]
    elif named:
        writable = [name for name in named if name in writable or name not in paths]
    elif last_shown := [path for path in _shown_last(message, seen, writable) if not is_test_file(path)]:
        writable = last_shown
    readable = [path for path in paths if path not in seen]
    left = {
        "write": bool(writable) and (checked or wants_change(message, named)),
        "read": bool(readable) and not set(named) & set(seen) and not GREETING.fullmatch(message),
        "run": not message or bool(RUN_WORD.search(message)),
    }
    offered = {tool.name: tool for tool in tools}
    ids = [each.id for each in intents.selectable[:MAX_INTENTS]] if intents else []
    return Prompt(
        system=SMALL_SYSTEM_PROMPT,
        tools=tuple(
            ToolSpec(name, description, offered[name].schema)
            for name, description in (ACTIONS | INTENT_ACTIONS).items()
            if name in offered
        ),
        intents=short_intent_prompt(intents, active) if intents else "",
        choices=ActionChoices(
            actions=tuple(name for name in ACTIONS if left[name]),
            paths=tuple(readable),
            writable=tuple(writable),
            fields={"intent_id": {"enum": ids}} if ids else {},
        ),
    )


def short_intent_prompt(intents: IntentList, active: str) -> str:
    """What the prompt says about the intents: the active one, or those that can be selected."""
    if intents.problem:
        return UNREADABLE.format(problem=intents.problem)
    if active and (intent := intents.find(active)):
        rules = "".join(f"\n- {each}" for each in intent.constraints)
        owned = ", ".join(intent.scope)
        return f"You work at the intent {intent.id} ({short_name(intent)}), which owns: {owned}.{rules}"
    listed = ", ".join(f"{each.id} ({short_name(each)})" for each in intents.selectable[:LISTED_INTENTS])
    return f"Every change belongs to an intent, which is selected first: {listed}."


def answer_refusal(prompt: Prompt, refusal: ToolError | None) -> Prompt:
    """The prompt after a refusal: what the refusal asks for is all that can be done next."""
    if prompt.choices is None or refusal is None:
        return prompt
    if refusal.reason in NEEDS_INTENT:
        return prompt._replace(choices=prompt.choices._replace(actions=(SELECT_INTENT,)))
    if refusal.reason == "scope_violation" and refusal.file and refusal.tool != REQUEST_SCOPE:
        wanted = {"type": "array", "items": {"enum": [refusal.file]}, "minItems": 1, "maxItems": 1}
        fields = {**prompt.choices.fields, "paths": wanted}
        return prompt._replace(choices=prompt.choices._replace(actions=(REQUEST_SCOPE,), fields=fields))
    return prompt


def only_reading(prompt: Prompt, read: Collection[str]) -> Prompt:
    """The prompt where nothing may be changed: the model can read a few files, each once, and answer.

    Otherwise it reads the same two files in turn, and never answers.
    """
    choices = prompt.choices
    if choices is None or choices.actions is None:
        return prompt
    paths = tuple(path for path in choices.paths if path not in read)
    more = "read" in choices.actions and bool(paths) and len(read) < MAX_FILES_READ
    return prompt._replace(choices=choices._replace(actions=("read",) if more else (), paths=paths))


def wants_change(message: str, named: Sequence[str]) -> bool:
    """Whether the message asks for a change; a question or a greeting never does."""
    return not QUESTION.search(message) and bool(named or CHANGE_VERB.search(message))


def file_names(message: str) -> list[str]:
    """File names in the message, once each, in order."""
    return list(dict.fromkeys(name for name in FILE_NAME.findall(message) if ".." not in name))


def named_files(message: str, workspace: Workspace) -> list[str]:
    found = []
    for name in dict.fromkeys([*file_names(message), *PLAIN_NAME.findall(message)]):
        with suppress(PathProblem):
            place = workspace.resolve(name)
            if place.inside and place.absolute.is_file():
                found.append(name)
    return found


def files_to_show(message: str, seen: Collection[str], workspace: Workspace) -> list[str]:
    """The files that the message names, or those of `seen` (latest last) that `fix it` can be about."""
    if found := named_files(message, workspace):
        return found
    short = [each.path for each in source_files(workspace) if each.size <= MAX_WRITTEN_BYTES]
    return _shown_last(message, seen, short)


def _shown_last(message: str, seen: Collection[str], short: Collection[str]) -> list[str]:
    """The short files that a change without a file name can be about."""
    return [path for path in seen if path in short][-MAX_FILES_SHOWN:] if wants_change(message, []) else []


def file_list(workspace: Workspace) -> str:
    paths = [entry.path for entry in source_files(workspace)]
    more = f" and {len(paths) - MAX_NAMED_FILES} more" if len(paths) > MAX_NAMED_FILES else ""
    return f"[Files: {', '.join(paths[:MAX_NAMED_FILES])}{more}.]" if paths else ""


def source_files(workspace: Workspace) -> list[Entry]:
    """The source files that a small model can be asked about."""
    return [
        entry
        for entry in walk(workspace.root, DEPTH, LISTED_PATHS * 5)
        if entry.kind == "file" and SOURCE_FILE.search(entry.path) and not entry.path.startswith(".")
    ][:LISTED_PATHS]
