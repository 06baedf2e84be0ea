"""Whatever is done to a line of a trace is found, and the line is named."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.changes.trace.integrity import Verified, verify
from handrail.changes.trace.logged_changes import LoggedLine
from tests.changes.trace.traces import chain, known_of, text

LONG = 10_000
WRITERS = ("w_a", "w_b", "w_c")


@pytest.fixture(scope="module")
def long() -> tuple[list[bytes], list[LoggedLine]]:
    """Three chains, their lines mixed as sessions beside one another mix them."""
    chance = Random(7)
    waiting = [chain(writer, LONG // 3 + (writer == "w_a")) for writer in WRITERS]
    known = [line for each in waiting for line in known_of(each)]
    lines = []
    while any(waiting):
        lines.append(chance.choice([each for each in waiting if each]).pop(0))
    return lines, known


def places(found: Verified, kind: str) -> list[int]:
    return [finding.line for finding in found.findings if finding.kind == kind]


def is_clean(found: Verified) -> bool:
    return not found.findings and not found.gaps


def test_a_trace_as_it_was_written_is_right(long: tuple[list[bytes], list[LoggedLine]]) -> None:
    lines, known = long
    found = verify(text(lines), known)
    assert is_clean(found)
    assert (found.lines, found.own, found.others) == (LONG, LONG, ())


def test_lines_of_others_are_right_without_a_log(long: tuple[list[bytes], list[LoggedLine]]) -> None:
    found = verify(text(long[0]), [])
    assert is_clean(found)
    assert found.others == WRITERS


@pytest.mark.promise("TRACE-2")
@pytest.mark.parametrize("seed", range(6))
def test_an_edited_line_of_ten_thousand_is_named(
    long: tuple[list[bytes], list[LoggedLine]], seed: int
) -> None:
    lines, known = list(long[0]), long[1]
    chance = Random(seed)
    place = chance.choice([1, LONG, chance.randint(1, LONG)])
    line = bytearray(lines[place - 1])
    at = chance.randrange(len(line))
    line[at] = (line[at] + chance.randint(1, 255)) % 256
    lines[place - 1] = bytes(line).replace(b"\n", b" ").replace(b"\r", b" ")
    found = verify(text(lines), known)
    assert place in {finding.line for finding in found.findings}


@pytest.mark.promise("TRACE-2")
@pytest.mark.parametrize("seed", range(4))
def test_a_removed_line_of_ten_thousand_is_named(
    long: tuple[list[bytes], list[LoggedLine]], seed: int
) -> None:
    lines, known = list(long[0]), long[1]
    gone = json.loads(lines.pop(Random(seed).choice([0, LONG - 1, Random(seed).randrange(LONG)])))
    (gap,) = verify(text(lines), known).gaps
    (line,) = gap.lines
    assert (line.writer, line.number) == (gone["writer"], gone["number"])
    assert gap.after == max(
        (at for at, each in enumerate(lines, start=1) if _is_before(each, gone)), default=0
    )


def _is_before(line: bytes, gone: dict[str, object]) -> bool:
    said = json.loads(line)
    return bool(said["writer"] == gone["writer"] and said["number"] < gone["number"])


@pytest.mark.promise("TRACE-2")
@pytest.mark.parametrize("seed", range(4))
def test_a_line_of_ten_thousand_in_another_place_is_named(
    long: tuple[list[bytes], list[LoggedLine]], seed: int
) -> None:
    lines, known = list(long[0]), long[1]
    chance = Random(seed)
    moved = lines.pop(chance.randrange(LONG))
    to = chance.choice([0, chance.randrange(LONG)])
    lines.insert(to, moved)
    found = verify(text(lines), known)
    assert not found.gaps
    writer = json.loads(moved)["writer"]
    numbers = [said["number"] for said in map(json.loads, lines) if said["writer"] == writer]
    if numbers == sorted(numbers):
        assert is_clean(found)  # past lines of others only: that is how merges look
    else:
        named = [json.loads(lines[place - 1]) for place in places(found, "reordered")]
        assert [said["writer"] for said in named] == [writer]
        assert abs(named[0]["number"] - json.loads(moved)["number"]) <= 1


@pytest.mark.promise("TRACE-2")
@pytest.mark.parametrize("kept", [0, 1, 5_000, LONG - 1])
def test_lines_that_were_cut_off_are_told_by_chain(
    long: tuple[list[bytes], list[LoggedLine]], kept: int
) -> None:
    lines, known = long
    found = verify(text(lines[:kept]), known)
    assert not found.findings
    assert all(gap.at_end for gap in found.gaps)
    assert sum(len(gap.lines) for gap in found.gaps) == LONG - kept


def test_a_last_line_without_its_end_is_told(long: tuple[list[bytes], list[LoggedLine]]) -> None:
    lines, known = long
    assert places(verify(text(lines)[:-1], known), "cut off") == [LONG]


def test_a_line_that_nobody_wrote_is_forged_or_unreadable() -> None:
    lines = chain("w_a", 5)
    forged = json.dumps(json.loads(lines[4]) | {"number": 6}).encode()
    found = verify(text([*lines, forged, b"hello", b"[1]", b"\xff"]), known_of(lines))
    assert places(found, "forged") == [6]
    assert places(found, "unreadable") == [7, 8, 9]


def test_a_copied_line_is_told() -> None:
    lines = chain("w_a", 5)
    assert places(verify(text([*lines, lines[2]]), known_of(lines)), "copied") == [6]


CHAIN = chain("w_other", 12)


@given(st.integers(0, 11), st.sampled_from(["file", "model", "before", "number", "at"]))
def test_an_edit_in_a_chain_of_others_is_named(place: int, field: str) -> None:
    """But for the last line, of which nobody here has the hash."""
    lines = list(CHAIN)
    said = json.loads(lines[place])
    said[field] = 99 if field == "number" else "forged"
    lines[place] = json.dumps(said, separators=(",", ":")).encode()
    found = verify(text(lines), [])
    if place == 11 and field not in ("before", "number"):
        assert is_clean(found)
    else:
        assert {place, place + 1, place + 2} & {finding.line for finding in found.findings}


@given(st.integers(0, 10))
def test_a_line_removed_from_a_chain_of_others_is_named(place: int) -> None:
    found = verify(text([*CHAIN[:place], *CHAIN[place + 1 :]]), [])
    assert places(found, "removed") == [place + 1]


@given(st.permutations(range(12)))
def test_any_other_order_of_a_chain_is_found(order: list[int]) -> None:
    found = verify(text([CHAIN[at] for at in order]), [])
    assert bool(places(found, "reordered")) == (list(order) != sorted(order))
    assert not places(found, "edited")
