"""The trace of a workspace: verify it, show who wrote a line, report what was done."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from handrail.changes.trace.blame import (
    BlamedLine,
    TraceLine,
    blame,
    blame_from_export,
    lines_of_others,
    present_files,
)
from handrail.changes.trace.integrity import Finding, Gap, Verified, verify
from handrail.changes.trace.logged_changes import AppliedChange, applied_changes, logged_lines
from handrail.changes.trace.replay import Replay
from handrail.changes.trace.report import Report, report
from handrail.changes.trace.trace_file import PATH, ExportFormat, TraceFile, line_hash, user_errors
from handrail.changes.trace.write import write_missing_lines, write_trace
from handrail.protocol.errors import PathProblem, StorageBusy, UsageProblem
from handrail.storage.archive import write_lines
from handrail.storage.event_log import Log
from handrail.storage.locks import wait_for_workspace
from handrail.tools.git import file_on_branches
from handrail.workspace.files import Workspace

MAX_NAMED = 3  # lines of a gap that a finding names


class TraceCheck(NamedTuple):
    verified: Verified
    findings: tuple[Finding, ...]
    elsewhere: tuple[str, ...]  # for the user: lines that only another branch has
    cut_off: frozenset[str] = frozenset()  # change sets whose lines no branch has at the end of a chain
    completed: int = 0  # lines that a crash had kept out of the file, written now
    restored: int = 0  # cut-off lines, written again
    undecided: int = 0  # change sets that were started and whose outcome is still unknown


class BranchTrace(NamedTuple):
    name: str
    lines: frozenset[str]
    is_head: bool


class TraceQueries:
    def __init__(self, log: Log, workspace: Workspace) -> None:
        self._log = log
        self._workspace = workspace
        self._trace = TraceFile(workspace.root, log.folder)

    async def verify(self, *, restore: bool = False) -> TraceCheck:
        """Compare the trace with the log, after writing lines that a crash kept out of the file.

        `restore` writes cut-off lines again; it cannot restore lines between others.
        """
        before = self._count()
        # Another process that is changing files writes its lines itself.
        with suppress(StorageBusy), ExitStack() as held, user_errors():
            await wait_for_workspace(held, self._log.folder, "trace verify", keeps_note=True)
            write_missing_lines(self._log, self._trace)
        completed = self._count() - before
        found = await self._checked()
        if restore:
            with ExitStack() as held, user_errors():
                await wait_for_workspace(held, self._log.folder, "trace verify", keeps_note=True)
                for applied in applied_changes(self._log):
                    if applied.change.change_id in found.cut_off:
                        write_trace(self._trace, applied.change)
            found = await self._checked()
        return found._replace(
            completed=completed,
            restored=self._count() - before - completed,
            undecided=sum(not row.outcome for row in self._log.begun()),
        )

    def has(self, path: str) -> bool:
        return self._workspace.exists(path)

    def blame(self, path: str, export: Path | None = None) -> list[BlamedLine]:
        """The lines of a file, each with its author; raises PathProblem where it has no text.

        With `export`, only that file is asked, and neither the log nor the trace.
        """
        place = self._workspace.resolve(path)
        if not place.inside:
            message = f"{path} is not in this workspace; changes there are not traced."
            raise PathProblem(message, "outside_workspace", path)
        data = self._workspace.read(place).data
        if export:
            return blame_from_export(place.path, data, _read_export(export))
        changes = applied_changes(self._log)
        disk = self._disk(changes) | {place.path: data}
        return blame(place.path, disk, changes, self._log.blob, self._others())

    def export(self, wanted: ExportFormat) -> Iterator[str]:
        """The lines of an export, of everything that the log and the trace know."""
        from handrail.changes.trace.export import export_lines

        return export_lines(self._log, self._workspace, self._trace, wanted)

    def write_export(self, target: Path, wanted: ExportFormat) -> None:
        """The same in a new file, which has all of it or is not there."""
        write_lines(target, self.export(wanted))

    def report(self) -> Report:
        changes = applied_changes(self._log)
        return report(changes, Replay(changes, self._log.blob, {}).tally, self._others())

    def _others(self) -> list[TraceLine]:
        return lines_of_others(self._trace.read() or b"", logged_lines(self._log))

    def _disk(self, changes: Iterable[AppliedChange]) -> dict[str, bytes | None]:
        """The present content of all files that were changed, except those that cannot be read."""
        files = (file for applied in changes for file in applied.change.files)
        paths = dict.fromkeys(path for file in files for path in (file.path, file.destination) if path)
        return present_files(self._workspace, paths)

    async def _checked(self) -> TraceCheck:
        data = self._trace.read() or b""
        verified = verify(data, logged_lines(self._log))
        branches = [
            BranchTrace(each.name, frozenset(map(line_hash, each.data.splitlines())), each.is_head)
            for each in (await file_on_branches(self._workspace.root, PATH) if verified.gaps else [])
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
        notes = tuple(
            f"{count:,} line{'s' * (count != 1)} of the log {'are' if count != 1 else 'is'} not in this file:"
            f" {name} has {'them' if count != 1 else 'it'}."
            for name, count in elsewhere.items()
        )
        return TraceCheck(verified, tuple(sorted(findings)), notes, frozenset(cut_off))

    def _count(self) -> int:
        return (self._trace.read() or b"").count(b"\n")


def _read_export(export: Path) -> list[TraceLine]:
    from handrail.changes.trace.export import read_export

    try:
        with export.open("rb") as file:
            return read_export(file.readline, str(export))
    except OSError as error:
        raise UsageProblem(f"{export} cannot be read: {error.strerror}.") from error


def _finding(gap: Gap, holder: str) -> Finding:
    count, first = len(gap.lines), gap.lines[0]
    named = ", ".join(
        f"{line.number} ({line.file}, change {line.change_id})" for line in gap.lines[:MAX_NAMED]
    )
    more = f" and {count - MAX_NAMED:,} more" if count > MAX_NAMED else ""
    numbers = f"number{'s' * (count != 1)} {named}{more} of {first.writer}"
    where = f"after line {gap.after}" if gap.after else "at the start of its chain"
    has = f"; {holder} has {'them' if count != 1 else 'it'}" if holder else ""
    return Finding(gap.after, "cut off" if gap.at_end else "removed", f"{where}, {numbers}{has}")
