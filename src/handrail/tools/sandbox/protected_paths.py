"""Paths that a confined command may not read or write."""

import os
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from handrail.config.places import make_private
from handrail.workspace.sensitive_names import GIT, SECRET_FOLDERS, STATE_FILES, STATE_FOLDERS, is_secret_name

if TYPE_CHECKING:
    from handrail.workspace.scratch_copy.copy import ShownCopy
    from handrail.workspace.stat_index import StatIndex


READ_ONLY_NAMES = (GIT, *STATE_FOLDERS, *STATE_FILES)
GIT_PROGRAM_SETTINGS = ("config", "config.worktree", "hooks", "info", "commondir", "modules", "worktrees")
"""In `.git`, what decides which programs git runs, here or in submodules and worktrees."""

SECRET_IN_HOME = (
    *(".ssh", ".gnupg", ".netrc", ".git-credentials", ".password-store", ".vault-token"),
    *(".aws", ".azure", ".kube", ".docker", ".terraform.d/credentials.tfrc.json"),
    *(".pgpass", ".my.cnf", ".pypirc", ".npmrc"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials"),
    *(".cache/huggingface/token", ".claude/.credentials.json"),
    *(".codex/auth.json", ".gemini/oauth_creds.json"),
    *(".local/share/keyrings", ".mozilla", ".thunderbird"),
)
SECRET_IN_CONFIG = (
    *("gh", "glab-cli", "hub", "git/credentials", "github-copilot"),
    *("gcloud", "containers/auth.json", "rclone", "op"),
    *("google-chrome", "chromium"),
)
SECRET_IN_SYSTEM = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-")  # root's

SERVICE_VARIABLES = (
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST"),
    *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "TMUX", "STY"),
    *("GIT_ASKPASS", "SSH_ASKPASS", "VSCODE_GIT_IPC_HANDLE"),
)
"""Variables that name a service or program which would act for the command outside the sandbox."""
SECRET_FILE_VARIABLES = (
    *("AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "GOOGLE_APPLICATION_CREDENTIALS"),
    *("KUBECONFIG", "NETRC", "PGPASSFILE", "XAUTHORITY"),
)


class SandboxSetup(NamedTuple):
    """The workspace that a command runs in, and what it may not touch there."""

    workspace: Path
    state: tuple[Path, ...]
    environ: Mapping[str, str]
    git: bool = False  # the command only runs git: it may write `.git`, except what makes git run programs
    repositories: tuple[str, ...] = ()  # the `.git` of each repository below the workspace
    secrets: tuple[str, ...] = ()  # files it cannot read, if the sandbox supports that
    linked: tuple[str, ...] = ()  # files with another name elsewhere, which it cannot write, likewise
    readable: tuple[str, ...] = ()  # what git needs to read, wherever it is
    own: tuple[Path, ...] = ()  # files of the running Handrail in the workspace: never written
    reads: bool = False  # it only reads: nothing in the workspace is written, and little outside it is read
    uses_git: bool = False  # the user approved a command that names git: it may commit
    log: Path | None = None  # the folder of the workspace's log, to save protected files in
    writable: tuple[str, ...] = ()  # places outside the workspace that it may write
    local_sockets: bool = True  # False: it gets none, where the sandbox cannot hide those of services
    closed: bool = False  # nothing in the workspace is written; unlike `reads`, the rest is read as usual
    copy: "ShownCopy | None" = None  # what it sees at the workspace's path; only bubblewrap can do that


def unreadable_places(setup: SandboxSetup) -> tuple[str, ...]:
    """Existing places that a command cannot read, links resolved, parents first."""
    found = {os.path.realpath(path) for path in _secret_places(setup) if os.path.exists(path)}
    found -= {os.path.realpath(setup.workspace), "/"}
    return tuple(sorted(found))


def read_only_paths(setup: SandboxSetup) -> tuple[str, ...]:
    """Existing paths in the workspace that cannot be written, links resolved."""
    names = [name for name in READ_ONLY_NAMES if name != GIT or not setup.git]
    if setup.git:
        names += [f"{GIT}/{name}" for name in GIT_PROGRAM_SETTINGS]
    # A copy has no hard links, and what it has in place of such a file may differ from it.
    names += (*setup.repositories, *(() if setup.copy else setup.linked))
    root = os.path.realpath(setup.workspace)
    found = {os.path.realpath(f"{root}/{name}") for name in names if os.path.exists(f"{root}/{name}")}
    found |= set(own_paths(setup))
    return tuple(sorted(path for path in found if is_inside(path, root)))


def own_paths(setup: SandboxSetup) -> tuple[str, ...]:
    """The files of the running Handrail in the workspace, links resolved, without those inside others."""
    root = os.path.realpath(setup.workspace)
    found = sorted({os.path.realpath(path) for path in setup.own if path.exists()})
    if any(is_inside(root, path) or path == root for path in found):
        return (root,)
    return tuple(
        path for path in found if is_inside(path, root) and not any(is_inside(path, each) for each in found)
    )


def own_ways(setup: SandboxSetup) -> tuple[str, ...]:
    """These files, and the links in the workspace that lead to them."""
    return (*own_paths(setup), *(f"{setup.workspace}/{link}" for link in own_links(setup)))


def own_links(setup: SandboxSetup) -> tuple[str, ...]:
    """Links in the workspace on the way to these files, relative to it: replacing one replaces the files."""
    root = setup.workspace
    ways = {each for path in setup.own for each in (path, *path.parents) if each.is_relative_to(root)}
    return tuple(sorted(str(way.relative_to(root)) for way in ways if way != root and way.is_symlink()))


def pinned_folders(setup: SandboxSetup, closed: tuple[str, ...]) -> tuple[str, ...]:
    """Folders above what is closed: to rename one would open it, or put something else in its place.

    `closed` are the read-only paths.
    """
    root = os.path.realpath(setup.workspace)
    above: set[str] = set()
    for path in (*own_paths(setup), *map(os.path.realpath, setup.state), *unreadable_files(setup), *closed):
        folder = os.path.dirname(path)
        while is_inside(folder, root) and folder not in above:
            above.add(folder)
            folder = os.path.dirname(folder)
    return tuple(
        sorted(each for each in above if not any(each == path or is_inside(each, path) for path in closed))
    )


def is_inside(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def unreadable_files(setup: SandboxSetup) -> tuple[str, ...]:
    """Workspace files that the command cannot read, links resolved."""
    root = os.path.realpath(setup.workspace)
    found = {os.path.realpath(f"{root}/{name}") for name in setup.secrets}
    return tuple(sorted(path for path in found if is_inside(path, root) and os.path.isfile(path)))


def missing_state_paths(setup: SandboxSetup) -> tuple[str, ...]:
    """Handrail's paths that do not exist yet, and that a command may not make: folders, then files."""
    writable = not setup.closed and os.access(setup.workspace, os.W_OK)
    paths = state_paths(setup.workspace) if writable else ()
    return tuple(path for path in paths if not os.path.lexists(path))


def state_paths(workspace: Path) -> tuple[str, ...]:
    """Handrail's paths in a workspace: folders, then files."""
    root = os.path.realpath(workspace)
    return tuple(f"{root}/{name}" for name in (*STATE_FOLDERS, *STATE_FILES))


def make_state_folders(setup: SandboxSetup) -> None:
    """Make those of the user's Handrail folders that are missing in the workspace: else a command could."""
    for folder in setup.state:
        if folder.is_relative_to(setup.workspace):
            make_private(folder)


OUR_PACKAGES = str(Path(__file__).parents[3])


def program_folders(setup: SandboxSetup) -> tuple[str, ...]:
    """Folders of the user's programs, which stay readable even below a temp folder."""
    programs = (folder.rstrip("/") for folder in setup.environ.get("PATH", "").split(":"))
    roots = (os.path.dirname(each) if each.endswith(("/bin", "/sbin")) else each for each in programs)
    ours = (sys.prefix, sys.base_prefix, OUR_PACKAGES)
    found = {*roots, *ours, *_homes(setup.environ)} - {""}
    return tuple(sorted({os.path.realpath(path) for path in found if os.path.isdir(path)}))


def sandbox_environment(environ: Mapping[str, str], temp: str) -> dict[str, str]:
    """The environment without services, and with all caches in the temp folder."""
    kept = {name: value for name, value in environ.items() if name not in SERVICE_VARIABLES}
    caches = {
        "XDG_CACHE_HOME": f"{temp}/cache",
        "XDG_STATE_HOME": f"{temp}/state",
        "XDG_RUNTIME_DIR": temp,
        "npm_config_cache": f"{temp}/cache/npm",
    }
    return kept | dict.fromkeys(("TMPDIR", "TMP", "TEMP"), temp) | caches


def _secret_places(setup: SandboxSetup) -> Iterator[str]:
    yield from map(str, setup.state)
    yield from SECRET_IN_SYSTEM
    for name in SECRET_FILE_VARIABLES:
        # The command's own environment does not have all of these any more.
        yield from (path for path in os.environ.get(name, "").split(os.pathsep) if os.path.isfile(path))
    for home in _homes(setup.environ):
        yield from (f"{home}/{name}" for name in SECRET_IN_HOME)
        yield from (f"{home}/.config/{name}" for name in SECRET_IN_CONFIG)
    if config := setup.environ.get("XDG_CONFIG_HOME"):
        yield from (f"{config}/{name}" for name in SECRET_IN_CONFIG)


def _homes(environ: Mapping[str, str]) -> Iterator[str]:
    if home := environ.get("HOME"):
        yield home
    if os.geteuid() == 0:
        with suppress(OSError):
            yield from (f"/home/{name}" for name in os.listdir("/home"))


MAX_PATHS = 500  # of each kind: every path is a mount


class WorkspaceRisks(NamedTuple):
    """Paths relative to the workspace."""

    repositories: tuple[str, ...] = ()  # the `.git` of each nested repository, file or folder
    secrets: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()  # files with a hard link outside the workspace: writing one writes the other
    overflow: str = ""  # what there is too much of to be protected, in words


def find_risks(index: "StatIndex", named: "SensitivePaths | None" = None) -> WorkspaceRisks:
    """Paths that need protection, from an existing index; folders it left out are not searched."""
    named = named or SensitivePaths(index)
    nested, secrets = named.repositories, set(named.secrets)
    inodes = {index.files[path].inode for path in secrets if path in index.linked}
    secrets |= {path for path in index.linked if index.files[path].inode in inodes}
    here = Counter(index.files[path].inode for path in index.linked)
    linked = [path for path, names in index.linked.items() if names > here[index.files[path].inode]]
    kinds = {"nested repositories": nested, "files that may hold secrets": secrets, "hard links": linked}
    over = [f"more than {MAX_PATHS} {kind}" for kind, found in kinds.items() if len(found) > MAX_PATHS]
    over += ["more files than can be looked through"] * index.cut
    repositories, files, links = (tuple(sorted(each)[:MAX_PATHS]) for each in kinds.values())
    return WorkspaceRisks(repositories, files, links, " and ".join(over))


class SensitivePaths:
    """Paths of an index that need protection by name: repositories, and files that may hold secrets."""

    def __init__(self, index: "StatIndex") -> None:
        self.repositories: set[str] = set()
        self.secrets: set[str] = set()
        self._paths: set[str] = set()
        self.update(index)

    def update(self, index: "StatIndex", touched: Collection[str] | None = None) -> None:
        """Take them from a later index; with `touched`, no other paths were added or removed."""
        if touched is None:
            there = {*index.files, *index.ignored, *index.unentered}
            touched = there ^ self._paths
        else:
            there = {path for path in touched if path in index.files or path in index.ignored}
        gone, new = self._paths.intersection(touched) - there, there.intersection(touched) - self._paths
        self._paths |= new
        self._paths -= gone
        files = (path for path in new if path in index.files or path in index.ignored)
        self.repositories = self.repositories - gone | {path for path in new if path.endswith(f"/{GIT}")}
        self.secrets = self.secrets - gone | {path for path in files if _holds_secret(path)}


def new_repositories(before: "StatIndex", after: "StatIndex") -> list[str]:
    """The `.git` of each repository that was not there before."""
    paths = after.files if after.touched is None else after.touched & after.files.keys()
    found = (path for path in (*after.unentered, *paths) if path == GIT or path.endswith(f"/{GIT}"))
    return sorted(path for path in found if path not in before.files and path not in before.unentered)


def own_hard_links(index: "StatIndex", root: Path, own: tuple[Path, ...]) -> tuple[Path, ...]:
    """Files in the workspace that are other names of files of the running Handrail."""
    inodes = _inodes(own) if index.linked else frozenset()
    return tuple(root / path for path in index.linked if index.files[path].inode in inodes)


@cache
def _inodes(folders: tuple[Path, ...]) -> frozenset[int]:
    found = (entry for folder in folders for entry in os.walk(folder))
    return frozenset(os.lstat(f"{folder}/{name}").st_ino for folder, _, names in found for name in names)


def _holds_secret(path: str) -> bool:
    *folders, name = path.split("/")
    return is_secret_name(name) or any(folder in SECRET_FOLDERS for folder in folders)
