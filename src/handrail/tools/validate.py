"""The validate tool: the checks of `handrail config|agents|skills validate`, and of mermaid flowcharts."""

from collections.abc import Callable, Mapping
from typing import Literal

from anyio import to_thread

from handrail.config.open_file import read_file
from handrail.protocol.errors import HandrailError
from handrail.protocol.values import Value
from handrail.tools.tool import CallContext, CallTarget, Outcome, Tool, pluralize, tool_refused

Checked = Literal["config", "agents", "skills", "mermaid"]
Checker = Callable[[str], list[str]]
"""Problems, each with its line, in what the name means; of mermaid, in the text itself. Wired by `app`."""
MAX_PROBLEMS, MAX_BYTES = 20, 1_000_000
NO_FILE = "Mermaid takes a chart as its `text`, or the path of a file as its `name`."


class ValidateArguments(Value):
    what: Checked
    name: str = ""
    """Of an agent or a skill; of mermaid, the path of the file."""
    text: str = ""
    """Of mermaid, in place of a file."""


class Validate(Tool[ValidateArguments]):
    name = "validate"
    description = (
        "Check settings, agents, skills (`name`: which one), or mermaid (`text`, or in a file: `name`)."
    )
    action = "look"
    arguments = ValidateArguments

    def __init__(self, checkers: Mapping[Checked, Checker]) -> None:
        self._checkers = checkers

    def target(self, arguments: ValidateArguments) -> CallTarget:
        return CallTarget(
            path=(arguments.what == "mermaid" and not arguments.text and arguments.name) or None
        )

    def summary(self, arguments: ValidateArguments, work: CallContext) -> str:
        return f"{arguments.what} {arguments.name}".rstrip()

    async def run(self, arguments: ValidateArguments, work: CallContext) -> Outcome:
        subject = arguments.name
        if arguments.what == "mermaid" and arguments.text:
            subject = arguments.text
        elif arguments.what == "mermaid":
            if work.place is None:
                raise tool_refused(self.name, "invalid_arguments", NO_FILE)
            subject = read_file(work.place.absolute, MAX_BYTES).decode(errors="replace")
        try:
            found = await to_thread.run_sync(self._checkers[arguments.what], subject)
        except HandrailError as problem:
            raise tool_refused(self.name, "invalid_arguments", str(problem)) from problem
        if not found:
            return Outcome("nothing wrong", "Nothing wrong.")
        left = len(found) - MAX_PROBLEMS
        lines = [*found[:MAX_PROBLEMS], *([f"[and {left} more]"] if left > 0 else [])]
        return Outcome(pluralize(len(found), "problem"), "\n".join(lines), shown="\n".join(lines))
