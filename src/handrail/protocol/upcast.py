"""Old events always load: each entry lifts an event's data from one version to the next."""

import json
from collections.abc import Callable
from typing import Any

from handrail.protocol.events import EVENT, Event

VERSION = 1
"""Stored with every row. Raised when an event's fields change in a way that old data does not fit."""

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
UPCASTERS: dict[int, dict[str, Upcaster]] = {}
"""{from version: {event type: data -> data of the next version}}"""


def load_event(version: int, data: str) -> Event:
    """The event that `data` (JSON, of an older version perhaps) stands for."""
    if version == VERSION:
        return EVENT.read(data)
    fields = json.loads(data)
    for step in range(version, VERSION):
        lift = UPCASTERS.get(step, {}).get(fields["type"])
        fields = lift(fields) if lift else fields
    return EVENT.any.validate_python(fields)


def is_storable(event: Event) -> bool:
    """Whether the event comes back as it is; a hostile answer can be too deep, or hold half characters."""
    try:
        return EVENT.read(dump_event(event)) == event
    except (ValueError, RecursionError):
        return False


def dump_event(event: Event) -> str:
    """The event as JSON, the form that is stored and hashed."""
    return event.model_dump_json()


def pack_event(event: Event) -> str:
    """The event with its version, for places that have no column for it."""
    return f"{VERSION} {dump_event(event)}"


def unpack_event(data: str) -> Event:
    """What `pack_event` packed, by this version or an older one; raises ValueError."""
    version, _, rest = data.partition(" ")
    return load_event(int(version), rest)
