"""Tools for workspaces with intents: select_active_intent, request_scope."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from html import escape
from typing import Annotated, NamedTuple

from msgspec import Meta

from handrail.config.open_file import open_file
from handrail.policy.intent_conflicts import (
    Conflict,
    conflicts,
    ordering_command,
    overlap,
    unmet_dependencies,
)
from handrail.protocol.errors import IntentsProblem, PathProblem
from handrail.protocol.events import Event, IntentEdited, IntentSelected, OverlapSettled
from handrail.protocol.globs import parse_pattern
from handrail.protocol.intent import REQUEST_SCOPE, SELECT_INTENT, Intent
from handrail.protocol.values import Value
from handrail.sessions.workspace_events import append_to_workspace, intent_history, record_intent_version
from handrail.storage.event_log import Log
from handrail.tools.tool import (
    NOTHING,
    CallContext,
    Outcome,
    Prepared,
    Tool,
    strip_control_codes,
    tool_refused,
)
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import INTENTS_FILE, IntentFile, IntentList

TRACE_FILE = ".orchestration/agent_trace.jsonl"
TRACE_TAIL_BYTES = 256_000
TRACE_FIELDS = ("at", "op", "file", "mutation_class")
MAX_RECENT = 5
MAX_ENTRIES, MAX_ENTRY_LENGTH = 60, 500


class TraceEntry(NamedTuple):
    at: str
    op: str
    file: str
    mutation: str


def intent_block(intent: Intent, recent: Sequence[TraceEntry] = ()) -> str:
    """The intent for the prompt: constraints, scope, acceptance criteria and its latest changes."""
    lines = [f'<intent_context id="{_escaped(intent.id)}">']
    lines += _element("name", intent.name) + _element("status", intent.status)
    lines += _list_element("scope", "path", intent.scope)
    lines += _list_element("constraints", "constraint", intent.constraints)
    lines += _list_element("acceptance_criteria", "criterion", intent.criteria)
    lines += _list_element("depends_on", "intent", intent.depends_on) if intent.depends_on else []
    if recent:
        trace = [tuple(map(_escaped, change)) for change in recent]
        changes = (
            f'    <change at="{at}" op="{op}" file="{f}" class="{kind}"/>' for at, op, f, kind in trace
        )
        lines += ["  <recent_trace>", *changes, "  </recent_trace>"]
    return "\n".join([*lines, "</intent_context>"])


def recent_trace(workspace: Workspace, intent_id: str) -> tuple[TraceEntry, ...]:
    """The latest changes made for an intent, as far as the end of the trace has them."""
    found: list[TraceEntry] = []
    for line in _last_lines(workspace):
        entry = None
        with suppress(ValueError, RecursionError):
            entry = json.loads(line)
        if isinstance(entry, dict) and entry.get("intent_id") == intent_id:
            found.append(TraceEntry(*(str(entry.get(name, "")) for name in TRACE_FIELDS)))
    return tuple(found[-MAX_RECENT:])


def _last_lines(workspace: Workspace) -> list[bytes]:
    try:
        place = workspace.resolve(TRACE_FILE)
        if not place.inside:
            return []
        with open_file(place.absolute, follow=False) as file:
            data = file.tail(TRACE_TAIL_BYTES)
    except (OSError, PathProblem):
        return []
    return data.splitlines()[int(file.found.st_size > TRACE_TAIL_BYTES) :]


def _element(tag: str, text: str) -> list[str]:
    return [f"  <{tag}>{_escaped(text)}</{tag}>"] if text else []


def _list_element(tag: str, entry_tag: str, texts: Iterable[str]) -> list[str]:
    entries = [f"    <{entry_tag}>{_escaped(text)}</{entry_tag}>" for text in texts]
    if not entries:
        return [f"  <{tag}/>"]
    more = [f'    <more count="{len(entries) - MAX_ENTRIES}"/>'] if len(entries) > MAX_ENTRIES else []
    return [f"  <{tag}>", *entries[:MAX_ENTRIES], *more, f"  </{tag}>"]


def _escaped(text: str) -> str:
    clipped = text if len(text) <= MAX_ENTRY_LENGTH else f"{text[: MAX_ENTRY_LENGTH - 1]}…"
    return escape(strip_control_codes(" ".join(clipped.split())), quote=True)


MAX_NAMED = 12
MAX_PATH_LENGTH = 200


class SelectArguments(Value):
    intent_id: Annotated[str, Meta(min_length=1)]


class ScopeArguments(Value):
    paths: Annotated[
        tuple[str, ...], Meta(min_length=1, max_length=20, description="such as src/api/** or one file")
    ]
    reason: Annotated[str, Meta(min_length=1, max_length=1_000)]


class IntentSelection(NamedTuple):
    """An intent that can be worked on, and what to know before starting on it."""

    intent: Intent
    warnings: tuple[str, ...]
    conflicts: tuple[Conflict, ...]


def select_intent(
    intents: IntentFile, intent_id: str, log: Log, tool: str = SELECT_INTENT
) -> IntentSelection:
    """The intent; raises ToolRefused if it cannot be worked on."""
    found = intents.now()
    if found is None or found.problem:
        why = found.problem if found else f"{INTENTS_FILE} does not exist any more."
        raise tool_refused(tool, "intents_unreadable", f"{why} Tell the user.")
    intent = found.find(intent_id)
    if intent is None:
        message = f"There is no intent {intent_id[:80]}. {available_intents(found)}"
        raise tool_refused(tool, "unknown_intent", message)
    if intent.id in found.ignored:
        message = f"{intent.id} is in .intentignore, so leave it alone. {available_intents(found)}"
        raise tool_refused(tool, "intent_ignored", message)
    if intent.done:
        raise tool_refused(tool, "intent_done", f"{intent.id} is done. {available_intents(found)}")
    met = conflicts(found.intents, of=intent.id, ignored=found.ignored, settled=intent_history(log).settled)
    return IntentSelection(intent, unmet_dependencies(intent, found.intents), tuple(met))


def available_intents(found: IntentList) -> str:
    ids = [each.id for each in found.selectable]
    more = f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else ""
    return f"Select one of: {', '.join(ids[:MAX_NAMED])}{more}." if ids else "There is no intent to select."


def selected_event(chosen: IntentSelection, *, by_user: bool = False) -> IntentSelected:
    """The event that makes the intent active."""
    return IntentSelected(
        intent_id=chosen.intent.id,
        text=chosen.intent.text,
        sha256=chosen.intent.sha256,
        warnings=(*chosen.warnings, *(each.message for each in chosen.conflicts)),
        by="user" if by_user else "agent",
    )


class SelectIntent(Tool[SelectArguments]):
    name = SELECT_INTENT
    description = "Choose the intent your work belongs to. Needed before any change or command."
    action = "note"
    arguments = SelectArguments

    def __init__(self, intents: IntentFile) -> None:
        self._intents = intents

    def summary(self, arguments: SelectArguments, work: CallContext) -> str:
        return arguments.intent_id

    def prepare(self, arguments: SelectArguments, work: CallContext) -> Prepared:
        chosen = select_intent(self._intents, arguments.intent_id, work.session.log)
        if not chosen.conflicts:
            return NOTHING
        found, other = self._intents.now(), chosen.conflicts[0].other
        order = ordering_command(chosen.conflicts[0], found.intents if found else ())
        choices = (
            f"Yes accepts this. No selects nothing; then narrow one scope (handrail intents edit {other}"
            f" --scope ...) or make one intent wait for the other ({order})."
        )
        confirm = f"{chosen.intent.id} shares files with another intent" if work.answerable else ""
        return Prepared("\n".join([*(each.message for each in chosen.conflicts), choices]), confirm)

    async def run(self, arguments: SelectArguments, work: CallContext) -> Outcome:
        chosen = select_intent(self._intents, arguments.intent_id, work.session.log)
        record_intent_version(work.session.log, chosen.intent.id, chosen.intent.text)
        if work.prepared.confirm and chosen.conflicts:
            append_to_workspace(work.session.log, *map(accepted_event, chosen.conflicts))
        event = selected_event(chosen)
        block = intent_block(chosen.intent, recent_trace(work.workspace, chosen.intent.id))
        warnings = "".join(f"\n[warning: {each}]" for each in event.warnings)
        name = f": {chosen.intent.name}" if chosen.intent.name else ""
        summary, shown = f"{chosen.intent.id}{name}", "\n".join(event.warnings)
        return Outcome(summary, f"{block}{warnings}", shown, events=(event,))


class RequestScope(Tool[ScopeArguments]):
    name = REQUEST_SCOPE
    description = "Ask the user to add paths to the active intent's scope."
    action = "note"
    arguments = ScopeArguments

    def __init__(self, intents: IntentFile) -> None:
        self._intents = intents

    def summary(self, arguments: ScopeArguments, work: CallContext) -> str:
        return ", ".join(arguments.paths)

    def prepare(self, arguments: ScopeArguments, work: CallContext) -> Prepared:
        intent = self._active(work)
        new_paths = self._new_paths(arguments, intent)
        lines = [f"{intent.id} owns: {', '.join(intent.scope) or 'nothing'}", "It would also own:"]
        lines += [*(f"+ {each}" for each in new_paths), f"Reason: {arguments.reason}"]
        return Prepared("\n".join(lines), confirm=f"the model asks for more scope for {intent.id}")

    async def run(self, arguments: ScopeArguments, work: CallContext) -> Outcome:
        from handrail.changes.intents_writer import write_intent_file
        from handrail.workspace.intents_edit import add_entries

        if not work.prepared.confirm:
            raise AssertionError("scope was extended without asking the user")
        intent = self._active(work)
        new_paths = self._new_paths(arguments, intent)
        try:
            before = self._intents.document()
            after = add_entries(before, intent.id, "owned_scope", new_paths)
        except IntentsProblem as problem:
            raise tool_refused(self.name, "intents_unreadable", str(problem)) from problem
        new = after.find(intent.id)
        file = work.workspace.read(INTENTS_FILE)
        if file.text != before.source or new is None or new.intent.scope != (*intent.scope, *new_paths):
            raise tool_refused(self.name, "stale_file", "The intents file changed meanwhile. Ask again.")
        edited = IntentEdited(
            intent_id=intent.id,
            old=intent.text,
            new=new.intent.text,
            why=arguments.reason,
            by="agent",
            session_id=work.session.id,
        )
        log, data = work.session.log, after.encoded(bom=file.bom)
        write_intent_file(log, work.workspace, INTENTS_FILE, old=file.data, new=data, edits=(edited,))
        event = IntentSelected(intent_id=intent.id, text=new.intent.text, sha256=new.intent.sha256)
        added = ", ".join(new_paths)
        return Outcome(f"{intent.id} now also owns {added}", f"The user agreed: {added}.", events=(event,))

    def _active(self, work: CallContext) -> Intent:
        active = work.session.state.intent
        if not active:
            raise tool_refused(self.name, "missing_intent_id", "Call select_active_intent first.")
        return select_intent(self._intents, active, work.session.log, self.name).intent

    def _new_paths(self, arguments: ScopeArguments, intent: Intent) -> tuple[str, ...]:
        """The requested paths that the intent does not own yet; raises if one cannot be added."""
        paths = tuple(dict.fromkeys(path.strip().removeprefix("./") for path in arguments.paths))
        excluded = [each for each in intent.scope if each.startswith("!")]
        for path in paths:
            invalid = path.startswith(("!", "/", "~")) or not path.isprintable()
            if invalid or len(path) > MAX_PATH_LENGTH or not parse_pattern(path):
                shown = repr(path[:MAX_PATH_LENGTH])
                message = f"{shown} is not a path or pattern in the workspace. Write it like src/api/**."
                raise PathProblem(message, "invalid_arguments", path)
            if rule := next((each for each in excluded if overlap([each[1:]], [path])), ""):
                message = f"{intent.id} excludes {path} by `{rule}`. Only the user can change that."
                raise PathProblem(message, "scope_violation", path)
        new = tuple(path for path in paths if not _is_covered(path, intent.scope))
        if not new:
            message = f"{', '.join(paths)} is already in the scope of {intent.id}."
            raise tool_refused(self.name, "no_change", message)
        return new


def _is_covered(pattern: str, scope: Sequence[str]) -> bool:
    """Whether the scope owns everything the pattern matches: nothing remains without what it owns."""
    owned = [each.strip() for each in scope if not each.strip().startswith("!")]
    return not overlap([pattern, *(f"!{each}" for each in owned if parse_pattern(each))], [pattern])


def accepted_event(conflict: Conflict) -> Event:
    """The user's consent that two intents own the same files."""
    return OverlapSettled(intents=(conflict.one, conflict.other), choice="accepted", scopes=conflict.scopes)
