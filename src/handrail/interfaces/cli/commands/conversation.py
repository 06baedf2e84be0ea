"""`handrail`, `handrail "TASK"` and `handrail resume`: open the conversation."""

from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.commands.run import run_headless
from handrail.interfaces.cli.completion import complete_session
from handrail.interfaces.cli.options import collect_garbage, message_text, options_for, turn_options
from handrail.interfaces.cli.terminal import require_terminal
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import NoModel

if TYPE_CHECKING:
    from handrail.app.app import Options


def open_conversation(options: "Options", *, session: str | None = None, message: str = "") -> None:
    """Open the conversation: in a new session, or in the one that `session` names (empty: the last)."""
    require_terminal()
    import anyio

    from handrail.app.app import open_app
    from handrail.interfaces.cli.conversation.conversation import Conversation

    async def run() -> bool:
        """False where the user has just set up a model, so that settings and keys have to be read again."""
        async with open_app(options) as app:
            collect_garbage()
            session_id = app.find_session(session) if session is not None else ""
            try:
                await app.chosen_model(session_id)
            except NoModel:
                from handrail.interfaces.cli.conversation.onboarding import Onboarding

                await Onboarding(app).choose()
                return False
            await Conversation(app).run(session_id, message)
            return True

    while not anyio.run(run):
        pass


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("words", nargs=-1)
@turn_options
def command(words: tuple[str, ...], **given: Any) -> None:
    """Open the conversation, and start with a question or task."""
    message = message_text(" ".join(words)) if words else ""
    open_conversation(options_for(given, answerable=True), message=message)


@click.command()
@click.argument("session", default="", shell_complete=complete_session)
@click.option("--message", metavar="TEXT", help="Send this, wait for the turn to end, and exit.")
@click.option("--json", "as_json", is_flag=True, help="With --message: one event a line on stdout.")
@turn_options
def resume_command(session: str, message: str | None, as_json: bool, **given: Any) -> int:
    """Open a session again: by its id, the start of it, or words of its title; the last one otherwise."""
    if message is not None:
        sent = SendMessage(text=message_text(message))
        return run_headless(options_for(given), sent, session=session, as_json=as_json)
    if as_json:
        raise click.UsageError("--json goes with --message.")
    open_conversation(options_for(given, answerable=True), session=session)
    return 0
