"""A check of a project: the command that runs it, and how its result is read."""

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from handrail.tools.reports.issue import Issue, IssueKind
from handrail.tools.reports.plain_text import plain_text
from handrail.tools.reports.report import Reader
from handrail.workspace.scratch_copy.copy import ShownCopy

REPORT_FOLDER = "{report}"
"""In the words of a check: the folder that it writes its report to."""
CACHE_FOLDER = "{cache}"
"""In its variables: a folder that is kept from run to run. Without one, the variable is not set."""
IN_FOLDER = 'cd -- "$0" && exec "$@"'
"""A script for bash that runs its arguments in a folder."""
MAX_FILES = 500
"""More are not given to a linter one by one: a command line has an end."""
ANY_CODE = frozenset(range(1, 126))
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
SHELL = "command"
"""The tool of a check that is a shell command of the settings."""
Alone = Callable[[Issue], tuple[str, ...]]
"""The words that run only the test of an issue; empty where that is not possible."""


class Tree(NamedTuple):
    """A state of the project's files."""

    root: Path
    """Where they are on the disk."""
    shown_at: Path
    """Where commands see them: the workspace's own path, so that editable installs lead to them."""
    copy: ShownCopy | None = None
    """How the sandbox shows a copy there; None: the files are the workspace's own."""


class Check(NamedTuple):
    kind: IssueKind
    tool: str
    words: tuple[str, ...] = ()
    part: str = ""
    """The folder it runs in, relative to the tree."""
    name: str = ""
    reader: Reader = plain_text
    found_codes: frozenset[int] = frozenset({1})
    """Exit statuses that mean: it ran, and found something."""
    missing: str = ""
    """Why it cannot run here, and what to do; empty: it can."""
    writes: bool = False
    """It may write into the tree, so nothing else runs beside it."""
    seconds: float = 0.0
    environ: Mapping[str, str] = NO_VARIABLES
    paths: tuple[str, ...] = ()
    """Folders with programs that it needs, for its PATH."""
    alone: Alone | None = None
    suffixes: tuple[str, ...] = ()
    """Files that it can check one by one; empty: only all of them."""
    targets: int = 0
    """How many of the last words name what is checked, and can be replaced by some files."""
    threshold: float | None = None
    """Percent of coverage that this check must reach, where it measures it."""

    root: Path = Path()
    """The tree as its commands see it."""

    @property
    def command(self) -> str:
        """As a person would type it in the part's folder."""
        if self.tool == SHELL:
            return self.words[-1]
        here = self.root / self.part
        words = [os.path.relpath(each, here) if _is_in(each, self.root) else each for each in self.words]
        return shlex.join(word.replace(REPORT_FOLDER, "$REPORT") for word in words)

    def limited_to(self, files: tuple[str, ...]) -> "Check":
        """The check of these files alone, relative to the part; the same where it cannot be limited."""
        if not self.targets or not 0 < len(files) <= MAX_FILES:
            return self
        return self._replace(words=(*self.words[: -self.targets], *files))


def _is_in(word: str, root: Path) -> bool:
    return os.path.isabs(word) and Path(word).is_relative_to(root)
