"""A turn with a check and a small model: answers are tried in a copy, and one that passes is applied."""

from collections.abc import Awaitable
from hashlib import sha256

from handrail.engine.context import TurnContext
from handrail.engine.search.search import Found, Search, SearchTask
from handrail.engine.turn_end import Ending
from handrail.engine.user_input import turn_words
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import Answered, AttemptStarted, CheckFinished, CheckStarted
from handrail.protocol.ids import new_id
from handrail.protocol.values import HASH_DIGITS, FileSeen, ToolCall
from handrail.tools.commands.run import CHECK_SECONDS
from handrail.verification.candidates import Tested, open_candidates
from handrail.verification.detect.command import command_check, shell_check
from handrail.verification.proposed import NoCopy
from handrail.workspace.files import TextFile

SECONDS = 15.0
"""Time for each attempt that the user allows: in it, a small model is asked for as much as fits."""
TOLD = "[Handrail tried {count} answers of yours in a copy. With this one the check passes.]"
SHOWN = 4_000


async def search_until_check_passes(context: TurnContext) -> Ending | None:
    """How the turn ends; None where there can be no copy here to try answers in."""
    turn = context.turn
    if turn.attempt and turn.calls:
        return await _finish(context)  # the answer was found before a restart
    exact = shell_check(turn.check, CHECK_SECONDS)
    try:
        async with open_candidates(
            context.checks(), [command_check(turn.check, CHECK_SECONDS)]
        ) as candidates:
            before = await candidates.before()
            _record(context, before, attempt=0)
            seconds = SECONDS * turn.attempts
            task = SearchTask(turn_words(context.session), turn.check, seconds)
            found = await Search(context, candidates, task).run(
                before, lambda files: _passes(candidates.run(exact, files))
            )
    except (NoCopy, UsageProblem):
        return None
    if found.passed:
        _choose(context, found)
        ending = await _finish(context)
        doubt = f" But the tests do not decide: {found.doubt}." if found.doubt else ""
        return ending._replace(detail=f"{ending.detail}{doubt}")
    tried = f"The check `{turn.check}` did not pass: {found.words}. The files are as they were."
    reached = context.limit_reached
    return Ending("budget", f"{reached} {tried}") if reached else Ending("unverified", tried)


async def _passes(running: Awaitable[Tested]) -> bool:
    return (await running).passed


def _record(context: TurnContext, tested: Tested, attempt: int) -> None:
    """Record a run of the check that was made in the copy."""
    ids = {"turn_id": context.turn.turn_id, "check_id": new_id("v")}
    tests = f"{tested.passing} of {tested.total} tests pass, " if tested.total > 1 else ""
    hide = context.secrets.hide
    context.session.append(
        CheckStarted(**ids, command=context.turn.check, attempt=attempt),
        CheckFinished(
            **ids,
            passed=tested.passed,
            summary=f"{'passed' if tested.passed else 'failed'} in a copy, {tests}{tested.seconds:.1f} s",
            content=hide(tested.output[-SHOWN:]),
        ),
    )


def _choose(context: TurnContext, found: Found) -> None:
    """Record the answer that passed as the model's, with the calls that make its changes."""
    turn, workspace = context.turn, context.workspace
    old = {path: workspace.read(path) for path in found.files if workspace.exists(path)}
    calls = tuple(_call(path, text, old.get(path)) for path, text in found.files.items())
    context.session.append(
        AttemptStarted(
            turn_id=turn.turn_id,
            number=1,
            temperature=0.0,
            keep=turn.message_seq,
            text=TOLD.format(count=found.answers),
            files=tuple(FileSeen(path, file.sha256, "auto", whole=True) for path, file in old.items()),
        ),
        Answered(
            turn_id=turn.turn_id,
            request_id=new_id("r"),
            message_id=new_id("m"),
            model=context.main.models[0].name,
            text="",
            calls=calls,
            end="tool_calls",
            cost_usd=0.0,
        ),
    )


def _call(path: str, text: str, old: TextFile | None) -> ToolCall:
    if old is None:
        return ToolCall(new_id("call"), "write", {"path": path, "text": text})
    edits = [{"search": old.text, "replace": text}]
    base = sha256(old.data).hexdigest()[:HASH_DIGITS]
    return ToolCall(new_id("call"), "edit", {"path": path, "edits": edits, "base_hash": base})


async def _finish(context: TurnContext) -> Ending:
    """Apply the answer, through the gate; it ends well only if all of it was applied."""
    turn = context.turn
    if calls := [state.call for state in turn.unfinished()]:
        await context.gate.run_all(calls, turn.turn_id)
    if refusal := context.turn.refusal:
        return Ending(
            "unverified", f"An answer passes the check, and could not be applied: {refusal.message}"
        )
    return Ending("answered", f"The check passes: {turn.check}.")
