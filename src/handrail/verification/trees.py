"""The trees that checks run on: scratch copies of the workspace, or the workspace itself where that fails."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio.to_thread import run_sync

from handrail.protocol.errors import PathProblem
from handrail.verification.base_tree import Base
from handrail.verification.check import Tree
from handrail.workspace.scratch_copy.copies import ScratchCopies
from handrail.workspace.scratch_copy.copy import MountedLayer, ScratchCopy


@asynccontextmanager
async def copied_tree(
    copies: ScratchCopies, base: Base | None = None, layers: Sequence[MountedLayer] = ()
) -> AsyncIterator[Tree]:
    """A copy of the workspace as it is, or as it was at the base; raises StorageProblem, StorageBusy."""
    async with taken_copy(copies, base) as copy:
        shown = await run_sync(copy.shown, layers)
        yield Tree(copy.root, copy.shown_at, shown)


@asynccontextmanager
async def taken_copy(copies: ScratchCopies, base: Base | None = None) -> AsyncIterator[ScratchCopy]:
    """The copy itself, for those who change it; raises StorageProblem, StorageBusy."""
    taken = copies.take()
    copy = await run_sync(taken.__enter__)
    try:
        if base:
            await run_sync(_go_back, copy, base)
        yield copy
    finally:
        with anyio.CancelScope(shield=True):
            await run_sync(taken.__exit__, None, None, None)


def _go_back(copy: ScratchCopy, base: Base) -> None:
    """Give the files that changed the content that they had."""
    for path, before in base.files.items():
        if before is None:
            try:
                copy.delete(path)
            except PathProblem as problem:
                if problem.reason != "file_missing":
                    raise
    for path, before in base.files.items():
        if before is not None:
            copy.write(path, before.data, mode=before.mode)
