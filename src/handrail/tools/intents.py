"""The tools of a workspace with intents: selecting one, and asking for more scope."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from handrail.policy.intent_relations import Conflict, conflicts, put_behind, unmet
from handrail.policy.overlap import overlap
from handrail.policy.scope import spelled_out
from handrail.protocol.errors import IntentsProblem, PathProblem, RefusalReason
from handrail.protocol.events import Event, IntentEdited, IntentSelected, OverlapSettled
from handrail.protocol.intent import REQUEST, SELECT, Intent
from handrail.protocol.values import Value
from handrail.sessions.workspace_events import append_to_workspace, intent_history, note_version
from handrail.storage.log import Log
from handrail.tools.base import About, Outcome, Tool, Work
from handrail.tools.intent_block import intent_block, recent_trace
from handrail.tools.recording import refused
from handrail.workspace.intents.intent_file import FILE, IntentFile, Intents

NAMED = 12
LONGEST = 200


class SelectArguments(Value):
    intent_id: Annotated[str, Field(min_length=1)]


class ScopeArguments(Value):
    paths: Annotated[
        tuple[str, ...], Field(min_length=1, max_length=20, description="such as src/api/** or one file")
    ]
    reason: Annotated[str, Field(min_length=1, max_length=1_000)]


class Selected(NamedTuple):
    """An intent that can be worked at, and what is to be known before."""

    intent: Intent
    warnings: tuple[str, ...]
    conflicts: tuple[Conflict, ...]


def selected(intents: IntentFile, intent_id: str, log: Log, tool: str = SELECT) -> Selected:
    """The intent; raises ToolRefused where nothing can be done for it."""
    found = intents.now()
    if found is None or found.problem:
        why = found.problem if found else f"There is no {FILE} any more."
        raise refused(tool, "intents_unreadable", f"{why} Tell the user.")
    intent = found.find(intent_id)
    if intent is None:
        raise refused(tool, "unknown_intent", f"There is no intent {intent_id[:80]}. {choices(found)}")
    reason: RefusalReason | None = None
    if intent.id in found.ignored:
        reason, why = "intent_ignored", "is in .intentignore: nothing is done for it"
    elif intent.done:
        reason, why = "intent_done", "is done"
    else:
        why = ""
    if reason:
        raise refused(tool, reason, f"{intent.id} {why}. {choices(found)}")
    met = conflicts(found.intents, of=intent.id, ignored=found.ignored, settled=intent_history(log).settled)
    return Selected(intent, unmet(intent, found.intents), tuple(met))


def choices(found: Intents) -> str:
    ids = [each.id for each in found.selectable]
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return f"There are: {', '.join(ids[:NAMED]) or 'none'}{more}."


def selecting(chosen: Selected, *, by_user: bool = False) -> IntentSelected:
    """The event that makes an intent the active one."""
    return IntentSelected(
        intent_id=chosen.intent.id,
        text=chosen.intent.text,
        sha256=chosen.intent.sha256,
        warnings=(*chosen.warnings, *(each.told for each in chosen.conflicts)),
        by="user" if by_user else "agent",
    )


class SelectIntent(Tool[SelectArguments]):
    name = SELECT
    description = "Choose the intent that what you do belongs to. Needed before any change or command."
    action = "note"
    arguments = SelectArguments

    def __init__(self, intents: IntentFile) -> None:
        self._intents = intents

    def about(self, arguments: SelectArguments) -> About:
        return About()

    def summary(self, arguments: SelectArguments, work: Work) -> str:
        return arguments.intent_id

    def preview(self, arguments: SelectArguments, work: Work) -> str:
        chosen = selected(self._intents, arguments.intent_id, work.session.log)
        if not chosen.conflicts:
            return ""
        found, other = self._intents.now(), chosen.conflicts[0].other
        behind = put_behind(chosen.conflicts[0], found.intents if found else ())
        ways = (
            f"Yes accepts it. No selects nothing; then narrow one (handrail intents edit {other} --scope ...)"
            f" or let it wait for the other ({behind})."
        )
        return "\n".join([*(each.told for each in chosen.conflicts), ways])

    def confirmation(self, arguments: SelectArguments, work: Work) -> str:
        chosen = selected(self._intents, arguments.intent_id, work.session.log)
        asks = chosen.conflicts and work.answerable
        return f"{chosen.intent.id} shares files with another intent" if asks else ""

    async def run(self, arguments: SelectArguments, work: Work) -> Outcome:
        chosen = selected(self._intents, arguments.intent_id, work.session.log)
        note_version(work.session.log, chosen.intent.id, chosen.intent.text)
        if work.confirmed and chosen.conflicts:
            append_to_workspace(work.session.log, *map(accepted, chosen.conflicts))
        event = selecting(chosen)
        block = intent_block(chosen.intent, recent_trace(work.workspace, chosen.intent.id))
        told = "".join(f"\n[warning: {each}]" for each in event.warnings)
        name = f": {chosen.intent.name}" if chosen.intent.name else ""
        return Outcome(
            f"{chosen.intent.id}{name}",
            f"{block}{told}",
            shown="\n".join(event.warnings),
            events=(event,),
        )


class RequestScope(Tool[ScopeArguments]):
    name = REQUEST
    description = "Ask the user to add paths to the active intent's scope."
    action = "note"
    arguments = ScopeArguments

    def __init__(self, intents: IntentFile) -> None:
        self._intents = intents

    def about(self, arguments: ScopeArguments) -> About:
        return About()

    def summary(self, arguments: ScopeArguments, work: Work) -> str:
        return ", ".join(arguments.paths)

    def preview(self, arguments: ScopeArguments, work: Work) -> str:
        intent = self._active(work)
        wanted = self._wanted(arguments, intent)
        lines = [f"{intent.id} owns: {', '.join(intent.scope) or 'nothing'}", "It would own too:"]
        return "\n".join([*lines, *(f"+ {each}" for each in wanted), f"Reason: {arguments.reason}"])

    def confirmation(self, arguments: ScopeArguments, work: Work) -> str:
        return f"the model asks for more scope for {work.session.state.intent}"

    async def run(self, arguments: ScopeArguments, work: Work) -> Outcome:
        from handrail.changes.intents import write_intents
        from handrail.workspace.intents.editing import with_entries

        if not work.confirmed:
            raise AssertionError("more scope was let through without the user's word")
        intent = self._active(work)
        wanted = self._wanted(arguments, intent)
        try:
            before = self._intents.document()
            after = with_entries(before, intent.id, "owned_scope", wanted)
        except IntentsProblem as problem:
            raise refused(self.name, "intents_unreadable", str(problem)) from problem
        new = after.find(intent.id)
        file = work.workspace.read(FILE)
        if file.text != before.source or new is None or new.intent.scope != (*intent.scope, *wanted):
            raise refused(self.name, "stale_file", "The intent was changed meanwhile. Ask again.")
        edited = IntentEdited(
            intent_id=intent.id,
            old=intent.text,
            new=new.intent.text,
            why=arguments.reason,
            by="agent",
            session_id=work.session.id,
        )
        write_intents(
            work.session.log,
            work.workspace,
            FILE,
            old=file.data,
            new=after.encoded(bom=file.bom),
            edits=(edited,),
        )
        told = IntentSelected(intent_id=intent.id, text=new.intent.text, sha256=new.intent.sha256)
        added = ", ".join(wanted)
        return Outcome(f"{intent.id} owns {added} too", f"The user said yes: {added}.", events=(told,))

    def _active(self, work: Work) -> Intent:
        active = work.session.state.intent
        if not active:
            raise refused(self.name, "missing_intent_id", "Call select_active_intent first.")
        return selected(self._intents, active, work.session.log, self.name).intent

    def _wanted(self, arguments: ScopeArguments, intent: Intent) -> tuple[str, ...]:
        wanted = tuple(dict.fromkeys(path.strip().removeprefix("./") for path in arguments.paths))
        for path in wanted:
            unfit = path.startswith(("!", "/", "~")) or not path.isprintable() or len(path) > LONGEST
            if unfit or not spelled_out(path):
                shown = repr(path[:LONGEST])
                message = f"{shown} is no path or pattern inside the workspace: write it like src/api/**."
                raise PathProblem(message, "invalid_arguments", path)
            left_out = [each for each in intent.scope if each.startswith("!")]
            if stops := next((each for each in left_out if overlap([each[1:]], [path])), ""):
                message = f"{intent.id} leaves {path} out by `{stops}`: only the user can change that."
                raise PathProblem(message, "scope_violation", path)
        new = tuple(path for path in wanted if not _covered(path, intent.scope))
        if not new:
            message = f"{', '.join(wanted)} is in the scope of {intent.id} already."
            raise refused(self.name, "no_change", message)
        return new


def _covered(pattern: str, scope: Sequence[str]) -> bool:
    """Whether all that a pattern means is owned: with what is owned left out, nothing of it is left."""
    owned = [each.strip() for each in scope if not each.strip().startswith("!")]
    return not overlap([pattern, *(f"!{each}" for each in owned if spelled_out(each))], [pattern])


def accepted(conflict: Conflict) -> Event:
    """The user's word that two intents may own the same files."""
    return OverlapSettled(intents=(conflict.one, conflict.other), choice="accepted", scopes=conflict.scopes)
