"""The intents of a workspace as a user has them: looked at, selected, made, changed, and checked."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from handrail.changes.intents import write_intents
from handrail.policy.intent_relations import Conflict, circles, conflicts, scopes_hash, unmet
from handrail.policy.scope import spelled_out
from handrail.protocol.errors import IntentsProblem, PathProblem, ToolRefused, UsageProblem
from handrail.protocol.events import Event, IntentEdited, IntentSelected, OverlapSettled, Recorded
from handrail.protocol.intent import Intent
from handrail.sessions.handle import Session
from handrail.sessions.workspace_events import append_to_workspace, intent_history, note_version
from handrail.storage.log import Log
from handrail.tools.intents import accepted, selected, selecting
from handrail.workspace.files import Workspace
from handrail.workspace.intents.document import IntentsDocument, read_intents
from handrail.workspace.intents.editing import (
    ID_STAYS,
    with_entries,
    with_list,
    with_new,
    with_text,
    with_value,
)
from handrail.workspace.intents.intent_file import FILE, INIT, IntentFile, Intents

COMMA = re.compile(r",(?![^{}]*\})")
LISTS = ("owned_scope", "constraints", "acceptance_criteria", "depends_on")
Change = Callable[[IntentsDocument], IntentsDocument]


class Problems(NamedTuple):
    """What is wrong with the intents of a workspace."""

    wrong: tuple[str, ...]
    """Has to be mended."""
    conflicts: tuple[Conflict, ...]
    waiting: tuple[str, ...]
    """In words: what is not done yet that another depends on."""


def selection(session: Session, intents: IntentFile, intent_id: str) -> list[Event]:
    """What the user's selecting an intent makes true; nothing where it cannot be selected any more."""
    if not intent_id:
        return [IntentSelected(intent_id="", by="user")] if session.state.intent else []
    try:
        chosen = selected(intents, intent_id, session.log)
    except ToolRefused:
        return []
    note_version(session.log, intent_id, chosen.intent.text)
    return [selecting(chosen, by_user=True)]


def _unfit(scope: Iterable[str]) -> list[str]:
    """What of a scope can mean no path."""
    return [each for each in scope if not spelled_out(each.removeprefix("!").strip())]


class IntentBook:
    """All that can be done with the intents of a workspace outside of a conversation."""

    def __init__(self, log: Log, workspace: Workspace, file: IntentFile) -> None:
        self._log = log
        self._workspace = workspace
        self._file = file

    @property
    def bound(self) -> bool:
        """Whether the workspace has intents, or has to have."""
        return self._file.now() is not None

    def now(self) -> Intents:
        """What the file says; raises IntentsProblem where there is none, or it cannot be read."""
        found = self._file.now()
        if found is None:
            raise IntentsProblem(f"This workspace has no intents. {INIT}")
        if found.problem:
            raise IntentsProblem(found.problem)
        return found

    def find(self, intent_id: str) -> Intent:
        found = self.now().find(intent_id)
        if found is None:
            raise UsageProblem(f"There is no intent {intent_id!r}; `handrail intents list` names them.")
        return found

    def check_selectable(self, intent_id: str) -> None:
        """Raises UsageProblem where the intent cannot be selected; empty: none is wanted."""
        if not intent_id:
            return
        try:
            selected(self._file, intent_id, self._log)
        except ToolRefused as refused:
            raise UsageProblem(str(refused)) from refused

    def versions(self, intent_id: str) -> Sequence[Recorded]:
        """The edits of an intent that were recorded, oldest first."""
        return intent_history(self._log).versions.get(intent_id, ())

    def problems(self) -> Problems:
        """What is wrong, what conflicts, what waits."""
        found = self.now()
        settled = intent_history(self._log).settled
        wrong = [
            f"{each} depends on itself, directly or by way of others." for each in circles(found.intents)
        ]
        ids = {each.id for each in found.intents}
        for intent in found.intents:
            missing = [each for each in intent.depends_on if each not in ids]
            wrong += [f"{intent.id} depends on {each}, which does not exist." for each in missing]
            wrong += [
                f"{intent.id} owns `{each}`, which is no path inside the workspace."
                for each in _unfit(intent.scope)
            ]
            wrong += [
                f"{intent.id} owns `{each}`: paths are relative to the workspace, without / or ~ before them."
                for each in intent.scope
                if each.removeprefix("!").strip().startswith(("/", "~"))
            ]
            if not intent.done and not any(not each.startswith("!") for each in intent.scope):
                wrong.append(f"{intent.id} owns nothing, so that nothing can be written for it.")
        wrong += [f"{each} is ignored, and there is no such intent." for each in sorted(found.ignored - ids)]
        open_ones = [each for each in found.intents if not each.done]
        waiting = [
            told
            for each in open_ones
            for told in unmet(each, found.intents)
            if not told.endswith("not exist.")
        ]
        met = conflicts(found.intents, ignored=found.ignored, settled=settled)
        return Problems(tuple(wrong), tuple(met), tuple(waiting))

    # Changing them

    def init(self, text: str) -> None:
        """Make the file; raises UsageProblem where there is one."""
        if self._workspace.exists(FILE):
            raise UsageProblem(f"{FILE} exists already; `handrail intents list` shows what is in it.")
        read_intents(text)
        write_intents(self._log, self._workspace, FILE, old=None, new=text.encode())

    def new(self, intent_id: str, fields: Mapping[str, str | Sequence[str]]) -> Intent:
        """Add an intent, in a new file where there is none."""
        if not self._workspace.exists(FILE):
            self.init("intents:\n")
        return self._change(intent_id, lambda document: with_new(document, intent_id, fields), why="new")

    def set_value(self, intent_id: str, key: str, value: str, why: str = "") -> Intent:
        """One key of an intent; a list is written with commas, those in braces belong to an entry."""
        if key == "id":
            raise UsageProblem(ID_STAYS)
        if key in LISTS:
            entries = [each.strip() for each in COMMA.split(value) if each.strip()]
            return self._change(intent_id, lambda document: with_list(document, intent_id, key, entries), why)
        return self._change(intent_id, lambda document: with_value(document, intent_id, key, value), why)

    def set_scope(self, intent_id: str, patterns: Sequence[str]) -> Intent:
        """Own exactly these."""
        return self._change(
            intent_id, lambda document: with_list(document, intent_id, "owned_scope", patterns)
        )

    def add_scope(self, intent_id: str, patterns: Sequence[str]) -> Intent:
        return self._change(
            intent_id, lambda document: with_entries(document, intent_id, "owned_scope", patterns)
        )

    def set_text(self, intent_id: str, text: str) -> Intent:
        """The intent as a user has edited it."""
        return self._change(intent_id, lambda document: with_text(document, intent_id, text))

    def accept(self, one: str, other: str) -> None:
        """Record that two intents may own the same files."""
        pair = {self.find(one).id, self.find(other).id}
        found = [each for each in self.problems().conflicts if {each.one, each.other} == pair]
        if not found:
            raise UsageProblem(f"{one} and {other} do not own the same files, or one waits for the other.")
        append_to_workspace(self._log, accepted(found[0]))

    def write_map(self, now: float) -> int:
        """Write which files each intent has touched; how many files that are."""
        from handrail.engine.intent_map import MAP, intent_map

        made = intent_map(self._workspace, self._log, self.now().intents, now)
        old = self._workspace.read(MAP).data if self._workspace.exists(MAP) else None
        if old != (new := made.text.encode()):
            write_intents(self._log, self._workspace, MAP, old=old, new=new)
        return made.files

    def _change(self, intent_id: str, change: Change, why: str = "") -> Intent:
        before = self._file.document()
        after = change(before)
        old, new = before.find(intent_id), after.find(intent_id)
        if new is None:
            raise AssertionError("a change of an intent keeps the intent")
        known = old.intent.scope if old else ()
        if unfit := _unfit(each for each in new.intent.scope if each not in known):
            raise UsageProblem(
                f"{unfit[0]!r} is no path or pattern inside the workspace, such as src/api/**."
            )
        self._write(before, after, intent_id, why)
        if old:
            self._settle(old.intent, new.intent, before.intents, after.intents)
        return new.intent

    def _write(self, before: IntentsDocument, after: IntentsDocument, intent_id: str, why: str) -> None:
        old, new = before.find(intent_id), after.find(intent_id)
        if before.source == after.source or new is None:
            return
        if old:
            note_version(self._log, intent_id, old.intent.text)
        edited = IntentEdited(
            intent_id=intent_id, old=old.intent.text if old else "", new=new.intent.text, why=why
        )
        file = self._workspace.read(FILE)
        if file.text != before.source:
            raise PathProblem(f"{FILE} was changed just now. Try again.", "stale_file", FILE)
        encoded = after.encoded(bom=file.bom)
        write_intents(self._log, self._workspace, FILE, old=file.data, new=encoded, edits=(edited,))

    def _settle(self, old: Intent, new: Intent, before: Sequence[Intent], after: Sequence[Intent]) -> None:
        """Record what became of conflicts that the change has ended."""
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
            append_to_workspace(self._log, *events)
