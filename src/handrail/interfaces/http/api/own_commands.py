"""The user's own slash commands, and those of the workspace."""

from typing import Annotated

from msgspec import Meta

from handrail.app.app import App
from handrail.config.user_commands import UserCommands
from handrail.interfaces.http.endpoint import Call, Endpoint
from handrail.interfaces.http.errors import not_found
from handrail.protocol.values import Value


def own_commands(app: App) -> UserCommands:
    """The commands that the terminal would have in this workspace."""
    from handrail.interfaces.cli.conversation.slash import COMMANDS

    return UserCommands(app.places, app.workspace.root, COMMANDS)


class OwnCommand(Value):
    name: str
    arguments: str
    """How to call it: `FILE [FOCUS]`."""
    description: str
    usable: bool
    """False: it came with the workspace and is not trusted."""


class OwnCommandList(Value):
    commands: tuple[OwnCommand, ...]


async def list_own_commands(call: Call) -> OwnCommandList:
    """The slash commands that are Markdown files of the user or of the workspace."""
    found, _ = own_commands(call.app).all()
    rows = (OwnCommand(each.name, each.arguments, each.description, each.usable) for each in found)
    return OwnCommandList(tuple(rows))


class Argument(Value):
    argument: Annotated[str, Meta(max_length=100_000)] = ""
    """What follows the command's name."""


class ExpandedCommand(Value):
    text: str
    """The message that the command sends."""


async def expand_own_command(call: Call, body: Argument) -> ExpandedCommand:
    """The message that a command sends; refused where it is not trusted or lacks an argument."""
    name = call.names["command"]
    if (command := own_commands(call.app).find(name)) is None:
        raise not_found(f"There is no command /{name}.", "GET own-commands lists those of yours.")
    return ExpandedCommand(command.message(body.argument))


OWN_COMMAND_ENDPOINTS = (
    Endpoint("GET", "/own-commands", list_own_commands),
    Endpoint("POST", "/own-commands/{command}", expand_own_command),
)
