"""What a message can mention, completed from what was typed."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from handrail.app.files import find_files
from handrail.context.map.repository_map import MAP_FILE
from handrail.context.map.symbols import Symbols
from handrail.context.mentions import DIFF, INTENT, PROBLEMS, TASK
from handrail.context.named_documents import named_documents
from handrail.protocol.errors import ConfigProblem
from handrail.storage.map_cache import read_packed_symbols

if TYPE_CHECKING:
    from handrail.app.app import App

FIXED = {DIFF: "changes since the last commit", PROBLEMS: "what linters and type checkers find now"}
SHORTEST_SYMBOL, MAX_SYMBOLS, MAX_FILES, MAX_TASKS = 3, 20, 1_000, 100


class Completion(NamedTuple):
    text: str
    note: str
    """What it is; empty for a file."""


def complete_mention(app: "App", typed: str, *, first: bool) -> list[Completion]:
    """Agents where the mention begins the message, names, files, and symbols."""
    agents = dict.fromkeys(app.agents.names()) if first else {}
    found = [Completion(name, "agent") for name in agents if name.startswith(typed)]
    found += [Completion(path, "") for path in find_files(app, typed)]
    return [*found, *complete_name(app, typed)]


def complete_name(app: "App", typed: str) -> list[Completion]:
    """What can be mentioned and is neither a file nor an agent."""
    return [*_names(app, typed), *_symbols(app, typed)]


def _names(app: "App", typed: str) -> Iterator[Completion]:
    try:
        documents = named_documents(app.workspace)
    except ConfigProblem:
        documents = {}  # told when a message is sent
    named = {name: ", ".join(paths) for name, paths in documents.items()}
    intents = app.intents.file.now() if typed and INTENT.startswith(typed[: len(INTENT)]) else None
    named |= {f"{INTENT}{each.id}": each.name for each in (intents.intents if intents else ())}
    if typed and TASK.startswith(typed[: len(TASK)]):
        still_open = (task for task in app.tasks.all() if not task.completed)
        named |= {f"{TASK}{task.id}": task.title for task in islice(still_open, MAX_TASKS)}
    for name, note in {**named, **FIXED}.items():
        if name.lower().startswith(typed.lower()):
            yield Completion(name, note)


def _symbols(app: "App", typed: str) -> Iterator[Completion]:
    """Names that the files of the repository map define."""
    if len(typed) < SHORTEST_SYMBOL or not typed.isidentifier():
        return
    found: dict[str, str] = {}
    for path, packed in read_packed_symbols(app.log.folder / MAP_FILE, MAX_FILES):
        for each in Symbols.unpack(packed).definitions:
            if each.name.startswith(typed):
                found.setdefault(each.name, path)
        if len(found) >= MAX_SYMBOLS:
            break
    yield from (Completion(name, path) for name, path in islice(sorted(found.items()), MAX_SYMBOLS))
