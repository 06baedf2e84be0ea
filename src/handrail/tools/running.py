"""The run tool."""

import codecs
import hashlib
import os
import re
import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import anyio.to_thread
from pydantic import Field

from handrail.policy.git_writes import writes_git
from handrail.protocol.errors import ToolError
from handrail.protocol.values import Value
from handrail.sessions.live import Live
from handrail.tools.base import About, Outcome, Tool, Work
from handrail.tools.clip import plain
from handrail.tools.editing import TodoId
from handrail.tools.environment import without_folders_of, without_secrets
from handrail.tools.git import quiet_git, without_filters
from handrail.tools.output import Output
from handrail.tools.process import Ended, run_process
from handrail.tools.sandbox.closed import changed_files, closed_files
from handrail.tools.sandbox.places import Ground
from handrail.tools.sandbox.protection import Protection
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.sandbox.surveyed import new_repositories, surveyed
from handrail.tools.secrets import NO_SECRETS, Secrets
from handrail.tools.shell_parsing import parse
from handrail.tools.watching import Told, Watch

if TYPE_CHECKING:
    from handrail.workspace.index import StatIndex

MODEL_LIMIT = 3_000
SCREEN_LIMIT = 5_000
WITH_NETWORK = "with network: "
LIVE_LIMIT = 64_000
"""Characters that are shown while a command runs; its end is shown when it has ended."""
LINE_LIMIT = 160
LOOKS_REFUSED = re.compile(
    r"read-only file system|permission denied|operation not permitted|network is unreachable|"
    r"name resolution|could not resolve|couldn't resolve|connection refused|"
    r"\b(EROFS|EACCES|EPERM|ENETUNREACH|EAI_AGAIN|ENOTFOUND|ECONNREFUSED)\b",
    re.IGNORECASE,
)
"""Words of a command that a sandbox may have been in the way of."""
MOST_NAMED = 5
NO_HOOKS = "[hooks of the repository were not run]"


class RunArguments(Value):
    command: Annotated[str, Field(min_length=1)]
    timeout: Annotated[float, Field(gt=0, le=600, description="seconds, 30 if left out")] = 30
    network: Annotated[bool, Field(description="only if the command needs it; the user is asked")] = False
    todo: TodoId = ""


class Run(Tool[RunArguments]):
    name = "run"
    description = "Run a bash command in the workspace, without stdin and network. Not for servers."
    action = "run"
    arguments = RunArguments

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._watch: Watch | None = None

    def about(self, arguments: RunArguments) -> About:
        return About(command=arguments.command, network=arguments.network, todo=arguments.todo)

    def summary(self, arguments: RunArguments, work: Work) -> str:
        return f"{WITH_NETWORK * arguments.network}{one_line(arguments.command)}"

    def subject(self, arguments: RunArguments, work: Work) -> dict[str, Any]:
        return {"command": arguments.command, "network": arguments.network}

    def preview(self, arguments: RunArguments, work: Work) -> str:
        return f"{WITH_NETWORK * arguments.network}{arguments.command}"

    async def confined(self) -> bool:
        return (await self._sandbox.protection()).files

    async def run(self, arguments: RunArguments, work: Work) -> Outcome:
        output = Output()
        live = Screen(work.session.live, work.call_id, work.secrets)

        def take(chunk: bytes) -> bool:
            output.add(chunk)
            live.add(chunk)
            return True

        unasked = work.unasked
        network = arguments.network or bool(unasked and unasked.network)
        protection = await self._sandbox.protection()
        environ = without_secrets(os.environ, work.secrets.variables)
        git = await anyio.to_thread.run_sync(is_gits_own, arguments.command)
        environ = quiet_git(environ) if git else environ
        if unasked and unasked.git:
            environ = await without_filters(work.workspace.root, environ)
        if unasked and not unasked.code:
            environ = without_folders_of(work.workspace.root, environ)
        words = ["bash", "-c", unasked.text if unasked else arguments.command]
        async with self._watched(work).around(work, one_line(arguments.command)) as told:
            ground = ground_of(work, environ, told.before, git=git)
            before = closed_files(ground)
            async with self._sandbox.confine(words, ground, network=network) as confined:
                ended = await run_process(
                    confined.words,
                    folder=ground.workspace,
                    environment=confined.environ,
                    timeout=arguments.timeout,
                    take=take,
                )
        if protection.name == "bubblewrap":
            # What is in the group after the end is bubblewrap itself; what the command left, it has told.
            ended = ended._replace(code=signal_of(ended.code), left_running=False)
        output.change(work.secrets.hide_bytes)
        outcome = outcome_of(ended, output, arguments.timeout)
        outcome = with_note(outcome, NO_HOOKS) if git and outcome.status == "ok" else outcome
        opened = changed_files(before, closed_files(ground))
        opened += new_repositories(told.before, told.after) if unasked else []
        outcome = with_opened(outcome, opened)
        return with_changes(with_sandbox(outcome, protection, network=network), told)

    def _watched(self, work: Work) -> Watch:
        if self._watch is None or self._watch.workspace.root != work.workspace.root:
            self._watch = Watch(work.workspace)
        return self._watch


def ground_of(work: Work, environ: Mapping[str, str], before: "StatIndex", *, git: bool) -> Ground:
    """Where the command works; what only the user's word opens is closed where nobody was asked."""
    found = surveyed(before)
    return Ground(
        work.workspace.root,
        work.workspace.state_folders,
        environ,
        git=git,
        repositories=found.repositories,
        secrets=found.secrets if work.unasked and not work.unasked.named else (),
        linked=found.linked if work.unasked else (),
    )


class Screen:
    """Output as it comes, for whoever watches; stops at a limit so that no output fills the memory."""

    def __init__(self, live: Live, call_id: str, secrets: Secrets = NO_SECRETS) -> None:
        self._live, self._call_id, self._secrets = live, call_id, secrets
        self._held = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._left = LIVE_LIMIT

    def add(self, chunk: bytes) -> None:
        if self._left <= 0:
            return
        text = self._secrets.hide(self._held + plain(self._decoder.decode(chunk[: self._left])))
        self._left -= len(chunk)
        # What may be the beginning of a secret is held until more of it has come.
        ready = len(text) - self._secrets.begun(text)
        text, self._held = text[:ready], text[ready:]
        if self._left <= 0:
            text += "\n[… the end of the output is shown when the command has ended …]\n"
        if text:
            self._live.add(self._call_id, "output", text)


def one_line(command: str) -> str:
    """The command on one line; where that does not hold all of it, with a hash of all of it."""
    first = " ".join(command.split())
    if plain(first) == command and len(command) <= LINE_LIMIT:
        return command
    digest = hashlib.sha256(command.encode()).hexdigest()[:8]
    return f"{plain(first)[: LINE_LIMIT - 10]} … #{digest}"


def outcome_of(ended: Ended, output: Output, timeout: float) -> Outcome:
    """How the command ended, with as much of its output as a model and a screen take."""
    ok = ended.code == 0
    lasted = f"{ended.seconds:.1f} s"
    error = None
    if ended.timed_out:
        summary = f"stopped after {timeout:g} s"
        message = f"Stopped at its time limit of {timeout:g} s. Give a longer timeout if it needs one."
        error = ToolError(tool="run", reason="timeout", message=message)
    elif ended.code is not None and ended.code < 0:
        summary = f"ended by signal {-ended.code} in {lasted}"
    else:
        summary = f"exit {ended.code} in {lasted}"
    notes = [summary]
    if ended.left_running:
        notes.append("processes it left in the background were stopped")
    content = plain(output.ends(MODEL_LIMIT)).rstrip("\n") or "(no output)"
    return Outcome(
        summary=summary,
        content=f"[{'; '.join(notes)}]\n{content}",
        shown=plain(output.ends(SCREEN_LIMIT)).rstrip("\n"),
        status="ok" if ok else "failed",
        error=error,
        output=output.whole() if output.total > MODEL_LIMIT else b"",
    )


def signal_of(code: int | None) -> int | None:
    """The code as it is without bubblewrap, which tells of a signal as a shell does: 128 and its number."""
    signals = {int(number) for number in signal.Signals}
    return 128 - code if code is not None and code - 128 in signals else code


def with_sandbox(outcome: Outcome, protection: Protection, *, network: bool) -> Outcome:
    """The outcome that says how the command was confined, and tells the model when that was in its way."""
    content = outcome.content
    if outcome.status == "failed" and LOOKS_REFUSED.search(content):
        content = "\n".join(filter(None, (content, protection.told(network=network))))
    summary = f"{outcome.summary}, {protection.title(network=network)}"
    return outcome.changed(summary=summary, content=content)


def with_note(outcome: Outcome, note: str) -> Outcome:
    """The outcome with a line for the model."""
    return outcome.changed(content=f"{outcome.content}\n{note}")


def with_opened(outcome: Outcome, names: list[str]) -> Outcome:
    """The outcome that tells the user and the model which files it changed that no command should change."""
    if not names:
        return outcome
    shown = ", ".join(plain(name) for name in names[:MOST_NAMED]) + " and more" * (len(names) > MOST_NAMED)
    changed = outcome.changed(summary=f"{outcome.summary}, CHANGED {shown}")
    return with_note(changed, f"[it changed {shown}, which no command should: the user was told]")


def is_gits_own(command: str) -> bool:
    """Whether the command is nothing but git's own work on `.git`; waits for the shell grammar."""
    return "git" in command and writes_git(parse(command))


def with_changes(outcome: Outcome, told: Told) -> Outcome:
    """The outcome that names the files of the workspace that changed while the command ran."""
    if not told.summary:
        return outcome
    return outcome.changed(
        summary=f"{outcome.summary}, {told.summary}", content=f"{outcome.content}\n{told.note}"
    )
