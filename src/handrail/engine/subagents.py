"""Sub-agents: a turn inside a turn, with a context of its own and no more rights than its parent."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from anyio import CancelScope, get_cancelled_exc_class
from msgspec.structs import replace

from handrail.engine.context import TurnContext
from handrail.engine.host.takeover import can_resume, resumes_by_itself
from handrail.engine.limits import AffordedRequest, Budget, BudgetShare, fit_to_budget
from handrail.engine.requests.model_requests import FitToBudget
from handrail.engine.router.confidence import WORK_ROUTE
from handrail.engine.router.router import Route
from handrail.engine.turn import run_turn
from handrail.engine.turn_end import Ending, early_end, unfinished_call
from handrail.models.model import Model, Request
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import (
    ConfigProblem,
    HandrailError,
    LostHold,
    RefusalReason,
    StorageProblem,
    ToolRefused,
    UsageProblem,
)
from handrail.protocol.events import (
    Event,
    QuestionAsked,
    RunStarted,
    SubagentFinished,
    SubagentReport,
    SubagentStarted,
    TurnStarted,
)
from handrail.protocol.ids import new_id
from handrail.protocol.values import NARROWER_MODES, Mode, ToolCall, to_json
from handrail.sessions.session import Session
from handrail.sessions.subagent_session import SubagentSession
from handrail.tools.subagent import RunSubagent, SubagentArguments
from handrail.tools.tool import CallContext, Outcome, cancelled, head_and_tail, tool_refused

if TYPE_CHECKING:
    from handrail.engine.host.turn_factory import TurnFactory

TOLD = (
    "[You are a sub-agent. You see nothing of the conversation that gave you this task. Your last answer is "
    "your report to it: say what you found or did, and what is left.]"
)
CANCELLED = "The sub-agent was cancelled."
CLOSED = "Handrail was closed."


class Rights(NamedTuple):
    """What a context may do, as the most that its sub-agents may do."""

    mode: Mode
    tools: tuple[str, ...]
    tokens: int
    usd: float
    seconds: float


class Subagents:
    """Runs the sub-agents of all sessions of this process."""

    def __init__(self, factory: "TurnFactory") -> None:
        self._factory = factory
        self._contexts: dict[tuple[str, str], TurnContext] = {}
        """Of running turns, by session and sub-agent."""
        self._scopes: dict[str, CancelScope] = {}

    def opened(self, context: TurnContext) -> None:
        """Remember the context of a turn: the calls that start sub-agents name only its session."""
        self._contexts[_key(context.session)] = context

    def cancel(self, subagent_id: str) -> None:
        """Cancel the sub-agent and those below it, if it runs here."""
        if scope := self._scopes.get(subagent_id):
            scope.cancel()

    async def run(self, arguments: SubagentArguments, work: CallContext) -> Outcome:
        """Run a sub-agent to its end, or go on with an interrupted one; its report."""
        root = _root(work.session)
        parent = self._contexts[_key(work.session)]
        before = _interrupted(root, arguments, work)
        started = self._resumed(before, parent, work) if before else self._new(arguments, parent, work)
        child = SubagentSession(root, started).open()
        scope = CancelScope()
        self._scopes[started.subagent_id] = scope
        try:
            if before:
                child.append(started)
                if (above := parent.session.state.run) and child.state.run:
                    child.state.run.reads_only |= above.reads_only
            else:
                await self._begin(child, arguments, parent)
            with scope:
                await self._work(child, parent, scope)
            report = child.finished()
        finally:
            child.close()
            del self._scopes[started.subagent_id]
            self._contexts.pop(_key(child), None)
        return _outcome(child, report, work.shown_characters)

    def cancelled(self, call: ToolCall, work: CallContext) -> Outcome | None:
        """The outcome of a call whose sub-agent has ended; None where it goes on after a restart."""
        known = _of_call(_root(work.session), work)
        if known is None:
            return cancelled(call, "")
        subagent_id, interrupted = known
        if not interrupted:
            return None
        end = unfinished_call(work.turn_id, call, "interrupted", can_resume(subagent_id))
        return Outcome("interrupted", end.content, status="interrupted", error=end.error)

    # What it may do

    def _rights(self, context: TurnContext) -> Rights:
        state, turn, limits = context.session.state, context.turn, context.limits
        run = state.run
        return Rights(
            mode=state.allowed_mode,
            tools=tuple(name for name in context.toolbox_names if not run or run.allows(name)),
            tokens=limits.tokens - turn.usage.input_tokens - turn.usage.output_tokens,
            usd=limits.usd - turn.cost_usd,
            seconds=limits.seconds - context.worked,
        )

    def _new(self, arguments: SubagentArguments, parent: TurnContext, work: CallContext) -> SubagentStarted:
        """The start of a new sub-agent; raises ToolRefused where it would pass a limit or a right."""
        limits, root = self._factory.settings.limits, _root(work.session)
        above = work.session.started if isinstance(work.session, SubagentSession) else None
        depth = above.depth + 1 if above else 1
        if depth > limits.subagent_depth:
            why = f"Sub-agents can be {limits.subagent_depth} deep (limits.subagent_depth), as you are."
            raise _refused("budget_exhausted", f"{why} Do this task yourself.")
        if root.turn.subagents >= limits.subagents:
            why = (
                f"This turn has started {root.turn.subagents} sub-agents, as many as limits.subagents allows."
            )
            raise _refused("budget_exhausted", f"{why} Do this task yourself.")
        if not arguments.task.strip():
            raise _refused("invalid_arguments", "The sub-agent needs a task. Write it in `task`.")
        rights, pipeline = self._rights(parent), None
        if arguments.agent:
            try:
                pipeline = self._factory.catalogue.folders(arguments.agent)
            except (UsageProblem, ConfigProblem) as problem:
                raise _refused("invalid_arguments", str(problem)) from problem
            if pipeline is None:
                raise _refused(
                    "invalid_arguments", f"There is no agent {arguments.agent!r}. Leave `agent` out."
                )
        mode = arguments.mode or rights.mode
        if mode not in NARROWER_MODES[rights.mode]:
            narrower = ", ".join(NARROWER_MODES[rights.mode])
            why = f"You work in mode {rights.mode}, so a sub-agent cannot have mode {mode}."
            raise _refused("mode_forbids", f"{why} It can have: {narrower}.")
        if pipeline and pipeline.mode in NARROWER_MODES[mode]:
            mode = pipeline.mode
        if missing := [name for name in arguments.tools if name not in rights.tools]:
            why = f"You do not have the tools {', '.join(missing)}, so a sub-agent cannot have them."
            raise _refused("invalid_arguments", f"{why} You have: {', '.join(rights.tools)}.")
        tools = arguments.tools or rights.tools
        if pipeline and pipeline.tools:
            tools = tuple(name for name in tools if name in pipeline.tools)
        if not tools:  # an empty list would mean all
            names = ", ".join(pipeline.tools if pipeline else ())
            why = f"Nothing is left for the agent {arguments.agent}, which can only use: {names}."
            raise _refused("invalid_arguments", f"{why} Choose other `tools`, or leave them out.")
        if rights.tokens <= 0 or rights.usd <= 0 or rights.seconds <= 0:
            raise _refused("budget_exhausted", "Nothing is left of your budget. End your work here.")
        return SubagentStarted(
            turn_id=root.turn.turn_id,
            call_id=work.call_id,
            subagent_id=new_id("sub"),
            parent=above.subagent_id if above else "",
            depth=depth,
            task=arguments.task,
            agent=arguments.agent,
            mode=mode,
            tools=tools,
            tokens=min(rights.tokens, arguments.tokens or rights.tokens),
            usd=min(rights.usd, arguments.usd or rights.usd),
        )

    def _resumed(self, before: SubagentStarted, parent: TurnContext, work: CallContext) -> SubagentStarted:
        """The same sub-agent, in the call that goes on with it; its mode is narrowed to the parent's."""
        rights, run = self._rights(parent), parent.session.state.run
        if run and (wider := [name for name in before.tools if not run.allows(name)]):
            why = f"That sub-agent works with {', '.join(wider)}, which you do not have."
            raise _refused("invalid_arguments", f"{why} Start a new one.")
        mode = before.mode if before.mode in NARROWER_MODES[rights.mode] else rights.mode
        turn_id = _root(work.session).turn.turn_id
        return replace(before, turn_id=turn_id, call_id=work.call_id, mode=mode, resumed=True)

    # Its turns

    async def _begin(self, child: SubagentSession, arguments: SubagentArguments, parent: TurnContext) -> None:
        """Commit the start of the sub-agent with its task and its run."""
        started = child.started
        model = await self._factory.model(child)
        command, state = SendMessage(text=arguments.task, suggested=True), child.state
        run = self._factory.router.start(
            Route(arguments.agent or WORK_ROUTE),
            started.turn_id,
            command,
            state,
            log=child.log,
            capabilities=model.capabilities,
        )
        above = parent.session.state.run
        limited = [
            replace(
                event,
                mode=started.mode,
                tools=started.tools,
                reads_only=event.reads_only or bool(above and above.reads_only),
            )
            if isinstance(event, RunStarted)
            else event
            for event in run
        ]
        child.append(started, *self._turn(child, command, model, told=TOLD), *limited)

    def _turn(
        self, child: SubagentSession, command: SendMessage, model: Model, *, told: str = "", run_id: str = ""
    ) -> Sequence[Event]:
        turn_id, state = child.started.turn_id, child.state
        message = self._factory.messages(model).build(
            command, state, turn_id, steering=False, told=told, run_id=run_id
        )
        turn = TurnStarted(
            turn_id=turn_id, number=state.turns + 1, model=model.name, mode=state.mode, run_id=run_id
        )
        return (message.event, turn)

    async def _work(self, child: SubagentSession, parent: TurnContext, scope: CancelScope) -> None:
        """Run the sub-agent's turns until it has ended; the user answers where its run pauses."""
        try:
            while child.state.turn is not None:
                context = await self._factory.context(child, scope, afford=_afford(child, parent))
                rights = self._rights(parent)
                context.limits = context.limits._replace(
                    tokens=min(rights.tokens, child.started.tokens or rights.tokens),
                    usd=min(rights.usd, child.started.usd or rights.usd),
                    seconds=rights.seconds,
                )
                context.hooks, context.commits_changes = (
                    None,
                    False,
                )  # those are for the end of the whole turn
                await run_turn(context)
                if (paused := child.state.paused) and paused.pause:
                    await self._answer_pause(child, context, paused.run_id, paused.pause.text)
        except get_cancelled_exc_class():
            root = child.root
            if self._is_cancelled(child):
                self._end(child, Ending("cancelled", CANCELLED), tell=not scope.cancel_called)
            elif not (root.state.approvals or root.state.questions or resumes_by_itself(root.state)):
                child.append(SubagentFinished(child.id_inside, replace(child.finished(), detail=CLOSED)))
            raise
        except (StorageProblem, LostHold):
            raise
        except HandrailError as problem:
            self._end(child, Ending("failed", str(problem)), tell=False)

    async def _answer_pause(
        self, child: SubagentSession, context: TurnContext, run_id: str, text: str
    ) -> None:
        """Ask the user what the run asks, through the parent's interfaces; nobody there: it ends waiting."""
        asked = QuestionAsked(
            turn_id=child.started.turn_id,
            question_id=new_id("q"),
            call_id=f"pause.{child.seq}",
            question=text,
        )
        answer = await context.asker.question(asked)
        if answer.by == "user":
            command = SendMessage(text=answer.answer, suggested=True)
            child.append(*self._turn(child, command, context.main.models[0], run_id=run_id))

    def _is_cancelled(self, child: SubagentSession) -> bool:
        """Whether the user cancelled it, one above it or the turn; else Handrail is closing."""
        above, ids = child.started, [child.id_inside]
        while above.parent:
            known = child.root.state.subagents[above.parent]
            (recorded,) = child.root.read_after(known.seq - 1, 1)
            if not isinstance(recorded.event, SubagentStarted):
                break
            above = recorded.event
            ids.append(above.subagent_id)
        scopes = [self._scopes[each] for each in ids if each in self._scopes]
        return any(each.cancel_called for each in (*scopes, self._contexts[_key(child.root)].scope))

    def _end(self, child: SubagentSession, ending: Ending, *, tell: bool) -> None:
        """End its turn early; `tell`: no outcome of the call tells of its end."""
        events = early_end(child, ending, time.time())
        if events:
            child.append(*events)
        if tell:
            child.append(SubagentFinished(child.id_inside, child.finished()))


def _afford(child: SubagentSession, parent: TurnContext) -> FitToBudget:
    """Keeps requests within the sub-agent's budget and those of all above it."""

    def afforded(model: Model, request: Request) -> AffordedRequest:
        above = parent.main.afford(model, request)
        usage, started = child.state.usage, child.started
        share = BudgetShare(
            "the sub-agent",
            Budget(started.tokens, started.usd),
            usage.input_tokens + usage.output_tokens,
            child.state.cost_usd,
        )
        return fit_to_budget(above.request, [share], lambda spent: parent.main.cost(model, spent))

    return afforded


def _root(session: Session) -> Session:
    return session.root if isinstance(session, SubagentSession) else session


def _key(session: Session) -> tuple[str, str]:
    return session.id, session.id_inside if isinstance(session, SubagentSession) else ""


def _of_call(root: Session, work: CallContext) -> tuple[str, bool] | None:
    """The sub-agent of a call that has not ended for good, and whether it was interrupted."""
    parent = _key(work.session)[1]
    known = root.state.subagents.items()
    found = (
        (name, one.interrupted) for name, one in known if (one.call_id, one.parent) == (work.call_id, parent)
    )
    return next(found, None)


def _interrupted(root: Session, arguments: SubagentArguments, work: CallContext) -> SubagentStarted | None:
    """The sub-agent to go on with: that of the same call before a restart, or the one that `resume` names."""
    known = _of_call(root, work)
    wanted = known[0] if known and not known[1] else arguments.resume
    if not wanted:
        return None
    found = root.state.subagents.get(wanted)
    if (
        found is None
        or found.parent != _key(work.session)[1]
        or (wanted == arguments.resume and not found.interrupted)
    ):
        raise _refused(
            "invalid_arguments", f"No interrupted sub-agent of yours is called {wanted!r}. Start a new one."
        )
    (recorded,) = root.read_after(found.seq - 1, 1)
    if not isinstance(recorded.event, SubagentStarted):
        raise AssertionError("a sub-agent begins with its start")
    return recorded.event


def _refused(reason: RefusalReason, message: str) -> ToolRefused:
    return tool_refused(RunSubagent.name, reason, message)


def _outcome(child: SubagentSession, report: SubagentReport, most: int) -> Outcome:
    """The report as the model gets it, with the event that ends the sub-agent."""
    shown = replace(report, text=head_and_tail(report.text, most))
    by = f"{report.steps} steps" if report.steps != 1 else "1 step"
    if report.reason == "answered":
        return Outcome(
            by, to_json(shown), shown=report.text, events=(SubagentFinished(child.id_inside, report),)
        )
    return Outcome(
        f"{report.reason}, {by}",
        to_json(shown),
        shown="\n".join(filter(None, [report.detail, report.text])),
        status="cancelled" if report.reason == "cancelled" else "failed",
        events=(SubagentFinished(child.id_inside, report),),
    )
