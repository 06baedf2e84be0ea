"""What a model is told of an intent: an XML block, in which no text can pass for a part of the block."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

from handrail.protocol.errors import PathProblem
from handrail.protocol.intent import Intent
from handrail.tools.clip import plain
from handrail.workspace.files import Workspace

TRACE = ".orchestration/agent_trace.jsonl"
TAIL = 256_000
"""Bytes at the end of the trace that are looked at."""
RECENT = 5
MOST_ENTRIES, LONGEST = 60, 500


class Traced(NamedTuple):
    """A change of a file, by the trace."""

    at: str
    op: str
    file: str
    mutation: str


def intent_block(intent: Intent, recent: Sequence[Traced] = ()) -> str:
    """The block: constraints, scope, acceptance criteria, and what was changed for the intent last."""
    lines = [f'<intent_context id="{_escaped(intent.id)}">']
    lines += _one("name", intent.name) + _one("status", intent.status)
    lines += _many("scope", "path", intent.scope)
    lines += _many("constraints", "constraint", intent.constraints)
    lines += _many("acceptance_criteria", "criterion", intent.criteria)
    lines += _many("depends_on", "intent", intent.depends_on) if intent.depends_on else []
    if recent:
        lines += ["  <recent_trace>", *map(_change, recent), "  </recent_trace>"]
    return "\n".join([*lines, "</intent_context>"])


def recent_trace(workspace: Workspace, intent_id: str) -> tuple[Traced, ...]:
    """The last changes of an intent that the end of the trace tells of; what cannot be read is left out."""
    found: list[Traced] = []
    for line in _last_lines(workspace):
        said = _read(line)
        if said.get("intent_id") == intent_id:
            fields = (str(said.get(name, "")) for name in ("at", "op", "file", "mutation_class"))
            found.append(Traced(*fields))
    return tuple(found[-RECENT:])


def _last_lines(workspace: Workspace) -> Iterator[bytes]:
    try:
        place = workspace.resolve(TRACE)
        if not place.inside or not place.absolute.is_file():
            return
        with place.absolute.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - TAIL))
            data = file.read(TAIL)
    except (OSError, PathProblem):
        return
    yield from data.splitlines()[int(size > TAIL) :]


def _read(line: bytes) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _one(tag: str, text: str) -> list[str]:
    return [f"  <{tag}>{_escaped(text)}</{tag}>"] if text else []


def _many(tag: str, each: str, texts: Iterable[str]) -> list[str]:
    entries = [f"    <{each}>{_escaped(text)}</{each}>" for text in texts]
    if not entries:
        return [f"  <{tag}/>"]
    left = len(entries) - MOST_ENTRIES
    more = [f'    <more count="{left}"/>'] if left > 0 else []
    return [f"  <{tag}>", *entries[:MOST_ENTRIES], *more, f"  </{tag}>"]


def _change(one: Traced) -> str:
    at, op, file, mutation = map(_escaped, one)
    return f'    <change at="{at}" op="{op}" file="{file}" class="{mutation}"/>'


def _escaped(text: str) -> str:
    clipped = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return escape(plain(" ".join(clipped.split())), quote=True)
