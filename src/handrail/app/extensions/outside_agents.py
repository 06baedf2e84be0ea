"""Handrail's powers for agents that are not ours: what the MCP server offers."""

from typing import TYPE_CHECKING, Literal

from handrail.app.builds.verify import VerifyOptions
from handrail.changes.forms.document import Document
from handrail.engine.admin.outside_calls import Approve, EndedCall, OutsideCalls
from handrail.protocol.errors import IntentsProblem
from handrail.protocol.intent import SELECT_INTENT
from handrail.protocol.values import Value
from handrail.tools.files.edit_batch import EditFiles
from handrail.tools.files.read import Read
from handrail.tools.reports.issue import CheckResult, CheckStatus, Issue
from handrail.verification.verdict import broken_by_change

if TYPE_CHECKING:
    from handrail.app.app import App

__all__ = ["EDIT", "READ", "SELECT_INTENT", "Approve", "Document", "EndedCall", "OutsideCalls"]

READ, EDIT = Read.name, EditFiles.name
MAX_ISSUES, MAX_LINES = 200, 2_000
MAX_NAME = 60


def open_calls(app: "App", client: str) -> OutsideCalls:
    """The calls of a client of this name, in a session that shows it."""
    proposals = app.proposals
    name = " ".join("".join(each for each in client if each.isprintable()).split())[:MAX_NAME]
    return OutsideCalls(
        app.log,
        app.workspace,
        proposals.intents,
        name=f"MCP: {name or 'unnamed client'}",
        mode=app.settings.mode,
        hooks=proposals.hooks,
        secrets=app.model_pool.secrets,
    )


class ShownIntent(Value):
    id: str
    name: str
    status: str
    scope: tuple[str, ...]
    constraints: tuple[str, ...]
    acceptance_criteria: tuple[str, ...]
    depends_on: tuple[str, ...]
    can_be_selected: bool


class IntentReport(Value):
    bound: bool
    """Whether every change here needs an intent."""
    intents: tuple[ShownIntent, ...]


class IntentCheck(Value):
    ok: bool
    wrong: tuple[str, ...]
    """What is wrong with the intents themselves."""
    conflicts: tuple[str, ...]
    """Intents that own the same files."""
    waiting: tuple[str, ...]
    """Intents that depend on others which are not done."""


def list_intents(app: "App") -> IntentReport:
    if not app.intents.bound:
        return IntentReport(bound=False, intents=())
    found = app.intents.now()
    selectable = {each.id for each in found.selectable}
    return IntentReport(
        bound=True,
        intents=tuple(
            ShownIntent(
                each.id,
                each.name,
                each.status,
                each.scope,
                each.constraints,
                each.criteria,
                each.depends_on,
                each.id in selectable,
            )
            for each in found.intents
        ),
    )


def check_intents(app: "App") -> IntentCheck:
    if not app.intents.bound:
        return IntentCheck(ok=True, wrong=(), conflicts=(), waiting=())
    try:
        found = app.intents.problems()
    except IntentsProblem as problem:
        return IntentCheck(ok=False, wrong=(str(problem),), conflicts=(), waiting=())
    return IntentCheck(
        ok=not found.wrong,
        wrong=found.wrong,
        conflicts=tuple(each.message for each in found.conflicts),
        waiting=found.waiting,
    )


class VerifiedCheck(Value):
    name: str
    status: CheckStatus
    detail: str
    """Why it has no result, or what the tool says."""


class Verification(Value):
    status: Literal["passed", "failed", "unverified"]
    checks: tuple[VerifiedCheck, ...]
    issues: tuple[Issue, ...]
    """Those that count: not there before, and not flaky; the first 200."""
    more_issues: int
    base: str
    notes: tuple[str, ...]
    seconds: float


class _Silent:
    """Progress that nobody follows."""

    def planned(self, names: object) -> None: ...

    def started(self, name: str, doing: str) -> None: ...

    def finished(self, result: CheckResult) -> None: ...


async def verify(app: "App", *, only: tuple[str, ...], changed: bool, base: str) -> Verification:
    """Run the project's own checks on a copy, as `handrail verify` does."""
    verdict = await app.checks.verify(VerifyOptions(changed=changed, base=base, only=only), _Silent())
    counting = {issue for each in verdict.checks if broken_by_change(each) for issue in each.issues}
    issues = [each for each in verdict.issues if each in counting]
    return Verification(
        verdict.status,
        tuple(VerifiedCheck(each.name, each.status, each.reason or each.detail) for each in verdict.checks),
        tuple(issues[:MAX_ISSUES]),
        max(0, len(issues) - MAX_ISSUES),
        verdict.base,
        verdict.notes,
        round(verdict.seconds, 2),
    )


class TracedLine(Value):
    line: int
    text: str
    intent_id: str
    by: str
    """`agent`, `user`, `rollback` or `command`; empty: not written by Handrail."""
    model: str
    session_id: str
    change_id: str
    mutation_class: str
    at: str
    """ISO 8601, UTC."""


class Blame(Value):
    path: str
    lines: tuple[TracedLine, ...]
    total: int


def trace_blame(app: "App", path: str, start: int, end: int) -> Blame:
    found = app.trace.blame(path)
    shown, secrets = [], app.model_pool.secrets()
    for each in found[start - 1 : min(end or len(found), start - 1 + MAX_LINES)]:
        author = each.author
        who = (
            (author.intent_id, author.by, author.model, author.session_id, author.change_id)
            if author
            else ("", "", "", "", "")
        )
        how = (author.mutation_class, author.at) if author else ("", "")
        shown.append(TracedLine(each.number, secrets.hide(each.text.decode(errors="replace")), *who, *how))
    return Blame(path, tuple(shown), len(found))
