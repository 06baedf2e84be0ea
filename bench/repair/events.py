"""Attempts of a Handrail session and how many were wasted, read from its events."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

WASTED = ("unchanged", "repeated", "closed")
"""An answer that changes nothing, one that was tried before, one at a file that the task does not open."""
WITHOUT_MODEL = ("graft", "mutation")
"""What was tried without an answer of the model."""
Event = dict[str, Any]


def read_export(text: str) -> list[Event]:
    """The events in a file that `handrail export` wrote: one row each, with the event as JSON in it."""
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("[")]
    return [json.loads(row[5]) for row in rows]


def attempts_of(events: list[Event], module: str) -> dict[str, int] | None:
    """How many answers were tried, and how many ended in which way; None where the events do not say."""
    tried = [event for event in events if event["type"] == "candidate_tried"]
    results = [_candidate(event, module) for event in tried if event.get("asked") not in WITHOUT_MODEL]
    results = results if tried else list(_fresh_attempts(events, module))
    if not results and not tried:
        return None
    return {"attempts": len(results), **Counter(results)}


def _candidate(event: Event, module: str) -> str:
    """The result of a candidate, which its event tells."""
    return str(event["result"]) if event["path"] == module else "closed"


def _fresh_attempts(events: list[Event], module: str) -> Iterator[str]:
    """The result of each attempt, by the files that were written between its start and the next one's."""
    seen: set[tuple[str, ...]] = set()
    written: list[tuple[str, ...]] | None = None
    for event in [*events, {"type": "attempt_started"}]:
        if event["type"] == "change_prepared" and event["by"] == "agent" and written is not None:
            written += [(file["path"], file["new_sha256"]) for file in event["files"]]
        if event["type"] != "attempt_started":
            continue
        if written is not None:
            tried = tuple(sorted(f"{path} {hashed}" for path, hashed in written))
            if not written:
                yield "unchanged"
            elif all(path != module for path, _ in written):
                yield "closed"
            else:
                yield "repeated" if tried in seen else "tried"
            seen.add(tried)
        written = []
