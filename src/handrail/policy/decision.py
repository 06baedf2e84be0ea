"""The three answers to a call."""

from handrail.protocol.errors import RefusalReason, ToolError
from handrail.protocol.record import Record


class Allow(Record):
    """It may run."""


class Ask(Record):
    """The user decides."""

    reason: str
    """For the user: why they are asked."""


class Deny(Record):
    """It may not run, whoever says so."""

    error: ToolError


Decision = Allow | Ask | Deny
ALLOW = Allow()


def deny(tool: str, reason: RefusalReason, message: str, file: str = "") -> Deny:
    """A refusal that says what to do next."""
    return Deny(ToolError(tool=tool, reason=reason, message=message, file=file))
