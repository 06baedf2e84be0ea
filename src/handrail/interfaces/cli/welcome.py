"""The first lines of a conversation: where, with which model, in which mode."""

from pathlib import Path
from typing import TYPE_CHECKING

from handrail import __version__
from handrail.interfaces.cli.styles import ACCENT, BAD, BOLD, DIM, Line, beside, line, wrap
from handrail.protocol.errors import NoModel

if TYPE_CHECKING:
    from handrail.app import App


async def welcome(app: "App", session_id: str, width: int) -> list[Line]:
    """Who answers and where; then what the user should know before the first message."""
    root = app.workspace.root
    mode = app.state(session_id).mode if session_id else app.settings.mode
    branch = branch_of(root)
    left = line((BOLD, "handrail"), f" {__version__}  {short(root)}", (DIM, f"  {branch}" if branch else ""))
    try:
        chosen = await app.chosen_model(session_id)
        model: Line = line((DIM, "model "), (ACCENT, chosen.reference), (DIM, f" ({chosen.why})"))
        missing: list[Line] = []
    except NoModel as problem:
        model = line((DIM, "model "), (BAD, "none"))
        missing = [row for text in str(problem).splitlines() for row in wrap(line(text), width, "    ")]
    right = (*model, *line((DIM, "   mode "), (ACCENT, mode)))
    notices = [row for text in app.notices for row in wrap(line((DIM, text)), width, "  ")]
    return [*beside(left, right, width), *missing, *notices]


def short(path: Path) -> str:
    """The path as a person writes it."""
    try:
        return f"~/{path.relative_to(Path.home())}".removesuffix("/.")
    except (ValueError, RuntimeError):
        return str(path)


def branch_of(root: Path) -> str:
    """The git branch that is checked out, read without starting git; empty where there is none."""
    for folder in (root, *root.parents):
        try:
            head = (folder / ".git" / "HEAD").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue
        return head.removeprefix("ref: refs/heads/") if head.startswith("ref:") else head[:10]
    return ""
