"""What the session has asked the user, and what a key or a line says to it."""

from dataclasses import dataclass, field
from typing import NamedTuple

from handrail.interfaces.cli.approvals import whole
from handrail.interfaces.cli.choices import chosen_option
from handrail.interfaces.cli.deciding import Deciding
from handrail.interfaces.cli.styles import Line
from handrail.interfaces.cli.tool_lines import note
from handrail.protocol.commands import AnswerApproval, AnswerQuestion
from handrail.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    QuestionAnswered,
    QuestionAsked,
    TurnFinished,
)

DECISIONS = {"y": "once", "a": "always", "w": "allow"}


class Reply(NamedTuple):
    """What comes of the user's word: lines to show, or an answer to send."""

    rows: tuple[Line, ...] = ()
    answer: AnswerApproval | AnswerQuestion | None = None


@dataclass
class Asked:
    """A fold of what the follower sees."""

    deciding: Deciding = field(default_factory=Deciding)
    questions: dict[str, QuestionAsked] = field(default_factory=dict)
    rejecting: str = ""
    """The approval that was answered with no, for which the user may say why."""

    def saw(self, event: Event, now: float) -> None:
        """Take in an event."""
        match event:
            case ApprovalAsked():
                self.deciding.ask(event, now)
            case ApprovalAnswered():
                self.deciding.drop(event.approval_id, now)
            case QuestionAsked():
                self.questions[event.question_id] = event
            case QuestionAnswered():
                self.questions.pop(event.question_id, None)
            case TurnFinished():
                self.deciding, self.questions, self.rejecting = Deciding(), {}, ""

    def label(self) -> str:
        """What stands before the input line."""
        if self.rejecting:
            return "why not? (Enter: no reason) > "
        if not self.questions:
            return "> "
        options = next(iter(self.questions.values())).options
        return "answer (a number or your own words) > " if options else "answer > "

    def decide(self, key: str, now: float, width: int, *, spelled: bool) -> Reply:
        """What the key says; a yes to what was not seen only shows it."""
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
            said = "no entry of the allowed commands can say this: y, n or a."
            return Reply(tuple(note("allow?", said, width)))
        if key == "v" or (unseen and not spelled):
            deciding.viewed.add(asked.approval_id)
            deciding.since = now
            return Reply(tuple(whole(asked, width)))
        if out_of_sight and not spelled:
            said = f"{out_of_sight} lines cannot be shown here: type the word, yes or always."
            return Reply(tuple(note("allow?", said, width)))
        return self._decided(asked, DECISIONS[key], now)

    def reject(self, reason: str, now: float) -> Reply:
        """The no that the user has given a reason for, or none."""
        asked = self.deciding.asked
        self.rejecting = ""
        return self._decided(asked, "reject", now, reason) if asked else Reply()

    def _decided(self, asked: ApprovalAsked, decision: str, now: float, reason: str = "") -> Reply:
        self.deciding.drop(asked.approval_id, now)
        return Reply(
            answer=AnswerApproval.model_validate(
                {"approval_id": asked.approval_id, "decision": decision, "note": reason}
            )
        )

    def answer_question(self, text: str, width: int) -> Reply:
        """The answer to the question that was asked first."""
        question = next(iter(self.questions.values()))
        chosen = chosen_option(question, text)
        if chosen is None:
            last = len(question.options)
            said = f"there is no {text.strip()}: a number from 1 to {last}, or your own words"
            return Reply(tuple(note("answer", said, width)))
        return Reply(answer=AnswerQuestion(question_id=question.question_id, answer=chosen))
