"""The map of intents: which files each of them has touched, by the trace."""

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from handrail.changes.trace.file import TraceFile
from handrail.protocol.intent import Intent
from handrail.storage.log import Log
from handrail.workspace.files import Workspace

MAP = ".orchestration/intent_map.md"


class Touched(NamedTuple):
    """A file with how often it was changed, and when last."""

    changes: int = 0
    last: str = ""


class IntentMap(NamedTuple):
    text: str
    files: int


def intent_map(workspace: Workspace, log: Log, intents: Sequence[Intent], now: float) -> IntentMap:
    """The map as Markdown, intents in the order of their file, those that are not in it last."""
    touched: dict[str, dict[str, Touched]] = {each.id: {} for each in intents}
    for said in _lines(workspace, log):
        files = touched.setdefault(str(said.get("intent_id", "")), {})
        for path in filter(None, (str(said.get("file", "")), str(said.get("to", "")))):
            before = files.get(path, Touched())
            files[path] = Touched(before.changes + 1, str(said.get("at", ""))[:10])
    names = {each.id: each for each in intents}
    parts = [f"# Intents and the files they have touched\n\nBy the trace, {_day(now)}.\n"]
    parts += [_section(each, files, names.get(each)) for each, files in touched.items() if each or files]
    return IntentMap("\n".join(parts), len({path for files in touched.values() for path in files}))


def _section(intent_id: str, files: dict[str, Touched], intent: Intent | None) -> str:
    name = f": {_plain(intent.name)}" if intent and intent.name else ""
    status = f" ({_plain(intent.status)})" if intent and intent.status else ""
    gone = "" if intent or not intent_id else " (not in the file of intents)"
    lines = [f"## {_plain(intent_id) or 'Without an intent'}{name}{status}{gone}\n"]
    if not files:
        return f"{lines[0]}\nNo file yet.\n"
    lines += ["| file | changes | last |", "| --- | --- | --- |"]
    lines += [
        f"| {_plain(path)} | {one.changes} | {_plain(one.last)} |" for path, one in sorted(files.items())
    ]
    return "\n".join(lines) + "\n"


def _lines(workspace: Workspace, log: Log) -> Iterator[dict[str, Any]]:
    for line in (TraceFile(workspace.root, log.folder).read() or b"").splitlines():
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            continue  # `handrail trace verify` tells of it
        if isinstance(said, dict):
            yield said


def _plain(text: str) -> str:
    """A text that a table of Markdown can hold."""
    shown = " ".join(text.split()).replace("\\", "\\\\")
    return shown.replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")


def _day(now: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(now))
