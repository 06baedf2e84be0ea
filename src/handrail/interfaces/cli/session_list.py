"""Sessions as a list."""

from typing import TYPE_CHECKING

from handrail.interfaces.cli.figures import ago, usd
from handrail.interfaces.cli.styles import ACCENT, BOLD, DIM, Line, columns, fit, line

if TYPE_CHECKING:
    from handrail.sessions.catalogue import SessionInfo


COPIED = {"fork": "fork of", "import": "imported"}


def session_lines(infos: "list[SessionInfo]", now: float, width: int) -> list[Line]:
    """One line a session, below a line that says what is what."""
    if not infos:
        return []
    head = f"{'session':<{len(infos[0].id)}}  {'last used':>12}  {'':>9}  {'cost':>7}  title"
    rows = [line((DIM, fit(head, width)))]
    for info in infos:
        state = "running " if info.running else "waiting " if info.waiting else ""
        state = "deleted " if info.deleted else state
        state += f"{COPIED[info.copied]} " if info.copied else ""
        turns = f"{info.turns:>3} turn{'s' if info.turns != 1 else ' '}"
        facts = f"{ago(now - info.touched):>12}  {turns}  {usd(info.cost_usd):>7}  "
        room = width - len(info.id) - 2 - columns(facts) - len(state)
        title = fit(info.title or "(nothing said)", max(10, room))
        rows.append(line((ACCENT, f"{info.id}  "), (DIM, facts), (BOLD, state), title))
    return rows
