"""Opening the conversation from the shell."""

import os
from typing import TYPE_CHECKING

from handrail.interfaces.cli.opening import collect_garbage, named
from handrail.interfaces.cli.terminal import need_terminal
from handrail.protocol.errors import NoModel

if TYPE_CHECKING:
    from handrail.app import App, Options


def talk(options: "Options", *, session: str | None = None, message: str = "") -> None:
    """Open the conversation: in a new session, or in the one that `session` names (empty: the last)."""
    need_terminal()
    import anyio

    from handrail.app import open_app
    from handrail.interfaces.cli.conversation import Conversation

    async def run() -> bool:
        """Whether there was a model to talk with."""
        async with open_app(options) as app:
            collect_garbage()
            session_id = named(app, session) if session is not None else ""
            if not await is_ready(app, session_id):
                return False
            await Conversation(app).run(session_id, message)
            return True

    while not anyio.run(run):
        pass  # again, with the settings and keys as they are now


async def is_ready(app: "App", session_id: str) -> bool:
    """Whether a model can answer; where none could, the user has now been asked for one."""
    try:
        await app.chosen_model(session_id)
    except NoModel:
        from handrail.interfaces.cli.doors import Doors

        await Doors(app, os.environ).choose()
        return False
    return True
