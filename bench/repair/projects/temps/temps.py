"""Temperatures of a week, as described in TEMPS.md."""


def read(text: str) -> list[tuple[str, int, float]]:
    """The measurements in order."""
    found = []
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        parts = line.split()
        if len(parts) != 3:
            raise ValueError(line)
        found.append((parts[0], int(parts[1]), float(parts[2])))
    return found


def warmest(text: str) -> tuple[str, int] | None:
    """Day and hour of the highest temperature."""
    found = read(text)
    if not found:
        return None
    day, hour, _ = max(found, key=lambda each: each[2])
    return day, hour


def averages(text: str) -> dict[str, float]:
    """The average of each day."""
    days: dict[str, list[float]] = {}
    for day, _, degrees in read(text):
        days.setdefault(day, []).append(degrees)
    return {day: round(sum(each) / len(each), 1) for day, each in days.items()}
