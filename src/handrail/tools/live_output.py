"""Output of a command as it comes, for whoever watches."""

import codecs

from handrail.sessions.live import Live
from handrail.tools.clip import plain
from handrail.tools.secrets import NO_SECRETS, Secrets

LIVE_LIMIT = 64_000
"""Characters that are shown while a command runs; its end is shown when it has ended."""


class Screen:
    """Stops at a limit, so that no output fills the memory."""

    def __init__(
        self,
        live: Live,
        message_id: str,
        secrets: Secrets = NO_SECRETS,
        *,
        kind: str = "output",
        limit: int = LIVE_LIMIT,
    ) -> None:
        self._live, self._message_id, self._kind, self._secrets = live, message_id, kind, secrets
        self._held = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._left = limit

    def add(self, chunk: bytes) -> None:
        if self._left <= 0:
            return
        text = self._secrets.hide(self._held + plain(self._decoder.decode(chunk[: self._left])))
        self._left -= len(chunk)
        # What may be the beginning of a secret is held until more of it has come.
        ready = len(text) - self._secrets.begun(text)
        text, self._held = text[:ready], text[ready:]
        if self._left <= 0:
            text += "\n[… the end of the output is shown when the command has ended …]\n"
        if text:
            self._live.add(self._message_id, self._kind, text)
