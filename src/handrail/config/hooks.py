"""Hooks as settings say them: which program runs when, in which folder, and which of its files are known."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from handrail.config.toml_file import parse_toml
from handrail.protocol.errors import ConfigProblem
from handrail.protocol.record import Record
from handrail.protocol.values import HookPoint, Value

AROUND_TOOLS = ("before_tool", "after_tool")
Word = Annotated[str, Field(pattern=r"^[^\x00]+$")]


class HookSettings(Value):
    on: HookPoint
    """When it runs."""
    run: Annotated[tuple[Word, ...], Field(min_length=1)]
    """The program and its arguments."""
    match: tuple[Word, ...] = ()
    """The tools whose calls it is about; empty: all."""
    seconds: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 30.0
    """Time for one run."""

    @model_validator(mode="after")
    def _match_needs_a_tool(self) -> Self:
        if self.match and self.on not in AROUND_TOOLS:
            raise PydanticCustomError("match", "match is for before_tool and after_tool: leave it out")
        return self


class Hook(Record):
    """A hook that counts."""

    settings: HookSettings
    folder: Path
    """Where it runs: the folder of the file that names it."""
    place: str
    """`FILE:LINE`."""
    files: Mapping[str, str]
    """The files of the workspace that were trusted, with the hashes of their contents."""


def file_of_workspace(word: str, folder: Path, workspace: Path) -> Path | None:
    """The file inside the workspace that a word of a hook leads to, if it leads to one."""
    if "\0" in word:
        return None
    path = Path(os.path.realpath(folder / os.path.expanduser(word)))
    return path if path.is_relative_to(os.path.realpath(workspace)) and path.is_file() else None


def files_named(data: bytes, folder: Path, workspace: Path) -> list[Path]:
    """The files of the workspace that hooks in its settings name; none where these cannot be read at all."""
    try:
        said = parse_toml(folder, data).data.get("hooks")
    except ConfigProblem:
        return []  # told where the settings are read
    found = (file_of_workspace(word, folder, workspace) for word in _words(said))
    return list(dict.fromkeys(file for file in found if file))


def _words(said: Any) -> Iterable[str]:
    for hook in said if isinstance(said, list) else ():
        words = hook.get("run") if isinstance(hook, dict) else ()
        yield from (word for word in (words if isinstance(words, list) else ()) if isinstance(word, str))
