"""Run git on a repository with an allowlist of its settings, so that nothing of the repository runs.

Git cannot be told to ignore a repository's settings, but it reads them, the hooks and everything else that
worktrees share from `GIT_COMMON_DIR`. So git gets a folder of ours for that: a config file with the allowed
settings, and links to the real objects and refs. HEAD, the index and their locks stay where they are. Then
there are no filters, external diffs, monitors, hooks or signing programs, whatever attributes say.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from handrail.policy.commands.git_hardening import HARDENED_GIT
from handrail.storage.scratch import kept_scratch
from handrail.tools.process import ProgramOutput, ResourceLimits, run_for_output
from handrail.tools.secrets import path_outside, without_secrets, without_workspace_programs
from handrail.workspace.git_folder import (
    SHARED_FILES,
    SHARED_FOLDERS,
    GitFolder,
    UnusableRepository,
    find_git_folder,
    read_start,
)

SECONDS = 3.0
MAX_BYTES = 4_000_000
MEMORY = ResourceLimits(memory=2_000_000_000)

ALLOWED = frozenset(
    (
        *("core.repositoryformatversion", "core.filemode", "core.ignorecase", "core.symlinks"),
        *("core.precomposeunicode", "core.autocrlf", "core.eol", "core.safecrlf", "core.quotepath"),
        *("core.abbrev", "core.checkstat", "core.trustctime", "core.sharedrepository"),
        *("core.logallrefupdates", "core.createobject", "core.fsync", "core.fsyncmethod"),
        *("core.fsyncobjectfiles", "core.usereplacerefs", "core.protecthfs", "core.protectntfs"),
        *("core.untrackedcache", "core.splitindex", "core.sparsecheckout", "core.sparsecheckoutcone"),
        *("index.sparse", "index.version", "status.showuntrackedfiles", "diff.renames", "diff.algorithm"),
        *("user.name", "user.email", "user.useconfigonly", "author.name", "author.email"),
        *("committer.name", "committer.email", "i18n.commitencoding", "i18n.logoutputencoding"),
        *("extensions.objectformat", "extensions.refstorage", "extensions.relativeworktrees"),
        *("extensions.noop", "extensions.noop-v1"),
    )
)
"""Settings that change what git reads, stores or shows, but name no program and no file."""
ALLOWED_UPSTREAM = re.compile(r"branch\.[^\n]+\.(remote|merge)|remote\.[^\n]+\.fetch")
USERS_FILES = ("core.excludesfile", "core.attributesfile")
"""Files that git reads, allowed if the user named them."""
NOT_NEEDED = ("extensions.worktreeconfig", "extensions.partialclone", "extensions.preciousobjects")
"""`git config` has read the worktree's settings, nothing is fetched, and nothing is deleted."""
SCOPES = frozenset(["system", "global", "local", "worktree", "command"])
USER_SCOPES = frozenset(["system", "global", "command"])
IDENTITY = ("GIT_AUTHOR_", "GIT_COMMITTER_")
SAFE_SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    # A bare repository inside the workspace could bring settings of its own.
    ("safe.bareRepository", "explicit"),
)
VARIABLES = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    # Git fetches no missing objects. Unlike `protocol.allow`, a repository cannot override this.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
NO_ENV: Mapping[str, str] = MappingProxyType({})

Setting = tuple[str, str]


class Entry(NamedTuple):
    scope: str
    key: str
    value: str | None  # None: the name alone, which means true


async def open_git(root: Path) -> "SafeGit | None":
    """Git for the repository that a folder is in; None without one; raises UnusableRepository, OSError."""
    place = find_git_folder(root)
    if place is None:
        return None
    environ = without_workspace_programs(root, without_secrets(os.environ))
    entries = await _read_settings(root, place, environ)
    _check_owner(place, entries)
    if not place.belongs and not _names_top(place, entries):
        raise UnusableRepository(
            f"{place.top / '.git'} leads to {place.folder}, which does not name this folder in turn. To use "
            f"it, run `git worktree repair` or `git config core.worktree {shlex.quote(str(place.top))}`."
        )
    own = [each.value or "" for each in entries if each.key == "core.attributesfile"][-1:]
    named = os.path.join(place.top, os.path.expanduser(own[0])) if own else ""
    if os.path.exists(named) and not os.path.isfile(named):
        raise UnusableRepository(f"{named}, which core.attributesFile names, is no file.")
    folder = _settings_folder(root, place, _config_text(entries))
    attributes = (("core.attributesFile", named),) if named else ()
    files = [each.value or "" for each in entries if each.scope in USER_SCOPES and each.key in USERS_FILES]
    users = tuple(path for path in map(os.path.expanduser, files) if os.path.isfile(path))
    return SafeGit(root, place, folder, attributes, _only(environ, IDENTITY), users)


async def try_git(root: Path) -> "SafeGit | None":
    """The same, but None also if git cannot be used."""
    with suppress(OSError, UnusableRepository):
        return await open_git(root)
    return None


class SafeGit(NamedTuple):
    """A repository, and how git is run on it."""

    root: Path  # where git runs
    place: GitFolder
    folder: Path  # our settings, and links to the rest
    attributes: tuple[Setting, ...]
    """The attributes file, whoever named it: it decides how files are stored. A command does not get it,
    because git would quote lines of it in its warnings."""
    environ: Mapping[str, str]
    files: tuple[str, ...] = ()  # those that the user's settings name

    @property
    def readable(self) -> tuple[str, ...]:
        """What git reads, for a sandbox that shows little else."""
        own = (self.folder, self.place.top, self.place.folder, self.place.common)
        return (*map(str, own), *self.files)

    async def output(
        self,
        *words: str,
        stdin: bytes = b"",
        limit: int = MAX_BYTES,
        environ: Mapping[str, str] = NO_ENV,
        cwd: Path | None = None,
        seconds: float = SECONDS,
    ) -> bytes | None:
        """What git writes; None if it fails, takes too long, or writes `limit` bytes or more."""
        try:
            found = await self.run(
                *words,
                stdin=stdin,
                limit=limit,
                environ=environ,
                cwd=cwd,
                stderr=subprocess.DEVNULL,
                seconds=seconds,
            )
        except OSError:
            return None
        return found.data if found.code == 0 else None

    async def run(
        self,
        *words: str,
        stdin: bytes = b"",
        limit: int = MAX_BYTES,
        environ: Mapping[str, str] = NO_ENV,
        cwd: Path | None = None,
        stderr: int = subprocess.STDOUT,
        seconds: float = SECONDS,
    ) -> ProgramOutput:
        """What git writes and its exit code, which is None if the output is not complete; raises OSError."""
        ours = VARIABLES | self._places() | settings_variables((*SAFE_SETTINGS, *self.attributes))
        return await run_for_output(
            ["git", "--no-pager", *words],
            folder=cwd or self.root,
            environment={**self.environ, **ours, **environ},
            timeout=seconds,
            limit=limit,
            stdin=stdin,
            stderr=stderr,
            limits=MEMORY,
        )

    def _places(self) -> dict[str, str]:
        return _place_variables(self.place.folder, self.folder, self.place.top)

    def function(self, environ: Mapping[str, str]) -> str:
        """A shell function that runs git the same way; see `git_function`."""
        return _function_text(self.root, environ, self._places())


class GitFunction(NamedTuple):
    text: str
    readable: tuple[str, ...]  # places that it has to be able to read


async def git_function(root: Path, environ: Mapping[str, str]) -> GitFunction:
    """The shell function that a judged command calls instead of git; raises UnusableRepository, OSError.

    Without a repository it gives git's error, even if one is made before it runs.
    """
    if git := await open_git(root):
        alternates = git.place.common / "objects/info/alternates"
        if read_start(alternates, 1):
            raise UnusableRepository(f"It shares objects with another repository, by {alternates}.")
        return GitFunction(git.function(environ), git.readable)
    nowhere = _place_variables(root / ".git", Path(os.devnull), root)
    return GitFunction(_function_text(root, environ, nowhere), ())


def _function_text(root: Path, environ: Mapping[str, str], places: Mapping[str, str]) -> str:
    program = shutil.which("git", path=path_outside(root, environ)) or "git"
    variables = {**VARIABLES, **places, "GIT_PAGER": "cat", **settings_variables(SAFE_SETTINGS)}
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    run = f'exec {shlex.quote(program)} --no-pager "$@"'
    return f'{HARDENED_GIT}() ( unset "${{!GIT_@}}"; export {exports}; {run} )'


def _place_variables(folder: Path, common: Path, top: Path) -> dict[str, str]:
    return {"GIT_DIR": str(folder), "GIT_COMMON_DIR": str(common), "GIT_WORK_TREE": str(top)}


def settings_variables(settings: Sequence[Setting], first: str = "") -> dict[str, str]:
    """Variables for settings, numbered from `first`. Unlike `-c`, they allow names with an equals sign."""
    start = int(first) if first.isdecimal() else 0
    variables = {"GIT_CONFIG_COUNT": str(start + len(settings))}
    for number, (name, value) in enumerate(settings, start=start):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def _only(environ: Mapping[str, str], kept: str | tuple[str, ...]) -> dict[str, str]:
    """The environment with only those of git's variables that begin like this."""
    return {
        name: value for name, value in environ.items() if not name.startswith("GIT_") or name.startswith(kept)
    }


async def _read_settings(root: Path, place: GitFolder, environ: Mapping[str, str]) -> list[Entry]:
    """All settings that git would use, the repository's and the user's."""
    places = _place_variables(place.folder, place.common, place.top)
    safe = settings_variables(SAFE_SETTINGS, first=environ.get("GIT_CONFIG_COUNT", ""))
    found = await run_for_output(
        ["git", "--no-pager", "config", "--list", "-z", "--show-scope"],
        folder=root,
        environment=_only(environ, "GIT_CONFIG_") | places | safe,
        timeout=SECONDS,
        limit=MAX_BYTES,
        stderr=subprocess.DEVNULL,
        limits=MEMORY,
    )
    fields = os.fsdecode(found.data).split("\0")
    scopes, texts = fields[:-1:2], fields[1::2]
    complete = found.code == 0 and not fields[-1] and len(scopes) == len(texts) and SCOPES.issuperset(scopes)
    # Git leaves out the settings of a repository whose format it does not know.
    left_out = "local" not in scopes and (place.common / "config").stat().st_size
    if not complete or left_out:
        raise UnusableRepository(
            f"The settings of the repository in {place.top} cannot be read, or are more than "
            f"{MAX_BYTES // 1_000_000} MB. `git config --list` and `git status` tell you more."
        )
    pairs = [text.partition("\n") for text in texts]
    return [
        Entry(scope, key, value if sign else None)
        for scope, (key, sign, value) in zip(scopes, pairs, strict=True)
    ]


def _check_owner(place: GitFolder, entries: Sequence[Entry]) -> None:
    """What git checks: the user owns the repository, or has named it in `safe.directory`."""
    named: list[str] = []
    for each in entries:
        if each.key == "safe.directory" and each.scope in USER_SCOPES:
            named = [*named, each.value] if each.value else []
    top = os.path.realpath(place.top)
    paths = [os.path.expanduser(path) for path in named]
    below = any(path.endswith("/*") and top.startswith(path[:-1]) for path in paths)
    if place.foreign and "*" not in named and top not in paths and not below:
        raise UnusableRepository(
            f"Another user owns the repository in {place.top}. If you trust it, run `git config --global "
            f"--add safe.directory {shlex.quote(top)}`."
        )


def _names_top(place: GitFolder, entries: Sequence[Entry]) -> bool:
    """Whether the git folder names the working tree, as a submodule's does."""
    named = [each.value or "" for each in entries if each.key == "core.worktree"]
    return bool(named) and os.path.realpath(place.folder / named[-1]) == os.path.realpath(place.top)


def _config_text(entries: Sequence[Entry]) -> str:
    return "".join(_config_lines(entries))


def _config_lines(entries: Sequence[Entry]) -> Iterator[str]:
    for scope, key, value in entries:
        users = scope in USER_SCOPES
        if key.startswith("extensions.") and users:
            continue  # git takes them from the repository alone
        if key.startswith("extensions.") and key not in ALLOWED and key not in NOT_NEEDED:
            raise UnusableRepository(f"The repository uses {key}, which Handrail does not support.")
        if key in ALLOWED or (users and key in USERS_FILES) or ALLOWED_UPSTREAM.fullmatch(key):
            section, _, rest = key.partition(".")
            group, _, name = rest.rpartition(".")
            yield f'[{section} "{_escaped(group)}"]\n' if group else f"[{section}]\n"
            yield f"\t{name}\n" if value is None else f'\t{name} = "{_escaped(value)}"\n'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _settings_folder(root: Path, place: GitFolder, config: str) -> Path:
    """A private folder that git takes for the shared part of the repository."""
    # Also links to what does not exist: git may make it at any moment.
    links = {name: f"{place.common}/{name}" for name in (*SHARED_FILES, *SHARED_FOLDERS) if name != "config"}
    folder = kept_scratch({"config": os.fsencode(config)}, links)
    if folder.is_relative_to(os.path.realpath(root)):
        raise UnusableRepository("The temp folder is in the workspace. Set TMPDIR to another folder.")
    return folder
