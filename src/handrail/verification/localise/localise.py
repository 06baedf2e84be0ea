"""Fault localisation: attach to each failing test the lines that are most likely the reason.

The tests run once more, with a program of Handrail's in the project's own pytest, unittest or node, which
records the lines that each of them runs. Nothing has to be installed. With pytest, failing tests run first.
"""

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from handrail.protocol.errors import PathProblem
from handrail.tools.reports.issue import Issue
from handrail.verification.localise.line_kinds import NOTHING_KNOWN, LineKinds, line_kinds
from handrail.verification.localise.spectrum import MOST, find_suspects
from handrail.verification.localise.traces import UnreadableTrace, read_node, read_python
from handrail.workspace.files import Workspace

INJECTED = Path(__file__).parent / "injected"
PLUGIN, RUNNER, PRELOAD = "handrail_localise", "handrail_localise_unittest", "handrail_localise.cjs"
TOOLS = ("pytest", "unittest", "node")
REPORT = "{report}"
SECONDS = 60.0
MAX_ISSUES = 50

RunTraced = Callable[[tuple[str, ...], Mapping[str, str]], Awaitable[Mapping[str, bytes]]]
"""Runs words as the tests ran, with some more variables; returns the files that they wrote into the folder of
reports. `{report}` in a variable stands for that folder."""


class SuiteRun(NamedTuple):
    """How the tests of a project were run."""

    tool: str
    """`pytest`, `unittest` or `node`; others cannot be localised."""
    words: tuple[str, ...]
    root: Path
    """Where the tree is on the disk."""
    shown_at: Path
    """Where the tests see it."""
    environ: Mapping[str, str]
    """What they had, for the variables that are added to."""
    seconds: float = SECONDS
    """After so long, no further test is started; not with node."""


class Localised(NamedTuple):
    issues: tuple[Issue, ...]
    """The same issues, with suspects where some were found."""
    problem: str = ""
    """Why there are none, if something went wrong."""


async def localise(issues: Sequence[Issue], tests: SuiteRun, run: RunTraced, most: int = MOST) -> Localised:
    """Run the tests once more and find suspects for the issues that name a failing test, so many for each."""
    failing = [issue for issue in issues if issue.test][:MAX_ISSUES]
    if not failing or tests.tool not in TOOLS:
        return Localised(tuple(issues))
    sources = _Sources(tests.root)
    words, variables = _traced(failing, tests)
    files = await run(words, variables)
    try:
        traced = read_node(files, failing, sources) if tests.tool == "node" else read_python(files)
    except UnreadableTrace as problem:
        return Localised(tuple(issues), f"suspicious lines are unknown: {problem}")
    if not any(test.failed for test in traced):
        return Localised(tuple(issues), "suspicious lines are unknown: no failing test was recorded")
    found = find_suspects(traced, sources.kinds, most)
    return Localised(tuple(replace(issue, suspects=found.get(issue.test, ())) for issue in issues))


def _traced(failing: Sequence[Issue], tests: SuiteRun) -> tuple[tuple[str, ...], dict[str, str]]:
    """The words and the additional variables that record."""
    variables = {
        "HANDRAIL_LOCALISE_ROOT": str(tests.shown_at),
        "HANDRAIL_LOCALISE_FOLDER": REPORT,
        "HANDRAIL_LOCALISE_SECONDS": str(tests.seconds),
        "HANDRAIL_LOCALISE_FAILING": "\n".join(issue.test for issue in failing),
    }
    if tests.tool == "node":
        before = tests.environ.get("NODE_OPTIONS", "")
        # A path in this variable may have blanks only between double quotes.
        return tests.words, variables | {"NODE_OPTIONS": f'{before} --require "{INJECTED / PRELOAD}"'.strip()}
    path = os.pathsep.join(filter(None, (str(INJECTED), tests.environ.get("PYTHONPATH", ""))))
    variables |= {"PYTHONPATH": path}
    if tests.tool == "unittest":
        return tuple(RUNNER if word == "unittest" else word for word in tests.words), variables
    # A setting of the project may stop at the first failure.
    return (*tests.words, "-p", PLUGIN, "--maxfail=0"), variables


class _Sources(Mapping[str, str]):
    """The files of the tree, read when they are needed; a file that cannot be read is empty."""

    def __init__(self, root: Path) -> None:
        self._workspace = Workspace(root)
        self._texts: dict[str, str] = {}
        self._kinds: dict[str, LineKinds] = {}

    def __getitem__(self, path: str) -> str:
        if path not in self._texts:
            try:
                place = self._workspace.resolve(path)
                self._texts[path] = self._workspace.read(place).text if place.inside else ""
            except PathProblem:
                self._texts[path] = ""
        return self._texts[path]

    def kinds(self, path: str) -> LineKinds:
        if path not in self._kinds:
            self._kinds[path] = line_kinds(path, self[path]) if self[path] else NOTHING_KNOWN
        return self._kinds[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)
