"""Seats in a row, as described in SEATS.md."""


def free(row: str) -> int:
    """How many seats are free."""
    return row.count(".")


def groups(row: str) -> list[tuple[int, int]]:
    """Groups of free seats as (first seat, length)."""
    found: list[tuple[int, int]] = []
    start = None
    for at, seat in enumerate(row + "x"):
        if seat == "." and start is None:
            start = at
        elif seat != "." and start is not None:
            found.append((start, at - start))
            start = None
    return found


def place(row: str, people: int) -> str | None:
    """The row after so many people sat down together; None where they cannot."""
    fitting = [(length, start) for start, length in groups(row) if length >= people]
    if not fitting:
        return None
    _, start = min(fitting)
    return row[:start] + "x" * people + row[start + people :]
