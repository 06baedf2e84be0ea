"""The intents of a workspace: show, select, create, edit, check, and map them to files."""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from handrail.changes.intents_writer import write_intent_file
from handrail.changes.trace.trace_file import TraceFile
from handrail.policy.intent_conflicts import (
    Conflict,
    conflicts,
    dependency_cycles,
    scopes_hash,
    unmet_dependencies,
)
from handrail.protocol.errors import IntentsProblem, PathProblem, ToolRefused, UsageProblem
from handrail.protocol.events import Event, IntentEdited, IntentSelected, OverlapSettled, Recorded
from handrail.protocol.globs import parse_pattern
from handrail.protocol.intent import Intent
from handrail.sessions.session import Session
from handrail.sessions.workspace_events import append_to_workspace, intent_history, record_intent_version
from handrail.storage.event_log import Log
from handrail.tools.intent_tools import accepted_event, select_intent, selected_event
from handrail.workspace.files import Workspace
from handrail.workspace.intents_document import IntentsDocument, parse_intents
from handrail.workspace.intents_edit import (
    ID_IS_FIXED,
    add_entries,
    add_intent,
    set_field,
    set_intent_text,
    set_list_field,
)
from handrail.workspace.intents_file import INIT_HINT, INTENTS_FILE, IntentFile, IntentList

COMMA = re.compile(r",(?![^{}]*\})")
LISTS = ("owned_scope", "constraints", "acceptance_criteria", "depends_on")
DocumentChange = Callable[[IntentsDocument], IntentsDocument]


class IntentProblems(NamedTuple):
    wrong: tuple[str, ...]
    conflicts: tuple[Conflict, ...]
    waiting: tuple[str, ...]


def select_intent_events(session: Session, intents: IntentFile, intent_id: str) -> list[Event]:
    """The events that select an intent; none where it can no longer be selected."""
    if not intent_id:
        return [IntentSelected(intent_id="", by="user")] if session.state.intent else []
    try:
        chosen = select_intent(intents, intent_id, session.log)
    except ToolRefused:
        return []
    record_intent_version(session.log, intent_id, chosen.intent.text)
    return [selected_event(chosen, by_user=True)]


def _invalid_scope(scope: Iterable[str]) -> list[str]:
    return [each for each in scope if not parse_pattern(each.removeprefix("!").strip())]


class WorkspaceIntents(NamedTuple):
    """Queries and edits of the workspace's intents outside of a conversation."""

    log: Log
    workspace: Workspace
    file: IntentFile

    @property
    def bound(self) -> bool:
        """Whether the workspace has intents, or is required to."""
        return self.file.now() is not None

    def now(self) -> IntentList:
        """The intents in the file; raises IntentsProblem where it is missing or cannot be read."""
        found = self.file.now()
        if found is None:
            raise IntentsProblem(f"This workspace has no intents. {INIT_HINT}")
        if found.problem:
            raise IntentsProblem(found.problem)
        return found

    def find(self, intent_id: str) -> Intent:
        found = self.now().find(intent_id)
        if found is None:
            raise UsageProblem(f"There is no intent {intent_id!r}; `handrail intents list` names them.")
        return found

    def check_selectable(self, intent_id: str) -> None:
        """Raises UsageProblem where the intent cannot be selected; empty: none."""
        if not intent_id:
            return
        try:
            select_intent(self.file, intent_id, self.log)
        except ToolRefused as refused:
            raise UsageProblem(str(refused)) from refused

    def versions(self, intent_id: str) -> Sequence[Recorded]:
        """The edits of an intent that were recorded, oldest first."""
        return intent_history(self.log).versions.get(intent_id, ())

    def problems(self) -> IntentProblems:
        found = self.now()
        cycles = dependency_cycles(found.intents)
        wrong = [f"{each} depends on itself, directly or through others." for each in cycles]
        ids = {each.id for each in found.intents}
        for intent in found.intents:
            missing = [each for each in intent.depends_on if each not in ids]
            wrong += [f"{intent.id} depends on {each}, which does not exist." for each in missing]
            wrong += [
                f"{intent.id} owns `{each}`, which is not a path inside the workspace."
                for each in _invalid_scope(intent.scope)
            ]
            wrong += [
                f"{intent.id} owns `{each}`: paths are relative to the workspace, without a leading / or ~."
                for each in intent.scope
                if each.removeprefix("!").strip().startswith(("/", "~"))
            ]
            if not intent.done and all(each.startswith("!") for each in intent.scope):
                wrong.append(f"{intent.id} owns no files, so nothing can be written for it.")
        wrong += [f"{each} is ignored, and there is no such intent." for each in sorted(found.ignored - ids)]
        unmet = [
            text
            for each in found.intents
            if not each.done
            for text in unmet_dependencies(each, found.intents)
            if not text.endswith("not exist.")
        ]
        settled = intent_history(self.log).settled
        overlaps = conflicts(found.intents, ignored=found.ignored, settled=settled)
        return IntentProblems(tuple(wrong), tuple(overlaps), tuple(unmet))

    # Changing them

    def init(self, text: str) -> None:
        """Create the file; raises UsageProblem where it exists."""
        if self.workspace.exists(INTENTS_FILE):
            raise UsageProblem(f"{INTENTS_FILE} already exists; `handrail intents list` shows its intents.")
        parse_intents(text)
        write_intent_file(self.log, self.workspace, INTENTS_FILE, old=None, new=text.encode())

    def new(self, intent_id: str, fields: Mapping[str, str | Sequence[str]]) -> Intent:
        """Add an intent, in a new file where there is none."""
        if not self.workspace.exists(INTENTS_FILE):
            self.init("intents:\n")
        return self._change(intent_id, lambda file: add_intent(file, intent_id, fields), why="new")

    def set_value(self, intent_id: str, key: str, value: str, why: str = "") -> Intent:
        """Set one key of an intent; lists are separated by commas, except inside braces."""
        if key == "id":
            raise UsageProblem(ID_IS_FIXED)
        if key in LISTS:
            entries = [each.strip() for each in COMMA.split(value) if each.strip()]
            return self._change(intent_id, lambda file: set_list_field(file, intent_id, key, entries), why)
        return self._change(intent_id, lambda file: set_field(file, intent_id, key, value), why)

    def set_scope(self, intent_id: str, patterns: Sequence[str]) -> Intent:
        return self._change(intent_id, lambda file: set_list_field(file, intent_id, "owned_scope", patterns))

    def add_scope(self, intent_id: str, patterns: Sequence[str]) -> Intent:
        return self._change(intent_id, lambda file: add_entries(file, intent_id, "owned_scope", patterns))

    def set_text(self, intent_id: str, text: str) -> Intent:
        return self._change(intent_id, lambda file: set_intent_text(file, intent_id, text))

    def accept(self, one: str, other: str) -> None:
        """Record that two intents may own the same files."""
        pair = {self.find(one).id, self.find(other).id}
        found = [each for each in self.problems().conflicts if {each.one, each.other} == pair]
        if not found:
            raise UsageProblem(f"{one} and {other} do not own the same files, or one depends on the other.")
        append_to_workspace(self.log, accepted_event(found[0]))

    def write_map(self, now: float) -> int:
        """Write the map of files that each intent has touched; returns the number of files."""
        made = intent_map(self.workspace, self.log, self.now().intents, now)
        old = self.workspace.read(MAP_PATH).data if self.workspace.exists(MAP_PATH) else None
        if old != (new := made.text.encode()):
            write_intent_file(self.log, self.workspace, MAP_PATH, old=old, new=new)
        return made.files

    def _change(self, intent_id: str, change: DocumentChange, why: str = "") -> Intent:
        before = self.file.document()
        after = change(before)
        old, new = before.find(intent_id), after.find(intent_id)
        if new is None:
            raise AssertionError("a change of an intent keeps the intent")
        known = old.intent.scope if old else ()
        if invalid := _invalid_scope(each for each in new.intent.scope if each not in known):
            raise UsageProblem(f"{invalid[0]!r} is not a path or pattern in the workspace (src/api/**).")
        if before.source != after.source:
            if old:
                record_intent_version(self.log, intent_id, old.intent.text)
            old_text = old.intent.text if old else ""
            edit = IntentEdited(intent_id=intent_id, old=old_text, new=new.intent.text, why=why)
            file = self.workspace.read(INTENTS_FILE)
            if file.text != before.source:
                raise PathProblem(f"{INTENTS_FILE} was just changed. Try again.", "stale_file", INTENTS_FILE)
            data = after.encoded(bom=file.bom)
            write_intent_file(self.log, self.workspace, INTENTS_FILE, old=file.data, new=data, edits=(edit,))
        if old:
            self._settle(old.intent, new.intent, before.intents, after.intents)
        return new.intent

    def _settle(self, old: Intent, new: Intent, before: Sequence[Intent], after: Sequence[Intent]) -> None:
        """Record how the change resolved conflicts."""
        if (old.scope, old.depends_on) == (new.scope, new.depends_on):
            return
        left = {each[:2] for each in conflicts(after, of=new.id)}
        ended = [each for each in conflicts(before, of=old.id) if each[:2] not in left]
        known = {each.id: each for each in after}
        events = [
            OverlapSettled(
                intents=(each.one, each.other),
                choice="narrowed" if old.scope != new.scope else "ordered",
                scopes=scopes_hash(known[each.one], known[each.other]),
            )
            for each in ended
        ]
        if events:
            append_to_workspace(self.log, *events)


# The map of intents: the files that each has touched, by the trace

MAP_PATH = ".orchestration/intent_map.md"


class TouchedFile(NamedTuple):
    changes: int = 0
    last: str = ""


class IntentMap(NamedTuple):
    text: str
    files: int


def intent_map(workspace: Workspace, log: Log, intents: Sequence[Intent], now: float) -> IntentMap:
    """The map as Markdown: intents in the order of their file, then those that are not in it."""
    touched: dict[str, dict[str, TouchedFile]] = {each.id: {} for each in intents}
    for line in _trace_lines(workspace, log):
        files = touched.setdefault(str(line.get("intent_id", "")), {})
        for path in filter(None, (str(line.get("file", "")), str(line.get("to", "")))):
            before = files.get(path, TouchedFile())
            files[path] = TouchedFile(before.changes + 1, str(line.get("at", ""))[:10])
    names = {each.id: each for each in intents}
    day = time.strftime("%Y-%m-%d", time.gmtime(now))
    parts = [f"# Intents and the files they have touched\n\nBy the trace, {day}.\n"]
    parts += [_section(each, files, names.get(each)) for each, files in touched.items() if each or files]
    return IntentMap("\n".join(parts), len({path for files in touched.values() for path in files}))


def _section(intent_id: str, files: dict[str, TouchedFile], intent: Intent | None) -> str:
    name = f": {_plain(intent.name)}" if intent and intent.name else ""
    status = f" ({_plain(intent.status)})" if intent and intent.status else ""
    gone = "" if intent or not intent_id else " (not in the file of intents)"
    lines = [f"## {_plain(intent_id) or 'Without an intent'}{name}{status}{gone}\n"]
    if not files:
        return f"{lines[0]}\nNo file yet.\n"
    lines += ["| file | changes | last |", "| --- | --- | --- |"]
    lines += [
        f"| {_plain(path)} | {one.changes} | {_plain(one.last)} |" for path, one in sorted(files.items())
    ]
    return "\n".join(lines) + "\n"


def _trace_lines(workspace: Workspace, log: Log) -> Iterator[dict[str, Any]]:
    for line in (TraceFile(workspace.root, log.folder).read() or b"").splitlines():
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue  # `handrail trace verify` reports it
        if isinstance(entry, dict):
            yield entry


def _plain(text: str) -> str:
    """The text, escaped for a Markdown table."""
    shown = " ".join(text.split()).replace("\\", "\\\\")
    return shown.replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")
