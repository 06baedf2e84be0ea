"""Server-sent events: a session's events are read and encoded once, for any number of readers.

A reader first gets what the log has after its place, then follows the feed, which keeps the latest events in
memory. A reader that falls behind the feed goes back to the log, so no reader holds up the agent or another
reader.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import aclosing
from typing import NamedTuple

import anyio
from anyio.abc import TaskGroup
from msgspec.json import encode
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from handrail.app.app import App
from handrail.app.history.sessions import forget_offset
from handrail.interfaces.http.errors import problem_of
from handrail.protocol.errors import HandrailError
from handrail.protocol.events import Delta, Event, Recorded
from handrail.protocol.values import Value

FEED_FRAMES = 2_000
FEED_BYTES = 4_000_000
PAGE_EVENTS = 50
HEARTBEAT_SECONDS = 15.0
PACE_SECONDS, MAX_PACE_SECONDS, FAST_READERS = 0.02, 0.1, 100
"""What happens within this time is sent together: a turn that is watched stays as fast as another.

With more readers than `FAST_READERS` the time grows with their number, since each of them takes its own.
"""
SEND_SECONDS = 30.0
"""A reader that takes nothing for so long is dropped; it can resume."""
CHUNK_BYTES = 64_000
RETRY = b"retry: 1000\n\n"
HEARTBEAT = b": heartbeat\n\n"


class RecordedEvent(Value):
    """An event with its place in the session; its `seq` is the id of the server-sent event."""

    seq: int
    at: float
    event: Event


class LiveText(Value):
    """Text as it streams: what is shown of the message is cut at `offset`, then this is added.

    Sent as the server-sent event `delta`, without an id. `progress` replaces the status line.
    """

    message_id: str
    kind: str
    """`text`, `thinking`, `output`, `background` or `progress`."""
    offset: int
    text: str


def event_bytes(one: Recorded) -> bytes:
    data = encode(RecordedEvent(one.seq, one.at, one.event))
    return b"id: %d\ndata: %s\n\n" % (one.seq, data)


def delta_bytes(delta: Delta) -> bytes:
    data = encode(LiveText(delta.message_id, delta.kind, delta.offset, delta.text))
    return b"event: delta\ndata: %s\n\n" % data


class Frame(NamedTuple):
    seq: int
    """Of the event; for a delta, of the last event before it."""
    data: bytes
    item: Recorded | Delta


class Batch(NamedTuple):
    start: int
    until: int
    """Where the feed ended when it was joined."""
    end: int
    """Number of the frame after it."""
    seq: int
    data: bytes


class EventFeed:
    """The latest events of one session, for as long as somebody reads them."""

    def __init__(self, session_id: str, seq: int) -> None:
        self.session_id = session_id
        self.readers = 0
        self.problem: HandrailError | None = None
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self.start = 0
        """Number of the first frame that is kept."""
        self.before = seq
        """All events after this one are kept."""
        self.seq = seq
        self._changed = anyio.Event()
        self._batch: Batch | None = None

    def pace(self) -> float:
        """Seconds between two rounds of sending."""
        return min(MAX_PACE_SECONDS, PACE_SECONDS * max(1.0, self.readers / FAST_READERS))

    @property
    def end(self) -> int:
        return self.start + len(self._frames)

    def add(self, item: Recorded | Delta) -> None:
        if isinstance(item, Delta):
            frame = Frame(self.seq, delta_bytes(item), item)
        else:
            self.seq = item.seq
            frame = Frame(item.seq, event_bytes(item), item)
        self._frames.append(frame)
        self._bytes += len(frame.data)
        while len(self._frames) > FEED_FRAMES or (self._bytes > FEED_BYTES and len(self._frames) > 1):
            gone = self._frames.popleft()
            self._bytes -= len(gone.data)
            self.start += 1
            self.before = gone.seq

    def notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def wait(self) -> None:
        await self._changed.wait()

    def frame(self, number: int) -> Frame:
        return self._frames[number - self.start]

    def from_number(self, number: int) -> list[Frame]:
        first = number - self.start
        return [self._frames[index] for index in range(first, len(self._frames))]

    def batch(self, number: int) -> "Batch":
        """The next frames as they go to every reader that has all before them, joined once."""
        if self._batch is None or (self._batch.start, self._batch.until) != (number, self.end):
            frames, size = self.from_number(number), 0
            for count, frame in enumerate(frames, 1):
                size += len(frame.data)
                if size > CHUNK_BYTES:
                    frames = frames[:count]
                    break
            data = b"".join(frame.data for frame in frames)
            self._batch = Batch(number, self.end, number + len(frames), frames[-1].seq, data)
        return self._batch

    def number_after(self, seq: int) -> int:
        """Number of the first frame that comes after an event."""
        return self.start + bisect_right(self._frames, seq, key=lambda frame: frame.seq)


class Reader:
    """One reader's place in a session: in the log, then in the feed."""

    def __init__(self, app: App, feed: EventFeed, after: int) -> None:
        self._app = app
        self._feed = feed
        self._seq = after
        self._number: int | None = None
        """The next frame of the feed; None: it reads from the log."""
        self._have: dict[tuple[str, str], int] = {}
        """How much of each streaming text it has got, until the feed has passed that."""

    def next(self) -> bytes:
        """What the reader gets next; empty where there is nothing new."""
        if self._number is not None and self._number < self._feed.start:
            self._number = None  # too slow: the feed has dropped frames
        if self._number is None:
            found = self._app.read_events(self._feed.session_id, self._seq, PAGE_EVENTS)
            if found:
                self._seq = found[-1].seq
                return b"".join(map(event_bytes, found))
            # No event may come between these: the texts are those at this place in the session.
            self._number = min(self._feed.number_after(self._seq), self._feed.end)
            live = self._app.live_text(self._feed.session_id)
            self._have = {(one.message_id, one.kind): one.offset + len(one.text) for one in live}
            return b"".join(map(delta_bytes, live)) + self._from_feed(self._number)
        return self._from_feed(self._number)

    def _from_feed(self, number: int) -> bytes:
        if not self._have and self._lacks(number):
            batch = self._feed.batch(number)
            self._number, self._seq = batch.end, batch.seq
            return batch.data
        parts, size = list[bytes](), 0
        for frame in self._feed.from_number(number):
            number += 1
            if data := self._new(frame):
                parts.append(data)
                size += len(data)
            if size > CHUNK_BYTES:
                break
        self._number = number
        return b"".join(parts)

    def _lacks(self, number: int) -> bool:
        """Whether the reader has nothing of the frames from this one on; their places never go back."""
        if number >= self._feed.end:
            return False
        frame = self._feed.frame(number)
        return frame.seq > self._seq or (frame.seq == self._seq and isinstance(frame.item, Delta))

    def _new(self, frame: Frame) -> bytes:
        item = frame.item
        if isinstance(item, Recorded):
            if frame.seq <= self._seq:
                return b""
            self._seq = frame.seq
            if self._have:
                forget_offset(self._have, item.event)
            return frame.data
        if frame.seq < self._seq:
            return b""  # older than the texts that the reader has got
        have = self._have.get((item.message_id, item.kind), 0)
        if item.offset >= have:
            return frame.data
        new = item.text[have - item.offset :]
        return delta_bytes(item._replace(offset=have, text=new)) if new else b""


class EventFeeds:
    """The feeds of one workspace."""

    def __init__(self, open_app: Callable[[], Awaitable[App]], tasks: TaskGroup) -> None:
        self._open_app = open_app
        self._tasks = tasks
        self._feeds: dict[str, EventFeed] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._closed = False
        self._ended = anyio.Event()

    async def ended(self) -> None:
        """Wait until the application is closed, or the server ends."""
        if not self._closed:
            await self._ended.wait()

    def followed(self) -> Collection[str]:
        return self._feeds.keys()

    def restart(self) -> None:
        """The application was closed: end all feeds. Their readers resume with the next one."""
        for session_id in list(self._feeds):
            self._end(session_id)
        ended, self._ended = self._ended, anyio.Event()
        ended.set()

    def close(self) -> None:
        """End all feeds, and those of readers to come: the server ends."""
        self._closed = True
        self.restart()

    async def read(self, session_id: str, after: int) -> AsyncGenerator[bytes, None]:
        """The session's events after a place, as bytes to send, until the feed ends or has a problem."""
        try:
            async with aclosing(self._read(session_id, after)) as parts:
                async for part in parts:
                    yield part
        except HandrailError as problem:
            yield b"event: problem\ndata: %s\n\n" % encode(problem_of(problem))

    async def _read(self, session_id: str, after: int) -> AsyncGenerator[bytes, None]:
        app = await self._open_app()
        app.attach(session_id)
        feed = self._feeds.get(session_id) or self._begin(app, session_id)
        feed.readers += 1
        reader = Reader(app, feed, after)
        try:
            yield RETRY
            while not self._closed:
                if data := reader.next():
                    yield data
                elif feed.problem:
                    raise feed.problem
                elif self._feeds.get(session_id) is not feed:
                    return
                else:
                    with anyio.move_on_after(HEARTBEAT_SECONDS) as waiting:
                        await feed.wait()
                    if waiting.cancelled_caught:
                        yield HEARTBEAT
        finally:
            feed.readers -= 1
            if not feed.readers and self._feeds.get(session_id) is feed:
                self._end(session_id)

    def _begin(self, app: App, session_id: str) -> EventFeed:
        feed = EventFeed(session_id, app.last_seq(session_id))
        self._feeds[session_id] = feed
        self._scopes[session_id] = scope = anyio.CancelScope()
        self._tasks.start_soon(self._fill, app, feed, scope)
        return feed

    def _end(self, session_id: str) -> None:
        feed = self._feeds.pop(session_id)
        self._scopes.pop(session_id).cancel()
        feed.notify()

    async def _fill(self, app: App, feed: EventFeed, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                async for batch in app.follow_batches(feed.session_id, feed.seq, pace=feed.pace):
                    for item in batch:
                        feed.add(item)
                    feed.notify()
            except HandrailError as problem:
                feed.problem = problem
                app.detach(feed.session_id)  # the next reader tries again
                feed.notify()


class EventStream(Response):
    """Sends a session's events until the reader leaves or takes nothing, or the server ends."""

    def __init__(self, feeds: EventFeeds, session_id: str, after: int) -> None:
        super().__init__()
        self._feeds = feeds
        self._session_id = session_id
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with anyio.create_task_group() as tasks:

            async def until_gone() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(until_gone)
            async with aclosing(self._feeds.read(self._session_id, self._after)) as parts:
                async for part in parts:
                    with anyio.move_on_after(SEND_SECONDS) as sending:
                        # In pieces: a piece is sent when the reader has taken most of the one before.
                        for at in range(0, len(part), CHUNK_BYTES):
                            body = part[at : at + CHUNK_BYTES]
                            await send({"type": "http.response.body", "body": body, "more_body": True})
                            sending.deadline = anyio.current_time() + SEND_SECONDS
                    if sending.cancelled_caught:
                        scope["state"]["abort"]()  # closing would wait until the reader takes the rest
                        break
            tasks.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
