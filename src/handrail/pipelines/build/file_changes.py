"""Proposed files as calls that change the workspace, and as a trial there that is rolled back.

Where checks cannot run in a copy, files are applied to the workspace, checked there, and rolled back unless
they pass. A kill leaves the trial in place until the session is opened again: then the run goes on.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from itertools import groupby

import anyio
from anyio.to_thread import run_sync

from handrail.engine.pipeline import Change, StepContext
from handrail.pipelines.build.states import DOCUMENT
from handrail.pipelines.call_results import call_refusal
from handrail.protocol.errors import GiveUp, PathProblem
from handrail.protocol.values import HASH_DIGITS
from handrail.verification.base_tree import PLAIN, FileBefore
from handrail.verification.proposed import ProposedFile
from handrail.workspace.files import Workspace, encode
from handrail.workspace.stat_index import FileStat, snapshot

TRIES = 3


def change_to(file: ProposedFile, old: str) -> Change:
    """The call that applies a file: the same after a restart, so it must not depend on what is there now."""
    base = file.base[:HASH_DIGITS]
    if not file.base:
        return Change("write", {"path": file.path, "text": file.text, "only": "create"})
    if file.text is None:
        return Change("delete", {"path": file.path, "base_hash": base})
    if not old:
        return Change("write", {"path": file.path, "text": file.text, "only": "rewrite", "base_hash": base})
    # The whole text: `write` wants a file that was shown as a whole, which a large one is not.
    edits = [{"search": old, "replace": file.text}]
    return Change("edit", {"path": file.path, "edits": edits, "base_hash": base})


def tick_again(file: ProposedFile, old: str, base: str) -> Change:
    """The call that repeats only the ticks in a checklist which has changed; it names the lines as they were.

    It depends on nothing but what the log has, so it is the same after a restart.
    """
    before, after = old.split("\n"), (file.text or "").split("\n")
    edits = []
    for differs, lines in groupby(range(len(before)), lambda at: before[at] != after[at]):
        numbers = list(lines)
        if differs:  # with its line breaks: one item may be the beginning of another
            first, end = "\n" * (numbers[0] > 0), "\n" * (numbers[-1] < len(before) - 1)
            old_lines, new_lines = ("\n".join(text[at] for at in numbers) for text in (before, after))
            edits.append({"search": f"{first}{old_lines}{end}", "replace": f"{first}{new_lines}{end}"})
    return Change("edit", {"path": file.path, "edits": edits, "base_hash": base})


def is_applied_here(workspace: Workspace, file: ProposedFile) -> bool:
    """Whether the workspace has the file as it was proposed."""
    try:
        if file.text is None:
            return not workspace.exists(file.path)
        found = workspace.read(file.path)
    except PathProblem:
        return False
    return found.sha256 in (
        sha256(file.text.encode()).hexdigest(),
        sha256(encode(file.text, bom=found.bom)).hexdigest(),
    )


class Trial:
    """Proposed files in the workspace for as long as they are checked."""

    def __init__(
        self, work: StepContext, files: Sequence[ProposedFile], others: Mapping[str, FileStat]
    ) -> None:
        self.keeps = False
        """Whether they stay; else they are rolled back."""
        self._work, self._files, self._others = work, files, others
        self._old: dict[str, str] = work.outputs[DOCUMENT]["old"]

    @property
    def touched(self) -> dict[str, FileBefore | None]:
        """What the files were before."""
        return {
            file.path: FileBefore(encode(self._old[file.path], bom=self._bom(file)), PLAIN)
            if file.base
            else None
            for file in self._files
        }

    def _bom(self, file: ProposedFile) -> bool:
        return file.text is not None and self._work.workspace.read(file.path).bom

    def _is_program(self, path: str) -> bool:
        file = self._work.workspace.root / path
        return file.is_file() and bool(file.stat().st_mode & 0o111)

    def is_intact(self, always: Collection[str]) -> bool:
        """Whether nobody changed a file meanwhile, but the checklist and what the checks `always` write.

        What they add does not count.
        """
        ticked = self._work.item.path if self._work.item else ""
        mine = [file for file in self._files if file.path != ticked]
        now = snapshot(self._work.workspace.root).files
        same = all(now.get(path) == known for path, known in self._others.items() if path not in always)
        return same and all(is_applied_here(self._work.workspace, file) for file in mine)

    async def put(self) -> None:
        """Apply the files, once more if a rollback came before a restart; raises GiveUp where refused."""
        if runs := [file.path for file in self._files if file.text is None and self._is_program(file.path)]:
            why = "would lose its permissions in a rollback, and there is no copy to try this in"
            raise GiveUp(f"The build cannot be tried: {', '.join(runs)} {why}. Nothing was changed.")
        changes = [change_to(file, self._old.get(file.path, "")) for file in self._files]
        for _ in range(TRIES):
            await self._read([file.path for file in self._files if file.base])
            await self._change(changes)
            if all(is_applied_here(self._work.workspace, file) for file in self._files):
                return
        raise GiveUp("The build cannot be tried: its files cannot be applied. Nothing was applied.")

    async def take_back(self) -> None:
        """Roll the files back; raises GiveUp where somebody has changed them meanwhile."""
        try:
            await self._read([file.path for file in self._files if file.text is not None])
            await self._change([self._reverse(file) for file in self._files])
        except (GiveUp, PathProblem) as problem:
            names = ", ".join(file.path for file in self._files)
            left = f"Unverified files are in the workspace: {names}. `handrail undo` takes them back"
            raise GiveUp(f"The build could not be rolled back: {problem} {left}.") from problem

    def _reverse(self, file: ProposedFile) -> Change:
        old, item = self._old.get(file.path), self._work.item
        if file.text is None:
            return change_to(ProposedFile(file.path, old), "")
        now = self._work.workspace.read(file.path)
        if item and file.path == item.path and now.text != file.text and old is not None:
            return tick_again(ProposedFile(file.path, old), file.text, now.sha256[:HASH_DIGITS])
        base = sha256(encode(file.text, bom=now.bom)).hexdigest()
        return change_to(ProposedFile(file.path, old, base), file.text)

    async def _read(self, paths: Sequence[str]) -> None:
        """Edits are accepted only for files that were read."""
        for path in paths:
            await self._work.call("read", {"path": path, "end": 1})

    async def _change(self, changes: Sequence[Change]) -> None:
        ends = await self._work.change_together(changes)
        if wrong := next((end for end in ends if not end.ok), None):
            raise GiveUp(f"The files of the build cannot be changed: {call_refusal(wrong).message}")


@asynccontextmanager
async def applied(work: StepContext, files: Sequence[ProposedFile]) -> AsyncIterator[Trial]:
    """The files applied to the workspace; rolled back at the end, also when it is cancelled, unless kept."""
    paths = {file.path for file in files}
    index = await run_sync(snapshot, work.workspace.root)
    trial = Trial(work, files, {path: told for path, told in index.files.items() if path not in paths})
    await trial.put()
    try:
        yield trial
    finally:
        if not trial.keeps:
            with anyio.CancelScope(shield=True):
                await trial.take_back()
