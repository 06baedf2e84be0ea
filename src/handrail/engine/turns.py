"""Building a turn: the session's models, tools, prompt and limits, put together when a turn begins."""

import math
import platform
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from handrail.config.hooks import Hook
from handrail.config.settings import Settings
from handrail.context.assemble import assemble
from handrail.context.briefing import Attempt, Briefing, brief
from handrail.context.budget import shown_characters
from handrail.context.images import MOST_SHOWN, Stored
from handrail.context.map.repository_map import RepositoryMap
from handrail.context.notes import project_notes
from handrail.context.prompt import Prompt
from handrail.context.prompts import system_prompt
from handrail.engine.answerers import Answerers
from handrail.engine.asking import Asking, Retries
from handrail.engine.asking_user import SessionAsker
from handrail.engine.attempts import Attempts
from handrail.engine.bell import Bell
from handrail.engine.compacting import Compacting
from handrail.engine.course import Course
from handrail.engine.limits import Limits
from handrail.engine.messages import Messages, Taken
from handrail.engine.pipeline.definition import Catalogue
from handrail.engine.pipeline.stages import Means, Steering, affording
from handrail.engine.routing.beginning import WORK, Ways
from handrail.engine.routing.gates import Thresholds
from handrail.engine.routing.rules import sign_of
from handrail.engine.side_call import SideCall
from handrail.engine.turn import Turn
from handrail.models.base import Deadlines, Model, UserTurn
from handrail.models.prices import cost
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import Event, TurnStarted, UserMessage
from handrail.protocol.routing import AUTO
from handrail.protocol.values import Mode, Role, Usage
from handrail.sessions.handle import Session
from handrail.sessions.state import Cut, State
from handrail.sessions.storage_use import prune_when_full
from handrail.sessions.transcript import Said
from handrail.tools.background_commands import BackgroundCommands
from handrail.tools.checking import Checker
from handrail.tools.gate import Gate
from handrail.tools.ports import Asker
from handrail.tools.secrets import Secrets
from handrail.tools.toolbox import Toolbox
from handrail.workspace.files import Workspace
from handrail.workspace.intents.intent_file import IntentFile

if TYPE_CHECKING:
    from handrail.engine.running_all import RunningAll
    from handrail.protocol.commands import RunAll, RunCommand
    from handrail.tools.hooks import Hooks

MOST_SEEN = 60


class Turns:
    """Makes the turns of one process."""

    def __init__(
        self,
        answerers: Answerers,
        settings: Settings,
        workspace: Workspace,
        toolbox: Toolbox,
        bell: Bell,
        *,
        repository_map: RepositoryMap,
        answerable: bool,
        keep_entry: Callable[[str], None],
        catalogue: Catalogue,
        intents: IntentFile,
        hooks: Sequence[Hook] = (),
    ) -> None:
        self._answerers = answerers
        self._settings = settings
        self._workspace = workspace
        self._toolbox = toolbox
        self._bell = bell
        self._keep_entry = keep_entry
        self._intents = intents
        self._noted = ""
        """The version of an intent that is known to be kept."""
        self._hooks = hooks
        if hooks:
            from handrail.tools.hooks import refuse_unknown_tools

            refuse_unknown_tools(hooks, toolbox)
        self._kept: list[str] = []
        self.map = repository_map
        self.catalogue = catalogue
        self.ways = Ways(
            usual=AUTO if settings.auto_route else WORK,
            answerable=answerable,
            continues=settings.auto_continue,
            thresholds=Thresholds(settings.router.clarify_below, settings.router.act_above),
            workspace=workspace,
            catalogue=catalogue,
        )

    def _keep(self, entry: str) -> None:
        """Put an entry on the user's list of allowed commands, for the turns to come and for good."""
        self._keep_entry(entry)
        self._kept.append(entry)

    @property
    def background(self) -> BackgroundCommands:
        return self._toolbox.background

    def keep_bounded(self, session: Session) -> None:
        """Drop what nothing needs where the log has outgrown its limit."""
        prune_when_full(session.log, self._settings.storage.megabytes * 1_000_000)

    def select(self, session: Session, intent_id: str) -> list[Event]:
        """What selecting an intent makes true; nothing where it cannot be selected any more."""
        from handrail.engine.intents import selection

        return selection(session, self._intents, intent_id)

    async def model(self, session: Session) -> Model:
        return (await self._answerers.models(session))[0]

    def picked(
        self, command: "RunCommand | RunAll", message: UserMessage, started: TurnStarted
    ) -> list[Event]:
        """The events that begin a turn of commands that the user picked."""
        from handrail.engine.running_all import batch_of, with_commands

        batch = batch_of(command, started.turn_id, told=self._settings.commands.output_to_model)
        return [with_commands(message, batch), started, batch]

    async def turn(self, session: Session, take_steering: Steering) -> "Turn | RunningAll":
        limits = self._settings.limits
        models = await self._answerers.models(session)
        secrets = self._answerers.secrets()
        hooks = self._hooked(session, secrets)
        if hooks:
            await hooks.session_start()
        window = min(model.capabilities.context_window for model in models)
        checked = bool(session.state.turn and session.state.turn.check)
        active = session.state.intent
        if active:
            self._note_version(session, active)
        prompt = self._prompt(session.state.mode, models[0], session, checked=checked, active=active)
        prompt = prompt.told(session.state.hooked)
        stored = lru_cache(maxsize=MOST_SHOWN)(session.log.blob)
        retries = Retries(times=self._settings.retries.count, seconds=self._settings.retries.seconds)
        picks = bool(session.state.turn and session.state.turn.batch)
        asker: Asker = SessionAsker(session, self._bell, answerable=self.ways.answerable)
        if picks:
            from handrail.engine.picked import PickedAsker

            asker = PickedAsker(session, asker)
        affordable = affording(session, self.catalogue, price)
        side = (await self._side(session, models))._replace(afford=affordable)
        asking = Asking(
            session, models, retries, price, affordable, self._settings.models.effort.main or None
        )
        means = Means(
            session=session,
            catalogue=self.catalogue,
            asking=asking,
            fast=asking._replace(
                models=[side.model, *(model for model in models if model is not side.model)],
                effort=side.effort,
            ),
            named=self._answerers.named,
            gate=Gate(
                session,
                self._workspace,
                self._toolbox,
                asker,
                allow=(*self._settings.commands.allow, *self._kept),
                keep_entry=self._keep,
                deny=self._settings.commands.deny,
                without_sandbox=self._settings.commands.without_sandbox,
                answerable=self.ways.answerable,
                shown_characters=shown_characters(window, most=16_000, share=6),
                secrets=secrets,
                hooks=hooks,
                intents=self._intents,
            ),
            tools=self._toolbox,
            deadlines=Deadlines(whole=limits.answer_seconds),
            secrets=secrets,
        )
        turn = Turn(
            session=session,
            asking=means.asking,
            gate=means.gate,
            prompt=prompt,
            secrets=secrets,
            limits=Limits(
                steps=limits.steps,
                tokens=limits.turn_tokens,
                usd=limits.usd,
                seconds=limits.turn_seconds,
                max_output_tokens=limits.max_output_tokens,
            ),
            deadlines=means.deadlines,
            take_steering=take_steering,
            attempts=Attempts(
                session,
                self._workspace,
                Checker(session, self._workspace, self._toolbox.run_tool, secrets),
                brief=self._brief(prompt),
                task=words_of_turn(session),
            ),
            compacting=self._compacting(session, models, prompt, stored, side),
            stored=stored,
            course=Course(means, side, partial(self._said, models[0]), self.ways),
            settle=partial(self.commit, session),
            intents=lambda: self._intent_words(session.state.intent),
            hooks=hooks,
        )
        if not picks:
            return turn
        from handrail.engine.batch_deciding import BatchDeciding
        from handrail.engine.running_all import RunningAll

        deciding = SideCall(session, models[0], "main", price, effort=asking.effort)
        return RunningAll(turn, BatchDeciding(turn, deciding))

    def _hooked(self, session: Session, secrets: Secrets) -> "Hooks | None":
        if not self._hooks:
            return None
        from handrail.tools.hooks import Hooks

        return Hooks(self._hooks, session, self._workspace.root, secrets)

    async def commit(self, session: Session) -> None:
        """Make each change set since the last commit a commit, where the user has set it so."""
        if self._settings.git.commit == "per_change_set" and session.state.uncommitted:
            from handrail.engine.committing import commit_each

            await commit_each(session, self._workspace)

    async def compacting(self, session: Session) -> Compacting:
        """For a session in which no turn runs."""
        models = await self._answerers.models(session)
        active = session.state.intent
        prompt = self._prompt(session.state.mode, models[0], checked=False, active=active)
        prompt = prompt.told(session.state.hooked)
        side = await self._side(session, models)
        return self._compacting(session, models, prompt, session.log.blob, side)

    async def _side(self, session: Session, models: Sequence[Model]) -> SideCall:
        fast = await self._answerers.fast(session, models[0])
        role: Role = "main" if fast is models[0] else "fast"
        return SideCall(session, fast, role, price, effort=self._settings.models.effort.fast or None)

    def _said(self, model: Model, command: SendMessage, state: State) -> Taken:
        """A message of the turn that runs."""
        turn_id = state.turn.turn_id if state.turn else ""
        return Messages(self._workspace, self.map, model).taken(command, state, turn_id, steering=False)

    def _compacting(
        self, session: Session, models: Sequence[Model], prompt: Prompt, stored: Stored, side: SideCall
    ) -> Compacting:
        return Compacting(
            session,
            models,
            prompt,
            side=side,
            max_output=self._settings.limits.max_output_tokens,
            secrets=self._answerers.secrets(),
            stored=stored,
        )

    async def warm(self, session: Session | None) -> None:
        """Let a slow model read what the next request of the session, or of a new one, will begin with."""
        model = (await self._answerers.models(session))[0]
        if not model.capabilities.one_action or (session and session.state.turn):
            return
        mode = session.state.mode if session else self._settings.mode
        beginning = assemble(
            prompt=self._prompt(
                mode, model, checked=False, active=session.state.intent if session else ""
            ).told(session.state.hooked if session else None),
            cut=session.state.cut if session else Cut(),
            transcript=session.transcript if session else (),
            capabilities=model.capabilities,
            model=model.name,
            max_output=1,
            deadlines=Deadlines(whole=self._settings.limits.answer_seconds),
            secrets=self._answerers.secrets(),
        )
        request = beginning.changed(messages=(*beginning.messages, UserTurn("")), max_output_tokens=1)
        async with aclosing(model.stream(request)) as parts:
            async for _ in parts:
                pass

    def _seen(self, session: Session) -> list[str]:
        """Files that the model has been shown as they are now, of the latest it saw."""
        latest = list(session.state.files.files.items())[-MOST_SEEN:]
        return [path for path, seen in latest if self._workspace.sha256(path) == seen.sha256]

    def _note_version(self, session: Session, active: str) -> None:
        """Keep how the active intent reads now, where it was edited since it was last looked at."""
        intents = self._intents.now()
        intent = intents.find(active) if intents else None
        if intent is None or intent.sha256 == self._noted:
            return
        from handrail.sessions.workspace_events import note_version

        note_version(session.log, intent.id, intent.text)
        self._noted = intent.sha256

    def _intent_words(self, active: str) -> str:
        """What is said of the workspace's intents as they are now; nothing where there are none."""
        intents = self._intents.now()
        if intents is None:
            return ""
        from handrail.context.intent_words import intent_words

        return intent_words(intents, active)

    def _prompt(
        self,
        mode: Mode,
        model: Model,
        session: Session | None = None,
        *,
        checked: bool,
        active: str = "",
    ) -> Prompt:
        """`session` is where a turn begins: what was said and seen in it matters to small models.

        `active` is the session's intent.
        """
        tools = self._toolbox.specs(mode)
        if model.capabilities.one_action:
            from handrail.context.small import small_prompt

            words, seen = (words_of_turn(session), self._seen(session)) if session else ("", [])
            intents = self._intents.now()
            prompt = small_prompt(
                self._workspace, tools, words, seen, checked=checked, intents=intents, active=active
            )
            # Who is greeted has nothing to look up, and does so all the same.
            greeted = sign_of(words).wish == "greet" and not checked
            return prompt._replace(actions=()) if greeted else prompt
        notes = project_notes(self._workspace.root, self._settings.context.notes_chars)
        system = system_prompt(str(self._workspace.root), platform.system(), notes)
        return Prompt(system, tools, intents=self._intent_words(active))

    def _brief(self, prompt: Prompt) -> Callable[[Attempt], Briefing]:
        """What an attempt begins with: a small model is given the files, others read them."""
        if not prompt.writing:
            return brief
        from handrail.context.rewriting import brief_small

        return partial(brief_small, self._workspace, prompt)


def words_of_turn(session: Session) -> str:
    """What the user wrote to begin the turn."""
    begun = session.state.turn.message_seq if session.state.turn else 0
    said = (entry for entry in session.transcript if entry.seq == begun)
    return next((entry.words for entry in said if isinstance(entry, Said)), "")


def price(model: Model, usage: Usage) -> float | None:
    """What a request cost, counted once however it ended."""
    spent = cost(usage, model)
    return spent if spent is None or math.isfinite(spent) else None
