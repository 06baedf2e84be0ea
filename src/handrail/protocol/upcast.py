"""Load events of every earlier version; write and pack events of this one."""

import json
from collections.abc import Callable
from typing import Any

from msgspec import convert

from handrail.protocol.events import EVENT, Event
from handrail.protocol.values import is_deeper, to_json

VERSION = 1
"""Stored with every row. Incremented when old data does not fit an event's fields any more."""

DEEPEST = 200
"""Levels of nesting that can be read whatever the depth of the reader's stack."""

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
UPCASTERS: dict[int, dict[str, Upcaster]] = {}
"""{from version: {event type: data -> data of the next version}}"""


def load_event(version: int, data: str) -> Event:
    """The event in `data`: JSON of this or an older version."""
    if version == VERSION:
        return EVENT.decode(data)
    fields = json.loads(data)
    for step in range(version, VERSION):
        lift = UPCASTERS.get(step, {}).get(fields["type"])
        fields = lift(fields) if lift else fields
    event: Event = convert(fields, Event)
    return event


def is_storable(event: Event) -> bool:
    """Whether the event can be stored and read back; a hostile answer may be too deep or not be text."""
    try:
        data = to_json(event)
        return EVENT.decode(data) == event and not is_deeper(json.loads(data), DEEPEST)
    except (ValueError, RecursionError):
        return False


def dump_event(event: Event) -> str:
    """The event as JSON, as it is stored and hashed; raises ValueError if it could not be loaded again."""
    data = to_json(event)
    EVENT.decode(data)
    return data


def pack_event(event: Event) -> str:
    """The event with its version, for tables that have no version column."""
    return f"{VERSION} {dump_event(event)}"


def unpack_event(data: str) -> Event:
    """The event that `pack_event` of this or an older version packed; raises ValueError."""
    version, _, rest = data.partition(" ")
    return load_event(int(version), rest)
