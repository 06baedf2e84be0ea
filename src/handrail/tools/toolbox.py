"""The toolbox: every tool a model can call, and which ones each mode offers."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.config.settings import LessonSettings
from handrail.config.skills import SkillFolders
from handrail.models.model import ToolSpec
from handrail.protocol.values import Mode
from handrail.tools.commands.background import Background, BackgroundCommands
from handrail.tools.commands.run import Run
from handrail.tools.credential_prompt import CredentialPrompt, StoredCredentials
from handrail.tools.files.diagnostics import Diagnostics
from handrail.tools.files.edit import ApplyDiff, DeleteFile, EditFile, FileChangeTool, MoveFile, WriteFile
from handrail.tools.files.read import Read
from handrail.tools.files.search import Glob, ListFolder, Search
from handrail.tools.record_lesson import RecordLesson
from handrail.tools.record_plan import RecordPlan
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.subagent import RunSubagent
from handrail.tools.todos_and_questions import AskUser, NextSteps, Todos
from handrail.tools.tool import Tool
from handrail.tools.validate import Checked, Checker, Validate
from handrail.tools.web.fetch import Fetch
from handrail.workspace.intents_file import IntentFile

if TYPE_CHECKING:
    from handrail.tools.sources.sources import Sources
    from handrail.tools.sources.tool import CallSource

ROOMY_WINDOW = 8_192
ROOMY_TOOLS = ("credential_prompt", "validate", "subagent", "record_lesson")
"""Work without these is possible: a smaller window than that keeps the room, unless an agent names one."""
INIT_TOOLS = ("survey", "write_notes")
BUILD_TOOLS = ("run_in_copy", "repeat_packages")
NAMED_TOOLS = (
    *(
        "hybrid_search",
        "multi_tier_search",
        "guide_search",
        "hop_retrieve",
        "debug_hop_trace",
        "list_documents",
    ),
    *("get_paragraph", "citation_verify", "entity_verify", "relation_verify", "contradiction_check"),
    *("format_context", "web_search", "status"),
)
"""The tools of the knowledge base: an agent that names one is offered it, and nobody else."""


class Toolbox:
    """A fixed set of tools in a fixed order, so that prompts are the same bytes every time."""

    def __init__(
        self,
        sandbox: Sandbox | None = None,
        intents: IntentFile | None = None,
        lessons: LessonSettings | None = None,
        readable_secrets: Sequence[str] = (),
        *,
        skills: SkillFolders | None = None,
        checkers: Mapping[Checked, Checker] | None = None,
        subagent: RunSubagent | None = None,
        credentials: StoredCredentials | None = None,
        sources: "Sources | None" = None,
        named: Callable[[], Mapping[str, Tool[Any]]] = dict,
    ) -> None:
        """`intents` adds the tools for intents, in a workspace that has some.

        `named`: tools that only agents are offered which name them.
        """
        self._load_named = named
        sandbox = self._sandbox = sandbox or Sandbox()
        self._intents = intents
        self._skills = skills
        self._sources = sources
        self.listed_sources: tuple[tuple[str, str], ...] = ()
        """Name and description of each usable source, as of the last call of `specs`."""
        self.listed_skills: tuple[tuple[str, str], ...] = ()
        """Name and description of each usable skill, as of the last call of `specs`."""
        self._intent_tools: dict[str, Tool[Any]] = {}
        self._bound_specs: dict[str, ToolSpec] = {}
        self.background = BackgroundCommands()
        self.run_tool = Run(sandbox, self.background, readable_secrets, credentials)
        diagnostics = Diagnostics(sandbox)
        tools: list[Tool[Any]] = [
            Read(),
            ListFolder(),
            Glob(),
            Search(),
            EditFile(diagnostics),
            WriteFile(diagnostics),
            ApplyDiff(diagnostics),
            DeleteFile(diagnostics),
            MoveFile(diagnostics),
            self.run_tool,
            Background(self.background),
            Fetch(),
            Todos(),
            AskUser(),
            *([CredentialPrompt(credentials)] if credentials else []),
            NextSteps(),
            RecordPlan(),
            *([Validate(checkers)] if checkers else []),
            *([subagent] if subagent else []),
            RecordLesson(intents.workspace.root if intents else Path(), lessons or LessonSettings()),
        ]
        self._tools = {tool.name: tool for tool in tools}
        self._specs = {name: tool.spec() for name, tool in self._tools.items() if name != "subagent"}

    def close(self) -> None:
        """Remove the copies that were taken of the workspace."""
        self.run_tool.close()
        if "_source_tool" in self.__dict__:
            self._source_tool.close()

    def find(self, name: str) -> Tool[Any] | None:
        found = self._tools.get(name) or self._tools_for_intents().get(name)
        if found is None and name in NAMED_TOOLS:
            return self._named_tools.get(name)
        if name == "skill" and self._skills:
            return self._skill_tool
        if name == "mcp" and self._sources:
            return self._source_tool
        if name in BUILD_TOOLS:
            return self._build_tools.get(name)
        return found or (self._init_tools.get(name) if name in INIT_TOOLS else None)

    def names(self, mode: Mode) -> list[str]:
        """The tools that a mode offers."""
        tools = self._tools | self._tools_for_intents()
        reads_only = mode in ("explore", "plan")
        if self.listed_skills:
            tools["skill"] = self._skill_tool
        if self.listed_sources:
            tools["mcp"] = self._source_tool
        offered = {name: tool for name, tool in tools.items() if tool.offered}
        return [name for name, tool in offered.items() if not (reads_only and tool.action == "write")]

    def specs(self, mode: Mode, needed: tuple[str, ...] = ()) -> tuple[ToolSpec, ...]:
        """The tools that a mode offers, as a model sees them; reads which skills and sources there are now.

        `needed`: sources of the agent that runs.
        """
        self.listed_sources = self._sources.listed(needed) if self._sources else ()
        if self.listed_sources:
            self._specs.setdefault("mcp", self._source_tool.spec())
        usable = self._skills.usable() if self._skills else ()
        self.listed_skills = tuple((skill.name, skill.description) for skill in usable)
        if usable:
            self._specs.setdefault("skill", self._skill_tool.spec())
        if subagent := self._tools.get("subagent"):
            self._specs["subagent"] = subagent.spec()
        specs = self._specs | self._bound_specs if self._tools_for_intents() else self._specs
        return tuple(specs[name] for name in self.names(mode))

    def named_specs(self, names: Sequence[str]) -> tuple[ToolSpec, ...]:
        """Those of the tools that are offered only to agents which name them."""
        return tuple(self._named_tools[name].spec() for name in names if name in NAMED_TOOLS)

    @cached_property
    def _named_tools(self) -> Mapping[str, Tool[Any]]:
        return self._load_named()

    @cached_property
    def _init_tools(self) -> dict[str, Tool[Any]]:
        """The tools of `/init`: no model is offered them."""
        from handrail.tools.notes.init_tools import SurveyRepository, WriteNotes

        tools: list[Tool[Any]] = [SurveyRepository(), WriteNotes()]
        return {tool.name: tool for tool in tools}

    @cached_property
    def _build_tools(self) -> dict[str, Tool[Any]]:
        """The tools of plans that run commands: no model is offered them."""
        from handrail.tools.commands.run_in_copy import RepeatPackages, RunInCopy

        tools: list[Tool[Any]] = [RunInCopy(self._sandbox), RepeatPackages(self._sandbox)]
        return {tool.name: tool for tool in tools}

    @cached_property
    def _skill_tool(self) -> Tool[Any]:
        from handrail.tools.skills import UseSkill

        if self._skills is None:
            raise AssertionError("a toolbox without skills has no tool for them")
        return UseSkill(self._skills)

    @cached_property
    def _source_tool(self) -> "CallSource":
        from handrail.tools.sources.tool import CallSource

        if self._sources is None:
            raise AssertionError("a toolbox without sources has no tool for them")
        return CallSource(self._sources)

    def _tools_for_intents(self) -> dict[str, Tool[Any]]:
        if self._intents is None or self._intents.now() is None:
            return {}
        if not self._intent_tools:
            from handrail.tools.intent_tools import RequestScope, SelectIntent

            tools: list[Tool[Any]] = [SelectIntent(self._intents), RequestScope(self._intents)]
            self._intent_tools = {tool.name: tool for tool in tools}
            self._specs |= {tool.name: tool.spec() for tool in tools}
            changing = [tool for tool in self._tools.values() if isinstance(tool, FileChangeTool)]
            self._bound_specs = {tool.name: tool.spec(include=("mutation_class",)) for tool in changing}
        return self._intent_tools
