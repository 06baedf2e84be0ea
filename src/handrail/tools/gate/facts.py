"""Facts about a call that decide whether it may run: arguments, paths, command, intent."""

import hashlib
import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from anyio import to_thread
from msgspec import ValidationError, convert
from msgspec.structs import asdict, fields, replace

from handrail.changes.protected.restore import restore_now
from handrail.policy.call_facts import (
    ALLOW,
    Action,
    Allow,
    Ask,
    CommandFacts,
    Deny,
    Facts,
    IntentFacts,
    PathFacts,
    SandboxFacts,
    SourceFacts,
)
from handrail.policy.decide import decide
from handrail.protocol.errors import StorageProblem, ToolRefused
from handrail.protocol.problems import problems_in
from handrail.protocol.values import CommandEntry, Mode, ToolCall, Value
from handrail.sessions.session import Session
from handrail.tools.secrets import NO_SECRETS, Secrets
from handrail.tools.tool import CallContext, Tool, tool_refused
from handrail.tools.web.fetch import is_url_in, user_texts
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import INTENTS_FILE, IntentFile, SavedFiles
from handrail.workspace.paths import ResolvedPath, inspect_path

MAX_PROBLEMS = 4

Arguments = TypeVar("Arguments", bound=Value)


def parse_arguments(call: ToolCall, kind: type[Arguments]) -> Arguments:
    """The call's arguments, without those that are null; raises ToolRefused if they are invalid."""
    if call.read == "cut":
        message = "The answer was cut off, so none of it was done. Send the calls again, in smaller parts."
        raise tool_refused(call.name, "truncated", message)
    if call.problem:
        raise _invalid_arguments(call, f"The arguments could not be read: {call.problem}.")
    arguments = {name: value for name, value in call.arguments.items() if value is not None}
    if not _is_text(arguments):
        raise _invalid_arguments(
            call, "The arguments have invalid characters (NUL or half a surrogate pair)."
        )
    arguments = {name: _loosened(value, kind, name) for name, value in arguments.items()}
    try:
        return convert(arguments, kind)
    except ValidationError as error:
        found = []
        for problem in problems_in(arguments, kind)[:MAX_PROBLEMS]:
            unknown = f"is not an argument; the arguments are: {', '.join(problem.known)}"
            found.append(f"`{problem.where}` {unknown if problem.kind == 'unknown' else problem.should}")
        raise _invalid_arguments(call, "; ".join(found) + ".") from error


def _loosened(value: Any, kind: type[Value], name: str) -> Any:
    """A top-level number or boolean that the model gave as text, converted."""
    field = next((field for field in fields(kind) if field.name == name), None)
    if field is None or not isinstance(value, str | float | int):
        return value
    try:
        return convert(value, field.type, strict=False)
    except ValidationError:
        return value


def _is_text(value: object) -> bool:
    match value:
        case str():
            return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)
        case dict():
            return all(_is_text(key) and _is_text(inner) for key, inner in value.items())
        case list() | tuple():
            return all(_is_text(inner) for inner in value)
        case _:
            return True


def _invalid_arguments(call: ToolCall, message: str) -> ToolRefused:
    return tool_refused(call.name, "invalid_arguments", f"{message} Correct the call.")


INTENTS_FILE_MISSING = f"{INTENTS_FILE} does not exist any more. `/intent none` continues without intents."


class PendingCall(Value):
    """A call in the gate, with a known tool and valid arguments."""

    call: ToolCall
    tool: Tool[Any]
    arguments: Any
    work: CallContext
    command: CommandFacts | None = None
    confined: bool = False
    sandbox: SandboxFacts | None = None
    source: SourceFacts | None = None
    changed_by_hook: str = ""

    @property
    def summary(self) -> str:
        return self.tool.summary(self.arguments, self.work)

    @property
    def key(self) -> str:
        """The key for the answer `always`: a hash of the call's subject."""
        subject = [self.tool.name, self.tool.subject(self.arguments, self.work)]
        return hashlib.sha256(json.dumps(subject, sort_keys=True).encode()).hexdigest()

    @property
    def places(self) -> tuple[ResolvedPath, ...]:
        return (self.work.place, *self.work.others) if self.work.place else ()


class ToolLookup(Protocol):
    def find(self, name: str) -> Tool[Any] | None: ...

    def names(self, mode: Mode) -> list[str]: ...


class FactGatherer(Value):
    """Parses a session's calls and gathers the facts for decisions about them."""

    session: Session
    workspace: Workspace
    toolbox: ToolLookup
    intents: IntentFile
    allowed: tuple[CommandEntry, ...] = ()
    denied: tuple[str, ...] = ()
    without_sandbox: bool = False
    answerable: bool = True
    shown_characters: int = 16_000
    secrets: Secrets = NO_SECRETS

    async def read(self, call: ToolCall, turn_id: str) -> PendingCall:
        """The call with its tool, arguments and command facts; raises ToolRefused."""
        tool = self.toolbox.find(call.name)
        state = self.session.state
        run = state.run
        if tool is None or (run and not run.allows(call.name)):
            offered = (run and run.tools) or self.toolbox.names(state.allowed_mode)
            names = ", ".join(name for name in offered if not run or run.allows(name))
            message = f"There is no tool {call.name[:80]}. There are: {names}."
            raise tool_refused(call.name, "unknown_tool", message)
        work = CallContext(
            self.session,
            self.workspace,
            turn_id,
            call.id,
            ExitStack(),
            shown_characters=self.shown_characters,
            secrets=self.secrets,
            answerable=self.answerable,
        )
        pending = PendingCall(call, tool, parse_arguments(call, tool.arguments), work)
        command = tool.target(pending.arguments).command
        if tool.action == "call":
            return replace(pending, source=await tool.source_facts(pending.arguments, self.session))
        if command is None:
            return pending
        from handrail.policy.commands.judge import command_lists
        from handrail.tools.gate.command_facts import command_facts

        lists = command_lists(self.allowed, self.denied)
        known = await to_thread.run_sync(command_facts, command, lists, self.workspace)
        in_sandbox = state.allowed_mode == "sandbox"
        sandbox = await tool.sandbox_facts(known, self.workspace) if in_sandbox else None
        confined = self.without_sandbox or await tool.is_confined()
        return replace(pending, command=known, confined=confined, sandbox=sandbox)

    def with_resolved_paths(self, pending: PendingCall) -> PendingCall:
        """The call with its paths resolved; later steps use these places."""
        target = pending.tool.target(pending.arguments)
        place = self.workspace.resolve(target.path) if target.path is not None else None
        others = tuple(self.workspace.resolve(path) for path in target.others)
        moved = frozenset(self.workspace.resolve(path).absolute for path in target.moved)
        return replace(pending, work=replace(pending.work, place=place, others=others, moved=moved))

    def facts(self, pending: PendingCall) -> Facts:
        """Everything that a decision about the call depends on, as of now."""
        tool, target, state = pending.tool, pending.tool.target(pending.arguments), self.session.state
        # A command in the background may have changed the intents, to widen its own scope.
        try:
            saved = restore_now(self.session.log.folder, self.workspace.root)
        except (OSError, StorageProblem) as error:
            message = f"The files that no command may change could not be compared: {error}. Try again."
            raise tool_refused(tool.name, "storage_failed", message) from error
        intent = active_intent(self.intents, state.intent, saved)
        place = pending.work.place
        return Facts(
            tool=tool.name,
            action=tool.action,
            mode=state.allowed_mode,
            reads_only=bool(state.run and state.run.reads_only),
            path=_path_facts(pending.work, place, tool.action) if place else None,
            command=pending.command,
            intent=intent.facts,
            scope=intent.scope,
            confined=pending.confined,
            sandbox=pending.sandbox,
            source=pending.source,
            network=target.network,
            secrets=target.secrets,
            url_from_user=target.url is not None and is_url_in(target.url, user_texts(self.session)),
            always=pending.key in state.always,
            answerable=self.answerable,
        )


def decide_call(facts: Facts, work: CallContext) -> Allow | Ask:
    """The decision about a call and all its paths; raises ToolRefused if one is denied."""
    paths = (_path_facts(work, place, facts.action) for place in work.others)
    decisions = [decide(facts), *(decide(replace(facts, path=path)) for path in paths)]
    for decision in decisions:
        if isinstance(decision, Deny):
            raise ToolRefused(decision.error)
    return next((decision for decision in decisions if isinstance(decision, Ask)), ALLOW)


def path_of(facts: Facts) -> str:
    return facts.path.path if facts.path else ""


def _path_facts(work: CallContext, place: ResolvedPath, action: Action) -> PathFacts:
    return path_facts(work.workspace.root, place, to_change=action == "write", moved=work.moved)


def path_facts(
    root: Path, place: ResolvedPath, *, to_change: bool, moved: frozenset[Path] = frozenset()
) -> PathFacts:
    """The facts about a path; `to_change` adds those that only a write depends on."""
    written = _path_as_written(root, place)
    facts = PathFacts(
        place.path,
        inside=place.inside,
        in_git=place.in_git,
        in_state=place.in_state,
        secret=place.secret,
        in_program=place.in_program,
        links=place.links,
        given=written,
    )
    if not to_change or not place.inside:
        return facts
    return replace(facts, **asdict(inspect_path(place.absolute, moved)))


def _path_as_written(root: Path, place: ResolvedPath) -> str:
    """The path as the model wrote it, without the workspace's own path."""
    start = f"{root}{os.sep}"
    if not place.given.startswith("/"):
        return place.given
    if place.given.startswith(start):
        return place.given.removeprefix(start)
    return place.path + "/" * place.given.endswith(("/", "/.", "/.."))


class ActiveIntent(NamedTuple):
    facts: IntentFacts | None = None  # None in a workspace without intents
    scope: tuple[str, ...] | None = None


NO_INTENT = ActiveIntent()


def active_intent(file: IntentFile, intent_id: str, saved: SavedFiles | None = None) -> ActiveIntent:
    """Facts about the active intent; `intent_id` is empty if none is active."""
    found = file.now(saved)
    if found is None:
        return ActiveIntent(IntentFacts(intent_id, problem=INTENTS_FILE_MISSING) if intent_id else None)
    if found.problem:
        return ActiveIntent(IntentFacts(intent_id, problem=found.problem))
    intent = found.find(intent_id) if intent_id else None
    return ActiveIntent(
        IntentFacts(
            intent_id,
            known=intent is not None,
            done=intent is not None and intent.done,
            ignored=intent_id in found.ignored,
            ids=tuple(each.id for each in found.selectable),
        ),
        intent.scope if intent else None,
    )
