"""The background tool: what became of the commands that were started in the background."""

from handrail.protocol.errors import ToolError, ToolRefused
from handrail.protocol.values import Value
from handrail.tools.background_commands import STOP_SECONDS, BackgroundCommands, Running
from handrail.tools.base import About, Outcome, Tool, Work

MOST_WAIT = 600.0


class BackgroundArguments(Value):
    id: str = ""
    wait: float = 0
    stop: bool = False


class Background(Tool[BackgroundArguments]):
    name = "background"
    description = "List, read or stop background commands."
    action = "look"
    arguments = BackgroundArguments

    def __init__(self, commands: BackgroundCommands) -> None:
        self._commands = commands

    def about(self, arguments: BackgroundArguments) -> About:
        return About()

    def summary(self, arguments: BackgroundArguments, work: Work) -> str:
        return f"{'stop ' * arguments.stop}{arguments.id}"

    async def run(self, arguments: BackgroundArguments, work: Work) -> Outcome:
        known = self._commands.known(work.session.id)
        if not arguments.id and not arguments.stop:
            running = sum(each.end is None for each in known)
            listed = "\n".join(f"{each.id} {each.state}: {each.command}" for each in known)
            return Outcome(f"{running} running", listed or "There are none.")
        found = self._found(arguments.id, known, work)
        if arguments.stop:
            self._commands.stop(work.session.id, found.id, "model")
        await found.ended_within(STOP_SECONDS if arguments.stop else min(arguments.wait, MOST_WAIT))
        return found.told()

    def _found(self, background_id: str, known: list[Running], work: Work) -> Running:
        if found := self._commands.find(work.session.id, background_id):
            return found
        ids = ", ".join(each.id for each in known) or "none"
        message = f"There is no background command {background_id[:20]!r} now. There are: {ids}."
        raise ToolRefused(ToolError(tool=self.name, reason="invalid_arguments", message=message))
