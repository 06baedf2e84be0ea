"""Blocks that were taken away in one place and put in another: whoever wrote them keeps them.

A run of lines counts as moved when it holds enough letters and digits to be no accident. Shorter ones do so
only where all that went from a file came back to it.
"""

from collections.abc import Iterator, Sequence

from handrail.protocol.record import Record

ENOUGH = 20
"""Letters and digits of a moved block."""
MUCH = 40
"""Of one that was gone for a while."""
HEAVY = 12
"""Of a line that tells something: `return None` does not."""
TRIED = 40
"""Places that are compared for one line."""
NOBODY = -1
SIGNS = bytes(each for each in range(128) if not chr(each).isalnum())


class Run:
    """Lines next to one another that a change took away or put in; owners of those that are settled."""

    def __init__(
        self, path: str, start: int, keys: Sequence[bytes], owners: Sequence[int] = (), *, to: str = ""
    ) -> None:
        self.path = path
        self.to = to or path
        """Another name of the file after the change."""
        self.start = start
        self.keys = keys
        self.owners = list(owners) or [NOBODY] * len(keys)
        self.taken = [False] * len(keys)
        """Lines that were found to have moved."""


class _Match(Record):
    gone: Run
    at: int
    back: int
    length: int


def settle(gone: Sequence[Run], come: Sequence[Run], enough: int = ENOUGH) -> None:
    """Give lines that have come the owners of those that went, where they are the same block."""
    if not gone or not come:
        return
    places = _places(gone, {key for run in come for key in run.keys})
    for run in come:
        at = 0
        while at < len(run.keys):
            match = None if run.taken[at] else _longest(run, at, places, enough)
            if match:
                _take(run, at - match.back, match)
            at += match.length - match.back if match else 1
    for run in come:
        if not any(run.taken):
            for other in gone:
                if other.path == run.path and other.keys == run.keys and not any(other.taken):
                    _take(run, 0, _Match(other, 0, 0, len(run.keys)))
                    break


def weight(key: bytes) -> int:
    """How much a line tells."""
    return len(key.translate(None, SIGNS))


def _places(gone: Sequence[Run], wanted: set[bytes]) -> dict[bytes, list[tuple[Run, int]]]:
    places: dict[bytes, list[tuple[Run, int]]] = {}
    for run in gone:
        for at, key in enumerate(run.keys):
            if key in wanted and weight(key) >= HEAVY:
                places.setdefault(key, []).append((run, at))
    return places


def _longest(run: Run, at: int, places: dict[bytes, list[tuple[Run, int]]], enough: int) -> _Match | None:
    best: _Match | None = None
    for gone, place in _untaken(places.get(run.keys[at], ())):
        back = 0
        while _same(run, at - back - 1, gone, place - back - 1):
            back += 1
        length = back
        while _same(run, at + length - back, gone, place + length - back):
            length += 1
        if best is None or length > best.length:
            best = _Match(gone, place - back, back, length)
    if best and sum(map(weight, best.gone.keys[best.at : best.at + best.length])) >= enough:
        return best
    return None


def _untaken(found: Sequence[tuple[Run, int]]) -> Iterator[tuple[Run, int]]:
    return iter([(run, at) for run, at in found if not run.taken[at]][:TRIED])


def _same(run: Run, at: int, gone: Run, place: int) -> bool:
    return (
        0 <= at < len(run.keys)
        and 0 <= place < len(gone.keys)
        and run.keys[at] == gone.keys[place]
        and not run.taken[at]
        and not gone.taken[place]
    )


def _take(run: Run, start: int, match: _Match) -> None:
    for step in range(match.length):
        run.owners[start + step] = match.gone.owners[match.at + step]
        run.taken[start + step] = match.gone.taken[match.at + step] = True
