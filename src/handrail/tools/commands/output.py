"""A command's output: kept in bounded memory, streamed live, and summarised as an outcome."""

import codecs
import hashlib
import re
import signal
from collections.abc import Callable

from msgspec.structs import replace

from handrail.protocol.errors import RefusalReason, ToolError
from handrail.sessions.live_text import LiveText
from handrail.storage.protected_copies import ChangeReport
from handrail.tools.process import ProcessResult
from handrail.tools.sandbox.sandbox import Protection
from handrail.tools.secrets import NO_SECRETS, Secrets
from handrail.tools.tool import Outcome, strip_control_codes

HEAD_BYTES = 16_000_000
TAIL_BYTES = 64_000  # bytes kept from the end, of an output longer than `HEAD_BYTES`
MAX_BYTES = 256_000_000


class CapturedOutput:
    """The start and the end of any amount of output, in bounded memory."""

    def __init__(self, head_size: int = HEAD_BYTES, tail_size: int = TAIL_BYTES) -> None:
        self.total = 0
        self.is_full = False
        self._head_size, self._tail_size = head_size, tail_size
        self._head, self._tail = bytearray(), bytearray()

    def add(self, chunk: bytes) -> bool:
        """Take more; False once the output is too long."""
        self.total += len(chunk)
        self.is_full = self.is_full or self.total > MAX_BYTES
        room = self._head_size - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:][-self._tail_size :]
        del self._tail[: -self._tail_size]
        return not self.is_full

    def transform(self, function: Callable[[bytes], bytes]) -> None:
        """Replace what was kept, before any of it is shortened."""
        dropped = self.dropped
        self._head = bytearray(function(bytes(self._head)))
        self._tail = bytearray(function(bytes(self._tail)))
        self.total = dropped + len(self._head) + len(self._tail)

    @property
    def dropped(self) -> int:
        return self.total - len(self._head) - len(self._tail)

    def whole(self) -> bytes:
        """All that was kept, with a line where something is missing."""
        note = f"\n[… {self.dropped:,} bytes were not kept …]\n".encode() if self.dropped else b""
        return bytes(self._head + note + self._tail)

    def tail(self, limit: int) -> str:
        start = b"" if len(self._tail) >= limit else self._head[-limit:]
        return (start + self._tail)[-limit:].decode(errors="replace")

    def head_and_tail(self, limit: int) -> str:
        """The text if it fits, else its start and end with a note on how much is missing."""
        if self.total <= limit:
            return (self._head + self._tail).decode(errors="replace")
        half = limit // 2
        note = f"\n[… {self.total - 2 * half:,} bytes left out …]\n"
        return self._head[:half].decode(errors="replace") + note + self.tail(half)


LIVE_LIMIT = 64_000  # bytes that are shown while a command runs; the end is shown when it has ended


class LiveOutput:
    """Streams a command's output to the screen, without secrets and up to a limit."""

    def __init__(
        self,
        live: LiveText,
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
        text = self._secrets.hide(self._held + strip_control_codes(self._decoder.decode(chunk[: self._left])))
        self._left -= len(chunk)
        # The possible start of a secret is held back until more has come.
        ready = len(text) - self._secrets.partial_match_length(text)
        text, self._held = text[:ready], text[ready:]
        if self._left <= 0:
            text += "\n[… the end of the output is shown when the command has ended …]\n"
        if text:
            self._live.add(self._message_id, self._kind, text)


MODEL_LIMIT = 3_000
SCREEN_LIMIT = 5_000
LINE_LIMIT = 160
SANDBOX_ERRORS = re.compile(
    r"read-only file system|permission denied|operation not permitted|network is unreachable|"
    r"name resolution|could not resolve|couldn't resolve|no such host|connection refused|"
    r"\b(EROFS|EACCES|EPERM|ENETUNREACH|EAI_AGAIN|ENOTFOUND|ECONNREFUSED)\b",
    re.IGNORECASE,
)
MAX_NAMED = 5


def one_line(command: str) -> str:
    """The command on one line; a shortened one ends with a hash of the whole."""
    first = " ".join(command.split())
    if strip_control_codes(first) == command and len(command) <= LINE_LIMIT:
        return command
    digest = hashlib.sha256(command.encode()).hexdigest()[:8]
    return f"{strip_control_codes(first)[: LINE_LIMIT - 10]} … #{digest}"


def command_outcome(ended: ProcessResult, output: CapturedOutput, timeout: float) -> Outcome:
    """How the command ended, with as much of its output as fits for the model and the screen."""
    message = ""
    if output.is_full:
        summary = f"stopped at {MAX_BYTES // 1_000_000} MB of output"
        message = f"Stopped after {MAX_BYTES // 1_000_000} MB of output. Make it write less."
    elif ended.over:
        summary = f"stopped at the limit of {ended.over}"
        message = f"Stopped because it exceeded the limit of {ended.over}. Make it use less."
    elif ended.timed_out:
        summary = f"stopped after {timeout:g} s"
        message = f"Stopped at its time limit of {timeout:g} s. Give a longer timeout if it needs one."
    elif ended.code is not None and ended.code < 0:
        summary = f"ended by signal {-ended.code} in {ended.seconds:.1f} s"
    else:
        summary = f"exit {ended.code} in {ended.seconds:.1f} s"
    reason: RefusalReason = "too_large" if output.is_full or ended.over else "timeout"
    note = "; processes it left in the background were stopped" if ended.left_running else ""
    content = strip_control_codes(output.head_and_tail(MODEL_LIMIT)).rstrip("\n") or "(no output)"
    return Outcome(
        summary=summary,
        content=f"[{summary}{note}]\n{content}",
        shown=strip_control_codes(output.head_and_tail(SCREEN_LIMIT)).rstrip("\n"),
        status="ok" if ended.code == 0 else "failed",
        error=ToolError(tool="run", reason=reason, message=message) if message else None,
        output=output.whole() if output.total > MODEL_LIMIT else b"",
    )


def exit_code_of(code: int | None) -> int | None:
    """The exit code without bubblewrap, which reports a signal as 128 plus its number."""
    signals = {int(number) for number in signal.Signals}
    return 128 - code if code is not None and code - 128 in signals else code


def with_sandbox(outcome: Outcome, protection: Protection, *, network: bool, full: bool = False) -> Outcome:
    """The outcome with the sandbox in its summary, and a note if the sandbox may have stopped the command."""
    content = outcome.content
    # A program without the network may retry in silence until its time is over.
    timed_out = outcome.error is not None and outcome.error.reason == "timeout"
    if outcome.status == "failed" and (timed_out or SANDBOX_ERRORS.search(content)):
        content = "\n".join(filter(None, (content, protection.model_note(network=network, full=full))))
    summary = f"{outcome.summary}, {protection.title(network=network)}"
    return replace(outcome, summary=summary, content=content)


def with_note(outcome: Outcome, note: str, summary: str = "") -> Outcome:
    """The outcome with a line for the model, and more in its summary."""
    summary = f"{outcome.summary}, {summary}" if summary else outcome.summary
    return replace(outcome, summary=summary, content=f"{outcome.content}\n{note}")


def with_protected_changes(outcome: Outcome, changed: ChangeReport) -> Outcome:
    """The outcome with notes on the protected files that changed while the command ran."""
    where = f"; what was in their place is in {changed.quarantine}" if changed.quarantine else ""
    for names, what, end in (
        (changed.restored, "they were restored", f", restored{where}"),
        (changed.left, "they were left as they are", ""),
        (changed.failed, "they COULD NOT be restored", ", NOT RESTORED: look at them before you go on"),
    ):
        if names:
            more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
            shown = ", ".join(strip_control_codes(name) for name in names[:MAX_NAMED]) + more
            note = f"[{shown} changed, which no command should do; {what}; the user was told]"
            outcome = with_note(outcome, note, f"CHANGED {shown}{end}")
    return outcome
