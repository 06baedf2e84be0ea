"""Settle a conflict between subtasks: by a side, by both, by a text, or by asking a model to join them."""

from typing import TYPE_CHECKING

from handrail.app.splits.plans import known_split, try_hold
from handrail.app.splits.report import SplitReport
from handrail.app.splits.run import tell_split
from handrail.engine.host.turn_factory import price
from handrail.engine.requests.model_requests import SideCall
from handrail.engine.split.conductor import take_over_split
from handrail.engine.split.ledger import Ledger
from handrail.engine.split.subtask_work import join_sides
from handrail.protocol.errors import UsageProblem
from handrail.protocol.subtask import Settlement, SplitCommand, SplitConflict

if TYPE_CHECKING:
    from handrail.app.app import App


async def settle_conflict(
    app: "App", session_id: str, conflict_id: str, by: Settlement, text: str | None = None
) -> SplitReport:
    """Record how the conflict is settled; `text` is for `text` alone."""
    split = known_split(app, session_id)
    found = next((each for each in split.state.conflicts if each.id == conflict_id), None)
    if found is None:
        raise UsageProblem(f"There is no open conflict {conflict_id!r}. `handrail splits show` lists them.")
    if by == "model":
        if not await try_hold(split.session):
            raise UsageProblem("Another Handrail works on this split. Wait for it.")
        try:
            take_over_split(split, app.workspace)
            model = (await app.model_pool.models(split.session))[0]
            afford = Ledger(split.state, price).afford()
            side = SideCall(split.session, model, "main", price, afford)
            text = await join_sides(side, found, app.model_pool.secrets())
        finally:
            split.session.release()
    elif by != "text":
        text = _side(found, by)
    elif text is not None:
        text = _as_lines(text, found)
    return await tell_split(app, session_id, SplitCommand("settle", conflict_id=found.id, by=by, text=text))


def _side(conflict: SplitConflict, by: Settlement) -> str | None:
    if by == "both":
        if conflict.ours is None or conflict.theirs is None:
            raise UsageProblem("One side deletes the file, so both are not possible. Take one of them.")
        return conflict.ours + conflict.theirs
    return conflict.ours if by == "ours" else conflict.theirs


def _as_lines(text: str, conflict: SplitConflict) -> str:
    """The text with the line ends of the sides, the last one too: else what follows would be joined to it."""
    sides = [each for each in (conflict.base, conflict.ours, conflict.theirs) if each]
    if text and not text.endswith("\n") and all(each.endswith("\n") for each in sides):
        text += "\n"
    if "\r\n" not in text and all("\r\n" in each for each in sides):
        text = text.replace("\n", "\r\n")
    return text
