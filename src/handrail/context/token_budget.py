"""Token estimates, and how much of a model's window each part of a request may fill."""

import re
from typing import NamedTuple

from handrail.context.images import image_tokens
from handrail.models.model import AssistantTurn, Image, Message, Request, ToolSpec
from handrail.sessions.transcript import AssistantEntry, TranscriptEntry, UserEntry

BYTES_PER_TOKEN = 3.5
"""Low for English and code, so estimates err on the safe side."""
MESSAGE_OVERHEAD = 8
MOST_SHOWN = 240_000
"""Characters of a question with all that it is shown."""


def text_tokens(text: str) -> int:
    return int(len(text.encode(errors="replace")) / BYTES_PER_TOKEN) + 1


def entry_tokens(entry: TranscriptEntry) -> int:
    if isinstance(entry, AssistantEntry):
        calls = sum(text_tokens(f"{call.name}{call.arguments}") for call in entry.calls)
        opaque = sum(text_tokens(str(block)) for block in entry.opaque)
        return MESSAGE_OVERHEAD + text_tokens(entry.text) + calls + opaque
    text = entry.text if isinstance(entry, UserEntry) else entry.content
    return MESSAGE_OVERHEAD + text_tokens(text) + sum(image_tokens(image) for image in entry.images)


def fixed_tokens(system: str, tools: tuple[ToolSpec, ...]) -> int:
    described = (f"{tool.name}{tool.description}{tool.schema}" for tool in tools)
    return text_tokens(system) + sum(map(text_tokens, described))


def fragment_cap(window: int, most: int, share: int) -> int:
    """Characters that one fragment may have: a share of the window, at most `most`."""
    return max(1_500, min(most, int(window * BYTES_PER_TOKEN / share)))


def input_share(window: int, inputs: int) -> int:
    """Characters of each output of another stage that a question is shown."""
    return fragment_cap(window, most=MOST_SHOWN, share=2) // (inputs + 2)


def output_tokens(window: int, wanted: int) -> int:
    """Tokens that an answer may have, leaving most of a small window to the request."""
    return max(256, min(wanted, window // 4))


class RequestMeasure(NamedTuple):
    """Approximate size of a request, and its estimated tokens."""

    bytes: int
    tokens: int


def measure_request(request: Request) -> RequestMeasure:
    words = len(request.system)
    words += sum(len(f"{tool.name}{tool.description}{tool.schema}") for tool in request.tools)
    data = tokens = 0
    for message in request.messages:
        words += len(message.text if hasattr(message, "text") else message.content)
        words += len(str(getattr(message, "calls", "")))
        for image in _images(message):
            data += len(image.data)
            tokens += image.tokens
    return RequestMeasure(data + words, tokens + int(words / BYTES_PER_TOKEN))


def max_request_tokens(request: Request) -> int:
    """Upper bound on the tokens of a request."""
    texts = [request.system, str(request.output_schema or "")]
    texts += [f"{tool.name}{tool.description}{tool.schema}" for tool in request.tools]
    for message in request.messages:
        texts.append(message.text if hasattr(message, "text") else message.content)
        texts.append(str(getattr(message, "calls", "")))
    images = sum(image.tokens for message in request.messages for image in _images(message))
    return images + sum(map(token_upper_bound, texts)) + MESSAGE_OVERHEAD * (len(request.messages) + 1)


def _images(message: Message) -> tuple[Image, ...]:
    return () if isinstance(message, AssistantTurn) else message.images


# Upper bound
#
# Tokenizers agree on prose and differ on everything else: some have one token per digit, and rare characters
# take one for each of their bytes. So each kind is counted as by the tokenizer that makes most of it.

LETTERS, CAPITALS = re.compile(r"[a-z]+"), re.compile(r"[A-Z]+")
SIGNS = re.compile(r"([\x00-\x08\x0e-\x1b!-/:-@\[-`{-~\x7f])\1*")
"""ASCII without letters, digits and space; written so, it is compiled in no time."""
SPACE = re.compile(r" {2,}|\t+|[\r\n\f\v]+| (?=[\r\n\t])")
"""A single space before a word belongs to the word's token."""
WORD_LENGTH, MAX_WORD_LENGTH = 6, 18
"""Letters per token, and letters of the longest word; anything longer is not language."""
NO_WORD = 0.65
"""Tokens per letter outside of words."""
CAPITAL = 0.75
REPEATED = 1 / 16
BLANK_LINE = 1 / 4
TWO_BYTES, THREE_BYTES, FOUR_BYTES = 1.0, 1.75, 4.0
"""Tokens per character by UTF-8 length: accents and Cyrillic, Chinese or Thai, emoji."""
RESERVE = 1.1


def token_upper_bound(text: str) -> int:
    """At least as many tokens as known tokenizers make of prose, code, data and noise."""
    words = map(len, LETTERS.findall(text))
    counted = sum(NO_WORD * n if n > MAX_WORD_LENGTH else 1 + (n - 1) // WORD_LENGTH for n in words)
    counted += sum(CAPITAL if len(word) == 1 else NO_WORD * len(word) for word in CAPITALS.findall(text))
    counted += sum(map(text.count, "0123456789"))
    counted += sum(1 + REPEATED * (len(found[0]) - 1) for found in SIGNS.finditer(text))
    for found in SPACE.findall(text):
        counted += 1 + len(found) * (BLANK_LINE if found[0] in "\r\n" and len(found) > 2 else REPEATED)
    if not text.isascii():
        counted += sum(
            TWO_BYTES if each < "\u0800" else THREE_BYTES if each < "\U00010000" else FOUR_BYTES
            for each in text
            if each > "\x7f"
        )
    return int(RESERVE * counted) + 1
