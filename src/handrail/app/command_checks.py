"""What is checked about a command before it is sent to a session."""

from typing import TYPE_CHECKING

from msgspec import ValidationError
from msgspec.structs import replace

from handrail.context.mentions import too_many_images
from handrail.engine.router.router import check_route
from handrail.protocol import commands
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import to_json

if TYPE_CHECKING:
    from handrail.app.app import App


async def checked_command(app: "App", session_id: str, command: commands.Command) -> commands.Command:
    """The command with full names; raises UsageProblem where it cannot be sent.

    An empty id stands for a session that is to be created.
    """
    if isinstance(command, commands.SetMode):
        await app.check_mode(session_id, command.mode)
    elif isinstance(command, commands.SendMessage | commands.RunCommand | commands.RunAll):
        # Also if the session was begun on another machine, or the workspace has changed since.
        await app.check_mode(session_id)
    if isinstance(command, commands.SelectIntent):
        app.intents.check_selectable(command.intent_id)
    if isinstance(command, commands.SetModel):
        command = replace(command, model=await app.model_pool.check(command.model))
    try:
        commands.COMMAND.decode(to_json(command))
    except UnicodeEncodeError as error:
        raise UsageProblem(
            "This has characters that are not text (half of a surrogate pair). Leave them out."
        ) from error
    except ValidationError as error:
        raise UsageProblem(f"This command cannot be sent: {error}.") from error
    if isinstance(command, commands.SendMessage | commands.SetRoute):
        check_route(command.route, app.turn_factory.catalogue)
    if isinstance(command, commands.SendMessage) and (problem := too_many_images(command.images)):
        raise UsageProblem(f"{problem[:1].upper()}{problem[1:]} Send them in several messages.")
    return command


def check_output_schema(schema: object) -> None:
    """Raises UsageProblem for what is not a JSON Schema that an answer can be checked by."""
    from handrail.models.reading.output_schema import schema_problem

    if problem := schema_problem(schema):
        raise UsageProblem(f"This is not a usable JSON Schema: {problem}.")
