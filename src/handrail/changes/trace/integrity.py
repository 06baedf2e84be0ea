"""Verify a trace: each line by its hash, their order, and that none is missing.

The log has the hash of each line of this workspace. Lines of other writers are checked by their chain.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from handrail.changes.trace.line_blocks import longest_increasing
from handrail.changes.trace.logged_changes import LoggedLine
from handrail.changes.trace.trace_file import line_hash

FindingKind = Literal["edited", "removed", "reordered", "cut off", "forged", "copied", "unreadable"]


class Finding(NamedTuple):
    line: int  # from 1; 0 where it is no line of the file
    kind: FindingKind
    what: str


class Link(NamedTuple):
    """A line of a chain, as its fields say; its hash is not in the log."""

    place: int  # its line in the file, from 1
    writer: str  # empty: not a line of a trace
    number: int
    before: str
    sha256: str


def check_chain(writer: str, links: Sequence[Link]) -> list[Finding]:
    """What is wrong with the lines of one writer, in the order of the file."""
    found: list[Finding] = []
    best: dict[int, Link] = {}
    expected = {link.number - 1: link.before for link in links}
    for link in links:
        other = best.get(link.number)
        if other is None or (expected.get(link.number) == link.sha256 != other.sha256):
            best[link.number] = link
        if other is not None:
            worse = other if best[link.number] is link else link
            found.append(Finding(worse.place, "forged", f"a second line {link.number} of {writer}"))
    chain = sorted(((link.number, link.place) for link in best.values()), key=lambda each: each[1])
    return [*found, *out_of_order(writer, chain), *_gaps(writer, best), *_hashes(writer, best)]


def out_of_order(writer: str, chain: Sequence[tuple[int, int]]) -> list[Finding]:
    """The fewest lines that are out of order; `chain` has the number and place of each line."""
    right = set(longest_increasing(chain))
    wrong = [each for each in chain if each not in right]
    return [Finding(at, "reordered", f"number {number} of {writer} is out of order") for number, at in wrong]


def _gaps(writer: str, best: Mapping[int, Link]) -> list[Finding]:
    found = []
    for number, link in sorted(best.items()):
        if number > 1 and number - 1 not in best:
            first = max((each for each in best if each < number), default=0) + 1
            gone = f"number {first}" if first == number - 1 else f"numbers {first} to {number - 1}"
            found.append(Finding(link.place, "removed", f"{gone} of {writer} should come before it"))
    return found


def _hashes(writer: str, best: Mapping[int, Link]) -> list[Finding]:
    """Lines whose content does not fit the hashes around it."""
    runs: list[list[int]] = []
    for number, link in sorted(best.items()):
        if (number == 1 and link.before) or (number - 1 in best and best[number - 1].sha256 != link.before):
            if runs and runs[-1][-1] == number - 1:
                runs[-1].append(number)
            else:
                runs.append([number])
    return [_edited(writer, best, run[0], run[-1]) for run in runs]


def _edited(writer: str, best: Mapping[int, Link], first: int, last: int) -> Finding:
    if last > first or first == 1:
        # A line that fits neither neighbour makes two breaks in a row; a first line has only itself.
        place = best[max(1, last - 1)].place
        return Finding(place, "edited", f"it does not fit the lines of {writer} around it")
    before, after = best[first - 1].place, best[first].place
    if first + 1 in best:
        return Finding(before, "edited", f"line {after}, the next of {writer}, has another hash for it")
    what = f"either it or line {after}, the last of {writer}: they do not have each other's hash"
    return Finding(before, "edited", what)


class Gap(NamedTuple):
    """Consecutive lines of one chain that the log has and the file does not."""

    lines: tuple[LoggedLine, ...]
    after: int  # the line of the file that they should follow; 0: they begin the chain
    at_end: bool  # no line of their chain comes after them


class Verified(NamedTuple):
    lines: int
    own: int  # lines that the log has
    others: tuple[str, ...]  # writers that are not in the log: their chains may be cut off unseen
    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]


def verify(data: bytes, known: Sequence[LoggedLine]) -> Verified:
    """What is wrong with a trace; missing lines are listed apart, since another branch may have them."""
    return _Verifier(known).run(data)


class _Verifier:
    def __init__(self, known: Sequence[LoggedLine]) -> None:
        known = sorted(known, key=lambda line: (line.writer, line.number))
        self._by_hash = {line.sha256: line for line in known}
        self._numbered = {(line.writer, line.number): line for line in known}
        self._writers = {line.writer for line in known}
        self._places: dict[str, int] = {}  # the line of the file with each hash
        self._edited: set[str] = set()  # hashes of lines that have another content now
        self._unknown: list[Link] = []
        self._findings: list[Finding] = []

    def run(self, data: bytes) -> Verified:
        lines = data.split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        else:
            self._find(len(lines), "cut off", "the last line has no end")
        self._locate(lines)
        self._judge_unknown()
        others: dict[str, list[Link]] = {}
        for each in self._unknown:
            if each.writer and each.writer not in self._writers:
                others.setdefault(each.writer, []).append(each)
        for writer, links in others.items():
            self._findings += check_chain(writer, links)
        own = sum(sha256 in self._by_hash for sha256 in self._places)
        return Verified(
            len(lines), own, tuple(sorted(others)), tuple(sorted(set(self._findings))), tuple(self._gaps())
        )

    def _locate(self, lines: Sequence[bytes]) -> None:
        chains: dict[str, list[tuple[int, int]]] = {}
        for place, line in enumerate(lines, start=1):
            sha256 = line_hash(line)
            if first := self._places.get(sha256):
                self._find(place, "copied", f"the same as line {first}")
                continue
            self._places[sha256] = place
            known = self._by_hash.get(sha256)
            if known is None:
                self._unknown.append(Link(place, *_chain_fields(line), sha256))
            else:
                chains.setdefault(known.writer, []).append((known.number, place))
        for writer, chain in chains.items():
            self._findings += out_of_order(writer, chain)

    def _judge_unknown(self) -> None:
        at = {place: known for each, place in self._places.items() if (known := self._by_hash.get(each))}
        for each in self._unknown:
            was = self._missing(each.writer, each.number)
            if was is None and not each.writer:
                before, after = at.get(each.place - 1), at.get(each.place + 1)
                was = self._neighbour(before, 1) or self._neighbour(after, -1)
            if was:
                self._edited.add(was.sha256)
                what = f"it was number {was.number} of {was.writer}: {was.file}, change {was.change_id}"
                self._find(each.place, "edited", what)
            elif each.writer in self._writers:
                self._find(each.place, "forged", f"{each.writer} has not written such a line")
            elif not each.writer:
                self._find(each.place, "unreadable", "it is not a line of a trace")

    def _missing(self, writer: str, number: int) -> LoggedLine | None:
        known = self._numbered.get((writer, number))
        gone = known and known.sha256 not in self._places and known.sha256 not in self._edited
        return known if gone else None

    def _neighbour(self, known: LoggedLine | None, step: int) -> LoggedLine | None:
        return self._missing(known.writer, known.number + step) if known else None

    def _gaps(self) -> Iterator[Gap]:
        run: list[LoggedLine] = []
        after = 0
        previous = ""
        for line in (*self._numbered.values(), None):
            here = line is not None and (line.sha256 in self._places or line.sha256 in self._edited)
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

    def _find(self, place: int, kind: FindingKind, what: str) -> None:
        self._findings.append(Finding(place, kind, what))


def _chain_fields(line: bytes) -> tuple[str, int, str]:
    """Writer, number and the hash before; empty where a line does not have them."""
    with suppress(ValueError, RecursionError):
        match json.loads(line):
            case {"writer": str(writer), "number": int(number), "before": str(before)}:
                return writer, number, before
    return "", 0, ""
