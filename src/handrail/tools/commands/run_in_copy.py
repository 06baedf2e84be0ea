"""Commands of a plan: run in a scratch copy; what they installed is repeated in the workspace later.

Only the code of a pipeline calls these tools. Policy decides about both as about the command itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from anyio.to_thread import run_sync
from msgspec import Meta

from handrail.policy.call_facts import CommandFacts, SandboxFacts
from handrail.protocol.errors import StorageProblem
from handrail.protocol.values import Value
from handrail.tools.commands.confined import run_confined
from handrail.tools.commands.output import (
    CapturedOutput,
    LiveOutput,
    command_outcome,
    one_line,
    with_note,
    with_sandbox,
)
from handrail.tools.commands.run import WITH_NETWORK, PreparedCommand, prepare_command
from handrail.tools.sandbox.copy_mounts import no_copy_reason
from handrail.tools.sandbox.protected_paths import SandboxSetup, find_risks, own_hard_links
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.tool import CallContext, CallTarget, Outcome, Prepared, Tool, tool_refused
from handrail.workspace.files import Workspace
from handrail.workspace.stat_index import snapshot

if TYPE_CHECKING:
    from handrail.workspace.scratch_copy.copy import ShownCopy
    from handrail.workspace.scratch_copy.layers import Layers

SECONDS = 600.0


class RunInCopyArguments(Value):
    command: Annotated[str, Meta(min_length=1)]
    network: bool = False


class RunInCopy(Tool[RunInCopyArguments]):
    name = "run_in_copy"
    description = "Run a command of a plan in a copy of the workspace."
    action = "run"
    offered = False
    arguments = RunInCopyArguments

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._copy: ShownCopy | None = None

    @contextmanager
    def showing(self, copy: "ShownCopy") -> Iterator[None]:
        """Calls in the block run in this copy."""
        before, self._copy = self._copy, copy
        try:
            yield
        finally:
            self._copy = before

    def target(self, arguments: RunInCopyArguments) -> CallTarget:
        return CallTarget(command=arguments.command, network=arguments.network)

    def summary(self, arguments: RunInCopyArguments, work: CallContext) -> str:
        return f"in a copy: {WITH_NETWORK * arguments.network}{one_line(arguments.command)}"

    def subject(self, arguments: RunInCopyArguments, work: CallContext) -> dict[str, Any]:
        return {"command": arguments.command, "network": arguments.network}

    def prepare(self, arguments: RunInCopyArguments, work: CallContext) -> Prepared:
        require_code(self.name, work)
        return Prepared(f"In a copy of the workspace: {WITH_NETWORK * arguments.network}{arguments.command}")

    async def is_confined(self) -> bool:
        return (await self._sandbox.protection()).confines

    async def sandbox_facts(self, command: CommandFacts, workspace: Workspace) -> SandboxFacts:
        from handrail.tools.sandbox.full_sandbox import sandbox_facts

        return sandbox_facts(await self._sandbox.protection(), workspace, command)

    async def run(self, arguments: RunInCopyArguments, work: CallContext) -> Outcome:
        protection = await self._sandbox.protection()
        reason = no_copy_reason(protection.name)
        if self._copy is None or reason:
            message = reason or "There is no copy of the workspace that it could run in."
            raise tool_refused(self.name, "command_not_allowed", message)
        command = await prepare_command(arguments.command, work, network=arguments.network)
        output = CapturedOutput()
        live = LiveOutput(work.session.live, work.call_id, work.secrets)

        def add(chunk: bytes) -> bool:
            live.add(chunk)
            return output.add(chunk)

        setup = await run_sync(self._setup, command, work, self._copy)
        ended, reached = await run_confined(
            self._sandbox,
            command.words,
            setup,
            timeout=SECONDS,
            on_output=add,
            network=command.network,
        )
        output.transform(work.secrets.hide_bytes)
        outcome = command_outcome(ended, output, SECONDS)
        if reached:
            outcome = with_note(outcome, f"[it reached the limit on its {reached}; make it use less]")
        return with_sandbox(outcome, protection, network=command.network)

    def _setup(self, command: PreparedCommand, work: CallContext, copy: "ShownCopy") -> SandboxSetup:
        """`.git`, secrets and what is outside stay closed, also to a command that the user approved."""
        index = snapshot(work.workspace.root)
        risks, ours = find_risks(index), work.workspace.program_paths
        return SandboxSetup(
            work.workspace.root,
            work.workspace.state_folders,
            command.environ,
            repositories=risks.repositories,
            secrets=risks.secrets,
            readable=command.readable,
            own=(*ours, *own_hard_links(index, work.workspace.root, ours)),
            local_sockets=False,
            copy=copy,
        )


class RepeatArguments(Value):
    command: Annotated[str, Meta(min_length=1)]
    """The commands that made the changes, as one script."""
    key: str
    """Of the layers."""
    changes: tuple[str, ...]
    """What is repeated, in words."""
    network: bool = False


class RepeatPackages(Tool[RepeatArguments]):
    """The changes that commands made in folders of installed packages, repeated in the workspace."""

    name = "repeat_packages"
    description = "Repeat in the workspace what commands of a verified build have installed."
    action = "run"
    offered = False
    repeatable = True
    arguments = RepeatArguments

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def target(self, arguments: RepeatArguments) -> CallTarget:
        return CallTarget(command=arguments.command, network=arguments.network)

    def summary(self, arguments: RepeatArguments, work: CallContext) -> str:
        return f"{'; '.join(arguments.changes)}, by {one_line(arguments.command)}"

    def subject(self, arguments: RepeatArguments, work: CallContext) -> dict[str, Any]:
        return {"command": arguments.command, "network": arguments.network}

    def prepare(self, arguments: RepeatArguments, work: CallContext) -> Prepared:
        require_code(self.name, work)
        listed = "\n".join(arguments.changes)
        return Prepared(
            f"In the workspace, what these commands did in the copy:\n{arguments.command}\n{listed}"
        )

    async def is_confined(self) -> bool:
        return (await self._sandbox.protection()).confines

    async def sandbox_facts(self, command: CommandFacts, workspace: Workspace) -> SandboxFacts:
        from handrail.tools.sandbox.full_sandbox import sandbox_facts

        return sandbox_facts(await self._sandbox.protection(), workspace, command)

    async def run(self, arguments: RepeatArguments, work: CallContext) -> Outcome:
        from handrail.changes.packages import repeat_in_workspace

        repeat = partial(repeat_in_workspace, work.workspace.root, layers_of(work, arguments.key))
        try:
            with anyio.CancelScope(shield=True):
                done = await run_sync(repeat)
        except StorageProblem as problem:
            raise tool_refused(self.name, "storage_failed", str(problem)) from problem
        words = "; ".join(each.words for each in done)
        return Outcome(words, f"{words}. `handrail undo` does not take this back.", shown=words)


def layers_of(work: CallContext, key: str) -> "Layers":
    from handrail.workspace.scratch_copy.copies import COPIES
    from handrail.workspace.scratch_copy.layers import Layers

    return Layers(work.workspace.root, Path(work.session.log.folder, COPIES), key)


def require_code(tool: str, work: CallContext) -> None:
    """Refuse a call that a model made."""
    if not work.by_code:
        raise tool_refused(tool, "unknown_tool", f"There is no tool {tool}.")
