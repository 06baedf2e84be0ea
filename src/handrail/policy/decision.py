"""The three answers to a call."""

from dataclasses import dataclass

from handrail.protocol.errors import RefusalReason, ToolError


@dataclass(frozen=True, slots=True)
class Allow:
    """It may run."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The user decides."""

    reason: str
    """For the user: why they are asked."""


@dataclass(frozen=True, slots=True)
class Deny:
    """It may not run, whoever says so."""

    error: ToolError


Decision = Allow | Ask | Deny
ALLOW = Allow()


def deny(tool: str, reason: RefusalReason, message: str, file: str = "") -> Deny:
    """A refusal that says what to do next."""
    return Deny(ToolError(tool=tool, reason=reason, message=message, file=file))
