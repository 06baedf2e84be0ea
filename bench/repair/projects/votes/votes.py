"""Counting votes, as described in VOTES.md."""


def invalid(ballots: list[list[str]]) -> int:
    """How many ballots are invalid."""
    return sum(not _valid(ballot) for ballot in ballots)


def points(ballots: list[list[str]]) -> dict[str, int]:
    """Points by name."""
    found: dict[str, int] = {}
    for ballot in filter(_valid, ballots):
        for name, worth in zip(ballot, (3, 2, 1)):
            found[name] = found.get(name, 0) + worth
    return found


def winners(ballots: list[list[str]]) -> list[str]:
    """The names with the most points."""
    counted = points(ballots)
    most = max(counted.values(), default=0)
    return sorted(name for name, worth in counted.items() if worth == most)


def _valid(ballot: list[str]) -> bool:
    return bool(ballot) and len(set(ballot)) == len(ballot)
