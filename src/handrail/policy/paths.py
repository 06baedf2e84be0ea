"""Where a call may look and what it may change: one table, read from above; docs/paths.md shows it."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from handrail.policy.decision import ALLOW, Ask, Decision, deny
from handrail.policy.facts import Facts, PathFacts
from handrail.policy.path_names import looks_foreign, unfit, unfit_anew
from handrail.policy.running_files import is_running_file
from handrail.protocol.errors import RefusalReason

Verdict = Literal["allow", "ask", "deny"]
Operation = Literal["read", "list", "write", "delete", "move"]
LOOKING: tuple[Operation, ...] = ("read", "list")
KINDS = {"folder": "a folder", "other": "no regular file"}


class Row(NamedTuple):
    """A kind of place, what is said to looking at it and to changing it, and why."""

    name: str
    what: str
    """For the documentation."""
    holds: Callable[[PathFacts], bool]
    look: Verdict
    change: Verdict
    why: Callable[[PathFacts], str]
    """For the user who is asked, or the model that is refused; begins where the path has been named."""
    next_step: str = ""
    reason: RefusalReason = "protected_path"


TABLE: tuple[Row, ...] = (
    Row(
        "outside",
        "outside the workspace, by whatever link or `..`; `/proc`, `/dev`, `/sys`",
        lambda path: not path.inside,
        "ask",
        "deny",
        lambda path: "is outside the workspace",
        "Only files of the workspace can be written.",
        "outside_workspace",
    ),
    Row(
        "git",
        "`.git`, file or folder, at any depth and in any spelling; bare repositories",
        lambda path: path.in_git,
        "allow",
        "deny",
        lambda path: "belongs to git",
        "It is changed by git commands only.",
    ),
    Row(
        "state",
        "`.handrail`, `.orchestration`, `.intentignore`, Handrail's data and the user's settings",
        lambda path: path.in_state,
        "allow",
        "deny",
        lambda path: "belongs to Handrail",
        "It is changed by the user only.",
    ),
    Row(
        "secret",
        "likely secrets: `.env*`, keys, `.npmrc`, `.netrc`, `.ssh`, credentials; not `.env.example`",
        lambda path: path.secret,
        "ask",
        "deny",
        lambda path: "may hold a secret, which the model would be shown",
        "It is written by the user only: say what to put there.",
    ),
    Row(
        "unfit name",
        "names that cannot be seen whole, imitate others, or are too long",
        lambda path: bool(_unfit(path)),
        "allow",
        "deny",
        lambda path: f"is not a name for a file: {_unfit(path)}",
        "Write the path of one file, as it is shown.",
        "invalid_path",
    ),
    Row(
        "no file",
        "folders, pipes, sockets, devices; a path that goes through a file",
        lambda path: path.found in ("folder", "other") or path.through_file,
        "allow",
        "deny",
        lambda path: "goes through a file" if path.through_file else f"is {KINDS[path.found]}",
        "Name a file.",
        "invalid_path",
    ),
    Row(
        "unfit new name",
        "new names that Windows forbids, or that shells and encodings would replace",
        lambda path: bool(unfit_anew(path.missing)),
        "allow",
        "deny",
        lambda path: f"is no name for a new file: {unfit_anew(path.missing)}",
        "Choose a plain name.",
        "invalid_path",
    ),
    Row(
        "double",
        "a new name that differs from an existing one only in how its letters are encoded",
        lambda path: bool(path.twin) and path.twin_by == "encoding",
        "allow",
        "deny",
        lambda path: f"would be a second file that looks like {path.twin}",
        "Use the name of the one that exists.",
        "invalid_path",
    ),
    Row(
        "other case",
        "a new name that differs from an existing one only in case, or mixes alphabets that look alike",
        lambda path: bool(path.twin) or looks_foreign(path.missing),
        "allow",
        "ask",
        lambda path: (
            f"differs from {path.twin} only in case: on some machines they are one file"
            if path.twin
            else "mixes letters of two alphabets that look alike"
        ),
    ),
    Row(
        "running file",
        "files that make editors, git, shells or build services run something (policy/running_files.py)",
        is_running_file,
        "allow",
        "ask",
        lambda path: "can make other programs run something",
    ),
    Row(
        "hard link",
        "a file with several names",
        lambda path: path.links > 1,
        "allow",
        "ask",
        lambda path: f"has {path.links} names (hard links), and only this one would be changed",
    ),
)


def denied(facts: Facts) -> Decision:
    """What the table denies."""
    row = first_row(facts, "deny")
    if row is None or facts.path is None:
        return ALLOW
    path = facts.path
    why = row.why(path).partition(", which the model")[0]
    return deny(facts.tool, row.reason, f"{path.path} {why}. {row.next_step}", path.path)


def asked(facts: Facts) -> Decision:
    """What the table asks about."""
    row = first_row(facts, "ask")
    return Ask(f"{facts.path.path} {row.why(facts.path)}") if row and facts.path else ALLOW


def first_row(facts: Facts, verdict: Verdict) -> Row | None:
    """The first row of the table that says this to the call."""
    path = facts.path
    if path is None:
        return None
    return next((row for row in TABLE if _said(row, facts) == verdict and row.holds(path)), None)


def _unfit(path: PathFacts) -> str:
    # Where a link leads to such a name, that counts; the workspace itself has none.
    return unfit(path.written) or (unfit(path.path) if path.inside and path.path != "." else "")


def _said(row: Row, facts: Facts) -> Verdict:
    return row.change if facts.action == "write" else row.look
