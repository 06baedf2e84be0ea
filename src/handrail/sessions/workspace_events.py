"""The workspace's stream: what all its sessions share, such as the versions of intents."""

from collections.abc import Iterator

from msgspec import Struct

from handrail.protocol.errors import WrongSequence
from handrail.protocol.events import Event, IntentEdited, OverlapSettled, Recorded
from handrail.protocol.ids import WORKSPACE_STREAM
from handrail.protocol.upcast import VERSION, dump_event
from handrail.sessions.session import event_from_row
from handrail.storage.event_log import Log, NewRow

APPEND_TRIES = 20


class IntentHistory(Struct):
    seq: int = 0
    versions: dict[str, list[Recorded]] = {}
    """{id: its edits, oldest first}"""
    settled: dict[str, str] = {}
    """{hash of both scopes: the user's decision about their overlap}"""

    def text(self, intent_id: str) -> str | None:
        edits = self.versions.get(intent_id)
        last = edits[-1].event if edits else None
        return last.new if isinstance(last, IntentEdited) else None

    def apply(self, one: Recorded) -> None:
        self.seq = one.seq
        match one.event:
            case IntentEdited(intent_id=intent_id):
                self.versions.setdefault(intent_id, []).append(one)
            case OverlapSettled() as event:
                self.settled[event.scopes] = event.choice


def read_workspace(log: Log) -> Iterator[Recorded]:
    """All events of the workspace's stream, oldest first."""
    return map(event_from_row, log.read(WORKSPACE_STREAM))


def intent_history(log: Log) -> IntentHistory:
    history = IntentHistory()
    for one in read_workspace(log):
        history.apply(one)
    return history


def append_to_workspace(log: Log, *events: Event, after: int | None = None) -> None:
    """Commit events; raises WrongSequence if somebody else appended an event after `after`."""
    rows = [NewRow(event.type, VERSION, dump_event(event)) for event in events]
    for left in reversed(range(APPEND_TRIES)):
        head = log.head(WORKSPACE_STREAM)
        expected = after if after is not None else head.seq if head else 0
        try:
            log.append(WORKSPACE_STREAM, rows, expected=expected)
            return
        except WrongSequence:
            if after is not None or not left:
                raise


def record_intent_version(log: Log, intent_id: str, text: str) -> None:
    """Record an intent's text if it is new: edited in the file, or seen for the first time."""
    for left in reversed(range(APPEND_TRIES)):
        history = intent_history(log)
        known = history.text(intent_id)
        if known == text:
            return
        why = "edited in the file" if known is not None else "first seen"
        event = IntentEdited(intent_id=intent_id, old=known or "", new=text, why=why)
        try:
            append_to_workspace(log, event, after=history.seq)
            return
        except WrongSequence:
            if not left:
                raise
