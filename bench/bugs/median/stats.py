"""Simple statistics."""


def mean(values):
    return sum(values) / len(values)


def median(values):
    """The middle value; for an even count the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle] + ordered[middle + 1]) / 2
