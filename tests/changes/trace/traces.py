"""Traces to look at: lines as change sets make them, of any length and by any writer."""

import json
from pathlib import Path
from typing import Any

from handrail.changes.trace.logged_changes import LoggedLine
from handrail.changes.trace.trace_file import PATH, change_lines, line_hash, with_line_hashes
from handrail.protocol.events import ChangePrepared
from handrail.protocol.values import ChangedRange, FileChange, TraceMark

INTENTS = ".orchestration/active_intents.yaml"


def chain(writer: str, count: int) -> list[bytes]:
    """A chain of so many lines."""
    lines: list[bytes] = []
    for number in range(1, count + 1):
        before = line_hash(lines[-1]) if lines else ""
        lines += change_lines(*_change(writer, number, before))
    return lines


def _change(writer: str, number: int, before: str) -> tuple[ChangePrepared, TraceMark]:
    ranges = (ChangedRange(start=number, end=number + 3, sha256=f"{number:032x}"),)
    file = FileChange(path=f"src/module_{number % 40}.py", op="update", new_sha256="2" * 64, ranges=ranges)
    change = ChangePrepared(
        turn_id="t_1", change_id=f"c_{writer}_{number}", call_id="call_1", files=(file,), intent_id="INT-1"
    )
    at = "2026-01-02T03:04:05.678Z"
    mark = TraceMark(writer=writer, number=number, before=before, lines=(), at=at, session_id="s_1")
    change = with_line_hashes(change, mark)
    assert change.trace
    return change, change.trace


def known_of(lines: list[bytes]) -> list[LoggedLine]:
    """What the log that wrote them knows."""
    return [
        LoggedLine(line_hash(line), said["writer"], said["number"], said["file"], said["related"]["change"])
        for line in lines
        for said in [json.loads(line)]
    ]


def text(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def bind(root: Path) -> None:
    """Give a workspace intents."""
    (root / INTENTS).parent.mkdir(exist_ok=True)
    (root / INTENTS).write_text('intents:\n  - id: INT-1\n    status: active\n    owned_scope: ["**"]\n')


def lines_in(root: Path) -> list[dict[str, Any]]:
    """The lines of a workspace's trace."""
    return [json.loads(line) for line in (root / PATH).read_bytes().splitlines()]
