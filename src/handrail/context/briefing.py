"""What an attempt at a check begins with."""

from typing import NamedTuple

from handrail.protocol.events import CheckFinished
from handrail.protocol.values import Excerpt, FileSeen

NOW = "The check `{command}` {verdict} now:\n{output}"
FAILED_BEFORE = "An earlier answer was tried and taken back; with it the check gave:\n{output}"


class Attempt(NamedTuple):
    """An attempt that is about to begin."""

    number: int
    """From 1."""
    task: str
    """The user's own words."""
    command: str
    before: CheckFinished
    """What the check gave before anything was tried."""
    failed: CheckFinished | None = None
    """What it gave with the answer before this one."""


class Briefing(NamedTuple):
    """What the model is told."""

    text: str
    files: tuple[FileSeen, ...] = ()
    """Versions of files that the text shows."""
    rewrite: Excerpt | None = None
    """All that is asked for, of a small model."""


def brief(attempt: Attempt) -> Briefing:
    """The check's output, and that of an answer that failed: models that can look do the rest themselves."""
    verdict = "passes" if attempt.before.passed else "fails"
    parts = [NOW.format(command=attempt.command, verdict=verdict, output=attempt.before.content)]
    if attempt.failed:
        parts.append(FAILED_BEFORE.format(output=attempt.failed.content))
    return Briefing("[" + "\n\n".join(parts) + "]")
