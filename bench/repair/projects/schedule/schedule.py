"""Meetings of a day as half-open intervals of minutes: [start, end)."""

from typing import NamedTuple

DAY = 24 * 60


class Slot(NamedTuple):
    start: int
    end: int

    @property
    def minutes(self) -> int:
        return self.end - self.start


def parse_time(text: str) -> int:
    """Minutes since midnight of a text such as 09:30; 24:00 is the end of the day."""
    hours, separator, minutes = text.partition(":")
    if not separator or not hours.isdigit() or not minutes.isdigit():
        raise ValueError(f"not a time: {text}")
    total = int(hours) * 60 + int(minutes)
    if int(minutes) > 59 or total > DAY:
        raise ValueError(f"not a time: {text}")
    return total


def parse_slot(text: str) -> Slot:
    """The slot of a text such as 09:30-11:00."""
    start, _, end = text.partition("-")
    slot = Slot(parse_time(start), parse_time(end))
    if slot.end <= slot.start:
        raise ValueError(f"ends before it starts: {text}")
    return slot


def overlap(one: Slot, other: Slot) -> bool:
    """Whether both have a minute in common; touching is not overlapping."""
    return one.start < other.end and other.start < one.end


def merge(slots: list[Slot]) -> list[Slot]:
    """The same minutes in as few slots as possible, in order; touching slots become one."""
    merged: list[Slot] = []
    for slot in sorted(slots):
        if merged and slot.start <= merged[-1].end:
            merged[-1] = Slot(merged[-1].start, max(merged[-1].end, slot.end))
        else:
            merged.append(slot)
    return merged


def free(slots: list[Slot], opening: Slot, least: int = 1) -> list[Slot]:
    """What is left of the opening hours, in gaps of at least so many minutes."""
    gaps: list[Slot] = []
    begin = opening.start
    for slot in merge(slots):
        if slot.start > begin:
            gaps.append(Slot(begin, min(slot.start, opening.end)))
        begin = max(begin, slot.end)
        if begin >= opening.end:
            break
    if begin < opening.end:
        gaps.append(Slot(begin, opening.end))
    return [gap for gap in gaps if gap.minutes >= least]


def conflicts(slots: dict[str, Slot]) -> list[tuple[str, str]]:
    """Pairs of names whose slots overlap, each pair once and in alphabetical order."""
    names = sorted(slots)
    found = []
    for number, one in enumerate(names):
        for other in names[number + 1 :]:
            if overlap(slots[one], slots[other]):
                found.append((one, other))
    return found
