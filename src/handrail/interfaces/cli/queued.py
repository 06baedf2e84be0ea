"""Messages that the user entered while a turn ran: shown until they are taken, or given back."""

from collections.abc import Iterable

from handrail.protocol.commands import SendMessage


class Queued:
    """What waits. A message that is given back before it was sent is not sent any more."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._back: set[str] = set()

    @property
    def texts(self) -> Iterable[str]:
        return self._texts.values()

    def add(self, message: SendMessage) -> None:
        self._texts[message.message_id] = message.text

    def taken(self, message_id: str) -> None:
        self._texts.pop(message_id, None)

    def give_back(self) -> tuple[str, ...]:
        """The ids of all; they are the user's again."""
        ids = tuple(self._texts)
        self._back.update(ids)
        self._texts.clear()
        return ids

    def is_back(self, message_id: str) -> bool:
        """Whether the user has it again, asked when its turn to be sent has come."""
        if message_id not in self._back:
            return False
        self._back.remove(message_id)
        return True

    def forget(self) -> None:
        """Show none: another session is shown."""
        self._texts.clear()
