"""Which key is an answer to an approval: one that was pressed deliberately, by itself, on what was seen."""

from dataclasses import dataclass, field

from handrail.interfaces.cli.approvals import hidden, keys_line, left_out
from handrail.interfaces.cli.styles import BOLD, DIM, Line, line, wrap
from handrail.protocol.events import ApprovalAsked

READY_SECONDS = 0.7
"""A key that comes sooner was on its way before the question could be read."""
PAUSE_SECONDS = 0.4
"""A key so soon after other text may be a word going on."""
ALONE_SECONDS = 0.3
"""A key with another one so soon after it begins a message."""

WORDS = {
    letter: word[0] for word in ("yes", "no", "always", "write", "view", "?") for letter in (word, word[0])
}
"""What Enter takes as an answer, too."""


@dataclass
class Deciding:
    """The approvals that wait, the first of which is asked about."""

    waiting: dict[str, ApprovalAsked] = field(default_factory=dict)
    since: float = 0.0
    typed: float = 0.0
    """When the text in the input line was changed last; 0 when it was not since it was sent."""
    pressed: str = ""
    """The key that is an answer unless another one follows at once."""
    viewed: set[str] = field(default_factory=set)

    @property
    def asked(self) -> ApprovalAsked | None:
        return next(iter(self.waiting.values()), None)

    def ask(self, asked: ApprovalAsked, now: float) -> None:
        if not self.waiting:
            self.since = now
        self.waiting[asked.approval_id] = asked

    def drop(self, approval_id: str, now: float) -> None:
        """It is answered; the next one, if any, is asked about from now."""
        if self.waiting.pop(approval_id, None):
            self.since, self.pressed = now, ""

    def ready(self, now: float) -> bool:
        """Whether a key would be an answer."""
        paused = now - self.typed > PAUSE_SECONDS
        return bool(self.waiting) and paused and now - self.since > READY_SECONDS

    def unseen(self, width: int) -> int:
        """How many lines of it the user has not had on the screen, but can."""
        asked = self.asked
        return 0 if asked is None or asked.approval_id in self.viewed else hidden(asked, width)

    def out_of_sight(self) -> int:
        """How many lines of it cannot be shown at all."""
        return left_out(self.asked) if self.asked else 0

    def lines(self, now: float, width: int, text: str) -> list[Line]:
        """The line that asks; it names the keys only while they count."""
        head = (BOLD, "  allow?")
        if text and not self.pressed:
            said = "this is a message: Enter sends it, Ctrl-U empties the line for y, n, a"
            return wrap(line(head, (DIM, f"   {said}")), width, " " * 11)
        if not self.pressed and not self.ready(now):
            return [line(head, (DIM, "   …"))]
        return keys_line(width, more=bool(self.unseen(width)), entry=self.asked.entry if self.asked else "")
