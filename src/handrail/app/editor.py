"""The files that an editor has open, for the interface that talks with it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail.workspace.editor import Editor, try_look

if TYPE_CHECKING:
    from handrail.app.app import App

__all__ = ["Editor", "look_at_changed_files", "use_editor"]

MAX_FILES = 200


def use_editor(app: "App", editor: Editor) -> None:
    """Read and write the workspace's files through the editor, in sessions that are open in it."""
    app.workspace.editor = editor


async def look_at_changed_files(app: "App", session_id: str) -> str:
    """Note unsaved text of files that the session changed, so that a preview of an undo is right.

    Returns what the user has to know where the editor does not answer.
    """
    paths: Sequence[str] = list(app.state(session_id).files.changed)[-MAX_FILES:]
    return await try_look(app.workspace, session_id, paths)
