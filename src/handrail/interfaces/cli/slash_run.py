"""The slash command that runs what the last answer suggests."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail.interfaces.cli.batches import listed
from handrail.protocol.commands import RunAll, RunCommand
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.interfaces.cli.conversation import Conversation

ASKED = re.compile(r"(?P<which>all|\d{1,3}(?:-\d{1,3})?)(?P<network>\s+network)?")
HOW = "Say /run 2, /run 2-4 or /run all; with `network` behind it, they may use the network."


async def run_suggested(talk: "Conversation", argument: str) -> None:
    """List them, or run one, some or all."""
    commands = talk.suggested
    if not commands:
        raise UsageProblem("The last answer suggests no command.")
    if not argument:
        talk.say(listed(commands, talk.width))
        return
    asked = ASKED.fullmatch(argument.strip().lower())
    if asked is None:
        raise UsageProblem(HOW)
    if talk.app.state(talk.session_id).turn:
        raise UsageProblem("A turn is running: wait for its end, or stop it with Ctrl-C.")
    picked, network = _picked(commands, asked["which"]), bool(asked["network"])
    if len(picked) == 1:
        await talk.send(RunCommand(command=picked[0], network=network))
    else:
        await talk.send(RunAll(commands=picked, network=network))


def _picked(commands: Sequence[str], which: str) -> tuple[str, ...]:
    if which == "all":
        return tuple(commands)
    first, _, last = which.partition("-")
    start, end = int(first), int(last or first)
    if not 0 < start <= end <= len(commands):
        raise UsageProblem(f"There are commands 1 to {len(commands)}. {HOW}")
    return tuple(commands[start - 1 : end])
