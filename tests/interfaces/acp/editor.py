"""An editor with `handrail acp` as a process of its own: its buffers, its answers, what it was shown."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import anyio
from acp import schema
from acp.exceptions import RequestError
from acp.helpers import text_block

from tests.interfaces.cli.program import command, environment

DEADLINE = 60.0
Decide = Callable[[schema.ToolCallUpdate, list[schema.PermissionOption]], Awaitable[str]]


async def allow(_call: schema.ToolCallUpdate, _options: list[schema.PermissionOption]) -> str:
    return "once"


class Terminal:
    """A terminal of the editor, with the program that it runs."""

    def __init__(self, words: list[str], process: "asyncio.subprocess.Process") -> None:
        self.words = words
        self.process = process
        self.output = ""


class Editor:
    """The client's side. Text in `buffers` is not saved; a write saves what it changes if `saves`."""

    def __init__(self, decide: Decide = allow) -> None:
        self.decide = decide
        self.updates: list[tuple[str, Any]] = []
        self.asked: list[schema.ToolCallUpdate] = []
        self.buffers: dict[Path, str] = {}
        self.saves = True
        self.reads: list[Path] = []
        self.writes: list[Path] = []
        self.terminals: dict[str, Terminal] = {}
        self.released: list[str] = []
        self.changed = anyio.Event()
        self.agent: acp.Agent

    def on_connect(self, conn: Any) -> None:
        self.agent = conn

    async def session_update(self, session_id: str, update: Any, **_meta: Any) -> None:
        self.updates.append((session_id, update))
        self._notify()

    async def request_permission(
        self,
        session_id: str,
        tool_call: schema.ToolCallUpdate,
        options: list[schema.PermissionOption],
        **_meta: Any,
    ) -> schema.RequestPermissionResponse:
        self.asked.append(tool_call)
        self._notify()
        picked = await self.decide(tool_call, options)
        if not picked:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        return schema.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=picked)
        )

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_meta: Any
    ) -> schema.ReadTextFileResponse:
        self.reads.append(Path(path))
        return schema.ReadTextFileResponse(content=self.text(Path(path)))

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_meta: Any
    ) -> schema.WriteTextFileResponse:
        self.writes.append(Path(path))
        self.put(Path(path), content)
        return schema.WriteTextFileResponse()

    def text(self, path: Path) -> str:
        if path in self.buffers:
            return self.buffers[path]
        try:
            return path.read_text()
        except OSError as error:
            raise RequestError.resource_not_found(str(path)) from error

    def put(self, path: Path, content: str) -> None:
        self.buffers[path] = content
        if self.saves:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            del self.buffers[path]

    async def create_terminal(
        self, command: str, args: list[str] | None = None, cwd: str | None = None, **_given: Any
    ) -> schema.CreateTerminalResponse:
        process = await asyncio.create_subprocess_exec(
            command, *(args or []), cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.terminals[str(process.pid)] = Terminal([command, *(args or [])], process)
        return schema.CreateTerminalResponse(terminal_id=str(process.pid))

    async def terminal_output(self, **_given: Any) -> Any:
        raise RequestError.method_not_found("terminal/output")

    async def release_terminal(self, terminal_id: str, **_given: Any) -> schema.ReleaseTerminalResponse:
        self.released.append(terminal_id)
        self._notify()
        return schema.ReleaseTerminalResponse()

    async def wait_for_terminal_exit(
        self, terminal_id: str, **_given: Any
    ) -> schema.WaitForTerminalExitResponse:
        terminal = self.terminals[terminal_id]
        output, _ = await terminal.process.communicate()
        terminal.output = output.decode()
        self._notify()
        return schema.WaitForTerminalExitResponse(exit_code=terminal.process.returncode)

    async def kill_terminal(self, **_given: Any) -> Any:
        raise RequestError.method_not_found("terminal/kill")

    async def create_elicitation(self, *_given: Any, **_meta: Any) -> Any:
        raise RequestError.method_not_found("elicitation/create")

    async def complete_elicitation(self, *_given: Any, **_meta: Any) -> None: ...

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None: ...

    def _notify(self) -> None:
        event, self.changed = self.changed, anyio.Event()
        event.set()

    async def until(self, found: Callable[[], Any]) -> Any:
        """What `found` returns, as soon as it is true."""
        with anyio.fail_after(DEADLINE):
            while True:
                changed = self.changed
                if value := found():
                    return value
                await changed.wait()

    # What was shown

    def of(self, kind: str, session_id: str = "") -> list[Any]:
        return [
            update
            for session, update in self.updates
            if update.session_update == kind and session_id in ("", session)
        ]

    def text_of(self, kind: str = "agent_message_chunk", session_id: str = "") -> str:
        return "".join(update.content.text for update in self.of(kind, session_id))

    def calls(self, session_id: str = "") -> dict[str, dict[str, Any]]:
        """Each tool call in its last state."""
        found: dict[str, dict[str, Any]] = {}
        for session, update in self.updates:
            if update.session_update in ("tool_call", "tool_call_update") and session_id in ("", session):
                known = update.model_dump(exclude_none=True, exclude={"session_update"})
                found.setdefault(update.tool_call_id, {}).update(known)
        return found


class Opened:
    """An agent that has answered `initialize`."""

    def __init__(
        self, editor: Editor, agent: Any, process: "asyncio.subprocess.Process", folder: Path
    ) -> None:
        self.editor = editor
        self.agent = agent
        self.process = process
        self.folder = folder

    async def new(self) -> str:
        with anyio.fail_after(DEADLINE):
            return str((await self.agent.new_session(cwd=str(self.folder), mcp_servers=[])).session_id)

    async def load(self, session_id: str) -> Any:
        with anyio.fail_after(DEADLINE):
            return await self.agent.load_session(cwd=str(self.folder), session_id=session_id, mcp_servers=[])

    async def prompt(self, session_id: str, *blocks: Any) -> str:
        """The reason why the turn stopped."""
        content = [text_block(each) if isinstance(each, str) else each for each in blocks]
        with anyio.fail_after(DEADLINE):
            return str((await self.agent.prompt(session_id=session_id, prompt=content)).stop_reason)


@asynccontextmanager
async def opened(
    folder: Path,
    model: str,
    *options: str,
    editor: Editor | None = None,
    can: schema.ClientCapabilities | None = None,
    **changes: str,
) -> AsyncIterator[Opened]:
    editor = editor or Editor()
    words = command("acp", "--model", model, *options)
    client: Any = editor  # it has what the agent calls, with looser types than the protocol's
    async with acp.spawn_agent_process(
        lambda _agent: client, *words, env=environment(**changes), cwd=folder, use_unstable_protocol=True
    ) as (agent, process):
        draining = asyncio.create_task(_drain(process))  # a full pipe would hold the agent up
        with anyio.fail_after(DEADLINE):
            await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=can)
        yield Opened(editor, agent, process, folder)
        draining.cancel()


async def _drain(process: "asyncio.subprocess.Process") -> None:
    if process.stderr:
        while await process.stderr.read(65_536):
            pass


def files(*, read: bool = True, write: bool = True) -> schema.ClientCapabilities:
    return schema.ClientCapabilities(
        fs=schema.FileSystemCapabilities(read_text_file=read, write_text_file=write)
    )


def shown(updates: Sequence[Any]) -> list[dict[str, Any]]:
    """Updates as a person would see them: chunks of one message together, each call once in its last state.

    Commands, titles and modes are left out: they are settings of the window, not parts of the conversation.
    """
    rows: list[dict[str, Any]] = []
    calls: dict[str, dict[str, Any]] = {}
    for update in updates:
        kind = update.session_update
        if kind.endswith("_chunk"):
            last = rows[-1] if rows else {}
            if last.get("kind") == kind and last.get("id") == update.message_id:
                last["text"] += update.content.text
            else:
                rows.append({"kind": kind, "id": update.message_id, "text": update.content.text})
        elif kind in ("tool_call", "tool_call_update"):
            known = update.model_dump(exclude_none=True, exclude={"session_update"})
            if update.tool_call_id not in calls:
                calls[update.tool_call_id] = {}
                rows.append(calls[update.tool_call_id])
            calls[update.tool_call_id].update(known)
        elif kind == "plan":
            entries = [(each.content, each.status) for each in update.entries]
            rows.append({"kind": kind, "entries": entries})
    return rows
