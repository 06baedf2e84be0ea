"""The composition root: builds everything, takes commands, lets interfaces follow."""

import copy
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from handrail import __version__
from handrail.app.command_checks import checked_command
from handrail.app.extensions.model_tools import build_agents, build_sources, build_toolbox
from handrail.app.notices import own_files_notice, restored_notice
from handrail.app.telemetry.follow import telemetry_notice, telemetry_settings, traced
from handrail.config.layers import LoadedSettings, load_settings
from handrail.config.places import Places, find_places, workspace_folder
from handrail.config.toml_edit import add_in_file
from handrail.context.map.repository_map import RepositoryMap
from handrail.engine.host.event_stream import (
    SessionHost,
    first_problem,
    follow_batches,
    no_pace,
    one_by_one,
)
from handrail.engine.host.runner import Runner
from handrail.engine.host.takeover import record_interrupted_commands
from handrail.engine.host.turn_factory import TurnFactory
from handrail.engine.host.wakeup import Wakeup, notify_on_commits
from handrail.engine.pipeline import Catalogue
from handrail.engine.requests.model_pool import ModelPool
from handrail.engine.requests.model_requests import FitToBudget, without_budget
from handrail.engine.router.router import check_route
from handrail.models.model_choice import ModelChoice
from handrail.pipelines.load import BUILT_IN_PIPELINES, with_settings
from handrail.protocol import commands
from handrail.protocol.errors import HandrailError, UsageProblem
from handrail.protocol.events import Delta, Recorded, RouteSet, SessionStarted
from handrail.protocol.ids import new_id, session_stream
from handrail.protocol.values import Mode, SessionStatus, to_json
from handrail.sessions.session import Session, last_seq, start_of_last_turn
from handrail.sessions.session_list import SessionInfo, find_session, list_sessions
from handrail.sessions.session_state import SessionState
from handrail.storage.event_log import Log, StreamHead
from handrail.storage.log_repair import open_log
from handrail.tools.git import GitState, git_state
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.tools.user_images import UserImages
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentFile

if TYPE_CHECKING:
    from handrail.engine.admin.doctor import Finding
    from handrail.engine.admin.history import ChangeHistory
    from handrail.engine.admin.proposals import Proposals
    from handrail.engine.admin.trace import TraceQueries
    from handrail.engine.admin.workspace_intents import WorkspaceIntents
    from handrail.tasks.task_list import TaskList
    from handrail.verification.workspace_checks import WorkspaceChecks

MAX_QUERIES = 2
Answer = TypeVar("Answer")


class Options(NamedTuple):
    workspace: Path
    model: str = ""
    mode: Mode | None = None
    route: str = ""
    intent: str = ""
    allow: tuple[str, ...] = ()
    answerable: bool = True
    """False: headless, so that nobody can be asked."""
    trust: bool = False
    """Trust the workspace's own settings this once."""
    database: str | None = None  # a URL, in place of that of the settings; empty: the file
    max_usd: float | None = None
    max_steps: int | None = None
    afford: FitToBudget = without_budget  # of every request

    def flags(self) -> dict[str, Any]:
        values = {
            "mode": self.mode,
            "database.url": self.database,
            "commands.allow": list(self.allow) or None,
            "limits.usd": self.max_usd,
            "limits.steps": self.max_steps,
        }
        return {key: value for key, value in values.items() if value is not None}


@asynccontextmanager
async def open_app(
    options: Options, environ: Mapping[str, str] = os.environ, catalogue: Catalogue = BUILT_IN_PIPELINES
) -> AsyncIterator["App"]:
    """The application for one workspace, for as long as the block lasts."""
    if not options.workspace.is_dir():
        raise UsageProblem(f"There is no folder {options.workspace}. Name an existing one with -C.")
    places = find_places(environ)
    workspace = Workspace(options.workspace, state_folders=(places.data, places.settings.parent))
    flags = options.flags()
    loaded = load_settings(places, workspace.root, environ=environ, flags=flags, trusted=options.trust)
    log = open_log(workspace_folder(places, workspace.root), loaded.settings.database, workspace.root)
    try:
        record_interrupted_commands(log, workspace)
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


async def diagnose(options: Options, environ: Mapping[str, str] = os.environ) -> "AsyncIterator[Finding]":
    """What is right and wrong with the setup, also where it is too broken to open the application."""
    from handrail.engine.admin.doctor import diagnose

    async for one in diagnose(options.workspace, model=options.model, flags=options.flags(), environ=environ):
        yield one


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
        self._updates = Wakeup()
        """Commits, and text as it streams."""
        self.commits = Wakeup(also=self._updates)
        self.images = UserImages(log, workspace, environ)
        self.model_pool = ModelPool(loaded, places, environ, options.model, workspace.root)
        self._sandbox = Sandbox(places.data)
        self._sandbox.remove_leftovers(workspace.root)
        self.sources = build_sources(self, self._sandbox, tasks, environ)
        self.agents = build_agents(self)
        self._intents = IntentFile(workspace, required=loaded.settings.intents.required)
        self._toolbox = build_toolbox(self, self._sandbox, self._intents, environ)
        self.turn_factory = TurnFactory(
            self.model_pool,
            loaded.settings,
            workspace,
            self._toolbox,
            self.commits,
            repository_map=RepositoryMap(workspace, log.folder, self.settings.context.map_tokens),
            answerable=options.answerable,
            keep_entry=partial(add_in_file, places.settings, ("commands", "allow")),
            catalogue=with_settings(catalogue, self.settings)._replace(folders=self.agents.pipeline),
            intents=self._intents,
            checks=lambda: self.checks,
            tasks=lambda: self.tasks,
            hooks=loaded.hooks,
            afford=options.afford,
        )
        self._hooks, self._environ = loaded.hooks, environ
        self.notices = [
            *log.notices,
            *own_files_notice(workspace),
            *restored_notice(log.folder, workspace.root),
            *(f"{each.file}: {each.key} was ignored: {each.why}" for each in loaded.ignored),
            *telemetry_notice(loaded.settings, environ),
            *(["`handrail trust` shows it, and lets you trust it."] if loaded.ignored else []),
        ]
        self._tasks = tasks
        self._host = SessionHost(tasks, self.commits, self._updates, self._run)
        self._sent: set[str] = set()
        self._queries = anyio.CapacityLimiter(MAX_QUERIES)
        self._task_list: TaskList | None = None
        self._warming = anyio.CancelScope()
        log.listeners.append(self.commits.notify)

    async def close(self) -> None:
        self._warming.cancel()
        self._host.close()
        await self.sources.close()
        self._toolbox.close()
        self._sandbox.close()
        await self.model_pool.aclose()

    async def watch(self) -> None:
        """Wake up followers when another process has committed."""
        await notify_on_commits(self.commits, self.log.data_version)

    def sessions(
        self, *, status: SessionStatus | None = None, label: str = "", deleted: bool = False
    ) -> list[SessionInfo]:
        """The sessions with this status and label; without a status, all but the archived ones.

        `deleted`: deleted and archived ones too.
        """
        return [
            info
            for info in list_sessions(self.log, deleted=deleted)
            if (info.status == status if status else deleted or info.status != "archived")
            and (not label or label.lower() in map(str.lower, info.labels))
        ]

    def find_session(self, text: str = "") -> str:
        """The session that the words mean: an id, the start of one, part of a title; the last when empty."""
        try:
            return find_session(self.log, text)
        except UsageProblem as problem:  # a repair of the log may have lost it
            lines = [str(problem)]
            for at, report in self.log.recoveries():
                when = time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000))
                lines.append(f"The log was repaired on {when}: {report}")
            raise UsageProblem("\n".join(lines)) from problem

    def new_session(self, session_id: str = "", *followers: Callable[[Recorded], None]) -> str:
        """The id of a fresh session, or `session_id`, held by this process; `followers` get each event."""
        route = self.options.route
        check_route(route, self.turn_factory.catalogue)  # a wrong route must not leave a session
        session = Session(self.log, session_id or new_id("s"))
        session.followers.extend(followers)
        root, mode = str(self.workspace.root), self.settings.mode
        session.try_hold()
        session.append(
            SessionStarted(session_id=session.id, workspace=root, version=__version__, mode=mode),
            *([RouteSet(route=route)] if route else []),
        )
        self._serve(session)
        return session.id

    def attach(self, session_id: str, begins: str = "") -> None:
        """Serve the session from here whenever no other process does, with its waiting message `begins`."""
        self._sent.add(begins)
        if self._host.get(session_id):
            return
        self._head(session_id)
        session = Session(self.log, session_id).load()
        if (mode := self.options.mode) and mode != session.state.mode:
            self.log.put(session.stream, to_json(commands.SetMode(mode=mode)))
        self._serve(session)

    def _serve(self, session: Session) -> None:
        if (route := self.options.route) and route != session.state.routes.chosen:
            check_route(route, self.turn_factory.catalogue)
            self.log.put(session.stream, to_json(commands.SetRoute(route=route)))
        intent = self.options.intent
        if intent and intent != session.state.intent:
            self.intents.check_selectable(intent)
            self.log.put(session.stream, to_json(commands.SelectIntent(intent_id=intent)))
        self._host.serve(session)

    def detach(self, session_id: str) -> None:
        self._host.release(session_id)

    def busy(self) -> bool:
        """Whether a turn runs in this process, and does not wait for the user: closing would interrupt it."""
        states = (each.session.state for each in self._host.all() if each.session.held)
        return any(state.turn and not (state.approvals or state.questions) for state in states)

    async def until_idle(self) -> None:
        """Wait until no turn is busy."""
        while True:
            seen = self.commits.version
            if not self.busy():
                return
            await self.commits.wait(seen)

    def release_idle(self, keep: Collection[str]) -> None:
        """Detach all sessions with nothing to do, but those in `keep`."""
        for each in self._host.all():
            session, state = each.session, each.session.state
            works = session.held and (state.turn or state.background.running)
            if session.id not in keep and not works and not self.log.waiting(session.stream):
                self.detach(session.id)

    def is_holder(self, session_id: str) -> bool:
        return bool((hosted := self._host.get(session_id)) and hosted.session.held)

    def state(self, session_id: str) -> SessionState:
        attachment = self._host.get(session_id)
        if attachment is None:
            self._head(session_id)
            return Session(self.log, session_id).load().state
        if not attachment.session.held:
            attachment.session.refresh()
        return attachment.session.state

    def last_seq(self, session_id: str) -> int:
        return last_seq(self.log, session_stream(session_id))

    def last_exchange(self, session_id: str) -> int:
        """The sequence number before the last message that started a turn."""
        return start_of_last_turn(self.log, session_stream(session_id))

    async def check_mode(self, session_id: str = "", mode: Mode | None = None) -> str:
        """A notice about the session's mode, often empty; raises UsageProblem where it cannot be used."""
        attached = bool(session_id) and self._host.get(session_id) is not None
        chosen = mode or (None if attached else self.options.mode)
        if (chosen or (self.state(session_id).mode if session_id else self.settings.mode)) != "sandbox":
            return ""
        from handrail.tools.sandbox.full_sandbox import check_mode

        session = Session(self.log, session_id).load() if session_id else None
        return await check_mode(
            await self._sandbox.protection(), self.workspace, self.settings.commands.readable_secrets, session
        )

    async def send(self, session_id: str, command: commands.Command) -> commands.Command:
        """Queue a command for the process that holds the session: this one where there is no other.

        Returns it as it was sent, with full names.
        """
        command = commands.with_seen(command, self._head(session_id).seq)
        command = await checked_command(self, session_id, command)
        if isinstance(command, commands.SetModel):
            self.model_pool.forget_flag()  # chosen later than the flag, so it counts
        if isinstance(command, commands.SendMessage | commands.RunCommand | commands.RunAll):
            self._sent.add(command.message_id)
            self._warming.cancel()  # what is read already stays cached
        self.attach(session_id)
        self.log.put(session_stream(session_id), to_json(command))
        return command

    def follow(self, session_id: str, after: int = 0) -> AsyncGenerator[Recorded | Delta, None]:
        """Events after a sequence number, then everything as it happens, without an end."""
        return one_by_one(self.follow_batches(session_id, after))

    def follow_batches(
        self, session_id: str, after: int = 0, *, pace: Callable[[], float] = no_pace
    ) -> AsyncGenerator[list[Recorded] | list[Delta], None]:
        """The same in batches of what comes within `pace()` seconds: cheaper, and that much later."""
        if after > (last := self._head(session_id).seq):
            raise UsageProblem(f"Session {session_id} has {last} events, so none after {after}.")
        return follow_batches(self.log, self._host, self._updates, session_id, after, pace=pace)

    def has_session(self, session_id: str) -> bool:
        return self.log.head(session_stream(session_id)) is not None

    def read_events(self, session_id: str, after: int, limit: int) -> list[Recorded]:
        """The next events after a sequence number that are in the log now."""
        known = after < self.last_seq(session_id)  # a missing event would count as damage
        return Session(self.log, session_id).read_after(after, limit) if known else []

    def live_text(self, session_id: str) -> list[Delta]:
        """All text that streams now, from its beginning."""
        return self._host.live_text(self.log, session_id, {})

    def warm(self, session_id: str = "") -> None:
        """Let a slow model read its prompt while the user types; the next message ends it."""
        self._warming = anyio.CancelScope()

        async def warm(scope: anyio.CancelScope) -> None:
            with scope, suppress(HandrailError):  # shown when the model is asked
                await self.turn_factory.warm(Session(self.log, session_id).load() if session_id else None)

        self._tasks.start_soon(warm, self._warming)

    def run_in_background(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run this until it ends or the application is closed."""
        self._tasks.start_soon(work)

    async def chosen_model(self, session_id: str = "") -> ModelChoice:
        return await self.model_pool.choice(Session(self.log, session_id).load() if session_id else None)

    @property
    def proposals(self) -> "Proposals":
        """Changes that a person hands in: preview and apply them."""
        from handrail.engine.admin.proposals import Proposals

        hooks, secrets = self._hooks, self.model_pool.secrets
        return Proposals(self.log, self.workspace, self._intents, self.options.intent, hooks, secrets)

    @property
    def history(self) -> "ChangeHistory":
        from handrail.engine.admin.history import ChangeHistory

        return ChangeHistory(self.log, self.workspace, self.settings.storage.megabytes * 1_000_000)

    @property
    def intents(self) -> "WorkspaceIntents":
        from handrail.engine.admin.workspace_intents import WorkspaceIntents

        return WorkspaceIntents(self.log, self.workspace, self._intents)

    @property
    def tasks(self) -> "TaskList":
        """The user's task list in this workspace."""
        if self._task_list is None:
            from handrail.tasks.dates import user_zone
            from handrail.tasks.task_list import TaskList

            self._task_list = TaskList(self.log, user_zone(self.settings.tasks.time_zone, self._environ))
        return self._task_list

    @property
    def trace(self) -> "TraceQueries":
        """Which intent, turn and model wrote what, and whether that record is intact."""
        from handrail.engine.admin.trace import TraceQueries

        return TraceQueries(self.log, self.workspace)

    async def query(self, ask: "Callable[[App], Answer]") -> "Answer":
        """The answer to a question about the log, found in a thread: no turn has to wait for it.

        `ask` gets a copy of the application with its own connection to the log, and without running sessions.
        """

        def answer() -> Answer:
            view = copy.copy(self)
            view.log = self.log.another()
            view._task_list = None
            view._host = SessionHost(self._tasks, self.commits, self._updates, self._run)
            try:
                return ask(view)
            finally:
                view.log.close()

        return await anyio.to_thread.run_sync(answer, limiter=self._queries)

    @property
    def checks(self) -> "WorkspaceChecks":
        """The checks of the workspace by the project's own tools."""
        from handrail.verification.run_check import Machine
        from handrail.verification.workspace_checks import WorkspaceChecks

        secrets = self.model_pool.secrets()
        machine = Machine(self.workspace, self._sandbox, self.log.folder, self._environ, secrets)
        return WorkspaceChecks(machine, self.settings, self.log)

    async def git_state(self) -> GitState | None:
        """Branch and changed files of the workspace; None without git."""
        return await git_state(self.workspace.root)

    async def sandbox(self) -> Protection:
        return await self._sandbox.protection()

    def fork(self, session_id: str, turn: int | None = None) -> str:
        from handrail.sessions.export_import import fork

        self._head(session_id)
        return fork(self.log, session_id, turn)

    def export(self, session_id: str, target: Path) -> None:
        from handrail.sessions.export_import import export_lines
        from handrail.storage.archive import write_lines

        self._head(session_id)
        write_lines(target, export_lines(self.log, session_id))

    def import_session(self, source: Path) -> str:
        from handrail.sessions.export_import import import_lines
        from handrail.storage.archive import read_lines

        return import_lines(self.log, read_lines(source))

    def _head(self, session_id: str) -> StreamHead:
        """The end of the session; raises UsageProblem where there is none of this id."""
        if head := self.log.head(session_stream(session_id)):
            return head
        raise UsageProblem(f"No session here is called {session_id!r}; `handrail sessions` lists them.")

    async def _run(self, session: Session) -> None:
        def begins(waiting: set[str]) -> bool:
            # A process that exits after its own task must not start a later one, which it would cut off.
            return self.options.answerable or bool(waiting & self._sent)

        traces = telemetry_settings(self.settings, self._environ)
        async with traced(session, traces, lambda: self.model_pool.secrets().hide):
            await Runner(session, self.workspace, self.turn_factory, self.commits, begins=begins).run()
