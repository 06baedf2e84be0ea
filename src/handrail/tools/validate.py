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
MISPLACED = "`path` and `text` are for mermaid; the others take a `name`, or nothing."


class ValidateArguments(Value):
    what: Checked
    name: str = ""
    path: str = ""
    text: str = ""


class Validate(Tool[ValidateArguments]):
    name = "validate"
    description = (
        "Check settings, agents or skills (one by `name`), or mermaid: `text` of a flowchart, or a `path`."
    )
    action = "look"
    arguments = ValidateArguments

    def __init__(self, checkers: Mapping[Checked, Checker]) -> None:
        self._checkers = checkers

    def target(self, arguments: ValidateArguments) -> CallTarget:
        return CallTarget(path=arguments.path or None)

    def summary(self, arguments: ValidateArguments, work: CallContext) -> str:
        return f"{arguments.what} {arguments.name or arguments.path}".rstrip()

    async def run(self, arguments: ValidateArguments, work: CallContext) -> Outcome:
        subject = arguments.name
        if arguments.what == "mermaid":
            subject = arguments.text
            if work.place:
                subject = read_file(work.place.absolute, MAX_BYTES).decode(errors="replace")
        elif arguments.path or arguments.text:
            raise tool_refused(self.name, "invalid_arguments", MISPLACED)
        try:
            found = await to_thread.run_sync(self._checkers[arguments.what], subject)
        except HandrailError as problem:
            raise tool_refused(self.name, "invalid_arguments", str(problem)) from problem
        if not found:
            return Outcome("nothing wrong", "Nothing wrong.")
        left = len(found) - MAX_PROBLEMS
        lines = [*found[:MAX_PROBLEMS], *([f"[and {left} more]"] if left > 0 else [])]
        return Outcome(pluralize(len(found), "problem"), "\n".join(lines), shown="\n".join(lines))
