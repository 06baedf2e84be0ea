"""The words that run a command inside bubblewrap.

Not asked of it: `--new-session`, because every command already begins in a session of its own, without a
terminal, and stays in one group there, which can then be asked to end.
"""

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from handrail.tools.environment import find_program
from handrail.tools.sandbox.limits import FILE_BYTES, OPEN_FILES
from handrail.tools.sandbox.places import Ground, absent, hidden, needed, protected, unread
from handrail.workspace.names import STATE_FILES

TEMP = "/tmp"  # noqa: S108 - private to the sandbox
PRIVATE = (TEMP, "/var/tmp", "/run", "/var/run")  # noqa: S108
"""Empty in the sandbox: sockets of services lie in them."""
NEEDED_IN_RUN = ("/run/current-system", "/run/opengl-driver")
ROOTS_POWERS = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")
"""What is left of root's powers: work on files of a workspace that belongs to somebody else."""

# Limits are set inside, where processes are counted for the sandbox alone. What the command left behind is
# asked to end; whatever does not is gone with the sandbox.
INSIDE = f"""
exec 3>&2 2>/dev/null
ulimit -c 0; ulimit -f {FILE_BYTES // 1024}; ulimit -n {OPEN_FILES}; ulimit -u "$1"; shift
"$@" 2>&3 3>&-
status=$?
others() {{
  for file in /proc/[0-9]*/stat; do
    number=${{file//[^0-9]/}}
    if [ "$number" -gt 1 ] && [ "$number" != $$ ] && read -r line <"$file"; then
      case ${{line##*) }} in [ZX]*) ;; *) return 0 ;; esac
    fi
  done
  return 1
}}
if others; then
  echo '[processes it left in the background were stopped]'
  kill -TERM -1
  for _ in {{1..40}}; do others || break; sleep 0.05; done
fi
exit $status
"""


class Mount(NamedTuple):
    path: str
    words: tuple[str, ...]


def find_bubblewrap() -> str | None:
    return find_program("bwrap")


def confined(
    program: str, words: Sequence[str], ground: Ground, *, network: bool, processes: int
) -> list[str]:
    """The command as bubblewrap's words; `processes` is 0 where they are not counted for it alone."""
    most = str(processes) if processes else "unlimited"
    secret, missing = hidden(ground), absent(ground)
    # The deeper mount comes later, so that what is inside another place keeps its own rule.
    mounts = _mounts(ground, (*secret, *missing, *unread(ground)), network=network)
    mounts.sort(key=lambda mount: _depth(mount.path))
    return [
        program,
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if network else ("--unshare-net",)),
        *_powers(),
        *("--die-with-parent", "--ro-bind", "/", "/"),
        *(word for mount in mounts for word in mount.words),
        *(word for path in (*secret, *missing) if _is_folder(path) for word in ("--remount-ro", path)),
        *(
            "--chdir",
            str(ground.workspace),
            "--",
            find_program("bash") or "bash",
            "-c",
            INSIDE,
            "sandbox",
            most,
        ),
        *words,
    ]


def _powers() -> tuple[str, ...]:
    if os.geteuid() != 0:
        return ("--unshare-user-try",)
    return ("--cap-drop", "ALL", *(word for name in ROOTS_POWERS for word in ("--cap-add", name)))


def _mounts(ground: Ground, secret: Iterable[str], *, network: bool) -> list[Mount]:
    private = [path for path in PRIVATE if os.path.isdir(path) and not os.path.islink(path)]
    workspace = str(ground.workspace)
    wanted = (*needed(ground), *_in_run(network=network))
    again = [path for path in wanted if _inside(path, private) and not _inside(path, (workspace,))]
    return [
        Mount("/dev", ("--dev", "/dev")),
        Mount("/proc", ("--proc", "/proc")),
        *(Mount(path, ("--tmpfs", path)) for path in private),
        *(_mount("--ro-bind", path) for path in again),
        *(Mount(path, _hide(path)) for path in secret),
        _mount("--bind", workspace),
        *(_mount("--ro-bind", path) for path in protected(ground)),
    ]


def _mount(kind: str, path: str) -> Mount:
    return Mount(path, (kind, path, path))


def _hide(path: str) -> tuple[str, ...]:
    # A device cannot be opened where bubblewrap binds it, so this gives a file that nobody can read.
    return ("--tmpfs", path) if _is_folder(path) else ("--ro-bind", "/dev/null", path)


def _is_folder(path: str) -> bool:
    # What is not there is made by bubblewrap, to mount something on it.
    return os.path.isdir(path) or (not os.path.lexists(path) and not path.endswith(STATE_FILES))


def _depth(path: str) -> int:
    return path.rstrip("/").count("/")


def _in_run(*, network: bool) -> list[str]:
    names = os.path.realpath("/etc/resolv.conf")
    wanted = (*NEEDED_IN_RUN, names) if network else NEEDED_IN_RUN
    return [path for path in wanted if os.path.exists(path)]


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)
