"""Durations: reading `1h 30m`, writing them short or long, rounding and adding."""

import re

UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
NAMES = {"w": "week", "d": "day", "h": "hour", "m": "minute", "s": "second"}
PART = re.compile(r"(\d+(?:\.\d+)?)\s*([wdhms])")


def parse(text: str) -> float:
    """Seconds of a text such as `1h 30m`, `90s` or `-2d`; each unit at most once, largest first."""
    rest = text.strip().lower()
    sign = 1
    if rest.startswith("-"):
        sign, rest = -1, rest[1:].lstrip()
    if not rest:
        raise ValueError("an empty duration")
    total = 0.0
    largest = None
    at = 0
    while at < len(rest):
        match = PART.match(rest, at)
        if match is None:
            raise ValueError(f"not a duration: {text}")
        number, unit = match.groups()
        if largest is not None and UNITS[unit] >= largest:
            raise ValueError(f"units out of order: {text}")
        largest = UNITS[unit]
        total += float(number) * UNITS[unit]
        at = match.end()
        while at < len(rest) and rest[at] in " ,":
            at += 1
    return sign * total


def split(seconds: int) -> dict[str, int]:
    """How many of each unit, without zeros."""
    found: dict[str, int] = {}
    for unit, size in UNITS.items():
        count, seconds = divmod(seconds, size)
        if count:
            found[unit] = count
    return found


def short(seconds: int) -> str:
    """Such as `1h 30m`; `0s` for nothing."""
    if seconds < 0:
        return f"-{short(-seconds)}"
    return " ".join(f"{count}{unit}" for unit, count in split(seconds).items()) or "0s"


def long(seconds: int, most: int = 2) -> str:
    """The largest units in words, such as `1 hour and 30 minutes`; smaller ones are left out."""
    parts = []
    for unit, count in list(split(seconds).items())[:most]:
        parts.append(f"{count} {NAMES[unit]}{'' if count == 1 else 's'}")
    if not parts:
        return "0 seconds"
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def clock(seconds: int) -> str:
    """Such as `0:05`, `12:30` or `1:02:03`."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}"


def round_up(seconds: int, step: int) -> int:
    """The next multiple of the step, or the number itself where it is one."""
    if step <= 0:
        raise ValueError("a step must be positive")
    return -(-seconds // step) * step


def billed(spans: list[int], step: int = 900, least: int = 0) -> int:
    """Seconds to be paid for: each span rounded up to the step, and at least so many in total if there is one."""
    if not spans:
        return 0
    return max(least, sum(round_up(span, step) for span in spans))
