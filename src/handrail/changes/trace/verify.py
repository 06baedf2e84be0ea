"""Whether the lines of a trace are those that were written: each by its hash, their order, and none missing.

Lines of this workspace's log are known one by one. Of others, only the chain of hashes tells.
"""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from handrail.changes.trace.chains import Link, check_chain, out_of_order
from handrail.changes.trace.findings import Finding, Kind
from handrail.changes.trace.known import KnownLine
from handrail.changes.trace.line import line_hash


class Gap(NamedTuple):
    """Lines that the log knows and the file does not have, next to one another in one chain."""

    lines: tuple[KnownLine, ...]
    after: int
    """The line of the file that they should follow; 0: they begin the chain."""
    at_end: bool
    """Nothing of their chain comes after them."""


class Verified(NamedTuple):
    lines: int
    own: int
    """Lines that the log knows."""
    others: tuple[str, ...]
    """Writers that the log does not know: how far their chains went nobody here can tell."""
    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]


class _Strange(NamedTuple):
    """A line whose hash the log does not know."""

    place: int
    writer: str
    number: int
    before: str
    sha256: str


def verify(data: bytes, known: Sequence[KnownLine]) -> Verified:
    """What is wrong with a trace; what is missing is told apart, since it may be elsewhere."""
    return _Verifying(known).run(data)


class _Verifying:
    def __init__(self, known: Sequence[KnownLine]) -> None:
        known = sorted(known, key=lambda line: (line.writer, line.number))
        self._by_hash = {line.sha256: line for line in known}
        self._numbered = {(line.writer, line.number): line for line in known}
        self._writers = {line.writer for line in known}
        self._places: dict[str, int] = {}
        """Where each hash stands."""
        self._claimed: set[str] = set()
        """Hashes of lines that another content stands for."""
        self._strange: list[_Strange] = []
        self._findings: list[Finding] = []

    def run(self, data: bytes) -> Verified:
        lines = data.split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        else:
            self._find(len(lines), "cut off", "the last line has no end")
        self._look(lines)
        self._judge_strange()
        others: dict[str, list[Link]] = {}
        for each in self._strange:
            if each.writer and each.writer not in self._writers:
                others.setdefault(each.writer, []).append(Link(each.place, *each[2:]))
        for writer, links in others.items():
            self._findings += check_chain(writer, links)
        own = sum(sha256 in self._by_hash for sha256 in self._places)
        return Verified(
            len(lines), own, tuple(sorted(others)), tuple(sorted(set(self._findings))), tuple(self._gaps())
        )

    def _look(self, lines: Sequence[bytes]) -> None:
        chains: dict[str, list[tuple[int, int]]] = {}
        for place, line in enumerate(lines, start=1):
            sha256 = line_hash(line)
            if first := self._places.get(sha256):
                self._find(place, "copied", f"the same as line {first}")
                continue
            self._places[sha256] = place
            known = self._by_hash.get(sha256)
            if known is None:
                said = _said(line)
                self._strange.append(_Strange(place, *said, sha256))
            else:
                chains.setdefault(known.writer, []).append((known.number, place))
        for writer, chain in chains.items():
            self._findings += out_of_order(writer, chain)

    def _judge_strange(self) -> None:
        at = {
            place: self._by_hash[sha256] for sha256, place in self._places.items() if sha256 in self._by_hash
        }
        for each in self._strange:
            was = self._missing(each.writer, each.number)
            if was is None and each.writer not in self._writers:
                was = self._neighbour(at.get(each.place - 1), 1) or self._neighbour(
                    at.get(each.place + 1), -1
                )
                # A line of others is no less theirs for standing where one of ours is missing.
                was = was if not each.writer else None
            if was:
                self._claimed.add(was.sha256)
                what = f"it was number {was.number} of {was.writer}: {was.file}, change {was.change_id}"
                self._find(each.place, "edited", what)
            elif each.writer in self._writers:
                self._find(each.place, "forged", f"{each.writer} has written no such line")
            elif not each.writer:
                self._find(each.place, "unreadable", "it is no line of a trace")

    def _missing(self, writer: str, number: int) -> KnownLine | None:
        known = self._numbered.get((writer, number))
        gone = known and known.sha256 not in self._places and known.sha256 not in self._claimed
        return known if gone else None

    def _neighbour(self, known: KnownLine | None, step: int) -> KnownLine | None:
        return self._missing(known.writer, known.number + step) if known else None

    def _gaps(self) -> Iterator[Gap]:
        """What is missing, by chain, and within it by stretches."""
        run: list[KnownLine] = []
        after = 0
        previous = ""
        for line in (*self._numbered.values(), None):
            here = line is not None and (line.sha256 in self._places or line.sha256 in self._claimed)
            other = line is None or line.writer != previous
            if run and (here or other):
                yield Gap(tuple(run), after, at_end=other)
                run = []
            if line is None:
                break
            if other:
                after, previous = 0, line.writer
            if here:
                after = self._places.get(line.sha256, after)
            else:
                run.append(line)

    def _find(self, place: int, kind: Kind, what: str) -> None:
        self._findings.append(Finding(place, kind, what))


def _said(line: bytes) -> tuple[str, int, str]:
    """Writer, number and the hash before, as far as a line says them."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return "", 0, ""
    if not isinstance(said, dict):
        return "", 0, ""
    writer, number, before = said.get("writer"), said.get("number"), said.get("before")
    if not (isinstance(writer, str) and isinstance(number, int) and isinstance(before, str)):
        return "", 0, ""
    return writer, number, before
