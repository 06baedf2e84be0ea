"""The first lines of a conversation: folder, git status, model, mode and sandbox."""

from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from handrail import __version__
from handrail.app.models import chosen_by_user
from handrail.interfaces.cli.render.styles import Line, count_of, length, line, side_by_side, wrap
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.app.app import App

GIT_SECONDS = 0.1
"""How long the first lines wait for git; what it says later is shown later."""


class GitStatus:
    """Branch and changed files in words, asked for in the background; empty without git."""

    def __init__(self, app: "App", *, resumed: bool) -> None:
        self._app = app
        self._resumed = resumed
        self._answered = anyio.Event()
        self.words = ""

    async def ask(self) -> None:
        try:
            if state := await self._app.git_state():
                # In a resumed session, the model changed some of them.
                by = "" if self._resumed else " by you"
                changed = f", {count_of(state.changed, 'file')} changed{by}" if state.changed else ""
                self.words = f"{state.branch or 'no branch'}{changed}"
        finally:
            self._answered.set()

    async def within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._answered.wait()
        return self._answered.is_set()


async def welcome(app: "App", session_id: str, width: int, tree: GitStatus) -> list[Line]:
    """Folder, git, model, mode and sandbox; then notices."""
    root = app.workspace.root
    state = app.state(session_id) if session_id else None
    mode = state.mode if state else app.settings.mode
    intent = (state.intent if state else "") or app.options.intent
    chosen = await app.chosen_model(session_id)
    model = line(("dim", "model "), ("accent", short_model(chosen.reference)))
    why = line(("dim", f" ({chosen.why})"))
    confined = (await app.sandbox()).title()
    words = f"  {tree.words}" if await tree.within(GIT_SECONDS) and tree.words else ""
    left = line(("bold", "handrail"), f" {__version__}  {short_path(root)}", ("dim", words))
    with_intent = [("dim", "   intent "), ("accent", intent)] if intent else []
    rest = line(("dim", "   mode "), ("accent", mode), *with_intent, ("dim", f"   {confined}"))
    about_mode = await mode_notice(app, session_id)
    texts = [text for notice in (*app.notices, about_mode) for text in notice.splitlines()]
    notices = [row for text in texts for row in wrap(line(("bold", text)), width, "  ")]
    rows = heading(left, (*model, *why, *rest), (*model, *rest), width)
    if not chosen_by_user(chosen) and not any(why[0] in row for row in rows):
        reason = f"{chosen.why[0].upper()}{chosen.why[1:]}: {chosen.reference} answers; /model changes it."
        rows += wrap(line(("dim", reason)), width)
    return [*rows, *notices]


async def mode_notice(app: "App", session_id: str) -> str:
    """What the user should know about the mode; a new session is refused where it cannot be used."""
    try:
        return await app.check_mode(session_id)
    except UsageProblem as problem:
        if not session_id:
            raise
        return f"{problem} Until then, no message is sent; /mode changes it."


def heading(left: Line, right: Line, shorter: Line, width: int) -> list[Line]:
    """Both on one line or below each other, with the shorter right side where that fits better."""
    both, fits_shorter = length(left) + 2 + length(right), length(left) + 2 + length(shorter) <= width
    if length(right) > width or (both > width and fits_shorter):
        right = shorter
    if length(right) <= width >= length(left):
        return side_by_side(left, right, width)
    return [*wrap(left, width, "  "), *wrap(right, width, "  ")]


def short_model(reference: str) -> str:
    """`connection/name`; only the last part of a name that is a path."""
    connection, _, name = reference.partition("/")
    return f"{connection}/{name.rpartition('/')[2]}" if name.startswith(("/", "~", ".")) else reference


def short_path(path: Path) -> str:
    """The path with `~` for the home folder."""
    try:
        return f"~/{path.relative_to(Path.home())}".removesuffix("/.")
    except (ValueError, RuntimeError):
        return str(path)
