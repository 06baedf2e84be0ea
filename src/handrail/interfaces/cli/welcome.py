"""The first lines of a conversation: where, with which model, in which mode."""

from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from handrail import __version__
from handrail.interfaces.cli.styles import ACCENT, BOLD, DIM, Line, beside, length, line, wrap
from handrail.models.choice import PLACES

if TYPE_CHECKING:
    from handrail.app import App
    from handrail.tools.git import GitState

GIT_SECONDS = 0.1
"""How long the first lines wait for git when all else is there; what it says later is told later."""


class Tree:
    """Branch and changed files in words, asked while other things are done; empty without git."""

    def __init__(self, app: "App", *, resumed: bool) -> None:
        self._app = app
        self._resumed = resumed
        self._answered = anyio.Event()
        self.words = ""

    async def ask(self) -> None:
        try:
            if state := await self._app.git_state():
                # In a session that goes on, some of it was changed by the model.
                self.words = in_words(state, by="" if self._resumed else " by you")
        finally:
            self._answered.set()

    async def within(self, seconds: float) -> bool:
        """Whether the answer is there in so many seconds."""
        with anyio.move_on_after(seconds):
            await self._answered.wait()
        return self._answered.is_set()


def in_words(state: "GitState", by: str) -> str:
    """`main, 2 files changed by you`."""
    changed = {0: "", 1: f", 1 file changed{by}"}.get(state.changed, f", {state.changed} files changed{by}")
    return f"{state.branch or 'no branch'}{changed}"


async def welcome(app: "App", session_id: str, width: int, tree: Tree) -> list[Line]:
    """Who answers and where; then what the user should know before the first message."""
    root = app.workspace.root
    state = app.state(session_id) if session_id else None
    mode = state.mode if state else app.settings.mode
    intent = (state.intent if state else "") or app.options.intent
    chosen = await app.chosen_model(session_id)
    model, why = (
        line((DIM, "model "), (ACCENT, short_model(chosen.reference))),
        line((DIM, f" ({chosen.why})")),
    )
    confined = (await app.sandbox()).title()
    words = f"  {tree.words}" if await tree.within(GIT_SECONDS) and tree.words else ""
    left = line((BOLD, "handrail"), f" {__version__}  {short(root)}", (DIM, words))
    works_at = [(DIM, "   intent "), (ACCENT, intent)] if intent else []
    rest = line((DIM, "   mode "), (ACCENT, mode), *works_at, (DIM, f"   {confined}"))
    told = [text for notice in app.notices for text in notice.splitlines()]
    notices = [row for text in told for row in wrap(line((BOLD, text)), width, "  ")]
    rows = heading(left, (*model, *why, *rest), (*model, *rest), width)
    if chosen.why not in PLACES.values() and not any(why[0] in row for row in rows):
        reason = f"{chosen.why[0].upper()}{chosen.why[1:]}: {chosen.reference} answers; /model changes it."
        rows += wrap(line((DIM, reason)), width)
    return [*rows, *notices]


def heading(left: Line, right: Line, shorter: Line, width: int) -> list[Line]:
    """Both on one line, or below each other; the second one shorter, or broken at words, to fit."""
    if length(right) > width or (
        length(left) + 2 + length(right) > width >= length(left) + 2 + length(shorter)
    ):
        right = shorter
    if length(right) <= width >= length(left):
        return beside(left, right, width)
    return [*wrap(left, width, "  "), *wrap(right, width, "  ")]


def short_model(reference: str) -> str:
    """`connection/name`; of a name that is a path only its last part."""
    connection, _, name = reference.partition("/")
    return f"{connection}/{name.rpartition('/')[2]}" if name.startswith(("/", "~", ".")) else reference


def short(path: Path) -> str:
    """The path as a person writes it."""
    try:
        return f"~/{path.relative_to(Path.home())}".removesuffix("/.")
    except (ValueError, RuntimeError):
        return str(path)
