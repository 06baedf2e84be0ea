"""Approvals and questions that wait for the user, and what a key or a line answers."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from msgspec import Struct, convert, field

from handrail.interfaces.cli.render.approvals import approval_lines, hidden_lines, keys_line, missing_lines
from handrail.interfaces.cli.render.styles import Line, line, wrap
from handrail.interfaces.cli.render.tool_calls import note
from handrail.protocol import events
from handrail.protocol.commands import AnswerApproval, AnswerQuestion
from handrail.protocol.events import ApprovalAsked, QuestionAsked

CHOICE_WORDS = (
    *("files", "conversation", "both", "yes", "no", "diffs"),
    *("edit", "graph", "sequential", "all-at-once"),
)
"""Answers that may be typed in full or by their first letter."""


def choice_key(text: str, keys: str) -> str:
    """The key that was typed, as a letter or a word; `n` for nothing, empty for anything else."""
    word = text.strip().lower()
    if not word:
        return "n"
    return word[0] if word[0] in keys and word in (word[0], *CHOICE_WORDS) else ""


def describe_keys(keys: str) -> str:
    """`y yes, n no`."""
    return ", ".join(f"{key} {next(word for word in CHOICE_WORDS if word[0] == key)}" for key in keys)


class Choice(NamedTuple):
    """A question outside of the session, answered by a letter and Enter."""

    label: str
    keys: str
    answered: Callable[[str], Awaitable[None]]


READY_SECONDS = 0.7
"""A key that comes sooner was pressed before the question could be read."""
PAUSE_SECONDS = 0.4
"""A key so soon after other text may belong to a word."""
ALONE_SECONDS = 0.3
"""A key with another one so soon after it starts a message."""

ANSWER_WORDS = {
    letter: word[0] for word in ("yes", "no", "always", "write", "view", "?") for letter in (word, word[0])
}
"""{what may be typed, then Enter: its key}"""


class PendingApprovals(Struct):
    """The approvals that wait, the first of which is asked about."""

    waiting: dict[str, ApprovalAsked] = field(default_factory=dict)
    since: float = 0.0
    typed: float = 0.0
    """When the text in the input line was last changed; 0 after it was sent."""
    pressed: str = ""
    """A key that is an answer unless another one follows at once."""
    viewed: set[str] = field(default_factory=set)

    @property
    def asked(self) -> ApprovalAsked | None:
        return next(iter(self.waiting.values()), None)

    def ask(self, asked: ApprovalAsked, now: float) -> None:
        if not self.waiting:
            self.since = now
        self.waiting[asked.approval_id] = asked

    def drop(self, approval_id: str, now: float) -> None:
        """Remove one that was answered; the next is asked from now on."""
        if self.waiting.pop(approval_id, None):
            self.since, self.pressed = now, ""

    def ready(self, now: float) -> bool:
        paused = now - self.typed > PAUSE_SECONDS
        return bool(self.waiting) and paused and now - self.since > READY_SECONDS

    def unseen(self, width: int) -> int:
        """How many lines of it are hidden until the user presses v."""
        asked = self.asked
        return 0 if asked is None or asked.approval_id in self.viewed else hidden_lines(asked, width)

    def out_of_sight(self) -> int:
        return missing_lines(self.asked) if self.asked else 0

    def lines(self, now: float, width: int, text: str) -> list[Line]:
        """The line that asks; it names the keys only while they count."""
        head = ("bold", "  allow?")
        if text and not self.pressed:
            hint = "this is a message: Enter sends it, Ctrl-U clears the line for y, n, a"
            return wrap(line(head, ("dim", f"   {hint}")), width, " " * 11)
        if not self.pressed and not self.ready(now):
            return [line(head, ("dim", "   …"))]
        return keys_line(width, more=bool(self.unseen(width)), entry=self.asked.entry if self.asked else "")


DECISIONS = {"y": "once", "a": "always", "w": "allow"}


class Reply(NamedTuple):
    """The result of what the user typed: lines to show, or an answer to send."""

    rows: tuple[Line, ...] = ()
    answer: AnswerApproval | AnswerQuestion | None = None


class PendingQuestions(Struct):
    deciding: PendingApprovals = field(default_factory=PendingApprovals)
    questions: dict[str, QuestionAsked] = field(default_factory=dict)
    rejecting: str = ""
    """An approval that was answered with no, while the user may give a reason."""
    numbers: int = 0
    """Choices of the menu that the next message answers; each is chosen by its number alone."""
    numbers_since: float = 0.0

    def saw(self, event: events.Event, now: float) -> None:
        match event:
            case ApprovalAsked():
                self.deciding.ask(event, now)
            case events.ApprovalAnswered():
                self.deciding.drop(event.approval_id, now)
            case QuestionAsked():
                self.questions[event.question_id] = event
            case events.QuestionAnswered():
                self.questions.pop(event.question_id, None)
            case events.RunPaused(choices=choices):
                self.numbers, self.numbers_since = len(choices), now
            case events.Routed(route=""):
                self.numbers, self.numbers_since = len(event.decision.options), now
            case events.UserMessage():
                self.numbers = 0
            case events.TurnFinished():
                self.deciding, self.questions, self.rejecting = PendingApprovals(), {}, ""

    @property
    def secret(self) -> QuestionAsked | None:
        """The question that is answered next, if it asks for a secret: what is typed is not shown or kept."""
        asked = next(iter(self.questions.values()), None)
        return asked if asked and asked.secret and not self.rejecting and not self.deciding.waiting else None

    def expects_number(self, number: int, now: float) -> bool:
        """Whether the number, typed alone, chooses something that the user has had the time to read."""
        paused = now - self.deciding.typed > PAUSE_SECONDS
        return (
            self.secret is None
            and number <= self.numbers
            and paused
            and now - self.numbers_since > READY_SECONDS
        )

    def label(self) -> str:
        if self.rejecting:
            return "why not? (Enter: no reason) > "
        if not self.questions:
            return "> "
        if secret := self.secret:
            return f"{secret.secret} (not shown; Enter alone declines) > "
        options = next(iter(self.questions.values())).options
        return "answer (a number or your own words) > " if options else "answer > "

    def decide(self, key: str, now: float, width: int, *, spelled: bool) -> Reply:
        """The reply to a key; a yes to something that was not shown in full only shows it."""
        deciding, asked = self.deciding, self.deciding.asked
        if asked is None:
            return Reply()
        unseen, out_of_sight = deciding.unseen(width), deciding.out_of_sight()
        if key == "n":
            self.rejecting = asked.approval_id
            return Reply()
        if key == "?":
            return Reply(tuple(note("why", asked.why, width)))
        if key == "w" and not asked.entry:
            hint = "this cannot be written to the allowed commands: y, n or a."
            return Reply(tuple(note("allow?", hint, width)))
        if key == "v" or (unseen and not spelled):
            deciding.viewed.add(asked.approval_id)
            deciding.since = now
            return Reply(tuple(approval_lines(asked, width)))
        if out_of_sight and not spelled:
            hint = f"{out_of_sight} lines cannot be shown here: type yes or always in full."
            return Reply(tuple(note("allow?", hint, width)))
        return self._decided(asked, DECISIONS[key], now)

    def reject(self, reason: str, now: float) -> Reply:
        """The no, with the reason if the user gave one."""
        asked = self.deciding.asked
        self.rejecting = ""
        return self._decided(asked, "reject", now, reason) if asked else Reply()

    def _decided(self, asked: ApprovalAsked, decision: str, now: float, reason: str = "") -> Reply:
        self.deciding.drop(asked.approval_id, now)
        fields = {"approval_id": asked.approval_id, "decision": decision, "note": reason}
        return Reply(answer=convert(fields, AnswerApproval))

    def answer_question(self, text: str, width: int) -> Reply:
        question = next(iter(self.questions.values()))
        number, options = text.strip(), question.options
        if options and number.isdecimal():
            if not 0 < int(number) <= len(options):
                hint = f"there is no {number}: 1 to {len(options)}, or your own words"
                return Reply(tuple(note("answer", hint, width)))
            text = options[int(number) - 1]
        return Reply(answer=AnswerQuestion(question_id=question.question_id, answer=text))
