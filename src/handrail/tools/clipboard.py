"""The picture in the clipboard, asked of the program that the desktop has for it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from handrail.tools.environment import without_secrets
from handrail.tools.process import run_process
from handrail.workspace.images import IMAGE_LIMIT, ImageFile, NotImage, image_of

SECONDS = 3.0
READERS = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
    ("", ("pngpaste", "-")),
)
"""Programs, each with the variable that says that its desktop is there."""


async def clipboard_image(environ: Mapping[str, str]) -> ImageFile | None:
    """The picture; None where there is none, it is too large, or nothing can be asked for it."""
    for variable, words in READERS:
        if variable and not environ.get(variable):
            continue
        data = await _output(words, environ)
        try:
            if found := image_of(f"clipboard-{hashlib.sha256(data).hexdigest()[:6]}", data):
                return found
        except NotImage:
            continue
    return None


async def _output(words: tuple[str, ...], environ: Mapping[str, str]) -> bytes:
    output = bytearray()

    def take(chunk: bytes) -> bool:
        output.extend(chunk)
        return len(output) <= IMAGE_LIMIT

    try:
        ended = await run_process(
            words, folder=Path("/"), environment=without_secrets(environ), timeout=SECONDS, take=take
        )
    except OSError:
        return b""
    return bytes(output) if ended.code == 0 and len(output) <= IMAGE_LIMIT else b""
