"""Opening the conversation from the shell."""

from typing import TYPE_CHECKING

from handrail.interfaces.cli.opening import named
from handrail.interfaces.cli.terminal import need_terminal

if TYPE_CHECKING:
    from handrail.app import Options


def talk(options: "Options", *, session: str | None = None, message: str = "") -> None:
    """Open the conversation: in a new session, or in the one that `session` names (empty: the last)."""
    need_terminal()
    import anyio

    from handrail.app import open_app
    from handrail.interfaces.cli.conversation import Conversation

    async def run() -> None:
        async with open_app(options) as app:
            session_id = named(app, session) if session is not None else ""
            await Conversation(app).run(session_id, message)

    anyio.run(run)
