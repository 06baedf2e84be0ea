"""A cache with a size and an age limit; the clock is given, so that nothing waits."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any


class Cache:
    """Keeps the entries that were used last, each for at most `seconds`."""

    def __init__(self, size: int, seconds: float, clock: Callable[[], float]) -> None:
        if size < 1:
            raise ValueError("size must be at least 1")
        self.size = size
        self.seconds = seconds
        self.clock = clock
        self.hits = 0
        self.misses = 0
        self._entries: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()

    def __len__(self) -> int:
        self.purge()
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        """Whether there is a fresh entry; asking counts neither as use nor as a hit."""
        return key in self._entries and not self._old(key)

    def _old(self, key: Hashable) -> bool:
        stored, _ = self._entries[key]
        return self.clock() - stored >= self.seconds

    def put(self, key: Hashable, value: Any) -> None:
        """Store a value; the entry that was unused for longest goes when there are too many."""
        self._entries[key] = (self.clock(), value)
        self._entries.move_to_end(key)
        if len(self._entries) > self.size:
            self.purge()
        while len(self._entries) > self.size:
            self._entries.popitem(last=False)

    def get(self, key: Hashable, default: Any = None) -> Any:
        """The value, which counts as use; the default where there is no fresh entry."""
        if key not in self._entries:
            self.misses += 1
            return default
        if self._old(key):
            del self._entries[key]
            self.misses += 1
            return default
        self.hits += 1
        self._entries.move_to_end(key)
        return self._entries[key][1]

    def get_or_make(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value; made and stored where there is no fresh entry, also when it is None."""
        missing = object()
        found = self.get(key, missing)
        if found is missing:
            found = make()
            self.put(key, found)
        return found

    def purge(self) -> int:
        """Drop the entries that are too old; returns how many they were."""
        old = [key for key in self._entries if self._old(key)]
        for key in old:
            del self._entries[key]
        return len(old)

    def keys(self) -> list[Hashable]:
        """Keys of fresh entries, the one unused for longest first."""
        return [key for key in self._entries if not self._old(key)]

    def hit_rate(self) -> float:
        """The share of hits among all gets; 0 before the first."""
        total = self.hits + self.misses
        return self.hits / total if total else 0.0
