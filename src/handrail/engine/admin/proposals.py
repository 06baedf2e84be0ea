"""A proposal that a person submits: one call in its own session, through the same gate."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import convert

from handrail import __version__
from handrail.changes.forms.document import Document
from handrail.config.settings import Hook
from handrail.policy.intent_rules import PROPOSAL
from handrail.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    HookSpoke,
    QuestionAnswered,
    QuestionAsked,
    SessionRenamed,
    SessionStarted,
    ToolFinished,
)
from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall, to_dict
from handrail.sessions.session import Session
from handrail.storage.event_log import Log
from handrail.tools.files.edit_batch import ProposalTools, prepare_document
from handrail.tools.gate.gate import Gate
from handrail.tools.secrets import Secrets
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentFile

Approve = Callable[[ApprovalAsked], bool]  # asks the user; True where they said yes


class FunctionAsker(NamedTuple):
    """Asks through a function and records question and answer; None: nobody can be asked."""

    session: Session
    approve: Approve | None

    async def approval(self, asked: ApprovalAsked) -> ApprovalAnswered:
        self.session.append(asked)
        decision = "nobody" if self.approve is None else "once" if self.approve(asked) else "reject"
        answered = convert({"approval_id": asked.approval_id, "decision": decision}, ApprovalAnswered)
        self.session.append(answered)
        return answered

    async def question(self, asked: QuestionAsked) -> QuestionAnswered:
        return QuestionAnswered(question_id=asked.question_id, answer="", by="nobody")


class Proposals(NamedTuple):
    log: Log
    workspace: Workspace
    intents: IntentFile
    intent: str = ""
    hooks: Sequence[Hook] = ()
    secrets: Callable[[], Secrets] = Secrets
    """A proposal may be a model's text, which has marks in place of secrets: they are not written."""

    def preview(self, document: Document) -> str:
        """The diffs of a proposal; raises PathProblem where it would be refused."""
        return prepare_document(self.workspace, document, secrets=self.secrets()).preview

    async def apply(
        self,
        document: Document,
        *,
        title: str,
        word: Approve | None,
        heard: Callable[[HookSpoke], None] = lambda _: None,
    ) -> ToolFinished:
        """Apply the proposal in a session of this title; whoever submits it has approved it.

        `word` asks the user what else needs approval, None: nobody can be asked. `heard` gets hook messages.
        """
        session = self.open_session(title)
        try:
            return await self.apply_in(session, document, word=word, heard=heard)
        finally:
            session.release()

    def open_session(self, title: str) -> Session:
        """A new session of this title, held, in which edits need no approval."""
        session = Session(self.log, new_id("s"))
        session.try_hold()
        started = SessionStarted(
            session_id=session.id, workspace=str(self.workspace.root), version=__version__, mode="edit"
        )
        session.append(started, SessionRenamed(title=title))
        if self.intent:
            from handrail.engine.admin.workspace_intents import select_intent_events

            session.append(*select_intent_events(session, self.intents, self.intent))
        return session

    async def apply_in(
        self,
        session: Session,
        document: Document,
        *,
        word: Approve | None,
        heard: Callable[[HookSpoke], None] = lambda _: None,
    ) -> ToolFinished:
        """The same in a session that this process holds."""
        hooks, secrets = None, self.secrets()
        if self.hooks:
            from handrail.tools.gate.hooks import Hooks

            hooks = Hooks(self.hooks, session, self.workspace.root, secrets)
        gate = Gate(
            session,
            self.workspace,
            ProposalTools(),
            FunctionAsker(session, word),
            answerable=word is not None,
            intents=self.intents,
            secrets=secrets,
            hooks=hooks,
        )
        call, before = ToolCall(id=new_id("call"), name=PROPOSAL, arguments=to_dict(document)), session.seq
        await gate.run(call, turn_id="")
        events = [one.event for one in session.read_after(before, session.seq)]
        for event in events:
            if isinstance(event, HookSpoke):
                heard(event)
        (finished,) = [event for event in events if isinstance(event, ToolFinished)]
        return finished
