"""A line of the trace: what it says, its bytes, and the hash that the next one of its writer carries."""

import hashlib
import json
from typing import Any

from handrail.protocol.errors import PathProblem
from handrail.protocol.events import ChangePrepared
from handrail.protocol.values import FileChange, TraceMark

FORMAT = 1
EVOLUTION = "INTENT_EVOLUTION"
"""Of what nobody declared to keep behaviour: edits of users, what commands change, taking back."""


def line_hash(line: bytes) -> str:
    """The hash of a line; how it ends does not count."""
    return hashlib.sha256(line.rstrip(b"\r\n")).hexdigest()


def lines_of(change: ChangePrepared, mark: TraceMark) -> list[bytes]:
    """The lines of a change set, one a file, without their ends."""
    lines: list[bytes] = []
    before = mark.before
    for number, file in enumerate(change.files, start=mark.number):
        said = _said(change, mark, file, number, before)
        lines.append(json.dumps(said, separators=(",", ":")).encode())
        before = line_hash(lines[-1])
    return lines


def checked_lines(change: ChangePrepared) -> list[bytes]:
    """The same of a change set that is marked; raises PathProblem where another version worded it."""
    if change.trace is None:
        return []
    lines = lines_of(change, change.trace)
    if tuple(map(line_hash, lines)) != change.trace.lines:
        message = (
            f"The lines of {change.change_id} in the trace were begun by another version of Handrail, which"
            " words them otherwise. Let that version finish them: open the workspace with it once."
        )
        raise PathProblem(message, "storage_failed")
    return lines


def marked(change: ChangePrepared, mark: TraceMark) -> ChangePrepared:
    """The change set with the hashes of its lines."""
    lines = tuple(map(line_hash, lines_of(change, mark)))
    return change.model_copy(update={"trace": mark.model_copy(update={"lines": lines})})


def token_of(writer: str) -> bytes:
    """What every line of a writer has and no other."""
    return f'"writer":{json.dumps(writer)},"number":'.encode()


def _said(
    change: ChangePrepared, mark: TraceMark, file: FileChange, number: int, before: str
) -> dict[str, Any]:
    return {
        "v": FORMAT,
        "writer": mark.writer,
        "number": number,
        "before": before,
        "at": mark.at,
        "request_id": change.request_id,
        "intent_id": change.intent_id,
        "file": file.path,
        "op": file.op,
        "to": file.destination,
        "mutation_class": change.mutation_class or EVOLUTION,
        **({"mutation_problem": change.mutation_problem} if change.mutation_problem else {}),
        "by": change.by,
        "model": change.model,
        "sha256": file.new_sha256,
        "base_sha256": file.old_sha256,
        "related": {
            "session": mark.session_id,
            "turn": change.turn_id,
            "call": change.call_id,
            "change": change.change_id,
        },
        "ranges": [each.model_dump() for each in file.ranges],
    }
