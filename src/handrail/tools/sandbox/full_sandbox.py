"""What mode `sandbox` needs: a full sandbox, and a workspace that it can protect."""

import os
import stat
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync

from handrail.changes.saved_copies import files_to_save, may_hold_secret
from handrail.policy.call_facts import CommandFacts, SandboxFacts
from handrail.protocol.errors import UsageProblem
from handrail.protocol.globs import covers
from handrail.sessions.change_history import session_changes
from handrail.sessions.session import Session
from handrail.tools.sandbox.protected_paths import MAX_PATHS, SandboxSetup, WorkspaceRisks, unreadable_places
from handrail.tools.sandbox.sandbox import Protection
from handrail.workspace.files import Workspace
from handrail.workspace.paths import printable
from handrail.workspace.sensitive_names import GIT
from handrail.workspace.stat_index import StatIndex, snapshot

MAX_NAMED = 5
PACKAGE_FOLDERS = frozenset({"node_modules", "site-packages", "dist-packages"})
"""What is installed there came from a registry, so it is nobody's secret."""
SYSTEM_FOLDERS = (
    *("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/run"),
    *("/sbin", "/srv", "/sys", "/tmp", "/usr", "/var", "/var/tmp"),  # noqa: S108
)
INSTALL = "Install bubblewrap (apt install bubblewrap, or dnf install bubblewrap)"
SCRATCH = {"bubblewrap": ("/tmp", "/var/tmp", "/dev/shm")}  # noqa: S108
"""Folders of which each command has its own."""
CreatedHere = Callable[[Collection[str]], Collection[str]]


def protection_problem(protection: Protection) -> str:
    """Why this is no full sandbox, and what to install; empty if it is one."""
    if not protection.not_full:
        return ""
    lacks = f": {', '.join(protection.not_full)}" if protection.active else ""
    needs = f"Mode sandbox needs a full sandbox, and this machine has none{lacks}."
    return f"{needs} {INSTALL}, or choose another mode."


def find_risks_of_mode(index: StatIndex, readable: Collection[str]) -> WorkspaceRisks:
    """Paths that need protection, all of them, in an index of everything."""
    nested = [path for path in (*index.unentered, *index.files) if path.endswith(f"/{GIT}")]
    secrets = {path for path in secret_files(index) if path not in readable}
    inodes = {index.files[path].inode for path in secrets if path in index.linked}
    secrets |= {path for path in index.linked if index.files[path].inode in inodes}
    here = Counter(index.files[path].inode for path in index.linked)
    linked = [path for path, names in index.linked.items() if names > here[index.files[path].inode]]
    if len(linked) > MAX_PATHS:  # as in the packages that pnpm links: their whole folders are closed
        linked = list(dict.fromkeys(path.split("/")[0] for path in linked))
    over = "more than 200,000 files" if index.cut else ""
    return WorkspaceRisks(tuple(sorted(nested)), tuple(sorted(secrets)), tuple(sorted(linked)), over)


def secret_files(index: StatIndex) -> list[str]:
    return [
        path
        for path, found in index.files.items()
        if may_hold_secret(path)
        and not PACKAGE_FOLDERS.intersection(path.split("/"))
        and not _is_special(found.mode)
    ]


def _is_special(mode: int) -> bool:
    return not stat.S_ISREG(mode) and not stat.S_ISLNK(mode)


def workspace_problem(protection: Protection, risks: WorkspaceRisks) -> str:
    """Why the sandbox cannot protect this workspace, and what to do; empty if it can."""
    kinds = {"repositories": risks.repositories, "files that may hold secrets": risks.secrets}
    for what, paths in (kinds | {"hard links": risks.linked}).items():
        if len(paths) > MAX_PATHS:
            many = f"The workspace has {len(paths):,} {what}, and mode sandbox can close at most {MAX_PATHS}."
            return f"{many} Open a part of it, or choose another mode."
    if risks.overflow:
        return f"The workspace has {risks.overflow}. Open a part of it, or choose another mode."
    if protection.name != "Landlock":
        return ""
    if risks.secrets:
        names = _named(risks.secrets)
        return (
            f"In mode sandbox, commands could read {names}, which may hold secrets: Landlock cannot hide"
            f" files. {INSTALL}, move them out of the workspace, or list those that commands may read in"
            " commands.readable_secrets of your settings."
        )
    if risks.linked:
        names = _named(risks.linked)
        why = f"{names} has another name (a hard link) outside the workspace, which Landlock cannot close."
        return f"{why} {INSTALL}, or choose another mode."
    return ""


def readable_secrets(index: StatIndex, patterns: Sequence[str], created_here: CreatedHere) -> frozenset[str]:
    """Files that look like secrets, but that the user named, or the session made: they are like others."""
    found = secret_files(index)
    named = {path for path in found if any(covers(pattern, path) for pattern in patterns)}
    return frozenset(named.union(created_here([path for path in found if path not in named])))


def created_in(session: Session, workspace: Workspace) -> CreatedHere:
    """Those of some files that the session's model, or its commands in this mode, made and left so."""

    def created(paths: Collection[str]) -> Collection[str]:
        last = session.state.files.changed
        kept = {path for path in paths if last.get(path) and workspace.sha256(path) == last[path]}
        made: set[str] = set()
        for change in session_changes(session.log, session.id) if kept else ():
            by_model = change.prepared.by == "agent"
            # A command's new file of such a name counts as restorable only in mode sandbox.
            made |= {
                file.path
                for file in change.prepared.files
                if file.op == "create" and (by_model or (change.prepared.by == "command" and file.restorable))
            }
        return kept & made

    return created


def not_covered(index: StatIndex, readable: Collection[str]) -> list[str]:
    """Files that a command could change, and that undo could not give back."""
    saved = {*files_to_save(index, readable), *secret_files(index)}
    return [path for path, found in index.files.items() if path not in saved and not _is_special(found.mode)]


def coverage_notice(index: StatIndex, readable: Collection[str]) -> str:
    """For the user, before anything runs; empty if undo covers all files."""
    lacking = sorted(not_covered(index, readable), key=lambda path: -index.files[path].size)
    if not lacking:
        return ""
    sizes = [
        f"{printable(path)} ({index.files[path].size // 1_000_000:,} MB)" for path in lacking[:MAX_NAMED]
    ]
    more = f" and {len(lacking) - MAX_NAMED:,} more" if len(lacking) > MAX_NAMED else ""
    listed = f"{', '.join(sizes)}{more}"
    return f"Undo cannot give back what commands do to files that are too large to copy: {listed}."


async def check_mode(
    protection: Protection, workspace: Workspace, patterns: Sequence[str], session: Session | None
) -> str:
    """What undo will not cover, for the user; raises UsageProblem where the mode cannot be used here."""
    if problem := protection_problem(protection):
        raise UsageProblem(problem)
    index = await run_sync(partial(snapshot, workspace.root, everything=True))
    created: CreatedHere = created_in(session, workspace) if session else lambda _paths: ()
    readable = readable_secrets(index, patterns, created)
    if problem := workspace_problem(protection, find_risks_of_mode(index, readable)):
        raise UsageProblem(problem)
    return coverage_notice(index, readable)


def sandbox_facts(protection: Protection, workspace: Workspace, command: CommandFacts) -> SandboxFacts:
    """What the mode can do about a command on this machine."""
    setup = SandboxSetup(workspace.root, workspace.state_folders, os.environ)
    scratch = SCRATCH.get(protection.name, ())
    found = dict.fromkeys(path.path for path in command.writes if not path.inside)
    outside = tuple(path for path in found if not _is_scratch(path, scratch))
    opens, closed = [], ""
    for path in outside:
        place = path if os.path.exists(path) else os.path.dirname(path)
        if _is_openable(place, workspace, setup):
            opens.append(place)
        else:
            closed = f"{path} is outside the workspace, in a place that no command may write."
    return SandboxFacts(protection_problem(protection), outside, tuple(opens), closed)


def _is_scratch(path: str, scratch: Sequence[str]) -> bool:
    """Whether a path is in a temporary folder of the command's own, and not in one that exists outside."""
    folder = os.path.dirname(path)
    return folder in scratch or (
        folder.startswith(tuple(f"{each}/" for each in scratch)) and not os.path.exists(folder)
    )


def _is_openable(place: str, workspace: Workspace, setup: SandboxSetup) -> bool:
    """Whether the user can open it for a command: it exists, and holds none of what is always closed."""
    real = Path(os.path.realpath(place))
    if str(real) in SYSTEM_FOLDERS or not real.exists():
        return False
    closed = [Path(each) for each in unreadable_places(setup)]
    if any(real.is_relative_to(each) for each in closed):
        return False
    home = Path(os.path.realpath(setup.environ.get("HOME", "/")))
    kept = (workspace.root, home, *workspace.state_folders, *closed)
    return not any(each.is_relative_to(real) for each in kept)


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_NAMED:,} more" if len(paths) > MAX_NAMED else ""
    return ", ".join(printable(path) for path in paths[:MAX_NAMED]) + more
