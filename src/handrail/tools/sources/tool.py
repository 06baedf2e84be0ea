"""The mcp tool: list the tools of a source, and call one."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, field

from handrail.config.sources import Source
from handrail.policy.call_facts import SourceFacts
from handrail.protocol.errors import ConfigProblem, UsageProblem
from handrail.protocol.values import Value, to_json
from handrail.sessions.session import Session
from handrail.tools.commands.output import LiveOutput
from handrail.tools.sources.launch import WORKSPACE_WORD, SourceFailed
from handrail.tools.sources.sources import Offered, Sources, matches
from handrail.tools.tool import (
    CallContext,
    Outcome,
    Prepared,
    Question,
    Tool,
    failure,
    redact,
    strip_control_codes,
    tool_refused,
)

if TYPE_CHECKING:
    from handrail.tools.commands.file_changes import ChangeWatcher

MAX_PREVIEW, MAX_NAMES = 8_000, 40
CHANGED = "the tools of {source} are not those that you approved ({changes})"


class McpArguments(Value):
    source: Annotated[str, Meta(min_length=1, max_length=40)]
    tool: Annotated[str, Meta(max_length=200)] = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    describe: tuple[str, ...] = ()


class PreparedCall(Prepared):
    """A call of a source's tool, and the tools as they were then: a yes approves these."""

    hashes: Mapping[str, str] = {}


class CallSource(Tool[McpArguments]):
    name = "mcp"
    description = (
        "Use a source: with `source` alone, list its tools (`describe`: some in full); then call a `tool`."
    )
    action = "call"
    arguments = McpArguments

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._offered: dict[str, tuple[Source, Offered]] = {}
        """By source, as it was looked at for the last call."""
        self._watcher: ChangeWatcher | None = None

    def close(self) -> None:
        if self._watcher:
            self._watcher.close()

    def summary(self, arguments: McpArguments, work: CallContext) -> str:
        return f"{arguments.source}.{arguments.tool}" if arguments.tool else f"{arguments.source}: its tools"

    def subject(self, arguments: McpArguments, work: CallContext) -> dict[str, Any]:
        """`always` covers the tool with any arguments, as long as its server describes it in the same way."""
        _, offered = self._offered[arguments.source]
        said = offered.hashes.get(arguments.tool, "")
        definition = self._offered[arguments.source][0].sha256
        return {"source": arguments.source, "tool": arguments.tool, "said": said, "definition": definition}

    async def source_facts(self, arguments: McpArguments, session: Session) -> SourceFacts:
        """What is known about the call; starts the source where it does not run. Raises ToolRefused."""
        run = session.state.run
        try:
            source = self._sources.folders.find_usable(arguments.source, run.sources if run else ())
            offered = await self._sources.offered(source, again=not arguments.tool)
        except (UsageProblem, ConfigProblem) as problem:
            raise tool_refused(self.name, "invalid_arguments", str(problem)) from problem
        except SourceFailed as problem:
            raise tool_refused(self.name, "source_failed", str(problem)) from problem
        self._offered[source.name] = source, offered
        if not arguments.tool:
            return SourceFacts(source.name, reads_only=True)
        tool, file = offered.tools.get(arguments.tool), source.file
        if tool is None:
            names = ", ".join(list(offered.tools)[:MAX_NAMES]) or "none"
            message = f"{source.name} offers no tool {arguments.tool[:80]!r}. It offers: {names}."
            raise tool_refused(self.name, "invalid_arguments", message)
        required = tool.schema.get("required")
        missing = [
            name
            for name in (required if isinstance(required, list) else ())
            if name not in arguments.arguments
        ]
        if missing:
            message = f"`arguments` lacks {', '.join(map(str, missing[:MAX_NAMES]))}. The schema: "
            raise tool_refused(self.name, "invalid_arguments", message + to_json(dict(tool.schema))[:4_000])
        return SourceFacts(
            source.name,
            tool.name,
            reads_only=tool.reads_only and file.trust_annotations,
            unasked=matches(tool.name, file.tools.unasked),
        )

    def prepare(self, arguments: McpArguments, work: CallContext) -> Prepared:
        source, offered = self._offered[arguments.source]
        secrets = offered.connection.secrets
        shown = [f"{arguments.source}.{arguments.tool}"] if arguments.tool else []
        if arguments.tool:
            shown.append(to_json(arguments.arguments))
        confirm = ""
        if offered.changes:
            confirm = CHANGED.format(source=source.name, changes=offered.changes)
            shown.append(f"What the server says of them now:\n{_said(source, offered, self._sources)}")
        preview = secrets.hide(strip_control_codes("\n".join(shown)))[:MAX_PREVIEW]
        return PreparedCall(preview, confirm, offered.hashes)

    async def run(self, arguments: McpArguments, work: CallContext) -> Outcome:
        source, offered = self._offered[arguments.source]
        approved = work.prepared.hashes if isinstance(work.prepared, PreparedCall) else {}
        if self._sources.approved.of(source) != approved:
            self._sources.approved.approve(source, approved)
        if arguments.tool:
            return await self._call(source, offered, arguments, work)
        from handrail.tools.sources.results import list_outcome

        tools = list(offered.tools.values())
        room = min(work.shown_characters, MAX_PREVIEW)
        return redact(offered.connection.secrets, list_outcome(source.name, tools, arguments.describe, room))

    async def _call(
        self, source: Source, offered: Offered, arguments: McpArguments, work: CallContext
    ) -> Outcome:
        from handrail.tools.sources.elicitation import Elicitation
        from handrail.tools.sources.results import result_outcome

        connection = offered.connection
        live = LiveOutput(work.session.live, work.call_id, connection.secrets)

        async def say(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            live.add(f"{share} {message or ''}".rstrip().encode() + b"\n")

        async def ask(question: Question) -> str:
            with connection.waiting_for_user():
                return await work.ask(question) if work.ask else ""

        questions = Elicitation(source.name, arguments.tool, ask, connection.secrets)
        async with self._recorded(source, work, arguments):
            try:
                result = await connection.call(arguments.tool, arguments.arguments, say, questions.answer)
            except SourceFailed as problem:
                return failure(self.name, "source_failed", str(problem))
        return result_outcome(source.name, arguments.tool, result, connection.secrets, work.shown_characters)

    def _recorded(self, source: Source, work: CallContext, arguments: McpArguments) -> Any:
        """Records what changes in the workspace during the call of a source that may write there."""
        if WORKSPACE_WORD not in source.file.writes:
            return nullcontext()
        from handrail.tools.commands.file_changes import ChangeWatcher

        self._watcher = self._watcher or ChangeWatcher(work.workspace)
        return self._watcher.watch(work, f"{arguments.source}.{arguments.tool}")


def _said(source: Source, offered: Offered, sources: Sources) -> str:
    """What the server says of the tools that are new or changed."""
    from handrail.tools.sources.results import tool_details

    before = sources.approved.of(source) or {}
    now = offered.tools.items()
    return "\n".join(tool_details(tool) for name, tool in now if before.get(name) != tool.sha256)
