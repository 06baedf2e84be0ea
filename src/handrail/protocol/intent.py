"""An intent: a piece of work with the files it may change, as it stands in the workspace's file of them."""

import hashlib

from handrail.protocol.record import Record

SELECT, REQUEST = "select_active_intent", "request_scope"
"""Names of the tools for intents."""
DONE = frozenset({"done", "complete", "completed", "closed"})
"""Words for an intent that nothing is written for any more, in whatever case."""


class Intent(Record):
    id: str
    name: str = ""
    status: str = ""
    scope: tuple[str, ...] = ()
    """Paths and globs that it owns, `!` before what is left out."""
    constraints: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    """What has to hold before it is done."""
    depends_on: tuple[str, ...] = ()
    text: str = ""
    """As it is written, extra keys and comments included."""

    @property
    def done(self) -> bool:
        return self.status.strip().lower() in DONE

    @property
    def sha256(self) -> str:
        """Its version."""
        return hashlib.sha256(self.text.encode()).hexdigest()
