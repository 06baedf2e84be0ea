"""Builds the context of a turn: the session's models, tools, prompt and limits."""

import math
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from anyio import CancelScope, to_thread
from msgspec.structs import replace

from handrail.config.settings import Hook, Settings
from handrail.context.images import MAX_IMAGES_SHOWN, ReadBlob
from handrail.context.map.repository_map import RepositoryMap
from handrail.context.prompt import Prompt, assemble_request
from handrail.context.strategy import PromptFacts, strategy_for
from handrail.context.token_budget import fragment_cap
from handrail.engine.compaction import Compactor
from handrail.engine.context import TurnContext
from handrail.engine.host.wakeup import SessionAsker, Wakeup
from handrail.engine.limits import NO_BUDGET, AffordedRequest, Limits, budget_shares, fit_to_budget
from handrail.engine.pipeline import Catalogue
from handrail.engine.requests.model_pool import ModelPool
from handrail.engine.requests.model_requests import (
    FitToBudget,
    ModelChain,
    Retries,
    SideCall,
    without_budget,
)
from handrail.engine.router.confidence import WORK_ROUTE, Thresholds
from handrail.engine.router.router import Router
from handrail.engine.router.word_rules import match_rules
from handrail.engine.subagents import Subagents
from handrail.engine.user_input import MessageBuilder, turn_words
from handrail.models.model import Deadlines, Model, Request, ToolSpec, UserTurn
from handrail.models.prices import cost
from handrail.protocol.commands import SendMessage
from handrail.protocol.values import AUTO_ROUTE, Role, Usage
from handrail.sessions.session import Session
from handrail.sessions.session_state import CompactionCut, SessionState
from handrail.tools.commands.background import BackgroundCommands
from handrail.tools.commands.run import Checker
from handrail.tools.secrets import Secrets
from handrail.tools.toolbox import ROOMY_TOOLS, ROOMY_WINDOW, Toolbox
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentFile

if TYPE_CHECKING:
    from handrail.context.mentions import LookedUp
    from handrail.tasks.task_list import TaskList
    from handrail.tools.gate.approval import Asker
    from handrail.tools.gate.gate import Gate
    from handrail.tools.gate.hooks import Hooks
    from handrail.verification.workspace_checks import WorkspaceChecks


class TurnFactory:
    """Builds the contexts of all turns of this process."""

    def __init__(
        self,
        pool: ModelPool,
        settings: Settings,
        workspace: Workspace,
        toolbox: Toolbox,
        commits: Wakeup,
        *,
        repository_map: RepositoryMap,
        answerable: bool,
        keep_entry: Callable[[str], None],
        catalogue: Catalogue,
        intents: IntentFile,
        checks: "Callable[[], WorkspaceChecks]",
        tasks: "Callable[[], TaskList]",
        hooks: Sequence[Hook] = (),
        afford: FitToBudget = without_budget,
    ) -> None:
        """`afford`: the budget of all requests."""
        self._pool = pool
        self.settings = settings
        self._workspace = workspace
        self._toolbox = toolbox
        self._commits = commits
        self._keep_entry = keep_entry
        self.intents = intents
        self._noted = ""  # the version of an intent that is already stored
        self._checks = checks
        self._tasks = tasks
        self._hooks = hooks
        self._afford = afford
        if hooks:
            from handrail.tools.gate.hooks import refuse_unknown_tools

            refuse_unknown_tools(hooks, toolbox)
        self.subagents = Subagents(self)
        self._allowed: list[str] = []  # commands that the user has allowed for good since the process started
        self.map = repository_map
        self.catalogue = catalogue
        self.router = Router(
            default=AUTO_ROUTE if settings.auto_route else WORK_ROUTE,
            answerable=answerable,
            continues=settings.auto_continue,
            thresholds=Thresholds(settings.router.clarify_below, settings.router.act_above),
            workspace=workspace,
            catalogue=catalogue,
        )

    @property
    def background(self) -> BackgroundCommands:
        return self._toolbox.background

    async def model(self, session: Session) -> Model:
        return (await self._pool.models(session))[0]

    async def look_up(self, message: SendMessage) -> "dict[str, LookedUp]":
        """Mentions of a message that are no paths, with what they stand for."""
        if "@" not in message.text or message.suggested:
            return {}
        from handrail.engine.mention_lookup import look_up, look_up_names

        if message.item:  # the words of a file: they fetch nothing
            return await to_thread.run_sync(
                look_up_names, message.text, self._workspace, self.intents, self._tasks
            )
        return await look_up(message.text, self._workspace, self.intents, self._tasks, self._checks)

    def messages(self, model: Model | None) -> MessageBuilder:
        return MessageBuilder(self._workspace, self.map, model, self.intents, self._tasks)

    async def context(
        self, session: Session, scope: CancelScope, *, afford: FitToBudget | None = None
    ) -> TurnContext:
        """What the session's turn works with; `scope` is cancelled when the user cancels the turn.

        `afford`: the budgets of a sub-agent.
        """
        models = await self._pool.models(session)
        secrets = self._pool.secrets()
        hooks = None
        if self._hooks:
            from handrail.tools.gate.hooks import Hooks

            hooks = Hooks(self._hooks, session, self._workspace.root, secrets)
            await hooks.session_start()
        self._note_version(session)
        prompt = self._prompt(models[0], session.state, turn_words(session))
        stored = lru_cache(maxsize=MAX_IMAGES_SHOWN)(session.log.blob)
        budgets, limits = run_budgets(session, self.catalogue, afford or self._afford), self.settings.limits
        asker = self._asker(session)
        side = (await self._side(session, models))._replace(afford=budgets)
        main = ModelChain(
            session,
            models,
            Retries(times=self.settings.retries.count, seconds=self.settings.retries.seconds),
            price,
            budgets,
            self.settings.models.effort.main or None,
        )
        context = TurnContext(
            session=session,
            workspace=self._workspace,
            catalogue=self.catalogue,
            router=self.router,
            messages=self.messages(models[0]),
            intents=self.intents,
            main=main,
            fast=main._replace(
                models=[side.model, *(model for model in models if model is not side.model)],
                effort=side.effort,
            ),
            side=side,
            pool=self._pool,
            make_gate=partial(
                self._gate,
                session,
                models,
                secrets,
                hooks,
                asker,
            ),
            asker=asker,
            tools=self._toolbox,
            checker=Checker(session, self._workspace, self._toolbox.run_tool, secrets),
            checks=self._checks,
            tasks=self._tasks,
            hooks=hooks,
            prompt=prompt,
            compactor=self._compactor(session, models, prompt, stored, side),
            stored=stored,
            secrets=secrets,
            limits=Limits(
                steps=limits.steps,
                tokens=limits.turn_tokens,
                usd=limits.usd,
                seconds=limits.turn_seconds,
                max_output_tokens=limits.max_output_tokens,
            ),
            deadlines=Deadlines(whole=limits.answer_seconds),
            commits_changes=self._commits_changes,
            scope=scope,
            waited_before=session.state.turn.waited if session.state.turn else 0.0,
        )
        self.subagents.opened(context)
        return context

    def _asker(self, session: Session) -> "Asker":
        asker: Asker = SessionAsker(session, self._commits, answerable=self.router.answerable)
        if session.state.turn and session.state.turn.batch:
            from handrail.engine.command_batch import PickedAsker

            asker = PickedAsker(session, asker)
        return asker

    def _gate(
        self,
        session: Session,
        models: Sequence[Model],
        secrets: Secrets,
        hooks: "Hooks | None",
        asker: "Asker",
    ) -> "Gate":
        from handrail.tools.gate.gate import Gate

        window = min(model.capabilities.context_window for model in models)
        return Gate(
            session,
            self._workspace,
            self._toolbox,
            asker,
            allow=(*self.settings.commands.allow, *self._allowed),
            keep_entry=self._keep,
            deny=self.settings.commands.deny,
            without_sandbox=self.settings.commands.without_sandbox,
            answerable=self.router.answerable,
            shown_characters=fragment_cap(window, most=16_000, share=6),
            secrets=secrets,
            hooks=hooks,
            intents=self.intents,
        )

    def _keep(self, entry: str) -> None:
        self._keep_entry(entry)
        self._allowed.append(entry)

    @property
    def _commits_changes(self) -> bool:
        return self.settings.git.commit == "per_change_set"

    async def commit_changes(self, session: Session) -> None:
        """Make each change set since the last commit a git commit, where the user has set it so."""
        if self._commits_changes and session.state.uncommitted:
            from handrail.engine.admin.history import commit_each_change

            await commit_each_change(session, self._workspace)

    async def compactor(self, session: Session) -> Compactor:
        """For a session in which no turn runs."""
        models = await self._pool.models(session)
        prompt = self._prompt(models[0], session.state)
        side = await self._side(session, models)
        return self._compactor(session, models, prompt, session.log.blob, side)

    async def _side(self, session: Session, models: Sequence[Model]) -> SideCall:
        fast = await self._pool.fast(session, models[0])
        role: Role = "main" if fast is models[0] else "fast"
        return SideCall(session, fast, role, price, self._afford, self.settings.models.effort.fast or None)

    async def fast_side(self, session: Session) -> SideCall | None:
        """Side calls of the model set as `fast`; None where none is, or where it is small and slow."""
        fast = await self._pool.configured_fast(session)
        if fast is None or not strategy_for(fast.capabilities).side_work:
            return None
        return SideCall(session, fast, "fast", price, self._afford, self.settings.models.effort.fast or None)

    def secrets(self) -> Secrets:
        return self._pool.secrets()

    def _compactor(
        self, session: Session, models: Sequence[Model], prompt: Prompt, stored: ReadBlob, side: SideCall
    ) -> Compactor:
        return Compactor(
            session,
            models,
            prompt,
            side=side,
            max_output=self.settings.limits.max_output_tokens,
            secrets=self._pool.secrets(),
            stored=stored,
        )

    async def warm(self, session: Session | None) -> None:
        """Let a slow model read the beginning of the next request of the session, or of a new one."""
        model = (await self._pool.models(session))[0]
        if not strategy_for(model.capabilities).warms_up or (session and session.state.turn):
            return
        state = session.state if session else None
        beginning = assemble_request(
            prompt=self._prompt(model, state),
            cut=state.cut if state else CompactionCut(),
            transcript=session.transcript if session else (),
            capabilities=model.capabilities,
            model=model.name,
            max_output=1,
            deadlines=Deadlines(whole=self.settings.limits.answer_seconds),
            secrets=self._pool.secrets(),
        )
        request = replace(beginning, messages=(*beginning.messages, UserTurn("")), max_output_tokens=1)
        async with aclosing(model.stream(request)) as parts:
            async for _ in parts:
                pass

    def _note_version(self, session: Session) -> None:
        """Store the active intent's text, where it was edited since the last turn."""
        active = session.state.intent
        intents = self.intents.now() if active else None
        intent = intents.find(active) if intents else None
        if intent is None or intent.sha256 == self._noted:
            return
        from handrail.sessions.workspace_events import record_intent_version

        record_intent_version(session.log, intent.id, intent.text)
        self._noted = intent.sha256

    def _prompt(self, model: Model, state: SessionState | None, message: str | None = None) -> Prompt:
        """The prompt for a session, or for a new one; `message` starts a turn, None: no turn runs."""
        facts = PromptFacts(
            workspace=self._workspace,
            tools=self._specs(state, model.capabilities.context_window),
            notes_chars=self.settings.context.notes_chars,
            skills=self._toolbox.listed_skills,
            sources=self._toolbox.listed_sources,
            sources_chars=fragment_cap(model.capabilities.context_window, most=3_000, share=20),
            intents=self.intents.now(),
            active=state.intent if state else "",
            message=message or "",
            greets=match_rules(message or "").wish == "greet",
            seen=state.files.files if state and message is not None else {},
            checked=bool(message is not None and state and state.turn and state.turn.check),
        )
        prompt = strategy_for(model.capabilities).build_prompt(facts)
        return prompt.with_hooks(state.hooked if state else None)

    def _specs(self, state: SessionState | None, window: int) -> tuple[ToolSpec, ...]:
        """The tools that the session's mode and run offer, and that the window has room for."""
        run = state.run if state else None
        needed = run.sources if run else ()
        specs = self._toolbox.specs(state.allowed_mode if state else self.settings.mode, needed)
        wanted = run.tools if run else ()
        if window < ROOMY_WINDOW:
            specs = tuple(each for each in specs if each.name not in ROOMY_TOOLS or each.name in wanted)
        named = self._toolbox.named_specs(wanted)
        return tuple(each for each in (*specs, *named) if not run or run.allows(each.name))


def price(model: Model, usage: Usage) -> float | None:
    spent = cost(usage, model)
    return spent if spent is None or math.isfinite(spent) else None


def run_budgets(session: Session, catalogue: Catalogue, above: FitToBudget = without_budget) -> FitToBudget:
    """Keeps requests within the budgets of the run, of the open stage, and of what is `above` them."""

    def afforded(model: Model, request: Request) -> AffordedRequest:
        whole = above(model, request)
        state = session.state
        run = state.run
        if run is None and state.paused and state.turn and state.turn.run_id == state.paused.run_id:
            run = state.paused  # the turn's message is for it
        if run is None:
            return whole
        pipeline = catalogue.find_unchanged(run.pipeline, run.sha256)
        stage = pipeline.stage(run.open.stage).budget if run.open else NO_BUDGET
        found = fit_to_budget(
            whole.request, budget_shares(run, pipeline.budget, stage), lambda usage: price(model, usage)
        )
        return max(whole, found, key=lambda each: each.tokens)._replace(request=found.request)

    return afforded
