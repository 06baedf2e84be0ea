"""What it takes to start a source or to reach it: words, environment, headers and secrets, filled in."""

import hashlib
import os
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from handrail.config.places import make_private
from handrail.config.sources import LOOPBACK, OWN_VARIABLES, REFERENCE, Source
from handrail.protocol.values import to_json
from handrail.tools.sandbox.protected_paths import SandboxSetup, find_risks, is_inside, own_hard_links
from handrail.tools.secrets import (
    MIN_LENGTH,
    Secret,
    Secrets,
    is_distinctive_secret,
    is_secret_variable,
    without_secrets,
    without_workspace_programs,
)
from handrail.workspace.files import Workspace
from handrail.workspace.stat_index import snapshot

WORKSPACE_WORD, GIT_WORD = "workspace", ".git"
DIGEST_LENGTH = 20
"""Characters of six bits each; the names of credentials are short."""
SET_INSIDE = "HANDRAIL_SET_"
"""Before the names of the definition's variables, until the sandbox is closed."""
SET_VARIABLES = f"""
import os, sys, _signal
_signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
_signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
for name in [name for name in os.environ if name.startswith({SET_INSIDE!r})]:
    os.environ[name.removeprefix({SET_INSIDE!r})] = os.environ.pop(name)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    sys.stderr.write(f"{{sys.argv[1]}}: {{error.strerror}}")
    sys.exit(127)
"""
"""Runs in the sandbox. What starts a sandbox must not have these variables: LD_PRELOAD loads code into it."""


class SourceFailed(Exception):
    """A source cannot be used, or did not answer; the message says why and what to do, without secrets."""


def stored_as(source: Source, name: str) -> str:
    """The name of a source's secret among the stored credentials.

    A workspace's source has it for its own file, and for what that starts or reaches: one of the same name
    elsewhere gets none of it.
    """
    if source.where == "yours":
        return f"source/{source.name}/{name}"
    owner = to_json([str(source.path), source.file.url, *source.file.command])
    digest = urlsafe_b64encode(hashlib.sha256(owner.encode()).digest()).decode()
    return f"source/{source.name}@{digest[:DIGEST_LENGTH]}/{name}"


class Credentials(Protocol):
    """Where secrets of sources are stored."""

    def get(self, name: str) -> str | None: ...

    def set(self, name: str, value: str) -> None: ...


class Launch(NamedTuple):
    """A source with its variables filled in. Not logged and not shown: it has the secrets."""

    source: Source
    words: tuple[str, ...]
    environ: Mapping[str, str]
    """The variables that the definition sets."""
    url: str
    headers: Mapping[str, str]
    client_secret: str
    secrets: Secrets
    cache: Path

    def __repr__(self) -> str:
        return f"Launch({self.source.name})"


def launch_of(
    source: Source, workspace: Path, credentials: Credentials, environ: Mapping[str, str]
) -> Launch:
    """What starts the source; raises SourceFailed where a variable has no value."""
    cache = cache_folder(source.name, environ)
    own = {"WORKSPACE": str(workspace), "CACHE": str(cache), "HOME": environ.get("HOME", "")}
    secrets, missing = dict[str, str](), list[str]()

    def value(name: str, otherwise: str | None) -> str:
        if name in OWN_VARIABLES:
            return own[name]
        stored = credentials.get(stored_as(source, name))
        found = stored or environ.get(name, "")
        if not found and otherwise is None:
            missing.append(name)
        elif stored or (found and is_secret_variable(name, found)):
            secrets[name] = found
        return found or otherwise or ""

    file = source.file
    fill = _filler(value)
    words = tuple(fill(word) for word in file.command)
    variables = {name: fill(text) for name, text in file.env.items()}
    headers = {name: fill(text) for name, text in file.headers.items()}
    url, client_secret = fill(file.url), fill(file.oauth.client_secret)
    secrets |= {"client_secret": client_secret} if client_secret else {}
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        raise SourceFailed(
            f"The source {source.name} needs {names}. `handrail sources auth {source.name}` stores it."
        )
    if url and urlsplit(url).scheme == "http" and urlsplit(url).hostname not in LOOPBACK:
        raise SourceFailed(f"The source {source.name} would be reached without encryption. Use https://.")
    for name, text in (*variables.items(), *headers.items()):
        if is_secret_variable(name, text) and is_distinctive_secret(name, text):
            secrets.setdefault(name, text)
    known = (Secret(name, text) for name, text in secrets.items() if len(text) >= MIN_LENGTH)
    hidden = Secrets(tuple(sorted(known, key=lambda secret: -len(secret.value))))
    return Launch(source, words, variables, url, headers, client_secret, hidden, cache)


def _filler(value: Callable[[str, str | None], str]) -> Callable[[str], str]:
    """A function that replaces `${NAME}` and `${NAME:-otherwise}`; what it puts in is not read again."""
    return lambda text: REFERENCE.sub(lambda match: value(match["name"], match["otherwise"]), text)


def cache_folder(name: str, environ: Mapping[str, str]) -> Path:
    """The folder that a source may always write; package runners keep there what they download."""
    chosen = environ.get("XDG_CACHE_HOME", "")
    home = Path(environ.get("HOME") or Path.home())
    return (Path(chosen) if os.path.isabs(chosen) else home / ".cache") / "handrail" / "sources" / name


def sandbox_setup(launch: Launch, workspace: Workspace, log: Path) -> SandboxSetup:
    """Where the program of a source runs. It writes only its cache folder and what the source names."""
    file, home, root = launch.source.file, os.path.expanduser("~"), workspace.root
    make_private(launch.cache)
    places = [
        os.path.realpath(os.path.join(root, place.replace("${HOME}", home).replace("~", home, 1)))
        for place in file.writes
        if place not in (WORKSPACE_WORD, GIT_WORD)
    ]
    here = os.path.realpath(root)
    overlaps = any(each == here or is_inside(each, here) or is_inside(here, each) for each in places)
    writes = WORKSPACE_WORD in file.writes
    environ = without_workspace_programs(root, without_secrets(os.environ))
    index = snapshot(root)
    risks, ours = find_risks(index), workspace.program_paths
    return SandboxSetup(
        root,
        workspace.state_folders,
        environ,
        git=writes and GIT_WORD in file.writes,
        repositories=risks.repositories,
        secrets=risks.secrets,
        linked=risks.linked,
        own=(*ours, *own_hard_links(index, root, ours)),
        log=log if writes or overlaps else None,
        writable=(str(launch.cache), *(place for place in places if os.path.isdir(place))),
        closed=not writes,
    )


def confined_words(launch: Launch) -> list[str]:
    """The words to confine: the program, which gets the definition's variables when it is confined."""
    if not launch.environ:
        return list(launch.words)
    return [os.path.realpath(sys.executable), "-I", "-S", "-c", SET_VARIABLES, *launch.words]


def launcher_environment(confined: Mapping[str, str], launch: Launch) -> dict[str, str]:
    """The environment of what starts the sandbox: folders for downloads, nothing that it would obey."""
    cache = str(launch.cache)
    folders = {"XDG_CACHE_HOME": cache, "npm_config_cache": f"{cache}/npm", "UV_CACHE_DIR": f"{cache}/uv"}
    return {**confined, **folders, **{SET_INSIDE + name: value for name, value in launch.environ.items()}}
