"""The run tool: run a command in the sandbox; also runs the user's own check."""

import math
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import anyio.to_thread
from msgspec import Meta

from handrail.policy.call_facts import CommandFacts, SandboxFacts
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import CheckFinished, CheckStarted
from handrail.protocol.ids import new_id
from handrail.protocol.values import Value
from handrail.sessions.session import Session
from handrail.storage.protected_copies import ChangeReport
from handrail.tools.commands.background import BackgroundCommand, BackgroundCommands, BackgroundResult
from handrail.tools.commands.confined import run_confined
from handrail.tools.commands.output import (
    CapturedOutput,
    LiveOutput,
    command_outcome,
    one_line,
    with_note,
    with_protected_changes,
    with_sandbox,
)
from handrail.tools.process import OnOutput, ProcessResult, find_program
from handrail.tools.sandbox.protected_paths import (
    SandboxSetup,
    SensitivePaths,
    WorkspaceRisks,
    find_risks,
    new_repositories,
    own_hard_links,
)
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.secrets import NO_SECRETS, Secrets, without_secrets, without_workspace_programs
from handrail.tools.tool import (
    CallContext,
    CallTarget,
    HiddenFromModel,
    Outcome,
    Prepared,
    Tool,
    tool_refused,
)
from handrail.workspace.files import Workspace
from handrail.workspace.git_folder import UnusableRepository

if TYPE_CHECKING:
    from handrail.tools.commands.file_changes import ChangeWatcher, ReadableSecrets
    from handrail.tools.credential_prompt import StoredCredentials
    from handrail.workspace.stat_index import StatIndex


class PreparedCommand(NamedTuple):
    words: list[str]
    environ: Mapping[str, str]
    network: bool
    git: bool  # it only runs git commands that write `.git`
    readable: tuple[str, ...] = ()  # folders that it needs


async def prepare_command(command: str, work: CallContext, *, network: bool) -> PreparedCommand:
    """The command as it runs: always without secrets, and hardened if nobody was asked."""
    auto = work.auto_approval
    environ = without_secrets(os.environ, work.secrets.variables)
    git = bool(auto and auto.writes_git)
    if not auto and "git" in command:
        git = await anyio.to_thread.run_sync(_only_git_writes, command, work.workspace)
    if git:
        from handrail.tools.git import without_hooks

        environ = without_hooks(environ)
    if auto and not auto.code:
        environ = without_workspace_programs(work.workspace.root, environ)
    text = auto.text if auto and work.opened is None else command  # in mode sandbox as it is written
    readable: tuple[str, ...] = ()
    if auto and auto.git:
        from handrail.tools.safe_git import git_function

        try:
            function, readable = await git_function(work.workspace.root, environ)
        except (OSError, UnusableRepository) as problem:
            message = f"git was not run, because this repository cannot be read safely. {problem}"
            raise tool_refused(Run.name, "command_not_allowed", message) from problem
        text = f"{function}\n{text}"
    # The system's bash, even if the PATH finds one in the workspace.
    words = [find_program("bash") or "bash", "-c", text]
    return PreparedCommand(words, environ, network or bool(auto and auto.network), git, readable)


def _only_git_writes(command: str, workspace: Workspace) -> bool:
    """Whether the command only lets git write `.git`, also with the names that its patterns match."""
    from handrail.policy.commands.script import writes_git
    from handrail.tools.commands.expansion import expand_patterns
    from handrail.tools.commands.parse import parse_command

    with suppress(PathProblem):
        return writes_git(expand_patterns(parse_command(command), workspace))
    return False


def sandbox_setup(
    work: CallContext, command: PreparedCommand, before: "StatIndex", found: WorkspaceRisks
) -> SandboxSetup:
    """Where the command runs; more is closed to it if nobody was asked, and always in mode `sandbox`."""
    auto, in_mode = work.auto_approval, work.opened is not None
    if auto and not auto.named and not in_mode and found.overflow:
        message = f"The workspace has {found.overflow}, more than can be protected from a command that nobody"
        message += " approved. Use the tools for files, or ask the user to list the command (commands.allow)."
        raise tool_refused("run", "too_large", message)
    reads = bool(auto and auto.reads_only and not auto.network)
    ours = work.workspace.program_paths
    return SandboxSetup(
        work.workspace.root,
        work.workspace.state_folders,
        command.environ,
        git=command.git,
        repositories=found.repositories,
        secrets=found.secrets if in_mode or (auto and not auto.named) else (),
        linked=found.linked if in_mode or auto else (),
        writable=work.opened or (),
        local_sockets=not in_mode,
        readable=command.readable,
        own=(*ours, *own_hard_links(before, work.workspace.root, ours)),
        reads=reads,
        uses_git=auto is None and "git" in command.words[-1],
        log=None if reads else work.session.log.folder,
    )


WITH_NETWORK = "with network: "
IN_BACKGROUND = "in the background: "
WITH_SECRETS = "with your {}: "


class RunArguments(Value):
    command: Annotated[str, Meta(min_length=1)]
    timeout: Annotated[float, Meta(gt=0, le=600, description="seconds, 30 if left out")] = 30
    network: Annotated[bool, Meta(description="if needed; the user is asked")] = False
    background: bool = False
    todo: str = ""
    secrets: Annotated[tuple[Annotated[str, Meta(max_length=100)], ...], HiddenFromModel()] = ()
    """Names of credentials that the command gets as variables; the user is asked."""


class FinishedCommand(NamedTuple):
    ended: ProcessResult
    reached: str
    changed: ChangeReport


class Run(Tool[RunArguments]):
    name = "run"
    description = "Run a bash command in the workspace, without stdin and network."
    action = "run"
    sees_disk = True
    arguments = RunArguments

    def __init__(
        self,
        sandbox: Sandbox,
        background: BackgroundCommands | None = None,
        readable_secrets: Sequence[str] = (),
        credentials: "StoredCredentials | None" = None,
    ) -> None:
        """`readable_secrets` are patterns of files that commands may read in mode `sandbox`."""
        self._credentials = credentials
        self._sandbox = sandbox
        self._background = background or BackgroundCommands()
        self._readable_secrets = tuple(readable_secrets)
        self._watcher: ChangeWatcher | None = None

    def close(self) -> None:
        """Remove the copies that were taken of the workspace."""
        if self._watcher:
            self._watcher.close()

    def target(self, arguments: RunArguments) -> CallTarget:
        todos = (arguments.todo,) if arguments.todo else ()
        return CallTarget(
            command=arguments.command,
            network=arguments.network,
            secrets=arguments.secrets,
            todos=todos,
            background=arguments.background,
        )

    def summary(self, arguments: RunArguments, work: CallContext) -> str:
        return f"{command_label(arguments)}{one_line(arguments.command)}"

    def subject(self, arguments: RunArguments, work: CallContext) -> dict[str, Any]:
        subject = {"command": arguments.command, "network": arguments.network}
        return subject | ({"secrets": sorted(arguments.secrets)} if arguments.secrets else {})

    def prepare(self, arguments: RunArguments, work: CallContext) -> Prepared:
        if arguments.secrets:
            self._secrets(arguments, work)  # raises where one is not stored: the user is not asked then
        return Prepared(f"{command_label(arguments)}{arguments.command}")

    async def is_confined(self) -> bool:
        return (await self._sandbox.protection()).confines

    async def sandbox_facts(self, command: CommandFacts, workspace: Workspace) -> SandboxFacts:
        from handrail.tools.sandbox.full_sandbox import sandbox_facts

        return sandbox_facts(await self._sandbox.protection(), workspace, command)

    async def run(self, arguments: RunArguments, work: CallContext) -> Outcome:
        command = await prepare_command(arguments.command, work, network=arguments.network)
        if arguments.secrets:
            command = command._replace(environ={**command.environ, **self._secrets(arguments, work)})
        if arguments.background:
            return await self._run_in_background(arguments, work, command)
        output = CapturedOutput()
        live = LiveOutput(work.session.live, work.call_id, work.secrets)

        def add(chunk: bytes) -> bool:
            live.add(chunk)
            return output.add(chunk)

        # Those in the background may have made the changes too.
        others = [each.command for each in self._background.running(work.session.id)]
        also = f"; in the background ran: {', '.join(others)}" if others else ""
        label, watcher = one_line(arguments.command) + also, self._change_watcher(work)
        confined = not others and not command.git and (await self._sandbox.protection()).name == "bubblewrap"
        async with watcher.watch(work, label, self._recorded_secrets(work), confined=confined) as observed:
            setup = await self._setup(work, command, observed.before, observed.readable, observed.sensitive)
            done = await self._run_confined(command, setup, arguments.timeout, add, [])
        made = new_repositories(observed.before, observed.after) if work.auto_approval else []
        output.transform(work.secrets.hide_bytes)
        ended = done._replace(changed=done.changed + ChangeReport(left=tuple(made)))
        outcome = await self._outcome(ended, output, command, arguments.timeout, work)
        return with_note(outcome, observed.note, observed.summary) if observed.summary else outcome

    def _secrets(self, arguments: RunArguments, work: CallContext) -> dict[str, str]:
        from handrail.tools.credential_prompt import secret_environment

        if self._credentials is None:
            raise tool_refused(self.name, "invalid_arguments", "There are no stored credentials here.")
        return secret_environment(self._credentials, arguments.secrets, work)

    def _change_watcher(self, work: CallContext) -> "ChangeWatcher":
        from handrail.tools.commands.file_changes import ChangeWatcher

        if self._watcher is None or self._watcher.workspace.root != work.workspace.root:
            self.close()
            self._watcher = ChangeWatcher(work.workspace)
        return self._watcher

    def _recorded_secrets(self, work: CallContext) -> "ReadableSecrets | None":
        """In mode `sandbox`, where everything is recorded: which of the secret names are like others."""
        if work.session.state.mode != "sandbox":
            return None
        from handrail.tools.sandbox.full_sandbox import created_in, readable_secrets

        patterns, created = self._readable_secrets, created_in(work.session, work.workspace)
        return lambda index: readable_secrets(index, patterns, created)

    async def _setup(
        self,
        work: CallContext,
        command: PreparedCommand,
        index: "StatIndex",
        readable: Collection[str],
        named: SensitivePaths | None = None,
    ) -> SandboxSetup:
        """Where the command runs; raises ToolRefused if mode `sandbox` cannot protect this workspace."""
        if work.opened is None:
            return sandbox_setup(work, command, index, find_risks(index, named))
        from handrail.tools.sandbox.full_sandbox import (
            find_risks_of_mode,
            protection_problem,
            workspace_problem,
        )

        risks, protection = find_risks_of_mode(index, readable), await self._sandbox.protection()
        if problem := protection_problem(protection) or workspace_problem(protection, risks):
            raise tool_refused("run", "mode_forbids", f"{problem} The command did not run; tell the user.")
        return sandbox_setup(work, command, index, risks)

    async def _run_in_background(
        self, arguments: RunArguments, work: CallContext, command: PreparedCommand
    ) -> Outcome:
        from handrail.tools.commands.file_changes import workspace_snapshot

        secrets = self._recorded_secrets(work)
        everything = secrets is not None
        before = await anyio.to_thread.run_sync(
            partial(workspace_snapshot, work.workspace.root, everything=everything)
        )
        setup = await self._setup(work, command, before, secrets(before) if secrets else ())

        def made() -> ChangeReport:
            if not work.auto_approval:
                return ChangeReport()
            after = workspace_snapshot(work.workspace.root, everything=everything)
            return ChangeReport(left=tuple(new_repositories(before, after)))

        async def follow(running: BackgroundCommand) -> BackgroundResult:
            label, watcher = one_line(arguments.command), self._change_watcher(work)
            reports: list[ChangeReport] = []
            try:
                async with watcher.watch_background(work, label, secrets) if secrets else nullcontext():
                    done = await self._run_confined(command, setup, math.inf, running.take, reports)
                running.output.transform(work.secrets.hide_bytes)
            finally:  # also if it is stopped
                with anyio.CancelScope(shield=True):
                    reports.append(await anyio.to_thread.run_sync(made))
                    running.changed = sum(reports, ChangeReport())
            done = done._replace(changed=running.changed)
            outcome = await self._outcome(done, running.output, command, math.inf, work)
            return BackgroundResult(outcome, done.ended.code, limited=bool(outcome.error))

        running = self._background.start(work, one_line(arguments.command), follow)
        await running.ended_within()
        return running.outcome()

    async def _run_confined(
        self,
        command: PreparedCommand,
        setup: SandboxSetup,
        timeout: float,
        on_output: OnOutput,
        reports: list[ChangeReport],
    ) -> FinishedCommand:
        """`reports` gets what changed of the protected files, also if the command is cancelled."""
        ended, reached = await run_confined(
            self._sandbox,
            command.words,
            setup,
            timeout=timeout,
            on_output=on_output,
            network=command.network,
            reports=reports,
        )
        return FinishedCommand(ended, reached, sum(reports, ChangeReport()))

    async def _outcome(
        self,
        done: FinishedCommand,
        output: CapturedOutput,
        command: PreparedCommand,
        timeout: float,
        work: CallContext,
    ) -> Outcome:
        outcome = command_outcome(done.ended, output, timeout)
        if done.reached:
            note = f"[it reached the limit on its {done.reached}; make it use less]"
            outcome = with_note(outcome, note, f"AT ITS LIMIT of {done.reached}")
        if command.git and outcome.status == "ok":
            outcome = with_note(outcome, "[the repository's hooks were not run]")
        outcome = with_protected_changes(outcome, done.changed)
        outcome = with_sandbox(
            outcome,
            await self._sandbox.protection(),
            network=command.network,
            full=work.opened is not None,
        )
        if work.opened:
            places = ", ".join(work.opened)
            outcome = with_note(outcome, f"[changes in {places} are not recorded]", f"{places} NOT RECORDED")
        return outcome


def command_label(arguments: RunArguments) -> str:
    """What the user reads before the command itself."""
    secrets = WITH_SECRETS.format(", ".join(arguments.secrets)) if arguments.secrets else ""
    return IN_BACKGROUND * arguments.background + WITH_NETWORK * arguments.network + secrets


CHECK_SECONDS = 300.0


class Checker:
    """Runs the user's check like a command of the model, but without asking: the user named it."""

    def __init__(
        self, session: Session, workspace: Workspace, run: Run, secrets: Secrets = NO_SECRETS
    ) -> None:
        self._session = session
        self._workspace = workspace
        self._run = run
        self._secrets = secrets

    async def check(self, command: str, turn_id: str, attempt: int) -> CheckFinished:
        """Run the check and record it; returns the recorded result."""
        check_id = new_id("v")
        ids = {"turn_id": turn_id, "check_id": check_id}
        self._session.append(CheckStarted(**ids, command=command, attempt=attempt))
        arguments = RunArguments(command=command, timeout=CHECK_SECONDS)
        work = CallContext(
            self._session, self._workspace, turn_id, check_id, ExitStack(), secrets=self._secrets
        )
        outcome = await self._run.run(arguments, work)
        finished = CheckFinished(
            **ids,
            passed=outcome.status == "ok",
            summary=self._secrets.hide(outcome.summary),
            content=self._secrets.hide(outcome.content),
        )
        self._session.append(finished, settle=[check_id])
        return finished
