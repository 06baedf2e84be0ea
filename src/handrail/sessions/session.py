"""The session handle: load a session, append to it while holding it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from msgspec import DecodeError, Struct
from msgspec.json import decode

from handrail.protocol.commands import COMMAND, Command
from handrail.protocol.errors import LostHold, StorageProblem
from handrail.protocol.events import Event
from handrail.protocol.events.base import Recorded
from handrail.protocol.events.changes import ChangeAbandoned, ChangeApplied, ChangePrepared, Redone, Rewound
from handrail.protocol.events.requests import Compacted, CompactionUndone
from handrail.protocol.ids import session_stream
from handrail.protocol.upcast import VERSION, dump_event, load_event, pack_event
from handrail.protocol.values import SessionStatus, to_json
from handrail.sessions.live_text import LiveText
from handrail.sessions.run_state import OpenStage, RewindableRuns, RunState
from handrail.sessions.session_state import SNAPSHOT_VERSION, SessionState
from handrail.sessions.transcript import SHOWN_EVENTS, TranscriptEntry, update_transcript
from handrail.sessions.turn_state import TurnState
from handrail.storage.change_journal import JournalSteps
from handrail.storage.event_log import Log, NewRow, PartialText, Row, Snapshot
from handrail.storage.locks import StreamHold, try_hold_stream

PAGE_EVENTS = 200
MAX_PAGES = 5
Part = TypeVar("Part")
SNAPSHOT_EVERY = 100
LISTED_EVENTS = {
    *("session_started", "session_renamed", "session_deleted", "session_restored", "model_set"),
    *("session_titled", "session_status_set", "session_labelled"),
    *("turn_started", "turn_finished", "rewound", "redone"),
}
"""Events that change what a list of sessions shows."""
FOLLOWED_AT_ONCE = ("session_started", "turn_started")
"""More events follow these at once; the label is written with them."""


def last_seq(log: Log, stream: str) -> int:
    head = log.head(stream)
    return head.seq if head else 0


def start_of_last_turn(log: Log, stream: str) -> int:
    """The sequence number before the last turn's message; in a very long turn, an earlier limit."""
    return start_of_turns(log, stream, last_seq(log, stream), 1)


def start_of_turns(log: Log, stream: str, end: int, turns: int) -> int:
    """The sequence number before the message of the last turns up to an event, one or more.

    In very long turns it is that of fewer turns, or an earlier limit.
    """
    starts: list[int] = []
    for page in range(MAX_PAGES):
        upto = end - page * PAGE_EVENTS
        after = max(0, upto - PAGE_EVENTS)
        rows = log.read(stream, after=after, limit=upto - after) if upto > 0 else []
        # The message and the start of its turn are written together, in this order.
        starts = [*(max(0, row.seq - 2) for row in rows if row.type == "turn_started"), *starts]
        if len(starts) >= turns:
            return starts[-turns]
        if after == 0:
            return 0
    return starts[0] if starts else max(0, end - PAGE_EVENTS)


class Session:
    """One conversation. Anyone may read it; only its holder appends."""

    def __init__(self, log: Log, session_id: str) -> None:
        self.log = log
        self.id = session_id
        self.stream = session_stream(session_id)
        self.seq = 0
        self.state = SessionState()
        self.watchers: list[Callable[[], None]] = []
        self.followers: list[Callable[[Recorded], None]] = []
        """Get each event when it is folded."""
        self.live = LiveText(self.stream)
        self._transcript: list[TranscriptEntry] | None = []
        """None: not loaded yet."""
        self._hold: StreamHold | None = None
        self._snapshot_seq = 0
        self._label: str | None = None
        """The label to store with the next commit."""

    def load(self) -> "Session":
        """Fold the log, starting at the last snapshot."""
        snapshot = self.log.snapshot(self.stream, SNAPSHOT_VERSION)
        if snapshot:
            self.state = decode(snapshot.data, type=SessionState)
            self.seq = self._snapshot_seq = snapshot.seq
            self._transcript = None
        self.refresh()
        return self

    @property
    def transcript(self) -> list[TranscriptEntry]:
        """What the model sees since the last compaction; loaded on first use."""
        if self._transcript is None:
            self._transcript = []
            for one in self._shown_events(self.state.cut.upto):
                if not any(rewind.hides(one.seq) for rewind in self.state.rewinds):
                    update_transcript(self._transcript, one)
        return self._transcript

    def _shown_events(self, after: int) -> Iterator[Recorded]:
        """Events of the transcript after a sequence number."""
        rows = self.log.read(self.stream, after=after, limit=self.seq - after)
        return (event_from_row(row) for row in rows if row.type in SHOWN_EVENTS)

    def refresh(self) -> list[Recorded]:
        """Fold what any process has appended since."""
        found = [event_from_row(row) for row in self.log.read(self.stream, after=self.seq)]
        self._fold(found)
        if found:
            self._notify()
        return found

    def read_after(self, seq: int, limit: int) -> list[Recorded]:
        """Events after a sequence number, without folding them."""
        return [event_from_row(row) for row in self.log.read(self.stream, after=seq, limit=limit)]

    def waiting(self) -> list[tuple[int, Command]]:
        """Commands in the inbox, with their ids for `append(take=...)`."""
        found = []
        for item in self.log.waiting(self.stream):
            try:
                found.append((item.id, COMMAND.decode(item.data)))
            except DecodeError:
                continue  # of a newer Handrail: left for a process that knows it
        return found

    # The current turn, run and stage; LostHold if another process has ended it

    @property
    def turn(self) -> TurnState:
        return self._current(self.state.turn, "turn")

    @property
    def run(self) -> RunState:
        return self._current(self.state.run, "run")

    @property
    def stage(self) -> OpenStage:
        return self._current(self.run.open, "stage")

    def _current(self, found: Part | None, name: str) -> Part:
        if found is None:
            raise LostHold(f"Another process ended the {name} of session {self.id}. Send the message again.")
        return found

    @property
    def held(self) -> bool:
        return self._hold is not None

    def try_hold(self) -> bool:
        """Become the holder, unless another living process is; folds what the last holder wrote."""
        if self._hold is None:
            self._hold = try_hold_stream(self.log, self.stream)
            if self._hold:
                self.refresh()
        return self._hold is not None

    def release(self) -> None:
        if self._hold:
            self._hold.release()
            self._hold = None

    def append(
        self,
        *events: Event,
        take: Iterable[int] = (),
        blobs: Iterable[bytes] = (),
        settle: Iterable[str] = (),
        partials: Iterable[PartialText] = (),
    ) -> list[Recorded]:
        """Commit events, then fold them. If this raises, nothing was committed."""
        if self._hold is None:
            raise LostHold(f"Session {self.id} is held by another process. Send it a command instead.")
        settled = list(settle)
        listed = [event.type for event in events if event.type in LISTED_EVENTS]
        rows = self.log.append(
            self.stream,
            [NewRow(event.type, VERSION, dump_event(event)) for event in events],
            epoch=self._hold.epoch,
            expected=self.seq,
            take=take,
            blobs=blobs,
            settle=settled,
            partials=partials,
            steps=journal_steps(events),
            label="" if listed else self._label,  # a list computes a missing label from the events
        )
        self._label = None
        facts = [
            Recorded(self.stream, row.seq, row.at / 1000, event)
            for row, event in zip(rows, events, strict=True)
        ]
        self._fold(facts)
        for message_id in settled:
            self.live.settle(message_id)
        if listed:
            label = to_json(label_of(self.state))
            if listed[-1] in FOLLOWED_AT_ONCE:
                self._label = label
            else:
                with suppress(StorageProblem):  # the events are committed; a label can be computed again
                    self.log.set_label(self.stream, label)
        self._notify()
        return facts

    def keep_live(self) -> None:
        if self._hold:
            self.live.flush(self.log)

    def save_snapshot(self) -> None:
        """Save the state, every hundred events, so that the next load is quick."""
        if self.seq - self._snapshot_seq >= SNAPSHOT_EVERY and self._hold:
            head = self.log.head(self.stream)
            if head and head.seq == self.seq:
                data = to_json(self.state)
                self.log.save_snapshot(self.stream, Snapshot(SNAPSHOT_VERSION, self.seq, head.hash, data))
                self._snapshot_seq = self.seq

    def _fold(self, new: Sequence[Recorded]) -> None:
        for one in new:
            self.seq = one.seq
            self.state.apply(one)
            if isinstance(one.event, Compacted | CompactionUndone | Rewound | Redone):
                self._transcript = None
            elif self._transcript is not None:
                update_transcript(self._transcript, one)
            for follow in list(self.followers):
                follow(one)
        if any(isinstance(one.event, Rewound | Redone) for one in new):
            # The state does not keep earlier runs: compute them again from the log.
            events = [event_from_row(row) for row in self.log.read(self.stream, limit=self.seq)]
            rewindable = RewindableRuns(events)
            for one in events:
                rewindable.apply(one)
            self.state.runs, self.state.routes = rewindable.runs, rewindable.routes

    def _notify(self) -> None:
        for watcher in list(self.watchers):
            watcher()


def journal_steps(events: Sequence[Event]) -> JournalSteps:
    """Change sets that these events start and end; one that does both was never unfinished."""
    begun = {event.change_id: pack_event(event) for event in events if isinstance(event, ChangePrepared)}
    applied = [event.change_id for event in events if isinstance(event, ChangeApplied)]
    abandoned = [event.change_id for event in events if isinstance(event, ChangeAbandoned)]
    traced = {event.change_id for event in events if isinstance(event, ChangePrepared) and event.trace}
    return JournalSteps(
        begun=tuple(item for item in begun.items() if item[0] not in (*applied, *abandoned)),
        applied=tuple(change for change in applied if change not in begun),
        abandoned=tuple(abandoned),
        noted=tuple(item for item in begun.items() if item[0] in traced.intersection(applied)),
    )


class Label(Struct):
    title: str = ""
    turns: int = 0
    model: str = ""
    cost_usd: float = 0.0
    deleted: bool = False
    running: bool = False
    waiting: bool = False
    """For the user: it has a paused run, or asked what a message means."""
    copied: str = ""
    """`fork` or `import`, if it came from another session."""
    status: SessionStatus = "open"
    labels: tuple[str, ...] = ()


def label_of(state: SessionState) -> Label:
    return Label(
        title=state.title,
        turns=state.turns,
        model=state.models.get("main", state.last_model),
        cost_usd=state.cost_usd,
        deleted=state.deleted,
        running=state.turn is not None,
        waiting=state.turn is None and (state.paused is not None or state.routes.asked is not None),
        copied=state.copied,
        status=state.status,
        labels=tuple(state.labels),
    )


def event_from_row(row: Row) -> Recorded:
    try:
        event = load_event(row.version, row.data)
    except DecodeError as error:
        raise StorageProblem(
            f"Event {row.seq} of {row.stream} ({row.type}, format {row.version}) was written by another"
            " version of Handrail, and this one cannot read it. Use that version, or start a new session."
        ) from error
    return Recorded(row.stream, row.seq, row.at / 1000, event)
