"""A real session in a folder, a gate before it, and a user who answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from handrail.config.settings import Hook, LessonSettings
from handrail.protocol.events import (
    Answered,
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    QuestionAnswered,
    QuestionAsked,
    SessionStarted,
    ToolFinished,
    TurnStarted,
    UserMessage,
)
from handrail.protocol.ids import new_id
from handrail.protocol.values import Mode, ToolCall
from handrail.sessions.session import Session, event_from_row
from handrail.storage.log_repair import open_log
from handrail.tools.gate.gate import Gate
from handrail.tools.gate.hooks import Hooks
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.secrets import NO_SECRETS, Secrets
from handrail.tools.toolbox import Toolbox
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentFile

Word = Literal["once", "always", "allow", "reject", "nobody", "cancelled"]


@dataclass
class User:
    """Answers at once, and records both sides as the engine does."""

    session: Session
    says: Word = "once"
    note: str = ""
    answer: str = "blue"
    asked: list[ApprovalAsked] = field(default_factory=list)
    questions: list[QuestionAsked] = field(default_factory=list)
    while_thinking: Callable[[], object] = lambda: None
    """What happens between the question and its answer."""

    async def approval(self, asked: ApprovalAsked) -> ApprovalAnswered:
        self.asked.append(asked)
        self.while_thinking()
        answered = ApprovalAnswered(approval_id=asked.approval_id, decision=self.says, note=self.note)
        self.session.append(asked, answered)
        return answered

    async def question(self, asked: QuestionAsked) -> QuestionAnswered:
        self.questions.append(asked)
        answered = QuestionAnswered(question_id=asked.question_id, answer=self.answer)
        self.session.append(asked, answered)
        return answered


@dataclass
class Bench:
    """One turn of a session, and calls made in it."""

    session: Session
    workspace: Workspace
    user: User
    gate: Gate
    turn_id: str
    tools: Toolbox

    @property
    def root(self) -> Path:
        return self.workspace.root

    async def call(self, tool: str, **arguments: Any) -> ToolFinished:
        """What came of a call."""
        return await self.run(ToolCall(id=new_id("call"), name=tool, arguments=arguments))

    async def run(self, call: ToolCall) -> ToolFinished:
        await self.gate.run(self.wanted(call), self.turn_id)
        return self.finished(call.id)

    def wanted(self, call: ToolCall) -> ToolCall:
        """The call as the model's answer brought it into the log."""
        self.session.append(
            Answered(
                turn_id=self.turn_id,
                request_id=new_id("r"),
                message_id=new_id("m"),
                model="scripted/one",
                text="",
                calls=(call,),
                end="tool_calls",
            )
        )
        return call

    def finished(self, call_id: str) -> ToolFinished:
        ends = [event for event in self.events() if isinstance(event, ToolFinished)]
        (found,) = [event for event in ends if event.call_id == call_id]
        return found

    def events(self) -> list[Event]:
        return [event_from_row(row).event for row in self.session.log.read(self.session.stream)]

    def types(self, last: int) -> list[str]:
        return [str(event.type) for event in self.events()][-last:]

    def close(self) -> None:
        self.tools.run_tool.close()
        self.tools.run_tool._sandbox.close()
        self.session.release()
        self.session.log.close()


def open_session(folder: Path, workspace: Path, mode: Mode, text: str) -> Session:
    """A held session with a turn that has begun."""
    session = Session(open_log(folder), new_id("s")).load()
    assert session.try_hold()
    session.append(
        SessionStarted(session_id=session.id, workspace=str(workspace), version="0", mode=mode),
        UserMessage(message_id="m_1", turn_id="t_1", text=text),
        TurnStarted(turn_id="t_1", number=1, model="scripted/one", mode=mode),
    )
    return session


def open_bench(
    folder: Path,
    mode: Mode = "auto",
    *,
    text: str = "hello",
    allow: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
    readable_secrets: tuple[str, ...] = (),
    answerable: bool = True,
    secrets: Secrets = NO_SECRETS,
    sandbox: Sandbox | None = None,
    keep_entry: Callable[[str], None] = lambda _entry: None,
    hooks: Sequence[Hook] = (),
    workspace_type: type[Workspace] = Workspace,
    lessons: LessonSettings | None = None,
    tools: Toolbox | None = None,
) -> Bench:
    """A workspace `folder/work`, a log beside it, and a gate between the two."""
    root = folder / "work"
    root.mkdir(exist_ok=True)
    session = open_session(folder / "log", root, mode, text)
    workspace = workspace_type(root, state_folders=(folder / "log",))
    user = User(session)
    tools = tools or Toolbox(sandbox, IntentFile(workspace), lessons, readable_secrets)
    gate = Gate(
        session,
        workspace,
        tools,
        user,
        allow=allow,
        deny=deny,
        answerable=answerable,
        secrets=secrets,
        keep_entry=keep_entry,
        hooks=Hooks(hooks, session, root, secrets) if hooks else None,
    )
    return Bench(session, workspace, user, gate, "t_1", tools)
