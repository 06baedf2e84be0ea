"""The composition root: builds everything, takes commands, lets interfaces follow."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from anyio.abc import TaskGroup
from pydantic_core import PydanticSerializationError

from handrail import __version__
from handrail.config.layers import LoadedSettings, load_settings
from handrail.config.places import Places, find_places, workspace_folder
from handrail.context.map.repository_map import RepositoryMap
from handrail.context.mentions import too_many
from handrail.engine.answerers import Answerers
from handrail.engine.bell import Bell, ring_on_commits
from handrail.engine.following import follow
from handrail.engine.pipeline.definition import Catalogue
from handrail.engine.routing.beginning import check_route
from handrail.engine.runner import Runner
from handrail.engine.serving import Serving, first_problem
from handrail.engine.turns import Turns
from handrail.models.choice import Choice
from handrail.pipelines.catalogue import BUILT_IN
from handrail.pipelines.load import AgentFolders
from handrail.protocol.commands import (
    Command,
    RunAll,
    RunCommand,
    SelectIntent,
    SendMessage,
    SetMode,
    SetModel,
    SetRoute,
    as_sent,
)
from handrail.protocol.errors import HandrailError, UsageProblem
from handrail.protocol.events import Delta, Recorded, SessionStarted
from handrail.protocol.ids import new_id, session_stream
from handrail.protocol.values import Mode
from handrail.sessions.catalogue import SessionInfo, find_session, list_sessions
from handrail.sessions.handle import Session
from handrail.sessions.past import last_exchange, last_seq
from handrail.sessions.state import State
from handrail.storage.log import Head, Log
from handrail.storage.recovery import open_log
from handrail.tools.git import GitState, git_state
from handrail.tools.sandbox.protection import Protection
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.toolbox import Toolbox
from handrail.tools.user_images import UserImages
from handrail.workspace.files import Workspace
from handrail.workspace.intents.intent_file import IntentFile

if TYPE_CHECKING:
    from handrail.engine.history import History
    from handrail.engine.intents import IntentBook
    from handrail.engine.proposals import Proposals
    from handrail.engine.tracing import Tracing


class Options(NamedTuple):
    """What the command line says."""

    workspace: Path
    model: str = ""
    mode: Mode | None = None
    route: str = ""
    intent: str = ""
    allow: tuple[str, ...] = ()
    answerable: bool = True
    """False: headless, nobody can be asked."""
    trust: bool = False
    """The workspace's own settings count in full this once."""
    max_usd: float | None = None
    max_steps: int | None = None

    def flags(self) -> dict[str, Any]:
        wished = {
            "mode": self.mode,
            "commands.allow": list(self.allow) or None,
            "limits.usd": self.max_usd,
            "limits.steps": self.max_steps,
        }
        return {key: value for key, value in wished.items() if value is not None}


@asynccontextmanager
async def open_app(
    options: Options, environ: Mapping[str, str] = os.environ, catalogue: Catalogue = BUILT_IN
) -> AsyncIterator["App"]:
    """The application for one workspace, for as long as the block lasts."""
    if not options.workspace.is_dir():
        raise UsageProblem(f"There is no folder {options.workspace}. Name an existing one with -C.")
    places = find_places(environ)
    workspace = Workspace(options.workspace, state_folders=(places.data, places.settings.parent))
    loaded = load_settings(
        places, workspace.root, environ=environ, flags=options.flags(), trusted=options.trust
    )
    log = open_log(workspace_folder(places, workspace.root))
    try:
        async with anyio.create_task_group() as tasks:
            app = App(
                options=options,
                places=places,
                loaded=loaded,
                log=log,
                workspace=workspace,
                tasks=tasks,
                environ=environ,
                catalogue=catalogue,
            )
            tasks.start_soon(app.watch)
            try:
                yield app
            finally:
                await app.close()
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise first_problem(group) from None
    finally:
        log.close()


class App:
    """One workspace as interfaces see it: commands in, events out."""

    def __init__(
        self,
        *,
        options: Options,
        places: Places,
        loaded: LoadedSettings,
        log: Log,
        workspace: Workspace,
        tasks: TaskGroup,
        environ: Mapping[str, str],
        catalogue: Catalogue,
    ) -> None:
        self.options = options
        self.places = places
        self.settings = loaded.settings
        self.workspace = workspace
        self.log = log
        self.bell = Bell()
        self.images = UserImages(log, workspace, environ)
        self.answerers = Answerers(loaded, places, environ, options.model, workspace.root)
        self._sandbox = Sandbox(places.data)
        self._sandbox.tidy(workspace.root)
        self.agents = AgentFolders(
            places,
            workspace.root,
            lambda model: self.answerers.reach(model).problem,
            trusted=options.trust,
        )
        self._intents = IntentFile(workspace, required=loaded.settings.intents.required)
        self.turns = Turns(
            self.answerers,
            loaded.settings,
            workspace,
            Toolbox(self._sandbox, self._intents),
            self.bell,
            repository_map=RepositoryMap(workspace, log.folder, self.settings.context.map_tokens),
            answerable=options.answerable,
            keep_entry=self._keep_entry,
            catalogue=catalogue._replace(folders=self.agents.pipeline),
            intents=self._intents,
            hooks=loaded.hooks,
        )
        self._hooks = loaded.hooks
        self.notices = [
            *log.notices,
            *(f"{each.file}: {each.key} was ignored: {each.why}" for each in loaded.ignored),
            *(["`handrail trust` lets you look at it and trust it."] if loaded.ignored else []),
        ]
        self._tasks = tasks
        self._serving = Serving(tasks, self.bell, self._runner)
        self._sent: set[str] = set()
        self._warming = anyio.CancelScope()
        log.listeners.append(self.bell.ring)

    async def close(self) -> None:
        self._warming.cancel()
        self._serving.close()
        await self.answerers.aclose()

    def _keep_entry(self, entry: str) -> None:
        from handrail.config.edit import add_in_file

        add_in_file(self.places.settings, ("commands", "allow"), entry)

    async def watch(self) -> None:
        """Ring when another process has committed."""
        await ring_on_commits(self.bell, self.log.data_version)

    # Sessions

    def sessions(self, *, deleted: bool = False) -> list[SessionInfo]:
        """What there is, last used first."""
        return list_sessions(self.log, deleted=deleted)

    def find_session(self, text: str = "") -> str:
        """The session that the words mean: an id, the start of one, part of a title; the last when empty."""
        return find_session(self.log, text)

    def new_session(self) -> str:
        """The id of a fresh session, held by this process."""
        check_route(self.options.route, self.turns.catalogue)  # a wrong one leaves no session behind
        session = Session(self.log, new_id("s"))
        session.try_hold()
        session.append(
            SessionStarted(
                session_id=session.id,
                workspace=str(self.workspace.root),
                version=__version__,
                mode=self.settings.mode,
            )
        )
        self._serve(session)
        return session.id

    def attach(self, session_id: str) -> None:
        """Serve the session from here whenever no other process does."""
        if self._serving.get(session_id):
            return
        self._head(session_id)
        session = Session(self.log, session_id).load()
        if (wished := self.options.mode) and wished != session.state.mode:
            self.log.put(session.stream, SetMode(mode=wished).model_dump_json())
        self._serve(session)

    def _serve(self, session: Session) -> None:
        if route := self.options.route:
            check_route(route, self.turns.catalogue)
            self.log.put(session.stream, SetRoute(route=route).model_dump_json())
        intent = self.options.intent
        if intent and intent != session.state.intent:
            self.intents.check_selectable(intent)
            self.log.put(session.stream, SelectIntent(intent_id=intent).model_dump_json())
        self._serving.serve(session)

    def detach(self, session_id: str) -> None:
        """Leave the session to others."""
        self._serving.leave(session_id)

    def is_holder(self, session_id: str) -> bool:
        attachment = self._serving.get(session_id)
        return bool(attachment and attachment.session.held)

    def state(self, session_id: str) -> State:
        """What the session is now."""
        attachment = self._serving.get(session_id)
        if attachment is None:
            self._head(session_id)
            return Session(self.log, session_id).load().state
        if not attachment.session.held:
            attachment.session.refresh()
        return attachment.session.state

    def last_seq(self, session_id: str) -> int:
        """The sequence number of the session's last event."""
        return last_seq(self.log, session_stream(session_id))

    def last_exchange(self, session_id: str) -> int:
        """The sequence number before the last message that began a turn: where to begin showing it."""
        return last_exchange(self.log, session_stream(session_id))

    # Commands in, events out

    async def send(self, session_id: str, command: Command) -> None:
        """Leave a command for the session's holder, who is this process where there is no other."""
        command = as_sent(command, self._head(session_id).seq)
        if isinstance(command, SelectIntent):
            self.intents.check_selectable(command.intent_id)
        if isinstance(command, SetModel):
            reference = await self.answerers.check(command.model)
            self.answerers.forget_flag()  # the user's later word counts
            command = command.model_copy(update={"model": reference})
        try:
            data = command.model_dump_json()
        except PydanticSerializationError as error:
            raise UsageProblem(
                "This holds characters that are no text (half of a surrogate pair). Leave them out."
            ) from error
        if isinstance(command, SendMessage | SetRoute):
            check_route(command.route, self.turns.catalogue)
        if isinstance(command, SendMessage) and (problem := too_many(command.images)):
            raise UsageProblem(f"{problem[:1].upper()}{problem[1:]} Send them in several.")
        if isinstance(command, SendMessage | RunCommand | RunAll):
            self._sent.add(command.message_id)
            self._warming.cancel()  # what it has read stays read; the rest is for the message
        self.attach(session_id)
        self.log.put(session_stream(session_id), data)

    def follow(self, session_id: str, after: int = 0) -> AsyncGenerator[Recorded | Delta, None]:
        """Events after a sequence number, then everything as it happens, for ever."""
        if after > (last := self._head(session_id).seq):
            raise UsageProblem(f"Session {session_id} has {last} events: there is none after {after}.")
        return follow(self.log, self._serving, self.bell, session_id, after)

    def warm(self, session_id: str = "") -> None:
        """Let a slow model get ready while the user types; the next message ends it."""
        self._warming = anyio.CancelScope()
        self._tasks.start_soon(self._warm, session_id, self._warming)

    async def chosen_model(self, session_id: str = "") -> Choice:
        """Which model would answer, and why."""
        session = Session(self.log, session_id).load() if session_id else None
        return await self.answerers.choice(session)

    @property
    def proposals(self) -> "Proposals":
        """Changes that anybody wrote: what they would do, and doing it."""
        from handrail.engine.proposals import Proposals

        return Proposals(self.log, self.workspace, self._intents, self.options.intent, self._hooks)

    @property
    def history(self) -> "History":
        """What was changed in sessions, and what going back would mean."""
        from handrail.engine.history import History

        return History(self.log, self.workspace, self.settings.storage.megabytes * 1_000_000)

    @property
    def intents(self) -> "IntentBook":
        """The intents of the workspace: what they are, and how they are changed."""
        from handrail.engine.intents import IntentBook

        return IntentBook(self.log, self.workspace, self._intents)

    @property
    def trace(self) -> "Tracing":
        """Which intent, turn and model wrote what, and whether that is as it was written."""
        from handrail.engine.tracing import Tracing

        return Tracing(self.log, self.workspace)

    async def git_state(self) -> GitState | None:
        """Branch and changed files of the workspace; None where there is no git to ask."""
        return await git_state(self.workspace.root)

    async def sandbox(self) -> Protection:
        """What confines commands here."""
        return await self._sandbox.protection()

    # One session as another, or as a file

    def fork(self, session_id: str, turn: int | None = None) -> str:
        from handrail.sessions.transfer import fork

        self._head(session_id)
        return fork(self.log, session_id, turn)

    def export(self, session_id: str, target: Path) -> None:
        from handrail.sessions.transfer import export_lines
        from handrail.storage.archive import write_lines

        self._head(session_id)
        write_lines(target, export_lines(self.log, session_id))

    def import_session(self, source: Path) -> str:
        from handrail.sessions.transfer import import_lines
        from handrail.storage.archive import read_lines

        return import_lines(self.log, read_lines(source))

    # Inside

    def _head(self, session_id: str) -> Head:
        """Where the session stands; raises UsageProblem when there is none of this id."""
        if head := self.log.head(session_stream(session_id)):
            return head
        raise UsageProblem(f"No session here is called {session_id!r}; `handrail sessions` lists them.")

    def _runner(self, session: Session) -> Runner:
        # A process that leaves after its own task must not begin a later one: it would cut it off.
        return Runner(
            session,
            self.workspace,
            self.turns,
            self.bell,
            begins=lambda waiting: self.options.answerable or bool(waiting & self._sent),
        )

    async def _warm(self, session_id: str, scope: anyio.CancelScope) -> None:
        with scope, suppress(HandrailError):  # what is wrong is told when the model is asked
            await self.turns.warm(Session(self.log, session_id).load() if session_id else None)
