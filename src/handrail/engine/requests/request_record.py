"""The record of one request: its bytes before they are sent, the answer's bytes before they are used."""

import hashlib
from contextlib import suppress

from msgspec.structs import replace

from handrail.models.model import EndOfBytes, Part, Progress, RequestBytes
from handrail.models.reading.collector import Answer, AnswerCollector
from handrail.protocol.errors import LostHold, StorageProblem
from handrail.protocol.events import AnswerReceived, Event, RequestContinued, RequestStarted, SideAsked
from handrail.sessions.session import Session


class RequestRecord:
    """Commits what a request sends and receives, and collects its answer.

    The start of the request is committed together with its bytes, when the model is about to send them. The
    bytes of the answer are saved as they come, and committed before anything is concluded from them.
    """

    def __init__(self, session: Session, started: RequestStarted | SideAsked, read_again: str = "") -> None:
        """`read_again`: the stored bytes of an answer that came before a crash; it is all on record."""
        self._session = session
        self._started = started
        self._read_again = read_again
        self._begun = bool(read_again)
        self._raw = read_again
        self._taken = 0
        """How many of the bytes belong to an earlier exchange of the same request."""
        self._collector = AnswerCollector()
        self.request_id = started.request_id
        self.message_id = started.message_id if isinstance(started, RequestStarted) else ""

    def add(self, part: Part) -> None:
        match part:
            case Progress():
                return
            case RequestBytes(pieces) if not self._read_again:
                self._send(pieces)
            case EndOfBytes() if not self._read_again:
                self._receive()
            case _:
                self.begin()
                self._collector.add(part)

    def begin(self) -> None:
        """Commit the start of a request whose model has no bytes to show."""
        if not self._begun:
            self._commit_start(self._started)

    def end(self, ended: Event) -> None:
        """Commit the end of the request, with the bytes that are not on record yet."""
        self.begin()
        rest = bytes(self._collector.raw[self._taken :])
        blobs = [rest] if rest and not self._read_again else []
        self._session.append(ended, blobs=blobs, settle=[self.request_id, self.message_id])

    def save(self) -> None:
        """Save what has come, where reading it has failed in a way that nobody expected."""
        with suppress(StorageProblem, LostHold):
            self._session.keep_live()

    def answer(self) -> Answer:
        return self._collector.answer()

    @property
    def raw(self) -> str:
        """The hash of the bytes of the answer, or of its last part where it came in several."""
        rest = self._collector.raw[self._taken :]
        return hashlib.sha256(rest).hexdigest() if rest and not self._read_again else self._raw

    def _send(self, pieces: tuple[bytes, ...]) -> None:
        chained = self._session.log.requests.chain(pieces)
        if self._begun:
            self._session.append(RequestContinued(self.request_id, chained.head), blobs=chained.blobs)
        else:
            self._commit_start(replace(self._started, body=chained.head), chained.blobs)
        self._session.log.requests.stored(chained)
        self._session.live.receive(self.request_id, self._collector.raw)

    def _commit_start(self, started: RequestStarted | SideAsked, blobs: list[bytes] | None = None) -> None:
        self._session.append(started, blobs=blobs or [])
        self._begun = True

    def _receive(self) -> None:
        rest = bytes(self._collector.raw[self._taken :])
        self._raw, self._taken = hashlib.sha256(rest).hexdigest() if rest else "", len(self._collector.raw)
        received = AnswerReceived(self.request_id, self._raw)
        partials = [each for each in self._session.live.unsaved() if each.message != self.request_id]
        self._session.append(
            received, blobs=[rest] if rest else [], partials=partials, settle=[self.request_id]
        )
