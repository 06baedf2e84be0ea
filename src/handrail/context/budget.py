"""How much fits: estimates of tokens, and the share of the window at which older turns are compacted."""

from handrail.context.images import image_tokens
from handrail.models.base import AssistantTurn, Image, Message, Request, ToolSpec
from handrail.sessions.transcript import Entry, Replied, Said

BYTES_PER_TOKEN = 3.5
"""Low for English and code, so that an estimate errs on the safe side."""
PER_MESSAGE = 8
COMPACT_AT = 0.85
KEEP_AFTER_COMPACTION = 0.4


def text_tokens(text: str) -> int:
    return int(len(text.encode(errors="replace")) / BYTES_PER_TOKEN) + 1


def entry_tokens(entry: Entry) -> int:
    """What one entry of the transcript will cost."""
    if isinstance(entry, Replied):
        calls = sum(text_tokens(f"{call.name}{call.arguments}") for call in entry.calls)
        opaque = sum(text_tokens(str(block)) for block in entry.opaque)
        return PER_MESSAGE + text_tokens(entry.text) + calls + opaque
    images = sum(image_tokens(image) for image in entry.images)
    return PER_MESSAGE + images + text_tokens(entry.text if isinstance(entry, Said) else entry.content)


def fixed_tokens(system: str, tools: tuple[ToolSpec, ...]) -> int:
    """What comes with every request."""
    return text_tokens(system) + sum(
        text_tokens(f"{tool.name}{tool.description}{tool.schema}") for tool in tools
    )


def shown_characters(window: int, most: int, share: int) -> int:
    """How much of a file one fragment may show: a share of the window, and never more than `most`."""
    return max(1_500, min(most, int(window * BYTES_PER_TOKEN / share)))


def output_tokens(window: int, wished: int) -> int:
    """How many tokens an answer may have, leaving most of a small window to the question."""
    return max(256, min(wished, window // 4))


def request_bytes(request: Request) -> int:
    """The size of what is sent, near enough for a person."""
    images = sum(len(image.data) for message in request.messages for image in _images(message))
    return images + _words(request)


def request_tokens(request: Request) -> int:
    """What a request will cost, by our estimate."""
    images = sum(image.tokens for message in request.messages for image in _images(message))
    return images + int(_words(request) / BYTES_PER_TOKEN)


def most_tokens(request: Request) -> int:
    """What a request will hardly pass, whatever is in it."""
    from handrail.context.token_bound import most_text_tokens

    texts = [request.system, str(request.output_schema or "")]
    texts += [f"{tool.name}{tool.description}{tool.schema}" for tool in request.tools]
    for message in request.messages:
        texts.append(message.text if hasattr(message, "text") else message.content)
        texts.append(str(getattr(message, "calls", "")))
    images = sum(image.tokens for message in request.messages for image in _images(message))
    return images + sum(map(most_text_tokens, texts)) + PER_MESSAGE * (len(request.messages) + 1)


def _words(request: Request) -> int:
    def size(message: Message) -> int:
        text = message.text if hasattr(message, "text") else message.content
        return len(text) + len(str(getattr(message, "calls", "")))

    tools = sum(len(f"{tool.name}{tool.description}{tool.schema}") for tool in request.tools)
    return len(request.system) + tools + sum(size(message) for message in request.messages)


def _images(message: Message) -> tuple[Image, ...]:
    return () if isinstance(message, AssistantTurn) else message.images
