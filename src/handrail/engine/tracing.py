"""The trace of a workspace as a user asks for it: is it whole, who wrote this line, what was done."""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from handrail.changes.trace.blame import BlamedLine, TraceLine, blame, lines_of_others
from handrail.changes.trace.file import PATH, TraceFile, typed
from handrail.changes.trace.findings import Finding
from handrail.changes.trace.known import Applied, applied_changes, known_lines
from handrail.changes.trace.line import line_hash
from handrail.changes.trace.replay import Replay
from handrail.changes.trace.report import Report, report
from handrail.changes.trace.verify import Gap, Verified, verify
from handrail.changes.trace.writing import complete_all, write
from handrail.protocol.errors import PathProblem, StorageBusy
from handrail.storage.log import Log
from handrail.storage.workspace_lock import workspace_lock
from handrail.tools.git import on_branches
from handrail.workspace.files import Workspace

NAMED = 3
"""Lines of a gap that are named one by one."""


class Checked(NamedTuple):
    """What verifying found."""

    verified: Verified
    findings: tuple[Finding, ...]
    """What is wrong, gaps included, in the order of the file."""
    elsewhere: tuple[str, ...]
    """In words: lines that are missing here and that another branch has."""
    cut_off: frozenset[str] = frozenset()
    """Change sets whose lines are missing at the end of a chain and are nowhere else."""
    completed: int = 0
    """Lines that a crash had kept from the file, and that were written first."""
    restored: int = 0
    """Lines that were written again."""
    undecided: int = 0
    """Change sets that were begun and of which it is not settled yet whether they are applied."""


class Branch(NamedTuple):
    """The trace of another branch, or of what is checked out, as it was committed."""

    name: str
    lines: frozenset[str]
    """Hashes."""
    is_head: bool


class Tracing:
    def __init__(self, log: Log, workspace: Workspace) -> None:
        self._log = log
        self._workspace = workspace
        self._trace = TraceFile(workspace.root, log.folder)

    async def verify(self, *, restore: bool = False) -> Checked:
        """What is not as it was written; what a crash kept from the file is written first.

        `restore` writes again what was cut off; it cannot mend what was removed between others.
        """
        before = self._count()
        self._complete()
        completed = self._count() - before
        found = await self._checked()
        if restore:
            self._restore(found)
            found = await self._checked()
        return found._replace(
            completed=completed,
            restored=self._count() - before - completed,
            undecided=sum(not row.outcome for row in self._log.begun()),
        )

    def has(self, path: str) -> bool:
        """Whether the workspace has such a file."""
        return self._workspace.exists(path)

    def blame(self, path: str) -> list[BlamedLine]:
        """The lines of a file, each with who wrote it; raises PathProblem where there is no text."""
        place = self._workspace.resolve(path)
        if not place.inside:
            message = f"{path} is not in this workspace: what is changed there is not traced."
            raise PathProblem(message, "outside_workspace", path)
        data = self._workspace.read(place).data
        changes = applied_changes(self._log)
        disk = self._disk(changes) | {place.path: data}
        return blame(place.path, disk, changes, self._log.blob, self._others())

    def report(self) -> Report:
        """What was done, in numbers."""
        changes = applied_changes(self._log)
        tally = Replay(changes, self._log.blob, {}).tally
        return report(changes, tally, self._others())

    def _others(self) -> list[TraceLine]:
        return lines_of_others(self._trace.read() or b"", known_lines(self._log))

    def _disk(self, changes: Iterable[Applied]) -> dict[str, bytes | None]:
        """All files that changes speak of, as they are now; those that cannot be read are left out."""
        files = (file for applied in changes for file in applied.change.files)
        found: dict[str, bytes | None] = {}
        for path in dict.fromkeys(path for file in files for path in (file.path, file.destination) if path):
            try:
                found[path] = self._workspace.read(path).data
            except PathProblem as problem:
                if problem.reason == "file_missing":
                    found[path] = None
        return found

    def _complete(self) -> None:
        # Where somebody is changing files, they write their lines themselves.
        with (
            suppress(StorageBusy),
            workspace_lock(self._log.folder, "trace verify", keeps_note=True),
            typed(),
        ):
            complete_all(self._log, self._trace)

    async def _checked(self) -> Checked:
        data = self._trace.read() or b""
        verified = verify(data, known_lines(self._log))
        branches = [
            Branch(each.name, frozenset(map(line_hash, each.data.splitlines())), each.is_head)
            for each in (await on_branches(self._workspace.root, PATH) if verified.gaps else [])
        ]
        findings = list(verified.findings)
        elsewhere: Counter[str] = Counter()
        cut_off: set[str] = set()
        for gap in verified.gaps:
            holding = [each for each in branches if each.lines.issuperset(line.sha256 for line in gap.lines)]
            if gap.at_end and holding and not any(each.is_head for each in holding):
                elsewhere[holding[0].name] += len(gap.lines)
            else:
                findings.append(_finding(gap, holding[0].name if holding else ""))
                cut_off.update(line.change_id for line in gap.lines if gap.at_end)
        told = tuple(
            f"{count:,} line{'s' * (count != 1)} that the log knows {'are' if count != 1 else 'is'} not in"
            f" this file: {name} has {'them' if count != 1 else 'it'}."
            for name, count in elsewhere.items()
        )
        return Checked(verified, tuple(sorted(findings)), told, frozenset(cut_off))

    def _count(self) -> int:
        return (self._trace.read() or b"").count(b"\n")

    def _restore(self, found: Checked) -> None:
        """Write again what was cut off."""
        with workspace_lock(self._log.folder, "trace verify", keeps_note=True), typed():
            for applied in applied_changes(self._log):
                if applied.change.change_id in found.cut_off:
                    write(self._trace, applied.change)


def _finding(gap: Gap, holder: str) -> Finding:
    count, first = len(gap.lines), gap.lines[0]
    named = ", ".join(f"{line.number} ({line.file}, change {line.change_id})" for line in gap.lines[:NAMED])
    more = f" and {count - NAMED:,} more" if count > NAMED else ""
    numbers = f"number{'s' * (count != 1)} {named}{more} of {first.writer}"
    where = f"after line {gap.after}" if gap.after else "at the start of its chain"
    has = f"; {holder} has {'them' if count != 1 else 'it'}" if holder else ""
    return Finding(gap.after, "cut off" if gap.at_end else "removed", f"{where}, {numbers}{has}")
