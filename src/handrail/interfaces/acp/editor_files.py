"""The client's file system as the workspace uses it: unsaved text is seen, and edits land in the buffers."""

import os
from pathlib import Path

import anyio
from acp.agent.connection import AgentSideConnection
from acp.exceptions import RequestError
from pydantic import ValidationError

from handrail.protocol.errors import PathProblem

ANSWER_SECONDS = 10.0
"""For the client to read or write one file; formatting before it saves is included."""
NOT_FOUND = -32002
"""What clients answer for files that they do not have. Any other error says nothing about unsaved text."""


class EditorFiles:
    def __init__(self, client: AgentSideConnection, *, writes: bool) -> None:
        self._client = client
        self._writes = writes
        self.folders: dict[str, Path] = {}
        """{session that is open in the editor: its folder, as the editor names it}"""

    @property
    def writes(self) -> bool:
        return self._writes

    def has(self, session_id: str) -> bool:
        return session_id in self.folders

    async def read(self, session_id: str, path: str) -> str | None:
        """The client's text; None where it answers that there is none."""
        place = str(self.folders[session_id] / path)
        try:
            with anyio.fail_after(ANSWER_SECONDS):
                return (await self._client.read_text_file(session_id, place)).content
        except RequestError as refusal:
            if refusal.code == NOT_FOUND or not os.path.lexists(place):
                return None  # no such file, or none that it opens: then it has no unsaved text of it
            message = (
                f"The editor could not read {path}: {refusal}. Whether it has unsaved text is not known."
            )
            raise PathProblem(message, "protected_path", path) from refusal
        except (TimeoutError, ConnectionError, ValidationError) as error:
            raise _silent(path, "read") from error

    async def write(self, session_id: str, path: str, text: str) -> None:
        place = str(self.folders[session_id] / path)
        try:
            with anyio.fail_after(ANSWER_SECONDS):
                await self._client.write_text_file(session_id, place, text)
        except RequestError as refusal:
            message = f"The editor did not write {path}: {refusal}. Tell the user."
            raise PathProblem(message, "protected_path", path) from refusal
        except (TimeoutError, ConnectionError, ValidationError) as error:
            raise _silent(path, "write") from error


def _silent(path: str, what: str) -> PathProblem:
    late = " It may still write it: read the file before you go on." if what == "write" else ""
    return PathProblem(
        f"The editor did not answer when it was asked to {what} {path}.{late}", "timeout", path
    )
