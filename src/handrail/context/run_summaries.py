"""What later turns are told of runs that are over."""

from collections.abc import Sequence
from typing import NamedTuple

from handrail.context.budget import shown_characters
from handrail.sessions.run_state import Ended
from handrail.sessions.state import Cut, State

HEAD = "[Runs in this session that are over, summarised by Handrail:]"
MOST, SHARE = 7_500, 10
"""Characters, and the part of the window."""


class RunPart(NamedTuple):
    """What goes with a message, and the runs that it tells of."""

    text: str = ""
    runs: tuple[str, ...] = ()


def new_runs(state: State, window: int) -> RunPart:
    """Of runs that no message which the model is shown has told of yet; what does not fit waits."""
    found = [run for run in state.runs.ended if run.seq > state.cut.upto and not run.told]
    if not found:
        return RunPart()
    kept = _fitting(found, window)
    return RunPart(_block(kept, len(found)), tuple(run.run_id for run in kept))


def with_runs(state: State, window: int) -> Cut:
    """Where compaction stands, with the runs that it would have lost: each request tells of them."""
    older = [run for run in state.runs.ended if run.seq <= state.cut.upto]
    if not older:
        return state.cut
    summary = f"{state.cut.summary}\n\n{_block(_fitting(older, window), len(older))}"
    cut = state.cut
    return Cut(upto=cut.upto, summary=summary, compaction_id=cut.compaction_id, kept=cut.kept)


def _fitting(runs: Sequence[Ended], window: int) -> list[Ended]:
    """The latest count most where there is little room."""
    room = shown_characters(window, most=MOST, share=SHARE)
    kept: list[Ended] = []
    for run in reversed(runs):
        room -= len(run.summary)
        if room < 0 and kept:
            break
        kept.insert(0, run)
    return kept


def _block(kept: Sequence[Ended], of: int) -> str:
    more = f"\n[{of - len(kept)} earlier left out.]" if of > len(kept) else ""
    return "\n\n".join([f"{HEAD}{more}", *(run.summary for run in kept)])
