"""How a command of the model's is started: its words, its environment, its network, and where it works."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import anyio.to_thread

from handrail.policy.git_writes import writes_git
from handrail.tools.base import Work
from handrail.tools.environment import find_program, without_folders_of, without_secrets
from handrail.tools.git import quiet_git, without_filters
from handrail.tools.sandbox.places import Ground
from handrail.tools.sandbox.surveyed import surveyed
from handrail.tools.shell_parsing import parse

if TYPE_CHECKING:
    from handrail.workspace.index import StatIndex


class Start(NamedTuple):
    words: list[str]
    environ: Mapping[str, str]
    network: bool
    git: bool
    """It is nothing but git's own work on `.git`."""


async def start_of(command: str, work: Work, *, network: bool) -> Start:
    """The command as it runs: hardened where nobody was asked, and without secrets in any case."""
    unasked = work.unasked
    environ = without_secrets(os.environ, work.secrets.variables)
    git = await anyio.to_thread.run_sync(is_gits_own, command)
    environ = quiet_git(environ) if git else environ
    if unasked and unasked.git:
        environ = await without_filters(work.workspace.root, environ)
    if unasked and not unasked.code:
        environ = without_folders_of(work.workspace.root, environ)
    # Not one that lies in the workspace, whatever the PATH says.
    words = [find_program("bash") or "bash", "-c", unasked.text if unasked else command]
    return Start(words, environ, network or bool(unasked and unasked.network), git)


def ground_of(work: Work, environ: Mapping[str, str], before: "StatIndex", *, git: bool) -> Ground:
    """Where the command works; what only the user's word opens is closed where nobody was asked."""
    found = surveyed(before)
    return Ground(
        work.workspace.root,
        work.workspace.state_folders,
        environ,
        git=git,
        repositories=found.repositories,
        secrets=found.secrets if work.unasked and not work.unasked.named else (),
        linked=found.linked if work.unasked else (),
    )


def is_gits_own(command: str) -> bool:
    """Whether the command is nothing but git's own work on `.git`; waits for the shell grammar."""
    return "git" in command and writes_git(parse(command))
