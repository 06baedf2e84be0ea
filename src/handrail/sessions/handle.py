"""The session handle: open a session, fold it, append to it while holding it."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from handrail.protocol.commands import COMMAND, Command
from handrail.protocol.errors import LostHold, StorageProblem
from handrail.protocol.events import (
    ChangeAbandoned,
    ChangeApplied,
    ChangePrepared,
    Compacted,
    CompactionUndone,
    Event,
    ModelSet,
    Recorded,
    Redone,
    Rewound,
    SessionDeleted,
    SessionRenamed,
    SessionRestored,
    SessionStarted,
    TurnFinished,
    TurnStarted,
)
from handrail.protocol.ids import session_stream
from handrail.protocol.upcast import VERSION, dump_event, load_event, pack_event
from handrail.sessions.fold import restored, stored
from handrail.sessions.live import Live
from handrail.sessions.run_state import OpenStage, RunState
from handrail.sessions.standing import Standing
from handrail.sessions.state import SNAPSHOT_VERSION, State
from handrail.sessions.transcript import SHOWN, Entry, show
from handrail.sessions.turn_state import TurnState
from handrail.storage.holder import Hold, try_hold
from handrail.storage.journal import Steps
from handrail.storage.log import Log, NewRow, Row, Snapshot

Part = TypeVar("Part")
SNAPSHOT_EVERY = 100
LISTED = (
    SessionStarted,
    SessionRenamed,
    SessionDeleted,
    SessionRestored,
    ModelSet,
    TurnStarted,
    TurnFinished,
    Rewound,
    Redone,
)
"""Events after which a list of sessions shows something else."""
SOON_FOLLOWED = (SessionStarted, TurnStarted)
"""Those after which more is committed at once, and what a list shows with it."""


class Session:
    """One conversation. Anyone may read it; only its holder appends."""

    def __init__(self, log: Log, session_id: str) -> None:
        self.log = log
        self.id = session_id
        self.stream = session_stream(session_id)
        self.seq = 0
        self.state = State()
        self.watchers: list[Callable[[], None]] = []
        self.live = Live(self.stream, self._ring)
        self._transcript: list[Entry] | None = []
        """None: it has to be read from the log."""
        self._hold: Hold | None = None
        self._snapshot_seq = 0
        self._label: str | None = None
        """What lists are to show from the next commit on."""

    # Reading

    def load(self) -> "Session":
        """Fold what the log has, from the last snapshot on."""
        snapshot = self.log.snapshot(self.stream, SNAPSHOT_VERSION)
        if snapshot:
            self.state = restored(State, snapshot.data)
            self.seq = self._snapshot_seq = snapshot.seq
            self._transcript = None
        self.refresh()
        return self

    @property
    def transcript(self) -> list[Entry]:
        """What the model is shown since the last compaction; read when it is first wanted."""
        if self._transcript is None:
            cut = self.state.cut.upto
            rows = self.log.read(self.stream, after=cut, limit=self.seq - cut)
            self._transcript = []
            for row in rows:
                if row.type in SHOWN and not self.state.is_aside(row.seq):
                    show(self._transcript, recorded(row))
        return self._transcript

    def refresh(self) -> list[Recorded]:
        """Fold what was appended since, by whomever."""
        found = [recorded(row) for row in self.log.read(self.stream, after=self.seq)]
        for one in found:
            self._fold(one)
        self._heed_rewinds(found)
        if found:
            self._ring()
        return found

    def read_after(self, seq: int, most: int) -> list[Recorded]:
        """Events after a sequence number, at most so many, without folding them."""
        return [recorded(row) for row in self.log.read(self.stream, after=seq, limit=most)]

    def waiting(self) -> list[tuple[int, Command]]:
        """Commands in the inbox, with the numbers that `append(take=...)` wants."""
        found = []
        for item in self.log.waiting(self.stream):
            try:
                found.append((item.id, COMMAND.read(item.data)))
            except ValidationError:
                continue  # of a newer Handrail: left for one that knows it
        return found

    # What is under way, for who is at work in it; raises LostHold where another process has ended it

    @property
    def turn(self) -> TurnState:
        return self._under_way(self.state.turn, "turn")

    @property
    def run(self) -> RunState:
        return self._under_way(self.state.run, "run")

    @property
    def stage(self) -> OpenStage:
        return self._under_way(self.run.open, "stage")

    def _under_way(self, found: Part | None, name: str) -> Part:
        if found is None:
            raise LostHold(f"The {name} of session {self.id} was ended by another process.")
        return found

    # Holding and appending

    @property
    def held(self) -> bool:
        return self._hold is not None

    def try_hold(self) -> bool:
        """Become the holder, unless a living process is; then what it wrote last is folded too."""
        if self._hold is None:
            self._hold = try_hold(self.log, self.stream)
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
    ) -> list[Recorded]:
        """Commit events, then fold them. When this returns they are facts; when it raises, they are not."""
        if self._hold is None:
            raise LostHold(f"Session {self.id} is held by another process. Send it a command instead.")
        settled = list(settle)
        listed = [event for event in events if isinstance(event, LISTED)]
        rows = self.log.append(
            self.stream,
            [NewRow(event.type, VERSION, dump_event(event)) for event in events],
            epoch=self._hold.epoch,
            expected=self.seq,
            take=take,
            blobs=blobs,
            settle=settled,
            steps=journal_steps(events),
            label="" if listed else self._label,  # a list makes what is not there from the events
        )
        self._label = None
        facts = [
            Recorded(self.stream, row.seq, row.at / 1000, event)
            for row, event in zip(rows, events, strict=True)
        ]
        for fact in facts:
            self._fold(fact)
        self._heed_rewinds(facts)
        for message_id in settled:
            self.live.settle(message_id)
        if listed:
            self._list_as(
                label_of(self.state).model_dump_json(), at_once=not isinstance(listed[-1], SOON_FOLLOWED)
            )
        self._ring()
        return facts

    def _list_as(self, label: str, *, at_once: bool) -> None:
        if not at_once:
            self._label = label
            return
        with suppress(StorageProblem):  # the events are facts; what a list shows can be made again
            self.log.set_label(self.stream, label)

    def keep_live(self) -> None:
        """Let the log keep the text that has streamed so far."""
        if self._hold:
            self.live.flush(self.log)

    def save_snapshot(self) -> None:
        """Make the next opening quick, now and then."""
        if self.seq - self._snapshot_seq >= SNAPSHOT_EVERY and self._hold:
            head = self.log.head(self.stream)
            if head and head.seq == self.seq:
                data = stored(self.state)
                self.log.save_snapshot(self.stream, Snapshot(SNAPSHOT_VERSION, self.seq, head.hash, data))
                self._snapshot_seq = self.seq

    # Inside

    def _fold(self, one: Recorded) -> None:
        self.seq = one.seq
        self.state.apply(one)
        if isinstance(one.event, Compacted | CompactionUndone | Rewound | Redone):
            self._transcript = None
        elif self._transcript is not None:
            show(self._transcript, one)

    def _heed_rewinds(self, new: Sequence[Recorded]) -> None:
        """What a rewind brings back is in no state: the log tells it."""
        if any(isinstance(one.event, Rewound | Redone) for one in new):
            events = [recorded(row) for row in self.log.read(self.stream, limit=self.seq)]
            standing = Standing(events)
            for one in events:
                standing.apply(one)
            self.state.runs, self.state.routes = standing.runs, standing.routes

    def _ring(self) -> None:
        for watcher in list(self.watchers):
            watcher()


def journal_steps(events: Sequence[Event]) -> Steps:
    """Change sets that these events begin and end; one that does both never was unfinished."""
    begun = {event.change_id: pack_event(event) for event in events if isinstance(event, ChangePrepared)}
    applied = [event.change_id for event in events if isinstance(event, ChangeApplied)]
    abandoned = [event.change_id for event in events if isinstance(event, ChangeAbandoned)]
    traced = {event.change_id for event in events if isinstance(event, ChangePrepared) and event.trace}
    return Steps(
        begun=tuple(item for item in begun.items() if item[0] not in (*applied, *abandoned)),
        applied=tuple(change for change in applied if change not in begun),
        abandoned=tuple(abandoned),
        noted=tuple(item for item in begun.items() if item[0] in traced.intersection(applied)),
    )


class Label(BaseModel):
    """What a list shows of a session."""

    title: str = ""
    turns: int = 0
    model: str = ""
    cost_usd: float = 0.0
    deleted: bool = False
    running: bool = False
    waiting: bool = False
    copied: str = ""


def label_of(state: State) -> Label:
    return Label(
        title=state.title,
        turns=state.turns,
        model=state.models.get("main", state.last_model),
        cost_usd=state.cost_usd,
        deleted=state.deleted,
        running=state.turn is not None,
        waiting=state.paused is not None and state.turn is None,
        copied=state.copied,
    )


def recorded(row: Row) -> Recorded:
    """The event that a row stands for."""
    try:
        event = load_event(row.version, row.data)
    except ValidationError as error:
        raise StorageProblem(
            f"Event {row.seq} of {row.stream} ({row.type}, format {row.version}) was written by another"
            " version of Handrail, and this one cannot read it. Use that version, or begin a new session."
        ) from error
    return Recorded(row.stream, row.seq, row.at / 1000, event)
