"""Our requests as pydantic-ai takes them, and its answers as blocks to send back."""

from collections.abc import Container
from typing import Any, cast

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from handrail.models.model import AssistantTurn, Image, Request, ToolResult, UserTurn
from handrail.models.reading.sanitize import returnable_block

RESULT_IMAGES = "[The images of the results above, in order.]"


def to_messages(name: str, request: Request) -> list[ModelMessage]:
    """The conversation, with the turns of this model as it sent them."""
    result: list[ModelMessage] = []
    parts: list[ModelRequestPart] = [SystemPromptPart(request.system)] if request.system else []
    images: list[Image] = []

    def end_of_results() -> None:
        if images:
            parts.append(_prompt(RESULT_IMAGES, tuple(images)))
            images.clear()

    for message in request.messages:
        match message:
            case ToolResult():
                parts.append(
                    ToolReturnPart(
                        message.tool,
                        message.content,
                        message.call_id,
                        outcome="failed" if message.is_error else "success",
                    )
                )
                images += message.images
            case UserTurn(text, shown):
                end_of_results()
                parts.append(_prompt(text, shown))
            case AssistantTurn():
                end_of_results()
                if parts:
                    result.append(ModelRequest(parts))
                    parts = []
                if turn := _as_sent(name, message) or _plain(message):
                    result.append(turn)
    end_of_results()
    return [*result, ModelRequest(parts)] if parts else result


def _prompt(text: str, images: tuple[Image, ...]) -> UserPromptPart:
    if not images:
        return UserPromptPart(text)
    content: list[UserContent] = [text] if text.strip() else []
    seen = (BinaryContent(each.data, media_type=each.media_type) for each in images)
    return UserPromptPart([*content, *seen])


def _plain(turn: AssistantTurn) -> ModelResponse | None:
    parts: list[ModelResponsePart] = [TextPart(turn.text)] if turn.text.strip() else []
    parts += [ToolCallPart(call.name, call.arguments, call.id) for call in turn.calls]
    return ModelResponse(parts) if parts else None


def _as_sent(name: str, turn: AssistantTurn) -> ModelResponse | None:
    """The turn as this model sent it; None if another model did, or if it has changed since."""
    for opaque in turn.opaque:
        if opaque.get("pydantic_ai") != name:
            continue
        [message] = ModelMessagesTypeAdapter.validate_python([opaque["response"]])
        if not isinstance(message, ModelResponse):
            continue
        text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
        calls = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
        if text == turn.text and calls == [call.id for call in turn.calls]:
            return message
    return None


def to_return(name: str, response: ModelResponse) -> dict[str, Any] | None:
    """The block with which a turn can be sent back as it came; None if its text and calls are enough."""
    marks = ("signature", "provider_details", "id")
    marked = any(getattr(part, mark, None) for part in response.parts for mark in marks)
    if not marked and not any(isinstance(part, ThinkingPart) for part in response.parts):
        return None
    [sent] = ModelMessagesTypeAdapter.dump_python([response], mode="json", exclude_none=True)
    for unneeded in ("usage", "timestamp", "provider_url"):
        sent.pop(unneeded, None)
    block = returnable_block({"pydantic_ai": name, "response": sent})
    return block if isinstance(block, dict) else None


def to_parameters(request: Request, *, by_schema: bool) -> ModelRequestParameters:
    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.schema)
        for tool in request.tools
    ]
    if not by_schema or request.output_schema is None:
        return ModelRequestParameters(function_tools=tools)
    output = OutputObjectDefinition(json_schema=request.output_schema, name="answer")
    return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=output)


def to_settings(request: Request, unsupported: Container[str]) -> ModelSettings:
    """The settings of a request, without those that the model does not take."""
    settings = ModelSettings(max_tokens=request.max_output_tokens, max_retries=0)
    if request.temperature is not None:
        settings["temperature"] = request.temperature
    if request.effort is not None:
        settings["thinking"] = request.effort
    if request.stop:
        settings["stop_sequences"] = list(request.stop)
    return cast(ModelSettings, {key: value for key, value in settings.items() if key not in unsupported})
