"""Pictures that the user gives by hand: a file they name, wherever it is, or what is in the clipboard."""

from collections.abc import Mapping
from pathlib import Path

from handrail.protocol.errors import PathProblem, UsageProblem
from handrail.protocol.values import AttachedImage
from handrail.storage.log import Log
from handrail.tools.clipboard import clipboard_image
from handrail.workspace.files import Workspace


class UserImages:
    """Each is kept, so that a message can speak of it."""

    def __init__(self, log: Log, workspace: Workspace, environ: Mapping[str, str]) -> None:
        self._log = log
        self._workspace = workspace
        self._environ = environ

    def named(self, file: Path) -> AttachedImage:
        """The picture in a file; UsageProblem where it is none, or unfit."""
        try:
            found = self._workspace.image(str(file.absolute()))
        except PathProblem as problem:
            raise UsageProblem(str(problem)) from problem
        if found is None:
            raise UsageProblem(f"{file} is no PNG, JPEG, GIF or WebP picture, whatever its name says.")
        self._log.keep(found.data)
        return found.image

    async def in_clipboard(self) -> AttachedImage | None:
        """The picture in the clipboard; None where there is none."""
        found = await clipboard_image(self._environ)
        if found is None:
            return None
        self._log.keep(found.data)
        return found.image
