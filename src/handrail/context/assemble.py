"""Assembling a request: stable things first, what varies last."""

from collections.abc import Iterable

from handrail.context.budget import output_tokens
from handrail.context.images import Stored, with_images
from handrail.context.prompt import Prompt
from handrail.models.base import (
    AssistantTurn,
    Capabilities,
    Deadlines,
    Message,
    Request,
    ToolResult,
    UserTurn,
)
from handrail.sessions.state import Cut
from handrail.sessions.transcript import Entry, Replied, Said
from handrail.tools.secrets import NO_SECRETS, Secrets

SUMMARY = "[Earlier in this session, summarised by Handrail; the full log is kept.]\n{summary}"


def assemble(
    *,
    prompt: Prompt,
    cut: Cut,
    transcript: Iterable[Entry],
    capabilities: Capabilities,
    model: str,
    max_output: int,
    deadlines: Deadlines,
    temperature: float | None = None,
    secrets: Secrets = NO_SECRETS,
    stored: Stored = lambda _: None,
) -> Request:
    """The request that asks the model to go on with the conversation; known secrets are not in it.

    `stored` gives the bytes of pictures.
    """
    messages = [_message(entry, model, stored) for entry in transcript]
    if cut.summary:
        messages.insert(0, UserTurn(SUMMARY.format(summary=cut.summary)))
    return Request(
        system=secrets.hide(prompt.whole),
        messages=tuple(_without(secrets, message) for message in _joined(messages)),
        tools=prompt.tools,
        paths=prompt.paths,
        writable=prompt.writable,
        writing=prompt.writing,
        actions=prompt.actions,
        fields=prompt.fields,
        rewrite=prompt.rewrite,
        max_output_tokens=output_tokens(capabilities.context_window, max_output),
        deadlines=deadlines,
        temperature=temperature,
    )


def _message(entry: Entry, model: str, stored: Stored) -> Message:
    if isinstance(entry, Replied):
        # Signed blocks are only good for the model that made them.
        return AssistantTurn(entry.text, entry.calls, entry.opaque if entry.model == model else ())
    entry, images = with_images(entry, stored)
    if isinstance(entry, Said):
        return UserTurn(entry.text, images)
    return ToolResult(entry.call_id, entry.tool, entry.content, entry.is_error, images)


def _without(secrets: Secrets, message: Message) -> Message:
    """The message with marks where secrets stand, whoever wrote or attached them."""
    if isinstance(message, ToolResult):
        return message.changed(content=secrets.hide(message.content))
    return message.changed(text=secrets.hide(message.text))


def _joined(messages: list[Message]) -> list[Message]:
    """Neighbouring messages of the user as one: several providers refuse two in a row."""
    joined: list[Message] = []
    for message in messages:
        last = joined[-1] if joined else None
        if isinstance(message, UserTurn) and isinstance(last, UserTurn):
            joined[-1] = UserTurn(f"{last.text}\n\n{message.text}", last.images + message.images)
        else:
            joined.append(message)
    return joined
