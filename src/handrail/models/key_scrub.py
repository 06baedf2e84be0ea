"""A connection's own key, taken out of whatever its server sends back."""

SHORTEST_KEY = 12
"""Shorter ones are words given to servers without keys, such as `none`, and stand in honest text."""

MARK = "[key]"


class KeyScrub:
    """Replaces the key in one stream of bytes, wherever the bytes are split."""

    def __init__(self, key: str) -> None:
        self._key = key if len(key) >= SHORTEST_KEY else ""
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What can be passed on; an end that may be the beginning of the key is held back."""
        if not self._key:
            return data
        key = self._key.encode()
        data = (self._held + data).replace(key, MARK.encode())
        keep = next((n for n in range(len(key) - 1, 0, -1) if data.endswith(key[:n])), 0)
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def end(self) -> bytes:
        """What was held back, now that nothing more comes."""
        held, self._held = self._held, b""
        return held

    def words(self, text: str) -> str:
        """A sentence without the key."""
        return text.replace(self._key, MARK) if self._key else text
