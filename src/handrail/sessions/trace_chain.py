"""Where a session's own chain of lines in the trace of the workspace stands."""

from handrail.protocol.events import ChangePrepared
from handrail.sessions.fold import Fold


class TraceChain(Fold):
    writer: str = ""
    """Empty: it has written none."""
    count: int = 0
    head: str = ""
    """Hash of the last line."""

    def applied(self, change: ChangePrepared) -> None:
        """Fold in that a change set was applied, and its lines with it."""
        if mark := change.trace:
            self.writer, self.head = mark.writer, mark.lines[-1]
            self.count = mark.number + len(mark.lines) - 1
