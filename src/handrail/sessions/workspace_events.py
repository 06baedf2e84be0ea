"""The workspace's own stream: what belongs to all of its sessions, such as the versions of intents."""

from collections.abc import Iterator

from handrail.protocol.errors import WrongSequence
from handrail.protocol.events import Event, IntentEdited, OverlapSettled, Recorded
from handrail.protocol.ids import WORKSPACE_STREAM
from handrail.protocol.upcast import VERSION, dump_event
from handrail.sessions.fold import Fold
from handrail.sessions.handle import recorded
from handrail.storage.log import Log, NewRow

TRIES = 20


class IntentHistory(Fold):
    """What the workspace's stream says of its intents."""

    seq: int = 0
    versions: dict[str, list[Recorded]] = {}
    """{id: its edits, oldest first}"""
    settled: dict[str, str] = {}
    """{hash of both scopes: what the user said to their overlap}"""

    def text(self, intent_id: str) -> str | None:
        """The version that was recorded last; None where there is none."""
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
    return map(recorded, log.read(WORKSPACE_STREAM))


def intent_history(log: Log) -> IntentHistory:
    history = IntentHistory()
    for one in read_workspace(log):
        history.apply(one)
    return history


def append_to_workspace(log: Log, *events: Event, after: int | None = None) -> None:
    """Commit events; raises WrongSequence where somebody else has appended something after `after`."""
    rows = [NewRow(event.type, VERSION, dump_event(event)) for event in events]
    for left in reversed(range(TRIES)):
        head = log.head(WORKSPACE_STREAM)
        expected = after if after is not None else head.seq if head else 0
        try:
            log.append(WORKSPACE_STREAM, rows, expected=expected)
        except WrongSequence:
            if after is not None or not left:
                raise
        else:
            return


def note_version(log: Log, intent_id: str, text: str) -> None:
    """Record how an intent reads now, where that is news: it was edited in the file, or is seen first."""
    for left in reversed(range(TRIES)):
        history = intent_history(log)
        known = history.text(intent_id)
        if known == text:
            return
        why = "edited in the file" if known is not None else "first seen"
        event = IntentEdited(intent_id=intent_id, old=known or "", new=text, why=why)
        try:
            append_to_workspace(log, event, after=history.seq)
        except WrongSequence:
            if not left:
                raise
        else:
            return
