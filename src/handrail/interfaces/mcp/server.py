"""The MCP server of one workspace: tools and approvals, for both eras of the protocol.

A client of 2026-07-28 is asked by an `input_required` result, and repeats its call with the answer; what was
asked is sealed in the state that it returns, and has to be what would be asked again. An older client is
asked while its call waits.
"""

import hashlib
import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server import Server, ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import is_version_at_least
from msgspec import to_builtins

from handrail import __version__
from handrail.app.app import App
from handrail.app.extensions.outside_agents import OutsideCalls, open_calls
from handrail.interfaces.cli.render.styles import clean
from handrail.interfaces.mcp.tools import TOOLS, Caller, ServerTool, arguments_of, schema_of
from handrail.protocol.errors import HandrailError, ToolRefused, UsageProblem
from handrail.protocol.values import Value, to_json

if TYPE_CHECKING:
    from handrail.protocol.events import ApprovalAsked

NAME = "handrail"
INSTRUCTIONS = (
    "Handrail changes files only as agreed with its user. Read a file before you edit it, and name its hash. "
    "Where list_intents says that the workspace is bound, select an intent first. Verify when you are done."
)
REPEATS_CALLS = "2026-07-28"
"""From this version on, a client is asked by the result of its call."""
ASK_SECONDS = 600.0
MAX_SHOWN = 20_000
"""Characters of what is to be approved: more would not be read."""
MAX_CLIENTS = 256
ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"allow": {"type": "boolean", "title": "Allow this, once", "default": False}},
    "required": ["allow"],
}
QUESTION = "approval"


class NotAsked(Exception):  # not of the tree: it never leaves this module
    """The client has to ask its user, and to repeat the call with the answer."""

    def __init__(self, message: str, state: str) -> None:
        super().__init__(message)
        self.state = state


class McpServer:
    """Serves the application to any number of clients."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._clients: OrderedDict[str, OutsideCalls] = OrderedDict()
        self._tools = {tool.name: tool for tool in TOOLS}
        self.server: Server[Any] = Server(
            NAME,
            version=__version__,
            title="Handrail",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        security = RequestStateSecurity.ephemeral()
        self.server.middleware.append(RequestStateBoundary(security, default_audience=NAME))

    async def _list(
        self, _context: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[_described(tool) for tool in TOOLS])

    async def _call(
        self, context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        try:
            tool = self._tools.get(params.name)
            if tool is None:
                raise UsageProblem(
                    f"There is no tool {params.name[:80]!r}. There are: {', '.join(self._tools)}."
                )
            arguments = arguments_of(tool, params.arguments or {})
            approval = Approval(context, params)
            caller = Caller(
                self._app, self._calls_of(context, arguments), approval.ask if approval.possible else None
            )
            result = to_builtins(await tool.run(caller, arguments))
        except NotAsked as asked:
            form = ElicitRequestFormParams(message=str(asked), requested_schema=ANSWER_SCHEMA)
            return InputRequiredResult(
                input_requests={QUESTION: ElicitRequest(params=form)}, request_state=asked.state
            )
        except ToolRefused as refused:
            return _failed(to_json(refused.error))
        except HandrailError as problem:
            return _failed(str(problem))
        return CallToolResult(
            content=[TextContent(type="text", text=to_json(result))], structured_content=result
        )

    def _calls_of(self, context: ServerRequestContext[Any], arguments: Value) -> OutsideCalls:
        """The calls of this client: those of its connection where it has one, else of its name and intent."""
        client = context.session.client_params
        name = client.client_info.name if client else ""
        request: Any = context.request
        key = request.headers.get("mcp-session-id", "") if request else "stdio"
        if not key:
            key = f"{name}\n{getattr(arguments, 'intent_id', '')}"
        calls = self._clients.pop(key, None) or open_calls(self._app, name)
        self._clients[key] = calls
        while len(self._clients) > MAX_CLIENTS:
            self._clients.popitem(last=False)
        return calls

    async def run_stdio(self) -> None:
        """Serve one client on stdin and stdout, until it closes them."""
        async with stdio_server(stdin=anyio.wrap_file(LimitedLines())) as (reading, writing):  # type: ignore[arg-type]
            await self.server.run(reading, writing, self.server.create_initialization_options())


class Approval:
    """Asks the client's user about a call."""

    def __init__(self, context: ServerRequestContext[Any], params: CallToolRequestParams) -> None:
        self._context = context
        self._params = params
        can = context.session.client_capabilities
        offered = can.elicitation if can else None
        # One without modes is of a client from before there were any: it shows forms.
        self.possible = offered is not None and (offered.form is not None or offered.url is None)

    async def ask(self, asked: "ApprovalAsked") -> bool:
        shown = clean(asked.preview, tab="\t")
        if len(shown) > MAX_SHOWN:
            raise UsageProblem(
                f"This has {len(shown):,} characters to approve; more than {MAX_SHOWN:,} cannot be shown "
                "over MCP. Make smaller changes, or let the user start `handrail mcp --mode edit`."
            )
        message = f"{asked.why}. {asked.tool} {clean(asked.summary)}\n\n{shown}"
        if is_version_at_least(self._context.protocol_version, REPEATS_CALLS):
            return self._answered(message)
        with anyio.move_on_after(ASK_SECONDS):
            answer = await self._context.session.elicit_form(
                message, ANSWER_SCHEMA, related_request_id=self._context.request_id
            )
            return _allows(answer)
        return False

    def _answered(self, message: str) -> bool:
        """The answer that came with the repeated call; raises NotAsked unless it is about exactly this."""
        state = hashlib.sha256(message.encode(errors="replace")).hexdigest()
        answer = (self._params.input_responses or {}).get(QUESTION)
        if self._params.request_state != state or not isinstance(answer, ElicitResult):
            raise NotAsked(message, state)
        return _allows(answer)


def _allows(answer: ElicitResult) -> bool:
    return answer.action == "accept" and (answer.content or {}).get("allow") is True


def _failed(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _described(tool: ServerTool) -> Tool:
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=schema_of(tool.takes),
        output_schema=schema_of(tool.returns),
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


class LimitedLines:
    """The lines of stdin as text; one that is too long comes as a line that is no JSON."""

    most = 4_000_000

    def readline(self) -> str:
        line = sys.stdin.buffer.readline(self.most)
        if len(line) < self.most or line.endswith(b"\n"):
            return line.decode(errors="replace")
        while (rest := sys.stdin.buffer.readline(self.most)) and not rest.endswith(b"\n"):
            pass
        return f"[a message of more than {self.most:,} bytes]\n"
