"""The bubblewrap command line that confines a command.

`--new-session` is not used: every command already starts in a session of its own, without a terminal, and
its process group can be signalled there.
"""

import os
from collections.abc import Iterable, Sequence

from handrail.tools.process import find_program
from handrail.tools.sandbox import protected_paths
from handrail.tools.sandbox.copy_mounts import bind_source, copy_mounts
from handrail.tools.sandbox.limits import FILE_BYTES, OPEN_FILES
from handrail.tools.sandbox.protected_paths import SandboxSetup, is_inside
from handrail.workspace.sensitive_names import STATE_FILES

TEMP = "/tmp"  # noqa: S108 - private to the sandbox
EMPTY_FOLDERS = (TEMP, "/var/tmp", "/run", "/var/run")  # noqa: S108
"""Empty in the sandbox, because they hold the sockets of services."""
NEEDED_IN_RUN = ("/run/current-system", "/run/opengl-driver")
KEPT_CAPABILITIES = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")
"""What root keeps: needed in a workspace that belongs to another user."""

# Limits are set inside, where only the sandbox's processes count. What the command left running gets SIGTERM;
# the rest ends with the sandbox.
INNER_SCRIPT = f"""
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
# The sandbox has numbers of its own; without them, the signal would reach every process of the user.
if [ $$ -lt 10 ] && others; then
  echo '[processes it left in the background were stopped]'
  kill -TERM -1
  for _ in {{1..40}}; do others || break; sleep 0.05; done
fi
exit $status
"""


def find_bubblewrap() -> str | None:
    return find_program("bwrap")


def wrap_command(
    program: str, words: Sequence[str], setup: SandboxSetup, *, network: bool, processes: int
) -> list[str]:
    """The command confined by bubblewrap; `processes` is 0 if they cannot be counted for it alone."""
    limit = str(processes) if processes else "unlimited"
    hidden = protected_paths.unreadable_places(setup)
    files = protected_paths.unreadable_files(setup)
    if setup.reads:
        missing: tuple[str, ...] = ()
        hidden = tuple(path for path in hidden if is_inside(path, str(setup.workspace)))
        mounts = _reading_mounts(setup, (*hidden, *files))
    else:
        missing = protected_paths.missing_state_paths(setup)
        mounts = _mounts(setup, (*hidden, *missing, *files), network=network)
    # Deeper mounts come later, so that a path inside another place keeps its own rule.
    mounts.sort(key=lambda mount: mount[-1].rstrip("/").count("/"))
    capabilities = ["--cap-drop", "ALL", *(f for name in KEPT_CAPABILITIES for f in ("--cap-add", name))]
    inner = (find_program("bash") or "bash", "-c", INNER_SCRIPT, "sandbox", limit)
    return [
        program,
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if network else ("--unshare-net",)),
        *(capabilities if os.geteuid() == 0 else ("--unshare-user-try",)),
        *("--die-with-parent", *(() if setup.reads else ("--ro-bind", "/", "/"))),
        *(word for mount in mounts for word in mount),
        *(word for path in (*hidden, *missing) if _is_folder(path) for word in ("--remount-ro", path)),
        # Root may write the kernel's settings even without capabilities.
        *(("--remount-ro", "/proc") if os.geteuid() == 0 else ()),
        *("--chdir", str(setup.workspace), "--", *inner),
        *words,
    ]


def _mounts(setup: SandboxSetup, hidden: Iterable[str], *, network: bool) -> list[tuple[str, ...]]:
    """The options of each mount, its path last."""
    empty = [path for path in EMPTY_FOLDERS if os.path.isdir(path) and not os.path.islink(path)]
    workspace = str(setup.workspace)
    needed = (*NEEDED_IN_RUN, os.path.realpath("/etc/resolv.conf")) if network else NEEDED_IN_RUN
    existing = (path for path in needed if os.path.exists(path))
    readable = (*protected_paths.program_folders(setup), *setup.readable, *existing)
    again = [
        path
        for path in readable
        if any(is_inside(path, each) for each in empty) and not is_inside(path, workspace)
    ]
    closed = protected_paths.read_only_paths(setup)
    return [
        ("--dev", "/dev"),
        ("--proc", "/proc"),
        *(("--tmpfs", path) for path in empty),
        *(("--ro-bind", path, path) for path in again),
        # A device that bubblewrap binds cannot be opened, so this makes a file unreadable.
        *(("--tmpfs", path) if _is_folder(path) else ("--ro-bind", "/dev/null", path) for path in hidden),
        *(
            ("--ro-bind" if setup.closed else "--bind", bind_source(path, setup), path)
            for path in (workspace, *protected_paths.pinned_folders(setup, closed))
        ),
        *(("--bind", path, path) for path in setup.writable),
        *(("--ro-bind", path, path) for path in closed),
        *copy_mounts(setup),
    ]


def _reading_mounts(setup: SandboxSetup, hidden: Iterable[str]) -> list[tuple[str, ...]]:
    """The same for a command that only reads, on an empty root."""
    from handrail.tools.sandbox.readable_paths import readable_places

    workspace, home = str(setup.workspace), setup.environ.get("HOME", "")
    places = [path for path in readable_places(setup) if not is_inside(path, workspace)]
    shown = [path for path in places if not any(is_inside(path, each) for each in places)]
    # The workspace comes before the others: it may have one of them in it, or be in one.
    mounts = [
        ("--ro-bind", bind_source(workspace, setup), workspace),
        ("--dev", "/dev"),
        ("--proc", "/proc"),
        ("--tmpfs", TEMP),
    ]
    mounts += [("--dir", home)] if os.path.isabs(home) and not is_inside(home, workspace) else []
    for path in shown:
        link = os.path.islink(path)
        mounts.append(("--symlink", os.readlink(path), path) if link else ("--ro-bind", path, path))
    mounts += [("--tmpfs", path) if _is_folder(path) else ("--ro-bind", "/dev/null", path) for path in hidden]
    return [*mounts, *copy_mounts(setup)]


def _is_folder(path: str) -> bool:
    # bubblewrap makes what does not exist, to mount something on it.
    return os.path.isdir(path) or (not os.path.lexists(path) and not path.endswith(STATE_FILES))
