"""Which places a confined command may not read or not write, and its environment."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from handrail.workspace.names import GIT, STATE_FILES, STATE_FOLDERS

PROTECTED = (GIT, *STATE_FOLDERS, *STATE_FILES)
"""In the workspace, readable but not writable."""
MAKES_GIT_RUN = ("config", "config.worktree", "hooks", "info", "commondir", "modules", "worktrees")
"""Of `.git`, what says which programs git runs, here or in submodules and worktrees."""

SECRET_IN_HOME = (
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    ".pypirc",
    ".npmrc",
    ".vault-token",
    ".password-store",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".terraform.d/credentials.tfrc.json",
    ".cache/huggingface/token",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".local/share/keyrings",
    ".mozilla",
    ".thunderbird",
)
SECRET_IN_CONFIG = (
    "gh",
    "glab-cli",
    "hub",
    "gcloud",
    "git/credentials",
    "github-copilot",
    "containers/auth.json",
    "rclone",
    "op",
    "google-chrome",
    "chromium",
)
SECRET_OF_THE_SYSTEM = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-")
"""Only root could read these anyway."""

DOORS = (
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DOCKER_HOST",
    "TMUX",
    "STY",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "VSCODE_GIT_IPC_HANDLE",
)
"""Variables that name a service, or a program, which would act for the command outside the sandbox."""
NAME_SECRET_FILES = (
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
    "NETRC",
    "PGPASSFILE",
    "XAUTHORITY",
)
"""Variables that say where the user has put a secret."""


class Ground(NamedTuple):
    """Where a command works, and whose machine it is."""

    workspace: Path
    state: tuple[Path, ...]
    """Handrail's own folders."""
    environ: Mapping[str, str]
    git: bool = False
    """The command is git's own work: it may write `.git`, apart from what makes git run programs."""
    repositories: tuple[str, ...] = ()
    """Of each repository below the workspace, its `.git`."""
    secrets: tuple[str, ...] = ()
    """Files of the workspace that the command does not get to read, where the sandbox can see to it."""
    linked: tuple[str, ...] = ()
    """Files that have another name elsewhere, and that the command does not get to write, likewise."""


def hidden(ground: Ground) -> tuple[str, ...]:
    """Existing places that a command cannot read, links resolved, parents before what is in them."""
    found = {os.path.realpath(path) for path in _secret(ground) if os.path.exists(path)}
    found -= {os.path.realpath(ground.workspace), "/"}
    return tuple(sorted(found))


def protected(ground: Ground) -> tuple[str, ...]:
    """What exists in the workspace and cannot be written; of a link, what it leads to in the workspace."""
    names = [name for name in PROTECTED if name != GIT or not ground.git]
    if ground.git:
        names += [f"{GIT}/{name}" for name in MAKES_GIT_RUN]
    names += (*ground.repositories, *ground.linked)
    root = os.path.realpath(ground.workspace)
    found = {os.path.realpath(f"{root}/{name}") for name in names if os.path.exists(f"{root}/{name}")}
    return tuple(sorted(path for path in found if path.startswith(f"{root}/")))


def unread(ground: Ground) -> tuple[str, ...]:
    """Files of the workspace that the command cannot read, links resolved."""
    root = os.path.realpath(ground.workspace)
    found = {os.path.realpath(f"{root}/{name}") for name in ground.secrets}
    return tuple(sorted(path for path in found if path.startswith(f"{root}/") and os.path.isfile(path)))


def absent(ground: Ground) -> tuple[str, ...]:
    """What of Handrail's the workspace does not have, and a command is not to make: folders, then files."""
    wanted = ours(ground.workspace) if os.access(ground.workspace, os.W_OK) else ()
    return tuple(path for path in wanted if not os.path.lexists(path))


def ours(workspace: Path) -> tuple[str, ...]:
    """Where Handrail keeps things in a workspace: folders, then files."""
    root = os.path.realpath(workspace)
    return tuple(f"{root}/{name}" for name in (*STATE_FOLDERS, *STATE_FILES))


def needed(ground: Ground) -> tuple[str, ...]:
    """Places of the user's programs, which stay readable also where they lie in a temp folder."""
    programs = (Path(folder) for folder in ground.environ.get("PATH", "").split(":") if folder)
    roots = [folder.parent if folder.name in ("bin", "sbin") else folder for folder in programs]
    ours = (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[3])
    home = (Path(folder) for folder in _homes(ground.environ))
    return tuple(sorted({os.path.realpath(path) for path in (*roots, *ours, *home) if path.is_dir()}))


def environment(environ: Mapping[str, str], temp: str) -> dict[str, str]:
    """The environment with everything that is kept for later kept in the temp folder."""
    kept = {name: value for name, value in environ.items() if name not in DOORS}
    caches = {
        "XDG_CACHE_HOME": f"{temp}/cache",
        "XDG_STATE_HOME": f"{temp}/state",
        "XDG_RUNTIME_DIR": temp,
        "npm_config_cache": f"{temp}/cache/npm",
    }
    return kept | dict.fromkeys(("TMPDIR", "TMP", "TEMP"), temp) | caches


def _secret(ground: Ground) -> Iterator[str]:
    yield from map(str, ground.state)
    yield from SECRET_OF_THE_SYSTEM
    for name in NAME_SECRET_FILES:
        # What commands get of the environment does not have all of these any more.
        yield from (path for path in os.environ.get(name, "").split(os.pathsep) if os.path.isfile(path))
    for home in _homes(ground.environ):
        yield from _below(home, SECRET_IN_HOME)
        yield from _below(f"{home}/.config", SECRET_IN_CONFIG)
    if config := ground.environ.get("XDG_CONFIG_HOME"):
        yield from _below(config, SECRET_IN_CONFIG)


def _homes(environ: Mapping[str, str]) -> Iterator[str]:
    if home := environ.get("HOME"):
        yield home
    if os.geteuid() == 0:
        yield from map(str, Path("/home").glob("*"))


def _below(folder: str, names: Iterable[str]) -> Iterator[str]:
    return (f"{folder}/{name}" for name in names)
