"""What a command came to, in words for the model and for a person."""

import hashlib
import re
import signal

from handrail.protocol.errors import ToolError
from handrail.tools.base import Outcome
from handrail.tools.clip import plain
from handrail.tools.output import ENOUGH, Output
from handrail.tools.process import Ended
from handrail.tools.sandbox.protection import Protection
from handrail.tools.watching import Told

MODEL_LIMIT = 3_000
SCREEN_LIMIT = 5_000
LINE_LIMIT = 160
LOOKS_REFUSED = re.compile(
    r"read-only file system|permission denied|operation not permitted|network is unreachable|"
    r"name resolution|could not resolve|couldn't resolve|connection refused|"
    r"\b(EROFS|EACCES|EPERM|ENETUNREACH|EAI_AGAIN|ENOTFOUND|ECONNREFUSED)\b",
    re.IGNORECASE,
)
"""Words of a command that a sandbox may have been in the way of."""
MOST_NAMED = 5


def one_line(command: str) -> str:
    """The command on one line; where that does not hold all of it, with a hash of all of it."""
    first = " ".join(command.split())
    if plain(first) == command and len(command) <= LINE_LIMIT:
        return command
    digest = hashlib.sha256(command.encode()).hexdigest()[:8]
    return f"{plain(first)[: LINE_LIMIT - 10]} … #{digest}"


def outcome_of(ended: Ended, output: Output, timeout: float) -> Outcome:
    """How the command ended, with as much of its output as a model and a screen take."""
    ok = ended.code == 0
    lasted = f"{ended.seconds:.1f} s"
    error = None
    if output.is_full:
        summary = f"stopped at {ENOUGH // 1_000_000} MB of output"
        message = (
            f"Stopped, because it wrote more than {ENOUGH // 1_000_000} MB of output. Let it write less."
        )
        error = ToolError(tool="run", reason="too_large", message=message)
    elif ended.over:
        summary = f"stopped at the limit of {ended.over}"
        message = f"Stopped at the limit of {ended.over} that a command may take. Let it take less."
        error = ToolError(tool="run", reason="too_large", message=message)
    elif ended.timed_out:
        summary = f"stopped after {timeout:g} s"
        message = f"Stopped at its time limit of {timeout:g} s. Give a longer timeout if it needs one."
        error = ToolError(tool="run", reason="timeout", message=message)
    elif ended.code is not None and ended.code < 0:
        summary = f"ended by signal {-ended.code} in {lasted}"
    else:
        summary = f"exit {ended.code} in {lasted}"
    notes = [summary]
    if ended.left_running:
        notes.append("processes it left in the background were stopped")
    content = plain(output.ends(MODEL_LIMIT)).rstrip("\n") or "(no output)"
    return Outcome(
        summary=summary,
        content=f"[{'; '.join(notes)}]\n{content}",
        shown=plain(output.ends(SCREEN_LIMIT)).rstrip("\n"),
        status="ok" if ok else "failed",
        error=error,
        output=output.whole() if output.total > MODEL_LIMIT else b"",
    )


def signal_of(code: int | None) -> int | None:
    """The code as it is without bubblewrap, which tells of a signal as a shell does: 128 and its number."""
    signals = {int(number) for number in signal.Signals}
    return 128 - code if code is not None and code - 128 in signals else code


def with_sandbox(outcome: Outcome, protection: Protection, *, network: bool) -> Outcome:
    """The outcome that says how the command was confined, and tells the model when that was in its way."""
    content = outcome.content
    if outcome.status == "failed" and LOOKS_REFUSED.search(content):
        content = "\n".join(filter(None, (content, protection.told(network=network))))
    summary = f"{outcome.summary}, {protection.title(network=network)}"
    return outcome.changed(summary=summary, content=content)


def with_reached(outcome: Outcome, limits: str) -> Outcome:
    """The outcome that tells which limits of the kernel the command ran into."""
    if not limits:
        return outcome
    changed = outcome.changed(summary=f"{outcome.summary}, AT ITS LIMIT of {limits}")
    return with_note(changed, f"[it ran into the limit on its {limits}: let it take less]")


def with_note(outcome: Outcome, note: str) -> Outcome:
    """The outcome with a line for the model."""
    return outcome.changed(content=f"{outcome.content}\n{note}")


def with_opened(outcome: Outcome, names: list[str]) -> Outcome:
    """The outcome that tells the user and the model which files it changed that no command should change."""
    if not names:
        return outcome
    shown = ", ".join(plain(name) for name in names[:MOST_NAMED]) + " and more" * (len(names) > MOST_NAMED)
    changed = outcome.changed(summary=f"{outcome.summary}, CHANGED {shown}")
    return with_note(changed, f"[it changed {shown}, which no command should: the user was told]")


def with_changes(outcome: Outcome, told: Told) -> Outcome:
    """The outcome that names the files of the workspace that changed while the command ran."""
    if not told.summary:
        return outcome
    return outcome.changed(
        summary=f"{outcome.summary}, {told.summary}", content=f"{outcome.content}\n{told.note}"
    )
