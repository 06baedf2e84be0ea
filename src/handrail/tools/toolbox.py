"""The tools there are."""

from typing import Any

from handrail.models.base import ToolSpec
from handrail.protocol.values import Mode
from handrail.tools.background_commands import BackgroundCommands
from handrail.tools.base import Tool
from handrail.tools.diagnosing import Diagnosing
from handrail.tools.editing import ApplyDiff, Changing, DeleteFile, EditFile, MoveFile, WriteFile
from handrail.tools.fetching import Fetch
from handrail.tools.finding import Glob, ListFolder, Search
from handrail.tools.following import Background
from handrail.tools.reading import Read
from handrail.tools.running import Run
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.talking import AskUser, Todos
from handrail.workspace.intents.intent_file import IntentFile

READS_ONLY: tuple[Mode, ...] = ("explore", "plan")


class Toolbox:
    """A fixed set of tools in a fixed order, so that a model is told of them in the same bytes every time."""

    def __init__(self, sandbox: Sandbox | None = None, intents: IntentFile | None = None) -> None:
        """With `intents`, in a workspace that has some, there are also the tools for them."""
        sandbox = sandbox or Sandbox()
        self._intents = intents
        self._for_intents: dict[str, Tool[Any]] = {}
        self._bound_specs: dict[str, ToolSpec] = {}
        self.background = BackgroundCommands()
        self.run_tool = Run(sandbox, self.background)
        diagnosing = Diagnosing(sandbox)
        tools: list[Tool[Any]] = [
            Read(),
            ListFolder(),
            Glob(),
            Search(),
            EditFile(diagnosing),
            WriteFile(diagnosing),
            ApplyDiff(diagnosing),
            DeleteFile(diagnosing),
            MoveFile(diagnosing),
            self.run_tool,
            Background(self.background),
            Fetch(),
            Todos(),
            AskUser(),
        ]
        self._tools = {tool.name: tool for tool in tools}
        self._specs = {name: tool.spec() for name, tool in self._tools.items()}

    def find(self, name: str) -> Tool[Any] | None:
        return self._tools.get(name) or self._intent_tools().get(name)

    def names(self, mode: Mode) -> list[str]:
        """Tools that can be of use in a mode."""
        tools = self._tools | self._intent_tools()
        return [name for name, tool in tools.items() if mode not in READS_ONLY or tool.action != "write"]

    def specs(self, mode: Mode) -> tuple[ToolSpec, ...]:
        """What a model is told in a mode."""
        specs = self._specs | self._bound_specs if self._intent_tools() else self._specs
        return tuple(specs[name] for name in self.names(mode))

    def _intent_tools(self) -> dict[str, Tool[Any]]:
        if self._intents is None or self._intents.now() is None:
            return {}
        if not self._for_intents:
            from handrail.tools.intents import RequestScope, SelectIntent
            from handrail.tools.lessons import RecordLesson

            tools: list[Tool[Any]] = [
                SelectIntent(self._intents),
                RequestScope(self._intents),
                RecordLesson(self._intents.workspace),
            ]
            self._for_intents = {tool.name: tool for tool in tools}
            self._specs |= {tool.name: tool.spec() for tool in tools}
            changing = [tool for tool in self._tools.values() if isinstance(tool, Changing)]
            self._bound_specs = {tool.name: tool.bound_spec() for tool in changing}
        return self._for_intents
