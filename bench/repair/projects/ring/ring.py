"""A ring of the last values, as described in RING.md."""


class Ring:
    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError("size must be at least 1")
        self.size = size
        self._kept: list[float] = []

    def __len__(self) -> int:
        return len(self._kept)

    def push(self, value: float) -> float | None:
        """Add a value; returns the one that fell out."""
        self._kept.append(value)
        return self._kept.pop(0) if len(self._kept) > self.size else None

    def values(self) -> list[float]:
        """The oldest first."""
        return list(self._kept)

    def last(self, count: int) -> list[float]:
        """The newest first."""
        return self._kept[::-1][:count]

    def mean(self) -> float:
        return sum(self._kept) / len(self._kept) if self._kept else 0.0
