"""A proposal that a person hands in: one call of its own session, through the same gate as a model's."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from handrail import __version__
from handrail.changes.document import Document
from handrail.config.hooks import Hook
from handrail.policy.intents import PROPOSAL
from handrail.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    HookSpoke,
    QuestionAnswered,
    QuestionAsked,
    SessionRenamed,
    SessionStarted,
    ToolFinished,
)
from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall
from handrail.sessions.handle import Session, recorded
from handrail.storage.log import Log
from handrail.tools.gate import Gate
from handrail.tools.proposing import ProposalTools, preview, proposed
from handrail.tools.secrets import find_secrets
from handrail.workspace.files import Workspace
from handrail.workspace.intents.intent_file import IntentFile

if TYPE_CHECKING:
    from handrail.tools.hooks import Hooks

Word = Callable[[ApprovalAsked], bool]
"""Asks the user; whether they said yes."""
Heard = Callable[[HookSpoke], None]
"""Takes what a hook said."""


class ByWord:
    """Asks by a function, or tells that nobody is there; records both sides."""

    def __init__(self, session: Session, word: Word | None) -> None:
        self._session = session
        self._word = word

    async def approval(self, asked: ApprovalAsked) -> ApprovalAnswered:
        self._session.append(asked)
        decision = "nobody" if self._word is None else "once" if self._word(asked) else "reject"
        answered = ApprovalAnswered.model_validate({"approval_id": asked.approval_id, "decision": decision})
        self._session.append(answered)
        return answered

    async def question(self, asked: QuestionAsked) -> QuestionAnswered:
        return QuestionAnswered(question_id=asked.question_id, answer="", by="nobody")


class Proposals(NamedTuple):
    """The proposals of one workspace."""

    log: Log
    workspace: Workspace
    intents: IntentFile
    intent: str = ""
    """Id of the one that they belong to."""
    hooks: Sequence[Hook] = ()

    def preview(self, document: Document) -> str:
        """The diffs of a proposal; raises PathProblem where it would be refused."""
        return preview(proposed(self.workspace, document).edits)

    async def apply(
        self, document: Document, *, title: str, word: Word | None, heard: Heard = lambda _: None
    ) -> ToolFinished:
        """How it ended, in a session of this title. Handing a proposal in is saying yes to it.

        `word` asks the user what has to be asked, None: nobody is there. `heard` takes what hooks said.
        """
        session = Session(self.log, new_id("s"))
        session.try_hold()
        started = SessionStarted(
            session_id=session.id, workspace=str(self.workspace.root), version=__version__, mode="edit"
        )
        session.append(started, SessionRenamed(title=title))
        if self.intent:
            from handrail.engine.intents import selection

            session.append(*selection(session, self.intents, self.intent))
        try:
            gate = Gate(
                session,
                self.workspace,
                ProposalTools(),
                ByWord(session, word),
                answerable=word is not None,
                intents=self.intents,
                hooks=_hooks(self.hooks, session, self.workspace),
            )
            call = ToolCall(id=new_id("call"), name=PROPOSAL, arguments=document.model_dump(mode="json"))
            await gate.run(call, turn_id="")
            events = [recorded(row).event for row in self.log.read(session.stream)]
            for event in events:
                if isinstance(event, HookSpoke):
                    heard(event)
            return _end(events)
        finally:
            session.release()


def _hooks(hooks: Sequence[Hook], session: Session, workspace: Workspace) -> "Hooks | None":
    if not hooks:
        return None
    from handrail.tools.hooks import Hooks

    return Hooks(hooks, session, workspace.root, find_secrets(os.environ))


def _end(events: Iterable[Event]) -> ToolFinished:
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    return finished
