"""Tools for models that have no native ones: described in the prompt, called in writing."""

import json

from handrail.models.base import AssistantTurn, Message, Request, ToolResult, UserTurn
from handrail.models.written_calls import calls_in_text

HOW = """

You can use these tools. To use one, end your answer with a block like this and nothing after it:
```json
{"name": "TOOL", "arguments": {...}}
```
The result comes in the next message. Tools:
"""


def with_written_tools(request: Request) -> Request:
    """The same request with its tools, calls and results as plain text."""
    listed = "".join(
        f"- {tool.name}: {tool.description} Arguments: {json.dumps(tool.schema, ensure_ascii=False)}\n"
        for tool in request.tools
    )
    system = request.system + HOW + listed if request.tools else request.system
    return request.changed(system=system, messages=tuple(map(_as_text, request.messages)), tools=())


def _as_text(message: Message) -> Message:
    match message:
        case AssistantTurn(text, calls) if calls:
            if calls_in_text(text, {call.name for call in calls}):
                return AssistantTurn(text)
            written = (
                json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
                for call in calls
            )
            return AssistantTurn("\n\n".join([text, *(f"```json\n{each}\n```" for each in written)]).strip())
        case ToolResult():
            word = "Error from" if message.is_error else "Result of"
            return UserTurn(f"{word} {message.tool}:\n{message.content}", message.images)
        case _:
            return message
