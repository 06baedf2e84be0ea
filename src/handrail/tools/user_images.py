"""Images the user attaches: from a file they name, or from the clipboard."""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from handrail.protocol.errors import PathProblem, UsageProblem
from handrail.protocol.values import AttachedImage
from handrail.storage.event_log import Log
from handrail.tools.process import run_for_output
from handrail.tools.secrets import without_secrets
from handrail.workspace.files import Workspace
from handrail.workspace.images import IMAGE_LIMIT, NotImage, parse_image

CLIPBOARD_SECONDS = 3.0
CLIPBOARD_PROGRAMS = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
    ("", ("pngpaste", "-")),
)


class UserImages:
    """Stores the images that the user attaches, so that messages can refer to them."""

    def __init__(self, log: Log, workspace: Workspace, environ: Mapping[str, str]) -> None:
        self._log = log
        self._workspace = workspace
        self._environ = environ

    def named(self, file: Path) -> AttachedImage:
        """The image in a file; raises UsageProblem if it is not an image that can be used."""
        try:
            found = self._workspace.image(str(file.absolute()))
        except PathProblem as problem:
            raise UsageProblem(str(problem)) from problem
        if found is None:
            raise UsageProblem(f"{file} is not a PNG, JPEG, GIF or WebP image. Attach one of those.")
        self._log.keep(found.data)
        return found.image

    def given(self, data: bytes) -> AttachedImage:
        """The image with these bytes; raises UsageProblem if they are not an image that can be used."""
        try:
            found = parse_image(f"pasted-{hashlib.sha256(data).hexdigest()[:6]}", data)
        except NotImage as problem:
            raise UsageProblem(f"The image cannot be used: {problem}") from problem
        if found is None:
            raise UsageProblem("These bytes are not a PNG, JPEG, GIF or WebP image. Attach one of those.")
        self._log.keep(found.data)
        return found.image

    async def in_clipboard(self) -> AttachedImage | None:
        """The image in the clipboard; None if there is none, it is too large, or no program can read it."""
        for variable, words in CLIPBOARD_PROGRAMS:
            if variable and not self._environ.get(variable):
                continue
            with suppress(OSError, NotImage):
                code, data = await run_for_output(
                    words,
                    folder=Path("/"),
                    environment=without_secrets(self._environ),
                    timeout=CLIPBOARD_SECONDS,
                    limit=IMAGE_LIMIT + 1,
                )
                name = f"clipboard-{hashlib.sha256(data).hexdigest()[:6]}"
                found = parse_image(name, data) if code == 0 and len(data) <= IMAGE_LIMIT else None
                if found:
                    break
        else:
            return None
        self._log.keep(found.data)
        return found.image
