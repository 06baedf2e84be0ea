"""Run the user's hooks: before and after calls, before a turn ends, at session start.

A hook is the user's own program, so no sandbox confines it. The model cannot become its author: a hook runs
from the folder of the settings that name it, and uses no untrusted file of the workspace.

A hook can only narrow: what it does not deny is decided and asked about as usual.
"""

import hashlib
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from msgspec import DecodeError, convert
from msgspec.json import decode
from msgspec.structs import asdict, replace

from handrail.config.open_file import read_file
from handrail.config.remove_tree import remove_tree
from handrail.config.settings import Hook, workspace_file
from handrail.config.toml_file import MAX_BYTES as MAX_TRUSTED_BYTES
from handrail.protocol.errors import ConfigProblem, ToolRefused
from handrail.protocol.events import HookSpoke, SessionHooked, ToolFinished
from handrail.protocol.ids import new_id
from handrail.protocol.problems import problems_in
from handrail.protocol.upcast import is_storable
from handrail.protocol.values import HookPoint, ToolCall, Value
from handrail.sessions.session import Session
from handrail.storage.scratch import make_scratch, put_into_scratch
from handrail.tools.commands.output import CapturedOutput
from handrail.tools.gate.facts import PendingCall, ToolLookup
from handrail.tools.process import ProcessResult, run_process
from handrail.tools.sandbox.landlock_launcher import LEFT_BEHIND_NOTE
from handrail.tools.sandbox.launcher_program import guarded_command
from handrail.tools.secrets import Secrets, path_outside, without_secrets
from handrail.tools.tool import head_and_tail, strip_control_codes, tool_refused

MAX_OUTPUT = 4_000_000  # bytes of an answer, which may hold the text of a whole file
MAX_ERRORS = 1_000
MAX_TEXT = 8_000
MAX_NAME = 80
CHUNK = 1 << 16


class HookAnswer(Value):
    """A hook's answer; `ALLOWED_FIELDS` says which fields it may have at which point."""

    deny: str | None = None
    arguments: dict[str, Any] | None = None
    tell: str | None = None
    demand: str | None = None


ALLOWED_FIELDS: Mapping[HookPoint, tuple[str, ...]] = {
    "before_tool": ("deny", "arguments"),
    "after_tool": ("tell",),
    "before_end": ("demand",),
    "session_start": ("tell",),
}


class HookResult(NamedTuple):
    answer: HookAnswer
    failed: str = ""


def hook_name(hook: Hook) -> str:
    """The hook's command as in the settings, on one line."""
    words = strip_control_codes(shlex.join(hook.settings.run))
    return words if len(words) <= MAX_NAME else f"{words[: MAX_NAME - 1]}…"


def hook_problem(hook: Hook, workspace: Path) -> str:
    """Why the hook cannot be started, without starting it; empty if it probably can."""
    with ExitStack() as copies:
        try:
            _command_line(hook, workspace, path_outside(workspace, os.environ), copies)
        except OSError as error:
            return str(error.strerror or error)
    return ""


async def run_hook(hook: Hook, question: Mapping[str, Any], workspace: Path, secrets: Secrets) -> HookResult:
    """The hook's answer to the question; an answer that cannot be parsed is a failure."""
    path = path_outside(workspace, os.environ)
    output, errors = bytearray(), CapturedOutput(MAX_ERRORS, MAX_ERRORS)
    with ExitStack() as copies:
        try:
            words = _command_line(hook, workspace, path, copies)
        except OSError as error:
            return _failed(str(error.strerror or error), secrets)
        environ = without_secrets(os.environ, secrets.variables)
        environ |= {"HANDRAIL_WORKSPACE": str(workspace), "PATH": path}
        stdin = json.dumps(question).encode()
        ended = await _run_program(hook, words, stdin, environ, output=output, errors=errors)
    if isinstance(ended, str):
        return _failed(ended, secrets)
    if len(output) > MAX_OUTPUT:
        return _failed(f"it printed more than {MAX_OUTPUT:,} bytes", secrets)
    if ended.timed_out:
        return _failed(f"it took longer than {hook.settings.seconds:g} s", secrets)
    if ended.code != 0:
        message = strip_control_codes(errors.head_and_tail(MAX_ERRORS)).strip()
        signalled = ended.code is not None and ended.code < 0
        how = f"was ended by signal {-(ended.code or 0)}" if signalled else f"ended with status {ended.code}"
        return _failed(f"it {how}{f': {message}' if message else ''}", secrets)
    return _parse_answer(hook, bytes(output).removesuffix(LEFT_BEHIND_NOTE), secrets)


async def _run_program(
    hook: Hook,
    words: list[str],
    question: bytes,
    environ: Mapping[str, str],
    *,
    output: bytearray,
    errors: CapturedOutput,
) -> ProcessResult | str:
    """How the program ended, or why it could not be started."""

    def take(chunk: bytes) -> bool:
        output.extend(chunk)
        return len(output) <= MAX_OUTPUT

    def read_ready() -> None:
        with suppress(BlockingIOError):
            errors.add(os.read(reading, CHUNK))

    async def read_all() -> None:
        while True:
            await anyio.wait_readable(reading)
            read_ready()

    reading, writing = os.pipe()
    with ExitStack() as opened:
        opened.callback(os.close, reading)
        opened.callback(os.close, writing)
        os.set_blocking(reading, False)
        # A file, not a pipe: a hook that does not read its input holds nobody up.
        stdin = opened.enter_context(tempfile.TemporaryFile())
        stdin.write(question)
        stdin.seek(0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read_all)
            try:
                ended: ProcessResult | str = await run_process(
                    guarded_command(words) if sys.platform == "linux" else words,
                    folder=hook.folder,
                    environment=environ,
                    timeout=hook.settings.seconds,
                    on_output=take,
                    stderr=writing,
                    stdin=stdin.fileno(),
                )
            except OSError as error:
                ended = f"it cannot be started ({error.strerror or error})"
            tasks.cancel_scope.cancel()
        read_ready()
        return ended


def _command_line(hook: Hook, workspace: Path, path: str, copies: ExitStack) -> list[str]:
    """The command line, valid while `copies` is open; raises OSError if it is missing or untrusted."""
    first, *others = [os.path.expanduser(word) for word in hook.settings.run]
    if "/" not in first:
        found = shutil.which(first, path=path)
        if found is None:
            raise FileNotFoundError(f"there is no program {first} on your PATH outside the workspace")
        first = found
    root = Path(os.path.realpath(workspace))
    return [_checked_argument(word, hook, root, copies) for word in (first, *others)]


def _checked_argument(word: str, hook: Hook, root: Path, copies: ExitStack) -> str:
    """The argument to use; raises PermissionError for an untrusted file of the workspace."""
    file = workspace_file(word, hook.folder, root)
    if file is None:
        return word
    closed = file.is_relative_to(os.path.realpath(hook.folder))
    if not hook.files and closed:  # the workspace may be the folder with the user's settings
        return word
    data = read_file(file, MAX_TRUSTED_BYTES) if hook.files else b""
    if hook.files.get(file.relative_to(root).as_posix()) != hashlib.sha256(data).hexdigest():
        way = "review it with `handrail trust`" if hook.files else "keep it beside your settings"
        raise PermissionError(f"{file.relative_to(root)} is an untrusted file of the workspace: {way}")
    if closed:
        return word
    # A background command could replace the file before the hook starts.
    copy = make_scratch()
    copies.callback(remove_tree, copy)
    put_into_scratch(copy, file.name, data, file.stat().st_mode & 0o700)
    return str(copy / file.name)


def _parse_answer(hook: Hook, output: bytes, secrets: Secrets) -> HookResult:
    """The printed answer; no output is an empty answer."""
    if not output.strip():
        return HookResult(HookAnswer())
    try:
        data = decode(output)
    except (DecodeError, UnicodeError, RecursionError) as error:
        return _failed(f"it printed an invalid answer (output: {error})", secrets)
    if found := problems_in(data, HookAnswer):
        why = f"{found[0].where or 'output'}: {found[0].should}"
        return _failed(f"it printed an invalid answer ({why})", secrets)
    answer = convert(data, HookAnswer)
    allowed = ALLOWED_FIELDS[hook.settings.on]
    if wrong := next((name for name in sorted(data) if name not in allowed), ""):
        return _failed(
            f"it said `{wrong}`, but {hook.settings.on} takes only {' or '.join(allowed)}", secrets
        )
    texts = {
        name: _clean_text(value, secrets) for name, value in asdict(answer).items() if isinstance(value, str)
    }
    return HookResult(replace(answer, **texts))


def _failed(how: str, secrets: Secrets) -> HookResult:
    return HookResult(HookAnswer(), failed=_clean_text(how, secrets))


def _clean_text(text: str, secrets: Secrets) -> str:
    return head_and_tail(secrets.hide(strip_control_codes(text)).strip(), MAX_TEXT)


DENIED_MESSAGE = "The user's hook ({hook}) does not allow this: {text}. Do not look for a way around it."
FAILED_MESSAGE = (
    "The user's hook ({hook}) failed, so the call is denied: {text}. Only the user can repair the hook. Go on"
    " with what needs no such call, and tell the user."
)
START_FAILED_MESSAGE = (
    "{place}: the hook {hook} failed when the session started: {text}. Correct or remove it, then send your"
    " message again."
)


class Hooks:
    """The user's hooks in one session."""

    def __init__(self, hooks: Sequence[Hook], session: Session, workspace: Path, secrets: Secrets) -> None:
        self._hooks = tuple(hooks)
        self._session = session
        self._workspace = workspace
        self._secrets = secrets

    def before_tool(self, tool: str) -> list[Hook]:
        """The hooks that run before a call of the tool, in order."""
        return self._matching("before_tool", tool)

    async def ask_before(self, hook: Hook, call: ToolCall, turn_id: str) -> HookSpoke | None:
        """The hook's changed arguments, or None if it changed nothing; raises ToolRefused if it denies."""
        question = {"call": call.id, "tool": call.name, "arguments": call.arguments}
        spoke = await self._ask(hook, turn_id, question)
        if spoke is None:
            return None
        self._session.append(spoke)
        if spoke.arguments is None:
            template = DENIED_MESSAGE if spoke.did == "denied" else FAILED_MESSAGE
            message = template.format(hook=spoke.hook, text=spoke.text.rstrip("."))
            raise tool_refused(call.name, "hook_denied", message)
        return spoke

    async def after_tool(self, call: ToolCall, ended: ToolFinished) -> None:
        """Run the hooks for a call that has ended, and record what they say."""
        question = {"call": call.id, "tool": call.name, "arguments": call.arguments}
        question |= {"status": ended.status, "summary": ended.summary, "content": ended.content}
        for hook in self._matching("after_tool", call.name):
            if spoke := await self._ask(hook, ended.turn_id, question):
                self._session.append(spoke)

    async def before_end(self, turn_id: str, answer: str) -> HookSpoke | None:
        """The first hook's objection to the end of the turn, or its failure; not recorded yet."""
        turn = self._session.state.turn
        made = turn.made if turn else []
        files = dict.fromkeys(file.path for change in made for file in change.files)
        question = {"answer": answer, "files": list(files), "demands": turn.demands if turn else 0}
        for hook in self._matching("before_end"):
            if spoke := await self._ask(hook, turn_id, question):
                return spoke
        return None

    async def session_start(self) -> None:
        """Run the session's start hooks, once; raises ConfigProblem if one fails."""
        if self._session.state.hooked is not None:
            return
        texts = []
        for hook in self._matching("session_start"):
            if spoke := await self._ask(hook, "", {}):
                if spoke.did == "failed":
                    message = START_FAILED_MESSAGE.format(place=hook.place, hook=spoke.hook, text=spoke.text)
                    raise ConfigProblem(message)
                texts.append(f"[{spoke.hook}]\n{spoke.text}")
        self._session.append(SessionHooked(text="\n\n".join(texts)))

    def _matching(self, on: HookPoint, tool: str = "") -> list[Hook]:
        hooks = [hook for hook in self._hooks if hook.settings.on == on]
        return [hook for hook in hooks if not hook.settings.match or tool in hook.settings.match]

    async def _ask(self, hook: Hook, turn_id: str, question: dict[str, Any]) -> HookSpoke | None:
        """What the hook said, as an event; None if it said nothing."""
        on, state = hook.settings.on, self._session.state
        common = {"on": on, "session": self._session.id, "workspace": str(self._workspace)}
        name, run_id = hook_name(hook), new_id("h")
        self._session.live.progress(run_id, f"hook {name}")
        try:
            asked = common | {"mode": state.mode, "turn": turn_id} | question
            result = await run_hook(hook, asked, self._workspace, self._secrets)
        finally:
            self._session.live.settle(run_id)
        spoke = HookSpoke(
            turn_id=turn_id,
            on=on,
            hook=name,
            did="failed",
            text=result.failed,
            call_id=question.get("call", ""),
            tool=question.get("tool", ""),
        )
        answer = result.answer
        if result.failed:
            return spoke
        if answer.deny is not None:
            return replace(spoke, did="denied", text=answer.deny or "no reason given")
        if answer.arguments is not None and answer.arguments != question["arguments"]:
            changed = replace(spoke, did="changed", arguments=answer.arguments)
            if not is_storable(changed):
                return replace(spoke, text="it gave arguments that cannot be stored")
            return changed
        if answer.tell:
            return replace(spoke, did="told", text=answer.tell)
        if answer.demand is not None:
            return replace(spoke, did="demanded", text=answer.demand or "no reason given")
        return None


@contextmanager
def blame_hook(hook: str) -> Iterator[None]:
    """Make a refusal say that a hook changed the arguments."""
    try:
        yield
    except ToolRefused as problem:
        message = f"The user's hook ({hook}) changed the arguments, and then: {problem.error.message}"
        problem.error = replace(problem.error, message=message)
        raise


def change_note(pending: PendingCall, limit: int = 2_000) -> str:
    """Tells the model how a hook changed the arguments."""
    arguments = json.dumps(pending.call.arguments, ensure_ascii=False)
    shown = arguments if len(arguments) <= limit else f"{arguments[:limit]}…"
    return f"[the user's hook ({pending.changed_by_hook}) changed the arguments to {shown}]"


def refuse_unknown_tools(hooks: Sequence[Hook], tools: ToolLookup) -> None:
    """Raises ConfigProblem for a hook that names a tool which does not exist."""
    from handrail.policy.intent_rules import PROPOSAL

    for hook in hooks:
        for name in hook.settings.match:
            if name != PROPOSAL and tools.find(name) is None:
                known = ", ".join([*tools.names("auto"), PROPOSAL])
                message = f"{hook.place}: hooks.match: there is no tool {name!r}. The tools are: {known}."
                raise ConfigProblem(message)
