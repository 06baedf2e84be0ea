"""A part of a project: a folder with a manifest, its files, and the programs of its environment."""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from handrail.config.open_file import read_file
from handrail.config.toml_file import parse_toml
from handrail.protocol.errors import ConfigProblem
from handrail.tools.reports.report import Unreadable, load_json
from handrail.tools.secrets import path_outside
from handrail.verification.check import Tree

MAX_MANIFEST = 1_000_000
ENVIRONMENTS = (".venv", "venv", "env")
COMMENT = re.compile(r"(?m)(?:^|\s)#.*$")


class Part:
    """One part; `files` are the paths in it, relative to it, without those of parts below."""

    def __init__(
        self, tree: Tree, folder: str, files: Sequence[str], environ: Mapping[str, str], seen: Path
    ) -> None:
        """`seen` is where the programs of the project are: the workspace, also for a copy of it."""
        self.tree = tree
        self.folder = folder
        self.files = files
        self._names = frozenset(files)
        self._environ = environ
        self._seen = seen

    def has(self, *names: str) -> bool:
        return any(name in self._names for name in names)

    def text(self, name: str) -> str:
        """A file's text without comments; empty where it cannot be read."""
        if not self.has(name):
            return ""
        try:
            data = read_file(self.tree.root / self.folder / name, MAX_MANIFEST)
        except OSError:
            return ""
        return COMMENT.sub("", data.decode(errors="replace"))

    @cached_property
    def pyproject(self) -> dict[str, Any]:
        name = "pyproject.toml"
        if not self.has(name):
            return {}
        try:
            data = read_file(self.tree.root / self.folder / name, MAX_MANIFEST)
            return parse_toml(Path(name), data).data
        except (OSError, ConfigProblem):
            return {}

    @cached_property
    def package(self) -> dict[str, Any]:
        """package.json."""
        name = "package.json"
        try:
            found = load_json(read_file(self.tree.root / self.folder / name, MAX_MANIFEST))
        except (OSError, Unreadable):
            return {}
        return found if isinstance(found, dict) else {}

    def tool_section(self, name: str) -> dict[str, Any] | None:
        """`[tool.NAME]` of pyproject.toml; None if there is none."""
        tools = self.pyproject.get("tool")
        section = tools.get(name) if isinstance(tools, dict) else None
        return section if isinstance(section, dict) else None

    def names_below(self, folder: str) -> list[str]:
        return [path for path in self.files if path.startswith(f"{folder}/")]

    @property
    def environments(self) -> list[Path]:
        """Folders of virtual environments: the part's, the project's, the one that is activated."""
        folders = [self._seen / self.folder, self._seen]
        found = [folder / name for folder in folders for name in ENVIRONMENTS]
        found = [path for path in dict.fromkeys(found) if (path / "pyvenv.cfg").is_file()]
        activated = self._environ.get("VIRTUAL_ENV", "")
        # One that is activated inside of a test run of Handrail's own is nobody's choice for this project.
        if not found and os.path.isabs(activated) and (Path(activated) / "pyvenv.cfg").is_file():
            found.append(Path(activated))
        return found

    @property
    def bin_folders(self) -> list[Path]:
        """Folders with the project's own programs, nearest first."""
        parents = [
            self._seen / parent
            for parent in (PurePosixPath(self.folder), *PurePosixPath(self.folder).parents)
        ]
        node = [folder / "node_modules" / ".bin" for folder in parents]
        return [*(path / "bin" for path in self.environments), *(path for path in node if path.is_dir())]

    def program(self, name: str, *, own_only: bool = False) -> str:
        """A program of the project's own, else one on the PATH outside of it; empty if there is none."""
        own = os.pathsep.join(map(str, self.bin_folders))
        found = (shutil.which(name, path=own) if own else None) or ""
        if found or own_only:
            return found
        return shutil.which(name, path=path_outside(self._seen, self._environ)) or ""

    @property
    def python(self) -> str:
        """The interpreter of the project."""
        return self.program("python") or self.program("python3")
