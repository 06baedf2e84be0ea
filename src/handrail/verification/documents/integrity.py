"""Documentation integrity: a change may add to the changelog and tick the checklist, and nothing else."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from handrail.config.open_file import read_file
from handrail.tools.reports.issue import Issue
from handrail.verification.consistency.source_tree import TouchedFile
from handrail.verification.documents.changelog import check_changelog, is_changelog
from handrail.verification.documents.checklist import check_checklist

MAX_BYTES = 64_000_000


def check_documents(
    root: Path, touched: Iterable[TouchedFile], checklists: Collection[str] = ()
) -> tuple[Issue, ...]:
    """Issues of the changelogs, known by their names, and of these checklists.

    A file whose content before the change is unknown is not judged.
    """
    issues: list[Issue] = []
    for path, old, _ in touched:
        if old is not None and (path in checklists or is_changelog(path)):
            issues += _check(path, old, _content(root, path), checklists)
    return tuple(issues)


def bytes_to_restore(
    old: Mapping[str, bytes], new: Mapping[str, bytes | None], checklists: Collection[str] = ()
) -> dict[str, bytes]:
    """What all documents must hold again if any of them was violated, by path; nothing if all are sound.

    `old` has the content of each document before the change, `new` after it; None: it was deleted.
    """
    found = [issue for path, data in old.items() for issue in _check(path, data, new.get(path), checklists)]
    return {path: data for path, data in old.items() if new.get(path) != data} if found else {}


def _check(path: str, old: bytes, new: bytes | None, checklists: Collection[str]) -> tuple[Issue, ...]:
    return check_checklist(path, old, new) if path in checklists else check_changelog(path, old, new)


def _content(root: Path, path: str) -> bytes | None:
    """A document's bytes; None if it is gone, or no longer a file that can be read."""
    try:
        return read_file(root / path, MAX_BYTES, follow=False)
    except OSError:
        return None
