"""What a turn works with, and what its stages return."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from anyio import CancelScope
from msgspec import Struct, field

from handrail.context.images import ReadBlob
from handrail.context.prompt import Prompt
from handrail.context.strategy import Strategy, strategy_for
from handrail.engine.compaction import Compactor
from handrail.engine.limits import Limits, exceeded
from handrail.engine.pipeline import Catalogue, Output
from handrail.engine.requests.model_pool import ModelPool
from handrail.engine.requests.model_requests import ModelChain, SideCall
from handrail.engine.router.router import Router
from handrail.engine.turn_end import Ending
from handrail.engine.user_input import MessageBuilder
from handrail.models.model import Deadlines
from handrail.protocol.values import ReadAs
from handrail.sessions.session import Session
from handrail.sessions.turn_state import TurnState
from handrail.tools.commands.run import Checker
from handrail.tools.secrets import Secrets
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentFile

if TYPE_CHECKING:
    from handrail.tasks.task_list import TaskList
    from handrail.tools.gate.approval import Asker
    from handrail.tools.gate.facts import ToolLookup
    from handrail.tools.gate.gate import Gate
    from handrail.tools.gate.hooks import Hooks
    from handrail.verification.workspace_checks import WorkspaceChecks


class StageResult(NamedTuple):
    ending: Ending  # any other reason than `answered` ends the turn here
    output: Output = {}  # noqa: RUF012
    read: tuple[ReadAs, ...] = ()  # how the output was read from a model's answer


class TurnContext(Struct, kw_only=True, eq=False):
    """What one turn works with. What has happened is in the session, so any process can continue the turn."""

    session: Session
    workspace: Workspace
    catalogue: Catalogue
    router: Router
    messages: MessageBuilder
    intents: IntentFile

    main: ModelChain  # the model that answers, and its fallbacks
    fast: ModelChain  # the same for the role `fast`
    side: SideCall  # for short questions beside the conversation: routing, breakout, notes for a compaction
    pool: ModelPool  # all models, for stages that name one

    make_gate: "Callable[[], Gate]"
    made_gate: "Gate | None" = None
    tools: "ToolLookup"
    checker: Checker
    checks: "Callable[[], WorkspaceChecks]"
    tasks: "Callable[[], TaskList]"
    hooks: "Hooks | None"

    prompt: Prompt
    compactor: Compactor
    stored: ReadBlob  # the bytes of images, by hash
    secrets: Secrets
    limits: Limits
    deadlines: Deadlines
    commits_changes: bool  # each change set becomes a git commit
    asker: "Asker"
    scope: CancelScope  # cancelled when the user cancels the turn

    began: float = field(default_factory=time.monotonic)  # when this process took up the turn
    waited_before: float  # seconds that the turn had waited for the user before that

    @property
    def gate(self) -> "Gate":
        """Made for the first call: until then its code need not be imported."""
        self.made_gate = self.made_gate or self.make_gate()
        return self.made_gate

    @property
    def turn(self) -> TurnState:
        return self.session.turn

    @property
    def strategy(self) -> Strategy:
        return strategy_for(self.main.models[0].capabilities)

    @property
    def limit_reached(self) -> str:
        """Which limit of the turn is reached, for the user; empty when none is."""
        return exceeded(self.turn, self.session.state.run, self.limits, self.worked)

    @property
    def worked(self) -> float:
        """Seconds of the turn in this process, without waiting for the user."""
        return time.monotonic() - self.began - (self.turn.waited - self.waited_before)

    @property
    def toolbox_names(self) -> list[str]:
        """The tools that the mode offers."""
        return self.tools.names(self.session.state.allowed_mode)
