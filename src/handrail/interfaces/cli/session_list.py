"""Sessions as a list."""

from typing import TYPE_CHECKING

from handrail.interfaces.cli.figures import ago, usd
from handrail.interfaces.cli.styles import ACCENT, BOLD, DIM, Line, columns, fit, line

if TYPE_CHECKING:
    from handrail.sessions.catalogue import SessionInfo


def session_lines(infos: "list[SessionInfo]", now: float, width: int) -> list[Line]:
    """One line a session: id, when, turns, cost, title."""
    rows = []
    for info in infos:
        state = "running " if info.running else "deleted " if info.deleted else ""
        turns = f"{info.turns:>3} turn{'s' if info.turns != 1 else ' '}"
        facts = f"{ago(now - info.touched):>12}  {turns}  {usd(info.cost_usd):>7}  "
        room = width - len(info.id) - 2 - columns(facts) - len(state)
        title = fit(info.title or "(nothing said)", max(10, room))
        rows.append(line((ACCENT, f"{info.id}  "), (DIM, facts), (BOLD, state), title))
    return rows
