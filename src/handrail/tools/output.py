"""What a command writes: the start and the end are kept, however much there is between."""

from collections.abc import Callable

CAP = 16_000_000
"""Bytes kept from the start."""
ENOUGH = 256_000_000
"""Bytes after which a command is stopped."""
TAIL = 64_000
"""Bytes kept from the end, once there are more than `CAP`."""


class Output:
    """Takes any number of bytes in bounded memory."""

    def __init__(self, cap: int = CAP, tail: int = TAIL) -> None:
        self.total = 0
        self.is_full = False
        self._cap, self._tail_size = cap, tail
        self._head, self._tail = bytearray(), bytearray()

    def add(self, chunk: bytes) -> bool:
        """Take more; False when it is enough."""
        self.total += len(chunk)
        self.is_full = self.is_full or self.total > ENOUGH
        room = self._cap - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:][-self._tail_size :]
        del self._tail[: -self._tail_size]
        return not self.is_full

    def change(self, how: Callable[[bytes], bytes]) -> None:
        """Make something else of what was kept, before any of it is cut to what fits."""
        dropped = self.dropped
        self._head, self._tail = bytearray(how(bytes(self._head))), bytearray(how(bytes(self._tail)))
        self.total = dropped + len(self._head) + len(self._tail)

    @property
    def dropped(self) -> int:
        """Bytes that are not kept."""
        return self.total - len(self._head) - len(self._tail)

    def whole(self) -> bytes:
        """All that was kept, with a line where something is missing."""
        if not self.dropped:
            return bytes(self._head + self._tail)
        note = f"\n[… {self.dropped:,} bytes were not kept …]\n".encode()
        return bytes(self._head + note + self._tail)

    def latest(self, limit: int) -> str:
        """The end of the text, so many bytes of it."""
        end = bytes(
            self._tail[-limit:] if len(self._tail) >= limit else (self._head[-limit:] + self._tail)[-limit:]
        )
        return end.decode(errors="replace")

    def ends(self, limit: int) -> str:
        """The text if it fits, else its start and end with a word on what lies between."""
        if self.total <= limit:
            return bytes(self._head + self._tail).decode(errors="replace")
        half = limit // 2
        end = (self._head[-half:] + self._tail)[-half:] if len(self._tail) < half else self._tail[-half:]
        start = self._head[:half].decode(errors="replace")
        note = f"\n[… {self.total - 2 * half:,} bytes left out …]\n"
        return start + note + end.decode(errors="replace")
