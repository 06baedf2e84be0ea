"""Verified builds for interfaces: one build of a task, its result, and figures about all of them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from handrail.changes.forms.document import Document
from handrail.pipelines.build.report import (
    NAME,
    BuildCounts,
    BuildResult,
    build_counts,
    build_result,
    proposal_of,
    result_of,
)
from handrail.pipelines.build.states import BuildHistory
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import PathProblem, ToolRefused, UsageProblem
from handrail.protocol.events import Delta, Recorded, RunStarted, TurnFinished, UserMessage
from handrail.sessions.past_runs import past_runs
from handrail.tools.reports.issue import CheckResult

if TYPE_CHECKING:
    from handrail.app.app import App

__all__ = ["BuildCounts", "BuildHistory", "BuildResult", "CheckResult", "build_counts"]

BUILD_ROUTE = "build"
MAX_TITLE = 80


async def build_task(
    app: "App", task: str, *, session_id: str = "", saw: Callable[[Recorded | Delta], None] = lambda _: None
) -> BuildResult:
    """One verified build of the task: the workspace has its verified result afterwards, or is as it was.

    `saw` is told of every event. A build that needs the user's decision first comes back as `paused`. Without
    `session_id` it gets a session of its own.
    """
    session_id = session_id or app.new_session()
    after = app.last_seq(session_id) if app.state(session_id).turns else 0
    message = SendMessage(text=task, route=BUILD_ROUTE)
    await app.send(session_id, message)
    return await follow_build(app, session_id, message, saw, after=after)


async def follow_build(
    app: "App", session_id: str, message: SendMessage, saw: Callable[[Recorded | Delta], None], after: int = 0
) -> BuildResult:
    """The result of the build that the message starts, or has started, once its turn has ended."""
    turn_id = run_id = ""
    ended = None
    async for item in app.follow(session_id, after):
        saw(item)
        event = item.event if isinstance(item, Recorded) else None
        if isinstance(event, UserMessage) and event.message_id == message.message_id:
            turn_id = event.turn_id
        elif isinstance(event, RunStarted) and (not turn_id or event.turn_id == turn_id):
            run_id = event.run_id
        elif isinstance(event, TurnFinished) and event.turn_id == turn_id:
            ended = event
            break
    if not run_id:  # the message itself was refused: no model, a wrong setting
        detail = ended.detail if ended else ""
        task = message.text
        return BuildResult(state="failed", task=task, session_id=session_id, run_id="", detail=detail)
    result = build_result(app.log, session_id, run_id)
    if ended and result.state == "complete" and ended.reason != "answered":
        # A hook of the user's did not accept the end.
        return _not_accepted(result, ended.detail)
    return result


def _not_accepted(result: BuildResult, detail: str) -> BuildResult:
    from msgspec.structs import replace

    return replace(result, state="unverified", detail=detail)


class Proposal(NamedTuple):
    """The files of a build that were not applied, for the files as they are now."""

    result: BuildResult
    document: Document
    diff: str


def find_proposal(app: "App", session_id: str = "") -> Proposal:
    """The proposal of the session's last build, or of the last build here.

    Raises UsageProblem where it has none, or where its files are not what they were.
    """
    last = None if session_id else next(iter(past_runs(app.log, NAME)), None)
    if not session_id and last is None:
        raise UsageProblem('Nothing was built here yet: handrail build "TASK"')
    result = result_of(app.log, last) if last else build_result(app.log, session_id)
    return proposal_for(app, result)


def proposal_for(app: "App", result: BuildResult) -> Proposal:
    """The same for a result that is known."""
    document = proposal_of(result)
    if document is None:
        about = f"The build of session {result.session_id} is {result.state}, and has no proposal"
        raise UsageProblem(f"{about}. `handrail status` lists what was built.")
    try:
        return Proposal(result, document, app.proposals.preview(document))
    except PathProblem as problem:
        raise UsageProblem(f"The proposal does not fit the files as they are now: {problem}") from problem


async def accept_proposal(app: "App", proposal: Proposal) -> BuildResult:
    """Apply it on the user's word, as one change set in a session of its own; the build stays what it is.

    Raises ToolRefused or UsageProblem where nothing was applied.
    """
    from msgspec.structs import replace

    result = proposal.result
    session = app.proposals.open_session(f"{result.state}: {result.task}"[:MAX_TITLE])
    try:
        finished = await app.proposals.apply_in(session, proposal.document, word=None)
    finally:
        session.release()
    if finished.error:
        raise ToolRefused(finished.error)
    if finished.status != "ok":
        raise UsageProblem(f"The proposal was not applied: {finished.content}")
    return replace(result, files=tuple(file.path for file in result.proposed), accepted_in=session.id)
