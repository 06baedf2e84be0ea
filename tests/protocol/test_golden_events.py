"""Old events always load: one file a released format, with at least one event of every type."""

import json
from pathlib import Path
from typing import get_args

import pytest

from handrail.protocol.events import Event
from handrail.protocol.upcast import VERSION, dump_event, load_event
from handrail.protocol.values import tag_of

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("events-v*.jsonl"))


def event_types() -> set[str]:
    return {tag_of(kind) for kind in get_args(Event)}


def events_in(file: Path) -> list[tuple[int, str]]:
    version = int(file.stem.removeprefix("events-v"))
    return [(version, line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.promise("SESS-1")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_released_event_still_loads(file: Path) -> None:
    for version, line in events_in(file):
        event = load_event(version, line)
        assert event.type == json.loads(line)["type"]


def test_golden_file_of_the_current_version_has_every_event_and_is_stored_to_the_byte() -> None:
    current = events_in(GOLDEN / f"events-v{VERSION}.jsonl")
    loaded: list[Event] = [load_event(version, line) for version, line in current]
    assert {event.type for event in loaded} == event_types()
    assert [dump_event(event) for event in loaded] == [line for _, line in current]
