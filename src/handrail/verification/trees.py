"""The trees that checks run on: scratch copies of the workspace, or the workspace itself where that fails."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.to_thread import run_sync

from handrail.protocol.errors import PathProblem
from handrail.verification.base_tree import Base
from handrail.verification.check import Tree
from handrail.workspace.scratch_copy.copies import ScratchCopies
from handrail.workspace.scratch_copy.copy import ScratchCopy


@asynccontextmanager
async def copied_tree(copies: ScratchCopies, base: Base | None = None) -> AsyncIterator[Tree]:
    """A copy of the workspace as it is, or as it was at the base; raises StorageProblem, StorageBusy."""
    taken = copies.take()
    copy = await run_sync(taken.__enter__)
    try:
        if base:
            await run_sync(_go_back, copy, base)
        shown = await run_sync(copy.shown)
        yield Tree(copy.root, copy.shown_at, shown)
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
