"""What the user sends from an editor: its blocks as one message."""

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from acp import schema

from handrail.app.app import App
from handrail.interfaces.acp.tool_calls import fenced
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import AttachedImage

Block = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)
MAX_ATTACHED = 400_000
"""Characters of all texts that came with a message."""


class FilePlace(NamedTuple):
    path: Path
    lines: str
    """`L10:20` or `L10-L20`, as editors write it behind `#`; empty: the whole file."""


def message_of(app: App, folder: Path, blocks: Sequence[Block]) -> SendMessage:
    """The blocks of a prompt as a message; raises UsageProblem for what cannot be sent."""
    texts, attached, images = list[str](), list[str](), list[AttachedImage]()
    for block in blocks:
        match block:
            case schema.TextContentBlock():
                texts.append(block.text)
            case schema.ImageContentBlock():
                images.append(app.images.given(_decoded(block.data, "The image")))
            case schema.ResourceContentBlock():
                texts.append(_mention(block.uri, folder) or f"[{block.name}]({block.uri})")
            case schema.EmbeddedResourceContentBlock():
                mention, text = _embedded(app, folder, block.resource, images)
                texts.append(mention)
                attached += [text] if text else []
            case schema.AudioContentBlock():
                raise UsageProblem("Handrail takes no audio. Send text, images or files.")
    if sum(map(len, attached)) > MAX_ATTACHED:
        raise UsageProblem(
            f"The texts attached to the message have more than {MAX_ATTACHED:,} characters. "
            "Mention the files instead; the model reads what it needs of them."
        )
    text = _joined(texts)
    if not text.strip() and not images:
        raise UsageProblem("The message is empty. Write something.")
    return SendMessage(text=text, images=tuple(images), attached="\n\n".join(attached))


def _joined(texts: Sequence[str]) -> str:
    """The texts one after the other; a mention stands apart from the words beside it."""
    joined = ""
    for text in texts:
        apart = joined and not joined[-1].isspace() and text[:1] and not text[0].isspace()
        joined += f" {text}" if apart and (text.startswith("@") or _ends_in_mention(joined)) else text
    return joined


def _ends_in_mention(text: str) -> bool:
    *_, last = ["", *text.split()]
    return last.startswith("@")


def _embedded(
    app: App,
    folder: Path,
    resource: schema.TextResourceContents | schema.BlobResourceContents,
    images: list[AttachedImage],
) -> tuple[str, str]:
    """How the message names what came with it, and its text for the model.

    A whole file is read like every mention: through the editor if it offers that, so that its hash is known.
    """
    uri = resource.uri
    if isinstance(resource, schema.BlobResourceContents):
        if not (resource.mime_type or "").startswith("image/"):
            raise UsageProblem(f"{uri} is neither text nor an image, so it cannot be attached.")
        images.append(app.images.given(_decoded(resource.blob, uri)))
        return "", ""
    place = _file_place(uri)
    if place and not place.lines and (mention := _mention(uri, folder)):
        return mention, ""
    name = f"{place.path.name} {place.lines}".strip() if place else uri
    return f"[{name}]({uri})", f"### {name}, as the editor has it\n{fenced(resource.text)}"


def _mention(uri: str, folder: Path) -> str:
    """The `@path` of a file in the workspace; empty for anything else."""
    place = _file_place(uri)
    if place is None:
        return ""
    for root in (folder, Path(folder).resolve()):
        if place.path.is_relative_to(root):
            path = str(place.path.relative_to(root))
            name = f'@"{path}"' if " " in path or not path.isascii() else f"@{path}"
            return f"{name} ({place.lines})" if place.lines else name
    return ""


def _file_place(uri: str) -> FilePlace | None:
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return FilePlace(Path(unquote(parts.path)), parts.fragment)


def _decoded(data: str, what: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageProblem(f"{what} is not valid base64: {error}.") from error
