"""An intent: a piece of work, the files it may change, and its acceptance criteria."""

import hashlib

from handrail.protocol.values import Value

SELECT_INTENT, REQUEST_SCOPE = "select_active_intent", "request_scope"
"""Names of the tools for intents."""
DONE_STATUSES = frozenset({"done", "complete", "completed", "closed"})
"""Statuses of an intent that is finished; upper and lower case are the same."""


class Intent(Value):
    id: str
    name: str = ""
    status: str = ""
    scope: tuple[str, ...] = ()
    """Paths and globs that it owns; `!` excludes."""
    constraints: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    text: str = ""
    """As it is written, extra keys and comments included."""

    @property
    def done(self) -> bool:
        return self.status.strip().lower() in DONE_STATUSES

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()
