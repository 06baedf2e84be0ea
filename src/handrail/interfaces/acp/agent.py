"""The agent that an editor talks to: its methods are those of the Agent Client Protocol."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import acp
from acp import schema
from acp.agent.connection import AgentSideConnection
from acp.exceptions import RequestError
from anyio.abc import TaskGroup
from msgspec import convert

from handrail import __version__
from handrail.app.app import App, Options
from handrail.app.editor import use_editor
from handrail.interfaces.acp.editor_files import EditorFiles
from handrail.interfaces.acp.open_session import OpenSession
from handrail.interfaces.acp.permissions import Link
from handrail.interfaces.acp.prompts import Block, message_of
from handrail.interfaces.acp.slash_commands import available_commands, slash_command
from handrail.interfaces.acp.stdio import Stdio
from handrail.interfaces.acp.workspaces import Workspaces
from handrail.protocol.commands import SetMode
from handrail.protocol.errors import Authenticate, HandrailError, NoModel, UsageProblem
from handrail.protocol.values import Mode

PAGE_SESSIONS = 50
AUTH_METHOD = "handrail"
OTHER_HOLDER = (
    "Another Handrail process runs this session (a terminal, or `handrail serve`). It works on the files on "
    "disk, and does not see what you have not saved here."
)
MODES: dict[Mode, tuple[str, str]] = {
    "explore": ("Explore", "Reads only, commands included"),
    "plan": ("Plan", "Reads only until you approve a plan"),
    "ask": ("Ask", "Asks before each edit and command"),
    "edit": ("Edit", "Edits by itself, asks before commands"),
    "auto": ("Auto", "Edits, and runs the commands on your list"),
    "sandbox": ("Sandbox", "Edits, and runs every command in a full sandbox"),
}


@contextmanager
def client_errors() -> Iterator[None]:
    """Errors as the client shows them: the message says what to do."""
    try:
        yield
    except (NoModel, Authenticate) as problem:
        raise RequestError(-32000, str(problem)) from problem
    except UsageProblem as problem:
        raise RequestError(-32602, str(problem)) from problem
    except HandrailError as problem:
        raise RequestError(-32603, str(problem)) from problem


class Agent(acp.Agent):
    def __init__(
        self, stdio: Stdio, tasks: TaskGroup, options: Options, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._stdio = stdio
        self._tasks = tasks
        self._workspaces = Workspaces(tasks, options, environ)
        self._open: dict[str, OpenSession] = {}
        self._can = schema.ClientCapabilities()
        self._connection: AgentSideConnection | None = None

    def on_connect(self, conn: Any) -> None:
        self._connection = conn

    async def close(self) -> None:
        for session in self._open.values():
            session.close()
        await self._workspaces.close()

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        client_info: schema.Implementation | None = None,
        **_meta: Any,
    ) -> schema.InitializeResponse:
        self._can = client_capabilities or schema.ClientCapabilities()
        return schema.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_info=schema.Implementation(name="handrail", title="Handrail", version=__version__),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, audio=False, embedded_context=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    fork=schema.SessionForkCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[
                schema.AuthMethodAgent(
                    id=AUTH_METHOD,
                    name="Choose a model",
                    description="Run `handrail` in a terminal once, or set a key such as ANTHROPIC_API_KEY.",
                )
            ],
        )

    async def authenticate(self, method_id: str, **_meta: Any) -> schema.AuthenticateResponse:
        """Look again for a model: keys and servers are set up outside of the editor."""
        with client_errors():
            if method_id != AUTH_METHOD:
                raise UsageProblem(f"There is no way to authenticate called {method_id!r}.")
            app = await self._workspaces.open(os.getcwd())
            await app.chosen_model()
        return schema.AuthenticateResponse()

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **_meta: Any,
    ) -> schema.NewSessionResponse:
        with client_errors():
            app = await self._workspaces.open(cwd)
            await app.chosen_model()
            session = self._session(app, app.new_session(), cwd)
            self._begin(session, mcp_servers)
            return schema.NewSessionResponse(session_id=session.id, modes=_modes(app, session.id))

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[Any] | None = None,
        additional_directories: list[str] | None = None,
        **_meta: Any,
    ) -> schema.LoadSessionResponse:
        with client_errors():
            session = await self._find(cwd, session_id)
            await session.replay()
            self._begin(session, mcp_servers)
            return schema.LoadSessionResponse(modes=_modes(session.app, session_id))

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **_meta: Any,
    ) -> schema.ResumeSessionResponse:
        """Continue a session without sending what was shown of it."""
        with client_errors():
            session = await self._find(cwd, session_id)
            session.skip()
            self._begin(session, mcp_servers)
            return schema.ResumeSessionResponse(modes=_modes(session.app, session_id))

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **_meta: Any,
    ) -> schema.ForkSessionResponse:
        with client_errors():
            app = await self._workspaces.open(cwd)
            session = self._session(app, app.fork(session_id), cwd)
            session.skip()
            self._begin(session, mcp_servers)
            return schema.ForkSessionResponse(session_id=session.id, modes=_modes(app, session.id))

    async def close_session(self, session_id: str, **_meta: Any) -> schema.CloseSessionResponse:
        """Stop following the session; a turn that runs here is interrupted, and can be continued."""
        with client_errors():
            session = self._opened(session_id)
            del self._open[session_id]
            session.close()
            if isinstance(files := session.app.workspace.editor, EditorFiles):
                files.folders.pop(session_id, None)
        return schema.CloseSessionResponse()

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_meta: Any
    ) -> schema.ListSessionsResponse:
        with client_errors():
            app = await self._workspaces.open(cwd or os.getcwd())
            if cursor and not (cursor.isdecimal() and len(cursor) < 10):
                raise UsageProblem(f"{cursor!r} is no cursor of this agent.")
            start, infos = int(cursor or 0), app.sessions()
            shown = infos[start : start + PAGE_SESSIONS]
            more = start + PAGE_SESSIONS < len(infos)
            return schema.ListSessionsResponse(
                sessions=[
                    schema.SessionInfo(
                        session_id=info.id,
                        cwd=cwd or str(app.workspace.root),
                        title=info.title or None,
                        updated_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(info.touched)),
                    )
                    for info in shown
                ],
                next_cursor=str(start + PAGE_SESSIONS) if more else None,
            )

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_meta: Any
    ) -> schema.SetSessionModeResponse:
        with client_errors():
            session = self._opened(session_id)
            if mode_id not in get_args(Mode):
                raise UsageProblem(f"There is no mode {mode_id!r}. Modes: {', '.join(get_args(Mode))}.")
            command = convert({"mode": mode_id}, SetMode)
            notice = await session.app.check_mode(session_id, command.mode)
            await session.send(command)
            if notice:
                await session.tell(notice)
        return schema.SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: list[Block], **_meta: Any) -> schema.PromptResponse:
        with client_errors():
            session = self._opened(session_id)
            message = message_of(session.app, session.folder, prompt)
            if command := slash_command(session.app, message):
                return schema.PromptResponse(stop_reason=await command.run(session))
            return schema.PromptResponse(stop_reason=await session.prompt(message))

    async def cancel(self, session_id: str, **_meta: Any) -> None:
        if session := self._open.get(session_id):
            await session.cancel()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_meta: Any
    ) -> None:
        raise RequestError.method_not_found("session/set_config_option")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Notifications that are not of the protocol have no meaning here."""

    def _opened(self, session_id: str) -> OpenSession:
        if session := self._open.get(session_id):
            return session
        raise UsageProblem(f"No session {session_id!r} is open here. Load it first.")

    async def _find(self, cwd: str, session_id: str) -> OpenSession:
        app = await self._workspaces.open(cwd)
        if not app.has_session(session_id):
            raise UsageProblem(f"There is no session {session_id!r} of {cwd}. session/list lists them.")
        return self._session(app, session_id, cwd)

    def _session(self, app: App, session_id: str, cwd: str) -> OpenSession:
        if self._connection is None:
            raise AssertionError("a session was opened before there was a connection")
        link = Link(self._connection, self._stdio, self._tasks)
        session = OpenSession(app, session_id, Path(cwd), link, has_terminals=bool(self._can.terminal))
        if earlier := self._open.pop(session_id, None):
            session.take_over(earlier)
        return session

    def _files(self, app: App) -> EditorFiles:
        """The client's files in the application's workspace."""
        files = app.workspace.editor
        if not isinstance(files, EditorFiles):
            if self._connection is None or self._can.fs is None:
                raise AssertionError("files were wanted before there was a connection")
            files = EditorFiles(self._connection, writes=bool(self._can.fs.write_text_file))
            use_editor(app, files)
        return files

    def _begin(self, session: OpenSession, mcp_servers: list[Any] | None) -> None:
        """Follow the session. What it sends comes after the answer to the client's request: both are written
        in the order of the calls, and the tasks started here run after this request has returned."""
        self._open[session.id] = session
        if self._can.fs and self._can.fs.read_text_file:
            self._files(session.app).folders[session.id] = session.folder
        session.start()

        async def greet() -> None:
            await session.update(available_commands(session.app))
            files = session.app.workspace.editor
            if files and files.has(session.id) and not session.app.is_holder(session.id):
                await session.tell(OTHER_HOLDER)
            for notice in filter(None, (self._workspaces.notice, *session.app.notices)):
                await session.tell(notice)
            if mcp_servers:
                names = ", ".join(str(getattr(each, "name", "?")) for each in mcp_servers)
                await session.tell(f"The editor offers MCP servers ({names}); Handrail uses only its own.")

        self._tasks.start_soon(greet)


def _modes(app: App, session_id: str) -> schema.SessionModeState:
    return schema.SessionModeState(
        current_mode_id=app.state(session_id).mode,
        available_modes=[
            schema.SessionMode(id=mode, name=name, description=text) for mode, (name, text) in MODES.items()
        ],
    )
