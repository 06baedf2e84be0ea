"""Verify a workspace for an interface: find its checks, run them, and write what they found to files."""

from collections.abc import Sequence
from pathlib import Path

from handrail.changes.forms.document import CreateChange, Document, RewriteChange
from handrail.config.files import write_atomically
from handrail.protocol.errors import UsageProblem
from handrail.tools.reports.issue import CheckResult, Issue
from handrail.verification.check import Check
from handrail.verification.export import junit_document, sarif_document
from handrail.verification.fixes import Fixed
from handrail.verification.verdict import Progress, Verdict, broken_by_change
from handrail.verification.workspace_checks import VerifyOptions, WorkspaceChecks

__all__ = ["Check", "CheckResult", "Issue", "Progress", "Verdict", "VerifyOptions", "WorkspaceChecks"]
__all__ += ["broken_by_change"]

MAX_SUMMARY = 500


def fix_document(fixes: Sequence[Fixed]) -> Document:
    """Fixes as a proposal that can be previewed and applied."""
    changes = tuple(
        RewriteChange(each.path, each.text, each.sha256)
        if each.sha256
        else CreateChange(each.path, each.text)
        for each in fixes
    )
    words = "; ".join(f"{each.path}: {', '.join(each.by)}" for each in fixes)
    return Document(changes, summary=f"Fixes by code: {words}"[:MAX_SUMMARY])


def write_sarif(target: Path, verdict: Verdict) -> None:
    _write(target, sarif_document(verdict))


def write_junit(target: Path, verdict: Verdict) -> None:
    _write(target, junit_document(verdict))


def _write(target: Path, text: str) -> None:
    try:
        write_atomically(target, text.encode(errors="replace"))
    except OSError as error:
        raise UsageProblem(f"{target} cannot be written: {error.strerror}. Choose another place.") from error
