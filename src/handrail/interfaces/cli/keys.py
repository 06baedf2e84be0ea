"""Keys as they are pressed, one at a time and without an echo."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import anyio
from prompt_toolkit.input import create_input
from prompt_toolkit.keys import Keys as Named

LEAVE = "leave"
ENTER = "enter"
SPECIAL: dict[str, str] = {
    Named.ControlC: LEAVE,
    Named.ControlD: LEAVE,
    Named.ControlM: ENTER,
    Named.ControlJ: ENTER,
}
ERASE = (Named.ControlH, Named.ControlU)


class Keys:
    """The keyboard, which is nobody else's while the block lasts."""

    def __init__(self) -> None:
        self._input = create_input()
        self._waiting: deque[tuple[str, str]] = deque()
        self._raw = ExitStack()

    def __enter__(self) -> "Keys":
        self._raw.enter_context(self._input.raw_mode())
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """For a while the terminal is as a shell has it, so that Ctrl-C is a signal."""
        self._raw.close()
        try:
            yield
        finally:
            self._raw.enter_context(self._input.raw_mode())

    async def next(self) -> str:
        """The next key: what it types, ENTER, or LEAVE (Ctrl-C, Ctrl-D, a closed terminal)."""
        while True:
            key, data = await self._pressed()
            if key in SPECIAL:
                return SPECIAL[key]
            if data.isprintable():
                return data

    async def secret(self, tell: Callable[[int], None]) -> str | None:
        """What is typed or pasted until Enter; None for LEAVE. Only its length is told, as it grows."""
        typed = ""
        while True:
            tell(len(typed))
            key, data = await self._pressed()
            if key in SPECIAL:
                return typed if SPECIAL[key] == ENTER else None
            if key in ERASE:
                typed = typed[:-1] if key == Named.ControlH else ""
            elif data.strip().isprintable():
                typed += data.strip()  # a paste may come as one, with its line end

    async def _pressed(self) -> tuple[str, str]:
        while not self._waiting:
            ready = anyio.Event()
            with self._input.attach(ready.set):
                await ready.wait()
            self._waiting += [(press.key, press.data) for press in self._input.read_keys()]
            if self._input.closed:
                self._waiting.append((Named.ControlD, ""))
        return self._waiting.popleft()
